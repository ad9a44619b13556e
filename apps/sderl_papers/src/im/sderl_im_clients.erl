%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_clients).
-moduledoc """
The client database: the clients that are logged in, with their processes and client monitors:
`{Client, ClientPid, MonitorPid}`.

A client monitor that died is replaced by a new one.
""".

-behaviour(sderl_im_db).

-export([find/2, add/2, remove/3, watched/1, lost/2, alive/0]).
-export_type([row/0]).

-doc "A client, its process, its monitor.".
-type row() :: {Client :: term(), pid(), pid()}.

%% How long a database may be missing.
-define(ASK_MS, 5000).
-define(ONE_MS, 1000).

-doc "Asks either copy, and main where that one does not have the client.".
-spec find(sderl_im_layout:conf(), Client :: term()) -> {ok, row()} | none | {error, term()}.
find(Conf, Client) ->
    Copy = case rand:uniform(2) of 1 -> main; 2 -> replica end,
    Role = {database, clients, sderl_im_layout:server(Conf, Client), Copy},
    case sderl_im_net:call(Conf, Role, {find, Client}, ?ONE_MS) of
        {ok, {ok, Row}} ->
            {ok, Row};
        %% That copy has no such client or no table, or is not there.
        _ ->
            case main(Conf, Client, {find, Client}, ?ASK_MS) of
                {ok, Found} -> Found;
                {error, Reason} -> {error, Reason}
            end
    end.

-doc "Adds a client, unless one of that name is logged in.".
-spec add(sderl_im_layout:conf(), row()) -> {ok, ok | {exists, row()}} | {error, term()}.
add(Conf, Row) -> main(Conf, element(1, Row), {add, Row}, ?ASK_MS).

-doc "Removes a client, if it has this process, and gives its row.".
-spec remove(sderl_im_layout:conf(), Client :: term(), pid()) ->
    {ok, {ok, row()} | none} | {error, term()}.
remove(Conf, Client, Pid) -> main(Conf, Client, {remove, Client, Pid}, ?ASK_MS).

main(Conf, Client, Request, Ms) ->
    sderl_im_net:ask(Conf, {database, clients, sderl_im_layout:server(Conf, Client), main}, Request,
                     Ms).

-doc false.
-spec watched(row()) -> pid().
watched({_, _, Monitor}) -> Monitor.

-doc "A new monitor, which asks the client for its conversations.".
-spec lost(row(), sderl_im_layout:conf()) -> {put, row()} | again.
lost({Client, ClientPid, _}, _) ->
    case sderl_im_sup:start_monitor({again, Client, ClientPid}) of
        {ok, Monitor} -> {put, {Client, ClientPid, Monitor}};
        {error, _} -> again
    end.

-doc "The rows that the client monitors of this server know.".
-spec alive() -> [row()].
alive() -> sderl_im_alive:rows(monitors).
