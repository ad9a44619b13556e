%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plant).
-moduledoc """
Plants a deliberate fault in the protocol's core without a word about it in the core: functions of the compiled
modules are replaced by others, which are given as text.

```erlang
Core = sderl_plant:core([{sderl_core_peers, "forget(S) -> S."}]),
{failed, _, _} = sderl_sim:run(#{seed => 1, core => Core, forget_ms => 5000, ...}).
```

What is replaced must be there, with as many arguments: a fault whose place in the core has gone is an error that
names it. The text may use the module's records, and call the function that it replaces: `former_forget(S)`.

`core/1` makes a second core beside the first one, for the simulator: modules of other names that know each other. So
schedules with and without a fault run side by side. `beams/1` gives the modules under their own names, for a node
that loads them before the application starts.
""".

-export([core/1, beams/1]).
-export_type([plant/0]).

-type plant() :: {module(), Functions :: string()}.

-doc "The planted core: what a simulated schedule takes as `core`.".
-spec core([plant()]) -> module().
core(Plants) ->
    Suffix = [$@ | integer_to_list(erlang:phash2(Plants, 1 bsl 32), 36)],
    %% (The names follow from the modules of the library and the faults of the tests.)
    Names = #{M => list_to_atom(atom_to_list(M) ++ Suffix) || M <- modules()},
    Core = map_get(sderl_core, Names),
    case code:is_loaded(Core) of
        {file, _} -> Core;
        false ->
            Beams = [{map_get(M, Names), compiled(renamed(planted(M, Plants), Names))} || M <- modules()],
            lists:foreach(fun({M, Beam}) -> {module, M} = code:load_binary(M, "planted", Beam) end, Beams),
            Core
    end.

-doc "The modules that are changed, with their code.".
-spec beams([plant()]) -> [{module(), binary()}].
beams(Plants) -> [{M, compiled(planted(M, Plants))} || M <- lists:usort([M || {M, _} <- Plants])].

modules() ->
    _ = application:load(sderl),
    {ok, Modules} = application:get_key(sderl, modules),
    [M || M <- Modules, lists:prefix("sderl_core", atom_to_list(M))].

planted(Module, Plants) ->
    lists:foldl(fun(New, Forms) -> replaced(New, Forms, Module) end, forms(Module),
                lists:append([functions(Text) || {M, Text} <- Plants, M =:= Module])).

forms(Module) ->
    case beam_lib:chunks(code:which(Module), [abstract_code]) of
        {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} -> Forms;
        _ -> error({no_debug_info, Module, "compile it with debug_info to plant a fault in it"})
    end.

functions(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    lists:foldr(fun({dot, _} = Dot, Acc) -> [[Dot] | Acc];
                   (Token, [Form | Acc]) -> [[Token | Form] | Acc]
                end, [], Tokens).

replaced(Tokens, Forms, Module) ->
    {ok, {function, _, Name, Arity, _} = New} = erl_parse:parse_form(Tokens),
    Former = list_to_atom("former_" ++ atom_to_list(Name)),
    case [F || {function, _, N, A, _} = F <- Forms, N =:= Name, A =:= Arity] of
        [{function, Anno, _, _, Clauses} = Old] ->
            lists:append([case F of
                              Old -> [New, {function, Anno, Former, Arity, Clauses}];
                              _ -> [F]
                          end || F <- Forms]);
        [] -> error({no_such_function, {Module, Name, Arity}, "a planted fault replaces what is not there"})
    end.

%% Wherever a module is named.
renamed(Atom, Names) when is_map_key(Atom, Names) -> map_get(Atom, Names);
renamed([H | T], Names) -> [renamed(H, Names) | renamed(T, Names)];
renamed(Tuple, Names) when is_tuple(Tuple) -> list_to_tuple(renamed(tuple_to_list(Tuple), Names));
renamed(Other, _) -> Other.

compiled(Forms) ->
    case compile:forms(Forms, [binary, return_errors, nowarn_unused_function, nowarn_unused_vars]) of
        {ok, _, Beam} -> Beam;
        {ok, _, Beam, _} -> Beam;
        {error, Errors, _} -> error({planted_fault_does_not_compile, Errors})
    end.
