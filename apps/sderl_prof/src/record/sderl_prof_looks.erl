%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_looks).
-moduledoc """
What a sampler's looks have found, in each part of the time. Pure, and needs no other module, so
that it can be loaded into any node.

Its size is bounded: when there are too many rows, the parts become twice as long; when one part
alone has too many, further rows are counted together as `others`.
""".

-export([new/2, is_due/2, next_part/2, count/2, result/2]).
-export_type([looks/0, snapshot/0, look/0, part/0, cell/0, group/0, result/0]).

%% Parts of the time, and how long one is at least.
-define(PARTS, 60).
-define(LEAST_NS, 250_000_000).
%% Kinds of processes that are distinguished; cells, and groups, of all parts.
-define(MOST_GROUPS, 5_000).
-define(MOST_ROWS, 20_000).
-define(OTHERS, {others, others, 0}).

-doc "The counters of a node at a time.".
-type snapshot() :: #{
    at := integer(),
    reductions := non_neg_integer(),
    schedulers := [{pos_integer(), non_neg_integer(), non_neg_integer()}]
}.
-doc """
A look at a process: its kind, its state, the function in which it is, the caller of that, and how
many messages wait for it. `ns`: the process time that the look stands for, in nanoseconds; `more`:
reductions since the look before; `is_new`: it was not looked at before.
""".
-type look() :: #{
    group := term(), status := atom(), function := term(), caller := term(),
    queue := non_neg_integer(), ns := number(), more := non_neg_integer(), is_new := boolean()
}.
-doc "Its length, the node's counters in it, and how long each scheduler was awake of how long.".
-type part() :: #{
    ns := pos_integer(),
    reductions := non_neg_integer(),
    schedulers := [{pos_integer(), non_neg_integer(), non_neg_integer()}]
}.
-doc """
A kind of processes, by their name or first function; their state; the function in which they are;
its caller; how many looks; the process time that these stand for, and the sum of its squares.
""".
-type cell() :: {Part :: non_neg_integer(), Group :: binary(), Status :: atom(),
                 Function :: binary(), Caller :: binary(), pos_integer(), float(), float()}.
-doc """
A kind of processes: how many were seen for the first time, their reductions between looks, how long
messages waited for them in all, and the longest mailbox that was seen.
""".
-type group() :: {Part :: non_neg_integer(), Group :: binary(), non_neg_integer(),
                  non_neg_integer(), float(), non_neg_integer()}.
-type result() :: #{parts := [part()], cells := [cell()], groups := [group()]}.

-record(looks, {
    part_ns :: pos_integer(),
    %% The number of the present part.
    part = 0 :: non_neg_integer(),
    %% Counters at the begin of each part, the present one first.
    begins :: [snapshot(), ...],
    known = #{} :: #{term() => []},
    cells = #{} :: #{tuple() => {pos_integer(), float(), float()}},
    groups = #{} :: #{tuple() => {non_neg_integer(), non_neg_integer(), float(),
                                  non_neg_integer()}}
}).
-opaque looks() :: #looks{}.

-doc "No looks yet, of a sampling that is to take so long.".
-spec new(Ns :: pos_integer(), snapshot()) -> looks().
new(Ns, Snapshot) ->
    #looks{part_ns = max(?LEAST_NS, Ns div ?PARTS), begins = [Snapshot]}.

-doc "Whether the present part has been long enough.".
-spec is_due(Now :: integer(), looks()) -> boolean().
is_due(Now, #looks{part_ns = Ns, begins = [#{at := At} | _]}) -> Now - At >= Ns.

-doc "Begins the next part.".
-spec next_part(snapshot(), looks()) -> looks().
next_part(Snapshot, #looks{part = Part, begins = Begins} = L) ->
    Next = L#looks{part = Part + 1, begins = [Snapshot | Begins]},
    case Part + 1 >= 2 * ?PARTS of
        true -> halved(Next);
        false -> Next
    end.

-doc "Counts a look.".
-spec count(look(), looks()) -> looks().
count(#{group := Group} = Look, #looks{known = Known} = L) ->
    case is_map_key(Group, Known) orelse map_size(Known) < ?MOST_GROUPS of
        true -> counted(Look, L#looks{known = Known#{Group => []}});
        false -> counted(others(Look), L)
    end.

counted(#{group := Group, status := Status, function := Function, caller := Caller, ns := Ns,
          more := More, queue := Queue, is_new := IsNew} = Look,
        #looks{part = Part, cells = Cells, groups = Groups} = L) ->
    Cell = {Part, Group, Status, Function, Caller},
    Of = {Part, Group},
    case has_room(Cell, Cells) andalso has_room(Of, Groups) of
        true ->
            {N, Sum, Squares} = maps:get(Cell, Cells, {0, 0.0, 0.0}),
            {New, Reductions, Queues, Most} = maps:get(Of, Groups, {0, 0, 0.0, 0}),
            L#looks{
                cells = Cells#{Cell => {N + 1, Sum + Ns, Squares + Ns * Ns}},
                groups = Groups#{Of => {New + one(IsNew), Reductions + More, Queues + Ns * Queue,
                                        max(Most, Queue)}}
            };
        false when Part > 0 -> counted(Look, halved(L));
        false -> counted(others(Look), L)
    end.

others(Look) -> Look#{group := ?OTHERS, function := ?OTHERS, caller := ?OTHERS}.

has_room(Key, Rows) ->
    is_map_key(Key, Rows) orelse map_size(Rows) < ?MOST_ROWS orelse element(2, Key) =:= ?OTHERS.

one(true) -> 1;
one(false) -> 0.

%% Two parts become one; the last one may have no other yet.
halved(#looks{part = Part, part_ns = Ns, begins = Begins, cells = Cells, groups = Groups} = L) ->
    Numbered = lists:zip(lists:seq(Part, 0, -1), Begins),
    L#looks{
        part = Part div 2,
        part_ns = 2 * Ns,
        begins = [Begin || {N, Begin} <- Numbered, N rem 2 =:= 0],
        cells = joined(Cells, fun({N, Sum, Squares}, {N2, Sum2, Squares2}) ->
            {N + N2, Sum + Sum2, Squares + Squares2}
        end),
        groups = joined(Groups, fun({New, R, Q, Most}, {New2, R2, Q2, Most2}) ->
            {New + New2, R + R2, Q + Q2, max(Most, Most2)}
        end)
    }.

joined(Rows, Add) ->
    maps:fold(fun(Key, Row, All) ->
        Half = setelement(1, Key, element(1, Key) div 2),
        maps:update_with(Half, fun(Other) -> Add(Other, Row) end, Row, All)
    end, #{}, Rows).

-doc "All that was found; the counters are those of the end.".
-spec result(snapshot(), looks()) -> result().
result(End, #looks{begins = Begins, cells = Cells, groups = Groups}) ->
    #{
        parts => parts(lists:reverse([End | Begins])),
        cells => [{Part, text(Group), Status, text(Function), text(Caller), N, Sum, Squares}
                  || {Part, Group, Status, Function, Caller} := {N, Sum, Squares} <- Cells],
        groups => [{Part, text(Group), New, Reductions, Queues, Most}
                   || {Part, Group} := {New, Reductions, Queues, Most} <- Groups]
    }.

parts([#{at := From, reductions := Before, schedulers := Old},
       #{at := To, reductions := After, schedulers := New} = Next | Rest]) ->
    Times = #{N => {Awake, All} || {N, Awake, All} <- Old},
    Part = #{
        ns => max(1, To - From),
        reductions => After - Before,
        schedulers => [begin
            {Awake0, All0} = maps:get(N, Times, {Awake, All}),
            {N, max(0, Awake - Awake0), max(0, All - All0)}
        end || {N, Awake, All} <- lists:sort(New)]
    },
    [Part | parts([Next | Rest])];
parts([_]) -> [].

text(undefined) -> ~"";
text(Name) when is_atom(Name) -> atom_to_binary(Name);
text(?OTHERS) -> ~"others";
text({M, F, A}) -> unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [M, F, A])).
