%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_plan).
-moduledoc """
What would be done if a desired state were adopted. The reconciler is asked repeatedly, as if each
step succeeded at once and every node were well. Pure.
""".

-include("sderl_ops_view.hrl").

-export([plan/4, refusals/4, refusals_of_drain/4]).

%% More than anybody reads.
-define(MOST_STEPS, 2_000).

-doc "The steps in an order in which they may be done, and what the rules of upgrades refuse.".
-spec plan(sderl_ops_desired:desired(), sderl_ops_observed:observed(), sderl_ops_memory:memory(),
           sderl_ops_memory:time()) ->
    #{steps := [sderl_ops_step:step()], refused := [sderl_ops_refusal:refusal()]}.
plan(Desired, Observed, Memory, Now) ->
    Filled = sderl_ops_machines:fill(Desired, Memory),
    #{
        steps => follow(without_alarms(Desired), sighted(Filled, Observed),
                        sderl_ops_memory:resume(Memory), Now, []),
        refused => refusals(Desired, Observed, Memory, Now)
    }.

%% If all goes well no alarm is raised.
without_alarms(#{upgrade := Upgrade} = Desired) ->
    Desired#{upgrade := maps:remove(alarms, Upgrade)}.

-doc "Only what the rules of upgrades refuse, which takes less time than the steps.".
-spec refusals(sderl_ops_desired:desired(), sderl_ops_observed:observed(),
               sderl_ops_memory:memory(), sderl_ops_memory:time()) ->
    [sderl_ops_refusal:refusal()].
refusals(Desired, Observed, Memory, Now) ->
    %% As upgrades see it: an instance that was handed back does not keep a group alive.
    Present = sderl_ops_machines:fill(sderl_ops_released:without(Desired, Memory), Memory),
    Sighted = sderl_ops_adopted:sight(Present, Observed, Memory),
    sderl_ops_upgrade:refusals(
        sderl_ops_view:new(Present, Sighted, Memory, #{}, #{}, [], Now)).

-doc """
What would be lost if an instance of the newest revision were drained now. If it is drained already,
nothing more is lost.
""".
-spec refusals_of_drain(sderl_ops_desired:instance_id(), sderl_ops_desired:desired(),
                        sderl_ops_observed:observed(), sderl_ops_memory:memory()) ->
    [sderl_ops_refusal:refusal()].
refusals_of_drain(Id, Desired, Observed, Memory) ->
    case sderl_ops_memory:is_aside(Id, Memory) of
        true ->
            [];
        false ->
            Effective = sderl_ops_former:effective(Desired, Memory),
            Sighted = sderl_ops_adopted:sight(Effective, Observed, Memory),
            View = sderl_ops_view:new(Effective, Sighted, Memory, #{}, #{}, [], 0),
            [{Id, Loss} || Loss <- sderl_ops_refusal:of_drain(Id, View)]
    end.

%% Hosts that were not looked at yet are assumed to be empty. Nodes that run already according to
%% the file, and were not looked at yet, are assumed to run.
sighted(#{hosts := Known, instances := Instances} = Desired, #{hosts := Seen} = Observed) ->
    #{nodes := Nodes, groups := Groups} = Observed,
    Providers = #{Provider => sderl_ops_observed:provider(Provider, Observed)
                  || _ := #{provider := Provider} <- sderl_ops_machines:pools(Desired)},
    Empty = #{state => up, releases => [], instances => #{}},
    Running = #{Id => #{state => up, health => ok} || Id := #{adopt := _} <- Instances,
                                                      not is_map_key(Id, Nodes)},
    Observed#{hosts := maps:merge(#{Id => Empty || Id := _ <- Known}, Seen),
              providers => maps:map(fun(_, #{state := up} = Of) -> Of;
                                       (_, _) -> #{state => up, hosts => #{}}
                                    end, Providers),
              nodes := maps:merge(Running, Nodes),
              groups := case Groups of unknown -> in_groups(Running, Desired); #{} -> Groups end}.

in_groups(Running, #{groups := Groups}) ->
    #{Name => In || #{name := Name, members := Ids} <- Groups,
                    [_ | _] = In <- [[Id || Id <- Ids, is_map_key(Id, Running)]]}.

follow(Desired, Observed, Memory, Now, Steps) ->
    follow(Desired, Observed, Memory, Now, Steps, once_more).

%% If no step can run, time may have to pass first, such as that for which canaries are watched. If
%% still no step can run after that, these are all steps.
follow(Desired, Observed, Memory, Now, Steps, Before) ->
    #{start := Start, memory := After} =
        sderl_ops_reconcile:steps(Desired, Observed, Memory, [], Now),
    %% Long enough for every wait of an upgrade.
    Later = Now + 3_600_000,
    case {Start, Before} of
        _ when length(Steps) > ?MOST_STEPS ->
            lists:reverse(Steps);
        {[], last} ->
            lists:reverse(Steps);
        {[], once_more} ->
            follow(Desired, Observed, still_there(After), Later, Steps, last);
        {_, _} ->
            {Seen, Remembered} = lists:foldl(fun(Step, {SeenSoFar, MemorySoFar}) ->
                {Then, _} = sderl_ops_reconcile:ended(Step, result(Step), MemorySoFar, Now),
                {done(Step, Desired, MemorySoFar, SeenSoFar), Then}
            end, {Observed, After}, Start),
            follow(Desired, Seen, still_there(Remembered), Later, lists:reverse(Start) ++ Steps,
                   once_more)
    end.

%% An unreachable host does not become lost by the time that passes here.
still_there(Memory) -> Memory#{unreachable := #{}}.

result({create, _}) -> {ok, #{state => running}};
result(_) -> ok.

%% The observed state once the step has succeeded.
done({create, Host}, _, _, #{hosts := Hosts} = Observed) ->
    Observed#{hosts := Hosts#{Host => #{state => up, releases => [], instances => #{}}}};
done({delete, Host}, _, _, Observed) ->
    sderl_ops_observed:forget_host(Host, Observed);
done({fetch, Host, Sha}, _, _, Observed) ->
    sderl_ops_observed:put_release(Host, Sha, Observed);
done({drop_release, Host, Sha}, _, _, Observed) ->
    sderl_ops_observed:drop_release(Host, Sha, Observed);
done({lay_out, Id}, Desired, Memory, Observed) ->
    {#{release := Sha, settings := Settings}, Host} =
        sderl_ops_reconcile:wanted(Id, Desired, Memory),
    sderl_ops_observed:put_instance(Host, Id, #{state => laid_out, release => Sha,
                                                settings => Settings}, Observed);
done({start, Id}, _, Memory, #{nodes := Nodes} = Observed) ->
    set(Id, running, Memory, Observed#{nodes := Nodes#{Id => #{state => up, health => ok}}});
done({drain, Id}, _, _, #{groups := Groups} = Observed) ->
    Observed#{groups := #{Name => lists:delete(Id, Ids) || Name := Ids <- Groups}};
done({stop, Id}, _, Memory, #{nodes := Nodes} = Observed) ->
    set(Id, laid_out, Memory, Observed#{nodes := maps:remove(Id, Nodes)});
done({remove, Host, Id}, _, _, Observed) ->
    sderl_ops_observed:put_instance(Host, Id, undefined, Observed);
done(groups, Desired, Memory, Observed) ->
    Groups = sderl_ops_reconcile:groups(Desired, Observed, Memory),
    Observed#{groups := #{Name => [Id || Id <- Ids, sderl_ops_observed:is_up(Id, Observed)]
                          || #{name := Name, members := Ids} <- Groups},
              listed => #{}}.

%% An adopted instance has no files there.
set(Id, State, Memory, Observed) ->
    Host = sderl_ops_memory:host_of(Id, Memory),
    case sderl_ops_observed:instance_at(Host, Id, Observed) of
        undefined -> Observed;
        Seen -> sderl_ops_observed:put_instance(Host, Id, Seen#{state := State}, Observed)
    end.
