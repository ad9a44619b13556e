%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_state).
-moduledoc """
What a node knows of the gateways: their *link states*, as they tell them.

A *gateway* is a node in two groups or more. It tells, in one versioned *advertisement*, which groups it
is in, with their members, and to which other gateways it has a link. Every node keeps the latest
advertisement of each gateway and computes its routes from them (`m:sderl_route_paths`). Nothing else
travels: no routes, no distances, so that there is nothing to count to infinity.

## Messages

| message | sent | to |
|---|---|---|
| `{news, [Advertisement]}` | when an advertisement is newer than the one known | the mates in groups that the sender of it is not in |
| `{digest, Answer, [{Node, Version}]}` | when a mate comes up, and now and then to one mate at random | that mate, which sends what is newer, and its own digest where it lacks something |

A *mate* is a node of an own group to which there is a link. An advertisement crosses each group once for each gateway
that leads into it. The digests repair what was lost with a link, and bring to members without a link to the teller
what their other mates have: that may take some rounds.

## Races

- A gateway that restarts begins with a version of its new life. Whoever restarts with a clock that stood back hears an
  advertisement of its own former life and goes above all of that life, of which somebody else may have heard more.
- A gateway that dies tells nothing. A link counts only where both ends tell it, and those next to it take it
  out of theirs, so no path leads through it from the moment its neighbours' word arrives; nobody removes what
  others told.
- What no path leads to for `?FORGET_MS` is told to nobody any more, and forgotten as long again after that: were it
  forgotten at once, those that are a little late would tell it again to those that were early, for ever.
- Two sides of a split that heals exchange digests; the newer word of each gateway wins on both.

- The process that runs this dies: its successor begins with what was kept (`keep`, `drop`), so that no route is lost meanwhile.

Pure: `step/3` gives effects and a state. `sderl_router` runs it on a node.
""".

-export([new/3, new/4, step/3, routes/1, gateways/1, advertisement/1, version/1]).
-export_type([state/0, event/0, effect/0, message/0, advertisement/0, version/0, membership/0]).

-define(FORGET_MS, 600_000).

-doc """
What orders the words of one gateway: an epoch, which is the clock of its life in ms unless a former life was above that; that
clock; and a number within this life.
""".
-type version() :: {Epoch :: integer(), Clock :: integer(), non_neg_integer()}.
-doc "A group, its identity and its members, sorted.".
-type membership() :: {Group :: term(), Uid :: binary(), [node()]}.
-doc "What a gateway tells. Without groups: it is a gateway no more.".
-type advertisement() :: {node(), version(), [membership()], Gateways :: [node()]}.
-type message() :: {news, [advertisement()]} | {digest, Answer :: boolean(), [{node(), version()}]}.
-type event() ::
    {groups, [membership()]}
    | {up | down, node()}
    | {message, From :: node(), message()}
    | {compare, Random :: non_neg_integer()}.
-doc "`changed`: routes are to be computed again. `keep`, `drop`: for a successor of this process, see `new/4`.".
-type effect() :: {send, node(), message()} | {keep, advertisement()} | {drop, node()} | changed.

-record(s, {
    self :: node(), version :: version(),
    groups = [] :: [membership()],
    up = #{} :: #{node() => []},
    db = #{} :: #{node() => advertisement()},
    %% Advertisements that no path leads to, and since when.
    lost = #{} :: #{node() => integer()},
    %% Of these, what is not told any more.
    quiet = #{} :: #{node() => []}
}).
-opaque state() :: #s{}.

-doc "A node's state before it knows anything; `Clock` is system time in ms, which names this life.".
-spec new(node(), Clock :: integer(), [node()]) -> state().
new(Self, Clock, Linked) -> new(Self, Clock, Linked, []).

-doc "The same with what a predecessor in the same life of the node knew.".
-spec new(node(), Clock :: integer(), [node()], Kept :: [advertisement()]) -> state().
new(Self, Clock, Linked, Kept) ->
    #s{self = Self, version = lists:max([{Clock, Clock, 0} | [V || {N, V, _, _} <- Kept, N =:= Self]]),
       up = #{N => [] || N <- Linked}, db = #{N => Ad || {N, _, _, _} = Ad <- Kept}}.

-spec step(Now :: integer(), event(), state()) -> {[effect()], state()}.
step(_, {groups, Groups}, #s{groups = Groups} = S) -> {[], S};
step(_, {groups, Groups}, #s{} = S0) ->
    Before = mates(S0),
    S = S0#s{groups = Groups},
    New = [{send, N, digest(true, S)} || N <- mates(S) -- Before],
    told(New ++ [changed], S);
step(_, {up, Node}, #s{up = Up} = S0) ->
    S = S0#s{up = Up#{Node => []}},
    case lists:member(Node, mates(S)) of
        true -> told([{send, Node, digest(true, S)} || not is_map_key(Node, Up)] ++ [changed], S);
        false -> {[changed], S}
    end;
step(_, {down, Node}, #s{up = Up} = S) when is_map_key(Node, Up) -> told([changed], S#s{up = maps:remove(Node, Up)});
step(_, {down, _}, S) -> {[], S};
step(_, {message, From, {news, News}}, S) -> news(From, News, S);
step(_, {message, From, {digest, Answer, Digest}}, S) -> {compare(From, Answer, Digest, S), S};
step(Now, {compare, Random}, S0) ->
    {Dropped, S} = forget(Now, S0),
    case mates(S) of
        [] -> {Dropped, S};
        Mates -> {Dropped ++ [{send, lists:nth(1 + Random rem length(Mates), Mates), digest(true, S)}], S}
    end.

-doc "The routes from here: see `m:sderl_route_paths`.".
-spec routes(state()) -> sderl_route_paths:routes().
routes(#s{self = Self, groups = Groups, up = Up, db = Db}) -> sderl_route_paths:routes(Self, Groups, Up, Db).

-doc "The gateways known, this node among them if it is one, by what they told last.".
-spec gateways(state()) -> [advertisement()].
gateways(#s{db = Db}) -> [Ad || {_, _, [_ | _], _} = Ad <- maps:values(Db)].

-doc "Checks what came from another node: an advertisement, or not.".
-spec advertisement(term()) -> boolean().
advertisement({Node, Version, Groups, Links}) when is_atom(Node), length(Groups) >= 0 ->
    version(Version) andalso atoms(Links)
        andalso lists:all(fun({_, Uid, Ms}) -> is_binary(Uid) andalso atoms(Ms);
                             (_) -> false
                          end, Groups);
advertisement(_) -> false.

-doc "Checks a version that came from another node.".
-spec version(term()) -> boolean().
version({Epoch, Clock, Number}) -> is_integer(Epoch) andalso is_integer(Clock) andalso is_integer(Number) andalso Number >= 0;
version(_) -> false.

atoms(List) when length(List) >= 0 -> lists:all(fun is_atom/1, List);
atoms(_) -> false.

%% ---------------------------------------------------------------- own advertisement

%% Tells what has changed about this node as a gateway, after the effects given.
told(Effects, #s{self = Self, version = {Epoch, Clock, Number}, groups = Groups, db = Db} = S) ->
    {Gs, Links} = case Groups of
        [_, _ | _] -> {Groups, neighbours(S)};
        _ -> {[], []}
    end,
    case Db of
        #{Self := {_, _, Gs, Links}} -> {Effects, S};
        _ when Gs =:= [], not is_map_key(Self, Db) -> {Effects, S};
        _ ->
            Version = {Epoch, Clock, Number + 1},
            Ad = {Self, Version, Gs, Links},
            {Effects ++ [{keep, Ad} | [{send, N, {news, [Ad]}} || N <- mates(S)]],
             S#s{version = Version, db = Db#{Self => Ad}, lost = maps:remove(Self, S#s.lost), quiet = maps:remove(Self, S#s.quiet)}}
    end.

%% The other gateways that share a group with this node and are linked.
neighbours(#s{db = Db} = S) -> [N || N <- mates(S), case Db of #{N := {_, _, [_ | _], _}} -> true; _ -> false end].

mates(#s{self = Self, groups = Groups, up = Up}) ->
    lists:usort([N || {_, _, Ms} <- Groups, N <- Ms, N =/= Self, is_map_key(N, Up)]).

%% ---------------------------------------------------------------- others' advertisements

news(From, News, #s{self = Self, db = Db} = S0) ->
    New = [Ad || {N, V, _, _} = Ad <- News, newer(V, N, Db)],
    {Own, Others} = lists:partition(fun({N, _, _, _}) -> N =:= Self end, New),
    %% Our own word of another life, perhaps of one with a clock ahead of this one's: go above it.
    S1 = case Own of
        [] -> S0;
        [{_, {Epoch, _, _}, _, _} | _] ->
            {E, Clock, Number} = S0#s.version,
            V = {max(E, Epoch + 1), Clock, Number},
            S0#s{version = V, db = Db#{Self => {Self, V, [], [Self]}}}
    end,
    Nodes = [N || {N, _, _, _} <- Others],
    S = S1#s{db = lists:foldl(fun({N, _, _, _} = Ad, D) -> D#{N => Ad} end, S1#s.db, Others),
             lost = maps:without(Nodes, S1#s.lost), quiet = maps:without(Nodes, S1#s.quiet)},
    Forward = [{keep, Ad} || Ad <- Others] ++ [{send, N, {news, Others}} || Others =/= [], N <- beyond(From, S)],
    case New of
        [] -> {[], S};
        _ -> told(Forward ++ [changed], S)
    end.

newer(V, N, Db) ->
    case Db of
        #{N := {_, Known, _, _}} -> V > Known;
        _ -> true
    end.

%% Mates to which the node that told us does not tell it itself.
beyond(From, #s{self = Self, groups = Groups} = S) ->
    Reached = lists:append([Ms || {_, _, Ms} <- Groups, lists:member(From, Ms)]),
    mates(S) -- [Self, From | Reached].

digest(Answer, #s{db = Db, quiet = Quiet}) -> {digest, Answer, [{N, V} || N := {_, V, _, _} <- Db, not is_map_key(N, Quiet)]}.

%% What the other lacks, and our digest where we lack something that it has.
compare(From, Answer, Digest, #s{db = Db, quiet = Quiet} = S) ->
    Theirs = maps:from_list(Digest),
    Newer = [Ad || {N, V, _, _} = Ad <- maps:values(Db), not is_map_key(N, Quiet),
                   case Theirs of #{N := T} -> V > T; _ -> true end],
    Lacking = Answer andalso lists:any(fun({N, V}) -> newer(V, N, Db) end, Digest),
    [{send, From, {news, Newer}} || Newer =/= []] ++ [{send, From, digest(false, S)} || Lacking].

%% ---------------------------------------------------------------- forgetting

forget(Now, #s{self = Self, db = Db, lost = Lost0} = S) ->
    #{reached := Reached} = routes(S),
    %% A node's own word that it is no gateway any more is forgotten like those of others.
    Here = case Db of #{Self := {_, _, [_ | _], _}} -> [Self]; #{} -> [] end,
    Unreached = maps:without(Here ++ Reached, Db),
    Lost = #{N => maps:get(N, Lost0, Now) || N := _ <- Unreached},
    Over = [N || N := Since <- Lost, Now - Since > 2 * ?FORGET_MS],
    {[{drop, N} || N <- Over],
     S#s{db = maps:without(Over, Db), lost = maps:without(Over, Lost),
         quiet = #{N => [] || N := Since <- Lost, Now - Since > ?FORGET_MS, not lists:member(N, Over)}}}.
