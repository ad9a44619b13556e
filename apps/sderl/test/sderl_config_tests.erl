%% SPDX-License-Identifier: Apache-2.0
-module(sderl_config_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(HERE, 'a@h').

parse(Env) -> parse(Env, undefined).
parse(Env, Kernel) -> sderl_config:parse(Env, Kernel, ?HERE).

groups(Groups) -> parse([{s_groups, Groups}]).

error_at(Result) ->
    {error, {bad_config, Path, _Found, Expected} = Error} = Result,
    ?assert(is_sentence(sderl_config:format_error(Error))),
    {Path, Expected}.

is_sentence(Text) ->
    io_lib:printable_unicode_list(Text) andalso not lists:member($\n, Text)
        andalso length(Text) > 20.

nothing_configured_test() ->
    {ok, Config} = parse([]),
    ?assertEqual(
        #{
            groups => [],
            other_groups => [],
            warnings => [],
            cluster => <<>>,
            await => false,
            consistency => #{},
            answer => #{},
            majority_lost => ignore,
            forget_down_after => infinity,
            state_dir => none,
            free_islands => true,
            link_policy => report,
            link_idle_ms => 600_000,
            tick_ms => 1_000,
            set_aside_ms => 4_000,
            write_timeout_ms => 10_000,
            resolver => random_exit_name,
            resolver_timeout_ms => 5_000,
            attributes => [],
            labels => [],
            attribute_builtins => true,
            attribute_share_ms => 5_000,
            attribute_keep_ms => 5_000,
            attribute_timeout_ms => 1_000,
            route_beat_ms => 1_000,
            route_queue => 10_000,
            stand_in_idle_ms => 600_000,
            route_hops => 16,
            distances => none,
            follow => [],
            follow_names => 100_000,
            follow_max_age_ms => 10_000
        },
        Config
    ).

followed_groups_test() ->
    ?assertMatch({ok, #{follow := [g, "h"]}}, parse([{follow, [g, "h", g]}], undefined)),
    Bad = [
        {[{follow, g}],
         "bad configuration at sderl: follow: g is not a list of groups; write [Group, ...]"},
        {[{follow, [g, undefined]}],
         "bad configuration at sderl: follow[2]: undefined stands for the free nodes, which nobody "
         "can follow; "
         "take it out"}
    ],
    [
        begin
            {error, Error} = parse(Env, undefined),
            ?assertEqual(Sentence, sderl_config:format_error(Error))
        end
     || {Env, Sentence} <- Bad
    ].

own_and_other_groups_test() ->
    {ok, #{groups := Own, other_groups := Other, warnings := []}} = groups([
        {g1, normal, ['b@h', 'a@h']},
        {"g2", hidden, ['b@h']},
        {{g, 3}, normal, {seeds, ['c@h', 'b@h']}},
        {4, normal, ['a@h']}
    ]),
    ?assertEqual(
        [
            #{name => g1, type => normal, members => ['a@h', 'b@h']},
            #{name => {g, 3}, type => normal, members => {seeds, ['b@h', 'c@h']}},
            #{name => 4, type => normal, members => ['a@h']}
        ],
        Own
    ),
    ?assertEqual([#{name => "g2", type => hidden, members => ['b@h']}], Other).

not_distributed_test() ->
    {ok, #{groups := [], other_groups := [_], warnings := []}} =
        sderl_config:parse([{s_groups, [{g, normal, ['a@h']}]}], undefined, nonode@nohost).

%% A node without a name may be in a group, alone.
alone_without_a_name_test() ->
    Group = #{name => g, type => normal, members => [nonode@nohost]},
    Parse = fun(Node) ->
        sderl_config:parse([{s_groups, [{g, normal, [nonode@nohost]}]}], undefined, Node)
    end,
    ?assertMatch({ok, #{groups := [Group], other_groups := [], warnings := []}},
                 Parse(nonode@nohost)),
    ?assertMatch({ok, #{groups := [], other_groups := [Group]}}, Parse('a@h')).

published_place_test() ->
    G = {g, normal, ['b@h', 'a@h']},
    Same = {g, normal, ['a@h', 'b@h']},
    {ok, #{groups := [#{name := g}, #{name := k}]}} =
        parse([{s_groups, [G]}], [Same, {k, normal, ['a@h']}]),
    ?assertEqual(
        {[kernel, s_groups, 1], {same_as, [sderl, s_groups, 1]}},
        error_at(parse([{s_groups, [G]}], [{g, hidden, ['a@h', 'b@h']}]))
    ),
    ?assertEqual({[kernel, s_groups, 1], group}, error_at(parse([], [{g, ['a@h']}]))).

%% The names 1 and 1.0 are two groups.
exact_names_test() ->
    {ok, #{groups := [_, _]}} = groups([{1, normal, ['a@h']}, {1.0, normal, ['a@h', 'b@h']}]).

malformed_groups_test_() ->
    [
        {lists:flatten(io_lib:format("~0tp", [Groups])),
            ?_assertEqual({[sderl, s_groups | Path], Expected}, error_at(groups(Groups)))}
     || {Groups, Path, Expected} <- [
            {g, [], group_list},
            {[g | h], [], group_list},
            {[{g, ['a@h']}], [1], group},
            {[{g, normal, ['a@h'], more}], [1], group},
            {[{undefined, normal, ['a@h']}], [1, name], group_name},
            {[{g, visible, ['a@h']}], [1, type], group_type},
            {[{g, normal, []}], [1, nodes], some_node},
            {[{g, normal, {seeds, []}}], [1, seeds], some_node},
            {[{g, normal, 'a@h'}], [1, nodes], node_list},
            {[{g, normal, "a@h"}], [1, nodes], node_list},
            {[{g, normal, {seeds, "a@h"}}], [1, seeds], node_list},
            {[{g, normal, ['a@h' | 'b@h']}], [1, nodes], node_list},
            {[{g, normal, ['a@h']}, {h, normal, ['a@h', 'b@h', c]}], [2, nodes, 3], node_name},
            {[{g, normal, ['a@h', "b@h"]}], [1, nodes, 2], node_name},
            {[{g, normal, ['@h']}], [1, nodes, 1], node_name},
            {[{g, normal, ['a@']}], [1, nodes, 1], node_name},
            {[{g, normal, ['a@b@c']}], [1, nodes, 1], node_name},
            {[{g, normal, ['a@h', nonode@nohost]}], [1, nodes, 2], named_node},
            {[{g, normal, {seeds, [nonode@nohost]}}], [1, seeds, 1], named_node},
            {[{g, normal, {seeds, ['a@h', 7]}}], [1, seeds, 2], node_name},
            {[{g, normal, ['a@h']}, {g, normal, ['a@h']}], [2, name],
                {unique_name, [sderl, s_groups, 1]}}
        ]
    ].

malformed_options_test_() ->
    [
        {lists:flatten(io_lib:format("~0tp", [Option])),
            ?_assertEqual({[sderl | Path], Expected}, error_at(parse([Option])))}
     || {Option, Path, Expected} <- [
            {{cluster, blue}, [cluster], text},
            {{cluster, [a, b]}, [cluster], text},
            {{cluster, [a | b]}, [cluster], text},
            {{await, true}, [await], await},
            {{await, {g, 1}}, [await], await},
            {{await, {[g | h], 1}}, [await], await},
            {{await, {all, 0}}, [await, timeout], milliseconds_or_infinity},
            {{forget_down_after, -1}, [forget_down_after], forget_down_after},
            {{forget_down_after, #{g => 1.5}}, [forget_down_after, {key, g}],
                milliseconds_or_infinity},
            {{consistency, majority}, [consistency], consistencies},
            {{consistency, [{g, majority}]}, [consistency], consistencies},
            {{consistency, #{g => strong}}, [consistency, {key, g}], consistency},
            {{consistency, #{undefined => majority}}, [consistency, {key, undefined}],
                always_available},
            {{answer, applied}, [answer], answers},
            {{answer, #{g => at_once}}, [answer, {key, g}], answer},
            {{answer, #{undefined => applied}}, [answer, {key, undefined}], always_committed},
            {{majority_lost, tell}, [majority_lost], majority_lost},
            {{majority_lost, #{g => true}}, [majority_lost, {key, g}], told},
            {{state_dir, state}, [state_dir], folder},
            {{state_dir, ""}, [state_dir], folder},
            {{state_dir, ["state", <<255>>]}, [state_dir], folder},
            {{free_islands, yes}, [free_islands], boolean},
            {{link_policy, shut}, [link_policy], link_policy},
            {{link_idle_ms, 0}, [link_idle_ms], milliseconds},
            {{link_idle_ms, infinity}, [link_idle_ms], milliseconds},
            {{tick_ms, 1 bsl 32}, [tick_ms], milliseconds},
            {{route_beat_ms, 0}, [route_beat_ms], milliseconds},
            {{stand_in_idle_ms, 0}, [stand_in_idle_ms], milliseconds},
            {{route_queue, 0}, [route_queue], {count, 10_000_000}},
            {{route_hops, 1001}, [route_hops], {count, 1_000}},
            {{tick_ms, 2001}, [set_aside_ms], {at_least_two_ticks, 4002}},
            {{resolver, fun(_, A, _) -> A end}, [resolver], resolver},
            {stray, [1], option},
            {{"cluster", x}, [1], option}
        ]
    ].

environment_is_no_list_test() ->
    ?assertEqual({[sderl], option_list}, error_at(parse([{cluster, "c"} | x]))).

options_test() ->
    {ok, Config} = parse([
        {cluster, "blå"},
        {await, {[g], infinity}},
        {forget_down_after, #{g => 5}},
        {resolver, {m, f}},
        {included_applications, []}
    ]),
    ?assertMatch(
        #{cluster := <<"blå"/utf8>>, await := {[g], infinity}, resolver := {m, f}}, Config
    ),
    ?assertEqual(5, sderl_options:forget_down_after(g, Config)),
    ?assertEqual(infinity, sderl_options:forget_down_after(h, Config)),
    {ok, #{consistency := PerGroup}} = parse([{consistency, #{g => majority, h => available}}]),
    ?assertEqual(#{g => majority, h => available}, PerGroup),
    {ok, #{answer := Answers}} =
        parse([{answer, #{g => committed, h => applied}}, {consistency, #{g => majority}}]),
    ?assertEqual(#{g => committed, h => applied}, Answers),
    ?assertEqual({[sderl, answer, {key, g}], available_where_applied},
                 error_at(parse([{answer, #{g => applied}}, {consistency, #{g => majority}}]))),
    {ok, #{majority_lost := exit}} = parse([{majority_lost, exit}]),
    {ok, #{majority_lost := #{g := notify}}} = parse([{majority_lost, #{g => notify}}]),
    {ok, ForAll} = parse([{forget_down_after, 7}]),
    ?assertEqual(7, sderl_options:forget_down_after(g, ForAll)).

warnings_test() ->
    {ok, #{warnings := Warnings, groups := [], other_groups := [#{members := ['b@h']}]}} =
        parse([
            {sgroups, []},
            {await, {[g], 5}},
            {write_timeout_ms, 4000},
            {s_groups, [{g, normal, ['b@h', 'b@h', 'b@h']}]}
        ]),
    ?assertEqual(
        [
            {unknown_option, [sderl, sgroups]},
            {duplicate_node, [sderl, s_groups, 1, nodes], 'b@h'},
            {not_in_any_group, 'a@h'},
            {await_not_own, g},
            {short_write_timeout, 4000, 4000}
        ],
        Warnings
    ),
    ?assert(lists:all(fun(W) -> is_sentence(sderl_config:format_warning(W)) end, Warnings)).

sentence_test() ->
    {error, Error} = groups([{g, normal, ['a@h']}, {h, normal, ['a@h', "b@h"]}]),
    ?assertEqual(
        "bad configuration at sderl: s_groups[2].nodes[2]: \"b@h\" is not a node name; "
        "write an atom with a host, such as 'name@host'",
        sderl_config:format_error(Error)
    ).

%% These bytes are on the wire between releases of this library and of OTP.
uid_stays_test() ->
    ?assertEqual(<<"42C657">>, binary:part(binary:encode_hex(sderl_hello:uid(g, <<>>)), 0, 6)),
    ?assertEqual(
        <<"D7DF8F">>, binary:part(binary:encode_hex(sderl_hello:uid({g, "x", 1}, <<"c">>)), 0, 6)
    ).

properties_test_() ->
    [
        sderl_prop:eunit("config: valid is accepted", 300, fun prop_valid/0),
        sderl_prop:eunit("config: anything gets an answer", 500, fun prop_total/0),
        sderl_prop:eunit("config: uid tells names and clusters apart", 300, fun prop_uid/0)
    ].

prop_valid() ->
    ?FORALL(
        {Named, Kernel},
        {list(group()), list(group())},
        begin
            N = uniq(Named),
            Names = #{Name => [] || {Name, _, _} <- N},
            K = [G || {Name, _, _} = G <- uniq(Kernel), not is_map_key(Name, Names)],
            {ok, #{groups := Own, other_groups := Other}} = parse([{s_groups, N}], K),
            #{Name => [] || {Name, _, _} <- N ++ K} =:=
                #{Name => [] || #{name := Name} <- Own ++ Other} andalso
            lists:all(fun(#{members := M}) -> element(1, takes_part(M)) end, Own) andalso
            lists:all(fun(#{members := M}) -> takes_part(M) =:= {false, true} end, Other) andalso
            lists:all(fun(#{members := M}) -> element(2, takes_part(M)) end, Own)
        end
    ).

takes_part({seeds, Nodes}) -> {true, Nodes =:= lists:usort(Nodes)};
takes_part(Nodes) -> {lists:member(?HERE, Nodes), Nodes =:= lists:usort(Nodes)}.

uniq(Groups) -> lists:uniq(fun({Name, _, _}) -> Name end, Groups).

prop_total() ->
    ?FORALL(
        {Env, Kernel},
        {env(), oneof([undefined, [], list(broken(group()))])},
        case parse(Env, Kernel) of
            {ok, #{warnings := Warnings}} ->
                lists:all(fun(W) -> is_sentence(sderl_config:format_warning(W)) end, Warnings);
            {error, {bad_config, [App | _], _, _} = Error} ->
                lists:member(App, [sderl, kernel]) andalso
                    is_sentence(sderl_config:format_error(Error))
        end
    ).

prop_uid() ->
    ?FORALL(
        {A, B, C, D},
        {name(), name(), binary(), binary()},
        (sderl_hello:uid(A, C) =:= sderl_hello:uid(B, D)) =:= ({A, C} =:= {B, D})
    ).

env() ->
    broken(list(broken({option_name(), broken(option_value())}))).

option_name() ->
    oneof([
        s_groups, cluster, await, consistency, answer, majority_lost, forget_down_after, state_dir,
        free_islands, link_policy, link_idle_ms, tick_ms, set_aside_ms, write_timeout_ms, resolver,
        resolver_timeout_ms, route_beat_ms, route_queue, stand_in_idle_ms, route_hops, follow,
        follow_names, follow_max_age_ms, other
    ]).

option_value() ->
    oneof([
        list(broken(group())), string(), true, report, integer(), {all, integer()},
        #{name() => integer()}, {list(name()), integer()}, random_exit_name,
        #{name() => oneof([majority, available, applied, notify, ignore])}
    ]).

group() -> {name(), oneof([normal, hidden]), oneof([node_list(), {seeds, node_list()}])}.

node_list() -> non_empty(list(node_name())).

node_name() -> oneof(['a@h', 'b@h', 'c@h', 'd@h.example']).

name() ->
    ?SUCHTHAT(
        Name,
        oneof([g, h, i, 1, 1.0, "g", {g, integer()}, binary()]),
        Name =/= undefined
    ).

%% Mostly the type's value, at times something else in its place or an improper tail.
broken(Type) -> frequency([{12, Type}, {1, any()}, {1, [Type | any()]}]).
