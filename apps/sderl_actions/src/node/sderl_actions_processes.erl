%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_processes).
-moduledoc """
Actions on the processes of this node. Only what is shown is copied.
""".

-export([list/1, process/1, state/1, collect/1, stop/1, name/1]).

-define(STATE_BYTES, 16_384).
-define(SHOWN, 50).
%% Modules whose loops understand system messages.
-define(LOOPS, [gen_server, gen_statem, gen_event, gen_fsm, supervisor_bridge, sys]).

-doc """
A page of the processes that have the most of something. `filter`: a part of the name, the label,
the first or the present function.
""".
-spec list(map()) -> {ok, map()}.
list(#{sort := Sort, limit := Limit, offset := Offset, filter := Filter}) ->
    Wanted = string:casefold(Filter),
    Keep = Offset + Limit,
    {Found, Top} = lists:foldl(fun(Pid, {N, Top}) ->
        case value(Pid, Sort, Wanted) of
            none -> {N, Top};
            Value -> {N + 1, kept({Value, Pid}, Keep, Top)}
        end
    end, {0, gb_sets:empty()}, processes() -- [self()]),
    Page = lists:sublist(lists:reverse(gb_sets:to_list(Top)), Offset + 1, Limit),
    {ok, #{processes => [Row || {_, Pid} <- Page, #{} = Row <- [row(Pid)]], found => Found,
           total => erlang:system_info(process_count)}}.

value(Pid, Sort, <<>>) ->
    case process_info(Pid, Sort) of
        {_, Value} -> Value;
        undefined -> none
    end;
value(Pid, Sort, Wanted) ->
    case row(Pid) of
        #{name := Name, initial := Initial, current := Current, label := Label} ->
            Text = string:casefold([Name, $\n, Initial, $\n, Current, $\n, Label]),
            case string:find(Text, Wanted) of
                nomatch -> none;
                _ -> value(Pid, Sort, <<>>)
            end;
        gone -> none
    end.

kept(Entry, Most, Top) ->
    case gb_sets:size(Top) < Most of
        true -> gb_sets:add(Entry, Top);
        false ->
            case gb_sets:smallest(Top) < Entry of
                true -> gb_sets:add(Entry, gb_sets:delete(gb_sets:smallest(Top), Top));
                false -> Top
            end
    end.

row(Pid) ->
    case process_info(Pid, [registered_name, {dictionary, '$initial_call'}, initial_call,
                            current_function, {dictionary, '$process_label'}, memory,
                            message_queue_len, reductions, status]) of
        [{_, Name}, {_, Proc}, {_, Initial}, {_, Current}, {_, Label}, {_, Memory}, {_, Queue},
         {_, Reductions}, {_, Status}] ->
            #{pid => sderl_actions_show:own_pid(Pid), name => name_of(Name),
              initial => sderl_actions_show:mfa(first(Proc, Initial)),
              current => sderl_actions_show:mfa(Current), label => label(Label),
              memory => Memory, queue => Queue, reductions => Reductions,
              status => atom_to_binary(Status)};
        undefined -> gone
    end.

%% The registered name of a process without one is an empty list.
name_of([]) -> <<>>;
name_of(Name) -> sderl_actions_show:text(Name).

first({_, _, _} = Proc, _) -> Proc;
first(_, Initial) -> Initial.

label(undefined) -> <<>>;
label(Label) -> sderl_actions_show:text(Label).

-doc "The name of a process, or else its label, or its first function.".
-spec name(pid()) -> binary().
name(Pid) when node(Pid) =/= node() -> atom_to_binary(node(Pid));
name(Pid) ->
    case row(Pid) of
        #{name := <<>>, label := <<>>, initial := Initial} -> Initial;
        #{name := <<>>, label := Label} -> Label;
        #{name := Name} -> Name;
        gone -> <<"(gone)">>
    end.

-doc "One process.".
-spec process(map()) -> sderl_actions_node:result().
process(#{pid := Text}) ->
    maybe
        {ok, Pid} ?= sderl_actions_show:pid(Text),
        #{} = Row ?= row(Pid),
        [{_, Stack}, {_, Links}, {_, Monitors}, {_, By}, {_, Trap}, {_, Priority}, {_, Heap},
         {_, Gc}, {_, Leader}, {_, Ancestors}] ?=
            process_info(Pid, [current_stacktrace, links, monitors, monitored_by, trap_exit,
                               priority, total_heap_size, garbage_collection, group_leader,
                               {dictionary, '$ancestors'}]),
        {ok, Row#{
            stack => [frame(Frame) || Frame <- lists:sublist(Stack, ?SHOWN)],
            links => some(Links), links_total => length(Links),
            monitors => some([Of || {_, Of} <- Monitors]), monitors_total => length(Monitors),
            monitored_by => some(By), monitored_by_total => length(By),
            trap_exit => Trap, priority => atom_to_binary(Priority),
            heap_bytes => Heap * erlang:system_info(wordsize),
            minor_collections => proplists:get_value(minor_gcs, Gc, null),
            group_leader => sderl_actions_show:own_pid(Leader),
            ancestors => case is_list(Ancestors) of true -> some(Ancestors); false -> [] end}}
    else
        {error, _} = Error -> Error;
        _ -> {error, <<"the process ended meanwhile">>}
    end.

some(Terms) -> [sderl_actions_show:own_pid(Term) || Term <- lists:sublist(Terms, ?SHOWN)].

frame({M, F, A, Where}) ->
    Line = case Where of
        [_ | _] -> proplists:get_value(line, Where, 0);
        _ -> 0
    end,
    <<(sderl_actions_show:mfa({M, F, A}))/binary,
      (case Line of 0 -> <<>>; _ -> <<":", (integer_to_binary(Line))/binary>> end)/binary>>.

-doc """
The state of a process that understands system messages; others would keep the question in their
queue for ever, and are not asked. Nor is a process with more memory than `max_mb`, because it would
copy its state.
""".
-spec state(map()) -> sderl_actions_node:result().
state(#{pid := Text, max_mb := MaxMb, timeout_ms := Ms}) ->
    maybe
        {ok, Pid} ?= sderl_actions_show:pid(Text),
        ok ?= is_small(process_info(Pid, memory), MaxMb),
        ok ?= understands(Pid),
        {ok, State} ?= asked(Pid, Ms),
        {ok, #{pid => sderl_actions_show:own_pid(Pid), name => name(Pid),
               state => sderl_actions_show:term(State, ?STATE_BYTES)}}
    end.

is_small({memory, Memory}, MaxMb) when Memory =< MaxMb * 1_000_000 -> ok;
is_small({memory, Memory}, MaxMb) ->
    {error, io_lib:format("the process has ~b MB, more than the ~b MB (max_mb) up to which it is "
                          "asked for its state", [Memory div 1_000_000, MaxMb])};
is_small(undefined, _) -> {error, <<"the process ended meanwhile">>}.

understands(Pid) ->
    case process_info(Pid, [{dictionary, '$initial_call'}, current_stacktrace, current_function]) of
        [{_, Initial}, {_, Stack}, {_, Current}] ->
            Modules = [element(1, Frame) || Frame <- Stack],
            case lists:any(fun(M) -> lists:member(M, ?LOOPS) end, Modules)
                orelse sleeps(Initial, Current) of
                true -> ok;
                false -> no_behaviour()
            end;
        undefined -> {error, <<"the process ended meanwhile">>}
    end.

%% The stack of a hibernating process is empty.
sleeps({_, init, 1}, {erlang, hibernate, _}) -> true;
sleeps({supervisor, _, _}, {erlang, hibernate, _}) -> true;
sleeps(_, _) -> false.

no_behaviour() ->
    {error, <<"this is no gen_server, gen_statem, gen_event or supervisor: it would not understand "
              "the question, and keep it in its queue">>}.

asked(Pid, Ms) ->
    try {ok, sys:get_state(Pid, Ms)}
    catch
        exit:{timeout, _} ->
            {error, io_lib:format("the process did not answer in ~b ms: it is busy", [Ms])};
        exit:{noproc, _} -> {error, <<"the process ended meanwhile">>};
        Class:Why ->
            {error, ["the process cannot say: ", sderl_actions_show:line({Class, Why}, 300)]}
    end.

-doc "Collects the garbage of a process, or of all; returns the bytes before and after.".
-spec collect(map()) -> sderl_actions_node:result().
collect(#{pid := Text}) ->
    maybe
        {ok, Pid} ?= sderl_actions_show:pid(Text),
        Before = memory(Pid),
        %% The process itself does it, when it is scheduled.
        _ = erlang:garbage_collect(Pid),
        {ok, #{processes => 1, before => Before, 'after' => memory(Pid)}}
    end;
collect(_) ->
    Before = erlang:memory(processes) + erlang:memory(binary),
    N = lists:foldl(fun(Pid, Count) ->
        case Pid =/= self() andalso erlang:garbage_collect(Pid) of
            true -> Count + 1;
            false -> Count
        end
    end, 0, processes()),
    {ok, #{processes => N, before => Before,
           'after' => erlang:memory(processes) + erlang:memory(binary)}}.

memory(Pid) ->
    case process_info(Pid, memory) of
        {_, Memory} -> Memory;
        undefined -> 0
    end.

-doc "Ends a process: with `shutdown`, or with `kill`, which it cannot refuse.".
-spec stop(map()) -> sderl_actions_node:result().
stop(#{pid := Text, how := How}) ->
    maybe
        {ok, Pid} ?= sderl_actions_show:pid(Text),
        Name = name(Pid),
        Monitor = monitor(process, Pid),
        true = exit(Pid, How),
        receive
            {'DOWN', Monitor, process, _, Why} ->
                {ok, #{name => Name, ended => sderl_actions_show:line(Why, 300)}}
        after 2000 ->
            {error, <<"the process goes on: it traps exits, or is busy; `kill` cannot be refused">>}
        end
    end.
