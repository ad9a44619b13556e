%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_protocol).
-moduledoc """
The JSON protocol of the dashboard's WebSocket: checks what a browser asks, and frames the answers.
Pure; `docs/dashboard.md` has every message with an example.

Nothing that a browser sends becomes an atom: the words that are known are looked up here, and
everything else stays a binary. What is refused is told with the term that is wrong and with what
belongs there.
""".

-export([decode/1, fields/1, role/1, reply/2, refusal/3, error_message/2, read_only/1, units/0]).
-export_type([request/0, ref/0, code/0]).

-doc """
What a request and its answer are matched by: a whole number or a text, chosen by the browser;
`null` where it gave none.
""".
-type ref() :: integer() | binary() | null.

-doc """
A checked request: what is asked and its arguments, from the socket to the process that answers
(`m:sderl_web_ask`). Arguments that the browser left out have their defaults; where nothing is the
default they are not there.
""".
-type request() ::
    {watch | unwatch, #{node := sderl_mon_types:id()}}
    | {pause | resume | range | recordings | live | operations, #{}}
    | {at, #{t := sderl_mon_types:t()}}
    | {series, #{
        'of' := sderl_mon_types:what() | {over, sderl_web_front:place(), Metric :: binary()},
        from := sderl_mon_types:t(),
        to := sderl_mon_types:t(),
        points := pos_integer()
    }}
    | {traffic, #{
        by := sderl_mon_types:traffic_by(),
        window_s := pos_integer(),
        t := now | sderl_mon_types:t()
    }}
    | {events, sderl_mon_types:event_filter()}
    | {log, sderl_mon_log_filter:options()}
    | {names, #{group := sderl_mon_types:id(), prefix := binary(), limit := pos_integer()}}
    | {lookup, #{group := sderl_mon_types:id(), name := binary()}}
    | {process, #{node := sderl_mon_types:id(), pid := binary()}}
    | {trace, #{
        node := sderl_mon_types:id(),
        on := boolean(),
        sample := number(),
        max_per_s := pos_integer(),
        for_s := pos_integer(),
        confirm := boolean()
    }}
    | {alarms, #{
        state => raised | acknowledged | cleared,
        severity => minor | major,
        tag | alarm | node | group | family => binary(),
        limit := pos_integer(),
        offset := non_neg_integer()
    }}
    | {alarm, #{id := binary()}}
    | {acknowledge | comment, #{id := binary(), by := binary(), text := binary()}}
    | {reopen | unsilence, #{id := binary(), by := binary()}}
    | {silences | alarm_rules | reload_rules, #{}}
    | {silence, #{
        alarm | node | group | family => binary(),
        severity => minor | major,
        for_s := pos_integer(),
        by := binary(),
        text := binary()
    }}
    | {metrics, #{tag => binary()}}
    | {fronts, #{}}
    | {save_front, #{page := sderl_web_front:front()}}
    | {delete_front, #{name := binary(), rev := pos_integer()}}
    | {open, #{recording := binary()}}
    | {record, #{on := boolean()}}.

-doc "Why a request was not answered, in words for programs.".
-type code() :: bad_request | not_found | forbidden | unavailable | too_large | conflict.

%% Times and ids are exact in a browser up to here.
-define(MOST, 9_007_199_254_740_991).
-define(TEXT, 255).
-define(SHORT_TEXT, 1000).
-define(LONG_TEXT, 4096).

-doc "All numbers that a node may have, with their units for people.".
-spec units() -> #{atom() => binary()}.
units() ->
    #{Metric => sderl_mon_catalogue:unit(Metric) || Metric <- sderl_mon_types:metrics() ++ extra()}.

%% Kept for each node, asked for by series alone.
extra() ->
    [reds_s, gc_s, probe_pct, mon_bytes_s, mon_msgs_s, mem_processes, mem_binary, mem_ets, unregs_s,
     failed_regs_s].

%% Of requests

-doc """
A request out of a text frame. `{refused, ...}`: it is answered so, and the socket goes on. `fatal`:
no JSON object at all; the socket says so and closes.
""".
-spec decode(binary()) ->
    {ok, ref(), request()} | {refused, ref(), unicode:chardata()} | {fatal, unicode:chardata()}.
decode(Text) ->
    case sderl_web_parse:value(Text) of
        {ok, #{} = Object} -> request(Object);
        {ok, _} -> {fatal, "a request is a JSON object, such as {\"ref\":1,\"op\":\"range\"}"};
        {error, too_deep} ->
            {fatal, io_lib:format("this frame is nested deeper than ~w levels, which no request is",
                                  [sderl_web_parse:depth()])};
        {error, malformed} ->
            {fatal, "this frame is not JSON: a request is one JSON object in a text frame, its "
                    "numbers of at most 32 characters"}
    end.

-doc "The fields of an operation, for the same over HTTP.".
-spec fields(Op :: atom()) -> [sderl_web_fields:field()].
fields(Op) ->
    {_, _, _, Fields} = lists:keyfind(Op, 2, operations()),
    Fields.

-doc """
The role that an operation needs at least. What only looks needs a viewer; `trace` too, which says
what it would cost, and needs an operator to be switched on.
""".
-spec role(Op :: atom()) -> viewer | operator | admin.
role(Op) ->
    {_, _, Role, _} = lists:keyfind(Op, 2, operations()),
    Role.

request(Object) ->
    case maps:get(<<"ref">>, Object, null) of
        Ref when is_integer(Ref), abs(Ref) =< ?MOST -> operation(Ref, Object);
        Ref when is_binary(Ref), byte_size(Ref) =< ?TEXT -> operation(Ref, Object);
        null -> operation(null, Object);
        Other ->
            {refused, null,
             sderl_web_fields:wrong(<<"ref">>, Other,
                                    "a whole number or a text of at most 255 bytes")}
    end.

operation(Ref, Object) ->
    case maps:get(<<"op">>, Object, null) of
        null ->
            {refused, Ref, ["op is missing: it is one of ", op_names()]};
        Op ->
            case lists:keyfind(Op, 1, operations()) of
                {_, Name, _, Fields} ->
                    Given = maps:without([<<"ref">>, <<"op">>], Object),
                    case sderl_web_fields:check(Fields, Given) of
                        {ok, Args} -> {ok, Ref, {Name, Args}};
                        {error, Why} -> {refused, Ref, [Op, ": ", Why]}
                    end;
                false ->
                    {refused, Ref,
                     sderl_web_fields:wrong(<<"op">>, Op, ["one of ", op_names()])}
            end
    end.

op_names() -> lists:join(", ", [Op || {Op, _, _, _} <- operations()]).

%% Every operation with the role that it needs and its fields.
operations() ->
    Node = {<<"node">>, node, {text, ?TEXT}, required},
    Group = {<<"group">>, group, {text, ?TEXT}, required},
    Limit = fun(Default) -> {<<"limit">>, limit, {whole, 1, 500}, Default} end,
    Time = fun(Name, Key, Default) -> {Name, Key, time, Default} end,
    %% Of an alarm: its id, who says something and what; and which alarms, by patterns.
    Id = {<<"id">>, id, {text, ?LONG_TEXT}, required},
    By = {<<"by">>, by, {text, 64}, required},
    Text = {<<"text">>, text, {text, ?SHORT_TEXT}, <<>>},
    Concerned = [{<<"severity">>, severity, {word, [minor, major]}, none}
                 | [{Name, Key, {text, ?TEXT}, none}
                    || {Name, Key} <- [{<<"alarm">>, alarm}, {<<"node">>, node},
                                       {<<"group">>, group}, {<<"family">>, family}]]],
    [
        {<<"watch">>, watch, viewer, [Node]},
        {<<"unwatch">>, unwatch, viewer, [Node]},
        {<<"pause">>, pause, viewer, []},
        {<<"resume">>, resume, viewer, []},
        {<<"range">>, range, viewer, []},
        {<<"at">>, at, viewer, [Time(<<"t">>, t, required)]},
        {<<"series">>, series, viewer, [
            {<<"of">>, 'of', {choice, kinds()}, required},
            Time(<<"from">>, from, required),
            Time(<<"to">>, to, required),
            {<<"points">>, points, {whole, 1, 2000}, 300}
        ]},
        {<<"traffic">>, traffic, viewer, [
            {<<"by">>, by, {word, [link, edge, gateway, group, routed]}, required},
            {<<"window_s">>, window_s, {whole, 1, 604_800}, 60},
            Time(<<"t">>, t, now)
        ]},
        {<<"events">>, events, viewer, [
            {<<"before">>, before, {whole, 0, ?MOST}, none},
            Limit(100),
            {<<"node">>, node, {text, ?TEXT}, none},
            {<<"group">>, group, {text, ?TEXT}, none},
            {<<"kinds">>, kinds, {texts, 64, 64}, none},
            Time(<<"from">>, from, none),
            Time(<<"to">>, to, none)
        ]},
        {<<"log">>, log, viewer, [
            {<<"text">>, text, {text, ?TEXT}, none},
            {<<"node">>, node, {text, ?TEXT}, none},
            {<<"group">>, group, {text, ?TEXT}, none},
            {<<"level">>, level, {word, sderl_mon_log_message:levels()}, none},
            {<<"module">>, module, {text, ?TEXT}, none},
            Time(<<"from">>, from, none),
            Time(<<"to">>, to, none),
            {<<"before">>, before, {whole, 0, ?MOST}, none},
            {<<"after">>, 'after', {whole, 0, ?MOST}, none},
            Limit(100)
        ]},
        {<<"names">>, names, viewer,
         [Group, {<<"prefix">>, prefix, {text, ?LONG_TEXT}, <<>>}, Limit(100)]},
        {<<"lookup">>, lookup, viewer, [Group, {<<"name">>, name, {text, ?LONG_TEXT}, required}]},
        {<<"process">>, process, viewer, [Node, {<<"pid">>, pid, {text, 64}, required}]},
        {<<"trace">>, trace, viewer, [
            Node,
            {<<"on">>, on, flag, required},
            {<<"sample">>, sample, share, 0.01},
            {<<"max_per_s">>, max_per_s, {whole, 1, 20_000}, 1000},
            {<<"for_s">>, for_s, {whole, 1, 86_400}, 600},
            {<<"confirm">>, confirm, flag, false}
        ]},
        {<<"alarms">>, alarms, viewer, [
            {<<"state">>, state, {word, [raised, acknowledged, cleared]}, none},
            {<<"tag">>, tag, {text, ?TEXT}, none},
            Limit(100),
            {<<"offset">>, offset, {whole, 0, 10_000}, 0}
        ] ++ Concerned},
        {<<"alarm">>, alarm, viewer, [Id]},
        {<<"acknowledge">>, acknowledge, operator, [Id, By, Text]},
        {<<"reopen">>, reopen, operator, [Id, By]},
        {<<"comment">>, comment, operator,
         [Id, By, {<<"text">>, text, {text, ?SHORT_TEXT}, required}]},
        {<<"silences">>, silences, viewer, []},
        {<<"silence">>, silence, operator, Concerned ++
            [{<<"for_s">>, for_s, {whole, 1, 2_678_400}, required}, By, Text]},
        {<<"unsilence">>, unsilence, operator, [Id, By]},
        {<<"alarm_rules">>, alarm_rules, viewer, []},
        {<<"reload_rules">>, reload_rules, admin, []},
        {<<"metrics">>, metrics, viewer, [{<<"tag">>, tag, {text, ?TEXT}, none}]},
        {<<"fronts">>, fronts, viewer, []},
        {<<"save_front">>, save_front, operator, [{<<"page">>, page, front(), required}]},
        {<<"delete_front">>, delete_front, operator, [
            {<<"name">>, name, {text, ?TEXT}, required},
            {<<"rev">>, rev, {whole, 1, ?MOST}, required}
        ]},
        {<<"operations">>, operations, viewer, []},
        {<<"recordings">>, recordings, viewer, []},
        {<<"open">>, open, viewer, [{<<"recording">>, recording, {text, ?TEXT}, required}]},
        {<<"live">>, live, viewer, []},
        {<<"record">>, record, operator, [{<<"on">>, on, flag, required}]}
    ].

%% The kinds of series, with their fields in the order of the tuple that asks the hub.
kinds() ->
    Text = fun(Name, Key) -> {Name, Key, {text, ?TEXT}, required} end,
    [
        {<<"node">>, node,
         [Text(<<"node">>, node),
          {<<"metrics">>, metrics, {words, maps:keys(units())}, sderl_mon_types:metrics()}]},
        {<<"over">>, over, [{<<"place">>, place, place(), required},
                            {<<"metric">>, metric, {text, sderl_web_front:metric_bytes()},
                             required}]},
        {<<"link">>, link, [Text(<<"from">>, from), Text(<<"to">>, to)]},
        {<<"group">>, group, [Text(<<"group">>, group)]},
        {<<"edge">>, edge, [Text(<<"from">>, from), Text(<<"to">>, to)]},
        {<<"gateway">>, gateway, [Text(<<"node">>, node)]},
        {<<"routed">>, routed, [Text(<<"from">>, from), Text(<<"to">>, to)]},
        {<<"total">>, total, []}
    ].

%% Fields that their own modules check.
front() -> {checked, fun sderl_web_front:check/1, "a front page"}.
place() -> {checked, fun sderl_web_front:place/1, "an object with kind and name"}.

%% Of answers

-doc "The answer to a request: a result that is JSON already.".
-spec reply(ref(), Result :: iodata()) -> iodata().
reply(Ref, Result) ->
    [~"{\"type\":\"reply\",\"ref\":", json:encode(Ref), ~",\"ok\":true,\"result\":", Result, $}].

-doc "The answer to a request that cannot be done.".
-spec refusal(ref(), code(), unicode:chardata()) -> iodata().
refusal(Ref, Code, Why) ->
    [~"{\"type\":\"reply\",\"ref\":", json:encode(Ref), ~",\"ok\":false,\"error\":",
     problem(Code, Why), $}].

-doc "The refusal of a change on a read-only dashboard.".
-spec read_only(Op :: atom()) -> unicode:chardata().
read_only(Op) ->
    [atom_to_binary(Op), ": this dashboard is read-only; who starts it allows it with --write"].

-doc "What the socket says before it closes because of what came.".
-spec error_message(code(), unicode:chardata()) -> iodata().
error_message(Code, Why) -> [~"{\"type\":\"error\",\"error\":", problem(Code, Why), $}].

problem(Code, Why) ->
    json:encode(#{code => Code, message => sderl_web_json:text(Why)}).
