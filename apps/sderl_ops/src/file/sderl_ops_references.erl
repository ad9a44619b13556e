%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_references).
-moduledoc """
Checks the references within a file of operations: that a family's release exists, that its nodes
fit on the hosts of its domains, that the nodes of groups exist.
""".

-import(sderl_ops_walker, [no_such/4]).

-export([check/2]).

-define(MOST_INSTANCES, 20_000).

-type problem() :: sderl_ops_walker:problem().

-doc """
The problems. Of a file with other problems (`Before`), only the parts without any are checked.
""".
-spec check(term(), Before :: [problem()]) -> [problem()].
check(#{providers := Providers, domains := Domains, families := Families,
        releases := Releases} = File, Before)
  when is_map(Providers), is_map(Domains), is_map(Families), is_map(Releases) ->
    check_providers(File) ++ check_domains(File) ++ check_families(File) ++
        sderl_ops_pods:check(File) ++
        case [Part || {[Part | _], _, _} <- Before,
                      Part =:= ~"families" orelse Part =:= ~"groups"] of
            [] -> check_total(File) ++ check_nodes(File) ++ check_groups(File);
            _ -> []
        end;
check(_, _) ->
    [].

check_groups(File) ->
    case sderl_ops_groups:expand(File) of
        {ok, _} -> [];
        {error, Problems} -> Problems
    end.

%% ---------------------------------------------------------------- providers

check_providers(#{providers := Providers, names := Names}) ->
    lists:append([check_hosts(Hosts, Names, [~"providers", Name, ~"hosts"])
                  || Name := #{type := ssh, hosts := Hosts} <- Providers, Names =/= undefined]).

check_hosts(Hosts, Kind, Path) ->
    Listed = [Name || #{name := Name} <- Hosts],
    Twice = sets:from_list(Listed -- lists:usort(Listed)),
    [{Path ++ [Index, ~"name"], explained, "two hosts are called " ++ binary_to_list(Name)}
     || {Index, #{name := Name}} <- lists:enumerate(Hosts), sets:is_element(Name, Twice)] ++
        [{Path ++ [Index, ~"address"], Address, address_expected(Kind)}
         || {Index, #{address := Address}} <- lists:enumerate(Hosts),
            not address_suits(Kind, Address)].

address_suits(long, Address) -> binary:match(Address, ~".") =/= nomatch;
address_suits(short, Address) -> binary:match(Address, ~".") =:= nomatch.

address_expected(long) ->
    "an address for long names, which has a dot; or say \"names\": \"short\"";
address_expected(short) ->
    "an address for short names, which has no dot; or say \"names\": \"long\"".

%% The names of a domain's hosts, if the provider has no problem; hosts that a program makes have
%% none yet.
hosts(#{provider := Provider, hosts := Wanted} = Domain, #{providers := Providers}) ->
    case {Wanted, Providers} of
        {Count, _} when is_integer(Count) -> [{Domain, Index} || Index <- lists:seq(1, Count)];
        {[_ | _], _} -> Wanted;
        {all, #{Provider := Config}} -> provided(Config)
    end.

provided(#{type := local, hosts := Count}) ->
    [<<"h", (integer_to_binary(Index))/binary>> || Index <- lists:seq(1, Count)];
provided(#{type := ssh, hosts := Hosts}) -> [Name || #{name := Name} <- Hosts];
provided(#{type := exec}) -> made;
%% Kubernetes chooses.
provided(#{type := kubernetes}) -> unknown;
provided(broken) -> unknown.

%% ---------------------------------------------------------------- domains

check_domains(#{domains := Domains} = File) ->
    lists:append([check_domain(Name, Domain, File) || Name := Domain <- Domains,
                                                      Domain =/= broken]).

check_domain(Name, #{provider := Provider, hosts := Hosts}, #{providers := Providers}) ->
    Path = [~"domains", Name],
    case Providers of
        #{Provider := Config} ->
            check_listed(Hosts, provided(Config), Provider, Path ++ [~"hosts"]);
        _ ->
            [no_such(Path ++ [~"provider"], Provider, "a provider of this file", Providers)]
    end.

check_listed(_, unknown, _, _) ->
    [];
check_listed(Count, made, _, _) when is_integer(Count) ->
    [];
check_listed(_, made, Provider, Path) ->
    [{Path, explained, "the provider " ++ binary_to_list(Provider) ++ " is a program that makes "
      "hosts: say how many, as \"hosts\": 3"}];
check_listed(Count, _, Provider, Path) when is_integer(Count) ->
    [{Path, explained, "the provider " ++ binary_to_list(Provider) ++ " makes no hosts: list the "
      "names of its hosts, or leave this out for all it has"}];
check_listed(all, _, _, _) ->
    [];
check_listed(Hosts, Provided, Provider, Path) ->
    What = "a host of the provider " ++ binary_to_list(Provider),
    Twice = Hosts -- lists:usort(Hosts),
    [{Path, explained, "the host " ++ binary_to_list(Host) ++ " is there twice"}
     || Host <- lists:usort(Twice)] ++
        [no_such(Path ++ [Index], Host, What, #{Name => [] || Name <- Provided})
         || is_list(Provided), {Index, Host} <- lists:enumerate(Hosts),
            not lists:member(Host, Provided)].

%% ---------------------------------------------------------------- families

check_families(#{families := Families} = File) ->
    lists:append([check_family(Name, Family, File) || Name := Family <- Families,
                                                      Family =/= broken]).

check_family(Name, #{release := Release, domains := Domains} = Family, File) ->
    #{releases := Releases, domains := Known} = File,
    Path = [~"families", Name],
    Unknown =
        [no_such(Path ++ [~"release"], Release, "a release of this file", Releases)
         || not is_map_key(Release, Releases)] ++
            [no_such(Path ++ [~"domains", Index], Domain, "a domain of this file", Known)
             || {Index, Domain} <- lists:enumerate(Domains), not is_map_key(Domain, Known)],
    Twice = [{Path ++ [~"domains"], explained,
              "the domain " ++ binary_to_list(Domain) ++ " is there twice"}
             || Domain <- lists:usort(Domains -- lists:usort(Domains))],
    Room =
        case Unknown of
            [] -> check_room(Family, Path, File);
            _ -> []
        end,
    Unknown ++ Twice ++ Room ++ check_config(Family, Path).

check_room(#{limits := #{per_host := PerHost}, domains := Names, count := Count}, Path, File) ->
    #{domains := Domains, providers := Providers} = File,
    Mine = [map_get(Name, Domains) || Name <- Names],
    Whole = fun(Domain) ->
        Domain =/= broken andalso is_map_key(map_get(provider, Domain), Providers)
    end,
    case lists:all(Whole, Mine) of
        true ->
            Hosts = [{Provider, hosts(Domain, File)} || #{provider := Provider} = Domain <- Mine],
            Most = PerHost * length(lists:usort([{P, H} || {P, [_ | _] = Hs} <- Hosts, H <- Hs])),
            Unbounded = lists:keymember(unknown, 2, Hosts),
            [{Path ++ [~"count"], Count,
              lists:flatten(io_lib:format("at most ~b, which is what the hosts of its domains hold "
                                          "with ~b a host (limits.per_host)", [Most, PerHost]))}
             || not Unbounded, Count > Most];
        false ->
            []
    end;
check_room(_, _, _) ->
    [].

check_config(#{config := Config}, Path) ->
    lists:append([sderl_ops_config:check(Keys, Path ++ [~"config", Application])
                  || Application := Keys <- Config]).

check_nodes(#{families := Families}) ->
    Nodes = lists:append([Nodes || _ := #{nodes := Nodes} <- Families]),
    Twice = Nodes -- lists:usort(Nodes),
    [{[~"families", Name, ~"nodes", Index], explained,
      "the node " ++ binary_to_list(Node) ++ " is named twice"}
     || Twice =/= [], Name := #{nodes := Listed} <- Families,
        {Index, Node} <- lists:enumerate(Listed), lists:member(Node, Twice)].

check_total(#{families := Families}) ->
    Total = lists:sum([Count || _ := #{count := Count} <- Families]),
    [{[~"families"], explained,
      lists:flatten(io_lib:format("the counts are ~b nodes together, and at most ~b are allowed",
                                  [Total, ?MOST_INSTANCES]))}
     || Total > ?MOST_INSTANCES].
