%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_im_bench).
-moduledoc """
`im_bench`: the messenger of `m:sderl_im` in one virtual machine, with one router and one server.
Pairs of clients log in, talk without a pause, and log out, one stage each. 16, 32 or 64 clients for
each core, and 32 messages a pair. (The published one has 5,000, 10,000 or 15,000 clients on other
nodes, which pause.)

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, alone/0, uses/0, stages/1, prepare/1, run/2,
         finish/1]).

%% No request is repeated: slow answers are waited for.
-define(RETRY_MS, 600_000).

-doc false.
-spec summary() -> string().
summary() -> "the messenger: logins, conversations, logouts".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{clients => Cores * maps:get(Size, #{short => 16, intermediate => 32, long => 64}),
      messages => 32}.

%% An operation is a message of a conversation, with its part of the logins and logouts.
-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()} | none.
operations(#{clients := Clients}) when Clients < 2 -> none;
operations(#{clients := Clients, messages := Messages}) -> {Clients div 2 * Messages, "message"}.

-doc false.
-spec alone() -> string().
alone() -> "on nodes the messenger is bin/sderl bench im".

-doc false.
-spec uses() -> [module()].
uses() ->
    [sderl_im_alive, sderl_im_chats, sderl_im_client, sderl_im_clients, sderl_im_db,
     sderl_im_layout, sderl_im_monitor, sderl_im_net, sderl_im_router, sderl_im_routers,
     sderl_im_server, sderl_im_session, sderl_im_sup, sderl_im_tally, sderl_bench_histogram,
     sderl_clock].

-doc false.
-spec stages(sderl_bench_vm_program:settings()) -> [atom(), ...].
stages(_) -> [login, talk, logout].

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(#{clients := Count} = Settings) ->
    Conf = sderl_im_layout:new(#{mode => rd, servers => [node()], routers => [node()],
                                 clients => [node()], retry_ms => ?RETRY_MS}),
    Main = self(),
    {Service, Monitor} = spawn_monitor(fun() ->
        _ = process_flag(trap_exit, true),
        Parts = [part(Part) || Part <- [{routing, {Conf, 1}}, {monitors, Conf},
                                              {sessions, Conf}, {serving, {Conf, 1}}]],
        {ok, Routers} = sderl_im_routers:start_link(Conf),
        Main ! {self(), ready},
        receive stop -> ok end,
        lists:foreach(fun(Pid) -> gen_server:stop(Pid, shutdown, infinity) end,
                      [Routers | lists:reverse(Parts)])
    end),
    receive
        {Service, ready} -> ok;
        {'DOWN', Monitor, process, Service, Reason} -> exit(Reason)
    end,
    Tally = sderl_im_tally:new(1, 1),
    Clients = [begin
        {ok, Client} = sderl_im_client:start_link(Conf, {client, I}, Tally),
        {{client, I}, Client}
    end || I <- lists:seq(1, Count)],
    {Settings, {Service, Monitor}, Tally, Clients}.

part({Part, Arg}) ->
    {ok, Pid} = sderl_im_sup:start_link(Part, Arg),
    Pid.

-doc false.
-spec run(atom(), term()) -> term().
run(login, {_, _, _, Clients} = State) ->
    ok = each(fun({_, Client}) -> ok = sderl_im_client:login(Client) end, Clients),
    State;
run(talk, {#{messages := Messages}, _, _, Clients} = State) ->
    ok = each(fun(Pair) -> talk(Pair, Messages) end, pairs(Clients)),
    State;
run(logout, {_, _, _, Clients} = State) ->
    ok = each(fun({_, Client}) -> ok = sderl_im_client:logout(Client) end, Clients),
    State.

%% Calls `Fun` for all elements at the same time.
each(Fun, List) ->
    Main = self(),
    Pids = [spawn_link(fun() -> Fun(Element), Main ! {self(), done} end) || Element <- List],
    lists:foreach(fun(Pid) -> receive {Pid, done} -> ok end end, Pids).

pairs([A, B | Clients]) -> [{A, B} | pairs(Clients)];
pairs(_) -> [].

talk({{_, A}, {Name, B}}, Messages) ->
    {ok, Session, _} = sderl_im_client:chat(A, Name),
    lists:foreach(fun(I) ->
        {ok, _} = sderl_im_client:message(case I rem 2 of 1 -> A; 0 -> B end, Session, ~"hello")
    end, lists:seq(1, Messages)),
    [{open, 0}, {open, 0}] = [sderl_im_client:settle(Client, Session) || Client <- [A, B]],
    ok = sderl_im_client:finish(A, Session).

-doc false.
-spec finish(term()) -> {Sent :: non_neg_integer(), Delivered :: non_neg_integer()}.
finish({_, {Service, Monitor}, Tally, Clients}) ->
    lists:foreach(fun({_, Client}) -> gen_server:stop(Client, normal, infinity) end, Clients),
    Service ! stop,
    receive {'DOWN', Monitor, process, Service, _} -> ok end,
    #{sent_all := Sent, delivered_all := Delivered} = sderl_im_tally:read(Tally),
    {Sent, Delivered}.
