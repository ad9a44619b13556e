%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_attach).
-moduledoc """
Lets `bin/sderl shell NODE` find the demo's nodes while they stay up.

For each node there is a file of its name in the user's private folder: `$SDERL_RUN_DIR`, by default
`sderl-UID` in `$XDG_RUNTIME_DIR` or `/tmp`. It has the path of the cookie, not the cookie.

The files must be removed when the nodes end, however the demo ends. So one process is responsible
for both: it owns the fleet, which ends with it, and when the process that started it ends in any
way it first removes the files and then ends itself.
""".

-behaviour(gen_server).

-include_lib("kernel/include/file.hrl").

-export([start/0, write/2, stop/1, folder/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {
    caller :: reference(),
    files = [] :: [file:filename_all()]
}).

-doc "Starts the process that is to own the fleet. It stays until the caller ends or `stop/1`.".
-spec start() -> Owner :: pid().
start() ->
    {ok, Owner} = gen_server:start(?MODULE, self(), []),
    Owner.

-doc """
Writes the files of all nodes of a fleet. The folder is made where it is missing;
`{not_private, Folder}` when others may use it: who can write there can lead this user's shell to
another node.
""".
-spec write(Owner :: pid(), Fleet :: pid()) ->
    ok | {error, {not_private | file:posix() | badarg, file:filename_all()}}.
write(Owner, Fleet) ->
    gen_server:call(Owner, {write, Fleet}, infinity).

-doc "Removes the files; the fleet that the process owns ends.".
-spec stop(Owner :: pid()) -> ok.
stop(Owner) ->
    gen_server:stop(Owner).

-doc false.
-spec init(pid()) -> {ok, #state{}}.
init(Caller) ->
    {ok, #state{caller = monitor(process, Caller)}}.

-doc false.
-spec handle_call({write, pid()}, gen_server:from(), #state{}) ->
    {reply, ok | {error, term()}, #state{}}.
handle_call({write, Fleet}, _From, State) ->
    #{home := Home, epmd_port := Port} = sderl_fleet:connection_info(Fleet),
    Contents = io_lib:format("cookie_file=~ts~nepmd_port=~w~n", [Home, Port]),
    Folder = folder(),
    Files = [filename:join(Folder, atom_to_list(Node)) || Node <- sderl_fleet:nodes(Fleet)],
    Result =
        maybe
            ok ?= private(Folder),
            write_all(Files, unicode:characters_to_binary(Contents))
        end,
    {reply, Result, State#state{files = Files}}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Message, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, normal, #state{}}.
handle_info({'DOWN', Caller, process, _, _}, #state{caller = Caller} = State) ->
    {stop, normal, State};
handle_info(_Message, State) ->
    {noreply, State}.

-doc false.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{files = Files}) ->
    lists:foreach(fun file:delete/1, Files).

-doc "The folder of this user's running nodes.".
-spec folder() -> file:filename_all().
folder() ->
    case environment("SDERL_RUN_DIR", "") of
        "" -> filename:join(environment("XDG_RUNTIME_DIR", "/tmp"), "sderl-" ++ uid());
        Folder -> Folder
    end.

environment(Name, Default) ->
    case os:getenv(Name, "") of
        "" -> Default;
        Value -> Value
    end.

uid() ->
    {match, [Uid]} = re:run(os:cmd("id -u"), "\\d+", [{capture, first, list}]),
    Uid.

private(Folder) ->
    case file:make_dir(Folder) of
        ok -> at(Folder, file:change_mode(Folder, 8#700));
        {error, eexist} -> is_private(Folder);
        {error, _} = Error -> at(Folder, Error)
    end.

is_private(Folder) ->
    %% read_link_info: a symbolic link, which another user may have put there, is refused.
    case file:read_link_info(Folder) of
        {ok, #file_info{type = directory, mode = Mode, uid = Uid}} when Mode band 8#077 =:= 0 ->
            case integer_to_list(Uid) =:= uid() of
                true -> ok;
                false -> {error, {not_private, Folder}}
            end;
        {ok, _} ->
            {error, {not_private, Folder}};
        {error, _} = Error ->
            at(Folder, Error)
    end.

write_all([], _Contents) ->
    ok;
write_all([File | Files], Contents) ->
    maybe
        ok ?= at(File, file:write_file(File, Contents)),
        ok ?= at(File, file:change_mode(File, 8#600)),
        write_all(Files, Contents)
    end.

at(_File, ok) -> ok;
at(File, {error, Reason}) -> {error, {Reason, File}}.
