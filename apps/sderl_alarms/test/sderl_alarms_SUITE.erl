%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_SUITE).

%% Alarms of real nodes, on two monitoring nodes: what is raised there, what people say of it, and
%% what is left of both when parts of the monitoring die.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(SOON, 120_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [raised_and_cleared, survives, told_once, one_folder, nothing_is_kept].

init_per_testcase(_, Config) ->
    %% Without a tag in their names the workers are a family.
    {ok, Fleet} = sderl_fleet:start(#{
        tag => "",
        families => [#{name => w, count => 3, apps => [sderl]},
                     #{name => m, count => 2, hidden => true}],
        s_groups => []
    }),
    Nodes = sderl_fleet:nodes(Fleet),
    {[W1 | _] = Workers, Monitors} = lists:split(3, Nodes),
    {ok, shop, _} = call(Fleet, W1, s_group, new_s_group, [shop, Workers]),
    [{fleet, Fleet}, {workers, Workers}, {monitors, Monitors} | Config].

end_per_testcase(_, Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)).

%% ---------------------------------------------------------------- helpers

rules(Config) -> rules(Config, []).

rules(Config, Routes) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "rules.json"),
    ok = file:write_file(File, json:encode(#{routes => Routes, rules => [
        #{alarm => node_down, for_s => 1},
        #{alarm => family_app_versions, for_s => 1},
        #{alarm => members_down, metric => members_down, minor => 1, major => 3, for_s => 1,
          cause => ~"Too few.", remedy => ~"Start them.", tags => [op]}
    ]})),
    File.

start(Config, Case) -> start(Config, Case, []).

start(Config, Case, Routes) ->
    Fleet = proplists:get_value(fleet, Config),
    Monitors = proplists:get_value(monitors, Config),
    [Seed | _] = proplists:get_value(workers, Config),
    Dir = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    Begin = fun(M) ->
        ok = call(Fleet, M, application, set_env, [[
            {sderl_mon, [{config, #{monitors => Monitors, seeds => [Seed], interval_ms => 500}}]},
            {sderl_alarms, [{rules_file, rules(Config, Routes)},
                            {state_dir, filename:join(Dir, atom_to_list(M))}]}
        ]]),
        {ok, _} = call(Fleet, M, application, ensure_all_started, [sderl_alarms])
    end,
    lists:foreach(Begin, Monitors),
    %% All nodes are seen, by their probes. (Where one was late, its node is read from outside for a
    %% while.)
    await(fun() ->
        Seen = [{S, Source}
                || M <- Monitors, #{status := S, source := Source} <-
                    maps:values(map_get(nodes, call(Fleet, M, sderl_mon_hub, now_topology, []))),
                   Source =/= none],
        Seen =:= lists:duplicate(6, {up, probe}) orelse Seen
    end),
    {Fleet, Monitors, Begin}.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?SOON).

await(Fun) -> sderl_ct:await(condition, Fun, ?SOON).

alarm(Fleet, Monitor, Id) ->
    case call(Fleet, Monitor, sderl_alarms, find, [Id]) of
        {ok, Alarm} -> Alarm;
        {error, not_found} -> #{state => none}
    end.

state(Fleet, Monitor, Id) -> map_get(state, alarm(Fleet, Monitor, Id)).

both(Fleet, Monitors, Id, State) ->
    await(fun() ->
        States = [state(Fleet, M, Id) || M <- Monitors],
        States =:= [State || _ <- Monitors] orelse States
    end).

%% ---------------------------------------------------------------- cases

%% Those of OTP's alarm_handler, too: beside the others, as an alarm is cleared late.
raised_and_cleared(Config) ->
    [W1, W2, W3] = proplists:get_value(workers, Config),
    [ok = call(proplists:get_value(fleet, Config), W, application, load,
               [{application, sold, [{vsn, Vsn}]}]) || {W, Vsn} <- [{W1, "1"}, {W2, "2"}]],
    {Fleet, [M1, M2] = Monitors, _} = start(Config, ?FUNCTION_NAME),
    {ok, _} = call(Fleet, W1, application, ensure_all_started, [sasl]),
    ok = call(Fleet, W1, alarm_handler, set_alarm, [{{disk_almost_full, "/data"}, []}]),
    Disk = <<"node_alarm|", (atom_to_binary(W1))/binary, "|{disk_almost_full,\"/data\"}">>,
    Down = <<"node_down|", (atom_to_binary(W3))/binary>>,
    %% What alarms go by once a minute, by probes: there is no shell.
    Shell = atom_to_binary(W1),
    await(fun() ->
        #{Shell := Its} = call(Fleet, M1, sderl_mon_hub, standing, []),
        map_get(shell_bytes, Its) =:= 0
    end),
    both(Fleet, Monitors, ~"family_app_versions|w", raised),
    ?assertMatch(#{place := #{family := ~"w"}, groups := [~"shop"], value := 1, tags := [_, _]},
                 alarm(Fleet, M1, ~"family_app_versions|w")),
    ok = sderl_fleet:kill(Fleet, W3),
    both(Fleet, Monitors, Down, raised),
    both(Fleet, Monitors, ~"members_down|shop", raised),
    ?assertMatch(#{severity := major, nodes := [_], groups := [~"shop"], tags := [~"op"],
                   remedy := <<"Start it", _/binary>>, count := 1}, alarm(Fleet, M1, Down)),
    ?assertMatch(#{severity := minor, value := 1, cause := ~"Too few."},
                 alarm(Fleet, M1, ~"members_down|shop")),
    %% What is said at one is known at the other.
    ok = call(Fleet, M1, sderl_alarms, acknowledge, [Down, ~"ann", ~"on it"]),
    ok = call(Fleet, M2, sderl_alarms, comment, [Down, ~"bob", ~"the disk again"]),
    {ok, Silence} = call(Fleet, M2, sderl_alarms, silence,
                         [#{node => atom_to_binary(W2)}, 3600, ~"bob", ~"upgrade"]),
    both(Fleet, Monitors, Down, acknowledged),
    await(fun() ->
        [{length(C), By} || M <- Monitors,
                            #{comments := C, acknowledged := #{by := By}} <-
                                [alarm(Fleet, M, Down)]] =:= [{1, ~"ann"}, {1, ~"ann"}]
    end),
    await(fun() -> [Id || #{id := Id} <- call(Fleet, M1, sderl_alarms, silences, [])]
        =:= [Silence] end),
    ok = call(Fleet, M1, sderl_alarms, unsilence, [Silence, ~"ann"]),
    await(fun() -> call(Fleet, M2, sderl_alarms, silences, []) =:= [] end),
    {ok, W3} = sderl_fleet:restart(Fleet, W3),
    both(Fleet, Monitors, Disk, raised),
    ok = call(Fleet, W1, alarm_handler, clear_alarm, [{disk_almost_full, "/data"}]),
    [both(Fleet, Monitors, Alarm, cleared) || Alarm <- [Down, Disk]],
    ?assertEqual({error, not_raised},
                 call(Fleet, M1, sderl_alarms, acknowledge, [Down, ~"ann", ~""])),
    ?assertMatch({error, {bad_value, by, _}},
                 call(Fleet, M1, sderl_alarms, comment, [Down, ~"", ~"x"])),
    ?assertMatch({error, {bad_value, match, _}},
                 call(Fleet, M1, sderl_alarms, silence, [#{}, 60, ~"ann", ~""])),
    ?assertMatch({error, {bad_value, for_s, _}},
                 call(Fleet, M1, sderl_alarms, silence, [#{node => ~"*"}, 0, ~"ann", ~""])).

%% The process, the hub, the application, the whole monitoring node: nothing is lost or doubled.
survives(Config) ->
    {Fleet, [M1, M2] = Monitors, _} = start(Config, ?FUNCTION_NAME),
    [_, _, W3] = proplists:get_value(workers, Config),
    Down = <<"node_down|", (atom_to_binary(W3))/binary>>,
    ok = sderl_fleet:kill(Fleet, W3),
    both(Fleet, Monitors, Down, raised),
    ok = call(Fleet, M1, sderl_alarms, acknowledge, [Down, ~"ann", ~"on it"]),
    both(Fleet, Monitors, Down, acknowledged),
    {ok, _} = call(Fleet, M1, sderl_alarms, silence,
                   [#{alarm => ~"ports"}, 3600, ~"ann", ~"known"]),
    #{since := Since} = alarm(Fleet, M1, Down),
    Same = fun() ->
        await(fun() ->
            case alarm(Fleet, M1, Down) of
                #{state := acknowledged, count := 1, since := Since,
                  acknowledged := #{by := ~"ann"}} ->
                    [_] = call(Fleet, M1, sderl_alarms, silences, []),
                    true;
                Other -> Other
            end
        end)
    end,
    Same(),
    true = call(Fleet, M1, erlang, apply, [fun() -> exit(whereis(sderl_alarms_server), kill) end,
                                           []]),
    await(fun() -> is_pid(call(Fleet, M1, erlang, whereis, [sderl_alarms_server])) end),
    Same(),
    true = call(Fleet, M1, erlang, apply, [fun() -> exit(whereis(sderl_mon_hub), kill) end, []]),
    Same(),
    ok = call(Fleet, M1, application, stop, [sderl_alarms]),
    ok = call(Fleet, M1, application, start, [sderl_alarms]),
    Same(),
    %% The other one alone, with the same of it.
    ok = sderl_fleet:kill(Fleet, M1),
    ?assertMatch(#{state := acknowledged, count := 1}, alarm(Fleet, M2, Down)),
    await(fun() -> maps:get(delivers, call(Fleet, M2, sderl_alarms, info, [])) end).

%% A receiver is told of each change once, whichever node leads and whatever happened meanwhile.
told_once(Config) ->
    Receiver = sderl_alarms_receiver:start(fun(_) -> 200 end),
    {Fleet, [M1, M2] = Monitors, Begin} =
        start(Config, ?FUNCTION_NAME, [#{name => hook, alarms => [node_down], timeout_s => 60,
                                         webhook => sderl_alarms_receiver:url(Receiver)}]),
    [W1, W2, W3] = proplists:get_value(workers, Config),
    Told = fun() ->
        Bodies = [Body || #{body := Body} <- sderl_alarms_receiver:requests(Receiver)],
        ?assertEqual(length(Bodies), length(lists:usort([Id || #{~"id" := Id} <- Bodies]))),
        [{Event, binary_to_atom(Node)}
         || #{~"event" := Event, ~"alarm" := #{~"nodes" := [Node]}} <- Bodies,
            lists:member(binary_to_atom(Node), [W1, W2, W3])]
    end,
    Leads = fun(M) ->
        await(fun() -> maps:get(delivers, call(Fleet, M, sderl_alarms, info, [])) end)
    end,
    %% What the first one told, the second one leaves out.
    Leads(M1),
    ok = sderl_fleet:kill(Fleet, W3),
    await(fun() -> Told() =:= [{~"raised", W3}] orelse Told() end),
    both(Fleet, Monitors, <<"node_down|", (atom_to_binary(W3))/binary>>, raised),
    %% The second one leads when the first one has gone, and tells what nobody has told.
    ok = sderl_fleet:kill(Fleet, M1),
    ok = sderl_fleet:kill(Fleet, W2),
    await(fun() -> Told() =:= [{~"raised", W3}, {~"raised", W2}] orelse Told() end),
    {ok, W3} = sderl_fleet:restart(Fleet, W3),
    await(fun() -> length(Told()) =:= 3 orelse Told() end),
    %% The first one comes back with what it knew then, and leads.
    {ok, M1} = sderl_fleet:restart(Fleet, M1),
    Begin(M1),
    Leads(M1),
    {ok, W2} = sderl_fleet:restart(Fleet, W2),
    await(fun() -> length(Told()) =:= 4 orelse Told() end),
    both(Fleet, Monitors, <<"node_down|", (atom_to_binary(W2))/binary>>, cleared),
    await(fun() -> not maps:get(delivers, call(Fleet, M2, sderl_alarms, info, [])) end),
    ?assertEqual([{~"raised", W3}, {~"raised", W2}, {~"cleared", W3}, {~"cleared", W2}], Told()),
    sderl_alarms_receiver:stop(Receiver).

%% Two monitoring nodes with one folder: the first has it, the other says so and keeps nothing
%% there. It is free when the first has ended, also by a kill.
one_folder(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [M1, M2] = proplists:get_value(monitors, Config),
    Dir = filename:join(proplists:get_value(priv_dir, Config), "shared"),
    Env = [{sderl_mon, [{config, #{}}]}, {sderl_alarms, [{state_dir, Dir}]}],
    Begin = fun(M) ->
        ok = call(Fleet, M, application, set_env, [Env]),
        {ok, _} = call(Fleet, M, application, ensure_all_started, [sderl_alarms])
    end,
    Info = fun(M) -> call(Fleet, M, sderl_alarms, info, []) end,
    Say = fun(M, Node) ->
        {ok, Id} = call(Fleet, M, sderl_alarms, silence, [#{node => Node}, 3600, ~"ann", ~""]),
        Id
    end,
    Silences = fun(M) -> [Id || #{id := Id} <- call(Fleet, M, sderl_alarms, silences, [])] end,
    Begin(M1),
    Pid = list_to_binary(call(Fleet, M1, os, getpid, [])),
    %% The folder is the first one's from its start, before it has anything to write.
    Begin(M2),
    Id = Say(M1, ~"one"),
    #{kept := true} = Info(M1),
    #{kept := false, problem := Problem} = Info(M2),
    Holder = <<"another monitoring node, process ", Pid/binary>>,
    ?assertMatch({_, _}, binary:match(Problem, Holder)),
    ?assertMatch({_, _}, binary:match(Problem, ~"(--state)")),
    _ = Say(M2, ~"two"),
    %% The application begins anew on the first: its folder was not taken meanwhile.
    ok = call(Fleet, M1, application, stop, [sderl_alarms]),
    _ = Say(M2, ~"three"),
    #{kept := false, problem := Problem} = Info(M2),
    Begin(M1),
    ?assertEqual([Id], Silences(M1)),
    #{kept := true} = Info(M1),
    ok = sderl_fleet:kill(Fleet, M1),
    ok = call(Fleet, M2, application, stop, [sderl_alarms]),
    Begin(M2),
    ?assertEqual([Id], Silences(M2)),
    #{kept := true} = Info(M2).

%% A state directory that cannot be written, and a file of state that is damaged.
nothing_is_kept(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [M1 | _] = proplists:get_value(monitors, Config),
    Dir = filename:join(proplists:get_value(priv_dir, Config), "damaged"),
    State = filename:join(Dir, "alarms.state"),
    ok = filelib:ensure_dir(State),
    ok = file:write_file(State, "sderl-alarms-1\nrubbish"),
    ok = call(Fleet, M1, application, set_env, [[{sderl_alarms, [{state_dir, Dir}]}]]),
    {ok, _} = call(Fleet, M1, application, ensure_all_started, [sderl_alarms]),
    #{kept := false, problem := Problem} = call(Fleet, M1, sderl_alarms, info, []),
    ?assertMatch({_, _}, binary:match(Problem, ~"is damaged")),
    ?assert(filelib:is_regular(State ++ ".damaged")),
    %% A folder is in the place of the file: nothing can be written, everything else goes on.
    ok = filelib:ensure_dir(filename:join(State ++ ".new", "x")),
    {ok, Id} = call(Fleet, M1, sderl_alarms, silence, [#{node => ~"*"}, 60, ~"ann", ~""]),
    #{kept := false, problem := Full} = call(Fleet, M1, sderl_alarms, info, []),
    ?assertMatch({_, _}, binary:match(Full, ~"kept in memory alone")),
    ?assertMatch([#{id := Id}], call(Fleet, M1, sderl_alarms, silences, [])),
    ok = file:del_dir(State ++ ".new"),
    await(fun() -> maps:get(kept, call(Fleet, M1, sderl_alarms, info, [])) end),
    ok = call(Fleet, M1, application, stop, [sderl_alarms]),
    ok = call(Fleet, M1, application, start, [sderl_alarms]),
    ?assertMatch([#{id := Id}], call(Fleet, M1, sderl_alarms, silences, [])),
    %% A disk that hangs: a pipe that nobody reads is in the place of the file. What people say is
    %% answered all the same.
    Pipe = filename:join(Dir, "pipe"),
    "" = os:cmd("mkfifo " ++ Pipe),
    ok = file:make_link(Pipe, State ++ ".new"),
    {ok, _} = call(Fleet, M1, sderl_alarms, silence, [#{node => ~"*"}, 60, ~"ann", ~""]),
    #{kept := false, problem := Hung} = call(Fleet, M1, sderl_alarms, info, []),
    ?assertMatch({_, _}, binary:match(Hung, ~"the disk does not answer")),
    ok = file:delete(State ++ ".new"),
    "" = os:cmd("cat " ++ Pipe ++ " > " ++ filename:join(Dir, "read")),
    await(fun() -> maps:get(kept, call(Fleet, M1, sderl_alarms, info, [])) end),
    %% Rules that are wrong stop the application with all that is wrong.
    Rules = filename:join(Dir, "wrong.json"),
    ok = file:write_file(Rules, "{\"rules\": [{}]}"),
    ok = call(Fleet, M1, application, stop, [sderl_alarms]),
    ok = call(Fleet, M1, application, set_env, [sderl_alarms, rules_file, Rules]),
    ?assertMatch({error, {{bad_config, _}, _}},
                 call(Fleet, M1, application, start, [sderl_alarms])).
