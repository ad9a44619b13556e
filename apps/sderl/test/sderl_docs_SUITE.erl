%% SPDX-License-Identifier: Apache-2.0
-module(sderl_docs_SUITE).

%% What the documents say is so: their sessions give the output shown, functions and files they
%% name exist, tables are those of the code.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(CALL, 90_000).
-define(SOON, 60_000).

%% Modules of libraries that are not here.
-define(FOREIGN, [syn, telemetry, horde, phoenix]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [links, functions, configuration, events, attributes | sessions()].

sessions() ->
    [readme, getting_started, from_global_and_syn, release, configuration_sessions, events_sessions,
     operations, majority, designing_groups, semantics, routing, follow, placement, realtime,
     reliable_applications, monitoring, alarms, metrics].

init_per_suite(Config) ->
    case filelib:is_regular(filename:join(root(), "README.md")) of
        true -> true = code:add_pathz(examples()), Config;
        false -> {skip, "the documents are not in this tree"}
    end.

end_per_suite(_) -> ok.

%% ---------------------------------------------------------------- text

links(_) ->
    Missing = [{Page, Link}
               || Page <- pages(), Link <- sderl_docs_text:links(read(Page)),
                  not filelib:is_file(filename:join([root(), filename:dirname(Page), Link]))],
    ?assertEqual([], Missing).

functions(_) ->
    Missing = [{Page, M, F, A}
               || Page <- pages(), {M, F, A} <- sderl_docs_text:functions(read(Page)),
                  not lists:member(M, ?FOREIGN), not elsewhere(M), not exported(M, F, A)],
    ?assertEqual([], Missing).

%% Of an app that is not built here: the oldest OTP has no more than the library.
elsewhere(M) ->
    code:which(M) =:= non_existing
        andalso filelib:wildcard(lists:concat(["apps/*/src/**/", M, ".erl"]), root()) =/= [].

exported(M, F, A) ->
    code:ensure_loaded(M) =:= {module, M}
        andalso (erlang:function_exported(M, F, A) orelse erlang:is_builtin(M, F, A)).

%% Each option is in the table, with its default.
configuration(_) ->
    {ok, Config} = sderl_config:parse([], undefined, node()),
    Options = maps:remove(warnings, maps:remove(other_groups, Config)),
    Expected = [{s_groups, []} | maps:to_list(maps:remove(groups, Options))],
    Rows = re:run(read("docs/configuration.md"), "^\\| `([a-z_]+)` \\|[^|]*\\| `([^`]+)` \\|",
                  [global, multiline, {capture, all_but_first, list}, unicode]),
    {match, Table} = Rows,
    ?assertEqual(lists:sort(Expected), lists:sort([{list_to_atom(K), term(V)} || [K, V] <- Table])).

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% Each event is in the table, with its level and telemetry's name, and no other.
events(_) ->
    {match, Rows} = re:run(read("docs/events.md"),
                           "^\\| `([a-z_]+)` \\| ([a-z]+) \\| `([^`]+)` \\|",
                           [global, multiline, {capture, all_but_first, list}, unicode]),
    ?assertEqual(lists:sort(sderl_event:events()),
                 lists:sort([list_to_tuple([term(T) || T <- Row]) || Row <- Rows])).

%% Each built-in attribute is in the table, with its unit and kind.
attributes(_) ->
    {match, Rows} = re:run(read("docs/placement.md"),
                           "^\\| `([a-z0-9_]+)` \\| `([^`]+)` \\| (automatic|dynamic) \\|",
                           [global, multiline, {capture, all_but_first, list}, unicode]),
    ?assertEqual([[atom_to_list(N), Unit, atom_to_list(element(1, Spec))]
                  || {N, Spec, Unit} <- sderl_attr_builtin:all()], Rows).

%% ---------------------------------------------------------------- sessions

readme(_) -> run("README.md").
getting_started(_) -> run("docs/getting-started.md").
from_global_and_syn(_) -> run("docs/from-global-and-syn.md").
release(_) -> run("docs/release.md").
configuration_sessions(_) -> run("docs/configuration.md").
events_sessions(_) -> run("docs/events.md").
operations(_) -> run("docs/operations.md").
majority(_) -> run("docs/majority.md").
designing_groups(_) -> run("docs/designing-groups.md").
semantics(_) -> run("docs/semantics.md").
routing(_) -> run("docs/routing.md").
follow(_) -> run("docs/follow.md").
placement(_) -> run("docs/placement.md").
realtime(_) -> run("docs/realtime.md").
%% The messenger is in the tools, which the oldest OTP has not.
reliable_applications(_) ->
    case code:which(sderl_im) of
        non_existing -> {skip, "the messenger is not built here"};
        _ -> run("docs/reliable-applications.md")
    end.

%% So is the monitoring.
monitoring(_) ->
    case code:which(sderl_mon) of
        non_existing -> {skip, "the monitoring is not built here"};
        _ -> run("docs/monitoring.md")
    end.

metrics(_) ->
    case code:which(sderl_mon) of
        non_existing -> {skip, "the monitoring is not built here"};
        _ -> run("docs/metrics.md")
    end.

alarms(_) ->
    case code:which(sderl_alarms) of
        non_existing -> {skip, "the alarms are not built here"};
        _ -> run("docs/alarms.md")
    end.

run(Page) ->
    Steps = sderl_docs_text:steps(read(Page)),
    {Fleet, Wrong} = lists:foldl(fun step/2, {none, []}, Steps),
    ?assert(length(Steps) > 3),
    stop(Fleet),
    ?assertEqual([], lists:reverse(Wrong)).

step({example, Name}, Acc) ->
    {ok, [Config]} =
        file:consult(filename:join([root(), "docs", "examples", Name, "config", "sys.config.src"])),
    Env = [{App, K, V} || {App, Pairs} <- Config, App =/= kernel, {K, V} <- Pairs],
    Paths = [examples()
             | [D || D <- code:get_path(), string:prefix(D, code:lib_dir()) =:= nomatch]],
    Nodes = lists:usort([N || {sderl, s_groups, Groups} <- Env, {_, _, Ns} <- Groups, N <- Ns]),
    Families = maps:groups_from_list(fun(N) ->
        string:trim(hd(string:split(atom_to_list(N), "@")), trailing, "0123456789")
    end, Nodes),
    step({fleet, #{families => [#{name => F, count => length(Ns), apps => [sderl, Name], env => Env,
                                  paths => Paths}
                                || F := Ns <- Families]}}, Acc);
step({file, Name, Text}, {Fleet, Wrong}) ->
    case string:find(read(filename:join("docs", Name)), Text) of
        nomatch -> {Fleet, [{not_in, Name, Text} | Wrong]};
        _ -> {Fleet, Wrong}
    end;
step({fleet, Plan}, {Old, Wrong}) ->
    stop(Old),
    {ok, Fleet} = sderl_fleet:start(Plan#{tag => ""}),
    has_groups(Plan) andalso stands(Fleet),
    {Fleet, Wrong};
step({config, Text}, {Fleet, Wrong}) ->
    [Config] = [term(Text1) || Text1 <- [string:trim(Text, trailing, ".\n ")]],
    Sderl = proplists:get_value(sderl, Config, []),
    Kernel = proplists:get_value(s_groups, proplists:get_value(kernel, Config, [])),
    case sderl_config:parse(Sderl, Kernel, 'shop1@127.0.0.1') of
        {ok, #{warnings := []}} -> {Fleet, Wrong};
        Other -> {Fleet, [{config, Other} | Wrong]}
    end;
step({iex, _, _, _, _} = Step, {Fleet, Wrong}) ->
    case elixir(Fleet) of
        true -> expression(Step, {Fleet, Wrong});
        false -> {Fleet, Wrong}
    end;
step({erl, _, _, _, _} = Step, Acc) -> expression(Step, Acc);
step({restart, Node}, {Fleet, Wrong}) ->
    {ok, Node} = sderl_fleet:restart(Fleet, Node),
    {Fleet, Wrong};
step({Do, Node}, {Fleet, Wrong}) ->
    ok = sderl_fleet:Do(Fleet, Node),
    {Fleet, Wrong}.

%% An example has its groups in its own configuration. What is sent before they stand reaches fewer.
has_groups(#{s_groups := [_ | _]}) -> true;
has_groups(#{families := Families}) ->
    lists:any(fun(F) -> lists:keymember(s_groups, 2, maps:get(env, F, [])) end, Families);
has_groups(_) -> false.

expression({Shell, Node, Text, Expected, How}, {Fleet, Wrong}) ->
    Ask = fun() when Node =:= none -> sderl_docs_shell:run_here(Text);
             () -> sderl_fleet:call(Fleet, Node, sderl_docs_shell, run, [Shell, Text], ?CALL) end,
    Check = fun(Output) -> sderl_docs_text:expect(Expected, Output) orelse Output end,
    Seen = case How =:= once andalso not is_read(Text) of
        true -> Check(Ask());
        false -> case sderl_fleet:await(fun() -> Check(Ask()) end, ?SOON) of
                     ok -> true;
                     {error, {timeout, Last}} -> Last
                 end
    end,
    case Seen of
        true -> {Fleet, Wrong};
        Output ->
            {Fleet, [#{node => Node, said => Text, expected => Expected, got => Output} | Wrong]}
    end.

%% What depends on links or on what gateways have told may be a moment late.
is_read(Text) ->
    lists:any(fun(P) -> string:prefix(Text, P) =/= nomatch end,
              ["nodes()", "lists:sort(nodes())", "Node.list", "s_group:s_groups()",
               "s_group:whereis_name", ":s_group.whereis_name"]).

%% The groups stand, and every member knows of all groups that routes lead to: until a gateway does,
%% it has nowhere to pass a message on to.
stands(Fleet) ->
    Own = [{N, [G || {G, _} <- sderl_fleet:call(Fleet, N, s_group, own_s_groups, [], ?CALL)]}
           || N <- sderl_fleet:nodes(Fleet)],
    [ok = sderl_fleet:call(Fleet, N, s_group, await, [G, ?SOON], ?CALL)
     || {N, Groups} <- Own, G <- Groups],
    Reached = [{N, joined(Groups, [Gs || {_, Gs} <- Own])} || {N, [_ | _] = Groups} <- Own],
    ok = sderl_fleet:await(fun() -> unknown(Fleet, Reached) =:= [] end, ?SOON).

%% The groups that some others lead to: each that shares a node with one of them, and so on.
joined(Groups, All) ->
    case lists:usort(lists:append([Gs || Gs <- All, Gs -- Groups =/= Gs]) ++ Groups) of
        Groups -> Groups;
        More -> joined(More, All)
    end.

unknown(Fleet, Reached) ->
    [{N, G} || {N, Groups} <- Reached,
               Known <- [[G || {G, _} <- sderl_fleet:call(Fleet, N, sderl_route, groups, [])
                                         ++ sderl_fleet:call(Fleet, N, s_group, own_s_groups, [])]],
               G <- Groups -- Known].

stop(none) -> ok;
stop(Fleet) -> sderl_fleet:stop(Fleet).

%% ---------------------------------------------------------------- where things are

%% The Erlang examples, compiled.
examples() ->
    Ebin = filename:absname("example_ebin"),
    ok = filelib:ensure_path(Ebin),
    In = fun(Pattern) ->
        filelib:wildcard(filename:join([root(), "docs", "examples", "*", "src", Pattern]))
    end,
    [{ok, _} = compile:file(F, [{outdir, Ebin}, report]) || F <- In("*.erl")],
    [{ok, _} = file:copy(F, filename:join(Ebin, filename:basename(F, ".src")))
     || F <- In("*.app.src")],
    Ebin.

%% The sources in a build folder are links into the tree.
root() -> filename:join([code:lib_dir(sderl), "src", "..", "..", ".."]).

pages() ->
    lists:append([filelib:wildcard(Pages, root())
                  || Pages <- ["*.md", "{docs,spec,web}/*.md", "apps/*/*.md"]]).

read(Page) ->
    {ok, Text} = file:read_file(filename:join(root(), Page)),
    Text.

%% The nodes find Elixir where its program is; where there is none its sessions are left out.
elixir(Fleet) ->
    case elixir_libs() of
        [] -> false;
        Libs ->
            [ok = sderl_fleet:call(Fleet, N, code, add_pathsz, [Libs], ?CALL)
             || N <- sderl_fleet:nodes(Fleet)],
            true
    end.

elixir_libs() ->
    case os:find_executable("elixir") of
        false -> [];
        Program ->
            filelib:wildcard(filename:join([filename:dirname(real(Program)), "..", "lib", "*",
                                            "ebin"]))
    end.

real(Path) ->
    case file:read_link_all(Path) of
        {ok, Target} -> real(filename:absname(Target, filename:dirname(Path)));
        {error, _} -> Path
    end.
