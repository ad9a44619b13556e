%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_top_screen).
-moduledoc """
The cluster in a terminal, as lines of text. Pure.

A screen has a header, and below it groups, nodes, links and findings, or one of these alone.
Columns that do not fit go, the least important first; names are cut. Bytes are in kB, MB (1000 and
1,000,000), memory in MiB.
""".

-export([new/0, key/2, keys/1, lines/3]).
-export_type([state/0, data/0, key/0]).

-doc "The shown tables, the number by which nodes are sorted, and how many rows are scrolled away.".
-opaque state() :: #{view := view(), sort := sort(), top := non_neg_integer()}.
-type view() :: all | groups | nodes | links | findings.
-type sort() :: utilisation | traffic | memory | queue | name.

-doc "The hub's messages; no map before the first one.".
-type data() :: #{
    topology := sderl_mon_types:topology() | atom(),
    frame := sderl_mon_types:frame() | atom(),
    findings := [sderl_mon_types:finding()],
    atom() => term()
}.

-doc "A key that does something.".
-type key() :: quit | left | right | up | down | page_up | page_down | sort | {view, view()}.

-define(VIEWS, [all, groups, nodes, links, findings]).
-define(SORTS, [utilisation, traffic, memory, queue, name]).
-define(PAGE, 10).
%% Rows of each table where all are shown and there is no end to the screen.
-define(LINKS, 20).

-doc "All at the beginning, the busiest nodes first.".
-spec new() -> state().
new() -> #{view => all, sort => utilisation, top => 0}.

-doc "The keys in what a terminal sends; what means nothing is left out.".
-spec keys(binary()) -> [key()].
keys(<<"\e[A", Rest/binary>>) -> [up | keys(Rest)];
keys(<<"\e[B", Rest/binary>>) -> [down | keys(Rest)];
keys(<<"\e[C", Rest/binary>>) -> [right | keys(Rest)];
keys(<<"\e[D", Rest/binary>>) -> [left | keys(Rest)];
keys(<<"\e[5~", Rest/binary>>) -> [page_up | keys(Rest)];
keys(<<"\e[6~", Rest/binary>>) -> [page_down | keys(Rest)];
keys(<<C, Rest/binary>>) when C =:= $q; C =:= $Q; C =:= 3 -> [quit | keys(Rest)];
keys(<<C, Rest/binary>>) when C =:= $k -> [up | keys(Rest)];
keys(<<C, Rest/binary>>) when C =:= $j -> [down | keys(Rest)];
keys(<<"\t", Rest/binary>>) -> [right | keys(Rest)];
keys(<<C, Rest/binary>>) when C =:= $s -> [sort | keys(Rest)];
keys(<<C, Rest/binary>>) when C >= $1, C =< $5 -> [{view, lists:nth(C - $0, ?VIEWS)} | keys(Rest)];
keys(<<_, Rest/binary>>) -> keys(Rest);
keys(<<>>) -> [].

-doc "What a key does.".
-spec key(key(), state()) -> state() | quit.
key(quit, _) -> quit;
key({view, View}, State) -> State#{view := View, top := 0};
key(right, #{view := View} = State) -> State#{view := next(View, ?VIEWS), top := 0};
key(left, #{view := View} = State) -> State#{view := next(View, lists:reverse(?VIEWS)), top := 0};
key(sort, #{sort := Sort} = State) -> State#{sort := next(Sort, ?SORTS), top := 0};
key(up, State) -> scrolled(-1, State);
key(down, State) -> scrolled(1, State);
key(page_up, State) -> scrolled(-?PAGE, State);
key(page_down, State) -> scrolled(?PAGE, State).

next(This, [First | _] = All) ->
    case lists:dropwhile(fun(Other) -> Other =/= This end, All) of
        [This, Next | _] -> Next;
        _ -> First
    end.

scrolled(By, #{top := Top} = State) -> State#{top := max(0, Top + By)}.

-doc """
The lines of a screen of this size; with `infinity` rows all lines, but of links only the first 20.
No line is wider than the screen, and none has control characters except, with `color`, for colours.
""".
-spec lines(data(), state(),
            #{columns := pos_integer(), rows := pos_integer() | infinity, color => boolean()}) ->
    [unicode:chardata()].
lines(#{topology := Topology}, _, Screen) when not is_map(Topology) ->
    fit(["waiting for the first numbers ..."], Screen);
lines(#{frame := Frame} = Data, State, Screen) when not is_map(Frame) ->
    lines(Data#{frame := #{seq => 0, epoch => 0, t => 0, span_ms => 1, nodes => #{}, links => #{},
                           groups => #{}, kinds => #{}, lost => #{}}}, State, Screen);
lines(Data, #{view := View} = State, #{columns := Columns, rows := Rows} = Screen) ->
    %% A table that is printed once has no keys.
    Header =
        case Rows of infinity -> lists:droplast(header(Data, State)); _ -> header(Data, State) end,
    Tables = [{Kind, table(Kind, Data#{columns => Columns}, State)} || Kind <- shown(View)],
    Left = case Rows of
        infinity -> infinity;
        _ -> max(0, Rows - length(Header) - lists:sum([heading(Table) || {_, Table} <- Tables]))
    end,
    Body = lists:append([
        ["" | drawn(Kind, Table, State, Count, Columns)]
     || {{Kind, Table}, Count} <-
            lists:zip(Tables, shares(View, [length(Of) || {_, {_, _, Of}} <- Tables], Left))
    ]),
    Fitting = case Rows of infinity -> Header ++ Body; _ -> lists:sublist(Header ++ Body, Rows) end,
    fit(Fitting, Screen).

shown(all) -> [groups, nodes, links, findings];
shown(View) -> [View].

%% An empty line, the title, and the columns' names or that there is nothing.
heading({_, [{"", left}], [_ | _]}) -> 2;
heading(_) -> 3.

%% Each table gets rows in turn, until it has all of its own or the screen is full.
shares(_, Counts, infinity) -> Counts;
shares(_, [_], Left) -> [Left];
shares(all, Counts, Left) -> grown([0 || _ <- Counts], Counts, Left).

grown(Given, Counts, Left) ->
    case Left > 0 andalso [ok || {G, C} <- lists:zip(Given, Counts), G < C] of
        [_ | _] ->
            {Given1, Left1} = lists:mapfoldl(fun
                ({G, C}, L) when G < C, L > 0 -> {G + 1, L - 1};
                ({G, _}, L) -> {G, L}
            end, Left, lists:zip(Given, Counts)),
            grown(Given1, Counts, Left1);
        _ ->
            Given
    end.

fit(Lines, #{columns := Columns} = Screen) ->
    Color = maps:get(color, Screen, false),
    [colored(Line, Columns, Color) || Line <- Lines].

colored({Style, Line}, Columns, true) -> [style(Style), cut(Line, Columns), "\e[0m"];
colored({_, Line}, Columns, false) -> cut(Line, Columns);
colored(Line, Columns, _) -> cut(Line, Columns).

style(title) -> "\e[1m";
style(head) -> "\e[2m";
style(critical) -> "\e[31m";
style(warning) -> "\e[33m";
style(info) -> "".

cut(Line, Columns) ->
    Flat = unicode:characters_to_list([sderl_visible:text(Line)]),
    %% Names come from elsewhere: what would move the cursor does not.
    Printable = [if C < 32; C >= 127, C < 160 -> $?; true -> C end || C <- Flat],
    case string:length(Printable) > Columns of
        true -> [string:slice(Printable, 0, max(0, Columns - 1)), $…];
        false -> string:trim(Printable, trailing, " ")
    end.

%% ---------------------------------------------------------------- header

header(#{topology := #{nodes := Nodes, groups := Groups} = Topology, frame := Frame,
         findings := Findings}, #{view := View, sort := Sort}) ->
    #{links := Links, lost := Lost} = Frame,
    Cluster = [N || {_, #{hidden := false} = N} <- maps:to_list(Nodes)],
    Up = [N || #{status := up} = N <- Cluster],
    Flows = maps:values(Links),
    Total = lists:sum([V || {_, V} <- maps:to_list(Lost)]),
    [
        {title, [
            "sderl top   ", count(length(Up), "node"), " up",
            [[" of ", integer_to_list(length(Cluster))] || length(Up) < length(Cluster)],
            ", ", count(map_size(Groups), "group"), ", ", count(length(Findings), "finding"), ", ",
            watched(Topology)
        ]},
        [
            "traffic ", rate(lists:sum([M || {M, _} <- Flows])), " msg/s, ",
            bytes(lists:sum([B || {_, B} <- Flows])), "/s",
            "   registrations ",
            rate(lists:sum([number(regs_s, S)
                            || {_, S} <- maps:to_list(maps:get(groups, Frame, #{}))])), "/s",
            "   left out ", integer_to_list(Total)
        ],
        {head, [
            "[", lists:join(" ", [marked(V, V =:= View) || V <- ?VIEWS]), "]  nodes by ",
            atom_to_list(Sort), "   q quit, arrows, s sort"
        ]}
    ].

marked(View, true) -> string:uppercase(atom_to_list(View));
marked(View, false) -> atom_to_list(View).

watched(#{nodes := Nodes}) ->
    Sources = lists:usort(
        [S || {_, #{source := S, hidden := false, status := up}} <- maps:to_list(Nodes)]
    ),
    case Sources of
        [] -> "nobody watched";
        [probe] -> "probes on all";
        [stock] -> "without probes: only what stock erpc reads";
        [none] -> "not watched";
        _ -> "some without a probe"
    end.

count(1, What) -> ["1 ", What];
count(N, What) -> [integer_to_list(N), " ", What, "s"].

%% ---------------------------------------------------------------- tables

%% {Title, [{Column, left | right}], Rows}: the first column takes the room that is left, and where
%% there is too little the last columns are left out first.
table(groups, #{topology := #{groups := Groups, nodes := Nodes} = Topology,
                frame := #{groups := Samples, links := Links}}, _) ->
    #{inside := Inside, between := Between, free := WithFree, hidden := Hidden} =
        parts(Topology, Links),
    Rows = [
        {
            info,
            [
                Id, integer_to_list(length(Members)),
                integer_to_list(length([M || M <- Members, #{M := #{status := up}} <- [Nodes]])),
                names(Names, Members, Nodes), rate(regs_s, S), rate(maps:get(Id, Inside, 0)),
                short(Coordinator), maps:get(agent, Group, undefined)
            ]
        }
     || {Id, #{nodes := Members, names := Names, coordinator := Coordinator} = Group} <-
            by_name(Groups),
        S <- [maps:get(Id, Samples, #{})]
    ],
    %% The traffic that is of no single group.
    Free = maps:get(sderl_mon_traffic:free(), Inside, 0),
    Rest = [
        {info, [What, undefined, undefined, undefined, undefined, rate(Msgs), undefined, undefined]}
     || {What, Msgs} <- [{"between free nodes", Free}, {"with free nodes", WithFree},
                         {"between groups", Between}, {"with hidden nodes", Hidden}],
        Msgs > 0
    ],
    {"groups", [{"group", left}, {"nodes", right}, {"up", right}, {"names", right},
                {"regs/s", right}, {"msg/s", right}, {"coordinator", left}, {"watched from", left}],
     Rows ++ Rest};
table(nodes, #{topology := #{nodes := Nodes}, frame := #{nodes := Samples}}, #{sort := Sort}) ->
    Listed = [{Id, Node, maps:get(Id, Samples, #{})}
              || {Id, #{hidden := false} = Node} <- by_name(Nodes)],
    %% The sort is stable: nodes of one weight stay in the order of their names.
    Sorted = lists:sort(fun({_, _, S}, {_, _, T}) -> weight(Sort, S) >= weight(Sort, T) end,
                        Listed),
    Rows = [
        {
            case Status of up -> info; _ -> critical end,
            [
                Id, atom_to_list(Status), percent(util, S), rate(run_queue, S), rate(in_msgs_s, S),
                rate(out_msgs_s, S), rate(mq_max, S), mebi(mem, S), rate(procs, S), cpu(cpu_pct, S),
                lists:join(" ", Groups)
            ]
        }
     || {Id, #{status := Status, groups := Groups}, S} <- Sorted
    ],
    {"nodes",
     [
         {"node", left}, {"", left}, {"util", right}, {"runq", right}, {"in/s", right},
         {"out/s", right}, {"queue", right}, {"MiB", right}, {"procs", right}, {"CPU %", right},
         {"groups", left}
     ],
     Rows};
table(links, #{frame := #{links := Links}}, _) ->
    Sorted = lists:sort(fun({A, {M, B}}, {C, {N, D}}) -> {-B, -M, A} =< {-D, -N, C} end,
                        maps:to_list(Links)),
    Rows = [{info, [[From, " > ", To], rate(Msgs), bytes(Bytes)]}
            || {{From, To}, {Msgs, Bytes}} <- lists:sublist(Sorted, ?LINKS),
               Msgs > 0 orelse Bytes > 0],
    {"links with most bytes", [{"link", left}, {"msg/s", right}, {"bytes/s", right}], Rows};
table(findings, #{findings := Findings, columns := Columns}, _) ->
    Rows = lists:append([
        [{Severity, [Line]}
         || Line <- wrapped([atom_to_list(Severity), ": ", Text], Columns, "")] ++
        [{info, [Line]} || Line <- wrapped(Remedy, Columns, "    ")]
     || #{severity := Severity, text := Text, remedy := Remedy} <- Findings
    ]),
    {"findings", [{"", left}], Rows}.

%% Messages a second inside each group, between groups, of groups with nodes of none, and with
%% whoever is attached and hidden, such as another monitor: together all traffic.
parts(Topology, Links) ->
    Places = sderl_mon_traffic:places(Topology),
    Of = fun(By) ->
        [{Key, Msgs * Part}
         || Link := {Msgs, _} <- Links, {Key, Part} <- sderl_mon_traffic:keys(By, Link, Places)]
    end,
    Inside = maps:groups_from_list(fun({{group, Id}, _}) -> Id end, fun({_, Msgs}) -> Msgs end,
                                   Of(group)),
    With = fun(Place) ->
        fun({{edge, From, To}, _}) -> lists:member(Place, [From, To]) end
    end,
    {Attached, Members} = lists:partition(With(sderl_mon_traffic:hidden()), Of(edge)),
    {WithFree, Between} = lists:partition(With(sderl_mon_traffic:free()), Members),
    Sum = fun(Edges) -> lists:sum([Msgs || {_, Msgs} <- Edges]) end,
    Inner = #{Id => lists:sum(All) || Id := All <- Inside},
    #{
        inside => Inner,
        between => Sum(Between),
        free => Sum(WithFree),
        hidden => maps:get(sderl_mon_traffic:hidden(), Inner, 0) + Sum(Attached)
    }.

%% n2 before n10.
by_name(Map) ->
    Keyed = [{sderl_mon_text:natural(Id), Of} || {Id, _} = Of <- maps:to_list(Map)],
    [Of || {_, Of} <- lists:sort(Keyed)].

%% Without a probe on any member the number of names is unknown.
names(Names, Members, Nodes) ->
    case lists:any(fun(Member) -> sderl_mon_types:is_probed(Member, Nodes) end, Members) of
        true -> integer_to_list(Names);
        false -> "-"
    end.

%% The text in lines of at most so many columns, broken between words, each with this indent.
wrapped(Text, Columns, Indent) ->
    Width = max(20, Columns) - length(Indent),
    {Lines, Last} = lists:foldl(
        fun
            (Word, {Done, ""}) -> {Done, Word};
            (Word, {Done, Line}) ->
                Longer = Line ++ " " ++ Word,
                case string:length(Longer) > Width of
                    true -> {[Line | Done], Word};
                    false -> {Done, Longer}
                end
        end,
        {[], ""},
        string:lexemes(unicode:characters_to_list([Text]), " ")
    ),
    [Indent ++ Line || Line <- lists:reverse([Last | Lines])].

weight(utilisation, S) ->
    number(util, S) + number(run_queue, S) / 1000 + number(cpu_pct, S) / 1.0e6;
weight(traffic, S) -> number(in_bytes_s, S) + number(out_bytes_s, S);
weight(memory, S) -> number(mem, S);
weight(queue, S) -> number(mq_max, S);
weight(name, _) -> 0.

number(Key, Sample) ->
    case Sample of
        #{Key := Value} when is_number(Value) -> Value;
        #{} -> 0
    end.

short(undefined) -> "none";
short(Id) -> hd(binary:split(Id, ~"@")).

drawn(Kind, {Title, _, []}, _, _, _) ->
    [{title, Title}, {head, empty(Kind)}];
drawn(_, {Title, Columns, Rows}, #{view := View, top := Top}, Count, Width) ->
    From = case View of all -> 0; _ -> min(Top, max(0, length(Rows) - 1)) end,
    Seen = case Count of infinity -> Rows; _ -> lists:sublist(lists:nthtail(From, Rows), Count) end,
    Cells = [[flat(Cell) || Cell <- Row] || {_, Row} <- Seen],
    Kept = kept(Columns, Cells, Width),
    Hidden = length(Rows) - length(Seen),
    Head = row([{Name, Align} || {{Name, Align}, _} <- Kept], [W || {_, W} <- Kept]),
    [
        {title, [Title, [["  (", integer_to_list(Hidden), " more)"] || Hidden > 0]]}
        | [{head, Head} || Columns =/= [{"", left}]] ++
          [
              {Style, row(
                  [{Cell, Align}
                   || {Cell, {{_, Align}, _}} <- lists:zip(lists:sublist(Row, length(Kept)), Kept)],
                  [W || {_, W} <- Kept]
              )}
           || {{Style, _}, Row} <- lists:zip(Seen, Cells)
          ]
    ].

empty(groups) -> "  no groups: all nodes are free";
empty(nodes) -> "  no nodes seen yet";
empty(links) -> "  no traffic";
empty(findings) -> "  none".

%% The columns that fit, from the left, with their widths; the first is cut before another goes.
kept(Columns, Cells, Width) ->
    Widths = [lists:max([string:length(Name) | [string:length(lists:nth(I, Row)) || Row <- Cells]])
              || {I, {Name, _}} <- lists:enumerate(Columns)],
    fitting(lists:zip(Columns, Widths), Width).

fitting([Only], _) ->
    [Only];
fitting([{First, W} | Others] = All, Width) ->
    Rest = lists:sum([2 + V || {_, V} <- Others]),
    case Width - Rest of
        Left when Left >= W -> All;
        Left when Left >= 16 -> [{First, Left} | Others];
        _ -> fitting(lists:droplast(All), Width)
    end.

row(Cells, Widths) ->
    lists:join("  ", [
        case {string:length(Cell) > Width, Align} of
            {true, _} -> [string:slice(Cell, 0, max(0, Width - 1)), $…];
            {false, right} -> string:pad(Cell, Width, leading);
            {false, left} -> string:pad(Cell, Width, trailing)
        end
     || {{Cell, Align}, Width} <- lists:zip(Cells, Widths)
    ]).

flat(undefined) -> "-";
flat(Text) -> unicode:characters_to_list([sderl_visible:text([Text])]).

%% ---------------------------------------------------------------- numbers

rate(Key, Sample) ->
    case Sample of
        #{Key := Value} when is_number(Value) -> rate(Value);
        #{} -> "-"
    end.

rate(Value) when Value >= 999_950_000 -> [decimal(Value / 1.0e9), "G"];
rate(Value) when Value >= 999_950 -> [decimal(Value / 1.0e6), "M"];
rate(Value) when Value >= 9999.5 -> [decimal(Value / 1.0e3), "k"];
rate(Value) when is_integer(Value); Value >= 10; Value == 0 -> integer_to_list(round(Value));
rate(Value) -> decimal(Value).

bytes(Value) when Value >= 999_950_000 -> [decimal(Value / 1.0e9), " GB"];
bytes(Value) when Value >= 999_950 -> [decimal(Value / 1.0e6), " MB"];
bytes(Value) -> [decimal(Value / 1.0e3), " kB"].

percent(Key, Sample) ->
    when_known(Key, Sample, fun(Value) -> [integer_to_list(round(100 * Value)), "%"] end).
cpu(Key, Sample) -> when_known(Key, Sample, fun(Value) -> decimal(Value) end).
mebi(Key, Sample) ->
    when_known(Key, Sample, fun(Value) -> integer_to_list(round(Value / 1_048_576)) end).

when_known(Key, Sample, Fun) ->
    case Sample of
        #{Key := Value} when is_number(Value) -> Fun(Value);
        #{} -> "-"
    end.

decimal(Value) -> float_to_list(Value * 1.0, [{decimals, 1}]).
