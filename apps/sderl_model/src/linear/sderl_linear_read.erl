%% SPDX-License-Identifier: Apache-2.0
-module(sderl_linear_read).
-moduledoc false.
%% Reads in the machine of sderl_linear: what a node can show at which place of the order.

-export([reads/5, reads_at/5, shown/3]).

-include("sderl_linear.hrl").

%% Finds the first place, from this one of the tail on, at which the read can be answered. A token
%% of no known registration may belong to the one that is shown, or to a later one.
-spec reads(#op{}, term(), non_neg_integer(), #c{}, #x{}) -> [#c{}].
reads(Op, Name, From, #c{base = Base, tail = Tail} = C, X) ->
    {Before, After} = lists:split(From, Tail),
    Row = lists:foldl(fun({_, {N, R}}, _) when N =:= Name -> R;
                         (_, R) -> R
                      end, maps:get(Name, Base, none), Before),
    reads_at(Op, Name,
             [{From, Row}
              | [{I, R} || {I, {_, {N, R}}} <- lists:enumerate(From + 1, After), N =:= Name]], C,
             X).

-spec reads_at(#op{}, term(), [{non_neg_integer(), none | {term(), term()}}], #c{}, #x{}) -> [#c{}].
reads_at(Op, Name, Rows, C, X) -> reads(Op, Name, Rows, [], C, X).

reads(_, _, [], Acc, C, _) -> [C | Acc];
reads(#op{id = Id} = Op, Name, [{At, Row} | Rows], Acc, #c{seen = Seen} = C, X) ->
    case shows(Op, Name, At, Row, C, X) of
        no -> reads(Op, Name, Rows, Acc, C, X);
        yes -> [C#c{seen = Seen#{Id => At}} | Acc];
        {token, Reg, Token} ->
            With = C#c{seen = Seen#{Id => At}, tokens = (C#c.tokens)#{Reg => Token}},
            reads(Op, Name, Rows, [With | Acc], C, X)
    end.

shows(#op{answer = undefined}, _, _, none, _, _) -> yes;
shows(_, _, _, none, _, _) -> no;
shows(#op{answer = A} = Op, Name, At, {P, Reg}, #c{tokens = Ts} = C, X) ->
    {Alive, Dead} = looks(Op, At, P, C, X),
    case {Op#op.call, A} of
        {_, undefined} when Dead -> yes;
        {{whereis, _}, P} when Alive -> yes;
        {{lookup, _}, {P, Token}} when Alive ->
            case Ts of
                #{Reg := Token} -> yes;
                #{Reg := _} -> no;
                _ -> case grows(Name, Reg, Token, C) of true -> {token, Reg, Token}; false -> no end
            end;
        _ -> no
    end.

%% Whether the read can find the process alive, and dead, at this place. Only its own node knows.
looks(#op{node = N, start = S}, At, P, #c{tail = Tail},
      #x{deaths = Ds, dying = Dying, where = Where, called = Called}) ->
    case Ds of
        #{P := {_, Dead}} ->
            case Where(P) =:= N of
                false -> {true, false};
                true ->
                    Early = Dead > S
                        andalso lists:all(fun({Id, _}) -> maps:get(Id, Called, S) < Dead end,
                                          lists:sublist(Tail, At)),
                    {Early, lists:member(P, Dying)}
            end;
        _ -> {true, false}
    end.

%% The registrations of the name in their order, with the tokens that are known.
grows(Name, Reg, Token, #c{base = Base, tail = Tail, tokens = Ts, high = High}) ->
    Old = case High of #{Name := H} -> H < Token; _ -> true end,
    Rows = [R || #{Name := {_, R}} <- [Base]] ++ [R || {_, {N, {_, R}}} <- Tail, N =:= Name],
    {Earlier, [Reg | Later]} = lists:splitwith(fun(R) -> R =/= Reg end, Rows),
    Old andalso lists:all(fun(R) -> maps:get(R, Ts, Token) =< Token end, Earlier)
        andalso not lists:any(fun(R) -> maps:get(R, Ts, none) =:= Token end, Earlier ++ Later)
        andalso lists:all(fun(R) -> maps:get(R, Ts, Token) >= Token end, Later).

%% The read is answered: its node's prefix reaches at least to its place.
-spec shown(pos_integer(), node(), #c{}) -> #c{}.
shown(Id, N, #c{seen = Seen, ahead = Ahead} = C) ->
    At = maps:get(Id, Seen),
    C#c{seen = maps:remove(Id, Seen),
        ahead = case max(At, maps:get(N, Ahead, 0)) of
            0 -> Ahead;
            Max -> Ahead#{N => Max}
        end}.
