%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_links).
-moduledoc """
The links between the members of a service: Erlang distribution with a cookie of its own, with one
port for each member (`m:sderl_ops_ports`), between members alone.
""".

-export([begin_as/3, allow/1, connect/1, why_not/1, make_cookie/1]).

%% A member that is cut off is noticed after this many seconds, give or take a quarter.
-define(TICK_S, 8).
-define(LOOK_MS, 2_000).

%% The file with the cookie that the members share.
cookie_file(Folder) -> filename:join(Folder, "members.cookie").

-doc "Makes this virtual machine a member's node. An error is a sentence.".
-spec begin_as(sderl_ops_roster:member(), [sderl_ops_roster:member()], file:filename()) ->
    ok | {error, unicode:chardata()}.
begin_as(#{node := Node, address := Address, port := Port}, Members, Folder) ->
    maybe
        ok ?= check_machine(),
        {ok, Cookie} ?= cookie(cookie_file(Folder)),
        {ok, Ip} ?= resolve(Address),
        ok ?= check_free(Node, Address, Ip, Port),
        ok = application:set_env(kernel, inet_dist_use_interface, Ip),
        ok = sderl_ops_ports:set(Port, Members),
        Options = #{name_domain => longnames, net_ticktime => ?TICK_S},
        {ok, _} ?= start(Node, Options, Address, Port),
        %% Without a cookie no node can have connected before this.
        ok = net_kernel:allow([Other || #{node := Other} <- Members]),
        true = erlang:set_cookie(binary_to_atom(Cookie())),
        ok
    end.

check_machine() ->
    case {sderl_ops_ports:in_use(), is_alive()} of
        {true, false} -> ok;
        _ -> {error, "a member of the service has to be started by \"bin/sderl ops serve\""}
    end.

start(Node, Options, Address, Port) ->
    case net_kernel:start(Node, Options) of
        {ok, _} = Ok -> Ok;
        {error, _} -> {error, cannot_listen(Node, Address, Port, "another program has it")}
    end.

%% Checked before, because a failure in the distribution itself logs a crash report.
check_free(Node, Address, Ip, Port) ->
    case gen_tcp:listen(Port, [{ip, Ip}, {reuseaddr, true}]) of
        {ok, Socket} -> gen_tcp:close(Socket);
        {error, Why} -> {error, cannot_listen(Node, Address, Port, inet:format_error(Why))}
    end.

cannot_listen(Node, Address, Port, Why) ->
    io_lib:format("~ts cannot listen at ~ts, port ~b: ~ts (the address has to be one of this "
                  "machine, and the port free)", [Node, Address, Port, Why]).

resolve(Address) ->
    case inet:getaddr(Address, inet) of
        {ok, _} = Ok -> Ok;
        {error, Why} -> {error, [Address, ": ", inet:format_error(Why)]}
    end.

cookie(File) ->
    case filelib:is_regular(File) of
        true ->
            maybe
                {ok, Value} ?= sderl_ops_secret:resolve({file, unicode:characters_to_binary(File)}),
                match ?= re:run(Value(), "^[!-~]{20,255}$", [{capture, none}, dollar_endonly]),
                {ok, Value}
            else
                nomatch -> {error, [File, " is not 20 to 255 characters of ASCII without blanks"]};
                {error, _} = Error -> Error
            end;
        false ->
            {error, ["there is no ", File, ", the secret that the members share: \"bin/sderl ops "
                     "members cookie\" makes one on one of them; copy it to the same place on the "
                     "others"]}
    end.

-doc "Makes the cookie that the members share, if there is none.".
-spec make_cookie(file:filename()) ->
    {made | there, file:filename_all()} | {error, unicode:chardata()}.
make_cookie(Folder) ->
    File = cookie_file(Folder),
    case filelib:is_regular(File) of
        true ->
            {there, File};
        false ->
            case sderl_ops_share:write_secret(File, binary:encode_hex(crypto:strong_rand_bytes(32)))
            of
                ok -> {made, File};
                {error, Why} -> {error, [File, " cannot be written: ", file:format_error(Why)]}
            end
    end.

-doc "Accepts links from members that were added.".
-spec allow([sderl_ops_roster:member()]) -> ok.
allow(Members) ->
    {ok, Allowed} = net_kernel:allowed(),
    case [Node || #{node := Node} <- Members, not lists:member(Node, Allowed)] of
        [] -> ok;
        New -> ok = net_kernel:allow(New)
    end.

-doc "Opens links, in processes of their own: a machine may not answer.".
-spec connect([node()]) -> ok.
connect(Nodes) ->
    lists:foreach(fun(Node) -> spawn(fun() -> net_kernel:connect_node(Node) end) end, Nodes).

-doc """
Why there is no link to members: something listens at the member's port, and so refuses the link, or
nothing answers there.
""".
-spec why_not([sderl_ops_roster:member()]) -> #{node() => silent | refused}.
why_not(Members) ->
    #{Node => listens(Address, Port)
      || #{node := Node, address := Address, port := Port} <- Members}.

listens(Address, Port) ->
    case gen_tcp:connect(Address, Port, [], ?LOOK_MS) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            refused;
        {error, _} ->
            silent
    end.
