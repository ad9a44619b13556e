%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find_traffic).
-moduledoc "Findings about links: traffic past the gateways, and links nobody needs.".

-export([candidates/2]).

-import(sderl_mon_find, [grade/2, candidate/4, evidence/3, number/1]).
-import(sderl_mon_text, [text/2]).

%% Reasons of `m:sderl_links` which say that a link between groups is no accident.
-define(MEANT, [~"caller", ~"route", ~"{place,"]).

-doc "For `m:sderl_mon_findings`.".
-spec candidates(sderl_mon_find_view:view(), sderl_mon_find:limits()) ->
    [sderl_mon_find:candidate()].
candidates(View, Limits) -> bypasses(View, Limits) ++ idle(View, Limits).

%% Both directions of a pair are one link and one finding.
bypasses(#{links := Links, member_of := Of} = View, #{bypass_msgs_s := Limit}) ->
    Pairs = maps:fold(
        fun({From, To}, {Msgs, Bytes}, Acc) when is_map_key(From, Of), is_map_key(To, Of) ->
               maps:update_with({min(From, To), max(From, To)},
                                fun({M, B}) -> {M + Msgs, B + Bytes} end, {Msgs, Bytes}, Acc);
           (_, _, Acc) ->
               Acc
        end,
        #{},
        Links
    ),
    lists:append([
        candidate(bypass, Grade, #{from => A, to => B},
                  fun() -> bypass(A, B, Msgs, Bytes, Gateways) end)
     || {A, B} := {Msgs, Bytes} <- Pairs,
        Grade <- [grade(Msgs, Limit)], Grade =/= none,
        not sderl_mon_find_view:share(A, B, View),
        {ok, [_ | _] = Gateways} <- [sderl_mon_find_view:chain(A, B, View)],
        %% A program asked for such a link, or a route of the library uses it.
        not lists:any(fun(Reason) -> sderl_mon_find_view:reason(Reason, A, B, View) end, ?MEANT)
    ]).

bypass(A, B, Msgs, Bytes, Gateways) ->
    #{
        severity => warning,
        weight => Msgs,
        text => text("~ts and ~ts talk past the gateways: they share no group, and have a link of "
                     "their own.", [A, B]),
        evidence => [
            evidence("messages on the link", Msgs, "msg/s"),
            evidence("bytes on the link", Bytes, "B/s"),
            evidence("way over gateways",
                     iolist_to_binary(lists:join(~" > ", [A] ++ Gateways ++ [B])), "")
        ],
        remedy => text(
            "Send to {Group, Name} with sderl_route:send/2 or sderl_route:call/2,3 in place of a "
            "pid or a name on that node; the link is then idle and can go. "
            "If they need to talk this much (~ts msg/s), put both into one group, on a member of "
            "it: s_group:add_nodes(Group, ['~ts']). Is the link meant to be, say so: "
            "s_group:connect('~ts') on '~ts'.",
            [number(Msgs), A, B, A]
        ),
        saves => #{links => 1}
    }.

%% The library closes its own links when they are idle, and only reports links that it did not open.
idle(#{links := Rates, member_of := Of} = View, #{idle_s := OldS, idle_msgs_s := Limit}) ->
    lists:append([
        candidate(idle_link, idle_grade(Age, Msgs, OldS, Limit), #{from => A, to => B},
                  fun() -> idle_link(A, B, Age, Msgs) end)
     %% Only for members of groups: a mesh without groups needs no reasons.
     || A := [_ | _] <- Of,
        {B, #{reasons := [], since_s := Age} = Link} <- sderl_mon_find_view:links(A, View),
        is_map_key(B, Of),
        maps:get(type, Link, visible) =:= visible,
        %% Once, though both ends report it.
        A < B orelse not lists:keymember(A, 1, sderl_mon_find_view:links(B, View)),
        not sderl_mon_find_view:share(A, B, View),
        not reasoned(A, B, View),
        Msgs <- [lists:sum([M
                            || Key <- [{A, B}, {B, A}], {M, _} <- [maps:get(Key, Rates, {0, 0})]])]
    ]).

%% A reason at one end is enough.
reasoned(A, B, View) -> sderl_mon_find_view:reason(~"", A, B, View).

idle_grade(Age, Msgs, OldS, Limit) when Age >= OldS, Msgs < Limit -> over;
idle_grade(Age, Msgs, OldS, Limit) when Age >= OldS, Msgs < 1.25 * Limit -> near;
idle_grade(_, _, _, _) -> none.

idle_link(A, B, Age, Msgs) ->
    #{
        severity => info,
        weight => Age,
        text => text("Nobody needs the link between ~ts and ~ts: no group, route or process asks "
                     "for it, and it is idle.", [A, B]),
        evidence => [evidence("age of the link", Age, "s"),
                     evidence("messages on it", Msgs, "msg/s"),
                     evidence("reasons in s_group:links/0", 0, "")],
        remedy => text(
            "Close it on ~ts: erlang:disconnect_node('~ts'). For links that the library opened "
            "{sderl, [{link_policy, close}]} does it by itself; if it comes back, look for code "
            "that sends to that node by name.",
            [A, B]
        ),
        saves => #{links => 1}
    }.
