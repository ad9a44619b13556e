%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_lease).
-moduledoc """
Which of several service members acts. Pure: time and what the store says are handed in.

The store has one lease: a member, an epoch and a beat. The member that holds it writes the next
beat every 2 s, and acts for `hold_ms/0` after it *began* to write the last beat that was
accepted. Another member that has seen no new beat for `take_over_ms/0`, which is longer, writes
itself into the lease with a higher epoch. Every write names the lease that it replaces, so of two
simultaneous writes one fails.

A member that stops in order gives the lease back when it acts no more, so that another need not
wait.

Clocks of different members are never compared: each member measures how long it has waited by its
own clock. When a member claims the lease `take_over_ms/0` after it saw the last beat, `hold_ms/0`
has already passed for the previous holder, however late that beat was seen. The epoch is for a
holder whose clock stood still meanwhile (a suspended virtual machine): the store and the hosts
refuse whatever has an older epoch. For the same reason a member whose lease has ended claims it
again with a higher epoch.
""".

-export([new/1, see/3, next/3, granted/3, failed/2, give_back/1]).
-export([acts/2, until/1, holder/1, quiet_ms/2]).
-export([hold_ms/0, take_over_ms/0]).
-export_type([lease/0, state/0, write/0]).

-doc """
`member` is the one that may act, `none` after the lease was given back. Every claim has a higher
epoch than the one before.
""".
-type lease() :: #{member := node() | none, epoch := pos_integer(), beat := non_neg_integer()}.

-doc "`from` is what the store has to have when `to` is written.".
-type write() :: #{from := lease() | none, to := lease()}.

-doc "Times are milliseconds of the member's own monotonic clock.".
-opaque state() :: #{
    me := node(),
    seen := unknown | {lease() | none, Since :: integer()},
    held := none | #{epoch := pos_integer(), began := integer()},
    again := integer() | now
}.

-define(RENEW_MS, 2_000).
-define(HOLD_MS, 15_000).
-define(TAKE_OVER_MS, 20_000).

-doc "How long it acts after it began to write the last beat that was accepted.".
-spec hold_ms() -> pos_integer().
hold_ms() -> ?HOLD_MS.

-doc "How long others see no new beat before one of them takes over.".
-spec take_over_ms() -> pos_integer().
take_over_ms() -> ?TAKE_OVER_MS.

-doc "A member that has just started: it holds nothing, whatever the store says.".
-spec new(node()) -> state().
new(Me) -> #{me => Me, seen => unknown, held => none, again => now}.

-doc """
The lease in this member's copy of the store. The copy may be older than what was seen before.
""".
-spec see(lease() | none, Now :: integer(), state()) -> state().
see(Lease, Now, #{seen := unknown} = State) ->
    State#{seen := {Lease, Now}};
see(Lease, Now, #{seen := {Before, _}} = State) ->
    case age(Lease) > age(Before) of
        true -> lost_to(Lease, State#{seen := {Lease, Now}});
        false -> State
    end.

age(none) -> {0, 0};
age(#{epoch := Epoch, beat := Beat}) -> {Epoch, Beat}.

%% Somebody has claimed it since.
lost_to(#{epoch := Other}, #{held := #{epoch := Epoch}} = State) when Other > Epoch ->
    State#{held := none};
lost_to(_, State) ->
    State.

-doc """
What to write now, if anything. A claim gets at least the epoch `Epoch`, so that epochs of a store
that was made anew are higher than those of the old one.
""".
-spec next(Now :: integer(), Epoch :: pos_integer(), state()) -> write() | nothing.
next(_, _, #{seen := unknown}) ->
    nothing;
next(Now, Epoch, #{seen := {Seen, Since}, held := Held, me := Me, again := Again}) ->
    case {Seen, Held} of
        {#{epoch := Mine}, #{epoch := Mine, began := Began}} when Now - Began < ?HOLD_MS ->
            write_if(Again =:= now orelse Now >= Again, Seen, beat(Seen));
        {none, _} ->
            #{from => none, to => claim(Me, Epoch, 0)};
        {#{member := none, epoch := Last}, _} ->
            #{from => Seen, to => claim(Me, Epoch, Last)};
        %% This member's lease has ended, or is from before the member was restarted.
        {#{member := Me, epoch := Last}, _} ->
            #{from => Seen, to => claim(Me, Epoch, Last)};
        {#{epoch := Last}, _} ->
            write_if(Now - Since >= ?TAKE_OVER_MS, Seen, claim(Me, Epoch, Last))
    end.

write_if(true, From, To) -> #{from => From, to => To};
write_if(false, _, _) -> nothing.

beat(#{beat := Beat} = Lease) -> Lease#{beat := Beat + 1}.

claim(Me, Epoch, Last) -> #{member => Me, epoch => max(Epoch, Last + 1), beat => 0}.

-doc "A write was accepted that began at `Began`.".
-spec granted(write(), Began :: integer(), state()) -> state().
granted(#{to := #{epoch := Epoch} = Lease}, Began, #{held := Held} = State) ->
    Latest = case Held of
                 #{epoch := Epoch, began := Before} -> max(Began, Before);
                 _ -> Began
             end,
    %% A later claim may have been seen already.
    #{seen := {Newest, _}} = Seeing = see(Lease, Began, State),
    lost_to(Newest, Seeing#{held := #{epoch => Epoch, began => Latest},
                            again := Began + ?RENEW_MS}).

-doc "A write was not accepted, or it is not known whether it was. It is tried again soon.".
-spec failed(Now :: integer(), state()) -> state().
failed(Now, State) -> State#{again := Now + ?RENEW_MS div 4}.

-doc """
The last write of a member that ends. Its work has ended, and none of its writes is under way.
""".
-spec give_back(state()) -> write() | nothing.
give_back(#{seen := {#{epoch := Mine} = Seen, _}, held := #{epoch := Mine}}) ->
    #{from => Seen, to => (beat(Seen))#{member := none}};
give_back(_) ->
    nothing.

-doc "Whether this member acts now, and with which epoch.".
-spec acts(Now :: integer(), state()) -> {true, Epoch :: pos_integer()} | false.
acts(Now, #{held := #{epoch := Epoch, began := Began}}) when Now - Began < ?HOLD_MS ->
    {true, Epoch};
acts(_, _) ->
    false.

-doc "Until when it acts if no further beat is accepted.".
-spec until(state()) -> integer() | none.
until(#{held := #{began := Began}}) when is_integer(Began) -> Began + ?HOLD_MS;
until(#{held := none}) -> none.

-doc "For how long it has seen no newer lease.".
-spec quiet_ms(Now :: integer(), state()) -> non_neg_integer().
quiet_ms(Now, #{seen := {_, Since}}) when is_integer(Now), is_integer(Since) -> Now - Since;
quiet_ms(_, #{seen := unknown}) -> ?TAKE_OVER_MS.

-doc "The holder of the lease, as far as this member knows.".
-spec holder(state()) -> node() | none.
holder(#{seen := {#{member := Member}, _}}) -> Member;
holder(_) -> none.
