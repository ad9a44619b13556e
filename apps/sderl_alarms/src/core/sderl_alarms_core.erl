%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_core).
-moduledoc """
The state of all alarms. Pure.

An alarm is raised when its value has been beyond a threshold at every check for the rule's time. It
may become major, or minor again, and is cleared when its value is back by more than the hysteresis,
or when its place or its rule is gone. An acknowledged alarm that becomes major is open again,
because the acknowledgement was for less.

Waits use the monotonic clock (`Now`), and the order of changes is a number (`seq`), so jumps of the
wall clock change neither. `Wall` is only shown. A `Now` that is earlier than the last one counts as
the last one: a check that comes twice changes nothing the second time.

## What routes get

A *note* is a change that is sent to routes. `told` of an alarm is the severity that was sent last.
An alarm that is raised, not silenced and not acknowledged is sent when its severity differs from
`told`; a cleared one when it was sent before. So a silence holds back what begins under it, but
never the end of an alarm that was sent before, and an alarm that lasts longer than the silence is
sent when that ends.

Of several monitoring nodes only the leader sends. The others raise and clear alarms by themselves,
and take `told` and `ack_told` from the leader. The next leader sends what differs from that, so
that no lasting alarm is left out and nothing is sent twice.
""".

-export([new/1, load/3, save/1, step/5, due/1, act/4, in_order/2, settle/2]).
-export([lead/2, told/1, adopt/2, adopt_all/2]).
-export([alarms/1, find/2, silences/1, counts/1, info/1, words/1, is_silenced/2]).
-export_type([state/0, saved/0, alarm/0, note/0, action/0, comment/0, kind/0]).

-type comment() ::
    #{id := binary(), by := binary(), at := sderl_mon_types:t(), text := binary()}.

-doc """
An alarm. `since` is when this occurrence began and `count` which one it is; `worst` is its worst
severity so far; `seq` grows with each change of any alarm. `nodes` and `groups` are what it
concerns.
""".
-type alarm() :: #{
    id := binary(),
    alarm := binary(),
    place := #{node | group | family | from | to => binary()},
    nodes := [binary()],
    groups := [binary()],
    is_raised := boolean(),
    severity := minor | major,
    worst := minor | major,
    since := sderl_mon_types:t(),
    cleared := sderl_mon_types:t() | null,
    why_cleared := binary(),
    count := pos_integer(),
    seq := pos_integer(),
    text := binary(),
    cause := binary(),
    remedy := binary(),
    tags := [binary()],
    value := number() | null,
    threshold := number() | null,
    unit := binary(),
    ack := #{acked := boolean(), by := binary(), at := sderl_mon_types:t(), text := binary()},
    comments := [comment()],
    told := none | minor | major,
    %% Whether the acknowledgement was sent to routes.
    ack_told := boolean()
}.

-type kind() :: raised | escalated | eased | acknowledged | cleared.

-doc "A change of an alarm that is sent to routes.".
-type note() :: {kind(), alarm()}.

-doc """
An action of a person. `key` is unique, so that an action that arrives twice is done once. `at` is
Unix time.
""".
-type action() ::
    #{do := acknowledge | reopen | comment, key := binary(), id := binary(), by := binary(),
      at := sderl_mon_types:t(), text := binary(), since => sderl_mon_types:t()}
    | #{do := silence, key := binary(), match := sderl_alarms_silence:match(),
        for_ms := pos_integer(), by := binary(), at := sderl_mon_types:t(), text := binary(),
        until => sderl_mon_types:t()}
    | #{do := unsilence, id := binary(), by := binary(), at := sderl_mon_types:t(), _ => _}.

-record(pending, {
    %% Since when the value has been beyond each threshold, and when it was seen last.
    minor = none :: integer() | none,
    major = none :: integer() | none,
    seen :: integer(),
    for_ms = 0 :: non_neg_integer()
}).

-record(state, {
    last :: integer(),
    settled :: integer(),
    seq = 0 :: non_neg_integer(),
    alarms = #{} :: #{binary() => alarm()},
    pending = #{} :: #{binary() => #pending{}},
    %% Since when nothing is known of a raised alarm.
    unseen = #{} :: #{binary() => integer()},
    silences = #{} :: #{binary() => sderl_alarms_silence:silence()},
    leads = true :: boolean(),
    dropped = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

%% No alarm is cleared for this long after monitoring began, because values are still missing.
-define(SETTLE_MS, 30_000).
%% After a gap this long without a value, the time beyond the threshold begins anew.
-define(GAP_MS, 20_000).
-define(GONE_MS, 30_000).
-define(UNKNOWN_MS, 600_000).
-define(MOST_RAISED, 5_000).
-define(MOST_CLEARED, 1_000).
-define(MOST_COMMENTS, 20).
-define(MOST_SILENCES, 200).

-doc "No alarm yet.".
-spec new(Now :: integer()) -> state().
new(Now) -> #state{last = Now, settled = Now + ?SETTLE_MS}.

-doc "Monitoring begins anew: for a while missing values are no reason to clear.".
-spec settle(Now :: integer(), state()) -> state().
settle(Now, #state{last = Last} = State) -> State#state{settled = max(Now, Last) + ?SETTLE_MS}.

-doc "What survives a restart; silences without `ends`.".
-type saved() :: #{alarms := [alarm()], silences := [map()], seq := non_neg_integer()}.

-doc "What survives a restart.".
-spec save(state()) -> saved().
save(#state{alarms = Alarms, silences = Silences, seq = Seq}) ->
    #{alarms => maps:values(Alarms), silences => [maps:remove(ends, S) || _ := S <- Silences],
      seq => Seq}.

-doc "The state from what was saved.".
-spec load(saved(), Now :: integer(), Wall :: integer()) -> state().
load(#{alarms := Alarms, silences := Silences, seq := Seq}, Now, Wall) ->
    (new(Now))#state{
        %% A file of an earlier version lacks `ack_told`.
        alarms = #{Id => maps:merge(#{ack_told => true}, A) || #{id := Id} = A <- Alarms},
        silences = #{Id => sderl_alarms_silence:restored(S, Wall, Now)
                     || #{id := Id} = S <- Silences},
        seq = Seq
    }.

-doc "All alarms: the raised ones, and those that were cleared last.".
-spec alarms(state()) -> [alarm()].
alarms(#state{alarms = Alarms}) ->
    lists:sort(fun(A, B) -> order(A) =< order(B) end, maps:values(Alarms)).

order(#{is_raised := true, ack := #{acked := Acked}, severity := Severity, seq := Seq}) ->
    {1, Acked, case Severity of major -> 1; minor -> 2 end, -Seq};
order(#{seq := Seq}) ->
    {2, false, 1, -Seq}.

-doc "The alarm of an id.".
-spec find(binary(), state()) -> {ok, alarm()} | error.
find(Id, #state{alarms = Alarms}) -> maps:find(Id, Alarms).

-doc "The silences in force.".
-spec silences(state()) -> [sderl_alarms_silence:silence()].
silences(#state{silences = Silences, last = Now}) ->
    lists:sort(fun(#{until := A}, #{until := B}) -> A =< B end,
               [S || _ := S <- Silences, sderl_alarms_silence:is_active(S, Now)]).

-doc "Whether a silence in force matches an alarm.".
-spec is_silenced(alarm(), state()) -> boolean().
is_silenced(Alarm, #state{silences = Silences, last = Now}) ->
    sderl_alarms_silence:any_fits(maps:values(Silences), Alarm, Now).

-doc "How many alarms there are by severity and state: raised, acknowledged, silenced.".
-spec counts(state()) ->
    #{{minor | major, raised | acknowledged | silenced} => non_neg_integer()}.
counts(#state{alarms = Alarms} = State) ->
    Zero = #{{Severity, Is} => 0 || Severity <- [minor, major],
                                    Is <- [raised, acknowledged, silenced]},
    lists:foldl(fun(Key, Acc) -> maps:update_with(Key, fun(N) -> N + 1 end, Acc) end, Zero,
                [{Severity, standing(Alarm, State)}
                 || _ := #{is_raised := true, severity := Severity} = Alarm <- Alarms]).

standing(#{ack := #{acked := true}}, _) -> acknowledged;
standing(Alarm, State) ->
    case is_silenced(Alarm, State) of
        true -> silenced;
        false -> raised
    end.

-doc "Figures: alarms that had no room, and the number of the last change.".
-spec info(state()) -> #{dropped := non_neg_integer(), seq := non_neg_integer()}.
info(#state{dropped = Dropped, seq = Seq}) -> #{dropped => Dropped, seq => Seq}.

%% ---------------------------------------------------------------- a check

-doc """
Handles a check: what is beyond a threshold (`sderl_alarms_look:passed/1`), and why a raised alarm
is not (`Absent`). Returns the notes for routes.
""".
-spec step(#{binary() => sderl_alarms_look:observation()}, Absent, Now :: integer(),
           Wall :: integer(), state()) -> {[note()], state()}
when
    Absent :: fun((alarm()) -> clear | unknown | gone | off).
step(Passed, Absent, Given, Wall, #state{last = Last} = State0) ->
    Now = max(Given, Last),
    State1 = maps:fold(fun(Id, Seen, S) -> observe(Id, Seen, Wall, S) end,
                       State0#state{last = Now}, Passed),
    State2 = lists:foldl(fun(Alarm, S) -> miss(Alarm, Absent(Alarm), Wall, S) end, State1,
                         [Alarm || Id := #{is_raised := true} = Alarm <- State1#state.alarms,
                                   not is_map_key(Id, Passed)]),
    Pending = #{Id => P || Id := P <- State2#state.pending, is_map_key(Id, Passed)},
    %% Notes are made before alarms are forgotten.
    {Notes, State3} = tell(State2#state{pending = Pending}),
    {Notes, forget(State3)}.

-doc "When a check would raise or escalate something, if all stays as it is now.".
-spec due(state()) -> none | integer().
due(#state{pending = Pending, last = Now}) ->
    lists:min([none | [At + For || _ := #pending{minor = Minor, major = Major, for_ms = For} <-
                                       Pending,
                                   At <- [Minor, Major], is_integer(At), At + For > Now]]).

observe(Id, #{over := Over, holds := Holds, for_ms := For} = Seen, Wall,
        #state{alarms = Alarms, pending = Pending, last = Now, unseen = Unseen} = State0) ->
    Waiting = pending(Over, Now, maps:get(Id, Pending, none)),
    State = State0#state{pending = Pending#{Id => Waiting#pending{for_ms = For}},
                         unseen = maps:remove(Id, Unseen)},
    Passed = passed(Waiting, Now, For),
    case Alarms of
        #{Id := #{is_raised := true, severity := Severity} = Alarm} ->
            stay(Alarm, next(Severity, Passed, Holds), Seen, Wall, State);
        #{} when Passed =/= none -> raise(Id, Passed, Seen, Wall, State);
        #{} -> State
    end.

pending(Over, Now, #pending{seen = Seen} = Before) when Now - Seen =< ?GAP_MS ->
    #pending{minor = Minor, major = Major} = Before,
    Begun = fun(At) -> case At of none -> Now; _ -> At end end,
    case Over of
        none -> #pending{seen = Now};
        minor -> #pending{minor = Begun(Minor), seen = Now};
        major -> #pending{minor = Begun(Minor), major = Begun(Major), seen = Now}
    end;
pending(Over, Now, _) ->
    pending(Over, Now, #pending{seen = Now}).

%% The worst level that the value has passed for long enough.
passed(#pending{major = At}, Now, For) when is_integer(At), Now - At >= For -> major;
passed(#pending{minor = At}, Now, For) when is_integer(At), Now - At >= For -> minor;
passed(_, _, _) -> none.

next(_, major, _) -> major;
next(major, _, major) -> major;
next(_, _, none) -> none;
next(minor, _, _) -> minor;
next(major, _, minor) -> minor.

raise(Id, _, _, _, #state{alarms = Alarms, dropped = Dropped} = State)
  when map_size(Alarms) >= ?MOST_RAISED + ?MOST_CLEARED, not is_map_key(Id, Alarms) ->
    State#state{dropped = Dropped + 1};
raise(Id, Severity, #{alarm := Name, place := Place, nodes := Nodes, groups := Groups, say := Say},
      Wall, #state{alarms = Alarms} = State) ->
    {Count, Comments, Told} = case Alarms of
        #{Id := #{count := N, comments := Said, told := Was}} -> {N + 1, Said, Was};
        #{} -> {1, [], none}
    end,
    Alarm = maps:merge(
        maps:with([text, cause, remedy, tags, value, threshold, unit], Say()),
        #{
            id => Id, alarm => Name, place => Place, nodes => Nodes, groups => Groups,
            is_raised => true, severity => Severity, worst => Severity, since => Wall,
            cleared => null, why_cleared => ~"", count => Count, seq => 1,
            ack => #{acked => false, by => ~"", at => Wall, text => ~""}, comments => Comments,
            told => Told, ack_told => false
        }
    ),
    put_alarm(Alarm, State).

put_alarm(#{id := Id} = Alarm, #state{alarms = Alarms, seq = Seq} = State) ->
    State#state{alarms = Alarms#{Id => Alarm#{seq := Seq + 1}}, seq = Seq + 1}.

stay(Alarm, none, _, Wall, State) ->
    clear(Alarm, ~"the value is back", Wall, State);
stay(#{severity := Severity} = Alarm, Severity, Seen, _, #state{alarms = Alarms} = State) ->
    %% New numbers alone are no change.
    #{id := Id} = Alarm,
    State#state{alarms = Alarms#{Id := said(Alarm, Seen)}};
stay(#{worst := minor} = Alarm, major, Seen, Wall, State) ->
    put_alarm(opened(said(Alarm, Seen), Wall, #{severity => major, worst => major}), State);
stay(Alarm, major, Seen, Wall, State) ->
    put_alarm(opened(said(Alarm, Seen), Wall, #{severity => major}), State);
stay(Alarm, minor, Seen, _, State) ->
    put_alarm((said(Alarm, Seen))#{severity := minor}, State).

said(Alarm, #{say := Say}) ->
    maps:merge(Alarm, maps:with([text, cause, value, threshold], Say())).

opened(#{ack := #{acked := true}} = Alarm, Wall, Changed) ->
    Open = #{acked => false, by => ~"", at => Wall, text => ~""},
    maps:merge(Alarm#{ack := Open, ack_told := false}, Changed);
opened(Alarm, _, Changed) ->
    maps:merge(Alarm, Changed).

miss(#{id := Id} = Alarm, Why, Wall,
     #state{last = Now, settled = Settled, unseen = Unseen} = State) ->
    Since = maps:get(Id, Unseen, Now),
    Unknown = State#state{unseen = Unseen#{Id => Since}},
    case Why of
        off -> clear(Alarm, ~"no rule is for it any more", Wall, State);
        _ when Now < Settled -> Unknown;
        clear -> clear(Alarm, ~"the value is back", Wall, State);
        gone when Now - Since >= ?GONE_MS ->
            clear(Alarm, ~"its node, group or family is not there any more", Wall, State);
        unknown when Now - Since >= ?UNKNOWN_MS ->
            clear(Alarm, ~"there was no value for ten minutes", Wall, State);
        _ -> Unknown
    end.

clear(#{id := Id} = Alarm, Why, Wall, #state{unseen = Unseen} = State) ->
    put_alarm(Alarm#{is_raised := false, cleared := Wall, why_cleared := Why},
              State#state{unseen = maps:remove(Id, Unseen)}).

%% Forgets the oldest cleared alarms, and silences that ended long ago.
forget(#state{alarms = Alarms, silences = Silences, last = Now} = State) ->
    Cleared = [{Seq, Id} || Id := #{is_raised := false, seq := Seq} <- Alarms],
    Old = lists:sublist(lists:sort(Cleared), max(0, length(Cleared) - ?MOST_CLEARED)),
    State#state{
        alarms = maps:without([Id || {_, Id} <- Old], Alarms),
        silences = #{Id => S || Id := S <- Silences, not sderl_alarms_silence:is_old(S, Now)}
    }.

%% ---------------------------------------------------------------- notes

-doc "Whether this node leads, or another one does.".
-spec lead(boolean(), state()) -> state().
lead(Leads, State) -> State#state{leads = Leads}.

-doc "The alarms that were sent to routes, and not yet their end.".
-spec told(state()) -> [alarm()].
told(#state{alarms = Alarms}) ->
    [Alarm || _ := #{told := Told} = Alarm <- Alarms, Told =/= none].

-doc "The node that leads has sent this alarm.".
-spec adopt(alarm(), state()) -> state().
adopt(#{id := Id} = Theirs, #state{alarms = Alarms} = State) ->
    case Alarms of
        #{Id := Ours} -> put_alarm(merge(Theirs, Ours), State);
        %% Not raised here yet, or its values are not known here.
        #{} -> put_alarm(Theirs, State)
    end.

%% Comments come in messages of their own. Of two acknowledgements the later one wins.
merge(#{is_raised := true} = Theirs, #{is_raised := false, comments := Comments}) ->
    Theirs#{comments := Comments};
merge(#{ack := #{at := At}} = Theirs, #{ack := #{at := Ours}} = Alarm) ->
    Ack = case At >= Ours of true -> [ack, ack_told]; false -> [] end,
    maps:merge(Alarm, maps:with([is_raised, severity, worst, since, cleared, why_cleared, count,
                                 text, cause, value, threshold, told | Ack], Theirs)).

-doc "All alarms that the leader has sent: `told/1` of that node.".
-spec adopt_all([alarm()], state()) -> state().
adopt_all(Told, #state{alarms = Alarms} = State) ->
    lists:foldl(fun adopt/2, State#state{alarms = #{Id => A#{told := none} || Id := A <- Alarms}},
                Told).

tell(#state{leads = false} = State) -> {[], State};
tell(#state{alarms = Alarms, silences = Silences, last = Now, unseen = Unseen} = State) ->
    Holding = [S || _ := S <- Silences, sderl_alarms_silence:is_active(S, Now)],
    Notes = [{Kind, Told}
             || Id := Alarm <- Alarms, {Kind, Told} <- note(Alarm, Holding, Now),
                %% An alarm about which nothing is known now is not sent as raised.
                Kind =:= cleared orelse Kind =:= acknowledged orelse not is_map_key(Id, Unseen)],
    {lists:sort(fun({_, #{seq := A}}, {_, #{seq := B}}) -> A =< B end, Notes),
     State#state{alarms = lists:foldl(fun({_, #{id := Id} = Alarm}, Acc) -> Acc#{Id := Alarm} end,
                                      Alarms, Notes)}}.

note(#{is_raised := false, told := none}, _, _) -> [];
note(#{is_raised := false} = Alarm, _, _) -> [{cleared, Alarm#{told := none}}];
note(#{ack := #{acked := true}, told := none}, _, _) -> [];
note(#{ack := #{acked := true}, ack_told := false} = Alarm, _, _) ->
    [{acknowledged, Alarm#{ack_told := true}}];
note(#{ack := #{acked := true}}, _, _) -> [];
note(#{severity := Severity, told := Severity}, _, _) -> [];
note(#{severity := Severity, told := Told} = Alarm, Silences, Now) ->
    case sderl_alarms_silence:any_fits(Silences, Alarm, Now) of
        true -> [];
        false -> [{kind(Told, Severity), Alarm#{told := Severity}}]
    end.

kind(none, _) -> raised;
kind(minor, major) -> escalated;
kind(major, minor) -> eased.

%% ---------------------------------------------------------------- what people do

-doc """
Does an action of a person. `not_found`: there is no such alarm or silence; `not_raised`: the alarm
is cleared, so it cannot be acknowledged; `too_many`: there are as many silences as there may be.
""".
-spec act(action(), Now :: integer(), Wall :: integer(), state()) ->
    {ok, [note()], state()} | {error, not_found | not_raised | too_many}.
act(Action, Given, Wall, #state{last = Last} = State) ->
    do(Action, Wall, State#state{last = max(Given, Last)}).

-doc """
The action as it is to be done here and sent to others: later than the last acknowledgement of the
same alarm, even if clocks differ or were set back.
""".
-spec in_order(action(), state()) -> action().
in_order(#{do := Do, id := Id, at := At} = Action, #state{alarms = Alarms})
  when Do =:= acknowledge; Do =:= reopen ->
    case Alarms of
        #{Id := #{ack := #{at := Last}}} when Last >= At -> Action#{at := Last + 1};
        #{} -> Action
    end;
in_order(Action, _) -> Action.

do(#{do := silence} = Action, Wall, State) ->
    silence(Action, Wall, State);
do(#{do := unsilence, id := Id, at := At}, _, #state{silences = Silences, last = Now} = State) ->
    case Silences of
        #{Id := Silence} ->
            Cut = sderl_alarms_silence:cut(Silence, At, Now),
            done(put_silence(Cut, State));
        #{} -> {error, not_found}
    end;
do(#{do := Do, id := Id} = Action, _, #state{alarms = Alarms} = State) ->
    case {Do, Alarms} of
        {comment, #{Id := Alarm}} -> {ok, [], comment(Action, Alarm, State)};
        {_, #{Id := #{is_raised := true} = Alarm}} -> judge(Action, earlier(Action, Alarm), State);
        {_, #{Id := _}} -> {error, not_raised};
        {_, #{}} -> {error, not_found}
    end.

done(State) ->
    {Notes, New} = tell(State),
    {ok, Notes, New}.

%% The latest acknowledgement (or reopening) of an alarm wins, in whatever order they arrive.
judge(#{at := At}, #{ack := #{at := Later}}, State) when Later > At -> {ok, [], State};
judge(#{at := At}, #{ack := #{at := At, acked := true}}, State) -> {ok, [], State};
judge(#{do := Do, by := By, at := At, text := Text}, Alarm, State) ->
    Ack = #{acked => Do =:= acknowledge, by => By, at => At, text => Text},
    done(put_alarm(Alarm#{ack := Ack, ack_told := false}, State)).

%% Another monitoring node may have raised it earlier.
earlier(#{since := Their}, #{since := Since, ack := Ack} = Alarm) when Their < Since ->
    case Ack of
        #{by := ~"", at := Since} -> Alarm#{since := Their, ack := Ack#{at := Their}};
        #{} -> Alarm#{since := Their}
    end;
earlier(_, Alarm) -> Alarm.

comment(#{key := Key, by := By, at := At, text := Text}, #{comments := Comments} = Alarm, State) ->
    case [there || #{id := Is} <- Comments, Is =:= Key] of
        [there] -> State;
        [] ->
            All = lists:sort(fun(#{at := A, id := I}, #{at := B, id := J}) -> {A, I} =< {B, J} end,
                             [#{id => Key, by => By, at => At, text => Text} | Comments]),
            Kept = lists:nthtail(max(0, length(All) - ?MOST_COMMENTS), All),
            put_alarm(Alarm#{comments := Kept}, State)
    end.

silence(#{key := Key, for_ms := For} = Action, Wall,
        #state{silences = Silences, last = Now} = State) ->
    case {Silences, Action} of
        {#{Key := #{until := Until} = Known}, #{until := Theirs}} when Theirs < Until ->
            %% It was ended on another node.
            Cut = sderl_alarms_silence:restored(Known#{until := Theirs}, Wall, Now),
            done(put_silence(Cut, State));
        {#{Key := _}, _} -> {ok, [], State};
        {#{}, _} when map_size(Silences) >= ?MOST_SILENCES -> {error, too_many};
        {#{}, #{until := _}} ->
            Heard = sderl_alarms_silence:restored(Action#{id => Key}, Wall, Now),
            {ok, [], put_silence(Heard, State)};
        {#{}, _} ->
            New = sderl_alarms_silence:new(Action#{id => Key}, For, Now),
            {ok, [], put_silence(New, State)}
    end.

put_silence(#{id := Id} = Silence, #state{silences = Silences, seq = Seq} = State) ->
    State#state{silences = Silences#{Id => Silence}, seq = Seq + 1}.

-doc """
Acknowledgements, comments and silences as actions: a monitoring node that does them has the same
ones.
""".
-spec words(state()) -> [action()].
words(#state{alarms = Alarms, silences = Silences}) ->
    [#{do => case Acked of true -> acknowledge; false -> reopen end, key => ~"", id => Id,
       by => By, at => At, text => Text, since => Since}
     || Id := #{is_raised := true, since := Since,
                ack := #{acked := Acked, by := By, at := At, text := Text}} <- Alarms,
        By =/= ~""] ++
        [#{do => comment, key => Key, id => Id, by => By, at => At, text => Text}
         || Id := #{comments := Comments} <- Alarms,
            #{id := Key, by := By, at := At, text := Text} <- Comments] ++
        [(maps:without([id, ends], S))#{do => silence, key => Id, for_ms => 1}
         || Id := S <- Silences].
