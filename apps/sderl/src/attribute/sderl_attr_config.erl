%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_config).
-moduledoc false.
%% Checks what the configuration says of attributes: the keys `attributes` and `labels` for `sderl_config`,
%% and files in the published format.

-export([defaults/0, option/3, file/1]).

-spec defaults() -> [{atom(), term()}].
defaults() ->
    [
        {attributes, []},
        {labels, []},
        {attribute_builtins, true},
        {attribute_share_ms, 5_000},
        {attribute_keep_ms, 5_000},
        {attribute_timeout_ms, 1_000}
    ].

-doc "The keys whose values are more than a number.".
-spec option(attributes | labels, sderl_config:path(), term()) ->
    {ok, [{term(), term()}]} | {error, sderl_config:error()}.
option(labels, Path, Map) when is_map(Map) -> option(labels, Path, lists:sort(maps:to_list(Map)));
option(Key, Path, List) ->
    case sderl_config:proper_list(List) of
        true -> entries(Key, Path, List, 1, #{}, []);
        false -> bad(Path, List, list(Key))
    end.

entries(_, _, [], _, _, Checked) -> {ok, lists:reverse(Checked)};
entries(Key, Path, [{Name, Value} = Entry | Rest], N, Seen, Checked) ->
    case {Seen, name(Key, Name), value(Key, Value)} of
        {#{Name := First}, _, _} -> bad(Path ++ [N], Name, {unique_attribute, Path ++ [First]});
        {_, {error, Expected}, _} -> bad(Path ++ [N, name], Name, {attribute_part, Expected});
        {_, _, {error, Expected}} -> bad(Path ++ [N, {key, Name}], Value, {attribute_part, Expected});
        _ -> entries(Key, Path, Rest, N + 1, Seen#{Name => N}, [Entry | Checked])
    end;
entries(Key, Path, [Other | _], N, _, _) -> bad(Path ++ [N], Other, entry(Key)).

name(attributes, Name) -> sderl_attr_own:check_name(Name);
name(labels, Key) -> sderl_attr_own:check_name({label, Key}).

value(attributes, Spec) -> sderl_attr_own:check(Spec);
value(labels, Value) -> sderl_attr_own:check_label(Value).

list(attributes) -> attribute_list;
list(labels) -> label_list.

entry(attributes) -> attribute;
entry(labels) -> label.

bad(Path, Found, Expected) -> {error, {bad_config, Path, Found, Expected}}.

-doc "Reads a file in the published format.".
-spec file(file:name_all()) -> {ok, [{sderl_attr:name(), sderl_attr:spec()}]} | {error, Msg :: string()}.
file(File) ->
    case file:consult(File) of
        {ok, [Term]} ->
            case option(attributes, [attributes], Term) of
                {ok, Attributes} -> {ok, Attributes};
                {error, Bad} -> {error, message(File, sderl_config:format_error(Bad))}
            end;
        {ok, Terms} ->
            Text = io_lib:format("it has ~b terms; write one list [{Name, Spec}, ...].", [length(Terms)]),
            {error, message(File, Text)};
        {error, Why} -> {error, message(File, file:format_error(Why))}
    end.

message(File, Text) -> lists:flatten(io_lib:format("~ts: ~ts", [File, Text])).
