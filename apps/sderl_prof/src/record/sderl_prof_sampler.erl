%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_sampler).
-moduledoc """
Looks at the processes of this node, a bounded number of times a second, and counts what they do.
Traces nothing, so that it may run in production. Needs no other module of this project, so that it
can be loaded into any node.

- **Fair**: most looks go round all processes, in an order that is new with each round.
- **Favours busy ones**: processes that had reductions since the look before are looked at more
  often, as many as there may be of them; with the first round over, half of all looks are at these.
- **Busy ones are looked for**, before the first look and every ten seconds: a round takes long
  where there are many processes. For that the reductions alone of at most 20,000 of them are read
  twice, which takes a fraction of a look each.
- **A look stands for its part of the processes and of the time.** Busy processes and the others are
  counted apart: the looks at the ones and at the others stand for as many processes as there are of
  these. So a process that is looked at more often counts no more for that.

It also takes the times of schedulers and, where nobody else has switched it on, microstate
accounting, from begin to end. It ends in time, when it is told to, and with its owner.
""".

-export([start/2, stop/1]).
-export_type([plan/0, result/0, cell/0, status/0]).

%% So long, in the mean, between two times at which it looks. On a node that sleeps it is the waking
%% that costs most.
-define(TICK_MS, 50).
%% Processes that are looked at more often; with more of them, this half that is busiest stays.
-define(MOST_BUSY, 128).
%% In the first round only one look of so many is at busy ones.
-define(FIRST_ROUND, 8).
%% So often the reductions of so many are read, so many at a time, and so long after that again.
-define(SCAN_NS, 10_000_000_000).
-define(MOST_SCANNED, 20_000).
-define(SCANNED_AT_ONCE, 1000).
-define(AGAIN_NS, 500_000_000).
%% One that had so many reductions when it was first seen may be busy.
-define(MANY_REDUCTIONS, 1_000_000).
-define(FADES, 16).
%% Kinds of processes, and what these do where, that are told apart.
-define(MOST_GROUPS, 5_000).
-define(MOST_CELLS, 20_000).
-define(OTHERS, {others, others, 0}).

-type plan() :: #{milliseconds := pos_integer(), rate := pos_integer()}.
-type status() :: running | runnable | waiting | garbage_collecting | suspended | exiting.
-doc """
Processes of a kind, by their name or where they began; what they do; where; how many looks; the
nanoseconds of processes that these stand for, and the sum of their squares.
""".
-type cell() :: {Group :: binary(), status(), Function :: binary(), pos_integer(),
                 float(), float()}.
-doc """
`own_ns`: how long it was at work. `groups`: processes that were seen of each kind, and reductions
that they were seen to have. Times of schedulers are awake and all, by the kind of thread; `threads`
is microstate accounting in its own units, empty where somebody else has it.
""".
-type result() :: #{
    node := binary(), otp := binary(), began_wall := integer(), ns := pos_integer(),
    rate := pos_integer(), looks := non_neg_integer(), rounds := non_neg_integer(),
    own_ns := non_neg_integer(), processes := non_neg_integer(), schedulers_online := pos_integer(),
    reductions := non_neg_integer(), cells := [cell()],
    groups := [{binary(), pos_integer(), non_neg_integer()}],
    schedulers := [{normal | cpu | io, pos_integer(), non_neg_integer(), non_neg_integer()}],
    threads := [{atom(), #{atom() => non_neg_integer()}}]
}.

-record(seen, {
    reductions :: non_neg_integer(),
    group :: term()
}).
-record(scan, {
    at :: integer(),
    left :: [pid()],
    is_second :: boolean(),
    %% Reductions, then those that came since.
    found = #{} :: #{pid() => non_neg_integer()},
    more = #{} :: #{pid() => pos_integer()}
}).
-record(sampler, {
    owner :: pid(),
    monitor :: reference(),
    rate :: pos_integer(),
    began :: integer(),
    until :: integer(),
    scan :: #scan{},
    %% The rest of the round.
    round = [] :: [pid()],
    rounds = 0 :: non_neg_integer(),
    seen = #{} :: #{pid() => #seen{}},
    %% Reductions since the look before.
    busy = #{} :: #{pid() => pos_integer()},
    looks = 0 :: non_neg_integer(),
    %% Looks for which the time had come, those that were left out among them.
    came_due = 0 :: non_neg_integer(),
    own_ns = 0 :: non_neg_integer(),
    %% Since when looks at the ones and at the others stand for time.
    since :: #{busy | others => integer()},
    cells = #{} :: #{term() => {pos_integer(), float(), float()}},
    groups = #{} :: #{term() => {non_neg_integer(), non_neg_integer()}}
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

begin_(#{milliseconds := Ms, rate := Rate}, Owner) ->
    %% It is to look when it is time to, also where many processes wait for a scheduler.
    _ = process_flag(priority, high),
    _ = erlang:system_flag(scheduler_wall_time, true),
    Accounts = is_free(microstate_accounting),
    _ = [erlang:system_flag(microstate_accounting, true) || Accounts],
    Start = now_ns(),
    Searched = searched(#sampler{
        owner = Owner, monitor = monitor(process, Owner), rate = Rate, began = Start,
        until = Start, since = #{}, scan = first_scan(Start)
    }),
    Now = now_ns(),
    Before = {erlang:statistics(scheduler_wall_time_all), threads(Accounts),
              element(1, erlang:statistics(reductions)), erlang:system_time(nanosecond)},
    Sampler = loop(Searched#sampler{
        began = Now, until = Now + 1_000_000 * Ms, since = #{busy => Now, others => Now}
    }),
    Result = result(Sampler, Before, Accounts),
    _ = [erlang:system_flag(microstate_accounting, false) || Accounts],
    Owner ! {sderl_prof_sampled, self(), Result}.

%% It exists once on a node; whoever switched it on goes on having it.
is_free(microstate_accounting) ->
    Free = erlang:system_flag(microstate_accounting, true) =:= false,
    _ = [erlang:system_flag(microstate_accounting, false) || Free],
    Free.

now_ns() -> erlang:monotonic_time(nanosecond).

%% ---------------------------------------------------------------- looking

loop(#sampler{until = Until, monitor = Monitor} = S) ->
    Left = (Until - now_ns()) div 1_000_000,
    %% At no regular times, which could be those of what it looks at.
    Wait = min(max(0, Left), rand:uniform(2 * ?TICK_MS - 1)),
    receive
        stop -> S;
        {'DOWN', Monitor, process, _, _} -> S
    after Wait ->
        Now = now_ns(),
        case Now >= Until of
            true -> S;
            false ->
                {Due, S1} = due(Now, S),
                Looked = looks(Due, Now, scanned(Now, S1)),
                loop(Looked#sampler{own_ns = S#sampler.own_ns + now_ns() - Now})
        end
    end.

%% What was missed is not made up for by more than that of a tenth of a second.
due(Now, #sampler{rate = Rate, began = Began, came_due = Before} = S) ->
    All = (Now - Began) * Rate div 1_000_000_000,
    {max(0, min(All - Before, 1 + Rate div 10)), S#sampler{came_due = max(All, Before)}}.

looks(N, Now, #sampler{busy = Busy} = S0) ->
    ForBusy = case S0 of
        _ when map_size(Busy) =:= 0 -> 0;
        #sampler{rounds = Rounds} when Rounds =< 1 -> part(N, ?FIRST_ROUND);
        _ -> part(N, 2)
    end,
    %% Any of them, and each at most once at a time.
    BusyOnes = lists:sublist(mixed(maps:keys(Busy)), ForBusy),
    {Others, S2} = others(N - length(BusyOnes), S0),
    Count = erlang:system_info(process_count),
    IsBusy = map_size(Busy),
    S3 = looked_at(BusyOnes, busy, IsBusy, Now, S2),
    S4 = looked_at(Others, others, max(0, Count - 1 - IsBusy), Now, S3),
    %% Until there is one, none stands for any time.
    case S4 of
        #sampler{busy = Now1, since = Since} when map_size(Now1) =:= 0 orelse IsBusy =:= 0 ->
            S4#sampler{since = Since#{busy := Now}};
        _ -> S4
    end.

%% The rest is one more by chance: at low rates, too, some looks are at busy ones.
part(N, Of) -> (N + rand:uniform(Of) - 1) div Of.

%% ---------------------------------------------------------------- looking for busy ones

first_scan(Now) ->
    #scan{at = Now, left = lists:sublist(mixed(processes()), ?MOST_SCANNED), is_second = false}.

mixed(Pids) -> [Pid || {_, Pid} <- lists:sort([{rand:uniform(), Pid} || Pid <- Pids])].

%% Before the first look, so that none is one of many that wait.
searched(#sampler{scan = #scan{left = [], is_second = true, more = More}} = S)
  when map_size(More) =:= 0 -> S;
searched(#sampler{monitor = Monitor} = S) ->
    receive
        stop ->
            self() ! stop,
            S;
        {'DOWN', Monitor, process, _, _} ->
            self() ! stop,
            S
    after ?TICK_MS -> searched(scanned(now_ns(), S))
    end.

scanned(Now, #sampler{scan = #scan{left = [], is_second = false, at = At} = Scan} = S)
  when Now - At >= ?AGAIN_NS ->
    S#sampler{scan = Scan#scan{left = maps:keys(Scan#scan.found), is_second = true}};
scanned(_, #sampler{scan = #scan{left = [], is_second = true, more = More} = Scan} = S)
  when map_size(More) > 0 ->
    Fewer = maps:remove(self(), fewer(maps:merge(S#sampler.busy, More))),
    S#sampler{busy = Fewer, scan = Scan#scan{more = #{}}};
scanned(Now, #sampler{scan = #scan{left = [], is_second = true, at = At}} = S)
  when Now - At >= ?SCAN_NS ->
    S#sampler{scan = first_scan(Now)};
scanned(_, #sampler{scan = #scan{left = []}} = S) -> S;
scanned(_, #sampler{scan = #scan{left = Left, is_second = Second, found = Found} = Scan} = S) ->
    {Now, Later} = lists:split(min(?SCANNED_AT_ONCE, length(Left)), Left),
    Read = #{Pid => N || Pid <- Now, {reductions, N} <- [process_info(Pid, reductions)]},
    More = #{Pid => N - map_get(Pid, Found)
             || Pid := N <- Read, Second, N > map_get(Pid, Found)},
    S#sampler{scan = Scan#scan{
        left = Later,
        found = case Second of true -> Found; false -> maps:merge(Found, Read) end,
        more = maps:merge(Scan#scan.more, More)
    }}.

%% ---------------------------------------------------------------- whom to look at

%% With the end of a round looking ends for now: each is looked at once at most. All may be busy.
others(N, #sampler{round = []} = S) -> take_others(N, [], next_round(S));
others(N, S) -> take_others(N, [], S).

take_others(0, Taken, S) -> {Taken, S};
take_others(N, Taken, #sampler{round = [Pid | Round], busy = Busy} = S) ->
    case is_map_key(Pid, Busy) of
        true -> take_others(N, Taken, S#sampler{round = Round});
        false -> take_others(N - 1, [Pid | Taken], S#sampler{round = Round})
    end;
take_others(_, Taken, S) -> {Taken, S}.

%% What has ended meanwhile is forgotten.
next_round(#sampler{seen = Seen, rounds = Rounds} = S) ->
    Pids = [Pid || Pid <- processes(), Pid =/= self()],
    S#sampler{round = mixed(Pids), rounds = Rounds + 1, seen = maps:with(Pids, Seen)}.

%% ---------------------------------------------------------------- looks

%% Together they stand for so many processes, for the time since the last looks of this kind.
looked_at([], _, _, _, S) -> S;
looked_at(Pids, Kind, Count, Now, #sampler{since = Since, looks = Looks} = S0) ->
    Infos = [{Pid, process_info(Pid, [status, current_function, reductions])} || Pid <- Pids],
    Found = [Info || {_, [_ | _]} = Info <- Infos],
    S = S0#sampler{looks = Looks + length(Pids),
                   busy = maps:without([Pid || {Pid, undefined} <- Infos], S0#sampler.busy)},
    case Found of
        [] -> S;
        _ ->
            Ns = Count * (Now - map_get(Kind, Since)) / length(Found),
            lists:foldl(fun({Pid, Info}, Acc) -> counted(Pid, Info, Ns, Acc) end,
                        S#sampler{since = Since#{Kind := Now}}, Found)
    end.

counted(Pid, [{status, Status}, {current_function, Function}, {reductions, Reductions}], Ns,
        #sampler{seen = Seen, rounds = Rounds, busy = Busy} = S) ->
    {New, Group, IsNew} = case Seen of
        #{Pid := #seen{reductions = Before, group = Known}} ->
            {max(0, Reductions - Before), Known, 0};
        %% It was there before, with reductions of before.
        _ when Rounds =< 1; is_map_key(Pid, Busy) -> {0, group(Pid), 1};
        _ -> {Reductions, group(Pid), 1}
    end,
    MayBe = IsNew =:= 1 andalso Reductions >= ?MANY_REDUCTIONS orelse
        lists:member(Status, [running, runnable, garbage_collecting]),
    %% One that did nothing this time is given up after a few more times.
    Worth = max(New, maps:get(Pid, Busy, 0) div ?FADES),
    S1 = S#sampler{
        seen = Seen#{Pid => #seen{reductions = Reductions, group = Group}},
        busy = case Worth > 0 orelse MayBe of
            true -> fewer(Busy#{Pid => max(1, Worth)});
            false -> maps:remove(Pid, Busy)
        end,
        groups = group_counted(Group, IsNew, New, S#sampler.groups)
    },
    cell_counted({Group, Status, Function}, Ns, S1).

fewer(Busy) when map_size(Busy) > ?MOST_BUSY ->
    Sorted = lists:sort(fun({_, A}, {_, B}) -> A >= B end, maps:to_list(Busy)),
    maps:from_list(lists:sublist(Sorted, ?MOST_BUSY div 2));
fewer(Busy) -> Busy.

group(Pid) ->
    case process_info(Pid, [registered_name, {dictionary, '$initial_call'}, initial_call]) of
        [{registered_name, Name}, _, _] when is_atom(Name) -> Name;
        [_, {{dictionary, _}, {M, F, A}}, _]
          when is_atom(M), is_atom(F), is_integer(A) -> {M, F, A};
        [_, _, {initial_call, Call}] -> Call;
        undefined -> ?OTHERS
    end.

group_counted(Group, IsNew, Reductions, Groups) ->
    case Groups of
        #{Group := {N, Sum}} -> Groups#{Group := {N + IsNew, Sum + Reductions}};
        _ when map_size(Groups) >= ?MOST_GROUPS, Group =/= ?OTHERS ->
            group_counted(?OTHERS, IsNew, Reductions, Groups);
        _ -> Groups#{Group => {IsNew, Reductions}}
    end.

cell_counted(Key, Ns, #sampler{cells = Cells} = S) ->
    case Cells of
        #{Key := {N, Sum, Squares}} ->
            S#sampler{cells = Cells#{Key := {N + 1, Sum + Ns, Squares + Ns * Ns}}};
        _ when map_size(Cells) >= ?MOST_CELLS, element(1, Key) =/= ?OTHERS ->
            cell_counted({?OTHERS, element(2, Key), ?OTHERS}, Ns, S);
        _ -> S#sampler{cells = Cells#{Key => {1, Ns, Ns * Ns}}}
    end.

%% ---------------------------------------------------------------- the result

result(#sampler{} = S, {Wall, Threads, Reductions, System}, Accounts) ->
    #{
        node => atom_to_binary(node()),
        otp => list_to_binary(erlang:system_info(otp_release)),
        began_wall => System,
        ns => max(1, now_ns() - S#sampler.began),
        rate => S#sampler.rate,
        looks => S#sampler.looks,
        rounds => S#sampler.rounds,
        own_ns => S#sampler.own_ns,
        processes => erlang:system_info(process_count),
        schedulers_online => erlang:system_info(schedulers_online),
        reductions => element(1, erlang:statistics(reductions)) - Reductions,
        cells => [{text(Group), Status, text(Function), N, Sum, Squares}
                  || {Group, Status, Function} := {N, Sum, Squares} <- S#sampler.cells],
        groups => [{text(Group), N, Sum} || Group := {N, Sum} <- S#sampler.groups],
        schedulers => walls(Wall, erlang:statistics(scheduler_wall_time_all)),
        threads => spent(Threads, threads(Accounts))
    }.

text(Name) when is_atom(Name) -> atom_to_binary(Name);
text(?OTHERS) -> ~"others";
text({M, F, A}) -> unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [M, F, A])).

%% Numbers of schedulers go on with those for dirty work.
walls(Before, Now) ->
    {Normal, Cpu} = {erlang:system_info(schedulers), erlang:system_info(dirty_cpu_schedulers)},
    Old = #{N => {Awake, All} || {N, Awake, All} <- Before},
    [begin
         {Awake0, All0} = maps:get(N, Old, {Awake, All}),
         {kind(N, Normal, Normal + Cpu), N, Awake - Awake0, All - All0}
     end || {N, Awake, All} <- lists:sort(Now)].

kind(N, Normal, _) when N =< Normal -> normal;
kind(N, _, Cpu) when N =< Cpu -> cpu;
kind(_, _, _) -> io.

threads(false) -> [];
threads(true) ->
    lists:foldl(fun(#{type := Type, counters := Counters}, All) ->
        Old = proplists:get_value(Type, All, #{}),
        Sum = maps:merge_with(fun(_, A, B) -> A + B end, Old, Counters),
        lists:keystore(Type, 1, All, {Type, Sum})
    end, [], erlang:statistics(microstate_accounting)).

spent(Before, Now) ->
    [{Type, maps:map(fun(State, N) ->
        max(0, N - maps:get(State, proplists:get_value(Type, Before, #{}), 0))
    end, Counters)} || {Type, Counters} <- Now].
