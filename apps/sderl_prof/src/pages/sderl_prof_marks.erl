%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_marks).
-moduledoc """
Operations on groups for pages: one by one where a part of the time has few, and counts of its equal
parts where it has many. Answers are maps that can be JSON, with times in nanoseconds since the
begin of the recording.
""".

-export([operations/2]).
-export_type([request/0]).

%% Equal parts of the time for which operations are counted.
-define(CELLS, 160).

-doc "`processes`: those of which operations are counted by themselves.".
-type request() :: #{from := integer(), to := integer(), limit := pos_integer(),
                     processes := [pos_integer()]}.

-doc """
The operations that go on in a part of the time: the first `limit` as `rows`, how many there are
(`count`), and how many in the whole recording (`all`), of which the first `kept` are known. Where
there are more than `limit`, `cells` counts all of them by the equal part in which they begin:
`[Part, Node, Process, Count]`. `Node` is 0 where one node was recorded, `Process` 0 for all of the
node.
""".
-spec operations(request(), sderl_prof_window:view()) ->
    {ok, map()} | {error, sderl_prof_part:reason()}.
operations(#{from := From0, to := To0, limit := Limit, processes := Processes},
           #{book := Book, index := #{from := Begin, to := End, operations := Found}} = View) ->
    #{all := All, operations := Operations} = Found,
    maybe
        {ok, Range} ?= sderl_prof_part:range(From0, To0, View),
        {From, To} = case Range of
            whole -> {Begin, End + 1};
            _ -> Range
        end,
        Within = [One || One <- Operations, is_within(One, From, To)],
        Count = length(Within),
        {ok, #{
            all => All, kept => length(Operations), count => Count, parts => ?CELLS,
            rows => [row(One, Begin, Book) || One <- lists:sublist(Within, Limit)],
            cells => case Count > Limit of
                true -> cells(Within, From, To, maps:from_keys(Processes, shown), Book);
                false -> []
            end
        }}
    end.

is_within(#{at := At, took := none}, From, To) -> At >= From andalso At < To;
is_within(#{at := At, took := Took}, From, To) -> At + Took >= From andalso At < To.

row(One, Begin, Book) ->
    #{at := At} = Told = sderl_prof_operations:told(One, Book),
    Told#{at := At - Begin}.

cells(Within, From, To, Shown, Book) ->
    Counts = lists:foldl(fun(#{at := At, process := P}, Acc) ->
        Part = max(0, (At - From) * ?CELLS div (To - From)),
        Node = number(P, Book),
        Keys = [{Part, Node, 0} | [{Part, Node, P} || is_map_key(P, Shown)]],
        lists:foldl(fun(Key, A) -> A#{Key => maps:get(Key, A, 0) + 1} end, Acc, Keys)
    end, #{}, Within),
    [[Part, Node, P, N] || {{Part, Node, P}, N} <- lists:sort(maps:to_list(Counts))].

number(P, Book) ->
    case sderl_prof_book:node_of(P, Book) of
        #{number := N} -> N;
        none -> 0
    end.
