%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_machines).
-moduledoc """
Which hosts a program is to make, and which it is to delete. Pure.

A domain whose provider is a program has a number of hosts. Each host gets a name: the domain's name
and a number that was never used before. The name is remembered before the program is asked, so when
the program is asked again, also by the next service, it makes nothing twice. The program's answer
(the host's address) is remembered too, so that the service keeps the hosts while the program fails.

- If the program lists hosts with a domain's name that the service does not know, as many as are
  missing are adopted before others are made: so a service that has lost its memory makes nothing
  twice. The others are left alone.
- A host that is lost or surplus is *leaving*: nothing is started there, and its instances move to
  other hosts. When no instance is left, the host is deleted. A lost host, which nobody can look at,
  is deleted only if as many other hosts as wanted are up: otherwise the service itself may be the
  one that is cut off.
- A domain never has more than twice as many hosts as wanted, leaving hosts included. So a service
  that is cut off does not go on making hosts.
""".

-export([advance/5, fill/2, judge/1, pools/1, told/3, deleted/2, place/3, split/1, unknown/3]).
-export_type([machine/0, told/0, place/0]).

-include("sderl_ops_view.hrl").

-doc "What the program says of a host: its state, and how it is reached.".
-type told() :: #{state := running | pending | gone, name => binary(), address => binary(),
                  port => 1..65535, user => binary(), host_key => binary()}.

-doc "What a program is told of the domain of a host that it is to make.".
-type place() :: #{domain => binary(), region => binary(), rack => binary(),
                   labels => #{binary() => binary()}}.

-doc """
A host that is `wanted` has not been made yet. While it is `awaited`, it is a candidate for
instances that have no host, so they wait for it.
""".
-type machine() :: #{
    provider := binary(),
    domain := binary(),
    state := wanted | there | leaving,
    awaited := boolean(),
    told => told()
}.

-type lost() :: #{sderl_ops_desired:host_id() => true}.

%% ---------------------------------------------------------------- what is to be

-doc "The domains with hosts that a program makes, of all instances.".
-spec pools(sderl_ops_desired:desired()) -> #{Domain :: binary() => sderl_ops_desired:pool()}.
pools(#{instances := Instances}) ->
    maps:fold(fun(_, #{pools := Pools}, Acc) -> maps:merge(Acc, Pools);
                 (_, _, Acc) -> Acc
              end, #{}, Instances).

-doc "The desired state with the hosts that programs have made, as if the file named them.".
-spec fill(sderl_ops_desired:desired(), sderl_ops_memory:memory()) -> sderl_ops_desired:desired().
fill(Desired, #{machines := Machines} = Memory) ->
    case pools(Desired) of
        Pools when Pools =:= #{}, Machines =:= #{} ->
            Desired;
        Pools ->
            #{hosts := Hosts, instances := Instances} = Desired,
            Made = #{Id => facts(Domain, Provider, Pools)
                     || Id := #{domain := Domain, provider := Provider, told := _} <- Machines},
            ByDomain = maps:groups_from_list(
                fun({Domain, _}) -> Domain end, fun({_, Id}) -> Id end,
                [{Domain, Id} || Id := #{domain := Domain} = Machine
                                     <- maps:iterator(Machines, fun first/2),
                                 is_candidate(Id, Machine, Memory)]),
            Desired#{hosts := maps:merge(Hosts, Made),
                     instances := maps:map(fun(_, Instance) -> fill_in(Instance, ByDomain) end,
                                           Instances)}
    end.

first(A, B) -> split(A) =< split(B).

is_candidate(_, #{state := there}, _) ->
    true;
is_candidate(Id, #{state := wanted, awaited := true}, #{attempts := Attempts}) ->
    case Attempts of
        #{{create, Id} := #{again_at := never}} -> false;
        #{} -> true
    end;
is_candidate(_, _, _) ->
    false.

facts(Domain, Provider, Pools) ->
    case Pools of
        #{Domain := #{lost_after_s := Seconds} = Pool} ->
            #{provider => Provider, labels => sderl_ops_desired:host_labels(Pool),
              lost_after_s => Seconds};
        #{} ->
            #{provider => Provider, labels => #{}, lost_after_s => 300}
    end.

fill_in(#{pools := Pools, candidates := Candidates} = Instance, ByDomain) ->
    Made = lists:append([maps:get(Domain, ByDomain, []) || Domain := _ <- Pools]),
    Instance#{candidates := Candidates ++ (Made -- Candidates)};
fill_in(Instance, _) ->
    Instance.

-spec place(sderl_ops_desired:host_id(), sderl_ops_desired:desired(), sderl_ops_memory:memory()) ->
    place().
place(Id, Desired, #{machines := Machines}) ->
    maybe
        #{Id := #{domain := Domain}} ?= Machines,
        #{Domain := Pool} ?= pools(Desired),
        maps:with([domain, region, rack, labels], Pool)
    else
        #{} -> #{}
    end.

%% ---------------------------------------------------------------- what is decided

-doc "Remembers what programs tell, and decides which hosts are wanted and which leave.".
-spec advance(sderl_ops_desired:desired(), sderl_ops_observed:observed(), lost(),
              Running :: [sderl_ops_step:step()], sderl_ops_memory:memory()) ->
    {sderl_ops_memory:memory(), [sderl_ops_note:note()]}.
advance(Desired, Observed, Lost, Running, #{machines := Before} = Memory0) ->
    case pools(Desired) of
        Pools when Pools =:= #{}, Before =:= #{} ->
            {Memory0, []};
        Pools ->
            Memory = hear(Observed, Running, Memory0),
            lists:foldl(fun(Decide, {M, Notes}) ->
                {Next, More} = Decide(M),
                {Next, Notes ++ More}
            end, {Memory, []}, [
                fun(M) -> leave([Id || Id := Machine <- map_get(machines, M),
                                       is_map_key(Id, Lost) orelse is_gone(Machine)
                                           orelse not is_of(Machine, Pools)], M)
                end,
                fun(M) -> leave(surplus(Pools, M), M) end
                | [fun(M) -> supply(Domain, Pool, Observed, M) end
                   || Domain := Pool <- maps:iterator(Pools, ordered)]
            ])
    end.

%% While a program makes or deletes a host, its list may be older than its answer.
hear(Observed, Running, #{machines := Machines} = Memory) ->
    Memory#{machines := maps:map(fun(Id, #{provider := Provider} = Machine) ->
        {_, Name} = split_host(Id),
        case sderl_ops_observed:provider(Provider, Observed) of
            #{hosts := #{Name := Told}} ->
                case lists:member({create, Id}, Running) orelse lists:member({delete, Id}, Running)
                of
                    true -> Machine;
                    false -> learn(Told, Machine)
                end;
            _ -> Machine
        end
    end, Machines)}.

%% The program may have made a host although its answer was lost.
learn(#{state := gone}, #{state := wanted} = Machine) -> Machine;
learn(Told, #{state := wanted} = Machine) -> Machine#{state := there, told => Told};
learn(Told, #{told := Before} = Machine) -> Machine#{told := maps:merge(Before, Told)};
learn(#{state := gone}, Machine) -> Machine;
learn(Told, Machine) -> Machine#{told => Told}.

is_gone(#{told := #{state := gone}}) -> true;
is_gone(_) -> false.

is_of(#{domain := Domain, provider := Provider}, Pools) ->
    case Pools of
        #{Domain := #{provider := Provider}} -> true;
        #{} -> false
    end.

leave(Ids, #{machines := Machines} = Memory) ->
    New = [Id || Id <- lists:sort(Ids), map_get(state, map_get(Id, Machines)) =/= leaving],
    {Memory#{machines := lists:foldl(fun(Id, Acc) ->
         maps:update_with(Id, fun(Machine) -> Machine#{state := leaving} end, Acc)
     end, Machines, New)},
     [{host_unwanted, Id} || Id <- New]}.

%% Surplus machines: those with the fewest instances, and among these the latest.
surplus(Pools, #{machines := Machines, assigned := Assigned}) ->
    Loads = maps:groups_from_list(fun(Host) -> Host end, maps:values(Assigned)),
    lists:append([lists:nthtail(min(Count, length(Kept)), Kept)
                  || Domain := #{hosts := Count} <- Pools,
                     Kept <- [[Id || {_, _, Id} <- lists:sort(
                                  [{-length(maps:get(Id, Loads, [])), split(Id), Id}
                                   || Id <- kept(Domain, Machines)])]]]).

kept(Domain, Machines) ->
    [Id || Id := #{domain := Of, state := State} <- Machines, Of =:= Domain, State =/= leaving].

%% Without the program's list it is unknown which hosts there are.
supply(Domain, #{provider := Provider, hosts := Count}, Observed, Memory) ->
    case sderl_ops_observed:provider(Provider, Observed) of
        #{state := up, hosts := Listed} ->
            #{machines := Machines} = Memory,
            Missing = Count - length(kept(Domain, Machines)),
            Of = [Id || Id := #{domain := Is} <- Machines, Is =:= Domain],
            {Adopted, Notes} =
                adopt(lists:sublist(unknown(Domain, Provider, Listed, Memory), max(0, Missing)),
                      Domain, Provider, Listed, Memory),
            Room = 2 * Count - length(Of) - length(Notes),
            want(min(Missing - length(Notes), Room), Domain, Provider, Listed,
                 Of =:= kept(Domain, Machines), Adopted, Notes);
        _ ->
            {Memory, []}
    end.

-doc "The hosts that a provider lists and the service did not ask for.".
-spec unknown(Provider :: binary(), Listed :: #{binary() => told()}, sderl_ops_memory:memory()) ->
    [binary()].
unknown(Provider, Listed, #{machines := Machines}) ->
    [Name || Name := #{state := State} <- maps:iterator(Listed, ordered), State =/= gone,
             not is_map_key(<<Provider/binary, $/, Name/binary>>, Machines)].

%% Sorted by their numbers.
unknown(Domain, Provider, Listed, Memory) ->
    [Name || {_, Name} <- lists:sort(
        [{Number, Name} || Name <- unknown(Provider, Listed, Memory),
                           {Of, Number} <- [split(Name)], Of =:= Domain, Number > 0])].

adopt(Names, Domain, Provider, Listed, #{machines := Machines} = Memory) ->
    New = #{<<Provider/binary, $/, Name/binary>> =>
                #{provider => Provider, domain => Domain, state => there, awaited => true,
                  told => map_get(Name, Listed)} || Name <- Names},
    {Memory#{machines := maps:merge(Machines, New)},
     [{host_adopted, Id} || Id <- lists:sort(maps:keys(New))]}.

want(Count, _, _, _, _, Memory, Notes) when Count =< 0 ->
    {Memory, Notes};
want(Count, Domain, Provider, Listed, Awaited, Memory, Notes) ->
    #{machines := Machines, numbers := Numbers} = Memory,
    Last = lists:max([maps:get(Domain, Numbers, 0)
                      | [Number || Name <- names(Machines) ++ maps:keys(Listed),
                                   {Of, Number} <- [split(Name)], Of =:= Domain]]),
    New = [iolist_to_binary([Provider, $/, Domain, $-, integer_to_list(Number)])
           || Number <- lists:seq(Last + 1, Last + Count)],
    {Memory#{
         numbers := Numbers#{Domain => Last + Count},
         machines := maps:merge(Machines, #{Id => #{provider => Provider, domain => Domain,
                                                    state => wanted, awaited => Awaited}
                                            || Id <- New})
     }, Notes ++ [{host_wanted, Id} || Id <- New]}.

names(Machines) -> [element(2, split_host(Id)) || Id := _ <- Machines].

split_host(Id) ->
    [Provider, Name] = binary:split(Id, ~"/"),
    {Provider, Name}.

-doc "Domain and number of a host's name or id; 0 if the service did not give that name.".
-spec split(binary()) -> {binary(), non_neg_integer()}.
split(Name) ->
    case re:run(Name, "^(.*)-([1-9][0-9]{0,8})$", [{capture, [1, 2], binary}, dollar_endonly]) of
        {match, [Domain, Number]} -> {Domain, binary_to_integer(Number)};
        nomatch -> {Name, 0}
    end.

%% ---------------------------------------------------------------- what is done

-doc "Steps for hosts that could run now, and why other hosts have to wait.".
-spec judge(sderl_ops_view:view()) ->
    {sderl_ops_choose:ready(), [{sderl_ops_step:step() | {provider, binary()}, Why :: term()}]}.
judge(#view{memory = #{machines := Machines}, desired = Desired} = View) ->
    Pools = pools(Desired),
    Begin = {#{}, unsupplied(Pools, View)},
    Used = case Machines =:= #{} of
               true -> #{};
               false -> used(View)
           end,
    maps:fold(fun(Id, Machine, {Ready, Waiting}) ->
        case judge_one(Id, Machine, Pools, Used, View) of
            settled -> {Ready, Waiting};
            {ready, Step, About} -> {Ready#{Step => {About, undefined}}, Waiting};
            {waiting, Step, Why} -> {Ready, [{Step, Why} | Waiting]}
        end
    end, Begin, Machines).

unsupplied(Pools, #view{memory = #{machines := Machines}, observed = Observed}) ->
    [{{provider, Provider}, Why}
     || Domain := #{provider := Provider, hosts := Count} <- Pools,
        Kept <- [length(kept(Domain, Machines))], Kept < Count,
        Why <- [case sderl_ops_observed:provider(Provider, Observed) of
                    unseen -> not_asked_yet;
                    #{state := failing, why := Said} -> Said;
                    #{state := up} -> {too_many_lost, Domain}
                end]].

%% Hosts that have assigned instances or running steps.
used(#view{memory = #{assigned := Assigned} = Memory, running = Running}) ->
    maps:from_keys(maps:values(Assigned)
                   ++ [Host || Step := _ <- Running, Host <- [host_of(Step, Memory)]], true).

host_of({Kind, Host, _}, _) when Kind =:= fetch; Kind =:= remove; Kind =:= drop_release -> Host;
host_of(Step, Memory) ->
    sderl_ops_memory:host_of(sderl_ops_step:instance(Step), Memory).

judge_one(Id, #{state := wanted}, _, _, View) ->
    attempt({create, Id}, View);
judge_one(Id, #{state := leaving} = Machine, Pools, Used, #view{running = Running} = View) ->
    case Running of
        #{{create, Id} := _} -> {waiting, {delete, Id}, running};
        #{} ->
            case hindrance(Id, Machine, Pools, Used, View) of
                none -> attempt({delete, Id}, View);
                Why -> {waiting, {delete, Id}, Why}
            end
    end;
judge_one(_, #{state := there}, _, _, _) ->
    settled.

hindrance(Id, _, _, Used, _) when is_map_key(Id, Used) -> in_use;
hindrance(Id, #{told := #{state := State}} = Machine, Pools, _, View) ->
    #view{observed = #{hosts := Hosts}} = View,
    case Hosts of
        _ when State =:= gone -> none;
        #{Id := #{state := up, instances := Left}} when Left =/= #{} -> in_use;
        #{Id := #{state := up}} -> none;
        #{Id := #{state := gone}} -> none;
        #{Id := #{state := unreachable}} -> may_be_cut_off(Id, Machine, Pools, View);
        #{} -> not_seen_yet
    end;
hindrance(_, _, _, _, _) -> none.

may_be_cut_off(Id, #{domain := Domain, provider := Provider}, Pools, View) ->
    #view{memory = #{machines := Machines}, observed = Observed} = View,
    {_, Name} = split_host(Id),
    case {Pools, sderl_ops_observed:provider(Provider, Observed)} of
        {_, #{state := up, hosts := Listed}} when not is_map_key(Name, Listed) -> none;
        {#{Domain := #{hosts := Count}}, _} ->
            Up = [Other || Other <- kept(Domain, Machines),
                           sderl_ops_observed:host_state(Other, Observed) =:= up],
            case length(Up) >= Count of
                true -> none;
                false -> {too_few_up, Domain}
            end;
        _ -> none
    end.

attempt(Step, #view{running = Running}) when is_map_key(Step, Running) ->
    {waiting, Step, running};
attempt(Step, #view{desired = #{revision := About}, memory = Memory, now = Now}) ->
    case sderl_ops_attempts:may(Step, About, Memory, Now) of
        yes -> {ready, Step, About};
        {at, At, Why} -> {waiting, Step, {again_at, At, Why}};
        {quarantined, Why} -> {waiting, Step, {quarantined, Why}}
    end.

%% ---------------------------------------------------------------- what was done

-doc "A host was made.".
-spec told(sderl_ops_desired:host_id(), told(), sderl_ops_memory:memory()) ->
    sderl_ops_memory:memory().
told(Id, Told, #{machines := Machines} = Memory) ->
    case Machines of
        #{Id := #{state := wanted} = Machine} ->
            Memory#{machines := Machines#{Id := Machine#{state := there, told => Told}}};
        #{Id := Machine} ->
            Memory#{machines := Machines#{Id := Machine#{told => Told}}};
        #{} ->
            Memory
    end.

-doc "A host was deleted.".
-spec deleted(sderl_ops_desired:host_id(), sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
deleted(Id, #{machines := Machines, unreachable := Unreachable} = Memory) ->
    Memory#{machines := maps:remove(Id, Machines), unreachable := maps:remove(Id, Unreachable)}.
