%% SPDX-License-Identifier: Apache-2.0
-module(sderl_straight).
-moduledoc """
To which processes the last gateway may send directly, past the forwarding process of their node.

On the receivers' node a forwarding process takes bundles apart. A single message needs no bundle,
and that process makes a third of the time that an idle gateway adds. But a message sent directly
must not overtake one that is still in a bundle there.

So messages go directly to a process only after a question: when some single messages for it were
sent one after the other, the next one takes the question along. The forwarding process of that node
answers when it has delivered all that came before. The answer is valid if nothing for that process
was bundled since. After direct messages a bundle may follow at once, because the direct messages
are in the process's queue by then. That is not so for a process with `message_queue_data` off its
heap: the runtime may receive messages of different senders in another order than they came. The
node does not answer for such a process.

A node of an earlier version does not answer either, and is sent bundles.

The type belongs to one forwarding process, which decides for each message; pure. An answer that
comes too late, because the next message was faster, doubles the number of messages until the next
question. Aliases get answers of calls, which keep no order.
""".

-export([new/0, alone/3, is_known/3, bundled/3, forget/2, answered/4]).
-export_type([straight/0, tag/0]).

%% How many single messages in a row come before the first question, and at most before one.
-define(FIRST, 4).
-define(LAST, 4096).
%% How many processes are remembered of a node; then all are forgotten, which is always safe.
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
How a single message for a process goes: directly, in a bundle, or in a bundle with a question.
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

-doc "Whether messages go directly to a process, bundled or not.".
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

-doc "A message went to a node that may be for any of its processes.".
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
