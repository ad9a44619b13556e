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
         [true = ets:delete(T) || T <- [sderl_names, sderl_groups, sderl_state, sderl_gone, sderl_known,
                                        sderl_refused, sderl_watches, sderl_tried, sderl_links]]
     end,
     fun(_) ->
         ?_test(begin
             Past = erlang:monotonic_time(millisecond) - 60_000,
             N = 'idle@127.0.0.1',
             ok = sderl_links:note(N, {lookup, g}, Past),
             ok = sderl_links:nodeup(N, true, Past),
             {noreply, One} = sderl_link_policy:handle_info(look, #{}),
             ?assertEqual(#{N => []}, One),
             {noreply, Same} = sderl_link_policy:handle_info(look, One),
             ?assertEqual(One, Same),
             ok = sderl_links:note(N, {group, g}),
             {noreply, None} = sderl_link_policy:handle_info(look, Same),
             ?assertEqual(#{}, None)
         end)
     end}.

