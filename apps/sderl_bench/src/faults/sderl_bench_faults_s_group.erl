%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_s_group).
-moduledoc "The library under faults: one group from the launch configuration.".

-behaviour(sderl_bench_faults_registry).

-export([family/1, group/0, linked/2, ready/2, coordinator/0, register/2, unregister/1, find/1,
         names/0, view/1]).

-define(GROUP, faults).

-doc "Nodes with the library; times that are not given are its defaults.".
-spec family(sderl_bench_faults_registry:params()) -> #{atom() => term()}.
family(Params) ->
    Times = maps:to_list(maps:with([tick_ms, set_aside_ms], Params)),
    #{connect_all => false, apps => [sderl],
      env => [{sderl, Key, Ms} || {Key, Ms} <- Times] ++ mode(Params)}.

%% Clients must be told when the majority is lost, because their names may then go to others.
mode(#{consistency := majority}) ->
    [{sderl, consistency, #{?GROUP => majority}}, {sderl, majority_lost, #{?GROUP => exit}}];
mode(_) ->
    [].

-doc false.
-spec group() -> atom().
group() -> ?GROUP.

-doc "Members restore their links themselves.".
-spec linked(pid(), [node()]) -> ok.
linked(_Fleet, _Nodes) -> ok.

-doc false.
-spec ready(pid(), [node()]) -> ok.
ready(_Fleet, _Nodes) -> ok.

-doc "The coordinator of this node's component.".
-spec coordinator() -> node() | none.
coordinator() ->
    case info() of
        #{coordinator := undefined} -> none;
        #{coordinator := Node} -> Node;
        _ -> none
    end.

-doc "`s_group:register_name/3`.".
-spec register(term(), pid()) -> sderl_bench_faults_registry:outcome().
register(Name, Pid) -> s_group:register_name(?GROUP, Name, Pid).

-doc "`s_group:unregister_name/2`.".
-spec unregister(term()) -> sderl_bench_faults_registry:outcome().
unregister(Name) ->
    case s_group:unregister_name(?GROUP, Name) of
        ok -> yes;
        {no, Reason} -> {no, Reason}
    end.

-doc "`s_group:whereis_name/2`.".
-spec find(term()) -> pid() | undefined.
find(Name) -> s_group:whereis_name(?GROUP, Name).

-doc "The group's registered names.".
-spec names() -> [{term(), pid()}].
names() ->
    case s_group:registered_names({s_group, ?GROUP}) of
        Names when is_list(Names) ->
            [{Name, Pid} || {_, Name} <- Names, Pid <- [find(Name)], is_pid(Pid)];
        {error, _} -> []
    end.

-doc """
Steady: all live nodes count, and no member is set aside or being brought up to date. Coordinator
and epoch tell whether they agree.
""".
-spec view([node()]) -> sderl_bench_faults_registry:view().
view(Live) ->
    Sorted = lists:sort(Live),
    case info() of
        #{role := Role, coordinator := Lead, epoch := Epoch, lineage := Epoch, live := Sorted,
          aside := [], syncing := false}
          when Role =:= coord; Role =:= follower ->
            {steady, {Lead, Epoch}};
        #{} = Info ->
            maps:with([role, coordinator, epoch, lineage, live, aside, syncing, error], Info);
        none ->
            no_member
    end.

info() ->
    case s_group:info() of
        All when is_list(All) ->
            case [Info || #{group := ?GROUP} = Info <- proplists:get_value(groups, All)] of
                [Info] -> Info;
                [] -> none
            end;
        {error, not_running} ->
            none
    end.
