%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_compute).
-moduledoc false.
%% Computes the routes of a node in a process of its own, and writes them into the table of routes.
%%
%% The process has room for all that is made meanwhile, and for the routes, which it compares with
%% the table. In the router it would be garbage among all that is kept, and with thousands of groups
%% to collect that stops a scheduler for long.

-export([start/2, stop/1]).

-define(TABLE, sderl_routes).
%% So many groups are sent before others get their turn.
-define(SOME, 100).

-doc """
Starts the computation with so much room, in words. The caller, which it is linked to, gets
`{shown, Pid, Took}` in the end: how much room it took.
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

%% Nothing else runs while a process is spawned or a message copied: between these others do.
send(Pid, Part, Sent) ->
    Pid ! {part, Part},
    case Sent + sderl_route_state:part_size(Part) of
        Enough when Enough >= ?SOME -> erlang:yield(), 0;
        More -> More
    end.

%% Of its heap alone. What is still outside of it, as it came in a message, would make the next
%% process's heap larger than this one's, and so on.
took() ->
    {garbage_collection_info, Info} = process_info(self(), garbage_collection_info),
    max(1, proplists:get_value(heap_block_size, Info)
        + proplists:get_value(old_heap_block_size, Info)).

-doc "Ends a computation: nothing of it comes into the table any more.".
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

%% First what is new, then what is over: whoever reads meanwhile finds a way. In many groups little
%% of all that changes.
show(#{groups := Groups, nodes := Nodes}) ->
    Rows = lists:append([[{{group, G}, Far, list_to_tuple(First)}, {{members, G}, Ms}]
                         || G := {{Far, First}, Ms} <- Groups])
        ++ [{{node, N}, Far, list_to_tuple(First)} || N := {Far, First} <- Nodes],
    Keys = #{element(1, Row) => [] || Row <- Rows},
    Over = [Key || Key <- keys(), not is_map_key(Key, Keys)],
    true = ets:insert(?TABLE, [Row || Row <- Rows,
                                      ets:lookup(?TABLE, element(1, Row)) =/= [Row]]),
    lists:foreach(fun(Key) -> ets:delete(?TABLE, Key) end, Over).

%% Of routes, by whomever they were put there.
keys() ->
    ets:select(?TABLE, [{{{group, '$1'}, '_', '_'}, [], [{{group, '$1'}}]},
                        {{{node, '$1'}, '_', '_'}, [], [{{node, '$1'}}]},
                        {{{members, '$1'}, '_'}, [], [{{members, '$1'}}]}]).
