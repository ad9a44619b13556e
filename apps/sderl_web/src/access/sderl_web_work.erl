%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_work).
-moduledoc """
Does what changes something, in processes that do not end with whoever asked for it.

A client that goes away takes the process of its request with it. A change that was begun is made to
its end here all the same, keeps its answer and tells the audit log. At most 100 changes are made at
a time. One that takes two minutes, or 256 MB, is killed; its second function then says so.
""".

-behaviour(gen_server).

-export([start_link/0, run/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-define(MOST, 100).
-define(MOST_MS, 120_000).
-define(MOST_BYTES, 256 * 1024 * 1024).
%% How long work may go on when the dashboard stops, and then what tells of the rest.
-define(STOP_MS, 2_000).

-type lost() :: fun((Reason :: term()) -> term()).

-record(running, {
    monitor :: reference(),
    timer :: reference(),
    %% None for what tells of lost work.
    asked = none :: none | {gen_server:from(), lost()}
}).
-record(state, {running = #{} :: #{pid() => #running{}}}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
Runs a function in a process of its own and waits for what it gives. `full`: it was not begun.
`late`: it goes on. `{lost, Reason}`: it has ended before it was done; `Lost` is called with the
reason, in another process, whether somebody waits or not.
""".
-spec run(Work :: fun(() -> Answer), lost(), timeout()) ->
    {ok, Answer} | full | late | {lost, Reason :: term()}.
run(Work, Lost, Ms) ->
    try
        gen_server:call(?MODULE, {run, Work, Lost}, Ms)
    catch
        exit:{noproc, _} -> full;
        exit:{timeout, _} -> late;
        exit:{Reason, _} -> {lost, Reason}
    end.

-doc false.
-spec init([]) -> {ok, #state{}}.
init([]) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({run, _, _}, _From, #state{running = Running} = State)
  when map_size(Running) >= ?MOST ->
    {reply, full, State};
handle_call({run, Work, Lost}, From, State) when is_function(Work, 0), is_function(Lost, 1) ->
    Answered = fun() -> gen_server:reply(From, {ok, Work()}) end,
    {noreply, started(Answered, {From, Lost}, State)};
handle_call(_, _From, State) ->
    {reply, {error, unknown_call}, State}.

%% Not linked: should this process end, the work goes on.
started(Fun, Asked, #state{running = Running} = State) ->
    Words = ?MOST_BYTES div erlang:system_info(wordsize),
    {Pid, Monitor} = spawn_opt(Fun, [
        monitor, {max_heap_size, #{size => Words, kill => true, error_logger => false}}
    ]),
    Timer = erlang:send_after(?MOST_MS, self(), {late, Pid}),
    One = #running{monitor = Monitor, timer = Timer, asked = Asked},
    State#state{running = Running#{Pid => One}}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', _, process, Pid, Reason}, #state{running = Running} = State)
  when is_map_key(Pid, Running) ->
    {#running{timer = Timer, asked = Asked}, Left} = maps:take(Pid, Running),
    _ = erlang:cancel_timer(Timer),
    {noreply, ended(Reason, Asked, State#state{running = Left})};
handle_info({late, Pid}, #state{running = Running} = State) when is_map_key(Pid, Running) ->
    true = exit(Pid, kill),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

ended(Reason, {From, Lost}, State) when Reason =/= normal ->
    ok = gen_server:reply(From, {lost, Reason}),
    started(fun() -> Lost(Reason) end, none, State);
ended(_, _, State) ->
    State.

-doc false.
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{running = Running}) ->
    Left = await(Running, sderl_mon_clock:now_ms() + ?STOP_MS),
    Telling = maps:from_list(
        [spawn_monitor(fun() -> Lost(shutdown) end)
         || Pid := #running{asked = {_, Lost}} <- Left, exit(Pid, kill)]
    ),
    _ = await(Telling, sderl_mon_clock:now_ms() + ?STOP_MS),
    ok.

%% The workers that have not ended by a time.
await(Running, _) when map_size(Running) =:= 0 -> Running;
await(Running, Until) ->
    receive
        {'DOWN', _, process, Pid, normal} -> await(maps:remove(Pid, Running), Until)
    after max(0, Until - sderl_mon_clock:now_ms()) -> Running
    end.

%% Work may hold a token.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> sderl_web_secrets:hide(Status).
