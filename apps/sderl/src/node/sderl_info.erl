%% SPDX-License-Identifier: Apache-2.0
-module(sderl_info).
-moduledoc false.
%% `s_group:info/0`: what is so, and in sentences why it is not as one would expect.

-export([info/0]).

-include("../core/sderl_version.hrl").
-define(TIMEOUT, 3000).

-spec info() -> [{atom(), term()}].
info() ->
    Own = lists:sort(sderl_dir:named_memberships()),
    Groups = [state(G, Pid) || {G, #{process := Pid}} <- lists:sort(sderl_dir:all())],
    Nodes = lists:usort(lists:append([Ms || {_, Ms} <- Own])),
    Linked = [node() | nodes(connected)],
    Refused = lists:sort(sderl_refused:joins()),
    Versions = sderl_refused:versions(),
    Unknown = sderl_refused:messages(),
    [{state, case Own of [] -> no_conf; _ -> synced end},
     {own_group_names, [G || {G, _} <- Own]},
     {own_group_nodes, Nodes},
     {synced_nodes, lists:usort(lists:append([L || #{live := L} <- Groups])) -- [node()]},
     {sync_error, lists:usort([N || {_, N, Why} <- Refused, Why =/= unreachable])},
     {no_contact, Nodes -- Linked},
     {own_s_groups, sderl_dir:newest_first()},
     {other_groups, sderl_dir:known()},
     {monitoring, []},
     {groups, Groups},
     {followed, sderl_copies:info()},
     {left_out, Refused},
     {refused, Versions},
     {gone, lists:sort(sderl_dir:gone_all())},
     {unknown_messages,
      lists:sum([N || {_, N} <- Unknown] ++ [N || #{unknown_messages := N} <- Groups])},
     {global, "on a node with connect_all false `global` keeps names on this node only and "
              "global:sync/0 does not return: use s_group with group `undefined` for free names"},
     {problems,
      lists:append([problems(G, Linked) || G <- Groups]) ++ [left_out(R) || R <- Refused]
      ++ [text("~0tp is not heard: ~ts", [N, because({other_version, V})]) || {N, V} <- Versions]
      ++ [text("~0tp ignored ~0tp messages of an unknown kind or version", [P, N])
          || {P, N} <- Unknown]}].

state(Group, Pid) ->
    case sderl_group:info(Pid, ?TIMEOUT) of
        {ok, Info} -> Info;
        {error, Why} -> #{group => Group, error => Why}
    end.

problems(#{group := G, error := Why}, _) ->
    [text("~0tp: its process does not answer (~0tp)", [G, Why])];
problems(
    #{group := G, role := Role, members := Ms, live := Live, aside := Aside, talking := Talking,
      acknowledgements_missing := Missing, exchanging_epochs_with := Groggy, waiting := Waiting,
      unknown_messages := Unknown} = Info,
    Linked
) ->
    Down = Ms -- Linked,
    Silent = [N || N <- Ms, N =/= node(), lists:member(N, Linked), not lists:member(N, Talking)],
    lists:append([
        [text("~0tp: no majority of the members here: nothing is written until more of them are "
              "back", [G])
         || #{majority := false} <- [Info]],
        [text("~0tp: no link to ~0tp; they are tried again and again", [G, Down]) || Down =/= []],
        [text("~0tp: ~0tp are linked but the application does not answer there", [G, Silent])
         || Silent =/= []],
        [text("~0tp: ~0tp are set aside: they do not acknowledge or are catching up", [G, Aside])
         || Aside =/= []],
        [text("~0tp: waits for ~0tp to acknowledge", [G, Missing]) || Missing =/= []],
        [text("~0tp: this node was stopped for a while and asks ~0tp for their epochs", [G, Groggy])
         || Groggy =/= []],
        [text("~0tp: no coordinator (~0tp); ~0tp operations wait", [G, Role, Waiting])
         || Role =:= orphan orelse Role =:= candidate],
        [text("~0tp: other components exist: ~0tp are linked but not in this one", [G, Apart])
         || Apart <- [[N || N <- Talking, not lists:member(N, Live), not lists:member(N, Aside)]],
            Apart =/= []],
        [text("~0tp: ~0tp messages of an unknown kind or version were ignored", [G, Unknown])
         || Unknown > 0]
    ]).

left_out({G, Node, uid_conflict}) ->
    text("~0tp: another group of this name runs at ~0tp; the two never merge: delete one and add "
         "its nodes to the other",
         [G, Node]);
left_out({G, Node, Why}) when Node =:= node() ->
    text("~0tp: this node has not entered it yet and tries again: ~0tp", [G, Why]);
left_out({G, Node, Why}) ->
    text("~0tp: ~0tp was left out: ~ts", [G, Node, because(Why)]).

because(unreachable) -> "it cannot be connected (is it up, reachable, and of the same cookie?)";
because(application_not_running) -> "the application sderl is not running there";
because(s_group_conflict) -> "it is in another group of this name";
because(consistency_differs) ->
    "its configuration gives the group another consistency; give all nodes the same";
because(not_distributed) -> "this node has no name; start it with -sname or -name";
because(connect_all) -> "it runs with connect_all true; start it with -connect_all false";
because({other_version, Version}) ->
    io_lib:format("it speaks version ~0tp of the protocol and this node ~b: ~ts",
                  [Version, ?VSN, sderl_refused:version_remedy(Version)]);
because(Why) -> io_lib:format("~0tp", [Why]).

text(Format, Args) -> unicode:characters_to_list(io_lib:format(Format, Args)).
