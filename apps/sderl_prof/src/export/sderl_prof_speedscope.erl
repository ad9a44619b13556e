%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_speedscope).
-moduledoc "Time by stacks of functions, as speedscope reads it.".

-export([profile/2]).

-doc "One profile, with a sample for each stack, which weighs the stack's time.".
-spec profile([{sderl_prof_calls:stack(), non_neg_integer()}], sderl_prof_book:book()) -> map().
profile(Stacks, Book) ->
    Words = lists:usort(lists:append([Stack || {Stack, _} <- Stacks])),
    Places = maps:from_list([{Word, N} || {N, Word} <- lists:enumerate(0, Words)]),
    #{node := Node} = sderl_prof_book:meta(Book),
    #{
        ~"$schema" => ~"https://www.speedscope.app/file-format-schema.json",
        exporter => ~"sderl_prof",
        name => Node,
        shared => #{frames => [#{name => sderl_prof_book:word(Word, Book)} || Word <- Words]},
        profiles => [#{
            type => sampled,
            name => Node,
            unit => nanoseconds,
            startValue => 0,
            endValue => lists:sum([Ns || {_, Ns} <- Stacks]),
            samples => [[map_get(Word, Places) || Word <- lists:reverse(Stack)]
                        || {Stack, _} <- Stacks],
            weights => [Ns || {_, Ns} <- Stacks]
        }]
    }.
