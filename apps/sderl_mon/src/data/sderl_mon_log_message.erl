%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_message).
-moduledoc """
The messages of the log: batches from a probe to its agent, what the agent makes of them for the
stores of all monitoring nodes, and the check of both. Pure.
""".

-export([check_batch/1, relay/4, check_relayed/1, events/2, levels/0, severity/1]).
-export_type([event/0, new_event/0, batch/0, relayed/0, lost/0, level/0, reason/0, missing/0]).

-import(sderl_mon_text, [text/2]).

-doc "The levels of `logger`.".
-type level() :: logger:level().

-doc """
An event as a store keeps it. `t` is by the clock of the monitoring node whose agent received it, in
Unix milliseconds, `node_t` by that of the node. `groups` are those that the node was in. Where
events were left out, an event says so, and `lost` is how many they were.
""".
-type event() :: #{
    id := pos_integer(),
    t := sderl_mon_types:t(),
    node_t := sderl_mon_types:t(),
    level := level(),
    node := sderl_mon_types:id(),
    groups := [sderl_mon_types:id()],
    mfa := binary(),
    pid := binary(),
    text := binary(),
    lost := non_neg_integer()
}.

-doc "An event that has no number (`id`) yet.".
-type new_event() :: #{
    t := sderl_mon_types:t(), node_t := sderl_mon_types:t(), level := level(),
    node := sderl_mon_types:id(), groups := [sderl_mon_types:id()], mfa := binary(),
    pid := binary(), text := binary(), lost := non_neg_integer()
}.

-doc "Events that a store lacks, by reason and level; `relay`: lost between monitoring nodes.".
-type missing() :: #{{reason() | relay, level() | unknown} => pos_integer()}.

-doc "Why events were left out on their node.".
-type reason() :: rate | queue.
-type lost() :: #{reason() => #{level() => pos_integer()}}.

-doc """
A batch of a probe (`sderl_mon_probe_batches`). `before` is how many events its collector (`run`)
has sent before; times are in microseconds.
""".
-type batch() :: #{
    v := 1,
    node := node(),
    run := integer(),
    seq := pos_integer(),
    at := integer(),
    before := non_neg_integer(),
    events := [{level(), integer(), binary(), binary(), binary()}],
    lost := lost()
}.

-doc """
The batch from an agent, which received it at `t`: ids in place of names, times in milliseconds.
""".
-type relayed() :: #{
    t := sderl_mon_types:t(),
    node := sderl_mon_types:id(),
    groups := [sderl_mon_types:id()],
    run := integer(),
    seq := pos_integer(),
    before := non_neg_integer(),
    events := [{level(), sderl_mon_types:t(), NodeT :: sderl_mon_types:t(), Mfa :: binary(),
                Pid :: binary(), Text :: binary()}],
    lost := lost()
}.

-define(EVENTS, 500).
-define(GROUPS, 32).
-define(TEXT, 4000).
-define(MFA, 300).
-define(PID, 300).
%% Longer than an event may wait on its node; a greater age comes from a clock that was set.
-define(OLDEST_MS, 60_000).

-doc "The most severe first.".
-spec levels() -> [level(), ...].
levels() -> [emergency, alert, critical, error, warning, notice, info, debug].

-doc "0 is the most severe.".
-spec severity(level()) -> 0..7.
severity(emergency) -> 0;
severity(alert) -> 1;
severity(critical) -> 2;
severity(error) -> 3;
severity(warning) -> 4;
severity(notice) -> 5;
severity(info) -> 6;
severity(debug) -> 7.

-doc "Whether a term is a batch of a probe.".
-spec check_batch(term()) -> {ok, batch()} | {error, not_a_batch}.
check_batch(#{v := 1, node := Node, at := At} = Batch) when is_atom(Node), is_integer(At) ->
    Good = is_common(Batch) andalso
        lists:all(fun({_, T, _, _, _}) -> is_integer(T); (_) -> false end, map_get(events, Batch)),
    case Good of true -> {ok, Batch}; false -> {error, not_a_batch} end;
check_batch(_) -> {error, not_a_batch}.

is_common(#{run := Run, seq := Seq, before := Before, events := Events, lost := Lost})
  when is_integer(Run), is_integer(Seq), Seq > 0, is_integer(Before), Before >= 0 ->
    is_short(Events, ?EVENTS) andalso is_lost(Lost) andalso lists:all(fun is_event/1, Events);
is_common(_) -> false.

%% The guard fails for an improper list.
is_short(List, Most) when length(List) =< Most -> true;
is_short(_, _) -> false.

is_event({Level, _, Mfa, Pid, Text}) -> is_worded(Level, Mfa, Pid, Text);
is_event({Level, T, NodeT, Mfa, Pid, Text}) when is_integer(T), is_integer(NodeT) ->
    is_worded(Level, Mfa, Pid, Text);
is_event(_) -> false.

is_worded(Level, Mfa, Pid, Text) ->
    lists:member(Level, levels()) andalso
        lists:all(fun({Binary, Most}) -> is_binary(Binary) andalso byte_size(Binary) =< Most end,
                  [{Mfa, ?MFA}, {Pid, ?PID}, {Text, ?TEXT}]).

is_lost(#{} = Lost) ->
    maps:size(Lost) =< 2 andalso
        lists:all(fun({Reason, By}) ->
            (Reason =:= rate orelse Reason =:= queue) andalso is_counts(By)
        end, maps:to_list(Lost));
is_lost(_) -> false.

is_counts(#{} = By) ->
    lists:all(fun({Level, N}) ->
        lists:member(Level, levels()) andalso is_integer(N) andalso N >= 0 andalso N < 1 bsl 60
    end, maps:to_list(By));
is_counts(_) -> false.

-doc "What an agent passes on: `Now` is by its own clock.".
-spec relay(batch(), sderl_mon_types:id(), [sderl_mon_types:id()], sderl_mon_types:t()) ->
    relayed().
relay(#{at := At, events := Events} = Batch, Node, Groups, Now) ->
    (maps:with([run, seq, before, lost], Batch))#{
        t => Now, node => Node, groups => lists:sublist(Groups, ?GROUPS),
        events => [{Level, Now - age(At - T), T div 1000, Mfa, Pid, Text}
                   || {Level, T, Mfa, Pid, Text} <- Events]
    }.

age(Us) -> max(0, min(?OLDEST_MS, Us div 1000)).

-doc "Whether a term is what an agent passes on; its texts are UTF-8 then.".
-spec check_relayed(term()) -> {ok, relayed()} | {error, not_a_batch}.
check_relayed(#{t := T, node := Node, groups := Groups, events := Events} = Relayed)
  when is_integer(T) ->
    Good = sderl_mon_shape:fits(id, Node) andalso is_short(Groups, ?GROUPS)
        andalso sderl_mon_shape:fits({list, id}, Groups) andalso is_common(Relayed)
        andalso lists:all(fun(Event) -> tuple_size(Event) =:= 6 end, Events),
    case Good of
        true ->
            Keys = [node, groups, run, seq, before, lost],
            {ok, (maps:with(Keys, Relayed))#{t => time(T), events => [clean(E) || E <- Events]}};
        false -> {error, not_a_batch}
    end;
check_relayed(_) -> {error, not_a_batch}.

%% Times are clamped to what calendars can show, and searches find.
clean({Level, T, NodeT, Mfa, Pid, Text}) ->
    {Level, time(T), time(NodeT), sderl_mon_text:cut(Mfa, ?MFA), sderl_mon_text:cut(Pid, ?PID),
     sderl_mon_text:cut(Text, ?TEXT)}.

time(T) -> max(0, min(T, 1 bsl 53)).

-doc """
The events of a batch as a store keeps them, but without numbers. If events were left out before
them, the first one says so.
""".
-spec events(relayed(), missing()) -> [new_event()].
events(#{t := Now, node := Node, groups := Groups, events := Events}, Lost) ->
    Base = #{node => Node, groups => Groups, lost => 0},
    Told = [Base#{t => T, node_t => NodeT, level => Level, mfa => Mfa, pid => Pid, text => Text}
            || {Level, T, NodeT, Mfa, Pid, Text} <- Events],
    case map_size(Lost) of
        0 -> Told;
        _ ->
            T = lists:min([Now | [T || #{t := T} <- Told]]),
            NodeT = lists:min([Now | [T1 || #{node_t := T1} <- Told]]),
            [Base#{t => T, node_t => NodeT, level => worst(Lost), mfa => <<>>, pid => <<>>,
                   text => left_out(Lost), lost => min(sum(Lost), 1 bsl 32 - 1)} | Told]
    end.

%% An event of unknown level may be an error.
worst(Lost) ->
    Severity = lists:min([case Level of unknown -> severity(error); _ -> severity(Level) end
                          || {_, Level} := _ <- Lost]),
    lists:nth(Severity + 1, levels()).

sum(Lost) -> lists:sum(maps:values(Lost)).

left_out(Lost) ->
    By = [[lists:join(", ", Counts), " (", why(Reason), ")"]
          || Reason <- [rate, queue, relay], [_ | _] = Counts <- [counts(Reason, Lost)]],
    text("~b events are left out here: ~ts", [sum(Lost), lists:join("; ", By)]).

counts(Reason, Lost) ->
    [text("~b ~ts", [N, Level]) || {R, Level} := N <- maps:iterator(Lost, ordered), R =:= Reason].

why(rate) -> "more than the node may tell in a second";
why(queue) -> "the monitoring node did not take them in time";
why(relay) -> "lost between the monitoring nodes".
