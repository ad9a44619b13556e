%% SPDX-License-Identifier: Apache-2.0
-module(sderl_store_tests).
-include_lib("eunit/include/eunit.hrl").

%% A node was removed, its names got another home, and it was added again, and never came back: it
%% is a member, and does not speak for these names. Whoever coordinates then watches their
%% processes.
names_with_another_home_are_watched_test() -> in_tables(fun watched/0).

watched() ->
    Other = 'other@host',
    Foreign = process(Other),
    Rows = [{mine, self(), node(), {{1, node()}, 1}, []},
            {theirs, process(Other), Other, {{1, node()}, 2}, []},
            {left, Foreign, node(), {{1, node()}, 3}, []}],
    {[], Store} = built(undefined, sderl_store:new(g, [node(), Other])),
    Shard = {shard, node(), true, Rows, more},
    {_, _, Told, _} = sderl_store:apply(Store, #{}, {{1, node()}, 1}, [Shard], none, false),
    ?assertEqual([{left, Foreign}], Told),
    ?assertEqual([{left, Foreign}], sderl_store:foreign(Store)).

%% The external format of a process of that node.
process(Node) ->
    binary_to_term(<<131, 88, (binary:part(term_to_binary(Node), 1,
                                           byte_size(term_to_binary(Node)) - 1)) / binary,
                     (erlang:unique_integer([positive])):32, 0:32, 1:32>>).

%% A coordinator's process was killed: its successor has the index that it had, also where it died
%% between a row and the index.
index_of_a_predecessor_test() ->
    in_tables(fun() ->
        Heir = self(),
        {First, Ended} = spawn_monitor(fun() ->
            {[], Store} = built(Heir, sderl_store:new(g, [node()])),
            written(Store, 1, [{one, Heir}], [{Heir, [one]}])
        end),
        receive {'DOWN', Ended, process, First, Why} -> ?assertEqual(normal, Why) end,
        Table = receive {'ETS-TRANSFER', T, First, index} -> T end,
        {Table, Store} = sderl_store:take_index(sderl_store:new(g, [node()])),
        ?assertEqual({ok, one}, sderl_store:name_of(Store, Heir)),
        [Two, Three] = [process(node()), process(node())],
        written(Store, 2, [{two, Two}], none),
        ?assertEqual({ok, two}, sderl_store:name_of(Store, Two)),
        ?assertEqual(none, sderl_store:name_of(Store, Three)),
        %% (A pid too many in the index.)
        ets:delete(sderl_names, {g, two}),
        ?assertEqual(none, sderl_store:name_of(Store, Two)),
        {[], Store} = built(Heir, Store),
        true = sderl_saved:purge(g),
        ?assertEqual(undefined, ets:info(Table)),
        ?assertMatch({none, _}, sderl_store:take_index(sderl_store:new(g, [node()])))
    end).

written(Store, Number, Named, Index) ->
    Rows = [{Name, Pid, node(Pid), {{1, node()}, Number}, []} || {Name, Pid} <- Named],
    sderl_store:apply(Store, #{}, {{1, node()}, Number}, [{shard, node(), false, Rows, more}],
                      Index, false).

%% A batch takes away what a member had in its former life, and gives it a name of its process that
%% had another home. Applied again after the process died, anywhere in it, it does the same.
redone_test() ->
    in_tables(fun() ->
        Other = 'other@host',
        Mine = process(node()),
        Rows = [{theirs, Mine, Other, {{1, node()}, 1}, []},
                {former, process(Other), node(), {{1, node()}, 2}, []}],
        {[], Store} = built(undefined, sderl_store:new(g, [node(), Other])),
        Shard = {shard, Other, false, Rows, more},
        {Had, #{}, _, []} = sderl_store:apply(Store, #{}, {{1, node()}, 1}, [Shard], none, false),
        View = [{view, #{node() => live, Other => live}, [node()], [node()], []}],
        {_, Local, [], []} = sderl_store:apply(Had, #{}, {{1, node()}, 2}, View, none, false),
        ?assertEqual(#{Mine => theirs}, Local),
        Home = fun() -> sderl_row:home(sderl_store:lookup(Store, theirs)) end,
        Redo = fun() ->
            _ = sderl_store:redo(sderl_store:new(g, [node(), Other]), #{}, {1, node()}, 2, View),
            ?assertEqual(none, sderl_store:lookup(Store, former)),
            ?assertEqual(node(), Home())
        end,
        Redo(),
        %% Before the name came home, and before it was known that it would.
        ets:insert(sderl_names, {{g, theirs}, Mine, Other, {1, node()}, 1, []}),
        Redo(),
        ets:insert(sderl_names, {{g, theirs}, Mine, Other, {1, node()}, 1, []}),
        ets:delete(sderl_state, {came_home, g}),
        Redo(),
        Redo()
    end).

%% What a new process does with the rows that it finds, piece by piece.
sweep_test() ->
    in_tables(fun() ->
        Store = sderl_store:new(g, [node()]),
        Me = self(),
        Foreign = process('other@host'),
        Many = [{{many, N}, process('third@host'), 'third@host'} || N <- lists:seq(1, 5000)],
        ets:insert(sderl_names,
                   [{{g, Name}, Pid, Home, {1, node()}, 1, []}
                    || {Name, Pid, Home} <- [{mine, Me, node()}, {foreign, Foreign, node()},
                                             {unsound, 42, node()} | Many]]),
        {Local, [], Pieces} = swept(Store),
        ?assert(Pieces > 2),
        ?assertEqual(#{Me => mine}, Local),
        ?assertEqual(5002, sderl_names:count(g)),
        {[{foreign, Foreign}], Coordinator} = built(undefined, Store),
        {_, Watched, _} = swept(Coordinator),
        ?assertEqual([{foreign, Foreign}], Watched),
        ?assertNot(ets:info(sderl_names, safe_fixed))
    end).

built(Heir, Store) -> built(Heir, start, Store).

built(Heir, At, Store) ->
    case sderl_store:build_index(Heir, At, Store) of
        {done, Foreign, Built} -> {Foreign, Built};
        {more, Next} -> built(Heir, Next, Store)
    end.

swept(Store) -> swept(Store, #{}, start, [], 1).

swept(Store, Local0, At, Foreign0, Pieces) ->
    {Local, Foreign, _, Next} = sderl_store:sweep(Store, Local0, At),
    case Next of
        done -> {Local, Foreign ++ Foreign0, Pieces};
        _ -> swept(Store, Local, Next, Foreign ++ Foreign0, Pieces + 1)
    end.

%% The tables are those of a process of their own.
in_tables(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> {ok, _} = sderl_sup:init([]), Fun() end),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end.
