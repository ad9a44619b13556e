%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_settle_tests).
-moduledoc """
Many clashes that are decided in one batch and settled in another: what the batches say of each, and
how long that takes.
""".
-include_lib("eunit/include/eunit.hrl").
-include("../src/core/sderl_core.hrl").

%% The store that the decisions read.
-export([lookup/2, name_of/2, foreign/1]).

lookup({Rows, _}, Name) -> maps:get(Name, Rows, none).

name_of({_, Names}, Pid) ->
    case Names of
        #{Pid := Name} -> {ok, Name};
        _ -> none
    end.

foreign({Rows, _}) ->
    [{Name, Pid} || Name := ?ROW_OF_AT(Pid, Home) <- Rows, Home =/= node(Pid)].

%% The time is printed and not asserted; with eight times as many clashes it should be some eight
%% times as long.
many_clashes_are_settled_in_one_batch_test_() ->
    {timeout, 120, fun() ->
        [settled(Count) || Count <- [1000, 8000]]
    end}.

settled(Count) ->
    {Clashes, Pids} = lists:mapfoldl(fun(Name, Acc) ->
        {Ours, Theirs} = {pid(2 * Name), pid(2 * Name + 1)},
        {{Name, row(Name, Ours, 'n1@t', 1), row(Name, Theirs, 'n2@t', 2)}, Acc#{Ours => Name}}
    end, #{}, lists:seq(1, Count)),
    Store = {#{Name => A || {Name, A, _} <- Clashes}, Pids},
    %% Each third is kept, replaced, lost by both.
    Keep = fun(Name, A, B) ->
        element(Name rem 3 + 1, {sderl_row:pid(A), sderl_row:pid(B), none})
    end,
    Open = #{Name => {A, B} || {Name, A, B} <- Clashes},
    Decide = [decide(Name, A, B, Keep(Name, A, B)) || {Name, A, B} <- Clashes],
    {Decisions, Micros1} = ordered(Decide, Store, Open),
    %% Reads give what they gave before.
    ?assertEqual([clashes], lists:usort([element(1, Item) || Item <- Decisions])),
    Decided = maps:from_list(lists:append([maps:to_list(Map)
                                           || #clashes{clashes = Map} <- Decisions])),
    Versions = [sderl_row:version(sderl_core_clash:won(Row, Clash))
                || _ := {A, B, Kept, _} = Clash <- Decided,
                   ?ROW_OF(Pid) = Row <- [A, B],
                   Pid =:= Kept],
    ?assertEqual(length(Versions), length(lists:usort(Versions))),
    {Items, Micros2} = ordered([#settle_clash{name = Name} || {Name, _, _} <- Clashes], Store,
                               Decided),
    io:format(user, "~b clashes decided and settled in ~b ms~n",
              [Count, (Micros1 + Micros2) div 1000]),
    Settled = #{Name => {Lost, Row} || #settle{name = Name, losers = Lost, row = Row} <- Items},
    ?assertEqual(Count, length([x || #settle{} <- Items])),
    lists:foreach(fun({Name, ?ROW_OF(PidA) = A, ?ROW_OF(PidB) = B}) ->
        {_, _, Kept, []} = Clash = map_get(Name, Decided),
        [NewA, NewB] = [sderl_core_clash:won(Row, Clash) || Row <- [A, B]],
        ?assertEqual(Keep(Name, A, B), Kept),
        %% The winner's version is above both, the other's is as it was.
        Expected = case Kept of
            PidA -> {[PidB], NewA};
            PidB -> {[PidA], NewB};
            none -> {[PidA, PidB], none}
        end,
        ?assertEqual(Expected, map_get(Name, Settled)),
        Version = fun sderl_row:version/1,
        Before = max(Version(A), Version(B)),
        ?assertEqual([{A, Kept =:= PidA}, {B, Kept =:= PidB}],
                     [{sderl_row:with_version(Version(Old), New), Version(New) > Before}
                      || {New, Old} <- [{NewA, A}, {NewB, B}]])
    end, Clashes).

decide(Name, A, B, Keep) ->
    #decide_clash{name = Name, ours = A, theirs = B, keep = Keep, effects = []}.

ordered(Specials, Store, Clashes) ->
    S = state(),
    D = S#s.d,
    S1 = S#s{office = (S#s.office)#office{changes = lists:reverse(Specials)},
             d = D#d{clashes = Clashes}},
    {Micros, {Items, _, _, _}} = timer:tc(fun() -> sderl_core_decide:batch(?MODULE, Store, S1) end),
    {Items, Micros}.

%% Two resolvers decide about one name: the first decision counts.
a_name_is_decided_once_test() ->
    {A, B, Store} = clash(),
    Decisions = [decide(x, A, B, Keep) || Keep <- [pid(1), pid(2)]],
    {Items, _} = ordered(Decisions, Store, #{x => {A, B}}),
    Kept = sderl_row:pid(A),
    ?assertMatch([#clashes{clashes = #{x := {?ROW(x, Kept, _, {{5, _}, _}, _), B, Kept, []}}}],
                 Items).

%% A coordinator hears of a higher one and joins it when its batch is committed. A resolver's
%% decision comes meanwhile, and the higher coordinator goes: this one goes on, and does not ask
%% again.
a_resolvers_word_counts_while_the_last_batch_is_out_test() ->
    {A, B, _} = clash(),
    #s{d = D} = S0 = state(),
    Asks = sderl_core_clash:ask(S0#s{lead = 'n1@t', num = 1, d = D#d{clashes = #{x => {A, B}}}}),
    ?assertEqual([{resolve, x, A, B}], Asks#s.fx),
    Flight = #flight{num = 1, wait = ['n2@t']},
    Out = Asks#s{office = (Asks#s.office)#office{flight = Flight}},
    #s{role = joining} = Joins = sderl_core_join:give_up('n3@t', {9, 'n3@t'}, Out),
    Told = sderl_core_clash:resolved(x, A, B, pid(1), [], Joins),
    #s{role = coord} = Again = sderl_core_elect:resume(Told),
    #s{fx = Fx, office = Office} = sderl_core_clash:decisions(sderl_core_clash:ask(Again)),
    ?assertEqual([decide(x, A, B, pid(1))], Office#office.changes),
    ?assertEqual([x], [Name || {resolve, Name, _, _} <- Fx]),
    %% A member that stopped coordinating takes over what another decides.
    Follows = sderl_core_role:become_follower('n3@t', sderl_core_role:leave_office(Joins)),
    ?assertEqual(Follows, sderl_core_clash:resolved(x, A, B, pid(1), [], Follows)).

%% A home that does not count would come back without the decision.
a_clash_is_settled_while_both_homes_count_test() ->
    {A, B, Store} = clash(),
    Decided = #{x => {won(A), B, pid(1), []}},
    Settle = #settle_clash{name = x},
    ?assertMatch({[#settle{name = x, losers = [_], row = ?ROW(x, _, _, {{5, _}, 7}, _),
                           effects = []}], _},
                 ordered([Settle], Store, Decided)),
    S = state(),
    D = S#s.d,
    View = (D#d.view)#{'n2@t' := {{5, 'n1@t'}, 1}},
    Aside = S#s{office = #office{changes = [Settle]}, d = D#d{clashes = Decided, view = View}},
    ?assertMatch({[], _, _, _}, sderl_core_decide:batch(?MODULE, Store, Aside)).

%% The process of one of the two rows runs on a member that counts now: that member becomes the home
%% before the clash is settled, so the process is told by its own node.
a_loser_whose_own_node_counts_has_its_name_at_home_test() ->
    {A, B, Store} = clash(),
    S = state(),
    D = S#s.d,
    Settle = fun(Row) ->
        Decided = #{x => {won(A), Row, pid(1), []}},
        Live = S#s{office = #office{changes = [#settle_clash{name = x}]},
                   d = D#d{clashes = Decided, view = (D#d.view)#{node() => live}}},
        element(1, sderl_core_decide:batch(?MODULE, Store, Live))
    end,
    [#clashes{clashes = #{x := {_, AtHome, _, []}}}] = Settle(B),
    ?assertEqual({node(), B}, {sderl_row:home(AtHome), sderl_row:with_home('n2@t', AtHome)}),
    ?assertMatch([#settle{name = x, losers = [_]}], Settle(AtHome)).

%% The winner's home may have shown its new version, and be gone.
a_winner_that_stands_alone_has_its_new_version_test() ->
    {A, B, Store} = clash(),
    [?assertMatch(#settle{name = x, losers = [], row = ?ROW(x, Pid, _, {{5, _}, 7}, _),
                          effects = []},
                  stands(Gone, Clash, Store))
     || {Gone, Pid, Clash} <- [{'n2@t', pid(1), {won(A), B, pid(1), []}},
                               {'n1@t', pid(2), {A, won(B), pid(2), []}},
                               {'n1@t', pid(2), {won(A), B, pid(2), []}}]],
    %% The loser's version was never shown.
    ?assertMatch(#settle{name = x, losers = [], row = B, effects = []},
                 stands('n1@t', {won(A), B, pid(1), []}, Store)).

%% Our row was replaced before the decision: theirs is not forgotten when the replaced row's home
%% goes.
who_is_beside_a_successor_meets_it_when_the_home_of_its_rival_goes_test() ->
    {A, B, _} = clash(),
    Successor = row(x, pid(3), 'n3@t', 3),
    Store = {#{x => Successor}, #{pid(3) => x}},
    Gone = fun(Home) ->
        {Items, _} = ordered([#change_view{drops = [Home], live = []}], Store, #{x => {A, B}}),
        tl(Items)
    end,
    ?assertEqual([#clashes{clashes = #{x => {Successor, B}}}], Gone('n1@t')),
    ?assertEqual([#settle{name = x, losers = [], row = Successor, effects = []}], Gone('n2@t')).

%% A home that is set aside may not have heard of the decision, and may go on with its old version.
%% It gets the new one when it counts again.
a_winner_that_is_aside_keeps_its_version_until_it_counts_test() ->
    {A, B, Store} = clash(),
    [begin
         {_, _, Pid, []} = Clash,
         #s{d = D} = S0 = state(),
         View = #{'n1@t' => live, 'n2@t' => live, Home => {{5, 'n1@t'}, 1}},
         Drop = #change_view{drops = [Gone], live = []},
         S = S0#s{office = #office{changes = [Drop]},
                  d = D#d{clashes = #{x => Clash}, view = maps:remove(Gone, View)}},
         {[#view{}, Settled, Later], _, _, _} = sderl_core_decide:batch(?MODULE, Store, S),
         ?assertEqual(#settle{name = x, losers = [], row = Stands, effects = []}, Settled),
         #clashes{clashes = #{x := {_, _, Pid, []}} = Owed} = Later,
         Then = {#{x => Stands}, #{Pid => x}},
         Settle = #settle_clash{name = x},
         {[#settle{losers = [], row = New, effects = []}], _} = ordered([Settle], Then, Owed),
         ?assertMatch(?ROW(x, Pid, Home, {{5, _}, 7}, _), New),
         %% Another process that is brought under the name waits until then.
         C = row(x, pid(3), 'n3@t', 3),
         Piece = #order_shard{member = 'n3@t', reading = 1, piece = 1, rows = [C], rest = more},
         ?assertMatch({[#shard{rows = []}, #clashes{clashes = #{{third, x, 'n3@t'} := {C, C}}}], _},
                      ordered([Piece], Then, Owed)),
         %% If its home leaves, too, nothing is left of the clash.
         {Left, _} = ordered([#change_view{drops = [Home], live = []}], Then, Owed),
         ?assertEqual(#settle{name = x, losers = [], row = none, effects = []}, lists:last(Left))
     end || {Gone, Home, Stands, Clash} <- [{'n2@t', 'n1@t', A, {won(A), B, pid(1), []}},
                                            {'n1@t', 'n2@t', B, {won(A), B, pid(2), []}}]].

stands(Gone, Clash, Store) ->
    {Items, _} = ordered([#change_view{drops = [Gone], live = []}], Store, #{x => Clash}),
    lists:keyfind(settle, 1, Items).

won(Row) -> sderl_row:with_version({{5, 'n1@t'}, 7}, Row).

%% A member whose shard was kept finds in the snapshot that its process lost the name, and tells it;
%% not if the process still has the name, or is in a clash again.
a_loser_hears_of_what_was_settled_without_its_home_test() ->
    {A, B, _} = clash(),
    Fx = [{exit, pid(1), x}, {exit, pid(2), x}],
    S0 = state(),
    D = S0#s.d,
    S = S0#s{d = D#d{clashes_before = #{x => {won(A), B, pid(1), Fx}}, syncing = true},
             self = 'n2@t'},
    Told = fun(#s{fx = Effects, d = #d{clashes_before = Before}}) ->
        {[F || {clash_effects, F} <- Effects], map_size(Before)}
    end,
    Heard = [[{exit, pid(2), x}]],
    ?assertEqual({Heard, 0}, Told(sderl_core_clash:caught_up([], S))),
    ?assertEqual({[], 0}, Told(sderl_core_clash:caught_up([B], S))),
    #s{d = D1} = S,
    Beside = S#s{d = D1#d{clashes = #{x => {A, B}}}},
    ?assertEqual({[], 0}, Told(sderl_core_clash:caught_up([], Beside))),
    %% Its row is overwritten before that: if the snapshot ended early, it would not be known.
    ?assertEqual({Heard, 0}, Told(sderl_core_clash:overwritten([won(A)], S))),
    ?assertEqual({[], 1}, Told(sderl_core_clash:overwritten([setelement(1, A, y)], S))),
    ?assertEqual({[], 1}, Told(sderl_core_clash:overwritten([A], Beside))).

%% The home of a loser that lives elsewhere may go before it has a link to the loser. So the
%% coordinator sends the exit, too, once that home has the batch: without the batch the home brings
%% the loser back, unless it comes back in a new life, without rows.
a_loser_outside_is_told_by_the_coordinator_too_test() ->
    {A, B, Store} = clash(),
    #s{d = D} = S0 = state(),
    Then = fun(Self, Fx) ->
        S = S0#s{self = Self,
                 office = #office{changes = [#settle_clash{name = x}]},
                 d = D#d{clashes = #{x => {won(A), B, pid(1), Fx}}}},
        {[#settle{losers = [_]}], _, Told, _} = sderl_core_decide:batch(?MODULE, Store, S),
        Told
    end,
    Exit = {exit, pid(2), kill},
    ?assertEqual([{tell, 'n2@t', Exit}], Then('n1@t', [Exit])),
    %% If the coordinator is the home it tells anyway; a message would arrive twice.
    ?assertEqual([], Then('n2@t', [Exit])),
    ?assertEqual([], Then('n1@t', [{send, pid(2), lost}])),
    %% The home of other processes is not known.
    ?assertEqual([], Then('n1@t', [{exit, pid(3), kill}])),
    Lands = fun(View) ->
        Flight = #flight{num = 1, wait = ['n3@t'], then = [{tell, 'n2@t', Exit}]},
        S = S0#s{lead = 'n1@t', num = 1, office = #office{flight = Flight}, d = D#d{view = View}},
        sderl_core_write:ack({5, 'n1@t'}, 1, none, 'n3@t', S)
    end,
    Told = fun(#s{fx = Effects}) -> [Fx || {clash_effects, Fx} <- Effects] end,
    Live = #{'n1@t' => live, 'n2@t' => live, 'n3@t' => live},
    ?assertEqual([[Exit]], Told(Lands(Live))),
    ?assertEqual([], Told(Lands(Live#{'n2@t' := {{5, 'n1@t'}, 0}}))),
    Without = Lands(maps:remove('n2@t', Live)),
    ?assertEqual([], Told(Without)),
    Mem = sderl_membership:new(maps:keys(Live)),
    Joins = fun(N, Counter, #s{d = Had} = S) ->
        sderl_core_admit:join({Counter, N}, 0, N, S#s{role = coord, d = Had#d{mem = Mem}})
    end,
    ?assertEqual([[Exit]], Told(Joins('n2@t', -7, Without))),
    ?assertEqual([[Exit]], Told(Joins('n2@t', -7, Joins('n3@t', -8, Without)))),
    %% The home speaks for itself.
    ?assertEqual([], Told(Joins('n2@t', -7, Joins('n2@t', 4, Without)))).

%% Another member is coordinator when that home is back: every member that has the batch knows the
%% exit. If the home counts again after the batch, it has told the loser itself.
a_loser_outside_is_told_by_another_coordinator_test() ->
    {A, B, _} = clash(),
    #s{d = D} = S0 = state(),
    Live = #{'n1@t' => live, 'n2@t' => live, 'n3@t' => live},
    Mem = sderl_membership:new(maps:keys(Live)),
    Exit = {exit, pid(2), kill},
    Clash = #{x => {won(A), B, pid(1), [Exit]}},
    Settle = #settle{name = x, losers = [pid(2)], row = won(A), effects = [Exit]},
    View = fun(Places) -> #view{places = Places, drops = [], live = [], unknown = []} end,
    Follower = S0#s{self = 'n3@t', role = follower, lead = 'n1@t',
                    d = D#d{mem = Mem, view = Live, clashes = Clash}},
    Applied = fun(Batches) ->
        lists:foldl(fun({Num, Items}, S) -> sderl_core_write:apply_items(Num, Items, none, S) end,
                    Follower, lists:enumerate(Batches))
    end,
    Joins = fun(#s{d = Had} = S) ->
        Leads = S#s{role = coord, lead = 'n3@t', fx = [],
                    d = Had#d{view = maps:remove('n2@t', Had#d.view)}},
        #s{fx = Fx} = sderl_core_admit:join({-7, 'n2@t'}, 0, 'n2@t', Leads),
        [Told || {clash_effects, Told} <- Fx]
    end,
    ?assertEqual([[Exit]], Joins(Applied([[Settle]]))),
    Gone = View(maps:remove('n2@t', Live)),
    ?assertEqual([[Exit]], Joins(Applied([[Settle], [Gone], []]))),
    ?assertEqual([], Joins(Applied([[Settle], []]))),
    ?assertEqual([], Joins(Applied([[Settle], [Gone], [View(Live)]]))).

%% A third process under a name that two clash for clashes with the winner.
a_third_one_waits_test() ->
    {A, B, Store} = clash(),
    C = row(x, pid(3), 'n3@t', 3),
    Key = sderl_core_clash:third(C),
    Clash = {won(A), B, pid(1), []},
    Piece = #order_shard{member = 'n3@t', reading = 1, piece = 1, rows = [C], rest = more},
    {Brought, _} = ordered([Piece], Store, #{x => Clash}),
    ?assertEqual([#shard{member = 'n3@t', is_first = true, rows = [], rest = more},
                  #clashes{clashes = #{Key => {C, C}}}], Brought),
    Beside = #{x => Clash, Key => {C, C}},
    %% The resolver is not asked about it, and it goes with its home.
    #s{d = D} = S = state(),
    Decisions = fun sderl_core_clash:decisions/1,
    #s{fx = Asked, office = #office{changes = Waits}} =
        Decisions(sderl_core_clash:ask(S#s{d = D#d{clashes = Beside}})),
    ?assertEqual({[], [#settle_clash{name = x}]}, {Asked, Waits}),
    Over = #settle{name = Key, losers = [], row = none, effects = []},
    {Left, _} = ordered([#change_view{drops = ['n3@t'], live = []}], Store, Beside),
    ?assertEqual(Over, lists:last(Left)),
    #s{office = #office{changes = Contends}} = Decisions(S#s{d = D#d{clashes = #{Key => {C, C}}}}),
    ?assertEqual([#contend{key = Key}], Contends),
    {Met, _} = ordered(Contends, Store, #{Key => {C, C}}),
    ?assertEqual([Over, #clashes{clashes = #{x => {A, C}}}], Met),
    %% No process has the name any more.
    {Stands, _} = ordered(Contends, {#{}, #{}}, #{Key => {C, C}}),
    ?assertEqual([Over, #settle{name = x, losers = [], row = C, effects = []}], Stands).

%% Our row went, and the home of the other one brings that again: its process has the name when the
%% clash is settled, and not before. Otherwise the name would come back after it was unregistered
%% meanwhile.
what_is_beside_comes_back_once_test() ->
    {A, B, _} = clash(),
    Clashes = #{x => {A, B}},
    Nothing = {#{}, #{}},
    Piece = #order_shard{member = 'n2@t', reading = 1, piece = 2, rows = [B], rest = more},
    ?assertMatch({[#shard{rows = []}], _}, ordered([Piece], Nothing, Clashes)),
    ?assertMatch({[#settle{name = x, losers = [], row = B, effects = []}], _},
                 ordered([#settle_clash{name = x}], Nothing, #{x => {A, B, pid(1), []}})),
    %% It can be registered again, and does not change any more until then.
    Again = {#{x => B}, #{pid(2) => x}},
    Answers = fun(Op, Store, Open) ->
        #s{office = Office, d = D} = S = state(),
        Lists = [?LIST('n2@t', 1, 1, [Op])],
        Asked = S#s{office = Office#office{requests = Lists}, d = D#d{clashes = Open}},
        {[#seg{answers = As}], _, _, _} = sderl_core_decide:batch(?MODULE, Store, Asked),
        As
    end,
    ?assertEqual(default, Answers(?REGISTER(x, pid(2)), Nothing, Clashes)),
    [?assertEqual([{no, later}], Answers(Op, Again, Clashes))
     || Op <- [?UNREGISTER(x), ?UNREGISTER_OF(x, pid(2)),
               #?RE_REGISTER{name = x, pid = pid(3), options = []}]],
    ?assertEqual(default, Answers(?UNREGISTER(x), Again, #{})).

%% A member was removed and added again, and does not know it: our log has names of its processes at
%% another home. They go with the last piece of its shard, except names that are older than its
%% membership (since 5) or of an epoch that it has not been in (after 6). A name that it brings
%% itself, or another name for one of these processes, counts.
what_others_kept_of_a_members_names_goes_test() ->
    [Gone, Anew, Old, Later, Moved, New] = [pid('n3@t', N) || N <- lists:seq(1, 6)],
    Kept = fun(Name, Pid, Counter) -> ?ROW(Name, Pid, 'n1@t', {{Counter, 'n1@t'}, 1}, []) end,
    Own = fun(Name, Pid) -> ?ROW(Name, Pid, 'n3@t', {{6, 'n3@t'}, 1}, []) end,
    Rows = [Kept(gone, Gone, 5),
            Kept(anew, Anew, 6),
            Kept(old, Old, 4),
            Kept(later, Later, 7),
            Kept(was, Moved, 4)],
    Store = {#{sderl_row:name(Row) => Row || Row <- Rows},
             #{sderl_row:pid(Row) => sderl_row:name(Row) || Row <- Rows}},
    ?assertEqual({[], [{anew, none}, {gone, none}]}, brought([], #{}, Store)),
    ?assertEqual({[Own(anew, New), Own(is, Moved)], [{anew, none}, {gone, none}, {was, none}]},
                 brought([Own(anew, New), Own(is, Moved)], #{}, Store)),
    %% In a clash of an earlier piece, or with another member's row, the other row stays.
    Others = ?ROW(old, Gone, 'n2@t', {{5, 'n2@t'}, 1}, []),
    Found = #{anew => {Kept(anew, Anew, 6), Own(anew, New)}, old => {Kept(old, Old, 4), Others}},
    ?assertEqual({[], [{anew, Own(anew, New)}, {gone, none}, {old, Kept(old, Old, 4)}]},
                 brought([], Found, Store)).

%% What the last piece of that member's shard brings, and what is settled with it.
brought(Rows, Clashes, Store) ->
    Piece = #order_shard{
        member = 'n3@t',
        reading = 1,
        piece = 2,
        rows = Rows,
        rest = {last, {{6, 'n3@t'}, 9}, {5, 1, default}}
    },
    {Items, _} = ordered([Piece], Store, Clashes),
    {value, #shard{rows = Taken}, Others} = lists:keytake(shard, 1, Items),
    Settled = [{Name, Row}
               || #settle{name = Name, losers = [], row = Row, effects = []} <- Others],
    ?assertEqual(length(Others), length(Settled)),
    {lists:sort(Taken), lists:sort(Settled)}.

%% A member brings a name whose home it is for a process of another member. The other one is a
%% member since 5 and speaks for itself, but only about epochs that it may know: not about a name
%% that was registered, or won a clash, in an epoch without it.
what_a_member_never_was_part_of_it_does_not_speak_for_test() ->
    Row = fun(Counter) -> ?ROW(x, pid('n3@t', 1), 'n2@t', {{Counter, 'n2@t'}, 1}, []) end,
    Taken = fun(Counter, Items) ->
        #s{d = D} = S0 = state(),
        %% Our log had the epochs 2, 6 and 10; the member that brings the name comes from another
        %% log.
        E = {10, 'n1@t'},
        History = [{{6, 'n2@t'}, 9}, {{2, 'n1@t'}, 9}],
        Live = #{'n1@t' => live, 'n3@t' => live},
        S1 = S0#s{sessions = #{'n3@t' => {5, 1, default}},
                  d = D#d{epoch = E, lineage = E, history = History, view = Live}},
        #s{d = D2} = S2 = sderl_core_write:apply_items(1, Items, none, S1#s{role = follower}),
        Piece = #order_shard{member = 'n2@t', reading = 1, piece = 1, rows = [Row(Counter)],
                             rest = more},
        S = S2#s{role = coord, office = #office{changes = [Piece]}, d = D2#d{view = Live}},
        {[#shard{rows = Rows}], _, _, _} = sderl_core_decide:batch(?MODULE, {#{}, #{}}, S),
        Rows =:= [Row(Counter)]
    end,
    %% It was in no other log: not in epoch 7.
    ?assertEqual([true, false, true], [Taken(Counter, []) || Counter <- [4, 6, 7]]),
    %% It came from a log of epoch 8: it may have been in 7 before that.
    Came = [#shard{member = 'n3@t', is_first = true, rows = [],
                   rest = {{{8, 'n3@t'}, 3}, {5, 1, default}}}],
    ?assertEqual([true, false, false, false, true],
                 [Taken(Counter, Came) || Counter <- [4, 6, 7, 8, 9]]).

%% A member that takes a snapshot does not know where the members were before.
a_learner_does_not_know_where_members_came_from_test() ->
    #s{d = D} = S = state(),
    Info = #{
        sync => 1,
        sessions => #{},
        history => [],
        view => #{'n1@t' => {{-1, 'n1@t'}, 0}, 'n2@t' => live, 'n3@t' => live},
        mem => D#d.mem,
        clashes => #{}
    },
    Boots = S#s{role = joining,
                d = D#d{epoch = {-1, 'n1@t'}, lineage = {-1, 'n1@t'}, view = #{'n1@t' => live}}},
    E = {8, 'n2@t'},
    #s{d = #d{lineage = E, elsewhere_until = Until}} =
        sderl_core_snapshot:adopt(E, 3, Info, 'n2@t', Boots),
    ?assertEqual(#{'n1@t' => E, 'n2@t' => E, 'n3@t' => E}, Until).

pid(Node, N) ->
    Text = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Text)), Text/binary, N:32, 0:32, 1:32>>).

%% A row of a batch whose next item drops its home is not in a learner's table either.
a_learner_has_rows_before_the_batch_that_may_take_them_away_test() ->
    {A, _, _} = clash(),
    S = state(),
    D = S#s.d,
    Learner = S#s{role = follower, self = 'n2@t', d = D#d{syncing = true}},
    Items = [#settle{name = x, losers = [], row = A, effects = []},
             #shard{member = 'n1@t', is_first = true, rows = [], rest = {{{1, 'n1@t'}, 0}, none}}],
    #s{fx = Fx} = sderl_core_write:apply_items(1, Items, none, Learner),
    ?assertMatch([{put_rows, [A]}, {apply, _, 1, Items, none} | _], lists:reverse(Fx)).

%% The present home reports that a process died. Another node watched it while it was the home.
a_name_at_home_is_removed_by_its_home_alone_test() ->
    Home = node(),
    #s{d = D} = S0 = state(),
    S = S0#s{d = D#d{mem = sderl_membership:add([Home], D#d.mem),
                     view = (D#d.view)#{Home => live}}},
    Answers = fun(Row, Asks) ->
        List = ?LIST(Asks, 1, 1, [?UNREGISTER_OF(x, pid(1))]),
        Asked = S#s{office = #office{requests = [List]}},
        {[#seg{answers = As}], _, _, _} =
            sderl_core_decide:batch(?MODULE, {#{x => Row}, #{pid(1) => x}}, Asked),
        As
    end,
    [AtHome, Outside] = [row(x, pid(1), At, 1) || At <- [Home, 'n1@t']],
    ?assertEqual([{no, not_its_home}], Answers(AtHome, 'n1@t')),
    ?assertEqual([default, default], [Answers(AtHome, Home), Answers(Outside, 'n1@t')]).

%% A snapshot ended early. In its log our process is the second of a clash, and our table may have
%% the first one's row by now; or our process has the name: then our table is unchanged.
a_clash_of_a_snapshot_that_ended_early_keeps_our_process_test() ->
    {Ours, Theirs} = {row(x, pid(1), 'n1@t', 1), row(x, pid(2), 'n2@t', 2)},
    Other = row(x, pid(3), 'n3@t', 3),
    Own = fun(Before, Now) ->
        Known = #d{clashes = #{x => Now}, clashes_before = #{x => Before}},
        maps:get(x, sderl_core_clash:own('n1@t', Known))
    end,
    [?assertEqual({Other, Ours}, Own(Before, {Other, Ours}))
     || Before <- [{Ours, Theirs}, {Theirs, Ours}, {Ours, Theirs, none, []}]],
    ?assertEqual({Other, won(Ours)},
                 Own({won(Ours), Theirs, sderl_row:pid(Ours), []}, {Other, Ours})),
    ?assertEqual({Theirs, Ours}, Own({Theirs, Ours}, {Ours, Other})),
    ?assertEqual({Ours, Theirs}, Own({Ours, Theirs}, {Other, Theirs})).

clash() ->
    A = row(x, pid(1), 'n1@t', 1),
    {A, row(x, pid(2), 'n2@t', 2), {#{x => A}, #{pid(1) => x}}}.

state() ->
    E = {5, 'n1@t'},
    Mem = sderl_membership:new(['n1@t', 'n2@t', 'n3@t']),
    #s{group = g, uid = <<1>>, self = 'n1@t', role = coord,
       d = #d{mem = Mem, sid = 1, epoch = E, lineage = E,
              view = #{'n1@t' => live, 'n2@t' => live}}}.

row(Name, Pid, Home, Seq) -> {Name, Pid, Home, {{1, Home}, Seq}, []}.

%% Pids of no process.
pid(I) -> list_to_pid(lists:concat(["<0.", 1_000_000 + I, ".0>"])).
