%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_SUITE).

%% The log of real nodes: what is logged there is found here or counted, the handler comes and goes
%% with the probe, and no process that logs waits.

-include_lib("stdlib/include/assert.hrl").
-include_lib("kernel/include/logger.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([comes_and_goes/1, told_by_its_node/1, no_cookies/1, silent_watcher/1, killed/1,
         loaded_into_a_stock_node/1, set_meanwhile/1, found/1]).
%% On the nodes.
-export([say/3, collector/0, watcher/0, got/1]).

-define(OWNER, sderl_mon_probe_owner).
-define(SOON, 60_000).
-define(HANDLER, sderl_mon_handler).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [comes_and_goes, told_by_its_node, no_cookies, silent_watcher, killed,
     loaded_into_a_stock_node, set_meanwhile, found].

init_per_suite(Config) ->
    Owner = spawn(fun() -> receive release -> ok end end),
    {ok, Fleet} = sderl_fleet:start(#{owner => Owner, families => [
        #{name => n, count => 2, apps => [sderl]},
        #{name => plain, count => 1, paths => []},
        #{name => mon, count => 2, hidden => true}]}),
    [{fleet, Fleet}, {owner, Owner}, {nodes, sderl_fleet:nodes(Fleet)} | Config].

end_per_suite(Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)),
    proplists:get_value(owner, Config) ! release.

%% ---------------------------------------------------------------- helpers

cluster(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?SOON).

await(Fun) -> sderl_ct:await(condition, Fun, ?SOON).

%% Logs on a node: so many.
say(Level, Text, N) ->
    lists:foreach(fun(I) -> ?LOG(Level, "~ts ~b", [Text, I]) end, lists:seq(1, N)).

collector() ->
    case logger:get_handler_config(?HANDLER) of
        {ok, #{config := #{collector := Pid}}} -> Pid;
        {error, _} -> none
    end.

options(More) -> maps:merge(#{level => notice, per_s => 1000, burst => 1000}, More).

%% A watcher on a monitoring node: keeps the batches that it gets, and acknowledges them or not.
watcher() -> spawn(fun() -> watch(true, []) end).

watch(Acks, Got) ->
    receive
        {sderl_mon_logged, Pid, #{seq := Seq} = Batch} ->
            _ = Acks andalso (Pid ! {sderl_mon_log_ack, Seq}),
            watch(Acks, [Batch | Got]);
        {sderl_mon_sample, Pid, #{seq := Seq}} -> Pid ! {sderl_mon_ack, Seq}, watch(Acks, Got);
        {acks, New} -> watch(New, Got);
        {got, From, Ref} -> From ! {Ref, lists:reverse(Got)}, watch(Acks, Got)
    end.

got(Watcher) ->
    Ref = make_ref(),
    Watcher ! {got, self(), Ref},
    receive {Ref, Got} -> Got after ?SOON -> error(timeout) end.

%% Each batch once, in order.
batches({Fleet, Mon, Watcher}) ->
    Got = call(Fleet, Mon, ?MODULE, got, [Watcher]),
    lists:usort(fun(#{seq := A}, #{seq := B}) -> A =< B end, Got).

send({Fleet, Mon, Watcher}, Message) -> call(Fleet, Mon, erlang, send, [Watcher, Message]).

%% What is asked of the probe comes from the watcher's node.
want({Fleet, Mon, Watcher}, Probe, Options) ->
    call(Fleet, Mon, erlang, send, [Probe, {sderl_mon_log_wanted, Watcher, Options}]).

%% Of events whose text begins so: the library on the node may log something, too.
told(Watcher, Begin) ->
    [E || #{events := Events} <- batches(Watcher), {_, _, _, _, T} = E <- Events,
          string:prefix(T, Begin) =/= nomatch].

texts(Watcher, Begin) -> [T || {_, _, _, _, T} <- told(Watcher, Begin)].

lost(Watcher) ->
    case batches(Watcher) of
        [] -> #{};
        Batches -> maps:get(lost, lists:last(Batches))
    end.

%% A probe that has the log told.
started(Fleet, Mon, Node, Options) ->
    Watcher = call(Fleet, Mon, ?MODULE, watcher, []),
    {ok, Probe} = call(Fleet, Node, sderl_mon_probe, start,
                       [#{owner => Watcher, interval_ms => 100}]),
    From = {Fleet, Mon, Watcher},
    _ = want(From, Probe, Options),
    await(fun() -> lists:member(?HANDLER, call(Fleet, Node, logger, get_handler_ids, [])) end),
    {From, Probe}.

%% ---------------------------------------------------------------- cases

%% The handler is there as long as somebody wants it, with the level that is wanted.
comes_and_goes(Config) ->
    {Fleet, [N1, _, _, Mon, _]} = cluster(Config),
    Before = call(Fleet, N1, logger, get_handler_ids, []),
    {Watcher, Probe} = started(Fleet, Mon, N1, options(#{})),
    ok = call(Fleet, N1, ?MODULE, say, [info, "quiet", 1]),
    ok = call(Fleet, N1, ?MODULE, say, [error, "loud", 3]),
    await(fun() -> texts(Watcher, "loud") =:= [~"loud 1", ~"loud 2", ~"loud 3"] end),
    [#{node := N1} | _] = batches(Watcher),
    [{error, T, Mfa, <<"<0.", _/binary>>, _} | _] = told(Watcher, "loud"),
    ?assertMatch(<<?MODULE_STRING ":", _/binary>>, Mfa),
    ?assert(abs(erlang:system_time(microsecond) - T) < 3600_000_000, T),
    %% Another level; options that are none change nothing.
    _ = want(Watcher, Probe, options(#{level => error})),
    _ = want(Watcher, Probe, #{level => loud}),
    _ = want({Fleet, Mon, Probe}, Probe, off),
    await(fun() -> {ok, #{level := L}} = call(Fleet, N1, logger, get_handler_config, [?HANDLER]),
                   L =:= error end),
    ok = call(Fleet, N1, ?MODULE, say, [warning, "quiet", 1]),
    ok = call(Fleet, N1, ?MODULE, say, [error, "again", 1]),
    await(fun() -> texts(Watcher, "again") =:= [~"again 1"] end),
    ?assertEqual([], texts(Watcher, "quiet")),
    _ = want(Watcher, Probe, off),
    await(fun() -> call(Fleet, N1, logger, get_handler_ids, []) =:= Before end),
    _ = want(Watcher, Probe, options(#{})),
    await(fun() -> is_pid(call(Fleet, N1, ?MODULE, collector, [])) end),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []),
    %% The probe waits a second for that, and the handler goes all the same.
    await(fun() -> call(Fleet, N1, logger, get_handler_ids, []) =:= Before end).

%% A process that another node began has its group leader there, so that both nodes log its events:
%% its own node tells them, and the other does not.
told_by_its_node(Config) ->
    {Fleet, [N1, N2, _, Mon, _]} = cluster(Config),
    {First, _} = started(Fleet, Mon, N1, options(#{})),
    {Second, _} = started(Fleet, Mon, N2, options(#{})),
    ok = call(Fleet, N1, rpc, call, [N2, ?MODULE, say, [error, "far", 3]]),
    await(fun() -> texts(Second, "far") =:= [~"far 1", ~"far 2", ~"far 3"] end),
    ok = call(Fleet, N1, ?MODULE, say, [error, "near", 1]),
    await(fun() -> texts(First, "near") =:= [~"near 1"] end),
    ?assertEqual([], texts(First, "far")),
    [ok = call(Fleet, N, sderl_mon_probe, stop, []) || N <- [N1, N2]].

%% No cookie leaves the node with its log: neither one that somebody logs nor one that is in the
%% state of a process that ends, also when it is another by now.
no_cookies(Config) ->
    {Fleet, [N1, _, _, Mon, _]} = cluster(Config),
    Own = call(Fleet, N1, erlang, get_cookie, []),
    Others = 'cookie-of-somebody-else',
    true = call(Fleet, N1, erlang, set_cookie, ['nobody@127.0.0.1', Others]),
    {Watcher, _} = started(Fleet, Mon, N1, options(#{})),
    [ok = call(Fleet, N1, logger, error, ["mine: ~ts, ~0tp", [Cookie, #{a => Cookie}]])
     || Cookie <- [Own, Others]],
    _ = call(Fleet, N1, proc_lib, spawn, [erlang, exit, [{last_words, Own, [Others]}]]),
    await(fun() -> length(texts(Watcher, "mine: (hidden), #{a => ")) =:= 2 end),
    All = fun() -> [T || #{events := Events} <- batches(Watcher), {_, _, _, _, T} <- Events] end,
    await(fun() -> [T || T <- All(), string:find(T, "last_words") =/= nomatch] =/= [] end),
    ?assertEqual([], [T || T <- All(), Cookie <- [Own, Others],
                           binary:match(T, atom_to_binary(Cookie)) =/= nomatch]),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []).

%% While the watcher takes nothing, so many wait and the rest is counted; the processes that log are
%% not kept. When it takes again, what waited comes, and all is shown or counted.
silent_watcher(Config) ->
    {Fleet, [N1, _, _, Mon, _]} = cluster(Config),
    {Watcher, _} = started(Fleet, Mon, N1, options(#{per_s => 10_000, burst => 10_000})),
    _ = send(Watcher, {acks, false}),
    ok = call(Fleet, N1, ?MODULE, say, [warning, "flood", 1500]),
    ?assert(length(texts(Watcher, "flood")) =< 200),
    _ = send(Watcher, {acks, true}),
    await(fun() ->
        case {length(texts(Watcher, "flood")), lost(Watcher)} of
            {Shown, #{queue := #{warning := Queue}} = Lost} ->
                Rate = maps:get(warning, maps:get(rate, Lost, #{}), 0),
                Shown + Queue + Rate >= 1500 orelse {Shown, Lost};
            Other -> Other
        end
    end),
    ?assert(length(texts(Watcher, "flood")) > 900),
    %% A rate: one more that is logged later comes, and all losses are known.
    ok = call(Fleet, N1, sderl_mon_probe, stop, []),
    {Slow, _} = started(Fleet, Mon, N1, options(#{per_s => 1, burst => 5})),
    ok = call(Fleet, N1, ?MODULE, say, [error, "burst", 500]),
    await(fun() ->
        #{rate := #{error := Rate}} = lost(Slow),
        length(texts(Slow, "burst")) + Rate >= 500 orelse {texts(Slow, "burst"), Rate}
    end),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []).

%% The collector is killed: there is another. The probe is killed: nothing of it stays. Both are:
%% the handler is taken away by whoever finds that nobody takes what waits.
killed(Config) ->
    {Fleet, [N1, _, _, Mon, _]} = cluster(Config),
    Before = call(Fleet, N1, logger, get_handler_ids, []),
    {Watcher, Probe} = started(Fleet, Mon, N1, options(#{})),
    First = call(Fleet, N1, ?MODULE, collector, []),
    true = call(Fleet, N1, erlang, exit, [First, kill]),
    await(fun() -> case call(Fleet, N1, ?MODULE, collector, []) of
        none -> false;
        Pid -> Pid =/= First
    end end),
    ok = call(Fleet, N1, ?MODULE, say, [error, "after", 1]),
    await(fun() -> texts(Watcher, "after") =:= [~"after 1"] end),
    true = call(Fleet, N1, erlang, exit, [Probe, kill]),
    await(fun() -> call(Fleet, N1, logger, get_handler_ids, []) =:= Before end),
    %% (Killed first, the collector cannot see the end of the probe.)
    {_, Second} = started(Fleet, Mon, N1, options(#{per_s => 10_000, burst => 10_000})),
    true = call(Fleet, N1, erlang, suspend_process, [Second]),
    true = call(Fleet, N1, erlang, exit, [call(Fleet, N1, ?MODULE, collector, []), kill]),
    true = call(Fleet, N1, erlang, exit, [Second, kill]),
    await(fun() ->
        ok = call(Fleet, N1, ?MODULE, say, [error, "nobody", 1100]),
        call(Fleet, N1, logger, get_handler_ids, []) =:= Before
    end).

%% A node without our code: neither that nor the handler stays.
loaded_into_a_stock_node(Config) ->
    {Fleet, [_, _, Plain, Mon, _]} = cluster(Config),
    true = call(Fleet, Mon, net_kernel, connect_node, [Plain]),
    Before = call(Fleet, Plain, logger, get_handler_ids, []),
    ok = call(Fleet, Mon, ?OWNER, inject, [Plain, call(Fleet, Mon, sderl_mon_probe, code, [])]),
    {Watcher, _} = started(Fleet, Mon, Plain, options(#{})),
    await(fun() ->
        ok = call(Fleet, Plain, logger, error, ["plain"]),
        texts(Watcher, "plain") =/= []
    end),
    ok = call(Fleet, Plain, sderl_mon_probe, stop, []),
    await(fun() -> call(Fleet, Plain, logger, get_handler_ids, []) =:= Before end),
    await(fun() ->
        {call(Fleet, Plain, code, is_loaded, [sderl_mon_probe_log]),
         call(Fleet, Plain, erlang, check_old_code, [sderl_mon_probe_log])} =:= {false, false}
    end).

%% What is set while a node is being told of what was set before holds in the end.
set_meanwhile(Config) ->
    {Fleet, [N1, _, _, M1, _]} = cluster(Config),
    ok = call(Fleet, M1, application, set_env,
              [sderl_mon, config, #{seeds => [N1], interval_ms => 250, nodes => [N1]}]),
    {ok, _} = call(Fleet, M1, application, ensure_all_started, [sderl_mon]),
    await(fun() -> is_pid(call(Fleet, N1, ?MODULE, collector, [])) end),
    Set = fun(Log) ->
        ok = call(Fleet, M1, sderl_mon, set, [#{log => Log}]),
        await(fun() ->
            [Agent] = call(Fleet, M1, sderl_mon_agent_sup, agents, []),
            {ok, #{config := Ordered}} = call(Fleet, M1, sderl_mon_agent, orders, [Agent]),
            case Ordered of
                #{log := off} -> Log =:= off;
                #{log := #{level := Level}} -> Log =:= #{level => Level}
            end
        end)
    end,
    %% Nothing that takes time begins.
    ok = call(Fleet, M1, sys, suspend, [sderl_mon_pool]),
    Set(#{level => error}),
    Set(off),
    ok = call(Fleet, M1, sys, resume, [sderl_mon_pool]),
    await(fun() -> call(Fleet, N1, ?MODULE, collector, []) =:= none end),
    ok = call(Fleet, M1, application, stop, [sderl_mon]).

%% Two monitoring nodes, one of which keeps files: each has the log of all nodes, finds it by node
%% and group, and says what is lost; the files outlive a restart, the other node goes on meanwhile.
found(Config) ->
    {Fleet, [N1, N2, _, M1, M2]} = cluster(Config),
    Ms = [M1, M2],
    Dir = filename:join(proplists:get_value(priv_dir, Config), "log"),
    {ok, g, _} = call(Fleet, N1, s_group, new_s_group, [g, [N1, N2]]),
    Given = #{seeds => [N1], monitors => Ms, interval_ms => 250, nodes => [N1, N2]},
    [begin
         ok = call(Fleet, M, application, set_env, [sderl_mon, config, maps:merge(Given, More)]),
         {ok, _} = call(Fleet, M, application, ensure_all_started, [sderl_mon])
     end || {M, More} <- [{M1, #{log_files => #{dir => Dir}}}, {M2, #{}}]],
    Search = fun(M, Options) ->
        {ok, #{events := Events}} = call(Fleet, M, sderl_mon_log, search, [Options]),
        [T || #{text := T} <- Events]
    end,
    %% It is watched, and the masters know which group it is in.
    await(fun() ->
        [ok = call(Fleet, N, ?MODULE, say, [error, "hello", 1]) || N <- [N1, N2]],
        lists:all(fun({M, N}) ->
            Search(M, #{node => atom_to_binary(N), group => ~"g", text => ~"HELLO"}) =/= []
        end, [{M, N} || M <- Ms, N <- [N1, N2]])
    end),
    ok = call(Fleet, N2, ?MODULE, say, [warning, "only there", 2]),
    await(fun() -> Search(M1, #{text => ~"Only"}) =:= [~"only there 2", ~"only there 1"] end),
    ?assertEqual([], Search(M1, #{text => ~"only", node => atom_to_binary(N1)})),
    ?assertEqual([], Search(M1, #{text => ~"only", level => error})),
    ?assertEqual([~"only there 2"],
                 Search(M1, #{text => ~"only", module => ~"sderl_mon_log_SUITE", limit => 1})),
    %% Of too many the rest is told, to each, and adds up.
    ok = call(Fleet, N1, ?MODULE, say, [warning, "too many", 2000]),
    await(fun() ->
        [begin
             #{lost := Lost} = call(Fleet, M, sderl_mon_log, info, []),
             lists:sum([N || {_, warning} := N <- Lost]) +
                 count(Fleet, M, #{text => ~"too many", limit => 1000}) >= 2000 orelse Lost
         end || M <- Ms] =:= [true, true]
    end),
    ?assertMatch([_ | _], Search(M2, #{text => ~"left out here"})),
    %% The one with files dies; what it has missed is not there, and what it had is.
    Last = ~"only there 2",
    await(fun() ->
        lists:any(fun(File) ->
            {ok, Bytes} = file:read_file(File),
            binary:match(Bytes, Last) =/= nomatch
        end, sderl_mon_log_files:list(Dir))
    end),
    ok = sderl_fleet:kill(Fleet, M1),
    {ok, M1} = sderl_fleet:restart(Fleet, M1),
    ok = call(Fleet, M1, application, set_env,
              [sderl_mon, config, Given#{log_files => #{dir => Dir}}]),
    {ok, _} = call(Fleet, M1, application, ensure_all_started, [sderl_mon]),
    %% The system may take a moment to see that the one before is gone, whose folder it was.
    await(fun() ->
        _ = call(Fleet, M1, erlang, send, [sderl_mon_log, again]),
        Search(M1, #{text => Last}) =:= [Last]
    end),
    await(fun() ->
        ok = call(Fleet, N1, ?MODULE, say, [error, "back", 1]),
        Search(M1, #{text => ~"back"}) =/= []
    end),
    %% It is not wanted any more.
    ok = call(Fleet, M2, sderl_mon, set, [#{log => off}]),
    await(fun() -> [call(Fleet, N, ?MODULE, collector, []) || N <- [N1, N2]] =:= [none, none] end),
    ok = call(Fleet, M2, sderl_mon, set, [#{log => #{level => error}}]),
    await(fun() ->
        lists:all(fun(N) -> is_pid(call(Fleet, N, ?MODULE, collector, [])) end, [N1, N2])
    end),
    [ok = call(Fleet, M, application, stop, [sderl_mon]) || M <- Ms],
    await(fun() -> [call(Fleet, N, ?MODULE, collector, []) || N <- [N1, N2]] =:= [none, none] end),
    ok = call(Fleet, N1, s_group, delete_s_group, [g]).

count(Fleet, M, Options) ->
    {ok, #{events := Events, next := Next}} = call(Fleet, M, sderl_mon_log, search, [Options]),
    length(Events) + case Next of none -> 0; _ -> count(Fleet, M, Options#{before => Next}) end.
