%% SPDX-License-Identifier: Apache-2.0
-module(sderl_router_tests).
-moduledoc """
What a router does with messages that come when it does not wait for them. (At work:
`sderl_route_SUITE`.)
""".
-include_lib("eunit/include/eunit.hrl").

%% Routes are to be computed again as soon as the present computation ends, and nothing is held. A
%% timer from before the node got its name, or anybody else, says that what is held is to be told.
nothing_is_held_test() ->
    ?assertMatch({noreply, _}, after_messages([show, show], say)).

%% Several changes at once are well typed or none of them counts, and the router goes on.
ill_typed_changes_test_() ->
    Good = {'g@t', {1, 1, 1}, {1, 1, 2}, [{x, <<"x">>, ['n@t']}], []},
    Bad = [setelement(4, Good, [x | y]), setelement(5, Good, ['m@t' | x]),
           setelement(3, Good, {1, x, 2})],
    [{lists:flatten(io_lib:format("~0p", [Changes])),
      ?_assertMatch({noreply, _}, after_messages([], {sderl_route, 1, 'n@t', {changes, Changes}}))}
     || Changes <- [[], [Good], [Good | Good], [Good | x], [Good, x], x, #{} | [[B] || B <- Bad]]].

%% A group's process may end before it says what changed. What the directory says of each group is
%% true a look later, however many there are, and no message makes a router look at all of them.
looks_at_all_test() ->
    Groups = [{g, I} || I <- lists:seq(1, 1000)],
    alone(fun() ->
        lists:foreach(fun(G) -> own(G, ['n@t', node()]) end, Groups),
        {ok, R0} = sderl_router:init([]),
        ?assertEqual([{G, ['n@t', node()]} || G <- Groups], advertised(R0)),
        lists:foreach(fun(I) -> own({g, I}, ['m@t', 'n@t', node()]) end, [1, 500, 1000]),
        lists:foreach(fun(I) -> true = ets:delete(sderl_groups, {g, I}) end, [2, 999]),
        {noreply, R1} = sderl_router:handle_info(compare, R0),
        {Turns, R} = in_turns(0, R1),
        ?assertEqual(9, Turns),
        ?assertEqual([{G, case lists:member(I, [1, 500, 1000]) of
            true -> ['m@t', 'n@t', node()];
            false -> ['n@t', node()]
        end} || {g, I} = G <- Groups -- [{g, 2}, {g, 999}]], advertised(R))
    end).

%% The room that a computation takes is the next one's, however the parts come to it.
room_stays_test_() ->
    {timeout, 120, fun() ->
        Links = ['a@t', 'b@t', 'c@t'],
        Ads = [{N, {1, 1, 1}, [{{g, N, I}, <<"u">>, [N, 'x@t', 'y@t']} || I <- lists:seq(1, 3)],
                Links -- [N]} || N <- Links],
        State = sderl_route_state:new('n@t', 1, [], Ads),
        Rooms = alone(fun() -> rooms(2000, 233, State) end),
        {First, Later} = lists:split(100, Rooms),
        ?assert(lists:max(Later) =< lists:max(First), {lists:max(First), lists:max(Later)})
    end}.

rooms(0, _, _) -> [];
rooms(Count, Room, State) ->
    Pid = sderl_route_compute:start(State, Room),
    receive {shown, Pid, Took} -> [Took | rooms(Count - 1, Took, State)] end.

own(Group, Members) ->
    true = ets:insert(sderl_groups, {Group, <<"uid">>, self(), Members, node()}),
    true = ets:insert(sderl_routes, {{ready, Group}, <<"uid">>}).

in_turns(Turns, R) ->
    receive
        look ->
            {noreply, Next} = sderl_router:handle_info(look, R),
            in_turns(Turns + 1, Next)
    after 0 -> {Turns, R}
    end.

advertised(R) ->
    {reply, #{gateways := [{_, _, Groups, _}]}, _} =
        sderl_router:handle_call(info, {self(), make_ref()}, R),
    [{G, Members} || {G, _, Members} <- Groups].

after_messages(Before, Message) ->
    alone(fun() ->
        {ok, R0} = sderl_router:init([]),
        R = lists:foldl(fun(Each, Acc) ->
            {noreply, Next} = sderl_router:handle_info(Each, Acc),
            Next
        end, R0, Before),
        sderl_router:handle_info(Message, R)
    end).

%% What the tables of a node are for, in a process with which they go.
alone(Fun) ->
    {_, Monitor} = spawn_monitor(fun() -> {ok, _} = sderl_sup:init([]), exit({gives, Fun()}) end),
    receive {'DOWN', Monitor, process, _, Reason} -> element(2, Reason) end.
