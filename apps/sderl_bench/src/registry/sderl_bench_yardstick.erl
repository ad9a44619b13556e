%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_yardstick).
-moduledoc """
The yardstick: the least that a registry with one order of updates must do, done as fast as
we know how. It shows what is possible on a machine, and other registries are compared with it.

It has one promise, while nothing fails: an operation is answered when the tables of all
members have it, and all apply the same operations in the same order. There are no
monitors (a name outlives its process), no re-sending, no change of members; a node that
dies stops everything.

## How it works

One process on each node, a table beside it that anybody reads, and one of the processes is
the coordinator. It has at most one *round* out:

1. A member sends the coordinator the requests of its clients as one list.
2. The coordinator sends all lists that it has to every member: `{round, N, Committed, Lists}`.
3. Each member applies the round's operations in order and acknowledges. It thereby computes
   the answers of its own clients, and keeps them: no answer travels.
4. When all have acknowledged, the round is *committed*. The number of the last committed
   round rides on the next round if requests are waiting, and else goes alone, only to
   members whose clients wait for it. Then a member gives out the answers.

An acknowledgement carries the member's next requests. So under load a round costs two
messages a member, whatever the number of its operations.

## What helps and what does not

Processor time of all nodes together per pair of register and unregister, 10 nodes with 20
clients each and one scheduler a node, 2 cores; the least of several runs in alternation, all
but the first with the default `min_heap_size`:

| variant | us a pair |
|---|---:|
| this module | 5.6 |
| as it is, but for the heap | 6.2 |
| with priority `low` | 6.1 |
| the member yields always, not only when it has given out answers | 6.7 |
| the round encoded once with `term_to_binary/1` | 7.1 |
| `{message_queue_data, off_heap}` | 7.3 |
| separate messages for requests, rounds, acknowledgements and answers | 7.5 |
| no yield between the answers and the acknowledgement | 7.7 |
| priority `high` | 10 |

The yield lets the clients run that were just answered, and their next requests go with the
acknowledgement. High priority does the opposite: the process pre-empts its clients and sends
rounds of one operation. Encoding once loses the atom cache of the connection, and decoding
then costs more than the eight encodings saved. `async_dist` costs nothing.

With 1 client a node the messages decide: about 35 us a pair, more or less the same for all
variants. With 100 clients it is 4.5 us, or 0.25 us for an operation on a member: decoding and one
table operation. All further work for each operation on each member adds to this cost.
""".

-export([start/1, register/2, unregister/1, whereis/1, names/0]).

-define(TABLE, ?MODULE).

%% An entry of a message. A registration is [Pid | Name], a removal {Name}: short to encode.
-type op() :: nonempty_improper_list(pid(), term()) | {term()}.
-type batch() :: {node(), [op()]}.
-type answer() :: yes | no | ok.

-record(member, {
    coordinator :: {module(), node()},
    %% The clients of each list that was sent and is not answered, oldest first.
    waiting = [] :: [[pid()]],
    %% The answers to the lists of this node in rounds that were applied, oldest first.
    applied = [] :: [{pos_integer(), [[answer()]]}]
}).

-record(coordinator, {
    members :: [{module(), node()}],
    round = 0 :: non_neg_integer(),
    %% Members whose clients wait to hear that this round is committed.
    owed = [] :: [{module(), node()}],
    %% Lists for the next round, newest first.
    pending = [] :: [batch()],
    %% As in #member.
    waiting = [] :: [[pid()]]
}).

-doc "Starts this node's process. The first of `Nodes` coordinates; all must be connected.".
-spec start(Nodes :: [node()]) -> ok.
start([Coordinator | _] = Nodes) ->
    Caller = self(),
    Alias = alias([reply]),
    _ = spawn_opt(
        fun() ->
            true = erlang:register(?MODULE, self()),
            ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
            Caller ! {Alias, ready},
            case Coordinator =:= node() of
                true -> idle(#coordinator{members = [{?MODULE, N} || N <- Nodes, N =/= node()]});
                false -> member(#member{coordinator = {?MODULE, Coordinator}})
            end
        end,
        [{async_dist, true}, {min_heap_size, 20_000}]
    ),
    receive
        {Alias, ready} -> ok
    end.

%% Clients

-doc "Registers a process under a name; `no` when the name is taken.".
-spec register(Name :: term(), pid()) -> yes | no.
register(Name, Pid) -> request([Pid | Name]).

-doc "Removes a name, present or absent.".
-spec unregister(Name :: term()) -> ok.
unregister(Name) -> request({Name}).

%% No reference and no monitor: a client has one request at a time, and nothing fails here.
request(Op) ->
    ?MODULE ! {request, self(), Op},
    receive
        {?MODULE, Answer} -> Answer
    end.

-doc "The process with the name, as this node knows it.".
-spec whereis(Name :: term()) -> pid() | undefined.
whereis(Name) ->
    case ets:lookup(?TABLE, Name) of
        [{_, Pid}] -> Pid;
        [] -> undefined
    end.

-doc "All names that this node knows.".
-spec names() -> [{Name :: term(), pid()}].
names() -> ets:tab2list(?TABLE).

%% A member

member(#member{coordinator = Coordinator, waiting = Waiting} = State) ->
    receive
        {request, Client, Op} ->
            {Clients, Ops} = requests([Client], [Op]),
            send(Coordinator, {list, {node(), Ops}}),
            member(State#member{waiting = Waiting ++ [Clients]});
        {round, N, Committed, Lists} ->
            State1 = answer(Committed, State),
            State2 = apply_round(N, Lists, State1),
            %% The clients just answered make their next requests now.
            _ = State1 =:= State orelse erlang:yield(),
            member(acknowledge(N, State2));
        {committed, Committed} ->
            member(answer(Committed, State))
    end.

acknowledge(N, #member{coordinator = Coordinator, waiting = Waiting} = State) ->
    case requests([], []) of
        {[], []} ->
            send(Coordinator, {ack, N}),
            State;
        {Clients, Ops} ->
            send(Coordinator, {ack, N, {node(), Ops}}),
            State#member{waiting = Waiting ++ [Clients]}
    end.

answer(Committed, #member{applied = [{N, Answers} | Rest], waiting = Waiting} = State)
  when N =< Committed ->
    answer(Committed, State#member{applied = Rest, waiting = answer_lists(Answers, Waiting)});
answer(_Committed, State) ->
    State.

apply_round(N, Lists, #member{applied = Applied} = State) ->
    case apply_lists(Lists) of
        [] -> State;
        Answers -> State#member{applied = Applied ++ [{N, Answers}]}
    end.

%% The coordinator

%% No round is out.
idle(#coordinator{pending = [], owed = []} = State) ->
    receive
        {request, Client, Op} -> idle(own_requests(Client, Op, State));
        {list, List} -> idle(State#coordinator{pending = [List]})
    end;
idle(State) ->
    case drain(State) of
        #coordinator{pending = [], owed = Owed, round = N} = State1 ->
            _ = [send(Member, {committed, N}) || Member <- Owed],
            idle(State1#coordinator{owed = []});
        State1 ->
            next_round(State1)
    end.

next_round(#coordinator{members = Members, round = N, pending = Pending} = State) ->
    Lists = lists:reverse(Pending),
    _ = [send(Member, {round, N + 1, N, Lists}) || Member <- Members],
    Answers = apply_lists(Lists),
    Owed = lists:usort([{?MODULE, Node} || {Node, _} <- Lists, Node =/= node()]),
    await(length(Members), Answers, State#coordinator{round = N + 1, pending = [], owed = Owed}).

%% A round is out; so many acknowledgements are missing.
await(0, Answers, #coordinator{waiting = Waiting} = State) ->
    Left = answer_lists(Answers, Waiting),
    _ = Answers =:= [] orelse erlang:yield(),
    idle(State#coordinator{waiting = Left});
await(Missing, Answers, #coordinator{round = N, pending = Pending} = State) ->
    receive
        {ack, N} -> await(Missing - 1, Answers, State);
        {ack, N, List} ->
            await(Missing - 1, Answers, State#coordinator{pending = [List | Pending]});
        {list, List} -> await(Missing, Answers, State#coordinator{pending = [List | Pending]});
        {request, Client, Op} -> await(Missing, Answers, own_requests(Client, Op, State))
    end.

drain(#coordinator{pending = Pending} = State) ->
    receive
        {list, List} -> drain(State#coordinator{pending = [List | Pending]});
        {request, Client, Op} -> drain(own_requests(Client, Op, State))
    after 0 -> State
    end.

own_requests(Client, Op, #coordinator{pending = Pending, waiting = Waiting} = State) ->
    {Clients, Ops} = requests([Client], [Op]),
    State#coordinator{pending = [{node(), Ops} | Pending], waiting = Waiting ++ [Clients]}.

%% Both

%% The requests that are in the mailbox, in order.
requests(Clients, Ops) ->
    receive
        {request, Client, Op} -> requests([Client | Clients], [Op | Ops])
    after 0 -> {lists:reverse(Clients), lists:reverse(Ops)}
    end.

%% The answers to this node's own lists; nobody here needs the others.
apply_lists([{Node, Ops} | Lists]) when Node =:= node() -> [apply_own(Ops) | apply_lists(Lists)];
apply_lists([{_, Ops} | Lists]) ->
    apply_others(Ops),
    apply_lists(Lists);
apply_lists([]) -> [].

apply_own([Op | Ops]) -> [apply_op(Op) | apply_own(Ops)];
apply_own([]) -> [].

apply_others([Op | Ops]) ->
    _ = apply_op(Op),
    apply_others(Ops);
apply_others([]) -> ok.

apply_op([Pid | Name]) ->
    case ets:insert_new(?TABLE, {Name, Pid}) of
        true -> yes;
        false -> no
    end;
apply_op({Name}) ->
    true = ets:delete(?TABLE, Name),
    ok.

%% The lists of a node come back in the order it sent them.
answer_lists([Answers | Rest], [Clients | Waiting]) ->
    _ = [Client ! {?MODULE, Answer} || {Client, Answer} <- lists:zip(Clients, Answers)],
    answer_lists(Rest, Waiting);
answer_lists([], Waiting) -> Waiting.

send(To, Message) ->
    _ = erlang:send(To, Message, [noconnect]),
    ok.
