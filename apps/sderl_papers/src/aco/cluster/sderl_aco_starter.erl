%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_starter).
-moduledoc """
The starter: starts the master, starts it again when it dies, and keeps the result.

It is on a node of its own where there are submasters, keeps the best after each round, and is the
one process of a run that is not replaced. It ends with `stop/1`, and all others with it.
""".

-export([start/2, result/1, stop/1, progress/0]).
-export_type([result/0, failure/0]).

-import(sderl_clock, [now_us/0]).

-doc """
`round_best`: the costs after each round; `seconds`: from the beginning of the first round, when all
served, to the end of the last one; `setup_s`: the time before that.
""".
-type result() ::
    #{best := sderl_aco_round:best(), round_best := [non_neg_integer()], seconds := float(),
      setup_s := float()}.
-doc "Why there is no result.".
-type failure() :: sderl_aco_wards:failure() | {died, starter, node(), Reason :: term()}.

-record(s, {
    conf :: sderl_aco_life:conf(),
    layout :: sderl_aco_tree:layout(),
    wards :: sderl_aco_wards:wards(),
    begun :: integer(),
    up :: integer() | undefined,
    done = 0 :: non_neg_integer(),
    best = none :: sderl_aco_round:best(),
    costs = [] :: [non_neg_integer()],
    waiting = [] :: [{up | result, reference()}],
    outcome :: undefined | {ok, result()} | {error, failure()}
}).

-define(PROGRESS_MS, 300).

-doc """
Starts all processes, from the starter's node. Returns when all serve, which is when the first round
begins.
""".
-spec start(sderl_aco_life:conf(), sderl_aco_tree:layout()) -> {ok, pid()} | {error, failure()}.
start(Conf, Layout) ->
    Pid = spawn(fun() -> init(Conf, Layout) end),
    case ask(Pid, up) of
        ok -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    end.

-doc "Waits for the end of the last round.".
-spec result(pid()) -> {ok, result()} | {error, failure()}.
result(Pid) -> ask(Pid, result).

ask(Pid, What) ->
    Ref = monitor(process, Pid, [{alias, reply_demonitor}]),
    Pid ! {What, Ref},
    receive
        {Ref, Answer} -> Answer;
        {'DOWN', Ref, process, _, Reason} -> {error, {died, starter, node(Pid), Reason}}
    end.

-doc "Ends all processes of the run that get the message.".
-spec stop(pid()) -> ok.
stop(Pid) ->
    Pid ! {stop},
    ok.

-doc """
Rounds done and the least cost, for the run whose starter is on this node; `undefined` when there is
none.
""".
-spec progress() -> {non_neg_integer(), Cost :: non_neg_integer() | undefined} | undefined.
progress() -> sderl_fleet_task:ask(?MODULE, progress, ?PROGRESS_MS).

init(#{run := Run, naming := Naming} = Conf, #{master := Node, group := Group} = Layout) ->
    proc_lib:set_label({aco, Run, starter}),
    %% Another run on this node has the name: then nobody sees the progress of this one.
    _ = sderl_fleet_task:attempt(fun() -> register(?MODULE, self()) end),
    case Naming of
        none -> ok;
        global -> name(global, Run);
        s_group -> name({s_group, Group}, Run)
    end,
    Begun = now_us(),
    Spec = #{module => sderl_aco_master, node => Node, group => Group,
             args => args(Layout, 0, none)},
    Wards = sderl_aco_wards:new(Conf, self(), [{master, Spec}]),
    loop(#s{conf = Conf, layout = Layout, wards = sderl_aco_wards:start(first, Wards),
            begun = Begun}).

%% The starter's name is not used; it has one as in the published programs.
name(Scope, Run) ->
    _ = sderl_aco_names:start(Scope, {aco, Run, starter}, self()),
    ok.

args(#{seats := Seats}, Done, Best) -> #{seats => Seats, done => Done, best => Best}.

loop(#s{wards = Wards0, waiting = Waiting} = S) ->
    receive
        {stop} ->
            sderl_aco_wards:tell({stop}, Wards0);
        {What, Ref} when What =:= up; What =:= result ->
            loop(settle(S#s{waiting = [{What, Ref} | Waiting]}));
        {progress, Ref} ->
            Ref ! {Ref, {S#s.done, case S#s.best of {Cost, _, _} -> Cost; none -> undefined end}},
            loop(S);
        {round, Number, Best} ->
            loop(settle(round_done(Number, Best, S)));
        {failed, Reason} ->
            loop(settle(ended({error, Reason}, S)));
        Message ->
            case sderl_aco_wards:handle(Message, Wards0) of
                {{failed, Reason}, Wards} ->
                    loop(settle(ended({error, Reason}, S#s{wards = Wards})));
                {none, Wards} -> loop(settle(is_up(S#s{wards = Wards})));
                unknown -> loop(S)
            end
    end.

is_up(#s{up = undefined, wards = Wards} = S) ->
    case sderl_aco_wards:all_up(Wards) of
        true -> S#s{up = now_us()};
        false -> S
    end;
is_up(S) ->
    S.

%% Answers the callers that wait for something that is known now.
settle(#s{waiting = Waiting, up = Up, outcome = Outcome} = S) ->
    S#s{
        waiting = lists:filter(
            fun({What, Ref}) ->
                case {What, Outcome, Up} of
                    {_, {error, _}, _} -> answer(Ref, Outcome);
                    {result, {ok, _}, _} -> answer(Ref, Outcome);
                    {up, _, At} when is_integer(At) -> answer(Ref, ok);
                    _ -> true
                end
            end,
            Waiting
        )
    }.

answer(Ref, Answer) ->
    Ref ! {Ref, Answer},
    false.

%% A result that was reported before the master died is reported again.
round_done(Number, _, #s{done = Done} = S) when Number =< Done ->
    S;
round_done(Number, {Cost, _, _} = Best, #s{costs = Costs, conf = #{global_iterations := Rounds},
                                           layout = Layout, wards = Wards} = S0) ->
    S = S0#s{
        done = Number, best = Best, costs = [Cost | Costs],
        wards = sderl_aco_wards:set(master, args(Layout, Number, Best), Wards)
    },
    case Number of
        Rounds -> ended({ok, result(now_us(), S)}, S);
        _ -> S
    end.

result(End, #s{best = Best, costs = Costs, begun = Begun, up = Up}) ->
    #{best => Best, round_best => lists:reverse(Costs), seconds => (End - Up) / 1_000_000,
      setup_s => (Up - Begun) / 1_000_000}.

%% The first is the cause.
ended(Outcome, #s{outcome = undefined} = S) -> S#s{outcome = Outcome};
ended(_, S) -> S.
