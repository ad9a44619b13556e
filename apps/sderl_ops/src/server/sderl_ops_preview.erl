%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_preview).
-moduledoc """
What would change if a revision were adopted, from the server's view. For many thousand instances
it takes seconds, so the process of the connection does it and not the server. Pure.
""".

-export([plan/4, refused/4, remaining/2]).

-import(sderl_ops_wire, [text/1]).

-doc """
`changes` for a person, the `steps` in an order in which they may be done, and what the rules of
upgrades refuse.
""".
-spec plan(sderl_ops_revision:prepared(), Force :: boolean(), sderl_ops_status:view(),
           sderl_ops_memory:time()) ->
    #{changes := [binary()], steps := [binary()], refused := [binary()]}.
plan(Prepared, Force, View, Now) ->
    {Old, Desired, Observed, Memory} = situation(Prepared, Force, View),
    #{steps := Steps, refused := Refused} = sderl_ops_plan:plan(Desired, Observed, Memory, Now),
    #{
        changes => [text(Line) || Line <- sderl_ops_diff:lines(Old, Desired)],
        steps => [text(sderl_ops_step:words(Step)) || Step <- Steps],
        refused => words(Refused)
    }.

-doc "Only what the rules of upgrades refuse.".
-spec refused(sderl_ops_revision:prepared(), Force :: boolean(), sderl_ops_status:view(),
              sderl_ops_memory:time()) -> [binary()].
refused(Prepared, Force, View, Now) ->
    {_, Desired, Observed, Memory} = situation(Prepared, Force, View),
    words(sderl_ops_plan:refusals(Desired, Observed, Memory, Now)).

-doc "The steps that are left until the cluster is as the newest revision says.".
-spec remaining(sderl_ops_status:view(), sderl_ops_memory:time()) -> [binary()].
remaining(#{desired := undefined}, _) -> [];
remaining(#{desired := Desired, observed := Observed, memory := Memory}, Now) ->
    #{steps := Steps} = sderl_ops_plan:plan(Desired, Observed, Memory, Now),
    [text(sderl_ops_step:words(Step)) || Step <- Steps].

words(Refused) -> [text(sderl_ops_refusal:words(replace, Why)) || Why <- Refused].

%% If the view is of another cluster, which was destroyed, it does not count for this one.
situation(#{file := #{cluster := Cluster}} = Prepared, Force, #{store := Store} = View) ->
    {Next, Before} = case {Store, View} of
                         {{Cluster, Revision}, #{desired := #{} = Is}} -> {Revision + 1, Is};
                         {{Cluster, Revision}, _} -> {Revision + 1, none};
                         _ -> {1, none}
                     end,
    {ok, Desired} = sderl_ops_revision:desired(Prepared, Force, Next),
    case Store of
        {Cluster, _} ->
            #{observed := Observed, memory := Memory} = View,
            {Before, Desired, Observed, Memory};
        _ ->
            {none, Desired, sderl_ops_observed:new(), sderl_ops_memory:new()}
    end.
