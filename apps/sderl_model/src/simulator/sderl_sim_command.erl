%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_command).
-moduledoc """
The commands of a script: changes of the simulated world.

| command | what happens |
|---|---|
| `{start, N}`, `{restart, N}` | a node that is down starts |
| `{crash, N, How}` | it dies; the others notice `fast`, or by silence only (`slow`) |
| `{lose, N, How}` | it dies and never comes back, unless it is one of the last two |
| `{kill, N}`, `{kill_in_step, N}` | its process of the group dies, now or in its next step |
| `{kill_half, N}` | it dies between two writes of rows, when it next writes some |
| `{pause, N}`, `{resume, N}`, `resume_all` | it stops and continues |
| `{pace, N, {Min, Max}}` | its processes take so many ms to handle their messages |
| `{relay, N, {Min, Max}}` | its node process takes so many ms to forward greetings |
| `{mutate, N, Percent}` | this percentage of its messages comes a second time, changed: these must end no process |
| `{clock, N, Ms}` | its system clock is off by so much |
| `{version, N, V}` | it sends this version of the messages: 1 is the usual one, 2 has additions, 3 is not understood |
| `{cut, A, B, How}`, `{uncut, A, B}` | a pair has no link, and may have one again |
| `{split, As, Bs, How}`, `join` | no pair across has a link; all pairs may have one |
| `{islands, [[N]], How}` | the same for any number of sides |
| `{shape, [{A, B}], How}` | only these pairs have a link: a chain, a star |
| `{drop, A, B}` | a link breaks and may come back at once |
| `{delay, A, B, {Min, Max}}`, `{no_delay, A, B}` | the delay of what `A` sends to `B`, in ms |
| `{silence, A, Bs}`, `{speak, A, Bs}` | what `A` sends to these is held back, and released; the links stay |
| `{op, N, Op}`, `{op, N, Id, Op}` | a client's operation, see `sderl_core:op()` |
| `{add, N, M}`, `{remove, N, M}`, `{delete, N}` | `N` asks for a change of the members, or the end of the group |
| `{create, N}` | `N`, not a member of the group, creates one of that name (the caller counts its members) |
| `{make, N}` | `N` creates the group, unless it is in one of that name, and adds all others |
| `{recover, N, Survivors}` | an operator tells `N` that a group in majority mode continues with these members only |
| `{meet, N, M}` | `N` tells `M` of its island, so that the two become one |
| `{die, Pid}`, `{die_name, N, Name}`, `{die_own, K}` | a registered process dies |
| `{on_coord, C}`, `{on_coord, C, X}` | `{C, N}`, `{C, N, X}` for the coordinator, if there is one |
| `{all, [Command]}` | one after another, at once |
| `{in, Group, Command}` | a command in a group other than the first |
| `{fault, Kind, Command}` | a command that counts as a fault of this kind if it changes anything |
| `{'fun', F}`, `{check, F}` | `F(World)` gives the world, or `true` or what is wrong |
| `start_all`, `heal` | every node that is down starts; all faults end |
""".
-include("sderl_sim.hrl").

-export([run/2]).

-import(sderl_sim_world, [node/2, member/3, rows/3, violation/3]).

%% From the creation of a group until its other members are added.
-define(ADD_MS, 300).

-doc "Runs a command now.".
-spec run(term(), #w{}) -> #w{}.
run({start, N}, W) -> sderl_sim_node:start(N, W);
run({restart, N}, W) -> sderl_sim_node:start(N, W);
run({crash, N, How}, W) -> sderl_sim_node:crash(N, How, W);
run({lose, N, How}, W) -> sderl_sim_node:lose(N, How, W);
run({kill, N}, #w{group = G} = W) -> sderl_sim_member:kill(N, G, sderl_sim_world:touch(N, W));
run({kill_in_step, N}, W) -> dies_in_step(N, true, W);
run({kill_half, N}, W) -> dies_in_step(N, half, W);
run({pause, N}, W) -> sderl_sim_node:pause(N, W);
run({resume, N}, W) -> sderl_sim_node:resume(N, W);
run(resume_all, W) -> lists:foldl(fun sderl_sim_node:resume/2, W, sderl_sim_world:all(W));
run({pace, N, Pace}, W) -> sderl_sim_node:pace(N, Pace, W);
run({relay, N, Relay}, W) -> sderl_sim_node:relay(N, Relay, W);
run({mutate, N, Percent}, W) -> sderl_sim_node:hostile(N, Percent, W);
run({clock, N, Ms}, W) -> sderl_sim_node:clock(N, Ms, W);
run({version, N, V}, W) -> sderl_sim_node:version(N, V, W);
run({cut, A, B, How}, #w{cuts = Cuts} = W) ->
    sderl_sim_net:cut(A, B, How, W#w{cuts = Cuts#{sderl_sim_net:pair(A, B) => []}});
run({uncut, A, B}, #w{cuts = Cuts} = W) -> W#w{cuts = maps:remove(sderl_sim_net:pair(A, B), Cuts)};
run({split, As, Bs, How}, W) -> run({islands, [As, Bs], How}, W);
run({islands, Sides, How}, W) ->
    Side = #{N => I || {I, Ns} <- lists:enumerate(Sides), N <- Ns},
    all_cut([{A, B}
             || A := SA <- maps:iterator(Side, ordered), B := SB <- maps:iterator(Side, ordered),
                A < B, SA =/= SB], How, W);
run({shape, Pairs0, How}, W) ->
    Pairs = [sderl_sim_net:pair(A, B) || {A, B} <- Pairs0],
    Ns = sderl_sim_world:all(W),
    all_cut([{A, B} || A <- Ns, B <- Ns, A < B] -- Pairs, How, W);
run({drop, A, B}, W) -> sderl_sim_net:cut(A, B, fast, W);
run(join, W) -> W#w{cuts = #{}};
run({delay, A, B, Range}, #w{delays = Ds} = W) -> W#w{delays = Ds#{{A, B} => Range}};
run({no_delay, A, B}, #w{delays = Ds} = W) -> W#w{delays = maps:remove({A, B}, Ds)};
run({silence, A, Bs}, W) ->
    lists:foldl(fun(B, X) -> sderl_sim_net:silence(A, B, X) end, sderl_sim_world:touch(A, W), Bs);
run({speak, A, Bs}, W) ->
    lists:foldl(fun(B, X) -> sderl_sim_net:speak(A, B, X) end, sderl_sim_world:touch(A, W), Bs);
run({op, N, Op}, W) -> asked(N, Op, W);
run({op, N, Id, Op}, #w{group = G} = W) -> sderl_sim_client:submit(N, G, Id, script, Op, W);
run({die, Pid}, W) -> sderl_sim_death:dies(Pid, W);
run({die_name, N, Name}, #w{group = G} = W) ->
    case rows(N, G, W) of
        #{Name := ?ROW_OF(Pid)} -> run({die, Pid}, W);
        _ -> W
    end;
run({die_own, K}, #w{group = G} = W) ->
    #b{truth = Truth} = sderl_sim_world:book(G, W),
    case [P || _ := {present, P} <- maps:iterator(Truth, ordered), sderl_sim_world:alive(P, W)] of
        [] -> W;
        Ps -> run({die, lists:nth(K rem length(Ps) + 1, Ps)}, W)
    end;
run({add, N, M}, #w{group = G} = W) ->
    asked(N, #add{nodes = [M]}, sderl_sim_node:invite(N, M, G, W));
run({remove, N, M}, W) -> asked(N, #remove{nodes = [M], time = 1}, W);
run({delete, N}, #w{group = G} = W) ->
    B = sderl_sim_world:book(G, W),
    asked(N, delete, sderl_sim_world:keep_book(G, B#b{deleted = true}, W));
run({on_coord, C}, W) -> on_coord(fun(N) -> {C, N} end, W);
run({on_coord, C, X}, W) -> on_coord(fun(N) -> {C, N, X} end, W);
run({create, N}, #w{group = G} = W) -> sderl_sim_node:create(N, G, W);
run({make, N}, #w{group = G} = W0) ->
    case {node(N, W0), member(N, G, W0)} of
        {#n{up = true, paused = false}, #m{store = undefined}} ->
            W1 = sderl_sim_node:create(N, G, W0),
            #b{truth = Truth} = B = sderl_sim_world:book(G, W1),
            %% The known names were those of the former group.
            W2 = sderl_sim_world:keep_book(G, B#b{truth = #{Own => unknown || Own := _ <- Truth}},
                                           W1),
            Others = lists:delete(N, sderl_sim_world:nodes_of(G, W2)),
            sderl_sim_world:in(?ADD_MS, {cmd, {in, G, {all, [{add, N, M} || M <- Others]}}}, W2);
        _ -> W0
    end;
run({recover, N, Survivors}, #w{group = G} = W) ->
    sderl_sim_mail:mail(N, G, {recover, none, Survivors}, W);
run({meet, N, M}, #w{group = G} = W) ->
    case node(N, W) of
        #n{up = true, paused = false} -> sderl_sim_node:meet(N, M, G, W);
        _ -> W
    end;
run({in, G, C}, #w{group = Old} = W) -> (run(C, W#w{group = G}))#w{group = Old};
run({fault, Kind, C}, W) ->
    sderl_sim_world:tell({fault, Kind, C}, W),
    case run(C, W) of
        W -> W;
        W1 -> sderl_sim_world:count(Kind, W1)
    end;
run({all, Cs}, W) -> lists:foldl(fun run/2, W, Cs);
run({'fun', F}, W) -> F(W);
run({check, F}, W) ->
    case F(W) of
        true -> W;
        Else -> violation(check, [Else], W)
    end;
run(start_all, W) -> lists:foldl(fun sderl_sim_node:start/2, W, sderl_sim_world:all(W));
run(heal, W0) ->
    lists:foldl(fun(N, W) ->
        run({restart, N}, run({resume, N}, same_again(N, run({clock, N, 0}, W))))
    end, sderl_sim_net:speak_all(W0#w{cuts = #{}, delays = #{}}), sderl_sim_world:all(W0)).

%% A fault of the node itself is over; others do not notice.
same_again(N, W) ->
    #n{pace = Pace, relay = Relay, version = V} = node(N, W),
    Wa = case Pace of {0, 2} -> W; _ -> run({pace, N, {0, 2}}, W) end,
    Wb = run({mutate, N, 0}, Wa),
    W1 = case Relay of {_, 0} -> Wb; _ -> run({relay, N, {0, 0}}, Wb) end,
    case V of
        1 -> W1;
        _ -> run({version, N, 1}, W1)
    end.

dies_in_step(N, How, #w{group = G} = W) ->
    case member(N, G, W) of
        #m{p = #p{}} = M ->
            sderl_sim_world:keep(N, G, M#m{crash = How}, sderl_sim_world:touch(N, W));
        _ -> W
    end.

all_cut(Pairs, How, W) -> lists:foldl(fun({A, B}, X) -> run({cut, A, B, How}, X) end, W, Pairs).

asked(N, Op, #w{group = G} = W) ->
    case member(N, G, W) of
        #m{p = #p{}} -> sderl_sim_client:submit(N, G, script, Op, W);
        _ -> W
    end.

on_coord(Command, #w{group = G} = W) ->
    case sderl_sim_world:coordinators(G, W) of
        [N | _] -> run(Command(N), W);
        [] -> W
    end.
