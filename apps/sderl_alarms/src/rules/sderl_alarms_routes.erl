%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_routes).
-moduledoc """
Routes of the file: which changes of alarms go to which webhook or program. Pure except for
`read_secret/1`.
""".

-export([check/1, wants/2, name/1, read_secret/1]).
-export_type([route/0, target/0, secret/0]).

-import(sderl_alarms_words, [text/2, shown/1, suggestion/2]).

-doc "Where the key of a webhook's signatures is; it is not in the file of rules itself.".
-type secret() :: none | {file, binary()} | {env, binary()}.

-doc "`program`: a path and arguments.".
-type target() ::
    #{webhook := binary(), uri := uri_string:uri_map(), secret := secret()}
    | #{program := binary(), arguments := [binary()]}.

-doc """
`least`: an alarm must have had at least this severity since it was raised. The lists are patterns;
without a list all match.
""".
-type route() :: #{
    name := binary(),
    target := target(),
    least := minor | major,
    timeout_s := pos_integer(),
    nodes => [binary()],
    groups => [binary()],
    alarms => [binary()],
    tags => [binary()]
}.

-define(KEYS, [~"name", ~"webhook", ~"secret_file", ~"secret_env", ~"program", ~"arguments",
               ~"severity", ~"timeout_s", ~"nodes", ~"groups", ~"alarms", ~"tags"]).
-define(LISTS, [{~"nodes", nodes}, {~"groups", groups}, {~"alarms", alarms}, {~"tags", tags}]).

-doc "The name of a route.".
-spec name(route()) -> binary().
name(#{name := Name}) -> Name.

-doc "A route from an object of the file, or all errors in it.".
-spec check(term()) -> {ok, route()} | {error, [sderl_alarms_rule:problem(), ...]}.
check(#{} = Given) ->
    Unknown = [{Key, text("is not a key of a route~ts", [suggestion(Key, ?KEYS)])}
               || Key := _ <- maps:iterator(Given, ordered), not lists:member(Key, ?KEYS)],
    Parts = [name_part(Given), target(Given), severity(Given), timeout(Given)
             | [patterns(Pair, Given) || Pair <- ?LISTS]],
    case Unknown ++ lists:append([Problems || {error, Problems} <- Parts]) of
        [] -> {ok, lists:foldl(fun({ok, Part}, All) -> maps:merge(All, Part) end, #{}, Parts)};
        Problems -> {error, Problems}
    end;
check(Other) ->
    {error, [{~"", text("~ts is not a route; write an object with name and webhook or program",
                        [shown(Other)])}]}.

name_part(#{~"name" := Name}) when is_binary(Name), Name =/= ~"", byte_size(Name) =< 64 ->
    {ok, #{name => Name}};
name_part(#{~"name" := Other}) ->
    problem(~"name", "~ts is not a name; write a text of 1 to 64 bytes", [shown(Other)]);
name_part(_) ->
    problem(~"name", "is missing; write a text of 1 to 64 bytes", []).

target(#{~"webhook" := _, ~"program" := _}) ->
    problem(~"program", "a route has a webhook or a program; write two routes for both", []);
target(#{~"webhook" := Url} = Given) when is_binary(Url), byte_size(Url) =< 2000 ->
    case sderl_mon_post:uri(Url) of
        {ok, Uri} -> webhook(Url, Uri, Given);
        error ->
            problem(~"webhook", "~ts is not an address; write http://HOST/PATH or https://...",
                    [shown(Url)])
    end;
target(#{~"webhook" := Other}) ->
    problem(~"webhook", "~ts is not an address; write a text", [shown(Other)]);
target(#{~"program" := <<$/, _/binary>> = Path} = Given) when byte_size(Path) =< 1000 ->
    Arguments = maps:get(~"arguments", Given, []),
    case is_list(Arguments) andalso lists:all(fun is_argument/1, Arguments) of
        true -> {ok, #{target => #{program => Path, arguments => Arguments}}};
        false -> problem(~"arguments", "~ts does not fit; write a list of texts",
                         [shown(Arguments)])
    end;
target(#{~"program" := Other}) ->
    problem(~"program", "~ts is not a path; write one that begins with /", [shown(Other)]);
target(_) ->
    problem(~"webhook", "is missing; write the address of a webhook, or program and its path", []).

is_argument(Text) -> is_binary(Text) andalso binary:match(Text, <<0>>) =:= nomatch.

webhook(_, #{userinfo := _}, _) ->
    problem(~"webhook", "has a password in it, which logs would show; use a signature "
                        "(secret_file)", []);
webhook(Url, Uri, Given) ->
    case Given of
        #{~"secret_file" := _, ~"secret_env" := _} ->
            problem(~"secret_env", "one secret is enough; leave out secret_file or secret_env", []);
        #{~"secret_file" := <<$/, _/binary>> = File} -> hook(Url, Uri, {file, File});
        #{~"secret_file" := Other} ->
            problem(~"secret_file", "~ts is not a path; write one that begins with /",
                    [shown(Other)]);
        #{~"secret_env" := Name} when is_binary(Name), Name =/= ~"" -> hook(Url, Uri, {env, Name});
        #{~"secret_env" := Other} ->
            problem(~"secret_env", "~ts is not the name of a variable; write a text",
                    [shown(Other)]);
        #{} -> hook(Url, Uri, none)
    end.

hook(Url, Uri, Secret) ->
    {ok, #{target => #{webhook => Url, uri => Uri, secret => Secret}}}.

severity(#{~"severity" := ~"major"}) -> {ok, #{least => major}};
severity(#{~"severity" := ~"minor"}) -> {ok, #{least => minor}};
severity(#{~"severity" := Other}) ->
    problem(~"severity", "~ts is not a severity; write \"minor\" or \"major\"", [shown(Other)]);
severity(_) -> {ok, #{least => minor}}.

timeout(#{~"timeout_s" := N}) when is_integer(N), N >= 1, N =< 60 -> {ok, #{timeout_s => N}};
timeout(#{~"timeout_s" := Other}) ->
    problem(~"timeout_s", "~ts does not fit; write whole seconds, 1 to 60", [shown(Other)]);
timeout(_) -> {ok, #{timeout_s => 5}}.

patterns({Name, Key}, Given) ->
    case Given of
        #{Name := [_ | _] = List} when length(List) =< 100 ->
            case lists:all(fun(P) -> is_binary(P) andalso P =/= ~"" end, List) of
                true -> {ok, #{Key => List}};
                false -> problem(Name, "has what is no text; write texts, in which * is any text",
                                 [])
            end;
        #{Name := Other} ->
            problem(Name, "~ts does not fit; write a list of 1 to 100 texts, or leave it out for "
                          "all", [shown(Other)]);
        #{} -> {ok, #{}}
    end.

problem(Key, Format, Args) -> {error, [{Key, text(Format, Args)}]}.

-doc """
Whether a route gets an alarm: by the worst severity since it was raised, so that a route that got a
major alarm also gets its end.
""".
-spec wants(route(), Alarm) -> boolean() when
    Alarm :: #{alarm := binary(), worst := minor | major, tags := [binary()],
               nodes := [binary()], groups := [binary()], _ => _}.
wants(#{least := major}, #{worst := minor}) -> false;
wants(Route, #{alarm := Alarm, tags := Tags, nodes := Nodes, groups := Groups}) ->
    lists:all(fun({Key, Texts}) ->
        case Route of
            #{Key := Patterns} ->
                lists:any(fun(P) ->
                    lists:any(fun(T) -> sderl_alarms_rule:hits(P, T) end, Texts)
                end, Patterns);
            #{} -> true
        end
    end, [{alarms, [Alarm]}, {tags, Tags}, {nodes, Nodes}, {groups, Groups}]).

-doc "The key of signatures. It is read for each delivery, so it may be changed.".
-spec read_secret(secret()) -> {ok, none | binary()} | {error, binary()}.
read_secret(none) -> {ok, none};
read_secret({env, Name}) ->
    case os:getenv(unicode:characters_to_list(Name)) of
        false -> {error, text("the variable ~ts, which secret_env names, is not set", [Name])};
        Text -> long_enough(unicode:characters_to_binary(Text), Name)
    end;
read_secret({file, File}) ->
    case file:read_file(File, [raw]) of
        {ok, Text} -> long_enough(string:trim(Text), File);
        {error, Why} -> {error, text("~ts: ~ts", [File, file:format_error(Why)])}
    end.

long_enough(Secret, _) when byte_size(Secret) >= 16 -> {ok, Secret};
long_enough(_, Where) ->
    {error, text("the secret in ~ts is too short; write at least 16 bytes", [Where])}.
