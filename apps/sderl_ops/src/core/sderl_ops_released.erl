%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_released).
-moduledoc """
Nodes that were taken over (`m:sderl_ops_adopted`) and handed back: they run on as they are, in
their groups, and the service does nothing about them any more. It neither starts nor stops nor
looks at one, and its groups count as if they were without it. It may be taken over again. Pure.
""".

-export([release/3, take_back/2, is_released/2, all/1, forget/2, without/2]).
-export_type([released/0]).

-doc "What is needed to adopt it again as it was.".
-type released() :: sderl_ops_adopted:adopted().

-doc "Hands one back. An error is a sentence.".
-spec release(sderl_ops_desired:instance_id(), IsBusy :: boolean(), sderl_ops_memory:memory()) ->
    {ok, sderl_ops_memory:memory()} | {error, unicode:chardata()}.
release(Id, IsBusy, #{assigned := Assigned} = Memory) ->
    Adopted = sderl_ops_memory:adopted(Memory),
    case {all(Memory), Adopted} of
        {#{Id := _}, _} ->
            {error, [Id, " was handed back already"]};
        {_, #{Id := #{as := _}}} when IsBusy ->
            {error, ["a step of ", Id, " is under way: try again when `status` shows that it has "
                     "ended"]};
        {Before, #{Id := #{as := _} = Of}} ->
            case sderl_ops_memory:is_aside(Id, Memory) of
                true ->
                    {error, [Id, " is being drained: undrain it first"]};
                false ->
                    {ok, Memory#{adopted => maps:remove(Id, Adopted),
                                 assigned := maps:remove(Id, Assigned),
                                 released => Before#{Id => Of}}}
            end;
        _ ->
            {error, [Id, " is no node that was taken over and runs as it was found: only such are "
                     "handed back; `drain` stops it"]}
    end.

-doc "Takes one over again, as what it was. An error is a sentence.".
-spec take_back(sderl_ops_desired:instance_id(), sderl_ops_memory:memory()) ->
    {ok, sderl_ops_memory:memory()} | {error, unicode:chardata()}.
take_back(Id, #{assigned := Assigned} = Memory) ->
    case all(Memory) of
        #{Id := #{host := Host} = Of} = Released ->
            {ok, Memory#{adopted => (sderl_ops_memory:adopted(Memory))#{Id => Of},
                         assigned := Assigned#{Id => Host},
                         released => maps:remove(Id, Released)}};
        #{} ->
            {error, [Id, " was not handed back"]}
    end.

-spec is_released(sderl_ops_desired:instance_id(), sderl_ops_memory:memory()) -> boolean().
is_released(Id, Memory) -> is_map_key(Id, all(Memory)).

-spec all(sderl_ops_memory:memory()) -> #{sderl_ops_desired:instance_id() => released()}.
all(Memory) -> maps:get(released, Memory, #{}).

-doc "Forgets instances that are no longer desired: a later one of that name is a new one.".
-spec forget(sderl_ops_desired:desired(), sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
forget(#{instances := Instances} = Desired, Memory) ->
    Former = maps:values(maps:get(former, Desired, #{})),
    case maps:filter(fun(Id, _) -> not lists:any(fun(Of) -> is_map_key(Id, Of) end,
                                                 [Instances | Former])
                     end, all(Memory)) of
        Gone when Gone =:= #{} -> Memory;
        Gone -> Memory#{released => maps:without(maps:keys(Gone), all(Memory))}
    end.

-doc """
The desired state without them. A group that had some is marked (`elsewhere`): if no instance is
left in it, it still runs on the released nodes, and must not be made a second time.
""".
-spec without(sderl_ops_desired:desired(), sderl_ops_memory:memory()) ->
    sderl_ops_desired:desired().
without(#{instances := Instances, groups := Groups} = Desired, Memory) ->
    case all(Memory) of
        Released when Released =:= #{} -> Desired;
        Released ->
            Desired#{instances := maps:without(maps:keys(Released), Instances),
                     groups := [without_members(Group, Released) || Group <- Groups]}
    end.

without_members(#{members := Members} = Group, Released) ->
    case [Id || Id <- Members, not is_map_key(Id, Released)] of
        Members -> Group;
        Others -> Group#{members := Others, elsewhere => true}
    end.
