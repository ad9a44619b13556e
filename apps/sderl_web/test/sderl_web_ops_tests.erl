%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_ops_tests).
-moduledoc "The errors where no service of operations answers; `sderl_ops_SUITE` has a real one.".

-include_lib("eunit/include/eunit.hrl").

-export([with_service/2]).

nobody_test() ->
    [?assertMatch({error, unavailable, _}, sderl_web_ops:answer(Folder))
     || Folder <- ["/nonexistent", lists:duplicate(300, $x)]],
    ?assertMatch({error, unavailable, _}, sderl_web_ops:plan(~"{}", false, ~"ann", "/nonexistent")),
    {error, _, Sentence} = sderl_web_ops:answer("/nonexistent"),
    ?assertNotEqual(nomatch, string:find(Sentence, "no service of operations runs in "
                                                   "/nonexistent")).

%% Another program listens at the service's address.
strangers_test_() ->
    {timeout, 120, fun() ->
        [?assertMatch({Said, {error, unavailable, _}}, {Said, answered(Said)})
         || Said <- [~"", ~"hello\n", ~B|{"done":3}|, ~B|{"done":{}}|, ~B|{"error":3}|]],
        ?assertMatch({error, unavailable, ~"no"}, answered(~B|{"error":"no","problems":[]}|)),
        ?assertMatch({busy, _, ~"no"}, with_service(
            ~B|{"error":"no","problems":[],"busy":true}|,
            fun(Folder) -> sderl_web_ops:plan(~"{}", false, ~"ann", Folder) end
        ))
    end}.

answered(Said) -> with_service(Said, fun sderl_web_ops:answer/1).

%% The error of a change says whether the change was made.
changes_test_() ->
    {timeout, 120, fun() ->
        [?assertEqual({Said, Result}, {Said, changed(Said)})
         || {Said, Result} <- [
                {~B|{"done":{"state":"working","revision":3,"file":"/x"}}|,
                 {ok, #{state => ~"working", revision => 3, file => ~"/x"}}},
                {~B|{"error":"no","problems":[]}|, {error, conflict, ~"no"}},
                {~B|{"error":"no","problems":[],"unknown":true}|, {error, not_found, ~"no"}},
                {~B|{"error":"no","problems":[],"busy":true}|, {busy, 5, ~"no"}},
                {~B|{"error":"no","problems":[],"unavailable":true}|, {error, unavailable, ~"no"}},
                {~B|{"error":"no","problems":[],"unsure":true}|, {error, late, ~"no"}}
            ]],
        [?assertMatch({Said, {error, late, _}}, {Said, changed(Said)})
         || Said <- [~"", ~"hello", ~B|{"done":{}}|]]
    end}.

changed(Said) ->
    with_service(Said, fun(Folder) -> sderl_web_ops:change(#{do => pause}, ~"ann", Folder) end).

%% Runs a stand-in for the service that answers each request with `Said`, or with what the function
%% `Said` returns.
with_service(Said, Fun) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["sderl-web-", os:getpid(), "-",
                                         erlang:unique_integer([positive])])),
    Path = filename:join(Folder, "socket"),
    ok = filelib:ensure_path(Folder),
    {ok, Listener} = gen_tcp:listen(0, [local, binary, {active, false},
                                        {ifaddr, {local, list_to_binary(Path)}}]),
    _ = spawn_link(fun() -> serve(Listener, Said) end),
    try
        Fun(Folder)
    after
        ok = gen_tcp:close(Listener),
        ok = file:del_dir_r(Folder)
    end.

serve(Listener, Said) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} ->
            {ok, Line} = gen_tcp:recv(Socket, 0),
            ok = gen_tcp:send(Socket, case Said of
                _ when is_function(Said) -> Said(json:decode(Line));
                _ -> Said
            end),
            ok = gen_tcp:close(Socket),
            serve(Listener, Said);
        %% A listener that closes just as it is asked is an invalid one.
        {error, Why} when Why =:= closed; Why =:= einval ->
            ok
    end.
