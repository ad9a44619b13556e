%% SPDX-License-Identifier: Apache-2.0
-module(sderl_apps_tests).
-moduledoc """
Which application may know which, and which folder within an application. It is here because
`sderl_cli` is above all others; the rooms of the library are in `sderl_architecture_tests`.

A module knows another when its code has the other's name anywhere: in a call, a type, or as an
atom that another node is asked to call. So nothing is hidden behind a macro.

No modules call each other in a circle, and none has more than 500 lines.
""".

-include_lib("eunit/include/eunit.hrl").

%% Nothing knows sderl_cli and sderl_papers; what these offer is found by sderl_catalogue.
allowed() ->
    #{
        sderl => [],
        sderl_terminal => [],
        sderl_fleet => [],
        sderl_model => [sderl],
        sderl_mon => [sderl],
        sderl_alarms => [sderl_mon],
        sderl_actions => [sderl_mon],
        sderl_web => [sderl_mon, sderl_alarms, sderl_actions],
        sderl_chaos => [sderl, sderl_fleet],
        %% Which calls of the library it records.
        sderl_prof => [sderl],
        sderl_ops => [sderl, sderl_terminal],
        sderl_bench => [
            sderl,
            sderl_terminal,
            sderl_fleet,
            sderl_model,
            sderl_mon,
            sderl_alarms,
            sderl_web,
            sderl_ops,
            sderl_prof
        ],
        sderl_papers => [sderl, sderl_terminal, sderl_fleet, sderl_chaos, sderl_prof, sderl_bench],
        sderl_demo => [sderl, sderl_terminal, sderl_fleet, sderl_mon, sderl_alarms,
                       sderl_actions, sderl_web, sderl_bench],
        sderl_cli => [
            sderl,
            sderl_terminal,
            sderl_fleet,
            sderl_mon,
            sderl_alarms,
            sderl_actions,
            sderl_web,
            sderl_chaos,
            sderl_bench,
            sderl_prof,
            sderl_demo
        ]
    }.

%% The modules of the library that other applications may know. `sderl_model` knows more: it runs
%% the core itself.
of_library() ->
    [
        s_group,
        sderl_attr,
        sderl_config,
        sderl_dist,
        sderl_event,
        sderl_gateway,
        sderl_observed,
        sderl_pattern,
        sderl_place,
        sderl_plan,
        sderl_plan_apply,
        sderl_plan_draw,
        sderl_resolver,
        sderl_route,
        sderl_subs,
        %% Types of options, the clock, and texts as they can be shown.
        sderl_options,
        sderl_clock,
        sderl_visible
    ].

%% What these modules know all the same; one that no longer holds is a mistake.
within_library() ->
    [
        %% Whether the library runs on a node: the process of that name.
        {sderl_mon_probe_library, sderl_sup},
        {sderl_mon_stock, sderl_sup},
        {sderl_prof_station, sderl_sup},
        %% Attributes of the machine, where the library does not run.
        {sderl_bench_machine, sderl_attr_builtin},
        {sderl_bench_vm_host, sderl_attr_builtin},
        %% Benchmarks measure what no program sees: the process of a group, which is killed or
        %% asked alone; messages by their first element; ways by their length; choices that are
        %% forgotten, and what one process sends.
        {sderl_bench_cluster_worker, sderl_dir},
        {sderl_bench_cluster_worker, sderl_group},
        {sderl_bench_cluster_worker, sderl_heart},
        {sderl_bench_names_worker, sderl_dir},
        {sderl_bench_placement_worker, sderl_attr_server},
        {sderl_bench_placement_worker, sderl_place_pending},
        {sderl_bench_plan, sderl_router}
    ].

%% The probe and the recorder run on nodes that have the library; on their own nodes sderl_mon and
%% sderl_prof must not start it. (sderl_prof plans a recording by its code.) A benchmark runs other
%% registries on nodes that it starts with them, and a plugin is started only where its application
%% runs.
elsewhere() ->
    [{sderl_mon, sderl}, {sderl_prof, sderl}, {sderl_bench, khepri}, {sderl_actions, ranch}].

%% Started and not called: Cowboy and httpc call it where a dashboard is served over TLS; of
%% runtime_tools the profiler needs the driver.
started_only() ->
    [{sderl_web, ssl}, {sderl_cli, ssl}, {sderl_ops, ssl}, {sderl_prof, runtime_tools}].

%% Modules in `src` itself may know all folders of their application.
folders() ->
    #{
        sderl_cli => #{
            base => [],
            chaos => [base],
            profiling => [base],
            monitoring => [base, profiling]
        },
        sderl_model => #{
            semantics => [],
            linear => [],
            plant => [],
            simulator => [plant]
        },
        sderl_bench => #{
            harness => [statistics],
            registry => [harness],
            groups => [harness, registry],
            place => [harness, registry],
            route => [harness, registry],
            faults => [harness],
            simulated => [harness],
            monitoring => [harness],
            deployment => [harness],
            profiling => [harness, vm, registry],
            statistics => [],
            vm => [harness, statistics],
            tables => [harness, statistics, vm]
        },
        sderl_ops => #{
            file => [],
            core => [file],
            host => [file, core],
            store => [core],
            wire => [file],
            members => [file, core, store, wire],
            server => [file, core, host, store, wire, members],
            import => [file, server],
            kubernetes => [file, core],
            command => [file, wire, members, kubernetes],
            simulated => [core]
        },
        sderl_papers => #{
            orbit => [],
            debench => [],
            aco => ['aco/colony', 'aco/cluster'],
            'aco/cluster' => ['aco/colony'],
            'aco/colony' => [],
            im => [],
            vm => [orbit, im],
            delegation => [],
            city => [vm],
            claims => [orbit, debench, aco, 'aco/colony', 'aco/cluster', im, vm, city],
            report => [claims]
        }
    }.

%% A module has one job, and at most so many lines, but for these: the public one is documents for
%% the most part.
-define(MOST_LINES, 500).
long() -> [s_group].

apps_test_() ->
    {setup, fun all_modules/0, fun(Modules) ->
        Known = known(Modules),
        [
            {"every application has a row",
             ?_assertEqual([], applications(Modules) -- maps:keys(allowed()))},
            {"applications know the allowed ones", ?_assertEqual([], forbidden(Known, allowed()))},
            {"other applications know what the library offers",
             ?_assertEqual([Edge || {Module, _} = Edge <- lists:sort(within_library()),
                                    is_map_key(Module, Modules)],
                           private(Known))},
            {"no circle of applications", ?_assertEqual([], circles(maps:to_list(allowed())))},
            {"no circle of modules", ?_assertEqual([], circles(calls(Modules)))},
            {"no module is too long", ?_assertEqual([], too_long(Modules))},
            {"descriptions name what is called", ?_assertEqual([], undeclared(Modules, Known))},
            {"descriptions name nothing else", ?_assertEqual([], unneeded(Modules, Known))},
            {"what applications offer is theirs", ?_assertEqual([], foreign_entries(Modules))},
            [
                {atom_to_list(Application) ++ ": folders",
                 ?_test(rooms(Application, Rows, Modules))}
             || Application := Rows <- folders(), lists:member(Application, applications(Modules))
            ]
        ]
    end}.

%% ---------------------------------------------------------------- what there is

%% Each module of the project: its application, folder and lines, the modules of the project that it
%% knows, and the modules that it calls.
all_modules() ->
    Files = [
        File
     || Path <- code:get_path(),
        filelib:wildcard("sderl*.app", Path) =/= [],
        File <- filelib:wildcard(filename:join(Path, "*.beam"))
    ],
    Own = #{list_to_atom(filename:basename(File, ".beam")) => [] || File <- Files},
    #{Module => Facts || File <- Files, {Module, Facts} <- [facts(File, Own)]}.

facts(File, Own) ->
    {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}, {compile_info, Info}]}} =
        beam_lib:chunks(File, [abstract_code, compile_info]),
    Code = [Form || Form <- Forms, not is_text(Form)],
    Source = proplists:get_value(source, Info),
    {ok, Text} = file:read_file(Source),
    {Module, #{
        application => list_to_atom(filename:basename(filename:dirname(filename:dirname(File)))),
        folder => folder(filename:split(Source)),
        lines => length(binary:matches(Text, ~"\n")),
        knows => [M || M <- lists:usort(atoms(Code, [])), is_map_key(M, Own), M =/= Module],
        calls => lists:usort(called(Code, []))
    }}.

is_text({attribute, _, Name, _}) -> lists:member(Name, [file, module, doc, moduledoc]);
is_text(_) -> false.

folder(Path) ->
    case lists:dropwhile(fun(Part) -> Part =/= "src" end, lists:nthtail(length(Path) - 5, Path)) of
        ["src", _] -> src;
        ["src" | Folders] -> list_to_atom(filename:join(lists:droplast(Folders)))
    end.

%% Atoms of the code, and those that attributes such as -behaviour and -import have bare.
atoms({atom, _, Atom}, Found) when is_atom(Atom) -> [Atom | Found];
atoms({attribute, _, _, Atom}, Found) when is_atom(Atom) -> [Atom | Found];
atoms({attribute, _, import, {Atom, _}}, Found) -> [Atom | Found];
atoms(Tuple, Found) when is_tuple(Tuple) -> atoms(tuple_to_list(Tuple), Found);
atoms([Head | Tail], Found) -> atoms(Tail, atoms(Head, Found));
atoms(_, Found) -> Found.

%% What is imported is called by its own name.
called({remote, _, {atom, _, Module}, _}, Found) -> [Module | Found];
called({function, {atom, _, Module}, _, _}, Found) -> [Module | Found];
called({attribute, _, import, {Module, _}}, Found) -> [Module | Found];
called(Tuple, Found) when is_tuple(Tuple) -> called(tuple_to_list(Tuple), Found);
called([Head | Tail], Found) -> called(Tail, called(Head, Found));
called(_, Found) -> Found.

applications(Modules) ->
    lists:usort([Application || _ := #{application := Application} <- Modules]).

%% {Application, Module, Other application, Its module}
known(Modules) ->
    [
        {Application, Module, Other, Name}
     || Module := #{application := Application, knows := Names} <- Modules,
        Name <- Names,
        #{application := Other} <- [map_get(Name, Modules)],
        Other =/= Application
    ].

%% ---------------------------------------------------------------- rules

forbidden(Known, Allowed) ->
    [Edge || {From, _, To, _} = Edge <- Known, not lists:member(To, map_get(From, Allowed))].

private(Known) ->
    lists:sort([{Module, Name} || {From, Module, sderl, Name} <- Known, From =/= sderl_model,
                                  not lists:member(Name, of_library())]).

circles(Rows) ->
    Graph = digraph:new(),
    _ = [digraph:add_vertex(Graph, From) || {From, _} <- Rows],
    _ = [digraph:add_edge(Graph, From, To) || {From, Tos} <- Rows, To <- Tos],
    Circles = [Circle || [_, _ | _] = Circle <- digraph_utils:strong_components(Graph)],
    true = digraph:delete(Graph),
    Circles.

calls(Modules) -> [{Module, Calls} || Module := #{calls := Calls} <- Modules].

too_long(Modules) ->
    [{Module, Lines} || Module := #{lines := Lines} <- Modules, Lines > ?MOST_LINES,
                        not lists:member(Module, long())].

declared(Application) ->
    _ = application:load(Application),
    {ok, Named} = application:get_key(Application, applications),
    Named.

used(Modules, Known) ->
    Own = [{From, To} || {From, _, To, _} <- Known] -- elsewhere(),
    Called = [
        {Application, Name}
     || _ := #{application := Application, calls := Names} <- Modules,
        Name <- Names,
        not is_map_key(Name, Modules)
    ],
    Home = homes(),
    Others = [
        {Application, Other}
     || {Application, Name} <- Called, #{Name := Other} <- [Home]
    ],
    lists:usort(Own ++ Others ++ started_only()) -- elsewhere().

%% The application of each module on the code path; the first one counts. What is not there belongs
%% to what a user brings along, such as telemetry.
homes() ->
    #{list_to_atom(filename:rootname(File)) => list_to_atom(Application)
      || Path <- lists:reverse(code:get_path()),
         [Application | _] <- [string:split(filename:basename(filename:dirname(Path)), "-")],
         Application =/= "erts",
         {ok, Files} <- [file:list_dir(Path)],
         File <- Files,
         filename:extension(File) =:= ".beam"}.

undeclared(Modules, Known) ->
    [
        Edge
     || {From, To} = Edge <- used(Modules, Known),
        lists:member(From, applications(Modules)),
        not lists:member(To, declared(From))
    ].

unneeded(Modules, Known) ->
    Used = used(Modules, Known),
    [
        {From, To}
     || From <- applications(Modules),
        To <- declared(From) -- [kernel, stdlib, telemetry],
        not lists:member({From, To}, Used)
    ].

foreign_entries(Modules) ->
    Behaviours = #{
        commands => {run, 1},
        experiments => {check, 1},
        workloads => {cpu_us, 1},
        vm_programs => {settings, 2},
        table_kinds => {variants, 0}
    },
    [
        {Application, Key, Name}
     || Application <- applications(Modules),
        Key := {Function, Arity} <- Behaviours,
        {Name, Module} <- entries(Application, Key),
        maps:get(application, maps:get(Module, Modules, #{}), none) =/= Application orelse
            not lists:member({Function, Arity}, Module:module_info(exports))
    ].

entries(Application, Key) ->
    _ = application:load(Application),
    application:get_env(Application, Key, []).

rooms(Application, Rows, Modules) ->
    Mine = #{M => Folder
             || M := #{application := A, folder := Folder} <- Modules, A =:= Application},
    ?assertEqual([], lists:usort(maps:values(Mine)) -- [src | maps:keys(Rows)]),
    ?assertEqual([], maps:keys(Rows) -- maps:values(Mine)),
    ?assertEqual([], sderl_architecture:alone(Mine)),
    ?assertEqual([], circles(maps:to_list(Rows))),
    ?assertEqual([], [
        {From, Module, To, Name}
     || Module := From <- Mine,
        From =/= src,
        Name <- maps:get(knows, map_get(Module, Modules)),
        is_map_key(Name, Mine),
        To <- [map_get(Name, Mine)],
        To =/= From,
        not lists:member(To, map_get(From, Rows))
    ]).
