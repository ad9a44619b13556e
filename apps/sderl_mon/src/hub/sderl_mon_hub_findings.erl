%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub_findings).
-moduledoc """
The findings of a hub: when it checks the rules, on which frames, and which findings it sends. Pure.

The rules are checked every five seconds, on means over some seconds: the frames between two checks
count as one. Findings are sent at once when one comes, goes or changes its severity; new numbers of
the same findings every half minute.
""".

-export([new/2, change_thresholds/2, add_frame/2, look/4, all/1]).
-export_type([findings/0, told/0]).

-define(LOOK_MS, 5_000).
%% The same findings with new numbers are sent this often.
-define(REPEAT_MS, 30_000).
%% The window of the rules is at most a minute.
-define(MOST_PIECES, 12).

-record(findings, {
    thresholds :: #{atom() => number()},
    known :: sderl_mon_findings:state(),
    looked_at :: sderl_mon_types:t(),
    %% The frames since the last check as one, and those of the checks before, the newest first.
    piece = sderl_mon_frame:new() :: sderl_mon_frame:acc(),
    recent = [] :: [sderl_mon_types:frame()],
    present = [] :: [sderl_mon_types:finding()],
    told_at = 0 :: sderl_mon_types:t()
}).

-opaque findings() :: #findings{}.

-doc "Whether subscribers are told, and which of the findings are new.".
-type told() :: {tell | keep, New :: [sderl_mon_types:finding()]}.

-doc "No findings.".
-spec new(#{atom() => number()}, sderl_mon_types:t()) -> findings().
new(Thresholds, Now) ->
    #findings{thresholds = Thresholds, known = sderl_mon_findings:new(Thresholds), looked_at = Now}.

-doc "Uses other thresholds from now on; what was seen before is forgotten.".
-spec change_thresholds(#{atom() => number()}, findings()) -> findings().
change_thresholds(Thresholds, State) ->
    State#findings{thresholds = Thresholds, known = sderl_mon_findings:new(Thresholds)}.

-doc "Takes another frame.".
-spec add_frame(sderl_mon_types:frame(), findings()) -> findings().
add_frame(Frame, #findings{piece = Piece} = State) ->
    State#findings{piece = sderl_mon_frame:add(Frame, Piece)}.

-doc "The present findings.".
-spec all(findings()) -> [sderl_mon_types:finding()].
all(#findings{present = Present}) -> Present.

-doc "Checks the rules if it is time. A check that fails is reported, and changes no findings.".
-spec look(sderl_mon_types:t(), sderl_mon_types:topology(), Details, findings()) ->
    {ok, told(), findings()} | {error, Why :: term(), findings()}
when
    Details :: #{sderl_mon_types:id() => sderl_mon_types:detail()}.
look(Now, Topology, Details, #findings{looked_at = At} = State) when
    Now - At >= ?LOOK_MS; Now < At
->
    #findings{known = Known, piece = Piece, recent = Recent} = State,
    Recent1 = lists:sublist([sderl_mon_frame:frame(Piece) | Recent], pieces(State)),
    State1 = State#findings{looked_at = Now, recent = Recent1, piece = sderl_mon_frame:new()},
    try sderl_mon_findings:check(Topology, Recent1, Details, Known) of
        {Findings, Known1} -> replace(Findings, Now, State1#findings{known = Known1})
    catch
        Class:Reason:Stack -> {error, {Class, Reason, Stack}, State1}
    end;
look(_Now, _Topology, _Details, State) ->
    {ok, {keep, []}, State}.

%% Enough for the window that the rules look at.
pieces(#findings{thresholds = Thresholds}) ->
    max(3, min(?MOST_PIECES, 1 + trunc(maps:get(window_ms, Thresholds, 0)) div ?LOOK_MS)).

replace(Findings, Now, #findings{present = Before, told_at = Told} = State) ->
    Known = severities(Before),
    New = [F || #{id := Id} = F <- Findings, not is_map_key(Id, Known)],
    case severities(Findings) of
        Known when Now - Told < ?REPEAT_MS; Known =:= #{} ->
            {ok, {keep, New}, State#findings{present = Findings}};
        _Others ->
            {ok, {tell, New}, State#findings{present = Findings, told_at = Now}}
    end.

severities(Findings) -> #{Id => Severity || #{id := Id, severity := Severity} <- Findings}.
