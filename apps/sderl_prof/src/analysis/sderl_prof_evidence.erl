%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_evidence).
-moduledoc """
What findings are made of (`m:sderl_prof_findings`): how much ran side by side and who kept it from
doing so, messages on their way, garbage collections, changes of the scheduler, busy ports, calls.
Pure; one pass over the events, in memory for the processes that live at a time, and for as many
stacks as are told apart.
""".

-export([new/1, step/7, finish/2]).
-export_type([evidence/0, options/0, result/0]).

-include("sderl_prof_event.hrl").

%% Events between two looks for processes that have ended.
-define(DRAIN, 65_536).
%% Processes and collections that are kept.
-define(MOST, 20).
%% Stacks of functions that are told apart.
-define(MOST_STACKS, 50_000).
%% Fewer messages on their way are not kept.
-define(LEAST_BACKLOG, 100).

-doc """
`mode` as `m:sderl_prof_activity` has it; the number of schedulers, where it is known. `is_port`
tells ports from processes, and `calls` whether calls of functions were recorded. `seen` is called
now and then, with how many events came since.
""".
-type options() :: #{from := integer(), mode := sderl_prof_activity:mode(),
                     schedulers := pos_integer() | unknown,
                     is_port => fun((pos_integer()) -> boolean()), calls => boolean(),
                     seen => fun((pos_integer()) -> term())}.

-doc """
`totals` are the sums of all processes, in which messages need not be counted; `gc` and `moves` the
processes with most of these, with their sums; `ports` the busiest ports: their work is what they
could run, because when they do is not recorded. `collections` are the longest ones.
""".
-type result() :: #{
    from := integer(), to := integer(),
    totals := sderl_prof_activity:sums(),
    gc := [{pos_integer(), sderl_prof_activity:sums()}],
    moves := [{pos_integer(), sderl_prof_activity:sums()}],
    ports := [{pos_integer(), Busy :: non_neg_integer()}],
    calls := none | sderl_prof_calls:result(),
    collections := [{pos_integer(), From :: integer(), To :: integer()}],
    parallel := sderl_prof_parallel:result(),
    backlog := [sderl_prof_backlog:row()]
}.

-record(evidence, {
    options :: options(),
    activity :: sderl_prof_activity:activity(),
    parallel :: sderl_prof_parallel:parallel(),
    backlog = sderl_prof_backlog:new(?LEAST_BACKLOG) :: sderl_prof_backlog:backlog(),
    totals = sderl_prof_activity:sums([]) :: sderl_prof_activity:sums(),
    gc = sderl_prof_top:new(?MOST) :: sderl_prof_top:top(),
    moves = sderl_prof_top:new(?MOST) :: sderl_prof_top:top(),
    ports = sderl_prof_top:new(?MOST) :: sderl_prof_top:top(),
    calls = none :: none | sderl_prof_calls:calls(),
    seen = 1 :: pos_integer()
}).
-opaque evidence() :: #evidence{}.

-doc "Nothing yet.".
-spec new(options()) -> evidence().
new(#{from := From, mode := Mode, schedulers := Schedulers} = Options) ->
    #evidence{options = Options,
              activity = sderl_prof_activity:new(Mode, fun collection/7, sderl_prof_top:new(?MOST)),
              parallel = sderl_prof_parallel:new(From, Schedulers),
              calls = case Options of
                  #{calls := true} -> sderl_prof_calls:new(?MOST_STACKS);
                  _ -> none
              end}.

collection(gc, P, From, To, _, _, Longest) ->
    sderl_prof_top:add(To - From, {P, From, To}, Longest);
collection(_, _, _, _, _, _, Longest) ->
    Longest.

-doc "One event more.".
-spec step(integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
           non_neg_integer(), evidence()) -> evidence().
step(T, K, _, _, Awake, _, #evidence{parallel = Par} = E)
  when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
    E#evidence{parallel = sderl_prof_parallel:awake(T, Awake, Par)};
step(T, K, S, P, A, B, #evidence{activity = Act, parallel = Par, seen = Seen} = E) ->
    Act1 = case is_of_activity(K, E#evidence.options) of
        true -> sderl_prof_activity:step(T, K, S, P, A, B, Act);
        false -> Act
    end,
    Par1 = case changes(K, P, A, E#evidence.options) of
        0 -> Par;
        Who ->
            sderl_prof_parallel:change(T, Who, sderl_prof_activity:state(Who, Act),
                                       sderl_prof_activity:state(Who, Act1),
                                       fun(Other) -> sderl_prof_activity:state(Other, Act1) end,
                                       Par)
    end,
    E1 = messages(T, K, P, A, E#evidence{activity = Act1, parallel = Par1, seen = Seen + 1,
                                         calls = called(T, K, P, A, B, E#evidence.calls)}),
    case Seen rem ?DRAIN of
        0 ->
            _ = told(?DRAIN, E1#evidence.options),
            {Ended, Act2} = sderl_prof_activity:drain(E1#evidence.activity),
            sums(Ended, E1#evidence{activity = Act2});
        _ -> E1
    end.

told(Events, #{seen := Seen}) -> Seen(Events);
told(_, _) -> ok.

called(_, _, _, _, _, none) -> none;
called(T, K, P, A, B, Calls) -> sderl_prof_calls:step(T, K, P, A, B, Calls).

%% No finding needs how much each process sent and received, and counting it is half of the work.
is_of_activity(K, #{mode := Mode}) when K =:= ?SEND; K =:= ?RECEIVE -> Mode =:= messages;
is_of_activity(_, _) -> true.

%% The process of which an event may change the state, 0 for none.
changes(K, P, _, _)
  when K =:= ?IN; K =:= ?OUT; K =:= ?ACTIVE; K =:= ?INACTIVE; K =:= ?SPAWNED; K =:= ?EXIT -> P;
changes(?RECEIVE, P, _, #{mode := messages}) -> P;
changes(?SEND, _, To, #{mode := messages}) -> To;
changes(_, _, _, _) -> 0.

messages(T, ?SEND, P, To, #evidence{parallel = Par, backlog = Backlog} = E) ->
    E#evidence{parallel = sderl_prof_parallel:send(T, P, To, Par),
               backlog = sderl_prof_backlog:send(T, To, Backlog)};
messages(T, ?RECEIVE, P, _, #evidence{backlog = Backlog} = E) ->
    E#evidence{backlog = sderl_prof_backlog:'receive'(T, P, Backlog)};
messages(T, ?EXIT, P, _, #evidence{parallel = Par, backlog = Backlog} = E) ->
    E#evidence{parallel = sderl_prof_parallel:exited(T, P, Par),
               backlog = sderl_prof_backlog:exited(P, Backlog)};
messages(_, _, _, _, E) ->
    E.

sums(Ended, E) ->
    lists:foldl(fun({P, Sums}, #evidence{totals = Totals, gc = Gc, moves = Moves} = E1) ->
        E1#evidence{
            totals = sderl_prof_activity:sums([Totals, Sums]),
            gc = sderl_prof_top:add(map_get(gc, Sums), {P, Sums}, Gc),
            moves = sderl_prof_top:add(map_get(moves, Sums), {P, Sums}, Moves),
            ports = sderl_prof_top:add(busy(P, Sums, E1#evidence.options), P, E1#evidence.ports)
        }
    end, E, Ended).

%% What is scheduled in is a process, and need not be looked up.
busy(P, #{ins := 0, runnable := Ns}, #{is_port := IsPort}) when Ns > 0 ->
    case IsPort(P) of
        true -> Ns;
        false -> 0
    end;
busy(_, _, _) -> 0.

-doc "What is known at the end.".
-spec finish(End :: integer(), evidence()) -> result().
finish(End, #evidence{options = #{from := From}, activity = Act} = E) ->
    {Rest, Longest} = sderl_prof_activity:finish(End, Act),
    #evidence{totals = Totals, gc = Gc, moves = Moves, ports = Ports} = sums(Rest, E),
    #{
        from => From,
        to => End,
        totals => Totals,
        gc => items(Gc),
        moves => items(Moves),
        ports => [{P, Ns} || {Ns, P} <- sderl_prof_top:result(Ports)],
        calls => case E#evidence.calls of
            none -> none;
            Calls -> sderl_prof_calls:result(Calls)
        end,
        collections => items(Longest),
        parallel => sderl_prof_parallel:finish(End, E#evidence.parallel),
        backlog => sderl_prof_backlog:result(E#evidence.backlog)
    }.

items(Top) -> [Item || {_, Item} <- sderl_prof_top:result(Top)].
