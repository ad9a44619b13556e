%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_joined).
-moduledoc """
The books of several nodes as one: their times on one time line, and the messages between them, each
with its send and its receive.
""".

-export([open/2, nodes/1, range/1, common/2, messages/3]).
-export_type([joined/0, part/0, message/0]).

%% Sends that wait for their receive.
-define(WAITING, 1_000_000).

-doc """
One node: its number, its entry of the index, and the folder of its book. `from` and `to` are on the
common time line, on which its times are wrong by at most `error`. `counts` are its messages with
other nodes, and `unknown` those to processes that are not known.
""".
-type part() :: #{
    number := pos_integer(),
    entry := sderl_prof_cluster_index:entry(),
    book := file:filename_all(),
    from := integer(),
    to := integer(),
    error := non_neg_integer(),
    counts := sderl_prof_between:counts(),
    unknown := non_neg_integer()
}.
-opaque joined() :: [part()].
-doc """
Nodes and processes are numbers; a process that of its node's book. Times are common ones; the
message was `there` when its receiver woke because of it, or took it over.
""".
-type message() :: #{from := pos_integer(), from_process := pos_integer(), sent := integer(),
                     to := pos_integer(), to_process := pos_integer(), received := integer(),
                     there := integer(), bytes := non_neg_integer()}.

-doc "Joins the books of nodes of which the clocks are known; the other ones are left out.".
-spec open([{sderl_prof_cluster_index:entry(), Book :: file:filename_all()}],
           fun((non_neg_integer(), pos_integer()) -> term())) ->
    {ok, joined()} | {error, {no_book, file:filename_all()} | {between, file:posix()}}.
open(Books, Progress) ->
    Known = [{Entry, Dir} || {#{clock := #{}} = Entry, Dir} <- Books],
    maybe
        {ok, Names} ?= names(Known, #{}),
        Numbers = #{Node => N || {N, {#{node := Node}, _}} <- lists:enumerate(Known)},
        parts(lists:enumerate(Known), Names, Numbers, Progress, [])
    end.

names([], Names) -> {ok, Names};
names([{#{node := Node}, Dir} | Rest], Names) ->
    maybe
        {ok, Book} ?= sderl_prof_book:open(Dir),
        Of = sderl_prof_between:names(Book),
        ok = sderl_prof_book:close(Book),
        names(Rest, Names#{Node => Of})
    end.

parts([], _, _, _, Parts) -> {ok, lists:reverse(Parts)};
parts([{N, {#{clock := Clock} = Entry, Dir}} | Rest], Names, Numbers, Progress, Parts) ->
    maybe
        {ok, Book} ?= sderl_prof_book:open(Dir),
        {From, To} = sderl_prof_book:range(sderl_prof_book:meta(Book)),
        Error = sderl_prof_clock:error_within(From, To, Clock),
        Context = #{to_common => fun(T) -> sderl_prof_clock:common(T, Clock) end, error => Error,
                    peers => Numbers, names => Names},
        Extracted = extract(Book, Dir, Context),
        ok = sderl_prof_book:close(Book),
        {ok, Counts, Unknown} ?= Extracted,
        _ = Progress(N, map_size(Numbers)),
        Part = #{number => N, entry => Entry, book => Dir, error => Error, counts => Counts,
                 unknown => Unknown, from => sderl_prof_clock:common(From, Clock),
                 to => sderl_prof_clock:common(To, Clock)},
        parts(Rest, Names, Numbers, Progress, [Part | Parts])
    else
        {error, {no_book, _}} = Error1 -> Error1;
        {error, Why} -> {error, {between, Why}}
    end.

%% Another program may be at it, or read it.
extract(Book, Dir, Context) ->
    Rows = rows(Dir),
    New = sderl_prof_beside:name(Rows),
    maybe
        {ok, _, _} = Extracted ?= sderl_prof_between:extract(Book, New, Context),
        ok ?= file:rename(New, Rows),
        Extracted
    else
        {error, _} = Error ->
            _ = file:delete(New),
            Error
    end.

rows(Dir) -> filename:join(Dir, "between").

-doc "The nodes.".
-spec nodes(joined()) -> [part()].
nodes(Parts) -> Parts.

-doc "The first begin and the last end.".
-spec range(joined()) -> {integer(), integer()}.
range([]) -> {0, 0};
range(Parts) ->
    {lists:min([From || #{from := From} <- Parts]), lists:max([To || #{to := To} <- Parts])}.

-doc "A time of a node's own clock on the common time line.".
-spec common(integer(), part()) -> integer().
common(Time, #{entry := #{clock := Clock}}) -> sderl_prof_clock:common(Time, Clock).

-doc "Calls the function with each message of which send and receive are there.".
-spec messages(fun((message(), Acc) -> Acc), Acc, joined()) ->
    {ok, Acc, sderl_prof_join:result()} | {error, {between, file:posix()}}.
messages(Fun, Acc, Parts) ->
    Begins = #{N => From || #{number := N, from := From} <- Parts},
    Files = [{N, rows(Dir)} || #{number := N, book := Dir} <- Parts],
    Join = sderl_prof_join:new(Begins, ?WAITING),
    case sderl_prof_between:fold(step(Fun), {Acc, Join}, Files) of
        {ok, {Acc1, Join1}} ->
            {Matches, Counts} = sderl_prof_join:finish(Join1),
            {ok, told(Matches, Fun, Acc1), Counts};
        {error, Why} -> {error, {between, Why}}
    end.

step(Fun) ->
    fun(N, {sent, Time, Own, _, Peer, PeerKey, Bytes}, {Acc, Join}) ->
            {Matches, Join1} = sderl_prof_join:sent({N, Own}, {Peer, PeerKey}, Time, Bytes, Join),
            {told(Matches, Fun, Acc), Join1};
       (N, {received, Time, Own, OwnKey, Peer, There, Bytes}, {Acc, Join}) ->
            {Matches, Join1} = sderl_prof_join:received(Peer, {N, OwnKey}, Time, Bytes,
                                                        {Peer, N, Own, There}, Join),
            {told(Matches, Fun, Acc), Join1}
    end.

told(Matches, Fun, Acc) ->
    lists:foldl(fun({{Sent, Bytes, From}, {Received, _, {FromNode, ToNode, To, There}}}, Acc1) ->
        Fun(#{from => FromNode, from_process => From, sent => Sent, to => ToNode,
              to_process => To, received => Received, there => There, bytes => Bytes}, Acc1)
    end, Acc, Matches).
