%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_desired_tests).
-moduledoc "From a checked file to instances, groups and what changes.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SHA_1, <<"aa">>).
-define(SHA_2, <<"bb">>).

file(Changes) ->
    Term = maps:merge(#{
        cluster => shop,
        providers => #{here => #{type => local, hosts => 3},
                       lab => #{type => ssh, lost_after_s => 60,
                                hosts => [#{name => a, address => ~"10.0.0.1"}]}},
        releases => #{one => release(), two => release(), unused => release()},
        domains => #{eu => #{provider => here, region => eu, labels => #{disk => ssd}},
                     near => #{provider => here, hosts => [~"h2", ~"h1"], rack => ~"r1"},
                     us => #{provider => lab}},
        families => #{web => family(one, [eu, us], 3), db => family(two, [near], 1)},
        groups => [#{name => ~"shop", nodes => [~"web*", ~"db1"], consistency => majority}]
    }, Changes),
    {ok, File} = sderl_ops_file:check(Term, ~"/base"),
    File.

release() ->
    #{folder => ~"rel", start => [~"bin/go", ~"{{id}}"], env => #{'A' => ~"1", 'B' => ~"2"}}.

family(Release, Domains, Count) ->
    #{release => Release, domains => Domains, count => Count, env => #{'B' => ~"3"}}.

desired(Changes) -> desired(Changes, ?SHA_1).

desired(Changes, Sum) ->
    {ok, Desired} = sderl_ops_desired:from(file(Changes), given(Sum)),
    Desired.

given(Sum) ->
    #{revision => 4,
      sums => #{~"one" => Sum, ~"two" => ?SHA_2},
      hosts => #{~"here" => [~"h1", ~"h2", ~"h3"], ~"lab" => [~"a"]}}.

instances_test() ->
    #{instances := Instances, hosts := Hosts, releases := Releases} = Desired = desired(#{}),
    ?assertEqual([~"db1", ~"web1", ~"web2", ~"web3"], lists:sort(maps:keys(Instances))),
    ?assertMatch({ok, #{id := ~"web2", index := 2, family := ~"web", release := ?SHA_1,
                        select := spread, node := undefined,
                        candidates := [~"here/h1", ~"lab/a", ~"here/h2", ~"here/h3"]}},
                 sderl_ops_desired:instance(~"web2", Desired)),
    ?assertMatch({ok, #{candidates := [~"here/h2", ~"here/h1"]}},
                 sderl_ops_desired:instance(~"db1", Desired)),
    ?assertEqual(none, sderl_ops_desired:instance(~"web4", Desired)),
    ?assertMatch(#{~"here/h1" := #{lost_after_s := never,
                                   labels := #{~"disk" := ~"ssd", ~"region" := ~"eu",
                                               ~"rack" := ~"r1"}},
                   ~"lab/a" := #{lost_after_s := 60, labels := #{}}}, Hosts),
    ?assertMatch(#{?SHA_1 := #{name := ~"one", folder := ~"/base/rel"}, ?SHA_2 := _}, Releases),
    ?assertEqual(2, map_size(Releases)).

settings_test() ->
    #{instances := #{~"web1" := One, ~"web2" := Two, ~"db1" := Db}} = Desired = desired(#{}),
    ?assertEqual(map_get(settings, One), map_get(settings, Two)),
    ?assertEqual(#{}, map_get(config, sderl_ops_desired:settings(One, Desired))),
    ?assertEqual(#{~"sderl" => #{~"labels" => #{~"rack" => ~"r1"}}},
                 map_get(config, sderl_ops_desired:settings(Db, Desired))),
    ?assertMatch(#{cluster := ~"shop", kind := release, start := [~"bin/go", ~"{{id}}"],
                   env := #{~"A" := ~"1", ~"B" := ~"3"}},
                 sderl_ops_desired:settings(One, Desired)).

groups_test() ->
    ?assertMatch(#{groups := [#{name := ~"shop", consistency := majority,
                                members := [~"web1", ~"web2", ~"web3", ~"db1"]}]}, desired(#{})).

pattern_test() ->
    Pattern = #{pattern => star, size => 3, gateways => 1, families => [web], name => orbit},
    #{groups := Groups} =
        desired(#{groups => Pattern,
                  families => #{web => family(one, [eu], 6), db => family(two, [near], 1)}}),
    ?assertEqual([~"orbit-hub", ~"orbit-1", ~"orbit-2"], [Name || #{name := Name} <- Groups]),
    ?assertEqual([~"web1", ~"web2", ~"web3", ~"web4", ~"web5", ~"web6"],
                 lists:usort(lists:append([Ids || #{members := Ids} <- Groups]))).

wildcards_test_() ->
    [?_assertMatch(#{groups := [#{members := Members}]},
                   desired(#{groups => [#{name => ~"g", nodes => [Text]}],
                             families => #{web => family(one, [eu], 12),
                                           db => family(two, [near], 1)}}))
     || {Text, Members} <- [{~"*", [~"db1" | ids(lists:seq(1, 12))]},
                            {~"w*1", ids([1, 11])},
                            {~"web1*", ids([1, 10, 11, 12])},
                            {~"*b*2", ids([2, 12])},
                            {~"**1*1", ids([11])}]].

ids(Indexes) -> [<<"web", (integer_to_binary(Index))/binary>> || Index <- Indexes].

problems_test_() ->
    [?_assertEqual(Sentence, sentence(Given))
     || {Given, Sentence} <- [
            {(given(?SHA_1))#{sums := #{~"two" => ?SHA_2}},
             "releases.one: it has not been packed and summed"},
            {(given(?SHA_1))#{hosts := #{~"here" => [~"h1"], ~"lab" => []}},
             "domains.near.hosts: \"h2\" is not a host that the provider here has"}
        ]].

sentence(Given) ->
    {error, [Problem]} = sderl_ops_desired:from(file(#{}), Given),
    unicode:characters_to_list(sderl_ops_file:format_error(Problem)).

%% ---------------------------------------------------------------- what changes

diff_test_() ->
    Web = family(one, [eu, us], 3),
    Change = fun(Family) ->
        desired(#{families => #{web => Family, db => family(two, [near], 1)}})
    end,
    [
        ?_assertEqual(Lines, lines(desired(#{}), New))
     || {New, Lines} <- [
            {desired(#{}), []},
            {Change(Web#{count := 5}),
             ["+ web4..web5: release one", "~ group shop: joined by web4..web5"]},
            {Change(Web#{count := 1}), ["- web2..web3", "~ group shop: left by web2..web3"]},
            {Change(Web#{release := two}), ["~ web1..web3: release one -> two"]},
            {desired(#{}, ~"cc"), ["~ web1..web3: release one (its content)"]},
            {Change(Web#{env := #{'C' => ~"x"}, labels => #{kind => web}}),
             ["~ web1..web3: settings (config sderl, env B C); labels {} -> {kind=web}"]},
            {Change(Web#{domains := [us]}), ["~ web1..web3: hosts"]},
            {Change(Web#{limits => #{per_host => 2}, restart => #{policy => never},
                         hooks => #{after_stop => [x]}}),
             ["~ web1..web3: settings (hooks); restart policy; limits"]},
            {desired(#{groups => [#{name => shop, nodes => [~"web*", ~"db1"]},
                                  #{name => one, nodes => [~"web1"], consistency => majority}],
                       upgrade => #{batch => 2}}),
             ["+ group one: 1 member, web1; consistency majority",
              "~ group shop: consistency majority -> available",
              "~ upgrade settings: batch 2, canaries 1, roll_back true, wait_s 10"]},
            {desired(#{upgrade => #{alarms => #{url => ~"http://m:1", token => #{env => ~"T"},
                                                tls_ca => ~"/ca.pem"}}}),
             ["~ upgrade settings: alarms of http://m:1 (token of the environment "
              "variable T, tls_ca /ca.pem), batch 1, canaries 1, roll_back true, wait_s 10"]},
            {desired(#{groups => []}), ["- group shop"]}
        ]
    ].

first_test() ->
    ?assertEqual(["+ db1: release two", "+ web1..web3: release one",
                  "+ group shop: 4 members, db1, web1..web3; consistency majority"],
                 lines(none, desired(#{}))).

lines(Old, New) -> [unicode:characters_to_list(Line) || Line <- sderl_ops_diff:lines(Old, New)].

ranges_test() ->
    ?assertEqual(["a1..a3", "a9..a11", "b2", "b"],
                 [unicode:characters_to_list(Range)
                  || Range <- sderl_ops_diff:ranges([~"a10", ~"a2", ~"b2", ~"a1", ~"b", ~"a9",
                                                     ~"a3", ~"a11", ~"a1"])]).

%% Nothing changes from a state to itself; what is added on the way there is removed on the way
%% back.
diff_property_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_diff(), [quiet, {numtests, 100}]))}.

prop_diff() ->
    ?FORALL({A, B}, {state(), state()},
            begin
                {Old, New} = {desired(A), desired(B)},
                names(add, Old, New) =:= names(remove, New, Old) andalso
                    names(change, Old, New) =:= names(change, New, Old) andalso
                    lines(Old, Old) =:= [] andalso
                    (lines(Old, New) =:= []) =:= (Old =:= New)
            end).

state() ->
    ?LET({Web, Db, Release, Env, Members},
         {range(1, 5), range(1, 5), oneof([one, two]), oneof([~"1", ~"2"]),
          oneof([~"web*", ~"*", ~"db1"])},
         #{families => #{web => (family(Release, [eu], Web))#{env => #{'E' => Env}},
                         db => family(two, [near], Db)},
           groups => [#{name => shop, nodes => [Members]}]}).

names(Change, Old, New) ->
    lists:sort(lists:append([[{What, Name} || Name <- Names]
                             || #{change := C, what := What, names := Names}
                                    <- sderl_ops_diff:changes(Old, New), C =:= Change])).

%% ---------------------------------------------------------------- what is laid out

template_test() ->
    Text = ~"-name {{node}} {{other} {{a.b}} {{id}}{{id}}",
    ?assertEqual([~"id", ~"node"], sderl_ops_template:used(Text)),
    ?assertEqual(~"-name web2@h {{other} {{a.b}} {{id}}{{id}}",
                 sderl_ops_template:render(Text, #{~"node" => ~"web2@h"})).

config_test() ->
    Config = #{~"app" => #{~"k'1" => [1, -2.5, ~"tü\"x\\", true, null],
                           ~"m" => #{~"a" => #{~"atom" => ~"it's"}, ~"s" => #{~"string" => ~"a\n"},
                                     ~"t" => #{~"tuple" => [#{~"atom" => ~"x"}, #{}]}}},
               ~"kernel" => #{}},
    ?assertEqual([], sderl_ops_config:check(Config, [])),
    Text = unicode:characters_to_list(sderl_ops_config:text(Config)),
    {ok, Tokens, _} = erl_scan:string(Text),
    ?assertEqual({ok, [{app, [{'k\'1', [1, -2.5, ~"tü\"x\\", true, undefined]},
                              {m, #{a => 'it\'s', s => "a\n", t => {x, #{}}}}]},
                       {kernel, []}]}, erl_parse:parse_term(Tokens)).

secret_test() ->
    Variable = "SDERL_TEST_" ++ os:getpid(),
    Secret = {env, list_to_binary(Variable)},
    {error, Unset} = sderl_ops_secret:resolve(Secret),
    ?assertNotEqual(nomatch, string:find(Unset, [Variable, " is not set"])),
    true = os:putenv(Variable, "geheim"),
    {ok, Value} = sderl_ops_secret:resolve(Secret),
    true = os:unsetenv(Variable),
    ?assertEqual(~"geheim", Value()),
    ?assertEqual(nomatch, string:find(io_lib:format("~p", [{ok, Value}]), "geheim")).

secret_file_test() ->
    sderl_ops_places:in_folder(fun(Folder) ->
        File = unicode:characters_to_binary(filename:join(Folder, "secret")),
        Resolve = fun(Bytes, Mode) ->
            ok = file:write_file(File, Bytes),
            ok = file:change_mode(File, Mode),
            case sderl_ops_secret:resolve({file, File}) of
                {ok, Value} -> Value();
                {error, Why} ->
                    lists:flatten(string:replace(unicode:characters_to_list(Why), File, "F"))
            end
        end,
        ?assertEqual(~"geheim", Resolve("geheim\r\n\n", 8#600)),
        ?assertEqual(<<255, 0>>, Resolve(<<255, 0, 10>>, 8#600)),
        ?assertEqual("the file F is empty", Resolve("\n", 8#600)),
        ?assertEqual("the file F may be read by other users: take that away (chmod o= FILE)",
                     Resolve("x", 8#644)),
        ?assertEqual("the file F is too large for a secret: at most 64 KiB",
                     Resolve(binary:copy(~"x", 65_537), 8#600)),
        ok = file:delete(File),
        {error, Gone} = sderl_ops_secret:resolve({file, File}),
        ?assertNotEqual(nomatch, string:find(Gone, "no such file or directory")),
        {error, Place} = sderl_ops_secret:resolve({file, list_to_binary(Folder)}),
        ?assertNotEqual(nomatch, string:find(Place, "is not a regular file"))
    end).
