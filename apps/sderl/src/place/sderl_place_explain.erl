%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_explain).
-moduledoc false.
%% Why each candidate was chosen or not: as a term, and as a table for people. Pure.

-export([term/2, text/1]).

-define(DEPTH, 12).

-spec term(sderl_place_spec:t(), sderl_place_query:survey()) -> sderl_place:explanation().
term(#{choose := Choose, count := Count} = Spec,
     #{candidates := Candidates, chosen := Chosen} = Survey) ->
    #{choose => said(Choose), count => Count, chosen => Chosen,
      candidates => [candidate(C, Spec, Survey) || C <- Candidates]}.

candidate({Node, Read, Entry}, #{where := Where, prefer := Prefer, choose := Choose},
          #{distances := Distances, chosen := Chosen, adds := Adds}) ->
    Verdict = fun(Condition) -> sderl_place_filter:verdict(Condition, Node, Read, Distances) end,
    Conditions = [Verdict(C) || C <- Where],
    Base = #{node => Node, conditions => Conditions,
             prefer => [(Verdict(C))#{weight => W} || {W, C} <- Prefer]},
    case Entry of
        {dropped, condition} ->
            [Why | _] = [V || #{holds := false} = V <- Conditions],
            Base#{verdict => dropped, why => Why};
        {dropped, Why} -> Base#{verdict => dropped, why => Why};
        {_, Score, Value, Pending} ->
            maps:merge(Base#{verdict => case lists:member(Node, Chosen) of
                true -> chosen;
                false -> fits
            end,
                             score => Score, pending => Pending},
                       looked_at(Choose, Node, Read, Value, Pending, Adds))
    end.

%% The values that the chooser saw.
looked_at({Way, Name}, _, Read, Value, Pending, Step)
  when is_number(Step), Way =:= least; is_number(Step), Way =:= most ->
    (measured(Read(Name), Value))#{load => sderl_place_pick:load(Way, Value, Pending, Step)};
%% A load depends on both nodes of a pair, so the value is shown as it was measured.
looked_at({two, _, Name}, _, Read, Value, _, _) -> measured(Read(Name), Value);
looked_at({hash, Key}, Node, _, _, _, _) -> #{value => sderl_place_pick:rendezvous(Key, Node)};
looked_at({nearest, _}, _, _, Value, _, _) -> #{value => Value};
looked_at({spread, _}, _, _, none, _, _) -> #{};
looked_at({spread, host}, _, _, Host, _, _) -> #{value => Host};
looked_at({spread, _}, _, _, {_, Value}, _, _) -> #{value => Value};
looked_at(_, _, _, _, _, _) -> #{}.

measured({ok, _, Age}, Value) -> #{value => Value, age_ms => Age}.

said({two, least, Name}) -> {two, Name};
said({nearest, from}) -> nearest;
said({spread, host}) -> spread;
said({spread, {attr, {label, Key}}}) -> {spread, {label, Key}};
said(Choose) -> Choose.

%% ---------------------------------------------------------------- text

-spec text(sderl_place:explanation()) -> unicode:chardata().
text(#{choose := Choose, count := Count, chosen := Chosen, candidates := Candidates}) ->
    Head = ["node", "verdict", "preferred", "value", "pending", "why"],
    Rows = [Head | [row(C) || C <- Candidates]],
    Widths = [lists:max([string:length(Cell) || Cell <- Column]) || Column <- columns(Rows)],
    [io_lib:format("~0tP, ~tp of ~b: ~ts~n",
                   [Choose, ?DEPTH, Count, length(Candidates), names(Chosen)]),
     [line(Row, Widths) || Row <- Rows]].

names([]) -> "none";
names(Nodes) -> lists:join(", ", [atom_to_list(N) || N <- Nodes]).

columns([[] | _]) -> [];
columns(Rows) -> [[hd(R) || R <- Rows] | columns([tl(R) || R <- Rows])].

line(Row, Widths) ->
    Cells = [[Cell, lists:duplicate(Width - string:length(Cell), $\s)]
             || {Cell, Width} <- lists:zip(Row, Widths)],
    [string:trim(unicode:characters_to_list(lists:join("  ", Cells)), trailing), $\n].

row(#{node := Node, verdict := Verdict, conditions := Conditions, prefer := Prefer} = C) ->
    [atom_to_list(Node), atom_to_list(Verdict),
     case C of #{score := Score} when Prefer =/= [] -> integer_to_list(Score); #{} -> "-" end,
     case C of #{value := Value} -> seen(Value, C); #{} -> "-" end,
     case C of #{pending := Pending} -> integer_to_list(Pending); #{} -> "-" end,
     case C of
         #{why := #{condition := _} = Why} -> condition("no ", Why);
         #{why := Why} -> text_of("~0tP", [Why, ?DEPTH]);
         #{} when Conditions =:= [], Prefer =:= [] -> "-";
         #{} -> lists:flatten(lists:join("; ", [condition("", V) || V <- Conditions]
                                         ++ [condition(case H of true -> ""; false -> "not " end, V)
                                             || #{holds := H} = V <- Prefer]))
     end].

condition(Before, #{condition := Said} = Verdict) ->
    text_of("~s~0tP: ~ts", [Before, Said, ?DEPTH, case Verdict of
        #{value := Value} -> seen(Value, Verdict);
        #{reason := Why} -> text_of("~0tP", [Why, ?DEPTH])
    end]).

seen(Value, #{age_ms := Age}) -> text_of("~0tP (~b ms ago)", [Value, ?DEPTH, trunc(Age)]);
seen(Value, _) -> text_of("~0tP", [Value, ?DEPTH]).

text_of(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).
