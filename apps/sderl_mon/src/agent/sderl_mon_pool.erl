%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_pool).
-moduledoc """
Runs what may take long, a request to another node or a connection, in processes of their own: so many at once
and no more, each for so long and no longer. The rest waits its turn.

There are two lanes, so that nodes that cannot be reached, each of which holds a place for seconds, do not keep
others from being read: `reach` and `read`.
""".

-behaviour(gen_server).

-export([start_link/0, run/4, info/0]).
-export_type([lane/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% In each lane. A node that answers does so in milliseconds.
-define(AT_ONCE, 32).
-define(LANES, [reach, read]).

-type lane() :: reach | read.

-doc "Starts the pool, one a node.".
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
The caller gets `{sderl_mon_done, Tag, {ok, Fun()} | {error, Reason}}` once, at the latest `Ms` milliseconds after it
began to run. (Twice, in a race with the time limit: make the tag one of its own.)
""".
-spec run(lane(), Tag :: term(), fun(() -> term()), Ms :: pos_integer()) -> ok.
run(Lane, Tag, Fun, Ms) -> gen_server:cast(?MODULE, {run, Lane, {self(), Tag, Fun, Ms}}).

-doc "How many run and how many wait.".
-spec info() -> #{lane() => #{running := non_neg_integer(), waiting := non_neg_integer()}}.
info() -> gen_server:call(?MODULE, info).

-spec init([]) -> {ok, map()}.
init([]) -> {ok, #{Lane => #{running => #{}, waiting => queue:new()} || Lane <- ?LANES}}.

-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call(info, _From, State) ->
    {reply, #{Lane => #{running => map_size(R), waiting => queue:len(W)} || Lane := #{running := R, waiting := W} <- State}, State};
handle_call(_, _, State) ->
    {reply, {error, unknown_call}, State}.

-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast({run, Name, Job}, State) when is_map_key(Name, State) ->
    #{Name := #{waiting := Waiting} = Lane} = State,
    {noreply, State#{Name := next(Lane#{waiting := queue:in(Job, Waiting)})}};
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), map()) -> {noreply, map()}.
handle_info({'DOWN', Mon, process, _, Reason}, State) ->
    {noreply, maps:map(fun(_, Lane) -> down(Mon, Reason, Lane) end, State)};
handle_info({late, Pid}, State) ->
    true = exit(Pid, kill),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

down(Mon, Reason, #{running := Running} = Lane) ->
    case maps:take(Mon, Running) of
        {{Caller, Tag, Timer}, Rest} ->
            _ = erlang:cancel_timer(Timer),
            ended(Reason, Caller, Tag),
            next(Lane#{running := Rest});
        error ->
            Lane
    end.

ended(normal, _, _) -> ok;
ended(killed, Caller, Tag) -> Caller ! {sderl_mon_done, Tag, {error, timeout}}, ok;
ended(Reason, Caller, Tag) -> Caller ! {sderl_mon_done, Tag, {error, Reason}}, ok.

next(#{running := Running, waiting := Waiting} = Lane) when map_size(Running) < ?AT_ONCE ->
    case queue:out(Waiting) of
        {empty, _} ->
            Lane;
        {{value, {Caller, Tag, Fun, Ms}}, Rest} ->
            case is_process_alive(Caller) of
                true ->
                    {Pid, Mon} = spawn_monitor(fun() -> Caller ! {sderl_mon_done, Tag, result(Fun)} end),
                    Timer = erlang:send_after(Ms, self(), {late, Pid}),
                    next(Lane#{running := Running#{Mon => {Caller, Tag, Timer}}, waiting := Rest});
                false ->
                    next(Lane#{waiting := Rest})
            end
    end;
next(Lane) ->
    Lane.

%% What a node does wrong is a value here, not a crash report.
result(Fun) ->
    try
        {ok, Fun()}
    catch
        error:{erpc, Why} -> {error, Why};
        Class:Reason -> {error, {Class, Reason}}
    end.
