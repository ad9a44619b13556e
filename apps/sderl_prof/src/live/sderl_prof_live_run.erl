%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_live_run).
-moduledoc """
The process of one profile of a running cluster, for `m:sderl_prof_live`: makes the nodes ready,
samples or records them, fetches, and analyses. It owns what runs on the nodes, which ends with it;
it ends with the process that began it.

It casts messages to that process (`t:message/0`).
""".

-export([start_link/1, confirm/1, withdraw/1]).
-export_type([work/0, message/0, change/0]).

%% A node has so long to answer a question.
-define(WAIT_MS, 20_000).
%% Somebody who has seen the cost has so long to begin it.
-define(CONFIRM_MS, 120_000).
%% On the nodes; it is gone when the files have come.
-define(THERE, "/tmp/sderl-prof-").

-doc """
`dir`: the folder of all profiles. `connect` makes a link to a node; `may_load`: whether modules may
be loaded into nodes that lack them.
""".
-type work() :: #{
    server := pid(),
    id := binary(),
    dir := file:filename(),
    request := sderl_prof_live_request:request(),
    connect := fun((node()) -> ok | {error, unicode:chardata()}),
    may_load := fun(() -> boolean())
}.

-doc """
`told`: what has changed of the profile. `stops`: the function ends the profile before its time, and
has to be called by another process.
""".
-type message() :: {told, Id :: binary(), change()}
    | {stops, Id :: binary(), fun(() -> term())}.
-doc "The fields of `t:sderl_prof_live_store:profile/0` that have changed.".
-type change() :: #{
    state := ready | running | ending | ended | failed,
    began => integer(),
    costs => [sderl_prof_live_store:cost()],
    problems => [sderl_prof_live_store:problem()],
    why => binary(),
    stopped => true,
    book => binary()
}.

-doc "Begins.".
-spec start_link(work()) -> pid().
start_link(Work) -> spawn_link(fun() -> run(Work) end).

-doc "Begins to record, after the trial has shown the cost.".
-spec confirm(pid()) -> ok.
confirm(Pid) ->
    Pid ! ?FUNCTION_NAME,
    ok.

-doc "Ends it before anything is sampled or recorded.".
-spec withdraw(pid()) -> ok.
withdraw(Pid) ->
    Pid ! ?FUNCTION_NAME,
    ok.

run(#{request := #{kind := Kind, nodes := Wanted}} = Work) ->
    {Nodes, Problems} = reachable(Wanted, Work),
    Last = case {Nodes, Kind} of
        {[], _} -> failed(Problems, ~"no node can be profiled");
        {_, sampling} -> sampled(Nodes, Problems, Work);
        _ -> recorded(Nodes, Problems, Work)
    end,
    tell(Last, Work).

-spec tell(change(), work()) -> ok.
tell(Change, #{server := Server, id := Id}) -> gen_server:cast(Server, {told, Id, Change}).

stops(Fun, #{server := Server, id := Id}) -> gen_server:cast(Server, {stops, Id, Fun}).

failed(Problems, Why) -> #{state => failed, problems => Problems, why => text(Why)}.

problem(Node, Why) -> #{node => Node, why => text(Why)}.

text(Chars) ->
    case unicode:characters_to_binary(Chars) of
        Text when is_binary(Text) -> Text;
        %% A node may return any term.
        _ -> ~"?"
    end.

now_ms() -> erlang:system_time(millisecond).

%% ---------------------------------------------------------------- nodes

%% All at once, so that one that does not answer holds up no other.
reachable(Wanted, #{connect := Connect, may_load := MayLoad}) ->
    {ok, Answers} = sderl_prof_tasks:side_by_side([
        fun() -> {Name, Node, ready(Node, Connect, MayLoad())} end || {Name, Node} <- Wanted
    ]),
    {[{Name, Node} || {Name, Node, ok} <- Answers],
     [problem(Name, Why) || {Name, _, {error, Why}} <- Answers]}.

ready(Node, Connect, MayLoad) ->
    maybe
        ok ?= Connect(Node),
        ok ?= there(Node, MayLoad)
    else
        {error, {node, _, _} = Why} -> {error, sderl_prof_failure:format(Why)};
        {error, Why} -> {error, Why}
    end.

there(Node, true) -> sderl_prof_reach:load(Node, ?WAIT_MS);
there(Node, false) -> sderl_prof_reach:is_there(Node, ?WAIT_MS).

%% Whether somebody has taken it back meanwhile.
wanted() ->
    receive withdraw -> withdrawn after 0 -> ok end.

withdrawn(Problems) -> (failed(Problems, ~"it was cancelled before it began"))#{stopped => true}.

%% ---------------------------------------------------------------- samples

sampled(Nodes, Problems, #{request := #{seconds := Seconds}} = Work) ->
    case wanted() of
        withdrawn -> withdrawn(Problems);
        ok ->
            {Names, Those} = lists:unzip(Nodes),
            Began = now_ms(),
            Begun = lists:zip(Names, sderl_prof_sampling:begin_all(Those, #{seconds => Seconds})),
            Running = [Sampling || {_, {ok, Sampling}} <- Begun],
            ok = stops(fun() -> lists:foreach(fun sderl_prof_sampling:stop/1, Running) end, Work),
            ok = tell(#{state => running, began => Began}, Work),
            Ended = [{Name, case One of
                {ok, Sampling} -> sderl_prof_sampling:await(Sampling);
                Error -> Error
            end} || {Name, One} <- Begun],
            Failed = [problem(Name, sderl_prof_sampling:format_error(Why))
                      || {Name, {error, Why}} <- Ended],
            kept([Report || {_, {ok, Report}} <- Ended], Problems ++ Failed, Work)
    end.

kept([], Problems, _) -> failed(Problems, ~"no node returned its samples");
kept(Reports, Problems, #{dir := Dir, id := Id}) ->
    case sderl_prof_sampling:write(sderl_prof_live_store:samples(Dir, Id), Reports) of
        ok -> #{state => ended, problems => Problems};
        {error, Why} -> failed(Problems, sderl_prof_sampling:format_error(Why))
    end.

%% ---------------------------------------------------------------- recordings

recorded(Nodes, Problems, #{id := Id} = Work) ->
    %% A name that nobody on the hosts of the nodes can have guessed and taken.
    Secret = binary:encode_hex(crypto:strong_rand_bytes(8), lowercase),
    There = lists:flatten(io_lib:format("~ts~ts-~ts", [?THERE, Id, Secret])),
    Names = [Node || {_, Node} <- Nodes],
    ok = removed_in_the_end(Names, There),
    try
        maybe
            ok ?= wanted(),
            {ok, Options} ?= options(Names, Work),
            ok ?= wanted(),
            {Own, Lost} = private(Names, There),
            Known = all_problems(Problems, Lost),
            {ok, Ready} ?= prepared(Own, There, Options, Work),
            Costs = [Cost#{node => Node} || {Node, Cost} <- sderl_prof_cluster:costs(Ready)],
            ok = tell(#{state => ready, costs => Costs,
                        problems => all_problems(Known, sderl_prof_cluster:failures(Ready))},
                      Work),
            ok ?= confirmed(Ready),
            {ok, Begun} ?= cluster(sderl_prof_cluster:start(Ready)),
            Self = self(),
            ok = stops(fun() -> sderl_prof_cluster:stop(Self, Begun) end, Work),
            ok = tell(#{state => running, began => now_ms()}, Work),
            {ok, Index} ?= cluster(sderl_prof_cluster:await(Begun)),
            ok = tell(#{state => ending,
                        problems => all_problems(Known, sderl_prof_cluster:failures(Index))},
                      Work),
            analysed(Known, Index, Work)
        else
            withdrawn -> withdrawn(Problems);
            late ->
                failed(Problems, ~"nobody began it within two minutes after its cost was shown");
            {error, Failures, Why} -> failed(all_problems(Problems, Failures), Why)
        end
    after
        removed(Names, There)
    end.

all_problems(Problems, Failures) -> Problems ++ [problem(Node, Why) || {Node, Why} <- Failures].

options(Nodes, #{request := #{kind := Kind, seconds := Seconds, mib := Mib, modules := Names}}) ->
    case modules(Names, Nodes) of
        {ok, Modules} ->
            {ok, maps:merge(#{what => Kind, seconds => Seconds, bytes => Mib * 1_048_576},
                            #{modules => Modules || Kind =:= calls})};
        Error -> Error
    end.

%% A text becomes an atom here only if it is one on a node already.
modules([], _) -> {ok, []};
modules([Name | Names], Nodes) ->
    case lists:search(fun(Module) -> Module =/= none end, [module(Name, Node) || Node <- Nodes]) of
        {value, Module} ->
            case modules(Names, Nodes) of
                {ok, Modules} -> {ok, [Module | Modules]};
                Error -> Error
            end;
        false -> {error, [], io_lib:format("none of the nodes has a module ~ts", [Name])}
    end.

module(Name, Node) ->
    maybe
        Module = sderl_prof_reach:call(Node, erlang, binary_to_existing_atom, [Name], ?WAIT_MS),
        true ?= is_atom(Module),
        true ?= is_known(sderl_prof_reach:call(Node, code, which, [Module], ?WAIT_MS)),
        Module
    else
        _ -> none
    end.

is_known(non_existing) -> false;
is_known({error, _}) -> false;
is_known(_) -> true.

prepared([], _, _, _) -> {error, [], ~"no node can keep a recording"};
prepared(Nodes, There, Options, #{dir := Dir, id := Id}) ->
    cluster(sderl_prof_cluster:prepare(Nodes, Options#{
        dir => sderl_prof_live_store:recording(Dir, Id), node_dir => There, wait_ms => ?WAIT_MS
    })).

%% Only the user of the node may read what its processes sent. Nodes of one host may share the
%% folder, if they are of one user.
private(Nodes, There) ->
    Made = [{Node, is_private(Node, There)} || Node <- Nodes],
    {[Node || {Node, ok} <- Made], [{atom_to_binary(Node), Why} || {Node, {error, Why}} <- Made]}.

is_private(Node, There) ->
    maybe
        true ?= lists:member(sderl_prof_reach:call(Node, file, make_dir, [There], ?WAIT_MS),
                             [ok, {error, eexist}]),
        ok ?= sderl_prof_reach:call(Node, file, change_mode, [There, 8#700], ?WAIT_MS)
    else
        _ -> {error, io_lib:format("~ts cannot be made there as a folder of its user alone",
                                   [There])}
    end.

%% Also where this process is ended by a signal.
removed_in_the_end(Nodes, There) ->
    Run = self(),
    _ = spawn(fun() ->
        Ref = monitor(process, Run),
        receive
            {'DOWN', Ref, process, Run, normal} -> ok;
            {'DOWN', Ref, process, Run, _} -> removed(Nodes, There)
        end
    end),
    ok.

removed(Nodes, There) ->
    _ = [sderl_prof_reach:call(Node, file, del_dir_r, [There], ?WAIT_MS) || Node <- Nodes],
    ok.

cluster({ok, _} = Fine) -> Fine;
cluster({error, {none, Failures}}) -> {error, Failures, ~"no node can be recorded"};
cluster({error, Why}) -> {error, [], sderl_prof_cluster:format_error(Why)}.

confirmed(Ready) ->
    Answer = receive
        confirm -> ok;
        withdraw -> withdrawn
    after ?CONFIRM_MS -> late
    end,
    _ = [sderl_prof_cluster:abandon(Ready) || Answer =/= ok],
    Answer.

%% ---------------------------------------------------------------- and then

analysed(Problems, Index, #{dir := Dir, id := Id}) ->
    Folder = sderl_prof_live_store:recording(Dir, Id),
    Failures = sderl_prof_cluster:failures(Index),
    maybe
        {ok, Lost} ?= fetched(sderl_prof_fetch:fetch(Folder, #{}), Failures),
        {ok, Book} ?= book(Folder, Index),
        ok ?= pages(Book),
        #{state => ended, problems => all_problems(Problems, Failures ++ Lost),
          book => text(lists:nthtail(length(Folder) + 1, unicode:characters_to_list(Book)))}
    else
        {error, Why} -> failed(all_problems(Problems, Failures), Why);
        {nothing, All} -> failed(all_problems(Problems, All), ~"no node returned its events")
    end.

%% A node that failed before keeps that reason.
fetched({ok, Results}, Failures) ->
    Known = [Node || {Node, _} <- Failures],
    Lost = [{Node, sderl_prof_fetch:format_error(Why)}
            || {Node, {error, Why}} <- Results, not lists:member(Node, Known)],
    case [Node || {Node, {ok, _}} <- Results] of
        [] -> {nothing, Failures ++ Lost};
        _ -> {ok, Lost}
    end;
fetched({error, Why}, _) ->
    {error, sderl_prof_cluster_index:format_error(Why)}.

%% One node is shown as such.
book(Folder, #{nodes := [Entry]}) ->
    case sderl_prof:open(sderl_prof_cluster_index:folder(Folder, Entry), #{}) of
        {ok, Book} -> {ok, Book};
        {error, Why} -> {error, sderl_prof:format_error(Why)}
    end;
book(Folder, _) ->
    case sderl_prof_cluster_book:open(Folder, #{}) of
        {ok, Book} -> {ok, Book};
        {error, Why} -> {error, sderl_prof_cluster_report:format_error(Why)}
    end.

%% What pages need is made now, so that nobody waits for it later.
pages(Book) ->
    case sderl_prof_view:open(Book, fun(_, _) -> ok end) of
        {ok, View} -> sderl_prof_view:close(View);
        {error, Why} -> {error, sderl_prof_view:format_error(Why)}
    end.
