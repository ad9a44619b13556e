%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_layout).
-moduledoc """
The files of one instance, as entries of an archive for the host script. They contain secrets, so
they are only kept in memory.
""".

-export([entries/2]).
-export_type([layout/0, command/0]).

-doc "A program, relative to the release's folder or on the host's path, and its arguments.".
-type command() :: [binary(), ...].

-doc """
`start` is the release's own command, which returns when it has put the node into the background, or
`{code, Applications}`: then the host's `erl` runs the release's `lib/*/ebin`, and starts these. The
texts contain no variables and no references to secrets any more.

`config` is the text of a `sys.config`. `commands` may have `check` and the hooks `before_start`,
`after_start`, `before_stop` and `after_stop`. `files` replace those of the release in the
instance's own copy.
""".
-type layout() :: #{
    release := binary(),
    settings := binary(),
    node := binary(),
    names := long | short,
    cookie := binary(),
    start := command() | {code, [binary()]},
    stop => command(),
    commands => #{binary() => command()},
    files => #{binary() => iodata()},
    env => #{binary() => binary()},
    config => iodata()
}.

-doc """
All files in a folder with the instance's name. `instance` comes last: a host that has it has all.
""".
-spec entries(Id :: binary(), layout()) ->
    {ok, iodata()} | {error, {bad_layout, binary(), term()}}.
entries(Id, Layout) ->
    case problems(Layout) of
        [] ->
            In = fun(File) -> setelement(1, File, <<Id/binary, $/, (element(1, File))/binary>>) end,
            {ok, sderl_ops_tar:entries(lists:map(In, files(Layout)))};
        [{What, Found} | _] ->
            {error, {bad_layout, What, Found}}
    end.

%% Values that would lead out of the instance's folder, or break the syntax of a file. A value may
%% be a secret and is not shown.
problems(#{release := Release, settings := Settings, node := Node, start := Start} = Layout) ->
    Names = [{~"release", Release}, {~"settings", Settings}]
        ++ [{~"commands", Name} || Name <- maps:keys(maps:get(commands, Layout, #{}))],
    [{What, Name} || {What, Name} <- Names, not matches(Name, "^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
        ++ [{~"node", Node} || not matches(Node, "^[A-Za-z0-9_-]+@[A-Za-z0-9._:-]+$")]
        ++ [{~"env", Name} || Name <- maps:keys(maps:get(env, Layout, #{})),
                              not matches(Name, "^(?!SDERL_OPS_)[A-Za-z_][A-Za-z0-9_]*$")]
        ++ [{~"env", Name} || Name := Value <- maps:get(env, Layout, #{}), has_zero(Value)]
        ++ [{~"files", Name} || Name <- maps:keys(maps:get(files, Layout, #{})),
                                not is_inside(Name)]
        ++ [{~"start", Start} || not is_start(Start)]
        ++ [{~"stop", Stop} || #{stop := Stop} <- [Layout], not is_command(Stop)]
        ++ [{Name, Command} || Name := Command <- maps:get(commands, Layout, #{}),
                               not is_command(Command)].

matches(Text, Pattern) ->
    is_binary(Text) andalso match =:= re:run(Text, Pattern, [{capture, none}, dollar_endonly]).

is_inside(Name) ->
    is_binary(Name) andalso Name =/= <<>> andalso not has_zero(Name)
        andalso filename:pathtype(Name) =:= relative
        andalso not lists:member(~"..", filename:split(Name)).

has_zero(Text) -> binary:match(Text, <<0>>) =/= nomatch.

is_start({code, Applications}) ->
    lists:all(fun(Name) -> matches(Name, "^[a-z][A-Za-z0-9_@]*$") end, Applications);
is_start(Command) ->
    is_command(Command).

is_command([_ | _] = Words) ->
    lists:all(fun(Word) -> is_binary(Word) andalso not has_zero(Word) end, Words);
is_command(_) ->
    false.

files(#{start := Start, release := Release} = Layout) ->
    Commands = maps:get(commands, Layout, #{}),
    IsCode = is_tuple(Start),
    lists:append([
        [{~"home/.erlang.cookie", 8#400, maps:get(cookie, Layout)},
         {~"env", 8#400, environment(maps:get(env, Layout, #{}))},
         {~"commands/start", 8#600, start(Start, Layout)}],
        [{~"commands/stop", 8#600, shell(Stop)} || #{stop := Stop} <- [Layout]],
        [{<<"commands/", Name/binary>>, 8#600, shell(Command)}
         || Name := Command <- maps:iterator(Commands, ordered)],
        [{<<"files/", Name/binary>>, mode(Data), Data}
         || Name := Data <- maps:iterator(maps:get(files, Layout, #{}), ordered)],
        [{~"sys.config", 8#400, maps:get(config, Layout, ~"[].\n")}],
        [{~"state", folder}, {~"log", folder}],
        %% With files of its own it gets a copy, like any other release.
        [{~"release", {link, <<"../../releases/", Release/binary>>}}
         || IsCode, maps:get(files, Layout, #{}) =:= #{}],
        [{~"bell", fifo} || IsCode],
        [{~"instance", 8#600, instance(Layout, Commands, IsCode)}]
    ]).

%% Scripts are executable.
mode(Data) ->
    case iolist_to_binary(Data) of
        <<"#!", _/binary>> -> 8#700;
        _ -> 8#600
    end.

instance(#{release := Release, settings := Settings, node := Node}, Commands, IsCode) ->
    Wait = case Commands of
        #{~"check" := _} -> "check";
        _ when IsCode -> "booted";
        _ -> "settle"
    end,
    ["release ", Release, "\nsettings ", Settings, "\nnode ", Node, "\nwait_for ", Wait, "\n"].

environment(Variables) ->
    [["export ", Name, "=", quote(Value), "\n"]
     || Name := Value <- maps:iterator(Variables, ordered)].

shell(Command) -> ["exec ", lists:join(" ", [quote(Word) || Word <- Command]), "\n"].

quote(Text) -> ["'", string:replace(Text, "'", "'\\''", all), "'"].

%% Not -detached: that would lose the output of a node before its log is there, or if it cannot
%% boot.
start({code, Applications}, #{node := Node, names := Names}) ->
    [~"""
     command -v erl >/dev/null || {
         echo "there is no erl on the PATH of this host: $PATH" >&2
         exit 127
     }
     unset ROOTDIR BINDIR EMU PROGNAME
     log=$SDERL_OPS_LOG
     printf '%s\n' "%% coding: utf-8
     [{kernel, [{logger, [{handler, default, logger_std_h,
         #{config => #{file => \"$log/erlang.log\",
                       max_no_bytes => 10485760,
                       max_no_files => 4}}}]}]}]." >"$SDERL_OPS_HOME/log.config"
     : ${ERL_CRASH_DUMP="$log/erl_crash.dump"}
     export ERL_CRASH_DUMP
     [ ! -p "$SDERL_OPS_HOME/bell" ] || exec 8<>"$SDERL_OPS_HOME/bell"
     set --
     for ebin in "$SDERL_OPS_RELEASE"/lib/*/ebin; do
         set -- "$@" -pa "$ebin"
     done
     setsid erl -noinput -connect_all false "$@" \
         -config "$SDERL_OPS_HOME/log" -config "$SDERL_OPS_HOME/sys" \

     """,
     case Names of
         long -> "    -name ";
         short -> "    -sname "
     end, quote(Node), " \\\n    -eval ", quote(boot(Applications)),
     " >>\"$log/console.log\" 2>&1 &\necho \"$!\" >\"$SDERL_OPS_HOME/pid\"\n"];
start(Command, _) ->
    shell(Command).

%% Writing to the bell wakes the host script, which waits for the file `booted`. Descriptor 8 is
%% checked by its name, because it may be something else.
boot(Applications) ->
    ["case application:ensure_all_started([",
     lists:join(", ", [["'", Name, "'"] || Name <- Applications]),
     "], permanent) of "
     "{ok, _} -> Home = os:getenv(\"SDERL_OPS_HOME\"), "
     "ok = file:write_file(Home ++ \"/booted\", \"\"), "
     "case file:read_link(\"/proc/self/fd/8\") =:= {ok, Home ++ \"/bell\"} of "
     "true -> catch port_command(open_port({fd, 8, 8}, [out]), \".\"); "
     "false -> ok "
     "end; "
     "{error, Why} -> io:format(standard_error, \"cannot start: ~tp~n\", [Why]), "
     "halt(1, [{flush, true}]) "
     "end."].
