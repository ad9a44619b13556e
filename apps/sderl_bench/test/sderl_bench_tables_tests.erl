%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_tests).
-moduledoc "The tables of `bin/sderl bench tables`: what they do, never how fast they are.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

text(Text) -> unicode:characters_to_binary(Text).

says(Words, {error, Text}) -> says(Words, Text);
says(Words, Text) ->
    ?assertNotEqual({nomatch, text(Text)}, {string:find(text(Text), Words), text(Text)}).

checked(Args) -> sderl_bench_options:checked("tables", sderl_bench_tables_experiment, Args).

%% ---------------------------------------------------------------- operations and keys

keys(Distribution, Keys, Count) ->
    Stream = sderl_bench_tables_keys:stream(1, #{
        count => Count, mix => #{read => 90, put => 10}, keys => Keys,
        distribution => Distribution}),
    [{Key, Op} || <<Key:28, Op:4>> <= Stream].

counted(List) ->
    maps:map(fun(_, Some) -> length(Some) end, maps:groups_from_list(fun(X) -> X end, List)).

%% Rank R has the weight R^-S, and its share is this divided by the sum of all weights. The number
%% of draws of a rank is seldom five standard deviations away from the expected one.
zipf_test_() ->
    [
        {lists:concat([S, " of ", Keys]), {timeout, 120, fun() ->
            Count = 20_000,
            Drawn = counted([Key || {Key, _} <- keys({zipf, S}, Keys, Count)]),
            Sum = lists:sum([math:pow(R, -S) || R <- lists:seq(1, Keys)]),
            [begin
                Share = math:pow(Rank, -S) / Sum,
                Expected = Count * Share,
                Far = 5 * math:sqrt(Count * Share * (1 - Share)) + 1,
                Got = maps:get(sderl_bench_tables_keys:spread(Rank, Keys), Drawn, 0),
                ?assertMatch({_, true}, {{Rank, Got, Expected}, abs(Got - Expected) =< Far})
             end || Rank <- lists:seq(1, min(Keys, 40))]
        end}}
     || {S, Keys} <- [{0.99, 1000}, {1.0, 50}, {1.2, 10_000}, {0.5, 7}, {2.0, 1}]
    ].

uniform_test() ->
    Drawn = keys(uniform, 10, 20_000),
    ?assert(lists:all(fun({_, N}) -> abs(N - 2000) < 5 * math:sqrt(1800) end,
                      maps:to_list(counted([Key || {Key, _} <- Drawn])))),
    #{1 := Puts} = counted([Op || {_, Op} <- Drawn]),
    ?assert(abs(Puts - 2000) < 5 * math:sqrt(1800)).

spread_test_() ->
    sderl_prop:eunit("every key has one rank", 200, fun() ->
        ?FORALL(Keys, range(1, 2000),
                lists:sort([sderl_bench_tables_keys:spread(Rank, Keys)
                            || Rank <- lists:seq(1, Keys)]) =:= lists:seq(1, Keys))
    end).

%% ---------------------------------------------------------------- all tables

settings(Module, Own, More) ->
    maps:merge(maps:merge(sderl_bench_tables_load:settings(short, 2), Own),
               More#{kind => Module}).

%% After the same operations, a table has the same content as a map.
content(sderl_bench_tables_ets, Table) -> maps:from_list(ets:tab2list(Table));
content(sderl_bench_tables_shards, Tables) ->
    maps:from_list(lists:append([ets:tab2list(Table) || Table <- tuple_to_list(Tables)]));
content(sderl_bench_tables_process, Server) -> sys:get_state(Server);
content(_, _) -> unknown.

change(put, Key, N, Module, Client) -> Module:put(Key, N, Client);
change(delete, Key, _, Module, Client) -> Module:delete(Key, Client);
change(read, Key, _, Module, Client) -> Module:read(Key, Client);
change(add, Key, _, Module, Client) -> Module:add(Key, Client).

changed(put, Key, N, Map) -> Map#{Key => N};
changed(delete, Key, _, Map) -> maps:remove(Key, Map);
changed(read, _, _, Map) -> Map;
changed(add, Key, _, Map) -> maps:update_with(Key, fun(V) -> V + 1 end, 1, Map).

content_test_() ->
    [
        {Name, {timeout, 120, fun() ->
            Settings = settings(Module, Own, #{keys => 9, add => 1}),
            Shared = Module:new(Settings),
            Ops = [Op || Op <- [put, delete, add, read], lists:member(Op, Module:can(Settings))],
            {_, State} = lists:foldl(fun(N, {Client, Map}) ->
                Op = lists:nth(1 + N rem length(Ops), Ops),
                Key = 1 + erlang:phash2(N, 9),
                {change(Op, Key, N, Module, Client), changed(Op, Key, N, Map)}
            end, {Module:client(Shared, Settings), #{Key => 0 || Key <- lists:seq(1, 9, 2)}},
                lists:seq(1, 200)),
            ?assertEqual(State, content(Module, Shared)),
            Module:close(Shared)
        end}}
     || {Module, {Name, _, Own, _}} <- sderl_bench_tables_options:variants(),
        lists:member(put, Module:can(Own)), maps:get(type, Own, none) =/= bag,
        lists:member(Module, [sderl_bench_tables_ets, sderl_bench_tables_shards,
                              sderl_bench_tables_process])
    ].

%% Several workers operate at the same time, and neither an operation nor an addition is lost.
load_test_() ->
    [
        {lists:concat([Name, " ", Op]), {timeout, 120, fun() ->
            Settings = settings(Module, Own, #{keys => 50, operations => 3001, workers => 7,
                                               read => 40, Op => case Op of
                                                   read -> 100;
                                                   _ -> 60
                                               end}),
            {ok, #{text := Text}} =
                sderl_bench_vm_loop:run({program, sderl_bench_tables_load, Settings}, 2),
            Added = length([ok || Worker <- lists:seq(1, 7),
                                  {_, 3} <- drawn(Worker, Settings)]),
            Sum = case Op of
                add when Module =/= sderl_bench_tables_none -> Added;
                _ -> none
            end,
            ?assertEqual(text(io_lib:format("~0p", [{3001, Sum}])), Text)
        end}}
     || {Module, {Name, usual, Own, _}} <- sderl_bench_tables_options:variants(),
        Op <- [put, delete, add, range, read], lists:member(Op, Module:can(Own)),
        Op =/= read orelse Module:can(Own) =:= [read]
    ].

drawn(Worker, #{operations := Operations, workers := Workers, keys := Keys} = Settings) ->
    Count = Operations div Workers
        + case Worker =< Operations rem Workers of true -> 1; false -> 0 end,
    Stream = sderl_bench_tables_keys:stream({sderl_bench_tables_load, Worker}, #{
        count => Count, mix => sderl_bench_tables_keys:mix(Settings), keys => Keys,
        distribution => uniform}),
    [{Key, Op} || <<Key:28, Op:4>> <= Stream].

ets_options_test() ->
    How = #{Name => Text || {_, {Name, _, _, Text}} <- sderl_bench_tables_options:variants()},
    ?assertEqual("ets:new(Name, [set,public])", map_get("set", How)),
    ?assertEqual("ets:new(Name, [ordered_set,public,{read_concurrency,true},"
                 "{write_concurrency,true},{decentralized_counters,false}])",
                 map_get("ordered_set+read+write-counters", How)).

%% ---------------------------------------------------------------- options

programs(Args) ->
    {ok, #{do := {measure, #{programs := [#{control := true} | Programs]}}}} = checked(Args),
    [unicode:characters_to_list(Name) || #{name := Name} <- Programs].

options_test_() ->
    {timeout, 120, fun() ->
        %% A set has no order, so it is not measured with mixes that have ranges.
        ?assertEqual(["set: 90 read 5 put 5 delete, uniform"],
                     programs(["--tables", "set", "--updates", "10", "--ranges", "0,10", "--adds",
                               "-", "--distribution", "uniform"])),
        %% The simplest table comes first, in whatever order the tables are named.
        ?assertEqual(["ordered_set: 97 read 2 put 1 delete, zipf 1.5",
                      "ordered_set: 75 read 25 add, zipf 1.5",
                      "atomics: 75 read 25 add, zipf 1.5"],
                     programs(["--tables", "atomics,ordered_set", "--updates", "3", "--adds", "25",
                               "--distribution", "zipf:1.5"])),
        {ok, #{do := {measure, #{header := #{settings := #{code := Code}, command := Command}}}}} =
            checked(["--tables", "sharded", "--updates", "0", "--adds", "-", "--keys", "10"]),
        #{sderl_bench_tables_shards := _, sderl_bench_tables_fill := _,
          sderl_bench_tables_keys := _} = Code,
        ?assertEqual(~"bin/sderl bench tables --tables sharded --updates 0 --adds - --keys 10",
                     Command)
    end}.

wrong_options_test_() ->
    [
        {Words, {timeout, 120, ?_test(says(Words, checked(Args)))}}
     || {Words, Args} <- [
            {"there is no table \"hash\"; there are atomics, bag,", ["--tables", "hash"]},
            {"names set twice", ["--tables", "set,set"]},
            {"persistent_term cannot add", ["--tables", "persistent_term", "--updates", "-"]},
            {"are more than 100 %", ["--updates", "60", "--ranges", "50"]},
            {"no mix is left", ["--updates", "-", "--adds", "-"]},
            {"--updates: \"x\" is no whole number", ["--updates", "x"]},
            {"there is no distribution \"even\"", ["--distribution", "even"]},
            {"--distribution: \"big\" is no number", ["--distribution", "zipf:big"]},
            {"--keys is a whole number from 1 to 268435455, not 0", ["--keys", "0"]},
            {"MiB: take fewer", ["--keys", "200000000", "--value-words", "100000"]},
            {"--range-length is a whole number", ["--range-length", "-1"]},
            {"--workers is a whole number", ["--workers", "0"]},
            {"--mine /no/such: no such file", ["--mine", "/no/such"]},
            {"--show and --compare", ["--show", "a", "--compare", "a", "b"]}
        ]
    ].

with_file(Content, Fun) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         lists:concat(["sderl_tables_", os:getpid(), "_",
                                       erlang:unique_integer([positive])])),
    ok = file:write_file(File, Content),
    try Fun(File) after file:delete(File) end.

mine_test_() ->
    {timeout, 120, fun() ->
        with_file("{read, 70}. {add, 30}. {keys, 8}. {distribution, \"zipf\"}. {workers, 3}.",
                  fun(File) ->
            Names = programs(["--mine", File]),
            %% The least number of virtual machines is enough for a choice among these tables. There
            %% is no race with a table that cannot be the choice, because others would be left out
            %% by its times.
            {ok, #{do := {measure, #{least := Least, race := true, header := #{race := true}}}}} =
                checked(["--mine", File]),
            ?assert(Least >= sderl_bench_sample:least(sderl_bench_verdict:level(
                length(Names) - 1))),
            {ok, #{do := {measure, #{race := false}}}} =
                checked(["--mine", File, "--tables", "none,set"]),
            {ok, #{do := {measure, #{race := false, header := #{race := false}}}}} =
                checked(["--tables", "set"]),
            ?assert(lists:member("counters+write: 70 read 30 add, zipf 0.99", Names)),
            ?assert(lists:member("set+read+auto-counters: 70 read 30 add, zipf 0.99", Names)),
            ?assertEqual([], [Name || Name <- Names, lists:prefix("bag", Name)
                                                     orelse lists:prefix("none", Name)]),
            {ok, #{do := {measure, #{programs := [_, #{job := {program, _, Settings}} | _]}}}} =
                checked(["--mine", File, "--tables", "set"]),
            ?assertMatch(#{keys := 8, workers := 3, operations := 200_000, add := 30}, Settings)
        end),
        [with_file(Content, fun(File) -> says(Words, checked(["--mine", File])) end)
         || {Words, Content} <- [
                {"are together 90, and must be 100", "{read, 90}."},
                {"{colour,red} is none of its terms", "{colour, red}."},
                {"leave out add or put", "{add, 50}. {put, 50}."},
                {"{read,100} is given twice", "{read, 1}. {read, 100}."},
                {"--keys is a whole number", "{read, 100}. {keys, many}."},
                {"there is no distribution", "{read, 100}. {distribution, \"even\"}."},
                {"{read,\"all\"} is none", "{read, \"all\"}."},
                {"1: ", "{read, "}
            ]]
    end}.

%% ---------------------------------------------------------------- the choice

times(Ns, Count) -> [Ns * (1 + I / 10_000) || I <- lists:seq(1, Count)].

choice_test() ->
    Of = fun(Tables, Count) ->
        #{fastest := Fastest, take := Take, provisional := Provisional} =
            sderl_bench_tables_choice:of_times([{Name, times(Ns, Count)} || {Name, Ns} <- Tables],
                                               true),
        {Fastest, Take, Provisional}
    end,
    Tables = [{~"set", 150.0}, {~"auto", 103.0}, {~"write", 102.0}, {~"all", 100.0},
              {~"odd", 100.5}],
    %% The choice is the simplest table that is hardly slower than the fastest.
    ?assertEqual({~"all", ~"auto", false}, Of(Tables, 12)),
    ?assertEqual({~"set", ~"set", false}, Of([{~"set", 99.0} | tl(Tables)], 12)),
    ?assertEqual({~"all", ~"all", false}, Of([{~"set", 150.0}, {~"all", 100.0}], 12)),
    ?assertMatch({~"all", ~"all", {true, _}}, Of(Tables, 2)),
    ?assertMatch({~"one", ~"one", _}, Of([{~"one", 1.0}], 12)).

%% A table that was left out of a race needs no more virtual machines. It still counts for
%% the level of the choice, so the others need no fewer virtual machines.
left_out_test() ->
    In = fun(Race, Count, Slow) ->
        sderl_bench_tables_choice:of_times(
            [{~"slow", [150.1 * (1 + I / 100) || I <- lists:seq(0, Slow - 1)]}
             | [{<<"t", (integer_to_binary(I))/binary>>, times(100.0 + I / 10, Count)}
                || I <- lists:seq(0, 22)]],
            Race)
    end,
    Of = fun(Count, Slow) -> In(true, Count, Slow) end,
    ?assertMatch(#{take := ~"t0", provisional := false, left_out := [~"slow"]}, Of(8, 2)),
    ?assertMatch(#{provisional := {true, 8}, left_out := [~"slow"]}, Of(7, 2)),
    %% A table that was measured as often as the others, or once less, was not left out.
    ?assertMatch(#{provisional := {true, 8}, left_out := []}, Of(2, 2)),
    ?assertMatch(#{provisional := {true, 8}, left_out := []}, Of(3, 2)),
    ?assertMatch(#{provisional := false, left_out := []}, Of(8, 8)),
    %% The slow table has a third time, from a round in which nothing was left out yet because
    %% another table had failed.
    ?assertMatch(#{take := ~"t0", provisional := false, left_out := [~"slow"]}, Of(8, 3)),
    %% Without a race no table is left out: one with too few times has failed.
    ?assertMatch(#{provisional := {true, 8}, left_out := []}, In(false, 8, 2)).

%% A table that was measured once and then failed does not keep others in the race. It has too few
%% values, so the choice is provisional.
failed_in_race_test() ->
    Choice = sderl_bench_tables_choice:of_times(
        [{~"set", times(100.0, 12)}, {~"slow", times(200.0, 2)}, {~"broken", [110.0]}], true),
    ?assertMatch(#{take := ~"set", left_out := [~"slow"], provisional := {true, _}}, Choice).

%% ---------------------------------------------------------------- in words

line(Program, N, Round, Ns) ->
    #{~"kind" => ~"vm", ~"program" => Program, ~"schedulers" => N, ~"round" => Round,
      ~"flags" => <<>>, ~"otp" => <<>>, ~"runs" => [Ns], ~"hash" => 1, ~"text" => ~"ok",
      ~"why" => #{~"busy" => lists:duplicate(N, 0.9), ~"wall_ns" => Ns * 1.2, ~"queue" => 2,
                  ~"reductions" => 100, ~"collections" => 1, ~"states" => #{},
                  ~"locks" => #{~"db_tab" => Ns * 0.6},
                  ~"counters" => #{~"cache_misses" => 0.1 * N}}}.

%% 1,000 operations in 1 ms are one million a second.
view_test() ->
    Table = fun(Name, More) ->
        #{~"name" => Name, ~"control" => false, ~"settings" => maps:merge(#{
            ~"table" => Name, ~"mix" => ~"100 read, uniform", ~"keys" => 10, ~"workers" => 2,
            ~"operations" => 1000, ~"how" => <<"how ", Name/binary>>}, More)}
    end,
    Header = #{
        ~"machine" => #{~"cores" => 2, ~"quota" => null, ~"threads_per_core" => 1,
                        ~"kinds_of_cores" => 1, ~"memory_nodes" => 1, ~"governor" => null},
        ~"settings" => #{
            ~"programs" => [#{~"name" => ~"control", ~"control" => true, ~"settings" => #{}},
                            Table(~"set", #{}), Table(~"sharded", #{}), Table(~"none", #{}),
                            Table(~"bag", #{~"type" => ~"bag"}),
                            Table(~"atomics", #{~"mix" => ~"100 add, uniform"})],
            ~"points" => [#{~"schedulers" => N, ~"flags" => <<>>, ~"otp" => <<>>} || N <- [1, 2]]
        }
    },
    %% All programs scale perfectly, except `none`.
    Lines = [line(Name, N, Round, 1.0e6 * Factor / case Name of ~"none" -> 1; _ -> N end
                                      * (1 + Round / 10_000))
             || {Name, Factor} <- [{~"control", 1}, {~"set", 1.02}, {~"sharded", 1}, {~"bag", 0.5},
                                   {~"none", 0.1}, {~"atomics", 0.25}],
                N <- [1, 2], Round <- lists:seq(1, 12)],
    Summary = sderl_bench_vm_summary:of_lines(Header, Lines),
    Text = text(sderl_bench_tables_view:text(Summary)),
    [says(Words, Text) || Words <- ["fastest on 2: sharded; take set: how set",
                                    "the simplest that takes at most 5 % longer",
                                    "100 read, uniform; 10 keys, 1,000 operations by 2 workers",
                                    "cannot do this: atomics",
                                    "    1 scheduler: 0.90 at work",
                                    "  sharded\n",
                                    "why: it scales: 2.00 times on 2 schedulers",
                                    "why: 0.20 of 2 schedulers had no work",
                                    "why: threads wait for locks, in the mean 0.50 for db_tab",
                                    "the processor counts: cache misses 20.0 %"]],
    Rows = [{Table1, N, round(Rate)}
            || {#{table := Table1, schedulers := N}, #{ops_per_s := Rate}}
                   <- sderl_bench_tables_view:rows(Summary)],
    ?assertEqual(10, length(Rows)),
    {~"atomics", 2, Rate} = lists:keyfind(~"atomics", 1, [Row || {_, 2, _} = Row <- Rows]),
    ?assert(abs(Rate - 8.0e6) < 1.0e5).
