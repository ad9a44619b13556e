%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_mix).
-moduledoc """
Mixes of operations on a table: those that the options of `bin/sderl bench tables` ask for, or the
one that a file describes. Pure, except for reading the file.
""".

-export([of_options/1, of_file/2, text/1, shares/1]).
-export_type([mix/0]).

-import(sderl_bench_experiment, [numbers/4, words/1]).

-define(OPS, [read, put, delete, add, range]).
%% A key has 28 bits in a stream.
-define(MOST_KEYS, 1 bsl 28 - 1).
-define(MOST, 1_000_000_000).
%% Of a skewed distribution where no exponent is given.
-define(EXPONENT, 0.99).

-doc "Settings of `m:sderl_bench_tables_load` without those of a table.".
-type mix() :: sderl_bench_vm_program:settings().

-doc """
All combinations: shares of updates with shares of ranges, and apart from them shares of additions,
each with every distribution.
""".
-spec of_options(#{atom() => term()}) -> {ok, [mix()]} | {error, unicode:chardata()}.
of_options(Options) ->
    maybe
        {ok, Updates} ?= percents("--updates", maps:get(updates, Options)),
        {ok, Ranges} ?= percents("--ranges", maps:get(ranges, Options)),
        {ok, Adds} ?= percents("--adds", maps:get(adds, Options)),
        {ok, Distributions} ?= sderl_bench_vm_request:all(
            fun distribution/1, words(maps:get(distribution, Options))),
        {ok, Shape} ?= shape(Options),
        [] ?= [{U, R} || U <- Updates, R <- Ranges, U + R > 100],
        Shares = [updates(U, R) || U <- Updates, R <- Ranges] ++ [adds(A) || A <- Adds],
        {ok, [maps:merge(maps:merge(Shape, Share), Distribution)
              || Share <- lists:uniq(Shares), Distribution <- lists:uniq(Distributions)]}
    else
        [{U, R} | _] ->
            {error, io_lib:format("--updates ~w and --ranges ~w are more than 100 %", [U, R])};
        Error ->
            Error
    end.

percents(_, "-") -> {ok, []};
percents(Option, Text) -> numbers(Option, Text, 0, 100).

%% As many puts as deletes, and a put more where the number is odd.
updates(U, R) ->
    shares(#{put => U - U div 2, delete => U div 2, range => R, read => 100 - U - R}).

adds(A) -> shares(#{add => A, read => 100 - A}).

-doc "The operations that a mix has, with their shares.".
-spec shares(map()) -> #{sderl_bench_table:op() => 1..100}.
shares(Mix) -> #{Op => Share || Op <- ?OPS, #{Op := Share} <- [Mix], Share > 0}.

distribution(Text) ->
    case string:split(Text, ":") of
        ["uniform"] -> {ok, #{distribution => uniform}};
        ["zipf"] -> {ok, #{distribution => zipf, exponent => ?EXPONENT}};
        ["zipf", Exponent] ->
            case sderl_bench_experiment:real("--distribution", Exponent, 0.01, 10) of
                {ok, S} -> {ok, #{distribution => zipf, exponent => S}};
                Error -> Error
            end;
        _ ->
            {error, ["--distribution: there is no distribution \"", Text,
                     "\"; there are uniform, zipf and zipf:EXPONENT"]}
    end.

%% ---------------------------------------------------------------- the sizes

shape(Options) ->
    Cores = maps:get(cores, Options),
    Sizes = #{
        keys => maps:get(keys, Options), operations => maps:get(operations, Options),
        value_words => maps:get(value_words, Options),
        range_length => maps:get(range_length, Options),
        workers => maps:get(workers, Options, 4 * Cores),
        shards => maps:get(shards, Options, 4 * Cores)
    },
    case [{Key, Value, Most} || Key := Value <- maps:iterator(Sizes, ordered),
                                Most <- [most(Key)],
                                not is_integer(Value) orelse Value < 1 orelse Value > Most] of
        [] ->
            {ok, Sizes#{filled => 2}};
        [{Key, Value, Most} | _] ->
            {error, io_lib:format("--~ts is a whole number from 1 to ~w, not ~0tp",
                                  [string:replace(atom_to_list(Key), "_", "-"), Most, Value])}
    end.

most(keys) -> ?MOST_KEYS;
most(operations) -> ?MOST;
most(workers) -> 100_000;
most(shards) -> 10_000;
most(value_words) -> 100_000;
most(range_length) -> 100_000.

%% ---------------------------------------------------------------- a file

-define(SIZES, [keys, operations, workers, shards, value_words, range_length]).

-doc """
The mix that a file describes: terms `{read, 90}.` and so on, whose shares have the sum 100, with
the distribution and the sizes; what it leaves out is that of the options.
""".
-spec of_file(file:filename(), Options :: #{atom() => term()}) ->
    {ok, [mix(), ...]} | {error, unicode:chardata()}.
of_file(File, Options) ->
    maybe
        {ok, Terms} ?= file:consult(File),
        {ok, Given} ?= described(Terms, #{}),
        {100, _} ?= {lists:sum([maps:get(Op, Given, 0) || Op <- ?OPS]), sum},
        false ?= is_map_key(add, Given) andalso is_map_key(put, Given),
        {ok, Shape} ?= shape(maps:merge(Options, maps:with(?SIZES, Given))),
        {ok, Distribution} ?= distribution(maps:get(distribution, Given, "uniform")),
        {ok, [maps:merge(maps:merge(Shape, shares(Given)), Distribution)]}
    else
        {Sum, sum} ->
            in(File, io_lib:format("the shares of read, put, delete, add and range are together "
                                   "~w, and must be 100", [Sum]));
        true ->
            in(File, "a table has counts, to which one adds, or values that are put: leave out add "
                     "or put");
        {error, Reason} when is_atom(Reason); tuple_size(Reason) =:= 3 ->
            in(File, file:format_error(Reason));
        {error, Text} ->
            in(File, Text)
    end.

in(File, Text) -> {error, ["--mine ", File, ": ", Text]}.

described([], Given) ->
    {ok, Given};
described([{Key, Value} | _], Given) when is_map_key(Key, Given) ->
    {error, io_lib:format("~0tp is given twice: leave one of them out", [{Key, Value}])};
described([{Key, Value} = Term | Terms], Given) ->
    case is_known(Key, Value) of
        true -> described(Terms, Given#{Key => Value});
        false -> unknown(Term)
    end;
described([Term | _], _) ->
    unknown(Term).

is_known(Key, Value) ->
    case {lists:member(Key, ?OPS), lists:member(Key, ?SIZES), Key} of
        {true, _, _} -> is_integer(Value) andalso Value >= 1 andalso Value =< 100;
        {_, true, _} -> true;
        {_, _, distribution} -> Value =/= [] andalso io_lib:printable_latin1_list(Value);
        _ -> false
    end.

unknown(Term) ->
    {error, io_lib:format("~0tP is none of its terms: {read, 1..100}, the same with put, delete, "
                          "add and range, {distribution, \"uniform\" or \"zipf:0.99\"}, and "
                          "{keys, N}, with operations, workers, shards, value_words and "
                          "range_length the same",
                          [Term, 12])}.

%% ---------------------------------------------------------------- in words

-doc "Its shares and its distribution.".
-spec text(mix()) -> binary().
text(Mix) ->
    Shares = [io_lib:format("~w ~ts", [Share, Op])
              || Op <- ?OPS, #{Op := Share} <- [shares(Mix)]],
    Distribution = case Mix of
        #{distribution := zipf, exponent := S} ->
            ["zipf ", float_to_list(S, [short])];
        #{distribution := uniform} ->
            "uniform"
    end,
    iolist_to_binary([lists:join(" ", Shares), ", ", Distribution]).
