%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_compute).
-moduledoc false.
%% Computes the routes of a node in a process of its own, and writes them into the table of routes.
%%
%% Its heap has room for all intermediate terms and for the routes, which it compares with the
%% table. In the router they would be garbage among all that is kept, and with thousands of groups a
%% collection of that stops a scheduler for long.

-export([start/2, stop/1]).

-define(TABLE, sderl_routes).
%% So many groups are sent before other processes get their turn.
-define(SOME, 100).

-doc """
Starts the computation, with a heap of so many words. The caller, to which it is linked, gets
`{shown, Pid, Took}` at the end: the words that it took.
""".
-spec start(sderl_route_state:state(), Room :: pos_integer()) -> pid().
start(State, Room) ->
    Router = self(),
    Parts = sderl_route_state:parts(State),
    Count = length(Parts),
    Compute = fun() ->
        show(sderl_route_state:routes_of([receive {part, P} -> P end || _ <- lists:seq(1, Count)])),
        Router ! {shown, self(), took()}
    end,
    case spawn_opt(Compute, [link, {min_heap_size, Room}]) of
        Pid when is_pid(Pid) ->
            _ = lists:foldl(fun(Part, Sent) -> send(Pid, Part, Sent) end, 0, Parts),
            Pid
    end.

%% No other process runs on this scheduler while a message is copied, but between two messages.
send(Pid, Part, Sent) ->
    Pid ! {part, Part},
    case Sent + sderl_route_state:part_size(Part) of
        Enough when Enough >= ?SOME -> erlang:yield(), 0;
        More -> More
    end.

%% Its heap alone. If fragments of messages outside the heap counted, the next process's heap would
%% be larger than this one's, and so on.
took() ->
    {garbage_collection_info, Info} = process_info(self(), garbage_collection_info),
    max(1, proplists:get_value(heap_block_size, Info)
        + proplists:get_value(old_heap_block_size, Info)).

-doc "Ends a computation: it writes no more into the table.".
-spec stop(pid()) -> ok.
stop(Pid) ->
    true = unlink(Pid),
    Monitor = monitor(process, Pid),
    true = exit(Pid, kill),
    receive
        {'DOWN', Monitor, process, _, _} -> ok
    end,
    receive
        {shown, Pid, _} -> ok
    after 0 -> ok
    end.

%% New rows are written before old ones go, so that readers find a way meanwhile. With many groups
%% only a few rows change.
show(#{groups := Groups, nodes := Nodes}) ->
    Rows = lists:append([[{{group, G}, Far, list_to_tuple(First)}, {{members, G}, Ms}]
                         || G := {{Far, First}, Ms} <- Groups])
        ++ [{{node, N}, Far, list_to_tuple(First)} || N := {Far, First} <- Nodes],
    Keys = #{element(1, Row) => [] || Row <- Rows},
    Over = [Key || Key <- keys(), not is_map_key(Key, Keys)],
    true = ets:insert(?TABLE, [Row || Row <- Rows,
                                      ets:lookup(?TABLE, element(1, Row)) =/= [Row]]),
    lists:foreach(fun(Key) -> ets:delete(?TABLE, Key) end, Over).

%% The keys of all routes in the table.
keys() ->
    ets:select(?TABLE, [{{{group, '$1'}, '_', '_'}, [], [{{group, '$1'}}]},
                        {{{node, '$1'}, '_', '_'}, [], [{{node, '$1'}}]},
                        {{{members, '$1'}, '_'}, [], [{{members, '$1'}}]}]).
