%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_top).
-moduledoc "The greatest few of many, in memory for those few. Pure.".

-export([new/1, add/3, result/1]).
-export_type([top/0]).

-record(top, {most :: pos_integer(), size = 0 :: non_neg_integer(), set :: gb_sets:set()}).
-opaque top() :: #top{}.

-doc "The greatest so many.".
-spec new(pos_integer()) -> top().
new(Most) -> #top{most = Most, set = gb_sets:new()}.

-doc "One more, which counts when its value is above 0.".
-spec add(Value :: number(), term(), top()) -> top().
add(Value, _, Top) when Value =< 0 -> Top;
add(Value, Item, #top{size = Size, most = Most, set = Set} = Top) when Size < Most ->
    Top#top{size = Size + 1, set = gb_sets:add({Value, Item}, Set)};
add(Value, Item, #top{set = Set} = Top) ->
    case gb_sets:smallest(Set) of
        {Least, _} when Least >= Value -> Top;
        _ -> Top#top{set = gb_sets:add({Value, Item}, gb_sets:delete(gb_sets:smallest(Set), Set))}
    end.

-doc "The greatest first.".
-spec result(top()) -> [{number(), term()}].
result(#top{set = Set}) -> lists:reverse(gb_sets:to_list(Set)).
