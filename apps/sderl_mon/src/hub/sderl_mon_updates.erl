%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_updates).
-moduledoc """
The last updates of the agents, between a hub's ticks. Pure.

An agent's interval and the hub's are never quite in step. Several updates of an agent since the
last tick are merged as parts of one interval; without one, its last update stays valid for three of
its intervals. One frame then counts a little less, another a little more than there was: over time
the two even out, and no frame has a hole.

The term of an agent is remembered for some while after its last update, so that a deposed agent is
refused.
""".

-export([new/0, put/2, take/2, agents/1]).

-export_type([updates/0, refusal/0]).

-doc """
Why an update is refused: an agent of a lower term, more updates than fit between two ticks, more
agents than there can be.
""".
-type refusal() :: updates_stale | updates_too_many | agents_too_many.

-record(agent, {
    term :: integer(),
    fresh = [] :: [sderl_mon_frame:numbers()],
    held = none :: sderl_mon_frame:numbers() | none,
    %% Ticks since the last update.
    age = 0 :: non_neg_integer()
}).

-opaque updates() :: #{sderl_mon_types:scope() => #agent{}}.

%% Of one agent between two ticks, and in all.
-define(UPDATES, 50).
-define(AGENTS, 5_000).
-define(HELD, 3).
-define(FORGOTTEN, 300).

-doc "No agent yet.".
-spec new() -> updates().
new() -> #{}.

-doc "How many agents sent updates lately.".
-spec agents(updates()) -> non_neg_integer().
agents(Agents) -> map_size(Agents).

-doc "Takes an update, unless it is refused.".
-spec put(sderl_mon_types:update(), updates()) -> {ok, updates()} | {error, refusal()}.
put(#{agent := {Scope, Term}} = Update, Agents) ->
    %% Only numbers wait for the tick; the hub handles details and events at once.
    Numbers = maps:without([details, events], Update),
    case Agents of
        #{Scope := #agent{term = Known}} when Term < Known -> {error, updates_stale};
        #{Scope := #agent{term = Term, fresh = Fresh}} when length(Fresh) >= ?UPDATES ->
            {error, updates_too_many};
        #{Scope := #agent{term = Term, fresh = Fresh} = Agent} ->
            {ok, Agents#{Scope := Agent#agent{fresh = [Numbers | Fresh]}}};
        #{Scope := #agent{}} -> {ok, Agents#{Scope := #agent{term = Term, fresh = [Numbers]}}};
        #{} when map_size(Agents) >= ?AGENTS -> {error, agents_too_many};
        #{} -> {ok, Agents#{Scope => #agent{term = Term, fresh = [Numbers]}}}
    end.

-doc "The updates of the agents in one interval of a hub, one for each agent.".
-spec take(pos_integer(), updates()) -> {[sderl_mon_frame:numbers()], updates()}.
take(IntervalMs, Agents) ->
    maps:fold(
        fun(Scope, Agent, {Updates, Acc}) ->
            case word(IntervalMs, Agent) of
                {Update, Agent1} -> {[Update | Updates], Acc#{Scope => Agent1}};
                #agent{age = Age} = Silent when Age =< ?FORGOTTEN ->
                    {Updates, Acc#{Scope => Silent}};
                _Forgotten -> {Updates, Acc}
            end
        end,
        {[], #{}},
        Agents
    ).

word(_IntervalMs, #agent{fresh = [_ | _] = Fresh} = Agent) ->
    Update = merged(Fresh),
    %% Losses count once.
    {Update, Agent#agent{fresh = [], held = maps:remove(lost, Update), age = 0}};
%% For three intervals of the agent or of the hub, whichever is slower.
word(IntervalMs, #agent{held = #{span_ms := Span} = Held, age = Age} = Agent)
  when Age * IntervalMs < ?HELD * Span; Age < ?HELD ->
    {Held, Agent#agent{age = Age + 1}};
word(_IntervalMs, #agent{age = Age} = Agent) ->
    Agent#agent{held = none, age = Age + 1}.

merged([Update]) -> Update;
merged(Updates) ->
    {ok, Frame} = sderl_mon_frame:merge([maps:merge(#{seq => 0, epoch => 0}, U) || U <- Updates]),
    Frame.
