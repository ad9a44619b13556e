%% SPDX-License-Identifier: Apache-2.0
-module(sderl_resolver_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Resolver functions.
-export([second/3, nobody/3, nonsense/3, stops/3, throws/3, exits/3, fails/3, grows/3,
         is_killed/3]).

-define(LONG, 60_000).

second(_Name, _Pid1, Pid2) -> Pid2.
nobody(_Name, _Pid1, _Pid2) -> none.
nonsense(_Name, Pid1, Pid2) -> {Pid1, Pid2}.
stops({Tester, _}, _Pid1, _Pid2) ->
    Tester ! {stopped, self()},
    receive
        never -> none
    end.
throws(_Name, _Pid1, _Pid2) -> throw(none).
exits(_Name, Pid1, _Pid2) -> exit(Pid1).
fails(_Name, Pid1, _Pid2) -> error({ok, Pid1}).
grows(Name, Pid1, Pid2) -> grows(Name, [Name | Pid1], Pid2).
%% Dies of something that is no exception, as a linked process would make it.
is_killed(_Name, _Pid1, _Pid2) ->
    exit(self(), kill),
    receive
        never -> none
    end.

pids() ->
    Sleeper = fun() -> receive stop -> ok end end,
    {spawn(Sleeper), spawn(Sleeper)}.

resolve(Function, TimeoutMs) -> resolve({self(), n}, Function, TimeoutMs).

resolve(Name, Function, TimeoutMs) ->
    {A, B} = pids(),
    Ref = make_ref(),
    _ = sderl_resolver:start(Ref, Name, A, B, {?MODULE, Function}, TimeoutMs),
    receive {resolved, Ref, Decision} -> {A, B, Decision} end.

%% The decision of random_exit_name, with the reason why it was asked.
fell_back({A, B, #{keep := Keep, effects := Effects, failed := Failed}}) ->
    ?assert(lists:member(Keep, [A, B])),
    [Lost] = [A, B] -- [Keep],
    ?assertEqual([{exit, Lost, kill}], Effects),
    Failed.

functions_test() ->
    ?assertMatch({_, B, #{keep := B, effects := [], failed := undefined}}, resolve(second, ?LONG)),
    ?assertMatch({_, _, #{keep := none, effects := [], failed := undefined}},
                 resolve(nobody, ?LONG)).

failures_test() ->
    {A, B, _} = Nonsense = resolve(nonsense, ?LONG),
    ?assertEqual({bad_return, {A, B}}, fell_back(Nonsense)),
    ?assertEqual({throw, none}, fell_back(resolve(throws, ?LONG))),
    ?assertMatch({exit, _}, fell_back(resolve(exits, ?LONG))),
    ?assertMatch({error, {ok, _}}, fell_back(resolve(fails, ?LONG))),
    ?assertEqual({error, undef}, fell_back(resolve(no_such_function, ?LONG))),
    ?assertEqual({down, killed}, fell_back(resolve(is_killed, ?LONG))),
    ?assertEqual({down, killed}, fell_back(resolve(grows, ?LONG))).

time_limit_test_() -> {spawn, fun time_limit_alone/0}.

time_limit_alone() ->
    ?assertEqual(timeout, fell_back(resolve(stops, 1))),
    await_end(stopped()),
    ?assertEqual([], leftovers()).

caller_dies_test_() -> {spawn, fun caller_dies_alone/0}.

caller_dies_alone() ->
    {A, B} = pids(),
    Tester = self(),
    Caller = spawn(fun() ->
        Decider = sderl_resolver:start(ref, {Tester, n}, A, B, {?MODULE, stops}, ?LONG),
        Tester ! {decider, Decider},
        receive
            never -> ok
        end
    end),
    Decider = receive {decider, D} -> D end,
    Worker = stopped(),
    exit(Caller, kill),
    await_end(Decider),
    await_end(Worker),
    ?assertEqual([], leftovers()).

stopped() ->
    receive
        {stopped, Pid} -> Pid
    end.

await_end(Pid) ->
    Monitor = monitor(process, Pid),
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

leftovers() ->
    receive
        Message -> [Message | leftovers()]
    after 0 -> []
    end.

validate_test() ->
    [
        ?assertEqual(ok, sderl_resolver:validate(R))
     || R <- [random_exit_name, random_notify_name, notify_all_name, {m, f}]
    ],
    [
        ?assertMatch({error, {bad_resolver, R, [_ | _]}}, sderl_resolver:validate(R))
     || R <- [undefined, none, {m, "f"}, {m, f, []}, fun sderl_resolver_tests:second/3, "r"]
    ].

properties_test_() ->
    [sderl_prop:eunit("resolver: decisions are whole", 500, fun prop_decision/0)].

%% At most one pid keeps the name, it is one of the two and is done no harm; with two different
%% pids every other one hears of it once; a failure changes only who decides.
prop_decision() ->
    {A, B} = pids(),
    ?FORALL(
        {Name, Pid1, Pid2, How, Coin},
        {term(), oneof([A, B]), oneof([A, B]), how(A, B), oneof([1, 2])},
        begin
            #{keep := Keep, effects := Effects, failed := Failed} =
                sderl_resolver:decide(Name, Pid1, Pid2, How, Coin),
            Heard = [element(2, Effect) || Effect <- Effects],
            lists:member(Keep, [Pid1, Pid2, none]) andalso
                not lists:member(Keep, Heard) andalso
                lists:all(fun(E) -> said(E, Name, Pid1, Pid2) end, Effects) andalso
                case {Pid1, How} of
                    {Pid2, _} -> Keep =:= Pid1 andalso Effects =:= [] andalso Failed =:= undefined;
                    {_, {answer, {failed, Why}}} -> length(Heard) =:= 1 andalso Failed =:= Why;
                    {_, {answer, {ok, Kept}}} when Kept =:= Keep ->
                        Effects =:= [] andalso Failed =:= undefined;
                    {_, {answer, {ok, Bad}}} ->
                        length(Heard) =:= 1 andalso Failed =:= {bad_return, Bad};
                    {_, notify_all_name} -> Keep =:= none andalso Heard =:= [Pid1, Pid2];
                    _ -> Heard =:= [Pid1, Pid2] -- [Keep] andalso Failed =:= undefined
                end
        end
    ).

said({exit, _, kill}, _, _, _) -> true;
said({send, _, {global_name_conflict, Name}}, Name, _, _) -> true;
said({send, Pid1, {global_name_conflict, Name, Pid2}}, Name, Pid1, Pid2) -> true;
said({send, Pid2, {global_name_conflict, Name, Pid1}}, Name, Pid1, Pid2) -> true;
said(_, _, _, _) -> false.

how(A, B) ->
    oneof([
        random_exit_name,
        random_notify_name,
        notify_all_name,
        {answer, {ok, oneof([A, B, none, term()])}},
        {answer, {failed, oneof([timeout, {error, term()}])}}
    ]).
