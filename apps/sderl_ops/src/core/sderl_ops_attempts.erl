%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_attempts).
-moduledoc """
When something that failed is tried again.

A step that failed is tried again after 1 s, 2 s and so on up to 60 s. After five failures it is
*quarantined*: it is not tried again until its purpose (`t:sderl_ops_step:about/0`) changes, or an
operator resumes or applies. An instance that exited is started again after the same times, as often
as its restart policy allows.
""".

-export([may/4, may_restart/5, begin_step/5, succeeded/2, failed/4, put_off/2]).
-export([quarantine/4, forget/2]).
-export_type([answer/0]).

-type answer() :: yes | {at, sderl_ops_memory:time(), Why :: term()} | {quarantined, Why :: term()}.

-define(FIRST_MS, 1_000).
-define(LONGEST_MS, 60_000).
-define(MOST_FAILURES, 5).

-doc "Whether a step may run now.".
-spec may(sderl_ops_step:step(), sderl_ops_step:about(), sderl_ops_memory:memory(),
          sderl_ops_memory:time()) -> answer().
may(Step, About, #{attempts := Attempts}, Now) ->
    case Attempts of
        #{Step := #{about := About, again_at := never, why := Why}} -> {quarantined, Why};
        %% A time further in the future was noted before the clock was set back.
        #{Step := #{about := About, again_at := At, why := Why}}
          when At > Now, At =< Now + ?LONGEST_MS ->
            {at, At, Why};
        #{} -> yes
    end.

-doc "Whether an instance that exited may be started again now.".
-spec may_restart(sderl_ops_desired:instance_id(), sderl_ops_desired:restart(),
                  sderl_ops_step:about(), sderl_ops_memory:memory(), sderl_ops_memory:time()) ->
    answer() | never | {too_often, Why :: term()}.
may_restart(_, #{policy := never}, _, _, _) -> never;
may_restart(Id, Restart, About, Memory, Now) ->
    case may({start, Id}, About, Memory, Now) of
        yes ->
            #{most := Most, within_s := Within} = Restart,
            case restarts(Id, About, Restart, Memory, Now) of
                [] -> yes;
                Times when length(Times) >= Most ->
                    {too_often, {exited, Most, times_within_s, Within}};
                [Last | _] = Times ->
                    case Last + pause(length(Times)) of
                        At when At > Now -> {at, At, exited};
                        _ -> yes
                    end
            end;
        Not -> Not
    end.

restarts(Id, About, #{within_s := Within}, #{restarts := Restarts}, Now) ->
    case Restarts of
        #{Id := {About, Times}} -> [At || At <- Times, At > Now - Within * 1000, At =< Now];
        #{} -> []
    end.

-doc "Remembers that a step begins; `Restart` is the policy of an instance that had exited.".
-spec begin_step(sderl_ops_step:step(), sderl_ops_step:about(),
                 sderl_ops_desired:restart() | undefined, sderl_ops_memory:memory(),
                 sderl_ops_memory:time()) -> sderl_ops_memory:memory().
begin_step({start, Id} = Step, About, #{} = Restart, Memory, Now) ->
    #{restarts := Restarts} = Memory,
    Times = [Now | restarts(Id, About, Restart, Memory, Now)],
    begin_step(Step, About, undefined, Memory#{restarts := Restarts#{Id => {About, Times}}}, Now);
begin_step(Step, About, undefined, #{begun := Begun} = Memory, _) ->
    Memory#{begun := Begun#{Step => About}}.

-spec succeeded(sderl_ops_step:step(), sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
succeeded(Step, #{attempts := Attempts, begun := Begun} = Memory) ->
    Memory#{attempts := maps:remove(Step, Attempts), begun := maps:remove(Step, Begun)}.

-doc "Remembers a failure; `true` if the step is quarantined now.".
-spec failed(sderl_ops_step:step(), Why :: term(), sderl_ops_memory:memory(),
             sderl_ops_memory:time()) -> {boolean(), sderl_ops_memory:memory()}.
failed(Step, Why, #{attempts := Attempts, begun := Begun} = Memory, Now) ->
    About = maps:get(Step, Begun, none),
    Failures = case Attempts of
        #{Step := #{about := About, failures := Before}} -> Before + 1;
        #{} -> 1
    end,
    Last = Failures >= ?MOST_FAILURES,
    Attempt = #{failures => Failures,
                again_at => case Last of
                                true -> never;
                                false -> Now + pause(Failures)
                            end,
                about => About,
                why => Why},
    {Last, Memory#{attempts := Attempts#{Step => Attempt}, begun := maps:remove(Step, Begun)}}.

-doc "The step is to be tried again at once in another way, so its failure does not count.".
-spec put_off(sderl_ops_step:step(), sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
put_off(Step, #{begun := Begun} = Memory) -> Memory#{begun := maps:remove(Step, Begun)}.

-spec quarantine(sderl_ops_step:step(), sderl_ops_step:about(), Why :: term(),
                 sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
quarantine(Step, About, Why, #{attempts := Attempts} = Memory) ->
    Attempt = #{failures => 1, again_at => never, about => About, why => Why},
    Memory#{attempts := Attempts#{Step => Attempt}}.

-doc "Forgets what is remembered of steps and restarts for which the predicate does not hold.".
-spec forget(fun((sderl_ops_step:step()) -> boolean()), sderl_ops_memory:memory()) ->
    sderl_ops_memory:memory().
forget(Keep, #{attempts := Attempts, begun := Begun, restarts := Restarts} = Memory) ->
    Memory#{attempts := #{Step => Attempt || Step := Attempt <- Attempts, Keep(Step)},
            begun := #{Step => About || Step := About <- Begun, Keep(Step)},
            restarts := #{Id => Times || Id := Times <- Restarts, Keep({start, Id})}}.

pause(Count) when Count > 6 -> ?LONGEST_MS;
pause(Count) -> min(?LONGEST_MS, ?FIRST_MS bsl (Count - 1)).
