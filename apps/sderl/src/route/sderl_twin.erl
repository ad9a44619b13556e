%% SPDX-License-Identifier: Apache-2.0
-module(sderl_twin).
-moduledoc false.
%% The other half of a stand-in (`sderl_stand_in`), on the node of the process that it stands for:
%% reads the stream, calls the process on behalf of the stand-in, and sends back answers and the
%% reason of the process's end.
%%
%% It is started by the first frame of a stream and ends when nothing comes for a minute. The table
%% says which stream a twin has, so that none is started in the middle of a stream after it was
%% killed.

-export([new/0, deliver/2, prune/1]).
-import(sderl_clock, [now_ms/0]).

%% The tag of a call that is answered to an alias.
-dialyzer({no_improper_lists, [item/2]}).

-define(TABLE, sderl_twins).
-define(VSN, 1).
-define(SILENT_MS, 60_000).

-record(t, {
    pid :: pid(), for :: pid(), stream :: sderl_stream:stream(), heard :: integer(),
    mon :: reference(), sup :: reference(), calls = #{} :: #{reference() => pos_integer()}
}).

-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public, {read_concurrency, true}]).

-doc "A frame for a process of this node.".
-spec deliver(pid(), term()) -> ok.
deliver(Pid, {sderl_stream, ?VSN, StandIn, Frame}) when is_pid(StandIn) ->
    case sderl_stream:is_frame(Frame) of
        true -> framed(Pid, StandIn, Frame);
        false -> sderl_refused:note_message(?MODULE)
    end;
deliver(_, _) -> sderl_refused:note_message(?MODULE).

framed(Pid, StandIn, {Session, _, _, _, _} = Frame) ->
    case ets:lookup(?TABLE, StandIn) of
        [{_, Twin, Last} = Row] ->
            case is_process_alive(Twin) of
                true -> Twin ! {frame, Frame}, ok;
                false when Session > Last ->
                    true = ets:delete_object(?TABLE, Row),
                    begin_with(Frame, Pid, StandIn);
                false -> lost(Session, StandIn)
            end;
        [] -> begin_with(Frame, Pid, StandIn)
    end.

begin_with({Session, _, _, _, Items} = Frame, Pid, StandIn) ->
    case sderl_stream:fresh(Frame) of
        true ->
            Twin = spawn(fun() -> init(Pid, StandIn, Session) end),
            %% Frames that came over two ways are in two forwarding processes.
            case ets:insert_new(?TABLE, {StandIn, Twin, Session}) of
                true -> Twin ! {frame, Frame}, ok;
                false -> exit(Twin, kill), framed(Pid, StandIn, Frame)
            end;
        false when Items =:= [] -> ok;
        false -> lost(Session, StandIn)
    end.

lost(Session, StandIn) -> tell(StandIn, {lost, Session}, 0).

tell(StandIn, What, Tries) ->
    _ = sderl_route_send:again(node(StandIn), {to, StandIn}, none, {sderl_stream, ?VSN, What},
                               Tries),
    ok.

-doc "Forgets killed twins that were dead at the last call; gives those that are dead now.".
-spec prune(Before :: [pid()]) -> [pid()].
prune(Before) ->
    Dead = [Row || {_, Twin, _} = Row <- ets:tab2list(?TABLE), not is_process_alive(Twin)],
    {Long, Now} = lists:partition(fun({_, Twin, _}) -> lists:member(Twin, Before) end, Dead),
    lists:foreach(fun(Row) -> ets:delete_object(?TABLE, Row) end, Long),
    [Twin || {_, Twin, _} <- Now].

%% ---------------------------------------------------------------- the process

init(Pid, For, Session) ->
    loop(#t{pid = Pid, for = For, stream = sderl_stream:new(Session), heard = now_ms(),
            mon = monitor(process, Pid), sup = monitor(process, sderl_sup)}).

loop(#t{stream = Stream, heard = Heard} = T) ->
    receive
        Message -> loop(flush(message(Message, T)))
    after max(0, min(Heard + ?SILENT_MS, sderl_stream:next(Stream)) - now_ms()) ->
        case now_ms() - Heard >= ?SILENT_MS of
            true -> stop(T);
            false -> loop(flush(T))
        end
    end.

-spec stop(#t{}) -> no_return().
stop(#t{for = For}) ->
    true = ets:match_delete(?TABLE, {For, self(), '_'}),
    exit(normal).

message({frame, Frame}, T) ->
    case sderl_stream:is_frame(Frame) of
        true -> frame(Frame, T);
        false -> T
    end;
message({[alias | Alias], Reply}, #t{calls = Calls, stream = Stream} = T) ->
    case maps:take(Alias, Calls) of
        {Id, Rest} ->
            T#t{calls = Rest, stream = sderl_stream:put({reply, Id, Reply}, now_ms(), Stream)};
        error -> T
    end;
message({'DOWN', Mon, process, _, Reason}, #t{mon = Mon, stream = Stream} = T) ->
    T#t{stream = sderl_stream:put({down, Reason}, now_ms(), Stream)};
message({'DOWN', Sup, process, _, _}, #t{sup = Sup}) -> exit(normal);
message(_, T) -> T.

frame({Session, _, _, _, _} = Frame, #t{stream = Stream0, for = For} = T) ->
    Now = now_ms(),
    case sderl_stream:session(Stream0) of
        Session ->
            {Items, Stream} = sderl_stream:received(Frame, Now, Stream0),
            lists:foldl(fun item/2, T#t{stream = Stream, heard = Now}, Items);
        Old when Session > Old ->
            case sderl_stream:fresh(Frame) of
                true ->
                    true = ets:insert(?TABLE, {For, self(), Session}),
                    frame(Frame, T#t{stream = sderl_stream:new(Session)});
                %% Its first frame has not come yet.
                false -> T
            end;
        _ -> T
    end.

item({call, Id, Label, Request}, #t{pid = Pid, calls = Calls} = T) ->
    Alias = alias([reply]),
    Pid ! {case Label of self -> self(); _ -> Label end, {self(), [alias | Alias]}, Request},
    T#t{calls = Calls#{Alias => Id}};
item({send, Message}, #t{pid = Pid} = T) ->
    Pid ! Message,
    T;
item({exit, Reason}, #t{pid = Pid} = T) ->
    true = exit(Pid, Reason),
    T;
item(_, T) ->
    sderl_refused:note_message(?MODULE),
    T.

flush(#t{stream = Stream0, for = For} = T) ->
    {Frames, Stream} = sderl_stream:frames(now_ms(), Stream0),
    lists:foreach(fun(Frame) -> tell(For, Frame, sderl_stream:tries(Stream)) end, Frames),
    T#t{stream = Stream}.
