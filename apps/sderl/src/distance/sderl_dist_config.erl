%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_config).
-moduledoc false.
%% The key `distances` of the configuration: no tree, the tree as a term, or the name of its file. The term is checked with the
%% rest of the configuration, which reads no files; the file when the application starts.

-export([option/2, use/1]).

-spec option(sderl_config:path(), term()) -> {ok, term()} | {error, sderl_config:error()}.
option(_, none) -> {ok, none};
option(Path, Value) ->
    case is_file(Value) of
        true -> {ok, Value};
        false ->
            case sderl_dist_tree:parse(Value) of
                {ok, _} -> {ok, Value};
                {error, {bad_network, [], Found, network}} -> {error, {bad_config, Path, Found, distances}};
                {error, {bad_network, Inner, Found, Expected}} -> {error, {bad_config, Path ++ Inner, Found, {network, Expected}}}
            end
    end.

-doc "Makes it the tree of this node. `none` leaves what there is: a tree may be set before the application starts.".
-spec use(none | file:name_all() | sderl_dist:network()) -> ok | {error, sderl_config:error()}.
use(none) -> ok;
use(Value) ->
    Done = case is_file(Value) of
        true -> sderl_dist:load(Value);
        false -> sderl_dist:set(Value)
    end,
    case Done of
        ok -> ok;
        {error, Why} -> {error, {bad_config, [sderl, distances], Value, {distances, Why}}}
    end.

is_file(Value) when is_binary(Value) -> Value =/= <<>>;
is_file([_ | _] = Value) -> io_lib:printable_unicode_list(Value);
is_file(_) -> false.
