%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model).
-moduledoc """
The meaning of the operations of `m:s_group`, as a program: one state and one rule for each
operation.

A cluster is a value. A command runs on a node and gives the value of the call there, and the
cluster after it. There are no processes, no messages and no time: a state is the one that real
nodes reach when nothing is under way any more. So the program serves to learn the system, to find
out what a change would do, and to check real nodes (as the tests do).

```erlang
S0 = sderl_model:new([a, b, c]),
{{ok, left, [a, b]}, S1} = sderl_model:run(S0, {new_s_group, left, [a, b]}, a),
{Pid, S2} = sderl_model:run(S1, spawn, a),
{yes, S3} = sderl_model:run(S2, {register_name, left, db, Pid}, a),
sderl_model:show(S3).
```

## Commands

A command is a function of `m:s_group` with its arguments: `{register_name, Group, Name, Pid}`, or
`own_nodes` for one without. Processes are symbols, `{pid, Node, Number}`. Further commands are
`spawn` (gives a process of the node), `{exit, Pid}`, `crash` (of the node) and `restart`.

## Choices

Where the rules do not decide, the state has open choices: `open/1` lists them, and `choose/3` makes
one. A resolver chooses which process keeps a name that two islands bring; when a node crashes that
was the home of a process elsewhere, the group may or may not have lost that process's name. No
command runs on a state with open choices.

Some links cannot be predicted: the member that coordinates a group links to the node of a process
that has a name there and is on no member. `may_link/1` lists those links, and `linked/3` adds one
that was observed.

No node of a group that decides by majority can crash here: what happens then depends on which
others are up, and in what order they come back (`docs/majority.md`). `run/3` raises
`{decides_by_majority, Group}`.

`docs/semantics.md` explains the rules with examples.
""".

%% The rules are those of Chechina et al., *Improving the network scalability of distributed
%% Erlang*, JPDC 2016 (section 5; the state is its Fig. 5), and of the executable model that was
%% published with the library, in its form: (state, command, node) -> (state', value). Each rule
%% below says where it comes from: JPDC, the executable model (M), the library as it was shipped
%% (L), or a decision of this project (D, with the rule of INTERNALS where there is one). Where
%% these disagree, D is what the library does and what docs/semantics.md explains.
%%
%% Read `rule/3` for the operations, sderl_model_state for what they do to groups, islands and
%% links, sderl_model_names for the names of one group.

-export([new/1, run/2, run/3, show/1, format/1, view/2]).
-export([open/1, options/2, choose/3, may_link/1, linked/3]).
-export_type([state/0, command/0, value/0, view/0]).

-import(sderl_model_state, [own/3, link/3, class/2, is_up/2]).

-type state() :: sderl_model_state:state().
-type group() :: sderl_model_state:group().
-type name() :: term().
-type pid_() :: sderl_model_names:process().
-type command() ::
    {new_s_group, [node()]} | {new_s_group, group(), [node()]}
    | {new_s_group, group(), [node()], #{consistency => available | majority}}
    | {delete_s_group, group()} | {recover_majority, group(), Survivors :: [node()]}
    | {add_nodes, group(), [node()]} | {remove_nodes, group(), [node()]}
    | {enter, group(), Seeds :: [node()]} | {leave, group()}
    | {register_name, group(), name(), pid_()} | {register_name, group(), name(), pid_(), map()}
    | {re_register_name, group(), name(), pid_()} | {unregister_name, group(), name()}
    | {whereis_name, group(), name()} | {whereis_name, node(), group(), name()}
    | {send, group(), name(), Message :: term()}
    | {send, node(), group(), name(), Message :: term()}
    | {read, group(), name()} | {lookup, group(), name()}
    | {registered_names, {s_group, group()} | {node, node()}}
    | own_nodes | {own_nodes, group()} | own_s_groups | s_groups
    | spawn | {exit, pid_()} | crash | restart.
-type value() :: term().
-doc """
All that can be seen of a node: its groups (`undefined` for the free names), their names, its links,
what it knows of others' groups, and the messages that its processes got.
""".
-type view() :: #{
    class := sderl_model_state:class(),
    groups := [{group(), [node()]}],
    names := [{{group(), name()}, pid_()}],
    links := [node()],
    known := [{group(), [node()]}],
    processes := #{pid_() => [Message :: term()]}
}.

%% ---------------------------------------------------------------- states

-doc """
The state in which every node is up and free, and each normal node is an island of its own.

`[Node | {Node, normal | hidden}]`, or a map: `nodes` as that list, `s_groups` as in the launch
configuration (`[{Group, normal | hidden, [Node]}]`), `s_groups_known` (`own`: a node's file has its
own groups, the default; `all`: it has all), `resolver` (`random_exit_name` by default).
""".
-spec new([node() | {node(), normal | hidden}] | map()) -> state().
new(Nodes) when is_list(Nodes) -> new(#{nodes => Nodes});
new(#{nodes := Nodes} = Options) ->
    sderl_model_state:new(Options#{nodes := [case N of {_, _} -> N; _ -> {N, normal} end
                                             || N <- Nodes]}).

-doc """
Runs a command on a node; gives its value there, and the state after it.

Raises `{node_is_down, Node}`, `{no_such_node, Node}`, and `{open, Choices}` on a state with open
choices.
""".
-spec run(state(), command(), node()) -> {value(), state()}.
run(#{open := [], nodes := Nodes} = S0, Command, Node) when is_map_key(Node, Nodes) ->
    S = S0#{may_link := []},
    {Value, Next} = case is_up(Node, S) of
        true when Command =/= restart -> rule(Command, Node, S);
        false when Command =:= restart -> {ok, sderl_model_state:restart(Node, S)};
        true -> {ok, S};
        false -> error({node_is_down, Node})
    end,
    {Value, sderl_model_state:told(Next)};
run(#{open := []}, _, Node) -> error({no_such_node, Node});
run(#{open := Open}, _, _) -> error({open, Open}).

-doc """
Runs commands one after the other, each on its node; gives their values, and the last state.
""".
-spec run(state(), [{node(), command()}]) -> {[value()], state()}.
run(S, Steps) -> lists:mapfoldl(fun({Node, Command}, Acc) -> run(Acc, Command, Node) end, S, Steps).

%% ---------------------------------------------------------------- groups

-spec rule(command(), node(), state()) -> {value(), state()}.

%% new_s_group/1 (L; D: the name is printable). Here a symbol stands for it.
rule({new_s_group, Nodes}, N, #{generated := K} = S) ->
    rule({new_s_group, {generated, K + 1}, Nodes}, N, S#{generated := K + 1});
%% new_s_group/2 (JPDC, M, L). The nodes leave what they were free in, and all are linked to all.
%% Failures are L's, not M's `[]`. D: nodes that are down or in another group of the name are left
%% out, and were asked.
rule({new_s_group, undefined, _}, _, S) -> {{error, reserved_s_group_name}, S};
rule({new_s_group, G, []}, _, S) -> {{ok, G, []}, S};
rule({new_s_group, G, Nodes}, N, S0) ->
    case {lists:member(N, Nodes), own(G, N, S0)} of
        {false, _} -> {{error, remote_s_group}, S0};
        {true, #{}} -> {{error, s_group_name_is_in_use}, S0};
        {true, none} ->
            {Willing, S} = invite(G, lists:usort(Nodes) -- [N], N, S0),
            Joined = lists:sort([N | Willing]),
            {{ok, G, Joined}, sderl_model_state:create(G, Joined, S)}
    end;
%% new_s_group/3 (D: rule 32). With all nodes up a group that decides by majority is as any other.
rule({new_s_group, G, Nodes, Options}, N, S0) ->
    case {rule({new_s_group, G, Nodes}, N, S0), Options} of
        {{{ok, G, [_ | _] = Joined}, S}, #{consistency := majority}} ->
            {{ok, G, Joined}, sderl_model_state:decided_by_majority(G, Joined, S)};
        {Result, _} -> Result
    end;
%% delete_s_group/1 (JPDC, M, L). Links stay; nodes in no other group become free.
rule({delete_s_group, G}, N, S) ->
    case mine(G, N, S) of
        none -> {{error, remote_s_group}, S};
        Group -> {ok, sderl_model_state:delete(Group, S)}
    end;
%% add_nodes/2 (JPDC, M; value and failures of L, which leaves the caller's node out before it asks
%% anything else). New members share the names that are there.
rule({add_nodes, G, Nodes}, N, S0) ->
    case {lists:delete(N, lists:usort(Nodes)), mine(G, N, S0)} of
        {[], _} -> {{ok, G, []}, S0};
        {_, none} -> {{error, node_does_not_belong_to_the_s_group}, S0};
        {Others, #{members := Ms}} ->
            {Willing, S} = invite(G, Others -- Ms, N, S0),
            case may_grow(G, Ms, Willing, S) of
                true -> {{ok, G, Willing}, sderl_model_state:join(G, Ms, Willing, S)};
                false -> {{error, no_majority}, S}
            end
    end;
%% remove_nodes/2 (JPDC, L: not itself, and nobody from any group; M). Names of processes there stay
%% (M; D for their homes).
rule({remove_nodes, _, []}, _, S) -> {ok, S};
rule({remove_nodes, G, Nodes}, N, S) ->
    case {mine(G, N, S), lists:member(N, Nodes)} of
        {none, _} -> {{error, node_does_not_belong_to_the_s_group}, S};
        {_, true} -> {{error, cannot_remove_itself}, S};
        {#{members := Ms} = Group, false} ->
            {ok, remove([M || M <- Ms, lists:member(M, Nodes)], Group, S)}
    end;
%% enter/2 (D). The first seed that is up and a member adds the node, which is linked to all seeds
%% that it asked.
rule({enter, undefined, _}, _, S) -> {{error, reserved_s_group_name}, S};
rule({enter, G, Seeds}, N, S) ->
    case own(G, N, S) of
        #{members := Ms} -> {{ok, G, Ms}, S};
        none -> enter(G, lists:delete(N, Seeds), [], N, S)
    end;
%% leave/1 (D). As a removal; the last member's leaving is a deletion.
rule({leave, G}, N, S) ->
    case mine(G, N, S) of
        none -> {{error, node_does_not_belong_to_the_s_group}, S};
        #{members := [N]} = Group -> {ok, sderl_model_state:delete(Group, S)};
        Group -> {ok, remove([N], Group, S)}
    end;
%% recover_majority/2 (D). Here no group has lost its majority.
rule({recover_majority, G, Nodes}, N, S) ->
    Survivors = lists:usort(Nodes),
    {case {own(G, N, S), lists:member(N, Survivors)} of
         {none, _} -> {error, node_does_not_belong_to_the_s_group};
         {_, false} -> {error, not_a_survivor};
         {#{members := Ms}, true} ->
             case Survivors -- Ms of
                 [] -> {error, {refused, [{M, survives(G, M, S)} || M <- Survivors]}};
                 Others -> {error, {not_members, Others}}
             end
     end, S};

%% ---------------------------------------------------------------- names

%% register_name/3,4 (JPDC, M, L). JPDC: only by a member. D: the process is alive, on any node.
%% With `undefined`: the free names (in L those of global).
rule({register_name, G, _, Pid} = Op, N, S) ->
    register(G, Pid, Op, cannot_register_in_remote_group, N, S);
rule({register_name, G, _, Pid, _} = Op, N, S) ->
    register(G, Pid, Op, cannot_register_in_remote_group, N, S);
%% re_register_name/3 (JPDC, M, L).
rule({re_register_name, G, _, Pid} = Op, N, S) ->
    register(G, Pid, Op, cannot_re_register_in_remote_group, N, S);
%% unregister_name/2 (M, L). JPDC: always true.
rule({unregister_name, G, _} = Op, N, S) ->
    case own(G, N, S) of
        none -> {{no, cannot_unregister_from_remote_group}, S};
        Space -> change(Op, N, Space, S)
    end;
%% whereis_name/2 (JPDC: by a member, without any change. D: others ask a member; INTERNALS,
%% rule 23).
rule({whereis_name, G, Name}, N, S0) ->
    {At, S} = reader(G, N, S0),
    {find(G, Name, At, S), S};
%% read/2 (D). As whereis_name/2 where nothing is under way; no answer is an error.
rule({read, G, Name}, N, S0) ->
    case reader(G, N, S0) of
        {{ok, _} = At, S} -> {find(G, Name, At, S), S};
        {none, S} when G =:= undefined -> {{error, no_information_about_remote_group}, S};
        {none, S} ->
            Why = case [M || M <- sderl_model_state:asked(G, N, S0), not is_up(M, S0)] of
                [] -> no_information_about_remote_group;
                _ -> unreachable
            end,
            {{error, Why}, S}
    end;
%% lookup/2 (D). `home` is `any` where the group chose it.
rule({lookup, G, Name}, N, S) ->
    {case own(G, N, S) of
         none -> {error, no_information_about_remote_group};
         #{names := #{Name := Entry}} -> Entry;
         _ -> undefined
     end, S};
%% whereis_name/3 (JPDC, M): links, also if there is no such name, and islands meet. The answer is
%% by the class of the node that is asked (M; D for a member of other groups: undefined).
rule({whereis_name, Node, G, Name}, N, S) ->
    at(Node, fun(S1) -> {target(Node, G, Name, S1), S1} end, undefined, N, S);
%% send/3 (L): as whereis_name/2, and the node that answers delivers (D: rule 21).
rule({send, G, Name, Msg}, N, S0) ->
    {At, S} = reader(G, N, S0),
    deliver(find(G, Name, At, S), At, {G, Name, Msg}, S);
%% send/4 (JPDC; value of L): as whereis_name/3, and the node that is asked delivers.
rule({send, Node, G, Name, Msg}, N, S) ->
    at(Node, fun(S1) -> deliver(target(Node, G, Name, S1), {ok, Node}, {G, Name, Msg}, S1) end,
       {badarg, {G, Name, Msg}}, N, S);
%% registered_names/1 (L). A group for which nobody answers has none.
rule({registered_names, {s_group, G}}, N, S0) ->
    case reader(G, N, S0) of
        {none, S} -> {[], S};
        {{ok, At}, S} ->
            {[{G, Name} || Name <- lists:sort(maps:keys(sderl_model_state:names(G, At, S)))], S}
    end;
rule({registered_names, {node, Node}}, N, S0) ->
    S = link(N, Node, S0),
    {case is_up(Node, S) of
         true -> [Key || {Key, _} <- names_of(Node, S)];
         false -> []
     end, S};

%% ---------------------------------------------------------------- what nodes know

%% own_nodes/0,1 (JPDC, L). A free node: those of its island (L: the free nodes it is linked to).
rule(own_nodes, N, S) -> {lists:usort(lists:append([[N] | [Ms || {_, Ms} <- groups_of(N, S)]])), S};
rule({own_nodes, G}, N, S) -> {case mine(G, N, S) of none -> []; #{members := Ms} -> Ms end, S};
%% own_s_groups/0 (JPDC, L: the one that was entered last comes first).
rule(own_s_groups, N, #{nodes := Nodes} = S) ->
    #{N := {_, _, Groups}} = Nodes,
    {[{G, Ms} || G <- Groups, #{members := Ms} <- [own(G, N, S)]], S};
%% s_groups/0 (JPDC, L: others as the launch configuration had them. D: as fellow members tell,
%% rule 24).
rule(s_groups, N, S) ->
    {case [G || {G, _} <- groups_of(N, S), G =/= undefined] of
         [] -> undefined;
         Own -> {Own, [G || {G, _} <- sderl_model_state:known(N, S)]}
     end, S};

%% ---------------------------------------------------------------- lives and deaths

rule(spawn, N, S) -> sderl_model_state:spawned(N, S);
%% exit/2 with `kill` (D: its names go, on all members; rules 14 to 17).
rule({exit, Pid}, _, S) -> {true, sderl_model_state:die(Pid, S)};
%% The node's VM ends (D: rules 3, 14, 15).
rule(crash, N, #{majority := Majority} = S) ->
    case lists:keyfind(N, 2, Majority) of
        {G, N} -> error({decides_by_majority, G});
        false -> {ok, sderl_model_state:crash(N, S)}
    end.

%% ---------------------------------------------------------------- parts of rules

%% The free namespace cannot be grown, shrunk or deleted.
mine(undefined, _, _) -> none;
mine(G, N, S) -> own(G, N, S).

%% **invite**: each is linked and asked; nodes that are up and in no group of that name are willing.
invite(G, Nodes, N, S0) ->
    S = lists:foldl(fun(M, Acc) -> link(N, M, Acc) end, S0, Nodes),
    {[M || M <- Nodes, is_up(M, S), own(G, M, S) =:= none], S}.

%% The present members must be a majority of the new membership, too (rule 32).
may_grow(G, [M | _] = Ms, New, S) ->
    New =:= [] orelse length(New) < length(Ms) orelse not sderl_model_state:is_majority(G, M, S).

survives(G, M, S) ->
    case {is_up(M, S), sderl_model_state:is_majority(G, M, S)} of
        {false, _} -> unreachable;
        {true, true} -> has_majority;
        {true, false} -> available_mode
    end.

remove([], _, S) -> S;
remove(Out, Group, S) -> sderl_model_state:leave(Out, Group, S).

enter(_, [], [], _, S) -> {{error, no_seeds}, S};
enter(_, [], Whys, _, S) -> {{error, {no_seed_answered, lists:reverse(Whys)}}, S};
enter(G, [Seed | Seeds], Whys, N, S0) ->
    S = link(N, Seed, S0),
    case is_up(Seed, S) andalso own(G, Seed, S) of
        false -> enter(G, Seeds, [{Seed, unreachable} | Whys], N, S);
        none -> enter(G, Seeds, [{Seed, node_does_not_belong_to_the_s_group} | Whys], N, S);
        #{members := Ms} ->
            case may_grow(G, Ms, [N], S) of
                true -> {{ok, G, lists:sort([N | Ms])}, sderl_model_state:join(G, Ms, [N], S)};
                false -> enter(G, Seeds, [{Seed, no_majority} | Whys], N, S)
            end
    end.

%% First checks whether the process lives, as far as this node can know: of its own processes, those
%% of members, and, through the coordinator, those of other nodes.
register(G, Pid, Op, Remote, N, S0) ->
    case {sderl_model_state:alive(Pid, S0), own(G, N, S0)} of
        {not_a_pid, _} -> {{no, not_a_pid}, S0};
        {dead, _} when element(2, Pid) =:= N -> {{no, dead_pid}, S0};
        {_, none} -> {{no, Remote}, S0};
        {Alive, #{members := Ms} = Space} ->
            S = reach(element(2, Pid), Ms, S0),
            case Alive of
                alive -> change(Op, home(element(2, Pid), N, Space), Space, S);
                dead -> {{no, dead_pid}, S};
                unreachable -> {{no, unreachable_pid}, S}
            end
    end.

home(On, N, #{members := Ms}) ->
    case lists:member(On, Ms) of
        true -> On;
        false -> N
    end.

reach(On, Ms, #{may_link := May} = S) ->
    case lists:member(On, Ms) of
        true -> S;
        false -> S#{may_link := ordsets:union(May, ordsets:from_list([{M, On} || M <- Ms]))}
    end.

%% A rule of sderl_model_names, which has no group in its operations.
change(Op, Home, #{group := G, members := [M | _], names := Ns0}, S) ->
    {Value, Ns} = sderl_model_names:step(erlang:delete_element(2, Op), Home, Ns0),
    {Value, sderl_model_state:put_names(G, M, Ns, S)}.

%% The table that is read: the node's own, or that of an asked member.
reader(G, N, S) ->
    case own(G, N, S) of
        #{} -> {{ok, N}, S};
        none when G =:= undefined -> {none, S};
        none -> sderl_model_state:ask(G, N, S)
    end.

find(_, _, none, _) -> undefined;
find(G, Name, {ok, At}, S) ->
    case sderl_model_state:names(G, At, S) of
        #{Name := #{pid := Pid}} -> Pid;
        _ -> undefined
    end.

%% A free node answers from its own names, whatever the group.
target(Node, G, Name, S) ->
    Class = class(Node, S),
    if
        Class =/= s_group -> find(undefined, Name, {ok, Node}, S);
        G =:= undefined -> undefined;
        true -> find(G, Name, {ok, Node}, S)
    end.

%% A question to one node: the answer comes before the islands meet.
at(Node, Answer, Otherwise, N, S0) ->
    case is_up(Node, S0) of
        true ->
            {Value, S} = Answer(link(N, Node, S0)),
            {Value, sderl_model_state:meet(N, Node, S)};
        false -> {Otherwise, S0}
    end.

deliver(undefined, _, What, S) -> {{badarg, What}, S};
deliver(Pid, {ok, By}, {_, _, Msg}, S) -> {Pid, sderl_model_state:sent(By, Pid, Msg, S)}.

groups_of(N, #{s_groups := Groups} = S) ->
    [{undefined, Ms} || #{members := Ms} <- [own(undefined, N, S)]]
        ++ lists:sort([{G, Ms} || {G, Ms, _} <- Groups, lists:member(N, Ms)]).

names_of(N, S) ->
    lists:sort([{{G, Name}, Pid}
                || {G, _} <- groups_of(N, S),
                   Name := #{pid := Pid} <- sderl_model_state:names(G, N, S)]).

%% ---------------------------------------------------------------- choices

-doc """
The choices to be made before the next command:

- `{clash, Island, Name, Entries}`: islands that became one bring different processes under a name.
  Choose the process that keeps it, or `none`; the resolver decides what happens to the others.
- `{twice, Island, Pid, Names}`: a process had a name in each. Choose the one that stays.
- `{orphan, Group, Members, Name}`: a member crashed that may have been the home of the name. Choose
  `keep` or `lose`.
""".
-spec open(state()) -> [sderl_model_state:choice()].
open(#{open := Open}) -> Open.

-doc "The possible choices.".
-spec options(sderl_model_state:choice(), state()) -> [term()].
options(Choice, S) -> sderl_model_choice:options(Choice, S).

-doc "Makes a choice that is open.".
-spec choose(sderl_model_state:choice(), Chosen :: term(), state()) -> state().
choose(Choice, Chosen, S) -> sderl_model_choice:choose(Choice, Chosen, S).

-doc "Links that the library may have made, or may make later, by itself: see above.".
-spec may_link(state()) -> [{node(), node()}].
may_link(#{may_link := May} = S) ->
    lists:usort([P || {A, B} = P <- May ++ sderl_model_state:watched(S),
                      is_up(A, S), is_up(B, S), not sderl_model_state:linked(A, B, S)]).

-doc "Adds one of the links of `may_link/1`.".
-spec linked(node(), node(), state()) -> state().
linked(A, B, S) ->
    case [P || P <- may_link(S), P =:= {A, B} orelse P =:= {B, A}] of
        [_ | _] -> link(A, B, S);
        [] -> error({unexpected_link, A, B})
    end.

%% ---------------------------------------------------------------- what can be seen

-doc "All that can be seen of a node.".
-spec view(node(), state()) -> view().
view(N, #{nodes := Nodes, processes := Ps} = S) ->
    #{N := {_, Links, _}} = Nodes,
    #{class => class(N, S), groups => groups_of(N, S), names => names_of(N, S), links => Links,
      known => sderl_model_state:known(N, S),
      processes => #{P => Ms || {pid, On, _} = P := Ms <- Ps, On =:= N}}.

-doc "Prints a state.".
-spec show(state()) -> ok.
show(S) -> io:put_chars(format(S)).

-doc """
A state as text: groups, islands and hidden nodes with their names, then the links of each node.
""".
-spec format(state()) -> unicode:chardata().
format(S) -> sderl_model_text:format(S).
