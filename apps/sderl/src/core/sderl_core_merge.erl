%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_merge).
-moduledoc false.
%% Components that become one, and members that catch up.
%%
%% The lower coordinator lets its batch land, stops, and offers its members (`surrender`). The
%% higher one says whose rows it does not hold (`yield`), gets those (`contrib`), orders them in
%% one batch together with the new members as set aside, and only then adopts each of them: so
%% whoever takes over from it either has none of this or all. Adopting sends the whole table in
%% acknowledged chunks while batches go on; because a link keeps its order, a row in a chunk is
%% never older than a batch that came before it, and the later one simply overwrites (rule 5).
%%
%% Nothing here waits in place: should the other side vanish at any point, the lower coordinator
%% goes on with its component and the next probe starts again.

-include("sderl_core.hrl").

-define(OFFER_TICKS, 4).

-export([tomb/2, tick/1, give_up/3, send_surrender/1, resume/1, surrender/6, take_offers/1, yield/4, homes_read/5, contrib/6, contrib_ok/4]).
-export([start_syncs/2, stop_sync/2, set_aside/2, gap/3, adopt/5, chunk_read/5, chunk/7, chunk_ok/5, synced/4, resolved/6, removed/2]).

-import(sderl_core, [faulty/2, fx/2, send/3, event/3, present/2, change_view/3]).

%% Transfers that stopped moving; the next heartbeat answer or probe begins a new one.
-spec tick(#s{}) -> #s{}.
tick(#s{now = Now, aside_ms = A, syncs = Sy, absorbs = Ab} = S) ->
    Old = [N || N := #sync{since = At} <- Sy, Now - At > 2 * A],
    S1 = lists:foldl(fun(N, X) -> fx({read_stop, N}, X) end, S#s{syncs = maps:without(Old, Sy)}, Old),
    S1#s{absorbs = maps:filter(fun(_, #absorb{since = At}) -> Now - At =< 2 * A end, Ab)}.

%% ---------------------------------------------------------------- the lower component

-spec give_up(node(), epoch(), #s{}) -> #s{}.
give_up(A, E, #s{role = coord, flight = F, offers = Offers, d = #d{lineage = Mine, view = V}, now = Now} = S0) when E > Mine ->
    %% Who offered itself to us goes there too.
    S = lists:foldl(fun(N, X) -> send(N, {low, E, A}, X) end, S0#s{role = surrender, to = {A, E, Now}, offers = #{}},
                    lists:delete(A, maps:keys(Offers))),
    Stale = is_map_key(A, V) andalso faulty(stale_coordinator, S0),
    case F of
        _ when Stale -> S0;
        undefined -> send_surrender(S);
        _ -> S
    end;
give_up(A, E, #s{role = orphan, now = Now} = S) ->
    send_surrender(S#s{role = surrender, to = {A, E, Now}});
give_up(_, _, S) -> S.

-spec send_surrender(#s{}) -> #s{}.
send_surrender(#s{to = {A, _, _}, lead = L, self = Self, num = Num, sessions = Sess} = S) ->
    #d{lineage = E, view = V, tomb = Tomb, clashes = Cl} = sderl_core:ordered(S),
    %% Without a coordinator's role we speak for ourselves alone.
    {View, Open} = case L of Self -> {V#{Self => live}, Cl}; _ -> {#{Self => live}, #{}} end,
    Info = #{sessions => maps:with(maps:keys(View), Sess), tomb => Tomb, clashes => Open},
    send(A, {surrender, E, Num, View, sderl_core_unseen:told(Info, S)}, S).

-spec resume(#s{}) -> #s{}.
resume(#s{role = surrender, lead = Self, self = Self} = S) ->
    sderl_core_write:reorder(S#s{role = coord, to = undefined});
resume(#s{role = surrender} = S) -> sderl_core_elect:orphan(S#s{to = undefined});
resume(S) -> S.

-spec yield(epoch(), [node()], node(), #s{}) -> #s{}.
yield(E, [_ | _] = Need, N, #s{role = surrender, to = {N, _, _}, d = #d{lineage = E}} = S) ->
    fx({read_homes, N, 1, Need}, S#s{reading = S#s.reading + 1, part = 1});
yield(_, _, _, S) -> S.

-spec homes_read(node(), pos_integer(), [sderl_core:row()], boolean(), #s{}) -> #s{}.
homes_read(N, K, Rows, Last, #s{role = surrender, to = {N, EA, _}, now = Now, d = #d{lineage = E, tomb = T}} = S) ->
    %% (Of a table that is not whole, rows may still be there.)
    send(N, {contrib, E, numbered(S#s.reading, K), [R || R <- Rows, not removed(R, T)], Last}, S#s{to = {N, EA, Now}});
homes_read(N, _, _, _, S) -> fx({read_stop, N}, S).

-spec contrib_ok(epoch(), pos_integer(), node(), #s{}) -> #s{}.
contrib_ok(E, Number, N, #s{role = surrender, to = {N, _, _}, reading = Reading, part = K, d = #d{lineage = E}} = S) ->
    %% (Once: where we were asked twice in one step, the first rows went out twice, and both are acknowledged.)
    case numbered(Reading, K) of
        Number -> fx({read_homes, N, K + 1, []}, S#s{part = K + 1});
        _ -> S
    end;
contrib_ok(_, _, _, S) -> S.

%% The messages of one reading are told from those of another: we may be asked twice, and the first answer
%% comes when the second is waited for.
numbered(Reading, K) -> (Reading bsl 16) bor K.

%% ---------------------------------------------------------------- the higher component

-spec surrender(epoch(), non_neg_integer(), #{node() => place()}, map(), node(), #s{}) -> #s{}.
surrender(EB, NumB, View, Info, N, #s{role = coord, groggy = [], offers = Offers} = S) when EB =< S#s.d#d.lineage ->
    case member(N, S) of
        true ->
            %% Two that boot side by side do not outrank what runs: that may call us in at any moment (rule 2).
            case sderl_core_peers:unmet(S) andalso not faulty(rule_2, S) of
                true -> S#s{offers = Offers#{N => {S#s.now, {EB, NumB, View, Info}}}};
                false -> taken(EB, NumB, View, Info, N, first(S))
            end;
        %% It was added where we have not heard of it: its hello says so.
        false -> sderl_core:ask(N, S)
    end;
%% We gave ourselves up meanwhile, or follow another: there it is taken.
surrender(_, _, _, _, N, #s{role = surrender, to = {A, E, _}} = S) when A =/= N -> send(N, {low, E, A}, S);
surrender(_, _, _, _, N, #s{role = follower, lead = L, d = #d{epoch = E}} = S) when L =/= N -> send(N, {low, E, L}, S);
surrender(_, _, _, _, _, S) -> S.

%% Offers that had to wait until nobody was left that may outrank us.
-spec take_offers(#s{}) -> #s{}.
take_offers(#s{offers = Offers} = S) when map_size(Offers) =:= 0 -> S;
take_offers(#s{offers = Offers, now = Now, tick_ms = T} = S0) ->
    case sderl_core_peers:unmet(S0) of
        true -> S0;
        false ->
            %% Who still waits has said so again since: it answers each heartbeat so, when two ticks have passed.
            maps:fold(fun(N, {At, {EB, NumB, View, Info}}, S) when Now - At =< ?OFFER_TICKS * T -> surrender(EB, NumB, View, Info, N, S);
                         (_, _, S) -> S
                      end, S0#s{offers = #{}}, maps:iterator(Offers, ordered))
    end.

taken(EB, NumB, View, #{sessions := Sess, tomb := Tomb, clashes := Cl} = Info, N, #s{now = Now} = S0) ->
    S1 = unseen(sderl_core_unseen:offered(Info, S0)),
    %% It knows of those that it set aside what it knew then.
    At = maps:map(fun(_, live) -> {EB, NumB}; (_, Place) -> Place end, View),
    Ours = [M || M := Place <- View, M =:= N orelse offered(M, Place, map_get(M, At), S1), present(M, S1), member(M, S1)],
    Need = [M || M <- Ours, not covered(M, map_get(M, At), S1#s.d)],
    S2 = lists:foldl(fun(M, S) -> demote(M, S) end, S1, Ours -- Need),
    S3 = send(N, {yield, EB, Need}, S2),
    case Need of
        [] -> start_syncs(Ours, S3);
        _ ->
            Ab = #absorb{members = Ours, need = maps:with(Need, At), since = Now,
                         sessions = maps:with(Need, Sess), tomb = Tomb, clashes = Cl, history = maps:get(history, Info, [])},
            S3#s{absorbs = (S3#s.absorbs)#{N => Ab}}
    end.

member(M, #s{self = Self, d = #d{mem = Mem}}) -> M =/= Self andalso sderl_membership:is_member(M, Mem).

%% A coordinator speaks for its members, but one that went from it in the meantime may belong to us
%% by now: members only ever go to higher epochs. And of one that it has set aside it may know less
%% than we did when we let it go, or our log holds more of the log that it names: such rows are old
%% ones, and the member itself will bring what it has now.
offered(M, Place, {EB, _}, #s{syncs = Sy, gone = Gone, d = #d{view = V, history = H}}) ->
    case V of
        #{M := live} -> false;
        #{M := {E, _}} -> Place =:= live andalso EB > E andalso not is_map_key(M, Sy);
        _ when Place =:= live -> true;
        _ ->
            {Lineage, Num} = Place,
            Place >= maps:get(M, Gone, Place) andalso not grown(Lineage, Num + 1, H)
    end.

%% Whether our log has everything that a member at that position of another has: it grew out of that
%% log, or the member gave us its rows there (the others of its component need not have done so: some
%% of them may have been out of reach). What was merged is of then, whatever log of before we share:
%% only from the merge on our log speaks for it.
covered(M, {Lineage, Num}, #d{lineage = E, history = H, view = V, merged = Merged}) ->
    case V of
        #{M := {Lineage, N}} when Num =< N -> true;
        #{M := _} -> Lineage =:= E orelse (Lineage >= maps:get(M, Merged, Lineage) andalso grown(Lineage, Num, H));
        _ -> false
    end.

grown(Lineage, Num, History) ->
    case lists:keyfind(Lineage, 1, History) of
        {_, Final} -> Num =< Final;
        false -> false
    end.

%% A component that was one booting node becomes a running one when it takes in its first member:
%% from then on it outranks whoever boots. Nobody else has promised anything to it yet.
first(#s{self = Self, num = Num, d = #d{lineage = {C, Self} = Old, epoch = Old, view = V} = D, flight = undefined} = S)
  when C < 0, map_size(V) =:= 1 ->
    New = sderl_core:epoch(S),
    S#s{d = D#d{lineage = New, epoch = New, history = [{Old, Num} | D#d.history]}};
first(S) -> S.

demote(M, #s{num = Num, d = #d{lineage = E, view = V}} = S) ->
    case V of
        #{M := live} -> sderl_core_write:reorder(change_view(V#{M := {E, Num}}, [], S));
        _ -> S
    end.

-spec contrib(epoch(), pos_integer(), [sderl_core:row()], boolean(), node(), #s{}) -> #s{}.
contrib(E, Number, Rows, Last, N, #s{role = coord, absorbs = Abs, now = Now} = S) when is_map_key(N, Abs) ->
    #{N := #absorb{reading = Reading, next = Next, rows = Have} = Ab} = Abs,
    Taken = case {Number bsr 16, Number band 16#ffff} of
        {Later, 1} when Later >= Reading -> Ab#absorb{reading = Later, next = 2, rows = [Rows], since = Now};
        {Reading, Next} -> Ab#absorb{next = Next + 1, rows = [Rows | Have], since = Now};
        _ -> none
    end,
    case Taken of
        none -> S;
        _ when Last -> absorbed(N, Taken, S#s{absorbs = maps:remove(N, Abs)});
        _ -> send(N, {contrib_ok, E, Number}, S#s{absorbs = Abs#{N := Taken}})
    end;
contrib(_, _, _, _, _, S) -> S.

absorbed(N, #absorb{members = Members0, need = At, sessions = Sess0, rows = Chunks, tomb = Theirs, clashes = Cl, history = H},
         #s{d = #d{view = V, tomb = T} = D, specials = Sp, unordered = U, again = Again, gone = Gone, sessions = Ours} = S0) ->
    Need = [M || M := Place <- At, present(M, S0), member(M, S0), M =:= N orelse offered(M, live, Place, S0)],
    Members = [M || M <- Members0, present(M, S0)] -- (maps:keys(At) -- Need),
    Rows = [R || R <- lists:append(lists:reverse(Chunks)), lists:member(element(3, R), Need), not removed(R, T)],
    %% What they removed in the absence of its home goes here too, and when that home comes.
    Tomb = maps:merge_with(fun(_, A, B) -> maps:merge(A, B) end, T, maps:without(Need, Theirs)),
    Before = #{M => {known(M, V), known(M, T)} || M <- Need},
    %% A list that we decided and that it never got (maybe its first): it sends it again, and what the
    %% list did elsewhere stands.
    Sess1 = case faulty(rule_3, S0) of
        false -> maps:merge(#{M => unused(M, Ours) || M <- Need}, Sess0);
        true -> Sess0
    end,
    Repeat = #{M => {Sid, Done, ?OPEN} || M := {Sid, Done, _} <- maps:with(Need, Sess1), #{M := {Sid0, R, _}} <- [Ours], Sid0 =:= Sid, R > Done},
    Sess = maps:merge(Sess1, Repeat),
    S1 = S0#s{d = D#d{tomb = Tomb}, gone = maps:without(Need, Gone), unordered = maps:merge(Before, U), again = maps:merge(Again, sderl_core_write:open(maps:with(Need, Sess))),
              specials = [{merge, Members, Rows, maps:with(Need, Sess), Cl}, {tombs, Theirs} | [without(Need, X) || X <- Sp]]},
    View = maps:merge(V, maps:with(Need, At)),
    %% What we hold of those whose log went on without us is older than what they bring.
    Old = [M || M <- Need, is_map_key(M, V)],
    S2 = unseen({sderl_core_unseen:merged(Need, At, H, S0), sderl_core_unseen:came(Need, At, H, S1)}),
    event(component_merged, #{nodes => Members, names => length(Rows)}, change_view(View, Old, S2)).

unseen({[], S}) -> S;
unseen({Rows, #s{specials = Sp} = S}) -> S#s{specials = [{unseen, Rows} | Sp]}.

known(M, Map) ->
    case Map of
        #{M := Value} -> [Value];
        _ -> []
    end.

%% The session of a member whose first list is still to be decided.
unused(M, Sessions) ->
    {Sid, _, _} = maps:get(M, Sessions, {0, 0, []}),
    {Sid, 0, []}.

%% What waits to be ordered of others' word for these members.
without(Need, {merge, Members, Rows, Sess, Cl}) ->
    {merge, Members, [R || R <- Rows, not lists:member(element(3, R), Need)], maps:without(Need, Sess), Cl};
without(_, Special) -> Special.

%% Rows that we removed while their home was set aside are not news.
-spec removed(sderl_core:row(), #{node() => map()}) -> boolean().
removed({Name, _, Home, Ver, _}, Tomb) ->
    case Tomb of
        #{Home := #{Name := Vers}} -> lists:member(Ver, Vers);
        _ -> false
    end.

%% ---------------------------------------------------------------- snapshots

-spec set_aside(node(), #s{}) -> #s{}.
set_aside(N, S) -> start_syncs([N], demote(N, S)).

-spec gap(epoch(), node(), #s{}) -> #s{}.
gap(E, N, #s{role = coord, d = #d{lineage = E, view = V}} = S) when is_map_key(N, V) -> set_aside(N, S);
gap(E, N, #s{role = coord, d = #d{lineage = E}} = S) -> send(N, {dropped, E}, S);
gap(_, _, S) -> S.

%% (Not before what a member contributed is ordered: until then its rows and its last answers are not
%% ours to give. Its snapshot begins with that.)
-spec start_syncs([node()], #s{}) -> #s{}.
start_syncs(Ns, #s{d = #d{view = V}, specials = Sp} = S0) ->
    Pending = lists:append([Ms || {merge, Ms, _, _, _} <- Sp]),
    lists:foldl(fun start_sync/2, S0, [N || N <- Ns -- Pending, present(N, S0), is_tuple(maps:get(N, V, none))]).

start_sync(N, #s{num = Num, now = Now, syncs = Sy, sync = Id0, d = #d{lineage = E}} = S0) ->
    Id = Id0 + 1,
    Info = (sderl_core_elect:lead_info(S0))#{sessions => S0#s.sessions, sync => Id},
    S1 = send(N, {adopt, E, Num, Info}, S0#s{sync = Id, syncs = Sy#{N => #sync{id = Id, acked = Num, since = Now}}}),
    fx({read_chunk, N, 1}, S1).

-spec stop_sync(node(), #s{}) -> #s{}.
stop_sync(N, #s{syncs = Sy} = S) when is_map_key(N, Sy) -> fx({read_stop, N}, S#s{syncs = maps:remove(N, Sy)});
stop_sync(_, S) -> S.

-spec chunk_read(node(), pos_integer(), [sderl_core:row()], boolean(), #s{}) -> #s{}.
chunk_read(N, K, Rows, Last, #s{role = coord, syncs = Sy, d = #d{lineage = E}} = S) ->
    case Sy of
        #{N := #sync{id = Id, chunk = K}} -> send(N, {chunk, E, Id, K, Rows, Last}, S);
        %% Begun anew in the same step.
        #{N := _} -> S;
        _ -> fx({read_stop, N}, S)
    end;
chunk_read(N, _, _, _, S) -> fx({read_stop, N}, S).

-spec chunk_ok(epoch(), pos_integer(), pos_integer(), node(), #s{}) -> #s{}.
chunk_ok(E, Id, K, N, #s{role = coord, syncs = Sy, now = Now, d = #d{lineage = E, view = V} = D} = S) ->
    case Sy of
        #{N := #sync{id = Id, chunk = K, acked = Num} = Sync} ->
            S1 = S#s{syncs = Sy#{N := Sync#sync{chunk = K + 1, since = Now}}},
            %% It has promised our epoch: no lower component speaks for it any more.
            S2 = case V of
                #{N := {Lin, _}} when Lin < E -> S1#s{d = D#d{view = V#{N := {E, Num}}}};
                _ -> S1
            end,
            fx({read_chunk, N, K + 1}, S2);
        _ -> S
    end;
chunk_ok(_, _, _, _, S) -> S.

%% It has everything up to the last batch sent, and what comes next comes in order: it counts
%% from the next batch on. (An answer to a snapshot that was begun anew says nothing.)
-spec synced(epoch(), pos_integer(), node(), #s{}) -> #s{}.
synced(E, Id, N, #s{role = coord, syncs = Sy, d = #d{lineage = E, view = V, tomb = T} = D} = S) ->
    case {Sy, V} of
        {#{N := #sync{id = Id}}, #{N := {_, _}}} ->
            S1 = S#s{syncs = maps:remove(N, Sy), d = D#d{tomb = maps:remove(N, T)}},
            sderl_core_write:unhold(N, sderl_core_peers:waiters(change_view(V#{N => live}, [], S1)));
        _ -> S
    end;
synced(_, _, _, S) -> S.

-spec adopt(epoch(), non_neg_integer(), map(), node(), #s{}) -> #s{}.
adopt(E, _, _, N, #s{d = #d{epoch = Mine}, lead = L} = S) when E < Mine -> send(N, {refused, Mine, L}, S);
adopt(E, Num, #{history := H, view := V, mem := M} = Info, N, #s{role = R, self = Self, d = D} = S) ->
    case sderl_core:union(M, D#d.mem, S) of
        M when R =/= coord ->
            case covered(Self, {D#d.lineage, position(S)}, D#d{lineage = E, history = H, view = V, merged = maps:get(merged, Info, #{})}) of
                true -> adopted(E, Num, Info, N, S);
                %% We have what that log has not: it is a merge.
                false -> give_up(N, E, S)
            end;
        M -> give_up(N, E, S);
        %% We know of a change of the membership that is not ordered there yet (rule 4).
        _ -> send(N, {mem, D#d.mem}, S)
    end.

%% How much of our log must not be lost: of one that we led ourselves what was committed. The tail that
%% nobody acknowledged was answered to nobody, and is decided anew (rule 9).
position(#s{self = Self, committed = C, d = #d{lineage = {_, Self}}}) when C > 0 -> C;
position(#s{num = Num}) -> Num.

adopted(E, Num, #{sync := Id, sessions := Sess0, history := H, view := V, mem := M, tomb := T, clashes := Cl} = Info, N, #s{d = D, now = Now} = S0) ->
    S1 = sderl_core_elect:stop_leading(S0),
    Sess = undone(Sess0, S0),
    S2 = S1#s{role = follower, lead = N, lead_heard = Now, cand = undefined, suspect = undefined, to = undefined, tries = 0, shut_out = undefined,
              sync = Id, num = Num, last = [], committed = 0, sessions = Sess, told = maps:get(S0#s.self, Sess0, undefined), mine = undefined, ack = undefined, booting = false, unseen = #{}, from = #{},
              d = D#d{epoch = E, lineage = E, history = H, view = V, merged = maps:get(merged, Info, #{}), tomb = tomb(T, S1), clashes = Cl, syncing = true}},
    S3 = sderl_core_write:resend(fx({sync_begin, E, Num}, fx({sessions, Sess}, sderl_core:save(S2)))),
    sderl_core_write:membership(M, S3).

%% A snapshot brings the sessions first. Should it end before its rows, the list of ours that is out is open where our own
%% log and that one differ on it: of what it did some may have come already, or be left of a tail that was discarded.
undone(Sess, #s{self = Self, out = {R, _}, sessions = Own, d = #d{sid = Sid}}) ->
    Had = fun(#{Self := {Of, Last, _}}) when Of =:= Sid, Last =:= R -> all;
             (#{Self := {Of, _, ?OPEN}}) when Of =:= Sid -> some;
             (_) -> none
          end,
    case {Had(Sess), Had(Own)} of
        {Same, Same} when Same =/= some -> Sess;
        _ -> Sess#{Self => {Sid, R - 1, ?OPEN}}
    end;
undone(Sess, _) -> Sess.

%% Here are its rows.
done(#s{self = Self, sessions = Sess0, told = Told} = S) ->
    case {Sess0, Told} of
        {#{Self := {Sid, _, ?OPEN}}, {Sid, _, _}} ->
            Sess = Sess0#{Self := Told},
            fx({sessions, Sess}, S#s{sessions = Sess, told = undefined});
        _ -> S#s{told = undefined}
    end.

%% While a table is not whole, rows of ours that were removed somewhere may still be in it: what we
%% heard of that counts until the snapshot has taken them away, whoever's snapshot it is in the end.
-spec tomb(#{node() => map()}, #s{}) -> #{node() => map()}.
tomb(Tomb, #s{self = Self, d = #d{syncing = true, tomb = Known}}) when is_map_key(Self, Known) ->
    Both = maps:merge_with(fun(_, A, B) -> lists:usort(A ++ B) end, map_get(Self, Known), maps:get(Self, Tomb, #{})),
    Tomb#{Self => Both};
tomb(Tomb, _) -> Tomb.

-spec chunk(epoch(), pos_integer(), pos_integer(), [sderl_core:row()], boolean(), node(), #s{}) -> #s{}.
chunk(E, Id, K, Rows, Last, N,
      #s{role = follower, self = Self, lead = N, sync = Id, now = Now, d = #d{lineage = E, syncing = true, tomb = T} = D} = S0) ->
    S = fx({put_rows, Rows}, S0#s{lead_heard = Now}),
    case Last of
        false -> send(N, {chunk_ok, E, Id, K}, S);
        true -> send(N, {synced, E, Id}, fx(sync_end, done(S#s{d = D#d{syncing = false, tomb = maps:remove(Self, T)}})))
    end;
chunk(_, _, _, _, _, _, S) -> S.

%% ---------------------------------------------------------------- clashes

-spec resolved(term(), sderl_core:row(), sderl_core:row(), pid() | none, [term()], #s{}) -> #s{}.
resolved(Name, A, B, Keep0, Fx, #s{role = coord, d = #d{clashes = Cl}, specials = Sp} = S) ->
    Keep = case faulty(wrong_winner, S) of
        true -> hd([element(2, A), element(2, B)] -- [Keep0]);
        false -> Keep0
    end,
    case Cl of
        #{Name := {A, B}} -> S#s{specials = [{settle, Name, A, B, Keep, Fx} | Sp]};
        _ -> S
    end;
resolved(_, _, _, _, Fx, S) ->
    case faulty(rule_18, S) of
        false -> S;
        true -> fx({clash_effects, Fx}, S)
    end.
