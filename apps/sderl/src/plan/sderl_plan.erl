%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan).
-moduledoc """
Predicts the cost of a plan of groups before it is applied, and proposes plans: links of a node,
hops between nodes, names that a node holds, and nodes whose loss disconnects groups.

```erlang
Limits = #{max_links => 20, max_group => 12, gateways => 2},
{ok, Plan, Prediction} = sderl_plan:propose(Nodes, Limits),
#{links := #{max := 18}} = Prediction.
```

The module is pure; plans are those of `m:sderl_pattern`.

## Prediction

| key | what |
|---|---|
| `nodes`, `groups`, `gateways` | how many |
| `group_size` | `#{min, max}`: members, hubs too |
| `links` | `#{max, mean, each}`: nodes that a node shares a group with; `each` by node |
| `mesh_links` | of a node in a full mesh |
| `hops` | `#{max, mean, unreachable}`: links on the shortest way between two nodes, over all pairs; pairs without a way |
| `traffic` | with a traffic matrix: `#{mean, inside, unreachable}`: hops of a message, and the share of messages that stay in a group |
| `names` | with `names_per_node` or `names_per_group`: `#{max, mean, mesh}`: names that a node holds; in one namespace of all |
| `single_points` | `[{Node, Groups}]`: gateways whose loss cuts groups off |

An argument of the wrong type raises `{badarg, {sderl_plan, Function, Arity}, #{argument := N, found
:= Value, expected := Text}}`; contradictory arguments give `{error, Reason}`, for `format_error/1`.
""".

-export([predict/1, predict/2, within/2, propose/2, format_error/1]).
-export_type([prediction/0, limits/0]).

-import(sderl_check, [misuse/5]).

-define(LIKELY, 16).

-doc "See the table above.".
-type prediction() :: #{
    nodes := non_neg_integer(), groups := non_neg_integer(), gateways := non_neg_integer(),
    group_size := #{min := non_neg_integer(), max := non_neg_integer()},
    links := #{max := non_neg_integer(), mean := float(), each := #{node() => non_neg_integer()}},
    mesh_links := non_neg_integer(),
    hops := #{max := non_neg_integer(), mean := float(), unreachable := non_neg_integer()},
    traffic => #{mean := float(), inside := float(), unreachable := float()},
    names => #{max := number(), mean := float(), mesh := number()},
    single_points := [{node(), [Group :: term()]}]
}.
-doc """
The limits of a plan: `max_links` of a node, `max_group` (members of a group, of a hub too),
`gateways` of an edge (2), `patterns` to choose from (all), `order` (by traffic if that is given).
""".
-type limits() :: #{
    max_links => pos_integer(), max_group => pos_integer(), gateways => pos_integer(),
    patterns => [sderl_pattern:pattern(), ...], traffic => sderl_pattern:traffic(),
    order => sderl_pattern:order(), name => term(),
    names_per_node => number(), names_per_group => number()
}.

-doc "`predict/2` without traffic and names.".
-spec predict(sderl_pattern:plan()) -> prediction().
predict(Plan) ->
    {ok, Prediction} = predict(Plan, #{}),
    Prediction.

-doc """
What a plan costs. `names_per_node`: names that each node registers in its home group;
`names_per_group`: further names of a group.

Error: `{bad_traffic, Row}`.
""".
-spec predict(sderl_pattern:plan(), Of) -> {ok, prediction()} | {error, sderl_pattern:reason()} when
    Of :: #{traffic => sderl_pattern:traffic(),
            names_per_node => number(), names_per_group => number(), _ => _}.
predict(#{groups := Groups} = Plan, Of) when is_map(Of) ->
    maybe
        {ok, Weights} ?= sderl_pattern_order:pairs(maps:get(traffic, Of, [])),
        Memberships = sderl_plan_graph:memberships(Plan),
        Links = sderl_plan_graph:links(Plan),
        Sizes = [length(Ns) || #{nodes := Ns} <- Groups],
        Prediction = #{
            nodes => map_size(Memberships),
            groups => length(Groups),
            gateways => length([Gs || [_, _ | _] = Gs <- maps:values(Memberships)]),
            group_size => #{min => least(Sizes), max => lists:max([0 | Sizes])},
            links => #{max => lists:max([0 | maps:values(Links)]), mean => mean(maps:values(Links)),
                       each => Links},
            mesh_links => max(0, map_size(Memberships) - 1),
            hops => sderl_plan_graph:hops(Memberships),
            single_points => sderl_plan_graph:single_points(Memberships)
        },
        {ok, maps:merge(Prediction,
                        maps:merge(traffic(Weights, Memberships), names(Plan, Memberships, Of)))}
    end;
predict(#{groups := _}, Of) ->
    misuse(?MODULE, {predict, 2}, 2, Of, "a map with traffic, names_per_node, names_per_group");
predict(Other, _) ->
    misuse(?MODULE, {predict, 2}, 1, Other, "a plan, as sderl_pattern:check/1 has it").

least([]) -> 0;
least(Sizes) -> lists:min(Sizes).

mean([]) -> 0.0;
mean(Numbers) -> lists:sum(Numbers) / length(Numbers).

traffic(Weights, _) when map_size(Weights) =:= 0 -> #{};
traffic(Weights, Memberships) -> #{traffic => sderl_plan_graph:hops(Memberships, Weights)}.

names(#{groups := Groups} = Plan, Memberships, Of)
  when is_map_key(names_per_node, Of); is_map_key(names_per_group, Of) ->
    PerNode = maps:get(names_per_node, Of, 0),
    PerGroup = maps:get(names_per_group, Of, 0),
    Held = #{G => PerGroup + PerNode * length(sderl_pattern:home(G, Plan))
             || #{name := G} <- Groups},
    Each = [lists:sum([map_get(G, Held) || G <- Gs]) || Gs <- maps:values(Memberships)],
    #{names => #{max => lists:max([0 | Each]), mean => mean(Each),
                 mesh => lists:sum(maps:values(Held))}};
names(_, _, _) -> #{}.

-doc """
Whether a plan with this prediction keeps to `max_links` and `max_group`, if they are given.

Errors: `{limit, max_links | max_group, Limit, Predicted}`.
""".
-spec within(prediction(), limits()) -> ok | {error, sderl_pattern:reason()}.
within(#{links := #{max := Links}}, #{max_links := Limit}) when Links > Limit ->
    {error, {limit, max_links, Limit, Links}};
within(#{group_size := #{max := Size}}, #{max_group := Limit}) when Size > Limit ->
    {error, {limit, max_group, Limit, Size}};
within(_, _) -> ok.

%% ---------------------------------------------------------------- proposing

-doc """
The best plan: within the limits; without a single point of failure, if edges have two gateways or
more; then with the fewest hops (of a message, if traffic is given); then with the fewest links of a
node.

Each pattern is tried with groups of up to 16 sizes, a star with one hub and with as many as there
are gateways, a tree with several branchings.

Errors: `{no_plan, Nodes, Limits, Closest}`, where `Closest` is the limit that would have to be
allowed: `{max_links, Links, Pattern}`, `{max_group, Size, Pattern}` or `none`; those of
`m:sderl_pattern`.
""".
-spec propose([node()], limits()) ->
    {ok, sderl_pattern:plan(), prediction()} | {error, sderl_pattern:reason()}.
propose(Nodes, Limits) when is_map(Limits) ->
    case {unknown(Limits), [KV || {K, V} = KV <- maps:to_list(Limits), not limit(K, V)], Nodes} of
        {[Key | _], _, _} -> {error, {unknown_limit, Key}};
        {[], [{K, V} | _], _} ->
            misuse(?MODULE, {propose, 2}, 2, #{K => V}, "a limit with a value that it can have");
        {[], [], []} -> {error, {no_nodes}};
        {[], [], _} -> among(Nodes, Limits)
    end;
propose(_, Other) -> misuse(?MODULE, {propose, 2}, 2, Other, "a map of limits").

unknown(Limits) ->
    maps:keys(Limits) -- [max_links, max_group, gateways, patterns, traffic, order, name,
                          names_per_node, names_per_group].

%% Nodes, order and gateways are checked by sderl_pattern.
limit(K, V) when K =:= max_links; K =:= max_group -> is_integer(V) andalso V >= 1;
limit(K, V) when K =:= names_per_node; K =:= names_per_group -> is_number(V) andalso V >= 0;
limit(patterns, V) ->
    is_list(V) andalso V =/= [] andalso V -- [star, tree, ring, chain, grid] =:= [];
limit(_, _) -> true.

among(Nodes, Limits) ->
    Common = maps:with([name], Limits),
    Options = Common#{gateways => maps:get(gateways, Limits, 2), order => order(Limits)},
    case first_error(Nodes, Options) of
        ok ->
            All = candidates(Nodes, Options, Limits),
            case [C || {_, Links, Size, _} = C <- All, Links =< maps:get(max_links, Limits, Links),
                       Size =< maps:get(max_group, Limits, Size)] of
                [] ->
                    More = candidates(Nodes, Options, maps:with([patterns], Limits)),
                    {error, {no_plan, length(Nodes), shown(Limits), closest(All ++ More, Limits)}};
                Within -> choose(Within, Nodes, Options, Limits)
            end;
        Error -> Error
    end.

order(#{order := Order}) -> Order;
order(#{traffic := Traffic}) -> {traffic, Traffic};
order(_) -> given.

shown(Limits) -> maps:with([max_links, max_group, gateways], Limits).

%% {{Pattern, Options}, most links, most members, plan}, for the nodes in the given order: which of
%% them go together changes neither number much.
candidates(Nodes, Options, Limits) ->
    Sizes = sizes(length(Nodes), Limits),
    [{{Pattern, O}, lists:max(maps:values(sderl_plan_graph:links(Plan))),
      lists:max([length(Ns) || #{nodes := Ns} <- Groups]), Plan}
     || Pattern <- maps:get(patterns, Limits, [chain, star, tree, grid, ring]),
        O <- variants(Pattern, Options, Sizes, length(Nodes)),
        {ok, #{groups := Groups} = Plan} <-
            [sderl_pattern:new(Pattern, Nodes, O#{order => given})]].

%% The errors of the input, whatever the plan.
first_error(Nodes, #{order := Order}) ->
    case sderl_pattern:chain(Nodes, #{groups => 1}) of
        {ok, _} when element(1, Order) =:= traffic ->
            case sderl_pattern_order:pairs(element(2, Order)) of {ok, _} -> ok; Error -> Error end;
        {ok, _} -> ok;
        Error -> Error
    end.

sizes(N, Limits) ->
    Most = lists:min([N, maps:get(max_group, Limits, N), maps:get(max_links, Limits, N) + 1]),
    lists:usort([2, 3, 4, 6, 8, 12] ++ [max(2, round(Most * F)) || F <-
        [0.04, 0.06, 0.09, 0.12, 0.17, 0.22, 0.28, 0.34, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]]).

variants(star, #{gateways := K} = O, Sizes, _) ->
    [O#{size => S, hubs => H} || S <- Sizes, H <- lists:usort([1, K])];
variants(tree, O, Sizes, N) ->
    [O#{size => S, branching => P, leaves => 1}
     || S <- Sizes, P <- [2, 3, 4, 5, 6, 8, 10, 15, 20], P * 2 =< N];
variants(_, O, Sizes, _) -> [O#{size => S} || S <- Sizes].

%% Paths are counted for those that look best.
choose(Within, Nodes, #{gateways := K, order := Order}, Limits) ->
    Likely = lists:sublist(lists:sort([{estimate(Plan), I, C}
                                       || {I, {_, _, _, Plan} = C} <- lists:enumerate(Within)]),
                           ?LIKELY),
    Ranked = lists:sort([{rank(Plan, Links, K), I, Made}
                         || {_, I, {Made, Links, _, Plan}} <- Likely]),
    best([Made || {_, _, Made} <- Ranked], Nodes, Order, Limits, 5).

%% About the hops between two nodes.
estimate(#{pattern := Pattern, options := Options, groups := Groups}) ->
    G = length([g || #{role := workers} <- Groups]),
    case Pattern of
        _ when G =:= 1 -> 1;
        star -> 3;
        tree -> 1 + 2 * math:log(G) / math:log(map_get(branching, Options));
        grid -> 1 + 2 / 3 * math:sqrt(G);
        ring -> 1 + G / 4;
        chain -> 1 + G / 3
    end.

%% Before nodes are put in order, all plans of one shape have the same hops.
rank(Plan, Links, K) ->
    Of = sderl_plan_graph:memberships(Plan),
    #{mean := Hops} = sderl_plan_graph:hops(Of),
    Single = K > 1 andalso sderl_plan_graph:single_points(Of) =/= [],
    {Single, round(Hops * 20), Links}.

%% Of the best shapes, the one that suits the traffic.
best(Ranked, Nodes, Order, Limits, Tries) ->
    Of = maps:with([traffic, names_per_node, names_per_group], Limits),
    Made = [{I, Plan, Prediction}
            || {I, {Pattern, O}} <-
                   lists:enumerate(lists:sublist(Ranked, case Order of given -> 1; _ -> Tries end)),
               {ok, Plan} <- [sderl_pattern:new(Pattern, Nodes, O#{order => Order})],
               {ok, Prediction} <- [predict(Plan, Of)],
               ok =:= within(Prediction, Limits)],
    case lists:sort([{weighted(Prediction), I, Plan, Prediction}
                     || {I, Plan, Prediction} <- Made]) of
        [{_, _, Plan, Prediction} | _] -> {ok, Plan, Prediction};
        [] when length(Ranked) > Tries ->
            best(lists:nthtail(Tries, Ranked), Nodes, Order, Limits, Tries);
        [] -> unplaced(Ranked, Nodes, Order, Limits)
    end.

weighted(#{traffic := #{mean := Mean}}) -> Mean;
weighted(_) -> 0.

%% None could be made with that order: the error of the first one.
unplaced([{Pattern, O} | _], Nodes, Order, Limits) ->
    case sderl_pattern:new(Pattern, Nodes, O#{order => Order}) of
        {ok, Plan} ->
            #{links := #{max := Links}} = Prediction = predict(Plan),
            case within(Prediction, Limits) of
                ok -> {error, {no_plan, length(Nodes), shown(Limits), {max_links, Links, Pattern}}};
                Error -> Error
            end;
        Error -> Error
    end.

%% The limit that has to be raised least, in proportion.
closest(All, Limits) ->
    Options = [{Links / max(1, Limit), {max_links, Links, Pattern}}
               || #{max_links := Limit} <- [Limits], {{Pattern, _}, Links, Size, _} <- All,
                  Size =< maps:get(max_group, Limits, Size)]
        ++ [{Size / max(1, Limit), {max_group, Size, Pattern}}
            || #{max_group := Limit} <- [Limits], {{Pattern, _}, Links, Size, _} <- All,
               Links =< maps:get(max_links, Limits, Links)],
    case lists:sort(Options) of
        [{_, Closest} | _] -> Closest;
        [] -> none
    end.

-doc """
A sentence for an error of `m:sderl_pattern`, of this module or of `m:sderl_plan_apply`: what is
wrong, and what to do.
""".
-spec format_error(sderl_pattern:reason()) -> string().
format_error(Reason) -> sderl_plan_words:error(Reason).
