%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_wards).
-moduledoc """
The processes that one process of a distributed ant colony has started and replaces when they die:
those of a supervisor, the supervisors of a master or submaster, the master of the starter.

A dead process is started again on its node. Its death is known by a monitor. `m:sderl_aco_tally`
counts the time from when its death is known here to when its successor is known here to serve
(`up`). A process whose boss dies meanwhile is not counted, as the next boss starts it; the log of
`m:sderl_chaos` has the time from each kill until another process had the role, in all cases. The
loss of a node is a failure of the run, and so is a process that again and again ends without being
killed; without recovery every death is.
""".

-export([new/3, start/2, handle/2, adopt/2, tell/2, set/3, all_up/1]).
-export_type([wards/0, spec/0, failure/0]).

-doc "`args`: what this process is started with in addition to `t:sderl_aco_life:start/0`.".
-type spec() :: #{module := module(), node := node(), group := term(), args := map()}.
-doc "Why a run cannot go on.".
-type failure() :: {node_down, node()} | {died, sderl_aco_tree:key(), node(), Reason :: term()}.

-record(ward, {
    spec :: spec(),
    pid :: pid() | undefined,
    monitor :: reference() | undefined,
    up = false :: boolean(),
    %% When its death was known.
    dead :: integer() | undefined
}).
-record(wards, {
    conf :: sderl_aco_life:conf(),
    parent :: pid(),
    all :: #{sderl_aco_tree:key() => #ward{}},
    failures = 0 :: non_neg_integer()
}).
-opaque wards() :: #wards{}.

%% Deaths other than by a kill.
-define(FAILURES_MAX, 10).

-doc "Nothing is started yet. The processes answer to `Parent`.".
-spec new(sderl_aco_life:conf(), Parent :: pid(), [{sderl_aco_tree:key(), spec()}]) -> wards().
new(Conf, Parent, Specs) ->
    #wards{conf = Conf, parent = Parent,
           all = #{Key => #ward{spec = Spec} || {Key, Spec} <- Specs}}.

-doc "Starts them; a process that replaces a dead one (`again`) first takes those that still live.".
-spec start(sderl_aco_life:mode(), wards()) -> wards().
start(first, #wards{all = All} = W) ->
    lists:foldl(fun(Key, Acc) -> spawn_ward(Key, first, Acc) end, W, lists:sort(maps:keys(All)));
start(again, #wards{all = All, conf = #{run := Run} = Conf} = W) ->
    lists:foldl(
        fun(Key, Acc) ->
            #ward{spec = #{group := Group}} = map_get(Key, All),
            case sderl_aco_names:whereis(scope(Conf, Group), {aco, Run, Key}) of
                undefined -> spawn_ward(Key, again, Acc);
                Pid -> take(Key, Pid, Acc)
            end
        end,
        W,
        lists:sort(maps:keys(All))
    ).

spawn_ward(Key, Mode, #wards{all = All, conf = Conf, parent = Parent} = W) ->
    #{Key := #ward{spec = #{module := Module, node := Node, group := Group, args := Args}} = Ward} =
        All,
    Start = Args#{
        conf => Conf, key => Key, group => Group, scope => scope(Conf, Group), boss => self(),
        parent => Parent, mode => Mode
    },
    {Pid, Monitor} = spawn_opt(Node, Module, init, [Start], [monitor]),
    W#wards{all = All#{Key := Ward#ward{pid = Pid, monitor = Monitor, up = false}}}.

take(Key, Pid, #wards{all = All, parent = Parent} = W) ->
    #{Key := Ward} = All,
    Pid ! {adopt, self(), Parent},
    W#wards{all = All#{Key := Ward#ward{pid = Pid, monitor = monitor(process, Pid), up = false}}}.

scope(#{naming := s_group}, Group) -> {s_group, Group};
scope(#{naming := Naming}, _) -> Naming.

-doc "Handles a message, if it is about one of them.".
-spec handle(Message :: term(), wards()) -> {none | {failed, failure()}, wards()} | unknown.
handle({up, Key, Pid}, #wards{all = All, conf = #{run := Run}} = W) ->
    case All of
        #{Key := #ward{pid = Pid, dead = Dead} = Ward} ->
            _ = is_integer(Dead) andalso
                sderl_aco_tally:replaced(Run, sderl_aco_tree:class(Key),
                                         erlang:monotonic_time(microsecond) - Dead),
            {none, W#wards{all = All#{Key := Ward#ward{up = true, dead = undefined}}}};
        _ ->
            {none, W}
    end;
handle({'DOWN', Monitor, process, Pid, Reason},
       #wards{all = All, conf = #{recovery := Recovery}, failures = Failures} = W) ->
    case [{Key, Ward} || Key := #ward{monitor = M} = Ward <- All, M =:= Monitor] of
        [] ->
            unknown;
        [{Key, #ward{dead = Dead} = Ward}] ->
            Now = erlang:monotonic_time(microsecond),
            Known = W#wards{
                all = All#{Key := Ward#ward{dead = case Dead of undefined -> Now; _ -> Dead end}}
            },
            case Reason of
                noconnection -> {{failed, {node_down, node(Pid)}}, W};
                _ when not Recovery -> {{failed, {died, Key, node(Pid), Reason}}, W};
                {shutdown, {already, Other}} -> {none, take(Key, Other, W)};
                _ when Reason =:= killed; Reason =:= noproc; Reason =:= {shutdown, orphan} ->
                    {none, spawn_ward(Key, again, Known)};
                _ when Failures >= ?FAILURES_MAX -> {{failed, {died, Key, node(Pid), Reason}}, W};
                _ -> {none, spawn_ward(Key, again, Known#wards{failures = Failures + 1})}
            end
    end;
handle(_, _) ->
    unknown.

-doc "Tells them their new parent.".
-spec adopt(Parent :: pid(), wards()) -> wards().
adopt(Parent, W) ->
    ok = tell({adopt, self(), Parent}, W),
    W#wards{parent = Parent}.

-doc "Sends a message to each of them.".
-spec tell(term(), wards()) -> ok.
tell(Message, #wards{all = All}) ->
    lists:foreach(fun(Pid) -> Pid ! Message end,
                  [Pid || _ := #ward{pid = Pid} <- All, is_pid(Pid)]).

-doc "Sets the arguments that the successor of a process gets.".
-spec set(sderl_aco_tree:key(), Args :: map(), wards()) -> wards().
set(Key, Args, #wards{all = All} = W) ->
    #{Key := #ward{spec = Spec} = Ward} = All,
    W#wards{all = All#{Key := Ward#ward{spec = Spec#{args := Args}}}}.

-doc "Whether all serve.".
-spec all_up(wards()) -> boolean().
all_up(#wards{all = All}) -> lists:all(fun(#ward{up = Up}) -> Up end, maps:values(All)).
