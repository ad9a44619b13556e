%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_team).
-moduledoc """
The common part of a master and a submaster: they own seats, and collect the answers of the members
in each round.

A member that begins to serve, or has a new parent, says so with `{serving, Key, Pid}` (with
`{up, Key, Pid}` where its parent is its boss). If its answer is still missing it is asked again:
it, or this parent, has replaced a dead process. A member ignores the question about a round that it
is working on, and repeats its answer for a round that it has done.
""".

-export([new/4, start/2, run/3, handle/2, ready/1, best/1, number/1, stop/1]).
-export_type([team/0]).

-record(team, {
    wards :: sderl_aco_wards:wards(),
    members :: #{sderl_aco_tree:key() => pid() | undefined},
    round :: sderl_aco_round:state()
}).
-opaque team() :: #team{}.

-doc "The caller owns these seats; nothing is started yet.".
-spec new(sderl_aco_life:conf(), [sderl_aco_tree:seat()], Parent :: pid(),
          sderl_aco_round:best()) -> team().
new(Conf, Seats, Self, Best) ->
    #team{
        wards = sderl_aco_wards:new(Conf, Self, sderl_aco_supervisor:seats(Seats, Conf)),
        members = #{Key => undefined || #{members := Members} <- Seats, {Key, _} <- Members},
        round = sderl_aco_round:new(Best)
    }.

-doc "Starts the processes of the seats.".
-spec start(sderl_aco_life:mode(), team()) -> team().
start(Mode, #team{wards = Wards} = T) -> T#team{wards = sderl_aco_wards:start(Mode, Wards)}.

-doc "Begins a round.".
-spec run(pos_integer(), Update :: sderl_aco_round:best(), team()) -> team().
run(Number, Update, #team{members = Members, round = Round0} = T) ->
    Round = sderl_aco_round:start(Number, maps:keys(Members), Update, Round0),
    lists:foreach(fun(Pid) -> ask(Pid, Round) end, [Pid || _ := Pid <- Members, is_pid(Pid)]),
    T#team{round = Round}.

ask(Pid, Round) ->
    Pid ! {run, sderl_aco_round:number(Round), sderl_aco_round:update(Round)},
    ok.

-doc "Handles a message, if it is for a team; `done`: it was the last answer of the round.".
-spec handle(Message :: term(), team()) -> {none | done | {failed, term()}, team()} | unknown.
handle({serving, Key, Pid}, T) ->
    {none, serving(Key, Pid, T)};
handle({up, Key, Pid} = Message, #team{wards = Wards0} = T) ->
    {none, Wards} = sderl_aco_wards:handle(Message, Wards0),
    {none, serving(Key, Pid, T#team{wards = Wards})};
handle({answer, Number, Key, Solution}, #team{round = Round0} = T) ->
    {Done, Round} = sderl_aco_round:answer(Number, Key, Solution, Round0),
    {case Done of done -> done; more -> none end, T#team{round = Round}};
handle({failed, Reason}, T) ->
    {{failed, Reason}, T};
handle(Message, #team{wards = Wards0} = T) ->
    case sderl_aco_wards:handle(Message, Wards0) of
        unknown -> unknown;
        {Event, Wards} -> {Event, T#team{wards = Wards}}
    end.

%% A supervisor is not a member.
serving(Key, Pid, #team{members = Members, round = Round} = T) when is_map_key(Key, Members) ->
    _ = sderl_aco_round:waits_for(Key, Round) andalso ask(Pid, Round),
    T#team{members = Members#{Key := Pid}};
serving(_, _, T) ->
    T.

-doc "Whether all processes below serve.".
-spec ready(team()) -> boolean().
ready(#team{wards = Wards, members = Members}) ->
    lists:all(fun is_pid/1, maps:values(Members)) andalso sderl_aco_wards:all_up(Wards).

-doc "The best solution so far.".
-spec best(team()) -> sderl_aco_round:best().
best(#team{round = Round}) -> sderl_aco_round:best(Round).

-doc "The number of the round.".
-spec number(team()) -> non_neg_integer().
number(#team{round = Round}) -> sderl_aco_round:number(Round).

-doc "Ends the processes of the seats.".
-spec stop(team()) -> ok.
stop(#team{wards = Wards}) -> sderl_aco_wards:tell({stop}, Wards).
