%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_server).
-moduledoc """
Keeps one cluster as its newest revision says: looks at hosts and nodes, asks
`m:sderl_ops_reconcile` what is to be done, has that done, and looks again.

It decides nothing itself and blocks nowhere: looks and steps are processes of their own. What must
not be lost is stored before it is acted on, so the process, or the machine, may end at any point;
the next one begins with what is stored and with what it sees.
""".

-behaviour(gen_server).

-export([start_link/1]).
-export([hello/0, current/0, adopt/3, status/0, prepared/1]).
-export([plan/2, pause/1, resume/1, set_aside/2, take_back/2, watch/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2,
         format_status/1]).
-export_type([event/0, state/0]).

-import(sderl_ops_wire, [text/1]).

-doc """
`steady`: all is as the file says. `failed`: as good as that, but something was given up, or rolled
back. `destroyed`: nothing is left, and nothing is to be.
""".
-type state() :: none | working | steady | paused | failed | destroyed.

-doc "What `watch/1` sends: `{sderl_ops, Event}`.".
-type event() ::
    {progress, Done :: non_neg_integer(), Total :: pos_integer(), unicode:chardata()}
    | {note, unicode:chardata()}
    | {state, state(), Problems :: [unicode:chardata()]}.

-record(s, {
    folder :: file:filename(),
    store = none :: none | {Cluster :: binary(), Revision :: pos_integer()},
    prepared :: sderl_ops_revision:prepared() | undefined,
    desired :: sderl_ops_desired:desired() | undefined,
    memory = sderl_ops_memory:new() :: sderl_ops_memory:memory(),
    observed = sderl_ops_observed:new() :: sderl_ops_observed:observed(),
    %% Those of the revision, and those that it no longer has where something of us is left.
    hosts = #{} :: #{sderl_ops_desired:host_id() => sderl_ops_host:host()},
    %% In a function, so that no report of a crash has it.
    cookie :: sderl_ops_secret:value() | undefined,
    %% Why nothing can be done at all.
    trouble = none :: none | unicode:chardata(),
    envoy :: {Of :: map(), pid()} | undefined,
    %% Groups that the service has made.
    made = [] :: [binary()],
    %% Steps that are done now, and steps that ended and whose host has not been looked at since.
    steps = #{} :: #{reference() => {sderl_ops_step:step(), pid()}},
    ended = #{} :: #{sderl_ops_step:step() => Ended :: integer()},
    %% Who looks at a host, or at the nodes, and when that began.
    looks = #{} :: #{reference() => {sderl_ops_look:what(), pid(), Began :: integer()}},
    looked = #{} :: #{sderl_ops_look:what() => Began :: integer()},
    %% The same of those looks that saw something.
    seen = #{} :: #{sderl_ops_look:what() => Began :: integer()},
    result = #{waiting => [], done => false} :: map(),
    told = none :: term(),
    count = 0 :: non_neg_integer(),
    %% Of all revisions.
    archives = #{} :: #{sderl_ops_desired:sha() => file:filename_all()},
    %% A decision is due.
    deciding = false :: boolean(),
    %% When the last step ended.
    quiet_since = never :: integer() | never,
    watchers = #{} :: #{reference() => pid()}
}).

%% How often hosts and nodes are looked at when nothing is done to them.
-define(LOOK_MS, 2_000).
-define(TICK_MS, 500).
-define(ENVOY_MS, 1_000).
%% A decision costs by the number of instances (a quarter of a second of reductions at 10,000), so
%% what happens within such a time is decided about together.
-define(DECIDE_MS, 10).
-define(INSTANCES_PER_MS, 40).
%% Looks are programs of the operating system.
-define(MOST_LOOKS, 16).

-doc "Starts it with what is stored in the service's folder.".
-spec start_link(file:filename()) -> gen_server:start_ret().
start_link(Folder) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Folder, []).

-doc "The cluster and its newest revision.".
-spec hello() -> none | {Cluster :: binary(), Revision :: pos_integer()}.
hello() -> call(hello).

-doc """
The newest revision and its file, for one who makes the next one of it; and the families that were
rolled back from it.
""".
-spec current() -> none | {pos_integer(), sderl_ops_file:file(), [Family :: binary()]}.
current() -> call(current).

-doc """
Makes a new revision what is to be. `After` is the revision that the caller had seen: if there is
another one by now, somebody else was faster, and nothing is changed.
""".
-spec adopt(sderl_ops_revision:prepared(), After :: non_neg_integer(),
            #{by := binary(), why := binary(), force := boolean()}) ->
    {ok, Revision :: pos_integer()} | {error, unicode:chardata()}.
adopt(Prepared, After, About) -> call({adopt, Prepared, After, About}).

-doc """
What would change if this were adopted: `changes` for a person, the `steps` in an order in which
they may be done, and what the rules of upgrades refuse.
""".
-spec plan(sderl_ops_revision:prepared(), Force :: boolean()) ->
    #{changes := [binary()], steps := [binary()], refused := [binary()]}.
plan(Prepared, Force) -> call({plan, Prepared, Force}).

-doc "How the cluster is.".
-spec status() -> sderl_ops_wire:status() | none.
status() -> call(status).

-doc "What a file of this cluster asks of the server before it can be adopted.".
-spec prepared(binary()) -> {ok, After :: non_neg_integer()} | {error, unicode:chardata()}.
prepared(Cluster) ->
    case hello() of
        none ->
            {ok, 0};
        {Cluster, Revision} ->
            {ok, Revision};
        {Other, Revision} ->
            case call(is_over) of
                true -> {ok, Revision};
                false ->
                    {error, ["the service of this folder keeps the cluster ", Other,
                             ", and the file is of ", Cluster, ": name another folder with --dir"]}
            end
    end.

-doc "Begins nothing any more until `resume/1`.".
-spec pause(By :: binary()) -> state().
pause(By) -> call({remember, By, pause, fun sderl_ops_memory:pause/1}).

-doc "Goes on, and tries again what had been given up.".
-spec resume(By :: binary()) -> state().
resume(By) -> call({remember, By, resume, fun sderl_ops_memory:resume/1}).

-doc "Takes an instance out of service: it leaves its groups and is stopped.".
-spec set_aside(By :: binary(), sderl_ops_desired:instance_id()) ->
    ok | {error, unicode:chardata()}.
set_aside(By, Id) -> call({aside, By, Id, {drain, Id}, fun sderl_ops_memory:set_aside/2}).

-doc "Puts it into service again.".
-spec take_back(By :: binary(), sderl_ops_desired:instance_id()) ->
    ok | {error, unicode:chardata()}.
take_back(By, Id) -> call({aside, By, Id, {undrain, Id}, fun sderl_ops_memory:take_back/2}).

-doc "Sends `t:event/0` to a process until it ends, the state at once.".
-spec watch(pid()) -> ok.
watch(Pid) -> call({watch, Pid}).

call(Request) -> gen_server:call(?MODULE, Request, 60_000).

%% ---------------------------------------------------------------- beginning

-doc false.
-spec init(file:filename()) -> {ok, #s{}, {continue, begin_with_stored}} | {stop, term()}.
init(Folder) ->
    process_flag(trap_exit, true),
    case sderl_ops_store:open(filename:join(Folder, "store")) of
        ok ->
            _ = erlang:send_after(?TICK_MS, self(), tick),
            {ok, #s{folder = Folder}, {continue, begin_with_stored}};
        {error, Why} ->
            {stop, {store, Why}}
    end.

-doc false.
-spec handle_continue(begin_with_stored, #s{}) -> {noreply, #s{}} | {stop, term(), #s{}}.
handle_continue(begin_with_stored, S) ->
    case sderl_ops_store:clusters() of
        [] -> {noreply, S};
        Clusters ->
            {_, Newest} = lists:max([{newest(Cluster), Cluster} || Cluster <- Clusters]),
            {noreply, restore(Newest, S)}
    end.

%% Of several all but the newest have been destroyed.
newest(Cluster) ->
    {_, #{at := At}} = sderl_ops_store:latest(Cluster),
    At.

restore(Cluster, S) ->
    {Revision, Stored} = sderl_ops_store:latest(Cluster),
    #{memory := Memory, made := Made} =
        maps:merge(#{memory => sderl_ops_memory:new(), made => []}, sderl_ops_store:all(Cluster)),
    take(Stored, Revision, S#s{store = {Cluster, Revision}, memory = Memory, made = Made}).

%% A revision becomes what is to be.
take(Stored, Revision, #s{memory = Memory, hosts = Before, made = Made} = S) ->
    #{prepared := #{file := File, hosts := Hosts} = Prepared} = Stored,
    #{cluster := Cluster} = File,
    {ok, Desired} = desired(Stored, Revision),
    Former = fun(Number) -> former(Cluster, Number) end,
    Complete = sderl_ops_upgrade:with_former(Desired, Memory, Former),
    #{groups := Groups} = Complete,
    AllMade = lists:usort([Name || #{name := Name} <- Groups] ++ Made),
    ok = sderl_ops_store:put(Cluster, made, AllMade),
    Known = maps:merge(maps:merge(earlier(hosts, Cluster), Before), Hosts),
    begin_envoy(S#s{prepared = Prepared, desired = Complete, hosts = Known, made = AllMade,
                    archives = earlier(archives, Cluster),
                    store = {Cluster, Revision}}).

former(Cluster, Number) ->
    maybe
        {ok, Stored} ?= sderl_ops_store:revision(Cluster, Number),
        {ok, _} ?= desired(Stored, Number)
    else
        {error, _} -> error
    end.

desired(#{prepared := Prepared, force := Force}, Revision) ->
    case sderl_ops_revision:desired(Prepared, Revision) of
        {ok, #{upgrade := Upgrade} = Desired} ->
            {ok, Desired#{upgrade := Upgrade#{force => Force}}};
        {error, _} = Error ->
            Error
    end.

%% What is left on a host that the file no longer has is taken away there.
%% A family that goes back needs the archive of before.
earlier(What, Cluster) ->
    lists:foldl(fun({_, #{prepared := Prepared}}, Known) ->
        maps:merge(Known, map_get(What, Prepared))
    end, #{}, sderl_ops_store:revisions(Cluster)).

%% Without the cookie nothing is done, and it is asked for again: a file of it may be late.
begin_envoy(#s{prepared = #{file := #{cookie := Secret} = File}, folder = Folder} = S) ->
    case sderl_ops_cookie:of_cluster(Secret, Folder) of
        {ok, Cookie} ->
            begin_envoy(maps:with([cluster, names], File), Cookie, S#s{trouble = none});
        {error, Sentence} ->
            again_soon(end_envoy(S#s{trouble = ["nothing can be done: ", Sentence]}))
    end.

begin_envoy(Of, Cookie, #s{envoy = {Of, Pid}, cookie = Before} = S) when is_pid(Pid) ->
    case Before() =:= Cookie() of
        true -> S;
        false -> start_envoy(Of, Cookie, S)
    end;
begin_envoy(Of, Cookie, S) ->
    start_envoy(Of, Cookie, S).

start_envoy(Of, Cookie, S0) ->
    S = end_envoy(S0),
    {ok, Envoy} = sderl_ops_envoy:start_link(Of#{cookie => Cookie}),
    S#s{envoy = {Of, Envoy}, cookie = Cookie}.

end_envoy(#s{envoy = undefined} = S) ->
    S;
end_envoy(#s{envoy = {_, Envoy}} = S) ->
    unlink(Envoy),
    exit(Envoy, shutdown),
    S#s{envoy = undefined, cookie = undefined}.

again_soon(S) ->
    _ = erlang:send_after(?ENVOY_MS, self(), envoy),
    S.

%% ---------------------------------------------------------------- requests

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call(hello, _, #s{store = Store} = S) ->
    {reply, Store, S};
handle_call(is_over, _, S) ->
    {reply, state(S) =:= destroyed, S};
handle_call(current, _, #s{store = none} = S) ->
    {reply, none, S};
handle_call(current, _, #s{store = {_, Revision}, prepared = #{file := File}} = S) ->
    #s{memory = #{failed := Failed}} = S,
    {reply, {Revision, File, [Family || Family := #{revision := Of} <- Failed, Of =:= Revision]},
     S};
handle_call({adopt, Prepared, After, About}, _, S) ->
    adopt_now(Prepared, After, About, S);
handle_call({plan, Prepared, Force}, _, S) ->
    {reply, planned(#{prepared => Prepared, force => Force}, S), S};
handle_call(status, _, #s{store = none} = S) ->
    {reply, none, S};
handle_call(status, _, S) ->
    {reply, sderl_ops_status:status(view(S)), S};
handle_call({remember, By, What, Change}, _, #s{store = {Cluster, _}} = S0) ->
    S = step(remember(Change(S0#s.memory), S0)),
    note(Cluster, By, What, ok),
    {reply, state(S), S};
handle_call({remember, _, _, _}, _, S) ->
    {reply, none, S};
handle_call({aside, By, Id, What, Change}, _, #s{desired = #{instances := Instances}} = S)
  when is_map_key(Id, Instances) ->
    {Cluster, _} = S#s.store,
    note(Cluster, By, What, ok),
    {reply, ok, step(remember(Change(Id, S#s.memory), S))};
handle_call({aside, _, Id, _, _}, _, S) ->
    {reply, {error, ["there is no instance ", Id, ": `status` lists them"]}, S};
handle_call({watch, Pid}, _, #s{watchers = Watchers} = S) ->
    Pid ! {sderl_ops, {state, state(S), problems(S)}},
    {reply, ok, S#s{watchers = Watchers#{monitor(process, Pid) => Pid}}}.

planned(Stored, #s{desired = Before, observed = Observed, memory = Memory} = S) ->
    Next = case S#s.store of none -> 1; {_, Revision} -> Revision + 1 end,
    {ok, Desired} = desired(Stored, Next),
    Old = case Before of undefined -> none; _ -> Before end,
    #{steps := Steps, refused := Refused} =
        sderl_ops_plan:plan(Desired, Observed, Memory, now_ms()),
    #{
        changes => [text(Line) || Line <- sderl_ops_diff:lines(Old, Desired)],
        steps => [text(sderl_ops_step:words(Step)) || Step <- Steps],
        refused => [text(sderl_ops_plan:words(Why)) || Why <- Refused]
    }.

adopt_now(Prepared, After, About, #s{store = Store} = S) ->
    #{file := #{cluster := Cluster}} = Prepared,
    case Store of
        none ->
            added(Cluster, About, Prepared, S);
        {Cluster, After} ->
            added(Cluster, About, Prepared, S);
        {Stored, Newer} when Stored =:= Cluster; Newer =/= After ->
            {ok, #{by := Other}} = sderl_ops_store:revision(Stored, Newer),
            {reply, {error, io_lib:format("~ts has made revision ~b meanwhile: look at it "
                                          "(`status`, `plan`), and ask again", [Other, Newer])}, S};
        {_, After} ->
            adopt_other(Cluster, About, Prepared, S)
    end.

%% Of the one before nothing must be left.
adopt_other(Cluster, About, Prepared, #s{store = {Before, _}} = S) ->
    case state(S) of
        destroyed ->
            added(Cluster, About, Prepared,
                  S#s{memory = sderl_ops_memory:new(), made = [], ended = #{}, hosts = #{},
                      observed = sderl_ops_observed:new()});
        _ ->
            {reply, {error, ["of the cluster ", Before, " something is left, or may be: look at it "
                             "(`status`), and ask again"]}, S}
    end.

%% What cannot be begun is not stored.
added(Cluster, About, #{file := #{cookie := Secret}} = Prepared, S) ->
    case sderl_ops_cookie:of_cluster(Secret, S#s.folder) of
        {ok, _} -> add(Cluster, About, Prepared, S);
        {error, _} = Error -> {reply, Error, S}
    end.

add(Cluster, #{by := By, why := Why} = About, Prepared, S0) ->
    Stored = About#{prepared => Prepared, at => now_ms()},
    Revision = sderl_ops_store:add_revision(Cluster, Stored),
    S1 = take(Stored, Revision, S0#s{count = 0, told = none}),
    note(Cluster, By, {revision, Revision, Why}, ok),
    {reply, {ok, Revision}, step(look_at_all(S1))}.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, S}.

%% ---------------------------------------------------------------- what ends

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info(tick, S) ->
    _ = erlang:send_after(?TICK_MS, self(), tick),
    {noreply, decide_soon(look(S))};
handle_info(decide, S) ->
    {noreply, step(S#s{deciding = false})};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{steps = Steps} = S)
  when is_map_key(Ref, Steps) ->
    {noreply, decide_soon(step_ended(Ref, Outcome, S))};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{looks = Looks} = S)
  when is_map_key(Ref, Looks) ->
    {noreply, decide_soon(look(look_ended(Ref, Outcome, S)))};
handle_info({'DOWN', Ref, process, _, _}, #s{watchers = Watchers} = S) ->
    {noreply, S#s{watchers = maps:remove(Ref, Watchers)}};
handle_info({'EXIT', Envoy, _}, #s{envoy = {_, Envoy}} = S) ->
    {noreply, again_soon(S#s{envoy = undefined})};
handle_info(envoy, #s{envoy = undefined, desired = #{}} = S) ->
    {noreply, begin_envoy(S)};
handle_info(_, S) ->
    {noreply, S}.

-doc false.
-spec terminate(term(), #s{}) -> ok.
terminate(_, _) -> sderl_ops_store:close().

%% What is to be and what is seen may be of many thousand instances.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) ->
    maps:map(fun
        (state, #s{store = Store, steps = Steps}) ->
            #{store => Store, steps => [Step || _ := {Step, _} <- Steps]};
        (message, {adopt, _, After, About}) ->
            {adopt, After, About};
        (_, Value) ->
            Value
    end, Status).

step_ended(Ref, Outcome, #s{steps = Steps, ended = Ended, memory = Memory, count = Count} = S) ->
    {{Step, _}, Left} = maps:take(Ref, Steps),
    Result = case Outcome of
                 {step, Given} -> Given;
                 Crash -> {error, {crashed, Crash}}
             end,
    Worded = case Result of
                 ok -> ok;
                 {error, Why} -> {error, text(sderl_ops_work:format_error(Why))}
             end,
    {After, Notes} = sderl_ops_reconcile:ended(Step, Worded, Memory, now_ms()),
    {Cluster, _} = S#s.store,
    note(Cluster, ~"service", Step, Worded),
    look(tell_notes(Notes, remember(After, S#s{
        steps = Left,
        count = Count + 1,
        quiet_since = erlang:monotonic_time(millisecond),
        ended = Ended#{Step => stamp()}
    }))).

%% ---------------------------------------------------------------- looking

%% Looks that go on are at hosts as they were known before; what they see is not wanted any more.
look_at_all(S) -> look(S#s{looks = #{}, looked = #{}, seen = #{}}).

%% Begins the looks that are due: at hosts where a step ended since, and at all after a while.
look(#s{desired = undefined} = S) ->
    S;
look(#s{looks = Looks} = S) ->
    Busy = [What || _ := {What, _, _} <- Looks],
    Due = [What || What <- [nodes | [{host, Id} || Id <- watched_hosts(S)]],
                   not lists:member(What, Busy), is_due(What, S)],
    %% Who waits longest is first, so that hosts that hang keep nobody from being looked at.
    Sorted = [What || {_, What} <- lists:sort([{last_look(What, S), What} || What <- Due])],
    lists:foldl(fun begin_look/2, S, lists:sublist(Sorted, max(0, ?MOST_LOOKS - length(Busy)))).

last_look(What, #s{looked = Looked}) ->
    case Looked of
        #{What := Began} -> {at, Began};
        #{} -> before
    end.

%% A step that ended is waited for until its host was looked at, whatever is left there.
watched_hosts(#s{desired = #{hosts := Hosts}, memory = #{assigned := Assigned} = Memory,
                 observed = #{hosts := Seen}, ended = Ended}) ->
    Left = [Id || Id := #{instances := Instances} <- Seen, Instances =/= #{}],
    Changed = [Id || Step := _ <- Ended, {host, Id} <- sderl_ops_look:after_step(Step, Memory)],
    lists:usort(maps:keys(Hosts) ++ maps:values(Assigned) ++ Left ++ Changed).

is_due(What, #s{looked = Looked, ended = Ended}) ->
    case Looked of
        #{What := Began} ->
            stamp() - Began > ?LOOK_MS * 1000
                orelse lists:any(fun(Step) ->
                    map_get(Step, Ended) > Began
                end, [Step || Step := _ <- Ended]);
        #{} ->
            true
    end.

%% Looks and steps answer with their exit reason.
-dialyzer({nowarn_function, [begin_look/2, begin_step/2]}).

begin_look(What, #s{looks = Looks} = S) ->
    #s{hosts = Hosts} = S,
    Envoy = envoy(S),
    Nodes = case What of nodes -> node_names(S); _ -> #{} end,
    {Pid, Ref} = spawn_opt(fun() ->
        exit({look, sderl_ops_look:at(What, Hosts, Envoy, Nodes)})
    end, [link, monitor]),
    S#s{looks = Looks#{Ref => {What, Pid, stamp()}}}.

envoy(#s{envoy = undefined}) -> undefined;
envoy(#s{envoy = {_, Envoy}}) -> Envoy.

%% The nodes of all instances that have a host.
node_names(#s{memory = #{assigned := Assigned}, hosts = Hosts}) ->
    #{Id => <<Id/binary, $@, Address/binary>>
      || Id := HostId <- Assigned, #{address := Address} <- [maps:get(HostId, Hosts, none)]}.

look_ended(Ref, Outcome, #s{looks = Looks, looked = Looked} = S) ->
    #s{observed = Observed, made = Made, seen = SeenAt} = S,
    {{What, _, Began}, Left} = maps:take(Ref, Looks),
    Seen = case Outcome of
               {look, Given} -> Given;
               _ -> unknown
           end,
    Now = case Seen of unknown -> SeenAt; _ -> SeenAt#{What => Began} end,
    release(S#s{looks = Left, looked = Looked#{What => Began}, seen = Now,
                observed = sderl_ops_look:put(What, Seen, Made, Observed)}).

%% Steps that ended before their host, or the nodes, were looked at are seen now.
release(#s{ended = Ended, seen = Seen, memory = Memory} = S) ->
    S#s{ended = maps:filter(fun(Step, At) ->
        not sderl_ops_look:is_seen(Step, At, Seen, Memory)
    end, Ended)}.

%% ---------------------------------------------------------------- deciding

decide_soon(#s{deciding = true} = S) ->
    S;
decide_soon(#s{desired = undefined} = S) ->
    S;
decide_soon(#s{desired = #{instances := Instances}} = S) ->
    _ = erlang:send_after(?DECIDE_MS + map_size(Instances) div ?INSTANCES_PER_MS, self(), decide),
    S#s{deciding = true}.

step(#s{desired = undefined} = S) ->
    S;
%% Until somebody can talk to the nodes, every step would fail.
step(#s{envoy = undefined} = S) ->
    tell_state(S);
step(#s{desired = Desired, observed = Observed, memory = Memory} = S) ->
    #s{steps = Steps, ended = Ended} = S,
    Running = [Step || _ := {Step, _} <- Steps] ++ maps:keys(Ended),
    #{start := Start, memory := After, notes := Notes} = Result =
        sderl_ops_reconcile:steps(Desired, Observed, Memory, Running, now_ms()),
    S1 = tell_notes(Notes, remember(After, S#s{result = Result})),
    tell_state(lists:foldl(fun begin_step/2, S1, Start)).

begin_step(Step, #s{steps = Steps} = S) ->
    #s{desired = Desired, observed = Observed, memory = Memory, hosts = Hosts,
       envoy = {_, Envoy}, cookie = Cookie, made = Made, archives = Archives} = S,
    Context = #{desired => Desired, observed => Observed, memory => Memory, hosts => Hosts,
                archives => Archives, envoy => Envoy, cookie => Cookie, made => Made,
                ours => maps:keys(map_get(assigned, Memory))},
    %% It ends with this process: the next one begins with none.
    {Pid, Ref} = spawn_opt(fun() -> exit({step, sderl_ops_work:do(Step, Context)}) end,
                           [link, monitor]),
    tell_progress(Step, S#s{steps = Steps#{Ref => {Step, Pid}}}).

%% Stored before anything follows from it.
remember(Memory, #s{memory = Memory} = S) ->
    S;
remember(Memory, #s{store = {Cluster, _}} = S) ->
    ok = sderl_ops_store:put(Cluster, memory, Memory),
    S#s{memory = Memory}.

%% ---------------------------------------------------------------- telling

tell_progress(Step, #s{count = Count, steps = Steps, result = #{waiting := Waiting}} = S) ->
    tell({progress, Count, Count + map_size(Steps) + length(Waiting),
          sderl_ops_step:words(Step)}, S).

tell_notes(Notes, #s{store = {Cluster, _}} = S) ->
    lists:foldl(fun(Note, Acc) ->
        note(Cluster, ~"service", Note, ok),
        tell({note, sderl_ops_note:words(Note)}, Acc)
    end, S, Notes).

tell_state(#s{told = Told} = S) ->
    case {state(S), problems(S)} of
        Told -> S;
        {State, Problems} = Now -> tell({state, State, Problems}, S#s{told = Now})
    end.

tell(Event, #s{watchers = Watchers} = S) ->
    _ = [Pid ! {sderl_ops, Event} || _ := Pid <- Watchers],
    S.

state(S) -> sderl_ops_status:state(view(S)).

problems(S) -> sderl_ops_status:problems(view(S)).

view(#s{store = Store, desired = Desired, memory = Memory, observed = Observed, result = Result,
        steps = Steps, ended = Ended} = S) ->
    #{
        store => Store,
        desired => Desired,
        memory => Memory,
        observed => Observed,
        nodes => node_names(S),
        running => [Step || _ := {Step, _} <- Steps] ++ maps:keys(Ended),
        waiting => map_get(waiting, Result),
        done => map_get(done, Result) andalso S#s.envoy =/= undefined,
        trouble => S#s.trouble,
        quiet_ms => case S#s.quiet_since of
                        never -> infinity;
                        Since -> erlang:monotonic_time(millisecond) - Since
                    end
    }.

note(Cluster, By, What, Result) ->
    sderl_ops_store:note(Cluster, #{at => now_ms(), by => By, what => What, result => Result}).

now_ms() -> erlang:system_time(millisecond).

stamp() -> erlang:monotonic_time(microsecond).
