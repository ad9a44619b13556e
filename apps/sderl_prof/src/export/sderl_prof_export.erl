%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_export).
-moduledoc """
Writes a book for other tools, as it is read, so that no size of a trace needs more memory.

| format | for | has |
|---|---|---|
| `chrome` | Perfetto, Chrome's `about:tracing` | a lane for each process: runs, could run, collects garbage |
| `csv` | spreadsheets, data frames | every event |
| `speedscope` | speedscope | time by stacks of functions, of a recording of calls |
""".

-export([write/3, format_error/1]).
-export_type([format/0, reason/0]).

-include("sderl_prof_event.hrl").

-define(FLUSH, 65_536).
-define(MOST_STACKS, 200_000).
%% Names of processes that are remembered at a time.
-define(LABELS, 100_000).

-type format() :: chrome | csv | speedscope.
-type reason() :: {file, file:filename_all(), file:posix() | badarg | system_limit}
    | {no_book, file:filename_all()} | no_calls.

-record(out, {
    fd :: file:io_device(),
    book :: sderl_prof_book:book(),
    from :: integer(),
    buffer = [] :: iodata(),
    size = 0 :: non_neg_integer(),
    labels = #{} :: #{non_neg_integer() => binary()}
}).

-doc "Writes the book in the folder `Dir` to the file `Out`.".
-spec write(format(), Dir :: file:filename_all(), Out :: file:filename_all()) ->
    ok | {error, reason()}.
write(Format, Dir, Out) ->
    maybe
        {ok, Book} ?= sderl_prof_book:open(Dir),
        #{kinds := Kinds, first := First} = sderl_prof_book:meta(Book),
        ok ?= has_calls(Format, Kinds),
        {ok, Fd} ?= opened(Out),
        Written = try
            #out{buffer = Rest} = write_all(Format, #out{fd = Fd, book = Book, from = First}),
            file:write(Fd, Rest)
        catch
            throw:{file, Why} -> {error, Why}
        after
            _ = file:close(Fd),
            ok = sderl_prof_book:close(Book)
        end,
        written(Written, Out)
    end.

has_calls(speedscope, Kinds) when not is_map_key(call, Kinds) -> {error, no_calls};
has_calls(_, _) -> ok.

opened(Out) ->
    case file:open(Out, [write, raw, binary]) of
        {ok, Fd} -> {ok, Fd};
        {error, Why} -> {error, {file, Out, Why}}
    end.

written(ok, _) -> ok;
written({error, Why}, Out) -> {error, {file, Out, Why}}.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({file, Name, Why}) ->
    io_lib:format("cannot write ~ts: ~ts", [Name, file:format_error(Why)]);
format_error({no_book, Dir}) -> io_lib:format("~ts holds no analysed trace", [Dir]);
format_error(no_calls) ->
    "the recording has no calls; record with the profile calls and its modules".

put_text(Text, #out{buffer = Buffer, size = Size, fd = Fd} = Out) ->
    case Size + iolist_size(Text) of
        More when More >= ?FLUSH ->
            case file:write(Fd, [Buffer | Text]) of
                ok -> Out#out{buffer = [], size = 0};
                {error, Why} -> throw({file, Why})
            end;
        More -> Out#out{buffer = [Buffer | Text], size = More}
    end.

label(0, Out) -> {~"", Out};
label(P, #out{labels = Labels, book = Book} = Out) ->
    case Labels of
        #{P := Label} -> {Label, Out};
        _ ->
            Label = sderl_prof_book:label(P, Book),
            Kept = case map_size(Labels) < ?LABELS of true -> Labels; false -> #{} end,
            {Label, Out#out{labels = Kept#{P => Label}}}
    end.

%% ---------------------------------------------------------------- formats

write_all(csv, #out{book = Book} = Out) ->
    Head = put_text(~"time_ns,kind,scheduler,process,number,other,detail,bytes\n", Out),
    sderl_prof_book:fold(Book, #{}, fun csv_row/7, Head);
write_all(chrome, #out{book = Book, from = From} = Out0) ->
    Out1 = put_text(~"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", Out0),
    Out2 = sderl_prof_book:fold_entities(fun lane/2, Out1, Book),
    #{kinds := Kinds, last := Last} = sderl_prof_book:meta(Book),
    Mode = sderl_prof_activity:mode(Kinds),
    Activity = sderl_prof_activity:new(Mode, fun interval/7, Out2),
    Step = fun(T, K, S, P, A, B, Act) -> sderl_prof_activity:step(T, K, S, P, A, B, Act) end,
    Whole = sderl_prof_book:fold(Book, #{}, Step, Activity),
    {_, Out3} = sderl_prof_activity:finish(Last, Whole),
    %% The last one has no comma behind it.
    put_text(["{\"ph\":\"i\",\"name\":\"end\",\"s\":\"g\",\"pid\":1,\"tid\":0,\"ts\":",
              us(Last - From), "}\n]}\n"], Out3);
write_all(speedscope, #out{book = Book} = Out) ->
    Step = fun(T, K, _, P, A, B, Calls) -> sderl_prof_calls:step(T, K, P, A, B, Calls) end,
    Calls = sderl_prof_book:fold(Book, #{}, Step, sderl_prof_calls:new(?MOST_STACKS)),
    #{stacks := Stacks} = sderl_prof_calls:result(Calls),
    put_text(json:encode(sderl_prof_speedscope:profile(Stacks, Book)), Out).

csv_row(T, K, S, P, A, B, #out{book = Book, from = From} = Out) ->
    Kind = sderl_prof_event:kind(K),
    {Who, Out1} = label(P, Out),
    {Other, Detail, Bytes, Out2} = csv_detail(Kind, A, B, Book, Out1),
    put_text([integer_to_binary(T - From), $,, atom_to_binary(Kind), $,, integer_to_binary(S), $,,
              quoted(Who), $,, integer_to_binary(P), $,, quoted(Other), $,, quoted(Detail), $,,
              Bytes, $\n], Out2).

csv_detail(Kind, A, B, _, Out) when Kind =:= send; Kind =:= send_nobody ->
    {Other, Out1} = label(A, Out),
    {Other, ~"", integer_to_binary(B), Out1};
csv_detail('receive', _, B, _, Out) -> {~"", ~"", integer_to_binary(B), Out};
csv_detail(Kind, A, B, Book, Out)
  when Kind =:= spawn; Kind =:= spawned; Kind =:= link; Kind =:= open ->
    {Other, Out1} = label(A, Out),
    {Other, sderl_prof_book:word(B, Book), ~"", Out1};
csv_detail(Kind, A, _, _, Out) when Kind =:= scheduler_active; Kind =:= scheduler_inactive ->
    {~"", integer_to_binary(A), ~"", Out};
csv_detail(_, A, _, Book, Out) -> {~"", sderl_prof_book:word(A, Book), ~"", Out}.

quoted(Text) ->
    case binary:match(Text, [~",", ~"\"", ~"\n", ~"\r"]) of
        nomatch -> Text;
        _ -> [$", binary:replace(Text, ~"\"", ~"\"\"", [global]), $"]
    end.

lane(#{number := N, kind := process, entry := Entry} = Entity, #out{book = Book} = Out) ->
    Name = iolist_to_binary([sderl_prof_book:label(Entity, Book), " ",
                             sderl_prof_book:word(Entry, Book)]),
    put_text(["{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":", integer_to_binary(N),
              ",\"args\":{\"name\":", json:encode(Name), "}},\n"], Out);
lane(_, Out) -> Out.

%% A process waits where its lane is empty.
interval(waiting, _, _, _, _, _, Out) -> Out;
interval(What, P, From, To, _, _, #out{from = First} = Out) ->
    put_text(["{\"ph\":\"X\",\"name\":\"", atom_to_binary(What), "\",\"pid\":1,\"tid\":",
              integer_to_binary(P), ",\"ts\":", us(From - First), ",\"dur\":", us(To - From),
              "},\n"], Out).

us(Ns) -> io_lib:format("~b.~3..0b", [Ns div 1000, Ns rem 1000]).
