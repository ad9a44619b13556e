%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_live_steps).
-moduledoc """
Profiles of running nodes, started from another node as by its dashboard: their results, what is
refused, and what is left when that node dies. It runs on the node that profiles.
""".

-export([play/3]).

-include_lib("stdlib/include/assert.hrl").

-define(WAIT_MS, 120_000).

-doc "Of a node with this project, and of one with nothing but OTP.".
-spec play(node(), node(), file:filename()) -> ok.
play(Node, Stock, Dir) ->
    Here = self(),
    Ended = fun(Profile) -> Here ! {ended, Profile} end,
    Settings = #{dir => Dir, most_bytes => 200_000_000, connect => fun connect/1,
                 may_load => fun() -> false end, ended => Ended},
    {ok, Server} = sderl_prof_live:start(Settings),
    ok = nothing_loaded(Node, Stock),
    Kept = stopped(Node),
    ok = refused(Node),
    ok = sderl_prof_live:stop(),
    false = is_process_alive(Server),
    ok = no_folder(),
    {ok, Again} = sderl_prof_live:start(Settings#{may_load := fun() -> true end}),
    %% The profiles of before are still there.
    {ok, #{state := ended, stopped := true}} = sderl_prof_live:find(Kept),
    ok = recorded(Node, Stock),
    ok = calls_recorded(Node),
    ok = taken_back(Node),
    %% The supervisor restarts it.
    Lost = server_dies(Again, Node),
    {ok, #{state := lost}} = sderl_prof_live:find(Lost),
    {error, {nothing, _} = Why} = sderl_prof_live:viewer(Lost),
    says("the monitoring node, or what keeps its profiles, ended", Why),
    #{state := lost, why := <<"the monitoring node", _/binary>>} = told_end(Lost),
    ok = sderl_prof_live:remove(Lost),
    {error, not_found} = sderl_prof_live:find(Lost),
    {error, enoent} = file:list_dir(filename:join(Dir, binary_to_list(Lost))),
    sderl_prof_live:stop().

connect(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> {error, "cannot be connected"}
    end.

request(Nodes, More) ->
    maps:merge(#{kind => sampling, on => #{nodes => []}, who => ~"ann", seconds => 1, mib => 16,
                 modules => [], nodes => [{atom_to_binary(N), N} || N <- Nodes]}, More).

begun(Nodes, More) ->
    Id = sderl_prof_live:new_id(),
    ok = sderl_prof_live:begin_(Id, request(Nodes, More)),
    Id.

%% Waits until the profile is in this state; one that has failed is an error at once.
in_state(State, Id) ->
    ok = sderl_fleet:await(fun() ->
        {ok, #{state := Now} = Profile} = sderl_prof_live:find(Id),
        Now =:= failed andalso State =/= failed andalso error(Profile),
        Now =:= State andalso (State =/= running orelse is_begun(Profile))
    end, ?WAIT_MS),
    {ok, Profile} = sderl_prof_live:find(Id),
    Profile.

%% A confirmed recording is `running` a moment before it has begun.
is_begun(#{began := At}) -> is_integer(At).

told_end(Id) ->
    receive {ended, #{id := Id} = Profile} -> Profile after ?WAIT_MS -> error({not_told, Id}) end.

says(Part, Why) ->
    Text = unicode:characters_to_list(sderl_prof_live:format_error(Why)),
    ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Part)}).

%% ---------------------------------------------------------------- steps

%% A node that lacks the modules is a problem, and gets none; the other one is sampled.
nothing_loaded(Node, Stock) ->
    false = erpc:call(Stock, erlang, module_loaded, [sderl_prof_sampler]),
    Id = begun([Node, Stock], #{}),
    #{problems := [#{node := Lacks, why := Why}], bytes := Bytes} = in_state(ended, Id),
    Lacks = atom_to_binary(Stock),
    ?assertMatch({_, _}, binary:match(Why, ~"no sderl_prof of this version")),
    ?assert(Bytes > 0),
    false = erpc:call(Stock, erlang, module_loaded, [sderl_prof_sampler]),
    #{state := ended} = told_end(Id),
    {ok, sampling, Viewer} = sderl_prof_live:viewer(Id),
    %% A second call returns the same viewer.
    {ok, sampling, Viewer} = sderl_prof_live:viewer(Id),
    {ok, #{nodes := [#{node := Sampled}]}} = sderl_prof_viewer:ask(Viewer, about),
    Sampled = atom_to_binary(Node),
    ok = sderl_prof_live:remove(Id),
    false = is_process_alive(element(1, Viewer)),
    ok.

stopped(Node) ->
    Id = begun([Node], #{seconds => 600}),
    #{} = in_state(running, Id),
    {error, {busy, _, Id} = Busy} = sderl_prof_live:check(request([Node], #{})),
    says("is being profiled", Busy),
    {error, runs} = sderl_prof_live:remove(Id),
    {error, not_ready} = sderl_prof_live:confirm(Id, true),
    {error, {nothing, _}} = sderl_prof_live:viewer(Id),
    ok = sderl_prof_live:stop(Id),
    #{stopped := true} = in_state(ended, Id),
    {error, not_running} = sderl_prof_live:stop(Id),
    {ok, sampling, _} = sderl_prof_live:viewer(Id),
    #{profiles := [#{id := Id}], bytes := Bytes} = sderl_prof_live:list(),
    ?assert(Bytes > 0),
    Id.

refused(Node) ->
    [begin
         {error, Why} = sderl_prof_live:check(request([Node], More)),
         says(Part, Why)
     end || {More, Part} <- [
         {#{seconds => 601}, "from 1 to 600"},
         {#{kind => messages, seconds => 61}, "from 1 to 60"},
         {#{kind => messages, mib => 257}, "from 16 to 256"},
         {#{kind => messages, mib => 200}, "delete some"},
         {#{kind => calls}, "modules is missing"},
         {#{modules => [~"lists"]}, "belongs to calls"}
     ]],
    Many = [{integer_to_binary(I), Node} || I <- lists:seq(1, 65)],
    {error, {request, {too_many_nodes, sampling, 65}}} =
        sderl_prof_live:check(request([], #{nodes => Many})),
    %% A module that does not exist fails, and creates no atom.
    Module = <<"no_module_", (sderl_prof_live:new_id())/binary>>,
    Id = begun([Node], #{kind => calls, modules => [Module]}),
    #{why := Why} = in_state(failed, Id),
    ?assertMatch({_, _}, binary:match(Why, <<"none of the nodes has a module ", Module/binary>>)),
    ?assertError(badarg, binary_to_existing_atom(Module)),
    ok = sderl_prof_live:remove(Id),
    Nobody = begun(['nobody@127.0.0.1'], #{}),
    #{problems := [#{why := ~"cannot be connected"}]} = in_state(failed, Nobody),
    sderl_prof_live:remove(Nobody).

%% With a folder that cannot be used nothing is started, and another one can be tried.
no_folder() ->
    {error, {folder, _, _} = Folder} =
        sderl_prof_live:start(#{dir => filename:join(code:which(?MODULE), "x")}),
    says("cannot be used", Folder),
    undefined = whereis(sderl_prof_live_sup),
    ok.

%% Two nodes, one of them without this project, as one recording.
recorded(Node, Stock) ->
    Id = begun([Node, Stock], #{kind => messages, seconds => 60}),
    #{costs := [_, _], dear := false, problems := []} = in_state(ready, Id),
    ok = sderl_prof_live:confirm(Id, false),
    #{} = in_state(running, Id),
    Echo = spawn(Stock, fun() -> ok end),
    [erpc:call(Node, erlang, send, [Echo, hello]) || _ <- lists:seq(1, 10)],
    ok = sderl_prof_live:stop(Id),
    #{problems := [], book := ~"book"} = told_end(Id),
    {ok, messages, Viewer} = sderl_prof_live:viewer(Id),
    {ok, #{nodes := [_, _], has_messages := true}} = sderl_prof_viewer:ask(Viewer, about),
    {ok, #{rows := [_ | _]}} = sderl_prof_viewer:ask(Viewer, {tree, #{limit => 5}}),
    %% Nothing of it is left on the nodes.
    There = "/tmp/sderl-prof-" ++ binary_to_list(Id) ++ "*",
    [[] = erpc:call(N, filelib, wildcard, [There]) || N <- [Node, Stock]],
    ok = sderl_prof_live:remove(Id).

%% One node is shown as such, with the functions of a module that it has.
calls_recorded(Node) ->
    Id = begun([Node], #{kind => calls, modules => [~"lists"], seconds => 60}),
    #{costs := [_]} = in_state(ready, Id),
    ok = sderl_prof_live:confirm(Id, false),
    #{} = in_state(running, Id),
    _ = [erpc:call(Node, lists, seq, [1, 10]) || _ <- lists:seq(1, 10)],
    ok = sderl_prof_live:stop(Id),
    Book = <<(atom_to_binary(Node))/binary, "/book">>,
    #{problems := [], book := Book} = told_end(Id),
    {ok, calls, Viewer} = sderl_prof_live:viewer(Id),
    {ok, #{nodes := [], has_calls := true}} = sderl_prof_viewer:ask(Viewer, about),
    sderl_prof_live:remove(Id).

%% Cancelled after the trial has shown the cost.
taken_back(Node) ->
    Id = begun([Node], #{kind => concurrency}),
    #{costs := [_]} = in_state(ready, Id),
    ok = sderl_prof_live:stop(Id),
    #{state := failed, stopped := true, began := null} = told_end(Id),
    [] = erpc:call(Node, filelib, wildcard, ["/tmp/sderl-prof-" ++ binary_to_list(Id) ++ "*"]),
    ok = sderl_prof_live:remove(Id).

%% When the server here dies, the sampler on the node ends.
server_dies(Server, Node) ->
    Id = begun([Node], #{seconds => 600}),
    #{} = in_state(running, Id),
    [_ | _] = samplers(Node),
    Monitor = monitor(process, Server),
    true = exit(Server, kill),
    receive {'DOWN', Monitor, process, _, killed} -> ok end,
    ok = sderl_fleet:await(fun() ->
        samplers(Node) =:= [] andalso whereis(sderl_prof_live) =/= undefined
    end, ?WAIT_MS),
    Id.

samplers(Node) ->
    [Pid || Pid <- erpc:call(Node, erlang, processes, []),
            {_, Stack} <- [erpc:call(Node, erlang, process_info, [Pid, current_stacktrace])],
            lists:keymember(sderl_prof_sampler, 1, Stack)].
