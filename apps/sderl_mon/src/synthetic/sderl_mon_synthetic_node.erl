%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_synthetic_node).
-moduledoc """
The details of a node of `m:sderl_mon_synthetic_feed`, made to fit its numbers: schedulers on two
sockets, dirty ones, the top processes, migrations, links. Pure.
""".

-export([detail/5]).

-doc """
The details at a time of a node with `cores` schedulers that is up since `up`, whose numbers are
`Sample` and whose links are among `Links`; and the generator's next state.
""".
-spec detail(sderl_mon_types:t(), Node, sderl_mon_types:node_sample(),
             #{sderl_mon_types:link() => sderl_mon_types:flow()}, rand:state()) ->
    {{sderl_mon_types:id(), sderl_mon_types:detail()}, rand:state()} when
    Node :: #{id := sderl_mon_types:id(), index := pos_integer(), cores := pos_integer(),
              up := sderl_mon_types:t()}.
detail(T, #{id := Id, index := Index, cores := Cores, up := Up}, Sample, Links, R0) ->
    #{util := Util, run_queue := Queue, mem := Mem, procs := Procs, mq_max := Longest,
      names := Names} = Sample,
    {Schedulers, R1} = lists:mapfoldl(
        fun(I, R) ->
            {Z, Ra} = rand:normal_s(R),
            {X, Rb} = rand:uniform_s(Ra),
            %% The run-time system fills the first schedulers first.
            Share = min(1.0, max(0.0, Util * (1.6 - 1.2 * I / Cores) + 0.05 * Z)),
            {
                #{
                    id => I,
                    type => normal,
                    queue => round(2 * X * (Queue + Share) / max(1, Cores)),
                    util => Share,
                    socket => (I - 1) * 2 div Cores,
                    core => (I - 1) div 2
                },
                Rb
            }
        end,
        R0,
        lists:seq(1, Cores)
    ),
    {Dirty, R2} = lists:mapfoldl(
        fun({I, Type}, R) ->
            {X, Ra} = rand:uniform_s(R),
            {#{id => Cores + I, type => Type, queue => 0, util => Util * X * X / 2}, Ra}
        end,
        R1,
        lists:enumerate(lists:duplicate(Cores, dirty_cpu) ++ lists:duplicate(10, dirty_io))
    ),
    {Top, R3} = lists:mapfoldl(fun(I, R) -> process(I, Longest, Mem, R) end, R2, lists:seq(1, 10)),
    {Migrations, R4} = lists:mapfoldl(
        fun(_, R) ->
            {A, Ra} = rand:uniform_s(Cores, R),
            {B, Rb} = rand:uniform_s(Cores, Ra),
            {N, Rc} = rand:uniform_s(12, Rb),
            {[A, B, N], Rc}
        end,
        R3,
        lists:seq(1, 2 * Cores)
    ),
    Detail = #{
        t => T,
        node => Id,
        schedulers => Schedulers ++ Dirty,
        queues => [Q || #{queue := Q} <- Schedulers] ++ [0, 0],
        memory => #{
            total => Mem,
            processes => round(0.46 * Mem),
            binary => round(0.17 * Mem),
            ets => round(0.11 * Mem),
            code => 24_000_000,
            atom => 900_000,
            system => round(0.54 * Mem)
        },
        top => Top,
        migrations => [M || [A, B, _N] = M <- Migrations, A =/= B],
        links => links(Id, Links),
        kinds => #{
            registration => {3.0, 640.0}, replication => {6.0, 1_560.0}, routing => {12.0, 4_900.0},
            probe => {1.0, 3_100.0}
        },
        traffic => [],
        problems => [],
        limits => #{
            procs => [Procs, 1_048_576],
            ports => [30 + Index rem 50, 65_536],
            atoms => [21_000 + 10 * Names, 1_048_576],
            ets => [60 + Index rem 40, 8_192]
        },
        otp => <<"29">>,
        uptime_s => (T - Up) div 1000,
        tracing => true
    },
    {{Id, Detail}, R4}.

process(I, Longest, Mem, R0) ->
    {X, R1} = rand:uniform_s(R0),
    {Name, Initial} = element(
        1 + I rem 6,
        {
            {<<"sderl_links">>, <<"sderl_links:init/1">>},
            {<<"rex">>, <<"rpc:init/1">>},
            {<<"logger">>, <<"logger_server:init/1">>},
            {<<>>, <<"chat_room:init/1">>},
            {<<>>, <<"ranch_conns_sup:init/7">>},
            {<<"code_server">>, <<"code_server:init/1">>}
        }
    ),
    Process = #{
        pid => iolist_to_binary(["<0.", integer_to_binary(90 + 37 * I), ".0>"]),
        name => Name,
        initial => Initial,
        queue => case I of 1 -> Longest; _ -> round(Longest * X * X / (I + 1)) end,
        memory => round(Mem * 0.08 * X / I),
        reds_per_s => round(3.0e6 * X / I)
    },
    {Process, R1}.

links(Id, Links) ->
    Peers = lists:usort([To || {From, To} := _ <- Links, From =:= Id] ++
                        [From || {From, To} := _ <- Links, To =:= Id]),
    [
        begin
            {OutM, OutB} = maps:get({Id, Peer}, Links, {0.0, 0.0}),
            {InM, InB} = maps:get({Peer, Id}, Links, {0.0, 0.0}),
            #{
                node => Peer,
                type => visible,
                out_msgs_s => OutM,
                out_bytes_s => OutB,
                in_msgs_s => InM,
                in_bytes_s => InB,
                pending => 0,
                reasons => [<<"group">>],
                since_s => 600 + erlang:phash2({Id, Peer}, 5_000)
            }
        end
     || Peer <- Peers
    ].
