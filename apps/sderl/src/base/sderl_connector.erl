%% SPDX-License-Identifier: Apache-2.0
-module(sderl_connector).
-moduledoc false.
%% Keeps the links that the own groups need: it tries each member without a link, a few at a time,
%% each in a process of its own because connecting may take seconds, and again with back-off.
%%
%% Members that a group has forgotten are tried too, seldom: if such a node comes back, has no link
%% to any member, and has forgotten us as well, neither would hear of the other (rule 6).
%%
%% Which links are needed is read from the directory, now and then in full, so a successor of this
%% process misses nothing but the back-off.

-behaviour(gen_server).
-behaviour(sderl_part).

-export([start_link/0, tried/1, connect/2]).
-export([handle_group_changed/1, handle_group_left/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

%% The helper processes of these answer with their exit reason.
-dialyzer({nowarn_function, [start/1]}).

-define(TABLE, sderl_tried).
-define(PARALLEL, 8).
-define(LOOK, 1000).
%% The directory is read in full each time with few groups, and so often in any case.
-define(COMPARE_MS, 10_000).
-define(FEW, 100).

-record(c, {
    busy = #{} :: #{reference() => node()},
    retries = sderl_retry:new() :: sderl_retry:retries(),
    timer :: reference() | undefined,
    node = node() :: node(),
    mates = sderl_mates:new(node(), sderl_dir:memberships()) :: sderl_mates:mates(),
    compare_at = now_ms() + ?COMPARE_MS :: integer()
}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Looks again which links are missing.".
-spec handle_group_changed(term()) -> ok.
handle_group_changed(Group) -> gen_server:cast(?MODULE, {look, Group}).

-doc "This node left a group: links may be needed no more.".
-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(Group, _Mates) -> gen_server:cast(?MODULE, {look, Group}).

-doc "Whether each of the nodes is linked or was tried since this library started.".
-spec tried([node()]) -> boolean().
tried(Nodes) ->
    Linked = [node() | nodes(connected)],
    lists:all(fun(N) -> lists:member(N, Linked) orelse ets:member(?TABLE, N) end, Nodes).

-doc """
Connects in the calling process, which may take seconds. The reason is noted (see `sderl_links`).
""".
-spec connect(node(), sderl_links:reason() | group) -> boolean().
connect(Node, Reason) when Node =/= node() ->
    %% Noted first, so that the link counts as ours from the moment it is up.
    sderl_links:note(Node, Reason),
    case lists:member(Node, nodes(connected)) orelse net_kernel:connect_node(Node) of
        true -> true;
        _ -> sderl_links:forget(Node, Reason), false
    end;
connect(_, _) -> true.

-spec init([]) -> {ok, #c{}}.
init([]) ->
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    {ok, look(#c{})}.

-spec handle_call(term(), gen_server:from(), #c{}) -> {reply, term(), #c{}}.
handle_call(_, _, C) -> {reply, {error, unknown_call}, C}.

-spec handle_cast(term(), #c{}) -> {noreply, #c{}}.
handle_cast({look, Group}, #c{mates = Mates} = C) ->
    {Came, Went, Now} = sderl_mates:change(Group, sderl_dir:members(Group), Mates),
    Next = C#c{mates = Now},
    case {Came, Went} of
        {[], []} -> {noreply, Next};
        _ -> {noreply, look(Next)}
    end;
handle_cast(_, C) -> {noreply, C}.

-spec handle_info(term(), #c{}) -> {noreply, #c{}}.
%% (Its timer stays noted: another may have been started since this one was over, and ends here.)
handle_info(look, C) -> {noreply, look(C)};
handle_info({nodeup, N, _}, #c{retries = Retries} = C) ->
    Now = now_ms(),
    {noreply, try_due(Now, missing(C), C#c{retries = sderl_retry:linked(N, Now, Retries)})};
handle_info({nodedown, N, _}, #c{retries = Retries} = C) ->
    {noreply, look(C#c{retries = sderl_retry:lost(N, now_ms(), Retries)})};
handle_info({'DOWN', Ref, process, _, Result}, #c{busy = B, retries = Retries} = C0) ->
    case maps:take(Ref, B) of
        {Node, Rest} ->
            true = ets:insert(?TABLE, {Node}),
            Now = now_ms(),
            Missing = missing(C0),
            C = C0#c{busy = Rest, retries = case Result of
                linked -> sderl_retry:linked(Node, Now, Retries);
                _ -> sderl_retry:failed(Node, kind(Node, Missing), Now, rand:uniform(), Retries)
            end},
            %% A client may wait until every member has been tried.
            lists:foreach(fun(Pid) -> Pid ! sderl_poke end, sderl_dir:processes()),
            {noreply, try_due(Now, Missing, C)};
        error -> {noreply, C0}
    end;
handle_info(_, C) -> {noreply, C}.

kind(Node, {Members, Forgotten}) ->
    case lists:member(Node, Forgotten) of
        true -> {forgotten, length(Forgotten)};
        false -> {member, max(1, length(Members))}
    end.

look(C0) ->
    Now = now_ms(),
    C = compared(Now, C0),
    try_due(Now, missing(C), C).

%% A few at a time, members first: the others that are due are tried when one of these ends.
try_due(Now, {Members, Forgotten}, #c{busy = Busy, retries = Retries0, timer = Timer} = C) ->
    Retries = sderl_retry:keep(Members ++ Forgotten, Retries0),
    Trying = lists:sort(maps:values(Busy)),
    Due = lists:append([sderl_retry:due(ordsets:subtract(Nodes, Trying), Now, Retries)
                        || Nodes <- [Members, Forgotten]]),
    Start = lists:sublist(Due, max(0, ?PARALLEL - length(Trying))),
    New = maps:from_list([{start(N), N} || N <- Start]),
    _ = Timer =/= undefined andalso erlang:cancel_timer(Timer),
    At = sderl_retry:next(Now, Now + ?LOOK, Retries),
    C#c{busy = maps:merge(Busy, New), retries = Retries,
        timer = erlang:send_after(max(20, At - Now), self(), look)}.

start(Node) ->
    {_, Ref} = spawn_monitor(fun() ->
        %% The directory knows which groups need it (sderl_dir:needs/0).
        exit(case connect(Node, group) of true -> linked; false -> failed end)
    end),
    Ref.

%% A process of a group may end after its entry in the directory and before it tells this process,
%% and the node may have got another name.
compared(Now, #c{node = Node, compare_at = At, mates = Mates} = C) ->
    {Groups, _} = sderl_mates:counts(Mates),
    case Now >= At orelse Groups =< ?FEW orelse Node =/= node() of
        true -> C#c{node = node(), compare_at = Now + ?COMPARE_MS,
                    mates = sderl_mates:new(node(), sderl_dir:memberships())};
        false -> C
    end.

%% Members without a link, and nodes that groups have forgotten without one.
missing(#c{mates = Mates}) ->
    Linked = ordsets:from_list([node() | nodes(connected)]),
    Members = ordsets:subtract(ordsets:from_list(sderl_mates:nodes(Mates)), Linked),
    Forgotten = ordsets:subtract(ordsets:from_list(sderl_forgotten:all()), Linked),
    {Members, ordsets:subtract(Forgotten, Members)}.
