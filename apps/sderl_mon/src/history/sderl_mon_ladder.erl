%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_ladder).
-moduledoc """
Frames at several resolutions: merged as they arrive, and chosen from by a query. Pure; the history
in memory, recordings and archives have the same kind of entries.

Each step of a ladder has one open slot, aligned to Unix time. A frame goes into the finest one; a
slot that closes gives a merged entry, and goes into the next step. Nothing is merged twice, so
totals stay those of the frames.
""".

-export([new/1, push/3]).
-export([choose/2, pick/2, unpack/2]).

-export_type([ladder/0, entry/0, entry/1, step/0]).

-doc "Milliseconds of a slot; 0 for frames as they came.".
-type step() :: non_neg_integer().

-doc "A frame that ends at `T` and spans `SpanMs`: its bytes, or where they are.".
-type entry(What) :: {T :: sderl_mon_types:t(), SpanMs :: pos_integer(), What}.
-type entry() :: entry(Packed :: binary()).

-record(rung, {
    step :: pos_integer(),
    slot = none :: integer() | none,
    acc :: sderl_mon_frame:acc() | none,
    %% The packed frame as long as the slot has only one.
    single = none :: entry() | none
}).

-opaque ladder() :: [#rung{}].

-doc "A ladder of steps, finest first, each a multiple of the one before. Errors: `bad_steps`.".
-spec new([pos_integer()]) -> {ok, ladder()} | {error, bad_steps}.
new(Steps) ->
    case multiples(1, Steps) of
        true -> {ok, [#rung{step = Step, acc = none} || Step <- Steps]};
        false -> {error, bad_steps}
    end.

multiples(Step, [Next | Rest]) when is_integer(Next), Next > Step, Next rem Step =:= 0 ->
    multiples(Next, Rest);
multiples(_Step, Rest) -> Rest =:= [].

-doc """
Takes the next frame; its `t` must not be before that of the last. Returns the entries that are
complete now, with their steps, finest first: the frame itself with step 0, then the slots that it
closed.
""".
-spec push(sderl_mon_types:frame(), sderl_mon_frame:is_rate(), ladder()) ->
    {[{step(), entry()}, ...], ladder()}.
push(#{t := T, span_ms := Span} = Frame, IsRate, Ladder) ->
    Entry = {T, Span, sderl_mon_pack:pack_frame(Frame)},
    Put = fun(Open) -> sderl_mon_frame:add(Frame, Open) end,
    {Closed, Ladder1} = climb(Ladder, T, Put, Entry, IsRate),
    {[{0, Entry} | Closed], Ladder1}.

climb([], _T, _Put, _Entry, _IsRate) ->
    {[], []};
climb([#rung{step = Step, slot = Slot, acc = Open} = Rung | Rest], T, Put, Entry, IsRate) ->
    case (T - 1) div Step of
        Slot ->
            {[], [Rung#rung{acc = Put(Open), single = none} | Rest]};
        New ->
            {Closed, Rest1} = close(Rung, Rest, IsRate),
            Acc = Put(sderl_mon_frame:new()),
            {Closed, [Rung#rung{slot = New, acc = Acc, single = Entry} | Rest1]}
    end.

close(#rung{acc = none}, Rest, _IsRate) ->
    {[], Rest};
close(#rung{step = Step, acc = Acc, single = Single}, Rest, IsRate) ->
    %% A slot with one frame keeps the bytes of the step before.
    {T, _Span, _Packed} = Entry = case Single of none -> packed(Acc, IsRate); _ -> Single end,
    Put = fun(Open) -> sderl_mon_frame:join(Open, Acc) end,
    {Closed, Rest1} = climb(Rest, T, Put, Entry, IsRate),
    {[{Step, Entry} | Closed], Rest1}.

packed(Acc, IsRate) ->
    #{t := T, span_ms := Span} = Frame = sderl_mon_frame:frame(Acc, IsRate),
    {T, Span, sderl_mon_pack:pack_frame(Frame)}.

-doc """
Entries without overlap, oldest first, chosen from those of several steps, finest first. The base is
the coarsest step that is at most `StepMs`; before its first entry come coarser ones, after its last
one finer ones.
""".
-spec choose(step(), [{step(), [entry(What)]}]) -> [entry(What)].
choose(StepMs, Rungs) ->
    {Fine, Coarse} = lists:partition(fun({Step, _}) -> Step =< StepMs end, Rungs),
    Older = [Entries || {_Step, Entries} <- Coarse],
    case lists:reverse([Entries || {_Step, Entries} <- Fine]) of
        [Base | Finer] -> older(Older, newer(Finer, Base));
        [] -> older(Older, [])
    end.

newer([], Entries) -> Entries;
newer([Finer | Rest], []) -> newer(Rest, Finer);
newer([Finer | Rest], Entries) ->
    {Last, _, _} = lists:last(Entries),
    newer(Rest, Entries ++ [E || {T, _, _} = E <- Finer, T > Last]).

older([], Entries) -> Entries;
older([Coarser | Rest], []) -> older(Rest, Coarser);
older([Coarser | Rest], [{T, Span, _} | _] = Entries) ->
    %% Coarse entries up to the first one that ends after the fine ones begin, then fine ones.
    Start = T - Span,
    case lists:splitwith(fun({Tc, _, _}) -> Tc =< Start end, Coarser) of
        {Before, [{Seam, SpanC, _} = Last | _]} when Seam - SpanC < Start ->
            older(Rest, Before ++ [Last] ++ [E || {Te, _, _} = E <- Entries, Te > Seam]);
        {Before, _After} ->
            older(Rest, Before ++ Entries)
    end.

-doc "The entry in whose span a time is, or else the last before it. Entries are oldest first.".
-spec pick(sderl_mon_types:t(), [entry(What)]) -> {ok, entry(What)} | none.
pick(T, Entries) ->
    case lists:splitwith(fun({Te, _Span, _What}) -> Te < T end, Entries) of
        {_Before, [{Te, Span, _} = Entry | _]} when Te - Span < T; Te =:= T -> {ok, Entry};
        {[_ | _] = Before, _After} -> {ok, lists:last(Before)};
        {[], _After} -> none
    end.

-doc """
The frame of an entry, with the wanted parts. For `total`, all links together are one link between
nodes without a name, and nothing is unpacked. Errors: `corrupt`.
""".
-spec unpack(entry(), sderl_mon_pack:want() | total) ->
    {ok, sderl_mon_types:frame()} | {error, corrupt}.
unpack({T, Span, Packed}, total) ->
    case sderl_mon_pack:total(Packed) of
        {ok, Flow} ->
            All = #{{<<>>, <<>>} => Flow},
            {ok, #{seq => 0, t => T, span_ms => Span, epoch => 0, nodes => #{}, links => All,
                   kinds => #{}, groups => #{}, lost => #{}}};
        {error, corrupt} = Error ->
            Error
    end;
unpack({_T, _Span, Packed}, Want) ->
    sderl_mon_pack:unpack_frame(Packed, Want).
