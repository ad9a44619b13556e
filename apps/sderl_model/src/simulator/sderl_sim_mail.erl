%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_mail).
-moduledoc """
The mailbox of a group's simulated process: what arrives, and the step that handles it.
""".
-include("sderl_sim.hrl").

-export([mail/4, beats/7]).

-import(sderl_sim_world, [rnd/3, in/3, node/2, keep/4, member/3]).

%% The state that a node's heartbeat reports is so much older than the heartbeat's arrival.
-define(BEAT_MS, 1500).

-doc "Puts something into the mailbox of the process, if there is one.".
-spec mail(node(), term(), term(), #w{}) -> #w{}.
mail(N, G, Item, W) ->
    case member(N, G, W) of
        #m{p = #p{mail = Mail, due = Due, id = Id, heard = Heard} = P} = M ->
            Next = M#m{p = P#p{mail = [Item | Mail], due = true, heard = unheard(Item, Heard)}},
            case Due of
                true -> keep(N, G, Next, W);
                false ->
                    #n{pace = {Min, Max}} = node(N, W),
                    {D, W1} = rnd(Min, Max, W),
                    in(D, {step, N, G, Id}, keep(N, G, Next, W1))
            end;
        _ -> W
    end.

unheard(_, Heard) when map_size(Heard) =:= 0 -> Heard;
unheard({msg, From, _}, Heard) -> maps:remove(From, Heard);
unheard({nodedown, From}, Heard) -> maps:remove(From, Heard);
unheard(_, Heard) -> Heard.

-doc """
A heartbeat. One without news comes late, with the node's own heartbeat (`sderl_group_beats`).
""".
-spec beats(node(), term(), pos_integer(), node(), tuple(), integer(), #w{}) -> #w{}.
beats(N, G, Id, From, Msg, At, W0) ->
    case member(N, G, W0) of
        #m{p = #p{id = Id, heard = #{From := Msg}}} ->
            mail(N, G, {beat, From, Msg, At - ?BEAT_MS}, W0);
        #m{p = #p{id = Id}} ->
            W = mail(N, G, {msg, From, Msg}, W0),
            #m{p = #p{heard = Heard} = P} = M = member(N, G, W),
            keep(N, G, M#m{p = P#p{heard = Heard#{From => Msg}}}, W);
        _ -> W0
    end.
