%% SPDX-License-Identifier: Apache-2.0
-module(sderl_stand_in).
-moduledoc false.
%% A process of this node that stands for a process of another node, to which there is no link and
%% shall be none. Its messages go there in order, calls are answered, and it ends when and as the
%% other process ends.
%%
%% Messages both ways are a stream (`sderl_stream`) to a process on the other node, its *twin*
%% (`sderl_twin`), which calls and watches the other process. So nothing is lost, done twice or
%% overtaken when a gateway dies, and no caller waits for another's answer. The stand-in also
%% monitors the other process (`sderl_monitor`), to hear when its node, or the way to it, is lost.
%%
%% A node has one stand-in for each process, found in a table. It stays as long as a process
%% monitors it, is linked to it, waits for an answer, or has sent to it or asked for it within
%% `stand_in_idle_ms` (10 minutes). Then it leaves the table, and ends after as long again. It is no
%% child of a supervisor, because it ends with the other process.
%%
%% Links are mirrored: the exit of a process that is linked to the stand-in goes to the other
%% process, as it would if the two were linked.

-export([new/0, find/1]).
-import(sderl_clock, [now_ms/0]).

-define(TABLE, sderl_stand_ins).
-define(VSN, 1).
%% A stream that was silent for that long begins anew; the twin remembers it for longer.
-define(QUIET_MS, 30_000).
%% A sign of life while calls are out.
-define(KEEP_MS, 10_000).
%% For the last replies of a process that is known to have ended.
-define(LAST_WORDS_MS, 3000).

-record(i, {
    pid :: pid(),
    stream = sderl_stream:new(1),
    spoke :: integer(),
    calls = #{} :: #{pos_integer() => gen_server:from()},
    id = 1 :: pos_integer(),
    watch :: reference(),
    sup :: reference(),
    twin = false :: boolean(),
    used = true :: boolean(),
    listed = true :: boolean(),
    idle_ms :: pos_integer(),
    look_at :: integer(),
    limit :: pos_integer(),
    %% The other process ended; its last replies may be under way until then.
    ended :: undefined | {integer() | now, term()}
}).

-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public, {read_concurrency, true}]).

-doc "The stand-in on this node for a process of another.".
-spec find(pid()) -> pid().
find(Pid) ->
    Found = ets:update_element(?TABLE, Pid, {3, used})
        andalso ets:lookup_element(?TABLE, Pid, 2, none),
    case is_pid(Found) of
        true ->
            case is_process_alive(Found) of
                true -> Found;
                false -> unlist(Pid, Found), find(Pid)
            end;
        false -> start(Pid)
    end.

start(Pid) ->
    {Caller, Ref} = {self(), make_ref()},
    {New, Mon} = spawn_monitor(fun() -> init(Pid, Caller, Ref) end),
    receive
        {Ref, ready} -> true = demonitor(Mon, [flush]), New;
        %% Another caller was quicker.
        {'DOWN', Mon, process, New, _} -> find(Pid)
    end.

unlist(Pid, StandIn) ->
    true = ets:match_delete(?TABLE, {Pid, StandIn, '_'}),
    ok.

%% In the table only when it is ready for others.
init(Pid, Caller, Ref) ->
    _ = process_flag(trap_exit, true),
    case ets:insert_new(?TABLE, {Pid, self(), used}) of
        true -> Caller ! {Ref, ready}, begin_for(Pid);
        false -> ok
    end.

begin_for(Pid) ->
    %% It serves all callers, and must not end with the application of the first one.
    true = group_leader(whereis(init), self()),
    Idle = sderl_route_config:value(stand_in_idle_ms),
    Limit = sderl_route_config:value(route_queue),
    Now = now_ms(),
    loop(#i{pid = Pid,
            spoke = Now,
            watch = sderl_monitor:watch(Pid),
            sup = monitor(process, sderl_sup),
            idle_ms = Idle,
            look_at = Now + Idle,
            limit = Limit}).

loop(#i{ended = {At, Reason}} = I) when At =:= now -> stop(Reason, I);
loop(#i{stream = Stream, look_at = Look, calls = Calls, spoke = Spoke, ended = Ended} = I) ->
    Keep = case map_size(Calls) of 0 -> infinity; _ -> Spoke + ?KEEP_MS end,
    Last = case Ended of undefined -> infinity; {At, _} -> At end,
    Until = lists:min([Look, Keep, Last, sderl_stream:next(Stream)]),
    receive
        Message -> loop(flush(message(Message, I#i{used = true})))
    after max(0, Until - now_ms()) -> loop(flush(timeout(now_ms(), I)))
    end.

%% ---------------------------------------------------------------- what it is sent

message({'$gen_call', {_, _} = From, Request}, I) -> call('$gen_call', From, Request, I);
message({system, {_, _} = From, Request}, I) -> call(system, From, Request, I);
%% The calls of `gen_event`'s functions.
message({Pid, {Pid, [alias | _]} = From, Request}, I) when is_pid(Pid) ->
    call(self, From, Request, I);
message({sderl_stream, ?VSN, What}, I) -> stream(What, I);
message({'DOWN', Watch, process, _, Reason}, #i{watch = Watch} = I) -> down(Reason, I);
message({'DOWN', Sup, process, _, _}, #i{sup = Sup} = I) -> stop(lost_route, I);
message({'EXIT', _, normal}, I) -> I;
message({'EXIT', From, Reason}, I) when is_pid(From) -> pass({exit, Reason}, I);
message(Message, I) -> pass({send, Message}, I).

%% The caller of a refused call still waits: for the end of the process, or its timeout.
call(Label, From, Request, #i{id = Id} = I0) ->
    #i{calls = Calls} = I = pass({call, Id, Label, Request}, I0),
    I#i{id = Id + 1, calls = Calls#{Id => From}}.

pass(Item, #i{stream = Stream0, spoke = Spoke, calls = Calls, limit = Limit, pid = Pid} = I) ->
    Now = now_ms(),
    case sderl_stream:waiting(Stream0) of
        N when N >= Limit ->
            sderl_route_report:failed({node(), [{self(), {node(Pid), {to, Pid}}, busy, 1}]}),
            I;
        0 when Now - Spoke >= ?QUIET_MS, map_size(Calls) =:= 0 ->
            I#i{stream = sderl_stream:put(Item, Now,
                                          sderl_stream:new(sderl_stream:session(Stream0) + 1))};
        _ -> I#i{stream = sderl_stream:put(Item, Now, Stream0)}
    end.

flush(#i{stream = Stream0, pid = Pid} = I) ->
    Now = now_ms(),
    case sderl_stream:frames(Now, Stream0) of
        {[], Stream} -> I#i{stream = Stream};
        {Frames, Stream} ->
            lists:foreach(fun(Frame) ->
                sderl_route_send:again(node(Pid), {stream, Pid}, none,
                                       {sderl_stream, ?VSN, self(), Frame},
                                       sderl_stream:tries(Stream))
            end, Frames),
            I#i{stream = Stream, spoke = Now}
    end.

%% ---------------------------------------------------------------- what its twin says

stream({lost, Session}, #i{stream = Stream, calls = Calls} = I) ->
    case sderl_stream:session(Stream) of
        %% The twin was killed, and nobody knows what it had done.
        Session ->
            case map_size(Calls) + sderl_stream:waiting(Stream) of
                0 -> I#i{stream = sderl_stream:new(Session + 1)};
                _ -> stop(lost_route, I)
            end;
        _ -> I
    end;
stream(Frame, #i{stream = Stream0} = I) ->
    case sderl_stream:is_frame(Frame) of
        true ->
            {Items, Stream} = sderl_stream:received(Frame, now_ms(), Stream0),
            lists:foldl(fun item/2, I#i{stream = Stream, twin = true}, Items);
        false ->
            sderl_refused:note_message(?MODULE),
            I
    end.

item({reply, Id, Reply}, #i{calls = Calls} = I) ->
    case maps:take(Id, Calls) of
        {From, Rest} -> reply(From, Reply), I#i{calls = Rest};
        error -> I
    end;
%% Ends once the twin has heard that this is known.
item({down, Reason}, #i{stream = Stream} = I) ->
    I#i{ended = {now, Reason}, stream = sderl_stream:beat(now_ms(), Stream)};
item(_, I) ->
    sderl_refused:note_message(?MODULE),
    I.

%% As gen:reply/2, without connecting.
reply({_, [alias | Alias] = Tag}, Reply) when is_reference(Alias) -> answer(Alias, {Tag, Reply});
reply({_, [[alias | Alias] | _] = Tag}, Reply) when is_reference(Alias) ->
    answer(Alias, {Tag, Reply});
reply({Pid, Tag}, Reply) when is_pid(Pid) -> answer(Pid, {Tag, Reply});
reply(_, _) -> ok.

answer(To, Message) ->
    _ = erlang:send(To, Message, [noconnect]),
    ok.

%% ---------------------------------------------------------------- the end

down(_, #i{ended = {now, _}} = I) -> I;
down(Reason, #i{calls = Calls, stream = Stream, twin = Twin} = I) ->
    %% The twin has the last replies, and knows the reason if it saw the process alive.
    Known = map_size(Calls) + sderl_stream:waiting(Stream) =:= 0
        andalso not (Twin andalso Reason =:= noproc),
    case Known orelse Reason =:= noconnection orelse Reason =:= lost_route of
        true -> stop(Reason, I);
        false -> I#i{ended = {now_ms() + ?LAST_WORDS_MS, Reason}}
    end.

-spec stop(term(), #i{}) -> no_return().
stop(Reason, #i{pid = Pid}) ->
    unlist(Pid, self()),
    exit(Reason).

timeout(Now, #i{ended = {At, Reason}} = I) when Now >= At -> stop(Reason, I);
timeout(Now, #i{look_at = At, idle_ms = Idle} = I) when Now >= At ->
    true = erlang:garbage_collect(),
    look(I#i{look_at = Now + Idle});
timeout(Now, #i{calls = Calls, spoke = Spoke, stream = Stream} = I)
  when map_size(Calls) > 0, Now - Spoke >= ?KEEP_MS ->
    I#i{stream = sderl_stream:beat(Now, Stream)};
timeout(_, I) -> I.

look(#i{pid = Pid, used = Used, listed = Listed, calls = Calls0} = I) ->
    Calls = maps:filter(fun
        (_, {Caller, _}) -> node(Caller) =/= node() orelse is_process_alive(Caller);
        (_, _) -> true
    end, Calls0),
    case Used orelse map_size(Calls) > 0 orelse held() of
        true ->
            _ = Listed orelse ets:insert_new(?TABLE, {Pid, self(), used}),
            _ = ets:update_element(?TABLE, Pid, {3, idle}),
            I#i{used = false, calls = Calls, listed = true};
        false when Listed ->
            %% Unless a caller asks for it in this moment.
            case ets:select_delete(?TABLE, [{{Pid, self(), idle}, [], [true]}]) of
                0 -> _ = ets:update_element(?TABLE, Pid, {3, idle}), I;
                1 -> I#i{listed = false}
            end;
        false -> stop(normal, I)
    end.

%% Whether a process monitors it or is linked to it.
held() ->
    [{monitored_by, By}, {links, Links}] = process_info(self(), [monitored_by, links]),
    Links =/= [] orelse By -- [whereis(sderl_monitor)] =/= [].
