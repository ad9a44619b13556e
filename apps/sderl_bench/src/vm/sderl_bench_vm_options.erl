%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_options).
-moduledoc """
The options of `bin/sderl bench vm`: their check, and what they ask for, as
`m:sderl_bench_vm_run` takes it. A file of `--matrix` has the same as Erlang terms.
""".

-export([arguments/0, check/1]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, numbers/4, real/4]).

-define(MOST_SCHEDULERS, 1024).

-doc "For `m:argparse`.".
-spec arguments() -> [argparse:argument()].
arguments() ->
    [
        given(program, "LIST", "programs, with commas between them (all that there are)"),
        many(mfa, "CALL", "a call to measure, as \"lists:seq(1,1000)\"; may be given again"),
        many(pa, "DIR", "a folder with more modules; may be given again"),
        given(size, "SIZE", "short, intermediate or long, the published sizes (short)"),
        given(cores, "N", "cores that the sizes are for (those of this machine)"),
        given(schedulers, "LIST", "numbers of schedulers; 1 is always one of them (1, 2, 4 ... and "
                                  "the number of cores)"),
        given(flags, "FLAGS", "flags of the virtual machine for all points, as \"+sub true\""),
        many(vary, "FLAG=V,V", "values of a flag to go through, - is without it: "
                               "sbwt=-,none,very_long; given again, all combinations"),
        many(otp, "NAME=PATH", "another OTP beside this one: its erl, or its folder; may be given "
                               "again"),
        given(matrix, "FILE", "the options above as Erlang terms: {schedulers, \"1,2\"}. "
                              "{vary, \"sub=-,true\"}. and so on; the command line comes first"),
        option(out, "FILE", string, "vm.jsonl",
               "the file of results; one of the same settings is continued"),
        option(budget_min, "M", string, "10", "minutes that it may take"),
        option(width, "PCT", string, "2",
               "a point is done when its median is known so well, in percent to either side"),
        option(least, "N", integer, sderl_bench_vm_plan:least(),
               "virtual machines of each point at least"),
        option(rounds, "N", integer, 100, "virtual machines of each point at most"),
        option(runs, "N", integer, 5, "runs in each virtual machine after its warm-up"),
        option(run_ms, "MS", integer, 200, "a run takes so long on one scheduler, by repetition"),
        option(vm_s, "S", integer, 10,
               "seconds after which a virtual machine does no more runs"),
        option(limit_s, "S", integer, 120, "seconds after which a virtual machine is killed"),
        given(seed, "N", "of the order of the points (from the clock)"),
        given(show, "FILE", "measure nothing: the report of a file of results"),
        #{name => compare, long => "-compare", nargs => 2, required => false,
          help => {"[--compare BEFORE AFTER]",
                   ["measure nothing: what became slower; exit status 1 where anything did"]}},
        option(threshold, "PCT", string, "1", "with --compare, differences below count as none"),
        sderl_command:flag(strict, "with --compare, exit status 1 also for undecided points")
    ].

given(Name, Shape, Text) -> sderl_command:option(Name, Shape, string, Text).

many(Name, Shape, Text) -> (given(Name, Shape, Text))#{action => append}.

-doc """
What to do: `{show, File}`, `{compare, Before, After, Counts, Strict}` or `{measure, Options}`.
""".
-spec check(#{atom() => term()}) ->
    {ok, {show, file:filename()}
         | {compare, file:filename(), file:filename(), float(), boolean()}
         | {measure, sderl_bench_vm_run:options()}}
    | {error, sderl_command:text()}.
check(#{show := _, compare := _}) ->
    {error, "--show and --compare are two commands: leave one out"};
check(#{show := File}) ->
    {ok, {show, File}};
check(#{compare := [Before, After], threshold := Text, strict := Strict}) ->
    case real("--threshold", Text, 0, 50) of
        {ok, Percent} -> {ok, {compare, Before, After, Percent / 100, Strict}};
        Error -> Error
    end;
check(#{strict := true}) ->
    {error, "--strict is for --compare"};
check(Given) ->
    maybe
        {ok, Options} ?= with_file(Given),
        ok ?= at_least(1, [least, rounds, runs, run_ms, vm_s, limit_s], Options),
        ok ?= at_most([{runs, 1000}, {run_ms, 600_000}, {limit_s, 86_400}, {rounds, 100_000}],
                      Options),
        {ok, Minutes} ?= real("--budget-min", maps:get(budget_min, Options), 0.01, 100_000),
        {ok, Width} ?= real("--width", maps:get(width, Options), 0.01, 100),
        ok ?= add_paths(maps:get(pa, Options, [])),
        {ok, Cores} ?= cores(Options),
        {ok, Matrix} ?= matrix(Options),
        {ok, Otps, Files} ?= otps(maps:get(otp, Options, [])),
        {ok, Points} ?= sderl_bench_vm_matrix:points(Matrix#{otps => Otps}),
        {ok, Jobs} ?= jobs(Options, Cores),
        {ok, Seed} ?= seed(Options),
        {ok, {measure, asked(Options, Points, Jobs, Files, Cores, #{
            command => command_line(Given), seed => Seed, width => Width / 100,
            budget_ms => round(Minutes * 60_000)
        })}}
    end.

%% ---------------------------------------------------------------- a file of options

-define(OF_FILE, [program, mfa, pa, size, cores, schedulers, flags, vary, otp]).

with_file(#{matrix := File} = Given) ->
    case file:consult(File) of
        {ok, Terms} -> merged(Terms, Given, File);
        {error, Reason} -> {error, ["--matrix ", File, ": ", file:format_error(Reason)]}
    end;
with_file(Given) ->
    {ok, Given}.

merged([], Given, _) ->
    {ok, Given};
merged([{Key, Value} | Terms], Given, File) when is_atom(Key) ->
    Repeated = lists:member(Key, [mfa, pa, vary, otp]),
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

cores(#{cores := Text}) ->
    case numbers("--cores", Text, 1, ?MOST_SCHEDULERS) of
        {ok, [Cores]} -> {ok, Cores};
        {ok, _} -> {error, "--cores takes one number"};
        Error -> Error
    end;
cores(_) ->
    {ok, map_get(cores, sderl_bench_machine:info())}.

matrix(Options) ->
    maybe
        {ok, Schedulers} ?= schedulers(Options),
        {ok, Flags} ?= sderl_bench_vm_matrix:flags(maps:get(flags, Options, "")),
        {ok, Vary} ?= all(fun sderl_bench_vm_matrix:vary/1, maps:get(vary, Options, [])),
        {ok, #{schedulers => Schedulers, flags => Flags, vary => Vary}}
    end.

schedulers(#{schedulers := Text}) ->
    numbers("--schedulers", Text, 1, ?MOST_SCHEDULERS);
schedulers(_) ->
    Cores = map_get(cores, sderl_bench_machine:info()),
    {ok, lists:usort([Cores | [N || I <- lists:seq(0, 10), N <- [1 bsl I], N < Cores]])}.

all(Fun, Texts) -> all(Fun, Texts, []).

all(_, [], Done) -> {ok, lists:reverse(Done)};
all(Fun, [Text | Texts], Done) ->
    case Fun(Text) of
        {ok, Value} -> all(Fun, Texts, [Value | Done]);
        Error -> Error
    end.

%% The OTP that runs this has no name where it is the only one: so results of two can be compared.
otps([]) ->
    {ok, [""], [{"", own}]};
otps(Texts) ->
    Own = erlang:system_info(otp_release),
    maybe
        {ok, Others} ?= all(fun otp/1, Texts),
        Names = [Own | [Name || {Name, _} <- Others]],
        [] ?= Names -- lists:uniq(Names),
        {ok, Names, [{Own, own} | Others]}
    else
        {error, Text} -> {error, Text};
        [Twice | _] ->
            {error, ["two OTPs are called ", Twice, " (the one that runs this is called ", Own,
                     "); give another NAME in --otp NAME=PATH"]}
    end.

otp(Text) ->
    case string:split(Text, "=") of
        [[_ | _] = Name, [_ | _] = Path] ->
            case [File || File <- [Path, filename:join(Path, "erl"),
                                   filename:join([Path, "bin", "erl"])],
                          filelib:is_regular(File)] of
                [Erl | _] -> {ok, {Name, filename:absname(Erl)}};
                [] -> {error, ["--otp ", Text, ": there is no erl, and no bin/erl in it"]}
            end;
        _ ->
            {error, ["--otp ", Text, ": it has the form NAME=PATH, as in 27=/opt/otp27"]}
    end.

jobs(Options, Cores) ->
    maybe
        {ok, Size} ?= known_size(maps:get(size, Options, "short")),
        {ok, Programs} ?= all(fun(Name) -> program(Name, Size, Cores) end, names(Options)),
        {ok, Calls} ?= all(fun call/1, maps:get(mfa, Options, [])),
        Jobs = Programs ++ Calls,
        Names = [Name || {Name, _, _} <- Jobs],
        {[], _} ?= {Names -- lists:uniq(Names), twice},
        false ?= lists:member(<<"control">>, Names),
        {ok, Jobs}
    else
        {[Twice | _], twice} -> {error, [Twice, " is given twice"]};
        true -> {error, "no program may be called control: that is the harness's own"};
        Error -> Error
    end.

%% With a call and no program, the call alone.
names(#{program := Text}) -> sderl_bench_experiment:words(Text);
names(#{mfa := _}) -> [];
names(_) -> [Name || {Name, _} <- sderl_bench_vm_program:all()].

known_size(Text) ->
    case [Size || Size <- [short, intermediate, long], atom_to_list(Size) =:= Text] of
        [Size] -> {ok, Size};
        [] -> {error, ["--size: there is no size ", Text, "; there are short, intermediate, long"]}
    end.

program(Name, Size, Cores) ->
    case sderl_bench_vm_program:find(Name) of
        {ok, Module} ->
            case settings(Module, Size, Cores) of
                {ok, Settings} ->
                    {ok, {unicode:characters_to_binary(Name), {program, Module, Settings},
                          Settings}};
                {error, Text} ->
                    {error, ["--program: ", Name, Text]}
            end;
        {error, Text} ->
            {error, ["--program: ", Text]}
    end.

%% They are a part of the file of results.
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

call(Text) ->
    maybe
        {ok, Tokens, _} ?= erl_scan:string(case lists:member($(, Text) of
            true -> Text ++ ".";
            false -> Text ++ "()."
        end),
        {ok, [{call, _, {remote, _, {atom, _, Module}, {atom, _, Function}}, Forms}]} ?=
            erl_parse:parse_exprs(Tokens),
        {ok, Args} ?= constants(Forms),
        {module, Module} ?= code:ensure_loaded(Module),
        Arity = length(Args),
        {true, _, _} ?= {lists:member({Function, Arity}, Module:module_info(exports)) orelse
                             erlang:is_builtin(Module, Function, Arity), Module, Arity},
        {ok, {unicode:characters_to_binary(Text), {call, Module, Function, Args}, #{}}}
    else
        {false, Of, Count} ->
            {error, io_lib:format("--mfa ~ts: ~ts has no such function with ~w arguments",
                                  [Text, Of, Count])};
        {error, Why} when is_atom(Why) ->
            {error, ["--mfa ", Text, ": its module cannot be loaded; name its folder with --pa"]};
        _ ->
            {error, ["--mfa ", Text, ": it has the form module:function(Term, Term)"]}
    end.

constants(Forms) ->
    try
        {ok, [erl_parse:normalise(Form) || Form <- Forms]}
    catch
        error:_ -> none
    end.

seed(#{seed := Text}) ->
    case numbers("--seed", Text, 0, 1 bsl 48) of
        {ok, [Seed]} -> {ok, Seed};
        {ok, _} -> {error, "--seed takes one number"};
        Error -> Error
    end;
seed(_) ->
    {ok, erlang:system_time(microsecond) band 16#ffffff}.

%% ---------------------------------------------------------------- what is asked for

asked(Options, Points, Jobs, Otps, Cores, More) ->
    Programs = [#{name => Name, control => false, job => Job, points => Points}
                || {Name, Job, _} <- Jobs],
    Spin = sderl_bench_vm_spin:settings(short, Cores),
    Control = #{name => <<"control">>, control => true,
                job => {program, sderl_bench_vm_spin, Spin}, points => of_control(Points)},
    Limits = maps:with([rounds, least, runs], Options),
    Modules = lists:usort([sderl_bench_vm_spin | lists:append([modules(Job)
                                                               || {_, Job, _} <- Jobs])]),
    maps:merge(maps:merge(Limits, maps:remove(command, More)), #{
        out => maps:get(out, Options),
        programs => [Control | Programs],
        otps => Otps,
        modules => Modules,
        limit_ms => 1000 * maps:get(limit_s, Options),
        run_ns => 1_000_000 * maps:get(run_ms, Options),
        most_ns => 1_000_000_000 * maps:get(vm_s, Options),
        header => #{
            machine => sderl_bench_vm_host:info(),
            seed => maps:get(seed, More),
            started => sderl_bench_output:now(),
            command => maps:get(command, More),
            settings => #{
                programs => [#{name => <<"control">>, control => true, settings => Spin}
                             | [#{name => Name, control => false, settings => Settings}
                                || {Name, _, Settings} <- Jobs]],
                points => [point(Point) || Point <- Points],
                otp => maps:get(otp, sderl_bench_machine:info()),
                code => code(Modules ++ sderl_bench_vm_start:harness()),
                otps => [[unicode:characters_to_binary(Name), case Path of
                    own -> own;
                    _ -> unicode:characters_to_binary(Path)
                end] || {Name, Path} <- Otps],
                cores => Cores,
                run_ms => maps:get(run_ms, Options),
                runs => maps:get(runs, Options)
            }
        }
    }).

%% Results of a program before and after it was changed are not those of one program.
code(Modules) ->
    #{Module => binary:encode_hex(Module:module_info(md5), lowercase) || Module <- Modules}.

%% The command that asks for this, without what is a default.
command_line(Given) ->
    unicode:characters_to_binary([
        "bin/sderl bench vm",
        [[" -", Long, " ", quoted(Value)]
         || #{name := Name, long := Long} = Argument <- arguments(),
            #{Name := Values} <- [Given],
            Values =/= maps:get(default, Argument, none),
            Value <- case Argument of #{action := append} -> Values; #{} -> [Values] end]
    ]).

quoted(Number) when is_integer(Number) -> integer_to_list(Number);
quoted(Text) ->
    case re:run(Text, "^[A-Za-z0-9_,.:/=+-]+$", [unicode]) of
        {match, _} -> Text;
        nomatch -> ["'", string:replace(Text, "'", "'\\''", all), "'"]
    end.

point(#{schedulers := N, flags := Flags, otp := Otp}) ->
    #{schedulers => N, otp => unicode:characters_to_binary(Otp),
      flags => unicode:characters_to_binary(
          sderl_bench_vm_matrix:text(#{flags => Flags, otp => ""}))}.

%% On one scheduler and on the most, as the first series has it.
of_control([#{flags := Flags, otp := Otp} | _] = Points) ->
    Mine = [Point || #{flags := F, otp := O} = Point <- Points, F =:= Flags, O =:= Otp],
    lists:uniq([hd(Mine), lists:last(Mine)]).

modules({program, Module, _}) ->
    [Module | case erlang:function_exported(Module, uses, 0) of
        true -> Module:uses();
        false -> []
    end];
modules({call, Module, _, _}) ->
    [Module].
