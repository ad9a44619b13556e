%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_options).
-moduledoc """
The options of `bin/sderl bench tables`: which tables are measured with which mixes of operations.
""".

-export([arguments/0, check/1, variants/0]).

-import(sderl_bench_experiment, [option/5]).
-import(sderl_bench_vm_request, [given/3]).

%% Bytes of a row without its value, of an element of a value, and of an operation in a stream.
-define(ROW, 150).
-define(WORD, 16).
-define(OPERATION, 4).

-doc "For `m:argparse`.".
-spec arguments() -> [argparse:argument()].
arguments() ->
    [
        given(tables, "LIST", "tables, with commas between them, or all (the usual ones)"),
        given(mine, "FILE", "the mix of your program as Erlang terms: {read, 90}. {put, 10}. "
                            "{keys, 5000}. {distribution, \"zipf:0.99\"}. and so on; all that can "
                            "do it is measured, and the answer is which to take; what is far "
                            "behind is left out after two virtual machines, unless --tables names "
                            "none or a bag"),
        option(updates, "LIST", string, "0,10,50",
               "percent of updates, half of them puts and half deletes; - for none of these mixes"),
        option(ranges, "LIST", string, "0", "percent of ranges, with each of the updates"),
        option(adds, "LIST", string, "50",
               "percent of additions to counts, in mixes of their own; - for none"),
        option(distribution, "LIST", string, "uniform,zipf",
               "how keys are drawn: uniform, zipf (exponent 0.99), zipf:EXPONENT"),
        option(keys, "N", integer, 100_000, "keys, of which half are there at the start"),
        option(operations, "N", integer, 200_000, "operations of a repetition, by all workers"),
        option(value_words, "N", integer, 1, "elements of the list that is put"),
        option(range_length, "N", integer, 10, "keys of a range"),
        count(workers, "workers (4 for each core)"),
        count(shards, "tables of sharded, processes of delegation (4 for each core)")
        | sderl_bench_vm_request:arguments("tables.jsonl")
    ].

count(Name, Text) -> sderl_command:option(Name, "N", integer, Text).

-doc "What to do.".
-spec check(#{atom() => term()}) ->
    {ok, sderl_bench_vm_request:do()} | {error, sderl_command:text()}.
check(Given) ->
    sderl_bench_vm_request:check(Given, fun measure/1).

measure(Given) ->
    Command = #{name => "tables", arguments => arguments(), given => Given},
    maybe
        {ok, Cores} ?= sderl_bench_vm_request:cores(Given),
        {ok, Mixes} ?= mixes(Given#{cores => Cores}),
        ok ?= fits(hd(Mixes), sderl_bench_machine:info()),
        {ok, Tables} ?= tables(Given),
        {ok, Jobs} ?= jobs(Tables, Mixes),
        %% For one mix only the best table is asked for; a table that is no choice must not win.
        Race = is_map_key(mine, Given) andalso lists:all(fun is_choice/1, Tables),
        sderl_bench_vm_request:measure(Command, Given#{race => Race}, Jobs)
    end.

mixes(#{mine := File} = Options) -> sderl_bench_tables_mix:of_file(File, Options);
mixes(Options) ->
    case sderl_bench_tables_mix:of_options(Options) of
        {ok, []} -> {error, "no mix is left: give --updates or --adds"};
        Result -> Result
    end.

%% All mixes have the same sizes. A virtual machine that fills a table has its rows in a list too.
fits(#{keys := Keys, value_words := Words, operations := Operations}, #{memory_mib := Memory})
  when is_integer(Memory) ->
    case (Keys div 2 * (?ROW + ?WORD * Words) + ?OPERATION * Operations) div (1 bsl 20) of
        Needed when 2 * Needed > Memory ->
            {error, io_lib:format("~w keys, values of ~w and ~w operations need about ~w MiB in "
                                  "each virtual machine, and this machine has ~w MiB: take fewer",
                                  [Keys, Words, Operations, Needed, Memory])};
        _ ->
            ok
    end;
fits(_, _) ->
    ok.

-doc "All variants of all kinds of table.".
-spec variants() -> [{module(), sderl_bench_table:variant()}].
variants() ->
    [{Module, Variant} || {_, Module} <- sderl_bench_table:all(), Variant <- Module:variants()].

tables(#{tables := "all"}) ->
    {ok, variants()};
tables(#{tables := Text}) ->
    All = variants(),
    Known = #{Name => Table || {_, {Name, _, _, _}} = Table <- All},
    Words = sderl_bench_experiment:words(Text),
    case {[Word || Word <- Words, not is_map_key(Word, Known)], Words -- lists:uniq(Words)} of
        {[], []} ->
            %% The simplest first, in whatever order they are named.
            {ok, [Table || {_, {Name, _, _, _}} = Table <- All, lists:member(Name, Words)]};
        {[Word | _], _} ->
            {error, ["--tables: there is no table \"", Word, "\"; there are ",
                     lists:join(", ", lists:sort(maps:keys(Known))), ", and all"]};
        {[], [Twice | _]} ->
            {error, ["--tables names ", Twice, " twice"]}
    end;
%% Tables that a user could not choose are left out.
tables(#{mine := _}) ->
    {ok, [Table || Table <- variants(), is_choice(Table)]};
tables(_) ->
    {ok, [Table || {_, {_, usual, _, _}} = Table <- variants()]}.

is_choice({_, {Name, _, Settings, _}}) ->
    Name =/= "none" andalso maps:get(type, Settings, none) =/= bag.

%% Tables that cannot do a mix are left out of it.
jobs(Tables, Mixes) ->
    case [job(Module, Variant, Mix)
          || Mix <- Mixes, {Module, Variant} <- Tables, cannot(Module, Variant, Mix) =:= []] of
        [_ | _] = Jobs ->
            {ok, Jobs};
        [] ->
            {Module, {Name, _, _, _} = Variant} = hd(Tables),
            {error, io_lib:format("none of the tables can do what is asked: ~ts cannot ~ts",
                                  [Name, lists:join(", ", [atom_to_list(Op) || Op <- cannot(
                                      Module, Variant, hd(Mixes))])])}
    end.

cannot(Module, {_, _, Settings, _}, Mix) ->
    maps:keys(sderl_bench_tables_mix:shares(Mix)) -- Module:can(Settings).

job(Module, {Table, _, Own, How}, Mix) ->
    Text = sderl_bench_tables_mix:text(Mix),
    Name = unicode:characters_to_binary([Table, ": ", Text]),
    Settings = (maps:merge(Mix, Own))#{
        kind => Module, table => unicode:characters_to_binary(Table), mix => Text,
        how => unicode:characters_to_binary(How)
    },
    #{name => Name, job => {program, sderl_bench_tables_load, Settings}, settings => Settings,
      modules => [sderl_bench_tables_load, sderl_bench_tables_keys
                  | sderl_bench_vm_program:modules(Module)]}.
