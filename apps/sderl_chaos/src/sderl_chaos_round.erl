%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_round).
-moduledoc """
One round of the chaos service: asks the agents what there is, lets the plan choose, and orders the
kills. Runs in a process of its own, so that a node that answers slowly delays only the round.
""".

-export([run/1]).
-export_type([view/0, outcome/0, watch/0]).

-doc """
The state of the service when the round begins. `agents`: those of the nodes that answer. `away`:
the killed things that are not back, with the node whose agent watches each. `ended`: 1 once nothing
may be killed any more.
""".
-type view() :: #{
    settings := sderl_chaos_options:settings(),
    conf := sderl_chaos_agent:conf(),
    plan := sderl_chaos_plan:plan(),
    agents := #{node() => pid()},
    away := #{pos_integer() => node() | undefined},
    number := pos_integer(),
    round => pos_integer(),
    start_ms := integer(),
    ended := atomics:atomics_ref()
}.

-doc "The process that waits for the return of a killed thing.".
-type watch() :: nobody | agent
                 | {node, sderl_chaos_node:spec(), {sderl_chaos_node:life(), SinceUs :: integer()}}.

-doc "`lost`: orders that may have been carried out, and count as not back until it is known.".
-type outcome() :: #{
    plan := sderl_chaos_plan:plan(),
    reports := [sderl_chaos_agent:report()],
    kills := [{sderl_chaos:kill(), watch()}],
    lost := [{Number :: pos_integer(), node()}],
    number := pos_integer(),
    skipped := #{atom() => non_neg_integer()},
    problems := [{node(), Class :: term(), Why :: term()}]
}.

%% An order is valid for so long: less than the time that its answer is waited for.
-define(ORDER_MS, 3000).
%% A round may be due at the very end of the window.
-define(GRACE_MS, 1000).

-doc "The round that is due.".
-spec run(view()) -> outcome().
run(#{plan := Plan, away := Away} = View) ->
    Reports = refresh(View),
    NotBack = map_size(maps:without([Number || {Number, _} <- Reports], Away)),
    {Draws, Plan1} = sderl_chaos_plan:draws(Plan),
    case sderl_chaos_plan:room(Plan1, NotBack) of
        0 -> outcome(View, Plan1, Reports, {0, [], []}, #{at_once => length(Draws)}, []);
        _ -> drawn(View, Plan1, Reports, NotBack, Draws)
    end.

drawn(View, Plan, Reports, NotBack, Draws) ->
    {Drawn, Problems} = ask(View, Draws, []),
    Nothing = length([D || D <- Drawn, sderl_chaos_plan:wants(D) =:= nothing]),
    {Hits, HeldBack, Plan1} = sderl_chaos_plan:admit(Plan, Drawn, NotBack),
    Results = strike(View#{round => sderl_chaos_plan:round(Plan1)}, Hits),
    Kills = [Kill || {_, {ok, Kill}} <- Results],
    Missed = length([missed || {_, {error, missed}} <- Results]),
    Late = length([late || {_, {error, late}} <- Results]),
    %% These may have been carried out.
    Unanswered = [{Number, Hit, Why}
                  || {{Number, Hit}, {error, Why}} <- Results, Why =/= missed, Why =/= late],
    Skipped = #{at_once => HeldBack, nothing_there => Nothing, missed => Missed,
                unanswered => length(Unanswered), late => Late},
    Lost = [{Number, Node}
            || {Number, {hit, Target, Node, _}, _} <- Unanswered, is_awaited(View, Target)],
    More = [{Node, maps:get(class, target(View, Target)), Why}
            || {_, {hit, Target, Node, _}, Why} <- Unanswered],
    outcome(View, sderl_chaos_plan:missed(Plan1, Missed + Late), Reports,
            {length(Hits), Kills, Lost}, Skipped, Problems ++ More).

target(#{settings := #{targets := Targets}}, Target) -> maps:get(Target, Targets).

is_awaited(#{settings := #{dry := Dry}} = View, Target) ->
    maps:get(await, target(View, Target)) andalso not Dry.

%% A number that was used in an order is not used again.
outcome(#{number := First}, Plan, Reports, {Tried, Kills, Lost}, Skipped, Problems) ->
    #{
        plan => Plan,
        reports => Reports,
        kills => Kills,
        lost => Lost,
        number => First + Tried,
        skipped => Skipped,
        problems => lists:usort(Problems)
    }.

%% The things that are back by now no longer count for the limits.
refresh(#{away := Away, agents := Agents, settings := #{call := Call}}) ->
    Nodes = lists:usort([Node || Node <- maps:values(Away), is_map_key(Node, Agents)]),
    Answers = sderl_chaos_reach:at_once(Nodes, fun(Node) ->
        sderl_chaos_reach:beat(Call, Node, maps:get(Node, Agents), {[], []})
    end, {error, timeout}),
    lists:append([Reports || {_, {ok, Reports, _}} <- Answers]).

%% Until no draw has a question any more; the questions of all draws are asked together.
ask(View, Draws, Problems) ->
    case [{Target, Nodes} || D <- Draws, {ask, Target, Nodes} <- [sderl_chaos_plan:wants(D)]] of
        [] ->
            {Draws, Problems};
        Asking ->
            {Counts, More} = look(View, lists:usort([{Node, Target}
                                                     || {Target, Nodes} <- Asking, Node <- Nodes])),
            ask(View, [answered(D, Counts) || D <- Draws], More ++ Problems)
    end.

answered(Draw, Counts) ->
    case sderl_chaos_plan:wants(Draw) of
        {ask, Target, Nodes} ->
            sderl_chaos_plan:answer(Draw,
                                    #{N => C
                                      || N <- Nodes, {ok, C} <- [maps:find({N, Target}, Counts)]});
        _ -> Draw
    end.

look(#{agents := Agents, settings := #{targets := Targets, call := Call}, conf := Conf}, Wanted) ->
    Asked = [W || {Node, _} = W <- Wanted, is_map_key(Node, Agents)],
    Answers = sderl_chaos_reach:at_once(
        Asked,
        fun({Node, Target}) ->
            case maps:get(Target, Targets) of
                #{kind := node} -> {ok, 1};
                #{spec := Spec} ->
                    sderl_chaos_reach:look(Call, Node, maps:get(Node, Agents), {Target, Spec}, Conf)
            end
        end,
        {error, timeout}
    ),
    {
        #{W => Count || {W, {ok, Count}} <- Answers},
        [{Node, maps:get(class, maps:get(Target, Targets)), Why}
         || {{Node, Target}, {error, Why}} <- Answers]
    }.

strike(#{number := First} = View, Hits) ->
    sderl_chaos_reach:at_once(lists:enumerate(First, Hits), fun(Hit) -> strike_one(View, Hit) end,
                              {error, timeout}).

%% Nothing is killed once the service was told to stop or the window is over. The order has its time
%% limit by the agent's own clock, so that an order that a link or a stopped node has delayed is no
%% longer valid when the service has stopped waiting for the answer.
strike_one(#{settings := #{call := Call}} = View, {_, {hit, _, Node, _}} = Hit) ->
    maybe
        {ok, Clock} ?= sderl_chaos_reach:clock(Call, Node),
        {ok, LeftMs} ?= left(View),
        strike_now(View, Hit, Clock + LeftMs)
    end.

left(#{ended := Ended, start_ms := Start, settings := #{plan := #{window := {_, ToMs}}}}) ->
    Left =
        case ToMs of
            infinity -> ?ORDER_MS;
            _ -> min(?ORDER_MS, Start + ceil(ToMs) + ?GRACE_MS - erlang:monotonic_time(millisecond))
        end,
    case atomics:get(Ended, 1) of
        0 when Left > 0 -> {ok, Left};
        _ -> {error, late}
    end.

strike_now(#{settings := #{call := Call, dry := Dry}, agents := Agents, start_ms := Start,
             round := Round} = View, {Number, {hit, Target, Node, Nth}}, Until) ->
    #{kind := Kind, class := Class, spec := Spec, await := Await} = target(View, Target),
    Kill = #{
        number => Number,
        round => Round,
        at_ms => erlang:monotonic_time(millisecond) - Start,
        kind => Kind,
        class => Class,
        node => Node,
        awaited => Await andalso not Dry,
        back_us => undefined,
        dry => Dry
    },
    case Kind of
        node ->
            strike_node(Call, Node, Spec, Kill#{key => Node, pid => Node,
                                                system_us => erlang:system_time(microsecond)});
        _ ->
            Order = #{number => Number, dry => Dry, await => Await, until_ms => Until},
            case sderl_chaos_reach:strike(Call, Node, maps:get(Node, Agents), {Target, Spec}, Nth,
                                          Order) of
                {ok, Struck} -> {ok, {maps:merge(Kill, Struck), watch(Kill, agent)}};
                {error, _} = Error -> Error
            end
    end.

strike_node(_, _, _, #{dry := true} = Kill) ->
    {ok, {Kill, nobody}};
strike_node(Call, Node, Spec, Kill) ->
    case sderl_chaos_node:kill(Call, Node, Spec) of
        {ok, Life, Since} -> {ok, {Kill, watch(Kill, {node, Spec, {Life, Since}})}};
        {error, _} = Error -> Error
    end.

watch(#{awaited := true}, Watch) -> Watch;
watch(#{awaited := false}, _) -> nobody.
