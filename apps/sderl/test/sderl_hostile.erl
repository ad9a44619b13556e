%% SPDX-License-Identifier: Apache-2.0
-module(sderl_hostile).

%% On a node: a storm of messages to the processes of the library, each well typed except for a part
%% that was changed at random. `is_order/2` names messages that are still well typed and would, by
%% their meaning, end a group, remove a member or have a node call any function: these are not sent.

-export([storm/4, idle/0, servers/0, mutate/2, pick/1]).

%% Registered nowhere.
-define(NOBODY, sderl_hostile_nobody).

%% Sends so many messages to each process, and returns when they have been dealt with. `lies`: also
%% such messages between members that are well typed by chance; a group heeds some of these, and is
%% busy with that for a while.
storm(Seed, Count, Groups, Which) ->
    _ = rand:seed(exsss, Seed),
    World = (world(Groups))#{which => Which},
    Targets = targets(Groups),
    lists:foreach(fun(_) ->
        lists:foreach(fun(Target) -> process(Target) ! mutant(Target, World) end, Targets)
    end, lists:seq(1, Count)),
    lists:foreach(fun(Target) -> _ = sys:get_status(process(Target), 60_000) end, Targets),
    lists:foreach(fun(P) -> P ! stop end, maps:get(all, World)),
    Count * length(Targets).

%% The registered processes of the library. Not its supervisors and scopes of process groups, which
%% run OTP's code: what that makes of a strange message is not ours to say (a scope ends, and its
%% joins are made again). Nor those of a fleet.
servers() ->
    [Name
     || Name <- lists:sort(registered()), {match, _} <- [re:run(atom_to_list(Name), "^sderl_")],
        nomatch =:= re:run(atom_to_list(Name), "^sderl_fleet|_sup$|^sderl_pg_")].

targets(Groups) ->
    servers()
        ++ [{group, G} || G <- Groups]
        %% Those that keep process groups have no names.
        ++ [{pg, Keeper} || [Keeper] <- ets:match(sderl_pg, {{scope, '_'}, '_', '_', '$1'})].

process({group, G}) -> sderl_dir:process(G);
process({pg, Keeper}) -> Keeper;
process(Name) -> whereis(Name).

%% What messages are made of. The processes in it are there for this storm.
world([Group | _] = Groups) ->
    Members = sderl_dir:members(Group),
    [Peer | _] = Peers = Members -- [node()],
    Local = [spawn(fun idle/0) || _ <- [1, 2, 3]],
    Remote = spawn(Peer, ?MODULE, idle, []),
    #{pids => [Remote | Local], local => Local, all => [Remote | Local], peers => Peers,
      members => Members, sink => hd(Local), groups => #{G => about(G, Peers) || G <- Groups}}.

about(Group, Peers) ->
    #{uid := Uid, process := Pid, members := Members} = sderl_dir:group(Group),
    {ok, #{epoch := Epoch}} = sderl_group:info(Pid, 5000),
    Peer = hd([P || P <- Peers, lists:member(P, Members)]),
    Addr = erpc:call(Peer, sderl_dir, process, [Group]),
    #{uid => Uid, epoch => Epoch, members => Members, peer => Peer, addr => Addr,
      life => erpc:call(Peer, sderl_dir, incarnation, [])}.

idle() -> receive stop -> ok; _ -> idle() end.

%% ---------------------------------------------------------------- mutants

mutant(Target, World) ->
    case rand:uniform(30) of
        1 -> pick([tick, look, sweep, prune, beat, compare, show, computed, wake, sderl_poke]);
        _ -> mutated(Target, World)
    end.

mutated(Target, World) ->
    {Way, Message} = pick(well_typed(Target, World)),
    Mutant = case rand:uniform(4) of
        1 -> mutate(mutate(Message, World), World);
        _ -> mutate(Message, World)
    end,
    case is_order(Target, {Way, Mutant}, World) of
        true -> mutated(Target, World);
        false -> framed(Way, Mutant, Target, World)
    end.

framed(raw, Message, _, _) -> Message;
framed(cast, Message, _, _) -> {'$gen_cast', Message};
framed(call, Message, _, #{sink := Sink}) -> {'$gen_call', {Sink, make_ref()}, Message};
framed(core, Message, {group, G}, #{groups := Groups}) ->
    #{G := #{uid := Uid, peer := Peer}} = Groups,
    {sderl, 2, Uid, Peer, Message}.

mutate(Term, World) ->
    case rand:uniform(5) of
        1 -> junk(World);
        _ -> inside(Term, World)
    end.

inside({}, World) -> junk(World);
inside(Tuple, World) when is_tuple(Tuple) ->
    Elements = tuple_to_list(Tuple),
    I = rand:uniform(length(Elements)),
    {Before, [Element | After]} = lists:split(I - 1, Elements),
    list_to_tuple(case rand:uniform(8) of
        1 -> Before ++ After;
        2 -> Before ++ [junk(World), Element | After];
        3 -> lists:reverse(Elements);
        _ -> Before ++ [mutate(Element, World) | After]
    end);
inside([Head | Tail], World) ->
    case rand:uniform(8) of
        1 -> [Head | junk(World)];
        2 -> [Head, Head | Tail];
        3 -> Tail;
        4 -> [[Head | Tail]];
        5 when is_list(Tail) -> [Head | inside(Tail, World)];
        _ -> [mutate(Head, World) | Tail]
    end;
inside(Map, World) when map_size(Map) > 0 ->
    Key = pick(maps:keys(Map)),
    case rand:uniform(6) of
        1 -> maps:remove(Key, Map);
        2 -> Map#{junk(World) => map_get(Key, Map)};
        3 -> (maps:remove(Key, Map))#{mutate(Key, World) => map_get(Key, Map)};
        _ -> Map#{Key := mutate(map_get(Key, Map), World)}
    end;
inside(Number, World) when is_integer(Number) ->
    pick([-Number, Number + 1, Number - 1, 2 * Number, {Number}, integer_to_binary(Number),
          junk(World)]);
inside(_, World) -> junk(World).

junk(#{pids := Pids, local := Local} = World) ->
    pick([42, 0, -1, 1.5, 1 bsl 48, 1 bsl 64, 1 bsl 3000, -(1 bsl 70), a, undefined, none, '', true,
          'x@nowhere', <<>>, <<1:3>>, "text", [], [a | b], [[], [a | b]], {}, {a}, {a, b, c}, #{},
          #{a => [1 | 2], {} => #{}}, #{'$1' => '$2'}, '$1', '_', make_ref(), pick(Pids),
          pick(Local), list_to_pid("<0.1.77>"), fun lists:map/2, fun(_) -> World end,
          lists:duplicate(200, {a, 1}), deep(60)]).

deep(0) -> [];
deep(N) -> {deep(N - 1), [N]}.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% ---------------------------------------------------------------- orders

is_order({group, G}, {core, Message}, #{groups := Groups, which := Which}) ->
    #{G := #{peer := Peer} = About} = Groups,
    sderl_wire:message(Peer, Message) andalso (Which =:= ill_typed orelse is_order(Message, About));
is_order({group, _}, {raw, {_, _, Op}}, _) ->
    Op =:= delete orelse is_tuple(Op) andalso tuple_size(Op) > 1
                         andalso lists:member(element(1, Op), [add, remove]);
is_order(_, {raw, {What, Node, _}}, #{members := Members})
  when What =:= nodeup; What =:= nodedown ->
    lists:member(Node, Members);
is_order(sderl_node, {raw, {sderl_hello, 2, Group, Uid, From, Hello}}, #{groups := Groups}) ->
    Apart = case Groups of #{Group := #{uid := Own}} -> Uid =/= Own; _ -> false end,
    is_atom(From) andalso is_binary(Uid) andalso sderl_wire:message(From, Hello) andalso not Apart;
is_order(sderl_node, {call, {enter, Group, _}}, #{groups := Groups}) -> is_map_key(Group, Groups);
is_order(sderl_attr_server, {call, {write, Change}}, _) ->
    is_tuple(Change) andalso tuple_size(Change) =:= 5 andalso element(2, Change) =/= hostile;
is_order(sderl_gateway_agent, {call, {spawn, M, F, A}}, _) ->
    is_atom(M) andalso is_atom(F) andalso is_list(A) andalso {M, F, A} =/= {erlang, node, []};
is_order(sderl_gateway_agent, {call, {spawn_in, Group, _, _, _}}, #{groups := Groups}) ->
    is_map_key(Group, Groups);
is_order(_, _, _) -> false.

%% Of a member, it is true.
is_order({hello, Addr, Life, Mem, _}, #{addr := Real, life := Lives, members := Members}) ->
    {Addr, Life, Mem} =/= {Real, Lives, sderl_membership:new(Members)};
is_order({mem, _}, _) -> true;
is_order({gone, _, _}, _) -> true;
is_order(bye, _) -> true;
is_order(_, _) -> false.

%% ---------------------------------------------------------------- well-typed messages

well_typed({group, G}, #{groups := Groups, pids := Pids, members := Nodes}) ->
    #{G := About} = Groups,
    Pid = pick(Pids),
    Asked = [{raw, {pick([sderl_op, sderl_again]), pick([none, make_ref()]), Op}}
             || Op <- operations(Pid, Nodes)],
    [{core, M} || M <- core(About, Pid)] ++ Asked ++ Asked
        ++ [{raw, {sderl_await, make_ref(), 10}}, {raw, {sderl_await_live, make_ref(), Nodes, 10}},
            {raw, {sderl_recover, make_ref(), Nodes}}, {raw, {sderl_pid_gone, name, Pid}},
            {raw, {nodeup, 'x@nowhere', []}}, {raw, {nodedown, 'x@nowhere', []}},
            {raw, {'DOWN', make_ref(), process, Pid, gone}},
            {raw, {resolved, {name, row(Pid), row(Pid)},
                   #{keep => Pid, effects => [{exit, Pid, clash}], failed => undefined}}},
            {call, info}, {cast, info}];
well_typed({pg, _}, #{pids := Pids, local := Local}) ->
    [{call, {join, workers, Local}},
     {call, {join, workers, [pick(Pids)]}},
     {call, {leave, workers, [pick(Local)]}},
     {call, started},
     {raw, {'DOWN', make_ref(), process, pick(Pids), gone}},
     {cast, hello}];
well_typed(sderl_node, #{groups := Groups, peers := [Peer | _], members := Nodes}) ->
    [G | _] = maps:keys(Groups),
    #{G := #{uid := Uid} = About} = Groups,
    [{raw, {sderl_hello, 2, G, Uid, Peer, hello(About)}},
     {raw, {sderl_hello, 2, G, rand:bytes(16), Peer, hello(About)}},
     {raw, {sderl_known, 2, Peer, [{G, Nodes}, {other, [Peer]}]}},
     {raw, {sderl_known, 2, Peer, {{G, Nodes}, [{other, []}, {third, [Peer]}]}}},
     {raw, {sderl_tell, 2, Peer}},
     {raw, {sderl_conflict, 2, G, Uid, Peer, rand:bytes(16)}},
     {raw, {sderl_free, 2, Peer, {meet, Uid, Nodes}}},
     {raw, {sderl_free, 2, Peer, freed}}, {raw, {nodeup, 'x@nowhere', []}},
     {raw, {nodedown, 'x@nowhere', []}},
     {call, {invite, 2, G, Uid, Peer}}, {call, {withdraw, 2, G, Uid}},
     {call, {enter, 2, nowhere, Peer}},
     {call, {invite, 2, G, Uid, Peer,
             #{mode => pick([available, majority]), new => pick([true, false])}}},
     {call, {recover, 2, G, Uid, Nodes, pick([check, do]), Peer}}, {call, settle},
     {cast, {changed, G}}, {cast, {left, nowhere, [Peer]}},
     {cast, {met, Peer}}];
well_typed(sderl_ask, #{groups := Groups, pids := Pids}) ->
    [G | _] = maps:keys(Groups),
    [{call, Q}
     || Q <- [hello, names, {alive, pick(Pids)}, {reach, G, pick(Pids)}, {whereis, G, name},
              {send, G, name, hello}, {whereis_at, G, name}, {send_at, G, name, hello}, {names, G},
              {read, G, name}]] ++ [{cast, hello}, {raw, {hello, 1}}];
well_typed(sderl_subs, #{pids := Pids, local := Local}) ->
    [{call, {subscribe, g, pick(Local), [group, name]}},
     {call, {subscribe, g, pick(Pids), [event]}},
     {call, {unsubscribe, make_ref()}},
     {call, {monitor_nodes, pick(Pids), true}},
     {call, {monitor_nodes, pick(Pids), false}},
     {raw, {'DOWN', make_ref(), process, pick(Pids), gone}}];
well_typed(sderl_watch, #{groups := Groups, pids := Pids}) ->
    [G | _] = maps:keys(Groups),
    Group = sderl_dir:process(G),
    [{cast, {watch, Group, G, [{name, pick(Pids)}]}},
     {cast, {drop, pick(Pids)}},
     {cast, {linked, Group, name, pick(Pids)}},
     {cast, {unreachable, Group, name, pick(Pids)}},
     {cast, {exit, pick(Pids), clash}},
     {cast, {send, pick(Pids), hello}},
     {raw, {'DOWN', make_ref(), process, pick(Pids), gone}}];
well_typed(sderl_router, #{groups := Groups, peers := [Peer | _], members := Nodes}) ->
    [G | _] = maps:keys(Groups),
    #{G := #{uid := Uid}} = Groups,
    Version = {erlang:system_time(millisecond), 1, 1},
    Ad = {'x@nowhere', Version, [{G, Uid, lists:sort(['x@nowhere' | Nodes])},
                                 {far, <<"uid">>, ['x@nowhere', 'y@nowhere']}], Nodes},
    [{raw, {sderl_route, 1, Peer, M}}
     || M <- [{news, [Ad]},
              {news, [Ad, Ad]},
              {digest, true, [{Peer, Version}]},
              {digest, false, [{Peer, Version}]},
              {summary, 7},
              beat,
              beaten]]
        ++ [{raw, {nodeup, 'x@nowhere', []}}, {raw, {nodedown, 'x@nowhere', []}}, {cast, changed},
            {call, info}];
well_typed(sderl_route_report, #{pids := Pids, peers := [Peer | _]}) ->
    Report = {pick(Pids), {g, {name, x}}, busy, 3},
    [{call, {subscribe, pick(Pids), true}},
     {call, {subscribe, pick(Pids), false}},
     {cast, {failed, {Peer, [Report, Report]}}},
     {raw, {'DOWN', make_ref(), process, pick(Pids), gone}}];
well_typed(sderl_monitor, #{pids := Pids, peers := [Peer | _]}) ->
    Ref = make_ref(),
    [{raw, {sderl_watch, 1, Peer, {1, 1}, {have, 1, 1, [Ref], [Ref], [{Ref, gone}]}}},
     {raw, {sderl_watch, 1, Peer, {1, 1}, {want, 1, [{Ref, pick(Pids)}], [Ref], [Ref]}}},
     {cast, {add, Ref}},
     {call, {drop, Ref}},
     {call, info},
     {raw, {Ref, failed, unreachable}},
     {raw, {'DOWN', Ref, process, pick(Pids), gone}}];
well_typed(sderl_gateway_agent, _) ->
    [{call, {spawn, erlang, node, []}}, {call, {spawn_in, nowhere, erlang, node, []}}];
well_typed(sderl_attr_server, #{peers := [Peer | _]}) ->
    Entry = {name, 1, ok, 10, pick([static, 100]), 3},
    Answer = {Peer, direct, erlang:monotonic_time(millisecond), [Entry]},
    [{raw, {sderl_attr, 1, Peer, {1, pick([none, 1]), 1}, Body}}
     || Body <- [{full, life, 3, [Entry, Entry]}, {delta, life, 3, 4, [Entry], [{name, 3}]}, again]]
        ++ [{call, {sderl_attr, 1, {get, [node_name, load], 100}}},
            {call, {sderl_attr, 1, {'of', [Peer], [load], 100, 10}}},
            {call, {write, {set, hostile, pick([1, {dynamic, {erlang, node}}]), call, none}}},
            {call, {write, {delete, hostile}}},
            {call, {keep, [Answer], [{Peer, 1}, {{gateway, Peer}, 1}]}}, {cast, changed},
            {raw, {nodeup, 'x@nowhere', []}},
            {raw, {nodedown, 'x@nowhere', []}}, {raw, {attr_outcome, make_ref(), load, {ok, 1}}}];
well_typed(sderl_dist_probe, #{pids := Pids}) ->
    Spec = #{groups => own, asked => [<<"uid">>], left_ms => 50, peers => 1, batches => 1,
             batch => 1, window => 1, spread_ms => 1},
    [{raw, {sderl_dist, 1, ping, token, pick(Pids)}},
     {raw, {sderl_dist, 1, survey, make_ref(), pick(Pids), Spec}},
     {raw, {sderl_dist, 1, done, make_ref()}}];
well_typed(sderl_link_policy, #{peers := [Peer | _]}) ->
    View = #{visible => true, opened_by => library, needed => false, names => 0, idle_ms => 1},
    [{raw, {sderl_link, 2, Peer, {may_close, View}}}, {raw, {sderl_link, 2, Peer, close}},
     {call, hello}, {cast, hello}];
well_typed(sderl_connector, #{pids := Pids}) ->
    [{cast, look}, {raw, {nodeup, 'x@nowhere', []}}, {raw, {nodedown, 'x@nowhere', []}},
     {raw, {'DOWN', make_ref(), process, pick(Pids), linked}}, {call, hello}];
well_typed(sderl_heart, #{groups := Groups, peers := [Peer | _]}) ->
    [G | _] = maps:keys(Groups),
    #{G := #{uid := Uid}} = Groups,
    [{raw, {sderl_heart, 2, Peer, W}}
     || W <- [{again, 300}, {beat, 300, {1, 0, [Uid], []}}, {beat, 300, {1, 1, [], [Uid]}},
              {beat, 300, {7, 3, [], []}}]]
        ++ [{cast, {stands, Uid}},
            {cast, {probe, 'x@nowhere'}},
            {raw, beat},
            {raw, {nodeup, 'x@nowhere', []}},
            {raw, {nodedown, 'x@nowhere', []}},
            {call, hello}];
well_typed(Target, #{groups := Groups, pids := Pids, peers := [Peer | _]})
  when Target =:= sderl_feeder; Target =:= sderl_follower ->
    [G | _] = maps:keys(Groups),
    #{G := #{uid := Uid}} = Groups,
    Feed = {Uid, pick([Peer, node()]), 7},
    Stamp = pick([none, {1, erlang:monotonic_time(millisecond)}]),
    Rows = [row(pick(Pids))],
    [{raw, {sderl_follow, 1, Peer, pick([G, nowhere]), M}}
     || M <- [{want, none, Stamp, 10}, {want, {at, Feed, 3}, Stamp, 10},
              {want, {piece, Feed, 1, 2}, Stamp, 10}, stop,
              {piece, Feed, 1, 1, Rows, more, Stamp}, {piece, Feed, 1, 2, Rows, {last, 3}, Stamp},
              {delta, Feed, 1, 4, Rows, [other], Stamp}, {no, not_member}, {no, {over, 7}}]]
        ++ [{raw, {s_group_event, make_ref(), G, {rows, [name]}}},
            {raw, {push, G, make_ref()}},
            {call, {unfollow, nowhere}},
            {call, {follow, undefined}},
            {cast, {changed, G}},
            {raw, {nodeup, 'x@nowhere', []}},
            {raw, {nodedown, 'x@nowhere', []}},
            {raw, {'DOWN', make_ref(), process, pick(Pids), gone}}];
%% The forwarding processes.
well_typed(_, #{groups := Groups, pids := Pids, peers := [Peer | _]}) ->
    [G | _] = maps:keys(Groups),
    Pid = pick(Pids),
    From = pick([none, Pid, make_ref()]),
    Now = erlang:monotonic_time(millisecond),
    Whats = [{name, x}, {call, x}, {whois, x}, {names, {x, '_'}}, {nodes, ?NOBODY},
             {call_any, ?NOBODY}],
    Ats = [{to, Pid}, {pids, [Pid, Pid]}, {process, ?NOBODY}, {call, Pid}, {call, ?NOBODY},
           {whois, Pid}, {stream, Pid}, probe, report]
        ++ [{group, G, W} || W <- Whats] ++ [{groups, [G, nowhere], W} || W <- Whats],
    Bodies = [hello,
              {1, Now, hello},
              {sderl_stream, 1, Pid,
               {1, 1, 0, 1, [{send, hello}, {call, 1, '$gen_call', hello}, {exit, gone}]}},
              {Peer, [{Pid, {g, {name, x}}, busy, 3}]}],
    Frames = [{sderl_to, 1, 3, 1, pick([G, nowhere]), pick(Whats), From, pick(Bodies)},
              {sderl_each, 1, 3, 1, [G, nowhere], pick(Whats), From, pick(Bodies)},
              {sderl_at, 1, 3, 1, pick([node(), Peer, 'x@nowhere']), pick(Ats), From,
               pick(Bodies)}],
    [{raw, F} || F <- Frames]
        ++ [{raw, {sderl_many, 1, [[Pid | hello] | Frames]}},
            {raw, {lane_failed, Peer,
                   [{[Pid | hello], {g, {name, x}}, From}, {hd(Frames), {g, {name, x}}, From}]}},
            {raw, {lane_idle, Peer, Pid}}].

operations(Pid, Nodes) ->
    [[name | Pid],
     {name},
     {r, name, Pid, #{meta => 1, resolver => {m, f}}},
     {x, name, Pid, Pid, []},
     {rr, name, Pid, []},
     {d, name, Pid},
     {add, Nodes},
     {remove, Nodes, 1}].

row(Pid) -> {name, Pid, node(Pid), {{1, node()}, 1}, []}.

hello(#{addr := Addr, life := Life, members := Members, peer := Peer} = About) ->
    {hello, Addr, Life, sderl_membership:new(Members),
     #{epoch => epoch(About), lineage => epoch(About), num => 3, lead => Peer, syncing => false,
       ask => true}}.

%% Never the present one: what is said of that by who leads it is obeyed.
epoch(#{epoch := {Counter, _}, members := Members}) ->
    {Counter + pick([-Counter, -1000, -2, -1, 1, 2, 1000]) * rand:uniform(1000), pick(Members)}.

core(#{members := Members, peer := Peer} = About, Pid) ->
    E = epoch(About),
    Row = row(Pid),
    Mem = sderl_membership:new(Members),
    List = {Peer, 1, 2, operations(Pid, Members)},
    Clashes = #{name => {Row, Row}},
    Session = {1, 2, [yes, {yes, Peer}, {ok, Peer}, unknown, {no, why}]},
    Sessions = #{Peer => Session},
    View = #{Peer => live, node() => {E, 1}},
    Items = [{seg, Peer, 1, 2, [[name | Pid], {name}], default},
             {seg, Peer, 1, 2, [[name | Pid]], [{yes, Peer}]},
             {view, View, [Peer], [Peer], [{Peer, 1, 2, [1]}]},
             {mem, Mem, [Peer]},
             {shard, Peer, true, [Row], more},
             {shard, Peer, false, [Row], {{E, 1}, Session}},
             {settle, name, [Pid], setelement(4, Row, new), [{exit, Pid, name}]},
             {clashes, Clashes}],
    Log = #{prev => E, history => [{E, 1}], view => View, mem => Mem, clashes => Clashes},
    [hello(About), {mem, Mem}, {gone, removed, Mem}, bye, away, query, {state, E, Peer}, {hb, E, 1},
     {hb_ack, E, Members}, {low, E, Peer},
     {found, Peer, E}, {follow, Peer, E}, {req, E, List}, {answers, E, rand:uniform(3), [yes]},
     {batch, E, 1, 1, Items}, {ack, E, 1, none},
     {ack, E, 1, List}, {commit, E, 1}, {gap, E, 1}, {refused, E, Peer}, {not_lead, E},
     {dropped, E}, {collect, E, E, #{handover => true}},
     {joined, E, 1, Items}, {apart, E, E, Peer}, {nack, E, E, Peer}, {lead, E, 1, Items, Log},
     {lost, E, Peer}, {handover, E},
     {join, E, 1}, {bring, E, {1, 1}}, {shard, E, {1, 1}, [Row], more},
     {shard, E, {1, 1}, [Row], {last, Session}},
     {adopt, E, 1, Log#{sessions => Sessions, sync => 1}}, {chunk, E, 1, 1, [Row], true},
     {chunk_ok, E, 1, 1}, {synced, E, 1}].
