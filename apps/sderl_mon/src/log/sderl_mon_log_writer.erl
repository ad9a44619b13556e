%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_writer).
-moduledoc """
Writes the files of the log for the store (`m:sderl_mon_log`), which gets a message for each step
and never waits for a disk. It takes one piece at a time, and ends with the first error: the store
starts another writer later.
""".

-behaviour(gen_server).

-export([start_link/1, write/3, stop/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, terminate/2]).
-export_type([answer/0]).

-doc """
Messages to the process that started the writer, as `{sderl_mon_log_writer, Pid, answer()}`:
`opened` once, then `written` for each piece, with the place of its first byte and the files that
were removed for it. `failed` has a sentence; nothing of the piece is in the files, and the writer
has ended.
""".
-type answer() ::
    {opened, sderl_mon_log_index:index()}
    | {written, {binary(), non_neg_integer()}, Removed :: [binary()]}
    | {failed, binary()}.

-record(writer, {
    store :: pid(),
    options :: sderl_mon_log_files:options(),
    files = none :: none | sderl_mon_log_files:files()
}).

-doc "Opens the files, and reads what is in them.".
-spec start_link(sderl_mon_log_files:options()) -> gen_server:start_ret().
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {self(), Options}, []).

-doc "Writes whole records, the first of which has that number.".
-spec write(pid(), pos_integer(), binary()) -> ok.
write(Writer, First, Bytes) -> gen_server:cast(Writer, {write, First, Bytes}).

-doc """
Ends the writer and frees the folder. A writer that is still waiting for its disk after that time is
killed.
""".
-spec stop(pid(), timeout()) -> ok.
stop(Writer, Ms) ->
    true = unlink(Writer),
    Monitor = monitor(process, Writer),
    ok = gen_server:cast(Writer, stop),
    receive
        {'DOWN', Monitor, process, Writer, _} -> ok
    after Ms ->
        true = demonitor(Monitor, [flush]),
        true = exit(Writer, kill),
        ok
    end.

-doc false.
-spec init({pid(), sderl_mon_log_files:options()}) -> {ok, #writer{}, {continue, open}}.
init({Store, Options}) ->
    _ = process_flag(trap_exit, true),
    {ok, #writer{store = Store, options = Options}, {continue, open}}.

-doc false.
-spec handle_continue(open, #writer{}) -> {noreply, #writer{}} | {stop, normal, #writer{}}.
handle_continue(open, #writer{options = Options} = Writer) ->
    case sderl_mon_log_files:open(Options) of
        {ok, Files, Index} ->
            tell({opened, Index}, Writer),
            {noreply, Writer#writer{files = Files}};
        {error, Why} ->
            failed(Why, Writer)
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), #writer{}) -> {reply, term(), #writer{}}.
handle_call(_, _From, Writer) -> {reply, {error, unknown_call}, Writer}.

-doc false.
-spec handle_cast(term(), #writer{}) -> {noreply, #writer{}} | {stop, normal, #writer{}}.
handle_cast({write, First, Bytes}, #writer{files = Files} = Writer) ->
    case sderl_mon_log_files:append(First, Bytes, Files) of
        {ok, Place, Removed, Written} ->
            tell({written, Place, Removed}, Writer),
            {noreply, Writer#writer{files = Written}};
        {error, Why, Left} ->
            failed(Why, Writer#writer{files = Left})
    end;
handle_cast(stop, Writer) ->
    {stop, normal, Writer}.

%% The folder is freed before the store learns this and starts another writer.
failed(Why, Writer) ->
    ok = closed(Writer),
    tell({failed, unicode:characters_to_binary(Why)}, Writer),
    {stop, normal, Writer#writer{files = none}}.

tell(Answer, #writer{store = Store}) ->
    Store ! {?MODULE, self(), Answer},
    ok.

-doc false.
-spec terminate(term(), #writer{}) -> ok.
terminate(_, Writer) -> closed(Writer).

closed(#writer{files = none}) -> ok;
closed(#writer{files = Files}) -> sderl_mon_log_files:close(Files).
