%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_quorum_ring).
-moduledoc """
`quorum_ring`: reads of a key-value store whose nodes are processes in a ring. Each key has four
replicas, a quarter of the ring apart; a read goes to all of them, and ends with the newest of three
answers. A request is passed on by the fingers of a node, which are 1, 2, 4 and so on nodes away, so
it takes half the binary logarithm of the number of nodes on average. Two clients for each core, on
a ring of 64, 128 or 256 nodes, with 128, 512 or 2,048 reads each. On several nodes of Erlang the
processes of the ring, and the clients, are spread over these in turn.

Source: the description of `scalaris_bench` in BenchErl (Aronis et al., Erlang Workshop 2012), which
reads from a ring of Scalaris; this one has no joins, failures or writes.
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, prepare/1, run/2, finish/1]).

-define(REPLICAS, 4).
-define(QUORUM, 3).

-doc false.
-spec summary() -> string().
summary() -> "quorum reads on a ring of processes".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    {Nodes, Reads} = maps:get(Size, #{short => {64, 128}, intermediate => {128, 512},
                                      long => {256, 2048}}),
    #{nodes => Nodes, clients => 2 * Cores, reads => Reads}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{clients := Clients, reads := Reads}) ->
    {Clients * Reads, "read"}.

-doc false.
-spec spread() -> string().
spread() -> "the ring and its clients".

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(#{nodes := Nodes} = Settings) ->
    Ring = list_to_tuple([spawn_link(Node, fun() -> join(I, Nodes) end)
                          || {I, Node} <- lists:enumerate(
                              0, sderl_bench_vm_nodes:in_turn(Nodes, Settings))]),
    _ = [Pid ! {ring, Ring} || Pid <- tuple_to_list(Ring)],
    {Settings, Ring, none}.

-doc false.
-spec run(run, term()) -> term().
run(run, {#{clients := Clients, reads := Reads, nodes := Nodes} = Settings, Ring, none}) ->
    Main = self(),
    Pids = [spawn_link(Node, fun() ->
        Random = rand:seed_s(exsss, erlang:phash2({?MODULE, I})),
        Main ! {self(), reads(Reads, Ring, Nodes, Random, 0)}
    end) || {I, Node} <- lists:enumerate(sderl_bench_vm_nodes:in_turn(Clients, Settings))],
    {Settings, Ring, lists:sum([receive {Pid, Sum} -> Sum end || Pid <- Pids])}.

reads(0, _, _, _, Sum) -> Sum;
reads(Left, Ring, Nodes, Random0, Sum) ->
    {Key, Random1} = rand:uniform_s(1 bsl 16, Random0),
    {Entry, Random} = rand:uniform_s(Nodes, Random1),
    %% The fourth answer is dropped: the alias is inactive by then.
    Alias = alias([explicit_unalias]),
    _ = [element(Entry, Ring) ! {read, Home, Key, Alias} || Home <- homes(Key, Nodes)],
    {_, Value} = lists:max([receive {Alias, Answer} -> Answer end
                            || _ <- lists:seq(1, ?QUORUM)]),
    true = unalias(Alias),
    forget(Alias),
    reads(Left - 1, Ring, Nodes, Random, Sum + Value).

%% The fourth answer may have come before the alias was removed.
forget(Alias) ->
    receive
        {Alias, _} -> forget(Alias)
    after 0 -> ok
    end.

homes(Key, Nodes) ->
    First = Key rem Nodes,
    [(First + I * Nodes div ?REPLICAS) rem Nodes || I <- lists:seq(0, ?REPLICAS - 1)].

join(I, Nodes) ->
    receive
        {ring, Ring} ->
            Fingers = list_to_tuple([element(1 + (I + (1 bsl J)) rem Nodes, Ring)
                                     || J <- lists:seq(0, log2(Nodes - 1))]),
            serve(I, Nodes, Fingers)
    end.

serve(I, Nodes, Fingers) ->
    receive
        {read, I, Key, Alias} ->
            %% All replicas have the same version: there are no writes.
            Alias ! {Alias, {Key bsr 2, Key}},
            serve(I, Nodes, Fingers);
        {read, Home, _, _} = Read ->
            %% The finger that comes nearest to the home without passing it.
            Distance = (Home - I + Nodes) rem Nodes,
            element(1 + log2(Distance), Fingers) ! Read,
            serve(I, Nodes, Fingers);
        stop ->
            ok
    end.

log2(N) when N < 2 -> 0;
log2(N) -> 1 + log2(N bsr 1).

-doc false.
-spec finish(term()) -> integer().
finish({_, Ring, Sum}) ->
    Monitors = [monitor(process, Pid) || Pid <- tuple_to_list(Ring)],
    _ = [Pid ! stop || Pid <- tuple_to_list(Ring)],
    _ = [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors],
    Sum.
