%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_work_tests).

%% Changes that go on when the client that asked for them has gone.

-include_lib("eunit/include/eunit.hrl").

-define(MS, 60_000).

work_test_() ->
    {foreach, fun() ->
        {ok, Server} = sderl_web_work:start_link(),
        true = unlink(Server),
        Server
    end, fun(Server) -> is_process_alive(Server) andalso gen_server:stop(Server) end, [
        {"what is done is answered", fun answered/0},
        {"it goes on when the caller has gone", fun goes_on/0},
        {"it goes on when the caller has waited for long enough", fun late/0},
        {"what ends is told, and why", fun lost/0},
        {"what takes too long is killed", fun too_long/0},
        {"there is a bound", fun bounded/0},
        fun(Server) -> {"what a stop ends is told", fun() -> stopped(Server) end} end
    ]}.

run(Work) -> run(Work, ?MS).

run(Work, Ms) ->
    Me = self(),
    sderl_web_work:run(Work, fun(Why) -> Me ! {lost, Why} end, Ms).

%% Says that it has begun, and ends when it is told to.
waits(Me) ->
    fun() ->
        Me ! {begun, self()},
        receive go -> Me ! done end
    end.

next() ->
    receive Message -> Message after ?MS -> nothing end.

answered() ->
    ?assertEqual({ok, 7}, run(fun() -> 7 end)),
    ?assertNotEqual({ok, self()}, run(fun() -> self() end)).

goes_on() ->
    Me = self(),
    {Caller, Ref} = spawn_monitor(fun() -> run(waits(Me)) end),
    {begun, Worker} = next(),
    true = exit(Caller, kill),
    {'DOWN', Ref, process, Caller, killed} = next(),
    Worker ! go,
    ?assertEqual(done, next()).

late() ->
    ?assertEqual(late, run(waits(self()), 0)),
    {begun, Worker} = next(),
    Worker ! go,
    ?assertEqual(done, next()).

lost() ->
    ?assertEqual({lost, killed}, run(fun() -> exit(self(), kill) end)),
    ?assertEqual({lost, killed}, next()),
    ?assertEqual({lost, why}, run(fun() -> exit(why) end)),
    ?assertEqual({lost, why}, next()).

too_long() ->
    Me = self(),
    _ = spawn_link(fun() -> Me ! {told, run(waits(Me))} end),
    {begun, Worker} = next(),
    %% The message that its timer sends.
    sderl_web_work ! {late, Worker},
    ?assertEqual({told, {lost, killed}}, next()).

bounded() ->
    Me = self(),
    Callers = [spawn_link(fun() -> Me ! {told, run(waits(Me))} end) || _ <- lists:seq(1, 100)],
    Workers = [receive {begun, Worker} -> Worker after ?MS -> none end || _ <- Callers],
    ?assertEqual(full, run(fun() -> 7 end)),
    [Worker ! go || Worker <- Workers],
    [receive {told, Told} -> ?assertEqual({ok, done}, Told) end || _ <- Callers],
    [receive done -> ok end || _ <- Callers],
    Free = fun Free() -> case run(fun() -> 7 end) of full -> Free(); Answer -> Answer end end,
    ?assertEqual({ok, 7}, Free()).

stopped(Server) ->
    Me = self(),
    Caller = spawn(fun() ->
        sderl_web_work:run(waits(Me), fun(Why) -> Me ! {lost, Why} end, ?MS)
    end),
    {begun, Worker} = next(),
    ok = gen_server:stop(Server),
    ?assertEqual({lost, shutdown}, next()),
    [begin
         Ref = monitor(process, Pid),
         ?assertMatch({'DOWN', Ref, process, Pid, _}, next())
     end || Pid <- [Worker, Caller]].
