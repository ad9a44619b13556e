%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_stock).
-moduledoc """
A sample of a node that runs nothing of ours, taken from a monitoring node by calls of functions
that every OTP has, in three rounds of simultaneous calls. The first round asks only for the run
queues, because calls that come together wait in them.

It contains less than a probe's sample (`m:sderl_mon_probe`): scheduler times only if a program on
the node has switched them on, no processes, no events, no traces; links with TLS are not counted.
If the application `sderl` runs there, its groups are included.
""".

-export([sample/2]).

-define(TIMEOUT, 3000).
-define(STATISTICS, [reductions, garbage_collection, io, runtime, context_switches,
                     scheduler_wall_time_all]).
-define(INFO, [process_count, process_limit, port_count, port_limit, atom_count, atom_limit,
               ets_count, ets_limit, schedulers, schedulers_online, dirty_cpu_schedulers, dist_ctrl,
               start_time, otp_release, version]).
-define(STAT, [recv_cnt, recv_oct, send_cnt, send_oct, send_pend]).

-doc """
Takes a sample, in the calling process, in at most 3 s. `seq` is the sample's number; `facts`:
include facts.

Opens no link. Errors: `noconnection`, `timeout`, `{call, Reason}`.
""".
-spec sample(node(), #{seq := pos_integer(), facts => boolean()}) ->
    {ok, sderl_mon_samples:sample()} | {error, noconnection | timeout | {call, term()}}.
sample(Node, #{seq := Seq} = Opts) ->
    Until = sderl_mon_clock:now_ms() + ?TIMEOUT,
    Facts = maps:get(facts, Opts, false),
    try
        Queues = round(Node, #{queues => {erlang, statistics, [run_queue_lengths_all]}}, Until),
        First = round(Node, calls(Facts), Until),
        #{info := Info} = First,
        Links = [L || {_, Port} = L <- maps:get(dist_ctrl, Info), is_port(Port)],
        %% A link may end meanwhile: then there is an error in its place.
        Stats = case Links of
            [] -> [];
            _ ->
                maps:get(links, round(Node, #{
                    links => {lists, map, [fun inet:getstat/1, [P || {_, P} <- Links]]}
                }, Until))
        end,
        Linked = #{links => lists:zip([N || {N, _} <- Links], Stats)},
        {ok, sample_of(maps:merge(maps:merge(First, Queues), Linked),
                       #{node => Node, seq => Seq, facts => Facts})}
    catch
        throw:Reason -> {error, Reason}
    end.

calls(Facts) ->
    Always = #{statistics => {lists, map, [fun erlang:statistics/1, ?STATISTICS]},
               info => {lists, map, [fun erlang:system_info/1, ?INFO]},
               memory => {erlang, memory, []},
               hidden => {erlang, nodes, [hidden]},
               mono_us => {erlang, monotonic_time, [microsecond]},
               mono => {erlang, monotonic_time, []},
               names => {sderl_observed, count_names, []},
               library => {erlang, whereis, [sderl_sup]}},
    case Facts of
        true ->
            Always#{own => {sderl_observed, groups, []},
                    known => {sderl_observed, other_groups, []},
                    flag => {init, get_argument, [hidden]},
                    topology => {erlang, system_info, [cpu_topology]}};
        false -> Always
    end.

%% All calls are sent before the first answer is awaited.
round(Node, Calls, Until) ->
    lists:member(Node, nodes(connected)) orelse throw(noconnection),
    Asked = [{Key, erpc:send_request(Node, M, F, A)} || Key := {M, F, A} <- Calls],
    named(#{Key => answer(Key, Request, Until) || {Key, Request} <- Asked}).

answer(Key, Request, Until) ->
    try erpc:receive_response(Request, max(1, Until - sderl_mon_clock:now_ms()))
    catch
        error:{erpc, timeout} -> throw(timeout);
        error:{erpc, noconnection} -> throw(noconnection);
        error:{erpc, Why} -> throw({call, Why});
        %% The library does not run there.
        error:{exception, _, _} when Key =:= own; Key =:= known -> [];
        error:{exception, _, _} when Key =:= names -> unknown;
        _:Why -> throw({call, Why})
    end.

named(#{statistics := Statistics, info := Info} = Answers) ->
    Answers#{statistics => maps:from_list(lists:zip(?STATISTICS, Statistics)),
             info => maps:from_list(lists:zip(?INFO, Info))};
named(Answers) -> Answers.

%% The sample that the answers make.
sample_of(#{statistics := St, info := Info, memory := Mem0, hidden := Hidden, mono := Mono,
            mono_us := Us, queues := Queues, links := Links} = Answers,
          #{node := Node, seq := Seq, facts := Facts}) ->
    #{reductions := {Reds, _}, garbage_collection := {Gcs, Words, _},
      io := {{input, In}, {output, Out}}, runtime := {Runtime, _},
      context_switches := {Switches, _}} = St,
    #{schedulers := Normal, start_time := Started, dist_ctrl := Ctrl} = Info,
    Mem = maps:from_list(Mem0),
    Sample =
        #{v => 1, node => Node, seq => Seq, at => sderl_mon_clock:wall_ms(), mono_us => Us,
          source => stock,
          counters => #{reductions => Reds, gcs => Gcs, gc_words => Words, io_in => In,
                        io_out => Out, runtime_us => Runtime * 1000, context_switches => Switches},
          gauges => maps:merge(
              #{To => maps:get(From, Info)
                || From := To <- #{process_count => procs, process_limit => proc_limit,
                                   port_count => ports, port_limit => port_limit,
                                   atom_count => atoms, atom_limit => atom_limit, ets_count => ets,
                                   ets_limit => ets_limit, schedulers => schedulers,
                                   schedulers_online => schedulers_online}},
              (names(Answers))#{mem_total => maps:get(total, Mem),
                                mem_processes => maps:get(processes, Mem),
                                mem_binary => maps:get(binary, Mem), mem_ets => maps:get(ets, Mem),
                                mem_atom => maps:get(atom, Mem), mem_code => maps:get(code, Mem),
                                mem_system => maps:get(system, Mem),
                                run_queue => lists:sum(lists:sublist(Queues, Normal)),
                                %% Both are in the node's own unit.
                                uptime_s => (Mono - Started) * Us div Mono div 1_000_000}
          ),
          queues => Queues, sched => sched(maps:get(scheduler_wall_time_all, St), Normal,
                                           maps:get(dirty_cpu_schedulers, Info)),
          links => [one(L, Hidden) || L <- Links] ++
              [maps:put(counts, unknown, one({Peer, none}, Hidden))
               || {Peer, Pid} <- Ctrl, is_pid(Pid)],
          kinds => #{}, top => [], migrations => [], traffic => [], events => [],
          lost => #{links_unknown => length([P || {_, P} <- Ctrl, is_pid(P)])}},
    case Facts of
        false -> Sample;
        true -> Sample#{facts => facts(Answers)}
    end.

sched(List, Normal, Dirty) when is_list(List) ->
    [{I, if I =< Normal -> normal; I =< Normal + Dirty -> dirty_cpu; true -> dirty_io end, A, T}
     || {I, A, T} <- lists:sort(List)];
sched(undefined, _, _) -> [].

one({Peer, Stat}, Hidden) ->
    L = case Stat of {ok, Kvs} -> Kvs; _ -> [] end,
    [InMsgs, InBytes, OutMsgs, OutBytes, Pending] = [proplists:get_value(K, L, 0) || K <- ?STAT],
    #{node => Peer, type => case lists:member(Peer, Hidden) of true -> hidden; false -> visible end,
      in_msgs => InMsgs, in_bytes => InBytes, out_msgs => OutMsgs, out_bytes => OutBytes,
      pending => Pending, reasons => [], since_s => 0}.

%% Without the library there are no names.
names(#{library := Running, names := Names}) when is_pid(Running), is_integer(Names) ->
    #{names => Names};
names(_) -> #{}.

facts(#{library := Running, info := #{otp_release := Otp, version := Erts, schedulers := Normal},
        own := Own, known := Known, topology := Topology, flag := Flag}) ->
    #{otp => list_to_binary(Otp), hidden => Flag =/= error, erts => list_to_binary(Erts),
      application => is_pid(Running), cpu_topology => sderl_mon_probe_topology:schedulers(
          Topology, lists:duplicate(Normal, unbound)
      ),
      problems => [], known => Known,
      groups => [#{group => G, members => Members, coordinator => Lead, names => 0}
                 || {G, Members, Lead} <- lists:sort(Own)],
      system_monitor => <<"not asked">>, unknown_links => []}.
