%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_export).
-moduledoc """
Writes a book for other tools, as it is read, so that no size of a trace needs more memory.

| format | for | has |
|---|---|---|
| `chrome` | Perfetto, Chrome's `about:tracing` | a lane for each process: runs, could run, collects garbage |
| `csv` | spreadsheets, data frames | every event |
| `speedscope` | speedscope | time by stacks of functions, of a recording of calls |
| `pprof` | pprof | the same |

Of several nodes, `chrome` has a group of lanes for each, on one time line, and an arrow for each
message between nodes of which send and receive are known. Operations on groups have lanes of their
own.
""".

-export([write/3, write_joined/2, format_error/1]).
-export_type([format/0, reason/0]).

-include("sderl_prof_event.hrl").

-define(FLUSH, 65_536).
-define(MOST_STACKS, 200_000).
%% Names of processes that are remembered at a time.
-define(LABELS, 100_000).
-define(MOST_OPERATIONS, 100_000).

-type format() :: chrome | csv | speedscope | pprof.
-type reason() :: {file, file:filename_all(), file:posix() | badarg | system_limit}
    | {no_book, file:filename_all()} | no_calls | {between, file:posix()}.

-record(out, {
    fd :: file:io_device(),
    book :: sderl_prof_book:book() | none,
    from :: integer(),
    %% The group of lanes, and what makes a time of the trace one since the begin.
    group = 1 :: pos_integer(),
    since_begin :: fun((integer()) -> integer()),
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
        Written = written(Out, fun(Fd) ->
            write_all(Format, #out{fd = Fd, book = Book, from = First,
                                   since_begin = fun(T) -> T - First end})
        end),
        ok = sderl_prof_book:close(Book),
        Written
    end.

-doc "Writes several nodes to the file `Out`, in the format `chrome`.".
-spec write_joined(sderl_prof_joined:joined(), Out :: file:filename_all()) ->
    ok | {error, reason()}.
write_joined(Joined, Out) ->
    {Begin, End} = sderl_prof_joined:range(Joined),
    written(Out, fun(Fd) ->
        write_nodes(Joined, End, #out{fd = Fd, book = none, from = Begin,
                                      since_begin = fun(T) -> T - Begin end})
    end).

written(Out, Write) ->
    case sderl_prof_beside:write(Out, fun(Own) -> filled(Own, Write) end) of
        ok -> ok;
        {error, {failed, Error}} -> Error;
        {error, {place, Why}} -> {error, {file, Out, Why}};
        {error, Why} -> {error, {file, Out, Why}}
    end.

filled(Name, Write) ->
    maybe
        {ok, Fd} ?= file:open(Name, [write, raw, binary]),
        Filled = try
            #out{buffer = Rest} = Write(Fd),
            file:write(Fd, Rest)
        catch
            throw:{file, Why} -> {error, Why};
            throw:{error, _} = Failed -> {error, {failed, Failed}}
        end,
        %% What waited to be written may fail then.
        Closed = file:close(Fd),
        ok ?= Filled,
        Closed
    end.

has_calls(Format, Kinds) when Format =:= speedscope orelse Format =:= pprof,
                              not is_map_key(call, Kinds) -> {error, no_calls};
has_calls(_, _) -> ok.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({file, Name, Why}) ->
    io_lib:format("cannot write ~ts: ~ts", [Name, file:format_error(Why)]);
format_error({between, Why}) ->
    io_lib:format("cannot write or read the messages between nodes beside the books: ~ts",
                  [file:format_error(Why)]);
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
write_all(chrome, Out) ->
    Out1 = write_lanes(begin_chrome(Out)),
    #{last := Last} = sderl_prof_book:meta(Out#out.book),
    end_chrome(Last, Out1);
write_all(speedscope, #out{book = Book} = Out) ->
    put_text(json:encode(sderl_prof_speedscope:profile(stacks(Book), Book)), Out);
write_all(pprof, #out{book = Book} = Out) ->
    put_text(sderl_prof_pprof:profile(stacks(Book), Book), Out).

stacks(Book) ->
    Step = fun(T, K, _, P, A, B, Calls) -> sderl_prof_calls:step(T, K, P, A, B, Calls) end,
    Calls = sderl_prof_book:fold(Book, #{}, Step, sderl_prof_calls:new(?MOST_STACKS)),
    #{stacks := Stacks} = sderl_prof_calls:result(Calls),
    Stacks.

begin_chrome(Out) ->
    put_text(~"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", Out).

%% The last one has no comma behind it.
end_chrome(Last, Out) ->
    put_text(["{\"ph\":\"i\",\"name\":\"end\",\"s\":\"g\",\"pid\":1,\"tid\":0,\"ts\":",
              us(Last, Out), "}\n]}\n"], Out).

write_lanes(#out{book = Book} = Out0) ->
    Out1 = sderl_prof_book:fold_entities(fun lane/2, Out0, Book),
    #{kinds := Kinds, last := Last} = sderl_prof_book:meta(Book),
    Mode = sderl_prof_activity:mode(Kinds),
    Activity = sderl_prof_activity:new(Mode, fun interval/7, Out1),
    Step = fun(T, K, S, P, A, B, Act) -> sderl_prof_activity:step(T, K, S, P, A, B, Act) end,
    Whole = sderl_prof_book:fold(Book, #{}, Step, Activity),
    {_, Out2} = sderl_prof_activity:finish(Last, Whole),
    #{operations := Operations} = sderl_prof_operations:find(Book, ?MOST_OPERATIONS),
    {_, Out3} = lists:foldl(fun operation/2, {1, Out2},
                            [sderl_prof_operations:told(One, Book) || One <- Operations]),
    Out3.

%% It lasts longer than the runs of its process, and so is on a lane of its own.
operation(#{process := P, operation := Name, at := At, took := Took, arguments := Arguments,
            text := Text}, {Number, #out{group = Group} = Out}) ->
    End = fun(Phase, Time, More) ->
        ["{\"ph\":\"", Phase, "\",\"cat\":\"s_group\",\"name\":", json:encode(Name),
         ",\"id2\":{\"local\":", integer_to_binary(Number), "},\"pid\":",
         integer_to_binary(Group), ",\"tid\":", integer_to_binary(P), ",\"ts\":",
         us(Time, Out), ",\"args\":", json:encode(More), "},\n"]
    end,
    Last = case Took of
        null -> [];
        _ -> End(~"e", At + Took, #{result => Text})
    end,
    {Number + 1, put_text([End(~"b", At, #{arguments => Arguments}), Last], Out)}.

%% ---------------------------------------------------------------- several nodes

write_nodes(Joined, End, Out0) ->
    Out1 = lists:foldl(fun write_node/2, begin_chrome(Out0), sderl_prof_joined:nodes(Joined)),
    case sderl_prof_joined:messages(fun arrow/2, {1, Out1}, Joined) of
        {ok, {_, Out2}, _} -> end_chrome(End, Out2);
        Error -> throw(Error)
    end.

write_node(#{number := N, entry := #{node := Node}, book := Dir} = Part,
           #out{from = Begin} = Out) ->
    Book = case sderl_prof_book:open(Dir) of
        {ok, Opened} -> Opened;
        Error -> throw(Error)
    end,
    Named = put_text(["{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", integer_to_binary(N),
                      ",\"args\":{\"name\":", json:encode(Node), "}},\n"], Out),
    Since = fun(T) -> sderl_prof_joined:common(T, Part) - Begin end,
    Written = write_lanes(Named#out{book = Book, group = N, since_begin = Since, labels = #{}}),
    ok = sderl_prof_book:close(Book),
    Written#out{book = none, since_begin = fun(T) -> T - Begin end}.

%% From the run that sends to the one that receives.
arrow(#{from := From, from_process := P, sent := Sent, to := To, to_process := Q,
        received := Received, bytes := Bytes}, {Number, Out}) ->
    {Number + 1, put_text([
        arrow_end(~"s", Number, From, P, Sent, Out),
        ",\"args\":{\"bytes\":", integer_to_binary(Bytes), "}},\n",
        arrow_end(~"f", Number, To, Q, Received, Out), ",\"bp\":\"e\"},\n"
    ], Out)}.

arrow_end(Phase, Number, Group, P, Time, Out) ->
    ["{\"ph\":\"", Phase, "\",\"cat\":\"message\",\"name\":\"message\",\"id\":",
     integer_to_binary(Number), ",\"pid\":", integer_to_binary(Group), ",\"tid\":",
     integer_to_binary(P), ",\"ts\":", us(Time, Out)].

%% ---------------------------------------------------------------- rows and lanes

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
csv_detail('receive', A, B, _, Out) ->
    {Sender, Out1} = label(A, Out),
    {Sender, ~"", integer_to_binary(B), Out1};
csv_detail(Kind, A, B, Book, Out)
  when Kind =:= spawn; Kind =:= spawned; Kind =:= link; Kind =:= open ->
    {Other, Out1} = label(A, Out),
    {Other, sderl_prof_book:word(B, Book), ~"", Out1};
csv_detail(Kind, A, _, _, Out) when Kind =:= scheduler_active; Kind =:= scheduler_inactive ->
    {~"", integer_to_binary(A), ~"", Out};
csv_detail(Kind, A, B, Book, Out)
  when Kind =:= operation; Kind =:= result; Kind =:= failed ->
    {sderl_prof_book:word(B, Book), sderl_prof_book:word(A, Book), ~"", Out};
csv_detail(Kind, A, B, Book, Out) when Kind =:= passed; Kind =:= delivered; Kind =:= undelivered ->
    {integer_to_binary(B), sderl_prof_book:word(A, Book), ~"", Out};
csv_detail(routed, A, B, Book, Out) ->
    {~"", sderl_prof_book:word(A, Book), integer_to_binary(B), Out};
csv_detail(_, A, _, Book, Out) -> {~"", sderl_prof_book:word(A, Book), ~"", Out}.

quoted(Text) ->
    case binary:match(Text, [~",", ~"\"", ~"\n", ~"\r"]) of
        nomatch -> Text;
        _ -> [$", binary:replace(Text, ~"\"", ~"\"\"", [global]), $"]
    end.

lane(#{number := N, kind := process, entry := Entry} = Entity,
     #out{book = Book, group = Group} = Out) ->
    Name = iolist_to_binary([sderl_prof_book:label(Entity, Book), " ",
                             sderl_prof_book:word(Entry, Book)]),
    put_text(["{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":", integer_to_binary(Group),
              ",\"tid\":", integer_to_binary(N), ",\"args\":{\"name\":", json:encode(Name),
              "}},\n"], Out);
lane(_, Out) -> Out.

%% A process waits where its lane is empty.
interval(waiting, _, _, _, _, _, Out) -> Out;
interval(What, P, From, To, _, _, #out{group = Group, since_begin = Since} = Out) ->
    Begin = Since(From),
    put_text(["{\"ph\":\"X\",\"name\":\"", atom_to_binary(What), "\",\"pid\":",
              integer_to_binary(Group), ",\"tid\":", integer_to_binary(P), ",\"ts\":",
              shown_us(Begin), ",\"dur\":", shown_us(Since(To) - Begin), "},\n"], Out).

us(Time, #out{since_begin = Since}) -> shown_us(Since(Time)).

%% A clock that is wrong by a little may have something before the begin.
shown_us(Ns) when Ns < 0 -> [$- | shown_us(-Ns)];
shown_us(Ns) -> io_lib:format("~b.~3..0b", [Ns div 1000, Ns rem 1000]).
