%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_history).
-moduledoc """
The memory of a hub: frames at several resolutions, the topologies and the findings. Pure.

New frames are kept as they are, the last 600 of them (`raw`: ten minutes at one a second). Besides,
each level of `levels`, a step and how long to keep, has one frame a step, merged from the level
before (`sderl_mon_ladder`), so that totals stay what they were: by default a second for ten
minutes, ten seconds for two hours, a minute for a day.

Everything is packed (`sderl_mon_pack`): about 20 bytes a link and frame. `max_bytes` (64 MiB)
bounds the sum: beyond it the oldest of the fullest level goes. `info/1` says what is there.

A query gets the finest frames there are for the newest part of its time and coarser ones for the
older, without gap or overlap between levels; or frames no finer than it needs (`fold/7`).
""".

-export([new/1, frame/2, topology/2, findings/2, shape/1]).
-export([steps/1, piece/4, mended/1, is_older/2, inherit/2]).
-export([range/1, at/2, fold/7, store/1, frozen/1, info/1]).

-export_type([history/0, opts/0, past/0, info/0]).

-doc """
`levels` finest first; `max_bytes` of packed frames, topologies and findings; `is_rate`: no metric
is one by default.
""".
-type opts() :: #{
    raw => pos_integer(),
    levels => [{StepMs :: pos_integer(), KeepMs :: pos_integer()}],
    max_bytes => pos_integer(),
    is_rate => sderl_mon_frame:is_rate()
}.

-type entry() :: sderl_mon_ladder:entry().
-type ring() :: {Count :: non_neg_integer(), Bytes :: non_neg_integer(), queue:queue(entry())}.
%% `raw` is the level of step 0, which keeps a number of frames and not a time.
-record(level, {
    step :: sderl_mon_ladder:step(), keep :: pos_integer(), ring = {0, 0, queue:new()} :: ring()
}).

-opaque history() :: #{
    ladder := sderl_mon_ladder:ladder(),
    levels := [#level{}, ...],
    max_bytes := pos_integer(),
    topologies := ring(),
    last_topology := shape() | none,
    findings := ring(),
    is_rate := sderl_mon_frame:is_rate(),
    dropped := non_neg_integer()
}.

-doc "A topology without its time and the numbers of names.".
-type shape() :: #{epoch | nodes | groups | monitors := term()}.

-doc "The entries of another history, oldest first; frames by the step of their level.".
-type past() :: #{
    levels := [{sderl_mon_ladder:step(), [entry()]}],
    topologies := [entry()],
    findings := [entry()]
}.

-define(RAW, 600).
-define(LEVELS, [{1_000, 600_000}, {10_000, 7_200_000}, {60_000, 86_400_000}]).
-define(MAX_BYTES, 67_108_864).
-define(TOPOLOGIES, 500).
-define(FINDINGS, 500).

-doc "An empty history. A wrong option is replaced by its default.".
-spec new(opts()) -> history().
new(Opts) ->
    Empty = {0, 0, queue:new()},
    {Levels, Ladder} = levels(maps:get(levels, Opts, ?LEVELS)),
    #{
        ladder => Ladder,
        levels => [#level{step = Step, keep = Keep}
                   || {Step, Keep} <- [{0, positive(maps:get(raw, Opts, ?RAW), ?RAW)} | Levels]],
        max_bytes => positive(maps:get(max_bytes, Opts, ?MAX_BYTES), ?MAX_BYTES),
        topologies => Empty,
        last_topology => none,
        findings => Empty,
        is_rate => maps:get(is_rate, Opts, fun(_Metric) -> false end),
        dropped => 0
    }.

positive(N, _Default) when is_integer(N), N > 0 -> N;
positive(_Other, Default) -> Default.

levels(Levels) ->
    Good = is_list(Levels)
        andalso lists:all(fun({_, Keep}) -> is_integer(Keep) andalso Keep > 0; (_) -> false end,
                          Levels),
    case Good andalso sderl_mon_ladder:new([Step || {Step, _Keep} <- Levels]) of
        {ok, Ladder} -> {Levels, Ladder};
        _Wrong -> levels(?LEVELS)
    end.

%% Taking

-doc "Takes the next frame. Its `t` must not be before that of the last.".
-spec frame(sderl_mon_types:frame(), history()) -> history().
frame(Frame, #{ladder := Ladder, levels := Levels, is_rate := IsRate} = H) ->
    {Done, Ladder1} = sderl_mon_ladder:push(Frame, IsRate, Ladder),
    Levels1 = [
        case lists:keyfind(Step, 1, Done) of
            {Step, Entry} -> keep(Entry, Level);
            false -> Level
        end
     || #level{step = Step} = Level <- Levels
    ],
    bound(H#{ladder := Ladder1, levels := Levels1}).

keep(Entry, #level{step = 0, keep = Most, ring = Ring} = Level) ->
    Level#level{ring = most(Most, in(Entry, Ring))};
keep({T, _Span, _Packed} = Entry, #level{keep = Keep, ring = Ring} = Level) ->
    Level#level{ring = since(T - Keep, in(Entry, Ring))}.

-doc "Takes a topology, unless it is the last one with another time and other numbers of names.".
-spec topology(sderl_mon_types:topology(), history()) -> history().
topology(#{t := T} = Topology, #{topologies := Ring, last_topology := Last} = H) ->
    case shape(Topology) of
        Last -> H;
        New ->
            H#{topologies := most(?TOPOLOGIES, in({T, 0, sderl_mon_pack:pack(Topology)}, Ring)),
               last_topology := New}
    end.

-doc """
The nodes and groups of a topology, without its time and the numbers of names, which change all the
time and are in the frames.
""".
-spec shape(sderl_mon_types:topology()) -> shape().
shape(#{groups := Groups} = Topology) ->
    maps:remove(t,
                Topology#{groups := #{Id => maps:remove(names, Group) || Id := Group <- Groups}}).

-doc "Takes the findings from a time on.".
-spec findings({sderl_mon_types:t(), [sderl_mon_types:finding()]}, history()) -> history().
findings({T, Findings}, #{findings := Ring} = H) ->
    H#{findings := most(?FINDINGS, in({T, 0, sderl_mon_pack:pack(Findings)}, Ring))}.

%% Rings

in({_T, _Span, Packed} = Entry, {N, Bytes, Queue}) ->
    {N + 1, Bytes + byte_size(Packed), queue:in(Entry, Queue)}.

out({N, Bytes, Queue}) ->
    {{value, {_T, _Span, Packed}}, Queue1} = queue:out(Queue),
    {N - 1, Bytes - byte_size(Packed), Queue1}.

most(Most, {N, _Bytes, _Queue} = Ring) when N > Most -> most(Most, out(Ring));
most(_Most, Ring) -> Ring.

since(From, {_N, _Bytes, Queue} = Ring) ->
    case queue:peek(Queue) of
        {value, {T, _Span, _Packed}} when T =< From -> since(From, out(Ring));
        _Newer -> Ring
    end.

entries({_N, _Bytes, Queue}) -> queue:to_list(Queue).

%% A slot with only one frame shares that frame's bytes with the level before. They count twice
%% here, so that the real size stays below the bound.
bound(#{max_bytes := Max} = H) ->
    case bytes(H) > Max of
        true -> shed(H);
        false -> H
    end.

bytes(#{levels := Levels, topologies := {_, Topologies, _}, findings := {_, Findings, _}}) ->
    Topologies + Findings + lists:sum([Bytes || #level{ring = {_, Bytes, _}} <- Levels]).

shed(#{levels := Levels, dropped := Dropped} = H) ->
    case lists:max([Bytes || #level{ring = {_, Bytes, _}} <- Levels]) of
        0 ->
            H;
        Fullest ->
            {Before, [#level{ring = Ring} = Level | After]} =
                lists:splitwith(fun(#level{ring = {_, Bytes, _}}) -> Bytes < Fullest end, Levels),
            bound(H#{levels := Before ++ [Level#level{ring = out(Ring)} | After],
                     dropped := Dropped + 1})
    end.

%% The past of another history

-doc "The steps of the levels, 0 for frames as they came.".
-spec steps(history()) -> [sderl_mon_ladder:step()].
steps(#{levels := Levels}) -> [Step || #level{step = Step} <- Levels].

-doc """
The entries of a part that end after a time, oldest first, about `Most` bytes of them, and whether
there are more.
""".
-spec piece({frames, sderl_mon_ladder:step()} | topologies | findings, sderl_mon_types:t(),
            pos_integer(), history()) ->
    {[entry()], More :: boolean()}.
piece(Part, After, Most, H) ->
    sized([Entry || {T, _Span, _Packed} = Entry <- part(Part, H), T > After], Most, []).

part({frames, Step}, #{levels := Levels}) ->
    lists:append([entries(Ring) || #level{step = S, ring = Ring} <- Levels, S =:= Step]);
part(topologies, #{topologies := Ring}) ->
    entries(Ring);
part(findings, #{findings := Ring}) ->
    entries(Ring).

sized([{_T, _Span, Packed} = Entry | Rest], Most, Taken) when Most > 0 ->
    sized(Rest, Most - byte_size(Packed), [Entry | Taken]);
sized(Rest, _Most, Taken) -> {lists:reverse(Taken), Rest =/= []}.

-doc """
The last slot of each level was still open in the other history: it is made from the frames of the
finer levels.
""".
-spec mended(past()) -> past().
mended(#{levels := Levels} = Past) ->
    Mend = fun({Step, Entries}, Finer) ->
        Finer ++ [{Step, Entries ++ open(Entries, sderl_mon_ladder:choose(0, Finer))}]
    end,
    Past#{levels := lists:foldl(Mend, [], lists:keysort(1, Levels))}.

open(Entries, Finer) ->
    Last = lists:max([0 | [T || {T, _, _} <- Entries]]),
    case sderl_mon_frame:merge([Frame
                                || {T, _, Packed} <- Finer, T > Last,
                                   {ok, Frame} <- [sderl_mon_pack:unpack_frame(Packed)]]) of
        {ok, #{t := T, span_ms := Span} = Frame} -> [{T, Span, sderl_mon_pack:pack_frame(Frame)}];
        none -> []
    end.

-doc """
Whether the past begins earlier than the history does: only then is it worth taking over.
""".
-spec is_older(past(), history()) -> boolean().
is_older(#{levels := Given}, H) ->
    Begins = [T - Span || {_Step, [{T, Span, _} | _]} <- Given],
    case range(H) of
        {0, 0} -> Begins =/= [];
        {From, _To} -> lists:any(fun(Begin) -> Begin < From end, Begins)
    end.

-doc "Puts the past of another history before what is newer here.".
-spec inherit(past(), history()) -> history().
inherit(#{levels := Given, topologies := Topologies, findings := Findings}, H) ->
    #{levels := Levels, topologies := OwnTopologies, findings := OwnFindings} = H,
    To = lists:max([0 | [T || {_Step, Entries} <- Given, {T, _, _} <- Entries]]),
    {ok, Ladder} = sderl_mon_ladder:new([Step || #level{step = Step} <- Levels, Step > 0]),
    Older = H#{
        ladder := Ladder,
        levels := [older(Given, To, Level) || Level <- Levels],
        topologies := most(?TOPOLOGIES, ring(Topologies ++ newer(To, OwnTopologies))),
        findings := most(?FINDINGS, ring(Findings ++ newer(To, OwnFindings))),
        last_topology := none
    },
    %% Our own newer frames are added again: the sums of open slots must not contain older ones.
    [#level{step = 0, ring = Raw} | _] = Levels,
    Own = [Frame
           || {_, _, Packed} <- newer(To, Raw),
              {ok, Frame} <- [sderl_mon_pack:unpack_frame(Packed)]],
    lists:foldl(fun frame/2, bound(Older), Own).

%% The other configuration may have other steps: those levels stay empty.
older(Given, To, #level{step = Step, keep = Keep} = Level) ->
    Ring = ring(proplists:get_value(Step, Given, [])),
    Level#level{ring = case Step of 0 -> most(Keep, Ring); _ -> since(To - Keep, Ring) end}.

ring(Entries) -> lists:foldl(fun in/2, {0, 0, queue:new()}, Entries).

newer(To, Ring) -> [Entry || {T, Span, _} = Entry <- entries(Ring), T > To + Span div 2].

%% Answering

-doc "From the beginning of the oldest frame to the end of the newest; `{0, 0}` for none.".
-spec range(history()) -> {sderl_mon_types:t(), sderl_mon_types:t()}.
range(#{levels := [#level{ring = {_, _, Raw}} | _] = Levels}) ->
    case queue:peek_r(Raw) of
        {value, {To, _, _}} ->
            Oldest = [queue:peek(Queue) || #level{ring = {_, _, Queue}} <- Levels],
            {lists:min([T - Span || {value, {T, Span, _}} <- Oldest]), To};
        empty ->
            {0, 0}
    end.

-doc """
The frame in whose span a time is, or else the last before it, with the topology and the findings of
its time.
""".
-spec at(sderl_mon_types:t(), history()) -> {ok, sderl_mon_types:moment()} | {error, none}.
at(T, H) ->
    case sderl_mon_ladder:pick(T, choose(0, H)) of
        {ok, {Ft, _Span, Packed}} ->
            {ok, Frame} = sderl_mon_pack:unpack_frame(Packed),
            case topology_at(Ft, H) of
                {ok, Topology} ->
                    {ok, #{topology => Topology, frame => Frame, findings => findings_at(Ft, H)}};
                none -> {error, none}
            end;
        none ->
            {error, none}
    end.

%% The topology of a time; the oldest for times before it.
topology_at(T, #{topologies := Ring}) ->
    case entries(Ring) of
        [] ->
            none;
        [Oldest | _] = All ->
            {_T, _, Packed} = lists:last([Oldest | [E || {Te, _, _} = E <- All, Te =< T]]),
            {ok, _Topology} = sderl_mon_pack:unpack(Packed)
    end.

findings_at(T, #{findings := Ring}) ->
    case [Packed || {Tf, _, Packed} <- entries(Ring), Tf =< T] of
        [] ->
            [];
        Earlier ->
            {ok, Findings} = sderl_mon_pack:unpack(lists:last(Earlier)),
            Findings
    end.

-doc """
Folds over the wanted parts of the frames whose spans end in a time range, oldest first, of the
coarsest level whose step is at most `StepMs`.
""".
-spec fold(
    sderl_mon_types:t(),
    sderl_mon_types:t(),
    non_neg_integer(),
    sderl_mon_pack:want() | total,
    fun((sderl_mon_types:frame(), Acc) -> Acc),
    Acc,
    history()
) -> Acc.
fold(From, To, StepMs, Want, Fun, Acc0, H) ->
    lists:foldl(
        fun({T, _Span, _Packed} = Entry, Acc) when T >= From, T =< To ->
                {ok, Frame} = sderl_mon_ladder:unpack(Entry, Want),
                Fun(Frame, Acc);
            (_Outside, Acc) ->
                Acc
        end,
        Acc0,
        choose(StepMs, H)
    ).

choose(StepMs, #{levels := Levels}) ->
    sderl_mon_ladder:choose(StepMs,
                            [{Step, entries(Ring)} || #level{step = Step, ring = Ring} <- Levels]).

-doc "The history as a store, for `sderl_mon_query`.".
-spec store(history()) -> sderl_mon_types:store().
store(H) ->
    #{
        range => range(H),
        topology => fun(T) -> topology_at(T, H) end,
        fold => fun(From, To, StepMs, Want, Fun, Acc) ->
            fold(From, To, StepMs, Want, Fun, Acc, H)
        end
    }.

-doc "The same without the sums of open slots, for processes that only query it.".
-spec frozen(history()) -> history().
frozen(H) ->
    {ok, Ladder} = sderl_mon_ladder:new([]),
    H#{ladder := Ladder, last_topology := none}.

-doc "The content; `dropped` counts the frames that `max_bytes` has cost.".
-type info() :: #{
    frames := non_neg_integer(),
    bytes := non_neg_integer(),
    max_bytes := pos_integer(),
    dropped := non_neg_integer(),
    topologies := non_neg_integer(),
    findings := non_neg_integer(),
    levels := [#{step_ms := non_neg_integer(), frames := non_neg_integer(),
                 bytes := non_neg_integer(), from := integer(), to := integer()}]
}.

-doc "What a history contains.".
-spec info(history()) -> info().
info(#{levels := Levels, max_bytes := Max, dropped := Dropped, topologies := {Ts, _, _},
       findings := {Fs, _, _}} = H) ->
    About = [about(Step, Ring) || #level{step = Step, ring = Ring} <- Levels],
    #{
        frames => lists:sum([N || #{frames := N} <- About]),
        bytes => bytes(H),
        max_bytes => Max,
        dropped => Dropped,
        topologies => Ts,
        findings => Fs,
        levels => About
    }.

about(Step, {N, Bytes, Queue}) ->
    {From, To} =
        case {queue:peek(Queue), queue:peek_r(Queue)} of
            {{value, {First, Span, _}}, {value, {Last, _, _}}} -> {First - Span, Last};
            {empty, empty} -> {0, 0}
        end,
    #{step_ms => Step, frames => N, bytes => Bytes, from => From, to => To}.
