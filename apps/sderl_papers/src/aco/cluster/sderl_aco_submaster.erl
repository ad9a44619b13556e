%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_submaster).
-moduledoc """
A submaster: passes rounds on to the submasters or colonies that it owns, and reports the best of
their answers.

When it dies its supervisor starts another one, which goes on with the live supervisors and members
below, and is asked by its parent for the missing answer; so the colonies' work of the round is not
lost.
""".

-export([init/1]).

-record(s, {
    key :: sderl_aco_tree:key(),
    life :: sderl_aco_life:life(),
    team :: sderl_aco_team:team(),
    %% Whether the round has been answered.
    answered = true :: boolean()
}).

-doc false.
-spec init(sderl_aco_life:start()) -> no_return().
init(#{conf := Conf, key := Key, mode := Mode, seats := Seats} = Start) ->
    Life = sderl_aco_life:new(Start),
    Team = sderl_aco_team:start(Mode, sderl_aco_team:new(Conf, Seats, self(), none)),
    loop(serve(Mode, #s{key = Key, life = Life, team = Team})).

serve(Mode, #s{life = Life, team = Team} = S) ->
    S#s{life = sderl_aco_life:serve(Mode, sderl_aco_team:ready(Team), Life)}.

loop(#s{team = Team, life = Life0} = S) ->
    receive
        {stop} ->
            sderl_aco_team:stop(Team);
        {run, Number, Update} ->
            loop(run(Number, Update, S));
        Message ->
            case sderl_aco_life:handle(Message, Life0) of
                {_, Life} -> loop(serve(first, S#s{life = Life}));
                unknown -> loop(serve(first, below(Message, S)))
            end
    end.

run(Number, Update, #s{team = Team} = S) ->
    case sderl_aco_team:number(Team) of
        Before when Before < Number ->
            S#s{team = sderl_aco_team:run(Number, Update, Team), answered = false};
        Number when S#s.answered -> answer(S);
        _ -> S
    end.

below(Message, #s{team = Team0, life = Life} = S) ->
    case sderl_aco_team:handle(Message, Team0) of
        {done, Team} ->
            answer(S#s{team = Team, answered = true});
        {{failed, _} = Failed, Team} ->
            ok = sderl_aco_life:tell(Failed, Life),
            S#s{team = Team};
        {none, Team} ->
            S#s{team = Team};
        unknown ->
            S
    end.

answer(#s{life = Life, key = Key, team = Team} = S) ->
    ok = sderl_aco_life:tell({answer, sderl_aco_team:number(Team), Key, sderl_aco_team:best(Team)},
                             Life),
    S.
