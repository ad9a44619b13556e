%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_strict_tests).
-moduledoc """
The checks of `sderl_sim_strict` see when a promise is broken, in worlds made by hand.
""".
-include_lib("eunit/include/eunit.hrl").
-include("../src/simulator/sderl_sim.hrl").

-define(LOW, {{7, 'n1@sim'}, 9}).
-define(HIGH, {{8, 'n2@sim'}, 1}).

tokens_grow_test() ->
    {P, Q, W} = world([tokens_grow]),
    High = written(x, P, ?HIGH, W),
    ?assertThrow({violation, {tokens_grow, _, x, {same, P}, ?HIGH, ?LOW}, _},
                 written(x, P, ?LOW, High)),
    %% A registration of another process that came with a merge may be older than one that ended
    %% here.
    ?assertMatch(#w{}, written(x, Q, ?LOW, High)),
    ?assertMatch(#w{}, written(x, Q, ?HIGH, written(x, P, ?LOW, W))),
    ?assertMatch(#w{}, written(y, Q, ?LOW, High)).

no_means_no_test() ->
    {P, Q, W1} = world([no_means_no]),
    W0 = W1#w{ops = #{op => #{node => 'n2@sim'}}},
    ?assertEqual(ok, sderl_sim_strict:refused(g, op, P, W0)),
    ?assertThrow({violation, {no_means_no, op, in_the_table_of, _, x}, _},
                 sderl_sim_strict:refused(g, op, P, written(x, P, ?LOW, W0))),
    %% The operation was refused at 50. A write that was ordered before may still come.
    B = sderl_sim_world:book(g, W0),
    Refused = #{P => {op, somewhere, 50}},
    At = fun(T) ->
        sderl_sim_world:keep_book(g, B#b{refused = Refused, used = #{P => 1},
                                         log = #{{{7, 'n1@sim'}, 3} => {T, []}}}, W0)
    end,
    Version = {{7, 'n1@sim'}, sderl_core:seq(3, 1)},
    ?assertMatch(#w{}, written(x, P, Version, At(40))),
    ?assertMatch(#w{}, written(x, Q, Version, At(60))),
    ?assertThrow({violation, {no_means_no, op, _, _}, _}, written(x, P, Version, At(60))).

losers_hear_test() ->
    {P, Q, W0} = world([losers_hear]),
    Settle = {settle, x, [P], {x, Q, 'n1@sim', ?HIGH, []}, []},
    W = sderl_sim_strict:recorded(g, {7, 1}, [Settle], W0),
    ?assertThrow({violation, {losers_hear, P, x, {7, 1}}, _},
                 sderl_sim_strict:settled(g, ['n1@sim'], W)),
    ?assertEqual(ok, sderl_sim_strict:settled(g, ['n1@sim'], sderl_sim_strict:told(g, P, W))),
    ?assertEqual(ok, sderl_sim_strict:settled(g, ['n1@sim'], sderl_sim_death:dies(P, W))),
    %% A loser that has a name all the same need not be told.
    ?assertEqual(ok, sderl_sim_strict:settled(g, ['n1@sim'], written(x, P, ?HIGH, W))).

%% A process gave a name up if its own node removes it. A removal by another node, which cannot see
%% the process, does not count as that.
given_up_test() ->
    {P, _, W0} = world([losers_hear]),
    W = written(x, P, ?HIGH,
                sderl_sim_strict:recorded(g, {7, 1}, [{settle, x, [P], none, []}], W0)),
    #m{store = Store} = sderl_sim_world:member('n1@sim', g, W),
    After = fun(Asks) ->
        Removal = #seg{member = Asks, session = 1, number = 1, operations = [?UNREGISTER_OF(x, P)],
                       answers = default},
        Applied = sderl_sim_strict:applying('n1@sim', g, [Removal], Store, W),
        #m{} = M = sderl_sim_world:member('n1@sim', g, W0),
        sderl_sim_strict:settled(g, ['n1@sim'], sderl_sim_world:keep('n1@sim', g, M, Applied))
    end,
    ?assertEqual(ok, After('n1@sim')),
    ?assertThrow({violation, {losers_hear, P, x, {7, 1}}, _}, After('n2@sim')).

%% For a process outside the group the member that is the home of its name decides.
given_up_from_outside_test() ->
    {P, _, W0} = world([losers_hear]),
    W = sderl_sim_strict:recorded(g, {7, 1}, [{settle, x, [P], none, []}], W0),
    #m{store = Store} = sderl_sim_world:member('n1@sim', g, W),
    AtHome = sderl_sim_store:put_rows(Store, [{x, P, 'n2@sim', ?HIGH, []}]),
    Removal = #seg{member = 'n2@sim', session = 1, number = 1, operations = [?UNREGISTER(x)],
                   answers = default},
    Settled = fun(Node) ->
        Applied = sderl_sim_strict:applying(Node, g, [Removal], AtHome, W),
        sderl_sim_strict:settled(g, ['n1@sim'], Applied)
    end,
    ?assertEqual(ok, Settled('n2@sim')),
    ?assertThrow({violation, {losers_hear, P, x, {7, 1}}, _}, Settled('n3@sim')).

%% Two epochs have answered since all members were one component; the older one answers last.
one_answers_test() ->
    {_, _, W0} = world([one_answers]),
    B = sderl_sim_world:book(g, W0),
    Log = #{{{7, 'n1@sim'}, 1} => {120, []},
            {{7, 'n1@sim'}, 2} => {140, []},
            {{8, 'n2@sim'}, 1} => {130, []},
            {{7, 'n1@sim'}, 3} => {145, []},
            {{7, 'n1@sim'}, 4} => {16_000, []}},
    W = sderl_sim_world:keep_book(g, B#b{whole = 100, log = Log}, W0#w{now = 150, broke = 90}),
    Answered = fun(Pos, At, X) -> sderl_sim_strict:answered('n1@sim', g, [Pos], at(At, X)) end,
    Older = {{7, 'n1@sim'}, 1},
    Younger = {{8, 'n2@sim'}, 1},
    Late = {{7, 'n1@sim'}, 2},
    Both = Answered(Younger, Younger, Answered(Older, Older, W)),
    ?assertThrow({violation, {one_answers, {older, {7, _}, 140}, {younger, {8, _}, 130}, _}, _},
                 Answered(Late, Late, Both)),
    ?assertMatch(#w{}, Answered(Late, Late, sderl_sim_world:broke(Both))),
    %% A coordinator may go on alone after the bound if it was unheard over its links until just
    %% before, and no other one may.
    Last = {{7, 'n1@sim'}, 4},
    Unheard = fun(At) ->
        BookOfBoth = sderl_sim_world:book(g, Both),
        sderl_sim_world:keep_book(g, BookOfBoth#b{unheard = #{{7, 'n1@sim'} => At}}, Both)
    end,
    ?assertMatch(#w{}, Answered(Last, Last, Unheard(15_500))),
    ?assertThrow({violation, {one_answers, {older, {7, _}, 16_000}, {younger, {8, _}, 130}, _}, _},
                 Answered(Last, Last, Unheard(10_000))),
    %% Where clients are answered at once, one batch may be answered that the members of the younger
    %% epoch lack.
    Once = Answered(Late, Late, Both#w{opts = (Both#w.opts)#{answer => applied}}),
    ?assertMatch(#w{}, Once),
    Later = {{7, 'n1@sim'}, 3},
    ?assertThrow({violation, {one_answers, {older, {7, _}, 145}, {younger, {8, _}, 130}, _}, _},
                 Answered(Later, Later, Once)).

at({Epoch, Num}, W) ->
    #m{p = P} = M = sderl_sim_world:member('n1@sim', g, W),
    Seen = #{lineage => Epoch, num => Num, history => []},
    sderl_sim_world:keep('n1@sim', g, M#m{p = P#p{seen = Seen}}, W).

%% A running group of one node, and two processes of that node.
world(Strict) ->
    W0 = sderl_sim_run:build([{g, ['n1@sim'], []}], sderl_sim_world:new(1, #{strict => Strict})),
    W1 = sderl_sim_node:start('n1@sim', W0),
    {P, W2} = sderl_sim_world:pid('n1@sim', W1),
    {Q, W} = sderl_sim_world:pid('n1@sim', W2),
    {P, Q, W}.

written(Name, Pid, Version, W0) ->
    #m{store = Store} = M = sderl_sim_world:member('n1@sim', g, W0),
    W = sderl_sim_world:keep('n1@sim', g, M#m{
        store = sderl_sim_store:put_rows(Store, [{Name, Pid, 'n1@sim', Version, []}])
    }, W0),
    sderl_sim_strict:wrote('n1@sim', g, [Name], W).
