%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_alarms).
-moduledoc """
Answers what browsers and programs ask of alarms, and does what people want with them: over the
WebSocket and over HTTP alike. What changes anything is refused where the dashboard is read-only.
""".

-export([answer/3, is_operation/1, shown/1, rules/0]).
-import(sderl_web_json, [null/1]).

-define(OPERATIONS, [alarms, alarm, acknowledge, reopen, comment, silences, silence, unsilence,
                     alarm_rules, reload_rules]).
-define(CHANGES, [acknowledge, reopen, comment, silence, unsilence, reload_rules]).
%% The most alarms that all browsers get without asking.
-define(SHOWN, 500).

-doc "Whether an operation is one of alarms.".
-spec is_operation(atom()) -> boolean().
is_operation(Op) -> lists:member(Op, ?OPERATIONS).

-doc "What browsers are told of alarms: the first 500, and how many there are.".
-spec shown(sderl_alarms_server:snapshot()) -> map().
shown(#{alarms := Alarms, silences := Silences}) ->
    #{type => alarms, alarms => lists:sublist(Alarms, ?SHOWN), total => length(Alarms),
      silences => Silences}.

-doc "The answer to a checked request; JSON already.".
-spec answer(atom(), map(), Writable :: boolean()) ->
    {ok, iodata()} | {error, sderl_web_protocol:code(), unicode:chardata()}.
answer(Op, Args, Writable) ->
    case Writable orelse not lists:member(Op, ?CHANGES) of
        true ->
            try
                done(do(Op, Args), Op)
            catch
                exit:{noproc, _} ->
                    {error, unavailable,
                     "the alarms (application sderl_alarms) are not running: ask again"};
                exit:{Why, _} when Why =:= timeout; Why =:= shutdown ->
                    {error, unavailable, ["the alarms did not answer in time, or stopped: ",
                                          again(Op)]}
            end;
        false -> {error, forbidden, sderl_web_protocol:read_only(Op)}
    end.

again(Op) ->
    case lists:member(Op, ?CHANGES) of
        true -> "look whether it is done before you ask again";
        false -> "ask again"
    end.

done({ok, Term}, _) -> {ok, sderl_web_json:term(Term)};
done(ok, _) -> {ok, ~"null"};
done({error, Problems}, reload_rules) -> {error, bad_request, lists:join("\n", Problems)};
done({error, not_found}, Op) ->
    {error, not_found, [atom_to_binary(Op), ": ", sderl_alarms:format_error(not_found)]};
done({error, Why}, Op) ->
    {error, bad_request, [atom_to_binary(Op), ": ", sderl_alarms:format_error(Why)]}.

do(alarms, #{limit := Limit, offset := Offset} = Args) ->
    All = sderl_alarms:list(maps:without([limit, offset], Args)),
    Total = length(All),
    {ok, #{alarms => lists:sublist(lists:nthtail(min(Offset, Total), All), Limit), total => Total,
           more => Offset + Limit < Total}};
do(alarm, #{id := Id}) -> sderl_alarms:find(Id);
do(acknowledge, #{id := Id, by := By, text := Text}) -> sderl_alarms:acknowledge(Id, By, Text);
do(reopen, #{id := Id, by := By}) -> sderl_alarms:reopen(Id, By);
do(comment, #{id := Id, by := By, text := Text}) -> sderl_alarms:comment(Id, By, Text);
do(silences, _) -> {ok, #{silences => sderl_alarms:silences()}};
do(silence, #{for_s := Seconds, by := By, text := Text} = Args) ->
    Match = maps:with([alarm, node, group, family, severity], Args),
    maybe
        {ok, Id} ?= sderl_alarms:silence(Match, Seconds, By, Text),
        {ok, #{id => Id}}
    end;
do(unsilence, #{id := Id, by := By}) -> sderl_alarms:unsilence(Id, By);
do(alarm_rules, _) -> {ok, rules()};
do(reload_rules, _) -> sderl_alarms:reload().

-doc "The rules in force, the metrics that rules may name, and the routes.".
-spec rules() -> map().
rules() ->
    #{routes := Routes, problem := Problem, delivers := Delivers, kept := Kept} =
        sderl_alarms:info(),
    #{rules => [rule(Rule) || Rule <- sderl_alarms:rules()],
      metrics => [maps:without([key], Metric) || Metric <- sderl_alarms:metrics()],
      routes => Routes, problem => Problem, delivers => Delivers, kept => Kept}.

rule(#{kind := value, settings := Settings, on := On, where := Where, 'of' := Of}) ->
    Settings#{on => On, where => Where, 'of' => Of,
              minor := null(map_get(minor, Settings)), major := null(map_get(major, Settings))};
rule(#{kind := finding} = Rule) ->
    maps:with([alarm, on, where, tags], Rule).
