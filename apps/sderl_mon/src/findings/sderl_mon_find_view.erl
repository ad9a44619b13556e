%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find_view).
-moduledoc """
The input of the rules of `m:sderl_mon_findings`: the mean rates of the last seconds, the members of
each group, and the gateways between groups. Pure, made once for each check.
""".

-export([new/4]).
-export([share/3, chain/3, members/2, number/2, links/2, reason/4]).
-export_type([view/0]).

-doc """
`nodes` and `groups`: means over the window. `links`: messages and bytes a second. `member_of`: the
groups of each node of the cluster (hidden nodes are left out). `lost`: what was left out in the
window, by name.
""".
-type view() :: #{
    t := integer(),
    topology := sderl_mon_types:topology(),
    details := #{sderl_mon_types:id() => sderl_mon_types:detail()},
    nodes := #{sderl_mon_types:id() => #{atom() => number()}},
    groups := #{sderl_mon_types:id() => #{atom() => number()}},
    links := #{{sderl_mon_types:id(), sderl_mon_types:id()} => {number(), number()}},
    member_of := #{sderl_mon_types:id() => [sderl_mon_types:id()]},
    gateways := #{Group :: sderl_mon_types:id() => [sderl_mon_types:id()]},
    lost := #{atom() => integer()}
}.

-doc "`Frames` are newest first, and not empty.".
-spec new(sderl_mon_types:topology(), [sderl_mon_types:frame(), ...],
          #{sderl_mon_types:id() => sderl_mon_types:detail()}, WindowMs :: pos_integer()) -> view().
new(Topology, [#{t := Now} | _] = Frames, Details, WindowMs) ->
    Window = lists:takewhile(fun(#{t := T}) -> T > Now - WindowMs end, Frames),
    Of = usual(Topology),
    #{
        t => Now,
        topology => Topology,
        details => Details,
        nodes => means(nodes, Window),
        groups => means(groups, Window),
        links => link_means(Window),
        member_of => Of,
        gateways => gateways(Of, Topology),
        lost => lost(Window)
    }.

%% The groups of each node that is not hidden.
usual(#{nodes := Nodes}) -> #{Id => Groups || Id := #{groups := Groups, hidden := false} <- Nodes}.

%% Means weighted by the frames' spans. A value that is missing in some frames is the mean of the
%% others.
means(Key, Window) ->
    Sums = lists:foldl(
        fun(#{span_ms := Span} = Frame, Acc) ->
            maps:fold(fun(Id, Sample, Inner) ->
                maps:fold(fun(K, V, In) -> summed({Id, K}, V, Span, In) end, Inner, Sample)
            end, Acc, maps:get(Key, Frame, #{}))
        end,
        #{},
        Window
    ),
    maps:fold(
        fun({Id, K}, {Sum, Weight}, Acc) ->
            Of = maps:get(Id, Acc, #{}),
            Acc#{Id => Of#{K => Sum / Weight}}
        end,
        #{},
        Sums
    ).

summed(Key, Value, Span, Acc) when is_number(Value) ->
    {Sum, Weight} = maps:get(Key, Acc, {0, 0}),
    Acc#{Key => {Sum + Value * Span, Weight + Span}};
summed(_, _, _, Acc) ->
    Acc.

%% In a frame that lacks a link, the link had no traffic.
link_means(Window) ->
    All = lists:sum([Span || #{span_ms := Span} <- Window]),
    Sums = lists:foldl(
        fun(#{span_ms := Span, links := Links}, Acc) ->
            maps:fold(
                fun(Link, {Msgs, Bytes}, In) ->
                    {M, B} = maps:get(Link, In, {0, 0}),
                    In#{Link => {M + Msgs * Span, B + Bytes * Span}}
                end,
                Acc,
                Links
            )
        end,
        #{},
        Window
    ),
    #{Link => {M / All, B / All} || Link := {M, B} <- Sums}.

%% Each frame counts what is not in it.
lost(Window) ->
    lists:foldl(fun(Frame, Acc) ->
        maps:merge_with(fun(_, A, B) -> A + B end, Acc, maps:get(lost, Frame, #{}))
    end, #{}, Window).

%% By group, the live nodes that are also in another group. (Not by pair of groups: a gateway of a
%% thousand groups has a million pairs.)
gateways(Of, #{nodes := Nodes}) ->
    maps:groups_from_list(
        fun({Group, _}) -> Group end,
        fun({_, Node}) -> Node end,
        [
            {Group, Node}
         || Node := [_, _ | _] = Groups <- Of,
            #{status := up} <- [maps:get(Node, Nodes, none)],
            Group <- Groups
        ]
    ).

-doc "Whether two nodes have a group in common.".
-spec share(sderl_mon_types:id(), sderl_mon_types:id(), view()) -> boolean().
share(A, B, #{member_of := Of}) ->
    InB = maps:get(B, Of, []),
    lists:any(fun(Group) -> lists:member(Group, InB) end, maps:get(A, Of, [])).

-doc """
The gateways of a shortest path between the groups of two nodes; `none` if there is no path over
live gateways.
""".
-spec chain(sderl_mon_types:id(), sderl_mon_types:id(), view()) ->
    {ok, [sderl_mon_types:id()]} | none.
chain(A, B, #{member_of := Of, gateways := Gateways}) ->
    From = maps:get(A, Of, []),
    To = #{Group => true || Group <- maps:get(B, Of, [])},
    walk([{Group, []} || Group <- From], [], To, {Of, Gateways}, #{Group => true || Group <- From}).

%% Breadth-first search; each group and each gateway is visited once.
walk([], [], _, _, _) ->
    none;
walk([], Next, To, Ways, Seen) ->
    walk(lists:reverse(Next), [], To, Ways, Seen);
walk([{Group, Chain} | _], _, To, _, _) when is_map_key(Group, To) ->
    {ok, lists:reverse(Chain)};
walk([{Group, Chain} | Rest], Next, To, {Of, Gateways} = Ways, Seen) ->
    {Further, Seen1} = lists:foldl(
        fun
            (Gateway, {Acc, In}) when is_map_key({gateway, Gateway}, In) ->
                {Acc, In};
            (Gateway, {Acc, In}) ->
                New = [G || G <- map_get(Gateway, Of), not is_map_key(G, In)],
                {
                    [{G, [Gateway | Chain]} || G <- lists:reverse(New)] ++ Acc,
                    maps:merge(In#{{gateway, Gateway} => true}, #{G => true || G <- New})
                }
        end,
        {Next, Seen},
        maps:get(Group, Gateways, [])
    ),
    walk(Rest, Further, To, Ways, Seen1).

-doc "The nodes of a group.".
-spec members(sderl_mon_types:id(), view()) -> [sderl_mon_types:id()].
members(Group, #{topology := #{groups := Groups}}) ->
    case Groups of
        #{Group := #{nodes := Nodes}} -> Nodes;
        #{} -> []
    end.

-doc "A measured value, 0 where there is none.".
-spec number(atom(), map()) -> number().
number(Key, Map) ->
    case Map of
        #{Key := Value} when is_number(Value) -> Value;
        #{} -> 0
    end.

-doc """
The links of a node from its details, if there are any: with reasons, age and the bytes that wait.
""".
-spec links(sderl_mon_types:id(), view()) ->
    [{Peer :: sderl_mon_types:id(), sderl_mon_types:link_detail()}].
links(Node, #{details := Details}) ->
    case Details of
        #{Node := #{links := Links}} -> [{Peer, Link} || #{node := Peer} = Link <- Links];
        #{} -> []
    end.

-doc "Whether either end of a link has a reason that begins with a text.".
-spec reason(binary(), sderl_mon_types:id(), sderl_mon_types:id(), view()) -> boolean().
reason(Begins, A, B, View) ->
    lists:any(
        fun({From, To}) ->
            lists:any(
                fun(Reason) ->
                    is_binary(Reason) andalso string:prefix(Reason, Begins) =/= nomatch
                end,
                [Reason
                 || {Peer, Link} <- links(From, View), Peer =:= To,
                    Reason <- maps:get(reasons, Link, [])]
            )
        end,
        [{A, B}, {B, A}]
    ).
