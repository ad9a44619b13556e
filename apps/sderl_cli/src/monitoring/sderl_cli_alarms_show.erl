%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_alarms_show).
-moduledoc "What `bin/sderl alarms` prints of the answers of a dashboard. Pure.".

-export([list/2, one/1, silences/1, rules/1]).

-import(sderl_cli_time, [time/1]).

-doc "A line for each alarm, and one that counts them.".
-spec list(map(), map()) -> unicode:chardata().
list(#{~"alarms" := All, ~"total" := Total}, Options) ->
    Wanted = [Alarm || #{~"state" := State} = Alarm <- All,
                       State =/= ~"cleared" orelse maps:get(all, Options)
                           orelse is_map_key(state, Options)],
    [[line(Alarm) || Alarm <- Wanted], count(Wanted), more(Total - length(All))].

line(#{~"id" := Id, ~"state" := State, ~"severity" := Severity, ~"since" := Since,
       ~"text" := Text} = Alarm) ->
    [string:pad(Severity, 6), string:pad(state(State, Alarm), 13), time(Since), "  ", Text,
     "\n      ", Id, $\n].

state(~"raised", #{~"silenced" := true}) -> ~"silenced";
state(State, _) -> State.

count([]) -> "no alarms\n";
count([_]) -> "1 alarm\n";
count(Alarms) -> [integer_to_list(length(Alarms)), " alarms\n"].

more(N) when N > 0 -> ["and ", integer_to_list(N), " more; ask for a severity, a node or a tag\n"];
more(_) -> "".

-doc "All of one alarm.".
-spec one(map()) -> unicode:chardata().
one(#{~"id" := Id, ~"text" := Text, ~"cause" := Cause, ~"remedy" := Remedy, ~"count" := Count,
      ~"severity" := Severity, ~"worst" := Worst, ~"state" := State, ~"since" := Since,
      ~"tags" := Tags, ~"groups" := Groups, ~"comments" := Comments} = Alarm) ->
    [
        Text, $\n,
        field("id", Id),
        field("state", [state(State, Alarm), ", ", Severity,
                        [[", was ", Worst] || Worst =/= Severity]]),
        field("since", [time(Since), [[", for the ", integer_to_list(Count), ". time"]
                                      || Count > 1]]),
        [field("cleared", [time(At), ", ", Why])
         || #{~"cleared" := At, ~"why_cleared" := Why, ~"state" := ~"cleared"} <- [Alarm]],
        [field("groups", lists:join(", ", Groups)) || Groups =/= []],
        [field("tags", lists:join(", ", Tags)) || Tags =/= []],
        [field("seen by", [By, ", ", time(At), [[": ", Said] || Said =/= ~""]])
         || #{~"acknowledged" := #{~"by" := By, ~"at" := At, ~"text" := Said}} <- [Alarm]],
        [field("cause", Cause) || Cause =/= ~""],
        [field("remedy", Remedy) || Remedy =/= ~""],
        [field("comment", [By, ", ", time(At), ": ", Said])
         || #{~"by" := By, ~"at" := At, ~"text" := Said} <- Comments]
    ].

field(Name, Value) -> ["  ", string:pad(Name, 9), Value, $\n].

-doc "A line for each silence.".
-spec silences(map()) -> unicode:chardata().
silences(#{~"silences" := []}) -> "no silences\n";
silences(#{~"silences" := All}) ->
    [["until ", time(Until), "  ",
      lists:join(" ", [[Key, $=, Value] || Key := Value <- maps:iterator(Match, ordered)]), "  ",
      By, [[": ", Text] || Text =/= ~""], "\n      ", Id, $\n]
     || #{~"id" := Id, ~"match" := Match, ~"until" := Until, ~"by" := By, ~"text" := Text} <- All].

-doc "The rules in force, the metrics that rules may name, and the routes.".
-spec rules(map()) -> unicode:chardata().
rules(#{~"rules" := Rules, ~"metrics" := Metrics, ~"routes" := Routes} = Answer) ->
    [
        "alarms\n", [rule(Rule) || Rule <- Rules],
        "metrics\n",
        [["  ", string:pad(Name, 22), string:pad(Of, 7), About, $\n]
         || #{~"name" := Name, ~"of" := Of, ~"about" := About} <- Metrics],
        "routes\n", [route(Route) || Route <- Routes], ["  none\n" || Routes =:= []],
        [["problem: ", Problem, $\n] || #{~"problem" := <<_, _/binary>> = Problem} <- [Answer]]
    ].

rule(#{~"metric" := Metric, ~"minor" := Minor, ~"major" := Major, ~"for_s" := For,
       ~"when" := When} = Rule) ->
    rule(Rule, io_lib:format("~ts ~ts minor ~ts, major ~ts, for ~w s",
                             [Metric, When, level(Minor), level(Major), For]));
rule(Rule) ->
    rule(Rule, "a finding").

rule(#{~"alarm" := Alarm, ~"on" := On, ~"where" := Where}, Text) ->
    ["  ", string:pad(Alarm, 22), Text, [", off" || not On],
     [[", of ", Key, $\s, lists:join(", ", Patterns)]
      || is_map(Where), Key := Patterns <- maps:iterator(Where, ordered)], $\n].

level(null) -> "-";
level(N) -> io_lib:format("~w", [N]).

route(#{~"name" := Name, ~"waiting" := Waiting, ~"error" := Error,
        ~"counts" := #{~"delivered" := Delivered, ~"failed" := Failed, ~"given_up" := GivenUp,
                       ~"overflowed" := Lost}}) ->
    io_lib:format("  ~ts~b delivered, ~b attempts failed, ~b wait, ~b given up~ts~n",
                  [string:pad(Name, 22), Delivered, Failed, Waiting, GivenUp + Lost,
                   [[": ", Error] || Error =/= ~""]]).
