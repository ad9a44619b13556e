%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_run).
-moduledoc """
One schedule from its first to its last event: the nodes boot, the script runs while clients work,
all faults end, the members become one component, clients continue for a while and stop, and then
the promises are checked.
""".
-include("sderl_sim.hrl").

-export([play/1, build/2, until/2]).

-import(sderl_sim_world, [rnd/3, at/3, in/3]).

-define(RELINK_MS, 40).
%% From the last fault until all are one component: ten times what they should need.
-define(CONVERGE_MS, 60_000).
-define(ANSWER_MS, 30_000).
-define(CALM_MS, 8000).
%% When groups without a configuration are made.
-define(MAKE_MS, 5000).
%% Until the names of dead processes are gone: a tick of the coordinator, and a batch.
-define(GONE_MS, 3000).

-doc "Runs the schedule of a fresh world.".
-spec play(#w{}) -> #w{}.
play(#w{opts = Opts} = W0) ->
    {N, W1} = case Opts of #{nodes := K} -> {K, W0}; _ -> rnd(3, 7, W0) end,
    {X, W2} =
        case Opts of #{spare := K2} -> {K2, W1}; #{script := _} -> {0, W1}; _ -> rnd(0, 2, W1) end,
    Named = {sderl_sim_world:names(member, N), sderl_sim_world:names(spare, X)},
    {Groups, W3} = groups(element(1, Named), element(2, Named), W2),
    Made = made(Named, Opts) ++ islands(Named, Opts),
    {Clients, W4} = case Opts of
        #{clients := K3} -> {K3, W3};
        #{script := _} -> {0, W3};
        _ -> rnd(1, 3, W3)
    end,
    Wb = in(?RELINK_MS, relink, boot((build(Groups ++ Made, W4))#w{clients = Clients})),
    W5 = lists:foldl(fun({{made, _} = G, [], [First | _]}, W) ->
                            at(?MAKE_MS, {cmd, {in, G, {make, First}}}, W);
                        (_, W) -> W
                     end, Wb, Made),
    {Script, W6} = case Opts of #{script := S} -> {S, W5}; _ -> sderl_sim_faults:script(W5) end,
    End = lists:max([0 | [At || {At, _} <- Script]]),
    W7 = lists:foldl(fun({At, C}, W) -> at(At, {cmd, C}, W) end, W6, Script),
    finish(sderl_sim_command:run(heal, until(End + 1, W7))).

%% The first group has all nodes; the others have some, always with the first and the last.
groups(Members, Spares, #w{opts = Opts} = W) ->
    lists:foldl(fun(I, {Gs, Wa}) ->
        {Some, Wb} = lists:foldl(fun(N, {S, Wx}) ->
            {In, Wy} = sderl_sim_world:chance(60, Wx),
            {[N || In] ++ S, Wy}
        end, {[], Wa}, Members),
        Config = lists:usort([hd(Members), lists:last(Members) | Some]),
        {Gs ++ [{{g, I}, Config, Members -- Config}], Wb}
    end, {[{g, Members, Spares}], W}, lists:seq(2, maps:get(groups, Opts, 1))).

%% Groups without a configuration: all nodes may take part in them.
made({Members, Spares}, #{kinds := Kinds} = Opts) ->
    Least = case lists:member(regroup, Kinds) of true -> 1; false -> 0 end,
    [{{made, I}, [], Members ++ Spares} || I <- lists:seq(1, max(Least, maps:get(made, Opts, 0)))];
made(Named, Opts) -> made(Named, Opts#{kinds => []}).

%% The free namespace: every node founds an island of its own.
islands({Members, Spares}, #{kinds := Kinds}) ->
    [{island, [], Members ++ Spares} || lists:member(meet, Kinds)];
islands(_, _) -> [].

-doc """
A world with these groups: the members that its launch configuration names, and who may join later.
""".
-spec build([{term(), [node()], [node()]}], #w{}) -> #w{}.
build(Groups, W) ->
    Nodes = #{G => lists:usort(Ms ++ Xs) || {G, Ms, Xs} <- Groups},
    In = maps:groups_from_list(fun({N, _}) -> N end, fun({_, G}) -> G end,
                               [{N, G} || {G, _, _} <- Groups, N <- map_get(G, Nodes)]),
    Names = lists:sort(maps:keys(In)),
    Launch = maps:get(launch, W#w.opts, #{}),
    W#w{names = Names,
        groups = Nodes,
        group = element(1, hd(Groups)),
        nodes = #{N => #n{name = N, groups = Gs} || N := Gs <- In},
        ms = #{N => #{G => #m{config = case lists:member(N, Ms) of
                                           true -> maps:get(N, Launch, Ms);
                                           false when G =:= island -> island;
                                           false -> none
                                       end}
                      || {G, Ms, Xs} <- Groups, lists:member(N, Ms ++ Xs)}
               || N <- Names},
        books = #{G => #b{made = case G of island -> island; _ -> Ms =:= [] end,
                          majority = sderl_sim_majority:new(sderl_sim_world:mode(G, W), Ms)}
                  || {G, Ms, _} <- Groups},
        apart = #{{A, B} => 0 || _ := Ns <- Nodes, A <- Ns, B <- Ns, A < B}}.

%% All nodes start, within the time of the options.
boot(#w{names = Names, opts = Opts} = W0) ->
    lists:foldl(fun(N, W) ->
        {D, W1} = rnd(0, maps:get(boot_spread, Opts, 3000), W),
        at(D, {cmd, {start, N}}, W1)
    end, W0, Names).

finish(#w{now = Healed} = W0) ->
    Stuck = step_until(fun sderl_sim_settle:together/1, Healed + ?CONVERGE_MS, W0),
    W1 = recovered(sderl_sim_settle:together(Stuck), Stuck),
    W2 = until(W1#w.now + ?CALM_MS, W1#w{converged = W1#w.now - Healed}),
    W3 = until(W2#w.now + 1000, sderl_sim_settle:probe(W2#w{asking = false})),
    W4 = step_until(fun sderl_sim_settle:answered/1, W3#w.now + ?ANSWER_MS, W3),
    Leases = W1#w.now + sderl_sim_majority:leases_ms(W1),
    W5 = sderl_sim_settle:deaths(until(max(W4#w.now + 2000, Leases), W4)),
    sderl_sim_settle:settled(until(W5#w.now + ?GONE_MS + sderl_sim_world:slack(W5), W5)).

%% If a majority is lost for good, an operator must say so.
recovered(true, W) -> W;
recovered(false, W0) ->
    case sderl_sim_majority:recover(W0) of
        W0 -> W0;
        W -> step_until(fun sderl_sim_settle:together/1, W#w.now + ?CONVERGE_MS, W)
    end.

step_until(Done, Deadline, #w{now = Now} = W) ->
    case Now >= Deadline orelse Done(W) of
        true -> W;
        false -> step_until(Done, Deadline, until(Now + 200, W))
    end.

-doc "Runs the world until a time.".
-spec until(integer(), #w{}) -> #w{}.
until(T, W) -> sderl_sim_world:until(T, fun event/2, W).

event({deliver, Link, To, Item}, W0) ->
    case sderl_sim_net:deliver(Link, To, Item, W0) of
        {none, W} -> W;
        {Got, W} -> sderl_sim_node:arrive(To, Got, W)
    end;
event({step, N, G, Id}, W) -> sderl_sim_node:step(N, G, Id, W);
event({timer, N, G, Id, What}, W) -> sderl_sim_node:timer(N, G, Id, What, W);
event({patience, Id}, W) -> sderl_sim_client:gives_up(Id, W);
event({keep, N, G, Life, I}, W) -> sderl_sim_client:keep(N, G, Life, I, W);
event({client, N, G, Life, K}, W) -> sderl_sim_client:turn(N, G, Life, K, W);
event({mail, N, G, Id, Item}, W) -> sderl_sim_node:arrive(N, {proc, G, Id, Item}, W);
event({relayed, N, Life, Item}, W) -> sderl_sim_node:relayed(N, Life, Item, W);
event({recover, N, G, Life}, W) -> sderl_sim_node:recover(N, G, Life, W);
event({tell_loser, N, Life, G, Effect}, W) ->
    sderl_sim_death:tell_loser(N, Life, G, Effect, W);
event({connect, A, B}, W) -> sderl_sim_net:connect(A, B, W);
event(relink, #w{opts = Opts} = W) ->
    in(maps:get(relink, Opts, ?RELINK_MS), relink, sderl_sim_net:relink(W));
event({cmd, C}, W) ->
    sderl_sim_world:tell({command, C}, W),
    sderl_sim_command:run(C, W).
