%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_sample).
-moduledoc "`bin/sderl prof sample`: what the processes of a running node do, by samples.".

-export([run/2, read/1, report/2, text/1]).

-import(sderl_table, [number/1]).

-define(PREFIX, "sderl-prof").
-define(SECONDS, 10).
-define(MOST_BYTES, 16 * 1024 * 1024).

-doc "Samples a node; prints the report, and writes it to a file where one is named.".
-spec run(node(), #{atom() => term()}) -> sderl_command:result().
run(Node, Parsed) ->
    Options = maps:with([seconds, rate, top], Parsed),
    maybe
        {ok, Cookie} ?= sderl_cli_attach:cookie(sderl_cli_attach:cookie_file(Parsed)),
        ok ?= sderl_cli_attach:attach(Node, Cookie, ?PREFIX),
        {ok, Report} ?= done(sampled(Node, Options)),
        ok ?= written(Report, Parsed),
        shown(decoded(Report), Parsed)
    end.

done({error, Why}) -> {error, sderl_prof_sampling:format_error(Why)};
done(Fine) -> Fine.

%% Ctrl-C ends it in order.
sampled(Node, Options) ->
    case sderl_prof_sampling:begin_(Node, Options) of
        {ok, Sampling} ->
            Listener = spawn_link(fun() ->
                receive {sderl_signals, stop} -> sderl_prof_sampling:stop(Sampling) end
            end),
            _ = sderl_signals:tell(Listener),
            Seconds = maps:get(seconds, Options, ?SECONDS),
            Result = sderl_progress:during("sampling", max(1, round(1000 * Seconds)), fun() ->
                sderl_prof_sampling:await(Sampling)
            end),
            true = unlink(Listener),
            true = exit(Listener, kill),
            Result;
        Error -> Error
    end.

written(Report, #{out := File}) -> done(sderl_prof_sampling:write(File, Report));
written(_, _) -> ok.

%% As it is read from a file.
decoded(Report) -> json:decode(iolist_to_binary(json:encode(Report))).

shown(Report, #{json := true}) -> {help, [json:encode(Report), $\n]};
shown(Report, _) -> {help, sderl_visible:text(text(Report))}.

-doc "The report in a file, if it is one of samples.".
-spec read(file:filename()) -> {ok, map()} | none.
read(File) ->
    maybe
        %% A trace may be larger than memory; a report is not.
        true ?= filelib:is_regular(File) andalso filelib:file_size(File) =< ?MOST_BYTES,
        {ok, Report} ?= sderl_prof_sampling:read(File),
        {ok, Report}
    else
        _ -> none
    end.

-doc "Prints a report that was read from a file.".
-spec report(map(), #{atom() => term()}) -> sderl_command:result().
report(Report, Parsed) -> shown(Report, Parsed).

%% ---------------------------------------------------------------- the text

-doc "A report, as JSON has it, for a terminal. Pure.".
-spec text(#{binary() => term()}) -> sderl_command:text().
text(#{~"node" := Node, ~"seconds" := Seconds, ~"looks" := Looks, ~"rounds" := Rounds,
       ~"own_share" := Own, ~"counted_share" := Counted, ~"processes" := Processes,
       ~"states" := States, ~"groups" := Groups, ~"functions" := Functions, ~"waits" := Waits,
       ~"schedulers" := Schedulers, ~"threads" := Threads}) ->
    [
        io_lib:format("~ts: ~ts s, ~ts looks at ~ts processes, which took ~ts % of the time with "
                      "all waiting~n",
                      [Node, number(Seconds), number(Looks), number(Processes),
                       number(100 * Own)]),
        [io_lib:format("! not every process was looked at: take longer (--seconds) or more looks "
                       "(--rate)~n", []) || Rounds < 2],
        io_lib:format("~ts % of the node's reductions were those of processes that were looked at "
                      "before and after~n", [number(100 * Counted)]),
        section("Processes, on average", states(States)),
        section("Schedulers", schedulers(Schedulers)),
        section("Kinds of processes, most reductions first", groups(Groups)),
        section("Where processes run or could run", places(Functions)),
        section("Where processes wait", places(Waits)),
        section("Threads", threads(Threads))
    ].

section(_, []) -> [];
section(Title, Text) -> ["\n", Title, "\n", Text].

states([]) -> [];
states(States) ->
    sderl_table:text(["state", "processes", "looks"], [
        [State, number(N), number(Looks)]
     || #{~"state" := State, ~"processes" := N, ~"looks" := Looks} <- States
    ]).

schedulers([]) -> [];
schedulers(Schedulers) ->
    sderl_table:text(["scheduler", "kind", "awake %"], [
        [number(N), Type, hundred(Awake)]
     || #{~"number" := N, ~"type" := Type, ~"awake" := Awake} <- Schedulers,
        Type =:= ~"normal" orelse Awake > 0.001
    ]).

groups([]) -> [];
groups(Groups) ->
    sderl_table:text(["kind", "processes", "of reductions %", "run or could run", "of its time %",
                      "95 % interval", "looks"], [
        [Group, number(N), hundred(Reductions), number(Busy) | share(Share, Looks)]
     || #{~"group" := Group, ~"processes" := N, ~"of_reductions" := Reductions,
          ~"busy" := Busy, ~"share_busy" := Share, ~"looks" := Looks} <- Groups, Looks > 0
    ]).

places([]) -> [];
places(Places) ->
    sderl_table:text(["in", "processes", "share %", "95 % interval", "looks", "of"], [
        [Function, number(N) | share(Share, Looks)] ++ [lists:join(", ", Groups)]
     || #{~"function" := Function, ~"processes" := N, ~"share" := Share, ~"looks" := Looks,
          ~"groups" := Groups} <- Places
    ]).

share(#{~"share" := Share, ~"low" := Low, ~"high" := High}, Looks) ->
    [hundred(Share), [hundred(Low), " to ", hundred(High)], number(Looks)].

threads([]) -> [];
threads(Threads) ->
    sderl_table:text(["threads", "what they do, %"], [
        [Type, lists:join(", ", [[State, " ", hundred(Share)]
                                 || {State, Share} <- greatest(States), Share >= 0.0005])]
     || #{~"type" := Type, ~"states" := States} <- Threads
    ]).

greatest(States) ->
    lists:sort(fun({_, A}, {_, B}) -> A >= B end, maps:to_list(States)).

hundred(Share) -> number(100 * Share).
