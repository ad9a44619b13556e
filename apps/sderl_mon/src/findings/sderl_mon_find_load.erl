%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find_load).
-moduledoc """
Findings about overload: gateways, groups that are too large for their rate of registrations, and
processes that get most of the messages.

A registration in a group of `N` nodes costs `2 N` messages while nobody else writes, and about 6
when many do, because they share batches; the bytes grow with the group either way, about 245 `N` a
registration alone and 80 `N` busy (docs/scaling.md, measured in simulation). Both costs are shown.
""".

-export([candidates/2]).

-import(sderl_mon_find, [grade/2, both/2, candidate/4, evidence/3, number/1]).
-import(sderl_mon_text, [text/2]).
-import(sderl_mon_find_view, [number/2]).

-define(BYTES_ALONE, 245).
-define(BYTES_BUSY, 80).
-define(MSGS_BUSY, 6).

-doc "For `m:sderl_mon_findings`.".
-spec candidates(sderl_mon_find_view:view(), sderl_mon_find:limits()) ->
    [sderl_mon_find:candidate()].
candidates(View, Limits) -> gateways(View, Limits) ++ groups(View, Limits) ++ hot(View, Limits).

gateways(#{member_of := Of, nodes := Nodes} = View, Limits) ->
    lists:append([gateway(Node, Groups, maps:get(Node, Nodes, #{}), View, Limits)
                  || Node := [_, _ | _] = Groups <- Of]).

gateway(Node, Groups, Sample, View, #{gateway_util := UtilLimit, gateway_bytes_s := BytesLimit,
                                      gateway_pending_bytes := PendingLimit}) ->
    Util = number(util, Sample),
    Bytes = number(out_bytes_s, Sample),
    {Pending, Peer} = lists:max([{0, ~"no link"}
                                 | [{number(pending, Link), P}
                                    || {P, Link} <- sderl_mon_find_view:links(Node, View)]]),
    Shares = [{Util, UtilLimit}, {Bytes, BytesLimit}, {Pending, PendingLimit}],
    Worst = lists:max([Value / Limit || {Value, Limit} <- Shares]),
    candidate(gateway_saturated, grade(Worst, 1), #{node => Node}, fun() ->
        #{
            severity => case Pending >= PendingLimit orelse Util >= 0.98 of
                true -> critical;
                false -> warning
            end,
            weight => Worst,
            text => text("Gateway ~ts is near what it can carry for ~w groups.",
                         [Node, length(Groups)]),
            evidence => [
                evidence("utilisation", 100 * Util, "%"),
                evidence("bytes sent", Bytes, "B/s"),
                evidence("messages sent", number(out_msgs_s, Sample), "msg/s"),
                evidence(["bytes that wait, most on the link to ", Peer], Pending, "B")
            ],
            remedy => text(
                "Make another node a gateway between ~ts: s_group:add_nodes(~ts, [Node]) for a "
                "member of ~ts; routes use all gateways. Or let the pairs of nodes that use it "
                "most share a group (Traffic, by gateway). "
                "A sender is stopped when +zdbbl (1 MiB by default) waits on a link.",
                [lists:join(" and ", lists:sublist(Groups, 2)), lists:nth(2, Groups), hd(Groups)]
            )
        }
    end).

%% The cost of a registration in messages and bytes, alone or among many.
registration(Size, alone) -> {2 * Size, ?BYTES_ALONE * Size};
registration(Size, busy) -> {min(?MSGS_BUSY, 2 * Size), ?BYTES_BUSY * Size}.

groups(#{topology := #{groups := Groups}, groups := Measured},
       #{group_msgs_s := Limit, group_size := SizeLimit}) ->
    lists:append([
        group(Group, length(Nodes), number(regs_s, maps:get(Group, Measured, #{})), Limit)
     || Group := #{nodes := Nodes} <- Groups, length(Nodes) >= SizeLimit
    ]).

group(Group, Size, Rate, Limit) ->
    {Msgs, Bytes} = registration(Size, alone),
    {BusyMsgs, BusyBytes} = registration(Size, busy),
    Half = (Size + 1) div 2,
    candidate(group_too_large, grade(Rate * Msgs, Limit), #{group => Group}, fun() ->
        #{
            weight => Rate * Msgs,
            text => text("~ts has ~w nodes, which is large for ~ts registrations a second.",
                         [Group, Size, number(Rate)]),
            evidence => [
                evidence("nodes in the group", Size, ""),
                evidence("registrations and unregistrations", Rate, "1/s"),
                evidence("messages of them, each written alone", Rate * Msgs, "msg/s"),
                evidence("messages of them, in full batches", Rate * BusyMsgs, "msg/s"),
                evidence("bytes of them, alone", Rate * Bytes, "B/s"),
                evidence("bytes of them, in full batches", Rate * BusyBytes, "B/s")
            ],
            remedy => text(
                "Split it: each half of ~w nodes registers half the names, at half the messages "
                "each. bin/sderl plan --nodes FILE --traffic FILE proposes groups and gateways "
                "(docs/designing-groups.md). "
                "Names that one node alone looks up need no group: register them locally.",
                [Half]
            ),
            saves => #{msgs_s => Rate * Msgs - Rate * 2 * Half}
        }
    end).

%% Only while tracing is on, and only for traced processes.
hot(#{details := Details}, #{hot_msgs_s := Limit, hot_share := ShareLimit}) ->
    Rows = [{to(Row), traced(Row, SpanMs), Node}
            || Node := #{traffic := Traffic, span_ms := SpanMs} <- Details, is_list(Traffic),
               #{to := _} = Row <- Traffic],
    All = lists:sum([Msgs || {_, Msgs, _} <- Rows]),
    By = lists:foldl(fun({To, Msgs, Node}, Acc) ->
        maps:update_with(To, fun({M, Ns}) -> {M + Msgs, [Node | Ns]} end, {Msgs, [Node]}, Acc)
    end, #{}, Rows),
    lists:append([
        candidate(hot_name, both(grade(Msgs, Limit), grade(Msgs / All, ShareLimit)), #{to => To},
                  fun() ->
                      #{
                          severity => info,
                          weight => Msgs,
                          text => text("~ts gets ~w % of the messages that are traced.",
                                       [To, round(100 * Msgs / All)]),
                          evidence => [
                              evidence("messages to it", Msgs, "msg/s"),
                              evidence("all that are traced", All, "msg/s"),
                              evidence("nodes that send to it", length(lists:usort(Senders)), "")
                          ],
                          remedy => <<"Spread it: several processes under names of their own, or a "
                                      "process group of the s_group (s_group:join/3, "
                                      "s_group:members/2) from which senders pick. Look at its "
                                      "queue on the node's page.">>
                      }
                  end)
     || All > 0, To := {Msgs, Senders} <- By
    ]).

to(#{to := To}) when is_binary(To) -> To.

%% Messages a second, from those since the sample before.
traced(Row, SpanMs) -> number(msgs, Row) * 1000 / SpanMs.
