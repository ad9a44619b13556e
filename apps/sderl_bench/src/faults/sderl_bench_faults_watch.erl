%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_watch).
-moduledoc """
Polls a node until it has what it must have, and tells when that was.

The expected names are given in two ways: as a list of names with their processes and, if these are
thousands, as the *digest* of all names of a class. A digest does not depend on the order, and
digests of parts add up.
""".

-export([settle/4, names/1, empty/2]).
-export([digest/1, sum/1, missing/2]).
-export_type([digest/0, expected/0]).

-doc "How many pairs of a name and a pid, and the sum of their hashes.".
-type digest() :: {non_neg_integer(), non_neg_integer()}.

-doc """
`names` that must be there, `classes` of names that must be complete, nodes whose processes are
`dead`, so that their names must be gone.
""".
-type expected() :: #{
    names := [{term(), pid()}],
    classes := #{atom() => digest()},
    dead := [node()]
}.

-define(PAUSE_MS, 5).

-doc """
Waits until this node has what is expected and its component is exactly the live nodes; gives the
moment, in us, and the registry's view. `{error, Last}` says what was wrong last, after so many
milliseconds.
""".
-spec settle(module(), [node()], expected(), non_neg_integer()) ->
    {ok, integer(), term()} | {error, term()}.
settle(Registry, Live, Expected, Ms) ->
    poll(fun() -> look(Registry, Live, Expected) end, Ms).

look(Registry, Live, #{names := Names} = Expected) ->
    maybe
        [] ?= missing(Names, fun(Name) -> Registry:find(Name) end),
        ok ?= whole(Registry, Expected),
        {steady, What} ?= Registry:view(Live),
        {ok, What}
    else
        [_ | _] = Missing -> {missing, length(Missing), lists:sublist(Missing, 3)};
        Other -> Other
    end.

%% Reads all names only where classes or dead nodes need it.
whole(_, #{classes := Classes, dead := []}) when map_size(Classes) =:= 0 ->
    ok;
whole(Registry, #{classes := Classes, dead := Dead}) ->
    All = Registry:names(),
    Found = #{Class => digest([Pair || {{{C, _}, _}, _} = Pair <- All, C =:= Class])
              || Class := _ <- Classes},
    case [Name || {Name, Pid} <- All, lists:member(node(Pid), Dead)] of
        [] when Found =:= Classes -> ok;
        [] -> {differs, Found};
        Left -> {names_of_the_dead, length(Left), lists:sublist(Left, 3)}
    end.

-doc "Waits until this node knows no names, or so many milliseconds; gives those that are left.".
-spec empty(module(), non_neg_integer()) -> [{term(), pid()}].
empty(Registry, Ms) ->
    case
        poll(
            fun() ->
                case Registry:names() of
                    [] -> {ok, empty};
                    Names -> Names
                end
            end,
            Ms
        )
    of
        {ok, _, empty} -> [];
        {error, Names} -> Names
    end.

-doc "All that this node knows.".
-spec names(module()) -> [{term(), pid()}].
names(Registry) -> Registry:names().

%% Polls at most half of the time, to leave the processor to what it observes.
poll(Fun, Ms) ->
    poll_until(Fun, erlang:monotonic_time(millisecond) + Ms).

poll_until(Fun, Deadline) ->
    Start = erlang:monotonic_time(millisecond),
    Seen = seen(Fun),
    Now = erlang:monotonic_time(millisecond),
    case Seen of
        {ok, What} ->
            {ok, os:system_time(microsecond), What};
        Last when Now >= Deadline ->
            {error, Last};
        _ ->
            receive
            after max(?PAUSE_MS, Now - Start) -> ok
            end,
            poll_until(Fun, Deadline)
    end.

%% A check that raises now may hold later.
seen(Fun) ->
    try
        Fun()
    catch
        Class:Reason -> {Class, Reason}
    end.

-doc "The digest of these pairs.".
-spec digest([{term(), pid()}]) -> digest().
digest(Pairs) ->
    {length(Pairs), lists:sum([erlang:phash2(Pair, 1 bsl 32) || Pair <- Pairs])}.

-doc "The digest of all pairs of the parts.".
-spec sum([digest()]) -> digest().
sum(Digests) ->
    {lists:sum([Count || {Count, _} <- Digests]), lists:sum([Hash || {_, Hash} <- Digests])}.

-doc "The names that are not found, or found with another pid.".
-spec missing([{Name, pid()}], fun((Name) -> pid() | undefined)) -> [Name].
missing(Names, Find) ->
    [Name || {Name, Pid} <- Names, Find(Name) =/= Pid].
