%% SPDX-License-Identifier: Apache-2.0
-module(sderl_linear).
-moduledoc """
A checker of histories: whether the library's promises allow what concurrent clients of one group
saw.

## What is checked

A history is a list of operations, each with the node of its client, the times at which it was
called and answered, the call and the answer. It is *legal* if it is a run of this machine, which
has exactly what the library promises within a component:

- There is one order of writes (`register`, `re_register`, `unregister`), for all names of the
  group together: a process has one name in a group, so names cannot be checked one by one.
  A write is put into the order at an instant between its call and its answer, and its answer
  follows from the group's names at that place of the order. A refusal (`no`) has a place too: the
  name, or the process, was taken there.
- Every node has the names that result from some prefix of the order. A node's prefix only grows.
- A write is answered when it is in the prefix of every node.
- A read (`whereis`, `lookup`) gives what the prefix of its own node says at an instant between its
  call and its answer.
- `read` goes through the order as a write that changes nothing, and gives what the names at its
  place say. A process of its own node that is dead by its answer need not be shown, and one that
  was dead at its call is not.

So writes and `read` are linearisable. Any other read may show a write that is not answered yet, and
two nodes may differ in which unanswered writes they show, but not in the order in which they begin
to show them; every node shows all answered writes. Two reads on one node never go backwards.

- Tokens of `lookup` belong to registrations: the same one for the same registration on all
  nodes, and greater ones for later registrations of the name.
- `kill` ends a process, at an instant between its call and its answer for each observer. From then
  on its own node does not show its name, and a registration there finds the name free; elsewhere
  the name goes, without an operation, at some later place of the order. A registration of the
  process that is called after that is refused (`dead_pid`).
- `off`: the node is stopped, or has crashed and comes back (then its processes were killed too).
  Its reads need not be current until `on`, when it has everything that was answered. Its writes
  count as ever.
- A write without an answer (`unknown`: the call exited, its node ended) is put into the order once,
  at any time after its call, or never.

## How

The history is swept once by time, with the set of all states that the machine can be in; the set
becomes empty where no order explains the answers, and that prefix of the history is the
explanation. A state has the names that every node has, the rest of the order, and how far into it
each node must be by what was read there. Orders are extended only where an answer needs it, and
then only by operations that are related through a name or a process: any other operation can as
well be ordered later. (Not so if a read on one node shows a write that is not answered, and another
read will not show it: then each order of all writes under way counts.) Equal states are kept once.
(The scheme is that of Wing and Gong with the memory of Lowe, *Testing for linearizability*, 2017,
with the nodes' prefixes added.)
""".

-export([check/1, check/2]).
%% For sderl_linear_text.
-export([related/2]).
-export_type([operation/0, call/0, answer/0, refusal/0, options/0, process/0]).

-import(sderl_linear_read, [reads/5, reads_at/5, shown/3]).

-doc "Any term; a pid where `where` is not given.".
-type process() :: term().
-type call() ::
    {register | re_register, Name :: term(), process()}
    | {unregister | read | whereis | lookup, Name :: term()}
    | {kill, process()}
    | {off | on, node()}.
-doc """
`yes`, `{no, Reason}`, `ok`; of `read` and `whereis` a process or `undefined`, of `lookup`
`{Process, Token}` or `undefined`. `unknown` where there is none.
""".
-type answer() :: term().
-type operation() :: #{
    node := node(),
    start := integer(),
    stop := integer() | infinity,
    call := call(),
    answer := answer()
}.
-doc """
`initial`: names that all nodes had before. `where`: the node of a process (`erlang:node/1`).
`refusals`: reasons of a `no` that say nothing about names, and are accepted as they are (`[]`).
`limit`: how many states may be possible at a time (20,000).
""".
-type options() :: #{
    initial => #{term() => process()},
    where => fun((process()) -> node()),
    refusals => [atom()],
    limit => pos_integer()
}.
-doc """
`last` is the operation whose answer is impossible, `before` those that were called before it was
answered, `possible` the answers that it could have had.
""".
-type refusal() :: #{last := operation(), before := [operation()], possible := [answer()]}.

%% How often the limit may be reached in all.
-define(WORK, 100).

-include("sderl_linear.hrl").

-doc "`check/2` with a group that was empty, and pids.".
-spec check([operation()]) -> ok | {refused, refusal()} | {gave_up, pos_integer()}.
check(History) -> check(History, #{}).

-doc """
`ok` for a legal history. `gave_up`: the search was not finished, because so many states were
possible at a time.
""".
-spec check([operation()], options()) -> ok | {refused, refusal()} | {gave_up, pos_integer()}.
check(History, Options) ->
    Ops = operations(History),
    Limit = maps:get(limit, Options, 20_000),
    X = #x{ahead = true, limit = Limit, refusals = maps:get(refusals, Options, []),
           where = maps:get(where, Options, fun erlang:node/1), deaths = #{}},
    C0 = initial(maps:get(initial, Options, #{})),
    case sweep(Ops, C0, X) of
        ok -> ok;
        {gave_up, N} -> {gave_up, N};
        {refused, Early} ->
            %% Illegal: the second sweep finds the shortest prefix that is.
            case sweep(Ops, C0, X#x{ahead = false}) of
                {refused, Exact} -> {refused, refusal(Exact, Ops)};
                {gave_up, _} -> {refused, refusal(Early, Ops)}
            end
    end.

operations(History) ->
    [#op{id = I, node = N, start = S, stop = E, call = C, answer = A, given = G}
     || {I, #{node := N, start := S, stop := E, call := C, answer := A} = G} <-
            lists:enumerate(History)].

initial(Names) ->
    Rows = #{N => {P, {initial, N}} || N := P <- Names},
    #c{base = Rows, now = Rows}.

%% ---------------------------------------------------------------- the sweep

sweep(Ops, C0, X0) ->
    %% A process that is killed twice dies of the earlier kill.
    Kills = maps:groups_from_list(fun(#op{call = {_, P}}) -> P end,
                                  [Op || #op{call = {kill, _}} = Op <- Ops]),
    X = X0#x{deaths = #{P => {lists:min([S || #op{start = S} <- Ks]),
                              lists:min([E || #op{stop = E} <- Ks])}
                        || P := Ks <- Kills},
             called = #{Id => S || #op{id = Id, start = S} <- Ops},
             written = #{Id => E || #op{id = Id, stop = E} <- Ops},
             readers = maps:groups_from_list(fun(#op{call = {_, N}}) -> N end,
                                             [Op
                                              || #op{answer = A} = Op <- Ops, is_read(Op),
                                                 A =/= unknown])},
    %% An operation that is called at the instant of an answer may have been called before it.
    Events = lists:sort([{S, start, Id} || #op{id = Id, start = S} <- Ops]
                        ++ [{E, stop, Id}
                            || #op{id = Id, stop = E, answer = A} <- Ops, E =/= infinity,
                               A =/= unknown]),
    events(Events, #{Id => Op || #op{id = Id} = Op <- Ops}, #{C0 => []}, 0, X).

events([], _, _, _, _) -> ok;
events([{_, Kind, Id} | Events], Ops, Cs, Work, #x{limit = Limit} = X0) ->
    #{Id := Op} = Ops,
    {Next, X} = case Kind of
        start -> begins(Op, Cs, X0);
        stop -> ends(Op, Cs, X0)
    end,
    case Next of
        {gave_up, N} -> {gave_up, N};
        _ when map_size(Next) =:= 0 -> {refused, {Op, Cs, X0}};
        _ when map_size(Next) > Limit; Work > ?WORK * Limit -> {gave_up, map_size(Next)};
        _ -> events(Events, Ops, Next, Work + map_size(Next) - 1, X)
    end.

%% From here on the process's node may show nothing under its name.
begins(#op{call = {kill, P}}, Cs, #x{dying = Ps, reads = Rs, where = Where} = X0) ->
    X = X0#x{dying = [P | Ps]},
    Here = [Op || _ := #op{node = N} = Op <- Rs, N =:= Where(P)],
    {lists:foldl(fun(#op{id = Id, node = N, call = {_, Name}} = Op, Acc) ->
        set(fun
            (#c{seen = #{Id := _}} = C) -> [C];
            (C) -> reads(Op, Name, maps:get(N, C#c.ahead, 0), C, X)
        end, Acc, X)
    end, Cs, Here), X};
begins(#op{call = {off, N}}, Cs, #x{off = Off} = X) -> leave(N, Cs, X#x{off = Off#{N => []}});
begins(#op{call = {on, _}}, Cs, X) -> {Cs, X};
begins(#op{answer = unknown, call = {K, _}}, Cs, X)
  when K =:= whereis; K =:= lookup; K =:= read ->
    {Cs, X};
begins(#op{id = Id, call = {K, Name}, node = N} = Op, Cs, #x{reads = Rs, off = Off} = X)
  when K =:= whereis; K =:= lookup ->
    case is_map_key(N, Off) of
        true -> {Cs, X};
        false ->
            {set(fun(C) -> reads(Op, Name, maps:get(N, C#c.ahead, 0), C, X) end, Cs, X),
             X#x{reads = Rs#{Id => Op}}}
    end;
begins(#op{id = Id} = Op, Cs, #x{writes = Ws} = X) ->
    %% Refusals that have no place in the order are left out, if answers may be known beforehand.
    case ordered(Op) orelse not X#x.ahead of
        true -> {set(fun(C) -> [still(Op, C, X)] end, Cs, X), X#x{writes = Ws#{Id => Op}}};
        false -> {Cs, X}
    end.

%% The node's reads need not be current from here: those under way are ignored.
leave(N, Cs, #x{reads = Rs} = X) ->
    Gone = [Id || Id := #op{node = M} <- Rs, M =:= N],
    {set(fun(C) ->
        [C#c{ahead = maps:remove(N, C#c.ahead), seen = maps:without(Gone, C#c.seen)}]
    end, Cs, X),
     X#x{reads = maps:without(Gone, Rs)}}.

ends(#op{call = {on, N}}, Cs, #x{off = Off} = X) -> {Cs, X#x{off = maps:remove(N, Off)}};
ends(#op{call = {K, _}}, Cs, X) when K =:= kill; K =:= off -> {Cs, X};
ends(#op{id = Id, call = {K, _}, node = N} = Op, Cs, #x{reads = Rs} = X)
  when K =:= whereis; K =:= lookup ->
    case is_map_key(Id, Rs) of
        false -> {Cs, X};
        true ->
            Shown = fun(C) -> is_map_key(Id, C#c.seen) end,
            {set(fun(C0) -> [shown(Id, N, C) || C <- extend(C0, Shown, Op, X)] end, Cs, X),
             X#x{reads = maps:remove(Id, Rs)}}
    end;
ends(#op{id = Id} = Op, Cs, #x{writes = Ws} = X) ->
    {set(fun(C) -> answered(Op, C, X) end, Cs, X), X#x{writes = maps:remove(Id, Ws)}}.

answered(#op{id = Id, answer = Answer} = Op, #c{seen = Seen, done = Done} = C, X) ->
    Still = fun() ->
        [nothing(Id, D) || D <- extend(C, fun(D) -> is_map_key(Id, D#c.seen) end, Op, X)]
    end,
    Change = fun() ->
        [everywhere(Id, D) || D <- extend(C, fun(D) -> is_map_key(Id, D#c.done) end, Op, X)]
    end,
    case {ordered(Op), Answer, is_map_key(Id, Done)} of
        {true, yes, _} -> Change();
        {true, ok, true} -> Change();
        {true, ok, false} -> Change() ++ Still();
        {true, {no, _}, false} -> Still();
        {true, _, false} when element(1, Op#op.call) =:= read -> Still();
        {false, _, false} -> [C#c{seen = maps:remove(Id, Seen)} || believable(Op, X)];
        _ -> []
    end.

set(_, {gave_up, _} = No, _) -> No;
set(F, Cs, #x{limit = Limit}) ->
    try maps:fold(fun(C, _, Acc0) ->
            Acc = lists:foldl(fun(D, A) -> A#{D => []} end, Acc0, F(C)),
            map_size(Acc) > Limit andalso throw({gave_up, map_size(Acc)}),
            Acc
        end, #{}, Cs)
    catch
        throw:{gave_up, N} -> {gave_up, N}
    end.

%% The answers that say something about the names of the group.
ordered(#op{answer = unknown}) -> true;
ordered(#op{answer = {no, Why}, call = {register, _, _}}) -> Why =:= name_or_pid_already_registered;
ordered(#op{answer = {no, Why}, call = {re_register, _, _}}) -> Why =:= pid_is_already_registered;
ordered(#op{answer = {no, _}}) -> false;
ordered(#op{}) -> true.

believable(#op{answer = {no, dead_pid}, call = {_, _, P}, stop = E}, #x{deaths = Ds}) ->
    case Ds of
        #{P := {Dies, _}} -> Dies < E;
        _ -> false
    end;
believable(#op{answer = {no, Why}}, #x{refusals = Rs}) -> lists:member(Why, Rs).

%% ---------------------------------------------------------------- writing

%% The write is answered: every node has it, and everything before it in the order.
everywhere(Id, #c{tail = Tail, done = Done} = C0) ->
    C = C0#c{done = maps:remove(Id, Done)},
    case lists:splitwith(fun({I, _}) -> I =/= Id end, Tail) of
        %% It is before another write that was answered.
        {_, []} -> C;
        {Before, _} -> everywhere_to(length(Before) + 1, C)
    end.

nothing(Id, #c{seen = Seen0} = C) ->
    {At, Seen} = maps:take(Id, Seen0),
    everywhere_to(At, C#c{seen = Seen}).

everywhere_to(0, C) -> C;
everywhere_to(K, #c{tail = Tail, base = Base, ahead = Ahead, seen = Seen} = C) ->
    {Now, Rest} = lists:split(K, Tail),
    lists:foldl(fun settled/2,
                C#c{base = lists:foldl(fun({_, Change}, B) -> change(Change, B) end, Base, Now),
                    tail = Rest,
                    ahead = #{N => A - K || N := A <- Ahead, A > K},
                    seen = #{R => max(0, A - K) || R := A <- Seen}},
                replaced(Now, Base)).

change({N, none}, Names) -> maps:remove(N, Names);
change({N, Row}, Names) -> Names#{N => Row}.

%% Registrations that no node shows any more.
replaced(Changes, Base) ->
    {_, Old} = lists:foldl(fun({_, {N, _} = Change}, {Names, Acc}) ->
        {change(Change, Names), [{N, R} || #{N := {_, R}} <- [Names]] ++ Acc}
    end, {Base, []}, Changes),
    lists:reverse(Old).

settled({Name, Reg}, #c{tokens = Ts, high = High} = C) ->
    case maps:take(Reg, Ts) of
        {Token, Rest} -> C#c{tokens = Rest, high = High#{Name => Token}};
        error -> C
    end.

%% All states that result from this one by extending the order until the goal is reached. If the
%% goal is a write, all nodes then have everything up to it: what they have shown before makes no
%% difference.
extend(C0, Goal, Op, X) ->
    case Goal(C0) of
        true -> [C0];
        false ->
            case is_read(Op) of
                true -> extend([C0], Goal, Op, contested(Op, C0, X), X, #{C0 => []}, []);
                false ->
                    C = everywhere_to(length(C0#c.tail), C0),
                    extend([C], Goal, Op, false, X, #{C => []}, [])
            end
    end.

is_read(#op{call = {K, _}}) -> K =:= whereis orelse K =:= lookup;
is_read(_) -> false.

extend([], _, _, _, _, _, Found) -> Found;
extend([C | Cs], Goal, Op, All, X, Visited0, Found0) ->
    map_size(Visited0) > X#x.limit andalso throw({gave_up, map_size(Visited0)}),
    New = [D || D <- lists:usort(steps(C, Op, All, X)), not is_map_key(D, Visited0)],
    Visited = lists:foldl(fun(D, V) -> V#{D => []} end, Visited0, New),
    {There, Not} = lists:partition(Goal, New),
    extend(Not ++ Cs, Goal, Op, All, X, Visited, There ++ Found0).

%% The states after one more change that is related to the operation.
steps(C0, Op, All, X) ->
    Candidates = candidates(C0, X),
    Changes = case All of
        true -> [S || {_, S} <- Candidates];
        false -> related(Candidates, keys(Op, C0))
    end,
    Cs = lists:append([step(S, C0, X) || S <- Changes]),
    case is_read(Op) of
        true -> Cs;
        false -> [everywhere_to(length(C#c.tail), C) || C <- Cs]
    end.

%% Whether another read must not show a change that this read can show.
contested(#op{id = Id, stop = Now} = Op, #c{seen = Seen} = C, #x{readers = Readers} = X) ->
    lists:any(fun(Change) ->
        {Name, Shows, Until} = case Change of
            {gone, N, _} -> {N, undefined, infinity};
            #op{call = {_, N, P}, stop = E} -> {N, P, E};
            #op{call = {_, N}, stop = E} -> {N, undefined, E}
        end,
        [] =/= [x
                || #op{id = I, start = S, stop = E, answer = A} <- maps:get(Name, Readers, []),
                   E >= Now, S < Until,
                   I =/= Id, not is_map_key(I, Seen), A =/= Shows,
                   not (is_tuple(A) andalso element(1, A) =:= Shows)]
    end, related(candidates(C, X), keys(Op, C))).

candidates(#c{done = Done, now = Now} = C, #x{writes = Ws, dying = Dying}) ->
    [{keys(W, C), W}
     || Id := #op{call = Call} = W <- Ws, element(1, Call) =/= read, not is_map_key(Id, Done)]
        ++ [{[{name, N}, {process, P}], {gone, N, P}}
            || N := {P, _} <- Now, lists:member(P, Dying)].

keys(#op{call = {_, N, P}}, C) -> [{process, P} | keys_of(N, C)];
keys(#op{call = {_, N}}, C) -> keys_of(N, C).

keys_of(N, #c{now = Now}) ->
    case Now of
        #{N := {P, _}} -> [{name, N}, {process, P}];
        _ -> [{name, N}]
    end.

%% The operations that share a key with the given ones, over any number of others.
-doc false.
-spec related([{[term()], T}], [term()]) -> [T].
related(Candidates, Keys) ->
    case lists:partition(fun({Ks, _}) -> lists:any(fun(K) -> lists:member(K, Keys) end, Ks) end,
                         Candidates) of
        {[], _} -> [];
        {In, Out} ->
            [S || {_, S} <- In] ++ related(Out, lists:usort(lists:append([Ks || {Ks, _} <- In])))
    end.

step({gone, N, _}, C, X) -> put(gone, {N, none}, C, X);
step(#op{answer = {no, _}}, _, #x{ahead = true}) -> [];
step(#op{id = Id} = Op, #c{done = Done, seen = Seen} = C, X) ->
    lists:append([put(Id, Change, C#c{done = Done#{Id => []}, seen = maps:remove(Id, Seen)}, X)
                  || {_, Change} <- outcomes(Op, C#c.now, X), Change =/= none]).

%% Marks a write that could be answered here without changing anything.
still(#op{answer = Answer}, C, #x{ahead = Ahead}) when Answer =:= unknown; Ahead, Answer =:= yes ->
    C;
still(#op{id = Id}, #c{seen = Seen, done = Done} = C, _)
  when is_map_key(Id, Seen); is_map_key(Id, Done) ->
    C;
still(#op{id = Id} = Op, #c{seen = Seen, tail = Tail, now = Now} = C, X) ->
    case lists:keymember(none, 2, outcomes(Op, Now, X)) of
        true -> C#c{seen = Seen#{Id => length(Tail)}};
        false -> C
    end.

outcomes(#op{call = {read, N}} = Op, Now, X) ->
    [{Found, none} || Found <- finds(Op, maps:get(N, Now, none), X)];
outcomes(#op{call = {unregister, N}}, Now, _) ->
    [{ok, case Now of #{N := _} -> {N, none}; _ -> none end}];
outcomes(#op{id = Id, call = {Kind, N, P}} = Op, Now, X) ->
    Taken = lists:any(fun({Q, _}) -> Q =:= P end, maps:values(Now)),
    Yes = {yes, {N, {P, Id}}},
    case {dead_before(Op, P, X), Now} of
        {true, _} -> [];
        _ when Taken -> [{no, none}];
        {_, #{N := Row}} when Kind =:= register -> over(Op, Row, Yes, {no, none}, X);
        _ -> [Yes]
    end.

%% The values that an ordered read with this answer may have found: whether the process lives is
%% checked after the order is known, on the process's node alone.
finds(#op{answer = undefined}, none, _) -> [undefined];
finds(#op{answer = P} = Op, {P, _}, #x{where = Where} = X) ->
    [P || Where(P) =/= Op#op.node orelse not dead_before(Op, P, X)];
finds(#op{answer = undefined, node = N, stop = E}, {P, _}, #x{deaths = Ds, where = Where}) ->
    [undefined || #{P := {Dies, _}} <- [Ds], Where(P) =:= N, Dies =< E];
finds(_, _, _) -> [].

%% A name whose process is dead counts as free on that process's node, where that could be known.
over(#op{node = N, start = S} = Op, {Q, Reg}, Yes, Refused,
     #x{written = Written, dying = Dying, where = Where} = X) ->
    Late = fun() -> maps:get(Reg, Written, S) > S end,
    case Where(Q) =:= N andalso lists:member(Q, Dying) of
        false -> [Refused];
        true -> [Yes | [Refused || not dead_before(Op, Q, X) orelse Late()]]
    end.

dead_before(#op{start = S}, P, #x{deaths = Ds}) ->
    case Ds of
        #{P := {_, Dead}} -> Dead =< S;
        _ -> false
    end.

put(Id, {Name, Row} = Change, #c{tail = Tail, now = Now} = C0,
    #x{reads = Reads, writes = Writes} = X) ->
    C = maps:fold(fun(_, Op, A) -> still(Op, A, X) end,
                  C0#c{tail = Tail ++ [{Id, Change}], now = change(Change, Now)}, Writes),
    At = length(C#c.tail),
    Waiting =
        [R || Id1 := #op{call = {_, N}} = R <- Reads, N =:= Name, not is_map_key(Id1, C#c.seen)],
    lists:foldl(fun(R, Cs) -> lists:append([reads_at(R, Name, [{At, Row}], D, X) || D <- Cs]) end,
                [C], Waiting).

%% ---------------------------------------------------------------- explaining

refusal({#op{stop = Until} = Op, Cs, X}, Ops) ->
    #{last => Op#op.given,
      before => [O#op.given
                 || O <- lists:keysort(#op.start, Ops), O#op.start =< Until, O#op.id =/= Op#op.id],
      possible => lists:usort([A
                               || A <- alternatives(Op, Ops, Cs),
                                  {Next, _} <- [ends(Op#op{answer = A},
                                                     reread(Op#op{answer = A}, Cs, X),
                                                     other(Op#op{answer = A}, X))],
                                  is_map(Next), map_size(Next) > 0])}.

%% Everything that the call could have answered in some history.
alternatives(#op{call = {register, _, _}}, _, _) -> [yes, {no, name_or_pid_already_registered}];
alternatives(#op{call = {re_register, _, _}}, _, _) -> [yes, {no, pid_is_already_registered}];
alternatives(#op{call = {unregister, _}}, _, _) -> [ok];
alternatives(#op{call = {K, N}}, Ops, Cs) when K =:= whereis; K =:= read ->
    [undefined | processes(N, Ops, Cs)];
alternatives(#op{call = {lookup, N}, answer = A}, Ops, Cs) ->
    Token = case A of {_, T} -> T; undefined -> 0 end,
    [undefined | [{P, Token} || P <- processes(N, Ops, Cs)]].

processes(Name, Ops, Cs) ->
    lists:usort(
        [P || #op{call = {K, N, P}} <- Ops, N =:= Name, K =:= register orelse K =:= re_register]
        ++ [P || C := _ <- Cs, #{Name := {P, _}} <- [C#c.base]]
    ).

%% Earlier states were not searched for this answer. The search begins at the node's present
%% position, because its position at the time of the call is forgotten.
reread(#op{call = {K, Name}, node = N} = Op, Cs, X) when K =:= whereis; K =:= lookup ->
    set(fun(C) -> reads(Op, Name, maps:get(N, C#c.ahead, 0), C, X) end, Cs, X);
reread(Op, Cs, X) -> set(fun(C) -> [still(Op, C, X)] end, Cs, X).

other(#op{id = Id} = Op, #x{reads = Rs, writes = Ws} = X) ->
    case X of
        #x{reads = #{Id := _}} -> X#x{reads = Rs#{Id => Op}};
        _ -> X#x{writes = Ws#{Id => Op}}
    end.
