%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_search).
-moduledoc """
Searches for busy processes: reads the reductions of a bounded number of processes twice, with some
time between. The next search goes on with the next ones, so that all have their turn however many
there are.
""".

-export([new/3, step/2, wait_ms/2]).
-export_type([search/0]).

%% A search begins so long after the one before, and reads so many at least, if there are.
-define(EVERY_NS, 10_000_000_000).
-define(MOST, 20_000).
%% So many are read at a time.
-define(AT_ONCE, 1000).
%% Between two steps, while the first search is awaited.
-define(STEP_MS, 2).
%% Fewer reductions may be those of an answer.
-define(LEAST, 3).

-record(search, {
    at :: integer(),
    again_ns :: non_neg_integer(),
    round :: sderl_prof_round:round(),
    stage :: first | second | over,
    left :: [pid()],
    reductions = #{} :: #{pid() => non_neg_integer()},
    found = #{} :: #{pid() => pos_integer()}
}).
-opaque search() :: #search{}.

-doc "A search among the processes of a round; the second reading is so long after the first.".
-spec new(Now :: integer(), AgainNs :: non_neg_integer(), sderl_prof_round:round()) -> search().
new(Now, AgainNs, Round) ->
    {Pids, Left} = taken(Round),
    #search{at = Now, again_ns = AgainNs, round = Left, stage = first, left = Pids}.

%% Not shuffled, which would take time: each part has processes from everywhere.
taken(Round) -> taken(Round, []).

taken(Round, Taken) when length(Taken) >= ?MOST -> {Taken, Round};
taken(Round, Taken) ->
    case sderl_prof_round:take_part(Round) of
        {Part, Rest} -> taken(Rest, Part ++ Taken);
        none -> {Taken, Round}
    end.

-doc """
Reads the next ones, if it is time to. The end of each search gives the busy processes, with their
reductions between the two readings.
""".
-spec step(Now :: integer(), search()) ->
    {more | over | {found, #{pid() => pos_integer()}}, search()}.
step(Now, #search{stage = over, at = At, again_ns = AgainNs, round = Round} = S)
  when Now - At >= ?EVERY_NS ->
    %% After the last process comes a new round, of those that exist then.
    Next = case sderl_prof_round:is_over(Round) of
        true -> sderl_prof_round:new(processes());
        false -> Round
    end,
    {more, (new(Now, AgainNs, Next))#search{found = S#search.found}};
step(_, #search{stage = over} = S) ->
    {over, S};
step(Now, #search{stage = first, left = [], at = At, again_ns = AgainNs} = S) ->
    case Now - At >= AgainNs of
        true -> {more, S#search{stage = second, left = maps:keys(S#search.reductions)}};
        false -> {more, S}
    end;
step(_, #search{stage = second, left = [], found = Found} = S) ->
    {{found, Found}, S#search{stage = over, reductions = #{}, found = #{}}};
step(_, #search{stage = Stage, left = Left} = S) ->
    {Pids, Later} = at_most(?AT_ONCE, Left, []),
    Read = [{Pid, N} || Pid <- Pids, {reductions, N} <- [process_info(Pid, reductions)]],
    {more, read(Stage, Read, S#search{left = Later})}.

at_most(0, Left, Taken) -> {Taken, Left};
at_most(_, [], Taken) -> {Taken, []};
at_most(N, [Pid | Left], Taken) -> at_most(N - 1, Left, [Pid | Taken]).

read(first, Read, #search{reductions = Reductions} = S) ->
    S#search{reductions = maps:merge(Reductions, maps:from_list(Read))};
read(second, Read, #search{reductions = Reductions, found = Found} = S) ->
    S#search{found = lists:foldl(fun({Pid, N}, Acc) ->
        case N - map_get(Pid, Reductions) of
            More when More >= ?LEAST -> Acc#{Pid => More};
            _ -> Acc
        end
    end, Found, Read)}.

-doc "How long to wait until the next step, while it is awaited.".
-spec wait_ms(Now :: integer(), search()) -> non_neg_integer().
wait_ms(Now, #search{stage = first, left = [], at = At, again_ns = AgainNs}) ->
    max(0, At + AgainNs - Now + 999_999) div 1_000_000;
wait_ms(_, _) -> ?STEP_MS.
