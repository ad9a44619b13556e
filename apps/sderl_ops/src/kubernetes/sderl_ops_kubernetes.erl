%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_kubernetes).
-moduledoc """
The objects of Kubernetes for a file of operations. Pure, except that it reads `priv/pod.sh`.

A family is a StatefulSet with a headless Service and a ConfigMap: `web3` of the cluster `shop` is
the pod `shop-web-3` and the node `web3@shop-web-3.shop-web.NAMESPACE.svc.cluster.local`. Members of
groups, labels and settings are those that `m:sderl_ops_desired` says for all providers.
""".

-export([render/2]).
-export_type([part/0]).

-doc "Objects that belong into one file: those of the cluster, then those of each family.".
-type part() :: {cluster | {family, binary()}, [sderl_ops_yaml:value(), ...]}.

-type problem() :: sderl_ops_walker:problem().

-doc """
With `canary` only the canaries of each family are replaced. The notes say where Kubernetes differs
from the service, and what has to exist beforehand.
""".
-spec render(sderl_ops_file:file(), #{canary := boolean()}) ->
    {ok, [part()], Notes :: [unicode:chardata()]} | {error, [problem(), ...]}.
render(#{families := Families, upgrade := #{batch := Batch}} = File, Options) ->
    maybe
        {ok, Desired} ?= desired(File),
        Nodes = node_names(Desired, File),
        All = [family(Name, Desired, Nodes, File) || Name := _ <- maps:iterator(Families, ordered)],
        {ok, Parts} ?= family_parts(All, File, Options),
        Cluster = network_policies(File) ++ budgets(sderl_ops_budgets:budgets(Desired, Batch),
                                                    File),
        {ok, [{cluster, Cluster} || Cluster =/= []] ++ Parts, notes(Desired, File)}
    end.

%% There are no hosts, and an image is known by its name.
desired(#{releases := Releases} = File) ->
    Sums = #{Name => binary:encode_hex(crypto:hash(sha256, [~"image ", Image]), lowercase)
             || Name := #{image := Image} <- Releases},
    sderl_ops_desired:from(File, #{revision => 0, sums => Sums, hosts => #{}}).

%% The node of each instance.
node_names(#{instances := Instances, cluster := Cluster}, File) ->
    #{Id => sderl_ops_adopted:node_name(Id, address(Instance, Cluster, File),
                                        sderl_ops_memory:new())
      || Id := Instance <- Instances}.

address(#{family := Family, index := Index}, Cluster, File) ->
    Pod = sderl_ops_pods:pod_name(Cluster, Family, integer_to_binary(Index)),
    sderl_ops_pods:address(Pod, Cluster, Family, sderl_ops_pods:provider(Family, File)).

family(Name, #{cluster := Cluster, instances := Instances, groups := Groups} = Desired, Nodes,
       #{families := Families, releases := Releases, domains := Domains} = File) ->
    #{Name := #{release := Release, count := Count, domains := Of} = Family} = Families,
    #{<<Name/binary, "1">> := First} = Instances,
    #{
        name => Name,
        cluster => Cluster,
        cookie => sderl_ops_pods:cookie(File),
        count => Count,
        provider => sderl_ops_pods:provider(Name, File),
        family => Family,
        release => map_get(Release, Releases),
        release_name => Release,
        settings => sderl_ops_desired:settings(First, Desired),
        domains => [map_get(Domain, Domains) || Domain <- Of],
        groups => [#{name => Group, consistency => Consistency, own => own(Own, Count),
                     nodes => [map_get(Id, Nodes) || Id <- Members]}
                   || #{name := Group, members := Members, consistency := Consistency} <- Groups,
                      [_ | _] = Own <- [[Id || Id <- Members, is_of(Id, Name, Instances)]]]
    }.

is_of(Id, Family, Instances) ->
    #{Id := #{family := Of}} = Instances,
    Of =:= Family.

%% `all` stays the same if the family is scaled.
own(Ids, Count) when length(Ids) =:= Count -> all;
own(Ids, _) -> lists:sort(Ids).

family_parts(All, File, Options) ->
    Parts = [family_part(Family, File, Options) || Family <- All],
    case lists:append([Problems || {error, Problems} <- Parts]) of
        [] -> {ok, [Part || {ok, Part} <- Parts]};
        Problems -> {error, lists:usort(Problems)}
    end.

family_part(#{name := Name} = Family, File, Options) ->
    maybe
        {ok, Data} ?= sderl_ops_pod_files:data(Family),
        Hash = hash(sderl_ops_pod_files:changes_with(Data, Family)),
        {ok, {{family, Name}, [
            (object(~"v1", ~"ConfigMap", Family))#{~"data" => Data},
            service(Family),
            stateful_set(Hash, Family, File, Options)
        ]}}
    end.

hash(Term) ->
    Hash = crypto:hash(sha256, term_to_binary(Term, [deterministic])),
    binary:part(binary:encode_hex(Hash, lowercase), 0, 32).

%% ---------------------------------------------------------------- of a family

object(Version, Kind, #{cluster := Cluster, name := Name, provider := Provider}) ->
    object(Version, Kind, sderl_ops_pods:object_name(Cluster, Name),
           family_labels(Cluster, Name), Provider).

object(Version, Kind, Name, Labels, #{namespace := Namespace, labels := More}) ->
    #{~"apiVersion" => Version, ~"kind" => Kind,
      ~"metadata" => #{~"name" => Name, ~"namespace" => Namespace,
                       ~"labels" => maps:merge(More, managed(Labels))}}.

managed(Labels) -> Labels#{~"app.kubernetes.io/managed-by" => ~"sderl-ops"}.

cluster_labels(Cluster) -> #{~"app.kubernetes.io/part-of" => Cluster}.

family_labels(Cluster, Name) ->
    (cluster_labels(Cluster))#{~"app.kubernetes.io/component" => Name}.

%% Nodes look for each other before they are ready.
service(#{cluster := Cluster, name := Name, provider := #{port := Port}} = Family) ->
    (object(~"v1", ~"Service", Family))#{
        ~"spec" => #{~"clusterIP" => ~"None",
                     ~"publishNotReadyAddresses" => true,
                     ~"selector" => family_labels(Cluster, Name),
                     ~"ports" => [#{~"name" => ~"erl-dist", ~"port" => Port}]}
    }.

%% Pods start in parallel, because a group waits for its members; they are replaced one by one
%% anyway.
stateful_set(Hash, #{cluster := Cluster, name := Name, count := Count, provider := Provider} =
                 Family,
             #{upgrade := #{canaries := Canaries, wait_s := Wait}}, #{canary := IsCanary}) ->
    Labels = family_labels(Cluster, Name),
    #{labels := More} = Provider,
    Partition = case IsCanary of
        true -> max(0, Count - Canaries);
        false -> 0
    end,
    Spec = #{
        ~"serviceName" => sderl_ops_pods:object_name(Cluster, Name),
        ~"replicas" => Count,
        ~"ordinals" => #{~"start" => 1},
        ~"podManagementPolicy" => ~"Parallel",
        ~"minReadySeconds" => Wait,
        ~"updateStrategy" => #{~"type" => ~"RollingUpdate",
                               ~"rollingUpdate" => #{~"partition" => Partition}},
        ~"selector" => #{~"matchLabels" => Labels},
        ~"template" => #{
            ~"metadata" => #{~"labels" => maps:merge(More, managed(Labels)),
                             ~"annotations" => #{~"sderl-ops/configuration" => Hash}},
            ~"spec" => sderl_ops_pod_spec:spec(Family, Labels)
        }
    },
    (object(~"apps/v1", ~"StatefulSet", Family))#{~"spec" => maps:merge(Spec, claims(Provider))}.

claims(#{storage := #{size := Size} = Storage}) ->
    Claim = #{~"accessModes" => [~"ReadWriteOnce"],
              ~"resources" => #{~"requests" => #{~"storage" => Size}}},
    Class = #{~"storageClassName" => Class || class := Class <- Storage},
    #{~"volumeClaimTemplates" => [#{~"metadata" => #{~"name" => ~"state"},
                                    ~"spec" => maps:merge(Claim, Class)}]};
claims(_) ->
    #{}.

%% ---------------------------------------------------------------- of the cluster

%% Other ports stay open to all.
network_policies(#{cluster := Cluster, providers := Providers}) ->
    Namespaces = lists:usort([Namespace || _ := #{namespace := Namespace} <- Providers]),
    [(object(~"networking.k8s.io/v1", ~"NetworkPolicy", <<Cluster/binary, "-nodes">>,
             cluster_labels(Cluster), Provider))#{
         ~"spec" => #{
             ~"podSelector" => #{~"matchLabels" => cluster_labels(Cluster)},
             ~"policyTypes" => [~"Ingress"],
             ~"ingress" => [
                 #{~"from" => [peers(Namespace, Cluster) || Namespace <- Namespaces],
                   ~"ports" => [#{~"protocol" => ~"TCP", ~"port" => Port}]},
                 #{~"ports" => [ports(~"TCP", 1, Port - 1) || Port > 1]
                       ++ [ports(~"TCP", Port + 1, 65535) || Port < 65535]
                       ++ [ports(~"UDP", 1, 65535)]}
             ]
         }
     } || _ := #{network_policy := true, port := Port} = Provider
              <- maps:iterator(Providers, ordered)].

peers(Namespace, Cluster) ->
    #{~"namespaceSelector" => #{~"matchLabels" => #{~"kubernetes.io/metadata.name" => Namespace}},
      ~"podSelector" => #{~"matchLabels" => cluster_labels(Cluster)}}.

ports(Protocol, From, To) -> #{~"protocol" => Protocol, ~"port" => From, ~"endPort" => To}.

budgets(Budgets, #{cluster := Cluster} = File) ->
    [begin
         {Names, Limit, Expression} = allowed(Budget, Cluster),
         Provider = sderl_ops_pods:provider(hd(Names), File),
         Labels = cluster_labels(Cluster),
         (object(~"policy/v1", ~"PodDisruptionBudget",
                 <<Cluster/binary, "-budget-", (integer_to_binary(Number))/binary>>, Labels,
                 Provider))#{
             ~"spec" => Limit#{~"selector" => #{~"matchLabels" => Labels,
                                                ~"matchExpressions" => [Expression]}}
         }
     end || {Number, Budget} <- lists:enumerate(Budgets)].

allowed({families, Names, Most}, _) ->
    {Names, #{~"maxUnavailable" => Most}, among(~"app.kubernetes.io/component", Names)};
allowed({instances, Ids, Least}, Cluster) ->
    Parts = [split(Id) || Id <- Ids],
    Pods = [sderl_ops_pods:pod_name(Cluster, Family, Index) || {Family, Index} <- Parts],
    {[Family || {Family, _} <- Parts], #{~"minAvailable" => Least},
     among(~"statefulset.kubernetes.io/pod-name", Pods)}.

among(Key, Values) -> #{~"key" => Key, ~"operator" => ~"In", ~"values" => Values}.

split(Id) ->
    Family = string:trim(Id, trailing, "0123456789"),
    {Family, binary:part(Id, byte_size(Family), byte_size(Id) - byte_size(Family))}.

%% ---------------------------------------------------------------- notes

notes(Desired, #{upgrade := #{batch := Batch} = Upgrade, families := Families} = File) ->
    secrets(File)
        ++ sderl_ops_budgets:notes(Desired)
        ++ [["upgrade.batch: a StatefulSet replaces one node at a time, and not ",
             integer_to_list(Batch)] || Batch > 1]
        ++ ["upgrade.alarms: Kubernetes replaces nodes without asking for alarms"
            || is_map_key(alarms, Upgrade)]
        ++ [["families.", Name, ".restart: Kubernetes never gives a node up; it waits longer "
             "between starts, at most 5 minutes"]
            || Name := #{restart := #{most := Most, within_s := Within}}
                   <- maps:iterator(Families, ordered), {Most, Within} =/= {5, 300}].

%% Secrets are not rendered, so they are only listed.
secrets(#{cluster := Cluster, cookie := Cookie, providers := Providers} = File) ->
    {Secret, Key} = sderl_ops_pods:cookie(File),
    Namespaces = lists:usort([Namespace || _ := #{namespace := Namespace} <- Providers]),
    [["the cookie of ", Cluster, " is made once: head -c 24 /dev/urandom | base64 | tr -d '\\n' | "
      "kubectl create secret generic ", Secret, " --namespace ", Namespace, " --from-file=", Key,
      "=/dev/stdin"] || Cookie =:= generated, Namespace <- Namespaces]
        ++ [["Secrets that have to be there: ", lists:join(", ", Names)]
            || [_ | _] = Names <- [lists:usort(secret_names(File))]].

secret_names(#{cookie := Cookie, families := Families, releases := Releases}) ->
    [Name || {secret, Name} <- [Cookie]]
        ++ [Name || _ := #{env := Env, release := Release} <- Families,
                    Texts <- [Env, map_get(env, map_get(Release, Releases)),
                              map_get(files, map_get(Release, Releases))],
                    _ := {secret, Name} <- Texts].
