%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_nodes).
-moduledoc """
What is asked of the Erlang nodes of a cluster, over hidden links: how they are, which groups they
are in, to leave their groups before they stop, and to change groups. It runs in the cluster's own
envoy (`m:sderl_ops_envoy`).

Every call has a limit, and a node that does not answer is `down` and nothing more. A name becomes
an atom here and nowhere else: only names of instances and groups of a checked file come here.
""".

-export([begin_as/3, look/2, drain/1, change/1]).
-export_type([seen/0]).

-import(sderl_clock, [now_ms/0]).

-doc "One node, and its groups where it runs the library.".
-type seen() :: #{
    state := up | down,
    health := ok | unknown | {problems, [binary()]},
    groups := #{Group :: binary() => [Node :: binary()]}
}.

%% Processes that answer with their exit reason.
-dialyzer({nowarn_function, [look/2, open_link/1]}).

-define(CONNECT_MS, 5_000).
-define(CALL_MS, 5_000).
%% A group of many members, each of which may have to be connected first.
-define(CHANGE_MS, 60_000).
%% Names of a node that leaves are gone when its groups are; this is for one that hangs.
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
        %% It answers without the library: whether it is to have that is the release's business.
        {error, undef} -> #{state => up, health => ok, groups => #{}};
        {error, _} -> down()
    end.

%% On a node without groups, or where the library does not run.
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

%% The service calls groups by atoms; those that others made may have any name.
text(Group) when is_atom(Group) -> atom_to_binary(Group);
text(Group) -> unicode:characters_to_binary(io_lib:format("~0tp", [Group])).

-doc """
Has a node leave all its groups, so that their coordinators are elsewhere and its names are gone
before it stops. A node that is down has nothing to leave.
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

connect(Node) ->
    case lists:member(Node, nodes(connected)) of
        true -> ok;
        false -> open_link(Node)
    end.

%% connect_node waits as long as the other machine lets it.
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

call(Node, Module, Function, Args, Ms) ->
    try
        {ok, erpc:call(Node, Module, Function, Args, Ms)}
    catch
        error:{exception, undef, _} -> {error, undef};
        error:{exception, Why, _} -> {error, Why};
        error:{erpc, Why} -> {error, Why};
        exit:{exception, Why} -> {error, Why};
        exit:{signal, Why} -> {error, Why};
        throw:Why -> {error, Why}
    end.
