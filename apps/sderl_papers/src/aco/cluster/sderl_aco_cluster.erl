%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_cluster).
-moduledoc """
The nodes of a distributed ant colony, and one run on them.

There is a node for the starter, and those that the tree uses (`m:sderl_aco_tree`), with one
scheduler each. The controlling program is none of them, and works over the fleet's control channel,
so it adds no link.

| variant | | names | nodes |
|---|---|---|---|
| `tl` | one level: the master and all colonies | none | full mesh |
| `ml` | a tree of submasters | none | full mesh |
| `gr` | the same, recovery | in `global` | full mesh |
| `sr` | the same, recovery | in s_groups | s_groups |

Without recovery a run of which a process dies ends with `{died, Key, Node, Reason}`. With it only
the loss of a node ends it, with `{node_down, Node}`.

Usage is metered from before the links or groups are made until the result is there.
""".

-export([plan/2, on/3, names_count/1, text/1]).
-export_type([params/0, outcome/0]).

-import(sderl_clock, [now_ms/0]).

-doc "As of `sderl_aco:run/2`, complete.".
-type params() :: #{
    variant := sderl_aco_tree:variant(),
    instance := sderl_aco_instance:instance(),
    nodes := pos_integer(),
    degree := pos_integer(),
    colonies => pos_integer() | undefined,
    local_iterations := pos_integer(),
    global_iterations := pos_integer(),
    heuristic := sderl_aco_options:heuristic() | mixed,
    seed := term(),
    repl => pos_integer(),
    chaos => none | #{every_ms := pos_integer()},
    timeout_s := pos_integer(),
    atom() => term()
}.

-doc """
`ants`: those whose solutions were computed, even if these were lost; `recovery_us`: the times from
each of the `kills` until another process had the role; `kills_not_back`: those after which none had
it before the end; `recovered`: how many processes of each class were replaced by those that had
started them, whatever killed them, and `replaced_us` how long that took, see `m:sderl_aco_wards`;
`messages_in_rounds`, `packets_in_rounds`, `cpu_ms_in_rounds`: those after the set-up;
`links_expected`: the links by the tree and its groups, or in the full mesh, and `links_as_expected`
whether every node has exactly these; `names_left`: names of the run that are there when all of its
processes are gone, `undefined` where a node does not tell.
""".
-type outcome() :: #{
    best := sderl_aco_colony:solution(),
    best_colony := pos_integer(),
    round_best := [non_neg_integer()],
    seconds := float(),
    setup_s := float(),
    ants := non_neg_integer(),
    colonies := pos_integer(),
    nodes_used := pos_integer(),
    levels := non_neg_integer(),
    usage := sderl_bench_meter:usage(),
    messages_in_rounds := non_neg_integer(),
    packets_in_rounds := non_neg_integer() | undefined,
    cpu_ms_in_rounds := non_neg_integer(),
    links_expected := non_neg_integer(),
    links_as_expected := boolean(),
    kills := [sderl_chaos:kill()],
    kills_by_class := #{sderl_aco_tree:class() => pos_integer()},
    kills_not_back := non_neg_integer(),
    recovered := #{sderl_aco_tree:class() => non_neg_integer()},
    replaced_us := sderl_bench_histogram:histogram(),
    recovery_us := sderl_bench_histogram:histogram(),
    names_left := non_neg_integer() | undefined
}.

-define(CALL_MS, 60_000).
%% How long the clean-up waits for a node, which may stand still.
-define(CLEAN_MS, 15_000).
-define(ALIVE_MS, 10_000).
%% How long the processes that were killed last may take to be back.
-define(BACK_MS, 10_000).
-define(NAMES_MS, 60_000).
%% How long the processes may take to end by themselves.
-define(END_MS, 1000).

%% The tree of a run.
shape(#{variant := Variant, nodes := Nodes, degree := Degree} = Params) ->
    sderl_aco_tree:shape(Variant, Nodes, Degree, colonies(Params, infinity)).

-doc "The plan of a fleet for it: the starter's node is the first.".
-spec plan(params(), Label :: unicode:chardata()) -> sderl_fleet:plan().
plan(#{variant := Variant} = Params, Label) ->
    #{used := Used} = shape(Params),
    Family =
        case Variant of
            sr -> #{apps => [sderl]};
            _ -> #{connect_all => true}
        end,
    #{
        families => [Family#{name => start, count => 1}, Family#{name => n, count => Used}],
        progress => sderl_progress:reporter([Label, ": starting nodes"])
    }.

%% The layout on the nodes of a fleet that was started with such a plan.
layout(#{degree := Degree} = Params, Nodes) ->
    #{colony_nodes := K} = Shape = shape(Params),
    case colonies(Params, K) of
        Colonies when Colonies < K -> {error, {too_few_colonies, Colonies, K}};
        Colonies -> {ok, sderl_aco_tree:layout(Shape, Degree, Colonies, Nodes)}
    end.

%% By default one colony on each colony node.
colonies(Params, Each) ->
    case maps:get(colonies, Params, undefined) of
        undefined -> Each;
        Colonies -> Colonies
    end.

-doc """
A run on the nodes of a fleet that has been started with such a plan. Processes, names and groups of
the run are gone when it returns, and also when its caller is killed.

A reason is a term for `sderl_papers_reason:text/1`, those of the run itself `{aco, Reason}`, see
`text/1`.
""".
-spec on(Fleet :: pid(), params(), Label :: unicode:chardata()) ->
    {ok, outcome()} | {error, term()}.
on(Fleet, Params, Label) ->
    All = sderl_fleet:nodes(Fleet),
    maybe
        ok ?= own(allowed(Params)),
        {ok, Layout} ?= own(layout(Params, All)),
        Conf = conf(Params, Layout),
        Janitor = janitor(Fleet, Conf, Layout),
        try
            measured(Fleet, Params, Conf, Layout, Label)
        catch
            throw:{?MODULE, Reason} -> {error, Reason}
        after
            clean(Fleet, Conf, Layout),
            Janitor ! done
        end
    end.

own({error, Reason}) -> {error, {aco, Reason}};
own(Other) -> Other.

allowed(#{variant := Variant} = Params) ->
    case maps:get(chaos, Params, none) of
        #{} when Variant =:= tl; Variant =:= ml -> {error, {no_recovery, Variant}};
        _ -> ok
    end.

conf(#{variant := Variant, seed := Seed, heuristic := Heuristic} = Params,
     #{shape := #{colony_nodes := K}}) ->
    (maps:with([instance, local_iterations, global_iterations], Params))#{
        run => binary:encode_hex(rand:bytes(5)),
        recovery => Variant =:= gr orelse Variant =:= sr,
        naming => case Variant of gr -> global; sr -> s_group; _ -> none end,
        options => sderl_aco_options:of_run(Params),
        heuristic => Heuristic,
        colony_nodes => K,
        seed => Seed,
        repl => maps:get(repl, Params, 1)
    }.

%% Cleans up when the caller dies.
janitor(Fleet, Conf, Layout) ->
    Caller = self(),
    spawn(fun() ->
        Ref = monitor(process, Caller),
        receive
            {'DOWN', Ref, process, _, _} -> clean(Fleet, Conf, Layout);
            done -> ok
        end
    end).

measured(Fleet, Params, #{run := Run} = Conf, Layout, Label) ->
    Nodes = sderl_aco_tree:all_nodes(Layout),
    Deadline = now_ms() + 1000 * maps:get(timeout_s, Params),
    {{{Result, Kills}, UsageRun}, Usage} =
        sderl_bench_meter:around(Fleet, Nodes, fun() ->
            ok = needed(prepare(Params, Fleet, Layout)),
            ok = needed(on_each(Fleet, Nodes, sderl_aco_node, start, [Run])),
            %% Monitoring begins before the colonies do, which do not wait for it.
            {Done, _Seen} =
                sderl_bench_watch:around(Fleet, Nodes, maps:get(monitoring, Params, off), fun() ->
                    Starter = set_up(Fleet, Params, Conf, Layout, Deadline, Label),
                    Go = fun() -> rounds(Fleet, Params, Conf, Layout, Starter, Deadline, Label) end,
                    sderl_bench_meter:around(Fleet, Nodes, Go)
                end),
            Done
        end),
    ok = needed(own(metered(Nodes, [UsageRun, Usage]))),
    #{ants := Ants, recovered := Recovered, replaced_us := Replaced} =
        needed(own(tallies(Fleet, Nodes, Run))),
    ok = needed(own(ended(Fleet, Conf, Layout))),
    Left = names_left(Fleet, Conf, Layout),
    #{best := {Cost, Colony, Jobs}, round_best := Costs, seconds := Seconds, setup_s := SetupS} =
        Result,
    #{shape := #{levels := Levels}} = Layout,
    #{total := Rounds} = UsageRun,
    #{per_node := PerNode} = Usage,
    Links = expected_links(Params, Layout),
    {ok, #{
        best => {Cost, Jobs},
        best_colony => Colony,
        round_best => Costs,
        seconds => Seconds,
        setup_s => SetupS,
        ants => Ants,
        colonies => length(sderl_aco_tree:colonies(Layout)),
        nodes_used => length(Nodes),
        levels => Levels,
        usage => Usage,
        messages_in_rounds => maps:get(messages, Rounds),
        packets_in_rounds => maps:get(packets, Rounds),
        cpu_ms_in_rounds => maps:get(cpu_ms, Rounds),
        links_expected => lists:sum([Count || {_, Count} <- Links]) div 2,
        links_as_expected => lists:sort(Links) =:=
            lists:sort([{Node, Count} || #{node := Node, links := Count} <- PerNode]),
        kills => Kills,
        kills_by_class => maps:map(
            fun(_, Of) -> length(Of) end,
            maps:groups_from_list(fun(#{key := Key}) -> sderl_aco_tree:class(Key) end, Kills)
        ),
        kills_not_back => length([late || #{back_us := undefined} <- Kills]),
        recovered => Recovered,
        replaced_us => Replaced,
        recovery_us => lists:foldl(
            fun sderl_bench_histogram:add/2, sderl_bench_histogram:new(),
            [Us || #{back_us := Us} <- Kills, is_integer(Us)]
        ),
        names_left => Left
    }}.

%% An error is thrown at once: a node that is gone would not answer for its usage.
needed({error, Reason}) -> throw({?MODULE, Reason});
needed(Other) -> Other.

%% Sums in which a node is missing are of no use.
metered(Nodes, Usages) ->
    case lists:uniq(lists:append([sderl_bench_meter:missing(Nodes, Usage) || Usage <- Usages])) of
        [] -> ok;
        Missing -> {error, {not_metered, Missing}}
    end.

tallies(Fleet, Nodes, Run) ->
    case sderl_aco_tally:sum(sderl_fleet:multicall(Fleet, Nodes, sderl_aco_tally, read, [Run],
                                                   ?CALL_MS)) of
        {ok, Counts} -> Counts;
        {error, Silent} -> {error, {not_metered, Silent}}
    end.

expected_links(#{variant := sr}, Layout) ->
    sderl_aco_tree:links(Layout);
expected_links(_, Layout) ->
    Nodes = sderl_aco_tree:all_nodes(Layout),
    [{Node, length(Nodes) - 1} || Node <- Nodes].

prepare(#{variant := sr} = Params, Fleet, Layout) ->
    Groups = sderl_aco_tree:groups(Layout),
    maybe
        ok ?= sderl_bench_layout:make(Fleet, Groups),
        sderl_bench_impl_s_group:prepare(Fleet, Groups, Params)
    end;
prepare(#{variant := gr} = Params, Fleet, Layout) ->
    sderl_bench_impl_global:prepare(Fleet, [{all, sderl_aco_tree:all_nodes(Layout)}], Params);
prepare(_, Fleet, Layout) ->
    sderl_bench_links:mesh(Fleet, sderl_aco_tree:all_nodes(Layout)).

on_each(Fleet, Nodes, Module, Function, Args) ->
    case [Answer
          || {_, Result} = Answer <- sderl_fleet:multicall(Fleet, Nodes, Module, Function, Args,
                                                           ?CALL_MS),
             Result =/= {ok, ok}] of
        [] -> ok;
        [{Node, Answer} | _] -> {error, {Function, Node, Answer}}
    end.

set_up(Fleet, Params, Conf, Layout, Deadline, Label) ->
    Look = fun(Begun) -> {seconds(Begun), Begun} end,
    sderl_progress:watching([Label, ": starting processes"], Look, now_ms(), fun() ->
        at_starter(Fleet, Params, Layout, Deadline, start, [Conf, Layout])
    end).

%% The starter's answer, if it comes in time.
at_starter(Fleet, #{timeout_s := TimeoutS}, #{start := Start} = Layout, Deadline, Function, Args) ->
    case sderl_fleet:multicall(Fleet, [Start], sderl_aco_starter, Function, Args,
                               max(1, Deadline - now_ms())) of
        [{_, {ok, {ok, Answer}}}] -> Answer;
        [{_, {ok, {error, Reason}}}] -> needed(own({error, Reason}));
        [{_, {error, timeout}}] -> needed(own({error, late(Fleet, Layout, TimeoutS)}));
        [{_, {error, down}}] -> needed(own({error, {node_down, Start}}));
        [{_, {error, Reason}}] -> needed(own({error, {died, starter, Start, Reason}}))
    end.

seconds(Begun) -> io_lib:format("~w s", [(now_ms() - Begun) div 1000]).

rounds(Fleet, Params, #{global_iterations := Rounds} = Conf, #{start := Start} = Layout, Starter,
       Deadline, Label) ->
    with_chaos(Fleet, Params, Conf, Layout, fun() ->
        Look = fun(Begun) -> {look(Fleet, Start, Rounds, Begun), Begun} end,
        sderl_progress:watching(Label, Look, now_ms(), fun() ->
            at_starter(Fleet, Params, Layout, Deadline, result, [Starter])
        end)
    end).

%% Nodes that do not answer may be why it took too long.
late(Fleet, Layout, TimeoutS) ->
    case [Node
          || {Node, {error, _}} <- sderl_fleet:multicall(Fleet, sderl_aco_tree:all_nodes(Layout),
                                                         erlang, node, [], ?ALIVE_MS)] of
        [] -> {timeout, TimeoutS};
        Silent -> {silent, Silent, TimeoutS}
    end.

%% The result, and the kills meanwhile: in each period one process on each node.
with_chaos(Fleet, #{chaos := #{every_ms := EveryMs}, seed := Seed}, #{run := Run}, Layout, Fun) ->
    Options = #{
        nodes => sderl_aco_tree:all_nodes(Layout),
        targets => [#{kind => process, class => all, find => {sderl_aco_node, find, [Run, all]}}],
        every_ms => EveryMs,
        scope => node,
        seed => Seed,
        limits => #{at_once => infinity},
        call => fun(Node, Module, Function, Args) ->
            sderl_fleet:call(Fleet, Node, Module, Function, Args)
        end
    },
    case sderl_chaos:start(Options) of
        {ok, Service} ->
            try Fun() of
                Result ->
                    {ok, Kills} = sderl_chaos:stop(Service, ?BACK_MS),
                    {Result, Kills}
            catch
                Class:Reason:Stack ->
                    %% Kills must not go on during the clean-up. The service may be gone already.
                    _ = sderl_fleet_task:attempt(fun() -> sderl_chaos:stop(Service) end),
                    erlang:raise(Class, Reason, Stack)
            end;
        {error, Reason} ->
            needed(own({error, {no_chaos, Reason}}))
    end;
with_chaos(_, _, _, _, Fun) ->
    {Fun(), []}.

look(Fleet, Start, Rounds, Begun) ->
    case sderl_fleet:multicall(Fleet, [Start], sderl_aco_starter, progress, [], 1000) of
        [{_, {ok, {Round, Cost}}}] ->
            io_lib:format("round ~w of ~w, best ~w", [Round, Rounds, Cost]);
        _ -> seconds(Begun)
    end.

%% The processes end in order; those that did not get the message are killed, until none is left, as
%% killed processes are replaced while their supervisors live.
ended(Fleet, #{run := Run}, #{start := Start} = Layout) ->
    Nodes = sderl_aco_tree:all_nodes(Layout),
    Left = fun(Function) ->
        lists:sum([
            case Answer of Count when is_integer(Count) -> Count; List -> length(List) end
         || {_, {ok, Answer}} <- sderl_fleet:multicall(Fleet, Nodes, sderl_aco_node, Function,
                                                       [Run], ?CLEAN_MS)
        ])
    end,
    _ = case sderl_fleet:multicall(Fleet, [Start], sderl_aco_node, processes, [Run], ?CLEAN_MS) of
        [{_, {ok, There}}] ->
            [sderl_fleet:multicall(Fleet, [Start], sderl_aco_starter, stop, [Pid], ?CLEAN_MS)
             || {starter, Pid} <- There];
        _ -> none
    end,
    case sderl_fleet:await(fun() -> Left(processes) =:= 0 end, ?END_MS) of
        ok -> ok;
        {error, _} ->
            case sderl_fleet:await(fun() -> Left(kill) =:= 0 end, ?CLEAN_MS) of
                ok -> ok;
                {error, _} -> {error, not_ended}
            end
    end.

names_left(Fleet, #{naming := Naming, run := Run}, #{start := Start} = Layout) ->
    Scopes =
        case Naming of
            none -> [];
            global -> [{Start, global}];
            s_group ->
                [{First, {s_group, Group}} || {Group, [First | _]} <- sderl_aco_tree:groups(Layout)]
        end,
    Count = fun() ->
        names_count([
            Answer
         || {Node, Scope} <- Scopes, {_, Answer} <- sderl_fleet:multicall(
             Fleet, [Node], sderl_aco_names, registered, [Scope, Run], ?CLEAN_MS
         )
        ])
    end,
    case sderl_fleet:await(fun() -> Count() =:= 0 end, ?NAMES_MS) of
        ok -> 0;
        {error, _} -> Count()
    end.

-doc """
How many names there are by what each node answered to `sderl_aco_names:registered/2`; `undefined`
where one did not tell.
""".
-spec names_count([{ok, [sderl_aco_names:name()] | unknown} | {error, term()}]) ->
    non_neg_integer() | undefined.
names_count(Answers) ->
    case [Names || {ok, Names} <- Answers, is_list(Names)] of
        Told when length(Told) =:= length(Answers) -> length(lists:append(Told));
        _ -> undefined
    end.

%% Links are as expected in the first run on a fleet only: without their groups nodes mesh.
clean(Fleet, #{run := Run, naming := Naming} = Conf, Layout) ->
    _ = ended(Fleet, Conf, Layout),
    _ = sderl_fleet:multicall(Fleet, sderl_fleet:nodes(Fleet), sderl_aco_node, stop, [Run],
                              ?CLEAN_MS),
    case Naming of
        s_group -> sderl_bench_layout:delete(Fleet, sderl_aco_tree:groups(Layout));
        _ -> ok
    end.

-doc """
A reason of a run in words.

- `{died, Key, Node, Reason}`: a process died without recovery, or again and again
- `{node_down, Node}`
- `{timeout, Seconds}`: it took longer; `{silent, Nodes, Seconds}`: and these nodes do not answer
- `{no_recovery, Variant}`: chaos is for variants with recovery; `{no_chaos, Reason}`: one of
  `sderl_chaos:start/1`
- `{not_metered, Nodes}`: they did not tell what they used or counted; `not_ended`: processes of the
  run are still there
- `{too_few_colonies, Colonies, Nodes}`
""".
-spec text(term()) -> unicode:chardata().
text({died, Key, Node, Reason}) ->
    io_lib:format("~ts on ~ts died: ~0tP; gr and sr recover from kills, tl and ml do not",
                  [role(Key), Node, Reason, 12]);
text({node_down, Node}) ->
    io_lib:format("node ~ts went down; processes are recovered, nodes are not", [Node]);
text({timeout, Seconds}) ->
    io_lib:format("it took longer than ~w s; give it fewer iterations or ants, or more time "
                  "(--timeout)", [Seconds]);
text({silent, Nodes, Seconds}) ->
    io_lib:format("it was not done in ~w s, and these nodes do not answer: ~ts",
                  [Seconds, names(Nodes)]);
text({not_metered, Nodes}) ->
    io_lib:format("these nodes did not tell what they used, so that nothing is known of the whole: "
                  "~ts; the machine may be too busy", [names(Nodes)]);
text(not_ended) ->
    "processes of the run did not end; the machine may be too busy";
text({no_chaos, Reason}) ->
    sderl_chaos:text(Reason);
text({no_recovery, Variant}) ->
    io_lib:format("~w has no recovery, and ends when a process is killed; chaos is for gr and sr",
                  [Variant]);
text({too_few_colonies, Colonies, Nodes}) ->
    io_lib:format("there are ~w nodes for colonies and only ~w colonies; each of them needs one",
                  [Nodes, Colonies]);
text(Reason) ->
    io_lib:format("~0tp", [Reason]).

names(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

role(starter) -> "the starter";
role(master) -> "the master";
role({supervisor, {colony, Number}}) -> io_lib:format("the supervisor of colony node ~w", [Number]);
role({supervisor, {Level, Number}}) ->
    io_lib:format("the supervisor of node ~w of level ~w", [Number, Level]);
role({submaster, Level, Node, Process}) ->
    io_lib:format("submaster ~w on node ~w of level ~w", [Process, Node, Level]);
role({colony, Index}) -> io_lib:format("colony ~w", [Index]).
