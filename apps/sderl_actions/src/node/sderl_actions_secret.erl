%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_secret).
-moduledoc """
Keeps secrets out of what is shown and kept: values whose key names a secret, and passwords within
addresses. Pure. It runs on the nodes, too, so that a secret does not leave its node.
""".

-export([is_secret/1, names_secret/1, masked/1, masked_values/1, masked_args/1, mask/0]).

-define(MASK, <<"(hidden)">>).
%% Parts of a key that name a secret. Those that occur in harmless words must stand alone.
-define(WITHIN, ["password", "passwd", "passphrase", "secret", "token", "cookie", "credential",
                 "private", "apikey"]).
-define(ALONE, ["pass", "pwd", "key", "auth", "dsn", "salt", "pin"]).

-doc "What is shown in place of a secret.".
-spec mask() -> binary().
mask() -> ?MASK.

-doc "Whether a key names a secret: `db_password`, `secretKeyBase`, `\"api-key\"`.".
-spec is_secret(term()) -> boolean().
is_secret(Key) when is_atom(Key) -> has_secret_word(atom_to_list(Key));
is_secret(Key) when is_binary(Key) ->
    case unicode:characters_to_list(Key) of
        Text when is_list(Text) -> has_secret_word(Text);
        _ -> false
    end;
is_secret([C | _] = Key) when is_integer(C) ->
    io_lib:char_list(Key) andalso has_secret_word(Key);
%% As the rows of tables have them: {env, Application, Parameter}.
is_secret(Key) when is_tuple(Key), tuple_size(Key) > 0 -> is_secret(element(tuple_size(Key), Key));
is_secret(_) -> false.

has_secret_word(Text) ->
    Words = words(Text),
    Joined = lists:append(Words),
    lists:any(fun(Word) -> string:find(Joined, Word) =/= nomatch end, ?WITHIN)
        orelse lists:any(fun(Word) -> lists:member(Word, ?ALONE) end, Words).

%% The words of a key in lower case, split at other characters and before the capitals of camelCase.
words(Text) -> words(lists:sublist(Text, 200), [], []).

words([], Word, Words) -> ended(Word, Words);
words([C | Rest], Word, Words) when C >= $A, C =< $Z ->
    case Word of
        [Last | _] when Last >= $a, Last =< $z, hd(Rest) >= $a; Word =:= [] ->
            words(Rest, [C + 32], ended(Word, Words));
        _ -> words(Rest, [C + 32 | Word], Words)
    end;
words([C | Rest], Word, Words) when C >= $a, C =< $z -> words(Rest, [C | Word], Words);
words([_ | Rest], Word, Words) -> words(Rest, [], ended(Word, Words)).

ended([], Words) -> Words;
ended(Word, Words) -> Words ++ [lists:reverse(Word)].

-doc """
Whether a text, such as a term that a person wrote, contains a word that names a secret. (Which part
of a term is the secret cannot be found without making atoms.)
""".
-spec names_secret(binary()) -> boolean().
names_secret(Text) ->
    lists:any(fun is_secret/1, re:split(Text, "[^A-Za-z0-9_]+", [{return, binary}])).

-doc """
The arguments of an action as they are kept and shown: `value` is masked if the name of the
parameter names a secret, or the value contains such a name.
""".
-spec masked_args(term()) -> term().
masked_args(#{<<"value">> := Value} = Args) ->
    case is_public(maps:get(<<"parameter">>, Args, none), Value) of
        true -> masked(Args);
        false -> masked(Args#{<<"value">> := ?MASK})
    end;
masked_args(Args) -> masked(Args).

is_public(Parameter, Value) when is_binary(Parameter), is_binary(Value) ->
    not is_secret(Parameter) andalso not names_secret(Value);
is_public(_, _) -> false.

-doc "Masks arguments of a call that follow the name of a secret.".
-spec masked_values([term()]) -> [term()].
masked_values([Key, Value | Rest]) ->
    case is_secret(Key) of
        true -> [Key, ?MASK | masked_values(Rest)];
        false -> [Key | masked_values([Value | Rest])]
    end;
masked_values(Rest) -> Rest.

-doc """
A term with `mask/0` in place of values whose key names a secret (in maps, and in pairs wherever
they are), and of passwords in texts that are addresses (`amqp://user:password@host`).
""".
-spec masked(term()) -> term().
masked({Key, _} = Pair) ->
    case is_secret(Key) of
        true -> {Key, ?MASK};
        false -> list_to_tuple(masked(tuple_to_list(Pair)))
    end;
masked(Tuple) when is_tuple(Tuple) -> list_to_tuple(masked(tuple_to_list(Tuple)));
masked(Map) when is_map(Map) ->
    #{masked(Key) => case is_secret(Key) of true -> ?MASK; false -> masked(Value) end
      || Key := Value <- Map};
masked(Text) when is_binary(Text) ->
    case has_address(Text) of
        true -> re:replace(Text, ~B"://[^/@\s]*:[^/@\s]*@", [<<"://">>, ?MASK, $@],
                           [global, {return, binary}]);
        false -> Text
    end;
masked([_ | _] = List) ->
    case io_lib:char_list(List) of
        true -> masked_text(List);
        false -> masked_list(List)
    end;
masked(Term) -> Term.

%% Improper lists, too.
masked_list([Head | Tail]) -> [masked(Head) | masked_list(Tail)];
masked_list([]) -> [];
masked_list(Tail) -> masked(Tail).

masked_text(Text) ->
    case unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary) ->
            case masked(Binary) of
                Binary -> Text;
                Masked -> unicode:characters_to_list(Masked)
            end;
        _ -> Text
    end.

has_address(Text) ->
    binary:match(Text, <<"://">>) =/= nomatch andalso binary:match(Text, <<"@">>) =/= nomatch.
