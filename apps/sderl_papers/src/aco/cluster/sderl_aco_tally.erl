%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_tally).
-moduledoc """
The counts of each node during a run, which survive the deaths of processes there: ants, and how
long it took to replace dead processes.

It belongs to no process. Where `start/1` was not called, nothing is counted.
""".

-export([start/1, stop/1, ants/2, replaced/3, read/1, sum/1]).
-export_type([counts/0]).

-doc """
`recovered`: how many processes of each class were replaced; `replaced_us`: how long that took, in
microseconds.
""".
-type counts() :: #{
    ants := non_neg_integer(),
    recovered := #{sderl_aco_tree:class() => non_neg_integer()},
    replaced_us := sderl_bench_histogram:histogram()
}.

-doc "Begins counting on this node.".
-spec start(Run :: term()) -> ok.
start(Run) ->
    persistent_term:put({?MODULE, Run}, {counters:new(5, []), sderl_bench_histogram:recorder()}).

-doc "Ends counting.".
-spec stop(Run :: term()) -> ok.
stop(Run) ->
    _ = persistent_term:erase({?MODULE, Run}),
    ok.

-doc "So many ants have found a solution.".
-spec ants(Run :: term(), pos_integer()) -> ok.
ants(Run, Count) ->
    case tally(Run) of
        none -> ok;
        {Counters, _} -> counters:add(Counters, 1, Count)
    end.

-doc "A process was replaced, so many microseconds after its death was known.".
-spec replaced(Run :: term(), sderl_aco_tree:class(), Us :: integer()) -> ok.
replaced(Run, Class, Us) ->
    case tally(Run) of
        none ->
            ok;
        {Counters, Recorder} ->
            counters:add(Counters, index(Class), 1),
            sderl_bench_histogram:record(Recorder, Us)
    end.

-doc "The counts of this node.".
-spec read(Run :: term()) -> counts().
read(Run) ->
    case tally(Run) of
        none ->
            none();
        {Counters, Recorder} ->
            #{
                ants => counters:get(Counters, 1),
                recovered => #{Class => counters:get(Counters, index(Class)) || Class <- classes()},
                replaced_us => sderl_bench_histogram:read(Recorder)
            }
    end.

none() ->
    #{ants => 0, recovered => #{Class => 0 || Class <- classes()},
      replaced_us => sderl_bench_histogram:new()}.

-doc """
The counts of all nodes, of what each of them answered to `read/1`; or those that did not answer.
""".
-spec sum([{node(), {ok, counts()} | {error, term()}}]) -> {ok, counts()} | {error, [node(), ...]}.
sum(Answers) ->
    case [Node || {Node, {error, _}} <- Answers] of
        [] ->
            {ok, lists:foldl(fun({_, {ok, Counts}}, Sum) -> add(Counts, Sum) end, none(), Answers)};
        Silent -> {error, Silent}
    end.

add(#{ants := A1, recovered := R1, replaced_us := H1},
    #{ants := A2, recovered := R2, replaced_us := H2}) ->
    #{
        ants => A1 + A2,
        recovered => maps:merge_with(fun(_, X, Y) -> X + Y end, R1, R2),
        replaced_us => sderl_bench_histogram:merge([H1, H2])
    }.

tally(Run) -> persistent_term:get({?MODULE, Run}, none).

classes() -> [master, supervisor, submaster, colony].

index(master) -> 2;
index(supervisor) -> 3;
index(submaster) -> 4;
index(colony) -> 5.
