%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_render).
-moduledoc """
`bin/sderl ops render`: writes the objects for Kubernetes, as one stream or as files in a folder.

Each file names its objects in comments. So objects that a folder had and no longer has can be
listed, with the command that removes them from Kubernetes: `kubectl apply` does not remove them.
""".

-export([run/1, read/1, instead_of/1]).

-define(MARK, "# Rendered by \"sderl ops render\" for the cluster ").

-type text() :: unicode:chardata().

-spec run(#{file := string(), canary := boolean(), out => string()}) -> sderl_command:result().
run(#{file := Name, canary := IsCanary} = Options) ->
    maybe
        {ok, #{cluster := Cluster} = File} ?= read(Name),
        ok ?= for_pods(File),
        {ok, Parts, Notes} ?= render(File, IsCanary),
        {ok, Text, More} ?= write([{part_name(Part), part(Cluster, Objects)}
                                   || {Part, Objects} <- Parts], Cluster, Options),
        ok = io:put_chars(standard_error,
                          sderl_visible:text([[Note, "\n"] || Note <- Notes ++ More])),
        {help, Text}
    end.

-doc "Reads a file of operations; the error is a text for a person.".
-spec read(file:name_all()) -> {ok, sderl_ops_file:file()} | {error, text()}.
read(Name) ->
    case sderl_ops_file:read(Name) of
        {ok, File} -> {ok, File};
        {error, Problems} -> {error, wrong(Problems)}
    end.

wrong(Problems) ->
    sderl_ops_show:failure("the file is wrong",
                           [sderl_ops_file:format_error(Problem) || Problem <- Problems]).

for_pods(File) ->
    case sderl_ops_pods:is_for_pods(File) of
        true -> ok;
        false -> {error, "none of the file's providers is Kubernetes: \"bin/sderl ops apply FILE\" "
                         "makes the cluster as it says"}
    end.

-doc "The error of a request to the service with a file for Kubernetes.".
-spec instead_of(Do :: atom()) -> text().
instead_of(plan) ->
    "the file is for Kubernetes, and the service does nothing there: what would change is told by "
    "\"bin/sderl ops render FILE | kubectl diff -f -\"";
instead_of(_) ->
    "the file is for Kubernetes, and the service does nothing there: \"bin/sderl ops render FILE "
    "--out DIR\" writes what \"kubectl apply -f DIR\" takes".

render(File, IsCanary) ->
    case sderl_ops_kubernetes:render(File, #{canary => IsCanary}) of
        {ok, Parts, Notes} -> {ok, Parts, Notes};
        {error, Problems} -> {error, wrong(Problems)}
    end.

%% ---------------------------------------------------------------- texts

part_name(cluster) -> "cluster.yaml";
part_name({family, Name}) -> "family-" ++ binary_to_list(Name) ++ ".yaml".

part(Cluster, Objects) ->
    unicode:characters_to_binary([
        [?MARK, Cluster, "; change its file, and not this.\n"],
        [["# ", title(Object), "\n"] || Object <- Objects],
        [["---\n", sderl_ops_yaml:document(Object)] || Object <- Objects]
    ]).

%% Arguments for kubectl delete.
title(#{~"kind" := Kind, ~"metadata" := #{~"name" := Name, ~"namespace" := Namespace}}) ->
    [string:lowercase(Kind), " ", Name, " --namespace ", Namespace].

titles(Text) ->
    [_ | Lines] = binary:split(Text, ~"\n", [global]),
    [Title || <<"# ", Title/binary>> <- lists:takewhile(fun(Line) -> Line =/= ~"---" end, Lines)].

%% ---------------------------------------------------------------- files

write(Parts, Cluster, #{out := Folder}) ->
    maybe
        ok ?= make(Folder),
        {ok, Before} ?= rendered(Folder, [Name || {Name, _} <- Parts], Cluster),
        ok ?= write_all(Parts, Folder),
        Gone = [Name || {Name, _} <- Before, not lists:keymember(Name, 1, Parts)],
        ok ?= delete_all(Gone, Folder),
        Wrote = lists:join(", ", [filename:join(Folder, Name) || {Name, _} <- Parts]),
        {ok, ["wrote ", Wrote, "\n"], no_longer(Before, Parts)}
    end;
write(Parts, _, _) ->
    {ok, lists:join("---\n", [Text || {_, Text} <- Parts]), []}.

no_longer(Before, Parts) ->
    Titles = fun(Files) -> lists:append([titles(Text) || {_, Text} <- Files]) end,
    [["no longer in the file: kubectl delete ", Title] || Title <- Titles(Before) -- Titles(Parts)].

make(Folder) ->
    case filelib:ensure_path(Folder) of
        ok -> ok;
        {error, Why} -> unwritten(Folder, Why)
    end.

unwritten(Name, Why) ->
    {error, ["--out: ", Name, " cannot be written: ", file:format_error(Why)]}.

%% The files that were rendered there before. Other files are not touched.
rendered(Folder, Names, Cluster) ->
    Mark = unicode:characters_to_binary([?MARK, Cluster, ";"]),
    There = [{Name, Text} || Name <- lists:sort(filelib:wildcard("*.yaml", Folder)),
                             {ok, Text} <- [file:read_file(filename:join(Folder, Name))]],
    Ours = [File || {_, Text} = File <- There, has_prefix(Text, Mark)],
    Foreign = [Name || {Name, Text} <- There, has_prefix(Text, <<?MARK>>),
                       not has_prefix(Text, Mark)]
        ++ [Name || Name <- Names, filelib:is_file(filename:join(Folder, Name)),
                    not lists:keymember(Name, 1, Ours)],
    case Foreign of
        [] -> {ok, Ours};
        [Name | _] -> {error, ["--out: ", filename:join(Folder, Name), " was not rendered for the "
                               "cluster ", Cluster, ": take another folder"]}
    end.

has_prefix(Text, Prefix) -> binary:longest_common_prefix([Text, Prefix]) =:= byte_size(Prefix).

write_all([], _) -> ok;
write_all([{Name, Text} | Parts], Folder) ->
    File = filename:join(Folder, Name),
    maybe
        ok ?= file:write_file(File ++ ".part", Text),
        ok ?= file:rename(File ++ ".part", File),
        write_all(Parts, Folder)
    else
        {error, Why} -> unwritten(File, Why)
    end.

delete_all([], _) -> ok;
delete_all([Name | Names], Folder) ->
    case file:delete(filename:join(Folder, Name)) of
        ok -> delete_all(Names, Folder);
        {error, Why} -> unwritten(filename:join(Folder, Name), Why)
    end.
