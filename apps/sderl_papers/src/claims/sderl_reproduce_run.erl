%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_run).
-moduledoc """
Measures the points of claims, one after the other, into a folder.

After each point the rest is planned again, from the times that the points so far took. However the
run ends, all measurements are in the folder, and the nodes end with the calling process.
""".

-export([run/2, planned/1, failed_in/1]).
-export_type([request/0]).

%% The part of the budget that is not planned for: the last point may take longer than expected.
-define(RESERVE, 0.03).

-doc """
`budget_s` is for these claims together. `command` is the command line that repeats it.
""".
-type request() :: #{
    claims := [module()],
    scale := sderl_reproduce_scale:scale(),
    out := file:filename(),
    budget_s := number() | infinity,
    command := binary()
}.

-doc """
The plan of a request, with what its folder already has, and the seconds used so far. Nothing is
written.
""".
-spec planned(request()) ->
    {ok, sderl_reproduce_plan:plan(), UsedS :: number()} | {error, sderl_command:text()}.
planned(#{out := Dir} = Request) ->
    maybe
        {ok, _, Points} ?= sderl_reproduce_store:look(Dir, same(Request)),
        {ok, plan(Request, [tried(Point, retried) || Point <- Points]), used(Points)}
    end.

%% What must be the same for all points of a folder.
same(#{scale := #{name := Name, nodes := Nodes}}) ->
    json:decode(iolist_to_binary(json:encode(#{scale => Name, nodes => Nodes,
                                               machine => sderl_bench_machine:info()}))).

plan(#{claims := Claims, scale := #{runs := Runs} = Scale, budget_s := Budget}, Tried) ->
    Planned = case Budget of infinity -> infinity; _ -> Budget * (1 - ?RESERVE) end,
    sderl_reproduce_plan:plan(
        [#{id => sderl_claim:id(Module), share => sderl_claim:share(Module),
           points => Module:points(Scale)}
         || Module <- Claims], Tried, Planned, Runs
    ).

%% A point that failed before this command is tried again, once.
tried(#{metrics := Metrics} = Point, Failed) ->
    #{
        key => sderl_claim_points:key(Point),
        took_s => took(Metrics),
        outcome => case Metrics of #{<<"failed">> := _} -> Failed; _ -> ok end
    }.

took(#{<<"took_s">> := Took}) when is_number(Took) -> Took;
took(_) -> 0.

used(Points) -> lists:sum([took(Metrics) || #{metrics := Metrics} <- Points]).

-doc "Measures what is missing. `Say` gets a line about each point as soon as it is measured.".
-spec run(request(), Say :: fun((unicode:chardata()) -> ok)) -> ok | {error, sderl_command:text()}.
run(#{out := Dir} = Request, Say) ->
    Same = same(Request),
    maybe
        {ok, Old, Points} ?= sderl_reproduce_store:open(Dir, Same),
        State = #{
            request => Request,
            say => Say,
            head => head(Old, Same, Request),
            points => Points,
            tried => [tried(Point, retried) || Point <- Points],
            reasons => #{},
            done => 0
        },
        next(State)
    end.

head(Old, Same, #{claims := Modules, budget_s := Budget, command := Command}) ->
    Known = case Old of new -> #{<<"started">> => sderl_bench_output:now()}; #{} -> Old end,
    Before = maps:get(<<"claims">>, Known, []),
    maps:merge(Known, Same#{
        <<"claims">> => [Id
                         || Module <- sderl_claim:all(), Id <- [sderl_claim:id(Module)],
                            lists:member(Module, Modules) orelse lists:member(Id, Before)],
        <<"budget_s">> => case Budget of infinity -> null; _ -> Budget end,
        <<"command">> => Command,
        %% Several commands may measure into one folder.
        <<"commands">> => maps:merge(maps:get(<<"commands">>, Known, #{}),
                                     #{sderl_claim:id(Module) => Command || Module <- Modules}),
        <<"revision">> => revisions(maps:get(<<"revision">>, Known, null), revision())
    }).

%% There may be points of earlier revisions.
revisions(Before, null) -> Before;
revisions(Before, Now) when is_binary(Before) ->
    case lists:member(Now, binary:split(Before, <<", ">>, [global])) of
        true -> Before;
        false -> <<Before/binary, ", ", Now/binary>>
    end;
revisions(_, Now) -> Now.

next(#{request := Request, tried := Tried} = State) ->
    Plan = #{jobs := Jobs} = plan(Request, Tried),
    maybe
        ok ?= save(Plan, State),
        case Jobs of
            [] -> ended(Plan, State);
            [Job | _] -> measure(Job, Jobs, State)
        end
    end.

save(#{jobs := Jobs, left_out := LeftOut, failed := Failed},
     #{request := #{out := Dir, claims := Modules}, head := Head, points := Points,
       reasons := Reasons}) ->
    Now = [sderl_claim:id(Module) || Module <- Modules],
    %% The entries of another command of this folder on its claims stay.
    Others = fun(Key) ->
        [Of || #{<<"claim">> := Id} = Of <- maps:get(Key, Head, []), not lists:member(Id, Now)]
    end,
    sderl_reproduce_store:save(Dir, Head#{
        <<"used_s">> => round(used(Points)),
        <<"ended">> => case Jobs of [] -> sderl_bench_output:now(); _ -> null end,
        <<"left_out">> => Others(<<"left_out">>) ++
            [#{<<"claim">> => Id, <<"point">> => text(Point), <<"seconds">> => round(S)}
             || #{claim := Id, point := Point, seconds := S} <- LeftOut],
        <<"failed">> => Others(<<"failed">>) ++
            [#{<<"claim">> => Id, <<"point">> => text(Point),
               <<"reason">> => maps:get(sderl_claim_points:key(Point), Reasons)}
             || #{claim := Id, point := Point} <- Failed]
    }).

text(Point) -> sderl_claim_points:text(sderl_reproduce:described(Point)).

measure(#{point := #{workload := Workload, params := Params} = Point, run := Run}, Jobs,
        #{request := #{out := Dir}, say := Say, done := Done} = State) ->
    Started = sderl_bench_output:now(),
    StartMs = erlang:monotonic_time(millisecond),
    Outcome = sderl_fleet_task:attempt(fun() ->
        run(Workload, Params#{seed => Run}, label(Point, Jobs, Done))
    end),
    Seconds = (erlang:monotonic_time(millisecond) - StartMs) / 1000,
    ok = sderl_progress:done(),
    {Metrics, Reasons} =
        case Outcome of
            {ok, Measured} -> {Measured, #{}};
            {error, Reason} ->
                Why = sderl_claim_points:text(sderl_papers_reason:text(Reason)),
                {#{failed => Why, failed_in => failed_in(Reason)},
                 #{sderl_claim_points:key(Point) => Why}}
        end,
    Result = sderl_bench_output:result(Workload, (sderl_claim_points:written(Params))#{run => Run},
                                       Metrics#{took_s => Seconds}, Started),
    maybe
        {ok, Result1} ?= sderl_reproduce_store:append(Dir, Result),
        ok = Say([text(Point), ": ", said(Metrics),
                  io_lib:format(" (~ts)\n", [sderl_progress:duration(round(1000 * Seconds))])]),
        #{points := Points, tried := Tried, reasons := Before} = State,
        next(State#{points := Points ++ [Result1], tried := [tried(Result1, failed) | Tried],
                    reasons := maps:merge(Before, Reasons), done := Done + 1})
    end.

-doc """
Whether the program failed in a run (`run`), or something else: memory, nodes, the start, the
measurement. Only the first says something about a claim. (`node_down` and `silent` are nodes that
went down or stood still, which no claim is about.)
""".
-spec failed_in(Reason :: term()) -> run | other.
failed_in({aco, Reason}) when is_tuple(Reason) ->
    case lists:member(element(1, Reason), [died, timeout, wrong]) of
        true -> run;
        false -> other
    end;
failed_in({im, {no_result, _, _}}) -> run;
failed_in(_) -> other.

run(debench, Params, Label) -> sderl_debench:run(Params, Label);
run(orbit, Params, Label) -> sderl_orbit:run(Params, Label);
run(aco, Params, Label) -> sderl_reproduce_aco:run(Params, Label);
run(im, Params, Label) -> sderl_im:run(Params, Label);
run(deploy, Params, Label) -> sderl_bench_deploy:once(Params, Label);
run(vm, Params, Label) -> sderl_reproduce_vm:run(Params, Label);
run(city, Params, Label) -> sderl_city:run(Params, Label);
run(balance, Params, Label) -> sderl_reproduce_balance:run(Params, Label);
run(schedulers, Params, Label) -> sderl_reproduce_schedulers:run(Params, Label).

%% Before the bar of the point: the progress of the whole.
label(Point, Jobs, Done) ->
    Left = sderl_progress:duration(round(1000 * sderl_reproduce_plan:total(Jobs))),
    [io_lib:format("~w/~w, ~ts left; ", [Done + 1, Done + length(Jobs), Left]), text(Point)].

said(#{failed := Why}) ->
    ["not measured: ", Why];
said(
    #{global := #{ops := Ops, latency_us := #{p50 := P50}}, global_done_pct := Completed} = Metrics
) ->
    io_lib:format("~w global operations, p50 ~ts ms, ~ts % done, processor ~ts %", [
        Ops, sderl_table:number(case P50 of undefined -> undefined; _ -> P50 / 1000 end),
        sderl_table:number(Completed), sderl_table:number(maps:get(cpu_pct, Metrics, undefined))
    ]);
said(#{best_cost := Cost, seconds := Seconds} = Metrics) ->
    io_lib:format("best cost ~w, ~ts s~ts", [Cost, sderl_table:number(Seconds), kills(Metrics)]);
said(#{drives := Drives, seconds := Seconds, packets := Packets}) ->
    io_lib:format("~ts s, ~w vehicles drove on, ~ts packets",
                  [sderl_table:number(Seconds), Drives, sderl_table:number(Packets)]);
said(#{seconds := Seconds, links_per_node_max := Links}) ->
    io_lib:format("~ts s, ~ts links of a node at most",
                  [sderl_table:number(Seconds), sderl_table:number(Links)]);
said(#{delivered_per_min := Delivered} = Metrics) ->
    io_lib:format("~ts messages a minute~ts", [sderl_table:number(Delivered), kills(Metrics)]);
said(#{compaction := #{p99 := Compaction}, balancing := #{p99 := Balancing}})
  when is_number(Compaction), is_number(Balancing) ->
    io_lib:format("p99 ~ts ms with compaction, ~ts ms balanced",
                  [sderl_table:number(Us / 1000) || Us <- [Compaction, Balancing]]);
said(#{lost := Lost, schedulers := N}) ->
    io_lib:format("~ts % of the time of ~w schedulers lost", [sderl_table:number(100 * Lost), N]);
said(#{rows := Rows}) ->
    Most = lists:max([N || #{schedulers := N} <- Rows]),
    [lists:join(", ", [io_lib:format("~ts ~ts ms", [maps:get(table, Row, Name),
                                                    sderl_table:number(Us / 1000)])
                       || #{program := Name, schedulers := N, us := Us} = Row <- Rows,
                          N =:= Most]),
     io_lib:format(" on ~w schedulers", [Most])];
said(#{deploy_s := Seconds, nodes_per_s := PerS}) ->
    io_lib:format("~ts s, ~ts nodes a second",
                  [sderl_table:number(Seconds), sderl_table:number(PerS)]);
said(_) ->
    "measured".

kills(#{kills := Kills}) when is_integer(Kills), Kills > 0 -> io_lib:format(", ~w kills", [Kills]);
kills(_) -> "".

ended(#{left_out := LeftOut, failed := Failed}, #{say := Say, request := #{out := Dir}}) ->
    ok = Say([io_lib:format("Left out, because there was no time: ~ts\n", [text(Point)])
              || #{point := Point} <- LeftOut]),
    maybe
        {ok, _, Pages} ?= sderl_reproduce:pages(Dir),
        ok = Say(["\n", sderl_reproduce:text(Pages)]),
        case Failed of
            [] -> ok;
            [_ | _] ->
                {error,
                 io_lib:format("~w points could not be measured, such as ~ts; the same command "
                               "tries them again as far as there is time, which --budget-min gives",
                               [length(Failed), text(maps:get(point, hd(Failed)))])}
        end
    end.

%% The revision of the sources, where git knows it.
revision() ->
    maybe
        [_ | _] = Root ?= os:getenv("SDERL_ROOT", ""),
        [_ | _] = Git ?= os:find_executable("git"),
        Port = open_port({spawn_executable, Git}, [
            {args, ["-C", Root, "describe", "--always", "--dirty"]},
            {env, [{"GIT_CEILING_DIRECTORIES", filename:dirname(Root)}]},
            exit_status, binary, stderr_to_stdout
        ]),
        {0, Text} ?= words(Port, <<>>),
        string:trim(Text)
    else
        _ -> null
    end.

words(Port, Seen) ->
    receive
        {Port, {data, Data}} -> words(Port, <<Seen/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Seen}
    end.
