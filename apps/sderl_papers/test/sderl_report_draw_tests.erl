%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_draw_tests).
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- what is installed

files() ->
    {ok, Package} =
        file:read_file(filename:join([code:priv_dir(sderl_papers), "report", "package.json"])),
    {ok, Lock} =
        file:read_file(filename:join([code:priv_dir(sderl_papers), "report", "package-lock.json"])),
    {Package, Lock}.

%% The lock file must not name the registry of one machine, from which others may be unable to
%% download.
no_addresses_test() ->
    {_, Lock} = files(),
    ?assertEqual(nomatch, string:find(Lock, "\"resolved\"")),
    #{<<"packages">> := Packages} = json:decode(Lock),
    [?assertMatch({_, #{<<"integrity">> := <<"sha512-", _/binary>>}}, {Name, P})
     || Name := P <- Packages, Name =/= <<>>].

exact_versions_test() ->
    {Package, Lock} = files(),
    #{<<"dependencies">> := Wanted} = json:decode(Package),
    #{<<"packages">> := #{<<>> := #{<<"dependencies">> := Locked}} = Packages} = json:decode(Lock),
    ?assertEqual(Wanted, Locked),
    Exact = "^[0-9]+\\.[0-9]+\\.[0-9]+(-[0-9A-Za-z.]+)?$",
    [?assertMatch({_, {match, _}}, {Name, re:run(Version, Exact)}) || Name := Version <- Wanted],
    [?assertMatch({_, {match, _}}, {Name, re:run(map_get(<<"version">>, P), Exact)})
     || Name := P <- Packages, Name =/= <<>>],
    [?assertEqual(Version,
                  map_get(<<"version">>, map_get(<<"node_modules/", Name/binary>>, Packages)))
     || Name := Version <- Wanted].

below_the_build_folder_test() ->
    ?assertEqual("report", filename:basename(sderl_report_node:home())),
    ?assertNotEqual(nomatch, string:find(sderl_report_node:home(), "_build")).

%% ---------------------------------------------------------------- where it cannot be

%% A PATH with programs that behave in a given way.
with_programs(Programs, Fun) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["sderl_report_", os:getpid(), "_",
                                      erlang:unique_integer([positive])])),
    Bin = filename:join(Dir, "bin"),
    ok = filelib:ensure_path(Bin),
    try
        [begin
             ok = file:write_file(filename:join(Bin, Name), ["#!/bin/sh\n", Script]),
             ok = file:change_mode(filename:join(Bin, Name), 8#700)
         end || {Name, Script} <- Programs],
        Fun(filename:join(Dir, "home"), Bin)
    after
        ok = file:del_dir_r(Dir)
    end.

why_not_test_() ->
    New = {"node", "echo v24.1.0\n"},
    [
        {Words, fun() ->
            with_programs(Programs, fun(Home, Path) ->
                {error, Text} = sderl_report_node:ready(Home, Path),
                ?assertNotEqual({nomatch, Text},
                                {string:find(unicode:characters_to_list(Text), Words), Text}),
                %% Nothing half installed is left.
                ?assertEqual([], filelib:wildcard(filename:join(Home, "*")))
            end)
        end}
     || {Programs, Words} <- [
         {[], "no program node on this machine: install Node.js 20 or newer"},
         {[{"node", "echo v18.19.0\n"}], "Node.js 18.19.0 is too old"},
         {[{"node", "echo hello\n"}], "does not tell its version"},
         {[New], "no program npm"},
         {[New, {"npm", "echo 'npm error code ENOTFOUND' >&2; echo 'npm error network no way out' "
                        ">&2; exit 1\n"}],
          "cannot be installed (npm: code ENOTFOUND; network no way out)"},
         {[New, {"npm", "echo broken; exit 3\n"}], "cannot be installed (npm: broken)"}
     ]
    ].

%% The library is installed once; the script of these sources is beside it.
installed_once_test() ->
    Npm = "echo run >> ../runs; /bin/mkdir node_modules\n",
    with_programs([{"node", "echo v24.1.0\n"}, {"npm", Npm}], fun(Home, Path) ->
        {ok, #{script := Script} = Installed} = sderl_report_node:ready(Home, Path),
        ?assertEqual({ok, Installed}, sderl_report_node:ready(Home, Path)),
        ?assertEqual({ok, <<"run\n">>}, file:read_file(filename:join(Home, "runs"))),
        ?assert(filelib:is_dir(filename:join(filename:dirname(Script), "node_modules"))),
        ?assertEqual(file:read_file(filename:join([code:priv_dir(sderl_papers), "report",
                                                   "draw.mjs"])), file:read_file(Script))
    end).

%% A drawing program that fails gives a reason, not a crash.
bad_program_test_() ->
    [
        {Words, fun() ->
            with_programs([{"node", Script}], fun(_, Bin) ->
                {error, Text} =
                    sderl_report_draw:pages(sderl_report_sample:pages(),
                                            #{node => filename:join(Bin, "node"), script => "x"}),
                ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Text), Words))
            end)
        end}
     || {Script, Words} <- [
         {"read -r line; exit 7\n", "ended with status 7"},
         {"exit 7\n", "the program that draws them"},
         {"while read -r line; do echo '{\"id\":1,\"error\":\"no such mark\"}'; done\n",
          "no such mark"}
     ]
    ].

%% A drawing program that does not read its input.
broken_pipe_test() ->
    with_programs([{"gone", "exec 0<&-; echo one; read -r line; exit 3\n"}], fun(_, Bin) ->
        ?assertMatch({error, {_, _}},
                     sderl_bench_program:ask(filename:join(Bin, "gone"), [],
                                             lists:duplicate(9, lists:duplicate(100_000, $x)),
                                             #{timeout => 60_000}))
    end).

timeout_test() ->
    with_programs([{"slow", "exec /bin/sleep 1000\n"}], fun(_, Bin) ->
        ?assertEqual({error, timeout},
                     sderl_bench_program:run(filename:join(Bin, "slow"), [], #{timeout => 1})),
        ?assertEqual({error, timeout},
                     sderl_bench_program:ask(filename:join(Bin, "slow"), [], ["x"],
                                             #{timeout => 1}))
    end).

%% Answers longer than a line of the port are complete.
long_answer_test() ->
    Long = lists:duplicate(200_000, $x),
    with_programs([{"echo", "while read -r line; do echo \"$line\"; done\n"}], fun(_, Bin) ->
        Seen = self(),
        ?assertEqual({ok, [list_to_binary(Long), <<"y">>]},
                     sderl_bench_program:ask(filename:join(Bin, "echo"), [], [Long, "y"],
                                             #{timeout => 60_000,
                                               seen => fun(I) -> Seen ! {seen, I} end})),
        [receive {seen, I} -> ok after 0 -> ?assert(false) end || I <- [1, 2]]
    end).

%% ---------------------------------------------------------------- with Node.js

%% Only where the library is installed already: tests download nothing.
draw_test_() ->
    case {os:find_executable("node"), filelib:wildcard(
        filename:join(sderl_report_node:home(), "*/node_modules/vega/package.json")
    )} of
        {false, _} -> skipped("there is no Node.js");
        {_, []} -> skipped("what draws is not installed: \"bin/sderl report\" does that");
        {_, _} -> {timeout, 120, fun draw/0}
    end.

skipped(Why) ->
    io:format(user, "drawing plots is not tested here: ~ts~n", [Why]),
    [].

draw() ->
    Pages = sderl_report_sample:pages(),
    {ok, Drawn} = sderl_report_draw:pages(Pages),
    ?assertEqual([length(Plots) || #{plots := Plots} <- Pages], [length(D) || D <- Drawn]),
    %% Only the plot without a point is not drawn.
    ?assertEqual(1, length([none || none <- lists:append(Drawn)])),
    [C1, _, C3, _] = [[map_get(wide, D) || D <- Of, D =/= none] || Of <- Drawn],
    [?assertNotEqual({nomatch, Text}, {string:find(hd(C1), Text), Text})
     || Text <- ["s_groups of 10, 1 % global", "nodes of a cluster (log scale)",
                 "p50 (ms, log scale)", "8 times that of 10 nodes", "var(--s4)",
                 "stroke-dasharray"]],
    %% Markup in the data is shown as text.
    ?assertNotEqual(nomatch,
                    string:find(hd(C3), "half of the nodes &lt;stopped&gt; &amp; started")),
    Html = sderl_report_html:html(sderl_report_sample:start(), lists:zip(Pages, Drawn)),
    ?assertEqual([], sderl_report_sample:loads(unicode:characters_to_list(Html))).
