%% SPDX-License-Identifier: Apache-2.0
-module(sderl_lane).
-moduledoc false.
%% A queue before a full link: a process that is suspended in place of the one that forwards. The
%% number of waiting messages is counted outside, because a suspended process cannot be asked.

-export([start/3, put/2, first/2, stop/2]).
-export_type([t/0]).

-define(IDLE, 5000).

-opaque t() :: {pid(), counters:counters_ref(), Limit :: pos_integer()}.

-doc "A lane to the process `Name` of a node, for the calling process.".
-spec start(node(), atom(), pos_integer()) -> t().
start(Node, Name, Limit) ->
    Count = counters:new(1, []),
    Owner = self(),
    Pid = spawn_link(fun() -> loop({Name, Node}, Owner, Count) end),
    {Pid, Count, Limit}.

-doc "`direct`: none waits, and the link may be tried again. `full`: the entries are not taken.".
-spec put(t(), [sderl_forward:entry()]) -> ok | direct | full.
put({Pid, Count, Limit}, Entries) ->
    case counters:get(Count, 1) of
        0 -> direct;
        N when N >= Limit -> full;
        _ -> add(Pid, Count, Entries)
    end.

-doc "The entries that found the link full.".
-spec first(t(), [sderl_forward:entry()]) -> ok.
first({Pid, Count, _}, Entries) -> add(Pid, Count, Entries).

add(Pid, Count, Entries) ->
    ok = counters:add(Count, 1, length(Entries)),
    Pid ! {entries, Entries},
    ok.

-doc "Ends a lane that said that it is empty, unless it has got entries since.".
-spec stop(pid(), t()) -> boolean().
stop(Pid, {Pid, Count, _}) ->
    counters:get(Count, 1) =:= 0 andalso begin
        true = unlink(Pid),
        true = exit(Pid, kill)
    end;
stop(_, _) -> false.

loop({_, Node} = To, Owner, Count) ->
    receive
        {entries, Entries} ->
            %% Counted as waiting until it is in the link, so that no message overtakes it.
            Bundle = {sderl_many, 1, [W || {W, _, _} <- Entries]},
            _ = case erlang:send(To, Bundle, [noconnect]) of
                ok -> sderl_traffic:sent(routing, Bundle);
                noconnect -> Owner ! {lane_failed, Node, Entries}
            end,
            ok = counters:sub(Count, 1, length(Entries)),
            loop(To, Owner, Count)
    after ?IDLE ->
        Owner ! {lane_idle, Node, self()},
        loop(To, Owner, Count)
    end.
