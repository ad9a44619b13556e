%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_operate).
-moduledoc false.
%% How a batch decides the operations of members' clients: one after the other, each against the
%% state that those before it have left (`sderl_core_overlay`).

-include("sderl_core.hrl").
-include("sderl_core_overlay.hrl").

-export([seg/2, decided_list/5, keeps_majority/2, changed/2]).
-import(sderl_core_overlay, [name/2, pid_name/2, put_row/2, del_row/2]).

-doc """
Decides the list of a member. Changes of the membership come after all lists, because the homes in a
batch follow from the membership before it.
""".
-spec seg(Request :: tuple(), {Items, Last :: Items, sderl_core_overlay:overlay()}) ->
    {Items, Last :: Items, sderl_core_overlay:overlay()} when Items :: [sderl_op:item() | delete].
seg(?LIST(Origin, Sid, R, Ops), {Items, Last, #c{view = V} = C0}) when is_map_key(Origin, V) ->
    {As, Extra, C} = ops(Ops, Origin, [], true, [], C0),
    {[decided_list(Origin, Sid, R, Ops, As) | Items], Extra ++ Last, C};
%% The member went while its list waited here: it asks again where it is now.
seg(_, Acc) -> Acc.

ops([], _, _, true, Extra, C) -> {default, Extra, C};
ops([], _, As, false, Extra, C) -> {lists:reverse(As), Extra, C};
ops([Op | Ops], Origin, As, Default, Extra, #c{mem = Mem} = C0) ->
    case sderl_membership:is_member(Origin, Mem) of
        false -> ops(Ops, Origin, [{no, not_member} | As], false, Extra, C0);
        true ->
            {A, Items, C} = case op(Op, Origin, C0) of
                {Answer, C1} -> {Answer, [], C1};
                {Answer, Item, C1} -> {Answer, [Item], C1}
            end,
            IsDefault = Default andalso A =:= sderl_core_answer:default(Op),
            ops(Ops, Origin, [A | As], IsDefault, Items ++ Extra, C)
    end.

op(?REGISTER(Name, Pid), Origin, C) ->
    op(#?REGISTER_WITH{name = Name, pid = Pid, options = []}, Origin, C);
op(#?REGISTER_WITH{name = Name, pid = Pid, options = Options}, Origin, C) ->
    case name(Name, C) of
        none -> take(Name, Pid, Options, Origin, none, name_or_pid_already_registered, C);
        _ -> {{no, name_or_pid_already_registered}, C}
    end;
op(#?REGISTER_OVER{name = Name, pid = Pid, dead = Dead, options = Options}, Origin, C) ->
    case name(Name, C) of
        ?ROW_OF(Held) when Held =/= Dead -> {{no, name_or_pid_already_registered}, C};
        Found -> take(Name, Pid, Options, Origin, Found, name_or_pid_already_registered, C)
    end;
op(#?RE_REGISTER{name = Name, pid = Pid, options = Options}, Origin, C) ->
    take(Name, Pid, Options, Origin, name(Name, C), pid_is_already_registered, C);
op(?UNREGISTER(Name), Origin, C) ->
    remove(name(Name, C), Origin, C);
op(?UNREGISTER_OF(Name, Pid), Origin, C) ->
    case name(Name, C) of
        %% The name's home is the node of its process, which itself reports its death. A node that
        %% watched the process, and lost the link to it, did so before the name had this home.
        ?ROW_OF_AT(Pid, Home) when Home =:= node(Pid), Home =/= Origin -> {{no, not_its_home}, C};
        ?ROW_OF(Pid) = Row -> remove(Row, Origin, C);
        _ -> {ok, C}
    end;
op(#add{nodes = Nodes}, _, #c{mem = Mem0} = C) ->
    Mem = sderl_membership:add(Nodes, Mem0),
    New = sderl_membership:members(Mem) -- sderl_membership:members(Mem0),
    change({ok, New}, Mem, C);
op(#remove{nodes = Nodes, time = Time}, _, #c{mem = Mem0} = C) ->
    change(ok, sderl_membership:remove(Nodes, Time, Mem0), C);
op(#read{name = Name}, _, C) ->
    case name(Name, C) of
        none -> {{read, undefined}, C};
        ?ROW_OF(Pid) -> {{read, Pid}, C}
    end;
op(delete, _, #c{mem = Mem} = C) ->
    {ok, delete, C#c{mem = sderl_membership:remove(sderl_membership:members(Mem), 0, Mem)}};
op(_Unknown, _, C) ->
    {{no, unknown_operation}, C}.

%% Rule 32: the live members have to be a majority of the new membership, too.
change(Answer, Mem, #c{mem = Mem0} = C) ->
    case keeps_majority(Mem, C) of
        true -> {Answer, changed(Mem, Mem0), C#c{mem = Mem}};
        false -> {{no, no_majority}, C}
    end.

-doc "Whether the live members are a majority of the new membership, too.".
-spec keeps_majority(sderl_membership:t(), sderl_core_overlay:overlay()) -> boolean().
keeps_majority(_, #c{mode = available}) -> true;
keeps_majority(Mem, #c{mem = Mem}) -> true;
%% A node that is removed and added again in one batch has lost its place in the component when the
%% batch is applied.
keeps_majority(Mem, #c{view = V, was = Was}) ->
    Live = #{N => [] || N := live <- V, maps:get(N, Mem, none) =:= maps:get(N, Was, none)},
    sderl_membership:is_majority(Live, Mem).

remove(none, _, C) -> {ok, C};
remove(?ROW_AT(Home) = Row, Origin, C) ->
    case may_change(Row, C) of
        true -> {about(ok, Origin, [Home]), del_row(Row, C)};
        false -> {{no, later}, C}
    end.

%% The version is set where the row is written, as it is the place in the batch.
take(Name, Pid, Options, Origin, Old, Why, C) ->
    case {pid_name(Pid, C), home(Pid, Origin, C), Old} of
        {{ok, _}, _, _} -> {{no, Why}, C};
        {none, outside, _} -> {{no, unreachable_pid}, C};
        {none, Home, none} ->
            Row = ?ROW(Name, Pid, Home, new, Options),
            {about(yes, Origin, [Home]), put_row(Row, C)};
        {none, Home, ?ROW_AT(Before)} ->
            case may_change(Old, C) of
                true ->
                    Row = ?ROW(Name, Pid, Home, new, Options),
                    Homes = lists:usort([Home, Before]),
                    {about(yes, Origin, Homes), put_row(Row, del_row(Old, C))};
                false -> {{no, later}, C}
            end
    end.

%% The shard of a member that is set aside is frozen: it would not hear of the change. And while a
%% name has a clash, a process that was replaced might come back when the clash is settled.
may_change(?ROW_AT(Home) = Row, #c{view = V, clashes = Clashes}) ->
    maps:get(Home, V, none) =:= live andalso not sderl_core_clash:is_beside(Row, Clashes).

%% An answer, with the homes beside its client's node that have to acknowledge it.
about(Answer, Origin, Homes) ->
    case lists:delete(Origin, Homes) of
        [] -> Answer;
        [Home] -> {Answer, Home};
        Both -> {Answer, Both}
    end.

%% No name has a home outside the component (rule 15).
home(Pid, Origin, #c{view = V, mem = Mem}) ->
    Node = node(Pid),
    case V of
        #{Node := live} -> Node;
        %% Set aside, that member would not hear of the name, which would go with its link.
        #{Node := _} -> outside;
        _ ->
            case sderl_membership:is_member(Node, Mem) of
                true -> outside;
                false -> Origin
            end
    end.

-doc "The item for a new membership.".
-spec changed(sderl_membership:t(), Old :: sderl_membership:t()) -> #mem{}.
changed(Mem, Old) ->
    Removed = sderl_membership:members(Old) -- sderl_membership:members(Mem),
    #mem{membership = Mem, removed = Removed}.

-doc "The item for a list that was decided.".
-spec decided_list(node(), Session :: term(), pos_integer(), [operation()],
                   Answers :: default | [term()]) -> #seg{}.
decided_list(Member, Session, Number, Operations, Answers) ->
    #seg{
        member = Member,
        session = Session,
        number = Number,
        operations = Operations,
        answers = Answers
    }.
