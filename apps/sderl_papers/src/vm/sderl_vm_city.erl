%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_city).
-moduledoc """
`city`: a simulated city in steps of time. Each crossing of a grid is an actor with a queue of
vehicles, of which some drive on to a crossing beside it in each step. Time managers, a tree with up
to four below each, tell the actors when a step begins, and report upwards when all of them have
ended it; an actor has ended a step when all vehicles that it sent have been acknowledged. So all
actors wait for the slowest one in every step.

The lowest managers are one for each core. 8 by 8 crossings and 16 steps, 16 by 16 and 32, or 32 by
32 and 64, by the size, with ten vehicles for each crossing at the start. `m:sderl_city` has the
same crossings on the nodes of s_groups, where a vehicle that drives on takes some work; here it
takes none. On several nodes the crossings are divided evenly, row by row; their lowest managers are
on the same node, and each manager above is on the node of the first one below it.

Source: the description of `city_simulation` in BenchErl (Aronis et al., Erlang Workshop 2012), a
program of the simulator Sim-Diasca, of which only the structure is here: actors under a tree of
time managers.
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/2, spread/0, prepare/1, run/2, finish/1]).
-export([crossing/3, vehicles/2, beside/2]).

%% Managers below a manager.
-define(FAN_OUT, 4).
%% Vehicles that pass a crossing in a step.
-define(PASS, 6).

-doc false.
-spec summary() -> string().
summary() -> "a simulation in steps, under a tree of time managers".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    {Side, Steps} = maps:get(Size, #{short => {8, 16}, intermediate => {16, 32},
                                     long => {32, 64}}),
    #{managers => Cores, side => Side, steps => Steps, vehicles => 10}.

-doc false.
-spec operations(sderl_bench_vm_program:settings(), {non_neg_integer(), term()}) ->
    {pos_integer(), string()}.
operations(_, {Drives, _}) -> {Drives, "drive"}.

-doc false.
-spec spread() -> string().
spread() -> "its crossings and their managers".

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(#{managers := Count, side := Side, vehicles := Vehicles} = Settings) ->
    Nodes = list_to_tuple(sderl_bench_vm_nodes:of_settings(Settings)),
    Crossings = list_to_tuple([
        spawn_link(node_of(Place, Side * Side, Nodes), ?MODULE, crossing,
                   [Place, vehicles(Place, Vehicles), 0])
     || Place <- lists:seq(0, Side * Side - 1)
    ]),
    _ = [element(1 + Place, Crossings)
             ! {beside, list_to_tuple([element(1 + Other, Crossings)
                                       || Other <- beside(Place, Side)])}
         || Place <- lists:seq(0, Side * Side - 1)],
    Own = [[Crossing || Crossing <- tuple_to_list(Crossings), node(Crossing) =:= Node]
           || Node <- tuple_to_list(Nodes)],
    Each = max(1, Count div tuple_size(Nodes)),
    {Settings, root([managed(Part) || Here <- Own, Part <- shares(Each, Here)]), none}.

%% Divides the places evenly, with neighbouring places on the same node.
node_of(Place, Places, Nodes) -> element(1 + Place * tuple_size(Nodes) div Places, Nodes).

%% The manager of a part is on the node of its first one.
managed([First | _] = Part) -> spawn_link(node(First), fun() -> manager(Part) end).

-doc "The `Count` vehicles that a crossing begins with.".
-spec vehicles(Place :: non_neg_integer(), Count :: pos_integer()) -> [pos_integer()].
vehicles(Place, Count) -> lists:seq(Place * Count + 1, (Place + 1) * Count).

-doc "The four crossings beside one. The edges of the city lead to the opposite ones.".
-spec beside(Place :: non_neg_integer(), Side :: pos_integer()) -> [non_neg_integer()].
beside(Place, Side) ->
    {X, Y} = {Place rem Side, Place div Side},
    [(X + Dx + Side) rem Side + Side * ((Y + Dy + Side) rem Side)
     || {Dx, Dy} <- [{1, 0}, {-1, 0}, {0, 1}, {0, -1}]].

shares(Count, List) ->
    [Share || I <- lists:seq(1, Count),
              [_ | _] = Share <- [[Element || {J, Element} <- lists:enumerate(List),
                                              J rem Count =:= I rem Count]]].

root([Manager]) -> Manager;
root(Managers) -> root([managed(Part) || Part <- parts(Managers)]).

parts([]) -> [];
parts(Managers) ->
    {Part, Rest} = lists:split(min(?FAN_OUT, length(Managers)), Managers),
    [Part | parts(Rest)].

-doc false.
-spec run(run, term()) -> term().
run(run, {#{steps := Steps} = Settings, Root, none}) ->
    {Settings, Root, lists:sum([asked(Root, {step, Step}) || Step <- lists:seq(1, Steps)])}.

-doc false.
-spec finish(term()) -> {Drives :: non_neg_integer(), Where :: non_neg_integer()}.
finish({_, Root, Drives}) ->
    Where = asked(Root, where),
    Monitor = monitor(process, Root),
    Root ! stop,
    receive {'DOWN', Monitor, process, Root, _} -> ok end,
    {Drives, Where}.

asked(Pid, What) ->
    Pid ! {What, self()},
    receive {Pid, Sum} -> Sum end.

%% Passes each question on to all below, and the sum of their answers up.
manager(Below) ->
    receive
        stop ->
            Monitors = [monitor(process, Pid) || Pid <- Below],
            _ = [Pid ! stop || Pid <- Below],
            _ = [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors],
            ok;
        {What, Above} ->
            _ = [Pid ! {What, self()} || Pid <- Below],
            Above ! {self(), lists:sum([receive {Pid, Sum} -> Sum end || Pid <- Below])},
            manager(Below)
    end.

-doc """
A crossing. Each vehicle that drives on takes `Work`. The crossing is told its neighbours
(`{beside, {Pid, Pid, Pid, Pid}}`) before its first step.
""".
-spec crossing(Place :: non_neg_integer(), Queue :: [pos_integer()], Work :: non_neg_integer()) ->
    ok.
crossing(Place, Queue, Work) ->
    receive
        {beside, Beside} -> crossing({Place, Work}, Beside, Queue, [])
    end.

%% `Came`: vehicles with the step in which they came, in any order. They drive on in the next step
%% at the earliest; some come before this crossing has been told of their step.
crossing({Place, Work} = Is, Beside, Queue, Came) ->
    receive
        {{step, Step}, Manager} ->
            {Now, Later} = lists:partition(fun({Then, _}) -> Then < Step end, Came),
            {Go, Stay} = passing(Queue ++ in_order(Now)),
            _ = [element(1 + erlang:phash2({Vehicle, Step}, 4), Beside)
                     ! {vehicle, self(), {Step, worked(Work, Vehicle, Vehicle)}}
                 || Vehicle <- Go],
            Arrived = acknowledged(length(Go), Later),
            Manager ! {self(), length(Go)},
            crossing(Is, Beside, Stay, Arrived);
        {vehicle, From, Vehicle} ->
            From ! came,
            crossing(Is, Beside, Queue, [Vehicle | Came]);
        {where, Manager} ->
            Here = Queue ++ in_order(Came),
            Manager ! {self(), erlang:phash2({Place, Here})},
            crossing(Is, Beside, Here, []);
        stop ->
            ok
    end.

%% The work of a vehicle only takes time; its result is not used.
worked(0, Vehicle, _) -> Vehicle;
worked(Left, Vehicle, Value) -> worked(Left - 1, Vehicle, erlang:phash2(Value + Left)).

passing(Queue) -> lists:split(min(?PASS, length(Queue)), Queue).

in_order(Came) -> lists:sort([Vehicle || {_, Vehicle} <- Came]).

acknowledged(0, Came) ->
    Came;
acknowledged(Left, Came) ->
    receive
        came ->
            acknowledged(Left - 1, Came);
        {vehicle, From, Vehicle} ->
            From ! came,
            acknowledged(Left, [Vehicle | Came])
    end.
