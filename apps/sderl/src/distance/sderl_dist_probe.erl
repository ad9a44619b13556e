%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_probe).
-moduledoc false.
%% A node's part in measuring distances: answers probes, and starts a process for each survey that
%% arrives.
%%
%% Messages, all `{sderl_dist, 1, Kind, ...}`:
%%
%% - `ping, Token, From`: answered at once with `pong, Token, Node`.
%% - `survey, Id, ReplyTo, Spec`: to take part in a survey, see `m:sderl_dist_survey`. A node is
%%   asked through several gateways; it takes part once, for who asked first.
%%
%% Only existing links are used, here and in the started processes.

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% So many surveys at a time, as they disturb each other's measurements.
-define(MOST, 4).

-record(p, {surveys = #{} :: #{Id :: term() => pid()}, pids = #{} :: #{pid() => Id :: term()}}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, #p{}}.
init([]) ->
    _ = process_flag(async_dist, true),
    {ok, #p{}}.

-spec handle_call(term(), gen_server:from(), #p{}) -> {reply, {error, unknown}, #p{}}.
handle_call(_, _, State) ->
    ok = sderl_refused:note_message(?MODULE),
    {reply, {error, unknown}, State}.

-spec handle_cast(term(), #p{}) -> {noreply, #p{}}.
handle_cast(_, State) ->
    ok = sderl_refused:note_message(?MODULE),
    {noreply, State}.

-spec handle_info(term(), #p{}) -> {noreply, #p{}}.
handle_info({sderl_dist, 1, ping, Token, From}, State) when is_pid(From) ->
    _ = sderl_dist_survey:send(From, {sderl_dist, 1, pong, Token, node()}),
    {noreply, State};
handle_info({sderl_dist, 1, survey, Id, ReplyTo, Spec}, #p{surveys = Surveys} = State)
  when is_pid(ReplyTo) ->
    case sderl_dist_survey:valid(Spec) of
        _ when is_map_key(Id, Surveys) -> {noreply, State};
        false ->
            ok = sderl_refused:note_message(?MODULE),
            {noreply, State};
        true when map_size(Surveys) >= ?MOST ->
            _ = sderl_dist_survey:send(ReplyTo, {sderl_dist, 1, report, Id,
                                                 #{node => node(), refused => busy}}),
            {noreply, State};
        true ->
            {Pid, _} = spawn_monitor(sderl_dist_survey, run, [Id, ReplyTo, Spec]),
            {noreply, State#p{surveys = Surveys#{Id => Pid}, pids = (State#p.pids)#{Pid => Id}}}
    end;
handle_info({sderl_dist, 1, done, Id}, #p{surveys = Surveys} = State) ->
    case Surveys of
        #{Id := Pid} -> Pid ! {done, Id}, ok;
        #{} -> ok
    end,
    {noreply, State};
handle_info({'DOWN', _, process, Pid, _}, #p{surveys = Surveys, pids = Pids} = State) ->
    case maps:take(Pid, Pids) of
        {Id, Left} -> {noreply, State#p{surveys = maps:remove(Id, Surveys), pids = Left}};
        error -> {noreply, State}
    end;
handle_info(_, State) ->
    ok = sderl_refused:note_message(?MODULE),
    {noreply, State}.
