%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_log_SUITE).
-moduledoc """
`bin/sderl log` as a person uses it, on a cluster that a monitoring node watches.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([searched_and_followed/1, nobody_watches/1]).

-define(SOON, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [searched_and_followed, nobody_watches].

with(Families, Fun) ->
    {ok, Fleet} = sderl_fleet:start(#{families => Families}),
    try
        Fun(Fleet, sderl_fleet:nodes(Fleet))
    after
        sderl_fleet:stop(Fleet)
    end.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?SOON).

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, ?SOON)).

searched_and_followed(_) ->
    with([#{name => node, count => 2, apps => [sderl]}, #{name => m, count => 1, hidden => true}],
         fun(Fleet, [N1, N2, M]) ->
             ok = call(Fleet, M, application, set_env,
                       [sderl_mon, config, #{seeds => [N1, N2], interval_ms => 250}]),
             {ok, _} = call(Fleet, M, application, ensure_all_started, [sderl_mon]),
             Has = fun(Node, Text) ->
                 {ok, #{events := Events}} =
                     call(Fleet, M, sderl_mon_log, search,
                          [#{text => Text, node => atom_to_binary(Node)}]),
                 Events =/= []
             end,
             await(fun() ->
                 [ok = call(Fleet, N, logger, error, ["the first\nof two lines"]) || N <- [N1, N2]],
                 lists:all(fun(N) -> Has(N, ~"the first") end, [N1, N2])
             end),
             ok = call(Fleet, N2, logger, warning, ["the \x{202e}second"]),
             await(fun() -> Has(N2, ~"second") end),
             Run = fun(Args) -> sderl_cli_program:run(Fleet, ["log" | Args]) end,
             %% Over a node of the cluster, and from the monitoring node itself.
             {0, All} = Run(["--seed", atom_to_list(N1)]),
             [?assertMatch({Part, {_, _}}, {Part, binary:match(All, Part)})
              || Part <- [~"the first\n    of two lines\n", ~"the \\u{202e}second\n",
                          atom_to_binary(N1), ~" warning   "]],
             {0, One} = Run(["--seed", atom_to_list(M), "--text", "SECOND", "--since", "1h",
                             "--node", atom_to_list(N2), "--json"]),
             ?assertMatch(#{~"level" := ~"warning", ~"text" := <<"the \x{202e}second"/utf8>>},
                          json:decode(string:trim(One))),
             ?assertEqual({0, <<>>}, Run(["--seed", atom_to_list(M), "--text", "second",
                                          "--level", "error"])),
             %% What comes is shown until it is interrupted.
             Port = sderl_cli_program:open(Fleet, ["log", "--seed", atom_to_list(N1), "--follow",
                                                   "--text", "new"]),
             {os_pid, OsPid} = erlang:port_info(Port, os_pid),
             Seen = until(~"brand NEW 1", fun() ->
                 ok = call(Fleet, N2, logger, error, ["brand NEW ~b", [1]])
             end, Port, <<>>),
             ?assertEqual(nomatch, binary:match(Seen, ~"first")),
             _ = os:cmd("kill -INT " ++ integer_to_list(OsPid)),
             ?assertMatch({Status, _} when Status =:= 0; Status =:= 130,
                          sderl_cli_program:rest(Port)),
             ok = call(Fleet, M, application, stop, [sderl_mon])
         end).

%% Logs the text again and again until it is shown.
until(Text, Say, Port, Seen) ->
    case binary:match(Seen, Text) of
        {_, _} -> Seen;
        nomatch ->
            ok = Say(),
            receive
                {Port, {data, Data}} -> until(Text, Say, Port, <<Seen/binary, Data/binary>>);
                {Port, {exit_status, Status}} -> ct:fail({Status, Seen})
            after 500 -> until(Text, Say, Port, Seen)
            end
    end.

nobody_watches(_) ->
    with([#{name => node, count => 1, apps => [sderl]}], fun(Fleet, [Node]) ->
        {1, Said} = sderl_cli_program:run(Fleet, ["log", "--seed", atom_to_list(Node)]),
        ?assertMatch({_, _}, binary:match(Said, ~"start one with \"bin/sderl mon --seed")),
        {1, Cannot} = sderl_cli_program:run(Fleet, ["log", "--seed", "nobody@127.0.0.1"]),
        ?assertMatch({_, _}, binary:match(Cannot, ~"cannot connect to nobody@127.0.0.1"))
    end).
