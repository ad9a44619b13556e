%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_links).
-moduledoc "The links of a node, with the traffic of each.".

-export([read/3, unknown/1, unasked/2, wrapped/2, tls_socket/1]).
-export_type([links/0, sockets/0]).

-define(STAT, [recv_cnt, recv_oct, send_cnt, send_oct, send_pend]).

-type counters() :: {non_neg_integer(), non_neg_integer(), non_neg_integer(), non_neg_integer()}.

-doc """
For each link its controller, its socket, what to add to its 32-bit counters (which wrap around),
their last values, and since when it is up.
""".
-type links() ::
    #{node() => {pid() | port(), port() | unknown, {integer(), integer()}, counters(),
                 Since :: integer()}}.

-doc "The sockets of controllers that are processes, as far as these were asked.".
-type sockets() :: #{pid() => port() | unknown}.

-doc """
Each link as a sample has it, the arguments of the next reading, and whether a new link has a socket
that has to be asked for.

A link's counters are those of its socket; those of packets have 32 bits. A link that is closing
shows its last values. `Reasons` are the reasons for a link, and its age in seconds.
""".
-spec read(links(), sockets(), Reasons :: #{node() => {[binary()], non_neg_integer()}}) ->
    {[sderl_mon_samples:link()], links(), sockets(), boolean()}.
read(Old, Sockets, Reasons) ->
    Hidden = nodes(hidden),
    Now = erlang:system_time(second),
    Ctrls = erlang:system_info(dist_ctrl),
    Rows = [begin
        {Port, Base, Raw, Since} = case Old of
            #{Node := {Ctrl, unknown, B, R, At}} -> {socket(Ctrl, Sockets), B, R, At};
            #{Node := {Ctrl, P, B, R, At}} -> {P, B, R, At};
            _ -> {socket(Ctrl, Sockets), {0, 0}, {0, 0, 0, 0}, Now}
        end,
        {{In, InB, Out, OutB} = New, Pending} = counts(Port, Raw),
        {B1, B2} = More = {element(1, Base) + wrapped(element(1, Raw), In),
                           element(2, Base) + wrapped(element(3, Raw), Out)},
        {Why, Age} = maps:get(Node, Reasons, {[], Now - Since}),
        L = #{node => Node,
              type => case lists:member(Node, Hidden) of true -> hidden; false -> visible end,
              in_msgs => In + B1, in_bytes => InB, out_msgs => Out + B2, out_bytes => OutB,
              pending => Pending, reasons => Why, since_s => Age},
        {case Port of unknown -> L#{counts => unknown}; _ -> L end,
         {Node, {Ctrl, Port, More, New, Since}}}
    end || {Node, Ctrl} <- Ctrls],
    IsNew = lists:any(fun({Node, C}) ->
        is_pid(C) andalso element(1, maps:get(Node, Old, {none})) =/= C
    end, Ctrls),
    {[L || {L, _} <- Rows], maps:from_list([K || {_, K} <- Rows]),
     maps:with([C || {_, C} <- Ctrls], Sockets), IsNew}.

-doc "The nodes whose link's counters cannot be read.".
-spec unknown(links()) -> [node()].
unknown(Links) -> [N || N := {_, unknown, _, _, _} <- Links].

-doc "The controllers that were not asked for their socket yet.".
-spec unasked(links(), sockets()) -> [pid()].
unasked(Links, Sockets) ->
    [Ctrl || _ := {Ctrl, unknown, _, _, _} <- Links, is_pid(Ctrl), not is_map_key(Ctrl, Sockets)].

socket(Port, _) when is_port(Port) -> Port;
socket(Pid, Sockets) -> maps:get(Pid, Sockets, unknown).

counts(unknown, Raw) -> {Raw, 0};
counts(Port, Raw) ->
    case inet:getstat(Port, ?STAT) of
        %% The usual order is that of the question.
        {ok, [{recv_cnt, In}, {recv_oct, InB}, {send_cnt, Out}, {send_oct, OutB},
              {send_pend, Pending}]} ->
            {{In, InB, Out, OutB}, Pending};
        {ok, L} ->
            [In, InB, Out, OutB, Pending] = [proplists:get_value(K, L, 0) || K <- ?STAT],
            {{In, InB, Out, OutB}, Pending};
        {error, _} -> {Raw, 0}
    end.

-doc """
The correction for a 32-bit counter that shows less than before: it wrapped around, or began again.
""".
-spec wrapped(non_neg_integer(), non_neg_integer()) -> non_neg_integer().
wrapped(Before, Now) when Now >= Before -> 0;
wrapped(Before, Now) when Before > 1 bsl 31, Now < 1 bsl 31 -> 1 bsl 32;
wrapped(Before, _) -> Before.

-doc """
The socket of a TLS link. A process controls such a link, and the socket belongs to another process
below the same supervisor: it must be the only TCP port near the controller. May block.
""".
-spec tls_socket(pid()) -> port() | unknown.
tls_socket(Pid) ->
    Near = lists:usort([P || Q <- near(Pid), P <- [Q | near(Q)]]),
    case [Port
          || P <- Near, Port <- sderl_mon_probe_look:linked(P), is_port(Port),
             erlang:port_info(Port, name) =:= {name, "tcp_inet"}] of
        [Port] -> Port;
        _ -> unknown
    end.

near(Pid) ->
    [P
     || P <- sderl_mon_probe_look:linked(Pid), is_pid(P), process_info(P, registered_name) =:= []].
