%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_frozen_tests).

%% The past that a node which has just begun gets from another, piece by piece.

-include_lib("eunit/include/eunit.hrl").

-define(T0, 1_700_000_000_000).

%% Frames 1 to N, each of some KB that do not compress, and four times as many events.
past(N) ->
    History = lists:foldl(fun(I, H) ->
        Nodes = #{integer_to_binary(rand:uniform(1 bsl 60)) => #{util => rand:uniform()}
                  || _ <- lists:seq(1, 300)},
        Frame = sderl_mon_gen:frame(?T0 + I * 1000, #{}),
        sderl_mon_history:frame(Frame#{nodes := Nodes}, H)
    end, sderl_mon_history:new(#{raw => 1000}), lists:seq(1, N)),
    Events = [#{id => I, t => ?T0, kind => x, level => info, text => ~"x"}
              || I <- lists:seq(1, 4 * N)],
    {ok, sderl_mon_history:frozen(History), Events}.

%% Takes the past of that moment, and says so.
take(Past) ->
    Test = self(),
    fun() -> Test ! taken, Past end.

taken() -> receive taken -> 1 + taken() after 0 -> 0 end.

ask(From, Part, After) -> #{from => From, ref => make_ref(), part => Part, 'after' => After}.

%% All of a part, as who asks gets it, and how many pieces it was.
all(From, Part, Take, Frozen) -> all(From, Part, 0, Take, Frozen, [], 1).

all(From, Part, After, Take, Frozen, Got, Count) ->
    {#{entries := Entries, more := More}, Frozen1} =
        sderl_mon_frozen:piece(ask(From, Part, After), Count, Take, Frozen),
    case More of
        false -> {Got ++ Entries, Count, Frozen1};
        true ->
            {Last, _, _} = lists:last(Entries),
            all(From, Part, Last, Take, Frozen1, Got ++ Entries, Count + 1)
    end.

%% However many pieces there are, and whatever comes meanwhile, it is one past, taken once.
taken_once_test_() ->
    {timeout, 60, fun() ->
        _ = rand:seed(exsss, 7),
        {ok, _, Events} = Past = past(300),
        {Frames, Pieces, Frozen} = all('m@h', {frames, 0}, take(Past), sderl_mon_frozen:new()),
        ?assertEqual(1, taken()),
        ?assert(Pieces > 2),
        Later = take(past(3)),
        {Coarse, _, Frozen1} = all('m@h', {frames, 10_000}, Later, Frozen),
        {Packed, 3, Frozen2} = all('m@h', events, Later, Frozen1),
        ?assertEqual(0, taken()),
        ?assertEqual([?T0 + I * 1000 || I <- lists:seq(1, 300)], [T || {T, _, _} <- Frames]),
        ?assert(length(Coarse) > 20),
        ?assertEqual(Events, lists:append([List || {_, _, P} <- Packed,
                                                   {ok, List} <- [sderl_mon_pack:unpack(P)]])),
        %% With the last piece it goes.
        ?assert(sderl_mon_frozen:is_empty(Frozen2))
    end}.

%% Who begins again gets what is so then; who gave up is forgotten; so is who asked longest ago of
%% many.
forgotten_test() ->
    Take = take(past(2)),
    Begin = fun(From, Now, Frozen) ->
        {_, Frozen1} = sderl_mon_frozen:piece(ask(From, {frames, 0}, 0), Now, Take, Frozen),
        Frozen1
    end,
    Next = fun(From, Now, Frozen) ->
        {_, Frozen1} = sderl_mon_frozen:piece(ask(From, topologies, 0), Now, Take, Frozen),
        Frozen1
    end,
    One = Begin('m1@h', 0, Begin('m1@h', 0, sderl_mon_frozen:new())),
    ?assertEqual(2, taken()),
    ?assertNot(sderl_mon_frozen:is_empty(sderl_mon_frozen:expire(9_999, One))),
    ?assert(sderl_mon_frozen:is_empty(sderl_mon_frozen:expire(10_000, One))),
    ?assertNot(sderl_mon_frozen:is_empty(
        sderl_mon_frozen:expire(10_000, Next('m1@h', 5_000, One))
    )),
    Five = lists:foldl(fun(I, Frozen) ->
        Begin(list_to_atom(lists:concat([m, I, "@h"])), I, Frozen)
    end, One, lists:seq(2, 5)),
    ?assertEqual(4, taken()),
    Others = lists:foldl(fun(I, Frozen) ->
        Next(list_to_atom(lists:concat([m, I, "@h"])), 10, Frozen)
    end, Five, lists:seq(2, 5)),
    ?assertEqual(0, taken()),
    _ = Next('m1@h', 10, Others),
    ?assertEqual(1, taken()).

%% A hub that shows a synthetic cluster has nothing to give, and nothing is kept.
synthetic_test() ->
    {Piece, Frozen} = sderl_mon_frozen:piece(ask('m@h', {frames, 0}, 0), 0,
                                             fun() -> {error, synthetic} end,
                                             sderl_mon_frozen:new()),
    ?assertEqual(#{steps => [], entries => [], more => false}, Piece),
    ?assert(sderl_mon_frozen:is_empty(Frozen)).

%% The process that answers asks the hub once, and again when the last piece has gone.
process_test_() ->
    {spawn, {timeout, 60, fun() ->
        sderl_mon_gen:beside_hub(#{interval_ms => 60_000}, fun process/0)
    end}}.

process() ->
    {ok, Pid} = sderl_mon_inherit:start_link(),
    1 = erlang:trace(whereis(sderl_mon_hub), true, ['receive']),
    %% The answers go to itself, which has not asked.
    Ask = fun(Part) ->
        gen_server:cast(Pid, {sderl_mon_past, 1, {ask, ask(node(), Part, 0)}}),
        _ = sys:get_status(Pid),
        asked_of_hub()
    end,
    ?assertEqual([1, 0, 0, 1], [Ask(Part) || Part <- [{frames, 0}, findings, events, findings]]),
    unlink(Pid),
    exit(Pid, kill).

%% What it received before it answered is traced.
asked_of_hub() ->
    Hub = whereis(sderl_mon_hub),
    Ref = erlang:trace_delivered(Hub),
    receive {trace_delivered, Hub, Ref} -> ok end,
    length(calls()).

calls() ->
    receive
        {trace, _, 'receive', {'$gen_call', _, past}} -> [past | calls()];
        {trace, _, 'receive', _} -> calls()
    after 0 -> []
    end.
