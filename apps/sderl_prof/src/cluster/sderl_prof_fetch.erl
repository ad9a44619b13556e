%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_fetch).
-moduledoc """
Fetches the recordings of several nodes into the folder of their index: piece by piece, each asked
for when the one before is on disk, so that neither side holds more than one, and no message between
nodes is larger.

A file that comes is `NAME.part` until it is whole and its checksum is that of the node's. What is
there of one from an attempt before is checked, and not fetched again. The file `recording` comes
last, so that a folder that has it is whole. Nothing is fetched from a node that still records: its
files are not whole, and with `remove` the rest of them would be lost.
""".

-export([fetch/2, node/3, format_error/1]).
-export_type([options/0, reason/0, result/0]).

-define(PIECE, 262_144).
%% Bytes of one checksum: more are not read within the time that a node has to answer.
-define(RANGE, 268_435_456).
-define(WAIT_MS, 30_000).
%% Nodes that are asked at a time.
-define(AT_ONCE, 4).
-define(HERE, ".sderl-prof-here").

-doc """
`progress` is called with the node, the bytes of it that are here, and all its bytes; `piece`: bytes
of a message at most; `range`: those of one checksum; `remove`: removes from the node what has been
fetched; `wait_ms`: until a node that does not answer is given up.
""".
-type options() :: #{progress => fun((binary(), non_neg_integer(), non_neg_integer()) -> term()),
                     piece => pos_integer(), range => pos_integer(), remove => boolean(),
                     wait_ms => pos_integer()}.
-type reason() :: sderl_prof_reach:reason() | {there, file:filename_all(), file:posix() | badarg}
    | {here, file:filename_all(), term()} | {changed, file:filename_all()} | {no_files, binary()}
    | {no_connection, node()} | {bad_name, binary()} | {defect, term()} | not_recorded
    | still_recorded.
-doc "Bytes that came now, and all of them; `shared` where the folder is that of the node itself.".
-type result() :: {ok, #{fetched := non_neg_integer(), bytes := non_neg_integer(),
                         shared := boolean()}} | {error, reason()}.

-doc "Fetches from all nodes of the index in this folder what is not here.".
-spec fetch(file:filename_all(), options()) ->
    {ok, [{Node :: binary(), result()}]} | {error, sderl_prof_cluster_index:reason()}.
fetch(Dir, Options) ->
    case sderl_prof_cluster_index:read(Dir) of
        {ok, #{nodes := Entries} = Index} ->
            Results = in_turns(Entries, Dir, Options),
            Fetched = lists:foldl(fun
                ({#{node := Node} = Entry, {ok, _}}, Acc) when is_binary(Node) ->
                    sderl_prof_cluster_index:put_node(Entry#{fetched := true}, Acc);
                (_, Acc) -> Acc
            end, Index, Results),
            maybe
                ok ?= sderl_prof_cluster_index:write(Dir, Fetched),
                {ok, [{Node, Result} || {#{node := Node}, Result} <- Results]}
            end;
        Error -> Error
    end.

in_turns([], _, _) -> [];
in_turns(Entries, Dir, Options) ->
    {Now, Later} = lists:split(min(?AT_ONCE, length(Entries)), Entries),
    Started = [{Entry, started(fun() -> node(Dir, Entry, Options) end)} || Entry <- Now],
    Results = [{Entry, receive
                   {Tag, Result} -> Result
               end} || {Entry, Tag} <- Started],
    Results ++ in_turns(Later, Dir, Options).

%% It ends with its caller, and says why when it fails.
started(Fun) ->
    Self = self(),
    Tag = make_ref(),
    _ = spawn_link(fun() ->
        Self ! {Tag, try Fun() catch _:Why -> {error, {defect, Why}} end}
    end),
    Tag.

-doc "Fetches from one node.".
-spec node(file:filename_all(), sderl_prof_cluster_index:entry(), options()) -> result().
node(_, #{state := waiting}, _) -> {error, not_recorded};
node(_, #{state := failed, began := null}, _) -> {error, not_recorded};
node(Dir, #{node := Name, dir := There} = Entry, Options) ->
    Here = sderl_prof_cluster_index:folder(Dir, Entry),
    Work = #{here => Here, there => There, name => Name,
             piece => maps:get(piece, Options, ?PIECE),
             range => maps:get(range, Options, ?RANGE),
             wait_ms => maps:get(wait_ms, Options, ?WAIT_MS),
             progress => maps:get(progress, Options, fun(_, _, _) -> ok end)},
    maybe
        {ok, Node} ?= known(Name),
        ok ?= sderl_prof_reach:connect(Node),
        ok ?= sderl_prof_reach:load(Node, map_get(wait_ms, Work)),
        ok ?= here(Here, filelib:ensure_path(Here)),
        ok = remove_marks(Here),
        false ?= ask(is_recording, [], Work#{at => Node}),
        {ok, Files} ?= ask(list, [], Work#{at => Node}),
        ok ?= has_files(Files, Name),
        Bytes = lists:sum([Size || {_, Size} <- Files]),
        {ok, Shared} ?= is_shared(Work#{at => Node}),
        fetched(Shared, Files, Bytes, Work#{at => Node, bytes => Bytes}, Options)
    else
        true -> {error, still_recorded};
        Error -> Error
    end.

%% The names of an index are as many as its nodes, and each is that of one that is to be asked.
known(Name) ->
    try {ok, binary_to_atom(Name)}
    catch error:_ -> {error, {bad_name, Name}}
    end.

has_files([], Name) -> {error, {no_files, Name}};
has_files(_, _) -> ok.

here(_, ok) -> ok;
here(Path, {error, Why}) -> {error, {here, Path, Why}}.

ask(Function, Args, #{at := Node, there := There, wait_ms := WaitMs}) ->
    case sderl_prof_reach:call(Node, sderl_prof_station, Function, [There | Args], WaitMs) of
        {error, {node, _, _}} = Error -> Error;
        {error, changed} -> {error, {changed, There}};
        {error, Why} -> {error, {there, There, Why}};
        Answer -> Answer
    end.

%% Marks of interrupted attempts.
remove_marks(Here) ->
    case file:list_dir(Here) of
        {ok, Names} ->
            lists:foreach(fun(Name) -> _ = file:delete(filename:join(Here, Name), [raw]) end,
                          [Name || ?HERE ++ _ = Name <- Names]);
        {error, _} -> ok
    end.

%% A mark that is made here is seen there, too, if both are one folder. If it is gone afterwards,
%% another fetch took it for one of an interrupted attempt: once more.
is_shared(#{here := Here} = Work) ->
    Mark = lists:concat([?HERE, "-", os:getpid(), "-", erlang:unique_integer([positive])]),
    Path = filename:join(Here, Mark),
    maybe
        ok ?= here(Path, file:write_file(Path, <<>>)),
        Answer = ask(is_there, [Mark], Work),
        case {Answer, file:delete(Path, [raw])} of
            {{error, _} = Error, _} -> Error;
            {false, {error, enoent}} -> is_shared(Work);
            _ -> {ok, Answer}
        end
    end.

fetched(true, _, Bytes, #{name := Name, progress := Progress}, _) ->
    _ = Progress(Name, Bytes, Bytes),
    {ok, #{fetched => 0, bytes => Bytes, shared => true}};
fetched(false, Files, Bytes, Work, Options) ->
    %% "recording" is behind "events".
    {Last, First} = lists:partition(fun({Name, _}) -> Name =:= "recording" end, Files),
    maybe
        {ok, New} ?= files(First ++ Last, 0, 0, Work),
        ok ?= case Options of
            #{remove := true} -> ask(remove, [Files], Work);
            _ -> ok
        end,
        {ok, #{fetched => New, bytes => Bytes, shared => false}}
    end.

%% `Here`: bytes of the files so far; `New`: those of them that came now.
files([], _, New, _) -> {ok, New};
files([{Name, Size} | Files], Here, New, Work) ->
    case file(Name, Size, Work#{before => Here}) of
        {ok, Came} -> files(Files, Here + Size, New + Came, Work);
        Error -> Error
    end.

%% ---------------------------------------------------------------- one file

%% Where it has grown, one byte more is there than was listed.
file(Name, Size, #{here := Dir, name := Node, progress := Progress, before := Before,
                   bytes := All} = Work) ->
    maybe
        {ok, {Size, Digest}} ?= whole(digest_there(Name, Size + 1, Work), Name, Size),
        case digest_here(Dir, Name, Size + 1, Work) of
            {ok, {Size, Digest}} ->
                _ = Progress(Node, Before + Size, All),
                {ok, 0};
            _ -> fetch_file(Name, Size, Digest, Work)
        end
    end.

fetch_file(Name, Size, Digest, #{here := Dir, name := Node, progress := Progress,
                                 before := Before, bytes := All} = Work) ->
    Path = filename:join(Dir, Name),
    Part = filename:join(Dir, Name ++ ".part"),
    maybe
        {ok, At} ?= begun(Name, Size, Work),
        _ = Progress(Node, Before + At, All),
        {ok, File} ?= opened(Part, At),
        Came = pieces(Name, Size, At, File, Work),
        ok ?= closed(Path, File, Came),
        ok ?= Came,
        %% Compares the file on disk, whoever wrote it.
        ok ?= same({Size, Digest}, digest_here(Dir, Name ++ ".part", Size + 1, Work), Name, Part),
        ok ?= here(Path, file:rename(Part, Path)),
        {ok, Size - At}
    end.

whole({ok, {Size, _}} = Whole, _, Size) -> Whole;
whole({ok, _}, Name, _) -> {error, {changed, Name}};
whole(Error, _, _) -> Error.

%% The part that an earlier attempt left, if the node's file begins with the same.
begun(Name, Size, #{here := Dir} = Work) ->
    Part = Name ++ ".part",
    case filelib:file_size(filename:join(Dir, Part)) of
        Bytes when Bytes > 0, Bytes =< Size ->
            case {digest_here(Dir, Part, Bytes, Work), digest_there(Name, Bytes, Work)} of
                {{ok, {Bytes, Digests}}, {ok, {Bytes, Digests}}} -> {ok, Bytes};
                {_, {error, _} = Error} -> Error;
                _ -> {ok, 0}
            end;
        _ -> {ok, 0}
    end.

digest_there(Name, Bytes, #{range := Range} = Work) ->
    digests(fun(At, Wanted) -> ask(digest, [Name, At, Wanted], Work) end, 0, Bytes, Range, []).

digest_here(Dir, Name, Bytes, #{range := Range}) ->
    digests(fun(At, Wanted) -> sderl_prof_station:digest(Dir, Name, At, Wanted) end, 0, Bytes,
            Range, []).

%% The bytes that are there, up to so many, and the checksums of their ranges.
digests(_, Bytes, Bytes, _, Digests) -> {ok, {Bytes, Digests}};
digests(Ask, At, Bytes, Range, Digests) ->
    Wanted = min(Range, Bytes - At),
    case Ask(At, Wanted) of
        {ok, {Wanted, Digest}} -> digests(Ask, At + Wanted, Bytes, Range, [Digest | Digests]);
        {ok, {Less, Digest}} -> {ok, {At + Less, [Digest | Digests]}};
        Error -> Error
    end.

opened(Path, At) ->
    maybe
        {ok, File} ?= file:open(Path, [read, write, raw, binary]),
        {ok, At} ?= file:position(File, At),
        ok ?= case filelib:file_size(Path) of
            At -> ok;
            _ -> file:truncate(File)
        end,
        {ok, File}
    else
        {error, Why} -> {error, {here, Path, Why}}
    end.

pieces(_, Size, Size, _, _) ->
    ok;
pieces(Name, Size, At, File, #{piece := Piece, progress := Progress, name := Node,
                               before := Before, bytes := All, here := Dir} = Work) ->
    maybe
        {ok, {Bin, Crc}} ?= ask(read, [Name, At, min(Piece, Size - At)], Work),
        Crc ?= erlang:crc32(Bin),
        ok ?= here(filename:join(Dir, Name ++ ".part"), file:write(File, Bin)),
        Next = At + byte_size(Bin),
        _ = Progress(Node, Before + Next, All),
        pieces(Name, Size, Next, File, Work)
    else
        {error, Why} -> {error, Why};
        %% The file has become shorter, or the piece was damaged on its way.
        _ -> {error, {changed, Name}}
    end.

%% The next attempt builds on a file only if all of it was on disk when it was closed.
closed(Path, File, Came) ->
    Synced = case Came of ok -> file:sync(File); _ -> ok end,
    Closed = file:close(File),
    maybe
        ok ?= here(Path, Synced),
        here(Path, Closed)
    end.

same(Whole, {ok, Whole}, _, _) -> ok;
same(_, _, Name, Part) ->
    _ = file:delete(Part, [raw]),
    {error, {changed, Name}}.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({there, Dir, enoent}) ->
    io_lib:format("the node has no folder ~ts any more", [Dir]);
format_error({there, Dir, Why}) ->
    io_lib:format("the node cannot read ~ts: ~ts", [Dir, file:format_error(Why)]);
format_error({here, Path, Why}) ->
    io_lib:format("cannot write ~ts: ~ts; what is here stays, and another fetch goes on with it",
                  [Path, file:format_error(Why)]);
format_error({changed, Name}) ->
    io_lib:format("~ts changed while it was fetched; fetch again when the recording has ended",
                  [Name]);
format_error({no_files, _}) -> "the node has no recording in its folder";
format_error({no_connection, Node}) ->
    io_lib:format("cannot connect to ~ts; when it is back, fetch again", [Node]);
format_error({bad_name, Name}) -> io_lib:format("\"~ts\" is no name of a node", [Name]);
format_error(still_recorded) ->
    "the node still records; fetch again when the recording has ended";
format_error(not_recorded) -> "the node was not recorded";
format_error({defect, Why}) -> io_lib:format("this is a defect of fetching: ~0tP", [Why, 10]);
format_error({node, _, _} = Why) ->
    [sderl_prof_failure:format(Why), "; fetch again, and it goes on where it was"].
