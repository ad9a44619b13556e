%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_caller).
-moduledoc "The callers of `bin/sderl bench route`; they run on a measured node.".

-export([run/1, echo/1, keep_calling/2, stop/1, ask_all/3]).
-export_type([how/0, load/0, kept/0]).

-import(sderl_clock, [now_ns/0]).

-doc "How a caller asks.".
-type how() :: {direct, pid()} | {route, {Group :: term(), Name :: atom()}} | {erpc, node()}.

-doc """
`callers` ask again and again, and are counted after `warm_ms`, for `ms`; the answer is as long as
the request.
""".
-type load() :: #{
    how := how(),
    callers := pos_integer(),
    bytes := pos_integer(),
    warm_ms := non_neg_integer(),
    ms := pos_integer()
}.

-doc """
The results of stopped callers: answered calls, by caller and number; failed calls; the longest time
between two answers to one caller.
""".
-type kept() :: #{
    answered := [{Caller :: pos_integer(), Call :: pos_integer()}],
    failed := [{{pos_integer(), pos_integer()}, term()}],
    pause_ms := number()
}.

-define(CALL_MS, 20_000).

-doc "Calls; `all` counts those of the warm-up too.".
-spec run(load()) ->
    #{calls := non_neg_integer(), all := non_neg_integer(), ns := sderl_bench_histogram:histogram(),
      failed := [term()]}.
run(#{how := How, callers := Callers, bytes := Bytes, warm_ms := WarmMs, ms := Ms}) ->
    Recorder = sderl_bench_histogram:recorder(),
    Message = binary:copy(<<"c">>, Bytes),
    From = now_ns() + 1_000_000 * WarmMs,
    Until = From + 1_000_000 * Ms,
    Results = sderl_fleet_task:at_once([{C, C} || C <- lists:seq(1, Callers)], fun(_, _) ->
        loop(How, Message, Recorder, From, Until, 0, 0, [])
    end),
    #{
        calls => lists:sum([N || {_, {N, _, _}} <- Results]),
        all => lists:sum([A || {_, {_, A, _}} <- Results]),
        ns => sderl_bench_histogram:read(Recorder),
        failed => lists:append([F || {_, {_, _, F}} <- Results])
    }.

%% A latency counts when the call began in the measured time, a call when it ended then.
loop(How, Message, Recorder, From, Until, N, All, Failed) ->
    T0 = now_ns(),
    Outcome = sderl_fleet_task:attempt(fun() -> call(How, Message) end),
    T1 = now_ns(),
    _ = T0 >= From andalso Outcome =:= {ok, Message}
        andalso sderl_bench_histogram:record(Recorder, T1 - T0),
    {N1, Failed1} = case Outcome of
        {ok, Message} when T1 >= From, T1 < Until -> {N + 1, Failed};
        {ok, Message} -> {N, Failed};
        Other -> {N, lists:sublist([Other | Failed], 100)}
    end,
    case T1 < Until andalso length(Failed1) < 100 of
        true -> loop(How, Message, Recorder, From, Until, N1, All + 1, Failed1);
        false -> {N1, All + 1, Failed1}
    end.

call({direct, Pid}, Message) -> {ok, gen_server:call(Pid, {echo, Message}, ?CALL_MS)};
call({route, Name}, Message) -> sderl_route:call(Name, {echo, Message}, ?CALL_MS);
call({erpc, Node}, Message) -> {ok, erpc:call(Node, ?MODULE, echo, [Message], ?CALL_MS)}.

-doc "What `erpc` calls.".
-spec echo(Term) -> Term.
echo(Term) -> Term.

-doc """
Starts callers that do something with a number of its own, one after the other, until `stop/1`.
""".
-spec keep_calling({Group :: term(), Name :: atom()}, Callers :: pos_integer()) -> [pid()].
keep_calling(Name, Callers) ->
    [spawn(fun() -> keep(Name, C, 1, now_ns(), 0, []) end) || C <- lists:seq(1, Callers)].

keep(Name, C, K, Last, Pause, Failed) ->
    receive
        {stop, From, Ref} -> From ! {Ref, {C, K - 1, Pause, Failed}}
    after 0 ->
        Outcome =
            sderl_fleet_task:attempt(fun() -> sderl_route:call(Name, {do, {C, K}}, ?CALL_MS) end),
        Now = now_ns(),
        Failed1 = case Outcome of
            {ok, {done, {C, K}}} -> Failed;
            Other -> [{{C, K}, Other} | Failed]
        end,
        keep(Name, C, K + 1, Now, max(Pause, Now - Last), Failed1)
    end.

-doc "Stops them and tells what they saw.".
-spec stop([pid()]) -> kept().
stop(Pids) ->
    Asked = [begin Ref = monitor(process, Pid), Pid ! {stop, self(), Ref}, Ref end || Pid <- Pids],
    Seen = [receive
                {Ref, Result} -> true = demonitor(Ref, [flush]), Result;
                {'DOWN', Ref, process, _, Why} -> exit({caller_died, Why})
            end || Ref <- Asked],
    Failed = lists:append([F || {_, _, _, F} <- Seen]),
    Without = maps:from_list(Failed),
    #{
        answered => [{C, K}
                     || {C, N, _, _} <- Seen, K <- lists:seq(1, N),
                        not is_map_key({C, K}, Without)],
        failed => Failed,
        pause_ms => lists:max([P || {_, _, P, _} <- Seen]) / 1.0e6
    }.

-doc "Asks a server in each of the groups once; the groups where it did not answer.".
-spec ask_all([Group :: term()], Name :: atom(), timeout()) -> [{Group :: term(), term()}].
ask_all(Groups, Name, Timeout) ->
    [{G, Other}
     || G <- Groups, Other <- [sderl_route:call({G, Name}, {echo, G}, Timeout)], Other =/= {ok, G}].
