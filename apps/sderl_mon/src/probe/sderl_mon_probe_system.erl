%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_system).
-moduledoc """
The system monitor's events of a node: long collections and schedules, large heaps, full ports and
links, long queues.

They come through a session of their own (OTP 28). On OTP 27 a node has one setting: if another
program uses it, it is left alone.
""".

-export([start/1, stop/1, fact/1, count/2, processes/1, describe/2]).
-export_type([watch/0, seen/0]).

-import(sderl_mon_probe_text, [text/1, text/2, cut/2]).

-define(WATCHED, [{long_gc, 200},
                  {long_schedule, 500},
                  {large_heap, 16 * 1024 * 1024},
                  {busy_port, true},
                  {busy_dist_port, true},
                  {long_message_queue, {5000, 10_000}}]).

-type watch() :: {session, term()} | own | {left, pid() | port()}.
-doc "By kind, how many events there were, and the last one.".
-type seen() :: #{kind() => {pos_integer(), Who :: term(), What :: term()}}.
-type kind() :: long_gc | long_schedule | large_heap | busy_port | busy_dist_port
                | long_message_queue | queue_short | other.

-doc "Sends the events to `Owner`, for as long as it lives.".
-spec start(Owner :: pid()) -> watch().
start(Owner) ->
    case list_to_integer(erlang:system_info(otp_release)) >= 28 of
        true ->
            Session = trace:session_create(?MODULE, Owner, []),
            lists:foreach(fun({Event, Value}) ->
                _ = erlang:apply(trace, system, [Session, Event, Value])
            end, ?WATCHED),
            {session, Session};
        false ->
            case erlang:system_monitor() of
                undefined ->
                    _ = erlang:system_monitor(Owner, [case V of true -> E; _ -> {E, V} end
                                                      || {E, V} <- ?WATCHED]),
                    own;
                {Pid, _} -> {left, Pid}
            end
    end.

-doc "Ends that. Called by the owner only.".
-spec stop(watch()) -> ok.
stop({session, Session}) -> _ = trace:session_destroy(Session), ok;
stop(own) ->
    Self = self(),
    case erlang:system_monitor() of
        {Self, _} -> _ = erlang:system_monitor(undefined), ok;
        _ -> ok
    end;
stop({left, _}) -> ok.

-doc "How the events are had, for people.".
-spec fact(watch()) -> binary().
fact({session, _}) -> <<"own session">>;
fact(own) -> <<"own setting">>;
fact({left, Pid}) -> cut(["left alone: ", text(Pid), " of this node has it"], 200).

-doc """
Counts an event; returns the counter of its kind, too. An overloaded machine has long schedules
everywhere, so there may be very many events: a sample has one for each kind.
""".
-spec count({Kind :: term(), Who :: term(), What :: term()}, seen()) -> {Counter :: atom(), seen()}.
count({Kind0, Who, What}, Seen) ->
    {Kind, Counter} = kind(Kind0, What),
    {N, _, _} = maps:get(Kind, Seen, {0, Who, What}),
    {Counter, Seen#{Kind => {N + 1, Who, What}}}.

kind(long_message_queue, false) -> {queue_short, sysmon_queue_short};
kind(long_gc, _) -> {long_gc, sysmon_long_gc};
kind(long_schedule, _) -> {long_schedule, sysmon_long_schedule};
kind(large_heap, _) -> {large_heap, sysmon_large_heap};
kind(busy_port, _) -> {busy_port, sysmon_busy_port};
kind(busy_dist_port, _) -> {busy_dist_port, sysmon_busy_dist_port};
kind(long_message_queue, _) -> {long_message_queue, sysmon_long_message_queue};
kind(_, _) -> {other, sysmon_other}.

-doc "The processes of this node that the events are about.".
-spec processes(seen()) -> [pid()].
processes(Seen) ->
    lists:usort([Who || _ := {_, Who, _} <- Seen, is_pid(Who), node(Who) =:= node()]).

-doc "One event for each kind; `Names` describe processes.".
-spec describe(seen(), Names :: #{term() => [iodata()]}) ->
    [{kind(), Level :: atom(), Text :: binary(), Details :: map()}].
describe(Seen, Names) ->
    [{Kind, level(Kind), describe(Kind, N, Who, What, Names), #{count => N, process => text(Who)}}
     || Kind := {N, Who, What} <- Seen].

level(queue_short) -> info;
level(long_schedule) -> notice;
level(_) -> warning.

describe(Kind, N, Who, What, Names) ->
    Whose = lists:join(" ", [T || T <- [text(Who) | maps:get(Who, Names, [])], T =/= <<>>]),
    text("~ts ~ts~ts", [Whose, did(Kind, What),
                        case N of 1 -> ""; _ -> io_lib:format("; one of ~b such events", [N]) end]).

did(long_gc, [{timeout, Ms} | _]) when is_integer(Ms) ->
    io_lib:format("collected its garbage for ~b ms", [Ms]);
did(long_schedule, [{timeout, Ms} | _]) when is_integer(Ms) ->
    io_lib:format("ran for ~b ms without a break", [Ms]);
did(large_heap, Sizes) when length(Sizes) > 0 ->
    io_lib:format("has a heap of ~b words",
                  [lists:sum([V
                              || {K, V} <- Sizes, is_integer(V),
                                 K =:= heap_block_size orelse K =:= old_heap_block_size])]);
did(long_message_queue, _) -> "has more than 10000 messages waiting";
did(queue_short, _) -> "has less than 5000 messages waiting again";
did(busy_port, Port) -> ["waited for a port that had too much to send: ", text(Port)];
did(busy_dist_port, Port) ->
    ["waited for a full link: ", case lists:keyfind(Port, 2, erlang:system_info(dist_ctrl)) of
        {Node, _} -> atom_to_binary(Node);
        false -> text(Port)
    end];
did(Kind, What) -> [string:replace(atom_to_list(Kind), "_", " ", all), " ", text(What)].
