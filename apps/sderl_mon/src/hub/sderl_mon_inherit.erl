%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_inherit).
-moduledoc """
Gives a hub that has just begun the past of another monitoring node: all hubs see the same, so a
restarted one shows the same picture as before.

It begins with each hub (`m:sderl_mon_hub_sup`). For two minutes it asks the other monitoring nodes
to which there is a link, for one piece at a time. It also answers those that ask, with all pieces
from the past as it was at the first one (`m:sderl_mon_frozen`). Neither side waits for the other.
Received data is checked before the hub gets it. A node whose clock differs by two seconds is not
asked further, because the times of its data would be wrong.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_mon_clock, [now_ms/0, wall_ms/0]).

-define(TRY_MS, 1000).
-define(TRIES, 120).
-define(ANSWER_MS, 5000).
%% No hub sends a larger piece than this (without its last entry).
-define(PIECE_BYTES, 262_144).
-define(EXPIRE_MS, 5000).
-define(CLOCKS_MS, 2000).
%% A history has fewer pieces.
-define(MOST_PIECES, 5_000).
%% Frames are checked without unpacking their columns.
-define(HEAD, #{nodes => [], groups => [], links => []}).

-type part() :: sderl_mon_message:past_part().

-record(asking, {
    peer :: node(),
    ref :: reference(),
    timer :: reference(),
    part :: part(),
    after_ :: integer(),
    rest :: [part()],
    pieces = 0 :: non_neg_integer(),
    %% By part, the newest piece first.
    got = #{} :: #{part() => [[sderl_mon_ladder:entry()]]},
    seq = 0 :: non_neg_integer()
}).

-record(state, {
    tries = 0 :: non_neg_integer(),
    asking = none :: none | done | #asking{},
    frozen = sderl_mon_frozen:new() :: sderl_mon_frozen:frozen(),
    %% Runs while something is frozen.
    expiry = none :: none | reference()
}).

-doc "Begins to ask.".
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc false.
-spec init([]) -> {ok, #state{}}.
init([]) ->
    self() ! try_again,
    {ok, #state{}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, {error, unknown_call}, #state{}}.
handle_call(_, _From, State) -> {reply, {error, unknown_call}, State}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}} | {noreply, #state{}, hibernate}.
handle_cast({sderl_mon_past, 1, Message}, State) ->
    case sderl_mon_message:check_past(Message) of
        {ok, {ask, Ask}} ->
            answer(Ask, State);
        {ok, {answer, Answer}} ->
            {noreply, answered(Answer, State)};
        {error, not_a_message} ->
            {noreply, State}
    end;
handle_cast(_, State) ->
    {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {noreply, #state{}, hibernate}.
handle_info(try_again, #state{asking = none, tries = Tries} = State) when Tries < ?TRIES ->
    {noreply, try_peer(State#state{tries = Tries + 1})};
handle_info({timeout, Timer, late}, #state{asking = #asking{timer = Timer}} = State) ->
    {noreply, later(State)};
handle_info({timeout, Timer, expire}, #state{expiry = Timer, frozen = Frozen} = State) ->
    kept(State#state{frozen = sderl_mon_frozen:expire(now_ms(), Frozen), expiry = none});
handle_info(_, State) ->
    {noreply, State}.

later(State) ->
    _ = erlang:send_after(?TRY_MS, self(), try_again),
    State#state{asking = none}.

%% ---------------------------------------------------------------- asking

%% Asks another node each time.
try_peer(#state{tries = Tries} = State) ->
    #{monitors := Monitors} = sderl_mon_settings:get(),
    Linked = nodes(connected),
    case [M || M <- Monitors, lists:member(M, Linked)] of
        [] ->
            later(State);
        Peers ->
            Peer = lists:nth(1 + Tries rem length(Peers), Peers),
            Asking = #asking{
                peer = Peer,
                ref = make_ref(),
                timer = make_ref(),
                part = {frames, 0},
                after_ = 0,
                rest = [topologies, findings, events]
            },
            State#state{asking = ask(Asking)}
    end.

ask(#asking{peer = Peer, part = Part, after_ = After, timer = Before} = Asking) ->
    _ = erlang:cancel_timer(Before),
    Ref = make_ref(),
    Ask = #{from => node(), ref => Ref, part => Part, 'after' => After},
    %% A request that cannot be sent counts as one without an answer.
    _ = sderl_mon_tell:cast(Peer, ?MODULE, {sderl_mon_past, 1, {ask, Ask}}),
    Asking#asking{ref = Ref, timer = erlang:start_timer(?ANSWER_MS, self(), late)}.

answered(#{ref := Ref, t := T} = Answer, #state{asking = #asking{ref = Ref} = Asking} = State) ->
    #asking{peer = Peer} = Asking,
    case abs(T - wall_ms()) > ?CLOCKS_MS of
        true ->
            ?LOG_NOTICE("The history of ~ts is not taken over: its clock differs", [Peer]),
            later(State);
        false ->
            taken(Answer, Asking, State)
    end;
answered(_, State) ->
    State.

taken(#{entries := Entries, more := More} = Answer, Asking, State) ->
    #asking{peer = Peer, part = Part, after_ = After, got = Got, pieces = Pieces} = Asking,
    IsPiece = is_next(Part, After, Entries) andalso is_small(Entries) andalso Pieces < ?MOST_PIECES,
    case IsPiece andalso checked(Part, Entries) of
        {ok, Seq} ->
            Asking1 = Asking#asking{
                pieces = Pieces + 1,
                seq = max(Seq, Asking#asking.seq),
                got = Got#{Part => [Entries | maps:get(Part, Got, [])]}
            },
            case {More, Entries} of
                {true, [_ | _]} ->
                    {Last, _, _} = lists:last(Entries),
                    State#state{asking = ask(Asking1#asking{after_ = Last})};
                _ ->
                    next_part(with_steps(Answer, Asking1), State)
            end;
        _ ->
            ?LOG_WARNING("The history of ~ts is not taken over: what it sends is damaged", [Peer]),
            later(State)
    end.

%% An entry from the future would stay the newest for ever. (Events have ids in place of times.)
is_next(Part, After, Entries) ->
    Latest = wall_ms() + ?CLOCKS_MS,
    Fits = fun({T, _, _}) -> T > After andalso (Part =:= events orelse T =< Latest) end,
    lists:all(Fits, Entries).

is_small([]) -> true;
is_small(Entries) ->
    iolist_size([Packed || {_, _, Packed} <- lists:droplast(Entries)]) =< ?PIECE_BYTES.

%% The first answer says which other steps there are.
with_steps(#{steps := Steps}, #asking{part = {frames, 0}, rest = Rest} = Asking) ->
    Asking#asking{rest = [{frames, Step} || Step <- lists:usort(Steps), Step > 0] ++ Rest};
with_steps(_, Asking) ->
    Asking.

%% Gives the greatest number of a frame; 0 for other parts.
checked({frames, _}, Entries) ->
    frames(Entries, 0);
checked(topologies, Entries) ->
    unpacked(Entries, fun(Term) -> element(1, sderl_mon_clean:topology(Term)) =:= ok end);
checked(findings, Entries) ->
    unpacked(Entries, fun(Term) ->
        element(1, sderl_mon_message:check_news({sderl_mon, findings, Term})) =:= ok
    end);
checked(events, Entries) ->
    unpacked(Entries, fun is_list/1).

frames([], Seq) ->
    {ok, Seq};
frames([{_T, _Span, Packed} | Rest], Seq) ->
    case sderl_mon_pack:unpack_frame(Packed, ?HEAD) of
        {ok, #{seq := Its}} -> frames(Rest, max(Seq, Its));
        {error, corrupt} -> {error, corrupt}
    end.

unpacked(Entries, Good) ->
    Fits = fun({_T, _Span, Packed}) ->
        case sderl_mon_pack:unpack(Packed) of
            {ok, Term} -> Good(Term);
            {error, corrupt} -> false
        end
    end,
    case lists:all(Fits, Entries) of
        true -> {ok, 0};
        false -> {error, corrupt}
    end.

next_part(#asking{rest = [Part | Rest]} = Asking, State) ->
    State#state{asking = ask(Asking#asking{part = Part, rest = Rest, after_ = 0})};
next_part(#asking{rest = [], got = Got, peer = Peer, timer = Timer, seq = Seq}, State) ->
    _ = erlang:cancel_timer(Timer),
    Of = fun(Part) -> lists:append(lists:reverse(maps:get(Part, Got, []))) end,
    Levels = [{Step, Of({frames, Step})} || {frames, Step} <- lists:sort(maps:keys(Got))],
    case lists:keyfind(0, 1, Levels) of
        {0, [_ | _]} ->
            Past = sderl_mon_history:mended(#{
                levels => Levels,
                topologies => Of(topologies),
                findings => Of(findings)
            }),
            Events = events(Of(events)),
            case sderl_mon_hub:inherit(#{past => Past, events => Events, seq => Seq}) of
                ok -> ?LOG_INFO("The history of ~ts is taken over", [Peer]);
                {error, _} -> ok
            end,
            State#state{asking = done};
        %% That hub has just begun, too.
        _ ->
            later(State)
    end.

events(Entries) ->
    Lists = [sderl_mon_pack:unpack(Packed) || {_, _, Packed} <- Entries],
    lists:append([sderl_mon_clean:remembered(List) || {ok, List} <- Lists]).

%% ---------------------------------------------------------------- answering

answer(#{from := From, ref := Ref} = Ask, #state{frozen = Before} = State) ->
    {Piece, Frozen} = sderl_mon_frozen:piece(Ask, now_ms(), fun sderl_mon_hub:past/0, Before),
    Answer = Piece#{ref => Ref, t => wall_ms()},
    _ = sderl_mon_tell:cast(From, ?MODULE, {sderl_mon_past, 1, {answer, Answer}}),
    kept(State#state{frozen = Frozen}).

%% The frozen copy is large, and is garbage from now on.
kept(#state{frozen = Frozen, expiry = Expiry} = State) ->
    case sderl_mon_frozen:is_empty(Frozen) of
        true -> {noreply, State, hibernate};
        false when Expiry =:= none ->
            {noreply, State#state{expiry = erlang:start_timer(?EXPIRE_MS, self(), expire)}};
        false -> {noreply, State}
    end.
