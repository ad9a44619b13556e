%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_schedulers).
-moduledoc """
What the schedulers do while a program runs: a node records itself with `m:sderl_prof`, and a
process of the highest priority looks at the run queues meanwhile. Recording makes the program
slower, so its time is not used; only what its schedulers do is.
""".

-export([run/2]).
-export([recorded/3]).

-include_lib("sderl_prof/include/sderl_prof_event.hrl").

-type params() :: #{program := atom(), size := sderl_bench_vm_program:size(),
                    cores := pos_integer(), schedulers := pos_integer(), atom() => term()}.

%% Parts of the run, of equal length.
-define(PARTS, 50).
%% A pause before the run, so that schedulers are asleep and no longer look for work; and one after.
-define(QUIET_MS, 200).
-define(LOOK_MS, 1).
-define(SECONDS, 300).
-define(BYTES, (1 bsl 30)).

-doc """
One run of a program in a fresh node with so many schedulers. Metrics: `seconds`, with recording;
`lost`: the area above the curve of awake schedulers, as a share of all; `wakes_pct`: when each
scheduler was awake first, in percent of the run, in this order; `parts`: in each part of the run
the mean of the schedulers awake, of processes `running` and `runnable`, and of those in the run
queues, with the longest of one scheduler. A reason is a term for `sderl_papers_reason:text/1`.
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(#{program := Program, size := Size, cores := Cores, schedulers := N}, Label) ->
    sderl_reproduce_node:with_folder(fun(Folder) ->
        Dir = filename:join(Folder, "recording"),
        maybe
            {ok, Module} ?= found(Program),
            {ok, Seen} ?= sderl_reproduce_node:call(
                sderl_reproduce_node:schedulers(N), Label, ?MODULE, recorded,
                [Dir, Module, Module:settings(Size, Cores)]
            ),
            analysed(Dir, N, Seen)
        end
    end).

found(Program) ->
    case sderl_bench_vm_program:find(atom_to_list(Program)) of
        {ok, Module} -> {ok, Module};
        {error, Text} -> {error, {said, Text}}
    end.

%% ---------------------------------------------------------------- on the node

-doc """
Records this node while the program runs, after a run that is not recorded. Gives when it began and
ended, and the lengths of the run queues in between.
""".
-spec recorded(file:filename(), module(), sderl_bench_vm_program:settings()) ->
    {integer(), integer(), [{integer(), [non_neg_integer()]}]} | {error, term()}.
recorded(Dir, Module, Settings) ->
    Job = {program, Module, Settings},
    maybe
        {ok, _} ?= program(Job),
        {ok, Recording} ?= said(sderl_prof:record(node(), #{
            dir => Dir, what => [schedulers, migration], seconds => ?SECONDS, bytes => ?BYTES
        })),
        Looker = spawn_opt(fun() -> look([]) end, [link, {priority, max}]),
        receive after ?QUIET_MS -> ok end,
        Began = erlang:monotonic_time(nanosecond),
        Outcome = program(Job),
        Ended = erlang:monotonic_time(nanosecond),
        Looker ! {stop, self()},
        Looked = receive {Looker, Queues} -> Queues end,
        %% Events of the system profiler take a while to come.
        receive after ?QUIET_MS -> ok end,
        Stopped = said(sderl_prof:stop(Recording)),
        {ok, _} ?= Outcome,
        {ok, #{ended := stopped}} ?= Stopped,
        {Began, Ended, [Look || {T, _} = Look <- Looked, T >= Began, T =< Ended]}
    else
        {ok, #{ended := How}} ->
            {error, {said, io_lib:format("the recording ended before the program: ~0tp", [How])}};
        Error -> Error
    end.

program(Job) ->
    case sderl_bench_vm_loop:run(Job, 1) of
        {ok, Run} -> {ok, Run};
        {error, Text} -> {error, {said, ["the program crashed: ", Text]}}
    end.

said({ok, Value}) -> {ok, Value};
said({error, Reason}) -> {error, {said, sderl_prof:format_error(Reason)}}.

%% This process is in a queue itself, or runs, when it looks.
look(Seen) ->
    receive
        {stop, From} -> From ! {self(), lists:reverse(Seen)}
    after ?LOOK_MS ->
        Lengths = statistics(run_queue_lengths),
        look([{erlang:monotonic_time(nanosecond), Lengths} | Seen])
    end.

%% ---------------------------------------------------------------- the recording

analysed(Dir, N, {Began, Ended, Looked}) ->
    maybe
        {ok, Folder} ?= said(sderl_prof:open(Dir, #{})),
        {ok, Book} ?= sderl_prof_book:open(Folder),
        Acc = folded(Book, Began, Ended),
        ok = sderl_prof_book:close(Book),
        {ok, metrics(Acc, N, Began, Ended, Looked)}
    else
        {error, {no_book, File}} -> {error, {said, ["there is no recording in ", File]}};
        Error -> Error
    end.

-record(acc, {
    activity :: sderl_prof_activity:activity(),
    schedulers :: sderl_prof_schedulers:schedulers(),
    %% When each had its first event in the run.
    wakes = #{} :: #{pos_integer() => integer()}
}).

folded(Book, Began, Ended) ->
    Mode = sderl_prof_activity:mode(map_get(kinds, sderl_prof_book:meta(Book))),
    Acc = #acc{
        activity = sderl_prof_activity:new(Mode, fun sink/7,
                                           sderl_prof_concurrency:new(Began, Ended, ?PARTS)),
        schedulers = sderl_prof_schedulers:new(Began, Ended, ?PARTS)
    },
    sderl_prof_book:fold(Book, #{to => Ended}, fun(T, K, S, P, A, B, #acc{} = Before) ->
        Before#acc{
            activity = sderl_prof_activity:step(T, K, S, P, A, B, Before#acc.activity),
            schedulers = sderl_prof_schedulers:step(T, sign(K, S), S, A, Before#acc.schedulers),
            wakes = case T >= Began andalso S > 0 of
                true -> maps:merge(#{S => T}, Before#acc.wakes);
                false -> Before#acc.wakes
            end
        }
    end, Acc).

%% A scheduler that does anything is awake. There need not be an event that says so: a scheduler
%% that never slept has none, and on a busy machine those of the system profiler come late or are
%% missing at the end.
sign(Kind, S)
  when S > 0, Kind =/= ?SCHEDULER_ACTIVE, Kind =/= ?SCHEDULER_INACTIVE -> ?SCHEDULER_ACTIVE;
sign(Kind, _) -> Kind.

sink(What, _, From, To, _, _, Concurrency) when What =:= running; What =:= runnable ->
    sderl_prof_concurrency:add(What, From, To, Concurrency);
sink(_, _, _, _, _, _, Concurrency) ->
    Concurrency.

metrics(#acc{activity = Activity, schedulers = Schedulers, wakes = Wakes}, N, Began, Ended,
        Looked) ->
    {_, Concurrency} = sderl_prof_activity:finish(Ended, Activity),
    #{points := Points} = sderl_prof_schedulers:result(Ended, Schedulers),
    Awake = [min(N, Of) || #{awake := Of} <- Points],
    Length = max(1, Ended - Began),
    #{
        seconds => Length / 1.0e9,
        schedulers => N,
        lost => 1 - lists:sum(Awake) / length(Awake) / N,
        wakes_pct => lists:sort([100 * (T - Began) / Length || T <- maps:values(Wakes)]),
        parts => [
            (queues(I, Length, Began, Looked))#{
                pct => 100 * (I + 0.5) / ?PARTS, awake => A,
                running => map_get(running, C), runnable => map_get(runnable, C)
            }
         || {I, A, C} <- lists:zip3(lists:seq(0, ?PARTS - 1), Awake,
                                    sderl_prof_concurrency:result(Concurrency))
        ]
    }.

%% A short part may have no look at the queues.
queues(I, Length, Began, Looked) ->
    case [Lengths || {T, Lengths} <- Looked, (T - Began) * ?PARTS div Length =:= I] of
        [] -> #{queued => null, longest => null};
        Some -> #{queued => lists:sum([lists:sum(L) || L <- Some]) / length(Some),
                  longest => lists:max([lists:max(L) || L <- Some])}
    end.
