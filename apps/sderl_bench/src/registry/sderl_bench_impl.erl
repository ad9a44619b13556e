%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl).
-moduledoc """
A registry of names as `bin/sderl bench registry` measures it: how its nodes are started,
and what a client calls. All but `plan/1` and `prepare/3` run on the measured nodes, in the
process of the client.

A *group* is a set of nodes that share a namespace; its name is an atom. Where a registry
knows no groups, one namespace holds all nodes.
""".

-export([module/1, names/0, peers/0, kind/1, fleet_plan/3]).
-export([each_group/2, on_all/6, await_known/6, key/1]).
-export_type([params/0, group/0, outcome/0, plan/0]).

-define(CALL_MS, 300_000).

-doc "The options that decide how nodes are started; `group_size` divides `nodes`.".
-type params() :: #{nodes := pos_integer(), group_size := pos_integer(), atom() => term()}.

-doc "The name of a group.".
-type group() :: atom().

-doc "A reason is the registry's own.".
-type outcome() :: ok | {error, term()}.

-doc """
The settings with which the nodes are started besides the defaults, and the groups that they form;
`paths` is the code path that they need beside ours, `env` the configuration.
""".
-type plan() :: #{
    connect_all := boolean(),
    apps := [atom()],
    s_groups := boolean(),
    groups := [sderl_bench_layout:namespace(pos_integer())],
    paths => [file:filename()],
    env => [{App :: atom(), Key :: atom(), Value :: term()}]
}.

-doc "How to start the nodes.".
-callback plan(params()) -> plan().

-doc """
Called once when the nodes run, on the driving node: links them and waits until every node can
register.
""".
-callback prepare(Fleet :: pid(), [sderl_bench_layout:namespace()], params()) ->
    ok | {error, term()}.

-doc "Registers the calling process under `Name`, and returns when that is decided.".
-callback register(group(), Name :: term()) -> outcome().

-doc "Removes `Name`, which the calling process registered, and returns when that is done.".
-callback unregister(group(), Name :: term()) -> outcome().

-doc "The process of a name, as this node knows it.".
-callback whereis(group(), Name :: term()) -> pid() | undefined.

-doc "All names of the group that this node knows.".
-callback names(group()) -> [{Name :: term(), pid()}].

-doc """
`strong`: when an operation has returned, all members agree, and the run checks that at
once. `eventual`: they agree some time later; the run waits for it.
""".
-callback consistency() -> strong | eventual.

-doc "The guarantee when `register/2` or `unregister/2` returns, in a line for people.".
-callback promise() -> string().

-doc "The module of an implementation by the name that users type.".
-spec module(string()) -> {ok, module()} | error.
module(Name) ->
    case lists:keyfind(Name, 1, known()) of
        {Name, Module, _} -> {ok, Module};
        false -> error
    end.

-doc "The names that users type.".
-spec names() -> [string()].
names() -> [Name || {Name, _, _} <- known()].

-doc "The registries of other projects, each named as its application.".
-spec peers() -> [string()].
peers() -> [Name || {Name, _, peer} <- known()].

-doc "Whether it comes with this program, or is another project's (`--peer`).".
-spec kind(Name :: string()) -> included | peer | unknown.
kind(Name) ->
    case lists:keyfind(Name, 1, known()) of
        {Name, _, Kind} -> Kind;
        false -> unknown
    end.

known() ->
    [
        {"s_group", sderl_bench_impl_s_group, included},
        {"s_group_applied", sderl_bench_impl_s_group_applied, included},
        {"global", sderl_bench_impl_global, included},
        {"pg", sderl_bench_impl_pg, included},
        {"yardstick", sderl_bench_impl_yardstick, included},
        {"syn", sderl_bench_impl_syn, peer},
        {"group", sderl_bench_impl_group, peer},
        {"khepri", sderl_bench_impl_khepri, peer}
    ].

-doc """
So many nodes for an implementation, as a plan for `sderl_fleet:start/1`. `Label` stands before the
progress bar.
""".
-spec fleet_plan(plan(), Count :: pos_integer(), Label :: unicode:chardata()) -> sderl_fleet:plan().
fleet_plan(Plan, Count, Label) ->
    #{connect_all := ConnectAll, apps := Apps, s_groups := InConfig, groups := Groups} = Plan,
    Family = #{
        name => n,
        count => Count,
        connect_all => ConnectAll,
        apps => Apps,
        env => maps:get(env, Plan, []),
        args => lists:append([["-pz", Path] || Path <- maps:get(paths, Plan, [])])
    },
    #{
        families => [Family],
        s_groups => [{Group, normal, [{n, Positions}]} || InConfig, {Group, Positions} <- Groups],
        progress => sderl_progress:reporter([Label, ": starting nodes"])
    }.

%% ---------------------------------------------------------------- for implementations' prepare/3

-doc "Calls a function of a group and its nodes, for all groups at the same time; the first error.".
-spec each_group([sderl_bench_layout:namespace()],
                 fun((group(), [node()]) -> ok | {error, Reason})) ->
    ok | {error, Reason}.
each_group(Namespaces, Fun) ->
    case [Outcome || {_, Outcome} <- sderl_fleet_task:at_once(Namespaces, Fun), Outcome =/= ok] of
        [] -> ok;
        [Error | _] -> Error
    end.

-doc "Calls a function on nodes; an error if it does not give `Wanted` on each.".
-spec on_all(Fleet :: pid(), [node()], module(), Function, Args :: [term()], Wanted :: term()) ->
    ok | {error, {Function, node(), term()}}
when
    Function :: atom().
on_all(Fleet, Nodes, Module, Function, Args, Wanted) ->
    Answers = sderl_fleet:multicall(Fleet, Nodes, Module, Function, Args, ?CALL_MS),
    case [{Node, Answer} || {Node, Answer} <- Answers, Answer =/= {ok, Wanted}] of
        [] -> ok;
        [{Node, Answer} | _] -> {error, {Function, Node, Answer}}
    end.

-doc "Waits until the list that a function gives has `Count` elements, on each of the nodes.".
-spec await_known(
    Fleet :: pid(), [node()], module(), Function :: atom(), [term()], Count :: non_neg_integer()
) -> ok | {error, {timeout, Last :: term()}}.
await_known(Fleet, Nodes, Module, Function, Args, Count) ->
    sderl_fleet:await(
        fun() ->
            Answers = sderl_fleet:multicall(Fleet, Nodes, Module, Function, Args, ?CALL_MS),
            [Answer || {_, {ok, Known}} = Answer <- Answers, length(Known) =:= Count] =:= Answers
                orelse Answers
        end,
        ?CALL_MS
    ).

-doc "A client's name as text, for registries whose keys are text.".
-spec key({pos_integer(), non_neg_integer(), pos_integer()}) -> binary().
key({Node, Client, Number}) ->
    Text = fun erlang:integer_to_binary/1,
    <<(Text(Node))/binary, $/, (Text(Client))/binary, $/, (Text(Number))/binary>>.
