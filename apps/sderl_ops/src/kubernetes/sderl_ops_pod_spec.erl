%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_pod_spec).
-moduledoc """
The template of a family's pods: the container with its environment, probes and mounts, and where
pods may be.

A pod is live while the port of its node accepts connections. A node that is busy, or waits for its
groups, accepts them, so it is not killed.
""".

-export([spec/2]).

-define(PERIOD_S, 10).
-define(UP_PERIOD_S, 2).
-define(TIMEOUT_S, 10).
%% The time for a node to leave its groups, and for hooks.
-define(DRAIN_S, 60).

-doc "`Labels` are those by which the pods of the family are found.".
-spec spec(sderl_ops_pod_files:family(), Labels :: #{binary() => binary()}) ->
    #{binary() => sderl_ops_yaml:value()}.
spec(#{provider := Provider, settings := #{stop_timeout_s := Stop}} = Family, Labels) ->
    merged([
        #{~"containers" => [container(Family)],
          ~"volumes" => volumes(Family),
          ~"terminationGracePeriodSeconds" => Stop + ?DRAIN_S,
          ~"automountServiceAccountToken" => is_map_key(service_account, Provider)},
        #{~"serviceAccountName" => Account || service_account := Account <- Provider},
        #{~"imagePullSecrets" => [#{~"name" => Secret}] || pull_secret := Secret <- Provider},
        security(Provider),
        place(Family, Labels)
    ]).

security(#{run_as := User}) ->
    #{~"securityContext" => #{~"runAsNonRoot" => true, ~"runAsUser" => User, ~"runAsGroup" => User,
                              ~"fsGroup" => User,
                              ~"seccompProfile" => #{~"type" => ~"RuntimeDefault"}}};
security(_) ->
    #{}.

merged(Maps) -> lists:foldl(fun(Map, Acc) -> maps:merge(Acc, Map) end, #{}, Maps).

%% ---------------------------------------------------------------- the container

container(#{release := #{image := Image} = Release, settings := Settings} = Family) ->
    #{start := Start, start_timeout_s := StartS} = Settings,
    #{provider := #{port := Port, ready := Ready} = Provider, name := Name} = Family,
    Values = sderl_ops_pod_files:variables(fun expand/1, Family),
    merged([
        #{~"name" => Name,
          ~"image" => Image,
          ~"command" => script([~"start"]),
          ~"args" => [sderl_ops_template:render(escape(Word), Values) || Word <- Start],
          ~"env" => environment(Family, Values),
          ~"ports" => [#{~"name" => ~"erl-dist", ~"containerPort" => Port}],
          ~"lifecycle" => #{~"preStop" => exec([~"drain"])},
          ~"startupProbe" => probe(exec([~"up"]), ?UP_PERIOD_S,
                                   (StartS + ?UP_PERIOD_S - 1) div ?UP_PERIOD_S),
          ~"readinessProbe" => probe(exec([~"ready", atom_to_binary(Ready)]), ?PERIOD_S, 3),
          ~"livenessProbe" => probe(#{~"tcpSocket" => #{~"port" => ~"erl-dist"}}, ?PERIOD_S, 6),
          ~"volumeMounts" => mounts(Family)},
        #{~"workingDir" => Directory || directory := Directory <- Release},
        resources(Family),
        #{~"securityContext" => #{~"allowPrivilegeEscalation" => false,
                                  ~"capabilities" => #{~"drop" => [~"ALL"]}}
          || run_as := _ <- Provider}
    ]).

script(Words) -> [~"sh", ~"/sderl/config/pod.sh" | Words].

exec(Words) -> #{~"exec" => #{~"command" => script(Words)}}.

probe(What, Period, Failures) ->
    What#{~"periodSeconds" => Period, ~"timeoutSeconds" => ?TIMEOUT_S,
          ~"failureThreshold" => Failures}.

%% Equal requests and limits: such pods are evicted last, and Erlang starts as many schedulers.
resources(#{family := #{limits := Limits}}) ->
    case #{atom_to_binary(Key) => Value || Key := Value <- maps:with([cpu, memory], Limits)} of
        Empty when map_size(Empty) =:= 0 -> #{};
        Asked -> #{~"resources" => #{~"requests" => Asked, ~"limits" => Asked}}
    end.

%% ---------------------------------------------------------------- the environment

%% A variable may refer to those before it.
environment(#{settings := #{env := Env}, cookie := {Secret, Key}} = Family, Values) ->
    #{provider := #{port := Port}, release := Release} = Family,
    Own = [
        from_field(~"SDERL_OPS_POD", ~"metadata.name"),
        from_field(~"SDERL_OPS_INDEX", ~"metadata.labels['apps.kubernetes.io/pod-index']"),
        from_field(~"SDERL_OPS_IP", ~"status.podIP"),
        from_field(~"SDERL_OPS_HOST", ~"spec.nodeName"),
        plain(~"SDERL_OPS_PORT", integer_to_binary(Port)),
        plain(~"SDERL_OPS_NODE", text(map_get(~"node", Values)))
    ] ++ [plain(~"SDERL_OPS_RELEASE", Directory) || directory := Directory <- Release],
    Usual = [
        plain(~"HOME", text(map_get(~"home", Values))),
        plain(~"ERL_CRASH_DUMP", ~"/sderl/log/erl_crash.dump"),
        %% Scripts of releases of rebar3 take the port from here and write here, those of Mix take
        %% the rest.
        plain(~"ERL_DIST_PORT", ~"$(SDERL_OPS_PORT)"),
        plain(~"RELX_OUT_FILE_PATH", text(map_get(~"home", Values))),
        plain(~"RELEASE_DISTRIBUTION", ~"name"),
        plain(~"RELEASE_NODE", ~"$(SDERL_OPS_NODE)"),
        plain(~"RELEASE_TMP", text(map_get(~"home", Values))),
        from_secret(~"RELEASE_COOKIE", Secret, Key)
    ],
    Own ++ [Variable || #{~"name" := Name} = Variable <- Usual, not is_map_key(Name, Env)]
        ++ [variable(Name, Value, Values) || Name := Value <- maps:iterator(Env, ordered)].

variable(Name, {secret, Reference}, _) ->
    [Secret, Key] = binary:split(Reference, ~"/"),
    from_secret(Name, Secret, Key);
variable(Name, Text, Values) ->
    plain(Name, sderl_ops_template:render(escape(Text), Values)).

plain(Name, Value) -> #{~"name" => Name, ~"value" => Value}.

from_field(Name, Path) ->
    #{~"name" => Name, ~"valueFrom" => #{~"fieldRef" => #{~"fieldPath" => Path}}}.

from_secret(Name, Secret, Key) ->
    #{~"name" => Name,
      ~"valueFrom" => #{~"secretKeyRef" => #{~"name" => Secret, ~"key" => Key}}}.

expand(Variable) -> ["$(", Variable, ")"].

%% Kubernetes reads $$ as $.
escape(Text) -> text(string:replace(Text, "$", "$$", all)).

text(Chars) -> unicode:characters_to_binary(Chars).

%% ---------------------------------------------------------------- volumes

volumes(#{cookie := {Secret, Key}, provider := Provider} = Family) ->
    [
        #{~"name" => ~"config", ~"configMap" => #{~"name" => object_name(Family)}},
        #{~"name" => ~"cookie",
          ~"secret" => #{~"secretName" => Secret,
                         ~"items" => [#{~"key" => Key, ~"path" => ~"cookie"}]}},
        #{~"name" => ~"run", ~"emptyDir" => #{~"medium" => ~"Memory", ~"sizeLimit" => ~"16Mi"}},
        #{~"name" => ~"log", ~"emptyDir" => #{}}
    ]
        ++ [#{~"name" => ~"state", ~"emptyDir" => #{}} || not is_map_key(storage, Provider)]
        ++ [#{~"name" => ~"files",
              ~"configMap" => #{~"name" => object_name(Family),
                                ~"items" => [#{~"key" => FileKey, ~"path" => FileKey,
                                               ~"mode" => Mode}
                                             || {FileKey, _, Mode, _} <- Files]}}
            || [_ | _] = Files <- [sderl_ops_pod_files:files(Family)]]
        ++ [#{~"name" => volume_name(Name), ~"secret" => #{~"secretName" => Name}}
            || Name <- lists:usort([Name || {_, Name, _} <- secret_files(Family)])].

mounts(#{release := Release} = Family) ->
    [#{~"name" => Name, ~"mountPath" => <<"/sderl/", Name/binary>>}
     || Name <- [~"config", ~"cookie", ~"run", ~"log", ~"state"]]
        ++ [#{~"name" => Volume, ~"mountPath" => <<Directory/binary, $/, Path/binary>>,
              ~"subPath" => Key, ~"readOnly" => true}
            || Directory <- [maps:get(directory, Release, ~"")],
               {Volume, Path, Key} <-
                   [{~"files", Path, Key}
                    || {Key, Path, _, _} <- sderl_ops_pod_files:files(Family)]
                   ++ [{volume_name(Name), Path, Key}
                       || {Path, Name, Key} <- secret_files(Family)]].

secret_files(#{settings := #{files := Files}}) ->
    [{Path, Name, Key} || Path := {secret, Reference} <- maps:iterator(Files, ordered),
                          [Name, Key] <- [binary:split(Reference, ~"/")]].

%% Names of volumes are shorter than those of Secrets, and have no dots.
volume_name(Secret) ->
    Hash = binary:encode_hex(crypto:hash(sha256, Secret), lowercase),
    <<"secret-", (binary:part(Hash, 0, 16))/binary>>.

object_name(#{cluster := Cluster, name := Name}) -> sderl_ops_pods:object_name(Cluster, Name).

%% ---------------------------------------------------------------- where

place(#{family := #{select := Select, limits := Limits}, domains := Domains} = Family, Labels) ->
    #{provider := #{topology := Topology}} = Family,
    Near = affinity(Select, Limits, Labels),
    Nodes = [#{~"nodeAffinity" =>
                   #{~"requiredDuringSchedulingIgnoredDuringExecution" =>
                         #{~"nodeSelectorTerms" => Terms}}}
             || [_ | _] = Terms <- [terms(Domains, Topology)]],
    merged([#{~"affinity" => merged([Near | Nodes])} || Near =/= #{} orelse Nodes =/= []]
           ++ [#{~"topologySpreadConstraints" => [spread(Key, Labels)
                                                  || Key <- spread_over(Domains, Topology)]}
               || Select =:= spread]).

%% A domain without labels allows all machines.
terms(Domains, Topology) ->
    Wanted = [node_labels(Domain, Topology) || Domain <- Domains],
    case lists:member(#{}, Wanted) of
        true -> [];
        false -> [#{~"matchExpressions" => [#{~"key" => Key, ~"operator" => ~"In",
                                              ~"values" => [Value]}
                                            || Key := Value <- maps:iterator(Of, ordered)]}
                  || Of <- Wanted]
    end.

node_labels(#{labels := Labels} = Domain, #{region := Region, rack := Rack}) ->
    merged([Labels, #{Region => Value || region := Value <- Domain},
            #{Rack => Value || rack := Value <- Domain}]).

%% Over machines, and over racks and regions if the family's domains differ in them.
spread_over(Domains, Topology) ->
    [map_get(Key, Topology) || Key <- [region, rack],
                               length(lists:usort([maps:get(Key, Domain, none)
                                                   || Domain <- Domains])) > 1]
        ++ [~"kubernetes.io/hostname"].

%% A pod starts even if the constraint cannot be kept, as when a zone is lost.
spread(Key, Labels) ->
    #{~"maxSkew" => 1, ~"topologyKey" => Key, ~"whenUnsatisfiable" => ~"ScheduleAnyway",
      ~"labelSelector" => #{~"matchLabels" => Labels}}.

affinity(_, #{per_host := 1}, Labels) ->
    #{~"podAntiAffinity" =>
          #{~"requiredDuringSchedulingIgnoredDuringExecution" => [same_host(Labels)]}};
affinity(pack, _, Labels) ->
    #{~"podAffinity" =>
          #{~"preferredDuringSchedulingIgnoredDuringExecution" =>
                [#{~"weight" => 100, ~"podAffinityTerm" => same_host(Labels)}]}};
affinity(_, _, _) ->
    #{}.

same_host(Labels) ->
    #{~"topologyKey" => ~"kubernetes.io/hostname",
      ~"labelSelector" => #{~"matchLabels" => Labels}}.
