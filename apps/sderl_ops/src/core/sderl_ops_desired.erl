%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_desired).
-moduledoc """
The desired state: each instance of each family of a file of operations, with the hosts on which it
may run, and the groups with their members.
""".

-export([from/2, instance/2, settings/2, host_labels/1]).
-export_type([desired/0, instance/0, instance_id/0, host/0, host_id/0, sha/0, hash/0, settings/0,
              source/0, pool/0, group/0, restart/0, given/0]).

-doc "A family and a number: `web3`.".
-type instance_id() :: binary().
-doc "A provider and a host of it: `lab/a`.".
-type host_id() :: binary().
-doc "64 digits.".
-type sha() :: binary().
-type hash() :: binary().
-type group() :: sderl_ops_groups:group().
-type restart() :: sderl_ops_file:restart().

-doc """
`former` is what each family goes back to if it has to (`m:sderl_ops_former`), `at_once` how many
steps may run at a time (`m:sderl_ops_choose`).
""".
-type desired() :: #{
    cluster := binary(),
    names := long | short,
    revision := non_neg_integer(),
    releases := #{sha() => source()},
    settings := #{hash() => settings()},
    hosts := #{host_id() => host()},
    instances := #{instance_id() => instance()},
    groups := [group()],
    upgrade := upgrade(),
    former => #{Family :: binary() => #{instance_id() => instance()}},
    at_once => #{steps => pos_integer(), fetches => pos_integer(), per_host => pos_integer()}
}.

-doc "`force`: an operator wants what the rules refuse.".
-type upgrade() :: #{
    batch := pos_integer(),
    canaries := non_neg_integer(),
    wait_s := non_neg_integer(),
    roll_back := boolean(),
    alarms => sderl_ops_file:alarms(),
    force => boolean()
}.

-doc """
A host that a domain has. `lost_after_s`: how long it may be unreachable until its instances go
elsewhere; a host that is a folder of this machine never is lost. `relay`: it gives releases to the
others of its provider.
""".
-type host() :: #{
    provider := binary(),
    labels := #{binary() => binary()},
    lost_after_s := pos_integer() | never,
    relay => boolean()
}.

-doc """
`node` and `host` are `undefined` until a host is assigned. `adopt` is present if the file names a
node that may run already; `as` is a hash of the release's name and the family's own settings, by
which such a node is compared with the file. `settings` is the hash of what is laid out
(`settings/2`), without the values of secrets. `candidates` are in the order in which `pack` takes
them. `pools` are the domains whose hosts a program makes.
""".
-type instance() :: #{
    id := instance_id(),
    family := binary(),
    index := pos_integer(),
    node := binary() | undefined,
    host := host_id() | undefined,
    release := sha(),
    settings := hash(),
    labels := #{binary() => binary()},
    restart := restart(),
    limits := sderl_ops_file:limits(),
    adopt => sderl_ops_adopted:adoption(),
    as => hash(),
    select := spread | pack | random,
    candidates := [host_id()],
    pools => #{Domain :: binary() => pool()}
}.

-doc "A domain that has a number of hosts, which a program makes (`m:sderl_ops_machines`).".
-type pool() :: #{
    domain := binary(),
    provider := binary(),
    hosts := pos_integer(),
    lost_after_s := pos_integer(),
    region => binary(),
    rack => binary(),
    labels := #{binary() => binary()}
}.

-doc """
Where a release comes from: its `archive`, `folder` or `code`, and the name in the file. Of one that
is `running` it is not known how it is started.
""".
-type source() :: #{
    name := binary(),
    archive => binary(),
    folder => binary(),
    code => [binary(), ...],
    running => binary()
}.

-doc """
All that is laid out on a host beside the release itself, as templates and references to secrets.
`env` is the release's, overridden by the family's. All instances of a family have the same
settings.
""".
-type settings() :: #{
    cluster := binary(),
    names := long | short,
    cookie := generated | sderl_ops_file:secret(),
    kind := release | code,
    applications := [binary()],
    start => sderl_ops_file:command(),
    stop => sderl_ops_file:command(),
    check => sderl_ops_file:command(),
    hooks := sderl_ops_file:hooks(),
    files := #{binary() => sderl_ops_file:text()},
    env := #{binary() => sderl_ops_file:text()},
    config := sderl_ops_config:config(),
    start_timeout_s := pos_integer(),
    stop_timeout_s := pos_integer()
}.

-doc """
What the file does not say: the checksum of each release by its name in the file (an archive has its
own), and the names of the hosts of each provider; `addresses` of hosts where instances are adopted.
""".
-type given() :: #{
    revision := non_neg_integer(),
    sums := #{Release :: binary() => sha()},
    hosts := #{Provider :: binary() => [binary()]},
    addresses => #{host_id() => binary()}
}.

-doc """
The desired state of a checked file. A problem is a release without a checksum, or a domain that has
a host which its provider does not have (any more).
""".
-spec from(sderl_ops_file:file(), given()) ->
    {ok, desired()} | {error, [sderl_ops_file:problem(), ...]}.
from(File, #{revision := Revision} = Given) ->
    #{cluster := Cluster, names := Names, upgrade := Upgrade} = File,
    maybe
        {ok, Sums} ?= sums(File, Given),
        {ok, Domains} ?= domain_hosts(File, Given),
        {ok, Groups} ?= sderl_ops_groups:expand(File),
        {ok, Adopt} ?= adoptions(File, Domains, Given),
        {Instances, Settings} = instances(File, Sums, Domains, Adopt),
        {ok, #{
            cluster => Cluster,
            names => Names,
            revision => Revision,
            releases => sources(File, Sums),
            settings => Settings,
            hosts => host_facts(File, Domains),
            instances => Instances,
            groups => Groups,
            upgrade => Upgrade
        }}
    end.

-doc "An instance by its id.".
-spec instance(instance_id(), desired()) -> {ok, instance()} | none.
instance(Id, #{instances := Instances}) ->
    case Instances of
        #{Id := Instance} -> {ok, Instance};
        _ -> none
    end.

-doc "What is laid out for an instance.".
-spec settings(instance(), desired()) -> settings().
settings(#{settings := Hash}, #{settings := Settings}) -> map_get(Hash, Settings).

%% ---------------------------------------------------------------- releases

%% Only releases that a family uses.
sums(#{releases := Releases, families := Families}, #{sums := Given}) ->
    Wanted = lists:usort([Name || _ := #{release := Name} <- Families]),
    Sums = #{Name => Sum
             || Name <- Wanted, {ok, Sum} <- [sum(Name, map_get(Name, Releases), Given)]},
    case [Name || Name <- Wanted, not is_map_key(Name, Sums)] of
        [] ->
            {ok, Sums};
        Lacking ->
            {error, [{[~"releases", Name], explained, "it has not been packed and summed"}
                     || Name <- Lacking]}
    end.

sum(_, #{sha256 := Sum}, _) -> {ok, Sum};
sum(Name, _, Given) -> maps:find(Name, Given).

sources(#{releases := Releases}, Sums) ->
    #{Sum => (maps:with([archive, folder, code, running],
                          map_get(Name, Releases)))#{name => Name}
      || Name := Sum <- maps:iterator(Sums, reversed)}.

%% ---------------------------------------------------------------- hosts

%% The hosts of each domain, in order.
domain_hosts(#{domains := Domains}, #{hosts := Provided}) ->
    Found = #{Name => provided_hosts(Name, Domain, Provided) || Name := Domain <- Domains},
    case lists:append([Problems || _ := {error, Problems} <- maps:iterator(Found, ordered)]) of
        [] -> {ok, #{Name => Hosts || Name := {ok, Hosts} <- Found}};
        Problems -> {error, Problems}
    end.

provided_hosts(Name, #{provider := Provider, hosts := Wanted}, Provided) ->
    There = maps:get(Provider, Provided, []),
    Names = case Wanted of
                all -> There;
                [_ | _] -> Wanted;
                _ -> []
            end,
    case Names -- There of
        [] ->
            {ok, [host_id(Provider, Host) || Host <- Names]};
        Gone ->
            {error, [{[~"domains", Name, ~"hosts"], Host,
                      "a host that the provider " ++ binary_to_list(Provider) ++ " has"}
                     || Host <- Gone]}
    end.

host_id(Provider, Host) -> <<Provider/binary, $/, Host/binary>>.

%% A host may be in several domains; what they say of it is put together.
host_facts(#{domains := Domains, providers := Providers}, Hosts) ->
    maps:fold(
        fun(Name, #{provider := Provider} = Domain, Facts) ->
            Labels = host_labels(Domain),
            Of = map_get(Provider, Providers),
            Lost = maps:get(lost_after_s, Of, never),
            lists:foldl(
                fun(Host, Known) ->
                    #{labels := Old} = maps:get(Host, Known, #{labels => #{}}),
                    Known#{Host => #{
                        provider => Provider,
                        labels => maps:merge(Old, Labels),
                        lost_after_s => Lost,
                        relay => maps:get(relay, Of, false)
                    }}
                end,
                Facts, map_get(Name, Hosts)
            )
        end,
        #{}, maps:iterator(Domains, reversed)
    ).

-doc "The labels of a domain, with `region` and `rack`.".
-spec host_labels(sderl_ops_file:domain() | pool()) -> #{binary() => binary()}.
host_labels(#{labels := Labels} = Domain) ->
    Placed = #{atom_to_binary(Key) => Value
               || Key := Value <- maps:with([region, rack], Domain)},
    maps:merge(Labels, Placed).

%% ---------------------------------------------------------------- instances

instances(#{families := Families} = File, Sums, Domains, Adopt) ->
    {Instances, Settings} = lists:mapfoldl(
        fun({Name, Family}, Known) ->
            #{count := Count, release := Release} = Family,
            Laid = family_settings(Family, family_labels(Family, File), File),
            Hash = hash(Laid),
            Pools = pools(Family, File),
            Common = (maps:from_list([{pools, Pools} || Pools =/= #{}]))#{
                family => Name,
                node => undefined,
                host => undefined,
                release => map_get(Release, Sums),
                settings => Hash,
                as => hash({Release, map_get(env, Family), map_get(config, Family),
                            family_labels(Family, File)}),
                labels => family_labels(Family, File),
                restart => map_get(restart, Family),
                limits => map_get(limits, Family),
                select => map_get(select, Family),
                candidates => interleave([map_get(Domain, Domains)
                                          || Domain <- map_get(domains, Family)])
            },
            Adopted = maps:get(Name, Adopt, #{}),
            {[family_instance(Index, Common, Adopted) || Index <- lists:seq(1, Count)],
             Known#{Hash => Laid}}
        end,
        #{}, maps:to_list(maps:iterator(Families, ordered))
    ),
    {maps:from_list(lists:append(Instances)), Settings}.

pools(#{domains := Names}, #{domains := Domains, providers := Providers}) ->
    #{Name => (maps:with([region, rack, labels], Domain))#{
                  domain => Name,
                  provider => Provider,
                  hosts => Count,
                  lost_after_s => map_get(lost_after_s, map_get(Provider, Providers))}
      || Name <- Names,
         #{provider := Provider, hosts := Count} = Domain <- [map_get(Name, Domains)],
         is_integer(Count)}.

family_instance(Index, #{family := Name} = Common, Adopted) ->
    Id = <<Name/binary, (integer_to_binary(Index))/binary>>,
    Instance = Common#{id => Id, index => Index},
    case Adopted of
        #{Index := Adoption} -> {Id, Instance#{adopt => Adoption}};
        #{} -> {Id, Instance}
    end.

%% The nodes that families name, each on the host that has its address; by family and index.
adoptions(#{families := Families, releases := Releases}, Domains, Given) ->
    Addresses = maps:get(addresses, Given, #{}),
    Found = #{Name => adoptions(Family, Domains, Addresses, [~"families", Name, ~"nodes"])
              || Name := #{nodes := [_ | _]} = Family <- Families},
    Unstartable = [{[~"families", Name, ~"count"], explained, not_startable(Release, Nodes)}
                   || Name := #{release := Release, count := Count} = Family <- Families,
                      Nodes <- [length(maps:get(nodes, Family, []))], Count > Nodes,
                      is_map_key(running, map_get(Release, Releases))],
    case lists:append([Problems || _ := {_, Problems} <- Found]) ++ Unstartable of
        [] -> {ok, #{Name => Adopted || Name := {Adopted, _} <- Found}};
        Problems -> {error, lists:usort(Problems)}
    end.

adoptions(#{nodes := Nodes, count := Count, domains := Names}, Domains, Addresses, Path) ->
    Hosts = [{map_get(Host, Addresses), Host}
             || Host <- lists:append([map_get(Name, Domains) || Name <- Names]),
                is_map_key(Host, Addresses)],
    lists:foldl(fun({Index, Node}, {Adopted, Problems}) ->
        [_, Address] = binary:split(Node, ~"@"),
        case lists:keyfind(Address, 1, Hosts) of
            {_, Host} -> {Adopted#{Index => #{node => Node, host => Host}}, Problems};
            false -> {Adopted, [{Path ++ [Index], Node, elsewhere(Hosts)} | Problems]}
        end
    end, {#{}, []}, lists:enumerate(lists:sublist(Nodes, Count))).

elsewhere(Hosts) ->
    Some = lists:sublist(lists:usort([binary_to_list(Address) || {Address, _} <- Hosts]), 5),
    "a node on a host of the family's domains, which have the addresses "
        ++ lists:append(lists:join(", ", Some)).

not_startable(Release, Nodes) ->
    lists:flatten(io_lib:format(
        "~b of its nodes run, and how more are started is not known: say so in the release ~ts "
        "(archive or folder with start, or code, instead of running)", [Nodes, Release])).

%% One host of each domain, then the next of each, so that neighbours are in different domains.
interleave(Lists) -> lists:uniq(interleave(Lists, [])).

interleave([], []) -> [];
interleave([], Next) -> interleave(lists:reverse(Next), []);
interleave([[Host | Hosts] | Lists], Next) -> [Host | interleave(Lists, [Hosts | Next])];
interleave([[] | Lists], Next) -> interleave(Lists, Next).

%% A label that all its hosts have in common is one of its instances, too.
family_labels(#{labels := Labels, domains := [First | Others]}, #{domains := Domains}) ->
    Common = lists:foldl(
        fun(Name, Acc) ->
            Of = host_labels(map_get(Name, Domains)),
            maps:filter(fun(Key, Value) -> maps:find(Key, Of) =:= {ok, Value} end, Acc)
        end,
        host_labels(map_get(First, Domains)), Others
    ),
    maps:merge(Common, Labels).

%% Labels are attributes of placement. What the configuration says itself stays.
with_labels(Config, Labels) when map_size(Labels) =:= 0 -> Config;
with_labels(Config, Labels) ->
    Own = maps:get(~"sderl", Config, #{}),
    Config#{~"sderl" => maps:merge(#{~"labels" => Labels}, Own)}.

family_settings(#{release := Name, hooks := Hooks, env := Env, config := Config}, Labels, File) ->
    #{cluster := Cluster, names := Names, cookie := Cookie, releases := Releases} = File,
    #{env := Below, files := Files} = Release = map_get(Name, Releases),
    (maps:with([start, stop, check, start_timeout_s, stop_timeout_s], Release))#{
        cluster => Cluster,
        names => Names,
        cookie => Cookie,
        kind => case Release of #{code := _} -> code; _ -> release end,
        applications => maps:get(applications, Release, []),
        hooks => Hooks,
        files => Files,
        env => maps:merge(Below, Env),
        config => with_labels(Config, Labels)
    }.

hash(Settings) ->
    Bytes = term_to_binary(Settings, [deterministic]),
    string:lowercase(binary:encode_hex(crypto:hash(sha256, Bytes))).
