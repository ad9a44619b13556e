%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_words).
-moduledoc "What the options of `bin/sderl prof` mean. Pure.".

-export([options/1, metrics/1, range/1, readings/1]).

-define(MIB, 1_048_576).

-doc "The options of `record` as those of `m:sderl_prof_options`, or what is wrong with one.".
-spec options(#{atom() => term()}) -> {ok, sderl_prof_options:options()}
                                      | {wrong, sderl_command:text()}.
options(Parsed) ->
    maybe
        {ok, What} ?= what(words(maps:get(what, Parsed, "concurrency")), []),
        Simple = [{seconds, S} || #{seconds := S} <- [Parsed]] ++
            [{bytes, M * ?MIB} || #{mib := M} <- [Parsed]] ++
            [{keep, last} || #{last := true} <- [Parsed]] ++
            [{modules, [list_to_atom(M) || M <- words(Text)]} || #{modules := Text} <- [Parsed]] ++
            [{who, Who} || Who <- who(Parsed)],
        Same = maps:with([above, share], Parsed),
        {ok, maps:merge(Same, maps:from_list([{what, What} | Simple]))}
    end.

words(Text) -> string:lexemes(Text, ", ").

what([Word | Words], Found) ->
    Known = sderl_prof_options:profiles() ++ sderl_prof_options:items(),
    case [Name || Name <- Known, atom_to_list(Name) =:= Word] of
        [Name] -> what(Words, [Name | Found]);
        [] ->
            {wrong, ["--what: there is no \"", Word, "\"; there are ",
                     lists:join(", ", [atom_to_list(Name) || Name <- Known])]}
    end;
what([], Found) -> {ok, lists:reverse(Found)}.

%% Names of a person at a terminal, not of a network.
who(Parsed) ->
    Names = case Parsed of
        #{who := Text} when Text =:= "all"; Text =:= "new"; Text =:= "existing" ->
            list_to_atom(Text);
        #{who := Text} -> [list_to_atom(Name) || Name <- words(Text)];
        _ -> []
    end,
    case Parsed of
        #{app := App} when is_list(Names) -> [Names ++ [{application, list_to_atom(App)}]];
        #{app := App} -> [[{application, list_to_atom(App)}]];
        _ when Names =:= [] -> [];
        _ -> [Names]
    end.

-doc "The measures of `report --by`.".
-spec metrics(#{atom() => term()}) -> {ok, [atom()]} | {wrong, sderl_command:text()}.
metrics(#{by := "all"}) -> {ok, sderl_prof_report:metrics()};
metrics(#{by := Text}) ->
    Known = [{atom_to_list(Metric), Metric} || Metric <- sderl_prof_report:metrics()],
    Found = [proplists:get_value(Word, Known, {no, Word}) || Word <- words(Text)],
    case [Word || {no, Word} <- Found] of
        [] when Found =/= [] -> {ok, Found};
        Wrong ->
            {wrong, ["--by: there is no \"", lists:join(", ", Wrong), "\"; there are all, ",
                     lists:join(", ", [Name || {Name, _} <- Known])]}
    end;
metrics(_) -> {ok, [run, runnable, gc]}.

-doc "The part of a trace of `path --from --to`, in nanoseconds.".
-spec range(#{atom() => term()}) ->
    {ok, #{from => non_neg_integer(), to => non_neg_integer()}} | {wrong, sderl_command:text()}.
range(Parsed) ->
    Seconds = maps:with([from, to], Parsed),
    case {maps:values(Seconds), maps:get(from, Parsed, 0), maps:get(to, Parsed, infinity)} of
        {_, From, To} when From >= To -> {wrong, "--from is before --to, in seconds"};
        {Values, _, _} ->
            case lists:all(fun(S) -> S >= 0 andalso S =< 1.0e9 end, Values) of
                true -> {ok, #{Key => round(S * 1.0e9) || Key := S <- Seconds}};
                false -> {wrong, "--from and --to are seconds since the begin, from 0 on"}
            end
    end.

-doc "The options of `vm` as those of `m:sderl_prof_vm`.".
-spec readings(#{atom() => term()}) -> {ok, sderl_prof_vm:options()}
                                       | {wrong, sderl_command:text()}.
readings(Parsed) ->
    %% No module has a longer name than an atom can be.
    Modules = #{modules => [list_to_atom(lists:sublist(M, 255)) || M <- words(Text)]
                || #{modules := Text} <- [Parsed]},
    Probes = #{probes => [unicode:characters_to_binary(Name) || Name <- words(Text)]
               || #{probes := Text} <- [Parsed]},
    Record = #{record => filename:absname(File) || #{record := File} <- [Parsed]},
    Options = lists:foldl(fun maps:merge/2, maps:with([seconds, measure, top, perf], Parsed),
                          [Modules, Probes, Record]),
    case {sderl_prof_vm:check(Options), Modules} of
        {ok, #{modules := []}} -> {wrong, "--modules names no module"};
        {ok, _} when Probes =:= #{probes => []} -> {wrong, "--probes names no probe"};
        {ok, _} when is_map_key(measure, Parsed), map_size(Modules) =:= 0 ->
            {wrong, "--measure says what is counted of calls, and needs --modules"};
        {ok, _} when map_size(Record) > 0, map_size(Probes) =:= 0 ->
            {wrong, "--record is of the probes that --probes names"};
        {ok, _} when map_size(Record) > 0 ->
            case sderl_cli_prof_cluster:is_several(Parsed) of
                true -> {wrong, "--record is of one node: several would write the same file"};
                false -> {ok, Options}
            end;
        {ok, _} -> {ok, Options};
        {{error, Why}, _} -> {wrong, ["--", sderl_prof_vm:format_error(Why)]}
    end.
