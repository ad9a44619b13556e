%% SPDX-License-Identifier: Apache-2.0
-module(sderl_lane).
-moduledoc false.
%% A queue before a link that is full: a process that may be suspended in place of the one that
%% forwards. How much waits is counted outside it, as it cannot be asked.

-export([start/2, put/5, first/5, stop/2]).
-export_type([t/0]).

-define(IDLE, 5000).

-opaque t() :: {pid(), counters:counters_ref(), Limit :: pos_integer()}.

-spec start(node(), pos_integer()) -> t().
start(Node, Limit) ->
    Count = counters:new(1, []),
    Owner = self(),
    Pid = spawn_link(fun() -> loop(Node, Owner, Count) end),
    {Pid, Count, Limit}.

-doc "`direct`: nothing waits, and the link may be tried again. `full`: it is not taken.".
-spec put(t(), term(), term(), term(), sderl_route_send:from()) -> ok | direct | full.
put({Pid, Count, Limit}, To, Message, What, From) ->
    case counters:get(Count, 1) of
        0 -> direct;
        N when N >= Limit -> full;
        _ -> add(Pid, Count, {To, Message, What, From})
    end.

-doc "The one that found the link full.".
-spec first(t(), term(), term(), term(), sderl_route_send:from()) -> ok.
first({Pid, Count, _}, To, Message, What, From) -> add(Pid, Count, {To, Message, What, From}).

add(Pid, Count, Item) ->
    ok = counters:add(Count, 1, 1),
    Pid ! Item,
    ok.

-doc "Ends a lane that says that it has nothing to do, unless that is over.".
-spec stop(pid(), t()) -> boolean().
stop(Pid, {Pid, Count, _}) ->
    counters:get(Count, 1) =:= 0 andalso begin
        true = unlink(Pid),
        true = exit(Pid, kill)
    end;
stop(_, _) -> false.

loop(Node, Owner, Count) ->
    receive
        {To, Message, What, From} ->
            %% Not counted as gone before it is in the link, so that nobody overtakes it.
            _ = case erlang:send(To, Message, [noconnect]) of
                ok -> ok;
                noconnect -> Owner ! {lane_failed, From, What, unreachable}
            end,
            ok = counters:sub(Count, 1, 1),
            loop(Node, Owner, Count)
    after ?IDLE ->
        Owner ! {lane_idle, Node, self()},
        loop(Node, Owner, Count)
    end.
