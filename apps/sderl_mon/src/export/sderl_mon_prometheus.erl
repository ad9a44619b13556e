%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_prometheus).
-moduledoc """
The latest frame in Prometheus' text format, version 0.0.4. Pure.

Names and labels are stable. All families are gauges; rates are means over the frame's span, which
is `sderl_frame_span_seconds`. An unknown value has no sample. Of the links only the 5,000 with most
bytes have samples; `sderl_links` counts all.

The names, labels and units are in `sderl_mon_catalogue:families/0`. The application's own metrics
(`m:sderl_mon_app_metrics`) are `sderl_app_NAME_per_second` (kinds `counter` and `sum`) and
`sderl_app_NAME`, with the labels `node` and their tags.
""".

-export([text/4]).

-define(LINKS, 5_000).

-doc "The page. Before the first frame it has only the topology.".
-spec text(sderl_mon_types:topology(), sderl_mon_types:frame() | none,
           [sderl_mon_types:finding()], [sderl_mon_app_metrics:metric()]) -> iodata().
text(Topology, Frame, Findings, AppMetrics) ->
    Known = #{Name => Family || #{name := Name} = Family <- sderl_mon_catalogue:families()},
    [family(map_get(Name, Known), Samples)
     || {Name, Samples} <- topology(Topology) ++ findings(Findings) ++ frame(Frame)] ++
        [family(Family, Samples) || {Family, Samples} <- app_metrics(AppMetrics, Frame)].

family(_Family, []) -> [];
family(#{name := Name, unit := Unit, about := About}, Samples) ->
    [
        ["# HELP ", Name, $\s, help(About), "\n# TYPE ", Name, " gauge\n",
         case Unit of ~"" -> ""; _ -> ["# UNIT ", Name, $\s, Unit, $\n] end]
        | [[Name, labels(Labels), $\s, number(Value), $\n] || {Labels, Value} <- Samples]
    ].

help(About) -> binary:replace(About, ~"\\", ~"\\\\", [global]).

labels([]) -> [];
labels(Labels) ->
    [${, lists:join($,, [[Key, "=\"", escape(Value), $"] || {Key, Value} <- Labels]), $}].

%% Backslash, quote and line end, as the format says.
escape(Text) when is_atom(Text) -> escape(atom_to_binary(Text));
escape(Text) ->
    lists:foldl(
        fun({From, To}, Acc) -> binary:replace(Acc, From, To, [global]) end,
        sderl_mon_visible:text(Text),
        [{<<"\\">>, <<"\\\\">>}, {<<"\"">>, <<"\\\"">>}, {<<"\n">>, <<"\\n">>}]
    ).

number(N) when is_integer(N) -> integer_to_binary(N);
number(N) -> float_to_binary(N, [short]).

topology(#{epoch := Epoch, nodes := Nodes, groups := Groups, monitors := Monitors}) ->
    ById = lists:sort(maps:to_list(Groups)),
    [
        {~"sderl_node_up", [
            {[{"node", Id}, {"status", Status}], flag(Status =:= up)}
         || {Id, #{status := Status}} <- lists:sort(maps:to_list(Nodes))
        ]},
        {~"sderl_nodes", [{[], map_size(Nodes)}]},
        {~"sderl_groups", [{[], map_size(Groups)}]},
        {~"sderl_group_members",
         [{[{"group", Id}], length(In)} || {Id, #{nodes := In}} <- ById]},
        {~"sderl_group_live_members", [
            {[{"group", Id}], length(Live)}
         || {Id, #{live := Live}} <- ById
        ]},
        {~"sderl_group_names", [
            {[{"group", Id}], Names}
         || {Id, #{names := Names, nodes := In}} <- ById,
            lists:any(fun(Node) -> sderl_mon_types:is_probed(Node, Nodes) end, In)
        ]},
        {~"sderl_monitor_up",
         of_monitors(Monitors, fun(#{status := S}) -> flag(S =:= up) end)},
        {~"sderl_monitor_master",
         of_monitors(Monitors, fun(#{master := M}) -> flag(M) end)},
        {~"sderl_monitor_agents",
         of_monitors(Monitors, fun(#{agents := N}) -> N end)},
        {~"sderl_topology_epoch", [{[], Epoch}]}
    ].

of_monitors(Monitors, Value) -> [{[{"node", Id}], Value(M)} || #{node := Id} = M <- Monitors].

flag(true) -> 1;
flag(false) -> 0.

findings(Findings) ->
    Counted = lists:foldl(
        fun(#{kind := Kind, severity := Severity}, Acc) ->
            maps:update_with({Kind, Severity}, fun(N) -> N + 1 end, 1, Acc)
        end,
        #{},
        Findings
    ),
    [
        {~"sderl_findings", [
            {[{"kind", Kind}, {"severity", Severity}], N}
         || {{Kind, Severity}, N} <- lists:sort(maps:to_list(Counted))
        ]}
    ].

frame(none) ->
    [];
frame(#{t := T, span_ms := Span, nodes := Nodes, links := Links, kinds := Kinds, groups := Groups,
        lost := Lost}) ->
    Shown = shown(Links),
    ByKind = lists:sort(maps:to_list(Kinds)),
    [
        {Name, [
            {[{"node", Id}], Value / Scale}
         || {Id, #{Metric := Value}} <- lists:sort(maps:to_list(Nodes))
        ]}
     || #{name := Metric, prometheus := {Name, Scale}} <- sderl_mon_catalogue:of_nodes()
    ] ++
        [
            {~"sderl_link_messages_per_second", [
                {[{"from", From}, {"to", To}], M}
             || {{From, To}, {M, _B}} <- Shown
            ]},
            {~"sderl_link_bytes_per_second", [
                {[{"from", From}, {"to", To}], B}
             || {{From, To}, {_M, B}} <- Shown
            ]},
            {~"sderl_links", [{[], map_size(Links)}]},
            {~"sderl_kind_messages_per_second",
             [{[{"kind", K}], M} || {K, {M, _B}} <- ByKind]},
            {~"sderl_kind_bytes_per_second",
             [{[{"kind", K}], B} || {K, {_M, B}} <- ByKind]},
            {~"sderl_group_registrations_per_second", [
                {[{"group", Id}], Rate}
             || {Id, #{regs_s := Rate}} <- lists:sort(maps:to_list(Groups))
            ]},
            {~"sderl_frame_lost",
             [{[{"reason", R}], N} || {R, N} <- lists:sort(maps:to_list(Lost))]},
            {~"sderl_frame_span_seconds", [{[], Span / 1000}]},
            {~"sderl_frame_time_seconds", [{[], T / 1000}]}
        ].

shown(Links) when map_size(Links) =< ?LINKS -> lists:sort(maps:to_list(Links));
shown(Links) ->
    ByBytes = lists:sort([{-B, Link, Flow} || Link := {_M, B} = Flow <- Links]),
    lists:sort([{Link, Flow} || {_B, Link, Flow} <- lists:sublist(ByBytes, ?LINKS)]).

%% By node and series. Metrics that are no longer configured here are left out, because their kinds
%% are not known.
app_metrics(_, none) -> [];
app_metrics(Metrics, #{nodes := Nodes}) ->
    Sorted = lists:sort(maps:to_list(Nodes)),
    [
        {family_of(Metric), [
            {[{"node", Id} | Tags], Value}
         || {Id, Sample} <- Sorted,
            {Series, Value} <- lists:sort([{Key, V} || Key := V <- Sample, is_binary(Key)]),
            {Is, Tags} <- [sderl_mon_app_metrics:split(Series)], Is =:= Name
        ]}
     || #{name := Name} = Metric <- Metrics
    ].

family_of(#{name := Name, kind := Kind, unit := Unit, about := About}) ->
    Said = case About of ~"" -> <<"The application's own: ", Name/binary>>; _ -> About end,
    #{name => app_name(Name, Kind), labels => [], unit => ~"",
      about => case Unit of ~"" -> Said; _ -> <<Said/binary, " (", Unit/binary, ")">> end}.

app_name(Name, Kind) when Kind =:= counter; Kind =:= sum ->
    <<"sderl_app_", Name/binary, "_per_second">>;
app_name(Name, _) -> <<"sderl_app_", Name/binary>>.
