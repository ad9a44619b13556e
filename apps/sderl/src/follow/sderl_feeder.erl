%% SPDX-License-Identifier: Apache-2.0
-module(sderl_feeder).
-moduledoc false.
%% One process a node: tells the followers of this node's groups what changes (`sderl_follow_feed`).
%%
%% A group has a feed here from the first question of a follower until none has asked for a while.
%% Only meanwhile is there a subscription by which the group's process sends this one the names of
%% each batch: a group that is not followed from here has no cost. Messages go over existing links
%% and the routes that lead on from them, and are lost rather than waited for.
%%
%% A feed ends with the process of its group, which may have written rows without saying so. The
%% next question begins another one, for which followers are sent all rows.

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

-define(VSN, 1).
-define(TICK_MS, 1000).

-record(open, {
    feed :: sderl_follow_feed:feed(),
    uid :: binary(),
    subscription :: reference(),
    monitor :: reference(),
    source :: sderl_follow_feed:source()
}).

-record(s, {
    feeds = #{} :: #{Group :: term() => #open{}},
    %% The groups by the subscription and by the monitor of their process.
    groups = #{} :: #{reference() => Group :: term()},
    timer :: reference()
}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, #s{}}.
init([]) ->
    _ = process_flag(async_dist, true),
    {ok, #s{timer = sderl_timer:next(none, ?TICK_MS, tick)}}.

-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call(_, _, S) -> {reply, {error, unknown_call}, unknown(S)}.

-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, unknown(S)}.

-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info({s_group_event, Subscription, _, {rows, Changed}}, #s{groups = Groups} = S) ->
    case Groups of
        #{Subscription := Group} when Changed =:= all ->
            #s{feeds = #{Group := #open{uid = Uid}}} = S,
            {noreply, step(Group, {all, feed(Uid)}, S)};
        #{Subscription := Group} when length(Changed) >= 0 ->
            {noreply, step(Group, {changed, Changed}, S)};
        #{} -> {noreply, S}
    end;
handle_info({sderl_follow, ?VSN, Node, Group, Want}, S) when is_atom(Node), Node =/= node() ->
    case sderl_follow_wire:is_want(Want) of
        true -> {noreply, wanted(Node, Group, Want, S)};
        false -> {noreply, unknown(S)}
    end;
handle_info({push, Group, Feed}, #s{feeds = Feeds} = S) ->
    case Feeds of
        #{Group := #open{monitor = Feed}} -> {noreply, step(Group, push, S)};
        #{} -> {noreply, S}
    end;
handle_info({'DOWN', Monitor, process, _, _}, #s{groups = Groups} = S) ->
    case Groups of
        #{Monitor := Group} -> {noreply, close(Group, S)};
        #{} -> {noreply, S}
    end;
handle_info(tick, #s{timer = Timer, feeds = Feeds} = S) ->
    Next = S#s{timer = sderl_timer:next(Timer, ?TICK_MS, tick)},
    {noreply, lists:foldl(fun(Group, Acc) -> step(Group, tick, Acc) end, Next, maps:keys(Feeds))};
handle_info(_, S) -> {noreply, unknown(S)}.

unknown(S) ->
    sderl_refused:note_message(?MODULE),
    S.

%% ---------------------------------------------------------------- feeds

wanted(Node, Group, Want, #s{feeds = Feeds} = S) when is_map_key(Group, Feeds); Want =:= stop ->
    step(Group, {want, Node, Want}, S);
wanted(Node, Group, Want, S) ->
    %% A member that has just started does not have all names yet, and would send a part.
    case Group =/= undefined andalso sderl_router:ready(Group) andalso sderl_dir:group(Group) of
        #{uid := Uid, process := Pid} -> step(Group, {want, Node, Want}, open(Group, Uid, Pid, S));
        _ ->
            send(Group, Node, {no, not_member}),
            S
    end.

%% First the subscription, then the rows: changes between the two are sent.
open(Group, Uid, Pid, #s{feeds = Feeds, groups = Groups} = S) ->
    Monitor = monitor(process, Pid),
    case sderl_subs:subscribe(Group, self(), [rows]) of
        {ok, Subscription} ->
            Open = #open{
                feed = sderl_follow_feed:new(feed(Uid)),
                uid = Uid,
                subscription = Subscription,
                monitor = Monitor,
                source = source(Group)
            },
            S#s{
                feeds = Feeds#{Group => Open},
                groups = Groups#{Subscription => Group, Monitor => Group}
            };
        {error, _} ->
            true = demonitor(Monitor, [flush]),
            S
    end.

feed(Uid) -> {Uid, node(), erlang:system_time() + erlang:unique_integer([positive])}.

source(Group) ->
    Store = sderl_store:new(Group, []),
    #{
        row => fun(Name) -> sderl_store:lookup(Store, Name) end,
        first => fun(Rows) -> sderl_store:read(Store, all, Rows) end,
        next => fun sderl_store:read_next/1,
        stop => fun sderl_store:read_stop/1,
        count => fun(Most) ->
            %% With several groups a count of one group's names would go through all names.
            case sderl_names:size() of
                Size when Size =< Most -> Size;
                _ -> sderl_names:count(Group)
            end
        end
    }.

close(Group, #s{feeds = Feeds, groups = Groups} = S) ->
    case maps:take(Group, Feeds) of
        {#open{subscription = Subscription, monitor = Monitor, feed = Feed, source = Source},
         Rest} ->
            _ = sderl_subs:unsubscribe(Subscription),
            true = demonitor(Monitor, [flush]),
            ok = sderl_follow_feed:stop(Source, Feed),
            S#s{feeds = Rest, groups = maps:without([Subscription, Monitor], Groups)};
        error -> S
    end.

step(Group, Event, #s{feeds = Feeds} = S) ->
    case Feeds of
        #{Group := #open{feed = Feed0, source = Source} = Open} ->
            {Effects, Feed} = sderl_follow_feed:step(now_ms(), Event, Source, Feed0),
            S1 = S#s{feeds = Feeds#{Group := Open#open{feed = Feed}}},
            lists:foldl(fun(Effect, Acc) -> effect(Effect, Group, Acc) end, S1, Effects);
        #{} -> S
    end.

effect({send, Node, Told}, Group, S) ->
    send(Group, Node, Told),
    S;
effect({push, Ms}, Group, #s{feeds = Feeds} = S) ->
    #{Group := #open{monitor = Feed}} = Feeds,
    _ = erlang:send_after(Ms, self(), {push, Group, Feed}),
    S;
effect(idle, Group, S) -> close(Group, S).

send(Group, Node, Told) ->
    Message = {sderl_follow, ?VSN, node(), Group, Told},
    _ = sderl_route_send:node(Node, {process, sderl_follower}, none, Message,
                              sderl_route_send:hash(Group), [noconnect, nosuspend]),
    ok.
