%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profiling_cost).
-moduledoc """
What recording costs a program: the same work without it and with it, alternately, so that what
disturbs the machine disturbs both.

| program | its work |
|---|---|
| `exchange` | pairs of processes that ask and answer, and do nothing else: the worst case |
| `compute` | processes that sort |
| `registry` | the clients of `bin/sderl bench registry` on two nodes with an s_group, both recorded |
| any other | one of `bin/sderl bench vm`, repeated until it takes long enough to be timed |
""".

-export([find/2, ratios/3, profiles/1]).
-export([work/2]).
-export_type([workload/0, profile/0]).

-define(MIB, 1_048_576).
-define(PAIRS, 20).
-define(LIST, 200).
-define(REGISTRY_NODES, 2).

-type workload() :: registry | {job, sderl_bench_vm_program:job(), Repetitions :: pos_integer()}.
-type profile() :: none | sampling | concurrency | messages.
-type options() :: #{pairs := pos_integer(), size := pos_integer(), run_ms := pos_integer(),
                     dir := file:filename_all(), atom() => term()}.

-doc "The program of a name; one of `bench vm` is run to find out how long it takes.".
-spec find(string(), options()) -> {ok, workload()} | {error, unicode:chardata()}.
find("registry", _) -> {ok, registry};
find("exchange", #{size := Size}) -> {ok, {job, {call, ?MODULE, work, [exchange, Size]}, 1}};
find("compute", #{size := Size}) -> {ok, {job, {call, ?MODULE, work, [compute, Size]}, 1}};
find(Name, #{run_ms := Ms}) ->
    maybe
        {ok, Module} ?= sderl_bench_vm_program:find(Name),
        Job = {program, Module, Module:settings(short, erlang:system_info(schedulers_online))},
        {ok, Count, _} ?= sderl_bench_vm_loop:repetitions(Job, 1_000_000 * Ms),
        {ok, {job, Job, Count}}
    end.

-doc "What is recorded; `none`, twice without recording, shows how much two equal runs differ.".
-spec profiles(workload()) -> [profile()].
profiles(registry) -> [none, concurrency, messages];
profiles(_) -> [none, sampling, concurrency, messages].

-doc "The time with recording divided by that without, of each pair of runs.".
-spec ratios(workload(), profile(), options()) -> {ok, [float()]} | {error, term()}.
ratios(Workload, Profile, #{pairs := Pairs} = Options) ->
    pairs(Workload, Profile, Options, Pairs, []).

pairs(_, _, _, 0, Ratios) ->
    {ok, Ratios};
pairs(Workload, Profile, Options, N, Ratios) ->
    Plain = fun() -> recorded(none, Workload, Options) end,
    With = fun() -> recorded(Profile, Workload, Options) end,
    %% The two take turns in being first, too.
    [First, Second] = case N rem 2 of 0 -> [Plain, With]; 1 -> [With, Plain] end,
    maybe
        {ok, A} ?= First(),
        {ok, B} ?= Second(),
        {Without, Recorded} = case N rem 2 of 0 -> {A, B}; 1 -> {B, A} end,
        pairs(Workload, Profile, Options, N - 1, [Recorded / Without | Ratios])
    end.

recorded(Profile, registry, Options) ->
    registry(Profile, Options);
recorded(none, {job, Job, Count}, _) ->
    timed(Job, Count);
recorded(sampling, {job, Job, Count}, _) ->
    {ok, Sampling} = sderl_prof_sampling:begin_(node(), #{seconds => 3600}),
    Timed = timed(Job, Count),
    ok = sderl_prof_sampling:stop(Sampling),
    {ok, _} = sderl_prof_sampling:await(Sampling),
    Timed;
recorded(Profile, {job, Job, Count}, #{dir := Dir}) ->
    Folder = filename:join(Dir, "recording"),
    maybe
        {ok, Recording} ?= said(sderl_prof:record(node(), #{what => Profile, dir => Folder,
                                                      seconds => 3600, keep => last,
                                                      bytes => 256 * ?MIB})),
        Timed = timed(Job, Count),
        {ok, _} ?= said(sderl_prof:stop(Recording)),
        ok ?= file:del_dir_r(Folder),
        Timed
    end.

said({error, Why}) -> {error, {said, sderl_prof:format_error(Why)}};
said(Fine) -> Fine.

timed(Job, Count) ->
    case sderl_bench_vm_loop:run(Job, Count) of
        {ok, #{ns := Ns}} -> {ok, max(1.0, Ns)};
        {error, Text} -> {error, {said, Text}}
    end.

%% The time of a pair of operations, of all clients together.
registry(Profile, #{run_ms := Ms, dir := Dir}) ->
    Folder = filename:join(Dir, "registry"),
    Params = #{nodes => ?REGISTRY_NODES, group_size => ?REGISTRY_NODES, clients => 4, names => 100,
               seconds => (Ms + 999) div 1000},
    With = case Profile of
        none -> Params;
        _ -> Params#{prof => Folder, prof_what => Profile}
    end,
    maybe
        {ok, #{pairs_per_s := Rate}} ?=
            sderl_bench_registry:run(sderl_bench_impl_s_group, With, "registry"),
        true ?= Rate > 0 orelse {error, {said, ~"no client completed a pair of operations"}},
        _ = file:del_dir_r(Folder),
        {ok, 1.0e9 / Rate}
    end.

%% ---------------------------------------------------------------- programs of its own

-doc "The work of a program of this module.".
-spec work(exchange | compute, Size :: pos_integer()) -> ok.
work(exchange, Size) ->
    together(?PAIRS, fun() ->
        Answers = spawn_link(fun answer/0),
        ask(Answers, Size),
        true = unlink(Answers),
        exit(Answers, kill)
    end);
work(compute, Size) ->
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
