%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_routers).
-moduledoc """
A process on each client node that knows the node's logged-in clients. (With the function `send/3`
it stands for the published `routers_db`.)

It monitors the clients of its node, and logs out one that dies without having logged out. So no
process on another node monitors a client, which would need a link.
""".

-behaviour(gen_server).

-export([start_link/1, send/3, enrol/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(r, {
    conf :: sderl_im_layout:conf(),
    clients = #{} :: #{reference() => {Client :: term(), pid()}},
    %% Logouts that have no answer yet, and how often they were sent.
    logouts = #{} :: #{reference() => {sderl_im_router:request(), Tries :: pos_integer()}}
}).

-doc "Starts it on this node.".
-spec start_link(sderl_im_layout:conf()) -> gen_server:start_ret().
start_link(Conf) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Conf, []).

-doc """
Sends a request to a router, which depends on the request and changes with each try. No link is made
for it: a router that cannot be reached now does not get it.
""".
-spec send(sderl_im_layout:conf(), sderl_im_router:request(), Try :: pos_integer()) -> ok.
send(#{routers := Routers}, Request, Try) ->
    Node = map_get(1 + (erlang:phash2(Request) + Try) rem map_size(Routers), Routers),
    _ = erlang:send({sderl_im_router, Node}, Request, [noconnect]),
    ok.

-doc "The calling process is this client, which has logged in.".
-spec enrol(Client :: term()) -> ok.
enrol(Client) -> gen_server:cast(?MODULE, {enrol, Client, self()}).

-doc false.
-spec init(sderl_im_layout:conf()) -> {ok, #r{}}.
init(Conf) -> {ok, #r{conf = Conf}}.

-doc false.
-spec handle_call(clients, gen_server:from(), #r{}) -> {reply, non_neg_integer(), #r{}}.
handle_call(clients, _, #r{clients = Clients, logouts = Logouts} = R) ->
    {reply, map_size(Clients) + map_size(Logouts), R}.

-doc false.
-spec handle_cast({enrol, term(), pid()}, #r{}) -> {noreply, #r{}}.
handle_cast({enrol, Client, Pid}, #r{clients = Clients} = R) ->
    {noreply, R#r{clients = Clients#{monitor(process, Pid) => {Client, Pid}}}}.

-doc false.
-spec handle_info(term(), #r{}) -> {noreply, #r{}}.
handle_info({'DOWN', Ref, process, _, Reason}, #r{clients = Clients} = R0) ->
    case maps:take(Ref, Clients) of
        %% A client ends normally after it has logged out.
        {_, Rest} when Reason =:= normal -> {noreply, R0#r{clients = Rest}};
        {{Client, Pid}, Rest} ->
            {noreply, logout(Ref, {logout, Client, Pid, Ref, self()}, 1, R0#r{clients = Rest})};
        error -> {noreply, R0}
    end;
handle_info({logout, Ref}, #r{logouts = Logouts} = R) ->
    case Logouts of
        #{Ref := {Request, Tries}} -> {noreply, logout(Ref, Request, Tries + 1, R)};
        #{} -> {noreply, R}
    end;
handle_info({reply, Ref, _}, #r{logouts = Logouts} = R) ->
    {noreply, R#r{logouts = maps:remove(Ref, Logouts)}};
handle_info(_, R) ->
    {noreply, R}.

logout(Ref, Request, Try, #r{conf = Conf, logouts = Logouts} = R) ->
    case sderl_im_net:backoff(Conf, Try) of
        over ->
            R#r{logouts = maps:remove(Ref, Logouts)};
        Ms ->
            ok = send(Conf, Request, Try),
            _ = erlang:send_after(Ms, self(), {logout, Ref}),
            R#r{logouts = Logouts#{Ref => {Request, Try}}}
    end.
