%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_runtime).
-moduledoc "Acts on the runtime system of this node: old code, links, the level of the log.".

-export([purge/1, old_code/1, close_link/1, log_level/1]).

-doc "Removes old code of a module, or of all, where no process runs it.".
-spec purge(map()) -> sderl_actions_node:result().
purge(#{module := Text}) ->
    maybe
        {ok, Module} ?= sderl_actions_show:atom(Text),
        true ?= erlang:check_old_code(Module),
        case code:soft_purge(Module) of
            true -> {ok, #{purged => [Text], in_use => []}};
            false -> {ok, #{purged => [], in_use => [Text]}}
        end
    else
        false -> {error, <<"there is no old code of ", Text/binary>>};
        Error -> Error
    end;
purge(_) ->
    {Purged, Used} = lists:partition(fun code:soft_purge/1, with_old_code()),
    {ok, #{purged => [atom_to_binary(M) || M <- Purged],
           in_use => [atom_to_binary(M) || M <- Used]}}.

-doc "Modules of which there is old code.".
-spec old_code(map()) -> {ok, map()}.
old_code(_) -> {ok, #{modules => [atom_to_binary(M) || M <- lists:sort(with_old_code())]}}.

with_old_code() -> [M || {M, _} <- code:all_loaded(), erlang:check_old_code(M)].

-doc "Closes the link to another node.".
-spec close_link(map()) -> sderl_actions_node:result().
close_link(#{to := Text}) ->
    case [Node || Node <- nodes(connected), atom_to_binary(Node) =:= Text] of
        [Node] ->
            true = erlang:disconnect_node(Node),
            {ok, #{closed => Text}};
        [] -> {error, <<"there is no link to ", Text/binary>>}
    end.

-doc "Sets the level of the log: of all of the node, or of one module.".
-spec log_level(map()) -> sderl_actions_node:result().
log_level(#{module := Text, level := Level}) ->
    maybe
        {ok, Module} ?= sderl_actions_show:atom(Text),
        Former = case logger:get_module_level(Module) of
            [{_, Set}] -> Set;
            [] -> unset
        end,
        ok = logger:set_module_level(Module, Level),
        {ok, #{module => Text, level => atom_to_binary(Level), before => atom_to_binary(Former)}}
    end;
log_level(#{level := Level}) ->
    #{level := Former} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, Level),
    {ok, #{level => atom_to_binary(Level), before => atom_to_binary(Former)}}.
