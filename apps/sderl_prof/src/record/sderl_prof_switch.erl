%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_switch).
-moduledoc """
Switches something on of which a node has one only, and off again when the process that asked for it
ends, however it does. A guard does that, because a killed process cleans nothing up.

It needs no other module of this project, so that it can be loaded into any node.
""".

-export([on/2, off/1, take_accounting/0, threads/0]).
-export_type([switch/0]).

-doc "`none`: somebody else had switched it on, and keeps it.".
-type switch() :: none | {pid(), reference(), fun(() -> term())}.

-doc "Switches on by `On`, which tells whether it did; `Off` is called at the end.".
-spec on(fun(() -> boolean()), fun(() -> term())) -> switch().
on(On, Off) ->
    Holder = self(),
    {Guard, Monitor} = spawn_monitor(fun() -> guard(Holder, On, Off) end),
    receive
        {Guard, true} -> {Guard, Monitor, Off};
        {'DOWN', Monitor, process, _, _} -> none
    end.

guard(Holder, On, Off) ->
    Monitor = monitor(process, Holder),
    case On() of
        true ->
            Holder ! {self(), true},
            receive
                {give_back, Holder} -> ok;
                {'DOWN', Monitor, process, _, _} -> ok
            end,
            _ = Off();
        false -> ok
    end.

-doc "Switches off what this process has switched on.".
-spec off(switch()) -> ok.
off(none) -> ok;
off({Guard, Monitor, Off}) ->
    Guard ! {give_back, self()},
    receive
        {'DOWN', Monitor, process, _, normal} -> ok;
        %% It was killed.
        {'DOWN', Monitor, process, _, _} ->
            _ = Off(),
            ok
    end.

-doc "Microstate accounting.".
-spec take_accounting() -> switch().
take_accounting() ->
    on(fun() -> not erlang:system_flag(microstate_accounting, true) end,
       fun() -> erlang:system_flag(microstate_accounting, false) end).

-doc "The counters of microstate accounting by type of thread, with the number of threads.".
-spec threads() -> [{atom(), pos_integer(), #{atom() => non_neg_integer()}}].
threads() ->
    lists:foldl(fun(#{type := Type, counters := Counters}, All) ->
        {_, N, Old} = case lists:keyfind(Type, 1, All) of
            false -> {Type, 0, #{}};
            Row -> Row
        end,
        Sum = maps:merge_with(fun(_, A, B) -> A + B end, Old, Counters),
        lists:keystore(Type, 1, All, {Type, N + 1, Sum})
    end, [], erlang:statistics(microstate_accounting)).
