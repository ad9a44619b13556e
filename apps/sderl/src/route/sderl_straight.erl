%% SPDX-License-Identifier: Apache-2.0
-module(sderl_straight).
-moduledoc """
Which processes the last gateway may send to itself, past the forwarding process of their node.

Bundles are taken apart on the receivers' node, by one process more. A message that travels alone
needs no bundle, and that process is a third of what an idle gateway adds to its time. But a
message sent straight must not overtake one that still lies in a bundle there.

So a process is sent to straight only after a question: when some messages for it went alone, one
after the other, the next one takes the question along. The forwarding process of that node answers
when it has delivered all that came before. The answer holds if nothing for that process was bundled
since. A bundle for a process sent to straight may follow at once: what was sent straight is in
its queue by then. That is not so for a process whose queue is kept off its heap: the runtime
may take what different processes sent it in another order than it came. The node does not answer
for such a process.

A node of an earlier version does not answer either, and is sent bundles.

The type belongs to one forwarding process, which decides for each message; pure. An answer that
comes too late, as the next message was faster, doubles the number of messages until the next
question. Aliases get answers of calls, which keep no order.
""".

-export([new/0, alone/3, is_known/3, bundled/3, forget/2, answered/4]).
-export_type([straight/0, tag/0]).

%% So many in a row go alone before the first question, and before one at the most.
-define(FIRST, 4).
-define(LAST, 4096).
%% So many processes are remembered of a node; then all are forgotten, which is always right.
-define(MANY, 256).

-doc "Numbers the questions of one forwarding process.".
-type tag() :: pos_integer().

%% The state for a process: messages until the question, the open question, or the answer.
-type known() ::
    {Left :: pos_integer(), Need :: pos_integer()}
    | {asked, tag(), Need :: pos_integer()}
    | straight.

-record(straight, {
    next = 1 :: tag(),
    known = #{} :: #{node() => #{pid() => known()}}
}).
-opaque straight() :: #straight{}.

-spec new() -> straight().
new() -> #straight{}.

-doc """
A message for a process is about to go alone: straight, in a bundle, or that with a question.
""".
-spec alone(node(), pid() | reference(), straight()) ->
    {straight | bundle | {ask, tag()}, straight()}.
alone(_, Alias, S) when is_reference(Alias) -> {straight, S};
alone(Node, Pid, #straight{next = Tag, known = Known} = S) ->
    Processes = maps:get(Node, Known, #{}),
    case Processes of
        #{Pid := straight} ->
            {straight, S};
        #{Pid := {1, Need}} ->
            Asked = Processes#{Pid := {asked, Tag, Need}},
            {{ask, Tag}, S#straight{next = Tag + 1, known = Known#{Node => Asked}}};
        #{Pid := {Left, Need}} ->
            {bundle, S#straight{known = Known#{Node => Processes#{Pid := {Left - 1, Need}}}}};
        #{Pid := {asked, _, Need}} ->
            More = min(2 * Need, ?LAST),
            {bundle, S#straight{known = Known#{Node => Processes#{Pid := {More, More}}}}};
        #{} when map_size(Processes) < ?MANY ->
            First = {?FIRST - 1, ?FIRST},
            {bundle, S#straight{known = Known#{Node => Processes#{Pid => First}}}};
        #{} ->
            {bundle, forget(Node, S)}
    end.

-doc "Whether a process is sent to straight, bundle or not.".
-spec is_known(node(), pid(), straight()) -> boolean().
is_known(Node, Pid, #straight{known = Known}) ->
    case Known of
        #{Node := #{Pid := straight}} -> true;
        #{} -> false
    end.

-doc "Messages for these processes of a node go in a bundle.".
-spec bundled(node(), [pid() | reference()], straight()) -> straight().
bundled(Node, Pids, #straight{known = Known} = S) ->
    case Known of
        #{Node := Processes} -> S#straight{known = Known#{Node := maps:without(Pids, Processes)}};
        #{} -> S
    end.

-doc "A message to a node may be for any of its processes.".
-spec forget(node(), straight()) -> straight().
forget(Node, #straight{known = Known} = S) -> S#straight{known = maps:remove(Node, Known)}.

-doc "A node has answered a question.".
-spec answered(node(), pid(), tag(), straight()) -> straight().
answered(Node, Pid, Tag, #straight{known = Known} = S) ->
    case Known of
        #{Node := #{Pid := {asked, Tag, _}} = Processes} ->
            S#straight{known = Known#{Node := Processes#{Pid := straight}}};
        #{} ->
            S
    end.
