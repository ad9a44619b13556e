%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_otlp_push).
-moduledoc """
Sends the numbers of the cluster to a collector of OpenTelemetry, over HTTP in protobuf, as the key
`otlp` of the configuration says; nothing while that is `off`.

Of several monitoring nodes only the one whose master leads sends. A request has the means over
`interval_ms`; while the collector does not answer, requests wait in a bounded queue
(`m:sderl_mon_otlp_queue`), and the monitoring never waits for it. A request is tried again if there
was no answer, and where the protocol says so: 429, 502, 503, 504. One line is logged when sending
begins to fail, and one when it works again.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_mon_clock, [now_ms/0]).

-define(POST_MS, 10_000).
%% How often to try to subscribe at a hub that is not there.
-define(AGAIN_MS, 1_000).

-record(push, {
    wanted = off :: sderl_mon_config:otlp(),
    hub = none :: none | reference(),
    mode = live :: live | synthetic,
    topology = none :: none | sderl_mon_types:topology(),
    findings = [] :: [sderl_mon_types:finding()],
    frames = sderl_mon_frame:new() :: sderl_mon_frame:acc(),
    queue = sderl_mon_otlp_queue:new() :: sderl_mon_otlp_queue:queue(),
    %% The process that posts, and a timer for the next try.
    post = none :: none | {pid(), reference()},
    timer = none :: none | reference(),
    problem = none :: none | binary()
}).

-doc "Sends as the configuration in force says.".
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
`off`, or the counts of `t:sderl_mon_otlp_queue:info/0`, whether this node `sends`, and the
`problem` while sending fails.
""".
-spec info() -> off | #{sends := boolean(), problem := none | binary(),
                        waiting | bytes | sent | refused | dropped => non_neg_integer()}.
info() -> gen_server:call(?MODULE, info).

-doc false.
-spec init([]) -> {ok, #push{}}.
init([]) ->
    self() ! {sderl_mon_config, sderl_mon_settings:get()},
    {ok, #push{}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #push{}) -> {reply, term(), #push{}}.
handle_call(info, _From, #push{wanted = off} = P) ->
    {reply, off, P};
handle_call(info, _From, #push{queue = Queue, problem = Problem} = P) ->
    {reply, (sderl_mon_otlp_queue:info(Queue))#{problem => Problem, sends => leads(P)}, P};
handle_call(_, _From, P) ->
    {reply, {error, unknown_call}, P}.

-doc false.
-spec handle_cast(term(), #push{}) -> {noreply, #push{}}.
handle_cast(_, P) -> {noreply, P}.

-doc false.
-spec handle_info(term(), #push{}) -> {noreply, #push{}}.
handle_info({sderl_mon_config, #{otlp := Wanted}}, #push{wanted = Wanted} = P) ->
    {noreply, P};
handle_info({sderl_mon_config, #{otlp := off}}, P) ->
    ok = stop_post(P),
    _ = unsubscribe(P),
    {noreply, #push{}};
handle_info({sderl_mon_config, #{otlp := Wanted}}, #push{wanted = Before} = P) ->
    _ = Before =:= off andalso (self() ! subscribe),
    ok = stop_post(P),
    %% The waiting requests were meant for the collector before.
    {noreply, P#push{wanted = Wanted, queue = sderl_mon_otlp_queue:new(), post = none,
                     problem = none}};
handle_info(_, #push{wanted = off} = P) ->
    {noreply, P};
handle_info(subscribe, #push{hub = none} = P) ->
    {noreply, subscribe(P)};
handle_info({'DOWN', Hub, process, _, _}, #push{hub = Hub} = P) ->
    {noreply, later(P#push{hub = none})};
handle_info({sderl_mon_otlp_posted, Pid, Answer}, #push{post = {Pid, Ref}} = P) ->
    true = demonitor(Ref, [flush]),
    {noreply, send(answered(Answer, P#push{post = none}))};
handle_info({'DOWN', Ref, process, _, Crash}, #push{post = {_, Ref}} = P) ->
    {noreply, send(again(sderl_mon_text:text("~0tP", [Crash, 20]), P#push{post = none}))};
handle_info({timeout, Timer, again}, #push{timer = Timer} = P) ->
    {noreply, send(P#push{timer = none})};
handle_info(Message, P) when element(1, Message) =:= sderl_mon ->
    case sderl_mon_message:check_news(Message) of
        {ok, News} -> {noreply, heard(News, P)};
        {error, not_a_message} -> {noreply, P}
    end;
handle_info(_, P) ->
    {noreply, P}.

stop_post(#push{post = {Pid, Ref}}) ->
    _ = demonitor(Ref, [flush]),
    _ = exit(Pid, kill),
    ok;
stop_post(_) ->
    ok.

unsubscribe(#push{hub = none}) -> ok;
unsubscribe(#push{hub = Hub}) ->
    _ = demonitor(Hub, [flush]),
    try
        sderl_mon_hub:unsubscribe()
    catch
        exit:_ -> ok
    end.

later(P) ->
    _ = erlang:send_after(?AGAIN_MS, self(), subscribe),
    P.

subscribe(P) ->
    try sderl_mon_hub:subscribe() of
        {ok, #{topology := Topology, findings := Findings, mode := Mode}} ->
            P#push{hub = monitor(process, sderl_mon_hub), topology = Topology, mode = Mode,
                   findings = Findings, frames = sderl_mon_frame:new()};
        {error, _} -> later(P)
    catch
        exit:_ -> later(P)
    end.

%% ---------------------------------------------------------------- messages of the hub

heard({sderl_mon, topology, Topology}, P) -> P#push{topology = Topology};
heard({sderl_mon, findings, Findings}, P) -> P#push{findings = Findings};
heard({sderl_mon, frame, Frame}, #push{frames = Frames0, wanted = Wanted} = P) ->
    Frames = sderl_mon_frame:add(Frame, Frames0),
    case sderl_mon_frame:span(Frames) >= maps:get(interval_ms, Wanted, 10_000) of
        false -> P#push{frames = Frames};
        true ->
            ready(sderl_mon_frame:frame(Frames, fun sderl_mon_metrics:is_rate/1),
                  P#push{frames = sderl_mon_frame:new()})
    end;
%% A feed has begun or ended.
heard({sderl_mon, anew, _}, #push{hub = Hub} = P) ->
    _ = demonitor(Hub, [flush]),
    subscribe(P#push{hub = none});
heard(_, P) -> P.

ready(Frame, #push{topology = Topology, findings = Findings, queue = Queue} = P) ->
    case leads(P) of
        false -> P;
        true ->
            Request = iolist_to_binary(sderl_mon_otlp:request(#{
                topology => Topology, frame => Frame, findings => Findings,
                metrics => sderl_mon_metrics:application(), monitor => atom_to_binary(node()),
                version => version()
            })),
            send(P#push{queue = sderl_mon_otlp_queue:add(Request, Queue)})
    end.

version() ->
    case application:get_key(sderl_mon, vsn) of
        {ok, Version} -> unicode:characters_to_binary(Version);
        undefined -> ~""
    end.

leads(#push{mode = synthetic}) -> true;
leads(#push{topology = #{monitors := Monitors}}) ->
    Self = atom_to_binary(node()),
    lists:any(fun(#{node := Node, master := Master}) -> Node =:= Self andalso Master end, Monitors);
leads(_) -> false.

%% ---------------------------------------------------------------- sending, one at a time

send(#push{post = {_, _}} = P) -> P;
send(#push{queue = Queue, timer = Timer, wanted = Wanted} = P) ->
    case sderl_mon_otlp_queue:take(now_ms(), Queue) of
        {send, Request, Left} ->
            Self = self(),
            P#push{queue = Left, post = spawn_monitor(fun() ->
                Self ! {sderl_mon_otlp_posted, self(), post(Wanted, Request)}
            end)};
        {wait, Ms} when Timer =:= none ->
            P#push{timer = erlang:start_timer(Ms, self(), again)};
        _ -> P
    end.

post(#{url := Url} = Wanted, Request) ->
    {ok, Uri} = sderl_mon_post:uri(Url),
    Headers = [{~"content-type", ~"application/x-protobuf"}, {~"user-agent", ~"sderl-mon"}
               | maps:get(headers, Wanted, [])],
    sderl_mon_post:post(path(Uri), Headers, Request, ?POST_MS).

%% A URL without a path means the usual one.
path(#{path := Path} = Uri) when Path =:= ~""; Path =:= ~"/" -> Uri#{path => ~"/v1/metrics"};
path(Uri) -> Uri.

answered({ok, Status}, #push{queue = Queue} = P) when Status >= 200, Status < 300 ->
    works(P#push{queue = sderl_mon_otlp_queue:sent(Queue)});
answered({ok, Status}, P) when Status =:= 429; Status >= 502, Status =< 504 ->
    again(sderl_mon_text:text("it answered ~w", [Status]), P);
answered({ok, Status}, #push{queue = Queue} = P) ->
    fails(sderl_mon_text:text("it answered ~w, which no other try would change", [Status]),
          P#push{queue = sderl_mon_otlp_queue:refused(Queue)});
answered({error, Why}, P) -> again(Why, P).

again(Why, #push{queue = Queue} = P) ->
    fails(Why, P#push{queue = sderl_mon_otlp_queue:failed(now_ms(), rand:uniform(), Queue)}).

works(#push{problem = none} = P) -> P;
works(#push{wanted = #{url := Url}} = P) ->
    ?LOG_NOTICE("The collector at ~ts takes numbers again", [Url]),
    P#push{problem = none}.

fails(Why, #push{problem = none, wanted = #{url := Url}} = P) ->
    ?LOG_WARNING("The collector at ~ts takes no numbers: ~ts; they wait, a bounded number of them",
                 [Url, Why]),
    P#push{problem = Why};
fails(Why, P) -> P#push{problem = Why}.
