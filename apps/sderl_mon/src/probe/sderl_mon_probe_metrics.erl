%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_metrics).
-moduledoc """
Counts the metrics that the application of a node has of its own, as the monitoring nodes name them:
events of `telemetry`, in a table, and places in arrays of `counters` and `atomics`.

The handler of an event runs in the process that tells the event: it adds to one row of a table, and
never waits, sends or fails. Of a metric with tags there are at most `most_tags` rows; an event over
that is counted in the series `(other)`, so that the total stays right. Nothing of this exists
while no metric is wanted.
""".

-export([new/1, delete/1, events/1, read/1, handle/4]).
-export_type([metrics/0, values/0]).

-import(sderl_mon_probe_work, [now_us/0]).

-type wanted() :: sderl_mon_app_metrics:wanted().

-doc """
By series: a `total` grows from 0 since the counting began (that of a `sum` may also fall); a
`value` is of this moment.
""".
-type values() :: #{
    since := integer(),
    values := #{binary() => {total | value, number()}}
}.

-record(metrics, {
    since :: integer(),
    table :: ets:table(),
    events :: [{pos_integer(), wanted()}],
    counters :: [wanted()],
    %% For each counter that only grows: the last reading, and its growth so far.
    grown = #{} :: #{binary() => {integer(), integer()}},
    unread = 0 :: non_neg_integer()
}).

-opaque metrics() :: #metrics{}.

%% Larger ones are no measurements of anything, and would not stay exact in a sum.
-define(MOST, 1.0e15).
-define(MOST_READ, 1 bsl 60).
-define(MICRO, 1_000_000).
-define(VALUE_BYTES, 64).
-define(OTHER, '(other)').

-doc "Begins to count. The calling process owns the table. `error`: this is no list of metrics.".
-spec new(term()) -> {ok, metrics()} | error.
new(Wanted) ->
    try
        Numbered = lists:enumerate(Wanted),
        Events = [Event || {_, #{event := _}} = Event <- Numbered],
        Counters = [Metric || {_, #{counter := {_, _}} = Metric} <- Numbered],
        true = length(Events) + length(Counters) =:= length(Wanted),
        lists:foreach(fun check/1, Wanted),
        #metrics{since = now_us(), events = Events, counters = Counters,
                 table = ets:new(?MODULE, [set, public, {write_concurrency, auto},
                                           {decentralized_counters, true}])}
    of
        Metrics -> {ok, Metrics}
    catch
        %% From a monitoring node of another version.
        error:_ -> error
    end.

check(#{name := Name, kind := Kind, tags := Tags, most_tags := Most} = Metric) ->
    true = is_binary(Name) andalso is_integer(Most) andalso Most >= 1 andalso Most =< 1000,
    true = lists:all(fun is_atom/1, Tags),
    true = case Metric of
        #{event := Event} ->
            lists:member(Kind, [counter, sum, last]) andalso lists:all(fun is_atom/1, Event)
                andalso (Kind =:= counter orelse is_atom(maps:get(measurement, Metric)));
        #{counter := {_, Index}} ->
            lists:member(Kind, [counter, gauge]) andalso is_integer(Index)
    end,
    ok.

-doc "Counts no more; a handler that is still there finds no table.".
-spec delete(metrics()) -> ok.
delete(#metrics{table = Table}) ->
    true = ets:delete(Table),
    ok.

-doc "The events to be handled by `handle/4`, each with a number and the handler's configuration.".
-spec events(metrics()) -> [{pos_integer(), Event :: [atom()], Config :: tuple()}].
events(#metrics{events = Events, table = Table}) ->
    [
        {At, Event, {Table, At, Kind, maps:get(measurement, Metric, none), Tags, Most,
                     atomics:new(1, [])}}
     || {At, #{event := Event, kind := Kind, tags := Tags, most_tags := Most} = Metric} <- Events
    ].

%% ---------------------------------------------------------------- in the application's processes

-doc "The handler. A failure here must not reach the application.".
-spec handle(Event :: [atom()], Measurements :: map(), Metadata :: map(), Config :: tuple()) -> ok.
handle(_, Measurements, Metadata, {Table, At, Kind, Key, Tags, Most, Rows}) ->
    try
        case amount(Kind, Key, Measurements) of
            error -> lose(metrics_bad, Table);
            Amount -> count(Kind, Amount, {At, values(Tags, Metadata)}, {Table, Most, Rows})
        end
    catch
        %% The table is deleted a moment before the handler is detached.
        error:_ -> ok
    end.

amount(counter, none, _) -> 1;
amount(_, Key, Measurements) ->
    case Measurements of
        #{Key := N} when is_number(N), abs(N) =< ?MOST -> N;
        #{} -> error
    end.

values([], _) -> [];
values(Tags, Metadata) -> [value(maps:get(Tag, Metadata, '(none)')) || Tag <- Tags].

%% No other terms: there may be as many pids, or texts as lists, as events.
value(Value) when is_atom(Value); is_integer(Value), abs(Value) < 1 bsl 59 -> Value;
value(Value) when is_binary(Value), byte_size(Value) =< ?VALUE_BYTES -> Value;
value(Value) when is_binary(Value) -> binary:part(Value, 0, ?VALUE_BYTES);
value(_) -> ?OTHER.

count(Kind, Amount, Row, {Table, _, _} = Where) ->
    try
        add(Kind, Amount, Row, Table)
    catch
        error:badarg -> begin_row(Kind, Amount, Row, Where)
    end.

add(last, Amount, Row, Table) ->
    case ets:update_element(Table, Row, {2, Amount}) of true -> ok; false -> error(badarg) end;
add(_, Amount, Row, Table) when is_integer(Amount) ->
    _ = ets:update_counter(Table, Row, {2, Amount}),
    ok;
add(_, Amount, Row, Table) ->
    _ = ets:update_counter(Table, Row, {3, round(Amount * ?MICRO)}),
    ok.

%% A process makes a row only if it gets a place; of two that make the same row, one gives its place
%% back.
begin_row(Kind, Amount, {At, Values} = Row, {Table, Most, Rows}) ->
    %% The row (other) needs no place.
    IsOther = lists:all(fun(Value) -> Value =:= ?OTHER end, Values),
    case IsOther orelse atomics:add_get(Rows, 1, 1) =< Most of
        true ->
            _ = ets:insert_new(Table, row(Kind, Amount, Row)) orelse IsOther
                orelse atomics:sub(Rows, 1, 1),
            add(Kind, Amount, Row, Table);
        false ->
            ok = atomics:sub(Rows, 1, 1),
            lose(metrics_tags_over, Table),
            Other = {At, [?OTHER || _ <- Values]},
            _ = ets:insert_new(Table, row(Kind, Amount, Other)),
            add(Kind, Amount, Other, Table)
    end.

row(last, Amount, Row) -> {Row, Amount, 0};
row(_, _, Row) -> {Row, 0, 0}.

lose(What, Table) ->
    _ = ets:update_counter(Table, What, {2, 1}, {What, 0}),
    ok.

%% ---------------------------------------------------------------- in the probe

-doc "What was counted, and how much was left out since the counting began.".
-spec read(metrics()) -> {values(), Lost :: #{atom() => non_neg_integer()}, metrics()}.
read(#metrics{since = Since, table = Table, events = Events} = Metrics0) ->
    %% There are few rows: `most_tags` bounds them.
    Rows = ets:tab2list(Table),
    Kinds = maps:from_list(Events),
    Counted = lists:foldl(fun
        ({{At, Values}, Whole, Micro}, Acc) ->
            #{At := #{kind := Kind} = Metric} = Kinds,
            put_value(Kind, series(Metric, Values), Whole, Micro, Acc);
        (_, Acc) -> Acc
    end, #{}, Rows),
    {Values, #metrics{unread = Unread} = Metrics} =
        lists:foldl(fun read_counter/2, {Counted, Metrics0}, Metrics0#metrics.counters),
    Lost = maps:from_list([Row || {What, _} = Row <- Rows, is_atom(What)]),
    {#{since => Since, values => Values},
     case Unread of 0 -> Lost; _ -> Lost#{metrics_unread => Unread} end, Metrics}.

%% Different values may give the same text.
put_value(last, Series, Value, _, Acc) -> Acc#{Series => {value, Value}};
put_value(_, Series, Whole, Micro, Acc) ->
    Amount = case Micro of 0 -> Whole; _ -> Whole + Micro / ?MICRO end,
    maps:update_with(Series, fun({total, Sum}) -> {total, Sum + Amount} end, {total, Amount}, Acc).

%% A node that does not have the array has no value; that is no error.
read_counter(#{name := Name, kind := Kind, counter := {Key, Index}},
             {Values, #metrics{grown = Grown, unread = Unread} = Metrics}) ->
    case persistent_term:get(Key, ?MODULE) of
        ?MODULE -> {Values, Metrics};
        Array ->
            try read_array(Array, Index) of
                %% Hubs accept no larger number; an unsigned `atomics` below 0 reads as one.
                Value when abs(Value) >= ?MOST_READ ->
                    {Values, Metrics#metrics{unread = Unread + 1}};
                Value when Kind =:= gauge -> {Values#{Name => {value, Value}}, Metrics};
                Value ->
                    Total = case Grown of
                        #{Name := {Last, Sum}} when Value >= Last -> Sum + Value - Last;
                        %% The counter was set back.
                        #{Name := {_, Sum}} -> Sum + max(0, Value);
                        #{} -> 0
                    end,
                    {Values#{Name => {total, Total}},
                     Metrics#metrics{grown = Grown#{Name => {Value, Total}}}}
            catch
                error:_ -> {Values, Metrics#metrics{unread = Unread + 1}}
            end
    end.

%% Only trying the functions tells the two apart.
read_array(Array, Index) ->
    try
        counters:get(Array, Index)
    catch
        error:_ -> atomics:get(Array, Index)
    end.

series(#{name := Name}, []) -> Name;
series(#{name := Name, tags := Tags}, Values) ->
    iolist_to_binary([
        Name, ${,
        lists:join($,, [[atom_to_binary(Tag), "=\"", clean(Value), $"]
                        || {Tag, Value} <- lists:zip(Tags, Values)]),
        $}
    ]).

%% A value is text, without the characters that series are written with.
clean(Value) when is_atom(Value) ->
    clean(sderl_mon_probe_text:cut(atom_to_binary(Value), ?VALUE_BYTES));
clean(Value) when is_integer(Value) -> integer_to_binary(Value);
clean(Value) ->
    Text = case unicode:characters_to_binary(Value) of
        Whole when is_binary(Whole) -> Whole;
        {_, Good, _} -> Good
    end,
    << <<(case C < $\s orelse lists:member(C, "\"\\{}") of true -> $_; false -> C end)/utf8>>
       || <<C/utf8>> <= Text >>.
