%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_fill).
-moduledoc "The rows of a table at the start. Runs in the virtual machine that is measured.".

-export([rows/1]).

-doc "The rows: counts of 0, or values as those that are put.".
-spec rows(sderl_bench_table:settings()) -> [{pos_integer(), term()}].
rows(#{keys := Keys, filled := Step, value_words := Words} = Settings) ->
    Value = case maps:get(add, Settings, 0) of
        0 -> lists:duplicate(Words, 0);
        _ -> 0
    end,
    [{Key, Value} || Key <- lists:seq(1, Keys, Step)].
