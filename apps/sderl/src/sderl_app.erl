%% SPDX-License-Identifier: Apache-2.0
-module(sderl_app).
-moduledoc false.
%% Checks what the library needs before it starts anything, and holds the start until the node's
%% groups are ready where the configuration says so.

-behaviour(application).

-export([start/2, stop/1, reconfigure/0]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    maybe
        ok ?= sderl_vm:precondition(),
        {ok, Config} ?= config(),
        ok ?= sderl_dist_config:use(maps:get(distances, Config)),
        ok = sderl_dir:refuse(undefined),
        ok = sderl_dir:options(Config),
        {ok, Sup} ?= sderl_sup:start_link(fun ?MODULE:reconfigure/0),
        %% When the application has started its groups are there, ready or not.
        ok = sderl_node_client:settle(),
        ok = await(maps:get(await, Config)),
        {ok, Sup}
    else
        {error, {bad_config, _, _, _} = Bad} -> fail(Bad, sderl_config:format_error(Bad));
        {error, {connect_all, Text}} -> fail(connect_all, Text);
        {error, Reason} -> {error, Reason}
    end.

-spec stop(term()) -> ok.
stop(_) -> ok.

-doc """
Reads the launch configuration for the node's new name. A wrong value is reported as an event, and
the old one stays.
""".
-spec reconfigure() -> ok.
reconfigure() ->
    case config() of
        {ok, Config} -> sderl_dir:options(Config);
        {error, Why} ->
            sderl_event:emit(start_refused, #{sentence => sderl_config:format_error(Why)})
    end.

%% The launch configuration, parsed for the node's present name.
config() ->
    Kernel = case sderl_kernel_env:at_launch() of
        {ok, Groups} -> Groups;
        undefined -> undefined
    end,
    case sderl_config:parse(application:get_all_env(sderl), Kernel, node()) of
        {ok, Config} ->
            lists:foreach(fun(W) ->
                sderl_event:emit(config_suspicious, #{sentence => sderl_config:format_warning(W)})
            end, maps:get(warnings, Config)),
            {ok, Config};
        Error -> Error
    end.

fail(Reason, Text) ->
    sderl_event:emit(start_refused, #{sentence => Text}),
    {error, {Reason, lists:flatten(Text)}}.

await(false) -> ok;
await({Which, Timeout}) ->
    Groups = case Which of
        all -> [N || #{name := N} <- maps:get(groups, sderl_dir:options())];
        _ -> Which
    end,
    lists:foreach(fun(G) ->
        case sderl_client:await(G, Timeout) of
            ok -> ok;
            {error, Why} ->
                sderl_event:emit(group_not_ready,
                                 #{group => G, reason => Why, waited_ms => Timeout})
        end
    end, Groups).
