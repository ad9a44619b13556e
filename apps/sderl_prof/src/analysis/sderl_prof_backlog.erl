%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_backlog).
-moduledoc """
Messages that were sent to a process and not received yet: the greatest number at a time, and the
number at the end. Pure.

The virtual machine tells that a message is received when the process takes it over from those that
arrived, not when the program takes it out of its mailbox. So the numbers are lower bounds of the
mailbox. A message that comes from elsewhere has no sending event; the number stays at 0 then.

Memory is that of the processes to which something is on its way, up to a limit.
""".

-export([new/1, send/3, 'receive'/3, exited/2, result/1]).
-export_type([backlog/0, row/0]).

-define(MOST_KEYS, 200_000).

-record(backlog, {
    %% Smaller numbers are not kept.
    least :: pos_integer(),
    now = #{} :: #{pos_integer() => {N :: pos_integer(), Peak :: pos_integer(), At :: integer(),
                                     Received :: boolean()}},
    peaks = #{} :: #{pos_integer() => row()}
}).
-opaque backlog() :: #backlog{}.

-doc "The greatest number, when that was, and how many there were left.".
-type row() :: #{process := pos_integer(), peak := pos_integer(), at := integer(),
                 left := non_neg_integer()}.

-doc "Nothing yet; numbers from `Least` on are kept.".
-spec new(Least :: pos_integer()) -> backlog().
new(Least) -> #backlog{least = Least}.

-doc "A message was sent to this process, or to something else.".
-spec send(integer(), To :: non_neg_integer(), backlog()) -> backlog().
send(T, To, #backlog{now = Now} = B) ->
    case Now of
        #{To := {N, Peak, _, Received}} when N + 1 > Peak ->
            B#backlog{now = Now#{To := {N + 1, N + 1, T, Received}}};
        #{To := {N, Peak, At, Received}} ->
            B#backlog{now = Now#{To := {N + 1, Peak, At, Received}}};
        _ when map_size(Now) < ?MOST_KEYS -> B#backlog{now = Now#{To => {1, 1, T, false}}};
        _ -> B
    end.

-doc "A process has received a message.".
-spec 'receive'(integer(), pos_integer(), backlog()) -> backlog().
'receive'(_, P, #backlog{now = Now} = B) ->
    case Now of
        #{P := {1, Peak, At, _}} -> kept(P, Peak, At, 0, B#backlog{now = maps:remove(P, Now)});
        #{P := {N, Peak, At, _}} -> B#backlog{now = Now#{P := {N - 1, Peak, At, true}}};
        _ -> B
    end.

-doc "A process has ended, with what was on its way to it.".
-spec exited(pos_integer(), backlog()) -> backlog().
exited(P, #backlog{now = Now} = B) ->
    case maps:take(P, Now) of
        {{N, Peak, At, true}, Rest} -> kept(P, Peak, At, N, B#backlog{now = Rest});
        {_, Rest} -> B#backlog{now = Rest};
        error -> B
    end.

kept(P, Peak, At, Left, #backlog{least = Least, peaks = Peaks} = B) when Peak >= Least ->
    Row = #{process => P, peak => Peak, at => At, left => Left},
    case Peaks of
        #{P := #{peak := Before} = Known} when Before >= Peak ->
            B#backlog{peaks = Peaks#{P := Known#{left := Left}}};
        #{P := _} -> B#backlog{peaks = Peaks#{P := Row}};
        _ when map_size(Peaks) < ?MOST_KEYS -> B#backlog{peaks = Peaks#{P => Row}};
        _ -> B
    end;
kept(_, _, _, _, B) ->
    B.

-doc "The greatest first, each process once.".
-spec result(backlog()) -> [row()].
result(#backlog{now = Now} = B0) ->
    %% A process that never receives was not recorded: its mailbox is unknown.
    #backlog{peaks = Peaks} = maps:fold(fun
        (P, {N, Peak, At, true}, B) -> kept(P, Peak, At, N, B);
        (_, _, B) -> B
    end, B0, Now),
    lists:sort(fun(#{peak := A}, #{peak := B}) -> A >= B end, maps:values(Peaks)).
