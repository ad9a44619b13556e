%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_plan).
-moduledoc """
`bin/sderl plan`: which groups for so many nodes, and what they cost: a table, a picture, a file
that `sderl_pattern:read/1` reads, launch configuration. No node is started.

With `--pattern` the plan is that of `m:sderl_pattern`, and the limits are checked; without it
`m:sderl_plan` chooses.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4]).

%% The number of members that the guide recommends.
-define(USUAL_GROUP, 30).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "plan groups for a number of nodes, with their cost in links and hops".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(arguments()).

-doc """
Makes, prints and draws a plan. A usage error where the options, or the limits, contradict each
other.
""".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    case sderl_command:parse(Args, ["plan"], arguments()) of
        {ok, Options} -> planned(Options);
        Other -> Other
    end.

arguments() ->
    Whole = {integer, [{min, 1}]},
    #{
        help =>
            """
            Plans groups of nodes: which nodes are in which group, and which nodes, the gateways,
            tie groups together. Prints the plan with the links of a node, the hops between nodes,
            and the nodes whose loss parts groups. Without --pattern it chooses the plan that suits
            the limits best; where neither --max-group nor --max-links is given, either, no group
            has more than 30 members.
            """,
        arguments => [
            #{name => nodes, long => "-nodes", type => string,
              help => {"--nodes N|FILE",
                       ["how many nodes, or a file with their names: words, or Erlang terms"]}},
            option(pattern, "P", string, "star, tree, ring, chain, grid, or auto (auto)"),
            option(group_size, "S", Whole, "most members of a group"),
            option(groups, "G", Whole, "how many groups, in place of --group-size"),
            option(gateways, "K", Whole, "gateways of an edge; in a star, of a group (1; auto: 2)"),
            option(hubs, "H", Whole, "star: how many hubs share the gateways of each group (1)"),
            option(branching, "B", {integer, [{min, 2}]}, "tree: nodes below each node"),
            option(levels, "L", {integer, [{min, 2}]}, "tree: levels, the bottom included"),
            option(leaves, "N", Whole, "tree: groups below each lowest node (branching)"),
            option(remainder, "R", string,
                   "what to do with nodes that are over: spread, last, error or left_out (spread)"),
            option(max_links, "N", Whole, "limit: links of a node"),
            option(max_group, "N", Whole,
                   "limit: members of a group, of a hub too (30 without any limit)"),
            option(traffic, "FILE", string, "messages: {FromNodes, ToNodes, PerSecond}. a line; "
                                            "nodes that talk go together"),
            option(names_per_node, "N", Whole,
                   "names that each node registers; predicts how many a node holds"),
            option(svg, "FILE", string, "draw the plan"),
            option(out, "FILE", string, "write the plan for sderl_pattern:read/1"),
            option(config, "FILE", string, "write the plan as a sys.config"),
            option(json, "FILE|-", string,
                   "the prediction as a line of JSON into a file, or to stdout (-)")
        ]
    }.

planned(Options0) ->
    Started = sderl_bench_output:now(),
    maybe
        {ok, Chosen} ?= choices(Options0),
        {Options, Assumed} = assume_limits(Chosen),
        {ok, Nodes} ?= given_nodes(Options),
        {ok, Traffic} ?= traffic(Options, Nodes),
        {ok, Plan, Prediction} ?= plan(Nodes, maps:merge(Options, Traffic)),
        {ok, Output} ?= sderl_bench_output:open(maps:get(json, Options, undefined)),
        ok = sderl_bench_output:say(Output, [sderl_plan_draw:text(Plan, Prediction), Assumed]),
        Written = sderl_bench_output:write(Output, result(Options, Plan, Prediction, Started)),
        Closed = sderl_bench_output:close(Output),
        first_error([Written, Closed | files(Plan, Options, Output)])
    else
        {error, {reason, Reason}} -> {usage, sderl_plan:format_error(Reason)};
        {error, Message} -> {error, Message};
        {usage, Message} -> {usage, Message}
    end.

%% Without a limit one group of all nodes would be the best plan, which is a full mesh.
assume_limits(#{pattern := Pattern} = Options) when Pattern =/= auto -> {Options, ""};
assume_limits(#{max_group := _} = Options) -> {Options, ""};
assume_limits(#{max_links := _} = Options) -> {Options, ""};
assume_limits(Options) ->
    Most = integer_to_list(?USUAL_GROUP),
    {Options#{max_group => ?USUAL_GROUP}, [
        "limit          none was given: at most ", Most, " members of a group, where up to ", Most,
        " suit most;\n"
        "               --max-group N and --max-links N say otherwise\n"
    ]}.

first_error(Results) ->
    case [E || {error, _} = E <- Results] of
        [] -> ok;
        [Error | _] -> Error
    end.

%% ---------------------------------------------------------------- input

%% A plan of more nodes takes minutes.
-define(MOST, 5000).

-define(PATTERNS, #{"auto" => auto, "star" => star, "tree" => tree, "ring" => ring,
                    "chain" => chain, "grid" => grid}).
-define(REMAINDERS,
    #{"spread" => spread, "last" => last, "error" => error, "left_out" => left_out}).

%% A word as one of those that are known.
choices(Options0) ->
    lists:foldl(fun
        ({Key, Known, Text}, {ok, Options}) when is_map_key(Key, Options) ->
            Word = map_get(Key, Options),
            case Known of
                #{Word := Atom} -> {ok, Options#{Key := Atom}};
                _ -> {usage, [flag(Key), " cannot be ", Word, ": it is ", Text]}
            end;
        (_, Result) -> Result
    end, {ok, Options0}, [{pattern, ?PATTERNS, "star, tree, ring, chain, grid or auto"},
                          {remainder, ?REMAINDERS, "spread, last, error or left_out"}]).

given_nodes(Options) when not is_map_key(nodes, Options) ->
    {usage, "how many nodes? --nodes N, or a file with their names"};
given_nodes(#{nodes := Text}) ->
    case string:to_integer(Text) of
        {N, []} when is_integer(N), N >= 1, N =< ?MOST ->
            {ok, [list_to_atom("n" ++ integer_to_list(I) ++ "@host") || I <- lists:seq(1, N)]};
        {N, []} when is_integer(N) ->
            {usage, io_lib:format("--nodes cannot be ~b: it is a number from 1 to ~b, or a file",
                                  [N, ?MOST])};
        _ -> names(Text)
    end.

%% Made into atoms: it is the user's own list.
names(File) ->
    maybe
        {ok, Text} ?= read(File, "--nodes"),
        {ok, Names} ?= case file:consult(File) of
            {ok, Terms} -> {ok, flatten(Terms)};
            {error, _} ->
                {ok, [list_to_atom(W) || W <- string:lexemes(uncommented(Text), " \t\r\n,")]}
        end,
        case {[N || N <- Names, not is_atom(N)],
              [N || N <- Names, is_atom(N), string:find(atom_to_list(N), "@") =:= nomatch],
              length(Names)} of
            {[], [], L} when L >= 1, L =< ?MOST -> {ok, Names};
            {[], [], L} ->
                {usage, io_lib:format("~ts has ~b names: it may have 1 to ~b", [File, L, ?MOST])};
            {[Bad | _], _, _} ->
                {usage, io_lib:format("~ts: ~0tp is no name of a node", [File, Bad])};
            {_, [Bad | _], _} ->
                {usage, io_lib:format("~ts: ~0tp is no name of a node: it lacks the @ and the host",
                                      [File, Bad])}
        end
    end.

%% Lists in lists, whatever else is in them.
flatten(Terms) when length(Terms) >= 0 -> lists:append([flatten(Term) || Term <- Terms]);
flatten(Term) -> [Term].

uncommented(Text) ->
    lists:flatten([[hd(string:split(Line, "#")), "\n"] || Line <- string:split(Text, "\n", all)]).

read(File, Option) ->
    case file:read_file(File) of
        {ok, Bytes} ->
            case unicode:characters_to_list(Bytes) of
                Text when is_list(Text) -> {ok, Text};
                _ -> {usage, [Option, ": ", File, " is not UTF-8"]}
            end;
        {error, Why} ->
            {usage, io_lib:format("~ts: ~ts is neither a number nor a file that can be read: ~ts",
                                  [Option, File, file:format_error(Why)])}
    end.

traffic(#{traffic := File}, Nodes) ->
    maybe
        {ok, Lines} ?= traffic_lines(File),
        ok ?= each_line(fun is_traffic/1, Lines, File),
        ok ?= each_line(fun(Row) -> are_known(Row, Nodes) end, Lines, File),
        {ok, #{traffic => [Row || {_, Row} <- Lines]}}
    end;
traffic(_, _) -> {ok, #{}}.

%% The rows with the lines of the file on which they are.
traffic_lines(File) ->
    case file:open(File, [read, {encoding, utf8}]) of
        {ok, Device} ->
            Read = rows(Device, File, 1, []),
            ok = file:close(Device),
            Read;
        {error, Why} ->
            {usage, ["--traffic: cannot read ", File, ": ", file:format_error(Why)]}
    end.

rows(Device, File, Line, Rows) ->
    case io:read(Device, "", Line) of
        {ok, Term, Next} ->
            rows(Device, File, Next, [{Line, Row} || Row <- lists:reverse(listed(Term))] ++ Rows);
        {eof, _} ->
            {ok, lists:reverse(Rows)};
        {error, {At, _, _}, _} ->
            wrong_line(File, At,
                       "this is no Erlang term; rows are such as {a@host, [b@host, c@host], 100}.");
        {error, _} ->
            wrong_line(File, Line, "this is no text in UTF-8; rows are such as {a@host, [b@host, "
                                   "c@host], 100}.")
    end.

%% All rows may be in one list.
listed([First | Rest]) -> listed(First) ++ listed(Rest);
listed([]) -> [];
listed(Row) -> [Row].

is_traffic(Row) ->
    case sderl_plan:predict(empty(), #{traffic => [Row]}) of
        {ok, _} -> ok;
        {error, Reason} -> {error, sderl_plan:format_error(Reason)}
    end.

%% A misspelt name would be left out in silence.
are_known({From, To, _}, Nodes) ->
    case lists:usort(lists:flatten([From, To])) -- Nodes of
        [] -> ok;
        [Stranger | _] ->
            {error, io_lib:format("~0tp is not among the nodes of --nodes", [Stranger])}
    end.

each_line(_, [], _) ->
    ok;
each_line(Check, [{Line, Row} | Lines], File) ->
    case Check(Row) of
        ok -> each_line(Check, Lines, File);
        {error, Why} -> wrong_line(File, Line, Why)
    end.

wrong_line(File, Line, Why) ->
    {usage, ["--traffic: ", File, io_lib:format(", line ~w: ", [Line]), Why]}.

empty() ->
    #{version => 1, pattern => chain, options => #{}, groups => [], edges => [], left_out => []}.

%% ---------------------------------------------------------------- the plan

plan(Nodes, #{pattern := Pattern} = Options) when Pattern =/= auto ->
    Order = case Options of #{traffic := T} -> #{order => {traffic, T}}; _ -> #{} end,
    Given = maps:merge(Order, maps:without([max_links, max_group], shape(Options))),
    maybe
        ok ?= fits(Pattern, Given),
        {ok, Plan} ?= reason(sderl_pattern:new(Pattern, Nodes, Given)),
        {ok, Prediction} ?=
            reason(sderl_plan:predict(Plan, maps:with([traffic, names_per_node], Options))),
        ok ?= reason(sderl_plan:within(Prediction, maps:with([max_links, max_group], Options))),
        {ok, Plan, Prediction}
    end;
plan(Nodes, Options) ->
    case maps:keys(maps:with([groups, group_size, hubs, branching, levels, leaves, remainder],
                             Options)) of
        [] ->
            case sderl_plan:propose(Nodes, maps:with(
                [max_links, max_group, gateways, traffic, names_per_node], Options
            )) of
                {ok, Plan, Prediction} -> {ok, Plan, Prediction};
                Error -> reason(Error)
            end;
        [Key | _] ->
            {usage,
             [flag(Key),
              " is for one pattern: give --pattern too, or a limit (--max-group, --max-links)"]}
    end.

reason({error, Reason}) -> {error, {reason, Reason}};
reason(Other) -> Other.

shape(Options) ->
    maps:from_list([{key(K), V}
                    || K := V <- maps:with([group_size, groups, gateways, hubs, branching, levels,
                                            leaves, remainder], Options)]).

key(group_size) -> size;
key(Key) -> Key.

%% The missing options, and those of another pattern.
fits(tree, Options) when not is_map_key(branching, Options) ->
    {usage, "--pattern tree needs --branching"};
fits(_, #{size := _, groups := _}) ->
    {usage, "--group-size and --groups decide each other: leave one of them out"};
fits(Pattern, Options)
  when Pattern =/= tree, not is_map_key(size, Options), not is_map_key(groups, Options) ->
    {usage, ["--pattern ", atom_to_list(Pattern), " needs --group-size or --groups"]};
fits(Pattern, Options) ->
    Of = #{hubs => star, branching => tree, levels => tree, leaves => tree},
    case [{K, map_get(K, Of)}
          || K <- maps:keys(Options), is_map_key(K, Of), map_get(K, Of) =/= Pattern] of
        [] -> ok;
        [{Key, Other} | _] ->
            {usage, [flag(Key), " is for --pattern ", atom_to_list(Other), ", not ",
                     atom_to_list(Pattern)]}
    end.

flag(Key) -> ["--", string:replace(atom_to_list(Key), "_", "-", all)].

%% ---------------------------------------------------------------- output

result(Options, #{pattern := Pattern, options := Shape, groups := Groups}, Prediction, Started) ->
    Params = (maps:with([max_links, max_group], Options))#{
        pattern => Pattern,
        options => maps:without([order, name, names], Shape),
        nodes => map_get(nodes, Prediction)
    },
    #{links := #{max := LMax, mean := LMean},
      hops := #{max := HMax, mean := HMean, unreachable := Lost}, single_points := Single,
      group_size := Size} = Prediction,
    Metrics = maps:merge(maps:with([traffic, names, gateways, groups], Prediction), #{
        links_per_node_max => LMax, links_per_node_mean => LMean,
        mesh_links_per_node => map_get(mesh_links, Prediction), hops_max => HMax,
        hops_mean => HMean, unreachable_pairs => Lost div 2, single_points => length(Single),
        group_size => Size, workers => length([w || #{role := workers} <- Groups])
    }),
    sderl_bench_output:result(plan, Params, Metrics, Started).

files(Plan, Options, Output) ->
    [write(Key, map_get(Key, Options), Plan, Output)
     || Key <- [svg, out, config], is_map_key(Key, Options)].

write(Key, File, Plan, Output) ->
    Written = case Key of
        svg ->
            write_text(File, sderl_plan_draw:svg(Plan));
        config ->
            Terms = io_lib:format("[{sderl, [~tp]}].~n", [sderl_pattern:config(Plan)]),
            write_text(File, sderl_visible:erlang(Terms));
        out -> sderl_pattern:write(File, Plan)
    end,
    case Written of
        ok -> sderl_bench_output:say(Output, [atom_to_list(Key), ": ", File, "\n"]);
        {error, {cannot_write, _, _} = Reason} -> {error, sderl_plan:format_error(Reason)};
        {error, Why} -> {error, ["cannot write ", File, ": ", file:format_error(Why)]}
    end.

write_text(File, Text) -> file:write_file(File, unicode:characters_to_binary(Text)).
