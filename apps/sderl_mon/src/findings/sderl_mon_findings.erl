%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_findings).
-moduledoc """
Conclusions from the numbers of a cluster: each finding names a place, shows the numbers that
support it with their units, and says what to do.

Pure. The rules, one module for each family (`sderl_mon_find_...`), use means of the last seconds. A
finding appears when its value has been over its threshold at every check for `hold_ms`, and goes
when it was below 80 % of the threshold for `clear_ms`: a value that moves around its threshold
gives one finding and not many. A state, such as a node that is down, is not a measurement, so it
appears and goes after `hold_fast_ms`.
""".

-export([new/0, new/1, check/4]).
-export([thresholds/0, validate/1, kinds/0]).
-export_type([state/0]).

-define(LEAST, 0.001).
-define(MOST, 1.0e15).

-doc "The state from earlier checks.".
-opaque state() :: #{limits := sderl_mon_find:limits(), seen := #{binary() => seen()}}.

-type seen() ::
    #{first := integer(), last := integer(), shown := boolean(),
      candidate := sderl_mon_find:candidate()}.

-doc "Nothing was seen; with the default thresholds.".
-spec new() -> state().
new() -> new(#{}).

-doc "The same with other thresholds; unknown ones are ignored (`validate/1` finds them).".
-spec new(#{atom() => number()}) -> state().
new(Given) ->
    #{limits => maps:merge(thresholds(), maps:with(maps:keys(thresholds()), Given)), seen => #{}}.

-doc """
The thresholds and their defaults. Shares are of 1.

| threshold | a finding when | unit |
|---|---|---|
| `hold_ms`, `hold_fast_ms`, `clear_ms`, `window_ms` | the times above, and the time over which means are taken | ms |
| `most` | how many findings of one kind are shown; the first says how many more there are | |
| `bypass_msgs_s` | the traffic of a link past the gateways is at least this | msg/s |
| `idle_s`, `idle_msgs_s` | a link without a reason is at least this old and carries less | s, msg/s |
| `misplaced_msgs_s`, `misplaced_ratio` | a node exchanges at least this with another group, and this many times what it exchanges with its own | msg/s |
| `gateway_util`, `gateway_bytes_s`, `gateway_pending_bytes` | a gateway's utilisation, what it sends, or what waits on one of its links is at least this | share, bytes/s, bytes |
| `group_msgs_s`, `group_size` | registrations of a group of at least this size may cost this many messages | msg/s, nodes |
| `hot_msgs_s`, `hot_share` | a process gets at least this of the traced messages, and this share of them | msg/s, share |
| `process_share`, `atom_share`, `port_share`, `ets_share` | at least this share of a limit is used | share |
| `mem_ratio`, `mem_bytes` | a node's memory is this many times the median of the nodes, and at least this | bytes |
| `queue_msgs` | at least this many messages wait for one process | messages |
| `busy_util`, `run_queue` | utilisation and run queue are at least these | share, processes |
| `probe_pct`, `probe_core_pct` | the probe takes at least this of the node's processor time, and of one core | % |
""".
-spec thresholds() -> #{atom() => number()}.
thresholds() ->
    #{
        hold_ms => 10_000,
        hold_fast_ms => 2000,
        clear_ms => 15_000,
        window_ms => 15_000,
        most => 20,
        bypass_msgs_s => 1,
        idle_s => 600,
        idle_msgs_s => 0.2,
        misplaced_msgs_s => 10,
        misplaced_ratio => 2,
        gateway_util => 0.8,
        gateway_bytes_s => 50_000_000,
        gateway_pending_bytes => 524_288,
        group_msgs_s => 5000,
        group_size => 10,
        hot_msgs_s => 100,
        hot_share => 0.5,
        process_share => 0.8,
        atom_share => 0.8,
        port_share => 0.8,
        ets_share => 0.8,
        mem_ratio => 4,
        mem_bytes => 536_870_912,
        queue_msgs => 10_000,
        busy_util => 0.95,
        run_queue => 50,
        probe_pct => 1,
        probe_core_pct => 0.5
    }.

-doc "Checks that thresholds are known, and numbers from 0.001 (rules divide by them) to 1.0e15.".
-spec validate(term()) -> ok | {error, {bad_config, [term()], term(), Expected :: string()}}.
validate(#{} = Given) ->
    Known = thresholds(),
    Bad = fun
        (Key, _) when not is_map_key(Key, Known) ->
            {true, "one of " ++ lists:flatten(
                lists:join(", ", [atom_to_list(K) || K <- lists:sort(maps:keys(Known))])
            )};
        (_, Value) when is_number(Value), Value >= ?LEAST, Value =< ?MOST -> false;
        (_, _) -> {true, "a number from 0.001 to 1.0e15"}
    end,
    case [{Key, Value, Expected} || Key := Value <- Given, {true, Expected} <- [Bad(Key, Value)]] of
        [] -> ok;
        [{Key, Value, Expected} | _] -> {error, {bad_config, [thresholds, Key], Value, Expected}}
    end;
validate(Other) ->
    {error, {bad_config, [thresholds], Other, "a map of thresholds to numbers"}}.

-doc "The kinds of findings.".
-spec kinds() -> [atom()].
kinds() ->
    [
        bypass, idle_link, misplaced_node, gateway_saturated, group_too_large, hot_name,
        not_converged, no_coordinator, majority_lost, node_down, node_alarm, limit_near,
        memory_outlier, long_queue, overloaded, not_watched, samples_lost, probe_cost, one_monitor
    ].

-doc """
The findings after another check. `Frames` are newest first, as many as the window needs; `Details`
of the nodes that have any. Without a frame nothing changes.
""".
-spec check(sderl_mon_types:topology(), [sderl_mon_types:frame()],
            #{sderl_mon_types:id() => sderl_mon_types:detail()}, state()) ->
    {[sderl_mon_types:finding()], state()}.
check(_, [], _, #{seen := Seen} = State) ->
    {shown(Seen, State), State};
check(Topology, Frames, Details,
      #{limits := #{window_ms := WindowMs} = Limits, seen := Seen} = State) ->
    #{t := Now} = View = sderl_mon_find_view:new(Topology, Frames, Details, WindowMs),
    Candidates = #{id(C) => C || Rule <- rules(), C <- Rule(View, Limits)},
    Seen1 = maps:merge(kept(Candidates, Seen, Now, Limits), stepped(Candidates, Seen, Now, Limits)),
    State1 = State#{seen := Seen1},
    {shown(Seen1, State1), State1}.

rules() ->
    [
        fun sderl_mon_find_traffic:candidates/2,
        fun sderl_mon_find_place:candidates/2,
        fun sderl_mon_find_load:candidates/2,
        fun sderl_mon_find_node:candidates/2,
        fun sderl_mon_find_watch:candidates/2
    ].

id(#{kind := Kind, where := Where}) ->
    iolist_to_binary(lists:join(<<"|">>, [atom_to_binary(Kind) | [map_get(Key, Where)
                                                                  || Key <- [group, node, from, to],
                                                                     is_map_key(Key, Where)]])).

%% Shown findings that no rule gives now stay for a while.
kept(Candidates, Seen, Now, Limits) ->
    #{
        Id => Of
     || Id := #{shown := true, last := Last, candidate := Candidate} = Of <- Seen,
        not is_map_key(Id, Candidates),
        Now - Last < clear_ms(Candidate, Limits)
    }.

stepped(Candidates, Seen, Now, Limits) ->
    Steps = [{Id, step(Candidate, maps:get(Id, Seen, none), Now, Limits)}
             || Id := Candidate <- Candidates],
    #{Id => Of || {Id, #{} = Of} <- Steps}.

step(Candidate, #{shown := true} = Before, Now, _) ->
    Before#{last := Now, candidate := Candidate};
step(#{grade := near}, _, _, _) ->
    none;
step(Candidate, Before, Now, Limits) ->
    First = case Before of #{first := At} -> At; none -> Now end,
    #{first => First, last => Now, shown => Now - First >= hold_ms(Candidate, Limits),
      candidate => Candidate}.

hold_ms(#{fast := true}, #{hold_fast_ms := Ms}) -> Ms;
hold_ms(_, #{hold_ms := Ms}) -> Ms.

clear_ms(#{fast := true}, #{hold_fast_ms := Ms}) -> Ms;
clear_ms(_, #{clear_ms := Ms}) -> Ms.

shown(Seen, #{limits := #{most := Most}}) ->
    All = [{C, finding(Id, Of)} || Id := #{shown := true, candidate := C} = Of <- Seen],
    Kinds = lists:uniq([Kind || {#{kind := Kind}, _} <- All]),
    Bounded = lists:append([bounded([Of || {#{kind := K}, _} = Of <- All, K =:= Kind],
                                    max(1, trunc(Most)))
                            || Kind <- Kinds]),
    lists:sort(fun(A, B) -> order(A) =< order(B) end, Bounded).

%% The worst of a kind, and how many others there are.
bounded(Of, Most) ->
    Sorted = [Finding
              || {_, Finding} <- lists:sort(fun({#{weight := A}, #{id := I}},
                                                {#{weight := B}, #{id := J}}) ->
                  {-A, I} =< {-B, J}
              end, Of)],
    case length(Sorted) - Most of
        More when More > 0 ->
            [#{text := Text, evidence := Evidence} = First | Rest] = lists:sublist(Sorted, Most),
            %% In the text, too, because an alarm made of the finding has only that.
            [First#{
                text := sderl_mon_text:text("~ts (the worst; ~b more of this kind are not listed)",
                                            [Text, More]),
                evidence := Evidence ++
                    [sderl_mon_find:evidence("more of this kind, not listed", More, "findings")]
             } | Rest];
        _ ->
            Sorted
    end.

order(#{severity := Severity, kind := Kind, since := Since, id := Id}) ->
    Rank = #{critical => 1, warning => 2, info => 3},
    {map_get(Severity, Rank), Kind, Since, Id}.

finding(Id, #{first := First, last := Last, candidate := Candidate}) ->
    Said = maps:with([kind, severity, where, text, evidence, remedy, saves], Candidate),
    Said#{id => Id, since => First, t => Last}.
