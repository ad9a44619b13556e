%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_idempotency).
-moduledoc """
Holds the answers of requests with an idempotency key (`m:sderl_web_answers`): the last 1,000, for
an hour, in memory. Should the process of a request end before it has answered, the answer is the
one that it gave for that case at its beginning: the request may have been done, and must not be
done twice.
""".

-behaviour(gen_server).

-export([start_link/0, start/3, finish/2, forget/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, format_status/1]).

-define(MOST, 1_000).
-define(MS, 3_600_000).
%% Answers hold new tokens, and are not kept longer than they have to be.
-define(SWEEP_MS, 60_000).

-record(state, {
    answers = sderl_web_answers:new(?MOST, ?MS) :: sderl_web_answers:answers(),
    %% The monitors of requests under way, with the answer to keep should the process end.
    begun = #{} :: #{reference() => {sderl_web_answers:key(), sderl_web_answers:answer()}}
}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "The calling process begins a request; `Lost` is its answer should the process end.".
-spec start(sderl_web_answers:key(), Digest :: binary(), Lost :: sderl_web_answers:answer()) ->
    new | {again, sderl_web_answers:answer()} | busy | other | full.
start(Key, Digest, Lost) -> gen_server:call(?MODULE, {start, Key, Digest, Lost}).

-doc "The calling process has answered.".
-spec finish(sderl_web_answers:key(), sderl_web_answers:answer()) -> ok.
finish(Key, Answer) -> gen_server:call(?MODULE, {finish, Key, Answer}).

-doc "The calling process has not done what was asked.".
-spec forget(sderl_web_answers:key()) -> ok.
forget(Key) -> gen_server:call(?MODULE, {forget, Key}).

-doc false.
-spec init([]) -> {ok, #state{}}.
init([]) ->
    sweep_later(),
    {ok, #state{}}.

sweep_later() ->
    _ = erlang:send_after(?SWEEP_MS, self(), sweep),
    ok.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({start, {_, _} = Key, Digest, {_, _, _} = Lost}, {Pid, _},
            #state{answers = Answers, begun = Begun} = State) when is_binary(Digest) ->
    case sderl_web_answers:start(Key, Digest, sderl_mon_clock:now_ms(), Answers) of
        {new, New} ->
            {reply, new,
             State#state{answers = New, begun = Begun#{monitor(process, Pid) => {Key, Lost}}}};
        Other -> {reply, Other, State}
    end;
handle_call({finish, Key, Answer}, _From, #state{answers = Answers} = State) ->
    {reply, ok, over(Key, State#state{answers = sderl_web_answers:finish(Key, Answer, Answers)})};
handle_call({forget, Key}, _From, #state{answers = Answers} = State) ->
    {reply, ok, over(Key, State#state{answers = sderl_web_answers:forget(Key, Answers)})};
handle_call(_, _From, State) ->
    {reply, {error, unknown_call}, State}.

over(Key, #state{begun = Begun} = State) ->
    Over = [Monitor || Monitor := {Is, _} <- Begun, Is =:= Key],
    true = lists:all(fun(Monitor) -> demonitor(Monitor, [flush]) end, Over),
    State#state{begun = maps:without(Over, Begun)}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Monitor, process, _, _}, #state{begun = Begun, answers = Answers} = State)
  when is_map_key(Monitor, Begun) ->
    {{Key, Lost}, Left} = maps:take(Monitor, Begun),
    {noreply, State#state{begun = Left, answers = sderl_web_answers:finish(Key, Lost, Answers)}};
handle_info(sweep, #state{answers = Answers} = State) ->
    sweep_later(),
    {noreply,
     State#state{answers = sderl_web_answers:sweep(sderl_mon_clock:now_ms(), Answers)}};
handle_info(_, State) ->
    {noreply, State}.

%% An answer may hold a token.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> sderl_web_secrets:hide(Status).
