%% SPDX-License-Identifier: Apache-2.0
-module(sderl_read).
-moduledoc false.
%% Reads of names. A member's read is one lookup in its own table, a follower's one in its copy;
%% everything else is asked of a node that is a member, in a helper and within a time limit, so that
%% no read ever hangs.

-export([whom/2, whereis/2, whereis_at/3, read/2, send/3, send_at/4, names_of/1, names_at/1]).
-import(sderl_clock, [now_ms/0]).

%% Rule 23: a non-member asks at most three nodes and waits at most five seconds.
-define(NODES, 3).
-define(TIMEOUT, 5000).

-spec whereis(term(), term()) -> pid() | undefined.
whereis(Group, Name) ->
    try
        found(Group, Name)
    catch
        %% The application has stopped, before or on the way: its tables are gone.
        error:badarg -> undefined
    end.

found(Group, Name) ->
    case sderl_names:whereis(Group, Name) of
        undefined ->
            case sderl_names:is_member(Group) of
                true -> undefined;
                false -> elsewhere(Group, Name)
            end;
        Pid -> Pid
    end.

%% In the copy of a group that this node follows, while that may be read.
elsewhere(Group, Name) ->
    case sderl_copies:whereis(Group, Name) of
        {ok, Found} -> Found;
        none -> remote(Group, Name)
    end.

remote(undefined, _) -> undefined;
remote(Group, Name) ->
    case ask(Group, {whereis, Group, Name}) of
        {found, Found} -> Found;
        _ -> undefined
    end.

ask(Group, Question) ->
    case whom(sderl_dir:known(Group) -- [node()], nodes(connected)) of
        [] -> none;
        Nodes ->
            case sderl_ask:ask_first(Nodes, Question, ?TIMEOUT) of
                {ok, Answer} -> Answer;
                {error, _} -> none
            end
    end.

-doc """
The nodes that a non-member asks, one after the other: members that are linked, then the
lowest-named, a few in all.
""".
-spec whom(Known :: [node()], Linked :: [node()]) -> [node()].
whom(Known, Linked) ->
    {Near, Far} = lists:partition(fun(N) -> lists:member(N, Linked) end, lists:sort(Known)),
    lists:sublist(Near ++ Far, ?NODES).

-spec whereis_at(node(), term(), term()) -> pid() | undefined.
whereis_at(Node, Group, Name) ->
    case ask_at(Node, {whereis_at, Group, Name}) of
        {ok, {found, Found, Class}} -> sderl_node_client:met(Node, Class), Found;
        _ -> undefined
    end.

-doc """
The arguments and values of `s_group:read/2`. A node that is no member asks members one after the
other, because one may have lost the majority while another has it.
""".
-spec read(term(), term()) -> pid() | undefined | {error, atom()}.
read(Group, Name) ->
    case sderl_client:read(Group, Name) of
        {ok, Pid} when is_pid(Pid), node(Pid) =:= node() ->
            %% As with whereis/2, a process of this node that is dead does not count (rule 17).
            case is_process_alive(Pid) of
                true -> Pid;
                false -> undefined
            end;
        {ok, Found} -> Found;
        {error, not_member} -> have_read(Group, Name);
        {error, Why} -> {error, Why}
    end.

have_read(undefined, _) -> {error, no_information_about_remote_group};
have_read(Group, Name) ->
    Known = sderl_dir:known(Group) -- [node()],
    Until = now_ms() + sderl_options:value(write_timeout_ms),
    have_read(whom(Known, nodes(connected)), {read, Group, Name}, Until,
              no_information_about_remote_group).

have_read([], _, _, Why) -> {error, Why};
have_read([Node | Nodes], Question, Until, Why) ->
    Share = (Until - now_ms()) div (1 + length(Nodes)),
    case sderl_ask:ask(Node, Question, max(1, Share)) of
        {ok, {found, Found}} -> Found;
        {ok, {error, Reason}} -> have_read(Nodes, Question, Until, reason(Reason, Why));
        {error, Reason} -> have_read(Nodes, Question, Until, reason(Reason, Why))
    end.

%% The most useful reason: that there is no majority, then that no member could be asked.
reason(_, no_majority) -> no_majority;
reason(not_member, Why) -> Why;
reason(Why, _) -> Why.

-spec send(term(), term(), term()) -> pid() | undefined.
send(Group, Name, Msg) ->
    try
        sent(Group, Name, Msg)
    catch
        error:badarg -> undefined
    end.

sent(Group, Name, Msg) ->
    case sderl_names:whereis(Group, Name) of
        undefined ->
            case Group =/= undefined andalso not sderl_names:is_member(Group) of
                true ->
                    case ask(Group, {send, Group, Name, Msg}) of
                        {found, Found} -> Found;
                        _ -> undefined
                    end;
                false -> undefined
            end;
        Pid ->
            case erlang:send(Pid, Msg, [noconnect]) of
                ok -> Pid;
                noconnect -> sderl_ask:connect_and_send(Pid, Group, Msg), Pid
            end
    end.

-spec send_at(node(), term(), term(), term()) -> pid() | undefined.
send_at(Node, Group, Name, Msg) ->
    case ask_at(Node, {send_at, Group, Name, Msg}) of
        {ok, {found, Found, Class}} -> sderl_node_client:met(Node, Class), Found;
        _ -> undefined
    end.

ask_at(Node, Question) ->
    case sderl_dir:is_running() of
        %% If `Node` is this node, it answers itself.
        true -> sderl_running:while(fun() -> sderl_ask:ask(Node, Question, ?TIMEOUT) end);
        false -> {error, not_running}
    end.

-doc "The names of a group; `[]`, as published, if nobody answers for it.".
-spec names_of(term()) -> [term()].
names_of(Group) ->
    case sderl_names:is_member(Group) of
        true -> [N || {N, _} <- sderl_names:names(Group)];
        false ->
            case sderl_copies:names(Group) of
                {ok, Names} -> Names;
                none -> ask_names(Group)
            end
    end.

ask_names(Group) ->
    case ask(Group, {names, Group}) of
        {names, Names} -> Names;
        _ -> []
    end.

-spec names_at(node()) -> [{term(), [term()]}].
names_at(Node) ->
    case sderl_ask:ask(Node, names, ?TIMEOUT) of
        {ok, List} when is_list(List) -> List;
        _ -> []
    end.
