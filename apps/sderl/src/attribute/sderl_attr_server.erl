%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_server).
-moduledoc false.
%% One process a node: keeps this node's attributes, has them computed, sends them to the members of
%% its groups and stores what they send.
%%
%% Functions of attributes run in processes of their own (`sderl_attr_eval`), and a caller that
%% needs values of other nodes asks them itself (`sderl_attr_fetch`). The messages of this process
%% go over existing links, as `sderl_attr_share` says. It alone writes the tables
%% (`sderl_attr_table`), with which a successor goes on: they have what was set at run time; mates
%% are sent all values once more, and asked for all of theirs.
%%
%% | message to it | |
%% |---|---|
%% | `{sderl_attr, 1, FromNode, Stamp, Body}` | values of a mate |
%% | call `{sderl_attr, 1, {get, [Name], MaxAgeMs}}` | `{values, [Entry]}`: this node's own; computed first, if older |
%% | call `{sderl_attr, 1, {of, [Node], [Name], MaxAgeMs, TimeoutMs}}` | `{of, #{Node => {values, [Entry]} \| {error, Reason}}}`: for nodes that have no link to these |
%%
%% A call of another version or kind is answered `{error, unknown_question}`, and counted like other
%% such messages.

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

-define(VSN, 1).
%% A change is sent a moment later, together with further changes.
-define(SOON, 50).
%% How long a tick waits for values that are being computed.
-define(COMPUTING, 250).
%% Most questions on behalf of other nodes at a time; beyond that the tables answer.
-define(HELPERS, 100).
%% How long such a question may take at most.
-define(PATIENCE, 60_000).
%% Up to so many groups the attribute `groups` is sent at once when they change, otherwise with the
%% next period.
-define(GROUPS_AT_ONCE, 100).
%% How long values of nodes that are no mates are kept, in periods of sharing.
-define(OTHERS, 12).

-record(s, {
    node = node() :: node(),
    share :: sderl_attr_share:state(),
    own = #{} :: #{sderl_attr:name() => sderl_attr_own:t()},
    jobs = #{} :: #{reference() => {sderl_attr:name(), sderl_attr_eval:job(),
                                    Timer :: reference()}},
    seen = #{} :: #{node() => sderl_attr_share:seen()},
    stamps = #{} :: #{node() => {Sent :: integer(), Came :: integer()}},
    %% Linked nodes that sent values before they were known to be mates.
    early = #{} :: #{node() => []},
    waiting = [] :: [{gen_server:from(),
                      {Visible :: [sderl_attr:name()], Asked :: [sderl_attr:name()]},
                      Missing :: #{sderl_attr:name() => []}}],
    helpers = #{} :: #{reference() => []},
    %% The nodes that share groups with this one, the island of free nodes included.
    mates = sderl_mates:new(node(), sderl_dir:memberships()) :: sderl_mates:mates(),
    timer = none :: none | reference(),
    soon = none :: none | reference(),
    told = false :: boolean()
}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% ---------------------------------------------------------------- gen_server

-spec init([]) -> {ok, #s{}, {continue, start}}.
init([]) ->
    _ = process_flag(async_dist, true),
    _ = erlang:system_flag(scheduler_wall_time, true),
    sderl_attr_table:sample(sderl_attr_builtin:schedulers()),
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    Unsound = [Name || {Name, Spec, Source, Once} <- sderl_attr_table:own(),
                       not sderl_attr_own:is_change({set, Name, Spec, Source, Once})],
    lists:foreach(fun sderl_attr_table:undefine/1, Unsound),
    sderl_event:dropped(?MODULE, length(Unsound), #{}),
    Configured = sderl_attr_config:configured(),
    lists:foreach(fun({Name, Spec, Source}) ->
        case sderl_attr_table:own(Name) of
            undefined -> sderl_attr_table:define(Name, Spec, Source, once(Spec, Source));
            _ -> ok
        end
    end, case sderl_attr_table:own() of [] -> Configured; _ -> [] end),
    S = lists:foldl(fun({Name, Spec, _, Once}, Acc) -> put_spec(Name, Spec, Once, Acc) end,
                    #s{share = sderl_attr_share:new(life())}, sderl_attr_table:own()),
    %% Nodes whose link went while there was no server.
    lists:foreach(fun(Node) ->
        lists:member(Node, nodes(connected)) orelse sderl_attr_table:forget(Node)
    end,
                  sderl_attr_table:peers()),
    {ok, S, {continue, start}}.

-spec handle_continue(start, #s{}) -> {noreply, #s{}}.
handle_continue(start, S) -> {noreply, tick(S)}.

-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}} | {noreply, #s{}}.
handle_call({sderl_attr, ?VSN, {get, Names, MaxAge}}, {Pid, _} = From, S) 
  when length(Names) >= 0, is_integer(MaxAge), is_pid(Pid) ->
    {noreply, get(From, visible(node(Pid), Names, S), Names, MaxAge, S)};
handle_call({sderl_attr, ?VSN, {'of', Nodes, Names, MaxAge, Timeout}}, From, S)
  when length(Nodes) >= 0, length(Names) >= 0, is_integer(MaxAge), is_integer(Timeout),
       Timeout >= 0 ->
    case lists:all(fun is_atom/1, Nodes) of
        true -> {noreply, others(From, Nodes, Names, MaxAge, Timeout, S)};
        false -> {reply, {error, unknown_question}, unknown(S)}
    end;
handle_call({write, Change}, _, S0) ->
    case sderl_attr_own:is_change(Change) of
        true ->
            {Reply, S} = changed(Change, S0),
            {reply, Reply, S};
        false -> {reply, {error, bad_attribute}, unknown(S0)}
    end;
handle_call({keep, Answers, Silent}, _, S) when length(Answers) >= 0, length(Silent) >= 0 ->
    case sderl_attr_answers:are_sound(Answers, Silent) of
        true -> {reply, sderl_attr_answers:keep(Answers, Silent), S};
        false -> {reply, {error, unknown_question}, unknown(S)}
    end;
handle_call(_, _, S) -> {reply, {error, unknown_question}, unknown(S)}.

-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast({changed, Group}, S) -> {noreply, changed_group(Group, renamed(S))};
handle_cast(_, S) -> {noreply, unknown(S)}.

-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info({sderl_attr, ?VSN, From, {Sent, Echo, Held} = Stamp, Body}, S)
  when is_atom(From), is_integer(Sent), is_integer(Held), is_integer(Echo) orelse Echo =:= none ->
    case sderl_mates:is_mate(From, S#s.mates) orelse sderl_dir:shares_group(From) of
        true -> {noreply, frame(From, Stamp, Body, S)};
        %% Not a mate yet, or not any more. If not yet, it is asked for all values later.
        false -> {noreply, early(From, S)}
    end;
handle_info({attr_outcome, Alias, Name, Outcome}, #s{jobs = Jobs} = S)
  when is_map_key(Alias, Jobs) ->
    {noreply, outcome(Alias, Name, Outcome, S)};
handle_info({timeout, Timer, {overdue, Alias}}, #s{jobs = Jobs} = S) ->
    case Jobs of
        #{Alias := {Name, _, Timer}} -> {noreply, outcome(Alias, Name, {undefined, timeout}, S)};
        _ -> {noreply, S}
    end;
handle_info({'DOWN', Ref, process, _, _}, #s{helpers = Helpers} = S)
  when is_map_key(Ref, Helpers) ->
    {noreply, S#s{helpers = maps:remove(Ref, Helpers)}};
handle_info({'DOWN', Ref, process, _, Why}, #s{jobs = Jobs} = S) ->
    %% An outcome, if any, came before.
    case [{Alias, Name} || Alias := {Name, {_, Monitor, _}, _} <- Jobs, Monitor =:= Ref] of
        [{Alias, Name}] -> {noreply, outcome(Alias, Name, sderl_attr_eval:fault(Why, ran), S)};
        [] -> {noreply, S}
    end;
handle_info(tick, S) -> {noreply, tick(compared(renamed(S)))};
handle_info(computed, S) -> {noreply, told(S)};
handle_info({timeout, Soon, soon}, #s{soon = Soon} = S) -> {noreply, share(news, S#s{soon = none})};
handle_info({nodeup, _, _}, S) -> {noreply, soon(S)};
handle_info({nodedown, Node, _}, S) when is_atom(Node) -> {noreply, forget(Node, S)};
handle_info({attr_outcome, _, _, _}, S) -> {noreply, S};
handle_info({timeout, _, soon}, S) -> {noreply, S};
handle_info(_, S) -> {noreply, unknown(S)}.

unknown(S) ->
    sderl_refused:note_message(?MODULE),
    S.

%% The node was not distributed, and now it is: its values have to be stored under its name.
renamed(#s{node = Node} = S) when Node =:= node() -> S;
renamed(#s{node = Old, own = Own} = S) ->
    sderl_attr_table:forget(Old),
    maps:fold(fun show/3,
              S#s{node = node(), mates = sderl_mates:new(node(), sderl_dir:memberships())}, Own).

%% The life of this server, not of the node: mates have to notice its death, because it may have
%% lost their frames and does not know what it sent.
life() -> {erlang:system_time(), erlang:unique_integer()}.

period() -> sderl_attr_config:value(attribute_share_ms).

%% ---------------------------------------------------------------- own attributes

%% Built-in automatic attributes are computed at once: they are quick, and a program may read them
%% as soon as the application has started.
once({automatic, {sderl_attr_builtin, get, [Name]}}, builtin) ->
    try {ok, sderl_attr_builtin:get(Name)}
    catch Class:Why -> {undefined, {Class, Why}}
    end;
once(_, _) -> none.

put_spec(Name, Spec, Once, #s{share = Share0, own = Own} = S) ->
    {Version, Share} = sderl_attr_share:step(Share0),
    Times = {sderl_attr_config:value(attribute_keep_ms),
             sderl_attr_config:value(attribute_timeout_ms)},
    A = sderl_attr_own:new(Spec, Once, Times, {now_ms(), Version}),
    show(Name, A, S#s{share = Share, own = Own#{Name => A}}).

show(Name, A, S) ->
    {_, Value, Why, At, Kind, Version} = sderl_attr_own:entry(Name, A),
    sderl_attr_table:put_own(Name, Value, Why, At, Kind, Version),
    S.

changed({delete, Name}, #s{own = Own, share = Share} = S0) ->
    case is_map_key(Name, Own) of
        true ->
            S = cancel(Name, S0),
            sderl_attr_table:undefine(Name),
            {ok, answer(Name, soon(S#s{own = maps:remove(Name, Own),
                                       share = sderl_attr_share:removed(Share)}))};
        false -> {ok, S0}
    end;
changed({How, Name, Spec, Source, Once}, #s{own = Own} = S0) ->
    case {How, is_map_key(Name, Own)} of
        {insert, true} -> {{error, {attr_exists, Name}}, S0};
        {update, false} -> {{error, {attr_not_set, Name}}, S0};
        _ ->
            sderl_attr_table:define(Name, Spec, Source, Once),
            S = put_spec(Name, Spec, Once, cancel(Name, S0)),
            {ok, answer(Name,
                        soon(compute(fun(A) -> sderl_attr_own:due(0, now_ms(), A) end, [Name], S)))}
    end.

%% New mates, and mates that may see more or less than before, are sent values at once. So is the
%% list of this node's groups, unless these are many: then each new group would cost as much as all.
changed_group(Group, #s{mates = Mates0} = S0) ->
    {Came, Went, Mates} = sderl_mates:change(Group, sderl_dir:members(Group), Mates0),
    S = S0#s{mates = Mates},
    {Groups, _} = sderl_mates:counts(Mates),
    IsNews = Came =/= [] orelse Went =/= [] orelse is_map_key(Group, attribute_groups(S)),
    case Groups =< ?GROUPS_AT_ONCE of
        true -> soon(regrouped(S));
        false when IsNews -> soon(S);
        false -> S
    end.

regrouped(#s{own = #{groups := A}} = S) ->
    case sderl_attr_own:call(A) of
        {{sderl_attr_builtin, get, [groups]} = Call, _} -> start({{Call, 0}, groups}, S);
        _ -> S
    end;
regrouped(S) -> S.

%% The groups that have attributes of this node of their own.
attribute_groups(#s{own = Own}) ->
    #{Group => [] || Name := _ <- Own, {group, Group} <- [sderl_attr_share:group(Name)]}.

%% A process of a group may end after it changed the directory and before it told this process.
compared(#s{mates = Mates} = S) ->
    Now = sderl_dir:memberships(),
    Differing = sderl_mates:differing(Now, Mates) ++ sderl_mates:missing(Now, Mates),
    lists:foldl(fun({Group, _}, Acc) -> changed_group(Group, Acc) end, S, Differing).

%% First the values in which helper processes would count.
compute(IsDue, Names, #s{own = Own} = S) ->
    Due = [{sderl_attr_own:call(A), Name} || Name <- Names, #{Name := A} <- [Own], IsDue(A)],
    {Here, Apart} =
        lists:partition(fun({{Call, _}, _}) -> sderl_attr_builtin:at_once(Call) =/= no end, Due),
    lists:foldl(fun start/2, lists:foldl(fun start/2, S, Here), Apart).

start({{Call, Timeout}, Name}, #s{own = Own0, jobs = Jobs} = S) ->
    Own = maps:update_with(Name, fun(A) -> sderl_attr_own:started(now_ms(), A) end, Own0),
    case sderl_attr_builtin:at_once(Call) of
        no ->
            {_, _, Alias} = Job = sderl_attr_eval:start(Call, Name, self()),
            Timer = erlang:start_timer(Timeout, self(), {overdue, Alias}),
            S#s{own = Own, jobs = Jobs#{Alias => {Name, Job, Timer}}};
        Outcome -> came(Name, Outcome, S#s{own = Own})
    end.

came(Name, Outcome, #s{own = Own, share = Share0} = S) ->
    #{Name := A0} = Own,
    {Version, Share} = sderl_attr_share:step(Share0),
    {Change, A} = sderl_attr_own:outcome(Outcome, Version, A0),
    _ = Change =:= changed andalso failed(Name, Outcome, A),
    show(Name, A,
         S#s{own = Own#{Name := A}, share = case Change of changed -> Share; same -> Share0 end}).

%% No event for built-in attributes, because not every machine has all of them.
failed(Name, {undefined, Why}, A) ->
    case sderl_attr_own:call(A) of
        {{sderl_attr_builtin, _, _}, _} -> ok;
        _ -> sderl_event:emit(attribute_failed, #{name => Name, reason => Why})
    end;
failed(_, {ok, _}, _) -> ok.

cancel(Name, #s{jobs = Jobs} = S) ->
    lists:foldl(fun end_job/2, S, [Alias || Alias := {N, _, _} <- Jobs, N =:= Name]).

end_job(Alias, #s{jobs = Jobs0} = S) ->
    {{_, Job, Timer}, Jobs} = maps:take(Alias, Jobs0),
    _ = erlang:cancel_timer(Timer),
    ok = sderl_attr_eval:stop(Job),
    S#s{jobs = Jobs}.

outcome(Alias, Name, Outcome, S0) ->
    #{Name := A} = S0#s.own,
    S1 = came(Name, Outcome, end_job(Alias, S0)),
    ok = case sderl_attr_own:kind(A) of
        automatic ->
            {Spec, Source} = sderl_attr_table:own(Name),
            sderl_attr_table:define(Name, Spec, Source, Outcome);
        dynamic -> ok
    end,
    S = answer(Name, S1),
    case {map_size(S#s.jobs), sderl_attr_own:pending(A)} of
        {0, _} when not S#s.told -> told(S);
        %% The first value is sent at once.
        {_, true} -> soon(S);
        _ -> S
    end.

%% ---------------------------------------------------------------- sending

%% Spread, so that nodes that start together do not send together.
tick(#s{timer = Timer0} = S1) ->
    Period = period(),
    Timer = sderl_timer:next(Timer0, Period - Period div 10 + rand:uniform(Period div 5 + 1) - 1,
                             tick),
    S0 = S1#s{timer = Timer},
    _ = erlang:send_after(min(?COMPUTING, Period div 2), self(), computed),
    sweep(),
    Now = now_ms(),
    S = compute(fun(A) -> sderl_attr_own:due_soon(Period, Now, A) end, maps:keys(S0#s.own),
                S0#s{told = false}),
    case map_size(S#s.jobs) of
        0 -> told(S);
        _ -> S
    end.

%% Once in a tick: when all is computed, or has taken too long.
told(#s{told = true} = S) -> S;
told(S) -> share(all, S#s{told = true}).

soon(#s{soon = none} = S) -> S#s{soon = erlang:start_timer(?SOON, self(), soon)};
soon(S) -> S.

%% Sends to all mates once in a period, because values without confirmation count as out of date; in
%% between only to mates that do not have all changes, as when links come up while a large group
%% forms.
share(Which, #s{share = Share0, seen = Seen, stamps = Stamps, mates = All, early = Early} = S) ->
    Linked = maps:from_keys(nodes(connected), []),
    %% Of the groups shared with a mate only those count here that have attributes of their own.
    Of = attribute_groups(S),
    Mates = #{Node => maps:keys(maps:intersect(Of, sderl_mates:shared(Node, All)))
              || Node <- sderl_mates:nodes(All), is_map_key(Node, Linked)},
    Now = now_ms(),
    %% Mates that sent their values before we knew that they are mates.
    _ = [tell(Node, again, Now, S)
         || Node := _ <- Mates, not is_map_key(Node, Seen),
            is_map_key(Node, Early) orelse sderl_attr_share:told(Node, Share0)],
    Entries = [sderl_attr_own:entry(Name, A) || Name := A <- S#s.own],
    {Frames, Share} = sderl_attr_share:frames(Which, Mates, Entries, Now, Share0),
    lists:foreach(fun({Nodes, Body}) ->
        lists:foreach(fun(Node) -> tell(Node, Body, Now, S) end, Nodes)
    end, Frames),
    %% A node that no longer shares a group sends no values any more.
    Gone = [Node || Node <- sderl_attr_table:peers(), not sderl_mates:is_mate(Node, All)],
    lists:foreach(fun sderl_attr_table:forget/1, Gone),
    S#s{share = Share, seen = maps:without(Gone, Seen), stamps = maps:without(Gone, Stamps),
        early = maps:without(maps:keys(Mates), Early)}.

tell(Node, Body, Now, #s{stamps = Stamps}) ->
    Stamp = case Stamps of
        #{Node := {Sent, Came}} -> {Now, Sent, Now - Came};
        _ -> {Now, none, 0}
    end,
    sderl_traffic:send({?MODULE, Node}, {sderl_attr, ?VSN, node(), Stamp, Body}, attributes, Body).

%% ---------------------------------------------------------------- receiving

frame(From, _, again, #s{share = Share} = S) ->
    soon(S#s{share = sderl_attr_share:forget(From, Share)});
frame(From, {Sent, _, _} = Stamp, Body, #s{seen = Seen, stamps = Stamps} = S) ->
    Now = now_ms(),
    At = Now - sderl_attr_share:delay(Stamp, Now),
    Had = maps:get(From, Seen, none),
    case sderl_attr_share:is_body(Body)
         andalso told(From, At, sderl_attr_share:decide(Body, Had)) of
        false -> unknown(S);
        none ->
            tell(From, again, Now, S),
            S;
        Has -> S#s{seen = Seen#{From => Has}, stamps = Stamps#{From => {Sent, Now}}}
    end.

told(_, _, ask) -> none;
told(From, At, {replace, Entries, Has}) ->
    Names = sderl_attr_table:names(From),
    ok = sderl_attr_table:told(From, Entries, At),
    ok = sderl_attr_table:drop(From, Names -- [element(1, E) || E <- Entries]),
    ok = sderl_attr_table:heard(From, At),
    Has;
told(From, At, {change, Entries, Static, Aged, Has}) ->
    ok = sderl_attr_table:told(From, Entries, At),
    ok = sderl_attr_table:told_again(From, Static, Aged, At),
    ok = sderl_attr_table:heard(From, At),
    Has.

%% (A sender's name is not verified.)
early(From, #s{early = Early} = S) ->
    case lists:member(From, nodes(connected)) of
        true -> S#s{early = Early#{From => []}};
        false -> S
    end.

forget(Node, #s{share = Share, seen = Seen, stamps = Stamps, early = Early} = S) ->
    sderl_attr_table:forget(Node),
    S#s{share = sderl_attr_share:forget(Node, Share), seen = maps:remove(Node, Seen),
        stamps = maps:remove(Node, Stamps), early = maps:remove(Node, Early)}.

sweep() -> sderl_attr_table:forget_older(now_ms() - ?OTHERS * period()).

%% ---------------------------------------------------------------- questions

%% Those of these attributes that the node may see.
visible(Node, Names, _) when Node =:= node() -> Names;
visible(Node, Names, #s{mates = Mates}) ->
    Shared = sderl_mates:shared(Node, Mates),
    [Name || Name <- Names, case sderl_attr_share:group(Name) of
        all -> true;
        {group, Group} -> is_map_key(Group, Shared)
    end].

get(From, Visible, Asked, MaxAge, S0) ->
    Now = now_ms(),
    #s{own = Own} = S = compute(fun(A) -> sderl_attr_own:due(MaxAge, Now, A) end,
                                lists:uniq(Visible), S0),
    %% All missing values are being computed now.
    Missing = #{Name => []
                || Name <- Visible, #{Name := A} <- [Own], sderl_attr_own:wanted(MaxAge, Now, A)},
    settle([{From, {Visible, Asked}, Missing}], S).

%% A value came, or its computation failed.
answer(Name, #s{waiting = Waiting} = S) ->
    settle([{From, Names, maps:remove(Name, Missing)} || {From, Names, Missing} <- Waiting],
           S#s{waiting = []}).

settle(Waiting, #s{waiting = Others, own = Own} = S) ->
    {Ready, Not} = lists:partition(fun({_, _, Missing}) -> map_size(Missing) =:= 0 end, Waiting),
    Now = now_ms(),
    lists:foreach(fun({From, {Visible, Asked}, _}) ->
        gen_server:reply(From, {values, [value(Name, lists:member(Name, Visible), Now, Own)
                                         || Name <- Asked]})
    end, Ready),
    S#s{waiting = Not ++ Others}.

value(Name, true, Now, Own) when is_map_key(Name, Own) ->
    #{Name := A} = Own,
    sderl_attr_share:aged(sderl_attr_own:entry(Name, A), Now);
value(Name, _, _, _) -> {Name, undefined, not_set, 0, static, 0}.

%% Questions of nodes that have no link to these.
others(From, Nodes, Names, MaxAge, Timeout, #s{helpers = Helpers} = S) ->
    case map_size(Helpers) < ?HELPERS andalso not sderl_attr_fetch:has(Nodes, Names, MaxAge) of
        true ->
            {_, Ref} = spawn_monitor(fun() ->
                Got = sderl_attr_fetch:for_others(Nodes, Names, MaxAge, min(Timeout, ?PATIENCE)),
                gen_server:reply(From, {'of', Got})
            end),
            S#s{helpers = Helpers#{Ref => []}};
        false ->
            gen_server:reply(From, {'of', sderl_attr_fetch:for_others(Nodes, Names, MaxAge, 0)}),
            S
    end.
