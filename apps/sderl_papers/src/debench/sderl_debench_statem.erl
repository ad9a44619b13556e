%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_statem).
-moduledoc """
The `gen_statem` on each node that other nodes call, in place of the original's `gen_fsm`.
""".

-behaviour(gen_statem).

-export([start/0, call/4]).
-export([init/1, callback_mode/0, serving/3]).

-doc "Starts it on this node, not linked to the caller.".
-spec start() -> ok | {error, term()}.
start() ->
    case gen_statem:start({local, ?MODULE}, ?MODULE, none, []) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

-doc """
Calls the process of a node, which computes for `ComputeUs` and returns the block; exits as
`gen_statem:call/3`.
""".
-spec call(node(), Block :: binary(), ComputeUs :: non_neg_integer(), timeout()) -> binary().
call(Node, Block, ComputeUs, Timeout) ->
    gen_statem:call({?MODULE, Node}, {echo, Block, ComputeUs}, Timeout).

-doc false.
-spec callback_mode() -> state_functions.
callback_mode() -> state_functions.

-doc false.
-spec init(none) -> {ok, serving, none}.
init(none) -> {ok, serving, none}.

-doc false.
-spec serving(gen_statem:event_type(), term(), none) -> gen_statem:event_handler_result(serving).
serving({call, From}, {echo, Block, ComputeUs}, none) ->
    {keep_state_and_data, [{reply, From, sderl_debench_echo:work(Block, ComputeUs)}]};
serving(_, _, none) ->
    keep_state_and_data.
