%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_delay_SUITE).
-moduledoc "Delayed links between hosts: both ways, in order, undamaged, and gone with their ends.".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2]).
-export([delayed/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [delayed].

init_per_testcase(_, Config) -> sderl_fleet_ct:need_namespaces(Config).

delayed(_) ->
    {ok, Net} = sderl_fleet_netns:start(3),
    Hosts = [#{host := A}, #{host := B}, _] = sderl_fleet_netns:hosts(Net),
    Families = [sderl_fleet_delay:family(Host#{name => Name, count => 1}, [{A, B, 20}])
                || {Name, Host} <- lists:zip([a, b, c], Hosts)],
    {ok, Fleet} = sderl_fleet:start(#{families => Families}),
    [NodeA, NodeB, NodeC] = sderl_fleet:nodes(Fleet),
    On = fun(Node, Fun) -> sderl_fleet:call(Fleet, Node, erlang, apply, [Fun, []], 120_000) end,
    %% Whichever node opens the link. The least of several times, as only that is the link's delay
    %% and not the machine's.
    [begin
         true = On(From, fun() -> net_kernel:connect_node(To) end),
         Least = On(From, fun() -> lists:min([round_trip(To) || _ <- lists:seq(1, 10)]) end),
         ?assert(Least >= 40_000),
         true = On(From, fun() -> erlang:disconnect_node(To) end),
         ok = sderl_fleet:await(fun() ->
             On(To, fun() -> lists:member(From, nodes()) end) =:= false
         end, 60_000)
     end || {From, To} <- [{NodeA, NodeB}, {NodeB, NodeA}]],
    ok = sderl_fleet:await(fun() -> On(NodeA, fun() -> round_trip(NodeC) < 40_000 end) end, 60_000),
    %% More bytes than may wait arrive in order.
    Sizes = [I * 7919 rem 300_000 || I <- lists:seq(1, 50)],
    Sent = [binary:copy(<<(I rem 256)>>, Size) || {I, Size} <- lists:enumerate(Sizes)],
    Digest = On(NodeA, fun() ->
        Pid = spawn(NodeB, fun() ->
            Back = receive {from, From} -> From end,
            Got = [receive {bytes, Bytes} -> Bytes end || _ <- lists:seq(1, 50)],
            Back ! {digest, digest(Got)}
        end),
        Pid ! {from, self()},
        [Pid ! {bytes, Bytes} || Bytes <- Sent],
        receive {digest, D} -> D end
    end),
    ?assertEqual(digest(Sent), Digest),
    ok = sderl_fleet:kill(Fleet, NodeB),
    ok = sderl_fleet:await(fun() ->
        On(NodeA, fun() -> lists:member(NodeB, nodes()) end) =:= false
    end, 60_000),
    ok = sderl_fleet:stop(Fleet),
    ok = sderl_fleet_netns:stop(Net).

digest(Binaries) -> {length(Binaries), erlang:md5(Binaries)}.

round_trip(Node) ->
    Start = erlang:monotonic_time(microsecond),
    Node = erpc:call(Node, erlang, node, []),
    erlang:monotonic_time(microsecond) - Start.
