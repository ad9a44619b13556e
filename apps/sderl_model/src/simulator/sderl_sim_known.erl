%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_known).
-moduledoc """
What the clients of a simulated group know about their own names from their answers:
present with a pid, absent, or unknown. An answer that contradicts it is a violation.
""".
-include("sderl_sim.hrl").

-export([pending/5, contest/3, is_of_own/1, given_up/2, learned/3, not_known/4]).

-import(sderl_sim_world, [node/2, book/2, keep_book/3]).

-doc """
A client asks. Operations of others on an own name are counted when asked and when answered: an
answer makes something known only if none was under way.
""".
-spec pending(node(), term(), term(), sderl_core:op(), #w{}) -> #w{}.
pending(N, G, Who, Op, W) ->
    #n{life = Life} = node(N, W),
    case whose(N, Life, Who, name_in(Op)) of
        {others, Own} ->
            #b{contest = C, truth = T} = B = book(G, W),
            {K, Out} = maps:get(Own, C, {0, 0}),
            keep_book(G, B#b{contest = C#{Own => {K + 1, Out + 1}}, truth = T#{Own => unknown}}, W);
        _ -> W
    end.

-doc "Whether a client asked about a name of its own.".
-spec is_of_own(asked()) -> boolean().
is_of_own(Asked) -> own(Asked) =/= none.

own(#{node := N, life := Life, who := Who, op := Op}) ->
    case whose(N, Life, Who, name_in(Op)) of
        {own, Own} -> Own;
        _ -> none
    end.

-doc "A client does not wait for its answer any more, so the state of its own name is unknown.".
-spec given_up(asked(), #w{}) -> #w{}.
given_up(#{group := G} = Asked, W) ->
    case own(Asked) of
        none -> W;
        Own ->
            #b{truth = T} = B = book(G, W),
            keep_book(G, B#b{truth = T#{Own => unknown}}, W)
    end.

-doc """
The states of the own names of a node's life are unknown from now on: of all of them, or of these.
The answer to what was asked before makes nothing known either: it may have been decided before,
too.
""".
-spec not_known(node(), term(), all | [term()], #w{}) -> #w{}.
not_known(N, G, Which, #w{ops = Ops} = W) ->
    #n{life = Life} = node(N, W),
    #b{truth = Truth, contest = Contest} = B = book(G, W),
    Is = fun({own, Of, L, _} = Own) when Of =:= N, L =:= Life ->
                 Which =:= all orelse lists:member(Own, Which);
            (_) -> false
         end,
    Unknown = #{Own => unknown || Own := _ <- Truth, Is(Own)},
    Asked = [concerns(Op) || _ := #{node := Of, group := In, op := Op} = O <- Ops,
                             Of =:= N, In =:= G, not is_map_key(answer, O)],
    Contends = #{Own => {K + 1, Out} || Own <- Asked, Is(Own), {K, Out} <- [contest_of(Own, B)]},
    keep_book(G, B#b{truth = maps:merge(Truth, Unknown), contest = maps:merge(Contest, Contends)},
              W).

%% An own name of a former life of the node belongs to nobody: operations that were under way when
%% that life ended may take effect.
whose(N, Life, {client, K}, {own, N, Life, K} = Own) -> {own, Own};
whose(N, Life, {keep, _} = Who, {own, N, Life, Who} = Own) -> {own, Own};
whose(_, _, _, {own, _, _, _} = Own) -> {others, Own};
whose(_, _, _, _) -> none.

-doc "The number of operations of others on the name of this one: `{in all, unanswered}`.".
-spec contest(term(), sderl_core:op(), #w{}) -> contest().
contest(G, Op, W) -> contest_of(concerns(Op), book(G, W)).

contest_of(Name, #b{contest = C}) -> maps:get(Name, C, {0, 0}).

%% A read changes nothing, so a read of another client's own name is no contest.
concerns(#read{name = Name}) -> Name;
concerns(Op) -> name_in(Op).

name_in(Op) ->
    case sderl_op:name(Op) of
        {ok, Name} -> Name;
        none -> none
    end.

-doc "Records what an answer makes known. An impossible answer to a read is a violation.".
-spec learned(asked(), term(), #w{}) -> #w{}.
learned(#{op := #read{name = Name}, node := N, life := Life, group := G, who := Who} = O, V, W) ->
    case whose(N, Life, Who, Name) of
        {own, Own} -> read_own(Own, V, O, book(G, W), W);
        _ -> ok
    end,
    W;
learned(#{op := Op, node := N, group := G, life := Life, who := Who, contest := Contest}, V, W) ->
    #b{truth = T, contest = C, left = Left} = B = book(G, W),
    case whose(N, Life, Who, name_in(Op)) of
        {others, Own} ->
            {K, Out} = maps:get(Own, C),
            keep_book(G, B#b{contest = C#{Own := {K + 1, Out - 1}}}, W);
        {own, Own} ->
            %% Names of a node that left stay, and the node meets them if it is added again.
            Alone = Contest =:= contest_of(Own, B) andalso element(2, Contest) =:= 0
                andalso not is_map_key({N, Life}, Left),
            Is = case Alone of
                true -> truth(Op, V, Own, maps:get(Own, T, absent), W);
                false -> unknown
            end,
            keep_book(G, B#b{truth = T#{Own => Is}}, W);
        _ -> W
    end.

%% A read of an own name must agree with its client's last answer about it.
read_own(Own, {read, Shown}, #{node := N, life := Life, contest := Contest}, B, W) ->
    #b{truth = Truth, left = Left} = B,
    Alone = Contest =:= contest_of(Own, B) andalso element(2, Contest) =:= 0
        andalso not is_map_key({N, Life}, Left),
    Legal = case maps:get(Own, Truth, unknown) of
        {present, Pid} when Alone ->
            Shown =:= Pid orelse (Shown =:= undefined andalso not sderl_sim_world:alive(Pid, W));
        absent when Alone -> Shown =:= undefined;
        _ -> true
    end,
    Legal orelse sderl_sim_world:violation(read_own, [Own, maps:get(Own, Truth), {read, Shown}], W),
    ok;
read_own(_, _, _, _, _) -> ok.

truth(_, unknown, _, _, _) -> unknown;
%% It was never applied.
truth(_, {no, no_majority}, _, Was, _) -> Was;
truth(Op, yes, _, _, _) -> {present, sderl_op:registers(Op)};
truth(?UNREGISTER(_), ok, _, _, _) -> absent;
truth(?UNREGISTER_OF(_, P), ok, _, {present, P}, _) -> absent;
truth(_, {no, not_member}, _, _, _) -> unknown;
truth(?REGISTER(_, _) = Op, {no, _}, Own, absent, W) ->
    sderl_sim_world:violation(no_for_a_free_name, [Own, Op], W);
truth(#?REGISTER_WITH{} = Op, {no, _}, Own, absent, W) ->
    sderl_sim_world:violation(no_for_a_free_name, [Own, Op], W);
truth(#?REGISTER_OVER{dead = Dead} = Op, {no, _} = V, Own, {present, Dead}, W) ->
    sderl_sim_world:violation(no_for_a_successor, [Own, Op, V], W);
truth(#?RE_REGISTER{} = Op, {no, _} = V, Own, _, W) ->
    sderl_sim_world:violation(no_for_a_new_pid, [Own, Op, V], W);
truth(_, _, _, Was, _) -> Was.
