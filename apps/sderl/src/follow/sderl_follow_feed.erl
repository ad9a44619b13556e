%% SPDX-License-Identifier: Apache-2.0
-module(sderl_follow_feed).
-moduledoc false.
%% How a member keeps the copies that other nodes have of a group: what it sends to which follower,
%% and when. Pure; `sderl_feeder` runs it, `sderl_follow_copy` is the other end.
%%
%% The member numbers the names that change. A follower sends its position, and gets the rows of the
%% names that changed after it, as they are when they are sent. So a name that changed ten times is
%% sent once, and the next message makes up for a lost one. A follower without a position, or with
%% one before the beginning of the log, gets all rows in pieces and then the changes since the first
%% piece was read.
%%
%% A follower never delays the group: the group's process sends the names of each batch to its own
%% node's feeder and does not know the followers. Each follower has one message out at a time, of a
%% bounded size. A follower that does not confirm costs only a number, and gets the missed changes
%% when it does. A follower that falls behind the log begins again with all rows, and a follower
%% that is silent for `?GONE_MS` is forgotten.
%%
%% The stamp is the time at which the follower asked. It comes back with the message that brings all
%% that this member knew when the question came. So the follower knows by its own clock how old its
%% copy is at most.

-export([new/1, new/2, step/4, stop/2]).
-export_type([feed/0, limits/0, source/0, event/0, effect/0]).

-define(GONE_MS, 10_000).
-define(SLOW_MS, 3000).
%% Changes that come within this time are sent together; while many come, within a longer time.
-define(SOON_MS, 10).
-define(BUSY_MS, 50).
-define(BUSY, 100).
%% A change of more than single names seldom comes alone.
-define(ALL_MS, 200).

-doc """
At most so many rows in a message, and so many bytes unless it is a single row; `log`: changes that
are kept for followers that are behind.
""".
-type limits() :: #{rows := pos_integer(), bytes := pos_integer(), log := pos_integer()}.

-doc """
How rows are read: one by its name, all of them with a cursor, and an upper bound of their number
(above `Most` only if there are more). A row that exists from `first` until the last `next` is read.
""".
-type source() :: #{
    row := fun((Name :: term()) -> sderl_row:t() | none),
    first := fun((Rows :: pos_integer()) -> {[sderl_row:t()], Last :: boolean(), Cursor :: term()}),
    next := fun((Cursor :: term()) -> {[sderl_row:t()], Last :: boolean(), Cursor :: term()}),
    stop := fun((Cursor :: term()) -> term()),
    count := fun((Most :: pos_integer()) -> non_neg_integer())
}.

-doc """
`all`: rows changed whose names are not known, so positions are void. `push`: the time of the effect
`{push, Ms}` is over.
""".
-type event() ::
    {want, node(), sderl_follow_wire:want()}
    | {changed, Names :: [term()]}
    | {all, sderl_follow_wire:feed()}
    | push
    | tick.

-doc "`idle`: there are no followers any more.".
-type effect() :: {send, node(), sderl_follow_wire:told()} | {push, Ms :: non_neg_integer()} | idle.

%% A snapshot that is being sent: the piece that is out, the rows that were read after it, and the
%% cursor.
-record(snap, {
    number :: pos_integer(),
    piece = 0 :: non_neg_integer(),
    out = [] :: [sderl_row:t()],
    rest = [] :: [sderl_row:t()],
    cursor :: term(),
    read = false :: boolean(),
    %% The position at which it begins, and the question that it answers.
    base :: non_neg_integer(),
    stamp :: sderl_follow_wire:stamp() | none
}).

-record(follower, {
    at = none :: none | non_neg_integer() | #snap{},
    %% The end of the delta that is not confirmed yet.
    sent = none :: none | non_neg_integer(),
    heard :: integer(),
    stamp = none :: sderl_follow_wire:stamp() | none,
    most :: pos_integer()
}).

-record(feed, {
    id :: sderl_follow_wire:feed(),
    limits :: limits(),
    %% Changes are numbered up to `head`; those up to `floor` are not kept.
    head = 0 :: non_neg_integer(),
    floor = 0 :: non_neg_integer(),
    log = #{} :: #{pos_integer() => Name :: term()},
    snapshots = 0 :: non_neg_integer(),
    followers = #{} :: #{node() => #follower{}},
    due = false :: boolean(),
    %% `head` at the last push, and whether many changes came since the one before.
    pushed = 0 :: non_neg_integer(),
    is_busy = false :: boolean()
}).
-opaque feed() :: #feed{}.

-spec new(sderl_follow_wire:feed()) -> feed().
new(Id) -> new(Id, #{rows => 2000, bytes => 65_536, log => 50_000}).

-spec new(sderl_follow_wire:feed(), limits()) -> feed().
new(Id, Limits) -> #feed{id = Id, limits = Limits}.

-doc "Ends the reading of rows.".
-spec stop(source(), feed()) -> ok.
stop(Source, #feed{followers = Followers}) ->
    maps:foreach(fun(_, Follower) -> stop_reading(Follower, Source) end, Followers).

-spec step(Now :: integer(), event(), source(), feed()) -> {[effect()], feed()}.
step(_, {want, Node, stop}, Source, F) -> {[], forget(Node, Source, F)};
step(Now, {want, Node, {want, Position, Stamp, Most}}, Source, #feed{followers = Fs} = F) ->
    Before = maps:get(Node, Fs, #follower{heard = Now, most = Most}),
    Heard = Before#follower{
        heard = Now,
        most = Most,
        stamp = case Stamp of none -> Before#follower.stamp; _ -> Stamp end
    },
    wanted(Node, Position, Stamp, Heard, Source, F);
step(_, {changed, Names}, _, #feed{followers = Fs, head = Head} = F) when map_size(Fs) =:= 0 ->
    %% Counted though not kept: a follower that returns must not take itself for up to date.
    After = Head + length(Names),
    {[], F#feed{head = After, floor = After, log = #{}}};
step(_, {changed, Names}, _, #feed{is_busy = Busy} = F) ->
    soon(case Busy of true -> ?BUSY_MS; false -> ?SOON_MS end,
         trim(lists:foldl(fun note/2, F, Names)));
step(_, {all, Id}, Source, #feed{followers = Fs} = F) ->
    ok = stop(Source, F),
    Void = maps:map(fun(_, Follower) -> Follower#follower{at = none, sent = none} end, Fs),
    soon(?ALL_MS, F#feed{id = Id, head = 0, floor = 0, log = #{}, pushed = 0, followers = Void});
step(_, push, Source, #feed{followers = Fs, head = Head, pushed = Before} = F) ->
    %% Most followers are at the same position: their message is made once.
    {Ready, Begin} = maps:fold(fun
        (Node, #follower{at = none}, {R, B}) -> {R, [Node | B]};
        (Node, #follower{at = At, sent = none}, {R, B}) when is_integer(At), At < Head ->
            {R#{At => [Node | maps:get(At, R, [])]}, B};
        (_, _, Acc) -> Acc
    end, {#{}, []}, Fs),
    {Deltas, F1} = maps:fold(fun(At, Nodes, {Effects, Acc}) ->
        pushed(At, Nodes, Source, Effects, Acc)
    end, {[], F#feed{due = false, pushed = Head, is_busy = Head - Before >= ?BUSY}}, Ready),
    lists:foldl(fun(Node, {Effects, Acc}) ->
        {More, Acc1} = snapshot(Node, map_get(Node, Acc#feed.followers), Source, Acc),
        {More ++ Effects, Acc1}
    end, {Deltas, F1}, Begin);
step(Now, tick, Source, #feed{followers = Fs} = F) ->
    Gone = [Node || Node := #follower{heard = Heard} <- Fs, Now - Heard > ?GONE_MS],
    case lists:foldl(fun(Node, Acc) -> forget(Node, Source, Acc) end, F, Gone) of
        #feed{followers = Left} = F1 when map_size(Left) =:= 0 -> {[idle], F1};
        F1 -> {[], confirmed(F1)}
    end.

soon(_, #feed{due = true} = F) -> {[], F};
soon(_, #feed{followers = Fs} = F) when map_size(Fs) =:= 0 -> {[], F};
soon(Ms, F) -> {[{push, Ms}], F#feed{due = true}}.

put(Node, Follower, #feed{followers = Fs} = F) -> F#feed{followers = Fs#{Node => Follower}}.

forget(Node, Source, #feed{followers = Fs} = F) ->
    case maps:take(Node, Fs) of
        {Follower, Rest} ->
            stop_reading(Follower, Source),
            F#feed{followers = Rest};
        error -> F
    end.

stop_reading(#follower{at = #snap{read = false, cursor = Cursor}}, #{stop := Stop}) -> Stop(Cursor);
stop_reading(_, _) -> ok.

%% ---------------------------------------------------------------- the log

note(Name, #feed{head = Head, log = Log} = F) ->
    F#feed{head = Head + 1, log = Log#{Head + 1 => Name}}.

trim(#feed{head = Head, limits = #{log := Most}} = F) -> floor(Head - Most, F).

%% Changes that every follower has are not kept.
confirmed(#feed{followers = Fs, head = Head} = F) ->
    floor(lists:min([Head | [position(At) || _ := #follower{at = At} <- Fs]]), F).

position(#snap{base = Base}) -> Base;
position(none) -> 0;
position(At) -> At.

floor(New, #feed{floor = Floor} = F) when New =< Floor -> F;
floor(New, #feed{floor = Floor, log = Log} = F) ->
    F#feed{floor = New, log = maps:without(lists:seq(Floor + 1, New), Log)}.

%% ---------------------------------------------------------------- questions

%% Only a question begins a snapshot, and not every one while the first piece is under way. If
%% confirmations did, two that no longer fit, as after a duplicate, would void each other's
%% snapshots without end.
wanted(Node, {at, Id, Seq}, Stamp, Follower0, Source,
       #feed{id = Id, head = Head, floor = Floor} = F)
  when Seq >= Floor, Seq =< Head ->
    stop_reading(Follower0, Source),
    Follower = Follower0#follower{at = Seq, sent = none},
    case Stamp of
        %% A confirmation is not answered, unless there is more.
        none when Seq =:= Head -> {[], put(Node, Follower, F)};
        _ ->
            {Delta, To} = delta(Seq, Stamp, Source, F),
            {[{send, Node, Delta}], put(Node, sent(To, Follower), F)}
    end;
wanted(Node, {piece, Id, N, K}, Stamp, #follower{at = #snap{number = N} = Snap} = Follower, Source,
       #feed{id = Id} = F) ->
    case Snap of
        #snap{piece = K} -> piece(Node, Snap, Follower, Source, F);
        %% A piece that is asked for again was lost; one that is only confirmed again was not.
        #snap{piece = Out} when Out =:= K + 1, Stamp =/= none ->
            {[{send, Node, told_piece(Snap, F)}], put(Node, Follower, F)};
        _ -> {[], put(Node, Follower, F)}
    end;
wanted(Node, _, none, Follower, _, #feed{followers = Fs} = F) ->
    {[], case Fs of #{Node := _} -> put(Node, Follower, F); #{} -> F end};
wanted(Node, none, {Life, Ms},
       #follower{at = #snap{piece = 1, stamp = {Life, Asked}} = Snap} = Follower, _, F)
  when Ms - Asked =< ?SLOW_MS ->
    {[{send, Node, told_piece(Snap, F)}], put(Node, Follower, F)};
wanted(Node, _, _, Follower, Source, F) ->
    stop_reading(Follower, Source),
    snapshot(Node, Follower#follower{at = none, sent = none}, Source, F).

sent(To, #follower{at = To} = Follower) -> Follower;
sent(To, Follower) -> Follower#follower{sent = To}.

%% ---------------------------------------------------------------- deltas

pushed(At, Nodes, Source, Effects, #feed{floor = Floor} = F) when At < Floor ->
    lists:foldl(fun(Node, {Es, Acc}) ->
        {More, Acc1} = snapshot(Node, map_get(Node, Acc#feed.followers), Source, Acc),
        {More ++ Es, Acc1}
    end, {Effects, F}, Nodes);
pushed(At, Nodes, Source, Effects, F) ->
    {Delta, To} = delta(At, none, Source, F),
    lists:foldl(fun(Node, {Es, #feed{followers = Fs} = Acc}) ->
        {[{send, Node, Delta} | Es], put(Node, sent(To, map_get(Node, Fs)), Acc)}
    end, {Effects, F}, Nodes).

%% The stamp goes with what brings the follower up to the present.
delta(From, Stamp, #{row := Read}, #feed{id = Id, head = Head, log = Log, limits = Limits}) ->
    #{rows := Most, bytes := Bytes} = Limits,
    {To, Rows, Gone} = changes(From, min(Head, From + Most), Bytes, Log, Read, #{}, [], []),
    Current = case To of
        Head -> Stamp;
        _ -> none
    end,
    {{delta, Id, From, To, Rows, Gone, Current}, To}.

changes(To, To, _, _, _, _, Rows, Gone) -> {To, Rows, Gone};
changes(At, _, Left, _, _, _, Rows, Gone) when Left =< 0 -> {At, Rows, Gone};
changes(At, To, Left, Log, Read, Seen, Rows, Gone) ->
    #{At + 1 := Name} = Log,
    case is_map_key(Name, Seen) orelse Read(Name) of
        true -> changes(At + 1, To, Left, Log, Read, Seen, Rows, Gone);
        none ->
            changes(At + 1, To, Left - bytes(Name), Log, Read, Seen#{Name => []}, Rows,
                    [Name | Gone]);
        Row ->
            changes(At + 1, To, Left - bytes(Row), Log, Read, Seen#{Name => []}, [Row | Rows], Gone)
    end.

bytes(Term) -> erlang:external_size(Term).

%% ---------------------------------------------------------------- all rows

snapshot(Node, #follower{most = Most, stamp = Stamp} = Follower, Source, F0) ->
    #{count := Count, first := First} = Source,
    case Count(Most) of
        Names when Names > Most ->
            #feed{followers = Fs} = F0,
            {[{send, Node, {no, {over, Names}}}], F0#feed{followers = maps:remove(Node, Fs)}};
        _ ->
            #feed{head = Head, snapshots = N, limits = #{rows := AtOnce}} = F0,
            {Rows, Last, Cursor} = First(AtOnce),
            Snap = #snap{number = N + 1, rest = Rows, cursor = Cursor, read = Last, base = Head,
                         stamp = Stamp},
            piece(Node, Snap, Follower#follower{sent = none}, Source, F0#feed{snapshots = N + 1})
    end.

%% The next piece. The last one may be empty.
piece(Node, Snap0, Follower, Source, #feed{limits = #{bytes := Bytes}} = F) ->
    #snap{piece = K} = Snap1 = more(Snap0, Source),
    {Out, Rest} = cut(Snap1#snap.rest, Bytes, []),
    Snap = more(Snap1#snap{piece = K + 1, out = Out, rest = Rest}, Source),
    {[{send, Node, told_piece(Snap, F)}], put(Node, Follower#follower{at = Snap}, F)}.

told_piece(#snap{number = N, piece = K, out = Rows, stamp = Stamp} = Snap, #feed{id = Id}) ->
    End = case Snap of
        #snap{rest = [], read = true, base = Base} -> {last, Base};
        _ -> more
    end,
    {piece, Id, N, K, Rows, End, Stamp}.

%% Rows to send, unless all were read.
more(#snap{rest = [], read = false, cursor = Cursor} = Snap, #{next := Next} = Source) ->
    {Rows, Last, Cursor1} = Next(Cursor),
    more(Snap#snap{rest = Rows, read = Last, cursor = Cursor1}, Source);
more(Snap, _) -> Snap.

cut([Row | Rows], Left, Cut) when Left > 0 -> cut(Rows, Left - bytes(Row), [Row | Cut]);
cut(Rest, _, Cut) -> {Cut, Rest}.
