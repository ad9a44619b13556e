%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_alive).
-moduledoc """
Asks the processes on a server for their own rows when both copies of a database are lost.
""".

-export([rows/1]).

%% A process that is waiting for the database cannot answer before it has stopped waiting.
-define(ANSWER_MS, 500).

-doc """
Asks all processes below that supervisor of this node for their rows; those that have none, or do
not answer in time, are left out.
""".
-spec rows(monitors | sessions) -> [sderl_im_db:row()].
rows(Part) ->
    Requests = lists:foldl(
        fun(Pid, Ids) -> gen_server:send_request(Pid, row, Pid, Ids) end, gen_server:reqids_new(),
        sderl_im_sup:children(Part)
    ),
    collect(Requests, {abs, erlang:monotonic_time(millisecond) + ?ANSWER_MS}).

collect(Requests, Deadline) ->
    case gen_server:receive_response(Requests, Deadline, true) of
        {{reply, {ok, Row}}, _, Rest} -> [Row | collect(Rest, Deadline)];
        {_, _, Rest} -> collect(Rest, Deadline);
        no_request -> [];
        timeout -> []
    end.
