%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route).
-moduledoc """
Sends to and calls processes of groups that this node is not in, over gateways and without a new
link.

A node in two groups is a *gateway* between them. Gateways advertise which other gateways they are
linked to, and every node computes the shortest ways from that. So `{Group, Name}` can be reached
from every group that a chain of gateways connects with `Group`:

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

- **Order.** Messages of one process to single names of one group arrive in the order sent, as long
  as the way stays the same. When a gateway comes or goes, some senders change to another way, and a
  message there may overtake one on the old way. A message to many processes keeps its order with
  other such messages only.
- **Calls.** A call that is answered was asked once, also when gateways died meanwhile. Different
  errors say that the process died, that the way was lost, and that time ran out: see `call/3`.
- **Bounded queues.** A gateway holds at most `route_queue` messages for each full link. It refuses
  further messages, and reports them to the sender's node.
- **Names for gen_server and others**: `{via, sderl_route, {Group, Name}}`, with calls, casts,
  monitors and links that mean what they mean locally: see `whereis_name/1`. `monitor/1` watches a
  process under its name.
- **Losses are reported** (`reports/1`), except for messages that were on a link or in a gateway
  that died. A send is not acknowledged; a call is.

## Errors

Expected errors are values: `{error, Reason}`, listed with each function, and `{error, not_running}`
while the application does not run. An argument of the wrong type raises
`{badarg, {sderl_route, Function, Arity}, #{argument := N, found := Value, expected := Text}}`.
""".

-compile({no_auto_import, [demonitor/1, demonitor/2]}).

-export([send/2, cast/2, call/2, call/3, call_any/4]).
-export([multi_send/3, fan_out/3]).
-export([monitor/1, demonitor/1, demonitor/2]).
%% The via callbacks, with send/2
-export([register_name/2, unregister_name/1, whereis_name/1]).
-export([groups/0, info/0, reports/1]).

-export_type([destination/0, receivers/0]).

-import(sderl_check, [misuse/5]).

-doc "A process by the group and the name it is registered under, or a process.".
-type destination() :: {Group :: term(), Name :: term()} | pid().

-doc """
Many processes of a group: those whose names match, or on each member the process of that local
name.
""".
-type receivers() :: {names, Pattern :: term()} | {nodes, Process :: atom()}.

-define(CALL_MS, 5000).
-define(TIMEOUT, "milliseconds, a whole number from 0 to 4294967295, or infinity").
-define(is_timeout(T),
    (T =:= infinity orelse is_integer(T) andalso T >= 0 andalso T =< 16#FFFFFFFF)).
%% The longest that a name is asked for.
-define(FIND_MS, 5000).

-doc """
Sends a message to a process of any group, or to a process of any node of a group.

`ok` says that the message is on its way. `{error, Reason}`: `no_name` (in an own group),
`no_route`, `not_running`. A failure on the way is reported: `reports/1`. The call suspends the
caller while the first link is full, as `erlang:send/2` does.
""".
-spec send(destination(), Message :: term()) -> ok | {error, no_name | no_route | not_running}.
send({Group, Name}, Message) ->
    Hash = sderl_route_send:hash(Group),
    %% The routes know no own group: most of what comes here is settled with them.
    try
        sderl_route_send:group(Group, {name, Name}, self(), Message, Hash, [noconnect])
    of
        ok -> ok;
        {error, no_route} ->
            case sderl_names:whereis(Group, Name) of
                undefined ->
                    {error,
                     case sderl_names:is_member(Group) of true -> no_name; false -> no_route end};
                Pid -> to_pid(Pid, Message)
            end
    catch
        error:badarg -> {error, not_running}
    end;
send(Pid, Message) when is_pid(Pid) ->
    try to_pid(Pid, Message)
    catch error:badarg -> {error, not_running}
    end;
send(Other, _) -> misuse(?MODULE, {send, 2}, 1, Other, "{Group, Name} or a pid").

to_pid(Pid, Message) -> sderl_route_send:node(node(Pid), {to, Pid}, self(), Message, [noconnect]).

-doc "Sends what `gen_server:cast/2` sends, as `send/2` does.".
-spec cast(destination(), Request :: term()) -> ok | {error, no_name | no_route | not_running}.
cast(Destination, Request) -> send(Destination, {'$gen_cast', Request}).

-doc "`call/3` with five seconds.".
-spec call({Group :: term(), Name :: term()}, Request :: term()) ->
    {ok, term()} | {error, sderl_route_call:error() | not_running}.
call(Destination, Request) -> call(Destination, Request, ?CALL_MS).

-doc """
Calls a `gen_server`, or another process that answers such calls, of any group. `Timeout` in
milliseconds.

| `{error, Reason}` | meaning |
|---|---|
| `no_name`, `no_route`, `unreachable`, `busy`, `hop_limit`, `not_running` | the process was not asked |
| `{down, Reason}` | the process ended before its answer (`noproc`: before it was asked; `noconnection`: with its node, which was restarted since and says so) |
| `lost_route` | the way was lost, or no message about the call came for eight seconds: it is not known whether the process was asked |
| `timeout` | the process was asked and has not answered in time |

While no way is known the call waits up to a second for one, within its time limit, so that the
death of a gateway is no error if there is another gateway. A call does not wait for a full link:
the error is `busy` when no other way is found in that time.

A process is asked once, however often the call had to be sent. If the name went to a process on
another node meanwhile, both processes may have been asked, each once.
""".
-spec call({Group :: term(), Name :: term()}, Request :: term(), timeout()) ->
    {ok, term()} | {error, sderl_route_call:error() | not_running}.
call({Group, Name}, Request, Timeout) when ?is_timeout(Timeout) ->
    try sderl_names:whereis(Group, Name) of
        undefined ->
            case sderl_names:is_member(Group) of
                true -> {error, no_name};
                false -> sderl_route_call:call(Group, {call, Name}, Request, Timeout)
            end;
        Pid -> direct(Pid, Request, Timeout)
    catch
        error:badarg -> {error, not_running}
    end;
call({_, _}, _, Timeout) -> misuse(?MODULE, {call, 3}, 3, Timeout, ?TIMEOUT);
call(Other, _, _) -> misuse(?MODULE, {call, 3}, 1, Other, "{Group, Name}").

direct(Process, Request, Timeout) ->
    try {ok, gen_server:call(Process, Request, Timeout)}
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{{nodedown, _}, _} -> {error, {down, noconnection}};
        exit:{Reason, _} -> {error, {down, Reason}}
    end.

-doc """
Calls the process registered locally as `Process` on some member of a group: the member at which the
route arrives. Errors as with `call/3`.
""".
-spec call_any(Group :: term(), Process :: atom(), Request :: term(), timeout()) ->
    {ok, term()} | {error, sderl_route_call:error() | not_running}.
call_any(Group, Process, Request, Timeout) when is_atom(Process), ?is_timeout(Timeout) ->
    try sderl_names:is_member(Group) of
        true -> direct(Process, Request, Timeout);
        false -> sderl_route_call:call(Group, {call_any, Process}, Request, Timeout)
    catch
        error:badarg -> {error, not_running}
    end;
call_any(_, Process, _, _) when not is_atom(Process) ->
    misuse(?MODULE, {call_any, 4}, 2, Process, "an atom");
call_any(_, _, _, Timeout) -> misuse(?MODULE, {call_any, 4}, 4, Timeout, ?TIMEOUT).

-doc """
Sends a message to many processes of a group: `{names, Pattern}`, all that are registered under a
name that matches (`'_'` in it stands for anything), or `{nodes, Process}`, the process registered
locally under that atom on each member. The message crosses each link on its way once.
""".
-spec multi_send(Group :: term(), receivers(), Message :: term()) ->
    ok | {error, no_route | not_running}.
multi_send(Group, To, Message) ->
    ok = receivers(To, multi_send),
    try
        sderl_names:is_member(Group)
    of
        %% As it would be for others: by a forwarding process of this node.
        true -> sderl_route_send:node(node(), {group, Group, To}, self(), Message, [noconnect]);
        false ->
            sderl_route_send:group(Group, To, self(), Message, sderl_route_send:hash(Group),
                                   [noconnect])
    catch
        error:badarg -> {error, not_running}
    end.

-doc """
As `multi_send/3`, to several groups, or to `all`: the own groups and those that routes lead to. The
message crosses each link once, and is copied where the ways to the groups part. A node in two of
the groups gets it once for each. Groups that no route leads to are reported: `reports/1`.
""".
-spec fan_out([Group :: term()] | all, receivers(), Message :: term()) -> ok | {error, not_running}.
fan_out(all, To, Message) ->
    try sderl_dir:named_groups() ++ [G || {G, _} <- groups()] of
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
fan_out(Other, _, _) -> misuse(?MODULE, {fan_out, 3}, 1, Other, "a list of groups, or all").

receivers({names, _}, _) -> ok;
receivers({nodes, Process}, _) when is_atom(Process) -> ok;
receivers(Other, Function) ->
    misuse(?MODULE, {Function, 3}, 2, Other, "{names, Pattern} or {nodes, Atom}").

-doc """
Monitors the process that has a name now.

The caller gets one `{'DOWN', Ref, process, {Group, Name}, Reason}`. A process that takes the name
later is not monitored. `Reason` is the process's exit reason, or:

| `Reason` | meaning |
|---|---|
| `noproc` | no process has the name |
| `noconnection` | its node was lost: for 2 s none of its neighbours had a link to it, or it was restarted |
| `lost_route` | for 10 s no message came from its node, or no way to the group is known: the process may be alive or dead |
| `not_running` | the application does not run on this node |

One lease covers all processes that a node monitors on another one; it is renewed every 2 s over the
route. No link is opened. When the monitoring node is gone, the other node forgets the lease after
30 s.
""".
-spec monitor({Group :: term(), Name :: term()}) -> reference().
monitor({Group, Name}) ->
    try sderl_monitor:monitor(Group, Name)
    catch
        error:badarg ->
            Ref = make_ref(),
            self() ! {'DOWN', Ref, process, {Group, Name}, not_running},
            Ref
    end;
monitor(Other) -> misuse(?MODULE, {monitor, 1}, 1, Other, "{Group, Name}").

-doc "Ends a monitor of the calling process: `demonitor/2` without options.".
-spec demonitor(reference()) -> true.
demonitor(Ref) when is_reference(Ref) ->
    _ = demonitor(Ref, []),
    true;
demonitor(Other) -> misuse(?MODULE, {demonitor, 1}, 1, Other, "a reference").

-doc """
Ends a monitor of the calling process. Its message may have come already: `flush` takes that out of
the queue, `info` gives false if the monitor was over. As `erlang:demonitor/2`.
""".
-spec demonitor(reference(), [flush | info]) -> boolean().
demonitor(Ref, Options) when is_reference(Ref), is_list(Options) ->
    _ = is_options(Options)
        orelse misuse(?MODULE, {demonitor, 2}, 2, Options, "a list of flush and info"),
    Had = try sderl_monitor:demonitor(Ref)
          catch error:badarg -> false
          end,
    Flushed = lists:member(flush, Options) andalso
        receive {'DOWN', Ref, process, _, _} -> true
        after 0 -> false
        end,
    case lists:member(info, Options) of
        false -> true;
        %% With flush: whether there was no message to remove.
        true -> Had andalso not Flushed
    end;
demonitor(Ref, Options) when is_reference(Ref) ->
    misuse(?MODULE, {demonitor, 2}, 2, Options, "a list of flush and info");
demonitor(Other, _) -> misuse(?MODULE, {demonitor, 2}, 1, Other, "a reference").

is_options([]) -> true;
is_options([Option | Options]) -> lists:member(Option, [flush, info]) andalso is_options(Options);
is_options(_) -> false.

-doc "Via callback: `s_group:register_name/2`. A name is registered in a group of this node.".
-spec register_name({Group :: term(), Name :: term()}, pid()) -> yes | no.
register_name({Group, Name}, Pid) ->
    case sderl_register:register(Group, Name, Pid, []) of
        yes -> yes;
        {no, no_majority} -> sderl_via:no_majority(Group, Name);
        {no, _} -> no
    end;
register_name(Other, _) -> misuse(?MODULE, {register_name, 2}, 1, Other, "{Group, Name}").

-doc "Via callback: `s_group:unregister_name/1`.".
-spec unregister_name({Group :: term(), Name :: term()}) -> ok.
unregister_name({Group, Name}) ->
    _ = sderl_register:unregister(Group, Name),
    ok;
unregister_name(Other) -> misuse(?MODULE, {unregister_name, 1}, 1, Other, "{Group, Name}").

-doc """
Via callback: the process in an own group; for a name in another group a *stand-in* on this node,
`undefined` if the name is not there, or is not found within 5 s (1 s without a way).

A stand-in is a local process. It passes on its messages in order, and calls through it are
answered; each message arrives once, also when gateways die meanwhile. The stand-in ends when the
other process ends, with the same exit reason, or with one of the reasons of `monitor/1`. So a
monitor of it, a link to it and the monitor of a call work as with the process itself. A node has
one stand-in for each process. A stand-in that no process monitors, is linked to, or has used for 10
minutes is no longer given out, and ends after as long again: keep names rather than pids.

A `gen_server:call/3` by name asks for the name first, so it takes two round trips, where `call/3`
takes one. Messages that the caller sent to the name before arrive before the call.
""".
-spec whereis_name({Group :: term(), Name :: term()}) -> pid() | undefined.
whereis_name({Group, Name}) ->
    try sderl_names:whereis(Group, Name) of
        undefined ->
            case sderl_names:is_member(Group) of
                true -> undefined;
                false -> stand_in(sderl_route_call:call(Group, {whois, Name}, none, ?FIND_MS))
            end;
        Pid -> Pid
    catch
        error:badarg -> undefined
    end;
whereis_name(Other) -> misuse(?MODULE, {whereis_name, 1}, 1, Other, "{Group, Name}").

stand_in({ok, Pid}) when is_pid(Pid), node(Pid) =:= node() -> Pid;
stand_in({ok, Pid}) when is_pid(Pid) -> sderl_stand_in:find(Pid);
stand_in(_) -> undefined.

-doc """
The groups that routes lead to from here, other than the own ones, with their members as gateways
tell them.
""".
-spec groups() -> [{Group :: term(), [node()]}].
groups() ->
    try lists:sort(sderl_router:memberships())
    catch error:badarg -> []
    end.

-doc """
Routes and counts of this node.

| key | |
|---|---|
| `routes` | `{Group, Gateways, First}`: how many gateways are crossed, and which mates may be the first |
| `gateways` | the advertisement of each gateway: its groups, and the gateways next to it |
| `silent` | gateways next to this node that give no sign |
| `delivered`, `forwarded`, `failed` | messages that this node handled for others; one that the last gateway sent straight to its receiver counts as forwarded there, and not as delivered here |
| `undelivered` | messages of this node that failed, `{To, Reason, Messages}` |
""".
-spec info() -> map() | {error, not_running}.
info() ->
    try
        #{gateways := Gateways, silent := Silent} = sderl_router:info(),
        (sderl_route_report:info())#{
            routes => lists:sort(sderl_router:ways()), silent => Silent,
            gateways => [#{node => N, groups => lists:sort([G || {G, _, _} <- Gs]), next_to => L}
                         || {N, _, Gs, L} <- Gateways]
        }
    catch
        error:badarg -> {error, not_running};
        exit:_ -> {error, not_running}
    end.

-doc """
With `true` the calling process is sent a report when its messages could not be delivered:
`{sderl_undelivered, To, Reason, Messages}`, where `Messages` is how many.

| `Reason` | |
|---|---|
| `no_name` | the group has no such name |
| `no_route` | no gateway leads to the group |
| `unreachable` | the way ends before the receiver's node |
| `busy` | a link or a gateway on the way is full |
| `hop_limit` | the message crossed too many gateways |

In either case the event `undelivered` reports such messages, and `info/0` counts them.
""".
-spec reports(boolean()) -> ok | {error, not_running}.
reports(On) when is_boolean(On) ->
    try sderl_route_report:subscribe(On)
    catch exit:_ -> {error, not_running}
    end;
reports(Other) -> misuse(?MODULE, {reports, 1}, 1, Other, "true or false").
