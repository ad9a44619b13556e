%% SPDX-License-Identifier: Apache-2.0
%% The simulated world. Private to the sderl_sim* modules; scripts and tests use sderl_sim.

-include_lib("sderl/src/core/sderl_op.hrl").
-include_lib("sderl/src/core/sderl_row.hrl").

-type epoch() :: {Counter :: integer(), Coordinator :: node()}.
-type position() :: {epoch(), non_neg_integer()}.
-type life() :: {node(), pos_integer()}.
%% A list of operations that a member sent in a session.
-type list_key() :: {Origin :: node(), Session :: integer(), Number :: pos_integer()}.
%% A name that one client alone asks about, or that a node keeps for its whole life.
-type own_name() :: {own, node(), Life :: pos_integer(), integer() | {keep, pos_integer()}}.
%% How many operations others asked on the own name of a client.
-type contest() :: {InAll :: non_neg_integer(), Unanswered :: integer()}.
%% An operation that was asked, and its answer if there is one.
-type asked() :: #{
    op := sderl_core:op(),
    node := node(),
    group := term(),
    life := pos_integer(),
    who := term(),
    since := integer(),
    contest := contest(),
    given_up => true,
    answer => term(),
    at => integer()
}.

%% The protocol's process of one group on one node. `seen` is what sderl_core:inspect/1 says of
%% `st`.
-record(p, {
    id :: pos_integer(),
    st :: sderl_core:state(),
    seen :: map(),
    mail = [] :: [term()],              % newest first
    due = false :: boolean(),           % a step is scheduled
    %% Where it goes on reading for whom: rows, or names that are still to be read.
    cursors = #{} :: #{{chunk | homes, node()} => term()},
    %% of each node the last message, where that is a heartbeat
    heard = #{} :: #{node() => tuple()}
}).

%% A group on a node. The store outlives the process, nothing outlives the node.
-record(m, {
    %% the launch configuration; or every life founds an island
    config = none :: none | island | [node()],
    uid :: undefined | sderl_hello:uid(),   % which group of that name
    first :: undefined | sderl_membership:t(),  % the membership that this life began with
    p :: undefined | #p{},
    store :: undefined | sderl_sim_store:store(),
    %% groups of that name that it left
    gone = #{} :: #{sderl_hello:uid() => {removed | deleted, sderl_membership:t()}},
    %% The file, which outlives the node where schedules have files: uid, membership and highest
    %% epoch, or that it left.
    file = none :: none | {sderl_hello:uid(), sderl_membership:t(), integer()} | left,
    %% The process dies in its next step that has effects; or while it writes rows.
    crash = false :: boolean() | half
}).

-record(n, {
    name :: node(),
    life = 1 :: pos_integer(),
    up = false :: boolean(),
    lost = false :: boolean(),          % it never starts again
    paused = false :: boolean(),
    held = [] :: [term()],              % messages that came meanwhile, newest first
    pace = {0, 2} :: {integer(), integer()},    % ms until it handles what is in a mailbox
    %% ms that its `sderl_node` takes to pass a greeting on; and when it is done with the last one.
    relay = {0, 0} :: {integer(), integer()},
    relayed = 0 :: integer(),
    hostile = 0 :: 0..100,              % of a hundred messages from it so many come again, changed
    clock = 0 :: integer(),             % how far its system clock is off, ms
    version = 1 :: pos_integer(),       % of the messages it speaks
    touched = 0 :: integer(),           % when a fault last began or ended here
    groups = [] :: [term()]
}).

-record(l, {
    id :: pos_integer(),
    a :: node(),
    b :: node(),
    up = #{} :: #{node() => up | down},         % what each end knows of it
    since = 0 :: integer(),                     % when the later end came up
    cutoff = none :: none | integer(),          % nothing arrives after it
    down = [] :: [node()]                       % ends that were told that it is gone
}).

%% The history of a group, to check its promises.
-record(b, {
    log = #{} :: #{position() => {FirstSeen :: integer(), [sderl_op:item()]}},
    %% the batch applied last, with the tables before and after it
    change = none :: none | {term(), term()},
    %% who had the table after a batch first
    tables = #{} :: #{position() => {Hash :: non_neg_integer(), node(), Rows :: map()}},
    answered = #{} :: #{list_key() => [position()]},    % where a list was answered
    lists = #{} :: #{Operation :: term() => list_key()},
    asked = #{} :: #{list_key() => [sderl_core:op()]},
    promised = #{} :: #{life() => epoch()},     % highest epoch acknowledged
    began = #{} :: #{epoch() => integer()},     % when its coordinator first had its turn
    truth = #{} :: #{own_name() => {present, pid()} | absent | unknown},
    contest = #{} :: #{own_name() => contest()},
    %% number of the last batch applied
    applied = #{} :: #{{node(), Life :: pos_integer(), epoch()} => non_neg_integer()},
    %% Where the name of a process was taken away, of which home, and whether that counted.
    removed = #{} :: #{pid() => {position(), {Home :: node(), sderl_row:version()}, boolean()}},
    %% The epoch that its home brought it to, without that batch.
    brought = #{} :: #{pid() => {epoch(), position()}},
    %% The operation that was answered `no`, where and when.
    refused = #{} :: #{pid() => {Operation :: term(), position(), integer()}},
    used = #{} :: #{pid() => pos_integer()},    % how many operations registered it
    left = #{} :: #{life() => removed | deleted},   % who left the group
    %% Of sderl_sim_strict:
    whole :: undefined | integer(),     % when all members were last one component
    ordered = #{} :: #{epoch() => [integer()]},     % when its batches were, since then and answered
    %% when its coordinator last had links, since then, over which nothing came
    unheard = #{} :: #{epoch() => integer()},
    %% the highest token of a name on a node
    tokens = #{} :: #{{node(), Life :: pos_integer(), Name :: term()}
                      => {pid(), sderl_row:version()}},
    losers = #{} :: #{pid() => {Name :: term(), position()}},   % what it lost in a clash
    told = #{} :: #{pid() => []},               % it was told that it lost
    %% an operation took the name from it where it lives
    gave_up = #{} :: #{{pid(), Name :: term()} => []},
    out = [] :: [node()],       % nodes whose removal was asked for
    deleted = false :: boolean(),
    majority = none :: term(),          % of sderl_sim_majority, in majority mode
    %% at run time: it may be deleted and made again, and be there twice
    made = false :: boolean() | island
}).

-record(w, {
    seed :: integer(),
    opts :: map(),
    core = sderl_core :: module(),              % or one with planted faults (sderl_plant)
    hello = sderl_hello :: module(),            % likewise
    dice :: sderl_sim_dice:dice(),
    now = 0 :: integer(),
    queue = sderl_sim_queue:new() :: sderl_sim_queue:queue(),
    trace = none :: none | fun((iodata()) -> term()),
    names = [] :: [node()],                     % all nodes, sorted
    groups = #{} :: #{term() => [node()]},      % nodes that may be members, sorted
    group = g :: term(),                        % the group that commands and questions are about
    nodes = #{} :: #{node() => #n{}},
    ms = #{} :: #{node() => #{term() => #m{}}},
    books = #{} :: #{term() => #b{}},
    links = #{} :: #{node() => #{node() => #l{}}},      % by the lower end, then by the other
    %% pairs without a link => when they try again
    apart = #{} :: #{{node(), node()} => integer()},
    cuts = #{} :: #{{node(), node()} => []},
    %% since when the first knows of no link to the second
    unlinked = #{} :: #{{node(), node()} => integer()},
    %% Directions in which nothing arrives although the link is up, with the waiting items, newest
    %% first.
    silent = #{} :: #{{node(), node()} => [{Link :: pos_integer(), term()}]},
    delays = #{} :: #{{node(), node()} => {integer(), integer()}},
    %% from, to: when the last item on the way arrives
    last = #{} :: #{node() => #{node() => integer()}},
    dead = #{} :: #{pid() => []},
    ids = 1 :: pos_integer(),
    pids = 0 :: non_neg_integer(),
    ops = #{} :: #{Operation :: term() => asked()},
    opno = 0 :: non_neg_integer(),
    clients = 0 :: non_neg_integer(),           % a node and group
    asking = true :: boolean(),                 % clients go on
    written = [] :: [term()],                   % names whose rows this step wrote
    checks = true :: boolean(),                 % promises are checked
    strict = [] :: [atom()],                    % further ones
    %% when a link was last lost, or a process ended or began
    broke = 0 :: integer(),
    %% messages and bytes by kind, where they are counted
    sent = none :: none | #{atom() => {non_neg_integer(), non_neg_integer()}},
    notes = #{} :: #{term() => term()},         % what a script keeps for later
    steps = 0 :: non_neg_integer(),
    counts = #{} :: #{atom() => pos_integer()}, % faults
    %% ms from the last fault until all were one component
    converged :: undefined | integer()
}).
