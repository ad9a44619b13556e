%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_server).
-moduledoc false.

%% The process of a fleet: it knows the nodes and what is being done to them.
%%
%% It never waits for a node. Each operation is a job, a linked process that does the work
%% and sends its outcome; a job owns its nodes while it runs, so that kill, restart and the
%% like of one node follow one another, and those of different nodes run side by side.
%% Operations on a node that another job owns wait in the order they came.
%%
%% The fleet ends with its owner (the caller of start/1), with a process of the driver, or
%% when asked to. Ending is one step for all nodes at once: the driver's close/1.

-behaviour(gen_server).

-export([start/1, start_nodes/2, stop/1, operate/3, nodes/1, where/2, info/1, connection_info/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(STOP_TIMEOUT, 10_000).

-record(node, {
    spec :: sderl_fleet_plan:node_spec(),
    status = down :: running | suspended | down,
    handle :: undefined | sderl_fleet_driver:handle(),
    monitor :: undefined | reference(),
    started :: undefined | integer()
}).

-record(job, {
    nodes :: [node()],
    from :: gen_server:from(),
    %% Nodes that are forgotten when the job fails.
    new = [] :: [node()],
    outcome = none :: none | {outcome, term()}
}).

-record(state, {
    plan :: sderl_fleet_plan:parsed(),
    driver :: {module(), sderl_fleet_driver:state()},
    owner :: reference(),
    nodes = #{} :: #{node() => #node{}},
    %% In plan order, later ones behind.
    order = [] :: [node()],
    jobs = #{} :: #{pid() => #job{}},
    waiting = [] :: [{[node()], gen_server:from(), operation()}]
}).

%% `New`: nodes that are forgotten when the start fails.
-type operation() :: stop | kill | restart | suspend | resume | {start, New :: [node()]}.

%% Called in the client

-spec start(term()) -> {ok, pid()} | {error, term()}.
start(Plan) ->
    case sderl_fleet_plan:parse(Plan, sderl_fleet_home:random(4, lower), default_paths()) of
        {ok, #{owner := Owner} = Parsed} when is_pid(Owner) -> start_parsed(Parsed);
        {ok, Parsed} -> start_parsed(Parsed#{owner := self()});
        {error, Bad} -> {error, Bad}
    end.

start_parsed(Parsed) ->
    case gen_server:start(?MODULE, Parsed, [{timeout, infinity}]) of
        {ok, Fleet} -> boot(Fleet);
        {error, Reason} -> {error, Reason}
    end.

boot(Fleet) ->
    try gen_server:call(Fleet, boot, infinity) of
        {ok, _} ->
            {ok, Fleet};
        {error, Reason} ->
            ok = stop(Fleet),
            {error, Reason}
    catch
        exit:{Reason, {gen_server, call, _}} -> {error, {fleet_ended, Reason}}
    end.

%% The nodes can run all that the caller can run; they have OTP's own paths and ".". A code path may
%% hold archives of an escript, which nodes cannot read.
default_paths() ->
    Otp = filename:absname(code:lib_dir()),
    [
        Dir
     || Path <- code:get_path(),
        Path =/= ".",
        Dir <- [filename:absname(Path)],
        not lists:prefix(Otp ++ "/", Dir),
        filelib:is_dir(Dir)
    ].

-spec start_nodes(pid(), term()) -> {ok, [node()]} | {error, term()}.
start_nodes(Fleet, Added) ->
    gen_server:call(Fleet, {start_nodes, Added}, infinity).

-spec stop(pid()) -> ok.
stop(Fleet) ->
    Ref = monitor(process, Fleet),
    try
        gen_server:stop(Fleet, normal, infinity)
    catch
        %% It was ending already, or had ended.
        exit:_ -> ok
    end,
    receive
        {'DOWN', Ref, process, _, _} -> ok
    end.

-spec operate(pid(), node(), operation()) -> term().
operate(Fleet, Node, Operation) ->
    gen_server:call(Fleet, {operate, Node, Operation}, infinity).

-spec nodes(pid()) -> [node()].
nodes(Fleet) ->
    gen_server:call(Fleet, nodes, infinity).

-spec where(pid(), [node()]) ->
    #{node() => {up, module(), sderl_fleet_driver:handle()} | down | unknown}.
where(Fleet, Nodes) ->
    gen_server:call(Fleet, {where, Nodes}, infinity).

-spec connection_info(pid()) -> sderl_fleet_driver:connection_info().
connection_info(Fleet) ->
    gen_server:call(Fleet, connection_info, infinity).

-spec info(pid()) -> #{node() => sderl_fleet:node_info()}.
info(Fleet) ->
    {Driver, Nodes} = gen_server:call(Fleet, info, infinity),
    #{Name => describe(Driver, Node) || Name := Node <- Nodes}.

describe(Driver, #node{spec = Spec, status = Status, handle = Handle, started = Started}) ->
    Base = (maps:with([family, index, hidden], Spec))#{status => Status, started => Started},
    case Handle of
        undefined ->
            Base#{os_pid => undefined, memory_kib => undefined, args => maps:get(args, Spec)};
        _ ->
            Base#{
                os_pid => Driver:os_pid(Handle),
                memory_kib => Driver:memory_kib(Handle),
                args => Driver:arguments(Handle)
            }
    end.

%% gen_server

-spec init(sderl_fleet_plan:parsed()) -> {ok, #state{}} | {error, term()}.
init(#{owner := Owner, driver := {Driver, Options}, tag := Tag, nodes := Specs} = Plan) ->
    process_flag(trap_exit, true),
    Monitor = monitor(process, Owner),
    case Driver:open(#{tag => Tag, places => places(Specs)}, Options) of
        {ok, DriverState} ->
            {ok, #state{
                plan = Plan#{nodes := []},
                driver = {Driver, DriverState},
                owner = Monitor,
                nodes = #{Node => #node{spec = Spec} || #{node := Node} = Spec <- Specs},
                order = [Node || #{node := Node} <- Specs]
            }};
        {error, Reason} ->
            {error, Reason}
    end.

places(Specs) ->
    Hosts = lists:foldl(
        fun(#{wrap := Wrap, host := Host}, Acc) ->
            maps:update_with(Wrap, fun(Hs) -> lists:usort([Host | Hs]) end, [Host], Acc)
        end,
        #{},
        Specs
    ),
    lists:sort(maps:to_list(Hosts)).

-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}}.
handle_call(boot, From, #state{order = Order} = State) ->
    {noreply, submit({Order, From, {start, []}}, State)};
handle_call({start_nodes, Added}, From, #state{plan = Plan, nodes = Nodes} = State) ->
    Known = #{Name => Spec || Name := #node{spec = Spec} <- Nodes},
    case sderl_fleet_plan:add(Added, Plan, Known) of
        {ok, Specs, Plan1} -> start_specs(Specs, From, State#state{plan = Plan1});
        {error, Bad} -> {reply, {error, Bad}, State}
    end;
handle_call({operate, Name, Operation}, From, #state{nodes = Nodes} = State) ->
    case Nodes of
        #{Name := _} -> {noreply, submit({[Name], From, Operation}, State)};
        #{} -> {reply, {error, {unknown_node, Name}}, State}
    end;
handle_call(nodes, _From, #state{nodes = Nodes, order = Order} = State) ->
    {reply, [Name || Name <- Order, (maps:get(Name, Nodes))#node.status =:= running], State};
handle_call({where, Names}, _From, #state{nodes = Nodes, driver = {Driver, _}} = State) ->
    {reply, #{Name => whereabouts(Name, Nodes, Driver) || Name <- Names}, State};
handle_call(info, _From, #state{nodes = Nodes, driver = {Driver, _}} = State) ->
    {reply, {Driver, Nodes}, State};
handle_call(connection_info, _From, #state{driver = {Driver, DriverState}, plan = Plan} = State) ->
    {reply, maps:merge(maps:with([tag, host], Plan), Driver:connection_info(DriverState)), State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({node_up, Name, Handle}, State) ->
    {noreply, node_up(Name, Handle, State)};
handle_info({node_down, Name}, State) ->
    {noreply, update(Name, fun down/1, State)};
handle_info({outcome, Pid, Outcome}, #state{jobs = Jobs} = State) ->
    #{Pid := Job} = Jobs,
    {noreply, State#state{jobs = Jobs#{Pid := Job#job{outcome = {outcome, Outcome}}}}};
handle_info({'EXIT', Pid, Reason}, #state{jobs = Jobs} = State) ->
    case maps:take(Pid, Jobs) of
        {Job, Jobs1} -> {noreply, next(finished(Job, Reason, State#state{jobs = Jobs1}))};
        error when Reason =:= normal -> {noreply, State};
        error -> {stop, {shutdown, {driver, Reason}}, State}
    end;
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) ->
    {stop, {shutdown, owner}, State};
handle_info({'DOWN', Monitor, process, _, _}, #state{nodes = Nodes} = State) ->
    Down = #{Name => down(Node) || Name := #node{monitor = M} = Node <- Nodes, M =:= Monitor},
    {noreply, State#state{nodes = maps:merge(Nodes, Down)}};
handle_info(_, State) ->
    {noreply, State}.

%% Jobs end first, so that none starts a node that close/1 does not see.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{jobs = Jobs, driver = {Driver, DriverState}}) ->
    Monitors = [{Pid, monitor(process, Pid)} || Pid := _ <- Jobs],
    _ = [exit(Pid, kill) || {Pid, _} <- Monitors],
    _ = [
        receive
            {'DOWN', Ref, process, _, _} -> ok
        end
     || {_, Ref} <- Monitors
    ],
    _ = Driver:close(DriverState),
    ok.

%% Nodes

whereabouts(Name, Nodes, Driver) ->
    case Nodes of
        #{Name := #node{handle = undefined}} -> down;
        #{Name := #node{handle = Handle}} -> {up, Driver, Handle};
        #{} -> unknown
    end.

node_up(Name, Handle, #state{nodes = Nodes, driver = {Driver, _}} = State) ->
    #{Name := Node} = Nodes,
    Up = Node#node{
        status = running,
        handle = Handle,
        monitor = monitor(process, Driver:control(Handle)),
        started = erlang:system_time(millisecond)
    },
    State#state{nodes = Nodes#{Name := Up}}.

down(#node{monitor = Monitor} = Node) ->
    Monitor =:= undefined orelse demonitor(Monitor, [flush]),
    Node#node{status = down, handle = undefined, monitor = undefined}.

update(Name, Fun, #state{nodes = Nodes} = State) ->
    State#state{nodes = maps:update_with(Name, Fun, Nodes)}.

start_specs(Specs, From, #state{nodes = Nodes, order = Order} = State) ->
    Names = [Name || #{node := Name} <- Specs],
    Up = [Name || Name <- Names, #{Name := #node{status = Status}} <- [Nodes], Status =/= down],
    case Up of
        [Name | _] ->
            {reply, {error, {already_running, Name}}, State};
        [] ->
            Merge = fun(#{node := Name} = Spec, Acc) ->
                Acc#{Name => (maps:get(Name, Acc, #node{spec = Spec}))#node{spec = Spec}}
            end,
            New = [Name || Name <- Names, not is_map_key(Name, Nodes)],
            State1 = State#state{nodes = lists:foldl(Merge, Nodes, Specs), order = Order ++ New},
            {noreply, submit({Names, From, {start, New}}, State1)}
    end.

%% Jobs

submit({Names, From, _} = Request, State) ->
    case busy(Names, State) of
        true -> State#state{waiting = State#state.waiting ++ [Request]};
        false when Names =:= [] -> gen_server:reply(From, {ok, []}), State;
        false -> run(Request, State)
    end.

busy(Names, #state{jobs = Jobs, waiting = Waiting}) ->
    AtWork = [Job#job.nodes || Job <- maps:values(Jobs)],
    Taken = lists:append(AtWork ++ [Ns || {Ns, _, _} <- Waiting]),
    lists:any(fun(Name) -> lists:member(Name, Taken) end, Names).

%% A job has ended: those that waited try again, in their order.
next(#state{waiting = Waiting} = State) ->
    lists:foldl(fun submit/2, State#state{waiting = []}, Waiting).

run({Names, From, Operation}, State) ->
    #state{nodes = Nodes, driver = Driver, plan = Plan, jobs = Jobs} = State,
    Server = self(),
    Targets = [{Name, maps:get(Name, Nodes)} || Name <- Names],
    Pid = spawn_link(fun() ->
        Server ! {outcome, self(), perform(Operation, Targets, Driver, Plan, Server)}
    end),
    New =
        case Operation of
            {start, Ns} -> Ns;
            _ -> []
        end,
    State#state{jobs = Jobs#{Pid => #job{nodes = Names, from = From, new = New}}}.

finished(#job{from = From, nodes = Names, outcome = Outcome, new = New}, Reason, State) ->
    {Reply, Changes} =
        case Outcome of
            {outcome, {R, Cs}} -> {R, Cs};
            none -> {{error, {crashed, Reason}}, []}
        end,
    State1 = lists:foldl(fun(Change, S) -> change(Change, Names, S) end, State, Changes),
    gen_server:reply(From, Reply),
    case Reply of
        {error, _} -> forget(New, State1);
        _ -> State1
    end.

change(down, Names, State) ->
    lists:foldl(fun(Name, S) -> update(Name, fun down/1, S) end, State, Names);
change(Status, [Name], State) ->
    %% It may have ended meanwhile.
    update(
        Name,
        fun
            (#node{status = down} = Node) -> Node;
            (Node) -> Node#node{status = Status}
        end,
        State
    ).

forget(Names, #state{nodes = Nodes, order = Order} = State) ->
    State#state{nodes = maps:without(Names, Nodes), order = Order -- Names}.

%% In the job's process: {Reply, Changes}

perform({start, _}, Targets, Driver, Plan, Server) ->
    Specs = [Spec || {_, #node{spec = Spec, status = down}} <- Targets],
    Up = [Name || {Name, #node{status = Status}} <- Targets, Status =/= down],
    case Up of
        [] ->
            case sderl_fleet_boot:start(Specs, Driver, Plan, Server) of
                ok -> {{ok, [Name || {Name, _} <- Targets]}, []};
                {error, Reason} -> {{error, Reason}, [down]}
            end;
        [Name | _] ->
            {{error, {already_running, Name}}, []}
    end;
perform(restart, [{Name, #node{spec = Spec} = Node}], Driver, Plan, Server) ->
    _ = perform(stop, [{Name, Node}], Driver, Plan, Server),
    Server ! {node_down, Name},
    case sderl_fleet_boot:start([Spec], Driver, Plan#{progress := fun(_, _) -> ok end}, Server) of
        ok -> {{ok, Name}, []};
        {error, Reason} -> {{error, Reason}, [down]}
    end;
perform(Operation, [{Name, #node{status = down}}], _, _, _) ->
    case Operation of
        _ when Operation =:= stop; Operation =:= kill -> {ok, []};
        _ -> {{error, {down, Name}}, []}
    end;
perform(stop, [{_, #node{handle = Handle}}], {Driver, DriverState}, _, _) ->
    ok = Driver:stop_node(Handle, ?STOP_TIMEOUT, DriverState),
    {ok, [down]};
perform(kill, [{_, #node{handle = Handle}}], {Driver, DriverState}, _, _) ->
    ok = Driver:kill_node(Handle, DriverState),
    {ok, [down]};
perform(suspend, [{Name, #node{handle = Handle}}], {Driver, DriverState}, _, _) ->
    status(Driver:suspend_node(Handle, DriverState), suspended, Name);
perform(resume, [{Name, #node{handle = Handle}}], {Driver, DriverState}, _, _) ->
    status(Driver:resume_node(Handle, DriverState), running, Name).

status(ok, Status, _) -> {ok, [Status]};
status({error, down}, _, Name) -> {{error, {down, Name}}, []};
status({error, Reason}, _, _) -> {{error, Reason}, []}.
