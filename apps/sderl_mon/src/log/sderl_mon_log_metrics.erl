%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_metrics).
-moduledoc """
The log in Prometheus' text format, version 0.0.4. Pure.

| name | labels | |
|---|---|---|
| `sderl_log_events_total` | level | events that were kept |
| `sderl_log_lost_total` | reason, level | events that were left out |
| `sderl_log_malformed_total` | | messages that were malformed |
| `sderl_log_bytes` | | bytes that are kept |
| `sderl_log_written` | | 1, or 0 when files cannot be written |
""".

-export([text/1]).

-doc "The counts since the monitoring node began to keep the log.".
-spec text(sderl_mon_log:info()) -> iodata().
text(#{events := Events, lost := Lost, malformed := Malformed, bytes := Bytes,
       problem := Problem}) ->
    [
        family("sderl_log_events_total", counter, "Events of the nodes' logs that were kept",
               [{["{level=\"", atom_to_list(Level), "\"}"], N}
                || Level := N <- maps:iterator(Events, ordered)]),
        family("sderl_log_lost_total", counter, "Events of the nodes' logs that were left out",
               [{["{level=\"", atom_to_list(Level), "\",reason=\"", atom_to_list(Reason), "\"}"], N}
                || {Reason, Level} := N <- maps:iterator(Lost, ordered)]),
        family("sderl_log_malformed_total", counter, "Messages for the log that were malformed",
               [{"", Malformed}]),
        family("sderl_log_bytes", gauge, "Bytes that are kept of the nodes' logs", [{"", Bytes}]),
        family("sderl_log_written", gauge, "Whether the log can be written to its files, if any",
               [{"", case Problem of none -> 1; _ -> 0 end}])
    ].

family(_, _, _, []) -> [];
family(Name, Type, Help, Samples) ->
    [["# HELP ", Name, $\s, Help, "\n# TYPE ", Name, $\s, atom_to_list(Type), $\n]
     | [[Name, Labels, $\s, integer_to_list(N), $\n] || {Labels, N} <- Samples]].
