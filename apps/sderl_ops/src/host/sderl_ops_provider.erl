%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_provider).
-moduledoc """
Where hosts come from. A provider is a module of this behaviour; its configuration is the map of
that provider in the file.
""".

-export([hosts/2]).
-export_type([config/0, context/0, found/0]).

-doc "A provider of the file, with its defaults; `type` says which module it is for.".
-type config() :: #{type := local | ssh | exec | kubernetes, term() => term()}.

-doc "`folder` is the service's own: what a provider keeps goes there.".
-type context() :: #{
    provider := binary(),
    cluster := binary(),
    names := long | short,
    folder := file:filename_all()
}.

-type found() :: #{
    name := binary(),
    address := binary(),
    connection := sderl_ops_transport:connection()
}.

-doc "The provider's hosts; an error is a sentence.".
-callback hosts(config(), context()) -> {ok, [found()]} | {error, unicode:chardata()}.

-doc "The hosts of a provider by their ids, which are `PROVIDER/NAME`.".
-spec hosts(config(), context()) ->
    {ok, #{binary() => sderl_ops_host:host()}} | {error, unicode:chardata()}.
hosts(#{type := kubernetes}, _) ->
    {error, "it is Kubernetes, which has no hosts for the service: \"bin/sderl ops render FILE\" "
            "writes what kubectl applies"};
hosts(Config, #{provider := Provider, cluster := Cluster} = Context) ->
    case (module(Config)):hosts(Config, Context) of
        {ok, Found} ->
            {ok, #{<<Provider/binary, "/", Name/binary>> =>
                       #{id => <<Provider/binary, "/", Name/binary>>,
                         address => Address,
                         cluster => Cluster,
                         relay => maps:get(relay, Config, false),
                         connection => Connection}
                   || #{name := Name, address := Address, connection := Connection} <- Found}};
        {error, Why} ->
            {error, Why}
    end.

module(#{type := local}) -> sderl_ops_local;
module(#{type := ssh}) -> sderl_ops_ssh;
module(#{type := exec}) -> sderl_ops_exec.
