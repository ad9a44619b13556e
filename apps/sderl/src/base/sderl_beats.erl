%% SPDX-License-Identifier: Apache-2.0
-module(sderl_beats).
-moduledoc """
What two nodes send each other in place of the heartbeats of all the groups that they share.

The process of a group *stands* towards a node when it has sent a heartbeat to the group's process
there, has sent nothing else since, and would send the same again. In each interval a node sends
each other node one *bundle*, which says for which groups the process stands and has run. A bundle
has only the changes since the last one: groups that have come, and groups that are gone, because
the process sent something else or has not run for the interval. So without changes it is as small
for a thousand groups as for one.

The router of a gateway stands towards its mates like the process of a group (`router/0`). That is
not answered: the gateway need not hear from them.

The bundles to a node are a stream, numbered from 0, which begins with all groups. A node that gets
a bundle out of order asks for a new stream (`again`, `begin_again/2`).

Pure; `m:sderl_heart` is the process.
""".

-export([new/1, stand/3, silent/2, begin_again/2, forget_node/2, bundles/2]).
-export([none_heard/0, heard/2, standing/1, router/0, is_word/1]).
-export_type([beats/0, hearing/0, bundle/0, word/0]).

-type uid() :: binary().
-type uids() :: #{uid() => []}.
-type bundle() ::
    {Stream :: integer(), Number :: non_neg_integer(), Added :: [uid()], Gone :: [uid()]}.
-doc """
A message between nodes. `Span` is in milliseconds: the process of each group of the bundle has run
within it. `again`: this node is there, and wants a stream from its beginning.
""".
-type word() :: {beat, Span :: pos_integer(), bundle()} | {again, Span :: pos_integer()}.

-record(stream, {
    id :: integer(),
    number = 0 :: non_neg_integer(),
    told = #{} :: uids()
}).

-record(beats, {
    next :: integer(),                              % the next stream
    stands = #{} :: #{uid() => [node()]},
    silent = #{} :: uids(),
    changed = #{} :: uids(),                        % since the last bundles
    streams = #{} :: #{node() => #stream{}}
}).
-opaque beats() :: #beats{}.

%% In the place of a group's uid.
-define(ROUTER, <<"sderl_router">>).

%% What came from another node: its last bundle, and how many groups stand.
-record(hearing, {
    last = none :: none | {Stream :: integer(), Number :: non_neg_integer()},
    standing = 0 :: non_neg_integer()
}).
-opaque hearing() :: #hearing{}.

%% ---------------------------------------------------------------- what is told

-doc "Nothing stands. `First` must differ between two lives of the process, as their streams must.".
-spec new(First :: integer()) -> beats().
new(First) -> #beats{next = First}.

-doc "The process of a group stands towards these nodes from now on.".
-spec stand(uid(), [node()], beats()) -> beats().
stand(Uid, Nodes, #beats{stands = Stands0, changed = Changed, streams = Streams} = Beats0) ->
    Stands = case Nodes of
        [] -> maps:remove(Uid, Stands0);
        _ -> Stands0#{Uid => Nodes}
    end,
    Beats = Beats0#beats{stands = Stands, changed = Changed#{Uid => []}},
    lists:foldl(fun begin_stream/2, Beats, [N || N <- Nodes, not is_map_key(N, Streams)]).

-doc "The processes of these groups, and of no others, have not run for an interval.".
-spec silent([uid()], beats()) -> beats().
silent(Uids, #beats{silent = Before, changed = Changed} = Beats) ->
    Now = maps:from_keys(Uids, []),
    Differ = maps:merge(maps:without(Uids, Before), maps:without(maps:keys(Before), Now)),
    Beats#beats{silent = Now, changed = maps:merge(Changed, Differ)}.

-doc "The node asked for a stream from its beginning.".
-spec begin_again(node(), beats()) -> beats().
begin_again(Node, Beats) -> begin_stream(Node, Beats).

-doc "There is no link to the node any more.".
-spec forget_node(node(), beats()) -> beats().
forget_node(Node, #beats{streams = Streams} = Beats) ->
    Beats#beats{streams = maps:remove(Node, Streams)}.

%% The first bundle has all that stands.
begin_stream(Node,
             #beats{next = Id, stands = Stands, changed = Changed, streams = Streams} = Beats) ->
    Stood = #{Uid => [] || Uid := Nodes <- Stands, lists:member(Node, Nodes)},
    Beats#beats{next = Id + 1,
                changed = maps:merge(Changed, Stood),
                streams = Streams#{Node => #stream{id = Id}}}.

-doc """
The bundles that are due: to each node towards which something stands, or did in the last bundle,
and to the nodes that are owed one.
""".
-spec bundles(Owed :: #{node() => term()}, beats()) -> {[{node(), bundle()}], beats()}.
bundles(Owed, #beats{changed = Changed, streams = Streams0} = Beats0) ->
    Beats = lists:foldl(fun begin_stream/2, Beats0,
                        [Node || Node := _ <- Owed, not is_map_key(Node, Streams0)]),
    Uids = maps:keys(maps:merge(Changed, Beats#beats.changed)),
    {Bundles, Streams} = maps:fold(fun(Node, Stream, {Out, Kept}) ->
        case differences(Node, Uids, Stream, Beats) of
            {[], [], #stream{told = Told}} when map_size(Told) =:= 0, not is_map_key(Node, Owed) ->
                {Out, Kept};
            {Added, Gone, #stream{id = Id, number = Number, told = Told}} ->
                Next = Stream#stream{number = Number + 1, told = Told},
                {[{Node, {Id, Number, Added, Gone}} | Out], Kept#{Node := Next}}
        end
    end, {[], Beats#beats.streams}, Beats#beats.streams),
    {Bundles, Beats#beats{changed = #{}, streams = Streams}}.

differences(Node, Uids, Stream, Beats) ->
    lists:foldl(fun(Uid, {Added, Gone, #stream{told = Told} = S}) ->
        case {beats_for(Uid, Node, Beats), is_map_key(Uid, Told)} of
            {true, false} -> {[Uid | Added], Gone, S#stream{told = Told#{Uid => []}}};
            {false, true} -> {Added, [Uid | Gone], S#stream{told = maps:remove(Uid, Told)}};
            _ -> {Added, Gone, S}
        end
    end, {[], [], Stream}, Uids).

beats_for(Uid, Node, #beats{stands = Stands, silent = Silent}) ->
    lists:member(Node, maps:get(Uid, Stands, [])) andalso not is_map_key(Uid, Silent).

%% ---------------------------------------------------------------- what is heard

-doc "No bundle of a node has come.".
-spec none_heard() -> hearing().
none_heard() -> #hearing{}.

-doc """
A bundle of a node came. `anew`: a stream begins, and what stood before does not count. `gap`:
bundles are missing, so nothing of that node counts until a stream begins.
""".
-spec heard(bundle(), hearing()) -> {anew | follows | gap, hearing()}.
heard({Stream, 0, Added, _}, _) ->
    {anew, #hearing{last = {Stream, 0}, standing = count(Added)}};
heard({Stream, Number, Added, Gone}, #hearing{last = {Stream, Last}, standing = Standing})
  when Number =:= Last + 1 ->
    {follows, #hearing{last = {Stream, Number},
                       standing = max(0, Standing + count(Added) - count(Gone))}};
heard(_, _) ->
    {gap, none_heard()}.

count(Uids) -> length(lists:delete(?ROUTER, Uids)).

-doc "For how many groups a node's processes stand. If for any, the node is sent bundles as well.".
-spec standing(hearing()) -> non_neg_integer().
standing(#hearing{standing = Standing}) -> Standing.

-doc "What stands for the router of a gateway, in place of a group's uid.".
-spec router() -> uid().
router() -> ?ROUTER.

-doc "Whether a node may have sent this.".
-spec is_word(term()) -> boolean().
is_word({again, Span}) -> is_span(Span);
is_word({beat, Span, {Stream, Number, Added, Gone}}) ->
    is_span(Span) andalso is_integer(Stream) andalso is_integer(Number) andalso Number >= 0
        andalso are_uids(Added) andalso are_uids(Gone);
is_word(_) -> false.

is_span(Span) -> is_integer(Span) andalso Span > 0 andalso Span < 1 bsl 40.

are_uids([Uid | Uids]) -> is_binary(Uid) andalso are_uids(Uids);
are_uids(Rest) -> Rest =:= [].
