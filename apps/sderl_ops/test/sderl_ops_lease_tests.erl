%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_lease_tests).
-moduledoc """
Members with clocks of their own, copies of the store that are behind, writes that take any time or
are lost, and members that end or begin again: never do two act at one moment.
""".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MEMBERS, [a, b, c]).

one_acts_test_() ->
    {timeout, 120, fun() ->
        ?assert(proper:quickcheck(prop_one_acts(), [{numtests, 400}, {to_file, user}]))
    end}.

takes_over_test() ->
    Lease = #{member => a, epoch => 5, beat => 3},
    B0 = sderl_ops_lease:see(Lease, 1000, sderl_ops_lease:new(b)),
    ?assertEqual(nothing, sderl_ops_lease:next(1000 + sderl_ops_lease:take_over_ms() - 1, 1, B0)),
    Now = 1000 + sderl_ops_lease:take_over_ms(),
    Write = #{from := Lease, to := #{member := b, epoch := 6}} = sderl_ops_lease:next(Now, 1, B0),
    ?assertEqual(false, sderl_ops_lease:acts(Now, B0)),
    B1 = sderl_ops_lease:granted(Write, Now, B0),
    ?assertEqual({true, 6}, sderl_ops_lease:acts(Now + 1, B1)),
    ?assertEqual(false, sderl_ops_lease:acts(Now + sderl_ops_lease:hold_ms(), B1)),
    %% An outdated copy does not end the lease; a later claim does.
    ?assertEqual(B1, sderl_ops_lease:see(Lease, Now + 2, B1)),
    B2 = sderl_ops_lease:see(#{member => c, epoch => 7, beat => 0}, Now + 3, B1),
    ?assertEqual(false, sderl_ops_lease:acts(Now + 3, B2)),
    ?assertEqual(c, sderl_ops_lease:holder(B2)).

again_at_once_test() ->
    %% One that begins again need not wait for itself, and has another epoch.
    S = sderl_ops_lease:see(#{member => a, epoch => 5, beat => 3}, 0, sderl_ops_lease:new(a)),
    ?assertMatch(#{to := #{member := a, epoch := 6}}, sderl_ops_lease:next(0, 1, S)),
    ?assertMatch(#{to := #{epoch := 99}}, sderl_ops_lease:next(0, 99, S)).

%% A lease that was given back can be claimed at once; only a member that acts can give it back.
given_back_test() ->
    Write = #{from => none, to => #{member => a, epoch => 5, beat => 0}},
    A0 = sderl_ops_lease:see(none, 0, sderl_ops_lease:new(a)),
    ?assertEqual(nothing, sderl_ops_lease:give_back(A0)),
    A1 = sderl_ops_lease:granted(Write, 0, A0),
    #{from := #{beat := 0}, to := Free} = sderl_ops_lease:give_back(A1),
    B0 = sderl_ops_lease:see(#{member => a, epoch => 5, beat => 0}, 0, sderl_ops_lease:new(b)),
    ?assertEqual(nothing, sderl_ops_lease:next(1, 1, B0)),
    B1 = sderl_ops_lease:see(Free, 2, B0),
    ?assertEqual(none, sderl_ops_lease:holder(B1)),
    ?assertMatch(#{from := Free, to := #{member := b, epoch := 6}},
                 sderl_ops_lease:next(2, 1, B1)),
    C = sderl_ops_lease:see(#{member => b, epoch => 6, beat => 0}, 3, A1),
    ?assertEqual(nothing, sderl_ops_lease:give_back(C)).

%% What the member began before is not taken for what it does then.
claimed_anew_test() ->
    Now = 1000 + sderl_ops_lease:take_over_ms(),
    Write = #{from => none, to => #{member => a, epoch => 5, beat => 0}},
    S0 = sderl_ops_lease:granted(Write, Now,
                                 sderl_ops_lease:see(none, 0, sderl_ops_lease:new(a))),
    ?assertMatch(#{to := #{epoch := 5, beat := 1}},
                 sderl_ops_lease:next(Now + sderl_ops_lease:hold_ms() - 1, 1, S0)),
    Later = Now + sderl_ops_lease:hold_ms(),
    Anew = #{to := #{epoch := 6}} = sderl_ops_lease:next(Later, 1, S0),
    ?assertEqual({true, 6}, sderl_ops_lease:acts(Later,
                                                 sderl_ops_lease:granted(Anew, Later, S0))).

%% Without faults one member acts all the time.
left_alone_test() ->
    World0 = lists:foldl(fun(M, W) -> do({start, M}, W) end, world(#{a => 0, b => 70, c => -9}),
                         ?MEMBERS),
    Commands = lists:append(lists:duplicate(300, [{pass, 100}, {look, a}, {write, a, 0}, {look, b},
                                                  {write, b, 0}, {look, c}, {write, c, 0},
                                                  {land, a}, {land, b}, {land, c}])),
    World = lists:foldl(fun do/2, World0, Commands),
    ?assertEqual([a], acting(World)),
    ?assertMatch(#{lease := #{epoch := 1}}, World).

%% ---------------------------------------------------------------- the world

prop_one_acts() ->
    ?FORALL({Clocks, Commands},
            {{range(-100_000, 100_000), range(-100_000, 100_000), range(-100_000, 100_000)},
             non_empty(resize(120, list(command())))},
            run(Commands, Clocks)).

command() ->
    frequency([
        {6, {pass, frequency([{3, range(1, 500)}, {2, range(500, 4000)},
                              {1, range(4000, 22_000)}])}},
        {6, {look, member()}},
        {1, {look_late, member()}},
        {6, {write, member(), range(0, 5)}},
        {6, {land, member()}},
        {1, {lose, member()}},
        {1, {lose_answer, member()}},
        {1, {give_back, member()}},
        {1, {start, member()}}
    ]).

member() -> oneof(?MEMBERS).

run(Commands, {A, B, C}) ->
    check(Commands, world(#{a => A, b => B, c => C})).

check([], _) ->
    true;
check([Command | Commands], World0) ->
    World = do(Command, World0),
    length(acting(World)) =< 1 andalso check(Commands, World).

world(Clocks) ->
    #{now => 0, clocks => Clocks, lease => none, before => none, flying => #{},
      members => #{M => sderl_ops_lease:new(M) || M <- ?MEMBERS}}.

acting(#{members := Members} = World) ->
    [M || M := State <- Members, sderl_ops_lease:acts(clock(M, World), State) =/= false].

clock(M, #{now := Now, clocks := Clocks}) -> Now + map_get(M, Clocks).

do({pass, Ms}, #{now := Now} = World) ->
    World#{now := Now + Ms};
%% A restarted member has lost its lease.
do({start, M}, World) ->
    put_state(M, sderl_ops_lease:new(M), forget(M, World));
do({look, M}, #{lease := Lease} = World) ->
    put_state(M, sderl_ops_lease:see(Lease, clock(M, World), state(M, World)), World);
do({look_late, M}, #{before := Lease} = World) ->
    put_state(M, sderl_ops_lease:see(Lease, clock(M, World), state(M, World)), World);
do({write, M, Epoch}, #{flying := Flying} = World) when not is_map_key(M, Flying) ->
    Now = clock(M, World),
    case sderl_ops_lease:next(Now, Epoch + 1, state(M, World)) of
        nothing -> World;
        Write -> World#{flying := Flying#{M => {Write, Now}}}
    end;
do({land, M}, World) ->
    land(M, fun sderl_ops_lease:granted/3, World);
%% When it acts no more; nobody of that name looks for an answer.
do({give_back, M}, #{flying := Flying} = World) when not is_map_key(M, Flying) ->
    Ended = put_state(M, sderl_ops_lease:new(M), World),
    case sderl_ops_lease:give_back(state(M, World)) of
        nothing -> Ended;
        Write -> Ended#{flying := Flying#{M => {Write, given_back}}}
    end;
do({lose_answer, M}, World) ->
    land(M, fun(_, Began, State) -> sderl_ops_lease:failed(Began, State) end, World);
do({lose, M}, #{flying := Flying} = World) when is_map_key(M, Flying) ->
    case map_get(M, Flying) of
        {_, given_back} ->
            forget(M, World);
        _ ->
            put_state(M, sderl_ops_lease:failed(clock(M, World), state(M, World)),
                      forget(M, World))
    end;
do(_, World) ->
    World.

land(M, Then, #{flying := Flying, lease := Lease} = World) ->
    case Flying of
        #{M := {#{from := Lease, to := To}, given_back}} ->
            (forget(M, World))#{lease := To, before := Lease};
        #{M := {_, given_back}} ->
            forget(M, World);
        #{M := {#{from := Lease, to := To} = Write, Began}} ->
            put_state(M, Then(Write, Began, state(M, World)),
                      (forget(M, World))#{lease := To, before := Lease});
        #{M := _} ->
            put_state(M, sderl_ops_lease:failed(clock(M, World), state(M, World)),
                      forget(M, World));
        #{} ->
            World
    end.

forget(M, #{flying := Flying} = World) -> World#{flying := maps:remove(M, Flying)}.
state(M, #{members := Members}) -> map_get(M, Members).
put_state(M, State, #{members := Members} = World) -> World#{members := Members#{M := State}}.
