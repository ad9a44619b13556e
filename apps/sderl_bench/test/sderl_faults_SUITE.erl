%% SPDX-License-Identifier: Apache-2.0
-module(sderl_faults_SUITE).
-moduledoc """
Faults on real nodes while clients write. The surviving members lose nothing that was answered, and
all of them come to agree. How long this takes is not checked.

By default six faults happen once each; with SDERL_LONG=1 all of them, 20 times each. Links are cut
in network namespaces where the system has these, else by closing them.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

suite() -> [{timetrap, {minutes, 60}}].

all() ->
    [{group, nodes}, {group, links}, split_by_majority, rollout, command]
        ++ sderl_ct:in_long_runs([glitch, none, split_closed, with_global, notices]).

%% The faults of a group happen on the same nodes, one after the other, before its cases. Each case
%% checks the outcome of its fault.
groups() ->
    [{nodes, [], [kill_coordinator, stop_coordinator, flood]
          ++ sderl_ct:in_long_runs([stop, slow, die_at_once, kill_in_burst, kill])},
     {links, [], [split | sderl_ct:in_long_runs([cut_coordinator, cut])]}].

init_per_group(Group, Config) ->
    Kinds = [kind(Case) || {Name, _, Cases} <- groups(), Name =:= Group, Case <- Cases],
    Params = params(lasting(Group), hd(Kinds)),
    {ok, Outcomes} = run([{"s_group", sderl_bench_faults_s_group, Kind} || Kind <- Kinds], Params),
    [{params, Params}, {outcomes, Outcomes} | Config].

end_per_group(_, _) -> ok.

%% A cut link must be closed while the fault lasts, and the nodes close it within 5 s.
lasting(links) -> #{hold_ms => 6000};
lasting(nodes) -> #{}.

kill(Config) -> befell(kill, Config).
kill_coordinator(Config) -> befell(kill_coordinator, Config).
stop(Config) -> befell(stop, Config).
stop_coordinator(Config) -> befell(stop_coordinator, Config).
flood(Config) -> befell(flood, Config).
slow(Config) -> befell(slow, Config).
die_at_once(Config) -> befell(die_at_once, Config).
kill_in_burst(Config) -> befell(kill_in_burst, Config).
cut(Config) -> befell(cut, Config).
cut_coordinator(Config) -> befell(cut_coordinator, Config).
split(Config) -> befell(split, Config).

befell(Name, Config) ->
    [Outcome] = [Outcome || #{job := {_, _, #{name := Of}}} = Outcome
                                <- proplists:get_value(outcomes, Config), Of =:= Name],
    check(Name, Outcome, proplists:get_value(params, Config)).

none(_) -> fault(none, #{hold_ms => 500}).
rollout(_) -> fault(rollout, #{}).

%% The links are closed, as on a system without network namespaces.
split_closed(_) -> fault(split, #{links => cookies}).

%% The split lasts long enough for names of the side that is cut off to be registered by others.
split_by_majority(_) ->
    Metrics = fault(split, by_majority()),
    ?assertMatch(#{cut_off_yes := 0, held_twice := 0}, Metrics),
    ?assert(maps:get(no_majority, Metrics) > 0),
    #{repetitions := Repetitions, claims := Claims} = Metrics,
    ?assert(Claims > 5 * Repetitions).

by_majority() -> #{consistency => majority, nodes => 5, hold_ms => 8000, links => cookies}.

glitch(_) ->
    case sderl_bench_faults_world:links() of
        namespaces -> fault(glitch, #{links => namespaces});
        {cookies, Why} -> {skip, unicode:characters_to_list(["no network namespaces here: ", Why])}
    end.

fault(Name, More) ->
    Kind = kind(Name),
    Params = params(More, Kind),
    {ok, [Outcome]} = run([{"s_group", sderl_bench_faults_s_group, Kind}], Params),
    check(Name, Outcome, Params).

kind(Name) ->
    {ok, Kind} = sderl_bench_faults_kind:named(atom_to_list(Name)),
    Kind.

check(Name, #{metrics := Metrics, wrong := Wrong}, #{repetitions := Repetitions}) ->
    ct:pal("~ts: ~tp~n~ts", [Name, Metrics, Wrong]),
    ?assertMatch(
        #{repetitions := Repetitions, converged := Repetitions, lost_acknowledged := 0,
          came_back := 0, refused := 0}, Metrics
    ),
    ?assert(maps:get(answers, Metrics) > 0),
    case Name of
        rollout -> ok;
        _ -> ?assert(maps:get(p50, maps:get(stalled_ms, Metrics)) > 0)
    end,
    Metrics.

run(Jobs, Params) ->
    Self = self(),
    Ref = make_ref(),
    ok = sderl_bench_faults:run(Jobs, Params, fun(Outcome) -> Self ! {Ref, Outcome}, ok end),
    {ok, [receive {Ref, Outcome} -> Outcome after 0 -> error(no_outcome) end || _ <- Jobs]}.

%% The timeouts are shorter than the defaults, so that a repetition takes less time.
params(More, #{needs := Needs}) ->
    Base = #{nodes => 4, clients => min(2, repetitions()), repetitions => repetitions(),
             tick_ms => 200, set_aside_ms => 1000, hold_ms => 2500, burst => 10_000, short => 1000,
             links => cookies},
    case More of
        #{links := _} -> maps:merge(Base, More);
        #{} when Needs =:= links -> maps:merge(Base#{links := links()}, More);
        #{} -> maps:merge(Base, More)
    end.

links() ->
    case sderl_bench_faults_world:links() of
        namespaces -> namespaces;
        {cookies, Why} -> ct:pal("no network namespaces here: ~ts", [Why]), cookies
    end.

repetitions() ->
    case os:getenv("SDERL_LONG") of
        "1" -> 20;
        _ -> 1
    end.

%% The faults also work with `global`. It promises other things than the library, so only that it
%% can be measured is checked.
with_global(_) ->
    Params = params(#{repetitions => 1}, #{needs => nodes}),
    Jobs = [{"global", sderl_bench_faults_global, kind(Name)} || Name <- [kill, stop]],
    {ok, Outcomes} = run(Jobs, Params),
    ct:pal("~tp", [Outcomes]),
    [?assertMatch(#{metrics := #{repetitions := 1}}, Outcome) || Outcome <- Outcomes].

%% The command line: one line of JSON for each registry and fault. `global` has no rollout.
command(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "faults.json"),
    Args = ["bench", "faults", "--fault", "kill,rollout", "--impl", "s_group,global",
            "--repetitions", "1", "--nodes", "3", "--tick-ms", "200", "--set-aside-ms", "1000",
            "--json", File],
    ?assertMatch({0, stdout, _}, sderl_cli:run(Args)),
    {ok, Text} = file:read_file(File),
    Results = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    ?assertEqual(
        [{<<"s_group">>, <<"kill">>}, {<<"s_group">>, <<"rollout">>}, {<<"global">>, <<"kill">>}],
        [{Impl, Fault} || #{<<"params">> := #{<<"impl">> := Impl, <<"fault">> := Fault}} <- Results]
    ),
    [
        ?assertMatch(
            #{
                <<"experiment">> := <<"faults">>,
                <<"metrics">> := #{
                    <<"repetitions">> := 1,
                    <<"lost_acknowledged">> := _,
                    <<"converge_ms">> := #{<<"p50">> := _, <<"p99">> := _},
                    <<"stalled_ms">> := #{<<"p50">> := _, <<"p99">> := _}
                }
            },
            Result
        )
     || Result <- Results
    ].

%% Faults that are planted in the library are noticed. When the death of a process is not reported,
%% its names stay. A member that acknowledges a batch without applying it differs from the others. A
%% group that does not decide by majority answers `yes` on a side without one. A heal that brings
%% unregistered names back is not noticed here: their processes have ended by then, and their home
%% reports that when it is taken in again.
notices(_) ->
    [
        begin
            Kind = kind(Name),
            Params = (params(maps:merge(More, #{links => cookies, repetitions => 1}),
                             Kind))#{spoilt => Spoilt},
            {ok, [#{metrics := Metrics, wrong := Wrong}]} =
                run([{"spoilt", ?MODULE, Kind}], Params),
            ct:pal("~p, ~p: ~tp~n~ts", [Spoilt, Name, Metrics, Wrong]),
            ?assertNotEqual([], Wrong),
            ?assert(Noticed(Metrics))
        end
     || {Spoilt, Name, More, Noticed} <- [
         {lose_down, die_at_once, #{}, fun(#{converged := N}) -> N =:= 0 end},
         {skip_apply, none, #{}, fun(#{converged := N}) -> N =:= 0 end},
         {no_majority, split, by_majority(),
          fun(#{cut_off_yes := N, held_twice := Twice}) -> N > 0 andalso Twice > 0 end}
     ]
    ].

%% The library, started with a planted fault, or without a majority group.
family(#{spoilt := no_majority} = Params) ->
    sderl_bench_faults_s_group:family(maps:remove(consistency, Params));
family(#{spoilt := Spoilt} = Params) ->
    Eval = io_lib:format("{ok, _} = sderl_plant:start(sderl_plant:beams([~w])).", [Spoilt]),
    (sderl_bench_faults_s_group:family(Params))#{apps => [],
                                                 args => ["-eval", lists:flatten(Eval)]}.

group() -> sderl_bench_faults_s_group:group().
linked(Fleet, Nodes) -> sderl_bench_faults_s_group:linked(Fleet, Nodes).
ready(Fleet, Nodes) -> sderl_bench_faults_s_group:ready(Fleet, Nodes).
coordinator() -> sderl_bench_faults_s_group:coordinator().
register(Name, Pid) -> sderl_bench_faults_s_group:register(Name, Pid).
unregister(Name) -> sderl_bench_faults_s_group:unregister(Name).
find(Name) -> sderl_bench_faults_s_group:find(Name).
names() -> sderl_bench_faults_s_group:names().
view(Live) -> sderl_bench_faults_s_group:view(Live).
