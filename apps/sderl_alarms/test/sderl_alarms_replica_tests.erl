%% What several monitoring nodes know of what one of them tells.
-module(sderl_alarms_replica_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(WALL, 1_700_000_000_000).

look(Chosen, Now, Replica) ->
    sderl_alarms_replica:look(Chosen, [b], Now, ?WALL + Now, Replica).

leader() ->
    {[], Leader} = sderl_alarms_replica:look(true, [], 0, ?WALL, sderl_alarms_replica:new({0, 0})),
    Leader.

%% A node that begins asks first, and does not wait for ever.
begins_test() ->
    {[b], R1} = look(true, 0, sderl_alarms_replica:new({7, 3})),
    ?assertNot(sderl_alarms_replica:leads(R1)),
    {[b], R2} = look(true, 4_999, R1),
    {[], R3} = look(true, 5_000, R2),
    ?assert(sderl_alarms_replica:leads(R3)),
    ?assertEqual({?WALL + 5_000, 0}, sderl_alarms_replica:version(R3)),
    %% What it hears from an old leader then is too late.
    ?assertEqual({ignore, R3}, sderl_alarms_replica:hear_all(b, {8, 1}, true, R3)).

%% The answer of one that follows counts where it is newer than the file.
answered_test() ->
    Ask = fun(Version, Leads) ->
        {[b], R1} = look(true, 0, sderl_alarms_replica:new({7, 3})),
        {Do, R2} = sderl_alarms_replica:hear_all(b, Version, Leads, R1),
        {[], R3} = look(true, 1, R2),
        {Do, sderl_alarms_replica:leads(R3)}
    end,
    ?assertEqual({do, true}, Ask({7, 4}, false)),
    ?assertEqual({ignore, true}, Ask({7, 3}, false)),
    ?assertEqual({do, true}, Ask({6, 0}, true)).

%% One that follows asks until it has what a leader has, and again where it has missed something.
follows_test() ->
    L0 = leader(),
    {B1, A1, L1} = sderl_alarms_replica:news([x], L0),
    {[b], F0} = look(false, 0, sderl_alarms_replica:new({0, 0})),
    {ask, F1} = sderl_alarms_replica:hear_news(B1, A1, F0),
    {do, F2} = sderl_alarms_replica:hear_all(b, sderl_alarms_replica:version(L1), true, F1),
    {[], F3} = look(false, 1_000, F2),
    {B2, A2, L2} = sderl_alarms_replica:news([x], L1),
    {do, F4} = sderl_alarms_replica:hear_news(B2, A2, F3),
    %% The same once more; then one is lost, and the next word of the leader shows it.
    {ignore, F4} = sderl_alarms_replica:hear_news(B2, A2, F4),
    {_, _, L3} = sderl_alarms_replica:news([x], L2),
    {B4, A4, _} = sderl_alarms_replica:news([], L3),
    ?assertMatch({ask, _}, sderl_alarms_replica:hear_news(B4, A4, F4)),
    %% It has all that is needed to lead at once.
    {[], F5} = look(true, 2_000, F4),
    ?assert(sderl_alarms_replica:leads(F5)).

%% ---------------------------------------------------------------- property

same_in_the_end_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_same(), [{numtests, 500}, {to_file, user}]))}.

%% Two nodes a and b, each a replica and its changes. Whatever is lost, whoever begins anew with
%% whatever file, and whoever leads: after one word of the leader that comes both have the same.
prop_same() ->
    Node = oneof([a, b]),
    ?FORALL({Steps, Leader}, {list(frequency([
        {6, {change, bool()}}, {2, {word, bool()}}, {2, {choose, Node, bool()}},
        {1, {restart, Node}}, {1, {file, Node}}
    ])), Node}, begin
        New = {sderl_alarms_replica:new({0, 0}), []},
        World = #{a => New, b => New, file => #{a => New, b => New}, chosen => a, now => 0,
                  next => 1},
        Last = lists:foldl(fun run/2, World, Steps ++ [{choose, Leader, true}, {word, true},
                                                       {choose, Leader, true}, {word, true}]),
        #{a := {_, A}, b := {_, B}} = Last,
        ?WHENFAIL(io:format("~p~n", [Last]), A =:= B)
    end).

run({choose, Node, Comes}, World) ->
    %% Two looks with a pause between them, so that a node which asks in vain leads in the end.
    look(Comes, look(Comes, World#{chosen := Node}));
run({restart, Node}, #{file := Files} = World) ->
    {Replica, Changes} = map_get(Node, Files),
    World#{Node := {sderl_alarms_replica:new(sderl_alarms_replica:version(Replica)), Changes}};
run({file, Node}, #{file := Files} = World) ->
    World#{file := Files#{Node := map_get(Node, World)}};
run({word, Comes}, World) -> tell([], Comes, World);
run({change, Comes}, #{next := N} = World) -> tell([N], Comes, World#{next := N + 1}).

look(Comes, #{now := Now} = World) ->
    lists:foldl(fun(Node, #{chosen := Chosen} = Acc) ->
        {Replica, Changes} = map_get(Node, Acc),
        Other = other(Node),
        {Ask, Looked} = sderl_alarms_replica:look(Node =:= Chosen, [Other], Now, Now, Replica),
        Asked = Acc#{Node := {Looked, Changes}},
        case Ask of
            [Other] when Comes -> hear_all(Node, Other, Asked);
            _ -> Asked
        end
    end, World#{now := Now + 6_000}, [a, b]).

hear_all(Node, From, World) ->
    {Theirs, TheirChanges} = map_get(From, World),
    {Replica, Changes} = map_get(Node, World),
    case sderl_alarms_replica:hear_all(From, sderl_alarms_replica:version(Theirs),
                                       sderl_alarms_replica:leads(Theirs), Replica) of
        {do, New} -> World#{Node := {New, TheirChanges}};
        {ignore, New} -> World#{Node := {New, Changes}}
    end.

%% Whoever believes that it leads tells.
tell(Items, Comes, World) ->
    lists:foldl(fun(Node, Acc) ->
        {Replica, Changes} = map_get(Node, Acc),
        case sderl_alarms_replica:leads(Replica) of
            true ->
                {Before, After, New} = sderl_alarms_replica:news(Items, Replica),
                Told = Acc#{Node := {New, Changes ++ Items}},
                case Comes of
                    true -> hear(other(Node), Node, Before, After, Items, Told);
                    false -> Told
                end;
            false -> Acc
        end
    end, World, [a, b]).

hear(Node, From, Before, After, Items, World) ->
    {Replica, Changes} = map_get(Node, World),
    case sderl_alarms_replica:hear_news(Before, After, Replica) of
        {do, New} -> World#{Node := {New, Changes ++ Items}};
        {ask, New} -> hear_all(Node, From, World#{Node := {New, Changes}});
        {ignore, New} -> World#{Node := {New, Changes}}
    end.

other(a) -> b;
other(b) -> a.
