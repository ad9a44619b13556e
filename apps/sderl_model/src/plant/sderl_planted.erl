%% SPDX-License-Identifier: Apache-2.0
-module(sderl_planted).
-moduledoc """
The deliberate faults of the library that the tests must notice.

Each is a change of the library's code that `m:sderl_plant` makes, in the simulator or on a node.
`rule_N` switches off the code that keeps rule N of the protocol (see INTERNALS.md); some of these
are the same as another fault.
""".
-export([all/0, unknown/1, changes/1]).
-export_type([fault/0]).

-type fault() ::
    skip_apply | lose_down | keep_names | wrong_winner | stale_coordinator | unconditional_removal
    | early_yes | resurrect | double_yes | forget_session
    | rule_1 | rule_2 | rule_3 | rule_4 | rule_5 | rule_6 | rule_7 | rule_8 | rule_9 | rule_10
    | rule_11 | rule_12
    | rule_13 | rule_14 | rule_15 | rule_16 | rule_17 | rule_18 | rule_19
    | rule_22 | rule_23 | rule_24.

-doc "All faults, with what each does.".
-spec all() -> [{fault(), string()}].
all() ->
    [{skip_apply, "a member acknowledges every third batch without changing its rows"},
     {lose_down, "the death of a registered process is not reported"},
     {keep_names, "a node that leaves a group, or whose group is deleted, keeps the group's names"},
     {wrong_winner, "a clash is settled for the process that the resolver decided against"},
     {stale_coordinator, "a coordinator goes on after a higher epoch refused it, and members apply "
                         "and acknowledge what it sends"},
     {unconditional_removal,
      "the removal after a death takes whatever process has the name by then"},
     {early_yes, "a coordinator answers before the members have acknowledged"},
     {resurrect, "a component keeps the names whose home it lost and forgets what it unregistered "
                 "in the absence of the home: such names are back when they meet"},
     {double_yes, "two registrations of a name in one batch are not seen by each other"},
     {forget_session, "a list of operations that is sent again is applied again"},
     {rule_1, "a group is known by its name alone"},
     {rule_2, "the identity of a group of the launch configuration depends on the list of its "
              "members, and a node that boots outranks running members"},
     {rule_3, "a restarted node is taken for its former life"},
     {rule_4, "a node that is a member on either side of a heal is a member after it"},
     {rule_5, "writes wait while a node is brought up to date, and a node that is removed does not "
              "get the batch of its removal"},
     {rule_6, "nodes that do not come back stay members"},
     {rule_7, "a new coordinator continues its own log, not the longest"},
     {rule_8, "forget_session"},
     {rule_9, "stale_coordinator; and members follow any node that says the coordinator is silent"},
     {rule_10, "a process that was stopped continues as if it had not been"},
     {rule_11, "a coordinator keeps its role although another member sees more of them"},
     {rule_12, "a coordinator waits for a member that does not acknowledge until its link is lost"},
     {rule_13, "a new epoch may be one that a former life of the node had"},
     {rule_14, "a member that loses a node removes its names itself"},
     {rule_15, "resurrect"},
     {rule_16, "unconditional_removal"},
     {rule_17, "a name whose process is dead counts as taken"},
     {rule_18, "every member that hears of a clash decides it"},
     {rule_19, "an operation that is repeated after a crash is a new one"},
     {rule_22, "every link between free nodes makes one island of two"},
     {rule_23, "a node that is no member asks all known members in the order of their names; a "
               "free one looks for a name in the group it is asked for"},
     {rule_24, "a node passes on what it was told of other groups"}].

-doc "Those of these that are not faults.".
-spec unknown([term()]) -> [term()].
unknown(Faults) -> [F || F <- Faults, not lists:keymember(F, 1, all())].

-doc "The changes of a fault, as `m:sderl_plant` takes them.".
-spec changes(fault()) ->
    [{module(), Functions :: string()} | {module(), Old :: string(), New :: string()}].
changes(skip_apply) ->
    [{sderl_core_write, "{apply, E, Num, Items, Index}",
      "{apply, E, Num, case S0#s.role =:= follower andalso Num rem 3 =:= 0 of true -> []; false -> "
      "Items end, Index}"}];
changes(lose_down) ->
    [{sderl_core_clients, "lists:reverse(Queue)",
      "lists:filter(fun({none, {d, _, _}}) -> false; (_) -> true end, lists:reverse(Queue))"}];
changes(keep_names) ->
    [{sderl_dir, "sderl_names:forget(Group)", "true"}];
changes(wrong_winner) ->
    [{sderl_core_clash, "Decided#{Name => {A, B, Keep, Fx}}",
      "Decided#{Name => {A, B, hd([element(2, A), element(2, B)] -- [Keep]), Fx}}"}];
changes(stale_coordinator) ->
    [{sderl_core_peers,
      "R =:= coord andalso E > Mine andalso L =/= undefined andalso L =/= Self andalso "
      "is_map_key(N, V)",
      "false"},
     {sderl_core_peers, "Highest > C", "false"},
     {sderl_core_peers, "ruled(Out, E, L, N, S)", "S"},
     {sderl_core_join,
      "give_up(A, E, #s{mode = available, role = coord, d = #d{lineage = Mine, view = V}} = S)"
      "  when E > Mine, is_map_key(A, V) -> S;"
      "give_up(A, E, S) -> former_give_up(A, E, S)."},
     {sderl_core_write,
      "batch(E, Num, _, Items, N, #s{d = #d{epoch = Mine}} = S) when E < Mine ->"
      "    send(N, {ack, E, Num, none}, fx({apply, E, Num, Items, none}, S));"
      "batch(E, Num, Commit, Items, N, S) -> former_batch(E, Num, Commit, Items, N, S)."}];
changes(unconditional_removal) ->
    [{sderl_core_clients, "lists:reverse(Queue)",
      "lists:map(fun({none, {d, Name, _}}) -> {none, {Name}}; (Asked) -> Asked end, "
      "lists:reverse(Queue))"}];
changes(early_yes) ->
    [{sderl_core_write,
      "#flight{num = Num, wait = Live, since = Now, then = Then, origins = Origins}",
      "#flight{num = Num, wait = [], since = Now, then = Then, origins = Origins}"}];
changes(resurrect) ->
    [{sderl_core_decide, "lists:usort(lists:append([Ns || #change_view{drops = Ns} <- Changes]))",
      "[]"},
     {sderl_core_decide, "K =:= 1", "false"}];
changes(double_yes) ->
    [{sderl_core_decide, "map_size(maps:from_keys(Terms, [])) =:= length(Terms)",
      "is_list(Terms)"}];
changes(forget_session) ->
    [{sderl_core_write,
      "enqueue(Seg, #s{sessions = Sessions} = S) ->"
      "    (former_enqueue(Seg, S#s{sessions = #{}}))#s{sessions = Sessions}."}];
changes(rule_1) ->
    [{sderl_hello, "launched(#{name := Group}, _) -> uid(Group, <<>>)."},
     {sderl_hello, "founded(Group, _) -> uid(Group, <<>>)."}];
changes(rule_2) ->
    [{sderl_hello, "launched(#{name := Group, members := Members}, Cluster) -> uid({Group, "
                   "lists:sort(Members)}, Cluster)."},
     {sderl_core, "case maps:get(found, A, false) of true -> Clock; false -> -Clock end", "Clock"},
     {sderl_core_admit, "sderl_core_view:unmet(S)", "false"}];
changes(rule_3) ->
    [{sderl_core, "S0#s{booting = true}", "S0#s{booting = true, d = (S0#s.d)#d{sid = 0}}"},
     {sderl_core,
      "case peer(N, S0) of #peer{inc = Old} when Old =/= Inc -> nodedown(N, S0); _ -> S0 end",
      "S0"},
     {sderl_core_write, "maps:remove(N, Sessions)", "Sessions"}];
changes(rule_4) ->
    [{sderl_core_state,
      "union(A, B, _) ->"
      "    maps:merge_with(fun(_, {X, _} = V, {Y, _}) when X rem 2 > Y rem 2 -> V; (_, _, V) -> V "
      "end, A, B)."}];
changes(rule_5) ->
    [{sderl_core_write,
      "proposed(_, _, #s{office = #office{snapshots = Snapshots, requests = Lists, changes = "
      "Changes}} = S)"
      "  when map_size(Snapshots) > 0, (Lists =/= [] orelse Changes =/= []) -> S;"
      "proposed(Mod, Store, S) -> former_proposed(Mod, Store, S)."},
     {sderl_core_write, "[N || N := live <- View, N =/= Self, is_map_key(N, S0#s.peers)]",
      "[N || N := live <- View, N =/= Self, is_map_key(N, S0#s.peers)]"
      "  -- lists:append([Ns || {mem, _, Ns} <- Items])"}];
changes(rule_6) ->
    [{sderl_core_peers, "is_ordered(forget, S)", "true"}];
changes(rule_7) ->
    [{sderl_core_elect, "lists:max([N || _ := {N, _} <- J])", "Mine"}];
changes(rule_8) -> changes(forget_session);
changes(rule_9) ->
    [{sderl_core_peers, "Outnumbered andalso Now - At =< A + sderl_core_elect:lone_ms(S)", "false"},
     {sderl_core_elect, "is_map_key(handover, Flags) orelse L =:= N", "true"},
     {sderl_core_elect, "Now - Since =< lone_ms(S)", "false"}
     | changes(stale_coordinator)];
changes(rule_10) ->
    [{sderl_core_peers, "late(S#s{last_tick = Now})", "S"}];
changes(rule_11) ->
    [{sderl_core_elect, "Alone andalso Now - Since > 2 * A", "false"},
     {sderl_core_elect, "lists:sort(Better)", "[]"}];
changes(rule_12) ->
    [{sderl_core_peers, "sderl_core_write:reorder(Aside)", "S"}];
changes(rule_13) ->
    [{sderl_core_state,
      "case Heard > Now + Clock + 10_000 of"
      "    true -> {Heard + erlang:phash2(Inc, 1024), Self};"
      "    false -> {max(Heard, Now + Clock), Self}"
      " end",
      "{max(Heard, 1), Self}"}];
changes(rule_14) ->
    [{sderl_core, "sderl_core_peers:lost(N, S1)",
      "sderl_core_peers:lost(N, fx({apply, S1#s.d#d.lineage, S1#s.num,"
      "                            S1#s.last ++ [{view, S1#s.d#d.view, [N], [], []}], none}, "
      "S1))"}];
changes(rule_15) -> changes(resurrect);
changes(rule_16) -> changes(unconditional_removal);
changes(rule_17) ->
    [{sderl_core_clients, "lists:reverse(Queue)",
      "lists:map(fun({From, {x, Name, Pid, _, Opts}}) -> {From, {r, Name, Pid, Opts}}; (Asked) -> "
      "Asked end,"
      "          lists:reverse(Queue))"}];
changes(rule_18) ->
    [{sderl_core_clash,
      "resolved(_, _, _, _, Fx, #s{role = Role} = S) when Role =/= coord -> fx({clash_effects, "
      "Fx}, S);"
      "resolved(Name, A, B, Keep, Fx, S) -> former_resolved(Name, A, B, Keep, Fx, S)."},
     {sderl_core_write,
      "item({clashes, Open} = Item, Num, S) ->"
      "    maps:fold(fun(Name, {A, B}, X) -> fx({resolve, Name, A, B}, X); (_, _, X) -> X end,"
      "              former_item(Item, Num, S), maps:iterator(Open, ordered));"
      "item(Item, Num, S) -> former_item(Item, Num, S)."}];
changes(rule_19) ->
    [{sderl_core_clients, "again(From, Op, S) -> op(From, Op, S)."}];
changes(rule_22) ->
    [{sderl_free, "merges(_) -> true."}];
changes(rule_23) ->
    [{sderl_read, "whom(Known, _) -> lists:sort(Known)."},
     {sderl_ask, "namespace(true, Group) -> {names, Group}; namespace(Free, Group) -> "
                 "former_namespace(Free, Group)."}];
changes(rule_24) ->
    [{sderl_hello, "told(Own, Heard) -> Own ++ Heard."},
     %% Both over a new link and with each change.
     {sderl_announce, "sderl_hello:told(sderl_mates:groups(Mates), [])",
      "sderl_hello:told(sderl_mates:groups(Mates), sderl_dir:known())"},
     {sderl_announce, "{sderl_mates:some_shared(Node, Mates), Changes}",
      "{sderl_mates:some_shared(Node, Mates), sderl_hello:told(Changes, sderl_dir:known())}"}];
changes(Fault) ->
    error({unknown_faults, [Fault], "sderl_planted:all() lists them"}).
