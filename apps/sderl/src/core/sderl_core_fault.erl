%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_fault).
-moduledoc """
The deliberate faults: what the library can be told to do wrong, so that a test can show that it would notice.

They come with the start arguments of the application, not with its configuration: no user can set one.
Each is one guard or two at the place that it spoils (`sderl_core:faulty/2` in the core, `sderl_dir:faulty/1`
in the processes around it), asked once a batch or more rarely. `rule_N` switches off what keeps rule N of the
protocol (see INTERNALS.md); where that is one of the other faults, it is that one.
""".
-export([all/0, unknown/1, named/1]).
-export_type([fault/0]).

-type fault() ::
    skip_apply | lose_down | keep_names | wrong_winner | stale_coordinator | unconditional_removal
    | early_yes | resurrect | double_yes | forget_session
    | rule_1 | rule_2 | rule_3 | rule_4 | rule_5 | rule_6 | rule_7 | rule_8 | rule_9 | rule_10 | rule_11 | rule_12
    | rule_13 | rule_14 | rule_15 | rule_16 | rule_17 | rule_18 | rule_19
    | rule_22 | rule_23 | rule_24.

-doc "All of them, with what each does.".
-spec all() -> [{fault(), string()}].
all() ->
    [{skip_apply, "a member acknowledges every third batch without changing its rows"},
     {lose_down, "the death of a registered process is not reported"},
     {keep_names, "a node that leaves a group, or whose group is deleted, keeps the group's names"},
     {wrong_winner, "a clash is settled for the process that the resolver decided against"},
     {stale_coordinator, "a coordinator goes on after a higher epoch refused it, and members apply and acknowledge what it sends"},
     {unconditional_removal, "the removal after a death takes whatever process has the name by then"},
     {early_yes, "a coordinator answers before the members have acknowledged"},
     {resurrect, "a component keeps the names whose home it lost and forgets what it unregistered in the absence of the home: such names are back when they meet"},
     {double_yes, "two registrations of a name in one batch are not seen by each other"},
     {forget_session, "a list of operations that is sent again is applied again"},
     {rule_1, "a group is known by its name alone"},
     {rule_2, "the identity of a group of the launch configuration depends on the list of its members, and a node that boots outranks what runs"},
     {rule_3, "a new life of a node is taken for the former one"},
     {rule_4, "who is a member on either side of a heal is one after it"},
     {rule_5, "writes wait while a node is brought up to date, and a node that is removed does not get the batch that says so"},
     {rule_6, "nodes that do not come back stay members"},
     {rule_7, "a new coordinator goes on from its own log, not from the longest"},
     {rule_8, "forget_session"},
     {rule_9, "stale_coordinator; and members follow whoever says that the coordinator is silent"},
     {rule_10, "a process that was stopped goes on as if it had not been"},
     {rule_11, "a coordinator keeps its role although another member sees more of them"},
     {rule_12, "a member that does not acknowledge is waited for until its link goes"},
     {rule_13, "a new epoch may be one that a former life of the node had"},
     {rule_14, "a member that sees a node go removes its names itself"},
     {rule_15, "resurrect"},
     {rule_16, "unconditional_removal"},
     {rule_17, "a name whose process is dead counts as taken"},
     {rule_18, "every member that hears of a clash decides it"},
     {rule_19, "an operation that is asked again after a crash is a new one"},
     {rule_22, "every link between free nodes makes one island of two"},
     {rule_23, "a node that is no member asks all known members in the order of their names; a free one looks for a name in the group it is asked for"},
     {rule_24, "what a node was told of other groups it tells others"}].

-doc "Which of these are none.".
-spec unknown([term()]) -> [term()].
unknown(Faults) -> [F || F <- Faults, not lists:keymember(F, 1, all())].

-doc "The faults as the guards ask for them.".
-spec named([fault()]) -> [fault()].
named(Faults) -> lists:append([as(F) || F <- Faults]).

as(rule_8) -> [forget_session];
as(rule_9) -> [rule_9, stale_coordinator];
as(rule_15) -> [resurrect];
as(rule_16) -> [unconditional_removal];
as(Fault) -> [Fault].
