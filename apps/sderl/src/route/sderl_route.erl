%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route).
-moduledoc """
Messages and calls to processes of groups that this node is no member of, over gateways and without
a new link.

A node in two groups is a *gateway* between them. Gateways tell what they are linked to, every node
computes the shortest ways from that, and `{Group, Name}` can be reached from every group that a chain of
gateways connects with `Group`:

```erlang
ok = sderl_route:send({billing, ledger}, {entry, 42}),
{ok, Sum} = sderl_route:call({billing, ledger}, sum, 1000),
Sum = gen_server:call({via, sderl_route, {billing, ledger}}, sum).
```

```elixir
:ok = :sderl_route.send({:billing, :ledger}, {:entry, 42})
{:ok, sum} = :sderl_route.call({:billing, :ledger}, :sum, 1000)
^sum = GenServer.call({:via, :sderl_route, {:billing, :ledger}}, :sum)
```

In a group of this node the same calls go straight to the process.

## What is promised

- **Order.** What one process sends to single names of one group arrives in the order sent, as long as the way
  stays the same. When a gateway comes or goes, some senders change to another way, and a message there may
  overtake one on the old way. What is sent to many at once is in order with other such messages only.
- **Calls.** A call that is answered was asked once, also when gateways died meanwhile. The errors tell the
  death of the process asked, a lost way and a timeout apart: see `call/3`.
- **Bounded queues.** A gateway holds at most `route_queue` messages for each full link. What is too much is
  refused, and reported to the sender's node.
- **Nothing is lost in silence**, but what was on a link or in a gateway that died: see `reports/1`. A send is
  not acknowledged; a call is.
""".

-export([send/2, cast/2, call/2, call/3, call_any/4]).
-export([multi_send/3, fan_out/3]).
-export([groups/0, info/0, reports/1]).

-export_type([destination/0, receivers/0]).

-doc "A process by the group and the name it is registered under, or a process.".
-type destination() :: {Group :: term(), Name :: term()} | pid().

-doc "Many processes of a group: those whose names match, or the one of that local name on each member.".
-type receivers() :: {names, Pattern :: term()} | {nodes, Process :: atom()}.

-define(CALL_MS, 5000).

-doc """
Sends a message to a process of any group, or to a process of any node of a group.

`ok` says that the message is on its way. `{error, Reason}`: `no_name` (in an own group),
`no_route`, `not_running`. What fails further on is reported: `reports/1`. Suspends the caller while
the first link is full, as `erlang:send/2` does.
""".
-spec send(destination(), Message :: term()) -> ok | {error, no_name | no_route | not_running}.
send({Group, Name}, Message) ->
    Hash = sderl_route_send:hash(Group, 1),
    %% The routes know no own group: most of what comes here is settled with them.
    try sderl_route_send:group(Group, {name, Name}, self(), Message, Hash, [noconnect]) of
        ok -> ok;
        {error, no_route} ->
            case sderl_read:local(Group, Name) of
                undefined -> {error, case sderl_store:is_member(Group) of true -> no_name; false -> no_route end};
                Pid -> to_pid(Pid, Message)
            end
    catch
        error:badarg -> {error, not_running}
    end;
send(Pid, Message) when is_pid(Pid) ->
    try to_pid(Pid, Message)
    catch error:badarg -> {error, not_running}
    end;
send(Other, _) -> misuse(send, 2, 1, Other, "{Group, Name} or a pid").

to_pid(Pid, Message) -> sderl_route_send:node(node(Pid), {to, Pid}, self(), Message, [noconnect]).

-doc "`send/2` of what `gen_server:cast/2` sends.".
-spec cast(destination(), Request :: term()) -> ok | {error, no_name | no_route | not_running}.
cast(Destination, Request) -> send(Destination, {'$gen_cast', Request}).

-doc "`call/3` with five seconds.".
-spec call({Group :: term(), Name :: term()}, Request :: term()) -> {ok, term()} | {error, sderl_route_call:error() | not_running}.
call(Destination, Request) -> call(Destination, Request, ?CALL_MS).

-doc """
Calls a `gen_server` (or whatever answers such calls) of any group. `Timeout` in milliseconds.

Errors: `no_name`, `no_route`, `unreachable`, `busy`, `hop_limit`, `not_running`: it was not asked.
`{down, Reason}`: the process that was asked ended, before its answer (`noproc`: before it was asked;
`noconnection`: with its node).
`lost_route`: the way was lost, and whether it was asked is not known. `timeout`: it was asked and has not
answered in time.

While no way is known the call waits up to a second for one, within its time limit, so that the death of a
gateway is no error where there is another.
""".
-spec call({Group :: term(), Name :: term()}, Request :: term(), timeout()) ->
    {ok, term()} | {error, sderl_route_call:error() | not_running}.
call({Group, Name}, Request, Timeout) when Timeout =:= infinity; is_integer(Timeout), Timeout >= 0 ->
    try sderl_read:local(Group, Name) of
        undefined ->
            case sderl_store:is_member(Group) of
                true -> {error, no_name};
                false -> sderl_route_call:call(Group, {call, Name}, Request, Timeout)
            end;
        Pid -> direct(Pid, Request, Timeout)
    catch
        error:badarg -> {error, not_running}
    end;
call({_, _}, _, Timeout) -> misuse(call, 3, 3, Timeout, "milliseconds or infinity");
call(Other, _, _) -> misuse(call, 3, 1, Other, "{Group, Name}").

direct(Process, Request, Timeout) ->
    try {ok, gen_server:call(Process, Request, Timeout)}
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{Reason, _} -> {error, {down, Reason}}
    end.

-doc """
Calls the process registered locally as `Process` on some member of a group: that one at which the
route arrives. Errors as with `call/3`.
""".
-spec call_any(Group :: term(), Process :: atom(), Request :: term(), timeout()) ->
    {ok, term()} | {error, sderl_route_call:error() | not_running}.
call_any(Group, Process, Request, Timeout) when is_atom(Process) ->
    try sderl_store:is_member(Group) of
        true -> direct(Process, Request, Timeout);
        false -> sderl_route_call:call(Group, {call_any, Process}, Request, Timeout)
    catch
        error:badarg -> {error, not_running}
    end;
call_any(_, Process, _, _) -> misuse(call_any, 4, 2, Process, "an atom").

-doc """
Sends a message to many processes of a group: `{names, Pattern}`, all that are registered under a name
that matches (`'_'` in it stands for anything), or `{nodes, Process}`, the process registered locally under that
atom on each member. The message crosses each link on its way once.
""".
-spec multi_send(Group :: term(), receivers(), Message :: term()) -> ok | {error, no_route | not_running}.
multi_send(Group, To, Message) ->
    ok = receivers(To, multi_send),
    try sderl_store:is_member(Group) of
        %% As it would be for others: by a forwarding process of this node.
        true -> sderl_route_send:node(node(), {group, Group, To}, self(), Message, [noconnect]);
        false -> sderl_route_send:group(Group, To, self(), Message, sderl_route_send:hash(Group, 1), [noconnect])
    catch
        error:badarg -> {error, not_running}
    end.

-doc """
`multi_send/3` to several groups, or to `all`: the own ones and those that routes lead to. One message goes as far
as the ways to the groups are the same, so each link is crossed once. A node that is in two of the groups gets it
for each. Groups that no route leads to are reported: `reports/1`.
""".
-spec fan_out([Group :: term()] | all, receivers(), Message :: term()) -> ok | {error, not_running}.
fan_out(all, To, Message) ->
    try [G || {G, _, _, _, _} <- sderl_dir:named()] ++ [G || {G, _} <- groups()] of
        Groups -> fan_out(Groups, To, Message)
    catch
        error:badarg -> {error, not_running}
    end;
fan_out(Groups, To, Message) when is_list(Groups) ->
    ok = receivers(To, fan_out),
    try sderl_route_send:node(node(), {groups, Groups, To}, self(), Message, [noconnect]) of
        _ -> ok
    catch
        error:badarg -> {error, not_running}
    end;
fan_out(Other, _, _) -> misuse(fan_out, 3, 1, Other, "a list of groups, or all").

receivers({names, _}, _) -> ok;
receivers({nodes, Process}, _) when is_atom(Process) -> ok;
receivers(Other, Function) -> misuse(Function, 3, 2, Other, "{names, Pattern} or {nodes, Atom}").

-doc "The groups that routes lead to from here, other than the own ones, with their members as gateways tell them.".
-spec groups() -> [{Group :: term(), [node()]}].
groups() ->
    try lists:sort(ets:select(sderl_routes, [{{{members, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}]))
    catch error:badarg -> []
    end.

-doc """
Routes and counts of this node.

`routes`: `{Group, Gateways, First}`: how many gateways are crossed, and which mates may be the first. `gateways`:
what each tells: its groups, and the gateways next to it. `silent`: gateways next to this node that give no sign.
`delivered`, `forwarded`, `failed`: messages that this node took for others. `undelivered`: what was sent here
and failed, `{To, Reason, Messages}`.
""".
-spec info() -> map() | {error, not_running}.
info() ->
    try
        #{gateways := Gateways, silent := Silent} = sderl_router:info(),
        Routes = ets:select(sderl_routes, [{{{group, '$1'}, '$2', '$3'}, [], [{{'$1', '$2', '$3'}}]}]),
        (sderl_route_report:info())#{
            routes => lists:sort([{G, Far, tuple_to_list(First)} || {G, Far, First} <- Routes]), silent => Silent,
            gateways => [#{node => N, groups => lists:sort([G || {G, _, _} <- Gs]), next_to => L} || {N, _, Gs, L} <- Gateways]}
    catch
        error:badarg -> {error, not_running};
        exit:_ -> {error, not_running}
    end.

-doc """
Whether the calling process is told of its messages that could not be delivered, as
`{sderl_undelivered, To, Reason, Messages}` with how many of them (`t:sderl_route_send:failure/0`). Told or not, an event
`undelivered` says so now and then, and `info/0` counts them.
""".
-spec reports(boolean()) -> ok | {error, not_running}.
reports(On) when is_boolean(On) ->
    try sderl_route_report:subscribe(On)
    catch exit:_ -> {error, not_running}
    end;
reports(Other) -> misuse(reports, 1, 1, Other, "true or false").

-spec misuse(atom(), arity(), pos_integer(), term(), string()) -> no_return().
misuse(Function, Arity, Position, Value, Expected) ->
    error({badarg, {?MODULE, Function, Arity}, #{argument => Position, value => Value, expected => Expected}}).
