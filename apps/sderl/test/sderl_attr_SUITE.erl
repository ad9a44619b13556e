%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_SUITE).

%% Attributes on real nodes: groups `left` of n1, n2, n3, `right` of n3, n4, and `far` of n4, n5, so
%% that n3 and n4 are gateways.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2]).

%% What calls of attributes may do.
-export([endless/0, huge/0, crash/0, next/1]).

-define(SHARE, 300).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [told_to_mates, groups_keep_theirs, gateway, two_gateways, functions, changes, killed_server,
     own_server_killed, labels_of_configuration, bad_input, file, stopped_node, stopped_gateway,
     dead_node, new_member].

init_per_suite(Config) ->
    Pace = [{tick_ms, 500},
            {set_aside_ms, 15_000},
            {write_timeout_ms, 60_000},
            {attribute_share_ms, ?SHARE},
            {attribute_keep_ms, 200},
            {attribute_timeout_ms, 20_000},
            {labels, #{zone => a}},
            {attributes, [{role, db}, {cpu_model, "mine"}]}],
    Held = sderl_ct:hold(5, Pace),
    [N1, N2, N3, N4, N5] = proplists:get_value(nodes, Held),
    Fleet = proplists:get_value(fleet, Held),
    _ = sderl_ct:group(Fleet, left, [N1, N2, N3]),
    _ = sderl_ct:group(Fleet, right, [N3, N4]),
    _ = sderl_ct:group(Fleet, far, [N4, N5]),
    [await({known, N, G}, fun() ->
        case on(Fleet, N, fun() -> lists:sort(sderl_dir:known(G)) end) of
            Ns -> true;
            Other -> Other
        end
    end) || {N, G, Ns} <- [{N1, right, [N3, N4]}, {N2, right, [N3, N4]}, {N4, left, [N1, N2, N3]}]],
    Held ++ Config.

end_per_suite(Config) -> sderl_ct:release(Config).

with(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

cached(Fleet, At, Node, Name) -> on(Fleet, At, fun() -> sderl_attr:cached(Node, Name) end).

fetch(Fleet, At, Nodes, Names, Opts) ->
    on(Fleet, At, fun() -> sderl_attr:fetch(Nodes, Names, Opts) end).

holds(Fleet, At, Node, Name, Value) ->
    await({At, Node, Name, Value}, fun() ->
        case cached(Fleet, At, Node, Name) of
            {ok, Value, _} -> true;
            Other -> Other
        end
    end).

%% ---------------------------------------------------------------- sharing

told_to_mates(Config) ->
    {Fleet, [N1, N2, N3, N4 | _]} = with(Config),
    ok = on(Fleet, N1, fun() -> sderl_attr:insert(colour, red) end),
    [holds(Fleet, N, N1, colour, red) || N <- [N1, N2, N3]],
    %% One that tells all has not what it has not told; of others nothing is known.
    ?assertMatch({undefined, not_set, _}, cached(Fleet, N2, N1, no_such)),
    ?assertEqual(unknown, cached(Fleet, N4, N1, colour)),
    %% Built-in ones come too, and are told again and again.
    holds(Fleet, N2, N1, os_type, on(Fleet, N1, fun os:type/0)),
    await(again, fun() ->
        Ages = [Age || _ <- lists:seq(1, 3), {ok, _, Age} <- [cached(Fleet, N2, N1, loadavg1)]],
        length(Ages) =:= 3
    end),
    %% So is what does not change: its age falls again.
    Old = fun(Name) -> fun() -> {ok, _, Age} = cached(Fleet, N2, N1, Name), Age > 150 end end,
    Young = fun(Name) -> fun() -> {ok, _, Age} = cached(Fleet, N2, N1, Name), Age < 150 end end,
    [begin await(old, Old(Name)), await(young, Young(Name)) end
     || Name <- [colour, os_type, schedulers_online]],
    %% Changed, and taken away.
    ok = on(Fleet, N1, fun() -> sderl_attr:update(colour, blue) end),
    [holds(Fleet, N, N1, colour, blue) || N <- [N1, N2, N3]],
    true = on(Fleet, N1, fun() -> sderl_attr:delete(colour) end),
    ?assertEqual({undefined, not_set, 0}, cached(Fleet, N1, N1, colour)),
    [await(gone, fun() ->
        case cached(Fleet, N, N1, colour) of {undefined, not_set, _} -> true; Other -> Other end
    end) || N <- [N2, N3]].

groups_keep_theirs(Config) ->
    {Fleet, [N1, N2, N3, N4 | _]} = with(Config),
    Name = {in, right, rank},
    ok = on(Fleet, N3, fun() -> sderl_attr:set(right, rank, 1) end),
    ok = on(Fleet, N3, fun() -> sderl_attr:set(seen, yes) end),
    holds(Fleet, N4, N3, Name, 1),
    %% What came with it, or later, has been told to the others; that has not.
    holds(Fleet, N1, N3, seen, yes),
    ?assertMatch({undefined, not_set, _}, cached(Fleet, N1, N3, Name)),
    %% Nor do they get it by asking, or through the gateway.
    #{N3 := {ok, #{Name := {undefined, not_set, _}}}} =
        fetch(Fleet, N1, [N3], [Name], #{max_age_ms => 0}),
    ok = on(Fleet, N4, fun() -> sderl_attr:set(right, rank, 2) end),
    holds(Fleet, N3, N4, Name, 2),
    #{N4 := {ok, #{Name := {undefined, not_told, _}}}} =
        fetch(Fleet, N1, [N4], [Name], #{max_age_ms => 0}),
    ?assertEqual({error, node_does_not_belong_to_the_s_group},
                 on(Fleet, N2, fun() -> sderl_attr:set(right, rank, 3) end)),
    true = on(Fleet, N3, fun() -> sderl_attr:delete(right, rank) end),
    await(gone, fun() ->
        case cached(Fleet, N4, N3, Name) of {undefined, not_set, _} -> true; Other -> Other end
    end),
    true = on(Fleet, N4, fun() -> sderl_attr:delete(right, rank) end).

%% For nodes of the other group the gateway is asked, which has their values or asks them; no link
%% is opened.
gateway(Config) ->
    {Fleet, [N1, N2, _, N4 | _] = Nodes} = with(Config),
    Links = sderl_ct:links(Fleet, Nodes),
    [await(known, fun() -> on(Fleet, N, fun() -> sderl_dir:known() end) =/= [] end)
     || N <- [N1, N2, N4]],
    ok = on(Fleet, N4, fun() ->
        sderl_attr:set(depth, {dynamic, {?MODULE, next, [depth]}, #{keep_ms => 1}})
    end),
    #{N4 := {ok, #{depth := {ok, _, _}}}} = fetch(Fleet, N1, [N4], [depth], #{max_age_ms => 0}),
    {ok, D1, _} = cached(Fleet, N1, N4, depth),
    #{N4 := {ok,
             #{depth := {ok, D1, _}, os_type := {ok, _, _}, no_such := {undefined, not_set, _}}}} =
        fetch(Fleet, N1, [N4], [depth, os_type, no_such], #{max_age_ms => 60_000}),
    %% It is held, and not asked for again while it will do.
    #{N4 := {ok, #{depth := {ok, D1, _}}}} = fetch(Fleet, N1, [N4], [depth],
                                                   #{max_age_ms => 60_000}),
    await(later, fun() ->
        #{N4 := {ok, #{depth := {ok, D2, _}}}} =
            fetch(Fleet, N1, [N4], [depth], #{max_age_ms => 0}),
        D2 > D1
    end),
    Both = fetch(Fleet, N4, [N1, N2, N4], [role], #{}),
    ?assertMatch([{ok, #{role := {ok, db, _}}}, {ok, #{role := {ok, db, _}}},
                  {ok, #{role := {ok, db, 0}}}], [maps:get(N, Both) || N <- [N1, N2, N4]]),
    ?assertEqual(Links, sderl_ct:links(Fleet, Nodes)),
    %% One that nobody knows.
    ?assertEqual(#{'no@such' => {error, no_route}}, fetch(Fleet, N1, ['no@such'], [role], #{})).

%% Nodes that are further away are reached by routes.
two_gateways(Config) ->
    {Fleet, [N1, _, N3, _, N5] = Nodes} = with(Config),
    Links = sderl_ct:links(Fleet, Nodes),
    %% The way to the group may be known before its members are.
    await(route, fun() ->
        Groups = on(Fleet, N1, fun() -> sderl_route:groups() end),
        lists:member(N5, proplists:get_value(far, Groups, [])) orelse Groups
    end),
    ok = on(Fleet, N5, fun() -> sderl_attr:set(here, 5) end),
    Got = fetch(Fleet, N1, [N1, N3, N5], [here, role], #{max_age_ms => 0}),
    ?assertMatch(#{N1 := {ok, #{here := {undefined, not_set, _}, role := {ok, db, 0}}},
                   N3 := {ok, #{role := {ok, db, _}}},
                   N5 := {ok, #{here := {ok, 5, _}, role := {ok, db, _}}}}, Got),
    ?assertMatch({ok, 5, _}, cached(Fleet, N1, N5, here)),
    ?assertEqual(Links, sderl_ct:links(Fleet, Nodes)),
    true = on(Fleet, N5, fun() -> sderl_attr:delete(here) end).

%% ---------------------------------------------------------------- functions

functions(Config) ->
    {Fleet, [N1, N2 | _]} = with(Config),
    Set = fun(Name, Function, Args, Opts) ->
        ok = on(Fleet, N1, fun() ->
            sderl_attr:set(Name, {dynamic, {?MODULE, Function, Args}, Opts#{keep_ms => 1}})
        end)
    end,
    ok = on(Fleet, N1, fun() -> _ = code:ensure_loaded(?MODULE), ok end),
    Set(endless, endless, [], #{timeout_ms => 300}),
    Set(huge, huge, [], #{}),
    Set(crash, crash, [], #{}),
    Set(fine, next, [fine], #{}),
    Set(missing, no_such_function, [], #{}),
    Names = [endless, huge, crash, fine, missing],
    #{N1 := {ok, Got}} = fetch(Fleet, N2, [N1], Names, #{max_age_ms => 0, timeout_ms => 60_000}),
    ?assertMatch(#{endless := {undefined, timeout, _},
                   huge := {undefined, heap, _},
                   crash := {undefined, {error, broken}, _},
                   missing := {undefined, {error, undef}, _},
                   fine := {ok, _, _}}, Got),
    %% What is well goes on meanwhile, and all of it is told.
    #{fine := {ok, Count, _}} = Got,
    await(more, fun() ->
        case cached(Fleet, N2, N1, fine) of
            {ok, More, _} when More > Count + 2 -> true;
            Other -> Other
        end
    end),
    ?assertMatch({undefined, timeout, _}, cached(Fleet, N2, N1, endless)),
    %% An automatic one is computed once; whoever sets it waits for it.
    ok = on(Fleet, N1, fun() -> sderl_attr:set(once, {automatic, {?MODULE, next, [once]}}) end),
    ?assertEqual({ok, 1, 0}, cached(Fleet, N1, N1, once)),
    ok = on(Fleet, N1, fun() -> sderl_attr:set(never, {automatic, {?MODULE, crash, []}}) end),
    ?assertEqual({undefined, {error, broken}, 0}, cached(Fleet, N1, N1, never)),
    kill_server(Fleet, N1),
    ?assertEqual({ok, 1, 0}, cached(Fleet, N1, N1, once)),
    [true = on(Fleet, N1, fun() -> sderl_attr:delete(Name) end) || Name <- [once, never | Names]].

endless() -> endless().
huge() -> huge([]).
huge(List) -> huge([List | lists:seq(1, 1000)] ++ List).
crash() -> error(broken).

%% Counts its calls; not in the process that calls.
next(Name) ->
    Key = {?MODULE, Name},
    case persistent_term:get(Key, none) of
        none ->
            Counter = counters:new(1, []),
            persistent_term:put(Key, Counter),
            next(Name);
        Counter ->
            counters:add(Counter, 1, 1),
            counters:get(Counter, 1)
    end.

changes(Config) ->
    {Fleet, [N1 | _]} = with(Config),
    Do = fun(Fun) -> on(Fleet, N1, Fun) end,
    ?assertEqual({error, {attr_not_set, a}}, Do(fun() -> sderl_attr:update(a, 1) end)),
    ?assertEqual(ok, Do(fun() -> sderl_attr:insert(a, 1) end)),
    ?assertEqual({error, {attr_exists, a}}, Do(fun() -> sderl_attr:insert(a, 2) end)),
    ?assertEqual({error, {attr_exists, loadavg1}}, Do(fun() -> sderl_attr:insert(loadavg1, 2) end)),
    ?assertEqual({ok, 1, 0}, cached(Fleet, N1, N1, a)),
    ?assertEqual(ok, Do(fun() -> sderl_attr:update(a, {x, [2]}) end)),
    ?assertEqual([{N1, [{a, {x, [2]}}, {b, undefined}]}],
                 Do(fun() -> sderl_attr:request_attrs([N1], [a, b]) end)),
    ?assertEqual(ok, Do(fun() -> sderl_attr:set(1, int) end)),
    ?assertEqual(ok, Do(fun() -> sderl_attr:set(1.0, float) end)),
    ?assertEqual({ok, int, 0}, cached(Fleet, N1, N1, 1)),
    #{N1 := {ok, #{1 := {ok, int, 0}, 1.0 := {ok, float, 0}}}} =
        fetch(Fleet, N1, [N1], [1, 1.0], #{}),
    ?assertEqual(true, Do(fun() -> sderl_attr:delete(a) end)),
    ?assertEqual(true, Do(fun() -> sderl_attr:delete(a) end)),
    [true = Do(fun() -> sderl_attr:delete(Name) end) || Name <- [1, 1.0]],
    Names = Do(fun() -> sderl_attr:registered_attributes() end),
    ?assertEqual([dynamic, automatic, static],
                 [proplists:get_value(Name, Names) || Name <- [loadavg1, otp_release, role]]).

killed_server(Config) ->
    {Fleet, [N1, N2 | _]} = with(Config),
    ok = on(Fleet, N1, fun() -> sderl_attr:set(kept, 1) end),
    holds(Fleet, N2, N1, kept, 1),
    %% The one that tells, the one that is told.
    kill_server(Fleet, N1),
    ?assertEqual({ok, 1, 0}, cached(Fleet, N1, N1, kept)),
    ok = on(Fleet, N1, fun() -> sderl_attr:update(kept, 2) end),
    holds(Fleet, N2, N1, kept, 2),
    kill_server(Fleet, N2),
    ok = on(Fleet, N1, fun() -> sderl_attr:update(kept, 3) end),
    holds(Fleet, N2, N1, kept, 3),
    true = on(Fleet, N1, fun() -> sderl_attr:delete(kept) end),
    await(gone, fun() ->
        case cached(Fleet, N2, N1, kept) of {undefined, not_set, _} -> true; Other -> Other end
    end).

%% A process that changes attributes while the server dies does not notice.
own_server_killed(Config) ->
    {Fleet, [N1 | _]} = with(Config),
    ok = on(Fleet, N1, fun() ->
        lists:foreach(fun(N) ->
            _ = N rem 5 =:= 0 andalso exit(whereis(sderl_attr_server), kill),
            ok = sderl_attr:set(counted, N),
            {ok, N, 0} = sderl_attr:cached(node(), counted)
        end, lists:seq(1, 50)),
        true = sderl_attr:delete(counted),
        ok
    end).

kill_server(Fleet, Node) ->
    on(Fleet, Node, fun() ->
        Pid = whereis(sderl_attr_server),
        Ref = monitor(process, Pid),
        exit(Pid, kill),
        receive {'DOWN', Ref, process, _, _} -> ok end
    end),
    await(restarted, fun() -> is_pid(on(Fleet, Node, fun() -> whereis(sderl_attr_server) end)) end).

%% ---------------------------------------------------------------- input

labels_of_configuration(Config) ->
    {Fleet, [N1 | _]} = with(Config),
    ?assertEqual({ok, a, 0}, cached(Fleet, N1, N1, {label, zone})),
    ?assertEqual({ok, db, 0}, cached(Fleet, N1, N1, role)),
    ?assertEqual({ok, "mine", 0}, cached(Fleet, N1, N1, cpu_model)),
    ok = on(Fleet, N1, fun() -> sderl_attr:label(zone, b) end),
    ?assertEqual({ok, b, 0}, cached(Fleet, N1, N1, {label, zone})),
    ok = on(Fleet, N1, fun() -> sderl_attr:label(zone, a) end).

bad_input(Config) ->
    {Fleet, [N1 | _]} = with(Config),
    Fun = fun() -> ok end,
    [begin
         {F, A, Argument} = {element(1, Call), length(Args), element(3, Call)},
         ?assertMatch(
             {error,
              {badarg, {sderl_attr, F, _}, #{argument := Argument, expected := _, found := _}}, _},
             on(Fleet, N1, fun() ->
                 try apply(sderl_attr, F, Args) of Got -> {none, Got, A} catch C:E -> {C, E, A} end
             end)
         )
     end || {_, Args, _} = Call <- [
         {insert, [undefined, 1], 1}, {insert, [a, undefined], 2}, {insert, [a, Fun], 2},
         {insert, [Fun, 1], 1},
         {insert, [a, lists:seq(1, 100_000)], 2}, {insert, [a, {dynamic, self}], 2},
         {insert, [a, {dynamic, {a, b, c}}], 2},
         {insert, [a, {dynamic, {"a", b}}], 2},
         {insert, [a, {dynamic, {a, b}, #{keep_ms => 0}}], 2},
         {insert, [a, {dynamic, {a, b}, #{keep => 1}}], 2},
         {insert, [a, {automatic, {a, b}, #{}}], 2},
         {update, [a, {automatic, 1}], 2}, {set, [a, {dynamic, fun erlang:node/0}], 2},
         {set, [left, {in, x, y}, 1], 2},
         {set, [left, a, Fun], 3}, {label, [a, undefined], 2}, {label, [a, [Fun]], 2},
         {label, [a, {dynamic, {m, f}}], 2},
         {load, [1], 1}, {load, [[]], 1}, {fetch, [a, [b], #{}], 1},
         {fetch, [["a@b"], [b], #{}], 1}, {fetch, [['a@b' | c], [b], #{}], 1},
         {fetch, [[N1], b, #{}], 2},
         {fetch, [[N1], [b], #{timeout => 1}], 3},
         {fetch, [[N1], [b], #{timeout_ms => infinity}], 3}, {fetch, [[N1], [b], []], 3},
         {request_attrs, [N1, a, 1], 1}, {request_attrs, [[N1], a, -1], 3}
     ]],
    ?assertEqual(unknown, cached(Fleet, N1, "no node", a)),
    %% Messages that are none harm nobody and are counted.
    Before = on(Fleet, N1,
                fun() -> proplists:get_value(sderl_attr_server, sderl_refused:messages(), 0) end),
    [Mate | _] = lists:nthtail(1, proplists:get_value(nodes, Config)),
    Bodies = [nothing,
              {full, 1},
              {full, l, 1, [x]},
              {full, l, 1, [{n, v, ok, young, static, 1}]},
              {full, l, v, x},
              {delta, l, 1, 2, [], []},
              {delta, l, a, b, c, d}],
    Messages = [{sderl_attr, 2, Mate, {1, none, 0}, again},
                {sderl_attr, 1, "x", {1, none, 0}, again},
                {sderl_attr, 1, Mate, stamp, again},
                hello
                            | [{sderl_attr, 1, Mate, {1, none, 0}, Body} || Body <- Bodies]],
    Pid = on(Fleet, N1, fun() ->
        [sderl_attr_server ! M || M <- Messages],
        gen_server:cast(sderl_attr_server, hello),
        whereis(sderl_attr_server)
    end),
    ?assertEqual({error, unknown_question}, on(
        Fleet, N1, fun() -> gen_server:call(sderl_attr_server, {sderl_attr, 2, {get, [a], 0}}) end
    )),
    ?assertEqual(Pid, on(Fleet, N1, fun() -> whereis(sderl_attr_server) end)),
    After = on(Fleet, N1,
               fun() -> proplists:get_value(sderl_attr_server, sderl_refused:messages(), 0) end),
    ?assert(After - Before >= 8),
    holds(Fleet, N1, Mate, role, db).

file(Config) ->
    {Fleet, [N1 | _]} = with(Config),
    Path = filename:join(proplists:get_value(priv_dir, Config), "attr.config"),
    Load = fun(Text) ->
        ok = file:write_file(Path, Text),
        on(Fleet, N1, fun() -> sderl_attr:load(Path) end)
    end,
    ?assertEqual(ok, Load("[{from_file, 1}, {and_this, {automatic, {erlang, node}}}].")),
    ?assertEqual({ok, 1, 0}, cached(Fleet, N1, N1, from_file)),
    ?assertEqual({ok, N1, 0}, cached(Fleet, N1, N1, and_this)),
    [?assertMatch({error, {attr_config_error, [_ | _]}}, Load(Text))
     || Text <- ["", "[{from_file, 2}]", "[{from_file, 2}]. [].", "from_file.",
                 "[{from_file, 2}, {a, {dynamic, b}}].", "[{from_file, 2}, a].",
                 "[{from_file, 2}, {from_file, 3}]."]],
    ?assertMatch({error, {attr_config_error, [_ | _]}},
                 on(Fleet, N1, fun() -> sderl_attr:load("no such file") end)),
    ?assertEqual({ok, 1, 0}, cached(Fleet, N1, N1, from_file)),
    [true = on(Fleet, N1, fun() -> sderl_attr:delete(Name) end) || Name <- [from_file, and_this]].

%% ---------------------------------------------------------------- nodes that stop and go

%% A stopped node costs the time limit and no more, alone and beside others; its cached values get
%% old.
stopped_node(Config) ->
    {Fleet, [N1, N2, N3, N4 | _]} = with(Config),
    holds(Fleet, N1, N2, role, db),
    ok = sderl_fleet:suspend(Fleet, N2),
    await(old, fun() -> {ok, db, Age} = cached(Fleet, N1, N2, role), Age > 5 * ?SHARE end),
    %% Its link is full, too: who sends there waits, but the library.
    ok = on(Fleet, N1, fun() -> fill(N2, binary:copy(~"x", 100_000)) end),
    ok = on(Fleet, N1, fun() -> sderl_attr:set(meanwhile, 1) end),
    holds(Fleet, N3, N1, meanwhile, 1),
    Timed = fun(At, Nodes, Opts) ->
        on(Fleet, At, fun() -> timer:tc(fun() -> sderl_attr:fetch(Nodes, [role], Opts) end) end)
    end,
    {Us, Got} = Timed(N1, [N2, N3, N4], #{timeout_ms => 6000}),
    ?assertMatch(#{N2 := {error, timeout}, N3 := {ok, #{role := {ok, db, _}}},
                   N4 := {ok, #{role := {ok, db, _}}}}, Got),
    ?assert(Us >= 5_900_000),
    %% It is not waited for again and again. (For the period of sharing, which is short here: the
    %% second question may come later where the machine is busy.)
    await(not_waited_for, fun() ->
        Asked = on(Fleet, N1, fun() ->
            [timer:tc(fun() -> sderl_attr:fetch([N2], [role], #{timeout_ms => 6000}) end)
             || _ <- lists:seq(1, 2)]
        end),
        ?assertMatch([{_, #{N2 := {error, timeout}}}, {_, #{N2 := {error, timeout}}}], Asked),
        [_, {Again, _}] = Asked,
        Again < 5_900_000 orelse Asked
    end),
    %% Through the gateway likewise.
    {_, Far} = Timed(N4, [N1, N2], #{timeout_ms => 6000, max_age_ms => 5 * ?SHARE}),
    ?assertMatch(#{N1 := {ok, #{role := {ok, db, _}}}, N2 := {error, timeout}}, Far),
    ?assertEqual([{N2, [{role, undefined}]}],
                 on(Fleet, N1, fun() -> sderl_attr:request_attrs([N2], role, 200) end)),
    ok = sderl_fleet:resume(Fleet, N2),
    await(young, fun() -> {ok, db, Age} = cached(Fleet, N1, N2, role), Age < 2 * ?SHARE end),
    true = on(Fleet, N1, fun() -> sderl_attr:delete(meanwhile) end).

%% If one of two gateways is stopped, whichever it is, the other one answers.
stopped_gateway(Config) ->
    {Fleet, [N1, N2, N3, N4 | _]} = with(Config),
    {ok, right, [N2]} = on(Fleet, N3, fun() -> s_group:add_nodes(right, [N2]) end),
    Right = lists:sort([N2, N3, N4]),
    await(known,
          fun() -> on(Fleet, N1, fun() -> lists:sort(sderl_dir:known(right)) end) =:= Right end),
    holds(Fleet, N2, N4, role, db),
    [begin
         ok = sderl_fleet:suspend(Fleet, Gateway),
         ?assertMatch(#{N4 := {ok, #{role := {ok, db, _}}}},
                      fetch(Fleet, N1, [N4], [role], #{max_age_ms => 0, timeout_ms => 12_000})),
         %% And now it is known.
         {Us, Got} = on(Fleet, N1, fun() ->
             timer:tc(fun() ->
                 sderl_attr:fetch([N4], [role], #{max_age_ms => 0, timeout_ms => 12_000})
             end)
         end),
         ?assertMatch(#{N4 := {ok, #{role := {ok, db, _}}}}, Got),
         ok = sderl_fleet:resume(Fleet, Gateway),
         [holds(Fleet, N, Gateway, role, db) || N <- [N1, N4]],
         ct:pal("without ~p: ~p us", [Gateway, Us])
     end || Gateway <- [N2, N3]],
    ok = on(Fleet, N3, fun() -> s_group:remove_nodes(right, [N2]) end),
    _ = sderl_ct:settled(Fleet, right, [N3, N4]).

fill(Node, Text) ->
    case erlang:send({nobody_there, Node}, Text, [nosuspend, noconnect]) of
        ok -> fill(Node, Text);
        nosuspend -> ok
    end.

%% Nothing of it is held.
dead_node(Config) ->
    {Fleet, [N1, N2 | _]} = with(Config),
    ok = sderl_fleet:kill(Fleet, N2),
    await(unknown, fun() -> cached(Fleet, N1, N2, role) =:= unknown end),
    ?assertMatch(#{N2 := {error, _}}, fetch(Fleet, N1, [N2], [role], #{timeout_ms => 500})),
    {ok, N2} = sderl_fleet:restart(Fleet, N2),
    holds(Fleet, N1, N2, role, db).

%% A new member is sent all values at once, and a former member none.
new_member(Config) ->
    {Fleet, [N1, _, N3, N4 | _]} = with(Config),
    ok = on(Fleet, N1, fun() -> sderl_attr:set(left, secret, 1) end),
    {ok, left, [N4]} = on(Fleet, N1, fun() -> s_group:add_nodes(left, [N4]) end),
    holds(Fleet, N4, N1, {in, left, secret}, 1),
    holds(Fleet, N1, N4, role, db),
    holds(Fleet, N1, N4, groups, [far, left, right]),
    ok = on(Fleet, N3, fun() -> s_group:remove_nodes(left, [N4]) end),
    await(unknown, fun() -> cached(Fleet, N4, N1, {in, left, secret}) =:= unknown end),
    await(unknown, fun() -> cached(Fleet, N1, N4, role) =:= unknown end).
