%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_experiment).
-moduledoc """
`bin/sderl bench faults`: real nodes are killed, stopped, flooded and cut off while clients write,
and what that does to names and writers is measured.

Metrics of one fault, as in the JSON output:

| metric | meaning |
|---|---|
| `repetitions` | how many there were |
| `converged` | in how many of them all members came to be in one component, with the same tables, within a minute |
| `lost_acknowledged` | names whose registration was answered, whose process lives, and that some member does not have in the end |
| `came_back` | names that some member has in the end although their unregistration was answered, or their process is dead |
| `converge_ms` | `p50`, `p99`: from the fault (`params.from` is `fault`) or its end (`done`) until every node that is left has all that was answered, and agrees with the others |
| `rejoin_ms` | the same for a killed node that was started again, from the end of its start |
| `stalled_ms` | the longest time, from the fault to convergence, in which no write was answered on some node that was itself neither killed nor stopped |
| `unknown`, `refused`, `hung` | writes that ended without an answer; that were refused; that had none 30 s after the rest |
| `answers` | writes that were answered |
| `no_majority` | writes that were refused for want of a majority; not in `refused` |
| `cut_off_yes` | writes that were begun and answered `yes` on a side of a split without a majority, while it lasted |
| `claims`, `held_twice` | majority groups: how often one of the processes that compete for the same names got one; how often two of them had it at one time |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, known/4, words/1]).

-define(LEAST_NODES, 3).
%% As many as there can be network namespaces.
-define(MOST_NODES, 250).

-doc false.
-spec summary() -> string().
summary() -> "nodes killed, stopped and cut off: what is lost, and how long it takes".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help => lists:flatten([
            "Breaks real nodes while clients on all of them register and unregister names;\n"
            "counts the names that were answered yes and are lost, and the time until all members\n"
            "agree again. The exit status is 1 when s_group loses a name or its members do not\n"
            "agree, and with --consistency majority when a side without a majority answers yes,\n"
            "or two processes have one name.\n\n"
            "Faults:\n",
            [io_lib:format("  ~-17ts ~ts~n", [Name, Text])
             || #{name := Name, text := Text} <- sderl_bench_faults_kind:all()],
            "\n"
            "Cut links need root on Linux (network namespaces); elsewhere they are closed at\n"
            "both ends."
        ]),
        arguments => [
            option(fault, "F,F", string, "all", "some of the faults; all without this"),
            #{
                name => consistency, long => "-consistency", type => {atom, [available, majority]},
                default => available,
                help => {"[--consistency C]", ["of the group: available or majority (available)"]}
            },
            option(impl, "I,I", string, "s_group,global", "registries: s_group, global"),
            option(repetitions, "R", integer, 20, "of each fault"),
            option(nodes, "N", integer, 5, "members of the group"),
            option(clients, "C", integer, 2, "writing processes on each node"),
            ms(tick_ms, "heartbeat of the group (the library's default)"),
            ms(set_aside_ms, "silence after which a member is set aside (the library's default)"),
            ms(hold_ms, "how long a fault lasts (set-aside + 4 ticks)"),
            sderl_command:flag(markdown, "the table in Markdown")
        ]
    }.

ms(Name, Text) -> sderl_command:option(Name, "MS", integer, Text).

%% The library's defaults.
-define(TICK_MS, 1000).
-define(SET_ASIDE_MS, 4000).

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{impl := Impls, fault := Faults} = Options) ->
    Tick = maps:get(tick_ms, Options, ?TICK_MS),
    Aside = maps:get(set_aside_ms, Options, ?SET_ASIDE_MS),
    Numbers = maps:merge(#{hold_ms => Aside + 4 * Tick}, Options),
    maybe
        {ok, Registries} ?= listed("--impl", "registry", Impls,
                                   sderl_bench_faults_registry:names(),
                                   fun sderl_bench_faults_registry:module/1),
        {ok, Kinds} ?= kinds(Faults),
        ok ?= at_least(?LEAST_NODES, [nodes], Numbers),
        ok ?= at_most([{nodes, ?MOST_NODES}], Numbers),
        ok ?= at_least(1, [repetitions, clients, hold_ms], Numbers),
        ok ?= at_least(1, [Key || Key <- [tick_ms, set_aside_ms], is_map_key(Key, Numbers)],
                       Numbers),
        ok ?= patience(Tick, Aside),
        {ok, Numbers#{impl := Registries, fault := Kinds, burst => 10_000, short => 1000}}
    end.

kinds("all") ->
    {ok, sderl_bench_faults_kind:all()};
kinds(Text) ->
    Names = [atom_to_list(Name) || #{name := Name} <- sderl_bench_faults_kind:all()],
    maybe
        {ok, Kinds} ?= listed("--fault", "fault", Text, Names, fun sderl_bench_faults_kind:named/1),
        {ok, [Kind || {_, Kind} <- Kinds]}
    end.

listed(Option, What, Text, Known, Find) ->
    Names = words(Text),
    maybe
        ok ?= known(Option, What, Names, Known),
        {ok, [{Name, Found} || Name <- Names, {ok, Found} <- [Find(Name)]]}
    end.

%% The library does not start with less.
patience(Tick, Aside) when Aside >= 2 * Tick -> ok;
patience(Tick, Aside) ->
    {error, io_lib:format("--set-aside-ms must be at least two ticks (~w), not ~w; raise it or "
                          "lower --tick-ms", [2 * Tick, Aside])}.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{fault := Kinds, impl := Registries} = Options, Output) ->
    Links = links(Kinds, Output),
    Params = (maps:without([fault, impl, markdown], Options))#{links => Links},
    Form =
        case Options of
            #{markdown := true} -> fun sderl_table:markdown/2;
            #{} -> fun sderl_table:text/2
        end,
    {Jobs, Skipped} = lists:partition(
        fun({_, Registry, Kind}) ->
            sderl_bench_faults_kind:applies(Kind, Registry) andalso
                sderl_bench_faults_world:possible(Kind, Links) andalso
                not is_other_list(Kind, Options)
        end,
        [{Name, Registry, Kind} || {Name, Registry} <- Registries, Kind <- Kinds]
    ),
    _ = [sderl_bench_output:say(Output, [skipped(Job, Links, Options), "\n"]) || Job <- Skipped],
    Collector = self(),
    Ref = make_ref(),
    Report = fun(Outcome) ->
        Collector ! {Ref, Outcome},
        reported(Outcome, Params, Output)
    end,
    case sderl_bench_faults:run(Jobs, Params, Report) of
        ok ->
            Outcomes = collected(Ref),
            sderl_bench_output:say(Output, ["\n", title(Params), "\n\n",
                                            table(Form, Outcomes, maps:get(consistency, Params))]),
            verdict(Outcomes, Params);
        {error, Message} when is_list(Message); is_binary(Message) ->
            {error, Message};
        {error, Reason} ->
            {error, sderl_bench_reason:text(Reason)}
    end.

collected(Ref) ->
    receive
        {Ref, Outcome} -> [Outcome | collected(Ref)]
    after 0 -> []
    end.

links(Kinds, Output) ->
    case [needed || #{needs := Needs} <- Kinds, Needs =:= links orelse Needs =:= silent] of
        [] ->
            cookies;
        _ ->
            case sderl_bench_faults_world:links() of
                namespaces ->
                    namespaces;
                {cookies, Why} ->
                    sderl_bench_output:say(Output, [
                        "no network namespaces here (", Why,
                        "): links are closed at both ends instead of being cut\n"
                    ]),
                    cookies
            end
    end.

%% The members of a majority group change by what it decides, not by lists that differ.
is_other_list(#{needs := config}, #{consistency := majority}) -> true;
is_other_list(_, _) -> false.

skipped({Impl, Registry, #{name := Name} = Kind}, Links, Options) ->
    Why =
        case {is_other_list(Kind, Options), sderl_bench_faults_world:possible(Kind, Links)} of
            {true, _} -> "the launch lists of a majority group must not differ";
            {false, false} -> "it needs network namespaces, as root on Linux";
            {false, true} when Registry =:= sderl_bench_faults_global ->
                "there is no such thing with global";
            {false, true} -> "it does not apply"
        end,
    io_lib:format("~ts ~ts: skipped, ~ts", [Impl, Name, Why]).

reported(#{job := {Impl, _, #{name := Name, from := From}}, metrics := Metrics,
           started := Started} = Outcome, Params, Output) ->
    #{wrong := Wrong} = Outcome,
    #{job := {_, _, #{needs := Needs}}} = Outcome,
    Without = [links || not lists:member(Needs, [links, silent])] ++
        [consistency || Impl =/= "s_group"],
    Full = (maps:without(Without, Params))#{fault => Name, impl => list_to_binary(Impl),
                                            from => From},
    sderl_bench_output:say(Output, [
        string:pad([Impl, " ", atom_to_list(Name)], 28),
        pair(maps:get(converge_ms, Metrics)), " ms",
        [["\n  ", Text] || Text <- Wrong],
        "\n"
    ]),
    sderl_bench_output:write(Output, sderl_bench_output:result(faults, Full, Metrics, Started)).

title(
    #{nodes := Nodes, clients := Clients, hold_ms := HoldMs, repetitions := Repetitions} = Params
) ->
    [
        case Params of #{consistency := majority} -> "consistency majority; "; #{} -> "" end,
        io_lib:format("~w nodes, ~w writers on each; ~w repetitions, faults that last take ~w ms",
                      [Nodes, Clients, Repetitions, HoldMs]),
        [io_lib:format("; ~w ~w", [Key, Ms])
         || Key <- [tick_ms, set_aside_ms], #{Key := Ms} <- [Params]],
        "; ",
        sderl_bench_machine:text(),
        "\nmilliseconds: p50 / p99"
    ].

table(Form, Outcomes, Consistency) ->
    More =
        case Consistency of
            available -> [];
            majority ->
                [{"no majority", no_majority}, {"yes when cut off", cut_off_yes},
                 {"held twice", held_twice}]
        end,
    Form(
        ["fault", "registry", "repetitions", "lost", "came back", "unknown", "converged", "from",
         "until all agree", "rejoined", "no answer for"] ++
        [Title || {Title, _} <- More],
        [row(Outcome) ++ counts(Outcome, [Key || {_, Key} <- More]) || Outcome <- Outcomes]
    ).

counts(#{metrics := Metrics}, Keys) -> [sderl_table:number(maps:get(Key, Metrics)) || Key <- Keys].

row(#{job := {Impl, _, #{name := Name, from := From}}, metrics := Metrics}) ->
    #{repetitions := Repetitions, converged := Converged, lost_acknowledged := Lost,
      came_back := Back, unknown := Unknown} = Metrics,
    #{converge_ms := Converge, rejoin_ms := Rejoin, stalled_ms := Stalled, hung := Hung} = Metrics,
    [
        atom_to_list(Name),
        Impl,
        sderl_table:number(Repetitions),
        sderl_table:number(Lost),
        sderl_table:number(Back),
        sderl_table:number(Unknown + Hung),
        sderl_table:number(Converged),
        case From of fault -> "fault"; done -> "its end" end,
        pair(Converge),
        pair(Rejoin),
        pair(Stalled)
    ].

pair(#{p50 := undefined}) -> "-";
pair(#{p50 := P50, p99 := P99}) ->
    [sderl_table:number(round(P50)), " / ", sderl_table:number(round(P99))].

%% The library has to keep its promises. The results of global are only reported.
verdict(Outcomes, Params) ->
    Own = [{atom_to_list(Name), Metrics}
           || #{job := {"s_group", _, #{name := Name}}, metrics := Metrics} <- Outcomes],
    Broken = [Name || {Name, Metrics} <- Own, broken(Metrics)],
    Apart = [Name
             || {Name, Metrics} <- Own, maps:get(consistency, Params) =:= majority, apart(Metrics)],
    case {Broken, Apart} of
        {[], []} -> ok;
        {[], _} -> {error, ["two sides of s_group decided: ", lists:join(", ", Apart)]};
        _ -> {error, ["s_group lost something or did not converge: ", lists:join(", ", Broken)]}
    end.

apart(#{cut_off_yes := CutOffYes, held_twice := Twice}) -> CutOffYes > 0 orelse Twice > 0.

broken(#{repetitions := Repetitions, converged := Converged, lost_acknowledged := Lost,
         came_back := Back}) ->
    Lost > 0 orelse Back > 0 orelse Converged < Repetitions.
