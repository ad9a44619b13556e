%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ct_again).

%% Nodes that one case after the other gets as if they were new: starting a virtual machine takes
%% longer than most cases. Between two cases the library starts again on each with the environment
%% that the next case asks for, nodes are linked to no other, and of the last case no process,
%% name or setting is left. Nodes that failed or were killed are not used again.
%%
%% A node may have been told the others' cookie by name, so that a case that changes a node's own
%% cookie needs nodes of its own.

-export([with/3]).
%% On the nodes.
-export([look/0, is_usable/1, stop/1, unlink/1, start/1]).

-type env() :: [{atom(), term()}].
-type fun_of_nodes() :: fun((pid(), [node()]) -> term()).

-define(CALL, 90_000).

%% So many nodes of a fleet that has at least as many.
-spec with(pos_integer(), env(), fun_of_nodes()) -> term().
with(Count, Env, Fun) ->
    #{fleet := Fleet} = Kept = take(Count, Env),
    Nodes = lists:sublist(sderl_fleet:nodes(Fleet), Count),
    try Fun(Fleet, Nodes) of
        Result -> give_back(Kept), Result
    catch
        Class:Reason:Stack ->
            drop(Kept),
            erlang:raise(Class, Reason, Stack)
    end.

%% The keeper of a fleet has it while no case does. A case that is cut off takes its fleet along.
take(Count, Env) ->
    case whereis(?MODULE) of
        undefined -> start_new(Count, Env);
        Keeper ->
            Monitor = monitor(process, Keeper),
            Keeper ! {take, self()},
            receive
                {Keeper, Kept} ->
                    demonitor(Monitor, [flush]),
                    %% What became of it meanwhile is no failure of this case.
                    try has_nodes(Count, Kept) andalso renewed(Env, Kept) of
                        false -> drop(Kept), start_new(Count, Env);
                        Renewed -> Renewed
                    catch _:_ -> drop(Kept), start_new(Count, Env)
                    end;
                {'DOWN', Monitor, process, Keeper, _} -> start_new(Count, Env)
            end
    end.

has_nodes(Count, #{fleet := Fleet}) -> length(sderl_fleet:nodes(Fleet)) >= Count.

start_new(Count, Env) ->
    Self = self(),
    {Owner, Monitor} = spawn_monitor(fun() ->
        Family = #{name => n, count => Count, apps => [sderl],
                   env => [{sderl, Key, Value} || {Key, Value} <- Env]},
        {ok, Fleet} = sderl_fleet:start(#{families => [Family]}),
        Self ! {self(), Fleet},
        own(Fleet, monitor(process, Self))
    end),
    receive
        {Owner, Fleet} ->
            demonitor(Monitor, [flush]),
            #{owner => Owner, fleet => Fleet, at_start => looks(Fleet), states => states(Fleet)};
        {'DOWN', Monitor, process, Owner, Why} -> error(Why)
    end.

%% As long as a case has the fleet it ends with the case.
own(Fleet, Case) ->
    receive
        {keep, From, Kept} ->
            demonitor(Case, [flush]),
            true = register(?MODULE, self()),
            From ! {self(), kept},
            receive
                {take, To} ->
                    true = unregister(?MODULE),
                    To ! {self(), Kept},
                    own(Fleet, monitor(process, To))
            end;
        {drop, From} ->
            ok = sderl_fleet:stop(Fleet),
            From ! {self(), dropped};
        {'DOWN', Case, process, _, _} ->
            ok = sderl_fleet:stop(Fleet)
    end.

give_back(#{fleet := Fleet, states := States, at_start := Looks, owner := Owner} = Kept) ->
    Usable = fun(Node) ->
        sderl_fleet:call(Fleet, Node, ?MODULE, is_usable, [map_get(Node, Looks)], ?CALL)
    end,
    try states(Fleet) =:= States andalso lists:all(Usable, sderl_fleet:nodes(Fleet)) of
        true -> Owner ! {keep, self(), Kept}, receive {Owner, kept} -> ok end;
        false -> drop(Kept)
    catch _:_ -> drop(Kept)
    end.

drop(#{owner := Owner}) ->
    Monitor = monitor(process, Owner),
    Owner ! {drop, self()},
    receive
        {Owner, dropped} -> demonitor(Monitor, [flush]), ok;
        {'DOWN', Monitor, process, Owner, Why} -> error(Why)
    end.

%% Each node is the same operating system process, and runs.
states(Fleet) ->
    #{Node => {Status, Pid}
      || Node := #{status := Status, os_pid := Pid} <- sderl_fleet:info(Fleet)}.

looks(Fleet) ->
    #{Node => sderl_fleet:call(Fleet, Node, ?MODULE, look, [], ?CALL)
      || Node <- sderl_fleet:nodes(Fleet)}.

%% None does a step before all have done the one before: nothing that was under way gets through.
renewed(Env, #{fleet := Fleet, at_start := Looks} = Kept) ->
    Nodes = sderl_fleet:nodes(Fleet),
    lists:foreach(fun({Step, Arguments}) ->
        [{Node, ok} = {Node, sderl_fleet:call(Fleet, Node, ?MODULE, Step, Arguments(Node), ?CALL)}
         || Node <- Nodes]
    end, [{stop, fun(Node) -> [map_get(Node, Looks)] end},
          {unlink, fun(_) -> [Nodes] end},
          {start, fun(_) -> [Env] end}]),
    Kept.

%% ---------------------------------------------------------------- on a node

%% What there is at the start, and is there again.
look() ->
    #{processes => #{Pid => [] || Pid <- processes()},
      kernel => application:get_all_env(kernel), logger => logger:get_config()}.

is_usable(#{logger := Logger}) ->
    lists:keymember(sderl, 1, application:which_applications(?CALL))
        andalso logger:get_config() =:= Logger.

stop(#{processes := Processes, kernel := Kernel}) ->
    ok = application:stop(sderl),
    ok = application:unload(sderl),
    Left = [Pid || Pid <- processes(), Pid =/= self(), not is_map_key(Pid, Processes),
                   application:get_application(Pid) =:= undefined],
    Monitors = [{Pid, monitor(process, Pid)} || Pid <- Left],
    [exit(Pid, kill) || Pid <- Left],
    [receive {'DOWN', Monitor, process, Pid, _} -> ok end || {Pid, Monitor} <- Monitors],
    [application:unset_env(kernel, Key) || {Key, _} <- application:get_all_env(kernel),
                                           not lists:keymember(Key, 1, Kernel)],
    ok = application:set_env([{kernel, Kernel}]),
    [persistent_term:erase(Key) || {Key, _} <- persistent_term:get(), is_ours(Key)],
    ok.

is_ours(Key) when is_atom(Key) -> lists:prefix("sderl", atom_to_list(Key));
is_ours(Key) when is_tuple(Key), tuple_size(Key) > 0 -> is_ours(element(1, Key));
is_ours(_) -> false.

unlink(Nodes) ->
    [erlang:set_cookie(Node, erlang:get_cookie()) || Node <- Nodes, Node =/= node()],
    sderl_fleet:await(fun() ->
        [erlang:disconnect_node(Node) || Node <- nodes(connected)],
        nodes(connected) =:= []
    end, ?CALL).

start(Env) ->
    ok = forget_log(),
    ok = application:load(sderl),
    [application:unset_env(sderl, Key) || {Key, _} <- application:get_all_env(sderl)],
    ok = application:set_env([{sderl, Env}]),
    application:start(sderl).

%% Cases look for lines in it. What follows is appended.
forget_log() ->
    case logger:get_handler_config(default) of
        {ok, #{config := #{file := File}}} ->
            ok = logger_std_h:filesync(default),
            file:write_file(File, []);
        _ -> ok
    end.
