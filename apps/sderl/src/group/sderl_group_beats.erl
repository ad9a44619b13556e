%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_beats).
-moduledoc """
Heartbeats of a group that the node says for its process (`m:sderl_heart`).

A heartbeat that is said twice stands, and the node says it from then on, until anything else is
said to that member. A member takes that for what it was told last, if it was told nothing else
since: what it handles is what it would get if all were sent over the link, in this order.
""".

-export([new/2, begin_tick/1, due/2, end_tick/3, say/3, unsaid/2, unsaid_to_node/2, hear/2]).
-export_type([beats/0]).

%% Heartbeats that the node is told of are so many ticks old at most, with some room: it must not
%% take their senders for silent.
-define(TICKS, 4).

-record(beats, {
    %% Whether heartbeats that say what was said before may be left to the node.
    shared :: boolean(),
    %% The last that each member was told, and that each told us, where that was a heartbeat.
    said = #{} :: #{pid() => tuple()},
    heard = #{} :: #{node() => tuple()},
    %% Towards whom this process stands, and whom it told the same again in this tick.
    stands = [] :: [node()],
    repeated = no_tick :: no_tick | [node()]
}).
-opaque beats() :: #beats{}.

-spec new(TickMs :: pos_integer(), AsideMs :: pos_integer()) -> beats().
new(Tick, Aside) -> #beats{shared = Aside >= ?TICKS * Tick}.

-spec begin_tick(beats()) -> beats().
begin_tick(B) -> B#beats{repeated = []}.

-doc "The events in the place of heartbeats that would have come.".
-spec due(Uid :: binary(), beats()) -> [sderl_core:event()].
due(Uid, #beats{heard = Heard}) ->
    [{beat, N, Msg, At} || N := Msg <- Heard, At <- [sderl_heart:heard(Uid, N)], At =/= none].

-doc "A heartbeat is to be said; false where the node says it.".
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

%% Of the coordinator towards those who follow it, and of these towards it: whoever says anything
%% else to a heartbeat has yet to be brought in.
may_stand(_, _, #beats{shared = false}) -> false;
may_stand(N, {hb, _, _}, #beats{heard = Heard}) ->
    case Heard of
        #{N := {hb_ack, _, _}} -> sderl_heart:is_ready(N);
        _ -> false
    end;
may_stand(N, {hb_ack, _, _}, _) -> sderl_heart:is_ready(N).

-doc "Another message went there.".
-spec unsaid(pid(), beats()) -> beats().
unsaid(Addr, #beats{said = Said} = B) when is_map_key(Addr, Said) ->
    B#beats{said = maps:remove(Addr, Said)};
unsaid(_, B) -> B.

-doc "The process on that node may be another one.".
-spec unsaid_to_node(node(), beats()) -> beats().
unsaid_to_node(N, #beats{said = Said} = B) ->
    B#beats{said = #{Addr => Msg || Addr := Msg <- Said, node(Addr) =/= N}}.

-doc "What came last of each member.".
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
