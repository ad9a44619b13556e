%% SPDX-License-Identifier: Apache-2.0
-module(sderl_register).
-moduledoc false.
%% Registrations, in the caller's process: whether the process lives is asked on its own node, and
%% a name whose process is dead on this node counts as free here.

-include("../core/sderl_op.hrl").

-export([register/4, re_register/3, unregister/2]).

-doc """
Arguments and answers are those of `s_group:register_name/4`; the options are checked already, `[]`
for none.
""".
-spec register(term(), term(), term(), [] | map()) -> yes | {no, atom()}.
register(Group, Name, Pid, Options) ->
    case alive(Group, Pid) of
        ok ->
            Op = case held_by_dead(Group, Name) of
                {dead, Dead} ->
                    #?REGISTER_OVER{name = Name, pid = Pid, dead = Dead, options = Options};
                _ -> sderl_op:register(Name, Pid, Options)
            end,
            answer(sderl_client:write(Group, Op), cannot_register_in_remote_group);
        No -> No
    end.

-spec re_register(term(), term(), term()) -> yes | {no, atom()}.
re_register(Group, Name, Pid) ->
    case alive(Group, Pid) of
        ok ->
            Op = #?RE_REGISTER{name = Name, pid = Pid, options = []},
            answer(sderl_client:write(Group, Op), cannot_re_register_in_remote_group);
        No -> No
    end.

-spec unregister(term(), term()) -> ok | {no, atom()}.
unregister(Group, Name) ->
    answer(sderl_client:write(Group, ?UNREGISTER(Name)), cannot_unregister_from_remote_group).

answer({ok, Answer}, _) -> Answer;
answer({error, not_member}, Remote) -> {no, Remote};
answer({error, Why}, _) -> {no, Why}.

%% Asked on the pid's node, by the caller itself because it may take a while.
alive(_, Pid) when not is_pid(Pid) -> {no, not_a_pid};
alive(_, Pid) when node(Pid) =:= node() -> alive_is(is_process_alive(Pid));
alive(Group, Pid) ->
    try sderl_dir:group(Group) of
        none -> ok;
        #{members := Members, coordinator := Lead} ->
            case lists:member(node(Pid), Members) of
                true -> alive_as(sderl_ask:ask(node(Pid), {alive, Pid}, 4000));
                false when Lead =:= undefined -> {no, unreachable_pid};
                false ->
                    case sderl_ask:ask(Lead, {reach, Group, Pid}, 9000) of
                        {ok, Answer} -> alive_as(Answer);
                        {error, _} -> {no, unreachable_pid}
                    end
            end
    catch
        error:badarg -> {no, not_running}
    end.

alive_as({ok, Alive}) when is_boolean(Alive) -> alive_is(Alive);
alive_as(_) -> {no, unreachable_pid}.

alive_is(true) -> ok;
alive_is(false) -> {no, dead_pid}.

%% A name whose process is dead on this node counts as free here (rule 17), but only as long as
%% that process still holds it when the group decides.
held_by_dead(Group, Name) ->
    try sderl_names:pid(Group, Name) of
        Pid when node(Pid) =:= node() ->
            case is_process_alive(Pid) of
                true -> held;
                false -> {dead, Pid}
            end;
        _ -> held
    catch
        error:badarg -> held
    end.
