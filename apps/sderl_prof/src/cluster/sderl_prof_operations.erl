%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_operations).
-moduledoc """
The operations on groups in a book, of a recording of `s_group`: who called which, when, and how
long it took.
""".

-export([find/2]).
-export_type([operation/0]).

-include("sderl_prof_event.hrl").

-doc "`took` is `none` where the end was not recorded. Times are those of the node.".
-type operation() :: #{process := pos_integer(), operation := binary(), at := integer(),
                       took := non_neg_integer() | none}.

-doc "The first so many, in the order of their begin.".
-spec find(sderl_prof_book:book(), Most :: pos_integer()) -> [operation()].
find(Book, Most) ->
    case sderl_prof_book:meta(Book) of
        #{kinds := #{return_from := _, call := _}} ->
            {Open, Found, _} = sderl_prof_book:fold(Book, #{}, step(Book), {#{}, [], #{}}),
            Begun = [operation(P, Name, At, none)
                     || P := Calls <- Open, {_, Name, At} <- Calls],
            Sorted = lists:sort(fun(#{at := A}, #{at := B}) -> A =< B end, Begun ++ Found),
            lists:sublist(Sorted, Most);
        _ -> []
    end.

operation(P, Name, At, Took) -> #{process => P, operation => Name, at => At, took => Took}.

%% The calls of a process that have not returned, the latest one first; what has; and the names of
%% functions, none for those of others.
step(Book) ->
    fun(T, ?CALL, _, P, Word, _, {Open, Found, Names0}) ->
            case name(Word, Book, Names0) of
                {none, Names} -> {Open, Found, Names};
                {Name, Names} ->
                    Calls = maps:get(P, Open, []),
                    {Open#{P => [{Word, Name, T} | Calls]}, Found, Names}
            end;
       (T, ?RETURN_FROM, _, P, Word, _, {Open, Found, Names}) ->
            case Open of
                #{P := [{Word, Name, At} | Calls]} ->
                    {Open#{P := Calls}, [operation(P, Name, At, T - At) | Found], Names};
                _ -> {Open, Found, Names}
            end;
       (_, _, _, _, _, _, Acc) -> Acc
    end.

name(Word, Book, Names) ->
    case Names of
        #{Word := Name} -> {Name, Names};
        _ ->
            Name = case sderl_prof_book:word(Word, Book) of
                <<"s_group:", _/binary>> = Text -> Text;
                _ -> none
            end,
            {Name, Names#{Word => Name}}
    end.
