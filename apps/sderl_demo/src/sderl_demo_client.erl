%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_client).
-moduledoc """
The loops of the demo's clients. Each runs in a process of its own, on every node, until
its time is over, and returns a tally of what it did and saw.

Eight of ten choices fall on a name of the caller's own groups, two on a name of another
group (`sderl_demo_layout`); a node that knows no name of another group uses its own only.
""".

-export([lookups/1, calls/1, registrations/1, choose/2]).
-export_type([env/0]).

-import(sderl_clock, [now_us/0]).

-doc """
The settings of a client. It ends at `until_us`, this node's monotonic time in microseconds;
`pause_ms` is the pause between two requests, `work_ms` the time that a server takes for one; `tag`
makes the names that the client registers unique; `seed` is that of its random choices.
""".
-type env() :: #{
    registry := module(),
    home := sderl_demo_layout:group_name(),
    own := tuple(),
    other := tuple(),
    until_us := integer(),
    pause_ms := non_neg_integer(),
    work_ms := non_neg_integer(),
    tag := term(),
    seed := integer()
}.

-define(OWN_SHARE, 0.8).
-define(GIVE_UP_US, 10_000_000).
%% Pauses before a request is made again: from the first to the longest.
-define(AGAIN_MS, {1, 64}).

-doc """
Looks up names without calling anyone: rounds of 80 names of own groups, timed by eights
because one takes less than a microsecond, and 20 of other groups, timed singly.
""".
-spec lookups(env()) -> sderl_demo_tally:tally().
lookups(#{seed := Seed} = Env) ->
    %% Recorders: adding to a tally would take longer than a lookup.
    OwnTimes = sderl_bench_histogram:recorder(),
    OtherTimes = sderl_bench_histogram:recorder(),
    {Done, Missed} = lookups(Env, OwnTimes, OtherTimes, rand:seed_s(exsss, Seed), 0, 0),
    Tally = sderl_demo_tally:count(lookups, Done, sderl_demo_tally:new()),
    lists:foldl(
        fun({Name, Times}, T) ->
            sderl_demo_tally:times(Name, sderl_bench_histogram:read(Times), T)
        end,
        %% Nobody is killed while lookups are measured: each of the names is registered.
        sderl_demo_tally:count(missed_lookups, Missed, Tally),
        [{own_lookup_ns, OwnTimes}, {other_lookup_ns, OtherTimes}]
    ).

lookups(Env, OwnTimes, OtherTimes, Rand, Done, Missed) ->
    #{own := Own, other := Other, until_us := Until} = Env,
    case now_us() < Until of
        true ->
            {OwnNames, Rand1} = picks(10, 8, Own, Rand),
            {OtherNames, Rand2} = picks(20, 1, Other, Rand1),
            More = lists:sum(
                [timed_lookups(Env, OwnTimes, Names) || Names <- OwnNames] ++
                    [timed_lookups(Env, OtherTimes, Names) || Names <- OtherNames]
            ),
            Looked = 80 + length(OtherNames),
            lookups(Env, OwnTimes, OtherTimes, Rand2, Done + Looked, Missed + More);
        false ->
            {Done, Missed}
    end.

timed_lookups(#{registry := Registry}, Times, Names) ->
    Begin = erlang:monotonic_time(nanosecond),
    Missed = missed(Registry, Names, 0),
    Took = erlang:monotonic_time(nanosecond) - Begin,
    ok = sderl_bench_histogram:record(Times, Took div length(Names)),
    Missed.

missed(_Registry, [], Missed) ->
    Missed;
missed(Registry, [{Group, Name} | Names], Missed) ->
    case Registry:whereis(Group, Name) of
        undefined -> missed(Registry, Names, Missed + 1);
        _Pid -> missed(Registry, Names, Missed)
    end.

-doc "Calls servers by name; finding the server and the call are timed together.".
-spec calls(env()) -> sderl_demo_tally:tally().
calls(#{seed := Seed} = Env) ->
    calls(Env, rand:seed_s(exsss, Seed), sderl_demo_tally:new()).

calls(#{until_us := Until, pause_ms := Pause} = Env, Rand, Tally) ->
    Begin = now_us(),
    case Begin < Until of
        true ->
            {Share, Server, Rand1} = choose(Env, Rand),
            Tally1 = request(Env, Share, Server, Begin, 1, Tally),
            pause(Pause),
            calls(Env, Rand1, Tally1);
        false ->
            Tally
    end.

%% One request, tried until it is answered or fails; sderl_demo_ledger says what is written down.
request(#{registry := Registry, work_ms := Work} = Env, Share, Server, BeginUs, Try, Tally) ->
    case Registry:call(Server, Work) of
        {ok, _Count} ->
            answered(Env, Share, now_us(), BeginUs, Tally);
        {error, not_there} ->
            retry(Env, Share, Server, BeginUs, Try, Tally);
        {error, {noproc, Who}} ->
            Stale = sderl_demo_tally:fail({stale, Who}, Tally),
            retry(Env, Share, Server, BeginUs, Try, Stale);
        {error, {killed, Who}} ->
            sderl_demo_tally:fail({interrupted, Who}, Tally);
        {error, Reason} ->
            pause(1),
            sderl_demo_tally:fail({failed, Reason}, Tally)
    end.

retry(Env, Share, Server, BeginUs, Try, Tally) ->
    case now_us() - BeginUs > ?GIVE_UP_US of
        true ->
            sderl_demo_tally:fail({unanswered, Server}, Tally);
        false ->
            pause(sderl_demo_backoff:pause_ms(Try, ?AGAIN_MS)),
            request(Env, Share, Server, BeginUs, Try + 1, Tally)
    end.

answered(#{until_us := Until}, Share, NowUs, BeginUs, Tally) ->
    {Count, Histogram} =
        case Share of
            own -> {own_calls, own_call_us};
            other -> {other_calls, other_call_us}
        end,
    in_time(NowUs =< Until, Count, sderl_demo_tally:time(Histogram, NowUs - BeginUs, Tally)).

-doc """
Registers this process under a fresh name in the node's own group, unregisters it, and so on.
""".
-spec registrations(env()) -> sderl_demo_tally:tally().
registrations(Env) ->
    registrations(Env, 1, sderl_demo_tally:new()).

registrations(Env, I, Tally) ->
    #{registry := Registry, home := Group, tag := Tag, until_us := Until} = Env,
    Begin = now_us(),
    case Begin < Until of
        true ->
            Name = {fresh, Tag, I},
            Registered = Registry:register(Group, Name, self()),
            Middle = now_us(),
            Unregistered = Registry:unregister(Group, Name),
            End = now_us(),
            Tally1 = changed(Registered, register_us, Middle - Begin, Tally),
            Tally2 = changed(Unregistered, unregister_us, End - Middle, Tally1),
            Tally3 = in_time(Registered =:= ok andalso Middle =< Until, registrations, Tally2),
            registrations(Env, I + 1, Tally3);
        false ->
            Tally
    end.

changed(ok, Histogram, TookUs, Tally) ->
    sderl_demo_tally:count(changes, 1, sderl_demo_tally:time(Histogram, TookUs, Tally));
changed({error, Reason}, Histogram, _TookUs, Tally) ->
    sderl_demo_tally:fail({failed, {Histogram, Reason}}, Tally).

%% A call that ends after the end of the phase is timed but not part of the rate.
in_time(true, Count, Tally) -> sderl_demo_tally:count(Count, 1, Tally);
in_time(false, _Count, Tally) -> Tally.

%% Choices

-doc "A server to call: in eight of ten cases one of the own groups.".
-spec choose(env(), rand:state()) -> {own | other, sderl_demo_layout:server(), rand:state()}.
choose(#{own := Own, other := Other}, Rand) ->
    {Draw, Rand1} = rand:uniform_s(Rand),
    {Share, Names} =
        case Draw < ?OWN_SHARE orelse Other =:= {} of
            true -> {own, Own};
            false -> {other, Other}
        end,
    {[Server], Rand2} = pick(1, Names, Rand1),
    {Share, Server, Rand2}.

pick(0, _Names, Rand) ->
    {[], Rand};
pick(Count, Names, Rand) ->
    {Place, Rand1} = rand:uniform_s(tuple_size(Names), Rand),
    {Rest, Rand2} = pick(Count - 1, Names, Rand1),
    {[element(Place, Names) | Rest], Rand2}.

%% `Lists` lists of `Count` names each; none where there are no names.
picks(_Lists, _Count, {}, Rand) ->
    {[], Rand};
picks(Lists, Count, Names, Rand) ->
    lists:mapfoldl(fun(_, R) -> pick(Count, Names, R) end, Rand, lists:seq(1, Lists)).

pause(0) ->
    ok;
pause(Ms) ->
    receive
    after Ms -> ok
    end.
