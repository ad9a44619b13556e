%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_names).
-moduledoc "One run of `bin/sderl bench names`: a group with very many names.".

-export([run/2]).
-export_type([params/0]).

-doc "`names` are held by a group of `nodes`, each by a process of its own.".
-type params() :: #{names := pos_integer(), nodes := pos_integer(), atom() => term()}.

-define(GROUP, g1).
-define(CALL_MS, 60_000).
-define(WRITE_MS, 300_000).
%% The kill comes AHEAD_US after the order to kill, and the writers begin BEHIND_US after the kill,
%% so that the process that is killed answers none of them.
-define(AHEAD_US, 500_000).
-define(BEHIND_US, 5_000).
-define(LOOKED_UP, 1000).
%% Within this members must have the names that they should have.
-define(AGREE_MS, 10_000).

-doc "Runs it. A reason is a term for `sderl_bench_reason:text/1`.".
-spec run(params(), Label :: unicode:chardata()) -> {ok, map()} | {error, term()}.
run(#{nodes := Count} = Params, Label) ->
    sderl_bench_join:with_members(Count, Label, fun(Fleet, Members, New) ->
        measure(Fleet, Members, New, Params, Label)
    end).

measure(Fleet, Members, New, #{names := Names} = Params, Label) ->
    Places = sderl_bench_join:places(Names, length(Members)),
    maybe
        ok ?= sderl_bench_impl_s_group:prepare(Fleet, [{?GROUP, Members}], Params),
        {ok, Empty} ?= sderl_bench_join:memory(Fleet, Members),
        {ok, [EmptyNew]} ?= sderl_bench_join:memory(Fleet, [New]),
        Began = erlang:monotonic_time(millisecond),
        ok ?= sderl_bench_join:preload(Fleet, Members, Places, Label),
        LoadMs = erlang:monotonic_time(millisecond) - Began,
        {ok, Full} ?= sderl_bench_join:memory(Fleet, Members),
        {ok, LookupNs} ?= look_up(Fleet, Members, Places),
        {ok, Coordinator} ?= sderl_bench_nodes:on(Fleet, hd(Members), sderl_bench_names_worker,
                                                  coordinator, [?GROUP]),
        {ok, Process} ?= process_killed(Fleet, Coordinator, Members, Names, Label),
        {ok, JoinMs} ?= join(Fleet, hd(Members), New, Places, Label),
        {ok, [FullNew]} ?= sderl_bench_join:memory(Fleet, [New]),
        {ok, Node} ?= node_killed(Fleet, [New | Members], Names, Places, Label),
        Tables = [(After - Before) / Names || {{_, Before}, {_, After}} <- lists:zip(Empty, Full)],
        {ok, #{
            load_s => LoadMs / 1000,
            names_per_s => 1000 * Names / max(1, LoadMs),
            bytes_per_name_max => lists:max(Tables),
            bytes_per_name_min => lists:min(Tables),
            bytes_per_name_joined => (element(1, FullNew) - element(1, EmptyNew)) / Names,
            lookup_ns => LookupNs,
            join_ms => JoinMs,
            process_killed => Process,
            node_killed => Node
        }}
    end.

look_up(Fleet, [Node | _], Places) ->
    Names = [
        {Place, 0, K}
     || {Place, 0, Count} <- Places,
        K <- lists:seq(1, Count, max(1, Count * length(Places) div ?LOOKED_UP))
    ],
    Args = [sderl_bench_impl_s_group, ?GROUP, Names],
    case sderl_fleet:call(Fleet, Node, sderl_bench_registry_worker, lookup_ns, Args, ?CALL_MS) of
        Ns when is_number(Ns) -> {ok, Ns};
        Answer -> {error, {no_lookup, Node, Answer}}
    end.

%% Only the process dies; its node and its tables stay.
process_killed(Fleet, Coordinator, Members, Names, Label) ->
    At = os:system_time(microsecond) + ?AHEAD_US,
    Killer = sderl_fleet_task:start(fun() ->
        sderl_bench_nodes:on(Fleet, Coordinator, sderl_bench_names_worker, kill_process,
                             [?GROUP, At])
    end),
    maybe
        {ok, Written} ?= writes([Label, ": the coordinator's process was killed"], Fleet, Members,
                                At + ?BEHIND_US),
        {ok, {ok, Died}} ?= sderl_fleet_task:result(Killer, ?CALL_MS),
        {ok, until(Died, Written, all_have(Names, Fleet, Members))}
    else
        {error, Reason} -> {error, Reason};
        {ok, Error} -> Error
    end.

%% The names of a node go with it.
node_killed(Fleet, Members, Names, Places, Label) ->
    maybe
        {ok, Coordinator} ?= sderl_bench_nodes:on(Fleet, hd(Members), sderl_bench_names_worker,
                                                  coordinator, [?GROUP]),
        {_, 0, Lost} = proplists:lookup(place(Coordinator, Members),
                                        Places ++ [{place(hd(Members), Members), 0, 0}]),
        Left = lists:delete(Coordinator, Members),
        Died = os:system_time(microsecond),
        ok ?= sderl_fleet:kill(Fleet, Coordinator),
        %% The writes begin when the coordinator is gone, so that it answers none of them.
        {ok, Written} ?= writes([Label, ": the coordinator's node was killed"], Fleet, Left, 0),
        {ok, until(Died, Written, all_have(Names - Lost, Fleet, Left))}
    end.

%% The new node is the first one here, and has no names of its own.
place(Node, [New | Members]) ->
    maps:get(Node, #{Name => Place || {Place, Name} <- [{0, New} | lists:enumerate(Members)]}).

writes(Label, Fleet, Members, At) ->
    Calls = [{Node, [?GROUP, {written, Index}, At]} || {Index, Node} <- lists:enumerate(Members)],
    maybe
        {ok, Written} ?= sderl_progress:during(Label, 2 * ?AHEAD_US div 1000, fun() ->
            sderl_bench_nodes:each(Fleet, Calls, sderl_bench_names_worker, write, ?WRITE_MS)
        end),
        {ok, [Us || {ok, Us} <- Written]}
    end.

until(Died, Written, IsComplete) ->
    #{
        first_write_ms => (lists:min(Written) - Died) / 1000,
        all_write_ms => (lists:max(Written) - Died) / 1000,
        complete => IsComplete
    }.

%% The names of a node that died go after the first writes that follow, not before them.
all_have(Count, Fleet, Nodes) ->
    Counts = fun() ->
        {ok, Counts} = sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_names_worker, count, []),
        lists:usort(Counts) =:= [Count]
    end,
    sderl_fleet:await(Counts, ?AGREE_MS) =:= ok.

join(Fleet, First, New, Places, Label) ->
    Expected = lists:sum([Count || {_, 0, Count} <- Places]) div 50,
    Added = sderl_progress:during([Label, ": a node joins"], max(1, Expected), fun() ->
        sderl_bench_join:add(Fleet, First, New, ?GROUP, Places)
    end),
    maybe
        {ok, #{began_us := Began, answered_us := Answered}} ?= Added,
        {ok, (Answered - Began) / 1000}
    end.
