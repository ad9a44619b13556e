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
%% member comes from has the batch. Where the member is before the offer, that was noted as it was merged: a name that it
%% brought and that was removed since would be back. Nor does one come back that was removed in the member's absence.
%%
%% Every member remembers, as each may lead one day; a process does not over its own death.

-include("sderl_core.hrl").

-export([note/5, told/2, came/4, put/3, merged/4, offered/2]).

-doc """
Who no longer counts in the new view, and what the last batch (of this epoch and number) registered for
it. Who has another place in it has been given what there was.
""".
-spec note({#{node() => place()}, #{node() => place()}}, [term()], epoch(), non_neg_integer(), #s{}) -> #s{}.
note({Same, Same}, _, _, _, S) -> S;
note({Old, New}, Items, E, Num, #s{unseen = U0, from = From} = S) ->
    U = maps:filter(fun(N, _) -> not is_map_key(N, New) orelse map_get(N, New) =:= maps:get(N, Old, none) end, U0),
    Gone = [N || N := live <- Old, maps:get(N, New, none) =/= live],
    Rows = lists:sort(maps:values(rows(Items, E, Num, Gone))),
    S#s{unseen = maps:merge(U, maps:groups_from_list(fun home/1, Rows)), from = maps:with(maps:keys(New), From)}.

-doc "What goes along with an offer.".
-spec told(map(), #s{}) -> map().
told(Info, #s{unseen = U, d = #d{history = H, tomb = T}}) ->
    Rows = [R || Rs <- maps:values(U), R <- Rs, not sderl_core_merge:removed(R, T)],
    maps:merge(Info, maps:from_list([{history, H} || H =/= []] ++ [{unseen, Rows} || Rows =/= []])).

-doc "Of members that are merged: what the log that they come from has not.".
-spec merged([node()], #{node() => {epoch(), non_neg_integer()}}, [{epoch(), non_neg_integer()}], #s{}) -> [sderl_core:row()].
merged(Members, At, History, #s{unseen = U, d = #d{tomb = T}}) ->
    [R || M <- Members, R <- maps:get(M, U, []), not had(R, logs(map_get(M, At), History)), not sderl_core_merge:removed(R, T)].

-doc "Members that are merged come from there.".
-spec came([node()], #{node() => {epoch(), non_neg_integer()}}, [{epoch(), non_neg_integer()}], #s{}) -> #s{}.
came(Members, At, History, #s{from = From} = S) ->
    S#s{from = maps:merge(From, #{M => logs(map_get(M, At), History) || M <- Members})}.

-doc """
A merge is ordered: of members that come, where a follower has only their places, or of rows alone, which their
homes have from now on.
""".
-spec put([sderl_core:row()], map(), #s{}) -> #s{}.
put(Rows, Sessions, #s{from = From} = S) when map_size(Sessions) =:= 0 ->
    S#s{from = lists:foldl(fun({_, _, Home, {E, Seq}, _}, F) ->
        F#{Home => lists:usort([{E, sderl_core:batch_of(Seq)} | maps:get(Home, F, [])])}
    end, From, Rows)};
put(_, Sessions, #s{from = From, d = #d{view = V}} = S) ->
    Came = #{N => [Place] || N := _ <- Sessions, #{N := {_, _} = Place} <- [V], not lists:member(Place, maps:get(N, From, []))},
    S#s{from = maps:merge(From, Came)}.

-doc "What an offer tells of: for members that are here at once, the rest is remembered.".
-spec offered(map(), #s{}) -> {[sderl_core:row()], #s{}}.
offered(#{unseen := [_ | _] = Told}, #s{num = Num, unseen = U, from = From, d = #d{lineage = E, history = H, view = V, tomb = T}} = S) ->
    New = [R || R <- Told, not had(R, [{E, Num} | H]), not had(R, maps:get(home(R), From, [])), not sderl_core_merge:removed(R, T)],
    {Here, Later} = lists:partition(fun(R) -> is_map_key(home(R), V) end, New),
    {Here, S#s{unseen = maps:merge(maps:groups_from_list(fun home/1, Later), U)}};
offered(_, S) -> {[], S}.

home({_, _, Home, _, _}) -> Home.

%% What a member at that position of a log has, of all that the log grew out of.
logs({E, _} = Place, History) -> [Place | [Ended || {Before, _} = Ended <- History, Before < E]].

had({_, _, _, {E, Seq}, _}, Logs) ->
    Num = sderl_core:batch_of(Seq),
    lists:any(fun({Of, Last}) -> Of =:= E andalso Num =< Last end, Logs).

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
