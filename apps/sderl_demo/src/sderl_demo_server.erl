%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_server).
-moduledoc """
A named server of the demo: a counter that answers with its own name.

It is an ordinary `gen_server` that registers itself through `via`. The answer carries the
server's name, so that a caller notices when a name leads to the wrong process, and the
count, which starts again at 1 after a restart. Where the request asks for it, the answer
comes some milliseconds later, as from a server that waits for a disk or another server;
many such requests can be under way at once.
""".

-behaviour(gen_server).

-export([start_link/2, call/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type state() :: {sderl_demo_layout:server(), Count :: non_neg_integer()}.

-define(TIMEOUT_MS, 5000).

-doc "Starts the server and registers it in the given registry.".
-spec start_link(module(), sderl_demo_layout:server()) -> gen_server:start_ret().
start_link(Registry, Server) ->
    gen_server:start_link(Registry:via(Server), ?MODULE, Server, []).

-doc """
Calls the server at a pid that was looked up under the name `Server`; it answers after
`WorkMs`.

`killed` means that it was killed while the call was under way, `noproc` that it was dead
when the call reached its node, so that the caller may look up the name again and retry.
Every other failure comes back as the reason with which `gen_server:call/3` exited.
""".
-spec call(pid(), sderl_demo_layout:server(), WorkMs :: non_neg_integer()) ->
    {ok, Count :: pos_integer()} | {error, killed | noproc | {wrong_server, term()} | term()}.
call(Pid, Server, WorkMs) ->
    try gen_server:call(Pid, {hit, WorkMs}, ?TIMEOUT_MS) of
        {Server, Count} -> {ok, Count};
        Other -> {error, {wrong_server, Other}}
    catch
        exit:{Reason, {gen_server, call, _}} -> {error, Reason}
    end.

-doc false.
-spec init(sderl_demo_layout:server()) -> {ok, state()}.
init(Server) -> {ok, {Server, 0}}.

-doc false.
-spec handle_call(hit | {hit, non_neg_integer()}, gen_server:from(), state()) ->
    {reply, state(), state()} | {noreply, state()}.
handle_call({hit, WorkMs}, From, State) when WorkMs > 0 ->
    _ = erlang:send_after(WorkMs, self(), {answer, From}),
    {noreply, State};
handle_call(_Hit, _From, {Server, Count}) ->
    {reply, {Server, Count + 1}, {Server, Count + 1}}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Message, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({answer, From}, {Server, Count}) ->
    gen_server:reply(From, {Server, Count + 1}),
    {noreply, {Server, Count + 1}};
handle_info(_Message, State) ->
    {noreply, State}.
