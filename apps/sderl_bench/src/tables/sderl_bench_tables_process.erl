%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_process).
-moduledoc "A map in the state of a `m:gen_server`, which is called for everything.".

-behaviour(sderl_bench_table).
-behaviour(gen_server).

-export([summary/0, variants/0, can/1, new/1, client/2, read/2, put/3, delete/2, add/2, sum/1,
         close/1, uses/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-doc false.
-spec summary() -> string().
summary() -> "a map in the state of a gen_server".

-doc false.
-spec variants() -> [sderl_bench_table:variant(), ...].
variants() -> [{"process", usual, #{}, "a gen_server with a map as its state"}].

-doc false.
-spec can(sderl_bench_table:settings()) -> [sderl_bench_table:op(), ...].
can(_) -> [read, put, delete, add].

-doc false.
-spec new(sderl_bench_table:settings()) -> pid().
new(Settings) ->
    {ok, Server} = gen_server:start_link(?MODULE, Settings, []),
    Server.

-doc false.
-spec client(pid(), sderl_bench_table:settings()) -> pid().
client(Server, _) -> Server.

-doc false.
-spec read(pos_integer(), pid()) -> pid().
read(Key, Server) -> asked({read, Key}, Server).

-doc false.
-spec put(pos_integer(), term(), pid()) -> pid().
put(Key, Value, Server) -> asked({put, Key, Value}, Server).

-doc false.
-spec delete(pos_integer(), pid()) -> pid().
delete(Key, Server) -> asked({delete, Key}, Server).

-doc false.
-spec add(pos_integer(), pid()) -> pid().
add(Key, Server) -> asked({add, Key}, Server).

asked(Request, Server) when is_pid(Server) ->
    _ = gen_server:call(Server, Request, infinity),
    Server.

-doc false.
-spec sum(pid()) -> integer().
sum(Server) -> gen_server:call(Server, sum, infinity).

-doc false.
-spec close(pid()) -> ok.
close(Server) -> gen_server:stop(Server).

-doc false.
-spec uses() -> [module()].
uses() -> [sderl_bench_tables_fill].

-doc false.
-spec init(sderl_bench_table:settings()) -> {ok, map()}.
init(Settings) -> {ok, maps:from_list(sderl_bench_tables_fill:rows(Settings))}.

-doc false.
-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call({read, Key}, _, Map) -> {reply, maps:find(Key, Map), Map};
handle_call({put, Key, Value}, _, Map) -> {reply, ok, Map#{Key => Value}};
handle_call({delete, Key}, _, Map) -> {reply, ok, maps:remove(Key, Map)};
handle_call({add, Key}, _, Map) ->
    Count = 1 + maps:get(Key, Map, 0),
    {reply, Count, Map#{Key => Count}};
handle_call(sum, _, Map) -> {reply, lists:sum(maps:values(Map)), Map}.

-doc false.
-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast(_, Map) -> {noreply, Map}.
