%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_watch).
-moduledoc """
How an agent watches one node: reach it, get a probe or read it as it is, notice when it goes silent
or down, and try again, ever less often.

Pure: `step(Event, Now, Watch) -> {Effects, Watch}` with `Now` in milliseconds of monotonic time.

| phase | meaning | its timer |
|---|---|---|
| `waiting` | cannot be reached, or was not tried yet | the next try |
| `attaching` | a job connects it and starts the probe | |
| `probed` | the probe tells by itself | the longest silence |
| `stock` | read from here; between two readings | the next reading |
| `reading` | a job reads it | |

Only a sample makes a node `up`: a node that is stopped may still be connected.

As long as jobs end in time, a node has one that attaches it at a time: such a job tells the probe
what is wanted, and of two jobs the one that begins first may end last. What changes meanwhile has
another job begin after it. A sample may come before the answer of the job that asked for it.
""".

-export([new/2, step/3, report/1, sample/1, is_up/1, lane/1, age/2, shift/2]).
-export_type([watch/0, event/0, effect/0]).

-type status() :: sderl_mon_message:status().
-opaque watch() :: #{
    node := node(),
    interval := pos_integer(),
    phase := waiting | attaching | probed | stock | reading,
    status := status(),
    why := binary(),
    source := probe | stock | none,
    tries := non_neg_integer(),
    job := non_neg_integer(),
    attach := attach(),
    last := undefined | sderl_mon_samples:sample(),
    facts := sderl_mon_samples:facts() | #{},
    %% The processes that the probe sent last; it sends them again to a new owner.
    top := #{} | #{top := [sderl_mon_types:process()]},
    heard := integer() | undefined,
    %% When the last job began.
    asked := integer()
}.
%% Of the jobs that attach the node: none is under way, one is, one is and another is to follow it
%% (`again`), or one found no probe although samples come, and is begun anew with the next (`owed`).
-type attach() :: none | under_way | again | owed.
-type event() ::
    due
    | seen
    | nodedown
    | {attached, Job :: integer(),
       {ok, probe | {stock, Why :: binary()}} | {error, link | node | term, Why :: binary()}}
    | {read, Job :: integer(),
       {ok, sderl_mon_samples:sample()} | {error, Where :: link | node, Why :: binary()}}
    | {sample, sderl_mon_samples:sample()}
    | retake
    | woken
    | {configured, Interval :: pos_integer()}.
-doc """
`job`: begin that work, and answer with its number. `timer`: `due` after so many milliseconds, in
place of the timer before. `told`: report the node.
""".
-type effect() :: {job, attach | read, integer()} | {timer, non_neg_integer()} | told.

-define(FIRST_RETRY_MS, 250).
-define(LAST_RETRY_MS, 10_000).
-define(JOB_MS, 30_000).
%% How often, and how long apart, to ask for a probe that a newer master has, before the node counts
%% as unreachable.
-define(PATIENCE, 4).
-define(DEPOSED_MS, 1000).
%% After this many readings a node without a probe is asked for one again.
-define(READINGS, 60).

-doc "A node that was not tried yet. `Interval`: how often it is to send its numbers.".
-spec new(node(), pos_integer()) -> watch().
new(Node, Interval) ->
    #{
        node => Node,
        interval => Interval,
        phase => waiting,
        status => down,
        why => sderl_mon_types:untried(),
        source => none,
        tries => 0,
        job => 0,
        attach => none,
        last => undefined,
        facts => #{},
        top => #{},
        heard => undefined,
        asked => 0
    }.

-doc "One step.".
-spec step(event(), Now :: integer(), watch()) -> {[effect()], watch()}.
step(due, Now, #{phase := waiting} = W) ->
    attach(Now, W);
step(due, Now, #{phase := probed, heard := Heard, tries := Tries} = W) ->
    %% The probe may have ended unnoticed; asking for it again does no harm.
    {Told, W1} = status(unreachable, silence(Now, Heard), W),
    {Effects, W2} = attach(Now, W1#{tries := Tries + 1}),
    {Told ++ Effects, W2};
step(due, Now, #{phase := stock, job := Job} = W) when Job rem ?READINGS =:= 0 ->
    attach(Now, W);
step(due, Now, #{phase := stock} = W) ->
    read(Now, W);
%% There is no connection, and the job may still wait for its turn, which says nothing about the
%% node.
step(due, _, #{phase := attaching, status := down, job := Job} = W) ->
    {[{job, attach, Job}, {timer, ?JOB_MS}], W};
%% The process that had the job died, or the job still waits for its turn.
step(due, _, #{phase := Phase} = W) when Phase =:= attaching; Phase =:= reading ->
    failed(node, <<"connected, and does not answer">>, W);
%% Others have a link to it.
step(seen, _, #{phase := waiting, tries := Tries} = W) when Tries > 1 ->
    {[{timer, 0}], W#{tries := 1}};
step(seen, _, W) ->
    {[], W};
%% The next sample may be of another run of the node, and is not compared with one from before.
step(nodedown, _, #{phase := Phase} = W) when Phase =/= waiting ->
    {Told, W1} = status(down, <<"the connection was lost">>, W),
    %% The result of the job under way will be ignored.
    {Told ++ [{timer, ?FIRST_RETRY_MS}],
     next_job(W1#{phase := waiting, attach := none, tries := 0, last := undefined})};
step(nodedown, _, W) ->
    {[], W#{last := undefined}};
step(woken, Now, #{phase := probed} = W) ->
    attach(Now, W);
step(woken, Now, W) ->
    step(due, Now, W);
%% A new term: another agent may have had the probe meanwhile, even if a sample has just arrived.
step(retake, Now, #{phase := Phase} = W)
  when Phase =:= probed; Phase =:= waiting; Phase =:= attaching ->
    attach(Now, W);
step(retake, _, W) ->
    {[], W};
%% The node is to be read in another way, or at another interval.
step({configured, Interval}, _, #{phase := waiting} = W) ->
    {[], W#{interval := Interval}};
step({configured, Interval}, Now, W) ->
    attach(Now, W#{interval := Interval});
step({attached, Job, Result}, Now, #{job := Job, attach := Attach} = W)
  when Attach =:= under_way; Attach =:= again ->
    answered(Result, Attach, Now, W#{attach := none});
step({read, Job, {ok, Sample}}, Now,
     #{job := Job, phase := reading, interval := Interval, asked := Asked} = W) ->
    {Told, W1} = heard(Sample, Now, W),
    {Told ++ [{timer, max(10, Asked + Interval - Now)}], W1#{phase := stock}};
step({read, Job, {error, Where, Why}}, _, #{job := Job, phase := reading} = W) ->
    failed(Where, Why, W);
step({sample, #{node := Node} = Sample}, Now, #{node := Node} = W) ->
    {Told, W1} = heard(Sample, Now, W#{source := probe}),
    {Effects, W2} = case is_owed(Now, W1) of
        true -> attach(Now, W1#{attach := none});
        false -> {[{timer, silent_ms(W1)}], W1#{phase := probed}}
    end,
    {Told ++ Effects, W2};
step(_, _, W) ->
    {[], W}.

%% Whether the probe tells although the last job failed or found none, or its answer is lost.
is_owed(_, #{phase := Phase}) when Phase =/= probed, Phase =/= attaching -> true;
is_owed(_, #{attach := none}) -> false;
is_owed(_, #{attach := owed}) -> true;
is_owed(Now, #{asked := Asked}) -> Now - Asked > ?JOB_MS.

attach(_, #{attach := Attach} = W) when Attach =:= under_way; Attach =:= again ->
    {[{timer, ?JOB_MS}], W#{phase := attaching, attach := again}};
attach(Now, W) ->
    job(attach, attaching, W#{attach := under_way, asked := Now}).

read(Now, W) -> job(read, reading, W#{asked := Now}).

job(What, Phase, W) ->
    #{job := Job} = W1 = next_job(W#{phase := Phase}),
    {[{job, What, Job}, {timer, ?JOB_MS}], W1}.

next_job(#{job := Job} = W) -> W#{job := Job + 1}.

answered({error, Where, _} = Error, _, Now, #{phase := attaching} = W) when Where =/= term ->
    attached(Error, Now, W);
answered(_, again, Now, W) ->
    attach(Now, W);
answered(Result, under_way, Now, #{phase := attaching} = W) ->
    attached(Result, Now, W);
%% A sample came meanwhile.
answered({ok, probe}, under_way, _, W) ->
    {[], W};
answered(_, under_way, _, W) ->
    {[], W#{attach := owed}}.

attached({ok, probe}, Now, #{heard := Heard} = W) ->
    {[{timer, silent_ms(W)}],
     W#{phase := probed, source := probe, heard := case Heard of undefined -> Now; _ -> Heard end}};
attached({ok, {stock, Why}}, Now, W) ->
    read(Now, W#{source := stock, why := Why});
%% An agent of a newer master has the probe. This agent will hear of that master; meanwhile the node
%% stays as it was.
attached({error, term, _}, _, #{tries := Tries} = W) when Tries < ?PATIENCE ->
    {[{timer, ?DEPOSED_MS}], W#{phase := waiting, tries := Tries + 1}};
attached({error, term, Why}, _, W) ->
    failed(node, Why, W);
attached({error, Where, Why}, _, W) ->
    failed(Where, Why, W).

failed(Where, Why, #{tries := Tries} = W) ->
    {Told, W1} = status(where(Where), Why, W),
    {Told ++ [{timer, retry_ms(Tries)}],
     W1#{phase := waiting, attach := none, tries := Tries + 1}}.

where(link) -> down;
where(node) -> unreachable.

retry_ms(Tries) -> min(?LAST_RETRY_MS, ?FIRST_RETRY_MS bsl min(Tries, 10)).

silent_ms(#{interval := Interval, tries := Tries}) -> max(3 * Interval, 2500) bsl min(Tries, 2).

silence(_, undefined) -> <<"connected, and does not answer">>;
silence(Now, Heard) ->
    iolist_to_binary(io_lib:format("connected, and silent for ~b s",
                                   [max(0, Now - Heard) div 1000])).

status(Status, Why, #{status := Status} = W) -> {[], W#{why := Why}};
status(Status, Why, W) -> {[told], W#{status := Status, why := Why}}.

heard(Sample, Now,
      #{facts := Facts, top := Top, status := Status, source := Source, why := Why,
        last := Last} = W) ->
    New = case Sample of #{facts := Said} -> summed_up(Said); #{} -> Facts end,
    Told = Status =/= up orelse told(New) =/= told(Facts) orelse visible(Sample) =/= visible(Last),
    %% Why there is no probe stays true while the node is up.
    Reason = case Source of stock -> Why; _ -> <<>> end,
    {[told || Told], W#{status := up, why := Reason, tries := 0,
                        last := with_top(Top, maps:remove(facts, Sample)), facts := New,
                        top := maps:merge(Top, maps:with([top], Sample)), heard := Now}}.

%% A probe sends its node's processes only when they have changed.
with_top(Top, #{source := probe} = Sample) -> maps:merge(Top, Sample);
with_top(_, Sample) -> Sample.

%% Of the groups that a node is not in, only the members matter. With many groups, all the lists
%% would be most of what is kept for each node, and sent again and again.
summed_up(#{known := [_, _ | _] = Known} = Facts) ->
    Facts#{known := [{others, lists:usort(lists:append([Nodes || {_, Nodes} <- Known]))}]};
summed_up(Facts) ->
    Facts.

%% The number of a group's names changes all the time, and is among the numbers.
told(#{groups := Groups} = Facts) -> Facts#{groups := [maps:without([names], G) || G <- Groups]};
told(Facts) -> Facts.

-doc """
The report on the node for others; `none` before the node was tried, because another agent may know
more.
""".
-spec report(watch()) -> sderl_mon_message:node_report() | none.
report(#{status := Status, why := Why, source := Source, facts := Facts, last := Last}) ->
    case Why =:= sderl_mon_types:untried() of
        true -> none;
        false ->
            #{status => Status, why => Why, source => Source, facts => Facts,
              peers => visible(Last)}
    end.

visible(undefined) -> [];
visible(Sample) ->
    lists:sort([Peer || #{node := Peer, type := visible} <- maps:get(links, Sample, [])]).

-doc "The last sample since the node was connected, and its last facts.".
-spec sample(watch()) -> {undefined | sderl_mon_samples:sample(), sderl_mon_samples:facts() | #{}}.
sample(#{last := Last, facts := Facts}) -> {Last, Facts}.

-doc "Whether the node sends samples, or answers readings.".
-spec is_up(watch()) -> boolean().
is_up(#{status := Status}) -> Status =:= up.

-doc """
The lane of the pool in which it waits to be connected. A node that others have a link to does not
wait for nodes that are off.
""".
-spec lane(watch()) -> connect | retry.
lane(#{tries := Tries}) when Tries > 1 -> retry;
lane(_) -> connect.

-doc "The age of the last sample in milliseconds, while the node is up.".
-spec age(Now :: integer(), watch()) -> integer() | none.
age(Now, #{status := up, heard := Heard}) when is_integer(Now), is_integer(Heard) -> Now - Heard;
age(_, _) -> none.

-doc """
By how many milliseconds to shift a timer of `Interval`, so that it does not coincide with the
samples, which have these `Ages` now: a node whose sample comes now just before and now just after
it would count not at all, then twice. 0: no shift is needed.
""".
-spec shift(Ages :: [integer()], pos_integer()) -> integer().
shift([], _) ->
    0;
shift(Ages, Interval) ->
    [First | _] = Next = lists:usort([Interval - Age rem Interval || Age <- Ages]),
    Nearest = min(First, Interval - lists:last(Next)),
    Gaps = lists:zipwith(fun(A, B) -> {B - A, A} end, Next, tl(Next) ++ [First + Interval]),
    {Gap, After} = lists:max(Gaps),
    case Nearest < Interval div 10 andalso Gap div 2 > 2 * Nearest of
        true -> (After + Gap div 2) rem Interval;
        false -> 0
    end.
