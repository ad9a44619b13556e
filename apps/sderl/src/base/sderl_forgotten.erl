%% SPDX-License-Identifier: Apache-2.0
-module(sderl_forgotten).
-moduledoc false.
%% The members that own groups have forgotten: away for too long, and members again if they return.

-export([note/2, members/1, all/0]).

-doc "The forgotten members of an own group, as its process shows them.".
-spec note(term(), [node()]) -> ok.
note(Group, []) ->
    true = ets:delete(sderl_forgotten, Group),
    ok;
note(Group, Nodes) ->
    true = ets:insert(sderl_forgotten, {Group, Nodes}),
    ok.

-doc """
The members that an own group has forgotten. They are looked for, as they may return (rule 6).
""".
-spec members(term()) -> [node()].
members(Group) -> ets:lookup_element(sderl_forgotten, Group, 2, []).

-doc "Those of all own groups.".
-spec all() -> [node()].
all() ->
    lists:usort(lists:append([Nodes || {_, Nodes} <- ets:tab2list(sderl_forgotten)])).
