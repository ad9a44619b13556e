%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_settle).
-moduledoc """
The promises of a simulated group after the faults: all members are in one component with one table,
every operation is answered, and the names are right.
""".
-include("sderl_sim.hrl").

-export([together/1, answered/1, probe/1, deaths/1, settled/1]).

-import(sderl_sim_world, [violation/3, member/3, nodes_of/2, node/2, book/2, seen/3, rows/3,
                          state/3, live_members/2, coordinators/2, alive/2]).

-doc "Whether the members of every group are one component.".
-spec together(#w{}) -> boolean().
together(W) -> lists:all(fun(G) -> together(G, W) end, sderl_sim_world:groups(W)).

together(G, W) ->
    case book(G, W) of
        #b{deleted = true, made = false} -> live_members(G, W) =:= [];
        _ -> lists:all(fun(Ns) -> together(G, Ns, W) end, parts(G, W))
    end.

together(G, Ns, W) ->
    case {coordinators(G, W), Ns} of
        {_, []} -> not lists:any(fun(N) -> comes_back(N, G, W) end, nodes_of(G, W));
        {Cs, _} -> together(G, Ns, [C || C <- Cs, lists:member(C, Ns)], W)
    end.

%% Its process has died, and restarts in a moment.
comes_back(N, G, W) ->
    case {node(N, W), member(N, G, W)} of
        {#n{up = true}, #m{p = undefined, store = Store}} -> Store =/= undefined;
        _ -> false
    end.

%% A group that was made again may be there twice: a node did not learn that the former one was
%% deleted.
parts(G, W) ->
    Live = [N || N <- live_members(G, W), not waits_for_one(N, G, W)],
    case book(G, W) of
        #b{made = false} -> [Live];
        _ ->
            Uid = fun(N) -> (member(N, G, W))#m.uid end,
            [[N || N <- Live, Uid(N) =:= U] || U <- lists:usort([Uid(N) || N <- Live])]
    end.

%% A majority group of one member cannot grow: a node that was added by nodes that are lost, or have
%% forgotten it, asks for its place until the group is deleted.
waits_for_one(N, G, W) ->
    case {sderl_sim_world:mode(G, W), coordinators(G, W)} of
        {majority, [C]} when C =/= N ->
            #{membership := Mem} = seen(C, G, W),
            sderl_membership:members(Mem) =:= [C]
                andalso maps:get(role, seen(N, G, W)) =:= joining;
        _ -> false
    end.

together(G, Ns, Cs, W) ->
    case Cs of
        [C] ->
            #{lineage := E, membership := Mem, ordering := Ordering} = seen(C, G, W),
            Members = there(G, Mem, Ns, W),
            not Ordering andalso Ns =:= Members andalso
                sderl_core:live(state(C, G, W)) =:= Members andalso
                lists:all(fun(N) -> in_component(N, G, C, E, Mem, W) end, Ns);
        _ -> false
    end.

%% The members without the nodes that are lost for good or are in another group of this name.
there(G, Mem, Ns, W) ->
    Elsewhere = case book(G, W) of
        %% A node that an island counts is in it in the end, or in one that is older and counts the
        %% others, too.
        #b{made = island} -> [];
        _ -> live_members(G, W) -- Ns
    end,
    [N
     || N <- sderl_membership:members(Mem), not (node(N, W))#n.lost,
        not lists:member(N, Elsewhere)].

in_component(N, G, C, E, Mem, W) ->
    case seen(N, G, W) of
        #{role := R, lead := C, lineage := E, membership := Mem, syncing := false} = Seen
          when R =:= coord; R =:= follower ->
            maps:get(majority, Seen, true) =/= false andalso sderl_core:settled(state(N, G, W));
        _ -> false
    end.

-doc "Every operation must now be answered (rule 19): one registration on every member.".
-spec probe(#w{}) -> #w{}.
probe(W0) ->
    lists:foldl(fun({G, N}, W) ->
        {P, W1} = sderl_sim_world:pid(N, W),
        Op = #?REGISTER_WITH{name = {probe, N}, pid = P, options = #{}},
        sderl_sim_client:submit(N, G, probe, Op, W1)
    end, W0, [{G, N} || G <- sderl_sim_world:groups(W0), N <- live_members(G, W0)]).

-doc """
One in three of the processes that have a name dies (rule 16); no client uses their names any more.
""".
-spec deaths(#w{}) -> #w{}.
deaths(W0) ->
    Pids = lists:usort([sderl_row:pid(Row) || G <- sderl_sim_world:groups(W0),
                                              [C] <- [coordinators(G, W0)],
                                              _ := Row <- rows(C, G, W0)]),
    Die = [Pid || {I, Pid} <- lists:enumerate(Pids), I rem 3 =:= 1, alive(Pid, W0)],
    lists:foldl(fun sderl_sim_death:dies/2, W0, Die).

-doc "Whether no client waits for an answer.".
-spec answered(#w{}) -> boolean().
answered(W) -> unanswered(W) =:= [].

%% A client that asked in an earlier life of the node or of the member is not answered.
unanswered(#w{ops = Ops} = W) ->
    [{Id, Op, N}
     || Id := #{op := Op, node := N, group := G, life := L} = O <- Ops, not is_map_key(answer, O),
        not is_map_key(given_up, O), seen(N, G, W) =/= none, (node(N, W))#n.life =:= L].

-doc "Checks all groups; ends the run if something is wrong.".
-spec settled(#w{}) -> #w{}.
settled(W) ->
    lists:foreach(fun(G) -> settled(G, book(G, W), W) end, sderl_sim_world:groups(W)),
    W.

settled(G, #b{deleted = true, made = false}, W) ->
    case live_members(G, W) of
        [] -> ok;
        Ns -> violation(deleted_but_there, [Ns], W)
    end;
settled(G, B, W) ->
    B#b.made =:= true andalso known_to_be_deleted(G, W),
    lists:foreach(fun(Ns) -> settled(G, Ns, B, W) end, parts(G, W)).

%% No node runs a group that another node knows to be deleted: they have a link, and it says so.
known_to_be_deleted(G, W) ->
    Deleted = [Uid || N <- nodes_of(G, W), Uid := {deleted, _} <- (member(N, G, W))#m.gone],
    case [N || N <- live_members(G, W), lists:member((member(N, G, W))#m.uid, Deleted)] of
        [] -> ok;
        Ns -> violation(deleted_but_there, [Ns], W)
    end.

settled(G, Ns, B, W) ->
    Infos = [info(N, G, W) || N <- Ns],
    case [U || {_, _, N} = U <- unanswered(W), seen(N, G, W) =/= none] of
        [] -> ok;
        Us -> violation(unanswered, [lists:sort(Us), Infos], W)
    end,
    case [C || C <- coordinators(G, W), lists:member(C, Ns)] of
        [C] -> one_component(C, G, Ns, B, Infos, W);
        %% All members left.
        [] when Infos =:= [] -> ok;
        Cs -> violation(one_coordinator, [Cs, Infos], W)
    end.

info(N, G, W) ->
    {N, maps:with([role, coordinator, epoch, lineage, number, live, aside, syncing, members, linked,
                   talking, waiting],
                  sderl_core:info(state(N, G, W)))}.

one_component(C, G, Ns, #b{truth = Truth} = B, Infos, W) ->
    #{lineage := E, membership := Mem, clashes := Clashes} = seen(C, G, W),
    Members = there(G, Mem, Ns, W),
    Live = sderl_core:live(state(C, G, W)),
    Bad = [N
           || N <- Ns, not in_component(N, G, C, E, Mem, W) orelse map_get(pending, seen(N, G, W))],
    Bad =:= [] orelse violation(one_component, [C, Bad, Infos], W),
    Ns =:= Members orelse violation(members, [Members, Ns], W),
    Live =:= Members orelse violation(live, [Live, Members], W),
    Clashes =:= #{} orelse violation(clashes, [Clashes], W),
    Rows = rows(C, G, W),
    _ = [violation(equal_tables, [C, N, diff(rows(N, G, W), Rows)], W)
         || N <- Ns, rows(N, G, W) =/= Rows],
    _ = [violation(home, [Row], W)
         || _ := ?ROW_AT(Home) = Row <- Rows, not lists:member(Home, Members)],
    _ = [violation(dead_pid, [Row], W) || _ := ?ROW_OF(Pid) = Row <- Rows, not alive(Pid, W)],
    sderl_sim_strict:settled(G, Members, W),
    sderl_sim_majority:settled(G, Members, W),
    %% Names of nodes in another group of this name are in that group.
    _ = [expect(Own, T, maps:get(Own, Rows, none), B, W)
         || {own, Of, _, _} = Own := T <- Truth, B#b.made =:= false orelse lists:member(Of, Ns)],
    sderl_sim_world:tell({settled, G, C, E, map_size(Rows)}, W).

diff(A, B) ->
    [{K, maps:get(K, A, none), maps:get(K, B, none)}
     || K <- lists:usort(maps:keys(A) ++ maps:keys(B)),
        maps:get(K, A, none) =/= maps:get(K, B, none)].

%% A client's own names are as it knows them; those of earlier lives of its node are gone.
expect({own, N, Life, _} = Own, Truth, Row, #b{left = Left}, W) ->
    #n{life = Now, up = Up} = node(N, W),
    Same = Up andalso Now =:= Life,
    case Truth of
        _ when not Same, Row =/= none -> violation(zombie, [Own, Row], W);
        {present, Pid} when Same, not is_map_key({N, Life}, Left) ->
            Expect = case alive(Pid, W) of true -> Pid; false -> none end,
            case Row of
                ?ROW_OF(Expect) -> ok;
                none when Expect =:= none -> ok;
                _ -> violation(lost_name, [Own, Truth, Row], W)
            end;
        absent when Row =/= none -> violation(zombie, [Own, Row], W);
        _ -> ok
    end.
