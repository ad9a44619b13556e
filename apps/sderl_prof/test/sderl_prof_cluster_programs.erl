%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cluster_programs).
-moduledoc "Programs over several nodes whose messages are known, and what records them.".

-behaviour(gen_server).

-export([record/3, prepare/2, fetch_part/3, export/2, path/2, echo/0, ask/2, call/2, serve/0]).
-export([collect/3, send_over/3]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(WAIT_MS, 120_000).

-doc "The index of a recording of these nodes while a program runs, and what the program gave.".
-spec record([node()], map(), tuple() | nothing) ->
    {term(), sderl_prof_cluster_index:index()} | {error, term()}.
record(Nodes, Options, Program) ->
    maybe
        {ok, Ready} ?= sderl_prof_cluster:prepare(Nodes, Options#{wait_ms => ?WAIT_MS}),
        {ok, Begun} ?= sderl_prof_cluster:start(Ready),
        Result = run(Program),
        ok = sderl_prof_cluster:stop(self(), Begun),
        {ok, Index} ?= sderl_prof_cluster:await(Begun),
        {Result, Index}
    end.

-doc "Whether all can be recorded, without recording them.".
-spec prepare([node()], map()) -> {ok, [{binary(), binary()}]} | {error, unicode:chardata()}.
prepare(Nodes, Options) ->
    case sderl_prof_cluster:prepare(Nodes, Options#{wait_ms => ?WAIT_MS}) of
        {ok, Ready} ->
            Failures = sderl_prof_cluster:failures(Ready),
            ok = sderl_prof_cluster:abandon(Ready),
            {ok, Failures};
        {error, Why} ->
            {error, unicode:characters_to_list(sderl_prof_cluster:format_error(Why))}
    end.

%% N questions from one node to the other, with an answer each.
run({ping_pong, From, To, N}) ->
    Echo = spawn(To, ?MODULE, echo, []),
    N = erpc:call(From, ?MODULE, ask, [Echo, N], ?WAIT_MS),
    Echo ! stop,
    N;
%% The same of a server, by its name; its answers go to aliases.
run({calls, From, To, N}) ->
    ok = erpc:call(To, ?MODULE, serve, [], ?WAIT_MS),
    N = erpc:call(From, ?MODULE, call, [To, N], ?WAIT_MS),
    ok = erpc:call(To, gen_server, stop, [?MODULE], ?WAIT_MS),
    N;
%% Those of one that does not take part in the end.
run({kill, Node, From, To, N}) ->
    Result = run({ping_pong, From, To, N}),
    _ = erpc:cast(Node, erlang, halt, [0, [{flush, false}]]),
    ok = net_kernel:monitor_nodes(true),
    down(Node, lists:member(Node, nodes(connected))),
    ok = net_kernel:monitor_nodes(false),
    Result;
run({new_group, Node, Program}) ->
    {ok, made, _} = erpc:call(Node, s_group, new_s_group, [made, [Node]], ?WAIT_MS),
    run(Program);
%% N messages to a name of a group that this node is not in, and one to a name that nobody has.
run({route, From, Group, To, N, Program}) ->
    Collector = spawn(To, ?MODULE, collect, [self(), Group, N]),
    receive {Collector, registered} -> ok after ?WAIT_MS -> error(not_registered) end,
    ok = erpc:call(From, ?MODULE, send_over, [Group, N, ?WAIT_MS], ?WAIT_MS),
    receive {Collector, collected} -> ok after ?WAIT_MS -> error(not_collected) end,
    run(Program);
%% The result of a fetch while all nodes record.
run({fetch, Dir, Options}) -> sderl_prof_fetch:fetch(Dir, Options);
run(nothing) -> ok.

down(_, false) -> ok;
down(Node, true) ->
    receive {nodedown, Node} -> ok after ?WAIT_MS -> error({still_up, Node}) end.

-doc "Takes a name of the group, and as many messages; tells both.".
-spec collect(pid(), atom(), non_neg_integer()) -> term().
collect(Teller, Group, N) ->
    yes = s_group:register_name(Group, collector, self()),
    Teller ! {self(), registered},
    ok = lists:foreach(fun(I) -> receive {routed, I} -> ok end end, lists:seq(1, N)),
    Teller ! {self(), collected}.

-doc "The messages to the collector of a group, in order, when there is a way to it.".
-spec send_over(atom(), pos_integer(), non_neg_integer()) -> ok.
send_over(Group, N, Ms) when Ms > 0 ->
    case sderl_route:send({Group, nobody}, nothing) of
        ok ->
            lists:foreach(fun(I) -> ok = sderl_route:send({Group, collector}, {routed, I}) end,
                          lists:seq(1, N));
        {error, no_route} ->
            receive after 20 -> send_over(Group, N, Ms - 20) end
    end.

-doc "Answers questions.".
-spec echo() -> ok.
echo() ->
    receive
        {ask, From, N} ->
            From ! {answer, N},
            echo();
        stop -> ok
    end.

-doc "Asks so many times.".
-spec ask(pid(), non_neg_integer()) -> non_neg_integer().
ask(Echo, Times) ->
    lists:foreach(fun(N) ->
        Echo ! {ask, self(), N},
        receive {answer, N} -> ok end
    end, lists:seq(1, Times)),
    Times.

-spec serve() -> ok.
serve() ->
    {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
    ok.

-doc "Calls the server so many times.".
-spec call(node(), non_neg_integer()) -> non_neg_integer().
call(Node, Times) ->
    lists:foreach(fun(N) -> N = gen_server:call({?MODULE, Node}, N, ?WAIT_MS) end,
                  lists:seq(1, Times)),
    Times.

init([]) -> {ok, none}.

handle_call(N, _, State) -> {reply, N, State}.

handle_cast(_, State) -> {noreply, State}.

-doc "Fetches until so many bytes of all nodes are there, and no further.".
-spec fetch_part(file:filename(), pos_integer(), map()) -> ok.
fetch_part(Dir, Bytes, Options) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Fetcher = self(),
        sderl_prof_fetch:fetch(Dir, Options#{progress => fun(_, Here, _) ->
            Self ! {fetches, self()},
            Here < Bytes orelse exit(Fetcher, kill)
        end})
    end),
    receive {'DOWN', Ref, process, Pid, killed} -> all_ended() end.

%% Those who fetch end with the one who asked for it.
all_ended() ->
    receive
        {fetches, Pid} ->
            Ref = monitor(process, Pid),
            receive {'DOWN', Ref, process, Pid, _} -> all_ended() end
    after 0 -> ok
    end.

-doc "Writes all nodes on one time line.".
-spec export(file:filename(), file:filename()) -> ok.
export(Dir, Out) ->
    {ok, _, Books, []} = sderl_prof_cluster_book:books(Dir, #{}),
    {ok, Joined} = sderl_prof_joined:open(Books, fun(_, _) -> ok end),
    ok = sderl_prof_export:write_joined(Joined, Out).

-doc "The critical path across nodes, to the last run of a process.".
-spec path(file:filename(), binary()) -> map().
path(Dir, Label) ->
    {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
    {ok, Book} = sderl_prof_book:open(Out),
    {ok, Process} = sderl_prof_insight:find_process(Label, Book),
    Path = sderl_prof_insight:path(Book, #{process => Process, segments => 10_000}),
    ok = sderl_prof_book:close(Book),
    Path.
