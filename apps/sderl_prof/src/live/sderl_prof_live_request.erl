%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_live_request).
-moduledoc """
A request for a profile of a running cluster: checked against limits under which it does no harm to
the cluster, or to the disk of the monitoring node. Pure.
""".

-export([kinds/0, limits/0, check/1, is_recording/1, needs/1, is_dear/1, format_error/1]).
-export_type([request/0, kind/0, reason/0]).

-define(MIB, 1_048_576).
-define(SAMPLED_SECONDS, 600).
-define(RECORDED_SECONDS, 60).
-define(SAMPLED_NODES, 64).
-define(RECORDED_NODES, 16).
-define(LEAST_MIB, 16).
-define(MOST_MIB, 256).
-define(MOST_MODULES, 20).
%% Those of a node that is sampled: what is told apart of it is bounded, too.
-define(SAMPLES_BYTES, (8 * ?MIB)).
%% As "bin/sderl prof record" has it: above that a recording has to be insisted on.
-define(MOST_EVENTS_S, 500_000).

-doc "`sampling` may run in production; the others record events, named by what one wants to know.".
-type kind() :: sampling | concurrency | messages | calls.

-doc """
`on` is how the nodes were chosen, as it is shown. `mib`: most bytes of the recording of a node.
`modules`: those whose calls are recorded, of `calls`.
""".
-type request() :: #{
    kind := kind(),
    on := map(),
    nodes := [{Name :: binary(), node()}, ...],
    who := binary(),
    seconds := pos_integer(),
    mib := pos_integer(),
    modules := [binary()]
}.
-type reason() ::
    {too_many_nodes, kind(), pos_integer()}
    | {too_long, kind(), pos_integer()}
    | {mib, integer()}
    | no_modules
    | {no_calls, kind()}
    | {too_many_modules, pos_integer()}.

-doc "The kinds.".
-spec kinds() -> [kind(), ...].
kinds() -> [sampling, concurrency, messages, calls].

-doc "The limits, as pages show them.".
-spec limits() -> map().
limits() ->
    #{
        sampling => #{seconds => ?SAMPLED_SECONDS, nodes => ?SAMPLED_NODES},
        recording => #{seconds => ?RECORDED_SECONDS, nodes => ?RECORDED_NODES,
                       least_mib => ?LEAST_MIB, most_mib => ?MOST_MIB,
                       modules => ?MOST_MODULES, events_s => ?MOST_EVENTS_S}
    }.

-doc "Whether the request is within the limits.".
-spec check(request()) -> ok | {error, reason()}.
check(#{kind := Kind, nodes := Nodes, seconds := Seconds, mib := Mib, modules := Modules}) ->
    #{seconds := MostSeconds, nodes := MostNodes} = limits_of(Kind),
    if
        length(Nodes) > MostNodes -> {error, {too_many_nodes, Kind, length(Nodes)}};
        Seconds > MostSeconds; Seconds < 1 -> {error, {too_long, Kind, Seconds}};
        Mib < ?LEAST_MIB; Mib > ?MOST_MIB -> {error, {mib, Mib}};
        Kind =:= calls, Modules =:= [] -> {error, no_modules};
        Kind =/= calls, Modules =/= [] -> {error, {no_calls, Kind}};
        length(Modules) > ?MOST_MODULES -> {error, {too_many_modules, length(Modules)}};
        true -> ok
    end.

limits_of(Kind) ->
    map_get(case is_recording(Kind) of true -> recording; false -> sampling end, limits()).

-doc "Whether events are recorded.".
-spec is_recording(kind()) -> boolean().
is_recording(Kind) -> Kind =/= sampling.

-doc "The bytes that it may take here, at most.".
-spec needs(request()) -> pos_integer().
needs(#{kind := sampling, nodes := Nodes}) -> length(Nodes) * ?SAMPLES_BYTES;
%% What pages need of a recording is beside it.
needs(#{nodes := Nodes, mib := Mib}) when is_integer(Mib) -> 2 * length(Nodes) * Mib * ?MIB.

-doc "Whether a trial has shown so many events that a recording has to be insisted on.".
-spec is_dear([#{events_s := number(), atom() => term()}]) -> boolean().
is_dear(Costs) -> lists:any(fun(#{events_s := Events}) -> Events > ?MOST_EVENTS_S end, Costs).

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({too_many_nodes, Kind, Count}) ->
    io_lib:format("these are ~b nodes, and ~ts takes ~b at most: choose fewer",
                  [Count, Kind, map_get(nodes, limits_of(Kind))]);
format_error({too_long, Kind, Seconds}) ->
    io_lib:format("seconds cannot be ~b: for ~ts it is a whole number from 1 to ~b",
                  [Seconds, Kind, map_get(seconds, limits_of(Kind))]);
format_error({mib, Mib}) ->
    io_lib:format("mib cannot be ~b: it is a whole number from ~b to ~b, of the recording of a "
                  "node", [Mib, ?LEAST_MIB, ?MOST_MIB]);
format_error(no_modules) ->
    "modules is missing: name the modules whose calls are recorded";
format_error({no_calls, Kind}) ->
    io_lib:format("modules belongs to calls: leave it out for ~ts", [Kind]);
format_error({too_many_modules, Count}) ->
    io_lib:format("these are ~b modules; name ~b at most", [Count, ?MOST_MODULES]).
