%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plant).
-moduledoc """
Plants deliberate faults in the library, whose sources do not mention them: the abstract code of its
modules is changed and compiled again.

A fault is one of those that `m:sderl_planted` lists, a function, or a piece of code and its
replacement:

```erlang
Core = sderl_plant:core([rule_7, {sderl_core_peers, "forget(S) -> S."},
                         {sderl_core_elect, "lists:sort(Better)", "[]"}]).
{failed, _, _} = sderl_sim:run(#{seed => 1, core => Core, forget_ms => 5000, ...}).
```

The replaced code must exist exactly once: a fault whose code is not in the library any more is an
error that names it. A piece of code is one expression; its layout does not matter. A
function that replaces another of its name may use the module's records, and call the function that
it replaces: `former_forget(S)`.

`core/1` and `module/2` make changed modules beside the real ones, under other names by which they
call each other: so schedules with and without a fault run side by side. `beams/1` gives them under
their own names, for a node on which `start/1` loads them before the application starts.
""".

-export([core/1, module/2, beams/1, start/1, check/1]).
-export_type([plant/0]).

-type plant() ::
    sderl_planted:fault()
    | {module(), Functions :: string()}
    | {module(), Old :: string(), New :: string()}.

%% The file name of a changed module.
-define(PLANTED, "planted").
%% The effect of a fault shows without these passes, and compiling takes a third of the time.
-define(QUICK, [no_copt, no_ssa_opt, no_type_opt, no_bool_opt, no_share_opt, no_recv_opt,
                no_bsm_opt, no_fun_opt, no_throw_opt, no_postopt]).

-doc "The core with these faults: what a simulated schedule takes as `core`.".
-spec core([plant()]) -> module().
core(Plants) -> module(sderl_core, Plants).

-doc "The module with these faults; itself if they do not change it.".
-spec module(module(), [plant()]) -> module().
module(Module, []) -> Module;
module(Module, Plants) ->
    Changes = changes(Plants),
    Modules = copied(Changes),
    case lists:member(Module, Modules) of
        false -> Module;
        true ->
            Suffix = [$@ | integer_to_list(erlang:phash2(Changes, 1 bsl 32), 36)],
            %% The names follow from the modules of the library and the faults of the tests.
            Names = #{M => list_to_atom(atom_to_list(M) ++ Suffix) || M <- Modules},
            Copy = map_get(Module, Names),
            %% One at a time: loading a module twice would kill the processes that run the first
            %% one.
            is_loaded(Copy) orelse global:trans({{?MODULE, Suffix}, self()}, fun() ->
                is_loaded(Copy) orelse load(Names, Changes)
            end, [node()]),
            Copy
    end.

is_loaded(Module) -> code:is_loaded(Module) =/= false.

is_copy(Module) -> lists:member($@, atom_to_list(Module)).

load(Names, Changes) ->
    Beams = [{Name, ?PLANTED, copy(M, [C || C <- Changes, element(1, C) =:= M], Names)}
             || M := Name <- Names],
    ok = code:atomic_load(Beams),
    true.

%% Most modules of a copy differ only in the names, so their assembly is renamed.
copy(Module, [], Names) -> compiled(renamed(assembly(Module), Names), [from_asm]);
copy(Module, Changes, Names) -> compiled(renamed(planted(Module, Changes), Names), ?QUICK).

assembly(Module) ->
    Key = {?MODULE, Module, Module:module_info(md5)},
    case persistent_term:get(Key, none) of
        none ->
            Assembly = compiled(forms(Module), [to_asm | ?QUICK]),
            ok = persistent_term:put(Key, Assembly),
            Assembly;
        Assembly ->
            Assembly
    end.

%% All modules of the core are copied, because they call each other.
copied(Changes) ->
    Changed = lists:usort([element(1, C) || C <- Changes]),
    case lists:any(fun is_core/1, Changed) of
        false -> Changed;
        true -> lists:usort(Changed ++ core_modules())
    end.

core_modules() ->
    _ = application:load(sderl),
    {ok, Modules} = application:get_key(sderl, modules),
    [M || M <- Modules, is_core(M)].

is_core(Module) -> lists:prefix("sderl_core", atom_to_list(Module)).

-doc "The modules that are changed, with their code.".
-spec beams([plant()]) -> [{module(), binary()}].
beams(Plants) ->
    Changes = changes(Plants),
    [{M, compiled(planted(M, Changes), [])} || M <- lists:usort([element(1, C) || C <- Changes])].

-doc """
Starts `sderl` on this node with these modules of it changed, and no others. The application must
not be running: `{error, {already_started, sderl}}` otherwise; other errors are those of
`application:ensure_all_started/1`.
""".
-spec start([{module(), binary()}]) -> {ok, [atom()]} | {error, term()}.
start(Beams) ->
    case lists:keymember(sderl, 1, application:which_applications()) of
        true -> {error, {already_started, sderl}};
        false ->
            Former = [M || {M, ?PLANTED} <- code:all_loaded(), not is_copy(M)],
            lists:foreach(fun(M) ->
                _ = code:purge(M),
                {module, M} = code:load_file(M)
            end, Former),
            lists:foreach(fun({M, Beam}) ->
                _ = code:purge(M),
                {module, M} = code:load_binary(M, ?PLANTED, Beam)
            end, Beams),
            application:ensure_all_started(sderl)
    end.

-doc "Raises an error if some code that these faults replace is not in the library exactly once.".
-spec check([plant()]) -> ok.
check(Plants) ->
    Changes = changes(Plants),
    lists:foreach(fun(M) -> planted(M, Changes) end, lists:usort([element(1, C) || C <- Changes])).

%% ---------------------------------------------------------------- changing a module

%% Two faults may have a part in common.
changes(Plants) ->
    lists:uniq(lists:append([case is_atom(P) of
                                 true -> sderl_planted:changes(P);
                                 false -> [P]
                             end || P <- Plants])).

planted(Module, Changes) ->
    lists:foldl(fun changed/2, forms(Module), [C || C <- Changes, element(1, C) =:= Module]).

%% Without line numbers, which would make equal code differ.
forms(Module) ->
    case beam_lib:chunks(file_of(Module), [abstract_code]) of
        {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} -> [bare(F) || F <- Forms];
        _ -> error({no_debug_info, Module, "compile it with debug_info to plant a fault in it"})
    end.

%% The file of a module, also if the module is loaded with a fault.
file_of(Module) ->
    case code:which(Module) of
        ?PLANTED -> code:where_is_file(atom_to_list(Module) ++ ".beam");
        File -> File
    end.

changed({_, Text}, Forms) -> lists:foldl(fun replaced/2, Forms, functions(Text));
changed({Module, Old, New}, Forms) ->
    Code = expression(Old),
    case count(Code, Forms) of
        1 -> put_in_place(Code, expression(New), Forms);
        Count ->
            error({not_once, {Module, Old, {found, Count}},
                   "a planted fault replaces what is there once"})
    end.

functions(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    lists:foldr(fun({dot, _} = Dot, Acc) -> [[Dot] | Acc];
                   (Token, [Form | Acc]) -> [[Token | Form] | Acc]
                end, [], Tokens).

replaced(Tokens, Forms0) ->
    {ok, Parsed} = erl_parse:parse_form(Tokens),
    {function, _, Name, Arity, _} = New = bare(Parsed),
    Former = former(Name),
    %% The code of an earlier fault may call the function that it replaced.
    Forms = renamed(Forms0, #{Former => former(Former)}),
    {attribute, _, module, Module} = lists:keyfind(module, 3, Forms),
    case [F || {function, _, N, A, _} = F <- Forms, N =:= Name, A =:= Arity] of
        [{function, Anno, _, _, Clauses} = Old] ->
            lists:append([case F of
                              Old -> [New, {function, Anno, Former, Arity, Clauses}];
                              _ -> [F]
                          end || F <- Forms]);
        [] ->
            error({no_such_function, {Module, Name, Arity},
                   "a planted fault replaces what is not there"})
    end.

former(Name) -> list_to_atom("former_" ++ atom_to_list(Name)).

expression(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, [Expression]} = erl_parse:parse_exprs(Tokens),
    bare(Expression).

bare({eof, _}) -> {eof, erl_anno:new(0)};
bare(Form) -> bare_fields(erl_parse:map_anno(fun(_) -> erl_anno:new(0) end, Form)).

%% map_anno/2 leaves out the field's name in S#s.field.
bare_fields({record_field, Anno, Record, Name, {atom, _, Field}}) ->
    {record_field, Anno, bare_fields(Record), Name, {atom, Anno, Field}};
bare_fields(Tuple) when is_tuple(Tuple) -> list_to_tuple(bare_fields(tuple_to_list(Tuple)));
bare_fields([H | T]) -> [bare_fields(H) | bare_fields(T)];
bare_fields(Other) -> Other.

count(Code, Code) -> 1;
count(Code, [H | T]) -> count(Code, H) + count(Code, T);
count(Code, Tuple) when is_tuple(Tuple) -> count(Code, tuple_to_list(Tuple));
count(_, _) -> 0.

put_in_place(Code, New, Code) -> New;
put_in_place(Code, New, [H | T]) ->
    [put_in_place(Code, New, H) | put_in_place(Code, New, T)];
put_in_place(Code, New, Tuple) when is_tuple(Tuple) ->
    list_to_tuple(put_in_place(Code, New, tuple_to_list(Tuple)));
put_in_place(_, _, Other) -> Other.

%% Renames modules wherever they are named.
renamed(Atom, Names) when is_map_key(Atom, Names) -> map_get(Atom, Names);
renamed([H | T], Names) -> [renamed(H, Names) | renamed(T, Names)];
renamed(Tuple, Names) when is_tuple(Tuple) -> list_to_tuple(renamed(tuple_to_list(Tuple), Names));
renamed(Map, Names) when is_map(Map) -> maps:from_list(renamed(maps:to_list(Map), Names));
renamed(Other, _) -> Other.

compiled(Forms, Options) ->
    Quiet = [binary, return_errors, nowarn_unused_function, nowarn_unused_vars],
    case compile:forms(Forms, Quiet ++ Options) of
        {ok, _, Beam} -> Beam;
        {ok, _, Beam, _} -> Beam;
        {error, Errors, _} -> error({planted_fault_does_not_compile, Errors})
    end.
