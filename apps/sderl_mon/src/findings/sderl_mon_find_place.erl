%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find_place).
-moduledoc """
Findings about nodes whose traffic says that they belong in another group.

The saving of moving a node `X` from its group `G` to `H` is computed from measurements:

- links: those that `X` has now, to the members of `G` and to members of `H` with which it exchanges
  messages, less those it would have, to all of `H` and to such members of `G`;
- messages a second: those between `X` and members of `H`, which would be inside the group, less
  those between `X` and `G`, which would cross; and because each registration costs about two
  messages for each member (docs/scaling.md), two for each registration a second in `G` less two for
  each in `H`.

Look-ups of names are left out: a look-up in a node's own group is local, and not counted. Gateways
are never moved.
""".

-export([candidates/2]).
-export([move/4]).

-import(sderl_mon_find, [grade/2, both/2, candidate/4, evidence/3, number/1]).
-import(sderl_mon_text, [text/2]).

-doc "For `m:sderl_mon_findings`.".
-spec candidates(sderl_mon_find_view:view(), sderl_mon_find:limits()) ->
    [sderl_mon_find:candidate()].
candidates(#{member_of := Of, topology := #{groups := Groups}} = View, Limits) ->
    Talk = talk(View),
    apart(lists:append([
        best([of_move(Node, Own, H, move(Node, Own, H, View, Partners), Limits)
              || H <- other_groups(Partners, Own, View), is_map_key(H, Groups)])
     || Node := Partners <- Talk, #{Node := Own} <- [Of], length(Own) =< 1
    ]), View).

%% Of two nodes that could each move to the other's group only one should, or they would swap
%% places: the one that saves most.
apart(Candidates, #{member_of := Of}) ->
    Sorted = lists:sort(fun(#{weight := A, where := X}, #{weight := B, where := Y}) ->
        {-A, X} =< {-B, Y}
    end, Candidates),
    {Kept, _} = lists:foldl(
        fun(#{where := #{node := Node, group := To}} = Candidate, {Acc, Moves}) ->
            Own = map_get(Node, Of),
            case [G || G <- Own, is_map_key({To, G}, Moves)] of
                [] -> {[Candidate | Acc], maps:merge(Moves, #{{G, To} => true || G <- Own})};
                _ -> {Acc, Moves}
            end
        end,
        {[], #{}},
        Sorted
    ),
    lists:reverse(Kept).

%% Messages a second between each pair of nodes, both ways.
talk(#{links := Links, member_of := Of}) ->
    maps:fold(
        fun({From, To}, {Msgs, _}, Acc) when is_map_key(From, Of), is_map_key(To, Of), Msgs > 0 ->
                add(From, To, Msgs, add(To, From, Msgs, Acc));
            (_, _, Acc) ->
                Acc
        end,
        #{},
        Links
    ).

add(Node, Peer, Msgs, Acc) ->
    Of = maps:get(Node, Acc, #{}),
    Acc#{Node => Of#{Peer => Msgs + maps:get(Peer, Of, 0)}}.

other_groups(Partners, Own, #{member_of := Of}) ->
    lists:usort([G || Peer := _ <- Partners, G <- maps:get(Peer, Of, [])]) -- Own.

-doc """
The evidence for moving a node: messages a second that cross now, those with its own group, and the
saving.
""".
-spec move(sderl_mon_types:id(), [sderl_mon_types:id()], sderl_mon_types:id(),
           sderl_mon_find_view:view()) ->
    #{cross := number(), own := number(), links := integer(), msgs_s := number()}.
move(Node, Own, H, View) -> move(Node, Own, H, View, maps:get(Node, talk(View), #{})).

move(Node, Own, H, #{groups := Measured} = View, Partners) ->
    Mates = lists:usort(lists:append([sderl_mon_find_view:members(G, View) || G <- Own])) -- [Node],
    There = sderl_mon_find_view:members(H, View) -- [Node],
    Talks = [Peer || Peer := _ <- Partners],
    Cross = lists:sum([maps:get(Peer, Partners, 0) || Peer <- There -- Mates]),
    OwnMsgs = lists:sum([maps:get(Peer, Partners, 0) || Peer <- Mates -- There]),
    Now = length(lists:usort(Mates ++ [Peer || Peer <- There, lists:member(Peer, Talks)])),
    After = length(lists:usort(There ++ [Peer || Peer <- Mates, lists:member(Peer, Talks)])),
    Regs = fun(Group) -> sderl_mon_find_view:number(regs_s, maps:get(Group, Measured, #{})) end,
    #{cross => Cross, own => OwnMsgs, links => Now - After,
      msgs_s => Cross - OwnMsgs + 2 * (lists:sum([Regs(G) || G <- Own]) - Regs(H))}.

of_move(Node, Own, H, #{cross := Cross, own := OwnMsgs, links := Links, msgs_s := Saved},
        #{misplaced_msgs_s := Limit, misplaced_ratio := Ratio}) ->
    Grade = case Saved > 0 of
        true -> both(grade(Cross, Limit), grade(Cross, Ratio * OwnMsgs));
        false -> none
    end,
    candidate(misplaced_node, Grade, #{node => Node, group => H}, fun() ->
        #{
            weight => Saved,
            severity => info,
            text => text("~ts belongs in ~ts: it exchanges ~ts msg/s with nodes of "
                         "that group, and ~ts with those of ~ts.",
                         [Node, H, number(Cross), number(OwnMsgs), its(Own)]),
            evidence => [
                evidence(["messages with ", H], Cross, "msg/s"),
                evidence("messages with its own group", OwnMsgs, "msg/s"),
                evidence("links that a move saves", Links, ""),
                evidence("messages between groups and of registrations that a move saves", Saved,
                         "msg/s")
            ],
            remedy => remedy(Node, Own, H),
            saves => #{links => Links, msgs_s => Saved}
        }
    end).

its([]) -> "its own (it is in no group)";
its([Own | _]) -> ["its own group ", Own].

remedy(Node, [], H) ->
    text("On a member of ~ts: s_group:add_nodes(~ts, ['~ts']).", [H, H, Node]);
remedy(Node, [Own | _], H) ->
    text("On a member of ~ts: s_group:add_nodes(~ts, ['~ts']); then, on another member of ~ts: "
         "s_group:remove_nodes(~ts, ['~ts']). Names of ~ts that live on it stay registered there.",
         [H, H, Node, Own, Own, Node, Own]).

%% The best candidate of a node: the one that saves most.
best(Candidates) ->
    case lists:append(Candidates) of
        [] -> [];
        Some ->
            [hd(lists:sort(fun(#{weight := A, where := X}, #{weight := B, where := Y}) ->
                {-A, X} =< {-B, Y}
            end, Some))]
    end.
