%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_deliver).
-moduledoc """
One attempt to deliver a change to a route, in a process of its own, so that nothing else waits for
a receiver.
""".

-export([start/3]).

%% Beyond the time limit of the route itself.
-define(SPARE_MS, 10_000).

-doc """
Starts an attempt. The caller gets `{sderl_alarms_delivered, Pid, ok | {error, Sentence}}`, or the
`'DOWN'` of the returned monitor.
""".
-spec start(sderl_alarms_routes:route(), sderl_alarms_outbox:item(), Attempt :: pos_integer()) ->
    {pid(), reference()}.
start(#{timeout_s := Seconds} = Route, Item, Attempt) ->
    Caller = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        _ = erlang:send_after(1000 * Seconds + ?SPARE_MS, Caller, {sderl_alarms_late, self()}),
        Caller ! {sderl_alarms_delivered, self(), tried(Route, Item, Attempt)}
    end),
    {Pid, Monitor}.

%% Without the stack, which may contain arguments, one of which is the secret.
tried(Route, Item, Attempt) ->
    try
        attempt(Route, Item, Attempt)
    catch
        Class:Reason when is_atom(Reason) ->
            {error, sderl_mon_text:text("the delivery failed: ~ts, ~ts", [Class, Reason])};
        Class:_ ->
            {error, sderl_mon_text:text("the delivery failed: ~ts", [Class])}
    end.

attempt(#{name := Name, target := #{webhook := _, uri := Uri, secret := Place},
          timeout_s := Seconds}, #{id := Id} = Item, Attempt) ->
    maybe
        {ok, Secret} ?= sderl_alarms_routes:read_secret(Place),
        Body = body(Name, Item),
        Headers = [{~"x-sderl-delivery", Id}, {~"x-sderl-attempt", integer_to_binary(Attempt)}
                   | signed(Secret, Body)],
        sderl_alarms_post:post(Uri, Headers, Body, 1000 * Seconds)
    end;
attempt(#{name := Name, target := #{program := Path, arguments := Arguments},
          timeout_s := Seconds}, Item, _) ->
    sderl_alarms_program:run(Path, Arguments, body(Name, Item), Seconds).

signed(none, _) -> [];
signed(Secret, Body) ->
    [{~"x-sderl-signature",
      sderl_alarms_post:signature(Secret, erlang:system_time(second), Body)}].

%% The JSON object that a route gets, on one line.
body(Route, #{id := Id, kind := Kind, t := T, alarm := Alarm}) ->
    iolist_to_binary(json:encode(#{
        id => Id, route => Route, event => Kind, t => T, monitor => atom_to_binary(node()),
        alarm => sderl_alarms_show:alarm(Alarm)
    })).
