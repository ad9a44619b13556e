%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_traffic).
-moduledoc """
The clients of one client node, and the generators that make them talk, as published: for every two
clients a generator, which has one conversation after the other between two clients of the node
drawn at random. A conversation has 13 to 60 interactions; before each is a wait of 1 to 20 s,
divided by `speed`; the clients take turns; a text has 1 to 75 letters. Generators start 100 ms
apart, divided likewise.

At the end of a conversation a generator waits until all messages are acknowledged, and then
finishes it, so that it is known of each message whether it was delivered.
""".

-behaviour(gen_server).

-export([start/3, go/2, finish/0, leave/0, stop/0, stagger_ms/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([params/0, ended/0, result/0]).

-doc "`count` clients, numbered from `first`. `speed` divides all waits.".
-type params() :: #{
    count := pos_integer(),
    first := pos_integer(),
    seconds := pos_integer(),
    threshold_us := pos_integer(),
    speed := number(),
    seed := term(),
    atom() => term()
}.

-doc """
A conversation that did not end as it should have: how, and how many messages were not acknowledged.
""".
-type ended() :: #{
    session := sderl_im_chats:session(),
    pid := pid(),
    how := sderl_im_client:state() | unfinished,
    unacknowledged := non_neg_integer()
}.

-doc """
`cut`: finished as the run was over; `refused`: conversations that did not come about, by reason.
""".
-type result() :: #{
    counts := sderl_im_tally:counts(),
    conversations := non_neg_integer(),
    finished := non_neg_integer(),
    cut := non_neg_integer(),
    ended := [ended()],
    refused := #{term() => pos_integer()}
}.

-record(t, {
    conf :: sderl_im_layout:conf(),
    params :: params(),
    tally :: sderl_im_tally:tally(),
    %% {Number on this node, Name, Pid}, which generators read: a copy for each generator would take
    %% more memory than everything else.
    clients :: ets:table(),
    generators = #{} :: #{pid() => reference()},
    finishing = none :: none | gen_server:from(),
    conversations = 0 :: non_neg_integer(),
    finished = 0 :: non_neg_integer(),
    cut = 0 :: non_neg_integer(),
    ended = [] :: [ended()],
    refused = #{} :: #{term() => pos_integer()}
}).

%% Clients that log in or out at the same time.
-define(AT_ONCE, 50).
-define(STAGGER_MS, 100).
%% Before another attempt where a conversation did not come about.
-define(REFUSED_MS, 1000).
-define(FOREVER, 600_000).

-doc "Starts the clients on this node and logs them in.".
-spec start(sderl_im_layout:conf(), J :: pos_integer(), params()) -> ok | {error, term()}.
start(Conf, J, Params) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, {Conf, J, Params}, [{timeout, ?FOREVER}]) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

-doc """
Starts the generators. The measured time, on this machine's clock (`os:system_time(microsecond)`).
""".
-spec go(From :: integer(), Until :: integer()) -> ok.
go(From, Until) -> gen_server:call(?MODULE, {go, From, Until}).

-doc "Ends all conversations, and gives the result of the run.".
-spec finish() -> result().
finish() -> gen_server:call(?MODULE, finish, ?FOREVER).

-doc "Logs all clients out; gives how many could not be logged out.".
-spec leave() -> non_neg_integer().
leave() -> gen_server:call(?MODULE, leave, ?FOREVER).

-doc "Ends the clients and generators of this node.".
-spec stop() -> ok.
stop() ->
    try
        gen_server:stop(?MODULE, shutdown, 20_000)
    catch
        exit:_ -> ok
    end.

-doc "Between the starts of two generators of a node, before it is divided by the speed.".
-spec stagger_ms() -> pos_integer().
stagger_ms() -> ?STAGGER_MS.

-doc false.
-spec init(term()) -> {ok, #t{}} | {stop, term()}.
init({Conf, J,
      #{count := Count, first := First, seconds := Seconds, threshold_us := Threshold} = Params}) ->
    {ok, _} = sderl_im_routers:start_link(Conf),
    Tally = sderl_im_tally:new(Seconds, Threshold),
    Named = [{First + I, {client, First + I}} || I <- lists:seq(0, Count - 1)],
    Clients = [{Name, started(sderl_im_client:start_link(Conf, Name, Tally))}
               || {_, Name} <- Named],
    case all(fun sderl_im_client:login/1, Clients) of
        [] ->
            Table = ets:new(?MODULE, [protected, {read_concurrency, true}]),
            true = ets:insert(Table,
                              [{I, Name, Pid} || {I, {Name, Pid}} <- lists:enumerate(Clients)]),
            {ok, #t{conf = Conf, params = Params#{node => J}, tally = Tally, clients = Table}};
        [{Name, Answer} | _] = Failed ->
            {stop, {not_logged_in, length(Failed), Name, Answer}}
    end.

started({ok, Pid}) -> Pid.

%% Calls `Fun` for several clients at a time; gives those for which it failed.
all(_, []) ->
    [];
all(Fun, Clients) ->
    {Now, Later} = lists:split(min(?AT_ONCE, length(Clients)), Clients),
    Answers = sderl_fleet_task:at_once(Now, fun(_, Pid) -> Fun(Pid) end),
    [{Name, Answer} || {Name, Answer} <- Answers, Answer =/= ok] ++ all(Fun, Later).

-doc false.
-spec handle_call(term(), gen_server:from(), #t{}) -> {reply, term(), #t{}} | {noreply, #t{}}.
handle_call({go, From, Until}, _,
            #t{tally = Tally, clients = Clients, params = Params, generators = Before} = T)
  when Before =:= #{} ->
    Offset = erlang:monotonic_time(microsecond) - os:system_time(microsecond),
    ok = sderl_im_tally:window(Tally, From + Offset, Until + Offset),
    Agent = self(),
    Generators = [
        spawn_monitor(fun() ->
            true = link(Agent),
            generate(I, Agent, Clients, Params)
        end)
     || I <- lists:seq(1, ets:info(Clients, size) div 2)
    ],
    {reply, ok, T#t{generators = maps:from_list(Generators)}};
handle_call(finish, From, #t{generators = Generators} = T) ->
    maps:foreach(fun(Pid, _) -> Pid ! stop end, Generators),
    {noreply, finished(T#t{finishing = From})};
handle_call(leave, _, #t{clients = Clients} = T) ->
    Named = [{Name, Pid} || {_, Name, Pid} <- ets:tab2list(Clients)],
    {reply, length(all(fun sderl_im_client:logout/1, Named)), T}.

-doc false.
-spec handle_cast(term(), #t{}) -> {noreply, #t{}}.
handle_cast({began}, #t{conversations = N} = T) -> {noreply, T#t{conversations = N + 1}};
handle_cast({finished}, #t{finished = N} = T) -> {noreply, T#t{finished = N + 1}};
handle_cast({cut}, #t{cut = N} = T) -> {noreply, T#t{cut = N + 1}};
handle_cast({ended, Ended}, #t{ended = All} = T) -> {noreply, T#t{ended = [Ended | All]}};
handle_cast({refused, Reason}, #t{refused = Refused} = T) ->
    {noreply, T#t{refused = maps:update_with(Reason, fun(N) -> N + 1 end, 1, Refused)}}.

-doc false.
-spec handle_info(term(), #t{}) -> {noreply, #t{}}.
handle_info({'DOWN', _, process, Pid, normal}, #t{generators = Generators} = T) ->
    {noreply, finished(T#t{generators = maps:remove(Pid, Generators)})};
handle_info(_, T) ->
    {noreply, T}.

finished(#t{finishing = From, generators = Generators, tally = Tally} = T)
  when From =/= none, Generators =:= #{} ->
    #t{conversations = Conversations, finished = Finished, cut = Cut, ended = Ended,
       refused = Refused} = T,
    gen_server:reply(From, #{
        counts => sderl_im_tally:read(Tally),
        conversations => Conversations,
        finished => Finished,
        cut => Cut,
        ended => Ended,
        refused => Refused
    }),
    T#t{finishing = none};
finished(T) ->
    T.

%% ---------------------------------------------------------------- a generator

generate(I, Agent, Clients, #{speed := Speed, seed := Seed, node := J}) ->
    proc_lib:set_label({sderl_im, generator, I}),
    Random = rand:seed_s(exsss, erlang:phash2({Seed, J, I}, 1 bsl 32)),
    case wait(I * ?STAGGER_MS, Speed) of
        stop -> ok;
        ok -> conversations(Random, Speed, Agent, Clients)
    end.

conversations(Random0, Speed, Agent, Clients) ->
    {[{NameA, A}, {NameB, B}], Random1} = pair(Random0, Clients),
    {Interactions, Random2} = between(13, 60, Random1),
    case sderl_im_client:chat(A, NameB) of
        {ok, Session, Pid} ->
            tell(Agent, {began}),
            {How, Random} = talk(Interactions, [A, B], Session, Speed, Random2),
            tell(Agent, close(How, A, B, Session, Pid)),
            case How of
                stopped -> ok;
                _ -> conversations(Random, Speed, Agent, Clients)
            end;
        {error, Reason} ->
            tell(Agent, {refused, case Reason of {What, _} -> What; What -> What end}),
            %% A client whose row was lost with both copies is logged out without its knowledge.
            _ = [sderl_im_client:login(Client)
                 || is_unknown(Reason, NameA, NameB), Client <- [A, B]],
            case wait(?REFUSED_MS, Speed) of
                stop -> ok;
                ok -> conversations(Random2, Speed, Agent, Clients)
            end
    end.

is_unknown(not_logged_in, _, _) -> true;
is_unknown({receiver_not_found, Name}, _, NameB) -> Name =:= NameB;
is_unknown(_, _, _) -> false.

tell(Agent, What) -> gen_server:cast(Agent, What).

talk(0, _, _, _, Random) ->
    {done, Random};
talk(Left, [Sender, Other], Session, Speed, Random0) ->
    {Seconds, Random1} = between(1, 20, Random0),
    {Length, Random2} = between(1, 75, Random1),
    {Text, Random} = text(Length, Random2),
    case wait(1000 * Seconds, Speed) of
        stop ->
            {stopped, Random};
        ok ->
            case sderl_im_client:message(Sender, Session, Text) of
                {ok, _} -> talk(Left - 1, [Other, Sender], Session, Speed, Random);
                {error, _} -> {ended, Random}
            end
    end.

%% A conversation that has ended is not waited for, although one of its clients may not know yet.
close(ended, A, B, Session, Pid) ->
    ended(unfinished, sderl_im_client:drop(A, Session), sderl_im_client:drop(B, Session), Session,
          Pid);
close(How, A, B, Session, Pid) ->
    maybe
        {open, 0} ?= sderl_im_client:settle(A, Session),
        {open, 0} ?= sderl_im_client:settle(B, Session),
        ok ?= sderl_im_client:finish(A, Session),
        {over, 0} ?= sderl_im_client:drop(A, Session),
        _ = sderl_im_client:drop(B, Session),
        case How of
            done -> {finished};
            stopped -> {cut}
        end
    else
        _ -> close(ended, A, B, Session, Pid)
    end.

ended(Default, DroppedA, DroppedB, Session, Pid) ->
    Known = [Status || {_, _} = Status <- [DroppedA, DroppedB]],
    Hows = [How || {How, _} <- Known, How =/= open],
    {ended, #{
        session => Session,
        pid => Pid,
        how => case lists:member(lost, Hows) of true -> lost; false -> hd(Hows ++ [Default]) end,
        unacknowledged => lists:sum([Count || {_, Count} <- Known])
    }}.

pair(Random0, Clients) ->
    Size = ets:info(Clients, size),
    {I, Random1} = rand:uniform_s(Size, Random0),
    {J, Random} = rand:uniform_s(Size - 1, Random1),
    Chosen = [I, if J >= I -> J + 1; true -> J end],
    {[{Name, Pid} || Number <- Chosen, {_, Name, Pid} <- ets:lookup(Clients, Number)], Random}.

between(From, To, Random0) ->
    {N, Random} = rand:uniform_s(To - From + 1, Random0),
    {From + N - 1, Random}.

text(Length, Random0) ->
    {Letters, Random} = lists:mapfoldl(
        fun(_, R0) ->
            {N, R} = rand:uniform_s(26, R0),
            {$a + N - 1, R}
        end,
        Random0,
        lists:seq(1, Length)
    ),
    {list_to_binary(Letters), Random}.

wait(Ms, Speed) ->
    receive
        stop -> stop
    after round(Ms / Speed) -> ok
    end.
