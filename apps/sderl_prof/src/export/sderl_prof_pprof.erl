%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_pprof).
-moduledoc """
Time by stacks of functions, as pprof reads it: its `profile.proto`, compressed. Pure.

A function is one location, with its module as the file name. Field numbers are those of the
definition (github.com/google/pprof, `proto/profile.proto`).
""".

-export([profile/2]).

-doc "A profile with a sample for each stack, whose value is the stack's time.".
-spec profile([{sderl_prof_calls:stack(), non_neg_integer()}], sderl_prof_book:book()) -> binary().
profile(Stacks, Book) ->
    Words = lists:usort(lists:append([Stack || {Stack, _} <- Stacks])),
    Places = #{Word => N || {N, Word} <- lists:enumerate(Words)},
    Names = [sderl_prof_book:word(Word, Book) || Word <- Words],
    %% The first text is empty, by the definition.
    Texts = [~"", ~"time", ~"nanoseconds" | lists:usort(Names ++ [file(Name) || Name <- Names])],
    Numbers = maps:from_list([{Text, N} || {N, Text} <- lists:enumerate(0, Texts)]),
    {From, To} = sderl_prof_book:range(sderl_prof_book:meta(Book)),
    Value = [number(1, 1), number(2, 2)],
    zlib:gzip([
        message(1, Value),
        [message(2, [message(1, [varint(map_get(Word, Places)) || Word <- Stack]),
                     message(2, varint(Ns))])
         || {Stack, Ns} <- Stacks],
        [message(4, [number(1, N), message(4, number(1, N))]) || {N, _} <- lists:enumerate(Words)],
        [message(5, [number(1, N), number(2, map_get(Name, Numbers)),
                     number(4, map_get(file(Name), Numbers))])
         || {N, Name} <- lists:enumerate(Names)],
        [message(6, Text) || Text <- Texts],
        number(10, max(0, To - From)),
        message(11, Value),
        number(12, 1)
    ]).

%% A function is called MODULE:NAME/ARITY.
file(Name) -> hd(string:split(Name, ~":")).

%% ---------------------------------------------------------------- the wire format

number(Field, N) -> [varint(Field bsl 3), varint(N)].

message(Field, Data) -> [varint(Field bsl 3 bor 2), varint(iolist_size(Data)), Data].

varint(N) when N < 128 -> <<N>>;
varint(N) -> [<<1:1, N:7>> | [varint(N bsr 7)]].
