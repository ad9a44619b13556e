%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_owner).

%% An owner of probes for the suite, on a monitoring node: keeps what it gets and acknowledges it,
%% or not.

-export([start/2, start/3, samples/1, acks/2, clear/1, stop/1, inject/2]).

%% Gives the owner and what the probe's start said.
start(Node, Opts) -> start(Node, Opts, true).

start(Node, Opts, Acks) ->
    Pid = spawn(fun() -> loop(Acks, []) end),
    {Pid, erpc:call(Node, sderl_mon_probe, start, [Opts#{owner => Pid}])}.

%% The newest first.
samples(Pid) -> ask(Pid, samples).
acks(Pid, Acks) -> ask(Pid, {acks, Acks}).
clear(Pid) -> ask(Pid, clear).
stop(Pid) -> exit(Pid, kill).

inject(Node, Code) ->
    lists:foreach(fun({Module, File, Binary}) ->
        {module, Module} = erpc:call(Node, code, load_binary, [Module, File, Binary])
    end, Code).

ask(Pid, What) ->
    Ref = make_ref(),
    Pid ! {What, self(), Ref},
    receive {Ref, Answer} -> Answer after 60_000 -> error(timeout) end.

loop(Acks, Got) ->
    receive
        {sderl_mon_sample, Probe, #{seq := Seq} = Sample} ->
            _ = Acks andalso (Probe ! {sderl_mon_ack, Seq}),
            loop(Acks, [Sample | Got]);
        {samples, From, Ref} -> From ! {Ref, Got}, loop(Acks, Got);
        {clear, From, Ref} -> From ! {Ref, ok}, loop(Acks, []);
        {{acks, New}, From, Ref} -> From ! {Ref, ok}, loop(New, Got)
    end.
