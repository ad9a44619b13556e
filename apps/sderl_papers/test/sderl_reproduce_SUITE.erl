%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_SUITE).
-moduledoc "A reproduction on four real nodes: interrupted, continued, and read.".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([resumed/1, failing/1, applications/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [resumed, failing | sderl_ct:in_long_runs([applications])].

resumed(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "reproduced"),
    {ok, Scale} = sderl_reproduce_scale:scale(test, fun sderl_fleet:fits/1),
    Request = #{claims => [sderl_claim_c3], scale => Scale#{runs := 1}, out => Dir,
                budget_s => infinity, command => <<"again">>},
    {ok, #{jobs := Wanted}, 0} = sderl_reproduce_run:planned(Request),
    ?assertEqual(6, length(Wanted)),

    %% The run is killed as a signal to the program would kill it: the first point is there, and no
    %% node of the second is left.
    Test = self(),
    {Runner, Monitor} = spawn_monitor(fun() ->
        sderl_reproduce_run:run(Request, fun(Line) -> Test ! {said, self(), Line}, ok end)
    end),
    receive
        {said, Runner, First} -> ct:log("~ts", [First]);
        {'DOWN', Monitor, process, Runner, Why} -> error({ended, Why})
    end,
    ok = sderl_fleet:await(fun() -> fleets() =/= [] end, 60_000),
    true = exit(Runner, kill),
    receive {'DOWN', Monitor, process, Runner, killed} -> ok end,
    ok = sderl_fleet:await(fun() -> fleets() =:= [] end, 60_000),

    {ok, _, [Measured | _] = Before} = sderl_reproduce_store:read(Dir),
    ?assertMatch(#{experiment := <<"debench">>, metrics := #{<<"global">> := _, <<"took_s">> := _}},
                 Measured),
    {ok, #{ended := undefined}, [#{id := <<"C3">>}]} = sderl_reproduce:pages(Dir),
    {ok, #{jobs := Missing}, _} = sderl_reproduce_run:planned(Request),
    ?assertEqual(6, length(Missing) + length(Before)),

    %% An incomplete line is ignored.
    ok = file:write_file(filename:join(Dir, "points.jsonl"), "{\"experiment\":", [append]),
    ?assertEqual(length(Missing), run(Request)),
    {ok, _, Points} = sderl_reproduce_store:read(Dir),
    ?assertEqual(Before, lists:sublist(Points, length(Before))),
    ?assertEqual(
        lists:sort([sderl_claim_points:key(Point) || #{point := Point} <- Wanted]),
        lists:sort([sderl_claim_points:key(Point) || Point <- Points])
    ),
    ?assertEqual(0, run(Request)),
    ?assertEqual({ok, Points}, {ok, element(3, sderl_reproduce_store:read(Dir))}),

    {ok, Run, [Page]} = sderl_reproduce:pages(Dir),
    ct:log("~tp~n~tp", [Run, Page]),
    ?assertMatch(#{scale := <<"test">>, claims := [<<"C3">>], points := 6, ended := <<_/binary>>,
                   left_out := [], failed := []}, Run),
    %% Four nodes are too few to show anything, and no verdict says that they do.
    ?assertMatch(#{verdict := not_shown, command := <<"again">>,
                   tables := [#{rows := [_, _, _, _, _, _]}]}, Page),
    ?assertMatch(<<_/binary>>, unicode:characters_to_binary(sderl_reproduce:markdown(Run, [Page]))).

%% Points that cannot be measured are reported, the others are kept, and the next command tries
%% again.
failing(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "failing"),
    {ok, #{orbit := Orbit} = Scale} = sderl_reproduce_scale:scale(test, fun sderl_fleet:fits/1),
    Request = fun(Generators) ->
        #{
            claims => [sderl_claim_c4], out => Dir, budget_s => infinity, command => <<"again">>,
            scale => Scale#{runs := 1,
                            orbit := Orbit#{generators := Generators, nodes := [1], library := []}}
        }
    end,
    Say = fun(Line) -> ct:log("~ts", [Line]) end,
    {error, Text} = sderl_reproduce_run:run(Request(g9), Say),
    ?assertEqual(
        <<"2 points could not be measured, such as orbit stock, 1 node; the same command tries "
          "them again as far as there is time, which --budget-min gives">>,
        unicode:characters_to_binary(Text)
    ),
    {ok, #{points := 0, failed := [#{claim := <<"C4">>, reason := Reason}, _]},
     [#{verdict := not_shown, notes := Notes}]} = sderl_reproduce:pages(Dir),
    ?assertNotEqual(nomatch, string:find(Reason, "there are no generators g9")),
    ?assertMatch([_, _], [Note || Note <- Notes, string:find(Note, Reason) =/= nomatch]),
    {ok, #{jobs := [_, _], failed := []}, _} = sderl_reproduce_run:planned(Request(g9)),
    ok = sderl_reproduce_run:run(Request(g12345), Say),
    {ok, #{points := 2, failed := []}, [_]} = sderl_reproduce:pages(Dir).

%% Ant colonies on one node and on many, and the messenger: what is measured is what the pages need.
applications(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "applications"),
    {ok, Scale} = sderl_reproduce_scale:scale(test, fun sderl_fleet:fits/1),
    ok = sderl_reproduce_run:run(
        #{claims => [sderl_claim_c5, sderl_claim_c7, sderl_claim_c8], scale => Scale#{runs := 1},
          out => Dir, budget_s => infinity, command => <<"again">>},
        fun(Line) -> ct:log("~ts", [Line]) end
    ),
    {ok, #{points := 7, failed := []}, [Quality, Traffic, Messenger]} =
        sderl_reproduce:pages(Dir),
    ct:log("~ts", [sderl_reproduce:text([Quality, Traffic, Messenger])]),
    %% There are too few points to judge by.
    [?assertMatch(#{verdict := not_shown}, Page) || Page <- [Quality, Traffic, Messenger]],
    ?assertMatch(#{plots := [#{series := [#{points := [#{x := 1}, #{x := 2}]}]}, _],
                   tables := [#{rows := [_, [<<"mean">>, _, _]]}]}, Quality),
    ?assertMatch(#{plots := [_, _, _, _], tables := [#{rows := [_, _, _]}]}, Traffic),
    ?assertMatch(#{plots := [#{series := [#{points := [#{x := 2}]}, #{points := [#{x := 2}]}]} | _],
                   tables := [#{rows := [_, _]}]}, Messenger).

%% Returns the number of points that the run said it measured.
run(Request) ->
    Lines = counters:new(1, []),
    ok = sderl_reproduce_run:run(Request, fun(Line) ->
        ct:log("~ts", [Line]),
        case string:find(unicode:characters_to_list(Line), "global operations, p50") of
            nomatch -> ok;
            _ -> counters:add(Lines, 1, 1)
        end
    end),
    counters:get(Lines, 1).

fleets() ->
    [Pid
     || Pid <- processes(), proc_lib:translate_initial_call(Pid) =:= {sderl_fleet_server, init, 1}].
