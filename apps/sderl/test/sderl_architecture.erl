%% What the architecture tests of the apps have in common. The folders of an app's `src` are rooms;
%% each test module says which rooms a room's modules may call.
-module(sderl_architecture).

-include_lib("eunit/include/eunit.hrl").

-export([read/1, test_rooms/2, alone/1, strong/1]).
-export_type([rooms/0, read/0]).

%% The folders that the modules of each folder may call. With `named`, a module counts as called if
%% another module has its name as an atom, which can hide a dependency from tools. Its rows {Module,
%% Named} are the exceptions; a row that no longer holds is a mistake.
-type rooms() :: #{
    allowed := #{Folder :: atom() => [Folder :: atom()]},
    named => [{module(), module()}]
}.

%% The folder of each module of an app, the calls between its modules, and which of them a module
%% has as an atom.
-type read() :: #{
    app := atom(),
    folders := #{module() => Folder :: atom()},
    calls := [{module(), module()}],
    names := [{module(), module()}]
}.

-spec read(atom()) -> read().
read(App) ->
    Ebin = filename:join(code:lib_dir(App), "ebin"),
    Files = filelib:wildcard(filename:join(Ebin, "*.beam")),
    Modules = [list_to_atom(filename:basename(File, ".beam")) || File <- Files],
    Folders = #{M => folder(M) || M <- Modules},
    #{
        app => App,
        folders => Folders,
        calls => calls(Ebin, Folders),
        names => names(App, Files, Folders)
    }.

folder(Module) ->
    Source = proplists:get_value(source, Module:module_info(compile)),
    list_to_atom(filename:basename(filename:dirname(Source))).

calls(Ebin, Folders) ->
    {ok, Xref} = xref:start([{xref_mode, modules}]),
    try
        ok = xref:set_default(Xref, [{verbose, false}, {warnings, false}]),
        {ok, _} = xref:add_directory(Xref, Ebin),
        {ok, Edges} = xref:q(Xref, "ME"),
        [E || {A, B} = E <- Edges, A =/= B, is_map_key(A, Folders), is_map_key(B, Folders)]
    after
        xref:stop(Xref)
    end.

%% (The app's own name is its key in the environment, and a tag of messages.)
names(App, Files, Folders) ->
    [
        {Module, Named}
     || File <- Files,
        {ok, {Module, [{atoms, Atoms}]}} <- [beam_lib:chunks(File, [atoms])],
        {_, Named} <- Atoms,
        Named =/= Module,
        Named =/= App,
        is_map_key(Named, Folders)
    ].

%% Tests to be given to EUnit.
-spec test_rooms(rooms(), read()) -> [term()].
test_rooms(#{allowed := Allowed} = Rooms, Read) ->
    #{folders := Folders, calls := Calls} = Read,
    Rows = lists:sort(maps:keys(Allowed)),
    Ways = [{From, To} || From := Tos <- Allowed, To <- Tos],
    [
        {"every folder has a row", ?_assertEqual(Rows, lists:usort(maps:values(Folders)))},
        {"no folder holds one module alone", ?_assertEqual([], alone(Folders))},
        {"calls go the allowed ways", ?_assertEqual([], wrong(Allowed, Folders, Calls))},
        {"no folders call each other in a circle", ?_assertEqual([], strong(Ways))},
        {"no modules call each other in a circle", ?_assertEqual([], strong(Calls))}
        | [
            {"no name hides a call", ?_assertEqual(lists:sort(Named), hidden(Allowed, Read))}
         || #{named := Named} <- [Rooms]
        ]
    ].

%% Folders with one module. `src` itself may have one: where the app is entered.
-spec alone(#{module() => Folder :: atom()}) -> [Folder :: atom()].
alone(Folders) ->
    Rooms = maps:groups_from_list(fun(M) -> map_get(M, Folders) end, maps:keys(Folders)),
    [Folder || Folder := [_] <- Rooms, Folder =/= src].

wrong(Allowed, Folders, Calls) ->
    [
        {From, Caller, calls, To, Callee}
     || {Caller, Callee} <- Calls,
        From <- [map_get(Caller, Folders)],
        To <- [map_get(Callee, Folders)],
        From =/= To,
        not lists:member(To, map_get(From, Allowed))
    ].

hidden(Allowed, #{folders := Folders, names := Names}) ->
    lists:sort([{Module, Named} || {_, Module, calls, _, Named} <- wrong(Allowed, Folders, Names)]).

%% The sets of vertices that lead to each other.
-spec strong([{Vertex, Vertex}]) -> [[Vertex]].
strong(Edges) ->
    Graph = digraph:new(),
    _ = [digraph:add_vertex(Graph, V) || {A, B} <- Edges, V <- [A, B]],
    _ = [digraph:add_edge(Graph, A, B) || {A, B} <- Edges],
    Circles = [lists:sort(C) || [_, _ | _] = C <- digraph_utils:strong_components(Graph)],
    digraph:delete(Graph),
    lists:sort(Circles).
