%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_path).
-moduledoc """
The critical path of a time range: the one chain of runs, waits for a scheduler and messages that
leads to the last thing that ran. Pure; events come in backwards, from the latest to the earliest
(`sderl_prof_book:fold_back/5`), and each is looked at once.

From the end of a run the path goes back to where the process was scheduled in (`running`), from
there to where it could have run (`runnable`), and from there to the message that ended its wait: to
the last one before (`message`), whose sender ran when it sent it. So it goes on with that one's
run. A process that has just begun leads to its parent. A wait that no recorded message ended is on
the path itself (`waiting`), and the path goes on with the same process.

Where the system profiler did not record what could run, a process could have run from the last
message to it on, and one that got none was only interrupted. With no messages either, all between
two runs is `waiting`.

Of a book of several nodes a message of another node is `between` rather than `message`: most of its
time is that of the way. Where it is not known what could run, it lasts until its receiver runs.

A wait that ends within a millisecond after a child of the process has ended is taken to have ended
with the child's exit signal, which no event tells; that is a `message`, too.

Memory is that of the longest segments and of the sums by process, both bounded.
""".

-export([new/1, step/7, wanted/1, result/1]).
-export_type([path/0, options/0, kind/0, segment/0, result/0]).

-include("sderl_prof_event.hrl").

%% Processes whose sums are told apart.
-define(MOST_KEYS, 40_000).
%% Between the end of a child and that of the wait that it ends.
-define(EXIT_NS, 1_000_000).
-define(NONE, #{running => 0, runnable => 0, waiting => 0, message => 0, between => 0}).

-type kind() :: running | runnable | waiting | message | between.

-doc """
`mode` tells how it is known what could run (`m:sderl_prof_activity`); `parent` gives the parent of
a process, or 0; `node`, where there are several, the node of a process; `process`: the path leads
to the last run of this one; `most` segments are kept.
""".
-type options() :: #{from := integer(), to := integer(), mode := sderl_prof_activity:mode(),
                     parent := fun((pos_integer()) -> non_neg_integer()),
                     node => fun((pos_integer()) -> term()),
                     process => pos_integer(), most := pos_integer()}.

-doc """
`site` is the word of the function in which the process runs or waits, 0 where none is known;
`sender` is that of a message, 0 for other kinds.
""".
-type segment() :: #{kind := kind(), process := pos_integer(), from := integer(), to := integer(),
                     site := non_neg_integer(), sender := non_neg_integer()}.

-doc """
`to` is the end of the last run; `steps` counts all segments, of which the longest are in
`segments`, the earliest first; `processes` is in the order of their time on the path; `rest` is
the time of processes that were not told apart.
""".
-type result() :: #{
    from := integer(), to := integer(), steps := non_neg_integer(),
    kinds := #{kind() := non_neg_integer()},
    processes := [{pos_integer(), #{kind() := non_neg_integer()}}],
    rest := non_neg_integer(),
    segments := [segment()]
}.

%% Where the path is, and until when what is looked for lasts.
-type place() ::
    %% Looks for the last thing that ran.
    last
    %% It runs; the kind of the event after this, 0 while nothing tells that it is recorded.
    | {runs, pos_integer(), Until :: integer(), Site :: non_neg_integer(), Next :: byte()}
    %% It is scheduled in then, and could have run since a time that is looked for.
    %% `Received`: the first that it did then was to receive a message.
    | {ready, pos_integer(), Until :: integer(), Site :: non_neg_integer(), Received :: boolean()}
    %% Its wait ended then.
    | {woken, pos_integer(), Until :: integer()}.

-record(path, {
    options :: options(),
    place = last :: place(),
    ended :: none | integer(),
    steps = 0 :: non_neg_integer(),
    kinds = ?NONE :: #{kind() => non_neg_integer()},
    times = sderl_prof_tally:new(?MOST_KEYS) :: sderl_prof_tally:tally(),
    longest :: sderl_prof_top:top()
}).
-opaque path() :: #path{}.

-doc "Nothing yet.".
-spec new(options()) -> path().
new(#{most := Most} = Options) ->
    #path{options = Options, ended = none, longest = sderl_prof_top:new(Most)}.

-doc "The process whose events are looked for; `any` where it may be that of any.".
-spec wanted(path()) -> any | pos_integer().
wanted(#path{place = {runs, P, _, _, _}}) -> P;
wanted(#path{place = {ready, P, _, _, _}, options = #{mode := Mode}})
  when Mode =/= messages -> P;
wanted(#path{place = last, options = #{process := P}}) -> P;
wanted(#path{}) -> any.

-doc "One event more, not later than the one before.".
-spec step(integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
           non_neg_integer(), path()) -> path().
step(T, K, _, P, A, _, #path{place = {runs, P, _, _, _}} = Path) ->
    back_in_run(T, K, A, Path);
step(T, K, _, P, A, _, #path{place = {ready, P, _, _, _}} = Path) ->
    back_from_run(T, K, A, Path);
step(T, ?SEND, _, Sender, P, _,
     #path{place = {ready, P, Until, Site, _}, options = #{mode := messages}} = Path) ->
    Came = case came(Sender, P, Path) of
        between -> segment(between, P, T, Until, Site, Sender, Path);
        message -> segment(runnable, P, T, Until, Site, 0, Path)
    end,
    go({runs, Sender, T, 0, ?SEND}, Came);
step(T, K, _, P, A, _, #path{place = {woken, P, Until}} = Path) ->
    back_in_wait(T, K, P, A, Until, Path);
step(T, ?SEND, _, Sender, P, _, #path{place = {woken, P, Until}} = Path) ->
    Came = segment(came(Sender, P, Path), P, T, Until, 0, Sender, Path),
    go({runs, Sender, T, 0, ?SEND}, Came);
step(T, ?EXIT, _, Child, _, _, #path{place = {woken, P, Until}} = Path)
  when Until - T =< ?EXIT_NS ->
    #path{options = #{parent := Parent}} = Path,
    case Parent(Child) of
        P ->
            Came = segment(came(Child, P, Path), P, T, Until, 0, Child, Path),
            go({runs, Child, T, 0, ?EXIT}, Came);
        _ -> Path
    end;
step(T, K, _, P, A, _, #path{place = last, options = Options} = Path) when P > 0 ->
    case Options of
        #{process := Other} when Other =/= P -> Path;
        _ -> last_run(T, K, P, A, Path)
    end;
step(_, _, _, _, _, _, Path) ->
    Path.

came(Sender, Receiver, #path{options = #{node := Node}}) ->
    case Node(Sender) =:= Node(Receiver) of
        true -> message;
        false -> between
    end;
came(_, _, _) -> message.

%% A process runs to the end of the range when no later event schedules it out.
last_run(T, ?OUT, P, Site, Path) -> go({runs, P, T, Site, ?OUT}, Path#path{ended = T});
last_run(T, K, P, _, Path)
  when K =:= ?EXIT; K =:= ?OUT_EXITING; K =:= ?OUT_EXITED ->
    go({runs, P, T, 0, K}, Path#path{ended = T});
last_run(T, K, P, A, #path{options = #{to := To}} = Path)
  when K =:= ?IN; K =:= ?IN_EXITING; K =:= ?SEND; K =:= ?SEND_NOBODY; K =:= ?SPAWN; K =:= ?CALL;
       K =:= ?RETURN_TO; K =:= ?RETURN_FROM; K =:= ?EXCEPTION; K >= ?OPERATION ->
    back_in_run(T, K, A, go({runs, P, To, 0, K}, Path#path{ended = To}));
last_run(_, _, _, _, Path) -> Path.

back_in_run(T, K, A, #path{place = {runs, P, Until, Site0, Next}} = Path)
  when K =:= ?IN; K =:= ?IN_EXITING ->
    Site = case A of 0 -> Site0; _ -> A end,
    go({ready, P, T, Site, Next =:= ?RECEIVE}, segment(running, P, T, Until, Site, 0, Path));
back_in_run(T, K, A, #path{place = {runs, P, Until, _, _}} = Path)
  when K =:= ?OUT; K =:= ?OUT_EXITING ->
    %% That it came in again was lost.
    go({runs, P, T, A, K}, segment(waiting, P, T, Until, A, 0, Path));
back_in_run(T, ?SPAWNED, Parent, #path{place = {runs, P, Until, Site, _}} = Path) ->
    go({runs, Parent, T, 0, 0}, segment(running, P, T, Until, Site, 0, Path));
back_in_run(_, K, _, #path{place = {runs, P, Until, Site, _}} = Path) ->
    go({runs, P, Until, Site, K}, Path).

back_from_run(T, ?ACTIVE, _, #path{place = {ready, P, Until, Site, _},
                                   options = #{mode := recorded}} = Path) ->
    go({woken, P, T}, segment(runnable, P, T, Until, Site, 0, Path));
back_from_run(_, ?INACTIVE, _, #path{place = {ready, P, Until, _, _},
                                     options = #{mode := recorded}} = Path) ->
    %% That it could run was lost.
    go({woken, P, Until}, Path);
back_from_run(T, K, A, #path{place = {ready, P, Until, _, Received},
                             options = #{mode := Mode}} = Path)
  when K =:= ?OUT; K =:= ?OUT_EXITING ->
    Kind = case Mode of
        recorded -> runnable;
        messages when not Received -> runnable;
        _ -> waiting
    end,
    go({runs, P, T, A, K}, segment(Kind, P, T, Until, A, 0, Path));
back_from_run(T, ?SPAWNED, Parent, #path{place = {ready, P, Until, Site, _}} = Path) ->
    go({runs, Parent, T, 0, 0}, segment(runnable, P, T, Until, Site, 0, Path));
back_from_run(_, _, _, Path) ->
    Path.

back_in_wait(T, K, P, Site, Until, Path) when K =:= ?OUT; K =:= ?OUT_EXITING ->
    go({runs, P, T, Site, K}, segment(waiting, P, T, Until, Site, 0, Path));
back_in_wait(T, ?IN, P, Site, Until, Path) ->
    %% That it went out was lost.
    go({ready, P, T, Site, false}, segment(waiting, P, T, Until, Site, 0, Path));
back_in_wait(T, ?SPAWNED, P, Parent, Until, Path) ->
    go({runs, Parent, T, 0, 0}, segment(runnable, P, T, Until, 0, 0, Path));
back_in_wait(_, _, _, _, _, Path) ->
    Path.

go(Place, Path) -> Path#path{place = Place}.

segment(_, _, From, To, _, _, Path) when To =< From -> Path;
segment(Kind, P, From, To, Site, Sender,
        #path{steps = Steps, kinds = Kinds, times = Times, longest = Longest} = Path) ->
    #{Kind := Before} = Kinds,
    Path#path{
        steps = Steps + 1,
        kinds = Kinds#{Kind := Before + To - From},
        times = sderl_prof_tally:add({P, Kind}, To - From, Times),
        longest = sderl_prof_top:add(To - From, {From, To, Kind, P, Site, Sender}, Longest)
    }.

-doc "The path, from the begin of the range on.".
-spec result(path()) -> result().
result(#path{options = #{from := From, to := To}, ended = Ended} = Path0) ->
    #path{steps = Steps, kinds = Kinds, times = Times, longest = Longest} = begun(From, Path0),
    {Rows, {_, Rest, _}, _} = sderl_prof_tally:result(Times),
    #{
        from => From,
        to => case Ended of none -> To; _ -> Ended end,
        steps => Steps,
        kinds => Kinds,
        processes => by_process(Rows),
        rest => Rest,
        segments => [#{kind => Kind, process => P, from => A, to => B, site => Site,
                       sender => Sender}
                     || {A, B, Kind, P, Site, Sender}
                            <- lists:sort([Item || {_, Item} <- sderl_prof_top:result(Longest)])]
    }.

%% The state when the range began. Nothing is known of a parent without events.
begun(_, #path{place = last} = Path) ->
    Path;
begun(From, #path{place = {runs, P, Until, _, 0}} = Path) ->
    segment(waiting, P, From, Until, 0, 0, Path);
begun(From, #path{place = {runs, P, Until, Site, _}} = Path) ->
    segment(running, P, From, Until, Site, 0, Path);
begun(From, #path{place = Place} = Path) ->
    segment(waiting, element(2, Place), From, element(3, Place), 0, 0, Path).

by_process(Rows) ->
    Sums = maps:fold(fun({P, Kind}, {_, Ns, _}, All) ->
        All#{P => (maps:get(P, All, ?NONE))#{Kind := Ns}}
    end, #{}, Rows),
    All = fun({P, Times}) -> {-lists:sum(maps:values(Times)), P} end,
    lists:sort(fun(A, B) -> All(A) =< All(B) end, maps:to_list(Sums)).
