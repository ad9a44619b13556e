%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_state).
-moduledoc """
A node's knowledge of the gateways: their *link states*, as they advertise them.

A *gateway* is a node in two groups or more. Its versioned *advertisement* says which groups it is
in, with their members, and to which other gateways it has a link. Every node keeps the latest
advertisement of each gateway and computes its routes from them (`m:sderl_route_paths`). No routes
or distances are sent, so there is no counting to infinity.

## Messages

| message | sent | to |
|---|---|---|
| `{news, [Advertisement]}` | when an advertisement is newer than the one known | the mates in groups that the sender of it is not in |
| `{change, Change}` | the same, if the node already was a gateway: what is new in its advertisement | likewise |
| `{changes, [Change]}` | changes of several gateways at once (`m:sderl_route_bundle`) | likewise |
| `{summary, Hash}` | now and then | one mate at random, which sends its digest if its own hash differs |
| `{digest, Answer, [{Node, Version}]}` | when a mate comes up, and after such a summary | that mate, which sends what is newer, and its own digest if it lacks something |

A *change* names two versions, and has all that is new in the second. It can be applied to the first
one and to those in between. A node that has an older version asks for the whole advertisement with
a digest. So the cost of one more group does not grow with the number of groups.

A *mate* is a node of an own group to which there is a link. An advertisement crosses each group
once for each gateway that leads into it. The digests repair what was lost with a link, and bring to
members without a link to the sender what their other mates have: that may take some rounds. At rest
only the summaries are sent, which are as small in a large cluster as in a small one.

## Races

- A gateway that restarts begins with a version of its new life. A gateway that restarts with a
  clock that was set back hears an advertisement of its own former run, and goes above everything of
  that run, because others may have heard more of it.
- A gateway that dies announces nothing. A link counts only if both ends advertise it, and the
  neighbours of a dead gateway remove it from their advertisements, so no path leads through it from
  the moment these arrive. No node removes what others advertised.
- A gateway without a path for `?FORGET_MS` is no longer advertised, and is forgotten the same time
  later. If it were forgotten at once, late nodes would advertise it again to early ones, for ever.
- Two sides of a split that heals exchange digests; the newer advertisement of each gateway wins on
  both.
- When the process that runs this dies, its successor begins with what was kept (`keep`, `drop`), so
  that no route is lost meanwhile.

Pure: `step/3` gives effects and a state. `sderl_router` runs it on a node.
""".

-export([new/3, new/4, step/3, parts/1, part_size/1, routes_of/1]).
-export([gateways/1, gateway_mates/1, watchers/1, advertisement/1, change/1, version/1]).
-export([changed/2, compose/2]).
-export_type([state/0, part/0, event/0, effect/0, message/0, advertisement/0, change/0, version/0,
              membership/0]).

-define(FORGET_MS, 600_000).
%% The whole state of one gateway is asked for at most once in this time.
-define(ASK_MS, 1000).

-doc """
The order of the messages of one gateway: an epoch, which is the clock at its start in ms unless a
former run was above that; that clock; and a number within this run.
""".
-type version() :: {Epoch :: integer(), Clock :: integer(), non_neg_integer()}.
-doc "A group, its identity and its members, sorted.".
-type membership() :: {Group :: term(), Uid :: binary(), [node()]}.
-doc "The advertisement of a gateway. Without groups: the node is no gateway any more.".
-type advertisement() :: {node(), version(), [membership()], Gateways :: [node()]}.
-doc """
The difference between two versions of a gateway's advertisement: groups with their members, no
members for a group that it has left, and all of its links.
""".
-type change() ::
    {node(), From :: version(), To :: version(), [membership()], Gateways :: [node()]}.
-type message() ::
    {news, [advertisement()]} | {change, change()} | {changes, [change()]}
    | {digest, Answer :: boolean(), [{node(), version()}]}
    | {summary, Hash :: non_neg_integer()}.
-type event() ::
    {groups, [membership()]}
    | {group, Group :: term(), none | {Uid :: binary(), [node()]}}
    | {up | down, node()}
    | {message, From :: node(), message()}
    | {compare, Random :: non_neg_integer()}.
-doc """
`changed`: routes are to be computed again. `keep`, `keep_change`, `drop`: for a successor of this
process, see `new/4`.
""".
-type effect() ::
    {send, node(), message()} | {keep, advertisement()} | {keep_change, change()} | {drop, node()}
    | changed.

-record(ad, {
    version :: version(),
    groups = #{} :: sderl_route_paths:groups(),
    links = [] :: [node()]
}).

-record(s, {
    self :: node(), version :: version(),
    groups = #{} :: sderl_route_paths:groups(),
    mates :: sderl_mates:mates(),
    up = #{} :: #{node() => []},
    db = #{} :: #{node() => #ad{}},
    %% Advertisements that no path leads to, and since when.
    lost = #{} :: #{node() => integer()},
    %% Those of them that are not passed on any more.
    quiet = #{} :: #{node() => []},
    %% The gateways whose whole state was asked for, and when.
    asked = #{} :: #{node() => integer()}
}).
-opaque state() :: #s{}.
-opaque part() :: {node(), sderl_route_paths:groups(), Up :: #{node() => []}}
    | {node(), sderl_route_paths:link_state()}.

-doc """
A node's state before it knows anything; `Clock` is system time in ms, which names this life.
""".
-spec new(node(), Clock :: integer(), [node()]) -> state().
new(Self, Clock, Linked) -> new(Self, Clock, Linked, []).

-doc "The same with what a predecessor in the same life of the node knew.".
-spec new(node(), Clock :: integer(), [node()], Kept :: [advertisement()]) -> state().
new(Self, Clock, Linked, Kept) ->
    #s{self = Self,
       version = lists:max([{Clock, Clock, 0} | [V || {N, V, _, _} <- Kept, N =:= Self]]),
       mates = sderl_mates:new(Self, []),
       up = #{N => [] || N <- Linked},
       db = #{N => taken(Ad) || {N, _, _, _} = Ad <- Kept}}.

taken({_, Version, Groups, Links}) ->
    #ad{version = Version, groups = #{G => {Uid, Ms} || {G, Uid, Ms} <- Groups}, links = Links}.

given(Node, #ad{version = Version, groups = Groups, links = Links}) ->
    {Node, Version, lists:sort(listed(Groups)), Links}.

listed(Groups) -> [{G, Uid, Ms} || G := {Uid, Ms} <- Groups].

-spec step(Now :: integer(), event(), state()) -> {[effect()], state()}.
step(_, {groups, Groups}, #s{self = Self, groups = Had, db = Db} = S) ->
    New = maps:from_list([{G, {Uid, Ms}} || {G, Uid, Ms} <- Groups]),
    %% The advertisements of a predecessor may be out of date.
    Told = case Db of
        #{Self := #ad{groups = Gs}} -> maps:keys(Gs);
        #{} -> []
    end,
    regroup([{G, maps:get(G, New, none)} || G := _ <- maps:merge(Had, New)], Told, S);
step(_, {group, Group, Now}, S) -> regroup([{Group, Now}], [], S);
step(_, {up, Node}, #s{up = Up} = S0) ->
    S = S0#s{up = Up#{Node => []}},
    case sderl_mates:is_mate(Node, S#s.mates) of
        true when is_map_key(Node, Up) -> told([changed], [], [], S);
        true -> told([{send, Node, digest(true, S)}, changed], [], [Node], S);
        false -> {[changed], S}
    end;
step(_, {down, Node}, #s{up = Up} = S) when is_map_key(Node, Up) ->
    told([changed], [], [], S#s{up = maps:remove(Node, Up)});
step(_, {down, _}, S) -> {[], S};
step(_, {message, From, {news, News}}, S) -> news(From, News, S);
step(Now, {message, From, {change, Change}}, S) -> changed(Now, From, Change, S);
step(Now, {message, From, {changes, Changes}}, S0) ->
    {Effects, S} = lists:mapfoldl(fun(Change, S1) -> changed(Now, From, Change, S1) end, S0,
                                  Changes),
    {lists:append(Effects), S};
step(_, {message, From, {digest, Answer, Digest}}, S) -> {compare(From, Answer, Digest, S), S};
step(_, {message, From, {summary, Hash}}, S) ->
    {[{send, From, digest(true, S)} || summary(S) =/= Hash], S};
step(Now, {compare, Random}, S0) ->
    {Dropped, S} = forget(Now, S0),
    case mates(S) of
        [] -> {Dropped, S};
        Mates ->
            {Dropped ++
             [{send, lists:nth(1 + Random rem length(Mates), Mates), {summary, summary(S)}}], S}
    end.

%% Takes over these groups as they are now, and checks what was advertised of `Told`, too.
regroup(Groups, Told, #s{groups = Had} = S0) ->
    case [{G, Now} || {G, Now} <- Groups, maps:get(G, Had, none) =/= Now] of
        [] when Told =:= [] -> {[], S0};
        Changed ->
            {Came, S} = lists:foldl(fun regroup_one/2, {[], S0}, Changed),
            New = [N || N <- lists:usort(Came), is_map_key(N, S#s.up)],
            told([{send, N, digest(true, S)} || N <- New] ++ [changed || Changed =/= []],
                 [G || {G, _} <- Changed] ++ Told, New, S)
    end.

regroup_one({G, none}, {Came, #s{groups = Groups, mates = Mates0} = S}) ->
    {_, _, Mates} = sderl_mates:change(G, [], Mates0),
    {Came, S#s{groups = maps:remove(G, Groups), mates = Mates}};
regroup_one({G, {_, Ms} = Now}, {Came, #s{groups = Groups, mates = Mates0} = S}) ->
    {More, _, Mates} = sderl_mates:change(G, Ms, Mates0),
    {More ++ Came, S#s{groups = Groups#{G => Now}, mates = Mates}}.

-doc """
The input for the routes, one part for each gateway, so that it can be sent to another process in
pieces.
""".
-spec parts(state()) -> [part(), ...].
parts(#s{self = Self, groups = Groups, up = Up} = S) ->
    [{Self, Groups, Up} | maps:to_list(link_states(S))].

-doc "How many groups a part has.".
-spec part_size(part()) -> non_neg_integer().
part_size({_, Groups, _}) -> map_size(Groups);
part_size({_, {Groups, _}}) -> map_size(Groups).

-doc "The routes from all parts, in their order: see `m:sderl_route_paths`.".
-spec routes_of([part(), ...]) -> sderl_route_paths:routes().
routes_of([{Self, Groups, Up} | LinkStates]) ->
    sderl_route_paths:routes(Self, Groups, Up, maps:from_list(LinkStates)).

link_states(#s{db = Db}) -> #{N => {Gs, Links} || N := #ad{groups = Gs, links = Links} <- Db}.

-doc "The last advertisements of all known gateways, of this node too if it is one.".
-spec gateways(state()) -> [advertisement()].
gateways(#s{db = Db}) ->
    [given(N, Ad) || N := #ad{groups = Groups} = Ad <- Db, map_size(Groups) > 0].

-doc "The gateways that share a group with this node, linked or not.".
-spec gateway_mates(state()) -> [node()].
gateway_mates(#s{mates = Mates} = S) -> [N || N <- sderl_mates:nodes(Mates), is_gateway(N, S)].

-doc "The mates that use this node as a gateway; none if it is no gateway.".
-spec watchers(state()) -> [node()].
watchers(#s{self = Self} = S) ->
    case is_gateway(Self, S) of
        true -> mates(S);
        false -> []
    end.

is_gateway(N, #s{db = Db}) ->
    case Db of
        #{N := #ad{groups = Groups}} -> map_size(Groups) > 0;
        #{} -> false
    end.

-doc "Whether a term from another node is an advertisement.".
-spec advertisement(term()) -> boolean().
advertisement({Node, Version, Groups, Links}) when is_atom(Node), length(Groups) >= 0 ->
    version(Version) andalso atoms(Links) andalso lists:all(fun membership/1, Groups);
advertisement(_) -> false.

membership({_, Uid, Ms}) -> is_binary(Uid) andalso atoms(Ms);
membership(_) -> false.

-doc "Whether a term from another node is a change.".
-spec change(term()) -> boolean().
change({Node, From, To, Groups, Links}) when is_atom(Node), length(Groups) >= 0 ->
    version(From) andalso version(To) andalso atoms(Links)
        andalso lists:all(fun membership/1, Groups);
change(_) -> false.

-doc "Whether a term from another node is a version.".
-spec version(term()) -> boolean().
version({Epoch, Clock, Number}) ->
    is_integer(Epoch) andalso is_integer(Clock) andalso is_integer(Number) andalso Number >= 0;
version(_) -> false.

atoms(List) when length(List) >= 0 -> lists:all(fun is_atom/1, List);
atoms(_) -> false.

%% ---------------------------------------------------------------- own advertisement

%% Advertises what has changed about this node as a gateway, after the given effects: the changes of
%% these groups, and to new mates everything.
told(Effects, Changed, New,
     #s{self = Self, version = {Epoch, Clock, Number}, groups = Groups, db = Db} = S) ->
    {Gs, Links} = case map_size(Groups) > 1 of
        true -> {Groups, neighbours(S)};
        false -> {#{}, []}
    end,
    Version = {Epoch, Clock, Number + 1},
    Ad = #ad{version = Version, groups = Gs, links = Links},
    case Db of
        #{Self := #ad{version = Before, groups = Had, links = Were}}
          when map_size(Gs) > 0, map_size(Had) > 0 ->
            case news_of(Changed, Had, Gs) of
                [] when Were =:= Links -> {Effects, S};
                News ->
                    Change = {Self, Before, Version, News, Links},
                    Sent = [{send, N, case lists:member(N, New) of
                        true -> {news, [given(Self, Ad)]};
                        false -> {change, Change}
                    end} || N <- mates(S)],
                    {Effects ++ [{keep_change, Change} | Sent], own(Ad, S)}
            end;
        #{Self := #ad{groups = Gs, links = Links}} -> {Effects, S};
        _ when map_size(Gs) =:= 0, not is_map_key(Self, Db) -> {Effects, S};
        _ ->
            All = given(Self, Ad),
            {Effects ++ [{keep, All} | [{send, N, {news, [All]}} || N <- mates(S)]], own(Ad, S)}
    end.

own(#ad{version = Version} = Ad, #s{self = Self, db = Db, lost = Lost, quiet = Quiet} = S) ->
    S#s{version = Version, db = Db#{Self => Ad}, lost = maps:remove(Self, Lost),
        quiet = maps:remove(Self, Quiet)}.

%% For the mates, a group that was not advertised did not exist.
news_of(Changed, Had, Gs) ->
    lists:append([case {Had, Gs} of
        {#{G := Same}, #{G := Same}} -> [];
        {_, #{G := {Uid, Ms}}} -> [{G, Uid, Ms}];
        {#{G := {Uid, _}}, _} -> [{G, Uid, []}];
        _ -> []
    end || G <- Changed]).

%% The other gateways that share a group with this node and are linked.
neighbours(S) -> [N || N <- mates(S), is_gateway(N, S)].

mates(#s{mates = Mates, up = Up}) -> [N || N <- sderl_mates:nodes(Mates), is_map_key(N, Up)].

%% ---------------------------------------------------------------- others' advertisements

news(From, News, #s{self = Self, db = Db} = S0) ->
    New = [Ad || {N, V, _, _} = Ad <- News, newer(V, N, Db)],
    {Own, Others} = lists:partition(fun({N, _, _, _}) -> N =:= Self end, New),
    %% Our own advertisement of another life, perhaps with a clock ahead of this one: go above it.
    S1 = case Own of
        [] -> S0;
        [{_, {Epoch, _, _}, _, _} | _] ->
            {E, Clock, Number} = S0#s.version,
            V = {max(E, Epoch + 1), Clock, Number},
            S0#s{version = V, db = Db#{Self => #ad{version = V, links = [Self]}}}
    end,
    Nodes = [N || {N, _, _, _} <- Others],
    S = S1#s{db = lists:foldl(fun({N, _, _, _} = Ad, D) -> D#{N => taken(Ad)} end, S1#s.db, Others),
             lost = maps:without(Nodes, S1#s.lost), quiet = maps:without(Nodes, S1#s.quiet),
             asked = maps:without(Nodes, S1#s.asked)},
    Forward = [{keep, Ad} || Ad <- Others] ++
        [{send, N, {news, Others}} || Others =/= [], N <- beyond(From, S)],
    case New of
        [] -> {[], S};
        _ -> told(Forward ++ [changed], [], [], S)
    end.

changed(Now, From, {N, Before, Version, _, _} = Change,
        #s{self = Self, db = Db, asked = Asked} = S0) ->
    case Db of
        #{N := #ad{version = Has} = Ad}
          when N =/= Self, Version > Has, Has >= Before,
               element(1, Has) =:= element(1, Before), element(2, Has) =:= element(2, Before) ->
            S = S0#s{db = Db#{N := apply_change(Change, Ad)},
                     lost = maps:remove(N, S0#s.lost), quiet = maps:remove(N, S0#s.quiet)},
            Forward = [{keep_change, Change}
                       | [{send, M, {change, Change}} || M <- beyond(From, S)]],
            told(Forward ++ [changed], [], [], S);
        #{N := #ad{version = Has}} when Has >= Version -> {[], S0};
        _ ->
            case Asked of
                #{N := At} when Now - At < ?ASK_MS -> {[], S0};
                _ -> {[{send, From, digest(true, S0)}], S0#s{asked = Asked#{N => Now}}}
            end
    end.

apply_change({_, _, Version, News, Links}, #ad{groups = Groups} = Ad) ->
    Ad#ad{version = Version, links = Links,
          groups = lists:foldl(fun({G, _, []}, Acc) -> maps:remove(G, Acc);
                                  ({G, Uid, Ms}, Acc) -> Acc#{G => {Uid, Ms}}
                               end, Groups, News)}.

-doc "The state of a gateway after a change that was accepted.".
-spec changed(change(), advertisement()) -> advertisement().
changed({Node, _, _, _, _} = Change, Ad) -> given(Node, apply_change(Change, taken(Ad))).

-doc "One change for two of a gateway, of which the second begins where the first ends.".
-spec compose(change(), change()) -> change().
compose({Node, From, Between, Groups, _}, {Node, Between, To, Later, Links}) ->
    New = #{G => [] || {G, _, _} <- Later},
    {Node, From, To,
     [Membership || {G, _, _} = Membership <- Groups, not is_map_key(G, New)] ++ Later, Links}.

newer(V, N, Db) ->
    case Db of
        #{N := #ad{version = Known}} -> V > Known;
        _ -> true
    end.

%% Mates that do not get it from the node that sent it to us.
beyond(From, #s{mates = Mates} = S) ->
    Others = #{N => [] || N <- mates(S), N =/= From},
    maps:keys(unreached(maps:next(maps:iterator(sderl_mates:shared(From, Mates))), Mates, Others)).

unreached(none, _, Others) -> Others;
unreached(_, _, Others) when map_size(Others) =:= 0 -> Others;
unreached({Group, _, More}, Mates, Others) ->
    unreached(maps:next(More), Mates, maps:without(sderl_mates:members(Group, Mates), Others)).

digest(Answer, #s{db = Db, quiet = Quiet}) ->
    {digest, Answer, [{N, V} || N := #ad{version = V} <- Db, not is_map_key(N, Quiet)]}.

%% A hash of all versions, whatever their order.
summary(S) ->
    {digest, _, Versions} = digest(false, S),
    lists:foldl(fun(Version, Sum) -> Sum bxor erlang:phash2(Version, 1 bsl 32) end, 0, Versions).

%% The advertisements that the other lacks, and our digest if we lack something that it has.
compare(From, Answer, Digest, #s{db = Db, quiet = Quiet} = S) ->
    Theirs = maps:from_list(Digest),
    Newer = [given(N, Ad) || N := #ad{version = V} = Ad <- Db, not is_map_key(N, Quiet),
                             case Theirs of #{N := T} -> V > T; _ -> true end],
    Lacking = Answer andalso lists:any(fun({N, V}) -> newer(V, N, Db) end, Digest),
    [{send, From, {news, Newer}} || Newer =/= []] ++ [{send, From, digest(false, S)} || Lacking].

%% ---------------------------------------------------------------- forgetting

forget(Now, #s{self = Self, groups = Groups, up = Up, db = Db, lost = Lost0, asked = Asked} = S) ->
    Reached = sderl_route_paths:reached(Self, Groups, Up, link_states(S)),
    %% This node's advertisement that it is no gateway any more is forgotten like those of others.
    Here = [Self || is_gateway(Self, S)],
    Unreached = maps:without(Here ++ Reached, Db),
    Lost = #{N => maps:get(N, Lost0, Now) || N := _ <- Unreached},
    Over = [N || N := Since <- Lost, Now - Since > 2 * ?FORGET_MS],
    {[{drop, N} || N <- Over],
     S#s{db = maps:without(Over, Db),
         lost = maps:without(Over, Lost),
         asked = #{N => At || N := At <- Asked, Now - At < ?ASK_MS},
         quiet = #{N => []
                   || N := Since <- Lost, Now - Since > ?FORGET_MS, not lists:member(N, Over)}}}.
