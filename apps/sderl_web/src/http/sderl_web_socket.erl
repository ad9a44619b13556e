%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_socket).
-moduledoc """
One browser's WebSocket.

What it is sent without asking comes from `m:sderl_web_feed`. What it asks is checked by
`m:sderl_web_protocol` and answered by a process of its own (`m:sderl_web_ask`), so that a node that
does not answer holds up one answer and not the frames. What the audit log is told of is done by
`m:sderl_web_work`: it goes on, and is told, when the socket has closed.

Limits: frames of 64 KiB from the browser, a number of requests a second and of questions at a time,
and a minute without any sign of life (browsers answer the ping by themselves).
""".

-behaviour(cowboy_websocket).

-export([init/2, websocket_init/1, websocket_handle/2, websocket_info/2, terminate/3]).

-import(sderl_mon_clock, [now_ms/0]).

-define(MAX_FRAME, 65_536).
-define(IDLE_MS, 60_000).
-define(PING_MS, 20_000).
%% Requests: so many at once, and so many a second after that. Who goes on asking although refused
%% is sent away.
-define(BURST, 100).
-define(PER_SECOND, 50).
-define(RATE, {?PER_SECOND, ?BURST}).
-define(MOST_REFUSED, 1000).
-define(MOST_AT_ONCE, 8).
-define(ANSWER_MS, 15_000).

-record(asked, {
    monitor :: reference(),
    ref :: sderl_web_protocol:ref() | none,
    op :: atom(),
    timer :: reference(),
    %% Whether it goes on when nobody waits for it.
    lasting :: boolean()
}).
%% Tells the audit log the result of a request; none for one that only reads.
-type note() :: none | fun((ok | refused | failed, unicode:chardata()) -> ok).
-record(state, {
    who :: sderl_web_tokens:who(),
    from :: binary(),
    audit :: sderl_web_audit:hook(),
    tokens :: reference() | undefined,
    writable :: boolean(),
    settings :: #{recordings := none | file:filename(), replay := none | file:filename()},
    feed :: reference() | undefined,
    source = live :: sderl_web_ask:source(),
    paused = false :: boolean(),
    bucket :: sderl_web_bucket:bucket(),
    refused = 0 :: non_neg_integer(),
    asked = #{} :: #{pid() => #asked{}}
}).

-type result() :: {[ping | {text, binary()} | {close, 1000..4999, binary()}], #state{}}.

-doc false.
-spec init(cowboy_req:req(), sderl_web_api:options()) ->
    {ok, cowboy_req:req(), term()}
    | {cowboy_websocket, cowboy_req:req(), term(), cowboy_websocket:opts()}.
init(Req, #{max_sockets := Most} = Options) ->
    %% Strangers cost no more than the look at their token.
    case sderl_web_auth:admit(Req) of
        {refused, Why} -> {ok, sderl_web_auth:refuse(Why, Req), Options};
        {ok, Who} ->
            case full(Most) of
                true ->
                    Full = "as many sockets are open as max_sockets allows: close a page",
                    {ok, sderl_web_reply:refuse(unavailable, Full, Req), Options};
                false -> {cowboy_websocket, Req, new(Who, Req, Options), #{
                    max_frame_size => ?MAX_FRAME,
                    idle_timeout => ?IDLE_MS,
                    compress => false,
                    validate_utf8 => true
                }}
            end
    end.

%% With a role that allows no changes the dashboard is read-only.
new(#{role := Role} = Who, Req, #{writable := Writable, audit := Audit} = Options) ->
    #state{who = Who, from = sderl_web_auth:client(Req), audit = Audit,
           writable = Writable andalso sderl_web_token:allows(Role, operator),
           settings = maps:with([recordings, replay], Options),
           bucket = sderl_web_bucket:new(?RATE, now_ms())}.

full(Most) ->
    try
        Full = sderl_web_feed:count() >= Most,
        _ = [sderl_web_notes:note(too_many_sockets, "a socket was refused: max_sockets are open")
             || Full],
        Full
    catch
        exit:_ -> true
    end.

-doc false.
-spec websocket_init(#state{}) -> result().
websocket_init(#state{settings = #{replay := Replay}, who = Who} = State0) ->
    _ = erlang:send_after(?PING_MS, self(), ping),
    Feed = monitor(process, sderl_web_feed),
    State = State0#state{tokens = monitor(process, sderl_web_tokens)},
    Mode =
        case Replay of
            none -> live;
            _ -> replay
        end,
    try
        ok = sderl_web_tokens:watch(Who),
        sderl_web_feed:join(self(), Mode)
    of
        {ok, Messages} -> begun(Messages, State#state{feed = Feed});
        {error, full} -> {[{close, 1013, ~"too many sockets"}], State}
    catch
        exit:_ -> {[{close, 1012, ~"the dashboard restarts"}], State}
    end.

begun(Messages, #state{settings = #{replay := none}} = State) ->
    {[session(State) | texts(Messages)], State};
begun(_, #state{settings = #{replay := File}} = State0) ->
    {Messages, State} = asked(fun() -> sderl_web_ask:replay(File) end, none, open, false, State0),
    {[session(State) | Messages], State}.

%% The owner of the socket; `writable` of hello is that of the server.
session(#state{who = #{name := Name, role := Role, expires := Expires}, writable = Writable}) ->
    {text, iolist_to_binary(sderl_web_json:term(#{
        type => session, name => Name, role => Role, writable => Writable,
        expires => sderl_web_json:null(Expires)
    }))}.

texts(Messages) -> [{text, Message} || Message <- Messages].

-doc false.
-spec websocket_handle(ping | pong | {atom(), binary()}, #state{}) -> result().
websocket_handle({text, Text}, State0) ->
    case allowed(State0) of
        {true, State} -> request(sderl_web_protocol:decode(Text), State);
        {false, #state{refused = N} = State} when N > ?MOST_REFUSED ->
            {[{close, 1008, ~"too many requests"}], State};
        {false, State} -> {too_many(Text), State}
    end;
websocket_handle({binary, _}, State) ->
    fatal(1003, "requests are text frames, not binary ones", State);
%% Pings cost nothing here but must not be a way around the limit.
websocket_handle(_, State0) ->
    case allowed(State0) of
        {false, #state{refused = N} = State} when N > ?MOST_REFUSED ->
            {[{close, 1008, ~"too many pings"}], State};
        {_, State} -> {[], State}
    end.

fatal(Code, Why, State) ->
    sderl_web_notes:note(bad_frame, ["a socket was closed: ", Why]),
    {[{text, iolist_to_binary(sderl_web_protocol:error_message(bad_request, Why))},
      {close, Code, ~"bad frame"}], State}.

allowed(#state{bucket = Bucket, refused = Refused} = State) ->
    case sderl_web_bucket:take(?RATE, now_ms(), Bucket) of
        {ok, Left} -> {true, State#state{bucket = Left}};
        {wait, _, Left} -> {false, State#state{bucket = Left, refused = Refused + 1}}
    end.

too_many(Text) ->
    sderl_web_notes:note(too_many_requests,
                         "requests of a socket were refused: it sends too many a second"),
    Why = io_lib:format("too many requests: at most ~w a second after the first ~w; wait",
                        [?PER_SECOND, ?BURST]),
    case sderl_web_protocol:decode(Text) of
        {ok, Ref, _} -> refusal(Ref, unavailable, Why);
        {refused, Ref, _} -> refusal(Ref, unavailable, Why);
        {fatal, _} -> refusal(null, unavailable, Why)
    end.

refusal(none, Code, Why) -> refusal(null, Code, Why);
refusal(Ref, Code, Why) -> [{text, iolist_to_binary(sderl_web_protocol:refusal(Ref, Code, Why))}].

done(Ref, Result) ->
    {text, iolist_to_binary(sderl_web_protocol:reply(Ref, sderl_web_json:term(Result)))}.

request({ok, Ref, {Op, Args}}, #state{who = #{role := Role}} = State) ->
    Needed = needed(Op, Args),
    case sderl_web_token:allows(Role, Needed) of
        true -> perform(Op, Args, Ref, State);
        false ->
            Why = [atom_to_binary(Op), ": this needs the role ", atom_to_binary(Needed),
                   ", and the token has ", atom_to_binary(Role)],
            {refused(forbidden, Why, Op, Args, Ref, State), State}
    end;
request({refused, Ref, Why}, State) ->
    sderl_web_notes:note(bad_request, "a request was refused that is none of the protocol"),
    {refusal(Ref, bad_request, Why), State};
request({fatal, Why}, State) ->
    fatal(1003, Why, State).

needed(trace, #{on := On, confirm := Confirm}) when Confirm; not On -> operator;
needed(Op, _) -> sderl_web_protocol:role(Op).

%% Of what needs more than a viewer.
-spec note(atom(), map(), #state{}) -> note().
note(Op, Args, #state{who = Who, from = From, audit = Hook}) ->
    case needed(Op, Args) of
        viewer -> none;
        _ ->
            Began = now_ms(),
            fun(Result, Why) ->
                sderl_web_audit:note(#{
                    who => sderl_web_audit:who(Who, From),
                    what => <<"socket.", (atom_to_binary(Op))/binary>>, result => Result,
                    args => Args, detail => Why, ms => max(0, now_ms() - Began)
                }, Hook)
            end
    end.

%% The log may have to wait for its disk, and this process has frames to send.
refused(Code, Why, Op, Args, Ref, State) ->
    _ = case note(Op, Args, State) of
        none -> ok;
        Note -> spawn(fun() -> Note(refused, Why) end)
    end,
    refusal(Ref, Code, Why).

%% Requests about the socket itself; others go elsewhere.
perform(record, Args, Ref, #state{writable = false} = State) ->
    {refused(forbidden, sderl_web_protocol:read_only(record), record, Args, Ref, State), State};
perform(trace, #{on := On, confirm := Confirm} = Args, Ref, #state{writable = false} = State)
  when Confirm; not On ->
    {refused(forbidden, sderl_web_protocol:read_only(trace), trace, Args, Ref, State), State};
perform(pause, _, Ref, #state{source = live} = State) ->
    told(fun() -> sderl_web_feed:pause(self(), true) end, Ref, State#state{paused = true});
perform(resume, _, Ref, #state{source = live} = State) ->
    told(fun() -> sderl_web_feed:pause(self(), false) end, Ref, State#state{paused = false});
perform(Op, _, Ref, State) when Op =:= pause; Op =:= resume ->
    {[done(Ref, null)], State};
perform(watch, #{node := Node}, Ref, State) ->
    try
        sderl_web_feed:watch(self(), Node)
    of
        ok -> {[done(Ref, null)], State};
        {error, not_found} -> {refusal(Ref, not_found, sderl_web_ask:no_node(Node)), State};
        {error, too_many} ->
            {refusal(Ref, too_large, "this page watches too many nodes at a time: unwatch some"),
             State}
    catch
        exit:_ -> {refusal(Ref, unavailable, "the dashboard restarts: ask again"), State}
    end;
perform(unwatch, #{node := Node}, Ref, State) ->
    told(fun() -> sderl_web_feed:unwatch(self(), Node) end, Ref, State);
perform(live, _, Ref, State0) ->
    State = closed(State0#state{source = live, paused = false}, State0),
    try
        ok = sderl_web_feed:replay(self(), false),
        {[done(Ref, null) | texts(sderl_web_feed:snapshot())], State}
    catch
        exit:_ -> {refusal(Ref, unavailable, "the dashboard restarts: ask again"), State}
    end;
perform(Op, Args, Ref, #state{asked = Asked} = State) when map_size(Asked) >= ?MOST_AT_ONCE ->
    Why = io_lib:format("~w requests are being answered: wait for one", [map_size(Asked)]),
    {refused(unavailable, Why, Op, Args, Ref, State), State};
perform(Op, Args, Ref,
        #state{source = Source, settings = Settings0, writable = Writable} = State) ->
    Settings = Settings0#{writable => Writable},
    Ask = fun() -> sderl_web_ask:answer({Op, Args}, Source, Settings) end,
    case note(Op, Args, State) of
        none -> asked(Ask, Ref, Op, false, State);
        Note -> asked(fun() -> lasting(Ask, Note) end, Ref, Op, true, State)
    end.

%% Runs in the process that waits for the answer.
lasting(Ask, Note) ->
    Work = fun() ->
        Answer = Ask(),
        ok = case Answer of
            {error, unavailable, Why} -> Note(failed, Why);
            {error, _, Why} -> Note(refused, Why);
            _ -> Note(ok, ~"")
        end,
        Answer
    end,
    Lost = fun(_) -> Note(failed, "it ended before it was done, or done in part") end,
    case sderl_web_work:run(Work, Lost, infinity) of
        {ok, Answer} -> Answer;
        full ->
            Why = "as many changes as can be made at a time are being made: ask again",
            ok = Note(refused, Why),
            {error, unavailable, Why};
        {lost, Reason} -> exit(Reason)
    end.

asked(Fun, Ref, Op, Lasting, #state{asked = Asked} = State) ->
    Socket = self(),
    {Pid, Monitor} = spawn_opt(
        fun() -> Socket ! {answer, self(), Fun()} end,
        [monitor, {max_heap_size, #{size => heap_words(), kill => true, error_logger => false}}]
    ),
    Timer = erlang:send_after(?ANSWER_MS, self(), {late, Pid}),
    One = #asked{monitor = Monitor, ref = Ref, op = Op, timer = Timer, lasting = Lasting},
    {[], State#state{asked = Asked#{Pid => One}}}.

%% 256 MB: more than any answer takes. (The history itself is in binaries that are shared and not
%% counted.)
heap_words() -> 256 * 1024 * 1024 div erlang:system_info(wordsize).

told(Fun, Ref, State) ->
    try
        ok = Fun(),
        {[done(Ref, null)], State}
    catch
        exit:_ -> {refusal(Ref, unavailable, "the dashboard restarts: ask again"), State}
    end.

%% The recording that was open before.
closed(State, #state{source = {recording, _, Pid}}) ->
    ok = sderl_web_ask:close(Pid),
    State;
closed(State, _) ->
    State.

-doc false.
-spec websocket_info(term(), #state{}) -> result().
websocket_info({sderl_web_feed, Message}, #state{source = live} = State) ->
    ok = sderl_web_feed:ack(self()),
    {[{text, Message}], State};
websocket_info({sderl_web_feed, _}, State) ->
    ok = sderl_web_feed:ack(self()),
    {[], State};
websocket_info(ping, State) ->
    _ = erlang:send_after(?PING_MS, self(), ping),
    {[ping], State};
websocket_info({answer, Pid, Answer}, State) ->
    ended(Pid, fun(#asked{ref = Ref}, Left) -> answered(Answer, Ref, Left) end, State);
websocket_info({late, Pid}, State) ->
    ended(Pid, fun(#asked{ref = Ref, op = Op, lasting = Lasting}, Left) ->
        More = case Lasting of
            true -> ", and it goes on: look whether it is done before you ask again";
            false ->
                true = exit(Pid, kill),
                ""
        end,
        Why = io_lib:format("~ts: no answer within ~w s~ts", [Op, ?ANSWER_MS div 1000, More]),
        {refusal(Ref, unavailable, Why), Left}
    end, State);
%% The codes from 4000 on are free for applications.
websocket_info({sderl_web_tokens, expired}, State) ->
    {[{close, 4001, ~"token expired"}], State};
websocket_info({sderl_web_tokens, revoked}, State) ->
    {[{close, 4002, ~"token revoked"}], State};
websocket_info({sderl_web_tokens, unreadable}, State) ->
    {[{close, 4003, ~"tokens cannot be read"}], State};
websocket_info({'DOWN', Server, process, _, _}, #state{feed = Feed, tokens = Tokens} = State)
  when Server =:= Feed; Server =:= Tokens ->
    {[{close, 1012, ~"the dashboard restarts"}], State};
websocket_info({'DOWN', _, process, Pid, Reason}, State) ->
    ended(Pid, fun(#asked{ref = Ref, op = Op}, Left) ->
        {refusal(Ref, failed(Reason), failed(Reason, Op)), Left}
    end, State);
websocket_info(_, State) ->
    {[], State}.

%% A question that is no more: answered, late or failed, whichever is first.
ended(Pid, Fun, #state{asked = Asked} = State) ->
    case maps:take(Pid, Asked) of
        {#asked{monitor = Monitor, timer = Timer} = One, Left} ->
            true = demonitor(Monitor, [flush]),
            _ = erlang:cancel_timer(Timer),
            Fun(One, State#state{asked = Left});
        error ->
            {[], State}
    end.

answered({ok, Result}, Ref, State) ->
    {[{text, iolist_to_binary(sderl_web_protocol:reply(Ref, Result))}], State};
answered({opened, Name, Pid, Messages}, Ref, State) ->
    case sderl_web_ask:own(Pid) of
        true -> shown(Name, Pid, Messages, Ref, State);
        false ->
            answered({error, unavailable, ["\"", Name, "\" could not be opened: ask again"]}, Ref,
                     State)
    end;
answered({error, Code, Why}, none, State) ->
    {[{text, iolist_to_binary(sderl_web_protocol:error_message(Code, Why))},
      {close, 1011, ~"no recording"}], State};
answered({error, Code, Why}, Ref, State) ->
    {refusal(Ref, Code, Why), State}.

shown(Name, Pid, Messages, Ref, State0) ->
    State = closed(State0#state{source = {recording, Name, Pid}}, State0),
    try
        ok = sderl_web_feed:replay(self(), true),
        {[done(Ref, null) || Ref =/= none] ++ texts(Messages), State}
    catch
        exit:_ -> {[{close, 1012, ~"the dashboard restarts"}], State}
    end.

failed(killed) -> too_large;
failed(_) -> unavailable.

failed(killed, Op) ->
    [atom_to_binary(Op), ": the answer is too large: ask for less"];
failed(Reason, Op) ->
    sderl_web_notes:note(failed,
                         io_lib:format("~ts could not be answered: ~0tP", [Op, Reason, 20])),
    [atom_to_binary(Op), ": this could not be answered; the log of the dashboard says why"].

-doc false.
-spec terminate(term(), cowboy_req:req(), term()) -> ok.
terminate(Reason, _, #state{asked = Asked, source = Source}) ->
    _ = [exit(Pid, kill) || Pid := #asked{lasting = false} <- Asked],
    _ = [sderl_web_ask:close(Pid) || {recording, _, Pid} <- [Source]],
    note(Reason);
terminate(_, _, _) ->
    ok.

note({error, badframe}) ->
    sderl_web_notes:note(bad_frame, "a socket was closed: a frame was malformed");
note({error, badencoding}) ->
    sderl_web_notes:note(bad_frame, "a socket was closed: a text frame was no UTF-8");
note({error, badsize}) ->
    sderl_web_notes:note(bad_frame, "a socket was closed: a frame was larger than 64 KiB");
note({crash, Class, Reason}) ->
    sderl_web_notes:note(failed, io_lib:format("a socket ended: ~0tP", [{Class, Reason}, 20]));
note({error, timeout}) ->
    sderl_web_notes:note(slow_reader,
                         "a socket was closed: its browser did not take what it was sent");
note(_) -> ok.
