%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_sampler).
-moduledoc """
Looks at the processes of this node, a bounded number of times a second, and counts what they do.
Traces nothing, so that it may run in production. Needs `m:sderl_prof_round`,
`m:sderl_prof_search`, `m:sderl_prof_looks` and no other module of this project, so that these can
be loaded into any node.

- **Fair**: most looks go round all processes, in an order that is new with each round.
- **Favours busy ones**: processes that had reductions since the look before are looked at more
  often, as many as there may be of them; with the first round over, half of all looks are at these.
- **Searches for busy ones** before the first look and every ten seconds, because a round of many
  processes takes long. It reads only the reductions of some 20,000 processes, twice, which takes a
  fraction of a look each. The next search goes on with the next ones.
- **A look stands for its part of the processes and of the time.** Looks at busy processes stand for
  all busy ones, the other looks for all others. So a process that is looked at more often counts no
  more for that.
- **A process that waits is not woken again.** Only the process itself can tell in which function it
  is, and is woken for that; its state and its reductions are read without it. So a process that
  waits, and has had no reductions since its last answer, is not asked again. A look that asks costs
  some ten times as much as another one, and counts as three of the looks allowed in a second; the
  next looks come later then.

It also reads the times of schedulers and, where nobody else has switched it on, microstate
accounting, at the begin and at the end. It ends in time, when it is told to, and with its owner;
however it ends, a guard switches microstate accounting off again.
""".

-export([start/2, stop/1]).
-export_type([plan/0, result/0, status/0]).

%% The time between two times at which it wakes, on average. On an idle node waking costs most.
-define(TICK_MS, 50).
%% Processes that are looked at more often; of more than so many, half as many stay, the busiest.
-define(MOST_BUSY, 128).
%% In the first round only one look of so many is at busy ones.
-define(FIRST_ROUND, 8).
%% Between the two readings of a search.
-define(AGAIN_NS, 500_000_000).
%% The search before the first look takes this part of the time at most.
-define(SEARCH_PART, 4).
%% A look that asks the process counts as so many.
-define(ASKING, 3).
%% Reductions that an answer costs a process; the answer itself does not count them yet.
-define(TOLD, 1).
%% A process with so many reductions when it is first seen may be busy.
-define(MANY_REDUCTIONS, 1_000_000).
-define(FADES, 16).
%% Processes whose last look is remembered.
-define(MOST_SEEN, 200_000).

-doc """
`remembered`: how many processes' last looks are remembered, at most. `mailboxes`: names of
processes whose mailboxes are read over time.
""".
-type plan() :: #{milliseconds := pos_integer(), rate := pos_integer(),
                  remembered => pos_integer(), mailboxes => [atom()]}.
-type status() :: running | runnable | waiting | garbage_collecting | suspended | exiting.
-doc """
`ns`: how long it looked; `all_ns`: the same with the search before; `own_ns`: how long it was at
work in that. What looks have found is by parts of `ns`. `schedulers`: which kind of thread each
number is; `threads` is microstate accounting in its own units, empty where somebody else has it.
""".
-type result() :: #{
    node := binary(), otp := binary(), began_wall := integer(), ns := pos_integer(),
    all_ns := pos_integer(), rate := pos_integer(),
    looks := non_neg_integer(), rounds := non_neg_integer(),
    own_ns := non_neg_integer(), processes := non_neg_integer(), schedulers_online := pos_integer(),
    found := sderl_prof_looks:result(),
    series := sderl_prof_series:result(),
    schedulers := #{normal | cpu | io => non_neg_integer()},
    threads := [{atom(), #{atom() => non_neg_integer()}}]
}.

-record(seen, {
    reductions :: non_neg_integer(),
    group :: term(),
    function :: term(),
    caller :: term(),
    %% Further reductions, which its answer cost it.
    told :: non_neg_integer()
}).
%% The result of a look at a process.
-record(look, {
    pid :: pid(),
    status :: status(),
    seen :: #seen{},
    %% Messages that wait for it.
    queue :: non_neg_integer(),
    %% Reductions since the look before; those of an unknown one are all its own.
    more :: non_neg_integer(),
    is_new :: boolean()
}).
-record(sampler, {
    owner :: pid(),
    monitor :: reference(),
    rate :: pos_integer(),
    remembered :: pos_integer(),
    start :: integer(),
    began :: integer(),
    until :: integer(),
    search :: sderl_prof_search:search(),
    round :: sderl_prof_round:round(),
    rounds = 0 :: non_neg_integer(),
    seen = #{} :: #{pid() => #seen{}},
    %% Reductions since the look before.
    busy = #{} :: #{pid() => pos_integer()},
    busy_round :: sderl_prof_round:round(),
    looks = 0 :: non_neg_integer(),
    %% Looks that were due so far, also those left out.
    came_due = 0 :: non_neg_integer(),
    %% Looks that were spent before they were due, because one that asks counts as several.
    owed = 0 :: non_neg_integer(),
    own_ns = 0 :: non_neg_integer(),
    %% The next looks at busy processes, and at others, stand for the time since then.
    since :: #{busy | others => integer()},
    %% None while busy ones are looked for.
    found :: sderl_prof_looks:looks() | none,
    mailboxes :: [atom()],
    series :: sderl_prof_series:series() | none
}).

-doc """
Begins; the owner gets `{sderl_prof_sampled, Sampler, Result}` at the end.
""".
-spec start(plan(), Owner :: pid()) -> {ok, pid()}.
start(Plan, Owner) ->
    {ok, spawn(fun() -> begin_(Plan, Owner) end)}.

-doc "Ends it before its time.".
-spec stop(pid()) -> ok.
stop(Sampler) ->
    Sampler ! stop,
    ok.

begin_(#{milliseconds := Ms, rate := Rate} = Plan, Owner) ->
    %% So that it looks in time, also where many processes wait for a scheduler.
    _ = process_flag(priority, high),
    _ = erlang:system_flag(scheduler_wall_time, true),
    Guard = sderl_prof_switch:take_accounting(),
    Start = now_ns(),
    Round = sderl_prof_round:new(processes()),
    Searched = searched(Start + 1_000_000 * Ms div ?SEARCH_PART, #sampler{
        owner = Owner, monitor = monitor(process, Owner), rate = Rate, start = Start, began = Start,
        remembered = maps:get(remembered, Plan, ?MOST_SEEN),
        until = Start + 1_000_000 * Ms, since = #{}, found = none, round = Round, rounds = 1,
        mailboxes = maps:get(mailboxes, Plan, []), series = none,
        busy_round = sderl_prof_round:new([]), own_ns = now_ns() - Start,
        search = sderl_prof_search:new(Start, min(?AGAIN_NS, 500_000 * Ms div ?SEARCH_PART),
                                       sderl_prof_round:again(Round))
    }),
    Before = {threads(Guard), erlang:system_time(nanosecond)},
    #{at := Now} = Snapshot = snapshot(),
    Left = max(1, Searched#sampler.until - Now),
    Sampler = loop(Searched#sampler{
        began = Now, since = #{busy => Now, others => Now},
        found = sderl_prof_looks:new(Left, Snapshot),
        series = sderl_prof_series:new(Now, Left, Searched#sampler.mailboxes)
    }),
    Result = result(Sampler, Before, Guard),
    ok = sderl_prof_switch:off(Guard),
    Owner ! {sderl_prof_sampled, self(), Result}.

now_ns() -> erlang:monotonic_time(nanosecond).

snapshot() ->
    #{at => now_ns(), reductions => element(1, erlang:statistics(reductions)),
      schedulers => erlang:statistics(scheduler_wall_time_all)}.

%% ---------------------------------------------------------------- looking

loop(#sampler{until = Until, monitor = Monitor} = S) ->
    Left = (Until - now_ns()) div 1_000_000,
    %% At random times: regular ones could be in step with the processes.
    Wait = min(max(0, Left), rand:uniform(2 * ?TICK_MS - 1)),
    receive
        stop -> S;
        {'DOWN', Monitor, process, _, _} -> S
    after Wait ->
        Now = now_ns(),
        case Now >= Until of
            true -> S;
            false ->
                {Due, S1} = due(Now, parted(Now, S)),
                {_, S2} = search(Now, read(Now, S1)),
                Looked = looks(Due, Now, S2),
                loop(Looked#sampler{own_ns = S#sampler.own_ns + now_ns() - Now})
        end
    end.

parted(Now, #sampler{found = Found} = S) ->
    case sderl_prof_looks:is_due(Now, Found) of
        true -> S#sampler{found = sderl_prof_looks:next_part(snapshot(), Found)};
        false -> S
    end.

%% Whenever it wakes, not only when a look is due.
read(Now, #sampler{mailboxes = Names, series = Series} = S) ->
    Read = sderl_prof_series:add(sderl_prof_series:reading(Names), Series),
    S#sampler{series = case sderl_prof_series:is_due(Now, Read) of
        true -> sderl_prof_series:next(Now, sderl_prof_series:memory(), Read);
        false -> Read
    end}.

%% Of missed samples, at most those of a tenth of a second are made up for.
due(Now, #sampler{rate = Rate, began = Began, came_due = Before, owed = Owed} = S) ->
    All = (Now - Began) * Rate div 1_000_000_000,
    Due = max(0, min(All - Before, 1 + Rate div 10)),
    {max(0, Due - Owed), S#sampler{came_due = max(All, Before), owed = max(0, Owed - Due)}}.

looks(N, Now, #sampler{busy = Busy} = S0) ->
    ForBusy = case S0 of
        _ when map_size(Busy) =:= 0 -> 0;
        #sampler{rounds = Rounds} when Rounds =< 1 -> part(N, ?FIRST_ROUND);
        _ -> part(N, 2)
    end,
    Count = erlang:system_info(process_count),
    IsBusy = map_size(Busy),
    {BusyOnes, Left, S1} = look(busy, ForBusy, busy_round(S0)),
    {Others, Over, S2} = look(others, N - ForBusy + Left, others_round(S1)),
    Owing = S2#sampler{owed = S2#sampler.owed + max(0, -Over)},
    S3 = looked_at(BusyOnes, busy, IsBusy, Now, Owing),
    S4 = looked_at(Others, others, max(0, Count - 1 - IsBusy), Now, S3),
    %% As long as there are none, no look stands for their time.
    case S4 of
        #sampler{busy = Now1, since = Since} when map_size(Now1) =:= 0 orelse IsBusy =:= 0 ->
            S4#sampler{since = Since#{busy := Now}};
        _ -> S4
    end.

%% Rounded up or down by chance, so that at low rates, too, some looks are at busy ones.
part(N, Of) -> (N + rand:uniform(Of) - 1) div Of.

%% ---------------------------------------------------------------- looking for busy ones

search(Now, #sampler{search = Search, busy = Busy} = S) ->
    case sderl_prof_search:step(Now, Search) of
        {{found, Found}, Next} ->
            All = maps:remove(self(), fewer(maps:merge(Busy, Found))),
            {over, S#sampler{search = Next, busy = All}};
        {Stage, Next} -> {Stage, S#sampler{search = Next}}
    end.

%% Before the first look, so that busy processes do not wait for their turn among many; but only
%% for a part of the time.
searched(Until, #sampler{monitor = Monitor, search = Search} = S) ->
    Now = now_ns(),
    Left = max(0, Until - Now) div 1_000_000,
    receive
        stop ->
            self() ! stop,
            S;
        {'DOWN', Monitor, process, _, _} ->
            self() ! stop,
            S
    after min(Left, sderl_prof_search:wait_ms(Now, Search)) ->
        Awake = now_ns(),
        {Stage, S1} = search(Awake, S),
        S2 = S1#sampler{own_ns = S1#sampler.own_ns + now_ns() - Awake},
        case Stage of
            more when Awake < Until -> searched(Until, S2);
            _ -> S2
        end
    end.

%% ---------------------------------------------------------------- whom to look at

%% Looks end with a round until the next time it wakes, so that each process has one at most.
others_round(#sampler{round = Round} = S) ->
    case sderl_prof_round:is_over(Round) of
        false -> S;
        true ->
            Pids = processes(),
            %% Processes that have ended meanwhile are forgotten.
            S#sampler{round = sderl_prof_round:new(Pids), rounds = S#sampler.rounds + 1,
                      seen = maps:with(Pids, S#sampler.seen)}
    end.

busy_round(#sampler{busy_round = Round, busy = Busy} = S) ->
    case sderl_prof_round:is_over(Round) of
        false -> S;
        true -> S#sampler{busy_round = sderl_prof_round:new(maps:keys(Busy))}
    end.

next(busy, #sampler{busy_round = Round} = S) ->
    case sderl_prof_round:take(Round) of
        {Pid, Rest} -> {Pid, S#sampler{busy_round = Rest}};
        none -> none
    end;
next(others, #sampler{round = Round} = S) ->
    case sderl_prof_round:take(Round) of
        {Pid, Rest} -> {Pid, S#sampler{round = Rest}};
        none -> none
    end.

is_of(busy, Pid, #sampler{busy = Busy}) -> is_map_key(Pid, Busy);
is_of(others, Pid, S) -> Pid =/= self() andalso not is_of(busy, Pid, S).

%% ---------------------------------------------------------------- looks

%% Looks at processes of a kind as far as `Most` goes; with what is left of that, which is negative
%% where the last look asked.
look(Kind, Most, S) -> look(Kind, Most, S, []).

look(_, Left, S, Looks) when Left =< 0 -> {Looks, Left, S};
look(Kind, Left, S, Looks) ->
    case next(Kind, S) of
        none -> {Looks, Left, S};
        {Pid, S1} ->
            case is_of(Kind, Pid, S1) andalso look_at(Pid, S1) of
                false -> look(Kind, Left, S1, Looks);
                none ->
                    S2 = S1#sampler{looks = S1#sampler.looks + 1,
                                    busy = maps:remove(Pid, S1#sampler.busy)},
                    look(Kind, Left - 1, S2, Looks);
                {Cost, Look} ->
                    S2 = S1#sampler{looks = S1#sampler.looks + 1},
                    look(Kind, Left - Cost, S2, [Look | Looks])
            end
    end.

look_at(Pid, #sampler{seen = Seen} = S) ->
    case Seen of
        #{Pid := #seen{reductions = Before, told = Told} = Known} ->
            case process_info(Pid, [status, reductions, message_queue_len]) of
                [{status, waiting}, {reductions, Reductions}, {message_queue_len, Queue}]
                  when Reductions >= Before, Reductions =< Before + Told ->
                    {1, #look{pid = Pid, status = waiting, more = 0, is_new = false, queue = Queue,
                              seen = Known#seen{reductions = Reductions, told = 0}}};
                undefined -> none;
                _ -> ask_again(Pid, Known)
            end;
        _ -> ask_first(Pid, S)
    end.

ask_again(Pid, #seen{reductions = Before, told = Told} = Known) ->
    case process_info(Pid, [status, current_stacktrace, reductions, message_queue_len]) of
        [{status, Status}, {current_stacktrace, Stack}, {reductions, Reductions},
         {message_queue_len, Queue}] ->
            {Function, Caller} = place(Stack),
            {?ASKING, #look{pid = Pid, status = Status, is_new = false, queue = Queue,
                            more = max(0, Reductions - Before - Told),
                            seen = Known#seen{function = Function, caller = Caller,
                                              reductions = Reductions, told = ?TOLD}}};
        undefined -> none
    end.

ask_first(Pid, #sampler{rounds = Rounds, busy = Busy, seen = Seen, remembered = Most}) ->
    case process_info(Pid, [status, current_stacktrace, reductions, message_queue_len,
                            registered_name, {dictionary, '$initial_call'}, initial_call]) of
        [{status, Status}, {current_stacktrace, Stack}, {reductions, Reductions},
         {message_queue_len, Queue} | Of] ->
            {Function, Caller} = place(Stack),
            %% Where not all are remembered, it may have been looked at before.
            MayBeOld = map_size(Seen) >= Most,
            %% It may be older than the sampling, and so may its reductions.
            WasThere = Rounds =< 1 orelse is_map_key(Pid, Busy) orelse MayBeOld,
            {?ASKING, #look{pid = Pid, status = Status, queue = Queue,
                            is_new = Rounds =< 1 orelse not MayBeOld,
                            more = case WasThere of true -> 0; false -> Reductions end,
                            seen = #seen{function = Function, caller = Caller,
                                         reductions = Reductions, group = group(Of),
                                         told = ?TOLD}}};
        undefined -> none
    end.

%% The function in which it is, and the one that called it.
place([{M, F, A, _}, {M2, F2, A2, _} | _]) -> {{M, F, arity(A)}, {M2, F2, arity(A2)}};
place([{M, F, A, _}]) -> {{M, F, arity(A)}, undefined};
place([]) -> {undefined, undefined}.

arity(A) when is_integer(A) -> A;
arity(Args) -> length(Args).

group([{registered_name, Name}, _, _]) when is_atom(Name) -> Name;
group([_, {{dictionary, _}, {M, F, A}}, _])
  when is_atom(M), is_atom(F), is_integer(A) -> {M, F, A};
group([_, _, {initial_call, Call}]) -> Call.

%% Together they stand for so many processes, for the time since the last looks of this kind.
looked_at([], _, _, _, S) -> S;
looked_at(Looks, Kind, Count, Now, #sampler{since = Since} = S) ->
    Ns = Count * (Now - map_get(Kind, Since)) / length(Looks),
    lists:foldl(fun(Look, Acc) -> counted(Look, Ns, Acc) end,
                S#sampler{since = Since#{Kind := Now}}, Looks).

counted(#look{pid = Pid, status = Status, seen = Known, more = More, queue = Queue, is_new = IsNew},
        Ns, #sampler{seen = Seen, busy = Busy, remembered = Most, found = Found} = S) ->
    #seen{group = Group, function = Function, caller = Caller, reductions = Reductions} = Known,
    MayBe = IsNew andalso Reductions >= ?MANY_REDUCTIONS orelse
        lists:member(Status, [running, runnable, garbage_collecting]),
    %% A process that does nothing stays for some more looks.
    Worth = max(More, maps:get(Pid, Busy, 0) div ?FADES),
    IsBusy = Worth > 0 orelse MayBe,
    S#sampler{
        %% What a process did between two looks is known only where it is remembered.
        seen = case IsBusy orelse is_map_key(Pid, Seen) orelse map_size(Seen) < Most of
            true -> Seen#{Pid => Known};
            false -> Seen
        end,
        busy = case IsBusy of
            true -> fewer(Busy#{Pid => max(1, Worth)});
            false -> maps:remove(Pid, Busy)
        end,
        found = sderl_prof_looks:count(#{
            group => Group, status => Status, function => Function, caller => Caller,
            queue => Queue, ns => Ns, more => More, is_new => IsNew
        }, Found)
    }.

fewer(Busy) when map_size(Busy) > ?MOST_BUSY ->
    Sorted = lists:sort(fun({_, A}, {_, B}) -> A >= B end, maps:to_list(Busy)),
    maps:from_list(lists:sublist(Sorted, ?MOST_BUSY div 2));
fewer(Busy) -> Busy.

%% ---------------------------------------------------------------- the result

result(#sampler{mailboxes = Names} = S, {Threads, System}, Guard) ->
    #{at := Now} = Snapshot = snapshot(),
    %% So that there is one, however short the sampling was.
    Last = sderl_prof_series:add(sderl_prof_series:reading(Names), S#sampler.series),
    Series = sderl_prof_series:next(Now, sderl_prof_series:memory(), Last),
    #{
        node => atom_to_binary(node()),
        otp => list_to_binary(erlang:system_info(otp_release)),
        began_wall => System,
        ns => max(1, Now - S#sampler.began),
        all_ns => max(1, Now - S#sampler.start),
        rate => S#sampler.rate,
        looks => S#sampler.looks,
        rounds => S#sampler.rounds,
        own_ns => S#sampler.own_ns,
        processes => erlang:system_info(process_count),
        schedulers_online => erlang:system_info(schedulers_online),
        found => sderl_prof_looks:result(Snapshot, S#sampler.found),
        series => sderl_prof_series:result(Now, Series),
        %% Schedulers are numbered in this order.
        schedulers => #{normal => erlang:system_info(schedulers),
                        cpu => erlang:system_info(dirty_cpu_schedulers),
                        io => erlang:system_info(dirty_io_schedulers)},
        threads => spent(Threads, threads(Guard))
    }.

threads(none) -> [];
threads(_) -> [{Type, Counters} || {Type, _, Counters} <- sderl_prof_switch:threads()].

spent(Before, Now) ->
    [{Type, maps:map(fun(State, N) ->
        max(0, N - maps:get(State, proplists:get_value(Type, Before, #{}), 0))
    end, Counters)} || {Type, Counters} <- Now].
