%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_step).
-moduledoc """
The steps by which the service changes a cluster. Each step is idempotent: it may be repeated at any
time.

| step | what is done |
|---|---|
| `fetch` | a release is brought to a host and unpacked |
| `lay_out` | the files of an instance are written on its host, in place of earlier ones |
| `start` | an instance is started, and answers as an Erlang node |
| `drain` | a node leaves its groups, so that coordinators are elsewhere and it gets no new names |
| `stop` | an instance is stopped; its files stay |
| `remove` | an instance's files are removed from a host; if it runs there, it is stopped first |
| `drop_release` | a release that no instance there uses is removed from a host |
| `create` | the program that is the provider makes a host |
| `delete` | that program deletes a host |
| `groups` | the groups are made as the file says |

`lay_out`, `start`, `drain` and `stop` are for the host to which the instance is assigned
(`sderl_ops_memory:host_of/2`). `remove` names the host, because an instance on a host that was lost
and is back may be assigned to another one by now.
""".

-export([instance/1, words/1, rank/1]).
-export_type([step/0, about/0]).

-type step() ::
    {fetch, sderl_ops_desired:host_id(), sderl_ops_desired:sha()}
    | {lay_out | start | drain | stop, sderl_ops_desired:instance_id()}
    | {remove, sderl_ops_desired:host_id(), sderl_ops_desired:instance_id()}
    | {drop_release, sderl_ops_desired:host_id(), sderl_ops_desired:sha()}
    | {create | delete, sderl_ops_desired:host_id()}
    | groups.

-doc """
What a step was for: the release and settings of the instance, the groups, or the revision. Failures
of a step count only as long as that is the same.
""".
-type about() :: none | {sderl_ops_desired:sha(), sderl_ops_desired:hash()} | integer().

-doc "The instance that a step changes.".
-spec instance(step()) -> sderl_ops_desired:instance_id() | undefined.
instance({Kind, Id}) when Kind =:= lay_out; Kind =:= start; Kind =:= drain; Kind =:= stop -> Id;
instance({remove, _, Id}) -> Id;
instance(_) -> undefined.

-doc "A sentence for a person.".
-spec words(step()) -> unicode:chardata().
words({fetch, Host, Sha}) -> ["bring release ", short(Sha), " to ", Host];
words({lay_out, Id}) -> ["lay ", Id, " out"];
words({start, Id}) -> ["start ", Id];
words({drain, Id}) -> ["let ", Id, " leave its groups"];
words({stop, Id}) -> ["stop ", Id];
words({remove, Host, Id}) -> ["remove ", Id, " from ", Host];
words({drop_release, Host, Sha}) -> ["drop release ", short(Sha), " from ", Host];
words({create, Host}) -> ["make the host ", Host];
words({delete, Host}) -> ["take the host ", Host, " away"];
words(groups) -> "make the groups as the file says".

short(<<Short:12/binary, _/binary>>) -> Short;
short(Sha) -> Sha.

-doc """
The order in which steps are preferred if not all may run. Steps that shorten an outage come first,
then those that others wait for.
""".
-spec rank(step()) -> 1..7.
rank({remove, _, _}) -> 6;
rank(groups) -> 1;
rank({create, _}) -> 1;
rank({delete, _}) -> 7;
rank({start, _}) -> 2;
rank({fetch, _, _}) -> 3;
rank({lay_out, _}) -> 4;
rank({Kind, _}) when Kind =:= drain; Kind =:= stop -> 5;
rank({drop_release, _, _}) -> 7.
