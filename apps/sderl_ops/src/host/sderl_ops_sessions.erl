%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sessions).
-moduledoc """
The sessions of a service, one for each host (`m:sderl_ops_session`): a call in a session needs
neither a connection nor a program of its own.

They end with the service. Some calls are made without a session: the first one for a host, which
also installs the host script, and those with a file as input or with arguments other than names and
numbers.
""".

-behaviour(gen_server).

-export([start_link/0, call/5]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([open/0]).

-doc "The command of the session; `none` if there can be none.".
-type open() :: fun(() -> [unicode:chardata(), ...] | none).

-record(s, {
    %% The sessions by key; `none` until the second call.
    sessions = #{} :: #{Key :: term() => pid() | none}
}).

-doc "Starts it, without sessions.".
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
A call of the host script in the session of `Key`. `ended`: the session ended meanwhile, with a
status and its last output; `none`: nothing was done, because there is no session for the call.
""".
-spec call(Key :: term(), open(), [binary()], sderl_ops_port:input(), Limit :: pos_integer()) ->
    {ok, Status :: non_neg_integer(), Output :: binary()}
    | {ended, Status :: non_neg_integer(), Said :: binary()}
    | {error, timeout}
    | none.
call({#{before := _}, _}, _, _, _, _) -> none;
call(_, _, _, {file, _}, _) -> none;
call(Key, Open, Arguments, Input, Limit) ->
    case lists:all(fun is_plain/1, Arguments) andalso find(Key, Open) of
        {ok, Session} -> sderl_ops_session:call(Session, Arguments, data(Input), Limit);
        _ -> none
    end.

data(none) -> <<>>;
data({bytes, Data}) -> Data.

is_plain(Word) ->
    match =:= re:run(Word, "^[A-Za-z0-9._-]+$", [{capture, none}, dollar_endonly]).

find(Key, Open) ->
    try
        gen_server:call(?MODULE, {find, Key, Open}, infinity)
    catch
        exit:_ -> none
    end.

-doc false.
-spec init([]) -> {ok, #s{}}.
init([]) ->
    process_flag(trap_exit, true),
    {ok, #s{}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call({find, Key, Open}, _, #s{sessions = Sessions} = S) ->
    case Sessions of
        #{Key := Pid} when is_pid(Pid) ->
            {reply, {ok, Pid}, S};
        #{Key := none} ->
            case Open() of
                none ->
                    {reply, none, S};
                Command ->
                    {ok, Pid} = sderl_ops_session:start_link(Command),
                    {reply, {ok, Pid}, S#s{sessions = Sessions#{Key := Pid}}}
            end;
        #{} ->
            {reply, none, S#s{sessions = Sessions#{Key => none}}}
    end.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info({'EXIT', Pid, _}, #s{sessions = Sessions} = S) ->
    {noreply, S#s{sessions = maps:map(fun
        (_, Of) when Of =:= Pid -> none;
        (_, Of) -> Of
    end, Sessions)}};
handle_info(_, S) ->
    {noreply, S}.
