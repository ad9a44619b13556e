%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_ssh).
-moduledoc """
A list of hosts that are reached over ssh: `hosts` with `name`, `address` and `port`, and for all of
them `user`, `key` and `known_hosts`, which default to OpenSSH's own.
""".

-behaviour(sderl_ops_provider).

-export([hosts/2]).

-spec hosts(sderl_ops_provider:config(), sderl_ops_provider:context()) ->
    {ok, [sderl_ops_provider:found()]}.
hosts(#{hosts := Hosts} = Config, #{folder := Folder}) ->
    Common = (maps:with([user, key, known_hosts], Config))#{folder => filename:join(Folder, "ssh")},
    {ok, [#{name => Name,
            address => Address,
            connection => {sderl_ops_openssh, Common#{address => Address, port => Port}}}
          || #{name := Name, address := Address, port := Port} <- Hosts]}.
