%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_groups).
-moduledoc "One run of `bin/sderl bench groups`: many groups of two are made on a few nodes.".

-export([run/3]).
-export_type([params/0]).

-doc """
Groups are made until there are as many as each of `groups` says, by the nodes in turn, a pause of
`pause_ms` before each. Meanwhile one client of each node writes in a group of all nodes.
""".
-type params() :: #{
    nodes := pos_integer(),
    groups := [pos_integer()],
    pause_ms := non_neg_integer(),
    atom() => term()
}.

-define(BASE, base).
-define(WRITE_PAUSE_MS, 10).
%% Groups that a node makes before it is the next one's turn.
-define(TURN, 50).
-define(CREATE_MS, 3_600_000).
%% Groups that are made while nobody writes, to count the messages of one.
-define(COUNTED, 100).
-define(REST_MS, 5000).

-doc "Runs it; `Report` gets the metrics of each number of groups when it is reached.".
-spec run(params(), Label :: unicode:chardata(), Report :: fun((map()) -> ok)) ->
    {ok, [map()]} | {error, term()}.
run(#{nodes := Count} = Params, Label, Report) ->
    sderl_bench_nodes:with(Count, [{?BASE, normal, [{n, all}]}], Label, fun(Fleet, Nodes) ->
        maybe
            ok ?= sderl_bench_impl_s_group:prepare(Fleet, [{?BASE, Nodes}], Params),
            {ok, Empty} ?= sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_groups_worker, memory,
                                                 []),
            stages(Fleet, Nodes, Params, Empty, Report)
        end
    end).

stages(Fleet, Nodes, #{groups := Numbers} = Params, Empty, Report) ->
    Stage = fun
        (_, {error, Reason}) ->
            {error, Reason};
        (Number, {ok, Have, Seen}) ->
            case stage(Fleet, Nodes, Have, Number, Params, Empty) of
                {ok, Metrics} ->
                    ok = Report(Metrics),
                    {ok, Number, [Metrics | Seen]};
                {error, Reason} ->
                    {error, Reason}
            end
    end,
    case lists:foldl(Stage, {ok, 0, []}, Numbers) of
        {ok, _, Seen} -> {ok, lists:reverse(Seen)};
        {error, Reason} -> {error, Reason}
    end.

stage(Fleet, Nodes, Have, Number, #{pause_ms := Pause}, Empty) ->
    Counted = min(?COUNTED, (Number - Have) div 2),
    maybe
        ok ?= sderl_bench_join:start_writers(Fleet, Nodes, ?BASE,
                                             #{clients => 1, pause_ms => ?WRITE_PAUSE_MS}),
        {ok, Took} ?= create(Fleet, Nodes, lists:seq(Have + 1, Number - Counted), Pause),
        {ok, Written} ?= sderl_bench_join:stop_writers(Fleet, Nodes),
        {Rested, Rest} = sderl_bench_meter:around(Fleet, Nodes, fun rest/0),
        ok ?= Rested,
        {Created, Usage} = sderl_bench_meter:around(Fleet, Nodes, fun() ->
            create(Fleet, Nodes, lists:seq(Number - Counted + 1, Number), Pause)
        end),
        {ok, _} ?= Created,
        {ok, Full} ?= sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_groups_worker, memory, []),
        {ok, Busiest} ?= sderl_bench_nodes:on(Fleet, hd(Nodes), sderl_bench_groups_worker, busiest,
                                              []),
        {Samples, Errors} = lists:unzip(Written),
        {ok, #{
            groups => Number,
            create_us => sderl_bench_histogram:of_us(Took),
            write_us => sderl_bench_histogram:of_us([Us || {_, Us} <- lists:append(Samples)]),
            errors => lists:sum(Errors),
            messages_per_group => above(messages, Usage, Rest, Counted),
            cpu_us_per_group => 1000 * above(cpu_ms, Usage, Rest, Counted),
            bytes_per_group => above(bytes, Usage, Rest, Counted),
            messages_per_s_at_rest => rate(messages, Rest),
            cpu_pct_at_rest => maps:get(cpu_pct, sderl_bench_meter:metrics(Rest, 0)),
            bytes_per_member => (lists:sum(Full) - lists:sum(Empty)) / (2 * Number),
            busiest => #{Name => Reductions || {Name, Reductions} <- Busiest}
        }}
    end.

%% The traffic beyond that at rest.
above(What, #{seconds := Seconds, total := Total}, Rest, Count) ->
    (maps:get(What, Total) - rate(What, Rest) * Seconds) / max(1, Count).

rate(What, #{seconds := Seconds, total := Total}) -> maps:get(What, Total) / Seconds.

rest() ->
    receive
    after ?REST_MS -> ok
    end.

create(Fleet, Nodes, Indexes, Pause) -> create(Fleet, Nodes, Indexes, Pause, []).

create(_, _, [], _, Took) ->
    {ok, Took};
create(Fleet, [Node | Others] = Nodes, Indexes, Pause, Took) ->
    {Now, Later} = lists:split(min(?TURN, length(Indexes)), Indexes),
    Groups = [
        {{many, Index}, lists:nth(1 + Index rem length(Others), Others)}
     || Index <- Now
    ],
    maybe
        {ok, {ok, Created}} ?=
            sderl_bench_nodes:on(Fleet, Node, sderl_bench_groups_worker, create, [Groups, Pause],
                                 ?CREATE_MS),
        create(Fleet, tl(Nodes) ++ [Node], Later, Pause, Created ++ Took)
    end.
