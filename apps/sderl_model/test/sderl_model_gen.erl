%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model_gen).

%% Commands for sderl_model, at random: for its own properties, and for real nodes in lockstep with
%% it. A step is {Node, Command}.
%%
%% What comes next is drawn with the state in mind, so that a good part of the commands does
%% something; the others are wrong in one of the many ways in which calls are wrong, and their
%% answers are values like others. Every command can be run in every state in which its node is up,
%% so a list stays good when steps are taken out of it, and that is how PropEr shrinks them.

-include_lib("proper/include/proper.hrl").

-export([steps/3, plain/0, free/0, majority/0, failing/0, applicable/2, run/2, settle/1]).

%% Weights of the commands. The published model gave 5 to commands that change groups and 10 to
%% those on names. Other questions, and commands that are new, have less.
plain() ->
    #{new_s_group => 5, delete_s_group => 5, add_nodes => 5, remove_nodes => 5, enter => 3,
      leave => 3, register_name => 12, re_register_name => 10, unregister_name => 10,
      whereis_at => 10, send_at => 10, whereis_name => 3, send => 3, lookup => 1,
      registered_names => 2, own => 2, exit => 3, spawn => 1}.

%% Few groups, which are deleted soon.
free() ->
    #{new_s_group => 3, delete_s_group => 8, leave => 4, add_nodes => 2, remove_nodes => 4,
      register_name => 25, re_register_name => 3, unregister_name => 5, whereis_at => 12,
      send_at => 6, send => 1, exit => 3, spawn => 1}.

%% Most groups decide by majority.
majority() ->
    (plain())#{new_s_group => 1, new_majority => 6, add_nodes => 6, read => 14,
               recover_majority => 2, whereis_at => 3, send_at => 3}.

failing() -> (plain())#{crash => 3, restart => 5}.

%% A list of as many steps, which shrinks by leaving steps out.
steps(State, Count, Weights) ->
    ?LET(Steps, proper_types:noshrink(more(State, Count, Weights)),
         proper_types:shrink_list(Steps)).

more(_, 0, _) -> [];
more(State, Count, Weights) ->
    ?LET(Step, step(State, Weights),
         ?LAZY(?LET(Rest, more(next(Step, State), Count - 1, Weights), [Step | Rest]))).

next(Step, State) ->
    {_, Next} = run(Step, State),
    settle(Next).

%% The step of the semantics.
run({Node, Command}, State) -> sderl_model:run(State, Command, Node).

%% Makes every open choice by its first option.
settle(State) ->
    case sderl_model:open(State) of
        [] -> State;
        [Choice | _] ->
            settle(sderl_model:choose(Choice, hd(sderl_model:options(Choice, State)), State))
    end.

%% Shrinking may have left out the restart of a step's node.
applicable({Node, restart}, State) -> lists:member(Node, maps:get(down, State));
applicable({Node, _}, State) -> sderl_model_state:is_up(Node, State).

%% ---------------------------------------------------------------- steps

%% New groups are likelier while there are fewer than two. Without groups most other commands are
%% rare, because they have little effect.
step(#{down := Down, s_groups := Groups} = State, Weights) ->
    Factor = fun(Kind) when Kind =:= new_s_group orelse Kind =:= new_majority, length(Groups) < 2 ->
                    6;
                (Kind) when Groups =:= [] ->
                    case lists:member(Kind, [whereis_at, send_at, register_name, read]) of
                        true -> 1;
                        false -> 0.3
                    end;
                (_) -> 1
             end,
    Kinds = [{ceil(W * Factor(Kind)), Kind}
             || Kind := W <- Weights, Kind =/= restart orelse Down =/= []],
    ?LET(Kind, frequency(Kinds), step_of(Kind, State)).

step_of(restart, #{down := Down}) -> {oneof(Down), restart};
step_of(crash, #{down := Down} = S) when length(Down) > 2 -> step_of(own, S);
step_of(crash, S) -> {up(S), crash};
step_of(new_majority, S) -> ?LET(Node, up(S), {Node, command(new_majority, Node, S)});
%% Members have more to say about groups than other nodes, so most of these steps are theirs.
step_of(Kind, S)
  when Kind =:= recover_majority; Kind =:= delete_s_group; Kind =:= add_nodes;
       Kind =:= remove_nodes; Kind =:= leave ->
    ?LET(Node, frequency([{15, member(S)}, {1, up(S)}]), {Node, command(Kind, Node, S)});
step_of(new_s_group, S) -> ?LET(Node, up(S), {Node, command(new_s_group, Node, S)});
step_of(Kind, S) ->
    ?LET(Node, frequency([{4, member(S)}, {3, up(S)}]), {Node, command(Kind, Node, S)}).

up(#{nodes := Nodes, down := Down}) -> oneof(maps:keys(Nodes) -- Down).

member(#{s_groups := Groups, down := Down} = S) ->
    case lists:usort(lists:append([Ms || {_, Ms, _} <- Groups])) -- Down of
        [] -> up(S);
        Ms -> oneof(Ms)
    end.

command(new_s_group, N, S) ->
    frequency([{12, ?LET({G, Ns}, {fresh(S), some(S)}, {new_s_group, G, [N | Ns]})},
               {2, ?LET({G, Ns}, {named(N, S), some(S)}, {new_s_group, G, [N | Ns]})},
               {1, {new_s_group, group(N, S), some(S)}},
               {1, ?LET(Ns, some(S), {new_s_group, [N | Ns]})}]);
command(new_majority, N, S) ->
    ?LET(Command, command(new_s_group, N, S), case Command of
        {new_s_group, G, Nodes} -> {new_s_group, G, Nodes, #{consistency => majority}};
        _ -> Command
    end);
command(recover_majority, N, S) ->
    ?LET(G, named(N, S), case sderl_model_state:own(G, N, S) of
        #{members := Ms} ->
            {recover_majority, G, frequency([{3, sublist(Ms)}, {3, [N]}, {1, [N | some(S)]}])};
        _ -> {recover_majority, G, [N]}
    end);
command(read, N, S) -> ?LET(G, foreign(N, S), {read, G, known_name(G, N, S)});
command(delete_s_group, N, S) -> {delete_s_group, named(N, S)};
command(add_nodes, N, S) -> {add_nodes, named(N, S), some(S)};
command(remove_nodes, N, S) ->
    ?LET(G, named(N, S), case sderl_model_state:own(G, N, S) of
        #{members := [_, _ | _] = Ms} ->
            {remove_nodes, G, frequency([{9, sublist(Ms -- [N])}, {1, some(S)}])};
        _ -> {remove_nodes, G, some(S)}
    end);
command(enter, N, S) ->
    ?LET(G, frequency([{5, any_group(maps:get(s_groups, S))}, {1, named(N, S)}]),
         {enter, G, frequency([{4, members(G, S)}, {1, some(S)}])});
command(leave, N, S) -> {leave, named(N, S)};
command(register_name, N, S) ->
    ?LET({G, Name, Pid}, {group(N, S), name(), process(N, S)},
         frequency([{5, {register_name, G, Name, proper(G, Pid, N)}},
                    {1, ?LET(Meta, integer(0, 9),
                             {register_name, G, Name, proper(G, Pid, N), #{meta => Meta}})}]));
command(re_register_name, N, S) ->
    ?LET({G, Name, Pid}, {group(N, S), name(), process(N, S)},
         {re_register_name, G, Name, proper(G, Pid, N)});
command(unregister_name, N, S) -> ?LET(G, group(N, S), {unregister_name, G, known_name(G, N, S)});
command(whereis_at, N, S) -> ?LET({M, G}, target(N, S), {whereis_name, M, G, known_name(G, M, S)});
command(send_at, N, S) -> ?LET({M, G}, target(N, S), {send, M, G, known_name(G, M, S), message()});
command(whereis_name, N, S) -> ?LET(G, foreign(N, S), {whereis_name, G, known_name(G, N, S)});
command(send, N, S) -> ?LET(G, foreign(N, S), {send, G, known_name(G, N, S), message()});
command(lookup, N, S) -> ?LET(G, group(N, S), {lookup, G, known_name(G, N, S)});
command(registered_names, N, S) ->
    {registered_names, oneof([{s_group, foreign(N, S)}, {node, any_node(S)}])};
command(own, N, S) -> oneof([own_nodes, {own_nodes, group(N, S)}, own_s_groups, s_groups]);
command(spawn, _, _) -> spawn;
command(exit, N, S) ->
    ?LET(Pid, process(N, S), case is_tuple(Pid) of
        true -> {exit, Pid};
        false -> {exit, {pid, N, 1}}
    end).

%% ---------------------------------------------------------------- arguments

%% Mostly a group of the node, sometimes any group, or one that may not exist.
group(N, #{s_groups := Groups, nodes := Nodes} = S) ->
    #{N := {_, _, Own}} = Nodes,
    case [G || G <- Own, G =/= free_normal_group, G =/= free_hidden_group] of
        [] -> frequency([{5, undefined}, {2, any_group(Groups)}, {1, fresh(S)}]);
        Mine ->
            frequency([{10, oneof(Mine)}, {2, any_group(Groups)}, {1, fresh(S)}, {1, undefined}])
    end.

named(N, #{s_groups := Groups, nodes := Nodes} = S) ->
    #{N := {_, _, Own}} = Nodes,
    Mine = Own -- [free_normal_group, free_hidden_group],
    frequency([{20, oneof(Mine)} || Mine =/= []] ++
              [{3, any_group(Groups)}, {1, fresh(S)}, {1, undefined}]).

%% Mostly any group.
foreign(N, #{s_groups := Groups} = S) -> frequency([{1, group(N, S)}, {2, any_group(Groups)}]).

any_group([]) -> undefined;
any_group(Groups) -> oneof([G || {G, _, _} <- Groups]).

%% Names of groups are few, so that deleted ones come again.
fresh(#{s_groups := Groups}) ->
    case [g1, g2, {g, 3}, "g4", 5] -- [G || {G, _, _} <- Groups] of
        [] -> oneof([g6, g7]);
        Free -> oneof(Free)
    end.

some(#{nodes := Nodes}) ->
    ?LET(K, integer(0, 4), [oneof(maps:keys(Nodes)) || _ <- lists:seq(1, K)]).

sublist(Nodes) -> ?LET(Keep, [boolean() || _ <- Nodes], [N || {N, true} <- lists:zip(Nodes, Keep)]).

members(G, #{s_groups := Groups} = S) ->
    case [Ms || {Name, Ms, _} <- Groups, Name =:= G] of
        [] -> some(S);
        All ->
            ?LET(Ms, oneof(All),
                 ?LET(M, oneof(Ms),
                      ?LET(More, some(S), frequency([{3, [M | More]}, {1, More ++ [M]}]))))
    end.

any_node(#{nodes := Nodes}) -> oneof(maps:keys(Nodes)).

target(N, S) -> ?LET(M, other(N, S), {M, frequency([{1, group(N, S)}, {3, group(M, S)}])}).

%% Nodes of one's own group or island have nothing new to say, and nodes without names neither. So
%% half of the nodes hold names, and most of the others are not linked to this one.
other(N, #{s_groups := Groups, free_groups := Free} = S) ->
    case lists:usort(lists:append([Ms || {_, Ms, Ns} <- Groups, map_size(Ns) > 0] ++
                                  [Ms || {Ms, Ns} <- Free, map_size(Ns) > 0])) of
        [] -> stranger(N, S);
        Named -> frequency([{1, oneof(Named)}, {1, stranger(N, S)}])
    end.

stranger(N, #{nodes := Nodes} = S) ->
    #{N := {_, Links, _}} = Nodes,
    case maps:keys(Nodes) -- [N | Links] of
        [] -> any_node(S);
        Strangers -> frequency([{3, oneof(Strangers)}, {2, any_node(S)}])
    end.

name() -> oneof([x, {y, 1}, ~"z"]).

known_name(G, N, S) ->
    Own = case sderl_model_state:class(N, S) of s_group -> G; _ -> undefined end,
    Names = case sderl_model_state:names(Own, N, S) of
        none -> lists:append([maps:keys(Ns) || {Name, _, Ns} <- maps:get(s_groups, S), Name =:= G]);
        Ns -> maps:keys(Ns)
    end,
    case Names of
        [] -> name();
        _ -> frequency([{4, oneof(Names)}, {1, name()}])
    end.

message() -> oneof([hello, {msg, 1}, 2]).

%% Mostly a process of the node.
process(N, #{processes := Ps, nodes := Nodes}) ->
    Own = [P || {pid, On, _} = P := _ <- Ps, On =:= N],
    frequency([{12, oneof(Own)} || Own =/= []] ++ [{4, oneof(maps:keys(Ps))} || map_size(Ps) > 0]
              ++ [{1, ?LET({M, K}, {oneof(maps:keys(Nodes)), integer(1, 3)}, {pid, M, K})},
                  {1, not_a_pid}]).

%% Free names are registered by their processes' own nodes, as published.
proper(undefined, {pid, On, _}, N) when On =/= N -> {pid, N, 1};
proper(_, Pid, _) -> Pid.
