%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_moves).
-moduledoc false.
%% The next action of the keeper of a placed process. Pure: `step(Now, Event, State)` gives effects
%% and a state; `sderl_place_keeper` runs them.
%%
%% A round is one placement: choose, spawn, register if there is a name, let it run. A node that
%% fails is not chosen again in the round. The node on which the process has just died is chosen
%% only if there is no other one, and if it was the process that failed and not the node.
%%
%% A process under a name runs only once it has the name: it is spawned to wait for its `go`.

-export([new/1, step/3, place/1]).
-export_type([t/0, options/0, event/0, effect/0]).

-type options() :: #{named := boolean(), restart := permanent | transient | temporary,
                     max_moves := non_neg_integer(), period_ms := pos_integer()}.
-type event() :: start | {chosen, node()} | {unreachable, node()} | none | {cannot, Why :: term()}
    | {spawned, pid()} | {not_spawned, Why :: term()}
    | named | {taken, By :: term()} | {not_named, Why :: term()}
    | {exit, pid(), Why :: term()} | stop.
-doc """
`answer` is for the caller that asked for the process, `tell` for its owner afterwards. `leave`:
nothing of this keeper runs on that node any more. `finish` is the last effect.
""".
-type effect() :: {choose, Exclude :: [node()]} | {spawn, node()}
                  | {name, pid(), Before :: pid() | none} | {go, pid()}
                  | {answer, {ok, pid()} | {error, term()}} | {tell, term()} | {kill, pid()}
                  | {leave, node()} | finish.

-record(m, {
    options :: options(),
    phase = idle :: idle | choosing | {spawning, node()} | {naming, node(), pid()}
                    | {running, node(), pid()} | over,
    %% Of this round: nodes that failed; where the process died.
    failed = [] :: [{node(), Why :: term()}],
    avoid = [] :: [{node(), Why :: term()}],
    %% The process before, and why it ended.
    before = none :: none | {pid(), Why :: term()},
    %% The times of the last moves, ms.
    moves = [] :: [integer()]
}).
-opaque t() :: #m{}.

-spec new(options()) -> t().
new(Options) -> #m{options = Options}.

-doc "Where the process is.".
-spec place(t()) -> {ok, pid()} | {error, moving | over}.
place(#m{phase = {running, _, Pid}}) -> {ok, Pid};
place(#m{phase = over}) -> {error, over};
place(#m{}) -> {error, moving}.

-spec step(Now :: integer(), event(), t()) -> {[effect()], t()}.
step(_, start, #m{phase = idle} = M) -> choose(M);
step(_, {chosen, Node}, #m{phase = choosing} = M) ->
    {[{spawn, Node}], M#m{phase = {spawning, Node}}};
step(_, {unreachable, Node}, #m{phase = choosing} = M) -> next(Node, unreachable, [], M);
step(_, none, #m{phase = choosing, avoid = []} = M) -> nobody(M);
step(_, none, #m{phase = choosing, avoid = Avoid} = M) ->
    %% There is no other node: now those where the process failed may be chosen, but not nodes that
    %% are gone.
    choose(M#m{avoid = [], failed = M#m.failed ++ [A || {_, noconnection} = A <- Avoid]});
step(_, {cannot, Why}, #m{phase = choosing} = M) -> fail(Why, [], M);
step(_, {spawned, Pid}, #m{phase = {spawning, Node}, options = #{named := true}} = M) ->
    {[{name, Pid, before(M)}], M#m{phase = {naming, Node, Pid}}};
step(_, {spawned, Pid}, #m{phase = {spawning, Node}} = M) -> runs(Node, Pid, [], M);
step(_, {not_spawned, Why}, #m{phase = {spawning, Node}} = M) -> next(Node, Why, [], M);
step(_, named, #m{phase = {naming, Node, Pid}} = M) -> runs(Node, Pid, [{go, Pid}], M);
step(_, {taken, By}, #m{phase = {naming, Node, _}} = M) ->
    fail({name_taken, By}, [{leave, Node}], M);
step(_, {not_named, Why}, #m{phase = {naming, Node, Pid}} = M) ->
    next(Node, {not_registered, Why}, [{kill, Pid}], M);
step(_, {exit, Pid, Why}, #m{phase = {naming, Node, Pid}} = M) -> next(Node, Why, [], M);
step(Now, {exit, Pid, Why}, #m{phase = {running, Node, Pid}} = M) -> ended(Now, Why, Node, Pid, M);
step(_, stop, #m{phase = over} = M) -> {[], M};
step(_, stop, #m{phase = Phase} = M) ->
    {case Phase of
         %% The process ends by its link.
         {naming, Node, _} -> [{leave, Node}];
         {running, Node, _} -> [{leave, Node}];
         {spawning, Node} -> [{leave, Node}];
         _ -> []
     end ++ [finish], M#m{phase = over}};
%% Late: a helper's result after another event, or the exit of a process that was killed.
step(_, _, M) -> {[], M}.

choose(#m{failed = Failed, avoid = Avoid} = M) ->
    {[{choose, [N || {N, _} <- Failed ++ Avoid]}], M#m{phase = choosing}}.

before(#m{before = {Pid, _}}) -> Pid;
before(#m{before = none}) -> none.

next(Node, Why, Effects, #m{failed = Failed} = M0) ->
    {More, M} = choose(M0#m{failed = Failed ++ [{Node, Why}]}),
    {Effects ++ [{leave, Node} | More], M}.

runs(Node, Pid, Effects, #m{before = Before} = M) ->
    Say = case Before of
        none -> {answer, {ok, Pid}};
        {Old, Why} -> {tell, {moved, Old, Pid, Why}}
    end,
    {Effects ++ [Say], M#m{phase = {running, Node, Pid}, failed = [], avoid = []}}.

ended(Now, Why, Node, Pid, #m{options = #{restart := Restart, max_moves := Max,
                                          period_ms := Period},
                              moves = Moves} = M) ->
    Lately = [T || T <- Moves, T > Now - Period],
    case again(Restart, Why) of
        false -> {[{tell, {ended, Pid, Why}}, {leave, Node}, finish], M#m{phase = over}};
        true when length(Lately) >= Max ->
            fail({too_many_moves, Why}, [{leave, Node}], M#m{before = {Pid, Why}});
        true ->
            {Effects, New} = choose(M#m{before = {Pid, Why}, moves = [Now | Lately],
                                        avoid = [{Node, Why}], failed = []}),
            {[{leave, Node} | Effects], New}
    end.

again(permanent, _) -> true;
again(temporary, _) -> false;
again(transient, normal) -> false;
again(transient, shutdown) -> false;
again(transient, {shutdown, _}) -> false;
again(transient, _) -> true.

nobody(#m{failed = Failed} = M) -> fail({no_node_left, Failed}, [], M).

fail(Why, Effects, #m{before = none} = M) ->
    {Effects ++ [{answer, {error, Why}}, finish], M#m{phase = over}};
fail(Why, Effects, M) -> {Effects ++ [{tell, {failed, Why}}, finish], M#m{phase = over}}.
