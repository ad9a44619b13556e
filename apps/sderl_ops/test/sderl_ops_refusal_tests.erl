%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_refusal_tests).
-moduledoc "Which instances may be drained, and the sentences of refusals.".

-include_lib("eunit/include/eunit.hrl").

-define(IDS, [~"web1", ~"web2", ~"web3", ~"web4", ~"web5"]).

%% Groups, drained instances, instances that are in no group now, and the refusal for web2.
drain_test_() ->
    [{Name, ?_assertEqual(Sentences, said(~"web2", Groups, Drained, Out))}
     || {Name, Groups, Drained, Out, Sentences} <- [
            {"others stay", #{a => [1, 2], b => [1, 2, 3]}, [], [], []},
            {"in no group", #{a => [1, 3]}, [], [], []},
            {"the only member", #{a => [2]}, [], [],
             ["web2 is the only member of the group a, which would be gone until it is undrained"]},
            {"the only gateway", #{a => [1, 2], b => [2, 3], c => [3, 4]}, [], [],
             ["web2 is the only node that is in both a and b, which would be apart until it is "
              "undrained"]},
            {"the last member", #{a => [1, 2, 3]}, [1, 3], [],
             ["web2 is the only member of the group a that is not drained, which would be gone "
              "until it is undrained; undrain web1 or web3 first"]},
            {"the last gateway", #{a => [1, 2, 3], b => [1, 2, 4]}, [1], [],
             ["web2 is the only node that is in both a and b and is not drained, which would be "
              "apart until it is undrained; undrain web1 first"]},
            {"one is drained, and one is down", #{a => [1, 2, 3]}, [1], [3],
             ["web2 is the only member of the group a that is in service, which would be gone "
              "until it is undrained; bring web1 or web3 back first"]},
            {"the other gateway is down", #{a => [1, 2, 3], b => [1, 2, 4]}, [], [1],
             ["web2 is the only node in service that is in both a and b, which would be apart "
              "until it is undrained; bring web1 back first"]},
            {"it is down itself", #{a => [2], b => [1, 2]}, [], [2], []},
            {"it is drained already", #{a => [2]}, [2], [2], []}
        ]].

%% While the members of groups are unknown, all that are not drained count.
unknown_test() ->
    {Desired, Observed, Memory} = situation(#{a => [1, 2]}, []),
    Unknown = Observed#{groups := unknown, nodes := #{}},
    Of = fun(Drained) -> refusals(~"web2", {Desired, Unknown, drained(Drained, Memory)}) end,
    ?assertEqual([], Of([])),
    ?assertEqual([{~"web2", {last_member, ~"a", [~"web1"]}}], Of([1])).

%% An instance that an upgrade is about to stop does not count as a member that stays.
taken_by_an_upgrade_test() ->
    {Desired, Observed, Memory} = situation(#{a => [1, 2]}, []),
    #{instances := #{~"web1" := Web1} = Instances} = Desired,
    Next = Desired#{instances := Instances#{~"web1" := Web1#{release := ~"new"}}},
    Taken = Memory#{upgrades := #{~"web" => #{revision => 1, back => false, proven => #{},
                                              taken => #{~"web1" => waiting}}}},
    ?assertEqual([], refusals(~"web2", {Next, Observed, Memory})),
    ?assertEqual([{~"web2", {last_in_service, ~"a", [~"web1"]}}],
                 refusals(~"web2", {Next, Observed, Taken})).

%% Nor does one that is just leaving its groups, although it is to run as it does by now.
being_drained_test() ->
    {Desired, Observed, Memory} = situation(#{a => [1, 2]}, []),
    Begun = Memory#{begun := #{{drain, ~"web1"} => {~"new", ~"settings"}}},
    ?assertEqual([], refusals(~"web2", {Desired, Observed, Memory})),
    ?assertEqual([{~"web2", {last_in_service, ~"a", [~"web1"]}}],
                 refusals(~"web2", {Desired, Observed, Begun})).

%% `plan` refuses what the upgrade would refuse: one that was handed back runs on in its groups, and
%% is none of the members that could stay.
handed_back_test() ->
    {Desired, Observed, #{assigned := Assigned} = Memory} = situation(#{a => [1, 2]}, []),
    #{instances := #{~"web1" := Web1} = Instances} = Desired,
    Next = Desired#{instances := Instances#{~"web1" := Web1#{release := ~"new"}}},
    Of = #{host => map_get(~"web2", Assigned), node => ~"web2@h.x",
           as => ~"it", layout => {~"sum", ~"settings"}},
    Without = Memory#{assigned := maps:remove(~"web2", Assigned), released => #{~"web2" => Of}},
    ?assertEqual([], sderl_ops_plan:refusals(Next, Observed, Memory, 0)),
    Refused = [{~"web1", {only_member, ~"a"}}],
    ?assertEqual(Refused, sderl_ops_plan:refusals(Next, Observed, Without, 0)),
    ?assertMatch(#{refused := Refused}, sderl_ops_plan:plan(Next, Observed, Without, 0)).

%% Whatever is drained, one after the other, each group keeps a member and each edge a gateway.
%% Two groups with nobody in common are no edge.
any_drains_test_() ->
    {timeout, 60, fun() ->
        lists:foldl(fun(_, Dice0) ->
            {Groups, Dice1} = random_groups(Dice0),
            {Order, Dice2} = shuffled(lists:seq(1, 5), Dice1),
            Situation = situation(Groups, []),
            Left = lists:foldl(fun(N, In) ->
                {Desired, Observed, Memory} = Situation,
                Drained = lists:seq(1, 5) -- In,
                Seen = Observed#{groups := in_groups(Groups, Drained)},
                case refusals(id(N), {Desired, Seen, drained(Drained, Memory)}) of
                    [] -> lists:delete(N, In);
                    [_ | _] -> In
                end
            end, lists:seq(1, 5), Order),
            ?assertEqual({Groups, Order, []},
                         {Groups, Order, [Lost || {_, Of} = Lost <- together(Groups),
                                                  Of -- (Of -- Left) =:= []]}),
            %% Nor is more refused than has to be.
            ?assertEqual({Groups, Order, []},
                         {Groups, Order, [N || N <- Left,
                                               not lists:any(fun({_, Of}) ->
                                                   Of -- (Of -- Left) =:= [N]
                                               end, together(Groups))]}),
            Dice2
        end, rand:seed_s(exsss, 17), lists:seq(1, 300))
    end}.

together(Groups) ->
    maps:to_list(Groups)
        ++ [{{A, B}, Both} || A := InA <- Groups, B := InB <- Groups, A < B,
                              [_ | _] = Both <- [InA -- (InA -- InB)]].

random_groups(Dice0) ->
    lists:foldl(fun(Name, {Groups, D0}) ->
        {Members, D} = lists:mapfoldl(fun(N, D1) ->
            {Side, D2} = rand:uniform_s(2, D1),
            {{Side, N}, D2}
        end, D0, lists:seq(1, 5)),
        case [N || {1, N} <- Members] of
            [] -> {Groups, D};
            In -> {Groups#{Name => In}, D}
        end
    end, {#{}, Dice0}, [a, b, c]).

shuffled(List, Dice0) ->
    {Numbered, Dice} = lists:mapfoldl(fun(Item, D) ->
        {Number, Next} = rand:uniform_s(D),
        {{Number, Item}, Next}
    end, Dice0, List),
    {[Item || {_, Item} <- lists:sort(Numbered)], Dice}.

%% ---------------------------------------------------------------- situations

said(Id, Groups, Drained, Out) ->
    {Desired, Observed, Memory} = situation(Groups, Out ++ Drained),
    [unicode:characters_to_list(sderl_ops_refusal:words(drain, Refusal))
     || Refusal <- refusals(Id, {Desired, Observed, drained(Drained, Memory)})].

refusals(Id, {Desired, Observed, Memory}) ->
    sderl_ops_plan:refusals_of_drain(Id, Desired, Observed, Memory).

situation(Groups, Out) ->
    Desired = (sderl_ops_cases:desired(5, ~"sum", []))#{
        groups := [#{name => atom_to_binary(Name), members => ids(Ns), consistency => available}
                   || Name := Ns <- maps:iterator(Groups, ordered)]
    },
    {Observed, Memory} = sderl_ops_cases:running(Desired),
    {Desired, Observed#{groups := in_groups(Groups, Out)}, Memory}.

in_groups(Groups, Out) -> #{atom_to_binary(Name) => ids(Ns -- Out) || Name := Ns <- Groups}.

drained(Ns, Memory) -> lists:foldl(fun sderl_ops_memory:set_aside/2, Memory, ids(Ns)).

ids(Ns) -> [id(N) || N <- Ns].

id(N) -> lists:nth(N, ?IDS).
