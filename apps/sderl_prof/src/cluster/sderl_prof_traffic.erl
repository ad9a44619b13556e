%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_traffic).
-moduledoc """
Messages between nodes, by the pair of nodes: how many, and how long they took. Pure.
""".

-export([new/0, add/2, rows/3]).
-export_type([traffic/0, row/0]).

%% By sender and receiver: messages, the sum, least and greatest of the times under way.
-opaque traffic() :: #{{pos_integer(), pos_integer()} =>
                           {pos_integer(), integer(), integer(), integer()}}.
-doc """
The messages of a pair as each node counted them; `joined` are those with both ends, with the times
that these took and the error of these times. `common_group` is `null` where a node has no group.
""".
-type row() :: #{from := binary(), to := binary(), sent := non_neg_integer(),
                 sent_bytes := non_neg_integer(), received := non_neg_integer(),
                 joined := non_neg_integer(), mean_ns := float() | null,
                 least_ns := integer() | null, most_ns := integer() | null,
                 error_ns := non_neg_integer() | null, common_group := boolean() | null}.

-doc "None yet.".
-spec new() -> traffic().
new() -> #{}.

-doc "A message of which both ends are known.".
-spec add(sderl_prof_joined:message(), traffic()) -> traffic().
add(#{from := From, to := To, sent := Sent, received := Received}, Links) ->
    Way = Received - Sent,
    Key = {From, To},
    Link = case Links of
        #{Key := {N, Sum, Least, Most}} ->
            {N + 1, Sum + Way, min(Least, Way), max(Most, Way)};
        _ -> {1, Way, Way, Way}
    end,
    Links#{Key => Link}.

-doc "The pairs of nodes with messages, of clocks that are shifted so.".
-spec rows([sderl_prof_joined:part()], #{pos_integer() => sderl_prof_causal:shift()},
           traffic()) -> [row()].
rows(Parts, Shifts, Links) ->
    Numbers = #{Node => N || #{number := N, entry := #{node := Node}} <- Parts},
    Groups = #{Node => Gs || #{entry := #{node := Node, groups := Gs}} <- Parts},
    Clocks = #{N => {maps:get(N, Shifts, 0), Error} || #{number := N, error := Error} <- Parts},
    Counts = #{Node => C || #{entry := #{node := Node}, counts := C} <- Parts},
    Known = lists:usort(
        [{From, To} || From := C <- Counts, To := _ <- C]
        ++ [{From, To} || To := C <- Counts, From := {_, _, N} <- C, N > 0]
    ),
    [link(From, To, Counts, Groups,
          times({maps:get(From, Numbers, none), maps:get(To, Numbers, none)}, Links, Clocks))
     || {From, To} <- Known, {0, 0} =/= {sent(From, To, Counts), received(From, To, Counts)}].

link(From, To, Counts, Groups, Times) ->
    {_, Bytes, _} = counted(From, To, Counts),
    Times#{from => From, to => To, sent => sent(From, To, Counts), sent_bytes => Bytes,
           received => received(From, To, Counts),
           common_group => common_group(maps:get(From, Groups, []), maps:get(To, Groups, []))}.

%% The counters that a node keeps of another one.
counted(Node, Other, Counts) -> maps:get(Other, maps:get(Node, Counts, #{}), {0, 0, 0}).

sent(From, To, Counts) ->
    {Sent, _, _} = counted(From, To, Counts),
    Sent.

received(From, To, Counts) ->
    {_, _, Received} = counted(To, From, Counts),
    Received.

%% Nothing is told of nodes without groups.
common_group([], _) -> null;
common_group(_, []) -> null;
common_group(A, B) -> lists:any(fun(Group) -> lists:member(Group, B) end, A).

times({From, To} = Key, Links, Clocks) ->
    case Links of
        #{Key := {N, Sum, Least, Most}} ->
            #{From := {A, ErrorA}, To := {B, ErrorB}} = Clocks,
            Shift = B - A,
            #{joined => N, mean_ns => Sum / N + Shift, least_ns => Least + Shift,
              most_ns => Most + Shift, error_ns => ErrorA + ErrorB + abs(Shift)};
        _ -> #{joined => 0, mean_ns => null, least_ns => null, most_ns => null, error_ns => null}
    end.
