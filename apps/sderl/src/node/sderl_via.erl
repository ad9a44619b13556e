%% SPDX-License-Identifier: Apache-2.0
-module(sderl_via).
-moduledoc false.
%% Why a process was not registered under its `via` name. For OTP a registration has the answers yes
%% and no only: after a no it looks the name up, and reports `{already_started, undefined}` if no
%% process has it. The reason is logged here, once a minute for each group and reason.

-export([refused/3, no_majority/2]).

-define(AGAIN_S, 60).
%% How many groups and reasons are told apart; more are not logged until the first are forgotten.
-define(MOST, 100).
-define(NOT_RUNNING, {sderl, via_not_running}).

-doc """
Logs why the process was not registered, but not that the name is taken, because OTP reports the
process that has it, and not that the term is no live process, a mistake that OTP does not make.
""".
-spec refused(Group :: term(), Name :: term(), Why :: atom()) -> ok.
refused(_, _, name_or_pid_already_registered) -> ok;
refused(_, _, not_a_pid) -> ok;
refused(_, _, dead_pid) -> ok;
refused(Group, Name, Why) ->
    _ = sderl_running:while(fun() ->
        {Reason, Sentence} = explain(Group, Why),
        is_due(Group, Reason) andalso
            sderl_event:emit(via_refused, #{group => Group, name => Name, reason => Reason,
                                            sentence => Sentence})
    end),
    ok.

-doc """
Ends the start of a process in a group that has no majority here. OTP returns the reason of this
exit as the error of the start, so it need not be looked for in the log.
""".
-spec no_majority(Group :: term(), Name :: term()) -> no_return().
no_majority(Group, Name) -> exit({no_majority, {s_group, register_name, [Group, Name]}}).

explain(_, not_running) ->
    {not_running, "the application sderl does not run here; name it among the applications that "
                  "yours needs, which are started before it"};
explain(_, connect_all) ->
    {connect_all, "this node connects to every other by itself; start it with -connect_all false"};
explain(undefined, cannot_register_in_remote_group) ->
    {not_free, "this node is in s_groups, and only nodes in none have free names; "
               "register it in one of them"};
explain(Group, cannot_register_in_remote_group) ->
    Members = sderl_dir:known(Group) -- [node(), nonode@nohost],
    explain_group(Group, is_entering(Group), is_alive(), Members);
explain(_, Why) ->
    {Why, text("~0tp", [Why])}.

explain_group(_, true, _, _) ->
    {not_entered, "this node has not entered the group yet; with the option await the application "
                  "sderl has started when it is in"};
explain_group(Group, false, false, _) ->
    {not_distributed,
     text("this node has no name (~w) and is not in the group; start it with -sname or -name, or "
          "make a group of it alone: s_group:new_s_group(~0tp, [node()]) before the process "
          "starts, "
          "or {~0tp, normal, [~w]} among the s_groups of the configuration",
          [node(), Group, Group, node()])};
explain_group(Group, false, true, []) ->
    {unknown_group,
     text("no group of that name is known here; make it with s_group:new_s_group(~0tp, Nodes) or "
          "name it in the configuration, with ~w among its nodes", [Group, node()])};
explain_group(Group, false, true, [_ | _] = Members) ->
    {not_a_member,
     text("this node is no member of the group, which has the nodes ~0tp; enter it first: "
          "s_group:enter(~0tp, ~0tp)", [Members, Group, lists:sublist(Members, 3)])}.

%% Whether the configuration has this node enter the group through seeds, which may take a while.
is_entering(Group) ->
    Configured = maps:get(groups, sderl_dir:options(), []),
    lists:any(fun(#{name := Name, members := Members}) ->
        Name =:= Group andalso is_tuple(Members)
    end, Configured).

%% Without the application there is no table, and one line a minute is enough for all groups.
is_due(_, not_running) ->
    Now = erlang:monotonic_time(second),
    case persistent_term:get(?NOT_RUNNING, Now) > Now of
        true -> false;
        false ->
            persistent_term:put(?NOT_RUNNING, Now + ?AGAIN_S),
            true
    end;
is_due(Group, Reason) -> sderl_refused:first({via_refused, Group, Reason}, ?AGAIN_S, ?MOST).

text(Format, Args) -> unicode:characters_to_list(io_lib:format(Format, Args)).
