%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_watchers).
-moduledoc "Processes that get events of the work, and the count of steps for their progress.".

-export([new/0, add/4, remove/2, begin_anew/1]).
-export([begin_count/2, end_count/1, step_ended/1, so_far/2]).
-export([progress/3, note/2, state/3]).
-export_type([watchers/0, event/0]).

-doc "What they are sent: `{sderl_ops, Event}`.".
-type event() ::
    {progress, Done :: non_neg_integer(), Total :: pos_integer(), unicode:chardata()}
    | {note, unicode:chardata()}
    | {state, State :: atom(), Problems :: [unicode:chardata()]}.

-record(watchers, {
    pids = #{} :: #{reference() => pid()},
    told = none :: none | {State :: atom(), Problems :: [unicode:chardata()]},
    %% Steps that have ended since work began, and how many there seemed to be then.
    count = 0 :: non_neg_integer(),
    total = none :: none | non_neg_integer()
}).

-opaque watchers() :: #watchers{}.

-doc "No watchers.".
-spec new() -> watchers().
new() -> #watchers{}.

-doc "Adds a watcher, which is told the state.".
-spec add(pid(), State :: atom(), Problems :: [unicode:chardata()], watchers()) -> watchers().
add(Pid, State, Problems, #watchers{pids = Pids} = Watchers) ->
    Pid ! {sderl_ops, {state, State, Problems}},
    Watchers#watchers{pids = Pids#{monitor(process, Pid) => Pid}}.

-doc "Removes a watcher that has ended.".
-spec remove(reference(), watchers()) -> {ok, watchers()} | error.
remove(Ref, #watchers{pids = Pids} = Watchers) ->
    case maps:take(Ref, Pids) of
        {_, Left} -> {ok, Watchers#watchers{pids = Left}};
        error -> error
    end.

-doc "There is a new revision, of which nothing was told yet.".
-spec begin_anew(watchers()) -> watchers().
begin_anew(Watchers) -> Watchers#watchers{total = none, told = none}.

-doc "Work begins: its steps are counted, unless other work is under way.".
-spec begin_count(Total :: fun(() -> non_neg_integer()), watchers()) -> watchers().
begin_count(Total, #watchers{total = none} = Watchers) ->
    Watchers#watchers{count = 0, total = Total()};
begin_count(_, Watchers) ->
    Watchers.

-doc "There is nothing left to do.".
-spec end_count(watchers()) -> watchers().
end_count(Watchers) -> Watchers#watchers{total = none}.

-doc "A step has ended.".
-spec step_ended(watchers()) -> watchers().
step_ended(#watchers{count = Count} = Watchers) -> Watchers#watchers{count = Count + 1}.

-doc "How many steps are done and how many there are; `Doing` are being done.".
-spec so_far(Doing :: non_neg_integer(), watchers()) ->
    none | #{done := non_neg_integer(), total := pos_integer()}.
so_far(_, #watchers{total = none}) -> none;
so_far(Doing, #watchers{count = Count, total = Total}) ->
    #{done => Count, total => max(1, max(Total, Count + Doing))}.

-doc "Tells that steps begin; `Doing` counts all that are being done now.".
-spec progress([sderl_ops_step:step()], Doing :: non_neg_integer(), watchers()) -> ok.
progress(Steps, Doing, #watchers{count = Count, total = Total} = Watchers) ->
    lists:foreach(fun(Step) ->
        tell({progress, Count, max(Total, Count + Doing), sderl_ops_step:words(Step)}, Watchers)
    end, Steps).

-doc "Tells a note.".
-spec note(unicode:chardata(), watchers()) -> ok.
note(Text, Watchers) -> tell({note, Text}, Watchers).

-doc "Tells the state if it has changed.".
-spec state(State :: atom(), Problems :: [unicode:chardata()], watchers()) -> watchers().
state(State, Problems, #watchers{told = {State, Problems}} = Watchers) ->
    Watchers;
state(State, Problems, Watchers) ->
    ok = tell({state, State, Problems}, Watchers),
    Watchers#watchers{told = {State, Problems}}.

tell(Event, #watchers{pids = Pids}) ->
    maps:foreach(fun(_, Pid) -> Pid ! {sderl_ops, Event} end, Pids).
