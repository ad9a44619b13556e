%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ct).

%% What the suites on real nodes share: fleets of nodes that run the library, groups on them,
%% processes to register, and what all members of a group must agree on.
%%
%% The test's own VM is not distributed: it reaches every node over the fleet's control channel,
%% also one that is cut off. This module is on the nodes' code path too.

-export([with/3, again/3, hold/2, release/1, env/1, seed/0, in_long_runs/1]).
-export([on/3, on/4, all_on/3, await/2, await/3]).
-export([group/3, group/4, settled/3, agreed/3, hold_all/4, state/3, lead/3, delete/3]).
-export([process/2, processes/3, listener/4, heard/2, kill/3, alive/2, names/3]).
-export([cut/3, heal/3, linked/3, links/2, same_links/3]).
%% On the nodes.
-export([view/1, idle/2]).

-define(SOON, 60_000).
-define(CALL, 90_000).

%% ---------------------------------------------------------------- fleets

%% A fleet for one test. `calm`: nobody is taken for dead because the machine is busy, so that
%% what is promised to live members is promised to all. `quick`: who stops is soon set aside.
with(Count, Pace, Fun) ->
    {Fleet, Nodes} = start(Count, Pace, self()),
    try Fun(Fleet, Nodes)
    after sderl_fleet:stop(Fleet)
    end.

%% The same with nodes that the case before left behind, as if they were new, where there are some.
again(Count, Pace, Fun) -> sderl_ct_again:with(Count, env(Pace), Fun).

%% A fleet for a whole suite: the process that prepares a suite ends before the first test.
hold(Count, Pace) ->
    Owner = spawn(fun() -> receive release -> ok end end),
    {Fleet, Nodes} = start(Count, Pace, Owner),
    [{fleet, Fleet}, {nodes, Nodes}, {owner, Owner}].

release(Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)),
    proplists:get_value(owner, Config) ! release.

start(Count, Pace, Owner) ->
    Family = #{name => n, count => Count, apps => [sderl],
               env => [{sderl, K, V} || {K, V} <- env(Pace)]},
    {ok, Fleet} = sderl_fleet:start(#{families => [Family], owner => Owner}),
    {Fleet, sderl_fleet:nodes(Fleet)}.

env(calm) -> [{tick_ms, 500}, {set_aside_ms, 15_000}, {write_timeout_ms, 60_000}];
env(quick) -> [{tick_ms, 200}, {set_aside_ms, 1000}, {write_timeout_ms, 60_000}];
env(Pairs) when is_list(Pairs) -> Pairs.

%% Cases that `make test-long` runs and `make test` leaves out: others there stand for them.
in_long_runs(Cases) -> case os:getenv("SDERL_LONG") of "1" -> Cases; _ -> [] end.

%% Printed, and taken from SDERL_SEED to see a run again.
seed() ->
    Seed = case os:getenv("SDERL_SEED") of
        false -> erlang:phash2({make_ref(), erlang:system_time()}, 1 bsl 27);
        Text -> list_to_integer(Text)
    end,
    ct:pal("SDERL_SEED=~b", [Seed]),
    _ = rand:seed(exsss, Seed),
    Seed.

%% ---------------------------------------------------------------- calls and waiting

on(Fleet, Node, Fun) -> on(Fleet, Node, Fun, ?CALL).

on(Fleet, Node, Fun, Timeout) -> sderl_fleet:call(Fleet, Node, erlang, apply, [Fun, []], Timeout).

%% On all nodes at the same time; the results in their order.
all_on(Fleet, Nodes, Fun) ->
    [case Answer of
         {ok, Result} -> Result;
         {error, Why} -> error({Node, Why})
     end || {Node, Answer} <- sderl_fleet:multicall(Fleet, Nodes, erlang, apply, [Fun, []], ?CALL)].

await(What, Fun) -> await(What, Fun, ?SOON).

await(What, Fun, Timeout) ->
    case sderl_fleet:await(Fun, Timeout) of
        ok -> ok;
        {error, {timeout, Last}} -> error({not_seen, What, Last})
    end.

%% ---------------------------------------------------------------- groups

group(Fleet, Group, Nodes) -> group(Fleet, Group, Nodes, #{}).

group(Fleet, Group, [First | _] = Nodes, Options) ->
    {ok, Group, Joined} = on(Fleet, First, fun() -> s_group:new_s_group(Group, Nodes, Options) end),
    Joined = lists:sort(Nodes),
    settled(Fleet, Group, Nodes).

delete(Fleet, Group, Node) -> ok = on(Fleet, Node, fun() -> s_group:delete_s_group(Group) end).

%% All are members, counted, in one component, and have the same names; gives those.
settled(Fleet, Group, Nodes) -> agreed(Fleet, Group, {Nodes, Nodes}).

%% The nodes `Live` form one component of the group with these members.
agreed(Fleet, Group, {Live0, Members0}) ->
    {Live, Members} = {lists:sort(Live0), lists:sort(Members0)},
    await({agreed, Group, Live}, fun() -> agree(views(Fleet, Group, Live), Live, Members) end),
    #{names := Names} = on(Fleet, hd(Live), fun() -> view(Group) end),
    Names.

%% And in the end these are their names, as a map to pids, and there are no others.
hold_all(Fleet, Group, {Live, Members}, Expected) ->
    await({names, Group}, fun() ->
        Found = #{N => case Row of #{pid := P} -> P; _ -> Row end
                  || {N, Row} <- agreed(Fleet, Group, {Live, Members})},
        Found =:= Expected orelse
            #{missing => maps:without(maps:keys(Found), Expected),
              left => maps:without(maps:keys(Expected), Found),
              other => #{N => {P, Q} || N := P <- Expected, Q <- [maps:get(N, Found, P)], Q =/= P}}
    end).

agree([#{lead := Lead, epoch := Epoch, names := Names} | _] = Views, Live, Members) ->
    Expected = #{lead => Lead, epoch => Epoch, names => Names, live => Live, aside => [],
                 members => Members, role => ok},
    case lists:usort(Views) of
        [Expected] -> true;
        _ -> {Expected, Views}
    end;
agree(Views, _, _) -> Views.

views(Fleet, Group, Nodes) ->
    [case A of {ok, V} -> V; Error -> Error end
     || {_, A} <- sderl_fleet:multicall(Fleet, Nodes, ?MODULE, view, [Group], 10_000)].

state(Fleet, Node, Group) -> on(Fleet, Node, fun() -> view(Group) end).

lead(Fleet, Node, Group) -> maps:get(lead, state(Fleet, Node, Group)).

%% What a member says of its group, from the public calls alone.
view(Group) ->
    case [I
          || #{group := G, role := _} = I <- proplists:get_value(groups, s_group:info()),
             G =:= Group] of
        [#{role := Role, coordinator := Lead, epoch := E, lineage := L, live := Live,
           aside := Aside, members := Members, syncing := Syncing}] ->
            Good = lists:member(Role, [coord, follower]) andalso L =:= E andalso not Syncing,
            #{lead => Lead, epoch => E, live => Live, aside => Aside, members => Members,
              role => case Good of true -> ok; false -> {Role, L, Syncing} end,
              names => lists:sort([{N, s_group:lookup(Group, N)}
                                   || {_, N} <- s_group:registered_names({s_group, Group})])};
        _ -> {no_member, node()}
    end.

%% Name to pid, as one member has them.
names(Fleet, Node, Group) ->
    on(Fleet, Node, fun() -> #{N => s_group:whereis_name(Group, N)
                               || {_, N} <- s_group:registered_names({s_group, Group})} end).

%% ---------------------------------------------------------------- processes

%% A process that does nothing but keep what it is sent.
process(Fleet, Node) -> hd(processes(Fleet, Node, 1)).

processes(Fleet, Node, Count) ->
    on(Fleet, Node,
       fun() -> [spawn(?MODULE, idle, [fun() -> ok end, []]) || _ <- lists:seq(1, Count)] end).

%% One that subscribed to a group.
listener(Fleet, Node, Group, Kinds) ->
    on(Fleet, Node, fun() ->
        Self = self(),
        Pid = spawn(?MODULE, idle,
                    [fun() -> {ok, Ref} = s_group:subscribe(Group, Kinds), Self ! {self(), Ref} end,
                     []]),
        receive {Pid, Ref} when is_reference(Ref) -> Pid end
    end).

%% What it was sent so far, in order.
heard(Fleet, Pid) ->
    on(Fleet, node(Pid), fun() ->
        Ref = monitor(process, Pid),
        Pid ! {heard, self(), Ref},
        receive
            {Ref, Messages} -> demonitor(Ref, [flush]), Messages;
            {'DOWN', Ref, process, _, Why} -> {down, Why}
        end
    end).

idle(Init, _) ->
    Init(),
    idle([]).

idle(Messages) ->
    receive
        {heard, From, Ref} -> From ! {Ref, lists:reverse(Messages)}, idle(Messages);
        {apply, Fun} -> Fun(), idle(Messages);
        Message -> idle([Message | Messages])
    end.

%% Returns when it is dead.
kill(Fleet, Pid, Why) ->
    on(Fleet, node(Pid), fun() ->
        Ref = monitor(process, Pid),
        exit(Pid, Why),
        receive {'DOWN', Ref, process, _, _} -> ok end
    end).

alive(Fleet, Pid) -> on(Fleet, node(Pid), fun() -> is_process_alive(Pid) end).

%% ---------------------------------------------------------------- links

%% Two nodes lose their link and cannot make it again: neither knows the other's cookie.
cut(Fleet, A, B) ->
    Ends = [{A, B}, {B, A}],
    [on(Fleet, N, fun() -> erlang:set_cookie(M, N) end) || {N, M} <- Ends],
    %% A link that is being made was begun with the cookie of before, and would be there afterwards.
    await({cut, A, B}, fun() ->
        [on(Fleet, N, fun() -> erlang:disconnect_node(M) end) || {N, M} <- Ends],
        [] =:= [End || {N, M} = End <- Ends, on(Fleet, N, fun() -> ets:member(sys_dist, M) end)]
    end).

%% They can again; who wants the link makes it.
heal(Fleet, A, B) ->
    [on(Fleet, N, fun() -> erlang:set_cookie(M, erlang:get_cookie()) end)
     || {N, M} <- [{A, B}, {B, A}]].

linked(Fleet, A, B) -> on(Fleet, A, fun() -> lists:member(B, nodes(connected)) end).

%% The links of each node.
links(Fleet, Nodes) -> all_on(Fleet, Nodes, fun() -> lists:sort(nodes(connected)) end).

%% The nodes have these links again: the other end of a link knows of it a moment later, and a node
%% that was started anew is linked to its mates a moment after it has its ways.
same_links(Fleet, Nodes, Links) ->
    await(links, fun() ->
        case links(Fleet, Nodes) of
            Links -> true;
            Other -> Other
        end
    end).
