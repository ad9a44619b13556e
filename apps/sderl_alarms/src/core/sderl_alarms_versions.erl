%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_versions).
-moduledoc """
For each group and family, how many applications its nodes have in different versions. Pure.

There may be many nodes with many applications, which seldom change: they are counted again only
when applications, or the nodes that are up, have changed.
""".

-export([new/0, count/3, find/2]).
-export_type([versions/0, place/0]).

-doc "A set of nodes to compare. Nodes of a family may be in several groups, or in none.".
-type place() :: {group | family, Name :: binary()}.

-opaque versions() :: #{
    %% The input of the counts: for each place the applications of the nodes that are up.
    from := #{place() => [#{binary() => binary()}]},
    counts := #{place() => non_neg_integer()}
}.

-doc "No counts.".
-spec new() -> versions().
new() -> #{from => #{}, counts => #{}}.

-doc "Counts, unless nothing has changed. `Standing` is that of `sderl_mon_hub:standing/0`.".
-spec count(sderl_mon_types:topology(), #{sderl_mon_types:id() => sderl_mon_types:standing()},
            versions()) -> versions().
count(#{nodes := Nodes, groups := Groups}, Standing, #{from := Before} = Versions) ->
    Apps = #{Node => Its || Node := #{apps := Its} <- Standing, is_map(Its), map_size(Its) > 0,
                            #{Node := #{status := up}} <- [Nodes]},
    OfGroups = #{{group, Group} => [Its || Member <- Members, #{Member := Its} <- [Apps]]
                 || Group := #{nodes := Members} <- Groups},
    OfFamilies = maps:groups_from_list(fun({Family, _}) -> {family, Family} end,
                                       fun({_, Its}) -> Its end, by_family(Apps)),
    case maps:merge(OfGroups, OfFamilies) of
        Before -> Versions;
        From ->
            #{from => From,
              counts => #{Place => different(All) || Place := [_ | _] = All <- From}}
    end.

%% Nodes whose names are only digits have no family.
by_family(Apps) ->
    [{Family, Its} || Node := Its <- maps:iterator(Apps, ordered),
                      Family <- [sderl_mon_types:family(Node)], Family =/= ~""].

%% An application that some nodes lack does not count: families may share a group.
different(All) ->
    Pairs = lists:usort(lists:append([maps:to_list(Apps) || Apps <- All])),
    maps:size(maps:filter(fun(_, Versions) -> length(Versions) > 1 end,
                          maps:groups_from_list(fun({App, _}) -> App end, Pairs))).

-doc "How many applications the nodes of a place have in different versions.".
-spec find(place(), versions()) -> {ok, non_neg_integer()} | unknown.
find(Place, #{counts := Counts}) ->
    case Counts of
        #{Place := Count} -> {ok, Count};
        #{} -> unknown
    end.
