%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_audit_query).
-moduledoc "Reads a query of the audit log from texts by the names of fields. Pure.".

-export([read/1]).

-define(NUMBERS, [~"before", ~"after", ~"from", ~"to", ~"limit"]).
-define(TEXTS, [~"who", ~"what", ~"node", ~"request", ~"text", ~"result"]).
-define(MOST_TEXT, 255).
-define(MOST, 9_007_199_254_740_991).
%% The last millisecond of the year 9999: later times have no text of the same length.
-define(LATEST, 253_402_300_799_999).

fields() -> ?TEXTS ++ ?NUMBERS.

-doc "The filter, and how many entries at most. Errors are sentences.".
-spec read(#{binary() => term()}) ->
    {ok, sderl_actions_audit_record:filter(), 1..500} | {error, unicode:chardata()}.
read(Given) ->
    try
        Filter = #{key(Key) => value(Key, Value) || Key := Value <- Given, Value =/= ~""},
        {ok, maps:remove(limit, Filter), maps:get(limit, Filter, 100)}
    catch
        throw:{wrong, Why} -> {error, Why}
    end.

key(Key) ->
    case lists:member(Key, fields()) of
        true -> binary_to_existing_atom(Key);
        false ->
            wrong(["there is no field ", sderl_mon_text:cut(Key, 50), "; there are ",
                   lists:join(", ", fields())])
    end.

value(~"result", Value) ->
    case [Result || Result <- sderl_actions_audit_record:results(),
                    atom_to_binary(Result) =:= Value] of
        [Result] -> Result;
        [] ->
            wrong(["result is one of ",
                   lists:join(", ", [atom_to_binary(Result)
                                     || Result <- sderl_actions_audit_record:results()])])
    end;
value(~"limit", Value) -> number(~"limit", Value, 1, 500);
value(Key, Value) ->
    case lists:member(Key, ?NUMBERS) of
        true when Key =:= ~"from"; Key =:= ~"to" -> number(Key, Value, 0, ?LATEST);
        true -> number(Key, Value, 0, ?MOST);
        false when is_binary(Value), byte_size(Value) =< ?MOST_TEXT ->
            case unicode:characters_to_binary(Value) of
                Value -> Value;
                _ -> wrong([Key, " is no text in UTF-8"])
            end;
        false -> wrong([Key, " is a text of at most ", integer_to_list(?MOST_TEXT), " bytes"])
    end.

number(_, N, Min, Max) when is_integer(N), N >= Min, N =< Max -> N;
number(Key, Text, Min, Max) when is_binary(Text), byte_size(Text) =< 16 ->
    case string:to_integer(Text) of
        {N, ~""} -> number(Key, N, Min, Max);
        _ -> not_a_number(Key, Min, Max)
    end;
number(Key, _, Min, Max) -> not_a_number(Key, Min, Max).

-spec not_a_number(binary(), integer(), integer()) -> no_return().
not_a_number(Key, Min, Max) ->
    wrong([Key, " is a whole number from ", integer_to_list(Min), " to ", integer_to_list(Max)]).

-spec wrong(unicode:chardata()) -> no_return().
wrong(Why) -> throw({wrong, Why}).
