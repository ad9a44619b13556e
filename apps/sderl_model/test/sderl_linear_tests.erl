%% SPDX-License-Identifier: Apache-2.0
-module(sderl_linear_tests).

-include_lib("proper/include/proper.hrl").
-export([change/2, explained/2]).
-include_lib("eunit/include/eunit.hrl").

-define(TAKEN, {no, name_or_pid_already_registered}).

%% ---------------------------------------------------- histories, {Node, Start, Stop, Call, Answer}

h(Ops) -> [#{node => N, start => S, stop => E, call => C, answer => A} || {N, S, E, C, A} <- Ops].

check(Ops) -> sderl_linear:check(h(Ops), sderl_linear_machine:options()).

legal(Ops) -> ?assertEqual(ok, check(Ops)).

%% The history is refused: the last answer, that of `Call`, is impossible, and `Possible` are the
%% answers that it could have had.
illegal(Call, Possible, Ops) ->
    {refused, #{last := #{call := Last}, possible := Could} = Refusal} = check(Ops),
    ?assertEqual({Call, Possible}, {Last, Could}),
    ?assert(is_binary(unicode:characters_to_binary(sderl_linear_text:format(Refusal)))).

p(I) -> {a, I}.

alone_test() ->
    legal([]),
    legal([{a, 0, 1, {register, x, p(1)}, yes}, {b, 2, 3, {whereis, x}, p(1)},
           {b, 4, 5, {register, x, p(2)}, ?TAKEN},
           {b, 6, 7, {register, y, p(1)}, ?TAKEN}, {a, 8, 9, {re_register, x, p(2)}, yes},
           {b, 10, 11, {register, y, p(1)}, yes},
           {b, 12, 13, {unregister, x}, ok}, {a, 14, 15, {unregister, x}, ok},
           {c, 16, 17, {whereis, x}, undefined}]).

answered_is_everywhere_test() ->
    illegal({whereis, x}, [p(1)],
            [{a, 0, 1, {register, x, p(1)}, yes}, {b, 2, 3, {whereis, x}, undefined}]),
    illegal({whereis, x}, [undefined],
            [{a, 0, 1, {register, x, p(1)}, yes}, {a, 2, 3, {unregister, x}, ok},
             {b, 4, 5, {whereis, x}, p(1)}]),
    %% A registration that a refusal tells of is seen everywhere, too.
    illegal({whereis, x}, [p(1)],
            [{a, 0, 100, {register, x, p(1)}, yes}, {b, 2, 3, {register, x, p(2)}, ?TAKEN},
             {c, 4, 5, {whereis, x}, undefined}]).

unanswered_may_be_seen_test() ->
    legal([{a, 0, 9, {register, x, p(1)}, yes}, {b, 2, 3, {whereis, x}, p(1)},
           {c, 4, 5, {whereis, x}, undefined}]),
    %% A node that has shown it must go on showing it.
    illegal({whereis, x}, [p(1)],
            [{a, 0, 9, {register, x, p(1)}, yes}, {b, 2, 3, {whereis, x}, p(1)},
             {b, 4, 5, {whereis, x}, undefined}]),
    legal([{a, 0, 9, {register, x, p(1)}, yes}, {b, 2, 6, {whereis, x}, p(1)},
           {b, 4, 5, {whereis, x}, undefined}]),
    %% It must not be seen before it is called.
    illegal({whereis, x}, [undefined],
            [{a, 5, 9, {register, x, p(1)}, yes}, {b, 2, 3, {whereis, x}, p(1)}]).

one_order_test() ->
    Two = [{a, 0, 9, {register, x, p(1)}, yes}, {b, 0, 9, {register, y, p(2)}, yes}],
    legal(Two ++ [{c, 1, 2, {whereis, x}, p(1)}, {c, 3, 4, {whereis, y}, undefined},
                  {b, 1, 2, {whereis, x}, p(1)}, {b, 3, 4, {whereis, y}, undefined}]),
    illegal({whereis, x}, [p(1)],
            Two ++ [{c, 1, 2, {whereis, x}, p(1)}, {c, 3, 4, {whereis, y}, undefined},
                    {b, 1, 2, {whereis, y}, p(2)}, {b, 3, 5, {whereis, x}, undefined}]).

races_test() ->
    legal([{a, 0, 9, {register, x, p(1)}, ?TAKEN}, {b, 0, 9, {register, x, p(2)}, yes}]),
    illegal({register, x, p(2)}, [?TAKEN],
            [{a, 0, 8, {register, x, p(1)}, yes}, {b, 0, 9, {register, x, p(2)}, yes}]),
    illegal({register, x, p(2)}, [yes],
            [{a, 0, 8, {register, x, p(1)}, ?TAKEN}, {b, 0, 9, {register, x, p(2)}, ?TAKEN}]),
    %% For each name alone this is legal. It is illegal because both registrations are of one
    %% process.
    illegal({register, y, p(1)}, [?TAKEN],
            [{a, 0, 8, {register, x, p(1)}, yes}, {b, 0, 9, {register, y, p(1)}, yes}]),
    legal([{a, 0, 8, {register, x, p(1)}, yes}, {b, 0, 9, {register, y, p(1)}, yes},
           {c, 0, 8, {unregister, x}, ok}]).

unknown_test() ->
    Maybe = {a, 0, infinity, {register, x, p(1)}, unknown},
    legal([Maybe, {b, 2, 3, {whereis, x}, undefined}, {b, 4, 5, {whereis, x}, p(1)}]),
    legal([Maybe, {b, 2, 3, {register, x, p(2)}, yes}]),
    legal([Maybe, {b, 2, 3, {register, x, p(2)}, ?TAKEN}, {b, 4, 5, {whereis, x}, p(1)}]),
    illegal({whereis, x}, [p(1)],
            [Maybe, {b, 2, 3, {whereis, x}, p(1)}, {b, 4, 5, {whereis, x}, undefined}]).

killed_test() ->
    Had = [{b, 0, 1, {register, x, p(1)}, yes}, {a, 10, 12, {kill, p(1)}, ok}],
    legal(Had ++ [{a, 13, 14, {whereis, x}, undefined}, {b, 13, 14, {whereis, x}, p(1)},
                  {b, 15, 16, {whereis, x}, undefined}]),
    illegal({whereis, x}, [undefined], Had ++ [{a, 13, 14, {whereis, x}, p(1)}]),
    illegal({whereis, x}, [p(1)], Had ++ [{b, 3, 4, {whereis, x}, undefined}]),
    illegal({whereis, x}, [undefined],
            Had ++ [{b, 13, 14, {whereis, x}, undefined}, {b, 15, 16, {whereis, x}, p(1)}]),
    %% The name of a dead process is free at once on the node of the process, and on other nodes
    %% when the removal has come.
    legal(Had ++ [{a, 13, 14, {register, x, p(2)}, yes}]),
    illegal({register, x, p(2)}, [yes], Had ++ [{a, 13, 14, {register, x, p(2)}, ?TAKEN}]),
    legal(Had ++ [{b, 13, 14, {register, x, p(2)}, ?TAKEN}]),
    legal(Had ++ [{b, 13, 14, {register, x, p(2)}, yes}]),
    %% The removal does not remove the registration of a successor.
    illegal({whereis, x}, [p(2)], Had ++ [{a, 13, 14, {re_register, x, p(2)}, yes},
                                          {b, 15, 16, {whereis, x}, undefined}]),
    legal(Had ++ [{a, 13, 14, {register, y, p(1)}, {no, dead_pid}}]),
    illegal({register, y, p(1)}, [], Had ++ [{a, 13, 14, {register, y, p(1)}, yes}]),
    illegal({register, y, p(2)}, [yes], Had ++ [{a, 13, 14, {register, y, p(2)}, {no, dead_pid}}]).

off_test() ->
    Away = [{c, 2, 2, {off, c}, ok}, {a, 3, 4, {register, x, p(1)}, yes}, {c, 7, 8, {on, c}, ok}],
    legal(Away ++ [{c, 5, 6, {whereis, x}, undefined}, {c, 7, 9, {whereis, x}, undefined},
                   {c, 9, 10, {whereis, x}, p(1)}]),
    illegal({whereis, x}, [p(1)], Away ++ [{c, 9, 10, {whereis, x}, undefined}]),
    illegal({whereis, x}, [p(1)], Away ++ [{b, 5, 6, {whereis, x}, undefined}]).

%% A `read` goes through the order, so it sees all that was answered, and all that another `read`
%% saw.
ordered_read_test() ->
    Had = [{b, 0, 1, {register, x, p(1)}, yes}],
    legal(Had ++ [{b, 2, 3, {read, x}, p(1)}, {c, 2, 3, {read, y}, undefined}]),
    illegal({read, x}, [p(1)], Had ++ [{b, 2, 3, {read, x}, undefined}]),
    Under_way = Had ++ [{a, 2, 20, {re_register, x, p(2)}, yes}],
    legal(Under_way ++ [{b, 3, 4, {read, x}, p(1)}, {c, 5, 6, {read, x}, p(2)}]),
    illegal({read, x}, [p(2)],
            Under_way ++ [{b, 3, 4, {read, x}, p(2)}, {c, 5, 6, {read, x}, p(1)}]),
    %% Two reads of local tables may differ in this way. What a `read` has seen, every node shows.
    legal(Under_way ++ [{b, 3, 4, {whereis, x}, p(2)}, {c, 5, 6, {whereis, x}, p(1)}]),
    illegal({whereis, x}, [p(2)],
            Under_way ++ [{b, 3, 4, {read, x}, p(2)}, {c, 5, 6, {whereis, x}, p(1)}]),
    %% A `read` may see an operation that was never answered, or not.
    Maybe = [{a, 0, infinity, {register, x, p(1)}, unknown}],
    legal(Maybe ++ [{b, 2, 3, {read, x}, undefined}, {b, 4, 5, {read, x}, p(1)}]),
    illegal({read, x}, [p(1)],
            Maybe ++ [{b, 2, 3, {read, x}, p(1)}, {b, 4, 5, {read, x}, undefined}]),
    %% A dead process is not found on its own node.
    Killed = Had ++ [{a, 10, 12, {kill, p(1)}, ok}],
    legal(Killed ++ [{a, 13, 14, {read, x}, undefined}, {b, 13, 14, {read, x}, p(1)}]),
    illegal({read, x}, [undefined], Killed ++ [{a, 13, 14, {read, x}, p(1)}]),
    legal(Killed ++ [{a, 2, 11, {read, x}, undefined}, {b, 13, 14, {read, x}, p(1)}]),
    illegal({read, x}, [p(1)], Killed ++ [{a, 2, 9, {read, x}, undefined}]),
    illegal({read, x}, [undefined],
            Killed ++ [{b, 13, 14, {read, x}, undefined}, {c, 15, 16, {read, x}, p(1)}]),
    %% A `read` that is refused does not count.
    Refused = [{a, 2, 3, {read, x}, {no, no_majority}}],
    ?assertEqual(ok, sderl_linear:check(h(Had ++ Refused), (sderl_linear_machine:options())
                                                           #{refusals => [no_majority]})),
    illegal({read, x}, [p(1)], Had ++ Refused).

tokens_test() ->
    Two = [{a, 0, 1, {register, x, p(1)}, yes}, {a, 2, 9, {re_register, x, p(2)}, yes},
           {a, 10, 11, {re_register, x, p(1)}, yes}],
    legal(Two ++ [{b, 3, 4, {lookup, x}, {p(1), 5}},
                  {c, 3, 4, {lookup, x}, {p(2), 7}},
                  {b, 5, 6, {lookup, x}, {p(1), 5}},
                  {b, 12, 13, {lookup, x}, {p(1), 8}}]),
    illegal({lookup, x}, [{p(2), 6}],
            Two ++ [{b, 3, 4, {lookup, x}, {p(1), 5}}, {c, 5, 6, {lookup, x}, {p(1), 6}}]),
    illegal({lookup, x}, [],
            Two ++ [{c, 3, 4, {lookup, x}, {p(2), 5}}, {b, 5, 6, {lookup, x}, {p(1), 6}}]),
    illegal({lookup, x}, [],
            Two ++ [{b, 3, 4, {lookup, x}, {p(1), 5}}, {b, 12, 13, {lookup, x}, {p(1), 5}}]).

initial_test() ->
    Opts = (sderl_linear_machine:options())#{initial => #{x => p(1)},
                                             refusals => [unreachable_pid]},
    ?assertEqual(ok, sderl_linear:check(h([{a, 0, 1, {whereis, x}, p(1)},
                                           {a, 2, 3, {register, y, p(3)}, {no, unreachable_pid}}]),
                                        Opts)),
    ?assertMatch({refused, _}, sderl_linear:check(h([{a, 0, 1, {whereis, x}, undefined}]), Opts)),
    ?assertMatch({refused, _},
                 sderl_linear:check(h([{a, 2, 3, {register, y, p(3)}, {no, not_running}}]), Opts)).

%% ---------------------------------------------------------------- against the machine

properties_test_() ->
    [sderl_prop:eunit("runs are legal", 50, fun runs_are_legal/0),
     sderl_prop:eunit("verdicts are those of all runs", 20, fun same_verdict/0)].

choices(N) -> ?LET(K, N, vector(K, range(0, 1 bsl 24))).

%% Runs with few clients, and with so many that the possible orders cannot always be searched to the
%% end.
runs_are_legal() ->
    ?FORALL({Choices, Clients}, oneof([{choices(250), sderl_linear_machine:clients()},
                                       {choices(60), [{N, I} || N <- [a, b, c], I <- [1, 2, 3]]}]),
            case sderl_linear:check(sderl_linear_machine:run(Choices, Clients),
                                    (sderl_linear_machine:options())#{limit => 1000}) of
                ok -> true;
                {gave_up, _} -> true;
                {refused, _} -> false
            end).

%% Runs in which some answers and times were changed.
same_verdict() ->
    ?FORALL({Choices, Changes}, {choices(range(8, 22)), list(changes())},
            begin
                History = lists:foldl(fun change/2, sderl_linear_machine:run(Choices), Changes),
                Legal = sderl_linear_machine:legal(History),
                Found = sderl_linear:check(History, sderl_linear_machine:options()),
                collect(Legal,
                        ?WHENFAIL(io:format("~p~n~p~n", [History, Found]),
                                  Legal =:= (Found =:= ok)
                                  andalso (Legal orelse explained(Found, History))))
            end).

changes() -> {range(0, 1000), oneof([answer, start, stop]), range(0, 1000)}.

change({I, What, K}, History) when History =/= [] ->
    {Before, [Op | After]} = lists:split(I rem length(History), History),
    Before ++ [changed(What, K, Op)] ++ After;
change(_, History) -> History.

changed(answer, K, #{call := {Kind, _, _}, answer := A} = Op) when A =/= unknown ->
    No = case Kind of register -> ?TAKEN; _ -> {no, pid_is_already_registered} end,
    Op#{answer := lists:nth(1 + K rem 3, [yes, No, {no, dead_pid}])};
changed(answer, K, #{call := {Kind, _}, answer := A} = Op)
  when A =/= unknown, Kind =:= whereis orelse Kind =:= read ->
    Op#{answer := lists:nth(1 + K rem 4, [undefined, {a, 1}, {b, 1}, {c, 1}])};
changed(answer, K, #{call := {lookup, _}, answer := {P, T}} = Op) ->
    Op#{answer := {P, T + K rem 3 - 1}};
changed(start, K, #{start := S} = Op) -> Op#{start := max(1, S - K rem 60)};
changed(stop, K, #{stop := S} = Op) when is_integer(S) -> Op#{stop := S + K rem 60};
changed(_, _, Op) -> Op.

%% No run gives the prefix that the refusal names; some run gives it without the last answer.
explained({refused, #{last := #{stop := Until} = Last, before := Before}}, _) ->
    Cut = fun(#{start := S} = Op, _) when S > Until -> Op;
             (#{stop := E} = Op, At) when E > At; Op =:= Last, At < Until ->
                 Op#{stop := infinity, answer := unknown};
             (Op, _) -> Op
          end,
    Ties = [x || #{stop := E} <- Before, E =:= Until],
    Ties =/= [] orelse
        (not sderl_linear_machine:legal([Cut(Op, Until) || Op <- [Last | Before]])
            andalso sderl_linear_machine:legal([Cut(Op, Until - 1) || Op <- [Last | Before]])).
