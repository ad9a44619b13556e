%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_fault).
-moduledoc """
The deliberate faults: what the library can be told to do wrong, so that a test can show that it would notice.

They come with the start arguments of the application, not with its configuration: no user can set one.
Each is one guard at the place that it spoils (`sderl_core:faulty/2` in the core, `sderl_dir:faulty/1`
in the processes around it), asked once a batch or more rarely.
""".
-export([all/0]).
-export_type([fault/0]).

-type fault() ::
    skip_apply | lose_down | keep_names | wrong_winner | stale_coordinator | unconditional_removal
    | early_yes | resurrect | double_yes | forget_session.

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
     {resurrect, "a component keeps the names whose home it lost, and what the home's side unregistered is back when they meet"},
     {double_yes, "two registrations of a name in one batch are not seen by each other"},
     {forget_session, "a list of operations that is sent again is applied again"}].
