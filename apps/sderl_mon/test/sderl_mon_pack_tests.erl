%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_pack_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        sderl_prop:eunit("a term comes back", 300, fun() ->
            ?FORALL(Term, sderl_mon_gen:term(),
                    sderl_mon_pack:unpack(sderl_mon_pack:pack(Term)) =:= {ok, Term})
        end),
        sderl_prop:eunit("a frame comes back", 200, fun() ->
            ?FORALL(Frames, sderl_mon_gen:frames(), lists:all(fun back/1, Frames))
        end),
        sderl_prop:eunit("a part of a frame is that part", 200, fun() ->
            ?FORALL({Frames, Ids},
                    {sderl_mon_gen:frames(), list(elements([~"a@h", ~"b@h", ~"none"]))},
                    lists:all(fun(F) -> part(Ids, F) end, Frames))
        end),
        sderl_prop:eunit("whatever is read, it is a term or an error", 500, fun() ->
            ?FORALL({Bytes, Flipped}, {binary(), flipped()},
                    lists:all(fun answered/1, [Bytes, zlib:compress(Bytes), Flipped]))
        end)
    ].

%% A metric may be there as an integer in one node and as a float in another: its column is of
%% floats.
back(#{links := Links} = Frame) ->
    Packed = sderl_mon_pack:pack_frame(Frame),
    {ok, Back} = sderl_mon_pack:unpack_frame(Packed),
    {ok, Total} = sderl_mon_pack:total(Packed),
    Frame == Back
    andalso Total == maps:fold(fun(_Link, {M, B}, {Ms, Bs}) -> {Ms + M, Bs + B} end, {0, 0}, Links).

part(Ids, #{nodes := Nodes, groups := Groups, links := Links} = Frame) ->
    Pairs = [{A, B} || A <- Ids, B <- Ids],
    Packed = sderl_mon_pack:pack_frame(Frame),
    {ok, Part} = sderl_mon_pack:unpack_frame(Packed, #{nodes => Ids, groups => [], links => Pairs}),
    Frame#{nodes := maps:with(Ids, Nodes), groups := #{}, links := maps:with(Pairs, Links)} ==
    Part andalso
        sderl_mon_pack:unpack_frame(Packed, #{nodes => [], groups => Ids, links => []}) ==
        {ok, Frame#{nodes := #{}, groups := maps:with(Ids, Groups), links := #{}}}.

flipped() ->
    ?LET(
        {Term, At, Bit, Frames},
        {sderl_mon_gen:term(), non_neg_integer(), range(0, 7), non_empty(sderl_mon_gen:frames())},
        begin
            Packed = element(1 + At rem 2,
                             {sderl_mon_pack:pack(Term), sderl_mon_pack:pack_frame(hd(Frames))}),
            flip(Packed, At rem byte_size(Packed), Bit)
        end
    ).

flip(Bytes, At, Bit) ->
    <<Before:At/binary, Byte, After/binary>> = Bytes,
    <<Before/binary, (Byte bxor (1 bsl Bit)), After/binary>>.

answered(Bytes) ->
    lists:all(
        fun
            ({ok, _}) -> true;
            ({error, corrupt}) -> true
        end,
        [sderl_mon_pack:unpack(Bytes), sderl_mon_pack:unpack_frame(Bytes)]
    ).

what_frames_had_later_is_read_and_may_lack_test() ->
    Frame = sderl_mon_gen:frame(1000, #{}),
    Routed = Frame#{routed => #{{~"g", ~"h"} => 2.5}},
    ?assertEqual([{ok, Frame}, {ok, Routed}],
                 [sderl_mon_pack:unpack_frame(sderl_mon_pack:pack_frame(F))
                  || F <- [Frame, Routed]]).

what_is_no_data_becomes_text_test() ->
    {ok, {Pid, Fun, [_]}} =
        sderl_mon_pack:unpack(sderl_mon_pack:pack({self(), fun erlang:self/0, [make_ref()]})),
    ?assertEqual(list_to_binary(pid_to_list(self())), Pid),
    ?assertEqual(~"fun erlang:self/0", Fun),
    {ok, Improper} = sderl_mon_pack:unpack(sderl_mon_pack:pack([a | b])),
    ?assertEqual(~"[a|b]", Improper).

%% The bytes of an atom that does not exist, put in place of one that does.
no_atom_is_made_test() ->
    Unknown = ~"sderl_no_such_atom_" ,
    Text = <<Unknown/binary, (integer_to_binary(erlang:unique_integer([positive])))/binary>>,
    Packed = zlib:compress([$a, byte_size(Text), Text]),
    ?assertEqual({ok, Text}, sderl_mon_pack:unpack(Packed)),
    ?assertError(badarg, binary_to_existing_atom(Text)).

a_bomb_does_not_go_off_test_() -> {timeout, 60, fun a_bomb_does_not_go_off/0}.

a_bomb_does_not_go_off() ->
    Bomb = zlib:compress(binary:copy(<<0>>, 20_000_000)),
    ?assertEqual({error, corrupt}, sderl_mon_pack:unpack(Bomb)),
    %% A list that claims to have more elements than there are bytes, and one that is too deep.
    ?assertEqual({error, corrupt},
                 sderl_mon_pack:unpack(zlib:compress([$l, 255, 255, 255, 255, 15]))),
    ?assertEqual({error, corrupt},
                 sderl_mon_pack:unpack(zlib:compress(lists:duplicate(1000, [$l, 1])))).
