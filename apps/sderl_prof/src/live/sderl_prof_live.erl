%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_live).
-moduledoc """
Profiles of a running cluster, begun and kept by a node outside of it: the one process that knows
the profiles that run (`m:sderl_prof_live_run`) and those that are kept in a folder
(`m:sderl_prof_live_store`), and holds those open that somebody looks at.

Rights and the audit log are the caller's business; its function `ended` gets each profile that has
ended.
""".

-behaviour(gen_server).

-export([start/1, start_link/1, stop/0, check/1, begin_/2, list/0, find/1, confirm/2, stop/1,
         remove/1, viewer/1, new_id/0, format_error/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([settings/0, reason/0, listing/0]).

%% Profiles that run at a time, and that are kept, at most.
-define(MOST_RUNNING, 4).
-define(MOST_KEPT, 200).
%% Profiles that are held open for those who look at them, at most.
-define(MOST_OPEN, 4).
%% Any answer comes as soon as the process is free; to open one may take as long as to read what its
%% pages need.
-define(OPEN_MS, 25_000).

-doc """
`most_bytes`: what all of them together may take. `connect` makes a link to a node, `may_load` says
whether modules may be loaded into nodes that lack them, `ended` gets each profile that has ended.
""".
-type settings() :: #{
    dir := file:filename(),
    most_bytes := pos_integer(),
    connect := fun((node()) -> ok | {error, unicode:chardata()}),
    may_load := fun(() -> boolean()),
    ended := fun((sderl_prof_live_store:profile()) -> term())
}.

-type reason() ::
    {request, sderl_prof_live_request:reason()} | {running, pos_integer()}
    | {busy, Node :: binary(), Id :: binary()} | {kept, pos_integer()}
    | {no_room, Kept :: non_neg_integer(), Needs :: pos_integer(), Most :: pos_integer()}
    | {folder, file:filename(), term()} | not_found | runs | ending | not_ready | not_running
    | opening | {dear, [sderl_prof_live_store:cost()]}
    | {nothing, sderl_prof_live_store:profile()} | {not_opened, binary()}.

-doc "`now`: the node's clock, in Unix milliseconds; `bytes`: what the profiles take together.".
-type listing() :: #{
    now := integer(),
    profiles := [sderl_prof_live_store:profile()],
    bytes := non_neg_integer(),
    most_bytes := pos_integer(),
    limits := #{sampling := #{atom() := pos_integer()}, recording := #{atom() := pos_integer()},
                running := pos_integer(), kept := pos_integer()}
}.

%% `needs`: the bytes that it may take here.
-record(run, {pid :: pid(), nodes :: [binary()], needs :: pos_integer(),
              stops = none :: none | fun(() -> term())}).
%% The process that opens a profile and holds its viewer, and who waits for that.
-record(open, {
    pid :: pid(),
    viewer = none :: none | sderl_prof_viewer:viewer(),
    waiting = [] :: [gen_server:from()],
    used :: integer()
}).
-record(s, {
    settings :: settings(),
    profiles :: #{binary() => sderl_prof_live_store:profile()},
    runs = #{} :: #{binary() => #run{}},
    open = #{} :: #{binary() => #open{}}
}).

-doc """
Starts it, one a node, under a supervisor; an error where its folder cannot be used.
""".
-spec start(settings()) -> {ok, pid()} | {error, reason() | {already_started, pid()}}.
start(Settings) -> sderl_prof_live_sup:start(Settings).

-doc false.
-spec start_link(settings()) -> gen_server:start_ret().
start_link(Settings) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Settings, []).

-doc "Ends it, and all that run.".
-spec stop() -> ok.
stop() -> sderl_prof_live_sup:stop().

-doc "Whether this profile may begin now.".
-spec check(sderl_prof_live_request:request()) -> ok | {error, reason()}.
check(Request) -> gen_server:call(?MODULE, {check, Request}, ?OPEN_MS).

-doc "An id of its own.".
-spec new_id() -> binary().
new_id() -> binary:encode_hex(<<(rand:uniform(1 bsl 64) - 1):64>>, lowercase).

-doc """
Begins a profile under this id. Sampling begins at once; a recording first tells its cost, and waits
for `confirm/2`.
""".
-spec begin_(Id :: binary(), sderl_prof_live_request:request()) -> ok | {error, reason()}.
begin_(Id, Request) -> gen_server:call(?MODULE, {begin_, Id, Request}, ?OPEN_MS).

-doc "All profiles, the newest first, the bytes that they take, and the limits.".
-spec list() -> listing().
list() -> gen_server:call(?MODULE, list, ?OPEN_MS).

-doc "One of them.".
-spec find(Id :: binary()) -> {ok, sderl_prof_live_store:profile()} | {error, reason()}.
find(Id) -> gen_server:call(?MODULE, {find, Id}, ?OPEN_MS).

-doc "Begins to record; `Insists`: even if the trial counted more events than are allowed.".
-spec confirm(Id :: binary(), Insists :: boolean()) -> ok | {error, reason()}.
confirm(Id, Insists) -> gen_server:call(?MODULE, {confirm, Id, Insists}, ?OPEN_MS).

-doc "Ends it before its time; what has been seen until then is kept.".
-spec stop(Id :: binary()) -> ok | {error, reason()}.
stop(Id) -> gen_server:call(?MODULE, {stop, Id}, ?OPEN_MS).

-doc "Removes one that does not run.".
-spec remove(Id :: binary()) -> ok | {error, reason()}.
remove(Id) -> gen_server:call(?MODULE, {remove, Id}, ?OPEN_MS).

-doc "The viewer that answers questions about a profile; it is opened, where it is not.".
-spec viewer(Id :: binary()) ->
    {ok, sderl_prof_live_request:kind(), sderl_prof_viewer:viewer()} | {error, reason()}.
viewer(Id) -> gen_server:call(?MODULE, {viewer, Id}, ?OPEN_MS).

%% ---------------------------------------------------------------- the process

-doc false.
-spec init(settings()) -> {ok, #s{}} | {error, reason()}.
init(#{dir := Dir} = Settings) ->
    _ = process_flag(trap_exit, true),
    case sderl_prof_live_store:open(Dir) of
        {ok, Profiles} ->
            Known = [lost(Profile, Settings) || Profile <- Profiles],
            {ok, #s{settings = Settings, profiles = #{Id => P || #{id := Id} = P <- Known}}};
        {error, Why} -> {error, {folder, Dir, Why}}
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}} | {noreply, #s{}}.
handle_call({check, Request}, _, S) ->
    {reply, allowed(Request, S), S};
handle_call({begin_, Id, Request}, _, S) ->
    maybe
        ok ?= allowed(Request, S),
        {ok, Next} ?= begun(Id, Request, S),
        {reply, ok, Next}
    else
        {error, Why} -> {reply, {error, Why}, S}
    end;
handle_call(list, _, #s{profiles = Profiles, settings = #{most_bytes := Most}} = S) ->
    Newest = lists:sort(fun(#{at := A, id := I}, #{at := B, id := J}) -> {A, I} >= {B, J} end,
                        maps:values(Profiles)),
    Limits = (sderl_prof_live_request:limits())#{running => ?MOST_RUNNING, kept => ?MOST_KEPT},
    {reply, #{now => erlang:system_time(millisecond), profiles => Newest, bytes => bytes(S),
              most_bytes => Most, limits => Limits}, S};
handle_call({find, Id}, _, #s{profiles = Profiles} = S) ->
    case Profiles of
        #{Id := Profile} -> {reply, {ok, Profile}, S};
        #{} -> {reply, {error, not_found}, S}
    end;
handle_call({confirm, Id, Insists}, _, #s{profiles = Profiles, runs = Runs} = S) ->
    case {Profiles, Runs} of
        {#{Id := #{state := ready, dear := true, costs := Costs}}, _} when not Insists ->
            {reply, {error, {dear, Costs}}, S};
        {#{Id := #{state := ready} = Profile}, #{Id := #run{pid = Pid}}} ->
            ok = sderl_prof_live_run:confirm(Pid),
            {reply, ok, put_profile(Profile#{state := running}, S)};
        {#{Id := _}, _} -> {reply, {error, not_ready}, S};
        _ -> {reply, {error, not_found}, S}
    end;
handle_call({stop, Id}, _, #s{profiles = Profiles, runs = Runs} = S) ->
    case {Profiles, Runs} of
        {#{Id := #{state := State} = Profile}, #{Id := Run}} when State =/= ending ->
            ok = ended_early(State, Run),
            {reply, ok, put_profile(Profile#{stopped := true}, S)};
        {#{Id := #{state := ending}}, #{Id := _}} -> {reply, {error, ending}, S};
        {#{Id := _}, _} -> {reply, {error, not_running}, S};
        _ -> {reply, {error, not_found}, S}
    end;
handle_call({remove, Id}, _, #s{profiles = Profiles, runs = Runs} = S) ->
    case Profiles of
        #{Id := #{state := ending}} when is_map_key(Id, Runs) -> {reply, {error, ending}, S};
        #{Id := _} when is_map_key(Id, Runs) -> {reply, {error, runs}, S};
        #{Id := _} -> removed(Id, closed(Id, S));
        #{} -> {reply, {error, not_found}, S}
    end;
handle_call({viewer, Id}, From, #s{profiles = Profiles} = S) ->
    case Profiles of
        #{Id := #{state := ended}} -> shown(Id, From, S);
        #{Id := Profile} -> {reply, {error, {nothing, Profile}}, S};
        #{} -> {reply, {error, not_found}, S}
    end;
handle_call(_, _, S) ->
    {reply, {error, unknown_call}, S}.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast({told, Id, Change}, #s{runs = Runs} = S) when is_map_key(Id, Runs) ->
    {noreply, changed(Id, Change, S)};
handle_cast({stops, Id, Fun}, #s{runs = Runs, profiles = Profiles} = S) ->
    case {Runs, Profiles} of
        {#{Id := Run}, #{Id := #{stopped := Stopped}}} ->
            Known = Run#run{stops = Fun},
            %% Somebody wanted it before it could be.
            ok = case Stopped of true -> ended_early(running, Known); false -> ok end,
            {noreply, S#s{runs = Runs#{Id := Known}}};
        _ -> {noreply, S}
    end;
handle_cast({opened, Id, Result}, #s{open = Open} = S) ->
    case Open of
        #{Id := #open{waiting = Waiting} = One} ->
            #{Id := #{kind := Kind}} = S#s.profiles,
            Answer = case Result of
                {ok, Viewer} -> {ok, Kind, Viewer};
                {error, Why} -> {error, {not_opened, Why}}
            end,
            _ = [gen_server:reply(From, Answer) || From <- Waiting],
            {noreply, case Result of
                {ok, Its} -> S#s{open = Open#{Id := One#open{viewer = Its, waiting = []}}};
                {error, _} -> S#s{open = maps:remove(Id, Open)}
            end};
        #{} -> {noreply, S}
    end;
handle_cast(_, S) ->
    {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info({'EXIT', Pid, Why}, #s{runs = Runs, open = Open} = S) ->
    case {[Id || Id := #run{pid = Its} <- Runs, Its =:= Pid],
          [Id || Id := #open{pid = Its} <- Open, Its =:= Pid]} of
        {[Id], _} ->
            %% Its messages came before.
            Text = unicode:characters_to_binary(io_lib:format("it ended early: ~0tP", [Why, 10])),
            {noreply, changed(Id, #{state => failed, why => Text}, S)};
        {_, [Id]} ->
            #{Id := #open{waiting = Waiting}} = Open,
            Text = unicode:characters_to_binary(io_lib:format("~0tP", [Why, 10])),
            _ = [gen_server:reply(From, {error, {not_opened, Text}}) || From <- Waiting],
            {noreply, S#s{open = maps:remove(Id, Open)}};
        _ -> {noreply, S}
    end;
handle_info(_, S) ->
    {noreply, S}.

%% For a profile that ran when this process ended last, `ended` is called once.
lost(#{id := Id, state := lost, ended_at := null} = Profile, #{dir := Dir, ended := Ended}) ->
    ok = sderl_prof_live_store:trim(Dir, Id),
    Now = Profile#{ended_at := erlang:system_time(millisecond),
                   bytes := sderl_prof_live_store:size(Dir, Id),
                   why := ~"the monitoring node, or what keeps its profiles, ended while it ran"},
    _ = sderl_prof_live_store:write(Dir, Now),
    _ = try Ended(Now) catch _:_ -> failed end,
    Now;
lost(Profile, _) -> Profile.

bytes(#s{profiles = Profiles}) -> lists:sum([Bytes || _ := #{bytes := Bytes} <- Profiles]).

%% What those that run may yet take.
reserved(#s{runs = Runs}) -> lists:sum([Needs || _ := #run{needs = Needs} <- Runs]).

%% ---------------------------------------------------------------- those that run

allowed(#{nodes := Nodes} = Request, #s{runs = Runs, profiles = Profiles,
                                        settings = #{most_bytes := Most}} = S) ->
    Names = [Name || {Name, _} <- Nodes],
    Kept = bytes(S) + reserved(S),
    Needs = sderl_prof_live_request:needs(Request),
    case sderl_prof_live_request:check(Request) of
        {error, Why} -> {error, {request, Why}};
        ok when map_size(Runs) >= ?MOST_RUNNING -> {error, {running, ?MOST_RUNNING}};
        ok when map_size(Profiles) >= ?MOST_KEPT -> {error, {kept, ?MOST_KEPT}};
        ok when Kept + Needs > Most -> {error, {no_room, Kept, Needs, Most}};
        ok ->
            case [{Name, Id} || Id := #run{nodes = Its} <- Runs, Name <- Names,
                                lists:member(Name, Its)] of
                [] -> ok;
                [{Name, Id} | _] -> {error, {busy, Name, Id}}
            end
    end.

begun(Id, #{kind := Kind, on := On, nodes := Nodes, who := Who, seconds := Seconds, mib := Mib,
            modules := Modules} = Request,
      #s{settings = #{dir := Dir, connect := Connect, may_load := MayLoad}, runs = Runs} = S) ->
    Names = [Name || {Name, _} <- Nodes],
    Profile = #{
        id => Id, kind => Kind, on => On, nodes => Names, who => Who,
        at => erlang:system_time(millisecond), seconds => Seconds, mib => Mib, modules => Modules,
        state => preparing, began => null, ended_at => null, costs => [], dear => false,
        problems => [], why => null, stopped => false, bytes => 0, book => null
    },
    case sderl_prof_live_store:write(Dir, Profile) of
        ok ->
            Pid = sderl_prof_live_run:start_link(#{
                server => self(), id => Id, dir => Dir, request => Request, connect => Connect,
                may_load => MayLoad
            }),
            Run = #run{pid = Pid, nodes = Names,
                       needs = sderl_prof_live_request:needs(Request)},
            {ok, put_profile(Profile, S#s{runs = Runs#{Id => Run}})};
        {error, Why} ->
            _ = sderl_prof_live_store:remove(Dir, Id),
            {error, {folder, Dir, Why}}
    end.

put_profile(#{id := Id} = Profile, #s{profiles = Profiles} = S) ->
    S#s{profiles = Profiles#{Id => Profile}}.

%% Before it runs it is withdrawn; where it is about to run, it is stopped as soon as it runs.
ended_early(_, #run{stops = Fun}) when is_function(Fun) ->
    _ = spawn(Fun),
    ok;
ended_early(running, _) ->
    ok;
ended_early(_, #run{pid = Pid}) ->
    sderl_prof_live_run:withdraw(Pid).

-spec changed(binary(), sderl_prof_live_run:change(), #s{}) -> #s{}.
changed(Id, Change, #s{profiles = Profiles} = S) ->
    #{Id := Before} = Profiles,
    #{state := State, costs := Costs} = Now = maps:merge(Before, Change),
    Profile = Now#{dear := sderl_prof_live_request:is_dear(Costs)},
    case lists:member(State, [ended, failed]) of
        true -> over(Profile, S);
        false -> put_profile(Profile, S)
    end.

over(#{id := Id, state := State} = Now,
     #s{settings = #{dir := Dir, ended := Ended}, runs = Runs} = S) ->
    %% The files of a profile that cannot be shown are removed.
    _ = [ok = sderl_prof_live_store:trim(Dir, Id) || State =:= failed],
    Profile = Now#{ended_at := erlang:system_time(millisecond),
                   bytes := sderl_prof_live_store:size(Dir, Id)},
    Known = case sderl_prof_live_store:write(Dir, Profile) of
        ok -> Profile;
        {error, Why} ->
            Text = unicode:characters_to_binary(format_error({folder, Dir, Why})),
            Profile#{state := failed, why := Text}
    end,
    _ = try Ended(Known) catch _:_ -> failed end,
    put_profile(Known, S#s{runs = maps:remove(Id, Runs)}).

removed(Id, #s{profiles = Profiles, settings = #{dir := Dir}} = S) ->
    case sderl_prof_live_store:remove(Dir, Id) of
        ok -> {reply, ok, S#s{profiles = maps:remove(Id, Profiles)}};
        {error, Why} -> {reply, {error, {folder, Dir, Why}}, S}
    end.

%% ---------------------------------------------------------------- those that somebody looks at

shown(Id, From, #s{open = Open, profiles = Profiles} = S) ->
    Now = erlang:monotonic_time(),
    case Open of
        #{Id := #open{viewer = none, waiting = Waiting} = One} ->
            {noreply, S#s{open = Open#{Id := One#open{waiting = [From | Waiting]}}}};
        #{Id := #open{viewer = Viewer} = One} ->
            #{Id := #{kind := Kind}} = Profiles,
            {reply, {ok, Kind, Viewer}, S#s{open = Open#{Id := One#open{used = Now}}}};
        #{} ->
            case with_room(S) of
                #s{open = Rest, settings = #{dir := Dir}} = Roomy ->
                    #{Id := Profile} = Profiles,
                    Self = self(),
                    Pid = spawn_link(fun() -> hold(Self, Dir, Profile) end),
                    One = #open{pid = Pid, waiting = [From], used = Now},
                    {noreply, Roomy#s{open = Rest#{Id => One}}};
                full -> {reply, {error, opening}, S}
            end
    end.

with_room(#s{open = Open} = S) when map_size(Open) < ?MOST_OPEN -> S;
with_room(#s{open = Open} = S) ->
    case lists:sort([{Used, Id} || Id := #open{viewer = Viewer, used = Used} <- Open,
                                   Viewer =/= none]) of
        [{_, Oldest} | _] -> with_room(closed(Oldest, S));
        [] -> full
    end.

closed(Id, #s{open = Open} = S) ->
    case Open of
        #{Id := #open{pid = Pid, waiting = Waiting}} ->
            _ = [gen_server:reply(From, {error, not_found}) || From <- Waiting],
            true = exit(Pid, shutdown),
            S#s{open = maps:remove(Id, Open)};
        #{} -> S
    end.

%% The viewer is linked to this process, which ends with the one that knows all profiles.
hold(Server, Dir, #{id := Id} = Profile) ->
    Result = try opened(Dir, Profile) of
        {ok, Viewer} -> {ok, Viewer};
        {error, Why} -> {error, unicode:characters_to_binary(Why)}
    catch
        _:Reason -> {error, unicode:characters_to_binary(io_lib:format("~0tP", [Reason, 10]))}
    end,
    ok = gen_server:cast(Server, {opened, Id, Result}),
    case Result of
        {ok, _} -> receive close -> ok end;
        {error, _} -> ok
    end.

opened(Dir, #{id := Id, kind := sampling}) ->
    maybe
        {ok, Reports} ?= case sderl_prof_sampling:read(sderl_prof_live_store:samples(Dir, Id)) of
            {ok, Read} -> {ok, Read};
            {error, Why} -> {error, sderl_prof_sampling:format_error(Why)}
        end,
        case sderl_prof_samples:decode(Reports) of
            {ok, Samples} -> {ok, sderl_prof_viewer:open_samples(Samples)};
            {error, Wrong} -> {error, sderl_prof_samples:format_error(Wrong)}
        end
    end;
opened(Dir, #{id := Id, book := Book}) when is_binary(Book) ->
    Folder = filename:join(sderl_prof_live_store:recording(Dir, Id),
                           unicode:characters_to_list(Book)),
    case sderl_prof_viewer:open(Folder) of
        {ok, Viewer} -> {ok, Viewer};
        {error, Why} -> {error, sderl_prof_view:format_error(Why)}
    end.

%% ---------------------------------------------------------------- in words

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({request, Why}) -> sderl_prof_live_request:format_error(Why);
format_error({running, Most}) ->
    io_lib:format("~b profiles run, which is the most: stop one, or wait", [Most]);
format_error({busy, Node, Id}) ->
    io_lib:format("~ts is being profiled (~ts): stop that, or wait for its end", [Node, Id]);
format_error({kept, Most}) ->
    io_lib:format("~b profiles are kept, which is the most: delete some", [Most]);
format_error({no_room, Kept, Needs, Most}) ->
    io_lib:format("profiles take ~b MB of the ~b MB that they may, and this one may take ~b MB: "
                  "delete some, or take fewer nodes or a lower limit of size (mib)",
                  [Kept div 1_000_000, Most div 1_000_000, Needs div 1_000_000]);
format_error({folder, Dir, Why}) ->
    io_lib:format("the folder of profiles, ~ts, cannot be used: ~ts", [Dir, posix(Why)]);
format_error(not_found) -> "there is no such profile: GET /profiles lists them";
format_error(runs) -> "it is not over: stop it first";
format_error(ending) -> "it is being fetched and analysed: wait for its end";
format_error(opening) ->
    io_lib:format("~b others are being opened, which is the most: ask again in a moment",
                  [?MOST_OPEN]);
format_error(not_ready) -> "it does not wait to be begun";
format_error(not_running) -> "it is over";
format_error({dear, Costs}) ->
    #{recording := #{events_s := Most}} = sderl_prof_live_request:limits(),
    io_lib:format("a trial counted ~ts: that is more than ~b events a second on a node. Record "
                  "fewer nodes or another kind, or insist (force)",
                  [lists:join(", ", [io_lib:format("~b events a second on ~ts",
                                                   [round(Events), Node])
                                     || #{node := Node, events_s := Events} <- Costs,
                                        Events > Most]), Most]);
format_error({nothing, #{state := failed, why := Why}}) when is_binary(Why) ->
    ["there is nothing to show: ", Why];
format_error({nothing, #{state := lost}}) ->
    "there is nothing to show: the monitoring node, or what keeps its profiles, ended while it ran";
format_error({nothing, _}) -> "there is nothing to show yet: it is not over";
format_error({not_opened, Why}) -> ["it cannot be opened: ", Why].

posix(Why) when is_atom(Why) -> file:format_error(Why);
posix(Why) -> io_lib:format("~0tP", [Why, 10]).
