%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_options).
-moduledoc """
The options of `bin/sderl bench vm`, checked, as `m:sderl_bench_vm_run` takes them. A file of
`--matrix` has the same options as Erlang terms. Options that `bench tables` has too are in
`m:sderl_bench_vm_request`.
""".

-export([arguments/0, check/1]).

-import(sderl_bench_vm_request, [given/3, many/3, all/2]).

%% Percent: a first look needs less precision.
-define(SUITE_WIDTH, "5").

-doc "For `m:argparse`.".
-spec arguments() -> [argparse:argument()].
arguments() ->
    [
        given(program, "LIST", "programs, with commas between them (all that there are)"),
        given(suite, "small", lists:append(["a fixed choice of programs, for a first look (with "
                                            "--width " ?SUITE_WIDTH "): "
                                            | lists:join(", ", suite("small"))])),
        many(mfa, "CALL", "a call to measure, as \"lists:seq(1,1000)\"; may be given again"),
        many(pa, "DIR", "a folder with more modules; may be given again"),
        given(release, "DIR", "a built release, whose applications are started first: the calls of "
                              "--mfa are of its code"),
        given(size, "SIZE", "short, intermediate or long, the published sizes (short)"),
        many(set, "PROGRAM.KEY=VALUE", "a setting of a program, in the place of that of the size, "
                                       "as big.processes=800; may be given again"),
        given(nodes, "LIST", "numbers of nodes, in the place of those of schedulers; 1 is always "
                             "one of them. --schedulers is then the one number of each node (1)"),
        given(matrix, "FILE", "the options above as Erlang terms: {schedulers, \"1,2\"}. "
                              "{vary, \"sub=-,true\"}. and so on; the command line comes first")
        | sderl_bench_vm_request:arguments("vm.jsonl")
    ].

-doc "What to do.".
-spec check(#{atom() => term()}) ->
    {ok, sderl_bench_vm_request:do()} | {error, sderl_command:text()}.
check(Given) ->
    sderl_bench_vm_request:check(Given, fun measure/1).

measure(Given) ->
    Command = #{name => "vm", arguments => arguments(), given => Given},
    maybe
        {ok, Read} ?= with_file(Given),
        {ok, Options} ?= with_release(Read),
        ok ?= add_paths(maps:get(pa, Options, [])),
        {ok, Cores} ?= sderl_bench_vm_request:cores(Options),
        {ok, Jobs} ?= jobs(Options, Cores),
        sderl_bench_vm_request:measure(Command, with_width(Options), Jobs)
    end.

with_width(#{suite := _} = Options) -> maps:merge(#{width => ?SUITE_WIDTH}, Options);
with_width(Options) -> Options.

%% ---------------------------------------------------------------- a file of options

-define(OF_FILE, [program, suite, mfa, pa, release, size, set, cores, schedulers, nodes, flags,
                  vary, otp]).

with_file(#{matrix := File} = Given) ->
    case file:consult(File) of
        {ok, Terms} ->
            set_once(maps:get(set, Given, []), merged(others(Terms, Given), Given, File));
        {error, Reason} -> {error, ["--matrix ", File, ": ", file:format_error(Reason)]}
    end;
with_file(Given) ->
    {ok, Given}.

%% --program and --suite both choose programs, so either on the command line replaces both of the
%% file.
others(Terms, Given) when is_map_key(program, Given); is_map_key(suite, Given) ->
    [Term || Term <- Terms, not names_programs(Term)];
others(Terms, _) ->
    Terms.

names_programs({program, _}) -> true;
names_programs({suite, _}) -> true;
names_programs(_) -> false.

%% A setting on the command line replaces that of the file.
set_once([_ | _] = OfLine, {ok, #{set := All} = Merged}) ->
    OfFile = lists:nthtail(length(OfLine), All),
    {ok, Merged#{set := OfLine ++ sderl_bench_vm_set:others(OfFile, OfLine)}};
set_once(_, Merged) ->
    Merged.

merged([], Given, _) ->
    {ok, Given};
merged([{Key, Value} | Terms], Given, File) when is_atom(Key) ->
    Repeated = lists:member(Key, [mfa, pa, set, vary, otp]),
    case lists:member(Key, ?OF_FILE) andalso is_text(Value) of
        true when Repeated ->
            merged(Terms, Given#{Key => maps:get(Key, Given, []) ++ [Value]}, File);
        true ->
            merged(Terms, maps:merge(#{Key => Value}, Given), File);
        false ->
            {error, io_lib:format("--matrix ~ts: ~0tP is none of its terms: {Key, \"text\"}, with "
                                  "the keys ~ts",
                                  [File, {Key, Value}, 12,
                                   lists:join(", ", [atom_to_list(K) || K <- ?OF_FILE])])}
    end;
merged([Other | _], _, File) ->
    {error, io_lib:format("--matrix ~ts: ~0tP is no term of the form {Key, \"text\"}",
                          [File, Other, 12])}.

is_text([_ | _] = Value) -> io_lib:printable_unicode_list(Value);
is_text(_) -> false.

%% ---------------------------------------------------------------- the parts

with_release(#{release := _, program := _}) ->
    {error, "--release and --program: what is measured of a release is a call, with --mfa"};
with_release(#{release := _, suite := _}) ->
    {error, "--release and --suite: what is measured of a release is a call, with --mfa"};
with_release(#{release := _, pa := _}) ->
    {error, "--release and --pa: a release has all of its code; leave one out"};
with_release(#{release := Dir, mfa := _} = Options) ->
    case sderl_bench_vm_release:read(Dir) of
        {ok, Release} -> {ok, Options#{release := Release}};
        Error -> Error
    end;
with_release(#{release := _}) ->
    {error, "--release: name a call of its code with --mfa"};
with_release(Options) ->
    {ok, Options}.

add_paths([]) ->
    ok;
add_paths([Dir | Dirs]) ->
    case filelib:is_dir(Dir) of
        true ->
            true = code:add_pathz(filename:absname(Dir)),
            add_paths(Dirs);
        false ->
            {error, ["--pa ", Dir, ": there is no such folder"]}
    end.

jobs(Options, Cores) ->
    maybe
        {ok, Size} ?= known_size(maps:get(size, Options, "short")),
        ok ?= known_suite(Options),
        {ok, Changes} ?= sderl_bench_vm_set:all(maps:get(set, Options, [])),
        ok ?= sderl_bench_vm_set:unused(Changes, names(Options)),
        {ok, Programs} ?= all(fun(Name) -> program(Name, Size, Cores, Changes) end,
                              names(Options)),
        ok ?= can_spread(Options, Programs),
        {ok, Calls} ?= all(fun(Text) -> call(Text, maps:get(release, Options, none)) end,
                           maps:get(mfa, Options, [])),
        Jobs = Programs ++ Calls,
        Names = [Name || #{name := Name} <- Jobs],
        {[], _} ?= {Names -- lists:uniq(Names), twice},
        false ?= lists:member(<<"control">>, Names),
        {ok, Jobs}
    else
        {[Twice | _], twice} -> {error, [Twice, " is given twice"]};
        true -> {error, "no program may be called control: that is the harness's own"};
        Error -> Error
    end.

%% The programs to measure; none if only a call is named.
names(#{program := Text}) -> sderl_bench_experiment:words(Text);
names(#{suite := Name}) -> suite(Name);
names(#{mfa := _}) -> [];
names(#{nodes := _}) -> spread();
names(_) -> [Name || {Name, _} <- sderl_bench_vm_program:all()].

%% Computing, memory, messages, one mailbox, tables, timers: few enough to measure in minutes.
suite("small") -> ["mbrot", "ran", "big", "bang", "ets_random_ops", "timer_wheel"].

known_suite(#{suite := _, program := _}) ->
    {error, "--suite and --program: a suite is a list of programs; leave one out"};
known_suite(#{suite := Name}) when Name =/= "small" ->
    {error, ["--suite: there is no suite ", Name, "; there is small"]};
known_suite(_) ->
    ok.

spread() ->
    [Name || {Name, Module} <- sderl_bench_vm_program:all(),
             sderl_bench_vm_program:spreads(Module)].

can_spread(#{nodes := _, mfa := [Call | _]}, _) ->
    {error, ["--mfa ", Call, ": a call runs on one node; leave --nodes out, or make a program of "
                             "it that has spread/0"]};
can_spread(#{nodes := _} = Options, Programs) ->
    case [Name || #{name := Name, job := {program, Module, _}} <- Programs,
                  not sderl_bench_vm_program:spreads(Module)] of
        [] -> free_settings(Programs);
        [Name | _] ->
            {error, [case Options of
                         #{suite := Suite} -> ["--suite ", Suite, ": its program ", Name];
                         #{} -> ["--program ", Name, ": it"]
                     end,
                     " runs on one node", why(Name),
                     "; those that run on several are ", lists:join(", ", spread())]}
    end;
can_spread(_, _) ->
    ok.

why(Name) ->
    {ok, Module} = sderl_bench_vm_program:find(unicode:characters_to_list(Name)),
    case sderl_bench_vm_program:alone(Module) of
        "" -> "";
        Why -> [" (", Why, ")"]
    end.

free_settings(Programs) ->
    case [Name || #{name := Name, settings := #{on := _}} <- Programs] of
        [] -> ok;
        [Name | _] ->
            {error, ["--program ", Name, ": its settings have the key on, which is that of the "
                     "nodes: call it something else"]}
    end.

known_size(Text) ->
    case [Size || Size <- [short, intermediate, long], atom_to_list(Size) =:= Text] of
        [Size] -> {ok, Size};
        [] -> {error, ["--size: there is no size ", Text, "; there are short, intermediate, long"]}
    end.

program(Name, Size, Cores, Changes) ->
    case sderl_bench_vm_program:find(Name) of
        {ok, Module} ->
            maybe
                {ok, Own} ?= settings(Module, Size, Cores),
                {set, {ok, Settings}} ?= {set, sderl_bench_vm_set:applied(Changes, Name, Own)},
                {ok, Operations} ?= sderl_bench_vm_program:operations(Module, Settings),
                {ok, #{name => unicode:characters_to_binary(Name), settings => Settings,
                       operations => Operations, job => {program, Module, Settings},
                       modules => sderl_bench_vm_program:modules(Module)}}
            else
                {set, Error} -> Error;
                {error, Text} -> {error, ["--program: ", Name, Text]}
            end;
        {error, Text} ->
            {error, ["--program: ", Text]}
    end.

%% Settings are part of the file of results, so they must be storable.
settings(Module, Size, Cores) ->
    try Module:settings(Size, Cores) of
        Settings when is_map(Settings) ->
            case sderl_bench_vm_store:is_storable(Settings) of
                true -> {ok, Settings};
                false -> not_settings(Settings)
            end;
        Other ->
            not_settings(Other)
    catch
        Class:Reason ->
            {error, io_lib:format(":settings(~ts, ~w) crashes: ~ts: ~0tP",
                                  [Size, Cores, Class, Reason, 20])}
    end.

not_settings(Term) ->
    {error, io_lib:format(": its settings must be a map of numbers, atoms, binaries, and lists and "
                          "maps of these, and are ~0tP", [Term, 20])}.

call(Text, Release) ->
    maybe
        {ok, Tokens, _} ?= erl_scan:string(case lists:member($(, Text) of
            true -> Text ++ ".";
            false -> Text ++ "()."
        end),
        {ok, [{call, _, {remote, _, {atom, _, Module}, {atom, _, Function}}, Forms}]} ?=
            erl_parse:parse_exprs(Tokens),
        {ok, Args} ?= constants(Forms),
        {ok, Modules} ?= called(Module, {Function, length(Args)}, Release),
        {ok, #{name => unicode:characters_to_binary(Text), settings => #{},
               job => {call, Module, Function, Args}, modules => Modules}}
    else
        {refused, Why} -> {error, ["--mfa ", Text, ": ", Why]};
        _ -> {error, ["--mfa ", Text, ": it has the form module:function(Term, Term)"]}
    end.

%% The modules of a release come with it.
called(Module, {Function, Arity}, none) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case lists:member({Function, Arity}, Module:module_info(exports)) orelse
                     erlang:is_builtin(Module, Function, Arity) of
                true -> {ok, [Module]};
                false ->
                    {refused, io_lib:format("~ts has no such function with ~w argument~ts",
                                            [Module, Arity, [$s || Arity =/= 1]])}
            end;
        {error, _} ->
            {refused, "its module cannot be loaded; name its folder with --pa"}
    end;
called(Module, Function, Release) ->
    case sderl_bench_vm_release:call(Release, Module, Function) of
        ok -> {ok, []};
        {error, Why} -> {refused, Why}
    end.

constants(Forms) ->
    try
        {ok, [erl_parse:normalise(Form) || Form <- Forms]}
    catch
        error:_ -> none
    end.
