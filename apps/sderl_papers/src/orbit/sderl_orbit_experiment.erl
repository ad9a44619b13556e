%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_experiment).
-moduledoc """
`bin/sderl bench orbit`: Orbit in its modes, in turn. `m:sderl_orbit` says what they are and what
the metrics mean.

Sizes must agree in all runs, vertices received must be `size` x generators + 1, and links must be
those of the published formulas; otherwise the command fails after the tables.

A large orbit, of 60,231,680 elements, on four nodes:

```sh
bin/sderl bench orbit --mode sd --generators g12 --size 89194496 --nodes 4 --groups 2 \
    --workers 1 --batch 1000 --table compact
```

How many elements a space has depends on the prime factors of its N: 0.69 N for 2 and 5 alone, and
less or more for others.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([points/1, table/1, verdict/1]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, chosen/4]).

%% The numbers of the space, and most of their squares, are small integers, which are fast.
-define(MOST, 1_000_000_000).
%% Bytes of the published table for each number of the space.
-define(HASH_BYTES, 50).

-doc false.
-spec summary() -> string().
summary() -> "the orbit of 0 under generators, in one process, one VM, a full mesh, s_groups".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            The orbit of 0: all of [0, N) that generators lead to, computed by workers that share a
            distributed table; the end is known by credits. Workers are in one process (plain: with
            a set; seq: with a table), in one virtual machine (par), on a full mesh of nodes
            (stock), or in s_groups with submasters (sd). The master has one node more.
            """,
        arguments =>
            [
                option(mode, "LIST", string, "sd",
                       "modes, with commas between them: " ++ modes_text()),
                option(routing, "LIST", string, "own",
                       "between s_groups: own, by gateway processes as published; library, by the "
                       "library's routes"),
                option(generators, "G", string, "g12345",
                       "g1 to g12345: g and some of the digits 1 to 5"),
                option(size, "N", integer, 100_000, "the space is 0 to N - 1"),
                option(workers, "P", integer, 2, "workers on each node"),
                option(groups, "S", integer, 2,
                       "s_groups, of equal size; the last has what is left"),
                option(gateways, "G", integer, 2,
                       "gateway processes of each s_group, with --routing own"),
                option(batch, "B", integer, 1, "vertices in a message at most; as published: 1"),
                option(table, "KIND", string, "hash", "hash: buckets, as published; compact: a bit "
                                                      "for each number of the space, in slices"),
                option(stall, "S", integer, 60,
                       "seconds without progress after which a run is given up")
            ] ++ sderl_bench_series:options(#{nodes => "4", repeat => 1})
              ++ [sderl_bench_profile:option()]
    }.

modes_text() -> lists:join(", ", [atom_to_list(Mode) || Mode <- sderl_orbit:modes()]).

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{mode := Modes, routing := Routings, generators := Name, table := Table, size := Size} =
          Options) ->
    maybe
        {ok, ModeList} ?= chosen("--mode", "mode", Modes, sderl_orbit:modes()),
        {ok, RoutingList} ?= chosen("--routing", "routing", Routings, [own, library]),
        {ok, [Kind]} ?= chosen("--table", "kind of table", Table, sderl_orbit_table:kinds()),
        {ok, _} ?= generators(Name),
        ok ?= at_least(1, [size, workers, groups, gateways, batch, stall], Options),
        ok ?= at_most([{size, ?MOST}, {workers, 1000}, {gateways, 1000}, {batch, 1_000_000},
                       {stall, 86_400}], Options),
        ok ?= fits(Kind, Size),
        {ok, #{nodes := Nodes, compare := Compare} = Checked} ?= sderl_bench_series:check(Options),
        Full = Checked#{
            mode := case Compare of true -> sderl_orbit:modes(); false -> ModeList end,
            routing := case Compare of true -> [own, library]; false -> RoutingList end,
            table := Kind,
            generators := list_to_atom(Name)
        },
        ok ?= enough(Full, lists:min(Nodes)),
        ok ?= sderl_bench_profile:check(length(points(Full)) * map_get(repeat, Full), Full),
        {ok, Full}
    else
        {ok, [_, _ | _]} -> {error, "--table takes one kind of table"};
        Error -> Error
    end.

%% One of 31 names, so an atom can be made of it.
generators(Name) ->
    case sderl_orbit_generators:parse(Name) of
        error -> {error, ["--generators: ", sderl_orbit:text({unknown_generators, Name})]};
        Ok -> Ok
    end.

%% Two slots for each number of the space, with their content; sderl_fleet:fits/1 takes nodes of 50
%% MB.
fits(hash, Size) ->
    case sderl_fleet:fits(1 + Size * ?HASH_BYTES div 50_000_000) of
        ok -> ok;
        {error, _} ->
            {error, io_lib:format("--size ~w with --table hash does not fit into memory: give "
                                  "--table compact, or less", [Size])}
    end;
fits(compact, _) ->
    ok.

enough(#{mode := Modes, groups := Groups}, Fewest) ->
    case lists:member(sd, Modes) andalso Groups > Fewest of
        true ->
            {error,
             io_lib:format("--groups ~w: that many s_groups need as many nodes, and --nodes has ~w",
                           [Groups, Fewest])};
        false -> ok
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{repeat := Repeat} = Options, Output) ->
    maybe
        Show = fun(Runs) ->
            sderl_bench_output:say(Output, ["\n", title(Options), "\n\n", table(Runs)])
        end,
        Run = fun(Params, Label) ->
            case sderl_bench_reason:said(orbit, fun sderl_orbit:text/1,
                                         sderl_orbit:run(Params, Label)) of
                {ok, #{seconds := Seconds, elements_per_s := Rate} = Metrics} ->
                    sderl_bench_output:say(Output, [
                        string:pad(Label, 24), sderl_table:number(Seconds), " s, ",
                        sderl_table:number(Rate), " elements/s\n"
                    ]),
                    {ok, Metrics};
                Error ->
                    Error
            end
        end,
        {ok, All} ?= sderl_bench_series:run(orbit, points(Options), Repeat, Run, Show, Output),
        verdict(All)
    end.

title(#{generators := Generators, size := Size, repeat := Repeat}) ->
    [
        io_lib:format("Orbit ~ts, N = ~ts", [Generators, sderl_table:number(Size)]),
        [io_lib:format(", ~w turns: median (least..greatest)", [Repeat]) || Repeat > 1],
        "; ",
        sderl_bench_machine:text()
    ].

-doc """
What is run: modes without a cluster once, the others with each number of nodes, `sd` with each
routing. A point has the parameters that matter in its mode.
""".
-spec points(#{atom() => term()}) -> [sderl_orbit:params()].
points(#{mode := Modes, routing := Routings, nodes := Nodes, stall := StallS} = Options) ->
    Common = (maps:with([generators, size, prof], Options))#{stall_s => StallS},
    One = Common#{nodes => 1},
    With = fun(Keys, Point) -> maps:merge(Point, maps:with(Keys, Options)) end,
    lists:append([
        case Mode of
            plain -> [One#{mode => plain}];
            seq -> [With([table], One#{mode => seq})];
            par -> [With([table, workers, batch], One#{mode => par})];
            stock ->
                [With([table, workers, batch], Common#{mode => stock, nodes => N}) || N <- Nodes];
            sd -> [
                With([table, workers, batch, groups] ++ [gateways || Routing =:= own],
                    Common#{mode => sd, nodes => N, routing => Routing})
             || N <- Nodes, Routing <- Routings
            ]
        end
     || Mode <- Modes
    ]).

-doc "A line for each point; ratios are of runs in the same turn.".
-spec table([sderl_bench_series:run()]) -> unicode:chardata().
table(Runs) ->
    Bases = [Mode
             || Mode <- [plain, seq],
                lists:any(fun(#{params := #{mode := M}}) -> M =:= Mode end, Runs)],
    Base = case Bases of [First | _] -> [First]; [] -> [] end,
    sderl_table:text(
        ["", "nodes", "elements", "s", "elements/s"] ++ [["x ", atom_to_list(B)] || B <- Base] ++
        ["links: master", "submaster", "worker", "messages", "bytes/element", "CPU us/element",
         "MiB a node"],
        [row(Params, Medians, Base, Runs) || {Params, Medians} <- sderl_bench_series:medians(Runs)]
    ).

row(#{nodes := Nodes} = Params, Medians, Base, Runs) ->
    Mine = sderl_bench_series:metrics(Params, Runs),
    Spread = fun(Key) -> sderl_table:spread([maps:get(Key, M, undefined) || M <- Mine]) end,
    Middle = fun(Key) ->
        case Medians of
            #{Key := {Median, _, _}} -> sderl_table:number(Median);
            #{} -> "-"
        end
    end,
    Most = fun(Key) ->
        sderl_table:number(lists:max([undefined_as(0, maps:get(Key, M)) || M <- Mine]))
    end,
    [name(Params), integer_to_list(Nodes), Middle(size), Spread(seconds), Spread(elements_per_s)] ++
        [sderl_table:spread(ratios(Params, B, Runs)) || B <- Base] ++
        [Most(Key) || Key <- [links_master, links_submaster_max, links_worker_max]] ++
        [Middle(messages), Middle(bytes_per_element), Middle(cpu_us_per_op),
         Middle(memory_mib_max)].

undefined_as(Default, undefined) -> Default;
undefined_as(_, Value) -> Value.

name(#{mode := sd, routing := Routing}) -> ["sd ", atom_to_list(Routing)];
name(#{mode := Mode}) -> atom_to_list(Mode).

ratios(Params, Base, Runs) ->
    [
        Rate / Of
     || #{params := #{run := Turn} = P, metrics := #{elements_per_s := Rate}} <- Runs,
        maps:remove(run, P) =:= Params,
        #{params := #{mode := Mode, run := T}, metrics := #{elements_per_s := Of}} <- Runs,
        Mode =:= Base,
        T =:= Turn
    ].

-doc "The conditions of every run; an error if one does not hold.".
-spec verdict([sderl_bench_series:run()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    Sizes = lists:usort([{Size, Sum} || #{metrics := #{size := Size, checksum := Sum}} <- Runs]),
    Received = [
        Params
     || #{params := #{generators := Name} = Params,
          metrics := #{size := Size, vertices_received := Received}} <- Runs,
        {ok, Generators} <- [sderl_orbit_generators:parse(Name)],
        Received =/= Size * length(Generators) + 1
    ],
    Links = [{Params, M}
             || #{params := Params, metrics := #{links_as_expected := false} = M} <- Runs],
    case {Sizes, Received, Links} of
        {[_, _ | _], _, _} ->
            {error, ["the runs found different orbits, of ",
                     lists:join(", ", [integer_to_list(S) || {S, _} <- Sizes]), " elements"]};
        {_, [Params | _], _} ->
            {error, [name(Params), ": vertices were lost or came twice"]};
        {_, _, [{Params, #{links_expected := Expected} = M} | _]} ->
            {error,
             io_lib:format("~ts: links are not as the formulas say: ~0tp, and by the formulas ~0tp",
                           [
                               name(Params),
                               maps:with([links_master, links_submaster_max, links_worker_max], M),
                               Expected
                           ])};
        _ ->
            ok
    end.
