%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_check).
-moduledoc """
The promises of a simulated group at every step: one function for each promise, under its name.

A run ends at the first broken promise, with the name and what contradicts it. The promises after
the faults are in `m:sderl_sim_settle`.

| promise | what it says |
|---|---|
| `one_batch` | the same position of the log is the same batch, whoever has it |
| `as_asked` | a batch holds the operations that a member's clients asked, and no others |
| `applied_once` | a list of operations is in the log of a component once |
| `right_answer` | `yes` where name and pid were free, `no` only where they were not, decided in order |
| `one_owner` | after the same batch, every member of a component has the same table: a name has one owner |
| `one_name` | a pid has one name |
| `index` | the coordinator's index of pids agrees with its table |
| `within_one_batch` | live members have all but the batch that is out |
| `no_way_back` | a member acknowledges no epoch below one that it promised |
| `first_answer` | a list that is sent again gets its first answer |
| `everywhere` | what was answered `yes` is on every live member of the component (with `answer => applied`: except those that have not acknowledged the batch that is out) |
| `not_applied` | the pid of a registration that was answered `no` is in no table that grew out of the batch that said so |
| `own_writes` | a client reads what it was last answered |
| `stays_away` | what a batch removed does not come back to a member whose log has that batch (unless its home was cut off before the batch reached it, or sent its shard before: for the home's names the shard counts) |
| `as_decided` | a clash is settled as its resolver decided |
| `one_acknowledges` | two coordinators do not both answer after they have coordinated and been linked and undisturbed for a while |
""".
-include("sderl_sim.hrl").

-export([asked/5, sent/4, recorded/6, applying/6, applied/6, caught_up/3, stepped/3, answered/5]).
-export([reads_own_writes/5]).

-import(sderl_sim_world,
        [violation/3, node/2, member/3, book/2, keep_book/3, seen/3, rows/3, nodes_of/2]).

%% How long two linked components may take to merge. The merge waits for members that stopped, and
%% lost offers are repeated: a few times the set-aside time.
-define(MERGE_MS, 12_000).

%% ---------------------------------------------------------------- what is recorded, and when

-doc "A member's list of operations goes out.".
-spec asked(node(), term(), pos_integer(), [{term(), term()}], #w{}) -> #w{}.
asked(_, _, _, _, #w{checks = false} = W) -> W;
asked(N, G, R, List, W) ->
    #{session := Sid} = seen(N, G, W),
    #b{lists = Ls, asked = Asked} = B = book(G, W),
    Key = {N, Sid, R},
    sderl_sim_majority:asked(G, Key, List, keep_book(G, B#b{
        lists = maps:merge(Ls, #{From => Key || {From, _} <- List, From =/= none}),
        asked = Asked#{Key => [Op || {_, Op} <- List]}
    }, W)).

-doc "A message goes out.".
-spec sent(node(), term(), term(), #w{}) -> #w{}.
sent(_, _, _, #w{checks = false} = W) -> W;
sent(N, G, {ack, E, _, _} = Msg, W) -> sderl_sim_majority:sent(N, G, Msg, no_way_back(N, G, E, W));
sent(N, G, {joined, E, _, _} = Msg, W) ->
    sderl_sim_majority:sent(N, G, Msg, no_way_back(N, G, E, W));
sent(N, G, {shard, E, _, Rows, _} = Msg, W) ->
    sderl_sim_majority:sent(N, G, Msg, brings(N, G, E, Rows, W));
sent(N, G, Msg, W) -> sderl_sim_majority:sent(N, G, Msg, W).

-doc "A batch is about to change a member's table.".
-spec applying(node(), term(), term(), non_neg_integer(), [term()], #w{}) -> #w{}.
applying(_, _, _, _, _, #w{checks = false} = W) -> W;
applying(N, G, E, Num, Items, W0) ->
    #m{store = Store} = member(N, G, W0),
    applied_once(N, Items, Store, W0),
    First = not is_map_key({E, Num}, (book(G, W0))#b.log),
    W1 = sderl_sim_strict:applying(N, G, Items, Store, recorded(N, G, E, Num, Items, W0)),
    %% The deciding member applies it first, and all others do the same.
    case First andalso seen(N, G, W1) of
        #{role := coord, view := View} = Seen ->
            sderl_sim_decided:right_answers(Items, Store, W1),
            sderl_sim_decided:as_decided(N, Items, W1),
            sderl_sim_strict:decided(Items, Seen, W1),
            W2 = sderl_sim_decided:taken_away(G, {E, Num}, Items, Store, View, W1),
            sderl_sim_majority:decided(N, G, {E, Num}, Items, W2);
        _ -> W1
    end.

-doc "A position of the log is this batch; which lists it answers.".
-spec recorded(node(), term(), term(), non_neg_integer(), [term()], #w{}) -> #w{}.
recorded(_, _, _, _, _, #w{checks = false} = W) -> W;
recorded(N, G, E, Num, Items, W) ->
    #b{log = Log, answered = Done} = B = book(G, W),
    Pos = {E, Num},
    case Log of
        #{Pos := {_, Known}} ->
            one_batch(N, Pos, Items, Known, W),
            W;
        _ ->
            as_asked(N, Pos, Items, B, W),
            Lists = [{O, Sid, R} || #seg{member = O, session = Sid, number = R} <- Items] ++
                [{N1, Sid, R} || #shard{member = N1, rest = {_, {Sid, R, _}}} <- Items],
            W1 = keep_book(G, B#b{log = Log#{Pos => {W#w.now, Items}},
                                  answered = lists:foldl(fun(L, A) ->
                                      A#{L => [Pos | maps:get(L, A, [])]}
                                  end, Done, Lists)}, W),
            sderl_sim_majority:recorded(G, Pos, Items, sderl_sim_strict:recorded(G, Pos, Items, W1))
    end.

-doc "A batch has changed a member's table.".
-spec applied(node(), term(), term(), non_neg_integer(), sderl_sim_store:store(), #w{}) -> #w{}.
applied(_, _, _, _, _, #w{checks = false} = W) -> W;
applied(N, G, E, Num, Store, W0) ->
    W = has(N, G, E, Num, W0),
    case sderl_sim_store:whole(Store) of
        true -> one_owner(N, G, {E, Num}, Store, W);
        false -> W
    end.

-doc "A member's snapshot is complete.".
-spec caught_up(node(), term(), #w{}) -> #w{}.
caught_up(_, _, #w{checks = false} = W) -> W;
caught_up(N, G, W) ->
    #{lineage := E, num := Num} = seen(N, G, W),
    has(N, G, E, Num, W).

%% The own names of a learner do not change by batches that it applies. The effect of batches before
%% its snapshot is there when the snapshot is complete.
has(N, G, E, Num, W) ->
    case seen(N, G, W) of
        #{syncing := true} -> W;
        _ ->
            #n{life = Life} = node(N, W),
            #b{applied = Applied} = B = book(G, W),
            keep_book(G, B#b{applied = Applied#{{N, Life, E} => Num}}, W)
    end.

-doc "A member has had its turn.".
-spec stepped(node(), term(), #w{}) -> #w{}.
stepped(_, _, #w{checks = false} = W) -> W;
stepped(N, G, W0) ->
    #m{store = Store, p = #p{seen = Seen}} = member(N, G, W0),
    W = case Seen of
        #{role := coord} ->
            within_one_batch(N, G, Seen, W0),
            began(G, Seen, W0);
        _ -> W0
    end,
    case W#w.written of
        [] -> W;
        Names ->
            index(N, Store, W),
            one_name(N, Store, W),
            not_applied(N, G, Names, Store, Seen, W),
            sderl_sim_strict:wrote(N, G, Names, stays_away(N, G, Names, Store, Seen, W))
    end.

began(G, #{lineage := E}, #w{now = Now} = W) ->
    case book(G, W) of
        #b{began = #{E := _}} -> W;
        #b{began = Began} = B -> keep_book(G, B#b{began = Began#{E => Now}}, W)
    end.

-doc "An operation is answered on its node.".
-spec answered(node(), term(), term(), term(), #w{}) -> #w{}.
answered(_, _, _, _, #w{checks = false} = W) -> W;
answered(N, G, Id, V, #w{ops = Ops} = W) ->
    case Ops of
        #{Id := #{answer := First}} ->
            first_answer(Id, First, V, W),
            W;
        #{Id := #{op := Op}} ->
            V =:= yes andalso everywhere(N, G, Id, Op, W),
            one_acknowledges(N, G, V, W),
            refused(G, Id, Op, V,
                    ordered(N, G, Id, V, sderl_sim_majority:answered(N, G, Id, V, W)));
        _ -> violation(first_answer, [to_nobody, Id, V], W)
    end.

ordered(N, G, Id, V, W) when V =:= yes; V =:= ok ->
    #b{lists = Lists, answered = Done} = book(G, W),
    case Lists of
        #{Id := List} -> sderl_sim_strict:answered(N, G, maps:get(List, Done, []), W);
        _ -> W
    end;
ordered(_, _, _, _, W) -> W.

%% ---------------------------------------------------------------- the log

one_batch(_, _, Items, Items, _) -> ok;
one_batch(N, Pos, Items, Known, W) -> violation(one_batch, [Pos, N, Items, Known], W).

as_asked(N, Pos, Items, #b{asked = Asked}, W) ->
    lists:foreach(fun(#seg{member = O, session = Sid, number = R, operations = Ops}) ->
                         case Asked of
                             #{{O, Sid, R} := Ops} -> ok;
                             #{{O, Sid, R} := Others} ->
                                 violation(as_asked, [Pos, N, O, Ops, Others], W);
                             _ -> violation(as_asked, [Pos, N, O, Ops, nothing], W)
                         end;
                     (_) -> ok
                  end, Items).

applied_once(N, Items, Store, W) ->
    Before = sderl_sim_store:sessions(Store),
    lists:foreach(fun(#seg{member = O, session = Sid, number = R}) ->
                         case Before of
                             #{O := {Sid, Last, _}} when Last >= R ->
                                 violation(applied_once, [N, O, Sid, R, Last], W);
                             _ -> ok
                         end;
                     (_) -> ok
                  end, Items).

no_way_back(N, G, E, W) ->
    #n{life = Life} = node(N, W),
    #b{promised = P} = B = book(G, W),
    Gone = seen(N, G, W) =:= none,
    case P of
        #{{N, Life} := E} -> W;
        #{{N, Life} := Max} when E < Max -> violation(no_way_back, [N, E, Max], W);
        %% What a member sends as it leaves does not bind it in a new group of the same name.
        _ when Gone -> W;
        _ -> keep_book(G, B#b{promised = P#{{N, Life} => E}}, W)
    end.

%% A member that has just caught up counts from the next batch on: while a change of the component
%% waits to be ordered, nothing can be checked.
within_one_batch(N, G,
                 #{num := Num, lineage := E, view := View, flight := Flight, ordering := false},
                 W) ->
    Wait = case Flight of {_, Ns} -> Ns; none -> [] end,
    lists:foreach(fun(M) ->
        case maps:get(M, View, none) =:= live andalso M =/= N andalso seen(M, G, W) of
            #{role := follower, lead := N, lineage := E, syncing := false, num := Has}
              when Has =/= Num ->
                Has < Num andalso lists:member(M, Wait)
                    orelse violation(within_one_batch, [N, Num, M, Has], W);
            _ -> ok
        end
    end, nodes_of(G, W));
within_one_batch(_, _, _, _) -> ok.

%% ---------------------------------------------------------------- answers

first_answer(_, V, V, _) -> ok;
%% A client gets one answer; `unknown` contradicts none.
first_answer(_, _, unknown, _) -> ok;
first_answer(_, unknown, _, _) -> ok;
first_answer(_, {live, _}, _, _) -> ok;
first_answer(Id, First, V, W) -> violation(first_answer, [Id, First, V], W).

%% The list of the operation leads to its batch, and the batch to where every member is.
everywhere(N, G, Id, Op, W) ->
    #b{lists = Ls, answered = Done} = book(G, W),
    Where = maps:get(maps:get(Id, Ls), Done, []),
    #{lead := Lead, leaving := Leaving, lineage := Lin} = seen(N, G, W),
    Where =:= [] andalso violation(everywhere, [in_no_batch, N, Id, Op], W),
    %% A member that hears that it was removed answers the operations that it has applied.
    case Lead =/= undefined andalso Leaving =:= undefined andalso seen(Lead, G, W) of
        #{role := coord, ordering := false, flight := Flight, last := Last, view := View,
          lineage := Lin} ->
            %% A member that has just caught up counts from the batch that says so.
            New = case Flight of
                {_, Wait} -> [M || #view{} <- Last, M <- Wait];
                none -> []
            end,
            Live = [M || M := live <- View, not lists:member(M, New)],
            Lacks = fun(Pos) ->
                [M
                 || M <- Live -- not_awaited(N, Pos, Lin, Flight, W),
                    lacks(seen(M, G, W), Pos, Lin)]
            end,
            lists:any(fun(Pos) -> Lacks(Pos) =:= [] end, Where)
                orelse violation(everywhere, [N, Id, Op, [{Pos, Lacks(Pos)} || Pos <- Where]], W);
        _ -> ok
    end.

%% With `answer => applied`, other live members need not have the batch that is out before they have
%% acknowledged it.
not_awaited(N, {E, Num}, E, {Num, Wait}, W) ->
    case sderl_sim_world:option(answer, committed, W) of
        applied -> lists:delete(N, Wait);
        committed -> []
    end;
not_awaited(_, _, _, _, _) -> [].

lacks(#{syncing := false, lineage := E, num := Has}, {E, Num}, _) -> Has < Num;
lacks(#{syncing := false, lineage := Own, history := H}, {E, Num}, Lin) ->
    case lists:keyfind(E, 1, H) of
        {_, Last} -> Last < Num;
        false -> Own =:= Lin andalso E =:= Lin
    end;
lacks(_, _, _) -> false.

%% ---------------------------------------------------------------- tables

one_owner(N, G, Pos, Store, W) ->
    #b{tables = T} = B = book(G, W),
    Hash = sderl_sim_store:hash(Store),
    case T of
        #{Pos := {Hash, _, _}} -> W;
        #{Pos := {_, M, Rows}} ->
            violation(one_owner, [Pos, N, M, diff(sderl_sim_store:rows(Store), Rows)], W);
        _ -> keep_book(G, B#b{tables = T#{Pos => {Hash, N, sderl_sim_store:rows(Store)}}}, W)
    end.

diff(A, B) ->
    [{K, maps:get(K, A, none), maps:get(K, B, none)}
     || K <- lists:usort(maps:keys(A) ++ maps:keys(B)),
        maps:get(K, A, none) =/= maps:get(K, B, none)].

one_name(N, Store, W) ->
    More = sderl_sim_store:one_name_each(Store),
    %% A snapshot may bring the new name of a pid before the old name is found to be gone.
    map_size(More) =:= 0 orelse not sderl_sim_store:whole(Store)
        orelse violation(one_name, [N, More], W).

index(N, Store, W) -> sderl_sim_store:indexed(Store) orelse violation(index, [N], W).

refused(_, _, _, {no, no_majority}, W) -> W;
refused(G, Id, Op, {no, _}, W) ->
    case sderl_op:registers(Op) of
        none -> W;
        Pid -> refused(G, Id, Op, Pid, W)
    end;
refused(G, Id, Op, Pid, W) when is_pid(Pid) ->
    #b{used = Used, refused = R, lists = Lists, answered = Done} = B = book(G, W),
    case {Used, Done, maps:get(Id, Lists, none)} of
        {#{Pid := 1}, _, List} when is_map_key(List, Done) ->
            Pos = hd(map_get(List, Done)),
            _ = [violation(not_applied, [Id, Op, Pos, M, Name], W)
                 || M <- nodes_of(G, W), covers(seen(M, G, W), Pos),
                    {ok, Name} <- [sderl_sim_store:held_by((member(M, G, W))#m.store, Pid)]],
            ok = sderl_sim_strict:refused(G, Id, Pid, W),
            keep_book(G, B#b{refused = R#{Pid => {Id, Pos, W#w.now}}}, W);
        %% A client that was told that its node is no member has its operation in no batch.
        _ -> W
    end;
refused(_, _, _, _, W) -> W.

not_applied(N, G, Names, Store, Seen, W) ->
    #b{refused = Refused, used = Used} = book(G, W),
    lists:foreach(fun(Name) ->
        case sderl_sim_store:lookup(Store, Name) of
            ?ROW_OF(Pid) = Row when is_map_key(Pid, Refused), map_get(Pid, Used) =:= 1 ->
                {Id, Pos, _} = map_get(Pid, Refused),
                not covers(Seen, Pos) orelse violation(not_applied, [Id, Pos, N, Row], W);
            _ -> ok
        end
    end, Names).

%% Whether what a member holds grew out of the log up to that position.
covers(#{lineage := E, num := Num, syncing := false}, {E, At}) -> At =< Num;
covers(#{history := H, syncing := false}, {E, At}) ->
    case lists:keyfind(E, 1, H) of
        {_, Last} -> At =< Last;
        false -> false
    end;
covers(_, _) -> false.

-doc "A client looks its own name up before it asks anything.".
-spec reads_own_writes(node(), term(), pos_integer(), pos_integer(), #w{}) -> ok.
reads_own_writes(N, G, Life, K, W) ->
    Own = {own, N, Life, K},
    #b{truth = T, left = Left} = book(G, W),
    Row = maps:get(Own, rows(N, G, W), none),
    case maps:get(Own, T, unknown) of
        _ when is_map_key({N, Life}, Left) -> ok;
        {present, Pid} ->
            (Row =/= none andalso sderl_row:pid(Row) =:= Pid)
                orelse not sderl_sim_world:alive(Pid, W)
                orelse violation(own_writes, [Own, {present, Pid}, Row, learning(N, G, W)], W),
            ok;
        absent when Row =/= none -> violation(own_writes, [Own, absent, Row, learning(N, G, W)], W);
        _ -> ok
    end.

learning(N, G, W) ->
    case seen(N, G, W) of
        #{syncing := true} -> learning;
        _ -> settled
    end.

stays_away(N, G, Names, Store, Seen, W) ->
    lists:foldl(fun(Name, Acc) ->
        #b{removed = Removed, applied = Applied, brought = Brought} = B = book(G, Acc),
        case sderl_sim_store:lookup(Store, Name) of
            ?ROW(_, Pid, Now, Ver, _) = Row when is_map_key(Pid, Removed) ->
                #{Pid := {{E, Num} = Pos, {Home, Was}, Counted}} = Removed,
                Behind = Counted andalso is_behind(Home, E, Num, Applied)
                    orelse maps:get(Pid, Brought, none) =:= {maps:get(lineage, Seen), Pos},
                case covers(Seen, Pos) of
                    false -> Acc;
                    %% The name of a process whose node left while the group was split has a home on
                    %% each side. And a list of operations that only a part of it had is applied
                    %% again in the other.
                    true when Now =/= Home; Was =/= new, Ver =/= Was; Behind ->
                        keep_book(G, B#b{removed = maps:remove(Pid, Removed)}, Acc);
                    true -> violation(stays_away, [N, Row, Pos, {home, Home, Counted}], Acc)
                end;
            _ -> Acc
        end
    end, W, Names).

%% A piece of a shard has the rows of its home when it was sent. The home may get the batch from its
%% former component while the piece is on its way: the component that it joins cannot know that, and
%% asks for the whole shard again when the home comes back.
brings(N, G, E, Rows, W) ->
    #b{removed = Removed, applied = Applied, brought = Brought} = B = book(G, W),
    Lacking = #{Pid => {E, Pos}
                || ?ROW_OF(Pid) <- Rows,
                   #{Pid := {{Of, Num} = Pos, {Home, _}, true}} <- [Removed],
                   Home =:= N, is_behind(N, Of, Num, Applied)},
    keep_book(G, B#b{brought = maps:merge(Brought, Lacking)}, W).

%% The rows that a member brought count even if its node went down right afterwards.
is_behind(Home, E, Num, Applied) ->
    case [Has || {N, _, Of} := Has <- Applied, N =:= Home, Of =:= E] of
        [] -> false;
        Lives -> lists:max(Lives) < Num
    end.

%% ---------------------------------------------------------------- components

one_acknowledges(N, G, V, W) when V =:= yes; V =:= ok ->
    case seen(N, G, W) of
        #{lead := Lead, lineage := E} when Lead =/= undefined ->
            case seen(Lead, G, W) of
                #{role := coord, lineage := E} ->
                    lists:foreach(fun(Other) ->
                        case Other =/= Lead andalso seen(Other, G, W) of
                            #{role := coord, lineage := E2} when E2 =/= E ->
                                is_one_group(Other, Lead, G, W)
                                    andalso together(G, Lead, E, Other, E2, W);
                            _ -> ok
                        end
                    end, nodes_of(G, W));
                _ -> ok
            end;
        _ -> ok
    end;
one_acknowledges(_, _, _, _) -> ok.

%% A group may have been made again, and a member of the former group may not have heard of it.
is_one_group(A, B, G, W) -> (member(A, G, W))#m.uid =:= (member(B, G, W))#m.uid.

together(G, A, EA, B, EB, #w{now = Now} = W) ->
    case {sderl_sim_net:linked_since(A, B, W), book(G, W)} of
        {Since, #b{began = #{EA := BeganA, EB := BeganB}}} when is_integer(Since) ->
            Apart = Now - lists:max([Since, BeganA, BeganB]),
            Left = lists:min([Apart, sderl_sim_world:undisturbed(A, W),
                              sderl_sim_world:undisturbed(B, W)]),
            Left =< ?MERGE_MS + sderl_sim_world:slack(W)
                orelse violation(one_acknowledges,
                                 [{A, EA}, {B, EB}, {linked_since, Since}, {for_ms, Left}], W),
            ok;
        _ -> ok
    end.
