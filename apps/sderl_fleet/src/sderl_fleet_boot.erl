%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_boot).
-moduledoc false.

%% Starts nodes, a given number at a time, in the process of a job. All or none: after the
%% first failure no more are started, those under way are awaited, and all are killed.

-export([start/4]).

-record(boot, {
    driver :: {module(), sderl_fleet_driver:state()},
    server :: pid(),
    progress :: fun((non_neg_integer(), pos_integer()) -> term()),
    total :: non_neg_integer(),
    done = [] :: [sderl_fleet_driver:handle()],
    failed = [] :: [{node(), term()}]
}).

-doc "The server is sent `{node_up, Node, Handle}` for each node as it comes up.".
-spec start([sderl_fleet_plan:node_spec()], Driver, sderl_fleet_plan:parsed(), Server :: pid()) ->
    ok | {error, {start_failed, [{node(), Reason :: term()}]}}
when
    Driver :: {module(), sderl_fleet_driver:state()}.
start(Specs, Driver, #{parallel := Parallel, progress := Progress}, Server) ->
    Boot = #boot{driver = Driver, server = Server, progress = Progress, total = length(Specs)},
    {First, Rest} = lists:split(min(Parallel, length(Specs)), Specs),
    loop(length([start_one(Spec, Boot) || Spec <- First]), Rest, Boot).

loop(0, _, #boot{failed = []}) ->
    ok;
loop(0, _, #boot{failed = Failed, done = Handles, driver = {Driver, DriverState}}) ->
    Killers = [
        sderl_fleet_task:start(fun() -> ok = Driver:kill_node(Handle, DriverState) end)
     || Handle <- Handles
    ],
    _ = [sderl_fleet_task:result(Killer, infinity) || Killer <- Killers],
    {error, {start_failed, lists:reverse(Failed)}};
loop(Running, Rest, #boot{server = Server, done = Done, failed = Failed} = Boot) ->
    receive
        {started, Node, {ok, Handle}} ->
            Server ! {node_up, Node, Handle},
            Done1 = [Handle | Done],
            tell(Boot#boot.progress, length(Done1), Boot#boot.total),
            more(Running - 1, Rest, Boot#boot{done = Done1});
        {started, Node, {error, Reason}} ->
            more(Running - 1, [], Boot#boot{failed = [{Node, Reason} | Failed]})
    end.

more(Running, [Spec | Rest], #boot{failed = []} = Boot) ->
    start_one(Spec, Boot),
    loop(Running + 1, Rest, Boot);
more(Running, Rest, Boot) ->
    loop(Running, Rest, Boot).

%% Linked: a starter ends with its job. It always answers.
start_one(#{node := Node} = Spec, #boot{driver = {Driver, DriverState}}) ->
    Job = self(),
    spawn_link(fun() ->
        Result =
            try
                Driver:start_node(Spec, DriverState)
            catch
                Class:Reason:Stack -> {error, {crashed, {Class, Reason, Stack}}}
            end,
        Job ! {started, Node, Result}
    end).

%% The user's function: if it raises, the start goes on.
tell(Progress, Done, Total) ->
    try
        _ = Progress(Done, Total),
        ok
    catch
        _:_ -> ok
    end.
