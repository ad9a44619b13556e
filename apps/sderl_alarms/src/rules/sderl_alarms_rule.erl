%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_rule).
-moduledoc """
One rule: which alarm, where, from which value on, for how long. Pure.

A rule of the file changes a built-in alarm or makes a new one; later rules with a new name take
their defaults from the first. A rule is refused if it could never raise its alarm, would always
raise it, or could never clear it: the range of its metric shows that (`m:sderl_alarms_metrics`).
""".

-export([check/2, built_in/0, holds_for/3, hits/2]).
-export_type([rule/0, settings/0, where/0, problem/0]).

-import(sderl_alarms_words, [text/2, shown/1, suggestion/2, list/1]).

-doc "When an alarm of a measured value is raised and cleared, and its texts.".
-type settings() :: #{
    alarm := binary(),
    metric := binary(),
    'when' := above | below,
    minor := number() | none,
    major := number() | none,
    for_s := number(),
    hysteresis := number(),
    cause := binary(),
    remedy := binary(),
    tags := [binary()]
}.

-doc """
Where a rule holds: `all`, or for nodes and groups by patterns, in which `*` stands for any text. A
family is the part of a node's name before the number: `web` of `web12@host` and `web-12@host`.
""".
-type where() :: all | #{nodes | groups | families => [binary()]}.

-doc """
A rule that was checked: of a measured value, with the metric's key and kind of place, or of a
finding.
""".
-type rule() ::
    #{kind := value, alarm := binary(), on := boolean(), where := where(),
      'of' := sderl_alarms_metrics:place_kind(), key := sderl_alarms_metrics:key(),
      unit := binary(), settings := settings()}
    | #{kind := finding, alarm := binary(), on := boolean(), where := where(),
        tags := [binary()]}.

-doc "The wrong key of a rule, and a sentence that says what is wrong and what to do.".
-type problem() :: {Key :: binary(), binary()}.

-define(KEYS, [~"alarm", ~"nodes", ~"groups", ~"families", ~"off", ~"metric", ~"when", ~"minor",
               ~"major", ~"for_s", ~"hysteresis", ~"cause", ~"remedy", ~"tags"]).
-define(FINDING_KEYS, [~"alarm", ~"nodes", ~"groups", ~"families", ~"off", ~"tags"]).
-define(MOST, 1.0e15).
-define(MOST_S, 604_800).
-define(MOST_PATTERNS, 100).

-doc "The built-in rules, including those of findings.".
-spec built_in() -> [rule()].
built_in() ->
    [value_rule(Settings, true, all) || Settings <- sderl_alarms_builtin:rules()] ++
        [#{kind => finding, alarm => Alarm, on => On, where => all, tags => Tags}
         || #{alarm := Alarm, on := On, tags := Tags} <- sderl_alarms_builtin:findings()].

value_rule(#{alarm := Alarm, metric := Metric} = Settings, On, Where) ->
    {ok, #{key := Key, 'of' := Of, unit := Unit}} = sderl_alarms_metrics:find(Metric),
    #{kind => value, alarm => Alarm, on => On, where => Where, 'of' => Of, key => Key,
      unit => Unit, settings => Settings}.

-doc """
A rule from an object of the file, or all errors in it. `New` has the settings of the alarms that
rules before it have made.
""".
-spec check(term(), New :: #{binary() => settings()}) -> {ok, rule()} | {error, [problem(), ...]}.
check(#{~"alarm" := Alarm} = Given, New) when is_binary(Alarm) ->
    case {re:run(Alarm, "\\A[a-z][a-z0-9_]{0,63}\\z", [{capture, none}]),
          sderl_alarms_builtin:finding(Alarm)} of
        {nomatch, _} ->
            {error, [{~"alarm", text("~ts is not a name of an alarm; write small letters, digits "
                                     "and _, 64 at most", [shown(Alarm)])}]};
        {match, {ok, Finding}} -> check_finding(Finding, Given);
        {match, error} -> check_value(Alarm, base(Alarm, New), Given)
    end;
check(#{~"alarm" := Other}, _) ->
    {error, [{~"alarm", text("~ts is not a name of an alarm; write a text", [shown(Other)])}]};
check(#{}, _) ->
    {error, [{~"alarm", ~"is missing; write the name of a built-in alarm or a new one"}]};
check(Other, _) ->
    {error, [{~"", text("~ts is not a rule; write an object with alarm", [shown(Other)])}]}.

check_finding(#{alarm := Alarm, on := On, tags := Tags}, Given) ->
    Unknown = [{Key, text("does not go with ~ts, which is a finding of the monitoring; only ~ts "
                          "do. Its thresholds are those of sderl_mon",
                          [Alarm, list(?FINDING_KEYS)])}
               || Key := _ <- maps:iterator(Given, ordered),
                  not lists:member(Key, ?FINDING_KEYS)],
    {Where, WrongWhere} = where(Given),
    {[Off, NewTags], Wrong} = values([{~"off", flag, not On}, {~"tags", tags, Tags}], Given),
    case Unknown ++ WrongWhere ++ Wrong of
        [] -> {ok, #{kind => finding, alarm => Alarm, on => not Off, where => Where,
                     tags => NewTags}};
        Problems -> {error, Problems}
    end.

check_value(Alarm, Base, Given) ->
    Unknown = [{Key, text("is not a key of a rule~ts", [suggestion(Key, ?KEYS)])}
               || Key := _ <- maps:iterator(Given, ordered), not lists:member(Key, ?KEYS)],
    {Where, WrongWhere} = where(Given),
    Fields = [{~"metric", metric, metric}, {~"when", direction, 'when'},
              {~"minor", level, minor}, {~"major", level, major}, {~"for_s", seconds, for_s},
              {~"hysteresis", share, hysteresis}, {~"cause", text, cause},
              {~"remedy", text, remedy}, {~"tags", tags, tags}],
    {Values, Wrong} = values([{Name, Type, map_get(Key, Base)} || {Name, Type, Key} <- Fields],
                             Given),
    {[Off], WrongOff} = values([{~"off", flag, false}], Given),
    Settings = maps:from_list([{alarm, Alarm}
                               | lists:zip([Key || {_, _, Key} <- Fields], Values)]),
    case Unknown ++ WrongWhere ++ Wrong ++ WrongOff of
        [] -> sensible(Settings, not Off, Where);
        Problems -> {error, Problems}
    end.

%% The defaults: of the built-in alarm of that name, of its first rule, or of a new alarm.
base(Alarm, New) ->
    case {New, [Base || #{alarm := Is} = Base <- sderl_alarms_builtin:rules(), Is =:= Alarm]} of
        {_, [Base]} -> Base;
        {#{Alarm := Base}, []} -> Base;
        {#{}, []} ->
            #{metric => missing, 'when' => above, minor => none, major => none, for_s => 15,
              hysteresis => 0.1, cause => ~"", remedy => ~"", tags => []}
    end.

%% ---------------------------------------------------------------- values

values(Fields, Given) ->
    lists:foldr(fun({Name, Type, Default}, {Values, Problems}) ->
        case value(Type, maps:get(Name, Given, default)) of
            default -> {[Default | Values], Problems};
            {ok, Value} -> {[Value | Values], Problems};
            {error, Why} -> {[Default | Values], [{Name, Why} | Problems]}
        end
    end, {[], []}, Fields).

value(_, default) -> default;
value(flag, Flag) when is_boolean(Flag) -> {ok, Flag};
value(flag, Other) -> wrong(Other, "write true or false");
value(direction, ~"above") -> {ok, above};
value(direction, ~"below") -> {ok, below};
value(direction, Other) -> wrong(Other, "write \"above\" or \"below\"");
value(level, null) -> {ok, none};
value(level, N) when is_number(N), abs(N) =< ?MOST -> {ok, N};
value(level, Other) ->
    wrong(Other, "write a number of at most 1.0e15, or null for no such threshold");
value(seconds, N) when is_number(N), N >= 0, N =< ?MOST_S -> {ok, N};
value(seconds, Other) -> wrong(Other, "write seconds, 0 to 604800");
value(share, N) when is_number(N), N >= 0, N < 1 -> {ok, N};
value(share, Other) ->
    wrong(Other, "write a share of the threshold, from 0 to less than 1");
value(text, Text) when is_binary(Text), byte_size(Text) =< 2000 -> {ok, Text};
value(text, Other) -> wrong(Other, "write a text of at most 2000 bytes");
value(metric, Name) when is_binary(Name) ->
    case sderl_alarms_metrics:find(Name) of
        {ok, _} -> {ok, Name};
        error -> {error, text("there is no metric ~ts~ts; bin/sderl alarms rules lists all",
                              [shown(Name), suggestion(Name, sderl_alarms_metrics:names())])}
    end;
value(metric, Other) -> wrong(Other, "write the name of a metric");
value(tags, List) when is_list(List), length(List) =< 10 ->
    case [Tag || Tag <- List, not is_tag(Tag)] of
        [] -> {ok, lists:usort(List)};
        [Tag | _] -> wrong(Tag, "a tag is a text of 1 to 32 small letters, digits and _")
    end;
value(tags, Other) -> wrong(Other, "write a list of at most ten tags, such as [\"op\"]").

is_tag(Tag) when is_binary(Tag) ->
    re:run(Tag, "\\A[a-z0-9_]{1,32}\\z", [{capture, none}]) =:= match;
is_tag(_) -> false.

wrong(Value, What) -> {error, text("~ts does not fit; ~ts", [shown(Value), What])}.

where(Given) ->
    Keys = [{~"nodes", nodes}, {~"groups", groups}, {~"families", families}],
    {Found, Problems} = lists:foldl(fun({Name, Key}, {Where, Wrong}) ->
        case Given of
            #{Name := Patterns} ->
                case patterns(Patterns) of
                    {ok, List} -> {Where#{Key => List}, Wrong};
                    {error, Why} -> {Where, [{Name, Why} | Wrong]}
                end;
            #{} -> {Where, Wrong}
        end
    end, {#{}, []}, Keys),
    {case map_size(Found) of 0 -> all; _ -> Found end, lists:reverse(Problems)}.

patterns([_ | _] = List) when length(List) =< ?MOST_PATTERNS ->
    case [P || P <- List, not (is_binary(P) andalso P =/= ~"" andalso byte_size(P) =< 255)] of
        [] -> {ok, List};
        [Bad | _] -> wrong(Bad, "a pattern is a text of 1 to 255 bytes, in which * is any text")
    end;
patterns(Other) ->
    wrong(Other, "write a list of 1 to 100 patterns, such as [\"web*\"]; leave it out for all").

%% ---------------------------------------------------------------- never, or always, raised

sensible(#{metric := missing}, _, _) ->
    {error, [{~"metric", text("is missing: the alarm is no built-in one, and needs a metric and "
                              "a threshold (minor, major); bin/sderl alarms rules lists the "
                              "metrics", [])}]};
sensible(#{minor := none, major := none}, _, _) ->
    {error, [{~"minor", ~"without minor and major it can never be raised; write one of them"}]};
sensible(#{metric := Metric} = Settings, On, Where) ->
    {ok, #{'of' := Of} = About} = sderl_alarms_metrics:find(Metric),
    Problems = order(Settings) ++
        lists:append([level(Name, map_get(Key, Settings), Settings, About)
                      || {Name, Key} <- [{~"minor", minor}, {~"major", major}]]) ++
        elsewhere(Of, Where, Metric),
    case Problems of
        [] -> {ok, value_rule(Settings, On, Where)};
        _ -> {error, Problems}
    end.

order(#{'when' := above, minor := Minor, major := Major}) when is_number(Minor), is_number(Major),
                                                               Major =< Minor ->
    [{~"minor", text("~w can never be minor: from ~w on it is major; write less than that",
                     [Minor, Major])}];
order(#{'when' := below, minor := Minor, major := Major}) when is_number(Minor), is_number(Major),
                                                               Major >= Minor ->
    [{~"minor", text("~w can never be minor: from ~w down it is major; write more than that",
                     [Minor, Major])}];
order(_) ->
    [].

level(_, none, _, _) ->
    [];
level(Name, Level, #{'when' := above, hysteresis := Share}, #{name := Metric, low := Low,
                                                              high := High}) ->
    [{Name, text("~w can never be reached: ~ts is at most ~w; write at most that",
                 [Level, Metric, High])} || High =/= infinity, Level > High] ++
        [{Name, text("~w is always reached: ~ts is at least ~w; write more than that",
                     [Level, Metric, Low])} || Level =< Low] ++
        [{Name, text("~w can never be cleared: less than ~w is needed and ~ts is at least ~w; "
                     "write a smaller hysteresis", [Level, Level * (1 - Share), Metric, Low])}
         || Level > Low, Level * (1 - Share) =< Low];
level(Name, Level, #{'when' := below, hysteresis := Share}, #{name := Metric, low := Low,
                                                              high := High}) ->
    [{Name, text("~w can never be reached: ~ts is at least ~w; write at least that",
                 [Level, Metric, Low])} || Level < Low] ++
        [{Name, text("~w is always reached: ~ts is at most ~w; write less than that",
                     [Level, Metric, High])} || High =/= infinity, Level >= High] ++
        [{Name, text("~w can never be cleared: more than ~w is needed and ~ts is at most ~w; "
                     "write a smaller hysteresis or threshold",
                     [Level, Level * (1 + Share), Metric, High])}
         || High =/= infinity, Level < High, Level * (1 + Share) >= High].

%% Nodes are also known by their groups and families; groups and families by their own names alone.
elsewhere(node, _, _) -> [];
elsewhere(_, all, _) -> [];
elsewhere(group, Where, Metric) ->
    [{~"nodes", text("~ts is a number of groups, so the rule would hold nowhere; write groups",
                     [Metric])} || is_map_key(nodes, Where) orelse is_map_key(families, Where)];
elsewhere(family, Where, Metric) ->
    [{atom_to_binary(Key),
      text("~ts is a number of families, so the rule would hold nowhere; write families",
           [Metric])} || Key <- [nodes, groups], is_map_key(Key, Where)].

%% ---------------------------------------------------------------- where

-doc """
Whether a rule holds for a node (given with the groups that it is in), a group or a family. All keys
of `where` must match.
""".
-spec holds_for(where(), sderl_alarms_metrics:place_kind(),
                {binary(), Groups :: [binary()]}) -> boolean().
holds_for(all, _, _) -> true;
holds_for(Where, node, {Node, Groups}) ->
    lists:all(fun
        ({nodes, Patterns}) -> any(Patterns, [Node]);
        ({groups, Patterns}) -> any(Patterns, Groups);
        ({families, Patterns}) -> any(Patterns, [sderl_mon_types:family(Node)])
    end, maps:to_list(Where));
holds_for(#{groups := Patterns} = Where, group, {Group, _}) ->
    map_size(Where) =:= 1 andalso any(Patterns, [Group]);
holds_for(#{families := Patterns} = Where, family, {Family, _}) ->
    map_size(Where) =:= 1 andalso any(Patterns, [Family]);
holds_for(_, _, _) -> false.

any(Patterns, Texts) -> lists:any(fun(P) -> lists:any(fun(T) -> hits(P, T) end, Texts) end,
                                  Patterns).

-doc "Whether a text matches a pattern, in which `*` is any text.".
-spec hits(Pattern :: binary(), Text :: binary()) -> boolean().
hits(Pattern, Text) ->
    case binary:split(Pattern, ~"*", [global]) of
        [Whole] -> Whole =:= Text;
        [First | Rest] ->
            Size = byte_size(First),
            case Text of
                <<First:Size/binary, Left/binary>> -> parts(Rest, Left);
                _ -> false
            end
    end.

%% Matches the parts between stars, each at its first place: if the pattern matches at all, it does
%% so in this way.
parts([Last], Text) ->
    Size = byte_size(Last),
    byte_size(Text) >= Size
        andalso binary:part(Text, byte_size(Text), -Size) =:= Last;
parts([~"" | Rest], Text) ->
    parts(Rest, Text);
parts([Part | Rest], Text) ->
    case binary:match(Text, Part) of
        {At, Size} -> parts(Rest, binary:part(Text, At + Size, byte_size(Text) - At - Size));
        nomatch -> false
    end.
