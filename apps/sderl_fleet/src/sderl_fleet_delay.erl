%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_delay).
-moduledoc """
Distribution links with a delay: what a node sends to another host arrives there later by so much.

```erlang
{ok, Net} = sderl_fleet_netns:start(2),
[#{host := A}, #{host := B}] = Hosts = sderl_fleet_netns:hosts(Net),
Delays = [{A, B, 10}],                                  %% ms for each way, so 20 for a round trip
Families = [sderl_fleet_delay:family(H#{name => N, count => 2}, Delays)
            || {N, H} <- lists:zip([a, b], Hosts)],
{ok, Fleet} = sderl_fleet:start(#{families => Families}).
```

For machines whose kernel cannot delay packets. Hosts are IPv4 addresses: those of namespaces, as
here, or on Linux any of the loopback interface (127.0.0.2 and so on), for which root is not needed.
A connection is delayed in both directions, keeps its order and loses nothing; hosts are told apart
by the host part of node names. Everything else, such as epmd's answers, is not delayed.

The delay is what is asked for or more: a timer has a resolution of a millisecond, and a busy
machine adds to it. Every message of such a link also takes two more hops over the loopback
interface, so throughput over it is not that of a plain one.
""".

%% The node that opens a link asks this module, in the place of erl_epmd, where the other one
%% listens. The answer is a port of its own, in its own virtual machine, where a process waits for
%% this one connection and makes the real one. So there is nothing to start, stop or clean up:
%% relays live as long as their links, and end with the node.

-export([family/2]).
%% In the place of erl_epmd.
-export([start_link/0, register_node/2, register_node/3, listen_port_please/2, port_please/2,
         port_please/3, names/1]).
-export([address_please/3]).

-export_type([delay/0]).

%% They end by an exit, which ends the linked process of the other direction.
-dialyzer({nowarn_function, [relay/4, pump/3]}).

-doc "Two hosts, in either order, and the milliseconds for one way between them.".
-type delay() :: {HostA :: string(), HostB :: string(), Ms :: number()}.

-define(CONNECT_MS, 10_000).
%% Bytes that may wait: beyond them the sender waits, as behind a reader that does not keep up.
-define(MOST_WAITING, 16_000_000).

-doc """
A family of a fleet's plan whose nodes' links have these delays. Links that only others open are
delayed by those.
""".
-spec family(map(), [delay()]) -> map().
family(Family, Delays) ->
    Family#{
        args => ["-epmd_module", atom_to_list(?MODULE) | maps:get(args, Family, [])],
        env => [{kernel, ?MODULE, Delays} | maps:get(env, Family, [])]
    }.

-doc false.
-spec start_link() -> gen_server:start_ret().
start_link() -> erl_epmd:start_link().

-doc false.
-spec register_node(string(), inet:port_number()) -> term().
register_node(Name, Port) -> erl_epmd:register_node(Name, Port).

-doc false.
-spec register_node(string(), inet:port_number(), atom()) -> term().
register_node(Name, Port, Family) -> erl_epmd:register_node(Name, Port, Family).

-doc false.
-spec listen_port_please(string(), term()) -> term().
listen_port_please(Name, Host) -> erl_epmd:listen_port_please(Name, Host).

-doc false.
-spec port_please(string(), term()) -> term().
port_please(Name, Host) -> erl_epmd:port_please(Name, Host).

-doc false.
-spec port_please(string(), term(), timeout()) -> term().
port_please(Name, Host, Timeout) -> erl_epmd:port_please(Name, Host, Timeout).

-doc false.
-spec names(term()) -> term().
names(Host) -> erl_epmd:names(Host).

-doc false.
-spec address_please(string(), string(), inet | inet6) -> term().
address_please(Name, Host, Family) ->
    {ok, Delays} = application:get_env(kernel, ?MODULE),
    [_, Own] = string:split(atom_to_list(node()), "@"),
    case [Ms
          || {A, B, Ms} <- Delays, {A, B} =:= {Own, Host} orelse {B, A} =:= {Own, Host}, Ms > 0] of
        [] -> erl_epmd:address_please(Name, Host, Family);
        [Ms | _] -> relayed(Name, Host, Own, Ms)
    end.

relayed(Name, Host, Own, Ms) ->
    maybe
        {ok, Address} ?= inet:parse_ipv4strict_address(Host),
        {ok, Here} ?= inet:parse_ipv4strict_address(Own),
        {port, Port, Version} ?= erl_epmd:port_please(Name, Address),
        {ok, Listen} ?= gen_tcp:listen(0, [{ip, Here}, {backlog, 1} | options()]),
        {ok, Relay} = inet:port(Listen),
        %% Not linked to the caller, which ends when the link is made.
        Pid = spawn(fun() ->
            receive
                go -> relay(Listen, Address, Port, round(Ms * 1_000_000))
            after ?CONNECT_MS -> ok
            end
        end),
        ok = gen_tcp:controlling_process(Listen, Pid),
        Pid ! go,
        {ok, Here, Relay, Version}
    else
        noport -> {error, noport};
        Error -> Error
    end.

options() -> [binary, {active, false}, {nodelay, true}, {packet, raw}].

%% One process for each direction. They read and write the same two sockets, so the end of one
%% direction ends both, after the bytes under way have been delivered.
relay(Listen, Address, Port, Delay) ->
    maybe
        {ok, Near} ?= gen_tcp:accept(Listen, ?CONNECT_MS),
        ok = gen_tcp:close(Listen),
        {ok, Far} ?= gen_tcp:connect(Address, Port, options(), ?CONNECT_MS),
        Back = spawn_link(fun() -> receive go -> pump(Far, Near, Delay) end end),
        ok = gen_tcp:controlling_process(Far, Back),
        Back ! go,
        pump(Near, Far, Delay)
    end.

pump(In, Out, Delay) ->
    _ = inet:setopts(In, [{active, once}]),
    pump(In, Out, Delay, queue:new(), 0),
    _ = [gen_tcp:close(Socket) || Socket <- [In, Out]],
    exit(shutdown).

%% `Waiting`: the bytes in the queue. While there are too many nothing more is read.
pump(In, Out, Delay, Queue, Waiting) ->
    receive
        {tcp, In, Data} ->
            More = Waiting + byte_size(Data),
            More =< ?MOST_WAITING andalso inet:setopts(In, [{active, once}]),
            pump(In, Out, Delay, queue:in({now_ns() + Delay, Data}, Queue), More);
        {tcp_closed, In} -> flush(Out, Queue);
        {tcp_error, In, _} -> flush(Out, Queue)
    after due(Queue) ->
        {{value, {_, Data}}, Left} = queue:out(Queue),
        case gen_tcp:send(Out, Data) of
            ok ->
                Less = Waiting - byte_size(Data),
                Waiting > ?MOST_WAITING andalso Less =< ?MOST_WAITING
                    andalso inet:setopts(In, [{active, once}]),
                pump(In, Out, Delay, Left, Less);
            {error, _} -> ok
        end
    end.

flush(Out, Queue) ->
    case queue:out(Queue) of
        {empty, _} -> ok;
        {{value, {At, Data}}, Left} ->
            ok = timer:sleep(wait(At)),
            case gen_tcp:send(Out, Data) of
                ok -> flush(Out, Left);
                {error, _} -> ok
            end
    end.

due(Queue) ->
    case queue:peek(Queue) of
        empty -> infinity;
        {value, {At, _}} -> wait(At)
    end.

wait(At) -> max(0, (At - now_ns() + 999_999) div 1_000_000).

now_ns() -> erlang:monotonic_time(nanosecond).
