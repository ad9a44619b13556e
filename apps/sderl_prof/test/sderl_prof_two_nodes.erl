%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_two_nodes).
-moduledoc """
A recording of two nodes that never were: a client asks a server on the other one, and it is known
to the nanosecond who does what.

A round takes 100: the client runs 40, its question is under way for 10, the server waits 5 for a
scheduler and runs 25, the answer is under way for 10, and the client waits 10 for a scheduler. The
clock of the server's node is behind what it was found to be by 20, which is less than by how much
it may be wrong.
""".

-export([example/2, with_groups/2, cluster/2, node_of/3, client/1, server/1, pid/2, at/2]).

-define(A, ~"a@h").
-define(B, ~"b@h").
%% How far the clocks are ahead of the one that asked, and by how much that may be wrong.
-define(AHEAD, #{?A => 1_000_000, ?B => -500_000}).
-define(ERROR, 30).
-define(WRONG, 20).
-define(F, {m, f, 0}).

-doc "Both nodes, with so many rounds.".
-spec example(file:filename(), pos_integer()) -> ok.
example(Dir, Rounds) -> cluster(Dir, [{?A, client(Rounds)}, {?B, server(Rounds)}]).

-doc """
The same, where the client makes a group and adds the server's node, which registers a name in it
and takes the client's node out. When it began both nodes were in a group that no operation tells
of. The client sends three messages to the name over a gateway; the server's node passes two of
another one on, and cannot deliver a third.
""".
-spec with_groups(file:filename(), pos_integer()) -> ok.
with_groups(Dir, Rounds) ->
    ok = cluster(Dir, [{?A, operations_of_client() ++ client(Rounds)},
                       {?B, operations_of_server() ++ server(Rounds)}],
                 [~"s_group", ~"routed"]).

operations_of_client() ->
    operation(?A, 10, 100, {s_group, new_s_group, 2}, [shop, ['a@h', 'b@h']],
              {ok, shop, ['a@h']})
        ++ operation(?A, 400, 200, {s_group, add_nodes, 2}, [shop, ['b@h']],
                     {ok, shop, ['b@h']})
        ++ [{trace_ts, pid(?A, 7), call, {sderl_route_send, send_first, 5},
             {routed, 'g@h', shop, {name, till}, sale}, at(?A, T)} || T <- [700, 710, 720]].

operations_of_server() ->
    operation(?B, 300, 20, {s_group, register_name, 3}, [till, money, pid(?B, 7)], yes)
        ++ operation(?B, 800, 30, {s_group, remove_nodes, 2}, [shop, ['a@h']], ok)
        ++ [{trace_ts, pid(?B, 7), call, {sderl_forward, forwarded, 4}, {passed, 'c@h', 'a@h', 2},
             at(?B, 850)},
            {trace_ts, pid(?B, 7), call, {sderl_forward, failed, 4},
             {undelivered, shop, {name, nobody}, no_name}, at(?B, 860)}].

operation(Node, T, Took, Mfa, Args, Result) ->
    [{trace_ts, pid(Node, 7), call, Mfa, Args, at(Node, T)},
     {trace_ts, pid(Node, 7), return_from, Mfa, Result, at(Node, T + Took)}].

-doc "A recording of these nodes with these events.".
-spec cluster(file:filename(), [{binary(), [tuple()]}]) -> ok.
cluster(Dir, Nodes) -> cluster(Dir, Nodes, []).

cluster(Dir, Nodes, More) ->
    Index = sderl_prof_cluster_index:new([~"running", ~"message" | More],
                                         [{binary_to_atom(Node), "there"} || {Node, _} <- Nodes]),
    #{nodes := Entries} = Index,
    Known = lists:foldl(fun(#{node := Node} = Entry, All) ->
        Clock = #{first => #{at => 0, ahead => map_get(Node, ?AHEAD), error => ?ERROR},
                  last => #{at => 1_000_000_000, ahead => map_get(Node, ?AHEAD), error => ?ERROR}},
        Groups = [~"till" || lists:member(~"s_group", More)],
        sderl_prof_cluster_index:put_node(Entry#{state := recorded, clock := Clock,
                                                 groups := Groups}, All)
    end, Index, Entries),
    ok = sderl_prof_cluster_index:write(Dir, Known),
    lists:foreach(fun({Node, Events}) -> ok = node_of(Dir, Node, Events, More) end, Nodes).

-doc "The recording of one of them.".
-spec node_of(file:filename(), binary(), [tuple()]) -> ok.
node_of(Dir, Node, Events) -> node_of(Dir, Node, Events, []).

node_of(Dir, Node, Events, More) ->
    Folder = filename:join(Dir, Node),
    ok = filelib:ensure_path(Folder),
    Last = lists:max([element(tuple_size(Event), Event) || Event <- Events]),
    sderl_prof_files:recording(Folder, #{node => Node, system_profile => taken,
                                         items => [~"running" | More],
                                         began => at(Node, 0), ended_at => Last, ended => time,
                                         code => [{~"two_nodes", Node}]},
                               Events).

-doc "A time on the clock of a node: that of b is not what it was found to be.".
-spec at(binary(), integer()) -> integer().
at(?A, T) -> T + map_get(?A, ?AHEAD);
at(?B, T) -> T + map_get(?B, ?AHEAD) - ?WRONG.

-doc "A process of a node.".
-spec pid(binary(), non_neg_integer()) -> pid().
pid(Node, Id) ->
    binary_to_term(<<131, 88, 119, (byte_size(Node)), Node/binary, Id:32, 0:32, 1:32>>).

-doc "The events of the client.".
-spec client(pos_integer()) -> [tuple()].
client(Rounds) ->
    P = pid(?A, 7),
    End = 1000 + 100 * Rounds,
    [{trace_ts, P, register, client, at(?A, 1)}
     | lists:append([asks(1000 + 100 * N, N) || N <- lists:seq(0, Rounds - 1)])]
        ++ [{trace_ts, P, in, ?F, at(?A, End)},
            {trace_ts, P, 'receive', answer, {'b@h', sderl_from}, at(?A, End + 1)},
            {trace_ts, P, out, ?F, at(?A, End + 2)}, {profile, P, inactive, ?F, at(?A, End + 2)}].

asks(T, N) ->
    P = pid(?A, 7),
    At = fun(After) -> at(?A, T + After) end,
    [{trace_ts, P, in, ?F, At(0)}]
        ++ [{trace_ts, P, 'receive', answer, {'b@h', sderl_from}, At(1)} || N > 0]
        ++ [{trace_ts, P, send, question, pid(?B, 7), At(40)}, {trace_ts, P, out, ?F, At(41)},
            {profile, P, inactive, ?F, At(41)}, {profile, P, active, ?F, At(90)}].

-doc "Those of the server.".
-spec server(pos_integer()) -> [tuple()].
server(Rounds) ->
    [{trace_ts, pid(?B, 7), register, server, at(?B, 1)}
     | lists:append([answers(1000 + 100 * N) || N <- lists:seq(0, Rounds - 1)])].

answers(T) ->
    P = pid(?B, 7),
    At = fun(After) -> at(?B, T + After) end,
    [{profile, P, active, ?F, At(50)}, {trace_ts, P, in, ?F, At(55)},
     {trace_ts, P, 'receive', question, {'a@h', sderl_from}, At(56)},
     {trace_ts, P, send, answer, pid(?A, 7), At(80)}, {trace_ts, P, out, ?F, At(81)},
     {profile, P, inactive, ?F, At(81)}].
