%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_local).
-moduledoc """
Folders of this machine that act as hosts `h1`, `h2`, ..., in the service's folder. All have the
same `address`, by default 127.0.0.1, or `localhost` if names are short, and the port mapper of the
service (`ERL_EPMD_PORT`).
""".

-behaviour(sderl_ops_provider).

-export([hosts/2]).

-doc "`hosts` is how many.".
-spec hosts(sderl_ops_provider:config(), sderl_ops_provider:context()) ->
    {ok, [sderl_ops_provider:found()]}.
hosts(#{hosts := Count} = Config, #{folder := Folder, provider := Provider, names := Names}) ->
    {ok, [#{name => Name,
            address => maps:get(address, Config, address(Names)),
            connection => {sderl_ops_sh, #{base => filename:join([Hosts, Provider, Name])}}}
          || Hosts <- [filename:join(Folder, "hosts")],
             Index <- lists:seq(1, Count),
             Name <- [<<"h", (integer_to_binary(Index))/binary>>]]}.

address(long) -> ~"127.0.0.1";
address(short) -> ~"localhost".
