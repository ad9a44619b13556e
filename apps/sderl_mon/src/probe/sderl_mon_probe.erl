%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe).
-moduledoc """
What runs on a monitored node: one process that counts there and pushes samples
(the sample of [monitoring](monitoring.md)) to its owner, an agent on a monitoring node.

It and the modules beside it (`code/0`) need stock OTP (27 or newer) and nothing else of ours, so
that they can be loaded into a running node. Where the application `sderl` runs, it asks that too.

- **Bounded.** At most one sample is under way; while it is not acknowledged
  (`{sderl_mon_ack, Seq}`) nothing is sent, and what happens goes into the next one: counters are
  cumulative, and of events the first 500 are kept and the rest counted (`lost`).
- **It never waits for the owner** (`noconnect`, `nosuspend`), nor for a process of the node: what
  may wait (`s_group:info/0`, looking at processes) runs in helpers.
- **A lease.** Without an acknowledgement for 15 s it ends and takes along all it has set; what was
  loaded into the node is deleted again.
- **Nobody else's settings are touched.** System monitor events come through a session of their own
  (`sderl_mon_probe_system`), and so do traces.

`probe_us` is an estimate of the CPU time spent here, in microseconds (`sderl_mon_probe_work`): a
kind of work is a sample with or without facts and of so many events, a process whose memory was
asked or was not, and so on. The helpers and the tracer are in it; what the link to the owner costs
is not.
""".

-export([start/1, stop/0, code/0, names/2, lookup/2, process/1, trace/1]).
-export([init/1, slow/4]).

-import(sderl_mon_probe_text, [id/1, text/1, text/2, cut/2]).
-import(sderl_mon_probe_work, [now_ms/0, now_us/0]).

%% What is loaded into a node that lacks it.
-define(MODULES, [
    ?MODULE,
    sderl_mon_probe_bound,
    sderl_mon_probe_host,
    sderl_mon_probe_library,
    sderl_mon_probe_links,
    sderl_mon_probe_look,
    sderl_mon_probe_names,
    sderl_mon_probe_system,
    sderl_mon_probe_text,
    sderl_mon_probe_topology,
    sderl_mon_probe_trace,
    sderl_mon_probe_work
]).
-define(LEASE_MS, 15_000).
-define(EVENTS, 500).
-define(EARLY_MS, 50).
-define(SLOW_MS, 10_000).
-define(RARE_MS, 5000).
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
    %% The sample under way: its number, when it went, its facts. Its events; newer ones, the last
    %% first; how many in all.
    out = none :: none | {pos_integer(), integer(), map(), map()},
    sent = [] :: [map()],
    fresh = [] :: [map()],
    n = 0 :: non_neg_integer(),
    %% What was left out, and how much of that an owner has acknowledged.
    lost = #{} :: #{atom() => non_neg_integer()},
    lost_acked = #{} :: #{atom() => non_neg_integer()},
    counts = #{} :: #{atom() => non_neg_integer()},
    facts = none :: none | map(),
    rare = none :: none | {integer(), tuple(), map(), map()},
    known = #{} :: map(),
    slow = none :: none | {pid(), integer()},
    slow_at = 0 :: integer(),
    links = #{} :: sderl_mon_probe_links:links(),
    sockets = #{} :: sderl_mon_probe_links:sockets(),
    %% The scanner, since when it owes an answer, and the events whose processes it is asked to
    %% name.
    scanner :: pid(),
    scan = #{top => [], mq_max => 0} :: map(),
    scanning = none :: none | integer(),
    naming = none :: none | {map(), integer()},
    sysmon :: sderl_mon_probe_system:watch(),
    sys = #{} :: map(),
    tracer = none :: none | pid(),
    edges = #{} :: map(),
    %% What traces showed: in the sample under way, and since.
    traced = {#{}, #{}} :: {map(), map()},
    work = #{} :: sderl_mon_probe_work:work(),
    us = 0.0 :: float(),
    pushed = {0, 0} :: {integer(), integer()}
}).

%% ---------------------------------------------------------------- interface

-doc """
Starts the probe of this node, or takes it over. `term`: of several owners the highest wins;
`friends`: the nodes whose owners may take it over at any time. `lease_ms`: 15,000.

Errors: `{bad_option, Key, Value}`, `{term, T}` (a later owner has it), `{busy, Node}` (an owner
elsewhere, which answers), `timeout`.
""".
-spec start(#{owner := pid(), term => integer(), interval_ms => pos_integer(), top => pos_integer(),
              friends => [node()], lease_ms => pos_integer()}) ->
    {ok, pid()}
    | {error, {term, integer()} | {busy, node()} | timeout | {bad_option, term(), term()} | term()}.
start(#{owner := _} = Opts) ->
    case {bad_options(Opts), whereis(?MODULE)} of
        {[{Key, Value} | _], _} ->
            {error, {bad_option, Key, Value}};
        {[], undefined} ->
            case proc_lib:start(?MODULE, init, [Opts], 5000,
                                [{message_queue_data, off_heap}, {fullsweep_after, 20}]) of
                {error, {running, _}} -> ask({start, Opts});
                Answer -> Answer
            end;
        {[], _} ->
            ask({start, Opts})
    end.

bad_options(Opts) -> [{Key, Value} || Key := Value <- Opts, not option(Key, Value)].

option(owner, Owner) -> is_pid(Owner);
option(term, Term) -> is_integer(Term);
option(friends, all) -> true;
option(friends, Nodes) when length(Nodes) >= 0 -> lists:all(fun is_atom/1, Nodes);
option(Key, N) when Key =:= interval_ms; Key =:= top; Key =:= lease_ms ->
    is_integer(N) andalso N > 0;
option(_, _) -> false.

-doc "Ends the probe of this node; returns when it has ended.".
-spec stop() -> ok.
stop() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid ->
            Mon = monitor(process, Pid),
            Pid ! {?MODULE, stop},
            receive
                {'DOWN', Mon, process, _, _} -> ok
            after 5000 ->
                true = demonitor(Mon, [flush]), ok
            end
    end.

-doc "The modules to load into another node, as `code:load_binary/3` takes them.".
-spec code() -> [{module(), string(), binary()}].
code() -> [{M, File, Binary} || M <- ?MODULES, {_, Binary, File} <- [code:get_object_code(M)]].

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
    %% Not the one of the node that started us.
    true = group_leader(whereis(init), self()),
    _ = process_flag(trap_exit, true),
    _ = erlang:system_flag(scheduler_wall_time, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    Now = now_ms(),
    S = #s{owner = Owner, friends = all, term = 0, interval = 1000, acked = Now, next = Now,
           last = Now - 1000, scanner = sderl_mon_probe_look:start(self()),
           sysmon = sderl_mon_probe_system:start(self())},
    proc_lib:init_ack({ok, self()}),
    {_, First} = tick(owned(Opts, S#s{slow_at = Now})),
    loop(First).

owned(#{owner := Owner} = Opts, #s{sent = Sent, fresh = Fresh} = S) ->
    S#s{owner = Owner, friends = maps:get(friends, Opts, all), term = maps:get(term, Opts, 0),
        acked = now_ms(), interval = max(50, maps:get(interval_ms, Opts, 1000)),
        lease = maps:get(lease_ms, Opts, ?LEASE_MS), top = min(50, maps:get(top, Opts, 10)),
        out = none, facts = none, sent = [], fresh = Fresh ++ Sent,
        traced = {#{},
                  sderl_mon_probe_trace:added(element(1, S#s.traced), element(2, S#s.traced))}}.

-spec loop(#s{}) -> no_return().
loop(S) ->
    receive M ->
        T = now_us(),
        {Kind, New} = case handle(M, S) of
            {timed, K, Timed} -> {K, Timed};
            %% To put an event into words costs many times what it costs to count it.
            #s{n = N} = Done when N > S#s.n -> {event, Done};
            Done -> {message(M), Done}
        end,
        loop(New#s{work = sderl_mon_probe_work:add(Kind, 1, 1 + now_us() - T, New#s.work)})
    end.

message(M) when is_atom(element(1, M)) -> {message, element(1, M)};
message(_) -> message.

handle({tick, At}, #s{next = At} = S) ->
    {Kind, New} = tick(S),
    {timed, Kind, New};
handle({sderl_mon_ack, Seq}, #s{out = {Seq, _, Facts, Lost}} = S) ->
    S#s{out = none, facts = Facts, lost_acked = Lost, acked = now_ms(), sent = [],
        n = length(S#s.fresh), traced = {#{}, element(2, S#s.traced)}};
handle({?MODULE, stop}, S) -> ended(S);
handle({?MODULE, Ref, Request}, S) when is_reference(Ref) -> asked(Request, Ref, S);
handle({traced, Pid, Took, Flows, Lost, Texts},
       #s{tracer = Pid, traced = {Out, New}, lost = Old, us = Us} = S0) ->
    S = S0#s{us = Us + Took, traced = {Out, sderl_mon_probe_trace:added(New, Flows)},
             lost = maps:merge_with(fun(_, A, B) -> A + B end, Old, Lost)},
    lists:foldl(fun({Kind, Text}, A) -> event(Kind, notice, Text, #{}, A) end, S, Texts);
handle({Up, Node, Info}, S)
  when (Up =:= nodeup orelse Up =:= nodedown), is_atom(Node), is_map(Info) ->
    node_event(Up, Node, Info, S);
handle({s_group_event, _, _, {event, Level, Kind, Meta}}, S) when is_atom(Kind), is_map(Meta) ->
    Nodes = case Meta of #{nodes := Ns} -> Ns; #{node := N} -> [N]; _ -> [] end,
    Details = maps:merge(#{nodes => named_nodes(Nodes)},
                         #{lost => named_nodes(Lost) || #{lost := Lost} <- [Meta]}),
    More = maps:merge(#{details => Details}, #{group => id(G) || #{group := G} <- [Meta]}),
    push_soon(event(Kind, level(Level), {told, Meta#{event => Kind}}, More,
                    count_up(group_events, S#s{slow_at = min(S#s.slow_at, now_ms() + 100)})));
handle({monitor, Who, Kind, What}, S) -> sysmon_event(Kind, Who, What, S);
handle({slow, Pid, Wall, Known, Sockets},
       #s{slow = {Pid, Since}, slow_at = At, known = Old, work = Work, sockets = Had} = S) ->
    %% It may cost more on a node with many names: then seldom. What happened meanwhile is asked for
    %% at once.
    S#s{slow = none, known = maps:merge(Old, Known), sockets = maps:merge(Had, Sockets),
        slow_at = case At < Since + ?SLOW_MS of
            true -> At;
            false -> now_ms() + max(?SLOW_MS, Wall)
        end,
        work = sderl_mon_probe_work:add({slow, is_map_key(sup, Old)}, 1, Wall, Work)};
handle({scanned, Pid, Works, Scan}, #s{scanner = Pid, work = Work} = S) ->
    S#s{scanning = none, scan = maps:merge(S#s.scan, Scan),
        work = sderl_mon_probe_work:add(Works, Work)};
handle({named, Pid, Works, Names}, #s{scanner = Pid, work = Work} = S) ->
    named(Names, S#s{work = sderl_mon_probe_work:add(Works, Work)});
handle(early, S) ->
    {Kind, New} = send_sample(S#s{early = false}),
    {timed, Kind, New};
handle({'EXIT', Pid, Why}, #s{scanner = Pid} = S) ->
    count_up(helpers_failed,
             event(probe_failed, warning, text("the look at processes failed: ~0tP", [Why, 20]),
                   #{}, scanner_again(S)));
handle({'EXIT', Pid, Why}, #s{slow = {Pid, _}} = S) ->
    count_up(helpers_failed, event(probe_failed, warning,
                                   text("asking the application sderl failed: ~0tP", [Why, 20]),
                                   #{}, S#s{slow = none, slow_at = now_ms() + ?SLOW_MS}));
handle({'EXIT', Pid, _}, #s{tracer = Pid} = S) ->
    event(trace_off, notice, <<"tracing ended">>, #{}, S#s{tracer = none});
handle(_, S) -> S.

%% What callers on this node ask, who wait for an answer.
asked({start, #{owner := Owner} = Opts}, Ref, S) ->
    case bad_options(Opts) of
        [] ->
            case may_take(Owner, maps:get(term, Opts, 0), S) of
                ok -> Ref ! {Ref, {ok, self()}}, push_soon(owned(Opts, S));
                Error -> Ref ! {Ref, Error}, S
            end;
        [{Key, Value} | _] ->
            Ref ! {Ref, {error, {bad_option, Key, Value}}},
            S
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

may_take(Owner, Term, #s{owner = Old, friends = Friends, acked = Acked, term = T}) ->
    Ours = Friends =:= all orelse lists:member(node(Owner), Friends)
        orelse node(Owner) =:= node(Old),
    if
        Ours, Term >= T -> ok;
        Ours -> {error, {term, T}};
        true -> case now_ms() - Acked > 5000 of true -> ok; false -> {error, {busy, node(Old)}} end
    end.

%% Everything that we set is bound to this process, but for what is undone here.
-spec ended(#s{}) -> no_return().
ended(#s{sysmon = Sysmon}) ->
    ok = sderl_mon_probe_system:stop(Sysmon),
    case code:where_is_file(?MODULE_STRING ".beam") of
        non_existing ->
            %% Loaded into this node: nothing of it stays. Whoever asked for the end runs this code
            %% too, for a moment.
            true = unregister(?MODULE),
            lists:foreach(fun(M) -> _ = code:purge(M), _ = code:delete(M) end, ?MODULES),
            Calls = [{call, 1, {remote, 1, {atom, 1, code}, {atom, 1, purge}}, [{atom, 1, M}]}
                     || M <- ?MODULES],
            _ = spawn(erl_eval, exprs, [[{'receive', 1, [], {integer, 1, 500}, Calls}], #{}]),
            exit(shutdown);
        _ -> exit(shutdown)
    end.

%% ---------------------------------------------------------------- when

tick(#s{next = Next, interval = Interval, acked = Acked} = S0) ->
    Now = now_ms(),
    _ = Now - Acked > S0#s.lease andalso ended(S0),
    At = case Next + Interval of Late when Late =< Now -> Now + Interval; Soon -> Soon end,
    _ = erlang:send_after(At, self(), {tick, At}, [{abs, true}]),
    send_sample(scan_round(Now, slow_round(Now, S0#s{next = At}))).

%% The look at processes waits for those that run; it gets no more to do meanwhile.
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
    Args = [self(), maps:get(sup, Known, undefined), Unknown, maps:get(host, Known, none)],
    S#s{slow = {spawn_link(?MODULE, slow, Args), Now}, slow_at = Now + ?SLOW_MS};
slow_round(Now, #s{slow = {Pid, Since}} = S) when Now - Since > ?PATIENCE_MS ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    count_up(helpers_failed, S#s{slow = none, slow_at = Now + ?SLOW_MS});
slow_round(_, S) -> S.

%% At once, but for what comes with it and so that many events do not make many samples.
push_soon(#s{early = true} = S) -> S;
push_soon(#s{last = Last} = S) ->
    _ = erlang:send_after(max(?EARLY_MS, Last + 100 - now_ms()), self(), early),
    S#s{early = true}.

send_sample(#s{out = {_, Since, _, _}, interval = Interval} = S) ->
    %% It may be that it went down with a link: after a while the owner gets another.
    case now_ms() - Since > max(3000, 3 * Interval) of
        true ->
            send_sample(S#s{out = none, fresh = S#s.fresh ++ S#s.sent, sent = [], traced = {
                #{}, sderl_mon_probe_trace:added(element(1, S#s.traced), element(2, S#s.traced))
            }});
        false -> {merged, count_up(samples_merged, S)}
    end;
send_sample(#s{owner = Owner, seq = Seq, pushed = {Ms, Bs}} = S0) ->
    {Sample, Facts, S} = sample(Seq + 1, said(S0)),
    Kind = {sample, is_map_key(facts, Sample), S#s.rare =/= S0#s.rare, magnitude(length(S#s.fresh)),
            magnitude(map_size(element(2, S#s.traced)))},
    {Kind, case erlang:send(Owner, {sderl_mon_sample, self(), Sample}, [noconnect, nosuspend]) of
        ok -> S#s{seq = Seq + 1, out = {Seq + 1, now_ms(), Facts, S#s.lost}, last = now_ms(),
                  sent = S#s.fresh, fresh = [], traced = {element(2, S#s.traced), #{}},
                  pushed = {Ms + 1, Bs + erlang:external_size(Sample)}};
        _ -> count_up(samples_unsent, S)
    end}.

magnitude(0) -> 0;
magnitude(N) -> 1 + magnitude(N div 4).

%% ---------------------------------------------------------------- events

event(Kind, Level, Text, More, #s{n = N} = S) ->
    case N < ?EVENTS of
        true ->
            E = maps:merge(#{kind => Kind, level => Level, t => erlang:system_time(millisecond),
                             text => told(Text)}, More),
            S#s{fresh = [E | S#s.fresh], n = N + 1};
        false -> lose(events_dropped, 1, S)
    end.

%% Made only when it is kept.
told({told, Report}) ->
    try sderl_mon_probe_library:describe_event(Report) of {Format, Args} -> text(Format, Args)
    catch _:_ -> text(Report)
    end;
told({Format, Args}) -> text(Format, Args);
told(Text) -> cut(Text, 400).

%% Those of an event, few enough. (The length of an improper list is none.)
named_nodes(Nodes) when length(Nodes) >= 0 ->
    [atom_to_binary(N) || N <- lists:sublist(Nodes, 20), is_atom(N)];
named_nodes(_) -> [].

level(debug) -> info;
level(Level) when Level =:= info; Level =:= notice; Level =:= warning -> Level;
level(_) -> error.

lose(What, N, #s{lost = Lost} = S) -> S#s{lost = Lost#{What => maps:get(What, Lost, 0) + N}}.
count_up(What, #s{counts = C} = S) -> S#s{counts = C#{What => maps:get(What, C, 0) + 1}}.

node_event(Up, Node, Info, #s{owner = Owner} = S0) ->
    Type = maps:get(node_type, Info, visible),
    S = count_up(case Up of nodeup -> nodes_up; nodedown -> nodes_down end,
                 S0#s{slow_at = min(S0#s.slow_at, now_ms() + 100)}),
    case Node =:= node(Owner) of
        true -> S;
        false when Up =:= nodeup ->
            push_soon(event(node_up, info, {"link to ~ts is up (~ts)", [Node, Type]},
                            #{details => #{peer => atom_to_binary(Node)}}, S));
        false ->
            %% A hidden node is no member: a shell or a tool that has ended, or a monitoring node,
            %% of which the masters tell.
            Level = case Type of hidden -> info; _ -> warning end,
            push_soon(event(node_down, Level, {"link to ~ts is down: ~0tP", [
                Node, maps:get(nodedown_reason, Info, unknown), 20
            ]}, #{details => #{peer => atom_to_binary(Node)}}, S))
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

%% A machine with more to do than it can has long schedules everywhere. There may be very many: each
%% is counted, and a sample has one event for each kind.
sysmon_event(Kind0, Who, What, #s{sys = Sys} = S) ->
    {Kind, Key} = sderl_mon_probe_system:kind(Kind0, What),
    {N, _, _} = maps:get(Kind, Sys, {0, Who, What}),
    count_up(Key, S#s{sys = Sys#{Kind => {N + 1, Who, What}}}).

%% Whoever wants to know the name of a process waits while that runs: the scanner does, and then
%% they are told.
said(#s{sys = Sys, naming = Naming} = S) when map_size(Sys) =:= 0; Naming =/= none -> S;
said(#s{sys = Sys, scanner = Scanner} = S) ->
    _ = Scanner ! {name, lists:usort([Who
                                      || {_, Who, _} <- maps:values(Sys), is_pid(Who),
                                         node(Who) =:= node()])},
    S#s{sys = #{}, naming = {Sys, now_ms()}}.

named(_, #s{naming = none} = S) -> S;
named(Names, #s{naming = {Sys, Asked}} = S0) ->
    T = erlang:system_time(millisecond) - (now_ms() - Asked),
    maps:fold(fun(Kind, {N, Who, What}, S) ->
        event(Kind, case Kind of queue_short -> info; long_schedule -> notice; _ -> warning end,
              sderl_mon_probe_system:describe(Kind, N, Who, What, Names),
              #{t => T, details => #{count => N, process => text(Who)}}, S)
    end, S0#s{naming = none}, Sys).

%% ---------------------------------------------------------------- a sample

sample(Seq, #s{counts = Counts, lost = Lost, known = Known, scan = Scan, us = Us0, work = Work0,
               pushed = Pushed, fresh = Fresh} = S0) ->
    Traffic = sderl_mon_probe_library:traffic(S0#s.edges),
    {Worked, Work} = sderl_mon_probe_work:account(Work0),
    Us = Us0 + Worked,
    {Links, S1} = links(rare(S0#s{us = Us, work = Work})),
    {_, _, Mem, _} = S1#s.rare,
    S = case Traffic of
        #{edges := [_ | _] = New} -> S1#s{edges = sderl_mon_probe_library:edges(New, S1#s.edges)};
        #{} -> S1
    end,
    Traced = element(2, S#s.traced),
    Queues = statistics(run_queue_lengths_all),
    Normal = erlang:system_info(schedulers),
    {Reds, _} = statistics(reductions),
    {Runtime, _} = statistics(runtime),
    Facts = facts(S),
    {message_queue_len, Own} = process_info(self(), message_queue_len),
    Sample =
        #{v => 1, node => node(), seq => Seq, at => erlang:system_time(millisecond),
          mono_us => now_us(), source => probe,
          counters => maps:merge(maps:merge(Counts, maps:get(counters, Traffic, #{})),
                                 #{reductions => Reds, runtime_us => Runtime * 1000,
                                   probe_us => round(Us),
                                   context_switches => element(1, statistics(context_switches))}),
          gauges => maps:merge(
              maps:merge(host(Known, Scan), #{top_age_s => (now_us() - Began) div 1_000_000
                                              || #{began := Began} <- [Scan]}),
              (maps:merge(sderl_mon_probe_library:names(),
                          maps:with([gc_s, gc_words_s], Mem)))#{
                              procs => erlang:system_info(process_count),
                              proc_limit => erlang:system_info(process_limit),
                              ports => erlang:system_info(port_count),
                              port_limit => erlang:system_info(port_limit),
                              atoms => erlang:system_info(atom_count),
                              atom_limit => erlang:system_info(atom_limit),
                              ets => erlang:system_info(ets_count),
                              ets_limit => erlang:system_info(ets_limit),
                              mem_total => maps:get(total, Mem),
                              mem_processes => maps:get(processes, Mem),
                              mem_binary => maps:get(binary, Mem),
                              mem_ets => maps:get(ets, Mem),
                              mem_atom => maps:get(atom, Mem),
                              mem_code => maps:get(code, Mem),
                              mem_system => maps:get(system, Mem),
                              run_queue => lists:sum(lists:sublist(Queues, Normal)),
                              mq_max => maps:get(mq_max, Scan),
                              probe_queue => Own,
                              tracing => case S#s.tracer of none -> 0; _ -> 1 end,
                              uptime_s => erlang:convert_time_unit(erlang:monotonic_time() -
                                                                   erlang:system_info(start_time),
                                                                   native, second),
                              schedulers => Normal,
                              schedulers_online => erlang:system_info(schedulers_online)
                          }
          ),
          queues => Queues, sched => sched(Normal), links => Links,
          kinds => maps:merge(maps:get(kinds, Traffic, #{}), #{probe => Pushed}),
          groups => #{id(G) => T || {G, T} <- maps:get(groups, Traffic, [])},
          edges => [#{from => F, to => T, msgs => M} || {F, T} := {edge, M} <- S#s.edges],
          top => maps:get(top, Scan),
          migrations => [{F, T, C} || {migration, F, T} := {C, _} <- Traced],
          traffic => [#{from => F, to => T, kind => K, msgs => M, bytes => B}
                      || {flow, F, T, K} := {M, B} <- Traced],
          events => lists:reverse(Fresh),
          lost => Lost, lost_acked => S#s.lost_acked},
    {case S#s.facts of
        Facts -> Sample;
        _ -> Sample#{facts => maps:merge(Facts, maps:with([problems, known], Known))}
     end, Facts, S}.

%% Of the machine what was read last.
host(Known, Scan) ->
    maps:merge(maps:with([procs_looked], Scan), maps:get(gauges, maps:get(host, Known, #{}), #{})).

%% What takes long to read and changes slowly. Of collections the rate since the last reading.
rare(#s{rare = none} = S) -> rare(none, S);
rare(#s{rare = {At, Gcs, _, _}} = S) ->
    case now_ms() - At >= ?RARE_MS of true -> rare({At, Gcs}, S); false -> S end.

rare(Before, S) ->
    Now = now_ms(),
    {Count, Words, _} = Gcs = statistics(garbage_collection),
    Rates = case Before of
        {At, {C, W, _}} ->
            #{gc_s => (Count - C) * 1000 / (Now - At),
              gc_words_s => (Words - W) * 1000 / (Now - At)};
        none -> #{}
    end,
    S#s{rare = {Now, Gcs, maps:merge(Rates, maps:from_list(erlang:memory())),
                #{otp => list_to_binary(erlang:system_info(otp_release)),
                  hidden => init:get_argument(hidden) =/= error,
                  erts => list_to_binary(erlang:system_info(version)),
                  cpu_topology => sderl_mon_probe_topology:schedulers(
                      erlang:system_info(cpu_topology),
                      tuple_to_list(erlang:system_info(scheduler_bindings))
                  )}}}.

sched(Normal) ->
    Dirty = Normal + erlang:system_info(dirty_cpu_schedulers),
    case statistics(scheduler_wall_time_all) of
        undefined -> [];
        List ->
            [{I, if I =< Normal -> normal; I =< Dirty -> dirty_cpu; true -> dirty_io end, A, T}
             || {I, A, T} <- lists:sort(List)]
    end.

links(#s{links = Old, known = Known, sockets = Sockets0} = S) ->
    {Rows, Links, Sockets, IsNew} =
        sderl_mon_probe_links:read(Old, Sockets0, maps:get(reasons, Known, #{})),
    %% Whose socket it is has to be asked: soon.
    Soon = case IsNew of true -> min(S#s.slow_at, now_ms()); false -> S#s.slow_at end,
    {Rows, S#s{links = Links, sockets = Sockets, slow_at = Soon}}.

%% ---------------------------------------------------------------- facts

facts(#s{sysmon = Sysmon, known = Known, links = Links, rare = {_, _, _, Rare}}) ->
    Rare#{system_monitor => sderl_mon_probe_system:fact(Sysmon),
          application => maps:get(sup, Known, undefined) =/= undefined,
          groups => sderl_mon_probe_library:groups(maps:get(live, Known, #{})),
          known => maps:get(known, Known, []), problems => maps:get(problems, Known, []),
          unknown_links => [atom_to_binary(N) || N <- sderl_mon_probe_links:unknown(Links)]}.

%% Asks the application, and processes of links, all of which may be waited for.
-doc false.
-spec slow(pid(), undefined | pid(), [pid()], sderl_mon_probe_host:host() | none) -> term().
slow(Probe, Subscribed, Ctrls, Host) ->
    T = now_us(),
    Sockets = #{Ctrl => sderl_mon_probe_links:tls_socket(Ctrl) || Ctrl <- Ctrls},
    Known =
        (sderl_mon_probe_library:ask(Probe, Subscribed))#{host => sderl_mon_probe_host:read(Host)},
    Probe ! {slow, self(), now_us() - T, Known, Sockets}.
