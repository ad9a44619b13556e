%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_service).
-moduledoc """
The process behind `sderl_chaos:start/1`: knows when the next round is due, the agents, and the log.
Work that takes time runs in linked processes: the rounds (`m:sderl_chaos_round`), one after the
other, and the beats, by which an agent learns that the service is alive and reports the things that
are back.
""".

-behaviour(gen_server).

-export([start/1, stop/2, log/1, status/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-import(sderl_clock, [now_ms/0]).

-record(state, {
    settings :: sderl_chaos_options:settings(),
    conf :: sderl_chaos_agent:conf(),
    plan :: sderl_chaos_plan:plan(),
    owner :: reference(),
    start_ms :: integer(),
    %% `silent`: there is an agent, but it did not answer last time. `none`: one is to be started.
    agents :: #{node() => {up | silent, pid()} | none},
    kills = #{} :: #{pos_integer() => sderl_chaos:kill()},
    %% Kills that are not back: the node whose agent watches, or the process that waits for a node.
    %% `lost`: the agent has not said yet whether it carried the order out.
    away = #{} :: #{pos_integer() => node() | pid() | {lost, node()}},
    %% Lost orders whose thing is back: they are not in the log, but the agent need not report them
    %% again.
    had = #{} :: #{pos_integer() => node()},
    %% 1 when nothing more may be killed.
    ended = atomics:new(1, []) :: atomics:atomics_ref(),
    number = 1 :: pos_integer(),
    round :: pid() | undefined,
    rounds = 0 :: non_neg_integer(),
    over = false :: boolean(),
    beats = #{} :: #{pid() => node()},
    skipped = #{at_once => 0, nothing_there => 0, missed => 0, unanswered => 0, late => 0} ::
        #{atom() => non_neg_integer()},
    problems = #{} :: #{{node(), term()} => term()},
    stopping :: undefined | {gen_server:from() | nobody, DeadlineMs :: integer()}
}).

-define(STOP_MS, 30_000).

-doc "See `sderl_chaos:start/1`.".
-spec start(sderl_chaos_options:settings()) -> gen_server:start_ret().
start(Settings) -> gen_server:start(?MODULE, Settings, [{timeout, infinity}]).

-doc "See `sderl_chaos:stop/2`.".
-spec stop(pid(), WaitMs :: non_neg_integer()) -> {ok, [sderl_chaos:kill()]}.
stop(Service, WaitMs) -> gen_server:call(Service, {stop, WaitMs}, WaitMs + ?STOP_MS).

-doc "See `sderl_chaos:log/1`.".
-spec log(pid()) -> [sderl_chaos:kill()].
log(Service) -> gen_server:call(Service, log).

-doc "See `sderl_chaos:status/1`.".
-spec status(pid()) -> sderl_chaos:status().
status(Service) -> gen_server:call(Service, status).

-doc false.
-spec init(sderl_chaos_options:settings()) -> {ok, #state{}} | {error, term()}.
init(#{owner := Owner, call := Call, install := Nodes, lease_ms := Lease, by_erpc := ByErpc} =
         Settings) ->
    _ = process_flag(trap_exit, true),
    Monitor = monitor(process, Owner),
    %% Nodes that are reached otherwise than over links cannot monitor this process.
    Conf = (maps:with([never, library, tops], Settings))#{
        owner =>
            case ByErpc of
                true -> self();
                false -> undefined
            end,
        lease_ms => Lease
    },
    case sderl_chaos_reach:install_all(Call, Nodes, Conf) of
        {ok, Agents} ->
            #{plan := Plan} = Settings,
            State = #state{
                settings = Settings,
                conf = Conf,
                plan = sderl_chaos_plan:new(Plan),
                owner = Monitor,
                start_ms = now_ms(),
                agents = #{Node => {up, Agent} || Node := Agent <- Agents}
            },
            {ok, beat_later(schedule(State))};
        {error, _} = Error ->
            Error
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}} | {stop, normal, #state{}}.
handle_call({stop, WaitMs}, From, State) ->
    ok = end_kills(State),
    settled(State#state{stopping = {From, now_ms() + WaitMs}, over = true});
handle_call(log, _From, State) ->
    {reply, in_order(State), State};
handle_call(status, _From, #state{plan = Plan, kills = Kills, away = Away, skipped = Skipped,
                                  agents = Agents, problems = Problems} = State) ->
    Next =
        case State#state.over orelse sderl_chaos_plan:next(Plan) of
            true -> over;
            over -> over;
            {ok, AtMs} -> AtMs
        end,
    Status = #{
        next_ms => Next,
        now_ms => now_ms() - State#state.start_ms,
        rounds => State#state.rounds,
        kills => map_size(Kills),
        not_back => map_size(Away),
        unsure => length([Number || Number := {lost, _} <- Away]),
        skipped => Skipped,
        silent => [Node || Node := Agent <- Agents, is_silent(Agent)],
        problems => [{Node, Class, Why} || {Node, Class} := Why <- Problems]
    },
    {reply, Status, State}.

is_silent({up, _}) -> false;
is_silent(_) -> true.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Message, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info(round, #state{over = true} = State) ->
    {noreply, State};
handle_info(round, #state{} = State) ->
    {noreply, begin_round(State)};
handle_info({round, Worker, Outcome}, #state{round = Worker} = State) ->
    settled(schedule(end_round(Outcome,
                               State#state{round = undefined, rounds = State#state.rounds + 1})));
handle_info(beat, State) ->
    settled(beat_later(begin_beats(agents_to_tell(State), State)));
handle_info({beat, Worker, Answer}, #state{beats = Beats} = State) ->
    {Node, Left} = maps:take(Worker, Beats),
    settled(end_beat(Node, Answer, State#state{beats = Left}));
handle_info({node_back, Number, BackUs}, #state{kills = Kills, agents = Agents} = State) ->
    #{Number := #{node := Node}} = Kills,
    settled(begin_beats(maps:with([Node], Agents), back([{Number, BackUs}], State)));
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) ->
    ok = end_kills(State),
    settled(State#state{stopping = {nobody, now_ms()}, over = true});
handle_info({'EXIT', _, normal}, State) ->
    {noreply, State};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, Reason, State};
handle_info(_Message, State) ->
    {noreply, State}.

-doc false.
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, State) -> end_kills(State).

%% Read by the round that may be under way.
end_kills(#state{ended = Ended}) -> atomics:put(Ended, 1, 1).

%% Rounds

schedule(#state{over = true} = State) ->
    State;
schedule(#state{plan = Plan, start_ms = Start} = State) ->
    {Late, Plan1} = sderl_chaos_plan:skip_late(Plan, now_ms() - Start),
    State1 = skipped(#{late => Late}, State#state{plan = Plan1}),
    case sderl_chaos_plan:next(Plan1) of
        {ok, AtMs} ->
            _ = erlang:send_after(max(0, Start + AtMs - now_ms()), self(), round),
            State1;
        over ->
            ok = tell(over, State1),
            State1#state{over = true}
    end.

begin_round(#state{settings = Settings, conf = Conf, plan = Plan, away = Away, agents = Agents,
                   number = Number, start_ms = Start, ended = Ended} = State) ->
    View = #{
        settings => Settings,
        conf => Conf,
        plan => Plan,
        agents => #{Node => Agent || Node := {up, Agent} <- Agents},
        away => #{N => agent_node(By) || N := By <- Away},
        number => Number,
        start_ms => Start,
        ended => Ended
    },
    Self = self(),
    State#state{
        round = spawn_link(fun() -> Self ! {round, self(), sderl_chaos_round:run(View)} end)
    }.

agent_node(Node) when is_atom(Node) -> Node;
agent_node({lost, Node}) -> Node;
agent_node(_) -> undefined.

end_round(#{plan := Plan, reports := Reports, kills := Kills, lost := Lost, number := Next,
            skipped := Skipped, problems := Problems}, State) ->
    State1 = problems(Problems,
                      skipped(Skipped, back(Reports, State#state{plan = Plan, number = Next}))),
    #state{away = Away, agents = Agents} = State2 = lists:foldl(fun killed/2, State1, Kills),
    State3 =
        State2#state{away = maps:merge(Away, #{Number => {lost, Node} || {Number, Node} <- Lost})},
    begin_beats(maps:with([Node || {_, Node} <- Lost], Agents), State3).

skipped(More, #state{skipped = Skipped} = State) ->
    State#state{skipped = maps:merge_with(fun(_, A, B) -> A + B end, Skipped, More)}.

problems(More, #state{problems = Problems} = State) ->
    State#state{problems = maps:merge(Problems,
                                      #{{Node, Class} => Why || {Node, Class, Why} <- More})}.

killed({#{number := Number, node := Node, kind := Kind} = Kill, Watch},
       #state{kills = Kills, away = Away, agents = Agents} = State) ->
    ok = tell({kill, Kill}, State),
    By =
        case Watch of
            nobody -> #{};
            agent -> #{Number => Node};
            {node, Spec, Since} -> #{Number => await_node(Number, Node, Spec, Since, State)}
        end,
    State#state{
        kills = Kills#{Number => Kill},
        away = maps:merge(Away, By),
        agents =
            case Kill of
                #{dry := false} when Kind =:= node -> Agents#{Node := none};
                _ -> Agents
            end
    }.

await_node(Number, Node, Spec, Since, #state{settings = #{call := Call}}) ->
    Self = self(),
    spawn_link(fun() ->
        Self ! {node_back, Number, sderl_chaos_node:await(Call, Node, Spec, Since)}
    end).

%% Beats

beat_later(#state{settings = #{lease_ms := Lease}, stopping = Stopping} = State) ->
    Ms =
        case Stopping of
            undefined -> max(100, Lease div 10);
            _ -> 50
        end,
    _ = erlang:send_after(Ms, self(), beat),
    State.

%% While the service is ending no agent is started any more.
agents_to_tell(#state{agents = Agents} = State) ->
    case is_finishing(State) of
        true -> #{};
        false -> Agents
    end.

begin_beats(Agents, #state{settings = #{call := Call}, conf = Conf, beats = Beats, kills = Kills,
                           away = Away, had = HadLost} = State) ->
    Self = self(),
    Had = by_node([{Node, N} || N := #{node := Node, back_us := Us} <- Kills, Us =/= undefined] ++
                  [{Node, N} || N := Node <- HadLost]),
    Lost = by_node([{Node, N} || N := {lost, Node} <- Away]),
    Waiting = maps:from_keys(maps:values(Beats), true),
    More = #{
        spawn_link(fun() ->
            Self ! {beat, self(), beat(Call, Node, Agent,
                                       {maps:get(Node, Had, []), maps:get(Node, Lost, [])}, Conf)}
        end) => Node
     || Node := Agent <- Agents, not is_map_key(Node, Waiting)
    },
    State#state{beats = maps:merge(Beats, More)}.

by_node(Pairs) -> maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, N}) -> N end, Pairs).

beat(Call, Node, none, _, Conf) ->
    case sderl_chaos_reach:install(Call, Node, Conf) of
        {ok, Agent} -> {installed, Agent};
        {error, _} -> none
    end;
beat(Call, Node, {_, Agent}, {_, Lost} = Numbers, _) ->
    case sderl_chaos_reach:beat(Call, Node, Agent, Numbers) of
        %% Of the lost orders those that the agent does not watch are settled: the thing is back, or
        %% the order was not carried out and will not be.
        {ok, Reports, Watched} -> {Agent, {ok, Reports, Lost -- Watched}};
        {error, _} = Error -> {Agent, Error}
    end.

%% The agent may be another one by now, or the node may have been killed.
end_beat(Node, Answer, #state{agents = Agents, away = Away} = State) ->
    case {Answer, Agents} of
        {{installed, New}, _} ->
            %% The things that its predecessor watched are no longer watched, and it is not known
            %% whether they are back.
            Gone = [Number || Number := By <- Away, agent_node(By) =:= Node],
            forget(Gone, State#state{agents = Agents#{Node := {up, New}}});
        {{Agent, {ok, Reports, Settled}}, #{Node := {_, Agent}}} ->
            forget(Settled, back(Reports, State#state{agents = Agents#{Node := {up, Agent}}}));
        {{Agent, {error, gone}}, #{Node := {_, Agent}}} ->
            State#state{agents = Agents#{Node := none}};
        {{Agent, {error, _}}, #{Node := {_, Agent}}} ->
            State#state{agents = Agents#{Node := {silent, Agent}}};
        _ ->
            State
    end.

forget(Numbers, #state{away = Away} = State) ->
    Left = maps:without(Numbers, Away),
    ok =
        case [lost || {lost, _} <- maps:values(Away)] =/= []
             andalso [lost || {lost, _} <- maps:values(Left)] of
            [] -> tell(sure, State);
            _ -> ok
        end,
    State#state{away = Left}.

back(Reports, State) -> lists:foldl(fun back_one/2, State, Reports).

%% An agent repeats a report until it is acknowledged; it may come before the round of its kill has
%% ended.
back_one({Number, BackUs}, #state{kills = Kills, away = Away, had = Had} = State) ->
    case {Kills, Away} of
        {#{Number := #{back_us := undefined} = Kill}, _} ->
            Back = Kill#{back_us := BackUs},
            ok = tell({back, Back}, State),
            State#state{kills = Kills#{Number := Back}, away = maps:remove(Number, Away)};
        {_, #{Number := {lost, Node}}} ->
            forget([Number], State#state{had = Had#{Number => Node}});
        _ ->
            State
    end.

tell(What, #state{settings = #{report := Report}}) ->
    case Report of
        undefined ->
            ok;
        Pid ->
            Pid ! {sderl_chaos, self(), What},
            ok
    end.

%% The end

settled(#state{stopping = undefined} = State) ->
    {noreply, State};
settled(#state{stopping = {From, _}, beats = Beats} = State) ->
    case is_finishing(State) andalso map_size(Beats) =:= 0 of
        false ->
            {noreply, State};
        true ->
            State1 = finish(State),
            _ = From =:= nobody orelse gen_server:reply(From, {ok, in_order(State1)}),
            {stop, normal, State1}
    end.

%% A round under way is awaited: its kills belong to the log.
is_finishing(#state{stopping = undefined}) -> false;
is_finishing(#state{round = Round}) when is_pid(Round) -> false;
is_finishing(#state{stopping = {_, Deadline}, away = Away}) ->
    map_size(Away) =:= 0 orelse now_ms() >= Deadline.

finish(#state{settings = #{call := Call}, agents = Agents, away = Away} = State) ->
    _ = [exit(Pid, kill) || Pid <- maps:values(Away), is_pid(Pid)],
    Up = [{Node, Agent} || Node := {_, Agent} <- Agents],
    Answers = sderl_chaos_reach:at_once(Up, fun({Node, Agent}) ->
        sderl_chaos_reach:finish(Call, Node, Agent)
    end, {error, timeout}),
    back(lists:append([Reports || {_, {ok, Reports}} <- Answers]), State).

in_order(#state{kills = Kills}) -> [Kill || _ := Kill <- maps:iterator(Kills, ordered)].
