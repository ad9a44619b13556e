%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_config).
-moduledoc """
Checks the environment of the application `sderl_web`, before anything listens.

Whatever is wrong gives `{error, {bad_config, [Key], Value, Expected}}`, `Expected` being what
belongs there in words.
""".

-export([read/1, keys/0, random_token/0, text/1]).
-export_type([settings/0, error/0]).

-doc """
`token` is a function that gives it, so that no printed state holds it. `hosts` and `origins` are
allowed besides those of `m:sderl_web_guard`. `recordings` is the folder whose files a browser may
open, `fronts` the file of the front pages, `replay` the one that each browser shows at first.
`profile`: there is no cluster, but the recording of a profiler (`bin/sderl prof open`), of events
(`true`) or of samples (`samples`); `live`: there is a cluster, and profiles of it can be made.
""".
-type settings() :: #{
    port := inet:port_number(),
    ip := inet:ip_address(),
    token := fun(() -> binary()),
    writable := boolean(),
    tls := off | #{atom() => term()},
    source := hub | synthetic,
    synthetic := #{atom() => term()},
    hosts := [binary()],
    origins := [binary()],
    max_sockets := pos_integer(),
    cluster := binary(),
    ops := default | file:filename(),
    recordings := none | file:filename(),
    fronts := none | file:filename(),
    replay := none | file:filename(),
    profile := boolean() | samples | live,
    tokens_file := none | file:filename(),
    rate := {number(), pos_integer()},
    strangers_rate := {number(), pos_integer()},
    resources := [module()],
    audit := none | fun((map()) -> term())
}.
-type error() :: {bad_config, [atom()], term(), string()}.

%% 128 bits.
-define(TOKEN_BYTES, 16).

-doc "The keys of the environment and what they are when not set.".
-spec keys() -> [{atom(), term()}].
keys() ->
    [
        {port, 8090},
        {ip, {127, 0, 0, 1}},
        {token, auto},
        {writable, false},
        {tls, off},
        {source, hub},
        {synthetic, #{}},
        {hosts, []},
        {origins, []},
        {max_sockets, 1000},
        {cluster, <<>>},
        {ops, default},
        {recordings, none},
        {fronts, none},
        {replay, none},
        {profile, false},
        {tokens_file, none},
        {rate, {100, 200}},
        {strangers_rate, {10, 50}},
        {resources, []},
        {audit, fun sderl_actions_audit:note/1}
    ].

-doc """
The settings of an environment, what it lacks being as in `keys/0`. Unknown keys are an error.
""".
-spec read([{atom(), term()}]) -> {ok, settings()} | {error, error()}.
read(Env) ->
    Known = keys(),
    case [Entry || {Key, _} = Entry <- Env, not lists:keymember(Key, 1, Known)] of
        [{Key, Value} | _] ->
            {error, {bad_config, [Key], Value, "one of the keys " ++ names(Known)}};
        [] ->
            each([{Key, proplists:get_value(Key, Env, Default)} || {Key, Default} <- Known], #{})
    end.

names(Known) -> lists:append(lists:join(", ", [atom_to_list(Key) || {Key, _} <- Known])).

each([], Settings) ->
    {ok, Settings};
each([{Key, Value} | Rest], Settings) ->
    case value(Key, Value) of
        {ok, Checked} -> each(Rest, Settings#{Key => Checked});
        {error, Expected} -> {error, {bad_config, [Key], shown(Key, Value), Expected}}
    end.

%% A value meant as a token must not get into a log.
shown(token, _) -> '...';
shown(_, Value) -> Value.

value(port, Port) when is_integer(Port), Port >= 0, Port =< 65535 -> {ok, Port};
value(port, _) -> {error, "a port from 1 to 65535, or 0 for any that is free"};
value(ip, Ip) ->
    case inet:is_ip_address(Ip) of
        true -> {ok, Ip};
        false -> {error, "an address as a tuple, such as {127,0,0,1}"}
    end;
value(token, auto) -> value(token, random_token());
value(token, Token) when is_binary(Token) ->
    case re:run(Token, "\\A[A-Za-z0-9._~-]{8,256}\\z", [{capture, none}]) of
        match -> {ok, fun() -> Token end};
        nomatch -> {error, token()}
    end;
value(token, _) -> {error, token()};
value(Key, Value) when Key =:= writable orelse Key =:= profile, is_boolean(Value) -> {ok, Value};
value(profile, What) when What =:= samples; What =:= live -> {ok, What};
value(writable, _) -> {error, "true or false"};
value(profile, _) -> {error, "true, false, samples or live"};
value(tls, off) -> {ok, off};
value(tls, #{certfile := _} = Tls) ->
    case sderl_web_tls:check(Tls) of
        ok -> {ok, Tls};
        {error, Why} ->
            {error,
             unicode:characters_to_list(["a map of ssl's options with files that can be used; ",
                                         Why])}
    end;
value(tls, _) -> {error, "off, or a map of ssl's options with certfile and keyfile"};
value(source, Source) when Source =:= hub; Source =:= synthetic -> {ok, Source};
value(source, _) -> {error, "hub or synthetic"};
value(synthetic, Options) when is_map(Options) -> {ok, Options};
value(synthetic, _) -> {error, "a map of the options of sderl_mon_synthetic:start/1"};
value(Key, List) when Key =:= hosts; Key =:= origins ->
    case is_list(List) andalso lists:all(fun is_binary/1, List) of
        true -> {ok, [string:lowercase(B) || B <- List]};
        false when Key =:= hosts -> {error, "a list of host names as binaries, without ports"};
        false -> {error, "a list of origins as binaries, such as <<\"https://watch.example\">>"}
    end;
value(max_sockets, N) when is_integer(N), N > 0 -> {ok, N};
value(max_sockets, _) -> {error, "a whole number above 0"};
value(cluster, Name) when is_binary(Name) -> {ok, Name};
value(cluster, _) -> {error, "a name as a binary"};
value(Key, none)
  when Key =:= recordings; Key =:= replay; Key =:= fronts; Key =:= tokens_file; Key =:= audit ->
    {ok, none};
value(fronts, Path) when is_list(Path), Path =/= [] -> {ok, Path};
value(fronts, _) -> {error, "none, or the file of the front pages"};
value(ops, default) -> {ok, default};
value(ops, Path) when is_list(Path), Path =/= "" -> {ok, Path};
value(ops, _) -> {error, "default, or the folder of a service of operations"};
value(Key, Path)
  when Key =:= recordings, is_list(Path); Key =:= replay, is_list(Path);
       Key =:= tokens_file, is_list(Path) ->
    {ok, Path};
value(tokens_file, _) -> {error, "none, or the file of the tokens"};
value(Key, {PerSecond, Burst} = Rate)
  when Key =:= rate orelse Key =:= strangers_rate, is_number(PerSecond), PerSecond > 0,
       is_integer(Burst), Burst > 0 ->
    {ok, Rate};
value(Key, _) when Key =:= rate; Key =:= strangers_rate ->
    {error, "{PerSecond, Burst}, two numbers above 0, the second a whole one"};
value(resources, Modules) ->
    case is_list(Modules) andalso lists:all(fun is_resource/1, Modules) of
        true -> {ok, Modules};
        false -> {error, "a list of modules that have the functions of sderl_web_resource"}
    end;
value(audit, Hook) when is_function(Hook, 1) -> {ok, Hook};
value(audit, _) -> {error, "none, or a function of one entry"};
value(recordings, _) -> {error, "none, or the folder of the recordings"};
value(replay, _) -> {error, "none, or the file of a recording"}.

is_resource(Module) when is_atom(Module) ->
    {module, Module} =:= code:ensure_loaded(Module) andalso
        lists:all(fun({Name, Arity}) -> erlang:function_exported(Module, Name, Arity) end,
                  [{routes, 0}, {schemas, 0}, {answer, 3}]);
is_resource(_) -> false.

token() -> "auto, or a binary of 8 to 256 letters, digits and . _ ~ -".

-doc "A token that nobody guesses: 128 random bits in letters and digits.".
-spec random_token() -> binary().
random_token() -> binary:encode_hex(crypto:strong_rand_bytes(?TOKEN_BYTES), lowercase).

-doc "An error in words.".
-spec text(error()) -> unicode:chardata().
text({bad_config, [Key], Value, Expected}) ->
    io_lib:format("sderl_web: ~ts cannot be ~0tP: it is ~ts", [Key, Value, 12, Expected]).
