%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_tests).

%% The pure parts, what docs/actions.md says, and terms of nodes as text.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- what there is

documented_test() ->
    page("actions.md", fun(Page) ->
        {match, Rows} = re:run(Page, "^\\| `([a-z_]+)` \\| (viewer|operator|admin) \\|",
                               [global, multiline, {capture, all_but_first, binary}]),
        ?assertEqual([{Name, atom_to_binary(Role)}
                      || #{name := Name, role := Role} <- sderl_actions_catalogue:all()],
                     [{Name, Role} || [Name, Role] <- Rows]),
        [_, Part] = binary:split(Page, ~"| key of `sderl_actions` |"),
        {match, Keys} = re:run(Part, "^\\| `([a-z_]+)` \\|",
                               [global, multiline, {capture, all_but_first, binary}]),
        ?assertEqual(lists:sort([atom_to_binary(Key) || {Key, _} <- sderl_actions_config:keys()]),
                     lists:sort([Key || [Key] <- Keys]))
    end).

%% The documents are not part of a release.
page(Name, Test) ->
    Root = filename:join([code:lib_dir(sderl_actions), "..", "..", "..", ".."]),
    case file:read_file(filename:join([Root, "docs", Name])) of
        {ok, Page} -> Test(Page);
        {error, enoent} -> ok
    end.

%% The plugin of docs/plugins.md compiles without a warning, is one, and gives what it says. The
%% manual of the behaviour shows the same.
plugin_test() ->
    page("plugins.md", fun(Page) ->
        {match, [Source]} = re:run(Page, "```erlang\n(-module\\(shop_plugin\\).*?)```",
                                   [dotall, {capture, all_but_first, binary}]),
        {ok, {docs_v1, _, _, _, #{~"en" := Manual}, _, _}} = code:get_doc(sderl_plugin),
        ?assertMatch({_, _}, binary:match(Manual, Source)),
        Name = lists:concat(["sderl-plugin-", os:getpid(), "-", erlang:unique_integer([positive])]),
        Dir = filename:join(os:getenv("TMPDIR", "/tmp"), Name),
        File = filename:join(Dir, "shop_plugin.erl"),
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, Source),
        Compiled = compile:file(File, [binary, return, warnings_as_errors]),
        ok = file:del_dir_r(Dir),
        {ok, Module, Code, []} = Compiled,
        {module, Module} = code:load_binary(Module, File, Code),
        try
            ?assertEqual(ok, sderl_actions_plugins:check(Module)),
            baskets = ets:new(baskets, [named_table]),
            true = ets:insert(baskets, [{1, a}, {2, b}]),
            {ok, State} = Module:start(),
            ?assertEqual({[2], State}, Module:read(State)),
            #{numbers := Numbers} = Module:about(),
            ?assertEqual(1, length(Numbers)),
            ?assertEqual({error, ~"shop does not run"}, sderl_plugin:start_info(Module))
        after
            _ = ets:whereis(baskets) =/= undefined andalso ets:delete(baskets),
            _ = code:delete(Module),
            _ = code:purge(Module)
        end
    end).

%% What a node is to run is among what is loaded into it.
runs_test() ->
    [?assertMatch({_, true}, {Name, lists:member(Module, sderl_actions_code:modules())
                              andalso erlang:function_exported(Module, Function, 1)})
     || #{name := Name, run := {Module, Function}} <- sderl_actions_catalogue:all(),
        {module, _} <- [code:ensure_loaded(Module)]],
    %% All of them, and nothing that a node would lack.
    _ = application:load(sderl_actions),
    {ok, Ours} = application:get_key(sderl_actions, modules),
    Folder = [M || M <- Ours, lists:member("node", filename:split(source(M)))],
    ?assertEqual(lists:sort(Folder), lists:sort(sderl_actions_code:modules())).

source(Module) -> proplists:get_value(source, Module:module_info(compile), "").

configuration_test() ->
    _ = application:load(sderl_mon),
    [?assertMatch({Wrong, {error, {bad_config, _}}}, {Wrong, sderl_actions_config:read([Wrong])})
     || Wrong <- [{state_dir, 7}, {audit_files, 0}, {unattended_s, 0}, {allow_expressions, yes},
                  {audit_file_bytes, 10}, {no_key, 1}]].

params_test() ->
    {ok, #{params := Params}} = sderl_actions_catalogue:find(~"processes"),
    ?assertEqual({ok, #{sort => memory, filter => ~"", limit => 20, offset => 0}},
                 sderl_actions_params:check(Params, #{})),
    [?assertMatch({Given, {error, _}}, {Given, sderl_actions_params:check(Params, Given)})
     || Given <- [#{~"sort" => ~"size"}, #{~"limit" => 0}, #{~"limit" => ~"5"}, #{~"x" => 1},
                  #{~"filter" => binary:copy(~"x", 101)}, #{~"filter" => <<255>>},
                  #{~"offset" => 1.5}, #{~"sort" => [1]}]],
    {ok, #{params := State}} = sderl_actions_catalogue:find(~"process_state"),
    {error, Missing} = sderl_actions_params:check(State, #{}),
    ?assertMatch(<<"pid is missing", _/binary>>, iolist_to_binary(Missing)).

%% ---------------------------------------------------------------- a request

-define(ROOM, 64_000_000).

request_test() ->
    {ok, Action} = sderl_actions_catalogue:find(~"log_level"),
    Asked = #{id => ~"r", action => Action, args => #{~"level" => ~"debug"},
              on => #{~"group" => ~"g"}, who => #{name => ~"anna"}, nodes => [~"a", ~"b", ~"c"]},
    Steps = [{~"a", begun, 1}, {~"b", begun, 1}, {~"a", {said, ~"{\"text\":1}"}, 2},
             {~"a", {ok, ~"{\"level\":\"debug\"}"}, 4}, {~"b", {error, ~"no"}, 5},
             {~"x", begun, 6}],
    Told = lists:foldl(fun({Id, What, Ms}, R) ->
        sderl_actions_request:told(Id, What, Ms, ?ROOM, R)
    end,
                       sderl_actions_request:new(Asked, 1000), Steps),
    ?assert(sderl_actions_request:is_running(Told)),
    Decoded = fun(R) -> json:decode(iolist_to_binary(sderl_actions_request:shown(R))) end,
    ?assertMatch(#{~"state" := ~"running", ~"nodes" := #{
        ~"a" := #{~"state" := ~"ok", ~"result" := #{~"level" := ~"debug"}, ~"ms" := 3,
                  ~"said" := [#{~"text" := 1}], ~"said_total" := 1},
        ~"b" := #{~"state" := ~"failed", ~"error" := ~"no"},
        ~"c" := #{~"state" := ~"waiting"}}}, Decoded(Told)),
    Stopped = sderl_actions_request:ended(unattended, 9, Told),
    ?assertMatch(#{~"nodes" := #{~"c" := #{~"state" := ~"stopped"}}}, Decoded(Stopped)),
    %% What comes afterwards changes nothing.
    ?assertEqual(Stopped, sderl_actions_request:told(~"c", {ok, ~"1"}, 10, ?ROOM, Stopped)),
    ?assertMatch(#{result := stopped,
                   detail := ~"1 of 3 nodes done (nobody attended it); b: no", ms := 9},
                 sderl_actions_request:summary(Stopped)),
    ?assertMatch(#{result := partly}, sderl_actions_request:summary(
        sderl_actions_request:ended(done, 9, Told))),
    #{~"nodes" := #{~"ok" := 1, ~"failed" := 1, ~"stopped" := 1}} =
        json:decode(iolist_to_binary(sderl_actions_request:listed(Stopped))).

%% A node that tells without end fills nothing.
said_test() ->
    {ok, Action} = sderl_actions_catalogue:find(~"trace_calls"),
    Asked = #{id => ~"r", action => Action, args => #{}, on => #{}, who => #{name => ~"a"},
              nodes => [~"a"]},
    Told = lists:foldl(fun(N, R) ->
        sderl_actions_request:told(~"a", {said, integer_to_binary(N)}, N, ?ROOM, R)
    end, sderl_actions_request:new(Asked, 0), lists:seq(1, 1000)),
    #{~"nodes" := #{~"a" := #{~"said" := [1 | _] = Said, ~"said_total" := 1000}}} =
        json:decode(iolist_to_binary(sderl_actions_request:shown(Told))),
    ?assertEqual(400, length(Said)).

%% Of answers without end some are kept, and the request says that others are not.
bounded_bytes_test() ->
    {ok, Action} = sderl_actions_catalogue:find(~"tables"),
    Ids = [integer_to_binary(N) || N <- lists:seq(1, 40)],
    New = sderl_actions_request:new(#{id => ~"r", action => Action, args => #{}, on => #{},
                                      who => #{name => ~"a"}, nodes => Ids}, 0),
    Answer = iolist_to_binary([$", binary:copy(~"x", 999_998), $"]),
    All = fun(Told, Room) ->
        lists:foldl(fun(Id, R) -> sderl_actions_request:told(Id, Told, 1, Room, R) end, New, Ids)
    end,
    Shown = fun(R) ->
        #{~"nodes" := Nodes} = json:decode(iolist_to_binary(sderl_actions_request:shown(R))),
        [map_get(Id, Nodes) || Id <- Ids]
    end,
    Answered = All({ok, Answer}, ?ROOM),
    ?assertEqual(16_000_000, sderl_actions_request:bytes(Answered)),
    {Kept, Cut} = lists:split(16, Shown(Answered)),
    [?assertMatch(#{~"cut" := null, ~"state" := ~"ok"}, One) || One <- Kept],
    [?assertMatch(#{~"cut" := <<"left out", _/binary>>, ~"state" := ~"ok",
                    ~"result" := #{~"cut" := <<"left out", _/binary>>}}, One) || One <- Cut],
    %% Others may have taken the room.
    ?assertEqual(0, sderl_actions_request:bytes(All({ok, Answer}, 999_999))),
    [?assertMatch(#{~"said" := [], ~"said_total" := 1, ~"cut" := <<_/binary>>}, One)
     || One <- Shown(All({said, Answer}, 0))],
    [?assertMatch(#{~"state" := ~"failed", ~"error" := <<"left out", _/binary>>}, One)
     || One <- Shown(All({error, ~"it failed"}, 1))],
    Gone = sderl_actions_request:let_go(Answered),
    ?assertEqual(0, sderl_actions_request:bytes(Gone)),
    [?assertMatch(#{~"state" := ~"ok", ~"cut" := <<_/binary>>, ~"result" := #{~"cut" := _}}, One)
     || One <- Shown(Gone)].

%% ---------------------------------------------------------------- terms

any_term_is_shown_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(
        ?FORALL({Term, Most}, {any(), range(10, 1000)}, begin
            Text = sderl_actions_show:term(Term, Most),
            byte_size(Text) =< Most andalso unicode:characters_to_binary(Text) =:= Text
        end), [{numtests, 300}, quiet, noshrink]))}.

%% What is small is shown as it is, and of what is huge a part, at no cost that depends on it.
pruned_test() ->
    Small = #{a => [1, {b, ~"c"} | d], {e} => 1.5},
    ?assertEqual(Small, sderl_actions_show:pruned(Small, 1000)),
    Huge = {lists:seq(1, 1_000_000), binary:copy(~"x", 10_000_000),
            maps:from_keys(lists:seq(1, 100_000), v)},
    {_, Before} = process_info(self(), reductions),
    Text = sderl_actions_show:term(Huge, 1000),
    {_, After} = process_info(self(), reductions),
    ?assert(After - Before < 1_000_000),
    ?assert(byte_size(Text) =< 1000).

read_test() ->
    [?assertEqual({ok, Term}, sderl_actions_term:read(Text))
     || {Text, Term} <- [{~"7", 7}, {~"-1.5", -1.5}, {~"[a, {b, \"C d'e\"}]", [a, {b, "C d'e"}]},
                         {~"<<\"never_seen_this\">>", ~"never_seen_this"}, {~"'ok'", ok},
                         {~"-1.5e-3", -1.5e-3},
                         {~B"[$\x41, $\x{e4}, $\101, $\n, $\^a]", [$A, 16#E4, $A, $\n, 1]},
                         {~"#{a => $x}", #{a => $x}}, {~"\"a\\\"b\"", "a\"b"}]],
    [?assertMatch({Text, {error, _}}, {Text, sderl_actions_term:read(Text)})
     || Text <- [~"", ~"never_seen_this_atom", ~"'never seen that'", ~"[1", ~"1 + x", ~"f()",
                 ~"fun() -> 1 end", ~"X", <<255>>, ~"'ok", ~"\"open", ~"1. 2", ~"~\"x\"",
                 ~"\"\"\"\na\n\"\"\"",
                 ~B"$\x{e4", ~B"[$\xabnever_seen_this_atom]", ~B"[$\101never_seen_this_atom]",
                 ~B"[$\x{ab}never_seen_this_atom]", ~"'o\\'k'", ~"[5never_seen_this_atom]",
                 ~"{\"\\^\\\", never_seen_this_atom}"]],
    [?assertError(badarg, list_to_existing_atom(Parts))
     || Parts <- ["never_seen" ++ "_this_atom", "never seen" ++ " that"]].

%% Whatever somebody sends: no atom is made.
no_atoms_test_() ->
    {timeout, 120, ?_test(begin
        %% What the test itself makes is made before.
        true = tried(200),
        Before = erlang:system_info(atom_count),
        true = tried(3000),
        ?assertEqual(Before, erlang:system_info(atom_count))
    end)}.

tried(Times) ->
    Chars = [$', $", $\\, $z, $q, $j, $$, $[, $,, $%, $\n, $., $~, 16#E4, $A, $^, $5, $e, $@, $_,
             $#, $x, ${, $}],
    proper:quickcheck(
        ?FORALL(Text, ?LET(Some, list(oneof(Chars)), unicode:characters_to_binary(Some)),
                is_tuple(sderl_actions_term:read(Text))),
        [{numtests, Times}, quiet, noshrink]).

%% ---------------------------------------------------------------- what nobody may read

%% The atom itself, in a text, in a list of characters, and where a text is cut within it.
cookies_test() ->
    Cookie = ~"ABCDEFGHIJKLMNOPQRST",
    Atom = binary_to_atom(Cookie),
    ok = sderl_actions_cookie:remember([Cookie]),
    try
        Long = <<(binary:copy(~"x", 490))/binary, Cookie/binary, (binary:copy(~"y", 100))/binary>>,
        Chars = binary_to_list(Cookie),
        Terms = [Atom, {state, Atom, []}, #{Atom => Atom}, [{node(), Atom}], ["-setcookie ", Atom],
                 <<"-setcookie ", Cookie/binary, " x">>, Chars, [0, 1 | Chars], [Chars, -1 | Chars],
                 list_to_atom("x" ++ Chars), Long, binary_to_list(Long),
                 lists:duplicate(1990, $x) ++ Chars, [a | Cookie], {Cookie, <<7, Cookie/binary>>}],
        [begin
            ?assertEqual({nomatch, Shown}, {binary:match(Shown, ~"ABCD"), Shown}),
            ?assertEqual(nomatch, binary:match(Shown, ~"65,66,67,68"))
         end
         || Term <- Terms, Most <- [200, 5000],
            Shown <- [sderl_actions_show:term(Term, Most), sderl_actions_show:line(Term, Most),
                      sderl_actions_show:text(Term)]],
        [?assertEqual(nomatch, binary:match(sderl_actions_show:cut([~"a ", Cookie], N), ~"ABCD"))
         || N <- lists:seq(1, 30)],
        ?assertEqual(#{~"(hidden)" => [~"x (hidden) y", 7, true]},
                     sderl_actions_show:without_cookies(
                         #{Cookie => [<<"x ", Cookie/binary, " y">>, 7, true]})),
        %% Nothing else changes.
        ?assertEqual({a, "b", [c | d], <<1:3>>, 1.5},
                     sderl_actions_show:pruned({a, "b", [c | d], <<1:3>>, 1.5}, 100)),
        %% A short one may be a part of many words.
        ?assertEqual(~"(hidden) shops shop_1 (hidden)-1",
                     sderl_actions_cookie:hidden(~"shop shops shop_1 shop-1", [~"shop"]))
    after
        erase(sderl_actions_cookie)
    end.

secrets_of_requests_test() ->
    Masked = fun(Parameter, Value) ->
        map_get(~"value", sderl_actions_secret:masked_args(#{~"parameter" => Parameter,
                                                             ~"value" => Value}))
    end,
    [?assertEqual({Value, ~"(hidden)"}, {Value, Masked(Parameter, Value)})
     || {Parameter, Value} <- [{~"password", ~"7"}, {~"db", ~"[{host, \"h\"}, {password, \"p\"}]"},
                               {~"db", ~"#{<<\"api-key\">> => 7}"}, {~"db", ~"{dbPassword, x}"},
                               {[~"password"], ~"x"}, {~"db", [~"x"]}]],
    [?assertEqual(Value, Masked(~"db", Value)) || Value <- [~"7", ~"[{host, \"h\"}, author]"]],
    ?assertEqual(~"{url, \"x://(hidden)@h\"}", Masked(~"db", ~"{url, \"x://u:p@h\"}")),
    ?assertEqual([shop, password, ~"(hidden)", x],
                 sderl_actions_secret:masked_values([shop, password, "p", x])),
    ?assertEqual([shop, password], sderl_actions_secret:masked_values([shop, password])).

%% What was there before is as secret as the value, also in the table that has all environments.
kept_for_undo_test() ->
    Set = #{application => ~"kernel", parameter => ~"sderl_test_password", create => true,
            request => ~"r-secret", value => ~"\"geheim\""},
    {ok, _} = sderl_actions_env:set(Set),
    {ok, _} = sderl_actions_env:set(Set#{request := ~"r-secret-2", value := ~"\"anders\""}),
    {ok, #{rows := Rows}} = sderl_actions_look:rows(#{table => ~"ac_tab", limit => 10_000}),
    [?assertEqual({nomatch, Row}, {string:find(Row, Text), Row})
     || Row <- Rows, Text <- ["geheim", "anders"]],
    {error, Why} = sderl_actions_env:set(Set#{value := ~"geheim_unquoted"}),
    ?assertEqual(nomatch, string:find(Why, "geheim")),
    {ok, _} = sderl_actions_env:undo(#{change => ~"r-secret-2", force => false}),
    ?assertEqual({ok, "geheim"}, application:get_env(kernel, sderl_test_password)),
    {ok, _} = sderl_actions_env:undo(#{change => ~"r-secret", force => false}),
    ?assertEqual(undefined, application:get_env(kernel, sderl_test_password)).

%% Each knows what the one before it has set, and none is forgotten.
changes_at_once_test() ->
    Ids = [integer_to_binary(N) || N <- lists:seq(1, 50)],
    Set = fun(Id) ->
        {ok, _} = sderl_actions_env:set(#{
            application => ~"kernel", parameter => atom_to_binary(sderl_test_number),
            create => true, request => Id, value => Id})
    end,
    Pids = [spawn_monitor(fun() -> Set(Id) end) || Id <- Ids],
    [receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end
     || {Pid, Monitor} <- Pids],
    Changes = sderl_actions_env:changes(kernel),
    ?assertEqual(lists:sort(Ids), lists:sort([Id || #{change := Id} <- Changes])),
    {ok, Last} = application:get_env(kernel, sderl_test_number),
    ?assertEqual(lists:sort([~"(not set)" | Ids]),
                 lists:sort([integer_to_binary(Last) | [Was || #{before := Was} <- Changes]])),
    [{ok, _} = sderl_actions_env:undo(#{change => Id, force => true})
     || #{change := Id} <- Changes],
    ?assertEqual(undefined, application:get_env(kernel, sderl_test_number)).

%% When all answers have no room, those go first whose requests are over for the longest time.
oldest_answers_go_test_() -> {timeout, 120, fun oldest_answers_go/0}.

oldest_answers_go() ->
    {ok, Audit} = sderl_actions_audit:start_link(#{file_bytes => 4096, files => 3}),
    {ok, Requests} = sderl_actions_requests:start_link(#{unattended_ms => 600_000}),
    {ok, Action} = sderl_actions_catalogue:find(~"expression"),
    Who = #{kind => token, name => ~"anna", role => admin},
    Node = atom_to_binary(node()),
    Task = #{nodes => [{Node, node()}], run => {sderl_actions_eval, expression},
             args => #{text => ~"receive never -> ok end"}, inject => false,
             bounds => #{ms => 120_000, words => 1_000_000, reductions => 1_000_000_000}},
    Answer = iolist_to_binary([$", binary:copy(~"x", 999_998), $"]),
    Ids = [~"1", ~"2", ~"3", ~"4", ~"5"],
    [begin
        ok = sderl_actions_requests:start(#{id => Id, action => Action, args => #{}, on => #{},
                                            who => Who, nodes => [Node]}, Task),
        [Requests ! {node, Id, Node, {said, Answer}} || _ <- lists:seq(1, 17)],
        ok = sderl_actions_requests:stop(Id, Who)
     end || Id <- Ids],
    Said = fun(Id) ->
        {ok, Json} = sderl_actions_requests:get(Id, admin),
        #{~"nodes" := #{Node := #{~"said" := Kept, ~"said_total" := 17, ~"cut" := <<_/binary>>}}} =
            json:decode(iolist_to_binary(Json)),
        length(Kept)
    end,
    ?assertEqual([0, 16, 16, 16, 16], [Said(Id) || Id <- Ids]),
    ok = gen_server:stop(Requests),
    ok = gen_server:stop(Audit).
