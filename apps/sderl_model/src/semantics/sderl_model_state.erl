%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model_state).
-moduledoc """
The state of the semantics, and how nodes change their class in it.

As in the published semantics, there are s_groups, free groups (*islands*), free hidden groups, and
nodes with a type, connections and the names of their groups. `m:sderl_model` has the operations;
this module has their parts: linking, joining, becoming free, what nodes are told of others' groups,
deaths.
""".

%% Sources. The four parts of the state: Chechina et al., JPDC 2016, Fig. 5, and its executable
%% model. It keeps the groups of a node with the node as well as the nodes with the group, and so
%% do we: that the two agree is one of the invariants (sderl_model_check).
%%
%% The parts that the published state lacks: nodes that are down, processes with their messages,
%% knowledge of other nodes' groups (INTERNALS, rule 24), and choices that are open until they are
%% made from outside.
%%
%% Two groups may have one name as long as no node is in both, so a group is found by its name and
%% one of its members.

-export([new/1, is_up/2, class/2, own/3, names/3, put_names/4]).
-export([link/3, linked/3, ask/3, asked/3]).
-export([is_majority/3, decided_by_majority/3]).
-export([create/3, join/4, leave/3, delete/2, meet/3]).
-export([spawned/2, alive/2, sent/4, die/2, crash/2, restart/2]).
-export([known/3, known/2, told/1, watched/1]).
-export_type([state/0, space/0, choice/0, class/0, group/0]).

-type group() :: term().
-type class() :: s_group | free_normal | free_hidden.
-doc "A place for names: a group, an island or a free hidden node's own.".
-type space() :: #{group := group(), members := [node()], names := sderl_model_names:names()}.
-doc "A choice that the rules leave open: see `sderl_model:choose/3`.".
-type choice() ::
    {clash, Members :: [node()], Name :: term(), [sderl_model_names:entry()]}
    | {twice, Members :: [node()], sderl_model_names:process(), [Name :: term()]}
    | {orphan, group(), Members :: [node()], Name :: term()}.
-doc """
- `s_groups`: name, members, names
- `free_groups`: the islands of free normal nodes: nodes, names
- `free_hidden_groups`: a free hidden node, its names
- `nodes`: type, links that the library made, own groups (the one that was entered last first; after
  a restart the nodes take their groups up in any order) or the class of a free node
- `majority`: groups that decide by majority, each with its members
- `down`: nodes that crashed and were not restarted
- `processes`: those alive, with their messages; `spawned`: how many each node has had
- `heard`: the groups that a node was told of, by the node that told; `config` stands for its launch
  configuration
- `resolver`: what happens to a name that two islands bring
- `open`: choices that are to be made before the next command
- `may_link`: links that the library may have made by itself
- `generated`: how many names of groups were generated
""".
-type state() :: #{
    s_groups := [{group(), [node()], sderl_model_names:names()}],
    free_groups := [{[node()], sderl_model_names:names()}],
    free_hidden_groups := [{node(), sderl_model_names:names()}],
    nodes := #{node() => {normal | hidden, Links :: [node()], Groups :: [group()]}},
    majority := [{group(), node()}],
    down := [node()],
    processes := #{sderl_model_names:process() => [Message :: term()]},
    spawned := #{node() => non_neg_integer()},
    heard := #{node() => #{config | node() => [{group(), [node()]}]}},
    resolver := random_exit_name | random_notify_name | notify_all_name,
    open := [choice()],
    may_link := [{node(), node()}],
    generated := non_neg_integer()
}.

%% ---------------------------------------------------------------- the beginning

-doc "See `sderl_model:new/1`.".
-spec new(map()) -> state().
new(#{nodes := Nodes} = Options) ->
    Launch = [{G, lists:usort(Ms)} || {G, _, Ms} <- maps:get(s_groups, Options, [])],
    Known = case maps:get(s_groups_known, Options, own) of
        all -> #{N => Launch || {N, _} <- Nodes};
        own -> #{N => [L || {_, Ms} = L <- Launch, lists:member(N, Ms)] || {N, _} <- Nodes}
    end,
    S0 = #{s_groups => [], free_groups => [{[N], #{}} || {N, normal} <- Nodes],
           free_hidden_groups => [{N, #{}} || {N, hidden} <- Nodes],
           nodes => #{N => {Type, [], [free(Type)]} || {N, Type} <- Nodes},
           majority => [], down => [], processes => #{}, spawned => #{N => 0 || {N, _} <- Nodes},
           heard => #{N => #{config => Gs} || N := Gs <- Known},
           resolver => maps:get(resolver, Options, random_exit_name),
           open => [], may_link => [], generated => 0},
    told(lists:foldl(fun({G, Ms}, S) -> join(G, [], Ms, add(G, S)) end, S0, Launch)).

free(normal) -> free_normal_group;
free(hidden) -> free_hidden_group.

add(G, #{s_groups := Gs} = S) -> S#{s_groups := [{G, [], #{}} | Gs]}.

%% ---------------------------------------------------------------- reading

-spec is_up(node(), state()) -> boolean().
is_up(N, #{nodes := Nodes, down := Down}) -> is_map_key(N, Nodes) andalso not lists:member(N, Down).

up(Nodes, S) -> [N || N <- Nodes, is_up(N, S)].

-doc "The class of a node.".
-spec class(node(), state()) -> class().
class(N, #{nodes := Nodes}) ->
    case Nodes of
        #{N := {_, _, [free_normal_group]}} -> free_normal;
        #{N := {_, _, [free_hidden_group]}} -> free_hidden;
        #{N := {_, _, _}} -> s_group
    end.

-doc "The group of that name that has the node as a member; with `undefined` a free node's names.".
-spec own(group(), node(), state()) -> space() | none.
own(undefined, N, #{free_groups := Free, free_hidden_groups := Hidden}) ->
    first([space(undefined, Ms, Ns) || {Ms, Ns} <- Free, lists:member(N, Ms)] ++
              [space(undefined, [N], Ns) || {H, Ns} <- Hidden, H =:= N]);
own(G, N, #{s_groups := Groups}) ->
    first([space(G, Ms, Ns) || {Name, Ms, Ns} <- Groups, Name =:= G, lists:member(N, Ms)]).

first([Space]) -> Space;
first([]) -> none.

space(G, Ms, Ns) -> #{group => G, members => Ms, names => Ns}.

-doc "The names that a node has under a group; `none` if it is not in it.".
-spec names(group(), node(), state()) -> sderl_model_names:names() | none.
names(G, N, S) ->
    case own(G, N, S) of
        none -> none;
        #{names := Ns} -> Ns
    end.

-doc "Replaces the names of the group that has the node as a member.".
-spec put_names(group(), node(), sderl_model_names:names(), state()) -> state().
put_names(G, N, Ns, S) ->
    change_names(fun(#{group := Name, members := Ms}) when Name =:= G ->
                         case lists:member(N, Ms) of true -> Ns; false -> same end;
                    (_) -> same
                 end, S).

change_names(F, #{s_groups := Groups, free_groups := Free, free_hidden_groups := Hidden} = S) ->
    New = fun(G, Ms, Ns) -> case F(space(G, Ms, Ns)) of same -> Ns; Other -> Other end end,
    S#{s_groups := [{G, Ms, New(G, Ms, Ns)} || {G, Ms, Ns} <- Groups],
       free_groups := [{Ms, New(undefined, Ms, Ns)} || {Ms, Ns} <- Free],
       free_hidden_groups := [{N, New(undefined, [N], Ns)} || {N, Ns} <- Hidden]}.

%% ---------------------------------------------------------------- links

-doc "**link**: both ends have it. Nodes that are down have none.".
-spec link(node(), node(), state()) -> state().
link(N, N, S) -> S;
link(A, B, S) ->
    case is_up(A, S) andalso is_up(B, S) of
        true -> half(A, B, half(B, A, S));
        false -> S
    end.

half(A, B, #{nodes := Nodes} = S) ->
    #{A := {Type, Links, Groups}} = Nodes,
    S#{nodes := Nodes#{A := {Type, ordsets:add_element(B, Links), Groups}}}.

%% **mesh**: all are linked to all.
mesh(Ns, S) ->
    lists:foldl(fun({A, B}, Acc) -> link(A, B, Acc) end, S, [{A, B} || A <- Ns, B <- Ns, A < B]).

-spec linked(node(), node(), state()) -> boolean().
linked(A, B, #{nodes := Nodes}) ->
    #{A := {_, Links, _}} = Nodes,
    lists:member(B, Links).

-doc """
**ask**: a node that is in no group of that name asks the nodes that it knows of the group, three at
most, linked ones first. Gives the first that is a member. The node is linked to all that it asked.
""".
-spec ask(group(), node(), state()) -> {{ok, node()} | none, state()}.
ask(G, N, S) -> ask(asked(G, N, S), G, N, S).

-doc "The nodes that are asked, in their order, until one is a member.".
-spec asked(group(), node(), state()) -> [node()].
asked(G, N, S) ->
    {Near, Far} = lists:partition(fun(M) -> linked(N, M, S) end, known(G, N, S) -- [N]),
    lists:sublist(Near ++ Far, 3).

ask([], _, _, S) -> {none, S};
ask([M | Ms], G, N, S0) ->
    S = link(N, M, S0),
    case is_up(M, S) andalso own(G, M, S) of
        #{} -> {{ok, M}, S};
        _ -> ask(Ms, G, N, S)
    end.

%% ---------------------------------------------------------------- classes

-doc "**create**: a group of these nodes, which are not free any more.".
-spec create(group(), [node()], state()) -> state().
create(G, Nodes, S) -> join(G, [], Nodes, add(G, S)).

-doc "Whether the group that has the node as a member decides by majority.".
-spec is_majority(group(), node(), state()) -> boolean().
is_majority(G, N, #{majority := Majority}) -> lists:member({G, N}, Majority).

-doc "The group of these nodes decides by majority.".
-spec decided_by_majority(group(), [node()], state()) -> state().
decided_by_majority(G, Nodes, #{majority := Majority} = S) ->
    S#{majority := lists:usort([{G, N} || N <- Nodes] ++ Majority)}.

-doc "**join**: nodes become members of the group of these, and all are linked to all.".
-spec join(group(), Members :: [node()], New :: [node()], state()) -> state().
join(G, Ms0, New, S0) ->
    Ms = lists:usort(Ms0 ++ New),
    #{s_groups := Groups, nodes := Nodes} = S1 = leave_free(New, S0),
    {[{G, Ms0, Ns}], Rest} =
        lists:partition(fun({Name, Old, _}) -> Name =:= G andalso Old =:= Ms0 end, Groups),
    S2 = S1#{s_groups := lists:sort([{G, Ms, Ns} | Rest]),
             nodes := maps:merge(Nodes,
                                 #{N => {T, L, [G | Gs -- [free_normal_group, free_hidden_group]]}
                                   || N := {T, L, Gs} <- maps:with(New, Nodes)})},
    S3 = case lists:any(fun(M) -> is_majority(G, M, S2) end, Ms0) of
        true -> decided_by_majority(G, New, S2);
        false -> S2
    end,
    mesh(Ms, S3).

%% The names of a node that leaves an island stay there; those of a free hidden node are lost.
leave_free(Nodes, #{free_groups := Free, free_hidden_groups := Hidden} = S) ->
    S#{free_groups := [{Rest, sderl_model_names:moved(Ms -- Rest, Ns)}
                       || {Ms, Ns} <- Free, Rest <- [Ms -- Nodes], Rest =/= []],
       free_hidden_groups := [H || {N, _} = H <- Hidden, not lists:member(N, Nodes)]}.

-doc "**leave**: nodes are not members any more; those in no other group become free. Names stay.".
-spec leave([node()], space(), state()) -> state().
leave(Out, #{group := G, members := Ms, names := Ns}, #{s_groups := Groups} = S) ->
    Rest = {G, Ms -- Out, sderl_model_names:moved(Out, Ns)},
    lose(G, Out, S#{s_groups := lists:sort([Rest | except(G, Ms, Groups)])}).

-doc """
**delete**: the group and its names are gone, and its members forget it (but not another one of its
name).
""".
-spec delete(space(), state()) -> state().
delete(#{group := G, members := Ms}, #{s_groups := Groups, heard := Heard} = S) ->
    Forgotten =
        #{N => #{From => [L || {Name, Nodes} = L <- Gs, Name =/= G orelse Nodes -- Ms =:= Nodes]
                 || From := Gs <- H}
          || N := H <- maps:with(Ms, Heard)},
    lose(G, Ms, S#{s_groups := except(G, Ms, Groups), heard := maps:merge(Heard, Forgotten)}).

except(G, Ms, Groups) -> [O || {Name, Members, _} = O <- Groups, Name =/= G orelse Members =/= Ms].

lose(G, Out, #{nodes := Nodes, majority := Majority} = S) ->
    Left = #{N => {T, L, Gs -- [G]} || N := {T, L, Gs} <- maps:with(Out, Nodes)},
    freed(lists:sort([N || N := {_, _, []} <- Left]),
          S#{nodes := maps:merge(Nodes, Left), majority := Majority -- [{G, N} || N <- Out]}).

-doc """
**freed**: nodes in no group any more.

- A hidden node begins with no names.
- Normal ones become one island, with every island that one of them is linked to, and
  all are linked to all. If there is no such island, theirs is new and has no names.
- A node that is down is alone; it begins alone when it is restarted.
""".
-spec freed([node()], state()) -> state().
freed(Nodes, #{nodes := All, free_hidden_groups := Hidden0, free_groups := Free0} = S0) ->
    Typed = [{N, Type} || N <- Nodes, #{N := {Type, _, _}} <- [All]],
    Normal = [N || {N, normal} <- Typed],
    Up = up(Normal, S0),
    S = S0#{nodes := maps:merge(All, #{N => {T, L, [free(T)]}
                                       || N := {T, L, _} <- maps:with(Nodes, All)}),
            free_hidden_groups := lists:sort([{N, #{}} || {N, hidden} <- Typed] ++ Hidden0),
            free_groups := lists:sort([{[N], #{}} || N <- Normal -- Up] ++ Free0)},
    case Up of
        [] -> S;
        _ ->
            Near = [I
                    || {Ms, _} = I <- Free0,
                       lists:any(fun({A, B}) -> linked(A, B, S) end, [{A, B} || A <- Up, B <- Ms])],
            merge([{Up, #{}} | Near], S)
    end.

-doc "**meet**: a free normal node has called another one. Their islands become one.".
-spec meet(node(), node(), state()) -> state().
meet(A, B, #{free_groups := Free} = S) ->
    case {class(A, S), class(B, S)} of
        {free_normal, free_normal} ->
            case [I || {Ms, _} = I <- Free, lists:member(A, Ms) orelse lists:member(B, Ms)] of
                [_] -> S;
                Two -> merge(Two, S)
            end;
        _ -> S
    end.

%% A name that both bring is open until a resolver has decided it. The deciding node links to the
%% nodes of the losers.
merge(Islands, #{free_groups := Free, open := Open, may_link := May} = S) ->
    Ms = lists:umerge([M || {M, _} <- Islands]),
    {Ns, Clashes, Twice} = sderl_model_names:union([N || {_, N} <- Islands]),
    Told = lists:usort([{M, N}
                        || {_, Es} <- Clashes, #{pid := {pid, N, _}} <- Es, not lists:member(N, Ms),
                           M <- Ms]),
    mesh(Ms, S#{free_groups := lists:sort([{Ms, Ns} | Free -- Islands]),
                may_link := ordsets:union(May, Told),
                open := Open ++ [{clash, Ms, N, Es} || {N, Es} <- Clashes] ++
                    [{twice, Ms, P, Two} || {P, Two} <- Twice]}).

%% ---------------------------------------------------------------- processes, crashes

-doc "A new process of a node.".
-spec spawned(node(), state()) -> {sderl_model_names:process(), state()}.
spawned(N, #{spawned := Spawned, processes := Ps} = S) ->
    #{N := K} = Spawned,
    Pid = {pid, N, K + 1},
    {Pid, S#{spawned := Spawned#{N := K + 1}, processes := Ps#{Pid => []}}}.

-doc "The state of a process; `not_a_pid` for another term.".
-spec alive(term(), state()) -> alive | dead | unreachable | not_a_pid.
alive({pid, N, K} = Pid, #{processes := Ps, nodes := Nodes} = S)
  when is_map_key(N, Nodes), is_integer(K) ->
    case is_up(N, S) of
        false -> unreachable;
        true when is_map_key(Pid, Ps) -> alive;
        true -> dead
    end;
alive(_, _) -> not_a_pid.

-doc "**deliver**: the delivering node sends, which links it to the process's node.".
-spec sent(node(), sderl_model_names:process(), Message :: term(), state()) -> state().
sent(By, {pid, N, _} = Pid, Message, S) ->
    #{processes := #{Pid := Had} = Ps} = S1 = link(By, N, S),
    S1#{processes := Ps#{Pid := Had ++ [Message]}}.

-doc "**die**: a process ended; its names in all groups go.".
-spec die(sderl_model_names:process(), state()) -> state().
die(Pid, #{processes := Ps} = S) ->
    change_names(fun(#{names := Ns}) -> sderl_model_names:died(Pid, Ns) end,
                 S#{processes := maps:remove(Pid, Ps)}).

-doc """
**crash**: a node's processes, links and names are gone. It stays a member of its groups, as long
as another member is up; a group or an island whose members are all down is gone.
""".
-spec crash(node(), state()) -> state().
crash(N, #{processes := Ps, down := Down, nodes := Nodes, heard := Heard} = S0) ->
    S1 = lists:foldl(fun die/2, S0, [P || {pid, On, _} = P <- maps:keys(Ps), On =:= N]),
    S2 = S1#{down := ordsets:add_element(N, Down),
             nodes := #{M => {T, case M of N -> []; _ -> L -- [N] end, Gs}
                        || M := {T, L, Gs} <- Nodes},
             heard := Heard#{N := maps:with([config], maps:get(N, Heard))}},
    #{s_groups := Groups, free_groups := Free} = S3 = lost(N, S2),
    Gone = [O || {_, Ms, _} = O <- Groups, up(Ms, S3) =:= []],
    Empty = [I || {[_, _ | _] = Ms, _} = I <- Free, up(Ms, S3) =:= []],
    S4 = S3#{free_groups := lists:sort([{[M], #{}} || {Ms, _} <- Empty, M <- Ms] ++
                                       (Free -- Empty))},
    lists:foldl(fun({G, Ms, Ns}, S) -> delete(space(G, Ms, Ns), S) end, S4, Gone).

lost(N, #{s_groups := Groups, free_groups := Free} = S0) ->
    Orphans = [{orphan, G, Ms, Name}
               || {G, Ms, Ns} <- Groups ++ [{undefined, Ms, Ns} || {Ms, Ns} <- Free],
                  lists:member(N, Ms), {_, Open} <- [sderl_model_names:lost(N, Ns)], Name <- Open],
    S = change_names(fun(#{members := Ms, names := Ns}) ->
        case lists:member(N, Ms) of
            true -> element(1, sderl_model_names:lost(N, Ns));
            false -> same
        end
    end, S0),
    S#{open := Orphans}.

-doc """
**restart**: the node is back, empty. It is linked to the other members of its groups.
""".
-spec restart(node(), state()) -> state().
restart(N, #{down := Down, s_groups := Groups, free_groups := Free} = S0) ->
    S = S0#{down := lists:delete(N, Down)},
    Mates = lists:usort(lists:append([Ms || {_, Ms, _} <- Groups, lists:member(N, Ms)] ++
                                         [Ms || {Ms, _} <- Free, lists:member(N, Ms)])),
    lists:foldl(fun(M, Acc) -> link(N, M, Acc) end, S, Mates).

%% --------------------------------------------------------------- what nodes know of others' groups

-doc "The groups that a node knows without being in them, with their nodes.".
-spec known(node(), state()) -> [{group(), [node()]}].
known(N, #{heard := #{} = Heard} = S) ->
    #{N := Of} = Heard,
    [{G, known(G, N, S)}
     || G <- lists:usort([G || {G, _} <- lists:append(maps:values(Of))]), own(G, N, S) =:= none].

-doc "The nodes of a group, as its members reported, else as in the node's launch configuration.".
-spec known(group(), node(), state()) -> [node()].
known(G, N, #{heard := Heard}) ->
    #{N := Of} = Heard,
    Said = [{From, Ms} || From := Gs <- Of, {Name, Ms} <- Gs, Name =:= G],
    case [Ms || {From, Ms} <- Said, From =/= config] of
        [] -> lists:append([Ms || {_, Ms} <- Said]);
        Told -> lists:umerge(Told)
    end.

-doc """
**tell**: a node tells the members of its groups about its groups. A node in a group knows what its
fellow members tell, and one that became free keeps what it heard last.
""".
-spec told(state()) -> state().
told(#{s_groups := Groups, heard := Heard} = S) ->
    Of = maps:groups_from_list(fun({N, _}) -> N end, fun({_, L}) -> L end,
                               [{N, {G, Ms}} || {G, Ms, _} <- Groups, N <- Ms]),
    S#{heard := #{N => case Of of
        #{N := Own} -> hear(N, H, lists:usort(lists:append([Ms || {_, Ms} <- Own])), Of, S);
        #{} -> H
    end || N := H <- Heard}}.

hear(N, Heard, Mates, Of, S) ->
    case is_up(N, S) of
        true ->
            %% A node that is down reports nothing new.
            Kept = maps:with([config | [M || M <- Mates, not is_up(M, S)]], Heard),
            maps:merge(Kept, #{M => lists:sort(maps:get(M, Of)) || M <- up(Mates, S), M =/= N});
        false -> Heard
    end.

-doc """
**watch**: a process that has a name in a group of which its node is no member is monitored by one
of the members, over a link that is made for that; which member is not specified. Gives these links.
""".
-spec watched(state()) -> [{node(), node()}].
watched(#{s_groups := Groups, free_groups := Free, free_hidden_groups := Hidden} = S) ->
    All = [{Ms, Ns} || {_, Ms, Ns} <- Groups] ++ Free ++ [{[N], Ns} || {N, Ns} <- Hidden],
    lists:usort([{M, N}
                 || {Ms, Ns} <- All, _ := #{pid := {pid, N, _}} <- Ns, not lists:member(N, Ms),
                    M <- Ms, not linked(M, N, S)]).
