%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_synthetic_feed).
-moduledoc """
A cluster that does not exist, as agents would report it: for looking at the dashboard without a
cluster, and for measuring hub and dashboard at a known size. Pure: the same options and times give
the same numbers.

Its groups and edges are those of `m:sderl_mon_synthetic_layout`; the rate of each edge moves slowly
about its mean. Load, queues and memory of a node follow from its traffic.

With `changes` a node goes down every twenty seconds or so and comes back, and every forty seconds
or so a group of a few nodes is created, and deleted after a minute.
""".

-export([new/2, next/3]).

-export_type([feed/0, opts/0, out/0]).

-type id() :: sderl_mon_types:id().

-doc "`nodes` 200 (2 to 2,000), `groups` 20, `edges` 1,000 directed, `seed` 1, `changes` true.".
-type opts() :: #{
    nodes => pos_integer(),
    groups => pos_integer(),
    edges => non_neg_integer(),
    seed => integer(),
    changes => boolean()
}.

-type out() ::
    {topology, sderl_mon_types:topology()}
    | {update, sderl_mon_types:update()}.

-record(edge, {link :: {id(), id()}, mean :: float(), size :: float(), log = 0.0 :: float()}).
-record(node, {
    id :: id(),
    index :: pos_integer(),
    load :: float(),
    drift = 0.0 :: float(),
    memory :: float(),
    procs :: float(),
    cores :: pos_integer(),
    up = 0 :: sderl_mon_types:t(),
    back = 0 :: sderl_mon_types:t()
}).

-opaque feed() :: #{
    t := sderl_mon_types:t(),
    started := sderl_mon_types:t(),
    random := rand:state(),
    nodes := #{id() => #node{}},
    groups := #{id() => #{nodes := [id()], names := non_neg_integer(),
                          until := sderl_mon_types:t() | never}},
    edges := [#edge{}],
    epoch := integer(),
    changed := boolean(),
    changes := boolean(),
    next_fall := sderl_mon_types:t(),
    next_group := sderl_mon_types:t(),
    made := non_neg_integer(),
    events := [sderl_mon_types:new_event()],
    turn := non_neg_integer()
}.

-define(SCOPE, <<"synthetic">>).
%% How fast a rate returns to its mean, and how far it strays, both a second.
-define(FORGET, 0.05).
-define(STRAY, 0.12).
-define(MONITORS, [<<"monitor1@127.0.0.1">>, <<"monitor2@127.0.0.1">>]).
-define(DETAILS, 4).

-doc "A feed that begins at a time. Sizes outside their range are clamped.".
-spec new(opts(), sderl_mon_types:t()) -> feed().
new(Opts, T) ->
    Nodes = max(2, min(2000, maps:get(nodes, Opts, 200))),
    Most = sderl_mon_synthetic_layout:most_groups(Nodes),
    Groups = max(1, min(Most, maps:get(groups, Opts, 20))),
    R0 = rand:seed_s(exsss, maps:get(seed, Opts, 1)),
    Ids = sderl_mon_synthetic_layout:nodes(Nodes),
    Members = sderl_mon_synthetic_layout:groups(Ids, Groups),
    {Records, R1} = lists:mapfoldl(fun({I, Id}, R) -> make_node(I, Id, T, R) end, R0,
                                   lists:enumerate(Ids)),
    Wanted = min(maps:get(edges, Opts, 1000), Nodes * (Nodes - 1)),
    {Edges, R2} = sderl_mon_synthetic_layout:edges(Members, Wanted, R1),
    {Named, R3} = lists:mapfoldl(
        fun({Group, In}, R) ->
            {U, Ra} = rand:uniform_s(400, R),
            {{Group, #{nodes => In, names => 20 + U, until => never}}, Ra}
        end,
        R2,
        Members
    ),
    #{
        t => T,
        started => T,
        random => R3,
        nodes => #{N#node.id => N || N <- Records},
        groups => maps:from_list(Named),
        edges => [#edge{link = Link, mean = Mean, size = Size} || {Link, Mean, Size} <- Edges],
        epoch => 1,
        changed => true,
        changes => maps:get(changes, Opts, true),
        next_fall => T + 12_000,
        next_group => T + 25_000,
        made => 0,
        events => [],
        turn => 0
    }.

make_node(I, Id, T, R0) ->
    {U, R1} = rand:uniform_s(R0),
    {M, R2} = rand:normal_s(R1),
    {P, R3} = rand:uniform_s(R2),
    Node = #node{
        id = Id,
        index = I,
        load = 0.05 + 0.25 * U * U,
        memory = 180.0e6 * math:exp(0.5 * M),
        procs = 400 + 1600 * P,
        cores = element(1 + I rem 3, {8, 16, 32}),
        up = T - 3_600_000 - I * 61_000
    },
    {Node, R3}.

-doc """
The messages up to a time: a topology if it changed, then one update. It has details for the nodes
of `Watched` and, in turn, for a few others.
""".
-spec next(sderl_mon_types:t(), [id()], feed()) -> {[out()], feed()}.
next(T, Watched, #{t := Last} = Feed0) ->
    Span = max(1, T - Last),
    Feed1 = happen(T, Feed0#{t := T}),
    {Edges, Nodes, R} = move(Span / 1000, Feed1),
    Feed2 = Feed1#{edges := Edges, nodes := Nodes, random := R},
    {Update, Feed3} = observe(T, Span, Watched, Feed2),
    #{changed := Changed} = Feed3,
    {[{topology, topology(Feed3)} || Changed] ++ [{update, Update}],
     Feed3#{changed := false, events := []}}.

%% Rates stray from their means and are drawn back: an Ornstein-Uhlenbeck process of the logarithm.
move(S, #{edges := Edges, nodes := Nodes, random := R0}) ->
    Keep = math:exp(-?FORGET * S),
    Step = ?STRAY * math:sqrt(S),
    {Edges1, R1} = lists:mapfoldl(
        fun(#edge{log = Log} = E, R) ->
            {Z, Ra} = rand:normal_s(R),
            {E#edge{log = Log * Keep + Z * Step}, Ra}
        end,
        R0,
        Edges
    ),
    {Nodes1, R2} = lists:mapfoldl(
        fun({Id, #node{drift = Drift} = N}, R) ->
            {Z, Ra} = rand:normal_s(R),
            {{Id, N#node{drift = Drift * Keep + Z * Step}}, Ra}
        end,
        R1,
        lists:sort(maps:to_list(Nodes))
    ),
    {Edges1, maps:from_list(Nodes1), R2}.

%% Changes

happen(_T, #{changes := false} = Feed) -> Feed;
happen(T, Feed) -> ungroup(T, regroup(T, fall(T, return(T, Feed)))).

return(T, #{nodes := Nodes} = Feed) ->
    maps:fold(
        fun
            (Id, #node{back = Back} = N, #{nodes := Acc} = F) when Back > 0, Back =< T ->
                event(T, node_up, notice, ["node ", Id, " is back"], #{node => Id}, F#{
                    nodes := Acc#{Id := N#node{back = 0, up = T}}, changed := true
                });
            (_Id, _Node, F) ->
                F
        end,
        Feed,
        Nodes
    ).

fall(T, #{next_fall := Due} = Feed) when T < Due -> Feed;
fall(T, #{nodes := Nodes, random := R0} = Feed) ->
    Up = lists:sort([Id || Id := #node{back = 0} <- Nodes]),
    {I, R1} = rand:uniform_s(length(Up), R0),
    {Away, R2} = rand:uniform_s(12_000, R1),
    {Wait, R3} = rand:uniform_s(16_000, R2),
    Id = lists:nth(I, Up),
    #{Id := Node} = Nodes,
    Feed1 = Feed#{
        nodes := Nodes#{Id := Node#node{back = T + 8_000 + Away}}, random := R3,
        next_fall := T + 12_000 + Wait, changed := true
    },
    Feed2 = event(T, node_down, warning, ["node ", Id, " went down: connection_closed"],
                  #{node => Id}, Feed1),
    coordinators(T, Id, Feed, Feed2).

%% Events of the groups that have another coordinator now.
coordinators(T, Id, #{nodes := Before}, #{groups := Groups, nodes := After} = Feed) ->
    maps:fold(
        fun(Group, #{nodes := In}, F) ->
            case {coordinator(In, Before), coordinator(In, After)} of
                {Id, New} when is_binary(New) ->
                    Text = ["s_group ", Group, ": the coordinator is ", New, ", before it was ",
                            Id],
                    event(T, coordinator_changed, notice, Text, #{group => Group, node => New}, F);
                _Same ->
                    F
            end
        end,
        Feed,
        Groups
    ).

coordinator(In, Nodes) ->
    case [Id || Id <- lists:sort(In), (maps:get(Id, Nodes))#node.back =:= 0] of
        [First | _] -> First;
        [] -> undefined
    end.

regroup(T, #{next_group := Due} = Feed) when T < Due -> Feed;
regroup(T,
        #{nodes := Nodes, groups := Groups, random := R0, made := Made, epoch := Epoch} = Feed) ->
    {Size, R1} = rand:uniform_s(4, R0),
    {Chosen, R2} = lists:mapfoldl(
        fun(_, R) -> rand:uniform_s(map_size(Nodes), R) end, R1, lists:seq(1, Size + 3)
    ),
    {Wait, R3} = rand:uniform_s(25_000, R2),
    Ids = list_to_tuple(lists:sort(maps:keys(Nodes))),
    In = lists:usort([element(I, Ids) || I <- Chosen]),
    Group = iolist_to_binary(io_lib:format("session~b", [Made + 1])),
    Text = ["s_group ", Group, " was created with ", integer_to_binary(length(In)), " members"],
    event(T, group_created, notice, Text, #{group => Group, node => hd(In)}, Feed#{
        groups := Groups#{Group => #{nodes => In, names => 0, until => T + 60_000}},
        random := R3,
        made := Made + 1,
        epoch := Epoch + 1,
        changed := true,
        next_group := T + 30_000 + Wait
    }).

ungroup(T, #{groups := Groups} = Feed) ->
    maps:fold(
        fun
            (Group, #{until := Until}, #{groups := Acc, epoch := Epoch} = F)
              when is_integer(Until), Until =< T ->
                event(T, group_deleted, notice, ["s_group ", Group, " was deleted"],
                      #{group => Group}, F#{
                          groups := maps:remove(Group, Acc), epoch := Epoch + 1, changed := true
                      });
            (_Group, _Lasting, F) ->
                F
        end,
        Feed,
        Groups
    ).

event(T, Kind, Level, Text, Where, #{events := Events} = Feed) ->
    Event = Where#{t => T, kind => Kind, level => Level, text => iolist_to_binary(Text)},
    Feed#{events := [Event | Events]}.

%% The topology

topology(#{t := T, epoch := Epoch, nodes := Nodes, groups := Groups}) ->
    Of = maps:fold(
        fun(Group, #{nodes := In}, Acc) ->
            lists:foldl(fun(N, A) ->
                maps:update_with(N, fun(Gs) -> [Group | Gs] end, [Group], A)
            end, Acc, In)
        end,
        #{},
        Groups
    ),
    #{
        epoch => Epoch,
        t => T,
        nodes => #{Id => node_info(N, lists:sort(maps:get(Id, Of, []))) || Id := N <- Nodes},
        groups => #{
            Group => #{
                nodes => In,
                coordinator => coordinator(In, Nodes),
                live => [N || N <- In, (maps:get(N, Nodes))#node.back =:= 0],
                names => Names,
                agent => lists:nth(1 + erlang:phash2(Group, 2), ?MONITORS)
            }
         || Group := #{nodes := In, names := Names} <- Groups
        },
        monitors => [
            #{
                node => Id,
                status => up,
                master => I =:= 1,
                agents => length([G || G <- maps:keys(Groups), erlang:phash2(G, 2) =:= I - 1])
            }
         || {I, Id} <- lists:enumerate(?MONITORS)
        ]
    }.

node_info(#node{id = Id, index = I, back = Back}, Groups) ->
    Home = case Groups of [First | _] -> First; [] -> Id end,
    Info = #{groups => Groups, home => Home, hidden => false, source => probe,
             otp => element(1 + I rem 2, {<<"29">>, <<"28">>})},
    case Back of
        0 -> Info#{status => up};
        _ -> Info#{status => down, why => <<"the connection was closed">>}
    end.

%% The numbers

observe(T, Span, Watched,
        #{nodes := Nodes, groups := Groups, edges := Edges, turn := Turn, random := R0} = Feed) ->
    S = Span / 1000,
    Links = #{Link => flow(E)
              || #edge{link = {From, To} = Link} = E <- Edges, up(From, Nodes), up(To, Nodes)},
    {Out, In} = maps:fold(
        fun({From, To}, Flow, {O, I}) -> {plus(From, Flow, O), plus(To, Flow, I)} end,
        {#{}, #{}},
        Links
    ),
    {Samples, R1} = lists:mapfoldl(
        fun(#node{id = Id} = N, R) ->
            sample(N, maps:get(Id, Out, {0.0, 0.0}), maps:get(Id, In, {0.0, 0.0}), R)
        end,
        R0,
        [N || {_Id, #node{back = 0} = N} <- lists:sort(maps:to_list(Nodes))]
    ),
    SampleOf = maps:from_list(Samples),
    {Groups1, R2} = walk_names(S, Groups, R1),
    Names = #{Group => N || Group := #{names := N} <- Groups1},
    Ids = list_to_tuple(lists:sort(maps:keys(SampleOf))),
    Some = [element(1 + (Turn * ?DETAILS + I) rem tuple_size(Ids), Ids)
            || tuple_size(Ids) > 0, I <- lists:seq(1, ?DETAILS)],
    Wanted = [Id || Id <- lists:usort(Watched ++ Some), is_map_key(Id, SampleOf)],
    {Details, R3} = lists:mapfoldl(
        fun(Id, R) -> detail(T, maps:get(Id, Nodes), maps:get(Id, SampleOf), Links, R) end, R2,
        Wanted
    ),
    Feed1 = noise(T, S, Ids, Feed#{random := R3, groups := Groups1, turn := Turn + 1}),
    #{events := Events} = Feed1,
    Regs = #{Group => group_rate(Group, Members, SampleOf)
             || Group := #{nodes := Members} <- Groups1},
    All = lists:sum(maps:values(Regs)),
    Update = #{
        agent => {?SCOPE, 1},
        t => T,
        span_ms => Span,
        nodes => SampleOf,
        links => Links,
        kinds => kinds(All, Links),
        groups => #{
            Group => #{
                regs_s => maps:get(Group, Regs),
                unregs_s => 0.97 * maps:get(Group, Regs),
                failed_regs_s => 0.01 * maps:get(Group, Regs),
                names => N,
                in_msgs_s => inside(Group, Groups1, SampleOf)
            }
         || Group := N <- Names
        },
        details => maps:from_list(Details),
        events => lists:reverse(Events),
        lost => #{}
    },
    {Update, Feed1}.

detail(T, #node{id = Id, index = Index, cores = Cores, up = Up}, Sample, Links, R) ->
    sderl_mon_synthetic_node:detail(T, #{id => Id, index => Index, cores => Cores, up => Up},
                                    Sample, Links, R).

up(Id, Nodes) -> (maps:get(Id, Nodes))#node.back =:= 0.

flow(#edge{mean = Mean, size = Size, log = Log}) ->
    Rate = Mean * math:exp(Log),
    {Rate, Rate * Size}.

plus(Id, {M, B}, Acc) -> maps:update_with(Id, fun({Ms, Bs}) -> {Ms + M, Bs + B} end, {M, B}, Acc).

sample(#node{id = Id, load = Load, drift = Drift, memory = Memory, procs = Procs, cores = Cores},
       {OutM, OutB}, {InM, InB}, R0) ->
    {Z, R1} = rand:normal_s(R0),
    {U, R2} = rand:uniform_s(R1),
    Util = min(0.98,
               max(0.01, Load * math:exp(1.5 * Drift) + (OutM + InM) / (6_000 * Cores) + 0.01 * Z)),
    Queue = case Util > 0.3 of
        true -> round(Cores * Util * Util * 2 * U);
        false -> round(2 * Util * U)
    end,
    Longest = round(math:pow(1.0 - 0.999 * U, -0.6) * (1 + 20 * Util * Util)),
    Mem = round(Memory * math:exp(0.4 * Drift) * (1 + 0.01 * Z)),
    Sample = #{
        run_queue => Queue,
        util => Util,
        procs => round(Procs * math:exp(0.3 * Drift)),
        mem => Mem,
        mem_processes => round(0.46 * Mem),
        mem_binary => round(0.17 * Mem),
        mem_ets => round(0.11 * Mem),
        mq_max => Longest,
        cpu_pct => 100 * Util * Cores,
        in_bytes_s => InB,
        out_bytes_s => OutB,
        in_msgs_s => InM,
        out_msgs_s => OutM,
        reds_s => 2.4e8 * Util * Cores / 8,
        gc_s => 900 * Util * Cores,
        regs_s => 1.5 * math:exp(2 * Drift),
        names => round(40 * math:exp(0.2 * Drift)),
        probe_pct => 0.12 + 0.2 * U
    },
    {{Id, Sample}, R2}.

walk_names(S, Groups, R) ->
    {Walked, R1} = lists:mapfoldl(
        fun({Group, #{names := Names, nodes := In} = G}, Ra) ->
            {Z, Rb} = rand:normal_s(Ra),
            Drawn = Names + (20 * length(In) - Names) * 0.02 * S + 3 * Z * math:sqrt(S),
            {{Group, G#{names := max(0, round(Drawn))}}, Rb}
        end,
        R,
        lists:sort(maps:to_list(Groups))
    ),
    {maps:from_list(Walked), R1}.

group_rate(_Group, Members, Samples) ->
    lists:sum([Rate || Id <- Members, #{Id := #{regs_s := Rate}} <- [Samples]]).

inside(Group, Groups, Samples) ->
    #{Group := #{nodes := Members}} = Groups,
    lists:sum([M || Id <- Members, #{Id := #{in_msgs_s := M}} <- [Samples]]).

%% A registration is a message to the coordinator, and a batch to each member.
kinds(Regs, Links) ->
    Msgs = lists:sum([M || {M, _B} <- maps:values(Links)]),
    #{
        registration => {2 * Regs, 2 * Regs * 210},
        replication => {3.5 * Regs, 3.5 * Regs * 260},
        routing => {0.03 * Msgs, 0.03 * Msgs * 420},
        control => {0.4 * map_size(Links), 0.4 * map_size(Links) * 90},
        probe => {200.0, 200 * 3_100.0}
    }.

%% Now and then a system_monitor event of some node.
noise(_T, _S, {}, Feed) -> Feed;
noise(T, S, Ids, #{random := R0} = Feed) ->
    {U, R1} = rand:uniform_s(R0),
    {I, R2} = rand:uniform_s(tuple_size(Ids), R1),
    {X, R3} = rand:uniform_s(R2),
    Feed1 = Feed#{random := R3},
    Id = element(I, Ids),
    Pid = ["<0.", integer_to_binary(100 + round(2_000 * X)), ".0>"],
    case U / S of
        P when P < 0.05 ->
            Ms = integer_to_binary(100 + round(300 * X)),
            event(T, long_gc, warning,
                  ["process ", Pid, " on ", Id, " collected garbage for ", Ms, " ms"],
                  #{node => Id}, Feed1);
        P when P < 0.08 ->
            event(T, long_message_queue, warning,
                  ["process ", Pid, " on ", Id, " has 1,000 messages waiting"], #{node => Id},
                  Feed1);
        P when P < 0.10 ->
            event(T, busy_dist_port, warning,
                  ["the connection of ", Id, " to another node is busy"], #{node => Id}, Feed1);
        _ ->
            Feed1
    end.
