%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_master).
-moduledoc """
The master: does one round after the other, and after each one tells the starter the best so far.
When it dies the starter starts another one with that best, which goes on with the round that was
not done.
""".

-export([init/1]).

-record(m, {
    life :: sderl_aco_life:life(),
    team :: sderl_aco_team:team(),
    rounds :: pos_integer(),
    next :: pos_integer()
}).

-doc false.
-spec init(sderl_aco_life:start()) -> no_return().
init(#{conf := Conf, mode := Mode, seats := Seats, done := Done, best := Best} = Start) ->
    #{global_iterations := Rounds} = Conf,
    Life = sderl_aco_life:new(Start),
    Team = sderl_aco_team:start(Mode, sderl_aco_team:new(Conf, Seats, self(), Best)),
    loop(serve(Mode, #m{life = Life, team = Team, rounds = Rounds, next = Done + 1})).

%% Its first round begins when it serves.
serve(Mode, #m{life = Life0, team = Team} = M) ->
    Life = sderl_aco_life:serve(Mode, sderl_aco_team:ready(Team), Life0),
    case {sderl_aco_life:serves(Life0), sderl_aco_life:serves(Life)} of
        {false, true} -> next(M#m{life = Life});
        _ -> M#m{life = Life}
    end.

next(#m{next = Next, rounds = Rounds} = M) when Next > Rounds -> M;
next(#m{next = Next, team = Team} = M) ->
    M#m{team = sderl_aco_team:run(Next, sderl_aco_team:best(Team), Team), next = Next + 1}.

loop(#m{team = Team, life = Life0} = M) ->
    receive
        {stop} ->
            sderl_aco_team:stop(Team);
        Message ->
            case sderl_aco_life:handle(Message, Life0) of
                {_, Life} -> loop(serve(first, M#m{life = Life}));
                unknown -> loop(serve(first, below(Message, M)))
            end
    end.

below(Message, #m{team = Team0, life = Life} = M) ->
    case sderl_aco_team:handle(Message, Team0) of
        {done, Team} ->
            ok = sderl_aco_life:tell({round, sderl_aco_team:number(Team),
                                      sderl_aco_team:best(Team)}, Life),
            next(M#m{team = Team});
        {{failed, _} = Failed, Team} ->
            ok = sderl_aco_life:tell(Failed, Life),
            M#m{team = Team};
        {none, Team} ->
            M#m{team = Team};
        unknown ->
            M
    end.
