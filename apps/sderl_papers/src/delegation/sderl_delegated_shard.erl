%% SPDX-License-Identifier: Apache-2.0
-module(sderl_delegated_shard).
-moduledoc """
The process that owns a part of the keys of a table of `m:sderl_delegated`: it does the operations
of a batch in their order, and then the one that needs an answer.
""".

-export([start_link/0, stop/1, send/2, ask/3, request/3, answer/1, value/2]).
-export([init/1]).
-export_type([shard/0, op/0]).

-type shard() :: {pid(), ets:table()}.

-type op() ::
    {put, Key :: term(), Value :: term()} | {delete, Key :: term()}
    | {add, Key :: term(), integer()}.

-type asked() :: none | {get, Key :: term()} | {add, Key :: term(), integer()}.

-spec start_link() -> shard().
start_link() ->
    {ok, Pid, Table} = proc_lib:start_link(?MODULE, init, [self()]),
    {Pid, Table}.

-spec stop(shard()) -> ok.
stop({Pid, _}) ->
    Monitor = monitor(process, Pid),
    true = unlink(Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

-doc "A batch without an answer, the latest operation first.".
-spec send(shard(), [op()]) -> ok.
send({Pid, _}, Ops) ->
    Pid ! {batch, Ops},
    ok.

-doc "A batch, and then an operation with an answer; `ok` where there is none.".
-spec ask(shard(), [op()], asked()) -> term().
ask(Shard, Ops, Asked) -> answer(request(Shard, Ops, Asked)).

-doc "The request of `ask/3`, for `answer/1`.".
-spec request(shard(), [op()], asked()) -> reference().
request({Pid, _}, Ops, Asked) ->
    Ref = monitor(process, Pid, [{alias, reply_demonitor}]),
    Pid ! {batch, Ops, Ref, Asked},
    Ref.

-doc "The answer, or an exit where the shard is dead.".
-spec answer(reference()) -> term().
answer(Ref) ->
    receive
        {Ref, Answer} -> Answer;
        {'DOWN', Ref, process, _, Reason} -> exit({delegated, Reason})
    end.

-doc "The value of a key, read from the table by the caller.".
-spec value(shard(), Key :: term()) -> {ok, term()} | none.
value({_, Table}, Key) ->
    try
        found(Table, Key)
    catch
        %% A table ends with its owner.
        error:badarg -> exit({delegated, noproc})
    end.

-doc false.
-spec init(pid()) -> no_return().
init(Parent) ->
    Table = ets:new(?MODULE, [set, protected, {read_concurrency, true}]),
    proc_lib:init_ack(Parent, {ok, self(), Table}),
    loop(Table).

-spec loop(ets:table()) -> no_return().
loop(Table) ->
    receive
        {batch, Ops} ->
            do(lists:reverse(Ops), Table);
        {batch, Ops, Ref, Asked} ->
            do(lists:reverse(Ops), Table),
            Ref ! {Ref, answered(Asked, Table)}
    end,
    loop(Table).

do([], _) ->
    ok;
do([{put, Key, Value} | Ops], Table) ->
    true = ets:insert(Table, {Key, Value}),
    do(Ops, Table);
do([{delete, Key} | Ops], Table) ->
    true = ets:delete(Table, Key),
    do(Ops, Table);
do([{add, Key, Number} | Ops], Table) ->
    _ = added(Key, Number, Table),
    do(Ops, Table).

answered(none, _) -> ok;
answered({get, Key}, Table) -> found(Table, Key);
answered({add, Key, Number}, Table) -> added(Key, Number, Table).

%% A value that is no integer, put there by one client, must not crash the shard.
added(Key, Number, Table) ->
    try
        ets:update_counter(Table, Key, Number, {Key, 0})
    catch
        error:badarg -> {error, no_integer}
    end.

found(Table, Key) ->
    case ets:lookup(Table, Key) of
        [{_, Value}] -> {ok, Value};
        [] -> none
    end.
