%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_shape).
-moduledoc """
Checks whether a term has a shape: each process checks messages of other nodes before it uses them.
Pure.

A node of another version, or a foreign program, may send anything. A process that matched on it
would end, and lose its state.
""".

-export([fits/2]).
-export_type([shape/0]).

-define(ID_BYTES, 1_024).
-define(MOST, 1.0e100).

-doc """
`id` is the id of a node or a group (`t:sderl_mon_types:id/0`): UTF-8 of at most 1,024 bytes.
`text` is UTF-8 of any length, perhaps none. An `integer`, `natural` or `number` is below 1.0e100:
with one that is larger no rate could be made.
`{list, S}` is a proper list of `S`; `{map, K, V}` has keys `K` with values `V`; `{fields, Must,
May}` is a map that has all keys of `Must`, perhaps some of `May`, and any others, of which
nothing is said; `{tuple, [S]}` has these elements; `{value, V}` is that term; `{either, [S]}`
fits one of them.
""".
-type shape() ::
    any
    | atom
    | binary
    | boolean
    | id
    | integer
    | natural
    | number
    | pid
    | text
    | {value, term()}
    | {either, [shape()]}
    | {list, shape()}
    | {tuple, [shape()]}
    | {map, Key :: shape(), Value :: shape()}
    | {fields, Must :: #{term() => shape()}, May :: #{term() => shape()}}.

-doc "Whether a term is of a shape.".
-spec fits(shape(), term()) -> boolean().
fits(any, _) -> true;
fits(atom, Term) -> is_atom(Term);
fits(binary, Term) -> is_binary(Term);
fits(boolean, Term) -> is_boolean(Term);
fits(id, Term) -> is_binary(Term) andalso is_id(Term);
fits(integer, Term) -> is_integer(Term) andalso abs(Term) < ?MOST;
fits(natural, Term) -> is_integer(Term) andalso Term >= 0 andalso Term < ?MOST;
fits(number, Term) -> is_number(Term) andalso abs(Term) < ?MOST;
fits(pid, Term) -> is_pid(Term);
fits(text, Term) -> is_binary(Term) andalso is_utf8(Term);
fits({value, Value}, Term) -> Term =:= Value;
fits({either, Shapes}, Term) -> fits_one(Shapes, Term);
fits({list, Shape}, Term) -> is_list_of(Shape, Term);
fits({tuple, Shapes}, Term) -> is_tuple(Term) andalso are(Shapes, tuple_to_list(Term));
fits({map, Key, Value}, Term) ->
    is_map(Term) andalso is_list_of(Key, maps:keys(Term))
        andalso is_list_of(Value, maps:values(Term));
fits({fields, Must, May}, Term) ->
    is_map(Term) andalso has(Must, Term) andalso has(maps:with(maps:keys(Term), May), Term).

is_id(Bytes) ->
    Bytes =/= <<>> andalso byte_size(Bytes) =< ?ID_BYTES andalso is_utf8(Bytes).

%% Text that is no UTF-8 could be sent to no browser.
is_utf8(Bytes) -> is_binary(unicode:characters_to_binary(Bytes)).

fits_one([Shape | Shapes], Term) -> fits(Shape, Term) orelse fits_one(Shapes, Term);
fits_one([], _) -> false.

%% A frame has ten thousand numbers, each under an atom: these are checked without another call.
is_list_of(number, [N | Rest]) when is_number(N), abs(N) < ?MOST -> is_list_of(number, Rest);
is_list_of({either, [atom | _]} = Shape, [Atom | Rest]) when is_atom(Atom) ->
    is_list_of(Shape, Rest);
is_list_of(Shape, [First | Rest]) -> fits(Shape, First) andalso is_list_of(Shape, Rest);
is_list_of(_, End) -> End =:= [].

are([Shape | Shapes], [Term | Terms]) -> fits(Shape, Term) andalso are(Shapes, Terms);
are(Shapes, Terms) -> Shapes =:= [] andalso Terms =:= [].

has(Fields, Map) ->
    maps:fold(
        fun(Key, Shape, Ok) ->
            Ok andalso is_map_key(Key, Map) andalso fits(Shape, map_get(Key, Map))
        end,
        true,
        Fields
    ).
