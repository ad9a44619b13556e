%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_service).
-moduledoc """
The service of operations: brings one cluster up from a file and keeps it as the file says.

It lives in a folder, which has what it must not forget, and its socket. `bin/sderl ops` starts it
and talks to it; the guide is `docs/operations.md`.
""".

-export([run/1, stop/0]).

-doc """
Runs the service in a folder until `stop/0`, or until it fails. A folder has one service at a time.
""".
-spec run(Folder :: file:filename()) -> ok | {error, unicode:chardata()}.
run(Folder) ->
    maybe
        ok ?= sderl_ops_place:make(Folder),
        {ok, Lock} ?= lock(Folder),
        ok = quieten([ra, khepri]),
        ok = sderl_ops_sent:start(),
        {ok, _} ?= application:ensure_all_started(khepri),
        true = register(?MODULE, self()),
        process_flag(trap_exit, true),
        {ok, Supervisor} ?= sderl_ops_sup:start_link(Folder),
        Ended = await_end(Supervisor),
        ok = sderl_ops_openssh:close(filename:join(Folder, "ssh")),
        ok = gen_tcp:close(Lock),
        Ended
    else
        {error, Why} when is_list(Why); is_binary(Why) -> {error, Why};
        {error, Why} -> {error, io_lib:format("the service cannot start: ~0tP", [Why, 20])}
    end.

%% They tell each step of every start.
quieten(Applications) ->
    lists:foreach(fun(Name) ->
        _ = application:load(Name),
        ok = logger:set_application_level(Name, warning)
    end, Applications).

-doc "Ends the service; the cluster goes on.".
-spec stop() -> ok.
stop() ->
    ?MODULE ! stop,
    ok.

await_end(Supervisor) ->
    receive
        stop ->
            %% Whoever asked is answered first; the door closes with the rest.
            Monitor = monitor(process, Supervisor),
            exit(Supervisor, shutdown),
            receive {'DOWN', Monitor, process, Supervisor, _} -> ok end;
        {'EXIT', Supervisor, shutdown} ->
            {error, "the service gave up, as a part of it failed again and again; its log tells "
                    "why, and the cluster goes on"};
        {'EXIT', Supervisor, Why} ->
            {error, io_lib:format("the service ended: ~0tP", [Why, 20])}
    end.

%% An abstract socket goes with the process that has it, so no lock is ever left behind.
lock(Folder) ->
    Sum = binary:encode_hex(crypto:hash(sha256, filename:absname(Folder)), lowercase),
    case gen_tcp:listen(0, [{ifaddr, {local, <<0, "sderl-ops-", Sum/binary>>}}]) of
        {ok, Lock} -> {ok, Lock};
        {error, eaddrinuse} -> {error, ["another service runs in ", Folder]};
        {error, Why} -> {error, ["the service cannot lock ", Folder, ": ", inet:format_error(Why)]}
    end.
