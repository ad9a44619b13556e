%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_reach).
-moduledoc """
A monitoring node's access to a monitored one: it connects to the node, starts its probe, or reads
it without one.

Every function may take seconds and is run by `m:sderl_mon_pool`. Links are hidden, whether or not
this node is: the nodes of a cluster neither list it nor connect it to others. A failure says where
it was: `link`, there is no connection; `node`, the node is connected and fails; `term`, a newer
master's agent has the probe.
""".

-export([connect/1, attach/3, read/2]).

-import(sderl_mon_text, [text/2]).

-define(CALL_MS, 4000).

-type failure() :: {error, link | node | term, Why :: binary()}.

-doc "How to attach a node: keys of the configuration, the agent's term, all monitoring nodes.".
-type spec() :: #{probe := auto | stock, inject := boolean(), interval_ms := pos_integer(),
                  term := integer(), friends := [node()], log | metrics => term()}.

-doc "Opens a hidden link, unless there is a link.".
-spec connect(node()) -> ok | failure().
connect(Node) ->
    case Node =:= node() orelse lists:member(Node, nodes(connected))
         orelse net_kernel:hidden_connect_node(Node) of
        true -> ok;
        _ -> {error, link, <<"cannot be connected: is it up, reachable, and of the same cookie?">>}
    end.

-doc """
Connects a node and has its probe report to `Owner`. `stock`: there is no probe and none may be
loaded, so the node is to be read from here.
""".
-spec attach(node(), Owner :: pid(), spec()) -> {ok, probe | {stock, Why :: binary()}} | failure().
attach(Node, Owner, #{probe := Which, inject := Inject} = Spec) ->
    maybe
        ok ?= connect(Node),
        auto ?= Which,
        Options = (maps:with([term, interval_ms, friends], Spec))#{owner => Owner},
        Wanted = [{sderl_mon_log_wanted, Owner, sderl_mon_config:log(Spec)},
                  {sderl_mon_metrics_wanted, Owner,
                   sderl_mon_app_metrics:wanted(maps:get(metrics, Spec, []))}],
        lacking ?= started(Node, Options, Wanted),
        true ?= Inject,
        ok ?= inject(Node),
        case started(Node, Options, Wanted) of
            lacking -> {ok, {stock, <<"the probe cannot be loaded there">>}};
            Result -> Result
        end
    else
        stock -> {ok, {stock, <<"stock reading was asked for">>}};
        false ->
            {ok, {stock, <<"no probe there: read with what OTP has; sderl_mon in its code path, or "
                           "inject => true, gives it one">>}};
        Other -> Other
    end.

started(Node, Options, Wanted) ->
    case call(Node, sderl_mon_probe, start, [Options]) of
        {ok, {ok, Pid}} when is_pid(Pid) ->
            %% Not as options: a probe of an earlier version would refuse to start.
            wish(Node, Pid, Wanted);
        {ok, {error, {busy, Other}}} ->
            {ok, {stock,
                  text("the probe tells other monitoring nodes (~0tp); read with what OTP has",
                       [Other])}};
        {ok, {error, {term, Term}}} ->
            {error, term, text("a newer master (term ~0tp) watches it", [Term])};
        {ok, Other} -> {ok, {stock, text("the probe does not start: ~0tP", [Other, 12])}};
        lacking -> lacking;
        {error, _, _} = Error -> Error
    end.

wish(_, _, []) -> {ok, probe};
wish(Node, Pid, [What | Others]) ->
    case sderl_mon_tell:message(Pid, What) orelse wait_to_tell(Node, Pid, What) of
        true -> wish(Node, Pid, Others);
        Error -> Error
    end.

%% If the link is full at this moment, the wish must not be lost: nobody would send it again.
wait_to_tell(Node, Pid, What) ->
    case call(Node, erlang, send, [Pid, What]) of
        {ok, _} -> true;
        lacking -> {error, node, <<"does not answer">>};
        {error, _, _} = Error -> Error
    end.

inject(Node) -> inject(Node, sderl_mon_probe:code()).

inject(_, []) -> ok;
inject(Node, [{Module, File, Binary} | Rest]) ->
    case call(Node, code, load_binary, [Module, File, Binary]) of
        {ok, {module, Module}} -> inject(Node, Rest);
        {ok, {error, Why}} -> {ok, {stock, text("the probe cannot be loaded there: ~0tp", [Why])}};
        lacking -> {error, node, <<"has no module code">>};
        {error, _, _} = Error -> Error
    end.

-doc "One sample, read from here.".
-spec read(node(), #{seq := pos_integer(), facts => boolean()}) ->
    {ok, sderl_mon_samples:sample()} | failure().
read(Node, Options) ->
    maybe
        ok ?= connect(Node),
        {ok, Sample} ?= sderl_mon_stock:sample(Node, Options),
        {ok, Checked} ?= sderl_mon_samples:check(Sample),
        {ok, Checked}
    else
        {error, noconnection} -> {error, link, <<"the connection was lost">>};
        {error, timeout} -> {error, node, <<"connected, and does not answer">>};
        {error, not_a_sample} -> {error, node, <<"its answer is malformed">>};
        {error, Why} -> {error, node, text("cannot be read: ~0tP", [Why, 12])};
        {error, _, _} = Error -> Error
    end.

%% `lacking`: there is no such function.
call(Node, M, F, A) ->
    try
        {ok, erpc:call(Node, M, F, A, ?CALL_MS)}
    catch
        error:{exception, undef, [{M, F, _, _} | _]} -> lacking;
        error:{erpc, noconnection} -> {error, link, <<"the connection was lost">>};
        error:{erpc, timeout} -> {error, node, <<"connected, and does not answer">>};
        Class:Reason ->
            {error, node, text("~0tp:~0tp failed there: ~0tP", [M, F, {Class, Reason}, 12])}
    end.
