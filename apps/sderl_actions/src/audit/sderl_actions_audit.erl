%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_audit).
-moduledoc """
The audit log of this monitoring node: who did what, where, with what result
(`m:sderl_actions_audit_record`). Each change is noted here before it begins, and when it has ended.

An entry is in its file when `note/1` returns, and on the disk a second later, so it survives the
death of the program at once. If it cannot be written, because the disk is full, it waits in memory
(1,000 entries) until there is room again. Entries without room in memory are counted, and an entry
`audit.lost` says how many they were. No caller waits long for a disk that hangs: after two seconds
`note/1` returns an error. At most 1,000 entries wait for this process: further ones are refused
(`note/1`) or counted as lost (`tell/1`).

Readers read the files themselves (`m:sderl_actions_audit_reader`). The last entries are also in a
table, which is read instead, with a remark, while the disk does not answer.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, note/1, tell/1, list/2, info/0]).
-export_type([options/0, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-type options() :: #{dir => file:name_all(), file_bytes := pos_integer(), files := pos_integer()}.

-doc """
`next`: the number of the next entry; `waiting`: entries in memory that are to be written; `lost`:
those that were lost since the start; `problem`: a sentence while nothing can be written.
""".
-type info() :: #{
    dir := none | binary(),
    next := pos_integer(),
    waiting := non_neg_integer(),
    lost := non_neg_integer(),
    problem := none | binary()
}.

-define(MOST, 1000).
%% In the table: all entries that wait, and as many written ones.
-define(MOST_REMEMBERED, 2 * ?MOST).
-define(READ_MS, 2000).
-define(UNREAD, <<"the disk of the audit log does not answer: these are the entries that are in "
                  "memory, the last ones">>).
%% The most entries in the mailbox, and the indices of the counters.
-define(MOST_SENT, 1000).
-define(SENT, 1).
-define(REFUSED, 2).
%% The greatest number of an entry: replacing it by the real one makes no line longer.
-define(LAST, 9_007_199_254_740_991).
-define(NOTE_MS, 2000).
-define(SYNC_MS, 1000).
-define(RETRY_MS, 5000).
-define(SYSTEM, #{kind => system, name => ~"sderl_actions"}).

-record(s, {
    options :: options(),
    next = 1 :: pos_integer(),
    files = none :: none | sderl_actions_audit_files:files(),
    problem = none :: none | binary(),
    %% With files: what is to be written. Without: the last entries. The oldest first.
    lines = queue:new() :: queue:queue({pos_integer(), binary()}),
    %% Lost entries since the start, and those that no entry `audit.lost` counts yet.
    lost = 0 :: non_neg_integer(),
    untold = 0 :: non_neg_integer(),
    sync = none :: none | reference(),
    retry = none :: none | reference()
}).

-doc "Starts it, one a node.".
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

-doc """
Keeps an entry. `{error, unavailable}`: the log does not run, or waits for its disk; the entry may
be kept all the same.
""".
-spec note(sderl_actions_audit_record:entry()) -> ok | {error, unavailable}.
note(#{who := #{}, what := _, result := _} = Entry) ->
    try
        Line = line(Entry),
        case may_send() of
            true -> gen_server:call(?MODULE, {note, Line}, ?NOTE_MS);
            false -> {error, unavailable}
        end
    catch
        exit:_ -> {error, unavailable};
        error:_ -> {error, unavailable}
    end.

-doc "Keeps an entry without waiting; without room it is counted as lost.".
-spec tell(sderl_actions_audit_record:entry()) -> ok.
tell(#{who := #{}, what := _, result := _} = Entry) ->
    Line = line(Entry),
    case may_send() of
        true -> gen_server:cast(?MODULE, {note, Line});
        false -> count_refused()
    end.

%% The caller formats the line; the process sets its number.
line(Entry) -> sderl_actions_audit_record:line(?LAST, erlang:system_time(millisecond), Entry).

%% The process subtracts the entries that it has taken, and sets the count to 0 when it begins.
may_send() ->
    case persistent_term:get(?MODULE, none) of
        none -> false;
        Counters ->
            case atomics:add_get(Counters, ?SENT, 1) =< ?MOST_SENT of
                true -> true;
                false ->
                    ok = atomics:sub(Counters, ?SENT, 1),
                    false
            end
    end.

count_refused() ->
    case persistent_term:get(?MODULE, none) of
        none -> ok;
        Counters -> atomics:add(Counters, ?REFUSED, 1)
    end.

-doc """
The last matching entries, the newest first, at most `Limit`. `unread`: a sentence if the disk does
not answer and these come only from memory. `{error, unavailable}`: the log does not run.
""".
-spec list(sderl_actions_audit_record:filter(), 1..500) ->
    {ok, sderl_actions_audit_files:found()} | {error, unavailable}.
list(Filter, Limit) ->
    Question = {Filter, Limit},
    try gen_server:call(?MODULE, lines, ?NOTE_MS) of
        {none, Lines} -> {ok, sderl_actions_audit_files:search(none, Lines, Question)};
        {Dir, Lines} ->
            %% The time limit is for reading each file; searching in it may take longer on a slow
            %% machine.
            Look = fun(Read) -> sderl_actions_audit_reader:run(Read, ?READ_MS) end,
            case sderl_actions_audit_files:search(Dir, Lines, Question, Look) of
                {ok, Found} -> {ok, Found};
                late -> remembered(Question)
            end
    catch
        exit:{timeout, _} -> remembered(Question);
        exit:_ -> {error, unavailable}
    end.

remembered(Question) ->
    try ets:select(?MODULE, [{{'$1', '$2'}, [{is_integer, '$1'}], ['$2']}]) of
        Lines ->
            Found = sderl_actions_audit_files:search(none, Lines, Question),
            {ok, Found#{unread := ?UNREAD}}
    catch
        error:badarg -> {error, unavailable}
    end.

-doc "The state of the log; while the disk does not answer, the last known one.".
-spec info() -> info().
info() ->
    try gen_server:call(?MODULE, info, ?NOTE_MS)
    catch
        exit:{timeout, _} = Why ->
            case ets:whereis(?MODULE) =/= undefined andalso ets:lookup(?MODULE, info) of
                [{info, Info}] -> with_sent(Info);
                _ -> exit(Why)
            end
    end.

with_sent(#{waiting := Waiting} = Info) ->
    Info#{waiting := Waiting + atomics:get(persistent_term:get(?MODULE), ?SENT)}.

%% ---------------------------------------------------------------- the process

-doc false.
-spec init(options()) -> {ok, #s{}}.
init(Options) ->
    _ = process_flag(trap_exit, true),
    case persistent_term:get(?MODULE, none) of
        none -> ok = persistent_term:put(?MODULE, atomics:new(2, []));
        Counters -> ok = atomics:put(Counters, ?SENT, 0)
    end,
    _ = ets:new(?MODULE, [named_table, ordered_set, protected, {read_concurrency, true}]),
    {ok, shown(begun(#s{options = Options}))}.

begun(#s{options = #{dir := _}} = S) ->
    case opened(S) of
        #s{files = none} = Waits -> Waits;
        Open -> noted(erlang:system_time(millisecond),
                      #{who => ?SYSTEM, what => ~"audit.start", result => ok}, Open)
    end;
begun(S) -> S.

opened(#s{options = Options, lines = Lines} = S) ->
    case sderl_actions_audit_files:open(Options) of
        {ok, Next, Files} ->
            %% Entries that came meanwhile follow those in the files.
            Later = [{Seq, renumbered(Seq, Line)}
                     || {Seq, {_, Line}} <- lists:enumerate(Next, queue:to_list(Lines))],
            true = ets:delete_all_objects(?MODULE),
            true = ets:insert(?MODULE, Later),
            S#s{files = Files, problem = none, next = Next + length(Later),
                lines = queue:from_list(Later)};
        {error, Why} -> troubled(Why, S)
    end.

%% The number is the first of a line.
renumbered(Seq, Line) ->
    [_, Rest] = binary:split(Line, ~","),
    <<"{\"seq\":", (integer_to_binary(Seq))/binary, $,, Rest/binary>>.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call({note, Line}, _From, S) when is_binary(Line) -> {reply, ok, shown(taken(Line, S))};
handle_call(lines, _From, #s{options = Options, lines = Lines} = S) ->
    {reply, {maps:get(dir, Options, none), [Line || {_, Line} <- queue:to_list(Lines)]}, S};
handle_call(info, _From, S) -> {reply, about(S), S};
handle_call(_, _From, S) -> {reply, {error, unknown_call}, S}.

about(#s{options = Options, next = Next, lines = Lines, lost = Lost, problem = Problem}) ->
    #{dir => case Options of
          #{dir := Dir} -> unicode:characters_to_binary(Dir);
          #{} -> none
      end,
      next => Next,
      waiting => case Options of #{dir := _} -> queue:len(Lines); #{} -> 0 end,
      lost => Lost, problem => Problem}.

shown(S) ->
    true = ets:insert(?MODULE, {info, about(S)}),
    S.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast({note, Line}, S) when is_binary(Line) -> {noreply, shown(taken(Line, S))};
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info({timeout, Ref, sync}, #s{sync = Ref, files = Files} = S) ->
    _ = Files =/= none andalso sderl_actions_audit_files:sync(Files),
    {noreply, S#s{sync = none}};
handle_info({timeout, Ref, retry}, #s{retry = Ref} = S0) ->
    S = S0#s{retry = none},
    {noreply, shown(written(case S of #s{files = none} -> opened(S); _ -> S end))};
handle_info(_, S) -> {noreply, S}.

-doc false.
-spec terminate(term(), #s{}) -> ok.
terminate(_, #s{files = none}) -> ok;
terminate(_, #s{files = Files}) -> sderl_actions_audit_files:close(Files).

%% ---------------------------------------------------------------- keeping

taken(Line, #s{lost = Lost, untold = Untold} = S) ->
    Counters = persistent_term:get(?MODULE),
    ok = atomics:sub(Counters, ?SENT, 1),
    Refused = atomics:exchange(Counters, ?REFUSED, 0),
    queued(Line, S#s{lost = Lost + Refused, untold = Untold + Refused}).

noted(At, Entry, #s{next = Next} = S) ->
    queued(sderl_actions_audit_record:line(Next, At, Entry), S).

queued(Line, #s{next = Next, lines = Lines} = S) ->
    Row = {Next, renumbered(Next, Line)},
    ok = remember(Row),
    written(S#s{next = Next + 1, lines = queue:in(Row, Lines)}).

remember(Row) ->
    true = ets:insert(?MODULE, Row),
    %% The row about the log itself is the last one: atoms come after numbers.
    _ = ets:info(?MODULE, size) > ?MOST_REMEMBERED andalso
        ets:delete(?MODULE, ets:first(?MODULE)),
    ok.

written(#s{files = none} = S) -> bounded(S);
written(#s{files = Files, lines = Lines} = S) ->
    case queue:out(Lines) of
        {empty, _} -> tell_lost(S);
        {{value, {Seq, Line}}, Rest} ->
            case sderl_actions_audit_files:append(Seq, Line, Files) of
                {ok, Written} ->
                    written(synced_soon(S#s{files = Written, lines = Rest, problem = none}));
                {error, Why, Left} -> bounded(troubled(Why, S#s{files = Left}))
            end
    end.

%% The log says itself what it lacks.
tell_lost(#s{untold = 0} = S) -> S;
tell_lost(#s{untold = Lost} = S) ->
    noted(erlang:system_time(millisecond),
          #{who => ?SYSTEM, what => ~"audit.lost", result => failed, args => #{entries => Lost},
            detail => ~"entries that could not be written, and had no room in memory"},
          S#s{untold = 0}).

synced_soon(#s{sync = none} = S) -> S#s{sync = erlang:start_timer(?SYNC_MS, self(), sync)};
synced_soon(S) -> S.

%% Logged once when the trouble begins.
troubled(Why, #s{problem = Problem} = S0) ->
    _ = Problem =:= none andalso
        ?LOG_WARNING("audit log: ~ts; entries are kept in memory until it can be written", [Why]),
    S = S0#s{problem = Why},
    case S of
        #s{retry = none} -> S#s{retry = erlang:start_timer(?RETRY_MS, self(), retry)};
        _ -> S
    end.

%% Without files dropping the oldest is normal; with files it is a loss.
bounded(#s{lines = Lines, options = Options} = S) ->
    case queue:len(Lines) > ?MOST of
        false -> S;
        true when is_map_key(dir, Options) ->
            {{value, {Seq, _}}, Rest} = queue:out(Lines),
            true = ets:delete(?MODULE, Seq),
            bounded(S#s{lines = Rest, lost = S#s.lost + 1, untold = S#s.untold + 1});
        true ->
            {{value, {Seq, _}}, Rest} = queue:out(Lines),
            true = ets:delete(?MODULE, Seq),
            bounded(S#s{lines = Rest})
    end.
