%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_findings).
-moduledoc """
What keeps a program from being faster, each with its evidence, the threshold from which it is
reported, and what helps. Pure; from `m:sderl_prof_evidence`.

| finding | is reported when | needs |
|---|---|---|
| `bottleneck` | 3 processes or more wait for answers of one, 2 or more at a time on average while it works, in 10 % of the time or more | `running`, `message` |
| `low_parallelism` | on 2 schedulers or more, one process at most could run in 20 % of the time or more, not counting when nothing ran | `running`, of all processes |
| `mailbox` | 1,000 messages or more were sent to a process that it had not received | `message` |
| `long_gc` | a collection took 10 ms or more, or all of them 10 % of the running time and 1 % of the time | `garbage_collection` |
| `migration` | 1,000 times or more, and 25 % of the times that one was scheduled in, it was on another scheduler than before | `migration` |
| `sleeping` | in 5 % of the time or more a scheduler slept while a process could run | `schedulers` and `running` |
| `busy_port` | a port worked, or waited for a scheduler to do so, in 20 % of the time or more | `ports` |
| `tables` | functions of `ets` took 10 % of the running time or more, and 1 % of the time | `running`, calls of `ets` |
| `past_gateways` | 100 messages or more, and 5 % of those between nodes in s_groups, went from a node to another one with which it has no group in common | `message`, of several nodes |

A finding that the recording cannot show is named, with the item that it would need. Messages past
the gateways are of several nodes together (`past_gateways/2`).
""".

-export([find/2, kinds/0, past_gateways/2]).
-export_type([finding/0, kind/0, context/0, link/0, result/0]).

-define(WAITERS, 3).
-define(AT_A_TIME, 2).
-define(HELD, 0.1).
-define(ALONE, 0.2).
-define(BACKLOG, 1000).
-define(GC_NS, 10_000_000).
-define(GC, 0.1).
-define(GC_TIME, 0.01).
-define(MOVES, 1000).
-define(MOVED, 0.25).
-define(ASLEEP, 0.05).
-define(BUSY, 0.2).
-define(TABLES, 0.1).
-define(TABLES_TIME, 0.01).
-define(PAST, 100).
-define(PAST_SHARE, 0.05).
%% Of the time of one process alone, for one that is named.
-define(HOLDER, 0.02).
%% Processes and times that are named.
-define(NAMED, 5).
%% Of the recording on either side of a moment.
-define(AROUND, 50).

-type kind() :: bottleneck | low_parallelism | mailbox | long_gc | migration | sleeping | busy_port
    | tables | past_gateways.

-doc """
`items` are what was recorded: `running`, `message`, `garbage_collection`, `migration`,
`schedulers`, `ports`, `'calls of ets'`, `'all processes'` and no share of them; `runnable` tells
whether it is known what could run, `label` names a process, `owner` that which opened a port,
`word` a function.
""".
-type context() :: #{items := [atom()], runnable := sderl_prof_activity:mode(),
                     schedulers := pos_integer() | unknown,
                     label := fun((pos_integer()) -> binary()),
                     owner := fun((pos_integer()) -> pos_integer() | 0),
                     word := fun((non_neg_integer()) -> binary())}.

-doc """
`weight`, from 0 to 1, is the share of the time in which it is so, or of what else is counted. Times
are nanoseconds since the begin of the recording. `numbers` are the processes to look at, the one
that it is about first; `ranges` the times, the longest first: without any it is the whole.
""".
-type finding() :: #{finding := kind(), process := binary() | null, weight := float(),
                     text := binary(), remedy := binary(), threshold := binary(),
                     numbers := [pos_integer()], ranges := [range()], evidence := map()}.
-type range() :: #{from := non_neg_integer(), to := non_neg_integer()}.
-doc "A pair of nodes; `common_group` is `null` where one of them is in none.".
-type link() :: #{from := binary(), to := binary(), sent := non_neg_integer(),
                  sent_bytes := non_neg_integer(), received := non_neg_integer(),
                  common_group := boolean() | null, _ => _}.
-type result() :: #{found := [finding()],
                    not_shown := [#{finding := kind(), needs := binary()}]}.

-doc "All kinds of findings of a node.".
-spec kinds() -> [kind()].
kinds() ->
    [bottleneck, low_parallelism, mailbox, long_gc, migration, sleeping, busy_port, tables].

-doc "The findings, those with the greatest weight first.".
-spec find(sderl_prof_evidence:result(), context()) -> result().
find(Evidence, Context) ->
    {Shown, Not} = lists:partition(fun(Kind) -> missing(Kind, Context) =:= [] end, kinds()),
    Found = lists:append([found(Kind, Evidence, Context) || Kind <- Shown]),
    #{
        found => by_weight(Found),
        not_shown => [#{finding => Kind, needs => text(lists:join(", ", missing(Kind, Context)))}
                      || Kind <- Not]
    }.

by_weight(Found) -> lists:sort(fun(#{weight := A}, #{weight := B}) -> A >= B end, Found).

-doc "What the messages between the nodes of a recording add to their findings.".
-spec past_gateways([link()], result()) -> result().
past_gateways(Rows, #{found := Found} = Result) ->
    Of = fun(Is) -> [Row || #{common_group := Has} = Row <- Rows, lists:member(Has, Is)] end,
    Past = Of([false]),
    Sum = messages(Past),
    Share = Sum / max(1, messages(Of([false, true]))),
    Result#{found := by_weight([past(Past, Sum, Share)
                                || Sum >= ?PAST, Share >= ?PAST_SHARE] ++ Found)}.

messages(Rows) -> lists:sum([messages_of(Row) || Row <- Rows]).

%% What the other end heard counts where the sender was not recorded.
messages_of(#{sent := Sent, received := Received}) -> max(Sent, Received).

past(Rows, Sum, Share) ->
    Most = lists:sublist(lists:sort(fun(A, B) -> messages_of(A) >= messages_of(B) end, Rows),
                         ?NAMED),
    [#{from := From, to := To} = First | _] = Most,
    finding(past_gateways, null, Share,
            [percent(Share), " of the messages between nodes in s_groups went past the gateways, "
             "between nodes that have no group in common: ", number(Sum), ", of them ",
             number(messages_of(First)), " from ", From, " to ", To],
            {[], []},
            #{messages => Sum, pairs => length(Rows),
              links => [#{process => <<(map_get(from, Row))/binary, " to ",
                                       (map_get(to, Row))/binary>>,
                          messages => messages_of(Row), bytes => map_get(sent_bytes, Row)}
                        || Row <- Most]}).

missing(Kind, #{items := Items} = Context) ->
    [atom_to_list(Item) || Item <- needs(Kind), not lists:member(Item, Items)] ++
        ["what could run" || Kind =:= sleeping andalso map_get(runnable, Context) =:= none
                             orelse Kind =:= busy_port
                                    andalso map_get(runnable, Context) =/= recorded].

needs(bottleneck) -> [running, message];
needs(low_parallelism) -> [running, 'all processes'];
needs(mailbox) -> [message];
needs(long_gc) -> [garbage_collection];
needs(migration) -> [migration];
needs(sleeping) -> [running, schedulers];
needs(busy_port) -> [ports];
needs(tables) -> [running, 'calls of ets'].

finding(Kind, Process, Weight, Text, {Numbers, Ranges}, Evidence) ->
    {Threshold, Remedy} = about(Kind),
    #{finding => Kind, process => Process, weight => float(Weight), text => text(Text),
      remedy => text(Remedy), threshold => text(Threshold), numbers => lists:uniq(Numbers),
      ranges => [#{from => A, to => B} || {A, B} <- Ranges], evidence => Evidence}.

about(bottleneck) ->
    {"3 processes or more wait for it, 2 or more at a time, in 10 % of the time",
     "Let it do less for an answer: compute in the processes that ask, keep what they read in an "
     "ETS table, answer later (gen_server:reply/2), or have several of it, each for a part of the "
     "keys."};
about(low_parallelism) ->
    {"one process at most could run in 20 % of the time, on 2 schedulers or more",
     "Split the work of these processes, or begin what others do later before it has ended. The "
     "critical path tells what waits for what."};
about(mailbox) ->
    {"1,000 messages or more that it had not received",
     "Send no more than it can work off: ask (gen_server:call) in place of casting, let it ask for "
     "the next piece of work, or have several of it."};
about(long_gc) ->
    {"a collection of 10 ms or more, or all of them 10 % of the running time and 1 % of the time",
     "Keep less in the heap of a process: large data in ETS, binaries or persistent_term; short "
     "work in a process of its own with a min_heap_size that suffices; hibernate before long "
     "waits."};
about(migration) ->
    {"1,000 changes of the scheduler or more, and at 25 % of the times scheduled in",
     "Fewer and larger pieces of work move less; compare with fewer schedulers (+S), with bound "
     "ones (+sbt db), and without compaction of load (+scl false)."};
about(busy_port) ->
    {"it worked or waited for a scheduler in 20 % of the time",
     "A port does one thing at a time. Write fewer and larger pieces (one list for many small "
     "ones, delay_send of gen_tcp), read larger ones (a larger buffer, {active, N}), use what "
     "needs no port ({inet_backend, socket}, raw files), or have several of it."};
about(tables) ->
    {"10 % of the running time, and 1 % of the time, in functions of ets",
     "Try read_concurrency and write_concurrency of a table that many processes use, counters "
     "(counters, atomics) for what is only counted, persistent_term for what hardly changes, fewer "
     "and larger reads, or a table for each part of the keys: bin/sderl bench tables --mine "
     "measures which. The lock tables of bin/sderl prof vm name the table that is waited for."};
about(past_gateways) ->
    {"100 messages or more, and 5 % of those between nodes in s_groups",
     "Send them over the gateways (sderl_route:send/2, sderl_route:call/3, names with {via, "
     "sderl_route, Name}), or give the two nodes a group, so that the link is one of the plan's."};
about(sleeping) ->
    {"in 5 % of the time or more",
     "Let schedulers wait longer before they sleep and wake earlier (+sbwt long, +swt very_low), "
     "and compare; many processes that run shortly and wait are the usual cause."}.

%% ---------------------------------------------------------------- each

found(bottleneck, #{parallel := #{for := For, held := Held}} = Evidence, Context) ->
    Range = range(Evidence),
    By = maps:groups_from_list(fun({{P, _}, _, _}) -> P end, For),
    [bottleneck(P, Rows, maps:get(P, Held, 0), Range, Context)
     || P := [_, _, _ | _] = Rows <- By, is_bottleneck(Rows, maps:get(P, Held, 0), Range)];
%% An unknown number, which is greater than any, may be of several.
found(low_parallelism, #{parallel := #{alone := Alone}} = Evidence, #{schedulers := N} = Context)
  when N > 1 ->
    Range = range(Evidence),
    [alone(Evidence, Range, Context) || Alone / Range >= ?ALONE];
found(mailbox, #{backlog := Rows} = Evidence, Context) ->
    [mailbox(Row, Evidence, Context)
     || #{peak := Peak} = Row <- lists:sublist(Rows, ?NAMED), Peak >= ?BACKLOG];
found(long_gc, #{totals := #{run := Run, gc := Gc}, collections := Collections} = Evidence,
      Context) ->
    Longest = lists:max([0 | [To - From || {_, From, To} <- Collections]]),
    [long_gc(Longest, Evidence, Context)
     || Longest >= ?GC_NS
            orelse (Gc / range(Evidence) >= ?GC_TIME andalso Gc / max(1, Run) >= ?GC)];
found(migration, #{totals := #{moves := Moves, ins := Ins}} = Evidence, Context) ->
    [migration(Evidence, Context) || Moves >= ?MOVES, Moves / Ins >= ?MOVED];
found(sleeping, #{parallel := #{asleep := Asleep}} = Evidence, _) ->
    [sleeping(Evidence) || Asleep / range(Evidence) >= ?ASLEEP];
found(busy_port, #{ports := [_ | _] = Ports} = Evidence, Context) ->
    Range = range(Evidence),
    Busy = [Port || {_, Ns} = Port <- Ports, Ns / Range >= ?BUSY],
    [busy_port(Port, Range, Context) || Port <- lists:sublist(Busy, ?NAMED)];
found(tables, #{calls := #{} = Calls, totals := #{run := Run}} = Evidence, Context) ->
    Places = table_places(Calls, Context),
    Ns = lists:sum([Own || {_, _, Own} <- Places]),
    [tables(Places, Ns, Run, Context)
     || Ns / range(Evidence) >= ?TABLES_TIME andalso Ns / max(1, Run) >= ?TABLES];
found(_, _, _) ->
    [].

range(#{from := From, to := To}) -> max(1, To - From).

is_bottleneck(Rows, Held, Range) ->
    length(Rows) >= ?WAITERS andalso Held / Range >= ?HELD andalso
        lists:sum([Ns || {_, _, Ns} <- Rows]) / Held >= ?AT_A_TIME.

bottleneck(P, Rows, Held, Range, #{label := Label}) ->
    Name = Label(P),
    Waited = lists:sum([Ns || {_, _, Ns} <- Rows]),
    Times = lists:sum([N || {_, N, _} <- Rows]),
    finding(bottleneck, Name, Held / Range,
            [Name, " works in ", percent(Held / Range), " of the time while others wait for its "
             "answer: ", number(length(Rows)), " processes, ", decimal(Waited / Held),
             " at a time, ", number(Times), " times"],
            {[P | waiters(Rows)], []},
            #{waiters => length(Rows), times => Times, waited_ns => Waited, held_ns => Held,
              at_a_time => Waited / Held}).

%% The processes that waited longest.
waiters(Rows) ->
    Longest = lists:reverse(lists:keysort(2, [{W, Ns} || {{_, W}, _, Ns} <- Rows])),
    [W || {W, _} <- lists:sublist(Longest, ?NAMED)].

alone(#{from := From, parallel := Parallel}, Range, #{label := Label, schedulers := Schedulers}) ->
    #{alone := Alone, by := By, kept := Kept, idle := Idle, stretches := Stretches} = Parallel,
    Holders = lists:sublist(lists:reverse(lists:keysort(2, maps:to_list(By))), ?NAMED),
    Shown = [#{process => Label(P), ns => Ns, share => Ns / Range,
               waiting => maps:get(P, Kept, 0) / Ns}
             || {P, Ns} <- Holders, Ns >= ?HOLDER * Alone],
    Process = case Shown of
        [#{process := First, ns := Most} | _] when Most >= Alone / 2 -> First;
        _ -> null
    end,
    finding(low_parallelism, Process, Alone / Range,
            ["in ", percent(Alone / Range), " of the time only one process could run",
             case Schedulers of
                 unknown -> "";
                 _ -> [", on ", number(Schedulers), " schedulers"]
             end,
             ": ", lists:join(", ", [[Who, " ", percent(Share), waiting(Waiting)]
                                     || #{process := Who, share := Share, waiting := Waiting}
                                            <- Shown])],
            {[P || {P, Ns} <- Holders, Ns >= ?HOLDER * Alone], times(Stretches, From)},
            #{alone_ns => Alone, idle_ns => Idle, holders => Shown,
              longest => [#{process => Label(P), from => A - From, to => B - From}
                          || {P, A, B} <- lists:sublist(Stretches, ?NAMED)]}).

waiting(Waiting) when Waiting < 0.05 -> "";
waiting(Waiting) -> [" (", decimal(Waiting), " wait for its answer)"].

%% The first of several times, since the begin.
times(Times, From) ->
    [case Time of
         {_, A, B} -> {A - From, B - From};
         {A, B} -> {A - From, B - From}
     end || Time <- lists:sublist(Times, ?NAMED)].

mailbox(#{process := P, peak := Peak, at := At, left := Left},
        #{from := From, to := To} = Evidence, #{label := Label}) ->
    Name = Label(P),
    Around = range(Evidence) div ?AROUND,
    finding(mailbox, Name, max(0.5, Left / Peak),
            ["to ", Name, " ", number(Peak), " messages were on their way ", seconds(At - From),
             " after the begin, and ", number(Left), " at the end"],
            {[P], times([{max(From, At - Around), min(To, At + Around)}], From)},
            #{peak => Peak, at => At - From, left => Left}).

long_gc(Longest, #{from := From, totals := #{run := Run, gc := Gc}} = Evidence,
        #{label := Label}) ->
    #{gc := Most, collections := Collections} = Evidence,
    [{P, _, _} | _] = Collections,
    Name = Label(P),
    finding(long_gc, Name, Gc / range(Evidence),
            ["garbage collections take ", percent(Gc / max(1, Run)), " of the running time; the "
             "longest took ", milliseconds(Longest), ", in ", Name],
            {[P | [Q || {Q, _} <- lists:sublist(Most, ?NAMED)]], times(Collections, From)},
            #{gc_ns => Gc, run_ns => Run, longest_ns => Longest,
              processes => [#{process => Label(Q), gc_ns => Its, run_ns => Ran}
                            || {Q, #{gc := Its, run := Ran}} <- lists:sublist(Most, ?NAMED)],
              longest => [#{process => Label(Q), from => A - From, to => B - From}
                          || {Q, A, B} <- lists:sublist(Collections, ?NAMED)]}).

migration(#{totals := #{moves := Moves, ins := Ins}, moves := Most}, #{label := Label}) ->
    [{P, #{moves := Its}} | _] = Most,
    finding(migration, Label(P), Moves / Ins,
            ["processes were scheduled in on another scheduler than before ", number(Moves),
             " times, ", percent(Moves / Ins), " of all; ", Label(P), " ", number(Its), " times"],
            {[Q || {Q, _} <- lists:sublist(Most, ?NAMED)], []},
            #{moves => Moves, ins => Ins,
              processes => [#{process => Label(Q), moves => M, ins => I}
                            || {Q, #{moves := M, ins := I}} <- lists:sublist(Most, ?NAMED)]}).

sleeping(#{from := From, parallel := Parallel} = Evidence) ->
    #{asleep := Asleep, asleep_could := Could, sleeps := Sleeps} = Parallel,
    Share = Asleep / range(Evidence),
    finding(sleeping, null, Share,
            ["in ", percent(Share), " of the time a scheduler slept while a process could run, ",
             decimal(Could / Asleep), " of them at a time"],
            {[], times(Sleeps, From)},
            #{asleep_ns => Asleep, waited_ns => Could,
              longest => [#{from => A - From, to => B - From}
                          || {A, B} <- lists:sublist(Sleeps, ?NAMED)]}).

busy_port({P, Ns}, Range, #{label := Label, owner := Owner}) ->
    Name = Label(P),
    Opener = Owner(P),
    By = case Opener of
        0 -> "";
        _ -> [", opened by ", Label(Opener), ","]
    end,
    finding(busy_port, Name, min(1.0, Ns / Range),
            [Name, By, " works or waits for a scheduler in ", percent(Ns / Range), " of the time"],
            {[P | [Opener || Opener > 0]], []}, #{busy_ns => Ns}).

%% The functions of tables, each with who calls it, those first that take longest themselves.
table_places(#{stacks := Stacks, calls := Calls}, #{word := Word}) ->
    Own = lists:foldl(fun({[F | Callers], Ns}, Acc) ->
        case Word(F) of
            <<"ets:", _/binary>> ->
                Key = {F, case Callers of [Caller | _] -> Caller; [] -> 0 end},
                Acc#{Key => maps:get(Key, Acc, 0) + Ns};
            _ -> Acc
        end
    end, #{}, Stacks),
    lists:sort(fun({_, _, A}, {_, _, B}) -> A >= B end,
               [{Place, maps:get(Place, Calls, 0), Ns} || Place := Ns <- Own]).

tables([{Most, _, MostNs} | _] = Places, Ns, Run, #{word := Word}) ->
    All = max(1, Run),
    Named = fun({F, Caller}) ->
        [Word(F) | [[" in ", Word(Caller)] || Caller > 0]]
    end,
    Times = lists:sum([N || {_, N, _} <- Places]),
    finding(tables, null, min(1.0, Ns / All),
            ["functions of ets take ", percent(Ns / All), " of the running time, in ",
             number(Times), " calls; most of it ", Named(Most), ", ", percent(MostNs / All)],
            {[], []},
            #{tables_ns => Ns, run_ns => Run, times => Times,
              places => [#{process => text(Named(Place)), calls => N, own_ns => Own}
                         || {Place, N, Own} <- lists:sublist(Places, ?NAMED)]}).

%% ---------------------------------------------------------------- words

text(Chars) -> unicode:characters_to_binary(Chars).

percent(Share) when Share < 0.1 -> io_lib:format("~.1f %", [100.0 * Share]);
percent(Share) -> io_lib:format("~b %", [round(100 * Share)]).

decimal(N) -> io_lib:format("~.1f", [float(N)]).

number(N) -> integer_to_list(N).

milliseconds(Ns) -> io_lib:format("~.1f ms", [Ns / 1.0e6]).

seconds(Ns) -> io_lib:format("~.3f s", [Ns / 1.0e9]).
