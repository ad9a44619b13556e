%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_listing).
-moduledoc """
The source text of a function, as it is on the machine on which the recording is opened.

The compiled module is looked for in the code path, by its name. It says of which source it was
made; if that is not on this machine, the source is looked for beside the compiled file, as OTP's
own tools do it (`filelib:find_source/1`). Of what a browser or a trace says only the module's name
becomes part of a path, and it may have no separator in it. No module is loaded, and no function
called.
""".

-export([named/1, make/2]).
-export_type([listing/0, named/0, recorded/0]).

-include_lib("kernel/include/file.hrl").

-define(MOST_BYTES, 4_194_304).
%% Lines before and from the function on; letters of a line.
-define(BEFORE, 40).
-define(MOST_LINES, 400).
-define(MOST_LETTERS, 400).
-define(EXTENSIONS, [".erl", ".yrl", ".xrl", ".ex", ".lfe", ".gleam"]).

-type named() :: {Module :: binary(), Function :: binary(), Arity :: non_neg_integer()}.
-doc "Modules with the checksums of what was recorded; of several nodes a module may have several.".
-type recorded() :: [{Module :: binary(), Md5 :: binary()}].
-doc """
`lines` are those from the number `first` on, and `line` to `last` those of the function, where they
are known. `version` tells whether the compiled file is what was recorded; of several nodes it may
be so on `some`. `why` is a sentence where there are no lines, `note` one where the lines may be
others.
""".
-type listing() :: #{
    function := binary(), file := binary() | null, first := pos_integer(), lines := [binary()],
    line := pos_integer() | null, last := pos_integer() | null,
    version := same | some | other | unknown, why := binary() | null, note := binary() | null
}.

-doc "The function that a word of a recording names.".
-spec named(binary()) -> {ok, named()} | error.
named(Text) ->
    maybe
        [Module, Rest] ?= string:split(Text, ~":"),
        true ?= is_name(Module),
        [Function, Digits] ?= string:split(Rest, ~"/", trailing),
        true ?= Function =/= ~"",
        {Arity, <<>>} ?= string:to_integer(Digits),
        true ?= Arity >= 0,
        {ok, {Module, Function, Arity}}
    else
        _ -> error
    end.

%% Nothing that would lead out of the folder in which it is looked for.
is_name(Module) ->
    byte_size(Module) >= 1 andalso byte_size(Module) =< 255
        andalso binary:match(Module, [~"/", ~"\\", <<0>>]) =:= nomatch
        andalso is_list(unicode:characters_to_list(Module)).

-doc "The text around a function.".
-spec make(named(), recorded()) -> listing().
make({Module, Function, Arity} = Named, Recorded) ->
    Empty = #{
        function => iolist_to_binary([Module, $:, Function, $/, integer_to_binary(Arity)]),
        file => null, first => 1, lines => [], line => null, last => null, version => unknown,
        why => null, note => null
    },
    maybe
        {ok, Beam, Code} ?= compiled(Module),
        Version = version(code:module_md5(Code), [Md5 || {M, Md5} <- Recorded, M =:= Module]),
        Known = Empty#{version := Version},
        {ok, File, Text} ?= with(Known, source(Beam, Code)),
        Found = Known#{file := unicode:characters_to_binary(File)},
        {ok, Place} ?= with(Found, place(Named, Code, File, Text)),
        shown(Place, Text, Found#{note := note(Version, Beam, File)})
    else
        {error, Why} -> Empty#{why := sentence(Why)};
        {error, Why, Known1} -> Known1#{why := sentence(Why)}
    end.

with(_, {ok, _} = Found) -> Found;
with(_, {ok, _, _} = Found) -> Found;
with(Known, {error, Why}) -> {error, Why, Known}.

sentence(Why) -> unicode:characters_to_binary(Why).

%% ---------------------------------------------------------------- files

compiled(Module) ->
    case code:where_is_file(unicode:characters_to_list(<<Module/binary, ".beam">>)) of
        non_existing ->
            {error, ["no module ", Module, " is in the code path of this program; ERL_LIBS names "
                     "folders with applications that are to be in it"]};
        File ->
            case erl_prim_loader:read_file(File) of
                {ok, Code} -> {ok, File, Code};
                error -> {error, [File, " cannot be read"]}
            end
    end.

version(_, []) -> unknown;
version(Here, Recorded) ->
    case {lists:member(Here, Recorded), lists:usort(Recorded)} of
        {true, [Here]} -> same;
        {true, _} -> some;
        {false, _} -> other
    end.

source(Beam, Code) ->
    Said = case beam_lib:chunks(Code, [compile_info]) of
        {ok, {_, [{compile_info, Info}]}} -> proplists:get_value(source, Info, none);
        {error, beam_lib, _} -> none
    end,
    Beside = case filelib:find_source(Beam) of
        {ok, File} -> [File];
        {error, not_found} -> []
    end,
    Candidates = [File || File <- [Said | Beside], is_source(File)],
    case lists:search(fun filelib:is_regular/1, Candidates) of
        {value, Found} -> read(Found);
        false when Said =:= none ->
            {error, [Beam, " does not say which source it was made of (it was stripped, or "
                     "compiled with +deterministic), and there is none beside it"]};
        false ->
            {error, io_lib:format("~ts was made of ~ts, which is no source file on this machine",
                                  [filename:basename(Beam), Said])}
    end.

is_source(File) when is_list(File) ->
    filename:pathtype(File) =:= absolute
        andalso lists:member(filename:extension(File), ?EXTENSIONS);
is_source(_) -> false.

read(File) ->
    maybe
        {ok, #file_info{size = Size}} ?= file:read_file_info(File),
        true ?= Size =< ?MOST_BYTES orelse {error, efbig},
        {ok, Bytes} ?= file:read_file(File),
        {ok, File, letters(Bytes)}
    else
        {error, Why} -> {error, [File, ": ", file:format_error(Why)]}
    end.

letters(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        Text when is_binary(Text) -> Text;
        _ -> unicode:characters_to_binary(Bytes, latin1)
    end.

%% ---------------------------------------------------------------- the place

%% By the forms that the compiled file has, or where the text has what begins such a function.
place({_, Function, Arity}, Code, File, Text) ->
    {Name, OfArity} = written_in(Function, Arity),
    case beam_lib:chunks(Code, [abstract_code]) of
        {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} ->
            in_forms(Name, OfArity, filename:basename(File), Forms);
        _ -> {ok, in_text(Name, binary:split(Text, ~"\n", [global]), 1)}
    end.

%% A fun is told as -function/arity-fun-number-, a comprehension alike.
written_in(<<"-", Rest/binary>>, Arity) ->
    maybe
        [Name, Behind] ?= string:split(Rest, ~"/"),
        {OfArity, <<"-", _/binary>>} ?= string:to_integer(Behind),
        written_in(Name, OfArity)
    else
        _ -> {Rest, Arity}
    end;
written_in(Name, Arity) -> {Name, Arity}.

in_forms(Name, Arity, Source, Forms) ->
    case in_forms(Name, Arity, Source, Source, Forms) of
        none -> {ok, none};
        {Source, Lines} -> {ok, Lines};
        {Other, _} ->
            {error, ["it is written in ", Other, ", which the module includes"]}
    end.

in_forms(Name, Arity, _, Source, [{attribute, _, file, {File, _}} | Forms]) ->
    in_forms(Name, Arity, filename:basename(File), Source, Forms);
in_forms(Name, Arity, File, Source, [{function, At, Called, Arity, _} = Form | Forms]) ->
    case atom_to_binary(Called) =:= Name of
        true ->
            Last = erl_parse:fold_anno(fun(A, Most) -> max(erl_anno:line(A), Most) end, 1, Form),
            {File, {erl_anno:line(At), Last}};
        false -> in_forms(Name, Arity, File, Source, Forms)
    end;
in_forms(Name, Arity, File, Source, [_ | Forms]) ->
    in_forms(Name, Arity, File, Source, Forms);
in_forms(_, _, _, _, []) -> none.

%% The first function of this name: without forms nothing tells how many arguments it has.
in_text(Name, [Line | Lines], N) ->
    Size = byte_size(Name),
    case Line of
        <<Name:Size/binary, "(", _/binary>> -> {N, N};
        <<"'", Name:Size/binary, "'(", _/binary>> -> {N, N};
        _ -> in_text(Name, Lines, N + 1)
    end;
in_text(_, [], _) -> none.

shown(none, Text, Found) ->
    (lines(1, Text, Found))#{note := ~"the function was not found in it: this is its begin"};
shown({Line, Last}, Text, Found) ->
    (lines(max(1, Line - ?BEFORE), Text, Found))#{line := Line, last := Last}.

lines(First, Text, Found) ->
    All = binary:split(Text, [~"\r\n", ~"\n"], [global]),
    Rest = case length(All) >= First of
        true -> lists:nthtail(First - 1, All);
        false -> []
    end,
    Found#{first := First, lines := [string:slice(Line, 0, ?MOST_LETTERS)
                                     || Line <- lists:sublist(Rest, ?MOST_LINES)]}.

note(Version, Beam, File) ->
    Written = fun(Name) -> filelib:last_modified(Name) end,
    case Version of
        other -> ~"another version was recorded: its lines may be others";
        some -> ~"other nodes ran another version: its lines may be others there";
        _ ->
            case Written(File) > Written(Beam) of
                true -> ~"the file was changed after this module was compiled";
                false when Version =:= unknown ->
                    ~"as it is here now: the recording does not tell which version it was of";
                false -> null
            end
    end.
