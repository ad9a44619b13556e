%% SPDX-License-Identifier: Apache-2.0
%% Sampling: confidence intervals of known counts, and a real node with known processes.
-module(sderl_prof_sampling_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([waits_here/0]).

properties_test_() ->
    [
        sderl_prop:eunit("a share is within its interval, which more looks make narrower", 200,
                         fun prop_interval/0),
        sderl_prop:eunit("shares of all are those of the counts", 200, fun prop_report/0)
    ].

prop_interval() ->
    ?FORALL({A, B}, {nat(), range(1, 1000)}, begin
        Share = min(A, B) / B,
        #{low := Low, high := High} = sderl_prof_shares:interval(Share, B),
        #{low := Low2, high := High2} = sderl_prof_shares:interval(Share, 4 * B),
        Low >= 0 andalso High =< 1 andalso Low =< Share + 1.0e-9 andalso High >= Share - 1.0e-9
            andalso High2 - Low2 < High - Low
    end).

cells() ->
    list({range(0, 1), oneof([~"a", ~"b", ~"c"]), oneof([running, runnable, waiting]),
          oneof([~"f/0", ~"g/1"]), oneof([~"", ~"h/2"]), range(1, 50),
          ?LET(N, range(1, 1000), N * 1.0), ?LET(N, range(1, 100_000), N * 1.0)}).

prop_report() ->
    ?FORALL(Cells, cells(), begin
        Report = sderl_prof_shares:report(result(Cells), 100),
        _ = json:encode(Report),
        #{states := States, groups := Groups, functions := Functions, waits := Waits} = Report,
        Sum = fun(List, Key) -> lists:sum([map_get(Key, Row) || Row <- List]) end,
        All = lists:sum([Ns || {_, _, _, _, _, _, Ns, _} <- Cells]) / 1000,
        Shares = fun(List) -> lists:sum([S || #{share := #{share := S}} <- List]) end,
        near(All, Sum(States, processes)) andalso near(All, Sum(Groups, processes)) andalso
            near(All, Sum(Functions, processes) + Sum(Waits, processes)) andalso
            (Functions =:= [] orelse near(1.0, Shares(Functions))) andalso
            (Functions =:= [] orelse near(1.0, Shares(Groups))) andalso
            (Waits =:= [] orelse near(1.0, Shares(Waits)))
    end).

near(A, B) -> abs(A - B) < 1.0e-6 * max(1.0, abs(A)).

result(Cells) ->
    #{node => ~"n@h", otp => ~"29", began_wall => 0, ns => 1000, all_ns => 1200, rate => 1000,
      looks => 10, rounds => 2, own_ns => 10, processes => 5, schedulers_online => 2,
      found => #{cells => Cells,
                 groups => [{0, G, 1, 10, 500.0, 3} || G <- [~"a", ~"b", ~"c"]],
                 parts => [#{ns => 400, reductions => 60, schedulers => [{1, 5, 10}, {2, 0, 0}]},
                           #{ns => 600, reductions => 40, schedulers => [{1, 0, 10}, {2, 0, 0}]}]},
      schedulers => #{normal => 1, cpu => 0, io => 1}, series => #{names => [], points => []},
      threads => [{scheduler, #{sleep => 3}}]}.

%% ---------------------------------------------------------------- this node

%% 300 that wait in one place, and one that computes.
node_test_() ->
    {timeout, 300, fun() ->
        Idle = [spawn_link(?MODULE, waits_here, []) || _ <- lists:seq(1, 300)],
        Busy = spawn_link(fun() -> compute() end),
        true = register(prof_sampling_busy, Busy),
        try
            %% To begin is work, too.
            [await(fun() -> {status, waiting} =:= process_info(Pid, status) end) || Pid <- Idle],
            {ok, Report} = until_seen(10),
            #{states := States, groups := Groups, waits := Waits, looks := Looks, rounds := Rounds,
              seconds := Seconds} = Report,
            %% No more looks than asked for.
            ?assert(Looks =< 1000 * Seconds + 101),
            ?assert(Rounds >= 1),
            %% The estimated number of processes is near the real one, whatever the number of looks.
            Count = erlang:system_info(process_count),
            All = lists:sum([N || #{processes := N} <- States]),
            ?assert(All > 0 andalso All < 2 * Count),
            [#{looks := Seen}] = [G || #{group := ~"sderl_prof_sampling_tests:waits_here/0"} = G
                                           <- Groups],
            ?assert(Seen > 0),
            %% Processes that wait count as idle, whatever a look at them costs.
            [0] = [R || #{group := ~"sderl_prof_sampling_tests:waits_here/0", reductions := R}
                            <- Groups],
            ?assertMatch([_], [W || #{function := ~"sderl_prof_sampling_tests:waits_here/0"} = W
                                        <- Waits]),
            _ = json:encode(Report),
            written(Report)
        after
            [begin
                 unlink(Pid),
                 exit(Pid, kill)
             end || Pid <- [Busy | Idle]]
        end
    end}.

%% On a busy machine the process that computes may not have run.
until_seen(0) -> error(never_seen);
until_seen(Times) ->
    {ok, #{groups := Groups}} = Sampled =
        sderl_prof_sampling:sample(node(), #{seconds => 2, top => 1000}),
    case [R || #{group := ~"prof_sampling_busy", reductions := R} <- Groups, R > 0] of
        [_] -> Sampled;
        [] -> until_seen(Times - 1)
    end.

written(Report) ->
    sderl_prof_files:with_dir(fun(Dir) ->
        File = filename:join(Dir, "samples.json"),
        ok = sderl_prof_sampling:write(File, [Report]),
        {ok, [#{~"node" := _, ~"groups" := [_ | _]}]} = sderl_prof_sampling:read(File),
        ok = sderl_prof_sampling:write(File, [Report, Report]),
        {ok, [_, _] = Several} = sderl_prof_sampling:read(File),
        {ok, Samples} = sderl_prof_samples:decode(Several),
        #{nodes := [#{looks := Looks}, _]} = sderl_prof_samples:about(Samples),
        ?assertEqual(map_get(looks, Report), Looks),
        ok = file:write_file(File, "{}"),
        {error, Why} = sderl_prof_sampling:read(File),
        ?assertNotEqual(nomatch, string:find(sderl_prof_sampling:format_error(Why),
                                             "bin/sderl prof sample"))
    end).

%% A look that asks costs three, also where fewer come due at a time: the first round has no others.
asking_test_() ->
    {timeout, 300, fun() ->
        Idle = [spawn_link(?MODULE, waits_here, []) || _ <- lists:seq(1, 300)],
        try
            #{looks := Looks, ns := Ns, rounds := 1} =
                sampled(#{milliseconds => 6000, rate => 20}),
            %% A known process that waits is not asked again.
            ?assert(Looks =< 20 * Ns / 1.0e9 / 2 + 4),
            ?assert(Looks > 0)
        after
            [begin
                 unlink(Pid),
                 exit(Pid, kill)
             end || Pid <- Idle]
        end
    end}.

%% With more processes than it remembers, the others do not count as new each time.
forgetful_test_() ->
    {timeout, 300, fun() ->
        Idle = [spawn_link(?MODULE, waits_here, []) || _ <- lists:seq(1, 300)],
        try
            #{found := #{groups := Groups}} =
                several_rounds(#{milliseconds => 3000, rate => 5000, remembered => 50}, 10),
            New = lists:sum([N || {_, ~"sderl_prof_sampling_tests:waits_here/0", N, _, _, _}
                                      <- Groups]),
            ?assertEqual(300, New)
        after
            [begin
                 unlink(Pid),
                 exit(Pid, kill)
             end || Pid <- Idle]
        end
    end}.

%% On a busy machine there may not be time for a second round.
several_rounds(Plan, Times) when Times > 0 ->
    case sampled(Plan) of
        #{rounds := Rounds} = Result when Rounds > 1 -> Result;
        _ -> several_rounds(Plan, Times - 1)
    end.

sampled(Plan) ->
    {ok, Sampler} = sderl_prof_sampler:start(Plan, self()),
    receive {sderl_prof_sampled, Sampler, Result} -> Result end.

waits_here() ->
    receive stop -> ok end.

compute() ->
    _ = lists:sum(lists:seq(1, 1000)),
    compute().

%% A sampler ends on request and with its owner, and switches its accounting off.
ends_test_() ->
    {timeout, 120, fun() ->
        {ok, Sampling} = sderl_prof_sampling:begin_(node(), #{seconds => 86_400}),
        ok = sderl_prof_sampling:stop(Sampling),
        {ok, #{looks := _}} = sderl_prof_sampling:await(Sampling),
        Self = self(),
        {Owner, Ref} = spawn_monitor(fun() ->
            {ok, #{sampler := Sampler}} =
                sderl_prof_sampling:begin_(node(), #{seconds => 86_400}),
            Self ! {sampler, Sampler}
        end),
        Sampler = receive {sampler, Pid} -> Pid end,
        receive {'DOWN', Ref, process, Owner, _} -> ok end,
        Gone = monitor(process, Sampler),
        receive {'DOWN', Gone, process, Sampler, _} -> ok end,
        ?assertEqual(false, erlang:system_flag(microstate_accounting, false))
    end}.

%% A guard switches microstate accounting off after the sampler was killed.
killed_test_() ->
    {timeout, 120, fun() ->
        {ok, #{sampler := Sampler} = Sampling} =
            sderl_prof_sampling:begin_(node(), #{seconds => 86_400}),
        await(fun() -> guards() =/= [] end),
        Guards = [{Pid, monitor(process, Pid)} || Pid <- guards()],
        true = exit(Sampler, kill),
        {error, Why} = sderl_prof_sampling:await(Sampling),
        ?assertEqual({node, node(), killed}, Why),
        %% A guard ends when it has switched off.
        [receive {'DOWN', Monitor, process, Pid, _} -> ok end || {Pid, Monitor} <- Guards],
        ?assertEqual(false, erlang:system_flag(microstate_accounting, false))
    end}.

%% The guard shows that it is on; the flag itself can only be read by setting it.
guards() ->
    [Pid || Pid <- processes(), {current_function, {sderl_prof_switch, guard, 3}} <-
                                    [process_info(Pid, current_function)]].

await(Holds) -> sderl_fleet:await(Holds, infinity).

%% Accounting that somebody else has switched on stays on.
others_accounting_test_() ->
    {timeout, 120, fun() ->
        false = erlang:system_flag(microstate_accounting, true),
        try
            {ok, #{threads := []}} = sderl_prof_sampling:sample(node(), #{seconds => 0.2})
        after
            ?assertEqual(true, erlang:system_flag(microstate_accounting, false))
        end
    end}.

wrong_test() ->
    [begin
         {error, Why} = sderl_prof_sampling:sample(node(), Options),
         Text = unicode:characters_to_list(sderl_prof_sampling:format_error(Why)),
         ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Says)})
     end
     || {Options, Says} <- [
            {#{rate => 0}, "a whole number from 1"}, {#{seconds => -1}, "a number above 0"},
            {#{top => x}, "top cannot be x"}, {#{what => 1}, "there is no option what"},
            {#{mailboxes => [server, "x"]}, "a list of at most 50 registered names"},
            {#{mailboxes => [server | writer]}, "mailboxes cannot be"},
            {#{mailboxes => lists:duplicate(51, server)}, "at most 50"},
            {nothing, "options are a map"}
        ]].
