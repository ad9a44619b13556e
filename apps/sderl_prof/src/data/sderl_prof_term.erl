%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_term).
-moduledoc """
Terms in external format as a person writes them, of a bounded length, without building them and
without making an atom. Pure.
""".

-export([text/2, name/2, list/1, valid/1]).

%% Bytes of a text within a term; a longer binary is shown by its size.
-define(MOST_STRING, 1024).

-doc "The text of the first term, cut to so many bytes and an ellipsis.".
-spec text(binary(), pos_integer()) -> binary().
text(Bin, Most) ->
    try print(Bin, [], Most) of
        {_, Parts, _} -> valid(whole(Parts))
    catch
        throw:{cut, Parts} ->
            Text = valid(whole(Parts)),
            <<(beginning(Text, min(Most, byte_size(Text))))/binary, "…"/utf8>>
    end.

whole(Parts) -> iolist_to_binary(lists:reverse(Parts)).

-doc "The same, where an atom is a name that stands for itself: without quotes.".
-spec name(binary(), pos_integer()) -> binary().
name(Bin, Most) ->
    case sderl_prof_etf:atom(Bin) of
        error -> text(Bin, Most);
        Text -> valid(Text)
    end.

-doc "The elements of a proper list, each as it is; `error` of anything else.".
-spec list(binary()) -> [binary()] | error.
list(<<106, _/binary>>) -> [];
list(<<107, L:16, Bytes:L/binary, _/binary>>) -> [<<97, B>> || <<B>> <= Bytes];
list(<<108, N:32, Rest/binary>>) when N =< byte_size(Rest) ->
    case sderl_prof_etf:elements(Rest, N + 1) of
        error -> error;
        Terms ->
            case lists:split(N, Terms) of
                {Elements, [<<106>>]} -> Elements;
                _ -> error
            end
    end;
list(_) -> error.

-doc "The text, or `?` where it is no UTF-8.".
-spec valid(binary()) -> binary().
valid(Text) ->
    case unicode:characters_to_binary(Text) of
        Text -> Text;
        _ -> ~"?"
    end.

%% ---------------------------------------------------------------- printing

%% What follows the term, the parts so far with the last one first, and the bytes that are left.
print(<<97, N, Rest/binary>>, Parts, Left) -> put(integer_to_binary(N), Rest, Parts, Left);
print(<<98, N:32/signed, Rest/binary>>, Parts, Left) ->
    put(integer_to_binary(N), Rest, Parts, Left);
print(<<110, L, Sign, N:L/little-unit:8, Rest/binary>>, Parts, Left) ->
    put(integer_to_binary(case Sign of 0 -> N; _ -> -N end), Rest, Parts, Left);
print(<<70, F:64/float, Rest/binary>>, Parts, Left) ->
    put(float_to_binary(F, [short]), Rest, Parts, Left);
print(<<106, Rest/binary>>, Parts, Left) -> put(~"[]", Rest, Parts, Left);
print(<<107, L:16, Bytes:L/binary, Rest/binary>>, Parts, Left) ->
    case string(Bytes) of
        none -> put(numbers(Bytes, Left), Rest, Parts, Left);
        Text -> put(Text, Rest, Parts, Left)
    end;
print(<<108, N:32, Rest/binary>>, Parts, Left) ->
    {Tail, Parts1, Left1} = several(N, Rest, add(~"[", Parts), Left - 1),
    case Tail of
        <<106, More/binary>> -> put(~"]", More, Parts1, Left1);
        _ ->
            {More, Parts2, Left2} = print(Tail, add(~"|", Parts1), Left1 - 1),
            put(~"]", More, Parts2, Left2)
    end;
print(<<104, N, Rest/binary>>, Parts, Left) ->
    {More, Parts1, Left1} = several(N, Rest, add(~"{", Parts), Left - 1),
    put(~"}", More, Parts1, Left1);
print(<<116, N:32, Rest/binary>>, Parts, Left) ->
    {More, Parts1, Left1} = pairs(N, Rest, add(~"#{", Parts), Left - 2),
    put(~"}", More, Parts1, Left1);
print(<<109, L:32, Bytes:L/binary, Rest/binary>>, Parts, Left) ->
    Text = case string(Bytes) of
        none -> <<(integer_to_binary(L))/binary, " bytes">>;
        Known -> Known
    end,
    put(<<"<<", Text/binary, ">>">>, Rest, Parts, Left);
print(Bin, Parts, Left) ->
    case {sderl_prof_etf:size(Bin), sderl_prof_etf:atom(Bin)} of
        %% What is behind it cannot be found.
        {error, _} -> throw({cut, Parts});
        {Size, error} -> put(other(Bin), behind(Size, Bin), Parts, Left);
        {Size, Atom} -> put(atom(Atom), behind(Size, Bin), Parts, Left)
    end.

behind(Size, Bin) -> binary:part(Bin, Size, byte_size(Bin) - Size).

put(Text, Rest, Parts, Left) when byte_size(Text) =< Left ->
    {Rest, [Text | Parts], Left - byte_size(Text)};
put(Text, _, Parts, Left) ->
    throw({cut, [beginning(Text, max(0, Left)) | Parts]}).

%% Not in the middle of a character.
beginning(Text, Left) ->
    case unicode:characters_to_binary(binary:part(Text, 0, Left)) of
        {_, Whole, _} -> Whole;
        Whole -> Whole
    end.

add(Text, Parts) -> [Text | Parts].

several(0, Rest, Parts, Left) -> {Rest, Parts, Left};
several(1, Rest, Parts, Left) -> print(Rest, Parts, Left);
several(N, Rest, Parts, Left) ->
    {More, Parts1, Left1} = print(Rest, Parts, Left),
    several(N - 1, More, add(~",", Parts1), Left1 - 1).

pairs(0, Rest, Parts, Left) -> {Rest, Parts, Left};
pairs(N, Rest, Parts, Left) ->
    {Value, Parts1, Left1} = print(Rest, Parts, Left),
    {More, Parts2, Left2} = print(Value, add(~" => ", Parts1), Left1 - 4),
    case N of
        1 -> {More, Parts2, Left2};
        _ -> pairs(N - 1, More, add(~",", Parts2), Left2 - 1)
    end.

string(Bytes) ->
    IsText = byte_size(Bytes) =< ?MOST_STRING andalso valid(Bytes) =:= Bytes
        andalso lists:all(fun(C) -> C >= 32 andalso C =/= 127 end,
                          unicode:characters_to_list(Bytes)),
    case IsText of
        true -> <<$", (escaped(Bytes, ~"\""))/binary, $">>;
        false -> none
    end.

%% As many numbers as may have room.
numbers(Bytes, Left) ->
    Some = binary:part(Bytes, 0, min(byte_size(Bytes), max(1, Left))),
    iolist_to_binary([$[, lists:join($,, [integer_to_binary(B) || <<B>> <= Some]), $]]).

atom(Text) ->
    case re:run(Text, ~"^[a-z][a-zA-Z0-9_@]*$", [{capture, none}, dollar_endonly]) of
        match -> Text;
        nomatch -> <<$', (escaped(Text, ~"'"))/binary, $'>>
    end.

escaped(Text, Quote) ->
    binary:replace(binary:replace(Text, ~"\\", ~"\\\\", [global]), Quote,
                   <<$\\, Quote/binary>>, [global]).

other(<<T, _/binary>>) when T =:= 90; T =:= 114 -> ~"#Ref";
other(<<T, _/binary>>) when T =:= 112; T =:= 113 -> ~"fun";
other(<<77, L:32, _/binary>>) -> <<"<<", (integer_to_binary(L))/binary, " bytes>>">>;
%% As the node itself writes it.
other(<<88, _/binary>> = Pid) ->
    case sderl_prof_etf:text(Pid) of
        <<"<", Rest/binary>> -> <<"<0.", Rest/binary>>;
        Text -> Text
    end;
other(Bin) -> sderl_prof_etf:text(Bin).
