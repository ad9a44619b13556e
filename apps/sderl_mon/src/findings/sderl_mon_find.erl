%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find).
-moduledoc """
The common part of the rules of `m:sderl_mon_findings`: a rule takes a view and returns candidates,
each either over its threshold or only near it.
""".

-export([grade/2, both/2, candidate/4, evidence/3, number/1]).

-import(sderl_mon_text, [text/2]).
-export_type([candidate/0, grade/0, limits/0, said/0]).

-doc "`near`: not enough to begin with, enough to stay.".
-type grade() :: over | near | none.

-doc "Thresholds by name: see `sderl_mon_findings:thresholds/0`.".
-type limits() :: #{atom() => number()}.

-doc """
`weight` orders those of one kind, the worst has most. `fast`: a state and no measurement, which
holds when it is seen.
""".
-type candidate() :: #{
    kind := atom(),
    grade := over | near,
    severity := info | warning | critical,
    where := #{node | group | from | to => sderl_mon_types:id()},
    weight := number(),
    fast => boolean(),
    text := binary(),
    evidence := [map()],
    remedy := binary(),
    saves => #{links => integer(), msgs_s => number()}
}.

-doc "The words of a candidate.".
-type said() ::
    #{text := binary(), evidence := [map()], remedy := binary(),
      severity => info | warning | critical, weight => number(), fast => boolean(), saves => map()}.

%% Below this share of a threshold a finding begins to go.
-define(NEAR, 0.8).

-doc "A value beside its threshold.".
-spec grade(number(), number()) -> grade().
grade(Value, Limit) when Value >= Limit -> over;
grade(Value, Limit) when Value >= ?NEAR * Limit -> near;
grade(_, _) -> none.

-doc "Of two thresholds that must both be passed.".
-spec both(grade(), grade()) -> grade().
both(none, _) -> none;
both(_, none) -> none;
both(over, over) -> over;
both(_, _) -> near.

-doc "One candidate, or none: a list of it.".
-spec candidate(atom(), grade(), map(), fun(() -> said())) -> [candidate()].
candidate(_, none, _, _) ->
    [];
candidate(Kind, Grade, Where, Say) ->
    [maps:merge(#{kind => Kind, grade => Grade, where => Where, severity => warning, weight => 0},
                Say())].

-doc "A number that shows it, with its unit.".
-spec evidence(unicode:chardata(), number() | binary(), unicode:chardata()) -> map().
evidence(Label, Value, Unit) ->
    #{label => text("~ts", [Label]), value => rounded(Value), unit => text("~ts", [Unit])}.

rounded(Value) when is_float(Value), abs(Value) >= 100 -> round(Value);
rounded(Value) when is_float(Value) -> round(Value * 100) / 100;
rounded(Value) -> Value.

-doc "A number as it is read: no more digits than it is worth.".
-spec number(number()) -> string().
number(Value) when is_integer(Value) -> integer_to_list(Value);
number(Value) when abs(Value) >= 10 -> integer_to_list(round(Value));
number(Value) -> float_to_list(Value * 1.0, [{decimals, 1}]).
