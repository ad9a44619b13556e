%% SPDX-License-Identifier: Apache-2.0
-module(sderl_beats_tests).
-moduledoc """
What goes over a link in place of all groups' heartbeats, and what the core makes of it.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("../src/core/sderl_core.hrl").

-define(HERE, 'n1@t').
-define(THERE, 'n2@t').
-define(THIRD, 'n3@t').

%% ---------------------------------------------------------------- bundles

%% Whatever begins to stand, hangs, or is lost with a link or with the memory of one side: after two
%% bundles the other node knows what stands.
what_stands_is_known_test_() ->
    sderl_prop:eunit("what stands is known", 300, fun() ->
        ?FORALL(Changes, list(change()), begin
            World = lists:foldl(fun change/2, world(), Changes),
            #{told := Told, beats := Beats} = exchange(exchange(World)),
            ?WHENFAIL(io:format("told ~p~nbeats ~p~n", [Told, Beats]),
                      lists:sort(maps:keys(Told)) =:= expected(World))
        end)
    end).

change() ->
    frequency([{6, {stand, uid(), [?THERE, ?THIRD]}},
               {3, {stand, uid(), [?THIRD]}},
               {3, {stand, uid(), []}},
               {3, {silent, list(uid())}},
               {6, exchange},
               {1, lost},
               {1, cut},
               {1, forgets},
               {1, ends}]).

uid() -> elements([<<Uid>> || Uid <- lists:seq(1, 6)]).

world() ->
    #{beats => sderl_beats:new(1), lives => 1, stands => #{}, silent => [],
      hearing => sderl_beats:none_heard(), told => #{}, owed => #{?THERE => []}}.

change({stand, Uid, Nodes}, #{beats := Beats, stands := Stands} = W) ->
    W#{beats := sderl_beats:stand(Uid, Nodes, Beats), stands := Stands#{Uid => Nodes}};
change({silent, Uids}, #{beats := Beats} = W) ->
    W#{beats := sderl_beats:silent(Uids, Beats), silent := Uids};
change(exchange, W) -> exchange(W);
%% A bundle that did not come.
change(lost, #{beats := Beats, owed := Owed} = W) ->
    {_, Next} = sderl_beats:bundles(Owed, Beats),
    W#{beats := Next};
%% The link breaks, and comes back.
change(cut, #{beats := Beats} = W) ->
    W#{beats := sderl_beats:forget_node(?THERE, Beats), hearing := sderl_beats:none_heard(),
       told := #{}, owed := #{?THERE => []}};
%% The process there is a new one.
change(forgets, W) -> W#{hearing := sderl_beats:none_heard(), told := #{}};
%% The process here is a new one, which finds what stands.
change(ends, #{stands := Stands, lives := Lives} = W) ->
    New = maps:fold(fun sderl_beats:stand/3, sderl_beats:new(1000 * Lives), Stands),
    W#{beats := New, lives := Lives + 1, silent := [], owed := #{?THERE => []}}.

exchange(#{beats := Beats0, owed := Owed, hearing := Hearing, told := Told} = W0) ->
    {Bundles, Beats} = sderl_beats:bundles(Owed, Beats0),
    W = W0#{beats := Beats, owed := #{}},
    case lists:keyfind(?THERE, 1, Bundles) of
        %% Without confirmation nothing counts after a while.
        false -> W#{told := #{}, hearing := sderl_beats:none_heard()};
        {_, {_, _, Added, Gone} = Bundle} ->
            ?assert(sderl_beats:is_word({beat, 1, Bundle})),
            {How, Heard} = sderl_beats:heard(Bundle, Hearing),
            heard(How, Added, Gone, W#{hearing := Heard, told := Told})
    end.

heard(gap, _, _, #{beats := Beats} = W) ->
    W#{told := #{}, beats := sderl_beats:begin_again(?THERE, Beats), owed := #{?THERE => []}};
heard(How, Added, Gone, #{told := Told, hearing := Hearing} = W) ->
    Before = case How of anew -> #{}; follows -> Told end,
    Now = maps:merge(maps:without(Gone, Before), maps:from_keys(Added, [])),
    ?assertEqual(map_size(Now), sderl_beats:standing(Hearing)),
    W#{told := Now}.

expected(#{stands := Stands, silent := Silent}) ->
    lists:sort([Uid
                || Uid := Nodes <- Stands, lists:member(?THERE, Nodes),
                   not lists:member(Uid, Silent)]).

%% A thousand groups at rest are sent once, and then an empty bundle.
nothing_new_is_nothing_test() ->
    Uids = [<<Uid:128>> || Uid <- lists:seq(1, 1000)],
    Stood = lists:foldl(fun(Uid, B) -> sderl_beats:stand(Uid, [?THERE, ?THIRD], B) end,
                        sderl_beats:new(7), Uids),
    {First, Rests} = sderl_beats:bundles(#{}, Stood),
    ?assertEqual([1000, 1000], [length(Added) || {_, {_, 0, Added, []}} <- First]),
    {Second, Rests2} = sderl_beats:bundles(#{}, Rests),
    ?assertMatch([{?THERE, {_, 1, [], []}}, {?THIRD, {_, 1, [], []}}], lists:sort(Second)),
    %% One process hangs, and goes on.
    {Third, Rests3} = sderl_beats:bundles(#{}, sderl_beats:silent([hd(Uids)], Rests2)),
    ?assertEqual([{[], [hd(Uids)]}], lists:usort([{A, G} || {_, {_, 2, A, G}} <- Third])),
    {Fourth, _} = sderl_beats:bundles(#{}, sderl_beats:silent([], Rests3)),
    ?assertEqual([{[hd(Uids)], []}], lists:usort([{A, G} || {_, {_, 3, A, G}} <- Fourth])).

%% If nothing stands no bundle is sent, except to a node that waits for one.
nothing_is_said_without_a_group_test() ->
    {Said, Beats} = sderl_beats:bundles(#{?THERE => []}, sderl_beats:new(7)),
    ?assertMatch([{?THERE, {7, 0, [], []}}], Said),
    ?assertMatch({[], _}, sderl_beats:bundles(#{}, Beats)).

%% A gateway need not hear of its mates.
router_is_not_answered_test() ->
    Beats = sderl_beats:stand(sderl_beats:router(), [?THERE], sderl_beats:new(7)),
    {[{?THERE, {7, 0, [_], []} = First}], Told} = sderl_beats:bundles(#{}, Beats),
    {anew, Alone} = sderl_beats:heard(First, sderl_beats:none_heard()),
    ?assertEqual(0, sderl_beats:standing(Alone)),
    {[{?THERE, Second}], Both} = sderl_beats:bundles(#{}, sderl_beats:stand(<<1>>, [?THERE], Told)),
    {follows, Group} = sderl_beats:heard(Second, Alone),
    ?assertEqual(1, sderl_beats:standing(Group)),
    {[{?THERE, {7, 2, [], [_]} = Third}], _} =
        sderl_beats:bundles(#{}, sderl_beats:stand(sderl_beats:router(), [], Both)),
    {follows, Left} = sderl_beats:heard(Third, Group),
    ?assertEqual(1, sderl_beats:standing(Left)).

words_test() ->
    ?assert(sderl_beats:is_word({again, 1500})),
    [?assertNot(sderl_beats:is_word(Word))
     || Word <- [again, {again, 0}, {again, 1 bsl 50}, {beat, 1, {1, -1, [], []}},
                 {beat, 1, {1, 0, [a], []}},
                 {beat, 1, {1, 0, [<<>> | tail], []}}, {beat, 1, {a, 0, [], []}}, {beat, 1, []},
                 {beat, 0, {1, 0, [], []}}]].

%% ---------------------------------------------------------------- in the core

%% A coordinator that hangs is given up at the same tick as if its last heartbeat had come over the
%% link: the heartbeat that the node repeats has the time at which the process last ran.
is_given_up_as_soon_test() ->
    Hung = 2500,
    Beat = {hb, epoch(), 0},
    {_, Ticked} = sderl_core:step(2000, [tick], follower()),
    {_, Sent} = sderl_core:step(Hung, [{msg, ?HERE, Beat}], Ticked),
    ?assertEqual(tick_until_given_up(3000, [], Sent),
                 tick_until_given_up(3000, [{beat, ?HERE, Beat, Hung}], Ticked)).

tick_until_given_up(Now, Events, S0) ->
    ?assert(Now < 60_000),
    {_, S} = sderl_core:step(Now, Events ++ [tick], S0),
    case sderl_core:role(S) of
        follower -> tick_until_given_up(Now + 1000, Events, S);
        _ -> Now
    end.

is_answered_test() ->
    {Fx, S} = sderl_core:step(3000, [{beat, ?HERE, {hb, epoch(), 0}, 2500}], follower()),
    ?assertEqual([hb_ack], [element(1, M) || {send, _, M} <- Fx]),
    ?assertMatch(#s{lead_heard = 2500, peers = #{?HERE := #peer{heard = 2500}}}, S),
    %% What came after it is not forgotten.
    {_, Later} = sderl_core:step(3100, [{msg, ?HERE, {hb, epoch(), 0}}], S),
    {_, Still} = sderl_core:step(3200, [{beat, ?HERE, {hb, epoch(), 0}, 2600}], Later),
    ?assertMatch(#s{lead_heard = 3100, peers = #{?HERE := #peer{heard = 3100}}}, Still).

is_nothing_without_its_process_test() ->
    Alone = (follower())#s{peers = #{}},
    ?assertMatch({[], #s{lead_heard = 1000}},
                 sderl_core:step(1500, [{beat, ?HERE, {hb, epoch(), 0}, 1400}], Alone)).

epoch() -> {20_000, ?HERE}.

%% A member that follows, and heard its coordinator and ticked a second after it began.
follower() ->
    Mem = sderl_membership:new([?HERE, ?THERE, ?THIRD]),
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => ?THERE, addr => here, inc => 1,
                           now => 0, clock => 10_000, mem => Mem, linked => [?HERE, ?THIRD],
                           tick_ms => 1000, aside_ms => 4000}),
    Info = #{epoch => epoch(), lineage => epoch(), num => 0, lead => ?HERE, syncing => false},
    {_, #s{d = D} = S} =
        sderl_core:step(1000, [start, {msg, ?HERE, {hello, there, 1, Mem, Info}}, tick], S0),
    View = #{?HERE => live, ?THERE => live, ?THIRD => live},
    Followed = D#d{epoch = epoch(), lineage = epoch(), view = View},
    S#s{role = follower, lead = ?HERE, lead_heard = 1000, booting = false, d = Followed,
        saved = Followed}.
