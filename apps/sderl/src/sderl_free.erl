%% SPDX-License-Identifier: Apache-2.0
-module(sderl_free).
-moduledoc false.
%% Islands of free normal nodes that become one.

-export([met/1, message/2]).

-spec met(node()) -> ok.
met(_Node) -> ok.

-spec message(node(), term()) -> ok.
message(_From, _Msg) -> ok.
