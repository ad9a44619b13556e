%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place).
-moduledoc """
Chooses nodes by their attributes, load and distance, and spawns processes there.

A *spec* says which nodes are candidates, which conditions must hold, which are preferred, and how
to choose among the nodes that fit:

```erlang
sderl_place:choose_node(#{group => workers,
                          where => [{effective_processors, ge, 4}, {label, zone, in, [a, b]}],
                          choose => {two, run_queue}}).

sderl_place:choose_nodes(#{group => storage, choose => {spread, {label, rack}}, count => 3}).
```

```elixir
:sderl_place.choose_node(%{
  group: :workers,
  choose: {:two, :run_queue},
  where: {:effective_processors, :ge, 4}
})
```

Filters come first, then the preferences, then the chooser. `explain/1` shows the outcome for each
candidate, with the reason. Choosing does not spawn: use `erlang:spawn/4` on the chosen node, or
`spawn/3` of this module, which also keeps the process running.

## Specs

A spec is a map. A missing key has its default, and an unknown key is an error. A list of nodes
stands for `#{nodes => Nodes}`.

| key | values | default | meaning |
|---|---|---|---|
| `nodes` | `[Node]` | | candidates |
| `group`, `groups` | `Group`, `[Group]` | | candidates: the members of these groups, own ones and others that are known |
| `known` | boolean | `false` | candidates: all nodes of all groups that are known here |
| `member_of` | `[Group]` | `[]` | candidates must be members of all of these |
| `exclude` | `[Node]` | `[]` | these are no candidates |
| `where` | condition or list | `[]` | must all hold |
| `prefer` | condition, `{Weight, Condition}`, or list | `[]` | nodes with the greatest sum of weights (each 1 by default) come first |
| `choose` | chooser | see below | |
| `count` | whole number, `all` | `all` | how many; fewer are given when fewer fit. `choose_node` gives one |
| `from` | `Node` | this node | what distances are measured from |
| `adds` | number, from 0 | see below | what one choice adds to the attribute that the chooser compares |
| `pending` | boolean | see below | whether this choice counts as pending |
| `max_age_ms` | ms, `infinity` | 10000 | how old a known value may be; the node is asked for a newer value if it is older |
| `timeout_ms` | ms | 5000 | how long to wait in all for the nodes that are asked; 0: ask no node |

Without a key for candidates, the candidates are this node and all members of its groups. Several
keys give the union.

## Conditions

| condition | holds when |
|---|---|
| `{Attribute, eq \| ne \| lt \| le \| gt \| ge, Constant}` | the value compares so (`==`, `/=`, `<`, `=<`, `>`, `>=`, with any terms) |
| `{Attribute, true \| false \| yes \| no}` | it is exactly that |
| `{Attribute, in \| not_in, [Constant]}` | it is one of these, or none of them |
| `{Attribute, exists}` | it has a value |
| `{label, Key, equals \| not_equals, Constant}`, `{label, Key, in \| not_in, [Constant]}` | likewise, of a label |
| `{label, Key, exists \| not_exists}` | the node has the label, or not |
| `{label, Key, Operator, Constant}` | as with attributes |
| `{dist, Operator, Number}` | the distance from `from` compares so |
| `{dist, {node, Node} \| {group, Group}, Operator, Number}` | the same for the distance from another node, or from the nearest member of a group |

An attribute that is missing, undefined or cannot be asked in time makes every condition on it
false, also `ne` and `not_in`. So does an unknown distance. A node that is known not to have a label
fits `not_in`, `not_equals` and `not_exists`, as in other systems with label selectors. `dist` and
`label` cannot be asked as names of attributes.

## Choosers

| chooser | chooses |
|---|---|
| `random` | any of those that fit; the default where a number is asked for |
| `in_order` | the first ones, in the order of the candidates; the default for all |
| `{least, Attribute}`, `{most, Attribute}` | the least value, or the greatest; nodes whose value is no number are dropped |
| `{two, Attribute}`, `{two, most, Attribute}` | the better one of two at random; the best choice when many nodes choose for themselves |
| `nearest`, `{nearest, {node, Node} \| {group, Group}}` | the least distance; of equally near nodes the one that was chosen least |
| `spread`, `{spread, group \| {label, Key} \| {attr, Attribute}}` | so that each host (group, value of the label) has equally many |
| `{hash, Key}` | always the same for a key (rendezvous hashing): when a node goes, only its keys move; nodes with the same candidates agree |

## Choices that do not show yet

Attributes are some seconds old, so the load of a process that was just spawned does not show yet,
and the least loaded node would get all processes until new values come. So each choice of this node
counts against the chosen node until a value comes that was measured later, for at most ten seconds.
By default a choice adds half the difference between the least and the greatest value of the
candidates, and at least 1 if these are whole numbers. This overestimates on purpose, so that many
nodes that choose at once do not all take one node. If only one node chooses, set `adds` (`adds =>
1` for a count of processes). Choices of all fitting nodes and by `{hash, _}` are not counted,
unless `pending` says so.

Each node counts its own choices only. When many nodes choose at the same time from the same values,
`{two, Attribute}` keeps them from all taking the same node.

## Processes that stay

`spawn/2,3` chooses a node, spawns a process there, and keeps it running: if the process or its node
fails, it is started again on another node that fits, and the owner gets a message.

A keeper on the calling node does this. It is linked to the process, as a supervisor is to its
children: the process ends when the keeper's node is lost, so there are never two processes for
longer than both nodes take to notice. The keeper ends with its owner, and ends the process. If the
chosen node has no link, because it is in another group or in none, the keeper opens one;
`s_group:links/0` shows it with the reason `{place, Keeper}`.

The owner gets `{sderl_place, Keeper, Event}`:

| event | when |
|---|---|
| `{moved, Old, New, Reason}` | `Old` ended with `Reason`; `New` runs, under the name if there is one |
| `{ended, Pid, Reason}` | the process ended and will not be restarted |
| `{failed, Reason}` | the process does not run any more: `{no_node_left, [{Node, Reason}]}`, `{too_many_moves, Reason}`, `{name_taken, Pid}`, `{unknown_group, Group}` |

After the last two the keeper has ended.

## Errors

A spec that is wrong in itself raises `{badarg, {sderl_place, Function, Arity}, Details}`, with the
place in `path` and a sentence in `expected`; `check/1` gives that as a value. Expected failures are
values: `none` or `[]` when no node fits; `{error, {unknown_group, Group}}` for a group of which
this node knows no member; `{error, not_running}` and `{error, connect_all}` as in `s_group`.

## Sources

Attributes, distances and their predicates: Chechina et al., *Improving the network scalability of
Erlang* (JPDC 2016); MacKenzie et al., *Performance portability through semi-explicit placement in
distributed Erlang* (Erlang 2015). Two choices: Mitzenmacher, *The power of two choices in
randomized load balancing* (2001). Rendezvous hashing: Thaler and Ravishankar (1998).
""".

-export([choose_node/1, choose_node/2, choose_nodes/1, choose_nodes/2]).
-export([explain/1, explain/2, explain_text/1, check/1, format_error/1]).
-export([spawn/2, spawn/3, placed/1, stop/1]).
-compile({no_auto_import, [spawn/2, spawn/3]}).

-export_type([spec/0, condition/0, chooser/0, explanation/0, candidate/0, verdict/0, failure/0,
              spawn_options/0]).

-import(sderl_check, [misuse/4, misuse/5]).

-doc "See the table of keys above.".
-type spec() :: #{atom() => term()} | [node()].
-doc "See the table of conditions above.".
-type condition() :: tuple().
-doc "See the table of choosers above.".
-type chooser() :: random | in_order | nearest | spread | tuple().
-doc "Why nothing could be chosen at all.".
-type failure() :: {unknown_group, Group :: term()} | not_running | connect_all.
-doc """
The outcome of a condition: its value and that value's age in milliseconds, or the reason why there
is none.
""".
-type verdict() ::
    #{condition := condition(), holds := boolean(), value => term(), age_ms => number(),
      reason => term(), weight => pos_integer()}.
-doc """
One candidate. A dropped candidate has `why`: the first condition that does not hold, or a reason,
such as `down`, or why the chooser has no value (`undefined`, `not_a_number`, `timeout`, ...). A
fitting candidate has the `score` of its preferences, its `pending` choices, the `value` that the
chooser compares and, if that is a load, the `load` including pending choices (lower is better).
""".
-type candidate() ::
    #{
        node := node(), verdict := chosen | fits | dropped, why => verdict() | term(),
        conditions := [verdict()], prefer := [verdict()], score => non_neg_integer(),
        pending => non_neg_integer(), value => term(), age_ms => number(), load => number()
    }.
-doc "What `explain/1` gives.".
-type explanation() :: #{choose := chooser(), count := pos_integer() | all, chosen := [node()],
                         candidates := [candidate()]}.

-doc """
For `spawn/3`. `start`: `spawn` (default) if the process runs `M:F(A...)` (it may become a server
with `gen_server:enter_loop/3`); `start_link` if `M:F(A...)` starts a process, links to it and
returns `{ok, Pid}`, as in the child specification of a supervisor. `name`: `{Group, Name}`, the
name that the process gets before it runs (or when it has started); it is registered by this node if
that is a member of the group, else by the process's node. `restart`: when it is started again, as
with supervisors: `permanent` always, `transient` (default) when it ends abnormally or its node is
lost, `temporary` never. `max_moves` within `period_ms`: 3 within 60000. `spawn_timeout_ms`: how
long a node may take to answer (5000); then another is tried. `owner`: the calling process.
""".
-type spawn_options() ::
    #{start => spawn | start_link,
      name => {s_group:group(), s_group:name()},
      restart => permanent | transient | temporary,
      max_moves => non_neg_integer(),
      period_ms => pos_integer(),
      spawn_timeout_ms => pos_integer(),
      owner => pid()}.

-doc "Chooses one node, or says that none fits.".
-spec choose_node(spec()) -> node() | none | {error, failure()}.
choose_node(Spec) -> one(parsed(sderl_place_spec:parse(one, Spec), choose_node, 1)).

-doc """
The same with more conditions: `choose_node([Node], Conditions)`, or those of a spec and these.
""".
-spec choose_node(spec(), condition() | [condition()]) -> node() | none | {error, failure()}.
choose_node(Spec, Conditions) ->
    one(parsed(sderl_place_spec:add(one, Spec, Conditions), choose_node, 2)).

one(Spec) ->
    case running(fun() -> sderl_place_query:choose(Spec) end) of
        [Node] -> Node;
        [] -> none;
        {error, _} = Error -> Error
    end.

-doc """
Chooses `count` nodes, all different, or all that fit; fewer if fewer do. The order is the
chooser's: the best first.
""".
-spec choose_nodes(spec()) -> [node()] | {error, failure()}.
choose_nodes(Spec) -> many(parsed(sderl_place_spec:parse(many, Spec), choose_nodes, 1)).

-doc """
The same with more conditions. As published: `choose_nodes(Nodes, Predicates)`, where a dead node or
one whose attribute is undefined is left out.
""".
-spec choose_nodes(spec(), condition() | [condition()]) -> [node()] | {error, failure()}.
choose_nodes(Spec, Conditions) ->
    many(parsed(sderl_place_spec:add(many, Spec, Conditions), choose_nodes, 2)).

many(Spec) ->
    case running(fun() -> sderl_place_query:choose(Spec) end) of
        Nodes when is_list(Nodes) -> Nodes;
        {error, _} = Error -> Error
    end.

-doc """
Chooses as `choose_nodes/1` would now, and returns the outcome for each candidate. It does not count
as a choice. If the chooser decides at random, another call may choose other nodes.
""".
-spec explain(spec()) -> explanation() | {error, failure()}.
explain(Spec) -> explained(parsed(sderl_place_spec:parse(many, Spec), explain, 1)).

-doc "The same with more conditions.".
-spec explain(spec(), condition() | [condition()]) -> explanation() | {error, failure()}.
explain(Spec, Conditions) ->
    explained(parsed(sderl_place_spec:add(many, Spec, Conditions), explain, 2)).

explained(Spec) ->
    case running(fun() -> sderl_place_query:survey(Spec) end) of
        {ok, Survey} -> sderl_place_explain:term(Spec, Survey);
        {error, _} = Error -> Error
    end.

-doc """
An explanation as a table: `io:put_chars(sderl_place:explain_text(Explanation))`.
""".
-spec explain_text(explanation()) -> unicode:chardata().
explain_text(#{choose := _, candidates := _} = Explanation) ->
    sderl_place_explain:text(Explanation);
explain_text(Other) -> misuse(?MODULE, {explain_text, 1}, 1, Other, "what explain gave").

-doc """
Checks a spec without choosing. `format_error/1` makes a sentence of the error.
""".
-spec check(term()) -> ok | {error, sderl_place_spec:error()}.
check(Spec) ->
    case sderl_place_spec:parse(many, Spec) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

-doc """
One sentence for people.

```
1> sderl_place:format_error({bad_spec, [where, 2], {cpu, above, 4}, condition}).
"bad spec at where[2]: {cpu,above,4} is not a condition; write {Attribute, Operator, Constant}, ..."
```
""".
-spec format_error(sderl_place_spec:error()) -> string().
format_error({bad_spec, _, _, _} = Error) -> sderl_place_spec:sentence(Error);
format_error(Other) -> misuse(?MODULE, {format_error, 1}, 1, Other, "an error of check").

%% ---------------------------------------------------------------- processes

-doc "`spawn/3` without options.".
-spec spawn(spec(), {module(), atom(), [term()]}) -> {ok, Keeper :: pid(), pid()} | {error, term()}.
spawn(Spec, MFA) -> kept(Spec, MFA, 2, #{}).

-doc """
Runs `M:F(A...)` in a process on a node that a spec chooses and keeps it running; see above. The
node must run this library.

```erlang
{ok, Keeper, Pid} =
    sderl_place:spawn(#{group => workers, choose => {two, run_queue}},
                      {gen_server, start_link, [tenant, [42], []]},
                      #{start => start_link, name => {workers, {tenant, 42}}}).
```

Nodes that cannot be reached, do not answer, or cannot give it the name are passed over. Errors:
`{no_node_left, [{Node, Reason}]}` with the nodes that were tried (none, if no node fits),
`{name_taken, Pid}` (`undefined` if that has just ended), and those of `t:failure/0`.
""".
-spec spawn(spec(), {module(), atom(), [term()]}, spawn_options()) ->
    {ok, Keeper :: pid(), pid()}
    | {error, {no_node_left, [{node(), Why :: term()}]} | {name_taken, pid() | undefined}
              | failure() | term()}.
spawn(Spec, MFA, Options) -> kept(Spec, MFA, 3, Options).

kept(Spec, MFA, A, Options) ->
    Parsed = parsed(sderl_place_spec:parse(one, Spec), spawn, A),
    ok = mfa_arg(MFA, A),
    ok = options_arg(Options),
    Args = maps:merge(#{start => spawn, owner => self(), name => none, restart => transient,
                        max_moves => 3, period_ms => 60_000, spawn_timeout_ms => 5_000}, Options),
    case running(fun() -> sderl_place_keeper:start(Args#{spec => Parsed, mfa => MFA}) end) of
        {ok, Keeper, Pid} -> {ok, Keeper, Pid};
        {error, _} = Error -> Error
    end.

-doc "Where the process of a keeper runs now. `over`: there is no such keeper, or none any more.".
-spec placed(Keeper :: pid()) -> {ok, pid()} | {error, moving | over}.
placed(Keeper) ->
    ok = keeper_arg(Keeper, placed),
    sderl_place_keeper:place(Keeper).

-doc """
Ends a keeper and its process, which gets the exit signal `shutdown` and is killed after five
seconds. The owner gets no message. Returns `ok` also when they have ended already; raises if the
process is no keeper.
""".
-spec stop(Keeper :: pid()) -> ok.
stop(Keeper) ->
    ok = keeper_arg(Keeper, stop),
    sderl_place_keeper:stop(Keeper).

%% So long the node of a keeper is asked what it is.
-define(ASK_MS, 5000).

%% Another process would be asked what it does not understand, and waited for until it ends.
keeper_arg(Keeper, F) when is_pid(Keeper) ->
    case asked(Keeper, proc_lib, initial_call) of
        {ok, {sderl_place_keeper, init, _}} ->
            ok;
        {ok, _} ->
            _ = asked(Keeper, erlang, is_process_alive) =:= {ok, true} andalso no_keeper(Keeper, F),
            ok;
        %% Its node is gone or silent, which ends the wait for the keeper too.
        unknown ->
            ok
    end;
keeper_arg(Other, F) -> no_keeper(Other, F).

asked(Keeper, M, F) when node(Keeper) =:= node() ->
    {ok, M:F(Keeper)};
asked(Keeper, M, F) ->
    try
        {ok, erpc:call(node(Keeper), M, F, [Keeper], ?ASK_MS)}
    catch
        error:{erpc, _} -> unknown
    end.

-spec no_keeper(term(), atom()) -> no_return().
no_keeper(Found, F) -> misuse(?MODULE, {F, 1}, 1, Found, "the keeper that spawn gave").

mfa_arg({M, F, Args}, _) when is_atom(M), is_atom(F), length(Args) >= 0 -> ok;
mfa_arg(Other, A) -> misuse(?MODULE, {spawn, A}, 2, Other, "{Module, Function, Arguments}").

options_arg(Options) when is_map(Options) ->
    lists:foreach(fun({Key, Value}) ->
        case option(Key, Value) of
            ok -> ok;
            Expected ->
                misuse(?MODULE, {spawn, 3}, 3,
                       #{path => [Key], found => Value, expected => Expected})
        end
    end, maps:to_list(Options));
options_arg(Other) -> misuse(?MODULE, {spawn, 3}, 3, Other, "a map of options").

option(name, {_, _}) -> ok;
option(name, _) -> "{Group, Name}";
option(start, Start) when Start =:= spawn; Start =:= start_link -> ok;
option(start, _) -> "spawn or start_link";
option(owner, Pid) when is_pid(Pid) -> ok;
option(owner, _) -> "a pid";
option(restart, Restart) when Restart =:= permanent; Restart =:= transient; Restart =:= temporary ->
    ok;
option(restart, _) -> "permanent, transient or temporary";
option(max_moves, N) when is_integer(N), N >= 0 -> ok;
option(max_moves, _) -> "a whole number from 0";
option(Time, Ms)
  when (Time =:= period_ms orelse Time =:= spawn_timeout_ms), is_integer(Ms), Ms > 0,
       Ms =< 16#FFFFFFFF ->
    ok;
option(Time, _) when Time =:= period_ms; Time =:= spawn_timeout_ms -> "a number of milliseconds";
option(_, _) ->
    "one of the options start, name, owner, restart, max_moves, period_ms, spawn_timeout_ms".

%% ---------------------------------------------------------------- arguments

parsed({ok, Spec}, _, _) -> Spec;
parsed({error, {bad_spec, Path, Found, _} = Error}, F, A) ->
    I = case Path of [conditions | _] -> 2; _ -> 1 end,
    misuse(?MODULE, {F, A}, I,
           #{path => Path, found => Found, expected => sderl_place_spec:sentence(Error)}).

running(Fun) -> sderl_running:call(Fun).
