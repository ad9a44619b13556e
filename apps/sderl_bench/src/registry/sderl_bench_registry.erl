%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_registry).
-moduledoc """
One run of one implementation: starts the nodes, lets the clients work, and measures.

The nodes are new in each run, so that nothing is left of the run before.
""".

-export([run/3, metrics/1, share/3]).
-export_type([params/0, metrics/0]).

-doc """
`names` is the number of names that each group holds all the time; there are always enough
for the look-ups. `paths` is the code path of another project's registry.
""".
-type params() :: #{
    nodes := pos_integer(),
    group_size := pos_integer(),
    clients := pos_integer(),
    seconds := pos_integer(),
    names := non_neg_integer(),
    paths => [file:filename()],
    atom() => term()
}.

-doc "As in the JSON output; `m:sderl_bench_registry_experiment` says what they mean.".
-type metrics() :: #{
    pairs_per_s := float(),
    register_us := #{p50 := number() | undefined, p99 := number() | undefined},
    unregister_us := #{p50 := number() | undefined, p99 := number() | undefined},
    lookup_ns := number() | undefined,
    cpu_us_per_pair := number() | undefined,
    links_per_node_max := non_neg_integer(),
    errors := non_neg_integer(),
    error_reasons := [binary()],
    converged := boolean(),
    settle_ms := non_neg_integer() | undefined,
    atom() => term()
}.

-import(sderl_bench_histogram, [us/2]).

-define(WARMUP_MS, 1000).
%% From the call that starts the clients until they begin: each node must have got it.
-define(LEAD_MS, 1000).
-define(LEAD_MS_PER_NODE, 10).
%% Names that are looked up.
-define(LOOKUP_NAMES, 100).
-define(PRELOAD_MS, 600_000).
%% How long tables may differ where the implementation promises only that they will agree.
-define(SETTLE_MS, 30_000).

-doc """
Runs it. `Label` stands before the progress bar. A reason is a term for
`sderl_bench_reason:text/1`.
""".
-spec run(module(), params(), Label :: unicode:chardata()) -> {ok, metrics()} | {error, term()}.
run(Impl, #{nodes := Count} = Params, Label) ->
    maybe
        ok ?= sderl_fleet:fits(Count),
        Plan = #{groups := Groups} = maps:merge(Impl:plan(Params), maps:with([paths], Params)),
        {ok, Fleet} ?= sderl_fleet:start(sderl_bench_impl:fleet_plan(Plan, Count, Label)),
        try
            Namespaces = sderl_bench_layout:named(Groups, sderl_fleet:nodes(Fleet)),
            measure(Impl, Fleet, Namespaces, Params, Label)
        after
            sderl_fleet:stop(Fleet)
        end
    end.

measure(Impl, Fleet, Namespaces, Params, Label) ->
    #{clients := Clients, seconds := Seconds, names := Names} = Params,
    Held = max(Names, ?LOOKUP_NAMES),
    Members = members(Namespaces),
    maybe
        ok ?= Impl:prepare(Fleet, Namespaces, Params),
        ok ?= preload(Impl, Fleet, Namespaces, Held),
        {{ok, Tallies}, Seen} ?= watched(Fleet, Members, Params, fun() ->
            sderl_bench_profile:around(Params, Fleet, [Node || {_, Node, _} <- Members], fun() ->
                load(Impl, Fleet, Members, Clients, Seconds, Label)
            end)
        end),
        {Converged, SettleMs} = settle(Impl, Fleet, Namespaces, Held),
        {ok, LookupNs} ?= lookup(Impl, Fleet, Namespaces, Held),
        {ok, metrics(#{
            watched => Seen,
            nodes => [Node || {_, Node, _} <- Members],
            tallies => Tallies,
            seconds => Seconds,
            converged => Converged,
            settle_ms => SettleMs,
            lookup_ns => LookupNs
        })}
    end.

%% With `monitoring`, the shadow network watches; it is there before the load begins.
watched(Fleet, Members, Params, Fun) ->
    try
        sderl_bench_watch:around(Fleet, [Node || {_, Node, _} <- Members],
                                 maps:get(monitoring, Params, off), Fun)
    of
        {{ok, _}, _} = Done -> Done;
        {{error, _} = Error, _} -> Error
    catch
        exit:{sderl_bench_watch, Reason} -> {error, {monitoring, Reason}}
    end.

%% [{Index, Node, Group}]
members(Namespaces) ->
    [
        {Index, Node, Group}
     || {Index, {Group, Node}} <-
            lists:enumerate([{Group, Node} || {Group, Nodes} <- Namespaces, Node <- Nodes])
    ].

%% The names of a group are spread over its nodes.
preload(Impl, Fleet, Namespaces, Held) ->
    Parts = [
        {Node, [Impl, Group, Place, 1, share(Held, length(Nodes), Place)]}
     || {Group, Nodes} <- Namespaces, {Place, Node} <- lists:enumerate(Nodes)
    ],
    Answers = call_each(Fleet, preload, Parts, ?PRELOAD_MS),
    case [{Node, Answer} || {Node, Answer} <- Answers, Answer =/= {ok, {0, []}}] of
        [] -> ok;
        [{Node, Answer} | _] -> {error, {not_preloaded, Node, Answer}}
    end.

-doc "How many of `Total` names the node in a place holds, where all nodes share them evenly.".
-spec share(Total :: non_neg_integer(), Nodes :: pos_integer(), Place :: pos_integer()) ->
    non_neg_integer().
share(Total, Nodes, Place) when Place =< Total rem Nodes -> Total div Nodes + 1;
share(Total, Nodes, _Place) -> Total div Nodes.

load(Impl, Fleet, Members, Clients, Seconds, Label) ->
    BeginUs = os:system_time(microsecond) + 1000 * (?LEAD_MS + ?LEAD_MS_PER_NODE * length(Members)),
    Load = #{
        impl => Impl,
        clients => Clients,
        begin_us => BeginUs,
        warmup_ms => ?WARMUP_MS,
        measure_ms => 1000 * Seconds
    },
    Parts = [{Node, [Load#{group => Group, index => Index}]} || {Index, Node, Group} <- Members],
    Ms = ?LEAD_MS + ?LEAD_MS_PER_NODE * length(Members) + ?WARMUP_MS + 1000 * Seconds,
    Answers = sderl_progress:during([Label, ": measuring"], Ms, fun() ->
        call_each(Fleet, load, Parts, Ms + 60_000)
    end),
    case [{Node, Answer} || {Node, Answer} <- Answers, not is_tally(Answer)] of
        [] -> {ok, [Tally || {_, {ok, {ok, Tally}}} <- Answers]};
        [{Node, {ok, {error, Reason}}} | _] -> {error, {not_loaded, Node, Reason}};
        [{Node, Answer} | _] -> {error, {not_loaded, Node, Answer}}
    end.

is_tally({ok, {ok, #{pairs := _}}}) -> true;
is_tally(_) -> false.

%% Each node with arguments of its own.
call_each(Fleet, Function, Parts, Timeout) ->
    sderl_fleet_task:at_once(Parts, fun(Node, Args) ->
        [{_, Answer}] =
            sderl_fleet:multicall(Fleet, [Node], sderl_bench_registry_worker, Function, Args,
                                  Timeout),
        Answer
    end).

%% Every member has the held names and nothing else: what clients registered they removed.
settle(Impl, Fleet, Namespaces, Held) ->
    Agree = fun() ->
        lists:all(fun({Group, Nodes}) -> agree(Impl, Fleet, Group, Nodes, Held) end, Namespaces)
    end,
    case Impl:consistency() of
        strong ->
            {Agree(), undefined};
        eventual ->
            Ended = erlang:monotonic_time(millisecond),
            case sderl_fleet:await(Agree, ?SETTLE_MS) of
                ok -> {true, erlang:monotonic_time(millisecond) - Ended};
                {error, {timeout, _}} -> {false, undefined}
            end
    end.

agree(Impl, Fleet, Group, Nodes, Held) ->
    Answers = sderl_fleet:multicall(
        Fleet, Nodes, sderl_bench_registry_worker, content, [Impl, Group], 60_000
    ),
    case lists:usort([Answer || {_, Answer} <- Answers]) of
        [{ok, {Held, _Hash}}] -> true;
        _ -> false
    end.

%% On one member, when all is quiet.
lookup(Impl, Fleet, [{Group, [Node | _] = Nodes} | _], Held) ->
    All = [
        {Place, 0, K}
     || Place <- lists:seq(1, length(Nodes)), K <- lists:seq(1, share(Held, length(Nodes), Place))
    ],
    Step = max(1, length(All) div ?LOOKUP_NAMES),
    Names = [Name || {I, Name} <- lists:enumerate(All), I rem Step =:= 0],
    Args = [Impl, Group, Names],
    case sderl_fleet:multicall(Fleet, [Node], sderl_bench_registry_worker, lookup_ns, Args,
                               120_000) of
        [{_, {ok, Ns}}] when is_number(Ns) -> {ok, Ns};
        %% A table that lost names has not converged, and says so there.
        [{_, {ok, {error, {not_found, _}}}}] -> {ok, undefined};
        [{_, {error, Reason}}] -> {error, {no_lookups, Node, Reason}}
    end.

-doc "The metrics of a run from what was measured; the nodes in the order of the tallies.".
-spec metrics(#{
    nodes := [node()],
    tallies := [sderl_bench_registry_worker:tally()],
    seconds := pos_integer(),
    converged := boolean(),
    settle_ms => non_neg_integer() | undefined,
    lookup_ns := number() | undefined,
    watched => sderl_bench_watch:seen()
}) -> metrics().
metrics(#{nodes := Nodes, tallies := Tallies, seconds := Seconds} = Seen) ->
    Sum = fun(Key) -> lists:sum([maps:get(Key, Tally) || Tally <- Tallies]) end,
    Reasons = lists:usort(lists:append([R || #{reasons := R} <- Tallies])),
    {Before, After} = lists:unzip([{{Node, B}, {Node, A}}
                                   || {Node, #{used := {B, A}}} <- lists:zip(Nodes, Tallies)]),
    Used = sderl_bench_meter:metrics(sderl_bench_meter:usage(Before, After), Sum(pairs)),
    Watched = #{watched => W || #{watched := #{} = W} <- [Seen]},
    (maps:merge(maps:without([cpu_us_per_op], Used), Watched))#{
        pairs_per_s => Sum(pairs) / Seconds,
        register_us => percentiles(register, Tallies),
        unregister_us => percentiles(unregister, Tallies),
        lookup_ns => maps:get(lookup_ns, Seen),
        cpu_us_per_pair => maps:get(cpu_us_per_op, Used),
        errors => Sum(errors),
        error_reasons => [text(R) || R <- lists:sublist(Reasons, 3)],
        converged => maps:get(converged, Seen),
        settle_ms => maps:get(settle_ms, Seen, undefined)
    }.

percentiles(Key, Tallies) ->
    Histogram = sderl_bench_histogram:merge([maps:get(Key, Tally) || Tally <- Tallies]),
    #{p50 => us(50, Histogram), p99 => us(99, Histogram)}.

text(Reason) -> unicode:characters_to_binary(io_lib:format("~0tp", [Reason], [{chars_limit, 200}])).
