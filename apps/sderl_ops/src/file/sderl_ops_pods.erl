%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_pods).
-moduledoc """
A file whose provider is Kubernetes: the names of its objects and nodes, and settings that are
impossible there. Also settings for Kubernetes in a file for other providers.
""".

-export([is_for_pods/1, object_name/2, pod_name/3, address/4, provider/2, cookie/1, check/1]).

-type problem() :: sderl_ops_walker:problem().

%% The value of Kubernetes' label for a revision is the set's name, a dash and ten characters.
-define(MOST_NAME, 52).
-define(MOST_NODE, 255).
-define(NAME, "[a-z][a-z0-9-]*[a-z0-9]").
-define(LABEL_VALUE, "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?").
-define(OWN_LABELS, "app.kubernetes.io/(?:part-of|component|managed-by)").

-doc "Whether the file is for Kubernetes, where `m:sderl_ops_kubernetes` renders it.".
-spec is_for_pods(sderl_ops_file:file()) -> boolean().
is_for_pods(#{providers := Providers}) -> pod_providers(Providers) =/= [].

pod_providers(Providers) -> [Name || Name := #{type := kubernetes} <- Providers].

-doc "The name of a family's StatefulSet, Service and ConfigMap.".
-spec object_name(Cluster :: binary(), Family :: binary()) -> binary().
object_name(Cluster, Family) -> <<Cluster/binary, $-, Family/binary>>.

-doc "The pod of an instance. Ordinals begin with 1, as instances do.".
-spec pod_name(Cluster :: binary(), Family :: binary(), Index :: binary()) -> binary().
pod_name(Cluster, Family, Index) ->
    <<(object_name(Cluster, Family))/binary, $-, Index/binary>>.

-doc "The name of a pod in the DNS.".
-spec address(Pod :: binary(), Cluster :: binary(), Family :: binary(),
              sderl_ops_file:kubernetes()) -> binary().
address(Pod, Cluster, Family, #{namespace := Namespace, dns_domain := Domain}) ->
    Service = object_name(Cluster, Family),
    <<Pod/binary, $., Service/binary, $., Namespace/binary, ".svc.", Domain/binary>>.

-doc "The provider that all domains of a family have.".
-spec provider(Family :: binary(), sderl_ops_file:file()) -> sderl_ops_file:kubernetes().
provider(Family, #{families := Families, domains := Domains, providers := Providers}) ->
    #{Family := #{domains := [First | _]}} = Families,
    #{First := #{provider := Provider}} = Domains,
    map_get(Provider, Providers).

-doc "The Secret and its key that has the cluster's cookie.".
-spec cookie(sderl_ops_file:file()) -> {Secret :: binary(), Key :: binary()}.
cookie(#{cookie := generated, cluster := Cluster}) -> {<<Cluster/binary, "-cookie">>, ~"cookie"};
cookie(#{cookie := {secret, Name}}) ->
    [Secret, Key] = binary:split(Name, ~"/"),
    {Secret, Key}.

-doc "The problems. Parts of the file that have other problems are left out.".
-spec check(term()) -> [problem()].
check(#{providers := Providers} = File) ->
    Others = [Name || Name := #{type := Type} <- Providers, Type =/= kubernetes],
    case {pod_providers(Providers), Others} of
        {[], [_ | _]} when length(Others) =:= map_size(Providers) -> check_elsewhere(File);
        {[], _} -> [];
        {Pods, []} -> check_cluster(File, Pods) ++ check_domains(File) ++ check_all_families(File);
        {Pods, [Other | _]} -> [mixed(Pod, Other) || Pod <- Pods]
    end.

mixed(Pod, Other) ->
    {[~"providers", Pod], explained,
     flat("it is Kubernetes, which starts its nodes itself, and ~ts is not: put each into a file "
          "of its own (they may name the same cluster and cookie)", [Other])}.

flat(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

%% ---------------------------------------------------------------- for Kubernetes

check_cluster(#{cookie := Cookie, providers := Providers} = File, Pods) ->
    [{[~"names"], explained, "on Kubernetes nodes are called after the DNS names of their pods, "
                             "which have dots: leave it out, or say \"long\""}
     || #{names := short} <- [File]] ++
        [{[~"cookie"], explained, reference(Cookie)} || is_here(Cookie)] ++
        [{[~"providers", Pod, ~"labels", Label], explained,
          "that label is set by what is rendered: choose another name"}
         || Pod <- Pods, #{labels := Labels} <- [map_get(Pod, Providers)],
            Label := _ <- maps:iterator(Labels, ordered), matches(Label, ?OWN_LABELS)].

is_here({Where, _}) -> Where =:= env orelse Where =:= file;
is_here(_) -> false.

reference({_, _} = Secret) ->
    flat("~ts is read where operations run, and no secret is rendered: make a Secret of "
         "Kubernetes, and name its key, as {\"secret\": \"NAME/KEY\"}",
         [sderl_ops_secret:describe(Secret)]).

check_domains(#{domains := Domains}) ->
    lists:append([check_domain(Domain, [~"domains", Name]) || Name := Domain <- Domains,
                                                               Domain =/= broken]).

check_domain(#{hosts := Hosts, labels := Labels} = Domain, Path) ->
    Values = [{Path ++ [atom_to_binary(Key)], Value}
              || Key := Value <- maps:with([region, rack], Domain)]
        ++ [{Path ++ [~"labels", Key], Value} || Key := Value <- Labels],
    [{Path ++ [~"hosts"], explained, "Kubernetes chooses the machines: leave it out, and say which "
                                     "ones by region, rack and labels"} || Hosts =/= all] ++
        [{At, Value, "the value of a label of Kubernetes' nodes: letters, digits, _ - and ., at "
                     "most 63"} || {At, Value} <- Values, not matches(Value, ?LABEL_VALUE)].

check_all_families(#{families := Families, releases := Releases} = File) ->
    Used = lists:usort([Release || _ := #{release := Release} <- Families]),
    lists:append([check_family(Name, Family, File) || Name := Family <- Families,
                                                      Family =/= broken]) ++
        lists:append([check_release(Name, Release, [~"releases", Name])
                      || Name <- Used, {ok, #{} = Release} <- [maps:find(Name, Releases)]]).

check_family(Name, #{hooks := Hooks, restart := #{policy := Policy}, env := Env} = Family, File) ->
    Path = [~"families", Name],
    check_names(Name, Family, Path, File) ++
        [{Path ++ [~"domains"], explained, "they are of several providers: a family is in one "
                                           "namespace"} || length(providers(Family, File)) > 1] ++
        [{Path ++ [~"nodes"], explained, "nodes that run already cannot become pods: leave it out"}
         || is_map_key(nodes, Family)] ++
        [{Path ++ [~"restart", ~"policy"], explained,
          "Kubernetes always starts the nodes of a StatefulSet again: leave it out"}
         || Policy =:= never] ++
        [{Path ++ [~"limits", ~"per_host"], explained,
          "Kubernetes can keep nodes apart, and not count them: say 1, or leave it out (cpu and "
          "memory limit them too)"}
         || #{limits := #{per_host := Most}} <- [Family], Most > 1] ++
        [{Path ++ [~"hooks", ~"after_stop"], explained,
          "Kubernetes runs nothing where a node has stopped: do it in before_stop"}
         || is_map_key(after_stop, Hooks)] ++
        check_texts(Env, Path ++ [~"env"]).

providers(#{domains := Names}, #{domains := Domains}) ->
    lists:usort([Provider || Name <- Names,
                             {ok, #{provider := Provider}} <- [maps:find(Name, Domains)]]).

check_names(Name, #{count := Count} = Family, Path, #{cluster := Cluster} = File)
  when is_binary(Cluster) ->
    Object = object_name(Cluster, Name),
    case matches(Object, ?NAME) of
        false ->
            [{Path, explained,
              flat("Kubernetes cannot call anything \"~ts\", which is the cluster's name and this "
                   "one: small letters, digits and -, and no - at the end", [Object])}];
        true when byte_size(Object) > ?MOST_NAME ->
            [{Path, explained,
              flat("\"~ts\", the cluster's name and this one, has ~b characters, and a StatefulSet "
                   "of Kubernetes has at most ~b", [Object, byte_size(Object), ?MOST_NAME])}];
        true ->
            check_node(integer_to_binary(Count), Name, Path, Cluster, providers(Family, File), File)
    end;
check_names(_, _, _, _) ->
    [].

check_node(Last, Name, Path, Cluster, [Provider], #{providers := Providers}) ->
    case Providers of
        #{Provider := #{type := kubernetes} = Config} ->
            Address = address(pod_name(Cluster, Name, Last), Cluster, Name, Config),
            Node = <<Name/binary, Last/binary, $@, Address/binary>>,
            [{Path, explained,
              flat("the node \"~ts\" has ~b characters, and Erlang allows ~b: shorten the names",
                   [Node, byte_size(Node), ?MOST_NODE])} || byte_size(Node) > ?MOST_NODE];
        _ ->
            []
    end;
check_node(_, _, _, _, _, _) ->
    [].

check_release(_, #{image := _, files := Files, env := Env} = Release, Path) ->
    [{Path ++ [~"directory"], missing, "the folder that has the release in the image, in which "
                                       "files are put"}
     || Files =/= #{}, not is_map_key(directory, Release)] ++
        check_texts(Env, Path ++ [~"env"]) ++ check_texts(Files, Path ++ [~"files"]);
check_release(_, Release, Path) ->
    [Kind | _] = [Key || Key <- [archive, folder, code, running], is_map_key(Key, Release)],
    [{Path ++ [atom_to_binary(Kind)], explained, "Kubernetes runs images: say \"image\" instead"}].

check_texts(Texts, Path) ->
    [{Path ++ [Key], explained, reference(Secret)}
     || Key := Secret <- maps:iterator(Texts, ordered), is_here(Secret)].

%% ---------------------------------------------------------------- for other providers

check_elsewhere(#{families := Families, releases := Releases, cookie := Cookie}) ->
    [{[~"cookie"], explained, no_pod()} || is_secret(Cookie)] ++
        lists:append([check_family_elsewhere(Family, Releases, [~"families", Name])
                      || Name := Family <- Families, Family =/= broken]) ++
        lists:append([secrets_elsewhere(Env, [~"releases", Name, ~"env"])
                      ++ secrets_elsewhere(Files, [~"releases", Name, ~"files"])
                      || Name := #{env := Env, files := Files} <- Releases]).

check_family_elsewhere(#{release := Release, limits := Limits, env := Env}, Releases, Path) ->
    [{Path ++ [~"release"], explained,
      flat("~ts is an image, which runs on Kubernetes alone: its provider is none", [Release])}
     || #{Release := #{image := _}} <- [Releases]] ++
        [{Path ++ [~"limits", atom_to_binary(Key)], explained,
          "that is for Kubernetes: a host is not divided"} || Key := _ <- maps:with([cpu, memory],
                                                                                   Limits)] ++
        secrets_elsewhere(Env, Path ++ [~"env"]).

secrets_elsewhere(Texts, Path) ->
    [{Path ++ [Key], explained, no_pod()} || Key := Secret <- maps:iterator(Texts, ordered),
                                             is_secret(Secret)].

is_secret({secret, _}) -> true;
is_secret(_) -> false.

no_pod() ->
    "a Secret of Kubernetes is read by pods alone: name a variable ({\"env\": \"VARIABLE\"}) or a "
    "file ({\"file\": \"PATH\"})".

matches(Text, Regex) ->
    match =:= re:run(Text, ["\\A(?:", Regex, ")\\z"], [{capture, none}]).
