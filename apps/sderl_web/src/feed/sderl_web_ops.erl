%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_ops).
-moduledoc """
What the service of operations on this machine says of its cluster, asked over its socket: lines of
JSON, as `docs/operations.md` has them; and the requests that change something.
""".

-export([folder/0, answer/1, record/2, plan/4, change/3]).

-define(CONNECT_MS, 2_000).
%% A browser waits for 10 s.
-define(PATIENCE_MS, 8_000).
%% Releases may have to be packed for it.
-define(PLAN_MS, 25_000).
%% Releases may have to be packed, and all hosts looked at; a change is given up after two minutes.
-define(CHANGE_MS, 100_000).
-define(AGAIN_S, 5).
-define(MOST_ANSWER_BYTES, 16_777_216).

-doc "The folder of the service: that of the setting `ops`, or where a service is by default.".
-spec folder() -> file:filename_all().
folder() -> folder(application:get_env(sderl_web, ops, default)).

folder(default) ->
    State = case os:getenv("XDG_STATE_HOME", "") of
        [$/ | _] = Given -> Given;
        _ -> filename:join([os:getenv("HOME", "/"), ".local", "state"])
    end,
    filename:join(State, "sderl-ops");
folder(Named) ->
    filename:absname(Named).

-doc """
Its status, its revisions, and, where not all is as the file says, the steps that are left. An error
is a sentence for a person.
""".
-spec answer(Folder :: file:filename_all()) ->
    {ok, iodata()} | {error, sderl_web_protocol:code(), unicode:chardata()}.
answer(Folder) ->
    Deadline = erlang:monotonic_time(millisecond) + ?PATIENCE_MS,
    maybe
        {ok, #{~"state" := State} = Status} ?= look(~"status", Folder, Deadline),
        {ok, #{~"revisions" := Revisions}} ?= look(~"history", Folder, Deadline),
        {ok, #{~"steps" := Steps}} ?= steps(State, Folder, Deadline),
        {ok, json:encode(#{status => Status, revisions => Revisions, steps => Steps})}
    else
        {error, not_running} -> not_running(Folder);
        {error, Sentence, _} ->
            {error, unavailable, Sentence};
        {ok, _} -> other_version()
    end.

-doc """
Who did what to the cluster, the newest first: the entries that are wanted, as the request `record`
of the service takes them. There may be others before `next`, however few these are.
""".
-spec record(Wanted :: #{atom() => term()}, Folder :: file:filename_all()) ->
    {ok, #{entries := [map()], next := pos_integer() | none}}
    | {error, unavailable, unicode:chardata()}.
record(Wanted, Folder) ->
    Request = Wanted#{do => record, who => ~"dashboard"},
    case ask(Request, Folder, erlang:monotonic_time(millisecond) + ?PATIENCE_MS) of
        {ok, #{~"entries" := Entries, ~"next" := Next}} when is_list(Entries), is_integer(Next) ->
            {ok, #{entries => Entries, next => Next}};
        {ok, #{~"entries" := Entries, ~"next" := null}} when is_list(Entries) ->
            {ok, #{entries => Entries, next => none}};
        {ok, _} -> other_version();
        {error, not_running} -> not_running(Folder);
        {error, <<"the request is wrong: do: ", _/binary>>, _} ->
            {error, unavailable, "the service of operations is of an earlier version, which does "
                                 "not tell all that was done: start it again with this one (the "
                                 "cluster goes on meanwhile)"};
        {error, Sentence, _} -> {error, unavailable, Sentence}
    end.

-doc """
What the text of a file would change. What is wrong with it is one problem a line. `busy`: the
service plans another one; ask again after so many seconds.
""".
-spec plan(Text :: binary(), Force :: boolean(), Who :: binary(), Folder :: file:filename_all()) ->
    {ok, #{changes | steps | refused => [binary()]}}
    | {error, unavailable | bad_request, unicode:chardata()}
    | {busy, Seconds :: pos_integer(), unicode:chardata()}.
plan(Text, Force, Who, Folder) ->
    Request = #{do => plan_text, text => Text, force => Force, who => Who},
    case ask(Request, Folder, erlang:monotonic_time(millisecond) + ?PLAN_MS) of
        {ok, #{~"changes" := Changes, ~"steps" := Steps, ~"refused" := Refused}} ->
            {ok, #{changes => Changes, steps => Steps, refused => Refused}};
        {ok, _} -> other_version();
        {error, not_running} -> not_running(Folder);
        {error, Sentence, Lost} when is_atom(Lost), Lost =/= busy -> {error, unavailable, Sentence};
        {error, Sentence, busy} -> {busy, ?AGAIN_S, Sentence};
        {error, Sentence, []} -> {error, bad_request, Sentence};
        {error, Sentence, Problems} ->
            {error, bad_request, [Sentence, ":\n", lists:join("\n", Problems)]}
    end.

-doc """
Has the service change something, as a request of `bin/sderl ops` does that does not wait for the
work. What the service refuses is a conflict, in its own words. `late`: it may have been done. The
service knows whom it did that for as `rest:NAME`, which no user of its machine is called.
""".
-spec change(Request :: #{do := atom(), atom() => term()}, Who :: binary(),
             Folder :: file:filename_all()) ->
    {ok, #{state := binary(), revision => pos_integer(), file => binary()}}
    | {error, sderl_web_problem:code(), unicode:chardata()}
    | {busy, Seconds :: pos_integer(), unicode:chardata()}.
change(Request, Who, Folder) ->
    Deadline = erlang:monotonic_time(millisecond) + ?CHANGE_MS,
    case ask(Request#{who => <<"rest:", Who/binary>>}, Folder, Deadline) of
        {ok, #{~"state" := State} = Done} when is_binary(State) ->
            {ok, maps:from_list([{state, State}]
                                ++ [{revision, Of} || #{~"revision" := Of} <- [Done],
                                                      is_integer(Of)]
                                ++ [{file, File} || #{~"file" := File} <- [Done],
                                                    is_binary(File)])};
        {ok, _} -> {error, late, ["the service of operations is of another version, and has done "
                                  "something", look()]};
        {error, not_running} -> not_running(Folder);
        {error, Sentence, none} -> {error, unavailable, Sentence};
        {error, Sentence, silent} -> {error, late, [Sentence, look()]};
        {error, Sentence, unsure} -> {error, late, Sentence};
        {error, Sentence, unknown} -> {error, not_found, Sentence};
        {error, Sentence, busy} -> {busy, ?AGAIN_S, Sentence};
        {error, Sentence, []} -> {error, conflict, Sentence};
        {error, Sentence, Problems} ->
            {error, conflict, [Sentence, ":\n", lists:join("\n", Problems)]}
    end.

look() -> "; GET /operations tells whether it was done".

other_version() -> {error, unavailable, "the service of operations is of another version"}.

not_running(Folder) ->
    {error, unavailable,
     ["no service of operations runs in ", Folder, " on the machine of the monitoring: "
      "`bin/sderl ops apply FILE` starts one, and `bin/sderl mon --ops DIR` names another folder"]}.

steps(~"steady", _, _) -> {ok, #{~"steps" => []}};
steps(~"destroyed", _, _) -> {ok, #{~"steps" => []}};
steps(_, Folder, Deadline) -> look(~"remaining", Folder, Deadline).

look(Do, Folder, Deadline) -> ask(#{do => Do, who => ~"dashboard"}, Folder, Deadline).

%% An error has what the service found wrong, or `busy`; `unknown` where nothing is named so; `none`
%% where nobody can be asked; `silent` where it was asked and no answer came that says what it did,
%% and `unsure` where it says itself that it does not know.
ask(Request, Folder, Deadline) ->
    Path = unicode:characters_to_binary(filename:join(Folder, "socket")),
    try gen_tcp:connect({local, Path}, 0, [local, binary, {active, false}, {packet, raw}],
                        ?CONNECT_MS) of
        {ok, Socket} ->
            _ = gen_tcp:send(Socket, [json:encode(Request), $\n]),
            Answer = last_line(Socket, Deadline, <<>>),
            ok = gen_tcp:close(Socket),
            Answer;
        {error, Why} when Why =:= enoent; Why =:= econnrefused; Why =:= enotdir ->
            {error, not_running};
        {error, Why} ->
            {error, ["the service in ", Folder, " cannot be asked: ", inet:format_error(Why)],
             none}
    catch
        %% The path is longer than an address of a socket may be.
        error:_ -> {error, not_running};
        exit:_ -> {error, not_running}
    end.

%% The service closes the connection behind its answer.
last_line(Socket, Deadline, Received) ->
    Wait = max(0, Deadline - erlang:monotonic_time(millisecond)),
    case gen_tcp:recv(Socket, 0, Wait) of
        {ok, Bytes} when byte_size(Received) + byte_size(Bytes) =< ?MOST_ANSWER_BYTES ->
            last_line(Socket, Deadline, <<Received/binary, Bytes/binary>>);
        {ok, _} ->
            {error, "the answer of the service of operations is too long", silent};
        {error, timeout} ->
            {error, "the service of operations does not answer: its log may tell why", silent};
        {error, _} ->
            decoded(lists:last([<<>> | binary:split(Received, ~"\n", [global, trim])]))
    end.

decoded(Line) ->
    try json:decode(Line) of
        #{~"done" := #{} = Done} -> {ok, Done};
        #{~"error" := Sentence, ~"busy" := true} when is_binary(Sentence) ->
            {error, Sentence, busy};
        #{~"error" := Sentence, ~"unavailable" := true} when is_binary(Sentence) ->
            {error, Sentence, none};
        #{~"error" := Sentence, ~"unknown" := true} when is_binary(Sentence) ->
            {error, Sentence, unknown};
        #{~"error" := Sentence, ~"unsure" := true} when is_binary(Sentence) ->
            {error, Sentence, unsure};
        #{~"error" := Sentence} = Error when is_binary(Sentence) ->
            Problems = maps:get(~"problems", Error, []),
            {error, Sentence, [Problem || Problem <- Problems, is_binary(Problem)]};
        _ -> {error, "the service of operations is of another version", silent}
    catch
        error:_ -> {error, "the service of operations ended before it answered", silent}
    end.
