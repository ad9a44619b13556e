%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_command).
-moduledoc """
`bin/sderl reproduce [C1 C4 ...] [--scale small|medium|full] --out DIR`: repeats experiments of the
published work on this machine.

The measurements are in `DIR/points.jsonl`, a line for each run, as `m:sderl_bench_output` writes
them. The same command again measures what is missing.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-doc false.
-spec summary() -> string().
summary() -> "repeat experiments of the published work, with verdicts from the measurements".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() ->
    {options, Options, _} = sderl_completion:command(arguments()),
    {options, Options,
     {words, [binary_to_list(sderl_claim:id(Module)) || Module <- sderl_claim:all()]}}.

-doc """
Measures, and prints a verdict for each claim. A usage error where claims or options are wrong.
""".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Options} ?= sderl_command:parse(Args, ["reproduce"], arguments()),
        {ok, Claims} ?= claims(maps:get(claims, Options, [])),
        {ok, Out} ?= out(Options),
        {ok, Name} ?= scale_name(maps:get(scale, Options)),
        {fits, {ok, Sized}} ?= {fits, sderl_reproduce_scale:scale(Name, fun sderl_fleet:fits/1)},
        {fits, {ok, Scale}} ?= {fits, instances(Sized)},
        Request = request(Claims, Scale, Out, maps:get(budget_min, Options, undefined)),
        case Options of
            #{dry_run := true} -> dry_run(Request);
            #{} -> sderl_reproduce_run:run(Request, fun io:put_chars/1)
        end
    else
        {fits, {error, Text}} -> {error, Text};
        Other -> Other
    end.

arguments() ->
    #{
        help =>
            "Repeats experiments of the published work on SD Erlang on this machine, as many\n"
            "points and runs as fit into a budget of time, and computes from the measurements\n"
            "whether each claim is confirmed, refuted, or not shown at this scale.\n"
            "small takes up to 8 minutes for all claims together, medium up to 100, full as\n"
            "long as it takes. The same command again, after an interruption, measures the\n"
            "missing points. C5 uses the published instances of the folder that the environment\n"
            "variable SDERL_INSTANCES names, or generated ones. The claims:\n\n" ++ listed(),
        arguments => [
            #{name => claims, nargs => list, type => string, required => false,
              help => {"[C1 C4 ...]", ["which claims (all)"]}},
            sderl_bench_experiment:option(scale, "NAME", string, "medium", "small, medium or full"),
            #{name => out, long => "-out", type => string, required => false,
              help => {"--out DIR", ["the folder for what is measured"]}},
            #{
                name => budget_min, long => "-budget-min", type => {integer, [{min, 1}]},
                required => false,
                help => {"[--budget-min M]",
                         ["minutes that these claims may take together, instead of the scale's"]}
            },
            #{name => dry_run, long => "-dry-run", type => boolean, default => false,
              help => {"[--dry-run]", ["print the plan, measure nothing"]}}
        ]
    }.

listed() ->
    lists:flatten([io_lib:format("  ~-3ts  ~ts~n",
                                 [sderl_claim:id(Module), map_get(title, Module:about())])
                   || Module <- sderl_claim:all()]).

%% ---------------------------------------------------------------- options

claims([]) ->
    {ok, sderl_claim:all()};
claims(Words) ->
    Named = [{Word, sderl_claim:named(Word)} || Word <- Words],
    case [{Word, Why} || {Word, {error, Why}} <- Named] of
        [] ->
            {ok, [Module
                  || Module <- sderl_claim:all(),
                     lists:member({ok, Module}, [Of || {_, Of} <- Named])]};
        [{Word, unbuilt} | _] ->
            {usage, ["the experiment of ", Word, " is not built yet; there are\n", listed()]};
        [{Word, unknown} | _] -> {usage, ["there is no claim ", Word, "; there are\n", listed()]}
    end.

out(#{out := [_ | _] = Dir}) -> {ok, Dir};
out(_) -> {usage, "--out is missing: the folder for what is measured"}.

scale_name(Word) ->
    case [Name || Name <- sderl_reproduce_scale:names(), atom_to_list(Name) =:= Word] of
        [Name] -> {ok, Name};
        [] -> {usage, ["--scale cannot be ", Word, ": it is small, medium or full"]}
    end.

instances(Scale) ->
    case os:getenv("SDERL_INSTANCES", "") of
        "" -> {ok, Scale};
        Dir -> sderl_reproduce_scale:instances(Scale, Dir)
    end.

%% A scale's budget is for all claims; some of them have their part of it.
request(Claims, #{budget_s := ForAll, name := Name} = Scale, Out, Minutes) ->
    Share = fun(Modules) -> lists:sum([sderl_claim:share(Module) || Module <- Modules]) end,
    Budget =
        if
            is_integer(Minutes) -> 60 * Minutes;
            ForAll =:= infinity -> infinity;
            true -> ForAll * Share(Claims) / Share(sderl_claim:all())
        end,
    Named = case Claims =:= sderl_claim:all() of
        true -> [];
        false -> [[" ", sderl_claim:id(Module)] || Module <- Claims]
    end,
    Limit = [io_lib:format(" --budget-min ~w", [Minutes]) || is_integer(Minutes)],
    Command = sderl_claim_points:text("bin/sderl reproduce~ts --scale ~ts~ts --out DIR",
                                      [Named, Name, Limit]),
    #{claims => Claims, scale => Scale, out => Out, budget_s => Budget, command => Command}.

%% ---------------------------------------------------------------- the plan

dry_run(#{scale := Scale, budget_s := Budget} = Request) ->
    maybe
        {ok, #{jobs := Jobs, left_out := LeftOut}, Used} ?= sderl_reproduce_run:planned(Request),
        Counts = maps:groups_from_list(fun(#{point := Point}) -> Point end, Jobs),
        Rows = [
            [Id, sderl_reproduce:described(Point), integer_to_list(length(maps:get(Point, Counts))),
             seconds(S)]
         || #{claim := Id, point := Point, seconds := S} <-
                lists:uniq(fun(#{point := Point}) -> Point end, Jobs)
        ],
        io:put_chars([
            sderl_reproduce_scale:described(Scale), "\n\n",
            sderl_table:text(["claim", "point", "runs", "s each"], Rows),
            [["left out: ", sderl_reproduce:described(Point), ", ", seconds(S), " s\n"]
             || #{point := Point, seconds := S} <- LeftOut],
            "\n", io_lib:format("~w runs, ~ts",
                                [length(Jobs), minutes(sderl_reproduce_plan:total(Jobs))]),
            case Budget of infinity -> ""; _ -> [" of ", minutes(Budget)] end,
            [["; used so far: ", minutes(Used)] || Used > 0], "\n"
        ])
    end.

seconds(S) -> integer_to_list(round(S)).

minutes(S) -> sderl_progress:duration(round(1000 * S)).
