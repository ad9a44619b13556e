%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model_choice).
-moduledoc """
The choices that the rules of `m:sderl_model` leave open: what may be chosen, and the result.
""".

-export([options/2, choose/3]).

-doc "See `sderl_model:options/2`.".
-spec options(sderl_model_state:choice(), sderl_model_state:state()) -> [term()].
options({clash, _, _, _}, #{resolver := notify_all_name}) -> [none];
options({clash, _, _, Entries}, _) -> [Pid || #{pid := Pid} <- Entries];
options({twice, _, _, Names}, _) -> Names;
options({orphan, _, _, _}, _) -> [keep, lose].

-doc "See `sderl_model:choose/3`.".
-spec choose(sderl_model_state:choice(), Chosen :: term(), sderl_model_state:state()) ->
    sderl_model_state:state().
choose(Choice, Chosen, #{open := Open} = S0) ->
    S = S0#{open := Open -- [Choice]},
    case lists:member(Choice, Open) andalso lists:member(Chosen, options(Choice, S)) of
        true -> sderl_model_state:told(chosen(Choice, Chosen, S));
        false -> error({no_such_choice, Choice, Chosen})
    end.

%% The loser exits, or gets a message (global's resolvers; INTERNALS, rule 18).
chosen({clash, [M | _], Name, Entries}, Keep, #{resolver := Resolver} = S0) ->
    Others = [Pid || #{pid := Pid} <- Entries, Pid =/= Keep],
    Ns = sderl_model_names:drop(Name, sderl_model_state:names(undefined, M, S0)),
    S = sderl_model_state:put_names(
        undefined, M, maps:merge(Ns, #{Name => E || #{pid := P} = E <- Entries, P =:= Keep}), S0
    ),
    case Resolver of
        random_exit_name -> lists:foldl(fun sderl_model_state:die/2, S, Others);
        random_notify_name -> notices([{P, {global_name_conflict, Name}} || P <- Others], S);
        notify_all_name ->
            notices([{P, {global_name_conflict, Name, Q}} || P <- Others, Q <- Others, Q =/= P], S)
    end;
chosen({twice, [M | _], _, Names}, Keep, S) ->
    Ns = lists:foldl(fun sderl_model_names:drop/2, sderl_model_state:names(undefined, M, S),
                     lists:delete(Keep, Names)),
    sderl_model_state:put_names(undefined, M, Ns, S);
chosen({orphan, _, _, _}, keep, S) -> S;
chosen({orphan, G, [M | _], Name}, lose, S) ->
    sderl_model_state:put_names(G, M,
                                sderl_model_names:drop(Name, sderl_model_state:names(G, M, S)), S).

notices(List, S) ->
    lists:foldl(fun({{pid, N, _} = Pid, Msg}, Acc) -> sderl_model_state:sent(N, Pid, Msg, Acc) end,
                S, List).
