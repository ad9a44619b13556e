%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_sequential).
-moduledoc """
Orbit in one process: `seq` with one of the tables of `m:sderl_orbit_table`, to see what the tables
and the distribution cost; `plain` as one would write it without them, with a work list and a set of
`m:sets`.
""".

-export([seq/1, plain/1]).

-doc "With a table in one part. Reports as of one worker.".
-spec seq(#{generators := sderl_orbit_generators:generators(), size := pos_integer(),
            table := sderl_orbit_table:kind(), slots := pos_integer(), _ => _}) ->
    {ok, sderl_orbit_master:result()}.
seq(#{generators := Generators, size := N, table := Kind, slots := Slots}) ->
    T0 = erlang:monotonic_time(microsecond),
    Part = sderl_orbit_table:insert(
        0, sderl_orbit_table:part(1, sderl_orbit_table:new(Kind, N, 1, Slots))
    ),
    {Full, Received} = worklist([0], Part, Generators, N, 1),
    T1 = erlang:monotonic_time(microsecond),
    {ok, result(T1 - T0, Received, sderl_orbit_table:contents(Full))}.

worklist([X | Xs], Part, Generators, N, Received) ->
    images(Generators, X, Xs, Part, Generators, N, Received);
worklist([], Part, _, _, Received) ->
    {Part, Received}.

images([G | Gs], X, Xs, Part, Generators, N, Received) ->
    Y = sderl_orbit_generators:image(G, X, N),
    case sderl_orbit_table:insert(Y, Part) of
        seen -> images(Gs, X, Xs, Part, Generators, N, Received + 1);
        New -> images(Gs, X, [Y | Xs], New, Generators, N, Received + 1)
    end;
images([], _, Xs, Part, Generators, N, Received) ->
    worklist(Xs, Part, Generators, N, Received).

-doc "With a set.".
-spec plain(#{generators := sderl_orbit_generators:generators(), size := pos_integer(), _ => _}) ->
    {ok, sderl_orbit_master:result()}.
plain(#{generators := Generators, size := N}) ->
    T0 = erlang:monotonic_time(microsecond),
    {Set, Received} = plain([0], sets:from_list([0], [{version, 2}]), Generators, N, 1),
    T1 = erlang:monotonic_time(microsecond),
    Size = sets:size(Set),
    {ok,
        result(T1 - T0, Received, #{
            size => Size,
            sum => sets:fold(fun erlang:'+'/2, 0, Set),
            bytes => erts_debug:flat_size(Set) * erlang:system_info(wordsize),
            slots => Size,
            nonempty_slots => Size,
            max_freq => 1,
            freq => #{1 => Size}
        })}.

plain([], Set, _, _, Received) ->
    {Set, Received};
plain([X | Xs], Set, Generators, N, Received) ->
    Images = sderl_orbit_generators:images(Generators, X, N),
    New = [Y || Y <- lists:usort(Images), not sets:is_element(Y, Set)],
    plain(New ++ Xs, lists:foldl(fun sets:add_element/2, Set, New), Generators, N,
          Received + length(Images)).

result(Us, Received, Contents) ->
    #{
        seconds => Us / 1_000_000,
        reports => [
            #{
                node => node(),
                contents => Contents,
                vertices_received => Received,
                credits_returned => 0,
                least_credit => 0,
                sent => 0,
                sent_far => 0,
                sent_vertices => 0,
                waiting_max => 0,
                credit_atoms_max => 0,
                idle_init_ms => 0,
                idle_max_ms => 0,
                idle_tail_ms => 0
            }
        ]
    }.
