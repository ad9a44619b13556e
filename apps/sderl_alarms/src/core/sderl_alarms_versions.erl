%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_versions).
-moduledoc """
How many applications the members of each group have in different versions. Pure.

Nodes may be many, and their applications too, while these change seldom: they are counted again
only when they, or the members that are up, are others than before.
""".

-export([new/0, count/3, of_group/2]).
-export_type([versions/0]).

-opaque versions() :: #{
    %% What was counted: of each group the applications of the members that are up.
    from := #{Group :: binary() => [#{binary() => binary()}]},
    counts := #{Group :: binary() => non_neg_integer()}
}.

-doc "Nothing is known.".
-spec new() -> versions().
new() -> #{from => #{}, counts => #{}}.

-doc "Counts, unless all is as it was. `Standing` is that of `sderl_mon_hub:standing/0`.".
-spec count(sderl_mon_types:topology(), #{sderl_mon_types:id() => map()}, versions()) ->
    versions().
count(#{nodes := Nodes, groups := Groups}, Standing, #{from := Before} = Versions) ->
    Apps = #{Node => Its || Node := #{apps := Its} <- Standing, is_map(Its), map_size(Its) > 0,
                            #{Node := #{status := up}} <- [Nodes]},
    case #{Group => [Its || Member <- Members, #{Member := Its} <- [Apps]]
           || Group := #{nodes := Members} <- Groups} of
        Before -> Versions;
        From ->
            #{from => From,
              counts => #{Group => different(All) || Group := [_ | _] = All <- From}}
    end.

%% An application that some members lack is no difference: families may share a group.
different(All) ->
    Pairs = lists:usort(lists:append([maps:to_list(Apps) || Apps <- All])),
    maps:size(maps:filter(fun(_, Versions) -> length(Versions) > 1 end,
                          maps:groups_from_list(fun({App, _}) -> App end, Pairs))).

-doc "Of how many applications members of a group have different versions.".
-spec of_group(Group :: binary(), versions()) -> {ok, non_neg_integer()} | unknown.
of_group(Group, #{counts := Counts}) ->
    case Counts of
        #{Group := Count} -> {ok, Count};
        #{} -> unknown
    end.
