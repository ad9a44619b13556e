%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_settle_tests).
-moduledoc """
Many clashes that are settled in one batch: what the batch says of each, and how long that takes.
""".
-include_lib("eunit/include/eunit.hrl").
-include("../../sderl/src/core/sderl_core.hrl").

%% The store that the decisions read.
-export([lookup/2, name_of/2]).

lookup({Rows, _}, Name) -> maps:get(Name, Rows, none).

name_of({_, Names}, Pid) ->
    case Names of
        #{Pid := Name} -> {ok, Name};
        _ -> none
    end.

%% The time is printed and not asserted; with eight times as many clashes it should be some eight times as long.
many_clashes_are_settled_in_one_batch_test_() ->
    {timeout, 120, fun() ->
        [settled(Count) || Count <- [1000, 8000]]
    end}.

settled(Count) ->
    {Clashes, Pids} = lists:mapfoldl(fun(Name, Acc) ->
        {Ours, Theirs} = {pid(2 * Name), pid(2 * Name + 1)},
        {{Name, row(Name, Ours, 'n1@t', 1), row(Name, Theirs, 'n2@t', 2)}, Acc#{Ours => Name}}
    end, #{}, lists:seq(1, Count)),
    Store = {#{Name => A || {Name, A, _} <- Clashes}, Pids},
    %% Each third is kept, replaced, lost by both.
    Keep = fun(Name, A, B) -> element(Name rem 3 + 1, {element(2, A), element(2, B), none}) end,
    Settles = [{settle, Name, A, B, Keep(Name, A, B), []} || {Name, A, B} <- Clashes],
    S = (state())#s{specials = lists:reverse(Settles)},
    D = S#s.d,
    S1 = S#s{d = D#d{clashes = #{Name => {A, B} || {Name, A, B} <- Clashes}}},
    {Micros, {Items, _, _, _}} = timer:tc(fun() -> sderl_core_decide:batch(?MODULE, Store, S1) end),
    io:format(user, "~b clashes settled in ~b ms~n", [Count, Micros div 1000]),
    Settled = #{Name => {Lost, Row} || {settle, Name, Lost, Row, _} <- Items},
    ?assertEqual(Count, length([x || {settle, _, _, _, _} <- Items])),
    lists:foreach(fun({Name, A, B}) ->
        {PidA, PidB} = {element(2, A), element(2, B)},
        Expected = case Keep(Name, A, B) of
            PidA -> {[PidB], setelement(4, A, new)};
            PidB -> {[PidA], setelement(4, B, new)};
            none -> {[PidA, PidB], none}
        end,
        ?assertEqual(Expected, map_get(Name, Settled))
    end, Clashes).

%% Two resolvers' words on one name: the first counts.
a_name_is_settled_once_test() ->
    A = row(x, pid(1), 'n1@t', 1),
    B = row(x, pid(2), 'n2@t', 2),
    S = state(),
    D = S#s.d,
    Specials = [{settle, x, A, B, Keep, []} || Keep <- [pid(1), pid(2)]],
    S1 = S#s{specials = lists:reverse(Specials), d = D#d{clashes = #{x => {A, B}}}},
    {Items, _, _, _} = sderl_core_decide:batch(?MODULE, {#{x => A}, #{pid(1) => x}}, S1),
    {Loser, Winner} = {pid(2), setelement(4, A, new)},
    ?assertMatch([{settle, x, [Loser], Winner, []}], Items).

state() ->
    E = {1, 'n1@t'},
    Mem = sderl_membership:new(['n1@t', 'n2@t']),
    #s{group = g, uid = <<1>>, self = 'n1@t', role = coord,
       d = #d{mem = Mem, sid = 1, epoch = E, lineage = E, view = #{'n1@t' => live, 'n2@t' => {{0, 'n2@t'}, 1}}}}.

row(Name, Pid, Home, Seq) -> {Name, Pid, Home, {{1, Home}, Seq}, []}.

%% Pids that nobody runs.
pid(I) -> list_to_pid(lists:concat(["<0.", 1_000_000 + I, ".0>"])).
