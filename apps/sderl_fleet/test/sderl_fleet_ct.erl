%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_ct).

%% Shared by the suites: starting fleets, and finding what is left of one.

-export([
    fleet/1,
    done/1,
    call/5,
    call/6,
    await/1,
    atom/1,
    os_pid/2,
    has_proc/0,
    sh/0,
    trace/1,
    left/1,
    gone/1,
    is_gone/1,
    homes/1,
    marked/1,
    command/1,
    reaper/1,
    signal/2,
    shell/1,
    controller/2,
    erl/2,
    output/1,
    need_namespaces/1,
    free_port/2
]).

-include_lib("stdlib/include/assert.hrl").

-define(SOON, 60_000).

%% From a plan, or from its families alone.
fleet(Plan) when is_map(Plan) ->
    {ok, Fleet} = sderl_fleet:start(Plan),
    Fleet;
fleet(Families) ->
    fleet(#{families => Families}).

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?SOON).

call(Fleet, Node, M, F, A, Timeout) -> sderl_fleet:call(Fleet, Node, M, F, A, Timeout).

%% Nothing is left when stop/1 has returned.
done(Fleet) ->
    Trace = trace(Fleet),
    ok = sderl_fleet:stop(Fleet),
    ?assertEqual([], left(Trace)).

await(Fun) when is_function(Fun) -> sderl_fleet:await(Fun, ?SOON).

atom(Text) -> list_to_atom(lists:flatten(Text)).

os_pid(Fleet, Node) ->
    #{Node := #{os_pid := OsPid}} = sderl_fleet:info(Fleet),
    OsPid.

has_proc() -> filelib:is_dir("/proc/self").

sh() -> os:find_executable("sh").

%% What a fleet must not leave behind. (Threads have pids, too, so that on a busy machine the pid of
%% a process may soon be that of another one, which began later.)
trace(Fleet) ->
    #{home := Home} = sderl_fleet:connection_info(Fleet),
    Info = sderl_fleet:info(Fleet),
    {Home, [{OsPid, began(OsPid)} || _ := #{os_pid := OsPid} <- Info, is_integer(OsPid)]}.

%% When a process began, by the clock of the machine.
began(OsPid) ->
    case file:read_file(["/proc/", integer_to_list(OsPid), "/stat"]) of
        {ok, Stat} ->
            Words = string:lexemes(lists:last(binary:split(Stat, ~")", [global])), " "),
            lists:nth(20, Words);
        {error, _} -> unknown
    end.

left({Home, Traced}) ->
    [OsPid || {OsPid, Began} <- Traced, not is_gone(OsPid), began(OsPid) =:= Began] ++
        [{marked, OsPid} || OsPid <- marked(Home)] ++
        [Dir || Dir <- [Home], filelib:is_dir(Dir)].

gone(Trace) ->
    ok = await(fun() ->
        case left(Trace) of
            [] -> true;
            Left -> Left
        end
    end).

%% A zombie counts as gone, and so does a killed process that has given back its memory and is on
%% its way through the kernel: on a busy machine that may take a while.
is_gone(OsPid) ->
    case sderl_fleet_proc:state(OsPid) of
        gone -> true;
        $Z -> true;
        undefined -> shell("kill -0 " ++ integer_to_list(OsPid)) =/= 0;
        _ ->
            case file:read_file(["/proc/", integer_to_list(OsPid), "/cmdline"]) of
                {ok, Words} -> Words =:= <<>>;
                {error, _} -> true
            end
    end.

%% Private directories of fleets made in this directory.
homes(Dir) ->
    filelib:wildcard(filename:join(Dir, "sderl-fleet-*")).

%% Processes with the mark of this fleet.
marked(Home) ->
    Mark = list_to_binary("SDERL_FLEET_HOME=" ++ Home),
    [
        list_to_integer(OsPid)
     || File <- filelib:wildcard("/proc/[0-9]*/environ"),
        {ok, Data} <- [file:read_file(File)],
        binary:match(Data, Mark) =/= nomatch,
        [_, OsPid, _] <- [string:lexemes(File, "/")]
    ].

command(OsPid) ->
    case file:read_file(lists:concat(["/proc/", OsPid, "/comm"])) of
        {ok, Name} -> string:trim(Name);
        {error, _} -> <<>>
    end.

reaper(Fleet) ->
    #{home := Home} = sderl_fleet:connection_info(Fleet),
    [OsPid] = [
        list_to_integer(P)
     || File <- filelib:wildcard("/proc/[0-9]*/cmdline"),
        {ok, Data} <- [file:read_file(File)],
        Args <- [binary:split(Data, ~"\0", [global])],
        [~"/bin/sh", ~"-c", _, ~"sderl_fleet_reaper", Dir | _] <- [Args],
        Dir =:= list_to_binary(Home),
        [_, P, _] <- [string:lexemes(File, "/")]
    ],
    OsPid.

signal(Name, OsPid) ->
    0 = shell("kill -" ++ Name ++ " " ++ integer_to_list(OsPid)).

shell(Command) ->
    Options = [{args, ["-c", Command]}, exit_status, stderr_to_stdout],
    Port = open_port({spawn_executable, sh()}, Options),
    receive
        {Port, {exit_status, Status}} -> Status
    end.

%% Another controlling machine, that runs one of these functions.
controller(Module, Function) ->
    Paths = [filename:dirname(code:which(M)) || M <- [Module, sderl_fleet]],
    erl(["-pa" | Paths] ++ ["-eval", lists:concat([Module, ":", Function, "(), halt(0)."])], []).

erl(Args, Env) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    open_port({spawn_executable, Erl}, [
        {args, ["-noshell" | Args]}, {env, Env}, exit_status, binary, stderr_to_stdout
    ]).

output(Port) -> output(Port, <<>>).

output(Port, Said) ->
    receive
        {Port, {data, Data}} -> output(Port, <<Said/binary, Data/binary>>);
        {Port, {exit_status, _}} -> Said
    end.

%% For init_per_suite/1 and init_per_testcase/2.
need_namespaces(Config) ->
    case sderl_fleet_netns:start(1) of
        {ok, Net} ->
            ok = sderl_fleet_netns:stop(Net),
            Config;
        {error, {no_namespaces, Why}} ->
            {skip, unicode:characters_to_list(["no network namespaces here: ", Why])}
    end.

%% A port that is free on all these addresses, and below those that the system gives to connections:
%% of these there are many where tests run side by side, and one could take the port before it is
%% listened on.
free_port(_, 0) -> none;
free_port(Addresses, Tries) ->
    Port = 10_000 + rand:uniform(20_000),
    Tried = [gen_tcp:listen(Port, [{ip, Address}]) || Address <- Addresses],
    _ = [gen_tcp:close(Socket) || {ok, Socket} <- Tried],
    case [Why || {error, Why} <- Tried] of
        [] -> Port;
        [eaddrinuse | _] -> free_port(Addresses, Tries - 1);
        _ -> none
    end.
