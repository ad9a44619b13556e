%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find).
-moduledoc """
The common part of the rules of `m:sderl_mon_findings`: a rule takes a view and returns candidates
for findings, each either over its threshold or only near it.
""".

-export([grade/2, both/2, candidate/4, evidence/3, number/1]).

-import(sderl_mon_text, [text/2]).
-export_type([candidate/0, grade/0, limits/0, said/0]).

-doc "`near`: too little for a new finding, enough for one to stay.".
-type grade() :: over | near | none.

-doc "Thresholds by name: see `sderl_mon_findings:thresholds/0`.".
-type limits() :: #{atom() => number()}.

-doc """
`weight` orders candidates of one kind; the worst has most. `fast`: a state, not a measurement, so
it need not hold for long.
""".
-type candidate() :: #{
    kind := atom(),
    grade := over | near,
    severity := info | warning | critical,
    where := #{node | group | from | to => sderl_mon_types:id()},
    weight := number(),
    fast => boolean(),
    text := binary(),
    evidence := [sderl_mon_types:evidence()],
    remedy := binary(),
    saves => #{links => integer(), msgs_s => number()}
}.

-doc "The texts of a candidate, and what differs from the defaults.".
-type said() :: #{
    text := binary(), evidence := [sderl_mon_types:evidence()], remedy := binary(),
    severity => info | warning | critical, weight => number(), fast => boolean(),
    saves => #{links => integer(), msgs_s => number()}
}.

%% A finding goes when its value stays below this share of the threshold.
-define(NEAR, 0.8).

-doc "Compares a value with its threshold.".
-spec grade(number(), number()) -> grade().
grade(Value, Limit) when Value >= Limit -> over;
grade(Value, Limit) when Value >= ?NEAR * Limit -> near;
grade(_, _) -> none.

-doc "The grade if two thresholds must both be passed.".
-spec both(grade(), grade()) -> grade().
both(none, _) -> none;
both(_, none) -> none;
both(over, over) -> over;
both(_, _) -> near.

-doc "A list of one candidate, or of none.".
-spec candidate(atom(), grade(), map(), fun(() -> said())) -> [candidate()].
candidate(_, none, _, _) ->
    [];
candidate(Kind, Grade, Where, Say) ->
    [maps:merge(#{kind => Kind, grade => Grade, where => Where, severity => warning, weight => 0},
                Say())].

-doc "A piece of evidence: a label, a number or text, a unit.".
-spec evidence(unicode:chardata(), number() | binary(), unicode:chardata()) ->
    sderl_mon_types:evidence().
evidence(Label, Value, Unit) ->
    #{label => text("~ts", [Label]), value => rounded(Value), unit => text("~ts", [Unit])}.

rounded(Value) when is_float(Value), abs(Value) >= 100 -> round(Value);
rounded(Value) when is_float(Value) -> round(Value * 100) / 100;
rounded(Value) -> Value.

-doc "A number as text, rounded for people.".
-spec number(number()) -> string().
number(Value) when is_integer(Value) -> integer_to_list(Value);
number(Value) when abs(Value) >= 10 -> integer_to_list(round(Value));
number(Value) -> float_to_list(Value * 1.0, [{decimals, 1}]).
