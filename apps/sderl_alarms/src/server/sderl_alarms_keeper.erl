%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_keeper).
-moduledoc """
Keeps the state of the alarms on the disk for the process of the alarms: which changes are there,
which are being written, and which callers wait for that.

Another process writes, so that a disk that hangs does not delay the alarms. There is one write at a
time, and the next one has all that has changed meanwhile. When a write has failed, or has taken
some seconds, its callers are answered: the alarms go on in memory, and `problem/1` says so.
""".

-include_lib("kernel/include/logger.hrl").

-export([new/3, is_kept/1, problem/1, wait/2, keep/4, keep_later/4, hear/2, finish/2]).
-export_type([keeper/0]).

-record(keeper, {
    file :: undefined | file:filename_all(),
    %% The changes that are on the disk, and why the last write failed.
    kept :: term(),
    problem :: binary(),
    writing = none :: none | {pid(), Changes :: term(), Since :: integer()},
    %% Callers whose changes are being written, and those whose changes are written next.
    served = [] :: [gen_server:from()],
    waiting = [] :: [gen_server:from()]
}).

-opaque keeper() :: #keeper{}.

-define(PATIENCE_MS, 3_000).

-doc "`Changes` identifies what is on the disk. Without a file nothing is kept.".
-spec new(undefined | file:filename_all(), Changes :: term(), Problem :: binary()) -> keeper().
new(File, Changes, Problem) -> #keeper{file = File, kept = Changes, problem = Problem}.

-doc "Whether a restart would lose nothing.".
-spec is_kept(keeper()) -> boolean().
is_kept(#keeper{file = File, problem = Problem}) -> File =/= undefined andalso Problem =:= ~"".

-doc "A sentence, or the empty text.".
-spec problem(keeper()) -> binary().
problem(#keeper{problem = Problem}) -> Problem.

-doc "The caller is answered `ok` when the next write has ended.".
-spec wait(gen_server:from(), keeper()) -> keeper().
wait(From, #keeper{waiting = Waiting} = Keeper) -> Keeper#keeper{waiting = [From | Waiting]}.

-doc "Begins to write, or writes after the write that is under way.".
-spec keep(Changes :: term(), fun(() -> sderl_alarms_store:kept()), Now :: integer(), keeper()) ->
    keeper().
keep(_, _, _, #keeper{file = undefined} = Keeper) -> answer(Keeper);
keep(Changes, All, Now, #keeper{file = File, writing = none, waiting = Waiting} = Keeper) ->
    Owner = self(),
    Kept = All(),
    Pid = spawn_link(fun() ->
        Owner ! {sderl_alarms_written, self(), sderl_alarms_store:write(File, Kept)}
    end),
    Keeper#keeper{writing = {Pid, Changes, Now}, served = Waiting, waiting = []};
keep(_, _, Now, Keeper) -> lose_patience(Now, Keeper).

-doc "Writes if something has changed. (Numbers that only move are not worth a write.)".
-spec keep_later(Changes :: term(), fun(() -> sderl_alarms_store:kept()), Now :: integer(),
                 keeper()) -> keeper().
keep_later(Changes, _, _, #keeper{kept = Changes, writing = none, waiting = []} = Keeper) -> Keeper;
keep_later(Changes, All, Now, Keeper) -> keep(Changes, All, Now, Keeper).

lose_patience(Now, #keeper{writing = {_, _, Since}} = Keeper) when Now - Since < ?PATIENCE_MS ->
    Keeper;
lose_patience(_, #keeper{file = File} = Keeper) ->
    failed(sderl_mon_text:text("~ts: the disk does not answer; alarms are kept in memory alone",
                               [File]), Keeper).

failed(Why, #keeper{problem = Why} = Keeper) -> answer(Keeper);
failed(Why, Keeper) ->
    ?LOG_ERROR("alarms: ~ts", [Why]),
    answer(Keeper#keeper{problem = Why}).

answer(#keeper{served = Served, waiting = Waiting} = Keeper) ->
    ok = reply(Served ++ Waiting),
    Keeper#keeper{served = [], waiting = []}.

reply(Callers) -> lists:foreach(fun(From) -> gen_server:reply(From, ok) end, Callers).

-doc """
Handles a message to the owner if it says that a write has ended. `again`: callers wait for the next
write. (A failed write is tried again at the next check.)
""".
-spec hear(term(), keeper()) -> {ok | again, keeper()} | none.
hear({sderl_alarms_written, Pid, ok},
     #keeper{writing = {Pid, Changes, _}, served = Served, waiting = Waiting} = Keeper) ->
    ok = reply(Served),
    {case Waiting of [] -> ok; _ -> again end,
     Keeper#keeper{writing = none, served = [], kept = Changes, problem = ~""}};
hear({sderl_alarms_written, Pid, {error, Why}}, #keeper{writing = {Pid, _, _}} = Keeper) ->
    {ok, failed(Why, Keeper#keeper{writing = none})};
hear({'EXIT', Pid, Reason}, #keeper{writing = {Pid, _, _}, file = File} = Keeper) ->
    Why = sderl_mon_text:text("~ts: the write failed: ~0tP", [File, Reason, 12]),
    {ok, failed(Why, Keeper#keeper{writing = none})};
hear(_, _) -> none.

-doc "The owner ends: waits some seconds for the write that is under way.".
-spec finish(Changes :: term(), keeper()) -> {Write :: boolean(), keeper()}.
finish(Changes, #keeper{writing = {Pid, _, _}} = Keeper) ->
    receive
        {sderl_alarms_written, Pid, _} = Message ->
            {_, Done} = hear(Message, Keeper),
            finish(Changes, Done)
    after ?PATIENCE_MS -> {false, answer(Keeper)}
    end;
finish(Changes, #keeper{kept = Kept, file = File} = Keeper) ->
    {File =/= undefined andalso Changes =/= Kept, answer(Keeper)}.
