%% SPDX-License-Identifier: Apache-2.0
-module(sderl_admin).
-moduledoc false.
%% Creating, growing, shrinking and ending groups, in the caller's process.
%%
%% A node is asked (`invite`) before it is added, so that one that cannot be reached, has no such
%% library, or owns another group of that name is left out and does not become a member that
%% never comes. The order that makes it a member is an operation of the group like any other.

-export([create/3, add/2, admit/2, remove/2, delete/1, enter/2, leave/1]).
-export([recover/2, recover_here/5]).

%% The helper processes of these answer with their exit reason.
-dialyzer({nowarn_function, [each/2]}).

-include("../core/sderl_op.hrl").
-include("../core/sderl_version.hrl").
-define(INVITE, 8000).
%% How often it is tried to make a group. Nodes that make a group of one name at the same time
%% invite each other, and all give up; by chance one of them is alone at its next try, and the
%% others find that the name is in use.
-define(TRIES, 5).
-define(PAUSE_MS, 400).

-doc "Options that are not given come from the configuration.".
-spec create(term(), [node()], s_group:group_options()) ->
    {ok, term(), [node()]} | {error, term()}.
create(Group, Nodes, Options) ->
    Others = lists:delete(node(), Nodes),
    Answer = maps:get(answer, Options, none),
    %% Only an available group can answer before its members have decided.
    Consistency = case Answer of
        applied -> available;
        _ -> maps:get(consistency, Options, none)
    end,
    case {agreed(Consistency, sderl_options:consistency(Group), available),
          agreed(Answer, sderl_options:answer(Group), committed)} of
        {{ok, majority}, {ok, _}} -> create_by_majority(Group, Others);
        {{ok, available}, {ok, When}} -> create_available(Group, When, Others);
        {differs, _} -> {error, consistency_differs};
        {_, differs} -> {error, answer_differs}
    end.

%% The requested value, the configured one (each may be `none`), and the default. They must agree.
agreed(none, none, Default) -> {ok, Default};
agreed(none, Configured, _) -> {ok, Configured};
agreed(Asked, Configured, _) when Configured =:= none; Configured =:= Asked -> {ok, Asked};
agreed(_, _, _) -> differs.

create_available(Group, Answer, Others) ->
    case sderl_node_client:create(Group, Answer) of
        ok ->
            case grow(Group, Others) of
                {ok, Added} -> {ok, Group, lists:sort([node() | Added])};
                Error -> Error
            end;
        Error -> Error
    end.

%% A founder alone could not add others: it would be no majority of the group with them. So the
%% group begins with all nodes that are willing, and decides when a majority of these has joined.
create_by_majority(Group, Others) -> create_by_majority(Group, Others, ?TRIES).

create_by_majority(Group, Others, Tries) ->
    Uid = sderl_vm:new_uid(Group),
    case sderl_dir:group(Group) of
        none ->
            Answers = invite_all(Group, Uid, #{mode => majority, new => true}, Others),
            Willing = [N || {N, ok} <- Answers],
            IsContested = Tries > 1 andalso lists:keymember({error, s_group_conflict}, 2, Answers),
            Created = case IsContested of
                true -> {error, s_group_name_is_in_use};
                false -> sderl_node_client:create(Group, Uid, [node() | Willing])
            end,
            case Created of
                ok ->
                    await_live(Group, Willing),
                    {ok, Group, lists:sort([node() | Willing])};
                {error, Why} ->
                    _ = each(Willing, fun(N) -> withdraw(N, Group, Uid) end),
                    create_again(Why, Group, Others, Tries - 1)
            end;
        #{} -> {error, s_group_name_is_in_use}
    end.

%% Another node may be making a group of that name, and have invited this node or one of the others.
create_again(s_group_name_is_in_use, Group, Others, Tries) when Tries > 0 ->
    receive
    after rand:uniform(?PAUSE_MS) -> create_by_majority(Group, Others, Tries)
    end;
create_again(Why, _, _, _) -> {error, Why}.

%% The node need not keep the name any longer: the group is not made, or the node does not join it.
withdraw(Node, Group, Uid) ->
    try gen_server:call({sderl_node, Node}, {withdraw, ?VSN, Group, Uid}, ?INVITE)
    catch
        exit:_ -> ok
    end.

-spec add(term(), [node()]) -> {ok, term(), [node()]} | {error, term()}.
add(Group, Nodes) ->
    %% This node may have got its name a moment ago, and its groups with it.
    ok = sderl_node_client:settle(),
    case sderl_dir:group(Group) of
        #{members := Members} ->
            case grow(Group, Nodes -- Members) of
                {ok, Added} -> {ok, Group, Added};
                Error -> Error
            end;
        none -> {error, node_does_not_belong_to_the_s_group}
    end.

-doc "Adds a node that asked for it.".
-spec admit(term(), node()) -> {ok, term(), [node()]} | {error, term()}.
admit(Group, Node) ->
    case add(Group, [Node]) of
        {ok, _, []} ->
            case [Why || {G, N, Why} <- sderl_refused:joins(), G =:= Group, N =:= Node] of
                [] -> {ok, Group, []};
                [Why] -> {error, Why}
            end;
        Answer -> Answer
    end.

grow(_, []) -> {ok, []};
grow(Group, Nodes) ->
    case sderl_dir:group(Group) of
        #{uid := Uid} ->
            How = #{mode => sderl_dir:consistency(Group), new => false},
            case willing(Group, Uid, How, Nodes) of
                [] -> {ok, []};
                Willing -> grow_by(Group, Uid, Willing)
            end;
        none -> {error, node_does_not_belong_to_the_s_group}
    end.

%% The nodes that accept an invitation. The others are noted with their reasons.
willing(Group, Uid, How, Nodes) -> [N || {N, ok} <- invite_all(Group, Uid, How, Nodes)].

invite_all(Group, Uid, How, Nodes) -> each(Nodes, fun(N) -> invite(N, Group, Uid, How) end).

grow_by(Group, Uid, Willing) ->
    case sderl_client:write(Group, #add{nodes = Willing}) of
        {ok, {ok, _}} ->
            await_live(Group, Willing),
            {ok, lists:sort(Willing)};
        {ok, {no, Why}} ->
            _ = each(Willing, fun(N) -> withdraw(N, Group, Uid) end),
            {error, Why};
        {error, not_member} -> {error, node_does_not_belong_to_the_s_group};
        {error, Why} -> {error, Why}
    end.

%% They are members now; the answer waits, for a while, until they count.
await_live(Group, Nodes) ->
    Timeout = sderl_options:value(write_timeout_ms),
    _ = sderl_client:request(Group, fun(From) -> {sderl_await_live, From, Nodes, Timeout} end,
                             Timeout + 2000),
    ok.

invite(Node, Group, Uid, How) ->
    case is_alive() andalso send_invitation(Node, Group, invitation(Group, Uid, How), 2) of
        ok -> ok;
        false ->
            sderl_refused:note_join(Group, Node, not_distributed),
            {error, not_distributed};
        {error, Why} ->
            sderl_refused:note_join(Group, Node, Why),
            {error, Why}
    end.

%% Nodes that know of no groups by majority understand the invitation to any other.
invitation(Group, Uid, #{mode := available}) -> {invite, ?VSN, Group, Uid, node()};
invitation(Group, Uid, How) -> {invite, ?VSN, Group, Uid, node(), How}.

send_invitation(_, _, _, 0) -> {error, unreachable};
send_invitation(Node, Group, Invitation, Times) ->
    case sderl_connector:connect(Node, group) of
        true ->
            try gen_server:call({sderl_node, Node}, Invitation, ?INVITE) of
                {error, Why} -> {error, refusal(Why)};
                ok -> ok
            catch
                exit:{noproc, _} -> {error, application_not_running};
                %% The other end may just have closed this link because it did not need it. A second
                %% invitation does no harm, so try again.
                exit:{{nodedown, _}, _} -> send_invitation(Node, Group, Invitation, Times - 1);
                exit:_ -> {error, unreachable}
            end;
        false -> {error, unreachable}
    end.

%% A node of version 1 does not know this call.
refusal(unknown_call) -> {other_version, 1};
refusal(Why) -> Why.

%% Runs F for every node at once, each in a process of its own.
each(Nodes, F) ->
    Refs = [{N, spawn_monitor(fun() -> exit({done, F(N)}) end)} || N <- Nodes],
    [receive
         {'DOWN', Mon, process, Pid, {done, R}} -> {N, R};
         {'DOWN', Mon, process, Pid, Why} -> {N, {error, Why}}
     end || {N, {Pid, Mon}} <- Refs].

-spec remove(term(), [node()]) -> ok | {error, term()}.
remove(Group, Nodes) ->
    case {sderl_dir:group(Group), lists:member(node(), Nodes)} of
        {none, _} -> {error, node_does_not_belong_to_the_s_group};
        {_, true} -> {error, cannot_remove_itself};
        {#{members := Members}, false} ->
            Known = Members ++ sderl_forgotten:members(Group),
            case [N || N <- Nodes, lists:member(N, Known)] of
                [] -> ok;
                Out -> removed(Group, Out, node_does_not_belong_to_the_s_group)
            end
    end.

removed(Group, Nodes, Unknown) ->
    case sderl_client:write(Group, #remove{nodes = Nodes, time = erlang:system_time(second)}) of
        {ok, ok} -> ok;
        {ok, {no, Why}} -> {error, Why};
        {error, not_member} -> {error, Unknown};
        {error, Why} -> {error, Why}
    end.

-spec delete(term()) -> ok | {error, term()}.
delete(Group) ->
    case sderl_client:write(Group, delete) of
        {ok, ok} -> gone(Group);
        {ok, {no, Why}} -> {error, Why};
        {error, not_member} -> {error, remote_s_group};
        {error, Why} -> {error, Why}
    end.

-spec leave(term()) -> ok | {error, term()}.
leave(Group) ->
    case {sderl_dir:members(Group), sderl_forgotten:members(Group)} of
        {[], _} -> {error, node_does_not_belong_to_the_s_group};
        %% If there are forgotten members the group is not deleted: it goes on there.
        {[_], []} -> delete(Group);
        _ ->
            case removed(Group, [node()], node_does_not_belong_to_the_s_group) of
                ok -> gone(Group);
                Error -> Error
            end
    end.

%% The answer may come a moment before the group's process has cleared its tables.
gone(Group) ->
    case sderl_dir:process(Group) of
        none -> sderl_node_client:settle();
        Pid ->
            Mon = monitor(process, Pid),
            receive {'DOWN', Mon, process, Pid, _} -> sderl_node_client:settle()
            after 5000 -> demonitor(Mon, [flush]), ok
            end
    end.

-spec enter(term(), [node()]) -> {ok, term(), [node()]} | {error, term()}.
enter(Group, Seeds) ->
    case sderl_dir:group(Group) of
        #{members := Members} -> {ok, Group, Members};
        none -> enter(Group, lists:delete(node(), Seeds), [])
    end.

enter(_, [], []) -> {error, no_seeds};
enter(_, [], Whys) -> {error, {no_seed_answered, lists:reverse(Whys)}};
enter(Group, [Seed | Seeds], Whys) ->
    case sderl_connector:connect(Seed, group) of
        true ->
            Timeout = sderl_options:value(write_timeout_ms) + ?INVITE,
            try gen_server:call({sderl_node, Seed}, {enter, ?VSN, Group, node()}, Timeout) of
                {ok, Group, _} ->
                    case sderl_client:await(Group, Timeout) of
                        ok -> {ok, Group, sderl_dir:members(Group)};
                        Error -> Error
                    end;
                {error, Why} -> enter(Group, Seeds, [{Seed, refusal(Why)} | Whys])
            catch
                exit:{noproc, _} -> enter(Group, Seeds, [{Seed, application_not_running} | Whys]);
                exit:_ -> enter(Group, Seeds, [{Seed, unreachable} | Whys])
            end;
        false -> enter(Group, Seeds, [{Seed, unreachable} | Whys])
    end.

%% ---------------------------------------------------------------- a majority that is lost for good

-doc """
Makes these nodes the only members of a group that has lost its majority. All are asked before any
of them does it: if only some did, the group would be lost as before.
""".
-spec recover(term(), [node()]) ->
    ok
    | {error, not_a_survivor | {not_members, [node()]} | node_does_not_belong_to_the_s_group
        | {refused | incomplete, [{node(), atom()}]}}.
recover(Group, Survivors) ->
    case {sderl_dir:group(Group), lists:member(node(), Survivors)} of
        {none, _} -> {error, node_does_not_belong_to_the_s_group};
        {_, false} -> {error, not_a_survivor};
        {#{uid := Uid, members := Members}, true} ->
            case Survivors -- Members of
                [] -> recover(Group, Uid, Survivors);
                Others -> {error, {not_members, Others}}
            end
    end.

recover(Group, Uid, Survivors) ->
    Each = fun(Step) ->
        Asked = {recover, ?VSN, Group, Uid, Survivors, Step, node()},
        [{N, Why} || {N, Why} <- each(Survivors, fun(N) -> ask_survivor(N, Asked) end), Why =/= ok]
    end,
    case Each(check) of
        [] ->
            case Each(do) of
                [] -> ok;
                Failed -> {error, {incomplete, Failed}}
            end;
        Refused -> {error, {refused, Refused}}
    end.

ask_survivor(Node, Asked) ->
    case Node =:= node() orelse sderl_connector:connect(Node, group) of
        true ->
            try gen_server:call({sderl_node, Node}, Asked, ?INVITE) of
                ok -> ok;
                {error, Why} when is_atom(Why) -> Why;
                {error, _} -> unreachable
            catch
                exit:{noproc, _} -> not_running;
                exit:_ -> unreachable
            end;
        false -> unreachable
    end.

-doc """
What a survivor does when it is asked: `check` says whether it could recover, `do` recovers. Waits
for the process of the group.
""".
-spec recover_here(term(), binary(), [node()], check | do, Asker :: node()) -> ok | {error, atom()}.
recover_here(Group, Uid, Survivors, Step, Asker) ->
    case sderl_dir:group(Group) of
        #{uid := Uid, process := Pid} when Step =:= check ->
            case sderl_group:info(Pid, ?INVITE div 2) of
                {ok, #{consistency := majority, majority := false}} -> ok;
                {ok, #{consistency := majority}} -> {error, has_majority};
                {ok, _} -> {error, available_mode};
                {error, Why} -> {error, Why}
            end;
        #{uid := Uid} ->
            Ask = fun(From) -> {sderl_recover, From, Survivors} end,
            case sderl_client:request(Group, Ask, ?INVITE div 2) of
                {ok, ok} ->
                    sderl_event:emit(majority_recovered,
                                     #{group => Group, nodes => Survivors, by => Asker});
                {ok, {no, Why}} -> {error, Why};
                {error, not_member} -> {error, not_member};
                {error, _} -> {error, unreachable}
            end;
        _ -> {error, not_member}
    end.
