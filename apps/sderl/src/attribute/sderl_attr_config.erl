%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_config).
-moduledoc false.
%% The part of the configuration that is about attributes, and files in the published format.

-behaviour(sderl_options).

-export([defaults/0, option/3, remedy/1, value/1, configured/0, file/1]).

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

-spec option(atom(), sderl_check:path(), term()) -> {ok, term()} | {error, sderl_check:error()}.
option(attribute_builtins, Path, Value) ->
    sderl_check:boolean(Path, Value);
option(Key, Path, Value) when Key =:= attributes; Key =:= labels ->
    entries(Key, Path, Value);
option(_Milliseconds, Path, Value) ->
    sderl_check:milliseconds(Path, Value).

-spec remedy(sderl_check:expected()) -> iodata() | none.
remedy(attribute_list) -> "is not a list of attributes; write [{Name, Spec}, ...]";
remedy(attribute) -> "is not an attribute; write {Name, Spec}";
remedy(label_list) -> "is not a list of labels; write [{Key, Value}, ...] or a map";
remedy(label) -> "is not a label; write {Key, Value}";
remedy({attribute_part, Expected}) -> ["does not fit; write ", Expected];
remedy({unique_attribute, First}) ->
    ["is named above too, at ", sderl_check:place(First), "; remove one of the two"];
remedy(_) -> none.

-doc "The value of a key in force.".
-spec value(atom()) -> term().
value(Key) -> sderl_options:value(Key, defaults()).

-doc "The attributes that this node has from the start.".
-spec configured() -> [{sderl_attr:name(), sderl_attr:spec(), sderl_attr:source()}].
configured() ->
    Given = [{Name, Spec, config} || {Name, Spec} <- value(attributes)]
        ++ [{{label, Key}, Value, config} || {Key, Value} <- value(labels)],
    Names = #{Name => [] || {Name, _, _} <- Given},
    %% Built-in ones come first and are overridden.
    [{Name, Spec, builtin}
     || value(attribute_builtins),
        {Name, Spec, _} <- sderl_attr_builtin:all(), not is_map_key(Name, Names)]
        ++ Given.

entries(labels, Path, Map) when is_map(Map) -> entries(labels, Path, lists:sort(maps:to_list(Map)));
entries(Key, Path, List) ->
    case sderl_check:proper_list(List) of
        true -> entries(Key, Path, List, 1, #{}, []);
        false -> sderl_check:bad(Path, List, list(Key))
    end.

entries(_, _, [], _, _, Checked) -> {ok, lists:reverse(Checked)};
entries(Key, Path, [{Name, Value} = Entry | Rest], N, Seen, Checked) ->
    case {Seen, name(Key, Name), value(Key, Value)} of
        {#{Name := First}, _, _} ->
            sderl_check:bad(Path ++ [N], Name, {unique_attribute, Path ++ [First]});
        {_, {error, Expected}, _} ->
            sderl_check:bad(Path ++ [N, name], Name, {attribute_part, Expected});
        {_, _, {error, Expected}} ->
            sderl_check:bad(Path ++ [N, {key, Name}], Value, {attribute_part, Expected});
        _ -> entries(Key, Path, Rest, N + 1, Seen#{Name => N}, [Entry | Checked])
    end;
entries(Key, Path, [Other | _], N, _, _) -> sderl_check:bad(Path ++ [N], Other, entry(Key)).

name(attributes, Name) -> sderl_attr_own:check_name(Name);
name(labels, Key) -> sderl_attr_own:check_name({label, Key}).

value(attributes, Spec) -> sderl_attr_own:check(Spec);
value(labels, Value) -> sderl_attr_own:check_label(Value).

list(attributes) -> attribute_list;
list(labels) -> label_list.

entry(attributes) -> attribute;
entry(labels) -> label.

-doc "Reads a file in the published format.".
-spec file(file:name_all()) ->
    {ok, [{sderl_attr:name(), sderl_attr:spec()}]} | {error, Msg :: string()}.
file(File) ->
    case file:consult(File) of
        {ok, [Term]} ->
            case entries(attributes, [attributes], Term) of
                {ok, Attributes} -> {ok, Attributes};
                {error, {bad_config, Path, Found, Expected}} ->
                    {error, message(File, sderl_check:sentence(Path, Found, remedy(Expected)))}
            end;
        {ok, Terms} ->
            Text = io_lib:format("it has ~b terms; write one list [{Name, Spec}, ...].",
                                 [length(Terms)]),
            {error, message(File, Text)};
        {error, Why} -> {error, message(File, file:format_error(Why))}
    end.

message(File, Text) -> lists:flatten(io_lib:format("~ts: ~ts", [File, Text])).
