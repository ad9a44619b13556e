%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_envoy).
-moduledoc """
A virtual machine of its own that talks to the nodes of one cluster: as a hidden node, with that
cluster's cookie and kind of names.

So the service can talk to clusters with any cookie and kind of names, no cluster can reach the
service itself, and no name of a node becomes an atom in it. The service talks to the envoy over a
pipe. If the envoy ends, so does this process, and the server starts another one.
""".

-behaviour(gen_server).

-export([start_link/1, keep/2, call/3, call/4]).
-export_type([options/0, kept/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-doc "Of the cluster: its name, its kind of names and its cookie.".
-type options() ::
    #{cluster := binary(), names := long | short, cookie := sderl_ops_secret:value()}.

%% Enough for a start on a busy machine.
-define(START_MS, 60_000).
%% Longer than the limits of all functions that are called there.
-define(CALL_MS, 600_000).

-doc "Returns before the virtual machine has started; the first call waits for that.".
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link(?MODULE, Options, []).

-doc """
An envoy that the server keeps, with its options. The cookie is in a function, so that it is in no
crash report.
""".
-type kept() :: {pid(), options()}.

-doc "The same envoy if its options are the same; else it is ended, and a new one started.".
-spec keep(options(), none | kept()) -> kept();
          (none, none | kept()) -> none.
keep(#{cookie := Cookie} = Options, {_, #{cookie := Before} = For} = Kept) ->
    case Cookie() =:= Before() andalso Options =:= For#{cookie := Cookie} of
        true -> Kept;
        false -> keep(Options, keep(none, Kept))
    end;
keep(#{} = Options, none) ->
    {ok, Pid} = start_link(Options),
    {Pid, Options};
keep(none, {Pid, _}) ->
    unlink(Pid),
    exit(Pid, shutdown),
    none;
keep(none, none) ->
    none.

-doc "A function of `m:sderl_ops_nodes`, called there.".
-spec call(pid(), Function :: atom(), Args :: [term()]) -> {ok, term()} | {error, term()}.
call(Envoy, Function, Args) -> call(Envoy, sderl_ops_nodes, Function, Args).

-doc "A function of another module, called there.".
-spec call(pid(), module(), Function :: atom(), Args :: [term()]) -> {ok, term()} | {error, term()}.
call(Envoy, Module, Function, Args) ->
    try
        Peer = gen_server:call(Envoy, peer, 3 * ?START_MS),
        {ok, peer:call(Peer, Module, Function, Args, ?CALL_MS)}
    catch
        %% The envoy hangs. It is killed, and another one is started.
        exit:{timeout, _} = Reason ->
            exit(Envoy, kill),
            {error, {envoy, exit, Reason}};
        Class:Reason -> {error, {envoy, Class, Reason}}
    end.

-doc false.
-spec init(options()) -> {ok, undefined, {continue, options()}}.
init(Options) ->
    process_flag(trap_exit, true),
    {ok, undefined, {continue, Options}}.

-doc false.
-spec handle_continue(options(), undefined) -> {noreply, pid()} | {stop, term(), undefined}.
handle_continue(#{names := Names, cookie := Cookie} = Cluster, undefined) ->
    Options = #{
        connection => standard_io,
        wait_boot => ?START_MS,
        args => ["-connect_all", "false", "-nocookie", "-start_epmd", "false", "+S", "1:1",
                 "+sbwt", "none", "-pa" | [Path || Path <- code:get_path(), is_ours(Path)]]
    },
    maybe
        {ok, Peer, _} ?= peer:start_link(Options),
        %% If it cannot become a node it is of no use, and ends with this process.
        {ok, Peer} ?= {begin_as(Peer, [name(Cluster), domain(Names), Cookie()]), Peer},
        {noreply, Peer}
    else
        {{error, Why}, _} -> {stop, {no_node, Why}, undefined};
        {error, Why} -> {stop, {no_envoy, Why}, undefined}
    end.

%% An exit of the call would have the cookie in it, and be logged.
begin_as(Peer, Args) ->
    try
        peer:call(Peer, sderl_ops_nodes, begin_as, Args, ?START_MS)
    catch
        _:_ -> {error, no_answer}
    end.

%% A unique name: another service may keep a cluster of the same name.
name(#{cluster := Cluster, names := Names}) ->
    Unique = binary:encode_hex(rand:bytes(4), lowercase),
    <<"ops-", Cluster/binary, "-", Unique/binary, "@", (host(Names))/binary>>.

host(long) ->
    ~"127.0.0.1";
host(short) ->
    {ok, Name} = inet:gethostname(),
    unicode:characters_to_binary(Name).

domain(long) -> longnames;
domain(short) -> shortnames.

is_ours(Path) -> not lists:prefix(code:root_dir(), Path).

-doc false.
-spec handle_call(peer, gen_server:from(), pid()) -> {reply, pid(), pid()}.
handle_call(peer, _, Peer) -> {reply, Peer, Peer}.

-doc false.
-spec handle_cast(term(), pid()) -> {noreply, pid()}.
handle_cast(_, Peer) -> {noreply, Peer}.

-doc false.
-spec handle_info(term(), pid()) -> {noreply, pid()} | {stop, term(), undefined}.
handle_info({'EXIT', Peer, Why}, Peer) -> {stop, {envoy_ended, Why}, undefined};
handle_info(_, Peer) -> {noreply, Peer}.

-doc false.
-spec terminate(term(), pid() | undefined) -> ok.
terminate(_, undefined) -> ok;
terminate(_, Peer) ->
    try peer:stop(Peer) catch _:_ -> ok end.
