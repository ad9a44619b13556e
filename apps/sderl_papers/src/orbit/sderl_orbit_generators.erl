%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_generators).
-moduledoc """
The generators of Orbit: functions on the space `[0, N)`, whose orbit is the least subset that has 0
and all images of its elements.

With `r(X) = abs(X) rem N`, and `fib` with `fib(0) = fib(1) = 1`:

| generator | image of X |
|---|---|
| 1 | `r(fib(X mod 16) + X)` |
| 2 | `r(fib(X mod 16 + 5) + 2 X^2 + 5 X - 1)` |
| 3 | `r(fib(X mod 16 + 10) - X^3 + 8 X)` |
| 4 | `r(fib(8 k + 3) - 1)`, k = 1, 2, 3 as `X mod 100` is less than 49, less than 98, or not |
| 5 | `r(fib(10 k) + 1)`, k = 1, 2, 3 as `X mod 1000` is less than 900, less than 999, or not |

`fib` is computed by the naive recursion, on purpose: it is the work, and it is uneven. Source: the
published Orbit of the RELEASE project.
""".

-export([parse/1, name/1, names/0, image/3, images/3]).
-export_type([generator/0, generators/0]).

-doc "One of the five.".
-type generator() :: 1..5.

-doc "Each at most once, in ascending order.".
-type generators() :: [generator()].

-define(GENERATORS, [1, 2, 3, 4, 5]).

-doc "The generators of a name such as `g12`, `\"g12\"` or `<<\"g12\">>`.".
-spec parse(atom() | string() | binary()) -> {ok, generators()} | error.
parse(Name) when is_atom(Name) -> parse(atom_to_list(Name));
parse(Name) when is_binary(Name) -> parse(binary_to_list(Name));
parse([$g | [_ | _] = Digits]) ->
    Generators = [Digit - $0 || Digit <- Digits],
    case lists:usort(Generators) =:= Generators andalso Generators -- ?GENERATORS of
        [] -> {ok, Generators};
        _ -> error
    end;
parse(_) ->
    error.

-doc "The name of generators.".
-spec name(generators()) -> string().
name(Generators) -> [$g | [$0 + G || G <- Generators]].

-doc "All 31, from `g1` to `g12345`.".
-spec names() -> [string()].
names() -> lists:sort(fun shorter/2, [name(Set) || Set <- subsets(?GENERATORS), Set =/= []]).

shorter(A, B) -> {length(A), A} =< {length(B), B}.

subsets([]) -> [[]];
subsets([G | Gs]) -> [Set || Rest <- subsets(Gs), Set <- [[G | Rest], Rest]].

-doc "The images of an element of `[0, N)`, in the order of the generators.".
-spec images(generators(), X :: non_neg_integer(), N :: pos_integer()) -> [non_neg_integer()].
images(Generators, X, N) -> [image(G, X, N) || G <- Generators].

-doc "The image by one generator.".
-spec image(generator(), X :: non_neg_integer(), N :: pos_integer()) -> non_neg_integer().
image(1, X, N) -> (fib(X rem 16) + X) rem N;
image(2, X, N) -> abs(fib(X rem 16 + 5) + 2 * X * X + 5 * X - 1) rem N;
image(3, X, N) -> abs(fib(X rem 16 + 10) - X * X * X + 8 * X) rem N;
image(4, X, N) ->
    if
        X rem 100 < 49 -> fib(11) - 1;
        X rem 100 < 98 -> fib(19) - 1;
        true -> fib(27) - 1
    end rem N;
image(5, X, N) ->
    if
        X rem 1000 < 900 -> fib(10) + 1;
        X rem 1000 < 999 -> fib(20) + 1;
        true -> fib(30) + 1
    end rem N.

fib(X) when X < 2 -> 1;
fib(X) -> fib(X - 1) + fib(X - 2).
