%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_service).
-moduledoc """
The service of operations: brings one cluster up from a file and keeps it as the file says.

Its folder has its store, its archives and its socket. `bin/sderl ops` starts it and talks to it;
the guide is `docs/operations.md`.
""".

-export([run/1, run/2, stop/0]).

-doc "Runs what the folder belongs to: a service with one member, or one of several members.".
-spec run(Folder :: file:filename()) -> ok | {error, unicode:chardata()}.
run(Folder) -> run(Folder, alone).

-doc """
Runs the service in a folder until `stop/0`, or until it fails. A folder has one service at a time.
A member of a service with several is given its own name and the first members.
""".
-spec run(Folder :: file:filename(),
          alone | {Self :: sderl_ops_roster:member(), [sderl_ops_roster:member()]}) ->
    ok | {error, unicode:chardata()}.
run(Folder, As) ->
    maybe
        ok ?= sderl_ops_place:make(Folder),
        {ok, Lock} ?= lock(Folder),
        {ok, Mark} ?= mark(Folder, As),
        ok ?= link_members(Mark, Folder),
        ok = quieten([ra, khepri]),
        ok = sderl_ops_sent:start(),
        {ok, _} ?= application:ensure_all_started(khepri),
        true = register(?MODULE, self()),
        process_flag(trap_exit, true),
        {ok, Supervisor} ?= start(Folder, Mark),
        Ended = await_end(Supervisor, Folder),
        ok = sderl_ops_openssh:close(filename:join(Folder, "ssh")),
        ok = gen_tcp:close(Lock),
        Ended
    else
        {error, Why} when is_list(Why); is_binary(Why) -> {error, Why};
        {error, Why} -> {error, io_lib:format("the service cannot start: ~0tP", [Why, 20])}
    end.

%% Without room on the disk the store cannot start.
start(Folder, Mark) ->
    case sderl_ops_sup:start_link(Folder, Mark, fun dismiss/1) of
        {error, Why} ->
            case sderl_ops_room:check(Folder) of
                ok -> {error, Why};
                {error, Sentence} -> {error, [Sentence, ". Make room, and start the service again: "
                                              "what it has stored is there, and the cluster goes "
                                              "on"]}
            end;
        Started -> Started
    end.

%% A folder belongs to one member for good.
mark(Folder, As) ->
    case {sderl_ops_raft:read(Folder), As} of
        {none, alone} ->
            {ok, alone};
        {none, {Self, Members}} ->
            Mark = #{self => Self, members => Members, stage => blank},
            maybe
                ok ?= pack(Folder),
                ok ?= sderl_ops_raft:write(Folder, Mark),
                {ok, Mark}
            end;
        {{ok, Mark}, alone} ->
            {ok, Mark};
        {{ok, #{self := #{node := Node}} = Mark}, {#{node := Node} = Self, Members}} ->
            Renewed = Mark#{self := Self, members := Members},
            maybe
                ok ?= sderl_ops_raft:write(Folder, Renewed),
                {ok, Renewed}
            end;
        {{ok, #{self := Other}}, _} ->
            {error, [Folder, " is the folder of the member ", sderl_ops_roster:words(Other),
                     ": name another one with --dir"]};
        {{error, _} = Error, _} ->
            Error
    end.

%% The store of a service with one member goes on in that of all members.
pack(Folder) ->
    case filelib:is_dir(filename:join(Folder, "store")) of
        false ->
            ok;
        true ->
            ok = quieten([ra, khepri]),
            case sderl_ops_moved:pack(Folder) of
                ok -> ok;
                {error, Why} ->
                    {error, io_lib:format("what the service with one member has stored in ~ts "
                                          "cannot be read: ~0tP; it is as it was",
                                          [Folder, Why, 20])}
            end
    end.

link_members(alone, _) -> ok;
link_members(#{self := Self, members := Members}, Folder) ->
    sderl_ops_links:begin_as(Self, Members, Folder).

%% They log each step of every start.
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

%% Ends the service with a reason.
dismiss(Sentence) ->
    ?MODULE ! {dismiss, Sentence},
    ok.

await_end(Supervisor, Folder) ->
    receive
        stop ->
            end_all(Supervisor);
        {dismiss, Sentence} ->
            ok = end_all(Supervisor),
            {error, Sentence};
        {'EXIT', Supervisor, shutdown} ->
            Why = case sderl_ops_room:check(Folder) of
                      ok -> "its log tells why";
                      {error, Sentence} -> Sentence
                  end,
            {error, ["the service gave up, as a part of it failed again and again; ", Why,
                     ". The cluster goes on"]};
        {'EXIT', Supervisor, Why} ->
            {error, io_lib:format("the service ended: ~0tP", [Why, 20])}
    end.

%% The last request is answered first: the door is stopped with the rest.
end_all(Supervisor) ->
    Monitor = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Monitor, process, Supervisor, _} -> ok end.

%% An abstract socket goes with the process that has it, so no lock is ever left behind.
lock(Folder) ->
    Sum = binary:encode_hex(crypto:hash(sha256, filename:absname(Folder)), lowercase),
    case gen_tcp:listen(0, [{ifaddr, {local, <<0, "sderl-ops-", Sum/binary>>}}]) of
        {ok, Lock} -> {ok, Lock};
        {error, eaddrinuse} -> {error, ["another service runs in ", Folder]};
        {error, Why} -> {error, ["the service cannot lock ", Folder, ": ", inet:format_error(Why)]}
    end.
