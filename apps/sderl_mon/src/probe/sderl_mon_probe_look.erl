%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_look).
-moduledoc """
Reads the processes of the probe's node.

Everything is bounded: by number and by time. Neither messages nor states nor dictionaries are read.
""".

-export([process/1]).
-export([start/1, iterator/0, next/1, name/1, initial/1, linked/1]).
-export([scanner/1, top/4]).
-export_type([found/0]).

-import(sderl_mon_probe_text, [text/1, cut/2]).
-import(sderl_mon_probe_work, [magnitude/1, now_us/0]).

-define(PASS_US, 20_000_000).
%% One in this many passes (the second) reads memory.
-define(DEEP, 4).

-doc """
What the scanner has found: `top` are the processes with the most of something, `began` is when
their pass did (microseconds of monotonic time). After a pass `due` (milliseconds) says when the
next makes sense.
""".
-type found() :: #{
    top => [sderl_mon_types:process()],
    procs_looked => non_neg_integer(),
    mq_max => non_neg_integer(),
    began => integer(),
    due => integer()
}.

-doc "One process of this node, without its messages, state or dictionary.".
-spec process(binary() | string()) ->
    {ok, sderl_mon_types:process()} | {error, bad_pid | dead | busy}.
process(Text) -> sderl_mon_probe_bound:looking(fun() -> read(Text) end).

read(Text) ->
    try
        list_to_pid(unicode:characters_to_list(Text))
    of
        Pid when node(Pid) =:= node() ->
            Items = [status, message_queue_len, memory, total_heap_size, stack_size, reductions,
                     current_function, current_stacktrace, links, monitors, monitored_by, trap_exit,
                     priority, garbage_collection],
            case process_info(Pid, Items) of
                undefined -> {error, dead};
                Info ->
                    M = maps:from_list(Info),
                    {ok, maps:merge(
                        maps:with([status, memory, total_heap_size, stack_size, reductions,
                                   trap_exit, priority], M),
                        #{pid => text(Pid), name => name(Pid), initial => initial(Pid),
                          queue => maps:get(message_queue_len, M),
                          current => text(maps:get(current_function, M)),
                          stack => [text({Mod, F, if is_list(A) -> length(A); true -> A end})
                                    || {Mod, F, A, _} <-
                                           lists:sublist(maps:get(current_stacktrace, M), 20)],
                          links => length(maps:get(links, M)),
                          monitors => length(maps:get(monitors, M)),
                          monitored_by => length(maps:get(monitored_by, M)),
                          gc => proplists:get_value(minor_gcs, maps:get(garbage_collection, M), 0)}
                    )}
            end;
        _ -> {error, bad_pid}
    catch
        error:_ -> {error, bad_pid}
    end.

%% ---------------------------------------------------------------- processes

-doc "The processes and ports that a process is linked to.".
-spec linked(pid()) -> [pid() | port()].
linked(Pid) -> case process_info(Pid, links) of {links, L} -> L; undefined -> [] end.

-doc """
Starts the scanner, a process that looks at processes for the probe, which asks it with `{scan,
HowMany, Top}`. A pass over all processes takes several such slices; after each the scanner sends
`{scanned, Pid, Works, found()}`, where `Works` says what it did, `{Kind, HowMany, Microseconds}`.
It answers `{name, Pids}` with `{named, Pid, Works, Texts}`.
""".
-spec start(pid()) -> pid().
start(Probe) -> spawn_link(?MODULE, scanner, [Probe]).

-doc false.
-spec scanner(pid()) -> no_return().
scanner(Probe) -> scanner(Probe, none, pass(#{memory => [], passes => 0, named => #{}})).

%% Reading the memory of a process wakes it, which costs some thirty times what the rest does. So
%% memory is read in some passes only, and of fewer processes at a time.
pass(#{memory := Memory, passes := N, named := Named}) ->
    Deep = N rem ?DEEP =:= 1,
    #{began => now_us(), looked => 0, slice => #{}, rates => #{}, queue => [], reds => [],
      passes => N + 1, named => Named, deep => Deep,
      memory => case Deep of true -> []; false -> Memory end, items => case Deep of
          true -> [message_queue_len, reductions, memory];
          false -> [message_queue_len, reductions]
      end}.

scanner(Probe, Iter, Pass) ->
    receive
        {scan, Budget, Top} -> scan(Probe, Budget, Top, Iter, Pass);
        {name, Pids} ->
            T = now_us(),
            Names = #{P => [name(P), initial(P)] || P <- Pids},
            Probe ! {named, self(), [{name, length(Pids), now_us() - T}], Names},
            scanner(Probe, Iter, Pass)
    end.

%% A new pass needs the table of processes, which costs half a millisecond however few there are: so
%% there are not too many passes.
scan(Probe, Budget, Top, none, Pass) ->
    T = now_us(),
    Iter = iterator(),
    look(Probe, Budget, Top, Iter, Pass#{began := T}, [{iterator, 1, now_us() - T}]);
scan(Probe, Budget, Top, Iter, #{slice := Slice} = Pass0) ->
    T = now_us(),
    Pass = rates(Top, Pass0),
    Works = [{rate, map_size(Slice), now_us() - T}],
    case Iter of
        ended -> ended(Probe, Pass, Works);
        _ -> look(Probe, Budget, Top, Iter, Pass, Works)
    end.

look(Probe, Budget, Top, Iter, #{deep := Deep, looked := Before} = Pass0, Works) ->
    T = now_us(),
    {Rest, #{looked := Looked} = Pass} =
        look(case Deep of true -> Budget div 4; false -> Budget end, Iter, Top, Pass0),
    Probe ! {scanned, self(), [{{look, Deep}, Looked - Before, now_us() - T} | Works],
             #{procs_looked => Looked}},
    scanner(Probe, Rest, Pass).

ended(Probe, #{looked := Looked, began := Began, queue := Queues, named := Old} = Pass, Works) ->
    T = now_us(),
    {Rows, Named} = shown(Pass),
    Probe ! {scanned, self(),
             [{{shown, magnitude(map_size(maps:without(maps:keys(Old), Named)))}, 1, now_us() - T}
              | Works],
             #{top => Rows,
               procs_looked => Looked,
               mq_max => lists:max([0 | [Q || {Q, _} <- Queues]]),
               began => Began,
               due => (Began + ?PASS_US) div 1000}},
    scanner(Probe, none, pass(Pass#{named := Named})).

%% The rate of reductions of the last slice's processes since that slice.
rates(Top, #{slice := Slice, rates := Old, queue := Qs, memory := Ms, reds := Rs0} = Pass) ->
    New = #{P => (R - R0) * 1_000_000 div max(1, now_us() - T0)
            || P := {R0, T0} <- Slice, {_, R} <- [process_info(P, reductions)]},
    Rs = maps:fold(fun(P, Rate, Acc) -> top(Rate, P, Top, Acc) end, Rs0, New),
    Pass#{slice := #{}, reds := Rs,
          rates := maps:with([P || {_, P} <- Qs ++ Ms ++ Rs], maps:merge(Old, New))}.

%% Processes that were shown before keep their names, and their memory until a pass reads it again.
shown(#{named := Old, deep := Deep, queue := Queues} = Pass) ->
    Rows = #{P => case {Old, Pass} of
        {#{P := Row}, #{memory := Ms}} when Deep ->
            Row#{memory := case lists:keyfind(P, 2, Ms) of {M, _} -> M; false -> memory(P) end};
        {#{P := Row}, _} -> Row;
        _ -> #{pid => text(P), name => name(P), initial => initial(P), memory => memory(P)}
    end || P <- lists:usort([P || K <- [queue, memory, reds], {_, P} <- maps:get(K, Pass)]),
           is_process_alive(P)},
    {[Row#{queue => case lists:keyfind(P, 2, Queues) of {Q, _} -> Q; false -> 0 end,
           reds_per_s => maps:get(P, maps:get(rates, Pass), 0)}
      || P := Row <- Rows], Rows}.

memory(Pid) -> case process_info(Pid, memory) of {_, M} -> M; undefined -> 0 end.

-doc "All processes, one after the other: OTP 28 has an iterator, before that there is a list.".
-spec iterator() -> term().
iterator() ->
    case list_to_integer(erlang:system_info(otp_release)) >= 28 of
        true -> {iterator, erlang:apply(erlang, processes_iterator, [])};
        false -> {list, processes()}
    end.

-doc "The next process of an iterator.".
-spec next(term()) -> none | {pid(), term()}.
next({list, [P | Ps]}) -> {P, {list, Ps}};
next({list, []}) -> none;
next({iterator, I}) ->
    case erlang:apply(erlang, processes_next, [I]) of
        none -> none;
        {P, Next} -> {P, {iterator, Next}}
    end.

look(0, Iter, _, Pass) -> {Iter, Pass};
look(Budget, Iter, Top, #{items := Items} = Pass) ->
    case next(Iter) of
        none -> {ended, Pass};
        {Pid, Rest} -> look(Budget - 1, Rest, Top, looked(Pid, process_info(Pid, Items), Top, Pass))
    end.

looked(_, undefined, _, Pass) -> Pass;
looked(Pid, [{_, Q}, {_, R} | More], Top,
       #{looked := N, slice := Slice, queue := Qs, memory := Ms} = Pass) ->
    Pass#{looked := N + 1, queue := top(Q, Pid, Top, Qs), slice := Slice#{Pid => {R, now_us()}},
          memory := case More of [{_, M}] -> top(M, Pid, Top, Ms); [] -> Ms end}.

%% Adds a value to the list of the greatest, which has the least first.
-doc false.
-spec top(number(), term(), pos_integer(), [{number(), term()}]) -> [{number(), term()}].
top(0, _, _, List) -> List;
top(Value, Which, Max, List) when length(List) < Max -> lists:sort([{Value, Which} | List]);
top(Value, Which, _, [{Least, _} | Rest]) when Value > Least -> lists:sort([{Value, Which} | Rest]);
top(_, _, _, List) -> List.

-doc "The registered name of a process, or its label, or nothing.".
-spec name(pid()) -> binary().
name(Pid) ->
    case process_info(Pid, registered_name) of
        {_, Name} when is_atom(Name) -> cut(atom_to_binary(Name), 100);
        _ -> case proc_lib:get_label(Pid) of undefined -> <<>>; Label -> cut(text(Label), 100) end
    end.

-doc "The function that a process began with.".
-spec initial(pid()) -> binary().
initial(Pid) ->
    case process_info(Pid, [{dictionary, '$initial_call'}, initial_call]) of
        [{_, {_, _, _} = MFA}, _] -> text(MFA);
        [_, {_, MFA}] -> text(MFA);
        undefined -> <<>>
    end.
