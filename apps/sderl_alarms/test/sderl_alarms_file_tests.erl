-module(sderl_alarms_file_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- what is right

empty_test() ->
    ?assertEqual({ok, sderl_alarms_file:default()}, sderl_alarms_file:parse(~"{}")).

%% A file may say again what is built in.
built_in_test_() ->
    [{binary_to_list(Alarm), fun() ->
        Given = #{atom_to_binary(Key) => json_value(Value) || Key := Value <- Settings},
        {ok, #{rules := Rules}} =
            sderl_alarms_file:parse(json(#{rules => [Given]})),
        ?assertMatch(#{settings := Settings, on := true, where := all}, lists:last(Rules))
    end} || #{alarm := Alarm} = Settings <- sderl_alarms_builtin:rules()].

json_value(none) -> null;
json_value(Value) -> Value.

metrics_test() ->
    Names = sderl_alarms_metrics:names(),
    ?assertEqual(Names, lists:uniq(Names)),
    Findings = [Alarm || #{alarm := Alarm} <- sderl_alarms_builtin:findings()],
    Kinds = [atom_to_binary(Kind) || Kind <- sderl_mon_findings:kinds()],
    %% Each finding is an alarm, but for those that are told of each node by a rule.
    ?assertEqual([~"limit_near", ~"long_queue", ~"node_down"], lists:sort(Kinds -- Findings)),
    ?assertEqual([], Findings -- Kinds).

off_and_tags_test() ->
    {ok, #{rules := Rules}} = sderl_alarms_file:parse(json(#{rules => [
        #{alarm => node_down, families => [~"batch"], off => true},
        #{alarm => idle_link, off => false, tags => [~"net"]}
    ]})),
    ?assertMatch([#{alarm := ~"node_down", on := false, where := #{families := [~"batch"]}},
                  #{alarm := ~"idle_link", on := true, tags := [~"net"], kind := finding}],
                 lists:nthtail(length(Rules) - 2, Rules)).

%% Later rules of a new alarm have what the first one says.
new_alarm_test() ->
    {ok, #{rules := Rules}} = sderl_alarms_file:parse(json(#{rules => [
        #{alarm => many_names, metric => names, minor => 1000, remedy => ~"Look."},
        #{alarm => many_names, groups => [~"shop"], minor => 5000}
    ]})),
    ?assertMatch(#{settings := #{metric := ~"names", minor := 5000, remedy := ~"Look."}},
                 lists:last(Rules)).

routes_test() ->
    {ok, #{routes := [Hook, Program]}} = sderl_alarms_file:parse(json(#{routes => [
        #{name => ops, webhook => ~"https://hooks.example/alarms?x=1", secret_file => ~"/etc/key",
          severity => major, groups => [~"shop"]},
        #{name => pager, program => ~"/usr/bin/page", arguments => [~"-q"], timeout_s => 10}
    ]})),
    ?assertMatch(#{name := ~"ops", least := major, groups := [~"shop"], timeout_s := 5,
                   target := #{secret := {file, ~"/etc/key"}}}, Hook),
    ?assertMatch(#{target := #{program := ~"/usr/bin/page", arguments := [~"-q"]}}, Program),
    Alarm = #{alarm => ~"x", worst => minor, tags => [], nodes => [], groups => [~"shop"]},
    ?assertEqual([false, true, false],
                 [sderl_alarms_routes:wants(Hook, A)
                  || A <- [Alarm, Alarm#{worst := major}, Alarm#{worst := major, groups := []}]]).

secret_test() ->
    Name = "sderl-alarms-secret-" ++ integer_to_list(erlang:unique_integer([positive])),
    File = filename:join(os:getenv("TMPDIR", "/tmp"), Name ++ os:getpid()),
    try
        Read = fun() -> sderl_alarms_routes:read_secret({file, list_to_binary(File)}) end,
        ?assertMatch({error, <<_/binary>>}, Read()),
        ok = file:write_file(File, "short\n"),
        ?assertMatch({error, <<_/binary>>}, Read()),
        ok = file:write_file(File, "0123456789abcdef\n"),
        ?assertEqual({ok, ~"0123456789abcdef"}, Read()),
        ?assertEqual({ok, none}, sderl_alarms_routes:read_secret(none)),
        ?assertMatch({error, <<_/binary>>},
                     sderl_alarms_routes:read_secret({env, ~"SDERL_NO_SUCH_VARIABLE"}))
    after
        _ = file:delete(File)
    end.

patterns_test_() ->
    [?_assertEqual(Fits, sderl_alarms_rule:hits(Pattern, Text))
     || {Pattern, Text, Fits} <- [
         {~"web*", ~"web1@h", true}, {~"*@h", ~"web1@h", true}, {~"*", ~"", true},
         {~"a*b*c", ~"a-b-b-c", true}, {~"a*b*c", ~"acb", false}, {~"web", ~"web1", false},
         {~"*ab", ~"aab", true}, {~"ab*ab", ~"ab", false}, {~"**x", ~"x", true}
     ]].

families_test_() ->
    [?_assertEqual(Fits, sderl_alarms_rule:holds_for(#{families => [~"web"]}, node, {Node, []}))
     || {Node, Fits} <- [{~"web12@h", true}, {~"web-3@h", true}, {~"web@h", true},
                         {~"web_7@h", true}, {~"webs1@h", false}, {~"1@h", false}]].

%% ---------------------------------------------------------------- what is wrong

wrong_test_() ->
    [{binary_to_list(Text), fun() ->
        ?assertEqual({error, Errors}, sderl_alarms_file:parse(Text))
    end} || {Text, Errors} <- [
        {~"", [~"the text ends before the object does; is a bracket missing?"]},
        {~"[]", [~"a list is not the object of a file of rules; write {\"rules\": [...]}"]},
        {~"{\n\"rules\": [\n x]}", [~"line 3: this is not JSON (\"x\" cannot be here)"]},
        {~"{} x", [~"line 1: there is more behind the object; remove it"]},
        {~"{\"rules\": [{\"alarm\": \"a\", \"alarm\": \"b\"}]}",
         [~"the key \"alarm\" is there twice in one object; remove one"]},
        {~"{\"rule\": []}", [~"rule is not a key of a file of rules; did you mean rules?"]},
        {~"{\"rules\": {}}", [~"rules: an object is not a list; write [...]"]},
        {rule(~"\"minor\": 1.5"),
         [~"rules.1.minor: 1.5 can never be minor: from 0.95 on it is major; write less than that",
          <<"rules.1.minor: 1.5 can never be reached: process_share is at most 1; write at most "
            "that">>]},
        {rule(~"\"minor\": 0"),
         [<<"rules.1.minor: 0 is always reached: process_share is at least 0; write more than "
            "that">>]},
        {rule(~"\"when\": \"below\", \"major\": 0.2, \"minor\": 0.95"),
         [<<"rules.1.minor: 0.95 can never be cleared: more than 1.045 is needed and process_share "
            "is at most 1; write a smaller hysteresis or threshold">>]},
        {rule(~"\"when\": \"below\", \"major\": 0.8, \"minor\": 0.5"),
         [<<"rules.1.minor: 0.5 can never be minor: from 0.8 down it is major; write more than "
            "that">>]},
        {rule(~"\"minor\": null, \"major\": null"),
         [<<"rules.1.minor: without minor and major it can never be raised; write one of "
            "them">>]},
        {rule(~"\"metric\": \"proces_share\""),
         [<<"rules.1.metric: there is no metric \"proces_share\"; did you mean process_share?; "
            "bin/sderl alarms rules lists all">>]},
        {rule(~"\"hysteresis\": 1"),
         [<<"rules.1.hysteresis: 1 does not fit; write a share of the threshold, from 0 to less "
            "than 1">>]},
        {rule(~"\"for_s\": -1"), [~"rules.1.for_s: -1 does not fit; write seconds, 0 to 604800"]},
        {rule(~"\"mino\": 1"), [~"rules.1.mino: is not a key of a rule; did you mean minor?"]},
        {rule(~"\"nodes\": []"),
         [<<"rules.1.nodes: a list does not fit; write a list of 1 to 100 patterns, such as "
            "[\"web*\"]; leave it out for all">>]},
        {rule(~"\"tags\": [\"Ops\"]"),
         [<<"rules.1.tags: \"Ops\" does not fit; a tag is a text of 1 to 32 small letters, digits "
            "and _">>]},
        {~"{\"rules\": [{\"alarm\": \"mine\"}]}",
         [<<"rules.1.metric: is missing: the alarm is no built-in one, and needs a metric and a "
            "threshold (minor, major); bin/sderl alarms rules lists the metrics">>]},
        {~"{\"rules\": [{\"alarm\": \"Mine\"}]}",
         [<<"rules.1.alarm: \"Mine\" is not a name of an alarm; write small letters, digits and _, "
            "64 at most">>]},
        {~"{\"rules\": [7, {}]}",
         [~"rules.1: 7 is not a rule; write an object with alarm",
          ~"rules.2.alarm: is missing; write the name of a built-in alarm or a new one"]},
        {~"{\"rules\": [{\"alarm\": \"bypass\", \"minor\": 1}]}",
         [<<"rules.1.minor: does not go with bypass, which is a finding of the monitoring; only "
            "alarm, nodes, groups, families, off, tags do. Its thresholds are those of "
            "sderl_mon">>]},
        {~"{\"rules\": [{\"alarm\": \"time_zones\", \"nodes\": [\"a*\"]}]}",
         [<<"rules.1.nodes: utc_offsets is a number of groups, so the rule would hold nowhere; "
            "write groups">>]},
        {~"{\"rules\": [{\"alarm\": \"family_time_zones\", \"groups\": [\"a*\"]}]}",
         [<<"rules.1.groups: family_utc_offsets is a number of families, so the rule would hold "
            "nowhere; write families">>]},
        {<<"{\"rules\": [{\"alarm\": \"ports\", \"nodes\": [\"a*\"], \"minor\": 0.5},"
           "{\"alarm\": \"ports\", \"minor\": 0.6}]}">>,
         [<<"rules.1: it is never used, as rules.2 of ports comes later and holds everywhere; put "
            "it behind that one">>]},
        {route(~"\"webhook\": \"ftp://h/\""),
         [<<"routes.1.webhook: \"ftp://h/\" is not an address; write http://HOST/PATH or "
            "https://...">>]},
        {route(~"\"webhook\": \"https://me:pass@h/\""),
         [<<"routes.1.webhook: has a password in it, which logs would show; use a signature "
            "(secret_file)">>]},
        {route(~"\"program\": \"page\""),
         [~"routes.1.program: \"page\" is not a path; write one that begins with /"]},
        {route(~"\"webhook\": \"http://h/\", \"program\": \"/x\""),
         [<<"routes.1.program: a route has a webhook or a program; write two routes for both">>]},
        {route(~"\"severity\": \"high\", \"webhook\": \"http://h/\""),
         [<<"routes.1.severity: \"high\" is not a severity; write \"minor\" or \"major\"">>]},
        {<<"{\"routes\": [{\"name\": \"a\", \"program\": \"/a\"}, "
           "{\"name\": \"a\", \"program\": \"/b\"}]}">>,
         [~"routes: two have the name \"a\"; give each a name of its own"]}
    ]].

rule(Fields) -> <<"{\"rules\": [{\"alarm\": \"processes\", ", Fields/binary, "}]}">>.
route(Fields) -> <<"{\"routes\": [{\"name\": \"r\", ", Fields/binary, "}]}">>.

too_large_test() ->
    Rule = ~"{\"alarm\": \"ports\", \"off\": true, \"nodes\": [\"a\"]},",
    Many = iolist_to_binary(["{\"rules\": [", lists:duplicate(1001, Rule),
                             "{\"alarm\": \"ports\"}]}"]),
    ?assertEqual({error, [~"rules has more than 1000 entries; write fewer"]},
                 sderl_alarms_file:parse(Many)),
    ?assertEqual({error, [~"a number has more than 32 characters; write a shorter one"]},
                 sderl_alarms_file:parse(rule(iolist_to_binary(["\"minor\": ",
                                                                lists:duplicate(40, $1)])))).

no_file_test() ->
    ?assertEqual({error, [~"/nonexistent/rules.json: no such file or directory"]},
                 sderl_alarms_file:read(~"/nonexistent/rules.json")).

%% Whatever stands in a file is refused in sentences, or holds.
any_input_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(
        ?FORALL(Object, object(), begin
            case sderl_alarms_file:parse(json(Object)) of
                {ok, #{rules := Rules}} -> is_map(sderl_alarms_look:rules(Rules));
                {error, [_ | _] = Errors} -> lists:all(fun is_binary/1, Errors)
            end
        end),
        [{numtests, 1000}, {to_file, user}]
    ))}.

object() ->
    ?LET({Rules, Routes}, {list(rule_object()), list(route_object())},
         #{rules => Rules, routes => Routes}).

rule_object() ->
    fields([alarm, nodes, groups, families, off, metric, 'when', minor, major, for_s, hysteresis,
            cause, remedy, tags]).
route_object() ->
    fields([name, webhook, secret_file, secret_env, program, arguments, severity, timeout_s, nodes,
            alarms, tags]).

fields(Keys) ->
    ?LET(Pairs, list({oneof(Keys), any_value()}), maps:from_list(Pairs)).

any_value() ->
    oneof([
        oneof([~"ports", ~"bypass", ~"mine", ~"run_queue", ~"above", ~"below", ~"http://h/", ~"/x",
               ~"major", ~"*"]),
        integer(), float(), boolean(), null, list(oneof([~"a*", ~"op", 1])), #{}
    ]).

json(Term) -> iolist_to_binary(json:encode(Term)).
