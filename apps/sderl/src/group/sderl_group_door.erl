%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_door).
-moduledoc """
Messages to the process of a group, as events of the core.

What another process sends is checked here (`m:sderl_wire`). The core keeps what it is given, and a
term that it cannot handle would be there again for each process that is started after a crash.
""".

-export([event/3, asked/3]).

-include("../core/sderl_op.hrl").
-include("../core/sderl_version.hrl").

-doc """
`none`: the message is of another group, late, or ill-typed. `Local`: the names of this node's
processes.
""".
-spec event(term(), Uid :: binary(), Local :: sderl_store:local()) -> sderl_core:event() | none.
event({sderl_op, From, Op}, _, _) -> asked(op, From, Op);
event({sderl_again, From, Op}, _, _) -> asked(again, From, Op);
event({sderl, ?VSN, Uid, Node, Msg}, Uid, _) when is_atom(Node), Node =/= node() ->
    %% Messages in the name of this node itself are refused: a member would take itself for another.
    case sderl_wire:message(Node, Msg) of
        true -> {msg, Node, Msg};
        false -> none
    end;
event({sderl_greeted, Uid, Node, Connection, Hello}, Uid, _) ->
    case sderl_links:connected(Node, Connection) andalso sderl_wire:message(Node, Hello) of
        true -> {msg, Node, Hello};
        false -> none
    end;
event({sderl_await_live, From, Nodes, Ms}, _, _)
  when is_reference(From), length(Nodes) >= 0, is_integer(Ms) ->
    {await_live, From, Nodes, Ms};
event({'DOWN', _, process, Pid, _}, _, Local) ->
    case Local of
        #{Pid := Name} -> {op, none, ?UNREGISTER_OF(Name, Pid)};
        _ -> none
    end;
event({sderl_pid_gone, Name, Pid}, _, _) when is_pid(Pid) ->
    {op, none, ?UNREGISTER_OF(Name, Pid)};
event({nodeup, N, _}, _, _) when is_atom(N) -> {nodeup, N};
event({nodedown, N, _}, _, _) when is_atom(N) -> {nodedown, N};
event({sderl_recover, From, Survivors}, _, _) when is_reference(From), length(Survivors) >= 0 ->
    {recover, From, Survivors};
event(wake, _, _) -> wake;
event(sderl_depart, _, _) -> depart;
event(_, _, _) -> none.

-doc "A client's operation, sent for the first time or again.".
-spec asked(op | again, term(), term()) -> sderl_core:event() | none.
asked(How, From, Op) when is_reference(From); From =:= none ->
    case sderl_wire:operation(Op) of
        true -> {How, From, Op};
        false -> none
    end;
asked(_, _, _) -> none.
