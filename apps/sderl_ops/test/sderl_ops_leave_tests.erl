%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_leave_tests).
-moduledoc """
An instance that is to be no more leaves its groups, or is taken out of them, before nothing is
left of it.
""".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_ops_cases, [desired/3, running/1]).

-define(NOW, 1_000_000).
-define(THREE, [~"web1", ~"web2", ~"web3"]).
-define(TWO, [~"web1", ~"web2"]).

%% A service that has just begun has looked at the hosts and not asked the nodes yet.
nothing_is_stopped_before_the_nodes_were_asked_test() ->
    {Seen, Memory} = running(desired(3, ~"aa", ?THREE)),
    Fewer = desired(2, ~"aa", ?TWO),
    #{start := [], waiting := Waiting, done := false} =
        steps(Fewer, Seen#{nodes := #{}, groups := unknown}, Memory),
    ?assertEqual([{node, unseen}], [Why || {{instance, ~"web3"}, Why} <- Waiting]),
    ?assertMatch(#{start := [{drain, ~"web3"}]}, steps(Fewer, Seen, Memory)).

%% Its node died, and the others still list it as a member.
who_died_is_taken_out_of_its_groups_test() ->
    {Seen, Memory} = died(~"web3", running(desired(3, ~"aa", ?THREE))),
    Fewer = desired(2, ~"aa", ?TWO),
    #{start := [groups], waiting := Waiting} = steps(Fewer, Seen, Memory),
    ?assertEqual([{listed, ~"some"}], [Why || {{instance, ~"web3"}, Why} <- Waiting]),
    ?assertMatch(#{start := [{remove, _, ~"web3"}]},
                 steps(Fewer, Seen#{listed := #{}}, Memory)),
    %% It is to be started again, and comes back into its groups by that.
    ?assertMatch(#{start := [{start, ~"web3"}]},
                 steps(desired(3, ~"aa", ?THREE), Seen, Memory)),
    %% No remaining member could remove it.
    #{groups := Groups, nodes := Nodes} = Seen,
    Others = Seen#{groups := #{Name => [] || Name := _ <- Groups},
                   nodes := maps:without(?TWO, Nodes)},
    #{start := Start} = steps(Fewer, Others, Memory),
    ?assertMatch([_], [Step || {remove, _, ~"web3"} = Step <- Start]).

%% A node that was handed back stays in its groups, and the service neither removes it nor waits for
%% it, also while the last look is older.
handed_back_counts_no_more_test_() ->
    Desired = desired(3, ~"aa", ?THREE),
    Of = #{node => ~"web3@h.x", host => ~"here/h1", as => ~"as"},
    Released = fun({#{hosts := Hosts} = Seen, #{assigned := Assigned} = Memory}) ->
        %% Nothing of it was ever laid out.
        {Seen#{hosts := #{Host => There#{instances := maps:remove(~"web3", Instances)}
                          || Host := #{instances := Instances} = There <- Hosts}},
         Memory#{assigned := maps:remove(~"web3", Assigned), released => #{~"web3" => Of}}}
    end,
    {#{groups := Groups} = Seen, Memory} = Released(running(Desired)),
    {Died, Without} = Released(died(~"web3", running(Desired))),
    [
        {Name, ?_assertMatch(#{start := [], waiting := []}, steps(Desired, Observed, Its))}
     || {Name, Observed, Its} <- [
            {"seen in its group", Seen, Memory},
            {"not seen any more", Seen#{groups := #{~"some" => lists:delete(~"web3",
                                                       map_get(~"some", Groups))}}, Memory},
            {"down, and listed", Died, Without}
        ]
    ].

died(Id, {#{hosts := Hosts, nodes := Nodes, groups := Groups} = Seen, Memory}) ->
    Host = sderl_ops_memory:host_of(Id, Memory),
    #{Host := #{instances := #{Id := Instance}}} = Hosts,
    {sderl_ops_observed:put_instance(Host, Id, Instance#{state := exited}, Seen#{
         nodes := maps:remove(Id, Nodes),
         groups := #{Name => lists:delete(Id, Ids) || Name := Ids <- Groups},
         listed => #{Name => [Id] || Name := Ids <- Groups, lists:member(Id, Ids)}
     }), Memory}.

steps(Desired, Observed, Memory) ->
    sderl_ops_reconcile:steps(Desired, Observed, Memory, [], ?NOW).
