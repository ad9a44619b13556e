%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_gate).
-moduledoc """
Alarms of the monitoring that hold up an upgrade, where the file names a dashboard
(`upgrade.alarms`). Pure.

- An alarm counts if it is major, nobody has acknowledged or silenced it, and it was raised after
  the upgrade of the family began. An alarm that was raised before, with whatever severity, is not
  the new release's fault. An alarm that was cleared and raised again since then is a new one.
- An alarm concerns an instance if it names the instance's node or one of its groups. An alarm about
  a node that is out of service on purpose (being replaced, or drained by an operator) says nothing
  about the other members of its groups.
- As long as it is unknown which alarms are raised, nothing is replaced.
- During a roll-back alarms are not looked at: they may be the reason for it.
""".

-include("sderl_ops_view.hrl").

-export([source/1, is_watched/2, known/2, begin_with/2]).
-export([state/2, turns/2, alarms/3, holds/2, watched_until/2]).
-export_type([seen/0, alarm/0, occurrence/0]).

%% How long the last answer is used if the next looks fail.
-define(HOLDS_MS, 5_000).

-doc "The alarms that are not over, as known at a time; `doubt` is why a later look failed.".
-type seen() ::
    #{state := up, at := sderl_ops_memory:time(), raised := #{occurrence() => alarm()},
      doubt => binary()}
    | #{state := failing, at := sderl_ops_memory:time(), why := binary()}.
-doc "An alarm has the same id each time that it is raised.".
-type occurrence() :: {Id :: binary(), Count :: pos_integer()}.
-doc """
`elsewhere`: it also names nodes that are not instances; `counts`: it is major, and neither
acknowledged nor silenced.
""".
-type alarm() :: #{
    instances := [sderl_ops_desired:instance_id()],
    elsewhere := boolean(),
    groups := [Group :: binary()],
    counts := boolean()
}.

-doc "Where alarms are read, if they are to be.".
-spec source(sderl_ops_desired:desired()) -> none | sderl_ops_file:alarms().
source(#{upgrade := Upgrade}) -> maps:get(alarms, Upgrade, none).

-doc "Whether alarms have to be read now: something is being replaced.".
-spec is_watched(sderl_ops_desired:desired(), sderl_ops_memory:memory()) -> boolean().
is_watched(Desired, #{upgrades := Upgrades}) ->
    Upgrades =/= #{} andalso source(Desired) =/= none.

-doc """
What is known after a look. If it failed, instances that were replaced are judged by the last answer
for some seconds.
""".
-spec known(seen(), Before :: seen() | none) -> seen().
known(#{state := failing, at := At, why := Why}, #{state := up, at := Was} = Before)
  when At - Was < ?HOLDS_MS ->
    Before#{doubt => Why};
known(Seen, _) ->
    Seen.

-doc "Remembers what was raised when the upgrade began, as soon as it is known.".
-spec begin_with(sderl_ops_memory:upgrade(), sderl_ops_view:view()) -> sderl_ops_memory:upgrade().
begin_with(#{stood := _} = Upgrade, _) ->
    Upgrade;
begin_with(Upgrade, #view{observed = Observed}) ->
    Since = maps:get(since, Upgrade, 0),
    case Observed of
        #{alarms := #{state := up, at := At, raised := Raised}} when At >= Since ->
            Upgrade#{stood => lists:sort(maps:keys(Raised))};
        #{} ->
            Upgrade
    end.

-doc "Whether the alarms are known. They are if the file names no dashboard.".
-spec state(sderl_ops_memory:upgrade(), sderl_ops_view:view()) ->
    known | {unknown, Why :: not_asked_yet | binary()}.
state(#{back := true}, _) ->
    known;
state(Upgrade, #view{desired = Desired, observed = Observed}) ->
    case {source(Desired), Observed, Upgrade} of
        {none, _, _} -> known;
        {_, #{alarms := #{state := failing, why := Why}}, _} -> {unknown, Why};
        {_, #{alarms := #{state := up}}, #{stood := _}} -> known;
        _ -> {unknown, not_asked_yet}
    end.

-doc "The same for instances that are to be replaced: none is while the last look failed.".
-spec turns(sderl_ops_memory:upgrade(), sderl_ops_view:view()) ->
    known | {unknown, Why :: not_asked_yet | binary()}.
turns(#{back := true}, _) ->
    known;
turns(Upgrade, #view{observed = Observed} = View) ->
    case {state(Upgrade, View), source(View#view.desired), Observed} of
        {known, #{}, #{alarms := #{doubt := Why}}} -> {unknown, Why};
        {State, _, _} -> State
    end.

-doc "The alarms that were raised since the upgrade began, and that concern an instance.".
-spec alarms(sderl_ops_desired:instance_id(), sderl_ops_memory:upgrade(), sderl_ops_view:view()) ->
    [Id :: binary()].
alarms(_, #{back := true}, _) ->
    [];
alarms(Id, #{stood := Stood}, #view{desired = Desired, groups_of = GroupsOf} = View) ->
    case {source(Desired), View#view.observed} of
        {#{}, #{alarms := #{state := up, raised := Raised}}} ->
            Groups = maps:get(Id, GroupsOf, []),
            [Alarm || {Alarm, _} := Of <- maps:iterator(maps:without(Stood, Raised), ordered),
                      concerns(Id, Groups, Of, View)];
        _ ->
            []
    end;
alarms(_, _, _) ->
    [].

concerns(_, _, #{counts := false}, _) ->
    false;
concerns(Id, Groups, #{instances := Instances, elsewhere := Elsewhere, groups := Of}, View) ->
    lists:member(Id, Instances)
        orelse (lists:any(fun(Group) -> lists:member(Group, Of) end, Groups)
                andalso (Elsewhere orelse Instances =:= []
                         orelse not lists:all(fun(Other) -> is_out(Other, View) end, Instances))).

is_out(Id, View) -> sderl_ops_view:is_taken(Id, View) orelse sderl_ops_view:is_aside(Id, View).

-doc "What holds up an upgrade, with the reason for `sderl_ops_note:reason/1`.".
-spec holds(sderl_ops_memory:upgrade(), sderl_ops_view:view()) ->
    none | {alarms | unknown, Why :: term()}.
holds(#{taken := Taken} = Upgrade, View) ->
    case state(Upgrade, View) of
        {unknown, not_asked_yet} -> none;
        {unknown, Why} -> {unknown, {upgrade, {alarms_unknown, Why}}};
        known ->
            case [{Id, Alarms} || Id := _ <- maps:iterator(Taken, ordered),
                                  [_ | _] = Alarms <- [alarms(Id, Upgrade, View)]] of
                [{Id, Alarms} | _] -> {alarms, {alarms, Id, Alarms}};
                [] -> none
            end
    end.

-doc """
Until when replaced instances are watched after the last one of the family was replaced: an alarm is
raised only after its condition has lasted for a while.
""".
-spec watched_until(sderl_ops_memory:upgrade(), sderl_ops_view:view()) ->
    none | sderl_ops_memory:time().
watched_until(#{back := false, proven := Proven}, #view{desired = Desired, now = Now})
  when map_size(Proven) > 0 ->
    #{upgrade := #{wait_s := Wait}} = Desired,
    case {source(Desired), lists:max(maps:values(Proven)) + Wait * 1000} of
        {#{}, Until} when is_integer(Until), Until > Now -> Until;
        _ -> none
    end;
watched_until(_, _) ->
    none.
