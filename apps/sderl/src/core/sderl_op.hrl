%% SPDX-License-Identifier: Apache-2.0
%% Operations, a member's list of them, and the items of a batch of the log. Modules that make or
%% match one use these names.
%%
%% All of them travel and are kept as they stand here. Tags and arities are those of protocol 2, of
%% which there are recordings (`sderl_frames_SUITE`): to change one is a new version. `sderl_wire`
%% says what a well-typed one holds.
-ifndef(SDERL_OP_HRL).
-define(SDERL_OP_HRL, true).

%% ---------------------------------------------------------------- operations

%% Nearly every operation is one of these two, and every member encodes or decodes every one: they
%% have no tag.

%% Register a name, without options.
-define(REGISTER(Name, Pid), [Name | Pid]).

%% Remove a name, whichever process has it.
-define(UNREGISTER(Name), {Name}).

%% Register a name, with options.
-define(REGISTER_WITH, r).
-record(?REGISTER_WITH, {
    name :: term(),
    pid :: pid(),
    options :: options()
}).

%% Register a name that a read showed with a process which is dead on its own node: the name counts
%% as free if it is still that process's (rule 17).
-define(REGISTER_OVER, x).
-record(?REGISTER_OVER, {
    name :: term(),
    pid :: pid(),
    dead :: pid(),
    options :: options()
}).

%% Register a name, whichever process has it.
-define(RE_REGISTER, rr).
-record(?RE_REGISTER, {
    name :: term(),
    pid :: pid(),
    options :: options()
}).

%% Remove a name if that process has it: never its successor's (rule 16).
-define(UNREGISTER_OF(Name, Pid), {d, Name, Pid}).

%% Look a name up, in the order of operations.
-record(read, {
    name :: term()
}).

%% Make nodes members.
-record(add, {
    nodes :: [node()]
}).

%% Remove members.
-record(remove, {
    nodes :: [node()],
    time :: non_neg_integer()       % system time in seconds, kept for as long as a removal is told
}).

%% And `delete`: end the group.

%% The options that a name was registered with.
-type options() :: [] | map().

-type operation() ::
    nonempty_improper_list(Name :: term(), pid())
    | {Name :: term()}
    | #?REGISTER_WITH{}
    | #?REGISTER_OVER{}
    | #?RE_REGISTER{}
    | {d, Name :: term(), pid()}
    | #read{}
    | #add{}
    | #remove{}
    | delete.

%% ---------------------------------------------------------------- lists of operations

%% A member's list of its clients' operations: the member, since when this life of it is one, and
%% the list's number since then.
-define(LIST(Member, Session, Number, Operations), {Member, Session, Number, Operations}).

%% Where its member stands in it, for `lists:keydelete/3`.
-define(LIST_MEMBER, 1).

-type list_of_operations() ::
    {Member :: node(), Session :: integer(), Number :: pos_integer(), [operation()]}.

%% ---------------------------------------------------------------- items of a batch

%% A member's list of operations, decided. Where each answers what it does when nothing stands
%% against it, the answers are `default`. An answer about a name of another home than its member
%% names that home, which has to acknowledge the batch: `{yes, Home}`.
-record(seg, {
    member :: node(),
    session :: integer(),
    number :: pos_integer(),
    operations :: [operation()],
    answers :: [term()] | default
}).

%% The component changed.
-record(view, {
    places :: #{node() => term()},  % its members, and the place of each
    drops :: [node()],              % homes whose names go
    live :: [node()],               % members that count from now on
    unknown :: [term()]             % answers of the batch before that nobody will know
}).

%% The membership of the group changed.
-record(mem, {
    membership :: sderl_membership:t(),
    removed :: [node()]             % by this change
}).

%% A piece of the shard that a member brings.
-record(shard, {
    member :: node(),
    is_first :: boolean(),          % it replaces what the log had of that home
    rows :: [tuple()],
    %% `more`: other pieces follow; `{Place, Session}`: this is the last, and has the member's
    %% position and session. (`sderl_wire` asks this of what others sent: any term.)
    rest :: term()
}).

%% Clashes that were found, each with our row and theirs; or decided, with who keeps the name and
%% what its homes are to do once it is settled.
-record(clashes, {
    clashes :: #{Name :: term() => tuple()}
}).

%% A clash is over.
-record(settle, {
    name :: term(),
    losers :: [pid()],
    row :: tuple() | none,          % what the name is from now on
    effects :: [term()]             % for the homes to run, see `sderl_resolver`
}).

%% And `delete`: the group ends.

-type item() :: #seg{} | #view{} | #mem{} | #shard{} | #clashes{} | #settle{} | delete.

-endif.
