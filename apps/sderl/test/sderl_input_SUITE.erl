%% SPDX-License-Identifier: Apache-2.0
-module(sderl_input_SUITE).

%% Wrong calls, nodes, pids and configurations: the caller gets the documented value or a clear
%% error, and no server is harmed.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct_nodes, [with/2, sd/1, call/4, s_group/4, await/1, ready/3, members/3, log/2,
                         logged/3, problems/2, left_out/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [{group, pair}, bad_configuration, bad_configuration_at_boot, connect_all, stopped_here,
     stops_meanwhile, cookie, missing, stopped_there].

groups() ->
    [{pair, [], [table_is_whole, wrong_types, unknown_nodes, pids, node_twice, group_of_one,
                 no_nodes, large, strange_messages, improper_questions]}].

%% Two members of the group `g`, and a node that is free.
init_per_group(pair, Config) ->
    Held = {Fleet, _} = sderl_ct_nodes:hold(#{families => [sd(3)]}),
    [A1, A2, A3] = sderl_fleet:nodes(Fleet),
    {ok, g, [A1, A2]} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
    [{held, Held}, {fleet, Fleet}, {nodes, [A1, A2, A3]} | Config].

end_per_group(pair, Config) ->
    sderl_ct_nodes:release(proplists:get_value(held, Config)).

%% The processes of the library must be the same ones after each case.
init_per_testcase(_, Config) ->
    case proplists:get_value(fleet, Config) of
        undefined -> Config;
        Fleet -> [{servers, servers(Fleet, Config)} | Config]
    end.

end_per_testcase(_, Config) ->
    case proplists:get_value(fleet, Config) of
        undefined -> ok;
        Fleet ->
            case {proplists:get_value(servers, Config), servers(Fleet, Config)} of
                {Same, Same} -> ok;
                {Before, After} -> {fail, {servers_died, Before -- After}}
            end
    end.

servers(Fleet, Config) ->
    [{N, call(Fleet, N, {?MODULE, processes}, [])} || N <- proplists:get_value(nodes, Config)].

processes() ->
    [{P, whereis(P)} || P <- [sderl_node, sderl_ask, sderl_subs, sderl_connector, sderl_watch]]
        ++ [{g, Pid} || Pid <- [sderl_dir:process(g)], is_pid(Pid)].

start(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

%% ---------------------------------------------------------------- wrong types

%% Every exported function, with arguments that are right and what each is.
functions() ->
    [{start, []}, {start_link, []}, {stop, []}, {new_s_group, [nodes]}, {new_s_group, [any, nodes]},
     {new_s_group, [any, nodes, group_options]},
     {recover_majority, [any, nodes]}, {read, [any, any]}, {delete_s_group, [any]},
     {add_nodes, [any, nodes]},
     {remove_nodes, [any, nodes]}, {enter, [any, nodes]}, {leave, [any]}, {connect, [node]},
     {connect, [any, node]},
     {await, [any, timeout]}, {follow, [any]}, {unfollow, [any]}, {s_groups, []},
     {own_s_groups, []}, {own_nodes, []}, {own_nodes, [any]}, {info, []},
     {links, []}, {sync, []}, {register_name, [any, any, pid]},
     {register_name, [any, any, pid, options]},
     {re_register_name, [any, any, pid]}, {unregister_name, [any, any]},
     {register_name_external, [any, any, pid]}, {unregister_name_external, [any, any]},
     {whereis_name, [any, any]}, {whereis_name, [node, any, any]}, {lookup, [any, any]},
     {send, [any, any, any]},
     {send, [node, any, any, any]}, {registered_names, [what]}, {register_name, [via, pid]},
     {unregister_name, [via]}, {whereis_name, [via]}, {send, [via, any]}, {subscribe, [any]},
     {subscribe, [any, kinds]}, {unsubscribe, [reference]}, {monitor_nodes, [boolean]},
     {join, [any, any, pids]},
     {leave, [any, any, pids]}, {members, [any, any]}, {choose_nodes, [constraints]},
     {add_attribute, [node_list, attributes]},
     {remove_attribute, [node_list, attributes]}, {registered_attributes, []}].

table_is_whole(_) ->
    Exported = [FA || {F, _} = FA <- s_group:module_info(exports), F =/= module_info],
    ?assertEqual(lists:sort(Exported), lists:sort([{F, length(As)} || {F, As} <- functions()])).

wrong_types(Config) ->
    {Fleet, [A1, _, A3]} = start(Config),
    %% As a member of a group, and as a free node.
    [?assertEqual([], call(Fleet, N, {?MODULE, wrong}, [])) || N <- [A1, A3]],
    ?assertEqual(ok, s_group(Fleet, A1, await, [g, 1 bsl 70])),
    ?assertEqual({[g], []}, s_group(Fleet, A1, s_groups, [])),
    ?assertEqual(undefined, s_group(Fleet, A3, s_groups, [])).

%% On a node: the calls whose outcome is none of the documented ones.
wrong() ->
    [{F, Args, Outcome}
     || {F, Kinds} <- functions(), {I, Kind} <- lists:enumerate(Kinds), Bad <- terms(),
        Args <- [[case J of I -> Bad; _ -> right(K) end || {J, K} <- lists:enumerate(Kinds)]],
        {Kind, Bad} =/= {timeout, 1 bsl 70},   % that it waits for
        Outcome <- [outcome(F, Args)],
        not fits(is(Kind, Bad), Kind, I, Bad, {F, length(Args)}, Outcome)].

outcome(F, Args) ->
    try {value, apply(s_group, F, Args)}
    catch Class:Reason -> {Class, Reason}
    end.

terms() ->
    [42, -1, 1 bsl 70, 1.5, <<"binary">>, <<1:3>>, "text", [], [a | b], [[]], [1], [x, 1], {}, {a},
     {a, b, c}, #{},
     #{meta => 1, other => 2}, #{resolver => none}, #{majority_lost => shout},
     #{consistency => most}, #{answer => never},
     #{consistency => majority, answer => applied}, self(), make_ref(), fun lists:map/2, unknown,
     undefined, '',
     {s_group, undefined}, {node, 7}, [self() | self()], [group | name], [group, other]].

right(any) -> unknown;
right(nodes) -> [];
right(node) -> node();
right(timeout) -> 0;
right(pid) -> self();
right(options) -> #{};
right(group_options) -> #{};
right(what) -> {s_group, g};
right(via) -> {g, unknown};
right(kinds) -> [group];
right(reference) -> make_ref();
right(boolean) -> false;
right(pids) -> [];
right(constraints) -> [];
right(node_list) -> [];
right(attributes) -> [].

is(any, _) -> true;
is(node, T) -> is_atom(T);
is(nodes, T) -> is_list(T) andalso catch_all(fun is_atom/1, T);
is(timeout, T) -> T =:= infinity orelse is_integer(T) andalso T >= 0;
is(pid, _) -> true;
is(options, T) -> T =:= #{};
is(group_options, T) -> T =:= #{};
is(what, T) -> case T of {s_group, _} -> true; {node, N} -> is_atom(N); _ -> false end;
is(via, T) -> is_tuple(T) andalso tuple_size(T) =:= 2;
is(kinds, _) -> false;
is(reference, T) -> is_reference(T);
is(boolean, T) -> is_boolean(T);
is(constraints, T) -> T =:= [];
%% Published: what is no list has an error of its own.
is(node_list, T) -> not is_list(T) orelse catch_all(fun is_atom/1, T);
is(attributes, T) -> not is_list(T) orelse catch_all(fun(_) -> true end, T);
is(pids, T) -> is_pid(T) orelse is_list(T) andalso catch_all(fun is_pid/1, T).

catch_all(Is, List) ->
    try lists:all(Is, List) catch error:_ -> false end.

%% What is no pid has a documented value; a node's name is any atom.
fits(true, pid, _, Bad, {F, A}, {value, V}) when not is_pid(Bad) ->
    V =:= case {F, A} of {register_name, 2} -> no; _ -> {no, not_a_pid} end;
fits(true, _, _, _, {send, 2}, {exit, {badarg, {{_, _}, _}}}) -> true;
fits(true, _, _, _, _, {value, _}) -> true;
%% As published.
fits(false, boolean, _, _, {monitor_nodes, 1}, {value, {error, not_boolean}}) -> true;
fits(false, _, I, Bad, {F, A},
     {error, {badarg, {s_group, F, A}, #{argument := I, found := Found, expected := E}}}) ->
    io_lib:printable_list(E) andalso (Found =:= Bad orelse within(Found, Bad));
fits(_, _, _, _, _, _) -> false.

%% Of a list or a map the part that is wrong may be named.
within(Found, Bad) when is_list(Bad) -> lists:any(fun(E) -> E =:= Found end, Bad);
within(Found, #{resolver := Found}) -> true;
within(Found, #{majority_lost := Found}) -> true;
within(Found, #{consistency := Found}) -> true;
within(Found, #{answer := Found}) -> true;
within(Found, Bad) when is_map(Bad) -> is_map_key(Found, Bad);
within(_, _) -> false.

%% ---------------------------------------------------------------- nodes

nobodies() ->
    ['nobody@127.0.0.1', nobody, '', '@', 'a@', '@b', 'a@b@c', 'x@no-such-host.invalid',
     nonode@nohost].

unknown_nodes(Config) ->
    {Fleet, [A1, A2, _]} = start(Config),
    S = fun(F, Args) -> s_group(Fleet, A1, F, Args) end,
    Nobodies = nobodies(),
    ?assertEqual({ok, lonely, [A1]}, S(new_s_group, [lonely, [A1 | Nobodies]])),
    ?assertEqual(lists:sort([{lonely, N, unreachable} || N <- Nobodies]),
                 lists:sort([L || {lonely, _, _} = L <- left_out(Fleet, A1)])),
    ?assertEqual({ok, g, []}, S(add_nodes, [g, Nobodies])),
    ?assertEqual(ok, S(remove_nodes, [g, Nobodies])),
    ?assertEqual({ok, lonely, []}, S(add_nodes, [lonely, ['nobody@127.0.0.1']])),
    ?assertMatch({error,
                  {no_seed_answered, [{'nobody@127.0.0.1', unreachable}, {'', unreachable}]}},
                 S(enter, [other, ['nobody@127.0.0.1', '']])),
    [begin
         ?assertEqual({N, false}, {N, S(connect, [N])}),
         ?assertEqual({N, false}, {N, S(connect, [other, N])}),
         ?assertEqual({N, undefined}, {N, S(whereis_name, [N, g, x])}),
         ?assertEqual({N, {badarg, {g, x, hello}}}, {N, S(send, [N, g, x, hello])}),
         ?assertEqual({N, []}, {N, S(registered_names, [{node, N}])})
     end || N <- Nobodies],
    %% Why they were left out stands there in words, too.
    ?assert(lists:any(fun(P) -> string:find(P, "nobody@127.0.0.1") =/= nomatch end,
                      problems(Fleet, A1))),
    ok = S(delete_s_group, [lonely]),
    ?assertEqual([A1, A2], S(own_nodes, [g])).

node_twice(Config) ->
    {Fleet, [A1, A2, A3]} = start(Config),
    ?assertEqual({ok, twice, [A1, A2]}, s_group(Fleet, A1, new_s_group, [twice, [A2, A1, A2, A1]])),
    ?assertEqual({ok, twice, [A3]}, s_group(Fleet, A1, add_nodes, [twice, [A3, A2, A3]])),
    members(Fleet, [A1, A2, A3], twice),
    ?assertEqual(ok, s_group(Fleet, A1, remove_nodes, [twice, [A3, A3, A2]])),
    members(Fleet, [A1], twice),
    ?assertEqual(ok, s_group(Fleet, A1, delete_s_group, [twice])).

group_of_one(Config) ->
    {Fleet, [A1, A2, A3]} = start(Config),
    S = fun(F, Args) -> s_group(Fleet, A1, F, Args) end,
    ?assertEqual({ok, one, [A1]}, S(new_s_group, [one, [A1]])),
    ?assertEqual(ok, S(await, [one, 60_000])),
    Pid = call(Fleet, A1, proc, []),
    ?assertEqual(yes, S(register_name, [one, n, Pid])),
    ?assertEqual(Pid, S(whereis_name, [one, n])),
    ?assertEqual({error, s_group_name_is_in_use}, S(new_s_group, [one, [A1, A2]])),
    ?assertEqual({error, cannot_remove_itself}, S(remove_nodes, [one, [A1]])),
    ?assertEqual({error, remote_s_group}, s_group(Fleet, A3, delete_s_group, [one])),
    ?assertEqual({error, node_does_not_belong_to_the_s_group},
                 s_group(Fleet, A3, add_nodes, [one, [A2, A3]])),
    ?assertEqual({error, node_does_not_belong_to_the_s_group},
                 s_group(Fleet, A3, remove_nodes, [one, [A1]])),
    ?assertEqual({error, node_does_not_belong_to_the_s_group}, s_group(Fleet, A3, leave, [one])),
    ?assertEqual(ok, S(leave, [one])),
    ?assertEqual([], S(own_nodes, [one])),
    ?assertEqual(undefined, S(whereis_name, [one, n])),
    ?assertEqual({error, remote_s_group}, S(delete_s_group, [one])).

no_nodes(Config) ->
    {Fleet, [A1, A2, _]} = start(Config),
    S = fun(F, Args) -> s_group(Fleet, A1, F, Args) end,
    ?assertEqual({ok, empty, []}, S(new_s_group, [empty, []])),
    {ok, Generated, []} = S(new_s_group, [[]]),
    ?assert(io_lib:printable_latin1_list(atom_to_list(Generated))),
    ?assertEqual({ok, g, []}, S(add_nodes, [g, []])),
    ?assertEqual({ok, g, []}, S(add_nodes, [g, [A1, A2]])),
    ?assertEqual(ok, S(remove_nodes, [g, []])),
    [?assertEqual({ok, G, []}, S(add_nodes, [G, Ns]))
     || G <- [other, undefined], Ns <- [[], [A1], [A1, A1]]],
    [?assertEqual(ok, S(remove_nodes, [G, []])) || G <- [other, undefined]],
    [?assertEqual({error, node_does_not_belong_to_the_s_group}, S(F, [G, [A2]]))
     || F <- [add_nodes, remove_nodes], G <- [other, undefined]],
    ?assertEqual({error, no_seeds}, S(enter, [other, []])),
    ?assertEqual({error, no_seeds}, S(enter, [other, [A1]])),
    ?assertEqual({error, remote_s_group}, S(new_s_group, [other, [A2]])),
    ?assertEqual({error, reserved_s_group_name}, S(new_s_group, [undefined, [A1]])),
    ?assertEqual({error, reserved_s_group_name}, S(enter, [undefined, [A2]])),
    ?assertEqual({error, remote_s_group}, S(delete_s_group, [undefined])),
    ?assertEqual([g], [G || {G, _} <- S(own_s_groups, [])]).

%% ---------------------------------------------------------------- pids

pids(Config) ->
    {Fleet, [A1, A2, A3]} = start(Config),
    S = fun(F, Args) -> s_group(Fleet, A1, F, Args) end,
    [Here, There, Free] = [call(Fleet, N, proc, []) || N <- [A1, A2, A3]],
    Dead = fun(N, Pid) -> ok = call(Fleet, N, stop, [Pid]), Pid end,
    Dead(A1, Here), Dead(A2, There), Dead(A3, Free),
    [begin
         ?assertEqual({no, dead_pid}, S(register_name, [g, n, P])),
         ?assertEqual({no, dead_pid}, S(register_name, [g, n, P, #{meta => 1}])),
         ?assertEqual({no, dead_pid}, S(re_register_name, [g, n, P])),
         ?assertEqual(no, S(register_name, [{g, n}, P]))
     end || P <- [Here, There, Free]],
    [?assertEqual({no, not_a_pid}, S(F, [g, n, P]))
     || F <- [register_name, re_register_name], P <- [n, A1, [Here]]],
    Live = call(Fleet, A1, proc, []),
    ?assertEqual({no, cannot_register_in_remote_group}, S(register_name, [nowhere, n, Live])),
    ?assertEqual({no, cannot_re_register_in_remote_group}, S(re_register_name, [nowhere, n, Live])),
    ?assertEqual({no, cannot_unregister_from_remote_group}, S(unregister_name, [nowhere, n])),
    ?assertEqual([], S(registered_names, [{s_group, nowhere}])),
    ?assertEqual({error, no_information_about_remote_group}, S(lookup, [nowhere, n])),
    ?assertEqual(undefined, S(whereis_name, [nowhere, n])),
    ?assertEqual({badarg, {nowhere, n, m}}, S(send, [nowhere, n, m])),
    ?assertEqual({badarg, {g, n, m}}, S(send, [g, n, m])),
    ?assertExit({badarg, {{g, n}, m}}, S(send, [{g, n}, m])),
    %% One whose node does not answer.
    Away = call(Fleet, A3, proc, []),
    true = call(Fleet, A3, {erlang, set_cookie}, [A3, other]),
    true = call(Fleet, A3, {erlang, set_cookie}, [other]),
    [_ = call(Fleet, N, {erlang, disconnect_node}, [A3]) || N <- [A1, A2]],
    ?assertEqual({no, unreachable_pid}, S(register_name, [g, n, Away])),
    ?assertEqual({no, unreachable_pid}, S(re_register_name, [g, n, Away])),
    ?assertEqual([], S(registered_names, [{s_group, g}])),
    #{cookie := Cookie} = sderl_fleet:connection_info(Fleet),
    true = call(Fleet, A3, {erlang, set_cookie}, [Cookie]),
    true = call(Fleet, A3, {erlang, set_cookie}, [A3, Cookie]),
    ?assertEqual(yes, S(register_name, [g, n, Away])),
    ?assertEqual(ok, S(unregister_name, [g, n])).

%% ---------------------------------------------------------------- sizes

large(Config) ->
    {Fleet, [A1, A2, _]} = start(Config),
    Name = {binary:copy(~"n", 2_000_000), lists:seq(1, 1000)},
    Meta = #{blob => binary:copy(~"m", 2_000_000), deep => deep(5000)},
    Group = {binary:copy(~"g", 100_000), #{}, 1.5},
    Pid = call(Fleet, A1, proc, []),
    ?assertEqual({ok, Group, [A1, A2]}, s_group(Fleet, A1, new_s_group, [Group, [A1, A2]])),
    ?assertEqual(yes, s_group(Fleet, A1, register_name, [Group, Name, Pid, #{meta => Meta}])),
    ?assertMatch(#{pid := Pid, meta := Meta, home := A1},
                 s_group(Fleet, A2, lookup, [Group, Name])),
    ?assertEqual([{Group, Name}], s_group(Fleet, A2, registered_names, [{s_group, Group}])),
    ?assertEqual(ok, s_group(Fleet, A2, unregister_name, [Group, Name])),
    ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [Group, Name])),
    ?assertEqual(ok, s_group(Fleet, A2, delete_s_group, [Group])).

deep(0) -> [];
deep(N) -> [deep(N - 1)].

%% ---------------------------------------------------------------- messages

%% Of a kind or a version that this node does not know: ignored and counted.
strange_messages(Config) ->
    {Fleet, [A1, A2, A3]} = start(Config),
    Before = unknown(Fleet, A1),
    Uid = call(Fleet, A1, {sderl_dir, uid}, [g]),
    %% Twice: the first time code is loaded.
    {Sent1, _} = call(Fleet, A1, {?MODULE, flood}, [Uid, A2]),
    {Sent2, Atoms} = call(Fleet, A1, {?MODULE, flood}, [Uid, A2]),
    ?assertEqual(0, Atoms),
    Sent = Sent1 + Sent2,
    await(fun() ->
        case unknown(Fleet, A1) - Before of
            N when N >= Sent -> true;
            N -> {N, Sent}
        end
    end),
    ?assert(lists:any(fun(P) -> string:find(P, "ignored") =/= nomatch end, problems(Fleet, A1))),
    %% Everything works as before.
    Pid = call(Fleet, A2, proc, []),
    ?assertEqual(yes, s_group(Fleet, A2, register_name, [g, after_all, Pid])),
    ?assertEqual(Pid, s_group(Fleet, A1, whereis_name, [g, after_all])),
    ?assertEqual(Pid, s_group(Fleet, A3, whereis_name, [A1, g, after_all])),
    ?assertEqual(ok, s_group(Fleet, A1, unregister_name, [g, after_all])).

unknown(Fleet, Node) -> proplists:get_value(unknown_messages, s_group(Fleet, Node, info, [])).

%% On a node: how many were sent that must be counted, and how many atoms came of it.
flood(Uid, Other) ->
    Group = sderl_dir:process(g),
    Junk = [{sderl, 1, Uid, Other, {hello, 1}},
            {sderl, 1, Uid, Other, {batch, 1, 2}, more},
            {sderl, 2, Uid, Other, {no_such_message, 1}},
            {sderl, 2, Uid, Other, {batch, too, short}},
            {sderl, 2, Uid, Other, "text"},
            {sderl, 99},
            sderl],
    Node = [{sderl_hello, 1, g, Uid, Other, {hello, self(), x, y, #{}, more}},
            {sderl_hello, 2, g, Uid, Other, {hi}},
            {sderl_hello, 2, g, Uid, Other, {hello, self(), inc, not_a_map, #{}}},
            {sderl_known, 1, Other, [{x, [Other]}]},
            {sderl_known, 2, Other, not_a_list}, {sderl_known, 2, Other, [not_a_pair]},
            {sderl_known, 2, Other, [{x, [1, 2]}]}, {sderl_free, 1, Other, x},
            {sderl_unheard_of, 2}, "text", 42],
    Ask = [{'$gen_call', {self(), make_ref()}, {no_such_question, 1}},
           {'$gen_call', {self(), make_ref()}, {whereis, g}},
           {'$gen_cast', what},
           what],
    Before = atoms(),
    [Group ! M || M <- Junk],
    [sderl_node ! M || M <- Node],
    [sderl_node ! M || M <- [{'$gen_cast', what}, {'$gen_call', {self(), make_ref()}, what}]],
    [sderl_ask ! M || M <- Ask],
    [P ! M || P <- [sderl_subs, sderl_connector, sderl_watch], M <- [what, {'$gen_cast', what}]],
    %% Both have come to the end of their mailboxes.
    {ok, _} = sderl_group:info(Group, 60_000),
    sderl_node_client:settle(),
    _ = gen_server:call(sderl_ask, names, 60_000),
    {length(Junk) + length(Node) + 2 + length(Ask), atoms() - Before}.

atoms() -> erlang:system_info(atom_count).

%% Questions as another node may put them, and worse.
improper_questions(Config) ->
    {Fleet, [A1, _, A3]} = start(Config),
    [?assertEqual({Q, {error, unknown_question}},
                  {Q, call(Fleet, A3, {?MODULE, question}, [A1, Q])})
     || Q <- [what, {what}, {whereis, g}, {send, g, n}, {whereis_at, 1, 2, 3}, {alive, not_a_pid},
              42]],
    ?assertMatch({error, _}, call(Fleet, A3, {?MODULE, question}, [A1, {reach, g, not_a_pid}])),
    ?assertEqual({error, unknown_call},
                 call(Fleet, A3, {gen_server, call}, [{sderl_node, A1}, {invite, 1}, 60_000])),
    ?assertEqual({error, unknown_call},
                 call(Fleet, A3, {gen_server, call}, [{sderl_node, A1}, what, 60_000])).

question(Node, Question) -> gen_server:call({sderl_ask, Node}, Question, 60_000).

%% ---------------------------------------------------------------- configuration

bad_configuration(_) ->
    with(#{families => [#{name => a, count => 1}]}, fun(Fleet, [A]) ->
        [begin
             Env = case Key of kernel -> {kernel, s_groups, Value}; _ -> {sderl, Key, Value} end,
             {error, {sderl, {{{bad_config, Got, _, _}, Text}, {sderl_app, start, _}}}} =
                 call(Fleet, A, {?MODULE, start_with}, [Env]),
             ?assertEqual({Value, Path}, {Value, Got}),
             ?assert(io_lib:printable_unicode_list(Text)),
             ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Words)}),
             logged(Fleet, A, Text)
         end || {Key, Value, Path, Words} <- malformed()],
        %% The last word is that nothing is wrong with the node.
        ?assertMatch({ok, _}, call(Fleet, A, {?MODULE, start_with}, [{sderl, s_groups, []}]))
    end).

malformed() ->
    G = fun(Nodes) -> {g, normal, Nodes} end,
    [{s_groups, g, [sderl, s_groups], "sderl: s_groups: g is not a list of groups"},
     {s_groups, [G(['a@h']) | G(['b@h'])], [sderl, s_groups], "is not a list of groups"},
     {s_groups, [{g, ['a@h']}], [sderl, s_groups, 1], "sderl: s_groups[1]"},
     {s_groups, [{undefined, normal, ['a@h']}], [sderl, s_groups, 1, name],
      "is no name for a group"},
     {s_groups, [G(['a@h']), {k, visible, ['a@h']}], [sderl, s_groups, 2, type],
      "s_groups[2].type: visible"},
     {s_groups, [G([])], [sderl, s_groups, 1, nodes], "names no node"},
     {s_groups, [G("a@h")], [sderl, s_groups, 1, nodes], "is not a list of nodes"},
     {s_groups, [G(['a@h', 'b@h', "c@h"])], [sderl, s_groups, 1, nodes, 3],
      "s_groups[1].nodes[3]: \"c@h\""},
     {s_groups, [G(['a'])], [sderl, s_groups, 1, nodes, 1], "write an atom with a host"},
     {s_groups, [G({seeds, ['a@h', 7]})], [sderl, s_groups, 1, seeds, 2],
      "s_groups[1].seeds[2]: 7"},
     {s_groups, [G(['a@h']), G(['b@h'])], [sderl, s_groups, 2, name],
      "name of a group above it too"},
     {kernel, [G(['a@h']), bad], [kernel, s_groups, 2], "kernel: s_groups[2]"},
     {tick_ms, 0, [sderl, tick_ms], "milliseconds"},
     {set_aside_ms, 1500, [sderl, set_aside_ms], "at least 2000"},
     {await, {all, soon}, [sderl, await, timeout], "await"},
     {forget_down_after, #{g => never}, [sderl, forget_down_after, {key, g}], "forget_down_after"},
     {consistency, #{g => most}, [sderl, consistency, {key, g}], "available or majority"},
     {answer, #{g => at_once}, [sderl, answer, {key, g}], "committed or applied"},
     {majority_lost, shout, [sderl, majority_lost], "ignore, notify or exit"},
     {resolver, nobody, [sderl, resolver], "is not a resolver"},
     {link_policy, shut, [sderl, link_policy], "report or close"},
     {free_islands, yes, [sderl, free_islands], "neither true nor false"},
     {cluster, 7, [sderl, cluster], "is not a text"}].

%% On a node.
start_with({App, Key, Value}) ->
    _ = application:load(sderl),
    ok = application:set_env(App, Key, Value),
    try application:ensure_all_started(sderl)
    after application:unset_env(App, Key)
    end.

%% The same where the file is read as the node boots.
bad_configuration_at_boot(_) ->
    [begin
         {error, {start_failed, [{_, {app_failed, sderl, Why}}]}} =
             sderl_fleet:start(#{families => [#{name => a, count => 1, apps => [sderl],
                                                env => [Env]}]}),
         ?assertMatch({sderl, {{{bad_config, Path, _, _}, _}, _}}, Why)
     end
     || {Env, Path} <- [{{sderl, s_groups, [{g, normal, ['a@h', b]}]},
                         [sderl, s_groups, 1, nodes, 2]},
                        {{kernel, s_groups, [{g, normal, hello}]}, [kernel, s_groups, 1, nodes]}]].

%% A node that connects to every other by itself cannot be in groups.
connect_all(_) ->
    with(#{families => [#{name => a, count => 1, connect_all => true}]}, fun(Fleet, [A]) ->
        {error, {sderl, {{connect_all, Text}, _}}} =
            call(Fleet, A, {application, ensure_all_started}, [sderl]),
        ?assertNotEqual(nomatch, string:find(Text, "-connect_all false")),
        logged(Fleet, A, "-connect_all false"),
        ?assertEqual({error, not_running}, s_group(Fleet, A, new_s_group, [g, [A]]))
    end),
    %% Set to what it is anyway, and with a file instead of a flag.
    with(#{families => [#{name => a, count => 1, connect_all => true,
                          env => [{kernel, connect_all, false}], apps => [sderl]}]},
         fun(Fleet, [A]) ->
             ?assertEqual({ok, g, [A]}, s_group(Fleet, A, new_s_group, [g, [A]]))
         end).

%% ---------------------------------------------------------------- the application stopped

%% The library stops during calls: its tables vanish one after the other, in the middle of any call.
stops_meanwhile(_) ->
    with(#{families => [sd(1)]}, fun(Fleet) ->
        [N] = sderl_fleet:nodes(Fleet),
        Rounds = case os:getenv("SDERL_LONG") of false -> 5; _ -> 20 end,
        ?assertEqual([], call(Fleet, N, {?MODULE, asked_while_it_stops}, [Rounds]))
    end).

asked_while_it_stops(Rounds) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Askers = [spawn_monitor(?MODULE, asking, [Call])
              || Call <- [{whereis_name, [g, x]}, {whereis_name, [node(), g, x]},
                          {send, [node(), g, x, m]},
                          {lookup, [g, x]}, {registered_names, [{s_group, g}]},
                          {registered_names, [{node, node()}]}, {own_s_groups, []}, {s_groups, []},
                          {members, [g, x]}, {subscribe, [g]}, {read, [g, x]},
                          {register_name, [g, x, self()]}, {unregister_name, [g, x]}]],
    [begin
        ok = application:stop(sderl),
        {ok, _} = application:ensure_all_started(sderl)
     end || _ <- lists:seq(1, Rounds)],
    Ended = [begin Pid ! stop, receive {'DOWN', Ref, process, Pid, Why} -> Why end end
             || {Pid, Ref} <- Askers],
    ok = logger:set_primary_config(level, Level),
    [Why || Why <- Ended, Why =/= normal].

asking({Function, Arguments} = Call) ->
    receive
        stop -> ok
    after 0 ->
        %% (`send/4` exits where nobody has the name, a write where nobody will know.)
        _ = try apply(s_group, Function, Arguments) catch exit:_ -> exits end,
        asking(Call)
    end.

stopped_here(_) ->
    with(#{families => [sd(2)]}, fun(Fleet, [A1, A2]) ->
        {ok, g, [A1, A2]} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        Pid = call(Fleet, A2, proc, []),
        yes = s_group(Fleet, A2, register_name, [g, n, Pid]),
        ok = call(Fleet, A1, {application, stop}, [sderl]),
        ?assertEqual([], call(Fleet, A1, {?MODULE, not_running}, [A2])),
        %% No process of ours complained about it.
        ?assertEqual(nomatch, string:find(log(Fleet, A1), "CRASH REPORT")),
        ?assertEqual(nomatch, string:find(log(Fleet, A1), "Error in process")),
        {ok, _} = call(Fleet, A1, {application, ensure_all_started}, [sderl]),
        ready(Fleet, [A1, A2], g),
        ?assertEqual(Pid, s_group(Fleet, A1, whereis_name, [g, n]))
    end).

%% On a node where it is stopped: the calls with another outcome than the documented one.
not_running(Other) ->
    Named = [{node, [Other]}, {via, {g, n}}, {any, g}, {nodes, [node(), Other]}],
    [{F, Args, Outcome}
     || {F, Kinds} <- functions(),
        Args0 <- [[case lists:keyfind(K, 1, Named) of {_, T} when K =/= node -> T; _ -> right(K) end
                   || K <- Kinds]],
        Args <- [Args0 | [[Other | tl(Args0)] || hd([x | Kinds]) =:= x, hd(Kinds ++ [x]) =:= node]],
        {F, length(Args)} =/= {connect, 1}, F =/= start, F =/= start_link,
        Outcome <- [outcome(F, Args)], Outcome =/= stopped(F, length(Args), Args)].

stopped(register_name, 2, _) -> {value, no};
stopped(unregister_name, 1, _) -> {value, ok};
stopped(whereis_name, _, _) -> {value, undefined};
stopped(send, 2, [To, Msg]) -> {exit, {badarg, {To, Msg}}};
stopped(send, 3, [G, N, M]) -> {value, {badarg, {G, N, M}}};
stopped(send, 4, [_, G, N, M]) -> {value, {badarg, {G, N, M}}};
stopped(connect, 2, _) -> {value, false};
stopped(F, _, _) when F =:= register_name; F =:= re_register_name; F =:= unregister_name;
                      F =:= register_name_external; F =:= unregister_name_external ->
    {value, {no, not_running}};
stopped(_, _, _) -> {value, {error, not_running}}.

stopped_there(_) ->
    with(#{families => [sd(3)]}, fun(Fleet, [A1, A2, A3] = Nodes) ->
        {ok, g, Nodes} = s_group(Fleet, A1, new_s_group, [g, Nodes]),
        Pid = call(Fleet, A3, proc, []),
        yes = s_group(Fleet, A3, register_name, [g, n, Pid]),
        ok = call(Fleet, A3, {application, stop}, [sderl]),
        %% The others go on at once, without its names.
        await(fun() -> s_group(Fleet, A1, whereis_name, [g, n]) =:= undefined end),
        Mine = call(Fleet, A1, proc, []),
        ?assertEqual(yes, s_group(Fleet, A1, register_name, [g, m, Mine])),
        ?assertEqual(Mine, s_group(Fleet, A2, whereis_name, [g, m])),
        ?assertEqual({ok, h, [A1, A2]}, s_group(Fleet, A1, new_s_group, [h, Nodes])),
        ?assertEqual([{h, A3, application_not_running}], left_out(Fleet, A1)),
        await(fun() ->
            lists:any(fun(P) -> string:find(P, "does not answer there") =/= nomatch end,
                      problems(Fleet, A1))
        end),
        ?assertEqual([], s_group(Fleet, A1, registered_names, [{node, A3}])),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [A3, g, n])),
        %% It is still a member, and comes back as one.
        {ok, _} = call(Fleet, A3, {application, ensure_all_started}, [sderl]),
        ready(Fleet, Nodes, g),
        ?assertEqual(Mine, s_group(Fleet, A3, whereis_name, [g, m])),
        members(Fleet, Nodes, g)
    end).

%% ---------------------------------------------------------------- strangers

cookie(_) ->
    with(#{families => [sd(2)]}, fun(Fleet, [A1, A2]) ->
        true = call(Fleet, A2, {erlang, set_cookie}, [quite_another]),
        ?assertEqual({ok, g, [A1]}, s_group(Fleet, A1, new_s_group, [g, [A1, A2]])),
        ?assertEqual([{g, A2, unreachable}], left_out(Fleet, A1)),
        ?assertEqual({ok, g, []}, s_group(Fleet, A1, add_nodes, [g, [A2]])),
        ?assert(lists:any(fun(P) -> string:find(P, "cookie") =/= nomatch end, problems(Fleet, A1))),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [A2, g, n])),
        ?assertEqual(false, s_group(Fleet, A1, connect, [A2])),
        #{cookie := Cookie} = sderl_fleet:connection_info(Fleet),
        true = call(Fleet, A2, {erlang, set_cookie}, [Cookie]),
        ?assertEqual({ok, g, [A2]}, s_group(Fleet, A1, add_nodes, [g, [A2]])),
        %% What is no longer so is not said any more.
        ?assertEqual([], left_out(Fleet, A1)),
        members(Fleet, [A1, A2], g)
    end).

%% Nodes without the library: a stock node, and one where it is not started.
missing(_) ->
    Families = [sd(2), #{name => bare, count => 1},
                #{name => stock, count => 1, connect_all => true}],
    with(#{families => Families, s_groups => [{file, normal, [{a, all}, {bare, all}]}]},
         fun(Fleet, [A1, A2, B, S]) ->
             %% The group of the launch configuration does not wait for it.
             ready(Fleet, [A1, A2], file),
             Pid = call(Fleet, A2, proc, []),
             ?assertEqual(yes, s_group(Fleet, A2, register_name, [file, n, Pid])),
             ?assertEqual(Pid, s_group(Fleet, A1, whereis_name, [file, n])),
             await(fun() ->
                 lists:any(fun(P) -> string:find(P, "does not answer there") =/= nomatch end,
                           problems(Fleet, A1))
             end),
             ?assertEqual({ok, g, [A1, A2]}, s_group(Fleet, A1, new_s_group, [g, [A1, A2, B, S]])),
             ?assertEqual([{g, B, application_not_running}, {g, S, application_not_running}],
                          left_out(Fleet, A1)),
             [?assert(lists:any(fun(P) -> string:find(P, atom_to_list(N)) =/= nomatch andalso
                                          string:find(P, "not running there") =/= nomatch end,
                                problems(Fleet, A1)))
              || N <- [B, S]],
             ?assertEqual({ok, g, []}, s_group(Fleet, A1, add_nodes, [g, [S]])),
             ?assertEqual({error, {no_seed_answered, [{S, application_not_running}]}},
                          s_group(Fleet, A1, enter, [other, [S]])),
             {ok, _} = call(Fleet, B, {application, ensure_all_started}, [sderl]),
             ?assertEqual({ok, g, [B]}, s_group(Fleet, A1, add_nodes, [g, [B]])),
             ready(Fleet, [B], file),
             members(Fleet, [A1, A2, B], file)
         end).
