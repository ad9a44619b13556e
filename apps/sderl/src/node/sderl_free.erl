%% SPDX-License-Identifier: Apache-2.0
-module(sderl_free).
-moduledoc false.
%% Islands of free normal nodes, and how they become one (protocol rule 22).
%%
%% The free namespace of a node is an ordinary group called `undefined` with a uid of its own, run
%% by `sderl_group`: an island is the members of one such group. Two islands meet when a node of
%% one asks a node of the other (`whereis_name/3`, `send/4`), and when nodes become free that the
%% library had linked to free ones. A link alone merges nothing: the caller's own links count for
%% nothing here, and nodes that merely boot next to each other stay apart.
%%
%% The older island wins; the uid of an island begins with the time of its founding. The older one
%% adds the other's nodes to its members (an ordered operation), connects to them as to any member,
%% and says hello. A node that gets the hello of an older island whose member it is moves: its
%% process starts anew under that uid, with everything that it had. So the nodes of the younger
%% island become a component of the older group, and the ordinary merge of components follows: the
%% union of names by home, clashes to the resolver, one coordinator.
%%
%% Races. A third island may be met at the same time: each move is to an older island, so all end in
%% the oldest. A node that is in an s_group by the time of the hello declines, and leaves the
%% membership like one that was removed. A node that was away while its island moved gets a hello
%% when it is back, because it still is a member. A node that was restarted founds an island of its
%% own, which is younger than the one that still counts it and so gives way.
%%
%% Not supported: process groups keep their processes over a move, but a process that joins at that
%% very moment may get `no_information_about_remote_group`.

-export([uid/0, met/1, again/0, freed/1, linked/1, message/2, hello/5, resume/0]).
-export([depart/0, depart/2, departed/0]).
-export([merges/1, met/3, greeted/4]).

-import(sderl_clock, [now_ms/0]).

-include("../core/sderl_op.hrl").
-include("../core/sderl_version.hrl").
%% A message may be lost with a process: for so long it is sent again, in milliseconds.
-define(AGAIN, 30_000).
%% How long the process of an island that this node leaves may take for it, in milliseconds.
-define(DEPART, 10_000).

-doc "The identity of a new island: the older one compares lower.".
-spec uid() -> binary().
uid() ->
    Random = binary:part(sderl_vm:new_uid(undefined), 0, 8),
    <<(erlang:system_time(microsecond)):64, Random/binary>>.

%% ---------------------------------------------------------------- decisions

-doc """
Whether a link between free nodes makes one island of two (rule 22). A link that comes up does not
(`linked`). When a node becomes free, only those links do that the library opened or that lead to
nodes of the group that it left.
""".
-spec merges(linked | {freed, Library :: boolean()}) -> boolean().
merges(linked) -> false;
merges({freed, Library}) -> Library.

-doc """
The reaction to the report of another island by one of its nodes: its nodes become members here
(`grow`), or we tell them of our island so that we become members there (`answer`), or nothing.
""".
-spec met(Own :: none | binary(), Theirs :: binary(), Mixes :: boolean()) ->
    grow | answer | nothing.
met(none, _, _) -> nothing;
met(_, _, false) -> nothing;
met(Own, Own, true) -> nothing;
met(Own, Theirs, true) when Own < Theirs -> grow;
met(_, _, true) -> answer.

-doc """
The reaction to a hello of an island: it is our own (`pass`); it has us as a member and is older
than ours (`move`) or younger (`grow`); it has us as a member although we are in no island
(`decline`).
""".
-spec greeted(Own :: none | binary(), Theirs :: binary(), Counted :: boolean(),
              Mixes :: boolean()) ->
    pass | move | grow | decline | nothing.
greeted(Own, Own, _, _) -> pass;
greeted(_, _, false, _) -> nothing;
greeted(none, _, true, _) -> decline;
greeted(_, _, true, false) -> decline;
greeted(Own, Theirs, true, true) when Theirs < Own -> move;
greeted(_, _, true, true) -> grow.

%% ---------------------------------------------------------------- meeting

%% Free hidden nodes keep their names to themselves.
mixes() -> sderl_options:value(free_islands) andalso not sderl_vm:is_hidden().

%% Tells these nodes of our island; those in another island make one of the two.
meet(Nodes) ->
    case {sderl_dir:group(undefined), mixes()} of
        {#{uid := Uid, members := Members}, true} ->
            lists:foreach(fun(N) -> tell(N, {meet, Uid, Members}) end, Nodes -- Members);
        _ -> ok
    end.

-doc "Merges our island with those of these nodes, now or soon.".
-spec met([node()]) -> ok.
met(Nodes) ->
    Until = now_ms() + ?AGAIN,
    true = ets:insert(sderl_state, [{{met, N}, Until} || N <- Nodes]),
    meet(Nodes).

-doc "Meets again those that are not yet in our island.".
-spec again() -> ok.
again() ->
    case ets:select(sderl_state, [{{{met, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}]) of
        [] -> ok;
        Wanted ->
            %% Also nodes that are members already: one that had no island at that moment declines,
            %% and is removed.
            Now = now_ms(),
            {Done, Left} = lists:partition(fun({_, Until}) -> Until =< Now end, Wanted),
            lists:foreach(fun({N, _}) -> ets:delete(sderl_state, {met, N}) end, Done),
            meet([N || {N, _} <- Left, lists:member(N, nodes(visible))])
    end.

-doc "A link came up. That alone is no reason to meet.".
-spec linked(node()) -> ok.
linked(Node) ->
    case merges(linked) of
        true -> met([Node]);
        false -> ok
    end.

-doc """
This node is free now. It meets the nodes of the group that it left, and those to which the library
opened a link; the other end of a link may have opened it.
""".
-spec freed(Mates :: [node()]) -> ok.
freed(Mates) ->
    Near = [N || N <- nodes(visible), merges({freed, lists:member(N, Mates) orelse ours(N)})],
    met(Near),
    lists:foreach(fun(N) -> tell(N, freed) end, nodes(visible) -- Near).

%% Whether the library opened the link, and not for the caller.
ours(Node) ->
    [] =/= [N || #{node := N, opened_by := library, reasons := Rs} <- sderl_links:list(),
                 N =:= Node, Rs =:= [] orelse Rs -- [caller, stock] =/= []].

-doc "A message of another node's node server to ours.".
-spec message(node(), term()) -> ok | unknown.
message(From, {meet, Uid, Nodes}) when is_binary(Uid), length(Nodes) >= 0 ->
    case sderl_dir:group(undefined) of
        #{uid := Own, process := Pid, members := Members} ->
            case met(Own, Uid, mixes()) of
                grow -> grow(Pid, Members, Nodes);
                answer -> tell(From, {meet, Own, Members});
                nothing -> ok
            end;
        none -> ok
    end;
message(From, freed) ->
    case ours(From) of
        true -> met([From]);
        false -> ok
    end;
message(_, _) -> unknown.

tell(Node, Msg) ->
    sderl_traffic:send({sderl_node, Node}, {sderl_free, ?VSN, node(), Msg}, control, Msg).

grow(Pid, Members, Nodes) ->
    case [N || N <- Nodes, is_atom(N)] -- Members of
        [] -> ok;
        New -> Pid ! {sderl_op, none, #add{nodes = New}}, ok
    end.

%% ---------------------------------------------------------------- being greeted

-doc "A member of an island says hello (see `sderl_node`).".
-spec hello(binary(), {node(), sderl_links:connection() | undefined}, Addr :: term(),
            sderl_membership:t(), term()) -> ok.
hello(Uid, From, Addr, Mem, Msg) ->
    {Own, Pid, Members} = case {sderl_dir:group(undefined), sderl_dir:departing()} of
        {#{uid := U, process := P, members := Ms}, _} -> {U, P, Ms};
        %% The island's process goes on until the removal is ordered, and may order it itself.
        {none, {Uid, P}} -> {Uid, P, []};
        {none, _} -> {none, none, []}
    end,
    case greeted(Own, Uid, sderl_membership:is_known(node(), Mem), mixes()) of
        pass -> greet(Pid, Uid, From, Msg);
        move -> move(sderl_dir:start_args(undefined, Own), Own, Pid, {Uid, Mem}, From, Msg);
        grow -> grow(Pid, Members, sderl_membership:members(Mem));
        decline ->
            Without = sderl_membership:remove([node()], erlang:system_time(second), Mem),
            say(Addr, Uid, away),
            say(Addr, Uid, {mem, Without});
        nothing -> ok
    end.

say(To, Uid, Msg) ->
    _ = erlang:send(To, {sderl, ?VSN, Uid, node(), Msg}, [noconnect]),
    ok.

greet(Pid, Uid, {From, Connection}, Msg) -> sderl_group:greet(Pid, Uid, From, Connection, Msg).

%% For the other nodes of the island it is as if the process had died and come back under another
%% uid: they are told, and move, too. The new process has the tables of the old one.
move(none, _, _, _, _, _) -> ok;
move(Args, Own, Old, {Uid, Mem}, From, Msg) ->
    Members = sderl_dir:members(undefined),
    ok = sderl_dir:start_args(undefined, Uid, Args#{moved => true, mem => Mem}),
    ok = sderl_dir:forget_gone(Uid),
    ok = stop(Old, Uid),
    greet(moved(Own, Uid), Uid, From, Msg),
    lists:foreach(fun(N) -> tell(N, {meet, Uid, [node()]}) end,
                  Members -- [node(), element(1, From)]),
    again().

moved(Own, Uid) ->
    Supervisor = whereis(sderl_group_sup),
    Pid = case sderl_group_start:began() of
        %% This node's server died after it had started the process.
        {Uid, Began, Supervisor} -> Began;
        _ -> start(Uid)
    end,
    ok = sderl_dir:moved(undefined, Own, Uid, Pid),
    sderl_part:group_moved(undefined, Own, Uid),
    Pid.

start(Uid) ->
    #{mem := Mem} = sderl_dir:start_args(undefined, Uid),
    case sderl_saved:recover(undefined) of
        #{durable := D} -> sderl_saved:durable(undefined, sderl_core:moved(D, Mem));
        none -> true
    end,
    case sderl_group_sup:start_group(undefined, Uid) of
        {ok, Pid} -> Pid;
        %% The server that died had asked for it.
        {error, gone} -> {Uid, Pid, _} = sderl_group_start:began(), Pid
    end.

%% The process that the directory shows, and its successor if it was killed. (One that is being
%% started now may still be of the former island: it has begun when the supervisor answers.)
stop(Shown, Uid) ->
    _ = supervisor:count_children(sderl_group_sup),
    Began = [Pid || {Other, Pid, _} <- [sderl_group_start:began()], Other =/= Uid],
    lists:foreach(fun(Pid) ->
        try gen_server:stop(Pid, {shutdown, moved}, infinity)
        catch exit:_ -> ok
        end
    end, lists:usort([Shown | Began])).

%% ---------------------------------------------------------------- leaving for a group

%% A node that enters an s_group is in no island from then on, whatever state its island is in: the
%% directory drops the island before it gets the group, and no read, here or elsewhere, sees names
%% of an island that is not in the directory. The removal from the membership takes time: the other
%% members order it, so that the names that this node leaves there stay. Meanwhile the island's
%% process goes on unseen; its coordinator may be lost, or on its way to another island. If the node
%% is free again before that is over it founds another island at once; if the former one still
%% counts the node, the two merge like any others.

-doc "This node leaves its island, if it is in one, for an s_group.".
-spec depart() -> ok.
depart() ->
    sderl_dir:depart(),
    case sderl_dir:departing() of
        none -> ok;
        {_, Pid} -> ask_out(Pid)
    end.

-doc """
Follows up the island that this node is leaving. A new process of the island is asked again to
leave; a process whose removal is not ordered in time is ended. (With a coordinator that takes
milliseconds.)
""".
-spec depart(none | {pid(), Until :: integer()}, Now :: integer()) ->
    none | {pid(), Until :: integer()}.
depart(Asked, Now) ->
    case {sderl_dir:departing(), Asked} of
        {none, _} -> none;
        {_, {_, Until}} when Now > Until -> departed(), none;
        {{_, Pid}, {Pid, _}} -> Asked;
        {{_, Pid}, none} -> {Pid, Now + ?DEPART};
        {{_, Pid}, {_, Until}} -> ask_out(Pid), {Pid, Until}
    end.

ask_out(Pid) ->
    Pid ! {sderl_op, none, #remove{nodes = [node()], time = erlang:system_time(second)}},
    ok.

-doc """
Ends the process of the island that this node is leaving; the other members hear that it left.
""".
-spec departed() -> ok.
departed() ->
    case sderl_dir:departing() of
        none -> ok;
        {_, Pid} ->
            Mon = monitor(process, Pid),
            Pid ! sderl_depart,
            receive {'DOWN', Mon, process, Pid, _} -> ok
            after 5000 ->
                exit(Pid, kill),
                receive {'DOWN', Mon, process, Pid, _} -> ok end
            end,
            sderl_dir:forget(undefined)
    end.

-doc "Ends a move in which this node's server died.".
-spec resume() -> ok.
resume() ->
    case {sderl_dir:group(undefined), sderl_dir:start_uid(undefined)} of
        {#{uid := Own, process := Pid}, Uid} when Uid =/= Own, Uid =/= none ->
            ok = stop(Pid, Uid),
            _ = moved(Own, Uid),
            ok;
        _ -> ok
    end.
