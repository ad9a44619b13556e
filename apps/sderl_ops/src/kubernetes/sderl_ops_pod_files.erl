%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_pod_files).
-moduledoc """
The files of a family's pods: `priv/pod.sh`, the configuration of their nodes, the groups, the
commands and the files of the release. They are the same for all pods of a family; variables of the
environment have what differs between pods.
""".

-export([data/1, files/1, variables/2, changes_with/2]).
-export_type([family/0]).

-doc """
A family that is rendered. `groups` are those that have a node of it, with the nodes of all their
members; `own` are its own members in each.
""".
-type family() :: #{
    name := binary(),
    cluster := binary(),
    cookie := {Secret :: binary(), Key :: binary()},
    count := pos_integer(),
    provider := sderl_ops_file:kubernetes(),
    family := sderl_ops_file:family(),
    release := sderl_ops_file:release(),
    release_name := binary(),
    settings := sderl_ops_desired:settings(),
    domains := [sderl_ops_file:domain()],
    groups := [#{name := binary(), nodes := [binary()], own := all | [binary()],
                 consistency := available | majority}]
}.

-type problem() :: sderl_ops_walker:problem().

%% The limit of a ConfigMap, without its own keys.
-define(MOST_BYTES, 1_000_000).
-define(AWAIT_MS, 30_000).
-define(COMMANDS, [before_start, after_start, before_stop]).

-doc "The data of the family's ConfigMap.".
-spec data(family()) -> {ok, #{binary() => binary()}} | {error, [problem(), ...]}.
data(#{name := Name, release_name := Release} = Family) ->
    Files = files(Family),
    Texts = maps:merge(fixed(Family), #{Key => Text || {Key, _, _, Text} <- Files}),
    Bytes = lists:sum([byte_size(Key) + byte_size(Text) || Key := Text <- Texts]),
    Problems = [{[~"releases", Release, ~"files", Path], explained,
                 lists:flatten(io_lib:format(
                     "{{~ts}} is not the same in all pods, and a file is: put it into env, and "
                     "have the file read that", [Variable]))}
                || {_, Path, _, Text} <- Files,
                   Variable <- sderl_ops_template:used(Text), is_of_pod(Variable)]
        ++ [{[~"families", Name], explained,
             lists:flatten(io_lib:format(
                 "its configuration has ~b bytes, and a ConfigMap of Kubernetes holds ~b: make its "
                 "groups or files smaller", [Bytes, ?MOST_BYTES]))} || Bytes > ?MOST_BYTES],
    case Problems of
        [] -> {ok, Texts};
        _ -> {error, lists:usort(Problems)}
    end.

-doc "The data whose change restarts the pods; the rest is read at the next start.".
-spec changes_with(#{binary() => binary()}, family()) -> term().
changes_with(Data, #{groups := Groups}) ->
    {lists:sort(maps:to_list(maps:remove(~"groups", Data))),
     [{Name, Own, Consistency}
      || #{name := Name, own := Own, consistency := Consistency} <- Groups]}.

fixed(#{settings := #{config := Config}, groups := Groups} = Family) ->
    maps:merge(commands(Family), #{
        ~"pod.sh" => script(),
        ~"vm.args" => vm_args(Family),
        %% Scripts of rebar3 add the port, and nodes take it only once.
        ~"name.args" => ~"-name {{node}}\n",
        ~"sys.config" => text(sderl_ops_config:text(config(Config, Family))),
        ~"groups" => text([group(Group) || Group <- Groups])
    }).

script() ->
    {ok, Script} = file:read_file(filename:join(code:priv_dir(sderl_ops), "pod.sh")),
    Script.

vm_args(#{provider := #{port := Port}}) ->
    text(["-name {{node}}\n-start_epmd false\n-erl_epmd_port ", integer_to_list(Port), "\n"]).

%% The file's own values stay.
config(Config, #{cluster := Cluster, groups := Groups}) ->
    Majority = #{Name => #{~"atom" => ~"majority"}
                 || #{name := Name, consistency := majority} <- Groups},
    Sderl = maps:from_list(
        [{~"cluster", #{~"string" => Cluster}}]
        ++ [{~"await", #{~"tuple" => [#{~"atom" => ~"all"}, ?AWAIT_MS]}} || Groups =/= []]
        ++ [{~"consistency", Majority} || Majority =/= #{}]),
    lists:foldl(fun({Application, Keys}, Acc) ->
        Acc#{Application => maps:merge(Keys, maps:get(Application, Acc, #{}))}
    end, Config, [{~"kernel", #{~"connect_all" => false}}, {~"sderl", Sderl}]).

group(#{name := Name, nodes := Nodes}) ->
    [sderl_ops_config:atom(Name), "\t",
     lists:join(",", [sderl_ops_config:atom(Node) || Node <- Nodes]), "\n"].

%% ---------------------------------------------------------------- commands and files

commands(#{settings := #{hooks := Hooks} = Settings} = Family) ->
    All = maps:merge(maps:with(?COMMANDS, Hooks), maps:with([check, stop], Settings)),
    Values = variables(fun(Variable) -> [$', $", $$, Variable, $", $'] end, Family),
    #{atom_to_binary(Name) => text(["exec", [[" ", sderl_ops_template:render(quote(Word), Values)]
                                             || Word <- Command], "\n"])
      || Name := Command <- All}.

quote(Text) -> text(["'", string:replace(Text, "'", "'\\''", all), "'"]).

-doc "The release's files that are texts: key in the ConfigMap, path, mode and text.".
-spec files(family()) -> [{binary(), binary(), 8#644 | 8#755, binary()}].
files(#{settings := #{files := Files}} = Family) ->
    Values = maps:filter(fun(Variable, _) -> not is_of_pod(Variable) end,
                         variables(fun(_) -> [] end, Family)),
    [{<<"file-", (integer_to_binary(Index))/binary>>, Path, mode(Text),
      sderl_ops_template:render(Text, Values)}
     || {Index, {Path, Text}} <- lists:enumerate(lists:sort(maps:to_list(Files))),
        is_binary(Text)].

mode(<<"#!", _/binary>>) -> 8#755;
mode(_) -> 8#644.

is_of_pod(Variable) ->
    lists:member(Variable, [~"node", ~"id", ~"index", ~"host", ~"address"]).

-doc """
What the variables of templates stand for. `Expand` makes a reference to a variable of the pod's
environment.
""".
-spec variables(Expand :: fun((string()) -> iodata()), family()) -> sderl_ops_template:variables().
variables(Expand, #{name := Name, cluster := Cluster, provider := Provider, release := Release}) ->
    Pod = Expand("SDERL_OPS_POD"),
    Index = Expand("SDERL_OPS_INDEX"),
    %% The address of a pod with any name, in two parts.
    <<"@", Behind/binary>> = sderl_ops_pods:address(~"@", Cluster, Name, Provider),
    Address = [Pod, Behind],
    Id = [Name, Index],
    #{
        ~"node" => [Id, "@", Address],
        ~"id" => Id,
        ~"family" => Name,
        ~"index" => Index,
        ~"host" => Expand("SDERL_OPS_HOST"),
        ~"address" => Address,
        ~"cluster" => Cluster,
        ~"state_dir" => ~"/sderl/state",
        ~"log_dir" => ~"/sderl/log",
        ~"home" => ~"/sderl/run/home",
        ~"release_dir" => maps:get(directory, Release, ~".")
    }.

text(Chars) -> unicode:characters_to_binary(Chars).
