-module(sderl_follow_tests).

%% Members that feed, nodes that follow, and a network that loses, duplicates and reorders messages.
%% While writes go on and processes die, a name in a readable copy has a value that the group had at
%% the time of the copy or later. At rest each copy is equal to the group.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("../src/core/sderl_row.hrl").

-define(MEMBERS, ['m@h', 'n@h']).
-define(FOLLOWERS, ['f@h', 'g@h']).
-define(MOST, 9).
-define(MAX_AGE, 900).
-define(LIMITS, #{rows => 3, bytes => 100, log => 6}).

copies_property_test_() ->
    sderl_prop:eunit("a copy is as old as it says, and follows", 1500, fun prop_copies/0).

prop_copies() ->
    ?FORALL(Steps, resize(150, list(step())),
        begin
            W = lists:foldl(fun(Step, W0) -> sound(do(Step, W0)) end, world(), Steps),
            Quiet = settle(60, W),
            ?WHENFAIL(io:format("~p~n", [Quiet]),
                      lists:all(fun(F) -> is_group(F, Quiet) end, ?FOLLOWERS))
        end).

step() ->
    frequency([
        {12, {write, name(), oneof([value, value, none])}},
        {1, {silent_change, name()}},
        {20, {deliver, nat()}},
        {3, {lose, nat()}},
        {2, {double, nat()}},
        {8, {follower_ticks, oneof(?FOLLOWERS)}},
        {2, {member_ticks, oneof(?MEMBERS)}},
        {6, {push, oneof(?MEMBERS)}},
        {6, {pass, range(1, 400)}},
        {1, {pass, range(1000, 12_000)}},
        {1, {feeder_dies, oneof(?MEMBERS)}},
        {1, {follower_dies, oneof(?FOLLOWERS)}},
        {1, {link_down, oneof(?FOLLOWERS), oneof(?MEMBERS)}},
        {1, {leaves, oneof(?MEMBERS)}},
        {1, {returns, oneof(?MEMBERS)}},
        {1, made_again}
    ]).

name() -> oneof([1, 1.0, a, b, c, d, {e, 1}, f, g, h, i]).

world() ->
    #{
        now => 1,
        next => 1,
        uid => <<"1">>,
        rows => #{},
        history => [{0, #{}}],
        feeds => #{M => none || M <- ?MEMBERS},
        in => ?MEMBERS,
        copies => #{F => #{copy => copy(1, N), rows => #{}, as_of => none}
                    || {N, F} <- lists:enumerate(?FOLLOWERS)},
        wire => []
    }.

copy(Now, Life) -> sderl_follow_copy:new(Now, Life, ?MOST, ?MAX_AGE).

%% ---------------------------------------------------------------- steps

do({write, Name, none}, #{rows := Rows} = W) ->
    changed([Name], written(maps:remove(Name, Rows), W));
do({write, Name, value}, #{rows := Rows, next := N} = W) ->
    changed([Name], written(Rows#{Name => N}, W#{next := N + 1}));
do({silent_change, Name}, #{rows := Rows, next := N} = W0) ->
    W = #{feeds := Feeds} = written(Rows#{Name => N}, W0#{next := N + 1}),
    lists:foldl(fun(M, Acc) -> feed(M, {all, feed_id(M, Acc)}, bump(Acc)) end, W, maps:keys(Feeds));
do({deliver, I}, W) ->
    with_message(I, fun(Message, Rest) -> received(Message, W#{wire := Rest}) end, W);
do({lose, I}, W) -> with_message(I, fun(_, Rest) -> W#{wire := Rest} end, W);
do({double, I}, #{wire := Wire} = W) ->
    with_message(I, fun(M, _) -> W#{wire := Wire ++ [M]} end, W);
do({follower_ticks, F}, W) -> follow(F, {tick, ?MEMBERS}, W);
do({member_ticks, M}, W) -> feed(M, tick, W);
do({push, M}, W) -> feed(M, push, W);
do({pass, Ms}, #{now := Now} = W) -> W#{now := Now + Ms};
do({feeder_dies, M}, #{feeds := Feeds} = W) -> W#{feeds := Feeds#{M := none}};
do({follower_dies, F}, #{copies := Copies, now := Now, next := N} = W) ->
    #{F := C} = Copies,
    W#{copies := Copies#{F := C#{copy := copy(Now, N + 10)}}, next := N + 1};
do({link_down, F, M}, W) -> follow(F, {down, M, ?MEMBERS -- [M]}, W);
do({leaves, M}, #{in := In} = W) -> do({feeder_dies, M}, W#{in := In -- [M]});
do({returns, M}, #{in := In} = W) -> W#{in := lists:usort([M | In])};
%% The group was deleted and is another one of that name.
do(made_again, #{next := N, feeds := Feeds} = W) ->
    Again = written(#{}, W#{uid := integer_to_binary(N), next := N + 1}),
    Again#{feeds := maps:map(fun(_, _) -> none end, Feeds)}.

bump(#{next := N} = W) -> W#{next := N + 1}.

written(Rows, #{history := History, now := Now} = W) ->
    %% Two moments are told apart: what was so before is not so at the moment of the write.
    W#{rows := Rows, now := Now + 1, history := [{Now + 1, Rows} | History]}.

changed(Names, W) -> lists:foldl(fun(M, Acc) -> feed(M, {changed, Names}, Acc) end, W, ?MEMBERS).

with_message(_, _, #{wire := []} = W) -> W;
with_message(I, Do, #{wire := Wire}) ->
    {Before, [Message | After]} = lists:split(I rem length(Wire), Wire),
    Do(Message, Before ++ After).

received({_, To, _} = Message, W) ->
    case lists:member(To, ?MEMBERS) of
        true -> asked(Message, W);
        false -> told(Message, W)
    end.

asked({F, M, Want}, #{feeds := Feeds, in := In} = W) ->
    ?assert(sderl_follow_wire:is_want(Want)),
    case {lists:member(M, In), Feeds} of
        {false, _} -> sent([{send, F, {no, not_member}}], M, W);
        {true, #{M := none}} when Want =/= stop ->
            Feed = sderl_follow_feed:new(feed_id(M, W), ?LIMITS),
            feed(M, {want, F, Want}, bump(W#{feeds := Feeds#{M := Feed}}));
        {true, _} -> feed(M, {want, F, Want}, W)
    end.

feed_id(M, #{uid := Uid, next := N}) -> {Uid, M, N}.

feed(M, Event, #{feeds := Feeds, now := Now} = W) ->
    case Feeds of
        #{M := none} -> W;
        #{M := Feed} ->
            {Effects, After} = sderl_follow_feed:step(Now, Event, source(W), Feed),
            sent(Effects, M, W#{feeds := Feeds#{M := After}})
    end.

source(#{rows := Rows}) ->
    #{
        row => fun(Name) -> row(Name, Rows) end,
        first => fun(Most) -> read(Most, maps:keys(Rows), Rows) end,
        next => fun({Most, Names}) -> read(Most, Names, Rows) end,
        stop => fun(_) -> ok end,
        count => fun(_) -> map_size(Rows) end
    }.

row(Name, Rows) ->
    case Rows of
        #{Name := Value} -> ?ROW(Name, Value, home, {{0, home}, 0}, []);
        #{} -> none
    end.

%% The end is told with nothing, as a table tells it.
read(_, [], _) -> {[], true, done};
read(Most, Names, Rows) ->
    {Now, Later} = lists:split(min(Most, length(Names)), Names),
    {[Row || Name <- Now, Row <- [row(Name, Rows)], Row =/= none], false, {Most, Later}}.

sent(Effects, From, W) ->
    lists:foldl(fun
        ({send, To, Message}, #{wire := Wire} = Acc) ->
            bounded(Message),
            Acc#{wire := Wire ++ [{From, To, Message}]};
        ({push, _}, Acc) -> Acc;
        (idle, #{feeds := Feeds} = Acc) -> Acc#{feeds := Feeds#{From := none}}
    end, W, Effects).

bounded({piece, _, _, _, Rows, _, _}) -> ?assert(length(Rows) =< 3);
bounded({delta, _, _, _, Rows, Gone, _}) -> ?assert(length(Rows) + length(Gone) =< 3);
bounded(_) -> ok.

told({M, F, Told}, W) -> follow(F, {told, M, Told}, W).

follow(F, Event, #{copies := Copies, now := Now} = W) ->
    #{F := #{copy := Copy0} = C} = Copies,
    {Effects, Copy} = sderl_follow_copy:step(Now, Event, Copy0),
    W1 = W#{copies := Copies#{F := C#{copy := Copy}}},
    W2 = #{copies := #{F := #{rows := Rows}}} =
        lists:foldl(fun(E, Acc) -> effect(E, F, Acc) end, W1, Effects),
    case map_size(Rows) > ?MOST andalso element(1, Event) =/= size of
        true -> follow(F, {size, map_size(Rows)}, W2);
        false -> W2
    end.

effect({send, M, Want}, F, #{wire := Wire} = W) -> W#{wire := Wire ++ [{F, M, Want}]};
effect({put, Generation, Put}, F, W) ->
    on_rows(fun(Rows) ->
        maps:merge(Rows, #{Name => {Value, Generation} || ?ROW(Name, Value, _, _, _) <- Put})
    end, F, W);
effect({delete, Names}, F, W) -> on_rows(fun(Rows) -> maps:without(Names, Rows) end, F, W);
effect({sweep, Generation}, F, W) ->
    on_rows(fun(Rows) -> maps:filter(fun(_, {_, G}) -> G =:= Generation end, Rows) end, F, W);
effect(clear, F, #{copies := Copies} = W) ->
    #{F := C} = Copies,
    W#{copies := Copies#{F := C#{rows := #{}, as_of := none}}};
effect({whole, AsOf}, F, #{copies := Copies} = W) ->
    #{F := #{as_of := Before} = C} = Copies,
    ?assert(Before =:= none orelse AsOf >= Before),
    W#{copies := Copies#{F := C#{as_of := AsOf}}};
effect({event, _, _}, _, W) -> W.

on_rows(Fun, F, #{copies := Copies} = W) ->
    #{F := #{rows := Rows} = C} = Copies,
    W#{copies := Copies#{F := C#{rows := Fun(Rows)}}}.

%% ---------------------------------------------------------------- what must hold

sound(#{copies := Copies} = W) ->
    maps:foreach(fun(F, #{rows := Rows, as_of := AsOf}) ->
        ?assert(map_size(Rows) =< ?MOST),
        AsOf =:= none orelse current(F, maps:map(fun(_, {V, _}) -> V end, Rows), AsOf, W)
    end, Copies),
    W.

%% Each name has a value of a moment since then.
current(F, Rows, AsOf, #{history := History} = W) ->
    {After, [At | _]} = lists:splitwith(fun({T, _}) -> T > AsOf end, History),
    Moments = [M || {_, M} <- [At | After]],
    Names = maps:keys(maps:merge(Rows, lists:foldl(fun maps:merge/2, #{}, Moments))),
    Wrong = [Name || Name <- Names,
                     not lists:member(maps:get(Name, Rows, none),
                                      [maps:get(Name, M, none) || M <- Moments])],
    ?assertEqual({F, AsOf, []}, {F, AsOf, Wrong}, W).

%% All is well for a while.
settle(0, W) -> W;
settle(Rounds, W0) ->
    W1 = lists:foldl(fun do/2, W0, [{returns, M} || M <- ?MEMBERS] ++ [{pass, 600}]
                                       ++ [{follower_ticks, F} || F <- ?FOLLOWERS]
                                       ++ [{member_ticks, M} || M <- ?MEMBERS]),
    W2 = flush(W1),
    settle(Rounds - 1, sound(flush(lists:foldl(fun do/2, W2, [{push, M} || M <- ?MEMBERS])))).

flush(#{wire := []} = W) -> W;
flush(W) -> flush(do({deliver, 0}, W)).

is_group(F, #{copies := Copies, rows := Rows, now := Now}) ->
    #{F := #{copy := Copy, rows := Held, as_of := AsOf}} = Copies,
    #{state := State} = sderl_follow_copy:info(Now, Copy),
    case map_size(Rows) > ?MOST of
        true -> State =:= too_large andalso Held =:= #{} andalso AsOf =:= none;
        false ->
            State =:= whole andalso Rows =:= maps:map(fun(_, {V, _}) -> V end, Held)
                andalso Now - AsOf =< ?MAX_AGE
    end.
