%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_sup).
-moduledoc """
The supervisors of a router's and of a server's node.

```
router I:  sderl_im_top - sderl_im_routing - router I

server K:  sderl_im_top - sderl_im_monitors      client monitors of K
                        - sderl_im_sessions      chat sessions on K
                        - sderl_im_serving       server K
                                                 clients K, chats K: main
                                                 clients, chats of the server before: replica
```

Client monitors and chat sessions are not below the supervisor of the databases: when that one is
killed, its databases go with it and come back from their other copies, and conversations go on.
Their supervisors restart neither of them (`temporary`): a new one needs data from a database, so
the database starts it, or tells the clients concerned.

A supervisor that restarts more than `intensity` children in a second gives up, and the one above it
starts it anew. Here it is 1,000: kills are what is measured.
""".

-behaviour(supervisor).

-export([start/2, stop/0, start_link/2, init/1, children/1, start_monitor/1, start_session/1]).
-export_type([part/0]).

-doc "Supervisors below the one at the top.".
-type part() :: routing | monitors | sessions | serving.

-define(STOP_MS, 20_000).

-doc """
Starts a router or a server on this node, from whatever process; in a release it is the
application's callback that starts the supervisor at the top. `{error, {already_started, _}}` where
one runs.
""".
-spec start(sderl_im_layout:conf(), {router | server, pos_integer()}) -> ok | {error, term()}.
start(Conf, Role) ->
    case supervisor:start_link({local, sderl_im_top}, ?MODULE, {top, Conf, Role}) of
        {ok, Pid} ->
            true = unlink(Pid),
            ok;
        {error, Reason} ->
            {error, Reason}
    end.

-doc "Stops what runs on this node; returns when all of it is gone.".
-spec stop() -> ok.
stop() ->
    try
        gen_server:stop(sderl_im_top, shutdown, ?STOP_MS)
    catch
        exit:_ -> ok
    end.

-doc false.
-spec start_link(part(), term()) -> supervisor:startlink_ret().
start_link(Part, Arg) -> supervisor:start_link({local, local(Part)}, ?MODULE, {Part, Arg}).

local(routing) -> sderl_im_routing;
local(monitors) -> sderl_im_monitors;
local(sessions) -> sderl_im_sessions;
local(serving) -> sderl_im_serving.

-doc "The processes below a supervisor of this node; none when it is not there.".
-spec children(part()) -> [pid()].
children(Part) ->
    try supervisor:which_children(local(Part)) of
        Children -> [Pid || {_, Pid, _, _} <- Children, is_pid(Pid)]
    catch
        exit:_ -> []
    end.

-doc "Starts a client monitor on this node.".
-spec start_monitor(sderl_im_monitor:job()) -> {ok, pid()} | {error, term()}.
start_monitor(Job) -> start_child(sderl_im_monitors, Job).

-doc "Starts a chat session on this node.".
-spec start_session(sderl_im_session:job()) -> {ok, pid()} | {error, term()}.
start_session(Job) -> start_child(sderl_im_sessions, Job).

%% It may have been killed, and be there again in a moment.
start_child(Supervisor, Job) ->
    try supervisor:start_child(Supervisor, [Job]) of
        {ok, Pid} when is_pid(Pid) -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    catch
        exit:Reason -> {error, Reason}
    end.

-doc false.
-spec init(term()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({top, Conf, {router, I}}) ->
    {ok, {flags(one_for_one), [part(routing, {Conf, I})]}};
init({top, Conf, {server, K}}) ->
    {ok,
     {flags(one_for_one), [part(monitors, Conf), part(sessions, Conf), part(serving, {Conf, K})]}};
init({routing, {Conf, I}}) ->
    {ok, {flags(one_for_one),
          [worker({router, I}, {sderl_im_router, start_link, [Conf, I]}, permanent)]}};
init({monitors, Conf}) ->
    {ok, {flags(simple_one_for_one),
          [worker(monitor, {sderl_im_monitor, start_link, [Conf]}, temporary)]}};
init({sessions, Conf}) ->
    {ok, {flags(simple_one_for_one),
          [worker(session, {sderl_im_session, start_link, [Conf]}, temporary)]}};
init({serving, {Conf, K}}) ->
    {ok, {
        flags(one_for_one),
        [worker(Role, {sderl_im_db, start_link, [Conf, Role]}, permanent)
         || Role <- sderl_im_layout:databases({Conf, K})] ++
        [worker({server, K}, {sderl_im_server, start_link, [Conf, K]}, permanent)]
    }}.

flags(Strategy) -> #{strategy => Strategy, intensity => 1000, period => 1}.

part(Part, Arg) -> #{id => Part, start => {?MODULE, start_link, [Part, Arg]}, type => supervisor}.

worker(Id, Start, Restart) -> #{id => Id, start => Start, restart => Restart}.
