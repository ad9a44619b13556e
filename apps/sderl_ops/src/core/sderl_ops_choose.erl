%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_choose).
-moduledoc """
Which of the steps that could run do so now: at most `steps` at a time, at most `fetches` of them
fetches, and at most `per_host` on one host, so that a host that hangs leaves room for the others.
No member of a group is started or stopped while that group is being changed.

The limits are `at_once` of the desired state. By default they are 8 steps, 4 fetches, and for each
host its share of the steps, but at least 2. A fetch from another host does not count, because the
service itself does hardly anything for it (`m:sderl_ops_relay`). Neither does `lay_out`: it takes a
moment, instances that are laid out while others start need not be waited for later, and laying out
several instances together on a host costs little more than laying out one.
""".

-include("sderl_ops_view.hrl").

-export([choose/3]).
-export_type([ready/0]).

-doc "Steps that could run, what they are for, and the restart policy of what had exited.".
-type ready() ::
    #{sderl_ops_step:step() =>
          {sderl_ops_step:about(), sderl_ops_desired:restart() | undefined}}.

%% Steps are counted by host, and those that lay out apart from the others.
-type place() :: sderl_ops_desired:host_id() | {lay_out, sderl_ops_desired:host_id()}.

-define(STEPS, 8).
-define(FETCHES, 4).
-define(LEAST_PER_HOST, 2).
%% The least limit of layouts. One call lays out all layouts of a host, and starts wait for its end,
%% so their number per host is small.
-define(LAYOUTS, 64).
-define(LAYOUTS_PER_HOST, 8).
%% Hosts that programs make or delete at a time, so that a program that hangs leaves room for
%% others.
-define(MACHINES, 4).

-record(choice, {
    view :: sderl_ops_view:view(),
    unfinished :: #{Name :: binary() => []},
    %% How many may still be chosen.
    steps :: integer(),
    layouts :: integer(),
    machines :: integer(),
    sources :: #{sderl_ops_step:step() => sderl_ops_relay:source()},
    per_host :: pos_integer(),
    at_host :: #{place() => pos_integer()},
    %% Groups that a member is leaving.
    leaving :: #{Name :: binary() => []},
    groups_running :: boolean(),
    chosen = [] :: [sderl_ops_step:step()],
    waiting = [] :: [{sderl_ops_step:step(), Why :: term()}]
}).

-doc "The chosen steps, and why the others wait.".
-spec choose(ready(), sderl_ops_members:unfinished(), sderl_ops_view:view()) ->
    {[sderl_ops_step:step()], [{sderl_ops_step:step(), Why :: term()}],
     #{sderl_ops_step:step() => sderl_ops_relay:source()}}.
choose(Ready, _, #view{memory = #{paused := true}}) ->
    {[], [{Step, paused} || Step := _ <- Ready], #{}};
choose(Ready, Unfinished, View) ->
    Sorted = lists:sort([{sderl_ops_step:rank(Step), Step} || Step := _ <- Ready]),
    #choice{sources = Sources} = Choice = new(Ready, Unfinished, View),
    {Relayed, Others} = lists:partition(fun({_, Step}) -> is_given(Step, Sources) end, Sorted),
    {Start, Waiting} = next(Others, give(Relayed, Choice)),
    {Start, Waiting, Sources}.

is_given(Step, Sources) ->
    case Sources of
        #{Step := Source} -> Source =/= service;
        #{} -> false
    end.

%% Archives that hosts give to each other are not counted as steps.
give(Relayed, Choice) ->
    lists:foldl(fun({_, {fetch, Host, _} = Step}, #choice{chosen = Chosen} = Acc) ->
        Acc#choice{chosen = [Step | Chosen], at_host = add(Host, Acc#choice.at_host)}
    end, Choice, Relayed).

new(Ready, Unfinished, #view{running = Running, busy = Busy, desired = Desired} = View) ->
    #view{memory = Memory} = View,
    {Layouts, Others} = lists:partition(fun is_layout/1, maps:keys(Running)),
    Steps = [Step || Step <- Others, not sderl_ops_relay:is_relayed(Step, Memory)],
    AtOnce = maps:get(at_once, Desired, #{}),
    Most = maps:get(steps, AtOnce, ?STEPS),
    #choice{
        view = View,
        unfinished = #{Name => [] || {Name, _} <- Unfinished},
        steps = Most - length(Steps),
        layouts = max(?LAYOUTS, Most) - length(Layouts),
        machines = ?MACHINES - length([Kind || {Kind, _} <- Steps, is_of_machine(Kind)]),
        sources = sderl_ops_relay:sources([Step || {fetch, _, _} = Step := _ <- Ready],
                                          maps:get(fetches, AtOnce, ?FETCHES), View),
        per_host = maps:get(per_host, AtOnce, share(Most, View)),
        at_host = lists:foldl(fun(Step, Acc) -> add(place(Step, View), Acc) end, #{},
                              Layouts ++ Steps),
        leaving = #{Name => [] || Id := {drain, _} <- Busy,
                                  Name <- sderl_ops_members:seen_in(Id, View)},
        groups_running = is_map_key(groups, Running)
    }.

is_of_machine(Kind) -> Kind =:= create orelse Kind =:= delete.

share(Most, #view{observed = #{hosts := Hosts}}) ->
    max(?LEAST_PER_HOST, Most div max(1, map_size(Hosts))).

next([], #choice{chosen = Chosen, waiting = Waiting}) ->
    {lists:reverse(Chosen), lists:reverse(Waiting)};
next(Rest, #choice{steps = Steps, layouts = Layouts, waiting = Waiting} = Choice)
  when Steps =< 0, Layouts =< 0 ->
    next([], Choice#choice{waiting = lists:reverse([{Step, at_once} || {_, Step} <- Rest],
                                                   Waiting)});
next([{_, Step} | Rest], Choice) ->
    #choice{view = View, at_host = AtHost, chosen = Chosen, waiting = Waiting} = Choice,
    case room(Step, Choice) > 0 andalso hindrance(Step, Choice) of
        false ->
            next(Rest, Choice#choice{waiting = [{Step, at_once} | Waiting]});
        none ->
            Taken = count(Step, Choice#choice{at_host = add(place(Step, View), AtHost),
                                              chosen = [Step | Chosen]}),
            next(Rest, note(Step, Taken));
        Why ->
            next(Rest, Choice#choice{waiting = [{Step, Why} | Waiting]})
    end.

is_layout({lay_out, _}) -> true;
is_layout(_) -> false.

room(Step, #choice{steps = Steps, layouts = Layouts}) ->
    case is_layout(Step) of
        true -> Layouts;
        false -> Steps
    end.

count(Step, #choice{steps = Steps, layouts = Layouts} = Choice) ->
    case is_layout(Step) of
        true -> Choice#choice{layouts = Layouts - 1};
        false -> Choice#choice{steps = Steps - 1}
    end.

note({Kind, _}, #choice{machines = Machines} = Choice) when Kind =:= create; Kind =:= delete ->
    Choice#choice{machines = Machines - 1};
note(groups, Choice) ->
    Choice#choice{groups_running = true};
note({drain, Id}, #choice{view = View, leaving = Leaving} = Choice) ->
    Names = sderl_ops_members:seen_in(Id, View),
    Choice#choice{leaving = maps:merge(Leaving, #{Name => [] || Name <- Names})};
note(_, Choice) ->
    Choice.

hindrance({fetch, _, _} = Step, #choice{sources = Sources}) when not is_map_key(Step, Sources) ->
    at_once;
hindrance({Kind, _}, #choice{machines = Machines}) when Kind =:= create; Kind =:= delete ->
    case Machines of
        Room when Room > 0 -> none;
        _ -> at_once
    end;
hindrance(groups, _) -> none;
hindrance(Step, #choice{view = View, at_host = AtHost, per_host = PerHost} = Choice) ->
    Most = case is_layout(Step) of
        true -> max(?LAYOUTS_PER_HOST, PerHost);
        false -> PerHost
    end,
    case maps:get(place(Step, View), AtHost, 0) of
        Count when Count >= Most -> at_once;
        _ -> hindrance_of_groups(Step, Choice)
    end.

%% While groups are being changed, their members are neither started nor stopped. Instances that are
%% no longer desired leave a group one after the other, when their replacements are in it.
hindrance_of_groups(Step, #choice{view = View, unfinished = Unfinished} = Choice) ->
    #choice{groups_running = GroupsRunning, leaving = Leaving} = Choice,
    Id = sderl_ops_step:instance(Step),
    IsLeaver = not sderl_ops_view:is_taken(Id, View),
    case Step of
        {drain, _} when IsLeaver ->
            In = sderl_ops_members:seen_in(Id, View),
            first([{group, Name} || Name <- In,
                                    is_map_key(Name, Unfinished) orelse is_map_key(Name, Leaving)]);
        _ when GroupsRunning, Id =/= undefined ->
            #view{groups_of = GroupsOf} = View,
            Names = maps:get(Id, GroupsOf, []) ++ sderl_ops_members:seen_in(Id, View),
            first([{group, Name} || Name <- Names, is_map_key(Name, Unfinished)]);
        _ -> none
    end.

first([Why | _]) -> Why;
first([]) -> none.

place(Step, View) ->
    case {is_layout(Step), host(Step, View)} of
        {true, Host} when Host =/= undefined -> {lay_out, Host};
        {_, Host} -> Host
    end.

host({fetch, Host, _}, _) -> Host;
host({remove, Host, _}, _) -> Host;
host({drop_release, Host, _}, _) -> Host;
host(groups, _) -> undefined;
host({Kind, Host}, _) when Kind =:= create; Kind =:= delete -> Host;
host(Step, View) -> sderl_ops_view:host(sderl_ops_step:instance(Step), View).

add(undefined, AtHost) -> AtHost;
add(Host, AtHost) -> maps:update_with(Host, fun(Count) -> Count + 1 end, 1, AtHost).
