%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_unseen).
-moduledoc false.
%% Names of a member that it may never have heard of.
%%
%% A client registers a process that lives on another member, and that member falls silent while the
%% batch is out: it is set aside or let go, and the client is told `yes`. At a merge every member says
%% itself which names its processes have (rule 15), and would not say this one. So a coordinator
%% remembers the rows of the last batch whose home went while it was out, takes them along when it
%% gives its component up, and orders them again once that member is there, unless the log that the
%% member comes from has the batch.
%%
%% Every member remembers, as each may lead one day; a process does not over its own death.

-include("sderl_core.hrl").

-export([note/5, told/2, merged/4, offered/2]).

-doc """
Who no longer counts in the new view, and what the last batch (of this epoch and number) registered for
it. Who has another place in it has been given what there was.
""".
-spec note({#{node() => place()}, #{node() => place()}}, [term()], epoch(), non_neg_integer(), #s{}) -> #s{}.
note({Same, Same}, _, _, _, S) -> S;
note({Old, New}, Items, E, Num, #s{unseen = U0} = S) ->
    U = maps:filter(fun(N, _) -> not is_map_key(N, New) orelse map_get(N, New) =:= maps:get(N, Old, none) end, U0),
    Gone = [N || N := live <- Old, maps:get(N, New, none) =/= live],
    Rows = maps:values(rows(Items, E, Num, Gone)),
    S#s{unseen = maps:merge(U, maps:groups_from_list(fun home/1, Rows))}.

-doc "What goes along with an offer.".
-spec told(map(), #s{}) -> map().
told(Info, #s{unseen = U, d = #d{history = H}}) ->
    maps:merge(Info, maps:from_list([{history, H} || H =/= []] ++ [{unseen, lists:append(maps:values(U))} || map_size(U) > 0])).

-doc "Of members that are merged: what the log that they come from has not.".
-spec merged([node()], #{node() => {epoch(), non_neg_integer()}}, [{epoch(), non_neg_integer()}], #s{}) -> [sderl_core:row()].
merged(Members, At, History, #s{unseen = U}) ->
    [R || M <- Members, R <- maps:get(M, U, []), not has(R, map_get(M, At), History)].

-doc "What an offer tells of: for members that are here at once, the rest is remembered.".
-spec offered(map(), #s{}) -> {[sderl_core:row()], #s{}}.
offered(#{unseen := [_ | _] = Told}, #s{num = Num, unseen = U, d = #d{lineage = E, history = H, view = V}} = S) ->
    New = [R || R <- Told, not has(R, {E, Num}, H)],
    {Here, Later} = lists:partition(fun(R) -> is_map_key(home(R), V) end, New),
    {Here, S#s{unseen = maps:merge(maps:groups_from_list(fun home/1, Later), U)}};
offered(_, S) -> {[], S}.

home({_, _, Home, _, _}) -> Home.

%% Whether a log at that position, which grew out of those, has the batch of a row.
has({_, _, _, {E, Seq}, _}, {E, Num}, _) -> sderl_core:batch_of(Seq) =< Num;
has({_, _, _, {E, Seq}, _}, _, History) ->
    case lists:keyfind(E, 1, History) of
        {_, Final} -> sderl_core:batch_of(Seq) =< Final;
        false -> false
    end.

%% The rows that a batch leaves, of these homes. Numbered as the table numbers them.
rows(Items, E, Num, Homes) ->
    {_, Rows} = lists:foldl(fun
        %% (What its own clients asked for it asks again.)
        ({seg, O, _, _, Ops, As}, {Seq, Acc}) -> ops(Ops, As, E, Seq, lists:delete(O, Homes), Acc);
        (_, Acc) -> Acc
    end, {sderl_core:seq(Num, 0), #{}}, Items),
    Rows.

ops([], _, _, Seq, _, Acc) -> {Seq, Acc};
ops([Op | Ops], default, E, Seq, Homes, Acc) -> ops(Ops, default, E, Seq + 1, Homes, op(Op, {E, Seq + 1}, Homes, Acc));
ops([_ | Ops], [{no, _} | As], E, Seq, Homes, Acc) -> ops(Ops, As, E, Seq + 1, Homes, Acc);
ops([Op | Ops], [_ | As], E, Seq, Homes, Acc) -> ops(Ops, As, E, Seq + 1, Homes, op(Op, {E, Seq + 1}, Homes, Acc)).

op([Name | Pid], V, Homes, Acc) -> put_row(Name, Pid, [], V, Homes, Acc);
op({Name}, _, _, Acc) -> maps:remove(Name, Acc);
op({d, Name, Pid}, _, _, Acc) ->
    case Acc of
        #{Name := {_, Pid, _, _, _}} -> maps:remove(Name, Acc);
        _ -> Acc
    end;
op({r, Name, Pid, Opts}, V, Homes, Acc) -> put_row(Name, Pid, Opts, V, Homes, Acc);
op({rr, Name, Pid, Opts}, V, Homes, Acc) -> put_row(Name, Pid, Opts, V, Homes, Acc);
op({x, Name, Pid, _, Opts}, V, Homes, Acc) -> put_row(Name, Pid, Opts, V, Homes, Acc);
op(_, _, _, Acc) -> Acc.

put_row(Name, Pid, Opts, Version, Homes, Acc) ->
    case lists:member(node(Pid), Homes) of
        true -> Acc#{Name => {Name, Pid, node(Pid), Version, Opts}};
        false -> maps:remove(Name, Acc)
    end.
