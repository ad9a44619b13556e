%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_memory).
-moduledoc """
What the reconciler has to remember because no host shows it. The service stores the memory that
`sderl_ops_reconcile:steps/5` returns before it runs the steps, so another service that begins with
it goes on where this one ended.
""".

-export([new/0, restored/1, host_of/2, adopted/1, quarantined/1]).
-export([pause/1, resume/1, try_again/1, is_paused/1, set_aside/2, take_back/2, is_aside/2]).
-export_type([memory/0, attempt/0, upgrade/0, failed/0, time/0]).

-doc "Milliseconds of system time.".
-type time() :: integer().

-doc """
- `assigned`: the host of each instance.
- `adopted`: instances whose nodes ran before (`m:sderl_ops_adopted`).
- `released`: those of them that were handed back (`m:sderl_ops_released`).
- `unreachable`: hosts that do not answer, and since when.
- `attempts`: steps that failed.
- `begun`: what running steps are for.
- `restarts`: when exited instances were started again, the latest first.
- `drained`: instances that have left their groups and are about to be stopped.
- `aside`: instances that an operator has taken out of service.
- `good`: the last revision with which all of a family ran in good health.
- `upgrades`: families whose instances are being replaced.
- `failed`: families that were rolled back from a revision.
- `machines`: hosts that a program makes, and what it told of them; `numbers`: the last number of a
  host of each domain.
- `relays`: which host gives a release to which (`m:sderl_ops_relay`).

Keys that are optional were unknown to an earlier version, which may have stored the memory.
""".
-type memory() :: #{
    version := 1,
    assigned := #{sderl_ops_desired:instance_id() => sderl_ops_desired:host_id()},
    adopted => #{sderl_ops_desired:instance_id() => sderl_ops_adopted:adopted()},
    released => #{sderl_ops_desired:instance_id() => sderl_ops_released:released()},
    unreachable := #{sderl_ops_desired:host_id() => time()},
    attempts := #{sderl_ops_step:step() => attempt()},
    begun := #{sderl_ops_step:step() => sderl_ops_step:about()},
    restarts := #{sderl_ops_desired:instance_id() => {sderl_ops_step:about(), [time()]}},
    drained := #{sderl_ops_desired:instance_id() => true},
    aside := #{sderl_ops_desired:instance_id() => true},
    paused := boolean(),
    good := #{Family :: binary() => Revision :: non_neg_integer()},
    upgrades := #{Family :: binary() => upgrade()},
    failed := #{Family :: binary() => failed()},
    machines := #{sderl_ops_desired:host_id() => sderl_ops_machines:machine()},
    numbers := #{Domain :: binary() => pos_integer()},
    relays => sderl_ops_relay:relays()
}.
-doc "`again_at` is `never` for what is quarantined.".
-type attempt() :: #{
    failures := pos_integer(),
    again_at := time() | never,
    about := sderl_ops_step:about(),
    why := term()
}.
-doc """
`taken` are instances that may be stopped and replaced and were not seen in good health since. Once
such an instance runs, the value is the time by which it has to be in good health, or, while the
alarms are unknown, how much time was left. `proven` are replaced instances in good health, and
since when. `back` is true during a roll-back. `since` is when the upgrade began, `stood` are the
alarms that were raised then (`m:sderl_ops_gate`), and `target` is what the family is to run: a
later revision with the same target goes on with the same upgrade. `held` is what holds it up and
was reported already. `stuck` is why it has failed without a roll-back.
""".
-type upgrade() :: #{
    revision := non_neg_integer(),
    back := boolean(),
    taken := #{sderl_ops_desired:instance_id() =>
                   waiting | time() | {left, Ms :: non_neg_integer()}},
    proven := #{sderl_ops_desired:instance_id() => time()},
    since => time(),
    target => sderl_ops_observed:layout() | undefined,
    stood => [sderl_ops_gate:occurrence()],
    held => alarms | unknown,
    stuck => term()
}.
-type failed() :: #{revision := non_neg_integer(), to := non_neg_integer(), why := term()}.

-doc "Nothing to remember.".
-spec new() -> memory().
new() ->
    #{
        version => 1,
        assigned => #{},
        adopted => #{},
        released => #{},
        unreachable => #{},
        attempts => #{},
        begun => #{},
        restarts => #{},
        drained => #{},
        aside => #{},
        paused => false,
        good => #{},
        upgrades => #{},
        failed => #{},
        machines => #{},
        numbers => #{},
        relays => sderl_ops_relay:new()
    }.

-doc "A stored memory, with the keys that the version which stored it did not know.".
-spec restored(map()) -> memory().
restored(Stored) -> maps:merge(new(), Stored).

-doc "The host to which an instance is assigned.".
-spec host_of(sderl_ops_desired:instance_id(), memory()) ->
    sderl_ops_desired:host_id() | undefined.
host_of(Id, #{assigned := Assigned}) -> maps:get(Id, Assigned, undefined).

-doc "The instances whose nodes ran before.".
-spec adopted(memory()) -> #{sderl_ops_desired:instance_id() => sderl_ops_adopted:adopted()}.
adopted(Memory) -> maps:get(adopted, Memory, #{}).

-doc "The steps that are not tried any more, and why.".
-spec quarantined(memory()) -> [{sderl_ops_step:step(), Why :: term()}].
quarantined(#{attempts := Attempts}) ->
    [{Step, Why} || Step := #{again_at := never, why := Why} <- Attempts].

%% ---------------------------------------------------------------- what an operator says

-doc "Nothing is begun until `resume/1`.".
-spec pause(memory()) -> memory().
pause(Memory) -> Memory#{paused := true}.

-doc "Goes on, and tries again at once what has failed.".
-spec resume(memory()) -> memory().
resume(Memory) -> try_again(Memory#{paused := false}).

-doc "Tries again at once what has failed: the operator may have mended the cause.".
-spec try_again(memory()) -> memory().
try_again(Memory) -> sderl_ops_relay:resume(Memory#{attempts := #{}, restarts := #{}}).

-spec is_paused(memory()) -> boolean().
is_paused(#{paused := Paused}) -> Paused.

-doc "Takes an instance out of service: it leaves its groups and is stopped, and stays stopped.".
-spec set_aside(sderl_ops_desired:instance_id(), memory()) -> memory().
set_aside(Id, #{aside := Aside} = Memory) -> Memory#{aside := Aside#{Id => true}}.

-doc "Puts it into service again.".
-spec take_back(sderl_ops_desired:instance_id(), memory()) -> memory().
take_back(Id, #{aside := Aside} = Memory) -> Memory#{aside := maps:remove(Id, Aside)}.

-spec is_aside(sderl_ops_desired:instance_id(), memory()) -> boolean().
is_aside(Id, #{aside := Aside}) -> is_map_key(Id, Aside).
