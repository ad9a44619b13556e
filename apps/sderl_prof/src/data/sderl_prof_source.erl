%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_source).
-moduledoc """
The files of a recording, or files that another tracer of OTP has written, in the order of their
events, as pieces of whole frames (`m:sderl_prof_event`).

What cannot be read is returned as a problem, and does not stop the reading of the rest: a file that
ends within an event (its node died, or its disk was full), one that holds something else from some
place on, one that is not there.
""".

-export([open/1, next/1, size/1, sample/1, format_problem/1]).
-export_type([source/0, problem/0, reason/0]).

-define(PIECE, 1_048_576).
%% An event that is larger than this is passed over: all that is read is held in memory.
-define(MOST_EVENT, 67_108_864).

-record(source, {
    files :: [file:filename_all()],
    file = none :: none | {file:fd(), file:filename_all()},
    %% Of the file, up to the end of what is read.
    at = 0 :: non_neg_integer(),
    rest = <<>> :: binary(),
    size :: non_neg_integer()
}).
-opaque source() :: #source{}.

-type problem() ::
    {truncated, file:filename_all(), Left :: non_neg_integer()}
    | {garbage, file:filename_all(), At :: non_neg_integer()}
    | {unreadable, file:filename_all(), atom()}
    | {large, file:filename_all(), Bytes :: pos_integer()}
    | {info, file:filename_all()}
    | {unfinished, file:filename_all()}.
-type reason() ::
    {none, file:filename_all()} | {not_a_trace, file:filename_all()}
    | {unreadable, file:filename_all(), atom()}.

-doc "The folder of a recording with what its recorder says of it, or a file.".
-spec open(file:filename_all()) ->
    {ok, source(), sderl_prof_recorder:info() | none, [problem()]} | {error, reason()}.
open(Path) ->
    case filelib:is_dir(Path) of
        true -> open_folder(Path);
        false -> open_files([Path], none, [])
    end.

open_folder(Dir) ->
    {Info, Problems} = read_info(filename:join(Dir, "recording")),
    case in_order(filelib:wildcard("events.*.trace", to_list(Dir))) of
        [] -> {error, {none, Dir}};
        Names -> open_files([filename:join(Dir, Name) || Name <- Names], Info, Problems)
    end.

to_list(Dir) when is_binary(Dir) -> unicode:characters_to_list(Dir);
to_list(Dir) -> Dir.

%% The driver counts up to a number and then from 0 again, and the next file to write is missing.
in_order(Names) ->
    Numbers = lists:sort([{N, Name}
                          || Name <- Names,
                             ["events", Digits, "trace"] <- [string:split(Name, ".", all)],
                             {N, ""} <- [string:to_integer(Digits)]]),
    Missing = missing(Numbers, 0),
    {Newer, Older} = lists:partition(fun({N, _}) -> N < Missing end, Numbers),
    [Name || {_, Name} <- Older ++ Newer].

missing([{N, _} | Rest], N) -> missing(Rest, N + 1);
missing(_, N) -> N.

read_info(Name) ->
    %% Its words are those of the recorder and its tap, and no others become atoms.
    ok = code:ensure_modules_loaded([sderl_prof_recorder, sderl_prof_tap]),
    try
        {ok, Bin} = file:read_file(Name),
        #{version := 1, node := Node, began := _, ended := Ended} = Info =
            binary_to_term(Bin, [safe]),
        true = is_binary(Node),
        {Info, [{unfinished, Name} || Ended =:= unknown]}
    catch
        error:_ -> {none, [{info, Name}]}
    end.

open_files(Files, Info, Problems) ->
    Sizes = [filelib:file_size(File) || File <- Files],
    Source = #source{files = Files, size = lists:sum(Sizes)},
    case Info of
        none -> opened(checked(hd(Files)), Source, Info, Problems);
        _ -> {ok, Source, Info, Problems}
    end.

opened(ok, Source, Info, Problems) -> {ok, Source, Info, Problems};
opened(Error, _, _, _) -> Error.

%% Of a file about which nobody says anything, the first frame must be one.
checked(File) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Fd} ->
            First = file:read(Fd, 7),
            ok = file:close(Fd),
            case First of
                {ok, <<0, _:32, 131, 104>>} -> ok;
                {ok, <<1, _/binary>>} -> ok;
                _ -> {error, {not_a_trace, File}}
            end;
        {error, Why} -> {error, {unreadable, File, Why}}
    end.

-doc "The bytes of all files.".
-spec size(source()) -> non_neg_integer().
size(#source{size = Size}) -> Size.

-doc "The first piece, which shows what kind of trace it is.".
-spec sample(source()) -> binary().
sample(#source{} = Source) ->
    case next(Source) of
        {piece, Piece, #source{file = {Fd, _}}} ->
            ok = file:close(Fd),
            Piece;
        {problem, _, Next} -> sample(Next);
        done -> <<>>
    end.

-doc "The next whole frames, or a problem, after which it goes on.".
-spec next(source()) -> {piece, binary(), source()} | {problem, problem(), source()} | done.
next(#source{files = [], file = none}) ->
    done;
next(#source{files = [File | Files], file = none} = S) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Fd} -> next(S#source{files = Files, file = {Fd, File}, at = 0, rest = <<>>});
        {error, Why} -> {problem, {unreadable, File, Why}, S#source{files = Files}}
    end;
next(#source{file = {Fd, File}, at = At, rest = Rest} = S) ->
    case file:read(Fd, max(?PIECE, wanted(Rest))) of
        {ok, Bin} -> pieces(<<Rest/binary, Bin/binary>>, S#source{at = At + byte_size(Bin)});
        eof -> at_end(S);
        {error, Why} -> {problem, {unreadable, File, Why}, closed(S)}
    end.

%% How many bytes are missing of an event that has only begun.
wanted(<<0, N:32, Begun/binary>>) -> N - byte_size(Begun);
wanted(_) -> 0.

at_end(#source{rest = <<>>} = S) -> next(closed(S));
at_end(#source{file = {_, File}, rest = <<Op, _/binary>> = Rest, at = At} = S) when Op > 1 ->
    {problem, {garbage, File, At - byte_size(Rest)}, closed(S)};
at_end(#source{file = {_, File}, rest = Rest} = S) ->
    {problem, {truncated, File, byte_size(Rest)}, closed(S)}.

closed(#source{file = {Fd, _}} = S) ->
    ok = file:close(Fd),
    S#source{file = none, rest = <<>>}.

pieces(Bin, #source{file = {_, File}, at = At} = S) ->
    Whole = whole(Bin, 0),
    <<Piece:Whole/binary, Rest/binary>> = Bin,
    case {Piece, Rest} of
        {<<>>, <<0, N:32, _/binary>>} when N > ?MOST_EVENT -> pass_over(N, Rest, S);
        {<<>>, <<Op, _/binary>>} when Op > 1 ->
            {problem, {garbage, File, At - byte_size(Rest)}, closed(S)};
        {<<>>, _} -> next(S#source{rest = Rest});
        _ -> {piece, Piece, S#source{rest = binary:copy(Rest)}}
    end.

whole(Bin, At) ->
    case Bin of
        <<_:At/binary, 0, N:32, _:N/binary, _/binary>> -> whole(Bin, At + 5 + N);
        <<_:At/binary, 1, _:32, _/binary>> -> whole(Bin, At + 5);
        _ -> At
    end.

pass_over(N, Rest, #source{file = {Fd, File}, at = At} = S) ->
    {ok, Position} = file:position(Fd, At - byte_size(Rest) + 5 + N),
    {problem, {large, File, N}, S#source{at = Position, rest = <<>>}}.

-doc "A problem, or why nothing can be read, in words.".
-spec format_problem(problem() | reason()) -> unicode:chardata().
format_problem({truncated, File, Left}) ->
    io_lib:format("~ts ends within an event; its last ~b bytes are left out", [base(File), Left]);
format_problem({garbage, File, At}) ->
    io_lib:format("~ts holds no events from byte ~b on; what is before is shown",
                  [base(File), At]);
format_problem({unreadable, File, Why}) ->
    io_lib:format("cannot read ~ts: ~ts", [File, file:format_error(Why)]);
format_problem({large, File, Bytes}) ->
    io_lib:format("~ts has an event of ~b bytes, which is left out", [base(File), Bytes]);
format_problem({info, File}) ->
    io_lib:format("~ts is missing or damaged; node and options are taken from the events",
                  [base(File)]);
format_problem({unfinished, File}) ->
    io_lib:format("~ts was not ended in order; the last events may be missing",
                  [filename:dirname(File)]);
format_problem({none, Dir}) ->
    io_lib:format("~ts holds no recording: it has no file events.0.trace", [Dir]);
format_problem({not_a_trace, File}) ->
    io_lib:format("~ts is no file of a tracer of OTP; name the folder of a recording, or a file "
                  "that dbg's trace_port wrote", [File]).

base(File) -> filename:basename(File).
