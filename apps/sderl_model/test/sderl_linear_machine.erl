%% SPDX-License-Identifier: Apache-2.0
-module(sderl_linear_machine).

%% The machine that `sderl_linear` describes, written out: every instant at which something may
%% happen is a step. `run/1` makes a legal history from a list of numbers, and `legal/1` decides a
%% small history by trying every run. Processes are `{Node, I}`.

-export([run/1, run/2, legal/1, options/0, clients/0]).

-record(m, {
    time = 0,
    order = [] :: [{term(), term(), term()}],
    pos = #{},
    idle,
    busy = #{},
    dying = [],
    dead = [],
    history = []
}).

all_nodes() -> [a, b, c].

clients() -> [{a, 1}, {a, 2}, {b, 1}, {b, 2}, {c, 1}].

options() -> #{where => fun({N, _}) -> N end}.

%% ---------------------------------------------------------------- a run

%% Each number decides one step.
run(Choices) -> run(Choices, clients()).

run(Choices, Clients) ->
    M0 = #m{pos = #{N => 0 || N <- all_nodes()}, idle = Clients},
    M = lists:foldl(fun(I, M) ->
        Steps = can(M),
        step(lists:nth(1 + I rem length(Steps), Steps), I div 64, M#m{time = M#m.time + 10})
    end, M0, Choices),
    Open = [Op#{stop => infinity, answer => unknown} || {Op, _} <- maps:values(M#m.busy)],
    lists:sort(fun(#{start := A}, #{start := B}) -> A =< B end, Open ++ M#m.history).

%% The steps that are possible. Answers are listed twice, so that they are chosen more often.
can(#m{idle = Idle, busy = Busy, pos = Pos, order = Order} = M) ->
    Calls = [{call, C} || C <- Idle],
    Orders = [{order, C} || C := {#{call := Call}, new} <- Busy, is_write(Call)],
    Reads = [{read, C} || C := {#{call := Call}, new} <- Busy, is_read(Call)],
    Kills = [{die, C} || C := {#{call := {kill, _}}, new} <- Busy],
    Moves = [{move, N} || N := P <- Pos, P < length(Order)],
    Answers = [{answer, C} || C := {Op, State} <- Busy, ready(Op, State, M)],
    Gone = [{gone, N} || N := {P, _} <- names(Order), lists:member(P, M#m.dead)],
    Calls ++ Orders ++ Reads ++ Moves ++ Kills ++ Answers ++ Answers ++ Gone.

ready(_, new, _) -> false;
ready(#{call := Call}, {ordered, _, At}, #m{pos = Pos}) ->
    is_write(Call) andalso lists:all(fun(P) -> P >= At end, maps:values(Pos));
ready(_, {answered, _}, _) -> true.

step({call, {Node, _} = C}, I, #m{time = T, idle = Idle, busy = Busy} = M) ->
    Name = lists:nth(1 + I rem 2, [x, y]),
    P = lists:nth(1 + (I div 2) rem 4, [{a, 1}, {a, 2}, {b, 1}, {c, 1}]),
    Call = case (I div 8) rem 10 of
        K when K < 3 -> {register, Name, P};
        K when K < 5 -> {re_register, Name, P};
        5 -> {unregister, Name};
        6 -> {lookup, Name};
        7 -> {whereis, Name};
        8 -> {read, Name};
        _ -> case (I div 80) rem 3 =:= 0 andalso element(1, P) =:= Node
                  andalso not lists:member(P, M#m.dying) of
                 true -> {kill, P};
                 false -> {whereis, Name}
             end
    end,
    Dying = case Call of {kill, _} -> [P | M#m.dying]; _ -> M#m.dying end,
    M#m{idle = Idle -- [C], dying = Dying, busy = Busy#{
        C => {#{node => Node, start => T, stop => infinity, call => Call, answer => unknown}, new}
    }};
step({order, C}, I, #m{order = Order, busy = Busy, history = H} = M) ->
    {#{call := Call, start := Start} = Op, new} = maps:get(C, Busy),
    case is_tuple(Call) andalso tuple_size(Call) =:= 3
         andalso lists:member(element(3, Call), M#m.dead) of
        true -> M#m{busy = Busy#{C => {Op, {answered, {no, dead_pid}}}}};
        false ->
            %% What decides/4 looks up: the operations that were answered before, this one as 0, and
            %% `open` for those without an answer yet.
            Ops = maps:from_list([{0, Op} | lists:enumerate(H)]),
            At = fun(Place) ->
                {#{start := S}, _, _} = lists:nth(Place, Order),
                case [K || K := #{start := T} <- Ops, T =:= S] of [K] -> K; [] -> open end
            end,
            Now = #{N => {P, At(Place)} || N := {P, Place} <- names(Order)},
            Decided = decides(Op, Now, M#m.dying,
                              Ops#{open => #{call => none, start => Start, stop => infinity}}),
            {Answer, Change} = lists:nth(1 + I rem length(Decided), Decided),
            M#m{order = Order ++ [{Op, Answer, Change}],
                busy = Busy#{C => {Op, {ordered, Answer, length(Order) + 1}}}}
    end;
step({read, {Node, _} = C}, _, #m{order = Order, pos = Pos, busy = Busy} = M) ->
    {#{call := {K, Name}} = Op, new} = maps:get(C, Busy),
    Answer = case names(lists:sublist(Order, maps:get(Node, Pos))) of
        #{Name := {P, At}} ->
            case Node =:= element(1, P) andalso lists:member(P, M#m.dead) of
                true -> undefined;
                false when K =:= lookup -> {P, At};
                false -> P
            end;
        _ -> undefined
    end,
    M#m{busy = Busy#{C => {Op, {answered, Answer}}}};
step({die, C}, _, #m{busy = Busy, dead = Dead} = M) ->
    {#{call := {kill, P}} = Op, new} = maps:get(C, Busy),
    M#m{dead = [P | Dead], busy = Busy#{C => {Op, {answered, ok}}}};
step({move, N}, _, #m{pos = Pos} = M) -> M#m{pos = maps:update_with(N, fun(P) -> P + 1 end, Pos)};
step({gone, N}, _, #m{order = Order} = M) -> M#m{order = Order ++ [{gone, ok, {N, none}}]};
step({answer, C}, _, #m{time = T, busy = Busy, idle = Idle, history = H} = M) ->
    {{Op, State}, Rest} = maps:take(C, Busy),
    Answer = case State of {ordered, A, _} -> A; {answered, A} -> A end,
    M#m{busy = Rest, idle = [C | Idle], history = [Op#{stop => T, answer => Answer} | H]}.

is_write({K, _, _}) -> K =:= register orelse K =:= re_register;
%% A `read` has a place in the order, too.
is_write({K, _}) -> K =:= unregister orelse K =:= read.

is_read({K, _}) -> K =:= whereis orelse K =:= lookup;
is_read(_) -> false.

%% The process of each name, and the place of its registration in the order.
names(Order) -> names(Order, 1, #{}).

names([], _, Names) -> Names;
names([{_, _, {N, none}} | Order], I, Names) -> names(Order, I + 1, maps:remove(N, Names));
names([{_, _, {N, P}} | Order], I, Names) -> names(Order, I + 1, Names#{N => {P, I}});
names([_ | Order], I, Names) -> names(Order, I + 1, Names).

%% ---------------------------------------------------------------- all runs

%% A state of the search: the order, the position of each node in it, the reads that were done, and
%% the known tokens.
-record(b, {order = [], pos, read = [], tokens = #{}}).

%% Whether some run gives this history. It keeps all states that are possible before each answer.
legal(History) ->
    Ops = maps:from_list(lists:enumerate(History)),
    Events = lists:sort([{S, call, I} || I := #{start := S} <- Ops]
                        ++ [{E, stop, I} || I := #{stop := E, answer := A} <- Ops, A =/= unknown]),
    Nodes = lists:usort([N || #{node := N} <- History]),
    events(Events, Ops, [], [], #{#b{pos = #{N => 0 || N <- Nodes}} => []}).

events([], _, _, _, _) -> true;
events([{_, call, I} | Events], Ops, Called, Stopped, Bs) ->
    events(Events, Ops, [I | Called], Stopped, Bs);
events([{_, stop, I} | Events], Ops, Called, Stopped, Bs0) ->
    Bs = closure(maps:keys(Bs0), Bs0, fun(B) -> next(B, Ops, Called, Stopped) end),
    case maps:filter(fun(B, _) -> answered(I, maps:get(I, Ops), Ops, B) end, Bs) of
        None when map_size(None) =:= 0 -> false;
        Next -> events(Events, Ops, Called, [I | Stopped], Next)
    end.

closure([], All, _) -> All;
closure([B | Bs], All0, Next) ->
    New = [C || C <- lists:usort(Next(B)), not is_map_key(C, All0)],
    closure(New ++ Bs, maps:merge(All0, #{C => [] || C <- New}), Next).

answered(_, #{call := {kill, _}}, _, _) -> true;
answered(_, #{call := {_, _, P}, answer := {no, dead_pid}, stop := E}, Ops, _) ->
    [] =/= [x || _ := #{call := {kill, Q}, start := S} <- Ops, Q =:= P, S < E];
answered(I, #{call := Call}, _, #b{order = Order, pos = Pos, read = Read}) ->
    case is_read(Call) of
        true -> lists:member(I, Read);
        false ->
            case [At || {At, {J, _}} <- lists:enumerate(Order), J =:= I] of
                [] -> false;
                [At] -> lists:all(fun(P) -> P >= At end, maps:values(Pos))
            end
    end.

next(#b{order = Order, pos = Pos, read = Read} = B, Ops, Called, Stopped) ->
    Dying = [P || I <- Called, #{call := {kill, P}} <- [maps:get(I, Ops)]],
    Dead = [P || I <- Stopped, #{call := {kill, P}} <- [maps:get(I, Ops)]],
    Rows = fun(Prefix) -> lists:foldl(fun({_, none}, A) -> A;
                                         ({_, {N, none}}, A) -> maps:remove(N, A);
                                         ({I, {N, P}}, A) -> A#{N => {P, I}}
                                      end, #{}, Prefix) end,
    Now = Rows(Order),
    [B#b{pos = Pos#{N => P + 1}} || N := P <- Pos, P < length(Order)]
        ++ [B#b{order = Order ++ [{gone, {N, none}}]} || N := {P, _} <- Now, lists:member(P, Dying)]
        ++ [B#b{order = Order ++ [{I, Change}]}
            || I <- Called -- Stopped, Op <- [maps:get(I, Ops)], is_write(maps:get(call, Op)),
               not lists:keymember(I, 1, Order),
               {Answer, Change} <- decides(Op, Now, Dying, Ops),
               maps:get(answer, Op) =:= Answer orelse maps:get(answer, Op) =:= unknown]
        ++ [B#b{read = [I | Read], tokens = Tokens}
            || I <- (Called -- Stopped) -- Read, #{node := N} = Op <- [maps:get(I, Ops)],
               is_read(maps:get(call, Op)),
               Tokens <- shows(Op, Rows(lists:sublist(Order, maps:get(N, Pos))), Dying, Dead, B)].

shows(#{node := Node, call := {Kind, Name}, answer := Answer}, Rows, Dying, Dead,
      #b{tokens = Ts, order = Order}) ->
    case {Rows, Answer} of
        {#{Name := {P, I}}, _} ->
            Here = element(1, P) =:= Node,
            [Ts || Answer =:= undefined, Here, lists:member(P, Dying)]
                ++ [Ts || Kind =:= whereis, Answer =:= P, not (Here andalso lists:member(P, Dead))]
                ++ [Ts1
                    || Kind =:= lookup, {Q, Token} <- [Answer], Q =:= P,
                       not (Here andalso lists:member(P, Dead)),
                       Ts1 <- [Ts#{I => Token}], maps:get(I, Ts, Token) =:= Token,
                       grow(Name, Order, Ts1)];
        {_, undefined} -> [Ts];
        _ -> []
    end.

grow(Name, Order, Ts) ->
    Known = [maps:get(I, Ts) || {I, {N, P}} <- Order, P =/= none, N =:= Name, is_map_key(I, Ts)],
    Known =:= lists:usort(Known).

decides(#{call := {read, N}} = Op, Now, _, Ops) ->
    [{A, none} || A <- finds(Op, maps:get(N, Now, none), Ops)];
decides(#{call := {unregister, N}}, Now, _, _) ->
    [{ok, case Now of #{N := _} -> {N, none}; _ -> none end}];
decides(#{call := {K, N, P}, node := Node, start := S}, Now, Dying, Ops) ->
    No = {{no, case K of
        register -> name_or_pid_already_registered;
        _ -> pid_is_already_registered
    end}, none},
    Yes = {yes, {N, P}},
    Killed = fun(R) ->
        [] =/= [x || _ := #{call := {kill, Q}, stop := E} <- Ops, Q =:= R, E =< S]
    end,
    case {Killed(P), lists:keymember(P, 1, maps:values(Now)), Now} of
        {true, _, _} -> [];
        {_, true, _} -> [No];
        {_, _, #{N := {Q, I}}} when K =:= register ->
            #{I := #{stop := Written}} = Ops,
            case element(1, Q) =:= Node andalso lists:member(Q, Dying) of
                false -> [No];
                true -> [Yes | [No || not (Killed(Q) andalso Written =< S)]]
            end;
        _ -> [Yes]
    end.

%% A process on the reader's own node is checked for life after its name was found in the order.
finds(_, none, _) -> [undefined];
finds(#{node := Node, start := Start, stop := Stop}, {{Node, _} = P, _}, Ops) ->
    Kills = [{S, E} || _ := #{call := {kill, Q}, start := S, stop := E} <- Ops, Q =:= P],
    [P || not lists:any(fun({_, E}) -> E =< Start end, Kills)]
        ++ [undefined || lists:any(fun({S, _}) -> S =< Stop end, Kills)];
finds(_, {P, _}, _) -> [P].
