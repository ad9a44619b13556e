%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_programs).
-moduledoc "Programs whose processes and messages are known, and what runs them on a node.".

-export([profile/2, counted/3, run/1, churn/1, session/1, export/2, hot_table/2, spawner/0]).
-export([stage/1, worker/2, server/2, client/3, fib/1, slow/1, keeper/3, mover/2, pinned/3,
         inserter/2]).

-doc "The report of a program, recorded on this node.".
-spec profile(tuple(), map()) -> {term(), sderl_prof_report:report()} | {error, term()}.
profile(Program, Options) ->
    maybe
        {ok, Result, Report} ?= sderl_prof:profile(fun() -> run(Program) end, Options),
        {Result, Report}
    end.

-doc """
The report of a program, and what the virtual machine itself counted meanwhile: the nanoseconds in
which schedulers were active.
""".
-spec counted(tuple(), file:filename(), map()) -> {sderl_prof_report:report(), Active :: float()}.
counted(Program, Dir, Options) ->
    {ok, Plan} = sderl_prof_options:plan(Options#{seconds => 600}),
    _ = erlang:system_flag(scheduler_wall_time, true),
    {ok, Recorder} = sderl_prof_recorder:start(Plan, Dir, self()),
    {At, Times} = counters(),
    _ = run(Program),
    {Then, TimesThen} = counters(),
    #{ended := stopped} = sderl_prof_recorder:stop(Recorder),
    {ok, Report} = sderl_prof:report(Dir, #{}),
    %% Their unit is the virtual machine's own, so they count as shares.
    Shares = [(ActiveThen - Active) / (TotalThen - Total)
              || {{Id, Active, Total}, {Id, ActiveThen, TotalThen}} <- lists:zip(Times, TimesThen)],
    {Report, lists:sum(Shares) * (Then - At)}.

counters() ->
    {erlang:monotonic_time(nanosecond), lists:sort(erlang:statistics(scheduler_wall_time))}.

-doc """
- `{pipeline, K, M}`: M messages through K stages
- `{farm, W}`, `{farm, W, Work}`: W workers compute alike (`fib(Work)`), and tell the result
- `{bottleneck, C, M, Work}`: C clients ask one server M times each, which computes `fib(Work)` for
  an answer
- `{mailbox, N}`: N messages come to `the_slow_one`, which takes them over when all are there
- `{keeper, Size, N}`: `the_keeper` has a list of this size, and collects its garbage N times
- `{mover, N}`: `the_mover` goes to another scheduler N times
- `{pinned, N, Work}`: N processes compute `fib(Work)` on one scheduler, when the others have had
  something to do and have nothing any more
- `{table, N}`: `the_inserter` inserts N times into a table
- `{both, A, B}`: one program behind the other
""".
-spec run(tuple()) -> term().
run({pipeline, K, M}) ->
    First = lists:foldl(fun(_, Next) -> spawn(?MODULE, stage, [Next]) end, self(),
                        lists:seq(1, K)),
    [First ! {item, N} || N <- lists:seq(1, M)],
    First ! stop,
    Sum = lists:sum([receive {item, N} -> N end || _ <- lists:seq(1, M)]),
    receive stop -> Sum end;
run({farm, W}) -> run({farm, W, 18});
run({farm, W, Work}) ->
    Workers = [spawn_monitor(?MODULE, worker, [self(), Work]) || _ <- lists:seq(1, W)],
    [receive {'DOWN', Ref, _, _, _} -> ok end || {_, Ref} <- Workers],
    [receive {result, N} -> N end || _ <- Workers];
run({bottleneck, C, M, Work}) ->
    Server = spawn(?MODULE, server, [0, Work]),
    true = register(the_bottleneck, Server),
    Clients = [spawn_monitor(?MODULE, client, [self(), Server, M]) || _ <- lists:seq(1, C)],
    [receive {'DOWN', Ref, _, _, _} -> ok end || {_, Ref} <- Clients],
    Server ! {stop, self()},
    receive {served, N} -> N end;
run({mailbox, N}) ->
    {Slow, Ref} = spawn_monitor(?MODULE, slow, [N]),
    true = register(the_slow_one, Slow),
    true = erlang:suspend_process(Slow),
    _ = [Slow ! {item, M} || M <- lists:seq(1, N)],
    true = erlang:resume_process(Slow),
    ended([{Slow, Ref}]);
run({keeper, Size, N}) ->
    Keeper = {Pid, _} = spawn_monitor(?MODULE, keeper, [self(), Size, N]),
    true = register(the_keeper, Pid),
    Pid ! go,
    ended([Keeper]);
run({mover, N}) ->
    Mover = {Pid, _} = spawn_monitor(?MODULE, mover, [N, erlang:system_info(schedulers_online)]),
    true = register(the_mover, Pid),
    ended([Mover]);
run({pinned, N, Work}) ->
    All = erlang:system_info(schedulers_online),
    ended([spawn_monitor(?MODULE, pinned, [S, self(), 1]) || S <- lists:seq(1, All)]),
    ended([spawn_monitor(?MODULE, pinned, [1, self(), Work]) || _ <- lists:seq(1, N)]);
run({table, N}) ->
    Inserter = {Pid, _} = spawn_monitor(?MODULE, inserter, [none, N]),
    true = register(the_inserter, Pid),
    Pid ! go,
    ended([Inserter]);
run({both, A, B}) ->
    {run(A), run(B)};
run({calls, N}) ->
    fib(N).

ended(Processes) -> lists:foreach(fun({_, Ref}) -> receive {'DOWN', Ref, _, _, _} -> ok end end,
                                  Processes).

slow(0) -> ok;
slow(N) -> receive {item, _} -> slow(N - 1) end.

keeper(Parent, Size, N) ->
    receive go -> ok end,
    Kept = lists:seq(1, Size),
    _ = [true = erlang:garbage_collect() || _ <- lists:seq(1, N)],
    Parent ! {kept, length(Kept)}.

%% A process that is bound to another scheduler than that on which it runs goes there at once.
mover(0, _) -> ok;
mover(N, Schedulers) ->
    _ = process_flag(scheduler, 1 + N rem Schedulers),
    mover(N - 1, Schedulers).

pinned(Scheduler, Parent, Work) ->
    _ = process_flag(scheduler, Scheduler),
    Parent ! {pinned, fib(Work)}.

inserter(none, N) ->
    receive go -> inserter(ets:new(?MODULE, []), N) end;
inserter(_, 0) -> ok;
inserter(Table, N) ->
    true = ets:insert(Table, {N rem 100, N}),
    inserter(Table, N - 1).

stage(Next) ->
    receive
        {item, N} ->
            Next ! {item, N + 1},
            stage(Next);
        stop -> Next ! stop
    end.

worker(Parent, N) -> Parent ! {result, fib(N)}.

server(N, Work) ->
    receive
        {ask, From} ->
            _ = fib(Work),
            From ! answer,
            server(N + 1, Work);
        {stop, From} -> From ! {served, N}
    end.

client(_, _, 0) -> ok;
client(Parent, Server, M) ->
    Server ! {ask, self()},
    receive answer -> client(Parent, Server, M - 1) end.

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

-doc "Sends messages without end, from so many pairs.".
-spec churn(pos_integer()) -> ok.
churn(Pairs) ->
    _ = [spawn(fun() -> ping(spawn_link(fun pong/0)) end) || _ <- lists:seq(1, Pairs)],
    ok.

ping(Other) ->
    Other ! {ping, self(), lists:seq(1, 20)},
    receive pong -> ping(Other) end.

pong() -> receive {ping, From, _} -> From ! pong, pong() end.

-doc "A process begins others, one after the other, until the node ends.".
-spec spawner() -> ok.
spawner() ->
    _ = spawn(fun Again() ->
        {_, Ref} = spawn_monitor(fun() -> ok end),
        receive {'DOWN', Ref, process, _, _} -> Again() end
    end),
    ok.

-doc "So many processes write a table of this name, until the node ends.".
-spec hot_table(atom(), pos_integer()) -> ok.
hot_table(Name, Writers) ->
    Self = self(),
    Owner = spawn(fun() ->
        Name = ets:new(Name, [public, named_table]),
        _ = [spawn_link(fun() -> write(Name, 0) end) || _ <- lists:seq(1, Writers)],
        Self ! {made, self()},
        receive stop -> ok end
    end),
    receive {made, Owner} -> ok end.

write(Name, N) ->
    true = ets:insert(Name, {N rem 100, N}),
    write(Name, N + 1).

-doc "Keeps a trace session of this name open.".
-spec session(atom()) -> ok.
session(Name) ->
    Self = self(),
    Pid = spawn(fun() ->
        Session = trace:session_create(Name, self(), []),
        Self ! {self(), created},
        receive stop -> trace:session_destroy(Session) end
    end),
    receive {Pid, created} -> ok end.

-doc "A recording in all formats.".
-spec export(file:filename(), [sderl_prof_export:format()]) -> [binary()].
export(Dir, Formats) ->
    {ok, Book} = sderl_prof:open(Dir, #{}),
    [begin
         Out = filename:join(Dir, "out"),
         ok = sderl_prof_export:write(Format, Book, Out),
         {ok, Bin} = file:read_file(Out),
         Bin
     end || Format <- Formats].
