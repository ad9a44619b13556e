%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_note).
-moduledoc "Decisions of the reconciler, and reasons, as sentences for the history and `status`.".

-export([words/1, reason/1]).
-export_type([note/0]).

-type note() ::
    {assigned, sderl_ops_desired:instance_id(), sderl_ops_desired:host_id()}
    | {moved, sderl_ops_desired:instance_id(), From :: sderl_ops_desired:host_id()}
    | {host_lost, sderl_ops_desired:host_id()}
    | {host_wanted | host_adopted | host_unwanted, sderl_ops_desired:host_id()}
    | {failed, sderl_ops_step:step(), Why :: term()}
    | {quarantined, sderl_ops_step:step(), Why :: term()}
    | {upgrade_began, Family :: binary(), Revision :: non_neg_integer()}
    | {upgrade_held | upgrade_stuck, Family :: binary(), Revision :: non_neg_integer(),
       Why :: term()}
    | {roll_back, Family :: binary(), From :: non_neg_integer(), To :: non_neg_integer(),
       Why :: term()}
    | {good, Family :: binary(), Revision :: non_neg_integer()}
    | {star, Provider :: binary(), Why :: term()}.

-doc "A sentence for a person.".
-spec words(note()) -> unicode:chardata().
words({assigned, Id, Host}) -> [Id, " is to be on ", Host];
words({moved, Id, From}) -> [Id, " is no longer to be on ", From];
words({host_lost, Host}) -> [Host, " is lost: what it had is started elsewhere"];
words({host_wanted, Host}) -> ["a host is to be made: ", Host];
words({host_adopted, Host}) -> [Host, " is there already, its provider says"];
words({host_unwanted, Host}) -> [Host, " is to be taken away when nothing is left there"];
words({failed, Step, Why}) -> ["could not ", sderl_ops_step:words(Step), ": ", reason(Why)];
words({quarantined, Step, Why}) ->
    ["gave up to ", sderl_ops_step:words(Step), ": ", reason(Why), "; `resume` tries again"];
words({upgrade_began, Family, Revision}) ->
    io_lib:format("~ts is being replaced, revision ~b", [Family, Revision]);
words({upgrade_held, Family, Revision, Why}) ->
    [io_lib:format("~ts is held up, revision ~b", [Family, Revision]), ": ", reason(Why)];
words({upgrade_stuck, Family, Revision, Why}) ->
    [io_lib:format("~ts cannot be replaced, revision ~b", [Family, Revision]), ": ", reason(Why)];
words({roll_back, Family, From, To, Why}) ->
    [io_lib:format("~ts goes back from revision ~b to ~b", [Family, From, To]), ": ", reason(Why)];
words({good, Family, Revision}) ->
    io_lib:format("~ts runs as revision ~b says", [Family, Revision]);
words({star, Provider, Why}) ->
    ["hosts of ", Provider, " do not reach each other, so the service sends each its archive: ",
     reason(Why), "; one of them tries again after 10 minutes, or after `resume`"].

-doc "Why something failed or is not done yet, in words.".
-spec reason(term()) -> unicode:chardata().
reason(Why) when is_binary(Why) -> Why;
reason(running) -> "being done";
reason(paused) -> "paused";
reason(at_once) -> "others come first";
reason(unknown) -> "not known yet";
reason(members) -> "its members start or stop";
reason(exited) -> "it ended by itself";
reason({exited, Most, times_within_s, Seconds}) ->
    io_lib:format("it ended by itself ~b times in ~b s", [Most, Seconds]);
reason({node, down}) -> "its node does not answer";
reason({listed, Group}) -> ["members of the group ", Group, " still list it"];
reason({node, unseen}) -> "the nodes have not been asked yet";
reason({host, Host, unseen}) -> [Host, " was not looked at yet"];
reason({host, Host, State}) -> [Host, " is ", atom_to_list(State)];
reason({not_seen_yet, Host}) -> [Host, " was not looked at yet"];
reason(not_asked_yet) -> "it was not asked yet";
reason(in_use) -> "something is left there, or on its way there";
reason({too_few_up, Domain}) ->
    ["it does not answer, and too few of the others of ", Domain, " are up: it may be that the "
     "service is cut off"];
reason({too_many_lost, Domain}) ->
    ["as many hosts of ", Domain, " as there are to be are lost: no more are made until they "
     "answer, or the provider says that they are gone"];
reason(no_host) -> "its domains have no host";
reason(no_host_answers) -> "no host of its domains answers";
reason(every_host_is_full) -> "every host of its domains has as many as it may have";
reason({group, Name}) -> ["the group ", Name, " is being changed"];
reason({no_good_health, Id}) -> [Id, " was not well in time"];
reason({alarms, Id, Alarms}) ->
    ["since the upgrade began an alarm was raised that concerns ", Id, ": ",
     lists:join(", ", Alarms)];
reason({quarantined, Why}) -> ["given up: ", reason(Why)];
reason({not_startable, _}) -> "not started: see the problems";
reason({again_at, _, Why}) -> ["tried again soon: ", reason(Why)];
reason({upgrade, {refused, _}}) -> "not replaced: see the problems";
reason({upgrade, {stuck, Why}}) -> ["not replaced: ", reason(Why)];
reason({upgrade, {wait, _}}) -> "to be replaced when the canaries have been well for a while";
reason({upgrade, {health, Ids}}) ->
    ["to be replaced when ", lists:join(", ", Ids), " is well again"];
reason({upgrade, {alarms, Alarms}}) ->
    ["an alarm was raised since it was replaced: ", lists:join(", ", Alarms),
     "; acknowledge what does not matter"];
reason({upgrade, {alarms_unknown, not_asked_yet}}) -> "the alarms have not been asked for yet";
reason({upgrade, {alarms_unknown, Why}}) ->
    ["nothing is replaced as long as it is not known which alarms are raised: ", Why];
reason({upgrade, {watched, _}}) -> "replaced, and looked at for alarms for a while";
reason({upgrade, canaries}) -> "to be replaced after the canaries";
reason({upgrade, _}) -> "to be replaced when its turn comes";
reason({groups, Why}) -> step_reason(groups, Why);
reason({{_, _} = Step, Why}) -> step_reason(Step, Why);
reason({{_, _, _} = Step, Why}) -> step_reason(Step, Why);
reason(Why) -> io_lib:format("~0tp", [Why]).

step_reason(Step, Why) -> ["could not ", sderl_ops_step:words(Step), ": ", reason(Why)].
