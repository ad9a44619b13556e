%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_share_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MATE, 'm@h').

%% One owner, one mate. Whatever changes, gets lost and dies, the mate never holds an attribute that
%% it may not see, never takes a value for younger than it is, and after two frames that arrive (the
%% first may only make it ask) it holds what the owner has.
mate_property_test_() ->
    sderl_prop:eunit("a mate holds what the owner has", 2000, fun prop_mate/0).

prop_mate() ->
    ?FORALL(Steps, resize(80, list(step())),
            begin
                W = lists:foldl(fun(Step, W0) -> sound(step(Step, W0)) end, world(), Steps),
                Told = share(arrives, share(arrives, W)),
                ?WHENFAIL(io:format("~p~n", [Told]),
                          same(held(Told), owned(Told), lists:member({share, dropped}, Steps)))
            end).

step() ->
    frequency([
        {6, {set, name(), value(), oneof([static, 5, 100])}},
        {2, {delete, name()}},
        {4, {compute, name()}},
        {4, {pass, range(1, 50)}},
        {6, {share, oneof([arrives, arrives, arrives, lost, dropped])}},
        {1, {mate_dies, x}},
        {1, {owner_dies, x}},
        {2, {groups, sublist([g, h])}}
    ]).

sublist(List) ->
    ?LET(Keep, vector(length(List), boolean()), [E || {E, true} <- lists:zip(List, Keep)]).

name() -> oneof([a, b, {label, a}, {in, g, a}, {in, h, a}, {in, no_such, a}]).
value() -> oneof([1, 1.0, 2, x]).

world() ->
    #{now => 0, life => 1, share => sderl_attr_share:new(1), own => #{}, groups => [g], rows => #{},
      seen => none}.

step({set, Name, Value, Kind}, #{now := Now, share := S0, own := Own} = W) ->
    {V, S} = sderl_attr_share:step(S0),
    W#{share := S,
       own := Own#{Name => {Value, ok, case Kind of static -> now; _ -> Now end, Kind, V}}};
step({delete, Name}, #{own := Own, share := S} = W) when is_map_key(Name, Own) ->
    W#{own := maps:remove(Name, Own), share := sderl_attr_share:removed(S)};
step({compute, Name}, #{own := Own, now := Now} = W) ->
    case Own of
        #{Name := {Value, Why, At, Kind, V}} when is_integer(At) ->
            W#{own := Own#{Name := {Value, Why, Now, Kind, V}}};
        #{} -> W
    end;
step({pass, Ms}, #{now := Now} = W) -> W#{now := Now + Ms};
step({share, How}, W) -> share(How, W);
step({mate_dies, _}, W) -> W#{seen := none};
step({owner_dies, _}, #{life := Life, own := Own} = W) ->
    {S, Again} = lists:mapfoldl(fun({Name, {Value, Why, At, Kind, _}}, S0) ->
        {V, S1} = sderl_attr_share:step(S0),
        {{Name, {Value, Why, At, Kind, V}}, S1}
    end, sderl_attr_share:new(Life + 1), maps:to_list(Own)),
    W#{life := Life + 1, share := Again, own := maps:from_list(S)};
%% A mate that shares no group any more drops all, as the server does. Otherwise the owner's next
%% frame has what it may see now.
step({groups, []}, W) -> W#{groups := [], rows := #{}, seen := none};
step({groups, Groups}, W) -> W#{groups := Groups};
step(_, W) -> W.

share(How, #{now := Now, share := S0, own := Own, groups := Groups} = W) ->
    Mates = #{?MATE => Groups || Groups =/= []},
    {Frames, S} = sderl_attr_share:frames(
        all, Mates, [{N, Value, Why, At, Kind, V} || N := {Value, Why, At, Kind, V} <- Own], Now, S0
    ),
    case {Frames, How} of
        {[], _} -> W#{share := S};
        {[{[?MATE], Body}], arrives} -> told(Body, W#{share := S});
        %% Frames get lost with the mate's server, or with the link, of which both hear.
        {_, lost} -> W#{share := S, seen := none};
        %% And when the mate does not know yet that it is one.
        {_, dropped} -> W#{share := S}
    end.

told(Body, #{now := Now, share := S, rows := Rows, seen := Seen} = W) ->
    Put = fun(Entries, Into) ->
        maps:merge(Into, #{N => {Value, Why, Now - Age} || {N, Value, Why, Age, _, _} <- Entries})
    end,
    case sderl_attr_share:decide(Body, Seen) of
        ask -> W#{share := sderl_attr_share:forget(?MATE, S)};
        {replace, Entries, Has} -> seen(W#{rows := Put(Entries, #{}), seen := Has});
        {change, Entries, Static, Aged, Has} ->
            Older = maps:map(fun(N, {Value, Why, At}) ->
                case {lists:member(N, Static), lists:keyfind(N, 1, Aged)} of
                    {true, _} -> {Value, Why, Now};
                    {_, {_, Age}} -> {Value, Why, Now - Age};
                    _ -> {Value, Why, At}
                end
            end, Rows),
            seen(W#{rows := Put(Entries, Older), seen := Has})
    end.

%% No value is ever of the future, and after each frame there is none that the mate may not see.
sound(#{now := Now, rows := Rows} = W) ->
    [?assert(At =< Now) || _ := {_, _, At} <- Rows],
    W.

seen(#{rows := Rows, groups := Groups} = W) ->
    [?assert(sderl_attr_share:visible(N, Groups)) || N := _ <- Rows],
    W.

%% A mate that missed that a value was computed again takes it for older than it is.
same(Held, Owned, false) -> Held =:= Owned;
same(Held, Owned, true) ->
    maps:keys(Held) =:= maps:keys(Owned)
        andalso lists:all(fun({{V, W, At}, {V, W, Then}}) -> At =< Then; (_) -> false end,
                          lists:zip(maps:values(Held), maps:values(Owned))).

held(#{rows := Rows}) -> Rows.

owned(#{groups := []}) -> #{};
owned(#{own := Own, groups := Groups, now := Now}) ->
    #{N => {Value, Why, case At of now -> Now; _ -> At end}
      || N := {Value, Why, At, _, _} <- Own, sderl_attr_share:visible(N, Groups)}.

%% Unchanged values are not sent again, and a mate that has everything gets a frame of a few bytes.
unchanged_is_small_test() ->
    Entries = [{{n, N}, lists:duplicate(20, N), ok, now, static, N} || N <- lists:seq(1, 50)],
    S0 = lists:foldl(fun(_, S) -> element(2, sderl_attr_share:step(S)) end,
                     sderl_attr_share:new(life), Entries),
    {[{_, {full, {life, _}, 50, All}}], S1} =
        sderl_attr_share:frames(all, #{?MATE => [g]}, Entries, 0, S0),
    ?assertEqual(50, length(All)),
    {[{_, {delta, {life, _}, 50, 50, [], []} = Still}], S2} =
        sderl_attr_share:frames(all, #{?MATE => [g]}, Entries, 1, S1),
    ?assert(erlang:external_size(Still) < 60),
    %% Mates that have had the same get the same frame, a new one all.
    Mates = #{?MATE => [g], 'n@h' => [g], 'o@h' => [h]},
    {Frames, _} = sderl_attr_share:frames(all, Mates, Entries, 2, S2),
    ?assertMatch([{['n@h'], {full, _, _, _}}, {[?MATE], {delta, _, _, _, _, _}},
                  {['o@h'], {full, _, _, _}}], lists:sort(fun by_groups/2, Frames)).

%% Between two periods a mate that has everything is sent nothing; but it is sent a change, a
%% removal, and the attributes of a group that is shared now.
news_alone_test() ->
    Entries = [{name, value, ok, now, static, 1}],
    News = fun(Mates, S) -> sderl_attr_share:frames(news, Mates, Entries, 5, S) end,
    {_, S0} = sderl_attr_share:step(sderl_attr_share:new(life)),
    {[{[?MATE], {full, _, 1, _}}], S1} = News(#{?MATE => [g]}, S0),
    {[], S2} = News(#{?MATE => [g]}, S1),
    {[{['n@h'], {full, _, 1, _}}], S3} = News(#{?MATE => [g], 'n@h' => [g]}, S2),
    {[{[?MATE], {full, _, 1, _}}], _} = News(#{?MATE => [g, h], 'n@h' => [g]}, S3),
    {_, S4} = sderl_attr_share:step(S3),
    {[{[?MATE, 'n@h'], {delta, _, 1, 2, _, _}}], S5} = News(#{?MATE => [g], 'n@h' => [g]}, S4),
    {[{[?MATE, 'n@h'], {full, _, 3, _}}], S6} =
        News(#{?MATE => [g], 'n@h' => [g]}, sderl_attr_share:removed(S5)),
    {[], S7} = News(#{?MATE => [g], 'n@h' => [g]}, S6),
    %% One that is forgotten, or no mate for a moment, is told all.
    {[{['n@h'], {full, _, 3, _}}], _} =
        News(#{?MATE => [g], 'n@h' => [g]}, sderl_attr_share:forget('n@h', S7)),
    {[], S8} = News(#{?MATE => [g]}, S7),
    {[{['n@h'], {full, _, 3, _}}], _} = News(#{?MATE => [g], 'n@h' => [g]}, S8).

by_groups({_, A}, {_, B}) when element(1, A) =/= element(1, B) -> true;
by_groups({A, _}, {B, _}) -> A =< B.

%% A frame never looks younger than it is: the delay is the time there and back, less the time that
%% the echo was held.
delay_test_() ->
    [?_assertEqual(0, sderl_attr_share:delay({5, none, 0}, 1000)),
     ?_assertEqual(2, sderl_attr_share:delay({77, 900, 98}, 1000)),
     ?_assertEqual(9000, sderl_attr_share:delay({77, 900, 100}, 10_000)),
     ?_assertEqual(0, sderl_attr_share:delay({77, 2000, 0}, 1000))].

delay_property_test_() ->
    sderl_prop:eunit("no frame was under way for longer than its stamp tells", 200, fun() ->
        ?FORALL({There, Held, Back, Shift},
                {non_neg_integer(), non_neg_integer(), non_neg_integer(), integer()},
                begin
                    %% The mate's frame leaves at 0 of its clock; the owner's clock is shifted.
                    Sent = There + Held + Shift,
                    sderl_attr_share:delay({Sent, 0, Sent - (There + Shift)},
                                           There + Held + Back) >= Back
                end)
    end).
