%% SPDX-License-Identifier: Apache-2.0
-module(sderl_follow_wire).
-moduledoc false.
%% The messages between a follower of a group and the member that feeds it. Both ends have each
%% message checked here first.
%%
%% | from the follower | |
%% |---|---|
%% | `{want, Position, Stamp, Most}` | what it has, when it asked, how many names it takes; without
%% a stamp it only confirms, and is answered only if there is more |
%% | `stop` | it no longer follows |
%%
%% | from the member | |
%% |---|---|
%% | `{piece, Feed, Snapshot, Number, [Row], more \| {last, Position}, Stamp}` | a part of all rows |
%% | `{delta, Feed, From, To, [Row], Gone :: [Name], Stamp \| none}` | what changed after `From`, up to `To` |
%% | `{no, not_member \| {over, Names}}` | ask another member; the group has more names than are taken |
%%
%% Each travels as `{sderl_follow, Version, FromNode, Group, Message}`.

-export([is_want/1, is_told/1]).
-export_type([feed/0, position/0, stamp/0, want/0, told/0]).

%% No counted number comes near this.
-define(LARGEST, 1 bsl 60).

-doc """
Names one life of a feed: the identity of the group, the member, and a number that distinguishes its
feeds. A position is valid in its own feed only.
""".
-type feed() :: {Uid :: binary(), node(), Life :: integer()}.

-doc "The position of a follower: nothing, all up to a number, or pieces up to a number.".
-type position() ::
    none
    | {at, feed(), non_neg_integer()}
    | {piece, feed(), Snapshot :: pos_integer(), Number :: pos_integer()}.

-doc """
Which copy asked, and when by the clock of its node. It comes back with the message that completes
what the member knew when it was asked.
""".
-type stamp() :: {Life :: integer(), Ms :: integer()}.

-type want() :: {want, position(), stamp() | none, Most :: pos_integer()} | stop.

-type told() ::
    {piece, feed(), Snapshot :: pos_integer(), Number :: pos_integer(), [sderl_row:t()],
     more | {last, non_neg_integer()}, stamp() | none}
    | {delta, feed(), From :: non_neg_integer(), To :: non_neg_integer(), [sderl_row:t()],
       Gone :: [term()], stamp() | none}
    | {no, not_member | {over, Names :: non_neg_integer()}}.

-doc "Whether a term is a message of a follower.".
-spec is_want(term()) -> boolean().
is_want(stop) -> true;
is_want({want, Position, Stamp, Most}) ->
    is_position(Position) andalso is_stamp(Stamp) andalso is_count(Most) andalso Most > 0;
is_want(_) -> false.

-doc "Whether a term is a message of a member to a follower.".
-spec is_told(term()) -> boolean().
is_told({piece, Feed, Snapshot, Number, Rows, End, Stamp}) ->
    is_feed(Feed) andalso is_count(Snapshot) andalso is_count(Number) andalso are_rows(Rows)
        andalso is_end(End) andalso is_stamp(Stamp);
is_told({delta, Feed, From, To, Rows, Gone, Stamp}) when length(Gone) >= 0 ->
    is_feed(Feed) andalso is_count(From) andalso is_count(To) andalso From =< To
        andalso are_rows(Rows) andalso is_stamp(Stamp);
is_told({no, not_member}) -> true;
is_told({no, {over, Names}}) -> is_count(Names);
is_told(_) -> false.

is_position(none) -> true;
is_position({at, Feed, Number}) -> is_feed(Feed) andalso is_count(Number);
is_position({piece, Feed, Snapshot, Number}) ->
    is_feed(Feed) andalso is_count(Snapshot) andalso is_count(Number);
is_position(_) -> false.

is_feed({Uid, Node, Life}) -> is_binary(Uid) andalso is_atom(Node) andalso is_integer(Life);
is_feed(_) -> false.

is_stamp(none) -> true;
is_stamp({Life, Ms}) -> is_integer(Life) andalso is_integer(Ms);
is_stamp(_) -> false.

is_end(more) -> true;
is_end({last, Number}) -> is_count(Number);
is_end(_) -> false.

is_count(N) -> is_integer(N) andalso N >= 0 andalso N < ?LARGEST.

are_rows([Row | Rows]) -> sderl_wire:row(Row) andalso are_rows(Rows);
are_rows(Rest) -> Rest =:= [].
