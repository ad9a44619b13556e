%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_slow).
-moduledoc """
What a probe asks in a helper process, because the answer may block: the application, the processes
of links, the files of the machine. The probe keeps the answers for its samples.
""".

-export([start/2, gauges/1, facts/1]).
-export([ask/3]).
-export_type([known/0]).

-import(sderl_mon_probe_work, [now_us/0]).

-doc """
The last answers; empty before the first. It has the keys of `t:sderl_mon_probe_library:answers/0`,
too.
""".
-type known() :: #{
    host => sderl_mon_probe_host:host(),
    standing => sderl_mon_probe_standing:standing(),
    atom() => term()
}.

-doc """
Starts a helper, linked to the caller, to which it sends `{slow, Helper, Microseconds, known(),
Sockets}`. `Known`: the answers before. `Controllers`: the processes of the links whose sockets are
asked for.
""".
-spec start(known(), Controllers :: [pid()]) -> pid().
start(Known, Controllers) -> spawn_link(?MODULE, ask, [self(), Known, Controllers]).

-doc false.
-spec ask(pid(), Before :: known(), [pid()]) -> term().
ask(Probe, Before, Controllers) ->
    T = now_us(),
    Sockets = #{Ctrl => sderl_mon_probe_links:tls_socket(Ctrl) || Ctrl <- Controllers},
    Known = (sderl_mon_probe_library:ask(Probe, Before))#{
        host => sderl_mon_probe_host:read(maps:get(host, Before, none)),
        standing => sderl_mon_probe_standing:read(maps:get(standing, Before, none))
    },
    Probe ! {slow, self(), now_us() - T, Known, Sockets}.

-doc "The gauges that were read last.".
-spec gauges(known()) -> #{atom() => number()}.
gauges(Known) ->
    maps:merge(maps:get(gauges, maps:get(host, Known, #{}), #{}),
               sderl_mon_probe_standing:gauges(maps:get(standing, Known, none))).

-doc "What changes seldom.".
-spec facts(known()) -> #{atom() => term()}.
facts(Known) ->
    (sderl_mon_probe_standing:facts(maps:get(standing, Known, none)))#{
        application => maps:get(sup, Known, undefined) =/= undefined,
        groups => sderl_mon_probe_library:groups(maps:get(live, Known, #{})),
        known => maps:get(known, Known, []),
        problems => maps:get(problems, Known, [])
    }.
