%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_telemetry).
-moduledoc """
Sends events of the hub to telemetry, if the module `telemetry` is loaded; the application does not
depend on it. A handler that fails does not affect the hub.

| event | measurements | metadata |
|---|---|---|
| `[sderl_mon, frame]` | count, span_ms, nodes, links, msgs_s, bytes_s, lost | seq, t, epoch |
| `[sderl_mon, event]` | count | the event: id, t, kind, level, text, [node], [group], [details] |
| `[sderl_mon, finding]` | count | the finding, when it is new: id, kind, severity, since, where, text, remedy |
""".

-export([frame/1, event/1, finding/1]).

-doc "A frame was made. Its sums are computed only if telemetry is loaded.".
-spec frame(sderl_mon_types:frame()) -> ok.
frame(#{seq := Seq, t := T, epoch := Epoch, span_ms := Span, nodes := Nodes, links := Links,
        lost := Lost}) ->
    case loaded() of
        true ->
            {Msgs, Bytes} = maps:fold(fun(_Link, {M, B}, {Ms, Bs}) -> {Ms + M, Bs + B} end, {0, 0},
                                      Links),
            Measured = #{
                count => 1,
                span_ms => Span,
                nodes => map_size(Nodes),
                links => map_size(Links),
                msgs_s => Msgs,
                bytes_s => Bytes,
                lost => lists:sum(maps:values(Lost))
            },
            execute(telemetry, [sderl_mon, frame], Measured, #{seq => Seq, t => T, epoch => Epoch});
        false ->
            ok
    end.

-doc "An event came.".
-spec event(sderl_mon_types:event()) -> ok.
event(Event) -> one([sderl_mon, event], Event).

-doc "There is a new finding.".
-spec finding(sderl_mon_types:finding()) -> ok.
finding(Finding) -> one([sderl_mon, finding], Finding).

one(Name, Meta) ->
    case loaded() of
        true -> execute(telemetry, Name, #{count => 1}, Meta);
        false -> ok
    end.

loaded() -> erlang:function_exported(telemetry, execute, 3).

%% The module is a parameter because this application does not depend on it.
execute(Telemetry, Name, Measured, Meta) ->
    try
        _ = Telemetry:execute(Name, Measured, Meta),
        ok
    catch
        _Class:_Reason -> ok
    end.
