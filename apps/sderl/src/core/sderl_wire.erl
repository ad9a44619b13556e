%% SPDX-License-Identifier: Apache-2.0
-module(sderl_wire).
-moduledoc false.
%% Which messages, operations and rows of the group protocol are well typed: a table, with one
%% clause for each kind of message. The table of `sderl_core` says what they mean.
%%
%% The process of a group asks this of everything that another process sends it, before the core
%% sees it. The core keeps what it is given: a term of a wrong type that got into a table or a list
%% of operations would be found there by every process that is started after the crash, and by every
%% other member. That a term is well typed does not make it true, so the core still compares it with
%% its own state.
%%
%% Each list is read once. A registration costs one clause of `operations/1`.

-include("sderl_op.hrl").
-include("sderl_row.hrl").

-export([message/2, operation/1, row/1]).

%% Epoch counters follow the clock in milliseconds, and batches and requests are counted: no such
%% number comes near this. A number that is larger would stay with the group for ever, in each
%% message and row.
-define(LARGEST, 1 bsl 48).

-doc "Whether a member may have sent this message to another.".
-spec message(From :: node(), term()) -> boolean().
message(From, {hello, Addr, _Incarnation, Mem, Info}) when is_pid(Addr) ->
    node(Addr) =:= From
        andalso membership(Mem)
        andalso fields([epoch, lineage, num, lead, syncing], Info);
message(_, {mem, Mem}) -> membership(Mem);
message(_, {gone, Why, Mem}) -> (Why =:= removed orelse Why =:= deleted) andalso membership(Mem);
message(_, bye) -> true;
message(_, away) -> true;
message(_, query) -> true;
message(_, {state, E, Lead}) -> epoch(E) andalso is_atom(Lead);
message(_, {hb, E, Num}) -> epoch(E) andalso count(Num);
message(_, {hb_ack, E, Linked}) -> epoch(E) andalso nodes_list(Linked);
message(_, {low, E, Lead}) -> epoch(E) andalso is_atom(Lead);
message(_, {found, Coordinator, E}) -> is_atom(Coordinator) andalso epoch(E);
message(_, {follow, Coordinator, E}) -> is_atom(Coordinator) andalso epoch(E);
message(_, {req, E, List}) -> epoch(E) andalso list_of_operations(List);
message(_, {answers, E, Number, Answers}) ->
    epoch(E) andalso count(Number) andalso answers(Answers);
message(_, {batch, E, Num, Commit, Items}) ->
    epoch(E) andalso count(Num) andalso count(Commit) andalso all(fun item/1, Items);
message(_, {ack, E, Num, none}) -> epoch(E) andalso count(Num);
message(_, {ack, E, Num, List}) -> epoch(E) andalso count(Num) andalso list_of_operations(List);
message(_, {commit, E, Num}) -> epoch(E) andalso count(Num);
message(_, {gap, E, Num}) -> epoch(E) andalso count(Num);
message(_, {refused, E, Lead}) -> epoch(E) andalso is_atom(Lead);
message(_, {not_lead, E}) -> epoch(E);
message(_, {dropped, E}) -> epoch(E);
message(_, {collect, E, Lineage, Flags}) -> epoch(E) andalso epoch(Lineage) andalso is_map(Flags);
message(_, {joined, E, Num, Items}) -> epoch(E) andalso count(Num) andalso all(fun item/1, Items);
message(_, {promised, E, Position, Items, Standing}) ->
    epoch(E) andalso position(Position) andalso all(fun item/1, Items)
        andalso lists:member(Standing, [votes, whole, learns, partial]);
message(_, {apart, E, Lineage, Lead}) -> epoch(E) andalso epoch(Lineage) andalso is_atom(Lead);
message(_, {nack, E, Promised, Lead}) -> epoch(E) andalso epoch(Promised) andalso is_atom(Lead);
message(_, {lead, E, Num, Items, Info}) ->
    epoch(E) andalso count(Num) andalso all(fun item/1, Items)
        andalso fields([prev, history, view, mem, clashes], Info);
message(_, {lost, E, Coordinator}) -> epoch(E) andalso is_atom(Coordinator);
message(_, {handover, E}) -> epoch(E);
message(_, {join, E, Num}) -> epoch(E) andalso count(Num);
message(_, {bring, E, Piece}) -> epoch(E) andalso piece(Piece);
message(_, {shard, E, Piece, Rows, more}) ->
    epoch(E) andalso piece(Piece) andalso all(fun row/1, Rows);
message(_, {shard, E, Piece, Rows, {last, Session}}) ->
    epoch(E) andalso piece(Piece) andalso all(fun row/1, Rows) andalso session_or_none(Session);
message(_, {adopt, E, Num, Info}) ->
    epoch(E) andalso count(Num)
        andalso fields([prev, history, view, mem, clashes, sessions, sync], Info);
message(_, {chunk, E, Sync, Number, Rows, Last}) ->
    epoch(E) andalso count(Sync) andalso count(Number)
        andalso all(fun row/1, Rows) andalso is_boolean(Last);
message(_, {chunk_ok, E, Sync, Number}) -> epoch(E) andalso count(Sync) andalso count(Number);
message(_, {synced, E, Sync}) -> epoch(E) andalso count(Sync);
message(_, _) -> false.

%% ---------------------------------------------------------------- operations

-doc "Whether this is an operation that a member's client may ask for.".
-spec operation(term()) -> boolean().
operation(?REGISTER(_, Pid)) -> is_pid(Pid);
operation(?UNREGISTER(_)) -> true;
operation(#?REGISTER_WITH{pid = Pid, options = Options}) -> is_pid(Pid) andalso options(Options);
operation(#?REGISTER_OVER{pid = Pid, dead = Dead, options = Options}) ->
    is_pid(Pid) andalso is_pid(Dead) andalso options(Options);
operation(#?RE_REGISTER{pid = Pid, options = Options}) -> is_pid(Pid) andalso options(Options);
operation(?UNREGISTER_OF(_, Pid)) -> is_pid(Pid);
operation(#add{nodes = Nodes}) -> nodes_list(Nodes);
operation(#remove{nodes = Nodes, time = Time}) -> nodes_list(Nodes) andalso count(Time);
operation(#read{}) -> true;
operation(delete) -> true;
operation(_) -> false.

%% First what nearly every operation is: a registration or an unregistration.
operations([?REGISTER(_, Pid) | Operations]) when is_pid(Pid) -> operations(Operations);
operations([?UNREGISTER(_) | Operations]) -> operations(Operations);
operations([Operation | Operations]) -> operation(Operation) andalso operations(Operations);
operations([]) -> true;
operations(_) -> false.

list_of_operations(?LIST(Member, Session, Number, Operations)) ->
    is_atom(Member) andalso is_integer(Session) andalso count(Number)
        andalso operations(Operations);
list_of_operations(_) -> false.

options([]) -> true;
options(#{resolver := {Module, Function}}) -> is_atom(Module) andalso is_atom(Function);
options(#{resolver := Resolver}) ->
    lists:member(Resolver, [random_exit_name, random_notify_name, notify_all_name]);
options(Options) -> is_map(Options).

answers(default) -> true;
answers(Answers) -> all(fun answer/1, Answers).

answer(yes) -> true;
answer(ok) -> true;
answer(unknown) -> true;
answer({yes, Home}) when is_atom(Home) -> true;
answer({yes, Homes}) -> nodes_list(Homes);
answer({ok, Home}) when is_atom(Home) -> true;
answer({ok, Nodes}) -> nodes_list(Nodes);
answer({read, Read}) -> Read =:= undefined orelse is_pid(Read);
answer({no, _}) -> true;
answer(_) -> false.

%% ---------------------------------------------------------------- batches

%% Whether this is an item of a batch.
-spec item(term()) -> boolean().
item(#seg{operations = Operations, answers = Answers} = Item) ->
    #seg{member = Member, session = Session, number = Number} = Item,
    list_of_operations(?LIST(Member, Session, Number, Operations))
        andalso answers(Answers)
        andalso (Answers =:= default orelse length(Answers) =:= length(Operations));
item(#view{places = View, drops = Drops, live = Live, unknown = Unknown}) ->
    view(View) andalso nodes_list(Drops) andalso nodes_list(Live)
        andalso all(fun unknown/1, Unknown);
item(#mem{membership = Mem, removed = Removed}) -> membership(Mem) andalso nodes_list(Removed);
item(#shard{member = Member, is_first = First, rows = Rows, rest = Rest}) ->
    is_atom(Member) andalso is_boolean(First) andalso all(fun row/1, Rows) andalso rest(Rest);
item(#settle{losers = Losers, row = Row, effects = Effects}) ->
    all(fun is_pid/1, Losers) andalso (Row =:= none orelse settled_row(Row))
        andalso all(fun effect/1, Effects);
item(#clashes{clashes = Clashes}) -> clashes(Clashes);
item(delete) -> true;
item(_) -> false.

%% Answers of a list that nobody will know.
unknown({Member, Session, Number, Places}) ->
    is_atom(Member) andalso is_integer(Session) andalso count(Number)
        andalso all(fun count/1, Places);
unknown(_) -> false.

%% The end of a piece of a shard: more pieces follow, or the place and session of the whole.
rest(more) -> true;
rest({Place, Session}) -> position(Place) andalso session_or_none(Session);
rest(_) -> false.

%% The batch gives the winner its version.
settled_row(?ROW(_, _, Home, new, _) = Row) -> row(sderl_row:with_version({{0, Home}, 0}, Row));
settled_row(Row) -> row(Row).

effect(Effect) ->
    is_tuple(Effect) andalso tuple_size(Effect) >= 2 andalso is_pid(element(2, Effect)).

-doc "Whether this is a registered name, as the protocol sees it.".
-spec row(term()) -> boolean().
row(?ROW(_, Pid, Home, Version, Options)) ->
    is_pid(Pid) andalso is_atom(Home) andalso version(Version) andalso options(Options);
row(_) -> false.

version({E, Seq}) when is_integer(Seq) -> epoch(E) andalso Seq >= 0 andalso Seq < ?LARGEST bsl 24;
version(_) -> false.

%% ---------------------------------------------------------------- parts

%% Whether this is the versioned membership of a group.
-spec membership(term()) -> boolean().
membership(Mem) ->
    entries(fun(Node, {Counter, RemovedAt}) ->
                    is_atom(Node) andalso count(Counter) andalso count(RemovedAt);
               (_, _) -> false
            end, Mem).

%% A later version may tell more than these fields.
fields(Needed, Info) ->
    entries(fun field/2, Info) andalso lists:all(fun(Key) -> is_map_key(Key, Info) end, Needed).

field(epoch, E) -> epoch(E);
field(lineage, E) -> epoch(E);
field(prev, E) -> epoch(E);
field(num, Num) -> count(Num);
field(sync, Sync) -> count(Sync);
field(lead, Lead) -> is_atom(Lead);
field(syncing, Syncing) -> is_boolean(Syncing);
field(mem, Mem) -> membership(Mem);
field(view, View) -> view(View);
field(history, History) -> all(fun position/1, History);
field(clashes, Clashes) -> clashes(Clashes);
field(before, Mem) -> membership(Mem);
field(mode, Mode) -> Mode =:= available orelse Mode =:= majority;
field(answer, Answer) -> Answer =:= committed orelse Answer =:= applied;
field(sessions, Sessions) -> sessions(Sessions);
field(_, _) -> true.

view(View) ->
    entries(fun(Node, Place) -> is_atom(Node) andalso place(Place) end, View).

place(live) -> true;
place({partial, 0}) -> true;
place(Place) -> position(Place).

%% Where a log stood.
position({E, Num}) -> epoch(E) andalso count(Num);
position(_) -> false.

clashes(Clashes) ->
    entries(fun(_Name, {Ours, Theirs}) -> row(Ours) andalso row(Theirs);
               (_Name, {Ours, Theirs, Keep, Effects}) ->
                    row(Ours) andalso row(Theirs) andalso (Keep =:= none orelse is_pid(Keep))
                        andalso all(fun effect/1, Effects);
               (_, _) -> false
            end, Clashes).

sessions(Sessions) ->
    entries(fun(Node, Session) -> is_atom(Node) andalso session(Session) end, Sessions).

session({Session, Number, Answers}) ->
    is_integer(Session) andalso count(Number) andalso answers(Answers);
session(_) -> false.

session_or_none(Session) -> Session =:= none orelse session(Session).

%% Which reading of a shard, and which piece of it.
piece({Reading, Number}) -> count(Reading) andalso count(Number);
piece(_) -> false.

epoch({Counter, Coordinator}) when is_integer(Counter) ->
    abs(Counter) < ?LARGEST andalso is_atom(Coordinator);
epoch(_) -> false.

count(Number) -> is_integer(Number) andalso Number >= 0 andalso Number < ?LARGEST.

nodes_list(Nodes) -> all(fun is_atom/1, Nodes).

all(Is, [Term | Terms]) -> Is(Term) andalso all(Is, Terms);
all(_, Rest) -> Rest =:= [].

entries(Are, Map) ->
    is_map(Map) andalso lists:all(fun({Key, Value}) -> Are(Key, Value) end, maps:to_list(Map)).
