%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_server).
-moduledoc """
The process of the alarms: a subscriber of the hub that checks the rules at each frame, once a
second, and when a rule's time has passed (`m:sderl_alarms_look`). It keeps the state
(`m:sderl_alarms_core`) and a file of it, starts deliveries (`m:sderl_alarms_outbox`), and sends
changes to subscribers.

Actions of people are on the disk before they are answered; other changes within a second. If the
disk fails, the alarms go on in memory, `info/0` says so, and it is tried again
(`m:sderl_alarms_keeper`).

Each monitoring node has such a process, which sees the same cluster. Actions of people are sent to
the others, at once and every ten seconds. The node whose master leads delivers to the routes, and
sends the others its queues (`m:sderl_alarms_copy`).
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, act/1, act/2, all/0, find/1, silences/0, counts/0, info/0, rules/0, reload/0,
         subscribe/0]).
-export_type([snapshot/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-import(sderl_mon_clock, [now_ms/0, wall_ms/0]).

-doc "What subscribers get: alarms and the silences in force, as they are shown.".
-type snapshot() :: #{alarms := [sderl_alarms:alarm()], silences := [sderl_alarms:silence()]}.

-define(LOOK_MS, 1_000).
%% A caller waits for the disk, and is answered after four seconds if it hangs.
-define(CALL_MS, 15_000).
%% The least time between two checks of frames.
-define(FRAMES_MS, 500).
-define(STANDING_MS, 5_000).
-define(WORDS_MS, 10_000).
-define(RETRY_MS, 1_000).
-define(NUMBERS_MS, 5_000).
-define(MOST_SUBSCRIBERS, 100).

-record(server, {
    core :: sderl_alarms_core:state(),
    outbox :: sderl_alarms_outbox:outbox(),
    replica = sderl_alarms_replica:new({0, 0}) :: sderl_alarms_replica:replica(),
    rules :: sderl_alarms_file:rules(),
    looking :: sderl_alarms_look:rules(),
    rules_file :: undefined | file:filename_all(),
    state_file :: undefined | file:filename_all(),
    keeper :: sderl_alarms_keeper:keeper(),
    %% The hub and its last messages.
    hub = none :: none | reference(),
    mode = live :: live | synthetic,
    topology = none :: none | sderl_mon_types:topology(),
    frame = none :: none | sderl_mon_types:frame(),
    findings = [] :: [sderl_mon_types:finding()],
    standing = #{} :: #{sderl_mon_types:id() => sderl_mon_types:standing()},
    standing_at = none :: none | integer(),
    looked_at = none :: none | integer(),
    due = none :: none | reference(),
    versions = sderl_alarms_versions:new() :: sderl_alarms_versions:versions(),
    words_at :: integer(),
    sent = #{} :: #{pid() => {Route :: binary(), Item :: binary(), reference()}},
    subscribers = #{} :: #{pid() => reference()},
    %% The number of the last change that they were sent, and when.
    told = {-1, 0} :: {integer(), integer()}
}).

-spec start_link(sderl_alarms_config:settings()) -> gen_server:start_ret().
start_link(Settings) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Settings, []).

-doc "Does an action of a person.".
-spec act(sderl_alarms_core:action()) -> ok | {error, not_found | not_raised | too_many}.
act(Action) -> call({act, Action}).

-doc """
The same, if the alarm as it is shown fulfils a condition. Nothing changes the alarm between the
check and the action.
""".
-spec act(sderl_alarms_core:action(), fun((sderl_alarms_show:alarm()) -> boolean())) ->
    ok | {error, not_found | not_raised | unmet}.
act(Action, Condition) -> call({act, Action, Condition}).

-doc "All alarms, shown.".
-spec all() -> [sderl_alarms_show:alarm()].
all() -> call(all).

-doc "One alarm, shown.".
-spec find(binary()) -> {ok, sderl_alarms_show:alarm()} | error.
find(Id) -> call({find, Id}).

-doc "The silences in force, shown.".
-spec silences() -> [sderl_alarms_show:silence()].
silences() -> call(silences).

-doc "How many alarms there are by severity and state.".
-spec counts() -> #{{minor | major, raised | acknowledged | silenced} => non_neg_integer()}.
counts() -> call(counts).

-doc "The state of the routes and of the file.".
-spec info() -> sderl_alarms:info().
info() -> call(info).

-doc "The rules in force.".
-spec rules() -> [sderl_alarms_rule:rule()].
rules() -> call(rules).

-doc "Reads the file of rules again. With an error the rules stay as they were.".
-spec reload() -> ok | {error, [binary(), ...]}.
reload() -> call(reload).

-doc """
The calling process gets `{sderl_alarms, Snapshot}` when something has changed, at most once a
second, and every five seconds with new numbers. `{error, full}`: there are too many already.
""".
-spec subscribe() -> {ok, snapshot()} | {error, full}.
subscribe() -> call({subscribe, self()}).

call(Request) -> gen_server:call(?MODULE, Request, ?CALL_MS).

%% ---------------------------------------------------------------- the process

-doc false.
-spec init(sderl_alarms_config:settings()) -> {ok, #server{}, {continue, subscribe}}.
init(#{rules := #{rules := Rules, routes := Routes} = All, rules_file := RulesFile,
       state_file := StateFile}) ->
    _ = process_flag(trap_exit, true),
    Now = now_ms(),
    New = #server{core = sderl_alarms_core:new(Now),
                  outbox = sderl_alarms_outbox:new(Routes, #{}),
                  rules = All, looking = sderl_alarms_look:rules(Rules), rules_file = RulesFile,
                  state_file = StateFile, words_at = Now,
                  keeper = sderl_alarms_keeper:new(StateFile, none, ~"")},
    _ = erlang:send_after(?LOOK_MS, self(), look),
    {#server{core = Core} = Restored, Problem} = restore(New),
    #server{state_file = Kept} = Restored,
    Keeper = sderl_alarms_keeper:new(Kept, digest(Restored), Problem),
    {ok, Restored#server{core = sderl_alarms_core:lead(false, Core), keeper = Keeper},
     {continue, subscribe}}.

restore(#server{state_file = undefined} = Server) -> {Server, ~""};
restore(#server{state_file = File} = Server) ->
    case sderl_alarms_store:take(File) of
        ok -> restored(Server);
        {held, Why} ->
            %% Nothing is kept as long as this one runs: it would overwrite the other's file, and
            %% the other may just be restarting.
            ?LOG_ERROR("alarms: ~ts", [Why]),
            {Server#server{state_file = undefined}, Why};
        {error, Why} ->
            ?LOG_ERROR("alarms: ~ts", [Why]),
            {Read, _} = restored(Server),
            {Read, Why}
    end.

restored(#server{state_file = File, rules = #{routes := Routes}} = Server) ->
    case sderl_alarms_store:read(File) of
        none -> {Server, ~""};
        {ok, #{core := Core, outbox := Outbox} = Kept} ->
            Version = maps:get(version, Kept, {0, 0}),
            {Server#server{core = sderl_alarms_core:load(Core, now_ms(), wall_ms()),
                           outbox = sderl_alarms_outbox:new(Routes, Outbox),
                           replica = sderl_alarms_replica:new(Version)}, ~""};
        {error, Why} ->
            ?LOG_ERROR("alarms: ~ts", [Why]),
            {Server, Why}
    end.

-doc false.
-spec handle_continue(subscribe, #server{}) -> {noreply, #server{}}.
handle_continue(subscribe, Server) -> {noreply, subscribe(Server)}.

subscribe(#server{hub = Known, core = Core} = Server) ->
    try sderl_mon_hub:subscribe() of
        {ok, #{topology := Topology, frame := Frame, findings := Findings, mode := Mode}} ->
            Monitor = case Known of none -> monitor(process, sderl_mon_hub); _ -> Known end,
            %% A hub that has just begun knows little yet, and has no findings.
            Server#server{hub = Monitor, topology = Topology, frame = Frame, mode = Mode,
                          findings = Findings, standing_at = none,
                          core = sderl_alarms_core:settle(now_ms(), Core)};
        {error, _} -> again(Server)
    catch
        exit:_ -> again(Server)
    end.

again(Server) ->
    _ = erlang:send_after(?RETRY_MS, self(), subscribe),
    Server#server{hub = none}.

-doc false.
-spec handle_call(term(), gen_server:from(), #server{}) ->
    {reply, term(), #server{}} | {noreply, #server{}}.
handle_call({act, Given}, From, Server) -> acted(Given, From, Server);
handle_call({act, #{id := Id} = Given, Condition}, From, #server{core = Core} = Server) ->
    case sderl_alarms_core:find(Id, Core) of
        {ok, Alarm} ->
            case fulfils(sderl_alarms_show:alarm(Alarm, Core), Condition) of
                true -> acted(Given, From, Server);
                false -> {reply, {error, unmet}, Server}
            end;
        error -> {reply, {error, not_found}, Server}
    end;
handle_call(all, _From, Server) ->
    {reply, map_get(alarms, snapshot(Server)), Server};
handle_call({find, Id}, _From, #server{core = Core} = Server) ->
    {reply, maybe
        {ok, Alarm} ?= sderl_alarms_core:find(Id, Core),
        {ok, sderl_alarms_show:alarm(Alarm, Core)}
    end, Server};
handle_call(silences, _From, Server) ->
    {reply, map_get(silences, snapshot(Server)), Server};
handle_call(counts, _From, #server{core = Core} = Server) ->
    {reply, sderl_alarms_core:counts(Core), Server};
handle_call(info, _From, #server{core = Core, outbox = Outbox, replica = Replica,
                                 keeper = Keeper} = Server) ->
    {reply, (sderl_alarms_core:info(Core))#{
        routes => sderl_alarms_outbox:info(Outbox),
        delivers => sderl_alarms_replica:leads(Replica),
        kept => sderl_alarms_keeper:is_kept(Keeper),
        problem => sderl_alarms_keeper:problem(Keeper)
    }, Server};
handle_call(rules, _From, #server{rules = #{rules := Rules}} = Server) -> {reply, Rules, Server};
handle_call(reload, _From, #server{rules_file = undefined} = Server) ->
    {reply, {error, [~"there is no file of rules: rules_file, or --alarms, names it"]}, Server};
handle_call(reload, _From, #server{rules_file = File} = Server) ->
    case sderl_alarms_file:read(File) of
        {ok, #{rules := Rules, routes := Routes} = All} ->
            {reply, ok, with_copy(fun(Copy) -> {[], sderl_alarms_copy:change(Routes, Copy)} end,
                                  Server#server{rules = All,
                                                looking = sderl_alarms_look:rules(Rules)})};
        {error, _} = Error -> {reply, Error, Server}
    end;
handle_call({subscribe, Pid}, _From, #server{subscribers = Subscribers} = Server) ->
    case Subscribers of
        #{Pid := _} -> {reply, {ok, snapshot(Server)}, Server};
        #{} when map_size(Subscribers) >= ?MOST_SUBSCRIBERS -> {reply, {error, full}, Server};
        #{} ->
            New = Subscribers#{Pid => monitor(process, Pid)},
            {reply, {ok, snapshot(Server)}, Server#server{subscribers = New}}
    end;
handle_call(_, _From, Server) -> {reply, {error, unknown_call}, Server}.

acted(Given, From, #server{core = Core} = Server) ->
    Action = sderl_alarms_core:in_order(Given, Core),
    case do(Action, Server) of
        {ok, New} ->
            _ = spread([Action], Server),
            {noreply, keep(wait(From, deliver(New)))};
        {error, _} = Error -> {reply, Error, Server}
    end.

%% A condition that raises an exception counts as unmet, and must not end this process.
fulfils(Shown, Condition) ->
    try Condition(Shown) =:= true
    catch _:_ -> false
    end.

snapshot(#server{core = Core}) ->
    #{alarms => [sderl_alarms_show:alarm(Alarm, Core) || Alarm <- sderl_alarms_core:alarms(Core)],
      silences => [sderl_alarms_show:silence(S) || S <- sderl_alarms_core:silences(Core)]}.

do(Action, #server{core = Core} = Server) ->
    Wall = wall_ms(),
    maybe
        {ok, Notes, Core1} ?= sderl_alarms_core:act(Action, now_ms(), Wall, Core),
        {ok, add(Notes, Wall, Server#server{core = Core1})}
    end.

-doc false.
-spec handle_cast(term(), #server{}) -> {noreply, #server{}}.
handle_cast({sderl_alarms_words, 1, Words}, Server) ->
    {noreply, lists:foldl(fun(Action, Acc) ->
        case do(Action, Acc) of
            {ok, New} -> New;
            %% Perhaps the alarm is not raised here yet; actions are sent again.
            {error, _} -> Acc
        end
    end, Server, sderl_alarms_message:clean(Words))};
handle_cast(Message, Server) ->
    case sderl_alarms_message:check(Message) of
        {ok, Told} ->
            {noreply, with_copy(fun(Copy) -> sderl_alarms_copy:hear(Told, Copy) end, Server)};
        {error, not_a_message} -> {noreply, Server}
    end.

-doc false.
-spec handle_info(term(), #server{}) -> {noreply, #server{}}.
handle_info(look, Server) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    {noreply, looked(words(late(lead(standing(Server)))))};
handle_info(due, Server) -> {noreply, looked(look(Server#server{due = none}))};
handle_info({sderl_mon, _, _} = Message, Server) ->
    case sderl_mon_message:check_news(Message) of
        {ok, News} -> {noreply, heard(News, Server)};
        {error, not_a_message} -> {noreply, Server}
    end;
handle_info(subscribe, #server{hub = none} = Server) -> {noreply, subscribe(Server)};
handle_info({sderl_alarms_delivered, Pid, Result}, Server) ->
    {noreply, ended(Pid, Result, Server)};
handle_info({sderl_alarms_late, Pid}, #server{sent = Sent} = Server) ->
    _ = [exit(Pid, kill) || is_map_key(Pid, Sent)],
    {noreply, Server};
handle_info({'DOWN', Hub, process, _, _}, #server{hub = Hub} = Server) ->
    {noreply, again(Server)};
handle_info({'DOWN', _, process, Pid, Reason}, #server{subscribers = Subscribers} = Server) ->
    Left = Server#server{subscribers = maps:remove(Pid, Subscribers)},
    {noreply, ended(Pid, {error, sderl_mon_text:text("the delivery failed: ~0tP", [Reason, 12])},
                    Left)};
handle_info(Message, #server{keeper = Keeper} = Server) ->
    case sderl_alarms_keeper:hear(Message, Keeper) of
        {again, New} -> {noreply, keep(Server#server{keeper = New})};
        {ok, New} -> {noreply, Server#server{keeper = New}};
        none -> {noreply, Server}
    end.

heard({sderl_mon, topology, Topology}, Server) -> Server#server{topology = Topology};
heard({sderl_mon, frame, Frame}, Server) ->
    looked(soon(Server#server{frame = Frame}));
heard({sderl_mon, findings, Findings}, Server) -> Server#server{findings = Findings};
heard({sderl_mon, anew, _}, Server) -> subscribe(Server);
heard(_, Server) -> Server.

%% ---------------------------------------------------------------- a check

standing(#server{hub = none} = Server) -> Server;
standing(#server{standing_at = At, topology = Topology, versions = Versions} = Server) ->
    case now_ms() of
        Now when At =:= none; Now - At >= ?STANDING_MS ->
            try sderl_mon_hub:standing() of
                Standing ->
                    Server#server{standing = Standing, standing_at = Now,
                                  versions = sderl_alarms_versions:count(Topology, Standing,
                                                                         Versions)}
            catch
                exit:_ -> Server#server{standing_at = Now}
            end;
        _ -> Server
    end.

%% Frames may come ten times a second, which no alarm needs. The latest one is checked in time,
%% without waiting for another frame.
soon(#server{looked_at = At, due = Known} = Server) ->
    Left = case Known of none -> infinity; _ -> erlang:cancel_timer(Known) end,
    case now_ms() of
        Now when At =:= none; Now - At >= ?FRAMES_MS -> look(Server);
        %% The message of the timer has come already.
        _ when Left =:= false -> Server;
        Now -> due_in(min(At + ?FRAMES_MS - Now, Left), Server)
    end.

%% Checks when no frame has come: some conditions need none.
late(#server{looked_at = At} = Server) ->
    case now_ms() of
        Now when At =:= none; Now - At > ?LOOK_MS -> look(Server);
        _ -> Server
    end.

%% Without a hub nothing is checked.
look(#server{hub = none} = Server) -> Server;
look(#server{topology = Topology, frame = Frame, findings = Findings, standing = Standing,
             versions = Versions, looking = Rules, core = Core} = Server) ->
    Look = sderl_alarms_look:take(#{topology => Topology, frame => Frame, findings => Findings,
                                    standing => Standing, versions => Versions}, Rules),
    {Now, Wall} = {now_ms(), wall_ms()},
    {Notes, Core1} = sderl_alarms_core:step(
        sderl_alarms_look:passed(Look),
        fun(Alarm) -> sderl_alarms_look:absent(Alarm, Look) end, Now, Wall, Core
    ),
    add(Notes, Wall, look_again(Now, Server#server{core = Core1, looked_at = Now})).

%% Checks again when the time of a rule has passed, without waiting for the next frame.
look_again(Now, #server{core = Core, due = Known} = Server) ->
    _ = is_reference(Known) andalso erlang:cancel_timer(Known),
    case sderl_alarms_core:due(Core) of
        none -> Server#server{due = none};
        At -> due_in(max(1, At - Now), Server)
    end.

due_in(Ms, Server) -> Server#server{due = erlang:send_after(Ms, self(), due)}.

looked(Server) -> told(keep_later(deliver(Server))).

%% ---------------------------------------------------------------- deliveries

add(Notes, Wall, Server) ->
    with_copy(fun(Copy) -> sderl_alarms_copy:add(Notes, Wall, Copy) end, Server).

deliver(#server{outbox = Outbox, replica = Replica} = Server) ->
    case sderl_alarms_replica:leads(Replica) of
        false -> Server;
        true ->
            {Due, Outbox1} = sderl_alarms_outbox:due(now_ms(), Outbox),
            lists:foldl(fun start/2, Server#server{outbox = Outbox1}, Due)
    end.

start({#{name := Name} = Route, #{id := Id} = Item, Attempt}, #server{sent = Sent} = Server) ->
    {Pid, Monitor} = sderl_alarms_deliver:start(Route, Item, Attempt),
    Server#server{sent = Sent#{Pid => {Name, Id, Monitor}}}.

ended(Pid, Result, #server{sent = Sent} = Server) ->
    case maps:take(Pid, Sent) of
        {{Name, Id, Monitor}, Left} ->
            true = demonitor(Monitor, [flush]),
            log(Name, Result),
            deliver(with_copy(fun(Copy) ->
                sderl_alarms_copy:done(Name, Id, Result, now_ms(), Copy)
            end, Server#server{sent = Left}));
        error -> Server
    end.

log(_, ok) -> ok;
log(Name, {error, Why}) -> ?LOG_DEBUG("alarms: route ~ts: ~ts", [Name, Why]).

%% ---------------------------------------------------------------- others

%% A made-up cluster has made-up monitoring nodes.
is_chosen(#server{mode = synthetic}) -> true;
is_chosen(#server{topology = #{monitors := [_ | _] = Monitors}}) ->
    Self = atom_to_binary(node()),
    [] =/= [here || #{node := Node, master := true} <- Monitors, Node =:= Self];
is_chosen(#server{}) -> false.

others(#server{mode = synthetic}) -> [];
others(#server{}) ->
    #{monitors := Monitors} = sderl_mon:config(),
    Monitors -- [node()].

tell(Node, Message) -> sderl_mon_tell:cast(Node, ?MODULE, Message).

spread(Words, Server) ->
    [tell(Node, {sderl_alarms_words, 1, Words}) || Node <- others(Server)].

with_copy(Do, #server{core = Core, outbox = Outbox, replica = Replica} = Server) ->
    {Tell, {NewCore, NewOutbox, NewReplica}} = Do({Core, Outbox, Replica}),
    _ = [tell(Node, Message) || {To, Message} <- Tell,
                                Node <- case To of others -> others(Server); _ -> [To] end],
    Server#server{core = NewCore, outbox = NewOutbox, replica = NewReplica}.

lead(Server) ->
    with_copy(fun(Copy) ->
        sderl_alarms_copy:look(is_chosen(Server), others(Server), now_ms(), wall_ms(), Copy)
    end, Server).

words(#server{words_at = At, core = Core} = Server) ->
    case now_ms() of
        Now when Now - At >= ?WORDS_MS ->
            _ = case sderl_alarms_core:words(Core) of
                [] -> [];
                Words -> spread(Words, Server)
            end,
            with_copy(fun sderl_alarms_copy:still/1, Server#server{words_at = Now});
        _ -> Server
    end.

%% ---------------------------------------------------------------- the file and subscribers

wait(From, #server{keeper = Keeper} = Server) ->
    Server#server{keeper = sderl_alarms_keeper:wait(From, Keeper)}.

keep(#server{keeper = Keeper} = Server) ->
    Server#server{keeper = sderl_alarms_keeper:keep(
        digest(Server), fun() -> everything(Server) end, now_ms(), Keeper
    )}.

keep_later(#server{keeper = Keeper} = Server) ->
    Server#server{keeper = sderl_alarms_keeper:keep_later(
        digest(Server), fun() -> everything(Server) end, now_ms(), Keeper
    )}.

digest(#server{core = Core, outbox = Outbox}) ->
    #{seq := Seq} = sderl_alarms_core:info(Core),
    {Seq, sderl_alarms_outbox:save(Outbox)}.

everything(#server{core = Core, outbox = Outbox, replica = Replica}) ->
    #{core => sderl_alarms_core:save(Core), outbox => sderl_alarms_outbox:save(Outbox),
      version => sderl_alarms_replica:version(Replica)}.

told(#server{subscribers = Subscribers} = Server) when map_size(Subscribers) =:= 0 -> Server;
told(#server{subscribers = Subscribers, core = Core, told = {Before, At}} = Server) ->
    Now = now_ms(),
    case sderl_alarms_core:info(Core) of
        #{seq := Before} when Now - At < ?NUMBERS_MS -> Server;
        #{seq := Seq} ->
            Shown = snapshot(Server),
            _ = [Pid ! {sderl_alarms, Shown} || Pid := _ <- Subscribers],
            Server#server{told = {Seq, Now}}
    end.

-doc false.
-spec terminate(term(), #server{}) -> ok.
terminate(_, #server{sent = Sent, state_file = File, keeper = Keeper} = Server) ->
    _ = [exit(Pid, kill) || Pid := _ <- Sent],
    {Write, _} = sderl_alarms_keeper:finish(digest(Server), Keeper),
    _ = [sderl_alarms_store:write(File, everything(Server)) || Write],
    case File of
        undefined -> ok;
        _ -> sderl_alarms_store:leave(File)
    end.
