%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_tests).

-include_lib("eunit/include/eunit.hrl").

%% Texts are cut between characters.
cut_test_() ->
    [
        ?_assertEqual(<<"abc">>, sderl_mon_probe_text:cut("abc", 3)),
        ?_assertEqual(<<"ab">>, sderl_mon_probe_text:cut("abc", 2)),
        ?_assertEqual(<<"ä"/utf8>>, sderl_mon_probe_text:cut("ää", 3)),
        ?_assertEqual(<<>>, sderl_mon_probe_text:cut("ä", 1)),
        ?_assertEqual(<<"?">>, sderl_mon_probe_text:cut(<<255, 254>>, 9))
    ].

%% Ids are those of the hub.
id_test_() ->
    [?_assertEqual(sderl_mon_types:id({group, G}), sderl_mon_probe_text:id(G))
     || G <- [g, "täxt", {a, 1}, <<"x">>, lists:seq(300, 900), 'odd name']].

%% However long the library took to answer, also because the node was stopped meanwhile, it is asked
%% again within a minute; where it told problems, within ten seconds.
asked_again_test_() ->
    Pause = fun(Us, Problems) ->
        sderl_mon_probe_library:pause_ms(Us, #{problems => Problems})
    end,
    [
        ?_assertEqual(10_000, Pause(800, [])),
        ?_assertEqual(40_000, Pause(40_000, [])),
        ?_assertEqual(60_000, Pause(29_000_000, [])),
        ?_assertEqual(1_000, Pause(800, [~"g: no coordinator"])),
        ?_assertEqual(4_000, Pause(20_000, [~"g: no coordinator"])),
        ?_assertEqual(10_000, Pause(29_000_000, [~"g: no coordinator"]))
    ].

%% A write that is on its way is no problem, one that was on its way at the last look is.
writes_on_their_way_test_() ->
    Group = #{group => {g, "ä"}, number => 7, acknowledgements_missing => [a@x]},
    Waits = "{g,\"ä\"}: waits for [a@x] to acknowledge",
    Other = "{g,\"ä\"}: [a@x] are set aside: they do not acknowledge or are catching up",
    Lasting = fun(Before) ->
        sderl_mon_probe_library:lasting([Waits, Other], [Group], Before)
    end,
    [
        ?_assertEqual([Other], Lasting(#{})),
        ?_assertEqual([Other], Lasting(#{{g, "ä"} => 6})),
        ?_assertEqual([Waits, Other], Lasting(#{{g, "ä"} => 7})),
        %% The sentence is that of the library.
        ?_assertMatch({match, _}, re:run(library_source(), "~0tp: waits for ~0tp to acknowledge"))
    ].

library_source() ->
    {ok, Source} = file:read_file(proplists:get_value(source, sderl_info:module_info(compile))),
    Source.

%% Of each group by its id; a group that has gone is forgotten.
group_counts_test() ->
    {One, Ids} = sderl_mon_probe_library:counts([{g, {1, 0, 0}}, {{a, 1}, {2, 1, 0}}], #{}),
    ?assertEqual(#{~"g" => {1, 0, 0}, ~"{a,1}" => {2, 1, 0}}, One),
    ?assertEqual({#{~"g" => {3, 0, 0}}, #{g => ~"g"}},
                 sderl_mon_probe_library:counts([{g, {3, 0, 0}}], Ids)).

%% A socket counts packets with 32 bits; what shows less without having been near the end began
%% again.
wrapped_test_() ->
    [
        ?_assertEqual(0, sderl_mon_probe_links:wrapped(5, 7)),
        ?_assertEqual(0, sderl_mon_probe_links:wrapped(5, 5)),
        ?_assertEqual(1 bsl 32, sderl_mon_probe_links:wrapped(1 bsl 32 - 1, 3)),
        ?_assertEqual(5, sderl_mon_probe_links:wrapped(5, 0)),
        ?_assertEqual(1 bsl 32 - 1, sderl_mon_probe_links:wrapped(1 bsl 32 - 1, 1 bsl 32 - 2))
    ].

%% Of each kind the median, however seldom it is; waiting now and then is not charged, nor what was
%% charged before.
accounted_test() ->
    Add = fun(List, Work) ->
        lists:foldl(fun({Kind, N, Us}, Acc) -> sderl_mon_probe_work:add(Kind, N, Us, Acc) end, Work,
                    List)
    end,
    One = Add([{light, 1, 10} || _ <- lists:seq(1, 30)] ++
              [{heavy, 100, 30_000}, {light, 1, 9000}, {heavy, 10, 3000}, {none, 0, 500}],
              sderl_mon_probe_work:new()),
    {Us, Two} = sderl_mon_probe_work:account(One),
    ?assertEqual(31 * 10.0 + 110 * 300.0, Us),
    ?assertMatch({+0.0, Two}, sderl_mon_probe_work:account(Two)),
    %% Very many: all are charged, and some are kept.
    {Many, Three} =
        sderl_mon_probe_work:account(Add([{light, 1, 20} || _ <- lists:seq(1, 10_000)], Two)),
    ?assertEqual(200_000.0, Many),
    ?assert(erts_debug:flat_size(Three) < 1000),
    %% The price follows, with a quarter of the last that are new.
    ?assertMatch({80.0, _}, sderl_mon_probe_work:account(Add([{light, 1, 9} || _ <- [1, 2, 3, 4]],
                                                             Three))),
    {_, Four} = sderl_mon_probe_work:account(Add([{light, 1, 9} || _ <- lists:seq(1, 32)], Three)),
    ?assertMatch({9.0, _}, sderl_mon_probe_work:account(Add([{light, 1, 500}], Four))).

%% What has waited is not charged: of two of a kind the shorter, of a helper's rounds the shortest.
waiting_is_not_charged_test() ->
    Account = fun(Kind, Times) ->
        {Us, _} = sderl_mon_probe_work:account(
            lists:foldl(fun(T, Acc) -> sderl_mon_probe_work:add(Kind, 1, T, Acc) end,
                        sderl_mon_probe_work:new(), Times)
        ),
        Us
    end,
    ?assertEqual(2 * 10.0, Account(shown, [9000, 10])),
    ?assertEqual(3 * 20.0, Account(shown, [9000, 10, 20])),
    ?assertEqual(3 * 10.0, Account({slow, true}, [9000, 10, 20])).

%% So many at a time, each under a name that goes with it.
bounded_test_() ->
    {spawn, fun() ->
        Names = [probe_test_one, probe_test_two],
        Self = self(),
        Ask = fun() ->
            spawn(fun() ->
                Self ! {self(), sderl_mon_probe_bound:bounded(
                    Names, fun() -> Self ! {self(), in}, receive go -> done end end
                )}
            end)
        end,
        In = [begin P = Ask(), receive {P, in} -> P end end || _ <- Names],
        Third = Ask(),
        receive {Third, Refused} -> ?assertEqual({error, busy}, Refused) end,
        [begin P ! go, receive {P, Done} -> ?assertEqual(done, Done) end end || P <- In],
        Last = Ask(),
        receive {Last, in} -> Last ! go end,
        receive {Last, done} -> ok end
    end}.

%% What a text may stand for; no atom is made.
meant_test_() ->
    [?_assertEqual([Name], lists:usort(sderl_mon_probe_names:meant(sderl_mon_probe_text:id(Name))))
     || Name <- [user_1, 'odd name', <<"user_1">>, <<"täxt"/utf8>>, "user_1", "täxt", 17, -3]]
        ++ [?_assertEqual([], sderl_mon_probe_names:meant(T))
            || T <- [<<"no_such_atom_", "of_any_test">>, <<"{a,1}">>, <<>>, <<"'">>, <<"<<\"">>,
                     <<255>>]].

%% The greatest few of any numbers.
top_test() ->
    Numbers = [{rand:uniform(100), I} || I <- lists:seq(1, 500)],
    Top = lists:foldl(fun({V, I}, Acc) -> sderl_mon_probe_look:top(V, I, 10, Acc) end, [], Numbers),
    ?assertEqual(lists:nthtail(490, lists:sort([V || {V, _} <- Numbers])), [V || {V, _} <- Top]),
    ?assertEqual([], sderl_mon_probe_look:top(0, idle, 10, [])).

topology_test_() ->
    Two = [{node, [{processor, [{core, [{thread, {logical, 0}}, {thread, {logical, 4}}]},
                                {core, [{thread, {logical, 1}}]}]}]},
           {node, [{processor, [{core, {logical, 2}}, {core, {logical, 3}}]}]}],
    Where = fun(Topology, Bound) ->
        [{S, So, C, T, B}
         || #{scheduler := S, socket := So, core := C, thread := T, bound := B} <-
                sderl_mon_probe_topology:schedulers(Topology, Bound)]
    end,
    [
        {"not known", ?_assertEqual([{1, 0, 0, 0, false}, {2, 0, 1, 0, false}],
                                    Where(undefined, [unbound, unbound]))},
        {"bound", ?_assertEqual([{1, 0, 0, 1, true}, {2, 0, 1, 0, true}], Where(Two, [4, 1]))},
        {"in order if not bound", ?_assertMatch([{1, 0, 0, 0, false}, {2, 0, 0, 1, false},
                                                 {3, 0, 1, 0, false}, _, _, {6, 0, 0, 0, false}],
                                                Where(Two, lists:duplicate(6, unbound)))},
        {"sockets differ", ?_assertEqual(2, length(
            lists:usort([So || {_, So, _, _, _} <- Where(Two, lists:duplicate(5, unbound))])
        ))},
        {"a machine of two cores",
         ?_assertEqual([{1, 0, 0, 0, false}, {2, 0, 1, 0, false}],
                       Where([{processor, [{core, {logical, 0}}, {core, {logical, 1}}]}],
                             [unbound, unbound]))}
    ].

%% Between nodes as counted, to groups as they are.
edges_test() ->
    Of = #{a => [~"g"], b => [~"h"], me => [~"g", ~"h"]},
    Count = fun(Rows, Old, Groups) ->
        sderl_mon_probe_library:edges(Rows, Old, Groups, [a, b, x], me)
    end,
    One = Count([{a, b, 5}, {me, b, 2}, {x, a, 1}], #{}, Of),
    ?assertEqual([{<<"(free)">>, <<"g">>, 1}, {<<"(gateway)">>, <<"h">>, 2}, {<<"g">>, <<"h">>, 5}],
                 counted(One)),
    ?assertEqual(One, Count([{a, b, 5}, {me, b, 2}, {x, a, 1}], One, Of)),
    %% What was counted before a change of the groups stays where it was.
    Two = Count([{a, b, 9}, {me, b, 2}, {x, a, 1}], One, Of#{a := [~"k"], me := [~"k", ~"h"]}),
    ?assertEqual([{<<"(free)">>, <<"g">>, 1}, {<<"(gateway)">>, <<"h">>, 2}, {<<"g">>, <<"h">>, 5},
                  {<<"k">>, <<"h">>, 4}], counted(Two)).

%% a in g, g and h meet in one, h and k in two, c in k; one follows k.
a_message_counts_at_its_first_gateway_test() ->
    Of = #{a => [~"g"], one => [~"g", ~"h"], two => [~"h", ~"k"], c => [~"k"],
           three => [~"g", ~"h"]},
    At = fun(Self, Rows, Known, Connected) ->
        counted(sderl_mon_probe_library:edges(Rows, #{}, maps:with(Known, Of), Connected, Self))
    end,
    ?assertEqual([{~"g", ~"h", 7}], At(one, [{a, two, 7}], [a, one, two], [a, two])),
    %% Of the second the sender is no neighbour, whether its group is known there or not.
    ?assertEqual([], At(two, [{a, c, 7}], [one, two, c], [one, c])),
    ?assertEqual([], At(two, [{a, c, 7}], [a, one, two, c], [one, c])),
    %% A gateway that sends is a neighbour of the next; one that receives counts for where it is not
    %% beside the sender.
    ?assertEqual([{~"g", ~"k", 3}], At(two, [{one, c, 3}], [one, two, c], [one, c])),
    ?assertEqual([{~"g", ~"h", 4}], At(one, [{a, three, 4}], [a, one, three], [a, three])).

counted(Edges) -> lists:sort([{From, To, N} || {From, To} := {edge, N} <- Edges]).

kind_test_() ->
    [
        ?_assertEqual(Kind, sderl_mon_probe_trace:kind(Message, sderl_observed:message_tags()))
     || {Kind, Message} <- [{call, {'$gen_call', {self(), x}, y}},
                            {cast, {'$gen_cast', y}},
                            {reply, {make_ref(), ok}},
                            {reply, {[alias | make_ref()], ok}},
                            {sderl, {sderl, 1, <<>>, node(), query}},
                            {send, hello},
                            {send, {}}]
    ].

%% What the library counts of itself.
traffic_test_() ->
    {spawn, fun() ->
        T = sderl_traffic:new(),
        Before = sderl_traffic:read(),
        [sderl_traffic:sent(group, M)
         || M <- [{batch, 1, 2, 3, []}, {ack, 1, 2, none}, {ack, 1, 2, seg}, {req, 1, 2},
                  {hb, 1, 2}, query, {commit, 1, 2}]],
        [sderl_traffic:sent(routing, {sderl_many, 1, [<<0:800>>]}) || _ <- lists:seq(1, 1000)],
        After = sderl_traffic:read(),
        Grown = fun(K) ->
            {M0, B0} = map_get(K, Before),
            {M1, B1} = map_get(K, After),
            {M1 - M0, B1 - B0}
        end,
        ?assertMatch({3, B} when B > 0, Grown(replication)),
        ?assertMatch({2, _}, Grown(registration)),
        ?assertMatch({2, _}, Grown(control)),
        {1000, Bytes} = Grown(routing),
        Size = erlang:external_size({sderl_many, 1, [<<0:800>>]}),
        ?assert(Bytes > 850 * Size andalso Bytes =< 1128 * Size, {Bytes, Size}),
        Tally = sderl_traffic:group(g),
        ok = sderl_traffic:answered(Tally, 3, 2, 1),
        ok = sderl_traffic:answered(sderl_traffic:group(g), 1, 0, 0),
        ok = sderl_traffic:crossed(a, b, 5),
        ok = sderl_traffic:crossed(a, b, 2),
        sderl_undelivered = sderl_route_report:new(),
        #{groups := [{g, {4, 2, 1}}], edges := [{a, b, 7}], counters := Cs} =
            sderl_traffic:sample(),
        ?assertMatch(#{registrations := R, failed_registrations := F, forwarded := 0} when R >= 4
                     andalso F >= 1, Cs),
        true = sderl_traffic:forget(g),
        ?assertMatch(#{groups := []}, sderl_traffic:sample()),
        ets:delete(T)
    end}.

%% As its own node prints it.
own_pid_test() ->
    ?assertEqual(list_to_binary(pid_to_list(self())), sderl_mon_probe_text:own_pid(self())),
    Own = term_to_binary(self(), [{minor_version, 2}]),
    Name = atom_to_binary(node()),
    Other = binary_to_term(binary:replace(Own, <<(byte_size(Name)), Name/binary>>, <<4, "a@bc">>)),
    ?assertEqual('a@bc', node(Other)),
    ?assertMatch(<<"<0.", _/binary>>, sderl_mon_probe_text:own_pid(Other)).

%% ---------------------------------------------------------------- the machine

host_test() ->
    Stat = ~"cpu  100 5 50 800 45 1 4 5 20 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n",
    ?assertEqual({ok, {165, 1010}}, sderl_mon_probe_host:busy(Stat)),
    ?assertEqual({ok, {10, 20}}, sderl_mon_probe_host:busy(~"cpu  4 3 3 10\n")),
    [?assertEqual(none, sderl_mon_probe_host:busy(Text))
     || Text <- [~"", ~"cpu", ~"cpu  1 2\n", ~"cpu  a b c d\n", ~"intr 1 2 3 4\n"]],
    Memory = ~"MemTotal:       1000 kB\nMemFree:  100 kB\nMemAvailable:    400 kB\nBuffers: 1 kB\n",
    ?assertEqual(#{host_mem_total => 1_024_000, host_mem => 614_400},
                 sderl_mon_probe_host:memory(Memory)),
    [?assertEqual(#{}, sderl_mon_probe_host:memory(Text))
     || Text <- [~"", ~"MemTotal: 1 kB\n", ~"MemTotal: x kB\nMemAvailable: 1 kB\n"]],
    %% Of this machine whatever it tells; the share needs two readings.
    #{gauges := First} = Read = sderl_mon_probe_host:read(none),
    ?assertNot(is_map_key(host_cpu, First)),
    #{gauges := Second} = sderl_mon_probe_host:read(Read#{cpu => {0, 0}}),
    [?assert(Share >= 0 andalso Share =< 1) || #{host_cpu := Share} <- [Second]].

%% All that is loaded into a node: each module of a probe, which call no other room
%% (`sderl_mon_architecture_tests`).
code_test() ->
    _ = application:load(sderl_mon),
    {ok, Modules} = application:get_key(sderl_mon, modules),
    ?assertEqual([M || M <- lists:sort(Modules), lists:prefix("sderl_mon_probe", atom_to_list(M))],
                 lists:sort(sderl_mon_probe_code:modules())),
    ?assertEqual(sderl_mon_probe_code:modules(), [M || {M, _, _} <- sderl_mon_probe:code()]).

%% Of friends the later one has it; others wait until its owner is silent.
lease_test_() ->
    Mine = fun(Term, More) ->
        sderl_mon_probe_lease:may_take(
            #{owner => self(), term => Term},
            maps:merge(#{owner => self(), friends => all, term => 3, silent_ms => 0}, More)
        )
    end,
    Elsewhere = #{owner => elsewhere(), friends => [x@y]},
    [
        ?_assertEqual(ok, Mine(3, #{})),
        ?_assertEqual({error, {term, 3}}, Mine(2, #{silent_ms => 9000})),
        ?_assertEqual(ok, Mine(4, Elsewhere#{friends := [node()]})),
        ?_assertEqual({error, {busy, z@y}}, Mine(4, Elsewhere)),
        ?_assertEqual(ok, Mine(2, Elsewhere#{silent_ms => 5001})),
        ?_assertEqual(ok, sderl_mon_probe_lease:check_options(#{owner => self(), friends => []})),
        ?_assertEqual({error, {bad_option, friends, [x | y]}},
                      sderl_mon_probe_lease:check_options(#{owner => self(), friends => [x | y]}))
    ].

%% A process of another node.
elsewhere() -> binary_to_term(<<131, 88, 119, 3, "z@y", 1:32, 0:32, 1:32>>).

%% What is not acknowledged is sent again; of very many the first are kept.
events_test() ->
    Add = fun(Kind, Events) ->
        {ok, New} = sderl_mon_probe_events:add({Kind, info}, ~"text", #{}, Events),
        New
    end,
    Kinds = fun(Events) -> [K || #{kind := K} <- sderl_mon_probe_events:fresh(Events)] end,
    Sent = Add(c, sderl_mon_probe_events:send(Add(b, Add(a, sderl_mon_probe_events:new())))),
    ?assertEqual([c], Kinds(Sent)),
    ?assertEqual(3, sderl_mon_probe_events:count(Sent)),
    ?assertEqual([a, b, c], Kinds(sderl_mon_probe_events:take_back(Sent))),
    Come = sderl_mon_probe_events:acknowledge(Sent),
    ?assertEqual({[c], 1}, {Kinds(Come), sderl_mon_probe_events:count(Come)}),
    Full = lists:foldl(fun(_, Events) -> Add(d, Events) end, Come, lists:seq(2, 500)),
    ?assertEqual(full, sderl_mon_probe_events:add({e, info}, {"~p", [x]}, #{}, Full)).

%% Events of the library and of links, in words.
described_test() ->
    {error, {told, #{event := k}}, More} =
        sderl_mon_probe_events:describe_told(k, critical, #{node => a@b, group => g, lost => x}),
    ?assertEqual(#{details => #{nodes => [~"a@b"], lost => []}, group => ~"g"}, More),
    ?assertMatch({node_up, info, {_, _}, #{details := #{peer := ~"a@b"}}},
                 sderl_mon_probe_events:describe_link(nodeup, a@b, #{})),
    ?assertMatch({node_down, warning, _, _},
                 sderl_mon_probe_events:describe_link(nodedown, a@b, #{node_type => visible})),
    ?assertMatch({node_down, info, _, _},
                 sderl_mon_probe_events:describe_link(nodedown, a@b, #{node_type => hidden})).

%% One event for each kind, with how many there were and the last of them.
system_monitor_test() ->
    {sysmon_long_gc, One} = sderl_mon_probe_system:count({long_gc, init, [{timeout, 1}]}, #{}),
    {_, Two} = sderl_mon_probe_system:count({long_gc, self(), [{timeout, 7}]}, One),
    {sysmon_queue_short, Seen} =
        sderl_mon_probe_system:count({long_message_queue, self(), false}, Two),
    ?assertEqual([self()], sderl_mon_probe_system:processes(Seen)),
    [{long_gc, warning, Text, #{count := 2}}, {queue_short, info, _, #{count := 1}}] =
        lists:sort(sderl_mon_probe_system:describe(Seen, #{self() => ["its name"]})),
    ?assertMatch({_, _}, binary:match(Text, ~"its name collected its garbage for 7 ms; one of 2")).

%% What the runtime system says: rates begin with the second reading.
runtime_test() ->
    Rare = sderl_mon_probe_runtime:read_rare(none),
    ?assertEqual(Rare, sderl_mon_probe_runtime:read_rare(Rare)),
    Gauges = sderl_mon_probe_runtime:gauges([1, 2 | lists:duplicate(5000, 1)], Rare),
    ?assertMatch(#{mem_total := _, procs := _, uptime_s := _}, Gauges),
    ?assertNot(is_map_key(gc_s, Gauges)),
    ?assertEqual(map_get(schedulers, Gauges) + min(1, map_get(schedulers, Gauges) - 1),
                 map_get(run_queue, Gauges)),
    ?assertMatch(#{otp := _, cpu_topology := [_ | _]}, sderl_mon_probe_runtime:facts(Rare)).

%% ---------------------------------------------------------------- what changes seldom

standing_test() ->
    ?assertEqual({ok, 1024}, sderl_mon_probe_standing:files(
        ~"Limit              Soft Limit\nMax open files     1024   524288   files\n")),
    ?assertEqual(none, sderl_mon_probe_standing:files(~"Max open files  unlimited")),
    #{at := At, gauges := Gauges} = Read = sderl_mon_probe_standing:read(none),
    ?assertMatch(#{old_code := _, utc_offset_s := Offset} when Offset rem 60 =:= 0, Gauges),
    ?assertEqual(filelib:is_regular("/proc/self/limits"), is_map_key(files, Gauges)),
    ?assertMatch(#{modules := Modules, module_limit := 65_536} when Modules > 50, Gauges),
    #{apps := Apps} = sderl_mon_probe_standing:facts(Read),
    ?assert(lists:all(fun({App, Version}) -> is_binary(App) andalso is_binary(Version) end, Apps)),
    ?assertNot(lists:keymember(~"kernel", 1, Apps)),
    %% The numbers are read once a minute.
    ?assertMatch(#{at := At, gauges := Gauges}, sderl_mon_probe_standing:read(Read)).

%% A shell keeps its last results, those of large binaries outside of its heap. (Whose terminal is a
%% pipe, as here, is one as all others.)
shell_history_test_() ->
    {timeout, 180, fun() ->
        ?assertMatch(#{gauges := #{shell_bytes := Here}} when Here >= 0,
                     sderl_mon_probe_standing:read(none)),
        Told = fun(Name) ->
            ["io:format(\"", Name, "=~b.~n\", [map_get(shell_bytes, map_get(gauges, "
             "sderl_mon_probe_standing:read(none)))]).\n"]
        end,
        Port = open_port({spawn_executable, os:find_executable("erl")}, [
            {args, ["-pa", filename:dirname(code:which(sderl_mon_probe_standing))]},
            {env, [{"TERM", "dumb"}]}, binary, stderr_to_stdout, exit_status
        ]),
        port_command(Port, [Told("begun"), "lists:seq(1, 500000).\n", Told("list"),
                            "binary:copy(<<0>>, 30000000).\n", Told("both"),
                            "results(0).\n", Told("forgotten"), "halt().\n"]),
        Said = said(Port, <<>>),
        Bytes = fun(Name) ->
            {match, [N]} = re:run(Said, [Name, "=([0-9]+)\\."], [{capture, all_but_first, list}]),
            list_to_integer(N)
        end,
        ?assert(Bytes("begun") > 0),
        ?assert(Bytes("list") - Bytes("begun") > 500_000 * 2 * erlang:system_info(wordsize) * 0.9),
        ?assert(Bytes("both") - Bytes("list") > 29_000_000),
        ?assert(Bytes("forgotten") < 20_000_000)
    end}.

said(Port, Before) ->
    receive
        {Port, {data, More}} -> said(Port, <<Before/binary, More/binary>>);
        {Port, {exit_status, 0}} -> Before
    end.

%% The fullest of what df tells; a file system without room for anything has no share.
disk_test() ->
    ?assertEqual(#{disk => 1024 * 90, disk_limit => 1024 * 100}, sderl_mon_probe_disk:fullest(~"""
        Filesystem     1024-blocks  Used Available Capacity Mounted on
        /dev/sda1              200    50       150      25% /
        map auto home            0     0         0     100% /home
        /dev/disk by name      110    90        10      90% /mnt/with space
        """)),
    ?assertEqual(#{}, sderl_mon_probe_disk:fullest(~"df: no file systems processed")),
    %% However long the program takes on a busy machine.
    #{gauges := Gauges} = Read = sderl_mon_probe_disk:read(none, 50_000),
    ?assertEqual(os:find_executable("df") =/= false, is_map_key(disk, Gauges)),
    ?assertEqual(Read, sderl_mon_probe_disk:read(Read)).

%% What the system keeps for its own programs is in use: less than nothing is free.
full_disk_test() ->
    ?assertEqual(#{disk => 1024 * 105, disk_limit => 1024 * 105}, sderl_mon_probe_disk:fullest(~"""
        Filesystem     1024-blocks  Used Available Capacity Mounted on
        /dev/sda1              100   105        -5     105% /
        /dev/sda2              100    50        50      50% /home
        """)),
    [?assertEqual(#{}, sderl_mon_probe_disk:fullest(<<"/dev/sda1 ", Odd/binary>>))
     || Odd <- [~"100 -5 105 -5% /", ~"- - - - /", ~"0 0 -7 100% /", ~"100 50 - 50% /"]].

%% A program that hangs, as with a file system that is gone, is ended; nothing of it stays.
hanging_disk_test_() ->
    {foreach,
        fun() ->
            Dir = filename:join([filename:basedir(user_cache, "sderl"), "df-" ++ os:getpid()]),
            Program = filename:join(Dir, "df"),
            ok = filelib:ensure_dir(Program),
            %% It ignores that nobody reads what it writes.
            ok = file:write_file(Program, ["#!/bin/sh\ntrap '' PIPE HUP TERM\necho $$ > ", Dir,
                                           "/number\nexec sleep 100000\n"]),
            ok = file:change_mode(Program, 8#755),
            Path = os:getenv("PATH"),
            true = os:putenv("PATH", Dir ++ ":" ++ Path),
            {Dir, Path}
        end,
        fun({Dir, Path}) ->
            true = os:putenv("PATH", Path),
            ok = file:del_dir_r(Dir)
        end,
        [fun({Dir, _}) -> {timeout, 120, fun() -> hangs(Dir) end} end,
         fun({Dir, _}) -> {timeout, 120, fun() -> hangs_at_the_end(Dir) end} end]}.

hangs(Dir) ->
    Ports = erlang:ports(),
    #{gauges := Gauges} = sderl_mon_probe_disk:read(none),
    ?assertEqual(#{}, Gauges),
    ?assertEqual([], erlang:ports() -- Ports),
    %% Its parent takes note of its end a moment later.
    Number = number(Dir),
    await(fun() -> has_ended(Number) end),
    receive Message -> error({left, Message}) after 0 -> ok end.

%% A probe that ends meanwhile takes it along.
hangs_at_the_end(Dir) ->
    {Pid, Monitor} = spawn_monitor(fun() -> sderl_mon_probe_disk:read(none, 600_000) end),
    await(fun() -> number(Dir) =/= ~"" end),
    Number = number(Dir),
    true = exit(Pid, kill),
    receive
        {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(killed, Why)
    end,
    await(fun() -> has_ended(Number) end).

number(Dir) ->
    case file:read_file(filename:join(Dir, "number")) of
        {ok, Text} -> string:trim(Text);
        {error, enoent} -> ~""
    end.

has_ended(Number) ->
    os:cmd(lists:concat(["kill -0 ", binary_to_list(Number), " 2> /dev/null; printf $?"])) =/= "0".

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, 60_000)).

%% A collector that has given its owner up begins again when the owner is there: nobody else would
%% ask for the log another time.
collector_again_test_() ->
    {timeout, 120, fun() ->
        {ok, Probe} = sderl_mon_probe:start(#{owner => self(), interval_ms => 50}),
        Probe ! {sderl_mon_log_wanted, self(), #{level => error, per_s => 100, burst => 100}},
        First = collector(none),
        Ref = monitor(process, First),
        First ! stop,
        receive {'DOWN', Ref, process, First, Why} -> ?assertEqual(normal, Why) end,
        Second = collector(First),
        ?assertNotEqual(First, Second),
        %% What is not wanted any more does not begin again.
        Probe ! {sderl_mon_log_wanted, self(), off},
        %% The probe waits a second for the end of the collector, which may take longer.
        IsGone = fun() -> element(1, logger:get_handler_config(sderl_mon_handler)) =:= error end,
        await(fun() -> acknowledged(1) =:= ok andalso IsGone() end),
        ok = acknowledged(3),
        ?assert(IsGone()),
        ok = sderl_mon_probe:stop(),
        flush()
    end}.

%% The collector that the handler tells, while samples are acknowledged.
collector(Not) ->
    case logger:get_handler_config(sderl_mon_handler) of
        {ok, #{config := #{collector := Pid}}} when Pid =/= Not -> Pid;
        _ ->
            ok = acknowledged(1),
            collector(Not)
    end.

acknowledged(0) -> ok;
acknowledged(N) ->
    receive
        {sderl_mon_sample, Probe, #{seq := Seq}} ->
            Probe ! {sderl_mon_ack, Seq},
            acknowledged(N - 1)
    after 60_000 -> error(no_sample)
    end.

flush() -> receive _ -> flush() after 0 -> ok end.

alarms_of_the_node_test_() ->
    {setup,
        fun() ->
            {ok, Handler} = gen_event:start({local, alarm_handler}),
            ok = gen_event:add_handler(alarm_handler, alarm_handler, []),
            Handler
        end,
        fun gen_event:stop/1,
        ?_test(begin
            Alarms = fun() -> maps:get(alarms, sderl_mon_probe_standing:read(none)) end,
            ?assertEqual([], Alarms()),
            ok = alarm_handler:set_alarm({{disk_almost_full, "/"}, []}),
            ok = alarm_handler:set_alarm({memory, "nearly none"}),
            ok = alarm_handler:set_alarm({odd, #{a => 1}}),
            ?assertEqual([~"memory: nearly none", ~"odd", ~"{disk_almost_full,\"/\"}"], Alarms()),
            %% A handler that is not OTP's is not asked.
            ok = gen_event:delete_handler(alarm_handler, alarm_handler, []),
            ?assertEqual([], Alarms())
        end)}.
