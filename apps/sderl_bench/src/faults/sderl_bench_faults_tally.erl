%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_tally).
-moduledoc """
The results from the journals of the clients and the nodes' tables; and the metrics of many
repetitions.
""".

-export([compare/2, is_whole/1, is_far/1, held_twice/1, failed/0, metrics/1]).
-export_type([finding/0, turn/0]).

-doc """
- `lost`: names whose registration was answered, whose process lives, and that some node does not
  have, or has for another process
- `came_back`: names that some node has although their unregistration was answered, or although
  nobody holds them (their process is dead)
- `equal`: whether all tables are the same
""".
-type finding() :: #{lost := [term()], came_back := [term()], equal := boolean()}.

-doc """
One repetition. Times are in ms. `converged`: whether all nodes agreed in time, and had no names
left after all of them were given up.
""".
-type turn() :: #{
    converged := boolean(),
    converge_ms := number() | undefined,
    rejoin_ms := number() | undefined,
    stalled_ms := number() | undefined,
    lost := non_neg_integer(),
    came_back := non_neg_integer(),
    unknown := non_neg_integer(),
    refused := non_neg_integer(),
    no_majority := non_neg_integer(),
    cut_off_yes := non_neg_integer(),
    claims := non_neg_integer(),
    held_twice := non_neg_integer(),
    hung := non_neg_integer(),
    answers := non_neg_integer()
}.

-doc """
Compares the journals of all nodes whose clients live with the tables of all members. Names with an
operation under way, and those of far writers whose process was not told of them, may be there or
not.
""".
-spec compare([sderl_bench_faults_client:journal()], [[{term(), pid()}]]) -> finding().
compare(Journals, Tables) ->
    Held = lists:append([Pairs || #{held := Pairs} <- Journals]),
    Open = maps:from_keys(lists:append([Names || #{open := Names} <- Journals]), open),
    Known = maps:merge(Open, maps:from_list(Held)),
    Maps = [maps:from_list(Table) || Table <- Tables],
    #{
        lost => lists:usort(
            lists:append([sderl_bench_faults_watch:missing(
                Held, fun(Name) -> maps:get(Name, Map, undefined) end
            ) || Map <- Maps])
        ),
        came_back => lists:usort([
            Name
         || Map <- Maps, Name := _ <- Map, not is_map_key(Name, Known), not is_far(Name),
            not is_contested(Name)
        ]),
        equal => length(lists:usort(Maps)) =< 1
    }.

-doc "Whether it is the name of a far writer.".
-spec is_far(term()) -> boolean().
is_far({{far, _}, _}) -> true;
is_far(_) -> false.

is_contested({{rival, _}, _}) -> true;
is_contested(_) -> false.

-doc "Names that the processes of two rivals had at one time.".
-spec held_twice([sderl_bench_faults_client:journal()]) -> [{Name :: term(), {pid(), pid()}}].
held_twice(Journals) ->
    Claims = lists:sort([{Name, From, To, Pid}
                         || #{claims := Claims} <- Journals, {Name, Pid, From, To} <- Claims,
                            From < To]),
    overlapping(Claims).

%% In sorted order, a claim that overlaps an earlier one overlaps the longest-lasting one.
overlapping([{Name, _, To, Pid} = Longest, {Name, From, To2, Pid2} = Next | Claims]) ->
    Lasting = if To2 > To -> Next; true -> Longest end,
    [{Name, {Pid, Pid2}} || From < To] ++ overlapping([Lasting | Claims]);
overlapping([_ | Claims]) -> overlapping(Claims);
overlapping([]) -> [].

-doc "Nothing lost, nothing back, all tables equal.".
-spec is_whole(finding()) -> boolean().
is_whole(#{lost := Lost, came_back := Back, equal := Equal}) ->
    Lost =:= [] andalso Back =:= [] andalso Equal.

-doc "A repetition that could not be done.".
-spec failed() -> turn().
failed() ->
    Nothing = maps:from_keys([lost, came_back, unknown, refused, no_majority, cut_off_yes, claims,
                              held_twice, hung, answers], 0),
    (maps:merge(Nothing,
                maps:from_keys([converge_ms, rejoin_ms, stalled_ms], undefined)))#{
                    converged => false
                }.

-doc """
Metrics as in the JSON output. Percentiles are by nearest rank, of those repetitions in which it was
measured; `null` where it never was.
""".
-spec metrics([turn()]) -> map().
metrics(Turns) ->
    Sum = fun(Key) -> lists:sum([maps:get(Key, Turn) || Turn <- Turns]) end,
    #{
        repetitions => length(Turns),
        converged => length([Turn || #{converged := true} = Turn <- Turns]),
        lost_acknowledged => Sum(lost),
        came_back => Sum(came_back),
        unknown => Sum(unknown),
        refused => Sum(refused),
        no_majority => Sum(no_majority),
        cut_off_yes => Sum(cut_off_yes),
        claims => Sum(claims),
        held_twice => Sum(held_twice),
        hung => Sum(hung),
        answers => Sum(answers),
        converge_ms => percentiles(converge_ms, Turns),
        rejoin_ms => percentiles(rejoin_ms, Turns),
        stalled_ms => percentiles(stalled_ms, Turns)
    }.

percentiles(Key, Turns) ->
    Sorted = lists:sort([Ms || #{Key := Ms} <- Turns, is_number(Ms)]),
    #{p50 => rank(50, Sorted), p99 => rank(99, Sorted)}.

rank(_, []) -> undefined;
rank(Percent, Sorted) -> lists:nth(max(1, ceil(Percent * length(Sorted) / 100)), Sorted).
