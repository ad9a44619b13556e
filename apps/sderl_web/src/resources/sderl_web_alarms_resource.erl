%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_alarms_resource).
-moduledoc """
Alarms, silences and rules under `/api/v1`: the operations of `m:sderl_web_alarms` as paths.

Who says something is the token's name, unless `by` says another.
""".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, object/2, map/1, list/1, text/0, whole/0, number/0, flag/0,
                           unix_ms/0, any/0, word/1, null_or/1, ref/1]).

%% ---------------------------------------------------------------- the paths

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    Alarm = [~"alarms", id(alarm)],
    [
        #{op => alarms, method => get, path => [~"alarms"], role => viewer,
          summary => ~"Alarms, the worst first, and then those that are over",
          query => without([~"limit", ~"offset"], sderl_web_protocol:fields(alarms)),
          pages => {500, 100},
          answer => {200, object(#{alarms => list(ref(~"Alarm")), total => whole(),
                                   next => null_or(text())})}},
        #{op => alarm, method => get, path => Alarm, role => viewer,
          summary => ~"One alarm, with what people said of it",
          answer => {200, ref(~"Alarm")}},
        says(acknowledge, Alarm ++ [~"acknowledge"], 200,
             ~"Says that somebody has seen an alarm"),
        says(reopen, Alarm ++ [~"reopen"], 200, ~"Takes an acknowledgement back"),
        (says(comment, Alarm ++ [~"comments"], 201, ~"Says something about an alarm"))
            #{creates => true},
        #{op => silences, method => get, path => [~"silences"], role => viewer,
          summary => ~"The silences that hold, those that end first first",
          answer => {200, object(#{silences => list(ref(~"Silence"))})}},
        #{op => silence, method => post, path => [~"silences"], role => operator,
          summary => ~"Tells nobody of some alarms for a while",
          body => own(silence), creates => true,
          answer => {201, ref(~"Silence")}},
        #{op => unsilence, method => delete, path => [~"silences", id(silence)], role => operator,
          summary => ~"Ends a silence",
          query => [by()], answer => 204},
        #{op => alarm_rules, method => get, path => [~"rules"], role => viewer,
          summary => ~"The rules in force, the metrics that rules may name, and the routes",
          answer => {200, ref(~"Rules")}},
        #{op => reload_rules, method => post, path => [~"rules", ~"reload"], role => admin,
          summary => ~"Reads the file of rules again",
          answer => 204, problems => [bad_request]}
    ].

says(Op, Path, Status, Summary) ->
    #{op => Op, method => post, path => Path, role => operator, summary => Summary,
      body => without([~"id"], own(Op)), conditional => true, problems => [conflict],
      answer => {Status, ref(~"Alarm")}}.

id(Of) ->
    About = case Of of alarm -> alarm; silence -> unsilence end,
    lists:keyfind(~"id", 1, sderl_web_protocol:fields(About)).

by() -> {~"by", by, {text, 64}, none}.

own(Op) -> lists:keyreplace(~"by", 1, sderl_web_protocol:fields(Op), by()).

without(Names, Fields) ->
    [Field || {Name, _, _, _} = Field <- Fields, not lists:member(Name, Names)].

%% ---------------------------------------------------------------- the shapes

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    Severity = word([minor, major]),
    Said = object(#{by => text(), at => unix_ms(), text => text()}),
    #{
        ~"Alarm" => object(#{
            id => text(), alarm => text(), place => map(text()), nodes => list(text()),
            groups => list(text()), severity => Severity, worst => Severity, since => unix_ms(),
            cleared => null_or(unix_ms()), count => whole(), seq => whole(), text => text(),
            cause => text(), remedy => text(), tags => list(text()), value => null_or(number()),
            threshold => null_or(number()), unit => text(),
            comments => list(object(#{id => text(), by => text(), at => unix_ms(),
                                      text => text()})),
            state => word([raised, acknowledged, cleared]), why_cleared => null_or(text()),
            acknowledged => null_or(Said), silenced => flag()
        }),
        ~"Silence" => object(#{
            id => text(), match => map(text()), by => text(), at => unix_ms(), until => unix_ms(),
            text => text()
        }),
        ~"Rules" => object(#{
            rules => list(object(#{
                alarm => text(), on => flag(), where => any(), tags => list(text())
            }, #{
                metric => text(), 'when' => word([above, below]), minor => null_or(number()),
                major => null_or(number()), for_s => number(), hysteresis => number(),
                cause => text(), remedy => text(), 'of' => word([node, group, family])
            })),
            metrics => list(object(#{
                name => text(), 'of' => word([node, group, family]), unit => text(),
                low => number(), high => any(), about => text()
            })),
            routes => list(object(#{name => text(), waiting => whole(), error => text(),
                                    counts => map(whole())})),
            problem => text(), delivers => flag(), kept => flag()
        })
    }.

%% ---------------------------------------------------------------- the answers

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(Op, Args, Context) ->
    try
        do(Op, Args, Context)
    catch
        exit:{noproc, _} ->
            {error, unavailable, "the alarms (application sderl_alarms) are not running: ask again"}
    end.

do(alarms, #{limit := Limit} = Args, _) ->
    All = sderl_alarms:list(maps:without([limit, cursor], Args)),
    {Page, Next} = sderl_web_page:cut(All, fun place/1, maps:get(cursor, Args, none), Limit),
    {ok, #{alarms => Page, total => length(All)}, #{next => Next}};
do(alarm, #{id := Id}, _) -> shown(Id);
do(Op, #{id := Id} = Args, #{name := Name, if_match := Tags})
  when Op =:= acknowledge; Op =:= reopen; Op =:= comment ->
    case sderl_alarms:say(Op, Id, maps:get(by, Args, Name), maps:get(text, Args, ~""),
                          condition(Tags)) of
        ok -> shown(Id);
        {error, unmet} ->
            {error, changed, "the alarm is not what If-Match says any more: read it again"};
        {error, Why} -> refused(Why)
    end;
do(silences, _, _) ->
    {ok, #{silences => sderl_alarms:silences()}};
do(silence, #{for_s := Seconds, text := Text} = Args, #{name := Name}) ->
    Match = maps:with([alarm, node, group, family, severity], Args),
    case sderl_alarms:silence(Match, Seconds, maps:get(by, Args, Name), Text) of
        {ok, Id} ->
            case [Silence || #{id := Is} = Silence <- sderl_alarms:silences(), Is =:= Id] of
                [Silence] -> {ok, Silence, #{location => [~"silences/", uri_string:quote(Id)]}};
                [] -> {error, conflict, "the silence was made, and somebody has ended it already"}
            end;
        {error, Why} -> refused(Why)
    end;
do(unsilence, #{id := Id} = Args, #{name := Name}) ->
    case sderl_alarms:unsilence(Id, maps:get(by, Args, Name)) of
        ok -> done;
        {error, Why} -> refused(Why)
    end;
do(alarm_rules, _, _) ->
    {ok, sderl_web_alarms:rules()};
do(reload_rules, _, _) ->
    case sderl_alarms:reload() of
        ok -> done;
        {error, Problems} -> {error, bad_request, lists:join("\n", Problems)}
    end.

shown(Id) ->
    case sderl_alarms:find(Id) of
        {ok, Alarm} ->
            {ok, Alarm, #{tag => tagged(Alarm),
                          location => [~"alarms/", uri_string:quote(Id)]}};
        {error, Why} -> refused(Why)
    end.

%% Not what is measured: the number may be another each second, and what somebody decides upon is
%% the alarm's state and what others said.
tagged(Alarm) -> maps:without([value, text, seq], Alarm).

condition(none) -> always;
condition(Tags) ->
    fun(Alarm) -> sderl_web_tag:is_listed(sderl_web_tag:of_term(tagged(Alarm)), Tags) end.

%% As sderl_alarms:list/1 puts them.
place(#{state := cleared, seq := Seq}) -> [2, 0, 1, -Seq];
place(#{state := State, severity := Severity, seq := Seq}) ->
    [1, case State of raised -> 0; acknowledged -> 1 end,
     case Severity of major -> 1; minor -> 2 end, -Seq].

refused(not_found) -> {error, not_found, sderl_alarms:format_error(not_found)};
refused(Why) when Why =:= not_raised; Why =:= too_many ->
    {error, conflict, sderl_alarms:format_error(Why)};
refused(Why) -> {error, bad_request, sderl_alarms:format_error(Why)}.
