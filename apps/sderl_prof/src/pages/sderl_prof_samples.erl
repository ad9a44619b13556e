%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_samples).
-moduledoc """
The samples of one or several nodes, as pages ask for them: of a part of the time, of a node, of a
kind of processes. Pure.

A part of the time is made of the parts that the sampler told apart: those of which at least half is
in it, and where there is none, the one in its middle. The times of each node begin when its own
sampling began.
""".

-export([decode/1, about/1, answer/2, format_error/1]).
-export_type([samples/0, request/0, reason/0]).

-record(node, {
    name :: binary(),
    otp :: binary(),
    report :: #{binary() => term()},
    %% Each with when it begins.
    parts :: [{non_neg_integer(), sderl_prof_looks:part()}, ...],
    kinds :: [normal | cpu | io],
    cells :: [sderl_prof_looks:cell()],
    groups :: [sderl_prof_looks:group()],
    overall :: sderl_prof_overall:overall()
}).
-opaque samples() :: [#node{}, ...].
-doc "Nanoseconds; `node` and `group` are `all` or a name; at most `limit` rows of each list.".
-type request() :: #{
    from := non_neg_integer(), to := pos_integer(), node := all | binary(),
    group := all | binary(), limit := pos_integer()
}.
-type reason() :: {no_node, binary()} | {no_samples, binary()}.
-type row() :: #{atom() => term()}.

-doc "The samples of reports as they are read from a file; or which report has none.".
-spec decode([#{binary() => term()}, ...]) -> {ok, samples()} | {error, reason()}.
decode(Reports) -> decode(Reports, []).

decode([], Nodes) -> {ok, lists:reverse(Nodes)};
decode([#{~"node" := Name} = Report | Reports], Nodes) ->
    Overall = sderl_prof_overall:decode(maps:get(~"series", Report, none)),
    case is_described(Report) andalso Overall =/= error
        andalso sderl_prof_samples_file:decode(maps:get(~"samples", Report, none)) of
        {ok, #{parts := Parts, cells := Cells, groups := Groups}} ->
            {ok, Of} = Overall,
            Kinds = [kind(Type) || #{~"type" := Type} <- map_get(~"schedulers", Report)],
            {Timed, _} = lists:mapfoldl(fun(#{ns := Ns} = Part, At) -> {{At, Part}, At + Ns} end,
                                        0, Parts),
            Node = #node{name = Name, otp = maps:get(~"otp", Report, ~""), report = Report,
                         parts = Timed, kinds = Kinds, cells = Cells, groups = Groups,
                         overall = Of},
            decode(Reports, [Node | Nodes]);
        _ -> {error, {no_samples, Name}}
    end.

is_described(Report) ->
    is_integer(maps:get(~"began_wall", Report, 0))
        andalso is_integer(maps:get(~"schedulers_online", Report, 0))
        andalso is_binary(maps:get(~"otp", Report, ~"")).

kind(~"cpu") -> cpu;
kind(~"io") -> io;
kind(_) -> normal.

-doc "What there is, of the whole time.".
-spec about(samples()) -> row().
about(Nodes) ->
    #{
        duration => longest(Nodes),
        nodes => [about_node(Node) || Node <- Nodes]
    }.

about_node(#node{name = Name, otp = Otp, report = Report, groups = Groups} = Node) ->
    #{~"own_share" := Own, ~"counted_share" := Counted, ~"looks" := Looks, ~"rounds" := Rounds,
      ~"processes" := Processes} = Report,
    #{
        node => Name, otp => Otp, duration => duration(Node),
        began => maps:get(~"began_wall", Report, 0) div 1_000_000,
        schedulers => maps:get(~"schedulers_online", Report, 0),
        looks => Looks, rounds => Rounds, own_share => Own, counted_share => Counted,
        processes => Processes,
        kinds => length(lists:usort([Group || {_, Group, _, _, _, _} <- Groups]))
    }.

longest(Nodes) -> lists:max([duration(Node) || Node <- Nodes]).

duration(#node{parts = Parts}) ->
    {At, #{ns := Ns}} = lists:last(Parts),
    At + Ns.

-doc "Shares of a part of the time, and curves of the whole.".
-spec answer(request(), samples()) -> {ok, row()} | {error, reason()}.
answer(#{node := all} = Request, Nodes) -> {ok, shown(Request, Nodes, Nodes)};
answer(#{node := Name} = Request, Nodes) ->
    case [Node || #node{name = Known} = Node <- Nodes, Known =:= Name] of
        [_ | _] = Chosen -> {ok, shown(Request, Chosen, Nodes)};
        [] -> {error, {no_node, Name}}
    end.

shown(#{from := From, to := To, group := Group, limit := Limit} = Request, Chosen, Nodes) ->
    Duration = longest(Nodes),
    Parts = [{Node, within(From, To, Node)} || Node <- Nodes],
    Of = [Part || {Node, _} = Part <- Parts, lists:member(Node, Chosen)],
    %% Several nodes have the processes of all of them together.
    Ns = max(1, lists:max([ns(In, Node) || {Node, In} <- Of])),
    Cells = lists:append([scaled(Ns, ns(In, Node), cells(In, Node)) || {Node, In} <- Of]),
    Groups = lists:append([longer(Ns, ns(In, Node), groups(In, Node)) || {Node, In} <- Of]),
    Busy = sderl_prof_shares:busy(Cells),
    Kinds = sderl_prof_shares:groups(Cells, Groups, Busy, Ns),
    Mine = of_group(Group, Cells),
    MyBusy = sderl_prof_shares:busy(Mine),
    Waiting = [Cell || {_, _, waiting, _, _, _, _, _} = Cell <- Mine],
    Running = sderl_prof_shares:places(caller, MyBusy, MyBusy, Ns),
    Waits = sderl_prof_shares:places(caller, Waiting, Waiting, Ns),
    #{
        duration => Duration,
        covers => covers(Of),
        states => sderl_prof_shares:states(Mine, Ns),
        kinds => lists:sublist(lists:sort(fun is_busier/2, Kinds), Limit),
        kinds_all => length(Kinds),
        functions => lists:sublist(Running, Limit),
        functions_all => length(Running),
        waits => lists:sublist(Waits, Limit),
        waits_all => length(Waits),
        schedulers => [Row#{node => Node#node.name}
                       || {Node, In} <- Of,
                          Row <- sderl_prof_shares:schedulers(Node#node.kinds, parts(In, Node))],
        threads => [Row#{~"node" => Node#node.name}
                    || {Node, _} <- Of, #{} = Row <- map_get(~"threads", Node#node.report)],
        nodes => [node_row(Node, In) || {Node, In} <- Parts],
        curves => curves(Request, Duration, Chosen),
        overall => sderl_prof_overall:columns(
            [{Name, Overall} || #node{name = Name, overall = Overall} <- Chosen],
            max(1, Duration), columns(Chosen))
    }.

is_busier(#{busy := A, reductions := R}, #{busy := B, reductions := R2}) -> {A, R} >= {B, R2}.

of_group(all, Cells) -> Cells;
of_group(Group, Cells) -> [Cell || {_, Of, _, _, _, _, _, _} = Cell <- Cells, Of =:= Group].

%% ---------------------------------------------------------------- a part of the time

%% Numbers of the parts.
within(From, To, #node{parts = Parts}) ->
    Numbered = lists:enumerate(0, Parts),
    case [N || {N, {At, #{ns := Ns}}} <- Numbered, 2 * overlap(From, To, At, At + Ns) >= Ns] of
        [_ | _] = Some -> Some;
        [] ->
            Middle = From + (To - From) div 2,
            {Last, _} = lists:last(Numbered),
            [hd([N || {N, {At, #{ns := Ns}}} <- Numbered, Middle < At + Ns] ++ [Last])]
    end.

overlap(From, To, From2, To2) -> max(0, min(To, To2) - max(From, From2)).

parts(In, #node{parts = Parts}) ->
    [Part || {N, {_, Part}} <- lists:enumerate(0, Parts), lists:member(N, In)].

ns(In, Node) -> lists:sum([Ns || #{ns := Ns} <- parts(In, Node)]).

cells(In, #node{cells = Cells}) ->
    Set = maps:from_keys(In, []),
    [Cell || Cell <- Cells, is_map_key(element(1, Cell), Set)].

groups(In, #node{groups = Groups}) ->
    Set = maps:from_keys(In, []),
    [Group || Group <- Groups, is_map_key(element(1, Group), Set)].

%% Averages are of the longest time of a node: those of a shorter one stand for as much of it.
scaled(Ns, Ns, Cells) -> Cells;
scaled(Ns, Own, Cells) ->
    By = Ns / max(1, Own),
    [{Part, Group, Status, Function, Caller, N, Sum * By, Squares * By * By}
     || {Part, Group, Status, Function, Caller, N, Sum, Squares} <- Cells].

longer(Ns, Own, Groups) ->
    [{Part, Group, New, Reductions, Queues * Ns / max(1, Own), Most}
     || {Part, Group, New, Reductions, Queues, Most} <- Groups].

covers(Of) ->
    Ends = [{At, At + Ns} || {#node{parts = Parts}, In} <- Of,
                             {N, {At, #{ns := Ns}}} <- lists:enumerate(0, Parts),
                             lists:member(N, In)],
    #{from => lists:min([From || {From, _} <- Ends]), to => lists:max([To || {_, To} <- Ends])}.

node_row(#node{name = Name, kinds = Kinds} = Node, In) ->
    Parts = parts(In, Node),
    Ns = max(1, ns(In, Node)),
    Cells = cells(In, Node),
    #{
        node => Name,
        processes => sderl_prof_shares:sum(Cells) / Ns,
        busy => sderl_prof_shares:sum(sderl_prof_shares:busy(Cells)) / Ns,
        share_busy => sderl_prof_shares:share(sderl_prof_shares:busy(Cells), Cells),
        awake => awake(sderl_prof_shares:schedulers(Kinds, Parts)),
        queue => lists:sum([Q || {_, _, _, _, Q, _} <- groups(In, Node)]) / Ns,
        reductions_s => 1.0e9 * lists:sum([R || #{reductions := R} <- Parts]) / Ns
    }.

%% Normal schedulers alone, on average.
awake(Rows) ->
    case [Awake || #{type := normal, awake := Awake} <- Rows] of
        [] -> 0.0;
        Of -> lists:sum(Of) / length(Of)
    end.

%% ---------------------------------------------------------------- the whole time

%% In as many equal columns as the node with most parts has.
columns(Nodes) -> lists:max([length(Parts) || #node{parts = Parts} <- Nodes]).

curves(#{group := Group}, Duration, Nodes) ->
    Count = columns(Nodes),
    Values = [values(Group, Node) || Node <- Nodes],
    [begin
         {From, To} = {Duration * N div Count, Duration * (N + 1) div Count},
         In = [mean(From, max(From + 1, To), Of) || Of <- Values],
         Sum = fun(Key) -> lists:sum([map_get(Key, One) || One <- In]) end,
         #{at => From, running => Sum(running), runnable => Sum(runnable),
           collecting => Sum(garbage_collecting), queue => Sum(queue),
           awake => Sum(awake) / length(In)}
     end || N <- lists:seq(0, Count - 1)].

values(Group, #node{cells = Cells, groups = Groups, parts = Parts, kinds = Kinds}) ->
    ByPart = maps:groups_from_list(fun(Cell) -> element(1, Cell) end, of_group(Group, Cells)),
    Queues = maps:groups_from_list(
        fun(Row) -> element(1, Row) end, fun(Row) -> element(5, Row) end,
        [Row || {_, Of, _, _, _, _} = Row <- Groups, Group =:= all orelse Of =:= Group]),
    [begin
         Mine = maps:get(N, ByPart, []),
         In = fun(State) ->
             sderl_prof_shares:sum([Cell || {_, _, Status, _, _, _, _, _} = Cell <- Mine,
                                            Status =:= State]) / Ns
         end,
         {At, Ns, #{running => In(running), runnable => In(runnable),
                    garbage_collecting => In(garbage_collecting),
                    queue => lists:sum(maps:get(N, Queues, [])) / Ns,
                    awake => awake(sderl_prof_shares:schedulers(Kinds, [Part]))}}
     end || {N, {At, #{ns := Ns} = Part}} <- lists:enumerate(0, Parts)].

%% The mean of the parts, weighted by their time in the column.
mean(From, To, Values) ->
    lists:foldl(fun({At, Ns, Of}, Sums) ->
        By = overlap(From, To, At, At + Ns) / (To - From),
        maps:map(fun(Key, Sum) -> Sum + By * map_get(Key, Of) end, Sums)
    end, #{running => 0.0, runnable => 0.0, garbage_collecting => 0.0, queue => 0.0, awake => 0.0},
    Values).

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({no_node, Name}) ->
    io_lib:format("there are no samples of ~ts: leave node out for all of them", [Name]);
format_error({no_samples, Name}) ->
    io_lib:format("the report of ~ts has no samples for pages: bin/sderl prof sample --out FILE of "
                  "this version writes them", [Name]).
