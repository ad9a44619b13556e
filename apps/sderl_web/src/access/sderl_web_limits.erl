%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_limits).
-moduledoc """
How many requests a token and an address may make: the settings `rate` and `strangers_rate`.

A request with a token that holds is counted for that token, wherever it comes from; every other one
for its address, of IPv6 for the network of 64 bits. So nobody can use up the rate of a token that
he does not have.
""".

-behaviour(gen_server).

-export([start_link/1, take/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([asker/0]).

-type asker() :: {token, Id :: binary()} | {address, inet:ip_address()}.

-define(MOST, 10_000).

-record(state, {
    rates :: #{token | address => sderl_web_bucket:rate()},
    buckets = sderl_web_buckets:new(?MOST) :: sderl_web_buckets:buckets()
}).

-spec start_link(#{rate := sderl_web_bucket:rate(), strangers_rate := sderl_web_bucket:rate(),
                   atom() => term()}) -> gen_server:start_ret().
start_link(#{rate := Rate, strangers_rate := Strangers}) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, #{token => Rate, address => Strangers}, []).

-doc "Counts a request, or says how many milliseconds it has to wait.".
-spec take(asker()) -> ok | {wait, pos_integer()}.
take({token, Id}) -> gen_server:call(?MODULE, {take, token, Id});
take({address, {A, B, C, D, _, _, _, _}}) ->
    gen_server:call(?MODULE, {take, address, {A, B, C, D}});
take({address, Ip}) -> gen_server:call(?MODULE, {take, address, Ip}).

-doc false.
-spec init(#{token | address => sderl_web_bucket:rate()}) -> {ok, #state{}}.
init(Rates) -> {ok, #state{rates = Rates}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({take, Kind, Who}, _From, #state{rates = Rates, buckets = Buckets} = State)
  when is_map_key(Kind, Rates) ->
    {Answer, Left} = sderl_web_buckets:take({Kind, Who}, maps:get(Kind, Rates),
                                            sderl_mon_clock:now_ms(), Buckets),
    {reply, Answer, State#state{buckets = Left}};
handle_call(_, _From, State) ->
    {reply, {error, unknown_call}, State}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(_, State) -> {noreply, State}.
