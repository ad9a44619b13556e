%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_router).
-moduledoc """
A router: it takes the requests of clients to log in, to log out and for conversations, and passes
each on to the server that is responsible. The answer does not come back this way. It has no state
that a new one would miss: a client without an answer asks again, by another router.

Clients know it as `sderl_im_router` on its node. It monitors the process of routers on each client
node (`m:sderl_im_routers`). When that is down, for whatever reason, it tells the servers that the
node may be gone, and their client monitors ask the clients: this router alone may have lost its
link. Then it monitors anew, after 1 s, 2, 4 and 8, up to as many times as a client repeats a
request, and tells the servers each time when the process is not there.
""".

-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([request/0]).

-doc """
The answer, `{reply, Ref, Answer}`, goes to the client's pid; that to a logout goes to `Asks`.
""".
-type request() ::
    {login, Client :: term(), pid(), Ref :: term()}
    | {logout, Client :: term(), pid(), Ref :: term(), Asks :: pid()}
    | {chat, sderl_im_chats:session(), pid(), Ref :: term()}.

%% For each client node its monitor, or `away` until the next try, and the number of the try.
-record(r, {
    conf :: sderl_im_layout:conf(),
    nodes = #{} :: #{node() => {reference() | away, Try :: pos_integer()}}
}).

-doc "Starts it, under both names.".
-spec start_link(sderl_im_layout:conf(), I :: pos_integer()) -> gen_server:start_ret().
start_link(Conf, I) ->
    gen_server:start_link(sderl_im_net:via(Conf, {router, I}), ?MODULE, {Conf, I}, []).

-doc false.
-spec init(term()) -> {ok, #r{}}.
init({Conf, I}) ->
    true = register(?MODULE, self()),
    proc_lib:set_label({sderl_im, ready, {router, I}}),
    %% The router before may have been the only one that monitored a client node, or the node may
    %% have gone down since.
    {ok, lists:foldl(fun(Node, R) -> watch(Node, 1, R) end, #r{conf = Conf},
                     maps:values(map_get(clients, Conf)))}.

-doc false.
-spec handle_call(ping, gen_server:from(), State) -> {reply, pong, State}.
handle_call(ping, _, State) -> {reply, pong, State}.

-doc false.
-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #r{}) -> {noreply, #r{}}.
handle_info({login, Client, Pid, _} = Request, R) -> {noreply, pass(Client, Pid, Request, R)};
handle_info({logout, Client, Pid, _, _} = Request, R) -> {noreply, pass(Client, Pid, Request, R)};
handle_info({chat, Session, Pid, _} = Request, R) -> {noreply, pass(Session, Pid, Request, R)};
handle_info({'DOWN', Ref, process, {_, Node}, _}, #r{conf = Conf, nodes = Nodes} = R) ->
    case Nodes of
        #{Node := {Ref, Try}} ->
            _ = [sderl_im_net:send(Conf, {server, K}, {gone, Node})
                 || K <- sderl_im_layout:servers(Conf)],
            {noreply, away(Node, Try, R)};
        #{} ->
            {noreply, R}
    end;
handle_info({watch, Node}, #r{nodes = Nodes} = R) ->
    case Nodes of
        #{Node := {away, Try}} -> {noreply, watch(Node, Try + 1, R)};
        #{} -> {noreply, R}
    end;
handle_info(_, R) ->
    {noreply, R}.

%% A request that finds no server now is sent again.
pass(Key, Pid, Request, #r{conf = Conf} = R) ->
    _ = sderl_im_net:send(Conf, {server, sderl_im_layout:server(Conf, Key)}, Request),
    known(node(Pid), R).

%% A client that sends a request is alive, and so is its node.
known(Node, #r{nodes = Nodes} = R) ->
    case Nodes of
        #{Node := {_, 1}} -> R;
        #{Node := {Ref, _}} when is_reference(Ref) -> R#r{nodes = Nodes#{Node := {Ref, 1}}};
        #{} -> watch(Node, 1, R)
    end.

watch(Node, Try, #r{nodes = Nodes} = R) ->
    R#r{nodes = Nodes#{Node => {monitor(process, {sderl_im_routers, Node}), Try}}}.

away(Node, Try, #r{conf = Conf, nodes = Nodes} = R) ->
    case sderl_im_net:backoff(Conf, Try) of
        over ->
            R#r{nodes = maps:remove(Node, Nodes)};
        Ms ->
            _ = erlang:send_after(Ms, self(), {watch, Node}),
            R#r{nodes = Nodes#{Node := {away, Try}}}
    end.
