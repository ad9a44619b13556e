%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_published).
-moduledoc false.
%% The attributes and the choice of nodes that were published as functions of `s_group`: an
%% attribute is any term, which a node has or has not. Here it is a static attribute of that name,
%% `true`.

-export([change/3, own/0, choose/1]).
%% On the other node.
-export([change_here/2]).

-import(sderl_clock, [now_ms/0]).

%% The helpers answer with their exit reason.
-dialyzer({nowarn_function, [change/3]}).

-define(TIMEOUT, 5000).

-doc """
Has each of the nodes add or remove the attributes; gives those that have done it within the time,
sorted.
""".
-spec change(add | remove, [node()], [term()]) -> [node()].
change(How, Nodes, Names) ->
    Until = now_ms() + ?TIMEOUT,
    Helpers = [{N, spawn_monitor(fun() -> exit({done, change_at(N, How, Names)}) end)}
               || N <- lists:usort(Nodes)],
    [N || {N, {Pid, Mon}} <- Helpers,
          receive
              {'DOWN', Mon, process, Pid, Result} -> Result =:= {done, ok}
          after max(0, Until - now_ms()) ->
              demonitor(Mon, [flush]),
              exit(Pid, kill),
              false
          end].

change_at(Node, How, Names) ->
    case sderl_connector:connect(Node, {lookup, undefined}) of
        true -> erpc:call(Node, ?MODULE, change_here, [How, Names], ?TIMEOUT);
        false -> {error, unreachable}
    end.

-spec change_here(add | remove, [term()]) -> ok | {error, term()}.
change_here(_, []) -> ok;
change_here(How, [Name | Names]) ->
    case change_one(How, Name) of
        {error, not_running} -> {error, not_running};
        %% It has one of that name: it is set, or a built-in one.
        {error, {attr_exists, _}} -> change_here(How, Names);
        _ -> change_here(How, Names)
    end.

change_one(add, Name) -> sderl_attr:insert(Name, true);
change_one(remove, Name) ->
    %% A built-in one is no published attribute, and stays.
    case own() of
        {error, Why} -> {error, Why};
        Own -> lists:member(Name, Own) andalso sderl_attr:delete(Name)
    end.

-doc "The attributes that were added to this node so, sorted.".
-spec own() -> [term()] | {error, not_running}.
own() ->
    case sderl_attr:all() of
        {error, not_running} -> {error, not_running};
        All -> lists:sort([Name || #{name := Name, source := Source} <- All, Source =/= builtin])
    end.

-doc """
The other nodes that are in all of the groups and have all of the attributes, sorted; among the
linked nodes if no group is given. An unknown group has no members.
""".
-spec choose([{s_group, term()} | {attribute, term()}]) -> [node()].
choose(Constraints) ->
    Candidates = case [G || {s_group, G} <- Constraints] of
        [] -> #{nodes => nodes(connected)};
        [Group | Groups] -> #{group => Group, member_of => Groups}
    end,
    {ok, Spec} = sderl_place_spec:parse(many, Candidates#{exclude => [node()]}),
    case sderl_place_query:choose(
        sderl_place_spec:having([Name || {attribute, Name} <- Constraints], Spec)
    ) of
        {error, {unknown_group, _}} -> [];
        Nodes -> lists:sort(Nodes)
    end.
