%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_netns).
-moduledoc """
Network namespaces as hosts: each with an address of its own, all at one switch, and every pair
can be cut and joined again while nodes run. Linux, as root, with the program `ip`.

```erlang
{ok, Net} = sderl_fleet_netns:start(2),
[A, B] = sderl_fleet_netns:hosts(Net),             %% [#{host => "10.99.0.1", wrap => [...]}, ...]
Families = [A#{name => a, count => 1}, B#{name => b, count => 1}],
{ok, Fleet} = sderl_fleet:start(#{families => Families}),
[NodeA, NodeB] = sderl_fleet:nodes(Fleet),
ok = sderl_fleet_netns:cut(Net, [{NodeA, NodeB}]),
ok = sderl_fleet_netns:heal(Net, [{NodeA, NodeB}]),
ok = sderl_fleet:stop(Fleet),
ok = sderl_fleet_netns:stop(Net).
```

A cut is silent, as behind a firewall that drops packets: what is sent is lost, and connections stay
open until one end times out. After a heal a connection goes on with TCP's next retransmission. Each
waits twice as long as the one before, so this may take about as long as the cut took.

The namespaces go with the process that started them, and with its virtual machine, also by
`kill -9`.
""".

%% A shell process, our port, makes the namespaces and deletes them when its input ends, whatever
%% ended us; the same scheme as sderl_fleet_reaper's. All is inside of namespaces, the switch too,
%% so that deleting those leaves nothing: nobody's addresses, routes or interfaces are touched.
%%
%% A pair is cut by a blackhole route to the other's address at both ends. It is more specific than
%% the route of the subnet, and also holds for connections that are open.

-behaviour(gen_server).

-export([start/1, hosts/1, cut/2, heal/2, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([host/0]).

-doc "The keys that a family of a `m:sderl_fleet` plan needs so that its nodes run there.".
-type host() :: #{host := string(), wrap := [string()]}.

-define(TIMEOUT, 30_000).
-define(MOST, 250).

-record(state, {
    owner :: reference(), port :: port(), hosts :: [{Address :: string(), Namespace :: string()}]
}).

-doc """
Makes so many hosts, at most 250. They go when the caller ends. `{error, {no_namespaces, Why}}`,
with the system's own words, where this is not allowed or not there.
""".
-spec start(Count :: pos_integer()) ->
    {ok, Net :: pid()} | {error, {no_namespaces, unicode:chardata()}}.
start(Count) when Count >= 1, Count =< ?MOST ->
    case gen_server:start(?MODULE, {self(), Count}, [{timeout, infinity}]) of
        {ok, Net} -> {ok, Net};
        {error, Why} -> {error, {no_namespaces, Why}}
    end.

-doc "The hosts, in the order of their addresses.".
-spec hosts(pid()) -> [host()].
hosts(Net) ->
    [#{host => Address, wrap => ["ip", "netns", "exec", Name]}
     || {Address, Name} <- gen_server:call(Net, hosts, ?TIMEOUT)].

-doc """
From now on nothing gets from one of a pair to the other, in either direction. They are named by
their nodes.
""".
-spec cut(pid(), [{node(), node()}]) -> ok | {error, unicode:chardata()}.
cut(Net, Pairs) ->
    gen_server:call(Net, {routes, "replace", Pairs}, ?TIMEOUT).

-doc "Undoes `cut/2`. The pairs must have been cut.".
-spec heal(pid(), [{node(), node()}]) -> ok | {error, unicode:chardata()}.
heal(Net, Pairs) ->
    gen_server:call(Net, {routes, "del", Pairs}, ?TIMEOUT).

-doc "Deletes the namespaces; what still runs in them has no name and no links then.".
-spec stop(pid()) -> ok.
stop(Net) ->
    Ref = monitor(process, Net),
    try
        gen_server:stop(Net, normal, infinity)
    catch
        exit:_ -> ok
    end,
    receive
        {'DOWN', Ref, process, _, _} -> ok
    end.

-doc false.
-spec init({pid(), pos_integer()}) -> {ok, #state{}} | {error, unicode:chardata()}.
init({Owner, Count}) ->
    process_flag(trap_exit, true),
    Prefix = "sderl-" ++ sderl_fleet_home:random(6, lower) ++ "-",
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", script(), "sderl_fleet_netns", Prefix]}, {line, 4096}, binary, exit_status,
        hide
    ]),
    Hosts = [{"10.99.0." ++ integer_to_list(I), Prefix ++ integer_to_list(I)}
             || I <- lists:seq(1, Count)],
    State = #state{owner = monitor(process, Owner), port = Port, hosts = Hosts},
    case ip(switch(Prefix ++ "hub") ++
            lists:append([host(Prefix ++ "hub", Host) || Host <- lists:enumerate(Hosts)]), State) of
        ok ->
            {ok, State};
        {error, Why} ->
            close(State),
            {error, Why}
    end.

switch(Hub) ->
    [["netns add ", Hub], ["-n ", Hub, " link add br0 type bridge"],
     ["-n ", Hub, " link set br0 up"]].

host(Hub, {I, {Address, Name}}) ->
    Plug = ["p", integer_to_list(I)],
    [
        ["netns add ", Name],
        ["link add eth0 netns ", Name, " type veth peer name ", Plug, " netns ", Hub],
        ["-n ", Hub, " link set ", Plug, " master br0 up"],
        ["-n ", Name, " addr add ", Address, "/24 dev eth0"],
        ["-n ", Name, " link set eth0 up"],
        ["-n ", Name, " link set lo up"]
    ].

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(hosts, _From, #state{hosts = Hosts} = State) ->
    {reply, Hosts, State};
handle_call({routes, What, Pairs}, _From, #state{hosts = Hosts} = State) ->
    Ends = [{address(A), address(B)} || {A, B} <- Pairs ++ [{B, A} || {A, B} <- Pairs]],
    case [Address || {Address, _} <- Ends, not lists:keymember(Address, 1, Hosts)] of
        [] ->
            Commands = [
                ["-n ", proplists:get_value(From, Hosts), " route ", What, " blackhole ", To, "/32"]
             || {From, To} <- Ends
            ],
            {reply, ip(Commands, State), State};
        [Address | _] ->
            {reply, {error, ["no host of these namespaces has the address ", Address]}, State}
    end.

address(Node) ->
    [_, Address] = string:split(atom_to_list(Node), "@"),
    Address.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) ->
    {stop, normal, State};
handle_info({Port, {exit_status, Status}}, #state{port = Port} = State) ->
    {stop, {shutdown, {shell, Status}}, State};
handle_info(_, State) ->
    {noreply, State}.

-doc false.
-spec terminate(term(), #state{}) -> ok.
terminate(_, State) -> close(State).

%% Commands of `ip`, one after the other; the first that fails is the last.
ip([], _) ->
    ok;
ip([Command | Commands], #state{port = Port} = State) ->
    try port_command(Port, [Command, "\n"]) of
        true ->
            case answer(Port) of
                ~"ok" -> ip(Commands, State);
                Words -> {error, ["ip ", Command, ": ", Words]}
            end
    catch
        error:badarg -> {error, "the shell that runs ip has ended"}
    end.

answer(Port) ->
    receive
        {Port, {data, {_, Line}}} -> Line;
        {Port, {exit_status, Status}} -> io_lib:format("the shell ended with status ~w", [Status])
    after ?TIMEOUT -> "no answer"
    end.

%% "-" is no command of ip: it ends the script, which then tells its exit status.
close(#state{port = Port}) ->
    try port_command(Port, "-\n") of
        true ->
            receive
                {Port, {exit_status, _}} -> ok;
                {'EXIT', Port, _} -> ok
            after ?TIMEOUT -> ok
            end
    catch
        error:badarg -> ok
    end.

%% POSIX shell. A namespace that is in use loses its name at once and goes with the last process in
%% it.
script() ->
    """
    prefix=$1 newline='
    '
    trap '' HUP INT QUIT TERM PIPE TSTP
    while read -r line && [ "$line" != - ]; do
        if words=$(ip $line 2>&1); then
            echo ok
        else
            words=${words:-it failed}
            echo "${words%%"$newline"*}"
        fi
    done
    for path in /run/netns/"$prefix"* /var/run/netns/"$prefix"*; do
        [ ! -e "$path" ] || ip netns del "${path##*/}" 2>/dev/null
    done
    """.
