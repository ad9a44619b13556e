%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_join).
-moduledoc """
One run of `bin/sderl bench join`: a node is added to a group with many names and busy clients.
""".

-export([run/2, metrics/1]).
-export([with_members/3, places/2, memory/2, preload/4, add/5, start_writers/4, stop_writers/2]).
-export_type([params/0]).

-doc """
`names` are held by the group all the time. On each node `clients` write, and pause for
`pause_ms` after each pair. The node is added after `seconds`.
""".
-type params() :: #{
    names := pos_integer(),
    group_size := pos_integer(),
    clients := pos_integer(),
    pause_ms := non_neg_integer(),
    seconds := pos_integer(),
    atom() => term()
}.

-define(GROUP, g1).
-define(WARMUP_MS, 1000).
-define(PRELOAD_MS, 3_600_000).
-define(CALL_MS, 60_000).
-define(JOIN_MS, 600_000).

-doc "Runs it. A reason is a term for `sderl_bench_reason:text/1`.".
-spec run(params(), Label :: unicode:chardata()) -> {ok, map()} | {error, term()}.
run(#{group_size := Size} = Params, Label) ->
    with_members(Size, Label, fun(Fleet, Members, New) ->
        measure(Fleet, Members, New, Params, Label)
    end).

-doc "Starts the members of the group and one more node, and calls `Fun` with them.".
-spec with_members(pos_integer(), unicode:chardata(), fun((pid(), [node()], node()) -> Result)) ->
    Result | {error, term()}.
with_members(Size, Label, Fun) ->
    maybe
        %% This is checked before the members are listed, because a size may be any number.
        ok ?= sderl_fleet:fits(Size + 1),
        Groups = [{?GROUP, normal, [{n, lists:seq(1, Size)}]}],
        sderl_bench_nodes:with(Size + 1, Groups, Label, fun(Fleet, Nodes) ->
            {Members, [New]} = lists:split(Size, Nodes),
            Fun(Fleet, Members, New)
        end)
    end.

measure(Fleet, Members, New, #{names := Names} = Params, Label) ->
    Places = places(Names, length(Members)),
    maybe
        ok ?= sderl_bench_impl_s_group:prepare(Fleet, [{?GROUP, Members}], Params),
        {ok, Empty} ?= memory(Fleet, Members),
        {ok, [EmptyNew]} ?= memory(Fleet, [New]),
        ok ?= preload(Fleet, Members, Places, Label),
        {ok, Full} ?= memory(Fleet, Members),
        ok ?= start_writers(Fleet, Members, ?GROUP, Params),
        {ok, Joined} ?= join(Fleet, Members, New, Places, Params, Label),
        {ok, Written} ?= stop_writers(Fleet, Members),
        {ok, [FullNew]} ?= memory(Fleet, [New]),
        {ok, metrics(Joined#{
            names => Names,
            written => Written,
            tables => [(Tables - Tables0) / Names
                       || {{_, Tables0}, {_, Tables}} <- lists:zip(Empty, Full)],
            new => {element(1, FullNew) - element(1, EmptyNew),
                    element(2, FullNew) - element(2, EmptyNew)},
            converged => converged(Fleet, [New | Members], Names)
        })}
    end.

-doc """
The names that each of so many members registers, as `sderl_bench_join_worker:answers/3` has them.
""".
-spec places(pos_integer(), pos_integer()) -> [{pos_integer(), 0, non_neg_integer()}].
places(Names, Members) ->
    [{Place, 0, sderl_bench_registry:share(Names, Members, Place)}
     || Place <- lists:seq(1, Members)].

-doc "Bytes that each node uses, in all and in tables.".
-spec memory(pid(), [node()]) -> {ok, [{non_neg_integer(), non_neg_integer()}]} | {error, term()}.
memory(Fleet, Nodes) ->
    sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_join_worker, memory, []).

-doc "Registers the names.".
-spec preload(pid(), [node()], [{pos_integer(), 0, non_neg_integer()}], unicode:chardata()) ->
    ok | {error, term()}.
preload(Fleet, Members, Places, Label) ->
    Names = lists:sum([Count || {_, 0, Count} <- Places]),
    %% About 20,000 names a second.
    Answers = sderl_progress:during([Label, ": registering names"], max(1, Names div 20), fun() ->
        Calls = [
            {Node, [sderl_bench_impl_s_group, ?GROUP, Place, 1, Count]}
         || {Node, {Place, 0, Count}} <- lists:zip(Members, Places)
        ],
        sderl_bench_nodes:each(Fleet, Calls, sderl_bench_registry_worker, preload, ?PRELOAD_MS)
    end),
    maybe
        {ok, Failures} ?= Answers,
        case [{Node, Failed}
              || {Node, Failed} <- lists:zip(Members, Failures), Failed =/= {0, []}] of
            [] -> ok;
            [{Node, Failed} | _] -> {error, {not_preloaded, Node, {ok, Failed}}}
        end
    end.

-doc """
Clients of each node begin to register and unregister names in the group, with pauses between.
""".
-spec start_writers(pid(), [node()], Group :: atom(),
                    #{clients := pos_integer(), pause_ms := non_neg_integer(), atom() => term()}) ->
    ok | {error, term()}.
start_writers(Fleet, Nodes, Group, #{clients := Clients, pause_ms := PauseMs}) ->
    Calls = [{Node, [Group, Index, Clients, PauseMs]} || {Index, Node} <- lists:enumerate(Nodes)],
    maybe
        {ok, _} ?= sderl_bench_nodes:each(Fleet, Calls, sderl_bench_join_worker, start_writers,
                                          ?CALL_MS),
        ok
    end.

-doc "Ends them: the samples of each node, and how many writes failed.".
-spec stop_writers(pid(), [node()]) ->
    {ok, [{[sderl_bench_join_worker:sample()], Errors :: non_neg_integer()}]} | {error, term()}.
stop_writers(Fleet, Nodes) ->
    sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_join_worker, stop_writers, []).

join(Fleet, [First | _], New, Places, #{seconds := Seconds}, Label) ->
    StartUs = os:system_time(microsecond) + 1000 * ?WARMUP_MS,
    ok = sderl_progress:during([Label, ": writing"], ?WARMUP_MS + 1000 * Seconds, fun() ->
        receive
        after ?WARMUP_MS + 1000 * Seconds -> ok
        end
    end),
    maybe
        {ok, Moments} ?= add(Fleet, First, New, ?GROUP, Places),
        {ok, Moments#{start_us => StartUs}}
    end.

-doc """
Adds a node; when that began, when the call returned and when the node had answered for all names.
""".
-spec add(pid(), node(), node(), atom(), [{pos_integer(), 0, non_neg_integer()}]) ->
    {ok, #{began_us | added_us | answered_us => integer()}} | {error, term()}.
add(Fleet, First, New, Group, Places) ->
    %% The new node looks for the names while the call is still under way.
    Calls = [
        {First, {add, [Group, New], ?JOIN_MS}},
        {New, {answers, [Group, Places, ?JOIN_MS], 2 * ?JOIN_MS}}
    ],
    Answers = sderl_fleet_task:at_once(Calls, fun(Node, {F, Args, Timeout}) ->
        sderl_bench_nodes:on(Fleet, Node, sderl_bench_join_worker, F, Args, Timeout)
    end),
    case Answers of
        [{_, {ok, {ok, Began, Added}}}, {_, {ok, {ok, Answered}}}] ->
            {ok, #{began_us => Began, added_us => Added, answered_us => max(Added, Answered)}};
        _ ->
            hd([Error || {_, {error, _} = Error} <- Answers])
    end.

converged(Fleet, Nodes, Names) ->
    Answers = sderl_fleet:multicall(
        Fleet, Nodes, sderl_bench_registry_worker, content, [sderl_bench_impl_s_group, ?GROUP],
        ?CALL_MS
    ),
    case lists:usort([Answer || {_, Answer} <- Answers]) of
        [{ok, {Names, _Hash}}] -> true;
        _ -> false
    end.

-doc """
The metrics of a run from what was measured: moments in us, the writers' samples of each
node, bytes per name in the tables of each old member, and what the new node's memory grew
by, in all and in tables.
""".
-spec metrics(#{
    names := pos_integer(),
    start_us := integer(),
    began_us := integer(),
    added_us := integer(),
    answered_us := integer(),
    written := [{[sderl_bench_join_worker:sample()], non_neg_integer()}],
    tables := [number()],
    new := {integer(), integer()},
    converged := boolean()
}) -> map().
metrics(
    #{start_us := Start, began_us := Began, added_us := Added, answered_us := Answered} = Seen
) ->
    #{names := Names, written := Written, tables := Tables, new := {Total, NewTables}} = Seen,
    {Samples, Errors} = lists:unzip(Written),
    All = lists:append(Samples),
    Before = [Took || {At, Took} <- All, At >= Start, At + Took < Began],
    %% The operations that were under way at some time of it.
    During = [Took || {At, Took} <- All, At + Took >= Began, At =< Answered],
    #{
        join_ms => (Answered - Began) / 1000,
        add_nodes_ms => (Added - Began) / 1000,
        register_us_before => sderl_bench_histogram:of_us(Before),
        register_us_during => sderl_bench_histogram:of_us(During),
        pairs_per_s_before => length(Before) / max(1.0e-6, (Began - Start) / 1_000_000),
        pairs_per_s_during => length(During) / max(1.0e-6, (Answered - Began) / 1_000_000),
        bytes_per_name => Total / Names,
        table_bytes_per_name => NewTables / Names,
        table_words_per_name => NewTables / Names / erlang:system_info(wordsize),
        table_bytes_per_name_max => lists:max(Tables),
        errors => lists:sum(Errors),
        converged => maps:get(converged, Seen)
    }.
