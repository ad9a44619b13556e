%% SPDX-License-Identifier: Apache-2.0
-module(sderl_link_policy).
-moduledoc false.
%% What is done about links that are not needed (protocol rule 25; `sderl_links` knows which).
%%
%% `report`: an event, once for each such link until it is needed again.
%%
%% `close`: the event, and the link is closed if both ends agree and both have this policy. This end
%% asks the other when it has seen no traffic for the idle time and a little more. Both exchange
%% their views and judge by `sderl_links:close_candidate/3`. The end that asked closes the link,
%% after it has looked once more.
%%
%% Traffic is what the runtime counts on the link beyond the ticks that every link carries (a tick
%% is a packet of four bytes and nothing in it). The question to the other end is traffic too, so
%% after a refusal both ends count anew; the little more is what they may differ by. Where the
%% runtime does not count, as on TLS, a link is never seen idle and stays.
%%
%% A message sent between the last check and the closing is lost, as with any link that goes down;
%% the next message opens the link again.

-behaviour(gen_server).

-export([start_link/0, quiet/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).
-export_type([counters/0]).

-include("../core/sderl_version.hrl").

-doc "Octets and packets received, octets and packets sent.".
-type counters() :: {non_neg_integer(), non_neg_integer(), non_neg_integer(), non_neg_integer()}.

%% For each link: the last counters, and since when there was nothing but ticks.
-type seen() :: #{node() => {counters(), Since :: integer()}}.

-record(p, {
    reported = #{} :: #{node() => []}, seen = #{} :: seen(), timer = none :: none | reference()
}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
Adds the present counters. A new link, or one whose counters show more than ticks, is quiet since
now.
""".
-spec quiet(seen(), #{node() => counters()}, Now :: integer()) -> seen().
quiet(Seen, Counters, Now) ->
    maps:map(fun(Node, Count) ->
        case Seen of
            #{Node := {Before, Since}} ->
                case only_ticks(Before, Count) of
                    true -> {Count, Since};
                    false -> {Count, Now}
                end;
            _ -> {Count, Now}
        end
    end, Counters).

%% A new link to the node counts from 0.
only_ticks({RO0, RP0, SO0, SP0}, {RO, RP, SO, SP}) ->
    RP >= RP0 andalso SP >= SP0 andalso RO - RO0 =:= 4 * (RP - RP0)
        andalso SO - SO0 =:= 4 * (SP - SP0).

%% ---------------------------------------------------------------- gen_server

-spec init([]) -> {ok, #p{}}.
init([]) ->
    _ = process_flag(async_dist, true),
    {ok, next(#p{})}.

-spec handle_call(term(), gen_server:from(), #p{}) -> {reply, term(), #p{}}.
handle_call(_, _, P) -> {reply, {error, unknown_call}, P}.

-spec handle_cast(term(), #p{}) -> {noreply, #p{}}.
handle_cast(_, P) -> {noreply, P}.

-spec handle_info(term(), #p{}) -> {noreply, #p{}}.
handle_info(look, #p{reported = Reported} = P) ->
    P0 = next(P),
    Now = now_ms(),
    ok = sderl_links:forget_uses(Now - idle()),
    Unneeded = sderl_links:unneeded(sderl_dir:needs(), Now, idle()),
    lists:foreach(fun({Node, Idle}) ->
        is_map_key(Node, Reported) orelse
            sderl_event:emit(link_unneeded, #{node => Node, idle_s => Idle div 1000})
    end, Unneeded),
    P1 = P0#p{reported = #{Node => [] || {Node, _} <- Unneeded}},
    case closes() of
        true -> {noreply, ask([Node || {Node, _} <- Unneeded], Now, count(Now, P1))};
        false -> {noreply, P1}
    end;
handle_info({sderl_link, ?VSN, From, {may_close, There}}, P) when is_atom(From) ->
    case closes() andalso agree(From, There, P) of
        true -> tell(From, close);
        false -> ok
    end,
    {noreply, P};
handle_info({sderl_link, ?VSN, From, close}, #p{reported = Reported} = P) ->
    %% Only if we asked, and would ask again.
    case closes() andalso is_map_key(From, Reported)
         andalso lists:keymember(From, 1,
                                 sderl_links:unneeded(sderl_dir:needs(), now_ms(), idle())) of
        true -> close(From);
        false -> ok
    end,
    {noreply, P};
handle_info(_, P) -> {noreply, P}.

idle() -> sderl_options:value(link_idle_ms).

closes() -> sderl_options:value(link_policy) =:= close.

%% So often that a report is late by at most a tenth of the idle time.
pause() -> max(100, idle() div 10).

next(#p{timer = Timer} = P) -> P#p{timer = sderl_timer:next(Timer, pause(), look)}.

%% ---------------------------------------------------------------- closing

count(Now, #p{seen = Seen} = P) ->
    Counters = #{Node => {RO, RP, SO, SP}
                 || {Node, Port} <- erlang:system_info(dist_ctrl), is_port(Port),
                    {ok, [{recv_oct, RO}, {recv_cnt, RP}, {send_oct, SO}, {send_cnt, SP}]} <-
                        [inet:getstat(Port, [recv_oct, recv_cnt, send_oct, send_cnt])]},
    P#p{seen = quiet(Seen, Counters, Now)}.

ask(Nodes, Now, #p{seen = Seen} = P) ->
    Enough = idle() + 2 * pause(),
    lists:foreach(fun(Node) ->
        case Seen of
            #{Node := {_, Since}} when Now - Since >= Enough ->
                case view(Node, Now, P) of
                    {ok, View} -> tell(Node, {may_close, View});
                    {error, no_link} -> ok
                end;
            _ -> ok
        end
    end, Nodes),
    P.

agree(Node, There, P) ->
    try view(Node, now_ms(), P) of
        {ok, Here} -> sderl_links:close_candidate(Here, There, idle()) =:= close;
        {error, no_link} -> false
    catch
        %% The other end sent no valid view.
        error:_ -> false
    end.

view(Node, Now, #p{seen = Seen}) ->
    Idle = case Seen of
        #{Node := {_, Since}} -> Now - Since;
        _ -> 0
    end,
    sderl_links:view(Node, sderl_dir:needs(), Now, idle(),
                     #{names => names_at(Node), idle_ms => Idle}).

%% The names known here whose process is there.
names_at(Node) ->
    sderl_names:count_at(Node).

tell(Node, Msg) ->
    sderl_traffic:send({?MODULE, Node}, {sderl_link, ?VSN, node(), Msg}, control, Msg).

close(Node) ->
    _ = erlang:disconnect_node(Node),
    sderl_event:emit(link_closed, #{node => Node, reason => unneeded}).
