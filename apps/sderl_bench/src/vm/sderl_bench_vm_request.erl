%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_request).
-moduledoc """
What `bench vm` and `bench tables` have in common: the options that say which points are measured,
for how long and how precisely; and what follows from them for `m:sderl_bench_vm_run`.
""".

-export([arguments/1, given/3, many/3, check/2, cores/1, measure/3, all/2]).
-export_type([job/0, command/0, do/0]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, numbers/4, real/4]).

-define(MOST_SCHEDULERS, 1024).
-define(MOST_NODES, 100).
%% Percent, where none are given.
-define(WIDTH, "2").
%% Numbers of points that the help names as examples.
-define(FEW, 4).
-define(MANY, 44).
%% The least memory of a node.
-define(NODE_MIB, 50).

-doc "Something to measure. `modules` are those that its virtual machine runs.".
-type job() :: #{name := binary(), job := sderl_bench_vm_program:job(),
                 settings := sderl_bench_vm_program:settings(), modules := [module()],
                 operations => sderl_bench_vm_program:operations() | none}.

-doc "The command as it was given, so that a file of results can name it.".
-type command() :: #{name := string(), arguments := [argparse:argument()],
                     given := #{atom() => term()}}.

-type do() ::
    {show, file:filename()}
    | {compare, file:filename(), file:filename(), Counts :: float(), Strict :: boolean()}
    | {measure, sderl_bench_vm_run:options()}.

-doc "The options for `m:argparse`; `Out` is the file of results where none is named.".
-spec arguments(Out :: string()) -> [argparse:argument()].
arguments(Out) ->
    [
        given(cores, "N", "cores that the sizes of programs are for (those of this machine)"),
        given(schedulers, "LIST", "numbers of schedulers; 1 is always one of them (1, 2, 4 ... and "
                                  "the number of cores)"),
        given(flags, "FLAGS", "flags of the virtual machine for all points, as \"+sub true\""),
        many(vary, "FLAG=V,V", "values of a flag to go through, - is without it: "
                               "sbwt=-,none,very_long; given again, all combinations"),
        many(otp, "NAME=PATH", "another OTP beside this one: its erl, or its folder; may be given "
                               "again"),
        option(out, "FILE", string, Out,
               "the file of results; one of the same settings is continued"),
        option(budget_min, "M", string, "10", "minutes that it may take"),
        given(width, "PCT", "a point is done when the interval of its median is so narrow, in "
                            "percent to either side (" ++ ?WIDTH ++ ")"),
        sderl_command:option(least, "N", integer, lists:flatten(io_lib:format(
            "virtual machines of each point at least (as many as a verdict of --compare needs with "
            "so many points: ~w for up to ~w of them, ~w for ~w)",
            [sderl_bench_vm_plan:least(), ?FEW, sderl_bench_vm_plan:least(?MANY), ?MANY]))),
        option(rounds, "N", integer, 100, "virtual machines of each point at most"),
        option(runs, "N", integer, 5, "runs in each virtual machine after its warm-up"),
        option(run_ms, "MS", integer, 200, "a run takes so long on one scheduler, by repetition"),
        option(vm_s, "S", integer, 10,
               "seconds after which a virtual machine does no more runs"),
        option(limit_s, "S", integer, 120, "seconds after which a virtual machine is killed"),
        given(seed, "N", "of the order of the points (from the clock)"),
        given(show, "FILE", "measure nothing: show the report of a file of results"),
        #{name => compare, long => "-compare", nargs => 2, required => false,
          help => {"[--compare BEFORE AFTER]",
                   ["measure nothing: show what became slower; exit status 1 if anything did"]}},
        option(threshold, "PCT", string, "1", "with --compare, differences below count as none"),
        sderl_command:flag(strict, "with --compare, exit status 1 also for undecided points")
    ].

-doc "An option without a default.".
-spec given(atom(), Shape :: string(), Text :: unicode:chardata()) -> argparse:argument().
given(Name, Shape, Text) -> sderl_command:option(Name, Shape, string, Text).

-doc "An option that may be given again.".
-spec many(atom(), Shape :: string(), Text :: unicode:chardata()) -> argparse:argument().
many(Name, Shape, Text) -> (given(Name, Shape, Text))#{action => append}.

-doc "What a command does. `Measure` gives that of a command that measures.".
-spec check(Given, Measure :: fun((Given) -> Outcome)) -> Outcome when
    Given :: #{atom() => term()},
    Outcome :: {ok, do()} | {error, sderl_command:text()}.
check(#{show := _, compare := _}, _) ->
    {error, "--show and --compare are two commands: leave one out"};
check(#{show := File}, _) ->
    {ok, {show, File}};
check(#{compare := [Before, After], threshold := Text, strict := Strict}, _) ->
    case real("--threshold", Text, 0, 50) of
        {ok, Percent} -> {ok, {compare, Before, After, Percent / 100, Strict}};
        Error -> Error
    end;
check(#{strict := true}, _) ->
    {error, "--strict is for --compare"};
check(Given, Measure) ->
    Measure(Given).

-doc """
What to measure: `Jobs` on all points, each beside the control. `Options` are those of the command
line and what else it names.
""".
-spec measure(command(), Options :: #{atom() => term()}, [job(), ...]) ->
    {ok, do()} | {error, sderl_command:text()}.
measure(Command, Options, Jobs) ->
    maybe
        ok ?= at_least(1, [rounds, runs, run_ms, vm_s, limit_s], Options),
        ok ?= at_least(1, [least], maps:merge(#{least => 1}, Options)),
        ok ?= at_most([{runs, 1000}, {run_ms, 600_000}, {limit_s, 86_400}, {rounds, 100_000}],
                      Options),
        {ok, Minutes} ?= real("--budget-min", maps:get(budget_min, Options), 0.01, 100_000),
        {ok, Width} ?= real("--width", maps:get(width, Options, ?WIDTH), 0.01, 100),
        {ok, Cores} ?= cores(Options),
        {ok, Matrix} ?= matrix(Options),
        {ok, Otps, Files} ?= otps(maps:get(otp, Options, [])),
        {ok, Points, LeftOut} ?= sderl_bench_vm_matrix:points(Matrix#{otps => Otps}),
        {ok, Seed} ?= seed(Options),
        {ok, {measure, asked(Options, Points, Jobs, Files, Cores, #{
            command => command_line(Command), left_out => LeftOut, seed => Seed,
            width => Width / 100,
            budget_ms => round(Minutes * 60_000)
        })}}
    end.

%% ---------------------------------------------------------------- the parts

-doc "The cores that the sizes are for.".
-spec cores(#{atom() => term()}) -> {ok, pos_integer()} | {error, sderl_command:text()}.
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
        {ok, Sizes} ?= sizes(Options),
        {ok, Flags} ?= sderl_bench_vm_matrix:flags(maps:get(flags, Options, "")),
        {ok, Vary} ?= all(fun sderl_bench_vm_matrix:vary/1, maps:get(vary, Options, [])),
        {ok, Sizes#{flags => Flags, vary => Vary}}
    end.

%% With nodes, one number of schedulers in each of them.
sizes(#{nodes := Text} = Options) ->
    maybe
        {ok, Nodes} ?= numbers("--nodes", Text, 1, ?MOST_NODES),
        {ok, [Schedulers]} ?= numbers("--schedulers", maps:get(schedulers, Options, "1"), 1,
                                      ?MOST_SCHEDULERS),
        ok ?= not_too_many(lists:max([1 | Nodes]), Schedulers),
        ok ?= have_memory(lists:max([1 | Nodes]), sderl_bench_machine:info()),
        {ok, #{nodes => Nodes, schedulers => [Schedulers]}}
    else
        {ok, _} -> {error, "--schedulers takes one number with --nodes: that of each node"};
        Error -> Error
    end;
sizes(#{schedulers := Text}) ->
    case numbers("--schedulers", Text, 1, ?MOST_SCHEDULERS) of
        {ok, Schedulers} -> {ok, #{schedulers => Schedulers}};
        Error -> Error
    end;
sizes(_) ->
    Cores = map_get(cores, sderl_bench_machine:info()),
    {ok, #{schedulers => lists:usort(
        [Cores | [N || I <- lists:seq(0, 10), N <- [1 bsl I], N < Cores]]
    )}}.

not_too_many(Nodes, Schedulers) when Nodes * Schedulers > ?MOST_SCHEDULERS ->
    {error, io_lib:format("--nodes: ~w nodes of ~w schedulers have more than ~w schedulers "
                          "together: take fewer", [Nodes, Schedulers, ?MOST_SCHEDULERS])};
not_too_many(_, _) ->
    ok.

have_memory(Nodes, #{memory_mib := Memory})
  when is_integer(Memory), Nodes * ?NODE_MIB > Memory div 2 ->
    {error, io_lib:format("--nodes: ~w nodes need about ~w MiB, and this machine has ~w MiB: take "
                          "fewer", [Nodes, Nodes * ?NODE_MIB, Memory])};
have_memory(_, _) ->
    ok.

-doc "Applies a function to each text: all values, or the first error.".
-spec all(fun((Text) -> {ok, Value} | {error, Why}), [Text]) -> {ok, [Value]} | {error, Why}.
all(Fun, Texts) -> all(Fun, Texts, []).

all(_, [], Done) -> {ok, lists:reverse(Done)};
all(Fun, [Text | Texts], Done) ->
    case Fun(Text) of
        {ok, Value} -> all(Fun, Texts, [Value | Done]);
        Error -> Error
    end.

%% The OTP that runs this has no name if it is the only one, so that results of two OTPs have the
%% same points and can be compared.
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
                || #{name := Name, job := Job} <- Jobs],
    Spin = sderl_bench_vm_spin:settings(short, Cores),
    Control = #{name => <<"control">>, control => true,
                job => {program, sderl_bench_vm_spin, Spin},
                points => sderl_bench_vm_matrix:ends(Points)},
    %% --compare gives a verdict on each point of each program.
    Least = maps:get(least, Options, sderl_bench_vm_plan:least(length(Jobs) * length(Points))),
    Limits = (maps:with([rounds, runs, release, race], Options))#{least => Least},
    Modules = lists:usort([sderl_bench_vm_spin
                           | lists:append([Own || #{modules := Own} <- Jobs])]),
    maps:merge(maps:merge(Limits, maps:without([command, left_out], More)), #{
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
            race => maps:get(race, Options, false),
            started => sderl_bench_output:now(),
            command => maps:get(command, More),
            left_out => [unicode:characters_to_binary(Text) || Text <- maps:get(left_out, More)],
            settings => (of_release(Options))#{
                programs => [#{name => <<"control">>, control => true, settings => Spin}
                             | [named(Job) || Job <- Jobs]],
                points => [sderl_bench_vm_matrix:fields(Point) || Point <- Points],
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

of_release(#{release := Release}) -> #{release => sderl_bench_vm_release:described(Release)};
of_release(#{}) -> #{}.

%% A program in the file; with its operations if they are known before it runs.
named(#{name := Name, settings := Settings} = Job) ->
    Named = #{name => Name, control => false, settings => Settings},
    case Job of
        #{operations := #{} = Operations} -> Named#{operations => Operations};
        #{} -> Named
    end.

%% The versions of the code: a program that was changed is another program.
code(Modules) ->
    #{Module => binary:encode_hex(Module:module_info(md5), lowercase) || Module <- Modules}.

%% The command that asks for this, without what is a default.
command_line(#{name := Name, arguments := Arguments, given := Given}) ->
    unicode:characters_to_binary([
        ["bin/sderl bench ", Name],
        [[" -", Long, " ", quoted(Value)]
         || #{name := Key, long := Long} = Argument <- Arguments,
            #{Key := Values} <- [Given],
            Values =/= maps:get(default, Argument, none),
            Value <- case Argument of #{action := append} -> Values; #{} -> [Values] end]
    ]).

quoted(Number) when is_integer(Number) -> integer_to_list(Number);
quoted(Text) ->
    case re:run(Text, "^[A-Za-z0-9_,.:/=+-]+$", [unicode]) of
        {match, _} -> Text;
        nomatch -> ["'", string:replace(Text, "'", "'\\''", all), "'"]
    end.
