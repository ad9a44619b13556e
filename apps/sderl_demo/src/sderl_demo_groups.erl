%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_groups).
-moduledoc "The demo's sides with s_groups: names in overlapping groups.".

-behaviour(sderl_demo_registry).

-export([via/1, register/3, unregister/2, whereis/2, call/2, names/1, bytes/0]).
-export([await/2, follow/2]).

-define(TIMEOUT_MS, 5_000).

-doc "A server's `via` name.".
-spec via(sderl_demo_layout:server()) -> {via, module(), term()}.
via(Server) -> {via, s_group, Server}.

-doc "Registers `Name` in `Group`; the reason of a refusal is that of `s_group:register_name/3`.".
-spec register(sderl_demo_layout:group_name(), term(), pid()) -> sderl_demo_registry:result().
register(Group, Name, Pid) ->
    case s_group:register_name(Group, Name, Pid) of
        yes -> ok;
        {no, Reason} -> {error, Reason}
    end.

-doc "Removes `Name` from `Group`.".
-spec unregister(sderl_demo_layout:group_name(), term()) -> sderl_demo_registry:result().
unregister(Group, Name) ->
    case s_group:unregister_name(Group, Name) of
        ok -> ok;
        {no, Reason} -> {error, Reason}
    end.

-doc "A local read for members and followers; for others, one question to a member of the group.".
-spec whereis(sderl_demo_layout:group_name(), term()) -> pid() | undefined.
whereis(Group, Name) -> s_group:whereis_name(Group, Name).

-doc """
In a group of this node this is a call of the process that has the name; into another group a routed
call, over the gateways and without a link between caller and server.
""".
-spec call(sderl_demo_layout:server(), WorkMs :: non_neg_integer()) -> sderl_demo_registry:called().
call({Group, Name} = Server, WorkMs) ->
    case s_group:own_nodes(Group) of
        [_ | _] -> sderl_demo_registry:call(whereis(Group, Name), Server, WorkMs);
        _ -> routed(sderl_route:call(Server, {hit, WorkMs}, ?TIMEOUT_MS), Server)
    end.

routed({ok, {Server, Count}}, Server) -> {ok, Count};
routed({ok, Other}, _Server) -> {error, {wrong_server, Other}};
routed({error, {down, Why}}, Server) when Why =:= killed; Why =:= noproc -> {error, {Why, Server}};
routed({error, Why}, _Server) when
    Why =:= no_name; Why =:= no_route; Why =:= unreachable; Why =:= busy; Why =:= hop_limit
->
    {error, not_there};
routed({error, Reason}, _Server) -> {error, Reason}.

-doc "All names of a group that this node is a member of.".
-spec names(sderl_demo_layout:group_name()) -> [term()].
names(Group) -> [Name || {_Group, Name} <- s_group:registered_names({s_group, Group})].

-doc "Of this node's names, and its copies of those of groups that it follows.".
-spec bytes() -> non_neg_integer().
bytes() -> sderl_observed:name_bytes().

-doc """
Follows the groups that this node looks names up in and is no member of; returns when it has copies,
and exits `{not_followed, Copies}` otherwise.
""".
-spec follow(sderl_demo_load:site(), timeout()) -> ok.
follow(#{layout := Layout} = Site, TimeoutMs) ->
    Others = sderl_demo_layout:other_names(sderl_demo_load:index(Site), Layout),
    lists:foreach(fun(Group) -> ok = s_group:follow(Group) end,
                  lists:uniq([G || {G, _} <- Others])),
    case sderl_fleet:await(fun() -> [] =:= [C || #{state := S} = C <- followed(), S =/= whole] end,
                           TimeoutMs) of
        ok -> ok;
        {error, _} -> exit({not_followed, followed()})
    end.

followed() -> proplists:get_value(followed, s_group:info()).

-doc "Waits until this node's groups are complete; exits `{not_ready, Group, Reason}` otherwise.".
-spec await(sderl_demo_load:site(), timeout()) -> ok.
await(#{layout := Layout} = Site, TimeoutMs) ->
    Index = sderl_demo_load:index(Site),
    lists:foreach(
        fun(Group) ->
            case s_group:await(Group, TimeoutMs) of
                ok -> ok;
                {error, Reason} -> exit({not_ready, Group, Reason})
            end
        end,
        sderl_demo_layout:groups_of(Index, Layout)
    ).
