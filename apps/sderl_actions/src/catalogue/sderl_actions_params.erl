%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_params).
-moduledoc """
Checks the arguments of an action. Pure. No text of a request becomes an atom.
""".

-export([check/2, shown/1]).
-export_type([type/0]).

-type type() :: {text, Most :: pos_integer()} | {whole, integer(), integer()} | flag
              | {word, [atom(), ...]}.

-doc "The arguments with their defaults. Errors are sentences that name the field.".
-spec check([sderl_actions_catalogue:param()], #{binary() => term()}) ->
    {ok, #{atom() => term()}} | {error, unicode:chardata()}.
check(Params, Given) ->
    Names = [atom_to_binary(Name) || #{name := Name} <- Params],
    case maps:keys(maps:without(Names, Given)) of
        [] -> each(Params, Given, #{});
        [Unknown | _] ->
            {error, ["there is no field ", sderl_mon_text:cut(Unknown, 50), case Names of
                [] -> ": it takes none";
                _ -> ["; there are ", lists:join(", ", Names)]
            end]}
    end.

each([], _, Args) -> {ok, Args};
each([#{name := Name, type := Type, default := Default} | Params], Given, Args) ->
    case {maps:get(atom_to_binary(Name), Given, null), Default} of
        {null, required} ->
            {error, [atom_to_binary(Name), " is missing: it is ", expected(Type)]};
        {null, none} -> each(Params, Given, Args);
        {null, _} -> each(Params, Given, Args#{Name => Default});
        {Value, _} ->
            case value(Type, Value) of
                {ok, Checked} -> each(Params, Given, Args#{Name => Checked});
                error -> {error, [atom_to_binary(Name), " is ", expected(Type)]}
            end
    end.

value({text, Most}, Text) when is_binary(Text), byte_size(Text) =< Most ->
    case unicode:characters_to_binary(Text) of
        Text -> {ok, Text};
        _ -> error
    end;
value({whole, Min, Max}, N) when is_integer(N), N >= Min, N =< Max -> {ok, N};
value(flag, Flag) when is_boolean(Flag) -> {ok, Flag};
value({word, Words}, Text) when is_binary(Text) ->
    case [Word || Word <- Words, atom_to_binary(Word) =:= Text] of
        [Word] -> {ok, Word};
        [] -> error
    end;
value(_, _) -> error.

expected({text, Most}) -> io_lib:format("a text of at most ~b bytes", [Most]);
expected({whole, Min, Max}) -> io_lib:format("a whole number from ~b to ~b", [Min, Max]);
expected(flag) -> "true or false";
expected({word, Words}) -> ["one of ", lists:join(", ", [atom_to_binary(W) || W <- Words])].

-doc "A type as programs see it.".
-spec shown(type()) -> map().
shown({text, Most}) -> #{type => text, most => Most};
shown({whole, Min, Max}) -> #{type => whole, min => Min, max => Max};
shown(flag) -> #{type => flag};
shown({word, Words}) -> #{type => word, words => Words}.
