%% SPDX-License-Identifier: Apache-2.0
%% `bin/sderl prof open` of samples: each answer has the shape that the API document gives.
-module(sderl_cli_prof_samples_tests).

-include_lib("eunit/include/eunit.hrl").

pages_test_() ->
    {timeout, 300, fun() ->
        {ok, Report} = sderl_prof_sampling:sample(node(), #{seconds => 3}),
        Json = json:decode(iolist_to_binary(json:encode(Report))),
        Reports = [Json, Json#{~"node" := ~"other@host"}],
        sderl_cli_prof_tests:served("samples.json", {samples, Reports}, fun answered/1)
    end}.

answered(Server) ->
    Ask = fun(Path) -> sderl_web_rest:get(["/samples", Path], ~"token-of-the-test", Server) end,
    Get = fun(Path) ->
        {200, _, Answer} = Ask(Path),
        Answer
    end,
    #{~"duration" := Duration, ~"nodes" := [#{~"node" := _, ~"looks" := _}, _]} = Get(""),
    #{~"kinds" := [_ | _], ~"kinds_all" := All, ~"waits" := [_ | _], ~"states" := [_ | _],
      ~"schedulers" := [_ | _], ~"nodes" := [_, _], ~"curves" := [_ | _],
      ~"covers" := #{~"from" := 0, ~"to" := Duration}} = Get("/shares"),
    #{~"kinds" := [#{~"group" := Kind}], ~"kinds_all" := All} = Get("/shares?limit=1"),
    #{~"states" := [_ | _]} = Get(["/shares?kind=", uri_string:quote(Kind)]),
    #{~"waits" := []} = Get("/shares?kind=nothing"),
    #{~"schedulers" := Schedulers} = Get("/shares?node=other%40host"),
    ?assertEqual([~"other@host"], lists:usort([Node || #{~"node" := Node} <- Schedulers])),
    #{~"covers" := #{~"from" := 0, ~"to" := To}} = Get("/shares?from=0&to=2"),
    ?assert(To < Duration),
    [?assertMatch({Status, _, #{~"detail" := _}}, Ask(Path)) || {Status, Path} <- [
        {404, "/shares?node=nobody"}, {400, "/shares?from=5&to=5"}, {400, "/shares?from=x"},
        {400, "/shares?limit=0"}, {400, "/shares?wat=1"}
    ]],
    Paths = [Id || {Id, _, Path, _} <- sderl_web_rest:operations(map_get(document, Server)),
                   string:find(Path, "/samples") =/= nomatch],
    ?assertEqual(2, length(Paths)),
    ?assertEqual([], Paths -- sderl_web_rest:answered()).

%% A report of an older version, without data for pages, is refused.
refused_test() ->
    {ok, Web} = sderl_cli_prof_open:check(#{port => 0}),
    {error, Old} = sderl_cli_prof_open:start("old.json", {samples, [#{~"node" => ~"a@h"}]}, Web),
    ?assertNotEqual(nomatch, string:find(Old, "bin/sderl prof sample --out FILE")).
