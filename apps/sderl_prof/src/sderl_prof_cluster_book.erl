%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cluster_book).
-moduledoc """
The book of a recording of several nodes, in which all are on one time line (`m:sderl_prof_merge`).
It is the folder `book` in that of the recording, and is made from the books of the nodes.
""".

-export([open/2, books/2, format_error/1]).
-export_type([reason/0]).

%% At most so many sends with a time after their message's arrival are corrected; the rest stay.
-define(MOST_LATE, 200_000).
%% A send is moved by so much at most.
-define(LATE_NS, 1_000_000_000).

-type progress() :: fun((non_neg_integer(), pos_integer()) -> term()).
-type reason() :: sderl_prof_cluster_index:reason() | sderl_prof:reason()
    | {between, file:posix()} | {merge, file:filename_all(), term()}
    | {nothing_here, file:filename_all()}
    | {none_opened, file:filename_all(), [{Node :: binary(), Why :: binary()}, ...]}
    | {no_clocks, file:filename_all()}.

-doc """
Makes the book of the nodes of which the recording is here, and gives its folder. One that is there
already and is newer than those of the nodes is used as it is.
""".
-spec open(file:filename_all(), #{progress => progress()}) ->
    {ok, Book :: file:filename_all()} | {error, reason()}.
open(Dir, Options) ->
    maybe
        {ok, _, Books, Missing} ?= books(Dir, maps:remove(block, Options)),
        Aligned = [Book || {#{clock := #{}}, Book} <- Books],
        true ?= Aligned =/= [] orelse {error, {no_clocks, Dir}},
        Out = filename:join(Dir, "book"),
        case is_current(Out, length(Aligned), Aligned) of
            true -> {ok, Out};
            false -> made(Books, Missing, Out, Options)
        end
    end.

is_current(Out, Count, Books) ->
    Written = fun(Dir) -> filelib:last_modified(filename:join(Dir, "book")) end,
    Newest = lists:max([Written(Book) || Book <- Books]),
    case sderl_prof_book:open(Out) of
        {ok, Book} ->
            Nodes = sderl_prof_book:nodes(Book),
            ok = sderl_prof_book:close(Book),
            length(Nodes) =:= Count andalso Written(Out) > Newest;
        {error, _} -> false
    end.

made(Books, Missing, Out, Options) ->
    Given = maps:merge(#{progress => fun(_, _) -> ok end}, maps:with([progress, block], Options)),
    maybe
        {ok, Joined} ?= sderl_prof_joined:open(Books, fun(_, _) -> ok end),
        Parts = sderl_prof_joined:nodes(Joined),
        {ok, {Causal, Traffic}, _} ?= sderl_prof_joined:messages(
            fun timed/2, {sderl_prof_causal:new(), sderl_prof_traffic:new()}, Joined
        ),
        {Shifts, Problems} = shifts(Parts, Causal),
        {ok, Sent, _} ?= sderl_prof_joined:messages(late(Shifts), #{}, Joined),
        Plan = Given#{
            shifts => Shifts, sent => Sent,
            traffic => sderl_prof_traffic:rows(Parts, Shifts, Traffic),
            problems => Problems ++ left_out(Books, Missing) ++ different(Parts)
        },
        ok ?= merged(sderl_prof_beside:make(Out, "book", fun(Own) ->
            case sderl_prof_merge:make(Joined, Own, Plan) of
                ok -> {ok, Own};
                Error -> Error
            end
        end), Out),
        {ok, Out}
    end.

merged(ok, _) -> ok;
merged({error, {no_book, _}} = Error, _) -> Error;
merged({error, {place, Why}}, Out) -> {error, {merge, Out, Why}};
merged({error, Why}, Out) -> {error, {merge, Out, Why}}.

timed(#{from := From, to := To, sent := Sent, there := There} = Message, {Causal, Traffic}) ->
    {sderl_prof_causal:add(From, To, There - Sent, Causal),
     sderl_prof_traffic:add(Message, Traffic)}.

shifts(Parts, Causal) ->
    Errors = #{N => Error || #{number := N, error := Error} <- Parts},
    case sderl_prof_causal:shifts(Errors, Causal) of
        {ok, Shifts} -> {Shifts, []};
        none ->
            {maps:map(fun(_, _) -> 0 end, Errors),
             [<<"messages were there before they were sent, by more than the clocks of the nodes "
                "may be wrong: do not trust what is before what on different nodes">>]}
    end.

%% A send with a time after its message's arrival is moved to just before the arrival.
late(Shifts) ->
    fun(#{from := From, from_process := P, to := To, sent := At, there := There}, Sent) ->
        Latest = There + map_get(To, Shifts) - 1,
        case At + map_get(From, Shifts) - Latest of
            Late when Late > 0, Late =< ?LATE_NS, map_size(Sent) < ?MOST_LATE ->
                Sent#{{From, P, At} => Latest};
            _ -> Sent
        end
    end.

left_out(Books, Missing) ->
    [<<Node/binary, " is left out: ", Why/binary>> || {Node, Why} <- Missing]
        ++ [<<Node/binary, " is left out: its clock could not be asked">>
            || {#{node := Node, clock := null}, _} <- Books].

%% Where one node recorded what could run and another one did not, processes of the latter seem to
%% wait.
different(Parts) ->
    Modes = [{Node, mode(Book)} || #{entry := #{node := Node}, book := Book} <- Parts],
    case lists:member(recorded, [Mode || {_, Mode} <- Modes]) of
        true ->
            [<<Node/binary, ": what could run was not recorded there; it counts as waiting">>
             || {Node, Mode} <- Modes, Mode =/= recorded];
        false -> []
    end.

mode(Dir) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    #{kinds := Kinds} = sderl_prof_book:meta(Book),
    ok = sderl_prof_book:close(Book),
    sderl_prof_activity:mode(Kinds).

%% ---------------------------------------------------------------- the books of the nodes

-doc """
Makes the books of the nodes of which the recording is here; those of which it is not, and why.
""".
-spec books(file:filename_all(), sderl_prof_convert:options()) ->
    {ok, sderl_prof_cluster_index:index(),
     [{sderl_prof_cluster_index:entry(), Book :: file:filename_all()}],
     [{Node :: binary(), Why :: binary()}]} | {error, reason()}.
books(Dir, Options) ->
    maybe
        {ok, #{nodes := Entries} = Index} ?= sderl_prof_cluster_index:read(Dir),
        Opened = [{Entry, opened(Entry, Dir, Options)} || Entry <- Entries],
        Books = [{Entry, Book} || {Entry, {ok, Book}} <- Opened],
        Missing = [{Node, Why} || {#{node := Node}, {error, Why}} <- Opened],
        Here = [{Node, Why} || {#{node := Node} = Entry, {error, Why}} <- Opened,
                               is_here(Dir, Entry)],
        case {Books, Here} of
            {[], []} -> {error, {nothing_here, Dir}};
            {[], _} -> {error, {none_opened, Dir, Here}};
            _ -> {ok, Index, Books, Missing}
        end
    end.

%% The file "recording" comes last.
is_here(Dir, Entry) ->
    filelib:is_regular(filename:join(sderl_prof_cluster_index:folder(Dir, Entry), "recording")).

opened(#{state := State, error := Error} = Entry, Dir, Options) ->
    case is_here(Dir, Entry) of
        true ->
            case sderl_prof:open(sderl_prof_cluster_index:folder(Dir, Entry), Options) of
                {ok, Book} -> {ok, Book};
                {error, Why} -> {error, unicode:characters_to_binary(sderl_prof:format_error(Why))}
            end;
        false when Error =/= null -> {error, Error};
        false when State =:= waiting -> {error, ~"it was not recorded"};
        false -> {error, ~"its recording is not here: bin/sderl prof fetch"}
    end.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({index, _, _} = Why) -> sderl_prof_cluster_index:format_error(Why);
format_error({between, Why}) ->
    io_lib:format("cannot write or read the messages between nodes beside the books: ~ts",
                  [file:format_error(Why)]);
format_error({merge, Dir, Why}) ->
    io_lib:format("cannot write the book of all nodes to ~ts: ~ts", [Dir, file:format_error(Why)]);
format_error({nothing_here, Dir}) ->
    io_lib:format("~ts has the recording of no node; fetch them: bin/sderl prof fetch ~ts",
                  [Dir, Dir]);
format_error({none_opened, Dir, Failed}) ->
    [io_lib:format("no recording of a node in ~ts can be opened", [Dir])
     | [io_lib:format("; ~ts: ~ts", [Node, Why]) || {Node, Why} <- Failed]];
format_error({no_clocks, Dir}) ->
    io_lib:format("~ts: no clock of a node could be asked, so there is no time line of all; the "
                  "recording of each node can be opened for itself, as the folder of that node",
                  [Dir]);
format_error(Why) -> sderl_prof:format_error(Why).
