%% SPDX-License-Identifier: Apache-2.0
-module(sderl_follow_config).
-moduledoc false.
%% The part of the configuration that is about groups that a node follows.

-behaviour(sderl_options).

-export([defaults/0, option/3, remedy/1, value/1]).

-spec defaults() -> [{atom(), term()}].
defaults() ->
    [
        {follow, []},
        {follow_names, 100_000},
        {follow_max_age_ms, 10_000}
    ].

-spec option(atom(), sderl_check:path(), term()) -> {ok, term()} | {error, sderl_check:error()}.
option(follow, Path, Value) -> groups(Path, Value);
option(follow_names, Path, Value) -> sderl_check:count(Path, Value, 100_000_000);
option(follow_max_age_ms, Path, Value) -> sderl_check:milliseconds(Path, Value).

groups(Path, Groups) ->
    case sderl_check:proper_list(Groups) of
        true ->
            case [N || {N, undefined} <- lists:enumerate(Groups)] of
                [] -> {ok, lists:uniq(Groups)};
                [N | _] -> sderl_check:bad(Path ++ [N], undefined, followed_group)
            end;
        false -> sderl_check:bad(Path, Groups, followed_groups)
    end.

-spec remedy(sderl_check:expected()) -> iodata() | none.
remedy(followed_groups) -> "is not a list of groups; write [Group, ...]";
remedy(followed_group) -> "stands for the free nodes, which nobody can follow; take it out";
remedy(_) -> none.

-doc "The value of a key in force.".
-spec value(atom()) -> term().
value(Key) -> sderl_options:value(Key, defaults()).
