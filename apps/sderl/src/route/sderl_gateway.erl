%% SPDX-License-Identifier: Apache-2.0
-module(sderl_gateway).
-moduledoc """
Sends and spawns that reach over groups, for programs that know nothing of groups.

The published SD-Orbit has *gateway processes* on the nodes between two groups, which relay messages
from workers of one group to workers of the other, and a send and a spawn that go through them. A
distributed program is made scalable by using these in place of `!` and `spawn/4` (Trinder et al.,
*Scaling Reliably*, 2017). In this library every node in two groups already has gateway processes:
its forwarding processes (`m:sderl_route`). This module has the send and the spawn:

```erlang
%% before
Pid ! {vertex, X, Slot, K}
{table, Node} ! {insert, X}
spawn(Node, worker, init, [Slot])

%% after
sderl_gateway:s_group_send(Pid, {vertex, X, Slot, K})
sderl_gateway:s_group_send({table, Node}, {insert, X})
sderl_gateway:s_group_spawn(Node, worker, init, [Slot])
```

```elixir
# before
send(pid, {:vertex, x, slot, k})
Node.spawn(node, Worker, :init, [slot])

# after
:sderl_gateway.s_group_send(pid, {:vertex, x, slot, k})
:sderl_gateway.s_group_spawn(node, Worker, :init, [slot])
```

Neither makes a link between the two nodes. On a node that is in no group, or without the
application, they are `!` and `spawn/4`, so that the same program runs on a plain full mesh.

An argument of the wrong type raises
`{badarg, {sderl_gateway, Function, Arity}, #{argument := N, found := Value, expected := Text}}`.
""".

-export([s_group_send/2, s_group_spawn/4]).

-export_type([destination/0]).

-import(sderl_check, [misuse/5]).

-doc """
A process anywhere; one registered in a group; one registered locally on a node; one registered
here. A pair of atoms of which the second has an `@` is `{RegName, Node}`, unless the first is a
group that this node is in or knows a way to.
""".
-type destination() ::
    pid() | {Group :: term(), Name :: term()} | {RegName :: atom(), node()} | atom().

-define(AGENT, sderl_gateway_agent).
-define(SPAWN_MS, 5000).

-doc """
Sends a message, and returns it, as `!` does.

A message to a pid or a `{RegName, Node}` that cannot be delivered is lost as with `!`, but counted
and reported (`sderl_route:reports/1`). If it is known at once that a message to a group's name
cannot be delivered, the call exits with `{badarg, {Destination, Message}}`, as `s_group:send/2`
does; an atom under which nobody is registered raises `badarg`, as with `!`.

Order is kept from one process to one destination as long as the way stays the same.
""".
-spec s_group_send(destination(), Message) -> Message.
s_group_send(Pid, Message) when is_pid(Pid) -> to_pid(Pid, Message);
s_group_send(Name, Message) when is_atom(Name) -> Name ! Message;
s_group_send({First, Second} = To, Message) ->
    case is_atom(First) andalso is_node(Second) andalso not is_group(First) of
        true -> to_registered(First, Second, Message);
        false ->
            case sderl_route:send(To, Message) of
                ok -> Message;
                {error, _} -> exit({badarg, {To, Message}})
            end
    end;
s_group_send(Other, _) ->
    misuse(?MODULE, {s_group_send, 2}, 1, Other,
           "a pid, {Group, Name}, {RegName, Node} or an atom").

to_pid(Pid, Message) when node(Pid) =:= node() -> Pid ! Message;
to_pid(Pid, Message) ->
    case is_grouped() of
        true -> sent(sderl_route:send(Pid, Message), {node(Pid), {to, Pid}}, Message);
        false -> Pid ! Message
    end.

to_registered(Name, Node, Message) when Node =:= node() -> {Name, Node} ! Message;
to_registered(Name, Node, Message) ->
    case is_grouped() of
        true ->
            Hash = sderl_route_send:hash(Node),
            sent(sderl_route_send:node(Node, {process, Name}, self(), Message, Hash, [noconnect]),
                 {Node, {process, Name}}, Message);
        false -> {Name, Node} ! Message
    end.

sent(ok, _, Message) -> Message;
sent({error, Reason}, What, Message) ->
    sderl_route_report:failed({node(), [{self(), What, Reason, 1}]}),
    Message.

-doc """
Spawns `Module:Function(Args...)` on a node, or on some member of a group that is up, without a link
to the caller. Returns the pid.

Errors, within 5 s: `no_route`, `unreachable`, `busy`, `hop_limit`, `not_running` (the application
on that node): nothing was spawned. `lost_route`, `timeout`: it may have been spawned. It is never
spawned twice.

On a node in no group, to a node, it is `spawn/4`, and without the application to a group `spawn/3`.
""".
-spec s_group_spawn(node() | (Group :: term()), module(), Function :: atom(), Args :: [term()]) ->
    pid() | {error, sderl_route_call:error() | not_running}.
s_group_spawn(Where, M, F, A) when is_atom(M), is_atom(F), is_list(A) ->
    case is_node(Where) andalso not is_group(Where) of
        true when Where =:= node() -> spawn(M, F, A);
        true ->
            case is_grouped() of
                true ->
                    spawned(sderl_route_call:call(undefined, {at, Where, ?AGENT}, {spawn, M, F, A},
                                                  ?SPAWN_MS));
                false -> spawn(Where, M, F, A)
            end;
        false ->
            case sderl_route:call_any(Where, ?AGENT, {spawn_in, Where, M, F, A}, ?SPAWN_MS) of
                {error, not_running} -> spawn(M, F, A);
                Result -> spawned(Result)
            end
    end;
s_group_spawn(_, M, F, A) when is_atom(M), is_atom(F) ->
    misuse(?MODULE, {s_group_spawn, 4}, 4, A, "a list of arguments");
s_group_spawn(_, M, F, _) when is_atom(M) ->
    misuse(?MODULE, {s_group_spawn, 4}, 3, F, "the name of a function");
s_group_spawn(_, M, _, _) -> misuse(?MODULE, {s_group_spawn, 4}, 2, M, "the name of a module").

spawned({ok, {ok, Pid}}) when is_pid(Pid) -> Pid;
spawned({ok, {error, Reason}}) -> {error, Reason};
spawned({error, {down, noproc}}) -> {error, not_running};
spawned({error, {down, _}}) -> {error, lost_route};
spawned({error, Reason}) -> {error, Reason}.

is_node(Term) -> is_atom(Term) andalso lists:member($@, atom_to_list(Term)).

is_group(Term) ->
    try sderl_names:is_member(Term) orelse sderl_router:leads_to(Term)
    catch error:badarg -> false
    end.

%% Whether this node runs the application and is in a group.
is_grouped() ->
    try not sderl_dir:is_free()
    catch error:badarg -> false
    end.
