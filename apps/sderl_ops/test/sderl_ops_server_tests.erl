%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_server_tests).
-moduledoc "Answers of the server, also to requests that are repeated or come too late.".

-include_lib("eunit/include/eunit.hrl").

adopted_once_test_() ->
    {timeout, 120, fun() -> sderl_ops_places:in_folder(fun adopted_once/1) end}.

adopted_once(Folder) ->
    in_server(Folder, fun(Adopt) ->
        ?assertEqual({ok, 1}, Adopt(0, #{request => ~"a"})),
        ?assertEqual({ok, 1}, Adopt(0, #{request => ~"a"})),
        {error, Sentence} = Adopt(0, #{request => ~"b"}),
        ?assertMatch("ann has made revision 1 meanwhile" ++ _,
                     unicode:characters_to_list(Sentence)),
        ?assertEqual({ok, 2}, Adopt(1, #{request => ~"b"})),
        ?assertEqual({ok, 2}, Adopt(1, #{request => ~"b"})),
        ?assertEqual([1, 2], [Number || {Number, _} <- sderl_ops_store:revisions(~"shop")])
    end).

%% An archive may have been deleted before its revision is requested.
archives_test_() ->
    {timeout, 120, fun() -> sderl_ops_places:in_folder(fun archives/1) end}.

archives(Folder) ->
    Sha = ~"0123456789abcdef",
    Archive = sderl_ops_share:archive(Folder, Sha),
    With = fun(Prepared) -> Prepared#{archives := #{Sha => Archive}} end,
    in_server(Folder, With, fun(Adopt) ->
        {error, Sentence} = Adopt(0, #{}),
        ?assertNotEqual(nomatch, string:find(Sentence, Sha)),
        ?assertEqual([], sderl_ops_store:clusters()),
        ok = filelib:ensure_dir(Archive),
        ok = file:write_file(Archive, ~"it is there"),
        ?assertEqual({ok, 1}, Adopt(0, #{}))
    end).

%% A change of members is made before it is recorded, and holds if it cannot be recorded.
not_written_test() -> ?assertEqual(ok, sderl_ops_acting:write_down(~"ann", {add_member, ~"m"})).

%% Of the revisions only the newest 100 are kept, and the file that was applied last is known as
%% long as there is one.
applied_test_() ->
    {timeout, 300, fun() -> sderl_ops_places:in_folder(fun applied/1) end}.

applied(Folder) ->
    in_server(Folder, fun(Adopt) ->
        Apply = fun() ->
            sderl_ops_requests:do(#{do => apply, force => false, wait => false, who => ~"rest:ann"},
                                  Folder, fun(_) -> ok end)
        end,
        ?assertMatch({error, "the service keeps no cluster yet" ++ _, []}, Apply()),
        {ok, 1} = Adopt(0, #{why => ~"scale web to 0"}),
        {error, Unknown, []} = Apply(),
        ?assertNotEqual(nomatch, string:find(Unknown, "which file was applied last")),
        %% As earlier versions have stored it, and as it is stored now.
        {ok, 2} = Adopt(1, #{why => ~"apply /nonexistent/old.json"}),
        ?assertEqual({2, ~"/nonexistent/old.json"}, sderl_ops_acting:applied()),
        File = <<(unicode:characters_to_binary(Folder))/binary, "/gone.json">>,
        {ok, 3} = Adopt(2, #{applied => File}),
        _ = [{ok, _} = Adopt(After, #{why => ~"scale web to 0"}) || After <- lists:seq(3, 104)],
        ?assertEqual(100, length(sderl_ops_store:revisions(~"shop"))),
        ?assertEqual({105, File}, sderl_ops_acting:applied()),
        {error, "the file is wrong", [Problem]} = Apply(),
        ?assertNotEqual(nomatch, string:find(Problem, "gone.json"))
    end).

%% Unknown names are distinguished from refusals.
unknown_test_() ->
    {timeout, 120, fun() -> sderl_ops_places:in_folder(fun unknown/1) end}.

unknown(Folder) ->
    in_server(Folder, fun(Adopt) ->
        {ok, 1} = Adopt(0, #{}),
        [?assertMatch({Do, {unknown, _}},
                      {Do, sderl_ops_requests:do(Request#{who => ~"ann", wait => false}, Folder,
                                                 fun(_) -> ok end)})
         || #{do := Do} = Request <- [
                #{do => undrain, instance => ~"web9"},
                #{do => drain, instance => ~"web9", force => false},
                #{do => rollback, revision => 7, force => false},
                #{do => scale, family => ~"nobody", count => 2, force => false}
            ]]
    end).

in_server(Folder, Fun) -> in_server(Folder, fun(Prepared) -> Prepared end, Fun).

in_server(Folder, Change, Fun) ->
    {ok, File} = sderl_ops_file:check(#{
        cluster => shop,
        providers => #{here => #{type => local, hosts => 1}},
        releases => #{one => #{folder => ~"rel", start => [~"bin/go"]}},
        domains => #{all => #{provider => here}},
        families => #{web => #{release => one, domains => [all], count => 1}}
    }, ~"/base"),
    {ok, #{hosts := #{}} = All} = sderl_ops_revision:prepare(File#{families := #{}}, Folder),
    %% A look at a host may go on when the server has ended, and lay out its folder.
    Prepared = Change(All#{hosts := #{}}),
    {ok, Server} = sderl_ops_server:start_link(Folder, none),
    Adopt = fun(After, About) ->
        gen_server:call(Server, {adopt, Prepared, After, maps:merge(#{
            by => ~"ann", why => ~"apply", force => false,
            request => integer_to_binary(erlang:unique_integer())
        }, About)}, 60_000)
    end,
    try
        Fun(Adopt)
    after
        unlink(Server),
        ok = gen_server:stop(Server, shutdown, 60_000),
        ok = application:stop(khepri),
        ok = application:stop(ra)
    end.
