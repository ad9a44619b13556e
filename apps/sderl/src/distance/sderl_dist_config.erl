%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_config).
-moduledoc false.
%% The key `distances` of the configuration: no tree, the tree as a term, or the name of its file.
%% The term is checked with the rest of the configuration, which reads no files; the file when the
%% application starts.

-behaviour(sderl_options).

-export([defaults/0, option/3, remedy/1, use/1]).

-spec defaults() -> [{distances, none}].
defaults() -> [{distances, none}].

-spec option(distances, sderl_check:path(), term()) -> {ok, term()} | {error, sderl_check:error()}.
option(distances, _, none) -> {ok, none};
option(distances, Path, Value) ->
    case is_file(Value) of
        true -> {ok, Value};
        false ->
            case sderl_dist_tree:parse(Value) of
                {ok, _} -> {ok, Value};
                {error, {bad_network, [], Found, network}} ->
                    sderl_check:bad(Path, Found, distances);
                {error, {bad_network, Inner, Found, Expected}} ->
                    sderl_check:bad(Path ++ Inner, Found, {network, Expected})
            end
    end.

-spec remedy(sderl_check:expected()) -> iodata() | none.
remedy(distances) ->
    "does not say how far nodes are apart; write the name of a file, {network, [...]} or none";
remedy({network, Expected}) ->
    sderl_dist_words:remedy(Expected);
remedy({distances, Error}) ->
    ["cannot be used: ", sderl_dist_words:error(Error)];
remedy(_) ->
    none.

-doc """
Makes it the tree of this node. `none` leaves what there is: a tree may be set before the
application starts.
""".
-spec use(none | file:name_all() | sderl_dist:network()) -> ok | {error, sderl_check:error()}.
use(none) -> ok;
use(Value) ->
    Done = case is_file(Value) of
        true -> sderl_dist:load(Value);
        false -> sderl_dist:set(Value)
    end,
    case Done of
        ok -> ok;
        {error, Why} -> sderl_check:bad([sderl, distances], Value, {distances, Why})
    end.

is_file(Value) when is_binary(Value) -> Value =/= <<>>;
is_file([_ | _] = Value) -> io_lib:printable_unicode_list(Value);
is_file(_) -> false.
