%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_reaper).
-moduledoc false.

%% Ends what the fleet started, whatever ends the fleet.
%%
%% A small shell process, our port, makes the fleet's private directory and is told the
%% operating-system pid of each node and epmd. Its stdin is a pipe whose other end only
%% this virtual machine holds, so it reads end of file when we close it, crash, or are
%% killed with SIGKILL. Then it sends CONT and KILL to every process it was told of, to
%% every other process with the fleet's mark in its environment (what the nodes spawned:
%% erl_child_setup, inet_gethost, programs behind ports), waits until they are gone and
%% removes the directory. All other signals go through it too, because only it checks that a
%% pid still is the process it was told of: by start time, so that no later process that got
%% the same pid is signalled.
%%
%% Races:
%% - A node is forked and we are killed before its pid is told: the node's stdin is closed
%%   too, and a node ends when its stdin ends; nobody can have suspended it yet. Where
%%   /proc exists the mark finds it as well.
%% - Somebody kills the shell: its exit status arrives here, another one adopts the
%%   directory and is told the pids again, with the start times the first one saw, and the
%%   signals it did not answer for.
%% - Check and signal are two steps. Until we collect a node's exit status its pid cannot
%%   be recycled; after our death a recycled pid has another start time.

-behaviour(gen_server).

-export([start_link/1, mark/1, add/2, signal/3, finish/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-define(TIMEOUT, 30_000).
-define(MARK, "SDERL_FLEET_HOME").

-record(state, {
    fleet :: pid(),
    dir :: string(),
    port :: port() | undefined,
    %% Every process told, also dead ones, with the start time.
    pids = #{} :: #{non_neg_integer() => binary()},
    %% Answers come in the order of the questions.
    asked = queue:new() :: queue:queue({gen_server:from(), non_neg_integer(), stop | cont | kill}),
    finishing :: gen_server:from() | undefined,
    lost_while_finishing = false :: boolean()
}).

-doc "`Dir` must not exist; it is made with mode 0700 and removed in the end.".
-spec start_link(Dir :: string()) -> gen_server:start_ret().
start_link(Dir) ->
    %% Linked in init/1, and not by start_link: then the end of the fleet, also when it was
    %% killed, is not reported as a crash of this process.
    gen_server:start(?MODULE, {self(), Dir}, []).

-doc "The environment variable that marks a process as part of the fleet of this directory.".
-spec mark(Dir :: string()) -> {string(), string()}.
mark(Dir) ->
    {?MARK, Dir}.

-spec add(pid(), non_neg_integer()) -> ok.
add(Reaper, OsPid) ->
    gen_server:call(Reaper, {add, OsPid}, ?TIMEOUT).

-doc "Sends a signal to a process that was added; `gone` when it is no more.".
-spec signal(pid(), non_neg_integer(), stop | cont | kill) -> ok | gone.
signal(Reaper, OsPid, Signal) ->
    gen_server:call(Reaper, {signal, OsPid, Signal}, ?TIMEOUT).

-doc "Ends all processes and removes the directory; the reaper ends too.".
-spec finish(pid()) -> ok.
finish(Reaper) ->
    try
        gen_server:call(Reaper, finish, infinity)
    catch
        %% It has ended, so its port has, and the shell is at work.
        exit:{_, {gen_server, call, _}} -> ok
    end.

%% gen_server

-spec init({pid(), string()}) -> {ok, #state{}} | {error, term()}.
init({Fleet, Dir}) ->
    %% A port ends with an error when its program does not read.
    process_flag(trap_exit, true),
    link(Fleet),
    State = open(#state{fleet = Fleet, dir = Dir}, "new"),
    receive
        {Port, {data, {eol, ~"ready"}}} when Port =:= State#state.port -> {ok, State};
        {Port, {data, {eol, Line}}} when Port =:= State#state.port -> {error, {mkdir, Dir, Line}};
        {Port, {exit_status, N}} when Port =:= State#state.port -> {error, {reaper, N}}
    after ?TIMEOUT -> {error, {reaper, timeout}}
    end.

%% A new shell for a lost one.
-spec handle_continue(adopt, #state{}) -> {noreply, #state{}}.
handle_continue(adopt, #state{pids = Pids, asked = Asked} = State0) ->
    State = open(State0, "adopt"),
    _ = [tell(State, "A", Pid, Stamp) || Pid := Stamp <- Pids],
    _ = [tell(State, letter(Signal), Pid, "") || {_, Pid, Signal} <- queue:to_list(Asked)],
    State#state.finishing =:= undefined orelse tell(State, "Q", 0, ""),
    {noreply, State}.

-spec handle_call(tuple() | finish, gen_server:from(), #state{}) ->
    {reply, ok, #state{}} | {noreply, #state{}}.
handle_call({add, Pid}, _From, #state{pids = Pids} = State) ->
    tell(State, "A", Pid, ""),
    {reply, ok, State#state{pids = Pids#{Pid => <<>>}}};
handle_call({signal, Pid, Signal}, From, #state{asked = Asked} = State) ->
    tell(State, letter(Signal), Pid, ""),
    {noreply, State#state{asked = queue:in({From, Pid, Signal}, Asked)}};
handle_call(finish, From, State) ->
    tell(State, "Q", 0, ""),
    {noreply, State#state{finishing = From}}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) ->
    {noreply, #state{}} | {noreply, #state{}, {continue, adopt}} | {stop, normal, #state{}}.
handle_info({Port, {data, {eol, Line}}}, #state{port = Port} = State) ->
    {noreply, answer(Line, State)};
handle_info({Port, {exit_status, Status}}, #state{port = Port} = State) ->
    ended(Status, State);
%% Written to while its shell had just ended: no exit status comes.
handle_info({'EXIT', Port, Reason}, #state{port = Port} = State) ->
    ended(Reason, State);
handle_info({'EXIT', Fleet, Reason}, #state{fleet = Fleet} = State) ->
    {stop, {shutdown, Reason}, State};
handle_info(_, State) ->
    {noreply, State}.

%% Internals

answer(<<"stamp ", Rest/binary>>, #state{pids = Pids} = State) ->
    [Pid, Stamp] = binary:split(Rest, ~" "),
    State#state{pids = Pids#{binary_to_integer(Pid) => Stamp}};
answer(Line, #state{asked = Asked0} = State) ->
    case {Line, queue:out(Asked0)} of
        {~"ok", {{value, {From, _, _}}, Asked}} ->
            gen_server:reply(From, ok),
            State#state{asked = Asked};
        {~"gone", {{value, {From, _, _}}, Asked}} ->
            gen_server:reply(From, gone),
            State#state{asked = Asked};
        _ ->
            State
    end.

ended(_, #state{finishing = undefined} = State) ->
    {noreply, State, {continue, adopt}};
ended(Status, State) when Status =:= 0; State#state.lost_while_finishing ->
    gen_server:reply(State#state.finishing, ok),
    {stop, normal, State};
ended(_, State) ->
    {noreply, State#state{lost_while_finishing = true}, {continue, adopt}}.

open(#state{dir = Dir} = State, Mode) ->
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", script(), "sderl_fleet_reaper", Dir, Mode, ?MARK]},
        %% A fleet's reaper may itself run on a node of another fleet.
        {env, [{?MARK, false}]},
        {line, 1024},
        binary,
        exit_status,
        hide
    ]),
    State#state{port = Port}.

%% The shell may have just been killed: its exit status then comes and the pids are told again.
tell(#state{port = Port}, Letter, Pid, Stamp) ->
    try
        port_command(Port, [Letter, " ", integer_to_list(Pid), " ", Stamp, "\n"]),
        ok
    catch
        error:badarg -> ok
    end.

letter(stop) -> "S";
letter(cont) -> "C";
letter(kill) -> "K".

%% POSIX shell. No process is started while the fleet runs where /proc exists.
script() ->
    """
    dir=$1 mode=$2 mark=$3 pids=
    trap '' HUP INT QUIT TERM PIPE TSTP
    umask 077
    if [ "$mode" = new ]; then
        if mkdir "$dir" 2>/dev/null; then echo ready; else echo mkdir failed; exit 1; fi
    fi

    # Sets stamp to what tells process $1 from a later one with its pid; empty: none.
    stamp() {
        stamp=
        if [ -d /proc/self ]; then
            { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 0
            set -- ${stat##*) }
            [ "$1" = Z ] || stamp=${20}
        else
            stamp=$(ps -o lstart= -p "$1" 2>/dev/null)
        fi
    }
    same() {
        eval "known=\${s_$1-none}"
        stamp "$1"
        [ "$stamp" = "$known" ]
    }
    marked() {
        [ -d /proc/self ] || return 0
        for f in $(grep -l -F "$mark=$dir" /proc/[0-9]*/environ 2>/dev/null); do
            f=${f#/proc/}
            echo "${f%/environ}"
        done
    }
    send() {
        same "$2" && kill "-$1" "$2" 2>/dev/null && echo ok || echo gone
    }
    strike() {
        kill -CONT "$1" 2>/dev/null
        kill -KILL "$1" 2>/dev/null
    }
    reap() {
        left=
        for p in $pids; do
            if same "$p"; then strike "$p"; left=1; fi
        done
        for p in $(marked); do strike "$p"; left=1; done
    }

    while read -r cmd pid stamp; do
        case $pid in '' | *[!0-9]*) continue ;; esac
        case $cmd in
        A)
            [ -n "$stamp" ] || stamp "$pid"
            stamp=${stamp:-none}
            eval "s_$pid=\$stamp"
            pids="$pids $pid"
            echo "stamp $pid $stamp"
            ;;
        S) send STOP "$pid" ;;
        C) send CONT "$pid" ;;
        K) send KILL "$pid" ;;
        Q) break ;;
        esac
    done
    round=0
    while :; do
        reap
        round=$((round + 1))
        if [ -z "$left" ] || [ "$round" -gt 200 ]; then break; fi
        sleep 0.03 2>/dev/null || sleep 1
    done
    rm -rf -- "$dir"
    """.
