%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_functions).
-moduledoc """
What pages ask of functions: who calls whom in a part of the time, as a tree of stacks and as a
graph, and the source text of one. Answers are maps that can be JSON.
""".

-export([calls/2, source/2]).

%% Functions and edges of an answer, those with most time.
-define(MOST_FUNCTIONS, 500).
-define(MOST_EDGES, 4_000).

-doc """
The calls of a part of the time, or of the whole where the part has too many events, as `of` tells;
those of one process where one is given (`sderl_prof_part:calls/2`). An edge is a list of caller,
callee, calls and nanoseconds; a caller of 0 is not known. `whole` has the numbers of a function in
all of the recording, `null` where these are the same or not known.
""".
-spec calls(#{from := integer(), to := integer(), process => pos_integer() | none},
            sderl_prof_window:view()) ->
    {ok, map()} | {error, sderl_prof_part:reason() | {no_process, integer()}}.
calls(Asked, #{book := Book} = View) ->
    #{process := Process} = Request = maps:merge(#{process => none}, Asked),
    maybe
        {ok, Whose} ?= sderl_prof_part:whose(Process, View),
        {ok, #{'of' := Of, tree := {Ns, Frames}, graph := Graph, outside := Outside}} ?=
            sderl_prof_part:calls(Request, View),
        {ok, #{'of' => Of, whose => Whose, ns => Ns, frames => frames(Frames, Book),
               graph => graph(Graph, Outside, Book)}}
    end.

frames(Frames, Book) ->
    [#{function => sderl_prof_book:word(F, Book), ns => Ns, below => frames(Below, Book)}
     || {F, Ns, Below} <- Frames].

graph(Graph, Outside, Book) ->
    #{functions := Functions, edges := Edges, left := {FunctionsLeft, EdgesLeft}} =
        sderl_prof_call_graph:bounded(Graph, ?MOST_FUNCTIONS, ?MOST_EDGES),
    Ends = lists:usort(lists:append([[A, B] || {A, B} := _ <- Edges])),
    #{
        functions => [#{function => F, name => sderl_prof_book:word(F, Book), calls => Calls,
                        own => Own, all => All, whole => whole(F, Outside)}
                      || {F, {Calls, Own, All}} <- lists:sort(fun longest/2,
                                                              maps:to_list(Functions))],
        edges => [[Caller, Callee, Calls, Ns]
                  || {{Caller, Callee}, {Calls, Ns}} <- lists:sort(maps:to_list(Edges))],
        names => #{integer_to_binary(F) => sderl_prof_book:word(F, Book)
                   || F <- Ends, F > 0, not is_map_key(F, Functions)},
        functions_left => FunctionsLeft,
        edges_left => EdgesLeft
    }.

longest({F, {_, _, A}}, {G, {_, _, B}}) -> {A, -F} >= {B, -G}.

whole(_, none) -> null;
whole(F, #{functions := Functions}) ->
    case Functions of
        #{F := {Calls, Own, All}} -> #{calls => Calls, own => Own, all => All};
        _ -> null
    end.

-doc "The source text of a function of the recording (`m:sderl_prof_listing`), by its word.".
-spec source(integer(), sderl_prof_window:view()) ->
    {ok, sderl_prof_listing:listing()} | {error, {no_function, integer()}}.
source(Function, #{book := Book}) ->
    case sderl_prof_listing:named(sderl_prof_book:word(Function, Book)) of
        {ok, Named} ->
            Code = case sderl_prof_book:meta(Book) of
                #{info := #{code := Recorded}} -> Recorded;
                _ -> []
            end,
            {ok, sderl_prof_listing:make(Named, Code)};
        error -> {error, {no_function, Function}}
    end.
