%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_node).
-moduledoc """
Nodes of the simulated world: they start, die with their memory, stop and continue, become slow, run
with another clock or another version of the messages.

A node that continues finds its timers and all that was sent to it meanwhile, in either order. A
node without a process of a group treats a greeting for it as `sderl_node` does.
""".
-include("sderl_sim.hrl").

-export([start/2, create/3, invite/4, crash/3, lose/3, pause/2, resume/2, pace/3, relay/3,
         hostile/3, clock/3, version/3]).
-export([meet/4]).
-export([arrive/3, relayed/4, timer/5, step/4, recover/4]).

-import(sderl_sim_world, [chance/2, in/3, node/2, keep/2, keep/4, member/3, touch/2]).
-import(sderl_sim_mail, [mail/4]).

%% ---------------------------------------------------------------- what happens to it

-doc "Starts a node with its launch configuration, if it has one, and its clients.".
-spec start(node(), #w{}) -> #w{}.
start(N, W0) ->
    case node(N, W0) of
        #n{up = true} -> W0;
        #n{lost = true} -> W0;
        #n{groups = Gs} = X ->
            W1 = lists:foldl(fun(G, W) -> configured(N, G, W) end,
                             touch(N, keep(X#n{up = true}, W0)), Gs),
            sderl_sim_client:start(N, 1000, W1)
    end.

configured(N, G, W) ->
    case member(N, G, W) of
        #m{config = none, file = {Uid, Mem, Epoch}} -> kept(N, G, Uid, Mem, Epoch, W);
        #m{config = none} -> W;
        #m{config = island} ->
            {Uid, W1} = island(W),
            sderl_sim_member:new_member(N, G, Uid,
                                        #{mem => sderl_membership:new([N]), found => true}, W1);
        #m{config = Ms} = M -> launch(N, G, launched(G, Ms, W), sderl_membership:new(Ms), M, W)
    end.

%% As `sderl_node` begins a group of the launch configuration: with its file, if there is one.
launch(N, G, Uid, New, #m{file = {Uid, Mem, Epoch}}, W) ->
    sderl_sim_member:new_member(N, G, Uid,
                                #{mem => sderl_membership:merge(Mem, New), ceil => Epoch}, W);
launch(N, G, _, _, #m{file = {Uid, Mem, Epoch}}, W) -> kept(N, G, Uid, Mem, Epoch, W);
launch(N, G, Uid, New, _, W) -> sderl_sim_member:new_member(N, G, Uid, #{mem => New}, W).

%% A group that was made at run time.
kept(N, G, Uid, Mem, Epoch, W) ->
    sderl_sim_member:new_member(N, G, Uid, #{mem => sderl_membership:recall(N, Mem), ceil => Epoch},
                                W).

%% The older island has the lower uid (sderl_free:uid/0).
island(#w{now = Now, ids = Id} = W) -> {<<Now:64, Id:64>>, W#w{ids = Id + 1}}.

launched(G, Ms, #w{hello = Hello}) -> Hello:launched(#{name => G, members => Ms}, <<>>).

-doc "A node makes a group of that name at run time, with itself as the only member.".
-spec create(node(), term(), #w{}) -> #w{}.
create(N, G, #w{ids = Id, hello = Hello} = W) ->
    case member(N, G, W) of
        #m{store = undefined} ->
            Uid = Hello:founded(G, Id),
            sderl_sim_member:new_member(N, G, Uid,
                                        #{mem => sderl_membership:new([N]), found => true}, W);
        _ -> W
    end.

-doc """
The node dies, and its memory is lost. `slow`: the others notice it only by silence.
""".
-spec crash(node(), fast | slow, #w{}) -> #w{}.
crash(N, How, W0) ->
    case node(N, W0) of
        #n{up = true, groups = Gs, life = Life} = X ->
            W1 = keep(X#n{up = false, paused = false, held = [], relayed = 0, life = Life + 1}, W0),
            W2 = lists:foldl(fun(G, W) ->
                #m{config = Config, file = File} = member(N, G, W),
                sderl_sim_majority:crashed(G, keep(N, G, #m{config = Config, file = File}, W))
            end, W1, Gs),
            W3 = lists:foldl(fun(M, W) -> sderl_sim_net:cut(N, M, How, W) end, W2,
                             others(N, Gs, W2)),
            %% Links whose other end has died, too.
            touch(N, sderl_sim_net:unlink(N, W3));
        _ -> W0
    end.

-doc """
The node dies and never comes back, unless it is one of the last two, or of the last majority in
majority mode.
""".
-spec lose(node(), fast | slow, #w{}) -> #w{}.
lose(N, How, W) ->
    All = sderl_sim_world:all(W),
    Left = [M || M <- All, M =/= N, not (node(M, W))#n.lost],
    %% Without a majority nothing continues until an operator decides so.
    Least = case sderl_sim_world:option(mode, available, W) of
        available -> 2;
        majority -> length(All) div 2 + 1
    end,
    case node(N, W) of
        #n{lost = false, up = true} when length(Left) >= Least ->
            W1 = crash(N, How, W),
            keep((node(N, W1))#n{lost = true}, W1);
        _ -> W
    end.

others(N, Gs, W) ->
    lists:delete(N, lists:usort(lists:append([sderl_sim_world:nodes_of(G, W) || G <- Gs]))).

-spec pause(node(), #w{}) -> #w{}.
pause(N, W) ->
    case node(N, W) of
        #n{up = true, paused = false} = X -> touch(N, keep(X#n{paused = true}, W));
        _ -> W
    end.

-doc "The node continues, first with timers that are due or first with what was sent to it.".
-spec resume(node(), #w{}) -> #w{}.
resume(N, W0) ->
    case node(N, W0) of
        #n{up = true, paused = true, held = Held, groups = Gs} = X ->
            W1 = touch(N, keep(X#n{paused = false, held = []}, W0)),
            {First, W2} = chance(70, W1),
            Ps = [{G, Id} || G <- Gs, #m{p = #p{id = Id}} <- [member(N, G, W2)]],
            Ticks = [{proc, G, Id, tick} || {G, Id} <- Ps],
            Items = [I || I <- lists:reverse(Held), not is_tick(I)],
            W3 = lists:foldl(fun({G, Id}, W) -> sderl_sim_member:tick_later(N, G, Id, W) end, W2,
                             Ps),
            lists:foldl(fun(I, W) -> held(N, I, W) end, W3,
                        case First of true -> Ticks ++ Items; false -> Items ++ Ticks end);
        _ -> W0
    end.

is_tick({proc, _, _, tick}) -> true;
is_tick(_) -> false.

held(N, {again, G, Id}, W) -> in(0, {step, N, G, Id}, W);
held(N, {relayed, Item}, W) -> connected(N, Item, W);
held(N, Item, W) -> take(N, Item, W).

-doc "A node that is to be added is asked first: it forgets that it once left.".
-spec invite(node(), node(), term(), #w{}) -> #w{}.
invite(By, N, G, W) ->
    case {member(By, G, W), member(N, G, W)} of
        {#m{p = #p{}, uid = Uid}, #m{gone = Gone} = M} when is_map_key(Uid, Gone) ->
            case lists:member(By, sderl_sim_net:linked(N, G, W))
                 andalso not (node(N, W))#n.paused of
                true -> keep(N, G, M#m{gone = maps:remove(Uid, Gone)}, W);
                false -> W
            end;
        _ -> W
    end.

-doc "Sets how long its processes take to handle their messages, in ms.".
-spec pace(node(), {integer(), integer()}, #w{}) -> #w{}.
pace(N, Pace, W) -> touch(N, keep((node(N, W))#n{pace = Pace}, W)).

-doc "Sets how long its node process takes to forward a greeting to the process of a group, ms.".
-spec relay(node(), {integer(), integer()}, #w{}) -> #w{}.
relay(N, Relay, W) -> touch(N, keep((node(N, W))#n{relay = Relay}, W)).

-doc "This percentage of its messages comes a second time, changed (`m:sderl_sim_hostile`).".
-spec hostile(node(), 0..100, #w{}) -> #w{}.
hostile(N, Percent, W) -> keep((node(N, W))#n{hostile = Percent}, W).

-doc "Its system clock is off by this from now on; processes read it when they begin.".
-spec clock(node(), integer(), #w{}) -> #w{}.
clock(N, Off, W) -> touch(N, keep((node(N, W))#n{clock = Off}, W)).

-doc "Sets the version of the messages that it sends from now on.".
-spec version(node(), pos_integer(), #w{}) -> #w{}.
version(N, V, W) -> touch(N, keep((node(N, W))#n{version = V}, W)).

%% ---------------------------------------------------------------- arrivals

-doc """
Something arrives: `{nodeup | nodedown, Node}`, `{msg, Address, From, Message}` or
`{proc, Group, Id, Event}`.
""".
-spec arrive(node(), term(), #w{}) -> #w{}.
arrive(N, Item, W) ->
    case node(N, W) of
        #n{up = false} -> W;
        #n{paused = true, held = H} = X -> keep(X#n{held = [Item | H]}, W);
        _ -> take(N, Item, W)
    end.

take(N, {nodeup, M}, W) -> to_groups(N, M, {nodeup, M}, W);
take(N, {nodedown, M}, W) -> to_groups(N, M, {nodedown, M}, W);
take(N, {proc, G, Id, Item}, W) -> to(N, G, Id, Item, W);
take(N, {msg, {N, G, Id}, From, {beat, At, Msg}}, W) ->
    sderl_sim_mail:beats(N, G, Id, From, Msg, At, W);
take(N, {msg, {N, G, Id}, From, Msg}, W) ->
    to(N, G, Id, {msg, From, Msg}, sderl_sim_hostile:arrives(N, G, From, Msg, W));
take(N, {msg, {meet, G}, From, {meet, Theirs, Nodes}}, W) ->
    #m{uid = Own, store = Store} = M = member(N, G, W),
    case Store =/= undefined andalso sderl_free:met(Own, Theirs, true) of
        grow -> grow(N, G, M, Nodes, W);
        answer -> meet(N, From, G, W);
        _ -> W
    end;
take(N, {msg, {hello, _, _}, From, _} = Item, W0) ->
    %% The node's own process gets it and forwards it. Messages to the group's process itself, and
    %% the report that a link is gone, may arrive before.
    case node(N, W0) of
        #n{relay = {_, 0}} -> greeting(N, Item, W0);
        #n{relay = {Min, Max}, relayed = Last, life = Life} ->
            {D, W} = sderl_sim_world:rnd(Min, Max, W0),
            T = max(W#w.now + D, Last),
            Relayed = {relayed, N, Life, {sderl_sim_net:connection(N, From, W), Item}},
            sderl_sim_world:at(T, Relayed, keep((node(N, W))#n{relayed = T}, W))
    end.

-doc "The node's own process forwards a greeting.".
-spec relayed(node(), pos_integer(), term(), #w{}) -> #w{}.
relayed(N, Life, Item, W) ->
    case node(N, W) of
        #n{up = true, life = Life, paused = true, held = H} = X ->
            keep(X#n{held = [{relayed, Item} | H]}, W);
        #n{up = true, life = Life} -> connected(N, Item, W);
        _ -> W
    end.

%% As `sderl_group` does with `sderl_links:connected/2`: a greeting from a link that has ended is
%% dropped.
connected(N, {Connection, {msg, _, From, _} = Item}, W) ->
    case sderl_sim_net:connection(N, From, W) of
        Connection -> greeting(N, Item, W);
        _ -> W
    end.

greeting(N, {msg, {hello, island = G, Uid}, From, {hello, Addr, _, Mem, _} = Msg}, W) ->
    #m{uid = U, store = Store} = M = member(N, G, W),
    Own = case Store of undefined -> none; _ -> U end,
    case sderl_free:greeted(Own, Uid, sderl_membership:is_member(N, Mem), true) of
        pass -> mail(N, G, {msg, From, Msg}, sderl_sim_hostile:arrives(N, G, From, Msg, W));
        move -> mail(N, G, {msg, From, Msg}, sderl_sim_member:moves(N, G, Uid, W));
        grow -> grow(N, G, M, sderl_membership:members(Mem), W);
        decline ->
            sderl_sim_net:send(N, From, Addr, {mem, sderl_membership:remove([N], 1, Mem)}, W);
        nothing -> W
    end;
greeting(N, {msg, {hello, G, Uid}, From, Msg}, W) ->
    case member(N, G, W) of
        #m{} = M -> greeted(N, G, M, Uid, From, Msg, W);
        none -> W
    end.

to_groups(N, M, Item, W0) ->
    #n{groups = Gs} = node(N, W0),
    lists:foldl(fun(G, W) -> mail(N, G, Item, W) end, W0,
                [G || G <- Gs, member(M, G, W0) =/= none]).

to(N, G, Id, Item, W) ->
    case sderl_sim_world:process(N, G, Id, W) of
        true -> mail(N, G, Item, W);
        false -> W
    end.

grow(N, G, #m{first = First, p = P}, Nodes, W) ->
    Members = case P of
        undefined -> sderl_membership:members(First);
        #p{st = St} -> sderl_core:members(St)
    end,
    case Nodes -- Members of
        [] -> W;
        New -> mail(N, G, {op, none, #add{nodes = New}}, W)
    end.

-doc "A node tells another of its island, so that the two become one.".
-spec meet(node(), node(), term(), #w{}) -> #w{}.
meet(N, M, G, W) ->
    case sderl_sim_world:state(N, G, W) of
        none -> W;
        St ->
            sderl_sim_net:send(N, M, {meet, G},
                               {meet, (member(N, G, W))#m.uid, sderl_core:members(St)}, W)
    end.

greeted(N, G, #m{store = Store, uid = U, gone = Gone} = M, Uid, From,
        {hello, Addr, _, Mem, Info} = Msg, W) ->
    Own = case Store of undefined -> none; _ -> U end,
    case sderl_hello:greeted(Own, Uid, maps:get(Uid, Gone, undefined), Mem, N) of
        %% The process of that node may be about to restart.
        pass -> mail(N, G, {msg, From, Msg}, sderl_sim_hostile:arrives(N, G, From, Msg, W));
        join -> sderl_sim_member:join(N, G, Uid, Mem, W);
        again ->
            Again = M#m{gone = maps:remove(Uid, Gone)},
            greeted(N, G, Again, Uid, From, Msg, keep(N, G, Again, W));
        {tell, Why, Known} -> sderl_sim_net:send(N, From, Addr, {gone, Why, Known}, W);
        apart ->
            case sderl_hello:yields(Own, launched(G, M#m.config, W), Mem, Info, N)
                 andalso alone(N, G, W) of
                true ->
                    sderl_sim_member:join(N, G, Uid, Mem,
                                          keep(N, G, M#m{p = undefined, store = undefined}, W));
                false -> W
            end;
        nothing -> W
    end.

alone(N, G, W) ->
    case sderl_sim_world:state(N, G, W) of
        none -> false;
        S -> sderl_core:live(S) =:= [N]
    end.

-doc "A timer of a process; a stopped node handles it when it continues.".
-spec timer(node(), term(), pos_integer(), tick | wake, #w{}) -> #w{}.
timer(N, G, Id, What, W) ->
    case sderl_sim_world:process(N, G, Id, W) of
        true ->
            W1 = case What =:= tick andalso not (node(N, W))#n.paused of
                true -> sderl_sim_member:tick_later(N, G, Id, W);
                false -> W
            end,
            arrive(N, {proc, G, Id, What}, W1);
        false -> W
    end.

-doc "A process makes its next step.".
-spec step(node(), term(), pos_integer(), #w{}) -> #w{}.
step(N, G, Id, W) ->
    case node(N, W) of
        #n{up = true, paused = true, held = H} = X -> keep(X#n{held = [{again, G, Id} | H]}, W);
        #n{up = true} -> sderl_sim_member:step(N, G, Id, W);
        _ -> W
    end.

-doc "The supervisor restarts a process, in the same life of the node.".
-spec recover(node(), term(), pos_integer(), #w{}) -> #w{}.
recover(N, G, Life, W) ->
    case {node(N, W), member(N, G, W)} of
        {#n{up = true, life = Life}, #m{p = undefined, store = St}} when St =/= undefined ->
            sderl_sim_member:recover(N, G, W);
        _ -> W
    end.
