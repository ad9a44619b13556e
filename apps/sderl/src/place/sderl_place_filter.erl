%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_filter).
-moduledoc false.
%% Whether a node fits conditions. Pure: attributes are read by a function, distances stand in a
%% map.
%%
%% An unknown value makes a condition false, whatever the condition is (as published, also `ne`).
%% Labels differ in one point, as selectors of labels do elsewhere: a node that is known not to have
%% the label is one of those that `not_in`, `not_equals` and `not_exists` select.

-export([fits/4, score/4, verdict/4]).
-export_type([reading/0, read/0, distances/0]).

-doc "`stale`: the known value is too old for the query, or no value is known yet.".
-type reading() ::
    {ok, Value :: term(), AgeMs :: number()} | {undefined, Reason :: term(), AgeMs :: number()}
        | stale | {error, Reason :: term()}.
-type read() :: fun((Name :: term()) -> reading()).
-type distances() :: #{sderl_place_spec:ref() => #{node() => number()}}.

-doc "Whether a node fits all conditions; `stale` if that depends on values to be asked for.".
-spec fits([sderl_place_spec:condition()], node(), read(), distances()) -> boolean() | stale.
fits(Conditions, Node, Read, Distances) -> fits(Conditions, Node, Read, Distances, true).

fits([], _, _, _, Sofar) -> Sofar;
fits([Condition | Conditions], Node, Read, Distances, Sofar) ->
    case holds(Condition, Node, Read, Distances) of
        true -> fits(Conditions, Node, Read, Distances, Sofar);
        stale -> fits(Conditions, Node, Read, Distances, stale);
        false -> false
    end.

-doc "The sum of the weights of the preferences that hold; `stale` likewise.".
-spec score([{pos_integer(), sderl_place_spec:condition()}], node(), read(), distances()) ->
    non_neg_integer() | stale.
score(Preferences, Node, Read, Distances) -> score(Preferences, Node, Read, Distances, 0).

-spec score([{pos_integer(), sderl_place_spec:condition()}], node(), read(), distances(),
            non_neg_integer()) ->
    non_neg_integer() | stale.
score([], _, _, _, Sum) -> Sum;
score([{Weight, Condition} | Preferences], Node, Read, Distances, Sum) ->
    case holds(Condition, Node, Read, Distances) of
        true when is_integer(Weight) -> score(Preferences, Node, Read, Distances, Sum + Weight);
        false -> score(Preferences, Node, Read, Distances, Sum);
        stale -> stale
    end.

holds({{dist, Ref}, Test, _}, Node, _, Distances) ->
    test(Test, dist, distance(Ref, Node, Distances));
holds({{Kind, Name}, Test, _}, _, Read, _) ->
    case Read(Name) of
        stale -> stale;
        Reading -> test(Test, Kind, Reading)
    end.

distance(Ref, Node, Distances) ->
    case Distances of
        #{Ref := #{Node := D}} -> {ok, D, 0};
        #{} -> {error, no_distance}
    end.

%% Whether a value passes a test.
-spec test(sderl_place_spec:test(), attr | label | dist, reading()) -> boolean().
test({op, Op, Const}, _, {ok, Value, _}) -> sderl_compare:holds(Op, Value, Const);
test({is, Flag}, _, {ok, Value, _}) -> Value =:= Flag;
test({in, Values}, _, {ok, Value, _}) -> member(Value, Values);
test({not_in, Values}, _, {ok, Value, _}) -> not member(Value, Values);
test({not_in, _}, label, {undefined, _, _}) -> true;
test(exists, _, {ok, _, _}) -> true;
test(not_exists, label, {undefined, _, _}) -> true;
test(_, _, _) -> false.

member(Value, Values) -> lists:any(fun(V) -> V == Value end, Values).

-doc "The outcome of a condition, and the value it had, for people.".
-spec verdict(sderl_place_spec:condition(), node(), read(), distances()) ->
    #{condition := term(), holds := boolean(), value => term(), age_ms => number(),
      reason => term()}.
verdict({Source, _, Said} = Condition, Node, Read, Distances) ->
    Reading = case Source of
        {dist, Ref} -> distance(Ref, Node, Distances);
        {_, Name} -> Read(Name)
    end,
    Seen = case Reading of
        {ok, Value, _} when element(1, Source) =:= dist -> #{value => Value};
        {ok, Value, Age} -> #{value => Value, age_ms => Age};
        {undefined, Why, Age} -> #{reason => Why, age_ms => Age};
        {error, Why} -> #{reason => Why};
        stale -> #{reason => not_known}
    end,
    Seen#{condition => Said, holds => holds(Condition, Node, Read, Distances) =:= true}.
