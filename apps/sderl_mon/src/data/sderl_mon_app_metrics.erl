%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_app_metrics).
-moduledoc """
The metrics of the monitored application itself: checks what an operator writes, and makes and reads
the names of their series. Pure.

A metric is a `telemetry` event, or a place in a `counters` or `atomics` array that a persistent
term holds:

```erlang
#{name => orders, kind => counter, event => [shop, order, done], tags => [status]}
#{name => revenue, kind => sum, event => [shop, order, done], measurement => price}
#{name => basket, kind => last, event => [shop, basket], measurement => items}
#{name => sessions, kind => gauge, counter => {{shop, numbers}, 1}}
```

| key | values | |
|---|---|---|
| `name` | letters, digits and `_`, 63 at most | how it is shown; not that of a number of the monitoring |
| `kind` | `counter` | events, or a number that only grows: shown as its growth a second |
| | `sum` | a measurement of the event, added up: shown as its growth a second |
| | `last` | the last measurement of the event |
| | `gauge` | a number that rises and falls, as it is |
| `event`, `measurement` | atoms | of `counter` (without a measurement), `sum` and `last` |
| `counter` | `{Term, Index}` | of `counter` and `gauge`: the key of the persistent term, the place in the array |
| `tags` | at most 5 atoms | keys of the event's metadata: each combination of their values is a series |
| `most_tags` | 1 to 100, 10 | at most so many combinations; what is over goes into one series, `(other)` |
| `unit`, `about` | texts | for people |
| `total` | `sum`, `mean`, `max` | how the values of several nodes are put together; `mean` for `last`, else `sum` |
| `for` | at most ten words, such as `dev` and `op` | tags by which views choose |

A series is named `orders`, or with tags `orders{status="ok"}`.
""".

-export([check/1, wanted/1, format_error/1]).
-export([unit/1, id/2, name/1, split/1, is_series/1, of_metric/2, value/3]).
-export([limits/0]).

-export_type([metric/0, wanted/0, series/0, total/0, error/0]).

-doc "A metric that was checked; `check/1` accepts it again.".
-type metric() :: #{
    name := binary(),
    kind := counter | sum | last | gauge,
    event => [atom(), ...],
    measurement => atom(),
    counter => {Key :: term(), Index :: pos_integer()},
    tags := [atom()],
    most_tags := pos_integer(),
    unit := binary(),
    about := binary(),
    total := total(),
    for := [binary()]
}.

-doc "The part of a metric that a probe needs.".
-type wanted() :: #{
    name := binary(),
    kind := counter | sum | last | gauge,
    event => [atom(), ...],
    measurement => atom(),
    counter => {Key :: term(), Index :: pos_integer()},
    tags := [atom()],
    most_tags := pos_integer()
}.

-doc "How values of several nodes, or several series, are put together.".
-type total() :: sum | mean | max.

-doc "The name of a series: that of the metric, with the values of its tags if it has any.".
-type series() :: binary().

-doc "Where a wrong term is, the term, and what belongs there.".
-type error() :: {Path :: [term()], Value :: term(), Expected :: unicode:chardata()}.

-define(MOST, 50).
-define(MOST_SERIES, 500).
-define(MOST_TAGS, 5).
-define(MOST_FOR, 10).
-define(KEYS, [name, kind, event, measurement, counter, tags, most_tags, unit, about, total,
               for]).

-doc "The most metrics, and the most series that they may have together on one node.".
-spec limits() -> #{metrics := pos_integer(), series := pos_integer()}.
limits() -> #{metrics => ?MOST, series => ?MOST_SERIES}.

-doc "The metrics of a list, completed with defaults.".
-spec check(term()) -> {ok, [metric()]} | {error, error()}.
check(List) ->
    maybe
        true ?= is_proper(List),
        {ok, Metrics} ?= each(List, 1, []),
        ok ?= twice(Metrics, 1),
        ok ?= few(Metrics),
        {ok, Metrics}
    else
        false -> bad([], List, "is not a list of metrics; write [#{name => ..., kind => ...}]");
        {error, _} = Error -> Error
    end.

is_proper(List) -> is_list(List) andalso length_of(List, 0) =/= improper.

length_of([], N) -> N;
length_of([_ | Rest], N) -> length_of(Rest, N + 1);
length_of(_, _) -> improper.

each([], _, Done) -> {ok, lists:reverse(Done)};
each([Given | Rest], At, Done) ->
    case one(Given) of
        {ok, Metric} -> each(Rest, At + 1, [Metric | Done]);
        {error, {Path, Value, Why}} -> bad([At | Path], Value, Why)
    end.

one(Given) when is_map(Given) ->
    maybe
        [] ?= [{Key, Value} || Key := Value <- Given, not lists:member(Key, ?KEYS)],
        {ok, Name} ?= named(Given),
        {ok, Kind} ?= kind(Given),
        {ok, Source} ?= source(Kind, Given),
        {ok, Tags} ?= tags(Source, Given),
        {ok, Texts} ?= texts(Given),
        {ok, Total} ?= total(Kind, Given),
        {ok, For} ?= for(maps:get(for, Given, [])),
        {ok, maps:merge(maps:merge(Source, Texts),
                        Tags#{name => Name, kind => Kind, total => Total, for => For})}
    else
        [{Key, Value} | _] ->
            bad([Key], Value, ["belongs to no key of that name; the keys are ",
                               lists:join(", ", [atom_to_list(K) || K <- ?KEYS])]);
        {error, _} = Error -> Error
    end;
one(Other) ->
    bad([], Other, "is not a metric; write #{name => ..., kind => ...}").

named(#{name := Given}) ->
    Name = case Given of
        _ when is_atom(Given) -> atom_to_binary(Given);
        _ -> Given
    end,
    case is_binary(Name) andalso re:run(Name, "\\A[a-z][a-z0-9_]{0,62}\\z", [{capture, none}]) of
        match ->
            case sderl_mon_catalogue:find(Name) of
                error ->
                    case binary:longest_common_suffix([Name, ~"_per_second"]) of
                        11 -> bad([name], Given, "ends as Prometheus' names of rates do, and might "
                                                 "be one of them; leave _per_second out");
                        _ -> {ok, Name}
                    end;
                {ok, _} ->
                    bad([name], Given, "is a number of the monitoring itself; choose another name")
            end;
        _ -> bad([name], Given, "is no name; write small letters, digits and _, 63 at most")
    end;
named(_) -> missing(name, "write the name under which it is shown").

kind(#{kind := Kind}) when Kind =:= counter; Kind =:= sum; Kind =:= last; Kind =:= gauge ->
    {ok, Kind};
kind(#{kind := Other}) -> bad([kind], Other, "is no kind; write counter, sum, last or gauge");
kind(_) -> missing(kind, "write counter, sum, last or gauge").

source(_, #{event := _, counter := Counter}) ->
    bad([counter], Counter, "comes beside an event; write one of the two");
source(gauge, #{event := Event}) ->
    bad([event], Event, "goes with counter, sum and last; for the last measurement write "
                        "kind => last");
source(Kind, #{event := Event} = Given) ->
    case is_proper(Event) andalso Event =/= [] andalso length(Event) =< 16
         andalso lists:all(fun is_atom/1, Event) of
        true -> measured(Kind, Given, #{event => Event});
        false -> bad([event], Event, "is no event of telemetry; write a list of atoms, such as "
                                     "[shop, order, done]")
    end;
source(Kind, #{counter := Counter}) when Kind =:= sum; Kind =:= last ->
    bad([counter], Counter, "goes with counter and gauge; for sum and last write an event");
source(_, #{counter := {_, Index}, measurement := Measurement}) when is_integer(Index) ->
    bad([measurement], Measurement, "goes with an event alone; leave it out");
source(_, #{counter := {Key, Index}}) when is_integer(Index), Index > 0, Index < 1 bsl 32 ->
    {ok, #{counter => {Key, Index}}};
source(_, #{counter := Other}) ->
    bad([counter], Other, "is no place in an array; write {Key, Index}, the key of the persistent "
                          "term that holds the array, and a whole number from 1 on");
source(gauge, _) -> missing(counter, "write {Key, Index}");
source(counter, _) -> missing(event, "write an event of telemetry, or counter => {Key, Index}");
source(_, _) -> missing(event, "write an event of telemetry, such as [shop, order, done]").

measured(counter, #{measurement := Measurement}, _) ->
    bad([measurement], Measurement, "is not read: a counter counts events; to add it up write "
                                    "kind => sum");
measured(counter, _, Source) -> {ok, Source};
measured(_, #{measurement := Key}, Source) when is_atom(Key) ->
    {ok, Source#{measurement => Key}};
measured(_, #{measurement := Other}, _) ->
    bad([measurement], Other, "is no key of the measurements of an event; write an atom");
measured(_, _, _) -> missing(measurement, "write which number of the event counts, such as price").

tags(#{counter := _}, #{tags := [_ | _] = Tags}) ->
    bad([tags], Tags, "go with an event alone: a place in an array has none; leave them out");
tags(_, Given) ->
    Tags = maps:get(tags, Given, []),
    Most = maps:get(most_tags, Given, 10),
    case is_proper(Tags) andalso length(Tags) =< ?MOST_TAGS
         andalso lists:all(fun is_label/1, Tags) andalso lists:usort(Tags) =:= lists:sort(Tags) of
        false ->
            bad([tags], Tags, "are no tags; write at most 5 different atoms of small letters, "
                              "digits and _, which are keys of the metadata; node is taken");
        true when is_integer(Most), Most >= 1, Most =< 100 ->
            {ok, #{tags => Tags, most_tags => Most}};
        true -> bad([most_tags], Most, "is no such number; write a whole number from 1 to 100")
    end.

is_label(Tag) ->
    is_atom(Tag) andalso Tag =/= node
        andalso re:run(atom_to_binary(Tag), "\\A[a-z][a-z0-9_]{0,31}\\z", [{capture, none}])
            =:= match.

texts(Given) ->
    maybe
        {ok, Unit} ?= short(unit, 32, Given),
        {ok, About} ?= short(about, 200, Given),
        {ok, #{unit => Unit, about => About}}
    end.

short(Key, Most, Given) ->
    Value = maps:get(Key, Given, ~""),
    Text = try unicode:characters_to_binary(Value) catch error:badarg -> error end,
    case is_binary(Text) andalso byte_size(Text) =< Most
         andalso re:run(Text, "[\\x00-\\x1f]", [{capture, none}]) =:= nomatch of
        true -> {ok, Text};
        false -> bad([Key], Value, io_lib:format("does not fit; write a line of at most ~b bytes",
                                                 [Most]))
    end.

total(_, #{total := Total}) when Total =:= sum; Total =:= mean; Total =:= max -> {ok, Total};
total(_, #{total := Other}) ->
    bad([total], Other, "is no way to put nodes together; write sum, mean or max");
total(last, _) -> {ok, mean};
total(_, _) -> {ok, sum}.

for(Given) ->
    Words = [word(Word) || is_proper(Given), Word <- Given],
    case is_proper(Given) andalso length(Given) =< ?MOST_FOR
         andalso not lists:member(none, Words) of
        true -> {ok, lists:usort(Words)};
        false ->
            bad([for], Given, "are no tags of views; write a list of at most ten words of small "
                              "letters, digits and _, such as [dev, op]")
    end.

word(Word) when is_atom(Word) -> word(atom_to_binary(Word));
word(Word) ->
    case is_binary(Word) andalso re:run(Word, "\\A[a-z0-9_]{1,32}\\z", [{capture, none}]) of
        match -> Word;
        _ -> none
    end.

twice([], _) -> ok;
twice([#{name := Name} | Rest], At) ->
    case [Other || {Other, #{name := Is}} <- lists:enumerate(At + 1, Rest), Is =:= Name] of
        [] -> twice(Rest, At + 1);
        [Other | _] -> bad([Other, name], Name, "is there twice; give each metric its own name")
    end.

few(Metrics) ->
    Series = lists:sum([case Tags of [] -> 1; _ -> Most + 1 end
                        || #{tags := Tags, most_tags := Most} <- Metrics]),
    if
        length(Metrics) > ?MOST ->
            bad([], length(Metrics), io_lib:format("metrics are too many; write at most ~b",
                                                   [?MOST]));
        Series > ?MOST_SERIES ->
            bad([], Series, io_lib:format("series are too many, with one more for each metric "
                                          "with tags; write a smaller most_tags: together at "
                                          "most ~b", [?MOST_SERIES]));
        true -> ok
    end.

missing(Key, Remedy) -> {error, {[Key], missing, ["is not there; ", Remedy]}}.

bad(Path, Value, Why) -> {error, {Path, Value, Why}}.

-doc "The error as one sentence.".
-spec format_error(error()) -> unicode:chardata().
format_error({Path, Value, Why}) ->
    io_lib:format("metrics~ts: ~0tP ~ts", [[io_lib:format(".~0tp", [Step]) || Step <- Path], Value,
                                           20, Why]).

-doc "The parts of metrics that a probe needs.".
-spec wanted([metric()]) -> [wanted()].
wanted(Metrics) ->
    [maps:with([name, kind, event, measurement, counter, tags, most_tags], M) || M <- Metrics].

-doc "The unit in which a metric is shown: per second for the kinds `counter` and `sum`.".
-spec unit(metric()) -> binary().
unit(#{kind := Kind, unit := ~""}) when Kind =:= counter; Kind =:= sum -> ~"1/s";
unit(#{kind := Kind, unit := Unit}) when Kind =:= counter; Kind =:= sum -> <<Unit/binary, "/s">>;
unit(#{unit := Unit}) -> Unit.

%% ---------------------------------------------------------------- series

-doc "The series of a metric with these tags, whose values must be clean (`name/1`).".
-spec id(Name :: binary(), [{Tag :: binary(), Value :: binary()}]) -> series().
id(Name, []) -> Name;
id(Name, Tags) ->
    iolist_to_binary([Name, ${, lists:join($,, [[Tag, "=\"", Value, $"] || {Tag, Value} <- Tags]),
                      $}]).

-doc "The metric of a series.".
-spec name(series()) -> binary().
name(Series) ->
    [Name | _] = binary:split(Series, ~"{"),
    Name.

-doc "The metric and the tags of a series.".
-spec split(series()) -> {binary(), [{Tag :: binary(), Value :: binary()}]}.
split(Series) ->
    case binary:split(Series, ~"{") of
        [Name] -> {Name, []};
        [Name, Tags] -> {Name, tags(Tags)}
    end.

%% A value may have commas, and no quote.
tags(Text) ->
    maybe
        [Tag, More] ?= binary:split(Text, ~"=\""),
        [Value, <<_, Rest/binary>>] ?= binary:split(More, ~"\""),
        [{Tag, Value} | tags(Rest)]
    else
        _ -> []
    end.

-doc "Whether a term is a series of a metric, as a probe names them.".
-spec is_series(term()) -> boolean().
is_series(<<First, Rest/binary>>) when First >= $a, First =< $z, byte_size(Rest) < 640 ->
    in_name(Rest) andalso is_binary(unicode:characters_to_binary(Rest));
is_series(_) ->
    false.

%% Written by hand: a hub checks each series of each node each second.
in_name(<<C, Rest/binary>>) when C >= $a, C =< $z; C >= $0, C =< $9; C =:= $_ -> in_name(Rest);
in_name(<<>>) -> true;
in_name(<<${, Rest/binary>>) -> in_tag(Rest);
in_name(_) -> false.

in_tag(<<C, Rest/binary>>) when C >= $a, C =< $z; C >= $0, C =< $9; C =:= $_ -> in_tag(Rest);
in_tag(<<"=\"", Rest/binary>>) -> in_value(Rest);
in_tag(_) -> false.

in_value(<<"\",", Rest/binary>>) -> in_tag(Rest);
in_value(<<"\"}">>) -> true;
in_value(<<C, Rest/binary>>) when C >= $\s, C =/= $", C =/= $\\, C =/= ${, C =/= $} ->
    in_value(Rest);
in_value(_) -> false.

-doc "Whether a series has that name, or is one of the metric of that name.".
-spec of_metric(series(), Name :: series()) -> boolean().
of_metric(Name, Name) -> true;
of_metric(Series, Name) ->
    Size = byte_size(Name),
    case Series of
        <<Name:Size/binary, ${, _/binary>> -> true;
        _ -> false
    end.

-doc "The value of a series, or of all series of a metric together, in a node's numbers.".
-spec value(series(), total(), #{atom() | series() => number()}) -> {ok, number()} | none.
value(Name, Total, Sample) ->
    case Sample of
        #{Name := Value} -> {ok, Value};
        #{} -> together(Total, [V || Key := V <- Sample, is_binary(Key), of_metric(Key, Name)])
    end.

together(_, []) -> none;
together(sum, Values) -> {ok, lists:sum(Values)};
together(mean, Values) -> {ok, lists:sum(Values) / length(Values)};
together(max, Values) -> {ok, lists:max(Values)}.
