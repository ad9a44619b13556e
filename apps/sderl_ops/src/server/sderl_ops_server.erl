%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_server).
-moduledoc """
Keeps one cluster as its newest revision says, in a loop: it *observes* hosts and nodes
(`m:sderl_ops_looks` says what to look at), *decides* (`m:sderl_ops_reconcile`) and *acts*
(`m:sderl_ops_work`).

It never blocks: looks and steps are processes of their own, and callers that need much get the view
and compute the rest themselves. What must not be lost is stored before it is acted on, so the
process, or the machine, may end at any point; the next server begins with what is stored and with
what it sees. Its functions for callers are in `m:sderl_ops_acting`.
""".

-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2,
         format_status/1]).
-export_type([state/0, call/0]).

-import(sderl_clock, [now_ms/0]).

-doc """
`steady`: all is as the file says. `failed`: nothing more can be done, and something was given up or
rolled back, or has problems. `destroyed`: nothing of the cluster is left.
""".
-type state() :: none | working | steady | paused | failed | destroyed.
-type call() ::
    hello | current | applied | view
    | {watch, pid()}
    | {adopt, sderl_ops_revision:prepared(), After :: non_neg_integer(), sderl_ops_revision:about()}
    | {remember, By :: binary(), sderl_ops_entry:request(),
       fun((sderl_ops_memory:memory()) -> sderl_ops_memory:memory())}
    | {instance, By :: binary(), sderl_ops_desired:instance_id(), sderl_ops_operator:what()}.

-record(s, {
    folder :: file:filename(),
    %% Of this member's lease, if the service has several members.
    epoch = none :: none | pos_integer(),
    %% The desired state.
    store = none :: none | {Cluster :: binary(), Revision :: pos_integer()},
    file :: sderl_ops_file:file() | undefined,
    desired :: sderl_ops_desired:desired() | undefined,
    hosts = #{} :: #{sderl_ops_desired:host_id() => sderl_ops_host:host()},
    providers = #{} :: sderl_ops_made:providers(),
    archives = #{} :: #{sderl_ops_desired:sha() => file:filename_all()},
    %% Groups that the service has made.
    made = [] :: [binary()],
    %% The memory, and the last one that was stored.
    memory = sderl_ops_memory:new() :: sderl_ops_memory:memory(),
    kept :: sderl_ops_memory:memory() | undefined,
    record = sderl_ops_record:new() :: sderl_ops_record:written(),
    room :: sderl_ops_room:room(),
    %% Why the disk has no room, and entries that are written when it has room again.
    full = none :: none | unicode:chardata(),
    unwritten = [] :: [sderl_ops_entry:entry()],
    %% The observed state.
    observed = sderl_ops_observed:new() :: sderl_ops_observed:observed(),
    looks = sderl_ops_looks:new() :: sderl_ops_looks:looks(),
    sighted = sderl_ops_sighted:new() :: sderl_ops_sighted:sighted(),
    %% The last decision, whether another one is due, and the steps that run now.
    waiting = [] :: [{term(), Why :: term()}],
    done = false :: boolean(),
    deciding = false :: boolean(),
    doing = sderl_ops_doing:new() :: sderl_ops_doing:doing(),
    %% When the last step ended.
    quiet_since = never :: integer() | never,
    %% The process that talks to the nodes.
    envoy = none :: none | sderl_ops_envoy:kept(),
    %% Why nothing can be done.
    trouble = none :: none | unicode:chardata(),
    watchers = sderl_ops_watchers:new() :: sderl_ops_watchers:watchers()
}).

-define(TICK_MS, 500).
-define(ENVOY_MS, 1_000).
%% The time of a decision grows with the number of instances (a quarter of a second at 10,000), so
%% events within such a time are decided about together.
-define(DECIDE_MS, 10).
-define(INSTANCES_PER_MS, 40).

-doc "Starts it with what is stored in the service's folder. One of several members has an epoch.".
-spec start_link(file:filename(), Epoch :: none | pos_integer()) -> gen_server:start_ret().
start_link(Folder, Epoch) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {Folder, Epoch}, []).

%% ---------------------------------------------------------------- beginning

-doc false.
-spec init({file:filename(), none | pos_integer()}) ->
    {ok, #s{}, {continue, begin_with_stored}} | {stop, term()}.
init({Folder, Epoch}) ->
    process_flag(trap_exit, true),
    case open_store(Folder, Epoch) of
        ok ->
            %% Sessions end with this process, and send nothing more.
            {ok, _} = sderl_ops_sessions:start_link(),
            _ = erlang:send_after(?TICK_MS, self(), tick),
            Room = sderl_ops_room:new(Folder),
            {ok, began(#s{folder = Folder, epoch = Epoch, room = Room}),
             {continue, begin_with_stored}};
        {error, Why} ->
            {stop, {store, Why}}
    end.

%% The member that acted before may have ended a step just now.
began(#s{epoch = none} = S) -> S;
began(S) -> S#s{quiet_since = now_ms()}.

%% A member has the store open, whether it acts or not.
open_store(Folder, none) -> sderl_ops_store:open(filename:join(Folder, "store"));
open_store(_, Epoch) -> sderl_ops_store:act_with(Epoch).

-doc false.
-spec handle_continue(begin_with_stored, #s{}) -> {noreply, #s{}} | {stop, term(), #s{}}.
handle_continue(begin_with_stored, S) ->
    case sderl_ops_stored:cluster() of
        none ->
            {noreply, S};
        Cluster ->
            {Memory, Made} = sderl_ops_stored:remembered(Cluster),
            Begun = begin_newest(Cluster, S#s{memory = Memory, kept = Memory, made = Made,
                                              record = sderl_ops_record:load(Cluster)}),
            ok = drop_archives(start, Begun),
            {noreply, Begun}
    end.

drop_archives(When, #s{folder = Folder, epoch = Epoch, archives = Archives}) ->
    sderl_ops_stored:drop_archives(When, maps:keys(Archives), Folder, Epoch).

%% The newest revision becomes the desired state.
begin_newest(Cluster, #s{memory = Memory, made = Made, folder = Folder, epoch = Epoch} = S) ->
    #{revision := Revision, file := File, desired := Desired, trouble := Trouble, hosts := Hosts,
      providers := Providers, archives := Archives, made := AllMade} =
        sderl_ops_stored:here(sderl_ops_stored:load(Cluster, Memory, Made), Folder, Epoch),
    Begun = S#s{store = {Cluster, Revision}, file = File, desired = Desired, trouble = Trouble,
                hosts = Hosts, providers = Providers, archives = Archives, made = AllMade},
    case Trouble of
        none -> begin_envoy(Begun);
        _ -> Begun#s{envoy = sderl_ops_envoy:keep(none, Begun#s.envoy)}
    end.

%% Without the cookie nothing can be done. It is read again, because its file may come late.
begin_envoy(#s{file = #{cookie := Secret} = File, folder = Folder, envoy = Before} = S) ->
    case sderl_ops_cookie:of_cluster(Secret, Folder) of
        {ok, Cookie} ->
            Options = (maps:with([cluster, names], File))#{cookie => Cookie},
            S#s{trouble = none, envoy = sderl_ops_envoy:keep(Options, Before)};
        {error, Sentence} ->
            again_soon(S#s{trouble = ["nothing can be done: ", Sentence],
                           envoy = sderl_ops_envoy:keep(none, Before)})
    end.

again_soon(S) ->
    _ = erlang:send_after(?ENVOY_MS, self(), envoy),
    S.

%% ---------------------------------------------------------------- requests

-doc false.
-spec handle_call(call(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call(hello, _, #s{store = Store} = S) ->
    {reply, Store, S};
handle_call(view, _, S) ->
    {reply, view(S), S};
handle_call(current, _, #s{store = none} = S) ->
    {reply, none, S};
handle_call(current, _, #s{store = {_, Revision}, file = File} = S) ->
    #s{memory = #{failed := Failed}} = S,
    {reply, {Revision, File, [Family || Family := #{revision := Of} <- Failed, Of =:= Revision]},
     S};
handle_call(applied, _, #s{store = none} = S) ->
    {reply, none, S};
handle_call(applied, _, #s{store = {Cluster, Revision}} = S) ->
    {reply, {Revision, sderl_ops_stored:applied(Cluster)}, S};
handle_call({watch, Pid}, _, #s{watchers = Watchers} = S) ->
    {reply, ok, S#s{watchers = sderl_ops_watchers:add(Pid, state(S), problems(S), Watchers)}};
handle_call(Change, _, S) ->
    case look_for_room(fun sderl_ops_room:before_write/1, S) of
        #s{full = none} = Ready -> handle_change(Change, Ready);
        #s{full = Sentence} = Full -> {reply, {full, Sentence}, drop_refused(Change, Full)}
    end.

%% What was packed for a refused revision may be what fills the disk.
drop_refused({adopt, #{archives := New}, _, _}, S) ->
    ok = drop_archives({refused, maps:keys(New)}, S),
    look_for_room(fun sderl_ops_room:now_and_then/1, S);
drop_refused(_, S) ->
    S.

handle_change({adopt, Prepared, After, About}, S) ->
    case may_adopt(Prepared, After, About, S) of
        {done, Revision} ->
            {reply, {ok, Revision}, S};
        {ok, Ready} ->
            #s{store = {_, Revision}} = Adopted = adopt_now(Prepared, About, Ready),
            {reply, {ok, Revision}, decide(look_again(Adopted))};
        {error, _} = Error ->
            {reply, Error, S}
    end;
handle_change({remember, _, _, _}, #s{store = none} = S) ->
    {reply, none, S};
handle_change({remember, By, What, Change}, S) ->
    Changed = remember(By, What, Change(S#s.memory), S),
    {reply, state(Changed), Changed};
handle_change({instance, By, Id, What}, #s{desired = #{instances := Instances}} = S)
  when is_map_key(Id, Instances) ->
    case sderl_ops_operator:change(What, Id, maps:with([running, desired, observed, memory],
                                                       view(S))) of
        {ok, Memory} -> {reply, ok, remember(By, {What, Id}, Memory, S)};
        No -> {reply, No, S}
    end;
handle_change({instance, _, Id, _}, S) ->
    {reply, {unknown, ["there is no instance ", Id, ": `status` lists them"]}, S}.

%% A change is stored before it is answered.
remember(By, What, Memory, S) ->
    decide(write_down(By, What, keep(S#s{memory = Memory}))).

write_down(By, What, #s{store = {Cluster, _}, record = Record} = S) ->
    S#s{record = sderl_ops_record:request(By, What, Cluster, Record)}.

%% A revision that cannot be begun is not stored.
may_adopt(#{file := #{cluster := Cluster, cookie := Secret}, archives := Archives}, After, About,
          #s{folder = Folder, store = Store, epoch = Epoch} = S) ->
    IsOver = fun() -> state(S) =:= destroyed end,
    maybe
        {ok, Begins} ?= sderl_ops_stored:may_follow(Cluster, After, About, Store, IsOver),
        {ok, _} ?= sderl_ops_cookie:of_cluster(Secret, Folder),
        ok ?= sderl_ops_stored:check_archives(maps:keys(Archives), Folder, Epoch),
        {ok, begin_with(Begins, S)}
    end.

begin_with(next, S) ->
    S;
begin_with(anew, S) ->
    S#s{memory = sderl_ops_memory:new(), kept = undefined, made = [],
        observed = sderl_ops_observed:new(), looks = sderl_ops_looks:new(),
        sighted = sderl_ops_sighted:new()}.

adopt_now(#{file := #{cluster := Cluster}} = Prepared, #{by := By, why := Why} = About,
          #s{memory = Memory} = S0) ->
    S = keep(Cluster, S0#s{memory = sderl_ops_memory:try_again(Memory)}),
    Applied = sderl_ops_stored:with_applied(About, Cluster, S#s.store),
    Revision = sderl_ops_store:add_revision(Cluster, Applied#{prepared => Prepared,
                                                              at => system_ms()}),
    Watchers = sderl_ops_watchers:begin_anew(S#s.watchers),
    write_down(By, {revision, Revision, Why}, begin_newest(Cluster, S#s{watchers = Watchers})).

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info(tick, S) ->
    _ = erlang:send_after(?TICK_MS, self(), tick),
    Looked = look_for_room(fun sderl_ops_room:now_and_then/1, S),
    ok = case Looked of #s{full = none} -> ok; _ -> drop_archives(full, Looked) end,
    {noreply, decide_soon(look(write(Looked)))};
handle_info(decide, S) ->
    {noreply, decide(S#s{deciding = false})};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{doing = Doing, watchers = Watchers} = S) ->
    case sderl_ops_doing:ended(Ref, Outcome, Doing) of
        {Results, Left} ->
            Ended = lists:foldl(fun step_ended/2, S#s{doing = Left}, Results),
            {noreply, decide_soon(look(Ended))};
        none ->
            case sderl_ops_watchers:remove(Ref, Watchers) of
                {ok, Left} -> {noreply, S#s{watchers = Left}};
                error -> {noreply, decide_soon(look(look_ended(Ref, Outcome, S)))}
            end
    end;
handle_info({'EXIT', Pid, _}, #s{envoy = {Pid, _}} = S) ->
    {noreply, again_soon(S#s{envoy = none})};
handle_info(envoy, #s{envoy = none, desired = #{}} = S) ->
    {noreply, begin_envoy(S)};
handle_info(_, S) ->
    {noreply, S}.

-doc false.
-spec terminate(term(), #s{}) -> ok.
terminate(_, #s{epoch = none}) -> sderl_ops_store:close();
terminate(_, _) -> ok.

%% The desired and the observed state may have many thousand instances.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) ->
    maps:map(fun
        (state, #s{store = Store, doing = Doing}) ->
            #{store => Store, steps => sderl_ops_doing:steps(Doing)};
        (message, {adopt, _, After, About}) ->
            {adopt, After, About};
        (_, Value) ->
            Value
    end, Status).

%% ---------------------------------------------------------------- observe

look_again(#s{looks = Looks} = S) -> look(S#s{looks = sderl_ops_looks:again(Looks)}).

look(#s{desired = undefined} = S) ->
    S;
look(#s{desired = Desired, memory = Memory, observed = Observed, looks = Looks} = S) ->
    Watched = sderl_ops_look:watched(Desired, Memory, Observed),
    lists:foldl(fun begin_look/2, S, sderl_ops_looks:due(Watched, stamp(), Looks)).

begin_look(What, #s{looks = Looks, memory = Memory, desired = Desired} = S) ->
    #s{providers = Providers} = S,
    Envoy = case S#s.envoy of none -> undefined; {Pid, _} -> Pid end,
    Ref = sderl_ops_look:begin_look(What, #{hosts => hosts(S), envoy => Envoy, memory => Memory,
                                            alarms => sderl_ops_gate:source(Desired),
                                            providers => Providers, context => context(S)}),
    S#s{looks = sderl_ops_looks:began(Ref, What, stamp(), Looks)}.

%% All hosts, with those that programs have made.
hosts(#s{hosts = Hosts, providers = Providers, memory = Memory, epoch = Epoch} = S) ->
    Made = sderl_ops_made:hosts(Memory, Providers, context(S)),
    maps:merge(Hosts, sderl_ops_stored:since(Epoch, Made)).

context(#s{file = File, folder = Folder}) ->
    (maps:with([cluster, names], File))#{folder => Folder}.

look_ended(Ref, Outcome, #s{looks = Looks, observed = Observed, made = Made} = S) ->
    case sderl_ops_looks:what(Ref, Looks) of
        {ok, What, Began} ->
            Given = case Outcome of
                        {look, Answer} -> Answer;
                        _ -> unknown
                    end,
            {Seen, Sighted} = sderl_ops_sighted:over(What, Given, Began, S#s.sighted),
            S#s{looks = sderl_ops_looks:ended(Ref, Seen =/= unknown, stamp(), Looks),
                sighted = Sighted,
                observed = case sderl_ops_made:is_there(What, S#s.memory, S#s.hosts) of
                               true -> sderl_ops_look:put(What, Seen, Made, Observed);
                               false -> Observed
                           end};
        error ->
            S
    end.

%% ---------------------------------------------------------------- decide

decide_soon(#s{deciding = true} = S) ->
    S;
decide_soon(#s{desired = undefined} = S) ->
    S;
decide_soon(#s{desired = #{instances := Instances}} = S) ->
    _ = erlang:send_after(?DECIDE_MS + map_size(Instances) div ?INSTANCES_PER_MS, self(), decide),
    S#s{deciding = true}.

decide(#s{desired = undefined} = S) ->
    S;
decide(#s{full = Full} = S) when Full =/= none ->
    tell_state(S);
%% Without an envoy every step would fail.
decide(#s{envoy = none} = S) ->
    tell_state(keep(S));
decide(#s{desired = Desired, memory = Memory} = S0) ->
    Observed = sderl_ops_look:forget_hosts(Desired, Memory, system_ms(), S0#s.observed),
    S = S0#s{observed = Observed},
    #{start := Start, memory := After, notes := Notes, waiting := Waiting, done := Done} =
        sderl_ops_reconcile:steps(Desired, Observed, Memory, running(S), system_ms()),
    Looked = case After =:= S#s.kept andalso Notes =:= [] of
                 true -> S;
                 false -> look_for_room(fun sderl_ops_room:before_write/1, S)
             end,
    case Looked of
        #s{full = none} ->
            Decided = keep(Looked#s{memory = After, waiting = Waiting, done = Done}),
            tell_state(begin_steps(Start, count(Start, tell([], Notes, Decided))));
        _ ->
            tell_state(Looked)
    end.

count([_ | _], #s{watchers = Watchers} = S) ->
    #s{desired = Desired, observed = Observed, memory = Memory} = S,
    Total = fun() -> sderl_ops_remaining:count(Desired, Observed, Memory) end,
    S#s{watchers = sderl_ops_watchers:begin_count(Total, Watchers)};
count([], #s{done = true, watchers = Watchers} = S) ->
    S#s{watchers = sderl_ops_watchers:end_count(Watchers)};
count(_, S) ->
    S.

%% A step that has ended counts as running until its effect was seen.
running(#s{doing = Doing, looks = Looks}) ->
    sderl_ops_doing:steps(Doing) ++ sderl_ops_looks:unseen(Looks).

%% The memory is stored before anything follows from it. The result of a step is stored with the
%% next decision: if it is lost the step is done again.
keep(#s{store = {Cluster, _}} = S) -> keep(Cluster, S).

keep(_, #s{memory = Memory, kept = Memory} = S) ->
    S;
keep(Cluster, #s{memory = Memory} = S) ->
    ok = sderl_ops_store:put(Cluster, memory, Memory),
    S#s{kept = Memory}.

%% ---------------------------------------------------------------- act

begin_steps([], S) ->
    S;
begin_steps(Steps, #s{doing = Doing} = S) ->
    #s{desired = Desired, observed = Observed, memory = Memory, providers = Providers,
       envoy = {Envoy, #{cookie := Cookie}}, made = Made, archives = Archives} = S,
    Context = #{desired => Desired, observed => Observed, memory => Memory, hosts => hosts(S),
                providers => Providers, context => context(S), archives => Archives,
                envoy => Envoy, cookie => Cookie, made => Made,
                ours => maps:keys(map_get(assigned, Memory)), epoch => S#s.epoch},
    Begun = sderl_ops_doing:begin_steps(Steps, Context, Doing),
    ok = sderl_ops_watchers:progress(Steps, sderl_ops_doing:count(Begun), S#s.watchers),
    S#s{doing = Begun}.

step_ended({Step, Came}, #s{memory = Memory, looks = Looks} = S0) ->
    {Result, Sighting} = case Came of
                             {seen, Told} -> {ok, Told};
                             _ -> {Came, none}
                         end,
    Worded = sderl_ops_work:worded(Result),
    {After, Notes} = sderl_ops_reconcile:ended(Step, Worded, Memory, system_ms()),
    #s{watchers = Watchers} = S = tell([{Step, Worded}], Notes, S0),
    Whats = sderl_ops_sighted:unseen(sderl_ops_look:after_step(Step, After), Sighting,
                                     S#s.observed),
    {Sighted, Observed} = sight(Sighting, S),
    S#s{
        memory = After,
        observed = sderl_ops_made:without_deleted(Step, Worded, Observed),
        sighted = Sighted,
        watchers = sderl_ops_watchers:step_ended(Watchers),
        quiet_since = now_ms(),
        looks = sderl_ops_looks:step_ended(Step, Whats, stamp(), Looks)
    }.

sight(none, #s{sighted = Sighted, observed = Observed}) ->
    {Sighted, Observed};
sight(Sighting, #s{sighted = Sighted, observed = Observed}) ->
    sderl_ops_sighted:tell(Sighting, stamp(), Sighted, Observed).

%% ---------------------------------------------------------------- telling

tell(Ended, Notes, #s{watchers = Watchers, unwritten = Unwritten} = S) ->
    lists:foreach(fun(Note) ->
        sderl_ops_watchers:note(sderl_ops_note:words(Note), Watchers)
    end, Notes),
    Entries = sderl_ops_record:ended(Ended, Notes, system_ms()),
    write(S#s{unwritten = Unwritten ++ Entries}).

write(#s{full = none, unwritten = [_ | _] = Entries, store = {Cluster, _}} = S) ->
    ok = sderl_ops_record:write(Entries, Cluster),
    S#s{unwritten = []};
write(S) ->
    S.

look_for_room(Look, #s{room = Room} = S) ->
    case Look(Room) of
        {ok, Looked} -> S#s{room = Looked, full = none};
        {{error, Sentence}, Looked} -> S#s{room = Looked, full = Sentence}
    end.

tell_state(#s{watchers = Watchers, record = Record, store = {_, Revision}} = S) ->
    {State, Problems} = {state(S), problems(S)},
    S#s{record = case S#s.full of
                     none -> sderl_ops_record:state(State, Problems, Revision, Record);
                     _ -> Record
                 end,
        watchers = sderl_ops_watchers:state(State, Problems, Watchers)}.

state(S) -> sderl_ops_status:state(view(S)).

problems(S) -> sderl_ops_status:problems(view(S)).

view(#s{store = Store, desired = Desired, memory = Memory, observed = Observed,
        waiting = Waiting, done = Done, envoy = Envoy, trouble = Trouble} = S) ->
    #{
        store => Store,
        desired => Desired,
        memory => Memory,
        observed => Observed,
        hosts => case Store of none -> #{}; _ -> hosts(S) end,
        running => running(S),
        waiting => Waiting,
        done => Done andalso Envoy =/= none,
        trouble => case S#s.full of none -> Trouble; Sentence -> Sentence end,
        sent => sderl_ops_sent:read(),
        doing => sderl_ops_doing:steps(S#s.doing),
        progress => sderl_ops_watchers:so_far(sderl_ops_doing:count(S#s.doing), S#s.watchers),
        quiet_ms => case S#s.quiet_since of
                        never -> infinity;
                        Since -> now_ms() - Since
                    end
    }.

%% Stored times are of the wall clock, because they outlive a restart. Times that are compared
%% within one life are monotonic, and finer: a step and a look may be less than a millisecond apart.
system_ms() -> erlang:system_time(millisecond).

stamp() -> erlang:monotonic_time(microsecond).
