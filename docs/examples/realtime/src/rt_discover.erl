%% SPDX-License-Identifier: Apache-2.0
-module(rt_discover).
-moduledoc """
Finds the other nodes of a group by DNS, and joins with them: for nodes whose names nobody can list,
such as those of a Kubernetes Deployment behind a headless service.

Each node's launch configuration has the group with that one node in it,
`{Group, normal, [node()]}`. Such a group is the same one wherever it is started, so nodes that find
each other merge, in whatever order they come and whoever sees whom: no node is special, and none
must be first.

Its argument is a list of maps, each with `groups`; `hosts`, the names to look up; and `base`: the
node at 10.0.0.7 is called `Base@10.0.0.7`.
""".
-behaviour(gen_server).

-export([start_link/1, find/1, names/2, join/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

start_link(Places) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Places, []).

-doc "The nodes that DNS knows now. What cannot be resolved has none.".
-spec find(map()) -> [node()].
find(#{hosts := Hosts, base := Base}) ->
    names(Base, lists:append([case inet:getaddrs(Host, inet) of {ok, As} -> As; {error, _} -> [] end
                              || Host <- Hosts])).

-doc """
Nodes by their addresses. Their names are atoms, which are never freed: a DNS that you trust.
""".
-spec names(string(), [inet:ip_address()]) -> [node()].
names(Base, Addresses) ->
    [list_to_atom(Base ++ "@" ++ inet:ntoa(A)) || A <- lists:usort(Addresses)].

-doc """
Joins a group with the nodes found: as a member by adding them, else by entering through one of
them.
""".
-spec join(term(), [node()]) -> ok | {error, term()}.
join(Group, Found) ->
    case {s_group:own_nodes(Group), Found} of
        {[], []} -> {error, no_seeds};
        {[], _} ->
            case s_group:enter(Group, Found) of
                {ok, _, _} -> ok;
                {error, Why} -> {error, Why}
            end;
        {Members, _} ->
            New = Found -- Members,
            _ = New =:= [] orelse s_group:add_nodes(Group, New),
            ok
    end.

%% The state has the nodes of each group that were seen as members.
init(Places) -> {ok, {Places, #{}}, {continue, look}}.

handle_continue(look, State) -> look(State).

handle_call(_, _From, State) -> {reply, {error, unknown_call}, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info(look, State) -> look(State);
handle_info(_, State) -> {noreply, State}.

look({Places, Seen0}) ->
    Seen = #{Group => look(Group, lists:delete(node(), find(Place)), maps:get(Group, Seen0, []))
             || #{groups := Groups} = Place <- Places, Group <- Groups},
    _ = erlang:send_after(application:get_env(realtime, discover_ms, 5000), self(), look),
    {noreply, {Places, Seen}}.

%% DNS goes on showing a node that has left for a while. Who was a member and is none is not added
%% again: should it come back, it joins by itself.
look(Group, Found, Seen) ->
    Left = case s_group:own_nodes(Group) of
        [] -> [];
        Members -> Seen -- Members
    end,
    _ = join(Group, Found -- Left),
    [N || N <- Found, lists:member(N, Seen) orelse lists:member(N, s_group:own_nodes(Group))].
