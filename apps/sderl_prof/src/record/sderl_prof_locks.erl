%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_locks).
-moduledoc """
The locks of this node's virtual machine, where its emulator counts them: between two moments, how
often each lock was tried, how often another thread held it, and how long threads waited for it.
Counters are never cleared, because other tools may read them.

Needs `m:sderl_prof_switch` and no other module of this project, so that both can be loaded into any
node.
""".

-export([start/0, stop/1, since/2]).
-export_type([counts/0, row/0, told/0]).

%% Rows of each list, those with the longest waits.
-define(MOST, 1000).
%% Characters of the name of one.
-define(MOST_NAME, 80).

-doc "Tries, tries that found the lock held, nanoseconds waited, and the number of waits.".
-type count() :: {integer(), integer(), integer(), integer()}.
-doc "By lock and the place in the emulator's source that takes it.".
-type counts() :: #{{Class :: atom(), Id :: term(), Type :: atom(),
                     Place :: {atom(), integer()}} => count()}.
-type row() :: #{class := atom(), type => atom(), locks => pos_integer(), id => binary(),
                 scheduler => integer(), place => binary(), tries := integer(),
                 collisions := integer(), ns := integer(), waits := integer()}.
-type told() :: #{classes := [row()], instances := [row()], places := [row()]}.

are_counted() ->
    try erlang:system_info(lock_counting) =:= true catch error:badarg -> false end.

-doc """
Begins to count locks of all categories, those of processes too, until `stop/1`; `none` where this
emulator counts no locks.
""".
-spec start() -> none | {sderl_prof_switch:switch(), counts()}.
start() ->
    case are_counted() of
        true ->
            Before = erts_debug:lcnt_control(mask),
            Switch = sderl_prof_switch:on(fun() -> mask(categories()) end,
                                          fun() -> mask(Before) end),
            {Switch, counts()};
        false -> none
    end.

-doc "Ends it; the counts at the begin and now, for `since/2`.".
-spec stop(none | {sderl_prof_switch:switch(), counts()}) -> none | {counts(), counts()}.
stop(none) -> none;
stop({Switch, Before}) ->
    Now = counts(),
    ok = sderl_prof_switch:off(Switch),
    {Before, Now}.

mask(Categories) ->
    _ = erts_debug:lcnt_control(mask, Categories),
    true.

categories() ->
    [allocator, db, debug, distribution, generic, io, process, scheduler].

counts() ->
    {locks, Locks} = lists:keyfind(locks, 1, erts_debug:lcnt_collect()),
    lists:foldl(fun({Class, Id, Type, Stats}, Counts) ->
        lists:foldl(fun({Place, {Tries, Collisions, {S, Ns, Waits}}, _}, Acc) ->
            count({Class, Id, Type, Place}, {Tries, Collisions, 1_000_000_000 * S + Ns, Waits}, Acc)
        end, Counts, Stats)
    end, #{}, Locks).

count(Key, One, Counts) ->
    maps:update_with(Key, fun(Old) -> sum(Old, One) end, One, Counts).

sum({T0, C0, N0, W0}, {T1, C1, N1, W1}) -> {T0 + T1, C0 + C1, N0 + N1, W0 + W1}.

-doc "What has been counted in between. Pure.".
-spec since(counts(), counts()) -> told().
since(Before, Now) ->
    Locks = less(Now, Before),
    By = fun(Key) ->
        maps:groups_from_list(fun({Of, _}) -> Key(Of) end, Locks)
    end,
    #{
        classes => rows([
            {#{class => Class, type => Type,
               locks => length(lists:usort([Id || {{_, Id, _, _}, _} <- Of]))}, sums(Of)}
         || {Class, Type} := Of <- By(fun({Class, _, Type, _}) -> {Class, Type} end)
        ]),
        instances => [named(Row) || Row <- rows([
            {#{class => Class, type => Type, id => Id}, sums(Of)}
         || {Class, Id, Type} := Of <- By(fun({Class, Id, Type, _}) -> {Class, Id, Type} end)
        ])],
        places => rows([
            {#{class => Class, place => place(Place)}, sums(Of)}
         || {Class, Place} := Of <- By(fun({Class, _, _, Place}) -> {Class, Place} end)
        ])
    }.

sums(Of) -> lists:foldl(fun({_, Count}, Sum) -> sum(Count, Sum) end, {0, 0, 0, 0}, Of).

%% The difference of each lock that was tried and still exists; where somebody cleared its counters
%% meanwhile, what was counted since.
less(Now, Before) ->
    [{Key, Count}
     || Key := {T1, C1, N1, W1} = All <- Now,
        Count <- [case Before of
            #{Key := {T0, C0, N0, W0}} when T1 >= T0 ->
                {T1 - T0, max(0, C1 - C0), max(0, N1 - N0), max(0, W1 - W0)};
            _ -> All
        end],
        element(1, Count) > 0].

rows(Rows) ->
    Sorted = lists:sort(fun({_, A}, {_, B}) -> weight(A) >= weight(B) end, Rows),
    [Row#{tries => Tries, collisions => Collisions, ns => Ns, waits => Waits}
     || {Row, {Tries, Collisions, Ns, Waits}} <- lists:sublist(Sorted, ?MOST)].

weight({Tries, Collisions, Ns, _}) -> {Ns, Collisions, Tries}.

%% A run queue has the number of its scheduler; the queues of dirty schedulers follow.
named(#{class := run_queue, id := N} = Row) when is_integer(N) ->
    Row#{id := integer_to_binary(N), scheduler => N};
named(#{id := undefined} = Row) -> maps:remove(id, Row);
named(#{id := Id} = Row) ->
    Row#{id := text(io_lib:format("~0tP", [Id, 10], [{chars_limit, ?MOST_NAME}]))}.

place({File, Line}) -> text(io_lib:format("~ts:~w", [File, Line]));
place(_) -> ~"".

text(Chars) ->
    case unicode:characters_to_binary(Chars) of
        Text when is_binary(Text) -> Text
    end.
