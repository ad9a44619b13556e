%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_majority_log).
-moduledoc """
The committed log of a simulated group in majority mode, with the promises `one_log`, `by_majority`
and `never_applied` of `m:sderl_sim_majority`.

A batch counts as committed, with all before it, when a member that has it says so (`claimed/4`).
""".
-include("sderl_sim.hrl").
-include("sderl_sim_majority.hrl").

-export([of_group/2, keep_of/3, claimed/4, place/2, is_majority/2]).
-export([decided_answer/3, never_applied/5]).

-import(sderl_sim_world, [violation/3, node/2, book/2, keep_book/3, seen/3]).

-define(HISTORY, 64).

-doc "What is known of a group's log, or `none` if it is not checked.".
-spec of_group(term(), #w{}) -> #q{} | none.
of_group(G, W) -> (book(G, W))#b.majority.

-spec keep_of(term(), #q{}, #w{}) -> #w{}.
keep_of(G, Q, W) -> keep_book(G, (book(G, W))#b{majority = Q}, W).

%% ---------------------------------------------------------------- committed batches

-doc "A member takes the batch at this position for committed, and all before it in its log.".
-spec claimed(node(), term(), position(), #w{}) -> #w{}.
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

-doc "The epoch in which a batch of this log was decided. A new coordinator repeats the last one.".
-spec place(position(), [position()]) -> position().
place({E, Num}, History) ->
    case [Old || {Old, Last} <- lists:reverse(History), Old < E, Last >= Num] of
        [Old | _] -> {Old, Num};
        [] -> {E, Num}
    end.

committed(_, _, {E, Num}, _, _, #q{commits = Commits}, W) when map_get(E, Commits) >= Num -> W;
committed(_, _, {E, _}, _, _, #q{floor = Floor}, W) when Floor =/= none, E =< Floor -> W;
%% The first one of a new log: there is nothing to compare it with. (Its member may have the next
%% batch already, which changed the membership and is not committed.)
committed(N, G, {_, At} = Pos, _, _, #q{last = none, floor = Floor} = Q, W) when Floor =/= none ->
    Mem = case seen(N, G, W) of
        #{num := Num, before := #{} = Before} when Num > At -> Before;
        #{membership := Now} -> Now
    end,
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
         || Old := Least <- maps:iterator(Commits, ordered), Old < E,
            not has({Old, Least}, History)],
    _ = [violation(one_log, [N, {commits, Pos}, {beside, Younger}, Reign], W)
         || Younger := Reign <- maps:iterator(Reigns, ordered), Younger > E,
            not has({E, Num}, Reign)],
    ok.

has({E, Num}, History) ->
    case lists:keyfind(E, 1, History) of
        {_, Last} -> Num =< Last;
        false -> length(History) >= ?HISTORY
    end.

%% The positions of this log that are now known to be committed, and were not before.
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
    Changed = lists:foldl(fun(#mem{membership = Mem}, _) -> Mem;
                             (_, Mem) -> Mem
                          end, none, Items),
    After = case Changed of none -> Before; _ -> sderl_membership:members(Changed) end,
    by_majority(N, G, Pos, Lineage, History, Before, Changed, Q, W),
    After =:= Before orelse by_majority(N, G, Pos, Lineage, History, After, Changed, Q, W),
    _ = [never_applied(Q, Key, Pos, Items, W)
         || #seg{member = O, session = Sid, number = R} <- Items,
            Key <- [{O, Sid, R}], is_map_key(Key, Q#q.never)],
    case Unleased of
        #{Pos := Why} -> violation(leased, [N, Pos, Why], W);
        _ -> Q#q{electors = After, out = maps:without(After -- Before, Q#q.out)}
    end.

by_majority(_, _, _, _, _, [], _, _, _) -> ok;
by_majority(N, G, {E, Num} = Pos, Lineage, History, Members, Changed, #q{acks = Acks} = Q, W) ->
    Epochs = [Lineage | [X || {X, _} <- History, X >= E]],
    Acked = fun(M) ->
        lists:any(fun({_, Coord} = X) ->
            Coord =:= M orelse maps:get({M, X}, Acks, -1) >= Num
        end, Epochs)
    end,
    Have = [M || M <- Members, Acked(M)],
    agree(Have, Members, Changed, G, Q, W)
        orelse violation(by_majority, [N, {commits, Pos}, {members, Members}, {have, Have}], W),
    ok.

promised(N, G, {_, Coord} = E, Q, W) ->
    #q{promises = Promises, electors = Electors, reigns = Reigns} = Q,
    Promised = lists:usort([Coord | maps:get(E, Promises, [])]),
    Mem = case seen(N, G, W) of
        #{membership := Known} -> Known;
        none -> none
    end,
    is_map_key(E, Reigns)
        orelse agree(Promised, Electors, Mem, G, Q, W)
        orelse length(Electors) < 2
        orelse violation(by_majority, [N, {epoch, E}, {members, Electors}, {promised, Promised}],
                         W),
    ok.

%% Whether these, with the members that left by this membership (they agreed to it), are a majority
%% of the members, or all that have not left.
agree(Have, Members, Mem, G, #q{out = Out} = Q, W) ->
    Left = [M || M <- Members -- Have, has_left(M, G, Q, W)],
    is_majority(Have ++ [M || M <- Left, maps:get(M, Out, unknown) =:= Mem], Members)
        orelse Members -- (Have ++ Left) =:= [].

%% A member that has left is not waited for, nor is the next life of its node, which begins with
%% nothing and has no vote (rule 33), until it is in a log or is added again.
has_left(N, G, #q{out = Out}, W) ->
    #b{left = Left} = book(G, W),
    is_map_key(N, Out)
        orelse (is_map_key({N, (node(N, W))#n.life}, Left) andalso seen(N, G, W) =:= none).

-doc "Whether the first list has more than half of the second.".
-spec is_majority([node()], [node()]) -> boolean().
is_majority(Some, All) -> 2 * length([N || N <- All, lists:member(N, Some)]) > length(All).

%% ---------------------------------------------------------------- answers

-doc "The answer of a batch to an operation of one of its lists.".
-spec decided_answer(pos_integer(), [term()], default | [term()]) -> term().
decided_answer(I, Ops, default) -> sderl_core_answer:default(lists:nth(I, Ops));
decided_answer(I, _, As) -> sderl_core_answer:plain(lists:nth(I, As)).

-doc "A batch that holds a list of which some were answered `no_majority` is committed.".
-spec never_applied(#q{}, term(), position(), [term()], #w{}) -> ok.
never_applied(#q{never = Never, places = Places}, Key, Pos, Items, W) ->
    #{Key := Ids} = Never,
    _ = [violation(never_applied, [Id, Pos, lists:nth(I, Ops)], W)
         || #seg{member = O, session = Sid, number = R, operations = Ops, answers = As} <- Items,
            {O, Sid, R} =:= Key,
            Id <- Ids, #{Id := {Of, I}} <- [Places], Of =:= Key,
            is_applied(decided_answer(I, Ops, As))],
    ok.

%% A change of the membership is refused at its place in the log if too few members count.
is_applied({no, later}) -> false;
is_applied({no, no_majority}) -> false;
is_applied(_) -> true.
