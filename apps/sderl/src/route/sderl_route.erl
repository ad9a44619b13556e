%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route).
-moduledoc """
Messages and calls to processes of groups that this node is no member of, over gateways and without
a new link.
""".

-export([groups/0, call_any/4]).

-doc "The groups that routes lead to from here, with their members as gateways tell them.".
-spec groups() -> [{Group :: term(), [node()]}].
groups() -> [].

-doc """
Calls the process registered locally as `Process` on some member of a group: that one at which the
route arrives.
""".
-spec call_any(Group :: term(), Process :: atom(), Request :: term(), timeout()) -> {ok, term()} | {error, atom()}.
call_any(_Group, _Process, _Request, _Timeout) -> {error, no_route}.
