%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_metrics_resource).
-moduledoc """
The metrics under `/api/v1`: which there are, and one of them over time, of a node or of all nodes
of a group, a family or the cluster together.
""".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, map/1, list/1, text/0, number/0, unix_ms/0, any/0, word/1,
                           null_or/1, ref/1]).

%% The longest name of a place with its kind.
-define(PLACE_BYTES, 262).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    [
        #{op => metrics, method => get, path => [~"metrics"], role => viewer,
          summary => ~"The metrics that charts and rules may name, with units",
          query => sderl_web_protocol:fields(metrics),
          answer => {200, object(#{metrics => list(map(any()))})}},
        #{op => metric_series, method => get,
          path => [~"metrics",
                   {~"metric", metric, {text, sderl_web_front:metric_bytes()}, required},
                   ~"series"],
          role => viewer,
          summary => ~"A metric over time, of all nodes of a place together",
          query => [{~"place", place, {text, ?PLACE_BYTES}, ~"cluster"}
                    | [Field || {Name, _, _, _} = Field <- sderl_web_protocol:fields(series),
                                lists:member(Name, [~"from", ~"to", ~"points"])]],
          answer => {200, ref(~"MetricSeries")}}
    ].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    #{~"MetricSeries" => object(#{
        metric => text(), unit => text(), total => word([sum, mean, max]), place => text(),
        t => list(unix_ms()), columns => map(list(null_or(number())))
    })}.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(metrics, Args, #{writable := Writable}) ->
    sderl_web_ask:live({metrics, Args}, Writable);
answer(metric_series, #{metric := Name, place := Text} = Args, _) ->
    maybe
        {ok, Metric} ?= metric(Name),
        {ok, Place} ?= place(Text),
        ok ?= in_order(Args),
        {ok, Series} ?= series(Place, Metric, Args),
        {ok, maps:merge(maps:with([unit, total], Metric),
                        Series#{metric => Name, place => Text})}
    end.

place(~"cluster") -> {ok, cluster};
place(<<"node:", Node/binary>>) when Node =/= ~"" -> {ok, {node, Node}};
place(<<"group:", Group/binary>>) when Group =/= ~"" -> {ok, {group, Group}};
place(<<"family:", Family/binary>>) when Family =/= ~"" -> {ok, {family, Family}};
place(Text) ->
    {error, bad_request,
     sderl_web_fields:wrong(~"place", Text,
                            ~"cluster, node:NODE, group:GROUP or family:FAMILY")}.

in_order(#{from := From, to := To}) when From > To ->
    {error, bad_request, "from is later than to: change them round"};
in_order(_) -> ok.

metric(Name) ->
    case sderl_mon_metrics:find(Name) of
        {ok, Metric} -> {ok, Metric};
        error -> {error, not_found, sderl_web_ask:no_metric(Name)}
    end.

%% A place that is gone has a past: only one of which nothing is kept needs to be there now.
series(Place, #{key := Key, total := Total}, #{from := From, to := To, points := Points}) ->
    case sderl_mon_archive:series({over, Place, Key, Total}, From, To, Points) of
        {ok, #{columns := Columns} = Series} when map_size(Columns) > 0 -> {ok, Series};
        Empty ->
            maybe
                ok ?= there(Place, sderl_web_feed:current()),
                {ok, _} ?= Empty
            else
                {error, none} -> {error, not_found, "nothing is kept of that time"};
                {error, _, _} = Error -> Error
            end
    end.

there(cluster, _) -> ok;
there({node, Node}, #{topology := #{nodes := Nodes}}) when not is_map_key(Node, Nodes) ->
    {error, not_found, sderl_web_ask:no_node(Node)};
there({group, Group}, #{topology := #{groups := Groups}}) when not is_map_key(Group, Groups) ->
    {error, not_found, sderl_web_ask:no_group(Group)};
there({family, Family}, #{topology := #{nodes := Nodes}}) ->
    case lists:any(fun(Node) -> sderl_mon_types:family(Node) =:= Family end, maps:keys(Nodes)) of
        true -> ok;
        false ->
            {error, not_found,
             ["there is no family \"", Family, "\" here: a family are nodes whose names are the "
              "same but for the number at the end"]}
    end;
there(_, _) -> ok.
