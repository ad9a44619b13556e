%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_layout).
-moduledoc """
The places and names of the messenger's processes. Pure.

Servers are numbered, and each belongs to a router: those of a router follow one another. The data
of server K has a copy on the next server of the same router. If the router has no other server, the
copy is on the same one, and is lost with its node. A name or a conversation belongs to the server
that `server/2` gives, evenly.

| group (`rsd`) | nodes |
|---|---|
| `routers_group` | all routers |
| `{server_group, I}` | router I and its servers |
| `{client_group, J}` | client node J and all routers |

So a client's node is linked to routers alone, and a server's to its router and the servers beside
it. In `rd` all nodes are linked to one another, and names are those of `m:global`.

Source: RD-IM and RSD-IM of the RELEASE project. There client nodes are in no group, and link
themselves with each server that they talk to.
""".

-export([new/1, roles/1, named/1, groups/1, namespaces/2]).
-export([server/2, home/2, servers/1, next/2, routers/1, all_nodes/1, name/2, databases/1]).
-export_type([conf/0, mode/0, role/0, kind/0, copy/0]).

-doc "`rd`: a full mesh and `global`; `rsd`: s_groups.".
-type mode() :: rd | rsd.

-doc "The kinds of databases.".
-type kind() :: clients | chats.

-doc "Which of the two copies.".
-type copy() :: main | replica.

-doc "A process that has a name.".
-type role() ::
    {router, I :: pos_integer()}
    | {server, K :: pos_integer()}
    | {database, kind(), K :: pos_integer(), copy()}.

-doc """
What every process of the messenger knows. `retry_ms`: the time after which a request is repeated
for the first time, doubled for each further try; `tries`: how often it is sent at most; `idle_ms`:
how long a conversation may be silent.
""".
-type conf() :: #{
    mode := mode(),
    servers := #{pos_integer() => node()},
    routers := #{pos_integer() => node()},
    clients := #{pos_integer() => node()},
    retry_ms := pos_integer(),
    tries := pos_integer(),
    idle_ms := pos_integer()
}.

-doc """
From the nodes of each kind, in their order; at least as many servers as routers. Other keys that
are given are kept.
""".
-spec new(#{mode := mode(), servers := [node()], routers := [node()], clients := [node()],
            atom() => term()}) -> conf().
new(#{servers := Servers, routers := Routers, clients := Clients} = Options)
  when length(Servers) >= length(Routers) ->
    maps:merge(#{retry_ms => 1000, tries => 7, idle_ms => 300_000}, Options#{
        servers := maps:from_list(lists:enumerate(Servers)),
        routers := maps:from_list(lists:enumerate(Routers)),
        clients := maps:from_list(lists:enumerate(Clients))
    }).

-doc """
The number of the server that a name belongs to. (The published hash function gave 58 of 100 names
to one of three servers.)
""".
-spec server(conf(), Name :: term()) -> pos_integer().
server(#{servers := Servers}, Name) -> 1 + erlang:phash2(Name, map_size(Servers)).

-doc "The router of a server. The numbers of servers of two routers differ by at most one.".
-spec home(conf(), K :: pos_integer()) -> pos_integer().
home(#{servers := Servers, routers := Routers}, K) ->
    1 + (K - 1) * map_size(Routers) div map_size(Servers).

-doc "All servers.".
-spec servers(conf()) -> [pos_integer()].
servers(#{servers := Servers}) -> lists:seq(1, map_size(Servers)).

-doc """
The server that has the replicas of this one: the next of the same router, itself when it is alone.
""".
-spec next(conf(), K :: pos_integer()) -> pos_integer().
next(Conf, K) ->
    Mine = beside(Conf, K),
    case lists:dropwhile(fun(Other) -> Other =< K end, Mine) of
        [Next | _] -> Next;
        [] -> hd(Mine)
    end.

beside(Conf, K) -> [Other || Other <- servers(Conf), home(Conf, Other) =:= home(Conf, K)].

-doc "The routers and their nodes, in order.".
-spec routers(conf()) -> [{pos_integer(), node()}].
routers(#{routers := Routers}) -> lists:sort(maps:to_list(Routers)).

-doc "All nodes: routers, servers, client nodes.".
-spec all_nodes(conf()) -> [node()].
all_nodes(#{servers := Servers, clients := Clients} = Conf) ->
    [Node
     || Numbered <- [routers(Conf), lists:sort(maps:to_list(Servers)),
                     lists:sort(maps:to_list(Clients))],
        {_, Node} <- Numbered].

-doc "The databases on a server: its own main copies, and the replicas that it has for others.".
-spec databases({conf(), K :: pos_integer()}) -> [role()].
databases({Conf, K}) ->
    [{database, Kind, K, main} || Kind <- [clients, chats]] ++
        [{database, Kind, Other, replica}
         || Other <- beside(Conf, K), next(Conf, Other) =:= K, Kind <- [clients, chats]].

-doc "What a node runs: `{router, I}`, `{server, K}` or `{clients, J}`, for each node.".
-spec roles(conf()) -> [{node(), {router | server | clients, pos_integer()}}].
roles(#{servers := Servers, routers := Routers, clients := Clients}) ->
    [
        {Node, {Kind, Number}}
     || {Kind, Of} <- [{router, Routers}, {server, Servers}, {clients, Clients}],
        {Number, Node} <- lists:sort(maps:to_list(Of))
    ].

-doc "All registered processes.".
-spec named(conf()) -> [role()].
named(Conf) ->
    [{router, I} || {I, _} <- routers(Conf)] ++
        [Role || K <- servers(Conf), Role <- [{server, K} | databases({Conf, K})]].

-doc """
The groups of `rsd` for so many nodes of each kind, as positions in their families: for the plan of
a fleet.
""".
-spec groups(#{servers := pos_integer(), routers := pos_integer(), client_nodes := pos_integer(),
               atom() => term()}) ->
    [{term(), [{router | server | client, pos_integer()}]}].
groups(#{servers := Servers, routers := Routers, client_nodes := Clients}) ->
    Numbers = fun(Count) -> maps:from_keys(lists:seq(1, Count), node()) end,
    Conf = (new(#{mode => rsd, servers => [], routers => [], clients => []}))#{
        servers := Numbers(Servers), routers := Numbers(Routers)
    },
    All = [{router, I} || I <- lists:seq(1, Routers)],
    [{routers_group, All}] ++
        [
            {{server_group, I},
             [{router, I} | [{server, K} || K <- servers(Conf), home(Conf, K) =:= I]]}
         || I <- lists:seq(1, Routers)
        ] ++
        [{{client_group, J}, [{client, J} | All]} || J <- lists:seq(1, Clients)].

-doc "The same with the names of the nodes; `rd`: one namespace of all nodes.".
-spec namespaces(conf(), #{servers := pos_integer(), routers := pos_integer(),
                           client_nodes := pos_integer(), atom() => term()}) ->
    [{term(), [node()]}].
namespaces(#{mode := rd} = Conf, _) ->
    [{all, all_nodes(Conf)}];
namespaces(#{mode := rsd, servers := Servers, routers := Routers, clients := Clients}, Counts) ->
    Of = #{router => Routers, server => Servers, client => Clients},
    [{Group, [map_get(N, map_get(Kind, Of)) || {Kind, N} <- Members]}
     || {Group, Members} <- groups(Counts)].

-doc "The group and the name in it that a process has; in `rd` the group is `global`.".
-spec name(conf(), role()) -> {Group :: term(), Name :: term()}.
name(#{mode := rd}, Role) -> {global, {sderl_im, Role}};
name(#{mode := rsd}, {router, _} = Role) -> {routers_group, Role};
name(#{mode := rsd} = Conf, Role) -> {{server_group, home(Conf, place(Conf, Role))}, Role}.

place(_, {server, K}) -> K;
place(_, {database, _, K, _}) -> K.
