%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames_SUITE).

%% Version N of the protocol talks to version N - 1, from version 2 on (protocol rule 31). The
%% present library is checked against recordings of what nodes of protocol version 2 said to each
%% other, in both directions.
%%
%% `sderl_frames_SUITE_data/README.md` says where the recordings come from.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2]).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [shapes, understood, routes_understood, understood_in_any_role, lies_in_any_role,
     said_under_faults, said_on_nodes, conversation, old_nodes].

recordings(Config) ->
    [_ | _] = Files =
        filelib:wildcard(filename:join([proplists:get_value(data_dir, Config), "v2", "*.eterm"])),
    [sderl_frames:read(F) || F <- Files].

%% ---------------------------------------------------------------- the version's shapes

%% The shapes of sderl_frames_wire describe what was recorded: every recorded message fits them, and
%% messages of every kind were recorded.
shapes(Config) ->
    All = recordings(Config),
    Core = core(All),
    ?assertEqual([], [Wrong || {Mode, Msg} <- Core,
                               {error, _} = Wrong <- [sderl_frames_wire:core(Mode, Msg)]]),
    ?assertEqual([], [Wrong || R <- All, {_, To, Msg} <- sderl_frames:messages(R),
                               {error, _} = Wrong <- [sderl_frames_wire:frame(mode(R), To, Msg)]]),
    ?assertEqual(sderl_frames_wire:kinds(),
                 lists:usort([sderl_frames_wire:kind(M) || {_, M} <- Core])),
    ?assertEqual([], [M || {_, M} <- Core, not let_in(M)]),
    %% Messages that only majority groups send were recorded, too.
    Only = [M || {majority, M} <- Core, {error, _} <- [sderl_frames_wire:core(available, M)]],
    ?assertEqual([ack, adopt, answers, batch, hello, lead, promised, req],
                 lists:usort([sderl_frames_wire:kind(M) || M <- Only])),
    ?assertEqual([partial, votes, whole],
                 lists:usort([Standing || {promised, _, _, _, Standing} <- Only])),
    Items = lists:append([Is || {_, {batch, _, _, _, Is}} <- Core]),
    ?assertEqual([clashes, delete, mem, seg, settle, shard, view],
                 lists:usort([sderl_frames_wire:kind(I) || I <- Items])),
    Questions = lists:usort([{where(To), sderl_frames_wire:kind(Q)}
                             || R <- All,
                                {_, To, {'$gen_call', _, Q}} <- sderl_frames:messages(R)]),
    ?assertEqual([{sderl_ask, K}
                  || K <- [alive, names, reach, read, send, send_at, whereis, whereis_at]]
                 ++ [{sderl_node, K} || K <- [enter, invite, recover, withdraw]],
                 Questions -- [{sderl_ask, hello}]),
    Other = lists:usort([element(1, M)
                         || R <- All, {_, {sderl_node, _}, M} <- sderl_frames:messages(R)]),
    ?assertEqual(['$gen_call', sderl_conflict, sderl_free, sderl_hello, sderl_known, sderl_tell],
                 Other),
    Words = fun(Recordings) ->
        lists:usort([sderl_frames_wire:kind(Word)
                     || R <- Recordings, {_, _, Word} <- between_routers(R)])
    end,
    ?assertEqual(sderl_frames_wire:routes(all), Words(All)),
    ?assertEqual(sderl_frames_wire:routes(first), Words([R || #{name := routes} = R <- All])),
    ct:pal("~b messages between group processes of ~b kinds",
           [length(Core), length(sderl_frames_wire:kinds())]).

where({Name, _}) -> Name.

%% Whether a group's process lets the message reach the core. In recordings and in the simulator an
%% address is any term, so a pid takes its place.
let_in({hello, _, Life, Mem, Info}) -> sderl_wire:message(node(), {hello, self(), Life, Mem, Info});
let_in(Msg) -> sderl_wire:message(node(), Msg).

%% All messages between group processes, each with the mode of its group.
core(All) ->
    [{mode_of(Args), Msg} || R <- All, {_, Args, Steps} <- sderl_frames:streams(R),
                             Step <- Steps, {msg, _, Msg} <- element(3, Step)]
        ++ [{mode(R), Msg} || R <- All, Msg <- sderl_frames:loose(R)].

%% The mode of a recorded process's group. The first recordings are older than majority groups.
mode_of(Args) -> maps:get(mode, Args, available).

%% The mode of a recording: `majority` if it has majority groups.
mode(#{name := kinds_majority}) -> majority;
mode(R) ->
    case lists:any(fun({_, Args, _}) -> mode_of(Args) =:= majority end, sderl_frames:streams(R)) of
        true -> majority;
        false -> available
    end.

%% ---------------------------------------------------------------- the old ones' words

%% Runs the present core in the place of each recorded process, while the others behave as recorded.
%% It must understand all messages, send none that they would not understand, and end with the names
%% and members with which the recorded process ended.
understood(Config) ->
    All = recordings(Config),
    Ended = [?assertEqual([], replayed(R)) || R <- All],
    ct:pal("~b recordings, ~b processes",
           [length(Ended), length(lists:append([sderl_frames:streams(R) || R <- All]))]).

replayed(#{name := Scenario} = Recording) ->
    Final = sderl_frames:final(Recording),
    {Wrong, Last} = lists:foldl(fun({Node, #{group := G} = Args, _} = Stream, {Wrong, Last}) ->
        #{store := Store, unknown := Unknown, sent := Sent} = Result =
            sderl_frames_replay:stream(
                Stream, case Last of #{{Node, G} := #{store := S}} -> S; _ -> none end
            ),
        Misunderstood = [{Scenario, Node, G, unknown, Unknown} || Unknown > 0],
        Mode = mode_of(Args),
        Strange = [{Scenario, Node, G, Error}
                   || {_, Msg} <- Sent, {error, _} = Error <- [sderl_frames_wire:core(Mode, Msg)]],
        {Misunderstood ++ Strange ++ Wrong, Last#{{Node, G} => Result#{store := Store}}}
    end, {[], #{}}, sderl_frames:streams(Recording)),
    Wrong ++ [{Scenario, Node, G, {recorded, Members, Names}, {now, M, N, Role}}
              || Node := Groups <- Final, {G, Members, Names} <- Groups,
                 #{members := M, names := N, role := Role} <- [maps:get({Node, G}, Last)],
                 Otherwise <- [is_otherwise(Scenario, Node)],
                 (M =/= Members andalso Otherwise =/= asks)
                 orelse (N =/= Names andalso Otherwise =:= no)
                 orelse not lists:member(Role, [coord, follower])].

%% An island has kept a name for a process of a node that comes back. The recorded library dropped
%% that name; the present one accepts it again.
is_otherwise(islands, n3@h) -> keeps;
%% A member with a log of its own asked the recorded coordinator to be admitted before that one had
%% committed anything, and got a snapshot at once. The present member first asks where the
%% coordinator stands (rule 35), and the recording has no answer to that. So the member does not
%% count, and the majority of three that is needed to add a fourth member is missing.
is_otherwise(majority, n1@h) -> asks;
is_otherwise(_, _) -> no.

%% Runs the present router in the place of each recorded one. From the recorded messages it must
%% learn what each gateway advertised last, and all routers must know the same.
routes_understood(Config) ->
    [begin
         Words = between_routers(R),
         ?assertEqual([], [Word || {_, _, Word} <- Words, not is_routed(Word)]),
         Own = [{N, V} || {From, _, Word} <- Words, {N, V} <- told_of(Word), N =:= From],
         Last = #{N => lists:max([V || {M, V} <- Own, M =:= N]) || {N, _} <- Own},
         Nodes = maps:keys(sderl_frames:final(R)),
         Known = #{To => gateways_known(To, Words) || To <- Nodes},
         ct:pal("~b messages, ~p", [length(Words), Known]),
         Gateways = lists:usort(lists:append(maps:values(Known))),
         ?assertEqual([n2@h, n3@h], [N || {N, _, _, _} <- Gateways]),
         %% No router tells a gateway about itself.
         ?assertEqual(#{To => [Ad || {N, _, _, _} = Ad <- Gateways, N =/= To] || To <- Nodes},
                      Known),
         ?assertEqual([{N, maps:get(N, Last)} || {N, _, _, _} <- Gateways],
                      [{N, V} || {N, V, _, _} <- Gateways])
     end || #{name := Name} = R <- recordings(Config), lists:member(Name, [routes, routes_many])].

told_of({news, Ads}) -> [{N, V} || {N, V, _, _} <- Ads];
told_of({change, {N, _, V, _, _}}) -> [{N, V}];
told_of({changes, Changes}) -> [{N, V} || {N, _, V, _, _} <- Changes];
told_of(_) -> [].

gateways_known(To, Words) ->
    State = lists:foldl(fun(Event, S0) ->
        {_, S} = sderl_route_state:step(0, Event, S0),
        S
    end, sderl_route_state:new(To, 0, []), [{message, From, Word}
                                           || {From, T, Word} <- Words, T =:= To, is_tuple(Word)]),
    lists:sort(sderl_route_state:gateways(State)).

between_routers(R) ->
    [{From, To, Word}
     || {From, {sderl_router, To}, {sderl_route, 1, _, Word}} <- sderl_frames:messages(R)].

%% Whether a router accepts the message.
is_routed({news, Ads}) -> lists:all(fun sderl_route_state:advertisement/1, Ads);
is_routed({change, Change}) -> sderl_route_state:change(Change);
is_routed({changes, Changes}) -> lists:all(fun sderl_route_state:change/1, Changes);
is_routed({digest, _, Versions}) ->
    lists:all(fun({_, Version}) -> sderl_route_state:version(Version) end, Versions);
is_routed(Word) -> lists:member(sderl_frames_wire:kind(Word), sderl_frames_wire:routes(all)).

%% Gives every message to a member in every role, also messages that are rare. The message may be
%% useless there, but it must be understood.
understood_in_any_role(Config) ->
    All = recordings(Config),
    Roles = roles(All),
    ?assertEqual([{Mode, Role} || Mode <- [available, majority],
                                  Role <- [candidate, coord, follower, joining, orphan]],
                 lists:sort(maps:keys(Roles))),
    Messages = messages(All),
    Before = #{Role => unknown(S) || Role := {_, S} <- Roles},
    ?assertEqual([], [{Role, Msg, What}
                      || Role := {Now, S} <- Roles, Msg <- Messages,
                         From <- lists:sublist(sderl_core:peers(S), 2),
                         What <- given(Msg, From, Now, S), What =/= map_get(Role, Before)]),
    ct:pal("~b messages to members in ~b roles", [length(Messages), map_size(Roles)]).

%% Changes parts of messages, so that they are well typed but were never sent. They must end no
%% member, whatever its role.
lies_in_any_role(Config) ->
    sderl_ct:seed(),
    All = recordings(Config),
    Roles = maps:to_list(roles(All)),
    Messages = [Msg || Msg <- messages(All), element(1, Msg) =/= hello],
    Tries = case long() of true -> 200_000; false -> 10_000 end,
    Pids = [Pid || {Pid, _} <- [spawn_monitor(fun() -> ok end) || _ <- [1, 2]]],
    World = #{pids => Pids, local => Pids},
    Told = lists:sum([begin
        {_, {Now, S}} = sderl_hostile:pick(Roles),
        From = sderl_hostile:pick(sderl_core:peers(S)),
        Said = [in_epoch_of(S, sderl_hostile:mutate(sderl_hostile:pick(Messages), World))
                || _ <- lists:seq(1, 12)],
        Lies = lists:sublist([{msg, From, M} || M <- Said, let_in(M)], 3),
        ended = lied(Lies, Now, S),
        length(Lies)
    end || _ <- lists:seq(1, Tries)]),
    ct:pal("~b messages that the door lets in", [Told]).

%% Gives half of the messages the epoch of the member, which ignores most messages of other epochs.
in_epoch_of(S, Msg) when tuple_size(Msg) > 1 ->
    case {rand:uniform(2), element(2, Msg)} of
        {1, {Counter, Node}} when is_integer(Counter), is_atom(Node) ->
            setelement(2, Msg, maps:get(epoch, sderl_core:inspect(S)));
        _ -> Msg
    end;
in_epoch_of(_, Msg) -> Msg.

%% Gives the messages to the member one after the other, 50 ms apart, and then ticks.
lied(Lies, Now, S0) ->
    try
        lists:foldl(fun(Event, {At, S}) ->
            {_, S1} = sderl_core:step(At, [Event], S),
            {_, S2} = sderl_core:propose(At, sderl_sim_store, sderl_sim_store:index(
                build, sderl_sim_store:new([])
            ), S1),
            {At + 50, S2}
        end, {Now + 1, S0}, Lies ++ [tick, wake, tick]),
        ended
    catch
        Class:Why:Stack -> {Class, Why, Stack, Lies}
    end.

%% The messages of groups of both modes: nodes may have been told different modes of the same group.
messages(All) -> lists:usort([Msg || {_, Msg} <- core(All)]).

given(Msg, From, Now, S0) ->
    try
        {_, S} = sderl_core:step(Now + 1, [{msg, From, Msg}], S0),
        [unknown(S)]
    catch
        Class:Why:Stack -> [{Class, Why, Stack}]
    end.

unknown(S) -> maps:get(unknown_messages, sderl_core:info(S)).

%% For each mode and role, the state of a member of the present version that has at least two peers,
%% and its time.
roles(All) ->
    lists:foldl(fun({_, Args, _} = Stream, Roles) ->
        #{roles := Had} =
            try sderl_frames_replay:stream(Stream) catch error:_ -> #{roles => #{}} end,
        maps:merge(Roles, #{{mode_of(Args), Role} => At
                            || Role := {_, S} = At <- Had, length(sderl_core:peers(S)) > 1})
    end, #{}, [S || R <- All, {_, Args, _} = S <- sderl_frames:streams(R), is_map_key(mem, Args)]).

%% ---------------------------------------------------------------- what is said to old ones

%% What the present core sends fits the shapes, under the simulator's random faults.
said_under_faults(_) ->
    sderl_ct:seed(),
    First = rand:uniform(1 bsl 30),
    Rounds = case long() of true -> 30; false -> 2 end,
    [begin
         {Count, Kinds} = lists:foldl(fun(I, {Count, Kinds}) ->
             Schedules = [#{mode => Mode, seed => First + 10 * I + J} || J <- lists:seq(1, 10)],
             Run = fun() -> [sderl_sim:run(Schedule) || Schedule <- Schedules] end,
             Sent = sderl_frames_record:sent(Run),
             Said = lists:usort(Sent),
             Wrong = [W || M <- Said, {error, _} = W <- [sderl_frames_wire:core(Mode, M)]],
             ?assertEqual([], lists:sublist(Wrong, 5)),
             ?assertEqual([], lists:sublist([M || M <- Said, not let_in(M)], 5)),
             Now = lists:usort([sderl_frames_wire:kind(M) || M <- Said]),
             {Count + length(Sent), lists:umerge(Kinds, Now)}
         end, {0, []}, lists:seq(1, Rounds)),
         ct:pal("~s: ~b messages of ~b kinds", [Mode, Count, length(Kinds)]),
         ?assert(length(Kinds) > Least)
     end || {Mode, Least} <- [{available, 25}, {majority, 18}]].

%% What the nodes' other processes send fits the shapes, too: runs the recorded scenarios with the
%% present library.
said_on_nodes(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    Ebin = filename:dirname(code:which(sderl_core)),
    Which = case long() of
        true -> all;
        false -> [members, stranger, islands, conflict, routes, majority_lost]
    end,
    ok = sderl_frames_record:run(Ebin, Dir, Which),
    Said = [{R, To, Msg}
            || F <- filelib:wildcard(filename:join(Dir, "*.eterm")), R <- [sderl_frames:read(F)],
               {_, To, Msg} <- sderl_frames:messages(R)],
    ?assertEqual([], [{Name, Wrong}
                      || {#{name := Name} = R, To, Msg} <- Said,
                         {error, _} = Wrong <- [sderl_frames_wire:frame(mode(R), To, Msg)]]),
    ct:pal("~b messages", [length(Said)]).

%% ---------------------------------------------------------------- on real nodes

%% A recorded node, played by sderl_frames_pretender, invites a node of the present version into its
%% group, brings it up to date, orders what it registers and removes it.
conversation(Config) ->
    [Join] = [R || #{name := join} = R <- recordings(Config)],
    Me = n1@h,
    You = n2@h,
    %% What a node tells of its other groups and its island depends on when it is asked.
    Script = [E
              || {From, _, Msg} = E <- sderl_frames:messages(Join),
                 From =:= Me orelse not by_the_way(Msg)],
    Plan = #{families => [#{name => old, count => 1},
                          #{name => new, count => 1, apps => [sderl],
                            env => [{sderl, tick_ms, 800}]}]},
    {ok, F} = sderl_fleet:start(Plan),
    try
        [A, B] = sderl_fleet:nodes(F),
        true = on(F, A, fun() -> net_kernel:connect_node(B) end),
        P = sderl_ct:process(F, B),
        Writer = on(F, B, fun() ->
            spawn(fun() ->
                receive
                    {register, From} -> From ! {registered, s_group:register_name(g, new, P)}
                end
            end)
        end),
        {Answer, Rest} = on(F, A, fun() ->
            Self = self(),
            Cue = {fun({sderl, _, _, _, {req, _, _}}) -> true; (_) -> false end,
                   fun() -> Writer ! {register, Self} end},
            {_, Said} = sderl_frames_pretender:play(Script, {Me, You}, B, [Cue]),
            {[Yes || {registered, Yes} <- Said],
             [M || M <- Said, not is_tuple(M) orelse element(1, M) =/= registered]}
        end),
        ?assertEqual([yes], Answer),
        %% The other messages of the present node fit the shapes, too.
        Fits = fun(M) ->
            lists:any(fun(To) -> ok =:= sderl_frames_wire:frame(available, To, M) end,
                      [P, {sderl_node, A}])
        end,
        ?assertEqual([], [M || M <- Rest, not Fits(M)]),
        await(left, fun() -> [] =:= on(F, B, fun s_group:own_s_groups/0) end),
        ?assertEqual(0,
                     on(F, B, fun() -> proplists:get_value(unknown_messages, s_group:info()) end))
    after
        sderl_fleet:stop(F)
    end.

by_the_way(Msg) -> lists:member(element(1, Msg), [sderl_known, sderl_free]).

%% Nodes that run the library as it was beside nodes that run the present one, in one group: writers
%% on all of them, coordinators of both kinds that die and come back, and at last nodes that are
%% upgraded one after the other.
old_nodes(Config) ->
    case long() andalso old_library(Config) of
        false -> {skip, "only with SDERL_LONG=1"};
        {error, Why} -> {skip, Why};
        {ok, Ebin} -> old_nodes_with(Ebin)
    end.

%% Builds the library of the commit that the recordings' README names.
old_library(Config) ->
    [Commit] = [C || Line <- string:lexemes(element(2, file:read_file(readme(Config))), "\n"),
                     [<<"Commit:">>, C] <- [string:lexemes(Line, " ")]],
    Dir = filename:join(proplists:get_value(priv_dir, Config), "old"),
    Ebin = filename:join(Dir, "ebin"),
    ok = filelib:ensure_path(Ebin),
    Script = "cd \"$(git rev-parse --show-toplevel)\" && git archive \"$1\" apps/sderl/src | tar "
             "-x -C \"$2\" && echo done",
    Port = open_port({spawn_executable, os:find_executable("sh")},
                     [{args, ["-c", Script, "sh", Commit, Dir]},
                      {cd, filename:dirname(readme(Config))},
                      stderr_to_stdout,
                      exit_status,
                      binary]),
    case said(Port, <<>>) of
        {0, _} ->
            Src = filename:join([Dir, "apps", "sderl", "src"]),
            [{ok, _} = compile:file(File, [{outdir, Ebin}, {i, Src}, debug_info])
             || File <- filelib:wildcard(filename:join(Src, "**/*.erl"))],
            {ok, _} = file:copy(filename:join(Src, "sderl.app.src"),
                                filename:join(Ebin, "sderl.app")),
            {ok, Ebin};
        {_, Text} ->
            {error, lists:flatten(io_lib:format("no history to build commit ~ts from: ~ts",
                                                [Commit, Text]))}
    end.

readme(Config) -> filename:join(proplists:get_value(data_dir, Config), "README.md").

said(Port, Text) ->
    receive
        {Port, {data, More}} -> said(Port, <<Text/binary, More/binary>>);
        {Port, {exit_status, Status}} -> {Status, Text}
    end.

old_nodes_with(Ebin) ->
    sderl_ct:seed(),
    Present = filename:dirname(code:which(sderl_core)),
    Tests = [filename:dirname(code:which(M)) || M <- [?MODULE, sderl_ct, sderl_fleet]],
    Family = #{name => n, count => 4, apps => [sderl], paths => [Ebin | Tests],
               env => [{sderl, tick_ms, 500}, {sderl, set_aside_ms, 15_000},
                       {sderl, write_timeout_ms, 60_000}]},
    {ok, F} = sderl_fleet:start(#{families => [Family]}),
    try
        [A, B, C, D] = Nodes = sderl_fleet:nodes(F),
        New = fun(N, Index) ->
            ok = sderl_fleet:stop_node(F, N),
            {ok, [N]} = sderl_fleet:start_nodes(
                F, [#{name => n, index => Index, paths => [Present | Tests]}]
            )
        end,
        %% Two are of the present version.
        New(B, 2),
        New(D, 4),
        ?assertEqual([Ebin, Present, Ebin, Present],
                     [on(F, N, fun() -> filename:dirname(code:which(sderl_core)) end)
                      || N <- Nodes]),
        %% The old library takes no options.
        {ok, g, _} = on(F, A, fun() -> s_group:new_s_group(g, Nodes) end),
        [] = sderl_ct:settled(F, g, Nodes),
        Clients = maps:from_list([{N, clients(F, N)} || N <- Nodes]),
        %% Every node in turn coordinates and dies.
        {Led, Clients1} = lists:foldl(fun(_, {Led, Cs}) ->
            Lead = sderl_ct:lead(F, hd(Nodes), g),
            busy(F, Cs),
            ok = sderl_fleet:kill(F, Lead),
            Left = maps:remove(Lead, Cs),
            busy(F, Left),
            Held = pause(F, Left),
            sderl_ct:hold_all(F, g, {maps:keys(Left), Nodes}, Held),
            {ok, Lead} = sderl_fleet:restart(F, Lead),
            sderl_ct:hold_all(F, g, {Nodes, Nodes}, Held),
            go_on(F, Left),
            {[Lead | Led], Left#{Lead => clients(F, Lead)}}
        end, {[], Clients}, lists:seq(1, 4)),
        ct:pal("coordinators that died: ~p", [lists:reverse(Led)]),
        %% The others are upgraded.
        Clients2 = lists:foldl(fun({N, Index}, Cs) ->
            Left = maps:remove(N, Cs),
            New(N, Index),
            busy(F, Left),
            Held = pause(F, Left),
            sderl_ct:hold_all(F, g, {Nodes, Nodes}, Held),
            go_on(F, Left),
            Left#{N => clients(F, N)}
        end, Clients1, [{A, 1}, {C, 3}]),
        busy(F, Clients2),
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, pause(F, Clients2)),
        ?assertEqual([0], lists:usort([on(
            F, N, fun() -> proplists:get_value(unknown_messages, s_group:info()) end
        ) || N <- Nodes]))
    after
        sderl_fleet:stop(F)
    end.

clients(F, N) ->
    [sderl_ct_client:start(F, N, g, {N, I, rand:uniform(1 bsl 30)}, 20) || I <- [1, 2]].

each(Clients) -> lists:append(maps:values(Clients)).

%% Waits until each client has more than 20 new answers.
busy(F, Clients) ->
    Before = [{C, sderl_ct_client:count(F, C)} || C <- each(Clients)],
    await(busy,
          fun() -> lists:all(fun({C, N}) -> sderl_ct_client:count(F, C) > N + 20 end, Before) end).

pause(F, Clients) ->
    lists:foldl(fun maps:merge/2, #{}, [sderl_ct_client:pause(F, C) || C <- each(Clients)]).

go_on(F, Clients) -> [sderl_ct_client:go_on(F, C) || C <- each(Clients)].

long() -> os:getenv("SDERL_LONG") =:= "1".
