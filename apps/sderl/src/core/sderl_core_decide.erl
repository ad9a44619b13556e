%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_decide).
-moduledoc false.
%% What the next batch is: the decisions of the coordinator, read against its own table and an
%% overlay of what this batch itself changes.
%%
%% A batch holds either changes of the component (view, membership, merged rows, settled clashes)
%% or members' lists of operations, never both: the first kind changes rows by scans, which the
%% overlay would not see.
%%
%% Operations: [Name | Pid] register and {Name} unregister, short because nearly everything is one
%% of them and every member decodes every one; {r, Name, Pid, Opts} register with options; {x, Name,
%% Pid, Old, Opts} register where a read showed Old, dead on its own node (rule 17: counts as free
%% if still held by Old); {rr, Name, Pid, Opts} re-register; {d, Name, Pid} unregister if held by
%% Pid; {add, Nodes}; {remove, Nodes, Time}; delete.
%%
%% Items of a batch: {seg, Origin, Session, Number, Ops, Answers}
%% (`default` where each is what the operation answers when nothing stands against it); {view, View, Tomb, Drops};
%% {mem, Membership, Removed}; {merge, Rows, Sessions}; {settle, Name, Losers, Row | none};
%% {clashes, Name to {Ours, Theirs}}; {tomb, Tomb}; delete.

-include("sderl_core.hrl").

-export([batch/3]).

-record(c, {
    mod :: module(), store :: term(),
    names = #{} :: #{term() => tuple() | none},
    pids = #{} :: #{pid() => term()},          % [Name] or none, as the index will be
    again = false :: boolean(),                % this list was decided before
    mem, view, tomb, tombed = false,
    buries = true :: boolean()
}).

%% The common case in the making: what was read (names in a tuple, pids), how much, and what the
%% index will be.
-record(p, {mod :: module(), store :: term(), view, keys = [], count = 0, index = [], blind = false :: boolean()}).

-spec batch(module(), term(), #s{}) -> {[term()], [{pid(), [term()] | none}], [term()], #s{}}.
batch(Mod, Store, #s{specials = [], reqs = Reqs, d = #d{view = V, mem = M}} = S) ->
    P0 = #p{mod = Mod, store = Store, view = V, blind = sderl_core:faulty(double_yes, S)},
    Known = fun({O, _, _, _}) -> maps:get(O, V, none) =:= live andalso sderl_membership:is_member(O, M) end,
    case map_size(S#s.again) =:= 0 andalso lists:all(Known, Reqs) andalso plain(lists:reverse(Reqs), P0, []) of
        {Items, Index} -> {Items, Index, [], S#s{reqs = []}};
        false -> overlaid(Mod, Store, S)
    end;
batch(Mod, Store, #s{specials = Specials, d = D} = S0) ->
    Drops = case sderl_core:faulty(resurrect, S0) of
        true -> [];
        false -> lists:usort(lists:append([Ns || {view, Ns} <- Specials]))
    end,
    View = case [v || {view, _} <- Specials] of
        [] -> [];
        %% A member that counts has all that was removed while it did not.
        _ -> [{view, D#d.view, maps:filter(fun(N, _) ->
                 maps:get(N, D#d.view, none) =/= live andalso sderl_membership:is_member(N, D#d.mem)
             end, D#d.tomb), Drops}]
    end,
    C0 = overlay(Mod, Store, S0),
    {Items, Then, _, C, S} = lists:foldl(fun special/2, {View, [], Drops, C0, S0#s{specials = []}},
                                         lists:reverse(Specials)),
    {Last, First} = lists:partition(fun(I) -> element(1, I) =:= mem end, lists:reverse(Items)),
    {First ++ Last, maps:to_list(C#c.pids), left(Last, D) ++ Then, S}.

%% ---------------------------------------------------------------- the common case

%% Registrations and removals of which no two touch the same name or pid need no overlay: each is
%% decided against the table alone. Whether that was so is seen at the end, at once; if not, or if
%% there is anything else among the operations, the batch is decided again with the overlay.
plain([{O, Inc, R, Ops} | Segs], P0, Items) ->
    case plain_ops(Ops, P0, [], true) of
        {As, P} -> plain(Segs, P, [{seg, O, Inc, R, Ops, As} | Items]);
        false -> false
    end;
plain([], #p{keys = Keys, count = N, index = Index, blind = Blind}, Items) ->
    case Blind orelse map_size(maps:from_keys(Keys, [])) =:= N of
        true -> {lists:reverse(Items), Index};
        false -> false
    end.

plain_ops([[Name | Pid] | Ops], #p{mod = Mod, store = St, view = V, keys = Ks, count = N, index = Ix} = P, As, Default)
  when map_get(node(Pid), V) =:= live ->
    Free = Mod:lookup(St, Name) =:= none andalso Mod:name_of(St, Pid) =:= none,
    P1 = P#p{keys = [{Name}, Pid | Ks], count = N + 2},
    case Free of
        true -> plain_ops(Ops, P1#p{index = [{Pid, [Name]} | Ix]}, [yes | As], Default);
        false -> plain_ops(Ops, P1, [{no, name_or_pid_already_registered} | As], false)
    end;
plain_ops([{Name} | Ops], #p{mod = Mod, store = St, view = V, keys = Ks, count = N, index = Ix} = P, As, Default) ->
    case Mod:lookup(St, Name) of
        none -> plain_ops(Ops, P#p{keys = [{Name} | Ks], count = N + 1}, [ok | As], Default);
        {_, Pid, Home, _, _} when map_get(Home, V) =:= live ->
            plain_ops(Ops, P#p{keys = [{Name}, Pid | Ks], count = N + 2, index = [{Pid, none} | Ix]}, [ok | As], Default);
        _ -> false
    end;
plain_ops([], P, _, true) -> {default, P};
plain_ops([], P, As, false) -> {lists:reverse(As), P};
plain_ops(_, _, _, _) -> false.

overlay(Mod, Store, #s{d = D} = S) ->
    #c{mod = Mod, store = Store, mem = D#d.mem, view = D#d.view, tomb = D#d.tomb, buries = not sderl_core:faulty(resurrect, S)}.

overlaid(Mod, Store, #s{reqs = Reqs0, held = Held, again = Again, d = D} = S) ->
    {Later, Reqs} = lists:partition(fun({O, _, _, _}) -> is_tuple(maps:get(O, D#d.view, none)) end, Reqs0),
    C0 = overlay(Mod, Store, S),
    {Items, Last, C} = lists:foldl(fun({O, Sid, R, _} = Seg, {Is, La, Acc}) ->
        seg(Seg, {Is, La, Acc#c{again = maps:get(O, Again, none) =:= {Sid, R}}})
    end, {[], [], C0}, lists:reverse(Reqs)),
    %% (Behind the membership: not of those who leave in this very batch.)
    Tomb = [{tomb, maps:filter(fun(N, _) -> sderl_membership:is_member(N, C#c.mem) end, C#c.tomb)} || C#c.tombed],
    {lists:reverse(Items, lists:reverse(Last, Tomb)), maps:to_list(C#c.pids), left(Last, D),
     S#s{reqs = [], held = maps:merge(Held, #{O => Seg || {O, _, _, _} = Seg <- Later}),
         again = maps:without([O || {O, _, _, _} <- Reqs], Again)}}.

%% Whom this batch removes: told once it is committed.
left([], _) -> [];
left(Last, #d{mem = Mem}) ->
    case lists:member(delete, Last) of
        true -> [{left, sderl_membership:members(Mem)}];
        false -> [{left, Ns} || {mem, _, Ns} <- Last, Ns =/= []]
    end.

%% ---------------------------------------------------------------- changes of the component

special({view, _}, Acc) -> Acc;
%% Names of pids on nodes that left have their home on a coordinator (rule 15), and a new one takes
%% over from one that left itself.
special(rehome, {Is, T, Dr, #c{mem = Mem} = C, S}) ->
    case sderl_membership:removed(Mem) of
        [] -> {Is, T, Dr, C, S};
        Removed -> {[{mem, Mem, Removed} | Is], T, Dr, C, S}
    end;
special({prune, Before}, {Is, T, Dr, C, S}) ->
    Mem = sderl_membership:prune(Before, C#c.mem),
    {[{mem, Mem, []} | Is], T, Dr, C#c{mem = Mem}, S};
special({mem, Mem0, From}, {Is, T, Dr, C, S}) ->
    Mem = sderl_core:union(Mem0, C#c.mem, S),
    {[mem_item(Mem, C#c.mem) | Is], [{adopt, [From]} | T], Dr, C#c{mem = Mem}, S};
special({merge, Members, Rows0, Sessions0, Open0}, {Is, T, Dr, #c{view = V} = C0, #s{d = #d{clashes = Cl}} = S0}) ->
    %% Some of them may have gone again while this waited, or lost their name just now.
    Lost = lists:append([Pids || {settle, _, Pids, _} <- Is]),
    Rows = [R || {_, Pid, Home, _, _} = R <- Rows0, is_map_key(Home, V), not lists:member(Pid, Lost)],
    Sessions = maps:with(maps:keys(V), Sessions0),
    {Kept, C, S, Open} = lists:foldl(fun(R, A) -> merge_row(R, Dr, A) end, {[], C0, S0, maps:without(maps:keys(Cl), Open0)}, Rows),
    %% Decided once the batch is on all members: should we die before, they know what is open.
    Resolve = [{resolve, Name, A, B} || Name := {A, B} <- maps:iterator(Open, ordered)],
    {[{clashes, Open} || map_size(Open) > 0] ++ [{merge, lists:reverse(Kept), Sessions} | Is],
     Resolve ++ [merged, {adopt, Members} | T], Dr, C, S};
%% Rows that a merge drops with their home, or that came from elsewhere, and that home never had.
special({unseen, Rows}, {Is, T, Dr, #c{view = V} = C0, S}) ->
    {Keep, C} = lists:foldl(fun({Name, Pid, Home, _, _} = Row, {Ks, C1}) ->
        Again = is_map_key(Home, V) andalso case name(Name, C1) of
            {_, Pid, _, _, _} -> lists:member(Home, Dr);
            none -> not lists:member(Home, Dr) andalso pid_name(Pid, C1) =:= none;
            _ -> false
        end,
        case Again of
            true -> {[Row | Ks], put_row(Row, C1)};
            false -> {Ks, C1}
        end
    end, {[], C0}, Rows),
    {[{merge, Keep, #{}} || Keep =/= []] ++ Is, T, Dr, C, S};
%% What another part of the group removed while its home was not there, and what came back of it.
special({tombs, Tomb}, {Is0, T, Dr, C0, S}) ->
    {Is, C} = lists:foldl(fun({Name, Vers}, {Is1, C1}) ->
        case name(Name, C1) of
            {_, _, _, Ver, _} = Row ->
                case lists:member(Ver, Vers) of
                    true -> {[{settle, Name, [], none} | Is1], del_row(Row, C1)};
                    false -> {Is1, C1}
                end;
            none -> {Is1, C1}
        end
    end, {Is0, C0}, lists:append([lists:sort(maps:to_list(Of)) || _ := Of <- Tomb])),
    {Is, T, Dr, C, S};
special({settle, Name, A, B, Keep, Fx}, {Is, T, Dr, C, S}) ->
    Open = is_map_key(Name, S#s.d#d.clashes) andalso not lists:any(fun(I) -> element(1, I) =:= settle andalso element(2, I) =:= Name end, Is),
    case Open of
        true -> settle(Name, A, B, Keep, Fx, Is, T, Dr, C, S);
        false -> {Is, T, Dr, C, S}
    end.

settle(Name, A, B, Keep, Fx, Is, T, Dr, C, S) ->
    {PidA, PidB} = {element(2, A), element(2, B)},
    Held = kept(Name, Dr, C),
    Here = is_map_key(element(3, B), C#c.view) andalso pid_name(PidB, C) =:= none,
    {Lost, Row, Now, C1} = case Held of
        %% One of the two went while the resolver ran: nothing is left to decide.
        none when Here -> {[], B, [], put_row(B, C)};
        none -> {[], none, [], C};
        {_, PidA, _, _, _} when not Here -> {[PidB], Held, [], C};
        {_, PidA, _, _, _} when Keep =:= PidA -> {[PidB], Held, Fx, C};
        {_, PidA, _, _, _} when Keep =:= PidB -> {[PidA], B, Fx, put_row(B, del_row(Held, C))};
        {_, PidA, _, _, _} -> {[PidA, PidB], none, Fx, del_row(Held, C)};
        %% Ours went, and theirs came again with a later merge.
        {_, PidB, _, _, _} -> {[], Held, [], C};
        %% Somebody re-registered the name meanwhile: that stands.
        _ -> {[PidB], Held, [E || {_, P, _} = E <- Fx, P =:= PidB], C}
    end,
    %% Always an item, also where no row changes: everyone hears who lost, and the effects wait for
    %% the batch to be committed.
    %% Its row is the last word on the name, also for a learner, to which merged rows come twice.
    {[{settle, Name, Lost, Row} | [unmerged(Name, I) || I <- Is]], [{clash_effects, Now} | T], Dr, C1, S}.

unmerged(Name, {merge, Rows, Sessions}) -> {merge, lists:keydelete(Name, 1, Rows), Sessions};
unmerged(_, Item) -> Item.

%% The union by home (rule 15): what another component brings for its own members is theirs to
%% say; only a name that both sides hold for different processes is a clash (rule 18).
merge_row({Name, Pid, _, _, _} = Row, Drops, {Kept, C, S, Open}) ->
    case kept(Name, Drops, C) of
        none ->
            Gone = case name(Name, C) of none -> C; Dropped -> del_row(Dropped, C) end,
            merge_free(Row, Drops, {Kept, Gone, S, Open});
        {_, Pid, _, _, _} = Same ->
            {[Row | Kept], put_row(Row, del_row(Same, C)), S, Open};
        Ours ->
            S1 = sderl_core:event(name_clash, #{name => Name, pids => [element(2, Ours), Pid]}, S),
            {Kept, C, S1, Open#{Name => {Ours, Row}}}
    end.

%% The row of a name once this batch has let go of who left. What the batch itself brought before is
%% newer than that.
kept(Name, Drops, #c{names = Ns} = C) ->
    case name(Name, C) of
        {_, _, Home, _, _} = Row when not is_map_key(Name, Ns) ->
            case lists:member(Home, Drops) of true -> none; false -> Row end;
        Row -> Row
    end.

merge_free({Name, Pid, _, _, _} = Row, Drops, {Kept, C, S, Open}) ->
    Free = case pid_name(Pid, C) of
        none -> true;
        {ok, Name} -> true;
        {ok, Other} -> kept(Other, Drops, C) =:= none
    end,
    case Free of
        true -> {[Row | Kept], put_row(Row, C), S, Open};
        false -> {Kept, C, S, Open}
    end.

%% ---------------------------------------------------------------- members' operations

%% Changes of the membership come behind all lists: homes in a batch are told by the membership
%% before it.
seg({Origin, Sid, R, Ops}, {Items, Last, #c{view = V} = C0}) when is_map_key(Origin, V) ->
    {As, Extra, C} = ops(Ops, Origin, [], true, [], C0),
    {[{seg, Origin, Sid, R, Ops, As} | Items], Extra ++ Last, C};
%% It went while its list waited here: it asks where it is now.
seg(_, Acc) -> Acc.

ops([], _, _, true, Extra, C) -> {default, Extra, C};
ops([], _, As, false, Extra, C) -> {lists:reverse(As), Extra, C};
ops([Op | Ops], Origin, As, Default, Extra, #c{mem = Mem} = C0) ->
    case sderl_membership:is_member(Origin, Mem) of
        false -> ops(Ops, Origin, [{no, not_member} | As], false, Extra, C0);
        true ->
            case repeated(Op, Origin, C0) of
                {A, C} ->
                    ops(Ops, Origin, [A | As], Default andalso A =:= sderl_core_write:default(Op), Extra, C);
                {A, Item, C} ->
                    ops(Ops, Origin, [A | As], Default andalso A =:= sderl_core_write:default(Op), [Item | Extra], C)
            end
    end.

%% What it did the first time stands where the member's own rows, which it brought as they were
%% before, do not say otherwise: an unregistration spares successors, a registration finds itself.
%% Such an answer changes no row, as every `no`; the client hears what it was the first time.
repeated(Op, Origin, #c{again = false} = C) -> op(Op, Origin, C);
repeated([Name | Pid], Origin, C) -> repeated({r, Name, Pid, []}, Origin, C);
repeated({Name} = Op, Origin, C) ->
    case name(Name, C) of
        {_, _, Home, _, _} when Home =/= Origin -> {{no, {repeated, ok}}, C};
        _ -> op(Op, Origin, C)
    end;
repeated(Op, Origin, C) when element(1, Op) =:= r; element(1, Op) =:= x; element(1, Op) =:= rr ->
    {Name, Pid} = {element(2, Op), element(3, Op)},
    case name(Name, C) of
        {_, Pid, _, _, _} -> {{no, {repeated, yes}}, C};
        _ -> op(Op, Origin, C)
    end;
repeated(Op, Origin, C) -> op(Op, Origin, C).

op([Name | Pid], Origin, C) ->
    op({r, Name, Pid, []}, Origin, C);
op({r, Name, Pid, Opts}, Origin, C) ->
    case name(Name, C) of
        none -> take(Name, Pid, Opts, Origin, none, name_or_pid_already_registered, C);
        _ -> {{no, name_or_pid_already_registered}, C}
    end;
op({x, Name, Pid, Old, Opts}, Origin, C) ->
    case name(Name, C) of
        {_, Held, _, _, _} when Held =/= Old -> {{no, name_or_pid_already_registered}, C};
        Found -> take(Name, Pid, Opts, Origin, Found, name_or_pid_already_registered, C)
    end;
op({rr, Name, Pid, Opts}, Origin, C) ->
    take(Name, Pid, Opts, Origin, name(Name, C), pid_is_already_registered, C);
op({Name}, _, C) ->
    case name(Name, C) of
        none -> {ok, C};
        Row -> {ok, del_row(Row, C)}
    end;
op({d, Name, Pid}, _, C) ->
    case name(Name, C) of
        {_, Pid, _, _, _} = Row -> {ok, del_row(Row, C)};
        _ -> {ok, C}
    end;
op({add, Nodes}, _, #c{mem = Mem0} = C) ->
    Mem = sderl_membership:add(Nodes, Mem0),
    New = sderl_membership:members(Mem) -- sderl_membership:members(Mem0),
    {{ok, New}, mem_item(Mem, Mem0), C#c{mem = Mem}};
op({remove, Nodes, Time}, _, #c{mem = Mem0} = C) ->
    Mem = sderl_membership:remove(Nodes, Time, Mem0),
    {ok, mem_item(Mem, Mem0), C#c{mem = Mem}};
op(delete, _, #c{mem = Mem} = C) ->
    {ok, delete, C#c{mem = sderl_membership:remove(sderl_membership:members(Mem), 0, Mem)}};
op(_Unknown, _, C) ->
    {{no, unknown_operation}, C}.

%% The version is set where the row is written: it is the place in the batch.
take(Name, Pid, Opts, Origin, Old, Why, C) ->
    case pid_name(Pid, C) of
        none ->
            case {home(Pid, Origin, C), Old} of
                {outside, _} -> {{no, unreachable_pid}, C};
                {Home, none} -> {yes, put_row({Name, Pid, Home, new, Opts}, C)};
                {Home, _} -> {yes, put_row({Name, Pid, Home, new, Opts}, del_row(Old, C))}
            end;
        _ -> {{no, Why}, C}
    end.

%% No name has a home outside the component (rule 15).
home(Pid, Origin, #c{view = V, mem = Mem}) ->
    Node = node(Pid),
    case V of
        #{Node := live} -> Node;
        %% Aside, it would not hear of it: the name would go with its link, and nobody had it then.
        #{Node := _} -> outside;
        _ ->
            case sderl_membership:is_member(Node, Mem) of
                true -> outside;
                false -> Origin
            end
    end.

mem_item(Mem, Old) ->
    {mem, Mem, sderl_membership:members(Old) -- sderl_membership:members(Mem)}.

%% ---------------------------------------------------------------- table and overlay

name(Name, #c{names = Ns, mod = Mod, store = St}) ->
    case Ns of
        #{Name := Row} -> Row;
        _ -> Mod:lookup(St, Name)
    end.

pid_name(Pid, #c{pids = Ps, mod = Mod, store = St}) ->
    case Ps of
        #{Pid := none} -> none;
        #{Pid := [Name]} -> {ok, Name};
        _ -> Mod:name_of(St, Pid)
    end.

put_row({Name, Pid, _, _, _} = Row, #c{names = Ns, pids = Ps} = C) ->
    C#c{names = Ns#{Name => Row}, pids = Ps#{Pid => [Name]}}.

%% A row that leaves while its home is set aside is remembered: should that node's link go before
%% it has caught up, it would bring the name back at the merge.
del_row({Name, Pid, Home, Ver, _}, #c{names = Ns, pids = Ps, view = V, tomb = T, buries = Buries} = C0) ->
    C = C0#c{names = Ns#{Name => none}, pids = Ps#{Pid => none}},
    case V of
        #{Home := {_, _}} when Ver =/= new, Buries ->
            Of = maps:get(Home, T, #{}),
            Vers = lists:sublist([Ver | maps:get(Name, Of, [])], 64),
            C#c{tomb = T#{Home => Of#{Name => Vers}}, tombed = true};
        _ -> C
    end.
