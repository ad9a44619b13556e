%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_pool).
-moduledoc """
Runs jobs that may take long, such as requests to other nodes and connections, each in a process of
its own and with a time limit. A bounded number runs at once; the rest waits.

There are four lanes, so that nodes that cannot be connected, each of which holds a place for
seconds, do not delay others: `connect` for first connections, `retry` for nodes that could not be
connected more than once, `reach` for starting a probe or other code on a node, and `read`.
""".

-behaviour(gen_server).

-export([start_link/0, run/5, info/0]).
-export_type([lane/0, load/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% How many at once. A node that answers does so in milliseconds.
-define(LANES, #{connect => 16, retry => 16, reach => 32, read => 32}).

-type lane() :: connect | retry | reach | read.
-type load() :: #{running := non_neg_integer(), waiting := non_neg_integer()}.

-type caller() :: {pid(), Key :: term()}.
-type state() :: #{lane() => #{
    most := pos_integer(),
    running := #{reference() => {Job :: pid(), Caller :: pid(), Tag :: term(), reference()}},
    waiting := queue:queue(caller()),
    jobs := #{caller() => {Tag :: term(), fun(() -> term()), Ms :: pos_integer()}}
}}.

-doc "Starts the pool, one a node.".
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
Runs a job. The caller gets `{sderl_mon_done, Tag, {ok, Fun()} | {error, Reason}}` once, at the
latest `Ms` milliseconds after the job began to run. (In a race with the time limit it may come
twice, so the tag should be unique.) A waiting job of the same caller and key in that lane is
replaced at its place in the queue, and its tag gets no answer.
""".
-spec run(lane(), Key :: term(), Tag :: term(), fun(() -> term()), Ms :: pos_integer()) -> ok.
run(Lane, Key, Tag, Fun, Ms) ->
    gen_server:cast(?MODULE, {run, Lane, {self(), Key}, {Tag, Fun, Ms}}).

-doc "How many jobs run and how many wait.".
-spec info() -> #{lane() => load()}.
info() -> gen_server:call(?MODULE, info).

-spec init([]) -> {ok, state()}.
init([]) ->
    {ok, #{Lane => #{most => Most, running => #{}, waiting => queue:new(), jobs => #{}}
           || Lane := Most <- ?LANES}}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(info, _From, State) ->
    {reply, #{Lane => #{running => map_size(R), waiting => map_size(W)}
              || Lane := #{running := R, jobs := W} <- State}, State};
handle_call(_, _, State) ->
    {reply, {error, unknown_call}, State}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({run, Name, {Caller, _} = Who, {_, Fun, Ms} = Job}, State) when
    is_map_key(Name, State), is_pid(Caller), node(Caller) =:= node(),
    is_function(Fun, 0), is_integer(Ms), Ms >= 0
->
    #{Name := #{waiting := Waiting, jobs := Jobs} = Lane} = State,
    Queue = case is_map_key(Who, Jobs) of true -> Waiting; false -> queue:in(Who, Waiting) end,
    {noreply, State#{Name := next(Lane#{waiting := Queue, jobs := Jobs#{Who => Job}})}};
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', Mon, process, _, Reason}, State) ->
    {noreply, maps:map(fun(_, Lane) -> down(Mon, Reason, Lane) end, State)};
handle_info({late, Pid}, State) ->
    _ = [exit(Pid, kill) || is_ours(Pid, State)],
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

%% The job may have ended already.
is_ours(Pid, State) ->
    Running = [Jobs || _ := #{running := Jobs} <- State],
    lists:member(Pid, [Job || Jobs <- Running, _ := {Job, _, _, _} <- Jobs]).

down(Mon, Reason, #{running := Running} = Lane) ->
    case maps:take(Mon, Running) of
        {{_Pid, Caller, Tag, Timer}, Rest} ->
            _ = erlang:cancel_timer(Timer),
            ended(Reason, Caller, Tag),
            next(Lane#{running := Rest});
        error ->
            Lane
    end.

ended(normal, _, _) -> ok;
ended(killed, Caller, Tag) -> Caller ! {sderl_mon_done, Tag, {error, timeout}}, ok;
ended(Reason, Caller, Tag) -> Caller ! {sderl_mon_done, Tag, {error, Reason}}, ok.

next(#{most := Most, running := Running, waiting := Waiting, jobs := Jobs} = Lane)
  when map_size(Running) < Most ->
    case queue:out(Waiting) of
        {empty, _} ->
            Lane;
        {{value, {Caller, _} = Who}, Rest} ->
            {{Tag, Fun, Ms}, Others} = maps:take(Who, Jobs),
            case is_process_alive(Caller) of
                true ->
                    {Pid, Mon} =
                        spawn_monitor(fun() -> Caller ! {sderl_mon_done, Tag, result(Fun)} end),
                    Timer = erlang:send_after(Ms, self(), {late, Pid}),
                    next(Lane#{running := Running#{Mon => {Pid, Caller, Tag, Timer}},
                               waiting := Rest, jobs := Others});
                false ->
                    next(Lane#{waiting := Rest, jobs := Others})
            end
    end;
next(Lane) ->
    Lane.

%% A failure is returned as a value, without a crash report.
result(Fun) ->
    try
        {ok, Fun()}
    catch
        error:{erpc, Why} -> {error, Why};
        Class:Reason -> {error, {Class, Reason}}
    end.
