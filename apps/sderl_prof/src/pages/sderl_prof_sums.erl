%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_sums).
-moduledoc """
A file with the sums of each process, as rows of one width at the place of its number, so that it
can be as long as there are processes. What is written of a process is added to what is there.
""".

-export([add/2, read/2, fold/3, metrics/0]).
-export_type([metric/0]).

-type metric() :: run | runnable | wait | gc | exiting | ins | sent | sent_bytes | received
    | received_bytes | moves.

-define(ROW, 88).
-define(AT_ONCE, 4096).

-doc "What a row has, in its order.".
-spec metrics() -> [metric()].
metrics() ->
    [run, runnable, wait, gc, exiting, ins, sent, sent_bytes, received, received_bytes, moves].

-doc "Adds sums to those of these processes.".
-spec add([{pos_integer(), sderl_prof_activity:sums()}], file:fd()) -> ok | {error, file:posix()}.
add([], _) -> ok;
add(Sums, File) ->
    Rows = lists:sort(maps:to_list(maps:groups_from_list(fun({P, _}) -> P end,
                                                         fun({_, Sum}) -> Sum end, Sums))),
    {ok, Before} = file:pread(File, [{at(P), ?ROW} || {P, _} <- Rows]),
    Places = [{at(P), encode(sderl_prof_activity:sums([decode(Old) | New]))}
              || {{P, New}, Old} <- lists:zip(Rows, Before)],
    case file:pwrite(File, Places) of
        ok -> ok;
        {error, {_, Why}} -> {error, Why}
    end.

-doc "The sums of a process, which are 0 where nothing was written.".
-spec read(pos_integer(), file:fd()) -> sderl_prof_activity:sums().
read(P, File) ->
    case file:pread(File, at(P), ?ROW) of
        {ok, Row} -> decode(Row);
        eof -> decode(eof)
    end.

-doc "Calls the function with each process of the file and its sums, in the order of numbers.".
-spec fold(fun((pos_integer(), sderl_prof_activity:sums(), Acc) -> Acc), Acc, file:fd()) -> Acc.
fold(Fun, Acc, File) -> fold(Fun, Acc, File, 1).

fold(Fun, Acc, File, P) ->
    case file:pread(File, at(P), ?AT_ONCE * ?ROW) of
        {ok, Bin} ->
            Rows = [Row || <<Row:?ROW/binary>> <= Bin],
            {Next, Acc1} = lists:foldl(fun(Row, {N, A}) -> {N + 1, Fun(N, decode(Row), A)} end,
                                       {P, Acc}, Rows),
            case Rows of
                [] -> Acc1;
                _ -> fold(Fun, Acc1, File, Next)
            end;
        eof -> Acc
    end.

at(P) -> (P - 1) * ?ROW.

encode(Sums) -> << <<(map_get(Metric, Sums)):64>> || Metric <- metrics() >>.

decode(<<_:?ROW/binary>> = Row) ->
    maps:from_list(lists:zip(metrics(), [N || <<N:64>> <= Row]));
decode(_) -> sderl_prof_activity:sums([]).
