%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_failure).
-moduledoc "Why a node is not recorded, and what a recording costs it, in words. Pure.".

-export([format/1, format_cost/1]).
-export_type([reason/0]).

-type reason() :: {recorder, sderl_prof_recorder:reason()} | sderl_prof_reach:reason()
    | {too_much, sderl_prof_trial:cost(), pos_integer()}.

-doc "What is wrong, and what to do.".
-spec format(reason()) -> unicode:chardata().
format({recorder, Why}) -> sderl_prof_recorder:format_error(Why);
format({too_much, Cost, Most}) ->
    [format_cost(Cost), io_lib:format(
        "; that is more than the ~b events a second that are allowed: record fewer processes (who, "
        "above => share) or items (what), or allow more (max_events_s)", [Most]
    )];
format({node, Node, records}) ->
    io_lib:format("~ts records with another version of this project; try again when that has ended",
                  [Node]);
format({node, Node, lacks}) ->
    io_lib:format("~ts has no sderl_prof of this version in its code path, and it may not be "
                  "loaded there: \"bin/sderl mon --inject\" allows it", [Node]);
format({node, Node, timeout}) ->
    io_lib:format("~ts does not answer in time: it has too much to do, or what is to be recorded "
                  "is too much for it", [Node]);
format({node, Node, Why}) -> io_lib:format("~ts does not answer: ~0tP", [Node, Why, 10]).

-doc "What a recording costs, in words.".
-spec format_cost(sderl_prof_trial:cost()) -> unicode:chardata().
format_cost(#{events_s := Events, bytes_s := Bytes, cores := Cores, event_ns := Ns,
              full := Full}) ->
    io_lib:format("recording takes ~ts~b events and ~.1f MB a second, and ~.1f % of a core (~b ns "
                  "for an event)",
                  [case Full of true -> "at least "; false -> "" end, round(Events), Bytes / 1.0e6,
                   100 * Cores, round(Ns)]).
