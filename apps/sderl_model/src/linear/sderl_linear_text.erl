%% SPDX-License-Identifier: Apache-2.0
-module(sderl_linear_text).
-moduledoc "A refusal of `m:sderl_linear`, for people.".

-export([format/1]).

-define(MOST, 120).

-doc """
The operations that are related to the last one, by the time of their call in microseconds; `...` if
there was no answer yet. Only the last ones of very many.
""".
-spec format(sderl_linear:refusal()) -> iolist().
format(#{last := #{start := Start, stop := Until} = Last, before := Before,
         possible := Possible}) ->
    All = lists:sort(fun(#{start := A}, #{start := B}) -> A =< B end,
                     [Last | concerned(Last, Before)]),
    Ops = lists:nthtail(max(0, length(All) - ?MOST), All),
    Zero = lists:min([Start | [S || #{start := S} <- Ops]]),
    Line = fun(#{node := N, start := S, stop := E, call := C, answer := A} = Op) ->
        {Stop, Answer} = if
            E =< Until, A =/= unknown -> {us(E - Zero), io_lib:format("~0tp", [A])};
            true -> {"...", case A of unknown -> "never answered"; _ -> "..." end}
        end,
        [Kind | Args] = tuple_to_list(C),
        io_lib:format("~ts ~10s ~10s  ~-24ts ~-40ts ~ts~n",
                      [case Op of Last -> ">"; _ -> " " end,
                       us(S - Zero),
                       Stop,
                       io_lib:format("~0tp", [N]),
                       [atom_to_list(Kind) | [io_lib:format(" ~0tp", [T]) || T <- Args]],
                       Answer])
    end,
    ["No order of writes explains the last answer (>); times in us.\n",
     [io_lib:format("(~b earlier ones left out)~n", [length(All) - ?MOST]) || length(All) > ?MOST],
     io_lib:format("  ~10s ~10s  ~-24ts ~-40ts ~ts~n",
                   ["called", "answered", "node", "call", "answer"]),
     lists:map(Line, Ops),
     case Possible of
         [] -> "It can have no answer at all.\n";
         _ ->
             io_lib:format("It could have answered: ~ts~n",
                           [lists:join(", ", [io_lib:format("~0tp", [A]) || A <- Possible])])
     end].

us(Ns) -> io_lib:format("~.1f", [Ns / 1000]).

concerned(Last, Before) -> sderl_linear:related([{terms(Op), Op} || Op <- Before], terms(Last)).

terms(#{call := {K, _}}) when K =:= off; K =:= on -> [];
terms(#{call := {kill, P}}) -> [{process, P}];
terms(#{call := {_, N}}) -> [{name, N}];
terms(#{call := {_, N, P}}) -> [{name, N}, {process, P}].
