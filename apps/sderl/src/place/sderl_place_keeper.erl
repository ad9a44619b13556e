%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_keeper).
-moduledoc false.
%% Keeps one process running on some node of a spec: runs what `sderl_place_moves` decides.
%%
%% It is linked to the process. Whatever ends the keeper, such as a lost link, ends the process, so
%% the two sides of a split do not keep two processes. Work that may block (choosing, connecting,
%% registering) is done by a helper, one at a time. A stopped node does not answer the request to
%% spawn: after a while the request is abandoned, and the runtime ends a process that it may still
%% make.

-behaviour(gen_server).

-export([start/1, start_link/1, place/1, stop/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([args/0]).

-import(sderl_clock, [now_ms/0]).

%% The helpers answer with their exit reason.
-dialyzer({nowarn_function, [help/2]}).

%% `answer`: where the outcome of the first placement goes.
-type args() ::
    #{answer := reference(), spec := sderl_place_spec:t(), mfa := {module(), atom(), [term()]},
      start := spawn | start_link, owner := pid(), name := none | {Group :: term(), Name :: term()},
      spawn_timeout_ms := pos_integer(), restart := permanent | transient | temporary,
      max_moves := non_neg_integer(), period_ms := pos_integer()}.

-record(k, {
    args :: args(),
    moves :: sderl_place_moves:t(),
    owner :: reference(),
    helper = none :: none | {pid(), reference()},
    request = none :: none | {reference(), Timer :: reference()},
    %% The parent of a process that is started: before and after it has reported.
    parent = none :: none | {starting, pid(), Timer :: reference()} | {parent_of, pid(), pid()}
}).

-doc "Waits for the first placement, of which each step has a time limit. `args()` but `answer`.".
-spec start(#{atom() => term()}) -> {ok, Keeper :: pid(), pid()} | {error, term()}.
start(Args) ->
    Alias = alias([reply]),
    case supervisor:start_child(sderl_place_sup, [Args#{answer => Alias}]) of
        {ok, Keeper} when is_pid(Keeper) ->
            Mon = monitor(process, Keeper),
            receive
                {Alias, {ok, Pid}} -> demonitor(Mon, [flush]), {ok, Keeper, Pid};
                {Alias, {error, Why}} -> demonitor(Mon, [flush]), {error, Why};
                {'DOWN', Mon, process, Keeper, Why} -> _ = unalias(Alias), {error, Why}
            end;
        {error, Why} -> _ = unalias(Alias), {error, Why}
    end.

-spec start_link(args()) -> gen_server:start_ret().
start_link(Args) -> gen_server:start_link(?MODULE, Args, []).

-spec place(pid()) -> {ok, pid()} | {error, moving | over}.
place(Keeper) ->
    try gen_server:call(Keeper, place, 5000)
    catch
        exit:_ -> {error, over}
    end.

%% As a supervisor ends its children.
-define(SHUTDOWN, 5000).

-doc "Ends the keeper and its process, and returns when both have ended.".
-spec stop(pid()) -> ok.
stop(Keeper) ->
    Place = place(Keeper),
    Mon = monitor(process, Keeper),
    gen_server:cast(Keeper, stop),
    receive {'DOWN', Mon, process, Keeper, _} -> ok end,
    case Place of
        {ok, Pid} ->
            Last = monitor(process, Pid),
            receive {'DOWN', Last, process, Pid, _} -> ok
            after ?SHUTDOWN ->
                exit(Pid, kill),
                demonitor(Last, [flush]),
                ok
            end;
        {error, _} -> ok
    end.

%% ---------------------------------------------------------------- gen_server

-spec init(args()) -> {ok, #k{}, {continue, start}}.
init(#{owner := Owner, name := Name} = Args) ->
    _ = process_flag(trap_exit, true),
    %% A request to a node that is stopped must not hold this process.
    _ = process_flag(async_dist, true),
    Moves = sderl_place_moves:new(
        (maps:with([restart, max_moves, period_ms], Args))#{named => Name =/= none}
    ),
    {ok, #k{args = Args, moves = Moves, owner = monitor(process, Owner)}, {continue, start}}.

-spec handle_continue(start, #k{}) -> {noreply, #k{}} | {stop, shutdown, #k{}}.
handle_continue(start, K) -> step(start, K).

-spec handle_call(term(), gen_server:from(), #k{}) -> {reply, term(), #k{}}.
handle_call(place, _, #k{moves = M} = K) -> {reply, sderl_place_moves:place(M), K};
handle_call(_, _, K) -> {reply, {error, unknown_call}, K}.

-spec handle_cast(term(), #k{}) -> {noreply, #k{}} | {stop, shutdown, #k{}}.
handle_cast(stop, K) -> step(stop, K);
handle_cast(_, K) -> {noreply, K}.

-spec handle_info(term(), #k{}) -> {noreply, #k{}} | {stop, shutdown, #k{}}.
handle_info({'DOWN', Ref, process, _, _}, #k{owner = Ref} = K) -> step(stop, K);
handle_info({'DOWN', Ref, process, _, Result}, #k{helper = {_, Ref}} = K) ->
    step(case Result of
        {done, Event} -> Event;
        Why -> {cannot, Why}
    end, K#k{helper = none});
handle_info({spawn_reply, Ref, ok, Parent},
            #k{request = {Ref, Timer}, args = #{start := start_link}} = K) ->
    {noreply, K#k{request = none, parent = {starting, Parent, Timer}}};
handle_info({spawn_reply, Ref, ok, Pid}, #k{request = {Ref, _}} = K) ->
    step({spawned, Pid}, K#k{request = none});
handle_info({spawn_reply, Ref, error, Why}, #k{request = {Ref, _}} = K) ->
    step({not_spawned, Why}, K#k{request = none});
handle_info({sderl_place_started, Parent, Pid}, #k{parent = {starting, Parent, _}} = K) ->
    step({spawned, Pid}, K#k{parent = {parent_of, Parent, Pid}});
handle_info({'EXIT', Parent, Why}, #k{parent = {starting, Parent, _}} = K) ->
    step({not_spawned, Why}, K#k{parent = none});
handle_info({'EXIT', Parent, Why}, #k{parent = {parent_of, Parent, Pid}} = K) ->
    step({exit, Pid, Why}, K#k{parent = none});
handle_info({give_up, Timer}, #k{parent = {starting, Parent, Timer}} = K) ->
    exit(Parent, kill),
    step({not_spawned, timeout}, K#k{parent = none});
handle_info({give_up, Timer}, #k{request = {Ref, Timer}} = K) ->
    case erlang:spawn_request_abandon(Ref) of
        true -> step({not_spawned, timeout}, K#k{request = none});
        %% The answer is in the mailbox.
        false -> {noreply, K}
    end;
handle_info({'EXIT', Pid, Why}, K) -> step({exit, Pid, Why}, K);
handle_info(_, K) -> {noreply, K}.

%% ---------------------------------------------------------------- effects

step(Event, #k{moves = M0} = K) ->
    {Effects, M} = sderl_place_moves:step(now_ms(), Event, M0),
    effects(Effects, K#k{moves = M}).

effects([], K) -> {noreply, K};
effects([finish | _], K) -> {stop, shutdown, drop(K)};
effects([Effect | Effects], K) -> effects(Effects, effect(Effect, K)).

effect({choose, Exclude}, #k{args = #{spec := Spec}} = K) ->
    #{exclude := Never} = Spec,
    Keeper = self(),
    help(fun() -> choose(Spec#{exclude := Exclude ++ Never}, Keeper) end, K);
effect({spawn, Node},
       #k{args = #{mfa := MFA, name := Name, start := Start, spawn_timeout_ms := Timeout}} = K) ->
    F = case {Start, Name} of
        {start_link, _} -> start;
        {spawn, none} -> run;
        {spawn, _} -> await_go
    end,
    Ref = erlang:spawn_request(Node, sderl_place_child, F, [self(), MFA], [link]),
    Timer = make_ref(),
    _ = erlang:send_after(Timeout, self(), {give_up, Timer}),
    K#k{request = {Ref, Timer}};
effect({name, Pid, Before}, #k{args = #{name := {Group, Name}}} = K) ->
    help(fun() -> register(Group, Name, Pid, Before) end, K);
effect({go, Pid}, #k{args = #{start := Start}} = K) ->
    _ = Start =:= spawn andalso (Pid ! {sderl_place_go, self()}),
    K;
effect({answer, Answer}, #k{args = #{answer := Alias}} = K) ->
    Alias ! {Alias, Answer},
    K;
effect({tell, Event}, #k{args = #{owner := Owner}} = K) ->
    ok = report(Event),
    %% An owner on a node without a link is about to count as gone.
    _ = erlang:send(Owner, {sderl_place, self(), Event}, [noconnect]),
    K;
effect({kill, Pid}, K) ->
    exit(Pid, shutdown),
    K;
effect({leave, Node}, K) ->
    ok = sderl_links:forget(Node, {place, self()}),
    K.

report({moved, Old, New, Why}) ->
    sderl_event:emit(process_moved, #{old => Old, pid => New, node => node(New), reason => Why});
report({failed, Why}) -> sderl_event:emit(process_lost, #{reason => Why});
report({ended, _, _}) -> ok.

drop(#k{helper = Helper, request = Request} = K) ->
    _ = case Helper of
        {Pid, Ref} -> demonitor(Ref, [flush]), exit(Pid, kill);
        none -> true
    end,
    _ = case Request of
        {Spawn, _} -> erlang:spawn_request_abandon(Spawn);
        none -> true
    end,
    K#k{helper = none, request = none}.

%% ---------------------------------------------------------------- helpers

%% One at a time: the outcome of an earlier helper is not waited for.
help(Fun, #k{helper = none} = K) -> K#k{helper = spawn_monitor(fun() -> exit({done, Fun()}) end)};
help(Fun, K) -> help(Fun, drop(K)).

choose(Spec, Keeper) ->
    case sderl_place_query:choose(Spec) of
        [Node] ->
            %% A link to a node of another group is made here, and has its reason.
            case sderl_connector:connect(Node, {place, Keeper}) of
                true -> {chosen, Node};
                false -> {unreachable, Node}
            end;
        [] -> none;
        {error, Why} -> {cannot, Why}
    end.

%% This node registers the name if it is a member, or else the node of the process. The
%% predecessor's name, whose node is lost, may still be there for a moment.
-define(PATIENCE, 15_000).
-define(LOOK, 50).

register(Group, Name, Pid, Before) ->
    At = case sderl_names:is_member(Group) of true -> node(); false -> node(Pid) end,
    register(At, Group, Name, Pid, Before, now_ms() + ?PATIENCE).

register(At, Group, Name, Pid, Before, Until) ->
    case at(At, register_name, [Group, Name, Pid]) of
        yes -> named;
        {no, name_or_pid_already_registered} ->
            case at(At, whereis_name, [Group, Name]) of
                Other when Other =:= Before; Other =:= undefined ->
                    case now_ms() < Until of
                        true ->
                            receive after ?LOOK -> ok end,
                            register(At, Group, Name, Pid, Before, Until);
                        false -> {not_named, timeout}
                    end;
                Other -> {taken, Other}
            end;
        {no, Why} -> {not_named, Why}
    end.

at(Node, F, Args) ->
    try erpc:call(Node, s_group, F, Args, ?PATIENCE)
    catch
        error:{erpc, Why} -> {no, Why};
        error:{exception, Why, _} -> {no, Why};
        exit:{exception, Why} -> {no, Why};
        exit:Why -> {no, Why}
    end.
