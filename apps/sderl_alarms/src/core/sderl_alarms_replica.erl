%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_replica).
-moduledoc """
Which of several monitoring nodes sends to routes, and whether the others have its queues. Pure.

The node that leads sends the others each change of its queues: what is added, and what a route is
done with. Each change has a version and names the one before; a node without that one asks for
everything. The leader sends its version every ten seconds, too, with the same effect.

Two nodes that cannot reach each other both lead. When they meet, the one that began to lead first
takes over the state of the other, whichever leads then.

A node that has just begun has the state of its file, which may be old. Before it leads it asks the
others, and waits some seconds for their answers.
""".

-export([new/1, version/1, leads/1, look/5, news/2, renew/1, hear_news/3, hear_all/4]).
-export_type([replica/0, version/0]).

-doc """
The epoch grows each time that a node begins to lead, the number with each change. The epoch is the
Unix time in milliseconds of that moment (or more), so that a node that begins with an old file does
not use an epoch again.
""".
-type version() :: {Epoch :: non_neg_integer(), Number :: non_neg_integer()}.

-record(replica, {
    version :: version(),
    leads = false :: boolean(),
    %% Whether the node has a leader's state since it began, or has led.
    is_current = false :: boolean(),
    %% Since when it asks before it leads.
    since = none :: none | integer(),
    answered = [] :: [node()]
}).

-opaque replica() :: #replica{}.

-define(ASK_MS, 5_000).

-doc "A node that begins, with the version in its file.".
-spec new(version()) -> replica().
new(Version) -> #replica{version = Version}.

-doc "The version of what this node has.".
-spec version(replica()) -> version().
version(#replica{version = Version}) -> Version.

-doc "Whether this node leads.".
-spec leads(replica()) -> boolean().
leads(#replica{leads = Leads}) -> Leads.

-doc "`Chosen`: the master on this node leads. Returns the nodes to ask for everything.".
-spec look(Chosen :: boolean(), Others :: [node()], Now :: integer(), Wall :: integer(),
           replica()) -> {Ask :: [node()], replica()}.
look(true, _, _, _, #replica{leads = true} = Replica) ->
    {[], Replica};
look(true, _, _, Wall, #replica{is_current = true} = Replica) ->
    {[], lead(Wall, Replica)};
look(true, Others, Now, Wall, #replica{since = Known, answered = Answered} = Replica) ->
    Since = case Known of none -> Now; _ -> Known end,
    case Others -- Answered of
        [_ | _] = Ask when Now - Since < ?ASK_MS -> {Ask, Replica#replica{since = Since}};
        _ -> {[], lead(Wall, Replica)}
    end;
look(false, Others, _, _, #replica{is_current = Is, answered = Answered} = Replica) ->
    {[Node || Node <- Others -- Answered, not Is], Replica#replica{leads = false, since = none}}.

lead(Wall, #replica{version = {Epoch, _}} = Replica) ->
    Replica#replica{version = {max(Epoch + 1, Wall), 0}, leads = true, is_current = true,
                    since = none}.

-doc "The leader has changes to send. Returns the version before, and theirs.".
-spec news(Changes :: [term()], replica()) -> {Before :: version(), version(), replica()}.
news([], #replica{version = Version} = Replica) ->
    {Version, Version, Replica};
news([_ | _], #replica{version = {Epoch, Number} = Before} = Replica) ->
    After = {Epoch, Number + 1},
    {Before, After, Replica#replica{version = After}}.

-doc """
The queues have changed without messages, because the routes of this node have changed. The others
ask for everything, or, if it does not lead, this node does.
""".
-spec renew(replica()) -> replica().
renew(#replica{leads = true} = Replica) ->
    {_, _, New} = news([renewed], Replica),
    New;
renew(#replica{} = Replica) ->
    follow(Replica).

follow(Replica) ->
    Replica#replica{leads = false, is_current = false, since = none, answered = []}.

-doc "Whether to make the changes of another node here, or to ask it for everything.".
-spec hear_news(Before :: version(), version(), replica()) -> {do | ask | ignore, replica()}.
hear_news(_, {Theirs, _}, #replica{leads = true, version = {Ours, _}} = Replica)
  when Theirs > Ours ->
    {ask, follow(Replica)};
hear_news(_, _, #replica{leads = true} = Replica) ->
    {ignore, Replica};
hear_news(Before, After, #replica{version = Before} = Replica) ->
    {do, Replica#replica{version = After, is_current = true}};
hear_news(_, Version, #replica{version = Version} = Replica) ->
    {ignore, Replica};
hear_news(_, _, Replica) ->
    {ask, Replica}.

-doc "Whether to take over the state of another node. `Leads`: that node leads.".
-spec hear_all(node(), version(), Leads :: boolean(), replica()) -> {do | ignore, replica()}.
hear_all(_, _, _, #replica{leads = true} = Replica) ->
    {ignore, Replica};
hear_all(From, Version, true, Replica) ->
    {do, answered(From, Replica#replica{version = Version, is_current = true})};
hear_all(From, Version, false, #replica{is_current = false, version = Ours} = Replica)
  when Version > Ours ->
    {do, answered(From, Replica#replica{version = Version})};
hear_all(From, _, false, Replica) ->
    {ignore, answered(From, Replica)}.

answered(From, #replica{answered = Answered} = Replica) ->
    Replica#replica{answered = lists:usort([From | Answered])}.
