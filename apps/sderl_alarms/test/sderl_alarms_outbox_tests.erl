-module(sderl_alarms_outbox_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Below 0, as the monotonic clock is.
-define(NOW, -1_000_000).

route(Name, More) ->
    maps:merge(#{name => Name, least => minor, timeout_s => 5,
                 target => #{program => ~"/x", arguments => []}}, More).

note(N) -> note(raised, N, minor).

note(Kind, N, Severity) ->
    {Kind, #{id => integer_to_binary(N), alarm => ~"a", worst => Severity, severity => Severity,
             tags => [], nodes => [~"n"], groups => []}}.

box(Routes, Notes) ->
    add(Notes, sderl_alarms_outbox:new(Routes, #{})).

add(Notes, Outbox) ->
    {_, New} = sderl_alarms_outbox:add(Notes, 1, Outbox),
    New.

due(Now, Outbox) ->
    {Due, Next} = sderl_alarms_outbox:due(Now, Outbox),
    {[{Name, Id, maps:get(id, Alarm), Try}
      || {#{name := Name}, #{id := Id, alarm := Alarm}, Try} <- Due], Next}.

%% ---------------------------------------------------------------- cases

one_at_a_time_in_order_test() ->
    B0 = box([route(~"r", #{})], [note(1), note(2)]),
    {[{~"r", Id1, ~"1", 1}], B1} = due(?NOW, B0),
    {[], B1} = due(?NOW + 100_000, B1),
    B2 = sderl_alarms_outbox:done(~"r", Id1, ok, ?NOW, B1),
    {[{~"r", Id2, ~"2", 1}], B3} = due(?NOW, B2),
    ?assertNotEqual(Id1, Id2),
    %% A word about another delivery counts for nothing.
    ?assertEqual(B3, sderl_alarms_outbox:done(~"r", Id1, ok, ?NOW, B3)),
    B4 = sderl_alarms_outbox:done(~"r", Id2, ok, ?NOW, B3),
    {[], B4} = due(?NOW, B4),
    ?assertMatch([#{name := ~"r", waiting := 0, counts := #{attempts := 2, delivered := 2}}],
                 sderl_alarms_outbox:info(B4)).

tried_again_later_and_later_test() ->
    Pauses = fun Pauses(_, _, 0) -> [];
                 Pauses(Now, B, N) ->
        {[{_, Id, _, _}], Sent} = due(Now, B),
        Failed = sderl_alarms_outbox:done(~"r", Id, {error, ~"no"}, Now, Sent),
        {[], _} = due(Now, Failed),
        Pause = hd([Ms || Ms <- [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000],
                          {[_], _} <- [due(Now + Ms, Failed)]]),
        [Pause | Pauses(Now + Pause, Failed, N - 1)]
    end,
    ?assertEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000],
                 Pauses(?NOW, box([route(~"r", #{})], [note(1)]), 8)).

given_up_test() ->
    B = lists:foldl(fun(N, Acc) ->
        Now = ?NOW + 60_000 * N,
        {[{_, Id, ~"1", N}], Sent} = due(Now, Acc),
        sderl_alarms_outbox:done(~"r", Id, {error, ~"no"}, Now, Sent)
    end, box([route(~"r", #{})], [note(1), note(2)]), lists:seq(1, 100)),
    ?assertMatch([#{waiting := 1, error := ~"no", counts := #{failed := 100, given_up := 1}}],
                 sderl_alarms_outbox:info(B)),
    {[{_, _, ~"2", 1}], _} = due(?NOW + 6_000_000, B).

%% The oldest goes, and not the one that is being sent.
bounded_test() ->
    B0 = box([route(~"r", #{})], [note(1)]),
    {[{_, Id, ~"1", 1}], B1} = due(?NOW, B0),
    B2 = add([note(N) || N <- lists:seq(2, 1_500)], B1),
    ?assertMatch([#{waiting := 1_000, counts := #{overflowed := 500}}],
                 sderl_alarms_outbox:info(B2)),
    B3 = sderl_alarms_outbox:done(~"r", Id, ok, ?NOW, B2),
    ?assertMatch({[{_, _, ~"502", 1}], _}, due(?NOW, B3)).

routed_test() ->
    B = box([route(~"all", #{}), route(~"major", #{least => major}),
             route(~"n", #{nodes => [~"n*"]}), route(~"other", #{nodes => [~"x"]})],
            [note(raised, 1, minor), note(cleared, 2, major)]),
    ?assertEqual([{~"all", 2}, {~"major", 1}, {~"n", 2}, {~"other", 0}],
                 [{Name, Waiting}
                  || #{name := Name, waiting := Waiting} <- sderl_alarms_outbox:info(B)]).

%% What was being sent when the node went down is sent again, under the same id.
restart_test() ->
    B0 = box([route(~"r", #{}), route(~"gone", #{})], [note(1), note(2)]),
    {[_, {~"r", Id, _, 1}], B1} = due(?NOW, B0),
    Saved = binary_to_term(term_to_binary(sderl_alarms_outbox:save(B1))),
    B2 = sderl_alarms_outbox:new([route(~"r", #{}), route(~"new", #{})], Saved),
    {[{~"r", Id, ~"1", 1}], B3} = due(0, B2),
    %% New ones have ids of their own.
    B4 = add([note(3)], B3),
    #{boxes := Boxes} = sderl_alarms_outbox:save(B4),
    Ids = [I || _ := #{items := Items} <- Boxes, #{id := I} <- Items],
    ?assertEqual(3, length(lists:usort(Ids))).

%% ---------------------------------------------------------------- other nodes

waiting(Outbox) ->
    #{boxes := Boxes} = sderl_alarms_outbox:save(Outbox),
    #{Name => [Id || #{id := Id} <- Items] || Name := #{items := Items} <- Boxes}.

%% A node that has the same routes has the same queues, by what it is told.
told_to_another_test() ->
    Routes = [route(~"r", #{}), route(~"major", #{least => major})],
    Empty = sderl_alarms_outbox:new(Routes, #{}),
    {Items, A1} = sderl_alarms_outbox:add([note(1), note(raised, 2, major)], 1, Empty),
    B1 = sderl_alarms_outbox:enqueue(Items, Empty),
    ?assertEqual(waiting(A1), waiting(B1)),
    {[{~"major", Id, ~"2", 1}, {~"r", First, ~"1", 1}], A2} = due(?NOW, A1),
    A3 = sderl_alarms_outbox:done(~"major", Id, ok, ?NOW, A2),
    ?assertEqual({false, true}, {sderl_alarms_outbox:has(~"major", Id, A3),
                                 sderl_alarms_outbox:has(~"r", First, A3)}),
    B2 = sderl_alarms_outbox:drop(~"major", Id, B1),
    ?assertEqual(waiting(A3), waiting(B2)),
    %% What the other one was sending is sent here under the same id.
    {[{~"r", First, ~"1", 1}], _} = due(?NOW, B2),
    %% Twice, and of a route that is not there.
    ?assertEqual(B2, sderl_alarms_outbox:drop(~"major", Id, B2)),
    ?assertEqual(B2, sderl_alarms_outbox:drop(~"none", Id, B2)).

all_of_another_test() ->
    A = box([route(~"r", #{}), route(~"a", #{})], [note(1), note(2)]),
    {_, B0} = sderl_alarms_outbox:add([note(3)], 2, box([route(~"r", #{}), route(~"b", #{})], [])),
    {[_, {~"r", Id, ~"3", 1}], B1} = due(?NOW, B0),
    B2 = sderl_alarms_outbox:replace(sderl_alarms_outbox:save(A), B1),
    ?assertEqual(maps:get(~"r", waiting(A)), maps:get(~"r", waiting(B2))),
    ?assertMatch([_], maps:get(~"b", waiting(B2))),
    %% The attempt that was under way ends, and takes nothing of the others along.
    {[], B2} = due(?NOW + 100_000, B2),
    B3 = sderl_alarms_outbox:done(~"r", Id, ok, ?NOW, B2),
    ?assertMatch({[{~"r", _, ~"1", 1}], _}, due(?NOW, B3)).

%% The one that is being sent is done elsewhere: the attempt ends, and the next one begins.
done_elsewhere_test() ->
    {[{~"r", Id, ~"1", 1}], B1} = due(?NOW, box([route(~"r", #{})], [note(1), note(2)])),
    B2 = sderl_alarms_outbox:drop(~"r", Id, B1),
    {[], B2} = due(?NOW + 100_000, B2),
    B3 = sderl_alarms_outbox:done(~"r", Id, {error, ~"no"}, ?NOW, B2),
    ?assertMatch({[{~"r", _, ~"2", 1}], _}, due(?NOW, B3)).

%% ---------------------------------------------------------------- property

%% Whatever fails, and however often the node goes down: all that was not given up or dropped is
%% delivered, in order, and more than once only where it went down in the middle.
every_change_is_delivered_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(
        ?FORALL(Steps, list(oneof([add, ok, fail, restart])), begin
            {_, _, Delivered, Downs, Last} = lists:foldl(fun step/2,
                {1, ?NOW, [], 0, box([route(~"r", #{})], [])}, Steps),
            Rest = drain(Last),
            All = lists:reverse(Delivered) ++ Rest,
            Added = length([add || add <- Steps]),
            lists:uniq(All) =:= lists:seq(1, Added)
                andalso length(All) - Added =< Downs
        end),
        [{numtests, 1000}, {to_file, user}]
    ))}.

step(add, {N, Now, Delivered, Downs, B}) ->
    {N + 1, Now, Delivered, Downs, add([note(N)], B)};
step(Result, {N, Now, Delivered, Downs, B}) ->
    case due(Now, B) of
        {[], B1} -> {N, Now + 60_000, Delivered, Downs, B1};
        {[{_, Id, Which, _}], B1} ->
            Got = [binary_to_integer(Which) | Delivered],
            case Result of
                ok -> {N, Now, Got, Downs, sderl_alarms_outbox:done(~"r", Id, ok, Now, B1)};
                fail ->
                    {N, Now + 60_000, Delivered, Downs,
                     sderl_alarms_outbox:done(~"r", Id, {error, ~"no"}, Now, B1)};
                %% It came, and nobody wrote that down.
                restart ->
                    {N, Now, Got, Downs + 1,
                     sderl_alarms_outbox:new([route(~"r", #{})], sderl_alarms_outbox:save(B1))}
            end
    end.

drain(B) ->
    case due(?NOW + 1_000_000_000, B) of
        {[], _} -> [];
        {[{_, Id, Which, _}], B1} ->
            [binary_to_integer(Which)
             | drain(sderl_alarms_outbox:done(~"r", Id, ok, ?NOW + 1_000_000_000, B1))]
    end.
