%% SPDX-License-Identifier: Apache-2.0
-module(cthr).
-moduledoc """
What rebar3 makes of `ct:pal` in the suites that it compiles, for runs without it: `ct:pal` again.
""".

-export([pal/1, pal/2, pal/3, pal/4, pal/5]).

-doc false.
pal(A) -> ct:pal(A).

-doc false.
pal(A, B) -> ct:pal(A, B).

-doc false.
pal(A, B, C) -> ct:pal(A, B, C).

-doc false.
pal(A, B, C, D) -> ct:pal(A, B, C, D).

-doc false.
pal(A, B, C, D, E) -> ct:pal(A, B, C, D, E).
