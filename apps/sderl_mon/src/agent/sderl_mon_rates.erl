%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_rates).
-moduledoc """
The rates between two samples of a node, per second.

Pure. A sample has counters that only grow as long as the node lives; the rate is the difference
over the time that has passed by *the node's* clock, so late messages and other clocks do not
matter. A node that was restarted in between (its clock or a counter went back), or is read in
another way now, has no rates until the next sample. A value that only one of the samples has gets
no rate: it was not counted before, or could not be read, and the difference would be everything
since the node began.

A link is reported by its sender (`links`). The receiver reports incoming traffic too (`heard`), for
links whose sender reports nothing, because it is not watched, does not answer, or its counts cannot
be read. The traffic with the monitoring nodes is the cost of watching, and is kept apart:
`mon_msgs_s` and `mon_bytes_s`, in and out together.
""".

-export([here/2, between/3, joined/2, detail/3, lost/2]).
-export_type([context/0, rates/0]).

-type sample() :: sderl_mon_samples:sample().

-doc "The monitoring nodes.".
-type context() :: #{monitors := [node()]}.

-type rates() :: #{
    node := sderl_mon_types:node_sample(),
    links := #{sderl_mon_types:link() => sderl_mon_types:flow()},
    heard := #{sderl_mon_types:link() => sderl_mon_types:flow()},
    kinds := #{atom() => sderl_mon_types:flow()},
    peers := #{node() => #{atom() => number()}},
    groups := #{sderl_mon_types:id() => sderl_mon_types:group_sample()},
    routed := #{sderl_mon_types:edge() => number()},
    lost := #{atom() => non_neg_integer()}
}.

%% Gauges that are passed on as they are, with their names from here on.
-define(GAUGES, [
    {run_queue, run_queue}, {procs, procs}, {mem_total, mem}, {mq_max, mq_max}, {names, names},
    {ports, ports},
    {atoms, atoms}, {ets, ets}, {mem_processes, mem_processes}, {mem_binary, mem_binary},
    {mem_ets, mem_ets},
    %% Probes read collections seldom, and compute the rate themselves.
    {gc_s, gc_s}, {gc_words_s, gc_words_s},
    {host_cpu, host_cpu}, {host_mem, host_mem}, {host_mem_total, host_mem_total}
]).

-define(COUNTERS, [
    {reductions, reds_s}, {gcs, gc_s}, {gc_words, gc_words_s}, {registrations, regs_s},
    {unregistrations, unregs_s},
    {failed_registrations, failed_regs_s}, {forwarded, forwarded_s}, {delivered, delivered_s},
    {undelivered, undelivered_s}, {io_in, io_in_bytes_s}, {io_out, io_out_bytes_s}
]).

-define(FLOWS, [out_msgs, out_bytes, in_msgs, in_bytes]).

-doc """
Replaces the times of a sample that has just arrived (`at`, and those of events) by ours. The times
by the node's own clock stay as `node_at` and `node_t`: they may differ much from ours, and are the
same for every receiver.
""".
-spec here(sample(), sderl_mon_types:t()) -> sample().
here(#{at := At} = Sample, Now) ->
    Events = [E#{t := T + Now - At, node_t => T} || #{t := T} = E <- maps:get(events, Sample, [])],
    Sample#{at := Now, node_at => At, events => Events}.

-doc "The rates from the sample before, if there is one, to this one.".
-spec between(sample() | undefined, sample(), context()) -> rates().
between(Before, Now, Context) ->
    Gauges = gauges(Now),
    case span_us(Before, Now) of
        none ->
            #{node => maps:merge(Gauges, app_metrics(#{}, Now, none)), links => #{}, heard => #{},
              kinds => #{}, peers => #{}, groups => #{}, routed => #{}, lost => #{}};
        Span ->
            Peers = peers(Before, Now, Span),
            {Out, In} = links(Now, Peers, Context),
            #{
                node => lists:foldl(fun maps:merge/2, Gauges,
                                    [node_rates(Before, Now, Span), sums(Peers, Context),
                                     app_metrics(Before, Now, Span)]),
                links => Out,
                heard => In,
                kinds => kinds(Before, Now, Span),
                peers => Peers,
                groups => groups(Before, Now, Span),
                routed => routed(Before, Now, Span),
                lost => lost(maps:get(lost, Before, #{}), Now)
            }
    end.

%% `none`: there is nothing to compare with.
span_us(undefined, _) ->
    none;
%% A probe's counters contain more than what is seen from outside.
span_us(#{source := Was}, #{source := Is}) when Was =/= Is ->
    none;
span_us(#{mono_us := T0, counters := C0}, #{mono_us := T1, counters := C1}) when T1 > T0 ->
    case [K || K := V0 <- C0, V1 <- [maps:get(K, C1, V0)], V1 < V0] of
        [] -> T1 - T0;
        _ -> none
    end;
span_us(_, _) ->
    none.

per_s(Delta, SpanUs) -> Delta * 1_000_000 / SpanUs.

gauges(#{gauges := Gauges}) ->
    #{Name => V || {Key, Name} <- ?GAUGES, {ok, V} <- [maps:find(Key, Gauges)], is_number(V)}.

node_rates(#{counters := C0} = Before, #{counters := C1} = Now, Span) ->
    Simple = #{Name => per_s(D, Span) || {Key, Name} <- ?COUNTERS, {ok, D} <- [delta(Key, C0, C1)]},
    maps:merge(Simple, maps:merge(util(Before, Now), cpu(C0, C1, Span))).

delta(Key, C0, C1) ->
    case {C0, C1} of
        {#{Key := V0}, #{Key := V1}} when is_number(V0), is_number(V1) -> {ok, max(0, V1 - V0)};
        _ -> none
    end.

util(Before, Now) ->
    case [U || {_, normal, U} <- utils(Before, Now)] of
        [] -> #{};
        Us -> #{util => lists:sum(Us) / length(Us)}
    end.

%% By scheduler: {Id, Type, 0..1}.
utils(undefined, _) ->
    [];
utils(Before, Now) ->
    Old = #{Id => {Active, Total} || {Id, _, Active, Total} <- maps:get(sched, Before, [])},
    [
        {Id, Type, min(1.0, max(0, Active - A0) / (Total - T0))}
     || {Id, Type, Active, Total} <- maps:get(sched, Now, []),
        {ok, {A0, T0}} <- [maps:find(Id, Old)],
        Total > T0
    ].

cpu(C0, C1, Span) ->
    case {delta(runtime_us, C0, C1), delta(probe_us, C0, C1)} of
        {{ok, Cpu}, {ok, Probe}} when Cpu > 0 ->
            #{cpu_pct => 100 * Cpu / Span, probe_pct => min(100.0, 100 * Probe / Cpu)};
        {{ok, Cpu}, _} -> #{cpu_pct => 100 * Cpu / Span};
        _ -> #{}
    end.

%% The counters of a link that is new, or was closed and opened again, began at 0. A link whose
%% counters cannot be read is left out.
peers(Before, Now, Span) ->
    Old = #{Peer => Link || #{node := Peer} = Link <- maps:get(links, Before, [])},
    #{
        Peer => #{Key => per_s(grown(maps:get(Key, Was, 0), maps:get(Key, Link, 0)), Span)
                  || Key <- ?FLOWS}
     || #{node := Peer} = Link <- maps:get(links, Now, []),
        Was <- [maps:get(Peer, Old, #{})],
        counted(Was),
        counted(Link)
    }.

counted(Link) -> maps:get(counts, Link, known) =/= unknown.

grown(V0, V1) when is_number(V0), is_number(V1), V1 >= V0 -> V1 - V0;
grown(_, V1) when is_number(V1) -> V1;
grown(_, _) -> 0.

sums(Peers, #{monitors := Monitors}) ->
    {Own, Others} = lists:partition(fun({Peer, _}) -> lists:member(Peer, Monitors) end,
                                    maps:to_list(Peers)),
    Sum = fun(Key, List) -> lists:sum([maps:get(Key, Flow) || {_, Flow} <- List]) end,
    #{
        in_msgs_s => Sum(in_msgs, Others),
        in_bytes_s => Sum(in_bytes, Others),
        out_msgs_s => Sum(out_msgs, Others),
        out_bytes_s => Sum(out_bytes, Others),
        mon_msgs_s => Sum(in_msgs, Own) + Sum(out_msgs, Own),
        mon_bytes_s => Sum(in_bytes, Own) + Sum(out_bytes, Own)
    }.

%% A link whose traffic nobody can count is there all the same.
links(#{node := Node} = Now, Peers, #{monitors := Monitors}) ->
    Id = sderl_mon_types:id(Node),
    Shown = [{sderl_mon_types:id(Peer), maps:get(Peer, Peers, unknown)}
             || #{node := Peer} <- maps:get(links, Now, []), not lists:member(Peer, Monitors)],
    {
        #{{Id, Peer} => {Msgs, Bytes} || {Peer, #{out_msgs := Msgs, out_bytes := Bytes}} <- Shown},
        #{{Peer, Id} => case Flow of
            #{in_msgs := Msgs, in_bytes := Bytes} -> {Msgs, Bytes};
            unknown -> {0, 0}
        end || {Peer, Flow} <- Shown}
    }.

kinds(Before, Now, Span) ->
    Old = maps:get(kinds, Before, #{}),
    #{Kind => kind(Was, Cum, Span)
      || Kind := Cum <- maps:get(kinds, Now, #{}), {ok, Was} <- [maps:find(Kind, Old)]}.

kind({Msgs0, Bytes0}, {Msgs, Bytes}, Span) ->
    {per_s(grown(Msgs0, Msgs), Span), per_s(grown(Bytes0, Bytes), Span)}.

%% The registrations of clients on this node, by group. A group counts as new, from 0, only if the
%% sample before came from a running library (it has the same kinds).
groups(Before, Now, Span) ->
    Old = maps:get(groups, Before, #{}),
    Told = maps:keys(maps:get(kinds, Now, #{})) -- maps:keys(maps:get(kinds, Before, #{})) =:= [],
    #{
        Group => writes(Was, Cum, Span)
     || Group := Cum <- maps:get(groups, Now, #{}),
        Was <- case Old of #{Group := Known} -> [Known]; #{} when Told -> [{0, 0, 0}]; #{} -> [] end
    }.

writes({R0, U0, F0}, {R, U, F}, Span) ->
    #{regs_s => per_s(grown(R0, R), Span), unregs_s => per_s(grown(U0, U), Span),
      failed_regs_s => per_s(grown(F0, F), Span)}.

%% Routed messages that this node passed on, by group edge. A new edge began at 0, because the same
%% probe counted both times.
routed(#{edges := Was}, #{edges := Is}, Span) ->
    Old = #{{From, To} => Msgs || #{from := From, to := To, msgs := Msgs} <- Was},
    #{
        {From, To} => per_s(grown(maps:get({From, To}, Old, 0), Msgs), Span)
     || #{from := From, to := To, msgs := Msgs} <- Is
    };
routed(_, _, _) ->
    #{}.

%% The application's own metrics. A new total began at 0, because the same table counted both times;
%% a table that is new has no rates until the next sample.
app_metrics(Before, #{metrics := #{since := Since, values := Now}}, Span) ->
    Was = case Before of
        #{metrics := #{since := Since, values := Old}} -> Old;
        #{} -> none
    end,
    #{Series => V || Series := Told <- Now, {ok, V} <- [app_metric(Series, Told, Was, Span)]};
app_metrics(_, _, _) ->
    #{}.

app_metric(_, {value, Value}, _, _) -> {ok, Value};
app_metric(_, {total, _}, Was, Span) when Was =:= none; Span =:= none -> none;
app_metric(Series, {total, Total}, Was, Span) ->
    {_, Before} = maps:get(Series, Was, {total, 0}),
    {ok, per_s(Total - Before, Span)}.

-doc """
The events that were left out since these counts; for an agent without earlier counts, since those
that another agent has acknowledged.
""".
-spec lost(#{atom() => non_neg_integer()} | undefined, sample()) -> #{atom() => non_neg_integer()}.
lost(undefined, Now) ->
    lost(maps:get(lost_acked, Now, maps:get(lost, Now, #{})), Now);
lost(Old, Now) ->
    #{Key => D
      || Key := V <- maps:get(lost, Now, #{}), D <- [grown(maps:get(Key, Old, 0), V)], D > 0}.

-doc """
The later of two samples, of which no rates were made yet. What a sample has only for the time since
the one before is added up.
""".
-spec joined(sample(), sample()) -> sample().
joined(Before, Now) ->
    Migrations = added([{{From, To}, {N, 0}}
                        || S <- [Before, Now], {From, To, N} <- maps:get(migrations, S, [])]),
    Traffic = added([{maps:without([msgs, bytes], T), {M, B}}
                     || S <- [Before, Now],
                        #{msgs := M, bytes := B} = T <- maps:get(traffic, S, [])]),
    Now#{
        migrations => [{From, To, N} || {From, To} := {N, _} <- Migrations],
        traffic => [T#{msgs => M, bytes => B} || T := {M, B} <- Traffic]
    }.

added(List) ->
    lists:foldl(fun({Key, {A, B}}, Acc) ->
        maps:update_with(Key, fun({C, D}) -> {A + C, B + D} end, {A, B}, Acc)
    end, #{}, List).

%% ---------------------------------------------------------------- the page of a node

-doc "All that is known of a node at one time. `Facts` are the last ones that it sent.".
-spec detail({sample() | undefined, sample()}, rates(), sderl_mon_samples:facts() | #{}) ->
    sderl_mon_types:detail().
detail({Before, Now}, #{peers := Peers, kinds := Kinds}, Facts) ->
    #{node := Node, at := At, gauges := Gauges} = Now,
    Detail = #{
        t => At,
        node => sderl_mon_types:id(Node),
        source => maps:get(source, Now, stock),
        schedulers => schedulers(Before, Now, Facts),
        queues => maps:get(queues, Now, []),
        memory => memory(Gauges),
        top => maps:get(top, Now, []),
        migrations => [[From, To, N] || {From, To, N} <- maps:get(migrations, Now, [])],
        links => [link_detail(Link, Peers) || Link <- maps:get(links, Now, [])],
        kinds => Kinds,
        traffic => maps:get(traffic, Now, []),
        problems => maps:get(problems, Facts, []),
        alarms => maps:get(alarms, Facts, []),
        apps => maps:from_list(maps:get(apps, Facts, [])),
        limits => limits(Gauges),
        tracing => maps:get(tracing, Gauges, 0) =:= 1
    },
    Otp = #{otp => V || #{otp := V} <- [Facts]},
    Standing = maps:with([uptime_s, old_code, shell_bytes, utc_offset_s], Gauges),
    %% Counts since the last sample, with the time that they cover.
    Span = #{span_ms => max(1, (T1 - T0) div 1000)
             || #{mono_us := T0} <- [Before], #{mono_us := T1} <- [Now], T1 > T0},
    Clock = #{node_t => T || #{node_at := T} <- [Now]},
    lists:foldl(fun maps:merge/2, Detail, [Otp, Standing, Span, Clock]).

schedulers(Before, Now, Facts) ->
    Utils = #{Id => U || {Id, _, U} <- utils(Before, Now)},
    Places = #{Id => maps:with([socket, core], P) || #{scheduler := Id} = P <- places(Facts)},
    %% One queue for each normal scheduler, then that of the dirty ones.
    Normal = length([Id || {Id, normal, _, _} <- maps:get(sched, Now, [])]),
    Queues = maps:from_list(lists:enumerate(lists:sublist(maps:get(queues, Now, []), Normal))),
    [
        maps:merge(
            #{id => Id, type => Type},
            maps:merge(
                maps:merge(#{util => U || {ok, U} <- [maps:find(Id, Utils)]},
                           #{queue => Q || Type =:= normal, {ok, Q} <- [maps:find(Id, Queues)]}),
                maps:get(Id, Places, #{})
            )
        )
     || {Id, Type, _, _} <- maps:get(sched, Now, [])
    ].

places(#{cpu_topology := Places}) when is_list(Places) -> Places;
places(_) -> [].

memory(Gauges) ->
    Keys = [
        {mem_total, total}, {mem_processes, processes}, {mem_binary, binary}, {mem_ets, ets},
        {mem_atom, atom}, {mem_code, code}, {mem_system, system}
    ],
    #{Name => V || {Key, Name} <- Keys, {ok, V} <- [maps:find(Key, Gauges)]}.

limits(Gauges) ->
    Keys = [{procs, proc_limit}, {ports, port_limit}, {atoms, atom_limit}, {ets, ets_limit},
            {files, file_limit}, {modules, module_limit}, {disk, disk_limit}],
    #{Used => [U, L]
      || {Used, Limit} <- Keys, {ok, U} <- [maps:find(Used, Gauges)],
         {ok, L} <- [maps:find(Limit, Gauges)]}.

link_detail(#{node := Peer} = Link, Peers) ->
    Flow = maps:get(Peer, Peers, #{}),
    Rates = #{rate(Key) => V || Key := V <- Flow},
    maps:merge((maps:without([node | ?FLOWS], Link))#{node => sderl_mon_types:id(Peer)}, Rates).

rate(out_msgs) -> out_msgs_s;
rate(out_bytes) -> out_bytes_s;
rate(in_msgs) -> in_msgs_s;
rate(in_bytes) -> in_bytes_s.
