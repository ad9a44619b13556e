%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_faults).
-moduledoc """
Random schedules of faults: a script for `m:sderl_sim_command`.

A fault begins at some time, and most end by themselves, so that faults of all kinds overlap. Each
kind also picks out the coordinator, if that makes a difference.

| kind | what |
|---|---|
| `crash` | a node, or several at once, die with their memory and come back |
| `kill` | the process of the protocol alone dies, also between two effects |
| `pause` | a node stops and continues, also while a link of it breaks |
| `slow` | a node takes long for everything |
| `delay` | what one node sends to another takes up to seconds |
| `drop` | a link breaks, with what was under way, and comes back |
| `cut` | a pair cannot see each other while others see both |
| `split` | two or three sides cannot see each other |
| `chain` | nodes see only their neighbours, or only one of them |
| `clock` | a node's system clock jumps, and the node or its process restarts |
| `version` | a node restarts with another version of the messages, and later with the usual one |
| `member` | nodes are added, removed, and leave |
| `death` | a registered process dies |

Further kinds, which a schedule has only if they are asked for:

| kind | what |
|---|---|
| `loss` | a node dies and never comes back |
| `silence` | what a node sends to another, or to all, is held back for up to half a minute, while the links stay |
| `half` | the process of the protocol dies between two writes of rows |
| `relay` | a node forwards greetings late, so that later messages overtake them |
| `prune` | a node's system clock jumps by days: it forgets removed members |
| `regroup` | a group that was made at run time is deleted, and one of its name is made |
| `meet` | the islands of two free nodes become one (every node has one beside its groups) |
| `mutate` | what a node sends comes a second time, changed (`sderl_sim_hostile`) |
""".
-include("sderl_sim.hrl").

-export([kinds/0, usual/0, script/1]).

-import(sderl_sim_world, [rnd/3, chance/2, pick/2]).

-define(WEIGHTS,
    [{crash, 16}, {kill, 14}, {pause, 14}, {slow, 8}, {delay, 6}, {drop, 5}, {cut, 10}, {split, 12},
     {chain, 5}, {clock, 4}, {version, 4}, {member, 8}, {death, 4}, {loss, 8}, {silence, 12},
     {half, 10}, {relay, 6}, {prune, 3}, {regroup, 8}, {meet, 10}, {mutate, 6}]).
-define(UNUSUAL, [loss, silence, half, relay, prune, regroup, meet, mutate]).
-define(CLOCK_MS, 7_200_000).
-define(DAY_MS, 86_400_000).
-define(LONGEST_MS, 9000).

-doc "All kinds of faults.".
-spec kinds() -> [atom()].
kinds() -> [K || {K, _} <- ?WEIGHTS].

-doc "The kinds of a schedule whose options name none.".
-spec usual() -> [atom()].
usual() -> kinds() -- ?UNUSUAL.

-doc """
A script with faults of the `kinds`, at most so many (`faults`) and until that `time`, of the
options.
""".
-spec script(#w{}) -> {[{integer(), term()}], #w{}}.
script(#w{opts = Opts} = W0) ->
    Kinds = maps:get(kinds, Opts, usual()),
    Wheel = lists:append([lists:duplicate(Weight, K)
                          || {K, Weight} <- ?WEIGHTS, lists:member(K, Kinds)]),
    {K, W1} = rnd(1, maps:get(faults, Opts, 12), W0),
    lists:foldl(fun(_, {Script, W}) ->
        {T, Wa} = rnd(2000, maps:get(time, Opts, 40_000), W),
        {Kind, Wb} = pick(Wheel, Wa),
        {Cs, Wc} = fault(Kind, T, Wb),
        {Cs ++ Script, Wc}
    end, {[], W1}, lists:seq(1, case Wheel of [] -> 0; _ -> K end)).

%% ---------------------------------------------------------------- one fault of each kind

fault(Kind, T, #w{opts = Opts} = W0) ->
    {D, W1} = rnd(50, maps:get(longest, Opts, ?LONGEST_MS), W0),
    {N, W2} = pick(sderl_sim_world:all(W1), W1),
    {How, W3} = pick([fast, slow], W2),
    {X, W4} = rnd(1, 100, W3),
    {[First | Then], W5} = fault(Kind, X, N, How, D, W4),
    {[{T, {fault, Kind, First}} | [{T + At, C} || {At, C} <- Then]], W5}.

fault(crash, X, N, How, D, W) when X =< 50 -> {[{crash, N, How}, {D, {restart, N}}], W};
fault(crash, X, _, How, D, W0) when X =< 90 ->
    {G, W} = group(W0),
    {[{in, G, {on_coord, crash, How}}, {D, start_all}], W};
fault(crash, _, _, How, D, W0) ->
    {Ns, W} = some(W0),
    {[many([{crash, N, How} || N <- Ns]), {D, start_all}], W};
fault(kill, X, N, _, _, W0) ->
    {G, W} = group(W0),
    C = if
        X =< 35 -> {kill, N};
        X =< 70 -> {kill_in_step, N};
        X =< 80 -> {on_coord, kill};
        true -> {on_coord, kill_in_step}
    end,
    {[{in, G, C}], W};
fault(pause, X, N, _, D, W) when X =< 55 -> {[{pause, N}, {D, {resume, N}}], W};
fault(pause, X, _, _, D, W0) when X =< 80 ->
    {G, W} = group(W0),
    {[{in, G, {on_coord, pause}}, {D, resume_all}], W};
fault(pause, _, N, How, D, W0) ->
    {M, W} = other(N, W0),
    {[{pause, N}, {300, {cut, N, M, How}}, {D, {resume, N}}, {2 * D, {uncut, N, M}}], W};
fault(slow, X, N, _, D, W) ->
    Pace = if X =< 40 -> {20, 100}; X =< 80 -> {100, 1500}; true -> {2000, 6000} end,
    {[{pace, N, Pace}, {2 * D, {pace, N, {0, 2}}}], W};
fault(delay, X, N, _, D, W0) ->
    {M, W} = other(N, W0),
    Longest = maps:get(longest, W#w.opts, ?LONGEST_MS),
    Range = if X =< 50 -> {50, 400}; true -> {500, max(500, Longest div 3)} end,
    {[{delay, N, M, Range}, {D, {no_delay, N, M}}], W};
fault(drop, X, N, _, D, W0) ->
    {M, W} = other(N, W0),
    {[{drop, N, M} | [{D, {drop, N, M}} || X =< 50]], W};
fault(cut, X, N, How, D, W0) ->
    {M, W1} = other(N, W0),
    case X =< 70 of
        true -> {[{cut, N, M, How}, {D, {uncut, N, M}}], W1};
        false ->
            {O, W2} = other(N, W1),
            {[many([{cut, N, M, How}, {cut, N, O, How}]),
              {D, many([{uncut, N, M}, {uncut, N, O}])}], W2}
    end;
fault(split, X, _, How, D, W0) ->
    Ns = sderl_sim_world:all(W0),
    {As, W1} = some(W0),
    case X =< 75 of
        true -> {[{split, As, Ns -- As, How}, {D, join}], W1};
        false ->
            {Bs, W2} = some(W1),
            {[{islands, [As, Bs -- As, (Ns -- As) -- Bs], How}, {D, join}], W2}
    end;
fault(chain, X, N, How, D, W0) ->
    {Ns, W} = shuffled(sderl_sim_world:all(W0), W0),
    Pairs = case X =< 60 of
        true -> lists:zip(lists:droplast(Ns), tl(Ns));
        false -> [{N, M} || M <- Ns, M =/= N]
    end,
    {[{shape, Pairs, How}, {D, join}], W};
fault(clock, X, N, How, D, W0) ->
    {Ms, W1} = rnd(-?CLOCK_MS, ?CLOCK_MS, W0),
    {G, W} = group(W1),
    After = case X =< 60 of
        true -> [{100, {crash, N, How}}, {100 + D, {restart, N}}];
        false -> [{100, {in, G, {kill, N}}}]
    end,
    {[{clock, N, Ms} | After], W};
fault(version, X, N, How, D, W) ->
    V = case X =< 50 of true -> 2; false -> 3 end,
    New = fun(To) -> many([{version, N, To}, {restart, N}]) end,
    {[{crash, N, How}, {1000, New(V)}, {1000 + 2 * D, {crash, N, How}}, {2000 + 2 * D, New(1)}], W};
fault(member, X, _, _, D, W0) ->
    {G, W1} = group(W0),
    {[N, M | _], W} = shuffled(sderl_sim_world:nodes_of(G, W1), W1),
    In = fun(C) -> {in, G, C} end,
    {if
        X =< 45 -> [In({add, N, M})];
        X =< 70 -> [In({remove, N, M})];
        X =< 85 -> [In({remove, N, N})];
        true -> [In({remove, N, M}), {D, In({add, N, M})}]
    end, W};
fault(death, X, _, _, D, W0) ->
    {G, W} = group(W0),
    {[{in, G, {die_own, X * 7 + D}}], W};

fault(loss, X, N, How, _, W) when X =< 60 -> {[{lose, N, How}], W};
fault(loss, _, _, How, _, W0) ->
    {G, W} = group(W0),
    {[{in, G, {on_coord, lose, How}}], W};
fault(silence, X, N, _, D, W) when X =< 35 ->
    %% A sender that stalls: it receives everything, and nobody receives from it.
    Ns = lists:delete(N, sderl_sim_world:all(W)),
    {[{silence, N, Ns}, {3 * D, {speak, N, Ns}}], W};
fault(silence, X, N, _, D, W0) when X =< 60 ->
    %% The links between two sides stay, and nothing arrives over them.
    {As, W} = some(W0),
    Bs = sderl_sim_world:all(W) -- As,
    _ = N,
    {[many([{silence, A, Bs} || A <- As] ++ [{silence, B, As} || B <- Bs, X =< 50]),
      {3 * D, many([{speak, A, Bs} || A <- As] ++ [{speak, B, As} || B <- Bs])}], W};
fault(silence, X, N, _, D, W0) ->
    {M, W} = other(N, W0),
    {[many([{silence, N, [M]} | [{silence, M, [N]} || X =< 80]]),
      {3 * D, many([{speak, N, [M]}, {speak, M, [N]}])}], W};
fault(half, X, N, _, _, W0) ->
    {G, W} = group(W0),
    {[{in, G, case X =< 60 of true -> {kill_half, N}; false -> {on_coord, kill_half} end}], W};
fault(relay, X, N, _, D, W) ->
    Relay = if X =< 40 -> {10, 200}; X =< 80 -> {100, 1500}; true -> {2000, 6000} end,
    {[{relay, N, Relay}, {2 * D, {relay, N, {0, 0}}}], W};
fault(regroup, X, N, _, D, W0) ->
    {M, W1} = other(N, W0),
    {G, W} = pick(
        [G || G <- sderl_sim_world:groups(W1), (sderl_sim_world:book(G, W1))#b.made =:= true], W1
    ),
    Make = {in, G, {make, M}},
    {[{in, G, {delete, N}}, {D, Make} | [{2 * D, Make} || X =< 50]], W};
fault(meet, _, N, _, D, W0) ->
    {M, W} = other(N, W0),
    Meet = {in, island, {meet, N, M}},
    %% Repeated for a while.
    {[Meet, {D, Meet}, {2 * D, Meet}], W};
fault(mutate, X, N, _, D, W) -> {[{mutate, N, X}, {2 * D, {mutate, N, 0}}], W};
fault(prune, X, N, _, _, W0) ->
    {G, W} = group(W0),
    {[{clock, N, (1 + X rem 8) * ?DAY_MS}, {100, {in, G, {kill, N}}}], W}.

many(Cs) -> {all, Cs}.

%% ---------------------------------------------------------------- choices

group(W) ->
    case sderl_sim_world:groups(W) of
        [G] -> {G, W};
        Gs -> pick(Gs, W)
    end.

other(N, W) -> pick(lists:delete(N, sderl_sim_world:all(W)), W).

%% Some nodes, not none and not all.
some(W0) ->
    Ns = sderl_sim_world:all(W0),
    {Some, W} = lists:foldl(fun(N, {S, Wa}) -> {In, Wb} = chance(50, Wa), {[N || In] ++ S, Wb} end,
                            {[], W0}, Ns),
    case Some =:= [] orelse length(Some) =:= length(Ns) of
        true -> {[hd(Ns)], W};
        false -> {lists:sort(Some), W}
    end.

shuffled(Ns, W0) ->
    {Tagged, W} = lists:mapfoldl(fun(N, Wa) -> {I, Wb} = rnd(1, 1_000_000, Wa), {{I, N}, Wb} end,
                                 W0, Ns),
    {[N || {_, N} <- lists:sort(Tagged)], W}.
