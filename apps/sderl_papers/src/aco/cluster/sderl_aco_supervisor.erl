%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_supervisor).
-moduledoc """
The supervisor of a seat: starts the submasters or colonies of one node, and restarts those that
die. They answer to the parent, a master or submaster, usually on another node, which restarts the
supervisor when that dies.

A new supervisor finds the live processes on its node by their names, and takes them over. When the
parent was replaced, it tells its processes the new one.
""".

-export([init/1, seats/2]).

-record(s, {
    life :: sderl_aco_life:life(),
    wards :: sderl_aco_wards:wards()
}).

-doc """
What the owner of seats starts on them: supervisors, or, without recovery, the members themselves.
""".
-spec seats([sderl_aco_tree:seat()], sderl_aco_life:conf()) ->
    [{sderl_aco_tree:key(), sderl_aco_wards:spec()}].
seats(Seats, #{recovery := true}) ->
    [
        {Key, #{module => ?MODULE, node => Node, group => Group, args => #{seat => Seat}}}
     || #{supervisor := Key, node := Node, group := Group} = Seat <- Seats
    ];
seats(Seats, #{recovery := false}) ->
    lists:append([members(Seat) || Seat <- Seats]).

members(#{node := Node, group := Group, members := Members}) ->
    [
        case What of
            {submaster, Seats} ->
                {Key, #{module => sderl_aco_submaster, node => Node, group => Group,
                        args => #{seats => Seats}}};
            {colony, Number} ->
                {Key, #{module => sderl_aco_colony_server, node => Node, group => Group,
                        args => #{number => Number}}}
        end
     || {Key, What} <- Members
    ].

-doc false.
-spec init(sderl_aco_life:start()) -> no_return().
init(#{conf := Conf, parent := Parent, mode := Mode, seat := Seat} = Start) ->
    Life = sderl_aco_life:new(Start),
    Wards = sderl_aco_wards:start(Mode, sderl_aco_wards:new(Conf, Parent, members(Seat))),
    %% The processes below tell the parent themselves when they are ready.
    loop(#s{life = sderl_aco_life:serve(Mode, true, Life), wards = Wards}).

loop(#s{life = Life0, wards = Wards0} = S) ->
    receive
        {stop} ->
            sderl_aco_wards:tell({stop}, Wards0);
        Message ->
            case sderl_aco_life:handle(Message, Life0) of
                {{adopted, Parent}, Life} ->
                    loop(S#s{life = Life, wards = sderl_aco_wards:adopt(Parent, Wards0)});
                {none, Life} -> loop(S#s{life = sderl_aco_life:serve(first, true, Life)});
                unknown -> loop(ward(Message, S))
            end
    end.

ward(Message, #s{wards = Wards0, life = Life} = S) ->
    case sderl_aco_wards:handle(Message, Wards0) of
        {{failed, _} = Failed, Wards} ->
            ok = sderl_aco_life:tell(Failed, Life),
            S#s{wards = Wards};
        {none, Wards} ->
            S#s{wards = Wards};
        unknown ->
            S
    end.
