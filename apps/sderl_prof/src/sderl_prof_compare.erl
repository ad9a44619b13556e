%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_compare).
-moduledoc """
Compares the books of two recordings, before and after a change, as one map that can be JSON: texts
are binaries, times are nanoseconds.
""".

-export([make/3]).
-export_type([options/0]).

-define(TOP, 10).

-doc "`top`: rows of each list.".
-type options() :: #{top => pos_integer()}.

-doc "What differs between the books in these two folders.".
-spec make(Before :: file:filename_all(), After :: file:filename_all(), options()) ->
    {ok, map()} | {error, {no_book, file:filename_all()}}.
make(Before, After, Options) ->
    maybe
        {ok, A} ?= side(Before),
        {ok, B} ?= side(After),
        Difference = sderl_prof_difference:compare(A, B, maps:get(top, Options, ?TOP)),
        {ok, Difference#{before => about(A), 'after' => about(B), notes => notes(A, B)}}
    end.

side(Dir) ->
    maybe
        {ok, Book} ?= sderl_prof_book:open(Dir),
        #{kinds := Kinds} = Meta = sderl_prof_book:meta(Book),
        {From, To} = sderl_prof_book:range(Meta),
        Mode = sderl_prof_activity:mode(Kinds),
        New = sderl_prof_summary:new(#{mode => Mode, about => fun(P) -> known(P, Book) end}),
        #{waits := Waits} = Summary = sderl_prof_summary:finish(
            To, sderl_prof_book:fold(Book, #{}, fun sderl_prof_summary:step/7, New)
        ),
        %% Words have other numbers in another book.
        Side = Summary#{length => max(1, To - From), meta => Meta, runnable => Mode,
                        waits := #{site(Site, Book) => Row || Site := Row <- Waits}},
        ok = sderl_prof_book:close(Book),
        {ok, Side}
    end.

known(P, Book) ->
    case sderl_prof_book:entity(P, Book) of
        #{kind := process, name := Name, entry := Entry, parent := Parent} ->
            #{name => sderl_prof_book:word(Name, Book), parent => Parent,
              entry => sderl_prof_book:word(Entry, Book)};
        _ -> none
    end.

site(0, _) -> ~"?";
site(Site, Book) -> sderl_prof_book:word(Site, Book).

about(#{meta := Meta, length := Length, totals := Totals, processes := Processes, kin := Kin,
        rest := Rest, runnable := Mode}) ->
    (maps:with([node, events, dropped, lost_events, problems], Meta))#{
        seconds => Length / 1.0e9,
        items => items(Meta),
        runnable => Mode,
        processes => Processes,
        kinds => map_size(Kin),
        not_told_apart => case Rest of none -> 0; {N, _} -> N end,
        totals => Totals,
        between => between(Meta)
    }.

%% Of a recording of several nodes: pairs of nodes with messages, in whichever direction. Names of
%% nodes may be others in another run.
between(#{traffic := All}) ->
    %% A process may name its own node in what it sends to.
    Rows = [Row || #{from := From, to := To} = Row <- All, From =/= To],
    Messages = fun(#{sent := Sent, received := Received}) -> max(Sent, Received) end,
    #{
        links => length(lists:usort([lists:sort([From, To])
                                     || #{from := From, to := To} <- Rows])),
        messages => lists:sum([Messages(Row) || Row <- Rows]),
        bytes => lists:sum([Bytes || #{sent_bytes := Bytes} <- Rows])
    };
between(_) -> null.

items(#{info := #{items := Items}}) -> lists:sort(Items);
items(_) -> [].

%% Differences that make the two hard to compare.
notes(#{length := La, runnable := Ma, meta := MetaA} = A, #{length := Lb, runnable := Mb,
                                                            meta := MetaB} = B) ->
    [unicode:characters_to_binary(Text) || {true, Text} <- [
        {abs(La - Lb) > 0.05 * max(La, Lb),
         io_lib:format("the recordings last ~.3f s and ~.3f s: compare shares where they are parts "
                       "of what goes on without end", [La / 1.0e9, Lb / 1.0e9])},
        {Ma =/= Mb,
         "what could run is known in different ways, so that waits and waits for a scheduler "
         "cannot be compared; record both with the system profiler free"},
        {items(MetaA) =/= items(MetaB),
         "different items were recorded, which cost differently and tell differently"},
        {lost(A) + lost(B) > 0, "events were lost, so that sums are too small"}
    ]].

lost(#{meta := #{dropped := Dropped, lost_events := Lost}}) -> Dropped + Lost.
