%% SPDX-License-Identifier: Apache-2.0
%% Changes of the component that the coordinator has yet to order, in its own memory only
%% (`#office.changes`). Private to the sderl_core* modules; `sderl_core_decide` makes items of a
%% batch of them.
-ifndef(SDERL_CORE_CHANGE_HRL).
-define(SDERL_CORE_CHANGE_HRL, true).

%% The component changed: homes whose names go, and members that count from now on.
-record(change_view, {
    drops :: [node()],
    live :: [node()]
}).

%% And `rehome`: a new coordinator is the home of names of processes on nodes that left.

%% Forget members that are away.
-record(forget, {
    nodes :: [node()],
    time :: non_neg_integer()       % system time, seconds
}).

%% Drop what is known of nodes that were removed or forgotten before that time.
-record(prune, {
    before :: integer()             % system time, seconds
}).

%% A member, or the state of one, told of a membership. It catches up once that is ordered.
-record(merge_membership, {
    membership :: sderl_membership:t(),
    from :: node()
}).

%% A member has brought a piece of its shard.
-record(order_shard, {
    member :: node(),
    reading :: pos_integer(),
    piece :: pos_integer(),
    rows :: [sderl_row:t()],
    rest :: more | {last, position(), session() | none}
}).

%% Removed, and silent when they were to acknowledge it.
-record(forsake, {
    nodes :: [node()]
}).

%% The resolver decided a clash, of these two rows.
-record(decide_clash, {
    name :: term(),
    ours :: sderl_row:t(),
    theirs :: sderl_row:t(),
    keep :: pid() | none,
    effects :: [term()]
}).

%% All have the decision of a clash.
-record(settle_clash, {
    name :: term()
}).

%% The clash is over for which a third row waited, under this key: it is brought again.
-record(contend, {
    key :: term()
}).

-type change() ::
    #change_view{}
    | rehome
    | #forget{}
    | #prune{}
    | #merge_membership{}
    | #order_shard{}
    | #forsake{}
    | #decide_clash{}
    | #settle_clash{}
    | #contend{}.

-endif.
