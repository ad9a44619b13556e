%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_file).
-moduledoc false.
%% Trees of distances in files: one term, as published. Reading makes the atoms that are in the
%% file, which is a file of the node's operator.

-export([read/1, write/2]).
-export_type([error/0]).

-doc """
`{file, ...}`: it cannot be read or is no Erlang term; `unconnected_graph`: more than one term.
""".
-type error() ::
    unconnected_graph | {file, file:name_all(), Reason :: term()} | sderl_dist_tree:error().

-spec read(file:name_all()) -> {ok, sderl_dist_tree:t()} | {error, error()}.
read(File) ->
    case file:consult(File) of
        {ok, [Term]} -> sderl_dist_tree:parse(Term);
        {ok, []} -> {error, {file, File, no_term}};
        {ok, [_ | _]} -> {error, unconnected_graph};
        {error, Reason} -> {error, {file, File, Reason}}
    end.

-spec write(file:name_all(), iodata()) ->
    ok | {error, {file, file:name_all(), file:posix() | badarg | terminated}}.
write(File, Text) ->
    case file:write_file(File, Text) of
        ok -> ok;
        {error, Reason} -> {error, {file, File, Reason}}
    end.
