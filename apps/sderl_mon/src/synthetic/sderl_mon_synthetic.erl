%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_synthetic).
-moduledoc """
Feeds the hub of this node from `m:sderl_mon_synthetic_feed`, in place of agents: the hub's mode is
`synthetic` then. The questions that would go to a node (`names/2`, `lookup/2`, `process/2`,
`trace/2`) are answered from the feed.
""".

-behaviour(gen_server).

-export([start/1, stop/0, is_running/0]).
-export([names/2, lookup/2, process/2, trace/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(INTERVAL_MS, 200).
-define(NAMES, 100).
-define(MOST_NAMES, 500).

-type state() :: #{hub := reference(), feed := sderl_mon_synthetic_feed:feed(),
                   interval := pos_integer(), next := integer()}.

-doc """
Starts the feed on this node's hub. Options: those of `t:sderl_mon_synthetic_feed:opts/0` and
`interval_ms` (200; also becomes the hub's). Errors: `busy` when the hub has another feed,
`{bad_option, Key, Value}`, `{already_started, Pid}`.
""".
-spec start(map()) -> gen_server:start_ret().
start(Opts) when is_map(Opts) ->
    gen_server:start({local, ?MODULE}, ?MODULE, Opts, []).

-doc "Ends the feed; the hub begins anew.".
-spec stop() -> ok.
stop() ->
    try
        gen_server:stop(?MODULE)
    catch
        exit:noproc -> ok
    end.

-doc "Whether the hub of this node is fed from here.".
-spec is_running() -> boolean().
is_running() -> whereis(?MODULE) =/= undefined.

-doc "Names of a group: `prefix` and `limit` (100; 500 at most). Errors: `not_found`.".
-spec names(sderl_mon_types:id(), sderl_mon_types:names_opts()) ->
    {ok, sderl_mon_types:names()} | {error, not_found}.
names(Group, Opts) ->
    case sderl_mon_synthetic_names:names(Group, maps:get(prefix, Opts, <<>>),
                                         sderl_mon_hub:now_topology()) of
        {ok, All} ->
            First = lists:sublist(All, max(1, min(?MOST_NAMES, maps:get(limit, Opts, ?NAMES)))),
            {ok, #{names => First, total => length(All), more => length(All) > length(First)}};
        {error, _} = Error ->
            Error
    end.

-doc "A name with its process. Errors: `not_found`.".
-spec lookup(sderl_mon_types:id(), binary()) -> {ok, sderl_mon_types:name()} | {error, not_found}.
lookup(Group, Text) ->
    case names(Group, #{prefix => Text, limit => ?MOST_NAMES}) of
        {ok, #{names := Names}} ->
            case [Found || #{name := Name} = Found <- Names, Name =:= Text] of
                [Found | _] -> {ok, Found};
                [] -> {error, not_found}
            end;
        {error, _} = Error ->
            Error
    end.

-doc "One process of a node, as its last details list it. Errors: `not_found`.".
-spec process(sderl_mon_types:id(), binary()) ->
    {ok, sderl_mon_types:process()} | {error, not_found}.
process(Node, Pid) ->
    case sderl_mon_hub:detail(Node) of
        {ok, #{top := Top}} ->
            case [P || #{pid := Of} = P <- Top, Of =:= Pid] of
                [Process | _] -> {ok, Process#{node => Node}};
                [] -> {error, not_found}
            end;
        {error, none} ->
            {error, not_found}
    end.

-doc "There is nothing to trace; the answer says so.".
-spec trace(sderl_mon_types:id(), sderl_mon_types:trace_opts()) -> {ok, sderl_mon_types:traced()}.
trace(_Node, _Opts) -> {ok, #{cost => <<"none: this cluster is made up">>}}.

%% Server

-doc false.
-spec init(map()) -> {ok, state()} | {error, term()}.
init(#{interval_ms := _} = Opts) ->
    case sderl_mon_hub:feed() of
        ok -> started(Opts);
        {error, busy} -> {error, busy}
    end;
init(Opts) ->
    init(Opts#{interval_ms => ?INTERVAL_MS}).

started(#{interval_ms := Interval} = Opts) ->
    case sderl_mon_hub:configure(#{interval_ms => Interval}) of
        ok ->
            Feed = sderl_mon_synthetic_feed:new(
                maps:with([nodes, groups, edges, seed, changes], Opts), sderl_mon_clock:wall_ms()
            ),
            State = #{hub => monitor(process, sderl_mon_hub), feed => Feed, interval => Interval,
                      next => sderl_mon_clock:now_ms()},
            {ok, later(State)};
        {error, {bad_option, Key, Value}} ->
            {error, {bad_option, Key, Value}}
    end.

later(#{interval := Interval, next := Next} = State) ->
    At = max(Next + Interval, sderl_mon_clock:now_ms()),
    _ = erlang:send_after(At, self(), tick, [{abs, true}]),
    State#{next := At}.

-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(_Other, _From, State) -> {reply, {error, unknown}, State}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Other, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()} | {stop, normal, state()}.
handle_info(tick, #{feed := Feed} = State) ->
    %% Waits for a hub that is busy.
    try sderl_mon_hub:watched() of
        Watched ->
            {Outs, Feed1} =
                sderl_mon_synthetic_feed:next(sderl_mon_clock:wall_ms(), Watched, Feed),
            lists:foreach(fun sderl_mon_hub:feed/1, Outs),
            {noreply, later(State#{feed := Feed1})}
    catch
        exit:{_, {gen_server, call, _}} -> {stop, normal, State}
    end;
handle_info({'DOWN', Hub, process, _Pid, _Reason}, #{hub := Hub} = State) ->
    {stop, normal, State};
handle_info(_Other, State) ->
    {noreply, State}.
