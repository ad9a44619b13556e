%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_config).
-moduledoc """
The environment of the application `sderl_actions`, checked before it starts.

| key | values | default | meaning |
|---|---|---|---|
| `state_dir` | `undefined` or a directory | that of `sderl_mon` | the audit log is in its folder `audit`; without one the last 1,000 entries are kept in memory alone |
| `audit_file_bytes` | 4,096 to 1,073,741,824 | 4,194,304 | the size of a file of the audit log, before the next begins |
| `allow_expressions` | boolean | `false` | whether administrators may evaluate expressions on nodes |
| `plugins` | a list of modules | `[]` | the plugins that run on the watched nodes (`m:sderl_plugin`) |
| `unattended_s` | 1 to 3,600 | 60 | a request that nobody reads for this long is stopped |
| `audit_files` | 1 to 10,000 | 16 | how many files are kept; beyond it the oldest is deleted |
""".

-export([read/1, keys/0, allows_expressions/0]).
-export_type([settings/0]).

-import(sderl_mon_text, [text/2]).

-type settings() :: #{audit := sderl_actions_audit:options(),
                      requests := sderl_actions_requests:options(),
                      plugins := sderl_actions_plugins:options()}.

-doc "The keys of the environment with their defaults.".
-spec keys() -> [{atom(), term()}].
keys() ->
    [{state_dir, undefined}, {allow_expressions, false}, {plugins, []}, {unattended_s, 60},
     {audit_file_bytes, 4_194_304}, {audit_files, 16}].

-doc "Whether expressions may be evaluated on nodes.".
-spec allows_expressions() -> boolean().
allows_expressions() -> application:get_env(sderl_actions, allow_expressions, false).

-doc "The settings of an environment. Errors are sentences.".
-spec read([{atom(), term()}]) -> {ok, settings()} | {error, {bad_config, binary()}}.
read(Env) ->
    Known = [Key || {Key, _} <- keys()],
    Values = [{Key, proplists:get_value(Key, Env, Default)} || {Key, Default} <- keys()],
    case {[Key || {Key, _} <- Env, not lists:member(Key, Known)],
          [Wrong || Wrong <- Values, not is_good(Wrong)]} of
        {[Key | _], _} ->
            bad("~0tp is no key; the keys are ~ts",
                [Key, lists:join(", ", [atom_to_binary(K) || K <- Known])]);
        {_, [{plugins, Modules} | _]} when length(Modules) =< 50 -> bad_plugin(Modules);
        {_, [{Key, Value} | _]} ->
            bad("~ts: ~0tP cannot be; it is ~ts", [Key, Value, 12, expected(Key)]);
        {[], []} ->
            {ok, settings(maps:from_list(Values))}
    end.

bad_plugin(Modules) ->
    [Why | _] = [Why || Module <- Modules, {error, Why} <- [sderl_actions_plugins:check(Module)]],
    bad("plugins: ~ts", [Why]).

settings(#{state_dir := Dir, audit_file_bytes := Bytes, audit_files := Files,
           unattended_s := Unattended, plugins := Plugins}) ->
    Options = #{file_bytes => Bytes, files => Files},
    Audit = case Dir =:= undefined andalso maps:get(state_dir, sderl_mon:config()) of
        undefined -> Options;
        false -> Options#{dir => filename:join(Dir, "audit")};
        OfMon -> Options#{dir => filename:join(OfMon, "audit")}
    end,
    #{audit => Audit, requests => #{unattended_ms => 1000 * Unattended},
      plugins => #{plugins => Plugins}}.

is_good({state_dir, undefined}) -> true;
is_good({state_dir, Value}) when is_binary(Value) -> Value =/= ~"";
is_good({state_dir, [_ | _] = Value}) -> io_lib:char_list(Value);
is_good({audit_file_bytes, N}) -> is_integer(N) andalso N >= 4096 andalso N =< 1 bsl 30;
is_good({audit_files, N}) -> is_integer(N) andalso N >= 1 andalso N =< 10_000;
is_good({allow_expressions, Value}) -> is_boolean(Value);
is_good({plugins, Modules}) when length(Modules) =< 50 ->
    lists:all(fun(Module) -> sderl_actions_plugins:check(Module) =:= ok end, Modules);
is_good({unattended_s, N}) -> is_integer(N) andalso N >= 1 andalso N =< 3600;
is_good(_) -> false.

expected(state_dir) -> "a path, as a string or a binary";
expected(allow_expressions) -> "true or false";
expected(plugins) -> "a list of at most 50 modules";
expected(unattended_s) -> "a number of seconds from 1 to 3600";
expected(audit_file_bytes) -> "a number of bytes from 4096 to 1073741824";
expected(audit_files) -> "a number from 1 to 10000".

bad(Format, Args) -> {error, {bad_config, text("sderl_actions: " ++ Format, Args)}}.
