%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_beats).
-moduledoc """
Heartbeats that the node sends for the process of a group (`m:sderl_heart`).

A heartbeat that was sent twice stands: from then on the node repeats it, until the process sends
that member anything else. The member handles its last message again if that was a heartbeat, so it
handles what it would get if all heartbeats were sent over the link, in this order.
""".

-export([new/2, begin_tick/1, due/2, end_tick/3, say/3, unsaid/2, unsaid_to_node/2, hear/2]).
-export_type([beats/0]).

%% How old, in ticks, heartbeats that the node repeats may be, with some room. Their senders must
%% not count as silent, so `set_aside_ms` has to be longer.
-define(TICKS, 4).

-record(beats, {
    %% Whether repeated heartbeats may be left to the node.
    shared :: boolean(),
    %% The last message to each member, and from each member, if it was a heartbeat.
    said = #{} :: #{pid() => tuple()},
    heard = #{} :: #{node() => tuple()},
    %% The nodes towards which this process stands, and those that it sent the same in this tick.
    stands = [] :: [node()],
    repeated = no_tick :: no_tick | [node()]
}).
-opaque beats() :: #beats{}.

-spec new(TickMs :: pos_integer(), AsideMs :: pos_integer()) -> beats().
new(Tick, Aside) -> #beats{shared = Aside >= ?TICKS * Tick}.

-spec begin_tick(beats()) -> beats().
begin_tick(B) -> B#beats{repeated = []}.

-doc "The events in place of the heartbeats that would have come.".
-spec due(Uid :: binary(), beats()) -> [sderl_core:event()].
due(Uid, #beats{heard = Heard}) ->
    [{beat, N, Msg, At} || N := Msg <- Heard, At <- [sderl_heart:heard(Uid, N)], At =/= none].

-doc "A heartbeat is to be sent; `false` if the node repeats it.".
-spec say(pid(), tuple(), beats()) -> {IsSent :: boolean(), beats()}.
say(Addr, Msg, #beats{said = Said, repeated = Repeated, stands = Stands} = B) ->
    N = node(Addr),
    case Said of
        #{Addr := Msg} when Repeated =/= no_tick ->
            case may_stand(N, Msg, B) of
                true -> {not lists:member(N, Stands), B#beats{repeated = [N | Repeated]}};
                false -> {true, B}
            end;
        _ -> {true, B#beats{said = Said#{Addr => Msg}}}
    end.

%% Only between the coordinator and its followers: a member that answers a heartbeat with anything
%% else than `hb_ack` does not follow yet.
may_stand(_, _, #beats{shared = false}) -> false;
may_stand(N, {hb, _, _}, #beats{heard = Heard}) ->
    case Heard of
        #{N := {hb_ack, _, _}} -> sderl_heart:is_ready(N);
        _ -> false
    end;
may_stand(N, {hb_ack, _, _}, _) -> sderl_heart:is_ready(N).

-doc "Another message was sent to this process.".
-spec unsaid(pid(), beats()) -> beats().
unsaid(Addr, #beats{said = Said} = B) when is_map_key(Addr, Said) ->
    B#beats{said = maps:remove(Addr, Said)};
unsaid(_, B) -> B.

-doc "There may be another process on that node.".
-spec unsaid_to_node(node(), beats()) -> beats().
unsaid_to_node(N, #beats{said = Said} = B) ->
    B#beats{said = #{Addr => Msg || Addr := Msg <- Said, node(Addr) =/= N}}.

-doc "Keeps the last message of each member.".
-spec hear(sderl_core:event(), beats()) -> beats().
hear({msg, N, Msg}, #beats{heard = Heard} = B)
  when element(1, Msg) =:= hb; element(1, Msg) =:= hb_ack ->
    B#beats{heard = Heard#{N => Msg}};
%% The process of that member may be a new one.
hear({msg, N, Msg}, B) when element(1, Msg) =:= hello -> unsaid_to_node(N, unheard(N, B));
hear({msg, N, _}, B) -> unheard(N, B);
hear({nodedown, N}, B) -> unsaid_to_node(N, unheard(N, B));
hear(_, B) -> B.

unheard(N, #beats{heard = Heard} = B) when is_map_key(N, Heard) ->
    B#beats{heard = maps:remove(N, Heard)};
unheard(_, B) -> B.

-doc "The tick is over, and began at this time.".
-spec end_tick(Uid :: binary(), Ran :: integer(), beats()) -> beats().
end_tick(_, _, #beats{repeated = [], stands = []} = B) -> B#beats{repeated = no_tick};
end_tick(Uid, Ran, #beats{repeated = Repeated, stands = Stands} = B) ->
    Now = lists:usort(Repeated),
    case Now of
        Stands -> _ = sderl_heart:tick(Uid, Ran) orelse sderl_heart:stand(Uid, Ran, Stands);
        _ -> ok = sderl_heart:stand(Uid, Ran, Now)
    end,
    B#beats{repeated = no_tick, stands = Now}.
