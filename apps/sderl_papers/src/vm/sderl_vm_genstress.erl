%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_genstress).
-moduledoc """
`genstress`: clients with a mailbox full of other messages call one server that echoes, in one stage
with messages of their own, in one with `m:gen_server`. 16, 32 or 64 clients for each core, with 8
messages in the mailbox and 4 calls for each core. On several nodes the server is on the first one.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).
-behaviour(gen_server).

-export([summary/0, settings/2, operations/1, spread/0, stages/1, prepare/1, run/2, finish/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-doc false.
-spec summary() -> string().
summary() -> "calls to one server from clients with full mailboxes".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{clients => Cores * maps:get(Size, #{short => 16, intermediate => 32, long => 64}),
      queued => 8 * Cores, calls => 4 * Cores}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{clients := Clients, calls := Calls}) ->
    {2 * Clients * Calls, "call"}.

-doc false.
-spec spread() -> string().
spread() -> "its clients".

-doc false.
-spec stages(sderl_bench_vm_program:settings()) -> [atom(), ...].
stages(_) -> [proc_call, gen_server].

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) ->
    {sderl_bench_vm_program:settings(), [integer()]}.
prepare(Settings) -> {Settings, []}.

-doc false.
-spec run(atom(), {sderl_bench_vm_program:settings(), [integer()]}) ->
    {sderl_bench_vm_program:settings(), [integer()]}.
run(proc_call, {Settings, Counts}) ->
    Server = spawn_link(fun echo/0),
    Answered = clients(Settings, fun(Request) -> ask(Server, Request) end),
    Server ! stop,
    {Settings, [Answered | Counts]};
run(gen_server, {Settings, Counts}) ->
    {ok, Server} = gen_server:start_link(?MODULE, [], []),
    Answered = clients(Settings, fun(Request) -> gen_server:call(Server, Request, infinity) end),
    ok = gen_server:stop(Server),
    {Settings, [Answered | Counts]}.

-doc false.
-spec finish({sderl_bench_vm_program:settings(), [integer()]}) -> [integer()].
finish({_, Counts}) -> Counts.

clients(#{clients := Clients, queued := Queued, calls := Calls} = Settings, Ask) ->
    Main = self(),
    Pids = [spawn_link(Node, fun() ->
        _ = [self() ! {queued, I} || I <- lists:seq(1, Queued)],
        Main ! {self(), lists:sum([Ask(I) || I <- lists:seq(1, Calls)])}
    end) || Node <- sderl_bench_vm_nodes:in_turn(Clients, Settings)],
    lists:sum([receive {Pid, Sum} -> Sum end || Pid <- Pids]).

ask(Server, Request) ->
    Ref = make_ref(),
    Server ! {ask, self(), Ref, Request},
    receive
        {Ref, Answer} -> Answer
    end.

echo() ->
    receive
        {ask, From, Ref, Request} ->
            From ! {Ref, Request},
            echo();
        stop ->
            ok
    end.

-doc false.
-spec init([]) -> {ok, []}.
init([]) -> {ok, []}.

-doc false.
-spec handle_call(term(), gen_server:from(), []) -> {reply, term(), []}.
handle_call(Request, _From, []) -> {reply, Request, []}.

-doc false.
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_, []) -> {noreply, []}.
