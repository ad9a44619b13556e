%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_upgrade).
-moduledoc """
Which instances may be replaced now, and when a family is rolled back.

An instance that is *outdated* (its release, its settings or its host is not the desired one) is
replaced when its turn comes. It is then *taken*, which is remembered, and *proven* when it serves
in good health again. Rules for a turn:

- At most `batch` instances are taken at a time, all families together. An instance whose host does
  not answer, or that has a quarantined step, does not count: it would hold up the others.
- The first `canaries` of a family are replaced alone, followed by a pause of `wait_s` in which all
  of them have to be in good health.
- No other member of the instance's groups is out of service, for whatever reason. An instance that
  is down anyway may be replaced at any time.
- The instance is not the only member of a group, nor the only common member of two. Otherwise its
  replacement is refused (`m:sderl_ops_refusal`), unless the operator has given `--force`.
- An instance that an operator has drained has no turn and stays down. Once it is down, the rules
  take its groups to be without it. Its turn comes when it is undrained.
- No alarm is raised that the new release may have caused (`m:sderl_ops_gate`).

A family is rolled back to its last good revision, if the file has `roll_back`, when one of its
taken instances is not in good health `start_timeout_s` after it was seen running with the desired
release and settings, or when its layout or start is quarantined. This is decided once for each
revision: a roll-back is not rolled back.
""".

-include("sderl_ops_view.hrl").

-export([advance/1, refusals/1]).

%% ---------------------------------------------------------------- one look

-doc "Updates the upgrades by what is seen, and takes the instances whose turn has come.".
-spec advance(sderl_ops_view:view()) -> {sderl_ops_view:view(), [sderl_ops_note:note()]}.
advance(#view{desired = #{instances := Instances}, memory = #{upgrades := Upgrades}} = View) ->
    Outdated = maps:groups_from_list(
        fun(Id) -> maps:get(family, map_get(Id, Instances)) end,
        [Id || Id := _ <- Instances, sderl_ops_view:is_outdated(Id, View),
               not sderl_ops_view:is_aside(Id, View)]),
    Families = lists:usort(maps:keys(Outdated) ++ maps:keys(Upgrades)),
    {Looked, Notes} = lists:foldl(fun(Family, {V, N}) ->
        {Next, More} = look(Family, maps:get(Family, Outdated, []), V),
        {Next, N ++ More}
    end, {View, []}, Families),
    Taken = take(Outdated, Looked),
    {Noted, Good} = note_good(Outdated, Taken),
    {Noted, Notes ++ Good}.

look(Family, Outdated, #view{memory = Memory} = View) ->
    #{upgrades := Upgrades} = Memory,
    {Upgrade0, New} = current(Family, maps:get(Family, Upgrades, none), View),
    {Upgrade1, Held} = note_held(Family, watch(sderl_ops_gate:begin_with(Upgrade0, View), View),
                                 View),
    Began = New ++ Held,
    Watched = hold(Upgrade1, put_upgrade(Family, Upgrade1, View)),
    Well = put_upgrade(Family, maps:remove(stuck, Upgrade1), Watched),
    case failure(Family, Upgrade1, Watched) of
        none when Outdated =:= [], map_get(taken, Upgrade1) =:= #{} ->
            case sderl_ops_gate:watched_until(Upgrade1, Watched) of
                none ->
                    Left = maps:remove(Family, Upgrades),
                    {View#view{memory = Memory#{upgrades := Left}}, Began};
                Until ->
                    Ids = maps:keys(map_get(proven, Upgrade1)),
                    {hold_all(Ids, {watched, Until}, Well), Began}
            end;
        none -> {Well, Began};
        Why ->
            {Decided, Notes} = fail(Family, Why, Upgrade1, Watched),
            {Decided, Began ++ Notes}
    end.

put_upgrade(Family, Upgrade, #view{memory = #{upgrades := Upgrades} = Memory} = View) ->
    View#view{memory = Memory#{upgrades := Upgrades#{Family => Upgrade}}}.

%% Replaced instances hold up the upgrade while an alarm is raised, or alarms are unknown.
hold(#{taken := Taken} = Upgrade, View) ->
    case sderl_ops_gate:state(Upgrade, View) of
        {unknown, Why} -> hold_all(maps:keys(Taken), {alarms_unknown, Why}, View);
        known ->
            lists:foldl(fun(Id, Acc) ->
                case sderl_ops_gate:alarms(Id, Upgrade, View) of
                    [] -> Acc;
                    Alarms -> hold_all([Id], {alarms, Alarms}, Acc)
                end
            end, View, maps:keys(Taken))
    end.

%% Reported when it begins, because nothing else may happen for a long time.
note_held(Family, #{revision := Revision} = Upgrade, View) ->
    case {sderl_ops_gate:holds(Upgrade, View), Upgrade} of
        {none, _} -> {maps:remove(held, Upgrade), []};
        {{Kind, _}, #{held := Kind}} -> {Upgrade, []};
        {{Kind, Why}, _} -> {Upgrade#{held => Kind}, [{upgrade_held, Family, Revision, Why}]}
    end.

hold_all(Ids, Why, #view{held = Held} = View) ->
    View#view{held = maps:merge(Held, maps:from_keys(Ids, Why))}.

%% The upgrade of a family in the current revision. Instances that are out of service are taken over
%% from the previous one. If the revision does not change the family, the same upgrade goes on.
current(Family, Upgrade, #view{desired = #{revision := Revision}, now = Now,
                               memory = #{failed := Failed}} = View) ->
    Back = has_failed(Family, Revision, Failed),
    case Upgrade of
        #{revision := Revision, back := Back} -> {Upgrade, []};
        _ ->
            Target = target(Family, View),
            New = #{revision => Revision, back => Back, taken => #{}, proven => #{}, since => Now,
                    target => Target},
            Kept = case Upgrade of
                #{target := Target, back := false} when not Back ->
                    maps:with([taken, proven, since, stood], Upgrade);
                #{taken := Taken} -> #{taken => Taken};
                none -> #{}
            end,
            {maps:merge(New, Kept), [{upgrade_began, Family, Revision}]}
    end.

%% All instances of a family have the same.
target(Family, #view{desired = #{instances := Instances}} = View) ->
    case [Id || Id := #{family := Of} <- Instances, Of =:= Family] of
        [Id | _] -> sderl_ops_view:target(Id, View);
        [] -> undefined
    end.

watch(#{taken := Taken0, proven := Proven0} = Upgrade, #view{now = Now} = View) ->
    States = [{Id, Until, state(Id, Upgrade, View)} || Id := Until <- maps:merge(Proven0, Taken0)],
    Proven = #{Id => case Proven0 of
                         #{Id := Since} -> Since;
                         #{} -> Now
                     end || {Id, _, serves} <- States},
    Taken = #{Id => until(State, is_map_key(Id, Taken0), Until, View, Id)
              || {Id, Until, State} <- States,
                 State =/= serves, State =/= not_wanted,
                 not (State =:= outdated andalso not is_map_key(Id, Taken0))},
    Upgrade#{taken := Taken, proven := Proven}.

%% The time for good health runs only while the health can be judged. If the alarms become unknown,
%% the time that is left is kept.
until(begun, true, waiting, View, Id) -> deadline(Id, View);
until(begun, true, {left, Ms}, #view{now = Now}, _) -> Now + Ms;
until(unknown, true, {left, _} = Left, _, _) -> Left;
until(unknown, true, Until, #view{now = Now}, _) when is_integer(Until) ->
    {left, max(0, Until - Now)};
until(begun, true, Until, _, _) -> Until;
until(begun, false, _, View, Id) -> deadline(Id, View);
until(_, _, _, _, _) -> waiting.

deadline(Id, #view{desired = #{settings := Settings}, now = Now} = View) ->
    {_, Hash} = sderl_ops_view:target(Id, View),
    #{Hash := #{start_timeout_s := Seconds}} = Settings,
    Now + Seconds * 1000.

state(Id, Upgrade, #view{desired = #{instances := Instances}, observed = Observed} = View) ->
    Healthy = sderl_ops_observed:is_healthy(Id, Observed),
    NotWanted = not is_map_key(Id, Instances) orelse sderl_ops_view:is_aside(Id, View),
    case sderl_ops_view:seen(Id, View) of
        _ when NotWanted -> not_wanted;
        undefined -> waiting;
        #{state := State} ->
            case sderl_ops_view:is_outdated(Id, View) of
                true -> outdated;
                false when State =:= laid_out -> waiting;
                false when State =:= running, Healthy ->
                    case sderl_ops_view:serves(Id, View) of
                        true -> gated(Id, Upgrade, View);
                        false -> waiting
                    end;
                false -> begun
            end
    end.

%% An instance with an alarm counts as not well.
gated(Id, Upgrade, View) ->
    case {sderl_ops_gate:state(Upgrade, View), sderl_ops_gate:alarms(Id, Upgrade, View)} of
        {known, []} -> serves;
        {known, _} -> begun;
        {{unknown, _}, _} -> unknown
    end.

%% ---------------------------------------------------------------- failures

%% A failure during a roll-back is left to a person.
failure(_, #{back := true}, _) -> none;
failure(Family, #{taken := Taken} = Upgrade, #view{now = Now} = View) ->
    case [Id || Id := Until <- Taken, is_integer(Until), Until < Now] of
        [Id | _] ->
            case sderl_ops_gate:alarms(Id, Upgrade, View) of
                [] -> {no_good_health, Id};
                Alarms -> {alarms, Id, Alarms}
            end;
        [] ->
            case [{Step, Why} || {Step, Why} <- sderl_ops_memory:quarantined(View#view.memory),
                                 replaces(Step, Family, View)] of
                [Failed | _] -> Failed;
                [] -> none
            end
    end.

%% Also of an instance that is new in the family: it has the release that the others are to get.
replaces({Kind, Id} = Step, Family, #view{desired = #{instances := Instances}} = View)
  when Kind =:= lay_out; Kind =:= start ->
    case Instances of
        #{Id := #{family := Family}} ->
            not sderl_ops_view:is_aside(Id, View) andalso is_quarantined(Step, Id, View);
        #{} -> false
    end;
replaces(_, _, _) -> false.

is_quarantined(Step, Id, #view{memory = #{attempts := Attempts}} = View) ->
    Target = sderl_ops_view:target(Id, View),
    case Attempts of
        #{Step := #{again_at := never, about := Target}} -> true;
        #{} -> false
    end.

fail(Family, Why, #{revision := Revision} = Upgrade, #view{desired = Desired} = View) ->
    #view{memory = #{good := Good, failed := Failed} = Memory} = View,
    case {maps:get(upgrade, Desired), Desired, Good} of
        {#{roll_back := true}, #{former := #{Family := _}}, #{Family := To}}
          when To =/= Revision ->
            Entry = #{revision => Revision, to => To, why => Why},
            {View#view{memory = Memory#{failed := Failed#{Family => Entry}}},
             [{roll_back, Family, Revision, To, Why}]};
        _ when is_map_key(stuck, Upgrade) ->
            {View, []};
        _ ->
            {put_upgrade(Family, Upgrade#{stuck => Why}, View),
             [{upgrade_stuck, Family, Revision, Why}]}
    end.

%% ---------------------------------------------------------------- turns

take(Outdated, View) when Outdated =:= #{} -> View;
take(_, #view{memory = #{paused := true}} = View) -> View;
take(Outdated, View0) ->
    #view{desired = #{upgrade := #{batch := Batch}}} = View = give_back(View0),
    #view{memory = #{upgrades := Upgrades}} = View,
    Room = Batch - lists:sum([count_active(Upgrade, View) || _ := Upgrade <- Upgrades]),
    {_, _, Taken} = lists:foldl(fun(Family, Acc) ->
        take_of(Family, maps:get(Family, Outdated, []), Acc)
    end, {Room, out_of_service(View), View}, lists:sort(maps:keys(Upgrades))),
    Taken.

%% Instances that were chosen and have not begun to leave are chosen again: groups or other members
%% may have changed.
give_back(#view{memory = #{upgrades := Upgrades} = Memory} = View) ->
    Still = #{Family => Upgrade#{taken := #{Id => Until || Id := Until <- Taken,
                                                           not is_untouched(Id, View)}}
              || Family := #{taken := Taken} = Upgrade <- Upgrades},
    View#view{memory = Memory#{upgrades := Still}}.

%% A drain that a previous service began may still run, and one that failed may have done part of
%% its work.
is_untouched(Id, #view{memory = Memory, busy = Busy} = View) ->
    #{drained := Drained, begun := Begun, attempts := Attempts} = Memory,
    sderl_ops_view:is_outdated(Id, View)
        andalso sderl_ops_view:is_up(Id, View)
        andalso not is_map_key(Id, Busy)
        andalso not is_map_key(Id, Drained)
        andalso not is_map_key({drain, Id}, Begun)
        andalso case Attempts of
                    #{{drain, Id} := #{again_at := never}} -> false;
                    #{{drain, Id} := _} -> sderl_ops_view:is_in_groups(Id, View);
                    #{} -> true
                end.

%% A node that serves, and whose health is unknown only because the dashboard does not answer, does
%% not count.
count_active(#{taken := Taken} = Upgrade, View) ->
    Known = sderl_ops_gate:state(Upgrade, View) =:= known,
    length([Id || Id := _ <- Taken, is_active(Id, View),
                  Known orelse sderl_ops_view:is_outdated(Id, View)
                      orelse not sderl_ops_view:serves(Id, View)]).

is_active(Id, #view{memory = #{attempts := Attempts}} = View) ->
    %% A node that nobody has looked at yet may well be up.
    lists:member(sderl_ops_view:host_state(Id, View), [up, unseen])
        andalso not sderl_ops_view:is_aside(Id, View)
        andalso not lists:any(fun(Kind) ->
            case Attempts of
                #{{Kind, Id} := #{again_at := never}} ->
                    Kind =:= drain orelse Kind =:= stop orelse is_quarantined({Kind, Id}, Id, View);
                #{} -> false
            end
        end, [lay_out, start, drain, stop]).

%% The members of each group that are out of service. A drained one counts until it is down, because
%% otherwise two would leave the group at the same time.
out_of_service(#view{desired = #{groups := Groups}} = View) ->
    #{Name => [Id || Id <- Members, not is_down_on_purpose(Id, View),
                     not (sderl_ops_view:stays(Id, View)
                          andalso sderl_ops_view:is_in(Id, Name, View))]
      || #{name := Name, members := Members} <- Groups}.

is_down_on_purpose(Id, #view{busy = Busy} = View) ->
    sderl_ops_view:is_aside(Id, View)
        andalso not sderl_ops_view:is_running(Id, View)
        andalso not is_map_key(Id, Busy).

take_of(Family, Outdated, {Room, Out, #view{memory = #{upgrades := Upgrades}} = View}) ->
    #{Family := Upgrade} = Upgrades,
    #{taken := Taken} = Upgrade,
    Candidates = lists:sort([{sderl_ops_view:serves(Id, View), index(Id, View), Id}
                             || Id <- Outdated, not is_map_key(Id, Taken)]),
    {RoomAfter, _, OutAfter, TakenAfter, Held} = lists:foldl(fun({Serves, _, Id}, Acc) ->
        take_one(Id, Serves, View, Acc)
    end, {Room, turns(Upgrade, View), Out, Taken, View#view.held}, Candidates),
    After = put_upgrade(Family, Upgrade#{taken := TakenAfter}, View#view{held = Held}),
    {RoomAfter, OutAfter, After}.

index(Id, #view{desired = #{instances := Instances}}) ->
    #{Id := #{index := Index}} = Instances,
    Index.

take_one(Id, Serves, View, {Room, Turns, Out, Taken, Held}) ->
    Why = if
        is_tuple(Turns) -> Turns;
        Turns =< 0 -> canaries;
        Room =< 0 -> batch;
        true -> hindrance(Id, Serves, Out, View)
    end,
    case Why of
        none ->
            Gone = lists:foldl(fun(Name, Acc) ->
                maps:update_with(Name, fun(Ids) -> lists:umerge([Id], Ids) end, Acc)
            end, Out, groups_of(Id, View)),
            {Room - 1, one_less(Turns), Gone, Taken#{Id => waiting}, Held};
        _ -> {Room, Turns, Out, Taken, Held#{Id => Why}}
    end.

one_less(many) -> many;
one_less(Turns) -> Turns - 1.

%% How many of a family may be taken, not counting the batch; or why none.
turns(#{stuck := Why}, _) -> {stuck, Why};
turns(#{back := true}, _) -> many;
turns(Upgrade, View) ->
    case sderl_ops_gate:turns(Upgrade, View) of
        known -> turns_in_good_health(Upgrade, View);
        {unknown, Why} -> {alarms_unknown, Why}
    end.

turns_in_good_health(#{taken := Taken, proven := Proven} = Upgrade,
      #view{desired = #{upgrade := #{canaries := Canaries, wait_s := Wait}}, now = Now} = View) ->
    Times = lists:sort(maps:values(Proven)),
    Unhealthy = [Id || Id := Until <- Taken, Until =/= waiting,
                       sderl_ops_gate:alarms(Id, Upgrade, View) =/= []],
    if
        Unhealthy =/= [] -> {health, Unhealthy};
        Canaries =:= 0 -> many;
        length(Times) < Canaries -> Canaries - length(Times) - count_active(Upgrade, View);
        true ->
            case lists:nth(Canaries, Times) + Wait * 1000 of
                At when At > Now -> {wait, At};
                _ -> many
            end
    end.

hindrance(Id, Serves, Out, #view{desired = #{groups := Groups}, busy = Busy} = View) ->
    #view{seen_in = SeenIn, running = Running} = View,
    case sderl_ops_view:host_state(Id, View) of
        up when is_map_key(Id, Busy) -> busy;
        up when SeenIn =:= unknown, Groups =/= [] -> groups_unknown;
        up ->
            case has_release(Id, View) of
                false -> fetch;
                %% The running step `groups` may be adding it to its groups.
                true when not Serves, is_map_key(groups, Running) -> groups;
                true ->
                    case sderl_ops_view:is_up(Id, View) of
                        true -> hindrance_of_groups(Id, Out, View);
                        false -> none
                    end
            end;
        State -> {host, State}
    end.

has_release(Id, #view{observed = Observed, desired = #{instances := Instances}} = View) ->
    #{Id := #{release := Release, candidates := Candidates}} = Instances,
    Host = sderl_ops_view:host(Id, View),
    not lists:member(Host, Candidates)
        orelse sderl_ops_observed:has_release(Host, Release, Observed).

hindrance_of_groups(Id, Out, View) ->
    Names = [Name || Name <- groups_of(Id, View), sderl_ops_view:is_in(Id, Name, View)],
    case [{Name, Others} || Name <- Names, [_ | _] = Others <- [map_get(Name, Out) -- [Id]]] of
        [{Name, Others} | _] -> {out_of_service, Name, Others};
        [] ->
            case refused(Id, Names, View) of
                [Why | _] -> {refused, Why};
                [] -> none
            end
    end.

groups_of(Id, #view{groups_of = GroupsOf}) -> maps:get(Id, GroupsOf, []).

%% ---------------------------------------------------------------- refusals

-doc "The instances to be replaced whose replacement is refused, and why.".
-spec refusals(sderl_ops_view:view()) -> [sderl_ops_refusal:refusal()].
refusals(#view{desired = #{instances := Instances}} = View) ->
    [{Id, Why} || Id <- lists:sort(maps:keys(Instances)),
                  sderl_ops_view:is_outdated(Id, View), sderl_ops_view:serves(Id, View),
                  Why <- refused(Id, groups_of(Id, View), View)].

refused(_, _, #view{desired = #{upgrade := #{force := true}}}) -> [];
refused(Id, Names, View) -> sderl_ops_refusal:of_upgrade(Id, Names, View).

%% ---------------------------------------------------------------- good revisions

%% A family is good when no instance is to be replaced, and all instances that can be seen and are
%% not given up run in good health.
note_good(Outdated, #view{desired = Desired, memory = Memory} = View) ->
    #{revision := Revision, instances := Instances} = Desired,
    #{good := Good, failed := Failed, upgrades := Upgrades} = Memory,
    Families = lists:usort([Family || _ := #{family := Family} <- Instances]),
    New = [Family || Family <- Families,
                     maps:get(Family, Good, none) =/= Revision,
                     not is_map_key(Family, Outdated), not is_map_key(Family, Upgrades),
                     not has_failed(Family, Revision, Failed),
                     is_good(Family, View)],
    {View#view{memory = Memory#{good := maps:merge(Good, #{F => Revision || F <- New})}},
     [{good, Family, Revision} || Family <- New]}.

has_failed(Family, Revision, Failed) ->
    case Failed of
        #{Family := #{revision := Revision}} -> true;
        #{} -> false
    end.

is_good(Family, #view{desired = #{instances := Instances}} = View) ->
    is_good(maps:next(maps:iterator(Instances)), Family, false, View).

is_good(none, _, Some, _) -> Some;
is_good({Id, #{family := Family}, Next}, Family, Some, #view{observed = Observed} = View) ->
    case sderl_ops_view:host_state(Id, View) of
        up ->
            Good = sderl_ops_view:is_running(Id, View)
                andalso sderl_ops_observed:is_healthy(Id, Observed),
            case Good orelse not is_active(Id, View) of
                true -> is_good(maps:next(Next), Family, Some orelse Good, View);
                false -> false
            end;
        _ -> is_good(maps:next(Next), Family, Some, View)
    end;
is_good({_, _, Next}, Family, Some, View) -> is_good(maps:next(Next), Family, Some, View).
