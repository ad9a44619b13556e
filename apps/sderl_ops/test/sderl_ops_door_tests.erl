%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_door_tests).
-moduledoc "Answers of the socket if the server ends, hangs or does not run.".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_ops_places, [in_folder/1]).

%% A requested change may have been stored, unless no server ran; reading requests change nothing.
nobody_test() ->
    in_door(fun(Asked) ->
        [?assertMatch({Do, #{~"error" := _, ~"problems" := [], ~"unavailable" := true}},
                      {Do, Asked(#{do => Do})}) || Do <- [status, pause]]
    end).

ended_test_() ->
    {timeout, 60, fun() ->
        in_door(fun(Asked) ->
            %% The door itself, whose server is gone before it answers.
            true = register(sderl_ops_server, ended_when_asked()),
            #{~"error" := Sentence, ~"unsure" := true} = Asked(#{do => pause}),
            ?assertNotEqual(nomatch, string:find(Sentence, "tell whether it was done")),
            true = register(sderl_ops_server, ended_when_asked()),
            #{~"error" := _, ~"unavailable" := true} = Asked(#{do => status})
        end)
    end}.

%% A crash is reported as a defect.
defect_test() ->
    in_door(fun(Asked) ->
        {Server, Monitor} = spawn_monitor(fun answer_nonsense/0),
        true = register(sderl_ops_server, Server),
        #{~"error" := <<"this is a defect of the service", _/binary>>, ~"unavailable" := true} =
            Asked(#{do => status}),
        #{~"error" := <<"this is a defect of the service", _/binary>>, ~"unsure" := true} =
            Asked(#{do => undrain, instance => ~"web1"}),
        exit(Server, kill),
        receive {'DOWN', Monitor, process, _, _} -> ok end
    end).

in_door(Fun) ->
    in_folder(fun(Folder) ->
        {ok, Door} = sderl_ops_door:start_link(Folder),
        true = unlink(Door),
        try
            Fun(fun(Request) -> asked(Folder, Request) end)
        after
            ok = gen_server:stop(Door)
        end
    end).

asked(Folder, Request) ->
    {ok, Socket} = sderl_ops_asks:connect(Folder),
    ok = gen_tcp:send(Socket, sderl_ops_wire:encode_request(Request)),
    {ok, Line} = gen_tcp:recv(Socket, 0, 30_000),
    ok = gen_tcp:close(Socket),
    json:decode(Line).

ended_when_asked() ->
    spawn(fun() -> receive {'$gen_call', _, _} -> exit(killed) end end).

answer_nonsense() ->
    receive {'$gen_call', From, _} -> gen_server:reply(From, nonsense) end,
    answer_nonsense().
