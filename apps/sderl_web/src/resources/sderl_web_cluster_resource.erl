%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_cluster_resource).
-moduledoc "The watched cluster under `/api/v1`: nodes, groups, what happens, what is wrong.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, object/2, map/1, list/1, text/0, whole/0, number/0, flag/0,
                           unix_ms/0, any/0, word/1, null_or/1, ref/1]).

-define(NAME_BYTES, 255).

%% ---------------------------------------------------------------- the paths

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    [
        #{op => health, method => get, path => [~"health"], role => nobody,
          summary => ~"Whether the hub runs; 503 while it does not",
          answer => {200, ref(~"Health")}},
        #{op => state, method => get, path => [~"state"], role => viewer,
          summary => ~"Topology, numbers and findings of now, as the dashboard gets them",
          answer => {200, ref(~"State")}},
        #{op => nodes, method => get, path => [~"nodes"], role => viewer,
          summary => ~"The nodes, by name",
          query => [{~"group", group, {text, ?NAME_BYTES}, none},
                    {~"status", status, {word, [up, down, unreachable]}, none}],
          pages => {500, 100},
          answer => {200, page(nodes, ref(~"Node"))}},
        #{op => node, method => get, path => [~"nodes", node_part()], role => viewer,
          summary => ~"A node with its latest numbers",
          answer => {200, ref(~"NodeNow")}},
        #{op => groups, method => get, path => [~"groups"], role => viewer,
          summary => ~"The s_groups, by name",
          pages => {500, 100},
          answer => {200, page(groups, ref(~"Group"))}},
        #{op => group, method => get, path => [~"groups", group_part()], role => viewer,
          summary => ~"An s_group with its latest numbers",
          answer => {200, ref(~"GroupNow")}},
        #{op => names, method => get, path => [~"groups", group_part(), ~"names"], role => viewer,
          summary => ~"Registered names of an s_group, by a prefix",
          query => fields(names, [~"prefix", ~"limit"]),
          answer => {200, ref(~"Names")}},
        #{op => findings, method => get, path => [~"findings"], role => viewer,
          summary => ~"What is wrong or wasteful now, with the evidence and what to do",
          answer => {200, object(#{findings => list(ref(~"Finding"))})}},
        #{op => events, method => get, path => [~"events"], role => viewer,
          summary => ~"What happened, newest first",
          query => fields(events, [~"node", ~"group", ~"kinds", ~"from", ~"to"]),
          pages => {500, 100},
          answer => {200, page(events, ref(~"Event"))}},
        #{op => traffic, method => get, path => [~"traffic"], role => viewer,
          summary => ~"Traffic over a window of time",
          query => fields(traffic, [~"by", ~"window_s", ~"t"]),
          answer => {200, object(#{rows => list(ref(~"TrafficRow"))})}},
        #{op => series, method => get, path => [~"nodes", node_part(), ~"series"], role => viewer,
          summary => ~"Numbers of a node over time",
          query => [{~"metrics", metrics, {words, maps:keys(sderl_web_protocol:units())},
                     [util, mem, run_queue]} | fields(series, [~"from", ~"to", ~"points"])],
          answer => {200, ref(~"Series")}},
        #{op => export, method => get, path => [~"export"], role => viewer,
          summary => ~"The history as a file, sent while it is being made",
          query => sderl_web_export:fields(),
          answer => {200, text, [~"application/x-ndjson", ~"text/csv"]}}
    ].

node_part() -> {~"node", node, {text, ?NAME_BYTES}, required}.
group_part() -> {~"group", group, {text, ?NAME_BYTES}, required}.

%% Of the WebSocket's request.
fields(Op, Names) ->
    [Field || {Name, _, _, _} = Field <- sderl_web_protocol:fields(Op), lists:member(Name, Names)].

page(Key, Of) -> object(#{Key => list(Of), next => null_or(text())}).

%% ---------------------------------------------------------------- the shapes

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    #{
        ~"Health" => object(#{status => word([ok, no_hub]), sockets => whole()}),
        ~"State" => object(#{
            mode => word([live, synthetic]),
            now => object(#{topology => ref(~"Topology"), frame => null_or(ref(~"Frame")),
                            findings => list(ref(~"Finding"))})
        }),
        ~"Topology" => object(#{
            type => word([topology]), epoch => whole(), t => unix_ms(),
            nodes => list(object(node_members(whole()))),
            groups => list(object(#{
                id => whole(), name => text(), nodes => list(whole()),
                coordinator => null_or(whole()), live => null_or(list(whole())),
                names => null_or(whole()), agent => null_or(text())
            })),
            monitors => list(object(#{node => text(), status => word([up, down]),
                                      master => flag(), agents => whole()}))
        }),
        ~"Frame" => object(#{
            type => word([frame]), seq => whole(), t => unix_ms(), span_ms => whole(),
            epoch => whole(), nodes => list(list(null_or(number()))),
            links => list(list(null_or(number()))), kinds => map(list(null_or(number()))),
            groups => list(list(any())), lost => map(whole())
        }),
        ~"Node" => object(maps:remove(id, node_members(text()))),
        ~"NodeNow" => object((maps:remove(id, node_members(text())))#{
            t => null_or(unix_ms()), numbers => null_or(map(number()))
        }),
        ~"Group" => object(group_members()),
        ~"GroupNow" => object((group_members())#{t => null_or(unix_ms()),
                                                 numbers => null_or(map(number()))}),
        ~"Names" => object(#{
            names => list(object(#{name => text(), pid => text(), node => text()},
                                 #{since => unix_ms()})),
            total => whole(), more => flag()
        }),
        ~"Finding" => object(#{
            id => text(), kind => text(), severity => word([info, warning, critical]),
            since => unix_ms(), t => unix_ms(), where => map(text()), text => text(),
            remedy => text(),
            evidence => list(object(#{label => text(), value => any()}, #{unit => text()}))
        }, #{saves => map(number())}),
        ~"Event" => object(#{
            id => whole(), t => unix_ms(), kind => text(),
            level => word([info, notice, warning, error]), text => text()
        }, #{node_t => unix_ms(), node => text(), group => text(), details => map(any())}),
        ~"TrafficRow" => object(#{
            msgs_s => number(), msgs => number(), p50 => number(), p95 => number(), max => number()
        }, #{from => text(), to => text(), node => text(), group => text(),
             groups => list(text()), bytes_s => number(), bytes => number(),
             forwarded_s => number()}),
        ~"Series" => object(#{t => list(unix_ms()), columns => map(list(null_or(number())))})
    }.

%% Nodes and groups are named by numbers in what browsers get, and else by their names.
node_members(Named) ->
    #{
        id => whole(), name => text(), status => word([up, down, unreachable]),
        groups => list(Named), home => null_or(Named), hidden => flag(),
        source => word([probe, stock, none]), why => null_or(text()), otp => null_or(text()),
        library => null_or(flag()), agent => null_or(text())
    }.

group_members() ->
    #{name => text(), nodes => list(text()), coordinator => null_or(text()),
      live => null_or(list(text())), names => null_or(whole()), agent => null_or(text())}.

%% ---------------------------------------------------------------- the answers

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(health, _, _) ->
    case sderl_web_feed:health() of
        #{hub := true, sockets := Sockets} -> {ok, #{status => ok, sockets => Sockets}};
        #{hub := false} ->
            {error, unavailable, "the hub does not run, or has just begun: ask again"}
    end;
answer(state, _, _) ->
    with_topology(fun(#{mode := Mode} = Now) ->
        {ok, {json, [~"{\"mode\":\"", atom_to_binary(Mode), ~"\",\"now\":",
                     sderl_web_ask:state(Now), $}]}}
    end);
answer(nodes, Args, _) ->
    with_topology(fun(#{topology := #{nodes := Nodes}}) ->
        Wanted = #{Name => Node || Name := Node <- Nodes, is_wanted(Node, Args)},
        named_page(nodes, Wanted, fun node/2, Args)
    end);
answer(node, #{node := Name}, _) ->
    with_topology(fun(#{topology := #{nodes := Nodes}, frame := Frame}) ->
        case Nodes of
            #{Name := Node} -> {ok, maps:merge(node(Name, Node), numbers(nodes, Name, Frame))};
            #{} -> {error, not_found, sderl_web_ask:no_node(Name)}
        end
    end);
answer(groups, Args, _) ->
    with_topology(fun(#{topology := #{groups := Groups}}) ->
        named_page(groups, Groups, fun group/2, Args)
    end);
answer(group, #{group := Name}, _) ->
    with_topology(fun(#{topology := #{groups := Groups}, frame := Frame}) ->
        case Groups of
            #{Name := Group} -> {ok, maps:merge(group(Name, Group), numbers(groups, Name, Frame))};
            #{} -> {error, not_found, sderl_web_ask:no_group(Name)}
        end
    end);
answer(findings, _, _) ->
    #{findings := Findings} = sderl_web_feed:current(),
    {ok, #{findings => Findings}};
answer(events, #{limit := Limit} = Args, _) ->
    Before = case Args of
        #{cursor := Id} when is_integer(Id) -> #{before => Id};
        #{} -> #{}
    end,
    %% One more than is told: whether there is a next page.
    Filter = (maps:without([cursor], maps:merge(Args, Before)))#{limit := Limit + 1},
    {ok, Events} = sderl_mon_hub:events(live, Filter),
    case lists:split(min(Limit, length(Events)), Events) of
        {Page, []} -> {ok, #{events => Page}, #{next => none}};
        {Page, _} ->
            {ok, #{events => Page}, #{next => maps:get(id, lists:last(Page))}}
    end;
answer(series, #{node := Node, metrics := Metrics} = Args, Context) ->
    asked(series, (maps:with([from, to, points], Args))#{'of' => {node, Node, Metrics}}, Context);
answer(export, Args, _) ->
    sderl_web_export:answer(Args);
answer(Op, Args, Context) when Op =:= names; Op =:= traffic ->
    asked(Op, Args, Context).

asked(Op, Args, #{writable := Writable}) -> sderl_web_ask:live({Op, Args}, Writable).

with_topology(Fun) ->
    case sderl_web_feed:current() of
        #{topology := undefined} ->
            {error, unavailable, "the hub has no topology yet: ask again"};
        #{} = Now -> Fun(Now)
    end.

is_wanted(#{status := Is, groups := In}, Args) ->
    (case Args of #{status := Status} -> Status =:= Is; #{} -> true end) andalso
        (case Args of #{group := Group} -> lists:member(Group, In); #{} -> true end).

named_page(Key, All, Show, #{limit := Limit} = Args) ->
    {Page, Next} = sderl_web_page:cut(lists:sort(maps:keys(All)), fun(Name) -> Name end,
                                      maps:get(cursor, Args, none), Limit),
    {ok, #{Key => [Show(Name, maps:get(Name, All)) || Name <- Page]}, #{next => Next}}.

node(Name, Node) ->
    Given = maps:with([status, groups, home, hidden, source, why, otp, library, agent], Node),
    maps:merge(#{name => Name, groups => [], home => null, hidden => false, source => none,
                 why => null, otp => null, library => null, agent => null}, Given).

group(Name, Group) ->
    Given = maps:with([nodes, coordinator, live, names, agent], Group),
    maps:merge(#{name => Name, coordinator => null, live => null, names => null, agent => null},
               Given).

numbers(Key, Name, #{t := T} = Frame) ->
    case maps:get(Key, Frame, #{}) of
        #{Name := Sample} -> #{t => T, numbers => #{K => V || K := V <- Sample, is_number(V)}};
        #{} -> #{t => T, numbers => null}
    end;
numbers(_, _, undefined) -> #{t => null, numbers => null}.
