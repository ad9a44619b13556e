%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_supervisor).
-moduledoc """
The supervisor of a seat: starts the submasters or colonies of one node, and starts those again that die. They answer to the parent, a
master or submaster, mostly on another node, which starts the supervisor again when that dies.

A new supervisor finds what lives on its node by the names, and goes on with that. When the parent was replaced, it tells all of the
new one.
""".

-export([init/1, seats/2]).

-record(s, {
    parent :: pid(),
    life :: sderl_aco_life:life(),
    wards :: sderl_aco_wards:wards(),
    up :: boolean()
}).

-doc "How the owner of seats starts what is there: supervisors, or, without recovery, the members themselves.".
-spec seats([sderl_aco_tree:seat()], sderl_aco_life:conf()) -> [{sderl_aco_tree:key(), sderl_aco_wards:spec()}].
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
            {submaster, Seats} -> {Key, #{module => sderl_aco_submaster, node => Node, group => Group, args => #{seats => Seats}}};
            {colony, Number} -> {Key, #{module => sderl_aco_colony_server, node => Node, group => Group, args => #{number => Number}}}
        end
     || {Key, What} <- Members
    ].

-doc false.
-spec init(sderl_aco_life:start()) -> no_return().
init(#{conf := Conf, scope := Scope, boss := Boss, parent := Parent, mode := Mode, seat := Seat} = Start) ->
    Life = sderl_aco_life:new(Start, Scope, Boss),
    Wards = sderl_aco_wards:start(Mode, sderl_aco_wards:new(Conf, Parent, members(Seat))),
    loop(up(#s{parent = Parent, life = Life, wards = Wards, up = false}, Mode =:= again)).

%% In the set-up, once it has its name.
up(#s{life = Life, up = false} = S, Now) ->
    case Now orelse sderl_aco_life:named(Life) of
        true ->
            ok = sderl_aco_life:up(Life),
            S#s{up = true};
        false ->
            S
    end;
up(S, _) ->
    S.

loop(#s{life = Life0, wards = Wards0, parent = Parent} = S) ->
    receive
        {stop} ->
            sderl_aco_wards:tell({stop}, Wards0);
        {failed, _} = Failed ->
            Parent ! Failed,
            loop(S);
        Message ->
            case sderl_aco_life:handle(Message, Life0) of
                {{adopted, NewParent}, Life} ->
                    Wards = sderl_aco_wards:adopt(NewParent, Wards0),
                    loop(up(S#s{life = Life, wards = Wards, parent = NewParent, up = false}, true));
                {_, Life} ->
                    loop(up(S#s{life = Life}, false));
                unknown ->
                    case sderl_aco_wards:handle(Message, Wards0) of
                        {{failed, _} = Failed, Wards} ->
                            Parent ! Failed,
                            loop(S#s{wards = Wards});
                        {none, Wards} ->
                            loop(S#s{wards = Wards});
                        unknown ->
                            loop(S)
                    end
            end
    end.
