%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_apply).
-moduledoc """
Changes the groups of a running cluster to those of a plan.

```erlang
{ok, Plan} = sderl_pattern:star(Nodes, #{size => 10, gateways => 2}),
{ok, Report} = sderl_plan_apply:run(Plan, #{progress => self()}),
%% later:
{ok, Larger} = sderl_pattern:grow(Plan, MoreNodes),
{ok, _} = sderl_plan_apply:change(Plan, Larger).
```

`run/2` asks every node which groups it runs, and compares that with the plan. It creates missing
groups, adds missing members, and then removes members that the plan does not have in a group.
Groups that are not in the plan stay as they are; `change/2,3` deletes groups of the old plan that
the new plan lacks, at the end. The calls are idempotent: when all is as planned they do nothing.

- **Everything is checked first.** A node that cannot be reached, runs no such library, or is in
  another group of a planned name is an error before anything changes.
- **It can be called again**, also from another node, after the caller died half-way. (If a node
  died while it was creating a group, the others keep the name for it for 30 seconds, and answer
  `s_group_conflict` until then.)
- **After a failure it undoes what it did**, in reverse order, unless the options say
  `undo => false`. Names of a group that it had deleted do not come back.
- **The caller need not be in any group** of the plan. It is linked to each node for a moment, and
  to one node of each group that changes until the end; links that were not there before are closed
  then (reason `plan` in `s_group:links/0`), and so are links between nodes that no longer share a
  group, if both ends agree that they are not needed. So nodes that had no other links have the
  links that `sderl_plan:predict/1` predicts. (Free nodes, such as those of an undone group, keep
  the links of their island.)

## Options

| key | values | default |
|---|---|---|
| `progress` | a pid, which is sent `{sderl_plan, Progress}`, or `{M, F, Args}`, called with `Progress` as one argument more | none |
| `undo` | whether a failure is undone | `true` |
| `close_links` | whether links that the plan makes unnecessary are closed | `true` |
| `parallel` | steps at a time | 8 |
| `timeout_ms` | for one step, which is waiting for members to join | 30,000 |

`Progress` is `#{what, done, total}`: `what` is `survey`, a step
(`{create | add | remove | delete, Group, Nodes}`), `{undo, Step}` or `links`; `done` of `total` are
done; `error` is there if it failed.

## Errors

`{error, Reason, Report}`; `sderl_plan:format_error/1` makes a sentence of the reason:
`{not_running}`, `{unreachable, Node}`, `{no_library, Node}`, `{too_old, Node}`,
`{refuses, Node, connect_all}`, `{no_answer, Node, Why}`, `{other_identity, Group, Nodes}`,
`{left_out, Group, [{Node, Why}]}`, `{no_member, Group}`, `{step_failed, Step, Why}`, and those of
`sderl_pattern:check/1`.
""".

-export([run/1, run/2, change/2, change/3]).
-import(sderl_clock, [now_ms/0]).
-import(sderl_check, [misuse/5]).
-export_type([options/0, report/0, step/0, progress/0]).

-doc "See the table above.".
-type options() :: #{
    progress => pid() | {module(), atom(), [term()]},
    undo => boolean(),
    close_links => boolean(),
    parallel => pos_integer(),
    timeout_ms => pos_integer()
}.
-doc """
`steps`: the steps that this call has done, in order. `problems`: every node that prevented it.
`undone`, `not_undone`: after a failure.
""".
-type report() :: #{
    steps := [step()],
    undone := [step()],
    not_undone := [{step(), Why :: term()}],
    problems := [{node(), Why :: term()}],
    links_closed := non_neg_integer(),
    elapsed_ms := non_neg_integer()
}.
-doc "A change of a group: with these nodes.".
-type step() :: {create | add | remove | delete, Group :: term(), [node()]}.
-doc "See above.".
-type progress() ::
    #{what := survey | step() | {undo, step()} | links,
      done := non_neg_integer(), total := non_neg_integer(), error => term()}.

-record(r, {
    plan, old = [], leaving = [], survey = #{}, problems = [], links = #{}, done = [], undone = [],
    stuck = [], closed = 0, began, options
}).

%% Steps that fail because of changes elsewhere at the same time: how often they are tried again,
%% after what pause, and what counts as the same time.
-define(TRIES, 3).
-define(PAUSE_MS, 50).
-define(AT_ONCE_MS, 1000).

%% The helper processes of these answer with their exit reason.
-dialyzer({nowarn_function, [start/2]}).

-doc "`run/2` with the defaults.".
-spec run(sderl_pattern:plan()) -> {ok, report()} | {error, sderl_pattern:reason(), report()}.
run(Plan) -> run(Plan, #{}).

-doc "Makes the groups of the cluster those of the plan.".
-spec run(sderl_pattern:plan(), options()) ->
    {ok, report()} | {error, sderl_pattern:reason(), report()}.
run(Plan, Options) ->
    started(Plan, #r{plan = Plan, options = options(Options, {run, 2}, 2)}).

-doc "`change/3` with the defaults.".
-spec change(Old :: sderl_pattern:plan(), New :: sderl_pattern:plan()) ->
    {ok, report()} | {error, sderl_pattern:reason(), report()}.
change(Old, New) -> change(Old, New, #{}).

-doc """
As `run/2` with the new plan; then deletes the groups of the old plan that the new one lacks. Nodes
that only the old plan has may be down.
""".
-spec change(Old :: sderl_pattern:plan(), New :: sderl_pattern:plan(), options()) ->
    {ok, report()} | {error, sderl_pattern:reason(), report()}.
change(Old, New, Options) ->
    R = #r{plan = New, options = options(Options, {change, 3}, 3)},
    case [E || Plan <- [Old, New], {error, _} = E <- [sderl_pattern:check(Plan)]] of
        [] ->
            #{delete := Gone} = sderl_pattern:changes(Old, New),
            started(New, R#r{old = Gone,
                             leaving = sderl_pattern:nodes(Old) -- sderl_pattern:nodes(New)});
        [{error, Why} | _] -> {error, Why, report(R#r{began = now_ms()})}
    end.

started(Plan, R0) ->
    R = R0#r{began = now_ms()},
    case {sderl_pattern:check(Plan), sderl_plan_agent:do(1, survey)} of
        {{error, Why}, _} -> {error, Why, report(R)};
        {ok, {error, not_running}} -> {error, {not_running}, report(R)};
        {ok, {error, {refuses, Why}}} -> {error, {refuses, node(), Why}, report(R)};
        {ok, {ok, _}} -> surveyed(survey(R))
    end.

surveyed(#r{problems = [], plan = Plan, old = Old, survey = Survey} = R) ->
    case sderl_plan_steps:steps(Plan, Old, Survey) of
        {ok, Steps} -> finished(walk(Steps, length(Steps), R));
        {error, Why} -> {error, Why, report(R)}
    end;
surveyed(#r{problems = [{Node, Why} | _]} = R) -> {error, problem(Node, Why), report(R)}.

problem(Node, {refuses, Why}) -> {refuses, Node, Why};
problem(Node, not_running) -> {no_library, Node};
problem(Node, Why) when Why =:= unreachable; Why =:= no_library; Why =:= too_old -> {Why, Node};
problem(Node, Why) -> {no_answer, Node, Why}.

finished({ok, R0}) ->
    R = close_links(R0),
    sderl_event:emit(plan_applied, #{groups => length(groups(R)), steps => length(R#r.done)}),
    {ok, report(R)};
finished({error, Why, R0}) ->
    R = close_links(undo(R0)),
    sderl_event:emit(plan_failed, #{reason => Why, undone => length(R#r.undone)}),
    {error, Why, report(R)}.

report(#r{done = Done, undone = Undone, stuck = Stuck, problems = Problems, closed = Closed,
          began = Began}) ->
    #{steps => [shown(S) || S <- lists:reverse(Done)],
      undone => [shown(S) || S <- lists:reverse(Undone)],
      not_undone => [{shown(S), Why} || {S, Why} <- lists:reverse(Stuck)],
      problems => Problems,
      links_closed => Closed,
      elapsed_ms => now_ms() - Began}.

shown({create, Group, Nodes}) -> {create, Group, Nodes};
shown({Kind, Group, _, Nodes}) -> {Kind, Group, Nodes}.

groups(#r{plan = #{groups := Groups}}) -> Groups.

%% ---------------------------------------------------------------- looking

survey(#r{plan = Plan, leaving = Leaving, options = #{parallel := Parallel}} = R) ->
    Planned = sderl_pattern:nodes(Plan),
    Nodes = Planned ++ Leaving,
    Of = length(Nodes),
    Tell = fun(Done, _, Result) -> tell(R, survey, Done, Of, Result) end,
    Answers = lists:zip(Nodes,
                        each(Parallel, fun(N) -> survey_one(N, timeout(R)) end, Nodes, Tell)),
    R#r{survey = #{N => Own || {N, {ok, Own}} <- Answers},
        problems = [{N, Why} || {N, {error, Why}} <- Answers, not lists:member(N, Leaving)]}.

survey_one(Node, Timeout) ->
    case open(Node) of
        {error, _} = Error -> Error;
        {ok, Opened} ->
            Answer = asked(Node, survey, Timeout),
            ok = close(Node, Opened),
            Answer
    end.

%% ---------------------------------------------------------------- links of the caller

open(Node) -> open(Node, ?TRIES).

open(Node, _) when Node =:= node() -> {ok, false};
open(Node, Tries) ->
    Linked = lists:member(Node, nodes(connected)),
    Began = now_ms(),
    case sderl_connector:connect(Node, plan) of
        true -> {ok, not Linked};
        %% Refused at once: it may be that the other end closes its link, or connects to us, at this
        %% moment.
        false when Tries > 1 ->
            case now_ms() - Began < ?AT_ONCE_MS of
                true -> receive after ?PAUSE_MS -> open(Node, Tries - 1) end;
                false -> {error, unreachable}
            end;
        false -> {error, unreachable}
    end.

%% A link that is needed by now stays, at either end: another call that applies a plan may use it. A
%% link that was there before may be one that such a caller opened and left to us; if it is the
%% application's, neither end counts it as the library's.
close(Node, _) when Node =:= node() -> ok;
close(Node, Opened) ->
    ok = sderl_links:forget(Node, plan),
    %% To ask would link again.
    case sderl_plan_agent:free(Node) andalso lists:member(Node, nodes(connected))
         andalso ask(Node, {free, node()}, ?AT_ONCE_MS) of
        false -> ok;
        {ok, false} -> ok;
        _ when Opened -> _ = erlang:disconnect_node(Node), ok;
        _ -> _ = sderl_plan_agent:close(Node), ok
    end.

%% Again where the link went meanwhile: every request may be made again.
asked(Node, Request, Timeout) -> asked(Node, Request, Timeout, ?TRIES).

asked(Node, Request, Timeout, Tries) ->
    case ask(Node, Request, Timeout) of
        {error, unreachable} when Tries > 1 ->
            case sderl_connector:connect(Node, plan) of
                true -> asked(Node, Request, Timeout, Tries - 1);
                false -> {error, unreachable}
            end;
        Answer -> Answer
    end.

ask(Node, Request, Timeout) ->
    try erpc:call(Node, sderl_plan_agent, do, [1, Request], Timeout)
    catch
        error:{exception, undef, _} -> {error, too_old_or_none(Node, Timeout)};
        error:{erpc, timeout} -> {error, timeout};
        error:{erpc, _} -> {error, unreachable};
        _:Why -> {error, {crashed, Why}}
    end.

too_old_or_none(Node, Timeout) ->
    try erpc:call(Node, erlang, whereis, [sderl_node], Timeout) of
        undefined -> no_library;
        _ -> too_old
    catch
        _:_ -> unreachable
    end.

%% ---------------------------------------------------------------- steps

%% All that adds, at the same time, then all that removes, then all that deletes.
walk(Steps, Of, R) ->
    walk([[S || S <- Steps, lists:member(element(1, S), Kinds)]
          || Kinds <- [[create, add], [remove], [delete]]], 0, Of, R).

walk([], _, _, R) -> {ok, R};
walk([Steps | Phases], Before, Of, #r{options = #{parallel := Parallel}} = R) ->
    Tell = fun(Done, Step, Result) -> tell(R, shown(Step), Before + Done, Of, told(Result)) end,
    Results = lists:zip(Steps, each(Parallel, fun(S) -> step(S, R) end, Steps, Tell)),
    After = lists:foldl(fun done/2, R, Results),
    case [{S, Why} || {S, {failed, Why, _, _}} <- Results] ++
         [{S, Why} || {S, {error, Why}} <- Results] of
        [] -> walk(Phases, Before + length(Steps), Of, After);
        [{Step, Why} | _] -> {error, failure(Step, Why), After}
    end.

told({done, _, _}) -> {ok, done};
told({failed, Why, _, _}) -> {error, Why};
told(Other) -> Other.

failure(Step, {left_out, Nodes}) -> {left_out, element(2, Step), Nodes};
failure(Step, no_member) -> {no_member, element(2, Step)};
failure(Step, Why) -> {step_failed, shown(Step), Why}.

%% The steps done, and the link that was opened for them.
done({_, {done, Step, Link}}, R) -> did(Step, Link, R);
done({_, {failed, _, Step, Link}}, R) -> did(Step, Link, R);
done(_, R) -> R.

did(none, Link, R) -> linked(Link, R);
did(Step, Link, #r{done = Done} = R) -> linked(Link, R#r{done = [Step | Done]}).

linked({Node, Opened}, #r{links = Links} = R) ->
    R#r{links = maps:update_with(Node, fun(Was) -> Was orelse Opened end, Opened, Links)}.

%% On the first node that answers. The link stays till the end: other steps may use it at this
%% moment.
step(Step, R) -> step(Step, sderl_plan_steps:on(Step, planned(element(2, Step), R)), none, R).

planned(Group, R) -> lists:append([Ns || #{name := G, nodes := Ns} <- groups(R), G =:= Group]).

step(_, [], none, _) -> {error, no_member};
step(_, [], Why, _) -> {error, Why};
step(Step, [Node | Nodes], _, R) ->
    case open(Node) of
        {error, Why} -> step(Step, Nodes, Why, R);
        {ok, Opened} ->
            case asked(Node, request(Step), timeout(R)) of
                {ok, Done} -> {done, as(Done, Node, Step), {Node, Opened}};
                {error, {partly, Done, Why}} -> {failed, Why, as(Done, Node, Step), {Node, Opened}};
                {error, Why}
                  when Why =:= unreachable; Why =:= not_running; Why =:= no_library;
                       Why =:= node_does_not_belong_to_the_s_group; Why =:= remote_s_group ->
                    ok = close(Node, Opened),
                    step(Step, Nodes, Why, R);
                {error, Why} -> {failed, Why, none, {Node, Opened}}
            end
    end.

request({create, Group, Nodes}) -> {create, Group, Nodes};
request({add, Group, _, Nodes}) -> {add, Group, Nodes};
request({remove, Group, _, Nodes}) -> {remove, Group, Nodes};
request({delete, Group, _, _}) -> {delete, Group}.

%% The step as it was really done, which is what can be undone.
as({created, Joined}, _, {create, Group, _}) -> {create, Group, Joined};
as({added, []}, _, _) -> none;
as({added, Added}, Node, {_, Group, _}) -> {add, Group, [Node], Added};
as({added, Added}, Node, {add, Group, Holders, _}) ->
    {add, Group, [Node | Holders -- [Node]], Added};
as({removed, []}, _, _) -> none;
as({removed, Removed}, Node, {remove, Group, Holders, _}) ->
    {remove, Group, [Node | Holders -- [Node]], Removed};
as(deleted, _, Step) -> Step.

%% ---------------------------------------------------------------- undoing

undo(#r{options = #{undo := false}} = R) -> R;
undo(#r{done = Done} = R) ->
    Of = length(Done),
    {_, Undone} = lists:foldl(fun(Step, {I, Acc0}) ->
        Result = step(sderl_plan_steps:undo(Step), Acc0),
        tell(Acc0, {undo, shown(Step)}, I, Of, told(Result)),
        {I + 1, case Result of
            {done, _, Link} -> linked(Link, Acc0#r{undone = [Step | Acc0#r.undone]});
            {failed, Why, _, Link} -> linked(Link, Acc0#r{stuck = [{Step, Why} | Acc0#r.stuck]});
            {error, Why} -> Acc0#r{stuck = [{Step, Why} | Acc0#r.stuck]}
        end}
    end, {1, R}, Done),
    Undone.

%% ---------------------------------------------------------------- links afterwards

close_links(#r{links = Links, options = #{close_links := Close, parallel := Parallel}} = R) ->
    Parted = case Close of true -> parted(R); false -> #{} end,
    Tell = fun(Done, _, Result) -> tell(R, links, Done, map_size(Parted), Result) end,
    CloseAt = fun({Node, {Peers, Left}}) ->
        close_at(Node, Peers, Left, is_map_key(Node, Links), timeout(R))
    end,
    %% This node last: the links that it closes are those over which the others are asked.
    {Here, There} = lists:partition(fun({Node, _}) -> Node =:= node() end,
                                    lists:sort(maps:to_list(Parted))),
    Closed = each(Parallel, CloseAt, There, Tell) ++
        each(1, CloseAt, Here, fun(_, Item, Result) -> Tell(map_size(Parted), Item, Result) end),
    _ = each(Parallel, fun({Node, Opened}) -> close(Node, Opened) end, maps:to_list(Links),
             fun(_, _, _) -> ok end),
    R#r{closed = lists:sum([length(Ns) || {ok, Ns} <- Closed])}.

%% After an undo what was there before holds, and what was undone parts those whom it had brought
%% together.
parted(#r{done = Done, undone = [], survey = Survey, plan = Plan}) ->
    sderl_plan_steps:parted(Done, Survey, Plan);
parted(#r{undone = Undone, survey = Survey, plan = Plan}) ->
    Before = [#{name => G, role => workers, masters => 0, nodes => Ms}
              || Own <- maps:values(Survey), {G, _, Ms} <- Own],
    sderl_plan_steps:parted([sderl_plan_steps:undo(S) || S <- Undone], Survey,
                            Plan#{groups := Before}).

close_at(Node, Peers, Left, Kept, Timeout) ->
    case open(Node) of
        {error, _} = Error -> Error;
        {ok, Opened} ->
            Answer = asked(Node, {close, Peers -- [node()], Left}, Timeout),
            Kept orelse close(Node, Opened),
            Answer
    end.

%% ---------------------------------------------------------------- at the same time

%% Runs F for each in a process of its own, a few at a time; results in order. Tells of each that
%% ends.
each(Parallel, F, Items, Tell) -> each(Parallel, F, lists:enumerate(Items), #{}, #{}, Tell).

each(Parallel, F, [{I, Item} | Items], Busy, Done, Tell) when map_size(Busy) < Parallel ->
    each(Parallel, F, Items, Busy#{start(F, Item) => {I, Item}}, Done, Tell);
each(_, _, [], Busy, Done, _) when map_size(Busy) =:= 0 ->
    [R || {_, R} <- lists:sort(maps:to_list(Done))];
each(Parallel, F, Items, Busy, Done, Tell) ->
    receive
        {'DOWN', Ref, process, _, Why} when is_map_key(Ref, Busy) ->
            {{I, Item}, Rest} = maps:take(Ref, Busy),
            Result = case Why of {result, R} -> R; _ -> {error, {crashed, Why}} end,
            _ = Tell(map_size(Done) + 1, Item, Result),
            each(Parallel, F, Items, Rest, Done#{I => Result}, Tell)
    end.

start(F, Item) ->
    {_, Ref} = spawn_monitor(fun() -> exit({result, F(Item)}) end),
    Ref.

timeout(#r{options = #{timeout_ms := Ms}}) -> Ms.

tell(#r{options = #{progress := To}}, What, Done, Of, Result) ->
    Base = #{what => What, done => Done, total => Of},
    Progress = case Result of {error, Why} -> Base#{error => Why}; _ -> Base end,
    _ = case To of
        none -> ok;
        Pid when is_pid(Pid) -> Pid ! {sderl_plan, Progress};
        {M, F, Args} -> apply(M, F, Args ++ [Progress])
    end,
    ok.

%% ---------------------------------------------------------------- arguments

options(Given, Where, I) when is_map(Given) ->
    Options = maps:merge(#{progress => none, undo => true, close_links => true, parallel => 8,
                           timeout_ms => 30_000}, Given),
    case lists:sort([K || K := V <- Options, not option(K, V)]) of
        [] -> Options;
        [K | _] ->
            misuse(?MODULE, Where, I, #{K => map_get(K, Options)},
                   "one of the options, with a value that it can have")
    end;
options(Given, Where, I) -> misuse(?MODULE, Where, I, Given, "a map of options").

option(progress, none) -> true;
option(progress, {M, F, Args}) -> is_atom(M) andalso is_atom(F) andalso is_list(Args);
option(progress, To) -> is_pid(To);
option(K, V) when K =:= undo; K =:= close_links -> is_boolean(V);
option(K, V) when K =:= parallel; K =:= timeout_ms -> is_integer(V) andalso V > 0;
option(_, _) -> false.
