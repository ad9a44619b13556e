%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_caller).
-moduledoc """
One of the clients that keep the demo's nodes a little busy while they stay up.

It makes one call at a time and never repeats one, so a call that fails costs no more than one that
is answered. A server that did not answer is left out for a while (`sderl_demo_backoff`), and others
are called meanwhile, so that the loss of a node hardly affects any calls but those to that node.

The rate of calls differs by group, and rises and falls within a minute.
""".

-behaviour(gen_server).

-export([start_link/2, counts/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([counts/0]).

-import(sderl_clock, [now_ms/0]).

-doc """
`calls` is the sum of `answered` and `failed`; `left_out` counts how often no call was made,
because the servers that were drawn had not answered before.
""".
-type counts() :: #{calls | answered | failed | left_out := non_neg_integer()}.

-record(state, {
    env :: sderl_demo_client:env(),
    clients :: pos_integer(),
    random :: rand:state(),
    backoff :: sderl_demo_backoff:backoff(),
    counts = #{calls => 0, answered => 0, failed => 0, left_out => 0} :: counts()
}).

-define(BACKOFF_MS, {250, 8_000}).
%% How many servers are drawn at most, until one is not left out.
-define(DRAWS, 3).
-define(WAVE_MS, 60_000).

-doc "Starts one of so many clients of a node.".
-spec start_link(sderl_demo_client:env(), Clients :: pos_integer()) -> gen_server:start_ret().
start_link(Env, Clients) -> gen_server:start_link(?MODULE, {Env, Clients}, []).

-doc "The counts of a caller since its start.".
-spec counts(pid()) -> counts().
counts(Caller) -> gen_server:call(Caller, counts, infinity).

-doc false.
-spec init({sderl_demo_client:env(), pos_integer()}) -> {ok, #state{}}.
init({#{seed := Seed} = Env, Clients}) ->
    State = #state{
        env = Env,
        clients = Clients,
        random = rand:seed_s(exsss, Seed),
        backoff = sderl_demo_backoff:new(?BACKOFF_MS)
    },
    {ok, schedule(State)}.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, counts() | {error, unknown_call}, #state{}}.
handle_call(counts, _From, #state{counts = Counts} = State) -> {reply, Counts, State};
handle_call(_Request, _From, State) -> {reply, {error, unknown_call}, State}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Message, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(call, State) -> {noreply, schedule(call(?DRAWS, State))};
handle_info(_Message, State) -> {noreply, State}.

call(0, State) ->
    count(left_out, State);
call(Draws, #state{env = Env, random = Random, backoff = Backoff} = State) ->
    {_, Server, Random1} = sderl_demo_client:choose(Env, Random),
    Drawn = State#state{random = Random1},
    case sderl_demo_backoff:is_due(Server, now_ms(), Backoff) of
        true -> called(Server, Drawn);
        false -> call(Draws - 1, Drawn)
    end.

called(Server, #state{env = #{registry := Registry, work_ms := Work}, backoff = Backoff} = State) ->
    case Registry:call(Server, Work) of
        {ok, _} ->
            Answered = State#state{backoff = sderl_demo_backoff:answered(Server, Backoff)},
            count(answered, count(calls, Answered));
        {error, _} ->
            Failed = State#state{backoff = sderl_demo_backoff:failed(Server, now_ms(), Backoff)},
            count(failed, count(calls, Failed))
    end.

count(What, #state{counts = Counts} = State) ->
    State#state{counts = maps:update_with(What, fun(Count) -> Count + 1 end, Counts)}.

schedule(#state{env = Env, clients = Clients, random = Random} = State) ->
    {Part, Random1} = rand:uniform_s(Random),
    Pause = Clients * pause_ms(Env, erlang:system_time(millisecond)),
    _ = erlang:send_after(round(Pause * (0.5 + Part)), self(), call),
    State#state{random = Random1}.

%% The mean pause of a node with a single client, for 3 to 25 calls a second.
pause_ms(#{home := Home}, NowMs) ->
    Group = erlang:phash2(Home, 4),
    Wave = 1 + math:sin(2 * math:pi() * (NowMs / ?WAVE_MS + Group / 4)),
    40 * (1 + Group / 2) * (1 + Wave).
