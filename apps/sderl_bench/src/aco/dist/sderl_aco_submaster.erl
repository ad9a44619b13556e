%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_submaster).
-moduledoc """
A submaster: hands rounds down to the submasters or colonies that it owns, and the best of their answers up.

When it dies its supervisor starts another one, which goes on with the live supervisors and members below, and is asked by its parent for
the answer that is out; so what colonies have done of the round is not lost.
""".

-export([init/1]).

-record(s, {
    key :: sderl_aco_tree:key(),
    parent :: pid(),
    life :: sderl_aco_life:life(),
    team :: sderl_aco_team:team(),
    serving :: boolean(),
    %% Whether the round is answered.
    answered = true :: boolean()
}).

-doc false.
-spec init(sderl_aco_life:start()) -> no_return().
init(#{conf := Conf, key := Key, scope := Scope, boss := Boss, parent := Parent, mode := Mode, seats := Seats} = Start) ->
    Life = sderl_aco_life:new(Start, Scope, Boss),
    Team = sderl_aco_team:start(Mode, sderl_aco_team:new(Conf, Seats, self(), none)),
    loop(serve(#s{key = Key, parent = Parent, life = Life, team = Team, serving = false}, Mode =:= again)).

serve(#s{serving = false, life = Life, team = Team, parent = Parent, key = Key} = S, Now) ->
    case Now orelse (sderl_aco_life:named(Life) andalso sderl_aco_team:ready(Team)) of
        true ->
            ok = sderl_aco_life:up(Life),
            Parent ! {serving, Key, self()},
            S#s{serving = true};
        false ->
            S
    end;
serve(S, _) ->
    S.

loop(#s{team = Team, life = Life0} = S) ->
    receive
        {stop} ->
            sderl_aco_team:stop(Team);
        {run, Number, Update, From} ->
            loop(run(Number, Update, S#s{parent = From}));
        Message ->
            case sderl_aco_life:handle(Message, Life0) of
                {{adopted, Parent}, Life} -> loop(serve(S#s{life = Life, parent = Parent, serving = false}, true));
                {_, Life} -> loop(serve(S#s{life = Life}, false));
                unknown -> loop(serve(below(Message, S), false))
            end
    end.

run(Number, Update, #s{team = Team} = S) ->
    case sderl_aco_team:number(Team) of
        Before when Before < Number -> S#s{team = sderl_aco_team:run(Number, Update, Team), answered = false};
        Number when S#s.answered -> answer(S);
        _ -> S
    end.

below(Message, #s{team = Team0, parent = Parent} = S) ->
    case sderl_aco_team:handle(Message, Team0) of
        {done, Team} ->
            answer(S#s{team = Team, answered = true});
        {{failed, _} = Failed, Team} ->
            Parent ! Failed,
            S#s{team = Team};
        {none, Team} ->
            S#s{team = Team};
        unknown ->
            S
    end.

answer(#s{parent = Parent, key = Key, team = Team} = S) ->
    Parent ! {answer, sderl_aco_team:number(Team), Key, sderl_aco_team:best(Team)},
    S.
