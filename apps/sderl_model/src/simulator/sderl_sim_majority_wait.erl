%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_majority_wait).
-moduledoc """
The time in which a minority of a simulated group in majority mode must declare the majority lost,
and after which it keeps no client waiting (`bounded_waiting` of `m:sderl_sim_majority`).
""".
-include("sderl_sim.hrl").
-include("sderl_sim_majority.hrl").

-export([ticked/3, lease_ms/1, spare_ms/1]).

-import(sderl_sim_world, [violation/3, node/2, seen/3]).
-import(sderl_sim_majority_log, [of_group/2, keep_of/3, is_majority/2]).

%% For mailboxes, and because the two ends of a link learn of it at different times.
-define(SPARE_MS, 10_000).

aside_ms(W) ->
    Ms = sderl_sim_world:option(aside_ms, sderl_core:default(aside_ms), W),
    true = is_integer(Ms),
    Ms.

-doc "How long the names of a home that cannot be reached stay, ms (rule 34).".
-spec lease_ms(#w{}) -> pos_integer().
lease_ms(W) -> 3 * aside_ms(W) + 10 * sderl_core:default(tick_ms).

lost_ms(W) -> 3 * aside_ms(W) + 7 * sderl_core:default(tick_ms).

-doc "How much later than the protocol says something may happen, ms.".
-spec spare_ms(#w{}) -> pos_integer().
spare_ms(W) -> ?SPARE_MS + sderl_sim_world:slack(W).

-doc "A member has had a tick.".
-spec ticked(node(), term(), #w{}) -> #w{}.
ticked(_, _, #w{checks = false} = W) -> W;
ticked(N, G, W) ->
    case of_group(G, W) of
        none -> W;
        Q -> joined(N, G, Q, W)
    end.

joined(N, G, #q{electors = Electors, alone = Alone, lost = Lost} = Q, #w{now = Now} = W) ->
    #n{life = Life} = node(N, W),
    Reach = sderl_sim_net:reach(N, G, W),
    is_map_key({N, Life}, Lost) andalso bounded_waiting(N, G, map_get({N, Life}, Lost), W),
    case is_majority([M || M <- Electors, lists:member(M, Reach)], Electors) of
        true -> keep_of(G, Q#q{alone = maps:remove(N, Alone)}, W);
        false ->
            Since = maps:get(N, Alone, Now),
            Bound = lost_ms(W) + spare_ms(W),
            case min(Now - Since, sderl_sim_world:undisturbed(N, W)) > Bound of
                true -> declared_in_time(N, G, Since, W);
                false -> ok
            end,
            keep_of(G, Q#q{alone = Alone#{N => Since}}, W)
    end.

declared_in_time(N, G, Since, W) ->
    case seen(N, G, W) of
        #{majority := true} ->
            violation(bounded_waiting, [N, {no_majority_since, Since}, has_not_declared], W);
        _ -> bounded_waiting(N, G, Since, W)
    end.

%% A request of a client is answered in the same step; other messages may wait meanwhile.
bounded_waiting(N, G, Since, #w{now = Now, ops = Ops} = W) ->
    #n{life = Life} = node(N, W),
    Bound = spare_ms(W),
    Undisturbed = sderl_sim_world:undisturbed(N, W) > Bound,
    case [Id || Undisturbed, Id := #{node := ON, group := OG, life := OL, since := At} = O <- Ops,
                ON =:= N, OG =:= G, OL =:= Life,
                not is_map_key(answer, O), not is_map_key(given_up, O),
                Now - max(At, Since) > Bound] of
        [] -> ok;
        Ids ->
            Waiting = {waiting, lists:sort(Ids)},
            violation(bounded_waiting, [N, {no_majority_since, Since}, Waiting], W)
    end.
