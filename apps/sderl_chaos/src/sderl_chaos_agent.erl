%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_agent).
-moduledoc """
The agent of the chaos service on a node: finds what may be killed there, kills it when told to, and
measures on this node's clock when it is back.

It needs nothing but kernel and stdlib, so that the module alone can be loaded into nodes that do
not have it (`code:load_binary/3`), and it removes that code when it ends (see `origin/0`).

It ends with the service: when the service says so, when the process of the service ends (where it
can be monitored), and when it has heard nothing from the service for its *lease*. It then stops
waiting for things to come back; killed processes stay killed.
""".

-behaviour(gen_server).

-export([version/0, origin/0, start/1, clock/0, look/4, strike/5, beat/3, finish/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([spec/0, conf/0, order/0, struck/0, report/0]).

-doc "What to look for on a node.".
-type spec() ::
    {find, {module(), atom(), [term()]}}
    | {module, module()}
    | {supervisor, atom()}
    | {name, Scope :: local | global | {s_group, term()}, Names :: [term()] | all}
    | {link, Peers :: [node()]}.

-doc """
`owner`: the process to monitor; `undefined` where it is on no node that is linked to this one.
`lease_ms`: the agent ends when it has heard nothing from the service for so long. `never`: names of
processes that are not to be killed. `library`: whether the processes of the application `sderl` may
be; `tops`: whether the top supervisors of applications may be.
""".
-type conf() ::
    #{owner := pid() | undefined, lease_ms := pos_integer(), never := [term()],
      library := boolean(), tops := boolean()}.

-doc """
An order for one thing, with its time limit by this node's clock (`clock/0`): an order that was
delayed must not be carried out when nobody waits for it any more.
""".
-type order() ::
    #{number := pos_integer(), dry := boolean(), await := boolean(), until_ms := integer()}.

-doc """
The killed process, or the node at the other end of the killed link; `system_us` is the time of day
on this node.
""".
-type struck() :: #{key := term(), pid := pid() | node(), system_us := integer()}.

-doc "The microseconds from the kill until it was back.".
-type report() :: {Number :: pos_integer(), BackUs :: non_neg_integer()}.

-record(state, {
    conf :: conf(),
    owner :: reference() | undefined,
    heard :: integer(),
    %% For each target that was looked for: what may be killed, and all that was found.
    seen = #{} :: #{term() => {Candidates :: tuple(), All :: [thing()]}},
    watchers = #{} :: #{pid() => {Number :: pos_integer(), Target :: term(), Key :: term()}},
    reports = #{} :: #{Number :: pos_integer() => BackUs :: non_neg_integer()},
    %% Orders whose answer was lost and that the agent has reported as not carried out: they must
    %% not be carried out later.
    void = #{} :: #{Number :: pos_integer() => true}
}).

-type thing() :: {Key :: term(), pid() | node()}.

%% To be increased when the functions or their answers change.
-define(VERSION, 2).
%% The file name of code that the service has loaded.
-define(LOADED, "sderl_chaos_agent loaded by sderl_chaos").
-define(CALL_MS, 5000).
%% For so long after a kill the agent looks without a pause.
-define(SPIN_US, 2000).
-define(SHORT_LOOK_US, 200).
-define(LONGEST_PAUSE_MS, 1000).
-define(REMOTE_MS, 1000).
-define(LINK_DOWN_MS, 10_000).

%% The processes that keep a node running. Processes of these applications are not killed, whatever
%% they are called.
-define(SYSTEM, [kernel, stdlib, sasl, compiler]).
-define(SYSTEM_MODULES, [
    ?MODULE, application_master, init, erl_init, erts_internal, erts_code_purger,
    erts_literal_area_collector,
    erts_dirty_process_signal_handler, erts_trace_cleaner, prim_file, socket_registry, heart, peer
]).
-define(SYSTEM_NAMES, [
    init, heart, kernel_sup, kernel_safe_sup, kernel_refc, application_controller, code_server,
    erl_prim_loader, error_logger, erl_signal_server, erts_code_purger, file_server_2, fs_server,
    global_group, global_name_server, global_group_check, inet_db, inet_gethostbyname_db, logger,
    logger_handler_watcher, logger_olp, logger_proxy, logger_sup, logger_std_h_default, net_kernel,
    net_sup, auth, erl_epmd, rex, erpc, socket_registry, standard_error, standard_error_sup, user,
    user_drv, user_drv_writer, timer_server, release_handler, sasl_sup, sasl_safe_sup,
    alarm_handler, pg
]).

-doc "The version of the calls between service and agent.".
-spec version() -> pos_integer().
version() -> ?VERSION.

-doc """
The file name under which the service loads the module into nodes that lack it: such code goes with
the last agent.
""".
-spec origin() -> string().
origin() -> ?LOADED.

-doc "Starts an agent on this node.".
-spec start(conf()) -> gen_server:start_ret().
start(Conf) -> gen_server:start(?MODULE, Conf, []).

-doc "This node's clock, in milliseconds.".
-spec clock() -> integer().
clock() -> now_ms().

%% The functions below run on the node, in the process of the call, so that a user's function that
%% hangs or raises does not stop the agent.

-doc "How many things may be killed of a target.".
-spec look(pid(), Target :: term(), spec(), conf()) ->
    {ok, Count :: non_neg_integer()} | {error, gone | term()}.
look(Agent, Target, Spec, Conf) ->
    try things(Spec) of
        {ok, All} ->
            Protected = protected(Conf),
            ask(Agent, {seen, Target, [T || T <- All, not is_protected(T, Conf, Protected)], All});
        {error, _} = Error -> Error
    catch
        Class:Reason -> {error, {Class, Reason}}
    end.

-doc """
Kills the `Nth` of what was last seen of a target, or, `dry`, only tells which it would be.
`missed`: it is not there any more; `late`: it is after `until_ms`.
""".
-spec strike(pid(), Target :: term(), spec(), Nth :: pos_integer(), order()) ->
    {ok, struck()} | {error, missed | late | gone | timeout}.
strike(Agent, Target, Spec, Nth, Order) -> ask(Agent, {strike, Target, Spec, Nth, Order}).

-doc """
Tells the agent that the service is alive, has the reports `Had` already, and got no answer to the
orders `Lost`. Gives the other reports, and those of `Lost` that were carried out and are watched;
the rest of `Lost` was not carried out and will not be.
""".
-spec beat(pid(), Had :: [pos_integer()], Lost :: [pos_integer()]) ->
    {ok, [report()], Watched :: [pos_integer()]} | {error, gone | timeout}.
beat(Agent, Had, Lost) -> ask(Agent, {beat, Had, Lost}).

-doc "Ends the agent, and gives its last reports.".
-spec finish(pid()) -> {ok, [report()]} | {error, gone | timeout}.
finish(Agent) ->
    Monitor = monitor(process, Agent),
    Answer = ask(Agent, finish),
    receive
        {'DOWN', Monitor, process, _, _} -> Answer
    end.

ask(Agent, Request) ->
    try
        gen_server:call(Agent, Request, ?CALL_MS)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:_ -> {error, gone}
    end.

%% Candidates

things({find, {M, F, A}}) ->
    Found = apply(M, F, A),
    case is_list(Found) andalso lists:all(fun is_thing/1, Found) of
        true ->
            {ok, [{Key, Pid} || {Key, Pid} <- Found, node(Pid) =:= node(), is_process_alive(Pid)]};
        false -> {error, {no_list_of_keys_and_pids, {M, F, A}}}
    end;
things({module, Module}) ->
    {ok, [{key(Module, Pid), Pid} || Pid <- processes(), Pid =/= self(), runs(Module, Pid)]};
things({supervisor, Name}) ->
    case whereis(Name) of
        Pid when is_pid(Pid) ->
            {ok, [{{Name, Id}, Child}
                  || {Id, Child, _, _} <- supervisor:which_children(Pid), is_pid(Child),
                     node(Child) =:= node()]};
        _ ->
            {ok, []}
    end;
things({name, Scope, Names}) ->
    {ok, [{Name, Pid}
          || Name <- names(Scope, Names), Pid <- [whereis_name(Scope, Name)], is_pid(Pid),
             node(Pid) =:= node()]};
%% A link belongs to one of its ends.
things({link, Peers}) ->
    {ok, [{{node(), Peer}, Peer}
          || Peer <- nodes(connected), Peer > node(), lists:member(Peer, Peers)]}.

is_thing({_, Pid}) -> is_pid(Pid);
is_thing(_) -> false.

runs(Module, Pid) ->
    case proc_lib:translate_initial_call(Pid) of
        {Module, _, _} -> true;
        _ -> false
    end.

%% A restarted process gets the same key: the local name, or without one the module alone.
key(Module, Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> {Module, Name};
        _ -> Module
    end.

names(local, all) -> registered();
names(global, all) -> global:registered_names();
names({s_group, Group}, all) ->
    %% The library may not be on this node, or the node in another group.
    try apply(s_group, registered_names, [{s_group, Group}]) of
        Names when is_list(Names) -> [Name || {_, Name} <- Names];
        {error, _} -> []
    catch
        error:undef -> []
    end;
names(_, Names) -> Names.

whereis_name(local, Name) when is_atom(Name) -> whereis(Name);
whereis_name(local, _) -> undefined;
whereis_name(global, Name) -> global:whereis_name(Name);
whereis_name({s_group, Group}, Name) ->
    try
        apply(s_group, whereis_name, [Group, Name])
    catch
        error:undef -> undefined
    end.

%% Protected processes

%% Those with a protected name in any namespace, and those that init has started.
protected(#{never := Never}) ->
    Scopes = [local, global | [{s_group, G} || G <- own_groups()]],
    Names = [{local, Name} || Name <- ?SYSTEM_NAMES] ++
        [{Scope, Name} || Name <- Never, Scope <- Scopes],
    %% A node ends with a process that init has started, such as heart, which belongs to no
    %% application.
    {links, Links} = process_info(whereis(init), links),
    maps:from_keys([Pid || Pid <- Links, is_pid(Pid)] ++
                   [Pid || {Scope, Name} <- Names, Pid <- [whereis_name(Scope, Name)], is_pid(Pid)],
                   true).

own_groups() ->
    try apply(s_group, own_s_groups, []) of
        Groups when is_list(Groups) -> [undefined | [G || {G, _} <- Groups]];
        {error, _} -> []
    catch
        error:undef -> []
    end.

is_protected({_, Node}, _, _) when is_atom(Node) -> false;
is_protected({Key, Pid}, #{never := Never} = Conf, Protected) ->
    is_map_key(Pid, Protected) orelse lists:member(Key, Never) orelse is_system(Pid, Conf).

is_system(Pid, #{library := Library, tops := Tops}) ->
    Calls = [proc_lib:translate_initial_call(Pid) | initial_call(Pid)],
    lists:any(fun({Module, _, _}) -> lists:member(Module, ?SYSTEM_MODULES) end, Calls) orelse
        (not Tops andalso is_top(Pid)) orelse
        case application:get_application(Pid) of
            {ok, sderl} -> not Library;
            {ok, App} -> lists:member(App, ?SYSTEM);
            undefined -> false
        end.

initial_call(Pid) -> [Call || {initial_call, Call} <- [process_info(Pid, initial_call)]].

%% The first process of an application. The application ends with it and is not started again; the
%% end of a permanent application ends the node.
is_top(Pid) ->
    case process_info(Pid, parent) of
        {parent, Parent} when is_pid(Parent), node(Parent) =:= node() ->
            initial_call(Parent) =:= [{application_master, start_it, 4}];
        _ -> false
    end.

%% The agent

-doc false.
-spec init(conf()) -> {ok, #state{}}.
init(#{owner := Owner, lease_ms := Lease} = Conf) ->
    _ = process_flag(trap_exit, true),
    _ = erlang:send_after(Lease, self(), lease),
    Monitor =
        case Owner of
            undefined -> undefined;
            Pid -> monitor(process, Pid)
        end,
    {ok, #state{conf = Conf, owner = Monitor, heard = now_ms()}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}} | {stop, normal, term(), #state{}}.
handle_call(finish, _From, #state{reports = Reports} = State) ->
    {stop, normal, {ok, maps:to_list(Reports)}, State};
handle_call(Request, From, #state{conf = #{lease_ms := Lease}, heard = Heard} = State) ->
    %% On a node that was stopped this message may come before the timer of the lease fires.
    case now_ms() - Heard > Lease of
        true -> {stop, normal, {error, gone}, State};
        false -> handle_word(Request, From, State#state{heard = now_ms()})
    end.

handle_word({seen, Target, Candidates, All}, _From,
            #state{seen = Seen, watchers = Watchers} = State) ->
    Away = [Key || {_, T, Key} <- maps:values(Watchers), T =:= Target],
    Free = list_to_tuple(lists:sort([C
                                     || {Key, _} = C <- Candidates, not lists:member(Key, Away)])),
    {reply, {ok, tuple_size(Free)}, State#state{seen = Seen#{Target => {Free, All}}}};
handle_word({strike, Target, Spec, Nth, #{number := Number, until_ms := Until} = Order}, From,
            #state{seen = Seen, watchers = Watchers, void = Void} = State) ->
    IsLate = now_ms() > Until orelse is_map_key(Number, Void),
    case Seen of
        _ when IsLate ->
            {reply, {error, late}, State};
        #{Target := {Free, All}} when Nth =< tuple_size(Free) ->
            {Key, Thing} = element(Nth, Free),
            Same = [T || {K, T} <- All, K =:= Key],
            Agent = self(),
            Watcher = spawn_link(fun() -> strike(Agent, From, Spec, Key, Thing, Same, Order) end),
            {noreply, State#state{watchers = Watchers#{Watcher => {Number, Target, Key}}}};
        _ ->
            {reply, {error, missed}, State}
    end;
handle_word({beat, Had, Lost}, _From,
            #state{reports = Reports, watchers = Watchers, void = Void} = State) ->
    Left = maps:without(Had, Reports),
    Watched = [Number || {Number, _, _} <- maps:values(Watchers), lists:member(Number, Lost)],
    {reply, {ok, maps:to_list(Left), Watched},
     State#state{reports = Left, void = maps:merge(Void, maps:from_keys(Lost -- Watched, true))}}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Message, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, normal, #state{}}.
handle_info({back, Number, BackUs}, #state{reports = Reports} = State) ->
    {noreply, State#state{reports = Reports#{Number => BackUs}}};
handle_info({'EXIT', Watcher, _}, #state{watchers = Watchers} = State) ->
    {noreply, State#state{watchers = maps:remove(Watcher, Watchers)}};
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) ->
    {stop, normal, State};
handle_info(lease, #state{conf = #{lease_ms := Lease}, heard = Heard} = State) ->
    case Heard + Lease - now_ms() of
        Left when Left > 0 ->
            _ = erlang:send_after(Left, self(), lease),
            {noreply, State};
        _ ->
            {stop, normal, State}
    end;
handle_info(_Message, State) ->
    {noreply, State}.

-doc false.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{watchers = Watchers}) ->
    lists:foreach(
        fun(Watcher) ->
            exit(Watcher, kill),
            receive
                {'EXIT', Watcher, _} -> ok
            end
        end,
        maps:keys(Watchers)
    ),
    unload().

%% Code that the service has loaded is removed by the last agent. Another process purges it, because
%% a purge ends the processes that still run the code, as this one does.
unload() ->
    Others = [P
              || P <- processes(), P =/= self(),
                 proc_lib:translate_initial_call(P) =:= {?MODULE, init, 1}],
    case code:is_loaded(?MODULE) of
        {file, ?LOADED} when Others =:= [] ->
            _ = code:delete(?MODULE),
            _ = spawn(code, purge, [?MODULE]),
            ok;
        _ ->
            ok
    end.

%% A watcher: kills, and waits for the return

strike(Agent, From, Spec, Key, Thing, Same, #{number := Number, dry := Dry, await := Await}) ->
    Struck = #{key => Key, pid => Thing, system_us => erlang:system_time(microsecond)},
    case is_there(Spec, Key, Thing) of
        false ->
            gen_server:reply(From, {error, missed});
        true when Dry ->
            gen_server:reply(From, {ok, Struck});
        true ->
            Since = hit(Spec, Thing),
            gen_server:reply(From, {ok, Struck}),
            case Await of
                true ->
                    ok = wait(Spec, Key, Thing, Same, Since),
                    Agent ! {back, Number, now_us() - Since},
                    ok;
                false ->
                    ok
            end
    end.

is_there({link, _}, _, Peer) -> lists:member(Peer, nodes(connected));
is_there({name, Scope, _}, Name, Pid) ->
    whereis_name(Scope, Name) =:= Pid andalso is_process_alive(Pid);
is_there(_, _, Pid) -> is_process_alive(Pid).

hit({link, _}, Peer) ->
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    Since = now_us(),
    _ = erlang:disconnect_node(Peer),
    Since;
hit(_, Pid) ->
    Since = now_us(),
    exit(Pid, kill),
    Since.

wait({link, _}, _, Peer, _, _) ->
    receive
        {nodedown, Peer, _} -> ok
    after ?LINK_DOWN_MS -> ok
    end,
    receive
        {nodeup, Peer, _} -> ok
    end;
wait(Spec, Key, Pid, Same, Since) ->
    Looked = now_us(),
    case is_back(Spec, Key, Pid, Same) of
        true ->
            ok;
        false ->
            Now = now_us(),
            pause(Now - Since, Now - Looked),
            wait(Spec, Key, Pid, Same, Since)
    end.

%% At first without a pause, so that the timer does not limit the resolution; then a pause of a
%% fiftieth of the time so far. After a slow look the pause is longer, so that looking does not take
%% the processor from the process that is to come back.
pause(AwayUs, LookUs) when AwayUs < ?SPIN_US, LookUs < ?SHORT_LOOK_US ->
    erlang:yield();
pause(AwayUs, LookUs) ->
    receive
    after min(?LONGEST_PAUSE_MS, max(1, max(AwayUs div 50, 4 * LookUs) div 1000)) -> ok
    end.

is_back({name, Scope, _}, Name, Pid, _) ->
    case whereis_name(Scope, Name) of
        New when is_pid(New), New =/= Pid -> is_alive(New);
        _ -> false
    end;
is_back(Spec, Key, _, Same) ->
    try
        things(Spec)
    of
        {ok, Things} ->
            lists:any(fun({K, P}) ->
                K =:= Key andalso not lists:member(P, Same) andalso is_process_alive(P)
            end, Things);
        {error, _} -> false
    catch
        %% A process that the search needs may have been killed, too.
        _:_ -> false
    end.

%% A name may come back on another node. Only a node that is linked already is asked, so that the
%% question opens no link.
is_alive(Pid) when node(Pid) =:= node() ->
    is_process_alive(Pid);
is_alive(Pid) ->
    lists:member(node(Pid), nodes(connected)) andalso
        try
            erpc:call(node(Pid), erlang, is_process_alive, [Pid], ?REMOTE_MS)
        catch
            _:_ -> false
        end.

%% Not `sderl_clock`: this node may lack all other modules of this project.
now_us() -> erlang:monotonic_time(microsecond).

now_ms() -> erlang:monotonic_time(millisecond).
