%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_plan).
-moduledoc """
Which virtual machine is started next. Pure.

Measurements go in *rounds*. In each, every point of every program has one virtual machine, in an
order that is drawn from the seed and the number of the round: so a lasting disturbance affects all
points alike, and no point always follows the same other one. A point that is known well enough gets
no more virtual machines; the control gets them as long as any other point does. In a race
(`m:sderl_bench_vm_race`) a round has only those points that may still win.
""".

-export([round/4, least/0, least/1]).
-export_type([work/0, id/0, seen/0]).

-doc "A point of a program. `control` is the one that shows the noise of the machine.".
-type work() :: #{id := id(), control := boolean(), _ => _}.

-type id() :: {Program :: binary(), {sderl_bench_vm_size:size(), sderl_bench_vm_summary:key()}}.

-doc """
The times of a point by the number of the round, one of each virtual machine; and how many failed.
""".
-type seen() :: #{id() => #{times := #{Round :: pos_integer() => float()},
                            failed := non_neg_integer()}}.

%% After so many failures in one command a point is not measured any more.
-define(FAILURES, 2).
%% The median of fewer has no interval.
-define(LEAST, 6).
-define(LEVEL, 0.95).

-doc "The least number of virtual machines whose median has an interval.".
-spec least() -> pos_integer().
least() -> ?LEAST.

-doc """
The least number of virtual machines of each point with which a comparison of so many points has
verdicts, and a median has an interval.
""".
-spec least(Points :: pos_integer()) -> pos_integer().
least(Points) -> max(?LEAST, sderl_bench_sample:least(sderl_bench_verdict:level(Points))).

-doc """
The works that are left of a round, in its order. None is left when all but the control are known
well enough, have failed, or were measured in this round.
""".
-spec round([work()], Round :: pos_integer(), seen(),
            #{seed := integer(), width := float(), least := pos_integer(), race => boolean(),
              rounds => pos_integer(), _ => _}) -> [work()].
round(Works, Round, Seen, #{seed := Seed} = Options) ->
    Left = [Work || #{id := Id, control := Control} = Work
                        <- shuffled(in_race(Works, Seen, Options), {Seed, Round}),
                    of_round(of_point(Id, Seen), Round, Control, Options)],
    case [Work || #{control := false} = Work <- Left] of
        [] -> [];
        _ -> Left
    end.

of_point(Id, Seen) -> maps:get(Id, Seen, #{times => #{}, failed => 0}).

in_race(Works, Seen, #{race := true, least := Least} = Options) ->
    Entered = [Id || #{id := Id, control := false} <- Works,
                     #{failed := Failed} <- [of_point(Id, Seen)], Failed < ?FAILURES],
    %% With fewer rounds, no point ever has as many.
    Enough = min(Least, maps:get(rounds, Options, Least)),
    Running = sderl_bench_vm_race:running(Entered, Seen, Enough),
    [Work || #{id := Id, control := Control} = Work <- Works,
             Control orelse lists:member(Id, Running)];
in_race(Works, _, _) ->
    Works.

of_round(#{failed := Failed}, _, _, _) when Failed >= ?FAILURES -> false;
of_round(#{times := Times}, Round, Control, Options) ->
    not is_map_key(Round, Times) andalso
        (Control orelse not narrow(judged(Times, Round, Options), Options)).

%% In a race points wait, so a point's times may all be of later rounds. Elsewhere only a failed
%% round can be missing, and it is repeated.
judged(Times, _, #{race := true}) -> maps:values(Times);
judged(Times, Round, _) -> [Time || R := Time <- Times, R < Round].

%% Whether a point is known well enough: the interval of its median is narrow.
narrow(Times, #{width := Width, least := Least}) when length(Times) >= Least ->
    case width(Times) of
        undefined -> false;
        Half -> Half =< Width
    end;
narrow(_, _) ->
    false.

%% Half of the interval of the median, as a share of the median.
width([]) ->
    undefined;
width(Times) ->
    case sderl_bench_sample:median(?LEVEL, Times) of
        #{low := undefined} -> undefined;
        #{value := Value, low := Low, high := High} -> (High - Low) / 2 / Value
    end.

shuffled(Works, Seed) ->
    {Keyed, _} = lists:mapfoldl(
        fun(Work, State) ->
            {Key, Next} = rand:uniform_s(State),
            {{Key, Work}, Next}
        end,
        rand:seed_s(exsss, erlang:phash2(Seed)),
        Works
    ),
    [Work || {_, Work} <- lists:keysort(1, Keyed)].
