%% SPDX-License-Identifier: Apache-2.0
-module(sderl_copies).
-moduledoc false.
%% The tables of the groups that this node follows: a copy of the names of each. `sderl_follower`
%% writes them and everyone reads them.
%%
%% | table | row |
%% |---|---|
%% | `sderl_followed` | `#followed{}`: readers may use the copy until `until` (`none`: not at all); `copy` tells what was cleared from what came after it |
%% | `sderl_copies` | `{{Group, Name}, Pid, Home, Epoch, Seq, Meta, Generation}` |
%%
%% A reader that finds no name checks that the copy is still the one that it began with, so it
%% misses no name because the copy was cleared meanwhile. Rows of a copy are changed one by one, so
%% two reads may see two moments.

-include("../core/sderl_row.hrl").

-export([new/0]).
-export([follow/1, unfollow/1, followed/0, is_followed/1]).
-export([put/3, delete/2, sweep/2, clear/1, whole/3, note/2, count/1, words/0]).
-export([whereis/2, registration/2, names/1, info/0]).
-import(sderl_clock, [now_ms/0]).

-define(FOLLOWED, sderl_followed).
-define(COPIES, sderl_copies).
-define(ROW_PID, 2).

-record(followed, {
    group :: term(),
    %% In the unit of the clock.
    until = none :: none | integer(),
    copy = 0 :: integer(),
    as_of = none :: none | integer(),
    names = 0 :: non_neg_integer(),
    from = none :: none | node(),
    state = seeking :: atom()
}).

-doc "Makes the tables; the calling process owns them.".
-spec new() -> ok.
new() ->
    ?FOLLOWED = ets:new(?FOLLOWED,
                        [named_table, public, {keypos, #followed.group}, {read_concurrency, true}]),
    ?COPIES = ets:new(?COPIES, [named_table, public, {read_concurrency, true}]),
    ok.

%% ---------------------------------------------------------------- the follower

-doc "Whether the group was not followed before.".
-spec follow(term()) -> boolean().
follow(Group) -> ets:insert_new(?FOLLOWED, #followed{group = Group, copy = copy()}).

-doc "Forgets the group with its copy. Whether it was followed.".
-spec unfollow(term()) -> boolean().
unfollow(Group) ->
    Was = ets:take(?FOLLOWED, Group) =/= [],
    ok = drop(Group),
    Was.

-spec followed() -> [term()].
followed() -> [Group || #followed{group = Group} <- ets:tab2list(?FOLLOWED)].

-spec is_followed(term()) -> boolean().
is_followed(Group) -> ets:member(?FOLLOWED, Group).

-doc "Puts rows in place of those of the same names. How many names are new.".
-spec put(term(), Generation :: pos_integer(), [sderl_row:t()]) -> non_neg_integer().
put(Group, Generation, Rows) -> put(Group, Generation, Rows, 0).

put(Group, Generation, [?ROW(Name, Pid, Home, {Epoch, Seq}, Options) | Rows], New) ->
    Row = {{Group, Name}, Pid, Home, Epoch, Seq, sderl_op:meta(Options), Generation},
    case ets:insert_new(?COPIES, Row) of
        true -> put(Group, Generation, Rows, New + 1);
        false ->
            true = ets:insert(?COPIES, Row),
            put(Group, Generation, Rows, New)
    end;
put(_, _, [], New) -> New.

-doc "How many of the names were there.".
-spec delete(term(), [Name :: term()]) -> non_neg_integer().
delete(Group, Names) ->
    length([Name || Name <- Names, ets:take(?COPIES, {Group, Name}) =/= []]).

-doc "Deletes the rows of other generations; how many.".
-spec sweep(term(), Generation :: pos_integer()) -> non_neg_integer().
sweep(Group, Generation) ->
    Other = {'=/=', '$2', {const, Generation}},
    ets:select_delete(?COPIES, [{{{'$1', '_'}, '_', '_', '_', '_', '_', '$2'},
                                 [{'=:=', '$1', {const, Group}}, Other],
                                 [true]}]).

-doc "Deletes the copy. From now on readers ask a member.".
-spec clear(term()) -> ok.
clear(Group) ->
    _ = ets:update_element(?FOLLOWED, Group, [{#followed.until, none},
                                              {#followed.as_of, none},
                                              {#followed.copy, copy()}]),
    drop(Group).

drop(Group) ->
    _ = ets:select_delete(?COPIES, of_group(Group, true)),
    ok.

copy() -> erlang:unique_integer().

-doc "The copy is as of a time, and may be read until it is so old.".
-spec whole(term(), AsOf :: integer(), MaxAge :: pos_integer()) -> ok.
whole(Group, AsOf, MaxAge) ->
    Until = erlang:convert_time_unit(AsOf + MaxAge, millisecond, native),
    _ = ets:update_element(?FOLLOWED, Group, [{#followed.until, Until}, {#followed.as_of, AsOf}]),
    ok.

-doc "Sets what `info/0` shows of the copy.".
-spec note(term(), #{names := non_neg_integer(), from := node() | none, state := atom()}) -> ok.
note(Group, #{names := Names, from := From, state := State}) ->
    _ = ets:update_element(?FOLLOWED, Group, [{#followed.names, Names},
                                              {#followed.from, From},
                                              {#followed.state, State}]),
    ok.

-doc "Counts the rows of a group, for a process that begins.".
-spec count(term()) -> non_neg_integer().
count(Group) -> ets:select_count(?COPIES, of_group(Group, true)).

-doc "The words of memory that all copies take.".
-spec words() -> non_neg_integer().
words() -> ets:info(?COPIES, memory).

of_group(Group, Result) ->
    [{{{'$1', '$2'}, '_', '_', '_', '_', '_', '_'}, [{'=:=', '$1', {const, Group}}], [Result]}].

%% ---------------------------------------------------------------- reads of everyone

-doc """
The process of a name in the copy; `none` if there is no copy that may be read. The process may have
ended since; if it is one of this node that has, the copy is out of date.
""".
-spec whereis(term(), term()) -> {ok, pid() | undefined} | none.
whereis(Group, Name) ->
    %% Nearly always these two rows and the clock are enough.
    case is_fresh(ets:lookup_element(?FOLLOWED, Group, #followed.until, none)) of
        false -> none;
        true ->
            case ets:lookup_element(?COPIES, {Group, Name}, ?ROW_PID, none) of
                none -> look_again(Group, Name);
                Pid -> alive(Pid)
            end
    end.

look_again(Group, Name) ->
    case usable(Group) of
        none -> none;
        Copy ->
            case ets:lookup_element(?COPIES, {Group, Name}, ?ROW_PID, none) of
                none -> absent(Group, Copy);
                Pid -> alive(Pid)
            end
    end.

alive(Pid) when node(Pid) =:= node() ->
    case is_process_alive(Pid) of
        true -> {ok, Pid};
        false -> none
    end;
alive(Pid) -> {ok, Pid}.

%% In the clock's own unit: a conversion to milliseconds would take as long again.
is_fresh(none) -> false;
is_fresh(Until) -> erlang:monotonic_time() =< Until.

usable(Group) ->
    case ets:lookup(?FOLLOWED, Group) of
        [#followed{until = Until, copy = Copy}] ->
            case is_fresh(Until) of
                true -> Copy;
                false -> none
            end;
        [] -> none
    end.

%% Unless the copy was cleared in this moment.
absent(Group, Copy) ->
    case usable(Group) of
        Copy -> {ok, undefined};
        _ -> none
    end.

-doc "All that the copy has of a name.".
-spec registration(term(), term()) ->
    {ok, undefined
         | #{pid := pid(), home := node(), token := {term(), non_neg_integer()}, meta := term()}}
    | none.
registration(Group, Name) ->
    case usable(Group) of
        none -> none;
        Copy ->
            case ets:lookup(?COPIES, {Group, Name}) of
                [{_, Pid, Home, Epoch, Seq, Meta, _}] ->
                    case node(Pid) =/= node() orelse is_process_alive(Pid) of
                        true ->
                            {ok, #{pid => Pid, home => Home, token => {Epoch, Seq}, meta => Meta}};
                        false -> none
                    end;
                [] -> absent(Group, Copy)
            end
    end.

-doc "The names of a group.".
-spec names(term()) -> {ok, [Name :: term()]} | none.
names(Group) ->
    case usable(Group) of
        none -> none;
        Copy ->
            Names = ets:select(?COPIES, of_group(Group, '$2')),
            case usable(Group) of
                Copy -> {ok, Names};
                _ -> none
            end
    end.

-doc "The groups that are followed, and how each copy is.".
-spec info() ->
    [#{group := term(), state := atom(), names := non_neg_integer(), from := node() | none,
       age_ms := non_neg_integer() | undefined}].
info() ->
    Now = now_ms(),
    lists:sort([#{group => Group, state => State, names => Names, from => From,
                  age_ms => case AsOf of none -> undefined; _ -> max(0, Now - AsOf) end}
                || #followed{group = Group, state = State, names = Names, from = From, as_of = AsOf}
                       <- ets:tab2list(?FOLLOWED)]).
