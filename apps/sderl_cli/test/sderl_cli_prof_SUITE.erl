%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_SUITE).
-moduledoc "`bin/sderl prof` on several nodes, as a person uses it.".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [several].

several(Config) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => 2, apps => [sderl]}]}),
    try
        several(Fleet, sderl_fleet:nodes(Fleet), proplists:get_value(priv_dir, Config))
    after
        sderl_fleet:stop(Fleet)
    end.

several(Fleet, [A | _] = Nodes, Root) ->
    {ok, shop, _} = sderl_fleet:call(Fleet, A, s_group, new_s_group, [shop, Nodes]),
    [Name, Other] = [atom_to_list(Node) || Node <- Nodes],
    [_, Host] = string:split(Name, "@"),
    Folder = filename:join(Root, "prof-cluster"),
    There = filename:join(Root, "prof-there"),
    Options = ["--what", "messages", "--seconds", "1", "--force"],
    {0, Recorded} = run(Fleet, ["record", Name, "--group", "shop", "--out", Folder,
                                "--node-out", There | Options]),
    [said(Recorded, Part) || Part <- ["% of a core", Other, "in time", "bin/sderl prof fetch"]],
    {1, Away} = run(Fleet, ["report", Folder]),
    said(Away, "fetch them: bin/sderl prof fetch"),
    {0, Fetched} = run(Fleet, ["fetch", Folder]),
    [said(Fetched, Part) || Part <- ["came now", Name, Other]],
    {0, Again} = run(Fleet, ["fetch", Folder, "--remove"]),
    said(Again, "nothing, it was here"),
    {0, Report} = run(Fleet, ["report", Folder]),
    [said(Report, Part) || Part <- ["2 of 2 nodes", "drift ppm", "Messages between nodes",
                                    "messages have both ends", "Critical path across nodes",
                                    filename:join(Folder, Name)]],
    {0, One} = run(Fleet, ["report", filename:join(Folder, Name)]),
    said(One, "Critical path"),
    {0, _} = run(Fleet, ["export", Folder, "--format", "chrome", "--out",
                         filename:join(Root, "trace.json")]),
    {0, _} = run(Fleet, ["export", Folder, "--format", "csv", "--out",
                         filename:join(Root, "events.csv")]),
    {ok, Csv} = file:read_file(filename:join(Root, "events.csv")),
    [said(Csv, [" at ", Node]) || Node <- [Name, Other]],
    {0, Path} = run(Fleet, ["path", Folder]),
    %% The path ends with what ran last, on either node.
    [said(Path, Part) || Part <- ["between nodes", "from other nodes", "@" ++ Host]],
    {1, Nothing} = run(Fleet, ["path", Folder, "--process", "nobody"]),
    said(Nothing, "has no process nobody"),
    sampled(Fleet, Name, filename:join(Root, "samples.json")),
    virtual_machines(Fleet, Name, Other),
    %% The same folder again, an unknown group, and an unknown node beside one that exists.
    {1, Twice} = run(Fleet, ["record", Name, "--all", "--out", Folder | Options]),
    said(Twice, "not empty"),
    {1, Nobody} = run(Fleet, ["record", Name, "--group", "nothing", "--out", Folder | Options]),
    said(Nobody, "is in no group nothing"),
    {1, Down} = run(Fleet, ["record", "nobody@" ++ Host, "--all", "--out", Folder | Options]),
    said(Down, "cannot connect to nobody@"),
    {1, Some} = run(Fleet, ["record", "--node", Name, "--node", "nobody@" ++ Host,
                            "--out", filename:join(Root, "some") | Options]),
    [said(Some, Part) || Part <- ["cannot connect to nobody@", "in time", "1 of 2 nodes failed"]],
    {0, Rest} = run(Fleet, ["fetch", filename:join(Root, "some")]),
    [said(Rest, Part) || Part <- ["own folder", "the node was not recorded"]].

%% Also on a node with fewer processes than there are looks at a time.
sampled(Fleet, Node, File) ->
    {0, Sampled} = run(Fleet, ["sample", Node, "--seconds", "1", "--out", File,
                               "--mailboxes", "sderl_node,no_such_name"]),
    [said(Sampled, Part) || Part <- [Node, "looks at", "Where processes wait", "95 % interval",
                                     "Schedulers", "mailbox of sderl_node", "memory, MB",
                                     "no process has that name"]],
    {0, Again} = run(Fleet, ["report", File]),
    said(Again, "Kinds of processes, most reductions first"),
    {0, Json} = run(Fleet, ["report", File, "--json"]),
    said(Json, "share_busy"),
    {1, Names} = run(Fleet, ["sample", Node, "--mailboxes", ","]),
    said(Names, "--mailboxes names no process"),
    {1, Wrong} = run(Fleet, ["sample", Node, "--rate", "0"]),
    said(Wrong, "a whole number from 1"),
    {1, Down} = run(Fleet, ["sample", "nobody@127.0.0.1"]),
    said(Down, "cannot connect to nobody@").

%% The measurements of virtual machines; a node that cannot be reached does not stop the others.
virtual_machines(Fleet, Name, Other) ->
    {0, One} = run(Fleet, ["vm", Name, "--seconds", "0.5", "--modules", "gen_server,s_group"]),
    [said(One, Part) || Part <- [Name, "Threads", "Schedulers", "allocator", "- locks: ",
                                 "toolchain/install --lock-counter"]],
    %% If perf counts all events, no counter is missing.
    ?assertNotEqual(nomatch, re:run(One, "- counters: |Counters of the processor")),
    {0, Json} = run(Fleet, ["vm", Name, "--group", "shop", "--seconds", "0.2", "--json"]),
    #{~"nodes" := [_, _]} = json:decode(hd(binary:split(Json, ~"\n"))),
    {1, Some} = run(Fleet, ["vm", Name, "--node", Other, "--node", "nobody@127.0.0.1",
                            "--seconds", "0.2"]),
    [said(Some, Part) || Part <- [Other, "Memory, MiB", "nobody@127.0.0.1 does not answer",
                                  "1 of 3 nodes failed"]],
    {1, None} = run(Fleet, ["vm", "nobody@127.0.0.1"]),
    said(None, "cannot connect to nobody@"),
    {1, Module} = run(Fleet, ["vm", Name, "--modules", "no_such_module"]),
    said(Module, "has no module no_such_module").

run(Fleet, Args) ->
    {Status, Text} = sderl_cli_program:run(Fleet, ["prof" | Args]),
    ct:pal("bin/sderl prof ~ts~n~ts", [lists:join(" ", Args), Text]),
    {Status, Text}.

said(Text, Words) -> ?assertMatch({_, true}, {Text, string:find(Text, Words) =/= nomatch}).
