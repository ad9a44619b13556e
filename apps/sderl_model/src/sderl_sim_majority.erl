%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_majority).
-moduledoc """
What must be true of a simulated group in majority mode, beside what `m:sderl_sim_check` says of all groups:
one function for each promise, under its name.

A batch counts as committed as soon as anybody says so: a coordinator in a message, or a member in an
answer. The committed batches of all epochs are one log.

| promise | what it says |
|---|---|
| `one_log` | a batch that was committed is in the log of every coordinator that commits anything later, and no batch of an older epoch is committed beside it; nobody brings rows to a merge |
| `by_majority` | a committed batch is acknowledged by a majority of the members, of those before it and of those after it where it changes them; so is the epoch that commits it promised |
| `as_committed` | an answer is the one that the committed log has for that operation |
| `one_order` | answered operations are in the log in an order in which they can have happened: none is after one that was asked only when it was answered |
| `leased` | the names of a process that lives are freed only when its node has had no link to the coordinator for the lease, and its member has declared the majority lost before |
| `never_applied` | what was answered `no_majority` is in no committed batch |
| `silent_minority` | a member that declared the majority lost answers nothing but that, until it has regained it |
| `bounded_waiting` | a member that no links join to a majority declares it lost in time, and keeps no client waiting from then on |
| `forgets_nobody` | a coordinator without a majority orders nobody's being forgotten |

All that holds as long as a majority of the members remembers the log. Where so many nodes have died at
once, with their memory, that no majority does, what was committed may be gone with them: from then on a
new log is looked at (`crashed/2`).

A group that is made at run time may be there twice under one name. It is left out.
""".
-include("sderl_sim.hrl").

-export([new/2, arguments/4, asked/4, sent/4, decided/5, recorded/4, answered/5]).
-export([begun/3, declared/4, ticked/3, crashed/2]).
-export([recover/1, leases_ms/1, settled/3]).

-import(sderl_sim_world, [violation/3, node/2, member/3, book/2, keep_book/3, seen/3]).

-type epoch() :: term().
-type position() :: {epoch(), non_neg_integer()}.

%% What is known of the committed log of a group.
-record(q, {
    electors = [] :: [node()],                  % the members after the last committed batch
    last = none :: none | position(),           % that batch
    commits = #{} :: #{epoch() => non_neg_integer()},   % the last number committed of each epoch
    reigns = #{} :: #{epoch() => [position()]},         % what the log was when an epoch committed first
    acks = #{} :: #{{node(), epoch()} => non_neg_integer()},
    promises = #{} :: #{epoch() => [node()]},
    places = #{} :: #{term() => {term(), pos_integer()}},   % operation => its list, and where it is there
    answers = [] :: [{Place :: term(), Asked :: integer(), Answered :: integer(), term()}],
    never = #{} :: #{term() => [term()]},       % list of operations => those answered `no_majority`
    unleased = #{} :: #{position() => term()},  % batches that free names too early, should they be committed
    lost = #{} :: #{{node(), pos_integer()} => integer()},  % who has declared the majority lost, and when
    alone = #{} :: #{node() => integer()},      % since when no links join a member to a majority
    forgotten = [] :: [node()],
    floor = none :: none | epoch()              % the last epoch of the log before this one
}).

-define(TICK_MS, 1000).
-define(ASIDE_MS, 4000).
-define(HISTORY, 64).
%% For mailboxes, and for links of which the two ends learn at different times.
-define(SPARE_MS, 10_000).

-doc "What is known of a group with these members at the start.".
-spec new(available | majority, [node()]) -> #q{} | none.
new(majority, [_ | _] = Members) -> #q{electors = lists:sort(Members)};
new(_, _) -> none.

-doc "What `sderl_core:init/1` is told beside the rest.".
-spec arguments(term(), map(), #m{}, #w{}) -> map().
arguments(G, Args, #m{file = File}, W) ->
    case sderl_sim_world:mode(G, W) of
        available -> Args;
        majority ->
            Fresh = sderl_sim_world:option(files, false, W) andalso File =:= none,
            Args#{mode => majority, fresh => Fresh}
    end.

aside_ms(W) -> sderl_sim_world:option(aside_ms, ?ASIDE_MS, W).

lease_ms(W) -> 3 * aside_ms(W) + 10 * ?TICK_MS.

lost_ms(W) -> 3 * aside_ms(W) + 7 * ?TICK_MS.

of_group(G, W) -> (book(G, W))#b.majority.

keep_of(G, Q, W) -> keep_book(G, (book(G, W))#b{majority = Q}, W).

%% ---------------------------------------------------------------- what is noted

-doc "A member's list of operations goes out.".
-spec asked(term(), term(), [{term(), term()}], #w{}) -> #w{}.
asked(G, Key, List, W) ->
    case of_group(G, W) of
        none -> W;
        #q{places = Places} = Q ->
            New = #{Id => {Key, I} || {I, {Id, _}} <- lists:enumerate(List), Id =/= none},
            keep_of(G, Q#q{places = maps:merge(Places, New)}, W)
    end.

-doc "A message goes out: who has what, and what is said to be committed.".
-spec sent(node(), term(), term(), #w{}) -> #w{}.
sent(N, G, Msg, W) ->
    case of_group(G, W) of
        none -> W;
        Q -> said(Msg, N, G, Q, W)
    end.

said({ack, E, Num, _}, N, G, #q{acks = Acks} = Q, W) ->
    keep_of(G, Q#q{acks = Acks#{{N, E} => max(Num, maps:get({N, E}, Acks, 0))}}, W);
%% A learner has what its snapshot has.
said({synced, E, _}, N, G, Q, W) ->
    #{num := Num} = seen(N, G, W),
    said({ack, E, Num, none}, N, G, Q, W);
said({promised, E, _, _, _}, N, G, #q{promises = Promises} = Q, W) ->
    keep_of(G, Q#q{promises = Promises#{E => [N | maps:get(E, Promises, [])]}}, W);
said({commit, E, Num}, N, G, _, W) -> claimed(N, G, {E, Num}, W);
said({batch, E, _, Commit, _}, N, G, _, W) -> claimed(N, G, {E, Commit}, W);
said({hb, E, Num}, N, G, _, W) -> claimed(N, G, {E, Num}, W);
said(_, _, _, _, W) -> W.

-doc "A process of the protocol begins: what its predecessor declared it does not know.".
-spec begun(node(), term(), #w{}) -> #w{}.
begun(N, G, W) ->
    case of_group(G, W) of
        none -> W;
        #q{lost = Lost} = Q -> keep_of(G, Q#q{lost = maps:remove({N, (node(N, W))#n.life}, Lost)}, W)
    end.

-doc "A member says that it has lost the majority, or has it again.".
-spec declared(node(), term(), lost | regained, #w{}) -> #w{}.
declared(N, G, Is, #w{now = Now} = W) ->
    #n{life = Life} = node(N, W),
    case {Is, of_group(G, W)} of
        {_, none} -> W;
        {lost, #q{lost = Lost} = Q} ->
            %% From now on the majority may free its names.
            sderl_sim_client:not_known(N, G, all, keep_of(G, Q#q{lost = Lost#{{N, Life} => Now}}, W));
        {regained, #q{lost = Lost} = Q} -> keep_of(G, Q#q{lost = maps:remove({N, Life}, Lost)}, W)
    end.

%% ---------------------------------------------------------------- the log

-doc "A batch is in somebody's log.".
-spec recorded(term(), position(), [term()], #w{}) -> #w{}.
recorded(G, Pos, Items, W) ->
    case of_group(G, W) of
        none -> ok;
        _ ->
            _ = [violation(one_log, [Pos, merges, Item], W)
                 || Item <- Items, is_tuple(Item), lists:member(element(1, Item), [shard, clashes, settle])],
            ok
    end,
    W.

-doc "The coordinator on this node has decided a batch, and is about to apply it.".
-spec decided(node(), term(), position(), [term()], #w{}) -> #w{}.
decided(N, G, Pos, Items, W) ->
    case of_group(G, W) of
        none -> W;
        _ -> lists:foldl(fun(Item, Acc) -> decided_item(Item, N, G, Pos, Acc) end, W, Items)
    end.

decided_item({view, View, [_ | _] = Drops, _, _}, N, G, Pos, W0) ->
    Rows = sderl_sim_world:rows(N, G, W0),
    lists:foldl(fun(Home, W) ->
        case lists:sort([Name || Name := {_, Pid, H, _, _} <- Rows, H =:= Home, node(Pid) =:= Home,
                                 sderl_sim_world:alive(Pid, W)]) of
            [] -> W;
            Names ->
                %% A new life of the home comes empty, also where a process of it had a name before.
                W1 = case View of
                    #{Home := {{Counter, _}, _}} when Counter < 0 -> W;
                    _ -> leased(N, Home, G, Pos, Names, W)
                end,
                sderl_sim_client:not_known(Home, G, Names, W1)
        end
    end, W0, Drops);
decided_item({mem, Mem, Removed}, N, G, Pos, W0) ->
    %% Its names are those of an outsider from here on, also where it is added again: they go with the link.
    W = lists:foldl(fun(Out, Acc) -> sderl_sim_client:not_known(Out, G, all, Acc) end, W0, Removed),
    #q{forgotten = Known} = Q = of_group(G, W),
    Forgotten = sderl_membership:forgotten(Mem),
    forgets_nobody(Forgotten -- Known, N, G, Pos, Q, W),
    keep_of(G, Q#q{forgotten = Forgotten}, W);
decided_item(_, _, _, _, W) -> W.

%% (A coordinator that has lost its majority may still decide this. It must not be committed.)
leased(N, Home, G, Pos, Names, #w{now = Now} = W) ->
    #q{lost = Lost, unleased = Unleased} = Q = of_group(G, W),
    #n{life = Life} = node(Home, W),
    Unlinked = case sderl_sim_net:unlinked_since(N, Home, W) of
        linked -> 0;
        Since -> Now - Since
    end,
    %% A node that stood still, or whose process has just begun, could not declare anything.
    Disturbed = sderl_sim_world:undisturbed(Home, W) < lease_ms(W),
    %% Who left and was added again is as good as a new life.
    #b{left = Left} = book(G, W),
    Anew = is_map_key({Home, Life}, Left),
    Declared = is_map_key({Home, Life}, Lost) orelse Disturbed orelse seen(Home, G, W) =:= none,
    Leased = Unlinked >= lease_ms(W),
    Why = if
        Anew -> none;
        not Declared -> has_not_declared;
        not Leased -> {unlinked_for, Unlinked};
        true -> none
    end,
    case Why of
        none -> W;
        _ -> keep_of(G, Q#q{unleased = Unleased#{Pos => {Home, Why, Names}}}, W)
    end.

forgets_nobody([], _, _, _, _, _) -> ok;
forgets_nobody(Nodes, N, G, Pos, #q{lost = Lost}, W) ->
    #n{life = Life} = node(N, W),
    case {is_map_key({N, Life}, Lost), seen(N, G, W)} of
        {false, #{majority := true}} -> ok;
        {false, Seen} when not is_map_key(majority, Seen) -> ok;
        _ -> violation(forgets_nobody, [Pos, N, Nodes], W)
    end.

%% ---------------------------------------------------------------- what is committed

%% Somebody holds the batch at this position for committed, and all before it in its log.
claimed(_, _, {_, 0}, W) -> W;
claimed(N, G, {E, _} = Claim, W) ->
    case {seen(N, G, W), of_group(G, W)} of
        {#{lineage := Lineage, history := History}, #q{} = Q} ->
            case E =:= Lineage orelse lists:keymember(E, 1, History) of
                true -> committed(N, G, place(Claim, History), Lineage, History, Q, W);
                false -> W
            end;
        _ -> W
    end.

%% The epoch in which a batch of this log was decided. A new coordinator repeats the last one.
place({E, Num}, History) ->
    case [Old || {Old, Last} <- lists:reverse(History), Old < E, Last >= Num] of
        [Old | _] -> {Old, Num};
        [] -> {E, Num}
    end.

committed(_, _, {E, Num}, _, _, #q{commits = Commits}, W) when map_get(E, Commits) >= Num -> W;
committed(_, _, {E, _}, _, _, #q{floor = Floor}, W) when Floor =/= none, E =< Floor -> W;
%% The first one of a new log: what it holds nobody can say better.
committed(N, G, Pos, _, _, #q{last = none, floor = Floor} = Q, W) when Floor =/= none ->
    #{membership := Mem} = seen(N, G, W),
    keep_of(G, Q#q{electors = sderl_membership:members(Mem), last = Pos}, W);
committed(N, G, {E, Num} = Pos, Lineage, History, Q0, W) ->
    one_log(N, Pos, History, Q0, W),
    promised(N, G, Lineage, Q0, W),
    Q1 = lists:foldl(fun(Next, Q) -> agreed(N, G, Next, Lineage, History, Q, W) end, Q0,
                     positions(Pos, History, Q0)),
    #q{commits = Commits, reigns = Reigns, last = Last} = Q1,
    Reign = [P || {Old, _} = P <- History, Old < E],
    keep_of(G, Q1#q{commits = Commits#{E => Num}, reigns = maps:merge(#{E => Reign}, Reigns),
                    last = case Last of none -> Pos; _ -> max(Last, Pos) end}, W).

one_log(N, {E, Num} = Pos, History, #q{commits = Commits, reigns = Reigns}, W) ->
    _ = [violation(one_log, [N, {commits, Pos}, {without, {Old, Least}}, History], W)
         || Old := Least <- maps:iterator(Commits, ordered), Old < E, not has({Old, Least}, History)],
    _ = [violation(one_log, [N, {commits, Pos}, {beside, Younger}, Reign], W)
         || Younger := Reign <- maps:iterator(Reigns, ordered), Younger > E, not has({E, Num}, Reign)],
    ok.

has({E, Num}, History) ->
    case lists:keyfind(E, 1, History) of
        {_, Last} -> Num =< Last;
        false -> length(History) >= ?HISTORY
    end.

%% The positions of this log that are committed by now, and were not known to be.
positions({E, Num}, History, #q{last = Last}) ->
    Segments = [P || {Old, _} = P <- lists:reverse(History), Old < E] ++ [{E, Num}],
    {After, From} = case Last of
        none -> {first, 0};
        {_, _} -> Last
    end,
    {Positions, _} = lists:foldl(fun({Epoch, To}, {Acc, Was}) ->
        New = if
            After =:= first; Epoch > After -> [{Epoch, K} || K <- lists:seq(Was + 1, To)];
            Epoch =:= After -> [{Epoch, K} || K <- lists:seq(max(From, Was) + 1, To)];
            true -> []
        end,
        {Acc ++ New, max(Was, To)}
    end, {[], 0}, Segments),
    Positions.

agreed(N, G, Pos, Lineage, History, #q{electors = Before, unleased = Unleased} = Q, W) ->
    #b{log = Log} = book(G, W),
    Items = case Log of
        #{Pos := {_, Known}} -> Known;
        _ -> []
    end,
    After = lists:foldl(fun({mem, Mem, _}, _) -> sderl_membership:members(Mem);
                           (_, Members) -> Members
                        end, Before, Items),
    by_majority(N, G, Pos, Lineage, History, Before, Q, W),
    After =:= Before orelse by_majority(N, G, Pos, Lineage, History, After, Q, W),
    _ = [never_applied(Q, Key, Pos, Items, W)
         || {seg, O, Sid, R, _, _} <- Items, Key <- [{O, Sid, R}], is_map_key(Key, Q#q.never)],
    case Unleased of
        #{Pos := Why} -> violation(leased, [N, Pos, Why], W);
        _ -> Q#q{electors = After}
    end.

by_majority(_, _, _, _, _, [], _, _) -> ok;
by_majority(N, G, {E, Num} = Pos, Lineage, History, Members, #q{acks = Acks}, W) ->
    Epochs = [Lineage | [X || {X, _} <- History, X >= E]],
    Acked = fun(M) ->
        lists:any(fun({_, Coord} = X) -> Coord =:= M orelse maps:get({M, X}, Acks, -1) >= Num end, Epochs)
    end,
    Have = [M || M <- Members, Acked(M) orelse has_left(M, G, W)],
    is_majority(Have, Members) orelse violation(by_majority, [N, {commits, Pos}, {members, Members}, {have, Have}], W),
    ok.

promised(N, G, {_, Coord} = E, #q{promises = Promises, electors = Electors, reigns = Reigns}, W) ->
    Promised = lists:usort([Coord | maps:get(E, Promises, [])]),
    is_map_key(E, Reigns)
        orelse is_majority([M || M <- Electors, lists:member(M, Promised) orelse has_left(M, G, W)], Electors)
        orelse length(Electors) < 2
        orelse violation(by_majority, [N, {epoch, E}, {members, Electors}, {promised, Promised}], W),
    ok.

%% Who has left agrees to all that others do without it.
has_left(N, G, W) ->
    #b{left = Left} = book(G, W),
    is_map_key({N, (node(N, W))#n.life}, Left) andalso seen(N, G, W) =:= none.

is_majority(Some, All) -> 2 * length(Some) > length(All).

%% ---------------------------------------------------------------- answers

-doc "An operation is answered on its node for the first time.".
-spec answered(node(), term(), term(), term(), #w{}) -> #w{}.
answered(N, G, Id, V, W) ->
    case of_group(G, W) of
        none -> W;
        Q -> heard(V, N, G, Id, Q, W)
    end.

heard(unknown, _, _, _, _, W) -> W;
heard({live, _}, _, _, _, _, W) -> W;
heard({no, no_majority}, _, G, Id, #q{places = Places, never = Never, commits = Commits} = Q, W) ->
    case Places of
        #{Id := {Key, _}} ->
            #b{answered = Done, log = Log} = book(G, W),
            Q1 = Q#q{never = Never#{Key => [Id | maps:get(Key, Never, [])]}},
            W1 = keep_of(G, Q1, W),
            _ = [never_applied(Q1, Key, Pos, element(2, map_get(Pos, Log)), W1)
                 || {E, Num} = Pos <- maps:get(Key, Done, []), Num =< maps:get(E, Commits, -1)],
            W1;
        _ -> W
    end;
heard(V, N, G, Id, #q{lost = Lost} = Q, #w{ops = Ops, now = Now} = W) ->
    #n{life = Life} = node(N, W),
    case found(N, G, Id, Q, W) of
        none when V =:= yes; V =:= ok; element(1, V) =:= read -> violation(as_committed, [Id, V, in_no_log_of, N], W);
        none -> W;
        %% It was to be asked again when this member left.
        {_, _, _, {no, later}} when V =:= {no, not_member} -> W;
        {Pos, SegNo, OpNo, Decided} ->
            is_map_key({N, Life}, Lost) andalso violation(silent_minority, [N, Id, V], W),
            Decided =:= V orelse violation(as_committed, [Id, Pos, {decided, Decided}, {answered, V}], W),
            W1 = claimed(N, G, Pos, W),
            #q{answers = Answers, floor = Floor} = Q1 = of_group(G, W1),
            #{Id := #{since := Since, op := Op}} = Ops,
            case Floor =/= none andalso element(1, Pos) =< Floor of
                true -> W1;
                false -> keep_of(G, Q1#q{answers = [{{Pos, SegNo, OpNo}, Since, Now, {Id, Op, V}} | Answers]}, W1)
            end
    end.

%% Where an operation is in the log of the member that answers it, and what was decided.
found(N, G, Id, #q{places = Places}, W) ->
    #b{answered = Done, log = Log} = book(G, W),
    maybe
        #{Id := {Key, OpNo}} ?= Places,
        #{lineage := Lineage, history := History, num := Num} ?= seen(N, G, W),
        Own = [{Lineage, Num} | History],
        [Pos | _] ?= [P || {E, At} = P <- maps:get(Key, Done, []),
                           {Epoch, Last} <- Own, Epoch =:= E, At =< Last],
        #{Pos := {_, Items}} = Log,
        [{SegNo, Ops, As} | _] ?= [{I, Ops, As} || {I, {seg, O, Sid, R, Ops, As}} <- lists:enumerate(Items),
                                                   {O, Sid, R} =:= Key],
        {place(Pos, History), SegNo, OpNo, decided_answer(OpNo, Ops, As)}
    else
        _ -> none
    end.

decided_answer(I, Ops, default) -> sderl_core_answer:default(lists:nth(I, Ops));
decided_answer(I, _, As) -> sderl_core_answer:plain(lists:nth(I, As)).

never_applied(#q{never = Never, places = Places}, {O, Sid, R} = Key, Pos, Items, W) ->
    #{Key := Ids} = Never,
    _ = [violation(never_applied, [Id, Pos, lists:nth(I, Ops)], W)
         || {seg, O1, Sid1, R1, Ops, As} <- Items, {O1, Sid1, R1} =:= {O, Sid, R},
            Id <- Ids, #{Id := {Of, I}} <- [Places], Of =:= Key, is_applied(decided_answer(I, Ops, As))],
    ok.

%% (A change of the membership for which too few members count is refused in its place in the log.)
is_applied({no, later}) -> false;
is_applied({no, no_majority}) -> false;
is_applied(_) -> true.

%% ---------------------------------------------------------------- minorities

-doc "A member has had a tick.".
-spec ticked(node(), term(), #w{}) -> #w{}.
ticked(_, _, #w{checks = false} = W) -> W;
ticked(N, G, W) ->
    case of_group(G, W) of
        none -> W;
        Q -> joined(N, G, Q, W)
    end.

joined(N, G, #q{electors = Electors, alone = Alone, lost = Lost} = Q, #w{now = Now} = W) ->
    #n{life = Life} = node(N, W),
    Reach = sderl_sim_net:reach(N, G, W),
    is_map_key({N, Life}, Lost) andalso bounded_waiting(N, G, map_get({N, Life}, Lost), W),
    case is_majority([M || M <- Electors, lists:member(M, Reach)], Electors) of
        true -> keep_of(G, Q#q{alone = maps:remove(N, Alone)}, W);
        false ->
            Since = maps:get(N, Alone, Now),
            Bound = lost_ms(W) + ?SPARE_MS + sderl_sim_world:slack(W),
            case min(Now - Since, sderl_sim_world:undisturbed(N, W)) > Bound of
                true -> declared_in_time(N, G, Since, W);
                false -> ok
            end,
            keep_of(G, Q#q{alone = Alone#{N => Since}}, W)
    end.

declared_in_time(N, G, Since, W) ->
    case seen(N, G, W) of
        #{majority := true} -> violation(bounded_waiting, [N, {no_majority_since, Since}, has_not_declared], W);
        _ -> bounded_waiting(N, G, Since, W)
    end.

%% (What a client asks is answered in the same step; its mail may wait for that.)
bounded_waiting(N, G, Since, #w{now = Now, ops = Ops} = W) ->
    #n{life = Life} = node(N, W),
    Bound = ?SPARE_MS + sderl_sim_world:slack(W),
    Undisturbed = sderl_sim_world:undisturbed(N, W) > Bound,
    case [Id || Undisturbed, Id := #{node := ON, group := OG, life := OL, since := At} = O <- Ops,
                ON =:= N, OG =:= G, OL =:= Life, not is_map_key(answer, O), not is_map_key(given_up, O),
                Now - max(At, Since) > Bound] of
        [] -> ok;
        Ids -> violation(bounded_waiting, [N, {no_majority_since, Since}, {waiting, lists:sort(Ids)}], W)
    end.

-doc """
A node has died, with its memory. Where no majority of the members remembers the log any more, what was
committed may be gone.
""".
-spec crashed(term(), #w{}) -> #w{}.
crashed(G, W) ->
    case of_group(G, W) of
        none -> W;
        #q{last = none} -> W;
        #q{electors = Electors} = Q ->
            case is_majority([N || N <- Electors, remembers(N, G, W)], Electors) of
                true -> W;
                false -> forgotten(G, keep_of(G, new_log(Q, W), W))
            end
    end.

%% What a batch took away may be there again, and what was answered may be gone.
forgotten(G, W0) ->
    B = book(G, W0),
    lists:foldl(fun(N, W) -> sderl_sim_client:not_known(N, G, all, W) end,
                keep_book(G, B#b{removed = #{}}, W0), sderl_sim_world:nodes_of(G, W0)).

remembers(N, G, W) ->
    case {member(N, G, W), seen(N, G, W)} of
        {#m{store = undefined}, _} -> false;
        {_, #{lineage := {C, _}, syncing := Syncing}} -> C >= 0 andalso not Syncing;
        %% Its process is about to come back.
        {#m{}, none} -> true;
        _ -> false
    end.

new_log(#q{acks = Acks, commits = Commits, promises = Promises} = Q, W) ->
    one_order(Q, W),
    Epochs = [E || {_, E} := _ <- Acks] ++ maps:keys(Commits) ++ maps:keys(Promises),
    Q#q{last = none, commits = #{}, reigns = #{}, acks = #{}, promises = #{}, answers = [], unleased = #{},
        floor = lists:max([Q#q.floor | Epochs])}.

-doc """
Where too many members are lost for good, or have forgotten the log while others are lost, an operator lets
those go on that are left.
""".
-spec recover(#w{}) -> #w{}.
recover(W) -> lists:foldl(fun recover/2, W, sderl_sim_world:groups(W)).

recover(G, W0) ->
    case {of_group(G, W0), sderl_sim_world:live_members(G, W0)} of
        {#q{} = Q, [_ | _] = Live} ->
            Electors = members_of_longest(G, Live, W0),
            Survivors = [N || N <- Live, lists:member(N, Electors)],
            Lost = [N || N <- Electors, (node(N, W0))#n.lost],
            Vote = [N || N <- Survivors, #{votes := true} <- [seen(N, G, W0)]],
            Has = [N || N <- Live, #{majority := true} <- [seen(N, G, W0)]],
            case Lost =/= [] andalso Has =:= [] andalso not is_majority(Vote, Electors) of
                true ->
                    W1 = keep_of(G, (new_log(Q, W0))#q{electors = Survivors}, W0),
                    lists:foldl(fun(N, W) -> sderl_sim_command:run({in, G, {recover, N, Survivors}}, W) end,
                                sderl_sim_world:count(recover, W1), Survivors);
                false -> W0
            end;
        _ -> W0
    end.

%% An operator asks those who are left for their members, and believes the one that knows most.
members_of_longest(G, Live, W) ->
    {_, Mem} = lists:max([{{E, Num}, Mem} || N <- Live,
                                             #{lineage := E, num := Num, membership := Mem} <- [seen(N, G, W)]]),
    sderl_membership:members(Mem).

-doc "So long the names of nodes that are lost for good may stay, where there are any.".
-spec leases_ms(#w{}) -> number().
leases_ms(W) ->
    Lost = lists:any(fun(N) -> (node(N, W))#n.lost end, sderl_sim_world:all(W)),
    case sderl_sim_world:option(mode, available, W) of
        majority when Lost -> lease_ms(W) + ?SPARE_MS + sderl_sim_world:slack(W);
        _ -> 0
    end.

-doc "What must hold of a group once the faults are over.".
-spec settled(term(), [node()], #w{}) -> ok.
settled(G, Members, W) ->
    case of_group(G, W) of
        none -> ok;
        #q{lost = Lost} = Q ->
            one_order(Q, W),
            _ = [violation(regained, [N], W) || N <- Members, is_map_key({N, (node(N, W))#n.life}, Lost)],
            ok
    end.

%% Each operation happened between its question and its answer: none that is later in the log was answered
%% before it was asked.
one_order(#q{answers = Answers}, W) ->
    _ = lists:foldl(fun({_, Asked, _, _} = Answer, none) -> _ = Asked, Answer;
                       ({_, Asked, _, What} = Answer, {_, _, Done, Later} = First) ->
            Done >= Asked orelse violation(one_order, [{later, Later, {answered, Done}}, {earlier, What, {asked, Asked}}], W),
            case element(3, Answer) < Done of
                true -> Answer;
                false -> First
            end
    end, none, lists:reverse(lists:sort(Answers))),
    ok.
