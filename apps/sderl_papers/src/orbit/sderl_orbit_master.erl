%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_master).
-moduledoc """
The master of Orbit: starts the workers, or the submasters that start them, gives the whole credit
with the first vertex to the owner of 0, and takes credits back until it has the whole again. Then
it asks the workers for their results.

Time runs from the first vertex, when all are ready, until the whole credit is back.

## When something dies

There is no recovery: elements and credit are lost with a worker. The master and its submasters are
linked to all that they start, so that the death of any ends the run with `{died, Role, Reason}`;
where a process dies of the loss of its node, `Reason` is `noconnection`. Where nothing dies, such
as on a node that hangs, the run ends as stalled: for `stall_ms` no worker has found anything or
given credit back. Either way all processes end.
""".

-export([run/1, found/0]).
-export_type([conf/0, result/0, failure/0, teams/0]).

-import(sderl_clock, [now_ms/0]).

-doc """
Who works where. `flat`: workers of the master. `groups`: a submaster for each group, on a node,
with so many gateways and these workers; `routing` says how the groups' workers reach each other,
and `names` is the term by which the library knows each group.
""".
-type teams() ::
    {flat, [{Index :: pos_integer(), node()}]}
    | {groups, #{
        routing := own | library,
        gateways := non_neg_integer(),
        groups := [{Group :: pos_integer(), Name :: term(), node(),
                    [{Index :: pos_integer(), node()}]}]
    }}.

-doc """
`slots` are those of all hash tables together; `idle_ms` is how long a worker without work keeps its
credit.
""".
-type conf() :: #{
    generators := sderl_orbit_generators:generators(),
    size := pos_integer(),
    table := sderl_orbit_table:kind(),
    slots := pos_integer(),
    batch := pos_integer(),
    idle_ms := non_neg_integer(),
    stall_ms := pos_integer(),
    teams := teams()
}.

-doc "The reports of the workers, and the duration.".
-type result() :: #{seconds := float(), reports := [sderl_orbit_worker:report()]}.

-doc "Why there is no result.".
-type failure() :: sderl_orbit_team:death() | {died, {master, node()}, Reason :: term()}
                   | {stalled, Ms :: pos_integer(), Found :: non_neg_integer()}.

%% How long the master may take to learn of a death that another process has noticed.
-define(CAUSE_MS, 3000).

-define(FOUND_MS, 300).

-record(m, {
    caller :: reference(),
    stall_ms :: pos_integer(),
    deadline :: integer(),
    team = sderl_orbit_team:new() :: sderl_orbit_team:team(),
    %% How to send to a worker.
    workers = #{} :: #{pos_integer() => {direct, pid()} | {by, Submaster :: pid()}},
    found = #{} :: #{pos_integer() => non_neg_integer()}
}).

-doc "Runs it, from a process on the node of the master, in a process of its own.".
-spec run(conf()) -> {ok, result()} | {error, failure()}.
run(Conf) ->
    Caller = self(),
    Task = sderl_fleet_task:start(fun() -> master(Caller, Conf) end),
    case sderl_fleet_task:result(Task, infinity) of
        {ok, Result} -> Result;
        {error, {failed, Reason}} -> {error, {died, {master, node()}, Reason}}
    end.

-doc """
How many elements are found so far by the run whose master is on this node; `undefined` when there
is none.
""".
-spec found() -> non_neg_integer() | undefined.
found() ->
    %% A master that does not answer in time counts as none.
    sderl_fleet_task:ask(?MODULE, found, ?FOUND_MS).

master(Caller, #{stall_ms := StallMs} = Conf) ->
    proc_lib:set_label({orbit, master}),
    _ = process_flag(trap_exit, true),
    %% Another run on this node has the name: then nobody sees the progress of this one.
    _ = sderl_fleet_task:attempt(fun() -> register(?MODULE, self()) end),
    M0 = #m{caller = monitor(process, Caller), stall_ms = StallMs, deadline = now_ms() + StallMs},
    {Team, Start} = start(Conf),
    try
        M1 = #m{} = Start(M0#m{team = Team}),
        M2 = all_ready(M1),
        T0 = erlang:monotonic_time(microsecond),
        M3 = collect(first(Conf, M2), sderl_orbit_credit:zero()),
        T1 = erlang:monotonic_time(microsecond),
        lists:foreach(fun(Index) -> to(Index, {dump}, M3) end, maps:keys(M3#m.workers)),
        {ok,
         #{seconds => (T1 - T0) / 1_000_000, reports => results(map_size(M3#m.workers), [], M3)}}
    catch
        throw:{failed, Reason} -> {error, Reason}
    after
        sderl_orbit_team:stop(Team)
    end.

%% Starts the processes; the rest is done where a failure stops them.
start(#{teams := {flat, Places}} = Conf) ->
    Started = [{Index, Node, sderl_orbit_worker:start(Node, self(), Index)}
               || {Index, Node} <- Places],
    Team = lists:foldl(
        fun({Index, Node, Pid}, T) -> sderl_orbit_team:add(Pid, {worker, Index, Node}, T) end,
        sderl_orbit_team:new(), Started
    ),
    Setup = fun(M0) ->
        Routes = list_to_tuple([Pid || {_, _, Pid} <- lists:sort(Started)]),
        M = M0#m{workers = #{Index => {direct, Pid} || {Index, _, Pid} <- Started}},
        Common = common(Conf, length(Places)),
        lists:foreach(fun({Index, _}) ->
            to(Index, {init, Common#{index => Index, routes => Routes}}, M)
        end, Places),
        M
    end,
    {Team, Setup};
start(#{teams := {groups, #{groups := Groups, gateways := Gateways, routing := Routing}}} = Conf) ->
    Started = [
        {Group, Node,
         sderl_orbit_submaster:start(Node, self(), #{
             group => Group, places => Places,
             gateways => case Routing of own -> Gateways; library -> 0 end
         })}
     || {Group, _Name, Node, Places} <- Groups
    ],
    Team = lists:foldl(
        fun({Group, Node, Pid}, T) -> sderl_orbit_team:add(Pid, {submaster, Group, Node}, T) end,
        sderl_orbit_team:new(), Started
    ),
    Submasters = [Pid || {_, _, Pid} <- lists:sort(Started)],
    {Team, fun(M) -> tell(Conf, Submasters, teams(length(Groups), #{}, M)) end}.

%% The submasters' reports on the processes that they started.
teams(Count, Teams, M) when map_size(Teams) =:= Count ->
    {Teams, M};
teams(Count, Teams, M0) ->
    case next(M0) of
        {{team, Group, Workers, Gateways}, M} ->
            teams(Count, Teams#{Group => {Workers, Gateways}}, M)
    end.

%% Each worker knows those of its own group, and how to reach the others.
tell(#{teams := {groups, #{routing := Routing, groups := Groups}}} = Conf, Submasters,
     {Teams, M0}) ->
    Names = #{Group => Name || {Group, Name, _, _} <- Groups},
    GroupOf = #{Index => Group || Group := {Workers, _} <- Teams, Index := _ <- Workers},
    Indices = lists:seq(1, map_size(GroupOf)),
    ByGroup = fun(Get) ->
        list_to_tuple([Get(map_get(Group, Teams)) || {Group, _, _, _} <- lists:sort(Groups)])
    end,
    Gateways = ByGroup(fun({_, Pids}) -> list_to_tuple(Pids) end),
    GroupTuple = list_to_tuple([map_get(Index, GroupOf) || Index <- Indices]),
    lists:foreach(fun(S) -> S ! {gateways, #{groups => GroupTuple, gateways => Gateways}} end,
                  Submasters),
    Common = common(Conf, length(Indices)),
    M = M0#m{workers = #{Index => {by, lists:nth(Group, Submasters)} || Index := Group <- GroupOf}},
    lists:foreach(
        fun(Index) ->
            Group = map_get(Index, GroupOf),
            {Own, OwnGateways} = map_get(Group, Teams),
            Far = fun(Other) ->
                case Routing of
                    own -> {gateway, lists:nth(1 + Index rem length(OwnGateways), OwnGateways)};
                    library -> {name, map_get(map_get(Other, GroupOf), Names)}
                end
            end,
            Routes = list_to_tuple([maps:get(Other, Own, undefined) || Other <- Indices]),
            All = list_to_tuple([
                case element(Other, Routes) of
                    undefined -> Far(Other);
                    Pid -> Pid
                end
             || Other <- Indices
            ]),
            Mine = Common#{index => Index, routes => All},
            to(Index, {init, case Routing of
                own -> Mine;
                library -> Mine#{register => map_get(Group, Names)}
            end}, M)
        end,
        Indices
    ),
    M.

common(#{generators := Generators, size := N, table := Kind, slots := Slots, batch := Batch,
         idle_ms := IdleMs}, Workers) ->
    #{
        generators => Generators,
        size => N,
        spread => sderl_orbit_table:new(Kind, N, Workers, Slots),
        batch => Batch,
        idle_ms => IdleMs
    }.

all_ready(#m{workers = Workers} = M) -> ready(map_size(Workers), M).

ready(0, M) ->
    M;
ready(Count, M0) ->
    case next(M0) of
        {{ready, _}, M} -> ready(Count - 1, M)
    end.

first(#{size := N, table := Kind, slots := Slots}, #m{workers = Workers} = M) ->
    {K, []} = sderl_orbit_credit:debit(sderl_orbit_credit:one()),
    to(sderl_orbit_table:owner(0, sderl_orbit_table:new(Kind, N, map_size(Workers), Slots)),
       {vertex, 0, K}, M),
    M.

collect(#m{found = Found0} = M0, Credit0) ->
    case next(M0) of
        {{progress, Index, Found}, M} ->
            collect(M#m{found = Found0#{Index => Found}}, Credit0);
        {{done, Index, Back, Found}, M} ->
            Credit = sderl_orbit_credit:add(Back, Credit0),
            M1 = M#m{found = Found0#{Index => Found}},
            case sderl_orbit_credit:is_one(Credit) of
                true -> M1;
                false -> collect(M1, Credit)
            end
    end.

results(0, Reports, _) ->
    [Report || {_, Report} <- lists:sort(Reports)];
results(Count, Reports, M0) ->
    case next(M0) of
        {{result, Index, Report}, M} -> results(Count - 1, [{Index, Report} | Reports], M);
        %% It was under way when the last credit came.
        {{progress, _, _}, M} -> results(Count, Reports, M)
    end.

%% The next message of a worker or submaster; a failure ends the run.
next(
    #m{caller = Caller, stall_ms = StallMs, deadline = Deadline, found = Found, team = Team} = M
) ->
    receive
        {'EXIT', Pid, Reason} ->
            case sderl_orbit_team:died(Pid, Reason, Team) of
                {died, _, _} = Death -> throw({failed, cause(Death, Team)});
                _ -> next(M)
            end;
        {died, _, _} = Death ->
            throw({failed, cause(Death, Team)});
        {'DOWN', Caller, process, _, Reason} ->
            throw({failed, {caller, Reason}});
        {found, Alias} ->
            Alias ! {Alias, total(Found)},
            next(M);
        Message ->
            {Message, M#m{deadline = now_ms() + StallMs}}
    after max(0, Deadline - now_ms()) -> throw({failed, {stalled, StallMs, total(Found)}})
    end.

%% A process that could not send to another may have been the first to notice the death of that
%% process, or of a node between them.
cause({died, _, {undelivered, _, _}} = Death, Team) ->
    receive
        {'EXIT', Pid, Reason} ->
            case sderl_orbit_team:died(Pid, Reason, Team) of
                {died, _, _} = Other -> cause(Other, Team);
                _ -> cause(Death, Team)
            end;
        {died, _, Reason} = Other when not is_tuple(Reason); element(1, Reason) =/= undelivered ->
            Other
    after ?CAUSE_MS -> Death
    end;
cause(Death, _) ->
    Death.

total(Found) -> lists:sum(maps:values(Found)).

to(Index, Message, #m{workers = Workers}) ->
    _ = case map_get(Index, Workers) of
        {direct, Pid} -> Pid ! Message;
        {by, Submaster} -> Submaster ! {to, Index, Message}
    end,
    ok.
