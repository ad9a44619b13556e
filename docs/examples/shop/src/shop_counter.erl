%% SPDX-License-Identifier: Apache-2.0
-module(shop_counter).
-behaviour(gen_server).

-export([next/1]).
-export([init/1, handle_call/3, handle_cast/2]).

%% From any node of the group.
next(Node) -> gen_server:call({via, s_group, {shop, {counter, Node}}}, next).

init([]) -> {ok, 1}.

handle_call(next, _From, N) -> {reply, N, N + 1}.

handle_cast(_, N) -> {noreply, N}.
