%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_state).
-moduledoc false.
%% Reads and changes of the state that the modules of the group protocol share, one thing at a time:
%% an effect, a message, a new epoch, who is a member. Decides nothing, and calls none of them.

-include("sderl_core.hrl").

-export([fx/2, save/1, send/3, event/3, hello_msg/1, ask/2]).
-export([peer/2, present/2, is_member/2, is_known/2, union/3]).
-export([order/2, is_ordered/2, set_flight/2]).
-export([heard/2, epoch/1, seq/2, batch_of/1]).

%% ---------------------------------------------------------------- effects

-doc "One more effect of this step, after those before it.".
-spec fx(sderl_core:effect(), #s{}) -> #s{}.
fx(E, #s{fx = Fx} = S) -> S#s{fx = [E | Fx]}.

-doc """
Keeps what this member has promised. The process may die between any two effects: its successor must
know what was promised before any other member does, and must not know of a change of rows before
the rows are changed.
""".
-spec save(#s{}) -> #s{}.
save(#s{d = D, saved = D} = S) -> S;
save(#s{d = D} = S) -> fx({durable, D}, S#s{saved = D}).

-doc "Sends a message to a member, if its process is known.".
-spec send(node(), term(), #s{}) -> #s{}.
send(N, Msg, #s{peers = P} = S) ->
    case P of
        #{N := #peer{addr = A}} -> fx({send, A, Msg}, save(S));
        _ -> S
    end.

-doc "An event for subscribers and the log.".
-spec event(atom(), map(), #s{}) -> #s{}.
event(Name, Meta, #s{group = G} = S) -> fx({event, Name, Meta#{group => G}}, S).

-doc "How this member introduces itself.".
-spec hello_msg(#s{}) ->
    {hello, Addr :: term(), Incarnation :: term(), sderl_membership:t(), hello_info()}.
hello_msg(#s{d = D} = S) ->
    Info = #{epoch => D#d.epoch, lineage => D#d.lineage, num => S#s.num, lead => S#s.lead,
             syncing => D#d.syncing},
    Said = case S of
        #s{mode = available, answer = committed} -> Info;
        #s{mode = available, answer = Answer} -> Info#{answer => Answer};
        #s{mode = Mode} -> Info#{mode => Mode}
    end,
    {hello, S#s.addr, S#s.inc, D#d.mem, Said}.

-doc """
Introduces this member to a node and asks it to do so. One that we do not know may know us (it never
heard that it was removed and added again).
""".
-spec ask(node(), #s{}) -> #s{}.
ask(N, S) ->
    {hello, Addr, Inc, Mem, Info} = hello_msg(S),
    fx({hello, N, {hello, Addr, Inc, Mem, Info#{ask => true}}}, S).

%% ---------------------------------------------------------------- members

-doc "What is known of a member's process.".
-spec peer(node(), #s{}) -> #peer{} | undefined.
peer(N, #s{peers = P}) -> maps:get(N, P, undefined).

-doc "Whether the member's process is known, or is this one.".
-spec present(node(), #s{}) -> boolean().
present(N, #s{self = N}) -> true;
present(N, #s{peers = P}) -> is_map_key(N, P).

-doc "Whether the node is a member.".
-spec is_member(node(), #s{}) -> boolean().
is_member(N, #s{d = #d{mem = M}}) -> sderl_membership:is_member(N, M).

-doc """
Whether the node is a member or was forgotten. In a majority group one that an uncommitted batch
removes has a say in that, and is known.
""".
-spec is_known(node(), #s{}) -> boolean().
is_known(N, #s{d = #d{mem = M, before = Before}}) ->
    sderl_membership:is_known(N, M)
        orelse (Before =/= undefined andalso sderl_membership:is_known(N, Before)).

-doc "Two memberships as one. Whatever others have forgotten, this member is here.".
-spec union(sderl_membership:t(), sderl_membership:t(), #s{}) -> sderl_membership:t().
union(A, B, #s{self = Self}) -> sderl_membership:recall(Self, sderl_membership:merge(A, B)).

%% ---------------------------------------------------------------- the coordinator's next batch

-doc "A change of the component that the next batch is to order.".
-spec order(change(), #s{}) -> #s{}.
order(Change, #s{office = #office{changes = Changes} = Office} = S) ->
    S#s{office = Office#office{changes = [Change | Changes]}}.

-doc "Whether a change of that kind waits to be ordered.".
-spec is_ordered(atom(), #s{}) -> boolean().
is_ordered(Kind, #s{office = #office{changes = Changes}}) -> lists:keymember(Kind, 1, Changes).

-doc "The batch that is out is this from now on.".
-spec set_flight(#flight{} | undefined, #s{}) -> #s{}.
set_flight(Flight, #s{office = Office} = S) -> S#s{office = Office#office{flight = Flight}}.

%% ---------------------------------------------------------------- epochs and versions

-doc "Others know of this epoch: one of ours has to be above it.".
-spec heard(epoch(), #s{}) -> #s{}.
heard({Counter, _}, #s{highest = Highest} = S) ->
    S#s{highest = max(Counter, Highest)}.

-doc """
A new epoch, above all heard of. It follows the clock, because a node that comes back empty does not
know which ones its former lives have used, and logs are told apart by them. Where others' epochs
are ahead of our clock (it was set back, say), lives step by different widths.
""".
-spec epoch(#s{}) -> {integer(), node()}.
epoch(#s{self = Self, inc = Inc, highest = Highest, now = Now, clock = Clock,
         d = #d{epoch = {C, _}}}) ->
    Heard = max(C, Highest) + 1,
    case Heard > Now + Clock + 10_000 of
        true -> {Heard + erlang:phash2(Inc, 1024), Self};
        false -> {max(Heard, Now + Clock), Self}
    end.

-doc "A version is an epoch and this number: the batch and the place of the operation in it.".
-spec seq(non_neg_integer(), non_neg_integer()) -> integer().
seq(Num, Pos) -> (Num bsl 24) bor Pos.

-doc "The number of the batch that a version's second element speaks of.".
-spec batch_of(non_neg_integer()) -> non_neg_integer().
batch_of(Seq) -> Seq bsr 24.
