%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce).
-moduledoc """
The results of a reproduction: reads its folder, and makes a page for each claim, and the table of
verdicts.

`m:sderl_reproduce_command` measures; this only reads the folder, and may be used at any time, also
during a measurement.
""".

-export([pages/1, markdown/2, text/1]).
-export([described/1]).
-export_type([run/0]).

-doc """
What was asked for, and its progress. Times are in seconds; `budget_s` is `undefined` without a
limit, `revision` where that of the sources is not known, `ended` while runs are missing. `left_out`
did not fit into the budget, `failed` could not be measured. `points` is the number of runs in the
folder.
""".
-type run() :: #{
    scale := binary(),
    nodes := pos_integer(),
    claims := [binary()],
    budget_s := number() | undefined,
    used_s := number(),
    points := non_neg_integer(),
    command := binary(),
    machine := #{cores := pos_integer(), memory_mib := pos_integer() | null, otp := binary()},
    revision := binary() | undefined,
    started := binary(),
    ended := binary() | undefined,
    left_out := [#{claim := binary(), point := binary(), seconds := number()}],
    failed := [#{claim := binary(), point := binary(), reason := binary()}]
}.

-doc "The pages of a folder, in the order of the claims. An error is a text.".
-spec pages(file:filename()) -> {ok, run(), [sderl_claim:page()]} | {error, sderl_command:text()}.
pages(Dir) ->
    maybe
        {ok, Head, Points} ?= sderl_reproduce_store:read(Dir),
        Run = #{claims := Claims} = run(Head, Points),
        Modules = [Module
                   || Module <- sderl_claim:all(), lists:member(sderl_claim:id(Module), Claims)],
        {ok, Run,
         [page(Module, Points, maps:get(<<"commands">>, Head, #{}), Run) || Module <- Modules]}
    end.

run(Head, Points) ->
    Get = fun(Key, Default) ->
        case Head of
            #{Key := null} -> Default;
            #{Key := Value} -> Value;
            #{} -> Default
        end
    end,
    Machine = Get(<<"machine">>, #{}),
    #{
        scale => Get(<<"scale">>, <<>>),
        nodes => Get(<<"nodes">>, 1),
        claims => Get(<<"claims">>, []),
        budget_s => Get(<<"budget_s">>, undefined),
        used_s => Get(<<"used_s">>, 0),
        points => length([ok
                          || #{metrics := Metrics} <- Points,
                             not is_map_key(<<"failed">>, Metrics)]),
        command => Get(<<"command">>, <<>>),
        machine => #{
            cores => maps:get(<<"cores">>, Machine, 1),
            memory_mib => maps:get(<<"memory_mib">>, Machine, null),
            otp => maps:get(<<"otp">>, Machine, <<"?">>)
        },
        revision => Get(<<"revision">>, undefined),
        started => Get(<<"started">>, <<>>),
        ended => Get(<<"ended">>, undefined),
        left_out => [#{claim => C, point => P, seconds => S}
                     || #{<<"claim">> := C, <<"point">> := P, <<"seconds">> := S} <-
                            Get(<<"left_out">>, [])],
        failed =>
            [#{claim => C, point => P, reason => R}
             || #{<<"claim">> := C, <<"point">> := P, <<"reason">> := R} <- Get(<<"failed">>, [])]
    }.

page(Module, Points, Commands, #{command := Command} = Run) ->
    Id = sderl_claim:id(Module),
    Page = #{notes := Notes, plots := Plots} =
        sderl_claim:page(Module, Points, maps:get(Id, Commands, Command)),
    Page#{
        plots := [Plot || #{series := [_ | _]} = Plot <- [drawn(Plot) || Plot <- Plots]],
        notes := Notes ++ notes(Id, Run)
    }.

drawn(#{series := Series} = Plot) -> Plot#{series := [S || #{points := [_ | _]} = S <- Series]}.

notes(Id, #{scale := Scale, left_out := LeftOut, failed := Failed, ended := Ended,
            budget_s := Budget, used_s := Used}) ->
    Mine = fun(Of) -> [Element || #{claim := Claim} = Element <- Of, Claim =:= Id] end,
    Minutes = fun(S) -> sderl_table:number(S / 60) end,
    lists:append([
        [sderl_claim_points:text("Measured at the scale \"~ts\" in ~ts minutes, ~ts.", [
            Scale, Minutes(Used), case Budget of
                undefined -> "without a limit";
                _ -> ["of ", Minutes(Budget), " that it may take"]
            end
        ])],
        [<<"The run is not at its end: the same command measures what is missing.">>
         || Ended =:= undefined],
        [sderl_claim_points:text("Left out, because there was no time: ~ts.",
                                 [list([P || #{point := P} <- Mine(LeftOut)])])
         || Mine(LeftOut) =/= []],
        [sderl_claim_points:text("Could not be measured: ~ts: ~ts.", [P, R])
         || #{point := P, reason := R} <- Mine(Failed)]
    ]).

list(Texts) -> lists:join("; ", Texts).

-doc "The verdicts as Markdown, with the machine.".
-spec markdown(run(), [sderl_claim:page()]) -> unicode:chardata().
markdown(#{scale := Scale, machine := Machine, points := Points, used_s := Used,
           command := Command} = Run, Pages) ->
    #{cores := Cores, memory_mib := Memory, otp := Otp} = Machine,
    [
        io_lib:format("Scale ~ts, ~w runs in ~w minutes, ~w cores, ~ts OTP ~ts~ts, ~ts; `~ts`.\n\n",
                      [
                          Scale, Points, round(Used / 60), Cores,
                          [io_lib:format("~w MiB,", [Memory]) || is_integer(Memory)], Otp,
                          case Run of
                              #{revision := undefined} -> "";
                              #{revision := Revision} -> [", revision ", Revision]
                          end,
                          binary:part(maps:get(started, Run), 0,
                                      min(10, byte_size(maps:get(started, Run)))), Command
                      ]),
        "| claim | verdict | measured |\n|---|---|---|\n",
        [["| ", Id, ": ", Title, " | ", verdict(Verdict), " | ", cell(Text), " |\n"]
         || #{id := Id, title := Title, verdict := Verdict, verdict_text := Text} <- Pages]
    ].

cell(Text) -> string:replace(Text, "|", "\\|", all).

-doc "The verdicts for a terminal.".
-spec text([sderl_claim:page()]) -> unicode:chardata().
text(Pages) ->
    [
        [Id, " ", Title, ": ", verdict(Verdict), "\n   ", Text, "\n"]
     || #{id := Id, title := Title, verdict := Verdict, verdict_text := Text} <- Pages
    ].

verdict(confirmed) -> "confirmed";
verdict(refuted) -> "refuted";
verdict(not_shown) -> "not shown at this scale".

-doc "A point in words.".
-spec described(sderl_claim:point()) -> unicode:chardata().
described(#{workload := debench,
            params := #{mode := Mode, nodes := Nodes, clusters := Clusters, global_pct := Pct}}) ->
    [
        atom_to_list(Mode), ", ",
        case Clusters of 1 -> ""; _ -> io_lib:format("~w x ", [Clusters]) end,
        io_lib:format("~w nodes, ~ts %", [Nodes, sderl_claim_load:percent(Pct)])
    ];
described(#{workload := deploy, params := #{kind := Kind, nodes := Nodes, hosts := Hosts}}) ->
    io_lib:format("deploy ~w nodes, ~w hosts (~ts)", [Nodes, Hosts, Kind]);
described(#{workload := vm, params := #{bench := tables, updates := Updates}}) ->
    ["tables with ", Updates, " % of updates"];
described(#{workload := city, params := #{nodes := N}}) ->
    io_lib:format("city, ~w node~ts", [N, [$s || N > 1]]);
described(#{workload := balance, params := #{load_pct := Load, schedulers := N}}) ->
    io_lib:format("a load of ~w % on ~w scheduler~ts, compacted and balanced",
                  [Load, N, [$s || N > 1]]);
described(#{workload := schedulers, params := #{program := Program, schedulers := N}}) ->
    io_lib:format("~ts recorded on ~w scheduler~ts", [Program, N, [$s || N > 1]]);
described(#{workload := vm, params := #{program := Programs}}) ->
    [string:replace(Programs, ",", ", ", all), " by schedulers"];
described(#{workload := orbit, params := #{mode := Mode, nodes := Nodes} = Params}) ->
    [
        "orbit ", atom_to_list(Mode),
        case Params of #{routing := library} -> " (library)"; _ -> "" end,
        io_lib:format(", ~w node~ts", [Nodes, [$s || Nodes > 1]])
    ];
described(#{workload := aco,
            params := #{variant := smp, instance := Instance, colonies := Colonies}}) ->
    Which = case Instance of
        #{name := Name} -> Name;
        #{n := N, seed := Seed} -> io_lib:format("generated ~w jobs (~w)", [N, Seed])
    end,
    io_lib:format("aco ~w colon~ts, ~ts",
                  [Colonies, case Colonies of 1 -> "y"; _ -> "ies" end, Which]);
described(#{workload := aco, params := #{variant := Variant, nodes := Nodes,
                                         global_iterations := Rounds} = Params}) ->
    io_lib:format("aco ~ts, ~w nodes, ~w iterations~ts", [Variant, Nodes, Rounds, asked(Params)]);
described(#{workload := im,
            params := #{mode := Mode, servers := Servers, routers := Routers} = Params}) ->
    io_lib:format("im ~ts, ~w servers, ~w router~ts~ts",
                  [Mode, Servers, Routers, [$s || Routers > 1], asked(Params)]).

asked(Params) ->
    [
        case Params of
            #{chaos := #{every_ms := Ms} = Chaos} ->
                io_lib:format(", ~ts killed every ~w ms", [
                    case Chaos of #{classes := databases} -> "databases"; _ -> "anything" end, Ms
                ]);
            #{} -> ""
        end,
        case Params of
            #{monitoring := on} -> ", monitored";
            #{} -> ""
        end
    ].
