%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_operations).
-moduledoc """
The operations on groups in a book, of a recording of `s_group`: who called which, with what, when,
how long it took and what it returned. An operation that is called by another one is a part of that,
and not listed; neither is what a process calls after one whose end was lost.
""".

-export([find/2, told/2]).
-export_type([found/0, operation/0, told/0]).

-include("sderl_prof_event.hrl").

-doc """
`took` and `result` are `none` where the end was not recorded. Times are those of the trace;
`function`, `detail` and `result` are words.
""".
-type operation() :: #{process := pos_integer(), at := integer(), took := non_neg_integer() | none,
                       function := pos_integer(), detail := non_neg_integer(),
                       result := non_neg_integer() | none}.
-doc "The first so many, in the order of their begin, and how many there are in all.".
-type found() :: #{all := non_neg_integer(), operations := [operation()]}.
-doc """
As a map that can be JSON. `node` is where it was called, in a book of several nodes. `nodes` has
null in the end where there are more; `ok` is null where the end is not known. `group` and `nodes`
are those of the call, `got_group` and `got_nodes` those that it gave.
""".
-type told() :: #{process := pos_integer(), by := binary(), node := binary(),
                  operation := binary(), at := integer(), took := non_neg_integer() | null,
                  ok := boolean() | null, text := binary(), arguments := binary(),
                  group := binary() | null, nodes := [binary() | null] | null,
                  name := binary() | null, of_process := binary() | null,
                  got_group := binary() | null, got_nodes := [binary() | null] | null}.

-record(step, {
    %% The calls of a process that have not returned, the latest one first.
    open = #{} :: #{pos_integer() => [operation()]},
    found = [] :: [operation()],
    count = 0 :: non_neg_integer(),
    most :: pos_integer()
}).

-doc "Those of a book, at most so many of them.".
-spec find(sderl_prof_book:book(), Most :: pos_integer()) -> found().
find(Book, Most) ->
    case sderl_prof_book:meta(Book) of
        #{kinds := #{operation := _}} ->
            Done = sderl_prof_book:fold(Book, #{}, fun step/7, #step{most = Most}),
            #step{open = Open, found = Found, count = Count} = Done,
            Begun = [lists:last(Calls) || _ := Calls <- Open],
            Sorted = lists:sort(fun(#{at := A}, #{at := B}) -> A =< B end,
                                Begun ++ lists:reverse(Found)),
            #{all => Count + length(Begun), operations => lists:sublist(Sorted, Most)};
        _ -> #{all => 0, operations => []}
    end.

step(T, ?OPERATION, _, P, Function, Detail, #step{open = Open} = S) ->
    One = #{process => P, function => Function, detail => Detail, at => T, took => none,
            result => none},
    S#step{open = Open#{P => [One | maps:get(P, Open, [])]}};
step(T, K, _, P, Function, Result, #step{open = Open} = S) when K =:= ?RESULT; K =:= ?FAILED ->
    case Open of
        #{P := [#{function := Function} = One]} ->
            ended(T, Result, One, S#step{open = maps:remove(P, Open)});
        %% A part of another one.
        #{P := [#{function := Function} | Calls]} -> S#step{open = Open#{P := Calls}};
        _ -> S
    end;
step(_, ?EXIT, _, P, _, _, #step{open = Open} = S) when is_map_key(P, Open) ->
    %% It did not return; another process may get its number.
    {Calls, Rest} = maps:take(P, Open),
    keep(lists:last(Calls), S#step{open = Rest});
step(_, _, _, _, _, _, S) -> S.

ended(T, Result, #{at := At} = One, S) ->
    keep(One#{took := max(0, T - At), result := Result}, S).

keep(One, #step{found = Found, count = Count, most = Most} = S) when Count < Most ->
    S#step{found = [One | Found], count = Count + 1};
keep(_, #step{count = Count} = S) -> S#step{count = Count + 1}.

-doc "An operation with words and names.".
-spec told(operation(), sderl_prof_book:book()) -> told().
told(#{process := P, function := Function, at := At, took := Took} = Operation, Book) ->
    Of = object(map_get(detail, Operation), Book),
    Result = object(map_get(result, Operation), Book),
    #{
        process => P,
        by => sderl_prof_book:label(P, Book),
        node => node_name(P, Book),
        operation => sderl_prof_book:word(Function, Book),
        at => At,
        took => case Took of none -> null; _ -> Took end,
        ok => maps:get(~"ok", Result, null),
        text => maps:get(~"text", Result, ~""),
        arguments => maps:get(~"arguments", Of, ~""),
        group => maps:get(~"group", Of, null),
        nodes => maps:get(~"nodes", Of, null),
        name => maps:get(~"name", Of, null),
        of_process => maps:get(~"process", Of, null),
        got_group => maps:get(~"group", Result, null),
        got_nodes => maps:get(~"nodes", Result, null)
    }.

%% Where there were too many details to tell them apart there is none.
object(none, _) -> #{};
object(Word, Book) ->
    try json:decode(sderl_prof_book:word(Word, Book)) of
        #{} = Object -> Object;
        _ -> #{}
    catch
        error:_ -> #{}
    end.

node_name(P, Book) ->
    case sderl_prof_book:node_of(P, Book) of
        #{node := Node} -> Node;
        none ->
            #{node := Node} = sderl_prof_book:meta(Book),
            Node
    end.
