%% SPDX-License-Identifier: Apache-2.0
-module(sderl_majority_SUITE).

%% Groups that decide by majority, on real nodes: how they begin, what a side without a majority
%% does and is told, when its names are free for the others, and how it comes back.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, cut/3, heal/3]).

-define(TICK, 200).
-define(ASIDE, 3000).
%% How long the majority waits before it frees the names of a member that it does not reach.
-define(LEASE, (3 * ?ASIDE + 10 * ?TICK)).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [made_at_run_time, made_by_two_at_once, a_minority, freed_after_the_lease,
     supervised_in_a_minority, restarted_member,
     membership, lost_for_good, first_start, first_start_with_files,
     differing_modes, goodbye].

env() -> [{tick_ms, ?TICK}, {set_aside_ms, ?ASIDE}, {write_timeout_ms, 20_000}].

init_per_suite(Config) ->
    case examples() of
        none -> {skip, "the documents are not in this tree"};
        Ebin ->
            true = code:add_pathz(Ebin),
            sderl_ct:hold(4, env()) ++ Config
    end.

end_per_suite(Config) -> sderl_ct:release(Config).

%% The guide's server.
examples() ->
    %% The sources in a build folder are links into the tree.
    File = filename:join([code:lib_dir(sderl), "src", "..", "..", "..",
                          "docs/examples/majority/src/waiting_server.erl"]),
    case filelib:is_regular(File) of
        false -> none;
        true ->
            Ebin = filename:absname("majority_ebin"),
            ok = filelib:ensure_path(Ebin),
            {ok, waiting_server} = compile:file(File, [{outdir, Ebin}, report]),
            Ebin
    end.

fleet(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

%% ---------------------------------------------------------------- what the cases share

call(Fleet, Node, F, Args) -> sderl_fleet:call(Fleet, Node, s_group, F, Args, 60_000).

%% What a member says of a group; `none` of no own group.
info(Fleet, Node, Group) ->
    on(Fleet, Node, fun() ->
        case [I || #{group := G} = I <- proplists:get_value(groups, s_group:info()), G =:= Group] of
            [Info] -> Info;
            [] -> none
        end
    end).

has_majority(Fleet, Node, Group, Expected) ->
    await({majority, Node, Expected}, fun() ->
        case info(Fleet, Node, Group) of
            #{consistency := majority, majority := Expected} -> true;
            Other -> Other
        end
    end).

%% A group of these nodes, all of them counted.
group(Fleet, Group, [First | _] = Nodes) ->
    Joined = lists:sort(Nodes),
    ?assertEqual({ok, Group, Joined},
                 call(Fleet, First, new_s_group, [Group, Nodes, #{consistency => majority}])),
    together(Fleet, Group, Nodes).

together(Fleet, Group, Nodes) ->
    Sorted = lists:sort(Nodes),
    await({together, Group, Sorted}, fun() ->
        Infos = [info(Fleet, N, Group) || N <- Sorted],
        lists:all(fun
            (#{live := Live, majority := true, syncing := false}) -> Live =:= Sorted;
            (_) -> false
        end, Infos) orelse Infos
    end).

register_at(Fleet, Node, Group, Name, Pid) ->
    call(Fleet, Node, register_name, [Group, Name, Pid]).

holder(Fleet, Node, Group, Name, Options) ->
    Pid = sderl_ct:process(Fleet, Node),
    ?assertEqual(yes, call(Fleet, Node, register_name, [Group, Name, Pid, Options])),
    Pid.

apart(Fleet, Left, Right) -> [cut(Fleet, A, B) || A <- Left, B <- Right].

back(Fleet, Left, Right) -> [heal(Fleet, A, B) || A <- Left, B <- Right].

heard_soon(Fleet, Pid, Message) ->
    await({heard, Message}, fun() ->
        Heard = sderl_ct:heard(Fleet, Pid),
        lists:member(Message, Heard) orelse Heard
    end).

pid_on(Fleet, Node, Group, Name, Expected) ->
    await({Name, Node, Expected}, fun() ->
        case call(Fleet, Node, whereis_name, [Group, Name]) of
            Expected -> true;
            Other -> Other
        end
    end).

%% ---------------------------------------------------------------- a group that is whole

%% It is as any other group, says what it is, and is read through its log, from outside too.
made_at_run_time(Config) ->
    {F, [A, B, C, D]} = fleet(Config),
    {error, no_information_about_remote_group} = call(F, D, read, [g, a]),
    group(F, g, [A, B, C]),
    Pids = [P1, P2 | _] = [holder(F, N, g, N, #{}) || N <- [A, B, C]],
    [?assertEqual(P, call(F, M, read, [g, N]))
     || {N, P} <- lists:zip([A, B, C], Pids), M <- [A, B, C]],
    ?assertEqual(undefined, call(F, B, read, [g, nobody])),
    ?assertEqual({no, name_or_pid_already_registered}, register_at(F, B, g, A, P2)),
    ?assertEqual(ok, call(F, C, unregister_name, [g, A])),
    ?assertEqual(undefined, call(F, B, read, [g, A])),
    ?assertEqual(yes, call(F, B, re_register_name, [g, B, P1])),
    ?assertEqual(P1, call(F, C, read, [g, B])),
    ok = sderl_ct:kill(F, P1, kill),
    await(free, fun() -> call(F, C, read, [g, B]) =:= undefined end),
    %% A non-member that knows members has one of them read.
    sderl_ct:group(F, h, [A, D]),
    await(known, fun() -> call(F, D, read, [g, C]) =:= lists:last(Pids) end),
    %% A group of any other kind can be read so, too.
    Here = holder(F, D, h, x, #{}),
    ?assertEqual(Here, call(F, A, read, [h, x])),
    #{consistency := available} = info(F, A, h),
    ?assertEqual({error, s_group_name_is_in_use},
                 call(F, A, new_s_group, [g, [A], #{consistency => majority}])),
    [ok = call(F, A, delete_s_group, [G]) || G <- [g, h]],
    ok.

%% One of them makes it, of all nodes, and the other is told so.
made_by_two_at_once(Config) ->
    {F, [A, B, C, D] = Nodes} = fleet(Config),
    Self = self(),
    [begin
         Made = [{at_once, I}, Nodes, #{consistency => majority}],
         Makers = [spawn_link(fun() -> Self ! {self(), call(F, N, new_s_group, Made)} end)
                   || N <- [A, C]],
         Answers = [receive {Maker, Answer} -> Answer end || Maker <- Makers],
         ?assertEqual([{error, s_group_name_is_in_use}, {ok, {at_once, I}, Nodes}],
                      lists:sort(Answers)),
         together(F, {at_once, I}, Nodes),
         ok = call(F, B, delete_s_group, [{at_once, I}]),
         await(deleted, fun() -> call(F, D, own_nodes, [{at_once, I}]) =:= [] end)
     end || I <- lists:seq(1, 4)],
    ok.

%% ---------------------------------------------------------------- a side without a majority

a_minority(Config) ->
    {F, [A, B, C, _]} = fleet(Config),
    group(F, g, [A, B, C]),
    Told = holder(F, C, g, told, #{majority_lost => notify}),
    Ended = holder(F, C, g, ended, #{majority_lost => exit, meta => 1}),
    Calm = holder(F, C, g, calm, #{}),
    Away = holder(F, A, g, away, #{majority_lost => notify}),
    Listener = sderl_ct:listener(F, C, g, [group]),
    New = sderl_ct:process(F, C),
    Ours = sderl_ct:process(F, A),
    apart(F, [A, B], [C]),
    has_majority(F, C, g, false),
    %% At once, and nothing was sent.
    No = {no, no_majority},
    Error = {error, no_majority},
    ?assertEqual(No, register_at(F, C, g, new, New)),
    ?assertEqual(No, call(F, C, re_register_name, [g, calm, New])),
    ?assertEqual(No, call(F, C, unregister_name, [g, calm])),
    [?assertEqual({Call, Error}, {Call, call(F, C, Call, Args)})
     || {Call, Args} <- [{read, [g, calm]}, {remove_nodes, [g, [A]]}, {leave, [g]},
                         {delete_s_group, [g]}]],
    %% Reads of the own table go on, behind as it may be.
    ?assertEqual(Calm, call(F, C, whereis_name, [g, calm])),
    %% Who asked for it is told, or ended.
    heard_soon(F, Told, {s_group_majority, lost, g, told}),
    await(ended, fun() -> not sderl_ct:alive(F, Ended) end),
    ?assertEqual([], sderl_ct:heard(F, Calm)),
    await(lost, fun() ->
        Heard = sderl_ct:heard(F, Listener),
        lists:any(fun({s_group_event, _, g, {group, majority_lost, #{members := _}}}) -> true;
                     (_) -> false
                  end, Heard) orelse Heard
    end),
    await(problem, fun() ->
        Problems = on(F, C, fun() -> proplists:get_value(problems, s_group:info()) end),
        lists:any(fun(P) -> string:find(P, "no majority of the members") =/= nomatch end, Problems)
            orelse Problems
    end),
    %% The others go on, and have lost nothing.
    ?assertEqual(yes, register_at(F, B, g, ours, Ours)),
    ?assertEqual(Ours, call(F, A, read, [g, ours])),
    ?assertEqual(Away, call(F, B, read, [g, away])),
    ?assertEqual([], sderl_ct:heard(F, Away)),
    back(F, [A, B], [C]),
    together(F, g, [A, B, C]),
    await(regained, fun() ->
        Heard = sderl_ct:heard(F, Listener),
        lists:any(fun
            ({s_group_event, _, g, {group, majority_regained, _}}) -> true;
            (_) -> false
        end, Heard)
            orelse Heard
    end),
    ?assertEqual(Ours, call(F, C, whereis_name, [g, ours])),
    %% Who still has its name is told of that, too; on a busy machine the lease may have been over.
    call(F, C, read, [g, told]) =:= undefined
        orelse heard_soon(F, Told, {s_group_majority, regained, g, told}),
    ?assertEqual(undefined, call(F, C, read, [g, new])),
    ?assertEqual(yes, register_at(F, C, g, new, New)),
    ok = call(F, A, delete_s_group, [g]).

%% The others can give the names of a member that is cut off to other processes after the lease, and
%% not before; when it comes back its processes do not have them any more.
freed_after_the_lease(Config) ->
    {F, [A, B, C, _]} = fleet(Config),
    group(F, g, [A, B, C]),
    Old = holder(F, C, g, single, #{majority_lost => notify}),
    New = sderl_ct:process(F, A),
    #{token := Before} = call(F, A, lookup, [g, single]),
    Start = erlang:monotonic_time(millisecond),
    apart(F, [A, B], [C]),
    await(free, fun() -> register_at(F, A, g, single, New) =:= yes end),
    Took = erlang:monotonic_time(millisecond) - Start,
    ct:pal("the name was free after ~b ms, the lease is ~b ms", [Took, ?LEASE]),
    ?assert(Took >= ?LEASE),
    ?assertEqual(New, call(F, B, read, [g, single])),
    #{token := After} = call(F, B, lookup, [g, single]),
    ?assert(After > Before),
    %% The losing side knew, and still shows what it had.
    heard_soon(F, Old, {s_group_majority, lost, g, single}),
    ?assertEqual(Old, call(F, C, whereis_name, [g, single])),
    back(F, [A, B], [C]),
    together(F, g, [A, B, C]),
    ?assertEqual(New, call(F, C, read, [g, single])),
    ?assertEqual(New, call(F, C, whereis_name, [g, single])),
    %% It lives, and was told nothing more than that.
    ?assert(sderl_ct:alive(F, Old)),
    ?assertEqual([{s_group_majority, lost, g, single}], sderl_ct:heard(F, Old)),
    ok = call(F, A, delete_s_group, [g]).

%% A `via` child of a supervisor ends with a reason that names what is missing. One that registers
%% itself, as in the guide, waits, and its supervisor sees nothing of it.
supervised_in_a_minority(Config) ->
    {F, [A, B, C, _]} = fleet(Config),
    group(F, g, [A, B, C]),
    [Waits, Stands] = [waiting(F, N) || N <- [C, A]],
    await(serves, fun() -> serves(F, Waits) andalso serves(F, Stands) =:= false end),
    Child = on(F, C, fun() -> via_child(self()) end),
    apart(F, [A, B], [C]),
    has_majority(F, C, g, false),
    ?assertEqual({error, {no_majority, {s_group, register_name, [g, other]}}},
                 on(F, C, fun() ->
                     gen_server:start({via, s_group, {g, other}}, sderl_ct_server, [], [])
                 end)),
    %% Its child dies, and cannot be started again: the supervisor gives up and says why.
    Why = on(F, C, fun() ->
        #{supervisor := Sup} = Child,
        Monitor = monitor(process, Sup),
        exit(s_group:whereis_name(g, child), kill),
        receive {'DOWN', Monitor, process, Sup, Reason} -> Reason after 60_000 -> still_alive end
    end),
    ?assertEqual(shutdown, Why),
    sderl_ct_logged(F, C, "no_majority"),
    await(stopped_serving, fun() -> serves(F, Waits) =:= false end),
    %% The other takes over when the name is free.
    await(taken_over, fun() -> serves(F, Stands) end),
    back(F, [A, B], [C]),
    together(F, g, [A, B, C]),
    ?assertEqual([false, true], [serves(F, S) || S <- [Waits, Stands]]),
    %% Each is still the one that its supervisor started.
    [?assert(sderl_ct:alive(F, maps:get(server, S))) || S <- [Waits, Stands]],
    [sderl_ct:kill(F, maps:get(supervisor, S), kill) || S <- [Waits, Stands]],
    ok = call(F, A, delete_s_group, [g]).

waiting(F, Node) ->
    on(F, Node, fun() ->
        supervised(#{id => waiting, start => {waiting_server, start_link, [g, single]}})
    end).

via_child(_) ->
    supervised(#{id => child, start => {gen_server, start_link,
                                        [{via, s_group, {g, child}}, sderl_ct_server, [], []]}}).

%% A supervisor that is not linked to the call that makes it.
supervised(Child) ->
    {ok, Sup} = supervisor:start_link(?MODULE, Child),
    true = unlink(Sup),
    [{_, Server, _, _}] = supervisor:which_children(Sup),
    #{supervisor => Sup, server => Server}.

%% The supervisor's.
init(Child) -> {ok, {#{strategy => one_for_one, intensity => 2, period => 5}, [Child]}}.

serves(F, #{server := Server}) ->
    on(F, node(Server), fun() -> waiting_server:is_serving(Server) end).

sderl_ct_logged(F, Node, Text) -> sderl_ct_nodes:logged(F, Node, Text).

%% ---------------------------------------------------------------- members come and go

%% A member that was killed comes back with nothing, and is taken in by the others. While it is away
%% they are a majority; its own names are free at once when it is there again.
restarted_member(Config) ->
    {F, [A, B, C, _]} = fleet(Config),
    group(F, g, [A, B, C]),
    Kept = holder(F, A, g, kept, #{}),
    _ = holder(F, C, g, lost, #{}),
    Again = sderl_ct:process(F, A),
    ok = sderl_fleet:kill(F, C),
    ?assertEqual(Kept, call(F, B, read, [g, kept])),
    {ok, C} = sderl_fleet:restart(F, C),
    together(F, g, [A, B, C]),
    #{consistency := majority} = info(F, C, g),
    pid_on(F, C, g, kept, Kept),
    ?assertEqual(yes, register_at(F, B, g, lost, Again)),
    ?assertEqual(Again, call(F, C, read, [g, lost])),
    ok = call(F, A, delete_s_group, [g]).

%% A change of the members needs a majority of them as they are and as they will be.
membership(Config) ->
    {F, [A, B, C, D]} = fleet(Config),
    group(F, g, [A, B]),
    ?assertEqual({ok, g, [C]}, call(F, A, add_nodes, [g, [C]])),
    together(F, g, [A, B, C]),
    ?assertEqual({ok, g, [A, B, C, D]}, call(F, D, enter, [g, [B]])),
    together(F, g, [A, B, C, D]),
    %% Three of four are a majority, two are none.
    apart(F, [A, B, C], [D]),
    ?assertEqual(ok, call(F, A, remove_nodes, [g, [D]])),
    back(F, [A, B, C], [D]),
    await(left, fun() -> call(F, D, own_nodes, [g]) =:= [] end),
    apart(F, [A], [B, C]),
    has_majority(F, A, g, false),
    ?assertEqual({error, no_majority}, call(F, A, remove_nodes, [g, [B, C]])),
    ?assertEqual({error, no_majority}, call(F, A, add_nodes, [g, [D]])),
    %% The others have a coordinator again, where it was on the losing side.
    P = holder(F, B, g, x, #{}),
    ?assertEqual(P, call(F, C, read, [g, x])),
    back(F, [A], [B, C]),
    together(F, g, [A, B, C]),
    ?assertEqual(P, call(F, A, read, [g, x])),
    ok = call(F, A, delete_s_group, [g]),
    %% Of two, both are needed.
    group(F, two, [A, B]),
    apart(F, [A], [B]),
    [has_majority(F, N, two, false) || N <- [A, B]],
    back(F, [A], [B]),
    together(F, two, [A, B]),
    ok = call(F, A, delete_s_group, [two]),
    %% A member that is added waits before it is taken in, and has lost nothing meanwhile.
    group(F, grows, [A, B]),
    ?assertEqual({ok, grows, [C]}, call(F, A, add_nodes, [grows, [C]])),
    together(F, grows, [A, B, C]),
    ?assertEqual(nomatch, string:find(sderl_ct_nodes:log(F, C), "s_group grows has no majority")),
    ok = call(F, A, delete_s_group, [grows]).

%% Two of three members are lost for good: the operator says so, and the group goes on with the
%% third.
lost_for_good(Config) ->
    {F, [A, B, C, D]} = fleet(Config),
    group(F, g, [A, B, C]),
    Kept = holder(F, A, g, kept, #{}),
    New = sderl_ct:process(F, A),
    Recover = fun(N, Nodes) -> call(F, N, recover_majority, [g, Nodes]) end,
    ?assertEqual({error, {refused, [{A, has_majority}]}}, Recover(A, [A])),
    ?assertEqual({error, {not_members, [D]}}, Recover(A, [A, D])),
    ?assertEqual({error, not_a_survivor}, Recover(A, [B])),
    ?assertEqual({error, node_does_not_belong_to_the_s_group}, Recover(D, [D])),
    [ok = sderl_fleet:kill(F, N) || N <- [B, C]],
    has_majority(F, A, g, false),
    ?assertEqual({error, {refused, [{B, unreachable}]}}, Recover(A, [A, B])),
    ?assertEqual({no, no_majority}, register_at(F, A, g, new, New)),
    ?assertEqual(ok, Recover(A, [A])),
    has_majority(F, A, g, true),
    ?assertEqual([A], call(F, A, own_nodes, [g])),
    ?assertEqual(yes, register_at(F, A, g, new, New)),
    ?assertEqual(Kept, call(F, A, read, [g, kept])),
    sderl_ct_logged(F, A, "had lost its majority for good"),
    %% Who comes back after all is told that it is no member.
    [{ok, N} = sderl_fleet:restart(F, N) || N <- [B, C]],
    ?assertEqual([[], []], [call(F, N, own_nodes, [g]) || N <- [B, C]]),
    ok = call(F, A, delete_s_group, [g]).

%% ---------------------------------------------------------------- starts

n(Family, I) -> list_to_atom(lists:concat([Family, I, "@127.0.0.1"])).

plan(Families) -> #{tag => "", families => [family(F) || F <- Families]}.

family({Name, Count, Env}) ->
    #{name => Name, count => Count, apps => [sderl],
      env => [{sderl, K, V} || {K, V} <- env() ++ Env]}.

of_configuration(Nodes) ->
    [{s_groups, [{g, normal, Nodes}]}, {consistency, #{g => majority}}].

%% Nodes that keep nothing cannot know whether they ever voted: all members make the first start,
%% and the start after a failure of all.
first_start(_) ->
    Env = of_configuration([n(f, 1), n(f, 2)]),
    sderl_ct_nodes:with(plan([{f, 2, Env}]), fun(F, [A, B] = Nodes) ->
        together(F, g, Nodes),
        P = holder(F, A, g, x, #{}),
        ?assertEqual(P, call(F, B, read, [g, x])),
        [ok = sderl_fleet:kill(F, N) || N <- Nodes],
        {ok, A} = sderl_fleet:restart(F, A),
        has_majority(F, A, g, false),
        ?assertEqual({no, no_majority}, register_at(F, A, g, x, sderl_ct:process(F, A))),
        {ok, B} = sderl_fleet:restart(F, B),
        together(F, g, Nodes),
        ?assertEqual(undefined, call(F, B, read, [g, x]))
    end).

%% With files a majority of them is enough for the first start. One that is restarted while another
%% is away knows nothing any more, so that the rest is no majority until the operator says so.
first_start_with_files(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "majority"),
    Nodes = [n(k, 1), n(k, 2), 'never@127.0.0.1'],
    Env = [{state_dir, Dir} | of_configuration(Nodes)],
    sderl_ct_nodes:with(plan([{k, 2, Env}]), fun(F, [A, B] = Up) ->
        together(F, g, Up),
        P = holder(F, A, g, x, #{}),
        %% One that is made at run time is kept with what it is.
        group(F, h, Up),
        [?assertMatch([{g, majority}, {h, majority}],
                      lists:sort([{G, C}
                                  || #{group := G, consistency := C} <-
                                         element(1, sderl_kept:read(Dir, N))]))
         || N <- Up],
        ok = sderl_fleet:kill(F, B),
        {ok, B} = sderl_fleet:restart(F, B),
        [has_majority(F, N, g, false) || N <- Up],
        ?assertEqual({no, no_majority}, call(F, B, unregister_name, [g, x])),
        ?assertEqual(ok, call(F, B, recover_majority, [g, Up])),
        together(F, g, Up),
        ?assertEqual(P, call(F, B, read, [g, x])),
        %% All that are members now know nothing: together they may begin again.
        [ok = sderl_fleet:kill(F, N) || N <- Up],
        [{ok, N} = sderl_fleet:restart(F, N) || N <- Up],
        [together(F, G, Up) || G <- [g, h]],
        ?assertEqual(undefined, call(F, B, read, [g, x]))
    end).

%% Nodes that give a group another consistency do not join it, and say why.
differing_modes(_) ->
    Nodes = [n(m, 1), n(o, 1)],
    Env = of_configuration(Nodes),
    Other = [{s_groups, [{g, normal, Nodes}]}, {consistency, #{h => available}}],
    sderl_ct_nodes:with(plan([{m, 1, Env}, {o, 1, Other}]), fun(F, [A, B]) ->
        [sderl_ct_nodes:logged(F, N, "stay apart: the consistency of the group is") || N <- [A, B]],
        #{consistency := majority, live := Live} = info(F, A, g),
        ?assertNot(lists:member(B, Live)),
        #{consistency := available} = info(F, B, g),
        ?assertEqual(yes, register_at(F, B, g, x, sderl_ct:process(F, B))),
        %% And an invitation is refused.
        ?assertEqual({ok, h, [A]},
                     call(F, A, new_s_group, [h, [A, B], #{consistency => majority}])),
        ?assertMatch([consistency_differs],
                     [Why || {h, N, Why} <- sderl_ct_nodes:left_out(F, A), N =:= B]),
        ?assertEqual({error, consistency_differs},
                     call(F, B, new_s_group, [h, [B], #{consistency => majority}])),
        ?assertEqual({error, consistency_differs},
                     call(F, A, new_s_group, [g, [A], #{consistency => available}]))
    end).

%% When the library stops on a node its names are free at once: the lease is a minute here.
goodbye(_) ->
    Slow = [{tick_ms, 300}, {set_aside_ms, 20_000}, {write_timeout_ms, 60_000}],
    sderl_ct:with(3, Slow, fun(F, [A, B, C] = Nodes) ->
        group(F, g, Nodes),
        _ = holder(F, C, g, x, #{}),
        New = sderl_ct:process(F, A),
        ok = on(F, C, fun() -> application:stop(sderl) end),
        ok = sderl_fleet:await(fun() -> register_at(F, A, g, x, New) =:= yes end, 60_000),
        ?assertEqual(New, call(F, B, read, [g, x])),
        ?assertEqual({error, not_running}, call(F, C, read, [g, x]))
    end).
