%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_command_tests).
-moduledoc "The commands, with a service that gives the answers of the test.".

-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").

-import(sderl_ops_places, [in_folder/1]).

help_test_() ->
    [?_assertMatch({help, _}, sderl_ops_command:run(Args))
     || Args <- [["--help"], ["help"], ["-h"]] ++ [[Name, "--help"] || Name <- names()]].

names() ->
    ["plan", "apply", "render", "import", "status", "history", "rollback", "scale", "drain",
     "undrain", "release", "adopt", "pause", "resume", "destroy", "serve", "members", "stop",
     "completion"].

%% One that is not in the list is not in the help.
every_command_test() ->
    {help, Help} = sderl_ops_command:run(["--help"]),
    Lines = string:split(unicode:characters_to_list(Help), "\n", all),
    ?assertEqual(names(), [hd(string:lexemes(Line, " ")) || "  " ++ _ = Line <- Lines]).

usage_test_() ->
    [
        {lists:flatten(lists:join(" ", Args)),
         ?_assertEqual({usage, Sentence}, first_line(sderl_ops_command:run(Args)))}
     || {Args, Sentence} <- [
            {[], "a command is missing"},
            {["aply"], "there is no command aply; did you mean apply?"},
            {["apply"], "file is missing"},
            {["scale", "web", "0"], "count cannot be 0: it is a whole number of at least 1"},
            {["rollback", "x"], "revision cannot be x: it is a whole number of at least 1"},
            {["status", "--jsn"], "there is no option or argument --jsn"},
            {["completion", "fish"], "shell cannot be fish: it is bash or zsh"},
            {["members", "lose"], "what cannot be lose: it is list or add or remove or cookie"},
            {["history", "--since", "2h"], "--since is of \"history --all\""},
            {["history", "--all", "--since", "now"],
             "--since cannot be \"now\": it is an age as 90s, 15m, 2h or 3d, or a time as "
             "2026-11-27T08:00:00Z"},
            {["history", "--all", "--limit", "0"],
             "--limit cannot be 0: it is a whole number from 1 to 20000"},
            {["members", "add"], "members add needs a member, such as ops3@10.0.0.3"},
            {["serve", "--name", "a@h.x"],
             "a member needs both: --name says which one it is, and --members all of them"},
            {["serve", "--name", "d@h.x", "--members", "a@h.x:1,b@h.x:2,c@h.x:3"],
             "d@h.x is none of the members that are named"},
            {["serve", "--name", "a@h.x", "--members", "a@h.x:1,b@h.x:2"],
             "two members decide only while both run, so two are worse than one: name three"}
        ]
    ].

members_cookie_test() ->
    in_folder(fun(Folder) ->
        ?assertEqual({help, "made F/members.cookie: copy it to the folder of every member\n"},
                     run(["members", "cookie"], Folder)),
        File = filename:join(Folder, "members.cookie"),
        {ok, #file_info{mode = Mode}} = file:read_file_info(File),
        ?assertEqual(8#400, Mode band 8#777),
        {ok, Cookie} = file:read_file(File),
        ?assertEqual(64, byte_size(Cookie)),
        ?assertEqual({help, "F/members.cookie is there already: copy it to the folder of every "
                            "member\n"}, run(["members", "cookie"], Folder)),
        ?assertEqual({ok, Cookie}, file:read_file(File))
    end).

first_line({What, Text}) ->
    {What, hd(string:split(unicode:characters_to_list(Text), "\n"))}.

no_service_test() ->
    in_folder(fun(Folder) ->
        {error, Text} = run(["status"], Folder),
        ?assertEqual("no service runs in F: \"bin/sderl ops apply FILE --dir F\" starts one, or "
                     "\"bin/sderl ops serve --dir F\"", Text)
    end).

%% Problems of the file are reported without a service.
wrong_file_test() ->
    in_folder(fun(Folder) ->
        File = filename:join(Folder, "f.json"),
        ok = file:write_file(File, "{\"clutser\": 1}"),
        {error, Text} = run(["apply", File], Folder),
        ?assertMatch("the file is wrong\n  cluster is missing: " ++ _, Text),
        ?assertNotEqual(nomatch, string:find(Text, "\n  clutser is not a key of a file of "
                                                   "operations; did you mean cluster?"))
    end).

%% Arguments, the request, the answer, and the text that is shown.
answers_test_() ->
    [
        {lists:flatten(lists:join(" ", Args)),
         ?_test(in_folder(fun(Folder) ->
             Service = serve(Folder, Answer),
             Result = run(Args, Folder),
             ?assertEqual(Asked, maps:without([~"who"], asked(Service))),
             ?assertEqual(Expected, Result)
         end))}
     || {Args, Asked, Answer, Expected} <- [
            {["scale", "web", "3"],
             #{~"do" => ~"scale", ~"family" => ~"web", ~"count" => 3, ~"force" => false,
               ~"wait" => true},
             {done, #{revision => 4, state => steady, problems => []}},
             {help, "revision 4: all is as the file says\n"}},
            {["scale", "web", "3", "--no-wait", "--force"],
             #{~"do" => ~"scale", ~"family" => ~"web", ~"count" => 3, ~"force" => true,
               ~"wait" => false},
             {done, #{revision => 4, state => working, problems => []}},
             {help, "revision 4: it is being done; \"bin/sderl ops status\" tells how far it "
                    "is\n"}},
            {["rollback", "2"],
             #{~"do" => ~"rollback", ~"revision" => 2, ~"force" => false, ~"wait" => true},
             {done, #{revision => 5, state => failed, problems => [~"web was rolled back"]}},
             {error, "revision 5: not all is as the file says\n  web was rolled back"}},
            {["drain", "web1"],
             #{~"do" => ~"drain", ~"instance" => ~"web1", ~"force" => false, ~"wait" => true},
             {error, "there is no instance web1", [~"one", ~"two"]},
             {error, "there is no instance web1\n  one\n  two"}},
            {["drain", "web1", "--force"],
             #{~"do" => ~"drain", ~"instance" => ~"web1", ~"force" => true, ~"wait" => true},
             {done, #{state => steady, problems => []}},
             {help, "all is as the file says\n"}},
            {["release", "web1"], #{~"do" => ~"release", ~"instance" => ~"web1"},
             {done, #{released => [~"web1"]}},
             {help, "web1 runs on; nothing is done about it until \"bin/sderl ops adopt\"\n"}},
            {["release", "--all"], #{~"do" => ~"release"},
             {done, #{released => [~"web1", ~"web2"]}},
             {help, "web1, web2 run on; nothing is done about them until \"bin/sderl ops "
                    "adopt\"\n"}},
            {["adopt", "web1"], #{~"do" => ~"adopt", ~"instance" => ~"web1", ~"wait" => true},
             {done, #{state => steady, problems => []}},
             {help, "all is as the file says\n"}},
            {["pause"], #{~"do" => ~"pause"}, {done, #{state => paused}},
             {help, "paused: nothing is started until \"bin/sderl ops resume\"\n"}},
            {["destroy", "--yes"], #{~"do" => ~"destroy", ~"wait" => true},
             {done, #{state => destroyed, problems => []}},
             {help, "nothing of the cluster is left\n"}},
            {["stop"], #{~"do" => ~"stop"}, {done, #{state => stopped}},
             {help, "the service has ended; the cluster goes on\n"}},
            {["members"], #{~"do" => ~"members"},
             {done, #{members => [
                 #{member => ~"a@h.x", state => here, store => leads, acts => true},
                 #{member => ~"b@h.x:9", state => away, store => expected, acts => false}
             ]}},
             {help, "member   state     store  acts\n"
                    "-------  -----  --------  ----\n"
                    "a@h.x     here     leads  acts\n"
                    "b@h.x:9   away  may join      \n"}},
            {["members", "remove", "b@h.x"],
             #{~"do" => ~"remove_member", ~"member" => ~"b@h.x"},
             {error, "there is no member b@h.x", []},
             {error, "there is no member b@h.x"}},
            {["history"], #{~"do" => ~"history"}, {done, #{revisions => []}},
             {help, "there is no revision yet\n"}},
            {["history"], #{~"do" => ~"history"},
             {done, #{revisions => [#{revision => 1, at => ~"T", who => ~"me", result => ~"good",
                                      what => ~"apply f"}]}},
             {help, "revision  at  who  result     what\n"
                    "--------  --  ---  ------  -------\n"
                    "1          T   me    good  apply f\n"}},
            {["history"], #{~"do" => ~"history"},
             {done, #{revisions => [
                 #{revision => 2, at => ~"T", who => ~"me", result => ~"failed", what => ~"apply f",
                   why => ~"one\ntwo"},
                 #{revision => 1, at => ~"T", who => ~"me", result => ~"good", what => ~"apply f",
                   why => undefined}
             ]}},
             {help, "revision  at  who  result     what\n"
                    "--------  --  ---  ------  -------\n"
                    "2          T   me  failed  apply f\n"
                    "1          T   me    good  apply f\n"
                    "\n"
                    "why:\n"
                    "  revision 2: one | two\n"}},
            {["history", "--all", "--who", "ann", "--since", "1970-01-01T00:00:01Z",
              "--before", "9", "--kind", "request"],
             #{~"do" => ~"record", ~"kind" => ~"request", ~"limit" => 100, ~"by" => ~"ann",
               ~"since" => 1000,
               ~"before" => 9},
             {done, #{entries => [
                 #{number => 8, at => ~"T", who => ~"ann", kind => request,
                   what => ~"drain web1", result => failed, why => ~"one\ntwo"},
                 #{number => 7, at => ~"T", who => ~"ann", kind => request, what => ~"pause",
                   result => done, why => undefined}
             ], next => undefined}},
             {help, "number  at  result  who  what        why\n"
                    "8       T   failed  ann  drain web1  one | two\n"
                    "7       T   done    ann  pause\n"}},
            {["history", "--all", "--limit", "1"], #{~"do" => ~"record", ~"limit" => 1},
             {done, #{entries => [#{number => 7, at => ~"T", who => ~"ann", kind => request,
                                    what => ~"pause", result => done}], next => 7}},
             {help, "number  at  result  who  what\n"
                    "7       T   done    ann  pause\n"
                    "older ones: --before 7\n"}},
            {["history", "--all"], #{~"do" => ~"record", ~"limit" => 100},
             {done, #{entries => [], next => undefined}},
             {help, "nothing is known to have been done\n"}},
            {["history", "--all"], #{~"do" => ~"record", ~"limit" => 100},
             {error, "the request is wrong: do: \"record\" is not a type of request: ...", []},
             {error, "the service is of an earlier version, which cannot list all that was "
                     "done: \"stop\" it, then start it again with \"serve\" or \"apply\" (the "
                     "cluster goes on meanwhile); \"history\" without --all tells its "
                     "revisions"}},
            {["status"], #{~"do" => ~"status"},
             {done, #{cluster => ~"shop", revision => 1, state => working,
                      instances => [#{id => ~"web1", node => ~"web1@h", host => ~"here/h1",
                                      release => undefined, state => absent, why => undefined}],
                      hosts => [#{id => ~"here/h1", state => up, instances => 1,
                                  why => undefined}],
                      groups => [], problems => [~"a problem"], waiting => [~"a step: why"]}},
             {help, "cluster shop, revision 1: working\n"
                    "\n"
                    "instance    node     host  release   state\n"
                    "--------  ------  -------  -------  ------\n"
                    "web1      web1@h  here/h1           absent\n"
                    "\n"
                    "host     state  instances\n"
                    "-------  -----  ---------\n"
                    "here/h1     up          1\n"
                    "\n"
                    "problems:\n"
                    "  a problem\n"
                    "\n"
                    "waiting:\n"
                    "  a step: why\n"}},
            {["status"], #{~"do" => ~"status"}, none,
             {error, "the service ended before it answered; what it had begun goes on when it is "
                     "started again"}},
            {["status"], #{~"do" => ~"status"}, {raw, ~"HTTP/1.1 400 Bad Request\n"},
             {error, "the answer is not JSON: what listens there is not the service"}}
        ]
    ].

plan_test_() ->
    [?_assertEqual({ok, Text}, flat(sderl_ops_show:answer(plan, Done)))
     || {Done, Text} <- [
            {#{~"changes" => [], ~"steps" => [], ~"refused" => []}, "nothing changes\n"},
            {#{~"changes" => [~"+ web1"], ~"steps" => [~"start web1"], ~"refused" => [~"no"]},
             "what changes:\n  + web1\nwhat is done, 1 steps:\n  start web1\n"
             "\"apply\" refuses it without --force:\n  no\n"}
        ]].

what_a_node_said_is_one_line_of_the_table_test() ->
    Done = #{~"cluster" => ~"shop", ~"revision" => 1, ~"state" => ~"working",
             ~"instances" => [#{~"id" => ~"web1", ~"state" => ~"exited",
                                ~"why" => ~"one\ntwo\r\n\n"}]},
    {ok, Text} = flat(sderl_ops_show:answer(status, Done)),
    ?assertMatch({match, _}, re:run(Text, "web1 .*exited +one \\| two\n")).

flat({What, Text}) -> {What, unicode:characters_to_list(Text)}.

without_a_terminal_nobody_is_asked_test() ->
    Before = os:getenv("SDERL_TTY"),
    true = os:putenv("SDERL_TTY", "0"),
    try
        in_folder(fun(Folder) ->
            ?assertEqual({error, "without a terminal nobody can be asked: say --yes, or --dry-run"},
                         run(["destroy"], Folder))
        end)
    after
        case Before of
            false -> os:unsetenv("SDERL_TTY");
            _ -> os:putenv("SDERL_TTY", Before)
        end
    end.

%% ---------------------------------------------------------------- completion

bash_test_() ->
    [
        {lists:flatten(lists:join(" ", Words)), ?_assertEqual(Expected, completed(Words))}
     || {Words, Expected} <- [
            {["o"], ["ops"]},
            {["ops", "re"], ["render", "release", "resume"]},
            {["ops", "d"], ["drain", "destroy"]},
            {["ops", "scale", "--f"], ["--force"]},
            {["ops", "drain", "--f"], ["--force"]},
            {["ops", "destroy", "--"], ["--yes", "--dry-run", "--no-wait", "--json", "--dir",
                                        "--help"]},
            {["ops", "completion", ""], ["bash", "zsh"]},
            {["ops", "apply", "/etc/pass"], ["/etc/passwd"]},
            {["bench", "x"], []}
        ]
    ].

completed(Words) ->
    {help, Script} = sderl_ops_command:run(["completion", "bash"]),
    Ask = [unicode:characters_to_list(Script),
           "COMP_WORDS=(sderl ", lists:join(" ", ["'" ++ Word ++ "'" || Word <- Words]), ")\n",
           "COMP_CWORD=", integer_to_list(length(Words)), "\n_sderl_ops\n",
           "printf '%s\\n' \"${COMPREPLY[@]}\"\n"],
    Port = open_port({spawn_executable, os:find_executable("bash")},
                     [{args, ["-c", lists:flatten(Ask)]}, exit_status, stderr_to_stdout]),
    [Word || Word <- string:split(output(Port, []), "\n", all), Word =/= "",
             not lists:prefix("/etc/passwd", Word) orelse Word =:= "/etc/passwd"].

output(Port, Said) ->
    receive
        {Port, {data, Text}} -> output(Port, Said ++ Text);
        {Port, {exit_status, 0}} -> Said
    end.

zsh_test() ->
    {help, Script} = sderl_ops_command:run(["completion", "zsh"]),
    Text = unicode:characters_to_list(Script),
    [?assertNotEqual(nomatch, string:find(Text, "    " ++ Name ++ ")\n")) || Name <- names()].

%% ---------------------------------------------------------------- a service

%% Answers one request.
serve(Folder, Answer) ->
    {ok, Path} = sderl_ops_place:socket(Folder),
    {ok, Listen} = gen_tcp:listen(0, [binary, {ifaddr, {local, Path}}, {active, false},
                                      {packet, line}]),
    Test = self(),
    spawn_link(fun() ->
        {ok, Socket} = gen_tcp:accept(Listen),
        {ok, Line} = gen_tcp:recv(Socket, 0),
        Test ! {asked, self(), json:decode(Line)},
        case Answer of
            none -> ok;
            {raw, Bytes} -> ok = gen_tcp:send(Socket, Bytes);
            _ -> ok = gen_tcp:send(Socket, sderl_ops_wire:encode_answer(Answer))
        end,
        ok = gen_tcp:close(Socket)
    end).

asked(Service) ->
    receive {asked, Service, Request} -> Request end.

run(Args, Folder) ->
    {What, Text} = sderl_ops_command:run(Args ++ ["--dir", Folder]),
    Named = string:replace(unicode:characters_to_list(Text), Folder, "F", all),
    {What, lists:flatten(Named)}.
