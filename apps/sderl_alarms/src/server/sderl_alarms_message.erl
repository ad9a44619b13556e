%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_message).
-moduledoc """
Checks the messages of monitoring nodes about alarms. Pure.

Each node sends the actions of people (words). The leader sends each change of its queues, and
everything to a node that asks. A node that no longer leads reports how its last attempts ended.
""".

-export([clean/1, check/1]).

-define(MOST, 200_000).

-doc "Checks a message.".
-spec check(term()) -> {ok, sderl_alarms_copy:told()} | {error, not_a_message}.
check(Message) ->
    case is_tuple(Message) andalso tuple_size(Message) > 1
        andalso sderl_mon_shape:fits(shape_of(element(1, Message)), Message) of
        true -> {ok, Message};
        false -> {error, not_a_message}
    end.

shape_of(sderl_alarms_ask) -> message(sderl_alarms_ask, [atom]);
shape_of(sderl_alarms_all) -> message(sderl_alarms_all, [atom, everything()]);
shape_of(sderl_alarms_news) ->
    message(sderl_alarms_news, [atom, version(), version(), {list, change()}]);
shape_of(sderl_alarms_done) -> message(sderl_alarms_done, [id, id]);
shape_of(_) -> {value, none}.

message(Kind, Rest) -> {tuple, [{value, Kind}, {value, 1} | Rest]}.

version() -> {tuple, [natural, natural]}.

everything() ->
    {fields, #{version => version(), leads => boolean, told => {list, alarm()},
               outbox => {fields, #{boxes => {map, id, {fields, #{items => {list, item()}}, #{}}}},
                          #{}}}, #{}}.

change() ->
    {either, [{tuple, [{value, add}, item()]}, {tuple, [{value, done}, id, id]}]}.

item() ->
    Kinds = [raised, escalated, eased, acknowledged, cleared],
    {fields, #{id => id, routes => {list, id}, kind => one_of(Kinds), t => integer,
               alarm => alarm()}, #{}}.

alarm() ->
    {fields, #{
        id => id, alarm => id, place => {map, one_of([node, group, family, from, to]), id},
        nodes => {list, id}, groups => {list, id}, is_raised => boolean, severity => severity(),
        worst => severity(), since => integer, cleared => {either, [integer, {value, null}]},
        why_cleared => text, count => natural, seq => natural, text => text, cause => text,
        remedy => text, tags => {list, id}, value => {either, [number, {value, null}]},
        threshold => {either, [number, {value, null}]}, unit => text,
        ack => {fields, #{acked => boolean, by => text, at => integer, text => text}, #{}},
        comments => {list, {fields, #{id => id, by => id, at => integer, text => text}, #{}}},
        told => one_of([none, minor, major]), ack_told => boolean
    }, #{}}.

severity() -> one_of([minor, major]).

one_of(Values) -> {either, [{value, Value} || Value <- Values]}.

-doc "The valid actions of a list; anything else is left out.".
-spec clean(term()) -> [sderl_alarms_core:action()].
clean(Words) when is_list(Words) -> clean(Words, ?MOST, []);
clean(_) -> [].

clean([Word | Rest], Left, Good) when Left > 0 ->
    case is_action(Word) of
        true -> clean(Rest, Left - 1, [Word | Good]);
        false -> clean(Rest, Left - 1, Good)
    end;
clean(_, _, Good) -> lists:reverse(Good).

is_action(#{do := Do} = Word) ->
    case shape(Do) of
        none -> false;
        Shape -> sderl_mon_shape:fits(Shape, Word) andalso is_short(Word)
    end;
is_action(_) -> false.

shape(Do) when Do =:= acknowledge; Do =:= reopen; Do =:= comment ->
    fields(#{id => id, key => binary}, #{since => integer});
shape(silence) ->
    fields(#{key => binary, for_ms => natural, match => {fields, #{}, #{
        alarm => id, node => id, group => id, family => id,
        severity => {either, [{value, minor}, {value, major}]}
    }}}, #{until => integer});
shape(unsilence) -> fields(#{id => binary}, #{});
shape(_) -> none.

fields(Must, May) -> {fields, Must#{by => id, at => integer, text => binary}, May}.

is_short(Word) -> lists:all(fun
    (Text) when is_binary(Text) -> byte_size(Text) =< 1100;
    (_) -> true
end, maps:values(Word)) andalso has_known_match(Word).

has_known_match(#{match := Match}) ->
    maps:keys(maps:without([alarm, node, group, family, severity], Match)) =:= [];
has_known_match(_) -> true.
