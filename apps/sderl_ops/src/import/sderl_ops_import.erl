%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_import).
-moduledoc """
Writes the file of a running cluster, which is found from one of its nodes: `bin/sderl ops import`.
Nothing is changed on the nodes.
""".

-export([draft/1]).
-export_type([options/0]).

-type options() :: #{
    seed := binary(),
    cookie_file := file:filename(),
    cluster => binary()
}.

-doc """
The text of the file, and sentences about what is not known or left out. An error is a sentence.
""".
-spec draft(options()) -> {ok, iodata(), Points :: [unicode:chardata()]}
                          | {error, unicode:chardata()}.
draft(#{seed := Seed, cookie_file := CookieFile} = Options) ->
    Path = unicode:characters_to_binary(filename:absname(CookieFile)),
    maybe
        {ok, Names} ?= names(Seed),
        {ok, Cookie} ?= sderl_ops_cookie:of_cluster({file, Path}, "."),
        {ok, Found} ?= discover(Seed, Names, Cookie, Path),
        Here = sderl_ops_discover:machine(node()),
        #{nodes := Nodes} = Present = present(Found, Here),
        {Tree, Points} = sderl_ops_draft:file(#{
            cluster => cluster(Options, Nodes), names => Names, cookie_file => Path, here => Here,
            found => Present
        }),
        {ok, _} ?= check(Tree),
        {ok, sderl_ops_print:text(Tree), Points}
    end.

names(Seed) ->
    case binary:split(Seed, ~"@", [global]) of
        [<<_, _/binary>>, <<_, _/binary>> = Host] when byte_size(Seed) =< 255 ->
            case binary:match(Host, ~".") of
                nomatch -> {ok, short};
                _ -> {ok, long}
            end;
        _ ->
            {error, ["--seed: \"", Seed, "\" is no name of a node; one is NAME@HOST, as node() "
                     "tells on it"]}
    end.

discover(Seed, Names, Cookie, File) ->
    process_flag(trap_exit, true),
    {ok, Envoy} = sderl_ops_envoy:start_link(#{cluster => ~"import", names => Names,
                                               cookie => Cookie}),
    Answer = sderl_ops_envoy:call(Envoy, sderl_ops_discover, from, [Seed]),
    exit(Envoy, shutdown),
    receive {'EXIT', Envoy, _} -> ok end,
    case Answer of
        {ok, {ok, Found}} -> {ok, Found};
        {ok, {error, Why}} -> {error, refusal(Why, Seed, File)};
        {error, _} ->
            {error, "the virtual machine that was to ask the nodes did not start or ended: is erl "
                    "on the PATH, and does this machine have enough memory?"}
    end.

refusal(unknown_host, Seed, _) ->
    ["--seed: the machine ", host(Seed), " is unknown here: is its name right, or is it only in "
     "/etc/hosts or the DNS of another machine?"];
refusal(no_port_mapper, Seed, _) ->
    ["--seed: ", host(Seed), " does not answer where its port mapper (epmd) should be: is the "
     "machine up, and is ERL_EPMD_PORT right?"];
refusal(not_there, Seed, _) ->
    ["--seed: ", Seed, " does not run: the port mapper of ", host(Seed), " has no such node "
     "(epmd -names tells there which it has)"];
refusal(refused, Seed, File) ->
    ["--seed: ", Seed, " runs and refuses the connection: is the cookie in ", File, " its own "
     "(--cookie-file)? A node that speaks TLS needs ERL_FLAGS"];
refusal(_, Seed, _) ->
    ["--seed: ", Seed, " was reached, and ended or stopped answering while it was asked: name "
     "another node"].

host(Node) ->
    [_, Host] = binary:split(Node, ~"@"),
    Host.

%% Drops folders of code that do not exist, for nodes on this machine.
present(#{nodes := Nodes} = Found, Here) ->
    Found#{nodes := maps:map(fun
        (_, #{machine := Machine, outside := Paths} = Fact) when Machine =:= Here ->
            Fact#{outside := [Path || Path <- Paths, filename:pathtype(Path) =:= absolute,
                                      has_beams(Path)]};
        (_, Fact) -> Fact
    end, Nodes)}.

has_beams(Path) ->
    case file:list_dir(Path) of
        {ok, Files} -> lists:any(fun(File) -> filename:extension(File) =:= ".beam" end, Files);
        {error, _} -> false
    end.

cluster(#{cluster := Name}, _) -> Name;
cluster(_, _) -> ~"imported".

%% The given name of the cluster may be wrong; any other problem would be a defect.
check(Tree) ->
    case sderl_ops_file:check(Tree, ~"/") of
        {ok, _} = Ok -> Ok;
        {error, Problems} ->
            {error, ["the file of this cluster cannot be written: ",
                     lists:join("; ", [sderl_ops_file:format_error(P) || P <- Problems])]}
    end.
