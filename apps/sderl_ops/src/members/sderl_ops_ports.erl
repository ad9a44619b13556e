%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_ports).
-moduledoc """
Replaces the port mapper for members of a service (`-epmd_module`): each has one port that is known
beforehand, and no other node can be found. The members are set by `set/2`, also when some are
added.
""".

-export([set/2, in_use/0]).
-export([start_link/0, register_node/2, register_node/3, listen_port_please/2, names/1]).
-export([port_please/2, port_please/3, address_please/3]).

%% The version of the distribution protocol that erl_epmd returns.
-define(VERSION, 6).

-doc "The port of this node, and all members.".
-spec set(Own :: inet:port_number(), [sderl_ops_roster:member()]) -> ok.
set(Own, Members) ->
    Known = #{atom_to_list(Node) => Port || #{node := Node, port := Port} <- Members},
    persistent_term:put(?MODULE, {Own, Known}).

-doc "Whether this virtual machine was started with it.".
-spec in_use() -> boolean().
in_use() -> init:get_argument(epmd_module) =:= {ok, [[atom_to_list(?MODULE)]]}.

-doc false.
-spec start_link() -> ignore.
start_link() -> ignore.

-doc false.
-spec register_node(atom() | string(), inet:port_number()) -> {ok, -1}.
register_node(_, _) -> {ok, -1}.

%% -1: the virtual machine chooses the creation of the node itself.
-doc false.
-spec register_node(atom() | string(), inet:port_number(), inet | inet6) -> {ok, -1}.
register_node(_, _, _) -> {ok, -1}.

-doc false.
-spec listen_port_please(atom() | string(), inet:hostname()) -> {ok, inet:port_number()}.
listen_port_please(_, _) ->
    {Own, _} = persistent_term:get(?MODULE, {0, #{}}),
    {ok, Own}.

-doc false.
-spec names(inet:hostname()) -> {error, address}.
names(_) -> {error, address}.

-doc false.
-spec port_please(string() | atom(), inet:hostname()) ->
    {port, inet:port_number(), ?VERSION} | noport.
port_please(Name, Host) -> port_please(Name, Host, infinity).

-doc false.
-spec port_please(string() | atom(), inet:hostname(), timeout()) ->
    {port, inet:port_number(), ?VERSION} | noport.
port_please(Name, Host, _) ->
    {_, Known} = persistent_term:get(?MODULE, {0, #{}}),
    case maps:find(lists:flatten(io_lib:format("~ts@~ts", [Name, Host])), Known) of
        {ok, Port} -> {port, Port, ?VERSION};
        error -> noport
    end.

-doc false.
-spec address_please(string(), string(), inet | inet6) ->
    {ok, inet:ip_address(), inet:port_number(), ?VERSION} | {error, term()}.
address_please(Name, Host, Family) ->
    maybe
        {port, Port, Version} ?= port_please(Name, Host),
        {ok, Address} ?= inet:getaddr(Host, Family),
        {ok, Address, Port, Version}
    else
        noport -> {error, nxdomain};
        {error, _} = Error -> Error
    end.
