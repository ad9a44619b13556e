%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_block).
-moduledoc """
A block of events in columns, compressed. Pure.

An event here is six numbers: time in nanoseconds, code of its kind, scheduler, and three numbers of
32 bits: the process, and what the kind has beside it. A block's events are in the order of time,
and those of one time in the order in which they came.

Each block knows which processes may be in it: one bit for each remainder of a process's number by
`?BITS`, so that the events of one process are found without looking into the other blocks.
""".

-export([encode/1, fold/4, latest_first/1, may_have/2]).
-export_type([event/0, header/0]).

-define(BITS, 8192).

-type event() :: {Time :: integer(), Kind :: byte(), Scheduler :: non_neg_integer(),
                  Who :: non_neg_integer(), A :: non_neg_integer(), B :: non_neg_integer()}.
-doc "`kinds` counts the events of each code.".
-type header() :: #{count := pos_integer(), from := integer(), to := integer(),
                    processes := bitstring(), kinds := [{byte(), pos_integer()}]}.

-doc "The block of events that are sorted by time.".
-spec encode([event(), ...]) -> {header(), iodata()}.
encode([{From, _, _, _, _, _} | _] = Events) ->
    {To, _, _, _, _, _} = lists:last(Events),
    Count = length(Events),
    Width = case To - From < 1 bsl 40 of true -> 40; false -> 64 end,
    Columns = [
        << <<(T - From):Width>> || {T, _, _, _, _, _} <- Events >>,
        << <<K>> || {_, K, _, _, _, _} <- Events >>,
        << <<S:16>> || {_, _, S, _, _, _} <- Events >>,
        << <<P:32>> || {_, _, _, P, _, _} <- Events >>,
        << <<A:32>> || {_, _, _, _, A, _} <- Events >>,
        << <<B:32>> || {_, _, _, _, _, B} <- Events >>
    ],
    Header = #{count => Count, from => From, to => To, processes => bits(Events),
               kinds => runs(lists:sort([K || {_, K, _, _, _, _} <- Events]))},
    {Header, [<<Count:32, Width, From:64>>, deflate(Columns)]}.

runs([]) -> [];
runs([Kind | Kinds]) -> runs(Kind, 1, Kinds).

runs(Kind, N, [Kind | Kinds]) -> runs(Kind, N + 1, Kinds);
runs(Kind, N, Kinds) -> [{Kind, N} | runs(Kinds)].

%% The fastest level: it takes a fraction of what decoding takes, and the columns become a quarter.
deflate(Columns) ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, 1),
    Compressed = zlib:deflate(Z, Columns, finish),
    ok = zlib:close(Z),
    Compressed.

bits(Events) ->
    Numbers = lists:usort([P rem ?BITS || {_, _, _, P, _, _} <- Events]),
    bits(Numbers, 0, <<>>).

bits([N | Ns], At, Bits) ->
    bits(Ns, N + 1, <<Bits/bits, 0:(N - At), 1:1>>);
bits([], At, Bits) ->
    <<Bits/bits, 0:(?BITS - At)>>.

-doc "Whether a block with these bits may have events of this process.".
-spec may_have(Who :: non_neg_integer(), bitstring()) -> boolean().
may_have(Who, Bits) ->
    Skip = Who rem ?BITS,
    <<_:Skip, Bit:1, _/bits>> = Bits,
    Bit =:= 1.

-doc "Folds over the events in order; only over those of one process, if one is given.".
-spec fold(Block :: binary(), Fun, Acc, none | non_neg_integer()) -> Acc when
    Fun :: fun((integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
                non_neg_integer(), Acc) -> Acc).
fold(<<Count:32, Width, From:64/signed, Compressed/binary>>, Fun, Acc, Whose) ->
    All = zlib:uncompress(Compressed),
    TimeBytes = Count * Width div 8,
    <<Ts:TimeBytes/binary, Ks:Count/binary, Ss:(2 * Count)/binary, Ps:(4 * Count)/binary,
      As:(4 * Count)/binary, Bs:(4 * Count)/binary>> = All,
    case {Whose, Width} of
        {none, 40} -> each(Ts, Ks, Ss, Ps, As, Bs, From, Fun, Acc);
        {none, 64} -> each_wide(Ts, Ks, Ss, Ps, As, Bs, From, Fun, Acc);
        _ ->
            Only = fun(T, K, S, P, A, B, Acc1) when P =:= Whose -> Fun(T, K, S, P, A, B, Acc1);
                      (_, _, _, _, _, _, Acc1) -> Acc1
                   end,
            fold(<<Count:32, Width, From:64, Compressed/binary>>, Only, Acc, none)
    end.

%% Four at a time: most of this is the bookkeeping of the six columns.
each(<<T1:40, T2:40, T3:40, T4:40, Ts/binary>>, <<K1, K2, K3, K4, Ks/binary>>,
     <<S1:16, S2:16, S3:16, S4:16, Ss/binary>>, <<P1:32, P2:32, P3:32, P4:32, Ps/binary>>,
     <<A1:32, A2:32, A3:32, A4:32, As/binary>>, <<B1:32, B2:32, B3:32, B4:32, Bs/binary>>, From,
     Fun, Acc0) ->
    Acc1 = Fun(From + T1, K1, S1, P1, A1, B1, Acc0),
    Acc2 = Fun(From + T2, K2, S2, P2, A2, B2, Acc1),
    Acc3 = Fun(From + T3, K3, S3, P3, A3, B3, Acc2),
    Acc4 = Fun(From + T4, K4, S4, P4, A4, B4, Acc3),
    each(Ts, Ks, Ss, Ps, As, Bs, From, Fun, Acc4);
each(<<T:40, Ts/binary>>, <<K, Ks/binary>>, <<S:16, Ss/binary>>, <<P:32, Ps/binary>>,
     <<A:32, As/binary>>, <<B:32, Bs/binary>>, From, Fun, Acc) ->
    each(Ts, Ks, Ss, Ps, As, Bs, From, Fun, Fun(From + T, K, S, P, A, B, Acc));
each(_, _, _, _, _, _, _, _, Acc) ->
    Acc.

each_wide(<<T:64, Ts/binary>>, <<K, Ks/binary>>, <<S:16, Ss/binary>>, <<P:32, Ps/binary>>,
          <<A:32, As/binary>>, <<B:32, Bs/binary>>, From, Fun, Acc) ->
    each_wide(Ts, Ks, Ss, Ps, As, Bs, From, Fun, Fun(From + T, K, S, P, A, B, Acc));
each_wide(_, _, _, _, _, _, _, _, Acc) ->
    Acc.

-doc "All events of a block, the latest first.".
-spec latest_first(Block :: binary()) -> [event()].
latest_first(Block) ->
    fold(Block, fun(T, K, S, P, A, B, Events) -> [{T, K, S, P, A, B} | Events] end, [], none).
