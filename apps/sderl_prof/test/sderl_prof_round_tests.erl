%% SPDX-License-Identifier: Apache-2.0
%% Rounds of a sampler: each process once, in parts that are spread over all; and its search for
%% busy ones, of real processes, with a clock of the test.
-module(sderl_prof_round_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MOST_PART, 4096).

properties_test_() ->
    [
        sderl_prop:eunit("a round has each once, however it is taken", 100, fun prop_each_once/0),
        sderl_prop:eunit("a part is small, and spread over all", 50, fun prop_spread/0)
    ].

prop_each_once() ->
    ?FORALL({N, InParts}, {range(0, 20_000), list(boolean())}, begin
        All = lists:seq(1, N),
        Round = sderl_prof_round:new(All),
        Taken = taken(Round, InParts, []),
        Taken =:= All andalso taken(sderl_prof_round:again(Round), [], []) =:= All
    end).

%% Takes a part of the round where the list says so, else one process.
taken(Round, InParts, Taken) ->
    {IsPart, Rest} = case InParts of [] -> {false, []}; [H | T] -> {H, T} end,
    case IsPart of
        true ->
            case sderl_prof_round:take_part(Round) of
                none ->
                    true = sderl_prof_round:is_over(Round),
                    lists:sort(Taken);
                {Part, Next} -> taken(Next, Rest, Part ++ Taken)
            end;
        false ->
            case sderl_prof_round:take(Round) of
                none ->
                    true = sderl_prof_round:is_over(Round),
                    lists:sort(Taken);
                {One, Next} -> taken(Next, Rest, [One | Taken])
            end
    end.

prop_spread() ->
    ?FORALL(N, range(1, 100_000), begin
        {Part, _} = sderl_prof_round:take_part(sderl_prof_round:new(lists:seq(1, N))),
        Step = (N + ?MOST_PART - 1) div ?MOST_PART,
        length(Part) =< ?MOST_PART andalso hd(Part) =< Step andalso
            lists:last(Part) > N - Step andalso
            lists:all(fun({A, B}) -> B - A =:= Step end,
                      lists:zip(lists:droplast(Part), tl(Part)))
    end).

%% A process that ran between the two readings is found, one that was only asked for information
%% is not.
search_test() ->
    Pids = [spawn_link(fun work/0) || _ <- lists:seq(1, 3000)],
    try
        %% Wait until all have started up, which counts as work, too.
        [await_waiting(Pid) || Pid <- Pids],
        [Works, Tells | _] = Pids,
        Search = sderl_prof_search:new(0, 10, sderl_prof_round:new(Pids)),
        Read = steps(3, 0, Search),
        %% The time of the second reading has not come.
        {more, _} = sderl_prof_search:step(9, Read),
        Works ! {work, self()},
        receive {done, Works} -> ok end,
        %% It may still be running: the answer comes when it waits again.
        {status, _} = process_info(Works, status),
        {current_function, _} = process_info(Tells, current_function),
        {{found, Found}, Over} = sderl_prof_search:step(10, steps(4, 10, Read)),
        ?assertEqual([Works], maps:keys(Found)),
        {over, _} = sderl_prof_search:step(11, Over)
    after
        [begin
             unlink(Pid),
             exit(Pid, kill)
         end || Pid <- Pids]
    end.

await_waiting(Pid) ->
    case process_info(Pid, status) of
        {status, waiting} -> ok;
        {status, _} ->
            erlang:yield(),
            await_waiting(Pid)
    end.

steps(0, _, Search) -> Search;
steps(N, Now, Search) ->
    {more, Next} = sderl_prof_search:step(Now, Search),
    steps(N - 1, Now, Next).

work() ->
    receive
        {work, From} ->
            _ = lists:foldl(fun(X, Sum) -> X + Sum end, 0, lists:seq(1, 10_000)),
            From ! {done, self()},
            work()
    end.

%% A search begins where the one before ended, so all processes have their turn.
turns_test() ->
    Pids = [spawn_link(fun work/0) || _ <- lists:seq(1, 30_000)],
    try
        [Some | _] = Pids,
        First = sderl_prof_search:new(0, 0, sderl_prof_round:new(Pids)),
        {Works, Over} = worked(Some, 0, First),
        Later = 10_000_000_000,
        {more, Second} = sderl_prof_search:step(Later, Over),
        {WorksThen, _} = worked(Some, Later, Second),
        ?assertEqual([false, true], lists:sort([Works, WorksThen]))
    after
        [begin
             unlink(Pid),
             exit(Pid, kill)
         end || Pid <- Pids]
    end.

%% Whether a search finds this process, which works after each step.
worked(Pid, Now, Search) ->
    Pid ! {work, self()},
    receive {done, Pid} -> ok end,
    case sderl_prof_search:step(Now, Search) of
        {more, Next} -> worked(Pid, Now, Next);
        {{found, Found}, Over} -> {is_map_key(Pid, Found), Over}
    end.
