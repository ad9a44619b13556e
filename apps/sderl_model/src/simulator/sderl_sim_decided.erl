%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_decided).
-moduledoc """
The decisions of the coordinator of a simulated group in a batch, computed a second time: the
answers to operations, the names that they remove, and the settlement of clashes. See
`m:sderl_sim_check`.
""".
-include("sderl_sim.hrl").

-export([right_answers/3, as_decided/3, taken_away/6]).

-import(sderl_sim_world, [violation/3, book/2, keep_book/3]).

%% ---------------------------------------------------------------- answers

-doc "`right_answer`: the answers that a batch gives, in order, on the table before it.".
-spec right_answers([term()], sderl_sim_store:store(), #w{}) -> ok.
%% A batch that has lists has nothing else that changes rows. The changes of names and pids by
%% earlier operations of the batch are kept beside the table: `none` for one that is free now.
right_answers(Items, Store, W) ->
    lists:foldl(fun(#seg{member = O, operations = Ops, answers = As}, Acc) ->
        lists:foldl(fun({Op, A}, {Held, Pids}) -> right_answer(Op, A, O, Held, Pids, Store, W) end,
                    Acc, lists:zip(Ops, answers(As, Ops)));
       (_, Acc) -> Acc
    end, {#{}, #{}}, Items),
    ok.

answers(default, Ops) -> [sderl_core_answer:default(Op) || Op <- Ops];
answers(As, _) -> [sderl_core_answer:plain(A) || A <- As].

right_answer(_, {no, later}, _, Held, Pids, _, _) -> {Held, Pids};
right_answer(?REGISTER(Name, Pid), A, O, Held, Pids, Store, W) ->
    Op = #?REGISTER_WITH{name = Name, pid = Pid, options = []},
    right_answer(Op, A, O, Held, Pids, Store, W);
right_answer(?UNREGISTER(Name), ok, _, Held, Pids, Store, _) -> freed(Name, Held, Pids, Store);
right_answer(?UNREGISTER_OF(Name, Pid), ok, _, Held, Pids, Store, _) ->
    case holder(Name, Held, Store) of
        Pid -> freed(Name, Held, Pids, Store);
        _ -> {Held, Pids}
    end;
right_answer(#read{name = Name} = Op, {read, A}, O, Held, Pids, Store, W) ->
    Shows = case holder(Name, Held, Store) of
        none -> undefined;
        Pid -> Pid
    end,
    A =:= Shows orelse violation(right_answer, [O, Op, A, Shows], W),
    {Held, Pids};
right_answer(Op, A, O, Held, Pids, Store, W) ->
    case {sderl_op:registers(Op), sderl_op:name(Op)} of
        {none, _} -> {Held, Pids};
        {Pid, {ok, Name}} -> right_registration(Op, Name, Pid, A, O, Held, Pids, Store, W)
    end.

right_registration(Op, Name, Pid, A, O, Held, Pids, Store, W) ->
    Holder = holder(Name, Held, Store),
    NameFree = case Op of
        #?RE_REGISTER{} -> true;
        #?REGISTER_OVER{dead = Holder} -> true;
        _ -> Holder =:= none
    end,
    Has = name_of(Pid, Pids, Store),
    Free = NameFree andalso Has =:= none,
    case A of
        yes when Free ->
            {H, P} = freed(Name, Held, Pids, Store),
            {H#{Name => Pid}, P#{Pid => Name}};
        {no, Why} when Why =:= unreachable_pid; Why =:= not_member; not Free -> {Held, Pids};
        _ -> violation(right_answer, [O, Op, A, Holder, Has], W)
    end.

freed(Name, Held, Pids, Store) ->
    case holder(Name, Held, Store) of
        none -> {Held, Pids};
        Pid -> {Held#{Name => none}, Pids#{Pid => none}}
    end.

holder(Name, Held, Store) ->
    case Held of
        #{Name := Pid} -> Pid;
        _ ->
            case sderl_sim_store:lookup(Store, Name) of
                ?ROW_OF(Pid) -> Pid;
                none -> none
            end
    end.

name_of(Pid, Pids, Store) ->
    case Pids of
        #{Pid := Name} -> Name;
        _ ->
            case sderl_sim_store:held_by(Store, Pid) of
                {ok, Name} -> Name;
                none -> none
            end
    end.

-doc "`as_decided`: what the resolver decided. A process that is to exit has lost the name.".
-spec as_decided(node(), [term()], #w{}) -> ok.
as_decided(N, Items, W) ->
    _ = [violation(as_decided, [N, Name, Pid, Fx], W)
         || #settle{name = Name, row = ?ROW_OF(Pid), effects = Fx} <- Items,
            {exit, Loser, _} <- Fx, Loser =:= Pid],
    ok.

%% ---------------------------------------------------------------- removals

-doc "Records which names a batch removes by itself, not with their home; for `stays_away`.".
-spec taken_away(term(), term(), [term()], sderl_sim_store:store(), map(), #w{}) -> #w{}.
taken_away(G, Pos, Items, Store, View, W) ->
    Take = fun(Item, Acc) -> taken(Item, Store, Acc) end,
    {_, Gone, Back} = lists:foldl(Take, {#{}, [], []}, Items),
    case {Gone, Back} of
        {[], []} -> W;
        _ ->
            #b{removed = R} = B = book(G, W),
            %% A member that the batch removes must apply it, too.
            Out = lists:append([Ns || #mem{removed = Ns} <- Items]),
            Counted = fun(Home) ->
                maps:get(Home, View, none) =:= live orelse lists:member(Home, Out)
            end,
            R1 = lists:foldl(fun({P, {Home, _} = Row}, A) -> A#{P => {Pos, Row, Counted(Home)}} end,
                             maps:without(Back, R), Gone),
            keep_book(G, B#b{removed = R1}, W)
    end.

taken(#seg{operations = Ops, answers = As}, Store, Acc) ->
    Answered = lists:zip(Ops, answers(As, Ops)),
    lists:foldl(fun({Op, A}, Took) -> took(Op, A, Store, Took) end, Acc, Answered);
%% Both sides of a clash are names again, whichever side wins.
taken(#clashes{clashes = Open}, _, {Held, Gone, Back}) ->
    {Held, Gone, [sderl_row:pid(Row) || _ := {A, B} <- Open, Row <- [A, B]] ++ Back};
taken(_, _, Acc) -> Acc.

%% The changes of the batch are kept beside the table, as in right_answers/3.
took(?UNREGISTER(Name), ok, Store, {Held, Gone, Back} = Acc) ->
    case had(Name, Held, Store) of
        none -> Acc;
        Had -> {Held#{Name => none}, [Had | Gone], Back}
    end;
took(?UNREGISTER_OF(Name, Pid), ok, Store, {Held, Gone, Back} = Acc) ->
    case had(Name, Held, Store) of
        {Pid, _} = Had -> {Held#{Name => none}, [Had | Gone], Back};
        _ -> Acc
    end;
took(Op, yes, Store, {Held, Gone, Back}) ->
    Pid = sderl_op:registers(Op),
    {ok, Name} = sderl_op:name(Op),
    Replaced = [Had || {_, _} = Had <- [had(Name, Held, Store)]],
    {Held#{Name => {Pid, {node(Pid), new}}},
     Replaced ++ lists:keydelete(Pid, 1, Gone), [Pid | Back]};
took(_, _, _, Acc) -> Acc.

had(Name, Held, Store) ->
    case Held of
        #{Name := Had} -> Had;
        _ ->
            case sderl_sim_store:lookup(Store, Name) of
                ?ROW(_, Pid, Home, Version, _) -> {Pid, {Home, Version}};
                none -> none
            end
    end.
