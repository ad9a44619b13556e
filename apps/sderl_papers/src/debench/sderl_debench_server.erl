%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_server).
-moduledoc """
The `gen_server` on each node that other nodes call. One process answers all calls, one after the
other, as in the original.
""".

-behaviour(gen_server).

-export([start/0, call/4]).
-export([init/1, handle_call/3, handle_cast/2]).

-doc "Starts it on this node, not linked to the caller.".
-spec start() -> ok | {error, term()}.
start() ->
    case gen_server:start({local, ?MODULE}, ?MODULE, none, []) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

-doc """
Calls the server of a node, which computes for `ComputeUs` and returns the block; exits as
`gen_server:call/3`.
""".
-spec call(node(), Block :: binary(), ComputeUs :: non_neg_integer(), timeout()) -> binary().
call(Node, Block, ComputeUs, Timeout) ->
    gen_server:call({?MODULE, Node}, {echo, Block, ComputeUs}, Timeout).

-doc false.
-spec init(none) -> {ok, none}.
init(none) -> {ok, none}.

-doc false.
-spec handle_call({echo, binary(), non_neg_integer()}, gen_server:from(), none) ->
    {reply, binary(), none}.
handle_call({echo, Block, ComputeUs}, _From, none) ->
    {reply, sderl_debench_echo:work(Block, ComputeUs), none}.

-doc false.
-spec handle_cast(term(), none) -> {noreply, none}.
handle_cast(_, none) -> {noreply, none}.
