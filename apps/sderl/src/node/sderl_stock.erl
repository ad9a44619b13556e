%% SPDX-License-Identifier: Apache-2.0
-module(sderl_stock).
-moduledoc false.
%% Links to nodes that may be stock nodes of a full mesh (rule 26).
%%
%% `global` on a stock node wants to synchronise with every visible node, and one with
%% `connect_all` false never answers: `global:sync/0` hangs there as long as the link is visible.
%% So the link is made hidden first; if the other runs this library it is made again, visible.

-export([connect/1]).

%% The helper process of this answers with its exit reason.
-dialyzer({nowarn_function, [connect/1]}).

-define(TIMEOUT, 5000).

-doc "Connects as described above, in a helper process, which has to watch links come and go.".
-spec connect(node()) -> boolean().
connect(Node) when Node =:= node() -> true;
connect(Node) ->
    {Pid, Mon} = spawn_monitor(fun() -> exit({connected, connected(Node)}) end),
    receive
        {'DOWN', Mon, process, Pid, {connected, Connected}} -> Connected;
        {'DOWN', Mon, process, Pid, _} -> false
    end.

connected(Node) ->
    case lists:member(Node, nodes(connected)) of
        true -> note(Node, caller), true;
        false -> hidden_first(Node)
    end.

hidden_first(Node) ->
    %% Undocumented, and present in OTP 27 to 29: a test on each guards it.
    case net_kernel:hidden_connect_node(Node) of
        true ->
            case sderl_runs(Node) of
                true -> visible(Node);
                false -> note(Node, stock), true
            end;
        _ -> false
    end.

%% The hidden link was opened a moment ago and has carried nothing else. Waits until its end is
%% recorded: recorded after the next link is up, it would remove the reason of that one.
visible(Node) ->
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    true = erlang:disconnect_node(Node),
    receive {nodedown, Node, _} -> ok after ?TIMEOUT -> ok end,
    sderl_node_client:settle(),
    net_kernel:connect_node(Node) =:= true andalso begin note(Node, caller), true end.

%% Any answer says that the library runs there.
sderl_runs(Node) ->
    try gen_server:call({sderl_ask, Node}, hello, ?TIMEOUT) of
        _ -> true
    catch
        exit:_ -> false
    end.

note(Node, Reason) ->
    case sderl_dir:is_running() of
        false -> ok;
        true -> sderl_links:note(Node, Reason)
    end.
