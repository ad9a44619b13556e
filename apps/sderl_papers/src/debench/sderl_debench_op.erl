%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_op).
-moduledoc """
Runs one unit of the mix on a node, and gives a sample of each of its operations.

Every operation ends at the latest when its time is over: those on other nodes by their own
timeouts. A global operation has no timeout, so a separate process does it. When the time is over
that process is killed, and its name is removed as those of all dead processes are.
""".

-export([run/5]).
-export_type([sample/0, outcome/0, context/0]).

-import(sderl_clock, [now_ns/0]).

-doc "The reason is `timeout` for all that took too long, else what was raised or answered.".
-type outcome() :: ok | {error, term()}.

-doc """
When an operation was due, began and ended, in nanoseconds of `erlang:monotonic_time/1`, and its
outcome. The second and third of a unit are due when the one before has ended.
""".
-type sample() ::
    {sderl_debench_mix:kind(), Due :: integer(), Begin :: integer(), End :: integer(), outcome()}.

-doc """
The settings that all operations of a node share: the registry and the group for global names, the
block that goes to other nodes and comes back, how long those compute, how long an operation may
take, and the moment at which all end.
""".
-type context() :: #{
    impl := module(),
    group := sderl_bench_impl:group(),
    block := binary(),
    compute_us := non_neg_integer(),
    timeout_ms := pos_integer(),
    last_ns := integer(),
    atom() => term()
}.

-doc """
Runs the unit; it was due at `Due`. `Target` is the node for a point-to-point operation, `Name` the
one to register: any fresh term for `global`, an atom that nobody else uses meanwhile for `local`.
The calling process is registered locally.
""".
-spec run(sderl_debench_mix:unit(), Target :: node() | none, Name :: term(), Due :: integer(),
          context()) -> [sample(), ...].
run(global, _, Name, Due, Context) ->
    global(Name, Due, Context);
run(local, _, Name, Due, _) ->
    local(Name, Due);
run(Kind, Target, _, Due, Context) ->
    [timed(Kind, Due, fun() -> p2p(Kind, Target, Context) end)].

timed(Kind, Due, Fun) ->
    Begin = now_ns(),
    Outcome = outcome(sderl_fleet_task:attempt(Fun)),
    {Kind, Due, Begin, now_ns(), Outcome}.

outcome(ok) -> ok;
outcome({error, {exit, {timeout, _}}}) -> {error, timeout};
outcome({error, {error, {erpc, timeout}}}) -> {error, timeout};
outcome({error, {badrpc, timeout}}) -> {error, timeout};
outcome({error, Reason}) -> {error, Reason}.

%% Point to point

p2p(Kind, Node, #{block := Block, compute_us := ComputeUs} = Context) ->
    echoed(p2p(Kind, Node, Block, ComputeUs, left_ms(now_ns(), Context)), Block).

p2p(spawn, Node, Block, ComputeUs, Ms) ->
    %% An answer after the timeout is dropped.
    Alias = alias([reply]),
    _ = spawn(Node, sderl_debench_echo, reply, [Alias, Block, ComputeUs]),
    receive
        {Alias, Echo} -> Echo
    after Ms ->
        _ = unalias(Alias),
        receive
            {Alias, Echo} -> Echo
        after 0 -> {error, timeout}
        end
    end;
p2p(rpc, Node, Block, ComputeUs, Ms) ->
    case rpc:call(Node, sderl_debench_echo, work, [Block, ComputeUs], Ms) of
        {badrpc, Reason} -> {error, {badrpc, Reason}};
        Echo -> Echo
    end;
p2p(erpc, Node, Block, ComputeUs, Ms) ->
    erpc:call(Node, sderl_debench_echo, work, [Block, ComputeUs], Ms);
p2p(gen_server, Node, Block, ComputeUs, Ms) ->
    sderl_debench_server:call(Node, Block, ComputeUs, Ms);
p2p(gen_statem, Node, Block, ComputeUs, Ms) ->
    sderl_debench_statem:call(Node, Block, ComputeUs, Ms).

echoed(Block, Block) -> ok;
echoed({error, Reason}, _) -> {error, Reason};
echoed(_, _) -> {error, wrong_block}.

%% Names on this node

local(Name, Due) ->
    Steps = [
        {local_register, fun() ->
            true = register(Name, self()),
            ok
        end},
        {local_whereis, fun() -> found(whereis(Name)) end},
        {local_unregister, fun() ->
            true = unregister(Name),
            ok
        end}
    ],
    steps(Steps, Due, fun(_) -> ok end).

found(Pid) when Pid =:= self() -> ok;
found(undefined) -> {error, not_found};
found(Other) -> {error, {found, Other}}.

%% Without the registration there is nothing to look up or unregister.
steps([], _, _) ->
    [];
steps([{Kind, Fun} | Steps], Due, Tell) ->
    Sample = timed(Kind, Due, Fun),
    ok = Tell(Sample),
    case Sample of
        {local_register, _, _, _, {error, _}} -> [Sample];
        {global_register, _, _, _, {error, _}} -> [Sample];
        {_, _, _, End, _} -> [Sample | steps(Steps, End, Tell)]
    end.

%% Names in the group

global(Name, Due, #{impl := Impl, group := Group} = Context) ->
    Waiting = self(),
    Steps = [
        {global_register, fun() -> Impl:register(Group, Name) end},
        {global_whereis, fun() -> found(Impl:whereis(Group, Name)) end},
        {global_unregister, fun() -> Impl:unregister(Group, Name) end}
    ],
    %% Linked, so that neither process outlives the other's crash.
    Holder = spawn_link(fun() ->
        _ = steps(Steps, Due, fun(Sample) ->
            Waiting ! {self(), Sample},
            ok
        end)
    end),
    await([Kind || {Kind, _} <- Steps], Holder, Due, Context).

await([], _Holder, _Due, _Context) ->
    [];
await([Kind | Kinds], Holder, Due, Context) ->
    Begin = now_ns(),
    receive
        {Holder, {global_register, _, _, _, {error, _}} = Sample} ->
            [Sample];
        {Holder, {_, _, _, End, _} = Sample} ->
            [Sample | await(Kinds, Holder, End, Context)]
    after left_ms(Begin, Context) ->
        ok = kill(Holder),
        [{Kind, Due, Begin, now_ns(), {error, timeout}}]
    end.

%% Removes its messages from the mailbox, too.
kill(Holder) ->
    Ref = monitor(process, Holder),
    true = unlink(Holder),
    true = exit(Holder, kill),
    receive
        {'DOWN', Ref, process, Holder, _} -> forget(Holder)
    end.

forget(Holder) ->
    receive
        {Holder, _} -> forget(Holder)
    after 0 -> ok
    end.

left_ms(Begin, #{timeout_ms := Timeout, last_ns := Last}) ->
    max(0, min(Timeout, (Last - Begin) div 1_000_000)).
