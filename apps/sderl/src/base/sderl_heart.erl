%% SPDX-License-Identifier: Apache-2.0
-module(sderl_heart).
-moduledoc """
The repeated heartbeats of all groups of this node: one message for each pair of nodes and interval,
instead of one for each group.

The process of a group sends a new heartbeat itself. When it has sent a member the same heartbeat
twice, and would send it again, it leaves that to this process (`stand/3`): it notes in a table that
it runs (`tick/2`) and which nodes should get the same again. This process tells those nodes for
which groups that holds (`m:sderl_beats`), and records what they send. There the process of the
group looks with its own tick (`heard/2`) and goes on as if the heartbeat had come again, at the
time when the other process ran last, or somewhat before. So a process that hangs is missed in its
group as soon as if it had sent its heartbeats itself: they end when it no longer notes that it
runs, and those of other groups go on.

A node whose library does not have this process never answers it, and the processes of its groups
get heartbeats one by one (`is_ready/1`); so they do if this process hangs, here or there.

The router of a gateway leaves its beats to this process in the same way: it stands towards its
mates (`sderl_beats:router/0`), which look when they last heard so (`last/2`).

| table | row | |
|---|---|---|
| `sderl_stands` | `{Uid, Ran, Nodes}` | by the process of each group: when it ran last, towards which nodes it stands |
| `sderl_heard` | `{{Uid, Node}}` | the process of the group on that node stands towards this one |
| | `{Node, Ran, Until, At}` | all of these on that node ran then, or later; until when that may be read; when it came. `none`, 0, `none`: it has not answered |
| | `{?MODULE, Until}` | until when this process counts as well |
""".

-behaviour(gen_server).

-export([new/0, start_link/0]).
-export([is_ready/1, stand/3, leave/1, tick/2, heard/2, last/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

-include("../core/sderl_version.hrl").

-define(STANDS, sderl_stands).
-define(HEARD, sderl_heard).
%% A node that does not answer is asked in so many intervals in a row, and then in one of so many.
-define(FIRST_PROBES, 3).
-define(PROBE_EVERY, 30).
%% Entries of a process that did not run for so many intervals are forgotten.
-define(FORGET_AFTER, 60).

-record(h, {
    beats = sderl_beats:new(erlang:system_time()) :: sderl_beats:beats(),
    %% Nodes that sent something, and until when that counts.
    hearing = #{} :: #{node() => {Until :: integer(), sderl_beats:hearing()}},
    %% Nodes that get a bundle even if nothing stands towards them.
    owed = #{} :: #{node() => []},
    %% Nodes that have not answered, with the number of intervals.
    probes = #{} :: #{node() => non_neg_integer()},
    timer = none :: none | reference()
}).

-doc "Makes the tables. Called once by the process that shall own them.".
-spec new() -> ok.
new() ->
    lists:foreach(fun(Table) ->
        Table = ets:new(Table,
                        [named_table, public, {read_concurrency, true}, {write_concurrency, true}])
    end, [?STANDS, ?HEARD]).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% ---------------------------------------------------------------- for the processes of groups

-doc """
Whether heartbeats to a node may be left to this process, and to the one there. The first call for a
node has that node asked.
""".
-spec is_ready(node()) -> boolean().
is_ready(Node) ->
    Now = now_ms(),
    case ets:lookup(?HEARD, Node) of
        [{_, _, Until, _}] -> Until > Now andalso ets:lookup_element(?HEARD, ?MODULE, 2, 0) > Now;
        [] ->
            _ = ets:insert_new(?HEARD, {Node, none, 0, none})
                andalso gen_server:cast(?MODULE, {probe, Node}),
            false
    end.

-doc "The process of a group ran at this time, and stands towards these nodes.".
-spec stand(binary(), Ran :: integer(), [node()]) -> ok.
stand(Uid, Ran, Nodes) ->
    true = ets:insert(?STANDS, {Uid, Ran, Nodes}),
    gen_server:cast(?MODULE, {stands, Uid}).

-doc "No process of the group stands any more.".
-spec leave(binary()) -> ok.
leave(Uid) ->
    case ets:take(?STANDS, Uid) of
        [_] -> gen_server:cast(?MODULE, {stands, Uid});
        [] -> ok
    end.

-doc """
The process of a group ran at this time, and nothing has changed; false if that has been forgotten.
""".
-spec tick(binary(), Ran :: integer()) -> boolean().
tick(Uid, Ran) -> ets:update_element(?STANDS, Uid, {2, Ran}).

-doc """
When the group's process on a node, which stands towards this node, last ran; `none` if it does not
stand or nothing was heard from that node lately.
""".
-spec heard(binary(), node()) -> integer() | none.
heard(Uid, Node) ->
    case standing(Uid, Node) of
        {Ran, _} -> Ran;
        none -> none
    end.

-doc """
When this node heard last that the process of the group on a node stands towards it; `none` as for
`heard/2`.
""".
-spec last(binary(), node()) -> integer() | none.
last(Uid, Node) ->
    case standing(Uid, Node) of
        {_, At} -> At;
        none -> none
    end.

standing(Uid, Node) ->
    case ets:member(?HEARD, {Uid, Node}) andalso ets:lookup(?HEARD, Node) of
        [{_, Ran, Until, At}] when is_integer(Ran) ->
            case Until > now_ms() of
                true -> {Ran, At};
                false -> none
            end;
        _ -> none
    end.

%% ---------------------------------------------------------------- gen_server

-spec init([]) -> {ok, #h{}}.
init([]) ->
    %% One flooded link must not hold back the heartbeats to all others (rule 20).
    _ = process_flag(async_dist, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    true = ets:delete_all_objects(?HEARD),
    Stood = ets:tab2list(?STANDS),
    Beats = lists:foldl(fun({Uid, _, Nodes}, Acc) -> sderl_beats:stand(Uid, Nodes, Acc) end,
                        (#h{})#h.beats, Stood),
    {ok, next(#h{beats = Beats})}.

-spec handle_call(term(), gen_server:from(), #h{}) -> {reply, term(), #h{}}.
handle_call(_, _, H) -> {reply, {error, unknown_call}, H}.

-spec handle_cast(term(), #h{}) -> {noreply, #h{}}.
handle_cast({stands, Uid}, #h{beats = Beats} = H) when is_binary(Uid) ->
    Nodes = ets:lookup_element(?STANDS, Uid, 3, []),
    {noreply, H#h{beats = sderl_beats:stand(Uid, Nodes, Beats)}};
handle_cast({probe, Node}, #h{probes = Probes} = H) when is_atom(Node) ->
    ok = send(Node, {again, span()}),
    {noreply, H#h{probes = Probes#{Node => 1}}};
handle_cast(_, H) -> {noreply, H}.

-spec handle_info(term(), #h{}) -> {noreply, #h{}}.
handle_info(beat, H) ->
    {noreply, next(tell(expire(probe(missed(H)))))};
handle_info({sderl_heart, ?VSN, Node, Word}, H) when is_atom(Node), Node =/= node() ->
    case sderl_beats:is_word(Word) of
        true -> {noreply, word(Node, Word, H)};
        false -> {noreply, H}
    end;
%% A link came or went, so probes that wait for an answer of this node are void.
handle_info({Change, Node, _}, H)
  when is_atom(Node), Change =:= nodeup orelse Change =:= nodedown ->
    {noreply, forget_node(Node, H)};
handle_info(_, H) -> {noreply, H}.

next(#h{timer = Timer} = H) ->
    true = ets:insert(?HEARD, {?MODULE, now_ms() + 2 * span()}),
    H#h{timer = sderl_timer:next(Timer, interval(), beat)}.

%% That of the ticks of groups. Each has one in the span, unless it is late by half an interval.
interval() -> sderl_options:value(tick_ms).

span() -> (3 * interval()) div 2.

%% ---------------------------------------------------------------- once in an interval

%% Groups whose process has not noted that it runs.
missed(#h{beats = Beats} = H) ->
    Before = now_ms() - span(),
    Missed = ets:select(?STANDS, [{{'_', '$1', '_'}, [{'<', '$1', Before}], ['$_']}]),
    Forgotten = Before - ?FORGET_AFTER * interval(),
    {Ended, Silent} = lists:partition(fun({_, Ran, _}) -> Ran < Forgotten end, Missed),
    lists:foreach(fun(Row) -> ets:delete_object(?STANDS, Row) end, Ended),
    Left = lists:foldl(fun({Uid, _, _}, Acc) -> sderl_beats:stand(Uid, [], Acc) end, Beats, Ended),
    H#h{beats = sderl_beats:silent([Uid || {Uid, _, _} <- Silent], Left)}.

probe(#h{probes = Probes} = H) ->
    H#h{probes = maps:map(fun(Node, Count) ->
        _ = (Count < ?FIRST_PROBES orelse Count rem ?PROBE_EVERY =:= 0)
            andalso send(Node, {again, span()}),
        Count + 1
    end, Probes)}.

%% A node that is not heard any more is asked again when a process wants to stand towards it.
expire(#h{hearing = Hearing} = H) ->
    Now = now_ms(),
    maps:fold(fun
        (Node, {Until, _}, Acc) when Until =< Now -> unheard(Node, Acc);
        (_, _, Acc) -> Acc
    end, H, Hearing).

tell(#h{beats = Beats0, hearing = Hearing, owed = Owed} = H) ->
    Answered = #{Node => [] || Node := {_, Heard} <- Hearing, sderl_beats:standing(Heard) > 0},
    {Bundles, Beats} = sderl_beats:bundles(maps:merge(Owed, Answered), Beats0),
    Span = span(),
    lists:foreach(fun({Node, Bundle}) -> send(Node, {beat, Span, Bundle}) end, Bundles),
    H#h{beats = Beats, owed = #{}}.

%% ---------------------------------------------------------------- other nodes

word(Node, {again, Span}, #h{beats = Beats, owed = Owed, hearing = Hearing} = H) ->
    Heard = case Hearing of
        #{Node := {_, Known}} -> Known;
        #{} -> sderl_beats:none_heard()
    end,
    counts(Node, Span, ets:lookup_element(?HEARD, Node, 2, none), Heard,
           H#h{beats = sderl_beats:begin_again(Node, Beats), owed = Owed#{Node => []}});
word(Node, {beat, Span, {_, _, Added, Gone} = Bundle}, #h{hearing = Hearing} = H) ->
    {_, Before} = maps:get(Node, Hearing, {0, sderl_beats:none_heard()}),
    {How, Heard} = sderl_beats:heard(Bundle, Before),
    _ = How =:= follows orelse ets:match_delete(?HEARD, {{'_', Node}}),
    case How of
        gap ->
            ok = send(Node, {again, span()}),
            counts(Node, Span, none, Heard, H);
        _ ->
            true = ets:insert(?HEARD, [{{Uid, Node}} || Uid <- Added]),
            lists:foreach(fun(Uid) -> ets:delete(?HEARD, {Uid, Node}) end, Gone),
            counts(Node, Span, now_ms() - Span, Heard, H)
    end.

counts(Node, Span, Ran, Heard, #h{hearing = Hearing, probes = Probes} = H) ->
    Now = now_ms(),
    Until = Now + 2 * max(Span, span()),
    true = ets:insert(?HEARD, {Node, Ran, Until, Now}),
    H#h{hearing = Hearing#{Node => {Until, Heard}}, probes = maps:remove(Node, Probes)}.

unheard(Node, #h{hearing = Hearing} = H) ->
    true = ets:match_delete(?HEARD, {{'_', Node}}),
    true = ets:delete(?HEARD, Node),
    H#h{hearing = maps:remove(Node, Hearing)}.

forget_node(Node, H0) ->
    #h{beats = Beats, owed = Owed, probes = Probes} = H = unheard(Node, H0),
    H#h{beats = sderl_beats:forget_node(Node, Beats),
        owed = maps:remove(Node, Owed),
        probes = maps:remove(Node, Probes)}.

send(Node, Word) ->
    sderl_traffic:send({?MODULE, Node}, {?MODULE, ?VSN, node(), Word}, control, Word).
