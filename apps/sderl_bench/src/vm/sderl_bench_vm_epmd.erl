%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_epmd).
-moduledoc """
An `-epmd_module` by which the nodes of a measurement find each other without epmd: each writes its
port into a file of a folder (`-sderl_nodes FOLDER`). All are on the loopback interface.

It is called before the file server runs, so it reads and writes raw files. It calls OTP only.
""".

-export([arguments/2]).
%% In the place of erl_epmd.
-export([start_link/0, register_node/2, register_node/3, port_please/2, port_please/3,
         listen_port_please/2, address_please/3, names/1]).

%% Of the distribution, since OTP 23.
-define(VERSION, 6).
-define(HOST, "127.0.0.1").
-define(ADDRESS, {127, 0, 0, 1}).

-doc """
The arguments of `erl` for a node of this name with an existing folder. The cookie is that of its
`HOME`.
""".
-spec arguments(Name :: string(), Folder :: file:filename()) -> [string()].
arguments(Name, Folder) ->
    ["-name", Name ++ "@" ?HOST, "-start_epmd", "false", "-epmd_module", atom_to_list(?MODULE),
     "-sderl_nodes", Folder, "-kernel", "inet_dist_use_interface", "{127,0,0,1}"].

-doc false.
-spec start_link() -> ignore.
start_link() -> ignore.

-doc false.
-spec register_node(atom() | string(), inet:port_number()) ->
    {ok, -1} | {error, term()}.
register_node(Name, Port) -> register_node(Name, Port, inet).

-doc false.
-spec register_node(atom() | string(), inet:port_number(), atom()) ->
    {ok, -1} | {error, term()}.
register_node(Name, Port, _) ->
    case file:write_file(file(Name), integer_to_binary(Port), [raw]) of
        %% The virtual machine then draws the creation of the node itself.
        ok -> {ok, -1};
        {error, Reason} -> {error, Reason}
    end.

-doc false.
-spec port_please(string(), term()) -> {port, inet:port_number(), pos_integer()} | noport.
port_please(Name, Host) -> port_please(Name, Host, infinity).

-doc false.
-spec port_please(string(), term(), timeout()) ->
    {port, inet:port_number(), pos_integer()} | noport.
port_please(Name, _, _) ->
    maybe
        {ok, Device} ?= file:open(file(Name), [read, raw, binary]),
        Read = file:read(Device, 16),
        ok = file:close(Device),
        {ok, Port} ?= Read,
        {port, binary_to_integer(Port), ?VERSION}
    else
        _ -> noport
    end.

-doc false.
-spec listen_port_please(atom() | string(), term()) -> {ok, 0}.
listen_port_please(_, _) -> {ok, 0}.

-doc false.
-spec address_please(string(), string(), atom()) ->
    {ok, inet:ip4_address(), inet:port_number(), pos_integer()} | {error, noport}.
address_please(Name, Host, _) ->
    case port_please(Name, Host) of
        {port, Port, Version} -> {ok, ?ADDRESS, Port, Version};
        noport -> {error, noport}
    end.

-doc false.
-spec names(term()) -> {error, address}.
names(_) -> {error, address}.

file(Name) ->
    {ok, [[Folder] | _]} = init:get_argument(sderl_nodes),
    filename:join(Folder, lists:concat([Name, ".port"])).
