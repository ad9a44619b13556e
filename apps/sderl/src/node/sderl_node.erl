%% SPDX-License-Identifier: Apache-2.0
-module(sderl_node).
-moduledoc false.
%% One process a node: which groups this node has a process for.
%%
%% Other nodes' groups say hello to its registered name first, so it decides about groups that this
%% node does not run: a member that was restarted starts the group again, a node that left says so,
%% a node with another group of that name keeps its own (rule 1). It alone starts groups
%% (`sderl_launch`), and tells the members of each own group about the others (`sderl_announce`).
%%
%% All its state is in tables, too, so a successor goes on.

-behaviour(gen_server).
-behaviour(sderl_part).

-export([start_link/1]).
-export([handle_group_changed/1, handle_group_left/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

%% The helper processes of these answer with their exit reason.
-dialyzer({nowarn_function, [enter/2]}).
%% Operations are such lists.
-dialyzer({no_improper_lists, [registrations/1]}).

-include("../core/sderl_version.hrl").
-define(TICK, 1000).
-define(RESERVED, 30_000).

-record(reservation, {
    uid :: binary(),
    until :: integer(),
    new :: boolean()        % the group is being made
}).
-type reservation() :: #reservation{}.

-record(n, {node = node(), reconfigure :: fun(() -> ok),
            reserved = #{} :: #{term() => reservation()},
            timer = none :: none | reference(),
            departing = none :: none | {pid(), Until :: integer()},   % the island that is left
            entering = #{} :: #{reference() => term()},
            %% The link over which a node's messages come: we hear of it before them, and of its end
            %% after them.
            connections = #{} :: #{node() => sderl_links:connection()},
            told = #{} :: #{{term(), node()} => binary()},
            announced :: sderl_announce:announced()}).

-doc "`Reconfigure` reads the launch configuration anew, for the node's present name.".
-spec start_link(Reconfigure :: fun(() -> ok)) -> gen_server:start_ret().
start_link(Reconfigure) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Reconfigure, []).

-doc "The members of an own group changed.".
-spec handle_group_changed(term()) -> ok.
handle_group_changed(Group) -> gen_server:cast(?MODULE, {changed, Group}).

-doc "This node left a group that it shared with these nodes.".
-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(Group, Mates) -> gen_server:cast(?MODULE, {left, Group, Mates}).

%% ---------------------------------------------------------------- gen_server

-spec init(fun(() -> ok)) -> {ok, #n{}, {continue, start}}.
init(Reconfigure) ->
    %% One flooded link must not hold back messages to all others (rule 20).
    _ = process_flag(async_dist, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all, connection_id => true}),
    lists:foreach(fun sderl_links:nodeup/1, nodes(connected)),
    {ok, begun(Reconfigure, sderl_timer:next(none, ?TICK, tick)), {continue, start}}.

-spec handle_continue(start, #n{}) -> {noreply, #n{}}.
handle_continue(start, N) ->
    lists:foreach(fun sderl_group_sup:await_left/1, sderl_dir:leaving()),
    sderl_free:resume(),
    N1 = launched(N),
    %% With the groups that have just begun: over links that were up before, their members told
    %% this node of theirs while nobody heard it, and tell it only once.
    Announced = sderl_announce:new(),
    sderl_announce:ask(Announced),
    %% A predecessor may have ended before it announced the last change.
    sderl_announce:tell(Announced),
    {noreply, N1#n{announced = Announced}}.

%% The node may have got its name a moment ago: questions are for the node of that name.
-spec handle_call(term(), gen_server:from(), #n{}) -> {reply, term(), #n{}} | {noreply, #n{}}.
handle_call(Request, From, #n{node = Node} = N) when Node =/= node() ->
    handle_call(Request, From, renamed(N));
handle_call({create, Group, Answer}, _, N) when Answer =:= committed; Answer =:= applied ->
    Uid = sderl_vm:new_uid(Group),
    created_at_run_time(Group, Uid, #{mode => available, answer => Answer}, [node()], N);
handle_call({create, Group, Uid, Members}, _, N) when is_binary(Uid), length(Members) >= 0 ->
    case lists:all(fun is_atom/1, Members) of
        true -> created_at_run_time(Group, Uid, #{mode => majority}, Members, N);
        false -> {reply, {error, unknown_call}, unknown(N)}
    end;
handle_call({invite, ?VSN, Group, Uid, From}, _, N) when is_binary(Uid), is_atom(From) ->
    invited(Group, Uid, available, false, N);
handle_call({invite, ?VSN, Group, Uid, From, #{mode := Mode, new := New}}, _, N)
  when is_binary(Uid), is_atom(From), is_boolean(New),
       Mode =:= available orelse Mode =:= majority ->
    invited(Group, Uid, Mode, New, N);
handle_call({withdraw, ?VSN, Group, Uid}, _, #n{reserved = R} = N) when is_binary(Uid) ->
    case R of
        #{Group := #reservation{uid = Uid}} -> {reply, ok, N#n{reserved = maps:remove(Group, R)}};
        #{} -> {reply, ok, N}
    end;
handle_call({enter, ?VSN, Group, Node}, From, N) when is_atom(Node) ->
    _ = spawn(fun() -> gen_server:reply(From, sderl_admin:admit(Group, Node)) end),
    {noreply, N};
handle_call({recover, ?VSN, Group, Uid, Survivors, Step, Asker}, From, N)
  when is_binary(Uid), length(Survivors) >= 0, Step =:= check orelse Step =:= do, is_atom(Asker) ->
    case lists:all(fun is_atom/1, Survivors) of
        true ->
            _ = spawn(fun() ->
                Done = sderl_admin:recover_here(Group, Uid, Survivors, Step, Asker),
                gen_server:reply(From, Done)
            end),
            {noreply, N};
        false -> {reply, {error, unknown_call}, unknown(N)}
    end;
handle_call(settle, _, N) -> {reply, ok, N};
handle_call(Request, _, N) ->
    case strange(Request) of
        {From, Version} ->
            ok = sderl_refused:note_version(From, Version),
            {reply, {error, {other_version, ?VSN}}, unknown(N)};
        none -> {reply, {error, unknown_call}, unknown(N)}
    end.

created_at_run_time(Group, Uid, Kind, Members, #n{reserved = R} = N) ->
    case {sderl_dir:refuse(), sderl_dir:uid(Group)} of
        {Why, _} when Why =/= undefined -> {reply, {error, Why}, N};
        {_, none} when not is_map_key(Group, R) ->
            {reply, sderl_launch:found(Group, Uid, Kind, Members), N};
        _ -> {reply, {error, s_group_name_is_in_use}, N}
    end.

invited(Group, Uid, Mode, New, #n{reserved = R} = N) ->
    Taken = case {sderl_dir:uid(Group), R} of
        {none, #{Group := #reservation{uid = Other}}} -> Other =/= Uid;
        {none, _} -> false;
        {Own, _} -> Own =/= Uid
    end,
    case {sderl_dir:refuse(), Taken, sderl_options:consistency(Group, Mode)} of
        {undefined, false, Mode} ->
            %% Asked to join again after it left: it forgets that it left.
            ok = sderl_dir:forget_gone(Uid),
            case sderl_dir:uid(Group) of
                %% Invited by two nodes at once, it is a member by now: a reserved name would
                %% outlast the group.
                Uid -> {reply, ok, N};
                _ ->
                    Reservation = #reservation{uid = Uid, until = now_ms() + ?RESERVED, new = New},
                    {reply, ok, N#n{reserved = R#{Group => Reservation}}}
            end;
        {undefined, false, _} -> {reply, {error, consistency_differs}, N};
        {undefined, true, _} -> {reply, {error, s_group_conflict}, N};
        {Why, _, _} -> {reply, {error, Why}, N}
    end.

-spec handle_cast(term(), #n{}) -> {noreply, #n{}}.
handle_cast({changed, Group}, N) ->
    {noreply, dwell([Group], N)};
handle_cast({left, Group, Mates}, N0) when length(Mates) >= 0 ->
    N = dwell([Group], N0),
    %% The node is free now, or again, and linked to free nodes (rule 22).
    sderl_dir:is_free() andalso sderl_free:freed(Mates),
    {noreply, N};
handle_cast({met, Node}, N) when is_atom(Node) ->
    sderl_free:met([Node]),
    {noreply, N};
handle_cast(_, N) -> {noreply, unknown(N)}.

-spec handle_info(term(), #n{}) -> {noreply, #n{}}.
handle_info(Message, #n{node = Node} = N) when Node =/= node() -> handle_info(Message, renamed(N));
handle_info({sderl_hello, ?VSN, Group, Uid, From, {hello, _, _, _, _} = Hello}, N)
  when is_binary(Uid), is_atom(From), From =/= node() ->
    ok = sderl_refused:accept_version(From),
    case sderl_wire:message(From, Hello) of
        true -> {noreply, hello(Group, Uid, From, Hello, N)};
        false -> {noreply, unknown(N)}
    end;
handle_info({sderl_known, ?VSN, From, List}, N) when is_atom(From), not is_tuple(List) ->
    case sderl_hello:is_told(List) of
        true ->
            case sderl_hello:heeded(node(), From, List) of
                true -> {noreply, N#n{announced = sderl_announce:hear(From, List, N#n.announced)}};
                false -> {noreply, N}
            end;
        false -> {noreply, unknown(N)}
    end;
handle_info({sderl_known, ?VSN, From, {Shared, Changes}}, N) when is_atom(From), is_list(Changes) ->
    case sderl_hello:is_told([Shared | Changes]) of
        true ->
            _ = sderl_hello:heeded(node(), From, [Shared])
                andalso sderl_announce:hear_changes(From, Changes, N#n.announced),
            {noreply, N};
        false -> {noreply, unknown(N)}
    end;
handle_info({sderl_tell, ?VSN, From}, N) when is_atom(From) ->
    sderl_announce:asked(From, N#n.announced),
    {noreply, N};
handle_info({sderl_conflict, ?VSN, Group, Uid, From, Other}, N)
  when is_atom(From), From =/= node(), is_binary(Other) ->
    %% That node has another group of this name and keeps it.
    case sderl_dir:uid(Group) of
        Uid -> {noreply, apart(Group, From, Other, N)};
        _ -> {noreply, N}
    end;
handle_info({sderl_free, ?VSN, From, Msg}, N) when is_atom(From) ->
    case sderl_free:message(From, Msg) of
        ok -> {noreply, N};
        unknown -> {noreply, unknown(N)}
    end;
handle_info(tick, #n{reserved = R, timer = Timer} = N) ->
    Now = now_ms(),
    sderl_launch:prune(),
    sderl_free:again(),
    {noreply, N#n{departing = sderl_free:depart(N#n.departing, Now),
                  announced = sderl_announce:tick(N#n.announced),
                  reserved = maps:filter(fun(_, #reservation{until = Until}) -> Until > Now end, R),
                  timer = sderl_timer:next(Timer, ?TICK, tick)}};
handle_info({nodeup, Node, #{connection_id := Connection}}, #n{connections = Cs} = N0)
  when is_atom(Node) ->
    N = N0#n{connections = Cs#{Node => Connection}},
    sderl_links:nodeup(Node),
    sderl_announce:asked(Node, N#n.announced),
    sderl_free:linked(Node),
    _ = sderl_dir:shares_group(Node) andalso sderl_subs:notify_node(nodeup, Node),
    {noreply, N};
handle_info({nodedown, Node, _}, #n{connections = Cs, announced = Announced} = N0)
  when is_atom(Node) ->
    N = N0#n{connections = maps:remove(Node, Cs), announced = sderl_announce:down(Node, Announced)},
    sderl_links:nodedown(Node),
    ok = sderl_refused:accept_version(Node),
    _ = sderl_dir:shares_group(Node) andalso sderl_subs:notify_node(nodedown, Node),
    {noreply, N};
handle_info({'DOWN', Ref, process, _, Reason}, #n{entering = E} = N) ->
    case maps:take(Ref, E) of
        {Group, Rest} -> {noreply, entered(Group, Reason, N#n{entering = Rest})};
        error -> {noreply, N}
    end;
handle_info({enter, Group}, N) -> {noreply, enter(Group, N)};
handle_info(Message, N) ->
    case strange(Message) of
        {From, Version} -> sderl_refused:note_version(From, Version);
        none -> ok
    end,
    {noreply, unknown(N)}.

%% The sender and the version of a message of another version of the protocol (rule 31). Such
%% messages are ignored: a merge of which one side follows other rules would lose names.
strange(Message) ->
    case said_by(Message) of
        {From, Version} when is_atom(From), is_integer(Version), Version =/= ?VSN ->
            {From, Version};
        _ -> none
    end.

said_by({sderl_hello, Version, _, _, From, _}) -> {From, Version};
said_by({sderl_conflict, Version, _, _, From, _}) -> {From, Version};
said_by({sderl_known, Version, From, _}) -> {From, Version};
said_by({sderl_free, Version, From, _}) -> {From, Version};
said_by({sderl_tell, Version, From}) -> {From, Version};
said_by({invite, Version, _, _, From}) -> {From, Version};
said_by({invite, Version, _, _, From, _}) -> {From, Version};
said_by({recover, Version, _, _, _, _, From}) -> {From, Version};
said_by({enter, Version, _, From}) -> {From, Version};
%% Version 1 had no version number in this message.
said_by({invite, _, _, From}) -> {From, 1};
said_by({enter, _, From}) -> {From, 1};
said_by(_) -> none.

unknown(N) ->
    sderl_refused:note_message(?MODULE),
    N.

%% ---------------------------------------------------------------- groups begin

launched(N) -> lists:foldl(fun enter/2, N, sderl_launch:launched()).

%% A group given by seeds: tried until one of them answers.
enter(Group, #n{entering = E} = N) ->
    case [S
          || #{name := G, members := {seeds, S}} <- maps:get(groups, sderl_dir:options(), []),
             G =:= Group] of
        [Seeds] ->
            {_, Ref} = spawn_monitor(fun() -> exit({entered, sderl_admin:enter(Group, Seeds)}) end),
            N#n{entering = E#{Ref => Group}};
        [] -> N
    end.

entered(_, {entered, {ok, _, _}}, N) -> N;
entered(Group, Why, N) ->
    sderl_refused:note_join(Group, node(), Why),
    _ = erlang:send_after(2000, self(), {enter, Group}),
    N.

%% The consequences of a change of these own groups.
dwell(Groups, #n{announced = Announced} = N) ->
    sderl_launch:free(),
    N#n{announced = sderl_announce:changed(Groups, Announced)}.

%% ---------------------------------------------------------------- hello

hello(undefined, Uid, From, {hello, Addr, _, Mem, _} = Msg, N) ->
    sderl_dir:refuse() =:= undefined andalso
        sderl_free:hello(Uid, {From, connection(From, N)}, Addr, Mem, Msg),
    N;
hello(Group, Uid, From, {hello, Addr, _, Mem, Info} = Msg, N) ->
    {Own, Pid} = case sderl_dir:group(Group) of
        #{uid := O, process := P} -> {O, P};
        none -> {none, none}
    end,
    case sderl_hello:greeted(Own, Uid, sderl_dir:gone(Uid), Mem, node()) of
        pass ->
            sderl_group:greet(Pid, Uid, From, connection(From, N), Msg),
            N;
        again ->
            ok = sderl_dir:forget_gone(Uid),
            hello(Group, Uid, From, Msg, N);
        {tell, Why, Known} ->
            tell(Addr, Uid, {gone, Why, Known}),
            N;
        join ->
            case sderl_dir:refuse() of
                undefined ->
                    _ = sderl_launch:join(Group, Uid, {Mem, Info}, is_new(Group, Uid, N)),
                    sderl_event:emit(node_joined,
                                     #{group => Group, node => node(), through => From}),
                    N#n{reserved = maps:remove(Group, N#n.reserved)};
                _ -> N
            end;
        apart -> conflict(Group, Uid, Own, Pid, From, Mem, Info, N);
        nothing -> N
    end.

%% Whether the group is being made, and this node has reserved its name for it.
is_new(Group, Uid, #n{reserved = R}) ->
    case R of
        #{Group := #reservation{uid = Uid, new = New}} -> New;
        #{} -> false
    end.

connection(From, #n{connections = Cs}) -> maps:get(From, Cs, undefined).

tell(Addr, Uid, Msg) ->
    _ = erlang:send(Addr, {sderl, ?VSN, Uid, node(), Msg}, [noconnect]),
    ok.

%% Two groups of one name never merge. A group that this node made from its file, and that no other
%% node has joined, gives way to a running group that counts this node among its members (rule 2).
conflict(Group, Uid, Own, Pid, From, Mem, Info, N) ->
    Launched = sderl_hello:uid(Group, maps:get(cluster, sderl_dir:options())),
    case sderl_hello:yields(Own, Launched, Mem, Info, node()) andalso alone(Pid) of
        true ->
            ok = sderl_group_sup:stop_group(Pid),
            sderl_dir:forget(Group),
            _ = sderl_launch:join(Group, Uid, {Mem, Info}, is_new(Group, Uid, N)),
            N;
        false ->
            _ = erlang:send({?MODULE, From}, {sderl_conflict, ?VSN, Group, Uid, node(), Own},
                            [noconnect]),
            apart(Group, From, Uid, N)
    end.

apart(Group, From, Uid, #n{told = Told} = N) ->
    sderl_refused:note_join(Group, From, uid_conflict),
    case Told of
        #{{Group, From} := Uid} -> N;
        _ ->
            sderl_event:emit(uid_conflict, #{group => Group, node => From}),
            N#n{told = Told#{{Group, From} => Uid}}
    end.

alone(Pid) ->
    case sderl_group:info(Pid, 1000) of
        {ok, #{live := Live}} -> Live =:= [node()];
        _ -> false
    end.

%% ---------------------------------------------------------------- a node that gets a name

%% The application started on a node that was not distributed, and now it is (or it changed its
%% name): everything begins anew under that name. The node keeps what was its own alone: the free
%% names, and the groups without other members, with their names. For the members of other groups
%% the node of the former name is down, and this one is a stranger.
renamed(#n{node = Node} = N) when Node =:= node() -> N;
renamed(#n{node = Before, reconfigure = Reconfigure, timer = Timer}) ->
    sderl_free:departed(),
    Alone = [{Group, sderl_dir:kind(Group)}
             || {Group, [Node]} <- lists:reverse(sderl_dir:newest_first()), Node =:= Before],
    Names = [{Group, registrations(Group)} || Group <- [undefined | [G || {G, _} <- Alone]]],
    lists:foreach(fun({G, #{process := Pid}}) ->
        sderl_group_sup:stop_group(Pid),
        sderl_dir:forget(G)
    end, sderl_dir:all()),
    ok = sderl_dir:reborn(),
    sderl_kernel_env:changed(),
    case sderl_vm:precondition() of
        ok ->
            sderl_dir:refuse(undefined),
            ok = Reconfigure(),
            %% If the configuration has a group of that name for the new name of the node, the names
            %% go there.
            Configured = [Group || #{name := Group} <- maps:get(groups, sderl_dir:options(), [])],
            lists:foreach(fun({Group, Kind}) ->
                lists:member(Group, Configured) orelse begin_alone(Group, Kind)
            end, Alone),
            N1 = launched(begun(Reconfigure, Timer)),
            lists:foreach(fun({Group, Operations}) ->
                order(sderl_dir:process(Group), Operations)
            end, Names),
            N1;
        {error, {connect_all, Text}} ->
            sderl_dir:refuse(connect_all),
            sderl_event:emit(connect_all, #{node => node(), remedy => Text}),
            begun(Reconfigure, Timer)
    end.

begin_alone(Group, Kind) ->
    sderl_launch:found(Group, sderl_vm:new_uid(Group), Kind, [node()]).

begun(Reconfigure, Timer) ->
    #n{reconfigure = Reconfigure, timer = Timer, connections = sderl_links:connections(),
       announced = sderl_announce:new()}.

order(none, _) -> ok;
order(Pid, Operations) ->
    lists:foreach(fun(Operation) -> Pid ! {sderl_op, none, Operation} end, Operations).

%% The operations that register the names of a group again.
registrations(Group) ->
    [sderl_op:register(Name, Pid, Options)
     || {Name, Pid, Options} <- sderl_names:registrations(Group)].
