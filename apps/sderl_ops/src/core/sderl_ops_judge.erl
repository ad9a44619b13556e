%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_judge).
-moduledoc """
What is to be done next about one instance, decided from what is seen of that instance alone.
`m:sderl_ops_choose` decides whether it may be done at the same time as other steps.
""".

-include("sderl_ops_view.hrl").

-export([judge/2]).
-export_type([judgement/0, ready/0]).

-type judgement() ::
    %% There is nothing to do about it.
    settled
    | ready()
    | {waiting, sderl_ops_step:step() | {instance, sderl_ops_desired:instance_id()}, Why :: term()}
    %% It has exited too often.
    | {quarantine, sderl_ops_step:step(), sderl_ops_step:about(), Why :: term()}.
-doc "The restart policy is that of an instance that had exited.".
-type ready() ::
    {ready, sderl_ops_step:step(), sderl_ops_step:about(),
     sderl_ops_desired:restart() | undefined}.

-doc "The judgement on one instance, which need not be desired.".
-spec judge(sderl_ops_desired:instance_id(), sderl_ops_view:view()) -> judgement().
judge(Id, #view{busy = Busy} = View) ->
    case Busy of
        #{Id := Step} -> {waiting, Step, running};
        #{} ->
            case strays(Id, View) of
                [Host | _] -> attempt({remove, Host, Id}, none, View);
                [] -> judge_here(Id, View)
            end
    end.

%% Other hosts that answer and have files of it: hosts that were lost and are back. The instance is
%% not started on its own host while it may run there.
strays(Id, #view{places = Places} = View) ->
    lists:delete(sderl_ops_view:host(Id, View), maps:get(Id, Places, [])).

judge_here(Id, #view{homeless = Homeless}) when is_map_key(Id, Homeless) ->
    {waiting, {instance, Id}, map_get(Id, Homeless)};
judge_here(Id, View) ->
    Target = sderl_ops_view:target(Id, View),
    Aside = sderl_ops_view:is_aside(Id, View),
    case {sderl_ops_view:host(Id, View), sderl_ops_view:host_state(Id, View)} of
        {undefined, _} -> settled;
        {Host, up} when Target =:= undefined ->
            judge_undesired(Id, Host, sderl_ops_view:seen(Id, View), View);
        {_, up} when Aside -> judge_aside(Id, sderl_ops_view:seen(Id, View), View);
        {Host, up} -> judge_desired(Id, Host, Target, sderl_ops_view:seen(Id, View), View);
        {Host, State} -> {waiting, {instance, Id}, {host, Host, State}}
    end.

judge_undesired(_, _, undefined, _) -> settled;
judge_undesired(Id, _, #{state := running}, View) -> leave(Id, none, View);
%% Its files stay until its groups have removed its node: they tell which member that is.
judge_undesired(Id, Host, _, View) ->
    case sderl_ops_members:left_in(Id, View) of
        [] -> attempt({remove, Host, Id}, none, View);
        [Name | _] -> {waiting, {instance, Id}, {listed, Name}}
    end.

judge_aside(Id, #{state := running}, View) -> leave(Id, none, View);
judge_aside(_, _, _) -> settled.

judge_desired(Id, Host, {Release, _} = Target, undefined, View) ->
    lay_out(Id, Host, Release, Target, View);
judge_desired(Id, Host, {Release, _} = Target, #{state := State} = Seen, View) ->
    Has = sderl_ops_observed:layout(Seen),
    Outdated = sderl_ops_view:is_outdated(Id, View),
    case {State, Outdated, sderl_ops_view:is_taken(Id, View)} of
        {running, false, _} ->
            case sderl_ops_view:is_up(Id, View) of
                true -> judge_replaced(Id, View);
                false -> {waiting, {instance, Id}, {node, unanswered(Id, Seen, View)}}
            end;
        {laid_out, false, _} -> attempt({start, Id}, Target, View);
        {exited, false, _} -> restart(Id, Target, View);
        {running, true, true} -> leave(Id, Target, View);
        {_, true, true} -> replace(Id, Host, Release, Target, View);
        {exited, true, false} ->
            %% Until its turn comes it serves with the release that it has.
            case restart(Id, Has, View) of
                {ready, _, _, _} = Ready -> Ready;
                _ -> await_turn(Id, Host, Release, View)
            end;
        {_, true, false} -> await_turn(Id, Host, Release, View)
    end.

%% A replaced instance may still be watched for alarms.
judge_replaced(Id, #view{held = #{} = Held}) ->
    case Held of
        #{Id := Why} -> {waiting, {instance, Id}, {upgrade, Why}};
        #{} -> settled
    end.

%% A node that the service did not start may have another cookie.
unanswered(Id, #{adopted := true}, #view{observed = #{nodes := Nodes}})
  when is_map_key(Id, Nodes) ->
    silent;
unanswered(_, _, _) ->
    down.

replace(Id, Host, Release, Target, #view{desired = #{instances := Instances}} = View) ->
    #{Id := #{candidates := Candidates}} = Instances,
    case lists:member(Host, Candidates) of
        true -> lay_out(Id, Host, Release, Target, View);
        false -> attempt({remove, Host, Id}, Target, View)
    end.

%% The release is fetched before its turn comes, so that it is out of service only briefly.
await_turn(Id, Host, Release, #view{held = Held} = View) ->
    case fetch(Host, Release, View) of
        there -> {waiting, {instance, Id}, {upgrade, maps:get(Id, Held, next)}};
        Not -> Not
    end.

lay_out(Id, Host, Release, Target, View) ->
    case fetch(Host, Release, View) of
        there -> attempt({lay_out, Id}, Target, View);
        Not -> Not
    end.

fetch(Host, Release, #view{observed = Observed, running = Running} = View) ->
    Step = {fetch, Host, Release},
    case sderl_ops_observed:has_release(Host, Release, Observed) of
        true -> there;
        false when is_map_key(Step, Running) -> {waiting, Step, running};
        false ->
            #view{desired = #{releases := Releases}} = View,
            case Releases of
                #{Release := #{running := _, name := Name}} ->
                    {waiting, Step, {not_startable, Name}};
                #{} -> attempt(Step, none, View)
            end
    end.

%% A node that does not answer cannot leave its groups, so it is stopped. A service that has just
%% begun does not know yet which nodes answer.
leave(Id, _, #view{seen_in = unknown}) ->
    {waiting, {instance, Id}, {node, unseen}};
leave(Id, About, #view{memory = #{drained := Drained}} = View) ->
    case sderl_ops_view:is_up(Id, View) andalso not is_map_key(Id, Drained) of
        true -> attempt({drain, Id}, About, View);
        false -> attempt({stop, Id}, About, View)
    end.

attempt(Step, About, #view{memory = Memory, now = Now}) ->
    case sderl_ops_attempts:may(Step, About, Memory, Now) of
        yes -> {ready, Step, About, undefined};
        {at, At, Why} -> {waiting, Step, {again_at, At, Why}};
        {quarantined, Why} -> {waiting, Step, {quarantined, Why}}
    end.

restart(Id, About, #view{desired = #{instances := Instances}, memory = Memory, now = Now}) ->
    #{Id := #{restart := Restart}} = Instances,
    Step = {start, Id},
    case sderl_ops_attempts:may_restart(Id, Restart, About, Memory, Now) of
        yes -> {ready, Step, About, Restart};
        never -> settled;
        {at, At, Why} -> {waiting, Step, {again_at, At, Why}};
        {too_often, Why} -> {quarantine, Step, About, Why};
        {quarantined, Why} -> {waiting, Step, {quarantined, Why}}
    end.
