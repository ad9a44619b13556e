%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_builtin_tests).
-moduledoc """
Each built-in alarm, from what the probes of nodes send to what is raised: the samples go through
the functions of the agent, of the master and of the hub, and then through those of the alarms.
""".

-include_lib("eunit/include/eunit.hrl").

-define(WALL, 1_700_000_000_000).
-define(SPAN_MS, 10_000).
%% Looks may be no further apart.
-define(LOOK_MS, 20_000).

%% ---------------------------------------------------------------- what raises them

%% By alarm: where it is raised, which node tells something else, and what it tells when nothing,
%% the minor and the major alarm is to be raised. db1 shares the group of web1, and web2 its family.
alarms() ->
    #{
        node_down => {'web1@h', 'web1@h', [], none, [down]},
        processes => share(procs, proc_limit),
        ports => share(ports, port_limit),
        atoms => share(atoms, atom_limit),
        ets_tables => share(ets, ets_limit),
        open_files => share(files, file_limit),
        modules => share(modules, module_limit),
        disk => of_all(disk, disk_limit, [84, 85, 95]),
        memory => of_all(mem_total, host_mem_total, [59, 60, 80]),
        host_memory => of_all(host_mem, host_mem_total, [89, 90, 97]),
        host_cpu => gauge(host_cpu, [0.94, 0.95]),
        message_queue => gauge(mq_max, [9_999, 10_000, 100_000]),
        old_code => gauge(old_code, [0, 1]),
        shell_history => gauge(shell_bytes, [64 * 1024 * 1024 - 1, 64 * 1024 * 1024, 1 bsl 30]),
        %% Ahead, ahead, behind.
        clock => on_web1([[{clock_ms, Ms}] || Ms <- [1_999, 2_000, -60_000]]),
        undelivered => on_web1([[{counter, undelivered, N}] || N <- [9, 10]]),
        otp_versions => {g, 'db1@h', [], [{fact, otp, ~"28"}], none},
        app_versions =>
            {g, 'db1@h', [{fact, apps, [{~"shop", ~"1.0"}, {~"other", ~"7"}]}],
             [{fact, apps, [{~"shop", ~"1.1"}]}], none},
        time_zones => {g, 'db1@h', [], [{gauge, utc_offset_s, 3_600}], none},
        family_app_versions => {web, 'web2@h', [], [{fact, apps, [{~"shop", ~"1.1"}]}], none},
        family_time_zones => {web, 'web2@h', [], [{gauge, utc_offset_s, 3_600}], none}
    }.

share(Used, Limit) -> of_all(Used, Limit, [79, 80, 95]).

of_all(Used, Limit, Values) ->
    on_web1([[{gauge, Used, Value}, {gauge, Limit, 100}] || Value <- Values]).

gauge(Name, Values) -> on_web1([[{gauge, Name, Value}] || Value <- Values]).

on_web1([Quiet, Minor]) -> {'web1@h', 'web1@h', Quiet, Minor, none};
on_web1([Quiet, Minor, Major]) -> {'web1@h', 'web1@h', Quiet, Minor, Major}.

%% ---------------------------------------------------------------- cases

all_are_here_test() ->
    ?assertEqual(
        lists:sort([{Alarm, is_level(Minor), is_level(Major)}
                    || #{alarm := Alarm, minor := Minor, major := Major}
                           <- sderl_alarms_builtin:rules()]),
        lists:sort([{atom_to_binary(Alarm), is_level(Minor), is_level(Major)}
                    || Alarm := {_, _, _, Minor, Major} <- alarms()])
    ).

is_level(Level) -> Level =/= none.

raised_test_() ->
    [{lists:concat([Alarm, " ", Severity]), ?_test(raised(Alarm, Place, Node, Told, Severity))}
     || Alarm := {Place, Node, Quiet, Minor, Major} <- maps:iterator(alarms(), ordered),
        {Told, Severity} <- [{Quiet, none}, {Minor, minor}, {Major, major}], Told =/= none].

%% It is raised when its time has passed and not at the look before, and no other is.
raised(Alarm, Place, Node, Told, Severity) ->
    ForMs = for_ms(atom_to_binary(Alarm)),
    Look = look(Node, Told),
    Id = iolist_to_binary([atom_to_binary(Alarm), $|, atom_to_binary(Place)]),
    Raised = [{Id, Severity} || Severity =/= none],
    ?assertEqual([], raised_until(ForMs - 1, Look)),
    ?assertEqual(Raised, raised_until(ForMs, Look)).

for_ms(Alarm) ->
    [ForS] = [ForS || #{alarm := Is, for_s := ForS} <- sderl_alarms_builtin:rules(),
                      Is =:= Alarm],
    1000 * ForS.

raised_until(UntilMs, Look) ->
    Passed = sderl_alarms_look:passed(Look),
    Times = lists:seq(0, UntilMs - 1, ?LOOK_MS) ++ [UntilMs],
    State = lists:foldl(fun(Now, Acc) ->
        {_, New} = sderl_alarms_core:step(
            Passed, fun(Alarm) -> sderl_alarms_look:absent(Alarm, Look) end, Now, ?WALL + Now, Acc
        ),
        New
    end, sderl_alarms_core:new(0), Times),
    [{Id, Severity} || #{id := Id, severity := Severity, is_raised := true}
                           <- sderl_alarms_core:alarms(State)].

%% A finding of each kind is an alarm of its name, as severe as it is, unless it is off.
findings_test() ->
    Level = fun(critical) -> major; (_) -> minor end,
    [
        begin
            Finding = #{id => <<Alarm/binary, "|web1@h">>, kind => binary_to_existing_atom(Alarm),
                        severity => Severity, since => ?WALL, t => ?WALL,
                        where => #{node => ~"web1@h"}, text => ~"Text.", evidence => [],
                        remedy => ~"Remedy."},
            ?assertEqual([{<<Alarm/binary, "|web1@h">>, Level(Severity)} || On],
                         raised_until(0, take((input('web1@h', []))#{findings := [Finding]})))
        end
     || #{alarm := Alarm, on := On} <- sderl_alarms_builtin:findings(),
        Severity <- [warning, critical]
    ],
    %% The others are watched by the rules above.
    Kinds = [atom_to_binary(Kind) || Kind <- sderl_mon_findings:kinds()],
    ?assertEqual([~"limit_near", ~"long_queue", ~"node_down"],
                 lists:sort(Kinds -- [Alarm || #{alarm := Alarm}
                                                   <- sderl_alarms_builtin:findings()])).

%% What is told above has the names under which a probe sends it.
sent_test_() ->
    {timeout, 120, fun() ->
        {ok, Probe} = sderl_mon_probe:start(#{owner => self(), interval_ms => 50}),
        #{gauges := Gauges} =
            receive
                {sderl_mon_sample, Probe, Sample} -> Sample
            after 60_000 -> error(no_sample)
            end,
        ok = sderl_mon_probe:stop(),
        %% The rest comes with a later sample, some of it minutes later where the machine is slow.
        Disk = #{next => infinity, gauges => sderl_mon_probe_disk:fullest(
            ~"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/x 10 4 6 40% /\n"
        )},
        _ = application:load(sderl_alarms),
        Known = #{host => sderl_mon_probe_host:read(#{cpu => {0, 0}, gauges => #{}}),
                  standing => sderl_mon_probe_standing:read(#{disk => Disk, alarms => []})},
        Sent = maps:merge(Gauges, sderl_mon_probe_slow:gauges(Known)),
        ?assertEqual([], lists:usort([Name || _ := {_, _, Quiet, Minor, Major} <- alarms(),
                                              [_ | _] = Told <- [Quiet, Minor, Major],
                                              {gauge, Name, _} <- Told,
                                              not is_map_key(Name, Sent)])),
        ?assertMatch(#{apps := [_ | _]}, sderl_mon_probe_slow:facts(Known))
    end}.

%% ---------------------------------------------------------------- the way there

%% Of three nodes one tells something else than the others.
look(Node, Told) -> take(input(Node, Told)).

take(Input) ->
    sderl_alarms_look:take(Input, sderl_alarms_look:rules(sderl_alarms_rule:built_in())).

input(Odd, Told) ->
    Nodes = #{Node => case Node of Odd -> Told; _ -> [] end
              || Node <- ['web1@h', 'web2@h', 'db1@h']},
    Topology = topology(Nodes),
    {Frame, Standing} = at_hub(Topology, update(Nodes)),
    #{topology => Topology, frame => Frame, findings => [], standing => Standing,
      versions => sderl_alarms_versions:count(Topology, Standing, sderl_alarms_versions:new())}.

%% As a master makes it of the agents' reports.
topology(Nodes) ->
    Reports = #{Node => report(Node, Told) || Node := Told <- Nodes},
    sderl_mon_members:topology(?WALL, [], #{
        nodes => Reports, members => sderl_mon_members:groups(Reports), placement => #{}
    }).

report(Node, Told) ->
    #{facts := Facts} = sample(Node, 1, Told),
    Report = #{status => up, why => ~"", source => probe, facts => Facts, peers => [], since => 0},
    case lists:member(down, Told) of
        true -> Report#{status := down, why := ~"no connection"};
        false -> Report
    end.

%% As an agent makes it of two samples of each node.
update(Nodes) ->
    Own = #{sderl_mon_types:id(Node) => rates(Node, Told)
            || Node := Told <- Nodes, not lists:member(down, Told)},
    #{agent => {~"g", 1}, t => ?WALL, span_ms => ?SPAN_MS,
      nodes => #{Id => Sample || Id := {Sample, _} <- Own},
      details => #{Id => Detail || Id := {_, Detail} <- Own}}.

rates(Node, Told) ->
    [Before, #{facts := Facts} = Now] = [came(sample(Node, Seq, Told), Seq) || Seq <- [1, 2]],
    #{node := Sample} = Rates = sderl_mon_rates:between(Before, Now, #{monitors => []}),
    {Sample, sderl_mon_rates:detail({Before, Now}, Rates, Facts)}.

came(Told, Seq) ->
    {ok, Sample} = sderl_mon_samples:check(Told),
    sderl_mon_rates:here(Sample, ?WALL + Seq * ?SPAN_MS).

%% What the hub tells alarms: the functions of its process, in this one.
at_hub(Topology, Update) ->
    {ok, New} = sderl_mon_hub:init(#{}),
    Told = lists:foldl(fun(Message, State) ->
        {noreply, Next} = sderl_mon_hub:handle_cast(Message, State),
        Next
    end, New, [{sderl_mon_topology, 1, Topology}, {sderl_mon_update, 1, Update}]),
    {reply, Standing, _} = sderl_mon_hub:handle_call(standing, {self(), make_ref()}, Told),
    #{frame := #{lost := Lost} = Frame} =
        sderl_mon_hub_state:make_frame(erlang:system_time(millisecond), Told),
    ?assertEqual(#{}, Lost),
    {Frame, Standing}.

%% A sample of a node that has nothing to complain of, but for what is told.
sample(Node, Seq, Told) ->
    Sample = #{
        v => 1, node => Node, seq => Seq, at => ?WALL + Seq * ?SPAN_MS,
        mono_us => Seq * ?SPAN_MS * 1000, source => probe,
        counters => #{reductions => Seq * 1000, undelivered => 0},
        gauges => #{
            procs => 1, proc_limit => 100, ports => 1, port_limit => 100, atoms => 1,
            atom_limit => 100, ets => 1, ets_limit => 100, files => 1, file_limit => 100,
            modules => 1, module_limit => 100, disk => 1, disk_limit => 100, mem_total => 1,
            host_mem => 1, host_mem_total => 100, host_cpu => 0.1, mq_max => 0, old_code => 0,
            shell_bytes => 0, utc_offset_s => 0, run_queue => 0
        },
        facts => #{
            otp => ~"29", application => true, apps => [{~"shop", ~"1.0"}],
            groups => [case Node of
                'web2@h' -> #{group => h, members => [Node], coordinator => Node, names => 0};
                _ -> #{group => g, members => ['db1@h', 'web1@h'], coordinator => 'db1@h',
                       names => 0}
            end]
        }
    },
    lists:foldl(fun(What, Acc) -> tell(What, Seq, Acc) end, Sample, Told).

tell({gauge, Name, Value}, _, #{gauges := Gauges} = Sample) ->
    Sample#{gauges := Gauges#{Name => Value}};
%% It has grown by so much since the first sample.
tell({counter, Name, N}, Seq, #{counters := Counters} = Sample) ->
    Sample#{counters := Counters#{Name => (Seq - 1) * N}};
tell({fact, Name, Value}, _, #{facts := Facts} = Sample) ->
    Sample#{facts := Facts#{Name => Value}};
tell({clock_ms, Ms}, _, #{at := At} = Sample) ->
    Sample#{at := At + Ms};
tell(down, _, Sample) ->
    Sample.
