%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_shared_tests).

%% Which of two settings holds, and the process that has them.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['m1@h', 'm2@h', 'm3@h']).

later_holds_test() ->
    Given = sderl_mon_shared:new(sderl_mon_config:defaults()),
    First = sderl_mon_shared:set(#{interval_ms => 200, inject => true}, 'm2@h', 1000, Given),
    %% Its clock is behind, and it knows of the first.
    Then = sderl_mon_shared:set(#{interval_ms => 300}, 'm1@h', 10, First),
    Apart = sderl_mon_shared:set(#{interval_ms => 400}, 'm1@h', 999, Given),
    ?assertMatch(#{config := #{interval_ms := 300, inject := true}},
                 sderl_mon_shared:merge(First, Then)),
    ?assertEqual(First, sderl_mon_shared:merge(Apart, First)),
    ?assertNot(sderl_mon_shared:is_ahead(maps:get(stamps, First), maps:get(stamps, Then))),
    ?assert(sderl_mon_shared:is_ahead(maps:get(stamps, Then), maps:get(stamps, First))).

%% What nobody has set is as the leader has it; what is set is not.
adopt_test() ->
    Given = sderl_mon_shared:new((sderl_mon_config:defaults())#{probe := stock}),
    Ours = sderl_mon_shared:set(#{interval_ms => 200}, 'm2@h', 1,
                                sderl_mon_shared:new(sderl_mon_config:defaults())),
    ?assertMatch(#{config := #{interval_ms := 200, probe := stock}},
                 sderl_mon_shared:adopt(Given, Ours)),
    ?assertMatch(#{config := #{interval_ms := 200, probe := auto}},
                 sderl_mon_shared:merge(Given, Ours)).

%% However what was set is passed on, all have the same in the end.
order_test_() -> sderl_prop:eunit("settings agree in any order", 500, fun prop_order/0).

prop_order() ->
    ?FORALL({A, B, C}, {shared(), shared(), shared()},
        begin
            Merge = fun(Of) -> lists:foldl(fun sderl_mon_shared:merge/2, Of, [A, B, C, A]) end,
            #{stamps := Stamps} = Merged = Merge(C),
            Set = fun(#{config := Config}) -> maps:with(maps:keys(Stamps), Config) end,
            [Set(Merged)] =:= lists:usort([Set(Merge(Of)) || Of <- [A, B, C]])
            andalso not lists:any(fun(#{stamps := Its}) ->
                sderl_mon_shared:is_ahead(Its, Stamps)
            end, [A, B, C])
        end).

%% Values name their stamps, as no two settings have one.
shared() ->
    ?LET(Sets, list({oneof([interval_ms, inject, seeds]), oneof(?NODES), range(1, 20)}),
        lists:foldl(fun({Key, Node, Now}, Shared) ->
            #{stamps := #{Key := Stamp}} = sderl_mon_shared:set(#{Key => x}, Node, Now, Shared),
            sderl_mon_shared:set(#{Key => Stamp}, Node, Now, Shared)
        end, sderl_mon_shared:new(sderl_mon_config:defaults()), Sets)).

%% ---------------------------------------------------------------- the process

%% What was set here is kept and told; what others set holds too, where it is later, and also where
%% there is no room to keep it.
settings_test_() ->
    Folder = filename:basedir(user_cache, "sderl_tests"),
    Dir = filename:join(Folder, lists:concat([?MODULE, "_", os:getpid()])),
    {timeout, 60, fun() -> settings(Dir) end}.

settings(Dir) ->
    ok = application:set_env(sderl_mon, config, #{state_dir => Dir}),
    true = register(?MODULE, self()),
    {ok, Pid} = sderl_mon_settings:start_link([?MODULE]),
    try
        Given = sderl_mon_settings:shared(),
        ?assertEqual(#{}, maps:get(stamps, Given)),
        ok = sderl_mon_settings:set(#{interval_ms => 200, history => #{raw => 9}}),
        receive {sderl_mon_config, #{interval_ms := 200}} -> ok end,
        #{stamps := Stamps} = Here = sderl_mon_settings:shared(),
        ?assertMatch([{interval_ms, {_, Node}}] when Node =:= node(), maps:to_list(Stamps)),
        %% Made before that, and without knowing of it.
        Elsewhere = fun(Ms, Shared) ->
            sderl_mon_shared:set(#{interval_ms => Ms}, 'm1@h', 1, Shared)
        end,
        ok = sderl_mon_settings:adopt(Elsewhere(300, Given)),
        Later = Elsewhere(400, Here),
        ok = sderl_mon_settings:adopt(Later),
        receive {sderl_mon_config, Config} -> ?assertMatch(#{interval_ms := 400}, Config) end,
        {ok, [{sderl_mon, 1, Kept}]} = file:consult(filename:join(Dir, "sderl_mon.config")),
        ?assertMatch(#{interval_ms := 400, history := #{raw := 9}}, Kept),
        %% Not kept, and in force.
        ok = file:del_dir_r(Dir),
        ok = file:write_file(Dir, ~"no directory"),
        ?assertMatch({error, {bad_file, _, _}}, sderl_mon_settings:set(#{interval_ms => 500})),
        ok = sderl_mon_settings:adopt(Elsewhere(600, Later)),
        receive {sderl_mon_config, Last} -> ?assertMatch(#{interval_ms := 600}, Last) end,
        %% An option of a newer version, and a value that is none here.
        Odd = sderl_mon_shared:set(#{interval_ms => 0, colour => red}, 'm1@h', 1, Later),
        ok = sderl_mon_settings:adopt(Odd),
        [ok = gen_server:cast(Pid, {adopt, Term})
         || Term <- [x, Odd#{config := x}, Odd#{stamps := #{interval_ms => later}}]],
        ?assertMatch({error, {bad_config, _, _, _}}, sderl_mon_settings:set(#{interval_ms => 0})),
        ?assertMatch(#{interval_ms := 600}, sderl_mon_settings:get())
    after
        ok = kill(Pid),
        true = unregister(?MODULE),
        ok = application:unset_env(sderl_mon, config),
        _ = file:delete(Dir),
        ok = sderl_mon_settings:forget()
    end.

kill(Pid) ->
    unlink(Pid),
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

%% A process that is started anew goes on with what is in force, and tells it: not with what is
%% configured by then, and nothing that was set is lost. The application begins with what is
%% configured.
settings_outlive_their_process_test_() -> {timeout, 60, fun settings_outlive_their_process/0}.

settings_outlive_their_process() ->
    ok = application:set_env(sderl_mon, config, #{interval_ms => 300}),
    true = register(?MODULE, self()),
    {ok, First} = sderl_mon_settings:start_link([?MODULE]),
    ok = sderl_mon_settings:set(#{probe => stock}),
    receive {sderl_mon_config, #{probe := stock}} -> ok end,
    Shared = sderl_mon_settings:shared(),
    ok = kill(First),
    ok = application:set_env(sderl_mon, config, #{interval_ms => 400}),
    {ok, Second} = sderl_mon_settings:start_link([?MODULE]),
    try
        receive {sderl_mon_config, Told} ->
            ?assertMatch(#{interval_ms := 300, probe := stock}, Told)
        end,
        ?assertMatch(#{interval_ms := 300, probe := stock}, sderl_mon_settings:get()),
        ?assertEqual(Shared, sderl_mon_settings:shared())
    after
        ok = kill(Second),
        true = unregister(?MODULE),
        ok = sderl_mon_settings:forget()
    end,
    ?assertMatch(#{interval_ms := 400, probe := auto}, sderl_mon_settings:get()),
    ok = application:unset_env(sderl_mon, config).
