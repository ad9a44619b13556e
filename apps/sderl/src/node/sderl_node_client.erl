%% SPDX-License-Identifier: Apache-2.0
-module(sderl_node_client).
-moduledoc false.
%% Calls of other modules to the process of this node (`sderl_node`): the caller's side.

-export([create/2, create/3, settle/0, met/2]).

-define(SERVER, sderl_node).
-define(TIMEOUT_MS, 15_000).

-doc "Creates an available group with this node alone in it.".
-spec create(term(), sderl_options:answer()) -> ok | {error, term()}.
create(Group, Answer) -> call({create, Group, Answer}).

-doc """
Creates a group that decides by majority, of this node and others that were invited under the uid.
It decides when a majority of them has joined.
""".
-spec create(term(), Uid :: binary(), [node()]) -> ok | {error, term()}.
create(Group, Uid, Members) -> call({create, Group, Uid, Members}).

-doc "Returns when the process has handled all earlier messages.".
-spec settle() -> ok.
settle() ->
    _ = call(settle),
    ok.

call(Request) ->
    try gen_server:call(?SERVER, Request, ?TIMEOUT_MS)
    catch exit:_ -> {error, not_running}
    end.

-doc "A free node has looked up or sent at another free node: their islands merge (rule 22).".
-spec met(node(), s_group | free_normal | free_hidden) -> ok.
met(Node, free_normal) when Node =/= node() -> gen_server:cast(?SERVER, {met, Node});
met(_, _) -> ok.
