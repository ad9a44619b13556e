%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_secrets).
-moduledoc """
Reports of processes that hold tokens, which must not be in a report: for `format_status/1`.
""".

-export([hide/1]).

-doc "Without the state of the process and its messages.".
-spec hide(gen_server:format_status()) -> gen_server:format_status().
hide(Status) ->
    maps:map(
        fun
            (Key, _) when Key =:= state; Key =:= message -> '...';
            (log, _) -> [];
            (_, Value) -> Value
        end,
        Status
    ).
