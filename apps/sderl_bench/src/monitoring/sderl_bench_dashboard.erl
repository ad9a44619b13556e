%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_dashboard).
-moduledoc """
The dashboard under load: a server in a virtual machine of its own that shows a made-up cluster, a
page in a browser, and clients that only receive.

`web/e2e/bench.mjs` drives the browser: it gets one line of JSON for each step, and answers with
one. Processor time and memory of the server are those of its operating-system process.
""".

-export([browser/0, run/2]).
-export_type([browser/0, options/0, measured/0]).

-doc "The program of a browser, and the root of the source tree.".
-type browser() :: #{root := file:filename(), program := file:filename()}.

-doc "`interval_ms` is the time between updates; `clients` are the browser and the sockets.".
-type options() :: #{
    nodes := pos_integer(),
    groups := pos_integer(),
    edges := pos_integer(),
    interval_ms := pos_integer(),
    clients := pos_integer(),
    seconds := pos_integer(),
    loads := pos_integer(),
    seed := integer()
}.

-doc """
`paints` and `contentful`: milliseconds of each load; `rates`: pictures drawn a second, in turns
of ten seconds, and the longest time between two; `samples`: the server's process at the start and
after each turn; `sockets`: what each received; `heap`: the page's memory in bytes, at the start and
at the end.
""".
-type measured() :: #{
    paints := [number()],
    contentful := [number()],
    rates := [#{how := binary(), frames_per_s := number(), longest_ms := number()}],
    samples := [#{at_ms := integer(), cpu_ms := integer(), rss_kib := integer(),
                  peak_kib := integer()}],
    sockets := [sderl_bench_dashboard_socket:counts()],
    heap := [number()]
}.

-define(FAMILY, monitor).
-define(CALL_MS, 30_000).
-define(STEP_MS, 60_000).
-define(TURN_S, 10).

-doc "Whether the page can be shown here; an error names what is missing.".
-spec browser() -> {ok, browser()} | {error, sderl_command:text()}.
browser() ->
    Root = os:getenv("SDERL_ROOT", code:lib_dir(sderl_bench) ++ "/../../../.."),
    maybe
        {ok, Program} ?= said(filename:join(Root, "toolchain/browser"), [],
                              "there is no browser to measure with"),
        {ok, _} ?= said(filename:join(Root, "toolchain/web"), ["--brief"],
                        "there is no dashboard to measure"),
        {ok, _} ?= said(filename:join(Root, "toolchain/web"), ["--run", "node", "--version"],
                        "the browser is driven by Node.js"),
        {ok, #{root => Root, program => Program}}
    end.

said(File, Args, What) ->
    case sderl_bench_program:run(File, Args, #{timeout => 600_000}) of
        {ok, 0, Said} -> {ok, unicode:characters_to_list(string:trim(Said))};
        {ok, _, Said} -> {error, [What, ": ", string:trim(Said)]};
        {error, Reason} -> {error, io_lib:format("~ts: ~ts: ~0tp", [What, File, Reason])}
    end.

-doc "Measures. Nothing is left running, however it ends.".
-spec run(browser(), options()) -> {ok, measured()} | {error, sderl_command:text()}.
run(Browser, Options) ->
    case sderl_fleet:start(plan(Options)) of
        {ok, Fleet} ->
            try served(Fleet, Browser, Options) after sderl_fleet:stop(Fleet) end;
        {error, Reason} ->
            {error, ["the dashboard's server does not start: ", sderl_bench_reason:text(Reason)]}
    end.

plan(#{interval_ms := Interval} = Options) ->
    Synthetic = maps:with([nodes, groups, edges, seed], Options),
    #{
        families => [
            #{
                name => ?FAMILY, count => 1, hidden => true,
                %% As bin/sderl mon: schedulers that do not spin, all cores.
                args => ["+S", integer_to_list(erlang:system_info(schedulers))],
                env => [
                    {sderl_web, port, 0},
                    {sderl_web, source, synthetic},
                    %% All clients come at once, with one token.
                    {sderl_web, rate, {10_000, 10_000}},
                    {sderl_web, synthetic, Synthetic#{interval_ms => Interval, changes => true}}
                ],
                apps => [sderl_web]
            }
        ],
        progress => sderl_progress:reporter("starting the server")
    }.

served(Fleet, Browser, #{clients := Clients} = Options) ->
    [Node] = sderl_fleet:nodes(Fleet),
    #{Node := #{os_pid := OsPid}} = sderl_fleet:info(Fleet),
    {ok, #{link := Link, port := Port, token := Token}} =
        sderl_fleet:call(Fleet, Node, sderl_web, address, [], ?CALL_MS),
    Target = #{ip => {127, 0, 0, 1}, port => Port, token => Token},
    maybe
        {ok, Sockets} ?= sockets(Clients - 1, Target, []),
        try
            measured(Browser, Link, OsPid, Sockets, Options)
        after
            lists:foreach(fun sderl_bench_dashboard_socket:stop/1, Sockets)
        end
    end.

sockets(0, _, Sockets) ->
    {ok, Sockets};
sockets(N, Target, Sockets) ->
    case sderl_bench_dashboard_socket:start(Target) of
        {ok, Socket} ->
            sockets(N - 1, Target, [Socket | Sockets]);
        {error, Reason} ->
            lists:foreach(fun sderl_bench_dashboard_socket:stop/1, Sockets),
            {error, io_lib:format("the dashboard's server refuses a socket: ~0tp", [Reason])}
    end.

measured(#{root := Root, program := Program}, Link, OsPid, Sockets, Options) ->
    Steps = steps(Link, Options),
    Turns = [I || {I, #{op := rate}} <- lists:enumerate(Steps)],
    First = hd(Turns) - 1,
    Self = self(),
    Tag = make_ref(),
    Draw = sderl_progress:reporter("in the browser"),
    Seen = fun(I) ->
        _ = if
            I >= First, I =< First + length(Turns) -> Self ! {Tag, process(OsPid)};
            true -> nothing
        end,
        Draw(I, length(Steps))
    end,
    Answers = sderl_bench_program:ask(
        filename:join(Root, "toolchain/web"), ["--run", "node", "e2e/bench.mjs"],
        [json:encode(Step) || Step <- Steps],
        #{timeout => ?STEP_MS, env => [{"SDERL_BROWSER", Program}], seen => Seen}
    ),
    sderl_progress:done(),
    Samples = samples(Tag),
    Counts = [sderl_bench_dashboard_socket:counts(Socket) || Socket <- Sockets],
    maybe
        {ok, Lines} ?= Answers,
        Results = [json:decode(Line) || Line <- Lines],
        ok ?= all_well(Steps, Results),
        Of = fun(Op) -> [Result || {#{op := O}, Result} <- lists:zip(Steps, Results), O =:= Op] end,
        {ok, #{
            paints => [Ms || #{~"first_paint_ms" := Ms} <- Of(paint)],
            contentful => [Ms || #{~"contentful_ms" := Ms} <- Of(paint)],
            rates => [#{how => How, frames_per_s => Rate, longest_ms => Longest}
                      || #{~"how" := How, ~"frames_per_s" := Rate, ~"longest_ms" := Longest} <-
                             Of(rate)],
            samples => Samples,
            sockets => Counts,
            heap => [Bytes || #{~"heap_bytes" := Bytes} <- Of(memory)]
        }}
    else
        {error, Reason} when is_atom(Reason); is_tuple(Reason) ->
            {error, io_lib:format("the browser's script ended (~0tp); toolchain/web --run node "
                                  "e2e/bench.mjs shows what it says", [Reason])};
        {error, _} = Error ->
            Error
    end.

%% Turns without and with a drag of the picture.
steps(Link, #{loads := Loads, seconds := Seconds}) ->
    Turns = max(2, 2 * ((Seconds + 2 * ?TURN_S - 1) div (2 * ?TURN_S))),
    [#{op => paint, url => Link} || _ <- lists:seq(1, Loads)] ++
        [#{op => open, url => Link}, #{op => memory}] ++
        [#{op => rate, how => lists:nth(1 + I rem 2, [idle, pan]), seconds => Seconds / Turns}
         || I <- lists:seq(0, Turns - 1)] ++
        [#{op => memory}].

all_well(Steps, Results) ->
    case [{Op, Error}
          || {#{op := Op}, #{~"ok" := false, ~"error" := Error}} <- lists:zip(Steps, Results)] of
        [] -> ok;
        [{Op, Error} | _] ->
            {error, io_lib:format("in the browser, at the step \"~ts\": ~ts", [Op, Error])}
    end.

samples(Tag) ->
    receive
        {Tag, Sample} -> [Sample | samples(Tag)]
    after 0 -> []
    end.

process(OsPid) ->
    Pid = integer_to_list(OsPid),
    {Own, _} = sderl_bench_proc:cpu_ms(Pid),
    {Resident, Most} = sderl_bench_proc:memory_kib(Pid),
    #{at_ms => erlang:monotonic_time(millisecond), cpu_ms => Own, rss_kib => Resident,
      peak_kib => Most}.
