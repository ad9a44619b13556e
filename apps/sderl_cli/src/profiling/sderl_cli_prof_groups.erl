%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_groups).
-moduledoc "What `prof report` prints of groups: operations, and messages over gateways. Pure.".

-export([operations/1, routed/1, ways/1]).

-import(sderl_table, [number/1]).

%% Rows that are shown; JSON has more.
-define(ROWS, 20).

-doc "Operations on groups, in the order of time.".
-spec operations([map()]) -> sderl_command:text().
operations([]) -> [];
operations(Operations) ->
    [
        sderl_table:text(["operation", "at", "by", "begins at s", "took ms", "gave"], [
            [[Operation, " ", short(Arguments)], Node, Process, number(At / 1.0e9),
             case Took of null -> "-"; _ -> number(Took / 1.0e6) end, short(Text)]
         || #{operation := <<"s_group:", Operation/binary>>, node := Node, by := Process, at := At,
              took := Took, arguments := Arguments, text := Text}
                <- lists:sublist(Operations, ?ROWS)
        ]),
        more(length(Operations) - ?ROWS)
    ].

short(Text) -> string:slice(Text, 0, 60).

more(N) when N > 0 -> io_lib:format("and ~b more (--json)~n", [N]);
more(_) -> [].

-doc "Messages over gateways, as one node tells them.".
-spec routed(sderl_prof_routed:result()) -> sderl_command:text().
routed(null) -> [];
routed(#{sent := #{count := Sent, bytes := Bytes, rows := Rows}, gateways := Gateways,
         passed := #{count := Passed, rows := Ways}, delivered := Delivered,
         undelivered := #{count := Failed, rows := Failures}}) ->
    [
        io_lib:format("~ts sent from here (~ts bytes), ~ts passed on, ~ts delivered, ~ts not~n",
                      [number(N) || N <- [Sent, Bytes, Passed, Delivered, Failed]]),
        table(["to", "whom", "first over", "messages", "bytes"], [
            [To, Whom, First, number(N), number(B)]
         || #{to := To, whom := Whom, first := First, count := N, bytes := B} <- Rows
        ]),
        table(["first over", "messages", "bytes"], [
            [First, number(N), number(B)]
         || #{first := First, count := N, bytes := B} <- Gateways
        ]),
        table(["from", "passed on to", "messages", "in bundles"], [
            [From, Next, number(N), number(Bundles)]
         || #{from := From, next := Next, count := N, bundles := Bundles} <- Ways
        ]),
        table(["not delivered to", "whom", "because", "messages"], [
            [To, Whom, Why, number(N)]
         || #{to := To, whom := Whom, why := Why, count := N} <- Failures
        ])
    ].

-doc "The same of several nodes: by which ways messages went.".
-spec ways(map() | null) -> sderl_command:text().
ways(null) -> [];
ways(#{sent := Sent, passed := Passed, delivered := Delivered, undelivered := Failed,
       destinations := Destinations, gateways := Gateways, failures := Failures}) ->
    [
        io_lib:format("~ts sent, ~ts times passed on, ~ts delivered by those that pass on, "
                      "~ts not delivered~n",
                      [number(N) || N <- [Sent, Passed, Delivered, Failed]]),
        table(["from", "to", "whom", "first over", "messages", "bytes"], [
            [From, To, Whom, First, number(N), number(B)]
         || #{from := From, to := To, whom := Whom, first := First, count := N,
              bytes := B} <- Destinations
        ]),
        table(["sent at", "passed on by", "to", "messages", "in bundles"], [
            [From, Gateway, Next, number(N), number(Bundles)]
         || #{from := From, gateway := Gateway, next := Next, count := N,
              bundles := Bundles} <- Gateways
        ]),
        table(["not delivered to", "whom", "at", "because", "messages"], [
            [To, Whom, At, Why, number(N)]
         || #{to := To, whom := Whom, at := At, why := Why, count := N} <- Failures
        ])
    ].

table(_, []) -> [];
table(Heads, Rows) ->
    [sderl_table:text(Heads, lists:sublist(Rows, ?ROWS)), more(length(Rows) - ?ROWS)].
