%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_bundle).
-moduledoc """
The changes that a router holds back for a moment before it sends them to other nodes, because more
will follow: while a cluster forms, each gateway that comes up changes the advertisements of those
beside it, and all nodes hear of all of that.

Successive messages about one gateway become one: a newer advertisement replaces the one before, and
a change that begins where another ends is merged with it, or into the advertisement. A node that
has a version in between takes the longer change, too (`sderl_route_state`).

Pure; `sderl_router` holds one.
""".

-export([new/0, is_empty/1, add/3, drop/2, take/2, messages/1]).
-export_type([bundle/0]).

-type gateway() :: node().
-record(words, {
    news = #{} :: #{gateway() => sderl_route_state:advertisement()},
    %% The changes of each gateway, the newest first: most often one.
    changes = #{} :: #{gateway() => [sderl_route_state:change()]}
}).
-opaque bundle() :: #{node() => #words{}}.

-doc "No messages.".
-spec new() -> bundle().
new() -> #{}.

-doc "Whether there are no messages.".
-spec is_empty(bundle()) -> boolean().
is_empty(Bundle) -> map_size(Bundle) =:= 0.

-doc "Adds a message to a node, after those that wait.".
-spec add(node(),
          {news, [sderl_route_state:advertisement()]} | {change, sderl_route_state:change()},
          bundle()) ->
    bundle().
add(To, {news, News}, Bundle) ->
    Bundle#{To => lists:foldl(fun add_news/2, words(To, Bundle), News)};
add(To, {change, Change}, Bundle) ->
    Bundle#{To => add_change(Change, words(To, Bundle))}.

words(To, Bundle) -> maps:get(To, Bundle, #words{}).

add_news({Gateway, Version, _, _} = Ad, #words{news = News, changes = Changes} = Words) ->
    case News of
        #{Gateway := {_, Newer, _, _}} when Newer >= Version -> Words;
        #{} ->
            Later = [Change
                     || {_, _, To, _, _} = Change <- maps:get(Gateway, Changes, []), To > Version],
            Words#words{news = News#{Gateway => Ad}, changes = with(Gateway, Later, Changes)}
    end.

add_change({Gateway, From, To, _, _} = Change, #words{news = News, changes = Changes} = Words) ->
    case {News, Changes} of
        {#{Gateway := {_, Newer, _, _}}, _} when Newer >= To -> Words;
        {_, #{Gateway := [{_, _, Newer, _, _} | _]}} when Newer >= To -> Words;
        {_, #{Gateway := [{_, _, From, _, _} = Before | Others]}} ->
            Words#words{changes = Changes#{Gateway := [sderl_route_state:compose(Before, Change)
                                                       | Others]}};
        {#{Gateway := {_, From, _, _} = Ad}, _} ->
            Words#words{news = News#{Gateway := sderl_route_state:changed(Change, Ad)}};
        _ ->
            Words#words{changes = with(Gateway, [Change | maps:get(Gateway, Changes, [])], Changes)}
    end.

with(Gateway, [], Changes) -> maps:remove(Gateway, Changes);
with(Gateway, Of, Changes) -> Changes#{Gateway => Of}.

-doc "Drops the messages to that node.".
-spec drop(node(), bundle()) -> bundle().
drop(To, Bundle) -> maps:remove(To, Bundle).

-doc "Takes out the messages to one node, to be sent at once.".
-spec take(node(), bundle()) -> {[sderl_route_state:message()], bundle()}.
take(To, Bundle) ->
    case maps:take(To, Bundle) of
        {Words, Rest} -> {said(Words), Rest};
        error -> {[], Bundle}
    end.

-doc "All messages, for each node in the order in which they are to be sent.".
-spec messages(bundle()) -> [{node(), sderl_route_state:message()}].
messages(Bundle) -> [{To, Message} || To := Words <- Bundle, Message <- said(Words)].

said(#words{news = News, changes = Changes}) ->
    [{news, maps:values(News)} || map_size(News) > 0]
        ++ said_changes(lists:append([lists:reverse(Of) || _ := Of <- Changes])).

said_changes([]) -> [];
said_changes([Change]) -> [{change, Change}];
said_changes(Changes) -> [{changes, Changes}].
