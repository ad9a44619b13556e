%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_experiment).
-moduledoc """
`bin/sderl bench route`: messages and calls over gateways. Four parts, each with results of its own:

- `messages` against a direct link and a bare relay: `m:sderl_bench_route_messages`
- `calls` against `gen_server:call/2` over a direct link and `erpc:call/4` in a full mesh:
  `m:sderl_bench_route_calls`
- `links`: many nodes in groups: `m:sderl_bench_route_spread`
- `failover`: one of two gateways dies, or stops: `m:sderl_bench_route_failover`

The last line of JSON has `part` `summary`, and the medians of all metrics of the parts, without
those of `calls`, which has several ways and numbers of callers.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([measure/2, medians/1, tables/2, verdict/1]).
-export_type([result/0]).

-import(sderl_bench_experiment, [option/5, at_least/3, numbers/4, words/1]).

-doc "A part, what was varied in it, and what was measured.".
-type result() :: {Part :: messages | calls | links | failover, Key :: map(), Metrics :: map()}.

-define(PARTS, [messages, calls, links, failover]).
-doc false.
-spec summary() -> string().
summary() -> "messages and calls over gateways: throughput, latency, links, failover".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Messages and calls over gateways, in four parts: messages (against a direct link and a
            bare relay), calls (against a direct link and erpc in a full mesh), links (of many nodes
            in groups), failover (one of two gateways is killed, or stopped). The compared variants
            run in turns, so that ratios are of runs under the same conditions.
            """,
        arguments => [
            option(parts, "LIST", string, "of messages, calls, links, failover"),
            option(gateways, "LIST", string, "how many gateways lie between, 1 and 2"),
            option(sizes, "LIST", string, "bytes of a message"),
            option(window, "N", integer, "messages that are out without an acknowledgement"),
            option(callers, "LIST", string, "callers at the same time"),
            option(ms, "MS", integer,
                   "how long each turn measures, after a fifth of that as warm-up"),
            option(repeat, "K", integer, "turns"),
            option(nodes, "N", integer, "nodes in the part links"),
            option(group_size, "G", integer, "nodes in a group there"),
            option(clients, "C", integer, "callers in the part failover"),
            option(after_ms, "MS", integer, "how long they go on when a gateway is gone")
        ]
    }.

option(Name, Shape, Type, Text) -> option(Name, Shape, Type, maps:get(Name, defaults()), Text).

defaults() ->
    #{
        parts => "messages,calls,links,failover", gateways => "1,2", sizes => "100,1000",
        window => 2000, callers => "1,20", ms => 500, repeat => 5, nodes => 100, group_size => 10,
        clients => 20, after_ms => 3000
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{parts := Parts, gateways := Gateways, sizes := Sizes, callers := Callers} = Options) ->
    maybe
        {ok, Ps} ?= parts(words(Parts)),
        {ok, Gs} ?= numbers("--gateways", Gateways, 1, 2),
        {ok, Ss} ?= numbers("--sizes", Sizes, 1, 10_000_000),
        {ok, Cs} ?= numbers("--callers", Callers, 1, 10_000),
        ok ?= at_least(1, [window, repeat, clients, after_ms], Options),
        ok ?= at_least(10, [ms], Options),
        ok ?= at_least(3, [group_size], Options),
        ok ?= divides(Options),
        {ok, Options#{parts := Ps, gateways := lists:uniq(Gs), sizes := lists:uniq(Ss),
                      callers := lists:uniq(Cs)}}
    end.

parts(Words) ->
    case [W || W <- Words, not lists:member(W, [atom_to_list(P) || P <- ?PARTS])] of
        [] -> {ok, [P || P <- ?PARTS, lists:member(atom_to_list(P), Words)]};
        [W | _] ->
            {error, ["--parts: there is no part \"", W, "\"; there are ",
                     lists:join(", ", [atom_to_list(P) || P <- ?PARTS])]}
    end.

divides(#{nodes := Nodes, group_size := Size}) when Nodes >= 2 * Size, Nodes rem Size =:= 0 -> ok;
divides(#{nodes := Nodes, group_size := Size}) ->
    {error, io_lib:format("--nodes ~w is no multiple of --group-size ~w with two groups or more",
                          [Nodes, Size])}.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(Options, Output) ->
    maybe
        {ok, Results} ?= measure(Options, Output),
        sderl_bench_output:say(Output, ["\n", title(Options), "\n",
                                        tables(fun sderl_table:text/2, Results)]),
        verdict(Results)
    end.

title(#{repeat := Repeat, window := Window}) ->
    [sderl_bench_machine:text(), io_lib:format("; at most ~w messages out", [Window]),
     [io_lib:format("; ~w turns: median (least..greatest)", [Repeat]) || Repeat > 1], "\n"].

-doc "Measures the parts and writes the results.".
-spec measure(#{atom() => term()}, sderl_bench_output:output()) ->
    {ok, [result()]} | {error, sderl_command:text()}.
measure(#{parts := Parts} = Options, Output) ->
    Started = sderl_bench_output:now(),
    case parts(Parts, Options, Output, []) of
        {ok, Results} ->
            Params = (shown(Options))#{part => summary, parts => Parts},
            Metrics = medians([Metrics || {Part, _, Metrics} <- Results, Part =/= calls]),
            case sderl_bench_output:write(
                Output, sderl_bench_output:result(route, Params, Metrics, Started)
            ) of
                ok -> {ok, Results};
                {error, Message} -> {error, Message}
            end;
        {error, Reason} -> {error, sderl_bench_reason:text(Reason)}
    end.

shown(Options) -> maps:without([parts, json], Options).

parts([], _, _, Results) ->
    {ok, Results};
parts([Part | Parts], Options, Output, Results) ->
    case part(Part, Options, Output) of
        {ok, New} -> parts(Parts, Options, Output, Results ++ New);
        {error, Reason} -> {error, Reason}
    end.

part(messages, #{gateways := Gateways} = Options, Output) ->
    Params = maps:with([sizes, window, ms, repeat, warm_ms], warm(Options)),
    over(Gateways, fun(K) ->
        Done = done(messages, Params#{gateways => K}, Output),
        Result = sderl_bench_route_messages:run(
            K, Params, fun(Round, Metrics) -> Done(#{run => Round}, Metrics) end
        ),
        of_part(messages, Result, fun(Metrics) -> {#{gateways => K}, Metrics} end)
    end);
part(calls, #{gateways := Gateways} = Options, Output) ->
    Params = maps:with([callers, ms, repeat, warm_ms], warm(Options)),
    over(Gateways, fun(K) ->
        Done = done(calls, maps:remove(callers, Params), Output),
        Result = sderl_bench_route_calls:run(
            K, Params, fun(Round, Key, Metrics) -> Done(Key#{run => Round}, Metrics) end
        ),
        of_part(calls, Result, fun(Pair) -> Pair end)
    end);
part(links, Options, Output) ->
    Params = (maps:with([nodes, group_size], Options))#{idle_ms => 3000},
    Done = done(links, Params, Output),
    maybe
        {ok, Metrics} ?= sderl_bench_route_spread:run(Params, "links"),
        ok ?= Done(#{run => 1}, Metrics),
        {ok, [{links, maps:with([nodes, group_size], Params), Metrics}]}
    end;
part(failover, Options, Output) ->
    Params = (maps:with([clients, after_ms, repeat], Options))#{kinds => [killed, stopped]},
    Done = done(failover, maps:remove(kinds, Params), Output),
    Result = sderl_bench_route_failover:run(
        Params, fun(Round, Kind, Metrics) -> Done(#{run => Round, kind => Kind}, Metrics) end
    ),
    of_part(failover, Result, fun({Kind, Metrics}) -> {#{kind => Kind}, Metrics} end).

warm(#{ms := Ms} = Options) -> Options#{warm_ms => Ms div 5}.

over(Ks, Fun) ->
    lists:foldl(fun
        (K, {ok, Results}) ->
            case Fun(K) of {ok, New} -> {ok, Results ++ New}; Error -> Error end;
        (_, Error) -> Error
    end, {ok, []}, Ks).

of_part(Part, {ok, List}, Pair) ->
    {ok, [{Part, Key, Metrics} || {Key, Metrics} <- lists:map(Pair, List)]};
of_part(_, Error, _) -> Error.

%% Writes a result as soon as it is there, and a line for people.
done(Part, Params, Output) ->
    fun(More, Metrics) ->
        Result = sderl_bench_output:result(route, (maps:merge(Params, More))#{part => Part},
                                           Metrics, sderl_bench_output:now()),
        case sderl_bench_output:write(Output, Result) of
            ok ->
                sderl_bench_output:say(Output,
                                       [line(Part, maps:merge(Params, More), Metrics), "\n"]);
            {error, Text} -> {error, {said, Text}}
        end
    end.

line(messages, #{gateways := K, run := Run}, Metrics) ->
    Number = fun(What) ->
        sderl_table:number(maps:get(<<What/binary, (integer_to_binary(K))/binary>>, Metrics,
                                    undefined))
    end,
    io_lib:format("messages over ~w, ~w: throughput ~ts x raw, latency ~ts x raw, ~ts x a relay's",
                  [K, Run, Number(<<"throughput_ratio_">>), Number(<<"latency_ratio_">>),
                   Number(<<"latency_to_relay_">>)]);
line(calls, #{way := Way, gateways := K, callers := C, run := Run}, #{calls_per_s := Rate}) ->
    io_lib:format("calls, ~ts, ~w callers, ~w: ~ts a second",
                  [way(Way, K), C, Run, sderl_table:number(Rate)]);
line(links, #{nodes := Nodes}, #{links_per_node_max := Links, routes_ms := Ms}) ->
    io_lib:format("~w nodes: at most ~w links a node, all routes after ~ts ms",
                  [Nodes, Links, sderl_table:number(Ms)]);
line(failover, #{kind := Kind, run := Run}, #{lost_acknowledged_calls := Lost} = Metrics) ->
    Ms = maps:get(pause(Kind), Metrics),
    io_lib:format("gateway ~ts, ~w: longest pause ~ts ms, ~w calls lost",
                  [Kind, Run, sderl_table:number(Ms), Lost]).

pause(killed) -> failover_ms;
pause(stopped) -> failover_stopped_ms.

way(routed, K) -> io_lib:format("routed over ~w", [K]);
way(Way, _) -> atom_to_list(Way).

%% ---------------------------------------------------------------- tables

-doc "The medians of numbers by name; of maps of numbers, of each. What was lost is added up.".
-spec medians([map()]) -> map().
medians(Maps) ->
    Keys = lists:usort(lists:append([maps:keys(M) || M <- Maps])),
    #{Key => case is_loss(Key) of true -> lists:sum(Values); false -> median(Values) end
      || Key <- Keys, Key =/= failed_reasons, Values <- [[V || #{Key := V} <- Maps]]}.

median([Map | _] = Maps) when is_map(Map) -> medians(Maps);
median(Values) -> sderl_table:median([V || V <- Values, is_number(V)]).

-doc "All parts as tables in the given form.".
-spec tables(sderl_bench_output:form(), [result()]) -> unicode:chardata().
tables(Form, Results) ->
    [["\n", table(Part, Form, Mine)]
     || Part <- ?PARTS, Mine <- [[{K, M} || {P, K, M} <- Results, P =:= Part]], Mine =/= []].

table(messages, Form, Results) ->
    Rows = lists:append([
        message_rows(K, Size, [M || {#{gateways := G}, M} <- Results, G =:= K])
     || K <- lists:uniq([K || {#{gateways := K}, _} <- Results]), Size <- sizes(K, Results)
    ]),
    Form(["messages", "msg/s", "x raw", "round trip p50 us", "p99 us", "x raw", "x relay",
          "x raw, there only", "CPU us: sender", "gateway", "receiver"], Rows);
table(calls, Form, Results) ->
    Keys = lists:uniq([Key || {Key, _} <- Results]),
    Form(["calls", "callers", "calls/s", "p50 us", "p99 us", "CPU us", "bytes", "messages", "links",
          "failed"],
         [call_row(Key, [M || {K, M} <- Results, K =:= Key])
          || Key <- lists:sort(fun(#{nodes := N, callers := A}, #{nodes := M, callers := B}) ->
              {N, A} =< {M, B}
          end, Keys)]);
table(links, Form, [{#{nodes := Nodes, group_size := Size}, M} | _]) ->
    Row = fun(Text, Key) -> [Text, sderl_table:number(maps:get(Key, M))] end,
    Form([io_lib:format("~w nodes in groups of ~w", [Nodes, Size]), ""], [
        Row("links of a node, at most", links_per_node_max),
        Row("as predicted by the plan", predicted_links_per_node_max),
        Row("links of a node, on average", links_per_node_mean),
        Row("links of a node in the full mesh", mesh_links_per_node),
        Row("gateways crossed, at most", gateways_crossed_max),
        Row("ms to make the groups", groups_ms),
        Row("ms from there until all routes are known", routes_ms),
        Row("calls, each node to each group", calls),
        Row("of them not answered", unanswered_calls),
        Row("bytes a node sends in a second when idle", idle_bytes_per_node_s),
        Row("messages a node sends in a second when idle", idle_messages_per_node_s)
    ]);
table(failover, Form, Results) ->
    Form(["one of two gateways", "longest pause ms", "calls answered", "lost", "failed"], [
        [atom_to_list(Kind), spread(pause(Kind), Mine), spread(acknowledged_calls, Mine),
         total(lost_acknowledged_calls, Mine), total(failed_calls, Mine)]
     || Kind <- lists:uniq([Kind || {#{kind := Kind}, _} <- Results]),
        Mine <- [[M || {#{kind := K}, M} <- Results, K =:= Kind]]
    ]).

sizes(K, Results) ->
    Of = fun(Key) ->
        re:run(Key, ["^throughput_ratio_", integer_to_list(K), "(?:_(\\d+)b)?$"],
               [{capture, all_but_first, list}])
    end,
    Keys = lists:usort(lists:append([maps:keys(M) || {_, M} <- Results])),
    lists:sort([case Found of {match, [Size]} -> list_to_integer(Size); {match, []} -> 100 end
                || Key <- Keys, Found <- [Of(Key)], Found =/= nomatch]).

message_rows(K, Size, Metrics) ->
    [message_row(Kind, Prefix, K, Size, Metrics)
     || {Kind, Prefix} <- [{"raw", none}, {"routed", ""}, {"relay", "relay_"}],
        lists:any(fun(M) ->
            is_map_key(sderl_bench_route_messages:name([Kind, "_us"], K, Size), M)
        end, Metrics)].

message_row(Kind, Prefix, K, Size, Metrics) ->
    Name = fun(What) -> sderl_bench_route_messages:name(What, K, Size) end,
    Ratio = fun(What) ->
        case Prefix of none -> ""; _ -> spread(Name([Prefix, What]), Metrics) end
    end,
    %% Without a relay there is nothing to compare with.
    ToRelay = case [M || M <- Metrics, is_map_key(Name("latency_to_relay"), M)] of
        [_ | _] = With when Kind =:= "routed" -> spread(Name("latency_to_relay"), With);
        _ -> ""
    end,
    Inner = fun(What, Key) -> spread(Key, [maps:get(Name([Kind, What]), M) || M <- Metrics]) end,
    Mid = fun(What, Key) ->
        sderl_table:number(median([maps:get(Key, maps:get(Name([Kind, What]), M)) || M <- Metrics]))
    end,
    [io_lib:format("~ts, ~w b, ~w gateway~ts", [Kind, Size, K, [$s || K > 1]]),
     spread(Name([Kind, "_msgs_per_s"]), Metrics), Ratio("throughput_ratio"), Inner("_us", p50),
     Mid("_us", p99), Ratio("latency_ratio"), ToRelay, Ratio("there_latency_ratio"),
     Mid("_cpu_us", sender), Mid("_cpu_us", gateway), Mid("_cpu_us", receiver)].

call_row(#{way := Way, gateways := K, nodes := Nodes, callers := Callers}, Metrics) ->
    Us = fun(P) ->
        sderl_table:number(median([maps:get(P, maps:get(call_us, M)) || M <- Metrics]))
    end,
    [io_lib:format("~ts, ~w nodes", [way(Way, K), Nodes]), integer_to_list(Callers),
     spread(calls_per_s, Metrics), Us(p50), Us(p99)]
        ++ [sderl_table:number(median([maps:get(Key, M) || M <- Metrics]))
            || Key <- [cpu_us_per_call, bytes_per_call, messages_per_call, links_per_node_max]]
        ++ [total(failed_calls, Metrics)].

spread(Key, Metrics) -> sderl_table:spread([maps:get(Key, M) || M <- Metrics]).

total(Key, Metrics) -> sderl_table:number(lists:sum([maps:get(Key, M) || M <- Metrics])).

%% ---------------------------------------------------------------- the verdict

-doc "An error when something was lost: the numbers are no result then.".
-spec verdict([result()]) -> ok | {error, sderl_command:text()}.
verdict(Results) ->
    Lost = [{Key, N} || {_, _, Metrics} <- Results, Key := N <- Metrics, is_loss(Key), N > 0],
    case Lost of
        [] -> ok;
        [{Key, N} | _] -> {error, io_lib:format("~ts: ~w", [Key, N])}
    end.

is_loss(lost_acknowledged_calls) -> true;
is_loss(unanswered_calls) -> true;
is_loss(<<"lost_messages", _/binary>>) -> true;
is_loss(_) -> false.
