%% SPDX-License-Identifier: Apache-2.0
-module(sderl_options).
-moduledoc false.
%% The values of the configuration that is in force, and the defaults of the keys that belong to
%% groups and nodes. `sderl_config` reads the configuration. Routing, attributes and distances each
%% have a module of this behaviour with their own keys.

-export([defaults/0, value/1, value/2, forget_down_after/2]).
-export([consistency/1, consistency/2, answer/1, answer/2, majority_lost/1]).
-export_type([consistency/0, answer/0, majority_lost/0]).

-doc "Whether each component of a group decides, or only one with a majority of the members.".
-type consistency() :: available | majority.

-doc """
When the clients of a group hear what became of a write: when every member that counts has applied
it, or when their own node has.
""".
-type answer() :: committed | applied.

-doc """
What becomes of the holder of a name on a node that lost the majority of its group: it is sent a
message, it is sent an exit signal, or nothing.
""".
-type majority_lost() :: notify | exit | ignore.

-doc "The keys of a part with their defaults.".
-callback defaults() -> [{Key :: atom(), Default :: term()}].
-doc "Checks the value of one of these keys.".
-callback option(Key :: atom(), sderl_check:path(), Value :: term()) ->
    {ok, term()} | {error, sderl_check:error()}.
-doc "What to write in place of a value that does not fit; `none` for what the part does not know.".
-callback remedy(sderl_check:expected()) -> iodata() | none.

-spec defaults() -> [{atom(), term()}].
defaults() ->
    [
        {cluster, <<>>},
        {await, false},
        {consistency, #{}},
        {answer, #{}},
        {majority_lost, ignore},
        {forget_down_after, infinity},
        {state_dir, none},
        {free_islands, true},
        {link_policy, report},
        {link_idle_ms, 600_000},
        {tick_ms, sderl_core:default(tick_ms)},
        {set_aside_ms, sderl_core:default(aside_ms)},
        {write_timeout_ms, 10_000},
        {resolver, random_exit_name},
        {resolver_timeout_ms, 5_000}
    ].

-doc "The value of a key of groups and nodes; its default where the application has not started.".
-spec value(atom()) -> term().
value(Key) -> value(Key, defaults()).

-doc "The same with the defaults of another part.".
-spec value(atom(), [{atom(), term()}]) -> term().
value(Key, Defaults) ->
    case sderl_dir:options() of
        #{Key := Value} ->
            Value;
        #{} ->
            {Key, Default} = lists:keyfind(Key, 1, Defaults),
            Default
    end.

-doc "After how many milliseconds `Group` forgets a member that is away.".
-spec forget_down_after(Group :: term(), map()) -> pos_integer() | infinity.
forget_down_after(Group, #{forget_down_after := PerGroup}) when is_map(PerGroup) ->
    maps:get(Group, PerGroup, infinity);
forget_down_after(_Group, #{forget_down_after := ForAll}) ->
    ForAll.

-doc """
The consistency that the configuration gives a group, or `none`. (No group by majority answers
before that has decided.)
""".
-spec consistency(Group :: term()) -> consistency() | none.
consistency(undefined) -> available;
consistency(Group) ->
    case answer(Group) of
        applied -> available;
        _ -> maps:get(Group, value(consistency), none)
    end.

-doc "The same, and what holds where the configuration says nothing.".
-spec consistency(Group :: term(), Otherwise :: consistency()) -> consistency().
consistency(Group, Otherwise) -> configured(consistency(Group), Otherwise).

-doc "When the configuration has the clients of a group answered, or `none`.".
-spec answer(Group :: term()) -> answer() | none.
answer(undefined) -> committed;
answer(Group) -> maps:get(Group, value(answer), none).

-doc "The same, and what holds where the configuration says nothing.".
-spec answer(Group :: term(), Otherwise :: answer()) -> answer().
answer(Group, Otherwise) -> configured(answer(Group), Otherwise).

configured(none, Otherwise) -> Otherwise;
configured(Configured, _) -> Configured.

-doc "What becomes of holders of the group's names that were registered without saying so.".
-spec majority_lost(Group :: term()) -> majority_lost().
majority_lost(Group) ->
    case value(majority_lost) of
        PerGroup when is_map(PerGroup) -> maps:get(Group, PerGroup, ignore);
        ForAll -> ForAll
    end.
