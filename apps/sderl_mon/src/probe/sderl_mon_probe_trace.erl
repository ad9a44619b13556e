%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_trace).
-moduledoc """
Traces for the probe the messages of processes, and on which schedulers these run: in trace sessions
of their own, so that a user's tracer goes on beside them. Messages are counted on the node; no
payload is kept or sent.
""".

-export([trace/2, start/2]).
-export([tracer/2, kind/2, added/2]).
-export_type([flows/0]).

-import(sderl_mon_probe_work, [now_ms/0, now_us/0]).

-define(FLAGS, [send, running, scheduler_id]).
%% The most processes, and pairs of processes, that are traced.
-define(TRACED, 2000).
%% The most messages a second that are looked at, and the microseconds that one takes.
-define(MOST, 20_000).
-define(US, 5).

-doc """
Messages and bytes between kinds of processes, and how often processes moved between schedulers (in
place of messages).
""".
-type flows() :: #{
    {flow, From :: binary(), To :: binary(), Kind :: atom()}
    | {migration, From :: pos_integer(), To :: pos_integer()} =>
        {non_neg_integer(), non_neg_integer()}
}.

-doc """
Switches tracing of messages and migrations on or off, in a trace session of its own.

`sample`: the share of the processes, 0 to 1 (0.01); `pids`: only these, as text; `max_per_s`: the
most trace messages a second (1000, at most 20,000), after which tracing is off until the second is
over; `for_s`: tracing ends after that (600). Processes are chosen anew each second, so one may live
and end unseen. The cost is estimated before the start, by tracing some processes for a fifth of a
second, by one caller at a time; with `dry` only the estimate is returned, and with `measure =>
false` nothing is traced for it. `Ask` asks the probe. Sizes are estimated from one message in 16.

Errors: `not_running`, `busy` (somebody else asks just now), `{bad_option, Key, Value}`.
""".
-spec trace(sderl_mon_types:trace_opts(),
            fun((off | sderl_mon_types:trace_opts()) ->
                {ok, sderl_mon_types:traced()} | {error, term()})) ->
    {ok, sderl_mon_types:traced()} | {error, term()}.
trace(#{on := false} = Opts, Ask) ->
    case Opts of
        #{dry := true} -> {ok, #{cost => <<"nothing">>}};
        _ -> Ask(off)
    end;
trace(#{on := true} = Opts, Ask) ->
    O = maps:merge(#{sample => 0.01, max_per_s => 1000, for_s => 600, measure => true}, Opts),
    case [{K, V} || K := V <- O, not option(K, V)] of
        [{K, V} | _] -> {error, {bad_option, K, V}};
        [] ->
            Bounded = O#{max_per_s := min(?MOST, maps:get(max_per_s, O))},
            case estimate(Bounded) of
                {ok, Cost} ->
                    case maps:get(dry, O, false) orelse Ask(Bounded) of
                        Fine when Fine =:= true; element(1, Fine) =:= ok -> {ok, #{cost => Cost}};
                        Error -> Error
                    end;
                Busy -> Busy
            end
    end.

option(sample, V) -> is_number(V) andalso V > 0 andalso V =< 1;
option(K, V) when K =:= max_per_s; K =:= for_s ->
    is_integer(V) andalso V > 0 andalso V =< 1_000_000;
option(K, V) when K =:= on; K =:= dry; K =:= measure -> is_boolean(V);
option(pids, V) -> is_list(V) andalso length(V) =< 1000;
option(_, _) -> false.

-doc """
Starts the tracer. After each second it sends the probe
`{traced, Pid, Microseconds, flows(), Lost, Texts}`.
""".
-spec start(pid(), sderl_mon_types:trace_opts()) -> pid().
start(Probe, Opts) -> spawn_link(?MODULE, tracer, [Probe, Opts]).

estimate(#{measure := false, max_per_s := Max} = Opts) ->
    All = erlang:system_info(process_count),
    Some =
        case Opts of #{pids := Pids} -> length(Pids); #{sample := Share} -> ceil(Share * All) end,
    {ok, sderl_mon_probe_text:text("about ~b of ~b processes are traced; ~ts. How many messages "
                                   "they send is not known: this does not measure",
                                   [Some, All, bound(Max, Max)])};
estimate(Opts) ->
    sderl_mon_probe_bound:bounded([sderl_mon_estimate], fun() -> {ok, measured(Opts)} end).

bound(Max, Seen) ->
    io_lib:format("at most ~b trace messages a second are looked at, which takes up to ~.1f % of "
                  "one core (~b us each), and each message is copied once on its node",
                  [Max, Seen * ?US / 10_000, ?US]).

%% The messages of 200 ms of tracing, of at most 100 processes.
measured(#{max_per_s := Max} = Opts) ->
    Chosen = chosen(Opts, #{}),
    Some = lists:sublist(Chosen, 100),
    Session = trace:session_create(sderl_mon_estimate, self(), []),
    _ = [trace_on(Session, Pid) || Pid <- Some],
    Began = now_us(),
    Got = got(0, now_ms() + 200, 2000),
    _ = trace:session_destroy(Session),
    Rate = Got * 1_000_000 * length(Chosen) div (max(1, now_us() - Began) * max(1, length(Some))),
    _ = got(0, now_ms(), infinity),
    sderl_mon_probe_text:text(
        "~b of ~b processes send or run so that about ~b trace messages a second come; ~ts",
        [length(Chosen), erlang:system_info(process_count), Rate, bound(Max, min(Rate, Max))]
    ).

got(N, _, Max) when N >= Max -> N;
got(N, Until, Max) ->
    receive T when element(1, T) =:= trace -> got(N + 1, Until, Max)
    after max(0, Until - now_ms()) -> N
    end.

trace_on(Session, Pid) ->
    try trace:process(Session, Pid, true, ?FLAGS) catch error:badarg -> 0 end.

%% The processes to trace: the given ones, or a share of all by their hash, never the probe's own.
chosen(#{pids := Texts}, Traced) ->
    [P
     || T <- Texts, P <- try [list_to_pid(unicode:characters_to_list(T))] catch error:_ -> [] end,
        node(P) =:= node(), not is_map_key(P, Traced)];
chosen(#{sample := Share}, Traced) ->
    Own = case whereis(sderl_mon_probe) of
        undefined -> [];
        Probe -> [Probe | sderl_mon_probe_look:linked(Probe)]
    end,
    share(sderl_mon_probe_look:iterator(), 50_000, round(Share * (1 bsl 20)), [self() | Own],
          Traced, []).

share(_, 0, _, _, _, Acc) -> Acc;
share(Iter, Left, Below, Own, Traced, Acc) ->
    case sderl_mon_probe_look:next(Iter) of
        none -> Acc;
        {P, Rest} ->
            case not is_map_key(P, Traced) andalso erlang:phash2(P, 1 bsl 20) < Below
                 andalso not lists:member(P, Own) of
                true -> share(Rest, Left - 1, Below, Own, Traced, [P | Acc]);
                false -> share(Rest, Left - 1, Below, Own, Traced, Acc)
            end
    end.

-doc false.
-spec tracer(pid(), sderl_mon_types:trace_opts()) -> no_return().
tracer(Probe, #{for_s := For} = Opts) ->
    _ = process_flag(message_queue_data, off_heap),
    second(Probe, Opts, now_ms() + For * 1000, now_ms() - 60_000, #{}).

second(Probe, #{max_per_s := Max} = Opts, End, Said, At0) ->
    First = now_us(),
    Session = trace:session_create(sderl_mon_trace, self(), []),
    Chosen = chosen(Opts, #{}),
    On = lists:sublist(Chosen, ?TRACED),
    lists:foreach(fun(P) -> _ = trace_on(Session, P) end, On),
    Began = now_us(),
    {N, Flows, At} = seen(Max, now_ms() + 1000, 0, #{}, maps:with(On, At0),
                          sderl_mon_probe_library:message_tags()),
    Ended = now_us(),
    Took = max(1, Ended - Began),
    _ = trace:session_destroy(Session),
    %% Messages that had arrived by then and were not read are counted; those that did not arrive
    %% are estimated.
    Dropped = got(0, now_ms(), infinity),
    Capped = N >= Max orelse Took < 990_000,
    Scale = 1_000_000 / Took * case Opts of #{pids := _} -> 1; #{sample := Share} -> 1 / Share end,
    Lost = maps:filter(fun(_, V) -> V > 0 end,
                       #{trace_dropped => Dropped, trace_processes => length(Chosen) - length(On),
                         trace_not_seen => case Capped of
                             true -> max(0, N * (1_000_000 - Took) div Took - Dropped);
                             false -> 0
                         end}),
    Say = Capped andalso now_ms() - Said >= 60_000,
    Texts = [{trace_capped,
              sderl_mon_probe_text:text("more than ~b trace messages a second: off for the rest of "
                                        "each such second; ~b in ~b ms this time",
                                        [Max, N, Took div 1000])}
             || Say],
    Shown = labelled(Flows, case Capped of true -> Scale; false -> Scale * Took / 1_000_000 end),
    Probe ! {traced, self(), Began - First + N * ?US + now_us() - Ended, Shown, Lost, Texts},
    _ = now_ms() >= End andalso exit(normal),
    receive after max(0, 1000 - Took div 1000) -> ok end,
    second(Probe, Opts, End, case Say of true -> now_ms(); false -> Said end, At).

seen(Max, _, Max, Flows, At, _) -> {Max, Flows, At};
seen(Max, Until, N, Flows, At, Tags) when N band 255 =:= 255 ->
    %% More messages wait than may be looked at: tracing ends, because each one holds a copy.
    case process_info(self(), message_queue_len) of
        {_, Waiting} when Waiting > Max -> {N, Flows, At};
        _ -> seen_one(Max, Until, N, Flows, At, Tags)
    end;
seen(Max, Until, N, Flows, At, Tags) -> seen_one(Max, Until, N, Flows, At, Tags).

seen_one(Max, Until, N, Flows, At, Tags) ->
    receive
        {trace, From, Send, Message, To, _}
          when Send =:= send; Send =:= send_to_non_existing_process ->
            Size = case N band 15 of 0 -> 16 * erlang:external_size(Message); _ -> 0 end,
            Key = case {From, whom(To), kind(Message, Tags)} of
                K when is_map_key(K, Flows); map_size(Flows) < ?TRACED -> K;
                {_, _, Kind} -> {other, other, Kind}
            end,
            {M, B} = maps:get(Key, Flows, {0, 0}),
            seen(Max, Until, N + 1, Flows#{Key => {M + 1, B + Size}}, At, Tags);
        {trace, Pid, in, _, Scheduler} ->
            case At of
                #{Pid := Old} when Old =/= Scheduler ->
                    {M, _} = maps:get({migration, Old, Scheduler}, Flows, {0, 0}),
                    seen(Max, Until, N + 1, Flows#{{migration, Old, Scheduler} => {M + 1, 0}},
                         At#{Pid := Scheduler}, Tags);
                #{} -> seen(Max, Until, N + 1, Flows, At#{Pid => Scheduler}, Tags)
            end;
        T when element(1, T) =:= trace -> seen(Max, Until, N + 1, Flows, At, Tags)
    after max(0, Until - now_ms()) -> {N, Flows, At}
    end.

whom(To) when is_pid(To), node(To) =/= node(); is_reference(To), node(To) =/= node() ->
    {node, node(To)};
whom({_, Node}) when is_atom(Node), Node =/= node() -> {node, Node};
whom({Name, _}) -> Name;
whom(To) -> To.

-doc "The kind of a message. `Tags`: the first elements of the library's messages.".
-spec kind(term(), Tags :: [atom()]) -> call | cast | reply | sderl | send.
kind({'$gen_call', _, _}, _) -> call;
kind({'$gen_cast', _}, _) -> cast;
kind({Ref, _}, _) when is_reference(Ref) -> reply;
kind({[alias | _], _}, _) -> reply;
kind(T, Tags) when is_tuple(T), tuple_size(T) > 0 ->
    case lists:member(element(1, T), Tags) of
        true -> sderl;
        false -> send
    end;
kind(_, _) -> send.

%% Puts flows together by the labels of processes: the 50 largest, and one for the rest.
labelled(Flows, Scale) ->
    By = maps:fold(fun
        ({migration, _, _} = K, {M, _}, Acc) -> Acc#{K => {M, 0}};
        ({From, To, Kind}, {M, B}, Acc) ->
            added(Acc,
                  #{{flow, label(From), label(To), Kind} => {round(M * Scale), round(B * Scale)}})
    end, #{}, Flows),
    {Most, Rest} = lists:split(min(50, map_size(By)),
                               lists:sort(fun({_, {A, _}}, {_, {B, _}}) -> A >= B end,
                                          maps:to_list(By))),
    lists:foldl(fun
        ({{flow, _, _, Kind}, V}, Acc) ->
            added(Acc, #{{flow, <<"(others)">>, <<"(others)">>, Kind} => V});
        (_, Acc) -> Acc
    end, maps:from_list(Most), Rest).

-doc "Adds up two sets of flows.".
-spec added(flows(), flows()) -> flows().
added(A, B) -> maps:merge_with(fun(_, {M1, B1}, {M2, B2}) -> {M1 + M2, B1 + B2} end, A, B).

label({node, Node}) -> atom_to_binary(Node);
label(Pid) when is_pid(Pid), node(Pid) =:= node() ->
    case sderl_mon_probe_look:name(Pid) of
        <<>> -> case sderl_mon_probe_look:initial(Pid) of <<>> -> <<"(gone)">>; I -> I end;
        Name -> Name
    end;
label(Name) when is_atom(Name) -> atom_to_binary(Name);
label(Port) when is_port(Port) -> <<"(port)">>;
label(_) -> <<"(alias)">>.
