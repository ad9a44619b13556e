%% SPDX-License-Identifier: Apache-2.0
%% Terms in external format, compared with what the virtual machine makes of them.
-module(sderl_prof_etf_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

size_test_() ->
    [
        sderl_prop:eunit("the size of a term", 300, fun prop_size/0),
        sderl_prop:eunit("the size of what is cut off", 300, fun prop_cut/0),
        sderl_prop:eunit("anything has a size or none", 300, fun prop_any/0)
    ].

prop_size() ->
    ?FORALL({Term, Rest}, {strange(), binary()}, begin
        <<131, Bin/binary>> = term_to_binary(Term),
        sderl_prof_etf:size(<<Bin/binary, Rest/binary>>) =:= byte_size(Bin)
    end).

prop_cut() ->
    ?FORALL({Term, Part}, {strange(), float(0.0, 0.999)}, begin
        <<131, Bin/binary>> = term_to_binary(Term),
        Cut = binary:part(Bin, 0, trunc(Part * byte_size(Bin))),
        sderl_prof_etf:size(Cut) =:= error
    end).

prop_any() ->
    ?FORALL(Bin, binary(), begin
        _ = sderl_prof_etf:text(Bin),
        _ = sderl_prof_etf:entry(Bin),
        case sderl_prof_etf:size(Bin) of
            error -> true;
            Size -> Size =< byte_size(Bin)
        end
    end).

%% All kinds of terms that a message can have.
strange() ->
    ?LET(Terms, list(any()), [
        Terms, list_to_tuple(Terms), #{t => Terms}, self(), make_ref(), alias(), hd(erlang:ports()),
        fun lists:map/2, fun() -> Terms end, 1 bsl 3000, -(1 bsl 70), 1.5, <<5:3>>, "text",
        [improper | tail], 'an atom', list_to_tuple(lists:seq(1, 300))
    ]).

integer_test_() ->
    [?_assertEqual(N, sderl_prof_etf:integer(tl_binary(N)))
     || N <- [0, 255, 256, -1, 1 bsl 31, -(1 bsl 31), 1 bsl 62, -(1 bsl 62)]].

text_test_() ->
    [?_assertEqual(Text, sderl_prof_etf:text(tl_binary(Term)))
     || {Text, Term} <- [{~"lists:map/2", {lists, map, 2}}, {~"name", name},
                         {~"a at b@c", {a, 'b@c'}}, {~"unknown", 0},
                         {~"badmatch", {badmatch, 1, 2, 3}}]].

entry_test_() ->
    Me = self(),
    [?_assertEqual(Text, sderl_prof_etf:entry(tl_binary(Mfa)))
     || {Text, Mfa} <- [
            {~"m:f/2", {m, f, [1, 2]}},
            {~"m:f/0", {m, f, []}},
            {~"m:f/2", {m, f, [a, b]}},
            {~"lists:map/2", {erlang, apply, [fun lists:map/2, [a]]}},
            {~"srv:init/1", {proc_lib, init_p, [Me, [], gen, init_it,
                                                [gen_server, Me, Me, srv, [], []]]}},
            {~"srv:init/1", {proc_lib, init_p, [Me, [], gen, init_it,
                                                [gen_server, Me, Me, {local, n}, srv, [], []]]}},
            {~"m:f/1", {proc_lib, init_p, [Me, [], m, f, [a]]}}
        ]].

fun_entry_test() ->
    ?assertMatch(<<"sderl_prof_etf_tests:fun-", _/binary>>,
                 sderl_prof_etf:entry(tl_binary({erlang, apply, [fun() -> ok end, []]}))).

tl_binary(Term) ->
    <<131, Bin/binary>> = term_to_binary(Term),
    Bin.

peer_test() ->
    [?assertEqual({Text, Peer}, {Text, sderl_prof_etf:peer(Text)}) || {Text, Peer} <- [
        {~"<12.3> at a@b", {{12, 3}, ~"a@b"}},
        {~"a name at a@b", {~"a name", ~"a@b"}},
        {~"one at two at a@b", {~"one at two", ~"a@b"}},
        {~"<x.y> at a@b", {~"<x.y>", ~"a@b"}},
        {~"#Port<1> at a@b", {~"#Port<1>", ~"a@b"}},
        {~"alone", none}
    ]].
