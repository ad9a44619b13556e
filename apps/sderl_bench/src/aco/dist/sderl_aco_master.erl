%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_master).
-moduledoc """
The master: one round after the other, and after each one a word to the starter with the best so far. When it dies the
starter starts another one with that, which goes on with the round that was not done.
""".

-export([init/1]).

-record(m, {
    starter :: pid(),
    life :: sderl_aco_life:life(),
    team :: sderl_aco_team:team(),
    rounds :: pos_integer(),
    next :: pos_integer(),
    serving = false :: boolean()
}).

-doc false.
-spec init(sderl_aco_life:start()) -> no_return().
init(#{conf := Conf, scope := Scope, boss := Starter, mode := Mode, seats := Seats, done := Done, best := Best} = Start) ->
    #{global_iterations := Rounds} = Conf,
    Life = sderl_aco_life:new(Start, Scope, Starter),
    Team = sderl_aco_team:start(Mode, sderl_aco_team:new(Conf, Seats, self(), Best)),
    loop(serve(#m{starter = Starter, life = Life, team = Team, rounds = Rounds, next = Done + 1}, Mode =:= again)).

serve(#m{serving = false, life = Life, team = Team} = M, Now) ->
    case Now orelse (sderl_aco_life:named(Life) andalso sderl_aco_team:ready(Team)) of
        true ->
            ok = sderl_aco_life:up(Life),
            next(M#m{serving = true});
        false ->
            M
    end;
serve(M, _) ->
    M.

next(#m{next = Next, rounds = Rounds} = M) when Next > Rounds -> M;
next(#m{next = Next, team = Team} = M) ->
    M#m{team = sderl_aco_team:run(Next, sderl_aco_team:best(Team), Team), next = Next + 1}.

loop(#m{team = Team0, life = Life0, starter = Starter} = M) ->
    receive
        {stop} ->
            sderl_aco_team:stop(Team0);
        Message ->
            case sderl_aco_life:handle(Message, Life0) of
                {_, Life} ->
                    loop(serve(M#m{life = Life}, false));
                unknown ->
                    case sderl_aco_team:handle(Message, Team0) of
                        {done, Team} ->
                            Starter ! {round, sderl_aco_team:number(Team), sderl_aco_team:best(Team)},
                            loop(next(M#m{team = Team}));
                        {{failed, _} = Failed, Team} ->
                            Starter ! Failed,
                            loop(M#m{team = Team});
                        {none, Team} ->
                            loop(serve(M#m{team = Team}, false));
                        unknown ->
                            loop(M)
                    end
            end
    end.
