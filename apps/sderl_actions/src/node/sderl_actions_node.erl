%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_node).
-moduledoc """
Runs one action on this node, for a process of a monitoring node, at low priority and with bounds of
time, memory and reductions. It ends when the asking process ends or its node is gone.

The asking process gets `{sderl_actions, Guard, {said, Term}}` for what an action shows while it
runs, and then `{sderl_actions, Guard, {done, Result}}` once. Results consist of maps, lists,
binaries, numbers, booleans and `null`, and no text in them contains a cookie of the node.
""".

-export([start/4, now_ms/0]).
-export([guard/4]).
-export_type([bounds/0, result/0]).

-doc "`words`: the memory of the working process, in machine words.".
-type bounds() :: #{ms := pos_integer(), words := pos_integer(), reductions := pos_integer()}.

-type result() :: {ok, term()} | {error, unicode:chardata()}.

-define(LOOK_MS, 100).

-doc """
Starts `Module:Function(Args)`; `Args` also has `say`, a function that sends something while the
action runs. Returns the process that guards it, which ends the action when it gets `{stop, From}`.
""".
-spec start(pid(), {module(), atom()}, #{atom() => term()}, bounds()) -> pid().
start(Asking, What, Args, Bounds) ->
    ok = sderl_actions_code:used(),
    spawn(?MODULE, guard, [Asking, What, Args, Bounds]).

-doc false.
-spec guard(pid(), {module(), atom()}, #{atom() => term()}, bounds()) -> ok.
guard(Asking, {M, F}, Args, #{ms := Ms, words := Words} = Bounds) ->
    true = group_leader(whereis(init), self()),
    Monitor = monitor(process, Asking),
    Guard = self(),
    Cookies = sderl_actions_cookie:read(),
    ok = sderl_actions_cookie:remember(Cookies),
    Say = fun(Term) ->
        _ = Asking ! {sderl_actions, Guard, {said, sderl_actions_show:without_cookies(Term)}},
        ok
    end,
    {Pid, Down} = spawn_opt(
        fun() ->
            ok = sderl_actions_cookie:remember(Cookies),
            Guard ! {done, self(), outcome(M, F, Args#{say => Say})}
        end,
        [link, monitor, {priority, low}, {message_queue_data, off_heap},
         {max_heap_size, #{size => Words, kill => true, error_logger => false}}]),
    _ = process_flag(trap_exit, true),
    End = now_ms() + Ms,
    Result = wait(Pid, Down, Monitor, End, Bounds),
    _ = Asking ! {sderl_actions, self(), {done, Result}},
    ok.

outcome(M, F, Args) ->
    try M:F(Args) of
        {ok, Result} -> {ok, sderl_actions_show:without_cookies(Result)};
        {error, Why} -> {error, sderl_actions_show:cut(Why, 2000)}
    catch
        Class:Reason ->
            {error, <<"it failed: ", (sderl_actions_show:line({Class, Reason}, 500))/binary>>}
    end.

wait(Pid, Down, Monitor, End, #{reductions := Most, words := Words} = Bounds) ->
    Left = End - now_ms(),
    receive
        {done, Pid, Result} -> Result;
        {'DOWN', Down, process, _, killed} ->
            {error, <<"it needed more than ", (megabytes(Words))/binary, " MB, and was ended">>};
        {'DOWN', Down, process, _, Reason} ->
            {error, <<"it ended: ", (sderl_actions_show:line(Reason, 300))/binary>>};
        {'DOWN', Monitor, process, _, _} -> ended(Pid, <<"nobody waits for it any more">>);
        {stop, _} -> ended(Pid, <<"it was stopped">>)
    after max(0, min(?LOOK_MS, Left)) ->
        case process_info(Pid, reductions) of
            {reductions, N} when N > Most ->
                ended(Pid, <<"it needed more than ", (integer_to_binary(Most))/binary,
                             " reductions, and was ended">>);
            _ when Left =< 0 -> ended(Pid, <<"it took too long, and was ended">>);
            _ -> wait(Pid, Down, Monitor, End, Bounds)
        end
    end.

ended(Pid, Why) ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    {error, Why}.

megabytes(Words) -> integer_to_binary(Words * erlang:system_info(wordsize) div 1_000_000).

-doc "Monotonic time in milliseconds.".
-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).
