%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_gateway).
-moduledoc """
A gateway of Orbit, on the node of a submaster: it passes messages of its group's workers for
another group to a random gateway of that group, and messages of other gateways for its group to the
worker.

A message `{out, To, Message}` from a worker goes on as `{in, To, Message}`, and reaches the worker
as `Message`: three messages instead of one. As published, except that `To`, the number of the
worker, is in the message, where the published gateways hash again.
""".

-export([start/0, init/1]).
-export_type([conf/0]).

-doc """
`groups` has the number of each worker's group, `gateways` the gateways of each group, `workers`
those of the own group.
""".
-type conf() :: #{
    workers := #{pos_integer() => pid()},
    groups := tuple(),
    gateways := tuple()
}.

-doc """
Starts one, linked to the caller. It begins when it gets `{init, Conf}`; earlier messages wait.
""".
-spec start() -> pid().
start() -> spawn_link(?MODULE, init, [self()]).

-doc false.
-spec init(pid()) -> no_return().
init(Submaster) ->
    proc_lib:set_label({orbit, gateway, Submaster}),
    %% As published. It only passes messages on; the workers do the work.
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
