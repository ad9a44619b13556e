%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_doing).
-moduledoc """
The steps that are being done now, each alone or some together, in processes that end with the
server: the next server begins without any.
""".

-export([new/0, begin_steps/3, ended/3, steps/1, count/1]).
-export_type([doing/0]).

-opaque doing() :: #{reference() => [sderl_ops_step:step(), ...]}.

-doc "No steps.".
-spec new() -> doing().
new() -> #{}.

%% The processes answer with their exit reason.
-dialyzer({nowarn_function, [begin_steps/3]}).

-doc "Begins steps. The calling process gets a `DOWN` for each process (`ended/3`).".
-spec begin_steps([sderl_ops_step:step()], sderl_ops_work:context(), doing()) -> doing().
begin_steps(Steps, #{memory := Memory} = Context, Doing) ->
    lists:foldl(fun(Together, Acc) ->
        {_, Ref} = spawn_opt(fun() -> exit({steps, sderl_ops_work:do(Together, Context)}) end,
                             [link, monitor]),
        Acc#{Ref => Together}
    end, Doing, sderl_ops_work:together(Steps, Memory)).

-doc "The results of the steps of a process that has ended; `none` if it is another process.".
-spec ended(reference(), Reason :: term(), doing()) ->
    {[{sderl_ops_step:step(), sderl_ops_work:result()}], doing()} | none.
ended(Ref, Reason, Doing) ->
    case maps:take(Ref, Doing) of
        {Steps, Left} -> {[{Step, result(Step, Reason)} || Step <- Steps], Left};
        error -> none
    end.

result(Step, {steps, Results}) -> map_get(Step, Results);
result(_, Crash) -> {error, {crashed, Crash}}.

-doc "All steps that are being done.".
-spec steps(doing()) -> [sderl_ops_step:step()].
steps(Doing) -> lists:append(maps:values(Doing)).

-doc "How many there are.".
-spec count(doing()) -> non_neg_integer().
count(Doing) -> length(steps(Doing)).
