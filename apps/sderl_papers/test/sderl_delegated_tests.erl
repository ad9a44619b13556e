%% SPDX-License-Identifier: Apache-2.0
-module(sderl_delegated_tests).
-moduledoc "What a delegated table promises.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- linearisable per key

key() -> elements([a, b]).

command() ->
    frequency([{4, {put, key()}}, {2, {delete, key()}}, {4, {get, key()}}, {1, flush}]).

options() ->
    ?LET({Shards, Batch, Window}, {range(1, 3), range(1, 4), range(1, 3)},
         #{shards => Shards, batch => Batch, window => Window}).

linearisable_test_() ->
    sderl_prop:eunit("histories of concurrent clients have an order for each key", 100, fun() ->
        ?FORALL({Options, Clients}, {options(), vector(3, resize(8, list(command())))}, begin
            Histories = concurrently(Options, Clients),
            lists:all(fun(Key) -> check(Key, Histories) =:= ok end, [a, b])
        end)
    end).

%% Runs all clients at the same time; gives the operations of each.
concurrently(Options, Clients) ->
    Table = sderl_delegated:new(Options),
    Main = self(),
    Pids = [spawn_link(fun() ->
        receive go -> ok end,
        Main ! {self(), history(Commands, {I, 1}, sderl_delegated:client(Table), [], [])}
    end) || {I, Commands} <- lists:enumerate(Clients)],
    _ = [Pid ! go || Pid <- Pids],
    Histories = lists:append([receive {Pid, History} -> History end || Pid <- Pids]),
    ok = sderl_delegated:close(Table),
    Histories.

%% An operation without an answer ends with the next flush, or the next answer for its key.
history([], Id, Client, Pending, Done) ->
    case Pending of
        [] -> Done;
        _ -> history([flush], Id, Client, Pending, Done)
    end;
history([flush | Commands], Id, Client, Pending, Done) ->
    Next = sderl_delegated:flush(Client),
    history(Commands, Id, Next, [], ended(Pending) ++ Done);
history([{get, Key} | Commands], {I, N} = Id, Client, Pending, Done) ->
    Start = now_ns(),
    {Answer, Next} = sderl_delegated:get(Key, Client),
    {Mine, Others} = of_key(Key, Pending),
    Read = #{node => n, id => Id, start => Start, stop => now_ns(), call => {read, Key},
             answer => case Answer of {ok, Value} -> Value; none -> undefined end},
    history(Commands, {I, N + 1}, Next, Others, [Read | ended(Mine) ++ Done]);
history([{add_get, Key, Number} | Commands], {I, N} = Id, Client, Pending, Done) ->
    Start = now_ns(),
    {Answer, Next} = sderl_delegated:add_get(Key, Number, Client),
    {Mine, Others} = of_key(Key, Pending),
    Added = #{node => n, id => Id, start => Start, stop => now_ns(),
              call => {add_get, Key, Number}, answer => Answer},
    history(Commands, {I, N + 1}, Next, Others, [Added | ended(Mine) ++ Done]);
history([{put, Key} | Commands], Id, Client, Pending, Done) ->
    later(fun() -> sderl_delegated:put(Key, Id, Client) end, {re_register, Key, Id}, yes,
          Commands, Id, Pending, Done);
history([{put, Key, Value} | Commands], Id, Client, Pending, Done) ->
    later(fun() -> sderl_delegated:put(Key, Value, Client) end, {put, Key, Value}, ok,
          Commands, Id, Pending, Done);
history([{add, Key, Number} | Commands], Id, Client, Pending, Done) ->
    later(fun() -> sderl_delegated:add(Key, Number, Client) end, {add, Key, Number}, ok,
          Commands, Id, Pending, Done);
history([{delete, Key} | Commands], Id, Client, Pending, Done) ->
    later(fun() -> sderl_delegated:delete(Key, Client) end, {unregister, Key}, ok,
          Commands, Id, Pending, Done).

later(Fun, Call, Answer, Commands, {I, N} = Id, Pending, Done) ->
    Op = #{node => n, id => Id, start => now_ns(), call => Call, answer => Answer},
    history(Commands, {I, N + 1}, Fun(), [Op | Pending], Done).

of_key(Key, Pending) ->
    lists:partition(fun(#{call := Call}) -> element(2, Call) =:= Key end, Pending).

ended(Pending) ->
    Stop = now_ns(),
    [Op#{stop => Stop} || Op <- Pending].

now_ns() -> erlang:monotonic_time(nanosecond).

check(Key, History) ->
    Mine = [Op || #{call := Call} = Op <- History, element(2, Call) =:= Key],
    sderl_linear:check(lists:sort(fun(#{start := A}, #{start := B}) -> A =< B end, Mine),
                       #{where => fun(_) -> n end}).

%% ---------------------------------------------------------------- with additions

counted_command() ->
    frequency([{2, {put, key(), range(1, 3)}}, {1, {delete, key()}}, {4, {add, key(), range(1, 3)}},
               {4, {add_get, key(), range(1, 3)}}, {3, {get, key()}}, {1, flush}]).

%% `m:sderl_linear` checks names, but no additions.
additions_test_() ->
    sderl_prop:eunit("histories with additions have an order for each key", 100, fun() ->
        ?FORALL({Options, Clients}, {options(), vector(3, resize(8, list(counted_command())))},
        begin
            Histories = concurrently(Options, Clients),
            lists:all(fun(Key) -> has_order(Key, Histories) end, [a, b])
        end)
    end).

%% Whether there is an order of the operations on a key that gives their answers, keeps the order of
%% each client, and has no operation after one that was called when it had ended.
has_order(Key, History) ->
    {Mine, _} = of_key(Key, History),
    Clients = maps:groups_from_list(fun(#{id := {I, _}}) -> I end, Mine),
    Queues = [lists:sort(fun(#{id := A}, #{id := B}) -> A =< B end, Of) || _ := Of <- Clients],
    has_order([{Queues, undefined}]).

%% All states with so many operations left: the remaining operations of each client, and the value.
has_order([]) -> false;
has_order([{[], _} | _]) -> true;
has_order(States) ->
    has_order(lists:usort([Next || {Queues, Value} <- States, Queue <- Queues,
                                   Next <- first(Queue, Queues, Value)])).

first([#{start := Start} = Op | Left] = Queue, Queues, Value) ->
    Ends = lists:min([Stop || [#{stop := Stop} | _] <- Queues]),
    [{[Left || Left =/= []] ++ lists:delete(Queue, Queues), Next}
     || Start =< Ends, Next <- effect(Op, Value)].

%% The value after an operation, if its answer fits the value before.
effect(#{call := {put, _, Value}}, _) -> [Value];
effect(#{call := {unregister, _}}, _) -> [undefined];
effect(#{call := {add, _, Number}}, Value) -> [sum(Value, Number)];
effect(#{call := {add_get, _, Number}, answer := Answer}, Value) ->
    [Answer || sum(Value, Number) =:= Answer];
effect(#{call := {read, _}, answer := Answer}, Value) -> [Value || Value =:= Answer].

sum(undefined, Number) -> Number;
sum(Value, Number) -> Value + Number.

%% Additions that are lost, done twice or seen too late have no order.
no_order_test() ->
    Op = fun(I, N, Start, Stop, Call, Answer) ->
        #{id => {I, N}, start => Start, stop => Stop, call => Call, answer => Answer}
    end,
    Add = fun(I, Stop, Answer) -> Op(I, 1, 1, Stop, {add_get, a, 1}, Answer) end,
    Reads = fun(Answer) -> Op(3, 1, 3, 4, {read, a}, Answer) end,
    ?assert(has_order(a, [Add(1, 2, 2), Add(2, 2, 1), Reads(2)])),
    ?assertNot(has_order(a, [Add(1, 2, 1), Add(2, 2, 1)])),
    ?assertNot(has_order(a, [Add(1, 2, 2), Add(2, 2, 1), Reads(1)])),
    ?assertNot(has_order(a, [Add(1, 2, 1), Reads(undefined)])),
    ?assert(has_order(a, [Add(1, 3, 1), Reads(undefined)])),
    ?assertNot(has_order(a, [Add(1, 2, 1), Reads(2)])),
    %% The order of one client.
    Later = [Op(1, 1, 1, 9, {add, a, 1}, ok), Op(1, 2, 2, 9, {put, a, 7}, ok)],
    ?assert(has_order(a, [Op(1, 3, 3, 9, {read, a}, 7) | Later])),
    ?assertNot(has_order(a, [Op(1, 3, 3, 9, {read, a}, 8) | Later])).

%% Adding to a value that is no integer changes neither the shard nor the value.
no_integer_test() ->
    Table = sderl_delegated:new(#{shards => 1}),
    C1 = sderl_delegated:add(a, 1, sderl_delegated:put(a, text, sderl_delegated:client(Table))),
    {Answer, C2} = sderl_delegated:add_get(a, 1, C1),
    ?assertEqual({error, no_integer}, Answer),
    ?assertMatch({{ok, text}, _}, sderl_delegated:get(a, C2)),
    ?assertError(function_clause, sderl_delegated:add(a, one, C2)),
    ok = sderl_delegated:close(Table).

%% The checker finds reads of values that were never written, or were overwritten before.
refused_test() ->
    [Read] = [Op || #{call := {read, _}} = Op <- concurrently(#{}, [[{put, a}, flush, {get, a}]])],
    ?assertMatch({refused, _}, check(a, [Read])),
    ?assertMatch({refused, _}, check(a, [
        #{node => n, start => 1, stop => 2, call => {re_register, a, x}, answer => yes},
        #{node => n, start => 3, stop => 4, call => {re_register, a, y}, answer => yes},
        #{node => n, start => 5, stop => 6, call => {read, a}, answer => x}
    ])).

%% ---------------------------------------------------------------- the order of one client

own_command() ->
    oneof([{put, range(1, 5), integer()}, {delete, range(1, 5)}, {add, range(1, 5), integer()},
           {get, range(1, 5)}, {add_get, range(1, 5), integer()}, flush]).

%% Two clients with different keys on the same shards: each sees what a map would have.
own_order_test_() ->
    sderl_prop:eunit("a client's operations take effect in its order", 200, fun() ->
        ?FORALL({Options, Lists}, {options(), vector(2, list(own_command()))}, begin
            Table = sderl_delegated:new(Options),
            Pids = [spawn_monitor(fun() ->
                exit(same(Commands, I, sderl_delegated:client(Table), #{}))
            end) || {I, Commands} <- lists:enumerate(Lists)],
            Results = [receive {'DOWN', Ref, process, Pid, Result} -> Result end
                       || {Pid, Ref} <- Pids],
            ok = sderl_delegated:close(Table),
            Results =:= [same, same]
        end)
    end).

same([], _, _, _) ->
    same;
same([flush | Commands], I, Client, Map) ->
    same(Commands, I, sderl_delegated:flush(Client), Map);
same([{put, Key, Value} | Commands], I, Client, Map) ->
    same(Commands, I, sderl_delegated:put({I, Key}, Value, Client), Map#{Key => Value});
same([{delete, Key} | Commands], I, Client, Map) ->
    same(Commands, I, sderl_delegated:delete({I, Key}, Client), maps:remove(Key, Map));
same([{add, Key, Number} | Commands], I, Client, Map) ->
    same(Commands, I, sderl_delegated:add({I, Key}, Number, Client), added(Key, Number, Map));
same([{add_get, Key, Number} | Commands], I, Client, Map) ->
    More = #{Key := Sum} = added(Key, Number, Map),
    case sderl_delegated:add_get({I, Key}, Number, Client) of
        {Sum, Next} -> same(Commands, I, Next, More);
        {Other, _} -> {differs, Key, Sum, Other}
    end;
same([{get, Key} | Commands], I, Client, Map) ->
    Expected = case Map of #{Key := Value} -> {ok, Value}; #{} -> none end,
    case sderl_delegated:get({I, Key}, Client) of
        {Expected, Next} -> same(Commands, I, Next, Map);
        {Other, _} -> {differs, Key, Expected, Other}
    end.

added(Key, Number, Map) -> maps:update_with(Key, fun(V) -> V + Number end, Number, Map).

%% ---------------------------------------------------------------- answers, limits, deaths

each_addition_once_test_() ->
    {timeout, 120, fun() ->
        Table = sderl_delegated:new(#{shards => 2, batch => 3}),
        Main = self(),
        Pids = [spawn_link(fun() ->
            {Answers, _} = lists:mapfoldl(
                fun(_, Client) -> sderl_delegated:add_get(key, 1, Client) end,
                sderl_delegated:client(Table), lists:seq(1, 200)),
            Main ! {self(), Answers}
        end) || _ <- lists:seq(1, 4)],
        Answers = lists:append([receive {Pid, Some} -> Some end || Pid <- Pids]),
        ?assertEqual(lists:seq(1, 800), lists:sort(Answers)),
        sderl_delegated:close(Table)
    end}.

%% A shard that is suspended gets at most a window of batches; then the client waits.
window_test_() ->
    {timeout, 120, fun() ->
        Table = sderl_delegated:new(#{shards => 1, batch => 2, window => 4}),
        [Ets] = sderl_delegated:tables(Table),
        Shard = ets:info(Ets, owner),
        true = erlang:suspend_process(Shard),
        {Writer, Ref} = spawn_monitor(fun() ->
            exit(lists:foldl(fun(N, Client) -> sderl_delegated:put(N, N, Client) end,
                             sderl_delegated:client(Table), lists:seq(1, 1000)))
        end),
        ok = sderl_fleet:await(fun() -> process_info(Writer, status) =:= {status, waiting} end,
                               60_000),
        ?assertEqual({message_queue_len, 4}, process_info(Shard, message_queue_len)),
        true = erlang:resume_process(Shard),
        Last = receive {'DOWN', Ref, process, Writer, Client} -> Client end,
        _ = sderl_delegated:flush(Last),
        ?assertEqual(1000, ets:info(Ets, size)),
        sderl_delegated:close(Table)
    end}.

dead_shard_test_() ->
    {timeout, 120, fun() ->
        {Owner, Table} = spawn_owner(#{shards => 1, batch => 4}),
        [Ets] = sderl_delegated:tables(Table),
        Client = sderl_delegated:put(a, 1, sderl_delegated:client(Table)),
        Ref = monitor(process, Owner),
        exit(ets:info(Ets, owner), kill),
        receive {'DOWN', Ref, process, Owner, _} -> ok end,
        ?assertExit({delegated, _}, sderl_delegated:get(a, Client)),
        ?assertExit({delegated, _}, sderl_delegated:flush(Client)),
        %% The client exits also when nothing is under way.
        ?assertExit({delegated, _}, sderl_delegated:get(a, sderl_delegated:client(Table)))
    end}.

spawn_owner(Options) ->
    Main = self(),
    Owner = spawn(fun() ->
        Main ! {self(), sderl_delegated:new(Options)},
        receive stop -> ok end
    end),
    receive {Owner, Table} -> {Owner, Table} end.

%% ---------------------------------------------------------------- among the tables

measured_test_() ->
    [
        {Name, {timeout, 120, fun() ->
            Settings = maps:merge(sderl_bench_tables_load:settings(short, 2),
                                  Own#{kind => sderl_table_delegated, keys => 50, workers => 5,
                                       operations => 3000, shards => 3, read => 50, Op => 50}),
            {ok, #{text := Text}} =
                sderl_bench_vm_loop:run({program, sderl_bench_tables_load, Settings}, 2),
            ?assertMatch({0, _}, {string:str(binary_to_list(Text), "{3000,") - 1, Text})
        end}}
     || {Name, _, Own, _} <- sderl_table_delegated:variants(), Op <- [put, add, delete]
    ].

%% The sum of all additions is the same in both kinds of table.
sum_test_() ->
    {timeout, 120, fun() ->
        Sum = fun(Kind, Own) ->
            Settings = maps:merge(sderl_bench_tables_load:settings(short, 2),
                                  Own#{kind => Kind, keys => 50, workers => 5, operations => 3000,
                                       read => 50, add => 50}),
            {ok, #{hash := Hash}} =
                sderl_bench_vm_loop:run({program, sderl_bench_tables_load, Settings}, 1),
            Hash
        end,
        ?assertEqual(Sum(sderl_bench_tables_array, #{type => atomics}),
                     Sum(sderl_table_delegated, #{batch => 7}))
    end}.
