%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_text).
-moduledoc "What the reports of `bin/sderl prof` have in common. Pure.".

-export([section/2, hundred/1, greatest/1]).

-doc "A part of a report under its title; none where it is empty.".
-spec section(Title :: sderl_command:text(), sderl_command:text()) -> sderl_command:text().
section(_, []) -> [];
section(Title, Text) -> ["\n", Title, "\n", Text].

-doc "A share as percent, without the sign.".
-spec hundred(number()) -> unicode:chardata().
hundred(Share) -> sderl_table:number(100 * Share).

-doc "The states with their shares, the greatest share first.".
-spec greatest(#{State => number()}) -> [{State, number()}].
greatest(States) -> lists:sort(fun({_, A}, {_, B}) -> A >= B end, maps:to_list(States)).
