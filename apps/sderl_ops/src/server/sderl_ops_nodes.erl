%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_nodes).
-moduledoc """
Requests to the Erlang nodes of a cluster, over hidden links: how they are, which groups they are
in, to leave their groups before they stop, and to change groups. It runs in the cluster's own envoy
(`m:sderl_ops_envoy`).

Every call has a limit. A node that does not answer is `gone` if the port mapper of its machine says
that it does not run, and otherwise `down`. Names become atoms here and nowhere else: only names of
instances and groups of a checked file come here.
""".

-export([begin_as/3, look/2, drain/1, stop/2, change/1]).
-export([connect/1, call/5, mapped/1]).
-export_type([mapped/0, seen/0]).

-import(sderl_clock, [now_ms/0]).

-doc "One node, and its groups where it runs the library.".
-type seen() :: #{
    state := up | down | gone,
    health := ok | unknown | {problems, [binary()]},
    groups := #{Group :: binary() => [Node :: binary()]}
}.

%% Processes that answer with their exit reason.
-dialyzer({nowarn_function, [look/2, open_link/1]}).

-define(CONNECT_MS, 5_000).
-define(CALL_MS, 5_000).
-define(EPMD_MS, 2_000).
-define(PAUSE_MS, 50).
%% heart or systemd start a node again within this time.
-define(AGAIN_MS, 2_000).
%% A group of many members, each of which may have to be connected first.
-define(CHANGE_MS, 60_000).
%% For a group that hangs.
-define(DRAIN_MS, 30_000).

-doc """
Makes this virtual machine a hidden node that only calls: it listens nowhere and is registered
nowhere.
""".
-spec begin_as(Name :: binary(), longnames | shortnames, Cookie :: binary()) ->
    ok | {error, term()}.
begin_as(Name, Domain, Cookie) ->
    Options = #{name_domain => Domain, hidden => true, dist_listen => false},
    maybe
        {ok, _} ?= net_kernel:start(binary_to_atom(Name), Options),
        true = erlang:set_cookie(binary_to_atom(Cookie)),
        ok
    end.

-doc "Looks at nodes side by side, all within the limit.".
-spec look([Node :: binary()], Ms :: pos_integer()) -> #{Node :: binary() => seen()}.
look(Nodes, Ms) ->
    Deadline = now_ms() + Ms,
    Asked = [{Node, spawn_monitor(fun() -> exit({seen, look_at(Node)}) end)} || Node <- Nodes],
    #{Node => answer(Process, Deadline) || {Node, Process} <- Asked}.

answer({Pid, Monitor}, Deadline) ->
    receive
        {'DOWN', Monitor, process, Pid, {seen, Seen}} -> Seen;
        {'DOWN', Monitor, process, Pid, _} -> down()
    after max(0, Deadline - now_ms()) ->
        exit(Pid, kill),
        _ = demonitor(Monitor, [flush]),
        down()
    end.

down() -> #{state => down, health => unknown, groups => #{}}.

look_at(Name) ->
    Node = binary_to_atom(Name),
    maybe
        ok ?= connect(Node),
        {ok, Info} ?= call(Node, s_group, info, [], ?CALL_MS),
        {ok, Groups} ?= call(Node, s_group, own_s_groups, [], ?CALL_MS),
        #{state => up, health => health(Info), groups => groups(Groups)}
    else
        %% A node without the library counts as up and well.
        {error, undef} -> #{state => up, health => ok, groups => #{}};
        {error, not_connected} ->
            case mapped(Name) of
                no -> (down())#{state := gone};
                _ -> down()
            end;
        {error, _} -> down()
    end.

%% An error: the node has no groups, or the library does not run.
health({error, _}) -> ok;
health(Info) when is_list(Info) ->
    case proplists:get_value(problems, Info, []) of
        [] -> ok;
        Problems -> {problems, [unicode:characters_to_binary(Text) || Text <- Problems]}
    end.

groups(Groups) when is_list(Groups) ->
    #{text(Group) => [atom_to_binary(Node) || Node <- Nodes] || {Group, Nodes} <- Groups};
groups({error, _}) ->
    #{}.

%% The service names groups by atoms; groups that others made may have any name.
text(Group) when is_atom(Group) -> atom_to_binary(Group);
text(Group) -> unicode:characters_to_binary(io_lib:format("~0tp", [Group])).

-doc """
Has a node leave all its groups, so that other members coordinate them before it stops, and no
process of it can register a name there any more. Names stay until their processes end: if they were
taken from processes that live, two processes could act under one name. A node that is down has
nothing to leave.
""".
-spec drain(Node :: binary()) -> ok | {error, term()}.
drain(Name) ->
    Node = binary_to_atom(Name),
    maybe
        ok ?= connect(Node),
        {ok, Groups} ?= call(Node, s_group, own_s_groups, [], ?CALL_MS),
        leave(Node, [Group || {Group, _} <- list(Groups)])
    else
        {error, Why} when Why =:= not_connected; Why =:= undef; Why =:= noconnection -> ok;
        {error, _} = Error -> Error
    end.

leave(_, []) ->
    ok;
leave(Node, [Group | Groups]) ->
    case call(Node, s_group, leave, [Group], ?DRAIN_MS) of
        {ok, {error, node_does_not_belong_to_the_s_group}} -> leave(Node, Groups);
        {ok, {error, Why}} -> {error, {leave, text(Group), Why}};
        {ok, _} -> leave(Node, Groups);
        {error, _} = Error -> Error
    end.

list(Groups) when is_list(Groups) -> Groups;
list({error, _}) -> [].

-doc """
Stops a node that the service has not started: by `init:stop/0`, and at the end of the limit by
`erlang:halt/0`. It has stopped when the port mapper of its machine no longer has it. If something
starts it again at once (`heart`, systemd), that is an error.
""".
-spec stop(Node :: binary(), Ms :: pos_integer()) -> ok | {error, term()}.
stop(Name, Ms) ->
    Node = binary_to_atom(Name),
    _ = case connect(Node) of
        ok -> call(Node, init, stop, [], ?CALL_MS);
        {error, _} -> not_there
    end,
    maybe
        still_there ?= await_gone(Name, now_ms() + Ms),
        _ = call(Node, erlang, halt, [0, [{flush, false}]], ?CALL_MS),
        still_there ?= await_gone(Name, now_ms() + ?CALL_MS),
        {error, {does_not_stop, Name}}
    else
        ok -> stays_gone(Name, now_ms() + ?AGAIN_MS)
    end.

await_gone(Name, Deadline) ->
    case {is_gone(Name), now_ms() < Deadline} of
        {true, _} -> ok;
        {false, true} -> pause(), await_gone(Name, Deadline);
        {false, false} -> still_there
    end.

stays_gone(Name, Deadline) ->
    case {is_gone(Name), now_ms() < Deadline} of
        {false, _} -> {error, {started_again, Name}};
        {true, true} -> pause(), stays_gone(Name, Deadline);
        {true, false} -> ok
    end.

is_gone(Name) ->
    not lists:member(binary_to_atom(Name), nodes(connected)) andalso mapped(Name) =:= no.

pause() -> receive after ?PAUSE_MS -> ok end.

-type mapped() :: yes | no | unknown_host | unknown.

-doc """
Whether the port mapper of a node's machine knows the node. If no port mapper listens there, no node
runs.
""".
-spec mapped(Node :: binary()) -> mapped().
mapped(Name) ->
    [Alive, Host] = binary:split(Name, ~"@"),
    maybe
        {ok, Address} ?= inet:getaddr(binary_to_list(Host), inet),
        {ok, Socket} ?= gen_tcp:connect(Address, epmd_port(), [], ?EPMD_MS),
        ok = gen_tcp:close(Socket),
        {ok, Names} ?= erl_epmd:names(Address),
        case lists:keymember(binary_to_list(Alive), 1, Names) of
            true -> yes;
            false -> no
        end
    else
        {error, econnrefused} -> no;
        {error, nxdomain} -> unknown_host;
        {error, _} -> unknown
    end.

epmd_port() ->
    case string:to_integer(os:getenv("ERL_EPMD_PORT", "4369")) of
        {Port, ""} -> Port;
        _ -> 4369
    end.

-doc "Makes one change of groups on the node that it names.".
-spec change(sderl_ops_regroup:change()) -> ok | {error, term()}.
change(Change) ->
    Node = binary_to_atom(element(2, Change)),
    maybe
        ok ?= connect(Node),
        {ok, Answer} ?= ask(Node, Change),
        result(Answer, Change)
    end.

ask(Node, {create, _, #{name := Name, members := Members, consistency := Consistency}}) ->
    Options = #{consistency => Consistency},
    call(Node, s_group, new_s_group, [binary_to_atom(Name), atoms(Members), Options], ?CHANGE_MS);
ask(Node, {add, _, Name, Members}) ->
    call(Node, s_group, add_nodes, [binary_to_atom(Name), atoms(Members)], ?CHANGE_MS);
ask(Node, {remove, _, Name, Members}) ->
    call(Node, s_group, remove_nodes, [binary_to_atom(Name), atoms(Members)], ?CHANGE_MS);
ask(Node, {delete, _, Name}) ->
    call(Node, s_group, delete_s_group, [binary_to_atom(Name)], ?CHANGE_MS).

result({error, Why}, _) -> {error, Why};
result({error, Why, _}, _) -> {error, Why};
result(_, _) -> ok.

atoms(Names) -> [binary_to_atom(Name) || Name <- Names].

%% ---------------------------------------------------------------- links

-doc "Opens a hidden link, unless there is one.".
-spec connect(node()) -> ok | {error, not_connected}.
connect(Node) ->
    case lists:member(Node, nodes(connected)) of
        true -> ok;
        false -> open_link(Node)
    end.

%% connect_node may wait for a long time.
open_link(Node) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({connected, net_kernel:connect_node(Node)}) end),
    receive
        {'DOWN', Monitor, process, Pid, {connected, true}} -> ok;
        {'DOWN', Monitor, process, Pid, _} -> {error, not_connected}
    after ?CONNECT_MS ->
        exit(Pid, kill),
        _ = demonitor(Monitor, [flush]),
        {error, not_connected}
    end.

-doc "Calls a function there. Every failure is returned as an error.".
-spec call(node(), module(), atom(), [term()], timeout()) -> {ok, term()} | {error, term()}.
call(Node, Module, Function, Args, Ms) ->
    try
        {ok, erpc:call(Node, Module, Function, Args, Ms)}
    catch
        error:{exception, Why, _} -> {error, Why};
        error:{erpc, Why} -> {error, Why};
        exit:{exception, Why} -> {error, Why};
        exit:{signal, Why} -> {error, Why};
        throw:Why -> {error, Why}
    end.
