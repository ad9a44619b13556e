%% SPDX-License-Identifier: Apache-2.0
-module(sderl_follow_copy).
-moduledoc false.
%% How a node keeps its copy of a group that it is not in: which members it asks, what it does with
%% the answers, and when the copy may be read. Pure; `sderl_follower` runs it, `sderl_follow_feed`
%% is the other end, and `sderl_follow_wire` has the messages.
%%
%% One member feeds the copy. The follower asks it once in a beat with the time by its own clock,
%% and the answer with that time says that the copy has all that the member knew when it was asked.
%% The copy may be read for `max_age` after that time. A message that does not fit the position is
%% ignored: the next beat tells the member the position of this copy.
%%
%% If the member gives no sign for three beats, its link breaks, or it is no member any more, the
%% follower asks another one, which sends all rows. They replace the present rows one by one, and
%% rows that no piece brought are deleted after the last piece. Meanwhile the age of the copy grows.
%% Rows of groups with different identities are never mixed: the copy is cleared first.

-export([new/4, step/3, stop/1, info/2, beat_ms/1]).
-export_type([copy/0, event/0, effect/0, info/0]).

-define(BEAT_MS, 1000).
-define(SILENT_BEATS, 3).
%% After so long a member of a group with too many names is asked again.
-define(OVER_MS, 30_000).

-record(copy, {
    life :: pos_integer(),
    most :: pos_integer(),
    max_age :: pos_integer(),
    feeder = none :: none | node(),
    %% The members that could be asked at the last beat, and those asked in vain since an answer.
    members = [] :: [node()],
    tried = [] :: [node()],
    position = none :: sderl_follow_wire:position(),
    uid = none :: none | binary(),
    %% The snapshot that began last, and the generation of its rows.
    snapshot = none :: none | {sderl_follow_wire:feed(), pos_integer()},
    generation :: non_neg_integer(),
    heard :: integer(),
    last :: integer(),
    %% All that the feeder knew then is here; `none` until the copy is whole.
    as_of = none :: none | integer(),
    is_stale = false :: boolean(),
    over = none :: none | {Names :: non_neg_integer(), Since :: integer()},
    %% Whether the event that there are too many names was reported, since the copy was whole.
    is_told_over = false :: boolean()
}).
-opaque copy() :: #copy{}.

-doc """
`tick` comes once in a beat with the members that can be asked, the best first; `down` when the link
to a node is gone, with those that are left. `size`: the number of rows now.
""".
-type event() ::
    {tick, [node()]}
    | {down, node(), [node()]}
    | {told, node(), sderl_follow_wire:told()}
    | {size, non_neg_integer()}.

-doc """
`put` and `delete` change rows, `sweep` deletes those of other generations than the given one,
`clear` all of them. `whole`: the copy may be read, and is of that time.
""".
-type effect() ::
    {send, node(), sderl_follow_wire:want()}
    | {put, Generation :: pos_integer(), [sderl_row:t()]}
    | {delete, [Name :: term()]}
    | {sweep, Generation :: pos_integer()}
    | {whole, AsOf :: integer()}
    | clear
    | {event, copy_whole | copy_stale | copy_too_large, map()}.

-type info() :: #{
    state := seeking | loading | whole | stale | too_large,
    from := node() | none,
    age_ms := non_neg_integer() | undefined
}.

-doc """
`Life` distinguishes the questions and rows of this copy from those of earlier ones on this node: it
grows from one to the next.
""".
-spec new(Now :: integer(), Life :: pos_integer(), Most :: pos_integer(),
          MaxAge :: pos_integer()) ->
    copy().
new(Now, Life, Most, MaxAge) ->
    #copy{life = Life, most = Most, max_age = MaxAge, generation = Life bsl 32, heard = Now,
          last = Now}.

-doc "How often a copy of this maximal age asks: so often that an answer may be lost.".
-spec beat_ms(MaxAge :: pos_integer()) -> pos_integer().
beat_ms(MaxAge) -> max(1, min(?BEAT_MS, MaxAge div ?SILENT_BEATS)).

-spec info(Now :: integer(), copy()) -> info().
info(Now,
     #copy{feeder = Feeder, as_of = AsOf, max_age = MaxAge, position = Position, over = Over}) ->
    Age = case AsOf of
        none -> undefined;
        _ -> max(0, Now - AsOf)
    end,
    State = if
        Over =/= none -> too_large;
        is_integer(Age), Age =< MaxAge -> whole;
        is_integer(Age) -> stale;
        Position =:= none -> seeking;
        true -> loading
    end,
    #{state => State, from => Feeder, age_ms => Age}.

-doc "The actions when no process on this node follows the group any more.".
-spec stop(copy()) -> [effect()].
stop(#copy{feeder = none}) -> [clear];
stop(#copy{feeder = Feeder}) -> [{send, Feeder, stop}, clear].

-spec step(Now :: integer(), event(), copy()) -> {[effect()], copy()}.
step(Now, {tick, Members}, C0) ->
    {Events, C} = look_at_age(Now, awake(Now, C0#copy{members = Members})),
    {Effects, C1} = beat(Now, C),
    {Events ++ Effects, C1};
step(Now, {down, Node, Members}, #copy{feeder = Node} = C) ->
    %% The member's node may be gone, or be reached by another way.
    case Members -- [Node] of
        [] -> {[], C#copy{members = Members}};
        _ -> ask_another(Now, C#copy{members = Members})
    end;
step(_, {down, _, Members}, C) -> {[], C#copy{members = Members}};
step(Now, {told, Node, Told}, #copy{feeder = Node, over = none} = C) ->
    told(Now, Told, C#copy{heard = Now, tried = []});
step(_, {told, _, _}, C) -> {[], C};
step(Now, {size, Names}, #copy{most = Most, over = none} = C) when Names > Most ->
    {Effects, C1} = too_large(Now, Names, C),
    {[{send, C#copy.feeder, stop} || C#copy.feeder =/= none] ++ Effects, C1};
step(_, {size, _}, C) -> {[], C}.

%% A node that was itself stopped cannot tell whether the other was silent.
awake(Now, #copy{last = Last, heard = Heard, max_age = MaxAge} = C) ->
    case Now - Last > 2 * beat_ms(MaxAge) of
        true -> C#copy{last = Now, heard = Heard + Now - Last};
        false -> C#copy{last = Now}
    end.

look_at_age(Now, #copy{as_of = AsOf, max_age = MaxAge, is_stale = false} = C)
  when is_integer(AsOf), Now - AsOf > MaxAge ->
    {[{event, copy_stale, #{age_ms => Now - AsOf}}], C#copy{is_stale = true}};
look_at_age(_, C) -> {[], C}.

%% ---------------------------------------------------------------- whom to ask

beat(Now, #copy{over = {_, Since}} = C) when Now - Since < ?OVER_MS -> {[], C};
beat(Now, #copy{over = {_, _}} = C) -> beat(Now, C#copy{over = none});
beat(Now, #copy{feeder = none} = C) -> ask_another(Now, C);
beat(Now, #copy{feeder = Feeder, members = Members, heard = Heard, max_age = MaxAge} = C) ->
    Silent = Now - Heard > ?SILENT_BEATS * beat_ms(MaxAge),
    case lists:member(Feeder, Members) of
        true when not Silent -> {[ask(Now, C)], C};
        _ -> ask_another(Now, C)
    end.

%% Each member once, and then all of them again.
ask_another(Now, #copy{feeder = Feeder, members = Members, tried = Tried0} = C0) ->
    Tried = case lists:member(Feeder, Tried0) orelse Feeder =:= none of
        true -> Tried0;
        false -> [Feeder | Tried0]
    end,
    {Next, Tried1} = case {Members -- Tried, Members} of
        {[Node | _], _} -> {Node, Tried};
        {[], [Node | _]} -> {Node, []};
        {[], []} -> {none, []}
    end,
    C = C0#copy{feeder = Next, tried = Tried1, position = none, snapshot = none, heard = Now},
    {[ask(Now, C) || Next =/= none], C}.

ask(Now, #copy{feeder = Feeder, position = Position, life = Life, most = Most}) ->
    {send, Feeder, {want, Position, {Life, Now}, Most}}.

confirm(#copy{feeder = Feeder, position = Position, most = Most}) ->
    {send, Feeder, {want, Position, none, Most}}.

%% ---------------------------------------------------------------- what a member tells

told(_, {no, not_member}, #copy{feeder = Feeder, tried = Tried} = C) ->
    %% Another one is asked at the next beat, not at once: the group may be ending.
    {[], C#copy{feeder = none, position = none, snapshot = none, tried = [Feeder | Tried]}};
told(Now, {no, {over, Names}}, C) -> too_large(Now, Names, C);
told(Now, {piece, Feed, Number, 1, Rows, End, Stamp}, #copy{snapshot = Before} = C) ->
    case is_later(Feed, Number, Before) andalso is_news(Stamp, C) of
        true ->
            {Cleared, C1} = of_uid(element(1, Feed), C),
            Generation = C1#copy.generation + 1,
            C2 = C1#copy{snapshot = {Feed, Number}, generation = Generation},
            {Effects, C3} = piece(Now, {piece, Feed, Number, 1}, Rows, End, Stamp, C2),
            {Cleared ++ Effects, C3};
        false -> {[], C}
    end;
told(Now, {piece, Feed, Number, K, Rows, End, Stamp},
     #copy{position = {piece, Feed, Number, Before}} = C) when K =:= Before + 1 ->
    piece(Now, {piece, Feed, Number, K}, Rows, End, Stamp, C);
told(Now, {delta, Feed, From, To, Rows, Gone, Stamp}, #copy{position = {at, Feed, At}} = C)
  when From =< At ->
    case To > At of
        true ->
            C1 = C#copy{position = {at, Feed, To}},
            {Whole, C2} = whole(Now, Stamp, C1),
            {[{put, C#copy.generation, Rows}, {delete, Gone} | Whole] ++ [confirm(C1)], C2};
        %% The news is that there is nothing new.
        false -> whole(Now, Stamp, C)
    end;
told(_, _, C) -> {[], C}.

is_later(Feed, Number, {Feed, Before}) -> Number > Before;
is_later(_, _, _) -> true.

%% Rows that were read before this copy was whole would make it older than its time says.
is_news({Life, Ms}, #copy{life = Life, as_of = AsOf}) -> AsOf =:= none orelse Ms >= AsOf;
is_news(_, _) -> false.

of_uid(Uid, #copy{uid = Uid} = C) -> {[], C};
of_uid(Uid, #copy{uid = none} = C) -> {[], C#copy{uid = Uid}};
of_uid(Uid, C) -> {[clear], (cleared(C))#copy{uid = Uid}}.

cleared(C) -> C#copy{position = none, snapshot = none, as_of = none, is_stale = false}.

piece(_, Position, Rows, more, _, #copy{generation = Generation} = C0) ->
    C = C0#copy{position = Position},
    {[{put, Generation, Rows}, confirm(C)], C};
piece(Now, {piece, Feed, _, _}, Rows, {last, At}, Stamp, #copy{generation = Generation} = C0) ->
    C = C0#copy{position = {at, Feed, At}},
    {Whole, C1} = whole(Now, Stamp, C),
    {[{put, Generation, Rows}, {sweep, Generation}] ++ Whole ++ [confirm(C)], C1}.

%% The copy has all that the member knew when it was asked.
whole(Now, {Life, Ms}, #copy{life = Life, as_of = Before, feeder = Feeder} = C)
  when Ms =< Now, Before =:= none orelse Ms > Before ->
    News = [{event, copy_whole, #{node => Feeder}} || Before =:= none orelse C#copy.is_stale],
    {[{whole, Ms} | News], C#copy{as_of = Ms, is_stale = false, is_told_over = false}};
whole(_, _, C) -> {[], C}.

too_large(Now, Names, #copy{most = Most, is_told_over = Told} = C) ->
    {[clear | [{event, copy_too_large, #{names => Names, most => Most}} || not Told]],
     (cleared(C))#copy{over = {Names, Now}, is_told_over = true}}.
