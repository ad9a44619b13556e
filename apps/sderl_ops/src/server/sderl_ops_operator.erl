%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_operator).
-moduledoc """
An operator's request about one instance, as a change of the memory. Pure.

The server judges it, not the process of the connection: of two drains at the same time, the second
would not know of the first.
""".

-export([change/3]).
-export_type([what/0, known/0]).

-type what() :: release | adopt | drain | force_drain | undrain.

-doc "What the request is judged by.".
-type known() :: #{
    running := [sderl_ops_step:step()],
    desired := sderl_ops_desired:desired(),
    observed := sderl_ops_observed:observed(),
    memory := sderl_ops_memory:memory()
}.

-doc """
The memory after the request. `refused`: a group would lose its last member, or an edge its last
gateway; an error is a sentence.
""".
-spec change(what(), sderl_ops_desired:instance_id(), known()) ->
    {ok, sderl_ops_memory:memory()}
    | {refused, [sderl_ops_refusal:refusal(), ...]}
    | {error, unicode:chardata()}.
change(release, Id, #{running := Running, memory := Memory}) ->
    IsBusy = lists:any(fun(Step) -> sderl_ops_step:instance(Step) =:= Id end, Running),
    sderl_ops_released:release(Id, IsBusy, Memory);
change(adopt, Id, #{memory := Memory}) ->
    sderl_ops_released:take_back(Id, Memory);
change(What, Id, #{desired := Desired, observed := Observed, memory := Memory}) ->
    case {sderl_ops_released:is_released(Id, Memory), What} of
        {true, _} -> {error, [Id, " was handed back: `adopt` takes it over again"]};
        {false, drain} -> drain(sderl_ops_plan:refusals_of_drain(Id, Desired, Observed, Memory),
                                Id, Memory);
        {false, force_drain} -> drain([], Id, Memory);
        {false, undrain} -> {ok, sderl_ops_memory:take_back(Id, Memory)}
    end.

drain([], Id, Memory) -> {ok, sderl_ops_memory:set_aside(Id, Memory)};
drain(Refused, _, _) -> {refused, Refused}.
