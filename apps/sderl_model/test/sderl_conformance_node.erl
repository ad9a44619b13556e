%% SPDX-License-Identifier: Apache-2.0
-module(sderl_conformance_node).

%% The part of sderl_conformance that runs on the nodes: it resets the library, calls it, and
%% reports the state of the node.

-export([stop/0, unlink/0, start/2, call/2, spawned/0, dead/0, kill/1, see/1]).

-define(CALL, 5000).

%% ---------------------------------------------------------------- anew

%% A reset has three steps: stop/0, unlink/0, start/2. All nodes finish a step before the next one
%% begins, because a node that still runs the library would connect again.
stop() ->
    _ = application:stop(sderl),
    ok.

unlink() ->
    [erlang:disconnect_node(N) || N <- nodes(connected)],
    nodes(connected) =:= [].

start(Env, Planted) ->
    lists:foreach(fun({Key, undefined}) -> application:unset_env(sderl, Key);
                     ({Key, Value}) -> application:set_env(sderl, Key, Value)
                  end, Env),
    {ok, _} = sderl_plant:start(Planted),
    ok.

%% ---------------------------------------------------------------- commands

call(F, Args) ->
    try apply(s_group, F, Args)
    catch Class:Why -> {raised, Class, Why}
    end.

%% Starts a process that leaves all messages in its mailbox.
spawned() -> spawn(fun() -> receive {?MODULE, end_} -> ok end end).

dead() ->
    {Pid, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Pid, _} -> Pid end.

kill(Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> true end.

%% ---------------------------------------------------------------- what is so

%% The view of sderl_model:view/2, from the node's own tables, which its calls read. `components`
%% tells whether the node has come to rest: it has the component of each of its groups. `strange`
%% has the links that the library on this node did not open.
see(Processes) ->
    Own = sderl_dir:memberships(),
    #{class => class(Own),
      groups => Own,
      names => sderl_names:names(),
      links => lists:sort(nodes(connected)),
      known => [{G, lists:usort(Ns)} || {G, Ns} <- sderl_dir:known()],
      processes => [{Pid, messages(Pid)}
                    || Pid <- Processes, node(Pid) =:= node(), is_process_alive(Pid)],
      components => [{G, component(Pid)} || {G, #{process := Pid}} <- sderl_dir:all()],
      strange => [N || #{node := N, opened_by := other} <- sderl_links:list()]}.

class(Own) ->
    case {lists:keymember(undefined, 1, Own), sderl_vm:is_hidden()} of
        {false, _} -> s_group;
        {true, true} -> free_hidden;
        {true, false} -> free_normal
    end.

messages(Pid) ->
    case process_info(Pid, messages) of
        {messages, Messages} -> Messages;
        undefined -> gone
    end.

component(Pid) ->
    case sderl_group:info(Pid, ?CALL) of
        {ok, #{role := Role, epoch := E, lineage := E, live := Live, aside := [], syncing := false}}
          when Role =:= coord; Role =:= follower -> {E, Live};
        {ok, Info} -> maps:with([role, epoch, lineage, live, aside, syncing], Info);
        Error -> Error
    end.
