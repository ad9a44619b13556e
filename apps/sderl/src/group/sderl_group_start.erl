%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_start).
-moduledoc false.
%% The state that the process of a group begins with: left by its predecessor, or the membership
%% that it is started with.

-export([begins_alone/1, began/0, begins_with/3]).

-doc """
The calling process is to be the only one of this node's island. All of them have one table, and
another may still be there when an island moves: one that was killed has been started again since.
`false`: another process of the same island has begun, under the same supervisor.
""".
-spec begins_alone(Uid :: binary()) -> boolean().
begins_alone(Uid) ->
    Supervisor = whereis(sderl_group_sup),
    case began() of
        none -> begins(Uid, Supervisor);
        {Began, Pid, By} ->
            case Began =:= Uid andalso By =:= Supervisor andalso is_process_alive(Pid) of
                true -> false;
                false ->
                    Mon = monitor(process, Pid),
                    true = exit(Pid, kill),
                    receive {'DOWN', Mon, process, Pid, _} -> begins(Uid, Supervisor) end
            end
    end.

begins(Uid, Supervisor) ->
    true = ets:insert(sderl_state, {began, {Uid, self(), Supervisor}}),
    case sderl_dir:departing() of
        {Uid, _} -> sderl_dir:departs(Uid, self());
        _ -> ok
    end,
    true.

-doc "The process of an island that began last, with its supervisor; it may have ended.".
-spec began() -> none | {Uid :: binary(), pid(), Supervisor :: pid()}.
began() -> ets:lookup_element(sderl_state, began, 2, none).

-doc "The state of the protocol, the tables, and the processes that are monitored so far.".
-spec begins_with(term(), binary(), sderl_dir:start_args()) ->
    {sderl_core:state(), sderl_store:store(), sderl_store:local()}.
begins_with(Group, Uid, #{options := Options} = Args) ->
    Mode = maps:get(mode, Args, available),
    Answer = maps:get(answer, Args, committed),
    Had = case sderl_saved:recover(Group) of
        none when Group =/= undefined -> none;
        Found -> sound(Group, Found)
    end,
    Core0 = maps:merge(
        maps:with([tick_ms, aside_ms, forget_ms], Options),
        #{mode => Mode, answer => Answer, group => Group, uid => Uid, self => node(),
          addr => self(), inc => sderl_dir:incarnation(), now => sderl_clock:now_ms(),
          clock => erlang:system_time(millisecond), linked => nodes(connected)}
    ),
    Core = sderl_core:init(case Had of
        none -> maps:merge(Core0, maps:with([mem, found, ceil, fresh], Args));
        _ -> maps:merge(Core0, maps:with([durable, log, log_epoch, sessions, outbox], Had))
    end),
    Store0 = sderl_store:new(Group, sderl_core:members(Core)),
    Store = case Had of
        %% Rows of an island that this node leaves may still be there.
        none when Group =/= undefined -> sderl_store:empty(Store0);
        _ -> Store0
    end,
    {Index, Store1} = sderl_store:take_index(Store),
    _ = Index =:= none orelse sderl_watch:give_index(Index),
    Local = case Had of
        #{log := {Num, Items}, log_epoch := E} ->
            %% The predecessor may have died between the log and the rows.
            %% A free namespace that became part of another was not restarted for a fault.
            is_map_key(moved, Args) orelse sderl_event:emit(process_restarted, #{group => Group}),
            sderl_store:redo(Store1, #{}, E, Num, Items);
        _ -> #{}
    end,
    {Core, Store1, Local}.

%% Without operations that an earlier version let in and that are ill-typed: each process that is
%% started would end by them.
sound(Group, Had) ->
    case Had of
        #{outbox := {Number, List}} ->
            {Good, Bad} = lists:partition(fun({_, Op}) -> sderl_wire:operation(Op) end, List),
            lists:foreach(fun({From, _}) -> sderl_client:answer(From, {no, unknown_operation}) end,
                          Bad),
            sderl_event:dropped(sderl_group, length(Bad), #{group => Group}),
            Had#{outbox := {Number, Good}};
        _ -> Had
    end.
