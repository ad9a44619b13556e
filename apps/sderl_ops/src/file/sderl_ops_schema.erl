%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_schema).
-moduledoc "The schema of a file of operations, as rules of `m:sderl_ops_walker`.".

-export([file/0, made_host/0]).

-define(NAME, "[a-z][a-z0-9_-]{0,62}").
-define(NAME_TEXT, "a small letter, then small letters, digits, _ and -, at most 63").
%% Instances of a family are its name and a number.
-define(FAMILY, "[a-z](?:[a-z0-9_-]{0,61}[a-z_-])?").
-define(HOST, "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?").
-define(VARIABLE, "(?!SDERL_OPS_)[A-Za-z_][A-Za-z0-9_]{0,254}").
%% No part of a path is . or .., so that it stays in the release's folder.
-define(PATH_PART, "(?!\\.\\.?(?:/|\\z))[A-Za-z0-9_.+@-]+").
-define(INNER_PATH, ?PATH_PART "(?:/" ?PATH_PART ")*").
-define(DNS_NAME, "(?=.{1,253}\\z|.{1,253}/)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?").
-define(DASHBOARD, "https?://(?:[A-Za-z0-9.-]{1,253}|\\[[0-9A-Fa-f:.]{2,45}\\])"
                   "(?::[0-9]{1,5})?/?").
-define(LABEL_VALUE, "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?").
-define(LABEL, "[A-Za-z][A-Za-z0-9_.-]{0,62}").

-define(MOST_FAMILIES, 1000).
-define(MOST_INSTANCES, 20_000).
-define(MOST_HOSTS, 10_000).
-define(MOST_MADE, 500).
-define(MOST_TEXT, 1_048_576).
-define(DAY_S, 86_400).

-spec file() -> sderl_ops_walker:rule().
file() ->
    {object, "a file of operations", [
        {cluster, required, name("the name of a cluster")},
        {names, {default, long}, {choice, [long, short]}},
        {cookie, {default, generated}, {hidden, secret()}},
        {providers, required, {named, name("the name of a provider"), provider(), 100}},
        {releases, required, {named, release_name("the name of a release"), release(), 1000}},
        {domains, required, {named, name("the name of a domain"), domain(), 1000}},
        {families, required, {named, family_name(), family(), ?MOST_FAMILIES}},
        {groups, {default, []},
         {either, "a list of groups, or an object with a pattern",
          [{list, {list, "groups", 0, 10_000,
                   {by_key, "group", [{nodes, group()}, {pattern, pattern()}]}}},
           {object, pattern()}]}},
        {upgrade, {default, #{batch => 1, canaries => 1, wait_s => 10, roll_back => true}},
         upgrade()}
    ]}.

%% ---------------------------------------------------------------- where machines come from

provider() ->
    {by_type, type, "provider", [
        {local, {object, "a local provider", [
            {hosts, required, {whole, "a number of hosts", 1, 500}},
            {address, optional, {matches, ?HOST, "the address of this machine in names of nodes"}},
            {relay, {default, true}, boolean}
        ]}},
        {ssh, {object, "a provider over OpenSSH", [
            {hosts, required, {ranges, "hosts", 1, ?MOST_HOSTS,
                               {brief, [name, address], ssh_host()}}},
            {user, optional, user()},
            {key, optional, {path, "a private key"}},
            {known_hosts, optional, {path, "a file of known hosts"}},
            {relay, {default, false}, boolean},
            {lost_after_s, {default, 300}, seconds(?DAY_S)}
        ]}},
        {exec, {object, "a provider that is a program", [
            {program, required, {path, "a program"}},
            {arguments, {default, []},
             {list, "arguments of the program", 0, 100, {text, "an argument", 4096}}},
            {env, {default, #{}},
             {named, variable(),
              {either, "text, {\"env\": \"VARIABLE\"} or {\"file\": \"PATH\"}",
               [{text, {text, "the value of a variable", 65_536}},
                {object, secret_here()}]}, 1000}},
            {timeout_s, {default, 300}, seconds(3600)},
            {user, optional, user()},
            {key, optional, {path, "a private key"}},
            {known_hosts, optional, {path, "a file of known hosts"}},
            {lost_after_s, {default, 300}, seconds(?DAY_S)}
        ]}},
        {kubernetes, kubernetes()}
    ]}.

%% A namespace of a Kubernetes cluster, and how pods are to be there.
kubernetes() ->
    {object, "a provider that is Kubernetes", [
        {namespace, {default, ~"default"}, dns_label("the name of a namespace")},
        {dns_domain, {default, ~"cluster.local"},
         {matches, ?DNS_NAME, "the DNS domain of a Kubernetes cluster, such as cluster.local"}},
        {port, {default, 9100}, port()},
        {ready, {default, serves}, {choice, [serves, well]}},
        {labels, {default, #{}},
         {named, {matches, "(?:" ?DNS_NAME "/)?" ?LABEL_VALUE,
                  "the name of a label of Kubernetes, such as team or example.com/team"},
          {matches, ?LABEL_VALUE, "the value of a label of Kubernetes: letters, digits, _ - and ., "
                                  "at most 63"}, 100}},
        {topology, {default, #{region => ~"topology.kubernetes.io/region",
                               rack => ~"topology.kubernetes.io/zone"}},
         {object, "labels of Kubernetes' nodes", [
             {region, {default, ~"topology.kubernetes.io/region"}, node_label()},
             {rack, {default, ~"topology.kubernetes.io/zone"}, node_label()}
         ]}},
        {storage, optional, {object, "storage for the state of nodes", [
            {size, required, quantity("a size, such as 1Gi")},
            {class, optional, dns_name("the name of a storage class")}
        ]}},
        {service_account, optional, dns_name("the name of a service account")},
        {pull_secret, optional, dns_name("the name of a Secret for the registry")},
        {run_as, optional, {whole, "the number of a user", 1, 2_147_483_647}},
        {network_policy, {default, false}, boolean}
    ]}.

dns_label(What) ->
    {matches, "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?",
     What ++ " of Kubernetes: small letters, digits and -, at most 63, - not at an end"}.

dns_name(What) ->
    {matches, ?DNS_NAME,
     What ++ " of Kubernetes: small letters, digits, - and ., a letter or digit at each end"}.

node_label() ->
    {matches, "(?:" ?DNS_NAME "/)?" ?LABEL_VALUE,
     "the name of a label of Kubernetes' nodes, such as topology.kubernetes.io/zone"}.

quantity(What) ->
    {matches, "[1-9][0-9]{0,11}(?:[KMGT]i?)?", What}.

ssh_host() ->
    {object, "a host", [
        {name, required, host_name()},
        {address, required, address()},
        {port, {default, 22}, port()}
    ]}.

-doc "A host in the answer of a provider that is a program.".
-spec made_host() -> sderl_ops_walker:rule().
made_host() ->
    {object, "a host", [
        {name, required, host_name()},
        {state, {default, running}, {choice, [running, pending, gone]}},
        {address, optional, address()},
        {port, {default, 22}, port()},
        {user, optional, user()},
        {host_key, optional, {matches, "[a-z0-9@.-]{1,64} [A-Za-z0-9+/=]{1,4096}",
                              "the public key of a host, as \"ssh-ed25519 AAAA...\""}}
    ]}.

host_name() -> {matches, ?HOST, "the name of a host: letters, digits, _ - and ."}.
address() -> {matches, ?HOST, "an address: a name of the DNS or an IPv4 address"}.
port() -> {whole, "a port", 1, 65535}.
user() -> {matches, "[A-Za-z_][A-Za-z0-9_.-]{0,31}", "the name of a user"}.

domain() ->
    {object, "a domain", [
        {provider, required, {text, "the name of a provider", 63}},
        {region, optional, {text, "the name of a region", 255}},
        {rack, optional, {text, "the name of a rack", 255}},
        {labels, {default, #{}}, labels()},
        {hosts, {default, all},
         {either, "a list of names of hosts, or the number of hosts that a program makes",
          [{list, {ranges, "names of hosts", 1, ?MOST_HOSTS, {text, "the name of a host", 255}}},
           {number, {whole, "a number of hosts", 1, ?MOST_MADE}}]}}
    ]}.

labels() ->
    {named, {matches, ?LABEL, "the name of a label: a letter, then letters, digits, _ - and ."},
     {text, "the value of a label", 255}, 100}.

%% ---------------------------------------------------------------- what runs

release() ->
    {by_key, "release", [
        {archive, {object, "a release in an archive",
                   [{archive, required, {path, "an archive (.tar.gz)"}},
                    {sha256, required, {matches, "[0-9a-f]{64}",
                                        "the archive's checksum, 64 digits 0-9 and a-f (sha256sum "
                                        "FILE tells it)"}}
                    | unpacked()]}},
        {folder, {object, "a release in a folder",
                  [{folder, required, {path, "a folder"}} | unpacked()]}},
        {code, {object, "a release of code alone",
                [{code, required, {list, "paths of folders with .beam files, * allowed", 1, 1000,
                                   {path, "folders with .beam files"}}},
                 {applications, {default, []},
                  {list, "applications to start, in order", 0, 1000,
                   {matches, "[a-z][A-Za-z0-9_]{0,254}", "the name of an application"}}}
                 | every_release()]}},
        {image, {object, "a release in an image of containers",
                 [{image, required,
                   {matches, "[a-z0-9][A-Za-z0-9._/-]{0,254}(?::[0-9]+/[A-Za-z0-9._/-]{1,254})?"
                             "(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
                    "an image, such as registry.example.net/shop:1.4"}},
                  {directory, optional,
                   {matches, "(?:/" ?PATH_PART ")+",
                    "the folder that has the release in the image, such as /opt/shop"}}
                  | unpacked()]}},
        {running, {object, "a release that runs already",
                   [{running, required, {text, "what it is, for people", 255}}
                    | every_release()]}}
    ]}.

unpacked() ->
    [{start, required, command("the command that starts an instance")},
     {stop, optional, command("the command that stops an instance")}
     | every_release()].

every_release() ->
    [{check, optional, command("a command that ends with status 0 when the instance is well")},
     {files, {default, #{}},
      {named, {matches, ?INNER_PATH, "a path within the release's folder, such as "
                                     "releases/1/vm.args"},
       {either, "text, {\"template\": \"PATH\"}, {\"file\": \"PATH\"}, {\"env\": \"VARIABLE\"} "
                "or {\"secret\": \"NAME/KEY\"}",
        [{text, template("the text of a file", ?MOST_TEXT)},
         {object, {reference, [{template, {path, "a template"}}, {file, {path, "a file"}},
                               {env, variable()}, {secret, kubernetes_secret()}]}}]},
       1000}},
     {env, {default, #{}}, environment()},
     {start_timeout_s, {default, 60}, seconds(3600)},
     {stop_timeout_s, {default, 30}, seconds(3600)}].

environment() ->
    {named, variable(),
     {either, "text, {\"env\": \"VARIABLE\"}, {\"file\": \"PATH\"} or {\"secret\": \"NAME/KEY\"}",
      [{text, template("the value of a variable", 65_536)}, {object, secret()}]},
     1000}.

family() ->
    {object, "a family", [
        {release, required, {text, "the name of a release", 255}},
        {domains, required, {list, "names of domains", 1, 1000,
                             {text, "the name of a domain", 63}}},
        {count, required, {whole, "a number of nodes", 1, ?MOST_INSTANCES}},
        {nodes, optional, {ranges, "nodes that run already", 1, ?MOST_INSTANCES,
                           {matches, "[A-Za-z0-9_-]{1,200}@" ?HOST,
                            "the name of a node, NAME@HOST"}}},
        {labels, {default, #{}}, labels()},
        {select, {default, spread}, {choice, [spread, pack, random]}},
        {limits, {default, #{}}, {object, "limits", [
            {per_host, optional, {whole, "a number of nodes", 1, ?MOST_INSTANCES}},
            {cpu, optional, {matches, "[1-9][0-9]{0,5}m?|[0-9]{1,4}\\.[0-9]{1,3}",
                             "a number of CPUs as text, such as \"2\" or \"500m\""}},
            {memory, optional, quantity("a size of memory, such as 512Mi")}
        ]}},
        {restart, {default, #{policy => always, most => 5, within_s => 300}},
         {object, "a restart policy", [
             {policy, {default, always}, {choice, [always, never]}},
             {most, {default, 5}, {whole, "a number of restarts", 1, 1000}},
             {within_s, {default, 300}, seconds(?DAY_S)}
         ]}},
        {hooks, {default, #{}}, {object, "hooks", [
            {Hook, optional, command("a command")}
         || Hook <- [before_start, after_start, before_stop, after_stop]
        ]}},
        {env, {default, #{}}, environment()},
        {config, {default, #{}},
         {named, {matches, "[a-z][A-Za-z0-9_]{0,254}", "the name of an application"},
          {named, {text, "the key of a setting", 255}, value, 1000}, 1000}}
    ]}.

%% ---------------------------------------------------------------- groups and upgrades

group() ->
    {object, "a group", [
        {name, required, group_name()},
        {nodes, required, {list, "nodes of the group", 1, ?MOST_INSTANCES,
                           {either, "an instance (\"web1\"), several (\"web*\", "
                                    "\"web1..web9\") or {\"family\": \"FAMILY\"}",
                            [{text, {text, "an instance", 255}},
                             {object, {reference, [{family, {text, "the name of a family", 63}}]}}
                            ]}}},
        {consistency, {default, available}, {choice, [available, majority]}}
    ]}.

pattern() ->
    Number = fun(Least) -> {whole, "a number", Least, ?MOST_INSTANCES} end,
    {object, "groups by a pattern", [
        {pattern, required, {choice, [parts, star, tree, ring, chain, grid]}},
        {families, optional, {list, "names of families", 1, ?MOST_FAMILIES,
                              {text, "the name of a family", 63}}},
        {name, {default, ~"group"}, group_name()},
        {first, {default, 1}, Number(0)},
        {digits, {default, 1}, {whole, "a number of digits", 1, 9}},
        {consistency, {default, available}, {choice, [available, majority]}},
        {size, optional, Number(1)},
        {groups, optional, Number(1)},
        {gateways, optional, Number(1)},
        {remainder, optional, {choice, [spread, last, error, left_out]}},
        {hubs, optional, Number(1)},
        {masters, optional, Number(0)},
        {branching, optional, {whole, "a number", 2, 5000}},
        {levels, optional, {whole, "a number of levels", 2, 20}},
        {leaves, optional, Number(1)},
        {columns, optional, Number(1)}
    ]}.

upgrade() ->
    {object, "upgrade settings", [
        {batch, {default, 1}, {whole, "a number of nodes", 1, ?MOST_INSTANCES}},
        {canaries, {default, 1}, {whole, "a number of nodes", 0, ?MOST_INSTANCES}},
        {wait_s, {default, 10}, {whole, "a number of seconds", 0, ?DAY_S}},
        {roll_back, {default, true}, boolean},
        {alarms, optional, {object, "where alarms are read", [
            {url, required, {hidden,
             {matches, ?DASHBOARD,
              "the address of a dashboard, such as http://127.0.0.1:8090, without #token=..., "
              "which belongs into token"}}},
            {token, required, {hidden, secret_here()}},
            {tls_ca, optional, {path, "a file of certificates (PEM)"}}
        ]}}
    ]}.

%% ---------------------------------------------------------------- parts of several

name(What) -> {matches, ?NAME, What ++ ": " ++ ?NAME_TEXT}.

release_name(What) ->
    {matches, "[a-z0-9][A-Za-z0-9_.-]{0,127}",
     What ++ ": a small letter or digit, then letters, digits, _ - and ."}.

family_name() ->
    {matches, ?FAMILY, "the name of a family: " ?NAME_TEXT ", and no digit at its end"}.

group_name() ->
    {matches, "[^\\x00-\\x1f]{1,200}", "the name of a group: 1 to 200 bytes, no line ends"}.

variable() ->
    {matches, ?VARIABLE, "the name of a variable: letters, digits and _, not SDERL_OPS_..."}.

secret() ->
    {reference, [{env, variable()}, {file, {path, "a file"}}, {secret, kubernetes_secret()}]}.

%% For secrets that the service reads itself.
secret_here() -> {reference, [{env, variable()}, {file, {path, "a file"}}]}.

kubernetes_secret() ->
    {matches, ?DNS_NAME "/[A-Za-z0-9._-]{1,253}",
     "a key of a Secret of Kubernetes: NAME/KEY"}.

%% Without secrets, because every user of the machine can read command lines.
command(What) ->
    {list, What ++ ", word by word", 1, 100, template("a word of the command", 4096)}.

template(What, Most) -> {template, What, Most}.

seconds(Most) -> {whole, "a number of seconds", 1, Most}.
