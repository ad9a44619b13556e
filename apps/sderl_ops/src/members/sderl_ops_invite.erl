%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_invite).
-moduledoc "Adds and removes members of a service, as an operator asks for it.".

-export([add/1, remove/1]).

-define(CALL_MS, 10_000).

-doc """
Admits a member: a new one, or one that has lost its disk. It joins by itself when it runs.
""".
-spec add(Named :: string()) -> ok | {error, unicode:chardata()}.
add(Named) ->
    maybe
        {ok, Roster} ?= roster_here(),
        {ok, #{node := Node} = Member} ?=
            sderl_ops_roster:added(Named, [Of || _ := {Of, _} <- Roster]),
        ok ?= check_gone(Node, Roster),
        sentence(sderl_ops_raft:expect(Member))
    end.

%% Refuses a member that has its part of the store.
check_gone(Node, Roster) ->
    case {Roster, lists:member(Node, [node() | nodes()])} of
        {#{Node := {_, joined}}, true} when Node =:= node() -> {error, already(Node)};
        {#{Node := {_, joined}}, true} ->
            try erpc:call(Node, sderl_ops_member, tell, [], ?CALL_MS) of
                #{stage := member} -> {error, already(Node)};
                _ -> ok
            catch
                _:_ -> ok
            end;
        _ -> ok
    end.

already(Node) -> [atom_to_list(Node), " belongs to the service, and has its part of the store"].

-doc "Removes a member for good. If it runs, it is told, and ends.".
-spec remove(Named :: string()) -> ok | {error, unicode:chardata()}.
remove(Named) ->
    maybe
        {ok, Roster} ?= roster_here(),
        {ok, Node} ?= sderl_ops_roster:named(Named, [Of || _ := {Of, _} <- Roster]),
        ok ?= check_left(Node, Roster),
        ok ?= sentence(sderl_ops_raft:remove(Node)),
        _ = [erpc:cast(Node, sderl_ops_member, dismiss, []) || lists:member(Node, nodes())],
        ok
    end.

roster_here() ->
    case sderl_ops_member:has_store() of
        true -> {ok, sderl_ops_raft:roster()};
        false -> {error, element(2, sderl_ops_member:acting())}
    end.

check_left(_, Roster) when map_size(Roster) =:= 1 ->
    {error, "it is the only member: `destroy` and `stop` end a service"};
check_left(Node, _) when Node =:= node() ->
    {error, "a member does not remove itself: ask another one"};
check_left(_, _) ->
    ok.

sentence(ok) -> ok;
sentence({error, Why}) ->
    case sderl_ops_member:acting() of
        {_, Sentence} when not is_atom(Sentence) -> {error, Sentence};
        _ -> {error, io_lib:format("the members did not decide it: ~0tP", [Why, 12])}
    end.
