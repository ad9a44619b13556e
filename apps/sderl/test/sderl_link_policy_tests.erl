%% SPDX-License-Identifier: Apache-2.0
-module(sderl_link_policy_tests).
-include_lib("eunit/include/eunit.hrl").

%% A link of the library that has lost its last reason is reported once, and forgotten when it is
%% needed again. The states are those that the server would have between two looks.
report_test_() ->
    {setup,
     fun() ->
         ok = sderl_dir:new(),
         sderl_links = sderl_links:new(),
         ok = sderl_dir:options(#{link_idle_ms => 1}),
         ok
     end,
     fun(_) ->
         true = persistent_term:erase({sderl, options}),
         [true = ets:delete(T)
          || T <- [sderl_names, sderl_groups, sderl_state, sderl_gone, sderl_known,
                   sderl_refused, sderl_watches, sderl_forgotten, sderl_tried, sderl_links]]
     end,
     fun(_) ->
         ?_test(begin
             Past = erlang:monotonic_time(millisecond) - 60_000,
             N = 'idle@127.0.0.1',
             ok = sderl_links:note(N, {lookup, g}, Past),
             ok = sderl_links:nodeup(N, true, Past),
             {ok, Start} = sderl_link_policy:init([]),
             {noreply, One} = sderl_link_policy:handle_info(look, Start),
             ?assertEqual(#{N => []}, element(2, One)),
             {noreply, Same} = sderl_link_policy:handle_info(look, One),
             ?assertEqual(element(2, One), element(2, Same)),
             ok = sderl_links:note(N, {group, g}),
             {noreply, None} = sderl_link_policy:handle_info(look, Same),
             ?assertEqual(#{}, element(2, None))
         end)
     end}.

%% Ticks are packets of four bytes: a link that carries nothing else is quiet.
quiet_test_() ->
    Quiet = fun sderl_link_policy:quiet/3,
    First = Quiet(#{}, #{a => {100, 5, 200, 6}}, 1000),
    [?_assertEqual(#{a => {{100, 5, 200, 6}, 1000}}, First),
     ?_assertEqual(#{a => {{100, 5, 200, 6}, 1000}}, Quiet(First, #{a => {100, 5, 200, 6}}, 2000)),
     ?_assertEqual(#{a => {{108, 7, 204, 7}, 1000}}, Quiet(First, #{a => {108, 7, 204, 7}}, 2000)),
     ?_assertEqual(#{a => {{109, 7, 204, 7}, 2000}}, Quiet(First, #{a => {109, 7, 204, 7}}, 2000)),
     ?_assertEqual(#{a => {{100, 5, 260, 7}, 2000}}, Quiet(First, #{a => {100, 5, 260, 7}}, 2000)),
     %% It went and came again, or another one came.
     ?_assertEqual(#{a => {{8, 2, 8, 2}, 2000}}, Quiet(First, #{a => {8, 2, 8, 2}}, 2000)),
     ?_assertEqual(#{b => {{0, 0, 0, 0}, 2000}}, Quiet(First, #{b => {0, 0, 0, 0}}, 2000))].
