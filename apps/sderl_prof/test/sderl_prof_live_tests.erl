%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_live_tests).
-moduledoc "Checks of requests, and the folder of profiles; sderl_prof_cluster_SUITE has the rest.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    sderl_prop:eunit("nothing beyond a limit is taken", 500, fun prop_limits/0).

%% A request beyond a limit is refused, with a text.
prop_limits() ->
    ?FORALL(Request, request(), begin
        #{kind := Kind, seconds := Seconds, mib := Mib, modules := Modules,
          nodes := Nodes} = Request,
        Recording = sderl_prof_live_request:is_recording(Kind),
        {MostSeconds, MostNodes} = case Recording of true -> {60, 16}; false -> {600, 64} end,
        May = Seconds >= 1 andalso Seconds =< MostSeconds andalso length(Nodes) =< MostNodes
            andalso Mib >= 16 andalso Mib =< 256 andalso length(Modules) =< 20
            andalso (Kind =:= calls) =:= (Modules =/= []),
        case sderl_prof_live_request:check(Request) of
            ok -> May andalso sderl_prof_live_request:needs(Request) =< 2 * 16 * 256 * 1_048_576;
            {error, Why} ->
                not May andalso is_binary(unicode:characters_to_binary(
                    sderl_prof_live_request:format_error(Why)))
        end
    end).

request() ->
    ?LET({Kind, Seconds, Mib, Modules, Nodes},
         {oneof(sderl_prof_live_request:kinds()), range(0, 700), range(10, 300), range(0, 22),
          range(1, 70)},
         #{kind => Kind, on => #{}, who => ~"ann", seconds => Seconds, mib => Mib,
           modules => lists:duplicate(Modules, ~"lists"),
           nodes => lists:duplicate(Nodes, {~"n", node()})}).

%% Profiles are read again; one that was running is lost, and other files stay as they are.
store_test_() ->
    {setup, fun folder/0, fun(Dir) -> ok = file:del_dir_r(Dir) end, fun(Dir) ->
        ?_test(begin
            {ok, []} = sderl_prof_live_store:open(Dir),
            Ended = profile(~"0a", ended),
            [ok = sderl_prof_live_store:write(Dir, P) || P <- [Ended, profile(~"0b", running)]],
            ok = file:write_file(sderl_prof_live_store:samples(Dir, ~"0a"), <<0:8000>>),
            Others = [filename:join(Dir, Name) || Name <- ["other", "broken", "0c"]],
            [ok = filelib:ensure_path(Folder) || Folder <- Others],
            [Other, Broken, Renamed] = [filename:join(Folder, "profile.json") || Folder <- Others],
            ok = file:write_file(Other, ~B|{"id":"other"}|),
            ok = file:write_file(Broken, ~"{"),
            ok = file:write_file(Renamed, json:encode(profile(~"0d", ended))),
            {ok, Read} = sderl_prof_live_store:open(Dir),
            [#{bytes := Bytes} = First, #{id := ~"0b", state := lost}] =
                lists:sort(fun by_id/2, Read),
            ?assert(Bytes > 1000),
            ?assertEqual(Ended, First#{bytes := 0}),
            ok = sderl_prof_live_store:trim(Dir, ~"0a"),
            ?assert(sderl_prof_live_store:size(Dir, ~"0a") < 1000),
            [ok = sderl_prof_live_store:remove(Dir, ~"0a") || _ <- [1, 2]],
            {ok, Left} = sderl_prof_live_store:open(Dir),
            ?assertEqual([~"0b"], [Id || #{id := Id} <- Left]),
            ?assertEqual({ok, ~"{"}, file:read_file(Broken))
        end)
    end}.

by_id(#{id := A}, #{id := B}) -> A =< B.

folder() ->
    Name = lists:concat(["prof-live-", os:getpid(), "-", erlang:unique_integer([positive])]),
    filename:join(filename:basedir(user_cache, "sderl"), Name).

profile(Id, State) ->
    #{id => Id, kind => messages, on => #{~"group" => ~"shop"}, nodes => [~"a@host", ~"b@host"],
      who => ~"änn", at => 1, seconds => 10, mib => 32, modules => [], state => State, began => 2,
      ended_at => null, dear => false, stopped => true, bytes => 0, book => ~"recording/book",
      costs => [#{node => ~"a@host", events_s => 1.5, bytes_s => 2.5, event_ns => 3.5,
                  cores => 0.5, full => false}],
      problems => [#{node => ~"b@host", why => ~"gone"}], why => null}.
