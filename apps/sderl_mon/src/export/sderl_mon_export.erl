%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_export).
-moduledoc """
Exports a hub's history or a recording as JSON lines (one object a line) or CSV (RFC 4180, a line of
names first), a frame at a time, so that a long recording needs little memory.

| `what` | a line has |
|---|---|
| `nodes` (default) | t, span_ms, node, and `sderl_mon_types:metrics/0` |
| `links` | t, span_ms, from, to, msgs_s, bytes_s |
| `groups` | t, span_ms, group, regs_s, names, in_msgs_s |
| `kinds` | t, span_ms, kind, msgs_s, bytes_s |
| `traffic` | a row of `sderl_mon_hub:traffic/2`: `by`, and its columns |
| `events` | id, t, kind, level, text, node, group; in JSON also details |
| `findings` | those at `to`: id, kind, severity, since, t, text, remedy; in JSON also where, evidence, saves |

Times are Unix milliseconds, rates per second, sizes in bytes. An unknown value is `null` in JSON
and empty in CSV.
""".

-export([write/4, json/1, what/0]).

-export_type([opts/0, sink/0]).

-doc """
`from`, `to` (all there is), `step_ms` (0: as fine as there is), `by` and `window_s` of `traffic`,
`limit` of events (1,000).
""".
-type opts() :: #{
    what => nodes | links | groups | kinds | traffic | events | findings,
    from => sderl_mon_types:t(),
    to => sderl_mon_types:t(),
    step_ms => non_neg_integer(),
    by => sderl_mon_types:traffic_by(),
    window_s => pos_integer(),
    limit => pos_integer()
}.

%% Written when so much has come, and at the end. What cannot be written when a time is over is
%% lost without an error, so this time never comes.
-define(DELAYED, {delayed_write, 65_536, 86_400_000}).

-doc "A file to write, or a function that takes the parts as they come.".
-type sink() :: file:name_all() | fun((iodata()) -> ok | {error, term()}).

-doc "The values of the option `what`.".
-spec what() -> [atom(), ...].
what() -> [nodes, links, groups, kinds, traffic, events, findings].

-doc """
Writes an export, and returns the number of rows. An existing file is not overwritten. Errors:
`{file, File, Reason}`, `{bad_option, what, Value}`, or the error of the sink's function.
""".
-spec write(sderl_mon_types:source(), json | csv, sink(), opts()) ->
    {ok, #{rows := non_neg_integer()}} | {error, term()}.
write(Source, Format, Sink, Opts) ->
    case lists:member(maps:get(what, Opts, nodes), what()) of
        true when is_function(Sink, 1) -> parts(Source, Format, Sink, Opts);
        true -> to_file(Source, Format, Sink, Opts);
        false -> {error, {bad_option, what, maps:get(what, Opts)}}
    end.

to_file(Source, Format, File, Opts) ->
    case file:open(File, [write, exclusive, raw, binary, ?DELAYED]) of
        {ok, Fd} ->
            Written = parts(Source, Format, fun(Data) -> file:write(Fd, Data) end, Opts),
            case {Written, file:close(Fd)} of
                {{ok, _} = Ok, ok} -> Ok;
                {{ok, _}, {error, Reason}} -> {error, {file, File, Reason}};
                {{error, Reason}, _} -> {error, {file, File, Reason}}
            end;
        {error, Reason} ->
            {error, {file, File, Reason}}
    end.

parts(Source, Format, Put, Opts) ->
    What = maps:get(what, Opts, nodes),
    Columns = columns(What, Opts),
    Row = fun(Values) -> line(Format, Columns, Values) end,
    case Format of
        csv -> rows(What, Source, Row, Put, Opts, Put(csv(Columns)));
        json -> rows(What, Source, Row, Put, Opts, ok)
    end.

rows(_What, _Source, _Row, _Put, _Opts, {error, _} = Error) ->
    Error;
rows(What, Source, Row, Put, Opts, ok) when What =:= traffic; What =:= events; What =:= findings ->
    put_rows(listed(What, Source, Opts), Row, Put, {ok, #{rows => 0}});
rows(What, Source, Row, Put, Opts, ok) ->
    #{range := {From, To}, fold := Fold} = sderl_mon_hub:store(Source),
    Fold(
        maps:get(from, Opts, From),
        maps:get(to, Opts, To),
        maps:get(step_ms, Opts, 0),
        maps:remove(What, #{nodes => [], links => [], groups => []}),
        fun(Frame, Acc) -> put_rows(of_frame(What, Frame), Row, Put, Acc) end,
        {ok, #{rows => 0}}
    ).

put_rows(_Rows, _Row, _Put, {error, _} = Error) -> Error;
put_rows([], _Row, _Put, Acc) -> Acc;
put_rows(Rows, Row, Put, {ok, #{rows := N}}) ->
    case Put([Row(Values) || Values <- Rows]) of
        ok -> {ok, #{rows => N + length(Rows)}};
        {error, _} = Error -> Error
    end.

columns(nodes, _Opts) -> [t, span_ms, node | sderl_mon_types:metrics()];
columns(links, _Opts) -> [t, span_ms, from, to, msgs_s, bytes_s];
columns(groups, _Opts) -> [t, span_ms, group, regs_s, names, in_msgs_s];
columns(kinds, _Opts) -> [t, span_ms, kind, msgs_s, bytes_s];
columns(traffic, Opts) ->
    [by | place(maps:get(by, Opts, link))] ++ [msgs_s, bytes_s, msgs, bytes, p50, p95, max] ++
        [forwarded_s || maps:get(by, Opts, link) =:= gateway];
columns(events, _Opts) -> [id, t, kind, level, text, node, group, details];
columns(findings, _Opts) -> [id, kind, severity, since, t, text, remedy, where, evidence, saves].

place(gateway) -> [node];
place(group) -> [group];
place(_LinkOrEdge) -> [from, to].

of_frame(What, #{t := T, span_ms := Span} = Frame) ->
    #{What := Map} = Frame,
    [(values(What, Key, Value))#{t => T, span_ms => Span}
     || {Key, Value} <- lists:sort(maps:to_list(Map))].

values(nodes, Id, Sample) -> Sample#{node => Id};
values(groups, Id, Sample) -> Sample#{group => Id};
values(links, {From, To}, {Msgs, Bytes}) ->
    #{from => From, to => To, msgs_s => Msgs, bytes_s => Bytes};
values(kinds, Kind, {Msgs, Bytes}) -> #{kind => Kind, msgs_s => Msgs, bytes_s => Bytes}.

listed(traffic, Source, Opts) ->
    By = maps:get(by, Opts, link),
    Asked = maps:with([window_s, limit], Opts),
    case sderl_mon_hub:traffic(Source, Asked#{by => By, t => maps:get(to, Opts, now)}) of
        {ok, Rows} -> [Row#{by => By} || Row <- Rows];
        {error, none} -> []
    end;
listed(events, Source, Opts) ->
    {ok, Events} = sderl_mon_hub:events(Source, maps:merge(#{limit => 1_000},
                                                           maps:with([from, to, limit], Opts))),
    lists:reverse(Events);
listed(findings, Source, Opts) ->
    {_From, To} = sderl_mon_hub:range(Source),
    case sderl_mon_hub:at(Source, maps:get(to, Opts, To)) of
        {ok, #{findings := Findings}} -> Findings;
        {error, none} -> []
    end.

%% Lines

line(json, Columns, Values) ->
    [sderl_mon_visible:json(json(#{Column => maps:get(Column, Values, null) || Column <- Columns})),
     $\n];
line(csv, Columns, Values) ->
    csv([maps:get(Column, Values, null) || Column <- Columns]).

csv(Values) -> [lists:join($,, [cell(V) || V <- Values]), "\r\n"].

cell(null) -> [];
cell(V) when is_integer(V) -> integer_to_binary(V);
cell(V) when is_float(V) -> float_to_binary(V, [short]);
cell(V) when is_atom(V) -> quoted(atom_to_binary(V));
cell(V) when is_binary(V) -> quoted(V);
cell(V) -> quoted(iolist_to_binary(json(V))).

quoted(Given) ->
    Text = sderl_mon_visible:text(Given),
    case binary:match(Text, [<<",">>, <<"\"">>, <<"\r">>, <<"\n">>]) of
        nomatch -> Text;
        _Found -> [$", binary:replace(Text, <<"\"">>, <<"\"\"">>, [global]), $"]
    end.

-doc """
A term of the hub as JSON. Tuples become arrays; keys become text; a binary that is not UTF-8, a
pid, a function and the like become their printed text.
""".
-spec json(term()) -> iodata().
json(Term) -> json:encode(plain(Term)).

plain(Map) when is_map(Map) -> #{key(K) => plain(V) || K := V <- Map};
plain(Text) when is_binary(Text) ->
    case unicode:characters_to_binary(Text) of
        Text -> Text;
        _NoText -> printed(Text)
    end;
plain(Term) when is_number(Term); is_atom(Term) -> Term;
plain(Tuple) when is_tuple(Tuple) -> plain(tuple_to_list(Tuple));
plain([]) -> [];
plain([First | Rest]) when is_list(Rest) -> [plain(First) | plain_rest(Rest)];
plain(Other) -> printed(Other).

plain_rest([First | Rest]) -> [plain(First) | plain_rest(Rest)];
plain_rest([]) -> [];
plain_rest(Improper) -> [plain(Improper)].

key(Key) when is_atom(Key) -> atom_to_binary(Key);
key(Key) ->
    case plain(Key) of
        Text when is_binary(Text) -> Text;
        _Other -> printed(Key)
    end.

printed(Term) -> unicode:characters_to_binary(io_lib:format("~0tP", [Term, 20])).
