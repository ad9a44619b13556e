%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_mix).
-moduledoc "The release of Mix in `docs/examples/shop_ex`, built into a folder of a test.".

-export([release/2, release/3]).

-doc """
The folder of the release, with more flags for its nodes. The library is not compiled again.
""".
-spec release(file:filename(), Flags :: iodata()) -> {ok, file:filename()} | {skip, string()}.
release(Folder, Flags) -> release(Folder, Flags, #{}).

-doc "The same with some of its files replaced.".
-spec release(file:filename(), Flags :: iodata(), #{File :: string() => iodata()}) ->
    {ok, file:filename()} | {skip, string()}.
release(Folder, Flags, Others) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no mix"};
        Mix -> {ok, build(Mix, filename:join(Folder, "shop_ex"), Flags, Others)}
    end.

build(Mix, Project, Flags, Others) ->
    Example = filename:join([sderl_ops_places:root(), "docs", "examples", "shop_ex"]),
    Library = filename:join(filename:dirname(Project), "sderl"),
    ok = copy(["mix.exs", "config/config.exs", "lib/shop.ex", "rel/env.sh.eex"], Example, Project),
    ok = replace("path: \"../../../apps/sderl\", manager: :rebar3",
                 ["path: \"", Library, "\", compile: false"], filename:join(Project, "mix.exs")),
    Ebin = code:lib_dir(sderl) ++ "/ebin",
    ok = filelib:ensure_path(Library),
    ok = copy([filename:basename(File) || File <- filelib:wildcard(Ebin ++ "/*.{beam,app}")],
              Ebin, filename:join([Project, "_build", "prod", "lib", "sderl", "ebin"])),
    ok = file:write_file(filename:join([Project, "rel", "vm.args.eex"]),
                         ["-connect_all false\n+sbwt none\n", Flags]),
    maps:foreach(fun(File, Text) ->
        ok = file:write_file(filename:join(Project, File), Text)
    end, Others),
    Home = filename:join(Project, "home"),
    Port = open_port({spawn_executable, Mix}, [
        {args, ["release", "--quiet"]}, {cd, Project}, exit_status, stderr_to_stdout, binary,
        {env, [{"MIX_ENV", "prod"}, {"MIX_HOME", Home}, {"HEX_HOME", Home}, {"HOME", Home},
               {"ERL_FLAGS", false}, {"ERL_LIBS", false}]}
    ]),
    {0, _} = output(Port, <<>>),
    filename:join([Project, "_build", "prod", "rel", "shop"]).

copy(Files, From, To) ->
    lists:foreach(fun(File) ->
        Copy = filename:join(To, File),
        ok = filelib:ensure_dir(Copy),
        {ok, _} = file:copy(filename:join(From, File), Copy)
    end, Files).

replace(Old, New, File) ->
    {ok, Text} = file:read_file(File),
    [Before, After] = binary:split(Text, list_to_binary(Old)),
    file:write_file(File, [Before, New, After]).

output(Port, Said) ->
    receive
        {Port, {data, Bytes}} -> output(Port, <<Said/binary, Bytes/binary>>);
        {Port, {exit_status, Status}} -> {Status, Said}
    end.
