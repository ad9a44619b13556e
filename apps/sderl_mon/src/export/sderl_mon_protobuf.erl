%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_protobuf).
-moduledoc """
The parts of protobuf's wire format that `m:sderl_mon_otlp` writes: varints, 64-bit values, and what
has a length. Pure.
""".

-export([varint/1, fixed64/2, double/2, text/2, message/2]).

-doc "A whole number, seven bits a byte, the lowest first.".
-spec varint(non_neg_integer()) -> iodata().
varint(N) when N < 128 -> [N];
varint(N) -> [128 + N rem 128 | varint(N div 128)].

-doc "A field of 64 bits.".
-spec fixed64(pos_integer(), 0..18_446_744_073_709_551_615) -> iodata().
fixed64(Field, N) -> [key(Field, 1), <<N:64/little>>].

-doc "A field that is a floating-point number of 64 bits.".
-spec double(pos_integer(), number()) -> iodata().
double(Field, N) -> [key(Field, 1), <<N:64/float-little>>].

-doc "A text in UTF-8. An empty one is left out, because that is the default.".
-spec text(pos_integer(), binary()) -> iodata().
text(_, ~"") -> [];
text(Field, Text) -> message(Field, Text).

-doc "A message within a message; it may be empty.".
-spec message(pos_integer(), iodata()) -> iodata().
message(Field, Content) -> [key(Field, 2), varint(iolist_size(Content)), Content].

key(Field, Type) -> varint(Field bsl 3 bor Type).
