%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_report).
-moduledoc false.
%% The messages of this node's processes, and those that could not be delivered: counted by receiver
%% and reason, reported as an event now and then, and to the senders that asked for it.

-behaviour(gen_server).

-export([new/0, start_link/0, failed/1, subscribe/1, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_clock, [now_ms/0]).

-define(TABLE, sderl_undelivered).
%% How many receivers are counted apart.
-define(MOST, 1000).
%% One event for each receiver and reason in that time.
-define(QUIET_MS, 10_000).

-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public]).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Messages of this node's processes that another node could not deliver.".
-spec failed({node(), [{pid(), {term(), term()}, sderl_route_send:failure(), pos_integer()}]}) ->
    ok.
failed(Report) -> gen_server:cast(?MODULE, {failed, Report}).

-doc "Whether the calling process gets reports about its own messages.".
-spec subscribe(boolean()) -> ok.
subscribe(On) -> gen_server:call(?MODULE, {subscribe, self(), On}).

-spec info() -> #{delivered := integer(), forwarded := integer(), failed := integer(),
                  undelivered := [{term(), sderl_route_send:failure(), pos_integer()}]}.
info() ->
    C = sderl_traffic:routed(),
    #{delivered => counters:get(C, 1),
      forwarded => counters:get(C, 2),
      failed => counters:get(C, 3),
      undelivered => lists:sort([{To, Reason, N}
                                 || {{To, Reason}, N, _, _} <- ets:tab2list(?TABLE)])}.

%% A row `{Pid}` in the table for each subscriber, for a successor of this process.
subscribed(Pid, Subs) ->
    true = ets:insert(?TABLE, {Pid}),
    Subs#{Pid => monitor(process, Pid)}.

unsubscribed(Pid, Subs) ->
    true = ets:delete(?TABLE, Pid),
    maps:remove(Pid, Subs).

%% Monitors of subscribers, and the timer of the next pruning.
-type subs() :: #{pid() | prune => reference()}.

-spec init([]) -> {ok, subs()}.
init([]) ->
    {Sound, Unsound} = lists:partition(fun is_pid/1, lists:append(ets:match(?TABLE, {'$1'}))),
    lists:foreach(fun(Term) -> ets:delete(?TABLE, Term) end, Unsound),
    sderl_event:dropped(?MODULE, length(Unsound), #{}),
    {ok, lists:foldl(fun subscribed/2, next(#{}), Sound)}.

next(Subs) -> Subs#{prune => sderl_timer:next(maps:get(prune, Subs, none), 1000, prune)}.

-spec handle_call(term(), gen_server:from(), subs()) -> {reply, term(), subs()}.
handle_call({subscribe, Pid, true}, _, Subs) when is_map_key(Pid, Subs) -> {reply, ok, Subs};
handle_call({subscribe, Pid, true}, _, Subs) when is_pid(Pid) -> {reply, ok, subscribed(Pid, Subs)};
handle_call({subscribe, Pid, false}, _, Subs) ->
    case Subs of
        #{Pid := Mon} -> true = demonitor(Mon, [flush]), {reply, ok, unsubscribed(Pid, Subs)};
        #{} -> {reply, ok, Subs}
    end;
handle_call(_, _, Subs) ->
    sderl_refused:note_message(?MODULE),
    {reply, {error, unknown_call}, Subs}.

-spec handle_cast(term(), subs()) -> {noreply, subs()}.
handle_cast({failed, {Where, List}}, Subs) when is_atom(Where), length(List) >= 0 ->
    lists:foreach(fun({From, To, Reason, N} = Report) ->
                          case is_report(Report) of
                              true -> note(Where, From, receiver(To), Reason, N, Subs);
                              false -> sderl_refused:note_message(?MODULE)
                          end;
                     (_) -> sderl_refused:note_message(?MODULE)
                  end, List),
    {noreply, Subs};
handle_cast(_, Subs) ->
    sderl_refused:note_message(?MODULE),
    {noreply, Subs}.

-spec handle_info(term(), subs()) -> {noreply, subs()}.
handle_info(prune, Subs) ->
    sderl_route_call:prune(),
    {noreply, next(Subs)};
handle_info({'DOWN', _, process, Pid, _}, Subs) when is_pid(Pid) ->
    {noreply, unsubscribed(Pid, Subs)};
handle_info(_, Subs) ->
    sderl_refused:note_message(?MODULE),
    {noreply, Subs}.

is_report({From, _To, Reason, N}) ->
    is_pid(From) andalso is_integer(N) andalso N > 0
        andalso lists:member(Reason, [no_name, no_route, unreachable, busy, hop_limit]).

%% As the sender named it.
receiver({Group, {name, Name}}) -> {Group, Name};
receiver({Group, {Kind, _} = To}) when Kind =:= names; Kind =:= nodes -> {Group, To};
receiver({_Node, {to, To}}) -> To;
receiver({Node, {process, Name}}) -> {Name, Node};
receiver(Other) -> Other.

note(Where, From, To, Reason, N, Subs) ->
    _ = is_map_key(From, Subs) andalso (From ! {sderl_undelivered, To, Reason, N}),
    Key = case ets:member(?TABLE, {To, Reason}) orelse ets:info(?TABLE, size) < ?MOST of
        true -> {To, Reason};
        false -> {other, Reason}
    end,
    Now = now_ms(),
    case ets:lookup(?TABLE, Key) of
        [{_, Sum, At, Untold}] when Now - At < ?QUIET_MS ->
            true = ets:insert(?TABLE, {Key, Sum + N, At, Untold + N});
        Before ->
            {Sum, Untold} = case Before of [{_, S, _, U}] -> {S, U}; [] -> {0, 0} end,
            true = ets:insert(?TABLE, {Key, Sum + N, Now, 0}),
            sderl_event:emit(undelivered, #{to => To, reason => Reason, node => Where, from => From,
                                            messages => Untold + N})
    end.
