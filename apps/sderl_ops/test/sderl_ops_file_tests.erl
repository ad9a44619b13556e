%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_file_tests).
-moduledoc "Files of operations: what is read, and the sentence for each thing that is wrong.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_ops_places, [in_folder/1]).

%% ---------------------------------------------------------------- good files

%% Every key that a file may have is somewhere in it.
full() ->
    #{
        ~"cluster" => ~"shop",
        ~"names" => ~"long",
        ~"cookie" => #{~"env" => ~"SHOP_COOKIE"},
        ~"providers" => #{
            ~"here" => #{~"type" => ~"local", ~"hosts" => 4},
            ~"lab" => #{
                ~"type" => ~"ssh",
                ~"user" => ~"me",
                ~"key" => ~"keys/lab",
                ~"known_hosts" => ~"/etc/lab_hosts",
                ~"relay" => true,
                ~"lost_after_s" => 60,
                ~"hosts" => [
                    #{~"name" => ~"a", ~"address" => ~"10.0.0.1", ~"port" => 2222},
                    #{~"name" => ~"b", ~"address" => ~"b.lab.example"}
                ]
            }
        },
        ~"releases" => #{
            ~"shop-1" => #{
                ~"archive" => ~"shop-1.0.tar.gz",
                ~"sha256" => sha($a),
                ~"start" => [~"bin/shop", ~"daemon"],
                ~"stop" => [~"bin/shop", ~"stop"],
                ~"check" => [~"bin/shop", ~"eval", ~"ok."],
                ~"files" => #{
                    ~"releases/1/vm.args" => ~"-name {{node}}\n",
                    ~"secret.key" => #{~"file" => ~"secret.key"}
                },
                ~"env" => #{
                    ~"PORT" => ~"8{{index}}",
                    ~"TOKEN" => #{~"env" => ~"SHOP_TOKEN"}
                },
                ~"start_timeout_s" => 90,
                ~"stop_timeout_s" => 15
            },
            ~"next" => #{~"folder" => ~"rel/shop", ~"start" => [~"bin/shop", ~"daemon"]},
            ~"code" => #{~"code" => [~"lib/*/ebin"], ~"applications" => [~"sderl"]}
        },
        ~"domains" => #{
            ~"eu" => #{
                ~"provider" => ~"here",
                ~"region" => ~"eu",
                ~"rack" => ~"r1",
                ~"labels" => #{~"disk" => ~"ssd"},
                ~"hosts" => [~"h1", ~"h2"]
            },
            ~"us" => #{~"provider" => ~"lab"}
        },
        ~"families" => #{
            ~"web" => #{
                ~"release" => ~"shop-1",
                ~"domains" => [~"eu", ~"us"],
                ~"count" => 3,
                ~"labels" => #{~"kind" => ~"web"},
                ~"select" => ~"pack",
                ~"limits" => #{~"per_host" => 2},
                ~"restart" => #{~"policy" => ~"never", ~"most" => 2, ~"within_s" => 60},
                ~"hooks" => #{
                    ~"before_start" => [~"bin/h"],
                    ~"after_start" => [~"bin/h"],
                    ~"before_stop" => [~"bin/h"],
                    ~"after_stop" => [~"bin/h", ~"{{id}}"]
                },
                ~"env" => #{~"MODE" => ~"web"},
                ~"config" => #{~"sderl" => #{~"tick_ms" => 1000}}
            },
            ~"db" => #{~"release" => ~"code", ~"domains" => [~"us"], ~"count" => 2}
        },
        ~"groups" => [
            #{
                ~"name" => ~"shop",
                ~"nodes" => [~"web1", ~"db*", #{~"family" => ~"web"}],
                ~"consistency" => ~"majority"
            }
        ],
        ~"upgrade" => #{
            ~"batch" => 2,
            ~"canaries" => 0,
            ~"wait_s" => 0,
            ~"roll_back" => false,
            ~"alarms" => #{
                ~"url" => ~"https://mon.example.net:8090",
                ~"token" => #{~"file" => ~"viewer.token"},
                ~"tls_ca" => ~"ca.pem"
            }
        }
    }.

sha(Digit) -> binary:copy(<<Digit>>, 64).

full_file_test() ->
    {ok, File} = check(full()),
    #{providers := Providers, releases := Releases, families := Families, groups := Groups,
      upgrade := Upgrade} = File,
    ?assertMatch(#{alarms := #{url := ~"https://mon.example.net:8090",
                               token := {file, ~"/base/viewer.token"}, tls_ca := ~"/base/ca.pem"}},
                 Upgrade),
    ?assertMatch(#{cluster := ~"shop", names := long, cookie := {env, ~"SHOP_COOKIE"}}, File),
    ?assertMatch(#{~"lab" := #{type := ssh, key := ~"/base/keys/lab",
                               known_hosts := ~"/etc/lab_hosts", relay := true,
                               hosts := [#{port := 2222}, #{port := 22}]}}, Providers),
    ?assertMatch(#{~"here" := #{type := local, hosts := 4}}, Providers),
    ?assertMatch(#{~"shop-1" := #{archive := ~"/base/shop-1.0.tar.gz",
                                  files := #{~"secret.key" := {file, ~"/base/secret.key"}},
                                  env := #{~"TOKEN" := {env, ~"SHOP_TOKEN"}}},
                   ~"code" := #{code := [~"/base/lib/*/ebin"], start_timeout_s := 60,
                                stop_timeout_s := 30, env := #{}, files := #{}}}, Releases),
    ?assertMatch(#{~"web" := #{select := pack, restart := #{policy := never}},
                   ~"db" := #{select := spread, labels := #{}, limits := #{}, hooks := #{},
                              restart := #{policy := always, most := 5, within_s := 300}}},
                 Families),
    ?assertEqual([#{name => ~"shop", nodes => [~"web1", ~"db*", {family, ~"web"}],
                    consistency => majority}], Groups).

defaults_test() ->
    {ok, File} = check(maps:without([~"names", ~"cookie", ~"groups", ~"upgrade"], full())),
    ?assertMatch(#{names := long, cookie := generated, groups := [],
                   upgrade := #{batch := 1, canaries := 1, wait_s := 10, roll_back := true}},
                 File).

%% Maps of a program, with atoms, are read as well.
atoms_are_texts_test() ->
    Term = maps:fold(fun(Key, Value, Map) -> Map#{binary_to_existing_atom(Key) => Value} end,
                     #{}, full()),
    ?assertEqual(check(full()), check(Term)).

%% ---------------------------------------------------------------- wrong files

%% What is changed in the full file, and all that is said then.
wrong() ->
    Families = [~"families", ~"web"],
    [
        %% The file
        {[~"cluster"], gone,
         ["cluster is missing: it is the name of a cluster: a small letter, then small letters, "
          "digits, _ and -, at most 63"]},
        {[~"cluster"], ~"Shop",
         ["cluster: \"Shop\" is not the name of a cluster: a small letter, then small letters, "
          "digits, _ and -, at most 63"]},
        {[~"cluster"], ~"shop\n",
         ["cluster: \"shop\\n\" is not the name of a cluster: a small letter, then small "
          "letters, digits, _ and -, at most 63"]},
        {[~"names"], ~"lang", ["names: \"lang\" is not \"long\" or \"short\""]},
        {[~"cookie"], ~"geheim",
         ["cookie: what is there (it is not shown) is not {\"env\": \"VARIABLE\"} or "
          "{\"file\": \"PATH\"} or {\"secret\": \"NAME/KEY\"}"]},
        {[~"cookie"], #{~"env" => ~"geheim 1"},
         ["cookie.env: what is there (it is not shown) is not the name of a variable: letters, "
          "digits and _, not SDERL_OPS_..."]},
        {[~"cookie"], #{~"env" => ~"A", ~"file" => ~"b"},
         ["cookie: what is there (it is not shown) is not {\"env\": \"VARIABLE\"} or "
          "{\"file\": \"PATH\"} or {\"secret\": \"NAME/KEY\"}"]},
        {[~"clutser"], ~"shop",
         ["clutser is not a key of a file of operations; did you mean cluster?"]},
        {[~"zzz"], 1,
         ["zzz is not a key of a file of operations; its keys are cluster, names, cookie, "
          "providers, releases, domains, families, groups, upgrade"]},
        %% Providers
        {[~"providers"], [],
         ["providers: [] is not an object with a key for each: the name of a provider: a small "
          "letter, then small letters, digits, _ and -, at most 63"]},
        {[~"providers", ~"a b"], #{~"type" => ~"local", ~"hosts" => 1},
         ["providers.\"a b\": \"a b\" is not the name of a provider: a small letter, then small "
          "letters, digits, _ and -, at most 63"]},
        {[~"providers", ~"x"], #{~"type" => ~"lokal"},
         ["providers.x.type: \"lokal\" is not a type of provider: \"local\" or "
          "\"ssh\" or \"exec\" or \"kubernetes\""]},
        {[~"providers", ~"x"], #{},
         ["providers.x.type is missing: it is a type of provider: \"local\" or "
          "\"ssh\" or \"exec\" or \"kubernetes\""]},
        {[~"providers", ~"x"], #{~"type" => ~"exec", ~"program" => 7, ~"arguments" => ~"a",
                                 ~"relay" => true, ~"timeout_s" => 0},
         ["providers.x.arguments: \"a\" is not a list of arguments of the program, at most 100",
          "providers.x.program: 7 is not the path of a program",
          "providers.x.relay is not a key of a provider that is a program; its keys are program, "
          "arguments, env, timeout_s, user, key, known_hosts, lost_after_s",
          "providers.x.timeout_s: 0 is not a number of seconds, 1 or more"]},
        {[~"providers", ~"x"], 7, ["providers.x: 7 is not an object (provider)"]},
        {[~"providers", ~"here", ~"hosts"], 2.5,
         ["providers.here.hosts: 2.5 is not a number of hosts, 1 or more"]},
        {[~"providers", ~"here", ~"hosts"], 501,
         ["providers.here.hosts: 501 is not a number of hosts, at most 500"]},
        {[~"providers", ~"here", ~"lost_after_s"], 5,
         ["providers.here.lost_after_s is not a key of a local provider; its keys are hosts, "
          "address, relay"]},
        {[~"providers", ~"here", ~"relay"], ~"yes",
         ["providers.here.relay: \"yes\" is not true or false"]},
        {[~"providers", ~"lab", ~"hosts"], [],
         ["providers.lab.hosts: [] is not a list of hosts, 1 to 10000"]},
        {[~"providers", ~"lab", ~"hosts", 1, ~"port"], 0,
         ["providers.lab.hosts.1.port: 0 is not a port, 1 or more"]},
        {[~"providers", ~"lab", ~"hosts", 1, ~"address"], ~"-oProxyCommand=x",
         ["providers.lab.hosts.1.address: \"-oProxyCommand=x\" is not an address: a name of the "
          "DNS or an IPv4 address"]},
        {[~"providers", ~"lab", ~"hosts", 1, ~"address"], ~"alpha",
         ["providers.lab.hosts.1.address: \"alpha\" is not an address for long names, which has "
          "a dot; or say \"names\": \"short\""]},
        {[~"providers", ~"lab", ~"hosts", 2, ~"name"], ~"a",
         ["providers.lab.hosts.1.name: two hosts are called a",
          "providers.lab.hosts.2.name: two hosts are called a"]},
        {[~"providers", ~"lab", ~"hosts", 1, ~"name"], ~"../a",
         ["providers.lab.hosts.1.name: \"../a\" is not the name of a host: letters, digits, _ - "
          "and ."]},
        {[~"providers", ~"lab", ~"user"], ~"-l",
         ["providers.lab.user: \"-l\" is not the name of a user"]},
        {[~"providers", ~"lab", ~"key"], ~"",
         ["providers.lab.key: \"\" is not the path of a private key"]},
        {[~"providers", ~"lab", ~"known_hosts"], 5,
         ["providers.lab.known_hosts: 5 is not the path of a file of known hosts"]},
        {[~"providers", ~"lab", ~"lost_after_s"], 90_000,
         ["providers.lab.lost_after_s: 90000 is not a number of seconds, at most 86400"]},
        {[~"names"], ~"short",
         ["providers.lab.hosts.1.address: \"10.0.0.1\" is not an address for short names, which "
          "has no dot; or say \"names\": \"long\"",
          "providers.lab.hosts.2.address: \"b.lab.example\" is not an address for short names, "
          "which has no dot; or say \"names\": \"long\""]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"namespace" => ~"My"},
         ["providers.k8s.namespace: \"My\" is not the name of a namespace of Kubernetes: small "
          "letters, digits and -, at most 63, - not at an end"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"dns_domain" => ~"a_b"},
         ["providers.k8s.dns_domain: \"a_b\" is not the DNS domain of a Kubernetes cluster, such "
          "as cluster.local"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"ready" => ~"always"},
         ["providers.k8s.ready: \"always\" is not \"serves\" or \"well\""]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"labels" => #{~"-a" => ~"b"}},
         ["providers.k8s.labels.-a: \"-a\" is not the name of a label of Kubernetes, such as team "
          "or example.com/team"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"topology" => #{~"rack" => ~"/"}},
         ["providers.k8s.topology.rack: \"/\" is not the name of a label of Kubernetes' nodes, "
          "such as topology.kubernetes.io/zone"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes",
                                   ~"storage" => #{~"size" => ~"big", ~"class" => ~"a b"}},
         ["providers.k8s.storage.class: \"a b\" is not the name of a storage class of Kubernetes: "
          "small letters, digits, - and ., a letter or digit at each end",
          "providers.k8s.storage.size: \"big\" is not a size, such as 1Gi"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"service_account" => 1},
         ["providers.k8s.service_account: 1 is not the name of a service account of Kubernetes: "
          "small letters, digits, - and ., a letter or digit at each end"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"pull_secret" => ~"a/b"},
         ["providers.k8s.pull_secret: \"a/b\" is not the name of a Secret for the registry of "
          "Kubernetes: small letters, digits, - and ., a letter or digit at each end"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"run_as" => 0},
         ["providers.k8s.run_as: 0 is not the number of a user, 1 or more"]},
        {[~"providers", ~"k8s"], #{~"type" => ~"kubernetes", ~"network_policy" => ~"yes"},
         ["providers.k8s.network_policy: \"yes\" is not true or false"]},
        %% Releases
        {[~"releases", ~"x"], #{~"image" => ~"shop 1", ~"start" => [~"s"],
                                ~"directory" => ~"opt"},
         ["releases.x.directory: \"opt\" is not the folder that has the release in the image, "
          "such as /opt/shop",
          "releases.x.image: \"shop 1\" is not an image, such as "
          "registry.example.net/shop:1.4"]},
        {[~"releases", ~"next", ~"env"], #{~"A" => #{~"secret" => ~"db"}},
         ["releases.next.env.A.secret: \"db\" is not a key of a Secret of Kubernetes: NAME/KEY"]},
        {[~"releases", ~"x"], #{~"start" => [~"s"]},
         ["releases.x: one of the keys archive, folder, code, image, running is missing: it "
          "says what kind of release this is"]},
        {[~"releases", ~"next", ~"code"], [~"x"],
         ["releases.next: the keys folder, code cannot be together: keep the one that says what "
          "kind of release this is"]},
        {[~"releases", ~"shop-1", ~"sha256"], gone,
         ["releases.shop-1.sha256 is missing: it is the archive's checksum, 64 digits 0-9 and "
          "a-f (sha256sum FILE tells it)"]},
        {[~"releases", ~"shop-1", ~"sha256"], ~"abc",
         ["releases.shop-1.sha256: \"abc\" is not the archive's checksum, 64 digits 0-9 and a-f "
          "(sha256sum FILE tells it)"]},
        {[~"releases", ~"next", ~"start"], gone,
         ["releases.next.start is missing: it is a list of the command that starts an instance, "
          "word by word, 1 to 100"]},
        {[~"releases", ~"next", ~"start"], ~"bin/shop daemon",
         ["releases.next.start: \"bin/shop daemon\" is not a list of the command that starts an "
          "instance, word by word, 1 to 100"]},
        {[~"releases", ~"next", ~"start"], [~"{{nod}}", ~"{{q}}"],
         ["releases.next.start.1: \"{{nod}}\" is not a variable; did you mean {{node}}?",
          "releases.next.start.2: \"{{q}}\" is not a variable; they are node, id, family, "
          "index, host, address, cluster, state_dir, log_dir, home, release_dir"]},
        {[~"releases", ~"next", ~"check"], [],
         ["releases.next.check: [] is not a list of a command that ends with status 0 when the "
          "instance is well, word by word, 1 to 100"]},
        {[~"releases", ~"next", ~"stop"], [~"a\0b"],
         ["releases.next.stop.1: \"a\\u0000b\" is not a word of the command: text of 1 to 4096 "
          "bytes"]},
        {[~"releases", ~"next", ~"files"], #{~"../x" => ~"y"},
         ["releases.next.files.\"../x\": \"../x\" is not a path within the release's folder, "
          "such as releases/1/vm.args"]},
        {[~"releases", ~"next", ~"files"], #{~"a/../x" => ~"y"},
         ["releases.next.files.\"a/../x\": \"a/../x\" is not a path within the release's "
          "folder, such as releases/1/vm.args"]},
        {[~"releases", ~"next", ~"files"], #{~"/x" => ~"y"},
         ["releases.next.files.\"/x\": \"/x\" is not a path within the release's folder, such "
          "as releases/1/vm.args"]},
        {[~"releases", ~"next", ~"files"], #{~"x" => #{~"url" => ~"y"}},
         ["releases.next.files.x: this object (url) is not {\"template\": \"PATH\"} or "
          "{\"file\": \"PATH\"} or {\"env\": \"VARIABLE\"} or {\"secret\": \"NAME/KEY\"}"]},
        {[~"releases", ~"next", ~"env"], #{~"A" => 8080},
         ["releases.next.env.A: 8080 is not text, {\"env\": \"VARIABLE\"}, "
          "{\"file\": \"PATH\"} or {\"secret\": \"NAME/KEY\"}"]},
        {[~"releases", ~"next", ~"env"], #{~"SDERL_OPS_INSTANCE" => ~"x"},
         ["releases.next.env.SDERL_OPS_INSTANCE: \"SDERL_OPS_INSTANCE\" is not the name of a "
          "variable: letters, digits and _, not SDERL_OPS_..."]},
        {[~"releases", ~"next", ~"start_timeout_s"], 3601,
         ["releases.next.start_timeout_s: 3601 is not a number of seconds, at most 3600"]},
        {[~"releases", ~"next", ~"stop_timeout_s"], 0,
         ["releases.next.stop_timeout_s: 0 is not a number of seconds, 1 or more"]},
        {[~"releases", ~"code", ~"code"], [],
         ["releases.code.code: [] is not a list of paths of folders with .beam files, * "
          "allowed, 1 to 1000"]},
        {[~"releases", ~"code", ~"applications"], [~"Sderl"],
         ["releases.code.applications.1: \"Sderl\" is not the name of an application"]},
        {[~"releases", ~"code", ~"start"], [~"x"],
         ["releases.code.start is not a key of a release of code alone; did you mean "
          "start_timeout_s?"]},
        %% Domains
        {[~"domains", ~"eu", ~"provider"], ~"heer",
         ["domains.eu.provider: \"heer\" is not a provider of this file; did you mean here?"]},
        {[~"domains", ~"eu", ~"hosts"], [~"h1", ~"h9", ~"h1"],
         ["domains.eu.hosts: the host h1 is there twice",
          "domains.eu.hosts.2: \"h9\" is not a host of the provider here; there is h1, h2, h3, "
          "h4"]},
        {[~"domains", ~"eu", ~"hosts"], 3,
         ["domains.eu.hosts: the provider here makes no hosts: list the names of its hosts, or "
          "leave this out for all it has"]},
        {[~"domains", ~"eu", ~"hosts"], [],
         ["domains.eu.hosts: [] is not a list of names of hosts, 1 to 10000"]},
        {[~"domains", ~"eu", ~"region"], ~"",
         ["domains.eu.region: \"\" is not the name of a region: text of 1 to 255 bytes"]},
        {[~"domains", ~"eu", ~"rack"], 1,
         ["domains.eu.rack: 1 is not the name of a rack: text of 1 to 255 bytes"]},
        {[~"domains", ~"eu", ~"labels"], #{~"9" => ~"x"},
         ["domains.eu.labels.9: \"9\" is not the name of a label: a letter, then letters, "
          "digits, _ - and ."]},
        {[~"domains", ~"eu", ~"labels"], #{~"disk" => true},
         ["domains.eu.labels.disk: true is not the value of a label: text of 1 to 255 bytes"]},
        %% Families
        {[~"families", ~"web1"], #{~"release" => ~"code", ~"domains" => [~"eu"], ~"count" => 1},
         ["families.web1: \"web1\" is not the name of a family: a small letter, then small "
          "letters, digits, _ and -, at most 63, and no digit at its end"]},
        {[~"releases", ~"old"], #{~"running" => 7},
         ["releases.old.running: 7 is not what it is, for people: text of 1 to 255 bytes"]},
        {[~"providers", ~"here", ~"address"], ~"",
         ["providers.here.address: \"\" is not the address of this machine in names of nodes"]},
        {Families ++ [~"nodes"], [~"web1@h", ~"web1"],
         ["families.web.nodes.2: \"web1\" is not the name of a node, NAME@HOST"]},
        {Families ++ [~"nodes"], [~"a@h", ~"a@h"],
         ["families.web.nodes.1: the node a@h is named twice",
          "families.web.nodes.2: the node a@h is named twice"]},
        {Families ++ [~"count"], 0,
         ["families.web.count: 0 is not a number of nodes, 1 or more"]},
        {Families ++ [~"count"], ~"three",
         ["families.web.count: \"three\" is not a number of nodes, 1 or more"]},
        {Families ++ [~"count"], 20_001,
         ["families.web.count: 20001 is not a number of nodes, at most 20000"]},
        {Families ++ [~"count"], 9,
         ["families.web.count: 9 is not at most 8, which is what the hosts of its domains hold "
          "with 2 a host (limits.per_host)"]},
        {[~"families", ~"db", ~"count"], 19_999,
         ["families: the counts are 20002 nodes together, and at most 20000 are allowed"]},
        {Families ++ [~"release"], ~"shop-2",
         ["families.web.release: \"shop-2\" is not a release of this file; did you mean "
          "shop-1?"]},
        {Families ++ [~"domains"], [~"eu", ~"mars", ~"eu"],
         ["families.web.domains: the domain eu is there twice",
          "families.web.domains.2: \"mars\" is not a domain of this file; there is eu, us"]},
        {Families ++ [~"domains"], [],
         ["families.web.domains: [] is not a list of names of domains, 1 to 1000"]},
        {Families ++ [~"select"], ~"spraed",
         ["families.web.select: \"spraed\" is not \"spread\" or \"pack\" or \"random\""]},
        {Families ++ [~"limits", ~"per_host"], 0,
         ["families.web.limits.per_host: 0 is not a number of nodes, 1 or more"]},
        {Families ++ [~"limits", ~"disk"], 1,
         ["families.web.limits.disk is not a key of limits; its keys are per_host, cpu, memory"]},
        {Families ++ [~"limits", ~"cpu"], 1,
         ["families.web.limits.cpu: 1 is not a number of CPUs as text, such as \"2\" or "
          "\"500m\""]},
        {Families ++ [~"limits", ~"memory"], ~"0",
         ["families.web.limits.memory: \"0\" is not a size of memory, such as 512Mi"]},
        {Families ++ [~"restart", ~"policy"], ~"often",
         ["families.web.restart.policy: \"often\" is not \"always\" or \"never\""]},
        {Families ++ [~"restart", ~"most"], 0,
         ["families.web.restart.most: 0 is not a number of restarts, 1 or more"]},
        {Families ++ [~"restart", ~"within_s"], -1,
         ["families.web.restart.within_s: -1 is not a number of seconds, 1 or more"]},
        {Families ++ [~"hooks", ~"before_strat"], [~"x"],
         ["families.web.hooks.before_strat is not a key of hooks; did you mean before_start?"]},
        {Families ++ [~"hooks", ~"after_stop"], null,
         ["families.web.hooks.after_stop: null is not a list of a command, word by word, 1 to "
          "100"]},
        {Families ++ [~"config"], #{~"sderl" => [1]},
         ["families.web.config.sderl: this list is not an object with a key for each: the key "
          "of a setting: text of 1 to 255 bytes"]},
        {Families ++ [~"config"], #{~"sderl" => #{~"a" => [#{~"atom" => 1}]}},
         ["families.web.config.sderl.a.1.atom: 1 is not the name of an atom: text of 1 to 255 "
          "characters"]},
        {Families ++ [~"config"], #{~"sderl" => #{~"a" => #{~"tuple" => 1}}},
         ["families.web.config.sderl.a.tuple: 1 is not a list of the tuple's elements"]},
        {Families ++ [~"config"], #{~"sderl" => #{~"a" => #{~"string" => []}}},
         ["families.web.config.sderl.a.string: [] is not text"]},
        %% Groups
        {[~"groups"], 3,
         ["groups: 3 is not a list of groups, or an object with a pattern"]},
        {[~"groups", 1, ~"name"], ~"",
         ["groups.1.name: \"\" is not the name of a group: 1 to 200 bytes, no line ends"]},
        {[~"groups", 1, ~"nodes"], [],
         ["groups.1.nodes: [] is not a list of nodes of the group, 1 to 20000"]},
        {[~"groups", 1, ~"nodes"], [~"web9", ~"cache1", ~"x*", #{~"family" => ~"wbe"}, 4],
         ["groups.1.nodes.5: 4 is not an instance (\"web1\"), several (\"web*\", "
          "\"web1..web9\") or {\"family\": \"FAMILY\"}"]},
        {[~"groups", 1, ~"nodes"], [~"web9", ~"cache1", ~"x*", #{~"family" => ~"webb"}],
         ["groups.1.nodes.1: \"web9\" is not an instance of this file; the family web has 3, "
          "web1 to web3",
          "groups.1.nodes.2: \"cache1\" is not an instance of this file (a family and a "
          "number); families are db, web",
          "groups.1.nodes.3: \"x*\" is not like any instance of this file; families are db, web",
          "groups.1.nodes.4.family: \"webb\" is not a family of this file; did you mean web?"]},
        {[~"groups", 1, ~"consistency"], ~"strong",
         ["groups.1.consistency: \"strong\" is not \"available\" or \"majority\""]},
        {[~"groups"], [#{~"name" => ~"a", ~"nodes" => [~"web1"]},
                       #{~"name" => ~"a", ~"nodes" => [~"web2"]}],
         ["groups.1.name: two groups are called a", "groups.2.name: two groups are called a"]},
        {[~"groups"], [#{~"pattern" => ~"ring", ~"nodes" => [~"web1"], ~"name" => ~"a"}],
         ["groups.1: the keys nodes, pattern cannot be together: keep the one that says what kind "
          "of group this is"]},
        {[~"groups", 1, ~"nodes"], [~"web1..web4"],
         ["groups.1.nodes.1: \"web4\" is not an instance of this file; the family web has 3, web1 "
          "to web3"]},
        {[~"groups", 1, ~"nodes"], [~"web1..db2", ~"web3..web1", ~"web08..web010", ~"..",
                                       ~"w1..w90000"],
         ["groups.1.nodes.1: \"web1..db2\" is not a range: its ends differ only in numbers, which "
          "all grow by the same, as in web1..web20",
          "groups.1.nodes.2: \"web3..web1\" is not a range: its ends differ only in numbers, which "
          "all grow by the same, as in web1..web20",
          "groups.1.nodes.3: \"web08..web010\" is not a range: its numbers do not lead from one "
          "end to the other",
          "groups.1.nodes.4: \"..\" is not a range: it is FIRST..LAST, as web1..web20",
          "groups.1.nodes.5: \"w1..w90000\" is not a range of at most 20000 names"]},
        {Families ++ [~"nodes"], [~"a1@h.x..a20000@h.x", ~"b1@h.x..b20000@h.x", ~"c1@h.x"],
         ["families.web.nodes: these ranges are more than 20000 nodes that run already"]},
        {[~"groups"], #{~"pattern" => ~"chain", ~"size" => 2, ~"first" => -1, ~"digits" => 0},
         ["groups.digits: 0 is not a number of digits, 1 or more",
          "groups.first: -1 is not a number, 0 or more"]},
        {Families ++ [~"nodes"], [~"web1@10.0.0.1..web2@10.0.0.3"],
         ["families.web.nodes.1: \"web1@10.0.0.1..web2@10.0.0.3\" is not a range: its ends differ "
          "only in numbers, which all grow by the same, as in web1..web20"]},
        {[~"groups"], [#{~"pattern" => ~"parts", ~"size" => 2},
                       #{~"pattern" => ~"parts", ~"groups" => 2}],
         ["groups.1.name: two groups are called group-1", "groups.1.name: two groups are called "
          "group-2", "groups.2.name: two groups are called group-1",
          "groups.2.name: two groups are called group-2"]},
        {[~"groups"], [#{~"pattern" => ~"parts", ~"name" => ~"a{{idx}}", ~"size" => 2}],
         ["groups.1.name: \"{{idx}}\" is not a variable here; there is {{index}}"]},
        {[~"groups"], #{~"pattern" => ~"parts"},
         ["groups: say how large the groups are (size), or how many there are (groups)"]},
        {[~"groups"], #{~"pattern" => ~"parts", ~"size" => 2, ~"gateways" => 1},
         ["groups: gateways does not belong to the pattern parts"]},
        {[~"groups"], #{~"pattern" => ~"parts", ~"groups" => 20},
         ["groups: 5 nodes are too few for 20 groups"]},
        {[~"groups"], #{~"pattern" => ~"sun"},
         ["groups.pattern: \"sun\" is not \"parts\" or \"star\" or \"tree\" or \"ring\" or "
          "\"chain\" or \"grid\""]},
        {[~"groups"], #{~"pattern" => ~"star", ~"size" => 2, ~"families" => [~"webb"]},
         ["groups.families.1: \"webb\" is not a family of this file; did you mean web?"]},
        {[~"groups"], #{~"pattern" => ~"ring", ~"size" => 2, ~"hubs" => 2, ~"columns" => 2},
         ["groups: columns, hubs do not belong to the pattern ring"]},
        %% Upgrades
        {[~"upgrade", ~"batch"], 0,
         ["upgrade.batch: 0 is not a number of nodes, 1 or more"]},
        {[~"upgrade", ~"canaries"], -1,
         ["upgrade.canaries: -1 is not a number of nodes, 0 or more"]},
        {[~"upgrade", ~"wait_s"], 86_401,
         ["upgrade.wait_s: 86401 is not a number of seconds, at most 86400"]},
        {[~"upgrade", ~"roll_back"], ~"yes",
         ["upgrade.roll_back: \"yes\" is not true or false"]},
        {[~"upgrade", ~"alarms"], #{~"url" => ~"http://127.0.0.1:8090"},
         ["upgrade.alarms.token is missing: it is {\"env\": \"VARIABLE\"} or {\"file\": "
          "\"PATH\"}"]},
        {[~"upgrade", ~"alarms", ~"url"], ~"http://127.0.0.1:8090/#token=secret",
         ["upgrade.alarms.url: what is there (it is not shown) is not the address of a dashboard, "
          "such as http://127.0.0.1:8090, without #token=..., which belongs into token"]},
        {[~"upgrade", ~"alarms", ~"token"], ~"secret",
         ["upgrade.alarms.token: what is there (it is not shown) is not {\"env\": "
          "\"VARIABLE\"} or {\"file\": \"PATH\"}"]},
        {[~"upgrade", ~"alarms", ~"tls_ca"], 7,
         ["upgrade.alarms.tls_ca: 7 is not the path of a file of certificates (PEM)"]}
    ].

wrong_test_() ->
    [
        {lists:flatten(io_lib:format("~0tp: ~0tp", [Path, Value])),
         ?_assertEqual(Sentences, sentences(check(put_at(Path, Value, full()))))}
     || {Path, Value, Sentences} <- wrong()
    ].

made_hosts_test() ->
    Made = put_at([~"providers", ~"cloud"], #{~"type" => ~"exec", ~"program" => ~"hosts.sh"},
                  put_at([~"domains", ~"eu", ~"provider"], ~"cloud", full())),
    {ok, #{providers := #{~"cloud" := Cloud}, domains := #{~"eu" := #{hosts := 3}}}} =
        check(put_at([~"domains", ~"eu", ~"hosts"], 3, Made)),
    ?assertMatch(#{type := exec, arguments := [], env := #{}, timeout_s := 300,
                   lost_after_s := 300}, Cloud),
    [?assertEqual(["domains.eu.hosts: the provider cloud is a program that makes hosts: say how "
                   "many, as \"hosts\": 3"],
                  [Sentence || Sentence <- sentences(check(put_at([~"domains", ~"eu", ~"hosts"],
                                                                  Hosts, Made)))])
     || Hosts <- [[~"a"]]].

%% What sderl_pattern says about a pattern is said here.
pattern_contradiction_test() ->
    [Sentence] = sentences(check((full())#{~"groups" => #{~"pattern" => ~"star"}})),
    ?assertMatch("groups: " ++ _, Sentence),
    ?assertNotEqual(nomatch, string:find(Sentence, "size")).

every_rule_has_a_wrong_example_test() ->
    Wrong = [Path || {Path, _, _} <- wrong()],
    Keys = keys(sderl_ops_schema:file()),
    %% These are texts or lists like others that have one.
    Others = [before_start, after_start, before_stop, archive, folder, code, groups,
              size, gateways, remainder, masters, branching, levels, leaves, domains,
              families, releases, template, file, env, family, class],
    Named = [Key || Path <- Wrong, Key <- Path, is_binary(Key)] ++
        [Key || {_, Value, _} <- wrong(), is_map(Value), Key <- maps:keys(Value)],
    ?assertEqual([], [Key || Key <- lists:usort(Keys), not lists:member(Key, Others),
                             not lists:member(atom_to_binary(Key), Named)]).

keys({object, _, Fields}) -> [Key || {Key, _, _} <- Fields] ++
                                 lists:append([keys(Rule) || {_, _, Rule} <- Fields]);
keys(Rule) when is_tuple(Rule) -> lists:append([keys(Part) || Part <- tuple_to_list(Rule)]);
keys([Rule | Rules]) when is_tuple(Rule) -> keys(Rule) ++ keys(Rules);
keys(_) -> [].

all_at_once_test() ->
    File = lists:foldl(
        fun({Path, Value}, Term) -> put_at(Path, Value, Term) end,
        full(),
        [{[~"cluster"], 1}, {[~"families", ~"db", ~"count"], 0},
         {[~"families", ~"web", ~"release"], ~"none"}, {[~"domains", ~"us", ~"provider"], ~"lob"}]
    ),
    ?assertEqual(
        ["cluster: 1 is not the name of a cluster: a small letter, then small letters, digits, _ "
         "and -, at most 63",
         "domains.us.provider: \"lob\" is not a provider of this file; did you mean lab?",
         "families.db.count: 0 is not a number of nodes, 1 or more",
         "families.web.release: \"none\" is not a release of this file; there is code, next, "
         "shop-1"],
        sentences(check(File))
    ).

%% A secret that was written where its reference belongs is not repeated.
secrets_are_not_shown_test() ->
    [?assertEqual(nomatch, string:find(io_lib:format("~p ~ts", [Result, sentences(Result)]),
                                       "geheim"))
     || Value <- [~"geheim", [~"geheim"], #{~"env" => ~"ge heim geheim"},
                  #{~"file" => [~"geheim"]}, #{~"value" => ~"geheim"}],
        Result <- [check((full())#{~"cookie" => Value})]].

%% ---------------------------------------------------------------- texts

json_test_() ->
    [
        {label(Text), ?_assertEqual([Sentence], sentences(read(~"f.json", Text)))}
     || {Text, Sentence} <- [
            {"", "F cannot be read: it is empty"},
            {"{\"cluster\": }", "line 1: this is not JSON ('}' is not expected here)"},
            {"{\n\n\"cluster\" \"a\"}", "line 3: this is not JSON ('\"' is not expected here)"},
            {"{\"cluster\": \"a\"", "line 1: this JSON ends too early"},
            {"[]", "the file: [] is not an object (a file of operations)"},
            {"\"shop\"", "the file: \"shop\" is not an object (a file of operations)"},
            {"{\"a\": \"\xff\"}", "line 1: this is not JSON (byte 255 is not expected here)"},
            {"{\"a\": " ++ lists:duplicate(41, $1) ++ "}",
             "the number 11111111111111111111... is too long"},
            {"{\"a\": 1e999}", "line 1: this is not JSON (a wrong escape, a number out of range, "
                               "or not UTF-8)"},
            {lists:duplicate(100_000, $[), "more than 64 levels deep"}
        ]
    ].

label(Text) -> lists:flatten(io_lib:format("~0P", [iolist_to_binary(Text), 60])).

behind_the_end_test() ->
    ?assertEqual(["line 2: there is more behind the end of the object: a file has one"],
                 sentences(read(~"f.json", [json:encode(full()), "\n{}"]))).

twice_test() ->
    Json = iolist_to_binary(json:encode(full())),
    Twice = binary:replace(Json, ~"\"cluster\":", ~"\"cluster\":\"a\",\"cluster\":"),
    ?assertEqual(["cluster is there twice: keep one of the two"],
                 sentences(read(~"f.json", Twice))).

erlang_test_() ->
    [
        {label(Text), ?_assertEqual([Sentence], sentences(read(~"f.term", Text)))}
     || {Text, Sentence} <- [
            {"", "F cannot be read: it is empty"},
            {"% nothing", "the file is empty"},
            {"#{}", "line 1: this is no Erlang term (syntax error before: ); a file has one map, "
                    "and a dot behind it"},
            {"#{a => \n B}.", "line 2: this is no data; allowed are maps, lists, strings, "
                              "binaries, atoms and numbers"},
            {"#{a => fun() -> 1 end}.", "line 1: this is no Erlang term (syntax error before: "
                                        "'->'); a file has one map, and a dot behind it"},
            {"#{a => {1, 2}}.", "line 1: this is no data; allowed are maps, lists, strings, "
                                "binaries, atoms and numbers"},
            {"#{a => [1 | 2]}.", "line 1: this is no data; allowed are maps, lists, strings, "
                                 "binaries, atoms and numbers"},
            {"#{a => self()}.", "line 1: this is no data; allowed are maps, lists, strings, "
                                "binaries, atoms and numbers"},
            {["#{a => ", lists:duplicate(41, $1), "}."],
             "the number 11111111111111111111... is too long"},
            {["#{a => ", lists:duplicate(100, $[), lists:duplicate(100, $]), "}."],
             "more than 64 levels deep"},
            {"#{a => \"b}.", "line 1: unterminated string starting with \"b}.\""},
            {<<"#{a => \n", 255, "}.">>, "line 2: this is not UTF-8"},
            {"#{a => x:y}.", "line 1: this is no data; allowed are maps, lists, strings, "
                             "binaries, atoms and numbers"}
        ]
    ].

same_as_json_test() ->
    Text = """
    %% It's a shop, with 'quotes' and "strings".
    #{cluster => shop,
      'cookie' => #{env => "SHOP_COOKIE"},
      providers => #{here => #{type => local, hosts => 4}},
      "releases" => #{code => #{code => [<<"/lib/*/ebin">>], applications => [sderl]}},
      domains => #{<<"eu">> => #{provider => here, region => <<"eü"/utf8>>, rack => ~"r'1"}},
      families => #{web => #{release => code, domains => [eu], count => 2,
                             labels => #{'Größe' => 'a "b" c', quote => "it's"},
                             config => #{sderl => #{x => true, y => -1.5, z => $a}}}},
      upgrade => #{roll_back => false}}.
    """,
    {ok, Erlang} = read(~"f.term", unicode:characters_to_binary(
        string:replace(Text, "'Größe'", "groesse"))),
    {ok, Json} = read(~"f.json", json:encode(#{
        cluster => ~"shop",
        cookie => #{env => ~"SHOP_COOKIE"},
        providers => #{here => #{type => ~"local", hosts => 4}},
        releases => #{code => #{code => [~"/lib/*/ebin"], applications => [~"sderl"]}},
        domains => #{eu => #{provider => ~"here", region => ~"eü", rack => ~"r'1"}},
        families => #{web => #{release => ~"code", domains => [~"eu"], count => 2,
                               labels => #{groesse => ~"a \"b\" c", quote => ~"it's"},
                               config => #{sderl => #{x => true, y => -1.5, z => 97}}}},
        upgrade => #{roll_back => false}
    })),
    ?assertEqual(Json, Erlang).

%% By the name, or by how it begins.
kinds_test() ->
    Json = json:encode(full()),
    ?assertMatch({ok, _}, read(~"ops", Json)),
    ?assertMatch({ok, _}, read(~"ops", [" \n", Json])),
    ?assertMatch({error, _}, read(~"ops.term", Json)),
    ?assertMatch({error, _}, read(~"ops", <<" ", 255, "{">>)),
    ?assertMatch({error, _}, read(~"ops", "#{}.")).

missing_file_test() ->
    ?assertEqual(["/nowhere/f.json cannot be read: no such file or directory"],
                 sentences(sderl_ops_file:read("/nowhere/f.json"))),
    ?assertEqual(["/ cannot be read: illegal operation on a directory"],
                 sentences(sderl_ops_file:read(~"/"))).

too_large_test() ->
    ?assertEqual(["F cannot be read: it has more than 16 MiB"],
                 sentences(read(~"f.json", binary:copy(~" ", 16 * 1024 * 1024 + 1)))),
    ?assertEqual(["an Erlang term may have 1 MiB; write a larger file as JSON"],
                 sentences(read(~"f.term", binary:copy(~" ", 1024 * 1024 + 1)))).

endless_file_test() ->
    ?assertEqual(["/dev/zero cannot be read: it has more than 16 MiB"],
                 sentences(sderl_ops_file:read("/dev/zero"))).

template_test() ->
    Files = fun(Path) ->
        json:encode(put_at([~"releases", ~"next", ~"files"],
                           #{~"vm.args" => #{~"template" => Path}}, full()))
    end,
    in_folder(fun(Folder) ->
        ok = file:write_file(filename:join(Folder, "good"), "-name {{node}}"),
        ok = file:write_file(filename:join(Folder, "bad"), "-name {{nodes}}"),
        Read = fun(Path) ->
            Name = filename:join(Folder, "f.json"),
            ok = file:write_file(Name, Files(Path)),
            sderl_ops_file:read(Name)
        end,
        {ok, #{releases := #{~"next" := #{files := Loaded}}}} = Read(~"good"),
        ?assertEqual(#{~"vm.args" => ~"-name {{node}}"}, Loaded),
        ?assertEqual(["releases.next.files.\"vm.args\": \"{{nodes}}\" is not a variable; did you "
                      "mean {{node}}?"], sentences(Read(~"bad"))),
        [Lacking] = sentences(Read(~"none")),
        ?assertNotEqual(nomatch, string:find(Lacking, "none cannot be read: no such file"))
    end).

set_count_test() ->
    {ok, File} = check(full()),
    {ok, #{families := #{~"web" := #{count := 5}}}} = sderl_ops_file:set_count(File, ~"web", 5),
    ?assertEqual(["families.web.count: 0 is not a number of nodes, 1 or more"],
                 sentences(sderl_ops_file:set_count(File, ~"web", 0))),
    ?assertEqual(["families: \"webb\" is not a family; did you mean web?"],
                 sentences(sderl_ops_file:set_count(File, ~"webb", 1))),
    {ok, Written} = check(put_at([~"groups", 1, ~"nodes"], [~"web3"], full())),
    ?assertEqual(["groups.1.nodes.1: \"web3\" is not an instance of this file; the family web "
                  "has 2, web1 to web2"],
                 sentences(sderl_ops_file:set_count(Written, ~"web", 2))).

%% ---------------------------------------------------------------- any term

atoms_test_() ->
    {timeout, 60, fun() ->
        %% Once, so that what a first call loads does not count.
        Read = fun(I) ->
            Name = integer_to_binary(erlang:unique_integer([positive])),
            Word = <<"never_seen_", Name/binary, "_", (integer_to_binary(I))/binary>>,
            Json = json:encode(#{Word => #{Word => Word}, ~"cluster" => Word,
                                 ~"upgrade" => #{Word => 1}}),
            {error, _} = read(~"f.json", Json),
            {error, _} = read(~"f.term", ["#{", Word, " => '", Word, "x', ", Word, "y:", Word,
                                          "}."]),
            {error, _} = read(~"f.term", ["#{", Word, " => ['", Word, "x', ~foo\"a\"], ", Word,
                                          "z => \"", Word, "\"}."]),
            {ok, File} = check((full())#{~"groups" => #{~"pattern" => ~"chain", ~"size" => 2,
                                                         ~"name" => Word}}),
            File
        end,
        _ = Read(0),
        Before = erlang:system_info(atom_count),
        _ = [Read(I) || I <- lists:seq(1, 50)],
        ?assertEqual(Before, erlang:system_info(atom_count))
    end}.

any_term_test_() -> property(fun prop_any_term/0).
any_change_test_() -> property(fun prop_any_change/0).
any_text_test_() -> property(fun prop_any_text/0).

property(Property) ->
    {timeout, 120, ?_assert(proper:quickcheck(Property(), [quiet, {numtests, 300}]))}.

prop_any_term() ->
    ?FORALL(Term, any(), is_answer(check(Term))).

%% Part of a good file is exchanged, so that the rules further down are reached.
prop_any_change() ->
    ?FORALL({Path, Term}, {oneof(paths(full())), json_term()},
            is_answer(check(put_at(Path, Term, full())))).

prop_any_text() ->
    ?FORALL({Json, From, Length, New},
            {bool(), non_neg_integer(), non_neg_integer(), binary()},
            begin
                Text = case Json of
                    true -> iolist_to_binary(json:encode(full()));
                    false -> unicode:characters_to_binary(io_lib:format("~tp.~n", [full()]))
                end,
                Start = From * 97 rem byte_size(Text),
                <<Before:Start/binary, Rest/binary>> = Text,
                Cut = min(Length, byte_size(Rest)),
                <<_:Cut/binary, After/binary>> = Rest,
                Result = case Json of
                    true -> sderl_ops_tree:from_json(<<Before/binary, New/binary, After/binary>>);
                    false ->
                        sderl_ops_tree:from_erlang(<<Before/binary, New/binary, After/binary>>)
                end,
                case Result of
                    {ok, Tree, _} -> is_answer(check(Tree));
                    {error, _} -> is_answer(Result)
                end
            end).

is_answer({ok, #{}}) ->
    true;
is_answer({error, [_ | _]} = Error) ->
    lists:all(fun(Sentence) -> is_list(Sentence) andalso Sentence =/= "" end, sentences(Error)).

json_term() ->
    oneof([null, bool(), integer(), float(), binary(), list(integer()), list(binary()),
           #{}, ?LET({K, V}, {key(), integer()}, #{K => V}),
           ?LET({K, V}, {key(), binary()}, #{K => V}),
           ?LET({A, B}, {key(), key()}, #{A => #{B => ~"x"}})]).

key() -> oneof([~"env", ~"file", ~"template", ~"family", ~"pattern", ~"type", ~"code", ~"atom",
                ~"count", binary()]).

%% ---------------------------------------------------------------- helpers

check(Term) -> sderl_ops_file:check(Term, ~"/base").

sentences({error, Problems}) ->
    [unicode:characters_to_list(sderl_ops_file:format_error(Problem)) || Problem <- Problems].

put_at([Key], gone, Map) -> maps:remove(Key, Map);
put_at([Key], Value, Map) when is_map(Map) -> Map#{Key => Value};
put_at([Key | Path], Value, Map) when is_map(Map) ->
    Map#{Key => put_at(Path, Value, maps:get(Key, Map, #{}))};
put_at([Index], Value, List) ->
    {Before, [_ | After]} = lists:split(Index - 1, List),
    Before ++ [Value | After];
put_at([Index | Path], Value, List) ->
    {Before, [Item | After]} = lists:split(Index - 1, List),
    Before ++ [put_at(Path, Value, Item) | After].

paths(Map) when is_map(Map) ->
    lists:append([[[Key] | [[Key | Path] || Path <- paths(Value)]] || Key := Value <- Map]);
paths(List) when is_list(List) ->
    lists:append([[[Index] | [[Index | Path] || Path <- paths(Value)]]
                  || {Index, Value} <- lists:enumerate(List)]);
paths(_) ->
    [].

%% The path of the file is F in what is said.
read(Name, Text) ->
    in_folder(fun(Folder) ->
        Path = filename:join(Folder, Name),
        ok = file:write_file(Path, Text),
        case sderl_ops_file:read(Path) of
            {ok, File} ->
                {ok, File};
            {error, Problems} ->
                {error, [{At, Found, case Found of
                    explained -> lists:flatten(string:replace(Expected, Path, "F"));
                    _ -> Expected
                end} || {At, Found, Expected} <- Problems]}
        end
    end).
