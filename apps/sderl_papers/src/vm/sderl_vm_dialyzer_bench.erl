%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_dialyzer_bench).
-moduledoc """
`dialyzer_bench`: Dialyzer makes a table of the types of some modules of `stdlib`, and then analyses
others of them with it, one stage each. The 8, 24 or 48 smallest modules are divided between both,
by the size: the published one analyses all of OTP, which takes minutes for a repetition.

It has no operations: its stages do different things with different modules.

The output is the number of modules, and not what is found in them, which differs between versions
of OTP. It needs the modules' debug information, which most distributions of OTP have.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, alone/0, stages/1, prepare/1, run/2, finish/1]).

-doc false.
-spec summary() -> string().
summary() -> "Dialyzer on modules of stdlib".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, _Cores) ->
    #{modules => maps:get(Size, #{short => 8, intermediate => 24, long => 48})}.

-doc false.
-spec alone() -> string().
alone() -> "Dialyzer is of one node".

-doc false.
-spec stages(sderl_bench_vm_program:settings()) -> [atom(), ...].
stages(_) -> [types, analysis].

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(#{modules := Count}) ->
    _ = code:ensure_loaded(dialyzer) =:= {module, dialyzer}
        orelse error("this OTP has no Dialyzer: it is a package of its own in some systems"),
    Beams = filelib:wildcard(filename:join(code:lib_dir(stdlib), "ebin/*.beam")),
    Sized = lists:sort([{filelib:file_size(Beam), Beam} || Beam <- Beams]),
    %% Each stage has at least one module.
    Chosen = first(max(2, Count), [Beam || {_, Beam} <- Sized]),
    _ = length(Chosen) > 1 orelse error("the modules of stdlib have no debug information"),
    {First, Others} = lists:split(length(Chosen) div 2, Chosen),
    Unique = erlang:unique_integer([positive]),
    Plt = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["sderl_dialyzer_", os:getpid(), "_", Unique, ".plt"])),
    {Plt, First, Others}.

%% The first `Count` modules with debug information, or all where there are fewer.
first(0, _) -> [];
first(_, []) -> [];
first(Count, [Beam | Beams]) ->
    case has_code(Beam) of
        true -> [Beam | first(Count - 1, Beams)];
        false -> first(Count, Beams)
    end.

has_code(Beam) ->
    case beam_lib:chunks(Beam, [abstract_code]) of
        {ok, {_, [{abstract_code, {raw_abstract_v1, _}}]}} -> true;
        _ -> false
    end.

-doc false.
-spec run(atom(), term()) -> term().
run(types, {Plt, First, Others}) ->
    _ = dialyzer:run([{analysis_type, plt_build}, {files, First}, {output_plt, Plt},
                      {warnings, [no_unknown]}]),
    {Plt, First, Others};
run(analysis, {Plt, First, Others}) ->
    _ = dialyzer:run([{analysis_type, succ_typings}, {files, Others}, {init_plt, Plt},
                      {warnings, [no_unknown]}]),
    {Plt, First, Others}.

-doc false.
-spec finish(term()) -> {non_neg_integer(), non_neg_integer()}.
finish({Plt, First, Others}) ->
    ok = file:delete(Plt),
    {length(First), length(Others)}.
