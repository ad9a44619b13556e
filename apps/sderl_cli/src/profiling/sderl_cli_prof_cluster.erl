%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_cluster).
-moduledoc "`bin/sderl prof` with several nodes: recording them at once, fetching, the report.".

-export([arguments/0, is_several/1, wanted/3, until_stopped/4]).
-export([record/4, fetch/1, open/2, report/1, export/2]).

-import(sderl_command, [option/4, flag/2]).

-define(PREFIX, "sderl-prof").
-define(FETCH_PREFIX, "sderl-fetch").

-doc "The arguments that name one or several nodes.".
-spec arguments() -> [argparse:argument()].
arguments() ->
    [
        #{name => node, type => string, required => false,
          help => {"[NODE]", ["the node, NAME@HOST"]}},
        (option(nodes, "NODE", string, "another node; may be given several times"))#{
            long => "-node", action => append,
            help => {"[--node NODE ...]", ["a node, or one more; may be given several times"]}
        },
        flag(all, "all nodes that are linked to the first one, directly or over others"),
        option(group, "NAME", string, "the members of this s_group of the first node"),
        sderl_cli_attach:cookie_argument()
    ].

-doc "Whether the arguments name more than one node.".
-spec is_several(#{atom() => term()}) -> boolean().
is_several(Parsed) ->
    length(named(Parsed)) > 1 orelse is_map_key(group, Parsed) orelse map_get(all, Parsed).

named(Parsed) -> [Node || #{node := Node} <- [Parsed]] ++ maps:get(nodes, Parsed, []).

-doc "Records them into the folder `Dir`, by options of `m:sderl_prof_options`.".
-spec record([node()], Dir :: file:filename(), sderl_prof_options:options(), #{atom() => term()}) ->
    sderl_command:result().
record([First | _] = Named, Dir, Options, Parsed) ->
    maybe
        {ok, Cookie} ?= sderl_cli_attach:cookie(sderl_cli_attach:cookie_file(Parsed)),
        ok ?= sderl_cli_attach:become(First, Cookie, ?PREFIX),
        {ok, Nodes} ?= wanted(Named, Cookie, Parsed),
        There = #{node_dir => Path || #{node_out := Path} <- [Parsed]},
        Wanted = maps:merge(Options#{dir => Dir}, There),
        {ok, Ready} ?= done(sderl_prof_cluster:prepare(Nodes, Wanted)),
        say([sderl_cli_prof_cluster_show:costs(sderl_prof_cluster:costs(Ready)),
             sderl_cli_prof_cluster_show:failures(sderl_prof_cluster:failures(Ready))]),
        {ok, Begun} ?= done(sderl_prof_cluster:start(Ready)),
        Self = self(),
        {ok, Index} ?= done(until_stopped("recording", maps:get(seconds, Options, 10),
                                          fun() -> sderl_prof_cluster:stop(Self, Begun) end,
                                          fun() -> sderl_prof_cluster:await(Begun) end)),
        say(sderl_cli_prof_cluster_show:recorded(Index, Dir)),
        is_whole(Index)
    end.

say(Text) -> io:put_chars(sderl_visible:text(Text)).

done({error, Why}) -> {error, sderl_prof_cluster:format_error(Why)};
done(Fine) -> Fine.

-doc """
The nodes that the arguments mean: those that are named, and with `--all` or `--group` further ones
that the first one knows, also those that do not answer. This program has to be a node.
""".
-spec wanted([node(), ...], Cookie :: atom(), #{atom() => term()}) ->
    {ok, [node(), ...]} | {error, sderl_command:text()}.
wanted([First | _] = Named, Cookie, Parsed) ->
    case Parsed of
        #{all := true} ->
            maybe
                ok ?= connected(First, Cookie),
                {Found, Lost} = sderl_cli_attach:discover(First),
                {ok, lists:usort(Named ++ Found ++ Lost)}
            end;
        #{group := Group} ->
            maybe
                ok ?= connected(First, Cookie),
                {ok, Members} ?= members(First, Group),
                {ok, lists:usort(Named ++ Members)}
            end;
        _ -> {ok, Named}
    end.

connected(Node, Cookie) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        %% Its error tells what to do.
        _ -> sderl_cli_attach:attach(Node, Cookie, ?PREFIX)
    end.

members(Node, Group) ->
    case sderl_prof_reach:call(Node, s_group, own_nodes, [list_to_atom(Group)], 10_000) of
        [_ | _] = Members -> {ok, Members};
        [] -> {error, io_lib:format("~ts is in no group ~ts", [Node, Group])};
        _ -> {error, io_lib:format("~ts runs without groups: name the nodes, or use --all", [Node])}
    end.

-doc """
The result of `Await`, with a progress bar for so many seconds meanwhile. Ctrl-C calls `Stop`, in
another process, after which `Await` is expected to return.
""".
-spec until_stopped(Label :: string(), Seconds :: number(), Stop :: fun(() -> term()),
                    Await :: fun(() -> Result)) -> Result.
until_stopped(Label, Seconds, Stop, Await) ->
    Listener = spawn_link(fun() -> receive {sderl_signals, stop} -> Stop() end end),
    _ = sderl_signals:tell(Listener),
    Result = sderl_progress:during(Label, max(1, round(1000 * Seconds)), Await),
    true = unlink(Listener),
    true = exit(Listener, kill),
    Result.

is_whole(Index) ->
    case sderl_prof_cluster:failures(Index) of
        [] -> ok;
        Failures ->
            {error, io_lib:format("~b of ~b nodes failed",
                                  [length(Failures), length(map_get(nodes, Index))])}
    end.

%% ---------------------------------------------------------------- fetch

-doc "Fetches what is not in the folder.".
-spec fetch(#{atom() => term()}) -> sderl_command:result().
fetch(#{file := Dir} = Parsed) ->
    maybe
        {ok, #{nodes := [#{node := First} | _]}} ?= indexed(sderl_prof_cluster_index:read(Dir)),
        {ok, Node} ?= sderl_cli_attach:node_name(unicode:characters_to_list(First)),
        {ok, Cookie} ?= sderl_cli_attach:cookie(sderl_cli_attach:cookie_file(Parsed)),
        ok ?= sderl_cli_attach:become(Node, Cookie, ?FETCH_PREFIX),
        {ok, Results} ?= indexed(sderl_prof_fetch:fetch(Dir, #{
            progress => shown(), remove => map_get(remove, Parsed)
        })),
        ok = sderl_progress:done(),
        say(sderl_cli_prof_cluster_show:fetched(Results)),
        %% Of a node that was not recorded there is nothing to fetch.
        case [Failed || {Failed, {error, Why}} <- Results, Why =/= not_recorded] of
            [] ->
                say(["bin/sderl prof report ", Dir, "\n"]),
                ok;
            Those ->
                {error, io_lib:format("~b of ~b nodes failed", [length(Those), length(Results)])}
        end
    end.

indexed({ok, #{nodes := []}}) -> {error, "the recording has no nodes"};
indexed({error, Why}) -> {error, sderl_prof_cluster_index:format_error(Why)};
indexed(Fine) -> Fine.

%% Several nodes are fetched at a time; the bar is that of all that have begun.
shown() ->
    Show = sderl_progress:reporter("fetching"),
    Table = ets:new(fetching, [public]),
    fun(Node, Here, All) ->
        true = ets:insert(Table, {Node, Here, All}),
        {Done, Total} = ets:foldl(fun({_, H, A}, {D, T}) -> {D + H, T + A} end, {0, 0}, Table),
        Show(Done, max(1, Total))
    end.

%% ---------------------------------------------------------------- open, report, export

-doc "The book in which all nodes are on one time line.".
-spec open(Dir :: file:filename(), map()) ->
    {ok, file:filename_all()} | {error, sderl_command:text()}.
open(Dir, Options) ->
    case sderl_prof_cluster_book:open(Dir, Options) of
        {ok, Book} -> {ok, Book};
        {error, Why} -> {error, sderl_prof_cluster_report:format_error(Why)}
    end.

-doc "What the recording in a folder says.".
-spec report(#{atom() => term()}) -> sderl_command:result().
report(#{file := Dir} = Parsed) ->
    Show = sderl_progress:reporter("analysing"),
    Options = (maps:with([top, parts], Parsed))#{progress => Show},
    Made = sderl_prof_cluster_report:make(Dir, Options),
    ok = sderl_progress:done(),
    case Made of
        {ok, Report} ->
            case Parsed of
                #{json := true} -> io:put_chars([json:encode(Report), $\n]);
                _ -> say(sderl_cli_prof_cluster_show:report(Report, Dir))
            end;
        {error, Why} -> {error, sderl_prof_cluster_report:format_error(Why)}
    end.

-doc "All nodes on one time line, for Perfetto.".
-spec export(Dir :: file:filename(), Out :: file:filename()) -> sderl_command:result().
export(Dir, Out) ->
    maybe
        {ok, _, Books, _} ?= sderl_prof_cluster_book:books(Dir, #{}),
        {ok, Joined} ?= sderl_prof_joined:open(Books, fun(_, _) -> ok end),
        case sderl_prof_export:write_joined(Joined, Out) of
            ok -> ok;
            {error, Failed} -> {error, sderl_prof_export:format_error(Failed)}
        end
    else
        {error, Why} -> {error, sderl_prof_cluster_report:format_error(Why)}
    end.
