%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_master_core).
-moduledoc """
The decisions of the masters of a shadow network, without a process or a message: `step(Event, Now,
State)` gives the effects, in order, and the new state. `Now` is monotonic time in milliseconds.

## Who leads

Each monitoring node has a master, and all masters know the same, because reports go to all of them.
The live master with the lowest node name leads. Masters send beats every 500 ms; one that was not
heard for 3 s, or whose connection was lost, counts as dead. A new leader takes a term above all
that it has seen, which no other master takes, so that of two leaders (after a cut, or when a
stopped node goes on) the later one is obeyed. A new master first asks the others for their state,
and waits up to 1.5 s for it; one that finds agents on its own node waits for their reports. So
running agents are adopted where they are.

Each beat says which masters its sender hears. If a master hears another one that hears a master
with a lower name, then that one leads, even if it is not heard here. So if only two masters are cut
off from each other, the one with the higher name does not lead. It gives up its agents after 3 s;
the other has placed them elsewhere by then.

## What a leader does

From the reports of nodes it makes the list of all nodes and the groups of each
(`m:sderl_mon_members`), from these the agents and where they run (`m:sderl_mon_layout`), and from
all that the topology. The whole plan goes to all masters, and each runs its part of it. A master
that missed the plan has an old version in its beat, and is sent the plan again.

## Settings

A setting (`m:sderl_mon_shared`) is sent to all masters at once, and each beat says which settings
its sender knows: a master that knows later ones sends them. So a setting survives once one live
master knows it, whichever leads. It is lost only if its node dies before such a master has it (by
its message, or after a cut by the next beats). Of two settings of one option the later wins,
everywhere.

## Not promised

If two monitoring nodes are cut off from each other, no third one hears both, and both see the
cluster, then both lead. A probe sends its samples to the one with the higher term; the other shows
its nodes as watched by a newer master.
""".

-export([new/3, step/3]).
-export([leads/1, term/1, shared/1, status/1, nodes/1]).
-export_type([state/0, event/0, effect/0, status/0]).

-define(BEAT_MS, 500).
-define(DEAD_MS, 3000).
-define(GRACE_MS, 1500).
-define(ADOPT_MS, 3000).        % the longest wait for reports of agents that were found
-define(SETTLE_MS, 20).
-define(CONNECT_MS, 2000).
-define(AGAIN_MS, 5000).
-define(FORGET_MS, 600_000).

-opaque state() :: map().
-type event() ::
    tick
    | settle
    %% Checked: see m:sderl_mon_message.
    | {peer, sderl_mon_message:kind(), From :: node(), Payload :: term()}
    | {monitor_down, node()}
    | {config, sderl_mon_message:shared()}
    | {adopted, [sderl_mon_message:orders()]}.
-type effect() ::
    {tell, node(), sderl_mon_message:kind(), Payload :: term()}
    | {connect, node()}
    | {settle, pos_integer()}
    | {seen, sderl_mon_message:scope(), node()}
    | {run, [sderl_mon_message:orders()]}
    | {adopt_config, sderl_mon_message:shared()}
    | {topology, Hubs :: [node()], sderl_mon_types:topology()}
    | {events, Hubs :: [node()], Term :: integer(), [sderl_mon_types:new_event()]}.

-doc "A master that has heard nothing yet, with the settings of its node.".
-spec new(node(), sderl_mon_message:shared(), integer()) -> state().
new(Self, #{config := Config, stamps := Stamps}, Now) ->
    #{
        self => Self,
        config => Config,
        stamps => Stamps,
        role => follower,
        leader => undefined,
        term => 0,
        seen => 0,
        begun => Now,
        hold => Now,
        awaited => [],
        last_tick => Now,
        last_beat => Now - ?BEAT_MS,
        last_topology => Now,
        asked => #{},
        answered => #{},
        beats => #{},
        apart => none,
        nodes => #{},
        %% The reports when the leader was last heard: it has told subscribers of these.
        led => #{},
        version => {undefined, 0},
        plan => none,
        placement => #{},
        members => #{},
        epoch => 0,
        topology => none,
        settling => false
    }.

-doc "One step.".
-spec step(event(), Now :: integer(), state()) -> {[effect()], state()}.
step(tick, Now, State) ->
    {E1, S1} = beat(Now, woken(Now, State)),
    {E2, S2} = elect(Now, S1),
    {E3, S3} = upkeep(Now, S2),
    {E1 ++ E2 ++ E3, S3#{last_tick := Now}};
step(settle, Now, State) ->
    planned(Now, State#{settling := false});
step({config, Set}, _, #{self := Self} = State) ->
    case heed(Set, State) of
        {[], State} ->
            {[], State};
        %% A setting made here is in force here.
        {_, State1} ->
            Told = [{tell, M, config, shared(State1)} || M <- monitors(State1) -- [Self]],
            add(Told, settle(State1))
    end;
step({adopted, []}, _, State) ->
    {[], State};
step({adopted, Specs}, Now, #{self := Self, seen := Seen} = State) ->
    Placement = #{Scope => Self || #{scope := Scope} <- Specs},
    {[], State#{
        nodes := sderl_mon_members:unknown([N || #{nodes := Nodes} <- Specs, N <- Nodes], Now),
        seen := lists:max([Seen | [T || #{term := T} <- Specs]]),
        placement := Placement,
        awaited := maps:keys(Placement),
        hold := Now + ?ADOPT_MS
    }};
step({monitor_down, Node}, Now, #{beats := Beats} = State) when is_map_key(Node, Beats) ->
    %% The next tick sends a beat: others may wait for it.
    elect(Now, State#{beats := maps:remove(Node, Beats), last_beat := Now - ?BEAT_MS});
step({monitor_down, _}, _, State) ->
    {[], State};
step({peer, Kind, From, Payload}, Now, #{self := Self} = State)
  when From =/= Self; Kind =:= report ->
    heard(Kind, From, Payload, Now, State);
step(_, _, State) ->
    {[], State}.

%% This node was stopped, so the silence of others meanwhile says nothing about them, and what its
%% agents reported may still wait to be read.
woken(Now, #{last_tick := Last, beats := Beats} = State) when Now - Last > ?DEAD_MS div 2 ->
    State#{beats := #{M => B#{at := Now} || M := B <- Beats}, hold := Now + ?ADOPT_MS};
woken(_, State) ->
    State.

%% ---------------------------------------------------------------- monitoring nodes

monitors(#{self := Self, config := #{monitors := Monitors}, beats := Beats}) ->
    lists:usort([Self | Monitors] ++ maps:keys(Beats)).

live(Now, #{self := Self, beats := Beats}) ->
    lists:usort([Self | [M || M := #{at := At} <- Beats, Now - At < ?DEAD_MS]]).

%% The lowest of the live masters and of those that they hear, and whether it is heard here.
lowest(Now, #{beats := Beats} = State) ->
    Live = live(Now, State),
    Lowest = lists:min(
        Live ++ lists:append([Hears || M <- Live, #{hears := Hears} <- [maps:get(M, Beats, none)]])
    ),
    {Lowest, lists:member(Lowest, Live)}.

beat(Now, #{last_beat := Last} = State) when Now - Last < ?BEAT_MS ->
    {[], State};
beat(Now, #{self := Self, asked := Asked, beats := Beats, answered := Answered} = State) ->
    Others = monitors(State) -- [Self],
    Beat = beating(Now, State),
    Silent = [M
              || M <- Others, not is_map_key(M, Beats),
                 Now - maps:get(M, Asked, Now - ?CONNECT_MS) >= ?CONNECT_MS],
    New = [M || M <- Others, not is_map_key(M, Answered), grace(Now, State)],
    {
        [{tell, M, beat, Beat} || M <- Others] ++ [{connect, M} || M <- Silent] ++
        [{tell, M, hello, #{}} || M <- New],
        State#{last_beat := Now, asked := maps:merge(Asked, #{M => Now || M <- Silent})}
    }.

%% Merges settings, made here or elsewhere.
heed(Theirs, State) ->
    Ours = shared(State),
    case sderl_mon_shared:merge(Theirs, Ours) of
        Ours -> {[], State};
        Merged -> {[{adopt_config, Merged}], maps:merge(State, Merged)}
    end.

%% The settings in force elsewhere hold, except for settings that are not known there yet.
adopt(Theirs, State) ->
    Adopted = sderl_mon_shared:adopt(maps:with([config, stamps], Theirs), shared(State)),
    {[{adopt_config, Adopted}], maps:merge(State, Adopted)}.

%% With `seen`: a leader whose term was passed while it was cut off must learn that.
beating(Now,
        #{self := Self, role := Role, term := Term, seen := Seen, version := Version,
          stamps := Stamps} = State) ->
    #{term => Term, seen => Seen, lead => Role =:= leader, version => Version,
      hears => live(Now, State) -- [Self], stamps => Stamps}.

grace(Now, #{begun := Begun, hold := Hold, awaited := Awaited, self := Self,
             answered := Answered} = State) ->
    (Awaited =/= [] andalso Now < Hold) orelse (Now - Begun < ?GRACE_MS
                       andalso (monitors(State) -- [Self]) -- maps:keys(Answered) =/= []).

elect(Now, #{self := Self, role := Role, beats := Beats, term := Term, seen := Seen} = State) ->
    {Lowest, Heard} = lowest(Now, State),
    case {Role, Lowest} of
        {follower, Self} ->
            case grace(Now, State) of
                true -> {[], State};
                false -> lead(Now, State)
            end;
        {leader, Self} when Seen > Term ->
            %% Another master led meanwhile.
            lead(Now, State);
        {leader, Self} ->
            {[], State};
        %% The lowest leads others, but is not heard here.
        {leader, _} when not Heard, Seen > Term ->
            {[], State#{role := follower, leader := Lowest}};
        {leader, _} ->
            case Beats of
                #{Lowest := #{lead := true, term := Higher}} when Higher > Term ->
                    {[], State#{role := follower, leader := Lowest}};
                _ -> {[], State}
            end;
        {follower, _} ->
            {[], State}
    end.

lead(Now, #{self := Self, seen := Seen} = State) ->
    Term = next_term(Seen, Self),
    Led = State#{role := leader, leader := Self, term := Term, seen := Term, plan := none,
                 topology := followed(State)},
    {Effects, State1} = planned(Now, Led),
    %% A beat at once, so that no other master goes on leading.
    {[{tell, M, beat, beating(Now, State1)} || M <- monitors(State1) -- [Self]] ++ Effects, State1}.

%% Above all that was seen, and different from the term that another master with the same view would
%% take.
next_term(Seen, Self) -> (((Seen bsr 10) + 1) bsl 10) bor erlang:phash2(Self, 1024).

%% The topology that it knew as a follower: its first events are the differences from that.
followed(#{role := leader, plan := #{hubs := Hubs}, self := Self} = State) ->
    %% Another master led meanwhile, and reported that this one was gone.
    topology(Hubs -- [Self], State#{leader := undefined});
followed(#{plan := #{hubs := Hubs}, led := Led} = State) ->
    topology(Hubs, State#{nodes := Led});
followed(_) ->
    none.

heard(beat, From, #{term := Term, seen := Theirs, lead := Lead, version := Version, hears := Hears,
                    stamps := Stamps}, Now, State) ->
    #{beats := Beats, seen := Seen, stamps := Ours} = State,
    State1 = State#{beats := Beats#{From => #{at => Now, term => Term, lead => Lead,
                                              version => Version, hears => Hears}},
                    seen := max(Seen, Theirs)},
    Missed = [{tell, From, config, shared(State)} || sderl_mon_shared:is_ahead(Ours, Stamps)],
    {Effects, State2} = add(Missed, elect(Now, follow(From, Lead, Term, State1))),
    case {State2, is_map_key(From, Beats)} of
        {#{role := leader}, false} ->
            %% One more master that can run agents.
            add(Effects, settle(State2));
        {#{role := leader, version := V, term := T}, true} when Version =/= V; Term < T ->
            {Effects ++ assign(From, State2), State2};
        _ ->
            {Effects, State2}
    end;
heard(hello, From, _, _, State) ->
    Known = maps:with([seen, nodes, placement, config, stamps, epoch], State),
    {[{tell, From, state, Known}], State};
heard(state, From, #{seen := Theirs, nodes := Nodes, placement := Placement} = Payload, Now,
      State) ->
    #{seen := Seen, nodes := Own, answered := Answered, placement := Mine, epoch := Epoch,
      beats := Beats} = State,
    %% It counts as a beat: otherwise the agents of that node would be moved.
    Beat = #{From => #{at => Now, term => Theirs, lead => false, version => {undefined, 0},
                       hears => []}},
    State1 = State#{answered := Answered#{From => true}, beats := maps:merge(Beat, Beats)},
    case Theirs >= Seen of
        true when Theirs > 0 ->
            adopt(Payload, State1#{
                seen := Theirs,
                %% `since` is by the other node's monotonic clock.
                nodes := maps:merge(#{N => R#{since := Now} || N := R <- Nodes}, Own),
                placement := maps:merge(Mine, Placement),
                epoch := max(Epoch, maps:get(epoch, Payload))
            });
        _ ->
            heed(maps:with([config, stamps], Payload), State1)
    end;
heard(assign, From, #{term := Term, version := Version, placement := Placement,
                      members := Members} = Plan, _, #{seen := Seen} = State)
  when Term >= Seen ->
    {Effects, State1} = adopt(Plan, State#{
        role := follower, leader := From, seen := Term, term := Term, version := Version,
        placement := Placement, members := Members, plan := Plan, epoch := maps:get(epoch, Plan),
        awaited := []
    }),
    Nodes = maps:merge(sderl_mon_members:unknown(maps:keys(Members), 0), maps:get(nodes, State1)),
    {Effects ++ [{run, orders(Plan, State1)}], State1#{nodes := Nodes, led := Nodes}};
heard(config, _, Set, _, State) ->
    case heed(Set, State) of
        {[], State} -> {[], State};
        {Effects, State1} -> add(Effects, settle(State1))
    end;
heard(report, From, #{scope := Scope, nodes := Reports}, Now,
      #{placement := Placement, awaited := Awaited} = State) ->
    case maps:get(Scope, Placement, From) of
        From -> reported(Reports, Now, State#{awaited := lists:delete(Scope, Awaited)});
        %% The agent was moved, and does not know it yet.
        _ -> {[], State}
    end;
heard(_, _, _, _, State) ->
    {[], State}.

follow(From, true, Term, #{role := follower, term := Own, nodes := Nodes} = State)
  when Term >= Own ->
    State#{leader := From, led := Nodes};
follow(_, _, _, State) -> State.

add(Effects, {More, State}) -> {Effects ++ More, State}.

%% ---------------------------------------------------------------- nodes

reported(Reports, Now, #{nodes := Nodes} = State) ->
    %% A node that was forgotten meanwhile stays forgotten.
    New = #{N => sderl_mon_members:known(R, maps:get(N, Nodes), Now)
            || N := R <- Reports, is_map_key(N, Nodes)},
    Seen = seen(New, State),
    case maps:merge(Nodes, New) of
        Nodes -> {Seen, State};
        Nodes1 -> add(Seen, settle(State#{nodes := Nodes1}))
    end.

%% Nodes that the agents here cannot reach, but others have links to: they may be back.
seen(New, #{self := Self, nodes := Nodes, members := Members, placement := Placement}) ->
    Peers = lists:usort(lists:append([Ps || _ := #{status := up, peers := Ps} <- New])),
    [
        {seen, Home, Peer}
     || Peer <- Peers,
        #{status := down} <- [maps:get(Peer, Nodes, none)],
        Home <- [sderl_mon_layout:home({Peer, maps:get(Peer, Members, [])})],
        maps:get(Home, Placement, none) =:= Self
    ].

settle(#{role := leader, settling := false} = State) ->
    {[{settle, ?SETTLE_MS}], State#{settling := true}};
settle(State) -> {[], State}.

%% ---------------------------------------------------------------- the plan

planned(Now, #{role := leader, self := Self, config := Config, stamps := Stamps, nodes := Nodes0,
               placement := Placement0} = State) ->
    Monitors = monitors(State),
    Live = live(Now, State),
    Found = sderl_mon_members:found(Nodes0, Config, Monitors),
    Nodes = maps:merge(sderl_mon_members:unknown(Found, Now), maps:with(Found, Nodes0)),
    Members = sderl_mon_members:groups(Nodes),
    Scopes = sderl_mon_layout:scopes(Members),
    Placement = sderl_mon_layout:place(Scopes, Placement0, Live),
    %% With all groups of each node, even if no agent moves: the next leader reports as events what
    %% differs from this plan.
    Essence = {Members, Placement, Live, Monitors, Config},
    State1 = State#{nodes := Nodes, members := Members, placement := Placement},
    {Effects, State2} =
        case State1 of
            #{plan := #{essence := Essence}} ->
                {[], State1};
            #{version := {_, Before}, term := Term, epoch := Epoch} ->
                Version = {Self, Before + 1},
                Plan = #{
                    essence => Essence, term => Term, version => Version, scopes => Scopes,
                    placement => Placement, members => Members, hubs => Live, monitors => Monitors,
                    config => Config, stamps => Stamps, epoch => Epoch
                },
                State3 = State1#{plan := Plan, version := Version},
                {lists:append([assign(M, State3) || M <- Live -- [Self]]) ++
                 [{run, orders(Plan, State3)}], State3}
        end,
    add(Effects, told(Now, State2));
planned(_, State) ->
    {[], State}.

assign(Monitor, #{plan := #{} = Plan, epoch := Epoch}) ->
    [{tell, Monitor, assign, maps:remove(essence, Plan#{epoch := Epoch})}];
assign(_, _) -> [].

%% A scope without nodes needs no agent: of a thousand groups on ten nodes that is nearly all.
orders(#{scopes := Scopes, placement := Placement, term := Term, hubs := Hubs, monitors := Monitors,
         config := Config}, #{self := Self}) ->
    [
        #{scope => Scope, term => Term, nodes => Nodes, monitors => Monitors, hubs => Hubs,
          config => Config}
     || Scope := [_ | _] = Nodes <- Scopes, maps:get(Scope, Placement, none) =:= Self
    ].

%% ---------------------------------------------------------------- the topology

told(Now, #{topology := Before, epoch := Epoch, term := Term, last_topology := Last} = State) ->
    Topology = topology(live(Now, State), State),
    case sderl_mon_members:is_same(Before, Topology) of
        true when Now - Last < ?AGAIN_MS ->
            {[], State};
        true ->
            {[{topology, live(Now, State), Topology#{epoch := Epoch}}],
             State#{topology := Topology, last_topology := Now}};
        false ->
            Next = max(Epoch, Term bsl 24) + 1,
            Events = sderl_mon_members:events(Before, Topology),
            {
                [{topology, live(Now, State), Topology#{epoch := Next}}
                 | [{events, live(Now, State), Term, Events} || Events =/= []]],
                State#{topology := Topology, last_topology := Now, epoch := Next}
            }
    end.

topology(Live, #{leader := Leader} = State) ->
    Masters = [{M, lists:member(M, Live), M =:= Leader} || M <- monitors(State)],
    sderl_mon_members:topology(sderl_mon_clock:wall_ms(), Masters,
                               maps:with([nodes, members, placement], State)).

upkeep(Now, #{role := leader, last_topology := Last, nodes := Nodes} = State) ->
    case [M || M <- live(Now, State), not lists:member(M, hubs(State))] ++
         (hubs(State) -- live(Now, State)) of
        [_ | _] -> planned(Now, State);
        [] when Now - Last >= ?AGAIN_MS ->
            Old = [N || N := #{status := down, since := Since} <- Nodes, Now - Since > ?FORGET_MS],
            Kept = maps:without(Old, Nodes),
            %% Nodes that another node still knows stay, and are tried again.
            Needed = sderl_mon_members:found(Kept, maps:get(config, State), []),
            planned(Now, State#{nodes := maps:without(Old -- Needed, Nodes)});
        [] -> {[], State}
    end;
upkeep(Now, #{apart := Apart} = State) ->
    case {lowest(Now, State), Apart} of
        {{_, true}, _} -> {[], State#{apart := none}};
        {{_, false}, none} -> {[], State#{apart := Now}};
        %% The lowest leads, and its plan is not heard here. Without a version this master gets the
        %% plan as soon as it is heard again.
        {{_, false}, Since} when is_integer(Since), Now - Since >= ?DEAD_MS ->
            {[{run, []}], State#{apart := given_up, version := {undefined, 0}}};
        {{_, false}, _} -> {[], State}
    end.

hubs(#{plan := #{hubs := Hubs}}) -> Hubs;
hubs(_) -> [].

%% ---------------------------------------------------------------- questions

-doc "Whether this master leads.".
-spec leads(state()) -> boolean().
leads(#{role := Role}) -> Role =:= leader.

-doc "The term under which it leads or follows.".
-spec term(state()) -> integer().
term(#{term := Term}) -> Term.

-doc "The settings that this master knows.".
-spec shared(state()) -> sderl_mon_message:shared().
shared(State) -> maps:with([config, stamps], State).

-doc "What a master knows, for people.".
-type status() :: #{
    node := node(),
    role := leader | follower,
    master := node() | undefined,
    term := integer(),
    monitors := [node()],
    heard := [node()],
    nodes := #{node() => #{status := sderl_mon_message:status(), why := binary(),
                           source := probe | stock | none}},
    agents := sderl_mon_message:placement()
}.

-doc "What this master knows, for people.".
-spec status(state()) -> status().
status(#{self := Self, role := Role, leader := Leader, term := Term, nodes := Nodes,
         placement := Placement, last_tick := Now} = State) ->
    #{
        node => Self,
        role => Role,
        master => Leader,
        term => Term,
        monitors => monitors(State),
        heard => live(Now, State) -- [Self],
        nodes => #{N => maps:with([status, why, source], R) || N := R <- Nodes},
        agents => Placement
    }.

-doc "All nodes, and what is known of each.".
-spec nodes(state()) -> #{node() => sderl_mon_message:node_report()}.
nodes(#{nodes := Nodes}) -> Nodes.
