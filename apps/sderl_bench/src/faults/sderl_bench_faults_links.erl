%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_links).
-moduledoc """
Faults of links. Between network namespaces a link is cut silently, by routes that drop packets.
Elsewhere both ends get different cookies and are disconnected, which they notice at once.
""".

-behaviour(sderl_bench_faults_kind).

-export([inject/2, undo/3]).

-define(CLOSED_MS, 30_000).

-doc false.
-spec inject(sderl_bench_faults_kind:name(), sderl_bench_faults_kind:context()) ->
    sderl_bench_faults_kind:injected().
inject(Name, #{net := Net, fleet := Fleet, nodes := Nodes} = Context) ->
    Pairs = pairs(Name, Context),
    case Net of
        none -> close(Fleet, Pairs);
        _ -> ok = sderl_fleet_netns:cut(Net, Pairs)
    end,
    #{undo => Pairs,
      cut_off => [Node
                  || Node <- Nodes, 2 * length(reached([Node], Nodes, Pairs)) =< length(Nodes)]}.

%% The nodes that can be reached over links that are not cut.
reached(Seen, Nodes, Cut) ->
    More = [N
            || N <- Nodes -- Seen, lists:any(fun(M) ->
                not (lists:member({N, M}, Cut) orelse lists:member({M, N}, Cut))
            end, Seen)],
    case More of
        [] -> Seen;
        _ -> reached(More ++ Seen, Nodes, Cut)
    end.

-doc false.
-spec undo(sderl_bench_faults_kind:name(), term(), sderl_bench_faults_kind:context()) -> ok.
undo(_Name, Pairs, #{net := none, fleet := Fleet}) ->
    lists:foreach(
        fun({A, B}) ->
            Cookie = sderl_fleet:call(Fleet, A, erlang, get_cookie, []),
            [true = sderl_fleet:call(Fleet, N, erlang, set_cookie, [M, Cookie])
             || {N, M} <- [{A, B}, {B, A}]]
        end,
        Pairs
    );
undo(_Name, Pairs, #{net := Net}) ->
    ok = sderl_fleet_netns:heal(Net, Pairs).

pairs(Cut, #{nodes := Nodes, target := Target, coordinator := Lead, turn := Turn}) when
    Cut =:= cut; Cut =:= cut_coordinator
->
    Others = Nodes -- [Target, Lead],
    [{Target, lists:nth(1 + Turn rem length(Others), Others)}];
pairs(_Split, #{nodes := Nodes, turn := Turn}) ->
    %% Another half each time.
    {Front, Back} = lists:split(Turn rem length(Nodes), Nodes),
    {Left, Right} = lists:split(length(Nodes) div 2, Back ++ Front),
    [{A, B} || A <- Left, B <- Right].

close(Fleet, Pairs) ->
    lists:foreach(
        fun({A, B}) ->
            [true = sderl_fleet:call(Fleet, N, erlang, set_cookie, [M, N])
             || {N, M} <- [{A, B}, {B, A}]],
            ok = sderl_fleet:await(
                fun() ->
                    _ = [sderl_fleet:call(Fleet, N, erlang, disconnect_node, [M])
                         || {N, M} <- [{A, B}, {B, A}]],
                    not (linked(Fleet, A, B) orelse linked(Fleet, B, A))
                end,
                ?CLOSED_MS
            )
        end,
        Pairs
    ).

linked(Fleet, A, B) -> lists:member(B, sderl_fleet:call(Fleet, A, erlang, nodes, [connected])).
