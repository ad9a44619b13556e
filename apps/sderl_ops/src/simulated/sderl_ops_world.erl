%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world).
-moduledoc """
A simulated world in which the reconciler keeps a cluster: hosts that fail, hang and return, steps
that take time, fail, or succeed while their answer is lost, instances that die, a service that is
killed at any point and goes on with what it stored, and operators. The same seed gives the same
run.

`run/1` takes a map:

- `seed`, `desired` (the first revision), and `script`, events at times: `[{Ms, Event}]`;
- `faults_ms`: how long there are random faults (0: none);
- `bad`: releases that start and are never well, or that exit (`#{Sha => sick | exits}`);
- `limit_ms`: how long it may last after the last event of the script and the last fault;
- `kill_at`: `{Number, before | after}`, the service is killed before or after the effect of this
  step;
- `fails`: `fun(Step) -> boolean()`, steps that always fail; `stores`: whether the memory outlives
  the service;
- `apart`: `fun(Giver, Receiver) -> boolean()`, hosts that do not reach each other;
- `steps`, `ended`, `refusals`: replacements for those of `sderl_ops_reconcile` and
  `sderl_ops_plan`, to plant faults;
- `adopted`: instances whose nodes run on hosts already (`#{Id => Host}`), and are to be taken over;
- `alarms`: `fun(World)`, the alarms that are raised (`m:sderl_ops_gate`), or `unknown`;
- `durations`: `fun(Step, Dice) -> {Ms, Dice}`;
- `decide_ms`: the least time between two decisions; `check`: whether each step is checked.

It ends when nothing is left to be done, or after the limit.
""".

-include("sderl_ops_world.hrl").

-export([run/1, is_done/1]).

-import(sderl_ops_world_events, [at/3, later/3, roll/2, pick/2]).
-import(sderl_ops_world_effects, [subject/1, effect/3, take_effect/3, change_node/4, exits/3,
                                  put_host/3]).
-import(sderl_ops_world_sight, [sight/3, see/4]).

-define(LOOK_EVERY_MS, 2_000).
%% Long enough for looks at everything.
-define(QUIET_MS, 20_000).

-spec run(map()) -> #world{}.
run(Given) ->
    Options = maps:merge(defaults(), Given),
    #{seed := Seed, script := Script, faults_ms := FaultsMs, adopted := Adopted} = Options,
    Desired = adopting(map_get(desired, Options), Options),
    Well = #{state => up, health => ok},
    Hosts = #{Host => #host{nodes = #{Id => Well || Id := Of <- Adopted, Of =:= Host}}
              || Host := _ <- maps:get(hosts, Desired)},
    Memory = sderl_ops_memory:new(),
    World0 = #world{
        options = Options,
        dice = rand:seed_s(exsss, Seed),
        queue = gb_trees:empty(),
        hosts = Hosts,
        groups = #{Name => In || #{name := Name, members := Ids} <- map_get(groups, Desired),
                                 [_ | _] = In <- [[Id || Id <- lists:sort(Ids),
                                                         is_map_key(Id, Adopted)]]},
        revisions = #{1 => Desired},
        stored = Memory,
        service = #service{desired = Desired, observed = sderl_ops_observed:new(),
                           memory = Memory}
    },
    World1 = lists:foldl(fun({Ms, Event}, W) -> at(Ms, Event, W) end, World0, Script),
    World2 = case FaultsMs of
        0 -> World1#world{faults = false};
        _ -> at(FaultsMs, end_of_faults, at(500, fault, World1))
    end,
    Last = lists:max([FaultsMs | [Ms || {Ms, _} <- Script]]),
    loop(Last, Last + map_get(limit_ms, Options), start_service(World2)).

defaults() ->
    #{
        script => [],
        faults_ms => 0,
        bad => #{},
        adopted => #{},
        fails => fun(_) -> false end,
        apart => fun(_, _) -> false end,
        stores => true,
        alarms => fun(_) -> #{} end,
        limit_ms => 3_600_000,
        kill_at => never,
        steps => fun sderl_ops_reconcile:steps/5,
        ended => fun sderl_ops_reconcile:ended/4,
        refusals => fun sderl_ops_plan:refusals_of_drain/4,
        durations => fun duration/2,
        decide_ms => 50,
        tick_ms => 500,
        check => true
    }.

%% Adopted instances count as these.
adopting(Desired, #{adopted := Adopted}) when map_size(Adopted) =:= 0 -> Desired;
adopting(#{instances := Instances} = Desired, #{adopted := Adopted}) ->
    Desired#{instances := maps:map(fun(Id, Instance) ->
        #{release := Release, settings := Settings} = Instance,
        As = Instance#{as => <<Release/binary, Settings/binary>>},
        case Adopted of
            #{Id := Host} -> As#{adopt => #{node => <<Id/binary, "@there">>, host => Host}};
            #{} -> As
        end
    end, Instances)}.

loop(Last, End, #world{now = Now, queue = Queue, problems = Problems} = World) ->
    case Problems =/= [] orelse (Now > Last + ?QUIET_MS andalso is_done(World)) of
        true -> World;
        false ->
            {{At, _}, Event, Rest} = gb_trees:take_smallest(Queue),
            case At > End of
                true -> World#world{problems = [{not_done_by, End}]};
                false ->
                    Next = handle(Event, World#world{now = At, queue = Rest}),
                    loop(Last, End, sderl_ops_world_check:watch(Event, Next))
            end
    end.

-doc "Whether the service, which lives, has nothing to do.".
-spec is_done(#world{}) -> boolean().
is_done(#world{service = #service{alive = true, result = #{done := true}, planned = false}}) ->
    true;
is_done(_) ->
    false.

%% ---------------------------------------------------------------- the service

start_service(#world{service = Service, stored = Memory, now = Now} = World0) ->
    #world{revisions = Revisions, revision = Revision} = World0,
    #service{incarnation = Incarnation} = Service,
    World = World0#world{service = Service#service{
        alive = true,
        desired = with_former(map_get(Revision, Revisions), Memory, Revisions),
        observed = sderl_ops_observed:new(),
        memory = Memory,
        runs = #{},
        looked = #{},
        watched = #{},
        planned = false,
        last = never,
        result = none
    }},
    #world{service = #service{desired = Desired}} = World,
    Static = maps:without(maps:keys(World#world.made), World#world.hosts),
    Others = [{provider, ~"cloud"} | [alarms || sderl_ops_gate:source(Desired) =/= none]],
    Looking = lists:foldl(fun look/2, World, lists:sort(maps:keys(Static)) ++ Others),
    at(Now, {tick, Incarnation}, Looking).

with_former(Desired, Memory, Revisions) ->
    Of = fun(Revision) -> maps:find(Revision, Revisions) end,
    sderl_ops_former:with_former(Desired, Memory, Of).

kill_service(#world{service = #service{incarnation = Incarnation, runs = Runs} = Service,
                    now = Now} = World0) ->
    {Back, World} = roll(5_000, World0#world{service = Service#service{
        alive = false, incarnation = Incarnation + 1, runs = #{}, result = none}}),
    %% Steps that it had begun may go on.
    Orphans = #{subject(Step) => Now || _ := #run{step = Step} <- Runs},
    later(Back, service_up, World#world{orphans = maps:merge(World#world.orphans, Orphans)}).

handle({tick, Incarnation}, #world{options = #{tick_ms := Ms}} = World) ->
    if_alive(Incarnation, World, fun() -> later(Ms, {tick, Incarnation}, plan(World)) end);
handle({decide, Incarnation}, World) ->
    if_alive(Incarnation, World, fun() -> decide(World) end);
handle(service_up, #world{service = #service{alive = true}} = World) ->
    World;
handle(service_up, World) ->
    start_service(World);
handle(kill, #world{service = #service{alive = false}} = World) ->
    World;
handle(kill, World) ->
    kill_service(World);
handle({effect, Run, Effect}, World) ->
    take_effect(Run, Effect, World);
handle({answer, #run{incarnation = Incarnation} = Run, Result}, World) ->
    if_alive(Incarnation, World, fun() -> answer_or_hang(Run, Result, World) end);
handle({looked, Incarnation, What, Began, Seen, Again}, World) ->
    if_alive(Incarnation, World, fun() -> again(What, Again, looked(What, Began, Seen, World)) end);
handle({look, Incarnation, What}, World) ->
    if_alive(Incarnation, World, fun() -> look(What, World) end);
handle({healthy, Host, Id, Health}, World) ->
    change_node(Host, Id, Health, World);
handle({exits, Host, Id}, World) ->
    exits(Host, Id, World);
handle(fault, #world{faults = false} = World) ->
    World;
handle(fault, World0) ->
    {Pause, World} = roll(4_000, World0),
    later(Pause, fault, fault(World));
handle(end_of_faults, World) ->
    hosts_up(World#world{faults = false});
handle({host, Host, State}, World) ->
    put_host(Host, State, World);
handle({operator, What}, World) ->
    operator(What, World).

if_alive(Incarnation, #world{service = #service{alive = true, incarnation = Incarnation}}, Then) ->
    Then();
if_alive(_, World, _) ->
    World.

plan(#world{service = #service{planned = true}} = World) -> World;
plan(#world{service = Service, now = Now, options = #{decide_ms := Least}} = World) ->
    #service{incarnation = Incarnation, last = Last} = Service,
    At = case Last of
        never -> Now;
        _ -> max(Now, Last + Least)
    end,
    at(At, {decide, Incarnation}, World#world{service = Service#service{planned = true}}).

decide(#world{service = Service, now = Now, options = #{steps := Steps}} = World) ->
    #service{desired = Desired, observed = Observed, memory = Memory, runs = Runs} = Service,
    Running = [Step || _ := #run{step = Step} <- Runs],
    {_, Before} = process_info(self(), reductions),
    #{start := Start, memory := After, notes := Notes} = Result =
        Steps(Desired, Observed, Memory, Running, Now),
    {_, Then} = process_info(self(), reductions),
    Told = tell(Notes, World#world{
        stored = case World#world.options of
                     #{stores := true} -> After;
                     #{stores := false} -> World#world.stored
                 end,
        decisions = World#world.decisions + 1,
        reductions = World#world.reductions + Then - Before,
        service = Service#service{memory = After, planned = false, last = Now, result = Result}
    }),
    lists:foldl(fun begin_step/2, watch_made(Told), Start).

%% Hosts that have been made since are looked at.
watch_made(#world{service = #service{memory = #{machines := Machines}, watched = Watched,
                                     observed = Observed} = Service} = World) ->
    Known = #{Id => [] || Id := #{told := _} <- Machines},
    Gone = maps:keys(maps:without(maps:keys(Known), Watched)),
    After = World#world{service = Service#service{
        watched = Known,
        observed = lists:foldl(fun sderl_ops_observed:forget_host/2, Observed, Gone)
    }},
    lists:foldl(fun look/2, After, lists:sort(maps:keys(maps:without(maps:keys(Watched), Known)))).

is_watched(<<"cloud/", _/binary>> = Name, #world{service = #service{watched = Watched}}) ->
    is_map_key(Name, Watched);
is_watched(_, _) ->
    true.

tell(Notes, #world{notes = Before, now = Now} = World) ->
    World#world{notes = lists:reverse([{Now, Note} || Note <- Notes], Before)}.

begin_step(_, #world{service = #service{alive = false}} = World) ->
    World;
begin_step(Step, World0) ->
    World1 = sderl_ops_world_check:begin_step(Step, World0),
    #world{service = Service, number = Number, options = Options, dice = Dice, steps = Count} =
        World1,
    #service{incarnation = Incarnation, runs = Runs, memory = Memory} = Service,
    From = sderl_ops_relay:source(Step, Memory),
    Run = #run{number = Number, step = Step, host = host_of(Step, Memory), from = From,
               incarnation = Incarnation},
    {Ms, Rolled} = (map_get(durations, Options))(Step, Dice),
    Effect = effect(Step, Run#run.host, World1),
    World2 = run_step(Run, Effect, Ms, World1#world{
        dice = Rolled,
        number = Number + 1,
        steps = Count + 1,
        log = [{World1#world.now, Step} | World1#world.log],
        gifts = [{World1#world.now, From, Step} || {fetch, _, _} <- [Step]] ++ World1#world.gifts,
        service = Service#service{runs = Runs#{Number => Run}}
    }),
    case map_get(kill_at, Options) of
        {At, before} when At =:= Count + 1 ->
            kill_service(World2#world{queue = without_effect(Run, World2#world.queue)});
        {At, 'after'} when At =:= Count + 1 ->
            kill_service(take_effect(Run, Effect,
                World2#world{queue = without_effect(Run, World2#world.queue)}));
        _ -> World2
    end.

host_of({Kind, Host, _}, _) when Kind =:= fetch; Kind =:= remove; Kind =:= drop_release -> Host;
host_of(groups, _) -> undefined;
host_of({Kind, _}, _) when Kind =:= create; Kind =:= delete -> undefined;
host_of({_, Id}, Memory) -> sderl_ops_memory:host_of(Id, Memory).

without_effect(#run{number = Number}, Queue) ->
    gb_trees:from_orddict([Item || {_, Event} = Item <- gb_trees:to_list(Queue),
                                   not is_effect(Event, Number)]).

is_effect({effect, #run{number = Number}, _}, Number) -> true;
is_effect(_, _) -> false.

%% Its effect somewhere on the way, then its answer, if all goes well.
run_step(#run{host = Host} = Run, Effect, Ms, #world{hosts = Hosts} = World0) ->
    State = case Hosts of
        #{Host := #host{state = Is}} -> Is;
        #{} when Host =:= undefined -> up;
        #{} -> gone
    end,
    {Luck, World} = case World0#world.faults of
        true -> roll(20, World0);
        false -> {20, World0}
    end,
    Fails = (map_get(fails, World#world.options))(Run#run.step),
    case {State, Luck} of
        _ when Run#run.from =/= service -> run_relay(Run, Effect, Ms, State, Luck, World);
        {up, _} when Fails -> later(Ms, {answer, Run, {error, failed}}, World);
        {up, 1} -> later(Ms, {answer, Run, {error, failed}}, World);
        {up, 2} ->
            later(?LIMIT_MS, {answer, Run, {error, timeout}},
                  later(Ms, {effect, Run, Effect}, World));
        {up, _} ->
            later(Ms, {answer, Run, good(Run)}, later(Ms - Ms div 4, {effect, Run, Effect}, World));
        {hung, _} -> later(?LIMIT_MS, {answer, Run, {error, timeout}}, World);
        {_, _} -> later(100, {answer, Run, {error, unreachable}}, World)
    end.

good(#run{step = {create, _}}) -> {ok, #{state => running}};
good(_) -> ok.

%% Failures of the giver or of the link have their own answers.
run_relay(#run{host = Host, from = Giver} = Run, Effect, Ms, State, Luck, World) ->
    #world{hosts = Hosts, options = #{apart := Apart, fails := Fails}} = World,
    #{Giver := #host{state = GiverState}} = Hosts,
    Answer = fun(After, Result) -> later(After, {answer, Run, Result}, World) end,
    case {GiverState, State, Apart(Giver, Host)} of
        {hung, _, _} -> Answer(?LIMIT_MS, {error, {relay, giver, timeout}});
        {up, hung, _} -> Answer(?LIMIT_MS, {error, {relay, link, timeout}});
        {up, up, true} -> Answer(100, {error, {relay, link, refused}});
        {up, up, false} when Luck =:= 1 -> Answer(Ms, {error, {relay, giver, wrong_checksum}});
        {up, up, false} when Luck =:= 2 ->
            later(?LIMIT_MS, {answer, Run, {error, {relay, link, timeout}}},
                  later(Ms, {effect, Run, Effect}, World));
        {up, up, false} ->
            case Fails(Run#run.step) of
                true -> Answer(Ms, {error, {relay, receiver, failed}});
                false ->
                    later(Ms, {answer, Run, ok}, later(Ms - Ms div 4, {effect, Run, Effect}, World))
            end;
        {up, _, _} -> Answer(100, {error, {relay, link, unreachable}});
        {_, _, _} -> Answer(100, {error, {relay, giver, unreachable}})
    end.

duration(Step, Dice) ->
    Most = case Step of
        {fetch, _, _} -> 4_000;
        {start, _} -> 3_000;
        {create, _} -> 8_000;
        groups -> 1_000;
        _ -> 500
    end,
    {Ms, Next} = rand:uniform_s(Most, Dice),
    {Ms + 10, Next}.

%% A host that hangs by now does not answer before the limit.
answer_or_hang(#run{host = Name} = Run, Result, #world{hosts = Hosts} = World) ->
    case Hosts of
        #{Name := #host{state = hung}} when Result =:= ok ->
            later(?LIMIT_MS, {answer, Run, {error, timeout}}, World);
        #{} -> answer(Run, Result, World)
    end.

answer(#run{number = Number, step = Step, host = Host} = Run, Given, World) ->
    #world{service = Service, now = Now, hosts = Hosts, options = #{ended := Ended}} = World,
    Result = case Hosts of
        _ when Run#run.from =/= service -> relayed(Run, Given, World);
        #{Host := #host{state = State}} when State =/= up -> {error, unreachable};
        #{} -> Given
    end,
    #service{memory = Memory0, runs = Runs} = Service,
    {Memory, Notes} = Ended(Step, Result, Memory0, Now),
    After = tell(Notes, World#world{service = Service#service{
        memory = Memory, runs = Runs#{Number => Run#run{ended = Now}}}}),
    lists:foldl(fun(Name, W) -> look(Name, once, W) end, After, affected(Run, After)).

%% Either side may have failed meanwhile.
relayed(#run{host = Host, step = {fetch, _, Sha}}, ok, #world{hosts = Hosts}) ->
    case Hosts of
        #{Host := #host{state = up, releases = Releases}} ->
            case lists:member(Sha, Releases) of
                true -> ok;
                false -> {error, {relay, giver, cut_off}}
            end;
        #{} -> {error, {relay, link, unreachable}}
    end;
relayed(_, Failed, _) ->
    Failed.

%% The hosts that have to be looked at to see the effect of a step; for groups all that answer.
affected(#run{step = {Kind, _}}, _) when Kind =:= create; Kind =:= delete -> [];
affected(#run{host = undefined}, #world{service = #service{observed = #{hosts := Hosts}}}) ->
    [Name || Name := #{state := up} <- maps:iterator(Hosts, ordered)];
affected(#run{host = Host}, _) -> [Host].

%% ---------------------------------------------------------------- looking

%% A look shows the state at its start.
look(What, World) -> look(What, again, World).

look(What, Again, #world{service = #service{incarnation = Incarnation}, now = Now} = World0) ->
    {Ms, World} = case is_binary(What) of
        true -> roll(300, World0);
        false -> {150, World0}
    end,
    {Took, Seen} = sight(What, World, Ms),
    later(Took, {looked, Incarnation, What, Now, Seen, Again}, World).

again(_, once, World) -> World;
again({provider, _} = What, again, #world{service = #service{incarnation = Incarnation}} = World) ->
    later(4 * ?LOOK_EVERY_MS, {look, Incarnation, What}, World);
again(What, again, #world{service = #service{incarnation = Incarnation}} = World) ->
    Every = maps:get(look_every_ms, World#world.options, ?LOOK_EVERY_MS),
    case is_watched(What, World) of
        true -> later(Every, {look, Incarnation, What}, World);
        false -> World
    end.

looked(What, Began, Seen, #world{service = Service} = World) ->
    #service{looked = Looked} = Service,
    case maps:get(What, Looked, Began) > Began of
        %% A look that began later has ended already.
        true -> World;
        false when is_binary(What) ->
            case is_watched(What, World) of
                true -> put_seen(What, Began, Seen, World);
                false -> World
            end;
        false -> put_seen(What, Began, Seen, World)
    end.

put_seen(What, Began, Seen, #world{service = #service{observed = Observed, looked = Looked,
                                                      memory = Memory} = Service} = World) ->
    plan(settle(World#world{service = Service#service{
        observed = see(What, Seen, Observed, Memory),
        looked = Looked#{What => Began}}})).

%% A step is over when a look that began after its end has come back.
settle(#world{service = #service{runs = Runs} = Service} = World) ->
    Still = maps:filter(fun(_, Run) -> not is_over(Run, World) end, Runs),
    World#world{service = Service#service{runs = Still}}.

is_over(#run{ended = never}, _) -> false;
is_over(#run{ended = Ended} = Run, #world{service = #service{looked = Looked}} = World) ->
    lists:all(fun(Name) ->
        maps:get(Name, Looked, -1) >= Ended orelse not is_watched(Name, World)
    end, affected(Run, World)).

%% ---------------------------------------------------------------- faults

fault(World0) ->
    {Kind, World} = roll(10, World0),
    case Kind of
        _ when Kind =< 3 -> with_host(fun(Host, W) -> put_host(Host, down, W) end, World);
        4 -> with_host(fun(Host, W) -> put_host(Host, hung, W) end, World);
        _ when Kind =< 7 ->
            with_host(fun(Host, #world{hosts = Hosts} = W) ->
                case maps:keys((map_get(Host, Hosts))#host.nodes) of
                    [] -> W;
                    Ids ->
                        {Id, Next} = pick(Ids, W),
                        exits(Host, Id, Next)
                end
            end, World);
        _ -> handle(kill, World)
    end.

with_host(Do, #world{hosts = Hosts} = World) ->
    {Host, Next} = pick(lists:sort(maps:keys(Hosts)), World),
    Do(Host, Next).

%% All hosts are up again except those that are gone for good.
hosts_up(#world{hosts = Hosts} = World) ->
    lists:foldl(fun(Name, W) -> put_host(Name, up, W) end, World,
                [Name || Name := #host{state = State} <- Hosts, State =/= gone, State =/= up]).

%% ---------------------------------------------------------------- operators

operator({apply, Desired}, #world{revisions = Revisions, revision = Revision} = World) ->
    Next = Revision + 1,
    Numbered = adopting(Desired#{revision := Next}, World#world.options),
    Applied = World#world{revisions = Revisions#{Next => Numbered}, revision = Next},
    case Applied#world.service of
        #service{alive = false} -> Applied;
        #service{memory = Before} = Service ->
            Memory = sderl_ops_memory:try_again(Before),
            plan(Applied#world{stored = Memory, service = Service#service{
                memory = Memory,
                desired = with_former(Numbered, Memory, Applied#world.revisions)}})
    end;
operator({revision, Change}, #world{revisions = Revisions, revision = Revision} = World) ->
    operator({apply, Change(map_get(Revision, Revisions))}, World);
operator({drain, Id}, #world{service = Service, options = #{refusals := Refusals}} = World) ->
    #service{alive = Alive, desired = Desired, observed = Observed, memory = Memory} = Service,
    case Alive andalso Refusals(Id, Desired, Observed, Memory) of
        [] ->
            SetAside = fun(Of) -> sderl_ops_memory:set_aside(Id, Of) end,
            operator({memory, SetAside}, sderl_ops_world_check:drain(Id, World));
        _ -> World
    end;
%% An operator's change is stored before it is answered.
operator({memory, _}, #world{service = #service{alive = false}} = World) -> World;
operator({memory, Change}, #world{service = #service{memory = Memory} = Service} = World) ->
    After = Change(Memory),
    plan(World#world{stored = After, service = Service#service{memory = After}}).
