%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_agent).
-moduledoc false.
%% The requests to a node when a plan is applied: called there (`erpc`), in a separate process. Each
%% request can be made again without harm.

-export([do/2, free/1, close/1]).
-import(sderl_clock, [now_ms/0]).
-export_type([request/0, answer/0]).

-type request() ::
    survey
    | {create, Group :: term(), [node()]}
    | {add, Group :: term(), [node()]}
    | {remove, Group :: term(), [node()]}
    | {delete, Group :: term()}
    | {view, node()}
    | {free, node()}
    | {close, [node()], Left :: [Group :: term()]}.
-type answer() :: {ok, term()} | {error, term()}.

-define(SETTLE_MS, 5000).
%% How long both ends of a link may take to agree that nobody needs it.
-define(AGREE_MS, 1000).
-define(LOOK_MS, 20).

-doc "Does a request of the given version of the protocol.".
-spec do(Version :: pos_integer(), request()) -> answer().
do(1, Request) ->
    try {sderl_dir:refuse(), sderl_dir:all()} of
        {undefined, Own} -> answer(Request, Own);
        {Why, _} -> {error, {refuses, Why}}
    catch
        %% No tables: not running, or stopped meanwhile.
        error:badarg -> {error, not_running}
    end;
do(_, _) -> {error, unknown_version}.

answer(survey, Own) ->
    {ok, [{G, Uid, Ms} || {G, #{uid := Uid, members := Ms}} <- Own, G =/= undefined]};
answer({create, Group, Nodes}, Own) ->
    case lists:any(fun({G, _}) -> G =:= Group end, Own) of
        %% The group exists already, perhaps since a moment ago.
        true -> answer({add, Group, Nodes}, Own);
        false ->
            Before = nodes(connected),
            case s_group:new_s_group(Group, Nodes) of
                {ok, Group, Joined} -> joined(Group, Nodes, Joined, {created, Joined}, Before);
                {error, s_group_name_is_in_use} -> answer({add, Group, Nodes}, Own);
                {error, Why} -> {error, Why}
            end
    end;
answer({add, Group, Nodes}, _) ->
    Before = nodes(connected),
    case s_group:add_nodes(Group, Nodes) of
        {ok, Group, Added} ->
            joined(Group, Nodes, s_group:own_nodes(Group), {added, Added}, Before);
        {error, Why} -> {error, Why}
    end;
answer({remove, Group, Nodes}, _) ->
    Members = s_group:own_nodes(Group),
    case s_group:remove_nodes(Group, Nodes) of
        ok -> {ok, {removed, [N || N <- Nodes, lists:member(N, Members)]}};
        {error, Why} -> {error, Why}
    end;
answer({delete, Group}, _) ->
    case s_group:delete_s_group(Group) of
        ok -> {ok, deleted};
        {error, Why} -> {error, Why}
    end;
answer({view, Node}, _) -> view(Node);
answer({free, Node}, _) -> {ok, free(Node)};
answer({close, Nodes, Left}, _) ->
    settled(Left, now_ms() + ?SETTLE_MS),
    {ok, close_all(Nodes, now_ms() + ?AGREE_MS)};
answer(_, _) -> {error, unknown_request}.

%% `Done` is what this call changed, which is kept even if nodes are missing.
joined(Group, Nodes, Members, Done, Before) ->
    case Nodes -- Members of
        [] ->
            case s_group:await(Group, ?SETTLE_MS) of
                ok -> {ok, Done};
                {error, Why} -> {error, {partly, Done, {not_ready, Why}}}
            end;
        Out ->
            lists:foreach(fun in_vain/1, Out -- Before),
            Whys = #{N => Why || {G, N, Why} <- sderl_refused:joins(), G =:= Group},
            {error, {partly, Done, {left_out, [{N, maps:get(N, Whys, unknown)} || N <- Out]}}}
    end.

%% ---------------------------------------------------------------- links

%% The link was opened to ask the node, and it did not join.
in_vain(Node) ->
    ok = sderl_links:forget(Node, group),
    case free(Node) of
        true -> _ = erlang:disconnect_node(Node), ok;
        false -> ok
    end.

-doc "Whether nothing on this node needs the link to a node now.".
-spec free(node()) -> boolean().
free(Node) -> sderl_links:reasons(Node) =:= [] andalso not is_map_key(Node, sderl_dir:needs()).

%% A node that was removed learns of it from the members.
settled(Left, Until) ->
    case lists:any(fun sderl_names:is_member/1, Left) andalso now_ms() < Until of
        true -> receive after ?LOOK_MS -> settled(Left, Until) end;
        false -> ok
    end.

%% The other ends learn of it, too, each at its time.
close_all(Nodes, Until) ->
    Results = [{N, closed(N)} || N <- Nodes],
    Closed = [N || {N, true} <- Results],
    case [N || {N, needed} <- Results] of
        [_ | _] = Needed ->
            case now_ms() < Until of
                true -> receive after ?LOOK_MS -> Closed ++ close_all(Needed, Until) end;
                false -> Closed
            end;
        [] -> Closed
    end.

-doc """
Closes a link by the rule of the link policy (protocol rule 25), at once instead of after the idle
time, if both ends agree that the library opened it, that nothing else needs it, and that no name is
across it. True if it was closed.
""".
-spec close(node()) -> boolean().
close(Node) -> closed(Node) =:= true.

closed(Node) ->
    maybe
        %% First, as the question would open the link.
        {ok, Here} ?= view(Node),
        {ok, There} ?= there(Node),
        close ?= sderl_links:close_candidate(Here, There, 0),
        _ = erlang:disconnect_node(Node),
        sderl_event:emit(link_closed, #{node => Node, reason => plan}),
        true
    else
        {keep, needed} -> needed;
        _ -> false
    end.

there(Node) ->
    try erpc:call(Node, ?MODULE, do, [1, {view, node()}], ?SETTLE_MS)
    catch _:_ -> {error, unreachable}
    end.

view(Node) ->
    Names = sderl_names:count_at(Node),
    sderl_links:view(Node, sderl_dir:needs(), now_ms(), 0, #{names => Names, idle_ms => 0}).
