%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_db).
-moduledoc """
One copy of a database of the messenger: a table in memory, which ends with this process.

The main copy takes all writes. It sends each to the replica, on the next server, and answers when
the replica has it, so that every acknowledged write is in both. Either can be read.

## Recovery

A copy that starts is empty, and asks the other copy for its table; requests wait meanwhile.

| lost | what happens |
|---|---|
| main | takes the table of the replica |
| replica | takes the table of main; writes are answered without it until it asks |
| both | main asks the processes on its server that the rows are about, and makes the table from their answers; the replica takes it from main |

A copy takes writes only from that process of the other copy with which it has exchanged a table;
those of any other, such as one that has been replaced, are ignored.

## Monitors

Each row is about a process on the server of the main copy, which monitors it. When that process
dies, the kind's module (`m:sderl_im_clients`, `m:sderl_im_chats`) says what becomes of the row. A
main copy that has been restarted monitors the processes of its table, and so learns of deaths that
happened in the meantime.
""".

-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([row/0, request/0]).

-doc "The first element is the key, the second the process that owns the row.".
-type row() :: tuple().

-doc """
`{find, Key}` gives `{ok, Row}` or `none`; a replica that has no table yet gives `unfilled`. For
main alone: `{add, Row}` gives `ok`, or `{exists, Row}` with the row that has the key;
`{remove, Key, Pid}` gives `{ok, Row}`, or `none` when there is no such row or it has another pid in
the second place. `rows` gives how many.
""".
-type request() :: {find, term()} | {add, row()} | {remove, term(), pid()} | rows.

-doc "The process that a row is about.".
-callback watched(row()) -> pid().

-doc "That process died. `again`: nothing could be done now.".
-callback lost(row(), sderl_im_layout:conf()) -> {put, row()} | remove | again.

-doc "The rows as the processes on this server know them.".
-callback alive() -> [row()].

%% How long the other copy may take to answer: its node may stand still.
-define(SEEK_MS, 1000).
%% Between two attempts of a replica, or to start something.
-define(AGAIN_MS, 20).

-record(db, {
    conf :: sderl_im_layout:conf(),
    module :: module(),
    role :: sderl_im_layout:role(),
    copy :: sderl_im_layout:copy(),
    table :: ets:table(),
    %% Requests that wait for the table, the latest first; `filled`: it is there, and none wait.
    waiting = [] :: [{request(), gen_server:from()}] | filled,
    %% The other copy; asked for its table, or known to follow.
    peer = none :: none | {asked | known, pid(), reference()},
    %% Main: monitors of what rows are about, by key and by monitor.
    watches = #{} :: #{term() => reference()},
    keys = #{} :: #{reference() => term()},
    %% Main: callers that are answered when the replica has their write.
    unanswered = #{} :: #{reference() => {gen_server:from(), term()}}
}).

-doc "Starts a copy under its name.".
-spec start_link(sderl_im_layout:conf(), sderl_im_layout:role()) -> gen_server:start_ret().
start_link(Conf, Role) ->
    gen_server:start_link(sderl_im_net:via(Conf, Role), ?MODULE, {Conf, Role}, []).

-doc false.
-spec init(term()) -> {ok, #db{}, {continue, seek}}.
init({Conf, {database, Kind, _, Copy} = Role}) ->
    proc_lib:set_label({sderl_im, recovering, Role}),
    Module = case Kind of clients -> sderl_im_clients; chats -> sderl_im_chats end,
    {ok, #db{conf = Conf, module = Module, role = Role, copy = Copy,
             table = ets:new(?MODULE, [private])}, {continue, seek}}.

-doc false.
-spec handle_continue(seek, #db{}) -> {noreply, #db{}}.
handle_continue(seek, D) -> {noreply, seek(D)}.

%% ---------------------------------------------------------------- requests

-doc false.
-spec handle_call(request(), gen_server:from(), #db{}) -> {reply, term(), #db{}} | {noreply, #db{}}.
handle_call(rows, _, #db{table = Table} = D) ->
    {reply, ets:info(Table, size), D};
handle_call({find, _}, _, #db{copy = replica, waiting = Waiting} = D) when Waiting =/= filled ->
    {reply, unfilled, D};
handle_call(Request, From, #db{waiting = filled} = D) ->
    {noreply, request(Request, From, D)};
handle_call(Request, From, #db{waiting = Waiting} = D) ->
    {noreply, D#db{waiting = [{Request, From} | Waiting]}}.

request({find, Key}, From, D) ->
    gen_server:reply(From, case row(Key, D) of none -> none; Row -> {ok, Row} end),
    D;
request({add, Row}, From, D) ->
    case row(element(1, Row), D) of
        none -> put(Row, {From, ok}, D);
        %% The caller has asked before, and the answer was lost with a copy.
        Row -> put(Row, {From, ok}, D);
        Other -> gen_server:reply(From, {exists, Other}), D
    end;
request({remove, Key, Pid}, From, D) ->
    case row(Key, D) of
        Row when Row =/= none, element(2, Row) =:= Pid ->
            remove(Key, {From, {ok, Row}}, D);
        _ ->
            gen_server:reply(From, none),
            D
    end.

row(Key, #db{table = Table}) ->
    case ets:lookup(Table, Key) of
        [Row] -> Row;
        [] -> none
    end.

put(Row, Answer, #db{table = Table} = D) ->
    true = ets:insert(Table, Row),
    replicate({put, Row}, Answer, watch(Row, D)).

remove(Key, Answer, #db{table = Table} = D) ->
    true = ets:delete(Table, Key),
    replicate({remove, Key}, Answer, unwatch(Key, D)).

%% ---------------------------------------------------------------- the two copies

replicate(Op, Answer, #db{peer = {known, Pid, _}, unanswered = Unanswered} = D) ->
    Ref = make_ref(),
    Pid ! {replicate, self(), Ref, Op},
    D#db{unanswered = Unanswered#{Ref => Answer}};
replicate(_, Answer, D) ->
    answer(Answer),
    D.

answer(none) -> ok;
answer({From, Answer}) -> gen_server:reply(From, Answer).

-doc false.
-spec handle_cast(term(), #db{}) -> {noreply, #db{}}.
handle_cast(_, D) -> {noreply, D}.

-doc false.
-spec handle_info(term(), #db{}) -> {noreply, #db{}}.
handle_info({replicate, Pid, Ref, Op},
            #db{copy = replica, peer = {known, Pid, _}, table = Table} = D) ->
    true = case Op of
        {put, Row} -> ets:insert(Table, Row);
        {remove, Key} -> ets:delete(Table, Key)
    end,
    Pid ! {replicated, Ref},
    {noreply, D};
handle_info({replicated, Ref}, #db{unanswered = Unanswered} = D) ->
    case maps:take(Ref, Unanswered) of
        {Answer, Rest} ->
            answer(Answer),
            {noreply, D#db{unanswered = Rest}};
        error ->
            {noreply, D}
    end;
%% The other copy asks for the table; from now on it is this copy's peer.
handle_info({seek, Pid}, #db{waiting = filled, table = Table} = D) ->
    Pid ! {table, self(), ets:tab2list(Table)},
    {noreply, known(Pid, D)};
handle_info({seek, Pid}, D) ->
    Pid ! {unfilled, self()},
    {noreply, D};
handle_info({table, Pid, Rows}, #db{peer = {asked, Pid, _}} = D) ->
    {noreply, fill(Rows, known(Pid, D))};
%% The table came too late: main has made its own, and has taken writes since.
handle_info({table, Pid, _}, #db{copy = main} = D) ->
    Pid ! {unfollowed, self()},
    {noreply, D};
handle_info({unfollowed, Pid}, #db{copy = replica, peer = {known, Pid, _}} = D) ->
    {noreply, again(D)};
handle_info({unfilled, Pid}, #db{copy = main, waiting = Waiting, peer = {asked, Pid, _}} = D)
  when Waiting =/= filled ->
    {noreply, rebuild(D)};
handle_info({unfilled, Pid}, #db{peer = {asked, Pid, _}} = D) ->
    {noreply, again(D)};
handle_info({seek_over, Pid}, #db{copy = main, waiting = Waiting, peer = {asked, Pid, _}} = D)
  when Waiting =/= filled ->
    {noreply, rebuild(D)};
handle_info({seek_over, Pid}, #db{peer = {asked, Pid, _}} = D) ->
    {noreply, again(D)};
handle_info(seek, #db{peer = none} = D) ->
    {noreply, seek(D)};
handle_info({'DOWN', Ref, process, _, _}, #db{peer = {Asked, _, Ref}} = D) ->
    {noreply, peer_down(Asked, D#db{peer = none})};
handle_info({'DOWN', Ref, process, _, _}, #db{keys = Keys} = D) ->
    case Keys of
        #{Ref := Key} -> {noreply, lost(Key, unwatch(Key, D))};
        #{} -> {noreply, D}
    end;
handle_info({lost, Key}, D) ->
    {noreply, case is_map_key(Key, D#db.watches) of true -> D; false -> lost(Key, D) end};
handle_info(_, D) ->
    {noreply, D}.

%% Asks the other copy. A replica asks whenever it knows of none; main when it starts.
seek(#db{conf = Conf, role = {database, Kind, K, Copy}} = D) ->
    Other = case Copy of main -> replica; replica -> main end,
    case {sderl_im_net:whereis(Conf, {database, Kind, K, Other}), Copy} of
        {undefined, main} ->
            rebuild(D);
        {undefined, replica} ->
            again(D);
        {Pid, _} ->
            Ref = monitor(process, Pid),
            Pid ! {seek, self()},
            _ = erlang:send_after(?SEEK_MS, self(), {seek_over, Pid}),
            D#db{peer = {asked, Pid, Ref}}
    end.

again(D) ->
    _ = erlang:send_after(?AGAIN_MS, self(), seek),
    forget(D).

known(Pid, #db{peer = {_, Pid, Ref}} = D) ->
    D#db{peer = {known, Pid, Ref}};
known(Pid, D0) ->
    D = all_answered(forget(D0)),
    D#db{peer = {known, Pid, monitor(process, Pid)}}.

forget(#db{peer = none} = D) ->
    D;
forget(#db{peer = {_, _, Ref}} = D) ->
    true = demonitor(Ref, [flush]),
    D#db{peer = none}.

%% Without the replica this is the only copy: writes that wait for it are acknowledged.
peer_down(known, #db{copy = main} = D) -> all_answered(D);
peer_down(asked, #db{copy = main, waiting = Waiting} = D) when Waiting =/= filled -> rebuild(D);
peer_down(_, #db{copy = main} = D) -> D;
peer_down(_, #db{copy = replica} = D) -> seek(D).

all_answered(#db{unanswered = Unanswered} = D) ->
    lists:foreach(fun answer/1, maps:values(Unanswered)),
    D#db{unanswered = #{}}.

%% Both copies are lost, or there were none yet.
rebuild(#db{module = Module} = D) -> fill(Module:alive(), forget(D)).

fill(Rows, #db{table = Table, waiting = Waiting, role = Role} = D0) ->
    true = ets:delete_all_objects(Table),
    true = ets:insert(Table, Rows),
    proc_lib:set_label({sderl_im, ready, Role}),
    D = lists:foldl(fun watch/2, D0#db{waiting = filled}, Rows),
    case Waiting of
        filled -> D;
        _ -> lists:foldr(fun({Request, From}, Db) -> request(Request, From, Db) end, D, Waiting)
    end.

%% ---------------------------------------------------------------- what rows are about

watch(Row, #db{copy = main, module = Module} = D0) ->
    Key = element(1, Row),
    #db{watches = Watches, keys = Keys} = D = unwatch(Key, D0),
    Ref = monitor(process, Module:watched(Row)),
    D#db{watches = Watches#{Key => Ref}, keys = Keys#{Ref => Key}};
watch(_, D) ->
    D.

unwatch(Key, #db{watches = Watches, keys = Keys} = D) ->
    case maps:take(Key, Watches) of
        {Ref, Rest} ->
            true = demonitor(Ref, [flush]),
            D#db{watches = Rest, keys = maps:remove(Ref, Keys)};
        error ->
            D
    end.

lost(Key, #db{module = Module, conf = Conf} = D) ->
    case row(Key, D) of
        none ->
            D;
        Row ->
            case Module:lost(Row, Conf) of
                {put, New} ->
                    put(New, none, D);
                remove ->
                    remove(Key, none, D);
                again ->
                    _ = erlang:send_after(?AGAIN_MS, self(), {lost, Key}),
                    D
            end
    end.
