%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_lease).
-moduledoc """
The owner of a probe: checks its options, and decides which other owner may take the probe over.
Pure.
""".

-export([check_options/1, may_take/2]).
-export_type([options/0, lease/0]).

%% An owner that is no friend of the present one waits until that has been silent this long.
-define(SILENT_MS, 5000).

-doc "What a probe is started with (`sderl_mon_probe:start/1`).".
-type options() :: #{owner := pid(), term => integer(), interval_ms => pos_integer(),
                     top => pos_integer(), friends => all | [node()], lease_ms => pos_integer()}.

-doc "The present owner; `silent_ms`: the time since its last acknowledgement.".
-type lease() :: #{owner := pid(), friends := all | [node()], term := integer(),
                   silent_ms := integer()}.

-doc "An error for the first wrong option.".
-spec check_options(map()) -> ok | {error, {bad_option, term(), term()}}.
check_options(Opts) ->
    case [{Key, Value} || Key := Value <- Opts, not option(Key, Value)] of
        [] -> ok;
        [{Key, Value} | _] -> {error, {bad_option, Key, Value}}
    end.

option(owner, Owner) -> is_pid(Owner);
option(term, Term) -> is_integer(Term);
option(friends, all) -> true;
option(friends, Nodes) when length(Nodes) >= 0 -> lists:all(fun is_atom/1, Nodes);
option(Key, N) when Key =:= interval_ms; Key =:= top; Key =:= lease_ms ->
    is_integer(N) andalso N > 0;
option(_, _) -> false.

-doc """
Whether a new owner may take the probe over. Among friends the highest term wins. Errors: `{term,
T}` (a later owner has it); `{busy, Node}`.
""".
-spec may_take(options(), lease()) -> ok | {error, {term, integer()} | {busy, node()}}.
may_take(#{owner := New} = Opts,
         #{owner := Old, friends := Friends, term := Term, silent_ms := Silent}) ->
    IsFriend = Friends =:= all orelse lists:member(node(New), Friends)
        orelse node(New) =:= node(Old),
    IsLater = maps:get(term, Opts, 0) >= Term,
    if
        IsFriend, IsLater -> ok;
        IsFriend -> {error, {term, Term}};
        Silent > ?SILENT_MS -> ok;
        true -> {error, {busy, node(Old)}}
    end.
