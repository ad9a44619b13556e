%% SPDX-License-Identifier: Apache-2.0
-module(sderl_links_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(IDLE, 100).

links_test_() ->
    [
        {Name, fun() -> with_table(Test) end}
     || {Name, Test} <- [
            {"who opened a link", fun who_opened/0},
            {"reasons and the link's end", fun reasons_and_end/0},
            {"exact group names", fun exact_names/0},
            {"unneeded links", fun unneeded/0},
            {"lookups run out", fun lookups/0},
            {"uses and watches are forgotten", fun forgotten/0},
            {"a link that takes long to open is the library's", fun opened_late/0},
            {"this node", fun this_node/0},
            {"needs that nobody noted", fun needs/0},
            {"an end's view", fun view/0}
        ]
    ].

properties_test_() ->
    [
        sderl_prop:eunit("links: as the history says", 300, fun prop_history/0),
        sderl_prop:eunit("links: closing needs both ends", 300, fun prop_close/0)
    ].

with_table(Test) ->
    sderl_links = sderl_links:new(),
    try
        Test()
    after
        ets:delete(sderl_links)
    end.

row(Node) ->
    case [Link || #{node := N} = Link <- sderl_links:list(#{}, 0, ?IDLE), N =:= Node] of
        [Link] -> Link;
        [] -> none
    end.

%% What is needed no more leaves no row, and the link is free since then.
forgotten() ->
    ok = sderl_links:note(b@h, {lookup, g}, 10),
    ok = sderl_links:nodeup(b@h, true, 10),
    [ok = sderl_links:note(b@h, {lookup, {h, I}}, I) || I <- lists:seq(11, 30)],
    [ok = sderl_links:note(b@h, {monitor, G}, 20) || G <- [g, h, {i, '$1'}]],
    ok = sderl_links:note(b@h, caller, 5),
    ok = sderl_links:forget_uses(25),
    ?assertEqual([caller] ++ [{lookup, {h, I}} || I <- lists:seq(25, 30)] ++
                 [{monitor, G} || G <- [g, h, {i, '$1'}]],
                 maps:get(reasons, row(b@h))),
    ok = sderl_links:forget_monitors([{b@h, h}, {c@h, g}, {b@h, {i, '$1'}}], 21),
    ok = sderl_links:forget_uses(31),
    ?assertEqual([caller, {monitor, h}, {monitor, {i, '$1'}}], maps:get(reasons, row(b@h))),
    ok = sderl_links:forget_monitors([], 20),
    ?assertEqual([caller, {monitor, h}, {monitor, {i, '$1'}}], maps:get(reasons, row(b@h))),
    ok = sderl_links:forget_monitors([], 21),
    ok = sderl_links:forget(b@h, caller, 35),
    ?assertEqual([], maps:get(reasons, row(b@h))),
    %% Since its last need.
    ?assertEqual([{b@h, ?IDLE}], sderl_links:unneeded(#{}, 35 + ?IDLE, ?IDLE)).

%% To open a link may take longer than a use lasts.
opened_late() ->
    ok = sderl_links:note(b@h, {lookup, g}, 0),
    ok = sderl_links:forget_uses(120_000),
    ok = sderl_links:nodeup(b@h, true, 120_000),
    ?assertMatch(#{opened_by := library}, row(b@h)),
    ok = sderl_links:forget_uses(120_001),
    ?assertMatch(#{reasons := []}, row(b@h)),
    ?assertEqual([{b@h, ?IDLE}], sderl_links:unneeded(#{}, 120_000 + ?IDLE, ?IDLE)),
    %% One that never came leaves nothing.
    ok = sderl_links:note(c@h, {lookup, g}, 0),
    ok = sderl_links:forget_uses(130_001),
    ?assertEqual([], sderl_links:reasons(c@h)).

who_opened() ->
    ok = sderl_links:note(b@h, {group, g}, 0),
    ok = sderl_links:nodeup(b@h, true, 0),
    ok = sderl_links:nodeup(c@h, false, 0),
    ok = sderl_links:note(c@h, {group, g}, 0),
    Before = erlang:system_time(second),
    #{since := Since} = B = row(b@h),
    ?assert(Since =< Before),
    ?assertEqual(
        #{
            node => b@h, visible => true, since => Since, reasons => [{group, g}],
            opened_by => library, needed => true
        },
        B
    ),
    ?assertMatch(#{visible := false, opened_by := other, needed := true}, row(c@h)),
    ok = sderl_links:forget(c@h, {group, g}, 0),
    ?assertMatch(#{reasons := [], needed := true}, row(c@h)),
    ?assertEqual([b@h, c@h], [N || #{node := N} <- sderl_links:list()]).

reasons_and_end() ->
    All = [{group, g}, free_island, caller, stock, route, {monitor, g}, {lookup, g}],
    [sderl_links:note(b@h, Reason, 0) || Reason <- All ++ All],
    ok = sderl_links:nodeup(b@h, true, 0),
    ?assertMatch(#{reasons := Reasons} when length(Reasons) =:= length(All), row(b@h)),
    ok = sderl_links:nodedown(b@h),
    ?assertEqual(none, row(b@h)),
    ?assertEqual([free_island, {group, g}], sderl_links:reasons(b@h)),
    ok = sderl_links:forget(b@h, free_island),
    ok = sderl_links:forget(b@h, free_island),
    ok = sderl_links:forget(b@h, {group, g}),
    ok = sderl_links:nodedown(b@h),
    ?assertEqual([], ets:tab2list(sderl_links)).

exact_names() ->
    ok = sderl_links:note(b@h, {group, 1}),
    ok = sderl_links:note(b@h, {group, 1.0}),
    ok = sderl_links:forget(b@h, {group, 1}),
    ?assertEqual([{group, 1.0}], sderl_links:reasons(b@h)).

unneeded() ->
    ok = sderl_links:note(b@h, route, 0),
    ok = sderl_links:note(b@h, {group, g}, 0),
    ok = sderl_links:nodeup(b@h, true, 0),
    ok = sderl_links:nodeup(c@h, true, 0),
    ?assertEqual([], sderl_links:unneeded(#{}, 1000, ?IDLE)),
    ok = sderl_links:forget(b@h, route, 300),
    ?assertEqual([], sderl_links:unneeded(#{}, 1000, ?IDLE)),
    ok = sderl_links:forget(b@h, {group, g}, 500),
    ?assertEqual([], sderl_links:unneeded(#{}, 599, ?IDLE)),
    ?assertEqual([{b@h, 100}], sderl_links:unneeded(#{}, 600, ?IDLE)),
    %% Forgetting what is not there is no use of the link.
    ok = sderl_links:forget(b@h, {group, g}, 600),
    ?assertEqual([{b@h, 200}], sderl_links:unneeded(#{}, 700, ?IDLE)),
    ok = sderl_links:note(b@h, {group, h}, 700),
    ?assertEqual([], sderl_links:unneeded(#{}, 800, ?IDLE)).

lookups() ->
    ok = sderl_links:note(b@h, {lookup, g}, 0),
    ok = sderl_links:nodeup(b@h, true, 10),
    Needed = fun(Now) -> [N || #{needed := N} <- sderl_links:list(#{}, Now, ?IDLE)] end,
    ?assertEqual([true], Needed(99)),
    ?assertEqual([false], Needed(100)),
    %% It came up at 10.
    ?assertEqual([], sderl_links:unneeded(#{}, 109, ?IDLE)),
    ?assertEqual([{b@h, 100}], sderl_links:unneeded(#{}, 110, ?IDLE)),
    ok = sderl_links:note(b@h, {lookup, g}, 150),
    ?assertEqual([true], Needed(249)),
    ?assertEqual([], sderl_links:unneeded(#{}, 249, ?IDLE)),
    ?assertEqual([{b@h, 100}], sderl_links:unneeded(#{}, 250, ?IDLE)).

needs() ->
    Needs = #{b@h => [{group, g}, {group, 1}, {group, g}], c@h => [{group, g}]},
    ok = sderl_links:note(b@h, {group, 1.0}, 0),
    ok = sderl_links:note(b@h, {group, g}, 0),
    ok = sderl_links:note(b@h, group, 0),
    ok = sderl_links:nodeup(b@h, true, 0),
    [#{reasons := Reasons, needed := true}] = sderl_links:list(Needs, 1000, ?IDLE),
    ?assertEqual(
        #{R => [] || R <- [{group, g}, {group, 1}, {group, 1.0}, group]}, #{R => [] || R <- Reasons}
    ),
    ?assertEqual(4, length(Reasons)),
    ok = sderl_links:forget(b@h, {group, 1.0}, 10),
    ok = sderl_links:forget(b@h, {group, g}, 10),
    ?assertEqual([], sderl_links:unneeded(Needs, 1000, ?IDLE)),
    ?assertEqual([{b@h, 990}], sderl_links:unneeded(#{}, 1000, ?IDLE)).

this_node() ->
    ok = sderl_links:note(node(), {group, g}),
    ?assertEqual([], ets:tab2list(sderl_links)),
    ?assertError(function_clause, sderl_links:note("b@h", {group, g})).

view() ->
    Measured = #{names => 2, idle_ms => 70},
    ?assertEqual({error, no_link}, sderl_links:view(b@h, #{}, 0, ?IDLE, Measured)),
    ok = sderl_links:nodeup(b@h, true, 0),
    ok = sderl_links:note(b@h, {lookup, g}, 0),
    View = #{visible => true, opened_by => other, names => 2, idle_ms => 70},
    ?assertEqual({ok, View#{needed => true}}, sderl_links:view(b@h, #{}, 50, ?IDLE, Measured)),
    ?assertEqual({ok, View#{needed => false}}, sderl_links:view(b@h, #{}, 100, ?IDLE, Measured)).

close_test() ->
    Idle = #{visible => true, opened_by => other, needed => false, names => 0, idle_ms => ?IDLE},
    Ours = Idle#{opened_by := library},
    Close = fun(Here, There) ->
        Answer = sderl_links:close_candidate(Here, There, ?IDLE),
        ?assertEqual(Answer, sderl_links:close_candidate(There, Here, ?IDLE)),
        Answer
    end,
    ?assertEqual(close, Close(Ours, Idle)),
    ?assertEqual(close, Close(Ours, Ours)),
    ?assertEqual({keep, not_opened_by_library}, Close(Idle, Idle)),
    ?assertEqual({keep, needed}, Close(Ours, Idle#{needed := true})),
    ?assertEqual({keep, names}, Close(Ours#{names := 1}, Idle)),
    ?assertEqual({keep, not_idle}, Close(Ours, Idle#{idle_ms := ?IDLE - 1})).

%% The table against a plain account of the same history.
prop_history() ->
    ?FORALL(
        Commands,
        list({command(), range(0, 20)}),
        begin
            Self = self(),
            with_table(fun() -> Self ! {result, history(Commands, 0, #{}, #{})} end),
            receive
                {result, Result} -> Result
            end
        end
    ).

history([], Now, Links, Reasons) ->
    Listed = #{
        Node => {Visible, By, #{R => [] || R <- Rs}, Needed}
     || #{node := Node, visible := Visible, opened_by := By, reasons := Rs, needed := Needed} <-
            sderl_links:list(#{}, Now, ?IDLE)
    },
    Expected = #{
        Node => {Visible, By, #{R => [] || R := _ <- of_node(Node, Reasons)},
            By =:= other orelse needed(of_node(Node, Reasons), Now)}
     || Node := {Visible, By, _Free} <- Links
    },
    Unneeded = lists:sort([
        {Node, Idle}
     || Node := {_, library, Free} <- Links,
        not needed(of_node(Node, Reasons), Now),
        Idle <- [Now - lists:max([Free | maps:values(of_node(Node, Reasons))])],
        Idle >= ?IDLE
    ]),
    Listed =:= Expected andalso sderl_links:unneeded(#{}, Now, ?IDLE) =:= Unneeded;
history([{{note, Node, Reason}, Pause} | Rest], Then, Links, Reasons) ->
    Now = Then + Pause,
    ok = sderl_links:note(Node, Reason, Now),
    history(Rest, Now, Links, Reasons#{{Node, Reason} => Now});
history([{{forget, Node, Reason}, Pause} | Rest], Then, Links, Reasons) ->
    Now = Then + Pause,
    ok = sderl_links:forget(Node, Reason, Now),
    Freed =
        case {Reasons, Links} of
            {#{{Node, Reason} := _}, #{Node := {Visible, By, _}}} ->
                Links#{Node := {Visible, By, Now}};
            _ -> Links
        end,
    history(Rest, Now, Freed, maps:remove({Node, Reason}, Reasons));
history([{{nodeup, Node, Visible}, Pause} | Rest], Then, Links, Reasons) ->
    Now = Then + Pause,
    ok = sderl_links:nodeup(Node, Visible, Now),
    By = case map_size(of_node(Node, Reasons)) of 0 -> other; _ -> library end,
    history(Rest, Now, maps:merge(#{Node => {Visible, By, Now}}, Links), Reasons);
history([{{nodedown, Node}, Pause} | Rest], Then, Links, Reasons) ->
    ok = sderl_links:nodedown(Node),
    Left = maps:filter(
        fun({N, R}, _) -> N =/= Node orelse R =:= free_island orelse element(1, R) =:= group end,
        Reasons
    ),
    history(Rest, Then + Pause, maps:remove(Node, Links), Left).

of_node(Node, Reasons) -> #{Reason => At || {N, Reason} := At <- Reasons, N =:= Node}.

needed(Reasons, Now) ->
    lists:any(
        fun
            ({{lookup, _}, At}) -> Now - At < ?IDLE;
            (_) -> true
        end,
        maps:to_list(Reasons)
    ).

command() ->
    frequency([
        {4, {note, peer(), reason()}},
        {4, {forget, peer(), reason()}},
        {3, {nodeup, peer(), boolean()}},
        {1, {nodedown, peer()}}
    ]).

peer() -> oneof([a@h, b@h]).

reason() -> oneof([{group, 1}, {group, 1.0}, free_island, {lookup, g}]).

%% Taking away what speaks for closing never makes it close, and it is the same at both ends.
prop_close() ->
    ?FORALL(
        {Here, There},
        {end_view(), end_view()},
        begin
            Answer = sderl_links:close_candidate(Here, There, ?IDLE),
            Allows = fun(#{needed := Needed, names := Names, idle_ms := Idle}) ->
                not Needed andalso Names =:= 0 andalso Idle >= ?IDLE
            end,
            Library = lists:member(library, [maps:get(opened_by, V) || V <- [Here, There]]),
            (Answer =:= close) =:= (Allows(Here) andalso Allows(There) andalso Library) andalso
                Answer =:= sderl_links:close_candidate(There, Here, ?IDLE)
        end
    ).

end_view() ->
    ?LET(
        {Visible, By, Needed, Names, Idle},
        {boolean(), oneof([library, other]), weighted_union([{4, false}, {1, true}]),
         weighted_union([{4, 0}, {1, non_neg_integer()}]),
         weighted_union([{4, ?IDLE}, {1, range(0, 2 * ?IDLE)}])},
        #{visible => Visible, opened_by => By, needed => Needed, names => Names, idle_ms => Idle}
    ).
