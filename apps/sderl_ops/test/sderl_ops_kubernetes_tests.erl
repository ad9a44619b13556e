%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_kubernetes_tests).
-moduledoc "A file for Kubernetes: what is refused, what is rendered, and what the command writes.".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_ops_places, [in_folder/1]).

-define(VERSIONS, ["1.28", "1.33", "1.37"]).

file(Changes) ->
    maps:merge(#{
        cluster => shop,
        providers => #{k8s => provider(#{})},
        releases => #{one => release(#{})},
        domains => #{a => #{provider => k8s, region => eu, rack => 'eu-a'},
                     b => #{provider => k8s, region => eu, rack => 'eu-b'}},
        families => #{web => family(#{count => 3}), db => family(#{count => 2})}
    }, Changes).

provider(Changes) -> maps:merge(#{type => kubernetes}, Changes).

release(Changes) ->
    maps:merge(#{image => ~"registry.example.net:5000/shop:1.4", start => [~"bin/shop", ~"start"]},
               Changes).

family(Changes) -> maps:merge(#{release => one, domains => [a, b], count => 1}, Changes).

render(Changes) -> render(Changes, false).

render(Changes, IsCanary) ->
    {ok, File} = sderl_ops_file:check(file(Changes), ~"/base"),
    sderl_ops_kubernetes:render(File, #{canary => IsCanary}).

objects(Changes) ->
    {ok, Parts, _} = render(Changes),
    lists:append([Objects || {_, Objects} <- Parts]).

object(Kind, Name, Objects) ->
    [Object] = [Object || #{~"kind" := Of, ~"metadata" := #{~"name" := Called}} = Object <- Objects,
                          Of =:= Kind, Called =:= Name],
    Object.

pod(Changes) ->
    #{~"spec" := #{~"template" := #{~"spec" := Pod}}} =
        object(~"StatefulSet", ~"shop-web", objects(Changes)),
    Pod.

container(Changes) ->
    #{~"containers" := [Container]} = pod(Changes),
    Container.

web(Changes) -> #{families => #{web => family(Changes)}}.

%% ---------------------------------------------------------------- what is refused

refused_test_() ->
    [{Sentence, ?_assertEqual([Sentence], sentences(Changes))}
     || {Changes, Sentence} <- [
            {#{cluster => 'my_shop', families => #{web => family(#{})}},
             "families.web: Kubernetes cannot call anything \"my_shop-web\", which is the "
             "cluster's name and this one: small letters, digits and -, and no - at the end"},
            {#{families => #{'web-' => family(#{})}},
             "families.web-: Kubernetes cannot call anything \"shop-web-\", which is the cluster's "
             "name and this one: small letters, digits and -, and no - at the end"},
            {#{cluster => 'Shop', families => #{web => family(#{})}},
             "cluster: \"Shop\" is not the name of a cluster: a small letter, then small letters, "
             "digits, _ and -, at most 63"},
            {#{families => #{long(48) => family(#{})}},
             "families." ++ [$a || _ <- lists:seq(1, 48)] ++ ": \"shop-"
             ++ [$a || _ <- lists:seq(1, 48)] ++ "\", the cluster's name and this one, has 53 "
             "characters, and a StatefulSet of Kubernetes has at most 52"},
            {#{providers => #{k8s => provider(#{namespace => ~"My_ns"})}},
             "providers.k8s.namespace: \"My_ns\" is not the name of a namespace of Kubernetes: "
             "small letters, digits and -, at most 63, - not at an end"},
            {#{providers => #{k8s => provider(#{labels => #{~"app.kubernetes.io/part-of" => x}})}},
             "providers.k8s.labels.\"app.kubernetes.io/part-of\": that label is set by what is "
             "rendered: choose another name"},
            {#{releases => #{one => #{start => [~"x"]}}},
             "releases.one: one of the keys archive, folder, code, image, running is missing: it "
             "says what kind of release this is"},
            {#{releases => #{one => #{folder => ~"rel", start => [~"x"]}}},
             "releases.one.folder: Kubernetes runs images: say \"image\" instead"},
            {#{releases => #{one => release(#{image => ~"Shop:1"})}},
             "releases.one.image: \"Shop:1\" is not an image, such as "
             "registry.example.net/shop:1.4"},
            {#{releases => #{one => release(#{files => #{~"a" => ~"b"}})}},
             "releases.one.directory is missing: it is the folder that has the release in the "
             "image, in which files are put"},
            {#{releases => #{one => release(#{env => #{'A' => #{env => ~"B"}}})}},
             "releases.one.env.A: the environment variable B is read where operations run, and no "
             "secret is rendered: make a Secret of Kubernetes, and name its key, as {\"secret\": "
             "\"NAME/KEY\"}"},
            {#{cookie => #{file => ~"c"}},
             "cookie: the file /base/c is read where operations run, and no secret is rendered: "
             "make a Secret of Kubernetes, and name its key, as {\"secret\": \"NAME/KEY\"}"},
            {#{names => short},
             "names: on Kubernetes nodes are called after the DNS names of their pods, which have "
             "dots: leave it out, or say \"long\""},
            {#{providers => #{k8s => provider(#{}), here => #{type => local, hosts => 1}}},
             "providers.k8s: it is Kubernetes, which starts its nodes itself, and here is not: put "
             "each into a file of its own (they may name the same cluster and cookie)"},
            {#{domains => #{a => #{provider => k8s, hosts => [~"h1"]}, b => #{provider => k8s}}},
             "domains.a.hosts: Kubernetes chooses the machines: leave it out, and say which ones "
             "by region, rack and labels"},
            {#{domains => #{a => #{provider => k8s, rack => ~"r 1"}, b => #{provider => k8s}}},
             "domains.a.rack: \"r 1\" is not the value of a label of Kubernetes' nodes: letters, "
             "digits, _ - and ., at most 63"},
            {#{providers => #{k8s => provider(#{}), other => provider(#{namespace => x})},
               domains => #{a => #{provider => k8s}, b => #{provider => other}},
               families => #{web => family(#{})}},
             "families.web.domains: they are of several providers: a family is in one namespace"},
            {web(#{nodes => [~"a@h"]}),
             "families.web.nodes: nodes that run already cannot become pods: leave it out"},
            {web(#{restart => #{policy => never}}),
             "families.web.restart.policy: Kubernetes always starts the nodes of a StatefulSet "
             "again: leave it out"},
            {web(#{limits => #{per_host => 2}}),
             "families.web.limits.per_host: Kubernetes can keep nodes apart, and not count them: "
             "say 1, or leave it out (cpu and memory limit them too)"},
            {web(#{limits => #{memory => ~"much"}}),
             "families.web.limits.memory: \"much\" is not a size of memory, such as 512Mi"},
            {web(#{hooks => #{after_stop => [~"x"]}}),
             "families.web.hooks.after_stop: Kubernetes runs nothing where a node has stopped: do "
             "it in before_stop"}
        ]].

long(Count) -> list_to_binary(lists:duplicate(Count, $a)).

sentences(Changes) ->
    {error, Problems} = sderl_ops_file:check(file(Changes), ~"/base"),
    [unicode:characters_to_list(sderl_ops_file:format_error(Problem)) || Problem <- Problems].

%% The name of a node contains all other names, and may be too long.
long_node_test() ->
    Name = long(45),
    [Sentence] = sentences(#{
        providers => #{k8s => provider(#{namespace => long(63),
                                         dns_domain => <<(long(60))/binary, ".local">>})},
        families => #{Name => family(#{})}
    }),
    ?assertMatch({match, _}, re:run(Sentence, "has 2[78][0-9] characters, and Erlang allows 255: "
                                              "shorten the names$")).

%% What only Kubernetes has.
elsewhere_test_() ->
    Local = #{providers => #{here => #{type => local, hosts => 1}},
              domains => #{a => #{provider => here}, b => #{provider => here}},
              families => #{web => family(#{})}},
    Folder = #{folder => ~"rel", start => [~"x"]},
    Pods = "a Secret of Kubernetes is read by pods alone: name a variable ({\"env\": "
           "\"VARIABLE\"}) or a file ({\"file\": \"PATH\"})",
    [?_assertEqual([Sentence], sentences(maps:merge(Local, Changes)))
     || {Changes, Sentence} <- [
            {#{}, "families.web.release: one is an image, which runs on Kubernetes alone: its "
                  "provider is none"},
            {#{releases => #{one => Folder}, cookie => #{secret => ~"a/b"}}, "cookie: " ++ Pods},
            {#{releases => #{one => Folder#{env => #{'A' => #{secret => ~"a/b"}}}}},
             "releases.one.env.A: " ++ Pods},
            {#{releases => #{one => Folder},
               families => #{web => family(#{limits => #{cpu => ~"1"}})}},
             "families.web.limits.cpu: that is for Kubernetes: a host is not divided"}
        ]].

%% Found when it is rendered, as templates are read by then.
not_in_files_test() ->
    Files = #{directory => ~"/opt/shop", files => #{~"vm.args" => ~"-name {{node}}"}},
    {error, [Problem]} = render(#{releases => #{one => release(Files)},
                                  families => #{web => family(#{})}}),
    ?assertEqual("releases.one.files.\"vm.args\": {{node}} is not the same in all pods, and a file "
                 "is: put it into env, and have the file read that",
                 unicode:characters_to_list(sderl_ops_file:format_error(Problem))).

too_large_test() ->
    Text = binary:copy(~"x", 600_000),
    Files = #{directory => ~"/opt/shop", files => #{~"a" => Text, ~"b" => Text}},
    {error, [Problem]} = render(#{releases => #{one => release(Files)},
                                  families => #{web => family(#{})}}),
    ?assertMatch({match, _}, re:run(sderl_ops_file:format_error(Problem),
                                    "^families.web: its configuration has 12[0-9]{5} bytes, and a "
                                    "ConfigMap of Kubernetes holds 1000000")).

%% ---------------------------------------------------------------- what is rendered

%% It is valid by the schemas of several versions, and a parser of YAML reads the same objects.
valid_test_() ->
    {timeout, 300, fun() ->
        in_folder(fun(Folder) ->
            lists:foreach(fun({Index, Changes}) ->
                Objects = objects(Changes),
                Yaml = filename:join(Folder, integer_to_list(Index) ++ ".yaml"),
                ok = file:write_file(Yaml, [["---\n", sderl_ops_yaml:document(Object)]
                                            || Object <- Objects]),
                case sderl_ops_python:run([Yaml | ?VERSIONS]) of
                    skipped -> ok;
                    Result -> ?assertEqual({0, <<>>}, Result)
                end,
                ?assertEqual([maps:get(~"kind", O) || O <- Objects], kinds(Yaml))
            end, lists:enumerate([#{}, everything()]))
        end)
    end}.

kinds(Yaml) ->
    {ok, Text} = file:read_file(Yaml),
    {match, Kinds} = re:run(Text, "^kind: (\\w+)$", [global, multiline,
                                                     {capture, all_but_first, binary}]),
    lists:append(Kinds).

%% Each key that the file may have for Kubernetes.
everything() ->
    #{
        cookie => #{secret => ~"secrets/cookie"},
        providers => #{k8s => provider(#{
            namespace => ~"prod", dns_domain => ~"k.example", port => 9200, ready => well,
            labels => #{~"example.com/team" => ~"sales"},
            topology => #{rack => ~"example.com/rack"},
            storage => #{size => ~"2Gi", class => ~"fast.ssd"}, service_account => ~"shop",
            pull_secret => ~"registry", run_as => 1000, network_policy => true
        })},
        releases => #{one => release(#{
            directory => ~"/opt/shop", stop => [~"bin/shop", ~"stop"],
            check => [~"bin/shop", ~"{{id}}"], start_timeout_s => 33, stop_timeout_s => 7,
            files => #{~"etc/a.sh" => ~"#!/bin/sh\necho {{cluster}}\n",
                       ~"etc/key" => #{secret => ~"keys.shop/private"}},
            env => #{'A' => ~"{{node}} $(B) {{host}}", 'B' => #{secret => ~"database/url"}}
        })},
        families => #{
            web => family(#{count => 6, limits => #{cpu => ~"500m", memory => ~"1Gi"},
                            labels => #{kind => web},
                            hooks => #{before_stop => [~"it's", ~"{{index}}"]}}),
            db => family(#{count => 3, limits => #{per_host => 1}}),
            batch => family(#{count => 2, select => pack, domains => [a]})
        },
        groups => [#{name => 'shop', nodes => [~"web*"]},
                   #{name => ~"it's ours", nodes => [~"db1", ~"db2"], consistency => majority}],
        upgrade => #{wait_s => 30, batch => 2}
    }.

same_each_time_test() ->
    ?assertEqual(objects(everything()), objects(everything())).

no_secret_is_rendered_test() ->
    Text = iolist_to_binary([sderl_ops_yaml:document(Object) || Object <- objects(everything())]),
    ?assertEqual([], [Kind || #{~"kind" := Kind} <- objects(everything()), Kind =:= ~"Secret"]),
    ?assertNotEqual(nomatch, binary:match(Text, ~"secretKeyRef")).

environment_test() ->
    #{~"env" := Env, ~"workingDir" := ~"/opt/shop", ~"args" := [~"bin/shop", ~"start"]} =
        container(everything()),
    Values = #{Name => maps:get(~"value", Variable, maps:get(~"valueFrom", Variable, none))
               || #{~"name" := Name} = Variable <- Env},
    ?assertMatch(#{~"A" := <<"web$(SDERL_OPS_INDEX)@$(SDERL_OPS_POD).shop-web.prod.svc.k.example "
                             "$$(B) $(SDERL_OPS_HOST)">>,
                   ~"B" := #{~"secretKeyRef" := #{~"name" := ~"database", ~"key" := ~"url"}},
                   ~"RELEASE_COOKIE" := #{~"secretKeyRef" := #{~"name" := ~"secrets",
                                                               ~"key" := ~"cookie"}},
                   ~"SDERL_OPS_PORT" := ~"9200"}, Values),
    %% A variable stands after those that it refers to.
    Names = [Name || #{~"name" := Name} <- Env],
    ?assert(lists:member(~"SDERL_OPS_INDEX",
                         lists:takewhile(fun(Name) -> Name =/= ~"SDERL_OPS_NODE" end, Names))),
    ?assertEqual(length(Names), length(lists:usort(Names))).

%% A variable of the file replaces a default one.
own_environment_test() ->
    #{~"env" := Env} = container(web(#{env => #{'HOME' => ~"/root"}})),
    ?assertEqual([~"/root"], [Value || #{~"name" := ~"HOME", ~"value" := Value} <- Env]).

commands_test() ->
    #{~"data" := Data} = object(~"ConfigMap", ~"shop-web", objects(everything())),
    ?assertMatch(#{~"before_stop" := ~"exec 'it'\\''s' ''\"$SDERL_OPS_INDEX\"''\n",
                   ~"check" := ~"exec 'bin/shop' 'web'\"$SDERL_OPS_INDEX\"''\n",
                   ~"file-1" := ~"#!/bin/sh\necho shop\n",
                   ~"vm.args" := ~"-name {{node}}\n-start_epmd false\n-erl_epmd_port 9200\n"},
                 Data).

configuration_test() ->
    #{~"data" := #{~"sys.config" := Text, ~"groups" := Groups}} =
        object(~"ConfigMap", ~"shop-db", objects(everything())),
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
    {ok, Config} = erl_parse:parse_term(Tokens),
    ?assertEqual([{kernel, [{connect_all, false}]},
                  {sderl, [{await, {all, 30000}}, {cluster, "shop"},
                           {consistency, #{'it\'s ours' => majority}},
                           {labels, #{region => ~"eu"}}]}], Config),
    ?assertEqual(<<"'it\\'s ours'\t'db1@shop-db-1.shop-db.prod.svc.k.example',"
                   "'db2@shop-db-2.shop-db.prod.svc.k.example'\n">>, Groups).

%% A change that only other nodes need restarts no node.
restarts_test_() ->
    Of = fun(Changes) ->
        #{~"spec" := #{~"template" := Template}} =
            object(~"StatefulSet", ~"shop-web", objects(Changes)),
        Template
    end,
    Groups = fun(Nodes) -> [#{name => shop, nodes => Nodes}] end,
    With = fun(Count, Nodes) ->
        Of(#{families => #{web => family(#{count => Count}), db => family(#{count => 2})},
             groups => Groups(Nodes)})
    end,
    Before = With(3, [~"web*"]),
    [
        ?_assertEqual(Before, With(4, [~"web*"])),
        ?_assertEqual(Before, With(3, [~"web*", ~"db1"])),
        ?_assertNotEqual(Before, With(3, [~"web1"])),
        ?_assertNotEqual(Before, Of(#{})),
        ?_assertNotEqual(Before, Of(#{groups => Groups([~"web*"]),
                                      families => #{web => family(#{count => 3,
                                                                    labels => #{a => b}})}}))
    ].

where_test() ->
    #{~"affinity" := #{~"nodeAffinity" := Nodes, ~"podAntiAffinity" := _},
      ~"topologySpreadConstraints" := Spread} =
        pod(web(#{limits => #{per_host => 1}})),
    #{~"requiredDuringSchedulingIgnoredDuringExecution" := Required} = Nodes,
    #{~"nodeSelectorTerms" := [A, _]} = Required,
    ?assertEqual(#{~"matchExpressions" =>
                       [#{~"key" => ~"topology.kubernetes.io/region", ~"operator" => ~"In",
                          ~"values" => [~"eu"]},
                        #{~"key" => ~"topology.kubernetes.io/zone", ~"operator" => ~"In",
                          ~"values" => [~"eu-a"]}]}, A),
    ?assertEqual([~"topology.kubernetes.io/zone", ~"kubernetes.io/hostname"],
                 [Key || #{~"topologyKey" := Key} <- Spread]).

%% A domain without labels allows all machines.
anywhere_test() ->
    Pod = pod(#{domains => #{a => #{provider => k8s, rack => x}, b => #{provider => k8s}}}),
    ?assertNot(is_map_key(~"affinity", Pod)).

canary_test_() ->
    Upgrade = fun(Canaries) -> #{upgrade => #{canaries => Canaries}} end,
    [?_assertEqual(Partition, partition(render(Upgrade(Canaries), IsCanary)))
     || {Canaries, IsCanary, Partition} <- [{1, false, 0}, {1, true, 2}, {0, true, 3},
                                            {9, true, 0}]].

partition({ok, Parts, _}) ->
    #{~"spec" := #{~"updateStrategy" := #{~"rollingUpdate" := #{~"partition" := Partition}}}} =
        object(~"StatefulSet", ~"shop-web", lists:append([Objects || {_, Objects} <- Parts])),
    Partition.

%% ---------------------------------------------------------------- budgets

budgets_test_() ->
    [?_assertEqual(Expected, budgets(Groups))
     || {Groups, Expected} <- [
            {[], [{families, [~"db"], 2}, {families, [~"web"], 2}]},
            {[{a, [~"web*"]}], [{families, [~"db"], 2}, {families, [~"web"], 1}]},
            {[{a, [~"web*", ~"db*"]}], [{families, [~"db", ~"web"], 1}]},
            {[{a, [~"web1", ~"web2"]}, {b, [~"web3", ~"db1", ~"web4"]}],
             [{instances, [~"db1", ~"web3", ~"web4"], 2}, {instances, [~"web1", ~"web2"], 1}]},
            {[{a, [~"web1", ~"web2"]}, {b, [~"web2", ~"web3"]}, {c, [~"web4", ~"web3"]}],
             [{families, [~"db"], 2}, {families, [~"web"], 1}]},
            {[{a, [~"web1"]}], [{families, [~"db"], 2}]}
        ]].

budgets(Groups) -> sderl_ops_budgets:budgets(desired(Groups), 2).

desired(Groups) ->
    {ok, File} = sderl_ops_file:check(
        file(#{families => #{web => family(#{count => 4}), db => family(#{count => 2})},
               groups => [#{name => Name, nodes => Nodes} || {Name, Nodes} <- Groups]}), ~"/base"),
    {ok, Desired} = sderl_ops_desired:from(File, #{revision => 0, sums => #{~"one" => ~"x"},
                                                   hosts => #{}}),
    Desired.

%% A pod in two budgets cannot be evicted at all.
no_pod_is_in_two_test() ->
    Budgets = budgets([{a, [~"web1", ~"web2"]}, {b, [~"web3", ~"db1"]}, {c, [~"db1", ~"web4"]}]),
    Ids = lists:append([Ids || {instances, Ids, _} <- Budgets]),
    ?assertEqual(lists:usort(Ids), lists:sort(Ids)).

selectors_test() ->
    Objects = objects(#{groups => [#{name => a, nodes => [~"web1", ~"db2"]}]}),
    ?assertMatch(#{~"spec" := #{~"minAvailable" := 1, ~"selector" := #{~"matchExpressions" := [
                       #{~"key" := ~"statefulset.kubernetes.io/pod-name",
                         ~"values" := [~"shop-db-2", ~"shop-web-1"]}]}}},
                 object(~"PodDisruptionBudget", ~"shop-budget-1", Objects)).

notes_test_() ->
    [?_assertEqual(Expected, [unicode:characters_to_list(Note)
                              || Note <- sderl_ops_budgets:notes(desired(Groups))])
     || {Groups, Expected} <- [
            {[{a, [~"web*"]}], []},
            {[{a, [~"web1"]}],
             ["the group a has one member, and is gone while that is evicted or replaced"]},
            {[{a, [~"web1", ~"web2"]}, {b, [~"web2", ~"web3"]}, {c, [~"web3", ~"web4"]}],
             ["the groups a and b have only web2 in common, and no way between them while that is "
              "evicted or replaced (and so 1 more pairs of groups)"]},
            {[{a, [~"web1", ~"db1"]}],
             ["the families db, web share groups, and Kubernetes replaces nodes of several "
              "StatefulSets side by side: apply one family at a time, and wait for it (kubectl "
              "rollout status)"]}
        ]].

told_test() ->
    {ok, _, Notes} = render(#{upgrade => #{batch => 2},
                              families => #{web => family(#{restart => #{most => 9}})}}),
    ?assertMatch(["the cookie of shop is made once: " ++ _,
                  "upgrade.batch: a StatefulSet replaces one node at a time, and not 2",
                  "families.web.restart: Kubernetes never gives a node up; it waits longer between "
                  "starts, at most 5 minutes"],
                 [unicode:characters_to_list(Note) || Note <- Notes]).

%% ---------------------------------------------------------------- the command

command_test() ->
    in_folder(fun(Folder) ->
        File = write(Folder, "f.term", file(#{})),
        {help, Stream} = sderl_ops_command:run(["render", File]),
        ?assertEqual(6, count(Stream, "\nkind: ") - count(Stream, "\nkind: PodDisruptionBudget")),
        Out = filename:join(Folder, "out"),
        {help, Wrote} = sderl_ops_command:run(["render", File, "--out", Out]),
        ?assertEqual("wrote O/cluster.yaml, O/family-db.yaml, O/family-web.yaml\n",
                     flat(Wrote, Out, "O")),
        Texts = [Text || Name <- lists:sort(filelib:wildcard(Out ++ "/*")),
                         {ok, Text} <- [file:read_file(Name)]],
        ?assertEqual(unicode:characters_to_binary(Stream), iolist_to_binary(
            lists:join("---\n", Texts)))
    end).

%% Rendering again replaces the rendered files, and touches no others.
folder_test() ->
    in_folder(fun(Folder) ->
        Out = filename:join(Folder, "out"),
        Render = fun(Changes) ->
            File = write(Folder, "f.term", file(Changes)),
            {What, Text} = sderl_ops_command:run(["render", File, "--out", Out]),
            {What, flat(Text, Out, "O")}
        end,
        {help, _} = Render(#{}),
        {help, "wrote O/cluster.yaml, O/family-web.yaml\n"} =
            Render(#{families => #{web => family(#{})}}),
        ?assertEqual(["cluster.yaml", "family-web.yaml"], lists:sort(filelib:wildcard("*", Out))),
        ?assertEqual({error, "--out: O/cluster.yaml was not rendered for the cluster other: take "
                             "another folder"}, Render(#{cluster => other})),
        Foreign = filename:join(Out, "family-db.yaml"),
        ok = file:write_file(Foreign, "mine\n"),
        ?assertEqual({error, "--out: O/family-db.yaml was not rendered for the cluster shop: take "
                             "another folder"}, Render(#{})),
        ?assertEqual({ok, ~"mine\n"}, file:read_file(Foreign)),
        ok = file:write_file(filename:join(Folder, "file"), ""),
        {error, Text} = sderl_ops_command:run(["render", filename:join(Folder, "f.term"), "--out",
                                               filename:join([Folder, "file", "x"])]),
        ?assertMatch({match, _}, re:run(Text, "^--out: .* cannot be written: "))
    end).

not_for_it_test() ->
    in_folder(fun(Folder) ->
        File = write(Folder, "f.term", file(#{})),
        Run = fun(Do) ->
            {error, Text} = sderl_ops_command:run([Do, File, "--dir", Folder]),
            unicode:characters_to_list(Text)
        end,
        ?assertEqual("the file is for Kubernetes, and the service does nothing there: \"bin/sderl "
                     "ops render FILE --out DIR\" writes what \"kubectl apply -f DIR\" takes",
                     Run("apply")),
        ?assertEqual("the file is for Kubernetes, and the service does nothing there: what would "
                     "change is told by \"bin/sderl ops render FILE | kubectl diff -f -\"",
                     Run("plan")),
        Local = write(Folder, "l.term", #{cluster => shop, domains => #{a => #{provider => here}},
            providers => #{here => #{type => local, hosts => 1}},
            releases => #{one => #{folder => ~"r", start => [~"x"]}},
            families => #{web => #{release => one, domains => [a], count => 1}}}),
        ?assertEqual({error, "none of the file's providers is Kubernetes: \"bin/sderl ops apply "
                             "FILE\" makes the cluster as it says"},
                     sderl_ops_command:run(["render", Local]))
    end).

write(Folder, Name, Term) ->
    File = filename:join(Folder, Name),
    ok = file:write_file(File, io_lib:format("~tp.~n", [Term])),
    File.

flat(Text, From, To) ->
    lists:flatten(string:replace(unicode:characters_to_list(Text), From, To, all)).

count(Text, Part) -> length(string:split(unicode:characters_to_list(Text), Part, all)) - 1.

%% It has no hosts, so that its images are not packed for any.
not_kept_by_the_service_test() ->
    {ok, File} = sderl_ops_file:check(file(#{}), ~"/base"),
    {error, [Why]} = sderl_ops_revision:prepare(File, "/nonexistent"),
    ?assertMatch("providers.k8s: it is Kubernetes" ++ _, unicode:characters_to_list(Why)),
    #{releases := #{~"one" := Image}} = File,
    ?assertMatch({error, "an image runs on Kubernetes" ++ _},
                 sderl_ops_revision:pack(Image, "/nonexistent")).
