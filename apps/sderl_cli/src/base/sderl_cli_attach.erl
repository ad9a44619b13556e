%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_attach).
-moduledoc """
Makes this program a hidden node that is connected to a running cluster.

It listens nowhere, is registered nowhere and starts no epmd: it only calls. The cookie is read
from a file, so that no list of processes shows it; `bin/sderl` gives the file and the port of
epmd where it knows the node as one that runs here (`bin/sderl shell --help`), and starts this
program with `-nocookie`, so that it neither needs nor writes a file of its own. Another port of
epmd is that of `ERL_EPMD_PORT`, TLS and the like come from `ERL_FLAGS`, as everywhere.
""".

-export([cookie_argument/0, cookie_file/1, cookie/1, node_name/1, attach/3, become/3, discover/1]).
-export([running/1]).

-import(sderl_command, [option/4]).

%% Nodes that run here and are named in a message.
-define(NAMED, 3).
%% The search for nodes ends with so many: more than anybody runs.
-define(MOST_NODES, 5000).
-define(ASK_MS, 5000).

-doc "The option `--cookie-file`.".
-spec cookie_argument() -> argparse:argument().
cookie_argument() ->
    option(cookie_file, "FILE", string,
           "the file with the cookie (that of the node where it runs here, or ~/.erlang.cookie)").

-doc "The file with the cookie: that of the option `--cookie-file`, or the user's own.".
-spec cookie_file(#{cookie_file => file:filename(), atom() => term()}) -> file:filename().
cookie_file(#{cookie_file := File}) -> File;
cookie_file(_) -> filename:join(os:getenv("HOME", "/"), ".erlang.cookie").

-doc "The cookie in a file: its one line.".
-spec cookie(file:filename()) -> {ok, atom()} | {error, sderl_command:text()}.
cookie(File) ->
    case file:read_file(File) of
        {ok, Content} ->
            case string:trim(Content, trailing, "\r\n ") of
                <<>> ->
                    {error, [File, " is empty; it should hold the cookie of the nodes, as "
                                   "~/.erlang.cookie does"]};
                Cookie when byte_size(Cookie) =< 255 ->
                    case binary:match(Cookie, [<<"\n">>, <<0>>]) of
                        nomatch -> {ok, binary_to_atom(Cookie, latin1)};
                        _ ->
                            {error, [File, " holds more than one line; it should hold the cookie "
                                           "of the nodes alone"]}
                    end;
                _ ->
                    {error, [File, " holds more than the 255 characters that a cookie may have"]}
            end;
        {error, Reason} ->
            {error, [
                ["cannot read the cookie from ", File, ": ", file:format_error(Reason)],
                ["; name the file with --cookie-file", running("")]
            ]}
    end.

-doc """
A line with the nodes of this user that are known to run here, empty where there are none; `Option`
is the option that takes such a name.
""".
-spec running(Option :: string()) -> unicode:chardata().
running(Option) ->
    Files = filelib:wildcard("*@*", sderl_demo_attach:folder()),
    %% In the order of the numbers in them, and monitoring nodes last.
    Sorted = lists:sort([{is_monitor(Name), length(Name), Name} || Name <- Files]),
    Names = [Name || {_, _, Name} <- Sorted],
    case Names of
        [] ->
            "";
        [First | _] ->
            [
                "\nthese run here: ",
                lists:join(", ", lists:sublist(Names, ?NAMED)),
                [[" and ", integer_to_list(length(Names) - ?NAMED), " more"]
                 || length(Names) > ?NAMED],
                [["; try ", Option, " ", First] || Option =/= ""]
            ]
    end.

is_monitor(Name) -> lists:prefix("monitor", Name).

-doc "The name of a node with its host.".
-spec node_name(string()) -> {ok, node()} | {error, sderl_command:text()}.
node_name(Text) ->
    case string:split(Text, "@", all) of
        [[_ | _], [_ | _]] when length(Text) =< 255 -> {ok, list_to_atom(Text)};
        _ ->
            {error,
             io_lib:format("\"~ts\" is no name of a node; one is NAME@HOST, as node() tells on it",
                           [Text])}
    end.

-doc "Connects this program to a node; `Prefix` is what its own name as a node begins with.".
-spec attach(node(), Cookie :: atom(), Prefix :: string()) -> ok | {error, sderl_command:text()}.
attach(Node, Cookie, Prefix) ->
    maybe
        ok ?= become(Node, Cookie, Prefix),
        true ?= net_kernel:connect_node(Node),
        ok
    else
        {error, _} = Error -> Error;
        _ ->
            {error, [
                io_lib:format("cannot connect to ~ts: ", [Node]),
                "is it up, is this its full name, and is the cookie its own? A node behind another "
                "epmd needs ERL_EPMD_PORT, one that speaks TLS its ERL_FLAGS",
                running("")
            ]}
    end.

-doc "Makes this program a node that can connect to this one and to those that are named like it.".
-spec become(node(), Cookie :: atom(), Prefix :: string()) -> ok | {error, sderl_command:text()}.
become(Node, Cookie, Prefix) ->
    case start(Node, Prefix) of
        ok ->
            true = erlang:set_cookie(Cookie),
            ok;
        {error, Reason} ->
            {error, io_lib:format("this program cannot become a node: ~0tP", [Reason, 10])}
    end.

start(Node, Prefix) ->
    [_, Host] = string:split(atom_to_list(Node), "@"),
    %% A name and its host must be of one kind on both sides.
    Domain =
        case lists:member($., Host) of
            true -> longnames;
            false -> shortnames
        end,
    Name = list_to_atom(lists:concat([Prefix, "-", os:getpid(), "@", Host])),
    case net_kernel:start(Name, #{name_domain => Domain, hidden => true, dist_listen => false}) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        {error, _} = Error -> Error
    end.

-doc """
All nodes that are linked to one, or to one of those, and so on, without hidden ones; `Lost` are
those that did not answer.
""".
-spec discover(node()) -> {Nodes :: [node()], Lost :: [node()]}.
discover(Node) -> discover([Node], #{}, #{}).

discover([], Found, Lost) ->
    {lists:sort(maps:keys(Found)), lists:sort(maps:keys(Lost))};
discover(New, Found, Lost) when map_size(Found) < ?MOST_NODES ->
    Answers = lists:zip(New, erpc:multicall(New, erlang, nodes, [[this, visible]], ?ASK_MS)),
    Found1 = maps:merge(Found, #{Node => true || {Node, {ok, _}} <- Answers}),
    Lost1 = maps:merge(Lost,
                       #{Node => true || {Node, Answer} <- Answers, element(1, Answer) =/= ok}),
    Next = lists:usort(lists:append([Nodes || {_, {ok, Nodes}} <- Answers])),
    discover([Node || Node <- Next, not is_map_key(Node, Found1), not is_map_key(Node, Lost1)],
             Found1, Lost1);
discover(_, Found, Lost) ->
    discover([], Found, Lost).
