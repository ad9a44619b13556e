%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_gateway).
-moduledoc """
A gateway of Orbit, on the node of a submaster: what workers of its group have for those of another
it sends to a gateway of that group, any one, and what other gateways have for its group it gives to
the worker.

A message `{out, To, Message}` from a worker goes on as `{in, To, Message}`, and reaches the worker
as `Message`: three messages instead of one. As published, but that `To`, the number of the worker,
goes with it, where the published gateways hash again.
""".

-export([start/0, init/1]).
-export_type([conf/0]).

-doc """
`groups` says of each worker the number of its group, `gateways` has those of each group, `workers`
are the own group's.
""".
-type conf() :: #{
    workers := #{pos_integer() => pid()},
    groups := tuple(),
    gateways := tuple()
}.

-doc """
Starts one, linked to the caller. It works when it has got `{init, Conf}`; what comes before waits.
""".
-spec start() -> pid().
start() -> spawn_link(?MODULE, init, [self()]).

-doc false.
-spec init(pid()) -> no_return().
init(Submaster) ->
    proc_lib:set_label({orbit, gateway, Submaster}),
    %% As published. It only passes on; workers have the work.
    _ = process_flag(priority, high),
    receive
        {init, #{workers := Workers, groups := Groups, gateways := Gateways}} ->
            loop(Workers, Groups, Gateways)
    end.

loop(Workers, Groups, Gateways) ->
    receive
        {out, To, Message} ->
            Theirs = element(element(To, Groups), Gateways),
            element(rand:uniform(tuple_size(Theirs)), Theirs) ! {in, To, Message};
        {in, To, Message} ->
            map_get(To, Workers) ! Message
    end,
    loop(Workers, Groups, Gateways).
