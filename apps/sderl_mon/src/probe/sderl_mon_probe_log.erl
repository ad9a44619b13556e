%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_log).
-moduledoc """
The handler of `logger` that a probe adds to its node, so that monitoring nodes get the node's log.

It runs in the process that logs, and its work there is bounded: an event that passes the gate
(`m:sderl_mon_probe_gate`) is formatted to at most 2,000 characters and a depth of 30, and sent to
the collector (`m:sderl_mon_probe_collector`); one that does not pass is counted. It never waits,
and never fails, because `logger` would remove it then.
""".

-export([check/1, add/3, change/3, remove/0]).
-export([log/2]).
-export_type([options/0, event/0]).

-import(sderl_mon_probe_text, [cut/2, own_pid/1]).

-doc """
Events below `level` are not sent; `per_s` events a second at most, and `burst` at once after a
quiet time.
""".
-type options() :: #{
    level := logger:level(),
    per_s := 1..10_000,
    burst := 1..10_000
}.

-doc "Level, microseconds since 1970 by the node's clock, module:function/arity, process, text.".
-type event() :: {logger:level(), T :: integer(), Mfa :: binary(), Pid :: binary(),
                  Text :: binary()}.

-define(HANDLER, sderl_mon_handler).
-define(CHARS, 2000).
-define(BYTES, 4000).
-define(DEPTH, 30).
-define(MFA, 300).
%% The domain of the monitoring's own log events. They are left out: each would cause the next one.
-define(OWN, sderl_mon_own).

-doc "Checks options from a monitoring node.".
-spec check(term()) -> {ok, options()} | error.
check(#{level := Level, per_s := PerS, burst := Burst} = Opts)
  when is_integer(PerS), PerS >= 1, PerS =< 10_000, is_integer(Burst), Burst >= 1,
       Burst =< 10_000 ->
    case lists:member(Level, sderl_mon_probe_gate:levels()) of
        true -> {ok, maps:with([level, per_s, burst], Opts)};
        false -> error
    end;
check(_) -> error.

-doc "Adds the handler, in place of one that was left. It sends the collector `{logged, Event}`.".
-spec add(pid(), sderl_mon_probe_gate:gate(), options()) -> ok | {error, term()}.
add(Collector, Gate, #{level := Level}) ->
    ok = remove(),
    %% No filters: those of the node's own handlers concern only these.
    logger:add_handler(?HANDLER, ?MODULE, #{level => Level, filter_default => log, filters => [],
                                            config => config(Collector, Gate)}).

-doc "Changes the handler's options. (If somebody has removed it, it stays removed.)".
-spec change(pid(), sderl_mon_probe_gate:gate(), options()) -> ok.
change(Collector, Gate, #{level := Level}) ->
    _ = logger:update_handler_config(?HANDLER, #{level => Level,
                                                 config => config(Collector, Gate)}),
    ok.

config(Collector, Gate) -> #{collector => Collector, gate => Gate}.

-doc "Removes the handler, if it is there.".
-spec remove() -> ok.
remove() ->
    _ = logger:remove_handler(?HANDLER),
    ok.

-doc false.
-spec log(logger:log_event(), logger_handler:config()) -> ok.
log(#{meta := #{domain := [?OWN | _]}}, _) ->
    ok;
%% `logger` passes on the events of a process to the node of its group leader, as with `rpc:call/4`:
%% the node of the process has told them already.
log(#{meta := #{pid := Pid}}, _) when is_pid(Pid), node(Pid) =/= node() ->
    ok;
log(#{level := Level} = Event, #{config := #{collector := Collector, gate := Gate}}) ->
    case sderl_mon_probe_gate:enter(Level, Gate) of
        pass ->
            _ = Collector ! {logged, worded(Event)},
            ok;
        limited ->
            ok;
        full ->
            _ = is_process_alive(Collector) orelse spawn(fun remove/0),
            ok
    end.

worded(#{level := Level, meta := Meta} = Event) ->
    {Level, time(Meta), cut(mfa(Meta), ?MFA), pid(Meta), text(Event)}.

time(#{time := T}) when is_integer(T) -> T;
time(_) -> erlang:system_time(microsecond).

mfa(#{mfa := {M, F, A}}) when is_atom(M), is_atom(F), is_integer(A) ->
    [atom_to_list(M), $:, atom_to_list(F), $/, integer_to_list(A)];
mfa(_) -> "".

pid(#{pid := Pid}) when is_pid(Pid) -> own_pid(Pid);
pid(_) -> <<>>.

%% Reports are formatted by functions of the program that logs, which may fail.
text(Event) ->
    try
        Text = logger_formatter:format(Event, #{template => [msg], single_line => false,
                                                legacy_header => false, depth => ?DEPTH,
                                                chars_limit => ?CHARS}),
        cut(Text, ?BYTES)
    catch
        _:_ -> <<"(this event cannot be put into words)">>
    end.
