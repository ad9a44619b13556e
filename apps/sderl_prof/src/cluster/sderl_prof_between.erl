%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_between).
-moduledoc """
The messages between nodes in the book of one of them, as a file of rows in the order of their
times, and read again piece by piece, several files at once in the order of all.

A row is `<<Order:64/signed, Time:64/signed, Kind, Own:32, OwnKey:64, Peer:16, PeerKey:64,
Bytes:32>>`: times on the common time line; `Own` and `OwnKey` are the number and the key of the
process here, `Peer` the number of the other node and `PeerKey` the key of the receiver there. The
sender of a receive is not known: in the place of `PeerKey` such a row has the time at which the
message was there at the latest. That is when the process woke, if it waited and this is the first
message that it received then, and else the time of the receive. A send is put in order by the
earliest time that it can have, a receive by the latest, so that no receive comes before its send.
""".

-export([names/1, extract/3, fold/3]).
-export_type([context/0, counts/0, row/0]).

-include("sderl_prof_event.hrl").

-define(ROW_BYTES, 43).
-define(FLUSH, 65_536).
-define(READ, (1524 * ?ROW_BYTES)).
%% Entities that are remembered at a time.
-define(KNOWN, 200_000).

-doc """
`to_common` makes a time one of the common time line, which is wrong by `error` at most; `peers`:
the numbers of the nodes by their names; `names`: of each node, the keys of processes by their
names.
""".
-type context() :: #{
    to_common := fun((integer()) -> integer()),
    error := non_neg_integer(),
    peers := #{binary() => non_neg_integer()},
    names := #{binary() => #{binary() => non_neg_integer()}}
}.
-doc """
By the name of the other node: messages sent to it, their bytes, and messages received from it.
""".
-type counts() :: #{binary() => {non_neg_integer(), non_neg_integer(), non_neg_integer()}}.
-type row() :: {sent | received, Time :: integer(), Own :: pos_integer(),
                OwnKey :: non_neg_integer(), Peer :: non_neg_integer(),
                PeerKeyOrThere :: integer(), Bytes :: non_neg_integer()}.

-doc "The keys of the processes of a book that have names.".
-spec names(sderl_prof_book:book()) -> #{binary() => non_neg_integer()}.
names(Book) ->
    sderl_prof_book:fold_entities(fun
        (#{kind := process, name := Name, key := Key}, Names) when Name > 0 ->
            Names#{sderl_prof_book:word(Name, Book) => Key};
        (_, Names) -> Names
    end, #{}, Book).

%% ---------------------------------------------------------------- writing

-record(out, {
    file :: file:fd(),
    book :: sderl_prof_book:book(),
    context :: context(),
    buffer = [] :: iodata(),
    size = 0 :: non_neg_integer(),
    %% The other side: its node, and the key of the process there.
    peers = #{} :: #{{byte(), non_neg_integer()} =>
                         {binary(), non_neg_integer() | unknown} | none},
    keys = #{} :: #{non_neg_integer() => non_neg_integer()},
    counts = #{} :: counts(),
    %% The kind of event with which a process wakes, and those that have received nothing since.
    wakes :: byte(),
    woken = #{} :: #{pos_integer() => integer()},
    unknown = 0 :: non_neg_integer()
}).

-doc """
Writes the rows of a book; the counts, and how many messages are to a process that is not known,
such as one that has another name now.
""".
-spec extract(sderl_prof_book:book(), File :: file:filename_all(), context()) ->
    {ok, counts(), Unknown :: non_neg_integer()} | {error, file:posix()}.
extract(Book, Name, Context) ->
    maybe
        {ok, File} ?= file:open(Name, [write, raw, binary]),
        Written = try
            Out = sderl_prof_book:fold(Book, #{}, fun event/7,
                                       #out{file = File, book = Book, context = Context,
                                            wakes = wakes(sderl_prof_book:meta(Book))}),
            {file:write(File, Out#out.buffer), Out}
        catch
            throw:{write, Why} -> {error, Why}
        end,
        Closed = file:close(File),
        case {Written, Closed} of
            {{ok, #out{counts = Counts, unknown = Unknown}}, ok} -> {ok, Counts, Unknown};
            {{error, Why1}, _} -> {error, Why1};
            {{{error, Why2}, _}, _} -> {error, Why2};
            {_, {error, Why3}} -> {error, Why3}
        end
    end.

%% Where it is not recorded what could run, a process is awake when it runs.
wakes(#{kinds := #{active := _}}) -> ?ACTIVE;
wakes(_) -> ?IN.

event(T, ?SEND, _, P, A, B, Out) when A > 0 ->
    case peer(?SEND, A, Out) of
        {none, Out1} -> Out1;
        {{Node, Key}, Out1} -> row(T, ?SEND, P, Node, Key, B, counted(?SEND, Node, B, Out1))
    end;
event(T, ?RECEIVE, _, P, A, B, #out{woken = Woken} = Out0) ->
    There = maps:get(P, Woken, T),
    case A > 0 andalso peer(?RECEIVE, A, asleep(P, Out0)) of
        false -> asleep(P, Out0);
        {none, Out} -> Out;
        {{Node, _}, Out} -> row(T, ?RECEIVE, P, Node, There, B, counted(?RECEIVE, Node, B, Out))
    end;
event(T, K, _, P, _, _, #out{wakes = K, woken = Woken} = Out) ->
    Out#out{woken = Woken#{P => T}};
event(_, ?OUT, _, P, _, _, Out) -> asleep(P, Out);
event(_, ?EXIT, _, P, _, _, Out) -> asleep(P, Out);
event(_, _, _, _, _, _, Out) -> Out.

asleep(P, #out{woken = Woken} = Out) when is_map_key(P, Woken) ->
    Out#out{woken = maps:remove(P, Woken)};
asleep(_, Out) -> Out.

counted(K, Node, Bytes, #out{counts = Counts} = Out) ->
    {Sent, SentBytes, Received} = maps:get(Node, Counts, {0, 0, 0}),
    New = case K of
        ?SEND -> {Sent + 1, SentBytes + Bytes, Received};
        ?RECEIVE -> {Sent, SentBytes, Received + 1}
    end,
    Out#out{counts = Counts#{Node => New}}.

row(T, K, P, Node, Key, Bytes,
    #out{context = #{to_common := ToCommon, error := Error, peers := Peers}} = Out) ->
    case Peers of
        #{Node := _} when Key =:= unknown -> Out#out{unknown = Out#out.unknown + 1};
        #{Node := Number} ->
            Time = ToCommon(T),
            {OwnKey, Out1} = own_key(P, Out),
            {Kind, Order, Last} = case K of
                ?SEND -> {0, Time - Error, Key};
                ?RECEIVE -> {1, Time + Error, ToCommon(Key)}
            end,
            put_row(<<Order:64, Time:64, Kind, P:32, OwnKey:64, Number:16, Last:64, Bytes:32>>,
                    Out1);
        %% A node that was not recorded.
        _ -> Out
    end.

put_row(Row, #out{file = File, buffer = Buffer, size = Size} = Out)
  when Size + ?ROW_BYTES >= ?FLUSH ->
    case file:write(File, [Buffer, Row]) of
        ok -> Out#out{buffer = [], size = 0};
        {error, Why} -> throw({write, Why})
    end;
put_row(Row, #out{buffer = Buffer, size = Size} = Out) ->
    Out#out{buffer = [Buffer, Row], size = Size + ?ROW_BYTES}.

peer(K, A, #out{peers = Known, book = Book} = Out) ->
    case Known of
        #{{K, A} := Peer} -> {Peer, Out};
        _ ->
            Peer = case K of
                ?SEND -> found(sderl_prof_book:entity(A, Book), Out);
                ?RECEIVE -> {sderl_prof_book:label(A, Book), 0}
            end,
            {Peer, Out#out{peers = remember({K, A}, Peer, Known)}}
    end.

found(#{kind := Kind, name := Name}, #out{book = Book, context = #{names := Names}})
  when Kind =:= remote; Kind =:= name; Kind =:= node ->
    Text = sderl_prof_book:word(Name, Book),
    case {Kind, sderl_prof_etf:peer(Text)} of
        {remote, {{Id, Serial}, Node}} -> {Node, sderl_prof_event:key(Id, Serial)};
        {name, {Called, Node}} when is_binary(Called) ->
            {Node, maps:get(Called, maps:get(Node, Names, #{}), unknown)};
        %% More processes than are told apart.
        {node, _} -> {Text, unknown};
        _ -> none
    end;
found(_, _) -> none.

own_key(P, #out{keys = Keys, book = Book} = Out) ->
    case Keys of
        #{P := Key} -> {Key, Out};
        _ ->
            Key = case sderl_prof_book:entity(P, Book) of #{key := K} -> K; none -> 0 end,
            {Key, Out#out{keys = remember(P, Key, Keys)}}
    end.

remember(Key, What, Known) when map_size(Known) < ?KNOWN -> Known#{Key => What};
remember(Key, What, _) -> #{Key => What}.

%% ---------------------------------------------------------------- reading

-doc """
Calls the function with the rows of all files in their order, each with the number of its file.
""".
-spec fold(fun((Number, row(), Acc) -> Acc), Acc, [{Number, file:filename_all()}]) ->
    {ok, Acc} | {error, file:posix()}.
fold(Fun, Acc, Files) ->
    Opened = [{N, file:open(Name, [read, raw, binary])} || {N, Name} <- Files],
    Fds = [Fd || {_, {ok, Fd}} <- Opened],
    try
        case [Why || {_, {error, Why}} <- Opened] of
            [Why | _] -> {error, Why};
            [] ->
                Heads = [Head || {N, {ok, Fd}} <- Opened, Head <- head(N, Fd, <<>>)],
                {ok, merge(gb_sets:from_list(Heads), Fun, Acc)}
        end
    after
        lists:foreach(fun file:close/1, Fds)
    end.

%% The first row of a file and the rest of what has been read.
head(N, Fd, <<Order:64/signed, Row:(?ROW_BYTES - 8)/binary, Rest/binary>>) ->
    [{Order, N, Row, Rest, Fd}];
head(N, Fd, Left) ->
    case file:read(Fd, ?READ) of
        {ok, More} -> head(N, Fd, <<Left/binary, More/binary>>);
        _ -> []
    end.

merge(Heads, Fun, Acc) ->
    case gb_sets:is_empty(Heads) of
        true -> Acc;
        false ->
            {{_, N, Row, Rest, Fd}, Others} = gb_sets:take_smallest(Heads),
            Next = lists:foldl(fun gb_sets:add/2, Others, head(N, Fd, Rest)),
            merge(Next, Fun, Fun(N, decoded(Row), Acc))
    end.

decoded(<<Time:64/signed, Kind, Own:32, OwnKey:64, Peer:16, Last:64/signed, Bytes:32>>) ->
    {case Kind of 0 -> sent; 1 -> received end, Time, Own, OwnKey, Peer, Last, Bytes}.
