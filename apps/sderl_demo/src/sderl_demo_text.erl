%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_text).
-moduledoc "The texts of the demo, apart from its table.".

-export([misfit/1, header/1, step/2, kept/0, broken/2, invitation/2, leave/0, failure/2,
         no_shell/2]).

-doc "Why `sderl_demo_layout:new/2` refuses its arguments.".
-spec misfit(too_few_nodes | group_size_too_small | group_size_above_nodes) -> string().
misfit(too_few_nodes) -> "--nodes must be at least 4";
misfit(group_size_too_small) -> "--group-size must be at least 2";
misfit(group_size_above_nodes) -> "--group-size must not be above the number of nodes".

-doc "The announcement of a run.".
-spec header(sderl_demo:settings()) -> unicode:chardata().
header(#{layout := #{consistency := Consistency} = Layout, seconds := Seconds, seed := Seed}) ->
    Groups = length(sderl_demo_layout:groups(Layout)),
    [
        io_lib:format("~w nodes on this machine (~ts), ~w named servers on them.\n", [
            length(sderl_demo_layout:indexes(Layout)),
            sderl_bench_machine:text(),
            length(sderl_demo_layout:names(Layout))
        ]),
        io_lib:format(
            "First as a full mesh with global, then twice as ~ts~ts, following others and not:\n\n",
            [
                plural(Groups, "s_group", "s_groups"),
                case Consistency of
                    available -> "";
                    majority -> " with the consistency majority"
                end
            ]
        ),
        [["  ", Line, "\n"] || Line <- sderl_demo_layout:picture(Layout)],
        io_lib:format(
            "\n"
            "~ts"
            "On each side: ~ts s each of lookups, of calls by name (8 of 10 to servers of\n"
            "the caller's groups), of registrations of fresh names by all nodes at once, and of\n"
            "calls while servers are killed (seed ~w) and their supervisors restart them.\n\n",
            [
                [
                    "A number between two groups is their gateway, a member of both.\n"
                 || Groups > 1
                ],
                number(Seconds),
                Seed
            ]
        )
    ].

number(N) -> io_lib:format("~w", [N]).

plural(1, One, _Many) -> ["1 ", One];
plural(N, _One, Many) -> [integer_to_list(N), " ", Many].

-doc "The label of a step's progress bar.".
-spec step(sderl_demo_cluster:side(), nodes | sderl_demo:step()) -> unicode:chardata().
step(Side, Step) -> [side(Side), ": ", step(Step)].

side(stock) -> "full mesh";
side(sd) -> "s_groups";
side(following) -> "s_groups, following others".

step(nodes) -> "starting nodes";
step(link) -> "linking nodes";
step(servers) -> "starting servers";
step(lookups) -> "looking up names";
step(calls) -> "calling by name";
step(registrations) -> "registering names";
step(kills) -> "killing servers";
step(check) -> "checking all names".

-doc "The closing text when the s_groups kept their promises.".
-spec kept() -> unicode:chardata().
kept() ->
    "\nIn the s_groups no call was lost but those in flight at a kill, and every name is back\n"
    "on every member of its group.\n".

-doc "The closing text when they did not, with the reasons of the calls that were lost.".
-spec broken([{atom(), pos_integer()}], sderl_demo:results()) -> unicode:chardata().
broken(Broken, Results) ->
    Reasons = lists:append(
        [R || #{lost_reasons := R} <- maps:values(maps:with([sd, following], Results))]
    ),
    [
        "in the s_groups: ",
        lists:join(", ", [[integer_to_list(Count), " ", what(Key)] || {Key, Count} <- Broken]),
        [["\n  ", Reason] || Reason <- lists:sublist(Reasons, 10)]
    ].

what(lost_calls) -> "calls lost that were not in flight at a kill";
what(missing_names) -> "names missing or wrong on a member";
what(leftover_names) -> "names left that were unregistered";
what(errors) -> "other errors".

-doc "Why a side could not be run.".
-spec failure(sderl_demo_cluster:side(), term()) -> unicode:chardata().
failure(Side, Reason) -> [side(Side), ": ", sderl_bench_reason:text(Reason)].

-doc "Why the nodes do not stay up for a shell.".
-spec no_shell(atom(), file:filename_all()) -> unicode:chardata().
no_shell(not_private, Folder) ->
    ["others than you may use the folder ", Folder, ", which tells where the nodes are"];
no_shell(Reason, File) ->
    ["cannot write ", File, ": ", file:format_error(Reason)].

-doc "How to reach the nodes that stay up, and what to try there.".
-spec invitation(sderl_demo_layout:layout(), [node(), ...]) -> unicode:chardata().
invitation(Layout, Nodes) ->
    [#{name := Group, members := Members} | _] = sderl_demo_layout:groups(Layout),
    [First, Second | _] = Members,
    Server = {Group, {server, Second, 1}},
    [
        io_lib:format(
            "\nThe nodes of the s_groups stay up. In another terminal~ts:\n\n"
            "  bin/sderl top --seed ~ts\n"
            "      groups, nodes, links and findings on a screen (q ends it)\n"
            "  bin/sderl mon --seed ~ts --port 0\n"
            "      another dashboard, from a monitoring node of its own\n"
            "  bin/sderl chaos --node ~ts --target supervisor:sderl_demo_sup --every 1s --kills "
            "20\n"
            "      kills named servers, and measures when they are back\n"
            "  bin/sderl shell ~ts\n"
            "      a shell on the node (Ctrl-G q leaves it); there, line by line:\n\n",
            [where() | lists:duplicate(4, lists:nth(First, Nodes))]
        ),
        lists:map(
            fun({Line, Answer}) ->
                io_lib:format("  ~ts~n      ~ts~n", [Line, Answer])
            end,
            tries(Group, Server, sderl_demo_layout:other_names(First, Layout))
        )
    ].

%% The commands must work as they are printed.
where() ->
    case os:getenv("SDERL_RUN_DIR", "") of
        "" -> "";
        Folder -> [", with SDERL_RUN_DIR=", Folder, " as here"]
    end.

-doc "How the nodes that stay up end.".
-spec leave() -> unicode:chardata().
leave() ->
    "\nA node that is killed comes back after some seconds. Ctrl-C here stops all nodes.\n".

tries(Group, {_, Name} = Server, Others) ->
    [
        {"s_group:own_s_groups().", "the groups of this node with their members"},
        {"nodes().", "the links it has: the members of its groups, and nobody else"},
        {
            io_lib:format("P = s_group:whereis_name(~p, ~p).", [Group, Name]),
            "a server of this group, read from this node's own table"
        },
        {
            io_lib:format("gen_server:call({via, s_group, ~p}, hit).", [Server]),
            io_lib:format("{~p,N}; N counts its calls", [Server])
        },
        {
            "exit(P, kill).",
            "kills it; now call it again: its supervisor has restarted it, and N is 1"
        }
    ] ++
        [
            {
                io_lib:format("sderl_route:call(~p, hit).", [Other]),
                "calls a server of a group that this node is not in, over the gateway: no new link"
            }
         || Other <- lists:sublist(Others, 1)
        ] ++
        [
            {
                io_lib:format("s_group:register_name(~p, me, self()).", [Group]),
                "yes: now every member of the group finds this shell under that name"
            },
            {"s_group:links().", "every link of this node, and why it is there"},
            {"s_group:info().", "all that the library knows"}
        ].
