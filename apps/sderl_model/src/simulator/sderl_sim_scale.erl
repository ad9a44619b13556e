%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_scale).
-moduledoc """
How the design scales: thousands of simulated nodes in groups of one size, in one world.

The groups form a ring: the last member of each is the first of the next, so that every group has
two gateways. Links take a fixed time each way, a process handles its messages within 2 ms, nothing
else takes time: the results are about rounds of messages, not processors. Some groups, spread over
the ring, are measured one after another in the whole world.

Promises are not checked here, see `m:sderl_sim_check`.
""".
-include("sderl_sim.hrl").

%% A registration is a name and a pid in one cell (see sderl_op.hrl).
-dialyzer(no_improper_lists).

-export([run/2]).
-export_type([result/0]).

-doc """
Lists have a value for each measured group: messages and bytes of a registration `alone`, and of one
of many while every member has a `busy` client; ms to `admit` a node, and to become one component
after half of the group was away for 20 s (`heal`), after the coordinator's node has died
(`takeover`), and after the last node has started (`boot`, of all groups).
""".
-type result() ::
    #{
        groups := pos_integer(), links_mean := float(), links_max := pos_integer(),
        alone_messages := [number()], alone_bytes := [number()], busy_messages := [number()],
        busy_bytes := [number()], heartbeats_per_node_s := float(), admit_ms := [integer()],
        heal_ms := [integer()], takeover_ms := [integer()], boot_ms := [integer()],
        steps := non_neg_integer()
    }.

-define(BOOT_MS, 3000).
-define(LIMIT_MS, 120_000).
-define(APART_MS, 20_000).
-define(STEP_MS, 2).
-define(BUSY_MS, 300).
%% The messages of a registration and its answer: only these are counted.
-define(WRITE, [req, ack, batch, commit, answers]).

-doc """
Options: `nodes`, `group_size`, `samples` (groups to measure), `names` (that each of these holds),
`delay_ms` (of a link), `seed`. `Tell(Part)` is called as each part begins.
""".
-spec run(#{nodes := pos_integer(), group_size := pos_integer(), samples := pos_integer(),
            names := pos_integer(), delay_ms := pos_integer(), seed := integer()},
          fun((atom()) -> term())) -> result().
run(#{nodes := N, group_size := Size, samples := Samples, names := Names, delay_ms := Delay,
      seed := Seed}, Tell) ->
    Groups = ring(N, Size),
    Chosen = spread(Samples, [G || {G, _} <- Groups]),
    %% One more node for each chosen group, to be added.
    Spare = maps:from_list(lists:zip(Chosen, sderl_sim_world:names(spare, length(Chosen)))),
    World = sderl_sim_world:new(Seed, #{delay => {Delay, Delay}, late => 0, chunk => 2000}),
    Built = sderl_sim_run:build([{G, Ms, [X || #{G := X} <- [Spare]]} || {G, Ms} <- Groups], World),
    _ = Tell(boot),
    {Boot, W1} = boot(Built#w{checks = false, asking = false, apart = #{}}),
    W2 = sderl_sim_run:until(W1#w.now + 5000, W1),
    _ = Tell(idle),
    {Heartbeats, W3} = heartbeats(W2),
    {Mean, Max} = links(lists:append([Ms || {_, Ms} <- Groups]), W3),
    _ = Tell(names),
    W4 = lists:foldl(fun(G, W) -> fill(G, Names, W) end, W3, Chosen),
    _ = Tell(alone),
    {Alone, W5} = lists:mapfoldl(fun alone/2, W4, Chosen),
    _ = Tell(busy),
    {Busy, W6} = lists:mapfoldl(fun busy/2, W5, Chosen),
    _ = Tell(admit),
    {Admit, W7} = admit(Spare, W6),
    _ = Tell(heal),
    {Heal, W8} = heal(Chosen, W7),
    _ = Tell(takeover),
    {Takeover, W9} = takeover(Chosen, W8),
    #{groups => length(Groups), links_mean => Mean, links_max => Max,
      heartbeats_per_node_s => Heartbeats / N, alone_messages => [M || {M, _} <- Alone],
      alone_bytes => [B || {_, B} <- Alone], busy_messages => [M || {M, _} <- Busy],
      busy_bytes => [B || {_, B} <- Busy], admit_ms => Admit, heal_ms => Heal,
      takeover_ms => Takeover, boot_ms => Boot, steps => W9#w.steps}.

%% ---------------------------------------------------------------- the world

%% As many groups as the nodes suffice for; each shares its last node with the next.
ring(N, Size) when N =< Size -> [{{g, 1}, sderl_sim_world:names(member, N)}];
ring(N, Size) ->
    K = max(2, N div (Size - 1)),
    Nodes = list_to_tuple(sderl_sim_world:names(member, K * (Size - 1))),
    At = fun(I) -> element(I rem tuple_size(Nodes) + 1, Nodes) end,
    [{{g, I + 1}, lists:usort([At(I * (Size - 1) + J) || J <- lists:seq(0, Size - 1)])}
     || I <- lists:seq(0, K - 1)].

spread(K, Groups) when K >= length(Groups) -> Groups;
spread(K, Groups) ->
    T = list_to_tuple(Groups),
    [element(I * tuple_size(T) div K + 1, T) || I <- lists:seq(0, K - 1)].

%% Nodes start within three seconds; two running nodes have a link a moment later.
boot(#w{names = Names} = W0) ->
    {Starts, W1} = lists:mapfoldl(fun(N, W) ->
        {D, Wa} = sderl_sim_world:rnd(0, ?BOOT_MS, W),
        {{N, D}, sderl_sim_world:at(D, {cmd, {start, N}}, Wa)}
    end, W0, Names),
    At = maps:from_list(Starts),
    W2 = lists:foldl(fun({A, B}, W) ->
        {D, Wa} = sderl_sim_world:rnd(1, 600, W),
        sderl_sim_world:at(max(map_get(A, At), map_get(B, At)) + D, {connect, A, B}, Wa)
    end, W1, [{A, B}
              || G <- sderl_sim_world:groups(W1), Ms <- [config(G, W1)], A <- Ms, B <- Ms, A < B]),
    Last = lists:max(maps:values(At)),
    booted(sderl_sim_world:groups(W2), Last, [], sderl_sim_run:until(Last, W2)).

booted([], _, Done, W) -> {Done, W};
booted(Open, Last, Done, #w{now = Now} = W) when Now - Last > ?LIMIT_MS ->
    {[Now - Last || _ <- Open] ++ Done, W};
booted(Open, Last, Done, #w{now = Now} = W) ->
    {Are, Not} = lists:partition(fun(G) -> together(G, config(G, W), W) end, Open),
    booted(Not, Last, [Now - Last || _ <- Are] ++ Done, sderl_sim_run:until(Now + 50, W)).

config(G, W) ->
    [N
     || N <- sderl_sim_world:nodes_of(G, W),
        #m{config = [_ | _]} <- [sderl_sim_world:member(N, G, W)]].

%% Whether these are the members that count, and all know it.
together(G, Ms, W) ->
    case [N || N <- Ms, #{role := coord} <- [sderl_sim_world:seen(N, G, W)]] of
        [C] ->
            #{lineage := E, view := View, flight := Flight, ordering := Ordering} =
                sderl_sim_world:seen(C, G, W),
            Flight =:= none andalso not Ordering andalso lists:sort(maps:keys(View)) =:= Ms andalso
                lists:all(fun(N) ->
                    case sderl_sim_world:seen(N, G, W) of
                        #{lead := C, lineage := E, view := View, syncing := false} ->
                            map_get(N, View) =:= live;
                        _ -> false
                    end
                end, Ms);
        _ -> false
    end.

%% The time until the members of each of these groups are together.
waits(Groups, #w{now = Since} = W) -> waits(Groups, Since, [], W).

waits([], _, Done, W) -> {Done, W};
waits(Open, Since, Done, #w{now = Now} = W) when Now - Since >= ?LIMIT_MS ->
    {[Now - Since || _ <- Open] ++ Done, W};
waits(Open, Since, Done, #w{now = Now} = W) ->
    {Are, Not} = lists:partition(fun({G, Ms}) -> together(G, Ms, W) end, Open),
    waits(Not, Since, [Now - Since || _ <- Are] ++ Done, sderl_sim_run:until(Now + ?STEP_MS, W)).

links(Members, #w{links = Ls}) ->
    Ends = [N || A := Of <- Ls, B := _ <- Of, N <- [A, B]],
    Per = lists:foldl(fun plus/2, maps:from_keys(Members, 0), Ends),
    Counts = maps:values(maps:with(Members, Per)),
    {lists:sum(Counts) / length(Counts), lists:max(Counts)}.

plus(N, Acc) -> maps:update_with(N, fun(K) -> K + 1 end, 1, Acc).

%% ---------------------------------------------------------------- messages

heartbeats(#w{now = Now} = W0) ->
    #w{sent = Sent} = W = sderl_sim_run:until(Now + 5000, W0#w{sent = #{}}),
    {lists:sum([K || _ := {K, _} <- Sent]) / 5, W#w{sent = none}}.

%% All names of a group, registered by its members in turn.
fill(G, Names, W0) ->
    Ms = list_to_tuple(config(G, W0)),
    W1 = lists:foldl(fun(I, W) ->
        N = element(I rem tuple_size(Ms) + 1, Ms),
        {P, Wa} = sderl_sim_world:pid(N, W),
        sderl_sim_client:submit(N, G, nobody, [{name, I} | P], Wa)
    end, W0, lists:seq(1, Names)),
    sderl_sim_run:until(W1#w.now + 1000, W1).

alone(G, W0) ->
    Ms = config(G, W0),
    {N, W1} = sderl_sim_world:pick(Ms, W0),
    {P, W2} = sderl_sim_world:pid(N, W1),
    W3 = sderl_sim_client:submit(N, G, nobody, [{alone, G} | P], W2#w{sent = #{}}),
    #w{sent = Sent} = W4 = sderl_sim_run:until(W3#w.now + 500, W3),
    {writes(Sent, 1), W4#w{sent = none}}.

writes(Sent, Count) ->
    Of = maps:values(maps:with(?WRITE, Sent)),
    {lists:sum([K || {K, _} <- Of]) / Count, lists:sum([B || {_, B} <- Of]) / Count}.

%% For a while every member has a client that registers a fresh name as soon as the last one is
%% answered.
busy(G, #w{now = Now, opno = Before} = W0) ->
    Until = Now + ?BUSY_MS,
    W1 = lists:foldl(fun(N, W) -> register(N, G, Until, W) end, W0#w{sent = #{}}, config(G, W0)),
    #w{sent = Sent, opno = After} = W2 = sderl_sim_run:until(Until + 500, W1),
    {writes(Sent, After - Before), W2#w{sent = none}}.

register(N, G, Until, #w{opno = I} = W) ->
    {P, W1} = sderl_sim_world:pid(N, W),
    Then = fun(_, #w{now = Now} = Wa) when Now < Until -> register(N, G, Until, Wa);
              (_, Wa) -> Wa
           end,
    sderl_sim_client:submit(N, G, {then, Then}, [{busy, I} | P], W1).

%% ---------------------------------------------------------------- changes

%% The time from when a member adds a node until it counts; all connect to it as soon as they know
%% of it.
admit(Spare, W0) ->
    lists:foldl(fun({G, X}, {Done, W}) ->
        Ms = config(G, W),
        {N, W1} = sderl_sim_world:pick(Ms, W),
        Then = fun(_, Wa) ->
            lists:foldl(fun(M, Wb) -> sderl_sim_net:connect(M, X, Wb) end, Wa, Ms)
        end,
        Asked = sderl_sim_client:submit(N, G, {then, Then}, #add{nodes = [X]}, W1),
        {Ms2, W2} = waits([{G, lists:usort([X | Ms])}], Asked),
        {Ms2 ++ Done, W2}
    end, {[], start([X || _ := X <- Spare], W0)}, lists:sort(maps:to_list(Spare))).

start(Ns, W) -> lists:foldl(fun sderl_sim_node:start/2, W, lists:sort(Ns)).

%% Half of the members are away for 20 s; the time counts from when all links are back.
heal(Groups, W0) ->
    Sides = [{G, All, lists:split(length(All) div 2, All)} || G <- Groups, All <- [members(G, W0)]],
    W1 = lists:foldl(fun({_, _, {As, Bs}}, W) ->
        sderl_sim_command:run({split, As, Bs, fast}, W)
    end, W0, Sides),
    W2 = sderl_sim_command:run(join, sderl_sim_run:until(W1#w.now + ?APART_MS, W1)),
    W3 = lists:foldl(fun({A, B}, W) -> sderl_sim_net:connect(A, B, W) end, W2,
                     [{A, B} || {_, _, {As, Bs}} <- Sides, A <- As, B <- Bs]),
    waits([{G, All} || {G, All, _} <- Sides], W3).

members(G, W) ->
    lists:sort([N || N <- sderl_sim_world:live_members(G, W), sderl_sim_world:up(N, W)]).

%% The nodes of the coordinators die; their links break within a tenth of a second.
takeover(Groups, W0) ->
    Coords = [{G, C} || G <- Groups, C <- sderl_sim_world:coordinators(G, W0)],
    W1 = lists:foldl(fun({_, C}, W) -> sderl_sim_node:crash(C, fast, W) end, W0, Coords),
    waits([{G, members(G, W1)} || {G, _} <- Coords], W1).
