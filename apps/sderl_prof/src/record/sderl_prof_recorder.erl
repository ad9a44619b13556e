%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_recorder).
-moduledoc """
Records events of this node into files, by a plan of `m:sderl_prof_options`.

The virtual machine itself writes the events: the tracer of the session is the file driver of
`runtime_tools`, so that no process stands between, and messages are copied once. The recorder only
opens, watches the limits, and closes. It needs no other module of this project but
`m:sderl_prof_tap`, so that the two can be loaded into a node that has none.

Nothing stays switched on after it, however it ends. The port goes with the process that opened it,
and the session with the last reference to it. The system profiler, of which a node has one, is
taken only when nobody has it; a guard gives it back should the recorder be killed.

A recording is a folder: `recording` (`t:info/0` in external format, written at the begin and again
at the end) and `events.N.trace`, N from 0, files of the driver that are reused in turns.
""".

-behaviour(gen_server).

-export([start/3, stop/1, await/2, info/1, format_error/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([info/0, reason/0, ended/0, result/0]).

-include_lib("kernel/include/file.hrl").

%% Files that share the limit; there is one more while the driver goes from one to the next.
-define(PARTS, 16).
-define(LOOK_MS, 10).
%% Processes that are described at the begin; more would take longer than many a recording. Fewer
%% are, where a limit comes first.
-define(MOST_DESCRIBED, 200_000).

-doc """
How a recording ended: in time, stopped, because it was full, because the process that wanted it
has gone, because somebody ended its trace session, because the file could not be written, or not in
order.
""".
-type ended() :: time | stopped | full | owner | session | {disk, atom()} | unknown.

-doc """
A recording. Times are of the monotonic clock, in nanoseconds; `began_wall` is that of the system's.
`written` counts the bytes of events, also of those overwritten; `system_profile` tells whether the
system profiler was free; `code` are the modules whose functions are recorded. `alias_bits`: how
many low bits of a process's number are rotated in its aliases (`m:sderl_prof_event`), `none` where
this virtual machine makes aliases in another way; `own` are the recorder's processes. `share`: one
in so many processes is recorded.
""".
-type info() :: #{
    version := 1,
    node := binary(),
    otp := binary(),
    schedulers := pos_integer(),
    items := [binary()],
    scheduler_id := boolean(),
    alias_bits := none | pos_integer(),
    keep := first | last,
    bytes := pos_integer(),
    began := integer(),
    began_wall := integer(),
    ended := ended(),
    ended_at := integer() | undefined,
    written := non_neg_integer(),
    described := non_neg_integer(),
    undescribed := non_neg_integer(),
    own := [{Id :: non_neg_integer(), Serial :: non_neg_integer()}],
    code => [{Module :: binary(), Md5 :: binary()}],
    share => pos_integer(),
    system_profile := taken | busy | unused
}.

-type reason() ::
    {folder, file:filename_all(), term()} | not_empty | no_driver | {driver, term()}
    | {no_process, term()} | {no_application, atom()} | {no_module, module()} | {trace, term()}.

-doc "An error: the end could not be written into the folder, as it is gone, or the disk full.".
-type result() :: info() | {error, reason()}.

-record(state, {
    plan :: sderl_prof_options:plan(),
    dir :: file:filename_all(),
    owner :: reference(),
    port :: port() | closed,
    session :: trace:session() | destroyed,
    profiler = unused :: taken | busy | unused,
    guard :: pid(),
    info :: info(),
    %% The answer at the end; none before.
    result = none :: none | result(),
    %% Parts that are full, also those overwritten; the number of the one that is written.
    parts = 0 :: non_neg_integer(),
    current = 0 :: non_neg_integer(),
    waiting = [] :: [gen_server:from()]
}).

-doc """
Begins to record into this folder, which may not hold anything. It ends with `Owner`, on whatever
node that is.
""".
-spec start(sderl_prof_options:plan(), Dir :: file:filename_all(), Owner :: pid()) ->
    {ok, pid()} | {error, reason()}.
start(Plan, Dir, Owner) ->
    case gen_server:start(?MODULE, {Plan, Dir, Owner}, []) of
        {ok, Recorder} -> {ok, Recorder};
        {error, {refused, Reason}} -> {error, Reason};
        Other -> {error, {trace, Other}}
    end.

-doc "Ends the recording. Processes that wait for its end get their answer, too.".
-spec stop(pid()) -> result().
stop(Recorder) -> gen_server:call(Recorder, stop, infinity).

-doc "Waits for the end.".
-spec await(pid(), timeout()) -> result().
await(Recorder, Timeout) -> gen_server:call(Recorder, await, Timeout).

-doc "The recording so far.".
-spec info(pid()) -> info().
info(Recorder) -> gen_server:call(Recorder, info, infinity).

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({folder, Dir, Why}) ->
    io_lib:format("cannot write to the folder ~ts: ~ts", [Dir, file:format_error(Why)]);
format_error(not_empty) ->
    "the folder is not empty; name another, or none for a new one";
format_error(no_driver) ->
    "the node has no runtime_tools, whose driver writes the events; add it to the release";
format_error({driver, Why}) ->
    io_lib:format("the driver of runtime_tools cannot be used: ~0tp", [Why]);
format_error({no_process, Whom}) ->
    io_lib:format("there is no process ~0tp on the node", [Whom]);
format_error({no_application, Name}) ->
    io_lib:format("no application ~0tp runs on the node", [Name]);
format_error({no_module, Module}) ->
    io_lib:format("the node has no module ~0tp with functions to record", [Module]);
format_error({trace, Why}) ->
    io_lib:format("the node's tracing refuses this: ~0tp", [Why]).

%% ---------------------------------------------------------------- the process

-doc false.
-spec init({sderl_prof_options:plan(), file:filename_all(), pid()}) ->
    {ok, #state{}} | {stop, {refused, reason()}}.
init({Plan, Dir, Owner}) ->
    %% So that the limits hold on a busy node, too.
    _ = process_flag(priority, high),
    _ = process_flag(trap_exit, true),
    maybe
        {ok, IsNew} ?= prepare(Dir),
        {ok, State} ?= begun(Plan, Dir, Owner, IsNew),
        _ = erlang:send_after(?LOOK_MS, self(), look),
        {ok, State}
    else
        {error, Reason} -> {stop, {refused, Reason}}
    end.

%% A recorder that refuses leaves nothing behind.
begun(Plan, Dir, Owner, IsNew) ->
    try begin_recording(Plan, Dir, Owner) of
        {ok, State} -> {ok, State};
        {error, Reason} ->
            ok = leave(Dir, IsNew),
            {error, Reason}
    catch
        error:Why ->
            ok = leave(Dir, IsNew),
            {error, {trace, Why}}
    end.

begin_recording(#{milliseconds := Ms} = Plan, Dir, Owner) ->
    Self = self(),
    maybe
        ok ?= load_driver(),
        {ok, Port} ?= open(Plan, Dir),
        Guard = spawn(fun() -> sderl_prof_tap:guard(Self, Port) end),
        %% Started before anything is traced, as the guard, so that their events are not recorded.
        Describer = spawn_opt(fun() -> describe(Port) end, [link, {priority, high}]),
        State = #state{plan = Plan, dir = Dir, port = Port, guard = Guard,
                       owner = monitor(process, Owner),
                       session = trace:session_create(sderl_recording, Port, []),
                       info = new_info(Plan)},
        _ = erlang:send_after(Ms, self(), time),
        begin_tracing(Describer, State)
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}} | {stop, normal, term(), #state{}}.
handle_call(stop, _, State) ->
    #state{result = Result} = State1 = answered(finish(stopped, State)),
    {stop, normal, Result, State1};
handle_call(await, From, #state{result = none, waiting = Waiting} = State) ->
    {noreply, State#state{waiting = [From | Waiting]}};
handle_call(await, _, #state{result = Result} = State) ->
    {stop, normal, Result, State};
handle_call(info, _, #state{info = Info} = State) ->
    {reply, Info#{written := written(State)}, State}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, normal, #state{}}.
handle_info(look, #state{result = none, session = Session} = State0) ->
    State = look(State0),
    case {is_full(State), sderl_prof_tap:is_on(Session)} of
        {true, _} -> ended(full, State);
        {_, false} -> ended(session, State);
        _ ->
            _ = erlang:send_after(?LOOK_MS, self(), look),
            {noreply, State}
    end;
handle_info(time, State) -> ended(time, State);
handle_info({'DOWN', Ref, process, _, _}, #state{owner = Ref} = State) ->
    %% Nobody is left to ask for the result.
    {stop, normal, answered(finish(owner, State))};
handle_info({'EXIT', Port, Why}, #state{port = Port} = State) ->
    ended({disk, if is_atom(Why) -> Why; true -> unknown end}, State#state{port = closed});
handle_info(_, State) -> {noreply, State}.

-doc false.
-spec terminate(term(), #state{}) -> term().
terminate(_, State) -> answered(finish(unknown, State)).

%% The result is kept until it is asked for.
ended(_, #state{result = Result} = State) when Result =/= none ->
    {noreply, State};
ended(Why, #state{waiting = Waiting} = State) ->
    State1 = answered(finish(Why, State)),
    case Waiting of
        [] -> {noreply, State1};
        _ -> {stop, normal, State1}
    end.

answered(#state{waiting = Waiting, result = Result} = State) ->
    lists:foreach(fun(From) -> gen_server:reply(From, Result) end, Waiting),
    State#state{waiting = []}.

%% ---------------------------------------------------------------- the begin

%% Whether the folder is new.
prepare(Dir) ->
    IsNew = not filelib:is_dir(Dir),
    maybe
        ok ?= filelib:ensure_path(Dir),
        {ok, []} ?= file:list_dir_all(Dir),
        ok ?= begin_file(Dir, IsNew),
        {ok, IsNew}
    else
        {ok, [_ | _]} -> {error, not_empty};
        {error, Why} -> {error, {folder, Dir, Why}}
    end.

begin_file(Dir, IsNew) ->
    case file:write_file(filename:join(Dir, "recording"), <<>>) of
        ok -> ok;
        {error, _} = Error ->
            ok = leave(Dir, IsNew),
            Error
    end.

%% Nothing was in the folder before.
leave(Dir, true) ->
    _ = file:del_dir_r(Dir),
    ok;
leave(Dir, false) ->
    Ours = ["recording", "recording.new"
            | [events_file(Number) || Number <- lists:seq(0, ?PARTS)]],
    lists:foreach(fun(Name) -> _ = file:delete(filename:join(Dir, Name), [raw]) end, Ours).

load_driver() ->
    case code:priv_dir(runtime_tools) of
        {error, bad_name} -> {error, no_driver};
        Priv ->
            case erl_ddll:load_driver(filename:join(Priv, "lib"), "trace_file_drv") of
                ok -> ok;
                {error, already_loaded} -> ok;
                {error, Why} when is_atom(Why) -> {error, {driver, Why}};
                {error, Why} -> {error, {driver, lists:flatten(erl_ddll:format_error(Why))}}
            end
    end.

%% "events.", the number that the driver counts, and ".trace".
open(Plan, Dir) ->
    Prefix = filename:join(filename:absname(Dir), "events."),
    Tail = byte_size(unicode:characters_to_binary(Prefix)),
    Command = lists:flatten(io_lib:format("trace_file_drv w ~b ~b 0 ~b n ~ts.trace",
                                          [part_bytes(Plan), ?PARTS, Tail, Prefix])),
    try
        {ok, open_port({spawn_driver, Command}, [eof])}
    catch
        error:Why -> {error, {folder, Dir, Why}}
    end.

new_info(#{items := Items, flags := Flags, keep := Keep, bytes := Bytes}) ->
    #{
        version => 1,
        node => atom_to_binary(node()),
        otp => list_to_binary(erlang:system_info(otp_release)),
        schedulers => erlang:system_info(schedulers_online),
        items => [unicode:characters_to_binary(io_lib:format("~0tp", [Item])) || Item <- Items],
        scheduler_id => lists:member(scheduler_id, Flags),
        alias_bits => sderl_prof_tap:alias_bits(),
        keep => Keep,
        bytes => Bytes,
        began => erlang:monotonic_time(nanosecond),
        began_wall => erlang:system_time(nanosecond),
        ended => unknown,
        ended_at => undefined,
        written => 0,
        described => 0,
        undescribed => 0,
        own => [],
        system_profile => unused
    }.

begin_tracing(Describer,
              #state{plan = Plan, session = Session, port = Port, info = Info} = State) ->
    #{flags := Flags, port_flags := PortFlags, functions := Functions, who := Who,
      system_profile := Profile} = Plan,
    try
        ok = sderl_prof_tap:trace_functions(Session, Functions),
        ok = sderl_prof_tap:trace_ports(Session, PortFlags),
        ok = sderl_prof_tap:trace_senders(Session, maps:get(senders, Plan, false)),
        %% The guard is a process like any other.
        Own = [self(), State#state.guard, Describer],
        ok = sderl_prof_tap:trace_processes(Session, Who, Flags),
        _ = [trace:process(Session, Pid, false, [all]) || Pid <- Own],
        Taken = sderl_prof_tap:take_profiler(Port, Profile),
        Shared = #{share => Share || {share, Share} <- [Who]},
        Info1 = maps:merge(Info, Shared#{
            system_profile => Taken, code => sderl_prof_tap:code_of(Functions),
            own => [sderl_prof_tap:numbers(Pid) || Pid <- Own]
        }),
        State1 = described(Describer, processes() -- Own,
                           State#state{profiler = Taken, info = Info1}),
        case write_info(State1) of
            ok -> {ok, State1};
            {error, Reason} -> abandon(State1, Reason)
        end
    catch
        throw:Refusal -> abandon(State, Refusal);
        error:Why -> abandon(State, {trace, Why})
    end.

abandon(#state{session = Session, port = Port}, Reason) ->
    _ = trace:session_destroy(Session),
    ok = sderl_prof_tap:give_back_profiler(Port),
    ok = close(Port),
    {error, Reason}.

%% ---------------------------------------------------------------- records of its own

%% Describes the processes that exist: their names and first functions. A process may take long to
%% answer, and there may be many: another process asks them, and the limits hold meanwhile.
described(Describer, Pids, #state{info = Info} = State) ->
    {Now, _} = lists:split(min(?MOST_DESCRIBED, length(Pids)), Pids),
    Counts = counters:new(2, []),
    Describer ! {describe, Now, Counts},
    State1 = await_described(Describer, State),
    Info1 = Info#{described := counters:get(Counts, 2),
                  undescribed := length(Pids) - counters:get(Counts, 1)},
    State1#state{info = Info1}.

%% An end of the recording meanwhile is handled as at any other time.
await_described(Describer, #state{owner = Owner, port = Port} = State) ->
    receive
        {'EXIT', Describer, _} -> State;
        time -> end_describing(time, Describer, State);
        {'DOWN', Owner, process, _, _} = Down -> end_describing(Down, Describer, State);
        {'EXIT', Port, _} = Exit -> end_describing(Exit, Describer, State)
    after ?LOOK_MS ->
        Looked = look(State),
        case is_full(Looked) of
            true -> end_describing(look, Describer, Looked);
            false -> await_described(Describer, Looked)
        end
    end.

end_describing(Message, Describer, State) ->
    true = exit(Describer, kill),
    receive {'EXIT', Describer, _} -> ok end,
    _ = self() ! Message,
    State.

%% Counts the processes that it has asked, and those that it has described.
describe(Port) ->
    receive
        {describe, Pids, Counts} ->
            lists:foreach(fun(Pid) ->
                lists:foreach(fun({Name, Mfa, Parent}) ->
                    true = tell(Port, {process, Pid, Name, Mfa, Parent}),
                    counters:add(Counts, 2, 1)
                end, description(Pid)),
                counters:add(Counts, 1, 1)
            end, Pids)
    end.

description(Pid) ->
    case process_info(Pid, [registered_name, initial_call, parent]) of
        undefined -> [];
        [{_, Name}, {_, Mfa}, {_, Parent}] ->
            [{if Name =:= [] -> undefined; true -> Name end, initial_call(Pid, Mfa), Parent}]
    end.

initial_call(Pid, {proc_lib, init_p, _}) -> proc_lib:translate_initial_call(Pid);
initial_call(_, Mfa) -> Mfa.

%% The port closes where the disk is full.
tell(Port, Term) ->
    try port_command(Port, term_to_binary({sderl_recording, Term}))
    catch error:badarg -> exit(normal)
    end.

%% ---------------------------------------------------------------- the limits and the end

%% The driver counts its files from 0 to ?PARTS and then from 0 again, and the one that it would
%% write next is not there. A part is full when the next one has begun; of the current one, what is
%% written. (What the port itself counts leaves out what came from other schedulers.)
look(#state{dir = Dir, parts = Parts, current = Current} = State) ->
    Next = hd([N || N <- lists:seq(0, ?PARTS), size_of(Dir, N) =:= none] ++ [0]),
    Now = (Next + ?PARTS) rem (?PARTS + 1),
    Begun = (Now - Current + ?PARTS + 1) rem (?PARTS + 1),
    State#state{parts = Parts + Begun, current = Now}.

written(#state{plan = Plan, dir = Dir, parts = Parts, current = Current}) ->
    Parts * part_bytes(Plan) + case size_of(Dir, Current) of none -> 0; Size -> Size end.

size_of(Dir, Number) ->
    case file:read_file_info(filename:join(Dir, events_file(Number)), [raw]) of
        {ok, #file_info{size = Size}} -> Size;
        {error, _} -> none
    end.

events_file(Number) -> lists:concat(["events.", Number, ".trace"]).

part_bytes(#{bytes := Bytes}) -> Bytes div (?PARTS + 1).

%% Some parts are left for events that the driver has not written yet.
is_full(#state{plan = #{keep := Keep}, parts = Parts}) ->
    Keep =:= first andalso Parts >= ?PARTS - 3.

%% Tracing ends first, whatever the disk does.
finish(_, #state{result = Result} = State) when Result =/= none ->
    State;
finish(Why, #state{session = Session, port = Port, info = Info, plan = Plan} = State) ->
    _ = trace:session_destroy(Session),
    EndedAt = erlang:monotonic_time(nanosecond),
    ok = sderl_prof_tap:end_profiler(Port, map_get(system_profile, Plan)),
    ok = close(Port),
    State1 = look(State#state{port = closed, session = destroyed}),
    Info1 = Info#{ended := Why, ended_at := EndedAt, written := written(State1)},
    State2 = State1#state{info = Info1},
    case write_info(State2) of
        ok -> State2#state{result = Info1};
        {error, _} = Error -> State2#state{result = Error}
    end.

%% Events that schedulers sent before reach the port before this does.
close(closed) -> ok;
close(Port) ->
    try
        true = port_close(Port),
        receive {'EXIT', Port, _} -> ok after 0 -> ok end
    catch
        error:badarg -> ok
    end.

write_info(#state{dir = Dir, info = Info}) ->
    Name = filename:join(Dir, "recording"),
    Aside = filename:join(Dir, "recording.new"),
    maybe
        ok ?= file:write_file(Aside, term_to_binary(Info)),
        ok ?= file:rename(Aside, Name)
    else
        {error, Why} ->
            _ = file:delete(Aside, [raw]),
            {error, {folder, Dir, Why}}
    end.
