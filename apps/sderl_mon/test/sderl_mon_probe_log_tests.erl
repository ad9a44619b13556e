%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_log_tests).

%% What a process that logs does for the log of the monitoring, and how events wait: pure parts, and
%% the handler with events of every kind.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [{timeout, 60,
      {Name, ?_assert(proper:quickcheck(Property, [{numtests, 300}, {to_file, user}]))}}
     || {Name, Property} <- [{"the bucket never gives more", prop_bucket_bound()},
                             {"the bucket gives what it has", prop_bucket_gives()},
                             {"batches lose nothing", prop_batches()}]].

%% In no stretch of time come more than the burst and what the rate gives.
prop_bucket_bound() ->
    ?FORALL({PerS, Burst, Steps},
            {range(1, 100), range(1, 20), list(range(0, 300_000_000))},
        begin
            Taken = taken(PerS, Burst, times(Steps)),
            lists:all(fun({From, I}) ->
                lists:all(fun({To, J}) ->
                    J - I + 1 =< Burst + (To - From) * PerS / 1_000_000_000 + 0.001 * PerS
                end, lists:nthtail(I - 1, Taken))
            end, Taken)
        end).

%% Whoever asks no more often than the rate gets each; after a quiet time there is a whole burst.
prop_bucket_gives() ->
    ?FORALL({PerS, Burst}, {range(1, 1000), range(1, 50)},
        begin
            Token = 1_000_000_000 div PerS,
            Even = times(lists:duplicate(100, Token)),
            Quiet = lists:duplicate(Burst + 3, 500_000_000_000),
            length(taken(PerS, Burst, Even)) =:= 100 andalso
                length(taken(PerS, Burst, Quiet)) =:= Burst
        end).

times(Steps) ->
    {Times, _} = lists:mapfoldl(fun(Step, T) -> {T + Step, T + Step} end, 0, Steps),
    Times.

%% The times at which there was a token, numbered.
taken(PerS, Burst, Times) ->
    Token = 1_000_000_000 div PerS,
    {Taken, _} = lists:foldl(fun(T, {Got, Full}) ->
        case sderl_mon_probe_bucket:step(T, Full, {Token, Burst * Token}) of
            {taken, Later} -> {[T | Got], Later};
            empty -> {Got, Full}
        end
    end, {[], 0}, Times),
    [{T, I} || {I, T} <- lists:enumerate(1, lists:reverse(Taken))].

%% Whatever is acknowledged and sent again when, everything comes once, in order.
prop_batches() ->
    ?FORALL(Commands, list(oneof([add, next, again, ack, stale])),
        begin
            {_, B, Added, Came} = lists:foldl(fun command/2,
                                              {0, sderl_mon_probe_batches:new(7), 0, {0, []}},
                                              Commands ++ [ack]),
            {_, All} = rest(B, Came),
            lists:reverse(All) =:= lists:seq(1, Added)
        end).

command(add, {Seq, B, N, Came}) -> {Seq, sderl_mon_probe_batches:add(N + 1, B), N + 1, Came};
command(next, {Seq, B, N, Came}) ->
    case sderl_mon_probe_batches:next(1, #{}, B) of
        none -> {Seq, B, N, Came};
        {#{seq := New} = Batch, B1} -> {New, B1, N, came(Batch, Came)}
    end;
command(again, {Seq, B, N, Came}) ->
    case sderl_mon_probe_batches:again(B) of
        none -> {Seq, B, N, Came};
        Batch -> {Seq, B, N, came(Batch, Came)}
    end;
command(ack, {Seq, B, N, Came}) -> {Seq, acknowledged(Seq, B), N, Came};
command(stale, {Seq, B, N, Came}) ->
    ?assertEqual(none, sderl_mon_probe_batches:acknowledge(Seq - 1, B)),
    {Seq, B, N, Came}.

acknowledged(Seq, B) ->
    case sderl_mon_probe_batches:acknowledge(Seq, B) of none -> B; {_, B1} -> B1 end.

came(#{seq := Seq}, {Last, _} = Came) when Seq =< Last -> Came;
came(#{seq := Seq, events := Events}, {_, All}) -> {Seq, lists:reverse(Events, All)}.

rest(B, Came) ->
    case sderl_mon_probe_batches:next(1, #{}, B) of
        none -> Came;
        {#{seq := Seq} = Batch, B1} -> rest(acknowledged(Seq, B1), came(Batch, Came))
    end.

%% What was left out is told once, also where there is no event beside it.
losses_are_told_test() ->
    B0 = sderl_mon_probe_batches:new(1),
    Lost = #{rate => #{error => 3}},
    {#{events := [], lost := Lost, seq := 1}, B1} = sderl_mon_probe_batches:next(1, Lost, B0),
    {0, B2} = sderl_mon_probe_batches:acknowledge(1, B1),
    ?assertEqual(none, sderl_mon_probe_batches:next(2, Lost, B2)).

gate_test() ->
    Gate = sderl_mon_probe_gate:new(#{per_s => 1, burst => 100}, 3),
    Enter = fun(Level) -> sderl_mon_probe_gate:enter(Level, Gate) end,
    ?assertEqual([pass, pass, pass, full, full],
                 [Enter(error) || _ <- lists:seq(1, 5)]),
    ok = sderl_mon_probe_gate:leave(2, Gate),
    ?assertEqual([pass, pass, full], [Enter(notice) || _ <- lists:seq(1, 3)]),
    Limited = length([limited || _ <- lists:seq(1, 200), Enter(debug) =:= limited]),
    #{rate := Rate, queue := Queue} = sderl_mon_probe_gate:lost(Gate),
    ?assertEqual(#{debug => Limited}, Rate),
    ?assertEqual(200 + 8, lists:sum(maps:values(Rate)) + lists:sum(maps:values(Queue)) + 5),
    ok = sderl_mon_probe_gate:settle(Gate),
    Other = sderl_mon_probe_gate:change(#{per_s => 1, burst => 1}, Gate),
    ?assertEqual([pass, limited],
                 [sderl_mon_probe_gate:enter(info, Other) || _ <- lists:seq(1, 2)]).

options_test_() ->
    Good = #{level => warning, per_s => 5, burst => 10},
    [?_assertEqual({ok, Good}, sderl_mon_probe_log:check(Good#{newer => 1})) |
     [?_assertEqual(error, sderl_mon_probe_log:check(Bad))
      || Bad <- [off, #{}, Good#{level := loud}, Good#{per_s := 0}, Good#{burst := 1.5},
                 Good#{per_s := 1 bsl 70}, maps:remove(level, Good)]]].

%% ---------------------------------------------------------------- the handler

%% Whatever is logged, it is told in few bytes of good text, soon, and nothing fails.
hostile_events_test_() ->
    Deep = lists:foldl(fun(_, Acc) -> [Acc] end, [], lists:seq(1, 100_000)),
    Big = binary:copy(<<"megabytes ">>, 500_000),
    Cases = [
        {string, "plain"}, {string, Big}, {string, <<255, 0, 200>>}, {string, [$a | Big]},
        {string, lists:duplicate(200_000, "deep")}, {string, not_chardata},
        {"~p ~s", [Big, Big]}, {"~p", []}, {"~p", [Deep]}, {"~s", [[16#202e, 0, 7]]},
        {"~ts~n~tp", [<<"\x{202e}ab\x{0}"/utf8>>, lists:seq(1, 300_000)]},
        {report, #{what => Big, deep => Deep}}, {report, [{a, Deep}, b]}, {report, []},
        {"~w", [maps:from_keys(lists:seq(1, 100_000), Big)]}
    ],
    [{timeout, 20, fun() ->
        {T, Bytes, M, P} = logged(#{level => error, msg => Msg, meta => meta()}),
        ?assert(is_binary(T) andalso Bytes =< 4000, {Bytes, T}),
        ?assertEqual(T, unicode:characters_to_binary(T)),
        ?assertEqual({~"sderl:log/1", true}, {M, is_binary(P)})
    end} || Msg <- Cases].

meta() -> #{time => 17, mfa => {sderl, log, 1}, pid => self(), gl => group_leader()}.

logged(Event) ->
    Gate = sderl_mon_probe_gate:new(#{per_s => 10, burst => 10}, 10),
    Began = erlang:monotonic_time(millisecond),
    ok = sderl_mon_probe_log:log(Event, #{config => #{collector => self(), gate => Gate}}),
    receive
        {logged, {error, _, M, P, Text}} ->
            ?assert(erlang:monotonic_time(millisecond) - Began < 10_000),
            {Text, byte_size(Text), M, P}
    after 0 -> none
    end.

reports_of_functions_test() ->
    Of = fun(Report) ->
        {Text, _, _, _} = logged(#{level => error, msg => {report, #{}},
                                   meta => (meta())#{report_cb => Report}}),
        Text
    end,
    ?assertEqual(~"said", Of(fun(_) -> {"~s", ["said"]} end)),
    ?assertEqual(~"said", Of(fun(_, _) -> "said" end)),
    %% A function that fails, and one that does not do what it is told.
    ?assert(is_binary(Of(fun(_) -> error(no) end))),
    ?assert(byte_size(Of(fun(_, _) -> lists:duplicate(100_000, $x) end)) =< 4000).

%% What is left out of the metadata; the monitoring's own words about the log.
metadata_test() ->
    {_, _, M, _} = logged(#{level => error, msg => {string, "x"}, meta => #{mfa => {a, b}}}),
    ?assertEqual(<<>>, M),
    ?assertEqual(none, logged(#{level => error, msg => {string, "x"},
                                meta => (meta())#{domain => [sderl_mon_own]}})).

%% Neither cookies nor what is named as a secret.
secrets_test_() ->
    Known = sderl_mon_probe_secret:new(),
    Hidden = fun(Text) -> element(1, sderl_mon_probe_secret:hidden(Text, Known)) end,
    [?_assertEqual({Text, Shown}, {Text, Hidden(Text)}) || {Text, Shown} <- [
        {~"state: #{password => <<\"p w\">>,a => 1}", ~"state: #{password => (hidden),a => 1}"},
        {~"{db_password,\"geheim \\\" 1\"}", ~"{db_password,(hidden)}"},
        {~"{\"api_key\": \"x\", \"b\": \"y\"}", ~"{\"api_key\": (hidden), \"b\": \"y\"}"},
        {~"secret => \"a\"\n   \"b\", c", ~"secret => (hidden), c"},
        {~"token => <<\"cut here", ~"token => (hidden)"},
        {~"token => \"cut here\\", ~"token => (hidden)"},
        {~"token => \"a\\\nb\", c", ~"token => (hidden), c"},
        {~"token=\"abc\", b", ~"token=(hidden), b"},
        %% Within a text that is printed itself, once and twice.
        {~"{got,<<\"{\\\"password\\\":\\\"geheim\\\",\\\"a\\\":\\\"b\\\"}\">>}",
         ~"{got,<<\"{\\\"password\\\":(hidden),\\\"a\\\":\\\"b\\\"}\">>}"},
        {~"\"{\\\"token\\\": \\\"a\\\\\\\"b\\\"}\"", ~"\"{\\\"token\\\": (hidden)}\""},
        {~"{\\\\\\\"token\\\\\\\":\\\\\\\"x\\\\\\\",", ~"{\\\\\\\"token\\\\\\\":(hidden),"},
        {~"<<\"{\\\"token\\\":\\\"x\"...>>", ~"<<\"{\\\"token\\\":(hidden)\"...>>"},
        {~"{\\\"token\\\":\\\"cut\\", ~"{\\\"token\\\":(hidden)"},
        {~"GET /x?token=abc&b=1 failed", ~"GET /x?token=(hidden)&b=1 failed"},
        {~"amqp://u:p@host/v and ://", ~"amqp://(hidden)@host/v and ://"},
        {~"{error,bad_token}, secrets: none", ~"{error,bad_token}, secrets: none"},
        {~"a token, \"b\"", ~"a token, (hidden)"},
        {~"nothing \"at\" all => \"x\"", ~"nothing \"at\" all => \"x\""}
    ]].

cookies_test_() ->
    {setup, fun() -> sderl_mon_probe_secret:new() end, fun(_) -> ok end, fun(Known) ->
        Hide = fun(Text, Cookie) ->
            element(1, sderl_mon_probe_secret:hidden(Text, with_cookie(Cookie, Known)))
        end,
        [?_assertEqual(~"a '(hidden)' b(hidden)",
                       Hide(~"a 'ABCDEFGHIJ' bABCDEFGHIJ", ~"ABCDEFGHIJ")),
         ?_assertEqual(~"cut: (hidden)", Hide(~"cut: ABCDEFG", ~"ABCDEFGHIJ")),
         ?_assertEqual(~"cut: ABC", Hide(~"cut: ABC", ~"ABCDEFGHIJ")),
         ?_assertEqual(~"{\"(hidden)\"...,(hidden)...} \"ABC\"...",
                       Hide(~"{\"ABCDEFG\"...,ABCD...} \"ABC\"...", ~"ABCDEFGHIJ")),
         ?_assertEqual(~"..., a... ..", Hide(~"..., a... ..", ~"ABCDEFGHIJ")),
         %% Of two the longer one goes first.
         ?_assertEqual(~"(hidden) (hidden)",
                       Hide(~"ABCDEFGHIJ ABCDEFGH", [~"ABCDEFGH", ~"ABCDEFGHIJ"])),
         ?_assertEqual(~"(hidden) xyz1 (hidden), äxyz", Hide(~"xyz xyz1 xyz, äxyz", ~"xyz")),
         ?_assertEqual(~"(hidden) aXb", Hide(~"a.b aXb", ~"a.b")),
         ?_assertEqual(~"x", Hide(~"x", ~"ABCDEFGHIJ")),
         ?_assertEqual(~"", Hide(~"", ~"ABCDEFGHIJ"))]
    end}.

%% A node of the tests may have no cookie of its own.
with_cookie(Cookie, Known) when is_binary(Cookie) -> with_cookie([Cookie], Known);
with_cookie(Cookies, Known) ->
    setelement(4, setelement(2, Known, erlang:monotonic_time(millisecond) + 600_000), Cookies).

%% However odd a text is, it is looked at in a moment, and becomes no longer than a text may be.
odd_secrets_test_() ->
    Known = sderl_mon_probe_secret:new(),
    [{timeout, 60, fun() ->
        Began = erlang:monotonic_time(millisecond),
        {Shown, _} = sderl_mon_probe_secret:hidden(Text, Known),
        ?assert(byte_size(Shown) =< 4000, byte_size(Shown)),
        ?assert(erlang:monotonic_time(millisecond) - Began < 10_000)
    end} || Text <- [binary:copy(Part, 4000 div byte_size(Part))
                     || Part <- [~"a", ~"secret", ~"secret\"", ~"secret=>", ~"token=\"", ~"://",
                                 ~"@", ~"://a:", ~"\\", ~"\"", ~" ", ~"password => \"\\", ~"ä",
                                 ~"token=a ", ~"token:\\\"", ~"..."]]].

%% Of more than may come each is counted.
counted_test() ->
    Gate = sderl_mon_probe_gate:new(#{per_s => 1, burst => 3}, 100),
    Config = #{config => #{collector => self(), gate => Gate}},
    [ok = sderl_mon_probe_log:log(#{level => warning, msg => {string, "x"}, meta => meta()}, Config)
     || _ <- lists:seq(1, 100)],
    Came = flush(0),
    #{rate := #{warning := Lost}} = sderl_mon_probe_gate:lost(Gate),
    ?assertEqual(100, Came + Lost),
    ?assert(Came >= 3, Came).

flush(N) -> receive {logged, _} -> flush(N + 1) after 0 -> N end.
