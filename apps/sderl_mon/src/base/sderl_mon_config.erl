%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_config).
-moduledoc """
The configuration of a shadow network: checked term by term, completed with defaults, kept in a
file.

```erlang
[{sderl_mon, [{config, #{
    seeds => ['a@host'],
    monitors => ['m1@host', 'm2@host']
}}]}].
```

| key | values | default | meaning |
|---|---|---|---|
| `seeds` | list of nodes | `[]` | where to begin: the other nodes are found from these |
| `monitors` | list of nodes | `[]` | all monitoring nodes of this shadow network, the same list on each; a node adds itself |
| `nodes` | `all` or a list of nodes | `all` | which nodes may be watched; others are never connected |
| `inject` | boolean | `false` | whether the probe is loaded into nodes that lack it |
| `probe` | `auto`, `stock` | `auto` | `stock`: read with OTP's own functions alone, even where there is a probe |
| `interval_ms` | 100 to 60000 | 1000 | how often a node tells its numbers |
| `history` | map | `#{}` | see `m:sderl_mon_history` |
| `record` | `off` or a map with `dir` | `off` | see `m:sderl_mon_record` |
| `archive` | `off` or a map with `dir` | `off` | see `m:sderl_mon_archive` |
| `thresholds` | map from atoms to numbers | `#{}` | see `m:sderl_mon_findings` |
| `log` | `off` or a map with `level`, `per_s`, `burst` | `#{}` | what nodes tell of their log: see `log/1` |
| `log_files` | `off` or a map with `dir` | `off` | where the log is kept: see `m:sderl_mon_log` |
| `metrics` | list of maps | `[]` | the application's own metrics: see [Metrics](metrics.md) |
| `otlp` | `off` or a map with `url`, `interval_ms`, `headers` | `off` | see [OpenTelemetry](metrics.md#opentelemetry) |
| `state_dir` | `undefined` or the name of a directory | `undefined` | where what is set at run time is kept across restarts |

Pure, but for `load/1` and `store/2`. Errors are `{bad_config, Path, Value, Expected}`, which
`format_error/1` makes a sentence of.
""".

-export([defaults/0, check/1, change/2, shared/1, log/1, least_bytes/0]).
-export([load/1, store/2, file/1]).
-export([format_error/1]).

-export_type([config/0, otlp/0, error/0, path/0]).

-doc "A complete configuration.".
-type config() :: #{
    seeds := [node()],
    monitors := [node()],
    nodes := all | [node()],
    inject := boolean(),
    probe := auto | stock,
    interval_ms := pos_integer(),
    history := sderl_mon_history:opts(),
    record := off | #{dir := file:name_all(), atom() => term()},
    archive := off | #{dir := file:name_all(), max_bytes => pos_integer()},
    thresholds := #{atom() => number()},
    log := off | #{level => logger:level(), per_s => pos_integer(), burst => pos_integer()},
    log_files := off | #{dir := file:name_all(), atom() => term()},
    metrics := [sderl_mon_app_metrics:metric()],
    otlp := otlp(),
    state_dir := undefined | file:name_all()
}.

-doc "Where numbers are sent. A header may be a collector's token.".
-type otlp() ::
    off
    | #{url := unicode:chardata(), interval_ms => pos_integer(),
        headers => [{binary(), binary()}]}.

-doc "Where in the configuration a term is: keys, and positions in lists from 1.".
-type path() :: [term(), ...].

-type error() :: {bad_config, path(), Value :: term(),
                  Expected :: atom() | string() | {sentence, unicode:chardata()}}
                 | {bad_file, file:name_all(), term()}.

-define(VERSION, 1).
-define(MOST_NODES, 5000).
-define(LEAST_BYTES, 65_536).
-define(LEAST_ARCHIVE, 1_048_576).
-define(MOST_FILE_BYTES, 67_108_864).
%% Defaults of the log.
-define(LOG, #{level => notice, per_s => 50, burst => 200}).

-doc "The least value of `max_bytes` of a recording.".
-spec least_bytes() -> pos_integer().
least_bytes() -> ?LEAST_BYTES.

-doc "The defaults.".
-spec defaults() -> config().
defaults() ->
    #{
        seeds => [],
        monitors => [],
        nodes => all,
        inject => false,
        probe => auto,
        interval_ms => 1000,
        history => #{},
        record => off,
        archive => off,
        thresholds => #{},
        log => #{},
        log_files => off,
        metrics => [],
        otlp => off,
        state_dir => undefined
    }.

-doc "Checks a map and completes it with defaults.".
-spec check(term()) -> {ok, config()} | {error, error()}.
check(Map) -> change(Map, defaults()).

-doc "Checks a map and merges it over a configuration that was checked before.".
-spec change(term(), config()) -> {ok, config()} | {error, error()}.
change(Map, Config) when is_map(Map) -> each(lists:sort(maps:to_list(Map)), Config);
change(Other, _) -> bad([config], Other, map).

each([], Config) ->
    {ok, Config};
each([{Key, Value} | Rest], Config) ->
    case is_map_key(Key, Config) of
        true ->
            maybe
                {ok, Good} ?= value(Key, Value),
                each(Rest, Config#{Key := Good})
            end;
        false ->
            bad([Key], Value, known_key)
    end.

value(seeds, Value) -> node_list([seeds], Value);
value(monitors, Value) -> node_list([monitors], Value);
value(nodes, all) -> {ok, all};
value(nodes, Value) when is_list(Value) -> node_list([nodes], Value);
value(nodes, Value) -> bad([nodes], Value, all_or_nodes);
value(inject, Value) when is_boolean(Value) -> {ok, Value};
value(inject, Value) -> bad([inject], Value, boolean);
value(probe, Value) when Value =:= auto; Value =:= stock -> {ok, Value};
value(probe, Value) -> bad([probe], Value, auto_or_stock);
value(interval_ms, Value) when is_integer(Value), Value >= 100, Value =< 60_000 -> {ok, Value};
value(interval_ms, Value) -> bad([interval_ms], Value, interval);
value(history, Value) when is_map(Value) ->
    options(fun history/2, history, Value);
value(history, Value) -> bad([history], Value, map);
value(record, off) -> {ok, off};
value(record, #{dir := Dir} = Value) ->
    case {is_name(Dir), Value} of
        {false, _} -> bad([record, dir], Dir, directory);
        {true, #{max_bytes := Max}} when not is_integer(Max); Max < ?LEAST_BYTES ->
            bad([record, max_bytes], Max, bytes);
        {true, _} -> {ok, Value}
    end;
value(record, Value) -> bad([record], Value, record);
value(archive, off) -> {ok, off};
value(archive, #{dir := Dir} = Value) ->
    case {is_name(Dir), Value} of
        {false, _} -> bad([archive, dir], Dir, directory);
        {true, #{max_bytes := Max}} when not is_integer(Max); Max < ?LEAST_ARCHIVE ->
            bad([archive, max_bytes], Max, archive_bytes);
        {true, _} -> {ok, Value}
    end;
value(archive, Value) -> bad([archive], Value, archive);
value(thresholds, Value) ->
    maybe
        ok ?= sderl_mon_findings:validate(Value),
        {ok, Value}
    end;
value(log, off) -> {ok, off};
value(log, Value) when is_map(Value) ->
    options(fun log/2, log, Value);
value(log, Value) -> bad([log], Value, log);
value(log_files, off) -> {ok, off};
value(log_files, #{dir := _} = Value) ->
    options(fun log_files/2, log_files, Value);
value(log_files, Value) -> bad([log_files], Value, log_files);
value(metrics, Value) ->
    case sderl_mon_app_metrics:check(Value) of
        {ok, Metrics} -> {ok, Metrics};
        {error, {Path, Wrong, Why}} -> bad([metrics | Path], Wrong, {sentence, Why})
    end;
value(otlp, off) -> {ok, off};
value(otlp, #{url := _} = Value) -> options(fun otlp/2, otlp, Value);
value(otlp, Value) -> bad([otlp], Value, otlp);
value(state_dir, undefined) -> {ok, undefined};
value(state_dir, Value) ->
    case is_name(Value) of
        true -> {ok, Value};
        false -> bad([state_dir], Value, directory)
    end.

%% An error for the first wrong option.
options(Check, Key, Map) ->
    case [{K, V, Why} || K := V <- maps:iterator(Map, ordered), Why <- [Check(K, V)], Why =/= ok] of
        [] -> {ok, Map};
        [{K, V, Why} | _] -> bad([Key, K], V, Why)
    end.

log(level, Level) ->
    case lists:member(Level, sderl_mon_log_message:levels()) of true -> ok; false -> level end;
log(Key, N) when Key =:= per_s; Key =:= burst -> within(1, N, 10_000, events);
log(_, _) -> log_key.

log_files(dir, Dir) -> case is_name(Dir) of true -> ok; false -> directory end;
log_files(file_bytes, N) -> within(?LEAST_BYTES, N, ?MOST_FILE_BYTES, file_bytes);
log_files(files, N) -> within(2, N, 10_000, files);
log_files(_, _) -> log_files_key.

otlp(url, Url) -> case sderl_mon_post:uri(Url) of {ok, _} -> ok; error -> url end;
otlp(interval_ms, N) -> within(1_000, N, 600_000, otlp_interval);
otlp(headers, Headers) ->
    case is_list(Headers) andalso length(Headers) =< 20
         andalso lists:all(fun is_header/1, Headers) of
        true -> ok;
        false -> headers
    end;
otlp(_, _) -> otlp_key.

%% No characters that would end a header and begin another.
is_header({Name, Value}) when is_binary(Name), is_binary(Value) ->
    re:run(Name, "\\A[A-Za-z0-9-]{1,64}\\z", [{capture, none}]) =:= match
        andalso re:run(Value, "\\A[\\x20-\\x7e]{0,4096}\\z", [{capture, none}]) =:= match;
is_header(_) -> false.

within(Least, N, Most, _) when is_integer(N), N >= Least, N =< Most -> ok;
within(_, _, _, Expected) -> Expected.

history(raw, Frames) -> count(Frames);
history(max_bytes, Bytes) -> count(Bytes);
history(levels, Levels) when is_list(Levels) ->
    Pairs = [{Step, Keep} || {Step, Keep} <- Levels, is_integer(Step), is_integer(Keep), Keep > 0],
    case Pairs =:= Levels andalso sderl_mon_ladder:new([Step || {Step, _} <- Pairs]) of
        {ok, _} -> ok;
        _ -> levels
    end;
history(levels, _) -> levels;
history(_, _) -> history_key.

count(N) when is_integer(N), N > 0 -> ok;
count(_) -> count.

node_list(Path, Value) -> node_list(Path, Value, 1, []).

node_list(_, [], _, Nodes) -> {ok, lists:usort(Nodes)};
node_list(Path, List, At, _) when At > ?MOST_NODES -> bad(Path, List, fewer_nodes);
node_list(Path, [Node | Rest], At, Nodes) when is_atom(Node) ->
    case string:split(atom_to_list(Node), "@", all) of
        [[_ | _], [_ | _]] -> node_list(Path, Rest, At + 1, [Node | Nodes]);
        _ -> bad(Path ++ [At], Node, node_name)
    end;
node_list(Path, [Other | _], At, _) -> bad(Path ++ [At], Other, node_name);
node_list(Path, Other, _, _) -> bad(Path, Other, node_list).

is_name(Value) when is_binary(Value) -> Value =/= <<>>;
is_name([_ | _] = Value) -> io_lib:char_list(Value);
is_name(_) -> false.

bad(Path, Value, Expected) -> {error, {bad_config, Path, Value, Expected}}.

-doc """
The part that all monitoring nodes of a shadow network have in common; masters use it.
""".
-spec shared(config()) -> sderl_mon_message:config().
shared(Config) ->
    maps:with([seeds, monitors, nodes, inject, probe, interval_ms, thresholds, log, metrics],
              Config).

-doc """
The log events that nodes are to send: those of `level` (notice) and more severe ones, `per_s` (50)
a second at most, `burst` (200) of them at once after a quiet time. `Shared` may come from an older
monitoring node, which lacks the key.
""".
-spec log(Shared :: map()) ->
    off | #{level := logger:level(), per_s := pos_integer(), burst := pos_integer()}.
log(#{log := Log}) when is_map(Log) -> maps:merge(?LOG, Log);
log(_) -> off.

%% ---------------------------------------------------------------- the file

-doc "Where a configuration is kept, if anywhere.".
-spec file(config()) -> undefined | file:filename_all().
file(#{state_dir := undefined}) -> undefined;
file(#{state_dir := Dir}) -> filename:join(Dir, "sderl_mon.config").

-doc """
Merges the settings that were made at run time before over `Config`, if it has a `state_dir`.
""".
-spec load(config()) -> {ok, config()} | {error, error()}.
load(Config) ->
    case file(Config) of
        undefined -> {ok, Config};
        File ->
            maybe
                {ok, Kept} ?= kept(File),
                change(maps:remove(state_dir, Kept), Config)
            end
    end.

-doc """
Keeps what was set at run time, merged over what was kept before. The file is replaced at once: a
reader finds the old or the new one, even after a crash.
""".
-spec store(map(), config()) -> ok | {error, error()}.
store(Set, Config) ->
    case file(Config) of
        undefined -> ok;
        File -> write(File, maps:remove(state_dir, Set))
    end.

write(File, Set) ->
    maybe
        {ok, Before} ?= kept(File),
        Text = io_lib:format("%% coding: utf-8~n~tp.~n",
                             [{sderl_mon, ?VERSION, maps:merge(Before, Set)}]),
        ok ?= sderl_mon_replace:write(File, unicode:characters_to_binary(Text))
    else
        {error, {bad_file, _, _}} = Error -> Error;
        {error, Why} -> {error, {bad_file, File, Why}}
    end.

kept(File) ->
    case file:consult(File) of
        {ok, [{sderl_mon, ?VERSION, Map}]} when is_map(Map) -> {ok, Map};
        {ok, Other} -> {error, {bad_file, File, {not_of_version, ?VERSION, Other}}};
        {error, enoent} -> {ok, #{}};
        {error, Why} -> {error, {bad_file, File, Why}}
    end.

%% ---------------------------------------------------------------- sentences

-doc "One sentence that names the term and the remedy.".
-spec format_error(error()) -> unicode:chardata().
format_error({bad_config, Path, Value, Expected}) ->
    io_lib:format("sderl_mon: config ~ts: ~0tP ~ts", [place(Path), Value, 20, remedy(Expected)]);
format_error({bad_file, File, {not_of_version, Version, _}}) ->
    io_lib:format("sderl_mon: ~ts holds no configuration of version ~b; remove the file or mend it",
                  [File, Version]);
format_error({bad_file, File, Why}) ->
    io_lib:format("sderl_mon: ~ts: ~ts; mend it or name another state_dir",
                  [File, file:format_error(Why)]).

place(Path) -> lists:join($., [io_lib:format("~0tp", [Step]) || Step <- Path]).

remedy(map) -> "is not a map; write #{Key => Value}";
remedy(known_key) ->
    ["belongs to no option of that name; the options are ",
     lists:join(", ", [atom_to_list(K) || K <- lists:sort(maps:keys(defaults()))])];
remedy(node_name) -> "is not the name of a node; write an atom with a host, such as 'name@host'";
remedy(node_list) -> "is not a list of nodes; write ['name@host', ...]";
remedy(all_or_nodes) -> "does not say which nodes may be watched; write all or ['name@host', ...]";
remedy(fewer_nodes) -> io_lib:format("has more than ~b nodes; name fewer", [?MOST_NODES]);
remedy(boolean) -> "is neither true nor false; write one of them";
remedy(auto_or_stock) -> "is no way to read a node; write auto or stock";
remedy(interval) -> "is no such time; write a whole number of milliseconds from 100 to 60000";
remedy(directory) -> "is not the name of a directory; write a string or a binary";
remedy(bytes) ->
    io_lib:format("is not such a size; write a whole number of bytes, at least ~b", [?LEAST_BYTES]);
remedy(count) -> "is not such a number; write a whole number, at least 1";
remedy(levels) ->
    "does not say how long to keep what; write [{StepMs, KeepMs}, ...], the finest first, each "
    "step a multiple of the one before";
remedy(history_key) -> "belongs to no option of that name; the options are levels, max_bytes, raw";
remedy(archive) ->
    "does not say where to keep frames; write off or #{dir => \"...\", max_bytes => N}";
remedy(archive_bytes) ->
    io_lib:format("is not such a size; write a whole number of bytes, at least ~b",
                  [?LEAST_ARCHIVE]);
remedy(log) -> "does not say what nodes tell of their log; write off or #{level => notice}";
remedy(level) ->
    "is no level; write debug, info, notice, warning, error, critical, alert or emergency";
remedy(events) -> "is no such number of events; write a whole number from 1 to 10000";
remedy(log_key) -> "belongs to no option of that name; the options are burst, level, per_s";
remedy(log_files) -> "does not say where to keep the log; write off or #{dir => \"...\"}";
remedy(file_bytes) ->
    io_lib:format("is no such size of a file; write a whole number of bytes from ~b to ~b",
                  [?LEAST_BYTES, ?MOST_FILE_BYTES]);
remedy(files) -> "is no such number of files; write a whole number from 2 to 10000";
remedy(log_files_key) ->
    "belongs to no option of that name; the options are dir, file_bytes, files";
remedy(record) -> "does not say what to record; write off or #{dir => \"...\", max_bytes => N}";
remedy(otlp) ->
    "does not say where to send numbers; write off or #{url => \"http://host:4318/v1/metrics\"}";
remedy(url) -> "is no URL to post to; write http://HOST:PORT/v1/metrics, or https";
remedy(otlp_interval) ->
    "is no such time; write a whole number of milliseconds from 1000 to 600000";
remedy(headers) ->
    "are no headers; write at most 20 pairs of binaries, such as [{~\"authorization\", ~\"...\"}]";
remedy(otlp_key) ->
    "belongs to no option of that name; the options are headers, interval_ms, url";
remedy({sentence, Sentence}) -> Sentence;
%% Texts of other modules.
remedy(Expected) -> ["does not fit; write ", Expected].
