%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_colony_server).
-moduledoc """
A colony of a distributed run: answers each round with the best that it has found.

A linked worker computes, so that the server can take messages meanwhile. A colony that replaces a
dead one begins with new pheromone, which gets the best order of all as soon as there is one, and
has other random numbers. A colony whose own solution is the best of all is not told it again.
""".

-export([init/1]).

-record(c, {
    conf :: sderl_aco_life:conf(),
    key :: sderl_aco_tree:key(),
    life :: sderl_aco_life:life(),
    worker :: pid(),
    round = 0 :: non_neg_integer(),
    answer = none :: sderl_aco_round:best()
}).

-doc false.
-spec init(sderl_aco_life:start()) -> no_return().
init(#{conf := Conf, key := Key, mode := Mode} = Start) ->
    Life = sderl_aco_life:new(Start),
    Server = self(),
    Worker = spawn_link(fun() -> worker(Server, Start) end),
    loop(#c{conf = Conf, key = Key, life = sderl_aco_life:serve(Mode, true, Life),
            worker = Worker}).

loop(#c{life = Life0, worker = Worker} = C) ->
    receive
        {stop} ->
            %% Not normal: the worker ends, too.
            exit(shutdown);
        {run, Number, Update} ->
            loop(run(Number, Update, C));
        {ran, Worker, Number, Solution} when Number =:= C#c.round ->
            loop(answer(C#c{answer = Solution}));
        %% The answer of an earlier round is too late; the worker keeps its best for the next one.
        {ran, Worker, _, _} ->
            loop(C);
        Message ->
            case sderl_aco_life:handle(Message, Life0) of
                {_, Life} -> loop(C#c{life = sderl_aco_life:serve(first, true, Life)});
                unknown -> loop(C)
            end
    end.

run(Number, Update, #c{round = Before, worker = Worker} = C) when Number > Before ->
    Worker ! {run, Number, Update},
    C#c{round = Number, answer = none};
run(Number, _, #c{round = Number, answer = Answer} = C) when Answer =/= none -> answer(C);
run(_, _, C) ->
    C.

answer(#c{life = Life, round = Round, key = Key, answer = Answer, conf = #{repl := Repl}} = C) ->
    lists:foreach(fun(_) -> ok = sderl_aco_life:tell({answer, Round, Key, Answer}, Life) end,
                  lists:seq(1, Repl)),
    C.

%% The worker has the colony's pheromone.

worker(Server, #{conf := #{run := Run}, key := {colony, Index}} = Start) ->
    proc_lib:set_label({aco, Run, {worker, Index}}),
    work(Server, Start, none).

work(Server, #{conf := Conf, key := {colony, Index}} = Start, Colony0) ->
    #{run := Run, local_iterations := Iterations, options := #{ants := Ants}} = Conf,
    receive
        {run, Number, Update} ->
            Colony1 = told(Update, Index, colony(Number, Start, Colony0), Colony0 =:= none),
            {{Cost, Jobs}, Colony} = sderl_aco_colony:run(Colony1, Iterations),
            ok = sderl_aco_tally:ants(Run, Ants * Iterations),
            Server ! {ran, self(), Number, {Cost, Index, Jobs}},
            work(Server, Start, Colony)
    end.

colony(Number, #{conf := Conf, key := {colony, Index}, number := NodeNumber, mode := Mode}, none) ->
    #{instance := Instance, options := Options, heuristic := Heuristic, colony_nodes := Nodes,
      seed := Seed} = Conf,
    Own =
        case Heuristic of
            mixed when 2 * NodeNumber =< Nodes + 1 -> mdd;
            mixed -> au;
            _ -> Heuristic
        end,
    sderl_aco_colony:new(Instance, Options#{heuristic => Own},
                         case Mode of first -> {Seed, Index}; again -> {Seed, Index, Number} end);
colony(_, _, Colony) ->
    Colony.

told(none, _, Colony, _) -> Colony;
told({_, Index, _}, Index, Colony, false) -> Colony;
told({Cost, _, Jobs}, _, Colony, _) -> sderl_aco_colony:update(Colony, {Cost, Jobs}).
