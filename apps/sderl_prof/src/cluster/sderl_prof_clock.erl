%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_clock).
-moduledoc """
Times of several nodes on one time line: that of the one who asked. Pure.

A *round* is a question for a node's clock: when it was asked, what the node said, and when the
answer was there. The node read its clock somewhere in between. So the difference of the clocks is
that to the middle, and wrong by at most half of the round trip. Of several rounds the one with the
least round trip counts.

Two such samples, at the begin and at the end, also tell how the one clock drifts against the other.
In between drift is taken to be even. Where there is only one, clocks are taken to drift apart by at
most 100 millionths.
""".

-export([sample/1, common/2, common_error/2, error_within/3, drift/1]).
-export_type([round/0, sample/0, alignment/0]).

%% With one sample, the error grows by one part in so many of the time since.
-define(DRIFT, 10_000).

-type round() :: {Asked :: integer(), Said :: integer(), Answered :: integer()}.
-doc "When, by the node's clock; how far its clock is ahead; by how much that may be wrong.".
-type sample() :: #{at := integer(), ahead := integer(), error := non_neg_integer()}.
-type alignment() :: #{first := sample(), last := sample() | none}.

-doc "The sample that some rounds make together.".
-spec sample([round(), ...]) -> sample().
sample(Rounds) ->
    {_, {Asked, Said, Answered}} =
        lists:min([{Answered - Asked, Round} || {Asked, _, Answered} = Round <- Rounds]),
    #{at => Said, ahead => Said - (Asked + Answered) div 2,
      error => (Answered - Asked + 1) div 2 + 1}.

-doc "A time of the node on the common time line.".
-spec common(Time :: integer(), alignment()) -> integer().
common(Time, #{first := #{at := At, ahead := Ahead}, last := #{at := Later, ahead := Then}})
  when Later > At, is_integer(Time), is_integer(Ahead) ->
    Time - Ahead - (Then - Ahead) * (Time - At) div (Later - At);
common(Time, #{first := #{ahead := Ahead}}) when is_integer(Time), is_integer(Ahead) ->
    Time - Ahead.

-doc "By how much that may be wrong.".
-spec common_error(Time :: integer(), alignment()) -> non_neg_integer().
common_error(Time, #{first := #{at := At, error := E1}, last := #{at := Later, error := E2}})
  when Later > At, is_integer(E1), is_integer(E2) ->
    Outside = max(0, max(At - Time, Time - Later)),
    max(E1, E2) + (E1 + E2) * Outside div (Later - At) + 1;
common_error(Time, #{first := #{at := At, error := Error}}) when is_integer(Error) ->
    Error + abs(Time - At) div ?DRIFT.

-doc "By how much times of this range may be wrong at most.".
-spec error_within(From :: integer(), To :: integer(), alignment()) -> non_neg_integer().
error_within(From, To, Alignment) ->
    max(common_error(From, Alignment), common_error(To, Alignment)).

-doc "By how many millionths the node's clock is faster; `unknown` where there is only one sample.".
-spec drift(alignment()) -> float() | unknown.
drift(#{first := #{at := At, ahead := Ahead}, last := #{at := Later, ahead := Then}})
  when Later > At ->
    1.0e6 * (Then - Ahead) / (Later - At);
drift(_) -> unknown.
