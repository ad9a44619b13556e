%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_config).
-moduledoc """
The environment of the application `sderl_alarms`, checked before it starts.

| key | values | default | meaning |
|---|---|---|---|
| `rules_file` | `undefined` or a path | `undefined` | the file of rules and routes (`m:sderl_alarms_file`) |
| `state_dir` | `undefined` or a directory | that of `sderl_mon` | where the alarms are kept over restarts; without one they are kept in memory alone |
""".

-export([read/1, keys/0]).
-export_type([settings/0]).

-import(sderl_mon_text, [text/2]).

-type settings() :: #{
    rules_file := undefined | file:filename_all(),
    state_file := undefined | file:filename_all(),
    rules := sderl_alarms_file:rules()
}.

-doc "The keys of the environment with their defaults.".
-spec keys() -> [{atom(), term()}].
keys() -> [{rules_file, undefined}, {state_dir, undefined}].

-doc "The settings of an environment. Errors are sentences.".
-spec read([{atom(), term()}]) -> {ok, settings()} | {error, {bad_config, binary()}}.
read(Env) ->
    Unknown = [Key || {Key, _} <- Env, not lists:keymember(Key, 1, keys())],
    RulesFile = proplists:get_value(rules_file, Env),
    Dir = case proplists:get_value(state_dir, Env) of
        undefined -> maps:get(state_dir, sderl_mon:config());
        Given -> Given
    end,
    case [Wrong || Wrong <- [{rules_file, RulesFile}, {state_dir, Dir}], not is_path(Wrong)] of
        _ when Unknown =/= [] ->
            bad("sderl_alarms: ~0tp is no key; the keys are rules_file and state_dir",
                [hd(Unknown)]);
        [{Key, Value} | _] ->
            bad("sderl_alarms: ~ts: ~0tP is not a path; write a string or a binary",
                [Key, Value, 12]);
        [] ->
            with_rules(RulesFile, #{rules_file => RulesFile, state_file => state_file(Dir)})
    end.

is_path({_, undefined}) -> true;
is_path({_, Value}) when is_binary(Value) -> Value =/= ~"";
is_path({_, [_ | _] = Value}) -> io_lib:char_list(Value);
is_path(_) -> false.

bad(Format, Args) -> {error, {bad_config, text(Format, Args)}}.

with_rules(undefined, Settings) ->
    {ok, Settings#{rules => sderl_alarms_file:default()}};
with_rules(File, Settings) ->
    case sderl_alarms_file:read(File) of
        {ok, Rules} -> {ok, Settings#{rules => Rules}};
        {error, Problems} -> bad("sderl_alarms: ~ts: ~ts", [File, lists:join("\n", Problems)])
    end.

state_file(undefined) -> undefined;
state_file(Dir) -> filename:join(Dir, "alarms.state").
