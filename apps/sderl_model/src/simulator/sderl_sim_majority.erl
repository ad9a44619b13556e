%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_majority).
-moduledoc """
The promises of a simulated group in majority mode, in addition to those of all groups in
`m:sderl_sim_check`: one function for each promise, under its name.

A batch counts as committed as soon as a coordinator says so in a message, or a member in an answer.
The committed batches of all epochs are one log (`m:sderl_sim_majority_log`). `bounded_waiting` is
in `m:sderl_sim_majority_wait`.

| promise | what it says |
|---|---|
| `one_log` | a batch that was committed is in the log of every coordinator that commits anything later, and no batch of an older epoch is committed beside it; no member brings rows to a merge |
| `by_majority` | a committed batch is acknowledged, and the epoch that commits it promised, by a majority of the members, and of both memberships if it changes the members |
| `as_committed` | an answer is the one that the committed log has for that operation |
| `one_order` | answered operations are in the log in a possible order: none comes after an operation that was asked after its answer |
| `leased` | the names of a process that lives are freed only after its node has had no link to the coordinator for the time of the lease, and its member has declared the majority lost |
| `never_applied` | an operation that was answered `no_majority` is in no committed batch |
| `silent_minority` | a member that declared the majority lost answers only that, until it has regained it |
| `bounded_waiting` | a member without links to a majority declares it lost in time, and keeps no client waiting from then on |
| `forgets_nobody` | a coordinator without a majority orders no member to be forgotten |

All this holds as long as a majority of the members remembers the log. If so many nodes die at once,
with their memory, that no majority does, committed batches may be lost with them: from then on a
new log is checked (`crashed/2`).

A group that is made at run time is not checked, because there may be two of its name.
""".
-include("sderl_sim.hrl").
-include("sderl_sim_majority.hrl").

-export([new/2, arguments/4, asked/4, sent/4, decided/5, recorded/4, answered/5]).
-export([begun/3, declared/4, left/4, crashed/2]).
-export([recover/1, leases_ms/1, settled/3]).

-import(sderl_sim_world, [violation/3, node/2, member/3, book/2, keep_book/3, seen/3]).
-import(sderl_sim_majority_log, [of_group/2, keep_of/3, claimed/4, place/2, is_majority/2,
                                 decided_answer/3, never_applied/5]).
-import(sderl_sim_majority_wait, [lease_ms/1, spare_ms/1]).

-doc "The state to check a group with these members at the start.".
-spec new(available | majority, [node()]) -> #q{} | none.
new(majority, [_ | _] = Members) -> #q{electors = lists:sort(Members)};
new(_, _) -> none.

-doc "The further arguments of `sderl_core:init/1` in majority mode.".
-spec arguments(term(), map(), #m{}, #w{}) -> map().
arguments(G, Args, #m{file = File}, W) ->
    case sderl_sim_world:mode(G, W) of
        available -> Args;
        majority ->
            Fresh = sderl_sim_world:option(files, false, W) andalso File =:= none,
            Args#{mode => majority, fresh => Fresh}
    end.

%% ---------------------------------------------------------------- records

-doc "A member's list of operations goes out.".
-spec asked(term(), term(), [{term(), term()}], #w{}) -> #w{}.
asked(G, Key, List, W) ->
    case of_group(G, W) of
        none -> W;
        #q{places = Places} = Q ->
            New = #{Id => {Key, I} || {I, {Id, _}} <- lists:enumerate(List), Id =/= none},
            keep_of(G, Q#q{places = maps:merge(Places, New)}, W)
    end.

-doc "A message goes out: records what its sender has, and what it says to be committed.".
-spec sent(node(), term(), term(), #w{}) -> #w{}.
sent(N, G, Msg, W) ->
    case of_group(G, W) of
        none -> W;
        Q -> said(Msg, N, G, Q, W)
    end.

said({ack, E, Num, _}, N, G, #q{acks = Acks, out = Out} = Q, W) ->
    keep_of(G, Q#q{acks = Acks#{{N, E} => max(Num, maps:get({N, E}, Acks, 0))},
                   out = maps:remove(N, Out)}, W);
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

-doc "A process of the protocol begins; it does not know what its predecessor declared.".
-spec begun(node(), term(), #w{}) -> #w{}.
begun(N, G, W) ->
    case of_group(G, W) of
        none -> W;
        #q{lost = Lost} = Q ->
            #n{life = Life} = node(N, W),
            keep_of(G, Q#q{lost = maps:remove({N, Life}, Lost)}, W)
    end.

-doc "A member leaves the group, with this membership.".
-spec left(node(), term(), sderl_membership:t(), #w{}) -> #w{}.
left(N, G, Mem, W) ->
    case of_group(G, W) of
        none -> W;
        #q{out = Out} = Q -> keep_of(G, Q#q{out = Out#{N => Mem}}, W)
    end.

-doc "A member declares that it has lost the majority, or has it again.".
-spec declared(node(), term(), lost | regained, #w{}) -> #w{}.
declared(N, G, Is, #w{now = Now} = W) ->
    #n{life = Life} = node(N, W),
    case {Is, of_group(G, W)} of
        {_, none} -> W;
        {lost, #q{lost = Lost} = Q} ->
            %% From now on the majority may free its names.
            Declared = keep_of(G, Q#q{lost = Lost#{{N, Life} => Now}}, W),
            sderl_sim_known:not_known(N, G, all, Declared);
        {regained, #q{lost = Lost} = Q} -> keep_of(G, Q#q{lost = maps:remove({N, Life}, Lost)}, W)
    end.

%% ---------------------------------------------------------------- the log

-doc "A batch is in a member's log.".
-spec recorded(term(), position(), [term()], #w{}) -> #w{}.
recorded(G, Pos, Items, W) ->
    case of_group(G, W) of
        none -> ok;
        _ ->
            _ = [violation(one_log, [Pos, merges, Item], W) || Item <- Items, is_of_a_merge(Item)],
            ok
    end,
    W.

is_of_a_merge(#shard{}) -> true;
is_of_a_merge(#clashes{}) -> true;
is_of_a_merge(#settle{}) -> true;
is_of_a_merge(_) -> false.

-doc "The coordinator on this node has decided a batch, and is about to apply it.".
-spec decided(node(), term(), position(), [term()], #w{}) -> #w{}.
decided(N, G, Pos, Items, W) ->
    case of_group(G, W) of
        none -> W;
        _ -> lists:foldl(fun(Item, Acc) -> decided_item(Item, N, G, Pos, Acc) end, W, Items)
    end.

decided_item(#view{places = View, drops = [_ | _] = Drops}, N, G, Pos, W0) ->
    Rows = sderl_sim_world:rows(N, G, W0),
    lists:foldl(fun(Home, W) ->
        case lists:sort([Name || Name := ?ROW_OF_AT(Pid, H) <- Rows,
                                 H =:= Home, node(Pid) =:= Home, sderl_sim_world:alive(Pid, W)]) of
            [] -> W;
            Names ->
                %% A new life of the home comes empty, also where a process of it had a name before.
                W1 = case View of
                    #{Home := {{Counter, _}, _}} when Counter < 0 -> W;
                    _ -> leased(N, Home, G, Pos, Names, W)
                end,
                sderl_sim_known:not_known(Home, G, Names, W1)
        end
    end, W0, Drops);
decided_item(#mem{membership = Mem, removed = Removed}, N, G, Pos, W0) ->
    %% Its names are those of an outsider from here on, even if it is added again: they are removed
    %% with the link.
    Forget = fun(Out, Acc) -> sderl_sim_known:not_known(Out, G, all, Acc) end,
    W = lists:foldl(Forget, W0, Removed),
    #q{forgotten = Known} = Q = of_group(G, W),
    Forgotten = sderl_membership:forgotten(Mem),
    forgets_nobody(Forgotten -- Known, N, G, Pos, Q, W),
    keep_of(G, Q#q{forgotten = Forgotten}, W);
decided_item(_, _, _, _, W) -> W.

%% A coordinator that has lost its majority may still decide this, but it must not be committed.
leased(N, Home, G, Pos, Names, #w{now = Now} = W) ->
    #q{lost = Lost, unleased = Unleased} = Q = of_group(G, W),
    #n{life = Life} = node(Home, W),
    Unlinked = case sderl_sim_net:unlinked_since(N, Home, W) of
        linked -> 0;
        Since -> Now - Since
    end,
    %% A node that was stopped, or whose process has just begun, could not declare anything.
    Disturbed = sderl_sim_world:undisturbed(Home, W) < lease_ms(W),
    %% A member that left and was added again counts as a new run.
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
        none when V =:= yes; V =:= ok; element(1, V) =:= read ->
            violation(as_committed, [Id, V, in_no_log_of, N], W);
        none -> W;
        %% Its client was to ask again when this member left.
        {_, _, _, {no, later}} when V =:= {no, not_member} -> W;
        {Pos, SegNo, OpNo, Decided} ->
            is_map_key({N, Life}, Lost) andalso violation(silent_minority, [N, Id, V], W),
            Decided =:= V
                orelse violation(as_committed, [Id, Pos, {decided, Decided}, {answered, V}], W),
            W1 = claimed(N, G, Pos, W),
            #q{answers = Answers, floor = Floor} = Q1 = of_group(G, W1),
            #{Id := #{since := Since, op := Op}} = Ops,
            case Floor =/= none andalso element(1, Pos) =< Floor of
                true -> W1;
                false ->
                    Answer = {{Pos, SegNo, OpNo}, Since, Now, {Id, Op, V}},
                    keep_of(G, Q1#q{answers = [Answer | Answers]}, W1)
            end
    end.

%% The place of an operation in the log of the member that answers it, and its decided answer.
found(N, G, Id, #q{places = Places}, W) ->
    #b{answered = Done, log = Log} = book(G, W),
    maybe
        #{Id := {Key, OpNo}} ?= Places,
        #{lineage := Lineage, history := History, num := Num} ?= seen(N, G, W),
        Own = [{Lineage, Num} | History],
        [Pos | _] ?= [P || {E, At} = P <- maps:get(Key, Done, []),
                           {Epoch, Last} <- Own, Epoch =:= E, At =< Last],
        #{Pos := {_, Items}} = Log,
        [{ListNo, #seg{operations = Ops, answers = As}} | _] ?=
            [{I, List}
             || {I, #seg{member = O, session = Sid, number = R} = List} <- lists:enumerate(Items),
                {O, Sid, R} =:= Key],
        {place(Pos, History), ListNo, OpNo, decided_answer(OpNo, Ops, As)}
    else
        _ -> none
    end.

-doc """
A node has died, with its memory. If no majority of the members remembers the log any more,
committed batches may be lost.
""".
-spec crashed(term(), #w{}) -> #w{}.
crashed(G, W) ->
    case of_group(G, W) of
        none -> W;
        #q{last = none} -> W;
        #q{electors = Electors} = Q ->
            Voters = voters(G, sderl_sim_world:live_members(G, W), W),
            case is_majority([N || N <- Electors, remembers(N, G, Voters, W)], Electors) of
                true -> W;
                false -> forgotten(G, keep_of(G, new_log(Q, W), W))
            end
    end.

%% Names that a batch removed may be there again, and answered writes may be lost.
forgotten(G, W0) ->
    B = book(G, W0),
    lists:foldl(fun(N, W) -> sderl_sim_known:not_known(N, G, all, W) end,
                keep_book(G, B#b{removed = #{}}, W0), sderl_sim_world:nodes_of(G, W0)).

remembers(N, G, Voters, W) ->
    case {member(N, G, W), seen(N, G, W)} of
        {#m{store = undefined}, _} -> false;
        {_, #{lineage := {C, _}, syncing := Syncing}} ->
            C >= 0 andalso (not Syncing orelse lists:member(N, Voters));
        %% Its process is about to come back.
        {#m{}, none} -> true;
        _ -> false
    end.

new_log(#q{acks = Acks, commits = Commits, promises = Promises} = Q, W) ->
    one_order(Q, W),
    Epochs = [E || {_, E} := _ <- Acks] ++ maps:keys(Commits) ++ maps:keys(Promises),
    Q#q{last = none, commits = #{}, reigns = #{}, acks = #{}, promises = #{}, answers = [],
        unleased = #{}, floor = lists:max([Q#q.floor | Epochs])}.

-doc """
If too many members are lost for good, or have forgotten the log while others are lost, an operator
lets the remaining ones continue. A member that was added at run time and has forgotten that counts
as lost, if the others have forgotten it too and know it only from one that has left.
""".
-spec recover(#w{}) -> #w{}.
recover(W) -> lists:foldl(fun recover/2, W, sderl_sim_world:groups(W)).

recover(G, W0) ->
    case {of_group(G, W0), sderl_sim_world:live_members(G, W0)} of
        {#q{} = Q, [_ | _] = Live} ->
            {Electors, Before} = members_of_longest(G, Live, W0),
            Survivors = [N || N <- Live, lists:member(N, Electors)],
            Lost = [N || N <- lists:usort(Electors ++ Before), (node(N, W0))#n.lost] ++
                (told_of(G, W0) -- (Electors ++ Before ++ Live)),
            Vote = voters(G, Live, W0),
            Has = [N || N <- Live, #{majority := true} <- [seen(N, G, W0)]],
            %% While a change of the members may not be committed, a majority of both memberships is
            %% needed.
            Enough = is_majority(Vote, Electors) andalso is_majority(Vote, Before),
            case Lost =/= [] andalso Has =:= [] andalso not Enough of
                true ->
                    W1 = keep_of(G, (new_log(Q, W0))#q{electors = Survivors}, W0),
                    lists:foldl(fun(N, W) ->
                        sderl_sim_mail:mail(N, G, {recover, none, Survivors}, W)
                    end, sderl_sim_world:count(recover, W1), Survivors);
                false -> W0
            end;
        _ -> W0
    end.

%% A member that remembers its promises votes. One of them must have a whole table, of a log that is
%% at least as long as that of a snapshot that any of them was receiving.
voters(G, Live, W) ->
    Seen = [{N, seen(N, G, W)} || N <- Live, seen(N, G, W) =/= none],
    Logs = [{E, Num} || {_, #{lineage := E, num := Num, syncing := false}} <- Seen],
    [N || {N, #{lineage := E, num := Num, remembers := true}} <- Seen,
          lists:any(fun(Log) -> Log >= {E, Num} end, Logs)].

%% The members that are known to nodes that have left.
told_of(G, W) ->
    lists:usort([N || Left <- sderl_sim_world:nodes_of(G, W), seen(Left, G, W) =:= none,
                      _ := {removed, Mem} <- (member(Left, G, W))#m.gone,
                      N <- sderl_membership:members(Mem)]).

%% An operator asks the remaining nodes for their members, and for those before the last change, and
%% takes the answer with the longest log.
members_of_longest(G, Live, W) ->
    {_, Mem, Before} =
        lists:max([{{E, Num}, Mem, Before}
                   || N <- Live,
                      #{lineage := E, num := Num, membership := Mem, before := Before} <-
                          [seen(N, G, W)]]),
    Members = sderl_membership:members(Mem),
    {Members, case Before of undefined -> Members; _ -> sderl_membership:members(Before) end}.

-doc "How long the names of nodes that are lost for good may stay, ms; 0 if none are lost.".
-spec leases_ms(#w{}) -> number().
leases_ms(W) ->
    Lost = lists:any(fun(N) -> (node(N, W))#n.lost end, sderl_sim_world:all(W)),
    case sderl_sim_world:option(mode, available, W) of
        majority when Lost -> lease_ms(W) + spare_ms(W);
        _ -> 0
    end.

-doc "The promises of a group once the faults are over.".
-spec settled(term(), [node()], #w{}) -> ok.
settled(G, Members, W) ->
    case of_group(G, W) of
        none -> ok;
        #q{lost = Lost} = Q ->
            one_order(Q, W),
            _ = [violation(regained, [N], W)
                 || N <- Members, is_map_key({N, (node(N, W))#n.life}, Lost)],
            ok
    end.

%% Each operation happened between its question and its answer: no later one of the log was answered
%% before it was asked.
one_order(#q{answers = Answers}, W) ->
    _ = lists:foldl(fun({_, Asked, _, _} = Answer, none) -> _ = Asked, Answer;
                       ({_, Asked, _, What} = Answer, {_, _, Done, Later} = First) ->
            Details = [{later, Later, {answered, Done}}, {earlier, What, {asked, Asked}}],
            Done >= Asked orelse violation(one_order, Details, W),
            case element(3, Answer) < Done of
                true -> Answer;
                false -> First
            end
    end, none, lists:reverse(lists:sort(Answers))),
    ok.
