%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_members).
-moduledoc """
The nodes and their groups, derived from the reports of nodes on themselves and on each other; and
the topology that shows them.

Pure. A node that is up knows best which groups it is in. For a node that is down, the reports of
its fellow members count; if none of them is up either, it stays in its former groups.
""".

-export([unknown/2, known/3, found/3, groups/1, node_of/2, group_of/2]).
-export([topology/3, is_same/2, events/2]).
-export_type([reports/0, masters/0]).

-doc "By node: what its agent reports (`sderl_mon_watch:report/1`).".
-type reports() :: #{node() => sderl_mon_message:node_report()}.

%% More than anybody runs.
-define(MOST_NODES, 5000).

-doc "Initial reports, of nodes that no agent has reported on yet.".
-spec unknown([node()], Now :: integer()) -> reports().
unknown(Nodes, Now) ->
    Report = #{status => down, why => sderl_mon_types:untried(), source => none, facts => #{},
               peers => [], since => Now},
    #{Node => Report || Node <- Nodes}.

-doc """
A new report, merged over the one before: a node's facts stay until it sends others.
""".
-spec known(sderl_mon_message:node_report(), sderl_mon_message:node_report(), integer()) ->
    sderl_mon_message:node_report().
known(#{facts := Facts} = New, #{facts := Before} = Old, Now) when Facts =:= #{}, Before =/= #{} ->
    known(New#{facts := Before}, Old, Now);
known(#{status := Status} = New, #{status := Status, since := Since}, _) ->
    New#{since => Since};
known(New, _, Now) ->
    New#{since => Now}.

-doc """
All nodes that are to be watched: those known before, the seeds, and the nodes that a node which is
up is linked to or names as members of a group; without the monitoring nodes, and only those that
the configuration allows.
""".
-spec found(reports(), sderl_mon_message:config(), Monitors :: [node()]) -> [node()].
found(Reports, #{seeds := Seeds, nodes := Which}, Monitors) ->
    Named = [[Peers, groups_nodes(Facts)]
             || _ := #{status := up, facts := Facts, peers := Peers} <- Reports],
    Allowed =
        case Which of all -> fun(_) -> true end; _ -> fun(N) -> lists:member(N, Which) end end,
    Listed = case Which of all -> []; _ -> Which end,
    Known = [N || N <- lists:usort(Seeds ++ Listed ++ maps:keys(Reports)), Allowed(N)] -- Monitors,
    Others = [N
              || N <- lists:usort(lists:flatten(Named)), is_atom(N), Allowed(N),
                 not is_map_key(N, Reports)] -- Monitors,
    %% Known nodes first.
    lists:usort(Known ++ lists:sublist(Others, max(0, ?MOST_NODES - length(Known)))).

groups_nodes(Facts) ->
    [Ms || #{members := Ms} <- maps:get(groups, Facts, [])] ++
        [Ms || {_, Ms} <- maps:get(known, Facts, []), is_list(Ms)].

-doc "The groups of each node.".
-spec groups(reports()) -> #{node() => [Group :: term()]}.
groups(Reports) ->
    Claims = claims(Reports),
    #{Node => groups_of(Node, Report, Claims) || Node := Report <- Reports}.

%% By group, the members that its members which are up list.
claims(Reports) ->
    Said = [{G, Ms}
            || _ := #{status := up, facts := Facts} <- Reports,
               #{group := G, members := Ms} <- maps:get(groups, Facts, [])],
    maps:map(fun(_, Lists) -> #{N => true || Ms <- Lists, N <- Ms} end,
             maps:groups_from_list(fun({G, _}) -> G end, fun({_, Ms}) -> Ms end, Said)).

groups_of(_, #{status := up, facts := Facts}, _) ->
    own(Facts);
groups_of(Node, #{facts := Facts}, Claims) ->
    Claimed = [G || G := Members <- Claims, is_map_key(Node, Members)],
    lists:sort(Claimed ++ [G || G <- own(Facts), not is_map_key(G, Claims)]).

own(Facts) -> lists:sort([G || #{group := G} <- maps:get(groups, Facts, [])]).

%% ---------------------------------------------------------------- the topology

-doc "The monitoring nodes: whether each lives, and whether it leads.".
-type masters() :: [{node(), IsLive :: boolean(), Leads :: boolean()}].

-doc "The topology, from the reports, the groups of each node, and where agents run.".
-spec topology(sderl_mon_types:t(), masters(),
               #{nodes := reports(), members := #{node() => [term()]},
                 placement := sderl_mon_message:placement()}) ->
    sderl_mon_types:topology().
topology(T, Masters, #{nodes := Reports, members := Members, placement := Placement}) ->
    #{
        epoch => 0,
        t => T,
        nodes => node_infos(Reports, Members, Placement),
        groups => group_infos(Reports, Members, Placement),
        monitors => monitor_infos(Masters, Members, Placement)
    }.

-doc """
Whether two topologies show the same. Numbers of names change all the time, and are in the frames.
""".
-spec is_same(none | sderl_mon_types:topology(), sderl_mon_types:topology()) -> boolean().
is_same(none, _) -> false;
is_same(Before, Topology) -> essence(Before) =:= essence(Topology).

essence(#{nodes := Nodes, groups := Groups, monitors := Monitors}) ->
    {Nodes, #{Id => maps:remove(names, G) || Id := G <- Groups}, Monitors}.

monitor_infos(Masters, Members, Placement) ->
    Homes = lists:usort([sderl_mon_layout:home({N, Gs}) || N := Gs <- Members]),
    [
        #{
            node => sderl_mon_types:id(M),
            status => case IsLive of true -> up; false -> down end,
            master => Leads,
            agents => length([Home || Home <- Homes, maps:get(Home, Placement, none) =:= M])
        }
     || {M, IsLive, Leads} <- Masters
    ].

node_infos(Reports, Members, Placement) ->
    #{sderl_mon_types:id(N) => node_info(R, sderl_mon_layout:home({N, Gs}), Gs, Placement)
      || N := R <- Reports, Gs <- [maps:get(N, Members, [])]}.

node_info(#{status := Status, facts := Facts, source := Source, why := Why}, Home, Groups,
          Placement) ->
    Info = #{
        status => Status,
        groups => [sderl_mon_types:id({group, G}) || G <- Groups],
        home => sderl_mon_types:id(Home),
        hidden => maps:get(hidden, Facts, false) =:= true,
        source => case Status of down -> none; _ -> Source end
    },
    Agent = #{agent => sderl_mon_types:id(A) || {ok, A} <- [maps:find(Home, Placement)]},
    Because = #{why => Why || Why =/= <<>>},
    Told = maps:merge(
        #{otp => V || #{otp := V} <- [Facts]},
        #{library => V || #{application := V} <- [Facts], is_boolean(V)}
    ),
    maps:merge(maps:merge(Info, Agent), maps:merge(Because, Told)).

group_infos(Reports, Members, Placement) ->
    ByGroup = maps:groups_from_list(fun({G, _}) -> G end, fun({_, N}) -> N end,
                                    [{G, N} || N := Gs <- Members, G <- Gs]),
    Said = maps:groups_from_list(
        fun(#{group := G}) -> G end,
        [Info
         || _ := #{status := up, facts := Facts} <- Reports,
            #{group := _} = Info <- maps:get(groups, Facts, [])]
    ),
    Lost = minorities(Reports),
    #{
        sderl_mon_types:id({group, G}) => minority(
            maps:get(G, Lost, []),
            group_info(Nodes, maps:get(G, Said, []), maps:find({group, G}, Placement))
        )
     || G := Nodes <- ByGroup
    }.

%% By group, the members that report to have lost its majority.
minorities(Reports) ->
    maps:groups_from_list(
        fun({Group, _}) -> Group end,
        fun({_, Node}) -> sderl_mon_types:id(Node) end,
        [
            {Group, Node}
         || Node := #{status := up, facts := Facts} <- maps:iterator(Reports, ordered),
            #{group := Group, majority := false} <- maps:get(groups, Facts, [])
        ]
    ).

minority([], Info) -> Info;
minority(Lost, Info) -> Info#{minority => Lost}.

group_info(Nodes, Said, Agent) ->
    Coordinators = [C || #{coordinator := C} <- Said, C =/= undefined],
    Info = #{
        nodes => [sderl_mon_types:id(N) || N <- lists:sort(Nodes)],
        coordinator => most(Coordinators),
        names => lists:max([0 | [N || #{names := N} <- Said, is_integer(N)]]),
        agent => case Agent of {ok, A} -> sderl_mon_types:id(A); error -> undefined end
    },
    case lists:usort(lists:append([L || #{live := L} <- Said, is_list(L)])) of
        [] -> Info;
        Live -> Info#{live => [sderl_mon_types:id(N) || N <- Live]}
    end.

%% A split group has several coordinators: the one that most members report.
most([]) -> undefined;
most(List) ->
    Counts = maps:groups_from_list(fun(C) -> C end, List),
    {_, Most} = lists:max([{length(Same), C} || C := Same <- Counts]),
    sderl_mon_types:id(Most).

-doc "The node of an id, without making an atom.".
-spec node_of(sderl_mon_types:id(), reports()) ->
    {ok, node(), sderl_mon_message:status()} | {error, unknown}.
node_of(Id, Nodes) ->
    case [{N, S} || N := #{status := S} <- Nodes, sderl_mon_types:id(N) =:= Id] of
        [{Node, Status}] -> {ok, Node, Status};
        [] -> {error, unknown}
    end.

-doc "The group of an id, and its members that are up.".
-spec group_of(sderl_mon_types:id(), reports()) ->
    {ok, Group :: term(), [node()]} | {error, unknown}.
group_of(Id, Nodes) ->
    Members = groups(Nodes),
    case lists:uniq([G || _ := Gs <- Members, G <- Gs, sderl_mon_types:id({group, G}) =:= Id]) of
        [Group | _] ->
            {ok, Group, lists:sort([N
                                    || N := Gs <- Members, lists:member(Group, Gs),
                                       #{status := up} <- [maps:get(N, Nodes)]])};
        [] ->
            {error, unknown}
    end.

%% ---------------------------------------------------------------- what changed

-doc """
Events for the differences between two topologies. The first topology gives none, because everything
would be new.
""".
-spec events(none | sderl_mon_types:topology(), sderl_mon_types:topology()) ->
    [sderl_mon_types:new_event()].
events(none, _) ->
    [];
events(#{nodes := N0, groups := G0, monitors := M0},
       #{t := T, nodes := N1, groups := G1, monitors := M1}) ->
    [E#{t => T}
     || E <- node_events(N0, N1) ++ group_events(G0, G1) ++
             monitor_events(by_node(M0), by_node(M1))].

by_node(Monitors) -> #{Node => M || #{node := Node} = M <- Monitors}.

node_events(Before, After) ->
    lists:append([node_event(Id, maps:get(Id, Before, none), Info)
                  || Id := Info <- maps:iterator(After, ordered)]) ++
        [event(node_forgotten, info, Id, "~ts is gone and nobody knows of it any more", [Id])
         || Id := _ <- Before, not is_map_key(Id, After)].

node_event(_, #{status := Status}, #{status := Status}) -> [];
node_event(Id, _, #{status := up}) -> [event(node_up, notice, Id, "~ts is up", [Id])];
node_event(_, none, _) -> [];
node_event(Id, _, #{status := down} = Info) ->
    [event(node_down, warning, Id, "~ts is down: ~ts", [Id, why(Info)])];
node_event(Id, _, #{status := unreachable} = Info) ->
    [event(node_unreachable, warning, Id, "~ts: ~ts", [Id, why(Info)])].

why(Info) -> maps:get(why, Info, <<"the reason is not known">>).

group_events(Before, After) ->
    [in_group(group_created, Id, "the group ~ts has ~ts", [Id, counted(length(Nodes))])
     || Id := #{nodes := Nodes} <- After, not is_map_key(Id, Before)] ++
        [in_group(group_deleted, Id, "the group ~ts is gone", [Id])
         || Id := _ <- Before, not is_map_key(Id, After)] ++
        lists:append([group(Id, Old, New)
                      || Id := New <- After, {ok, Old} <- [maps:find(Id, Before)]]).

group(Id, #{nodes := Old, coordinator := C0}, #{nodes := New, coordinator := C1}) ->
    [in_group(members_added, Id, "~ts: new members ~ts", [Id, names(Added)])
     || Added <- [New -- Old], Added =/= []] ++
        [in_group(members_removed, Id, "~ts: no members any more: ~ts", [Id, names(Removed)])
         || Removed <- [Old -- New], Removed =/= []] ++
        [in_group(coordinator_changed, Id, "~ts: the coordinator is ~ts now", [Id, C1])
         || C1 =/= C0, C0 =/= undefined, C1 =/= undefined].

names(Ids) -> lists:join(", ", Ids).

counted(1) -> "1 node";
counted(N) -> io_lib:format("~b nodes", [N]).

monitor_events(Before, After) ->
    [
        case Status of
            up -> event(monitor_up, notice, Id, "the monitoring node ~ts is up", [Id]);
            down ->
                event(monitor_down, warning, Id,
                      "the monitoring node ~ts is down; its agents run elsewhere", [Id])
        end
     || Id := #{status := Status} <- After,
        maps:get(status, maps:get(Id, Before, #{status => none})) =/= Status
    ] ++
        [
            event(master_changed, notice, Id, "~ts is the master now", [Id])
         || Id := #{master := true} <- After,
            not maps:get(master, maps:get(Id, Before, #{master => false}))
        ].

event(Kind, Level, Node, Format, Args) ->
    #{kind => Kind, level => Level, node => Node,
      text => unicode:characters_to_binary(io_lib:format(Format, Args))}.

in_group(Kind, Group, Format, Args) ->
    #{kind => Kind, level => notice, group => Group,
      text => unicode:characters_to_binary(io_lib:format(Format, Args))}.
