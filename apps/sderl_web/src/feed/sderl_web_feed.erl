%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_feed).
-moduledoc """
One subscriber to the hub for all browsers.

It encodes each topology, frame and list of findings **once** (`m:sderl_web_latest`) and hands the
same binary to every socket, so that ten browsers cost hardly more than one.

## Slow browsers

A socket acknowledges each message when it has taken it out of its mailbox, and it takes the next
one when the last has gone to the network. One that has a few unacknowledged ones gets nothing more:
frames and details are left out and counted, and of topologies and findings it gets what is newest
when it is back, of events those of the newest 2,000 that it has not got. So a mailbox holds a few
messages, however slow its browser is, and the browser is told how many frames and events it missed.

## When the hub ends

The feed waits until it is back and subscribes again. The sockets stay, and begin anew: with another
hello, since the history and the numbers of the events do. It is the same when a hub changes between
the cluster and a synthetic one.
""".

-behaviour(gen_server).

-export([start_link/1, join/2, ack/1, pause/2, replay/2, watch/2, unwatch/2, snapshot/0, ids/2,
         current/0, count/0, health/0, info/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([settings/0]).

-type settings() :: #{
    cluster := binary(),
    writable := boolean(),
    max_sockets := pos_integer(),
    profile => boolean() | samples | live
}.

-define(RETRY_MS, 300).
%% Requests without a token are answered from this table, and cost the feed nothing.
-define(TABLE, ?MODULE).

-record(state, {
    settings :: settings(),
    hub = none :: none | reference(),
    alarms = none :: none | reference(),
    latest = sderl_web_latest:new() :: sderl_web_latest:latest(),
    readers = sderl_web_readers:new() :: sderl_web_readers:readers()
}).

-spec start_link(settings()) -> gen_server:start_ret().
start_link(Settings) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Settings, []).

-doc """
The calling socket gets `{sderl_web_feed, Message}` from now on, a binary each, and acknowledges
each with `ack/1`. Gives what there is now. With `replay` it gets nothing before it asks for the
present (`replay/2`). `{error, full}`: there are as many sockets as are allowed.
""".
-spec join(pid(), live | replay) -> {ok, [binary()]} | {error, full}.
join(Socket, Mode) -> gen_server:call(?MODULE, {join, Socket, Mode}).

-doc "A message has been taken.".
-spec ack(pid()) -> ok.
ack(Socket) -> gen_server:cast(?MODULE, {ack, Socket}).

-doc "Whether the socket wants frames.".
-spec pause(pid(), boolean()) -> ok.
pause(Socket, true) -> gen_server:call(?MODULE, {mode, Socket, paused});
pause(Socket, false) -> gen_server:call(?MODULE, {mode, Socket, live}).

-doc "While a socket shows a recording it wants nothing; `false`: it is live again.".
-spec replay(pid(), boolean()) -> ok.
replay(Socket, true) -> gen_server:call(?MODULE, {mode, Socket, replay});
replay(Socket, false) -> gen_server:call(?MODULE, {mode, Socket, live}).

-doc "The socket gets a node's details each time there are new ones.".
-spec watch(pid(), Node :: binary()) -> ok | {error, not_found | too_many}.
watch(Socket, Node) -> gen_server:call(?MODULE, {watch, Socket, Node}).

-spec unwatch(pid(), Node :: binary()) -> ok.
unwatch(Socket, Node) -> gen_server:call(?MODULE, {unwatch, Socket, Node}).

-doc """
What a socket that comes back to the present needs: hello, topology, frame, findings, alarms,
events.
""".
-spec snapshot() -> [binary()].
snapshot() -> gen_server:call(?MODULE, snapshot).

-doc "The table of numbers with those of a topology and a frame in it.".
-spec ids(sderl_mon_types:topology() | undefined, sderl_mon_types:frame() | undefined) ->
    sderl_web_ids:ids().
ids(Topology, Frame) -> gen_server:call(?MODULE, {ids, Topology, Frame}).

-doc "What the hub said last.".
-spec current() -> sderl_web_latest:present().
current() -> gen_server:call(?MODULE, current).

-doc "How many sockets there are.".
-spec count() -> non_neg_integer().
count() -> maps:get(sockets, info()).

-doc """
Sockets, and whether the hub is there. Does not ask the feed: nobody holds that up by asking often.
""".
-spec health() -> #{sockets := non_neg_integer(), hub := boolean()}.
health() ->
    try
        maps:from_list(ets:tab2list(?TABLE))
    catch
        error:badarg -> #{sockets => 0, hub => false}
    end.

noted(#state{readers = Readers, hub = Hub} = State) ->
    true = ets:insert(?TABLE, [{sockets, sderl_web_readers:count(Readers)}, {hub, Hub =/= none}]),
    State.

-doc """
Figures for people: sockets, frames that slow ones missed, names in the table, whether the hub is
there.
""".
-spec info() -> #{sockets := non_neg_integer(), missed := non_neg_integer(),
                  names := non_neg_integer(), hub := boolean()}.
info() -> gen_server:call(?MODULE, info).

-doc false.
-spec init(settings()) -> {ok, #state{}, {continue, subscribe}}.
init(Settings) ->
    _ = ets:new(?TABLE, [named_table, {read_concurrency, true}]),
    {ok, noted(#state{settings = Settings}), {continue, subscribe}}.

-doc false.
-spec handle_continue(subscribe, #state{}) -> {noreply, #state{}}.
handle_continue(subscribe, State) -> {noreply, subscribe(subscribe_alarms(State))}.

%% The alarms come and go for themselves; without them there is everything else.
subscribe_alarms(State) ->
    try sderl_alarms:subscribe() of
        {ok, Alarms} ->
            Monitor = monitor(process, sderl_alarms_server),
            newest(alarms, put(alarms, Alarms, State#state{alarms = Monitor}));
        {error, full} -> alarms_again(State)
    catch
        exit:_ -> alarms_again(State)
    end.

alarms_again(State) ->
    _ = erlang:send_after(?RETRY_MS, self(), subscribe_alarms),
    State#state{alarms = none}.

subscribe(#state{readers = Readers, hub = Known} = State) ->
    try sderl_mon_hub:subscribe() of
        {ok, Now} ->
            Monitor = case Known of none -> monitor(process, sderl_mon_hub); _ -> Known end,
            _ = [sderl_mon_hub:watch(Node) || Node <- sderl_web_readers:watched(Readers)],
            noted(taken(Now, State#state{hub = Monitor}));
        {error, too_many} ->
            again(State)
    catch
        exit:_ -> again(State)
    end.

again(State) ->
    _ = erlang:send_after(?RETRY_MS, self(), subscribe),
    noted(State#state{hub = none}).

%% Another life of the hub: all sockets begin anew.
taken(Now, #state{latest = Latest} = State) ->
    {Messages, #state{readers = Readers} = State1} =
        snapshot(State#state{latest = sderl_web_latest:replace(Now, Latest)}),
    State1#state{readers = sderl_web_readers:begin_anew(Messages, Readers)}.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({join, Socket, Mode}, _From, #state{readers = Readers} = State) when is_pid(Socket) ->
    #state{settings = #{max_sockets := Most}} = State,
    case sderl_web_readers:is_known(Socket, Readers)
        orelse sderl_web_readers:count(Readers) >= Most of
        true ->
            {reply, {error, full}, State};
        false ->
            {Messages, State1} = snapshot(State),
            Joined = sderl_web_readers:add(Socket, Mode, Readers),
            {reply, {ok, Messages}, noted(State1#state{readers = Joined})}
    end;
handle_call({mode, Socket, Mode}, _From, #state{readers = Readers} = State) ->
    {reply, ok, State#state{readers = sderl_web_readers:set_mode(Socket, Mode, Readers)}};
handle_call({watch, Socket, Node}, _From, State) ->
    {Reply, State1} = watch(Socket, Node, State),
    {reply, Reply, State1};
handle_call({unwatch, Socket, Node}, _From, #state{readers = Readers} = State) ->
    {reply, ok, released(sderl_web_readers:unwatch(Socket, Node, Readers), State)};
handle_call(snapshot, _From, State) ->
    {Messages, State1} = snapshot(State),
    {reply, Messages, State1};
handle_call({ids, Topology, Frame}, _From, #state{latest = Latest} = State) ->
    case is_news(topology, Topology) andalso is_news(frame, Frame) of
        true ->
            Numbered = sderl_web_latest:number(Topology, Frame, Latest),
            {reply, sderl_web_latest:ids(Numbered), State#state{latest = Numbered}};
        false ->
            {reply, {error, unknown_call}, State}
    end;
handle_call(current, _From, #state{latest = Latest} = State) ->
    {reply, sderl_web_latest:present(Latest), State};
handle_call(info, _From, #state{readers = Readers, latest = Latest, hub = Hub} = State) ->
    {reply, #{sockets => sderl_web_readers:count(Readers),
              missed => sderl_web_readers:missed(Readers),
              names => sderl_web_ids:size(sderl_web_latest:ids(Latest)), hub => Hub =/= none},
     State};
handle_call(_, _From, State) ->
    {reply, {error, unknown_call}, State}.

is_news(_, undefined) -> true;
is_news(What, Term) ->
    {error, not_a_message} =/= sderl_mon_message:check_news({sderl_mon, What, Term}).

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({ack, Socket}, #state{settings = Settings} = State) ->
    #state{latest = Latest, readers = Readers} = State,
    {Latest1, Readers1} = sderl_web_readers:acknowledge(Socket, Settings, Latest, Readers),
    {noreply, State#state{latest = Latest1, readers = Readers1}};
handle_cast(_, State) ->
    {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(Message, State) when element(1, Message) =:= sderl_mon ->
    case sderl_mon_message:check_news(Message) of
        {ok, News} ->
            {noreply, heard(News, State)};
        {error, not_a_message} ->
            sderl_web_notes:note(failed, "a message that no hub sends was ignored"),
            {noreply, State}
    end;
handle_info({sderl_alarms, #{alarms := _, silences := _} = Alarms}, State) ->
    {noreply, newest(alarms, put(alarms, Alarms, State))};
handle_info(subscribe_alarms, #state{alarms = none} = State) ->
    {noreply, subscribe_alarms(State)};
handle_info({'DOWN', Alarms, process, _, _}, #state{alarms = Alarms} = State) ->
    {noreply, alarms_again(State)};
handle_info(subscribe, #state{hub = none} = State) ->
    {noreply, subscribe(State)};
handle_info({'DOWN', Hub, process, _, _}, #state{hub = Hub} = State) ->
    {noreply, again(State)};
handle_info({'DOWN', _, process, Socket, _}, #state{readers = Readers} = State) ->
    {noreply, noted(released(sderl_web_readers:drop(Socket, Readers), State))};
handle_info(_, State) ->
    {noreply, State}.

%% Messages from the hub
heard({sderl_mon, frame, Frame}, State) ->
    frame(Frame, State);
heard({sderl_mon, topology, Topology}, State) ->
    newest(topology, put(topology, Topology, State));
heard({sderl_mon, events, Events}, State) ->
    events(Events, State);
heard({sderl_mon, findings, Findings}, State) ->
    newest(findings, put(findings, Findings, State));
heard({sderl_mon, detail, Node, Detail}, State) ->
    detail(Node, Detail, State);
heard({sderl_mon, missed, N}, #state{readers = Readers} = State) ->
    State#state{readers = sderl_web_readers:leave_out(frames, N, Readers)};
heard({sderl_mon, events_missed, N}, #state{readers = Readers} = State) ->
    State#state{readers = sderl_web_readers:leave_out(events, N, Readers)};
heard({sderl_mon, anew, Life}, #state{latest = Latest} = State) ->
    case sderl_web_latest:life(Latest) of
        Life -> State;
        _ -> subscribe(State)
    end.

put(What, Term, #state{latest = Latest} = State) ->
    State#state{latest = sderl_web_latest:put(What, Term, Latest)}.

newest(What, #state{readers = Readers0} = State0) ->
    case sderl_web_readers:count(Readers0) of
        0 -> State0;
        _ ->
            {Message, #state{readers = Readers} = State} = encoded(What, State0),
            State#state{readers = sderl_web_readers:give(What, Message, Readers)}
    end.

frame(Frame, State0) ->
    #state{readers = Readers} = State = put(frame, Frame, State0),
    case sderl_web_readers:wants_frames(Readers) of
        false -> State;
        true ->
            {Message, State1} = encoded(frame, State),
            State1#state{readers = sderl_web_readers:give_frame(Message, Readers)}
    end.

events(New, #state{latest = Latest, readers = Readers} = State) ->
    case sderl_web_latest:add_events(New, Latest) of
        none ->
            State;
        {Message, First, Latest1} ->
            State#state{latest = Latest1,
                        readers = sderl_web_readers:give_events(Message, First, Readers)}
    end.

detail(Node, Detail, #state{readers = Readers} = State) ->
    Message = iolist_to_binary(sderl_web_json:detail(Node, Detail)),
    State#state{readers = sderl_web_readers:give_detail(Node, Message, Readers)}.

snapshot(#state{settings = Settings, latest = Latest} = State) ->
    {Messages, Latest1} = sderl_web_latest:snapshot(Settings, Latest),
    {Messages, State#state{latest = Latest1}}.

encoded(What, #state{latest = Latest} = State) ->
    {Message, Latest1} = sderl_web_latest:encode(What, Latest),
    {Message, State#state{latest = Latest1}}.

%% Watched nodes

watch(Socket, Node, #state{readers = Readers, latest = Latest} = State) ->
    case sderl_web_latest:has_node(Node, Latest)
        andalso sderl_web_readers:watch(Socket, Node, Readers) of
        {ok, Readers1} ->
            %% Also when another socket watches it already: the hub sends what it knows at once.
            _ = told(fun() -> sderl_mon_hub:watch(Node) end),
            {ok, State#state{readers = Readers1}};
        known -> {ok, State};
        {error, _} = Error -> {Error, State};
        false -> {{error, not_found}, State}
    end.

%% Ends the watching of nodes that nobody looks at any more.
released({Nodes, Readers}, State) ->
    _ = [told(fun() -> sderl_mon_hub:unwatch(Node) end) || Node <- Nodes],
    State#state{readers = Readers}.

%% The hub may be gone; it is told again when it is back.
told(Fun) ->
    try
        Fun()
    catch
        exit:_ -> ok
    end.
