%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_assign).
-moduledoc """
Assigns instances to hosts.

An instance stays where it is as long as its host is a candidate and not lost. A host is lost when
its provider no longer has it, or when it has not answered for as long as its provider allows
(`lost_after_s`, by default 300 s, or `never`). For other instances a host is chosen from the
candidates that answer and have room for one more instance of the family, by `select`:

- `spread`: the host with the fewest instances of the family, then with the fewest instances;
- `pack`: the first host;
- `random`: by a hash of the names of cluster, instance and host, so that the same file always gives
  the same hosts.

An adopted instance (`m:sderl_ops_adopted`) stays on a host that does not answer.

An instance that is found on a host, and that is not assigned to any, is assigned to that host: so a
service that has lost its memory starts nothing twice.
""".

-export([assign/4, places/1, lost/4]).
-export_type([places/0, homeless/0]).

-doc "The hosts that answer and have files of an instance; those where it runs come first.".
-type places() :: #{sderl_ops_desired:instance_id() => [sderl_ops_desired:host_id()]}.
-doc "Instances without a host, and why.".
-type homeless() :: #{sderl_ops_desired:instance_id() => Why :: term()}.

-define(LOST_AFTER_S, 300).

-record(load, {
    %% How many of a family, and how many at all, each host has.
    family = #{} :: #{{binary(), sderl_ops_desired:host_id()} => pos_integer()},
    total = #{} :: #{sderl_ops_desired:host_id() => pos_integer()}
}).

-doc "The hosts of all instances that are seen.".
-spec places(sderl_ops_observed:observed()) -> places().
places(#{hosts := Hosts}) ->
    maps:fold(fun(Host, #{state := up, instances := Instances}, Places) ->
                      maps:fold(fun(Id, #{state := State}, Acc) ->
                                        Acc#{Id => place(Host, State, Acc, Id)}
                                end, Places, Instances);
                 (_, #{}, Places) -> Places
              end, #{}, Hosts).

place(Host, State, Places, Id) ->
    case Places of
        #{Id := Hosts} when State =:= running -> [Host | Hosts];
        #{Id := Hosts} -> Hosts ++ [Host];
        #{} -> [Host]
    end.

-doc "Assigns instances that need a host, and forgets instances that are gone.".
-spec assign(sderl_ops_desired:desired(), sderl_ops_observed:observed(),
             sderl_ops_memory:memory(), sderl_ops_memory:time()) ->
    {sderl_ops_memory:memory(), homeless(), places(), [sderl_ops_note:note()]}.
assign(#{instances := Instances} = Desired, Observed, Memory0, Now) ->
    Places = places(Observed),
    {Memory1, Lost} = watch_hosts(Desired, Observed, Memory0, Now),
    #{assigned := Assigned0} = Memory1,
    Adopted = maps:fold(fun(Id, [Host | _], Acc) ->
        case Acc of
            #{Id := _} -> Acc;
            #{} -> Acc#{Id => Host}
        end
    end, Assigned0, Places),
    Held = sderl_ops_adopted:held(Desired, Memory1),
    Kept = maps:filter(fun(Id, Host) ->
        is_held(Id, Host, Held, Observed)
            orelse stays(Id, Host, maps:get(Id, Instances, undefined), Lost, Observed)
    end, Adopted),
    Moved = [{moved, Id, Host} || Id := Host <- Assigned0,
                                  not is_map_key(Id, Kept), is_map_key(Id, Instances)],
    {Assigned, Homeless, Chosen} = choose(Desired, Kept, Lost, Observed),
    Notes = [{host_lost, Host} || Host <- lists:usort([From || {moved, _, From} <- Moved]),
                                  is_map_key(Host, Lost)] ++ Moved ++ Chosen,
    {Memory1#{assigned := Assigned}, Homeless, Places, Notes}.

%% ---------------------------------------------------------------- hosts

-doc "The hosts that are lost by now.".
-spec lost(sderl_ops_desired:desired(), sderl_ops_observed:observed(), sderl_ops_memory:memory(),
           sderl_ops_memory:time()) -> #{sderl_ops_desired:host_id() => true}.
lost(Desired, Observed, Memory, Now) ->
    {_, Lost} = watch_hosts(Desired, Observed, Memory, Now),
    Lost.

watch_hosts(Desired, #{hosts := Hosts}, #{unreachable := Before} = Memory, Now) ->
    Since = #{Host => min(Now, maps:get(Host, Before, Now))
              || Host := #{state := unreachable} <- Hosts},
    Lost = maps:from_list([{Host, true} || Host := At <- Since,
                                           is_past(lost_after(Host, Desired), At, Now)]
                          ++ [{Host, true} || Host := #{state := gone} <- Hosts]),
    {Memory#{unreachable := Since}, Lost}.

lost_after(Host, Desired) ->
    case Desired of
        #{hosts := #{Host := #{lost_after_s := Seconds}}} -> Seconds;
        #{} -> ?LOST_AFTER_S
    end.

is_past(never, _, _) -> false;
is_past(Seconds, At, Now) -> Now - At >= Seconds * 1000.

%% ---------------------------------------------------------------- who stays

is_held(Id, Host, Held, Observed) ->
    maps:find(Id, Held) =:= {ok, Host}
        andalso sderl_ops_observed:host_state(Host, Observed) =:= unreachable.

%% An instance that is not desired keeps its host until its files there are removed.
stays(_, Host, _, Lost, _) when is_map_key(Host, Lost) -> false;
stays(Id, Host, undefined, _, Observed) -> is_there(Id, Host, Observed);
stays(Id, Host, #{candidates := Candidates}, _, Observed) ->
    lists:member(Host, Candidates) orelse is_there(Id, Host, Observed).

%% On a host that does not answer it may be there.
is_there(Id, Host, Observed) ->
    sderl_ops_observed:host_state(Host, Observed) =/= up
        orelse sderl_ops_observed:instance_at(Host, Id, Observed) =/= undefined.

%% ---------------------------------------------------------------- choosing

choose(#{instances := Instances} = Desired, Kept, Lost, Observed) ->
    case lists:sort([{Family, Index, Id} || Id := #{family := Family, index := Index} <- Instances,
                                            not is_map_key(Id, Kept)]) of
        [] -> {Kept, #{}, []};
        New ->
            {Assigned, Homeless, _, Notes} =
                lists:foldl(fun({_, _, Id}, Acc) ->
                    choose_one(map_get(Id, Instances), Desired, Lost, Observed, Acc)
                end, {Kept, #{}, load(Instances, Kept), []}, New),
            {Assigned, Homeless, lists:reverse(Notes)}
    end.

load(Instances, Assigned) ->
    maps:fold(fun(Id, Host, Load) ->
        case Instances of
            #{Id := #{family := Family}} -> add(Family, Host, Load);
            #{} -> Load
        end
    end, #load{}, Assigned).

add(Family, Host, #load{family = OfFamily, total = Total}) ->
    Plus = fun(Count) -> Count + 1 end,
    #load{family = maps:update_with({Family, Host}, Plus, 1, OfFamily),
          total = maps:update_with(Host, Plus, 1, Total)}.

choose_one(#{id := Id, family := Family, candidates := Candidates} = Instance, Desired, Lost,
           Observed, {Assigned, Homeless, Load, Notes}) ->
    States = [{sderl_ops_observed:host_state(Host, Observed), Host}
              || Host <- Candidates, not is_map_key(Host, Lost)],
    Most = maps:get(per_host, maps:get(limits, Instance, #{}), infinity),
    %% infinity is an atom, which is more than any number.
    Free = [Host || {up, Host} <- States, count({Family, Host}, Load#load.family) < Most],
    case {lists:keyfind(unseen, 1, States), Free} of
        {{unseen, Unseen}, _} ->
            {Assigned, Homeless#{Id => {not_seen_yet, Unseen}}, Load, Notes};
        {false, []} ->
            {Assigned, Homeless#{Id => no_room(States)}, Load, Notes};
        {false, _} ->
            Host = select(maps:get(select, Instance, spread), Free, Instance, Desired, Load),
            {Assigned#{Id => Host}, Homeless, add(Family, Host, Load),
             [{assigned, Id, Host} | Notes]}
    end.

no_room([]) -> no_host;
no_room(States) ->
    case lists:keymember(up, 1, States) of
        true -> every_host_is_full;
        false -> no_host_answers
    end.

select(pack, [Host | _], _, _, _) -> Host;
select(spread, Free, #{family := Family}, _, Load) ->
    least(fun(Host) ->
        {count({Family, Host}, Load#load.family), count(Host, Load#load.total)}
    end, Free);
select(random, Free, #{id := Id}, #{cluster := Cluster}, _) ->
    least(fun(Host) -> erlang:phash2({Cluster, Id, Host}) end, Free).

least(Of, [First | Others]) ->
    {_, Least} = lists:foldl(fun(Host, {Best, _} = Acc) ->
        case Of(Host) of
            Better when Better < Best -> {Better, Host};
            _ -> Acc
        end
    end, {Of(First), First}, Others),
    Least.

count(Key, Counts) -> maps:get(Key, Counts, 0).
