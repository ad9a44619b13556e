%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_local).
-moduledoc """
Nodes on this machine: the default driver of `m:sderl_fleet`.

OTP's `m:peer` underneath, with the control channel over standard input and output, so that
the calling virtual machine need not be distributed and is never connected to the nodes.

Options, in a plan's `driver => {sderl_fleet_local, Options}`:

| key | meaning | default |
|---|---|---|
| `erl` | the `erl` program of the nodes, so also another OTP | this OTP's |
| `epmd` | the `epmd` program | this OTP's |
| `epmd_port` | its port | any free one |
| `dir` | where the fleet's private directory is made | `$TMPDIR` or `/tmp` |
| `log_dir` | directory for the nodes' logs, which then outlive the fleet | in the private directory |
| `emulator` | emulator arguments of all nodes, before a family's `args` | see below |

The emulator arguments are `+S 1:1 +SDcpu 1:1 +SDio 1 +A 1 +P 262144` and no busy waiting: many
small nodes on few cores. Nodes of this OTP load `erl_eval` and `erl_lint` when they need them, and
not at the start, unless a family's `args` name a `-boot` script.

**Nothing is left behind.** Every operating-system process of the fleet ends when the
fleet's process or the whole virtual machine does, also by `kill -9`, and also while nodes
are suspended: a reaper, a small shell process, notices and kills them, the private port
mapper too, and removes the private directory. A pid that another process has since got is
never signalled.

**Nothing is open.** Nodes and port mapper listen on the nodes' host address alone
(`127.0.0.1`; epmd on both loopback addresses). The random cookie is in a file (mode 0400)
in the private directory (0700), which is the nodes' `HOME`.

**Nothing is printed.** Logger output of the nodes, what they print, and their standard
error go to `NODE.log`, `NODE.out` and `NODE.err` in the log directory.

A node that writes bytes above 191 to its standard output past Erlang's I/O (for instance
with `erlang:display/1`) disturbs its control channel and may end; see `m:peer`.
""".

-behaviour(sderl_fleet_driver).

-export([open/2, close/1, connection_info/1]).
-export([start_node/2, control/1, stop_node/3, kill_node/2, suspend_node/2, resume_node/2]).
-export([call/5, os_pid/1, memory_kib/1, arguments/1]).

-define(OPTIONS, [erl, epmd, epmd_port, dir, log_dir, emulator]).
%% Small nodes, many on one machine. OTP's process table has a million entries, all written at the
%% start. With a quarter of them, as before OTP 27, a node is 12 MB smaller and needs 5 % less
%% processor time until it runs.
-define(EMULATOR, [
    "+P", "262144",
    "+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1",
    "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"
]).
-define(GONE_TIMEOUT, 15_000).

-record(local, {
    owner :: pid(),
    home :: string(),
    log_dir :: string(),
    cookie :: atom(),
    reaper :: pid(),
    places :: [{[string()], [string()]}],
    epmd_port :: inet:port_number(),
    erl :: string(),
    boot :: string(),
    emulator :: [string()]
}).

-record(node, {
    keeper :: pid(),
    peer :: pid(),
    os_pid :: non_neg_integer() | undefined,
    args :: [string()]
}).

%% The fleet

-doc false.
-spec open(#{places := [{[string()], [string()]}], atom() => term()}, map()) ->
    {ok, #local{}} | {error, term()}.
open(#{places := Places}, Options) ->
    maybe
        ok ?= known_options(Options),
        {ok, Erl} ?= program(erl, "erl", Options),
        {ok, Epmd} ?= program(epmd, "epmd", Options),
        Home = sderl_fleet_home:name(maps:get(dir, Options, undefined)),
        {ok, Reaper} ?= sderl_fleet_reaper:start_link(Home),
        open(Places, Options, Erl, Epmd, Home, Reaper)
    end.

open(Places, Options, Erl, Epmd, Home, Reaper) ->
    LogDir = filename:absname(maps:get(log_dir, Options, filename:join(Home, "log"))),
    Wanted = maps:get(epmd_port, Options, any),
    maybe
        {ok, Cookie} ?= sderl_fleet_home:fill(Home, LogDir),
        {ok, EpmdPort} ?= epmds(Places, Wanted, #{epmd => Epmd, home => Home, reaper => Reaper}),
        {ok, #local{
            owner = self(),
            home = Home,
            log_dir = LogDir,
            cookie = Cookie,
            reaper = Reaper,
            places = Places,
            epmd_port = EpmdPort,
            erl = Erl,
            boot = boot(Home, Options),
            emulator = maps:get(emulator, Options, ?EMULATOR)
        }}
    else
        {error, Reason} ->
            ok = sderl_fleet_reaper:finish(Reaper),
            {error, Reason}
    end.

%% Another OTP has another start script.
boot(_Home, #{erl := _}) -> "no_dot_erlang";
boot(Home, #{}) -> sderl_fleet_home:start_script(Home).

known_options(Options) ->
    Bad = [
        {error, {bad_plan, [driver, 2, Key], Value, expected(Key)}}
     || Key := Value <- Options, not is_option(Key, Value)
    ],
    case {maps:keys(Options) -- ?OPTIONS, Bad} of
        {[], []} -> ok;
        {[], [Error | _]} -> Error;
        {[Key | _], _} -> {error, {bad_plan, [driver, 2], Key, "an option of sderl_fleet_local"}}
    end.

is_option(epmd_port, Value) -> is_integer(Value) andalso Value > 0 andalso Value < 65536;
is_option(emulator, Value) -> is_list(Value) andalso lists:all(fun io_lib:char_list/1, Value);
is_option(_, Value) -> io_lib:char_list(Value) andalso Value =/= "".

expected(epmd_port) -> "a port number";
expected(emulator) -> "a list of strings";
expected(_) -> "a string".

program(Key, Name, Options) ->
    Candidates =
        case Options of
            #{Key := Path} -> [Path];
            #{} -> [filename:join([code:root_dir(), "bin", Name]), Name]
        end,
    case [Found || C <- Candidates, Found <- [os:find_executable(C)], Found =/= false] of
        [Found | _] -> {ok, filename:absname(Found)};
        [] -> {error, {no_program, hd(Candidates)}}
    end.

%% Nodes that share a network namespace share one epmd. A `wrap` that enters another one
%% gets its own there, on the same port, as nodes ask every host's epmd on one port.
epmds(Places, Port, Common) ->
    maybe
        {ok, Namespaces} ?= namespaces(Places, #{}),
        lists:foldl(
            fun
                ({_, {Wrap, Hosts}}, {ok, Wanted}) ->
                    Options = Common#{wrap => Wrap, hosts => Hosts, port => Wanted},
                    case sderl_fleet_epmd:start_link(Options) of
                        {ok, _, Got} -> {ok, Got};
                        {error, Reason} -> {error, Reason}
                    end;
                (_, {error, Reason}) ->
                    {error, Reason}
            end,
            {ok, Port},
            lists:sort(maps:to_list(Namespaces))
        )
    end.

namespaces([], Seen) ->
    {ok, Seen};
namespaces([{Wrap, Hosts} | Places], Seen) ->
    case sderl_fleet_epmd:namespace(Wrap) of
        {ok, Namespace} ->
            {First, Others} = maps:get(Namespace, Seen, {Wrap, []}),
            namespaces(Places, Seen#{Namespace => {First, lists:usort(Hosts ++ Others)}});
        {error, Reason} ->
            {error, {wrap, Wrap, Reason}}
    end.

-doc false.
-spec close(#local{}) -> ok.
close(#local{reaper = Reaper}) ->
    sderl_fleet_reaper:finish(Reaper).

-doc false.
-spec connection_info(#local{}) -> sderl_fleet_driver:connection_info().
connection_info(#local{home = Home, log_dir = LogDir, cookie = Cookie, epmd_port = Port}) ->
    #{home => Home, log_dir => LogDir, cookie => Cookie, epmd_port => Port}.

%% Nodes

-doc false.
-spec start_node(sderl_fleet:node_spec(), #local{}) -> {ok, #node{}} | {error, term()}.
start_node(#{timeout := Timeout, host := Host, wrap := Wrap} = Spec, Local) ->
    #local{home = Home, log_dir = LogDir, places = Places} = Local,
    Deadline = erlang:monotonic_time(millisecond) + Timeout,
    maybe
        true ?= lists:member(Host, proplists:get_value(Wrap, Places, [])),
        {ok, Files, Later} ?= sderl_fleet_home:node_files(Home, LogDir, Spec),
        start_node(Spec, Files, Later, Deadline, Local)
    else
        false -> {error, {unknown_host, Host}};
        {error, Reason} -> {error, Reason}
    end.

start_node(Spec, Files, Later, Deadline, Local) ->
    Args = args(Spec, Files, Local),
    {ok, Keeper} = sderl_fleet_keeper:start(#{
        owner => Local#local.owner,
        reaper => Local#local.reaper,
        out => maps:get(out, Files),
        err => maps:get(err, Files),
        peer => peer_options(Spec, Args, Files, Local)
    }),
    {Peer, OsPid} = sderl_fleet_keeper:peer(Keeper),
    Node = #node{keeper = Keeper, peer = Peer, os_pid = OsPid, args = Args},
    Started =
        maybe
            ok ?= sderl_fleet_keeper:booted(Keeper, left(Deadline)),
            ok ?= set_env(Later, Node, Deadline),
            start_apps(maps:get(apps, Spec), Node, Deadline)
        end,
    case Started of
        ok ->
            {ok, Node};
        {error, Reason} ->
            ok = kill_node(Node, Local),
            {error, Reason}
    end.

set_env(Later, Node, Deadline) ->
    each(
        fun({App, Key, Value}) ->
            Args = [App, Key, Value, [{persistent, true}]],
            call(Node, application, set_env, Args, left(Deadline))
        end,
        Later
    ).

start_apps(Apps, Node, Deadline) ->
    each(
        fun(App) ->
            case call(Node, application, ensure_all_started, [App], left(Deadline)) of
                {ok, _} -> ok;
                {error, Reason} -> {error, {app_failed, App, Reason}}
            end
        end,
        Apps
    ).

%% The node may end meanwhile: peer then raises.
each(Fun, List) ->
    try
        lists:foldl(
            fun
                (Term, ok) -> Fun(Term);
                (_, Error) -> Error
            end,
            ok,
            List
        )
    catch
        exit:{timeout, _} -> {error, timeout};
        _:Reason -> {error, {boot_failed, Reason, <<>>}}
    end.

left(Deadline) ->
    max(0, Deadline - erlang:monotonic_time(millisecond)).

args(Spec, #{config := Config}, Local) ->
    #{hidden := Hidden, connect_all := ConnectAll, args := Args, paths := Paths} = Spec,
    lists:append([
        Local#local.emulator,
        boot_args(Args, Local),
        ["-start_epmd", "false", "-config", filename:rootname(Config)],
        ["-hidden" || Hidden],
        lists:append([["-connect_all", "false"] || not ConnectAll]),
        Args,
        lists:append([["-pz" | [filename:absname(Path) || Path <- Paths]] || Paths =/= []])
    ]).

%% The emulator takes the first of several boot flags.
boot_args(Args, #local{boot = Boot}) ->
    case {lists:member("-boot", Args), lists:member("-mode", Args)} of
        {true, _} -> [];
        %% In embedded mode nothing is loaded on demand.
        {false, true} -> ["-boot", "no_dot_erlang"];
        {false, false} -> ["-boot", Boot]
    end.

peer_options(#{node := Node, host := Host, wrap := Wrap}, Args, #{err := Err}, Local) ->
    [Name, _] = string:split(atom_to_list(Node), "@"),
    [Exec | ExecArgs] =
        Wrap ++ ["/bin/sh", "-c", launcher(), "sderl_fleet_node", Err, Local#local.erl],
    #{
        connection => standard_io,
        exec => {os:find_executable(Exec), ExecArgs},
        name => Name,
        host => Host,
        longnames => true,
        args => Args,
        %% The end of the pipe ends the node.
        shutdown => close,
        env => [
            sderl_fleet_reaper:mark(Local#local.home),
            {"HOME", Local#local.home},
            {"ERL_EPMD_ADDRESS", Host},
            {"ERL_EPMD_PORT", integer_to_list(Local#local.epmd_port)},
            {"ERL_CRASH_DUMP_SECONDS", "0"}
        ]
    }.

%% Becomes `erl`, which becomes the emulator: one process, one pid. The nodes do not take the
%% settings of the calling virtual machine from the environment.
launcher() ->
    """
    exec 2>>"$1"
    shift
    unset ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS ERL_LIBS ERL_ROOTDIR ROOTDIR BINDIR EMU PROGNAME
    unset ERL_INETRC ERL_COMPILER_OPTIONS XDG_CONFIG_HOME
    ulimit -c 0
    exec "$@"
    """.

-doc false.
-spec control(#node{}) -> pid().
control(#node{keeper = Keeper}) -> Keeper.

-doc false.
-spec stop_node(#node{}, non_neg_integer(), #local{}) -> ok.
stop_node(#node{keeper = Keeper, peer = Peer} = Node, Timeout, Local) ->
    Ref = monitor(process, Keeper),
    _ = signal(cont, Node, Local),
    ok = peer:cast(Peer, init, stop, []),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    after Timeout -> ok
    end,
    demonitor(Ref, [flush]),
    kill_node(Node, Local).

-doc false.
-spec kill_node(#node{}, #local{}) -> ok.
kill_node(#node{keeper = Keeper} = Node, Local) ->
    Ref = monitor(process, Keeper),
    _ = signal(kill, Node, Local),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    after ?GONE_TIMEOUT ->
        demonitor(Ref, [flush]),
        exit({still_there, Node#node.os_pid})
    end,
    %% peer's process ends with the exit status, or a little earlier when it was just
    %% writing to the node.
    ok = sderl_fleet_call:await(fun() -> is_gone(Node) end, ?GONE_TIMEOUT).

is_gone(#node{os_pid = undefined}) ->
    true;
is_gone(#node{os_pid = OsPid}) ->
    case sderl_fleet_proc:state(OsPid) of
        gone -> true;
        $Z -> true;
        undefined -> true;
        Other -> Other
    end.

-doc false.
-spec suspend_node(#node{}, #local{}) -> ok | {error, term()}.
suspend_node(#node{os_pid = OsPid} = Node, Local) ->
    case signal(stop, Node, Local) of
        ok -> sderl_fleet_call:await(fun() -> stands_still(OsPid) end, ?GONE_TIMEOUT);
        gone -> {error, down}
    end.

stands_still(OsPid) ->
    case sderl_fleet_proc:state(OsPid) of
        $T -> true;
        undefined -> true;
        Other -> Other
    end.

-doc false.
-spec resume_node(#node{}, #local{}) -> ok | {error, down}.
resume_node(Node, Local) ->
    case signal(cont, Node, Local) of
        ok -> ok;
        gone -> {error, down}
    end.

signal(_, #node{os_pid = undefined}, _) ->
    gone;
signal(Signal, #node{os_pid = OsPid}, #local{reaper = Reaper}) ->
    sderl_fleet_reaper:signal(Reaper, OsPid, Signal).

-doc false.
-spec call(#node{}, module(), atom(), [term()], timeout()) -> term().
call(#node{peer = Peer}, M, F, A, Timeout) ->
    peer:call(Peer, M, F, A, Timeout).

-doc false.
-spec os_pid(#node{}) -> non_neg_integer() | undefined.
os_pid(#node{os_pid = OsPid}) -> OsPid.

-doc false.
-spec memory_kib(#node{}) -> non_neg_integer() | undefined.
memory_kib(#node{os_pid = undefined}) -> undefined;
memory_kib(#node{os_pid = OsPid}) -> sderl_fleet_proc:rss_kib(OsPid).

-doc false.
-spec arguments(#node{}) -> [string()].
arguments(#node{args = Args}) -> Args.
