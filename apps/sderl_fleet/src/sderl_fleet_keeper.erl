%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_keeper).
-moduledoc false.

%% Parent and console of one node's `peer` process, for one life of the node.
%%
%% Parent: peer's process ends with its parent, and the parent watches the fleet's process;
%% so a node goes with the fleet even where the fleet is killed. Console: peer prints what
%% the node prints to its group leader; that is this process, which appends it to a file
%% and keeps the last of it to explain a failed boot. It answers input with end of file.
%% It never calls the peer process: that one waits for us while it prints.

-behaviour(gen_server).

-export([start/1, booted/2, peer/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TAIL, 2000).

-type options() :: #{
    owner := pid(),
    reaper := pid(),
    peer := map(),
    %% The node's output goes to `out`, its standard error to `err`.
    out := string(),
    err := string()
}.

-record(state, {
    owner :: reference(),
    peer :: pid(),
    peer_mon :: reference(),
    os_pid :: non_neg_integer() | undefined,
    out :: string(),
    err :: string(),
    tail = <<>> :: binary(),
    boot = waiting :: waiting | up | {failed, term()},
    asked :: gen_server:from() | undefined,
    %% A failure is kept until somebody has asked for it.
    told = false :: boolean()
}).

-spec start(options()) -> gen_server:start_ret().
start(Options) ->
    gen_server:start(?MODULE, Options, []).

-doc "Waits until the node has booted. With an error, this process has ended or soon will.".
-spec booted(pid(), timeout()) -> ok | {error, term()}.
booted(Keeper, Timeout) ->
    try
        gen_server:call(Keeper, booted, Timeout)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{Reason, _} -> {error, {boot_failed, Reason, <<>>}}
    end.

-doc "The peer process and the operating-system process.".
-spec peer(pid()) -> {pid(), non_neg_integer() | undefined}.
peer(Keeper) ->
    gen_server:call(Keeper, peer).

%% gen_server

-spec init(options()) -> {ok, #state{}}.
init(#{owner := Owner, reaper := Reaper, peer := PeerOptions, out := Out, err := Err}) ->
    OwnerMon = monitor(process, Owner),
    group_leader(self(), self()),
    {ok, Peer, _} = peer:start_link(PeerOptions#{wait_boot => {self(), boot}}),
    PeerMon = monitor(process, Peer),
    OsPid = os_pid(Peer),
    OsPid =:= undefined orelse sderl_fleet_reaper:add(Reaper, OsPid),
    {ok, #state{
        owner = OwnerMon, peer = Peer, peer_mon = PeerMon, os_pid = OsPid, out = Out, err = Err
    }}.

%% The port is linked to the process that opened it.
os_pid(Peer) ->
    case process_info(Peer, links) of
        {links, Links} ->
            case [Port || Port <- Links, is_port(Port)] of
                [Port | _] -> os_pid_of(erlang:port_info(Port, os_pid));
                [] -> undefined
            end;
        undefined ->
            undefined
    end.

os_pid_of({os_pid, OsPid}) -> OsPid;
os_pid_of(undefined) -> undefined.

-spec handle_call(peer | booted, gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}} | {stop, normal, term(), #state{}}.
handle_call(peer, _From, #state{peer = Peer, os_pid = OsPid} = State) ->
    {reply, {Peer, OsPid}, State};
handle_call(booted, From, #state{boot = waiting} = State) ->
    {noreply, State#state{asked = From}};
handle_call(booted, _From, #state{boot = up} = State) ->
    {reply, ok, State};
handle_call(booted, _From, State) ->
    {stop, normal, boot_error(State), State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({boot, {started, _, _}}, State) ->
    {noreply, boot(up, State)};
handle_info({boot, {boot_failed, Reason, _}}, State) ->
    {noreply, boot({failed, Reason}, State)};
handle_info({'DOWN', Ref, process, _, Reason}, #state{peer_mon = Ref, boot = waiting} = State) ->
    peer_gone(boot({failed, Reason}, State));
handle_info({'DOWN', Ref, process, _, _}, #state{peer_mon = Ref} = State) ->
    peer_gone(State);
handle_info({'DOWN', Ref, process, _, _}, #state{owner = Ref} = State) ->
    {stop, shutdown, State};
handle_info({io_request, From, ReplyAs, Request}, State) ->
    {Reply, State1} = request(Request, State),
    From ! {io_reply, ReplyAs, Reply},
    {noreply, State1};
handle_info(_, State) ->
    {noreply, State}.

peer_gone(#state{boot = {failed, _}, told = false} = State) -> {noreply, State};
peer_gone(State) -> {stop, normal, State}.

boot(Outcome, #state{asked = undefined} = State) ->
    State#state{boot = Outcome};
boot(Outcome, #state{asked = From} = State0) ->
    State = State0#state{boot = Outcome, asked = undefined, told = true},
    Reply =
        case Outcome of
            up -> ok;
            {failed, _} -> boot_error(State)
        end,
    gen_server:reply(From, Reply),
    State.

boot_error(#state{boot = {failed, Reason}, tail = Tail, err = Err}) ->
    Complaints =
        case file:read_file(Err) of
            {ok, Bytes} -> last(Bytes);
            {error, _} -> <<>>
        end,
    {error, {boot_failed, Reason, <<Tail/binary, Complaints/binary>>}}.

%% The I/O protocol

request({put_chars, Encoding, Chars}, State) ->
    print(Encoding, Chars, State);
request({put_chars, Encoding, M, F, A}, State) ->
    try apply(M, F, A) of
        Chars -> print(Encoding, Chars, State)
    catch
        _:_ -> {{error, F}, State}
    end;
request({put_chars, Chars}, State) ->
    print(latin1, Chars, State);
request({requests, Requests}, State) ->
    lists:foldl(fun(Request, {_, S}) -> request(Request, S) end, {ok, State}, Requests);
request({setopts, _}, State) ->
    {ok, State};
request(getopts, State) ->
    {[{binary, false}, {encoding, unicode}], State};
request({get_geometry, _}, State) ->
    {{error, enotsup}, State};
request(_, State) ->
    {eof, State}.

%% The file is opened for each print: hardly any node prints, and file descriptors are scarce.
print(Encoding, Chars, #state{out = Out, tail = Tail} = State) ->
    case unicode:characters_to_binary(Chars, Encoding, unicode) of
        Bytes when is_binary(Bytes) ->
            _ = file:write_file(Out, Bytes, [append]),
            {ok, State#state{tail = last(<<Tail/binary, Bytes/binary>>)}};
        _ ->
            {{error, put_chars}, State}
    end.

last(Bytes) ->
    binary:part(Bytes, byte_size(Bytes), -min(?TAIL, byte_size(Bytes))).
