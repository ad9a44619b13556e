%% SPDX-License-Identifier: Apache-2.0
%% Traces become books: whole ones compared with a plain reading, and those that are not whole.
-module(sderl_prof_data_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_prof_files, [with_dir/1, frame/1, write/2, recording/3, pid/2]).

%% Times as a virtual machine has them.
-define(T0, -576_460_752_000_000_000).

properties_test_() ->
    [
        sderl_prop:eunit("events are those of the files", 60, fun() -> prop_events(exact) end),
        sderl_prop:eunit("events of other tracers, too", 60, fun() -> prop_events(foreign) end),
        sderl_prop:eunit("a file that is cut is read up to there", 40, fun prop_cut/0),
        sderl_prop:eunit("a damaged file does no harm", 60, fun prop_damaged/0),
        sderl_prop:eunit("blocks are what went into them", 60, fun prop_block/0)
    ].

%% A serial that no process has: its key was once confused with that of a word.
damaged_serial_test() ->
    ?assert(proper:check(prop_damaged(), [{[{1, {in, {lists, map, 2}}}], 36, <<0, 0, 5>>}],
                         [{to_file, user}])).

%% ---------------------------------------------------------------- events

prop_events(How) ->
    ?FORALL({Scheduler, Events}, {boolean(), list(event())}, with_dir(fun(Dir) ->
        Traced = traced(Events, Scheduler),
        Path = stored(How, Dir, Scheduler, Traced),
        case sderl_prof_convert:convert(Path, filename:join(Dir, "book"), #{workers => 1}) of
            {error, {not_a_trace, _}} -> Traced =:= [] andalso How =:= foreign;
            {ok, #{problems := [], events := Count}} ->
                Found = found(filename:join(Dir, "book")),
                length(Found) =:= Count andalso
                    same([expected(Event, Scheduler) || Event <- Traced], Found)
        end
    end)).

same(Expected, Found) ->
    equals(lists:sort(Expected), lists:sort(Found)).

stored(exact, Dir, Scheduler, Events) ->
    ok = recording(Dir, #{scheduler_id => Scheduler}, Events),
    Dir;
stored(foreign, Dir, _, Events) ->
    File = filename:join(Dir, "a.trace"),
    ok = write(File, [frame(Event) || Event <- Events]),
    File.

event() ->
    ?LET({Id, Event}, {range(1, 5), oneof([
        {in, mfa()}, {out, mfa()}, {send, any(), range(1, 5)}, {'receive', any()},
        {active, mfa()}, {inactive, mfa()}, {gc_minor_start, [{heap_size, nat()}]},
        {gc_major_end, [{heap_size, nat()}]}, {send, any(), a_name}, {call, {lists, map, 2}},
        {return_to, mfa()}, {scheduler, range(1, 4), oneof([active, inactive]), range(0, 4)}
    ])}, {Id, Event}).

mfa() -> oneof([{lists, map, 2}, {gen_server, loop, 5}, 0]).

%% Events of one process are in order, those of others come up to a few places late.
traced(Events, Scheduler) ->
    [as_event(Id, Event, ?T0 + 1000 * N, Scheduler) || {N, {Id, Event}} <- lists:enumerate(Events)].

as_event(_, {scheduler, S, State, N}, T, _) -> {profile, scheduler, S, State, N, T};
as_event(Id, {State, Mfa}, T, _) when State =:= active; State =:= inactive ->
    {profile, pid(Id, 0), State, Mfa, T};
as_event(Id, {send, Message, To}, T, Scheduler) ->
    with_scheduler(Scheduler, {trace_ts, pid(Id, 0), send, Message, target(To)}, T);
as_event(Id, {Tag, Arg}, T, Scheduler) ->
    with_scheduler(Scheduler, {trace_ts, pid(Id, 0), Tag, Arg}, T).

target(Id) when is_integer(Id) -> pid(Id, 0);
target(Name) -> Name.

with_scheduler(true, Tuple, T) -> list_to_tuple(tuple_to_list(Tuple) ++ [2, T]);
with_scheduler(false, Tuple, T) -> list_to_tuple(tuple_to_list(Tuple) ++ [T]).

%% Kind, time, process, scheduler, and what the kind has, as texts.
expected({profile, scheduler, S, State, N, T}, _) ->
    {T, kind(State), S, ~"?", N, 0};
expected({profile, P, State, Mfa, T}, _) ->
    {T, State, 0, text(P), text(Mfa), 0};
expected(Event, Scheduler) ->
    [trace_ts, P, Tag | Rest] = tuple_to_list(Event),
    T = lists:last(Rest),
    S = case Scheduler of true -> 2; false -> 0 end,
    {A, B} = case {Tag, Rest} of
        {send, [Message, To | _]} -> {text(To), bytes(Message)};
        {'receive', [Message | _]} -> {~"", bytes(Message)};
        {gc_minor_start, _} -> {~"", 0};
        {gc_major_end, _} -> {~"", 0};
        {_, [Mfa | _]} -> {text(Mfa), 0}
    end,
    {T, Tag, S, text(P), A, B}.

kind(active) -> scheduler_active;
kind(inactive) -> scheduler_inactive.

text(Pid) when is_pid(Pid) -> list_to_binary(pid_to_list(Pid));
text({M, F, A}) -> list_to_binary(lists:concat([M, ":", F, "/", A]));
text(0) -> ~"unknown";
text(Name) -> atom_to_binary(Name).

bytes(Term) -> byte_size(term_to_binary(Term)) - 1.

found(Dir) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    Events = [{T, K, S, sderl_prof_book:label(P, Book), shown(K, A, Book), B}
              || {T, K, S, P, A, B} <- sderl_prof_files:events(Book)],
    ok = sderl_prof_book:close(Book),
    Events.

shown(K, A, _) when K =:= scheduler_active; K =:= scheduler_inactive -> A;
shown(send, A, Book) -> sderl_prof_book:label(A, Book);
shown(_, A, Book) -> sderl_prof_book:word(A, Book).

%% ---------------------------------------------------------------- what is not whole

prop_cut() ->
    ?FORALL({Events, Part}, {non_empty(list(event())), float(0.0, 1.0)}, with_dir(fun(Dir) ->
        Frames = [frame(Event) || Event <- traced(Events, false)],
        Whole = iolist_to_binary(Frames),
        Cut = trunc(Part * byte_size(Whole)),
        ok = recording(Dir, #{}, []),
        ok = write(filename:join(Dir, "events.0.trace"), binary:part(Whole, 0, Cut)),
        {ok, #{events := N, problems := Problems}} =
            sderl_prof_convert:convert(Dir, filename:join(Dir, "book"), #{}),
        {Fit, At} = fitting(Frames, Cut, 0, 0),
        N =:= Fit andalso (Problems =:= []) =:= (At =:= Cut)
    end)).

fitting([Frame | Frames], Cut, N, At) when At + byte_size(Frame) =< Cut ->
    fitting(Frames, Cut, N + 1, At + byte_size(Frame));
fitting(_, _, N, At) -> {N, At}.

prop_damaged() ->
    ?FORALL({Events, At, Bytes}, {non_empty(list(event())), nat(), binary(3)},
            with_dir(fun(Dir) ->
        Whole = iolist_to_binary([frame(Event) || Event <- traced(Events, true)]),
        Place = At rem byte_size(Whole),
        <<Before:Place/binary, Rest/binary>> = Whole,
        Skip = min(3, byte_size(Rest)),
        <<_:Skip/binary, After/binary>> = Rest,
        ok = recording(Dir, #{scheduler_id => true}, []),
        ok = write(filename:join(Dir, "events.0.trace"), [Before, Bytes, After]),
        Book = filename:join(Dir, "book"),
        {ok, #{}} = sderl_prof_convert:convert(Dir, Book, #{}),
        {ok, _} = sderl_prof_report:make(Book, #{}),
        true
    end)).

prop_block() ->
    ?FORALL(Events, non_empty(list(?LET(T, tuple([integer(), range(1, 30), range(0, 65_535), u32(),
                                                  u32(), u32()]), T))), begin
        Sorted = lists:keysort(1, Events),
        {#{count := N, from := From, to := To, processes := Bits}, Block} =
            sderl_prof_block:encode(Sorted),
        Collect = fun(T, K, S, P, A, B, Acc) -> [{T, K, S, P, A, B} | Acc] end,
        Bin = iolist_to_binary(Block),
        {_, _, _, Whose, _, _} = hd(Events),
        N =:= length(Events) andalso From =:= element(1, hd(Sorted)) andalso
            To =:= element(1, lists:last(Sorted)) andalso
            lists:reverse(sderl_prof_block:fold(Bin, Collect, [], none)) =:= Sorted andalso
            lists:all(fun({_, _, _, P, _, _}) -> sderl_prof_block:may_have(P, Bits) end, Events)
            andalso lists:reverse(sderl_prof_block:fold(Bin, Collect, [], Whose)) =:=
                [E || E <- Sorted, element(4, E) =:= Whose]
    end).

u32() -> range(0, 16#FFFFFFFF).

%% ---------------------------------------------------------------- cases

in(Id, T) -> {trace_ts, pid(Id, 0), in, {m, f, 0}, ?T0 + T}.

problems(Dir) ->
    {ok, #{problems := Problems} = Meta} =
        sderl_prof_convert:convert(Dir, filename:join(Dir, "book"), #{}),
    {Problems, Meta}.

says(Text, Problems) ->
    ?assertNotEqual({Text, Problems, []},
                    {Text, Problems, [P || P <- Problems, string:find(P, Text) =/= nomatch]}).

clock_test() ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{}, [in(1, 9_000_000_000), in(1, 1_000), in(2, 2_000)]),
        {Problems, #{events := 3}} = problems(Dir),
        says(~"clock went back 1 times", Problems),
        {ok, #{trace := #{seconds := S}}} =
            sderl_prof_report:make(filename:join(Dir, "book"), #{}),
        ?assert(S >= 0)
    end).

foreign_node_test() ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{node => ~"another@host"}, [in(1, 1), in(2, 2)]),
        {Problems, #{events := 0}} = problems(Dir),
        says(~"2 events are of another node", Problems)
    end).

mixed_test() ->
    with_dir(fun(Dir) ->
        File = filename:join(Dir, "a"),
        Other = binary:replace(frame(in(1, 1)), atom_to_binary(node()), ~"nonode@elsewh"),
        ok = write(File, [frame(in(1, 1)), Other, frame(in(1, 2))]),
        {ok, #{problems := Problems, events := 2}} =
            sderl_prof_convert:convert(File, filename:join(Dir, "book"), #{}),
        says(~"1 events are of another node", Problems)
    end).

garbage_test() ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{}, []),
        ok = write(filename:join(Dir, "events.0.trace"), [frame(in(1, 1)), "and then no trace"]),
        ok = write(filename:join(Dir, "events.1.trace"), [frame(in(1, 2))]),
        {Problems, #{events := 2}} = problems(Dir),
        says(~"events.0.trace holds no events from byte", Problems)
    end).

no_trace_test() ->
    with_dir(fun(Dir) ->
        File = filename:join(Dir, "a"),
        ok = write(File, "something else"),
        {error, Why} = sderl_prof_convert:convert(File, filename:join(Dir, "book"), #{}),
        says(~"is no file of a tracer", [iolist_to_binary(sderl_prof_convert:format_error(Why))]),
        {error, None} = sderl_prof_convert:convert(Dir, filename:join(Dir, "book"), #{}),
        says(~"holds no recording", [iolist_to_binary(sderl_prof_convert:format_error(None))])
    end).

no_times_test() ->
    with_dir(fun(Dir) ->
        File = filename:join(Dir, "a"),
        ok = write(File, frame({trace, self(), in, {m, f, 0}})),
        ?assertEqual({error, no_times},
                     sderl_prof_convert:convert(File, filename:join(Dir, "book"), #{}))
    end).

info_missing_test() ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{}, [in(1, 1)]),
        ok = write(filename:join(Dir, "recording"), "damaged"),
        {Problems, #{events := 1, info := none}} = problems(Dir),
        says(~"recording is missing or damaged", Problems)
    end).

%% A damaged file creates no atom.
atoms_test() ->
    with_dir(fun(Dir) ->
        Atom = iolist_to_binary(["atom_", integer_to_binary(rand:uniform(1 bsl 60))]),
        Event = binary:replace(frame({trace_ts, pid(1, 0), in, {an_atom_of_24_characters, f, 0},
                                      ?T0}), ~"an_atom_of_24_characters",
                               binary:part(<<Atom/binary, (binary:copy(~"x", 24))/binary>>, 0, 24)),
        ok = recording(Dir, #{}, []),
        ok = write(filename:join(Dir, "events.0.trace"), Event),
        {_, #{events := 1}} = problems(Dir),
        Before = erlang:system_info(atom_count),
        {_, #{events := 1}} = problems(Dir),
        {ok, _} = sderl_prof_report:make(filename:join(Dir, "book"), #{}),
        ?assertEqual(Before, erlang:system_info(atom_count))
    end).

%% A pid that is reused is another process; a late message belongs to the one that has ended.
again_test() ->
    with_dir(fun(Dir) ->
        P = pid(7, 0),
        Spawned = fun(T) -> {trace_ts, P, spawned, pid(1, 0), {m, f, []}, ?T0 + T} end,
        ok = recording(Dir, #{}, [
            Spawned(1), in(7, 2), {trace_ts, P, exit, normal, ?T0 + 3},
            {trace_ts, pid(1, 0), send, hello, P, ?T0 + 4},
            Spawned(5), in(7, 6),
            %% Of this one the end is lost.
            Spawned(7)
        ]),
        {Problems, #{entities := 4}} = problems(Dir),
        says(~"1 pids came again", Problems),
        {ok, Book} = sderl_prof_book:open(filename:join(Dir, "book")),
        Of7 = [{N, Start - ?T0, Stop}
               || #{number := N, key := 7, start := Start, stop := Stop} <- entities(Book)],
        ?assertMatch([{_, 1, _}, {_, 5, none}, {_, 7, none}], Of7),
        [{First, _, _} | _] = Of7,
        ?assertEqual([First], [A || {_, send, _, _, A, _} <- sderl_prof_files:events(Book)]),
        ok = sderl_prof_book:close(Book)
    end).

entities(Book) ->
    lists:reverse(sderl_prof_book:fold_entities(fun(E, Acc) -> [E | Acc] end, [], Book)).

%% The recorder appends the sender's node to a message from another node; a message that itself
%% ends like that is still read as a whole.
senders_test() ->
    with_dir(fun(Dir) ->
        Node = 'a@elsewhere',
        Alike = {x, {Node, sderl_from}},
        Received = fun(N, Rest) ->
            list_to_tuple([trace_ts, pid(1, 0), 'receive'] ++ Rest ++ [?T0 + N])
        end,
        ok = recording(Dir, #{}, [
            Received(1, [question, {Node, sderl_from}]),
            Received(2, [Alike, {Node, sderl_from}]),
            Received(3, [Alike]),
            Received(4, [sderl_from]),
            Received(5, [{pid(2, 0), sderl_from}]),
            Received(6, [question, {clock_service, sderl_from}])
        ]),
        {[], _} = problems(Dir),
        {ok, Book} = sderl_prof_book:open(filename:join(Dir, "book")),
        ?assertEqual([{~"a@elsewhere", bytes(question)}, {~"a@elsewhere", bytes(Alike)},
                      {~"?", bytes(Alike)}, {~"?", bytes(sderl_from)},
                      {~"?", bytes({pid(2, 0), sderl_from})}, {~"?", bytes(question)}],
                     [{sderl_prof_book:label(A, Book), B}
                      || {_, 'receive', _, _, A, B} <- sderl_prof_files:events(Book)]),
        ok = sderl_prof_book:close(Book)
    end).

%% An alias counts as its process, on this node and on another one that is known.
aliases_test() ->
    with_dir(fun(Dir) ->
        Bits = length(integer_to_list(erlang:system_info(process_limit) - 1, 2)),
        Alias = alias(),
        There = ~"a@elsewhere",
        <<131, 90, 5:16, 119, L, Name:L/binary, Rest/binary>> = term_to_binary(Alias),
        Foreign = binary_to_term(<<131, 90, 5:16, 119, (byte_size(There)), There/binary,
                                   Rest/binary>>),
        ?assertEqual(atom_to_binary(node()), Name),
        ok = recording(Dir, #{alias_bits => Bits}, [
            {trace_ts, pid(1, 0), send, hello, To, ?T0 + N}
            || {N, To} <- lists:enumerate([self(), Alias, Foreign])
        ]),
        Shown = fun(Peers) ->
            Folder = filename:join(Dir, "book"),
            {ok, _} = sderl_prof_convert:convert(Dir, Folder, #{peers => Peers}),
            {ok, Book} = sderl_prof_book:open(Folder),
            Labels = [sderl_prof_book:label(A, Book)
                      || {_, send, _, _, A, _} <- sderl_prof_files:events(Book)],
            ok = sderl_prof_book:close(Book),
            Labels
        end,
        Own = list_to_binary(pid_to_list(self())),
        ["<0", Numbers] = string:split(pid_to_list(self()), "."),
        ?assertEqual([Own, Own, ~"an alias"], Shown(#{})),
        ?assertEqual([Own, Own, iolist_to_binary(["<", Numbers, " at ", There])],
                     Shown(#{There => Bits})),
        true = unalias(Alias)
    end).

%% Files are written in a ring: the oldest one follows the gap in the numbers.
wrapped_test() ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{written => 100_000}, [in(1, 5)]),
        [ok = write(filename:join(Dir, io_lib:format("events.~b.trace", [N])), frame(in(1, T)))
         || {N, T} <- [{1, 6}, {3, 2}, {4, 3}, {10, 4}]],
        {Problems, #{events := 5, lost_bytes := Lost}} = problems(Dir),
        says(~"were overwritten", Problems),
        ?assert(Lost > 99_000),
        {ok, Book} = sderl_prof_book:open(filename:join(Dir, "book")),
        ?assertEqual([2, 3, 4, 5, 6],
                     [T - ?T0 || {T, _, _, _, _, _} <- sderl_prof_files:events(Book)]),
        ok = sderl_prof_book:close(Book)
    end).

dropped_test() ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{}, []),
        ok = write(filename:join(Dir, "events.0.trace"), [frame(in(1, 1)), <<1, 17:32>>]),
        {Problems, #{dropped := 17}} = problems(Dir),
        says(~"dropped 17 events", Problems)
    end).

%% Times of the three forms that OTP's tracers have.
times_test() ->
    with_dir(fun(Dir) ->
        File = filename:join(Dir, "a"),
        ok = write(File, [frame({trace_ts, pid(1, 0), in, {m, f, 0}, T})
                          || T <- [{0, 1, 5}, {1_000_006_000, -3}, 1_000_007_000]]),
        {ok, #{first := 1_000_005_000, last := 1_000_007_000, events := 3}} =
            sderl_prof_convert:convert(File, filename:join(Dir, "book"), #{})
    end).

%% A part of the time, and of the processes, without the rest.
range_test() ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{}, [in(1 + N rem 3, N) || N <- lists:seq(1, 3000)]),
        {[], _} = problems(Dir),
        {ok, Book} = sderl_prof_book:open(filename:join(Dir, "book")),
        Count = fun(Range) ->
            sderl_prof_book:fold(Book, Range, fun(_, _, _, _, _, _, N) -> N + 1 end, 0)
        end,
        ?assertEqual(3000, Count(#{})),
        ?assertEqual(11, Count(#{from => ?T0 + 100, to => ?T0 + 110})),
        ?assertEqual(1000, Count(#{process => 1})),
        ?assertEqual(0, Count(#{process => 17})),
        ok = sderl_prof_book:close(Book)
    end).

%% The atoms of a recording and of a book are known in a node that has read nothing yet.
fresh_node_test_() ->
    [{timeout, 120, fun() -> fresh_node(Taken) end} || Taken <- [taken, busy, unused]].

fresh_node(Taken) ->
    with_dir(fun(Dir) ->
        ok = recording(Dir, #{system_profile => Taken}, [in(1, 0)]),
        {ok, _} = sderl_prof_convert:convert(Dir, filename:join(Dir, "book"), #{}),
        Args = ["-pa", filename:dirname(code:which(sderl_prof_book))],
        {ok, Peer, _} = peer:start(#{connection => standard_io, wait_boot => 60_000, args => Args}),
        try
            ?assertMatch({ok, _, #{system_profile := Taken}, []},
                         peer:call(Peer, sderl_prof_source, open, [Dir], 60_000)),
            ?assertMatch({ok, _}, peer:call(Peer, sderl_prof_book, open,
                                            [filename:join(Dir, "book")], 60_000))
        after
            peer:stop(Peer)
        end
    end).

%% Changes of many entities that are written together give the same file as one by one.
patches_test() ->
    with_dir(fun(Dir) ->
        Patches = [{1 + (N * 7) rem 2000, lists:nth(1 + N rem 3, [parent, key, stop]), N}
                   || N <- lists:seq(1, 6000)] ++ [{90_000, kind, 1}, {3, parent, 17}],
        Written = fun(Name, Parts) ->
            Folder = filename:join(Dir, Name),
            {ok, Writer} = sderl_prof_book:create(Folder),
            [ok = sderl_prof_book:patch(Part, Writer) || Part <- Parts],
            ok = sderl_prof_book:finish(#{}, Writer),
            {ok, Entities} = file:read_file(filename:join(Folder, "entities")),
            Entities
        end,
        {First, Second} = lists:split(2500, Patches),
        ?assertEqual(Written("single", [[Patch] || Patch <- Patches]),
                     Written("at once", [First, Second]))
    end).

%% ---------------------------------------------------------------- memory

%% Each process may use a tenth of the file's size, with its binaries: with more it is killed.
memory_test_() ->
    {timeout, 300, fun() ->
        with_dir(fun(Dir) ->
            %% Large messages, and many processes that live shortly.
            Message = binary:copy(~"m", 50_000),
            ok = recording(Dir, #{}, []),
            {ok, File} = file:open(filename:join(Dir, "events.0.trace"), [write, raw, binary]),
            lists:foreach(fun(N) ->
                P = pid(N, 1),
                ok = file:write(File, [
                    frame({trace_ts, P, spawned, pid(1, 0), {m, f, []}, ?T0 + 10 * N}),
                    frame({trace_ts, P, send, Message, pid(1, 0), ?T0 + 10 * N + 1}),
                    frame({trace_ts, P, exit, normal, ?T0 + 10 * N + 2})
                ])
            end, lists:seq(1, 5000)),
            ok = file:close(File),
            Size = filelib:file_size(filename:join(Dir, "events.0.trace")),
            Limit = Size div 10 div erlang:system_info(wordsize),
            {ok, #{events := 15_000}} =
                sderl_prof_convert:convert(Dir, filename:join(Dir, "book"),
                                           #{workers => 2, heap_words => Limit})
        end)
    end}.
