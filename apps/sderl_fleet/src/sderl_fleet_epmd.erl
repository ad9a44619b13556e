%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_epmd).
-moduledoc false.

%% A port mapper of the fleet's own, so that its nodes are in no public list and no other
%% epmd is started or disturbed. It runs in the foreground as our port and is told
%% to the reaper like a node.
%%
%% A free port is found by binding to port 0 and letting go again, so another process may
%% take it in between; epmd then ends at once. So its debug output says whether it listens: a
%% connection could have been answered by that other process.

-behaviour(gen_server).

-export([start_link/1, namespace/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TRIES, 10).
-define(TIMEOUT, 10_000).
-define(READY, ~"entering the main select() loop").

-type options() :: #{
    epmd := string(),
    wrap := [string()],
    hosts := [string()],
    port := any | inet:port_number(),
    home := string(),
    reaper := pid()
}.

-type state() :: {port(), inet:port_number()}.

-doc "Gives the port. It ends when epmd ends.".
-spec start_link(options()) -> {ok, pid(), inet:port_number()} | {error, term()}.
start_link(Options) ->
    case gen_server:start_link(?MODULE, Options, []) of
        {ok, Pid} -> {ok, Pid, gen_server:call(Pid, port)};
        {error, Reason} -> {error, Reason}
    end.

-doc "Tells network namespaces apart. The same for all where the system has none.".
-spec namespace(Wrap :: [string()]) -> {ok, binary()} | {error, term()}.
namespace(Wrap) ->
    [Exec | Args] = Wrap ++ ["/bin/sh", "-c", "readlink /proc/self/ns/net 2>/dev/null || :"],
    case os:find_executable(Exec) of
        false ->
            {error, {no_program, Exec}};
        Path ->
            Options = [{args, Args}, binary, exit_status, stderr_to_stdout, hide],
            Port = open_port({spawn_executable, Path}, Options),
            said(Port, <<>>)
    end.

said(Port, Said) ->
    receive
        {Port, {data, Data}} -> said(Port, <<Said/binary, Data/binary>>);
        {Port, {exit_status, 0}} -> {ok, Said};
        {Port, {exit_status, Status}} -> {error, {exit_status, Status, Said}}
    after ?TIMEOUT ->
        port_close(Port),
        {error, timeout}
    end.

-spec init(options()) -> {ok, state()} | {error, term()}.
init(Options) ->
    try_port(Options, ?TRIES).

try_port(_, 0) ->
    {error, {epmd, no_port}};
try_port(#{port := Wanted, reaper := Reaper} = Options, Tries) ->
    Number = port_number(Wanted),
    Port = open(Options, Number),
    case erlang:port_info(Port, os_pid) of
        {os_pid, OsPid} -> ok = sderl_fleet_reaper:add(Reaper, OsPid);
        undefined -> ok
    end,
    case listening(Port, <<>>) of
        ok -> {ok, {Port, Number}};
        {error, {_, _}} when Wanted =:= any -> try_port(Options, Tries - 1);
        {error, Reason} -> {error, {epmd, Reason}}
    end.

port_number(any) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {reuseaddr, false}]),
    {ok, Number} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Number;
port_number(Number) ->
    Number.

open(#{epmd := Epmd, wrap := Wrap, hosts := Hosts, home := Home}, Number) ->
    [Exec | Args] =
        Wrap ++
            [Epmd, "-debug", "-debug", "-port", integer_to_list(Number)] ++
            ["-address", lists:flatten(lists:join(",", Hosts))],
    Options = [
        {args, Args},
        {env, [
            sderl_fleet_reaper:mark(Home),
            {"HOME", Home},
            {"ERL_EPMD_RELAXED_COMMAND_CHECK", false}
        ]},
        binary,
        exit_status,
        stderr_to_stdout,
        hide
    ],
    open_port({spawn_executable, os:find_executable(Exec)}, Options).

listening(Port, Said) ->
    receive
        {Port, {data, Data}} ->
            Said1 = <<Said/binary, Data/binary>>,
            case binary:match(Said1, ?READY) of
                nomatch -> listening(Port, Said1);
                _ -> ok
            end;
        {Port, {exit_status, Status}} ->
            {error, {Status, Said}}
    after ?TIMEOUT -> {error, timeout}
    end.

-spec handle_call(port, gen_server:from(), state()) -> {reply, inet:port_number(), state()}.
handle_call(port, _From, {_, Number} = State) ->
    {reply, Number, State}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), state()) -> {noreply, state()} | {stop, term(), state()}.
handle_info({Port, {exit_status, Status}}, {Port, _} = State) ->
    {stop, {shutdown, {epmd_lost, Status}}, State};
handle_info(_, State) ->
    {noreply, State}.
