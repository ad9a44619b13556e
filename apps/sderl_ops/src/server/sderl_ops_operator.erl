%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_operator).
-moduledoc """
What an operator asks for one instance, as a change of what is remembered. Pure.

It is judged by the process that decides, and not by whoever asks: of two drains at a time, the
second would not know of the first.
""".

-export([change/3]).
-export_type([what/0, known/0]).

-type what() :: release | adopt | drain | force_drain | undrain.

-doc "What is known when it is asked for.".
-type known() :: #{
    running := [sderl_ops_step:step()],
    desired := sderl_ops_desired:desired(),
    observed := sderl_ops_observed:observed(),
    memory := sderl_ops_memory:memory()
}.

-doc """
The memory after it. `refused`: a group or an edge would be without its last; an error is a
sentence.
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
