%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_net).
-moduledoc """
A simulated network of nodes that run `sderl_route_state`, and what their routes have to be.

Nodes learn of their groups later than these change. A link keeps the order of what is on it and
loses all of it when it breaks. Some nodes may be of before some kinds of messages (`older/2`).
Everything that happens is drawn from the seed of the calling process.
""".

-export([new/2, older/2, step/2, change/2, quiet/1, settle/2, rest/2, wrong/1, walks/1, memory/1,
         sent/1, nodes/1, oracle/5]).

-record(net, {
    names :: [node()],
    nodes = #{} :: #{node() => sderl_route_state:state()},
    %% The kinds of messages that a node knows, of those that do not know all.
    older = #{} :: #{node() => [change | changes | summary]},
    %% What the successor of a node's process finds.
    kept = #{} :: #{node() => #{node() => sderl_route_state:advertisement()}},
    groups = #{} :: #{Uid :: binary() => {Name :: term(), [node()]}},
    made = 0 :: non_neg_integer(),
    links = #{} :: #{{node(), node()} => []},
    %% What is on its way, the last first.
    wires = #{} :: #{{node(), node()} => [sderl_route_state:message()]},
    %% Who has not seen yet how its groups are now.
    behind = #{} :: #{node() => []},
    now = 0 :: integer(), clock = 1_000_000 :: integer(),
    news = 0 :: non_neg_integer(), told = 0 :: non_neg_integer()
}).

%% ---------------------------------------------------------------- what happens

new(Count, Groups) ->
    Names = [list_to_atom("n" ++ integer_to_list(K)) || K <- lists:seq(1, Count)],
    Net0 = lists:foldl(fun(N, Net) -> start(N, 0, Net) end, #net{names = Names}, Names),
    lists:foldl(fun({G, Ks}, Net) -> change({create, G, [lists:nth(K, Names) || K <- Ks]}, Net) end,
                Net0, Groups).

%% Some nodes know no more than these kinds, beside news and digests: they ignore others. Who has no
%% summaries compares by digest, and who has no changes tells all of a gateway.
older(Nodes, Net) -> Net#net{older = Nodes}.

knows(Node, Kind, #net{older = Older}) ->
    case Older of
        #{Node := Kinds} -> lists:member(Kind, [news, digest | Kinds]);
        #{} -> true
    end.

%% One thing: a message arrives, or something breaks or is changed.
step(Breaks, #net{now = Now} = Net0) ->
    Net = Net0#net{now = Now + rand:uniform(50), clock = Net0#net.clock + 50},
    case rand:uniform() < Breaks of
        true -> change(some(Net), Net);
        false -> progress(Net)
    end.

progress(#net{wires = Wires, behind = Behind} = Net) ->
    case maps:keys(Wires) ++ maps:keys(Behind) of
        [] -> Net;
        All -> case pick(All) of {_, _} = Wire -> arrive(Wire, Net); Node -> see(Node, Net) end
    end.

some(#net{names = Names, nodes = Nodes, groups = Groups, links = Links}) ->
    Down = Names -- maps:keys(Nodes),
    case rand:uniform(18) of
        K when K =< 4, map_size(Links) > 0 -> {break, pick(maps:keys(Links))};
        K when K =< 8 -> {link, pick(Names), pick(Names)};
        9 -> {crash, pick(Names)};
        K when K =< 11, Down =/= [] -> {restart, pick(Down), pick([3000, 3000, -100_000])};
        12 -> {replace, pick(Names)};
        13 -> {compare, pick(Names)};
        14 when map_size(Groups) < 8 ->
            {create, {g, rand:uniform(9)}, [pick(Names) || _ <- lists:seq(1, 1 + rand:uniform(4))]};
        K when K =< 15, map_size(Groups) > 0 -> {add, pick(maps:keys(Groups)), pick(Names)};
        16 when map_size(Groups) > 0 -> {remove, pick(maps:keys(Groups)), pick(Names)};
        17 when map_size(Groups) > 4 -> {delete, pick(maps:keys(Groups))};
        18 -> pick([heal, {split, [N || N <- Names, rand:uniform(2) =:= 1]}]);
        _ -> {compare, pick(Names)}
    end.

change({link, N, N}, Net) -> Net;
change({link, A, B}, #net{nodes = Nodes, links = Links} = Net) ->
    Link = pair(A, B),
    case is_map_key(A, Nodes) andalso is_map_key(B, Nodes) andalso not is_map_key(Link, Links) of
        true -> event(A, {up, B}, event(B, {up, A}, Net#net{links = Links#{Link => []}}));
        false -> Net
    end;
change({break, {A, B}}, #net{links = Links, wires = Wires} = Net) ->
    event(A, {down, B}, event(B, {down, A},
                              Net#net{links = maps:remove({A, B}, Links),
                                      wires = maps:without([{A, B}, {B, A}], Wires)}));
change({crash, Node}, #net{nodes = Nodes, links = Links, kept = Kept, behind = Behind} = Net) ->
    Without = Net#net{nodes = maps:remove(Node, Nodes), kept = maps:remove(Node, Kept),
                      behind = maps:remove(Node, Behind)},
    lists:foldl(fun(Link, N) -> change({break, Link}, N) end, Without,
                [L || {A, B} = L <- maps:keys(Links), A =:= Node orelse B =:= Node]);
%% Another life, perhaps with a clock that stands back, linked to its mates.
change({restart, Node, Later}, Net0) ->
    Net = start(Node, Later, Net0),
    lists:foldl(fun(M, N) -> change({link, Node, M}, N) end,
                Net#net{behind = (Net#net.behind)#{Node => []}}, mates(Node, Net));
%% The process dies, and the node's links do not.
change({replace, Node}, #net{nodes = Nodes, kept = Kept, clock = Clock, behind = Behind} = Net)
  when is_map_key(Node, Nodes) ->
    State = sderl_route_state:new(Node, Clock, linked(Node, Net),
                                  maps:values(maps:get(Node, Kept, #{}))),
    Lost = #{Wire => Ms || {_, To} = Wire := Ms <- Net#net.wires, To =/= Node},
    Net#net{nodes = Nodes#{Node := State}, wires = Lost, behind = Behind#{Node => []}};
change({compare, Node}, Net) -> event(Node, {compare, rand:uniform(1 bsl 20)}, Net);
change({create, G, Ns}, #net{groups = Groups, made = Made} = Net) ->
    case [N || N <- lists:usort(Ns), not member(G, N, Net)] of
        [] -> Net;
        Members ->
            joined(Members,
                   Net#net{groups = Groups#{<<(Made + 1):64>> => {G, Members}}, made = Made + 1})
    end;
change({add, Uid, Node}, #net{groups = Groups} = Net) ->
    #{Uid := {G, Ms}} = Groups,
    case member(G, Node, Net) of
        true -> Net;
        false ->
            joined([Node | Ms], Net#net{groups = Groups#{Uid := {G, lists:usort([Node | Ms])}}})
    end;
change({remove, Uid, Node}, #net{groups = Groups, behind = Behind} = Net) ->
    #{Uid := {G, Ms}} = Groups,
    Net#net{groups = case Ms of
        [Node] -> maps:remove(Uid, Groups);
        _ -> Groups#{Uid := {G, Ms -- [Node]}}
    end,
            behind = maps:merge(Behind, #{N => [] || N <- Ms})};
change({delete, Uid}, #net{groups = Groups, behind = Behind} = Net) ->
    #{Uid := {_, Ms}} = Groups,
    Net#net{groups = maps:remove(Uid, Groups), behind = maps:merge(Behind, #{N => [] || N <- Ms})};
change({split, Side}, #net{links = Links} = Net) ->
    lists:foldl(fun(L, N) -> change({break, L}, N) end, Net,
                [L
                 || {A, B} = L <- maps:keys(Links),
                    lists:member(A, Side) =/= lists:member(B, Side)]);
change(heal, #net{groups = Groups} = Net) ->
    lists:foldl(fun({_, Ms}, Acc) -> mesh(Ms, Acc) end, Net, maps:values(Groups));
change(_, Net) -> Net.

joined(Members, #net{behind = Behind} = Net) ->
    mesh(Members, Net#net{behind = maps:merge(Behind, #{N => [] || N <- Members})}).

mesh(Ms, Net) ->
    lists:foldl(fun({A, B}, N) -> change({link, A, B}, N) end, Net,
                [{A, B} || A <- Ms, B <- Ms, A < B]).

start(Node, Later, #net{nodes = Nodes, clock = Clock} = Net) ->
    Net#net{nodes = Nodes#{Node => sderl_route_state:new(Node, Clock + Later, [])}}.

%% ---------------------------------------------------------------- nodes and wires

see(Node, #net{behind = Behind} = Net) ->
    event(Node, {groups, memberships(Node, Net)}, Net#net{behind = maps:remove(Node, Behind)}).

arrive({From, To} = Wire, #net{wires = Wires} = Net) ->
    {Message, Left} = case maps:get(Wire, Wires) of
        [M] -> {M, maps:remove(Wire, Wires)};
        Ms -> {lists:last(Ms), Wires#{Wire := lists:droplast(Ms)}}
    end,
    case knows(To, element(1, Message), Net) of
        true -> event(To, {message, From, Message}, Net#net{wires = Left});
        false -> Net#net{wires = Left}
    end.

event(Node, Event, #net{nodes = Nodes, now = Now} = Net) ->
    case Nodes of
        #{Node := S0} ->
            {Effects, S} = sderl_route_state:step(Now, Event, S0),
            lists:foldl(fun(E, N) -> effect(Node, E, N) end, Net#net{nodes = Nodes#{Node := S}},
                        Effects);
        #{} -> Net
    end.

effect(_, changed, Net) -> Net;
effect(Node, {keep, {N, _, _, _} = Ad}, #net{kept = Kept} = Net) ->
    Net#net{kept = Kept#{Node => (maps:get(Node, Kept, #{}))#{N => Ad}},
            told = Net#net.told + case N of Node -> 1; _ -> 0 end};
effect(Node, {keep_change, {N, _, _, _, _} = Change}, #net{kept = Kept} = Net) ->
    #{Node := #{N := Ad} = Ads} = Kept,
    Net#net{kept = Kept#{Node := Ads#{N := sderl_route_state:changed(Change, Ad)}},
            told = Net#net.told + case N of Node -> 1; _ -> 0 end};
effect(Node, {drop, N}, #net{kept = Kept} = Net) ->
    Net#net{kept = Kept#{Node => maps:remove(N, maps:get(Node, Kept, #{}))}};
effect(Node, {send, To, Word}, #net{wires = Wires, links = Links, news = News} = Net) ->
    true = To =/= Node,
    Message = in_old_words(Node, Word, Net),
    Bundles = knows(Node, changes, Net),
    case is_map_key(pair(Node, To), Links) of
        true ->
            Wire = {Node, To},
            Net#net{wires = Wires#{Wire => behind(Bundles, Message, maps:get(Wire, Wires, []))},
                    news = News +
                        case Message of {news, Ads} -> length(Ads); {change, _} -> 1; _ -> 0 end};
        false -> Net
    end.

%% What it has of a gateway is kept before it is told.
in_old_words(Node, {Kind, Word} = Message, #net{kept = Kept} = Net) ->
    case {knows(Node, Kind, Net), Kind} of
        {false, summary} ->
            {digest, true, [{N, V} || {N, V, _, _} <- maps:values(maps:get(Node, Kept, #{}))]};
        {false, change} -> {news, [map_get(element(1, Word), map_get(Node, Kept))]};
        {true, _} -> Message
    end;
in_old_words(_, Message, _) -> Message.

%% Some of what is told one after the other is one word by then.
behind(true, {What, _} = Message, [Last | Before] = Wire) when What =:= news; What =:= change ->
    case words(Last) =/= [] andalso rand:uniform(2) =:= 1 of
        true ->
            Bundle = lists:foldl(fun(Word, B) -> sderl_route_bundle:add(to, Word, B) end,
                                 sderl_route_bundle:new(), words(Last) ++ [Message]),
            lists:reverse([Word || {to, Word} <- sderl_route_bundle:messages(Bundle)]) ++ Before;
        false -> [Message | Wire]
    end;
behind(_, Message, Wire) -> [Message | Wire].

words({changes, Changes}) -> [{change, Change} || Change <- Changes];
words({What, _} = Word) when What =:= news; What =:= change -> [Word];
words(_) -> [].

%% ---------------------------------------------------------------- rest

%% Everything arrives.
quiet(#net{wires = Wires, behind = Behind} = Net)
  when map_size(Wires) =:= 0, map_size(Behind) =:= 0 ->
    Net;
quiet(Net) -> quiet(progress(Net)).

%% Rounds of digests until all routes are right, and how many it took.
settle(Most, Net0) ->
    Net = quiet(Net0),
    case wrong(Net) of
        [] -> {0, Net};
        _ when Most > 0 ->
            case settle(Most - 1, rest(10_000, Net)) of
                {never, Last} -> {never, Last};
                {Rounds, Last} -> {Rounds + 1, Last}
            end;
        _ -> {never, Net}
    end.

%% Each node compares once in `Ms`.
rest(Ms, #net{nodes = Nodes, now = Now} = Net) ->
    quiet(lists:foldl(fun(Node, N) -> change({compare, Node}, N) end, Net#net{now = Now + Ms},
                      maps:keys(Nodes))).

%% How many advertisements have been sent, and how often a node told something new of itself.
sent(#net{news = News, told = Told}) -> {News, Told}.

nodes(#net{nodes = Nodes}) -> maps:keys(Nodes).

%% How much each node has kept, and how many gateways there are.
memory(#net{nodes = Nodes, kept = Kept} = Net) ->
    {length(gateways(Net)), [map_size(maps:get(N, Kept, #{})) || N <- maps:keys(Nodes)]}.

%% ---------------------------------------------------------------- what is right

routes(S) -> sderl_route_state:routes_of(sderl_route_state:parts(S)).

%% Nodes whose routes are not those of the true network.
wrong(#net{nodes = Nodes} = Net) ->
    Alive = maps:keys(Nodes),
    Groups = [{G, Uid, Ms} || Uid := {G, Ms} <- Net#net.groups],
    Linked = fun(A, B) -> is_map_key(pair(A, B), Net#net.links) end,
    [{N, #{is => Is, ought => Ought}}
     || N := S <- Nodes,
        {OughtGroups, OughtNodes} <- [oracle(N, Groups, Linked, gateways(Net), Alive)],
        Reached <- [[G
                     || G <- gateways(Net),
                        is_map_key(G, OughtNodes)
                        orelse Linked(N, G) andalso lists:member(G, mates(N, Net))]],
        Out <- [[M || M <- Alive, not served(M, Reached, Net)] ++ (gateways(Net) -- Reached)],
        Ought <- [{OughtGroups, maps:without(Out, OughtNodes)}],
        Is <- [known(Alive -- Out, routes(S))], Is =/= Ought].

%% One of these gateways is in its group, with a link to it.
served(M, Gateways, Net) ->
    lists:any(fun(G) ->
        is_map_key(pair(M, G), Net#net.links) andalso lists:member(G, mates(M, Net))
    end, Gateways).

%% Of those who are dead, or out of reach, nobody can say whether they are gateways.
known(Nodes, #{groups := Groups, nodes := Routes}) ->
    {#{G => {R, lists:sort(Ms)} || G := {R, Ms} <- Groups}, maps:with(Nodes, Routes)}.

%% By definition: all chains of gateways, the longer ones after the shorter ones.
oracle(Self, Groups, Linked, Gateways, Alive) ->
    Share = fun(A, B) ->
        lists:any(fun({_, _, Ms}) -> lists:member(A, Ms) andalso lists:member(B, Ms) end, Groups)
    end,
    Next = fun(A, B) -> A =/= B andalso Linked(A, B) andalso Share(A, B) end,
    First = [G || G <- Gateways, Next(Self, G)],
    Others = Gateways -- [Self],
    %% Floyd and Warshall.
    D0 = #{{A, B} => 1 || A <- Others, B <- Others, Next(A, B)},
    D = lists:foldl(fun(K, D1) ->
        lists:foldl(fun({A, B}, D2) ->
            case {maps:get({A, K}, D2, none), maps:get({K, B}, D2, none)} of
                {X, Y} when is_integer(X), is_integer(Y) ->
                    D2#{{A, B} => min(X + Y, maps:get({A, B}, D2, X + Y))};
                _ -> D2
            end
        end, D1, [{A, B} || A <- Others, B <- Others, A =/= B])
    end, D0, Others),
    Far = fun
        (F, Y) when F =:= Y -> 1;
        (F, Y) -> case D of #{{F, Y} := X} -> X + 1; #{} -> none end
    end,
    %% The way to the nearest of some gateways: how far, and all who may be the first.
    Way = fun(Ends) ->
        case lists:sort([{Dist, F, E}
                         || E <- Ends, F <- First, Dist <- [Far(F, E)], is_integer(Dist)]) of
            [] -> none;
            [{Best, _, _} | _] = All ->
                {{Best, lists:usort([F || {Dist, F, _} <- All, Dist =:= Best])},
                 lists:usort([E || {Dist, _, E} <- All, Dist =:= Best])}
        end
    end,
    Own = [G || {G, _, Ms} <- Groups, lists:member(Self, Ms)],
    Found = #{G => {Route, lists:usort(
        lists:append([Ms || {H, _, Ms} <- Groups, H =:= G, E <- Ends, lists:member(E, Ms)])
    )}
              || G <- lists:usort([G || {G, _, _} <- Groups]), not lists:member(G, Own),
                 {Route, Ends} <-
                     [Way([E || {H, _, Ms} <- Groups, H =:= G, E <- Ms, lists:member(E, Others)])]},
    %% A gateway by its own links, and everybody else by the nearest gateway of its group.
    ToGateways = #{E => {Best - 1, Via}
                   || E <- Others, {{Best, Via}, _} <- [Way([E])], Best > 1, not Next(Self, E)},
    Members = lists:keysort(1, [{Route, Ms}
                                || {_, _, Ms} <- Groups, not lists:member(Self, Ms),
                                   {Route, _} <- [Way([E || E <- Ms, lists:member(E, Others)])]]),
    ToMembers = maps:from_list([{N, Route}
                                || {Route, Ms} <- lists:reverse(Members), N <- Ms,
                                   N =/= Self, not lists:member(N, Gateways),
                                   lists:member(N, Alive), not Next(Self, N)]),
    {Found, maps:merge(ToMembers, ToGateways)}.

%% From every node to every group it has a route to: by first steps at random it gets nearer with
%% each. Gives what does not.
walks(#net{nodes = Nodes} = Net) ->
    Routes = #{N => routes(S) || N := S <- Nodes},
    [{N, G}
     || N := #{groups := Groups} <- Routes, G := {{Far, First}, _} <- Groups,
        not walk(pick(First), G, Far, Routes, Net)]
        ++ [{N, M}
            || N := #{nodes := Ns, reached := Reached} <- Routes, M := {Far, First} <- Ns,
               is_map_key(M, Nodes),
               lists:member(M, Reached)
               orelse served(M, Reached, Net) andalso not lists:member(M, gateways(Net)),
               not walk_to(pick(First), M, Far, Routes, Net)].

walk(At, G, 1, _, Net) -> member(G, At, Net);
walk(At, G, Far, Routes, Net) ->
    case Routes of
        #{At := #{groups := #{G := {{Less, First}, _}}}} when Less =:= Far - 1 ->
            walk(pick(First), G, Less, Routes, Net);
        _ -> false
    end.

%% The last gateway has a link, or would if its group were meshed.
walk_to(At, To, 1, _, Net) ->
    lists:member(To, mates(At, Net)) orelse is_map_key(pair(At, To), Net#net.links);
walk_to(At, To, Far, Routes, Net) ->
    case Routes of
        #{At := #{nodes := #{To := {Less, First}}}} when Less =:= Far - 1 ->
            walk_to(pick(First), To, Less, Routes, Net);
        _ -> false
    end.

gateways(#net{nodes = Nodes} = Net) ->
    [N || N <- maps:keys(Nodes), length(memberships(N, Net)) > 1].

memberships(Node, #net{groups = Groups}) ->
    lists:sort([{G, Uid, Ms} || Uid := {G, Ms} <- Groups, lists:member(Node, Ms)]).

mates(Node, Net) ->
    lists:usort(lists:append([Ms || {_, _, Ms} <- memberships(Node, Net)])) -- [Node].

member(G, Node, Net) -> lists:keymember(G, 1, memberships(Node, Net)).

linked(Node, #net{links = Links}) ->
    [case L of {Node, B} -> B; {A, Node} -> A end
     || {A, B} = L <- maps:keys(Links), A =:= Node orelse B =:= Node].

pair(A, B) -> {min(A, B), max(A, B)}.

pick(List) -> lists:nth(rand:uniform(length(List)), List).
