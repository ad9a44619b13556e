%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_run).
-moduledoc """
Runs the measurements of `bin/sderl bench vm`: checks that each kind of virtual machine starts,
finds how often each program is repeated in a run, and then goes through the rounds of
`m:sderl_bench_vm_plan` until all points are known well enough or the time is over. Each result is
written to the file at once.
""".

-export([measure/1]).
-export_type([options/0, program/0, ended/0]).

-type program() :: #{name := binary(), control := boolean(), job := sderl_bench_vm_program:job(),
                     points := [sderl_bench_vm_matrix:point(), ...]}.

-doc """
`header` is that of the file. `otps`, `modules` and `limit_ms` are for
`sderl_bench_vm_start:open/2`. Times: `budget_ms` of the whole, `run_ns` of a run on one scheduler,
`most_ns` of the runs of one virtual machine. With `race` only the best program is asked for
(`m:sderl_bench_vm_race`).
""".
-type options() :: #{
    out := file:filename(),
    header := #{settings := term(), machine := term(), seed := integer(), atom() => term()},
    programs := [program(), ...],
    otps := [{string(), own | file:filename()}, ...],
    modules := [module()],
    seed := integer(),
    rounds := pos_integer(),
    least := pos_integer(),
    race => boolean(),
    width := float(),
    budget_ms := pos_integer(),
    limit_ms := pos_integer(),
    runs := pos_integer(),
    run_ns := pos_integer(),
    most_ns := pos_integer(),
    release => sderl_bench_vm_release:release(),
    _ => _
}.

-doc "Why it ended: all is known well enough, the rounds or the time are over.".
-type ended() :: narrow | rounds | budget.

%% After so many runs the warm-up ends, and the report says that the program is not steady.
-define(WARM_MOST, 8).
%% On the most nodes a run may take so many times as long as wanted.
-define(SLOWER, 2).

-doc """
Measures, and continues the results in the file. A failure is a line of the file, too. The error is
a text.
""".
-spec measure(options()) ->
    {ok, ended(), sderl_bench_vm_store:header(), [sderl_bench_vm_store:line()]}
    | {error, unicode:chardata()}.
measure(#{out := Out, header := Header} = Options) ->
    maybe
        {ok, Store, Stored, Lines} ?= sderl_bench_vm_store:open(Out, Header),
        %% The order of the rounds is that of the first command.
        #{~"seed" := Seed} = Stored,
        Result = try
            with_starter(Store, Lines, Options#{seed := Seed})
        after
            sderl_bench_vm_store:close(Store)
        end,
        case Result of
            {ok, Ended} ->
                {ok, Header1, All} = sderl_bench_vm_store:read(Out),
                {ok, Ended, Header1, All};
            Error ->
                Error
        end
    end.

with_starter(Store, Lines, #{otps := Otps} = Options) ->
    case sderl_bench_vm_start:open(Otps, Options) of
        {ok, Starter} ->
            try
                at_work(#{store => Store, starter => Starter, options => Options,
                          started => erlang:monotonic_time(millisecond)}, Lines)
            after
                sderl_bench_vm_start:close(Starter)
            end;
        Error ->
            Error
    end.

at_work(Context, Lines) ->
    maybe
        {probed, LeftOut} ?= probed(Context, Lines),
        {ok, Possible} ?= possible(Context, LeftOut),
        {calibrated, Repetitions} ?= calibrated(Possible, Lines),
        Works = works(Possible, Repetitions),
        rounds(Possible, Works, Repetitions, 1, seen(Lines))
    end.

%% ---------------------------------------------------------------- each kind of virtual machine

probed(#{options := #{programs := Programs}} = Context, Lines) ->
    Points = lists:uniq(lists:append([Points || #{points := Points} <- Programs])),
    Done = #{of_line(Line) => ok || #{~"kind" := ~"probed"} = Line <- Lines},
    LeftOut = maps:from_list(sderl_bench_vm_summary:left_out(Lines)),
    Known = #{Name => Facts
              || #{~"kind" := ~"otp", ~"name" := Name, ~"facts" := Facts} <- Lines},
    %% Points that were not possible may be possible by now.
    Left = to_probe(Points, maps:without(maps:keys(LeftOut), Done)),
    Ended = probe(Left, length(Left), Context#{probed => Done}, Known, LeftOut),
    sderl_progress:done(),
    Ended.

%% One point of each OTP is always probed, because the OTP may have changed since the file was
%% begun.
to_probe(Points, Done) ->
    Firsts = [hd(Of) || _ := Of <- maps:groups_from_list(fun(#{otp := Otp}) -> Otp end, Points)],
    [Point || Point <- Points,
              lists:member(Point, Firsts) orelse not is_map_key(id(Point), Done)].

probe([], _, _, _, LeftOut) ->
    {probed, LeftOut};
probe([Point | Points], Total, Context, Known, LeftOut) ->
    Show = sderl_progress:reporter("virtual machines"),
    Show(Total - length(Points) - 1, Total),
    maybe
        true ?= time_left(Context),
        {ok, Name, Facts, Ignored} ?= facts(Point, Context),
        ok ?= same_otp(Point, Facts, maps:get(Name, Known, #{})),
        ok ?= case Known of
            #{Name := _} -> ok;
            #{} -> keep(Context, #{kind => otp, name => Name, facts => Facts})
        end,
        {ok, Out} ?= keep_probed(Point, Ignored, Context, LeftOut),
        probe(Points, Total, Context, Known#{Name => maps:get(Name, Known, Facts)}, Out)
    else
        false -> {ok, budget};
        {error, Text} -> {error, Text}
    end.

keep_probed(Point, [], #{probed := Done} = Context, LeftOut) ->
    case is_map_key(id(Point), Done) andalso not is_map_key(id(Point), LeftOut) of
        true -> {ok, LeftOut};
        false -> kept(Point, #{kind => probed}, Context, maps:remove(id(Point), LeftOut))
    end;
keep_probed(Point, Ignored, Context, LeftOut) ->
    case is_map_key(id(Point), LeftOut) of
        true ->
            {ok, LeftOut};
        false ->
            Reason = unicode:characters_to_binary([label(Point), ": ", lists:join("; ", Ignored)]),
            kept(Point, #{kind => left_out, reason => Reason}, Context,
                 LeftOut#{id(Point) => Reason})
    end.

kept(Point, Line, Context, LeftOut) ->
    case keep(Context, maps:merge(sderl_bench_vm_matrix:fields(Point), Line)) of
        ok -> {ok, LeftOut};
        Error -> Error
    end.

%% Without the points whose virtual machine silently does something else than its flags ask for.
possible(#{options := #{programs := Programs} = Options} = Context, LeftOut) ->
    Left = [Program#{points := [Point || Point <- Points, not is_map_key(id(Point), LeftOut)]}
            || #{control := false, points := Points} = Program <- Programs],
    case Left of
        [#{points := []} | _] ->
            {error, ["nothing was measured, because no virtual machine does what its flags ask "
                     "for: ", lists:join("; ", maps:values(LeftOut))]};
        [#{points := Points} | _] ->
            Control = [Program#{points := sderl_bench_vm_matrix:ends(Points)}
                       || #{control := true} = Program <- Programs],
            {ok, Context#{options := Options#{programs := Control ++ Left}}}
    end.

facts(#{schedulers := N, otp := Otp} = Point, #{starter := Starter, options := Options}) ->
    case sderl_bench_vm_start:run(Starter, Point, order(false, Options, #{do => probe})) of
        {ok, #{schedulers := N} = Facts} ->
            %% Facts that depend on the point are not facts of the OTP.
            {ok, unicode:characters_to_binary(Otp),
             plain(maps:without([dirty_cpu, dirty_cpu_online, bind_type, bindings], Facts)),
             sderl_bench_vm_matrix:ignored(Point, Facts)};
        {ok, #{schedulers := Other}} ->
            {error, io_lib:format("~ts: it has ~w schedulers online", [label(Point), Other])};
        {error, Text} ->
            {error, ["nothing was measured, because a point is not possible: ", label(Point), ": ",
                     Text]}
    end.

%% In the form that they have when they are read from the file.
plain(Facts) ->
    #{atom_to_binary(Key) => case Value of
        [_ | _] -> unicode:characters_to_binary(Value);
        _ when is_atom(Value) -> atom_to_binary(Value);
        _ -> Value
    end || Key := Value <- Facts}.

same_otp(#{otp := Otp}, Facts, Known) ->
    Differing = [io_lib:format("~ts was ~ts and is ~ts", [Key, Before, Now])
                 || Key <- [~"otp", ~"erts", ~"emulator", ~"build", ~"compiler", ~"architecture",
                            ~"libc"],
                    #{Key := Before} <- [Known], #{Key := Now} <- [Facts], Before =/= Now],
    case Differing of
        [] -> ok;
        _ ->
            {error, [case Otp of "" -> "this OTP"; _ -> ["OTP ", Otp] end,
                     " is another one than that of the results in the file: ",
                     lists:join(", ", Differing), ": name another file with --out"]}
    end.

label(Point) ->
    [sderl_bench_vm_size:text(sderl_bench_vm_size:of_point(Point)),
     case sderl_bench_vm_matrix:text(Point) of "" -> ""; Text -> [", ", Text] end].

%% ---------------------------------------------------------------- how often in a run

%% Repetitions are found on one scheduler of the first series, where a run takes longest. On several
%% nodes a run may take a hundred times as long, so that is measured, too.
calibrated(#{options := #{programs := Programs}} = Context, Lines) ->
    Known = #{Name => Count || #{~"kind" := ~"calibrated", ~"program" := Name,
                                 ~"repetitions" := Count} <- Lines},
    calibrate(Programs, Context, Known).

calibrate([], _, Known) ->
    {calibrated, Known};
calibrate([#{name := Name} | Programs], Context, Known) when is_map_key(Name, Known) ->
    calibrate(Programs, Context, Known);
calibrate([#{name := Name, control := Control, job := Job, points := [Point | _] = Points}
           | Programs],
          #{starter := Starter, options := #{run_ns := RunNs} = Options} = Context, Known) ->
    Order = order(Control, Options, #{do => calibrate, job => Job, run_ns => RunNs}),
    case time_left(Context) andalso sderl_bench_vm_start:run(Starter, Point, Order) of
        false ->
            {ok, budget};
        {ok, #{repetitions := Alone} = Calibrated} ->
            Ends = sderl_bench_vm_matrix:ends(Points),
            Count = min(Alone, on_nodes(Starter, lists:last(Ends), Order)),
            Line = Calibrated#{kind => calibrated, program => Name, repetitions := Count},
            case keep(Context, Line) of
                ok -> calibrate(Programs, Context, Known#{Name => Count});
                Error -> Error
            end;
        {error, Text} ->
            case keep(Context, failure(Name, Point, Text)) of
                ok -> calibrate(Programs, Context, Known);
                Error -> Error
            end
    end.

%% A failure here will be reported when the point is measured. (Atoms are above all numbers.)
on_nodes(Starter, #{nodes := Nodes} = Point, #{run_ns := RunNs} = Order) when Nodes > 1 ->
    case sderl_bench_vm_start:run(Starter, Point, Order#{run_ns := ?SLOWER * RunNs}) of
        {ok, #{repetitions := Count}} -> Count;
        {error, _} -> any
    end;
on_nodes(_, _, _) ->
    any.

failure(Name, Point, Text) ->
    (sderl_bench_vm_matrix:fields(Point))#{
        kind => failed, program => Name, reason => unicode:characters_to_binary(Text)
    }.

%% The same key as `of_line/1` has.
id(Point) ->
    #{flags := Flags, otp := Otp} = sderl_bench_vm_matrix:fields(Point),
    {sderl_bench_vm_size:of_point(Point), {Flags, Otp}}.

of_line(Line) -> {sderl_bench_vm_size:of_line(Line), sderl_bench_vm_summary:key(Line)}.

keep(#{store := Store}, Line) ->
    sderl_bench_vm_store:append(Store, Line#{at => sderl_bench_output:now()}).

%% ---------------------------------------------------------------- rounds

works(#{options := #{programs := Programs}}, Repetitions) ->
    [
        #{id => {Name, id(Point)}, control => Control, name => Name, point => Point, job => Job}
     || #{name := Name, control := Control, job := Job, points := Points} <- Programs,
        is_map_key(Name, Repetitions),
        Point <- Points
    ].

seen(Lines) ->
    lists:foldl(
        fun
            (#{~"kind" := ~"vm", ~"program" := Program, ~"round" := Round,
               ~"runs" := Runs} = Line, Seen) ->
                measured({Program, of_line(Line)}, Round, Runs, Seen);
            (_, Seen) ->
                Seen
        end,
        #{},
        Lines
    ).

measured(Id, Round, Runs, Seen) ->
    Of = #{times := Times} = maps:get(Id, Seen, #{times => #{}, failed => 0}),
    Seen#{Id => Of#{times := Times#{Round => float(sderl_table:median(Runs))}}}.

failed(Id, Seen) ->
    Of = #{failed := Count} = maps:get(Id, Seen, #{times => #{}, failed => 0}),
    Seen#{Id => Of#{failed := Count + 1}}.

rounds(_, [], _, _, _) ->
    {ok, narrow};
rounds(#{options := #{rounds := Last} = Options} = Context, Works, Repetitions, Round, Seen)
  when Round > Last ->
    %% In a race points wait for others, and so may have missed the first rounds.
    Missed = [Earlier || #{race := true} <- [Options], Earlier <- lists:seq(1, Last),
                         sderl_bench_vm_plan:round(Works, Earlier, Seen, Options) =/= []],
    case Missed of
        [] -> {ok, rounds};
        [First | _] -> rounds(Context, Works, Repetitions, First, Seen)
    end;
rounds(#{options := Options} = Context, Works, Repetitions, Round, Seen) ->
    case sderl_bench_vm_plan:round(Works, Round, Seen, Options) of
        [] ->
            %% Nothing is left of this round; a later round may be incomplete after an interruption.
            case open_ended(Works, Seen, Options) of
                false -> {ok, narrow};
                true -> rounds(Context, Works, Repetitions, Round + 1, Seen)
            end;
        Left ->
            Show = sderl_progress:reporter(io_lib:format("round ~w", [Round])),
            case in_order(Left, length(Left), Show, Context, Repetitions, Round, Seen) of
                {seen, Next} -> rounds(Context, Works, Repetitions, Round + 1, Next);
                Ended -> Ended
            end
    end.

open_ended(Works, Seen, Options) ->
    Far = 1 + lists:max([0 | [Round || #{times := Times} <- maps:values(Seen),
                                       Round <- maps:keys(Times)]]),
    sderl_bench_vm_plan:round(Works, Far, Seen, Options) =/= [].

in_order([], _, _, _, _, _, Seen) ->
    sderl_progress:done(),
    {seen, Seen};
in_order([#{id := Id, name := Name} = Work | Works], Total, Show, Context, Repetitions, Round,
         Seen) ->
    Show(Total - length(Works) - 1, Total),
    case time_left(Context) of
        false ->
            sderl_progress:done(),
            {ok, budget};
        true ->
            case one(Work, map_get(Name, Repetitions), Context, Round) of
                {ok, Runs} ->
                    in_order(Works, Total, Show, Context, Repetitions, Round,
                             measured(Id, Round, Runs, Seen));
                failed ->
                    in_order(Works, Total, Show, Context, Repetitions, Round, failed(Id, Seen));
                {error, Text} ->
                    sderl_progress:done(),
                    {error, Text}
            end
    end.

time_left(#{started := Started, options := #{budget_ms := Budget}}) ->
    erlang:monotonic_time(millisecond) - Started < Budget.

one(#{name := Name, control := Control, point := Point, job := Job}, Count,
    #{starter := Starter, options := Options} = Context, Round) ->
    Order = order(Control, Options, (maps:with([runs, most_ns], Options))#{
        do => measure, job => Job, repetitions => Count, warm_most => ?WARM_MOST
    }),
    case sderl_bench_vm_start:run(Starter, Point, Order) of
        {ok, #{runs := Runs} = Measured} ->
            Times = [Ns || #{ns := Ns} <- Runs],
            Line = (maps:merge(sderl_bench_vm_matrix:fields(Point),
                               maps:with([warm, warmed, overhead_ns, why], Measured)))#{
                kind => vm, program => Name, round => Round,
                repetitions => Count, runs => Times, stages => stages(Runs),
                hash => agreed(Runs), text => map_get(text, hd(Runs))
            },
            case keep(Context, Line) of
                ok -> {ok, Times};
                Error -> Error
            end;
        {error, Text} ->
            case keep(Context, (failure(Name, Point, Text))#{round => Round}) of
                ok -> failed;
                Error -> Error
            end
    end.

%% The control does not run in the release.
order(true, _, Order) -> Order#{result => ""};
order(false, Options, Order) -> maps:merge(Order#{result => ""}, maps:with([release], Options)).

stages([#{stages := [_]} | _]) -> #{};
stages(Runs) ->
    #{Name => [Ns || #{stages := Of} <- Runs, {Stage, Ns} <- Of, Stage =:= Name]
      || #{stages := Stages} <- [hd(Runs)], {Name, _} <- Stages}.

%% If the runs differ, a hash of all their hashes, which no other virtual machine has.
agreed([#{hash := Hash} | _] = Runs) ->
    case lists:usort([Other || #{hash := Other} <- Runs]) of
        [Hash] -> Hash;
        Several -> erlang:phash2(Several, 1 bsl 32)
    end.
