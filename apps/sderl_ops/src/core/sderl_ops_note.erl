%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_note).
-moduledoc "What the reconciler decided and a person has to know: for the history, and for alarms.".

-export([words/1]).
-export_type([note/0]).

-type note() ::
    {assigned, sderl_ops_desired:instance_id(), sderl_ops_desired:host_id()}
    | {moved, sderl_ops_desired:instance_id(), From :: sderl_ops_desired:host_id()}
    | {host_lost, sderl_ops_desired:host_id()}
    | {failed, sderl_ops_step:step(), Why :: term()}
    | {quarantined, sderl_ops_step:step(), Why :: term()}
    | {upgrade_began, Family :: binary(), Revision :: non_neg_integer()}
    | {upgrade_stuck, Family :: binary(), Revision :: non_neg_integer(), Why :: term()}
    | {roll_back, Family :: binary(), From :: non_neg_integer(), To :: non_neg_integer(),
       Why :: term()}
    | {good, Family :: binary(), Revision :: non_neg_integer()}.

-doc "A sentence for a person.".
-spec words(note()) -> unicode:chardata().
words({assigned, Id, Host}) -> [Id, " is to be on ", Host];
words({moved, Id, From}) -> [Id, " is no longer to be on ", From];
words({host_lost, Host}) -> [Host, " is lost: what it had is started elsewhere"];
words({failed, Step, Why}) -> ["could not ", sderl_ops_step:words(Step), reason(Why)];
words({quarantined, Step, Why}) ->
    ["gave up to ", sderl_ops_step:words(Step), reason(Why), "; `resume` tries again"];
words({upgrade_began, Family, Revision}) ->
    io_lib:format("~ts is being replaced, revision ~b", [Family, Revision]);
words({upgrade_stuck, Family, Revision, Why}) ->
    [io_lib:format("~ts cannot be replaced, revision ~b", [Family, Revision]), reason(Why)];
words({roll_back, Family, From, To, Why}) ->
    [io_lib:format("~ts goes back from revision ~b to ~b", [Family, From, To]), reason(Why)];
words({good, Family, Revision}) ->
    io_lib:format("~ts runs as revision ~b says", [Family, Revision]).

reason(Why) when is_binary(Why) -> [": ", Why];
reason(Why) -> io_lib:format(": ~0tp", [Why]).
