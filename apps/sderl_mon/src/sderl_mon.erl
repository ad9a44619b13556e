%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon).
-moduledoc """
The shadow network: watches clusters of s_groups from hidden nodes.

A *monitoring node* runs this application. It connects to the monitored nodes by hidden links only,
and joins no group. Several monitoring nodes share the work and take over from each other. Each has
a hub (`m:sderl_mon_hub`) with the present numbers and the history. This module asks the monitored
nodes themselves, and sets up the shadow network.

```erlang
application:set_env(sderl_mon, config, #{seeds => ['a@host'], monitors => ['m1@host', 'm2@host']}),
{ok, _} = application:ensure_all_started(sderl_mon),
#{role := leader} = sderl_mon:status().
```

`m:sderl_mon_config` has the keys of the configuration. The cookie is that of the monitoring node.

Nodes and groups are named by their ids (`t:sderl_mon_types:id/0`); only watched ones are found.
Errors are `{unknown_node, Id}`, `{unknown_group, Id}`, `{no_probe, Id}` where the answer needs a
probe, `{unreachable, Id}`, and the errors of the functions of `m:sderl_mon_probe`.
While the hub shows a made-up cluster (`sderl_mon_synthetic`), the answers are made up as well.
""".

-export([config/0, set/1, info/0, status/0, overhead/0]).
-export([names/2, lookup/2, trace/2, process/2]).
-export([format_error/1]).

-import(sderl_mon_text, [text/2]).

-define(CALL_MS, 5000).

-type error() :: {error, term()}.

-doc "The keys of `sderl_mon_master_core:status()`, and these.".
-type info() :: #{
    config := sderl_mon_config:config(),
    hub := sderl_mon_hub:info(),
    log := sderl_mon_log:info() | #{},
    requests := #{sderl_mon_pool:lane() => sderl_mon_pool:load()},
    problems := [binary()],
    atom() => term()
}.

-doc "The configuration in force, complete.".
-spec config() -> sderl_mon_config:config().
config() -> sderl_mon_settings:get().

-doc """
Changes the configuration while monitoring runs; keys that are not given stay. `ok` means that the
change is in force on this node, and with a `state_dir` on its disk, where it survives restarts.
Keys that all monitoring nodes have in common are sent to the others: the change outlives this node
once another one has it, whichever of them leads. Of two changes of one key the later one wins.
""".
-spec set(map()) -> ok | {error, sderl_mon_config:error()}.
set(Map) -> sderl_mon_settings:set(Map).

-doc """
Which monitoring node leads, which were heard, the monitored nodes with their status, and where the
agents run: `node`, `role`, `master`, `term`, `monitors`, `heard`, `nodes`, `agents`.
""".
-spec status() -> sderl_mon_master_core:status().
status() -> sderl_mon_master:status().

-doc """
`status/0` with the configuration, the hub's bounds and losses, the nodes' log, the requests under
way, and a sentence for each unexpected state.
""".
-spec info() -> info().
info() ->
    Status = status(),
    {Log, Problems} = log_info(),
    Status#{config => config(), hub => sderl_mon_hub:info(), log => Log,
            requests => sderl_mon_pool:info(), problems => problems(Status) ++ Problems}.

%% The rest is shown even if the process of the log does not answer.
log_info() ->
    try sderl_mon_log:info() of
        #{problem := none} = Log -> {Log, []};
        #{problem := Problem} = Log -> {Log, [Problem]}
    catch
        exit:_ -> {#{}, [text("the log of the nodes does not answer now: ask again", [])]}
    end.

problems(#{nodes := Nodes, monitors := Monitors, heard := Heard, master := Master}) ->
    [text("~0tp is ~0tp: ~ts", [N, S, W])
     || N := #{status := S, why := W} <- maps:iterator(Nodes, ordered), S =/= up] ++
        [text("~0tp is read from here, not by a probe: ~ts", [N, W])
         || N := #{status := up, source := stock, why := W} <- maps:iterator(Nodes, ordered)] ++
        [text("the monitoring node ~0tp is not heard; is it up, and of the same cookie?", [M])
         || M <- Monitors, M =/= node(), not lists:member(M, Heard)] ++
        [text("no monitoring node leads yet", []) || Master =:= undefined] ++
        [text("no node is known: set seeds", []) || map_size(Nodes) =:= 0].

-doc """
The cost of watching each node, as last measured: `probe_pct` (the probe's share of the CPU that the
node uses, in per cent; only where there is a probe), `mon_msgs_s` and `mon_bytes_s` (its traffic
with the monitoring nodes).
""".
-spec overhead() -> #{sderl_mon_types:id() =>
                          #{probe_pct | mon_msgs_s | mon_bytes_s => number()}}.
overhead() ->
    case sderl_mon_hub:at(live, sderl_mon_clock:wall_ms()) of
        {ok, #{frame := #{nodes := Nodes}}} ->
            #{Id => maps:with([probe_pct, mon_msgs_s, mon_bytes_s], N) || Id := N <- Nodes};
        {error, none} -> #{}
    end.

-doc "Names of a group, from one of its members: see `sderl_mon_probe:names/2`.".
-spec names(sderl_mon_types:id(), sderl_mon_types:names_opts()) ->
    {ok, sderl_mon_types:names()} | error().
names(GroupId, Opts) ->
    case sderl_mon_synthetic:is_running() of
        true -> sderl_mon_synthetic:names(GroupId, Opts);
        false -> of_group(GroupId, fun(Group) -> {names, [Group, Opts]} end)
    end.

-doc "One name of a group, by its text: see `sderl_mon_probe:lookup/2`.".
-spec lookup(sderl_mon_types:id(), binary()) -> {ok, sderl_mon_types:name()} | error().
lookup(GroupId, Name) ->
    case sderl_mon_synthetic:is_running() of
        true -> sderl_mon_synthetic:lookup(GroupId, Name);
        false -> of_group(GroupId, fun(Group) -> {lookup, [Group, Name]} end)
    end.

-doc """
Switches tracing on a node on or off: see `sderl_mon_probe:trace/1`. The answer has the cost.
""".
-spec trace(sderl_mon_types:id(), sderl_mon_types:trace_opts()) ->
    {ok, sderl_mon_types:traced()} | error().
trace(NodeId, Opts) ->
    case sderl_mon_synthetic:is_running() of
        true -> sderl_mon_synthetic:trace(NodeId, Opts);
        false -> of_node(NodeId, trace, [Opts])
    end.

-doc "A process of a node, by the text of its pid: see `sderl_mon_probe:process/1`.".
-spec process(sderl_mon_types:id(), binary()) -> {ok, sderl_mon_types:process()} | error().
process(NodeId, Pid) ->
    case sderl_mon_synthetic:is_running() of
        true -> sderl_mon_synthetic:process(NodeId, Pid);
        false -> of_node(NodeId, process, [Pid])
    end.

of_node(Id, Function, Args) ->
    case sderl_mon_master:node_of(Id) of
        {ok, Node, up} -> ask(Id, Node, Function, Args);
        {ok, _, _} -> {error, {unreachable, Id}};
        {error, unknown} -> {error, {unknown_node, Id}}
    end.

of_group(Id, Question) ->
    case sderl_mon_master:group_of(Id) of
        {ok, _, []} ->
            {error, {unreachable, Id}};
        {ok, Group, Nodes} ->
            {Function, Args} = Question(Group),
            any(Id, lists:sublist(Nodes, 3), Function, Args);
        {error, unknown} ->
            {error, {unknown_group, Id}}
    end.

%% Asks the next member if one does not answer.
any(Id, [Node | Rest], Function, Args) ->
    case ask(Id, Node, Function, Args) of
        {error, {Why, _}} when Rest =/= [], (Why =:= no_probe orelse Why =:= unreachable) ->
            any(Id, Rest, Function, Args);
        Answer -> Answer
    end.

ask(Id, Node, Function, Args) ->
    case sderl_mon_reach:connect(Node) of
        ok ->
            try
                erpc:call(Node, sderl_mon_probe, Function, Args, ?CALL_MS)
            catch
                error:{exception, undef, [{sderl_mon_probe, _, _, _} | _]} ->
                    {error, {no_probe, Id}};
                error:{erpc, _} -> {error, {unreachable, Id}};
                error:{exception, Why, _} -> {error, {failed, Id, Why}};
                Class:Why when Class =:= exit; Class =:= throw -> {error, {failed, Id, Why}}
            end;
        {error, _, _} ->
            {error, {unreachable, Id}}
    end.

-doc "One sentence that names the term and the remedy.".
-spec format_error(term()) -> unicode:chardata().
format_error({bad_config, _, _, _} = Error) -> sderl_mon_config:format_error(Error);
format_error({bad_file, _, _} = Error) -> sderl_mon_config:format_error(Error);
format_error({unknown_node, Id}) ->
    io_lib:format("no node ~ts is watched; the names are those of the topology", [Id]);
format_error({unknown_group, Id}) ->
    io_lib:format("no group ~ts is known; the names are those of the topology", [Id]);
format_error({no_probe, Id}) ->
    io_lib:format("~ts has no probe, which this needs; set inject => true to load one", [Id]);
format_error({unreachable, Id}) ->
    io_lib:format("~ts does not answer; the events say since when", [Id]);
format_error({failed, Id, Why}) -> io_lib:format("~ts failed to answer: ~0tP", [Id, Why, 12]);
format_error(Other) -> io_lib:format("~0tP", [Other, 20]).
