%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe).
-moduledoc """
The process on a monitored node: it counts there and sends samples (the sample of
[monitoring](monitoring.md)) to its owner, an agent on a monitoring node.

It and the modules beside it (`sderl_mon_probe_code`) need stock OTP (27 or newer) and nothing
else of ours, so that they can be loaded into a running node. Where the application `sderl` runs, it
asks that too.

- **Bounded.** At most one sample is under way; while it is not acknowledged
  (`{sderl_mon_ack, Seq}`) nothing is sent, and what happens goes into the next one: counters are
  cumulative, and of events the first 500 are kept and the rest counted (`lost`).
- **It never waits for the owner** (`noconnect`, `nosuspend`), nor for a process of the node: what
  may wait (`s_group:info/0`, looking at processes) runs in helpers.
- **A lease.** Without an acknowledgement for 15 s it ends and undoes all that it has set; what was
  loaded into the node is deleted again.
- **Nobody else's settings are touched.** System monitor events come through a session of their own
  (`sderl_mon_probe_system`), and so do traces; the log through a handler (`sderl_mon_probe_log`).

`probe_us` is an estimate of the processor time of all that, in microseconds, by kinds of work
(`sderl_mon_probe_work`). It includes the helpers and the tracer, but not the cost of the link to
the owner.
""".

-export([start/1, stop/0, code/0, names/2, lookup/2, process/1, trace/1]).
-export([init/1]).

-import(sderl_mon_probe_text, [text/2]).
-import(sderl_mon_probe_work, [magnitude/1, message/3, now_ms/0, now_us/0]).

-define(LEASE_MS, 15_000).
-define(EARLY_MS, 50).
-define(SLOW_MS, 10_000).
%% A sample takes some thousand words, and is to fit without a collection of garbage.
-define(HEAP_WORDS, 10_000).
%% A helper that says nothing for so long is ended.
-define(PATIENCE_MS, 30_000).

-record(s, {
    owner :: pid(),
    friends :: all | [node()],
    term :: integer(),
    interval :: pos_integer(),
    lease = ?LEASE_MS :: pos_integer(),
    top = 10 :: pos_integer(),
    seq = 0 :: non_neg_integer(),
    acked :: integer(),
    next :: integer(),
    last :: integer(),
    early = false :: boolean(),
    %% The sample under way: its number, when it was sent, its seldom() parts, its `lost`.
    out = none :: none | {pos_integer(), integer(), seldom(), #{atom() => non_neg_integer()}},
    events = sderl_mon_probe_events:new() :: sderl_mon_probe_events:events(),
    %% The counts of left-out events, and the part that an owner has acknowledged.
    lost = #{} :: #{atom() => non_neg_integer()},
    lost_acked = #{} :: #{atom() => non_neg_integer()},
    counts = #{} :: #{atom() => non_neg_integer()},
    %% The parts that seldom change, as the owner has them.
    told = #{} :: seldom(),
    ids = #{} :: #{term() => binary()},
    rare = none :: none | sderl_mon_probe_runtime:rare(),
    known = #{} :: sderl_mon_probe_slow:known(),
    slow = none :: none | {pid(), integer()},
    slow_at = 0 :: integer(),
    links = #{} :: sderl_mon_probe_links:links(),
    sockets = #{} :: sderl_mon_probe_links:sockets(),
    %% The scanner, its results, since when it owes an answer, and the events whose processes it is
    %% asked to name.
    scanner :: pid(),
    scan = #{top => [], mq_max => 0} :: sderl_mon_probe_look:found(),
    scanning = none :: none | integer(),
    naming = none :: none | {sderl_mon_probe_system:seen(), integer()},
    sysmon :: sderl_mon_probe_system:watch(),
    sys = #{} :: sderl_mon_probe_system:seen(),
    tracer = none :: none | pid(),
    collector = none :: sderl_mon_probe_collector:collector(),
    meter = none :: sderl_mon_probe_meter:meter(),
    edges = #{} :: sderl_mon_probe_library:edges(),
    %% The results of traces: in the sample under way, and since.
    traced = {#{}, #{}} :: {sderl_mon_probe_trace:flows(), sderl_mon_probe_trace:flows()},
    work = sderl_mon_probe_work:new() :: sderl_mon_probe_work:work(),
    us = 0.0 :: float(),
    pushed = {0, 0} :: {integer(), integer()}
}).

-type seldom() :: #{facts => sderl_mon_samples:facts(), top => [sderl_mon_types:process()]}.

%% ---------------------------------------------------------------- interface

-doc """
Starts the probe of this node, or takes it over. `term`: the owner with the highest term has the
probe; `friends`: the nodes whose owners may take it over at any time. `lease_ms`: 15,000.

Errors: `{bad_option, Key, Value}`, `{term, T}` (a later owner has it), `{busy, Node}` (an owner
elsewhere, which answers), `timeout`.
""".
-spec start(sderl_mon_probe_lease:options()) ->
    {ok, pid()}
    | {error, {term, integer()} | {busy, node()} | timeout | {bad_option, term(), term()} | term()}.
start(#{owner := _} = Opts) ->
    case {sderl_mon_probe_lease:check_options(Opts), whereis(?MODULE)} of
        {{error, _} = Error, _} -> Error;
        {ok, undefined} ->
            case proc_lib:start(?MODULE, init, [Opts], 5000,
                                [{message_queue_data, off_heap}, {fullsweep_after, 20},
                                 {min_heap_size, ?HEAP_WORDS}]) of
                {error, {running, _}} -> ask({start, Opts});
                Answer -> Answer
            end;
        {ok, _} -> ask({start, Opts})
    end.

-doc "Ends the probe of this node; returns when it has ended, or an error if it has not in 15 s.".
-spec stop() -> ok | {error, timeout}.
stop() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid ->
            Mon = monitor(process, Pid),
            Pid ! {?MODULE, stop},
            receive
                {'DOWN', Mon, process, _, _} -> ok
            after 15_000 ->
                true = demonitor(Mon, [flush]), {error, timeout}
            end
    end.

-doc "The modules to load into another node, as `code:load_binary/3` takes them.".
-spec code() -> [{module(), string(), binary()}].
code() -> sderl_mon_probe_code:code().

-doc "See `sderl_mon_probe_names:names/3`.".
-spec names(Group :: term(), sderl_mon_types:names_opts()) ->
    {ok, sderl_mon_types:names()} | {error, no_group | not_running | busy}.
names(Group, Opts) ->
    sderl_mon_probe_names:names(Group, Opts, fun(G) ->
        case ask({total, G}) of {ok, N} -> N; {error, _} -> none end
    end).

-doc "See `sderl_mon_probe_names:lookup/2`.".
-spec lookup(Group :: term(), binary()) ->
    {ok, sderl_mon_types:name()} | {error, not_found | timeout | no_group | not_running | busy}.
lookup(Group, Name) -> sderl_mon_probe_names:lookup(Group, Name).

-doc "See `sderl_mon_probe_look:process/1`.".
-spec process(binary() | string()) ->
    {ok, sderl_mon_types:process()} | {error, bad_pid | dead | busy}.
process(Pid) -> sderl_mon_probe_look:process(Pid).

-doc "See `sderl_mon_probe_trace:trace/2`.".
-spec trace(sderl_mon_types:trace_opts()) -> {ok, sderl_mon_types:traced()} | {error, term()}.
trace(Opts) -> sderl_mon_probe_trace:trace(Opts, fun(Wanted) -> ask({trace, Wanted}) end).

ask(Request) ->
    case whereis(?MODULE) of
        undefined -> {error, not_running};
        Pid ->
            Mon = monitor(process, Pid, [{alias, reply_demonitor}]),
            Pid ! {?MODULE, Mon, Request},
            receive
                {Mon, Answer} -> Answer;
                {'DOWN', Mon, process, _, _} -> {error, not_running}
            after 5000 -> true = demonitor(Mon, [flush]), {error, timeout}
            end
    end.

%% ---------------------------------------------------------------- the process

-doc false.
-spec init(map()) -> no_return().
init(#{owner := Owner} = Opts) ->
    try register(?MODULE, self()) of
        true -> ok
    catch error:badarg ->
        proc_lib:init_fail({error, {running, node()}}, {exit, normal})
    end,
    %% Not the group leader of the calling node, to which this process would be tied.
    true = group_leader(whereis(init), self()),
    _ = process_flag(trap_exit, true),
    _ = erlang:system_flag(scheduler_wall_time, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    Now = now_ms(),
    S = #s{owner = Owner, friends = all, term = 0, interval = 1000, acked = Now, next = Now,
           last = Now - 1000, scanner = sderl_mon_probe_look:start(self()),
           sysmon = sderl_mon_probe_system:start(self())},
    proc_lib:init_ack({ok, self()}),
    {timed, _, First} = tick(owned(Opts, S#s{slow_at = Now})),
    loop(First).

owned(#{owner := Owner} = Opts, S) ->
    (take_back(S))#s{
        owner = Owner, friends = maps:get(friends, Opts, all), term = maps:get(term, Opts, 0),
        acked = now_ms(), interval = max(50, maps:get(interval_ms, Opts, 1000)),
        lease = maps:get(lease_ms, Opts, ?LEASE_MS), top = min(50, maps:get(top, Opts, 10)),
        told = #{}
    }.

%% The content of the sample under way goes into the next one too.
take_back(#s{events = Events, traced = {Out, New}} = S) ->
    S#s{out = none, events = sderl_mon_probe_events:take_back(Events),
        traced = {#{}, sderl_mon_probe_trace:added(Out, New)}}.

-spec loop(#s{}) -> no_return().
loop(S) ->
    receive M ->
        T = now_us(),
        {Kind, New} = case handle(M, S) of
            {timed, K, Timed} -> {K, Timed};
            Done -> {message(M, sderl_mon_probe_events:count(Done#s.events),
                             sderl_mon_probe_events:count(S#s.events)), Done}
        end,
        loop(New#s{work = sderl_mon_probe_work:add(Kind, 1, 1 + now_us() - T, New#s.work)})
    end.

handle({tick, At}, #s{next = At} = S) -> tick(S);
handle({sderl_mon_ack, Seq}, #s{out = {Seq, _, Told, Lost}, owner = Owner} = S) ->
    S#s{out = none, told = Told, lost_acked = Lost, acked = now_ms(),
        collector = sderl_mon_probe_collector:resume(Owner, S#s.collector),
        events = sderl_mon_probe_events:acknowledge(S#s.events),
        traced = {#{}, element(2, S#s.traced)}};
handle({?MODULE, stop}, S) -> ended(S);
handle({?MODULE, Ref, Request}, S) when is_reference(Ref) -> asked(Request, Ref, S);
handle({sderl_mon_log_wanted, Owner, Wanted}, #s{owner = Owner, collector = Collector} = S) ->
    S#s{collector = sderl_mon_probe_collector:want(Wanted, Owner, Collector)};
handle({sderl_mon_metrics_wanted, Owner, Wanted}, #s{owner = Owner, meter = Meter} = S) ->
    S#s{meter = sderl_mon_probe_meter:want(Wanted, Meter)};
handle({traced, Pid, Took, Flows, Lost, Texts},
       #s{tracer = Pid, traced = {Out, New}, lost = Old, us = Us} = S0) ->
    S = S0#s{us = Us + Took, traced = {Out, sderl_mon_probe_trace:added(New, Flows)},
             lost = maps:merge_with(fun(_, A, B) -> A + B end, Old, Lost)},
    lists:foldl(fun({Kind, Text}, A) -> event(Kind, notice, Text, #{}, A) end, S, Texts);
handle({Up, Node, Info}, S)
  when (Up =:= nodeup orelse Up =:= nodedown), is_atom(Node), is_map(Info) ->
    node_event(Up, Node, Info, S);
handle({s_group_event, _, _, {event, Level, Kind, Meta}}, S) when is_atom(Kind), is_map(Meta) ->
    {Its, Text, More} = sderl_mon_probe_events:describe_told(Kind, Level, Meta),
    push_soon(event(Kind, Its, Text, More,
                    count_up(group_events, S#s{slow_at = min(S#s.slow_at, now_ms() + 100)})));
handle({monitor, Who, Kind, What}, S) -> sysmon_event(Kind, Who, What, S);
handle({slow, Pid, Wall, Known, Sockets},
       #s{slow = {Pid, Since}, slow_at = At, known = Old, work = Work, sockets = Had} = S) ->
    %% After an event in the meantime the library is asked again at once.
    S#s{slow = none, known = maps:merge(Old, Known), sockets = maps:merge(Had, Sockets),
        slow_at = case At < Since + ?SLOW_MS of
            true -> At;
            false -> now_ms() + sderl_mon_probe_library:pause_ms(Wall, Known)
        end,
        work = sderl_mon_probe_work:add({slow, is_map_key(sup, Old)}, 1, Wall, Work)};
handle({scanned, Pid, Works, Scan}, #s{scanner = Pid, work = Work} = S) ->
    S#s{scanning = none, scan = maps:merge(S#s.scan, Scan),
        work = sderl_mon_probe_work:add(Works, Work)};
handle({named, Pid, Works, Names}, #s{scanner = Pid, work = Work} = S) ->
    named(Names, S#s{work = sderl_mon_probe_work:add(Works, Work)});
handle(early, S) -> send_sample(S#s{early = false});
handle({'EXIT', Pid, Why}, #s{scanner = Pid} = S) ->
    count_up(helpers_failed,
             event(probe_failed, warning, text("the look at processes failed: ~0tP", [Why, 20]),
                   #{}, scanner_again(S)));
handle({'EXIT', Pid, Why}, #s{slow = {Pid, _}} = S) ->
    count_up(helpers_failed, event(probe_failed, warning,
                                   text("asking the application sderl failed: ~0tP", [Why, 20]),
                                   #{}, S#s{slow = none, slow_at = now_ms() + ?SLOW_MS}));
handle({'EXIT', Pid, Why}, #s{collector = {Pid, _} = Collector, owner = Owner} = S) ->
    S#s{collector = sderl_mon_probe_collector:ended(Why, Owner, Collector)};
handle({'EXIT', Pid, _}, #s{tracer = Pid} = S) ->
    event(trace_off, notice, <<"tracing ended">>, #{}, S#s{tracer = none});
handle({'EXIT', Pid, _}, #s{meter = {Pid, _, _} = Meter} = S) ->
    S#s{meter = sderl_mon_probe_meter:again(Meter)};
handle(_, S) -> S.

%% Questions of callers on this node, who wait for an answer.
asked({start, #{owner := _} = Opts}, Ref, S) ->
    case may_take(Opts, S) of
        ok -> Ref ! {Ref, {ok, self()}}, push_soon(owned(Opts, S));
        Error -> Ref ! {Ref, Error}, S
    end;
asked({total, G}, Ref, #s{known = Known} = S) ->
    Ref ! {Ref,
           case Known of #{live := #{G := #{names := N}}} -> {ok, N}; #{} -> {error, unknown} end},
    S;
asked({trace, off}, Ref, S) ->
    Ref ! {Ref, {ok, #{cost => <<"nothing">>}}},
    traces(off, S);
asked({trace, #{for_s := For, max_per_s := Max} = Opts}, Ref, S)
  when is_integer(For), is_integer(Max) ->
    Ref ! {Ref, {ok, #{cost => <<"nothing">>}}},
    traces(Opts, S);
asked(_, _, S) -> S.

may_take(Opts, #s{owner = Owner, friends = Friends, term = Term, acked = Acked}) ->
    maybe
        ok ?= sderl_mon_probe_lease:check_options(Opts),
        sderl_mon_probe_lease:may_take(Opts, #{owner => Owner, friends => Friends, term => Term,
                                               silent_ms => now_ms() - Acked})
    end.

%% Everything else that the probe sets ends with its process.
-spec ended(#s{}) -> no_return().
ended(#s{sysmon = Sysmon, collector = Collector, meter = Meter}) ->
    ok = sderl_mon_probe_collector:stop(Collector),
    ok = sderl_mon_probe_meter:stop(Meter),
    ok = sderl_mon_probe_system:stop(Sysmon),
    case sderl_mon_probe_code:is_installed() of
        true -> ok;
        false ->
            true = unregister(?MODULE),
            ok = sderl_mon_probe_code:delete()
    end,
    exit(shutdown).

%% ---------------------------------------------------------------- when

tick(#s{next = Next, interval = Interval, acked = Acked} = S0) ->
    Now = now_ms(),
    _ = Now - Acked > S0#s.lease andalso ended(S0),
    At = case Next + Interval of Late when Late =< Now -> Now + Interval; Soon -> Soon end,
    _ = erlang:send_after(At, self(), {tick, At}, [{abs, true}]),
    send_sample(scan_round(Now, slow_round(Now, S0#s{next = At}))).

%% Looking at a process waits while that process runs. The scanner gets no more work meanwhile.
scan_round(Now, #s{scanning = Since, naming = Naming} = S) ->
    case min(Since, case Naming of {_, At} -> At; none -> none end) of
        Oldest when is_integer(Oldest), Now - Oldest > ?PATIENCE_MS ->
            true = unlink(S#s.scanner),
            true = exit(S#s.scanner, kill),
            count_up(helpers_failed, scanner_again(S));
        _ when Since =:= none, not is_map_key(due, S#s.scan) orelse Now >= map_get(due, S#s.scan) ->
            _ = S#s.scanner ! {scan, budget(erlang:system_info(process_count)), S#s.top},
            S#s{scanning = Now};
        _ -> S
    end.

scanner_again(S) ->
    named(#{}, S#s{scanner = sderl_mon_probe_look:start(self()), scanning = none,
                   scan = maps:remove(due, S#s.scan)}).

budget(Processes) -> min(1000, max(500, Processes div 20)).

slow_round(Now, #s{slow = none, slow_at = At, known = Known} = S) when Now >= At ->
    Unknown = sderl_mon_probe_links:unasked(S#s.links, S#s.sockets),
    S#s{slow = {sderl_mon_probe_slow:start(Known, Unknown), Now}, slow_at = Now + ?SLOW_MS};
slow_round(Now, #s{slow = {Pid, Since}} = S) when Now - Since > ?PATIENCE_MS ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    count_up(helpers_failed, S#s{slow = none, slow_at = Now + ?SLOW_MS});
slow_round(_, S) -> S.

%% Sends early, after a short delay, so that related events share a sample.
push_soon(#s{early = true} = S) -> S;
push_soon(#s{last = Last} = S) ->
    _ = erlang:send_after(max(?EARLY_MS, Last + 100 - now_ms()), self(), early),
    S#s{early = true}.

send_sample(#s{out = {_, Since, _, _}, interval = Interval} = S) ->
    %% The sample may have been lost with a link: after a while the owner gets another.
    case now_ms() - Since > max(3000, 3 * Interval) of
        true -> send_sample(take_back(S));
        false -> {timed, merged, count_up(samples_merged, S)}
    end;
send_sample(#s{owner = Owner, seq = Seq, pushed = {Ms, Bs}} = S0) ->
    {Sample, Seldom, S} = sample(Seq + 1, said(S0)),
    Kind = {sample, [K || K <- [facts, top], is_map_key(K, Sample)], S#s.rare =/= S0#s.rare,
            magnitude(length(map_get(events, Sample))),
            magnitude(map_size(element(2, S#s.traced)))},
    {timed, Kind,
     case erlang:send(Owner, {sderl_mon_sample, self(), Sample}, [noconnect, nosuspend]) of
         ok -> S#s{seq = Seq + 1, out = {Seq + 1, now_ms(), Seldom, S#s.lost}, last = now_ms(),
                   events = sderl_mon_probe_events:send(S#s.events),
                   traced = {element(2, S#s.traced), #{}},
                   pushed = {Ms + 1, Bs + erlang:external_size(Sample)}};
         _ -> count_up(samples_unsent, S)
     end}.

%% ---------------------------------------------------------------- events

event(Kind, Level, Text, More, #s{events = Events} = S) ->
    case sderl_mon_probe_events:add({Kind, Level}, Text, More, Events) of
        {ok, New} -> S#s{events = New};
        full -> lose(events_dropped, 1, S)
    end.

lose(What, N, #s{lost = Lost} = S) -> S#s{lost = Lost#{What => maps:get(What, Lost, 0) + N}}.
count_up(What, #s{counts = C} = S) -> S#s{counts = C#{What => maps:get(What, C, 0) + 1}}.

node_event(Up, Node, Info, #s{owner = Owner} = S0) ->
    S = count_up(case Up of nodeup -> nodes_up; nodedown -> nodes_down end,
                 S0#s{slow_at = min(S0#s.slow_at, now_ms() + 100)}),
    case Node =:= node(Owner) of
        true -> S;
        false ->
            {Kind, Level, Text, More} = sderl_mon_probe_events:describe_link(Up, Node, Info),
            push_soon(event(Kind, Level, Text, More, S))
    end.

traces(off, #s{tracer = none} = S) -> S;
traces(off, #s{tracer = Pid} = S) ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    event(trace_off, notice, <<"tracing was switched off">>, #{}, S#s{tracer = none});
traces(Opts, #s{tracer = none} = S) ->
    Text = text("tracing was switched on: ~0tp", [maps:with([sample, max_per_s, for_s], Opts)]),
    event(trace_on, notice, Text, #{}, S#s{tracer = sderl_mon_probe_trace:start(self(), Opts)});
traces(Opts, S) -> traces(Opts, traces(off, S)).

%% ---------------------------------------------------------------- system monitor

sysmon_event(Kind, Who, What, #s{sys = Sys} = S) ->
    {Counter, New} = sderl_mon_probe_system:count({Kind, Who, What}, Sys),
    count_up(Counter, S#s{sys = New}).

%% Looking up a process's name can block while it runs, so the scanner does it, and the event
%% follows.
said(#s{sys = Sys, naming = Naming} = S) when map_size(Sys) =:= 0; Naming =/= none -> S;
said(#s{sys = Sys, scanner = Scanner} = S) ->
    _ = Scanner ! {name, sderl_mon_probe_system:processes(Sys)},
    S#s{sys = #{}, naming = {Sys, now_ms()}}.

named(_, #s{naming = none} = S) -> S;
named(Names, #s{naming = {Sys, Asked}} = S0) ->
    T = erlang:system_time(millisecond) - (now_ms() - Asked),
    lists:foldl(fun({Kind, Level, Text, Details}, S) ->
        event(Kind, Level, Text, #{t => T, details => Details}, S)
    end, S0#s{naming = none}, sderl_mon_probe_system:describe(Sys, Names)).

%% ---------------------------------------------------------------- a sample

sample(Seq, #s{counts = Counts, known = Known, scan = Scan, us = Us0, work = Work0,
               pushed = Pushed} = Started) ->
    {Metrics, #s{lost = Lost} = S0} = app_metrics(Started),
    Traffic = sderl_mon_probe_library:traffic(S0#s.edges),
    {Worked, Work} = sderl_mon_probe_work:account(Work0),
    Us = Us0 + Worked,
    Rare = sderl_mon_probe_runtime:read_rare(S0#s.rare),
    {Links, S1} = links(S0#s{us = Us, work = Work, rare = Rare}),
    S = case Traffic of
        #{edges := [_ | _] = New} -> S1#s{edges = sderl_mon_probe_library:edges(New, S1#s.edges)};
        #{} -> S1
    end,
    Traced = element(2, S#s.traced),
    Queues = sderl_mon_probe_runtime:queues(),
    Seldom = #{facts => facts(S), top => maps:get(top, Scan)},
    {Groups, Ids} = sderl_mon_probe_library:counts(maps:get(groups, Traffic, []), S#s.ids),
    {message_queue_len, Own} = process_info(self(), message_queue_len),
    Sample =
        #{v => 1, node => node(), seq => Seq, at => erlang:system_time(millisecond),
          mono_us => now_us(), source => probe,
          counters => maps:merge(maps:merge(Counts, maps:get(counters, Traffic, #{})),
                                 (sderl_mon_probe_runtime:counters())#{probe_us => round(Us)}),
          gauges => maps:merge(
              maps:merge(looked(Scan), sderl_mon_probe_slow:gauges(Known)),
              maps:merge(sderl_mon_probe_runtime:gauges(Queues, Rare),
                         (sderl_mon_probe_library:names())#{
                             probe_queue => Own,
                             tracing => case S#s.tracer of none -> 0; _ -> 1 end
                         })
          ),
          queues => Queues, sched => sderl_mon_probe_runtime:schedulers(), links => Links,
          kinds => maps:merge(maps:get(kinds, Traffic, #{}), #{probe => Pushed}),
          groups => Groups,
          edges => [#{from => F, to => T, msgs => M} || {F, T} := {edge, M} <- S#s.edges],
          migrations => [{F, T, C} || {migration, F, T} := {C, _} <- Traced],
          traffic => [#{from => F, to => T, kind => K, msgs => M, bytes => B}
                      || {flow, F, T, K} := {M, B} <- Traced],
          events => sderl_mon_probe_events:fresh(S#s.events),
          lost => Lost, lost_acked => S#s.lost_acked},
    Measured = case Metrics of none -> Sample; _ -> Sample#{metrics => Metrics} end,
    {maps:merge(Measured, changed(Seldom, S#s.told)), Seldom, S#s{ids = Ids}}.

%% Parts that the owner has are not sent again: rows of processes are the largest part of a sample.
changed(Seldom, Told) ->
    #{Part => Value || Part := Value <- Seldom, not is_map_key(Part, Told)
                                                orelse map_get(Part, Told) =/= Value}.

looked(Scan) ->
    Looked = maps:with([procs_looked, mq_max], Scan),
    case Scan of
        #{began := Began} -> Looked#{top_age_s => (now_us() - Began) div 1_000_000};
        #{} -> Looked
    end.

app_metrics(#s{meter = none} = S) -> {none, S};
app_metrics(#s{meter = Meter, lost = Lost} = S) ->
    {Values, Left, New} = sderl_mon_probe_meter:read(Meter),
    {Values, S#s{meter = New, lost = maps:merge(Lost, Left)}}.

links(#s{links = Old, known = Known, sockets = Sockets0} = S) ->
    {Rows, Links, Sockets, IsNew} =
        sderl_mon_probe_links:read(Old, Sockets0, maps:get(reasons, Known, #{})),
    %% The helper has to find the socket of the new link, soon.
    Soon = case IsNew of true -> min(S#s.slow_at, now_ms()); false -> S#s.slow_at end,
    {Rows, S#s{links = Links, sockets = Sockets, slow_at = Soon}}.

%% ---------------------------------------------------------------- facts

facts(#s{sysmon = Sysmon, known = Known, links = Links, rare = Rare}) ->
    (maps:merge(sderl_mon_probe_runtime:facts(Rare), sderl_mon_probe_slow:facts(Known)))#{
        system_monitor => sderl_mon_probe_system:fact(Sysmon),
        unknown_links => [atom_to_binary(N) || N <- sderl_mon_probe_links:unknown(Links)]
    }.
