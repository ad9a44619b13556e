%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_gold).
-moduledoc "Sizes of orbits as the published programs compute them.".

-export([sizes/1, check/3]).

-doc "The sizes by generators, for a space.".
-spec sizes(1000 | 10000) -> [{string(), pos_integer()}].
sizes(1000) ->
    [{"g1", 213}, {"g2", 11}, {"g3", 10}, {"g4", 2}, {"g5", 2}, {"g12", 853}, {"g13", 895},
     {"g23", 447}, {"g123", 968}, {"g124", 854}, {"g12345", 968}];
sizes(10000) ->
    [{"g1", 3125}, {"g2", 8}, {"g3", 11}, {"g4", 2}, {"g5", 2}, {"g12", 6886}, {"g13", 9122},
     {"g23", 2751}, {"g123", 9123}, {"g124", 6889}, {"g12345", 9123}].

-doc "Whether metrics are those of the golden orbit: its size, and every image received once.".
-spec check(Name :: string(), Space :: pos_integer(), map()) -> ok | {wrong, term()}.
check(Name, Space, #{size := Size, vertices_received := Received}) ->
    case {proplists:get_value(Name, sizes(Space)), Size * (length(Name) - 1) + 1} of
        {Size, Received} -> ok;
        Wanted -> {wrong, {Name, Space, {Size, Received}, Wanted}}
    end.
