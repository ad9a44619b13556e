%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_tokens).
-moduledoc """
Knows whose a token is: the one of the setting `token`, which is an admin's, and those of the file
of the setting `tokens_file`.

The file is looked at once a second, so that a token which `bin/sderl tokens` made or revoked counts
within that time. While it cannot be read, none of its tokens holds. Whoever stays connected
registers with `watch/1`, and is told when its token has ended.

A token that was seen to have expired does not hold again, whatever the clock says later. That is
known here at once, and written to the file by a process of its own, because this one must not wait
for a lock or a disk; what cannot be written is tried again every minute.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").
-include_lib("kernel/include/file.hrl").

-export([start_link/1, who/1, watch/1, list/0, add/3, revoke/1, look/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, format_status/1]).
-export_type([who/0]).

-doc "Whose a token is. The id of the setting's is `main`.".
-type who() :: #{
    id := binary(),
    name := binary(),
    role := sderl_web_token:role(),
    expires := none | integer()
}.

-define(TABLE, ?MODULE).
-define(LOOK_MS, 1_000).
-define(AGAIN_MS, 60_000).
-define(MAIN, #{id => ~"main", name => ~"main", role => admin, expires => none}).

-record(state, {
    file :: none | file:filename_all(),
    %% Is another when the file has changed.
    stamp = none :: term(),
    %% Why it cannot be read, said once.
    problem = none :: none | binary(),
    %% Tokens that were seen to have expired, which is not in the file yet; the process that writes
    %% it there; and the monotonic time before which that is not tried again.
    ended = #{} :: #{Id :: binary() => sderl_mon_types:t()},
    noting = none :: none | reference(),
    again = none :: none | integer(),
    watching = #{} :: #{pid() => {Id :: binary(), reference()}}
}).

-spec start_link(#{token := fun(() -> binary()), tokens_file := none | file:filename_all(),
                   atom() => term()}) -> gen_server:start_ret().
start_link(Settings) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE,
                          maps:with([token, tokens_file], Settings), []).

-doc "Whose a token is; does not ask the process. `unavailable`: that is not known just now.".
-spec who(binary()) -> {ok, who()} | {error, unknown | expired | revoked | unavailable}.
who(Text) ->
    case found(sderl_web_token:id(Text)) of
        {token, Token} -> proven(Text, Token);
        {main, Main} -> is_main(Text, Main);
        unavailable -> {error, unavailable}
    end.

%% While the process begins anew there is no table, or an empty one.
found({ok, Id}) ->
    try ets:lookup(?TABLE, Id) of
        [{Id, Token}] -> {token, Token};
        [] -> found(error)
    catch
        error:badarg -> unavailable
    end;
found(error) ->
    try ets:lookup(?TABLE, main) of
        [{main, Main}] -> {main, Main};
        [] -> unavailable
    catch
        error:badarg -> unavailable
    end.

%% Hashes are compared, so the time tells nothing, not even the length.
is_main(Text, Main) ->
    case crypto:hash_equals(crypto:hash(sha256, Text), crypto:hash(sha256, Main())) of
        true -> {ok, ?MAIN};
        false -> {error, unknown}
    end.

%% Only its owner is told that it has ended.
proven(Text, Token) ->
    case sderl_web_token:proves(Text, Token) of
        true ->
            Now = sderl_mon_clock:machine_ms(),
            case sderl_web_token:state(Token, Now) of
                active -> {ok, maps:with([id, name, role, expires], Token)};
                Ended ->
                    ok = keep_end(Now, Token),
                    {error, Ended}
            end;
        false -> {error, unknown}
    end.

%% Told at once: the clock may be set back before the file is looked at again.
keep_end(Now, #{id := Id} = Token) ->
    case sderl_web_token:note_end(Now, Token) of
        Token -> ok;
        _ -> gen_server:cast(?MODULE, {ended, Id, Now})
    end.

-doc """
The calling process gets `{sderl_web_tokens, expired | revoked}` when the token has ended, within a
second; `unreadable` where its file cannot be read, so that it does not hold now.
""".
-spec watch(who()) -> ok.
watch(#{id := Id}) -> gen_server:call(?MODULE, {watch, self(), Id}).

-doc "The tokens of the file, as others may see them.".
-spec list() -> [sderl_web_token:about()].
list() ->
    Now = sderl_mon_clock:machine_ms(),
    [sderl_web_token:show(Token, Now) || {Id, Token} <- lists:sort(ets:tab2list(?TABLE)),
                                         is_binary(Id)].

-doc "Makes a token in the file.".
-spec add(Name :: binary(), sderl_web_token:role(), Expires :: none | integer()) ->
    {ok, Text :: binary(), sderl_web_token:about()} | {error, no_file | unicode:chardata()}.
add(Name, Role, Expires) ->
    maybe
        {ok, File} ?= file(),
        {ok, Text, Token} ?= sderl_web_token_file:add(File, Name, Role, Expires),
        ok = look(),
        {ok, Text, sderl_web_token:show(Token, sderl_mon_clock:machine_ms())}
    end.

-doc "Revokes a token of the file.".
-spec revoke(Id :: binary()) ->
    {ok, sderl_web_token:about()} | {error, no_file | not_found | unicode:chardata()}.
revoke(Id) ->
    maybe
        {ok, File} ?= file(),
        {ok, Token} ?= sderl_web_token_file:revoke(File, Id),
        ok = look(),
        {ok, sderl_web_token:show(Token, sderl_mon_clock:machine_ms())}
    end.

%% The file is changed by whoever asks: the process must not wait for a lock or a disk.
file() -> gen_server:call(?MODULE, file).

-doc "Has the file looked at now. Where that is not possible it is looked at a second later.".
-spec look() -> ok.
look() ->
    try
        gen_server:call(?MODULE, look)
    catch
        exit:_ -> ok
    end.

-doc false.
-spec init(map()) -> {ok, #state{}} | {stop, {bad_tokens, unicode:chardata()}}.
init(#{token := Main, tokens_file := File}) ->
    _ = ets:new(?TABLE, [named_table, {read_concurrency, true}]),
    case File =:= none orelse sderl_web_token_file:read(File) of
        {error, Why} -> {stop, {bad_tokens, Why}};
        _ ->
            look_later(),
            State = look(#state{file = File}),
            %% Only now may a token be called unknown.
            true = ets:insert(?TABLE, {main, Main}),
            {ok, State}
    end.

look_later() ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    ok.

look(#state{file = none} = State) -> State;
look(#state{file = File, stamp = Known} = State) ->
    Read = case stamp(File) of
        Known -> State;
        Stamp -> taken(sderl_web_token_file:read(File), Stamp, State)
    end,
    write_ends(find_ends(sderl_mon_clock:machine_ms(), Read)).

stamp(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{inode = Inode, mtime = Changed, ctime = Moved, size = Size, mode = Mode}} ->
            {Inode, Changed, Moved, Size, Mode};
        {error, Reason} -> Reason
    end.

%% A file that could not be read is read again: the cause may have been the disk.
taken({ok, Tokens}, Stamp, #state{ended = Ends} = State) ->
    %% Ends that are not in the file yet count, too.
    true = replace([case Ends of
        #{Id := Seen} -> sderl_web_token:end_at(Seen, Token);
        #{} -> Token
    end || #{id := Id} = Token <- Tokens]),
    State#state{stamp = Stamp, problem = none};
taken({error, Why}, _, #state{problem = Known} = State) ->
    true = replace([]),
    Problem = sderl_web_json:text(Why),
    _ = Problem =/= Known andalso
        ?LOG_ERROR("dashboard: tokens: ~ts; until then none of them holds", [Problem],
                   #{domain => [sderl, web]}),
    State#state{stamp = none, problem = Problem}.

replace(Tokens) ->
    Ids = [Id || #{id := Id} <- Tokens],
    true = ets:insert(?TABLE, [{Id, Token} || #{id := Id} = Token <- Tokens]),
    _ = [ets:delete(?TABLE, Id) || {Id, _} <- ets:tab2list(?TABLE), is_binary(Id),
                                   not lists:member(Id, Ids)],
    true.

%% ---------------------------------------------------------------- tokens that have expired

find_ends(Now, State) ->
    New = [Id || {Id, Token} <- ets:tab2list(?TABLE), is_binary(Id),
                 sderl_web_token:note_end(Now, Token) =/= Token],
    lists:foldl(fun(Id, Acc) -> add_end(Id, Now, Acc) end, State, New).

%% A caller of who/1 may have seen it earlier.
add_end(Id, Seen, #state{ended = Ends} = State) ->
    case ets:lookup(?TABLE, Id) of
        [{Id, #{ended := none} = Token}] ->
            true = ets:insert(?TABLE, {Id, sderl_web_token:end_at(Seen, Token)}),
            State#state{ended = Ends#{Id => Seen}};
        _ -> State
    end.

-dialyzer({nowarn_function, [write_ends/1]}).
write_ends(#state{file = File, ended = Ends, noting = none, again = Again} = State)
  when map_size(Ends) > 0 ->
    case Again =/= none andalso sderl_mon_clock:now_ms() < Again of
        true -> State;
        false ->
            {_, Monitor} = spawn_monitor(fun() ->
                exit({written, Ends, sderl_web_token_file:note_ends(File, Ends)})
            end),
            State#state{noting = Monitor}
    end;
write_ends(State) -> State.

written({written, Ends, ok}, #state{ended = Now} = State) ->
    State#state{noting = none, again = none, ended = maps:without(maps:keys(Ends), Now)};
written(Reason, #state{again = Again} = State) ->
    Why = case Reason of
        {written, _, {error, Text}} -> sderl_web_json:text(Text);
        _ -> sderl_mon_text:text("~0tP", [Reason, 12])
    end,
    _ = Again =:= none andalso
        ?LOG_WARNING("dashboard: tokens: that some have expired could not be written: ~ts; should "
                     "the dashboard start again with a clock that was set back, they hold again",
                     [Why], #{domain => [sderl, web]}),
    State#state{noting = none, again = sderl_mon_clock:now_ms() + ?AGAIN_MS}.

%% ---------------------------------------------------------------- the process

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({watch, Pid, Id}, _From, #state{watching = Watching} = State)
  when is_pid(Pid), is_binary(Id) ->
    case Watching of
        #{Pid := _} -> {reply, ok, State};
        #{} ->
            Watch = {Id, monitor(process, Pid)},
            {reply, ok, tell(State#state{watching = Watching#{Pid => Watch}})}
    end;
handle_call(file, _From, #state{file = none} = State) ->
    {reply, {error, no_file}, State};
handle_call(file, _From, #state{file = File} = State) ->
    {reply, {ok, File}, State};
handle_call(look, _From, State) ->
    {reply, ok, tell(look(State))};
handle_call(_, _From, State) ->
    {reply, {error, unknown_call}, State}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({ended, Id, Seen}, State) when is_binary(Id), is_integer(Seen) ->
    {noreply, write_ends(add_end(Id, Seen, State))};
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(look, State) ->
    look_later(),
    {noreply, tell(look(State))};
handle_info({'DOWN', Noting, process, _, Reason}, #state{noting = Noting} = State) ->
    {noreply, written(Reason, State)};
handle_info({'DOWN', _, process, Pid, _}, #state{watching = Watching} = State) ->
    {noreply, State#state{watching = maps:remove(Pid, Watching)}};
handle_info(_, State) ->
    {noreply, State}.

%% A token that is missing from a file that could be read was removed from it.
tell(#state{watching = Watching, problem = Problem} = State) ->
    Now = sderl_mon_clock:machine_ms(),
    State#state{watching = maps:filter(fun(Pid, {Id, Monitor}) ->
        case Id =:= ~"main" orelse ets:lookup(?TABLE, Id) of
            true -> true;
            [] when Problem =/= none -> ended(Pid, Monitor, unreadable);
            [] -> ended(Pid, Monitor, revoked);
            [{Id, Token}] ->
                case sderl_web_token:state(Token, Now) of
                    active -> true;
                    Ended -> ended(Pid, Monitor, Ended)
                end
        end
    end, Watching)}.

ended(Pid, Monitor, How) ->
    true = demonitor(Monitor, [flush]),
    Pid ! {?MODULE, How},
    false.

%% Tokens are in calls and in the state, and must not be in a report.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> sderl_web_secrets:hide(Status).
