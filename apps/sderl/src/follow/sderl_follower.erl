%% SPDX-License-Identifier: Apache-2.0
-module(sderl_follower).
-moduledoc false.
%% One process a node: keeps the copies of the groups that this node follows
%% (`sderl_follow_copy`), in the tables of `sderl_copies`.
%%
%% It asks members over existing links, or over routes. Only if neither has led to any member for a
%% while, and the copy may not be read any more, it opens a link to one, as a lookup would; the
%% restart of a gateway opens no links. A helper does it, as connecting may take seconds. A new
%% process finds the followed groups in the table, and the copies, which may be read for as long as
%% before; it has them sent once more.
%%
%% While this node is a member of a group that it follows, there is no copy of it.

-behaviour(gen_server).

-export([start_link/0, follow/1, unfollow/1, changed/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

-define(VSN, 1).
%% Within this time routes are known after a start, or after the loss of one of two gateways.
-define(PATIENCE_MS, 3000).

-record(followed, {
    copy :: sderl_follow_copy:copy(),
    names = 0 :: non_neg_integer(),
    %% Since when no member can be asked.
    cut_off = none :: none | integer(),
    is_member = false :: boolean()
}).

-record(s, {
    groups = #{} :: #{Group :: term() => #followed{}},
    most :: pos_integer(),
    max_age :: pos_integer(),
    %% Helpers that connect, by their monitor.
    helpers = #{} :: #{reference() => Group :: term()},
    timer :: reference()
}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec follow(term()) ->
    ok | {error, node_belongs_to_the_s_group | reserved_s_group_name | not_running}.
follow(Group) -> call({follow, Group}).

-spec unfollow(term()) -> ok | {error, not_running}.
unfollow(Group) -> call({unfollow, Group}).

%% A process that died is back in a moment, and both kinds of call may be made twice.
call(Request) -> call(Request, 100).

call(Request, Tries) ->
    try gen_server:call(?MODULE, Request, infinity)
    catch
        exit:{noproc, _} when Tries > 0 ->
            case whereis(sderl_sup) of
                undefined -> {error, not_running};
                _ -> receive after 10 -> call(Request, Tries - 1) end
            end;
        exit:{Why, _} when Tries > 0, Why =/= noproc -> call(Request, Tries - 1);
        exit:_ -> {error, not_running}
    end.

-doc "This node may have become a member of a group, or have left it.".
-spec changed(term()) -> ok.
changed(Group) ->
    case sderl_copies:is_followed(Group) of
        true -> gen_server:cast(?MODULE, {changed, Group});
        false -> ok
    end.

%% ---------------------------------------------------------------- callbacks

-spec init([]) -> {ok, #s{}}.
init([]) ->
    _ = process_flag(async_dist, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    MaxAge = sderl_follow_config:value(follow_max_age_ms),
    S = #s{
        most = sderl_follow_config:value(follow_names),
        max_age = MaxAge,
        timer = sderl_timer:next(none, sderl_follow_copy:beat_ms(MaxAge), tick)
    },
    lists:foreach(fun sderl_copies:follow/1, sderl_follow_config:value(follow)),
    {ok, lists:foldl(fun begin_copy/2, S, sderl_copies:followed())}.

-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call({follow, Group}, _, #s{groups = Groups} = S) ->
    case sderl_names:is_member(Group) of
        true -> {reply, {error, node_belongs_to_the_s_group}, S};
        false when Group =:= undefined -> {reply, {error, reserved_s_group_name}, S};
        false when is_map_key(Group, Groups) -> {reply, ok, S};
        false ->
            _ = sderl_copies:follow(Group),
            {reply, ok, tick(Group, begin_copy(Group, S))}
    end;
handle_call({unfollow, Group}, _, #s{groups = Groups} = S) ->
    case maps:take(Group, Groups) of
        {#followed{copy = Copy}, Rest} ->
            lists:foreach(fun({send, Node, Want}) -> send(Group, Node, Want);
                             (clear) -> ok
                          end, sderl_follow_copy:stop(Copy)),
            _ = sderl_copies:unfollow(Group),
            {reply, ok, S#s{groups = Rest}};
        error -> {reply, ok, S}
    end;
handle_call(_, _, S) -> {reply, {error, unknown_call}, unknown(S)}.

-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast({changed, Group}, S) -> {noreply, tick(Group, S)};
handle_cast(_, S) -> {noreply, unknown(S)}.

-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info({sderl_follow, ?VSN, Node, Group, Told}, S) when is_atom(Node) ->
    case sderl_follow_wire:is_told(Told) of
        true -> {noreply, step(Group, {told, Node, Told}, S)};
        false -> {noreply, unknown(S)}
    end;
handle_info(tick, #s{timer = Timer, max_age = MaxAge, groups = Groups} = S) ->
    Next = S#s{timer = sderl_timer:next(Timer, sderl_follow_copy:beat_ms(MaxAge), tick)},
    {noreply, lists:foldl(fun tick/2, Next, maps:keys(Groups))};
handle_info({nodedown, Node, _}, #s{groups = Groups} = S) when is_atom(Node) ->
    {noreply, lists:foldl(fun(Group, Acc) ->
        step(Group, {down, Node, reachable(members(Group))}, Acc)
    end, S, maps:keys(Groups))};
handle_info({nodeup, Node, _}, S) when is_atom(Node) -> {noreply, S};
handle_info({'DOWN', Helper, process, _, _}, #s{helpers = Helpers} = S) ->
    case maps:take(Helper, Helpers) of
        {Group, Rest} -> {noreply, tick(Group, S#s{helpers = Rest})};
        error -> {noreply, S}
    end;
handle_info(_, S) -> {noreply, unknown(S)}.

unknown(S) ->
    sderl_refused:note_message(?MODULE),
    S.

%% ---------------------------------------------------------------- copies

begin_copy(Group, #s{groups = Groups, most = Most, max_age = MaxAge} = S) ->
    Life = erlang:unique_integer([positive, monotonic]),
    Copy = sderl_follow_copy:new(now_ms(), Life, Most, MaxAge),
    S#s{groups = Groups#{Group => #followed{copy = Copy, names = sderl_copies:count(Group)}}}.

tick(Group, #s{groups = Groups} = S) ->
    case {Groups, sderl_names:is_member(Group)} of
        {#{Group := #followed{is_member = true}}, true} -> S;
        {#{Group := #followed{copy = Copy}}, true} ->
            S1 = effects(Group, sderl_follow_copy:stop(Copy), S),
            #s{groups = #{Group := Followed}} = S2 = begin_copy(Group, S1),
            ok = sderl_copies:note(Group, #{names => 0, from => none, state => member}),
            S2#s{groups = (S2#s.groups)#{Group := Followed#followed{is_member = true}}};
        {#{Group := Followed}, false} ->
            Members = members(Group),
            Reachable = reachable(Members),
            {Missing, Since} = cut_off(Reachable, Followed),
            Now = Followed#followed{is_member = false, cut_off = Since},
            S1 = step(Group, {tick, Reachable}, S#s{groups = Groups#{Group := Now}}),
            case Missing of
                true -> connect(Group, Members, S1);
                false -> S1
            end;
        {#{}, _} -> S
    end.

%% Whether a link is needed, and since when no member can be asked.
cut_off([_ | _], _) -> {false, none};
cut_off([], #followed{cut_off = none}) -> {false, now_ms()};
cut_off([], #followed{cut_off = Since, copy = Copy}) ->
    Now = now_ms(),
    #{state := State} = sderl_follow_copy:info(Now, Copy),
    {State =/= whole andalso Now - Since >= ?PATIENCE_MS, Since}.

step(Group, Event, #s{groups = Groups} = S) ->
    case Groups of
        #{Group := #followed{copy = Copy0, is_member = false} = Followed} ->
            Now = now_ms(),
            {Effects, Copy} = sderl_follow_copy:step(Now, Event, Copy0),
            S1 = effects(Group, Effects,
                         S#s{groups = Groups#{Group := Followed#followed{copy = Copy}}}),
            #s{groups = #{Group := #followed{names = Names}}} = S1,
            #{state := State, from := From} = sderl_follow_copy:info(Now, Copy),
            ok = sderl_copies:note(Group, #{names => Names, from => From, state => State}),
            case Followed#followed.names of
                Names -> S1;
                _ -> step(Group, {size, Names}, S1)
            end;
        #{} -> S
    end.

effects(Group, Effects, S) ->
    lists:foldl(fun(Effect, Acc) -> effect(Effect, Group, Acc) end, S, Effects).

effect({send, Node, Want}, Group, S) ->
    send(Group, Node, Want),
    S;
effect({put, Generation, Rows}, Group, S) ->
    sized(Group, sderl_copies:put(Group, Generation, Rows), S);
effect({delete, Names}, Group, S) -> sized(Group, -sderl_copies:delete(Group, Names), S);
effect({sweep, Generation}, Group, S) -> sized(Group, -sderl_copies:sweep(Group, Generation), S);
effect(clear, Group, #s{groups = Groups} = S) ->
    ok = sderl_copies:clear(Group),
    #{Group := Followed} = Groups,
    S#s{groups = Groups#{Group := Followed#followed{names = 0}}};
effect({whole, AsOf}, Group, #s{max_age = MaxAge} = S) ->
    ok = sderl_copies:whole(Group, AsOf, MaxAge),
    S;
effect({event, Event, Meta}, Group, S) ->
    sderl_event:emit(Event, Meta#{group => Group}),
    S.

sized(_, 0, S) -> S;
sized(Group, More, #s{groups = Groups} = S) ->
    #{Group := #followed{names = Names} = Followed} = Groups,
    S#s{groups = Groups#{Group := Followed#followed{names = Names + More}}}.

%% ---------------------------------------------------------------- whom to ask

members(Group) -> lists:usort(sderl_router:members(Group) ++ sderl_dir:known(Group)) -- [node()].

%% Members with a link first, then those that a route leads to. Each follower begins with another
%% one, so that a group's followers are spread over its members.
reachable(Members) ->
    {Linked, Far} = lists:partition(fun sderl_links:is_up/1, Members),
    turned(Linked) ++ turned([Node || Node <- Far, sderl_router:first({node, Node}) =/= {}]).

turned([]) -> [];
turned(Nodes) ->
    {Front, Back} = lists:split(erlang:phash2(node(), length(Nodes)), Nodes),
    Back ++ Front.

%% One helper at a time for a group.
connect(_, [], S) -> S;
connect(Group, Members, #s{helpers = Helpers} = S) ->
    case lists:any(fun(G) -> G =:= Group end, maps:values(Helpers)) of
        true -> S;
        false ->
            Node = lists:nth(rand:uniform(length(Members)), Members),
            {_, Helper} = spawn_monitor(fun() ->
                sderl_connector:connect(Node, {lookup, Group})
            end),
            S#s{helpers = Helpers#{Helper => Group}}
    end.

send(Group, Node, Want) ->
    %% Keeps a link that only following uses from counting as unneeded.
    _ = sderl_links:is_up(Node) andalso not sderl_dir:shares_group(Node)
        andalso sderl_links:note(Node, {lookup, Group}),
    Message = {sderl_follow, ?VSN, node(), Group, Want},
    _ = sderl_route_send:node(Node, {process, sderl_feeder}, none, Message,
                              sderl_route_send:hash(Group), [noconnect, nosuspend]),
    ok.
