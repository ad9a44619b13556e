%% SPDX-License-Identifier: Apache-2.0
%% The state of the group protocol's pure core. Private to the sderl_core* modules; the shell
%% (sderl_group) reads it through sderl_core:get/2 and sderl_core:durable/1 only.

%% A number below 0: a node that boots or joins and has met nobody.
-type epoch() :: {Counter :: integer(), Coordinator :: node()}.

%% In the component, a member counts or is set aside: its names are kept, and we have all that its
%% own log had up to here.
-type place() :: live | {epoch(), non_neg_integer()}.

%% What must survive a crash of the process (not of the node): kept in a table by the shell
%% whenever it changes.
-record(d, {
    mem :: sderl_membership:t(),
    sid :: integer(),               % whose lists of operations these are: since when this node is a member
    epoch :: epoch(),               % the highest epoch promised; nothing lower is acknowledged
    lineage :: epoch(),             % the epoch of the component whose log this node holds
    history = [] :: [{epoch(), non_neg_integer()}],  % ended epochs of that log, last number of each
    view = #{} :: #{node() => place()},              % the component
    merged = #{} :: #{node() => epoch()},            % since which epoch its rows follow our log
    tomb = #{} :: #{node() => #{term() => term()}},  % rows of a node set aside, removed meanwhile
    clashes = #{} :: #{term() => {tuple(), tuple()}},  % found at merges and not decided: our row, theirs
    syncing = false :: boolean()    % a snapshot is being installed: the table is not whole
}).

-record(peer, {
    addr :: term(),                 % where the shell sends to: the pid of the peer's process
    inc :: term(),                  % incarnation: a life of the library on that node
    heard = 0 :: integer(),
    lead :: node() | undefined,     % whom it followed when it said hello
    said = 0 :: integer(),          % when that was
    epoch = {0, nonode@nohost} :: epoch(),
    links = [] :: [node()]          % the members it has a link to, as last told
}).

%% The one batch that is out, and what to do once every live member has it.
-record(flight, {
    num :: non_neg_integer(),
    wait = [] :: [node()],
    since = 0 :: integer(),
    origins = [] :: [node()],
    then = [] :: [term()]
}).

-record(cand, {
    epoch :: epoch(),
    wait = [] :: [node()],
    joined = #{} :: #{node() => {non_neg_integer(), term()}},
    since = 0 :: integer(),
    was :: epoch(),                 % what was promised before, should this come to nothing
    alone = false :: boolean()      % without those who are there and follow another
}).

-record(sync, {
    id :: pos_integer(),
    chunk = 1 :: pos_integer(),     % the one that is read, or out
    acked :: non_neg_integer(),     % the last batch it acknowledged
    since = 0 :: integer()
}).

%% A component that gives itself up to this coordinator, while its rows arrive.
-record(absorb, {
    members = [] :: [node()],
    need = #{} :: #{node() => {epoch(), non_neg_integer()}},  % whose rows come, and of when they are
    sessions = #{} :: map(),
    reading = 0 :: non_neg_integer(),  % whose messages come: of an offer before none is taken
    next = 1 :: pos_integer(),
    rows = [] :: [[term()]],
    tomb = #{} :: map(),
    clashes = #{} :: map(),
    history = [] :: [{epoch(), non_neg_integer()}],
    since = 0 :: integer()
}).

-record(s, {
    group :: term(),
    uid :: binary(),
    self :: node(),
    addr :: term(),
    inc :: term(),
    tick_ms = 1000 :: pos_integer(),
    aside_ms = 4000 :: pos_integer(),
    forget_ms = infinity :: timeout(),
    now = 0 :: integer(),           % monotonic milliseconds, given with every step
    clock = 0 :: integer(),         % system time less that
    d :: #d{},
    saved :: undefined | #d{},      % what the shell was last told to keep
    num = 0 :: non_neg_integer(),   % the last batch applied
    last = [] :: [term()],          % its items, for a member that lacks it at a takeover
    committed = 0 :: non_neg_integer(),
    linked = #{} :: #{node() => [] | mute},   % mute: the library there said that it stops
    peers = #{} :: #{node() => #peer{}},
    down = #{} :: #{node() => integer()},
    role = orphan :: orphan | candidate | follower | coord | surrender,
    lead :: node() | undefined,
    lead_heard = 0 :: integer(),
    booting = false :: boolean(),
    orphan_since = 0 :: integer(),
    suspect :: node() | undefined,  % the coordinator that fell silent: a takeover does not wait for it
    tries = 0 :: non_neg_integer(),
    shut_out :: undefined | integer(),  % since when others follow a coordinator that we have no link to
    stand_at = -(1 bsl 59) :: integer(),   % not for election before: the role was handed over
    ceil = 0 :: integer(),          % the highest epoch counter heard of
    %% requests of this node's clients
    queue = [] :: [{term(), term()}],
    out :: undefined | {pos_integer(), [{term(), term()}]},
    old :: undefined | {asked, [{term(), term()}]} | {answered, [{term(), term()}]},  % the predecessor's last list
    req = 0 :: non_neg_integer(),
    mine :: undefined | {non_neg_integer(), [term()]},
    ack :: undefined | {epoch(), non_neg_integer()},
    send_out = false :: boolean(),
    abroad = [] :: [epoch() | unknown],  % of which epochs others have the list that is out: it may be in a batch that we lack
    %% coordinator
    reqs = [] :: [tuple()],
    gone = #{} :: #{node() => place()},   % who went from the component, and how far we knew it then
    unseen = #{} :: #{node() => [tuple()]},  % rows of the batch that was out when their home went
    from = #{} :: #{node() => [{epoch(), non_neg_integer()}]},  % up to where in which logs: what merged members had
    held = #{} :: #{node() => tuple()},   % lists of members that are aside, until they count
    again = #{} :: #{node() => {integer(), non_neg_integer()}},  % lists decided once, whose member was taken back to before
    specials = [] :: [term()],
    %% Members whose place in the view comes with rows that wait in specials: what is true of them
    %% (place and removed rows) until these are ordered.
    unordered = #{} :: #{node() => {[place()], [map()]}},
    flight :: undefined | #flight{},
    owed = [] :: [node()],
    %% A list that was decided before and is open is the one after the last one, whose answers nobody needs.
    sessions = #{} :: #{node() => {integer(), non_neg_integer(), [term()] | default}},
    told :: undefined | tuple(),    % our session as the snapshot has it that is being installed
    syncs = #{} :: #{node() => #sync{}},
    sync = 0 :: non_neg_integer(),  % the last one begun; of a learner: the one it is in
    absorbs = #{} :: #{node() => #absorb{}},
    offers = #{} :: #{node() => {integer(), tuple()}},  % of components that give themselves up, while we may decide nothing; and when
    cand :: undefined | #cand{},
    reading = -1 :: integer(),      % how often our rows were asked for
    part = 0 :: non_neg_integer(),  % which of their messages was read last
    to :: undefined | {node(), epoch(), integer()},  % surrendering to
    groggy = [] :: [node()],
    groggy_since = 0 :: integer(),
    last_tick :: undefined | integer(),
    waiters = [] :: [{term(), [node()], integer()}],
    leaving :: undefined | removed | deleted,
    unknown = 0 :: non_neg_integer(),
    faults = [] :: [sderl_core:fault()],
    fx = [] :: [term()]
}).

-define(HISTORY, 64).

%% In the place of the answers to the last list, which its member has: the next one was decided before, and is open.
%% (For nodes that do not know of this it is answers that nobody asks for.)
-define(OPEN, [{no, again}]).
