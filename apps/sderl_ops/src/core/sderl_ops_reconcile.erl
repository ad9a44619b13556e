%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_reconcile).
-moduledoc """
Decides what is to be done next so that a cluster becomes and stays as desired. Pure, and decided
from the observed state alone: `steps/5` may be called at any time and as often as one likes, and a
service that was killed goes on with the memory that it stored last.

The caller has to keep these rules:

- It stores the memory that `steps/5` returns before it runs these steps, and the memory that
  `ended/4` returns soon.
- A step stays in `Running` until a look that began after the step had ended has seen its host and
  the nodes there (for `groups`: all nodes that answer), or until the step itself has reported what
  is there.
- The groups of a node were seen by the look that saw the node up, or by a later one.
- All hosts of the desired state and of `assigned` are looked at; a host that its provider no longer
  has is `gone`.
- The observed groups are only those that the service has made.
- Programs that make hosts are asked for their list, repeatedly.
- A host that was deleted is removed from the observed state.
- `start` ends when the node answers, or fails after the release's limit.
- `steps/5` is called when something ends or is seen, and regularly, because some things depend on
  time alone: pauses end, hosts become lost.
- `lay_out` lays out what `wanted/3` gives.
""".

-include("sderl_ops_view.hrl").

-export([steps/5, ended/4, wanted/3, groups/3]).
-export_type([result/0]).

-doc """
`start` are the steps to be started now. `waiting` is what waits, or runs, and why. `done`:
everything is as desired, as far as the service can do anything about it.
""".
-type result() :: #{
    start := [sderl_ops_step:step()],
    waiting := [{sderl_ops_step:step() | {instance, sderl_ops_desired:instance_id()}
                     | {provider, binary()},
                 Why :: term()}],
    done := boolean(),
    memory := sderl_ops_memory:memory(),
    notes := [sderl_ops_note:note()]
}.

-record(judged, {
    ready = #{} :: sderl_ops_choose:ready(),
    waiting = [] :: [{sderl_ops_step:step() | {instance, sderl_ops_desired:instance_id()},
                      Why :: term()}],
    quarantine = [] :: [{sderl_ops_step:step(), sderl_ops_step:about(), Why :: term()}]
}).

-doc "What is to be done now.".
-spec steps(sderl_ops_desired:desired(), sderl_ops_observed:observed(),
            sderl_ops_memory:memory(), [sderl_ops_step:step()], sderl_ops_memory:time()) ->
    result().
steps(Desired, Observed, Memory, Running, Now) ->
    Tidied = sderl_ops_released:forget(Desired, tidy(Running, Now, Memory)),
    {Supplied, Wanted} = supply(Desired, Observed, Tidied, Running, Now),
    {View0, Notes} = look(Desired, Observed, adopt(Desired, Observed, Supplied), Running, Now),
    View1 = forget_drained(forget_aside(forget_attempts(forget_relays(View0)))),
    Judged = judge_all(View1),
    {View, Quarantined} = quarantine(Judged#judged.quarantine, View1),
    Unfinished = sderl_ops_members:unfinished(View),
    {Ready0, Waiting0} = add_groups(Unfinished, Judged, View),
    {OfMachines, Waiting1} = sderl_ops_machines:judge(View),
    Ready = maps:merge(maps:merge(Ready0, OfMachines), unused_releases(View)),
    {Start, NotNow, Sources} = sderl_ops_choose:choose(Ready, Unfinished, View),
    #{
        start => Start,
        waiting => NotNow ++ Waiting0 ++ Waiting1,
        done => Ready =:= #{} andalso Waiting0 =:= [] andalso Waiting1 =:= []
            andalso Running =:= [],
        memory => sderl_ops_relay:begin_steps(Start, Sources, begin_steps(Start, Ready, View)),
        notes => Wanted ++ Notes ++ Quarantined
    }.

-doc """
The memory after a step has ended. The result of `create` is what the program told of the host.
`{relay, Side, Why}` is the failure of a fetch from another host, with whose fault it is.
""".
-spec ended(sderl_ops_step:step(),
            ok | {ok, sderl_ops_machines:told()} | {error, Why :: term()},
            sderl_ops_memory:memory(), sderl_ops_memory:time()) ->
    {sderl_ops_memory:memory(), [sderl_ops_note:note()]}.
ended({create, Id} = Step, {ok, Told}, Memory, _) ->
    {sderl_ops_machines:told(Id, Told, sderl_ops_attempts:succeeded(Step, Memory)), []};
ended({delete, Id} = Step, ok, Memory, _) ->
    {sderl_ops_machines:deleted(Id, sderl_ops_attempts:succeeded(Step, Memory)), []};
ended({drain, Id} = Step, ok, Memory, _) ->
    #{drained := Drained} = After = sderl_ops_attempts:succeeded(Step, Memory),
    {After#{drained := Drained#{Id => true}}, []};
ended({stop, Id} = Step, ok, Memory, _) ->
    {sderl_ops_adopted:stopped(Id, sderl_ops_attempts:succeeded(Step, Memory)), []};
ended(Step, ok, Memory, _) ->
    {sderl_ops_relay:succeeded(Step, sderl_ops_attempts:succeeded(Step, Memory)), []};
ended(Step, {error, Why}, Memory0, Now) ->
    case sderl_ops_relay:failed(Step, Why, Memory0, Now) of
        {again, Memory, Notes} ->
            {sderl_ops_attempts:put_off(Step, Memory), [{failed, Step, said(Why)} | Notes]};
        {counts, Memory, Notes} ->
            case sderl_ops_attempts:failed(Step, said(Why), Memory, Now) of
                {true, After} -> {After, [{quarantined, Step, said(Why)} | Notes]};
                {false, After} -> {After, [{failed, Step, said(Why)} | Notes]}
            end
    end.

said({relay, _, Said}) -> Said;
said(Why) -> Why.

-doc "An instance as it is to be laid out now, after roll-backs; and its host.".
-spec wanted(sderl_ops_desired:instance_id(), sderl_ops_desired:desired(),
             sderl_ops_memory:memory()) ->
    {sderl_ops_desired:instance(), sderl_ops_desired:host_id() | undefined} | undefined.
wanted(Id, Desired, Memory) ->
    case sderl_ops_former:effective(Desired, Memory) of
        #{instances := #{Id := Instance}} -> {Instance, sderl_ops_memory:host_of(Id, Memory)};
        #{} -> undefined
    end.

-doc "The groups as the step `groups` is to make them now: without instances that leave.".
-spec groups(sderl_ops_desired:desired(), sderl_ops_observed:observed(),
             sderl_ops_memory:memory()) -> [sderl_ops_desired:group()].
groups(Desired, Observed, Memory) ->
    sderl_ops_members:groups(
        with_adopted(sderl_ops_former:effective(Desired, Memory), Observed, Memory)).

with_adopted(Effective, Observed, Memory) ->
    Sighted = sderl_ops_adopted:sight(Effective, Observed, Memory),
    sderl_ops_view:new(Effective, Sighted, Memory, #{}, #{}, [], 0).

%% ---------------------------------------------------------------- looking

adopt(Desired, Observed, Memory) ->
    Effective = sderl_ops_former:effective(Desired, Memory),
    sderl_ops_adopted:remember(Effective, Observed, Memory).

supply(Desired, Observed, Memory, Running, Now) ->
    Effective = sderl_ops_former:effective(Desired, Memory),
    Lost = sderl_ops_assign:lost(Effective, Observed, Memory, Now),
    sderl_ops_machines:advance(Effective, Observed, Lost, Running, Memory).

%% A roll-back changes the desired state, so everything is looked at again.
look(Desired, Seen, #{failed := Failed} = Memory0, Running, Now) ->
    Effective = sderl_ops_former:effective(Desired, Memory0),
    Observed = sderl_ops_adopted:sight(Effective, Seen, Memory0),
    {Memory, Homeless, Places, Assigned} =
        sderl_ops_assign:assign(Effective, Observed, Memory0, Now),
    View0 = sderl_ops_view:new(Effective, Observed, Memory, Homeless, Places, Running, Now),
    case sderl_ops_upgrade:advance(View0) of
        {#view{memory = #{failed := Failed}} = View, Notes} -> {View, Assigned ++ Notes};
        {#view{memory = After}, Notes} ->
            {View, More} = look(Desired, Seen, After, Running, Now),
            {View, Assigned ++ Notes ++ More}
    end.

%% Drains that a previous service began may still be running.
tidy(Running, Now, #{begun := Begun} = Memory) ->
    Drains = [Step || {drain, _} = Step := _ <- Begun],
    sderl_ops_relay:tidy(Running, Now, Memory#{begun := maps:with(Drains ++ Running, Begun)}).

forget_relays(#view{desired = #{releases := Releases}, memory = Memory} = View) ->
    View#view{memory = sderl_ops_relay:forget(Releases, Memory)}.

forget_attempts(#view{memory = #{attempts := Attempts, restarts := Restarts}} = View)
  when Attempts =:= #{}, Restarts =:= #{} ->
    View;
forget_attempts(#view{desired = #{instances := Instances, releases := Releases},
                      places = Places, memory = Memory} = View) ->
    #{assigned := Assigned, machines := Machines} = Memory,
    Keep = fun({fetch, _, Sha}) -> is_map_key(Sha, Releases);
              ({drop_release, _, Sha}) -> not is_map_key(Sha, Releases);
              ({Kind, Id}) when Kind =:= create; Kind =:= delete -> is_map_key(Id, Machines);
              (groups) -> true;
              (Step) ->
                   Id = sderl_ops_step:instance(Step),
                   is_map_key(Id, Instances) orelse is_map_key(Id, Assigned)
                       orelse is_map_key(Id, Places)
           end,
    View#view{memory = sderl_ops_attempts:forget(Keep, Memory)}.

%% An instance that is desired later under that name is a new one.
forget_aside(#view{memory = #{aside := Aside}} = View) when Aside =:= #{} ->
    View;
forget_aside(#view{desired = #{instances := Instances}, places = Places, memory = Memory} = View) ->
    #{aside := Aside, assigned := Assigned} = Memory,
    Known = fun(Id, _) ->
        is_map_key(Id, Instances) orelse is_map_key(Id, Assigned) orelse is_map_key(Id, Places)
    end,
    View#view{memory = Memory#{aside := maps:filter(Known, Aside)}}.

%% An instance that no longer leaves, or is gone, has to be in its groups again once it runs.
forget_drained(#view{memory = Memory, running = Running} = View) ->
    #{drained := Drained, begun := Begun} = Memory,
    case map_size(Drained) + map_size(Begun) of
        0 -> View;
        _ ->
            StillDrained = #{Id => true || Id := true <- Drained, still_leaves(Id, View)},
            Done = [Step || {drain, Id} = Step := _ <- Begun,
                            not is_map_key(Step, Running), not still_leaves(Id, View)],
            View#view{memory = Memory#{drained := StillDrained,
                                       begun := maps:without(Done, Begun)}}
    end.

still_leaves(Id, View) ->
    case sderl_ops_view:host_state(Id, View) of
        up -> sderl_ops_view:is_running(Id, View) andalso sderl_ops_view:is_leaving(Id, View);
        _ -> true
    end.

%% ---------------------------------------------------------------- judging

judge_all(#view{desired = #{instances := Instances}, places = Places,
                memory = #{assigned := Assigned}} = View) ->
    Others = maps:without(maps:keys(Instances), maps:merge(Assigned, Places)),
    Of = fun(Id, _, Acc) -> add(sderl_ops_judge:judge(Id, View), Acc) end,
    maps:fold(Of, maps:fold(Of, #judged{}, Instances), Others).

add(settled, Judged) ->
    Judged;
add({ready, Step, About, Restart}, #judged{ready = Ready} = Judged) ->
    Judged#judged{ready = Ready#{Step => {About, Restart}}};
add({waiting, Step, Why}, #judged{waiting = Waiting} = Judged) ->
    Judged#judged{waiting = [{Step, Why} | Waiting]};
add({quarantine, Step, About, Why}, #judged{waiting = Waiting, quarantine = Now} = Judged) ->
    Judged#judged{waiting = [{Step, {quarantined, Why}} | Waiting],
                  quarantine = [{Step, About, Why} | Now]}.

quarantine(Steps, #view{memory = Memory} = View) ->
    After = lists:foldl(fun({Step, About, Why}, Acc) ->
        sderl_ops_attempts:quarantine(Step, About, Why, Acc)
    end, Memory, Steps),
    {View#view{memory = After}, [{quarantined, Step, Why} || {Step, _, Why} <- Steps]}.

%% ---------------------------------------------------------------- groups

add_groups(_, #judged{ready = Ready, waiting = Waiting},
           #view{seen_in = unknown, desired = #{groups := [_ | _]}}) ->
    {Ready, [{groups, unknown} | Waiting]};
add_groups([], #judged{ready = Ready, waiting = Waiting}, _) ->
    {Ready, Waiting};
add_groups(_, #judged{ready = Ready, waiting = Waiting}, #view{running = #{groups := _}}) ->
    {Ready, [{groups, running} | Waiting]};
add_groups(Unfinished, #judged{ready = Ready, waiting = Waiting},
           #view{busy = Busy, memory = Memory, now = Now} = View) ->
    case sderl_ops_members:due(Unfinished, active(Ready, Busy, View), View) of
        [] -> {Ready, [{groups, members} | Waiting]};
        Due ->
            About = erlang:phash2(Due),
            case sderl_ops_attempts:may(groups, About, Memory, Now) of
                yes -> {Ready#{groups => {About, undefined}}, Waiting};
                {at, At, Why} -> {Ready, [{groups, {again_at, At, Why}} | Waiting]};
                {quarantined, Why} -> {Ready, [{groups, {quarantined, Why}} | Waiting]}
            end
    end.

%% An instance that is no longer desired waits for its groups, not they for it.
active(Ready, Busy, View) ->
    maps:fold(fun(Step, _, Acc) ->
        case sderl_ops_step:instance(Step) of
            undefined -> Acc;
            Id when element(1, Step) =:= drain ->
                case sderl_ops_view:is_taken(Id, View) of
                    true -> Acc#{Id => Step};
                    false -> Acc
                end;
            Id -> Acc#{Id => Step}
        end
    end, Busy, Ready).

%% ---------------------------------------------------------------- releases

unused_releases(#view{desired = #{releases := Releases}, observed = #{hosts := Hosts},
                      memory = Memory, running = Running, now = Now} = View) ->
    %% The last look has not seen which release an instance has that is laid out now.
    Changing = #{sderl_ops_view:host(Id, View) => [] || {lay_out, Id} := _ <- Running},
    #{Step => {none, undefined}
      || Host := #{state := up, releases := There, instances := Instances} <- Hosts,
         not is_map_key(Host, Changing),
         Sha <- unused(There, Releases, Instances),
         Step <- [{drop_release, Host, Sha}],
         not is_map_key(Step, Running),
         sderl_ops_attempts:may(Step, none, Memory, Now) =:= yes}.

unused(There, Releases, Instances) ->
    case [Sha || Sha <- There, not is_map_key(Sha, Releases)] of
        [] -> [];
        Unknown -> Unknown -- [Sha || _ := #{release := Sha} <- Instances]
    end.

%% ---------------------------------------------------------------- beginning

begin_steps(Start, Ready, #view{memory = Memory, now = Now}) ->
    lists:foldl(fun(Step, Acc) ->
        #{Step := {About, Restart}} = Ready,
        sderl_ops_attempts:begin_step(Step, About, Restart, Acc, Now)
    end, Memory, Start).
