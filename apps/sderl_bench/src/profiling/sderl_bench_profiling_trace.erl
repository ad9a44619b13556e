%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profiling_trace).
-moduledoc """
A recording of any size, made up: pairs of processes that ask and answer, as a recorder with the
profile `messages` would have written it. Each exchange has twelve events.
""".

-export([write/3]).

-define(EVENTS, 12).
%% Exchanges that are written at a time.
-define(AT_ONCE, 4_096).
%% Nanoseconds between two exchanges.
-define(EVERY, 6_000).
-define(T0, -576_460_752_000_000_000).

-doc """
Writes at least so many events of so many pairs into a folder; gives the number of events.
""".
-spec write(file:filename_all(), Events :: pos_integer(), Pairs :: pos_integer()) -> pos_integer().
write(Dir, Events, Pairs) ->
    ok = filelib:ensure_path(Dir),
    Exchanges = (Events + ?EVENTS - 1) div ?EVENTS,
    {ok, File} = file:open(filename:join(Dir, "events.0.trace"), [write, raw, binary]),
    Table = list_to_tuple([templates(N) || N <- lists:seq(1, Pairs)]),
    ok = exchanges(File, 0, Exchanges, Table),
    ok = file:close(File),
    Bytes = filelib:file_size(filename:join(Dir, "events.0.trace")),
    ok = file:write_file(filename:join(Dir, "recording"), term_to_binary(info(Exchanges, Bytes))),
    Exchanges * ?EVENTS.

exchanges(_, Done, Done, _) ->
    ok;
exchanges(File, From, All, Table) ->
    To = min(All, From + ?AT_ONCE),
    ok = file:write(File, [exchange(N, element(1 + N rem tuple_size(Table), Table))
                           || N <- lists:seq(From, To - 1)]),
    exchanges(File, To, All, Table).

exchange(N, Templates) ->
    T = ?T0 + N * ?EVERY,
    [[Template, <<(-(T + 400 * I)):64/little>>] || {I, Template} <- Templates].

%% Each event but for its time, which is last: a negative number of eight bytes.
templates(N) ->
    [A, B] = [list_to_pid(lists:concat(["<0.", 1000 + 2 * N + I, ".0>"])) || I <- [0, 1]],
    Question = {ask, A, lists:seq(1, 5)},
    Answer = {answer, B, ok},
    Loop = {a_server_of_a_program, loop, 2},
    Call = {a_client_of_a_program, call, 3},
    lists:enumerate(0, [template(Event) || Event <- [
        {trace_ts, A, send, Question, B, ?T0},
        {profile, B, active, Loop, ?T0},
        {trace_ts, B, 'receive', Question, ?T0},
        {profile, A, inactive, Call, ?T0},
        {trace_ts, A, out, Call, ?T0},
        {trace_ts, B, in, Loop, ?T0},
        {trace_ts, B, send, Answer, A, ?T0},
        {profile, A, active, Call, ?T0},
        {trace_ts, A, 'receive', Answer, ?T0},
        {profile, B, inactive, Loop, ?T0},
        {trace_ts, B, out, Loop, ?T0},
        {trace_ts, A, in, Call, ?T0}
    ]]).

template(Event) ->
    Bin = term_to_binary(Event),
    Size = byte_size(Bin),
    <<0, Size:32, (binary:part(Bin, 0, Size - 8))/binary>>.

info(Exchanges, Bytes) ->
    #{
        version => 1, node => atom_to_binary(node()), otp => ~"29", schedulers => 2,
        items => [~"running", ~"message"], scheduler_id => false, alias_bits => none,
        keep => first, bytes => 1 bsl 40, began => ?T0, began_wall => 0, ended => time,
        ended_at => ?T0 + Exchanges * ?EVERY, written => Bytes, described => 0, undescribed => 0,
        own => [], system_profile => taken
    }.
