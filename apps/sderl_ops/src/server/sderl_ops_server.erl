%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_server).
-moduledoc """
Keeps one cluster as its newest revision says: looks at hosts and nodes, asks
`m:sderl_ops_reconcile` what is to be done, has that done, and looks again.

It goes round: it *observes* (`m:sderl_ops_looks` says what is to be looked at), *decides*
(`m:sderl_ops_reconcile`) and *acts* (`m:sderl_ops_work`). It blocks nowhere: looks and steps are
processes of their own, and whoever wants to know more than a few words gets the view and works it
out. What must not be lost is stored before it is acted on, so the process, or the machine, may end
at any point; the next one begins with what is stored and with what it sees.
""".

-behaviour(gen_server).

-export([start_link/1]).
-export([hello/0, current/0, view/0, adopt/3]).
-export([pause/1, resume/1, set_aside/2, take_back/2, watch/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2,
         format_status/1]).
-export_type([event/0, state/0]).

-import(sderl_clock, [now_ms/0]).

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
    %% What is to be.
    store = none :: none | {Cluster :: binary(), Revision :: pos_integer()},
    file :: sderl_ops_file:file() | undefined,
    desired :: sderl_ops_desired:desired() | undefined,
    hosts = #{} :: #{sderl_ops_desired:host_id() => sderl_ops_host:host()},
    providers = #{} :: sderl_ops_made:providers(),
    archives = #{} :: #{sderl_ops_desired:sha() => file:filename_all()},
    %% Groups that the service has made.
    made = [] :: [binary()],
    %% What is remembered, and what of it is in the store.
    memory = sderl_ops_memory:new() :: sderl_ops_memory:memory(),
    kept :: sderl_ops_memory:memory() | undefined,
    %% What is seen.
    observed = sderl_ops_observed:new() :: sderl_ops_observed:observed(),
    looks = sderl_ops_looks:new() :: sderl_ops_looks:looks(),
    %% What was decided last, whether another decision is due, and the steps that are done now.
    waiting = [] :: [{term(), Why :: term()}],
    done = false :: boolean(),
    deciding = false :: boolean(),
    steps = #{} :: #{reference() => sderl_ops_step:step()},
    %% Steps that have ended since there was something to do, how many there seemed to be then, and
    %% when the last one ended.
    count = 0 :: non_neg_integer(),
    total = none :: none | non_neg_integer(),
    quiet_since = never :: integer() | never,
    %% Who talks to the nodes. The cookie is in a function, so that no report of a crash has it.
    envoy :: {Of :: map(), pid()} | undefined,
    cookie :: sderl_ops_secret:value() | undefined,
    %% Why nothing can be done at all.
    trouble = none :: none | unicode:chardata(),
    told = none :: term(),
    watchers = #{} :: #{reference() => pid()}
}).

-define(TICK_MS, 500).
-define(ENVOY_MS, 1_000).
%% A decision costs by the number of instances (a quarter of a second of reductions at 10,000), so
%% what happens within such a time is decided about together.
-define(DECIDE_MS, 10).
-define(INSTANCES_PER_MS, 40).

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

-doc "All that the server knows and one may need who tells of it or plans with it.".
-spec view() -> sderl_ops_status:view().
view() -> call(view).

-doc """
Makes a new revision what is to be. `After` is the revision that the caller had seen: if there is
another one by now, somebody else was faster, and nothing is changed.
""".
-spec adopt(sderl_ops_revision:prepared(), After :: non_neg_integer(),
            #{by := binary(), why := binary(), force := boolean()}) ->
    {ok, Revision :: pos_integer()} | {error, unicode:chardata()}.
adopt(Prepared, After, About) -> call({adopt, Prepared, After, About}).

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
    case sderl_ops_stored:cluster() of
        none ->
            {noreply, S};
        Cluster ->
            {Memory, Made} = sderl_ops_stored:remembered(Cluster),
            Begun = begin_newest(Cluster, S#s{memory = Memory, kept = Memory, made = Made}),
            #s{folder = Folder, archives = Archives} = Begun,
            %% Nobody can ask yet, so no archive is being made.
            ok = sderl_ops_archive:keep_only(maps:keys(Archives),
                                             filename:join(Folder, "archives")),
            {noreply, Begun}
    end.

%% The newest revision becomes what is to be.
begin_newest(Cluster, #s{memory = Memory, made = Made} = S) ->
    #{revision := Revision, file := File, desired := Desired, trouble := Trouble, hosts := Hosts,
      providers := Providers, archives := Archives, made := AllMade} =
        sderl_ops_stored:load(Cluster, Memory, Made),
    Begun = S#s{store = {Cluster, Revision}, file = File, desired = Desired, trouble = Trouble,
                hosts = Hosts, providers = Providers, archives = Archives, made = AllMade},
    case Trouble of
        none -> begin_envoy(Begun);
        _ -> end_envoy(Begun)
    end.

%% Without the cookie nothing is done, and it is asked for again: a file of it may be late.
begin_envoy(#s{file = #{cookie := Secret} = File, folder = Folder} = S) ->
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
handle_call(view, _, S) ->
    {reply, view(S), S};
handle_call(current, _, #s{store = none} = S) ->
    {reply, none, S};
handle_call(current, _, #s{store = {_, Revision}, file = File} = S) ->
    #s{memory = #{failed := Failed}} = S,
    {reply, {Revision, File, [Family || Family := #{revision := Of} <- Failed, Of =:= Revision]},
     S};
handle_call({adopt, Prepared, After, About}, _, S) ->
    case may_adopt(Prepared, After, S) of
        {ok, Ready} ->
            #s{store = {_, Revision}} = Adopted = adopt_now(Prepared, About, Ready),
            {reply, {ok, Revision}, decide(look_again(Adopted))};
        {error, _} = Error ->
            {reply, Error, S}
    end;
handle_call({remember, _, _, _}, _, #s{store = none} = S) ->
    {reply, none, S};
handle_call({remember, By, What, Change}, _, S) ->
    Changed = remember(By, What, Change(S#s.memory), S),
    {reply, state(Changed), Changed};
handle_call({aside, By, Id, What, Change}, _, #s{desired = #{instances := Instances}} = S)
  when is_map_key(Id, Instances) ->
    {reply, ok, remember(By, What, Change(Id, S#s.memory), S)};
handle_call({aside, _, Id, _, _}, _, S) ->
    {reply, {error, ["there is no instance ", Id, ": `status` lists them"]}, S};
handle_call({watch, Pid}, _, #s{watchers = Watchers} = S) ->
    Pid ! {sderl_ops, {state, state(S), problems(S)}},
    {reply, ok, S#s{watchers = Watchers#{monitor(process, Pid) => Pid}}}.

%% What an operator was told is stored.
remember(By, What, Memory, S) ->
    Kept = keep(S#s{memory = Memory}),
    note(By, What, ok, Kept),
    decide(Kept).

%% What cannot be begun is not stored.
may_adopt(#{file := #{cluster := Cluster, cookie := Secret}}, After, #s{folder = Folder} = S) ->
    maybe
        {ok, Ready} ?= is_next(Cluster, After, S),
        {ok, _} ?= sderl_ops_cookie:of_cluster(Secret, Folder),
        {ok, Ready}
    end.

is_next(_, _, #s{store = none} = S) ->
    {ok, S};
is_next(Cluster, After, #s{store = {Cluster, After}} = S) ->
    {ok, S};
is_next(Cluster, After, #s{store = {Stored, Newer}})
  when Stored =:= Cluster; Newer =/= After ->
    {ok, #{by := Other}} = sderl_ops_store:revision(Stored, Newer),
    {error, io_lib:format("~ts has made revision ~b meanwhile: look at it (`status`, `plan`), and "
                          "ask again", [Other, Newer])};
is_next(_, _, #s{store = {Before, _}} = S) ->
    %% Of the one before nothing must be left.
    case state(S) of
        destroyed ->
            {ok, S#s{memory = sderl_ops_memory:new(), kept = undefined, made = [],
                     observed = sderl_ops_observed:new(), looks = sderl_ops_looks:new()}};
        _ ->
            {error, ["of the cluster ", Before, " something is left, or may be: look at it "
                     "(`status`), and ask again"]}
    end.

adopt_now(#{file := #{cluster := Cluster}} = Prepared, #{by := By, why := Why} = About, S0) ->
    S = keep(Cluster, S0),
    Revision = sderl_ops_store:add_revision(Cluster, About#{prepared => Prepared,
                                                            at => system_ms()}),
    Adopted = begin_newest(Cluster, S#s{total = none, told = none}),
    note(By, {revision, Revision, Why}, ok, Adopted),
    Adopted.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info(tick, S) ->
    _ = erlang:send_after(?TICK_MS, self(), tick),
    {noreply, decide_soon(look(S))};
handle_info(decide, S) ->
    {noreply, decide(S#s{deciding = false})};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{steps = Steps, watchers = Watchers} = S) ->
    case {Steps, Watchers} of
        {#{Ref := Step}, _} ->
            Left = S#s{steps = maps:remove(Ref, Steps)},
            {noreply, decide_soon(look(step_ended(Step, Outcome, Left)))};
        {_, #{Ref := _}} ->
            {noreply, S#s{watchers = maps:remove(Ref, Watchers)}};
        {_, _} ->
            {noreply, decide_soon(look(look_ended(Ref, Outcome, S)))}
    end;
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
            #{store => Store, steps => maps:values(Steps)};
        (message, {adopt, _, After, About}) ->
            {adopt, After, About};
        (_, Value) ->
            Value
    end, Status).

%% ---------------------------------------------------------------- observe

look_again(#s{looks = Looks} = S) -> look(S#s{looks = sderl_ops_looks:again(Looks)}).

look(#s{desired = undefined} = S) ->
    S;
look(#s{looks = Looks} = S) ->
    lists:foldl(fun begin_look/2, S, sderl_ops_looks:due(watched(S), stamp(), Looks)).

%% The nodes, every host where something of us is to be, or is left, and programs that make hosts.
watched(#s{desired = Desired, memory = #{assigned := Assigned} = Memory,
           observed = #{hosts := Seen}}) ->
    Hosts = sderl_ops_look:hosts(Desired) ++ maps:values(Assigned) ++ maps:keys(Seen)
        ++ sderl_ops_made:looked_at(Memory),
    [nodes | [{provider, Name} || Name <- sderl_ops_made:asked(Desired, Memory)]]
        ++ [{host, Id} || Id <- lists:usort(Hosts)].

%% Looks and steps answer with their exit reason.
-dialyzer({nowarn_function, [begin_look/2, begin_step/2]}).

begin_look({provider, Name} = What, #s{looks = Looks, providers = Providers} = S) ->
    Context = context(S),
    {_, Ref} = spawn_opt(fun() ->
        exit({look, {provider, sderl_ops_made:list(Name, Providers, Context)}})
    end, [link, monitor]),
    S#s{looks = sderl_ops_looks:began(Ref, What, stamp(), Looks)};
begin_look(What, #s{looks = Looks, memory = Memory} = S) ->
    Hosts = hosts(S),
    Envoy = case S#s.envoy of undefined -> undefined; {_, Pid} -> Pid end,
    Nodes = case What of nodes -> sderl_ops_look:names(Memory, Hosts); _ -> #{} end,
    {_, Ref} = spawn_opt(fun() ->
        exit({look, sderl_ops_look:at(What, Hosts, Envoy, Nodes)})
    end, [link, monitor]),
    S#s{looks = sderl_ops_looks:began(Ref, What, stamp(), Looks)}.

%% With those that programs have made.
hosts(#s{hosts = Hosts, providers = Providers, memory = Memory} = S) ->
    maps:merge(Hosts, sderl_ops_made:hosts(Memory, Providers, context(S))).

context(#s{file = File, folder = Folder}) ->
    (maps:with([cluster, names], File))#{folder => Folder}.

look_ended(Ref, Outcome, #s{looks = Looks, observed = Observed, made = Made} = S) ->
    case sderl_ops_looks:what(Ref, Looks) of
        {ok, What} ->
            Seen = case Outcome of
                       {look, Given} -> Given;
                       _ -> unknown
                   end,
            S#s{looks = sderl_ops_looks:ended(Ref, Seen =/= unknown, Looks),
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
%% Until somebody can talk to the nodes, every step would fail.
decide(#s{envoy = undefined} = S) ->
    tell_state(keep(S));
decide(#s{desired = Desired, memory = Memory} = S0) ->
    Observed = sderl_ops_look:forget_hosts(Desired, Memory, system_ms(), S0#s.observed),
    S = S0#s{observed = Observed},
    #{start := Start, memory := After, notes := Notes, waiting := Waiting, done := Done} =
        sderl_ops_reconcile:steps(Desired, Observed, Memory, running(S), system_ms()),
    Decided = keep(S#s{memory = After, waiting = Waiting, done = Done}),
    Counted = tell_notes(Notes, count_anew(Start, Decided)),
    tell_state(lists:foldl(fun begin_step/2, Counted, Start)).

%% Where there was nothing to do before.
count_anew([_ | _], #s{total = none} = S) ->
    #s{desired = Desired, observed = Observed, memory = Memory} = S,
    S#s{count = 0, total = sderl_ops_remaining:count(Desired, Observed, Memory)};
count_anew([], #s{done = true} = S) ->
    S#s{total = none};
count_anew(_, S) ->
    S.

%% A step that has ended runs until it was seen what it did.
running(#s{steps = Steps, looks = Looks}) ->
    maps:values(Steps) ++ sderl_ops_looks:unseen(Looks).

%% Stored before anything follows from it. What a step came to is stored with the next decision: if
%% that is lost the step is done again.
keep(#s{store = {Cluster, _}} = S) -> keep(Cluster, S).

keep(_, #s{memory = Memory, kept = Memory} = S) ->
    S;
keep(Cluster, #s{memory = Memory} = S) ->
    ok = sderl_ops_store:put(Cluster, memory, Memory),
    S#s{kept = Memory}.

%% ---------------------------------------------------------------- act

begin_step(Step, #s{steps = Steps} = S) ->
    #s{desired = Desired, observed = Observed, memory = Memory, providers = Providers,
       envoy = {_, Envoy}, cookie = Cookie, made = Made, archives = Archives} = S,
    Context = #{desired => Desired, observed => Observed, memory => Memory, hosts => hosts(S),
                providers => Providers, context => context(S), archives => Archives,
                envoy => Envoy, cookie => Cookie, made => Made,
                ours => maps:keys(map_get(assigned, Memory))},
    %% It ends with this process: the next one begins with none.
    {_, Ref} = spawn_opt(fun() -> exit({step, sderl_ops_work:do(Step, Context)}) end,
                         [link, monitor]),
    tell_progress(Step, S#s{steps = Steps#{Ref => Step}}).

step_ended(Step, Outcome, #s{memory = Memory, count = Count, looks = Looks} = S) ->
    Result = case Outcome of
                 {step, Given} -> Given;
                 Crash -> {error, {crashed, Crash}}
             end,
    Worded = sderl_ops_work:worded(Result),
    {After, Notes} = sderl_ops_reconcile:ended(Step, Worded, Memory, system_ms()),
    note(~"service", Step, case Worded of {ok, _} -> ok; _ -> Worded end, S),
    Whats = sderl_ops_look:after_step(Step, After),
    tell_notes(Notes, S#s{
        memory = After,
        observed = sderl_ops_made:without_deleted(Step, Worded, S#s.observed),
        count = Count + 1,
        quiet_since = now_ms(),
        looks = sderl_ops_looks:step_ended(Step, Whats, stamp(), Looks)
    }).

%% ---------------------------------------------------------------- telling

tell_progress(Step, #s{count = Count, total = Total, steps = Steps} = S) ->
    tell({progress, Count, max(Total, Count + map_size(Steps)), sderl_ops_step:words(Step)}, S).

tell_notes(Notes, S) ->
    lists:foldl(fun(Note, Acc) ->
        note(~"service", Note, ok, Acc),
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
        done => Done andalso Envoy =/= undefined,
        trouble => Trouble,
        quiet_ms => case S#s.quiet_since of
                        never -> infinity;
                        Since -> now_ms() - Since
                    end
    }.

note(By, What, Result, #s{store = {Cluster, _}}) ->
    sderl_ops_store:note(Cluster, #{at => system_ms(), by => By, what => What, result => Result}).

%% What is stored has the time of day; a step and a look may be less than a millisecond apart.
system_ms() -> erlang:system_time(millisecond).

stamp() -> erlang:monotonic_time(microsecond).
