%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profile).
-moduledoc """
Records the nodes of a fleet while a benchmark runs on them (`--prof DIR`), as `bin/sderl prof
record` records several nodes. It works over the fleet's control channel, so that it adds no links.
The nodes are on this machine, so their files need not be fetched.
""".

-export([option/0, check/2, around/4, format_error/1]).
-export([hold/2, release/0]).
-export_type([reason/0]).

-define(ROUNDS, 20).
-define(CALL_MS, 120_000).
%% The benchmark ends before that, or the recording ends when it is full.
-define(SECONDS, 86_400).
-define(BYTES, (1 bsl 30)).

-type reason() :: {record, node(), term()}.

-doc "The option of the command line.".
-spec option() -> argparse:argument().
option() ->
    #{
        name => prof, long => "-prof", type => string, required => false,
        help => {"[--prof DIR]", ["record all nodes of the one run into this folder, for "
                                  "\"bin/sderl prof open DIR\"; it slows the run down"]}
    }.

-doc "A recording is of one run, so `Runs` must be 1, and goes into an empty or a new folder.".
-spec check(Runs :: non_neg_integer(), #{atom() => term()}) ->
    ok | {error, sderl_command:text()}.
check(1, #{prof := Dir}) ->
    case file:list_dir(Dir) of
        {ok, [_ | _]} -> {error, ["--prof ", Dir, ": the folder is not empty; name another one"]};
        {error, Why} when Why =/= enoent ->
            {error, ["--prof ", Dir, ": ", file:format_error(Why)]};
        _ -> ok
    end;
check(Runs, #{prof := _}) ->
    {error, io_lib:format("--prof records one run, and these options are ~w runs: name one mode, "
                          "one number of nodes and one turn", [Runs])};
check(_, _) -> ok.

-doc """
The result of `Fun`; with `prof` in the parameters, all nodes are recorded meanwhile into that
folder. `prof_what` says what to record in the place of messages and garbage collections.
""".
-spec around(#{atom() => term()}, Fleet :: pid(), [node()], fun(() -> Result)) ->
    Result | {error, {prof, reason()}}.
around(#{prof := Given} = Params, Fleet, Nodes, Fun) ->
    Dir = filename:absname(Given),
    Folders = [{Node, filename:join(Dir, sderl_prof_cluster_index:folder_name(Node))}
               || Node <- Nodes],
    maybe
        What = maps:get(prof_what, Params, [messages, garbage_collection]),
        {ok, Groups} ?= begin_all(Fleet, Folders, What),
        First = clocks(Fleet, Nodes),
        try Fun() after release_all(Fleet, Nodes, Folders, Groups, First, Dir, What) end
    else
        {error, Why} -> {error, {prof, Why}}
    end;
around(_, _, _, Fun) -> Fun().

begin_all(Fleet, Folders, What) ->
    Options = #{what => What, senders => true, seconds => ?SECONDS, bytes => ?BYTES},
    Calls = [{Node, [Dir, Options]} || {Node, Dir} <- Folders],
    case sderl_bench_nodes:each(Fleet, Calls, ?MODULE, hold, ?CALL_MS) of
        {ok, Groups} -> {ok, Groups};
        {error, {hold, Node, Why}} ->
            _ = sderl_fleet:multicall(Fleet, [N || {N, _} <- Folders], ?MODULE, release, [],
                                      ?CALL_MS),
            {error, {record, Node, Why}}
    end.

%% Monotonic clocks of virtual machines on one machine, each with its own start.
clocks(Fleet, Nodes) ->
    #{Node => sample(Fleet, Node) || Node <- Nodes}.

sample(Fleet, Node) ->
    Rounds = [{Asked, Said, erlang:monotonic_time(nanosecond)}
              || _ <- lists:seq(1, ?ROUNDS),
                 Asked <- [erlang:monotonic_time(nanosecond)],
                 {_, {ok, Said}} <- sderl_fleet:multicall(Fleet, [Node], erlang, monotonic_time,
                                                          [nanosecond], ?CALL_MS)],
    case Rounds of
        [] -> none;
        _ -> sderl_prof_clock:sample(Rounds)
    end.

%% A node that does not answer any more is in the index too, as failed.
release_all(Fleet, Nodes, Folders, Groups, First, Dir, What) ->
    Last = clocks(Fleet, Nodes),
    Infos = maps:from_list(sderl_fleet:multicall(Fleet, Nodes, ?MODULE, release, [], ?CALL_MS)),
    {ok, #{items := Items}} = sderl_prof_options:plan(#{what => What}),
    Index = sderl_prof_cluster_index:new([atom_to_binary(Item) || Item <- Items], Folders),
    #{nodes := Entries} = Index,
    Of = maps:from_list(lists:zip(Nodes, Groups)),
    Known = lists:foldl(fun({Node, Entry}, Acc) ->
        Full = maps:merge(Entry#{groups := map_get(Node, Of),
                                 clock := clock(map_get(Node, First), map_get(Node, Last))},
                          ended(map_get(Node, Infos))),
        sderl_prof_cluster_index:put_node(Full, Acc)
    end, Index, lists:zip(Nodes, Entries)),
    case sderl_prof_cluster_index:write(Dir, Known) of
        ok -> ok;
        {error, Why} -> error({?MODULE, Why})
    end.

clock(none, _) -> null;
clock(First, Last) -> #{first => First, last => Last}.

ended({ok, {ok, #{began := Began, ended_at := At, ended := Ended, written := Written,
                  alias_bits := Bits}}}) ->
    #{state => recorded, began => Began, ended_at => At, written => Written,
      ended => unicode:characters_to_binary(io_lib:format("~0tp", [Ended])),
      alias_bits => case Bits of none -> null; _ -> Bits end};
ended(Other) ->
    #{state => failed, error => unicode:characters_to_binary(io_lib:format("~0tP", [Other, 10]))}.

-doc "The reason in words.".
-spec format_error(reason()) -> unicode:chardata().
format_error({record, Node, {error, Why}}) ->
    io_lib:format("--prof: ~ts is not recorded: ~ts", [Node, sderl_prof:format_error(Why)]);
format_error({record, Node, Why}) ->
    io_lib:format("--prof: ~ts is not recorded: ~0tP", [Node, Why, 10]).

%% ---------------------------------------------------------------- on the node

-doc "Begins to record this node; the recording ends with `release/0`. Gives the node's groups.".
-spec hold(file:filename(), map()) -> [binary()] | {error, term()}.
hold(Dir, Options) ->
    Self = self(),
    {Holder, Monitor} = spawn_monitor(fun() -> held(Self, Dir, Options) end),
    receive
        {Holder, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Holder, Why} -> {error, Why}
    end.

held(Caller, Dir, Options) ->
    case sderl_prof:record(node(), Options#{dir => Dir}) of
        {ok, Recording} ->
            true = register(?MODULE, self()),
            Caller ! {self(), sderl_prof_station:groups()},
            receive
                {release, From} -> From ! {?MODULE, sderl_prof:stop(Recording)}
            end;
        Error -> Caller ! {self(), Error}
    end.

-doc "Ends the recording.".
-spec release() -> {ok, sderl_prof_recorder:info()} | {error, term()}.
release() ->
    case whereis(?MODULE) of
        undefined -> {error, not_recorded};
        Holder ->
            Monitor = monitor(process, Holder),
            Holder ! {release, self()},
            receive
                {?MODULE, Answer} ->
                    true = demonitor(Monitor, [flush]),
                    Answer;
                {'DOWN', Monitor, process, _, Why} -> {error, Why}
            end
    end.
