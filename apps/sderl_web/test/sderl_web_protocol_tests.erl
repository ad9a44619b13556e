%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_protocol_tests).

%% The requests that browsers may send, and that no other is accepted.

-compile([export_all, nowarn_export_all]).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

decode(Request) -> sderl_web_protocol:decode(iolist_to_binary(json:encode(Request))).

good() ->
    [
        {#{op => watch, node => ~"a@h"}, {watch, #{node => ~"a@h"}}},
        {#{op => unwatch, node => ~"a@h"}, {unwatch, #{node => ~"a@h"}}},
        {#{op => pause}, {pause, #{}}},
        {#{op => resume}, {resume, #{}}},
        {#{op => range}, {range, #{}}},
        {#{op => live}, {live, #{}}},
        {#{op => recordings}, {recordings, #{}}},
        {#{op => at, t => 5.0}, {at, #{t => 5}}},
        {#{op => series, 'of' => #{kind => total}, from => 1, to => 2},
         {series, #{'of' => total, from => 1, to => 2, points => 300}}},
        {#{op => series, 'of' => #{kind => node, node => ~"n", metrics => [mem, util]}, from => 1,
           to => 2, points => 2},
         {series, #{'of' => {node, ~"n", [mem, util]}, from => 1, to => 2, points => 2}}},
        {#{op => series, 'of' => #{kind => link, from => ~"a", to => ~"b"}, from => 1, to => 2},
            {series, #{'of' => {link, ~"a", ~"b"}, from => 1, to => 2, points => 300}}},
        {#{op => series, 'of' => #{kind => gateway, node => ~"a"}, from => 1, to => 2},
            {series, #{'of' => {gateway, ~"a"}, from => 1, to => 2, points => 300}}},
        {#{op => traffic, by => edge, t => null},
         {traffic, #{by => edge, window_s => 60, t => now}}},
        {#{op => events}, {events, #{limit => 100}}},
        {#{op => events, kinds => [~"node_up"], before => 7},
         {events, #{limit => 100, kinds => [~"node_up"], before => 7}}},
        {#{op => names, group => ~"g"}, {names, #{group => ~"g", prefix => <<>>, limit => 100}}},
        {#{op => lookup, group => ~"g", name => ~"x"}, {lookup, #{group => ~"g", name => ~"x"}}},
        {#{op => process, node => ~"n", pid => ~"<0.1.0>"},
         {process, #{node => ~"n", pid => ~"<0.1.0>"}}},
        {#{op => trace, node => ~"n", on => true},
         {trace, #{node => ~"n", on => true, sample => 0.01, max_per_s => 1000, for_s => 600,
                   confirm => false}}},
        {#{op => alarms}, {alarms, #{limit => 100, offset => 0}}},
        {#{op => alarms, state => raised, severity => major, node => ~"a*", limit => 5},
         {alarms, #{state => raised, severity => major, node => ~"a*", limit => 5, offset => 0}}},
        {#{op => alarm, id => ~"x|n"}, {alarm, #{id => ~"x|n"}}},
        {#{op => acknowledge, id => ~"x|n", by => ~"ann"},
         {acknowledge, #{id => ~"x|n", by => ~"ann", text => ~""}}},
        {#{op => reopen, id => ~"x|n", by => ~"ann"}, {reopen, #{id => ~"x|n", by => ~"ann"}}},
        {#{op => comment, id => ~"x|n", by => ~"ann", text => ~"t"},
         {comment, #{id => ~"x|n", by => ~"ann", text => ~"t"}}},
        {#{op => silences}, {silences, #{}}},
        {#{op => silence, group => ~"g", for_s => 60, by => ~"ann"},
         {silence, #{group => ~"g", for_s => 60, by => ~"ann", text => ~""}}},
        {#{op => silence, alarm => ~"a", family => ~"web", for_s => 60, by => ~"ann"},
         {silence, #{alarm => ~"a", family => ~"web", for_s => 60, by => ~"ann", text => ~""}}},
        {#{op => alarms, family => ~"w*"}, {alarms, #{family => ~"w*", limit => 100, offset => 0}}},
        {#{op => unsilence, id => ~"s", by => ~"ann"}, {unsilence, #{id => ~"s", by => ~"ann"}}},
        {#{op => alarm_rules}, {alarm_rules, #{}}},
        {#{op => reload_rules}, {reload_rules, #{}}},
        {#{op => metrics}, {metrics, #{}}},
        {#{op => fronts}, {fronts, #{}}},
        {#{op => save_front, page => #{name => ~"x", window => ~"day", charts => []}},
         {save_front, #{page => #{name => ~"x", window => ~"day", charts => [], rev => 0}}}},
        {#{op => delete_front, name => ~"x", rev => 2}, {delete_front, #{name => ~"x", rev => 2}}},
        {#{op => series, 'of' => #{kind => over, metric => ~"mem", place => #{kind => cluster}},
           from => 1, to => 2},
         {series, #{'of' => {over, #{kind => ~"cluster"}, ~"mem"}, from => 1, to => 2,
                    points => 300}}},
        {#{op => open, recording => ~"x"}, {open, #{recording => ~"x"}}},
        {#{op => record, on => false}, {record, #{on => false}}}
    ].

good_test_() ->
    [?_assertEqual({ok, 3, Wanted}, decode(Request#{ref => 3})) || {Request, Wanted} <- good()].

ref_test() ->
    ?assertEqual({ok, ~"r", {pause, #{}}}, decode(#{ref => ~"r", op => pause})),
    ?assertEqual({ok, null, {pause, #{}}}, decode(#{op => pause})),
    ?assertMatch({refused, null, _}, decode(#{ref => [1], op => pause})),
    ?assertMatch({refused, null, _}, decode(#{ref => 1 bsl 60, op => pause})).

%% Every field of every request with values of the wrong types.
wrong_types_test() ->
    Other = [null, true, -1, 1.5, 1 bsl 60, ~"", ~"none of these", binary:copy(~"x", 5000), [], [1],
             [[]], #{}, #{kind => 1}, #{kind => ~"x"}],
    lists:foreach(
        fun({Request, _}) ->
            [
                case decode(Request#{Field := Value}) of
                    {ok, _, {Op, Args}} -> ?assert(is_atom(Op) andalso is_map(Args));
                    {refused, _, Why} -> ?assert(is_binary(unicode:characters_to_binary(Why)))
                end
             || Field <- maps:keys(Request), Value <- Other
            ]
        end,
        good()
    ).

%% The error names the field and says what it should be.
words_test_() ->
    Says = fun(Request) ->
        {refused, 1, Why} = decode(Request#{ref => 1}),
        unicode:characters_to_binary(Why)
    end,
    [
        ?_assertMatch(<<"op cannot be \"fly\": it is one of watch, ", _/binary>>,
                      Says(#{op => fly})),
        ?_assertMatch(<<"op is missing", _/binary>>, Says(#{})),
        ?_assertEqual(~"names: limit cannot be 501: it is a whole number from 1 to 500",
                      Says(#{op => names, group => ~"g", limit => 501})),
        ?_assertEqual(~"names: group is missing: it is a text of at most 255 bytes",
                      Says(#{op => names})),
        ?_assertEqual(~"names: there is no field \"grop\"; there are group, prefix, limit",
                      Says(#{op => names, grop => ~"g"})),
        ?_assertEqual(<<"series: of.kind cannot be \"x\": it is one of node, over, link, group, "
                        "edge, gateway, routed, total">>,
                      Says(#{op => series, 'of' => #{kind => x}, from => 1, to => 1}))
    ].

no_object_test_() ->
    [?_assertMatch({fatal, _}, sderl_web_protocol:decode(Text))
     || Text <- [
         ~"", ~"x", ~"1", ~"[]", ~"null", ~"{", ~"{}{}", ~"\"op\"", <<255>>,
         <<"{\"op\":\"", 255, "\"}">>,
         binary:copy(~"[", 60_000),
         %% A number that takes long to parse, and one beyond the range of floats.
         <<"{\"ref\":", (binary:copy(~"9", 60_000))/binary, "}">>,
         ~"{\"ref\":1e400}"
     ]].

deep_test() ->
    Deep = <<"{\"op\":\"watch\",\"node\":", (binary:copy(~"[", 30_000))/binary,
             (binary:copy(~"]", 30_000))/binary, "}">>,
    {fatal, Why} = sderl_web_protocol:decode(Deep),
    ?assert(iolist_size(Why) < 200),
    Level = fun(N) -> [binary:copy(~"[", N), binary:copy(~"]", N)] end,
    Most = sderl_web_parse:depth(),
    ?assertMatch({ok, _}, sderl_web_parse:value(iolist_to_binary(Level(Most)))),
    ?assertEqual({error, too_deep}, sderl_web_parse:value(iolist_to_binary(Level(Most + 1)))).

%% Whatever a browser sends is answered, and no word of it becomes an atom.
any_json_test_() ->
    {timeout, 60, fun() ->
        ok = sderl_prop:check("warm up", 50, prop_any_json()),
        Before = erlang:system_info(atom_count),
        ok = sderl_prop:check("any JSON is answered", 500, prop_any_json()),
        %% The requests had thousands of new words. Modules that are loaded meanwhile make a few
        %% atoms.
        ?assert(erlang:system_info(atom_count) - Before < 50)
    end}.

prop_any_json() ->
    ?FORALL(
        Request,
        request(),
        case sderl_web_protocol:decode(iolist_to_binary(json:encode(Request))) of
            {ok, Ref, {Op, Args}} ->
                is_atom(Op) andalso is_map(Args)
                    andalso answered(sderl_web_protocol:reply(Ref, ~"1"));
            {refused, Ref, Why} -> answered(sderl_web_protocol:refusal(Ref, bad_request, Why));
            {fatal, Why} -> answered(sderl_web_protocol:error_message(bad_request, Why))
        end
    ).

%% One of the valid requests, with fields replaced or added.
request() ->
    ?LET({I, More}, {range(0, length(good())), list({oneof([key(), text()]), json(3)})},
         maps:merge(base(I), maps:from_list(More))).

answered(Message) ->
    #{~"type" := Type} = json:decode(iolist_to_binary(Message)),
    lists:member(Type, [~"reply", ~"error"]).

key() ->
    oneof([op, ref, node, group, 'of', kind, kinds, from, to, t, by, limit, points, prefix, name,
           pid, on, sample, max_per_s, confirm, recording, window_s, before]).

base(0) -> #{};
base(I) -> element(1, lists:nth(I, good())).

json(0) ->
    oneof([null, boolean(), integer(), float(), text(),
           ?LET(I, range(1, length(good())), maps:get(op, base(I)))]);
json(Size) ->
    ?LAZY(oneof([json(0), resize(4, list(json(Size - 1))),
                 ?LET(Pairs, resize(4, list({text(), json(Size - 1)})), maps:from_list(Pairs))])).

text() ->
    ?LET(Chars, list(oneof([range(32, 126), range(160, 1000)])),
         unicode:characters_to_binary(Chars)).

%% Random bytes, which are hardly ever JSON.
any_bytes_test_() -> sderl_prop:eunit("any bytes are answered", 500, fun prop_any_bytes/0).

prop_any_bytes() ->
    ?FORALL(Bytes, binary(), case sderl_web_protocol:decode(Bytes) of
        {fatal, _} -> true;
        {refused, _, _} -> true
    end).
