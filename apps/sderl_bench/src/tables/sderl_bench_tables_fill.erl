%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_fill).
-moduledoc "What a table has at the start. It runs in the virtual machine that is measured.".

-export([rows/1]).

-doc "The rows: a count of 0, or a value as those that are put.".
-spec rows(sderl_bench_table:settings()) -> [{pos_integer(), term()}].
rows(#{keys := Keys, filled := Step, value_words := Words} = Settings) ->
    Value = case maps:get(add, Settings, 0) of
        0 -> lists:duplicate(Words, 0);
        _ -> 0
    end,
    [{Key, Value} || Key <- lists:seq(1, Keys, Step)].
