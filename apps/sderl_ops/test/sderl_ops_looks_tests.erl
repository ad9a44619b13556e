%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_looks_tests).
-moduledoc """
When what is looked at, and when what a step did has been seen. Times of the virtual machine are
below 0 as a rule.
""".

-include_lib("eunit/include/eunit.hrl").

-define(HOST, {host, ~"here/h1"}).
-define(OTHER, {host, ~"here/h2"}).
-define(START, {start, ~"web1"}).

what_a_step_changes_test_() ->
    Memory = (sderl_ops_memory:new())#{assigned := #{~"web1" => ~"here/h1"}},
    [
        ?_assertEqual(Whats, lists:sort(sderl_ops_look:after_step(Step, Memory)))
     || {Whats, Step} <- [
            {[nodes, ?HOST], ?START},
            {[?HOST], {lay_out, ~"web1"}},
            {[?OTHER], {remove, ~"here/h2", ~"web1"}},
            {[nodes], groups}
        ]
    ].

is_seen_test_() ->
    [
        {Name, ?_assertEqual(Left, sderl_ops_looks:unseen(lists:foldl(fun look/2, Ended, Looks)))}
     || Ended <- [sderl_ops_looks:step_ended(?START, [nodes, ?HOST], -500, sderl_ops_looks:new())],
        {Name, Left, Looks} <- [
            {"nobody has looked", [?START], []},
            {"only at the host", [?START], [{?HOST, -400, true}]},
            {"a look that began before the end", [?START],
             [{?HOST, -400, true}, {nodes, -600, true}]},
            {"a look that saw nothing", [?START], [{?HOST, -400, true}, {nodes, -400, false}]},
            {"both, after it", [], [{?HOST, -400, true}, {nodes, -499, true}]},
            {"another host", [?START], [{?OTHER, -400, true}, {nodes, -400, true}]}
        ]
    ].

nothing_to_see_test() ->
    Looks = sderl_ops_looks:step_ended({lay_out, ~"web1"}, [], -500, sderl_ops_looks:new()),
    ?assertEqual([], sderl_ops_looks:unseen(Looks)).

%% Looks that are under way are dropped, and everything is looked at again.
forgotten_test() ->
    Ref = make_ref(),
    Other = make_ref(),
    Went = sderl_ops_looks:began(Ref, ?HOST, -500, sderl_ops_looks:new()),
    Both = sderl_ops_looks:began(Other, ?OTHER, -500, Went),
    ?assertEqual([], sderl_ops_looks:due([?HOST, ?OTHER], -400, Both)),
    Left = sderl_ops_looks:forget(?HOST, Both),
    ?assertEqual(error, sderl_ops_looks:what(Ref, Left)),
    ?assertMatch({ok, ?OTHER, _}, sderl_ops_looks:what(Other, Left)),
    ?assertEqual([?HOST], sderl_ops_looks:due([?HOST, ?OTHER], -400, Left)),
    Seen = (sderl_ops_observed:new())#{providers => #{
        ~"cloud" => #{state => up, hosts => #{~"eu-1" => #{}, ~"eu-2" => #{}}},
        ~"other" => #{state => failing, why => ~"no"}
    }},
    #{providers := #{~"cloud" := #{hosts := Hosts}}} =
        sderl_ops_observed:forget_host(~"cloud/eu-1", Seen),
    ?assertEqual([~"eu-2"], maps:keys(Hosts)),
    ?assertEqual(Seen, sderl_ops_observed:forget_host(~"other/h1", Seen)).

due_test() ->
    Watched = [nodes, ?HOST, ?OTHER],
    New = sderl_ops_looks:new(),
    ?assertEqual(lists:sort(Watched), lists:sort(sderl_ops_looks:due(Watched, -9_000_000, New))),
    Looked = lists:foldl(fun look/2, New, [{?OTHER, -8_900_000, true}, {?HOST, -8_800_000, true},
                                           {nodes, -8_700_000, true}]),
    ?assertEqual([], sderl_ops_looks:due(Watched, -8_000_000, Looked)),
    %% The one that waits longest is first.
    ?assertEqual([?OTHER, ?HOST], sderl_ops_looks:due(Watched, -6_799_999, Looked)).

%% Only the targets of the step, whether they are watched or not.
due_after_a_step_test() ->
    Looked = lists:foldl(fun look/2, sderl_ops_looks:new(),
                         [{What, -900, true} || What <- [nodes, ?HOST, ?OTHER]]),
    Ended = sderl_ops_looks:step_ended({lay_out, ~"web1"}, [?HOST], -800, Looked),
    ?assertEqual([?HOST], sderl_ops_looks:due([nodes, ?OTHER], -700, Ended)),
    %% One look at a time, and another one where that began too early.
    Ref = make_ref(),
    Busy = sderl_ops_looks:began(Ref, ?HOST, -850, Ended),
    ?assertEqual([], sderl_ops_looks:due([nodes, ?OTHER], -700, Busy)),
    Again = sderl_ops_looks:ended(Ref, true, -800, Busy),
    ?assertEqual([?HOST], sderl_ops_looks:due([nodes, ?OTHER], -700, Again)),
    ?assertEqual([], sderl_ops_looks:due([nodes, ?OTHER], -700, look({?HOST, -750, true}, Again))).

%% The result of a look that began before the revision is dropped.
again_test() ->
    Ref = make_ref(),
    Busy = sderl_ops_looks:began(Ref, ?HOST, -900, sderl_ops_looks:new()),
    ?assertEqual({ok, ?HOST, -900}, sderl_ops_looks:what(Ref, Busy)),
    Again = sderl_ops_looks:again(Busy),
    ?assertEqual(error, sderl_ops_looks:what(Ref, Again)),
    ?assertEqual([?HOST], sderl_ops_looks:due([?HOST], -800, Again)).

not_too_many_test() ->
    Hosts = [{host, integer_to_binary(N)} || N <- lists:seq(1, 100)],
    Due = sderl_ops_looks:due(Hosts, -500, sderl_ops_looks:new()),
    ?assertEqual(16, length(Due)),
    Busy = lists:foldl(fun(What, Looks) ->
        sderl_ops_looks:began(make_ref(), What, -500, Looks)
    end, sderl_ops_looks:new(), Due),
    ?assertEqual([], sderl_ops_looks:due(Hosts, -400, Busy)).

%% A host that the file no longer has is forgotten when nothing is left there, or it does not
%% answer.
forgotten_hosts_test() ->
    Up = #{state => up, releases => [], instances => #{}},
    Down = Up#{state := unreachable},
    Memory = (sderl_ops_memory:new())#{assigned := #{~"web1" => ~"used"},
                                       unreachable := #{~"wanted" => 1, ~"late" => 700_000,
                                                        ~"dead" => 1, ~"used" => 1}},
    Observed = (sderl_ops_observed:new())#{hosts := #{
        ~"wanted" => Down,
        ~"empty" => Up#{releases := [~"bb"]}, ~"full" => Up#{releases := [~"aa"]},
        ~"left" => Up#{instances := #{~"web9" => #{}}}, ~"late" => Down, ~"dead" => Down,
        ~"gone" => Up#{state := gone}, ~"used" => Down
    }},
    #{hosts := Left} = sderl_ops_look:forget_hosts(
        #{hosts => #{~"wanted" => #{}}, releases => #{~"bb" => #{}}}, Memory, 900_000, Observed),
    ?assertEqual([~"full", ~"late", ~"left", ~"used", ~"wanted"], lists:sort(maps:keys(Left))).

look({What, Began, HasSeen}, Looks) ->
    Ref = make_ref(),
    sderl_ops_looks:ended(Ref, HasSeen, Began, sderl_ops_looks:began(Ref, What, Began, Looks)).
