%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_command).
-moduledoc """
`bin/sderl ops`: brings clusters up from a file, and keeps them as the file says.

Most commands are requests to the service that runs in the folder of `--dir`; `render`, `import`,
`serve`, `members cookie` and `completion` need none. `plan` and `apply` start a service if none
runs: that of `apply` stays, that of `plan` is stopped again.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1, main/1]).

-import(sderl_command, [flag/2, option/4]).

-define(MOST_LOG_BYTES, 10_485_760).
-define(LOG_FILES, 4).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "bring a cluster up from a file, and keep it as the file says".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> {commands, [completed(Do) || Do <- commands()]}.

-doc "Runs a command of operations.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    sderl_command:run_one(Args, "ops", commands(), #{help => fun help/0,
                                                     arguments => fun command/1,
                                                     do => fun run_command/2,
                                                     unknown => fun near/1}).

near(Name) ->
    Known = [atom_to_binary(Do) || Do <- commands()],
    case sderl_ops_walker:nearest(unicode:characters_to_binary(Name), Known) of
        {ok, Near} -> ["; did you mean ", Near, "?"];
        none -> ""
    end.

help() ->
    [
        "usage: bin/sderl ops COMMAND [options]\n\n"
        "Brings a cluster up from a file and keeps it as the file says, on this machine or on\n"
        "others. The guide is docs/operations.md, all keys of a file are in docs/ops-file.md.\n\n",
        [io_lib:format("  ~-11ts ~ts~n", [Do, about(Do)]) || Do <- commands()],
        "\n\"bin/sderl ops COMMAND --help\" lists a command's options.\n"
    ].

%% ---------------------------------------------------------------- commands and their arguments

commands() ->
    [plan, apply, render, import, status, history, rollback, scale, drain, undrain, release, adopt,
     pause, resume, destroy, serve, members, stop, completion].

about(plan) -> "what apply would change, and in which steps";
about(apply) -> "make the cluster as the file says";
about(render) -> "write what kubectl applies, for a file whose provider is Kubernetes";
about(import) -> "write the file of a cluster that runs, and take it over";
about(status) -> "instances, hosts and groups, and what is wrong";
about(history) -> "the revisions, or all that was done: who, when, what, and how it ended";
about(rollback) -> "make the cluster as an earlier revision says";
about(scale) -> "another number of nodes in a family";
about(drain) -> "take a node out of its groups, then stop it";
about(undrain) -> "start a drained node again";
about(release) -> "hand a node back that was taken over: it runs on, and is left alone";
about(adopt) -> "take a node over again that was handed back";
about(pause) -> "begin nothing more";
about(resume) -> "go on, and try again what was given up";
about(destroy) -> "stop and remove all of the cluster";
about(serve) -> "the service itself, until Ctrl-C";
about(members) -> "the members of a service that has several: list, add, remove";
about(stop) -> "end the service; the cluster goes on";
about(completion) -> "completion for bash or zsh".

command(Do) ->
    #{
        help => lists:append([upper(about(Do)), ".", more(Do)]),
        arguments => arguments(Do) ++ common(Do)
    }.

upper([First | Rest]) -> string:uppercase([First]) ++ Rest.

more(apply) ->
    "\nIf no service runs, one is started in the background. Ctrl-C ends the waiting, not the "
    "work.";
more(plan) ->
    "\nNothing is changed.";
more(render) ->
    "\nWithout --out everything is one stream of YAML on stdout. What has to exist beforehand, and "
    "where Kubernetes differs from the file, is printed on stderr.\n\n"
    "  bin/sderl ops render shop.json | kubectl diff -f -\n"
    "  bin/sderl ops render shop.json --out shop && kubectl apply -f shop";
more(import) ->
    "\nThe cluster is found from one node, and nothing is changed on its nodes. What is unknown or "
    "left out is printed on stderr.\n\n"
    "  bin/sderl ops import --seed a@host --out shop.json\n"
    "  bin/sderl ops import --seed a@host --out shop.json --adopt\n\n"
    "With --adopt the file is applied at once: the nodes go on as they are, and the service keeps "
    "the cluster from then on.\nAs for erl, ERL_EPMD_PORT is the port of the nodes' epmd, and "
    "ERL_FLAGS sets TLS between nodes.";
more(rollback) ->
    "\nThis makes a new revision with the content of the earlier one.";
more(history) ->
    "\nWith --all also each other request, each step, and each decision of the service, the newest "
    "first. The newest 20,000 of these entries are kept.\n\n"
    "  bin/sderl ops history --all --since 2h\n"
    "  bin/sderl ops history --all --who anna --limit 1000";
more(scale) ->
    "\nThis makes a new revision; the file itself is not changed.";
more(drain) ->
    "\nIt is refused if a group has no other member in service, or two groups have no other node "
    "in common: let them grow first, or say --force.";
more(release) ->
    "\nThe node goes on as it is and in its groups, and the service neither stops nor starts it. "
    "--all hands back all nodes that run as they were taken over; \"destroy\" then leaves them "
    "alone. To stop such a node use \"drain\".";
more(destroy) ->
    "\nIt asks first. Releases, states and logs of the nodes are removed, too.";
more(serve) ->
    "\nWhen it ends the cluster goes on, and the next service takes it over. With --name and "
    "--members it is one of several members; in the folder of a service with one member it goes on "
    "with all that this one has stored.";
more(members) ->
    "\nA member is NAME@ADDRESS or NAME@ADDRESS:PORT. \"add\" admits a new member, or one that "
    "has lost its disk: it joins when it runs. \"cookie\" makes the secret that the members share.";
more(completion) ->
    "\neval \"$(bin/sderl ops completion bash)\", or source <(bin/sderl ops completion zsh).";
more(_) ->
    "".

arguments(plan) -> [file(), force()];
arguments(apply) -> [file(), force(), no_wait()];
arguments(render) ->
    [file(),
     option(out, "DIR", string, "a folder for files: one for each family, one for the cluster"),
     flag(canary, "replace only the canaries of each family (upgrade.canaries)")];
arguments(import) ->
    [(option(seed, "NODE@HOST", string, "any node of the cluster"))#{required => true},
     option(cookie_file, "FILE", string, "the file with the cookie (~/.erlang.cookie)"),
     option(out, "FILE", string, "where the file is written (stdout)"),
     option(cluster, "NAME", string, "the name of the cluster (imported)"),
     flag(force, "replace FILE where it is there"),
     flag(adopt, "apply the file"),
     no_wait()];
arguments(rollback) ->
    [positional(revision, "REVISION", {integer, [{min, 1}]}, "its number, as history lists it"),
     force(), no_wait()];
arguments(history) ->
    [flag(all, "everything that was done, not only the revisions"),
     option(since, "TIME", string, "from this time on: an age as 90s, 15m, 2h or 3d, or a time as "
                                   "2026-11-27T08:00:00Z"),
     option(until, "TIME", string, "up to this time, likewise"),
     option(who, "USER", string, "what this user did; the service itself is the user service"),
     option(kind, "KIND", {atom, [request, step, note]},
            "request: what somebody asked for; step: what was done for it; note: what the "
            "service decided"),
     option(limit, "N", {integer, [{min, 1}, {max, 20_000}]}, "at most this many entries (100)"),
     option(before, "NUMBER", {integer, [{min, 1}]}, "entries before this number")];
arguments(scale) ->
    [positional(family, "FAMILY", string, "its name"),
     positional(count, "COUNT", {integer, [{min, 1}]}, "its new number of nodes"),
     force(), no_wait()];
arguments(drain) -> [instance(), force(), no_wait()];
arguments(Do) when Do =:= undrain; Do =:= adopt -> [instance(), no_wait()];
arguments(release) ->
    [(instance())#{nargs => 'maybe', required => false},
     flag(all, "all nodes that run as they were taken over")];
arguments(destroy) ->
    [flag(yes, "do not ask"), flag(dry_run, "only show what would be removed"), no_wait()];
arguments(serve) ->
    [option(name, "MEMBER", string, "this member of a service with several: NAME@ADDRESS or "
                                    "NAME@ADDRESS:PORT"),
     option(members, "LIST", string, "all members of the service, separated by commas")];
arguments(members) ->
    [(positional(what, "WHAT", {atom, [list, add, remove, cookie]}, "list, add, remove or cookie"))
         #{nargs => 'maybe', default => list},
     (positional(member, "MEMBER", string, "the member to add or to remove"))
         #{nargs => 'maybe', required => false}];
arguments(completion) ->
    [positional(shell, "SHELL", {atom, [bash, zsh]}, "bash or zsh")];
arguments(_) ->
    [].

common(Do) when Do =:= completion; Do =:= render -> [];
common(serve) -> [directory()];
common(_) -> [flag(json, "print events and the answer as lines of JSON"), directory()].

directory() ->
    option(dir, "DIR", string, "the service's folder ($XDG_STATE_HOME/sderl-ops, which is "
                               "~/.local/state/sderl-ops)").

instance() -> positional(instance, "INSTANCE", string, "its name, such as web3").

file() -> positional(file, "FILE", string, "the file of the cluster").

force() ->
    flag(force, "do it even if a group has no member, or two connected groups have no gateway, "
                "while nodes are replaced or drained").

no_wait() -> flag(no_wait, "do not wait until it is done").

positional(Name, Shape, Type, Help) ->
    #{name => Name, type => Type, help => {Shape, [Help]}}.

%% ---------------------------------------------------------------- running them

run_command(completion, #{shell := Shell}) ->
    {commands, Commands} = completion(),
    {help, sderl_completion:script(Shell, "ops", Commands)};
run_command(render, Options) ->
    sderl_ops_render:run(Options);
run_command(import, Options) ->
    import(Options);
run_command(serve, Options) ->
    maybe
        {ok, As} ?= as_member(Options),
        serve(folder(Options), As)
    end;
run_command(members, #{what := cookie} = Options) ->
    Folder = folder(Options),
    maybe
        ok ?= sderl_ops_place:make(Folder),
        case sderl_ops_links:make_cookie(Folder) of
            {made, File} -> {help, ["made ", File, ": copy it to the folder of every member\n"]};
            {there, File} -> {help, [File, " is there already: copy it to the folder of every "
                                     "member\n"]};
            {error, _} = Error -> Error
        end
    end;
run_command(members, #{what := list} = Options) ->
    ask(#{do => members, who => who()}, Options);
run_command(members, #{what := What, member := Member} = Options) ->
    Do = case What of add -> add_member; remove -> remove_member end,
    ask(#{do => Do, member => unicode:characters_to_binary(Member), who => who()}, Options);
run_command(members, #{what := What}) ->
    {usage, io_lib:format("members ~ts needs a member, such as ops3@10.0.0.3", [What])};
run_command(release, #{all := All} = Options) when All =:= is_map_key(instance, Options) ->
    {usage, "release needs an instance, such as web3, or --all"};
run_command(destroy, #{dry_run := true} = Options) ->
    ask(#{do => status, who => who()}, Options);
run_command(destroy, Options) ->
    maybe
        ok ?= sderl_command:may_ask(Options),
        ok ?= confirm(Options),
        ask(request(destroy, Options), Options)
    end;
run_command(history, Options) ->
    case sderl_ops_past:wanted(Options) of
        revisions -> ask(request(history, Options), Options);
        {ok, Wanted} -> ask(Wanted#{do => record, who => who()}, Options);
        {wrong, Sentence} -> {usage, Sentence}
    end;
run_command(Do, Options) ->
    ask(request(Do, Options), Options).

as_member(#{name := Name, members := List}) ->
    maybe
        {ok, Members} ?= sderl_ops_roster:parse_list(List),
        {ok, #{node := Node}} ?= sderl_ops_roster:parse(Name),
        ok ?= sderl_ops_roster:check(Node, Members),
        [Self] = [Member || #{node := Of} = Member <- Members, Of =:= Node],
        {ok, {Self, Members}}
    else
        {error, Sentence} -> {usage, Sentence}
    end;
as_member(Options) when is_map_key(name, Options); is_map_key(members, Options) ->
    {usage, "a member needs both: --name says which one it is, and --members all of them"};
as_member(_) ->
    {ok, alone}.

completed(Do) ->
    {Name, Options, First} = sderl_completion:command(Do, command(Do)),
    {Name, Options, case arguments(Do) of
         [#{name := file} | _] -> file;
         _ -> First
     end}.

confirm(#{yes := true}) -> ok;
confirm(Options) ->
    Folder = folder(Options),
    Hello = #{do => hello, who => who()},
    case sderl_ops_client:ask(Folder, Hello, fun(_) -> ok end) of
        {done, #{~"cluster" := Cluster}} when is_binary(Cluster) ->
            sderl_command:confirm(["All nodes of the cluster ", Cluster, " are stopped, and their "
                                   "files removed."], "nothing was removed");
        _ ->
            %% The request itself will fail with the reason.
            ok
    end.

request(Do, Options) ->
    Keys = maps:map(fun
        (file, File) -> unicode:characters_to_binary(filename:absname(File));
        (_, Text) when is_list(Text) -> unicode:characters_to_binary(Text);
        (_, Value) -> Value
    end, maps:with([file, force, revision, family, count, instance], Options)),
    Wait = #{wait => not NoWait || no_wait := NoWait <- Options},
    maps:merge(maps:merge(Keys, Wait), #{do => Do, who => who()}).

%% ---------------------------------------------------------------- import

import(#{adopt := true} = Options) when not is_map_key(out, Options) ->
    {usage, "--adopt needs --out FILE: the file is what is changed and applied later"};
import(Options) ->
    maybe
        ok ?= may_write(Options),
        {ok, Text, Points} ?= sderl_ops_import:draft(drafted(Options)),
        ok ?= write(Text, Options),
        ok = io:put_chars(standard_error, sderl_visible:text(imported(Points, Options))),
        adopt(Text, Options)
    end.

drafted(#{seed := Seed} = Options) ->
    Home = filename:join(os:getenv("HOME", "/"), ".erlang.cookie"),
    Named = #{cluster => unicode:characters_to_binary(Name) || cluster := Name <- Options},
    Named#{seed => unicode:characters_to_binary(Seed),
           cookie_file => maps:get(cookie_file, Options, Home)}.

may_write(#{out := File, force := false}) ->
    case file:read_link_info(File) of
        {error, enoent} -> ok;
        _ -> {error, ["--out: ", File, " is there already; --force replaces it"]}
    end;
may_write(_) ->
    ok.

write(Text, #{out := File}) ->
    Part = File ++ ".part",
    maybe
        ok ?= file:write_file(Part, Text),
        file:rename(Part, File)
    else
        {error, Why} -> {error, ["--out: ", File, " cannot be written: ", file:format_error(Why)]}
    end;
write(_, _) ->
    ok.

imported(Points, Options) ->
    [[["wrote ", File, "\n"] || out := File <- Options],
     [["what you should know about it:\n", [["  ", Point, "\n"] || Point <- Points]]
      || Points =/= []]].

adopt(_, #{adopt := true, out := File} = Options) ->
    run_command(apply, Options#{file => File, force => false});
adopt(Text, Options) when not is_map_key(out, Options) ->
    {help, Text};
adopt(_, _) ->
    ok.

who() ->
    case [Name || Variable <- ["LOGNAME", "USER"], [_ | _] = Name <- [os:getenv(Variable, "")]] of
        [Name | _] -> unicode:characters_to_binary(Name);
        [] -> user_of_process()
    end.

user_of_process() ->
    case string:trim(os:cmd("id -un 2>/dev/null")) of
        "" -> ~"somebody";
        Name -> unicode:characters_to_binary(Name)
    end.

folder(#{dir := Folder}) -> filename:absname(Folder);
folder(_) -> sderl_ops_place:default().

ask(#{do := Do} = Request, #{json := Json} = Options) ->
    Folder = folder(Options),
    Tell = sderl_ops_show:teller(atom_to_list(Do), Json),
    maybe
        ok ?= check_file(Request),
        {ok, Started} ?= ensure_service(Request, Folder, Json),
        Answer = answer(Request, fun(Of) -> sderl_ops_client:ask(Folder, Of, Tell) end),
        ok = sderl_progress:done(),
        ok = end_service(Started, Request, Folder),
        result(Do, Answer, Json, Options)
    end.

answer(#{do := record} = Request, Ask) -> sderl_ops_past:fetch(Request, Ask);
answer(Request, Ask) -> Ask(Request).

%% Problems of a file are reported without a service.
check_file(#{file := File, do := Do}) ->
    case sderl_ops_render:read(File) of
        {ok, Read} ->
            case sderl_ops_pods:is_for_pods(Read) of
                true -> {error, sderl_ops_render:instead_of(Do)};
                false -> ok
            end;
        Error ->
            Error
    end;
check_file(_) ->
    ok.

ensure_service(#{do := Do}, Folder, Json) when Do =:= plan; Do =:= apply ->
    case sderl_ops_client:ask(Folder, #{do => hello, who => who()}, fun(_) -> ok end) of
        not_running ->
            case sderl_ops_background:start(Folder, ?MODULE) of
                ok when Do =:= apply ->
                    Json orelse say_started(Folder),
                    {ok, started};
                ok ->
                    {ok, started};
                Error ->
                    Error
            end;
        _ ->
            {ok, was_running}
    end;
ensure_service(_, _, _) ->
    {ok, was_running}.

say_started(Folder) ->
    io:put_chars(standard_error,
                 ["started the service in the background; its folder is ", Folder, "\n"]).

end_service(started, #{do := plan}, Folder) ->
    _ = sderl_ops_client:ask(Folder, #{do => stop, who => who()}, fun(_) -> ok end),
    ok;
end_service(_, _, _) ->
    ok.

result(_, not_running, _, Options) ->
    Dir = [[" --dir ", Given] || #{dir := Given} <- [Options]],
    {error, ["no service runs in ", folder(Options), ": \"bin/sderl ops apply FILE", Dir,
             "\" starts one, or \"bin/sderl ops serve", Dir, "\""]};
result(Do, Answer, Json, Options) when Do =:= add_member; Do =:= remove_member ->
    result(members, Answer, Json, Options);
result(Do, Answer, true, _) ->
    io:put_chars(sderl_visible:json(sderl_ops_wire:encode_answer(Answer))),
    case Answer of
        {done, Done} ->
            case sderl_ops_show:answer(Do, Done) of
                {ok, _} -> ok;
                Error -> Error
            end;
        {error, Text, _} ->
            {error, Text}
    end;
result(Do, {done, Done}, false, _) ->
    case sderl_ops_show:answer(Do, Done) of
        {ok, Text} -> {help, Text};
        Error -> Error
    end;
result(_, {error, Text, Problems}, false, _) ->
    {error, sderl_ops_show:failure(Text, Problems)}.

%% ---------------------------------------------------------------- the service

serve(Folder, As) ->
    _ = sderl_signals:tell(self()),
    io:put_chars(standard_error, ["starting the service in ", Folder, "; Ctrl-C ends it\n"]),
    run_service(Folder, As).

%% The process answers with its exit reason.
-dialyzer({nowarn_function, [run_service/2]}).

run_service(Folder, As) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({ended, sderl_ops_service:run(Folder, As)}) end),
    await_end(Pid, Monitor).

await_end(Pid, Monitor) ->
    receive
        {'DOWN', Monitor, process, Pid, {ended, Result}} ->
            Result;
        {'DOWN', Monitor, process, Pid, Why} ->
            {error, io_lib:format("the service ended: ~0tP", [Why, 20])};
        {sderl_signals, stop} ->
            ok = sderl_ops_service:stop(),
            await_end(Pid, Monitor)
    end.

-doc "Runs the service in a virtual machine of its own, in the background.".
-spec main([Folder :: string()]) -> no_return().
main([Folder]) ->
    _ = io:setopts(standard_io, [{encoding, unicode}]),
    ok = sderl_signals:install(self()),
    ok = log_into(sderl_ops_place:log(Folder)),
    case run_service(Folder, alone) of
        ok ->
            _ = logger_std_h:filesync(default),
            halt(0);
        {error, Text} ->
            io:put_chars([Text, "\n"]),
            logger:error("~ts", [Text]),
            _ = logger_std_h:filesync(default),
            halt(1, [{flush, true}])
    end.

log_into(File) ->
    _ = logger:remove_handler(default),
    logger:add_handler(default, logger_std_h, #{
        config => #{file => File, max_no_bytes => ?MOST_LOG_BYTES, max_no_files => ?LOG_FILES},
        level => notice
    }).
