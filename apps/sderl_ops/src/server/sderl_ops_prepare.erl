%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_prepare).
-moduledoc """
The files of one instance: its settings with all variables filled in and all secrets read. The
result is sent to the host and dropped; nothing of it is stored or logged.
""".

-export([layout/4]).

-doc "The instance's host; `base` is the folder of operations there.".
-type place() :: #{host := binary(), address := binary(), base := binary()}.

-doc """
The layout of an instance, with the cookie of its cluster. An error is a sentence that names what is
missing.
""".
-spec layout(sderl_ops_desired:instance(), sderl_ops_desired:settings(), place(),
             Cookie :: sderl_ops_secret:value()) ->
    {ok, sderl_ops_layout:layout()} | {error, unicode:chardata()}.
layout(Instance, Settings, Place, Cookie) ->
    #{release := Release, settings := Hash} = Instance,
    #{names := Names, files := Files, env := Env, config := Config} = Settings,
    Values = values(Instance, Settings, Place),
    maybe
        {ok, FileTexts} ?= texts(Files, Values),
        {ok, EnvTexts} ?= texts(Env, Values),
        Commands = commands(Settings, Values),
        {ok, (stop(Settings, Values))#{
            release => Release,
            settings => Hash,
            node => map_get(~"node", Values),
            names => Names,
            cookie => Cookie(),
            start => start(Settings, Values),
            commands => Commands,
            files => FileTexts,
            env => maps:merge(env_of_mix(Settings, Values, Cookie), EnvTexts),
            config => unicode:characters_to_binary(sderl_ops_config:text(Config))
        }}
    end.

%% The values of variables.
values(#{id := Id, family := Family, index := Index} = Instance, Settings, Place) ->
    #{cluster := Cluster} = Settings,
    #{host := Host, address := Address, base := Base} = Place,
    Folders = sderl_ops_host:folders(Base, Id),
    maps:merge(#{atom_to_binary(Name) => Folder || Name := Folder <- Folders},
               #{~"node" => node_name(Instance, Address), ~"id" => Id, ~"family" => Family,
                 ~"index" => integer_to_binary(Index), ~"host" => host_name(Host),
                 ~"address" => Address, ~"cluster" => Cluster}).

node_name(#{node := Node}, _) when is_binary(Node) -> Node;
node_name(#{id := Id}, Address) -> <<Id/binary, $@, Address/binary>>.

host_name(Id) ->
    [_, Name] = binary:split(Id, ~"/"),
    Name.

%% The script of a Mix release reads these variables; other releases ignore them.
env_of_mix(#{kind := code}, _, _) -> #{};
env_of_mix(#{names := Names}, #{~"node" := Node, ~"home" := Home}, Cookie) ->
    #{~"RELEASE_DISTRIBUTION" => case Names of long -> ~"name"; short -> ~"sname" end,
      ~"RELEASE_NODE" => Node,
      ~"RELEASE_TMP" => unicode:characters_to_binary(Home),
      ~"RELEASE_COOKIE" => Cookie()}.

start(#{kind := code, applications := Applications}, _) -> {code, Applications};
start(#{start := Command}, Values) -> command(Command, Values).

stop(#{stop := Command}, Values) -> #{stop => command(Command, Values)};
stop(_, _) -> #{}.

commands(#{hooks := Hooks} = Settings, Values) ->
    All = maps:merge(Hooks, maps:with([check], Settings)),
    #{atom_to_binary(Name) => command(Command, Values) || Name := Command <- All}.

command(Words, Values) -> [sderl_ops_template:render(Word, Values) || Word <- Words].

%% An error is that of the first text that is wrong.
texts(Texts, Values) ->
    Ready = #{Name => text(Text, Values) || Name := Text <- Texts},
    case [[Name, ": ", Why] || Name := {error, Why} <- maps:iterator(Ready, ordered)] of
        [] -> {ok, #{Name => Text || Name := {ok, Text} <- Ready}};
        [Sentence | _] -> {error, Sentence}
    end.

text(Text, Values) when is_binary(Text) -> {ok, sderl_ops_template:render(Text, Values)};
text(Secret, _) ->
    maybe
        {ok, Value} ?= sderl_ops_secret:resolve(Secret),
        {ok, Value()}
    end.
