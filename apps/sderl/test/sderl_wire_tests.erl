%% SPDX-License-Identifier: Apache-2.0
-module(sderl_wire_tests).
-include_lib("eunit/include/eunit.hrl").

%% What members say to each other is held against recordings by sderl_frames_SUITE.

operations_test_() ->
    P = self(),
    Options = #{meta => any, resolver => {module, function}},
    [?_assert(sderl_wire:operation(Op))
     || Op <- [[name | P], {name}, {r, name, P, []}, {r, name, P, Options}, {x, name, P, P, []},
               {rr, name, P, #{}}, {d, name, P}, {add, []}, {add, [a@h]}, {remove, [a@h], 1},
               delete]]
        ++ [?_assertNot(sderl_wire:operation(Op))
            || Op <- [[name | not_a_pid], [P], {}, [], 42, {r, name, not_a_pid, []},
                      {r, name, P, options}, {r, name, P, #{resolver => none}},
                      {r, name, P, #{resolver => {"module", function}}}, {x, name, P, none, []},
                      {rr, name, P}, {d, name, name}, {add, a@h},
                      {add, [a@h | b@h]}, {add, ["a@h"]}, {remove, [a@h], never},
                      {remove, [a@h], -1}, {delete, all}]].

%% A batch is as good as each of its items.
items_test_() ->
    P = self(),
    Seg = fun(Ops, Answers) -> {seg, node(), 1, 1, Ops, Answers} end,
    Batch = fun(Items) -> sderl_wire:message(a@h, {batch, {1, a@h}, 1, 0, Items}) end,
    [?_assert(Batch([Seg([[name | P], {name}], default), Seg([{name}], [ok]), delete])),
     ?_assertNot(Batch([Seg([[name | P]], [yes, ok])])),
     ?_assertNot(Batch([Seg([[name | P]], yes)])),
     ?_assertNot(Batch([Seg([[name | P] | tail], default)])),
     ?_assertNot(Batch([delete | delete])),
     ?_assertNot(Batch(delete)),
     ?_assert(Batch([{settle, name, [P], {name, P, node(), new, []}, [{exit, P, name}]}])),
     ?_assertNot(Batch([{settle, name, [P], {name, P, node(), old, []}, []}])),
     ?_assert(Batch([{shard, node(), true, [{name, P, node(), {{1, a@h}, 1}, []}], more}])),
     ?_assertNot(Batch([{shard, node(), true, [{name, P, node(), {1, 1}, []}], more}]))].

%% A number that no clock and no count comes to would be in every message from then on.
numbers_test_() ->
    [?_assert(sderl_wire:message(a@h, {hb, {erlang:system_time(millisecond), a@h}, 1 bsl 40})),
     ?_assert(sderl_wire:message(a@h, {hb, {-erlang:system_time(millisecond), a@h}, 0}))]
        ++ [?_assertNot(sderl_wire:message(a@h, Hb))
            || Hb <- [{hb, {1 bsl 64, a@h}, 1}, {hb, {1, a@h}, 1 bsl 64}, {hb, {1, a@h}, -1},
                      {hb, {1.0, a@h}, 1}, {hb, {1, "a@h"}, 1}, {hb, 1, 1}]].

%% It comes from a process of that node.
hello_test_() ->
    E = {1, node()},
    Hello = {hello, self(), life, sderl_membership:new([node()]),
             #{epoch => E, lineage => E, num => 0, lead => undefined, syncing => false}},
    [?_assert(sderl_wire:message(node(), Hello)),
     ?_assertNot(sderl_wire:message(a@h, Hello)),
     ?_assertNot(sderl_wire:message(node(), setelement(4, Hello, #{node() => 1}))),
     ?_assertNot(sderl_wire:message(node(), setelement(5, Hello, #{epoch => E}))),
     ?_assertNot(sderl_wire:message(node(),
                                    setelement(5, Hello, (element(5, Hello))#{lead := "nobody"})))].
