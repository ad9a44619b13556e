%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_death).
-moduledoc """
Deaths of registered processes in the simulated world: which nodes learn of one, and how. It does
what `sderl_watch` and the monitors of `sderl_group` do.
""".
-include("sderl_sim.hrl").

-export([dies/2, deaths/4, foreign_deaths/3, tell_loser/5]).

-import(sderl_sim_world, [in/3, node/2, member/3, rows/3, alive/2]).
-import(sderl_sim_mail, [mail/4]).

%% As `sderl_watch` does.
-define(TELL_AGAIN_MS, 5000).

-doc "A process dies.".
-spec dies(pid(), #w{}) -> #w{}.
dies(Pid, #w{dead = Dead} = W) -> died(node(Pid), Pid, W#w{dead = Dead#{Pid => []}}).

%% The monitor on its own node reports it.
died(N, Pid, W0) ->
    #n{groups = Gs} = node(N, W0),
    lists:foldl(fun(G, W) ->
        Had = [Row || _ := Row <- rows(N, G, W), sderl_row:pid(Row) =:= Pid],
        deaths(N, G, lists:sort(Had), W)
    end, W0, Gs).

-doc "Asks for the removal of those of these rows that belong to dead processes of the node.".
-spec deaths(node(), term(), [sderl_core:row()], #w{}) -> #w{}.
deaths(N, G, Rows, W) ->
    lists:foldl(fun(?ROW(Name, Pid, _, _, _), Acc) when node(Pid) =:= N ->
                        case alive(Pid, Acc) of
                            true -> Acc;
                            false -> mail(N, G, {op, none, ?UNREGISTER_OF(Name, Pid)}, Acc)
                        end;
                   (_, Acc) -> Acc
                end, W, Rows).

-doc """
An effect of a clash goes over a link, as soon as there is one (`sderl_watch`). Whether it arrived
is known of a kill, but not of a message.
""".
-spec tell_loser(node(), pos_integer(), term(), tuple(), #w{}) -> #w{}.
tell_loser(N, Life, G, {What, Pid, _} = Effect, W) ->
    Runs = sderl_sim_world:up(N, W) andalso (node(N, W))#n.life =:= Life,
    case alive(Pid, W) of
        true when Runs ->
            case is_reached(What, N, node(Pid), G, W) of
                true when What =:= notice -> sderl_sim_strict:told(G, Pid, W);
                true -> dies(Pid, W);
                false -> in(?TELL_AGAIN_MS, {tell_loser, N, Life, G, Effect}, W)
            end;
        %% The node that was to tell has ended, and no other one tells a process outside the group.
        true -> sderl_sim_strict:told(G, Pid, W);
        false -> W
    end.

is_reached(_, N, N, _, _) -> true;
is_reached(exit, N, M, _, W) -> sderl_sim_net:stands(N, M, W);
is_reached(notice, N, M, G, W) -> lists:member(M, sderl_sim_net:linked(N, G, W)).

-doc """
Pids whose names have another home are watched by the coordinator, over the links that it has.
""".
-spec foreign_deaths(node(), term(), #w{}) -> #w{}.
foreign_deaths(N, G, W) ->
    case member(N, G, W) of
        #m{p = #p{}, store = St} ->
            lists:foldl(fun({Name, Pid}, Acc) ->
                Linked = fun() -> lists:member(node(Pid), sderl_sim_net:linked(N, G, Acc)) end,
                case alive(Pid, Acc) andalso (node(Pid) =:= N orelse Linked()) of
                    true -> Acc;
                    false -> mail(N, G, {op, none, ?UNREGISTER_OF(Name, Pid)}, Acc)
                end
            end, W, lists:sort(sderl_sim_store:foreign(St)));
        _ -> W
    end.
