%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([endless/0, ticket/0]).

%% ---------------------------------------------------------------- one attribute

-define(TIMES, {100, 1000}).

new(Spec) -> sderl_attr_own:new(Spec, none, ?TIMES, {0, 1}).

entry(A) -> sderl_attr_own:entry(n, A).

kinds_test() ->
    ?assertEqual({n, 7, ok, now, static, 1}, entry(new(7))),
    ?assertEqual({n, {x, {a, b}}, ok, now, static, 1}, entry(new({x, {a, b}}))),
    ?assertEqual({n, undefined, pending, 0, 100, 1}, entry(new({dynamic, {a, b}}))),
    ?assertEqual({n, undefined, pending, 0, 7, 1},
                 entry(new({dynamic, {a, b, []}, #{keep_ms => 7}}))),
    ?assertEqual({n, undefined, pending, now, static, 1}, entry(new({automatic, {a, b}}))),
    ?assertEqual({n, 5, ok, now, static, 1},
                 entry(sderl_attr_own:new({automatic, {a, b}}, {ok, 5}, ?TIMES, {0, 1}))).

%% A dynamic value is kept for its time, whoever asks; it is as old as the beginning of its
%% computing.
due_test() ->
    A0 = new({dynamic, {a, b}}),
    ?assert(sderl_attr_own:due(0, 0, A0)),
    A1 = sderl_attr_own:started(10, A0),
    ?assertNot(sderl_attr_own:due(0, 1000, A1)),
    ?assert(sderl_attr_own:wanted(0, 1000, A1)),
    {changed, A2} = sderl_attr_own:outcome({ok, 1}, 9, A1),
    ?assertEqual({n, 1, ok, 10, 100, 9}, entry(A2)),
    ?assertEqual([false, true], [sderl_attr_own:due(0, Now, A2) || Now <- [109, 110]]),
    ?assertEqual([false, true], [sderl_attr_own:due(200, Now, A2) || Now <- [209, 210]]),
    {same, A3} = sderl_attr_own:outcome({ok, 1}, 10, sderl_attr_own:started(110, A2)),
    ?assertEqual({n, 1, ok, 110, 100, 9}, entry(A3)),
    {changed, A4} = sderl_attr_own:outcome({ok, 1.0}, 11, sderl_attr_own:started(110, A3)),
    ?assertEqual({n, 1.0, ok, 110, 100, 11}, entry(A4)).

%% Static and automatic ones are never computed again.
once_test() ->
    ?assertNot(sderl_attr_own:due(0, 1_000_000, new(7))),
    {changed, A} = sderl_attr_own:outcome({undefined, timeout}, 2,
                                          sderl_attr_own:started(1, new({automatic, {a, b}}))),
    ?assertEqual({n, undefined, timeout, now, static, 2}, entry(A)),
    ?assertNot(sderl_attr_own:due(0, 1_000_000, A)).

%% One that does not end is called ever less often; one that crashes at once costs little.
back_off_test() ->
    Fails = fun(Call, Why, N) ->
        lists:foldl(fun(_, A) ->
            element(2, sderl_attr_own:outcome({undefined, Why}, 2, sderl_attr_own:started(0, A)))
        end, new({dynamic, Call}), lists:seq(1, N))
    end,
    Fail = fun(Why, N) -> Fails({a, b}, Why, N) end,
    ?assertEqual(100, sderl_attr_own:later(100, Fails({sderl_attr_builtin, get, [loadavg1]},
                                                      timeout, 9))),
    ?assertEqual([100, 200, 400, 800, 1200, 1200],
                 [sderl_attr_own:later(100, Fail(timeout, N)) || N <- [0, 1, 2, 3, 4, 50]]),
    ?assertEqual(400, sderl_attr_own:later(100, Fail(heap, 2))),
    ?assertEqual(100, sderl_attr_own:later(100, Fail({error, undef}, 9))),
    {_, Well} = sderl_attr_own:outcome({ok, 1}, 3, sderl_attr_own:started(0, Fail(timeout, 5))),
    ?assertEqual(100, sderl_attr_own:later(100, Well)).

%% ---------------------------------------------------------------- running calls

outcomes_test_() ->
    Run = fun(Call) -> sderl_attr_eval:run(Call, 60_000) end,
    [?_assertEqual({ok, node()}, Run({erlang, node})),
     ?_assertEqual({ok, 3}, Run({erlang, '+', [1, 2]})),
     ?_assertEqual({undefined, no_value}, Run({erlang, hd, [[undefined]]})),
     ?_assertEqual({undefined, {throw, x}}, Run({erlang, throw, [x]})),
     ?_assertEqual({undefined, {exit, x}}, Run({erlang, exit, [x]})),
     ?_assertEqual({undefined, {error, badarith}}, Run({erlang, '/', [1, 0]})),
     ?_assertEqual({undefined, {error, undef}}, Run({no_such, function})),
     ?_assertEqual({undefined, {error, too_large}}, Run({erlang, error, [lists:seq(1, 10_000)]})),
     ?_assertEqual({undefined, too_large}, Run({lists, seq, [1, 100_000]})),
     ?_assertEqual({undefined, too_large}, Run({binary, copy, [~"x", 100_000]})),
     ?_assertEqual({undefined, heap}, Run({lists, seq, [1, 100_000_000]})),
     ?_assertEqual({undefined, heap},
                   Run({lists, map,
                        [fun(N) -> binary:copy(~"x", 16_000_000 + N) end, lists:seq(1, 100)]})),
     ?_assertEqual({undefined, fun_in_value},
                   Run({lists, append, [[[a, #{b => {fun() -> ok end}}]]]})),
     ?_assertEqual({undefined, timeout}, sderl_attr_eval:run({?MODULE, endless}, 50))].

endless() -> endless().

%% Nothing is left behind: no process, no message.
nothing_left_test_() -> {spawn, fun nothing_left_alone/0}.

nothing_left_alone() ->
    Before = length(processes()),
    _ = [sderl_attr_eval:run(Call, 20)
         || Call <- [{?MODULE, endless}, {erlang, node}, {erlang, exit, [x]}],
            _ <- lists:seq(1, 10)],
    ok = sderl_fleet:await(fun() -> length(processes()) =< Before end, 60_000),
    ?assertEqual({messages, []}, process_info(self(), messages)).

%% It ends with whoever wanted it.
ends_with_its_caller_test() ->
    Self = self(),
    Caller = spawn(fun() ->
        {Pid, _, _} = sderl_attr_eval:start({?MODULE, endless}, tag, self()),
        Self ! {runs, Pid},
        receive stop -> ok end
    end),
    Runner = receive {runs, Pid} -> Pid end,
    Ref = monitor(process, Runner),
    ?assert(is_process_alive(Runner)),
    exit(Caller, kill),
    receive {'DOWN', Ref, process, _, _} -> ok end.

ticket() -> ok.

%% ---------------------------------------------------------------- whom to ask

%% Every node that has a gateway is asked for once, at one of its own; the others are left over; no
%% more gateways than nodes.
cover_property_test_() ->
    sderl_prop:eunit("gateways cover what they can", 300, fun() ->
        Gateway = oneof([g1, g2, g3, g4]),
        ?FORALL(Nodes, ?LET(L, list({oneof([a, b, c, d, e, f]), list(Gateway)}), maps:from_list(L)),
                begin
                    {Chosen, Rest} = sderl_attr_fetch:cover(Nodes, []),
                    Covered = lists:append([For || {_, For} <- Chosen]),
                    lists:sort(Covered ++ Rest) =:= lists:sort(maps:keys(Nodes))
                    andalso lists:all(fun(N) -> maps:get(N, Nodes) =:= [] end, Rest)
                    andalso lists:all(fun({G, For}) ->
                        lists:all(fun(N) -> lists:member(G, maps:get(N, Nodes)) end, For)
                    end, Chosen)
                end)
    end).

%% One that reaches all is asked alone.
few_test() ->
    ?assertMatch({[{g2, [a, b, c]}], []},
                 sderl_attr_fetch:cover(#{a => [g1, g2], b => [g2, g3], c => [g2]}, [])).

%% ---------------------------------------------------------------- configuration

parse(Env) -> sderl_config:parse(Env, undefined, 'a@h').

configuration_test() ->
    Attributes = [{role, db}, {{in, g, rank}, 1}, {load, {dynamic, {m, f, []}, #{keep_ms => 10}}},
                  {"free", {automatic, {m, f}}}],
    {ok, Config} = parse([{attributes, Attributes}, {labels, #{zone => a, {rack, 1} => "b"}},
                          {attribute_builtins, false}, {attribute_share_ms, 100}]),
    ?assertMatch(#{attributes := Attributes, labels := [{zone, a}, {{rack, 1}, "b"}],
                   attribute_builtins := false, attribute_share_ms := 100}, Config),
    {ok, #{labels := [{zone, a}]}} = parse([{labels, [{zone, a}]}]).

bad_configuration_test_() ->
    Fun = fun() -> ok end,
    [{lists:flatten(io_lib:format("~0tp", [Option])), fun() ->
        {error, {bad_config, Path, _, _} = Error} = parse([Option]),
        ?assertEqual([sderl | Where], Path),
        Sentence = sderl_config:format_error(Error),
        ?assert(io_lib:printable_unicode_list(Sentence)
                andalso string:find(Sentence, "; write") =/= nomatch
                orelse string:find(Sentence, "; remove") =/= nomatch),
        ?assertEqual(nomatch, string:find(Sentence, "expected"))
    end}
     || {Option, Where} <- [
         {{attributes, role}, [attributes]}, {{attributes, #{role => db}}, [attributes]},
         {{attributes, [role]}, [attributes, 1]},
         {{attributes, [{role, db} | x]}, [attributes]},
         {{attributes, [{role, db}, {role, web}]}, [attributes, 2]},
         {{attributes, [{undefined, 1}]}, [attributes, 1, name]},
         {{attributes, [{a, undefined}]}, [attributes, 1, {key, a}]},
         {{attributes, [{b, 1}, {a, Fun}]}, [attributes, 2, {key, a}]},
         {{attributes, [{a, {dynamic, x}}]}, [attributes, 1, {key, a}]},
         {{attributes, [{a, {automatic, {m, "f"}}}]}, [attributes, 1, {key, a}]},
         {{attributes, [{a, {dynamic, {m, f}, #{keep_ms => x}}}]}, [attributes, 1, {key, a}]},
         {{labels, x}, [labels]}, {{labels, [x]}, [labels, 1]},
         {{labels, #{zone => undefined}}, [labels, 1, {key, zone}]},
         {{attribute_builtins, yes}, [attribute_builtins]},
         {{attribute_share_ms, 0}, [attribute_share_ms]},
         {{attribute_keep_ms, -1}, [attribute_keep_ms]},
         {{attribute_timeout_ms, infinity}, [attribute_timeout_ms]}
     ]].

%% ---------------------------------------------------------------- not running

not_running_test_() ->
    [?_assertEqual({error, not_running}, apply(sderl_attr, F, A))
     || {F, A} <- [{insert, [a, 1]}, {update, [a, 1]}, {set, [a, 1]}, {set, [g, a, 1]},
                   {delete, [a]}, {delete, [g, a]}, {label, [a, 1]}, {all, []},
                   {registered_attributes, []}, {fetch, [[node()], [a]]},
                   {fetch, [['x@y'], [a], #{}]}, {request_attrs, [[node()], a]},
                   {request_attrs, [[node()], [a], 10]}]]
        ++ [?_assertEqual(unknown, sderl_attr:cached(node(), a))].

%% ---------------------------------------------------------------- built-in

%% All have values here, with the types that their units say.
builtin_test() ->
    ok = sderl_dir:new(),
    ok = sderl_attr_table:new(),
    _ = erlang:system_flag(scheduler_wall_time, true),
    sderl_attr_table:sample(sderl_attr_builtin:schedulers()),
    Values = #{Name => sderl_attr_eval:run(case Spec of {_, Call} -> Call; {_, Call, _} -> Call end,
                                           5000)
               || {Name, Spec, _} <- sderl_attr_builtin:all()},
    [?assertMatch({_, {ok, _}}, {Name, maps:get(Name, Values)})
     || {Name, _, Unit} <- sderl_attr_builtin:all(), Unit =/= "MHz", not linux_only(Name)],
    Types = #{"kB" => fun is_integer/1,
              "processes" => fun is_integer/1,
              "string" => fun io_lib:printable_unicode_list/1,
              "MHz" => fun is_float/1,
              "runnable processes" => fun is_float/1,
              "0.0 to 1.0" => fun(U) -> is_float(U) andalso U >= 0.0 andalso U =< 1.0 end},
    [?assert(Is(Value))
     || {Name, _, Unit} <- sderl_attr_builtin:all(), {ok, Value} <- [maps:get(Name, Values)],
        #{Unit := Is} <- [Types]],
    _ = erlang:system_flag(scheduler_wall_time, false),
    [true = ets:delete(T)
     || T <- [sderl_names, sderl_groups, sderl_state, sderl_gone, sderl_known, sderl_refused,
              sderl_watches, sderl_forgotten, sderl_tried, sderl_attrs, sderl_attr_state]].

linux_only(_) -> os:type() =/= {unix, linux}.
