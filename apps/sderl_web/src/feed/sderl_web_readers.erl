%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_readers).
-moduledoc """
The sockets of a feed: what each has not acknowledged yet, what it is owed, and which nodes it
watches. Belongs to the feed's process, which sends.

A socket with a few unacknowledged messages gets nothing more. Frames and details are left out for
it, and frames are counted; of topologies, findings and alarms it is owed the newest, of events
those from the first one that it did not get.
""".

-export([new/0, add/3, drop/2, is_known/2, count/1, missed/1, wants_frames/1]).
-export([set_mode/3, watch/3, unwatch/3, watched/1]).
-export([begin_anew/2, give/3, give_frame/2, give_events/3, give_detail/3, leave_out/3]).
-export([acknowledge/4]).
-export_type([readers/0, mode/0]).

-doc "`paused`: no frames. `replay`: nothing at all.".
-type mode() :: live | paused | replay.

%% Limits that a browser on the same machine never reaches.
-define(UNACKNOWLEDGED, 4).
-define(MOST_WATCHED, 16).

-record(reader, {
    monitor :: reference(),
    out = 0 :: non_neg_integer(),
    missed = 0 :: non_neg_integer(),
    events_missed = 0 :: non_neg_integer(),
    %% Changes since it was full; events from this one on.
    anew = false :: boolean(),
    topology = false :: boolean(),
    findings = false :: boolean(),
    alarms = false :: boolean(),
    events = none :: none | integer(),
    mode = live :: mode(),
    watches = [] :: [binary()]
}).
-record(readers, {
    all = #{} :: #{pid() => #reader{}},
    %% How many watch each node.
    watched = #{} :: #{Node :: binary() => pos_integer()},
    missed = 0 :: non_neg_integer()
}).
-opaque readers() :: #readers{}.

-doc "No socket yet.".
-spec new() -> readers().
new() -> #readers{}.

-doc "Takes a socket, and monitors it.".
-spec add(pid(), mode(), readers()) -> readers().
add(Socket, Mode, #readers{all = All} = Readers) ->
    Readers#readers{
        all = All#{Socket => #reader{monitor = monitor(process, Socket), mode = Mode}}
    }.

-doc "Forgets a socket, and gives the nodes that nobody watches any more.".
-spec drop(pid(), readers()) -> {Unwatched :: [binary()], readers()}.
drop(Socket, #readers{all = All} = Readers) ->
    case maps:take(Socket, All) of
        {#reader{monitor = Monitor, watches = Watches}, Left} ->
            true = demonitor(Monitor, [flush]),
            release(Watches, Readers#readers{all = Left});
        error -> {[], Readers}
    end.

-doc "Whether a socket has been taken.".
-spec is_known(pid(), readers()) -> boolean().
is_known(Socket, #readers{all = All}) -> is_map_key(Socket, All).

-doc "How many sockets there are.".
-spec count(readers()) -> non_neg_integer().
count(#readers{all = All}) -> map_size(All).

-doc "How many frames were left out for slow sockets.".
-spec missed(readers()) -> non_neg_integer().
missed(#readers{missed = Missed}) -> Missed.

-doc "Whether some socket wants frames.".
-spec wants_frames(readers()) -> boolean().
wants_frames(#readers{all = All}) ->
    lists:any(fun(#reader{mode = Mode}) -> Mode =:= live end, maps:values(All)).

-doc "What a socket wants from now on. One that replays is owed nothing any more.".
-spec set_mode(pid(), mode(), readers()) -> readers().
set_mode(Socket, Mode, #readers{all = All} = Readers) ->
    case All of
        #{Socket := Reader} -> Readers#readers{all = All#{Socket := in_mode(Mode, Reader)}};
        #{} -> Readers
    end.

in_mode(replay, #reader{monitor = Monitor, out = Out, watches = Watches}) ->
    #reader{monitor = Monitor, out = Out, watches = Watches, mode = replay};
in_mode(Mode, Reader) ->
    Reader#reader{mode = Mode, missed = 0}.

%% Watched nodes

-doc """
From now on the socket gets a node's details. `known`: as before. Errors: `not_found`, there is no
such socket; `too_many`.
""".
-spec watch(pid(), Node :: binary(), readers()) ->
    {ok, readers()} | known | {error, not_found | too_many}.
watch(Socket, Node, #readers{all = All, watched = Watched} = Readers) ->
    case All of
        #{Socket := #reader{watches = Watches} = Reader} ->
            case lists:member(Node, Watches) of
                true -> known;
                false when length(Watches) >= ?MOST_WATCHED -> {error, too_many};
                false ->
                    {ok, Readers#readers{
                        all = All#{Socket := Reader#reader{watches = [Node | Watches]}},
                        watched = maps:update_with(Node, fun(N) -> N + 1 end, 1, Watched)
                    }}
            end;
        #{} -> {error, not_found}
    end.

-doc "Ends `watch/3`, and gives the node if nobody watches it any more.".
-spec unwatch(pid(), Node :: binary(), readers()) -> {Unwatched :: [binary()], readers()}.
unwatch(Socket, Node, #readers{all = All} = Readers) ->
    case All of
        #{Socket := #reader{watches = Watches} = Reader} ->
            Left = All#{Socket := Reader#reader{watches = lists:delete(Node, Watches)}},
            release([Node || lists:member(Node, Watches)], Readers#readers{all = Left});
        #{} -> {[], Readers}
    end.

release(Nodes, #readers{watched = Watched} = Readers) ->
    {Unwatched, Left} = lists:foldl(fun release_one/2, {[], Watched}, Nodes),
    {Unwatched, Readers#readers{watched = Left}}.

release_one(Node, {Unwatched, Watched}) ->
    case Watched of
        #{Node := 1} -> {[Node | Unwatched], maps:remove(Node, Watched)};
        #{Node := N} -> {Unwatched, Watched#{Node := N - 1}};
        #{} -> {Unwatched, Watched}
    end.

-doc "The nodes that some socket watches.".
-spec watched(readers()) -> [binary()].
watched(#readers{watched = Watched}) -> maps:keys(Watched).

%% Messages to the sockets
-doc """
All begin anew with these messages, those that are full when they have room; none that replays.
""".
-spec begin_anew([binary()], readers()) -> readers().
begin_anew(Messages, Readers) ->
    each(
        fun
            (_, #reader{mode = replay} = Reader) -> Reader;
            (Socket, #reader{out = Out} = Reader) when Out < ?UNACKNOWLEDGED ->
                begun(Socket, Messages, Reader);
            (_, Reader) -> Reader#reader{anew = true}
        end,
        Readers
    ).

-doc "Gives what all must have; one that is full gets what is newest when it has room.".
-spec give(topology | findings | alarms, binary(), readers()) -> readers().
give(What, Message, Readers) ->
    each(
        fun
            (_, #reader{mode = replay} = Reader) -> Reader;
            (Socket, #reader{out = Out} = Reader) when Out < ?UNACKNOWLEDGED ->
                send(Socket, Message, Reader);
            (_, Reader) when What =:= topology -> Reader#reader{topology = true};
            (_, Reader) when What =:= findings -> Reader#reader{findings = true};
            (_, Reader) -> Reader#reader{alarms = true}
        end,
        Readers
    ).

-doc "A frame to those that want frames; those that are full miss it.".
-spec give_frame(binary(), readers()) -> readers().
give_frame(Message, #readers{all = All, missed = Missed} = Readers) ->
    Full = length([full || #reader{mode = live, out = Out} <- maps:values(All),
                           Out >= ?UNACKNOWLEDGED]),
    each(
        fun
            (Socket, #reader{mode = live, out = Out} = Reader) when Out < ?UNACKNOWLEDGED ->
                send(Socket, Message, Reader);
            (_, #reader{mode = live, missed = N} = Reader) -> Reader#reader{missed = N + 1};
            (_, Reader) -> Reader
        end,
        Readers#readers{missed = Missed + Full}
    ).

-doc "Events, of which the first has this number.".
-spec give_events(binary(), First :: integer(), readers()) -> readers().
give_events(Message, First, Readers) ->
    each(
        fun
            (_, #reader{mode = replay} = Reader) -> Reader;
            (Socket, #reader{out = Out} = Reader) when Out < ?UNACKNOWLEDGED ->
                send(Socket, Message, Reader);
            (_, #reader{events = none} = Reader) -> Reader#reader{events = First};
            (_, Reader) -> Reader
        end,
        Readers
    ).

-doc "A node's details to those that watch it and have room.".
-spec give_detail(Node :: binary(), binary(), readers()) -> readers().
give_detail(Node, Message, Readers) ->
    each(
        fun(Socket, #reader{mode = Mode, out = Out, watches = Watches} = Reader) ->
            case Mode =:= live andalso Out < ?UNACKNOWLEDGED andalso lists:member(Node, Watches) of
                true -> send(Socket, Message, Reader);
                false -> Reader
            end
        end,
        Readers
    ).

-doc "So many frames or events were lost before they came here.".
-spec leave_out(frames | events, non_neg_integer(), readers()) -> readers().
leave_out(frames, N, Readers) ->
    each(
        fun
            (_, #reader{mode = live, missed = Missed} = Reader) ->
                Reader#reader{missed = Missed + N};
            (_, Reader) -> Reader
        end,
        Readers
    );
leave_out(events, N, Readers) ->
    each(fun(_, Reader) -> without_events(N, Reader) end, Readers).

-doc "A socket has taken a message: it gets what it is owed, as far as it has room.".
-spec acknowledge(pid(), sderl_web_feed:settings(), sderl_web_latest:latest(), readers()) ->
    {sderl_web_latest:latest(), readers()}.
acknowledge(Socket, Settings, Latest, #readers{all = All} = Readers) ->
    case All of
        #{Socket := #reader{out = Out} = Reader} ->
            {Latest1, Reader1} = lists:foldl(
                fun(What, Acc) -> catch_up(What, Socket, Settings, Acc) end,
                {Latest, Reader#reader{out = max(0, Out - 1)}},
                %% The topology before the frames that need it.
                [anew, topology, findings, alarms, events, missed]
            ),
            {Latest1, Readers#readers{all = All#{Socket := Reader1}}};
        #{} -> {Latest, Readers}
    end.

catch_up(_, _, _, {_, #reader{out = Out}} = Acc) when Out >= ?UNACKNOWLEDGED -> Acc;
catch_up(anew, Socket, Settings, {Latest, #reader{anew = true} = Reader}) ->
    {Messages, Latest1} = sderl_web_latest:snapshot(Settings, Latest),
    {Latest1, begun(Socket, Messages, Reader)};
catch_up(topology, Socket, _, {Latest, #reader{topology = true} = Reader}) ->
    newest(topology, Socket, Latest, Reader#reader{topology = false});
catch_up(findings, Socket, _, {Latest, #reader{findings = true} = Reader}) ->
    newest(findings, Socket, Latest, Reader#reader{findings = false});
catch_up(alarms, Socket, _, {Latest, #reader{alarms = true} = Reader}) ->
    newest(alarms, Socket, Latest, Reader#reader{alarms = false});
catch_up(events, Socket, _, {Latest, #reader{events = From} = Reader}) when From =/= none ->
    {Message, Gone} = sderl_web_latest:encode_events(From, Latest),
    {Latest, send(Socket, Message, without_events(Gone, Reader#reader{events = none}))};
catch_up(missed, Socket, _, {Latest, #reader{missed = Frames, events_missed = Events} = Reader})
  when Frames + Events > 0 ->
    Message = iolist_to_binary(sderl_web_json:missed(Frames, Events)),
    {Latest, send(Socket, Message, Reader#reader{missed = 0, events_missed = 0})};
catch_up(_, _, _, Acc) ->
    Acc.

newest(What, Socket, Latest, Reader) ->
    {Message, Latest1} = sderl_web_latest:encode(What, Latest),
    {Latest1, send(Socket, Message, Reader)}.

each(Fun, #readers{all = All} = Readers) -> Readers#readers{all = maps:map(Fun, All)}.

begun(Socket, Messages, Reader) ->
    lists:foldl(
        fun(Message, Acc) -> send(Socket, Message, Acc) end,
        Reader#reader{anew = false, topology = false, findings = false, alarms = false,
                      events = none, missed = 0, events_missed = 0},
        Messages
    ).

send(Socket, Message, #reader{out = Out} = Reader) ->
    Socket ! {sderl_web_feed, Message},
    Reader#reader{out = Out + 1}.

without_events(_, #reader{mode = replay} = Reader) -> Reader;
without_events(N, #reader{events_missed = Missed} = Reader) ->
    Reader#reader{events_missed = Missed + N}.
