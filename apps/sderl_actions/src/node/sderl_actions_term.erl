%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_term).
-moduledoc """
Reads a term from a text with existing atoms of this node. No atom is made, so that texts from
outside cannot fill the table of atoms.
""".

-export([read/1]).

-doc "Errors are sentences.".
-spec read(binary()) -> {ok, term()} | {error, unicode:chardata()}.
read(Text) ->
    maybe
        Chars = [_ | _] ?= unicode:characters_to_list(Text),
        {ok, Tokens} ?= tokens(Chars ++ ". "),
        {ok, Term} ?= erl_parse:parse_term(Tokens),
        {ok, Term}
    else
        {error, {_, Module, Why}} when is_atom(Module) ->
            {error, ["this is no term: ", Module:format_error(Why)]};
        {error, _} = Error -> Error;
        _ -> {error, <<"this is no term">>}
    end.

tokens(Chars) ->
    try unknown(Chars) of
        [] ->
            case erl_scan:string(Chars) of
                {ok, Tokens, _} -> {ok, Tokens};
                {error, Why, _} -> {error, Why}
            end;
        [Name | _] ->
            {error, <<"nothing on this node is called ", (sderl_actions_show:cut(Name, 255))/binary,
                      "; write a text as \"...\" or <<\"...\">>">>}
    catch
        throw:{refused, What} ->
            {error, <<What/binary, " cannot be read here; write it in another way">>}
    end.

%% Names that are no atoms yet. Tokens whose end is hard to find are refused, so that no name hides
%% behind one.
unknown(Chars) -> [Name || Name <- names(Chars, []), not is_atom_here(Name)].

is_atom_here(Name) ->
    try is_atom(list_to_existing_atom(Name))
    catch error:_ -> false
    end.

names([], Found) -> lists:reverse(Found);
names([$", $", $" | _], _) -> throw({refused, <<"a triple-quoted text">>});
names([$~ | _], _) -> throw({refused, <<"a sigil">>});
names([$" | Rest], Found) -> names(after_text(Rest), Found);
names([$' | Rest], Found) ->
    {Name, After} = lists:splitwith(fun(C) -> C =/= $' end, Rest),
    case lists:member($\\, Name) of
        true -> throw({refused, <<"a quoted name with a backslash">>});
        false -> names(lists:nthtail(min(1, length(After)), After), [Name | Found])
    end;
names([$$, $\\ | Rest], Found) -> names(after_escape(Rest), Found);
names([$$, _ | Rest], Found) -> names(Rest, Found);
names([$% | Rest], Found) -> names(lists:dropwhile(fun(C) -> C =/= $\n end, Rest), Found);
names([C | _] = Chars, Found) when C >= $0, C =< $9 -> names(after_number(Chars), Found);
names([C | Rest] = Chars, Found) ->
    case is_name(C) of
        true ->
            {Name, After} = lists:splitwith(fun is_name/1, Chars),
            %% Variables, too, because the scanner makes atoms of their names.
            names(After, [Name | Found]);
        false -> names(Rest, Found)
    end.

%% Reads an escape as the scanner does, because a name may follow. The scanner stops at a wrong one.
after_escape([$^, _ | Rest]) -> Rest;
after_escape([$x, ${ | Rest]) ->
    case lists:dropwhile(fun(C) -> C =/= $} end, Rest) of
        [$} | After] -> After;
        [] -> []
    end;
after_escape([$x, A, B | Rest]) ->
    case is_hex(A) andalso is_hex(B) of
        true -> Rest;
        false -> [A, B | Rest]
    end;
after_escape([C | _] = Digits) when C >= $0, C =< $7 -> after_octal(Digits, 3);
after_escape([_ | Rest]) -> Rest;
after_escape([]) -> [].

after_octal([C | Rest], Left) when Left > 0, C >= $0, C =< $7 -> after_octal(Rest, Left - 1);
after_octal(Rest, _) -> Rest.

is_hex(C) ->
    (C >= $0 andalso C =< $9) orelse (C >= $a andalso C =< $f) orelse (C >= $A andalso C =< $F).

after_text([]) -> [];
after_text([$\\, $^, _ | Rest]) -> after_text(Rest);
after_text([$\\, _ | Rest]) -> after_text(Rest);
after_text([$" | Rest]) -> Rest;
after_text([_ | Rest]) -> after_text(Rest).

%% Characters right after a number may be a name.
after_number(Chars) ->
    case after_digits(Chars) of
        [$., C | Rest] when C >= $0, C =< $9 -> after_exponent(after_digits(Rest));
        Rest -> Rest
    end.

after_exponent([E, C | Rest]) when (E =:= $e orelse E =:= $E), C >= $0, C =< $9 ->
    after_digits(Rest);
after_exponent([E, Sign, C | Rest]) when
    (E =:= $e orelse E =:= $E), (Sign =:= $- orelse Sign =:= $+), C >= $0, C =< $9
-> after_digits(Rest);
after_exponent(Rest) -> Rest.

after_digits(Chars) -> lists:dropwhile(fun(C) -> C >= $0 andalso C =< $9 end, Chars).

is_name(C) ->
    (C >= $a andalso C =< $z) orelse (C >= $A andalso C =< $Z) orelse (C >= $0 andalso C =< $9)
        orelse C =:= $_ orelse C =:= $@ orelse C >= 16#C0.
