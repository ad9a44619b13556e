%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_pack).
-moduledoc """
Plain data as bytes, small and safe to read back. Pure.

The history in memory and the recordings consist of them. The format is not the external term
format, because a file may be damaged or written by somebody else: nothing in it can make an atom, a
function or a term larger than some multiple of its size, and all damage is one error.

`pack/1` takes numbers, binaries, atoms, lists, tuples and maps; anything else (a pid, a function)
becomes its text. An atom that the reader's VM does not have comes back as a binary.

`pack_frame/1` stores a frame by column: ids once, then each metric's values side by side, floats in
32 bits (seven digits), integers as they are. In front, not compressed, are the sums of messages and
bytes a second of its links (`total/1`), for the series that is asked for most.
""".

-export([pack/1, unpack/1, pack_frame/1, unpack_frame/1, unpack_frame/2, total/1]).

-export_type([want/0]).

%% A packed thing that says that it is larger than this when unpacked is damaged.
-define(MOST_BYTES, 16_000_000).
-define(DEPTH, 64).
-define(MISSING32, 16#80000000).
-define(MISSING64, 16#8000000000000000).
-define(NAN32, 16#7FC00000).
-define(NAN64, 16#7FF8000000000000).
-define(MOST_FLOAT32, 3.0e38).

-doc "Packs a term.".
-spec pack(term()) -> binary().
pack(Term) -> deflate(encode(Term)).

-doc "Unpacks a term. Errors: `corrupt`.".
-spec unpack(binary()) -> {ok, term()} | {error, corrupt}.
unpack(Packed) ->
    try decode_all(inflate(Packed)) of
        Term -> {ok, Term}
    catch
        throw:corrupt -> {error, corrupt}
    end.

-doc "Packs a frame.".
-spec pack_frame(sderl_mon_types:frame()) -> binary().
pack_frame(#{nodes := Nodes, links := Links, groups := Groups} = Frame) ->
    Ends = maps:fold(fun({From, To}, _Flow, Acc) -> Acc#{From => [], To => []} end, #{}, Links),
    Ids = lists:sort(maps:keys(maps:merge(Ends, maps:merge(keys(Nodes), keys(Groups))))),
    Index = maps:from_list([{Id, I} || {I, Id} <- lists:enumerate(0, Ids)]),
    Sorted = lists:sort([{maps:get(From, Index), maps:get(To, Index), Flow}
                         || {From, To} := Flow <- Links]),
    %% Readers ignore keys of the head that they do not know.
    Head = maps:with([seq, t, span_ms, epoch, kinds, lost, routed], Frame),
    {Msgs, Bytes} = lists:foldl(fun({_From, _To, {M, B}}, {Ms, Bs}) -> {Ms + M, Bs + B} end, {0, 0},
                                Sorted),
    Packed = deflate([
        encode(Head),
        encode(Ids),
        table(Nodes, Index),
        table(Groups, Index),
        varint(length(Sorted)),
        << <<From:16>> || {From, _To, _Flow} <- Sorted >>,
        << <<To:16>> || {_From, To, _Flow} <- Sorted >>,
        column([M || {_From, _To, {M, _B}} <- Sorted]),
        column([B || {_From, _To, {_M, B}} <- Sorted])
    ]),
    <<Msgs:64/float, Bytes:64/float, Packed/binary>>.

-doc "Messages and bytes a second of all links of a packed frame. Errors: `corrupt`.".
-spec total(binary()) -> {ok, sderl_mon_types:flow()} | {error, corrupt}.
total(<<Msgs:64/float, Bytes:64/float, _Packed/binary>>) -> {ok, {Msgs, Bytes}};
total(_Other) -> {error, corrupt}.

keys(Map) -> #{Id => [] || Id := _ <- Map}.

table(Samples, Index) ->
    Rows = lists:sort([{maps:get(Id, Index), Sample} || Id := Sample <- Samples]),
    Metrics = maps:keys(maps:fold(fun(_Id, Sample, Acc) -> maps:merge(Acc, Sample) end, #{},
                                  Samples)),
    [
        varint(length(Rows)),
        << <<I:16>> || {I, _Sample} <- Rows >>,
        encode(lists:sort(Metrics)),
        [column([maps:get(M, Sample, missing) || {_I, Sample} <- Rows]) || M <- lists:sort(Metrics)]
    ].

%% The narrowest type that holds them all.
column(Values) ->
    case type(Values, 0) of
        0 -> [0, << <<(int(V, ?MISSING32)):32>> || V <- Values >>];
        1 -> [1, << <<(int(V, ?MISSING64)):64>> || V <- Values >>];
        2 ->
            case lists:member(missing, Values) of
                false -> [2, << <<V:32/float>> || V <- Values >>];
                true ->
                    [2,
                     [case V of missing -> <<?NAN32:32>>; _ -> <<V:32/float>> end || V <- Values]]
            end;
        3 ->
            [3, [case V of missing -> <<?NAN64:64>>; _ -> <<V:64/float>> end || V <- Values]]
    end.

int(missing, Missing) -> Missing;
int(V, _Missing) -> V.

type([], Type) -> Type;
type([missing | Rest], Type) -> type(Rest, Type);
type([V | Rest], Type) when is_integer(V), abs(V) < 1 bsl 31 -> type(Rest, Type);
type([V | Rest], Type) when is_integer(V), Type < 2, abs(V) < 1 bsl 62 -> type(Rest, max(1, Type));
type([V | Rest], Type) when abs(V) < ?MOST_FLOAT32 -> type(Rest, max(2, Type));
type([_ | Rest], _Type) -> type(Rest, 3).

-doc """
The parts of a frame to unpack: nodes and groups by id, links by their two nodes. A part that is not
named is unpacked as a whole. Parts that are left out cost next to nothing.
""".
-type want() :: #{
    nodes => all | [sderl_mon_types:id()],
    groups => all | [sderl_mon_types:id()],
    links => all | [sderl_mon_types:link()]
}.

-doc "Unpacks a frame. Errors: `corrupt`.".
-spec unpack_frame(binary()) -> {ok, sderl_mon_types:frame()} | {error, corrupt}.
unpack_frame(Packed) -> unpack_frame(Packed, #{}).

-doc "Unpacks the wanted parts of a frame. Errors: `corrupt`.".
-spec unpack_frame(binary(), want()) -> {ok, sderl_mon_types:frame()} | {error, corrupt}.
unpack_frame(<<_Totals:16/binary, Packed/binary>>, Want) ->
    try frame(inflate(Packed), Want) of
        Frame -> {ok, Frame}
    catch
        throw:corrupt -> {error, corrupt}
    end;
unpack_frame(_Short, _Want) ->
    {error, corrupt}.

frame(Bytes, Want) ->
    {Head, Rest1} = decode(Bytes, 0),
    {Listed, Rest2} = decode(Rest1, 0),
    Ids = names(Listed),
    {Nodes, Rest3} = untable(Rest2, Ids, maps:get(nodes, Want, all)),
    {Groups, Rest4} = untable(Rest3, Ids, maps:get(groups, Want, all)),
    Links = unlinks(Rest4, Ids, maps:get(links, Want, all)),
    case Head of
        #{seq := Seq, t := T, span_ms := Span, epoch := Epoch, kinds := Kinds, lost := Lost}
          when is_integer(Seq), is_integer(T), is_integer(Span), Span > 0, is_integer(Epoch),
               is_map(Kinds), is_map(Lost) ->
            (routed(Head))#{
                seq => Seq,
                t => T,
                span_ms => Span,
                epoch => Epoch,
                kinds => #{Kind => {M, B} || Kind := {M, B} <- Kinds, is_number(M), is_number(B)},
                lost => #{Key => Count || Key := Count <- Lost, is_integer(Count)},
                nodes => Nodes,
                groups => Groups,
                links => Links
            };
        _Other ->
            throw(corrupt)
    end.

routed(#{routed := #{} = Routed}) ->
    #{routed => #{{From, To} => Msgs
                  || {From, To} := Msgs <- Routed, is_binary(From), is_binary(To),
                     is_number(Msgs)}};
routed(_Head) ->
    #{}.

unlinks(Bytes, Ids, Wanted) ->
    {N, Rest1} = unvarint(Bytes, 0, 0),
    {Froms, Rest2} = part(2 * N, Rest1),
    {Tos, Rest3} = part(2 * N, Rest2),
    {Msgs, Rest4} = column_part(N, Rest3),
    case column_part(N, Rest4) of
        {BytesOf, <<>>} when Wanted =:= all ->
            maps:from_list(flows(ids(Froms, Ids), ids(Tos, Ids), values(Msgs), values(BytesOf)));
        {BytesOf, <<>>} ->
            maps:from_list([
                {Link, flow(value(Row, Msgs), value(Row, BytesOf))}
             || {From, To} = Link <- Wanted, {ok, F} <- [index(From, Ids)],
                {ok, T} <- [index(To, Ids)], {ok, Row} <- [row(F, T, Froms, Tos, 0)]
            ]);
        _More ->
            throw(corrupt)
    end.

row(F, T, <<F:16, _/binary>>, <<T:16, _/binary>>, Row) -> {ok, Row};
row(F, T, <<_:16, Froms/binary>>, <<_:16, Tos/binary>>, Row) -> row(F, T, Froms, Tos, Row + 1);
row(_F, _T, <<>>, <<>>, _Row) -> none.

flow(M, B) when is_number(M), is_number(B) -> {M, B};
flow(_, _) -> throw(corrupt).

%% The ids are sorted.
index(Id, Ids) -> index(Id, Ids, 1, tuple_size(Ids)).

index(Id, Ids, Low, High) when Low =< High ->
    Middle = (Low + High) div 2,
    case element(Middle, Ids) of
        Id -> {ok, Middle - 1};
        Less when Less < Id -> index(Id, Ids, Middle + 1, High);
        _More -> index(Id, Ids, Low, Middle - 1)
    end;
index(_Id, _Ids, _Low, _High) ->
    none.

flows([From | Froms], [To | Tos], [M | Ms], [B | Bs]) when is_number(M), is_number(B) ->
    [{{From, To}, {M, B}} | flows(Froms, Tos, Ms, Bs)];
flows([], [], [], []) -> [];
flows(_, _, _, _) -> throw(corrupt).

names(Listed) when is_list(Listed) ->
    case lists:all(fun is_binary/1, Listed) of
        true -> list_to_tuple(Listed);
        false -> throw(corrupt)
    end;
names(_Other) ->
    throw(corrupt).

untable(Bytes, Ids, Wanted) ->
    {N, Rest1} = unvarint(Bytes, 0, 0),
    {Rows, Rest2} = part(2 * N, Rest1),
    {Metrics, Rest3} = decode(Rest2, 0),
    case is_list(Metrics) of
        true -> ok;
        false -> throw(corrupt)
    end,
    {Columns, Rest4} = lists:mapfoldl(fun(_Metric, Rest) -> column_part(N, Rest) end, Rest3,
                                      Metrics),
    %% A metric for which this VM has no atom is one that nobody here asks for; one of the
    %% application's own is a text.
    Known = [{M, C} || {M, C} <- lists:zip(Metrics, Columns),
                       is_atom(M) orelse sderl_mon_app_metrics:is_series(M)],
    {samples(Wanted, Rows, Ids, Known), Rest4}.

samples(all, Rows, Ids, Columns) ->
    maps:from_list(rows(ids(Rows, Ids), [{M, values(C)} || {M, C} <- Columns]));
samples(Wanted, Rows, Ids, Columns) ->
    #{
        Id => #{M => V || {M, C} <- Columns, V <- [value(Row, C)], V =/= missing}
     || Id <- Wanted, {ok, I} <- [index(Id, Ids)], {ok, Row} <- [row(I, I, Rows, Rows, 0)]
    }.

rows([], _Columns) -> [];
rows([Id | Ids], Columns) ->
    Row = maps:from_list([{M, V} || {M, [V | _]} <- Columns, V =/= missing]),
    [{Id, Row} | rows(Ids, [{M, Vs} || {M, [_ | Vs]} <- Columns])].

part(Size, Bytes) ->
    case Bytes of
        <<Part:Size/binary, Rest/binary>> -> {Part, Rest};
        _Short -> throw(corrupt)
    end.

ids(Indices, Ids) -> [at(I, Ids) || <<I:16>> <= Indices].

at(I, Ids) when I < tuple_size(Ids) -> element(I + 1, Ids);
at(_I, _Ids) -> throw(corrupt).

column_part(N, <<Type, Bytes/binary>>) when Type =< 3 ->
    {Part, Rest} = part(N * width(Type), Bytes),
    {{Type, Part}, Rest};
column_part(_N, _Other) ->
    throw(corrupt).

width(Type) -> element(Type + 1, {4, 8, 4, 8}).

value(Row, {Type, Part}) ->
    Width = width(Type),
    [Value] = values({Type, binary:part(Part, Row * Width, Width)}),
    Value.

values({0, Part}) -> [case V of -16#80000000 -> missing; _ -> V end || <<V:32/signed>> <= Part];
values({1, Part}) ->
    [case V of -16#8000000000000000 -> missing; _ -> V end || <<V:64/signed>> <= Part];
values({2, Part}) -> floats32(Part);
values({3, Part}) -> floats64(Part).

floats32(<<V:32/float, Rest/binary>>) -> [V | floats32(Rest)];
floats32(<<_NaN:32, Rest/binary>>) -> [missing | floats32(Rest)];
floats32(<<>>) -> [].

floats64(<<V:64/float, Rest/binary>>) -> [V | floats64(Rest)];
floats64(<<_NaN:64, Rest/binary>>) -> [missing | floats64(Rest)];
floats64(<<>>) -> [].

%% Terms: a tag, then what it says.

encode(Term) when is_integer(Term), abs(Term) < 1 bsl 62 -> [$i, varint(zigzag(Term))];
encode(Term) when is_float(Term) -> [$f, <<Term:64/float>>];
encode(Term) when is_binary(Term) -> [$b, varint(byte_size(Term)), Term];
encode(Term) when is_atom(Term) -> text($a, atom_to_binary(Term));
encode([]) -> [$l, 0];
encode(Term) when is_list(Term) ->
    case is_proper(Term) of
        true -> [$l, varint(length(Term)), [encode(T) || T <- Term]];
        false -> printed(Term)
    end;
encode(Term) when is_tuple(Term) ->
    [$t, varint(tuple_size(Term)), [encode(T) || T <- tuple_to_list(Term)]];
encode(Term) when is_map(Term) ->
    [$m, varint(map_size(Term)),
     [[encode(K), encode(V)] || {K, V} <- lists:sort(maps:to_list(Term))]];
encode(Term) ->
    printed(Term).

is_proper([_ | Rest]) -> is_proper(Rest);
is_proper(End) -> End =:= [].

printed(Term) -> text($b, unicode:characters_to_binary(io_lib:format("~0tP", [Term, 20]))).

text(Tag, Text) -> [Tag, varint(byte_size(Text)), Text].

zigzag(N) when N >= 0 -> 2 * N;
zigzag(N) -> -2 * N - 1.

varint(N) when N < 128 -> [N];
varint(N) -> [128 + N rem 128 | varint(N div 128)].

decode_all(Bytes) ->
    case decode(Bytes, 0) of
        {Term, <<>>} -> Term;
        _More -> throw(corrupt)
    end.

decode(_Bytes, Depth) when Depth > ?DEPTH -> throw(corrupt);
decode(<<$i, Rest/binary>>, _Depth) ->
    {N, Rest1} = unvarint(Rest, 0, 0),
    {case N rem 2 of 0 -> N div 2; 1 -> -(N + 1) div 2 end, Rest1};
decode(<<$f, V:64/float, Rest/binary>>, _Depth) ->
    {V, Rest};
decode(<<$b, Rest/binary>>, _Depth) ->
    {Text, Rest1} = bytes(Rest),
    %% A copy, so that a small part does not keep the whole alive.
    {binary:copy(Text), Rest1};
decode(<<$a, Rest/binary>>, _Depth) ->
    {Text, Rest1} = bytes(Rest),
    {atom(Text), Rest1};
decode(<<$l, Rest/binary>>, Depth) ->
    {N, Rest1} = unvarint(Rest, 0, 0),
    many(N, Rest1, Depth + 1, []);
decode(<<$t, Rest/binary>>, Depth) ->
    {N, Rest1} = unvarint(Rest, 0, 0),
    {Terms, Rest2} = many(N, Rest1, Depth + 1, []),
    {list_to_tuple(Terms), Rest2};
decode(<<$m, Rest/binary>>, Depth) ->
    {N, Rest1} = unvarint(Rest, 0, 0),
    {Terms, Rest2} = many(2 * N, Rest1, Depth + 1, []),
    {maps:from_list(pairs(Terms)), Rest2};
decode(_Other, _Depth) ->
    throw(corrupt).

many(0, Rest, _Depth, Acc) -> {lists:reverse(Acc), Rest};
many(N, Bytes, Depth, Acc) ->
    {Term, Rest} = decode(Bytes, Depth),
    many(N - 1, Rest, Depth, [Term | Acc]).

pairs([K, V | Rest]) -> [{K, V} | pairs(Rest)];
pairs([]) -> [].

bytes(Bytes) ->
    {N, Rest} = unvarint(Bytes, 0, 0),
    case Rest of
        <<Text:N/binary, Rest1/binary>> -> {Text, Rest1};
        _Short -> throw(corrupt)
    end.

atom(Text) ->
    try
        binary_to_existing_atom(Text)
    catch
        error:_Unknown -> binary:copy(Text)
    end.

unvarint(<<1:1, Low:7, Rest/binary>>, Shift, Acc) when Shift < 63 ->
    unvarint(Rest, Shift + 7, Acc bor (Low bsl Shift));
unvarint(<<0:1, Low:7, Rest/binary>>, Shift, Acc) -> {Acc bor (Low bsl Shift), Rest};
unvarint(_Other, _Shift, _Acc) -> throw(corrupt).

%% Compression: fast rather than thorough, once a frame.

deflate(Data) ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, 1),
    Packed = zlib:deflate(Z, Data, finish),
    ok = zlib:deflateEnd(Z),
    ok = zlib:close(Z),
    iolist_to_binary(Packed).

%% In steps, to stop early when a few bytes inflate to gigabytes.
inflate(Packed) ->
    Z = zlib:open(),
    ok = zlib:inflateInit(Z),
    try
        inflate(Z, zlib:safeInflate(Z, Packed), 0, [])
    catch
        error:_Reason -> throw(corrupt)
    after
        zlib:close(Z)
    end.

inflate(_Z, {finished, Data}, _Size, Acc) -> iolist_to_binary(lists:reverse(Acc, Data));
inflate(_Z, {continue, []}, _Size, _Acc) -> throw(corrupt);
inflate(Z, {continue, Data}, Size, Acc) ->
    case Size + iolist_size(Data) of
        Larger when Larger > ?MOST_BYTES -> throw(corrupt);
        Size1 -> inflate(Z, zlib:safeInflate(Z, []), Size1, [Data | Acc])
    end.
