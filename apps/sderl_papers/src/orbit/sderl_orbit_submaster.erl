%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_submaster).
-moduledoc """
A submaster of Orbit, on the first node of an s_group: it starts the workers of its group, and
gateways on its node, and relays their messages to the master, which has no link to their nodes.

It is linked to all of them and to the master. When one of them dies, it tells the master which;
when the master ends it ends, and they with it.
""".

-export([start/3, init/2]).
-export_type([task/0]).

-doc "`places`: the workers' numbers and nodes.".
-type task() :: #{
    group := pos_integer(),
    places := [{pos_integer(), node()}],
    gateways := non_neg_integer()
}.

-doc """
Starts one on a node, linked to the caller, the master, which gets
`{team, Group, Workers, Gateways}`.
""".
-spec start(node(), Master :: pid(), task()) -> pid().
start(Node, Master, Task) -> spawn_link(Node, ?MODULE, init, [Master, Task]).

-doc false.
-spec init(pid(), task()) -> no_return().
init(Master, #{group := Group, places := Places, gateways := Count}) ->
    proc_lib:set_label({orbit, submaster, Group}),
    _ = process_flag(trap_exit, true),
    Gateways = [sderl_orbit_gateway:start() || _ <- lists:seq(1, Count)],
    Workers = #{Index => sderl_orbit_worker:start(Node, self(), Index) || {Index, Node} <- Places},
    Team0 = lists:foldl(
        fun(Pid, Team) -> sderl_orbit_team:add(Pid, {gateway, Group, node()}, Team) end,
        sderl_orbit_team:new(), Gateways
    ),
    Team = lists:foldl(
        fun({Index, Node}, T) ->
            sderl_orbit_team:add(map_get(Index, Workers), {worker, Index, Node}, T)
        end, Team0, Places
    ),
    Master ! {team, Group, Workers, Gateways},
    loop(Master, Workers, Gateways, Team).

loop(Master, Workers, Gateways, Team) ->
    receive
        {'EXIT', Pid, Reason} ->
            case sderl_orbit_team:died(Pid, Reason, Team) of
                none -> ok;
                parent ->
                    ok = sderl_orbit_team:stop(Team),
                    exit(shutdown);
                Death -> Master ! Death
            end;
        {to, Index, Message} ->
            map_get(Index, Workers) ! Message;
        {gateways, Conf} ->
            lists:foreach(fun(Gateway) -> Gateway ! {init, Conf#{workers => Workers}} end,
                          Gateways);
        FromWorker ->
            Master ! FromWorker
    end,
    loop(Master, Workers, Gateways, Team).
