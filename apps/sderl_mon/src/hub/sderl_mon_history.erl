%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_history).
-moduledoc "Recent history. Pure.".

-export([new/1, frame/2, topology/2, findings/2, range/1, at/2, frames/3, store/1, info/1]).

-export_type([history/0]).

-opaque history() :: #{
    frames := [sderl_mon_types:frame()],
    topologies := [sderl_mon_types:topology()],
    findings := [{integer(), [sderl_mon_types:finding()]}]
}.

-spec new(map()) -> history().
new(_Opts) -> #{frames => [], topologies => [], findings => []}.

-spec frame(sderl_mon_types:frame(), history()) -> history().
frame(Frame, #{frames := Frames} = H) -> H#{frames := lists:sublist([Frame | Frames], 600)}.

-spec topology(sderl_mon_types:topology(), history()) -> history().
topology(Topology, #{topologies := Ts} = H) -> H#{topologies := lists:sublist([Topology | Ts], 100)}.

-spec findings({integer(), [sderl_mon_types:finding()]}, history()) -> history().
findings(Found, #{findings := Fs} = H) -> H#{findings := lists:sublist([Found | Fs], 100)}.

-spec range(history()) -> {integer(), integer()}.
range(#{frames := []}) -> {0, 0};
range(#{frames := [#{t := To} | _] = Frames}) ->
    #{t := From} = lists:last(Frames),
    {From, To}.

-spec at(integer(), history()) ->
    {ok, #{topology := sderl_mon_types:topology(), frame := sderl_mon_types:frame(), findings := [sderl_mon_types:finding()]}}
    | {error, none}.
at(T, #{frames := Frames, topologies := Ts, findings := Fs}) ->
    case {[F || #{t := Ft} = F <- Frames, Ft =< T], Ts} of
        {[Frame | _], [_ | _]} ->
            Topology = hd([X || #{t := Tt} = X <- Ts, Tt =< T] ++ [lists:last(Ts)]),
            Findings = hd([X || {Tf, X} <- Fs, Tf =< T] ++ [[]]),
            {ok, #{topology => Topology, frame => Frame, findings => Findings}};
        _ ->
            {error, none}
    end.

-doc "Frames in a span of time, oldest first.".
-spec frames(integer(), integer(), history()) -> [sderl_mon_types:frame()].
frames(From, To, #{frames := Frames}) ->
    lists:reverse([F || #{t := T} = F <- Frames, T >= From, T =< To]).

-doc "For `m:sderl_mon_query`.".
-spec store(history()) -> sderl_mon_types:store().
store(H) ->
    #{
        range => range(H),
        topology => fun(T) -> case at(T, H) of {ok, #{topology := Topology}} -> {ok, Topology}; {error, none} -> none end end,
        fold => fun(From, To, Fun, Acc) -> lists:foldl(Fun, Acc, frames(From, To, H)) end
    }.

-spec info(history()) -> map().
info(#{frames := Frames}) -> #{frames => length(Frames)}.
