%% SPDX-License-Identifier: Apache-2.0
%% Operations on groups and routed messages, from the events of a trace to the report.
-module(sderl_prof_operations_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

-import(sderl_prof_files, [with_dir/1, pid/2]).

%% ---------------------------------------------------------------- terms as texts

terms_test_() ->
    [
        sderl_prop:eunit("a term is written as a shell writes it", 300, fun prop_text/0),
        sderl_prop:eunit("a text is cut, and stays one", 300, fun prop_cut/0),
        sderl_prop:eunit("anything has a text", 300, fun prop_any/0),
        [?_assertEqual(Text, sderl_prof_term:text(etf(Term), 100))
         || {Term, Text} <- [
                {'a b', ~"'a b'"}, {'it\'s', ~"'it\\'s'"}, {a1@_, ~"a1@_"}, {'A', ~"'A'"},
                {"words", ~"\"words\""}, {"a\"b", ~"\"a\\\"b\""}, {~"bin", ~"<<\"bin\">>"},
                {<<0, 255>>, ~"<<2 bytes>>"}, {#{a => 1}, ~"#{a => 1}"}, {[a | b], ~"[a|b]"},
                {1.5, ~"1.5"}, {1 bsl 70, ~"1180591620717411303424"}, {-7, ~"-7"}, {{}, ~"{}"},
                {make_ref(), ~"#Ref"}, {fun() -> ok end, ~"fun"}, {'grüße', ~"'grüße'"}
            ]],
        ?_assertEqual(~"n@h.org", sderl_prof_term:name(etf('n@h.org'), 100)),
        ?_assertEqual(~"{n,1}", sderl_prof_term:name(etf({n, 1}), 100)),
        [?_assertEqual({Term, [etf(E) || E <- Term]}, {Term, sderl_prof_term:list(etf(Term))})
         || Term <- [[], [1, 2], [a], [300, [b]]]],
        [?_assertEqual({Term, error}, {Term, sderl_prof_term:list(etf(Term))})
         || Term <- [a, [a | b], {a}, 7]],
        ?_assertEqual(error, sderl_prof_term:list(<<108, 16#FFFFFFFF:32, 106>>))
    ].

etf(Term) ->
    <<131, Bin/binary>> = term_to_binary(Term),
    Bin.

plain() ->
    ?SIZED(Size, plain(Size)).

plain(0) -> oneof([integer(), oneof([a, b1, 'C', 'd e', undefined])]);
plain(Size) ->
    oneof([plain(0), {plain(Size div 2), plain(Size div 3)}, [plain(Size div 2)],
           ?LET(Few, list(plain(Size div 5)), [x | Few])]).

prop_text() ->
    ?FORALL(Term, plain(), begin
        Text = sderl_prof_term:text(etf(Term), 1_000_000),
        {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text) ++ "."),
        {ok, Term} =:= erl_parse:parse_term(Tokens)
    end).

prop_cut() ->
    ?FORALL({Term, Most}, {any(), range(1, 60)}, begin
        Text = sderl_prof_term:text(etf(Term), Most),
        byte_size(Text) =< Most + byte_size(~"…") andalso sderl_prof_term:valid(Text) =:= Text
    end).

prop_any() ->
    ?FORALL(Bin, binary(), begin
        _ = sderl_prof_term:list(Bin),
        is_binary(sderl_prof_term:text(Bin, 20))
    end).

%% ---------------------------------------------------------------- operations

%% The functions that a recording traces are those that its analysis knows.
recorded_operations_are_read_test() ->
    {ok, #{functions := Functions}} = sderl_prof_options:plan(#{what => s_group}),
    {module, s_group} = code:ensure_loaded(s_group),
    [begin
         Mfa = etf({s_group, Name, Arity}),
         Args = etf([{g, n} | lists:duplicate(Arity - 1, x)]),
         ?assertMatch({{Name, Arity}, {?OPERATION, Mfa, <<?DETAIL, "{", _/binary>>}},
                      {{Name, Arity}, sderl_prof_library:call(Mfa, Args)}),
         %% With the arguments in place of the arity, as other tracers record it.
         {_, _, Detail} = sderl_prof_library:call(Mfa, Args),
         Other = etf({s_group, Name, [{g, n} | lists:duplicate(Arity - 1, x)]}),
         ?assertEqual({?OPERATION, Mfa, Detail}, sderl_prof_library:call(Other, <<>>)),
         %% And they are functions of the library.
         ?assert(erlang:function_exported(s_group, Name, Arity))
     end || {{s_group, Name, Arity}, _} <- Functions].

%% The traced functions exist: nothing else would notice that one was renamed.
recorded_routing_is_there_test() ->
    {ok, #{functions := Functions}} = sderl_prof_options:plan(#{what => routed}),
    ?assertMatch([_, _, _, _, _], Functions),
    [begin
         {ok, {_, [{abstract_code, {_, Forms}}]}} =
             beam_lib:chunks(code:which(Module), [abstract_code]),
         ?assert(lists:any(fun({function, _, F, A, _}) -> {F, A} =:= {Name, Arity};
                              (_) -> false
                           end, Forms))
     end || {{Module, Name, Arity}, _} <- Functions].

-define(CALL_AT(T, F, A, Args), {trace_ts, pid(5, 0), call, {s_group, F, A}, Args, T}).
-define(RETURN_AT(T, F, A, Value), {trace_ts, pid(5, 0), return_from, {s_group, F, A}, Value, T}).

operations_test() ->
    Pid = pid(9, 0),
    [New, Add, Register, Fails, Raises, Open] = told([
        ?CALL_AT(10, new_s_group, 2, [shop, ['a@h', 'b@h']]),
        ?RETURN_AT(30, new_s_group, 2, {ok, shop, ['a@h']}),
        ?CALL_AT(40, add_nodes, 2, [{shop, 1}, ['b@h']]),
        ?RETURN_AT(45, add_nodes, 2, {ok, {shop, 1}, ['b@h']}),
        %% A call within an operation is no operation of its own.
        ?CALL_AT(50, register_name, 2, [{shop, till}, Pid]),
        ?CALL_AT(51, register_name, 3, [shop, till, Pid]),
        ?CALL_AT(52, register_name, 4, [shop, till, Pid, #{}]),
        ?RETURN_AT(53, register_name, 4, yes),
        ?RETURN_AT(54, register_name, 3, yes),
        ?RETURN_AT(55, register_name, 2, yes),
        ?CALL_AT(60, delete_s_group, 1, [shop]),
        ?RETURN_AT(61, delete_s_group, 1, {error, no_majority}),
        ?CALL_AT(70, add_nodes, 2, [shop, wrong]),
        {trace_ts, pid(5, 0), exception_from, {s_group, add_nodes, 2}, {error, badarg}, 72},
        ?CALL_AT(80, leave, 1, [shop])
    ]),
    ?assertMatch(#{operation := ~"s_group:new_s_group/2", at := 10, took := 20, ok := true,
                   group := ~"shop", nodes := [~"a@h", ~"b@h"], got_group := ~"shop",
                   got_nodes := [~"a@h"], arguments := ~"shop, [a@h,b@h]",
                   by := ~"<0.5.0>", text := ~"{ok,shop,[a@h]}"}, New),
    ?assertMatch(#{group := ~"{shop,1}", nodes := [~"b@h"], ok := true}, Add),
    ?assertMatch(#{operation := ~"s_group:register_name/2", at := 50, took := 5, group := ~"shop",
                   name := ~"till", of_process := <<"<0.9.0> at ", _/binary>>, ok := true,
                   got_nodes := null}, Register),
    ?assertMatch(#{ok := false, text := ~"{error,no_majority}", nodes := null}, Fails),
    ?assertMatch(#{ok := false, text := ~"{error,badarg}", took := 2, nodes := []}, Raises),
    ?assertMatch(#{at := 80, took := null, ok := null, text := ~""}, Open),
    [?assert(is_binary(iolist_to_binary(json:encode(One)))) || One <- [New, Register, Open]].

%% A process that ended in an operation, and the next one with its pid.
ended_in_it_test() ->
    P = pid(5, 0),
    Told = told([
        ?CALL_AT(10, leave, 1, [shop]), {trace_ts, P, exit, killed, 20},
        {trace_ts, P, spawned, pid(1, 0), {m, f, []}, 30},
        ?CALL_AT(40, leave, 1, [till]), ?RETURN_AT(50, leave, 1, ok)
    ]),
    ?assertMatch([#{group := ~"shop", took := null}, #{group := ~"till", took := 10}], Told).

many_nodes_test() ->
    Nodes = [list_to_atom(lists:concat([n, N rem 3, '@h'])) || N <- lists:seq(1, 600)],
    [#{nodes := Kept}] = told([?CALL_AT(1, new_s_group, 2, [shop, Nodes])]),
    ?assertEqual({501, null}, {length(Kept), lists:last(Kept)}).

%% Calls of the functions by a program that is recorded with its callers stay calls.
callgraph_stays_test() ->
    with_book([{trace_ts, pid(5, 0), call, {s_group, leave, 1}, {cp, {m, f, 1}}, 10},
               {trace_ts, pid(5, 0), call, {s_group, info, 0}, [], 20}], fun(Book) ->
        ?assertMatch(#{kinds := #{call := 2}}, sderl_prof_book:meta(Book)),
        ?assertEqual(#{all => 0, operations => []}, sderl_prof_operations:find(Book, 10))
    end).

bounded_test() ->
    Events = lists:append([[?CALL_AT(10 * N, leave, 1, [shop]),
                            ?RETURN_AT(10 * N + 1, leave, 1, ok)]
                           || N <- lists:seq(1, 30)]),
    with_book(Events, fun(Book) ->
        #{all := 30, operations := Found} = sderl_prof_operations:find(Book, 7),
        ?assertEqual([10 * N || N <- lists:seq(1, 7)], [At || #{at := At} <- Found])
    end).

told(Events) ->
    with_book(Events, fun(Book) ->
        #{operations := Found} = sderl_prof_operations:find(Book, 100),
        [sderl_prof_operations:told(One, Book) || One <- Found]
    end).

with_book(Events, Fun) ->
    with_dir(fun(Dir) ->
        ok = sderl_prof_files:recording(Dir, #{}, Events),
        {ok, Out} = sderl_prof:open(Dir, #{}),
        {ok, Book} = sderl_prof_book:open(Out),
        try Fun(Book) after ok = sderl_prof_book:close(Book) end
    end).

%% ---------------------------------------------------------------- parts of the time

%% Few operations are listed one by one; many are counted, each once for its node.
marks_test() ->
    Events = lists:append([[?CALL_AT(100 * N, leave, 1, [shop]),
                            ?RETURN_AT(100 * N + 50, leave, 1, ok)] || N <- lists:seq(0, 99)]),
    with_dir(fun(Dir) ->
        ok = sderl_prof_files:recording(Dir, #{ended_at => 10_000}, Events),
        {ok, Out} = sderl_prof:open(Dir, #{}),
        {ok, View} = sderl_prof_view:open(Out, fun(_, _) -> ok end),
        Ask = fun(From, To, Limit) ->
            {ok, Answer} = sderl_prof_marks:operations(
                #{from => From, to => To, limit => Limit, processes => [1]}, View),
            Answer
        end,
        #{all := 100, kept := 100, count := 100, cells := [], rows := Rows} = Ask(0, 10_000, 100),
        ?assertEqual(100, length(Rows)),
        %% Those that go on at the begin of the part are among them.
        #{count := 3, rows := [#{at := 100}, #{at := 200}, #{at := 300}]} = Ask(150, 301, 10),
        #{count := 100, parts := Parts, cells := Cells, rows := [_, _]} = Ask(0, 10_000, 2),
        [?assertEqual(100, lists:sum([N || [Part, 0, Of, N] <- Cells, Part < Parts, Of =:= P]))
         || P <- [0, 1]],
        {error, {range, 20_000, 30_000}} = sderl_prof_marks:operations(
            #{from => 20_000, to => 30_000, limit => 2, processes => []}, View),
        ok = sderl_prof_view:close(View)
    end).

%% With several nodes, each operation is shown on its node, and the report has all of them.
several_nodes_test() ->
    with_dir(fun(Dir) ->
        ok = sderl_prof_two_nodes:with_groups(Dir, 10),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, View} = sderl_prof_view:open(Out, fun(_, _) -> ok end),
        Ask = fun(Limit) ->
            {ok, Answer} = sderl_prof_marks:operations(
                #{from => 0, to => 1_000_000, limit => Limit, processes => []}, View),
            Answer
        end,
        #{rows := Rows} = Ask(100),
        ?assertEqual([{~"s_group:new_s_group/2", ~"a@h"}, {~"s_group:register_name/3", ~"b@h"},
                      {~"s_group:add_nodes/2", ~"a@h"}, {~"s_group:remove_nodes/2", ~"b@h"}],
                     [{Name, Node} || #{operation := Name, node := Node} <- Rows]),
        #{cells := Cells} = Ask(1),
        ?assertEqual([2, 2], [lists:sum([N || [_, Node, 0, N] <- Cells, Node =:= Of])
                              || Of <- [1, 2]]),
        ok = sderl_prof_view:close(View),
        {ok, #{operations := Operations}} = sderl_prof_cluster_report:make(Dir, #{}),
        ?assertEqual([Name || #{operation := Name} <- Rows],
                     [Name || #{operation := Name} <- Operations]),
        _ = json:encode(Operations)
    end).

%% ---------------------------------------------------------------- routed messages

routed_test() ->
    P = pid(5, 0),
    Message = {question, lists:seq(1, 1000)},
    Sent = fun(T, Whom) ->
        {trace_ts, P, call, {sderl_route_send, send_first, 5},
         {routed, 'g@h', shop, Whom, Message}, T}
    end,
    Events = [Sent(N, {name, till}) || N <- lists:seq(1, 5)] ++ [
        Sent(6, {call, {till, 2}}),
        {trace_ts, P, call, {sderl_route_send, each_way, 3}, {every_way, shop}, 7},
        {trace_ts, P, call, {sderl_forward, forwarded, 4}, {passed, 'a@h', 'b@h', 7}, 8},
        {trace_ts, P, call, {sderl_forward, forwarded, 4}, {passed, 'a@h', 'b@h', 1}, 9},
        {trace_ts, P, call, {sderl_forward, count, 3}, {delivered, 12}, 10},
        {trace_ts, P, call, {sderl_forward, failed, 4},
         {undelivered, shop, {name, nobody}, no_name}, 11}
    ],
    Bytes = byte_size(etf(Message)),
    with_book(Events, fun(Book) ->
        #{sent := #{count := 7, bytes := Sum, rows := [First | _] = Rows},
          gateways := [#{first := ~"g@h", count := 6}, #{first := ~"every way", count := 1}],
          passed := #{count := 8, rows := [#{from := ~"a@h", next := ~"b@h", count := 8,
                                             bundles := 2}]},
          delivered := 12,
          undelivered := #{count := 1, rows := [#{to := ~"shop", whom := ~"nobody",
                                                  why := ~"no_name", count := 1}]}} =
            Routed = sderl_prof_routed:find(Book, 10),
        ?assertEqual(6 * Bytes, Sum),
        ?assertEqual(#{at => null, first => ~"g@h", to => ~"shop", whom => ~"till", count => 5,
                       bytes => 5 * Bytes}, First),
        %% Of the first six events only.
        {From, _} = sderl_prof_book:range(sderl_prof_book:meta(Book)),
        ?assertMatch(#{sent := #{count := 6}, passed := #{count := 0, rows := []}, delivered := 0,
                       undelivered := #{count := 0, rows := []}},
                     sderl_prof_routed:part(Book, #{from => From, to => 6}, 10)),
        ?assertEqual([~"a call, again", ~"till", ~"{till,2}, call"],
                     lists:sort([Whom || #{whom := Whom} <- Rows])),
        _ = json:encode(Routed)
    end),
    with_book([{trace_ts, P, register, x, 1}], fun(Book) ->
        ?assertEqual(null, sderl_prof_routed:find(Book, 10))
    end).

%% Any bytes in place of the library's terms.
damaged_test_() ->
    Mfas = [etf({s_group, new_s_group, 2}), etf({sderl_forward, count, 3})],
    Words = [routed, every_way, passed, delivered, undelivered, cp],
    sderl_prop:eunit("anything is a call", 300, fun() ->
        ?FORALL({Mfa, More}, {oneof([binary() | Mfas]),
                              oneof([binary(), ?LET(T, any(), etf(T)),
                                     ?LET({Word, Parts}, {oneof(Words), list(any())},
                                          etf(list_to_tuple([Word | Parts])))])},
                begin
                    {_, Word, Other} = sderl_prof_library:call(Mfa, More),
                    {_, _, _} = sderl_prof_library:return(?RETURN_FROM, Mfa, More),
                    {_, _, _} = sderl_prof_library:return(?EXCEPTION, Mfa, More),
                    is_binary(Word) andalso (is_binary(Other) orelse is_integer(Other))
                end)
    end).
