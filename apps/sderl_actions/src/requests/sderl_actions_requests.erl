%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_requests).
-moduledoc """
The requests of this monitoring node: those that run, and those that ended in the last ten minutes.

A request ends when all nodes have answered, when somebody stops it, and when nobody has read it for
a minute, so that no abandoned request goes on. Each is in the audit log (`m:sderl_actions_audit`)
when it has ended, and before it begins if it changes anything.
""".

-behaviour(gen_server).

-export([start_link/1, start/2, get/2, list/1, stop/2]).
-export_type([options/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([note/1]).

-import(sderl_mon_clock, [now_ms/0]).

-type options() :: #{unattended_ms := pos_integer()}.

-define(MOST_RUNNING, 32).
-define(MOST_KEPT, 100).
-define(KEPT_MS, 600_000).
%% The most bytes of answers that are kept.
-define(MOST_BYTES, 64_000_000).
-define(LOOK_MS, 500).

-record(run, {
    request :: sderl_actions_request:request(),
    asked :: sderl_actions_request:asked(),
    began :: integer(),
    %% When somebody read it last, and when it ended.
    attended :: integer(),
    over = none :: none | integer(),
    task :: pid(),
    monitor :: reference()
}).
-record(s, {
    options :: options(),
    runs = #{} :: #{binary() => #run{}},
    %% Requests whose start is being noted, by the process that waits for the audit log.
    starting = #{} :: #{reference() => {gen_server:from(), sderl_actions_request:asked(),
                                        sderl_actions_task:task()}}
}).

-doc "Starts it, one a node.".
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

-doc "Begins a request that was checked.".
-spec start(sderl_actions_request:asked(), sderl_actions_task:task()) ->
    ok | {error, too_many | no_audit}.
start(Asked, Task) -> gen_server:call(?MODULE, {start, Asked, Task}, 10_000).

-doc "A request as JSON; reading it is attending it. It needs the role of its action.".
-spec get(binary(), sderl_actions_catalogue:role()) ->
    {ok, iodata()} | {error, not_found | {needs, sderl_actions_catalogue:role()}}.
get(Id, Role) -> gen_server:call(?MODULE, {get, Id, Role}).

-doc "The requests that a role may read, as JSON, the latest first.".
-spec list(sderl_actions_catalogue:role()) -> [iodata()].
list(Role) -> gen_server:call(?MODULE, {list, Role}).

-doc "Stops a request, also on the nodes.".
-spec stop(binary(), sderl_actions:who()) -> ok | {error, not_found | not_running}.
stop(Id, Who) -> gen_server:call(?MODULE, {stop, Id, Who}, 10_000).

-doc false.
-spec init(options()) -> {ok, #s{}}.
init(Options) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    {ok, #s{options = Options}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}} | {noreply, #s{}}.
handle_call({start, Asked, Task}, From, #s{runs = Runs, starting = Starting} = S) ->
    Running = length([R || _ := #run{over = none} = R <- Runs]),
    case Asked of
        _ when Running + map_size(Starting) >= ?MOST_RUNNING -> {reply, {error, too_many}, S};
        #{action := #{kind := look}} -> {reply, ok, begun(Asked, Task, S)};
        _ ->
            %% In another process, because the audit log may wait for its disk.
            {_, Monitor} = spawn_monitor(?MODULE, note, [entry(Asked, #{result => begun})]),
            {noreply, S#s{starting = Starting#{Monitor => {From, Asked, Task}}}}
    end;
handle_call({get, Id, Role}, _From, #s{runs = Runs} = S) ->
    case Runs of
        #{Id := #run{request = Request, asked = #{action := #{role := Needs}}} = Run} ->
            case sderl_actions_catalogue:allows(Role, Needs) of
                true ->
                    {reply, {ok, sderl_actions_request:shown(Request)},
                     S#s{runs = Runs#{Id := Run#run{attended = now_ms()}}}};
                false -> {reply, {error, {needs, Needs}}, S}
            end;
        #{} -> {reply, {error, not_found}, S}
    end;
handle_call({list, Role}, _From, #s{runs = Runs} = S) ->
    Latest = lists:reverse(lists:keysort(#run.began, maps:values(Runs))),
    {reply, [sderl_actions_request:listed(Request)
             || #run{request = Request, asked = #{action := #{role := Needs}}} <- Latest,
                sderl_actions_catalogue:allows(Role, Needs)], S};
handle_call({stop, Id, Who}, _From, #s{runs = Runs} = S) ->
    case Runs of
        #{Id := #run{over = none, asked = #{action := #{name := Name}}} = Run} ->
            ok = sderl_actions_audit:tell(#{who => Who, what => ~"request.stop", request => Id,
                                            args => #{action => Name}, result => ok}),
            {reply, ok, S#s{runs = Runs#{Id := ended(stopped, Run)}}};
        #{Id := _} -> {reply, {error, not_running}, S};
        #{} -> {reply, {error, not_found}, S}
    end;
handle_call(_, _From, S) -> {reply, {error, unknown_call}, S}.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info({node, Id, Node, Told}, #s{runs = Runs0} = S) ->
    case Runs0 of
        #{Id := #run{request = Request, began = Began, over = none} = Run} ->
            Runs = with_room(sderl_actions_request:needed(Told, Request), Runs0),
            Next = sderl_actions_request:told(Node, Told, now_ms() - Began,
                                              ?MOST_BYTES - bytes(Runs), Request),
            {noreply, S#s{runs = Runs#{Id := Run#run{request = Next}}}};
        #{} -> {noreply, S}
    end;
handle_info({'DOWN', Monitor, process, _, Why}, #s{starting = Starting} = S)
  when is_map_key(Monitor, Starting) ->
    {{From, Asked, Task}, Others} = maps:take(Monitor, Starting),
    Next = S#s{starting = Others},
    case Why of
        {noted, ok} ->
            Begun = begun(Asked, Task, Next),
            ok = gen_server:reply(From, ok),
            {noreply, Begun};
        %% An action that the audit log cannot note is refused.
        _ ->
            ok = gen_server:reply(From, {error, no_audit}),
            {noreply, Next}
    end;
handle_info({'DOWN', Monitor, process, _, _}, #s{runs = Runs} = S) ->
    case [Id || Id := #run{monitor = Its, over = none} <- Runs, Its =:= Monitor] of
        [Id] -> {noreply, S#s{runs = Runs#{Id := ended(done, map_get(Id, Runs))}}};
        [] -> {noreply, S}
    end;
handle_info(look, #s{options = #{unattended_ms := Most}, runs = Runs} = S) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    Now = now_ms(),
    Attended = maps:map(fun
        (_, #run{over = none, attended = At} = Run) when Now - At > Most -> ended(unattended, Run);
        (_, Run) -> Run
    end, Runs),
    {noreply, S#s{runs = forgotten(Now, Attended)}};
handle_info(_, S) -> {noreply, S}.

-doc false.
-spec note(sderl_actions_audit_record:entry()) -> no_return().
note(Entry) -> exit({noted, sderl_actions_audit:note(Entry)}).

begun(#{id := Id} = Asked, Task, #s{runs = Runs} = S) ->
    {Pid, Monitor} = sderl_actions_task:start(self(), Id, Task),
    Now = now_ms(),
    Run = #run{request = sderl_actions_request:new(Asked, sderl_mon_clock:wall_ms()),
               asked = Asked, began = Now, attended = Now, task = Pid, monitor = Monitor},
    S#s{runs = Runs#{Id => Run}}.

%% Ends the task, and with it what runs on the nodes.
ended(State, #run{request = Request, began = Began, task = Task, asked = Asked} = Run) ->
    true = exit(Task, kill),
    Over = sderl_actions_request:ended(State, now_ms() - Began, Request),
    ok = sderl_actions_audit:tell(entry(Asked, sderl_actions_request:summary(Over))),
    Run#run{request = Over, over = now_ms()}.

entry(#{id := Id, action := #{name := Name}, args := Args, nodes := Nodes, who := Who}, More) ->
    maps:merge(#{who => Who, what => <<"action.", Name/binary>>, request => Id, args => Args,
                 where => Nodes}, More).

%% Drops the answers of the requests that ended first, until there is room.
with_room(Size, Runs) ->
    case bytes(Runs) + Size > ?MOST_BYTES
         andalso lists:sort([{At, Id} || Id := #run{over = At, request = Request} <- Runs,
                                         At =/= none, sderl_actions_request:bytes(Request) > 0]) of
        [{_, Id} | _] ->
            #{Id := #run{request = Request} = Run} = Runs,
            with_room(Size, Runs#{Id := Run#run{request = sderl_actions_request:let_go(Request)}});
        _ -> Runs
    end.

bytes(Runs) ->
    lists:sum([sderl_actions_request:bytes(Request) || _ := #run{request = Request} <- Runs]).

forgotten(Now, Runs) ->
    Over = lists:reverse(lists:sort([{At, Id} || Id := #run{over = At} <- Runs, At =/= none])),
    Old = [Id || {At, Id} <- Over, Now - At > ?KEPT_MS],
    TooMany = [Id || {_, Id} <- lists:nthtail(min(?MOST_KEPT, length(Over)), Over)],
    maps:without(Old ++ TooMany, Runs).
