%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_recover).
-moduledoc """
`bin/sderl recover`: `s_group:recover_majority/2` for a running cluster, from outside, as a hidden
node.

All members are looked at first: nothing is done while one that is to be removed still runs the
group, nor before a person has typed `yes`, or without `--yes`.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

-define(LOOK_MS, 10_000).
%% Longer than the two rounds of questions that the call asks.
-define(CALL_MS, 60_000).
-define(DECIDES_MS, 30_000).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "make the survivors all members of a majority group that lost its majority for good".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(arguments()).

-doc "An error when nothing was changed, or not on all survivors.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Parsed} ?= sderl_command:parse(Args, ["recover"], arguments()),
        {ok, Options} ?= check(Parsed),
        recover(Options)
    else
        {wrong, Message} ->
            {usage, [Message, "\n\"bin/sderl recover --help\" lists the options."]};
        Other ->
            Other
    end.

arguments() ->
    #{
        help =>
            """
            Use it when so many members of a majority group are lost for good that the others will
            never be a majority again. The survivors become the only members, the others are
            removed, and writes go on with the survivors' state. Name all survivors: writes that
            only the others have are lost.

              bin/sderl recover --node a@h --group shop --survivors a@h,b@h --dry-run

            Be sure that the others are down, and that they are removed or wiped before they run
            again: if they are only cut off, both sides decide from then on. This program asks all
            members, and changes nothing if one of the others still runs the group; it cannot see a
            member that it cannot reach. The nodes' epmd is found by ERL_EPMD_PORT, TLS is set by
            ERL_FLAGS, as for erl.
            """,
        arguments => [
            option(node, "NODE@HOST", string, "one of the survivors, which is asked to do it"),
            option(group, "GROUP", string, "the group, an Erlang term"),
            option(survivors, "LIST", string,
                   "all members that are left, with commas between them"),
            option(cookie_file, "FILE", string, "the file with the cookie (~/.erlang.cookie)"),
            flag(dry_run, "show what would be done, and change nothing"),
            flag(yes, "do not ask")
        ]
    }.

%% ---------------------------------------------------------------- what was typed

check(Parsed) ->
    maybe
        {ok, Node} ?= read(node, Parsed, fun sderl_cli_attach:node_name/1,
                           "one of the survivors, NAME@HOST"),
        {ok, Group} ?= read(group, Parsed, fun read_group/1, "the group that lost its majority"),
        {ok, Survivors} ?= read(survivors, Parsed, fun read_nodes/1,
                                "all members that are left, with commas between them"),
        ok ?= check_survivor(Node, Survivors),
        ok ?= sderl_command:may_ask(Parsed),
        {ok, (maps:with([yes, dry_run], Parsed))#{
            node => Node,
            group => Group,
            survivors => Survivors,
            cookie_file => sderl_cli_attach:cookie_file(Parsed)
        }}
    else
        {error, Message} -> {wrong, Message}
    end.

read(Key, Parsed, Read, What) ->
    case Parsed of
        #{Key := Text} ->
            case Read(Text) of
                {ok, _} = Ok -> Ok;
                {error, Why} -> {error, ["--", atom_to_list(Key), ": ", Why]}
            end;
        #{} ->
            {error, ["--", atom_to_list(Key), " is missing: ", What]}
    end.

read_group(Text) ->
    case sderl_cli_words:term(Text) of
        {ok, undefined} -> {error, "free names (undefined) are of no group; each side has its own"};
        Other -> Other
    end.

read_nodes(Text) -> read_nodes(sderl_bench_experiment:words(Text), []).

read_nodes([], Nodes) ->
    {ok, lists:usort(Nodes)};
read_nodes([Word | Words], Nodes) ->
    case sderl_cli_attach:node_name(Word) of
        {ok, Node} -> read_nodes(Words, [Node | Nodes]);
        Error -> Error
    end.

check_survivor(Node, Survivors) ->
    case lists:member(Node, Survivors) of
        true -> ok;
        false ->
            {error, io_lib:format("--survivors must name ~ts too, the node that is asked to do it",
                                  [Node])}
    end.

%% ---------------------------------------------------------------- the members

recover(#{node := Node, group := Group, survivors := Survivors, cookie_file := File} = Options) ->
    maybe
        {ok, Cookie} ?= sderl_cli_attach:cookie(File),
        ok ?= sderl_cli_attach:attach(Node, Cookie, "sderl-recover"),
        {ok, Members} ?= members(Node, Group),
        ok ?= check_members(Group, Survivors, Members),
        Seen = look_at(Members, Group),
        ok = io:put_chars([
            io_lib:format("group ~0tp, as ~ts knows it: ~w members~n",
                          [Group, Node, length(Members)]),
            [line(Member, lists:member(Member, Survivors), Look) || {Member, Look} <- Seen]
        ]),
        ok ?= check_lost([Seer || {Member, _} = Seer <- Seen, not lists:member(Member, Survivors)]),
        ok ?= check_survivors([Seer
                               || {Member, _} = Seer <- Seen, lists:member(Member, Survivors)]),
        agreed(Options, Members)
    end.

members(Node, Group) ->
    case look(Node, Group) of
        {member, #{consistency := majority, members := Members}} ->
            {ok, Members};
        {member, #{consistency := available}} ->
            {error, io_lib:format(
                "group ~0tp has the consistency available: each side of it writes, and there is no "
                "majority to "
                "recover; s_group:remove_nodes/2 takes out nodes that are lost", [Group]
            )};
        {no_member, []} ->
            {error,
             io_lib:format("~ts is no member of a group ~0tp, nor of any other", [Node, Group])};
        {no_member, Others} ->
            {error, io_lib:format("~ts is no member of a group ~0tp; its groups are ~ts",
                                  [Node, Group, terms(Others)])};
        Look ->
            {error, io_lib:format("~ts ~ts", [Node, said(Look)])}
    end.

terms(Terms) -> lists:join(", ", [io_lib:format("~0tp", [Term]) || Term <- Terms]).

check_members(Group, Survivors, Members) ->
    case {Survivors -- Members, Members -- Survivors} of
        {[], [_ | _]} -> ok;
        {[], []} ->
            {error, "nobody is lost: all members are among the --survivors, and decide when all of "
                    "them are back"};
        {Others, _} ->
            {error, io_lib:format("--survivors: ~ts, no member of ~0tp; its members are ~ts",
                                  [terms(Others), Group, terms(Members)])}
    end.

look(Node, Group) ->
    [{Node, Look}] = look_at([Node], Group),
    Look.

%% The answers of these nodes about the group.
look_at(Nodes, Group) ->
    Answers = erpc:multicall(Nodes, s_group, info, [], ?LOOK_MS),
    [{Node, read_answer(Answer, Group)} || {Node, Answer} <- lists:zip(Nodes, Answers)].

read_answer({ok, Info}, Group) when is_list(Info) ->
    Groups = proplists:get_value(groups, Info, []),
    case [State || #{group := Name} = State <- Groups, Name =:= Group] of
        [#{error := _}] -> silent;
        [#{consistency := _, members := _, majority := _} = State] -> {member, State};
        [_] -> other_version;
        [] -> {no_member, lists:delete(Group, proplists:get_value(own_group_names, Info, []))}
    end;
read_answer({ok, {error, _}}, _) -> not_running;
read_answer({error, {exception, undef, [{s_group, _, _, _} | _]}}, _) -> not_running;
read_answer({error, {erpc, timeout}}, _) -> silent;
read_answer({error, {erpc, _}}, _) -> unreachable;
read_answer(_, _) -> silent.

line(Node, IsSurvivor, Look) ->
    Role = case IsSurvivor of true -> "survivor"; false -> "removed" end,
    io_lib:format("  ~ts  ~-8ts  ~ts~n", [Node, Role, said(Look)]).

said({member, #{majority := true}}) -> "runs the group and has a majority";
said({member, #{consistency := majority}}) -> "runs the group without a majority";
said({member, _}) -> "runs a group of that name with the consistency available";
said({no_member, _}) -> "is up and does not know the group";
said(not_running) -> "is up without the application sderl";
said(other_version) -> "runs a release of sderl without majority groups";
said(silent) -> "does not answer in time";
said(unreachable) -> "is not reached from here".

%% A member that is alive could go on deciding with others that cannot be reached from here.
check_lost(Lost) ->
    case [Node || {Node, Look} <- Lost, is_alive(Look)] of
        [] -> ok;
        Alive ->
            {error, [
                "nothing was changed: ", terms(Alive),
                " would be removed and still runs the group, or may; stop the "
                "application or the node there, or name it among the --survivors"
            ]}
    end.

is_alive({member, _}) -> true;
is_alive(silent) -> true;
is_alive(_) -> false.

check_survivors(Survivors) ->
    case [Node || {Node, Look} <- Survivors, not is_without_majority(Look)] of
        [] -> ok;
        Nodes ->
            {error, [
                "nothing was changed: every survivor has to run the group, without a majority, and "
                "this does not hold of ",
                terms(Nodes)
            ]}
    end.

is_without_majority({member, #{consistency := majority, majority := false}}) -> true;
is_without_majority(_) -> false.

%% ---------------------------------------------------------------- the call

agreed(#{dry_run := true}, _) ->
    io:put_chars("It could be done. Nothing was changed.\n");
agreed(#{survivors := Survivors} = Options, Members) ->
    maybe
        ok ?= confirmed(Options, Members -- Survivors),
        call(Options)
    end.

confirmed(#{yes := true}, _) ->
    ok;
confirmed(_, Lost) ->
    sderl_command:confirm(
        ["Are ", terms(Lost), " down, and will they be removed or wiped before they run again?"],
        "nothing was changed"
    ).

call(#{node := Node, group := Group, survivors := Survivors}) ->
    try
        erpc:call(Node, s_group, recover_majority, [Group, Survivors], ?CALL_MS)
    of
        ok -> await_decision(Node, Group);
        {error, Reason} -> {error, refusal(Reason)}
    catch
        error:{erpc, Reason} ->
            {error, io_lib:format("~ts did not answer (~0tp): nobody here knows whether it was "
                                  "done; look with --dry-run", [Node, Reason])};
        Class:Reason ->
            {error, io_lib:format("~ts raised ~0tP", [Node, {Class, Reason}, 20])}
    end.

refusal({refused, Whys}) ->
    ["nothing was changed: ", whys(Whys)];
refusal({incomplete, Whys}) ->
    [
        "not all survivors did it: ", whys(Whys),
        "; call it again with those that are left, unless these have a majority by now"
    ];
refusal(Reason) ->
    io_lib:format("nothing was changed: ~0tp", [Reason]).

whys(Whys) ->
    lists:join(", ", [io_lib:format("~ts: ~ts", [Node, why(Why)]) || {Node, Why} <- Whys]).

why(has_majority) -> "has a majority";
why(available_mode) -> "runs a group of that name with the consistency available";
why(not_member) -> "is no member";
why(not_running) -> "is up without the application sderl";
why(unreachable) -> "does not answer";
why(Why) -> io_lib:format("~0tp", [Why]).

%% The operator wants to see that the group writes again.
await_decision(Node, Group) ->
    Decides = fun() ->
        case look(Node, Group) of
            {member, #{majority := true, members := Members}} ->
                io:put_chars(io_lib:format("Done: ~0tp decides again, with ~ts.~n",
                                           [Group, terms(Members)]));
            Look ->
                Look
        end
    end,
    case sderl_fleet:await(Decides, ?DECIDES_MS) of
        ok ->
            ok;
        {error, {timeout, Look}} ->
            {error, io_lib:format("it was done, but ~ts still ~ts; see the problems of "
                                  "s_group:info() there",
                                  [Node, said(Look)])}
    end.
