%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_simulate_options).
-moduledoc """
The parameters of a simulated schedule on the command line: one table has the option of each, its
key in the simulator, its limits and its default. `--hard` changes some of the defaults.
""".

-export([arguments/0, checked/1, simulated/1, shown/1, command_line/1]).

-define(MOST_NODES, 28).
-define(MOST_SPARES, 4).
-define(MOST_MS, 100_000_000).

%% Whole numbers: the option, the simulator's key, the shape, the limits, the default, the help
%% text.
-define(NUMBERS, [
    {nodes, nodes, "N", {2, ?MOST_NODES}, 7, "members of the group at the start"},
    {spare, spare, "X", {0, ?MOST_SPARES}, 1, "nodes that are no members at the start"},
    {groups, groups, "G", {1, 8}, 1, "groups: the first has all nodes, the others some"},
    {made, made, "G", {0, 8}, 0,
     "groups of all nodes that are made at run time (1 with the kind regroup)"},
    {clients, clients, "C", {0, 20}, 2, "clients on each node, in each group"},
    {most_faults, faults, "K", {1, 1000}, 12, "faults in a schedule, at most"},
    {time, time, "MS", {2000, ?MOST_MS}, 40_000, "all faults begin within so many simulated ms"},
    {longest, longest, "MS", {50, ?MOST_MS}, 9000, "most faults last at most so long"},
    {late, late, "PERCENT", {0, 100}, 2, "of a hundred messages, how many take ten times as long"},
    {boot_spread, boot_spread, "MS", {0, ?MOST_MS}, 3000, "nodes start within so many ms"},
    {relink, relink, "MS", {1, ?MOST_MS}, 40, "pairs without a link try again after so long"},
    {chunk, chunk, "ROWS", {1, 1_000_000}, 3, "rows in a piece of a snapshot or a merge"},
    {aside, aside_ms, "MS", {100, ?MOST_MS}, 4000,
     "a member that is silent for so long is set aside"},
    {forget, forget_ms, "MS", {0, ?MOST_MS}, 0,
     "a member that is away for so long is forgotten; 0: none is"},
    {patience, patience, "MS", {0, ?MOST_MS}, 0, "a client gives up after so long; 0: never"},
    {keep, keep, "K", {0, 10_000}, 0, "names that a node keeps for its life, in each group"},
    {reads, reads, "PERCENT", {0, 100}, 10,
     "of a hundred operations, how many are reads through the log"}
]).

%% Flags: the option and the help text.
-define(FLAGS, [
    {majority, "groups with consistency => majority"},
    {applied, "groups with answer => applied"},
    {beats, "nodes send heartbeats for their processes"},
    {files, "a node that restarts finds its group, its members and the highest epoch in a file"}
]).

%% The options that --hard stands for; options given beside it win.
-define(HARD, #{delay => "1-200", most_faults => 20, clients => 3, faults => "usual,loss"}).

-doc "The options, for OTP's `m:argparse`.".
-spec arguments() -> [argparse:argument()].
arguments() ->
    [argument(Name, integer, Shape, [Text, io_lib:format(" (~w)", [Default])])
     || {Name, _, Shape, _, Default, Text} <- ?NUMBERS] ++
        [
            argument(delay, string, "MIN-MAX",
                     ["ms that a message takes (", delay_text(default(delay)), ")"]),
            argument(faults, string, "KINDS", [
                "kinds of faults, with commas between them: usual (the default), all, ",
                lists:join(", ", names(sderl_sim_faults:kinds()))
            ]),
            argument(strict, string, "PROMISES", [
                "further promises to check: usual (the default), all, none, ",
                lists:join(", ", names(sderl_sim_strict:names()))
            ]),
            argument(broken, string, "FAULTS", [
                "plant faults in the protocol, which the checks must find: early_yes, rule_9, ..."
            ]),
            sderl_command:flag(hard, lists:flatten([
                "slow links, more faults and nodes that never return: ", hard_text()
            ]))
            | [sderl_command:flag(Name, Text) || {Name, Text} <- ?FLAGS]
        ].

argument(Name, Type, Shape, Text) ->
    sderl_command:option(Name, Shape, Type, lists:flatten(Text)).

hard_text() ->
    lists:join(" ", [["--", flag(Name), " ", text(Value)]
                     || Name := Value <- maps:iterator(?HARD, ordered)]).

flag(Name) -> lists:flatten(string:replace(atom_to_list(Name), "_", "-", all)).

text(Value) when is_integer(Value) -> integer_to_list(Value);
text(Value) -> Value.

names(Atoms) -> [atom_to_list(A) || A <- Atoms].

default(delay) -> {1, 20};
default(faults) -> sderl_sim_faults:usual().

default_strict(Options) -> sderl_sim_strict:usual(mode(Options)).

mode(#{majority := true}) -> majority;
mode(_) -> available.

answer(#{applied := true}) -> applied;
answer(_) -> committed.

%% ---------------------------------------------------------------- from the command line

-doc "The options with every parameter in them, or what is wrong.".
-spec checked(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
checked(Given) ->
    Options = case Given of
        #{hard := true} -> maps:merge(?HARD, Given);
        _ -> Given
    end,
    maybe
        ok ?= one_kind(Options),
        {ok, Numbers} ?= numbers(?NUMBERS, Options, #{}),
        {ok, Delay} ?= delay(Options),
        {ok, Kinds} ?= kinds(Options),
        {ok, Strict} ?= strict(Options),
        {ok, Broken} ?= known("--broken", "deliberate fault", words(maps:get(broken, Options, "")),
                              names([F || {F, _} <- sderl_planted:all()])),
        Parameters = Numbers#{delay => Delay, faults => Kinds, strict => Strict, broken => Broken},
        Flags = #{Name => maps:get(Name, Options, false) || {Name, _} <- ?FLAGS},
        {ok, maps:merge(maps:remove(hard, Options), maps:merge(Flags, Parameters))}
    end.

one_kind(#{majority := true, applied := true}) ->
    {error, "--applied is for available groups; take it out, or --majority"};
one_kind(_) -> ok.

numbers([], _, Done) -> {ok, Done};
numbers([{Name, _, _, {Min, Max}, Default, _} | Rest], Options, Done) ->
    case maps:get(Name, Options, Default) of
        Value when Value >= Min, Value =< Max -> numbers(Rest, Options, Done#{Name => Value});
        Value ->
            {error,
             io_lib:format("--~ts must be from ~w to ~w, not ~w", [flag(Name), Min, Max, Value])}
    end.

delay(#{delay := Text}) ->
    case [string:to_integer(string:trim(Part)) || Part <- string:split(Text, "-")] of
        [{Min, []}, {Max, []}] when Min >= 0, Min =< Max, Max =< ?MOST_MS -> {ok, {Min, Max}};
        _ -> {error, ["--delay must be two numbers of ms such as 1-200, not ", Text]}
    end;
delay(_) -> {ok, default(delay)}.

delay_text({Min, Max}) -> io_lib:format("~w-~w", [Min, Max]).

kinds(#{faults := Text}) ->
    Words = lists:append([expanded(W) || W <- words(Text)]),
    All = names(sderl_sim_faults:kinds()),
    case Words of
        [] ->
            {error, ["--faults names nothing: take \"usual\", \"all\" or some of ",
                     lists:join(", ", All)]};
        _ -> known("--faults", "kind of fault", lists:uniq(Words), All)
    end;
kinds(_) -> {ok, default(faults)}.

strict(Options) ->
    All = names(sderl_sim_strict:names()),
    case words(maps:get(strict, Options, "usual")) of
        ["none"] -> {ok, []};
        ["all"] -> {ok, sderl_sim_strict:names()};
        ["usual"] -> {ok, default_strict(Options)};
        Words -> known("--strict", "promise", lists:uniq(Words), All)
    end.

expanded("usual") -> names(sderl_sim_faults:usual());
expanded("all") -> names(sderl_sim_faults:kinds());
expanded(Word) -> [Word].

words(Text) -> [W || W <- [string:trim(W) || W <- string:split(Text, ",", all)], W =/= ""].

%% No atom is made here, because a known name is an atom already.
known(Option, What, Words, Known) ->
    case [W || W <- Words, not lists:member(W, Known)] of
        [] -> {ok, [list_to_existing_atom(W) || W <- Words]};
        [W | _] ->
            {error,
             [Option, ": there is no ", What, " \"", W, "\"; there are ", lists:join(", ", Known)]}
    end.

%% ---------------------------------------------------------------- to the simulator and back

-doc "The parameters as `m:sderl_sim` takes them.".
-spec simulated(#{atom() => term()}) -> #{atom() => term()}.
simulated(#{faults := Kinds, strict := Strict, broken := Broken, delay := Delay, files := Files,
            beats := Beats} = Options) ->
    Numbers = #{Key => map_get(Name, Options)
                || {Name, Key, _, _, _, _} <- ?NUMBERS,
                   not (lists:member(Name, [forget, patience])
                        andalso map_get(Name, Options) =:= 0)},
    Numbers#{
        mode => mode(Options),
        answer => answer(Options),
        files => Files,
        beats => Beats,
        kinds => Kinds,
        strict => Strict,
        broken => Broken,
        delay => Delay
    }.

-doc "The parameters as results show them.".
-spec shown(#{atom() => term()}) -> #{atom() => term()}.
shown(#{delay := {Min, Max}} = Options) ->
    Names = [Name || {Name, _, _, _, _, _} <- ?NUMBERS],
    Flags = [Name || {Name, _} <- ?FLAGS],
    (maps:with([faults, strict, broken | Names ++ Flags], Options))#{delay => [Min, Max]}.

-doc "The arguments of a command line that give these parameters, without `--hard`.".
-spec command_line(#{atom() => term()}) -> unicode:chardata().
command_line(#{faults := Kinds} = Options) ->
    [
        [said(Name, Value)
         || {Name, _, _, _, Default, _} <- ?NUMBERS, Value <- [map_get(Name, Options)],
            Value =/= Default
            orelse lists:member(Name, [nodes, spare, groups, clients, most_faults])],
        said(faults, case Kinds =:= default(faults) of
            true -> "usual";
            false -> lists:join(",", names(Kinds))
        end),
        [said(delay, delay_text(Delay))
         || #{delay := Delay} <- [Options], Delay =/= default(delay)],
        [said(strict, case Strict of [] -> "none"; _ -> lists:join(",", names(Strict)) end)
         || #{strict := Strict} <- [Options], Strict =/= default_strict(Options)],
        [said(broken, lists:join(",", names(Broken)))
         || #{broken := [_ | _] = Broken} <- [Options]],
        [[" --", flag(Name)] || {Name, _} <- ?FLAGS, map_get(Name, Options)]
    ].

said(Name, Value) -> [" --", flag(Name), " ", text(Value)].
