%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_server_tests).
-moduledoc "A request that is asked again, as the server that was asked first did not answer.".

-include_lib("eunit/include/eunit.hrl").

adopted_once_test_() ->
    {timeout, 120, fun() -> sderl_ops_places:in_folder(fun adopted_once/1) end}.

adopted_once(Folder) ->
    {ok, File} = sderl_ops_file:check(#{
        cluster => shop,
        providers => #{here => #{type => local, hosts => 1}},
        releases => #{one => #{folder => ~"rel", start => [~"bin/go"]}},
        domains => #{all => #{provider => here}},
        families => #{web => #{release => one, domains => [all], count => 1}}
    }, ~"/base"),
    {ok, Prepared} = sderl_ops_revision:prepare(File#{families := #{}}, Folder),
    {ok, Server} = sderl_ops_server:start_link(Folder, none),
    try
        Adopt = fun(After, Request) ->
            gen_server:call(Server, {adopt, Prepared, After, #{
                by => ~"ann", why => ~"apply", force => false, request => Request
            }}, 60_000)
        end,
        ?assertEqual({ok, 1}, Adopt(0, ~"a")),
        ?assertEqual({ok, 1}, Adopt(0, ~"a")),
        {error, Sentence} = Adopt(0, ~"b"),
        ?assertMatch("ann has made revision 1 meanwhile" ++ _,
                     unicode:characters_to_list(Sentence)),
        ?assertEqual({ok, 2}, Adopt(1, ~"b")),
        ?assertEqual({ok, 2}, Adopt(1, ~"b")),
        ?assertEqual([1, 2], [Number || {Number, _} <- sderl_ops_store:revisions(~"shop")])
    after
        unlink(Server),
        ok = gen_server:stop(Server, shutdown, 60_000),
        ok = application:stop(khepri),
        ok = application:stop(ra)
    end.
