%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_look).
-moduledoc """
What the probe reads of its node's names and processes, and how it puts terms into text.

Everything is bounded: by number, by time, and texts by length. Of processes neither messages nor state nor
dictionary are read.
""".

-export([names/3, lookup/2, process/1, bounded/2]).
-export([start/1, iterator/0, next/1, name/1, initial/1, linked/1]).
-export([id/1, text/1, text/2, cut/2]).
-export([scanner/1, top/4, meant/1]).

-define(PASS_US, 20_000_000).
%% The second of so many passes asks for memory.
-define(DEEP, 4).

%% ---------------------------------------------------------------- names

-doc """
Names of an own group, which is given itself or by its id, in no order: those whose text begins with
`prefix`, at most `limit` (500). Looks for 200 ms at most; `more`: there may be others; `total`: all of the group, where that would
have to be counted as `Told` says (none: it is not known).
""".
-spec names(term(), #{prefix => binary(), limit => pos_integer()}, fun((term()) -> non_neg_integer() | none)) ->
    {ok, #{names := [map()], total := non_neg_integer(), more := boolean()}} | {error, no_group | not_running | busy}.
names(Group, Opts, Told) ->
    with_group(Group, fun(G) ->
        Limit = min(500, maps:get(limit, Opts, 100)),
        Prefix = maps:get(prefix, Opts, <<>>),
        {Found, More} = page(rows(G), Prefix, Limit, now_ms() + 200, []),
        {ok, #{names => Found, total => total(G, Prefix, Found, More, Told), more => More}}
    end).

rows(G) -> apply(sderl_names, names, [G, 500]).

more_rows(More) -> apply(sderl_names, more_names, [More]).

page('$end_of_table', _, _, _, Acc) -> {Acc, false};
page({Rows, Cont}, Prefix, Limit, Until, Acc) ->
    Size = byte_size(Prefix),
    Found = [named(Text, Pid) || {Name, Pid} <- Rows, Text <- [id(Name)], Size =:= 0 orelse binary:longest_common_prefix([Text, Prefix]) =:= Size],
    case lists:sublist(Acc ++ Found, Limit + 1) of
        All when length(All) > Limit -> {lists:sublist(All, Limit), true};
        All -> case now_ms() > Until of true -> {All, true}; false -> page(more_rows(Cont), Prefix, Limit, Until, All) end
    end.

named(Text, Pid) -> #{name => Text, pid => text(Pid), node => node(Pid)}.

-doc """
A name of an own group by its text. What a text may stand for is tried first; of names of other types (tuples) all are looked at, for 200 ms
at most.

Errors: `not_found`, `timeout` (not found so far), `no_group`, `not_running`, `busy`.
""".
-spec lookup(term(), binary()) -> {ok, map()} | {error, not_found | timeout | no_group | not_running | busy}.
lookup(Group, Text) ->
    with_group(Group, fun(G) ->
        case [Pid || Name <- meant(Text), Pid <- [apply(sderl_names, pid, [G, Name])], Pid =/= none] of
            [Pid | _] -> {ok, named(Text, Pid)};
            [] -> find(rows(G), Text, now_ms() + 200)
        end
    end).

find('$end_of_table', _, _) -> {error, not_found};
find({Rows, Cont}, Text, Until) ->
    case [Pid || {Name, Pid} <- Rows, id(Name) =:= Text] of
        [Pid | _] -> {ok, named(Text, Pid)};
        [] ->
            case now_ms() > Until of
                true -> {error, timeout};
                false -> find(more_rows(Cont), Text, Until)
            end
    end.

%% The atoms that there are, binaries, strings and integers that are written so.
-doc false.
-spec meant(binary()) -> [term()].
meant(Text) ->
    Inner = case Text of
        <<$', Quoted/binary>> -> [Quoted];
        <<$", Quoted/binary>> -> [Quoted];
        <<"<<\"", Quoted/binary>> -> [Quoted];
        _ -> []
    end,
    Bare = [binary:part(I, 0, byte_size(I) - N) || I <- Inner, N <- [1, 3, 8], byte_size(I) >= N],
    Atoms = [fun() -> binary_to_existing_atom(T) end || T <- [Text | Bare]],
    Others = [fun() -> binary_to_integer(Text) end | [F || B <- Bare, F <- [fun() -> B end, fun() -> unicode:characters_to_list(B) end,
                                                                           fun() -> list_to_binary(unicode:characters_to_list(B)) end]]],
    [Name || Try <- Atoms ++ Others, Name <- try [Try()] catch error:_ -> [] end, id(Name) =:= Text].

with_group(Group, Fun) ->
    looking(fun() ->
        try apply(sderl_dir, groups, []) of
            Groups ->
                case [G || G <- Groups, G =:= Group orelse id(G) =:= Group] of
                    [G | _] -> Fun(G);
                    [] -> {error, no_group}
                end
        catch error:Reason when Reason =:= badarg; Reason =:= undef -> {error, not_running}
        end
    end).

looking(Fun) -> bounded([sderl_mon_look_1, sderl_mon_look_2, sderl_mon_look_3, sderl_mon_look_4], Fun).

-doc "Does it under a registered name of these, which goes when the caller ends: so many do such a thing at a time; else `busy`.".
-spec bounded([atom()], fun(() -> Answer)) -> Answer | {error, busy}.
bounded([], _) -> {error, busy};
bounded([Name | Others], Fun) ->
    try register(Name, self()) of
        true -> try Fun() after unregister(Name) end
    catch
        error:badarg ->
            case process_info(self(), registered_name) of
                %% A process of the node, which has its own name and asks one thing at a time.
                {registered_name, _} -> Fun();
                [] -> bounded(Others, Fun)
            end
    end.

%% Counting walks the table: not for each question.
total(_, <<>>, Found, false, _) -> length(Found);
total(G, _, Found, _, Told) ->
    case apply(sderl_dir, groups, []) of
        [G] -> apply(sderl_names, size, []);
        _ -> case Told(G) of none -> length(Found); N -> max(N, length(Found)) end
    end.

-doc "One process of this node, without its messages, state or dictionary.".
-spec process(binary() | string()) -> {ok, map()} | {error, bad_pid | dead | busy}.
process(Text) -> looking(fun() -> read(Text) end).

read(Text) ->
    try list_to_pid(unicode:characters_to_list(Text)) of
        Pid when node(Pid) =:= node() ->
            Items = [status, message_queue_len, memory, total_heap_size, stack_size, reductions, current_function, current_stacktrace,
                     links, monitors, monitored_by, trap_exit, priority, garbage_collection],
            case process_info(Pid, Items) of
                undefined -> {error, dead};
                Info ->
                    M = maps:from_list(Info),
                    {ok, maps:merge(maps:with([status, memory, total_heap_size, stack_size, reductions, trap_exit, priority], M),
                        #{pid => text(Pid), name => name(Pid), initial => initial(Pid), queue => maps:get(message_queue_len, M),
                          current => text(maps:get(current_function, M)),
                          stack => [text({Mod, F, if is_list(A) -> length(A); true -> A end})
                                    || {Mod, F, A, _} <- lists:sublist(maps:get(current_stacktrace, M), 20)],
                          links => length(maps:get(links, M)), monitors => length(maps:get(monitors, M)),
                          monitored_by => length(maps:get(monitored_by, M)),
                          gc => proplists:get_value(minor_gcs, maps:get(garbage_collection, M), 0)})}
            end;
        _ -> {error, bad_pid}
    catch error:_ -> {error, bad_pid}
    end.

%% ---------------------------------------------------------------- processes

-doc "The processes and ports that a process is linked to.".
-spec linked(pid()) -> [pid() | port()].
linked(Pid) -> case process_info(Pid, links) of {links, L} -> L; undefined -> [] end.

-doc """
Starts a process that looks at processes for the probe, which asks it with `{scan, HowMany, Top}`. A pass over all of
them takes several such slices; after each it tells `{scanned, Pid, Works, Found}`, where `Works` says what it did, `{Kind, HowMany, Microseconds}`,
and after a pass `due` (milliseconds of monotonic time) says when the next makes sense. Asked `{name, Pids}` it tells `{named, Pid, Works, Texts}`.
""".
-spec start(pid()) -> pid().
start(Probe) -> spawn_link(?MODULE, scanner, [Probe]).

-doc false.
-spec scanner(pid()) -> no_return().
scanner(Probe) -> scanner(Probe, none, pass(#{memory => [], passes => 0, named => #{}})).

%% A process is woken to tell its memory, which costs some thirty times what the rest does: in some passes only, and of fewer at a time.
pass(#{memory := Memory, passes := N, named := Named}) ->
    Deep = N rem ?DEEP =:= 1,
    #{began => mono(), looked => 0, slice => #{}, rates => #{}, queue => [], reds => [], passes => N + 1, named => Named, deep => Deep,
      memory => case Deep of true -> []; false -> Memory end,
      items => case Deep of true -> [message_queue_len, reductions, memory]; false -> [message_queue_len, reductions] end}.

scanner(Probe, Iter, Pass) ->
    receive
        {scan, Budget, Top} -> scan(Probe, Budget, Top, Iter, Pass);
        {name, Pids} ->
            T = mono(),
            Names = #{P => [name(P), initial(P)] || P <- Pids},
            Probe ! {named, self(), [{name, length(Pids), mono() - T}], Names},
            scanner(Probe, Iter, Pass)
    end.

%% A pass walks the table of processes, which costs half a millisecond however few there are: not too often.
scan(Probe, Budget, Top, none, Pass) ->
    T = mono(),
    Iter = iterator(),
    look(Probe, Budget, Top, Iter, Pass#{began := T}, [{iterator, 1, mono() - T}]);
scan(Probe, Budget, Top, Iter, #{slice := Slice} = Pass0) ->
    T = mono(),
    Pass = rates(Top, Pass0),
    Works = [{rate, map_size(Slice), mono() - T}],
    case Iter of
        ended -> ended(Probe, Pass, Works);
        _ -> look(Probe, Budget, Top, Iter, Pass, Works)
    end.

look(Probe, Budget, Top, Iter, #{deep := Deep, looked := Before} = Pass0, Works) ->
    T = mono(),
    {Rest, #{looked := Looked} = Pass} = look(case Deep of true -> Budget div 4; false -> Budget end, Iter, Top, Pass0),
    Probe ! {scanned, self(), [{{look, Deep}, Looked - Before, mono() - T} | Works], #{procs_looked => Looked}},
    scanner(Probe, Rest, Pass).

ended(Probe, #{looked := Looked, began := Began, queue := Queues, named := Old} = Pass, Works) ->
    T = mono(),
    {Rows, Named} = shown(Pass),
    Probe ! {scanned, self(), [{{shown, map_size(maps:without(maps:keys(Old), Named))}, 1, mono() - T} | Works],
             #{top => Rows, procs_looked => Looked, mq_max => lists:max([0 | [Q || {Q, _} <- Queues]]), began => Began, due => (Began + ?PASS_US) div 1000}},
    scanner(Probe, none, pass(Pass#{named := Named})).

%% What those of the last slice have done since.
rates(Top, #{slice := Slice, rates := Old, queue := Qs, memory := Ms, reds := Rs0} = Pass) ->
    New = #{P => (R - R0) * 1_000_000 div max(1, mono() - T0) || P := {R0, T0} <- Slice, {_, R} <- [process_info(P, reductions)]},
    Rs = maps:fold(fun(P, Rate, Acc) -> top(Rate, P, Top, Acc) end, Rs0, New),
    Pass#{slice := #{}, reds := Rs, rates := maps:with([P || {_, P} <- Qs ++ Ms ++ Rs], maps:merge(Old, New))}.

%% What is known of those that were shown before is not asked again: their names, and their memory until it is asked of all.
shown(#{named := Old, deep := Deep, queue := Queues} = Pass) ->
    Rows = #{P => case {Old, Pass} of
        {#{P := Row}, #{memory := Ms}} when Deep -> Row#{memory := case lists:keyfind(P, 2, Ms) of {M, _} -> M; false -> memory(P) end};
        {#{P := Row}, _} -> Row;
        _ -> #{pid => text(P), name => name(P), initial => initial(P), memory => memory(P)}
    end || P <- lists:usort([P || K <- [queue, memory, reds], {_, P} <- maps:get(K, Pass)]), is_process_alive(P)},
    {[Row#{queue => case lists:keyfind(P, 2, Queues) of {Q, _} -> Q; false -> 0 end, reds_per_s => maps:get(P, maps:get(rates, Pass), 0)} || P := Row <- Rows], Rows}.

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
next({iterator, I}) -> case erlang:apply(erlang, processes_next, [I]) of none -> none; {P, Next} -> {P, {iterator, Next}} end.

look(0, Iter, _, Pass) -> {Iter, Pass};
look(Budget, Iter, Top, #{items := Items} = Pass) ->
    case next(Iter) of
        none -> {ended, Pass};
        {Pid, Rest} -> look(Budget - 1, Rest, Top, looked(Pid, process_info(Pid, Items), Top, Pass))
    end.

looked(_, undefined, _, Pass) -> Pass;
looked(Pid, [{_, Q}, {_, R} | More], Top, #{looked := N, slice := Slice, queue := Qs, memory := Ms} = Pass) ->
    Pass#{looked := N + 1, queue := top(Q, Pid, Top, Qs), slice := Slice#{Pid => {R, mono()}},
          memory := case More of [{_, M}] -> top(M, Pid, Top, Ms); [] -> Ms end}.

%% The greatest few, the least first.
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

-doc "What a process began with.".
-spec initial(pid()) -> binary().
initial(Pid) ->
    case process_info(Pid, [{dictionary, '$initial_call'}, initial_call]) of
        [{_, {_, _, _} = MFA}, _] -> text(MFA);
        [_, {_, MFA}] -> text(MFA);
        undefined -> <<>>
    end.

%% ---------------------------------------------------------------- texts

-doc "An id as everywhere in the monitoring: the text of a term, or of a node its name.".
-spec id(term()) -> binary().
id(Term) -> cut(io_lib:format("~0tp", [Term]), 255).

-doc "A term, at most 200 bytes of it.".
-spec text(term()) -> binary().
text(MFA = {M, F, A}) when is_atom(M), is_atom(F), is_integer(A) -> cut(io_lib:format("~ts:~ts/~b", tuple_to_list(MFA)), 120);
text(Term) -> cut(io_lib:format("~0tP", [Term, 20]), 200).

-doc "As `io_lib:format/2`, at most 400 bytes.".
-spec text(string(), [term()]) -> binary().
text(Format, Args) -> cut(io_lib:format(Format, Args), 400).

-doc "At most so many bytes of a text, as a binary, and no half character.".
-spec cut(unicode:chardata(), pos_integer()) -> binary().
cut(Text, Max) ->
    case unicode:characters_to_binary(Text) of
        Short when is_binary(Short), byte_size(Short) =< Max -> Short;
        Long when is_binary(Long) ->
            case unicode:characters_to_binary(binary:part(Long, 0, Max)) of
                {incomplete, Whole, _} -> Whole;
                Whole when is_binary(Whole) -> Whole
            end;
        _ -> <<"?">>
    end.

now_ms() -> erlang:monotonic_time(millisecond).
mono() -> erlang:monotonic_time(microsecond).
