%% SPDX-License-Identifier: Apache-2.0
-module(sderl_conformance).

%% Real nodes in lockstep with the semantics. Each step is a call on a node and the matching rule of
%% sderl_model. The value of the call and the state of every node must then be what the rule gives;
%% otherwise the two diverge.
%%
%% Nothing sleeps: after each value all nodes are polled at once, until they show the expected state
%% or a deadline passes. Where the semantics leaves a choice (sderl_model:open/1) the nodes' choice
%% is taken; links that it allows (sderl_model:may_link/1) may exist or not. Whenever nodes are
%% polled, each must show a state that is valid at any moment (sderl_model_check:view/2).
%%
%% The same nodes serve for many lists of steps: reset/2 stops the library on all of them, closes
%% all links and starts it again. Nothing of the earlier state is left, and this takes a fraction of
%% a second.
%%
%% To see a failure again, in `rebar3 as test shell`:
%%
%%     sderl_conformance:replay(
%%         plain, [{'n1@127.0.0.1', {new_s_group, g1, ['n1@127.0.0.1']}}, ...]).

-export([start/1, stop/1, reset/2, initial/1, steps/2, run/3, run/4, at_once/3, replay/2, node_of/1,
         text/1]).

-define(TAG, "").
-define(CALL, 90_000).
%% How long, in ms, all nodes may take to show a state; after a reset.
-define(REST, 60_000).
-define(ANEW, 10_000).

-record(w, {
    fleet,
    table = #{},
    names = #{},
    dead = #{},
    may = [],
    rest = ?REST,
    between = rest :: rest | glance
}).

%% ---------------------------------------------------------------- nodes

%% 14 normal and 2 hidden nodes, as published.
node_of(Short) -> list_to_atom(Short ++ "@127.0.0.1").

types() ->
    [{node_of("n" ++ integer_to_list(I)), normal} || I <- lists:seq(1, 14)] ++
        [{node_of("h" ++ integer_to_list(I)), hidden} || I <- lists:seq(1, 2)].

%% Long timeouts, so that no member is set aside because the machine is busy. `patience_ms` of a
%% variant is such a time, too.
env() -> [{sderl, tick_ms, 200}, {sderl, write_timeout_ms, 60_000}].

start(Owner) ->
    Family = #{apps => [sderl], env => env()},
    {ok, Fleet} = sderl_fleet:start(#{families => [Family#{name => n, count => 14},
                                                   Family#{name => h, count => 2, hidden => true}],
                                      tag => ?TAG, owner => Owner}),
    Fleet.

stop(Fleet) -> sderl_fleet:stop(Fleet).

%% ---------------------------------------------------------------- variants

%% A variant is an atom, or a map that replaces parts of `plain`: `start` (the state in which the
%% nodes begin), `resolver`, `weights` of the commands, planted `faults` of the library, and
%% `patience_ms`, the time after which the library sets a silent node aside.
variant(plain) ->
    #{start => plain, resolver => random_exit_name, weights => sderl_model_gen:plain(),
      faults => [], patience_ms => 15_000};
%% A launch configuration makes three groups.
variant(launch) -> (variant(plain))#{start := launch, resolver := notify_all_name};
%% Most nodes are free and use the same few names, so that islands meet and names clash.
variant(islands) ->
    (variant(plain))#{resolver := random_notify_name, weights := sderl_model_gen:free()};
%% Groups that decide by majority; no node loses the majority here. Some changes of the membership
%% wait for `patience_ms`, so it is lower.
variant(majority) -> (variant(plain))#{weights := sderl_model_gen:majority(), patience_ms := 5000};
%% The same without added nodes, each of which waits for `patience_ms`.
variant(majority_as_made) ->
    (variant(majority))#{weights := maps:without([add_nodes, enter], sderl_model_gen:majority())};
variant(Map) when is_map(Map) -> maps:merge(variant(plain), Map).

%% Three groups that overlap.
launch() ->
    N = fun(Shorts) -> [node_of(S) || S <- Shorts] end,
    [{g1, normal, N(["n1", "n2", "n3", "n4", "h1"])}, {g2, normal, N(["n4", "n5", "n6"])},
     {{g, 3}, hidden, N(["n1", "n6", "n7", "n8"])}].

%% Steps at random. Every node begins with two processes.
steps(Variant, Count) ->
    #{weights := Weights} = variant(Variant),
    sderl_model_gen:steps(initial(Variant), Count, Weights).

initial(Variant) ->
    #{start := Start, resolver := Resolver} = variant(Variant),
    S0 = sderl_model:new(case Start of
        plain -> #{nodes => types(), resolver => Resolver};
        launch ->
            #{nodes => types(), resolver => Resolver, s_groups => launch(), s_groups_known => all}
    end),
    lists:foldl(fun({N, _}, S) -> element(2, sderl_model:run(S, spawn, N)) end, S0,
                types() ++ types()).

%% Brings the nodes to the state of initial/1, as after a start. A helper process of the library may
%% be about to connect when the library is stopped; then the reset is tried again.
reset(Fleet, Variant) -> reset(Fleet, Variant, 3).

reset(Fleet, Variant, Tries) ->
    ok = all(Fleet, stop, []),
    await(fun() -> lists:all(fun(Free) -> Free end, each(Fleet, unlink, [])) end),
    #{start := Start, resolver := Resolver, faults := Faults, patience_ms := Patience} =
        variant(Variant),
    Groups = case Start of plain -> undefined; launch -> launch() end,
    ok = all(Fleet, start, [[{s_groups, Groups}, {resolver, Resolver}, {set_aside_ms, Patience}],
                            sderl_plant:beams(Faults)]),
    Pids = [{{pid, N, K}, sderl_fleet:call(Fleet, N, sderl_conformance_node, spawned, [])}
            || {N, _} <- types(), K <- [1, 2]],
    Dead = lists:zip([N || {N, _} <- types()], each(Fleet, dead, [])),
    W = #w{fleet = Fleet, table = maps:from_list(Pids), dead = maps:from_list(Dead)},
    case rest(initial(Variant), W#w{rest = ?ANEW}) of
        {ok, S, W1} -> {S, W1#w{rest = ?REST}};
        {diverged, _} when Tries > 1 -> reset(Fleet, Variant, Tries - 1);
        {diverged, Where} -> error({not_reset, Where})
    end.

each(Fleet, F, Args) ->
    [case Answer of
         {ok, Value} -> Value;
         {error, Why} -> error({Node, F, Why})
     end || {Node, Answer} <- sderl_fleet:multicall(Fleet, [N || {N, _} <- types()],
                                                    sderl_conformance_node, F, Args, ?CALL)].

all(Fleet, F, Args) ->
    [] = [Value || Value <- each(Fleet, F, Args), Value =/= ok],
    ok.

await(F) ->
    case sderl_fleet:await(F, ?REST) of
        ok -> ok;
        {error, {timeout, Last}} -> error({never, Last})
    end.

%% ---------------------------------------------------------------- lockstep

%% Runs steps on nodes that were reset: `ok`, or where and how the two diverged.
run(Fleet, Variant, Steps) -> run(Fleet, Variant, Steps, ?REST).

%% As run/3; the nodes have `Rest` milliseconds to reach each state.
run(Fleet, Variant, Steps, Rest) ->
    {S, W} = reset(Fleet, Variant),
    steps(Steps, 1, S, W#w{rest = Rest}).

%% As run/3, but waits only for the state after the last step.
at_once(Fleet, Variant, Steps) ->
    {S, W} = reset(Fleet, Variant),
    steps(Steps, 1, S, W#w{between = glance}).

steps([], _, _, _) -> ok;
steps([Step | Steps], K, S0, W0) ->
    case sderl_model_gen:applicable(Step, S0) of
        false -> steps(Steps, K + 1, S0, W0);
        true ->
            {Expected, S1} = sderl_model_gen:run(Step, S0),
            {Seen, W1} = do(Step, Expected, W0),
            case value(Expected, Seen, W1) of
                same ->
                    Seeing = case Steps of [] -> rest; _ -> W1#w.between end,
                    case look(Seeing, S1, W1) of
                        {ok, S, W} -> steps(Steps, K + 1, S, W);
                        {diverged, Where} -> diverged(K, Step, {states, Where}, S0)
                    end;
                {Want, Got} -> diverged(K, Step, {values, Want, Got}, S0)
            end
    end.

diverged(K, Step, How, Before) ->
    {diverged, #{step => K, command => Step, how => How, before => Before}}.

%% Calls the library on the node, with real processes and names in place of the symbols.
do({Node, spawn}, Pid, #w{fleet = Fleet, table = T} = W) ->
    {Pid,
     W#w{table = T#{Pid => sderl_fleet:call(Fleet, Node, sderl_conformance_node, spawned, [])}}};
do({_, {exit, {pid, On, _} = Pid}}, _, #w{fleet = Fleet} = W) ->
    {sderl_fleet:call(Fleet, On, sderl_conformance_node, kill, [real(Pid, W)], ?CALL), W};
do({Node, crash}, _, #w{fleet = Fleet} = W) -> {sderl_fleet:kill(Fleet, Node), W};
do({Node, restart}, Expected, #w{fleet = Fleet} = W) ->
    {case sderl_fleet:restart(Fleet, Node) of {ok, Node} -> Expected; Error -> Error end, W};
do({Node, Command}, Expected, #w{fleet = Fleet, names = Names} = W) ->
    {F, Args} = case Command of
        F0 when is_atom(F0) -> {F0, []};
        _ -> {element(1, Command), tl(tuple_to_list(real(Command, W)))}
    end,
    Value = sderl_fleet:call(Fleet, Node, sderl_conformance_node, call, [F, Args], ?CALL),
    case {Expected, Value} of
        {{ok, {generated, _} = G, _}, {ok, Name, _}} when not is_map_key(G, Names) ->
            {Value, W#w{names = Names#{G => Name}}};
        _ -> {Value, W}
    end.

real({pid, N, _} = Pid, #w{table = T, dead = D}) -> maps:get(Pid, T, maps:get(N, D, Pid));
real({generated, _} = G, #w{names = Names}) -> maps:get(G, Names, G);
real(T, W) when is_tuple(T) -> list_to_tuple([real(E, W) || E <- tuple_to_list(T)]);
real([H | T], W) -> [real(H, W) | real(T, W)];
real(Other, _) -> Other.

symbol(P, #w{table = T}) when is_pid(P) ->
    case [S || S := Q <- T, Q =:= P] of
        [S] -> S;
        [] -> {unknown, P}
    end;
symbol(T, W) when is_tuple(T) -> list_to_tuple([symbol(E, W) || E <- tuple_to_list(T)]);
symbol([H | T], W) -> [symbol(H, W) | symbol(T, W)];
symbol(M, W) when is_map(M) -> #{K => symbol(V, W) || K := V <- M};
symbol(A, #w{names = Names}) ->
    case [G || G := Name <- Names, Name =:= A] of
        [G] -> G;
        [] -> A
    end.

%% Compares values. The order of names, the token, and a home that the semantics leaves to the group
%% are ignored.
value(Expected, Seen, W) ->
    case {plain(Expected), plain(symbol(Seen, W))} of
        {Same, Same} -> same;
        {#{home := any} = A, #{home := _} = B} -> value(A#{home := x}, B#{home := x}, W);
        Differ -> Differ
    end.

plain(L) when is_list(L) -> lists:sort(L);
plain({Own, Other}) when is_list(Own), is_list(Other) -> {lists:sort(Own), lists:sort(Other)};
plain(#{pid := _} = M) -> maps:with([pid, home, meta], M);
plain(V) -> V.

%% ---------------------------------------------------------------- states

look(rest, S, W) -> rest(S, W);
look(glance, S, W0) ->
    W = may(S, W0),
    case never(seen(S, W)) of
        [] -> {ok, S, W};
        Where -> {diverged, Where}
    end.

may(S, #w{may = May} = W) -> W#w{may = lists:umerge(May, lists:usort(sderl_model:may_link(S)))}.

%% Waits until all nodes show the state. Returns it with the choices that the nodes made.
rest(S, #w{rest = Timeout} = W0) ->
    W = may(S, W0),
    Self = self(),
    Ref = make_ref(),
    Look = fun() ->
        Seen = seen(S, W),
        case {never(Seen), agree(S, Seen, W)} of
            {[], {ok, Settled}} -> Self ! {Ref, {ok, Settled, W}}, ok;
            {[], {diverged, Where}} -> Where;
            {Where, _} -> Self ! {Ref, {diverged, Where}}, ok
        end
    end,
    case sderl_fleet:await(Look, Timeout) of
        ok -> receive {Ref, Result} -> Result end;
        {error, {timeout, Where}} -> {diverged, Where}
    end.

%% What nodes show although no node may show it at any moment.
never(Seen) ->
    [{never, Broken}
     || N := #{groups := _} = See <- Seen, Broken <- sderl_model_check:view(N, See)].

seen(#{down := Down}, #w{fleet = Fleet, table = T} = W) ->
    Up = [N || {N, _} <- types(), not lists:member(N, Down)],
    #{N => case Answer of {ok, See} -> view(See, W); _ -> Answer end
      || {N, Answer} <- sderl_fleet:multicall(Fleet, Up, sderl_conformance_node, see,
                                              [maps:values(T)], ?CALL)}.

view(#{groups := Gs, names := Ns, known := Known, processes := Ps, components := Cs} = See, W) ->
    See#{components := symbol(Cs, W),
         groups := lists:sort(symbol(Gs, W)),
         names := lists:sort(symbol(Ns, W)),
         known := lists:sort(symbol(Known, W)),
         processes := maps:from_list(symbol(Ps, W))}.

agree(S0, Seen, W) ->
    S1 = chosen(S0, Seen),
    S = links(S1, Seen, W),
    Wrong = [{N, Differ}
             || N := See <- Seen, Differ <- [differ(sderl_model:view(N, S), See)], Differ =/= []],
    case Wrong ++ apart(S, Seen) ++ strange(Seen) of
        [] -> {ok, S};
        _ -> {diverged, lists:sort(Wrong ++ apart(S, Seen) ++ strange(Seen))}
    end.

differ(Expected, See) when is_map(See) ->
    [{Key, #{expected => Want, seen => Got}}
     || Key := Want0 <- Expected, Got <- [maps:get(Key, See)],
        Want <- [sorted(Key, Want0)], Got =/= Want];
differ(_, Error) -> [Error].

sorted(processes, M) -> M;
sorted(class, C) -> C;
sorted(_, L) -> lists:sort(L).

%% Makes every open choice as the nodes show it, or takes its first option while they show none.
chosen(S, Seen) ->
    case sderl_model:open(S) of
        [] -> S;
        [Choice | _] ->
            Options = sderl_model:options(Choice, S),
            Shown = [O || O <- [shown(Choice, Seen)], lists:member(O, Options)],
            chosen(sderl_model:choose(Choice, hd(Shown ++ Options), S), Seen)
    end.

shown({clash, Ms, Name, _}, Seen) -> held(undefined, Ms, Name, Seen);
shown({twice, Ms, Pid, Names}, Seen) ->
    hd([N || N <- Names, held(undefined, Ms, N, Seen) =:= Pid] ++ [none]);
shown({orphan, G, Ms, Name}, Seen) -> case held(G, Ms, Name, Seen) of none -> lose; _ -> keep end.

held(G, Ms, Name, Seen) ->
    hd([P
        || N := #{names := Ns} <- Seen, lists:member(N, Ms), {{Group, Key}, P} <- Ns, Group =:= G,
           Key =:= Name] ++ [none]).

%% An allowed link exists when both ends have it.
links(S, Seen, #w{may = May}) ->
    lists:foldl(fun({A, B}, Acc) ->
        case Seen of
            #{A := #{links := LA}, B := #{links := LB}} ->
                case lists:member(B, LA) andalso lists:member(A, LB) of
                    true -> sderl_model_state:link(A, B, Acc);
                    false -> Acc
                end;
            _ -> Acc
        end
    end, S, May).

%% Groups whose running members are not all in one component.
apart(#{s_groups := Groups, free_groups := Free} = S, Seen) ->
    All = [{G, Ms} || {G, Ms, _} <- Groups] ++ [{undefined, Ms} || {Ms, _} <- Free],
    [{component, {G, Found}}
     || {G, Ms} <- All, Up <- [[M || M <- Ms, sderl_model_state:is_up(M, S)]], Up =/= [],
        Found <- [lists:usort([{M, component(G, M, Seen)} || M <- Up])],
        not one(lists:usort([C || {_, C} <- Found]), Up)].

component(G, M, Seen) ->
    case Seen of
        #{M := #{groups := _, components := Cs}} ->
            hd([C || {Group, C} <- Cs, Group =:= G] ++ [none]);
        _ -> none
    end.

one([{_, Live}], Up) -> Live =:= Up;
one(_, _) -> false.

%% Links that neither end's library opened. Here the library makes every link, so at least one end
%% must know of it.
strange(Seen) ->
    [{link_of_nobody, {A, B}} || A := #{strange := Bs} <- Seen, B <- Bs, A < B,
                                 #{B := #{strange := As}} <- [Seen], lists:member(A, As)].

%% ---------------------------------------------------------------- reports

replay(Variant, Steps) ->
    Fleet = start(self()),
    Result = try run(Fleet, Variant, Steps) after stop(Fleet) end,
    io:put_chars(text(Result)),
    Result.

%% A divergence as text.
text(ok) -> "the nodes and the semantics agree\n";
text({diverged, #{step := K, command := {Node, Command}, how := How, before := Before}}) ->
    [io_lib:format("step ~b: ~0tp on ~ts~n~ts", [K, Command, Node, how(How)]), "in the state\n",
     sderl_model:format(Before)].

how({values, Expected, Seen}) ->
    io_lib:format("  the semantics gives ~0tp~n  the node gave      ~0tp~n", [Expected, Seen]);
how({states, Where}) -> [where(W) || W <- Where].

where({Node, Differ}) when is_list(Differ) -> [where(Node, D) || D <- Differ];
where({What, Term}) -> io_lib:format("  ~ts: ~0tp~n", [What, Term]).

where(Node, {Key, #{expected := Want, seen := Got}}) ->
    io_lib:format("  ~ts, ~ts~n    the semantics has ~0tp~n    the node shows    ~0tp~n",
                  [Node, Key, Want, Got]);
where(Node, Other) -> io_lib:format("  ~ts: ~0tp~n", [Node, Other]).
