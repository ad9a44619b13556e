%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_protocol).
-moduledoc """
The JSON protocol of the dashboard's WebSocket: checks what a browser asks, and frames the answers.
Pure; `docs/dashboard.md` has every message with an example.

Nothing that a browser sends becomes an atom: the words that are known are looked up here, and
everything else stays a binary. What is refused is told with the term that is wrong and with what
belongs there.
""".

-export([decode/1, reply/2, refusal/3, error_message/2, units/0]).
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
    | {pause | resume | range | recordings | live, #{}}
    | {at, #{t := sderl_mon_types:t()}}
    | {series, #{
        'of' := sderl_mon_types:what(),
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
    | {open, #{recording := binary()}}
    | {record, #{on := boolean()}}.

-doc "Why a request was not answered, in words for programs.".
-type code() :: bad_request | not_found | forbidden | unavailable | too_large.

%% Times and ids are exact in a browser up to here.
-define(MOST, 9_007_199_254_740_991).
-define(TEXT, 255).
-define(LONG_TEXT, 4096).

-doc "All numbers that a node may have, with their units for people.".
-spec units() -> #{atom() => binary()}.
units() ->
    #{Metric => sderl_mon_types:unit(Metric) || Metric <- sderl_mon_types:metrics() ++ extra()}.

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
    case json(Text) of
        {ok, #{} = Object} -> object(Object);
        {ok, _} -> {fatal, "a request is a JSON object, such as {\"ref\":1,\"op\":\"range\"}"};
        error ->
            {fatal, "this frame is not JSON: a request is one JSON object in a text frame, its "
                    "numbers of at most 32 characters"}
    end.

%% Numbers of ten thousand digits take long, and nobody means them.
json(Text) ->
    Number = fun(Convert) -> fun(Digits) when byte_size(Digits) =< 32 -> Convert(Digits) end end,
    Decoders = #{integer => Number(fun binary_to_integer/1),
                 float => Number(fun binary_to_float/1)},
    try json:decode(Text, [], Decoders) of
        {Value, _, Rest} ->
            case is_blank(Rest) of
                true -> {ok, Value};
                false -> error
            end
    catch
        error:_ -> error
    end.

is_blank(<<C, Rest/binary>>) when C =:= $\s; C =:= $\t; C =:= $\r; C =:= $\n -> is_blank(Rest);
is_blank(Rest) -> Rest =:= <<>>.

object(Object) ->
    case maps:get(<<"ref">>, Object, null) of
        Ref when is_integer(Ref), abs(Ref) =< ?MOST -> operation(Ref, Object);
        Ref when is_binary(Ref), byte_size(Ref) =< ?TEXT -> operation(Ref, Object);
        null -> operation(null, Object);
        Other ->
            {refused, null,
             wrong(<<"ref">>, Other, "a whole number or a text of at most 255 bytes")}
    end.

operation(Ref, Object) ->
    case maps:get(<<"op">>, Object, null) of
        null ->
            {refused, Ref, ["op is missing: it is one of ", op_names()]};
        Op ->
            case lists:keyfind(Op, 1, operations()) of
                {_, Name, Fields} ->
                    fields(Ref, Name, Fields, maps:without([<<"ref">>, <<"op">>], Object));
                false -> {refused, Ref, wrong(<<"op">>, Op, ["one of ", op_names()])}
            end
    end.

op_names() -> lists:join(", ", [Op || {Op, _, _} <- operations()]).

%% Every operation with its fields: name in JSON, name here, what it is, and what it is when left
%% out (or required).
operations() ->
    Node = {<<"node">>, node, {text, ?TEXT}, required},
    Group = {<<"group">>, group, {text, ?TEXT}, required},
    Limit = fun(Default) -> {<<"limit">>, limit, {whole, 1, 500}, Default} end,
    Time = fun(Name, Key, Default) -> {Name, Key, {whole, 0, ?MOST}, Default} end,
    [
        {<<"watch">>, watch, [Node]},
        {<<"unwatch">>, unwatch, [Node]},
        {<<"pause">>, pause, []},
        {<<"resume">>, resume, []},
        {<<"range">>, range, []},
        {<<"at">>, at, [Time(<<"t">>, t, required)]},
        {<<"series">>, series, [
            {<<"of">>, 'of', what, required},
            Time(<<"from">>, from, required),
            Time(<<"to">>, to, required),
            {<<"points">>, points, {whole, 1, 2000}, 300}
        ]},
        {<<"traffic">>, traffic, [
            {<<"by">>, by, {word, [link, edge, gateway, group, routed]}, required},
            {<<"window_s">>, window_s, {whole, 1, 604_800}, 60},
            Time(<<"t">>, t, now)
        ]},
        {<<"events">>, events, [
            {<<"before">>, before, {whole, 0, ?MOST}, none},
            Limit(100),
            {<<"node">>, node, {text, ?TEXT}, none},
            {<<"group">>, group, {text, ?TEXT}, none},
            {<<"kinds">>, kinds, {texts, 64, 64}, none},
            Time(<<"from">>, from, none),
            Time(<<"to">>, to, none)
        ]},
        {<<"names">>, names, [Group, {<<"prefix">>, prefix, {text, ?LONG_TEXT}, <<>>}, Limit(100)]},
        {<<"lookup">>, lookup, [Group, {<<"name">>, name, {text, ?LONG_TEXT}, required}]},
        {<<"process">>, process, [Node, {<<"pid">>, pid, {text, 64}, required}]},
        {<<"trace">>, trace, [
            Node,
            {<<"on">>, on, flag, required},
            {<<"sample">>, sample, share, 0.01},
            {<<"max_per_s">>, max_per_s, {whole, 1, 20_000}, 1000},
            {<<"for_s">>, for_s, {whole, 1, 86_400}, 600},
            {<<"confirm">>, confirm, flag, false}
        ]},
        {<<"recordings">>, recordings, []},
        {<<"open">>, open, [{<<"recording">>, recording, {text, ?TEXT}, required}]},
        {<<"live">>, live, []},
        {<<"record">>, record, [{<<"on">>, on, flag, required}]}
    ].

fields(Ref, Op, Fields, Given) ->
    case maps:keys(maps:without([Name || {Name, _, _, _} <- Fields], Given)) of
        [] ->
            case values(Fields, Given, #{}) of
                {ok, Args} -> {ok, Ref, {Op, Args}};
                {error, Why} -> {refused, Ref, [atom_to_binary(Op), ": ", Why]}
            end;
        [Unknown | _] ->
            Known = [Name || {Name, _, _, _} <- Fields],
            {refused, Ref, [atom_to_binary(Op), " has no field ", shown(Unknown), known(Known)]}
    end.

known([]) -> ": it has none";
known(Known) -> ["; it has ", lists:join(", ", Known)].

values([], _, Args) ->
    {ok, Args};
values([{Name, Key, Type, Default} | Fields], Given, Args) ->
    case {maps:get(Name, Given, null), Default} of
        {null, required} ->
            {error, [Name, " is missing: it is ", expected(Type)]};
        {null, none} ->
            values(Fields, Given, Args);
        {null, _} ->
            values(Fields, Given, Args#{Key => Default});
        {Value, _} ->
            case value(Type, Value) of
                {ok, Checked} -> values(Fields, Given, Args#{Key => Checked});
                {error, Why} -> {error, [Name, ".", Why]};
                error -> {error, wrong(Name, Value, expected(Type))}
            end
    end.

value({text, Most}, Text) when is_binary(Text), byte_size(Text) =< Most -> {ok, Text};
value({whole, Min, Max}, N) when is_integer(N), N >= Min, N =< Max -> {ok, N};
%% A browser's numbers have no type: 5.0 may come as it is.
value({whole, _, _} = Type, F) when is_float(F), trunc(F) == F, abs(F) =< ?MOST ->
    value(Type, trunc(F));
value(share, N) when is_number(N), N > 0, N =< 1 -> {ok, N};
value(flag, Flag) when is_boolean(Flag) -> {ok, Flag};
value({word, Words}, Text) when is_binary(Text) -> word(Text, Words);
value({texts, Count, Most}, List) when is_list(List) ->
    case short(List, Count)
         andalso lists:all(fun(Text) -> is_binary(Text) andalso byte_size(Text) =< Most end,
                           List) of
        true -> {ok, List};
        false -> error
    end;
value(words, List) when is_list(List) ->
    Words = [word(Text, maps:keys(units())) || true <- [short(List, 32)], Text <- List],
    case Words =/= [] andalso lists:all(fun(Word) -> Word =/= error end, Words) of
        true -> {ok, [Word || {ok, Word} <- Words]};
        false -> error
    end;
value(what, #{<<"kind">> := Kind} = Given) when is_binary(Kind) ->
    case lists:keyfind(Kind, 1, kinds()) of
        {_, Name, Fields} ->
            case values(Fields, Given, #{}) of
                {ok, _} when Fields =:= [] -> {ok, Name};
                {ok, Args} ->
                    {ok, list_to_tuple([Name | [maps:get(Key, Args) || {_, Key, _, _} <- Fields]])};
                {error, _} = Error -> Error
            end;
        false ->
            {error,
             wrong(<<"kind">>, Kind, ["one of ", lists:join(", ", [K || {K, _, _} <- kinds()])])}
    end;
value(_, _) ->
    error.

short(List, Most) -> length(lists:sublist(List, Most + 1)) =< Most.

word(Text, Words) ->
    case [Word || Word <- Words, atom_to_binary(Word) =:= Text] of
        [Word] -> {ok, Word};
        [] -> error
    end.

%% What a series may be of; the fields in the order of the tuple that asks the hub.
kinds() ->
    Text = fun(Name, Key) -> {Name, Key, {text, ?TEXT}, required} end,
    [
        {<<"node">>, node,
         [Text(<<"node">>, node), {<<"metrics">>, metrics, words, sderl_mon_types:metrics()}]},
        {<<"link">>, link, [Text(<<"from">>, from), Text(<<"to">>, to)]},
        {<<"group">>, group, [Text(<<"group">>, group)]},
        {<<"edge">>, edge, [Text(<<"from">>, from), Text(<<"to">>, to)]},
        {<<"gateway">>, gateway, [Text(<<"node">>, node)]},
        {<<"routed">>, routed, [Text(<<"from">>, from), Text(<<"to">>, to)]},
        {<<"total">>, total, []}
    ].

expected({text, Most}) -> ["a text of at most ", integer_to_list(Most), " bytes"];
expected({whole, Min, ?MOST}) -> ["a whole number from ", integer_to_list(Min), " on"];
expected({whole, Min, Max}) ->
    ["a whole number from ", integer_to_list(Min), " to ", integer_to_list(Max)];
expected(share) -> "a number above 0 and at most 1";
expected(flag) -> "true or false";
expected({word, Words}) -> ["one of ", lists:join(", ", [atom_to_binary(Word) || Word <- Words])];
expected({texts, Count, Most}) ->
    ["a list of at most ", integer_to_list(Count), " texts of at most ", integer_to_list(Most),
     " bytes"];
expected(words) ->
    ["a list of some of ",
     lists:join(", ", [atom_to_binary(Word) || Word <- lists:sort(maps:keys(units()))])];
expected(what) -> ["an object with kind, one of ", lists:join(", ", [K || {K, _, _} <- kinds()])].

wrong(Name, Value, Expected) -> [Name, " cannot be ", shown(Value), ": it is ", Expected].

%% A nested list of 30,000 levels is not shown, nor a text of 60 KB.
shown(Text) when is_binary(Text), byte_size(Text) =< 80 -> [$", Text, $"];
shown(Text) when is_binary(Text) -> "such a long text";
shown(List) when is_list(List) -> "a list";
shown(Map) when is_map(Map) -> "an object";
shown(Value) -> io_lib:format("~w", [Value]).

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

-doc "What the socket says before it closes because of what came.".
-spec error_message(code(), unicode:chardata()) -> iodata().
error_message(Code, Why) -> [~"{\"type\":\"error\",\"error\":", problem(Code, Why), $}].

problem(Code, Why) ->
    json:encode(#{code => Code, message => sderl_web_json:text(Why)}).
