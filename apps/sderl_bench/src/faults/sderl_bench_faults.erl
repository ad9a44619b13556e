%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults).
-moduledoc """
Repetitions of faults on real nodes.

One repetition: clients on all nodes write; the fault comes, lasts, and is undone; then every node
must have all that was answered before, and agree with the others, while clients still write. Then
the clients stop, and all tables are compared with the answers that the clients got. In the end the
clients' processes end, and all names must go.

The next repetition uses the same nodes, or new ones if this one failed.
""".

-export([run/3]).
-export_type([job/0, params/0, outcome/0]).

-import(sderl_clock, [now_ms/0]).
-import(sderl_bench_faults_counters, [now_us/0]).

-doc "A registry, and a fault for it.".
-type job() :: {Impl :: string(), module(), sderl_bench_faults_kind:kind()}.

-doc """
The defaults of `tick_ms` and `set_aside_ms` are the library's; `far` (with far writers) is true by
default, and `consistency` is `available`.
""".
-type params() :: #{
    nodes := pos_integer(),
    clients := pos_integer(),
    repetitions := pos_integer(),
    hold_ms := pos_integer(),
    burst := pos_integer(),
    short := pos_integer(),
    links := namespaces | cookies,
    far => boolean(),
    consistency => available | majority,
    tick_ms => pos_integer(),
    set_aside_ms => pos_integer()
}.

-doc "The outcome of one job, with the problems in words.".
-type outcome() ::
    #{job := job(), started := binary(), metrics := map(), wrong := [unicode:chardata()]}.

-define(CALL_MS, 30_000).
-define(READY_MS, 60_000).
-define(SETTLE_MS, 60_000).
-define(ANYWAY_MS, 2000).
-define(STAYS_MS, 5000).
-define(LOOK_MS, 50).
-define(LINKED_MS, 500).
%% Answers that each node's clients have got before the fault.
-define(WARM, 20).
-define(HOLDERS, 400).
%% Where so many repetitions failed, the others are not tried.
-define(MOST_FAILURES, 3).

-doc """
Runs the jobs and calls `Report` with the outcome of each as soon as it is there. Consecutive jobs
that can share nodes do so.
""".
-spec run([job()], params(), fun((outcome()) -> ok | {error, term()})) -> ok | {error, term()}.
run(Jobs, #{repetitions := Repetitions} = Params, Report) ->
    States = [
        #{job => Job, left => Repetitions, failures => 0, turns => [], wrong => [],
          label => label(I, length(Jobs), Job)}
     || {I, Job} <- lists:enumerate(Jobs)
    ],
    chunks(States, Params, Report).

label(I, Count, {Impl, _, #{name := Name}}) ->
    io_lib:format("~w/~w ~ts ~ts", [I, Count, Impl, Name]).

chunks([], _Params, _Report) ->
    ok;
chunks([#{job := Job, label := Label} | _] = States, Params, Report) ->
    Key = key(Job),
    Run = fun(World) ->
        case ready(World) of
            ok -> jobs(States, Key, World, Params, Report);
            {error, Why} -> {error, Why}
        end
    end,
    case sderl_bench_faults_world:with(Key, Params, Label, Run) of
        {ok, {ok, Left}} -> chunks(Left, Params, Report);
        {ok, {error, Why}} -> {error, Why};
        {error, Why} -> {error, Why}
    end.

key({_, Registry, Kind}) -> sderl_bench_faults_world:key(Kind, Registry).

ready(#{nodes := Nodes} = World) ->
    case linking(World, Nodes,
                 fun() -> settle(World, Nodes, expected([], [], #{}), ?READY_MS) end) of
        {ok, _} -> ok;
        {error, Why} -> {error, {not_ready, Why}}
    end.

%% Runs jobs until these nodes cannot be used any more, or others are needed; gives the jobs left.
jobs([], _Key, _World, _Params, _Report) ->
    {ok, []};
jobs([#{job := Job, left := 0} = State | States], Key, World, Params, Report) ->
    #{turns := Turns, wrong := Wrong} = State,
    sderl_progress:done(),
    case
        Report(#{
            job => Job,
            started => maps:get(started, State, sderl_bench_output:now()),
            metrics => sderl_bench_faults_tally:metrics(Turns),
            wrong => lists:reverse(Wrong)
        })
    of
        ok -> jobs(States, Key, World, Params, Report);
        {error, Why} -> {error, Why}
    end;
jobs([#{job := {_, _, Kind} = Job, left := Left, turns := Turns, label := Label} = State0 | States],
     Key, World, Params, Report) ->
    case key(Job) of
        Key ->
            State = maps:merge(#{started => sderl_bench_output:now(),
                                 progress => sderl_progress:reporter(Label)}, State0),
            Done = length(Turns),
            _ = (maps:get(progress, State))(Done, Done + Left),
            {Turn, Why} = tried(Kind, maps:merge(World, #{
                params => Params, turn => Done + 1, burst => maps:get(burst, Params),
                short => maps:get(short, Params)
            })),
            more(State#{turns := [Turn | Turns]}, Turn, Why, States, Key, World, Params, Report);
        _ ->
            {ok, [State0 | States]}
    end.

more(#{left := Left, wrong := Wrong, turns := Turns} = State0, #{converged := Converged}, Why,
     States, Key, World, Params, Report) ->
    Text = [io_lib:format("repetition ~w: ~0tp", [length(Turns), Why], [{chars_limit, 1500}])
            || Why =/= []],
    State = State0#{left := Left - 1, wrong := Text ++ Wrong},
    case {Converged, State} of
        {true, _} -> jobs([State | States], Key, World, Params, Report);
        {false, #{failures := Failures}} when Failures + 1 =:= ?MOST_FAILURES ->
            {ok, [State#{left := 0} | States]};
        {false, #{failures := Failures}} -> {ok, [State#{failures := Failures + 1} | States]}
    end.

%% ---------------------------------------------------------------- one repetition

%% A node that ends or hangs where it should not must not end the run.
tried(Kind, World) ->
    try
        repetition(Kind, World)
    catch
        Class:Reason:Stack ->
            {sderl_bench_faults_tally:failed(), [{Class, Reason, lists:sublist(Stack, 3)}]}
    end.

repetition(#{aims_at := AimsAt} = Kind,
           #{fleet := Fleet, nodes := Nodes, registry := Registry, turn := Turn} = World) ->
    ok = Registry:ready(Fleet, Nodes),
    Lead = call(World, hd(Nodes), Registry, coordinator, []),
    World1 = World#{coordinator => Lead, target => target(AimsAt, Lead, Nodes, Turn)},
    case Kind of
        #{needs := config} ->
            befall(Kind, World1);
        _ ->
            ok = start_clients(World1),
            befall(Kind, World1)
    end.

target(coordinator, Lead, _, _) -> Lead;
target(lead, Lead, _, _) when Lead =/= none -> Lead;
target(member, Lead, Nodes, Turn) -> one(lists:delete(Lead, Nodes), Turn);
target(_, _, Nodes, Turn) -> one(Nodes, Turn).

one(Nodes, Turn) -> lists:nth(1 + Turn rem length(Nodes), Nodes).

%% Each node's far writer registers processes of the node before it.
start_clients(
    #{nodes := Nodes, registry := Registry, params := #{clients := Writers} = Params} = World
) ->
    _ = [{_, {ok, ok}} = Started || Started <- each(World, Nodes, start, [Registry, Writers])],
    _ = [
        ok = call(World, Node, sderl_bench_faults_client, far, [
            call(World, Other, sderl_bench_faults_client, holders, [?HOLDERS])
        ])
     || maps:get(far, Params, true),
        {Node, Other} <- lists:zip(Nodes, [lists:last(Nodes) | lists:droplast(Nodes)])
    ],
    _ = [
        {_, {ok, ok}} = Started
     || maps:get(consistency, Params, available) =:= majority, Registry:group() =/= none,
        Started <- each(World, Nodes, compete, [Nodes])
    ],
    sderl_fleet:await(
        fun() ->
            Counts = each(World, Nodes, answers, []),
            lists:all(fun({_, {ok, N}}) -> N >= ?WARM; (_) -> false end, Counts) orelse Counts
        end,
        ?READY_MS
    ).

befall(#{name := Name, module := Module, lasts := Lasts} = Kind,
       #{nodes := Nodes, params := #{hold_ms := HoldMs}} = World) ->
    Marked = [Node || {Node, {ok, ok}} <- each(World, Nodes, mark, [])],
    Called = now_us(),
    Injected = Module:inject(Name, World),
    _ = each(World, maps:get(cut_off, Injected, []), cut_off, [true]),
    At = maps:get(at, Injected, Called),
    Stalling = Marked -- maps:get(away, Injected, []),
    receive
    after case Lasts of true -> HoldMs; false -> 0 end -> ok
    end,
    from(Kind, Injected, At, Stalling, World#{times => [{fault, At}]}).

%% Convergence from the fault: first of the nodes that are left, then of all, once it is undone.
from(#{from := fault} = Kind, Injected, At, Stalling, #{nodes := Nodes} = World) ->
    Live = Nodes -- maps:get(away, Injected, []),
    ok = (maps:get(finish, Injected, fun(_) -> ok end))(Live),
    case converge(Live, Injected, World) of
        {ok, When} ->
            Stalled = stalled(Stalling, World),
            case undone(Kind, Injected, World) of
                none -> finish(ms(When - At), undefined, Stalled, Live, ok, World);
                Undone ->
                    rejoin(ms(When - At), Undone, Stalled, Live, Injected,
                           timed(undone, Undone, timed(agreed, When, World)))
            end;
        {error, Why} ->
            finish(undefined, undefined, stalled(Stalling, World), Live, {error, Why}, World)
    end;
%% Convergence from the fault's end, of all nodes.
from(Kind, Injected, _At, Stalling, #{nodes := Nodes} = World0) ->
    Undone = undone(Kind, Injected, World0),
    World = timed(undone, Undone, World0),
    case Kind of
        #{needs := config} -> ok = start_clients(World);
        _ -> ok
    end,
    case converge(Nodes, Injected, World) of
        {ok, When} ->
            finish(ms(When - Undone), undefined, stalled(Stalling, World), Nodes, ok,
                   timed(agreed, When, World));
        {error, Why} ->
            finish(undefined, undefined, stalled(Stalling, World), Nodes, {error, Why}, World)
    end.

rejoin(ConvergeMs, Undone, Stalled, Clients, Injected, #{nodes := Nodes} = World) ->
    case converge(Nodes, Clients, Injected, World) of
        {ok, When} ->
            finish(ConvergeMs, ms(When - Undone), Stalled, Clients, ok, timed(agreed, When, World));
        {error, Why} -> finish(ConvergeMs, undefined, Stalled, Clients, {error, Why}, World)
    end.

undone(_, #{undo := none}, _) ->
    none;
undone(#{name := Name, module := Module}, #{undo := Undo} = Injected, World) ->
    _ = each(World, maps:get(cut_off, Injected, []), cut_off, [false]),
    ok = Module:undo(Name, Undo, World),
    now_us().

timed(What, At, #{times := Times} = World) -> World#{times := Times ++ [{What, At}]}.

ms(Us) -> max(0, Us) / 1000.

stalled([], _) ->
    undefined;
stalled(Nodes, World) ->
    case [Us || {_, {ok, Us}} <- each(World, Nodes, gap, [])] of
        [] -> undefined;
        Gaps -> lists:max(Gaps) / 1000
    end.

%% ---------------------------------------------------------------- convergence

converge(Live, Injected, World) -> converge(Live, Live, Injected, World).

%% All that clients hold now must be on all live nodes. Writing goes on, with other names.
converge(Live, Clients, Injected, World) ->
    linking(World, Live, fun() -> pinned(Live, Clients, Injected, World) end).

%% Runs `Fun` while links that the registry does not restore itself are restored.
linking(#{fleet := Fleet, registry := Registry}, Live, Fun) ->
    Linker = spawn_link(fun() -> link_again(Registry, Fleet, Live) end),
    Result = Fun(),
    unlink(Linker),
    exit(Linker, kill),
    Result.

pinned(Live, Clients, Injected, World) ->
    Pins = [Pin || {_, {ok, Pin}} <- each(World, Clients, pin, [])],
    Burst = sderl_bench_faults_watch:sum([Digest || #{burst := Digest} <- Pins]),
    Classes = maps:merge(#{burst => Burst || element(1, Burst) > 0},
                         maps:get(classes, Injected, #{})),
    %% The far writers' are not waited for: a registry that forgets them would never be done. They
    %% are looked for in the end.
    Names = [Pair
             || #{held := Held} <- Pins, {Name, _} = Pair <- Held,
                not sderl_bench_faults_tally:is_far(Name)],
    Result = settle(World, Live, expected(Names, maps:get(dead, Injected, []), Classes),
                    ?SETTLE_MS),
    case Result of
        _ when length(Pins) < length(Clients) ->
            {error, {clients_do_not_answer, length(Clients) - length(Pins)}};
        _ -> Result
    end.

link_again(Registry, Fleet, Nodes) ->
    ok = Registry:linked(Fleet, Nodes),
    receive
    after ?LINKED_MS -> link_again(Registry, Fleet, Nodes)
    end.

expected(Names, Dead, Classes) -> #{names => Names, dead => Dead, classes => Classes}.

%% The moment at which the last node had all, once all say the same.
settle(World, Live, Expected, Ms) ->
    settle_until(World, Live, Expected, now_ms() + Ms).

settle_until(#{fleet := Fleet, registry := Registry} = World, Live, Expected, Deadline) ->
    Left = max(0, Deadline - now_ms()),
    Answers = sderl_fleet:multicall(
        Fleet, Live, sderl_bench_faults_watch, settle, [Registry, Live, Expected, Left],
        Left + ?CALL_MS
    ),
    case [{Node, Answer} || {Node, Answer} <- Answers, not is_settled(Answer)] of
        [] ->
            case lists:usort([What || {_, {ok, {ok, _, What}}} <- Answers]) of
                [_] -> {ok, lists:max([At || {_, {ok, {ok, At, _}}} <- Answers])};
                Differ when Left =:= 0 -> {error, {disagree, Differ}};
                _ -> settle_until(World, Live, Expected, Deadline)
            end;
        Unsettled ->
            {error, {not_settled, Unsettled}}
    end.

is_settled({ok, {ok, _, _}}) -> true;
is_settled(_) -> false.

%% ---------------------------------------------------------------- the end

finish(ConvergeMs, RejoinMs, StalledMs, Clients, Converged,
       #{nodes := Nodes, registry := Registry} = World) ->
    Journals = [Journal || {_, {ok, Journal}} <- each(World, Clients, journal, [?CALL_MS])],
    %% Members that did not agree in time need not be waited for again.
    Found = compared(Journals, case Converged of ok -> ?SETTLE_MS; _ -> ?ANYWAY_MS end, World),
    Wrong = [{found, brief(Found, Clients, World)} || not sderl_bench_faults_tally:is_whole(Found)],
    _ = each(World, Nodes, stop, []),
    Left = [
        {Node, Names}
     || {Node, Names} <- multicall(World, Nodes, sderl_bench_faults_watch, empty,
                                   [Registry, ?SETTLE_MS]),
        Names =/= {ok, []}
    ],
    Twice = sderl_bench_faults_tally:held_twice(Journals),
    Why = [{converge, Reason} || {error, Reason} <- [Converged]] ++
        [{no_journal, length(Clients) - length(Journals)} || length(Journals) < length(Clients)] ++
        Wrong ++
        [{left_over, brief_left(Left)} || Left =/= []] ++
        [{held_twice, lists:sublist(Twice, 3)} || Twice =/= []],
    Sum = fun(Key) -> lists:sum([maps:get(Key, Journal) || Journal <- Journals]) end,
    {
        #{
            converged => Converged =:= ok andalso maps:get(equal, Found) andalso Left =:= [],
            converge_ms => ConvergeMs,
            rejoin_ms => RejoinMs,
            stalled_ms => StalledMs,
            lost => length(maps:get(lost, Found)),
            came_back => length(maps:get(came_back, Found)),
            unknown => Sum(unknown),
            refused => Sum(refused),
            no_majority => Sum(no_majority),
            cut_off_yes => Sum(cut_off_yes),
            claims => lists:sum([length(Claims) || #{claims := Claims} <- Journals]),
            held_twice => length(Twice),
            hung => Sum(hung),
            answers => Sum(answers)
        },
        Why
    }.

%% Clients are quiet now, so names that are missing have time to come. Those that are still missing
%% when all nodes have agreed for a while are lost.
compared(Journals, Ms, #{nodes := Nodes, registry := Registry} = World) ->
    Look = fun() ->
        Tables = [Table
                  || {_, {ok, Table}} <- multicall(World, Nodes, sderl_bench_faults_watch, names,
                                                   [Registry])],
        Found = sderl_bench_faults_tally:compare(Journals, Tables),
        Found#{equal := maps:get(equal, Found) andalso length(Tables) =:= length(Nodes)}
    end,
    compared(Look, Look(), now_ms(), now_ms() + Ms).

compared(Look, Found, Since, Deadline) ->
    Stays = maps:get(equal, Found) andalso now_ms() >= Since + ?STAYS_MS,
    case sderl_bench_faults_tally:is_whole(Found) orelse Stays orelse now_ms() >= Deadline of
        true ->
            Found;
        false ->
            receive
            after ?LOOK_MS -> ok
            end,
            case Look() of
                Found -> compared(Look, Found, Since, Deadline);
                Other -> compared(Look, Other, now_ms(), Deadline)
            end
    end.

%% Adds what the clients know of the first few names, in ms from the fault.
brief(#{lost := Lost, came_back := Back} = Found, Clients,
      #{times := [{fault, Zero} | _] = Times} = World) ->
    Few = Found#{lost := lists:sublist(Lost, 5), came_back := lists:sublist(Back, 5)},
    Names = maps:get(lost, Few) ++ maps:get(came_back, Few),
    Since = [Row || {_, {ok, Rows}} <- each(World, Clients, since, [Names]), Row <- Rows],
    Few#{
        since => [{Name, State, (At - Zero) div 1000} || {Name, State, At} <- Since],
        times => [{What, (At - Zero) div 1000} || {What, At} <- Times]
    }.

brief_left(Left) ->
    [
        case Answer of
            {ok, Names} -> {Node, length(Names), lists:sublist(Names, 3)};
            Error -> {Node, Error}
        end
     || {Node, Answer} <- Left
    ].

call(#{fleet := Fleet}, Node, Module, Function, Args) ->
    sderl_fleet:call(Fleet, Node, Module, Function, Args, ?CALL_MS).

each(World, Nodes, Function, Args) ->
    multicall(World, Nodes, sderl_bench_faults_client, Function, Args).

multicall(#{fleet := Fleet}, Nodes, Module, Function, Args) ->
    sderl_fleet:multicall(Fleet, Nodes, Module, Function, Args, 2 * ?SETTLE_MS).
