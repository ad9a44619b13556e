%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_cluster).
-moduledoc """
The nodes of an Orbit, and one run on them.

`seq`, `plain` and `par` have one node, with all cores; `stock` and `sd` have one for the master,
and `nodes` others with one scheduler each. The controlling program is none of these nodes, and
works over the fleet's control channel, so it adds no link.
""".

-export([plan/2, on/3, mode_of_links/1]).
-export_type([params/0, outcome/0]).

-import(sderl_clock, [now_ms/0]).

-doc "As of `sderl_orbit:run/2`, complete.".
-type params() :: #{
    mode := plain | seq | par | stock | sd,
    routing := own | library,
    generators := sderl_orbit_generators:generators(),
    size := pos_integer(),
    nodes := pos_integer(),
    workers := pos_integer(),
    groups := pos_integer(),
    gateways := pos_integer(),
    batch := pos_integer(),
    table := sderl_orbit_table:kind(),
    stall_s := pos_integer(),
    atom() => term()
}.

-doc "The reports of the workers, the nodes' usage, and their links by kind.".
-type outcome() :: #{
    result := sderl_orbit_master:result(),
    usage := sderl_bench_meter:usage(),
    links := sderl_orbit_layout:links(),
    links_expected := sderl_orbit_layout:links()
}.

%% Messages that may wait at a gateway of the library, for each link: Orbit cannot lose any.
-define(ROUTE_QUEUE, 1_000_000).
%% A node that stands still answers nothing.
-define(LOOK_MS, 1000).

-doc "The plan of a fleet for it: the master's node is the first.".
-spec plan(params(), Label :: unicode:chardata()) -> sderl_fleet:plan().
plan(#{mode := Mode} = Params, Label) ->
    #{families => families(Mode, Params),
      progress => sderl_progress:reporter([Label, ": starting nodes"])}.

families(stock, #{nodes := Nodes}) ->
    [#{name => master, count => 1, connect_all => true},
     #{name => n, count => Nodes, connect_all => true}];
families(sd, #{nodes := Nodes}) ->
    Family = #{apps => [sderl], env => [{sderl, route_queue, ?ROUTE_QUEUE}]},
    [Family#{name => master, count => 1}, Family#{name => n, count => Nodes}];
families(_, _) ->
    #{cores := Cores} = sderl_bench_machine:info(),
    Schedulers = lists:flatten(io_lib:format("~w:~w", [Cores, Cores])),
    [#{name => master, count => 1, args => ["+S", Schedulers]}].

-doc """
A run on the nodes of a fleet that has been started with such a plan. The processes and groups of
the run are gone when it returns. A reason is a term for `sderl_papers_reason:text/1`.

A master's node that does not answer for `stall_s` is killed, as nothing else would end the wait for
it.
""".
-spec on(Fleet :: pid(), params(), Label :: unicode:chardata()) ->
    {ok, outcome()} | {error, term()}.
on(Fleet, #{mode := Mode, nodes := Count, groups := GroupCount, workers := Workers} = Params,
   Label) ->
    [Master | Nodes] = All = sderl_fleet:nodes(Fleet),
    Groups =
        case Mode of
            sd -> sderl_orbit_layout:groups(Nodes, GroupCount, Workers);
            _ -> []
        end,
    try
        maybe
            ok ?= prepare(Mode, Fleet, All, Groups, Params),
            %% An error is thrown at once: a node that hangs would not answer for its usage for a
            %% minute.
            {Result, Usage} = sderl_bench_meter:around(Fleet, All, fun() ->
                Run = fun() -> run(Fleet, Master, Nodes, Groups, Params, Label) end,
                case sderl_bench_profile:around(Params, Fleet, All, Run) of
                    {ok, Done} -> Done;
                    {error, Why} -> throw({?MODULE, Why})
                end
            end),
            #{per_node := PerNode} = Usage,
            {ok, #{
                result => Result,
                usage => Usage,
                links => sderl_orbit_layout:measured_links(
                    Master, Groups, [{N, L} || #{node := N, links := L} <- PerNode]
                ),
                links_expected =>
                    sderl_orbit_layout:expected_links(mode_of_links(Mode), Count, Groups)
            }}
        end
    catch
        %% A reason of the harness, not of Orbit.
        throw:{?MODULE, {prof, _} = Reason} -> {error, Reason};
        throw:{?MODULE, Reason} -> {error, {orbit, Reason}}
    after
        clean(Mode, Fleet, sderl_orbit_layout:namespaces(Master, Groups))
    end.

-doc "The formulas of `m:sderl_orbit_layout` that hold in a mode.".
-spec mode_of_links(atom()) -> stock | sd | one.
mode_of_links(stock) -> stock;
mode_of_links(sd) -> sd;
mode_of_links(_) -> one.

prepare(stock, Fleet, All, _, _) ->
    sderl_bench_links:mesh(Fleet, All);
prepare(sd, Fleet, [Master | _], Groups, #{routing := Routing} = Params) ->
    Namespaces = sderl_orbit_layout:namespaces(Master, Groups),
    {Last, Workers} = {lists:last(Namespaces), lists:droplast(Namespaces)},
    maybe
        ok ?= sderl_bench_layout:make(Fleet, Workers),
        ok ?= sderl_bench_layout:make(Fleet, [Last]),
        ok ?= sderl_bench_impl_s_group:prepare(Fleet, Namespaces, Params),
        case Routing of
            own -> ok;
            library -> sderl_bench_route_cluster:await_routes(Fleet, Namespaces)
        end
    end;
prepare(_, _, _, _, _) ->
    ok.

run(Fleet, Master, Nodes, Groups, #{mode := Mode, stall_s := StallS} = Params, Label) ->
    {Module, Function} =
        case Mode of
            plain -> {sderl_orbit_sequential, plain};
            seq -> {sderl_orbit_sequential, seq};
            _ -> {sderl_orbit_master, run}
        end,
    Conf = conf(Master, Nodes, Groups, Params),
    Start = now_ms(),
    Look = fun(Answered) -> look(Fleet, Master, Start, Answered, StallS) end,
    Answer = sderl_progress:watching(Label, Look, Start, fun() ->
        sderl_fleet:multicall(Fleet, [Master], Module, Function, [Conf], infinity)
    end),
    case Answer of
        [{_, {ok, Result}}] -> Result;
        [{_, {error, Reason}}] -> {error, {died, {master, Master}, Reason}}
    end.

%% The text shows the elements found so far, and how many a second. The state is the time at which
%% the master's node last answered.
look(Fleet, Master, Start, Answered, StallS) ->
    case sderl_fleet:multicall(Fleet, [Master], sderl_orbit_master, found, [], ?LOOK_MS) of
        [{_, {ok, Found}}] when is_integer(Found) ->
            Rate = 1000 * Found / max(1, now_ms() - Start),
            {[sderl_table:number(Found), " elements, ", sderl_table:number(Rate), " a second"],
             now_ms()};
        [{_, {error, timeout}}] ->
            _ = now_ms() - Answered > 1000 * StallS andalso sderl_fleet:kill(Fleet, Master),
            {"the master's node does not answer", Answered};
        _ ->
            {io_lib:format("~w s", [(now_ms() - Start) div 1000]), now_ms()}
    end.

conf(Master, Nodes, Groups,
     #{mode := Mode, size := N, workers := Workers, stall_s := StallS} = Params) ->
    (maps:with([generators, size, table, batch], Params))#{
        %% As published.
        slots => case Mode of sd -> N; _ -> 2 * N end,
        idle_ms => case Mode of par -> 0; _ -> 1 end,
        stall_ms => 1000 * StallS,
        teams =>
            case Mode of
                sd ->
                    {groups, #{
                        routing => maps:get(routing, Params),
                        gateways => maps:get(gateways, Params),
                        groups => [{Number, Name, First, Places}
                                   || {Number, Name, [First | _], Places} <- Groups]
                    }};
                stock ->
                    {flat, sderl_orbit_layout:places(Nodes, Workers)};
                _ ->
                    {flat, sderl_orbit_layout:places([Master], Workers)}
            end
    }.

%% Links are as in the formulas in the first run on a fleet only: without their groups nodes mesh.
clean(sd, Fleet, Namespaces) -> sderl_bench_layout:delete(Fleet, Namespaces);
clean(_, _, _) -> ok.
