%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cluster).
-moduledoc """
Records several nodes at once: prepares all, tries what it costs each, begins all together, and ends
all together. The files stay on the nodes (`m:sderl_prof_fetch`).

Each node has a process here that deals with it, `sderl_prof_cluster_worker`. It owns the recorder
there, so that the recording ends with it, and it ends with the process that asked for all. A node
that refuses, dies or does not answer is named in the index, and holds up the others for no longer
than the times below.
""".

-export([prepare/2, costs/1, failures/1, start/1, await/1, stop/2, abandon/1, format_error/1]).
-export_type([cluster/0, options/0, reason/0]).

%% Until a node has answered one question, and has ended when it is told to. To get ready and to
%% begin it has twice that.
-define(WAIT_MS, 20_000).
-doc """
Options of `m:sderl_prof_options`, and `dir`: the folder of the whole here, which may not hold
anything; `node_dir`: that on the nodes, where each has a folder of its own in it, by default the
same; `wait_ms`: the time that a node has to answer a question, and to end when it is told to; to
get ready and to begin it has twice that.
""".
-type options() :: #{dir := file:filename_all(), node_dir => file:filename_all(),
                     wait_ms => pos_integer(), atom() => term()}.

-record(cluster, {
    ref :: reference(),
    dir :: file:filename_all(),
    index :: sderl_prof_cluster_index:index(),
    %% The workers that have not failed.
    workers :: #{pid() => {Node :: binary(), Monitor :: reference()}},
    costs = [] :: [{binary(), sderl_prof_trial:cost()}],
    wait_ms :: pos_integer()
}).
-opaque cluster() :: #cluster{}.

-type reason() :: {options, sderl_prof_options:reason()} | no_nodes | {bad_node, node()}
    | {twice, node()} | not_empty | {folder, file:filename_all(), term()}
    | sderl_prof_cluster_index:reason() | {none, [{binary(), binary()}]}.

-doc """
Gets all nodes ready. The result also tells of those that could not; it is an error when that is so
of all.
""".
-spec prepare([node()], options()) -> {ok, cluster()} | {error, reason()}.
prepare(Nodes, #{dir := Dir} = Options) ->
    Own = maps:without([dir, node_dir, wait_ms], Options),
    maybe
        ok ?= check_nodes(Nodes),
        {ok, #{items := Items} = Plan} ?= planned(Own#{senders => true}),
        ok ?= check_folder(Dir),
        There = maps:get(node_dir, Options, Dir),
        Folders = [{Node, filename:join(There, sderl_prof_cluster_index:folder_name(Node))}
                   || Node <- Nodes],
        Texts = [unicode:characters_to_binary(io_lib:format("~0tp", [Item])) || Item <- Items],
        Index = sderl_prof_cluster_index:new(Texts, Folders),
        ok ?= sderl_prof_cluster_index:write(Dir, Index),
        begin_workers(Folders, Plan, Index, Options)
    end.

check_nodes([]) -> {error, no_nodes};
check_nodes(Nodes) ->
    case {[Node || Node <- Nodes, not is_node_name(Node)], Nodes -- lists:usort(Nodes)} of
        {[], []} -> ok;
        {[Bad | _], _} -> {error, {bad_node, Bad}};
        {[], [Twice | _]} -> {error, {twice, Twice}}
    end.

is_node_name(Node) ->
    case string:split(atom_to_list(Node), "@", all) of
        [[_ | _], [_ | _]] -> not lists:member($/, atom_to_list(Node));
        _ -> false
    end.

planned(Options) ->
    case sderl_prof_options:plan(Options) of
        {ok, Plan} -> {ok, Plan};
        {error, Why} -> {error, {options, Why}}
    end.

check_folder(Dir) ->
    case file:list_dir_all(Dir) of
        {ok, []} -> ok;
        {error, enoent} -> ok;
        {ok, _} -> {error, not_empty};
        {error, Why} -> {error, {folder, Dir, Why}}
    end.

begin_workers(Folders, Plan, Index, #{dir := Dir} = Options) ->
    Ref = make_ref(),
    Self = self(),
    WaitMs = maps:get(wait_ms, Options, ?WAIT_MS),
    Most = maps:get(max_events_s, Options, infinity),
    Work = #{caller => Self, ref => Ref, plan => Plan, most => Most, wait_ms => WaitMs},
    Workers = maps:from_list([
        begin
            {Pid, Monitor} = spawn_monitor(fun() ->
                sderl_prof_cluster_worker:run(Work#{node => Node, dir => Folder})
            end),
            {Pid, {atom_to_binary(Node), Monitor}}
        end || {Node, Folder} <- Folders
    ]),
    Cluster = #cluster{ref = Ref, dir = Dir, index = Index, workers = Workers, wait_ms = WaitMs},
    Ready = collect(ready, maps:keys(Workers), until(2 * WaitMs), Cluster),
    written(Ready).

until(Ms) -> erlang:monotonic_time(millisecond) + Ms.

%% A failure of all nodes is an error, and leaves no folder behind.
written(#cluster{workers = Workers, dir = Dir, index = Index} = Cluster) ->
    case map_size(Workers) of
        0 ->
            ok = sderl_prof_cluster_index:remove(Dir),
            {error, {none, failures(Cluster)}};
        _ ->
            case sderl_prof_cluster_index:write(Dir, Index) of
                ok -> {ok, Cluster};
                Error ->
                    ok = abandon(Cluster),
                    Error
            end
    end.

-doc "What the recording costs each node that is ready.".
-spec costs(cluster()) -> [{Node :: binary(), sderl_prof_trial:cost()}].
costs(#cluster{costs = Costs}) -> lists:sort(Costs).

-doc "The nodes that failed so far, and why.".
-spec failures(cluster() | sderl_prof_cluster_index:index()) -> [{Node :: binary(), binary()}].
failures(#cluster{index = Index}) -> failures(Index);
failures(#{nodes := Nodes}) ->
    [{Node, Why} || #{node := Node, error := Why} <- Nodes, Why =/= null].

-doc "Begins on all nodes that are ready.".
-spec start(cluster()) -> {ok, cluster()} | {error, reason()}.
start(#cluster{workers = Workers, ref = Ref, wait_ms = WaitMs} = Cluster) ->
    Pids = maps:keys(Workers),
    lists:foreach(fun(Pid) -> Pid ! {Ref, begin_now} end, Pids),
    written(collect(began, Pids, until(2 * WaitMs), Cluster)).

-doc """
Waits until all have ended, in time or because of `stop/2`. The process that made the cluster calls
it.
""".
-spec await(cluster()) -> {ok, sderl_prof_cluster_index:index()} | {error, reason()}.
await(#cluster{workers = Workers, ref = Ref} = Cluster) ->
    Ended = collect(ended, maps:keys(Workers), infinity, Cluster),
    flush(Ref),
    #cluster{dir = Dir, index = Index} = Ended,
    case sderl_prof_cluster_index:write(Dir, Index) of
        ok -> {ok, Index};
        Error -> Error
    end.

flush(Ref) ->
    receive {Ref, stop_all} -> flush(Ref) after 0 -> ok end.

-doc "Ends all before their time; `Caller` made the cluster, and is in `await/1` or gets there.".
-spec stop(Caller :: pid(), cluster()) -> ok.
stop(Caller, #cluster{ref = Ref}) ->
    Caller ! {Ref, stop_all},
    ok.

-doc "Ends all without waiting for them.".
-spec abandon(cluster()) -> ok.
abandon(#cluster{workers = Workers}) ->
    maps:foreach(fun(Pid, {_, Monitor}) ->
        true = demonitor(Monitor, [flush]),
        true = exit(Pid, kill)
    end, Workers).

%% ---------------------------------------------------------------- what the workers say

%% All of them answer at one step or fail, and none waits for longer than it may.
collect(_, [], _, Cluster) ->
    Cluster;
collect(Step, Pids, Until, #cluster{ref = Ref, workers = Workers} = Cluster) ->
    receive
        {Ref, Pid, {Step, Told}} when is_map_key(Pid, Workers) ->
            collect(Step, lists:delete(Pid, Pids), Until, told(Step, Pid, Told, Cluster));
        {Ref, Pid, {failed, Told}} when is_map_key(Pid, Workers) ->
            collect(Step, lists:delete(Pid, Pids), Until, failed(Pid, Told, Cluster));
        {'DOWN', _, process, Pid, Why} when is_map_key(Pid, Workers) ->
            Text = unicode:characters_to_binary(io_lib:format("~0tP", [Why, 10])),
            collect(Step, lists:delete(Pid, Pids), Until, failed(Pid, #{error => Text}, Cluster));
        {Ref, stop_all} ->
            lists:foreach(fun(Pid) -> Pid ! {Ref, stop_now} end, Pids),
            collect(Step, Pids, Until, Cluster)
    after left(Until) ->
        lists:foldl(fun(Pid, Acc) ->
            true = exit(Pid, kill),
            failed(Pid, #{error => ~"does not answer in time"}, Acc)
        end, Cluster, Pids)
    end.

left(infinity) -> infinity;
left(Until) -> max(0, Until - erlang:monotonic_time(millisecond)).

told(ready, Pid, #{cost := Cost} = Told, #cluster{costs = Costs} = Cluster) ->
    {Node, _} = map_get(Pid, Cluster#cluster.workers),
    changed(Pid, maps:remove(cost, Told), Cluster#cluster{costs = [{Node, Cost} | Costs]});
told(began, Pid, Told, Cluster) ->
    changed(Pid, Told#{state => records}, Cluster);
told(ended, Pid, Told, Cluster) ->
    gone(Pid, changed(Pid, Told#{state => recorded}, Cluster)).

failed(Pid, Told, Cluster) ->
    gone(Pid, changed(Pid, Told#{state => failed}, Cluster)).

gone(Pid, #cluster{workers = Workers} = Cluster) ->
    {{_, Monitor}, Rest} = maps:take(Pid, Workers),
    true = demonitor(Monitor, [flush]),
    Cluster#cluster{workers = Rest}.

changed(Pid, Told, #cluster{workers = Workers, index = #{nodes := Nodes} = Index} = Cluster) ->
    {Node, _} = map_get(Pid, Workers),
    [Entry] = [E || #{node := N} = E <- Nodes, N =:= Node],
    Cluster#cluster{index = sderl_prof_cluster_index:put_node(maps:merge(Entry, Told), Index)}.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({options, Why}) -> sderl_prof_options:format_error(Why);
format_error(no_nodes) -> "name at least one node that is to be recorded";
format_error({bad_node, Node}) ->
    io_lib:format("~0tp is no name of a node; one is NAME@HOST", [Node]);
format_error({twice, Node}) -> io_lib:format("~ts is named twice", [Node]);
format_error(not_empty) -> "the folder is not empty; name another, or none for a new one";
format_error({folder, Dir, Why}) ->
    io_lib:format("cannot read the folder ~ts: ~ts", [Dir, file:format_error(Why)]);
format_error({index, _, _} = Why) -> sderl_prof_cluster_index:format_error(Why);
format_error({none, Failures}) ->
    ["no node can be recorded:",
     [["\n  ", Node, ": ", Why] || {Node, Why} <- Failures]].
