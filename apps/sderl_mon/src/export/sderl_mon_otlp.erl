%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_otlp).
-moduledoc """
A frame as a request of OpenTelemetry's protocol for metrics (OTLP 1,
`ExportMetricsServiceRequest`), in protobuf. Pure.

Each node is a resource: `service.instance.id` is its name, `service.name` its family,
`service.namespace` is `sderl`. Groups, the library's own messages and findings belong to the
resource of the monitoring node, whose `service.name` is `sderl_mon`. All metrics are gauges, also
rates: `sderl.node.KEY` with the keys of `m:sderl_mon_catalogue`, `sderl.app.NAME` for the
application's own; units are those of UCUM. Links are left out because they are many; Prometheus and
the pages show them.
""".

-export([request/1]).
-export_type([input/0]).

-import(sderl_mon_protobuf, [fixed64/2, double/2, text/2, message/2]).

-doc "What to send, the monitoring node and its version, and the application's own metrics.".
-type input() :: #{
    topology := sderl_mon_types:topology(),
    frame := sderl_mon_types:frame(),
    findings := [sderl_mon_types:finding()],
    metrics := [sderl_mon_app_metrics:metric()],
    monitor := binary(),
    version := binary()
}.

%% A point: its attributes and its value.
-type point() :: {[{binary(), binary()}], number()}.
-type metric() :: {Name :: binary(), Unit :: binary(), About :: binary(), [point()]}.

-doc "The request.".
-spec request(input()) -> iodata().
request(#{topology := #{nodes := Known}, frame := #{t := T, span_ms := Span, nodes := Nodes},
          version := Version} = Input) ->
    Times = [fixed64(2, nano(T - Span)), fixed64(3, nano(T))],
    All = maps:merge(#{Id => #{} || Id := _ <- Known}, Nodes),
    [
        message(1, [message(1, resource(Attributes)),
                    message(2, [message(1, [text(1, ~"sderl_mon"), text(2, Version)])
                                | [message(2, metric(Metric, Times))
                                   || {_, _, _, [_ | _]} = Metric <- Metrics]])])
     || {Attributes, Metrics} <- [{of_node(Id), node(Id, Sample, Input)}
                                  || Id := Sample <- maps:iterator(All, ordered)]
            ++ [{of_monitor(Input), cluster(Input)}]
    ].

nano(Ms) -> max(0, Ms) * 1_000_000.

of_node(Id) ->
    [{~"service.namespace", ~"sderl"}, {~"service.name", named(sderl_mon_types:family(Id), Id)},
     {~"service.instance.id", Id}].

%% A name of digits only has an empty family.
named(~"", Id) -> Id;
named(Family, _) -> Family.

of_monitor(#{monitor := Monitor}) ->
    [{~"service.namespace", ~"sderl"}, {~"service.name", ~"sderl_mon"},
     {~"service.instance.id", Monitor}].

resource(Attributes) -> attributes(1, Attributes).

attributes(Field, Attributes) ->
    [message(Field, [text(1, Key), message(2, message(1, visible(Value)))])
     || {Key, Value} <- Attributes].

%% A text that is not UTF-8 would make the receiver refuse the whole request.
visible(Text) -> sderl_mon_visible:text(Text).

metric({Name, Unit, About, Points}, Times) ->
    [text(1, Name), text(2, About), text(3, Unit),
     message(5, [message(1, [Times, double(4, Value), attributes(7, Attributes)])
                 || {Attributes, Value} <- Points])].

%% ---------------------------------------------------------------- the numbers

-spec node(sderl_mon_types:id(), sderl_mon_types:node_sample(), input()) -> [metric()].
node(Id, Sample, #{topology := #{nodes := Known}, metrics := Metrics}) ->
    Up = case Known of
        #{Id := #{status := up}} -> [{[], 1}];
        #{Id := _} -> [{[], 0}];
        #{} -> []
    end,
    [{~"sderl.node.up", ~"1", ~"Whether a monitored node is up", Up}
     | [{<<"sderl.node.", (atom_to_binary(Key))/binary>>, ucum(Unit), About, [{[], Value}]}
        || #{name := Key, unit := Unit, about := About} <- sderl_mon_catalogue:of_nodes(),
           #{Key := Value} <- [Sample]]] ++ own(Metrics, Sample).

own(Metrics, Sample) ->
    Series = lists:sort([{sderl_mon_app_metrics:split(Key), Value}
                         || Key := Value <- Sample, is_binary(Key)]),
    [{<<"sderl.app.", Name/binary>>, ucum(sderl_mon_app_metrics:unit(Metric)), About,
      [{Tags, Value} || {{Is, Tags}, Value} <- Series, Is =:= Name]}
     || #{name := Name, about := About} = Metric <- Metrics].

-spec cluster(input()) -> [metric()].
cluster(#{topology := #{nodes := Nodes, groups := Groups}, findings := Findings,
          frame := #{kinds := Kinds, groups := Samples, links := Links}}) ->
    Members = [{Id, Info} || Id := Info <- maps:iterator(Groups, ordered)],
    Of = fun(Id) -> [{~"group", Id}] end,
    [
        {~"sderl.nodes", ~"{node}", ~"Monitored nodes", [{[], map_size(Nodes)}]},
        {~"sderl.groups", ~"{group}", ~"Groups", [{[], map_size(Groups)}]},
        {~"sderl.links", ~"{link}", ~"Links with traffic", [{[], map_size(Links)}]},
        {~"sderl.group.members", ~"{node}", ~"Members of a group",
         [{Of(Id), length(In)} || {Id, #{nodes := In}} <- Members]},
        {~"sderl.group.live_members", ~"{node}", ~"Live members of a group",
         [{Of(Id), length(Live)} || {Id, #{live := Live}} <- Members]},
        {~"sderl.group.names", ~"{name}", ~"Names registered in a group",
         [{Of(Id), Names} || {Id, #{names := Names}} <- Members]},
        {~"sderl.group.registrations", ~"{registration}/s", ~"Registrations in a group",
         [{Of(Id), Rate} || Id := #{regs_s := Rate} <- maps:iterator(Samples, ordered)]},
        {~"sderl.kind.messages", ~"{message}/s", ~"The library's own messages by kind",
         [{[{~"kind", atom_to_binary(Kind)}], Msgs}
          || Kind := {Msgs, _} <- maps:iterator(Kinds, ordered)]},
        {~"sderl.findings", ~"{finding}", ~"Findings by kind and severity",
         [{[{~"kind", word(Kind)}, {~"severity", word(Severity)}], N}
          || {Kind, Severity} := N <- maps:iterator(counted(Findings), ordered)]}
    ].

counted(Findings) ->
    maps:map(fun(_, List) -> length(List) end,
             maps:groups_from_list(fun(#{kind := Kind, severity := Severity}) -> {Kind, Severity}
                                   end, Findings)).

word(Word) when is_atom(Word) -> atom_to_binary(Word);
word(Word) -> Word.

%% Units that are words become annotations of UCUM.
ucum(~"") -> ~"1";
ucum(~"share") -> ~"1";
ucum(~"B") -> ~"By";
ucum(~"B/s") -> ~"By/s";
ucum(~"msg/s") -> ~"{message}/s";
ucum(<<"% ", _/binary>>) -> ~"%";
ucum(Unit) when Unit =:= ~"s"; Unit =:= ~"ms"; Unit =:= ~"1/s" -> Unit;
ucum(Unit) ->
    case binary:split(Unit, ~"/s") of
        [Word, ~""] -> <<"{", (plain(Word))/binary, "}/s">>;
        _ -> <<"{", (plain(Unit))/binary, "}">>
    end.

%% Annotations are printable ASCII.
plain(Word) -> << <<(case C > $\s andalso C < 127 andalso C =/= ${ andalso C =/= $} of
                         true -> C; false -> $_ end)>> || <<C/utf8>> <= Word >>.
