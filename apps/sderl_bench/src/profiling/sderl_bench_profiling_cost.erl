%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profiling_cost).
-moduledoc """
What recording costs a program: the same work without it and with it, in turns, so that whatever
disturbs the machine disturbs both. The work is that of programs that wait for one another (pairs
that ask and answer), and of programs that compute (processes that sort).
""".

-export([ratios/3, workloads/0, profiles/0]).

-define(MIB, 1_048_576).
-define(PAIRS, 20).
-define(LIST, 200).

-doc "The programs.".
-spec workloads() -> [atom()].
workloads() -> [exchange, compute].

-doc "What is recorded; `none` twice without tells how much two runs of the same differ.".
-spec profiles() -> [atom()].
profiles() -> [none, concurrency, messages].

-doc "Of each of so many pairs of runs, the time with recording divided by that without.".
-spec ratios(Workload :: atom(), Profile :: atom(),
             #{pairs := pos_integer(), size := pos_integer(), dir := file:filename_all(),
               atom() => term()}) ->
    {ok, [float()]} | {error, term()}.
ratios(Workload, Profile, #{pairs := Pairs} = Options) ->
    pairs(Workload, Profile, Options, Pairs, []).

pairs(_, _, _, 0, Ratios) ->
    {ok, Ratios};
pairs(Workload, Profile, #{size := Size} = Options, N, Ratios) ->
    Plain = fun() -> {ok, timed(Workload, Size)} end,
    With = fun() -> recorded(Profile, Workload, Options) end,
    %% Who is first takes turns, too.
    [First, Second] = case N rem 2 of 0 -> [Plain, With]; 1 -> [With, Plain] end,
    maybe
        {ok, A} ?= First(),
        {ok, B} ?= Second(),
        {Without, Recorded} = case N rem 2 of 0 -> {A, B}; 1 -> {B, A} end,
        pairs(Workload, Profile, Options, N - 1, [Recorded / Without | Ratios])
    end.

recorded(none, Workload, #{size := Size}) ->
    {ok, timed(Workload, Size)};
recorded(Profile, Workload, #{size := Size, dir := Dir}) ->
    Folder = filename:join(Dir, "recording"),
    maybe
        {ok, Recording} ?= sderl_prof:record(node(), #{what => Profile, dir => Folder,
                                                      seconds => 3600, keep => last,
                                                      bytes => 256 * ?MIB}),
        Us = timed(Workload, Size),
        {ok, _} ?= sderl_prof:stop(Recording),
        ok ?= file:del_dir_r(Folder),
        {ok, Us}
    end.

timed(Workload, Size) ->
    {Us, ok} = timer:tc(fun() -> run(Workload, Size) end),
    max(1, Us).

run(exchange, Size) ->
    together(?PAIRS, fun() ->
        Answers = spawn_link(fun answer/0),
        ask(Answers, Size),
        true = unlink(Answers),
        exit(Answers, kill)
    end);
run(compute, Size) ->
    together(erlang:system_info(schedulers_online), fun() -> sort(Size, lists:seq(1, ?LIST)) end).

together(Count, Fun) ->
    Workers = [spawn_monitor(Fun) || _ <- lists:seq(1, Count)],
    lists:foreach(fun({_, Ref}) -> receive {'DOWN', Ref, _, _, _} -> ok end end, Workers).

answer() -> receive {ask, From} -> From ! answer, answer() end.

ask(_, 0) -> ok;
ask(Other, N) ->
    Other ! {ask, self()},
    receive answer -> ask(Other, N - 1) end.

sort(0, _) -> ok;
sort(N, List) ->
    sort(N - 1, lists:sort(fun(A, B) -> A * 7919 rem 211 =< B * 7919 rem 211 end, List)).
