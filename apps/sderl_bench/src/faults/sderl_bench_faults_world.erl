%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_world).
-moduledoc """
The nodes that a fault needs: on the loopback address, or each in a network namespace of its own.
""".

-export([links/0, possible/2, key/2, with/4]).
-export_type([key/0, world/0]).

-doc "Faults with the same key can share nodes.".
-type key() :: {Registry :: module(), nodes | links | silent | config}.

-doc "Nodes in the order of the plan.".
-type world() :: #{fleet := pid(), net := pid() | none, nodes := [node()], registry := module()}.

%% Where links are closed, the nodes notice within this instead of OTP's 60 s, so that it happens
%% while the fault lasts.
-define(QUICK_TICK_S, 4).

-doc "How links are cut on this machine, and why not in network namespaces.".
-spec links() -> namespaces | {cookies, Why :: unicode:chardata()}.
links() ->
    case sderl_fleet_netns:start(1) of
        {ok, Net} ->
            ok = sderl_fleet_netns:stop(Net),
            namespaces;
        {error, {no_namespaces, Why}} ->
            {cookies, Why}
    end.

-doc "Whether a fault is possible where links are cut in this way.".
-spec possible(sderl_bench_faults_kind:kind(), namespaces | cookies) -> boolean().
possible(#{needs := silent}, cookies) -> false;
possible(_, _) -> true.

-doc false.
-spec key(sderl_bench_faults_kind:kind(), module()) -> key().
key(#{needs := Needs}, Registry) -> {Registry, Needs}.

-doc "Runs `Fun` with the nodes, which are gone afterwards, whatever happens.".
-spec with(key(), map(), Label :: unicode:chardata(), fun((world()) -> Result)) ->
    {ok, Result} | {error, term()}.
with({Registry, Needs}, #{nodes := Count} = Params, Label, Fun) ->
    maybe
        ok ?= sderl_fleet:fits(Count),
        {ok, Net} ?= net(Needs, Params),
        try
            start(Net, Registry, Needs, Params, Label, Fun)
        after
            Net =:= none orelse sderl_fleet_netns:stop(Net)
        end
    end.

net(Needs, #{links := namespaces, nodes := Count}) when Needs =:= links; Needs =:= silent ->
    sderl_fleet_netns:start(Count);
net(_, _) ->
    {ok, none}.

start(Net, Registry, Needs, Params, Label, Fun) ->
    Families = families(Net, quick(Needs, Registry:family(Params)), Params),
    Plan = #{
        families => Families,
        s_groups => [{Group, normal, [{Name, all} || #{name := Name} <- Families]}
                     || Group <- [Registry:group()], Group =/= none],
        progress => sderl_progress:reporter([Label, ": starting nodes"])
    },
    maybe
        {ok, Fleet} ?= sderl_fleet:start(Plan),
        try
            {ok, Fun(#{fleet => Fleet, net => Net, nodes => sderl_fleet:nodes(Fleet),
                       registry => Registry})}
        after
            sderl_fleet:stop(Fleet)
        end
    end.

quick(links, Family) ->
    Args = ["-kernel", "net_ticktime", integer_to_list(?QUICK_TICK_S)],
    Family#{args => maps:get(args, Family, []) ++ Args};
quick(_, Family) ->
    Family.

families(none, Family, #{nodes := Count}) ->
    [Family#{name => n, count => Count}];
families(Net, Family, _) ->
    [
        maps:merge(Family, Host#{name => "h" ++ integer_to_list(I) ++ "n", count => 1})
     || {I, Host} <- lists:enumerate(sderl_fleet_netns:hosts(Net))
    ].
