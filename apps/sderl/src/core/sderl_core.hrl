%% SPDX-License-Identifier: Apache-2.0
%% The state of the group protocol's pure core. Private to the sderl_core* modules: the shell
%% (sderl_group) reads it through functions of sderl_core only, as `sderl_core:durable/1`.

-include("sderl_op.hrl").
-include("sderl_row.hrl").
-include("sderl_core_change.hrl").

%% A number below 0: a node that boots or joins and has met nobody.
-type epoch() :: {Counter :: integer(), Coordinator :: node()}.

%% A member of the component counts, or is set aside: then its shard is frozen, as of this position
%% of the log that it had. `partial`: it brings its shard, and not all pieces are ordered yet.
-type place() :: live | position() | {partial, 0}.
-type position() :: {epoch(), non_neg_integer()}.

%% A name that two components gave to different processes: our row, theirs; once that is decided,
%% who keeps it, in whose row is its new version then, and what the homes are to do when it is
%% settled.
-type clash() ::
    {Ours :: sderl_row:t(), Theirs :: sderl_row:t()}
    | {Ours :: sderl_row:t(), Theirs :: sderl_row:t(), Keep :: pid() | none, Effects :: [term()]}.

%% The number and the answers of a member's last list of operations.
-type session() :: {Sid :: integer(), Number :: non_neg_integer(), [term()] | default}.

%% Under which number the shell keeps the list that is out; `again` if it had another one before.
-type list_number() :: pos_integer() | {again, pos_integer()}.

%% What messages carry in maps, because later versions may add to it.
%%
%% Of `hello`: where the log of the member ends, and whom it follows. `ask`: it wants our hello.
-type hello_info() :: #{epoch := epoch(), lineage := epoch(), num := non_neg_integer(),
                        lead := node() | undefined, syncing := boolean(),
                        mode => majority, answer => applied, ask => true}.
%% Of `collect`: a coordinator asked the candidate to stand; the candidate knows the vote `learns`.
-type collect_flags() :: #{handover => true, learns => true}.
%% Of `lead` and `adopt`: the coordinator's log (`prev`: its epoch before this one), its component
%% and membership. `before`: the membership before the last batch, where that changes it.
-type lead_info() :: #{prev := epoch(), history := [{epoch(), non_neg_integer()}],
                       view := #{node() => place()}, mem := sderl_membership:t(),
                       clashes := #{Name :: term() => clash()}, before => sderl_membership:t(),
                       %% Of `adopt` only: with the number of the snapshot.
                       sessions => #{node() => session()}, sync => pos_integer()}.
%% Of `promised` (majority groups): where the member's log ends, its last batch, and whether it
%% counts as a voter (`votes`), has a whole table, is being brought up to date, or has neither.
-type vote() :: {position(), Items :: [term()], votes | whole | learns | partial}.

%% State that must survive a crash of the process (not of the node): the shell keeps it in a table
%% whenever it changes.
-record(d, {
    mem :: sderl_membership:t(),
    %% whose lists of operations these are: since when this node is a member
    sid :: integer(),
    epoch :: epoch(),               % the highest epoch promised; nothing lower is acknowledged
    lineage :: epoch(),             % the epoch of the component whose log this node holds
    history = [] :: [{epoch(), non_neg_integer()}],  % ended epochs of that log, last number of each
    view = #{} :: #{node() => place()},              % the component
    %% The highest epoch in which each live member may have been in another log. A member without an
    %% entry was only in this log.
    elsewhere_until = #{} :: #{node() => epoch()},
    clashes = #{} :: #{term() => clash()},  % found at merges and not settled
    %% Clashes of its own names in the log that it had before the snapshot that is being installed.
    clashes_before = #{} :: #{term() => clash()},
    told = 0 :: 0 | position(),  % up to which batch the processes of this node heard of clashes
    syncing = false :: boolean(),   % a snapshot is being installed: the table is not whole
    %% An operator set the membership, or the island that this node moved to: no batch of this log.
    recovered = false :: boolean(),
    %% of majority groups
    %% the last batch changed it, and may not be committed
    before :: undefined | sderl_membership:t(),
    %% its log and its promise are what they were since it became a member
    votes = true :: boolean(),
    founding = false :: boolean(),  % made the group, and has committed nothing yet
    %% clients and holders of names were told that there is no majority
    lost = false :: boolean()
}).

%% What a member begins with (`sderl_core:init/1`). `addr` is what peers send to, `inc` names this
%% life of the library. `clock` is system time in milliseconds: new epochs follow it, so that a life
%% of the node that forgot its epochs never uses one again; they are above `ceil`, too.
%%
%% A process that replaces one of the same life has `durable` and what goes with it (`log` to
%% `outbox`); any other has `mem`, with `found` where this node creates the group at run time.
%% `fresh`, in a majority group: this node never was a member before.
-type args() :: #{
    group := term(), uid := binary(), self := node(), addr := term(), inc := term(),
    now := integer(), clock := integer(), linked => [node()],
    tick_ms => pos_integer(), aside_ms => pos_integer(), forget_ms => timeout(),
    mode => available | majority, answer => committed | applied,
    durable => #d{}, log => {Num :: non_neg_integer(), Items :: [term()]}, log_epoch => epoch(),
    sessions => #{node() => session()}, outbox => {list_number(), [{From :: term(), operation()}]},
    mem => sderl_membership:t(), found => boolean(), fresh => boolean(), ceil => integer()
}.

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
    %% Members that have not acknowledged it, in the order in which it was sent to them: an
    %% acknowledgement is then of one of the first, however many there are.
    wait = [] :: [node()],
    since = 0 :: integer(),
    origins = [] :: [node()],
    had = [] :: [node()],           % who acknowledged it; counted where members are removed
    then = [] :: [term()]
}).

-record(cand, {
    epoch :: epoch(),
    wait = [] :: [node()],
    joined = #{} :: #{node() => {non_neg_integer(), Items :: [term()]} | vote()},
    since = 0 :: integer(),
    was :: epoch(),                 % what was promised before, should this come to nothing
    elsewhere = [] :: [node()],     % members that answered, and belong to another component
    outranked = false :: boolean(), % one of these is of a higher log, and follows nobody
    alone = false :: boolean(),     % without those who are there and follow another
    handed = false :: boolean()     % stands because another one asked for it
}).

-record(sync, {
    id :: pos_integer(),
    chunk = 1 :: pos_integer(),     % the one that is read, or out
    acked :: non_neg_integer(),     % the last batch it acknowledged
    since = 0 :: integer()
}).

%% A member that brings its shard to this coordinator.
-record(join, {
    place :: position(),
    id :: pos_integer(),            % which reading of the shard: pieces of an earlier one are stale
    piece = 1 :: pos_integer(),     % the one that is asked for
    names = 0 :: non_neg_integer(), % in the pieces that have come
    since = 0 :: integer()
}).

%% A member on its way into another component (`sderl_core_join`), which then gets a snapshot of it
%% (`sderl_core_snapshot`).
-record(joining, {
    %% The coordinator that we join, its epoch, and when it was last asked or heard.
    to :: undefined | {node(), epoch(), integer()},
    %% By whom our shard is asked for, which reading of it, which piece.
    bringing :: undefined | {epoch(), pos_integer(), pos_integer()},
    %% Ours as the snapshot has them that is being installed: taken together, at its end.
    session :: undefined | session(),
    shard = [] :: [[sderl_row:t()]]
}).

%% State of a member without a coordinator: `sderl_core_elect`, `sderl_core_role`.
-record(election, {
    orphan_since = 0 :: integer(),
    %% The coordinator that fell silent: a takeover does not wait for it.
    suspect :: node() | undefined,
    %% Since when more are silent over their links than answer.
    outnumbered_since :: undefined | integer(),
    attempts = 0 :: non_neg_integer(),
    %% The peer that was asked last who leads.
    asked :: node() | undefined,
    %% Since when others follow a coordinator that we have no link to.
    shut_out_since :: undefined | integer(),
    %% We do not stand before: the role was handed over.
    not_before = -(1 bsl 59) :: integer()
}).

%% State of majority groups only: `sderl_core_quorum`, and `sderl_core_majority` as time passes.
-record(quorum, {
    has = unknown :: unknown | boolean(),   % whether there is a majority, as clients are told
    had_at = 0 :: integer(),                % when there last was
    began = 0 :: integer(),                 % when this process did
    remembers = false :: boolean(),         % a file told whom a former life of this node promised
    %% Coordinator: the lives of members that promised its epoch, and since when it leads.
    promised = #{} :: #{node() => term()},
    leads_since = 0 :: integer(),
    has_committed = false :: boolean(),     % a batch of its epoch: a majority has its log
    %% Members that came back empty, and until which batch they do not vote.
    newcomers = #{} :: #{node() => not_live | non_neg_integer()},
    %% Removed members that have left, and have no say any more: by the membership that is ours, and
    %% so agreed to it, or by another, with their own entry in it.
    ended = #{} :: #{node() => agreed | {pos_integer(), non_neg_integer()}},
    leases = #{} :: #{node() => integer()}, % members out of reach, and since when
    differs = [] :: [node()]                % nodes whose consistency differs, of which we told
}).

%% The requests of this node's clients: `sderl_core_clients`, `sderl_core_answer`.
-record(clients, {
    %% Waiting operations, the newest first; the list that is out under its number; the last number.
    queue = [] :: [{term(), term()}],
    out :: undefined | {pos_integer(), [{term(), term()}]},
    number = 0 :: non_neg_integer(),
    resend = false :: boolean(),            % the list is out, and nobody has it now
    %% Epochs to whose coordinators the list that is out was sent: a batch that we lack may contain
    %% it. `unknown`: a predecessor of this process may have sent it. `{left, N}`: it had number N
    %% in a log that we left; `decided`: it was decided under that number.
    in_doubt = [] :: [epoch() | unknown | {left, pos_integer()} | decided],
    %% The batch that has the list, and its answers: told when that is committed.
    answers :: undefined | {non_neg_integer(), default | [term()]},
    %% Since when they wait; asked again with the next tick.
    deferred = [] :: [{integer(), term(), term()}],
    waited = #{} :: #{term() => integer()}, % clients whose operations were deferred, and since when
    %% The last list of this process' predecessor.
    predecessor :: undefined | {asked, [{term(), term()}]} | {answered, [{term(), term()}]},
    %% Of the names that our list would remove or replace: the rows that our table has.
    rows = #{} :: #{term() => tuple()}
}).

%% The coordinator's work. Who leaves the office leaves all of it.
-record(office, {
    %% Members' lists of operations for the next batch, the newest first; and those of members that
    %% are aside, until they count.
    requests = [] :: [list_of_operations()],
    held = #{} :: #{node() => list_of_operations()},
    %% Changes of the component for the next batch, the newest first.
    changes = [] :: [change()],
    %% The batch that is out; members that are owed the notice that theirs was committed.
    flight :: undefined | #flight{},
    owed = [] :: [node()],
    %% Operations of the batch that is out, or was last, whose answers are lost, because the home
    %% that they concern left before it acknowledged the batch. Ordered with the change of the
    %% component.
    unknown_answers = [] :: [{node(), integer(), pos_integer(), [pos_integer()]}],
    %% Members that get a snapshot (`sderl_core_snapshot`).
    snapshots = #{} :: #{node() => #sync{}},
    %% Members that bring their shards, and who wants to while we may decide nothing: since when,
    %% and where its log ends (`sderl_core_merge`).
    joins = #{} :: #{node() => #join{}},
    offers = #{} :: #{node() => {integer(), position()}},
    %% Clashes whose resolver runs, or has decided; what it decided, until both homes count
    %% (`sderl_core_clash`).
    asked = #{} :: #{term() => {tuple(), tuple()}},
    decided = #{} :: #{term() => tuple()}
}).

-record(s, {
    %% The member itself, and its settings.
    group :: term(),
    uid :: binary(),
    self :: node(),
    addr :: term(),                 % what peers send to
    inc :: term(),                  % the incarnation of this node
    mode = available :: available | majority,
    %% when clients hear what a batch says: `sderl_core_answer`
    answer = committed :: committed | applied,
    tick_ms = 1000 :: pos_integer(),
    aside_ms = 4000 :: pos_integer(),
    forget_ms = infinity :: timeout(),

    %% Time.
    now = 0 :: integer(),           % monotonic milliseconds, given with every step
    clock = 0 :: integer(),         % system time less that
    last_tick :: undefined | integer(),

    %% The replicated part: membership, component and log.
    d :: #d{},
    saved :: undefined | #d{},      % what the shell was last told to keep
    num = 0 :: non_neg_integer(),   % the last batch applied
    last = [] :: [term()],          % its items, for a member that lacks it at a takeover
    committed = 0 :: non_neg_integer(),
    sessions = #{} :: #{node() => session()},
    %% Exit signals for losers of clashes whose home is another member; kept until that home is live
    %% after the batch.
    pending_exits = [] :: [{Home :: node(), term()}],
    highest = 0 :: integer(),       % the highest epoch counter heard of

    %% The others. `mute`: the library there said that it stops; `away`: this group's process did.
    linked = #{} :: #{node() => [] | mute | away},
    broken = #{} :: #{node() => []},        % members whose link broke, and that said no hello since
    peers = #{} :: #{node() => #peer{}},
    down = #{} :: #{node() => integer()},   % members out of the component, and since when
    unconfirmed = [] :: [node()],        % after a pause: peers whose epochs have to be heard
    unconfirmed_since = 0 :: integer(),
    waiters = [] :: [{term(), [node()], integer()}],    % clients: for which members, until when

    %% Role: who is followed, and what is to be said to it.
    role = orphan :: orphan | candidate | follower | coord | joining,
    lead :: node() | undefined,
    lead_heard = 0 :: integer(),
    ack :: undefined | {epoch(), non_neg_integer()},    % the batch that is to be acknowledged
    cand :: undefined | #cand{},
    sync = 0 :: non_neg_integer(),  % the last snapshot begun; of a learner: the one that it gets
    booting = false :: boolean(),
    leaving :: undefined | removed | deleted,

    %% Parts, each with modules that have it.
    office = #office{} :: #office{},
    clients = #clients{} :: #clients{},
    joining = #joining{} :: #joining{},
    election = #election{} :: #election{},
    quorum = #quorum{} :: #quorum{},

    unknown = 0 :: non_neg_integer(),   % messages of no known kind
    fx = [] :: [term()]             % the effects of this step, the last first
}).

-define(HISTORY, 64).
