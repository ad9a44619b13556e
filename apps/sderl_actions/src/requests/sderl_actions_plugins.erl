%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_plugins).
-moduledoc """
Keeps the configured plugins (`m:sderl_plugin`) running on the watched nodes: while the master on
this monitoring node leads, it renews its wish on all nodes that are up, every five seconds, and
loads what they lack. The plugins' numbers are added to the configured metrics.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, check/1]).
-export_type([options/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-type options() :: #{plugins := [module()]}.

-define(EVERY_MS, 5000).
-define(NODE_MS, 15_000).

-doc "Starts it, one a node.".
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

-doc "Checks that a module is a plugin. Errors are sentences.".
-spec check(term()) -> ok | {error, binary()}.
check(Module) when is_atom(Module) ->
    try Module:about() of
        #{application := App, versions := [_ | _] = Versions, numbers := [_ | _] = Numbers}
          when is_atom(App) ->
            Metrics = sderl_mon_app_metrics:check(metrics(Module, Numbers)),
            case lists:all(fun is_binary/1, Versions) andalso Metrics of
                {ok, _} -> ok;
                false -> bad(Module, "versions is a list of binaries");
                {error, Why} -> bad(Module, sderl_mon_app_metrics:format_error(Why))
            end;
        _ -> bad(Module, "about/0 gives application, versions and numbers")
    catch
        error:undef -> bad(Module, "there is no such module with about/0 in the code path");
        _:Why -> bad(Module, io_lib:format("about/0 failed: ~0tP", [Why, 12]))
    end;
check(Other) -> {error, sderl_mon_text:text("~0tP is no module", [Other, 12])}.

bad(Module, Why) -> {error, sderl_mon_text:text("~ts is no plugin: ~ts", [Module, Why])}.

metrics(Module, Numbers) ->
    [Number#{counter => {{sderl_plugin, Module}, I}} || {I, Number} <- lists:enumerate(Numbers)].

-doc false.
-spec init(options()) -> {ok, options()} | {ok, options(), {continue, metrics}}.
init(#{plugins := []} = Options) -> {ok, Options};
init(Options) -> {ok, Options, {continue, metrics}}.

-doc false.
-spec handle_continue(metrics, options()) -> {noreply, options()}.
handle_continue(metrics, #{plugins := Modules} = Options) ->
    #{metrics := Present} = sderl_mon:config(),
    Names = [Name || #{name := Name} <- Present],
    New = [Metric || Module <- Modules, #{numbers := Numbers} <- [Module:about()],
                     #{name := Name} = Metric <- metrics(Module, Numbers),
                     not lists:member(Name, Names)],
    case New =/= [] andalso sderl_mon:set(#{metrics => Present ++ New}) of
        {error, Why} ->
            ?LOG_WARNING("plugins: their numbers are not kept: ~ts", [sderl_mon:format_error(Why)]);
        _ -> ok
    end,
    self() ! renew,
    {noreply, Options}.

-doc false.
-spec handle_call(term(), gen_server:from(), options()) -> {reply, term(), options()}.
handle_call(_, _From, Options) -> {reply, {error, unknown_call}, Options}.

-doc false.
-spec handle_cast(term(), options()) -> {noreply, options()}.
handle_cast(_, Options) -> {noreply, Options}.

%% A node that does not answer is asked again next time.
-doc false.
-spec handle_info(term(), options()) -> {noreply, options()}.
handle_info(renew, #{plugins := Modules} = Options) ->
    _ = erlang:send_after(?EVERY_MS, self(), renew),
    case sderl_mon:status() of
        #{role := leader, nodes := Nodes} ->
            Inject = maps:get(inject, sderl_mon:config()),
            [ok = sderl_mon_pool:run(reach, {plugins, Node}, Node,
                                     fun() -> renew(Node, Modules, Inject) end, ?NODE_MS)
             || Node := #{status := up} <- Nodes],
            ok;
        _ -> ok
    end,
    {noreply, Options};
handle_info(_, Options) -> {noreply, Options}.

renew(Node, Modules, Inject) ->
    Present = [Module || Module <- Modules,
                         not Inject orelse sderl_actions_reach:load(Node, Module) =:= ok],
    sderl_actions_reach:call(Node, {sderl_actions_plugin, renew, [Present]}, Inject).
