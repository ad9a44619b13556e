%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ct_nodes).

%% What the suites on real nodes share: fleets that end with their test case, calls, conditions
%% that are awaited, and small processes to register. The same module runs on the nodes.

-export([with/2, again/2, sd/1, sd/2, stock/1, quick/0, hold/1, release/1]).
-export([call/4, s_group/4, await/1, ready/3, members/3, log/2, logged/3, problems/2, left_out/2]).
%% On a node
-export([proc/0, inbox/1, stop/1]).

-include_lib("stdlib/include/assert.hrl").

-define(SOON, 60_000).
-define(CALL, 90_000).

%% ---------------------------------------------------------------- fleets

%% Nodes are short-lived: quicker ticks than by default, but no shorter patience, so that a busy
%% machine sets nobody aside.
quick() -> [{sderl, tick_ms, 200}].

sd(Count) -> sd(Count, []).

%% Nodes with the library running.
sd(Count, Env) -> #{name => a, count => Count, apps => [sderl], env => Env ++ quick()}.

stock(Count) -> #{name => stock, count => Count, connect_all => true}.

%% Runs F with a fleet and its nodes; whatever happens the fleet is gone then.
with(Plan, F) ->
    {ok, Fleet} = sderl_fleet:start(Plan),
    try
        explain_failure(Fleet, fun() ->
            case is_function(F, 2) of
                true -> F(Fleet, sderl_fleet:nodes(Fleet));
                false -> F(Fleet)
            end
        end)
    after
        ok = sderl_fleet:stop(Fleet)
    end.

explain_failure(Fleet, F) ->
    try F()
    catch
        Class:Reason:Stack ->
            explain(Fleet),
            erlang:raise(Class, Reason, Stack)
    end.

%% With so many nodes of `sd/1` that the case before left behind, as if they were new.
again(Count, F) ->
    Env = [{Key, Value} || {sderl, Key, Value} <- quick()],
    sderl_ct_again:with(Count, Env, fun(Fleet, Nodes) ->
        explain_failure(Fleet, fun() -> F(Fleet, Nodes) end)
    end).

%% A fleet for a whole suite: test cases and init functions run in processes of their own.
hold(Plan) ->
    Self = self(),
    {Pid, Mon} = spawn_monitor(fun() ->
        {ok, Fleet} = sderl_fleet:start(Plan),
        Self ! {self(), Fleet},
        receive release -> ok end
    end),
    receive
        {Pid, Fleet} -> demonitor(Mon, [flush]), {Fleet, Pid};
        {'DOWN', Mon, process, Pid, Why} -> error(Why)
    end.

release({Fleet, Pid}) ->
    ok = sderl_fleet:stop(Fleet),
    Pid ! release,
    ok.

%% What a failed case needs to be understood.
explain(Fleet) ->
    [try
         Info = sderl_fleet:call(Fleet, N, s_group, info, [], 5000),
         ct:pal("~p~n~p~n~ts", [N, Info, tail(log(Fleet, N))])
     catch
         C:R -> ct:pal("~p ~p ~p~n~ts", [N, C, R, tail(log(Fleet, N))])
     end || N <- maps:keys(sderl_fleet:info(Fleet))].

tail(Text) ->
    Lines = string:split(Text, "\n", all),
    [[string:slice(Line, 0, 250), $\n] || Line <- lists:nthtail(max(0, length(Lines) - 25), Lines)].

call(Fleet, Node, F, Args) when is_atom(F) ->
    sderl_fleet:call(Fleet, Node, ?MODULE, F, Args, ?CALL);
call(Fleet, Node, {M, F}, Args) -> sderl_fleet:call(Fleet, Node, M, F, Args, ?CALL).

s_group(Fleet, Node, F, Args) -> call(Fleet, Node, {s_group, F}, Args).

%% ---------------------------------------------------------------- conditions

await(F) ->
    case sderl_fleet:await(F, ?SOON) of
        ok -> ok;
        {error, {timeout, Last}} -> error({never, Last})
    end.

%% The group is ready on every one of these nodes.
ready(Fleet, Nodes, Group) ->
    [?assertEqual({N, ok}, {N, s_group(Fleet, N, await, [Group, ?SOON])}) || N <- Nodes],
    ok.

%% The nodes agree that these are the members.
members(Fleet, Nodes, Group) ->
    members(Fleet, Nodes, Group, lists:sort(Nodes)).

members(Fleet, Nodes, Group, Members) ->
    await(fun() ->
        case [{N, Ms}
              || N <- Nodes, Ms <- [s_group(Fleet, N, own_nodes, [Group])], Ms =/= Members] of
            [] -> true;
            Differ -> Differ
        end
    end).

%% What the node's logger wrote so far.
log(Fleet, Node) ->
    _ = try call(Fleet, Node, {logger_std_h, filesync}, [default]) catch _:_ -> ok end,
    #{log_dir := Dir} = sderl_fleet:connection_info(Fleet),
    [Short, _] = string:split(atom_to_list(Node), "@"),
    case file:read_file(filename:join(Dir, Short ++ ".log")) of
        {ok, Text} -> Text;
        {error, _} -> <<>>
    end.

logged(Fleet, Node, Text) ->
    await(fun() -> string:find(log(Fleet, Node), Text) =/= nomatch end).

problems(Fleet, Node) -> proplists:get_value(problems, s_group(Fleet, Node, info, [])).

left_out(Fleet, Node) -> proplists:get_value(left_out, s_group(Fleet, Node, info, [])).

%% ---------------------------------------------------------------- on a node

%% A process that keeps what it is sent.
proc() -> spawn(fun() -> receive {?MODULE, stop} -> ok end end).

inbox(Pid) ->
    {messages, Messages} = process_info(Pid, messages),
    Messages.

stop(Pid) ->
    Mon = monitor(process, Pid),
    Pid ! {?MODULE, stop},
    receive {'DOWN', Mon, process, Pid, _} -> ok end.
