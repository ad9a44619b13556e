%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_members_SUITE).
-moduledoc """
A service with three members on this machine, a virtual machine each, over real nodes: those are
killed, suspended and started again in the middle of what they do.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(sderl_ops_awaits, [free_port/0]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([in_operation/1, ten_points/1, killed_in_roll_back/1, deposed/1, removed/1, from_one/1]).

-define(PATIENCE_MS, 180_000).
-define(NAMES, ["ops1", "ops2", "ops3"]).
-define(IDS, [~"web1", ~"web2", ~"web3"]).

suite() -> [{timetrap, {minutes, 10}}].

%% Most of a case is waiting until another takes over.
all() ->
    [in_operation, from_one]
        ++ case os:getenv("SDERL_LONG") of
            false -> [];
            _ -> [ten_points, killed_in_roll_back, deposed, removed]
        end.

init_per_suite(Config) ->
    case os:type() of
        {unix, linux} -> Config;
        _ -> {skip, "processes are found in /proc"}
    end.

end_per_suite(_) -> ok.

init_per_testcase(ten_points, Config) ->
    _ = ct:timetrap({hours, 2}),
    begin_case(ten_points, Config);
init_per_testcase(Case, Config) ->
    begin_case(Case, Config).

begin_case(Case, Config) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["sderl-om-", Case, "-", os:getpid()])),
    _ = file:del_dir_r(Folder),
    Ports = #{Name => free_port() || Name <- ?NAMES},
    Cookie = binary:encode_hex(crypto:strong_rand_bytes(20)),
    lists:foreach(fun(Name) ->
        ok = filelib:ensure_path(filename:join(Folder, Name)),
        File = filename:join([Folder, Name, "members.cookie"]),
        ok = file:write_file(File, Cookie),
        ok = file:change_mode(File, 8#400)
    end, ?NAMES),
    [{folder, Folder}, {epmd, free_port()}, {ports, Ports} | Config].

end_per_testcase(_, Config) ->
    _ = [signal("KILL", Name, Config) || Name <- ?NAMES],
    _ = [os:cmd("kill -9 " ++ Pid) || Pid <- sderl_ops_asks:processes_of(?config(folder, Config))],
    ok = sderl_ops_awaits:end_epmd(integer_to_list(?config(epmd, Config))),
    _ = file:del_dir_r(?config(folder, Config)),
    ok.

%% ---------------------------------------------------------------- cases

%% One set of members that goes through all changes one after the other.
in_operation(Config) ->
    start_all(Config),
    #{~"state" := ~"steady"} =
        ask(acting(Config), apply, #{file => write(cluster(), Config)}, Config),
    killed_in_upgrade(Config),
    await_all(Config),
    majority_lost(Config),
    stopped(Config),
    await_all(Config),
    disk_lost(Config).

%% A client on another member gets its answer as if nothing had happened. The killed member comes
%% back, and all show the same.
killed_in_upgrade(Config) ->
    Watch = watch_for_twice(Config),
    Acts = acting(Config),
    [Other | _] = ?NAMES -- [Acts],
    File = write(configured(#{tick_ms => 900}, cluster()), Config),
    Told = kill_after(rand:uniform(10), Acts, Other, apply, #{file => File}, Config),
    ?assertMatch({done, #{~"state" := ~"steady", ~"revision" := 2, ~"problems" := []}}, Told),
    all_run_once(Other, Config),
    ?assertNotEqual(Acts, acting(Other, Config)),
    %% Of the second revision one at a time, and so one that was cut off.
    Starts = maps:values(starts(Config)),
    ?assert(lists:max(Starts) =< 3, Starts),
    ?assert(lists:sum(Starts) =< 6 + 1, Starts),
    %% The next member has ended the entries of the killed one; a third may show that a bit later.
    await(fun() ->
        Requests = [{What, Result} || #{~"what" := What, ~"result" := Result}
                                          <- map_get(~"entries",
                                                     ask(Other, record, #{kind => request},
                                                         Config))],
        #{~"revisions" := Revisions} = ask(Other, history, #{}, Config),
        case {Requests, [{Of, Result} || #{~"revision" := Of, ~"result" := Result} <- Revisions]} of
            {[{<<"apply ", _/binary>>, ~"done"}, {<<"apply ", _/binary>>, ~"done"}],
             [{2, ~"good"}, {1, ~"good"}]} -> true;
            Else -> Else
        end
    end),
    start(Acts, Config),
    await(fun() -> [~"has_it", ~"has_it", ~"leads"] =:= stores(Acts, Config) end),
    [await(fun() -> is_steady(2, Name, Config) end) || Name <- ?NAMES],
    %% The cookie of the cluster is the same everywhere, and for its user alone.
    Cookies = [file:read_file(filename:join(folder(Name, Config), "cookie")) || Name <- ?NAMES],
    ?assertMatch([{ok, <<_, _/binary>>}], lists:usort(Cookies)),
    ?assertEqual([], seen_twice(Watch)).

%% The member that acts is killed at ten points of each operation, from its first step to its last.
ten_points(Config) ->
    start_all(Config),
    Watch = watch_for_twice(Config),
    lists:foreach(fun(Point) ->
        Part = Point / 10,
        First = killed_at(Part, apply, #{file => write(cluster(), Config)}, 3, Config),
        Second = killed_at(Part, apply,
                           #{file => write(configured(#{tick_ms => 900}, cluster()), Config)},
                           3, Config),
        ?assertEqual(First + 1, Second),
        Second + 1 =:= killed_at(Part, rollback, #{revision => First}, 3, Config)
            orelse error(other_revision),
        #{~"state" := ~"destroyed"} = ask(acting(Config), destroy, #{}, Config),
        ?assertEqual([], sderl_ops_asks:processes_of(?config(folder, Config)))
    end, lists:seq(1, 10)),
    ?assertEqual([], seen_twice(Watch)).

%% All is as it is to be in the end, no instance was started once more than it had to be but for
%% those whose start was cut off, and the new revision is the newest.
killed_at(Part, Do, Keys, Starts, Config) ->
    Acts = acting(Config),
    [Other | _] = ?NAMES -- [Acts],
    Before = lists:sum(maps:values(starts(Config))),
    ct:log("~ts is killed at ~b % of ~0tp", [Acts, round(100 * Part), {Do, Keys}]),
    Told = kill_when(fun({progress, Done, Total, _}) -> Done + 1 >= Part * Total;
                        (_) -> false
                     end, Acts, Other, Do, Keys, Config),
    {done, #{~"state" := ~"steady", ~"problems" := [], ~"revision" := Revision}} = Told,
    all_run_once(Other, Config),
    ?assertEqual(1, length(lists:uniq(settings(Config)))),
    %% A deployment starts all at a time, and others one after the other.
    CutOff = case Before of 0 -> 3; _ -> 1 end,
    ?assert(lists:sum(maps:values(starts(Config))) - Before =< Starts + CutOff),
    #{~"revisions" := [#{~"revision" := Revision} | _]} = ask(Other, history, #{}, Config),
    start(Acts, Config),
    await_all(Config),
    Revision.

%% What each instance was laid out with.
settings(Config) ->
    Files = filelib:wildcard("*/hosts/*/*/nodes/*/instance", ?config(folder, Config)),
    [Line || File <- Files,
             {ok, Text} <- [file:read_file(filename:join(?config(folder, Config), File))],
             Line <- binary:split(Text, ~"\n", [global]),
             string:prefix(Line, ~"settings ") =/= nomatch].

%% Nodes with this configuration cannot start, so the family goes back.
killed_in_roll_back(Config) ->
    start_all(Config),
    Acts = acting(Config),
    #{~"state" := ~"steady"} = ask(Acts, apply, #{file => write(cluster(), Config)}, Config),
    Watch = watch_for_twice(Config),
    [Other | _] = ?NAMES -- [Acts],
    Worse = #{releases := #{code := Code}} = configured(#{tick_ms => ~"never"}, cluster()),
    Bad = write(Worse#{releases := #{code => Code#{start_timeout_s => 5}}}, Config),
    Told = kill_when(fun({note, _}) -> true; (_) -> false end, Acts, Other, apply,
                     #{file => Bad}, Config),
    ?assertMatch({done, #{~"state" := ~"failed", ~"problems" := [_ | _]}}, Told),
    all_run_once(Other, Config),
    ?assertEqual([], seen_twice(Watch)),
    #{~"revisions" := [#{~"revision" := 2, ~"result" := <<"rolled back: web">>},
                       #{~"revision" := 1, ~"result" := ~"good"}]} =
        ask(Other, history, #{}, Config),
    %% Those of the first revision that were not touched still are the same.
    ?assert(lists:sum(maps:values(starts(Config))) =< 10).

majority_lost(Config) ->
    Acts = acting(Config),
    Before = [beams(Id, Config) || Id <- ?IDS],
    [Left | Gone] = [Name || Name <- ?NAMES, Name =/= Acts] ++ [Acts],
    [signal("KILL", Name, Config) || Name <- Gone],
    await(fun() ->
        case ask_any(Left, scale, #{family => ~"web", count => 4}, Config) of
            {error, Text, _} -> binary:match(Text, ~"no majority of the ops members") =/= nomatch;
            _ -> false
        end
    end),
    ?assertMatch({error, <<"no majority", _/binary>>, _}, ask_any(Left, drain,
                                                                 #{instance => ~"web1"}, Config)),
    ?assertEqual(Before, [beams(Id, Config) || Id <- ?IDS]),
    #{~"revisions" := [#{~"revision" := 2} | _]} = ask(Left, history, #{}, Config),
    [start(Name, Config) || Name <- Gone],
    await(fun() -> acting(Left, Config) =/= none end),
    #{~"state" := ~"steady"} = ask(Left, scale, #{family => ~"web", count => 4}, Config),
    ?assertEqual(Before, [beams(Id, Config) || Id <- ?IDS]).

%% A suspended member is the worst case: it continues in the middle of a step.
deposed(Config) ->
    start_all(Config),
    Acts = acting(Config),
    [Other | _] = Others = ?NAMES -- [Acts],
    File = write(cluster(), Config),
    {ok, Socket} = send(Other, apply, #{file => File}, Config),
    ok = until(fun({progress, _, _, _}) -> true; (_) -> false end, 3, Socket),
    signal("STOP", Acts, Config),
    await(fun() -> lists:member(acting(Other, Config), Others) end),
    signal("CONT", Acts, Config),
    ?assertMatch({done, #{~"state" := ~"steady"}}, sderl_ops_asks:last(Socket)),
    all_run_once(Other, Config),
    ?assert(lists:sum(maps:values(starts(Config))) =< 4),
    await(fun() -> acting(Acts, Config) =:= acting(Other, Config) end),
    %% A member without a majority stops acting when its lease ends, although it runs and is asked.
    Now = acting(Other, Config),
    Cut = ?NAMES -- [Now],
    [signal("STOP", Name, Config) || Name <- Cut],
    Began = erlang:monotonic_time(millisecond),
    await(fun() -> none =:= acting(Now, Config) end),
    Took = erlang:monotonic_time(millisecond) - Began,
    ct:log("acted for ~b ms", [Took]),
    ?assert(Took < sderl_ops_lease:hold_ms() + 60_000),
    [signal("CONT", Name, Config) || Name <- Cut],
    await(fun() -> acting(Now, Config) =/= none end),
    #{~"state" := ~"steady"} = ask(Now, scale, #{family => ~"web", count => 2}, Config).

disk_lost(Config) ->
    Acts = acting(Config),
    [Lost, Other] = ?NAMES -- [Acts],
    signal("KILL", Lost, Config),
    Folder = folder(Lost, Config),
    {ok, Cookie} = file:read_file(filename:join(Folder, "members.cookie")),
    [ok = file:del_dir_r(Path) || Name <- ["store", "archives", "cookie", "member"],
                                  Path <- [filename:join(Folder, Name)], filelib:is_file(Path)],
    ?assertEqual({ok, Cookie}, file:read_file(filename:join(Folder, "members.cookie"))),
    start(Lost, Config),
    await(fun() ->
        {error, Text, _} = ask_any(Lost, status, #{}, Config),
        binary:match(Text, ~"members add") =/= nomatch
    end),
    #{~"members" := [_, _, _]} = ask(Other, add_member, #{member => member(Lost, Config)}, Config),
    await(fun() -> [~"has_it", ~"has_it", ~"leads"] =:= stores(Lost, Config) end),
    %% It has all that it needs to act.
    signal("KILL", Acts, Config),
    #{~"state" := ~"steady", ~"revision" := 5} =
        ask(Lost, scale, #{family => ~"web", count => 2}, Config),
    %% Another one is removed for good, and the two others decide alone.
    _ = ask(Other, remove_member, #{member => member(Acts, Config)}, Config),
    await(fun() -> [~"has_it", ~"leads"] =:= stores(Other, Config) end),
    {error, _, _} = ask_any(Other, remove_member, #{member => ~"ops9@127.0.0.1"}, Config),
    {error, _, _} = ask_any(Other, add_member, #{member => ~"nobody"}, Config),
    #{~"state" := ~"steady"} = ask(Lost, scale, #{family => ~"web", count => 1}, Config).

%% If the member that acts is stopped in order, another takes over at once; it comes back with its
%% data.
stopped(Config) ->
    Acts = acting(Config),
    Before = [beams(Id, Config) || Id <- ?IDS],
    Others = [Other | _] = ?NAMES -- [Acts],
    _ = ask(Acts, stop, #{}, Config),
    await(fun() -> not runs(Acts, Config) end),
    await(fun() -> lists:member(acting(Other, Config), Others) end),
    {ok, Log} = file:read_file(filename:join(?config(folder, Config), Acts ++ ".log")),
    ?assertMatch({_, _}, binary:match(Log, ~"gives the lease back: ok")),
    #{~"state" := ~"steady"} = ask(Other, scale, #{family => ~"web", count => 3}, Config),
    ?assertEqual(Before, [beams(Id, Config) || Id <- ?IDS]),
    start(Acts, Config),
    await(fun() -> [~"has_it", ~"has_it", ~"leads"] =:= stores(Acts, Config) end),
    await(fun() -> is_steady(4, Acts, Config) end).

%% A service with one member becomes one of three, by a member that is not the first by name.
from_one(Config) ->
    start_alone("ops2", Config),
    #{~"state" := ~"steady"} = ask("ops2", apply, #{file => write(cluster(), Config)}, Config),
    _ = ask("ops2", pause, #{}, Config),
    Before = [beams(Id, Config) || Id <- ?IDS],
    #{~"revisions" := Revisions} = ask("ops2", history, #{}, Config),
    _ = ask("ops2", stop, #{}, Config),
    await(fun() -> not runs("ops2", Config) end),
    start_all(Config),
    [#{~"state" := ~"paused", ~"revision" := 1} = ask(Name, status, #{}, Config)
     || Name <- ?NAMES],
    ?assertMatch(#{~"revisions" := Revisions}, ask("ops1", history, #{}, Config)),
    _ = ask("ops1", resume, #{}, Config),
    ?assertEqual(Before, [beams(Id, Config) || Id <- ?IDS]),
    Folder = folder("ops2", Config),
    ?assert(filelib:is_dir(filename:join(Folder, "store-of-one"))),
    ?assertNot(filelib:is_file(filename:join(Folder, "store.moved"))),
    #{~"state" := ~"steady", ~"revision" := 2} =
        ask("ops3", scale, #{family => ~"web", count => 2}, Config),
    %% It goes on with its folder, as any member does.
    signal("KILL", "ops2", Config),
    start("ops2", Config),
    await(fun() -> [~"has_it", ~"has_it", ~"leads"] =:= stores("ops2", Config) end),
    await(fun() -> is_steady(2, "ops2", Config) end).

%% A running member is told that it was removed, another finds out when it is started. Both may be
%% added again.
removed(Config) ->
    start_all(Config),
    #{~"state" := ~"steady"} =
        ask(acting(Config), apply, #{file => write(cluster(), Config)}, Config),
    Acts = acting(Config),
    [Other, Third] = ?NAMES -- [Acts],
    {error, _, _} = ask_any(Acts, remove_member, #{member => member(Acts, Config)}, Config),
    {error, _, _} = ask_any(Acts, add_member, #{member => member(Other, Config)}, Config),
    {error, _, _} = ask_any(Acts, add_member, #{member => other_of(Other, Config)}, Config),
    _ = ask(Other, remove_member, #{member => member(Acts, Config)}, Config),
    await(fun() -> not runs(Acts, Config) end),
    await(fun() -> lists:member(acting(Other, Config), [Other, Third]) end),
    start(Acts, Config),
    await(fun() -> waits_for_add(Acts, Config) end),
    _ = ask(Other, add_member, #{member => member(Acts, Config)}, Config),
    await(fun() -> [~"has_it", ~"has_it", ~"leads"] =:= stores(Acts, Config) end),
    signal("KILL", Acts, Config),
    await(fun() -> [~"there"] =/= states(Acts, Other, Config) end),
    _ = ask(Other, remove_member, #{member => member(Acts, Config)}, Config),
    start(Acts, Config),
    await(fun() -> not runs(Acts, Config) end),
    start(Acts, Config),
    await(fun() -> waits_for_add(Acts, Config) end),
    #{~"state" := ~"steady"} = ask(Other, scale, #{family => ~"web", count => 2}, Config).

is_steady(Revision, Name, Config) ->
    case ask_any(Name, status, #{}, Config) of
        {done, #{~"state" := ~"steady", ~"revision" := Revision}} -> true;
        Other -> Other
    end.

waits_for_add(Name, Config) ->
    case ask_any(Name, status, #{}, Config) of
        {error, Text, _} -> binary:match(Text, ~"members add") =/= nomatch;
        _ -> false
    end.

%% Another name at the same port.
other_of(Name, Config) -> <<"other-", (member(Name, Config))/binary>>.

states(Of, Asked, Config) ->
    #{~"members" := Members} = ask(Asked, members, #{}, Config),
    [State || #{~"member" := Member, ~"state" := State} <- Members, Member =:= member(Of, Config)].

%% ---------------------------------------------------------------- killing

kill_after(Steps, Victim, Asked, Do, Keys, Config) ->
    Left = atomics:new(1, []),
    ok = atomics:put(Left, 1, Steps),
    ct:log("~ts is killed after ~b steps", [Victim, Steps]),
    kill_when(fun({progress, _, _, _}) -> atomics:sub_get(Left, 1, 1) =< 0; (_) -> false end,
              Victim, Asked, Do, Keys, Config).

kill_when(Fun, Victim, Asked, Do, Keys, Config) ->
    {ok, Socket} = send(Asked, Do, Keys, Config),
    ok = until(Fun, 1, Socket),
    signal("KILL", Victim, Config),
    sderl_ops_asks:last(Socket).

until(_, 0, _) -> ok;
until(Fun, Times, Socket) ->
    Told = sderl_ops_asks:answer(Socket),
    case Told of
        {done, _} -> error({ended, Told});
        {error, _, _} -> error({ended, Told});
        _ ->
            case Fun(Told) of
                true -> until(Fun, Times - 1, Socket);
                false -> until(Fun, Times, Socket)
            end
    end.

all_run_once(Name, Config) ->
    #{~"instances" := Instances} = ask(Name, status, #{}, Config),
    ?assertEqual([{Id, ~"up"} || Id <- ?IDS],
                 [{Id, State} || #{~"id" := Id, ~"state" := State} <- Instances]),
    Beams = sderl_ops_asks:all_beams(?IDS, ?config(folder, Config)),
    ?assertMatch([[_], [_], [_]], maps:values(Beams)).

%% ---------------------------------------------------------------- the cluster

%% Each start of an instance writes a line.
cluster() ->
    Ebin = unicode:characters_to_binary(filename:dirname(code:which(s_group))),
    #{
        cluster => ~"shop",
        providers => #{here => #{type => local, hosts => 2}},
        releases => #{code => #{code => [Ebin], applications => [sderl]}},
        domains => #{one => #{provider => here}},
        families => #{web => #{
            release => code, domains => [one], count => 3,
            hooks => #{before_start => [~"sh", ~"-c", ~"echo {{id}} >> {{state_dir}}/starts"]}
        }},
        groups => [#{name => shop, nodes => [~"web*"]}],
        upgrade => #{wait_s => 1}
    }.

configured(Values, #{families := #{web := Web}} = Cluster) ->
    Cluster#{families := #{web => Web#{config => #{sderl => Values}}}}.

write(Cluster, Config) -> sderl_ops_asks:write(Cluster, ?config(folder, Config)).

%% How often each instance was started.
starts(Config) ->
    Files = filelib:wildcard("*/hosts/*/*/**/state/starts", ?config(folder, Config)),
    lists:foldl(fun(File, Counts) ->
        {ok, Bytes} = file:read_file(filename:join(?config(folder, Config), File)),
        lists:foldl(fun(Id, Acc) ->
            maps:update_with(Id, fun(N) -> N + 1 end, 1, Acc)
        end, Counts, binary:split(Bytes, ~"\n", [global, trim_all]))
    end, #{}, Files).

%% ---------------------------------------------------------------- the members

folder(Name, Config) -> filename:join(?config(folder, Config), Name).

member(Name, Config) ->
    #{Name := Port} = ?config(ports, Config),
    unicode:characters_to_binary(io_lib:format("~ts@127.0.0.1:~b", [Name, Port])).

%% In any order.
start_all(Config) ->
    [start(Name, Config) || {_, Name} <- lists:sort([{rand:uniform(), Name} || Name <- ?NAMES])],
    await_all(Config).

%% All have the store, and know who acts.
await_all(Config) ->
    await(fun() ->
        lists:all(fun(Name) ->
            [~"has_it", ~"has_it", ~"leads"] =:= stores(Name, Config)
                andalso acting(Name, Config) =/= none
        end, ?NAMES)
    end).

start(Name, Config) ->
    List = lists:join(",", [member(Of, Config) || Of <- ?NAMES]),
    {ok, Members} = sderl_ops_roster:parse_list(unicode:characters_to_list(List)),
    [Self] = [Member || #{node := Node} = Member <- Members,
                        lists:prefix(Name ++ "@", atom_to_list(Node))],
    start_as({Self, Members}, Name, Config).

start_alone(Name, Config) -> start_as(alone, Name, Config).

start_as(As, Name, Config) ->
    Code = io_lib:format(
        "logger:add_handler(f, logger_std_h, #{config => #{file => ~tp}, level => notice}), "
        "case sderl_ops_service:run(~tp, ~tp) of ok -> ok; {error, Why} -> io:put_chars(Why) end, "
        "logger_std_h:filesync(f), halt().",
        [filename:join(?config(folder, Config), Name ++ ".log"), folder(Name, Config),
         As]),
    {_, Pid} = sderl_ops_asks:start(Code, ["-epmd_module", "sderl_ops_ports"],
                                    [{"ERL_EPMD_PORT", integer_to_list(?config(epmd, Config))}]),
    ok = file:write_file(pid_file(Name, Config), integer_to_list(Pid)),
    await(fun() -> sderl_ops_asks:is_reachable(folder(Name, Config)) end).

runs(Name, Config) ->
    {ok, Pid} = file:read_file(pid_file(Name, Config)),
    filelib:is_dir("/proc/" ++ binary_to_list(Pid)).

pid_file(Name, Config) -> filename:join(?config(folder, Config), Name ++ ".pid").

signal(Signal, Name, Config) ->
    case file:read_file(pid_file(Name, Config)) of
        {ok, Pid} ->
            _ = os:cmd("kill -" ++ Signal ++ " " ++ binary_to_list(Pid)),
            Signal =:= "KILL" andalso
                await(fun() -> not filelib:is_dir("/proc/" ++ binary_to_list(Pid)) end);
        {error, enoent} ->
            ok
    end.

stores(Name, Config) ->
    case ask_any(Name, members, #{}, Config) of
        {done, #{~"members" := Members}} ->
            lists:sort([Store || #{~"store" := Store} <- Members]);
        _ -> []
    end.

%% On a busy machine there may be nobody for a while.
acting(Config) ->
    First = hd(?NAMES),
    await(fun() -> acting(First, Config) =/= none end),
    case acting(First, Config) of
        none -> acting(Config);
        Name -> Name
    end.

acting(Name, Config) ->
    case ask_any(Name, members, #{}, Config) of
        {done, #{~"members" := Members}} ->
            case [Member || #{~"member" := Member, ~"acts" := true} <- Members] of
                [Member] -> binary_to_list(hd(binary:split(Member, ~"@")));
                [] -> none
            end;
        _ -> none
    end.

ask(Name, Do, Keys, Config) -> sderl_ops_asks:ask(folder(Name, Config), Do, Keys).

ask_any(Name, Do, Keys, Config) -> sderl_ops_asks:ask_any(folder(Name, Config), Do, Keys).

send(Name, Do, Keys, Config) -> sderl_ops_asks:send(folder(Name, Config), Do, Keys).

%% ---------------------------------------------------------------- what is there

beams(Id, Config) -> sderl_ops_asks:beams(Id, ?config(folder, Config)).

%% Looks all the time whether an instance runs twice. A node that goes into the background forks, so
%% only two that are seen together twice are two.
watch_for_twice(Config) ->
    spawn_link(fun() -> watch_for_twice(#{}, [], Config) end).

watch_for_twice(Before, Twice, Config) ->
    Seen = sderl_ops_asks:all_beams(?IDS, ?config(folder, Config)),
    Now = [{Id, Pids} || Id := Pids <- Seen,
                         length([Pid || Pid <- Pids, lists:member(Pid, maps:get(Id, Before, []))])
                             > 1],
    receive
        {seen_twice, From} -> From ! {self(), Twice ++ Now}
    after 500 ->
        watch_for_twice(Seen, Twice ++ Now, Config)
    end.

seen_twice(Watch) ->
    Watch ! {seen_twice, self()},
    receive {Watch, Twice} -> Twice end.

await(Fun) -> sderl_ops_awaits:await(Fun, ?PATIENCE_MS).
