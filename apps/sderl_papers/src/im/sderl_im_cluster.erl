%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_cluster).
-moduledoc """
The nodes of a messenger, and one run on them.

The controlling program is none of these nodes, and works over the fleet's control channel, so it
adds no link.
""".

-export([plan/2, start/2, stop/2, on/3]).
-export([names/1, names_left/1, processes/0, sum/1]).
-export_type([params/0, outcome/0]).

-doc "As of `sderl_im:run/2`, complete.".
-type params() :: #{
    mode := sderl_im_layout:mode(),
    servers := pos_integer(),
    routers := pos_integer(),
    clients := pos_integer(),
    client_nodes := pos_integer(),
    seconds := pos_integer(),
    warmup_s := number(),
    speed := number(),
    threshold_us := pos_integer(),
    chaos := none | #{every_ms := pos_integer(), classes => all | databases},
    seed := term(),
    timeout_ms := pos_integer(),
    monitoring := off | on,
    atom() => term()
}.

-doc """
`results` of each client node; `usage` in the measured time; the `kills`; `missing`: names that were
not there after the kills, and nodes that did not answer; `clients_left` and so on: what was left
after the end, `undefined` where a node did not answer.
""".
-type outcome() :: #{
    results := [sderl_im_traffic:result()],
    usage := sderl_bench_meter:usage(),
    watched => sderl_bench_watch:seen(),
    kills := [sderl_chaos:kill()],
    kills_skipped := #{atom() => non_neg_integer()},
    kill_problems := [binary()],
    began_us := integer(),
    missing := [term()],
    clients_left := non_neg_integer() | undefined,
    rows_left := non_neg_integer() | undefined,
    processes_left := non_neg_integer() | undefined,
    names_left := non_neg_integer() | undefined
}.

-define(CALL_MS, 120_000).
-define(READY_MS, 60_000).
-define(LONG_MS, 600_000).
%% From the call that starts the traffic until all client nodes have got it.
-define(LEAD_MS, 500).
%% How long the processes that were killed last may take to be back.
-define(BACK_MS, 20_000).
-define(LEFT_MS, 5000).
%% How long a round of chaos that began before the end may take.
-define(ROUND_MS, 30_000).

-doc "The plan of a fleet for it.".
-spec plan(params(), Label :: unicode:chardata()) -> sderl_fleet:plan().
plan(#{mode := Mode, servers := Servers, routers := Routers, client_nodes := Clients} = Params,
     Label) ->
    Family = case Mode of
        rd -> #{connect_all => true};
        rsd -> #{apps => [sderl]}
    end,
    #{
        families => [Family#{name => Name, count => Count}
                     || {Name, Count} <- [{router, Routers}, {server, Servers}, {client, Clients}]],
        s_groups => [{Group, normal, Members}
                     || Mode =:= rsd, {Group, Members} <- sderl_im_layout:groups(Params)],
        progress => sderl_progress:reporter([Label, ": starting nodes"])
    }.

%% The layout on the nodes of a fleet that was started with such a plan.
conf(Nodes,
     #{mode := Mode, servers := ServerCount, routers := RouterCount, timeout_ms := RetryMs}) ->
    {Routers, Others} = lists:split(RouterCount, Nodes),
    {Servers, Clients} = lists:split(ServerCount, Others),
    sderl_im_layout:new(#{mode => Mode, servers => Servers, routers => Routers, clients => Clients,
                          retry_ms => RetryMs}).

-doc """
Links the nodes or waits for their groups, and starts routers and servers; all names are there when
it returns.
""".
-spec start(Fleet :: pid(), params()) -> {ok, sderl_im_layout:conf()} | {error, term()}.
start(Fleet, #{mode := Mode} = Params) ->
    Conf = conf(sderl_fleet:nodes(Fleet), Params),
    Namespaces = sderl_im_layout:namespaces(Conf, Params),
    maybe
        ok ?= prepare(Mode, Fleet, Namespaces, Params),
        Started = sderl_fleet_task:at_once(
            [{Node, Role}
             || {Node, {Kind, _} = Role} <- sderl_im_layout:roles(Conf), Kind =/= clients],
            fun(Node, Role) -> on_node(Fleet, Node, sderl_im_sup, start, [Conf, Role], ?CALL_MS) end
        ),
        ok ?= every(not_started, Started),
        ok ?= ready(Fleet, Conf),
        {ok, Conf}
    end.

prepare(rd, Fleet, Namespaces, Params) ->
    sderl_bench_impl_global:prepare(Fleet, Namespaces, Params);
prepare(rsd, Fleet, Namespaces, Params) ->
    maybe
        ok ?= sderl_bench_impl_s_group:prepare(Fleet, Namespaces, Params),
        sderl_bench_route_cluster:await_routes(Fleet, Namespaces)
    end.

on_node(Fleet, Node, M, F, A, Ms) ->
    [{Node, Answer}] = sderl_fleet:multicall(Fleet, [Node], M, F, A, Ms),
    case Answer of
        {ok, Result} -> Result;
        {error, _} = Error -> Error
    end.

every(What, Answers) ->
    case [{Node, Answer} || {Node, Answer} <- Answers, Answer =/= ok] of
        [] -> ok;
        [{Node, {error, Reason}} | _] -> {error, {im, {What, Node, Reason}}}
    end.

%% Every name leads to a process that is ready, on the node where it belongs.
ready(Fleet, Conf) ->
    case sderl_fleet:await(fun() -> missing(Fleet, Conf) =:= [] end, ?READY_MS) of
        ok -> ok;
        {error, _} -> {error, {im, {names_missing, missing(Fleet, Conf)}}}
    end.

missing(Fleet, Conf) ->
    All = sderl_fleet:multicall(Fleet, sderl_fleet:nodes(Fleet), ?MODULE, names, [Conf], ?CALL_MS),
    Answers = [Answer || {_, {ok, Answer}} <- All],
    There = maps:from_list([Name || {Ready, _} <- Answers, Name <- Ready]),
    Seen = lists:usort([Name || {_, Known} <- Answers, Name <- Known]),
    [{no_answer, Node} || {Node, {error, _}} <- All] ++
        [
            Role
         || Role <- sderl_im_layout:named(Conf),
            [Pid || {R, Pid} <- Seen, R =:= Role] =/= [maps:get(Role, There, none)]
        ].

-doc """
Runs on a node: the processes of this node that are ready; and of all names that this node shares,
the processes that they lead to here.
""".
-spec names(sderl_im_layout:conf()) -> {Ready :: [{sderl_im_layout:role(), pid()}],
                                        Seen :: [{sderl_im_layout:role(), pid() | undefined}]}.
names(#{mode := Mode} = Conf) ->
    Groups =
        case Mode of rd -> [global]; rsd -> [Group || {Group, _} <- s_group:own_s_groups()] end,
    {
        [Found || Class <- [clients, chats, server, router], Found <- sderl_im_find:find(Class)],
        [
            {Role, sderl_im_net:whereis(Conf, Role)}
         || Role <- sderl_im_layout:named(Conf), {Group, _} <- [sderl_im_layout:name(Conf, Role)],
            lists:member(Group, Groups)
        ]
    }.

-doc "Runs on a node: names of the messenger that this node knows of.".
-spec names_left(sderl_im_layout:conf()) -> [term()].
names_left(#{mode := rd}) ->
    [Name || {sderl_im, _} = Name <- global:registered_names()];
names_left(#{mode := rsd}) ->
    [Name
     || {Group, _} <- s_group:own_s_groups(),
        {_, _} = Name <- s_group:registered_names({s_group, Group})].

-doc """
Stops routers, servers and clients; what is left of their names after a moment, `undefined` when a
node did not say.
""".
-spec stop(Fleet :: pid(), sderl_im_layout:conf()) -> non_neg_integer() | undefined.
stop(Fleet, #{clients := Clients} = Conf) ->
    Nodes = sderl_fleet:nodes(Fleet),
    ClientNodes = maps:values(Clients),
    _ = sderl_fleet:multicall(Fleet, [N || N <- ClientNodes, lists:member(N, Nodes)],
                              sderl_im_traffic, stop, [], ?CALL_MS),
    _ = sderl_fleet:multicall(Fleet, Nodes -- ClientNodes, sderl_im_sup, stop, [], ?CALL_MS),
    at_last(fun() ->
        Answers = [Answer
                   || {_, Answer} <- sderl_fleet:multicall(Fleet, sderl_im_layout:all_nodes(Conf),
                                                           ?MODULE, names_left, [Conf], ?CALL_MS)],
        %% Nodes that share a name count it once; one that is down has none.
        Names = lists:usort([Name || {ok, Known} <- Answers, Name <- Known]),
        [{ok, length(Names)} | [Error || {error, Reason} = Error <- Answers, Reason =/= down]]
    end).

-doc """
A run on the nodes of a fleet that has been started with such a plan. The processes of the run are
gone when it returns. A reason is a term for `sderl_papers_reason:text/1`.
""".
-spec on(Fleet :: pid(), params(), Label :: unicode:chardata()) ->
    {ok, outcome()} | {error, term()}.
on(Fleet, Params, Label) ->
    maybe
        {ok, Conf} ?= start(Fleet, Params),
        Talk = fun() -> talk(Fleet, Conf, Params, Label) end,
        All = sderl_fleet:nodes(Fleet),
        Run = fun() -> sderl_bench_profile:around(Params, Fleet, All, Talk) end,
        case ended(Fleet, Conf, Run) of
            {{ok, Outcome}, Left} -> {ok, Outcome#{names_left => Left}};
            {{error, Reason}, _} -> {error, Reason}
        end
    end.

%% Stops the messenger, however `Fun` ends.
ended(Fleet, Conf, Fun) ->
    try Fun() of
        Result -> {Result, stop(Fleet, Conf)}
    catch
        throw:{?MODULE, Reason} ->
            {{error, {im, Reason}}, stop(Fleet, Conf)};
        exit:{sderl_bench_watch, Reason} ->
            {{error, {monitoring, Reason}}, stop(Fleet, Conf)};
        Class:Reason:Stack ->
            _ = stop(Fleet, Conf),
            erlang:raise(Class, Reason, Stack)
    end.

talk(Fleet, Conf, #{monitoring := Monitoring} = Params, Label) ->
    #{clients := ClientNodes} = Conf,
    Nodes = lists:sort(maps:to_list(ClientNodes)),
    Clients = [Node || {_, Node} <- Nodes],
    maybe
        Started = sderl_fleet_task:at_once(shares(Nodes, Params), fun(Node, {J, Share}) ->
            on_node(Fleet, Node, sderl_im_traffic, start, [Conf, J, Share], ?LONG_MS)
        end),
        ok ?= every(no_clients, Started),
        %% Monitoring begins before the clients do, and ends before anything is counted on all
        %% nodes.
        All = sderl_fleet:nodes(Fleet),
        {Talked, Seen} = sderl_bench_watch:around(
            Fleet, All, Monitoring, fun() -> conversations(Fleet, All, Conf, Params, Label) end
        ),
        {ok, #{kills := Kills, status := Status, usage := Usage, began_us := FromUs}} ?= Talked,
        %% Names that have not come back are part of the result, not an error.
        Missing =
            case ready(Fleet, Conf) of ok -> []; {error, {im, {names_missing, Names}}} -> Names end,
        Results = [
            case Answer of
                {ok, Result} -> Result;
                {error, Reason} -> throw({?MODULE, {no_result, Node, Reason}})
            end
         || {Node, Answer} <- sderl_fleet:multicall(Fleet, Clients, sderl_im_traffic, finish, [],
                                                    ?LONG_MS)
        ],
        Left = sum([Answer
                    || {_, Answer} <- sderl_fleet:multicall(Fleet, Clients, sderl_im_traffic, leave,
                                                            [], ?LONG_MS)]),
        {ok, #{
            results => Results,
            usage => Usage,
            watched => Seen,
            kills => Kills,
            kills_skipped => maps:get(skipped, Status, #{}),
            kill_problems => [unicode:characters_to_binary(io_lib:format("~0tP", [Problem, 20]))
                              || Problem <- maps:get(problems, Status, [])],
            began_us => FromUs,
            missing => Missing,
            clients_left => Left,
            rows_left => rows(Fleet, Conf),
            processes_left => processes(Fleet, Conf)
        }}
    end.

%% The clients of each node, numbered through.
shares(Nodes, #{clients := Count, client_nodes := K} = Params) ->
    Common = maps:with([seconds, threshold_us, speed, seed], Params),
    [
        {Node, {J, Common#{count => J * Count div K - (J - 1) * Count div K,
                           first => 1 + (J - 1) * Count div K}}}
     || {J, Node} <- Nodes
    ].

%% From when the clients begin until the end of the measured time.
conversations(Fleet, All, #{clients := ClientNodes} = Conf,
              #{seconds := Seconds, warmup_s := WarmupS} = Params, Label) ->
    WarmupMs = round(1000 * WarmupS),
    Now = erlang:monotonic_time(millisecond),
    From = Now + ?LEAD_MS + WarmupMs,
    Until = From + 1000 * Seconds,
    FromUs = os:system_time(microsecond) + 1000 * (From - Now),
    maybe
        ok ?= every(no_traffic, [
            {Node, case Answer of {ok, ok} -> ok; Other -> {error, Other} end}
         || {Node, Answer} <-
                sderl_fleet:multicall(Fleet, maps:values(ClientNodes), sderl_im_traffic, go,
                                      [FromUs, FromUs + 1_000_000 * Seconds], ?CALL_MS)
        ]),
        {{Kills, Status}, Usage} =
            sderl_progress:during([Label, ": conversations"], Until - Now, fun() ->
                chaos(Fleet, Conf, Params, From, fun() -> measured(Fleet, All, From, Until) end)
            end),
        {ok, #{kills => Kills, status => Status, usage => Usage, began_us => FromUs}}
    end.

%% The usage of the nodes between the two times.
measured(Fleet, All, From, Until) ->
    ok = sleep_until(From),
    {ok, Usage} = sderl_bench_meter:around(Fleet, All, fun() -> sleep_until(Until) end),
    Usage.

%% Kills processes while `Fun` runs, the first one a period after `From`; then waits until all are
%% back.
chaos(_, _, #{chaos := none}, _, Fun) ->
    {{[], #{}}, Fun()};
chaos(Fleet, Conf, #{chaos := #{every_ms := EveryMs} = Chaos, seed := Seed, seconds := Seconds},
      From, Fun) ->
    FromMs = max(0, From - erlang:monotonic_time(millisecond)),
    Options = #{
        nodes => [Node || {Node, {Kind, _}} <- sderl_im_layout:roles(Conf), Kind =/= clients],
        targets => sderl_im_find:targets(maps:get(classes, Chaos, all), Conf),
        every_ms => EveryMs,
        window => {FromMs, FromMs + 1000 * Seconds},
        seed => Seed,
        limits => #{at_once => infinity},
        call => fun(Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A) end
    },
    case sderl_chaos:start(Options) of
        {ok, Service} ->
            try
                Result = Fun(),
                {killed(Service), Result}
            after
                _ = sderl_fleet_task:attempt(fun() -> sderl_chaos:stop(Service) end)
            end;
        {error, Reason} ->
            throw({?MODULE, {chaos, Reason}})
    end.

%% The final status, with the round that may still be under way.
killed(Service) ->
    _ = sderl_fleet:await(fun() -> map_get(next_ms, sderl_chaos:status(Service)) =:= over end,
                          ?ROUND_MS),
    Status = sderl_chaos:status(Service),
    {ok, Kills} = sderl_chaos:stop(Service, ?BACK_MS),
    {Kills, Status}.

%% When all clients have logged out the databases become empty: a session removes its row after it
%% has told the clients.
rows(Fleet, Conf) ->
    at_last(fun() ->
        [
            on_node(Fleet, map_get(K, map_get(servers, Conf)), sderl_im_net, call,
                    [Conf, Role, rows, 5000], ?CALL_MS)
         || {database, _, K, _} = Role <- sderl_im_layout:named(Conf)
        ]
    end).

processes(Fleet, #{servers := Servers}) ->
    at_last(fun() ->
        [Answer
         || {_, Answer} <- sderl_fleet:multicall(Fleet, maps:values(Servers), ?MODULE, processes,
                                                 [], ?CALL_MS)]
    end).

-doc "Runs on a server's node: how many client monitors and sessions there are.".
-spec processes() -> non_neg_integer().
processes() -> length(sderl_im_sup:children(monitors)) + length(sderl_im_sup:children(sessions)).

%% The sum, which should become 0 within ?LEFT_MS.
at_last(Answers) ->
    case sderl_fleet:await(fun() -> case sum(Answers()) of 0 -> true; Left -> {left, Left} end end,
                           ?LEFT_MS) of
        ok -> 0;
        {error, {timeout, {left, Left}}} -> Left;
        {error, _} -> undefined
    end.

-doc "Pure: the sum of the answers; `undefined` where one is an error.".
-spec sum([{ok, non_neg_integer()} | {error, term()}]) -> non_neg_integer() | undefined.
sum([]) ->
    0;
sum([{ok, Count} | Rest]) when is_integer(Count) ->
    case sum(Rest) of
        undefined -> undefined;
        More -> Count + More
    end;
sum([{error, _} | _]) ->
    undefined.

sleep_until(At) ->
    receive
    after max(0, At - erlang:monotonic_time(millisecond)) -> ok
    end.
