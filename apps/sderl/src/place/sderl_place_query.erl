%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_query).
-moduledoc false.
%% Runs a spec in the calling process: finds the candidates, reads what the conditions and the
%% chooser need, and has the pure modules decide.
%%
%% Attributes are read from this node's table. Only values that are missing there or too old are
%% asked for, once, for all such nodes together and within the time of the query. A candidate that
%% another condition drops anyway is not asked.

-export([choose/1, survey/1]).
-export_type([survey/0, candidate/0]).

-import(sderl_clock, [now_ms/0]).

-doc "A candidate, its readings, and whether it fits: then with its entry for the chooser.".
-type candidate() ::
    {node(), sderl_place_filter:read(), sderl_place_pick:entry() | {dropped, Why :: term()}}.
-type survey() ::
    #{candidates := [candidate()], distances := sderl_place_filter:distances(),
      adds := auto | number(), chosen := [node()]}.

-define(MAX_MS, 16#FFFFFFFF).

%% The data with which all candidates are judged.
-record(q, {
    spec :: sderl_place_spec:t(),
    where :: list(),
    prefer :: list(),
    choose :: sderl_place_spec:chooser(),
    distances :: sderl_place_filter:distances(),
    max_age :: non_neg_integer(),
    slack :: non_neg_integer(),
    now :: integer(),
    pending :: boolean(),
    groups :: [{term(), [node()]}]
}).

-doc "The nodes that a spec chooses; they count as chosen where the spec has that.".
-spec choose(sderl_place_spec:t()) -> [node()] | {error, {unknown_group, term()}}.
choose(#{pending := Notes} = Spec) ->
    case candidates(Spec) of
        {ok, Nodes, Groups} ->
            Q = query(Spec, Nodes, Groups),
            Random = random(),
            Chosen = case quickly(Nodes, Q, Random) of
                {ok, Some} ->
                    case lists:any(fun down/1, Some) of
                        false -> Some;
                        true -> of_all(Nodes, Q, Random)
                    end;
                unknown -> of_all(Nodes, Q, Random)
            end,
            _ = Notes andalso [sderl_place_pending:note(N) || N <- Chosen],
            Chosen;
        {error, _} = Error -> Error
    end.

of_all(Nodes, #q{spec = #{choose := Choose, count := Count}} = Q0, Random) ->
    Q = measured_out(Nodes, Q0),
    Judged = judged(Nodes, Q),
    live(Choose, Count, adds(Judged, Q), [Entry || {_, _, {_, _, _, _} = Entry} <- Judged], Random).

-doc "The same without counting, with the outcome for each candidate.".
-spec survey(sderl_place_spec:t()) -> {ok, survey()} | {error, {unknown_group, term()}}.
survey(#{choose := Choose, count := Count} = Spec) ->
    case candidates(Spec) of
        {ok, Nodes, Groups} ->
            Q = measured_out(Nodes, query(Spec, Nodes, Groups)),
            Judged = [case Entry of
                {N, _, _, _} ->
                    {N, Read, case down(N) of true -> {dropped, down}; false -> Entry end};
                _ -> {N, Read, Entry}
            end || {N, Read, Entry} <- judged(Nodes, Q)],
            Adds = adds(Judged, Q),
            Chosen = sderl_place_pick:pick(Choose, Count, Adds,
                                           [E || {_, _, {_, _, _, _} = E} <- Judged], random()),
            {ok,
             #{candidates => Judged, distances => Q#q.distances, adds => Adds, chosen => Chosen}};
        {error, _} = Error -> Error
    end.

random() -> sderl_place_pick:random({self(), erlang:unique_integer()}).

%% All candidates that have the attribute determine the weight of a choice, whether they fit or not:
%% so a choice that checks conditions last has the same weight.
adds(Judged, #q{choose = {Way, Name}, spec = #{adds := auto}}) when Way =:= least; Way =:= most ->
    Values = [V || {_, Read, _} <- Judged, {ok, V, _} <- [Read(Name)], is_number(V)],
    case Values of
        [] -> auto;
        _ -> sderl_place_pick:step(auto, lists:min(Values), lists:max(Values))
    end;
adds(_, #q{spec = #{adds := Adds}}) -> Adds.

%% A choice that need not judge every candidate.
quickly(Nodes, #q{prefer = [], choose = {Way, Name}, spec = #{count := 1, adds := Adds}} = Q,
        Random)
  when Way =:= least; Way =:= most ->
    Step = fun(Least, Greatest) -> sderl_place_pick:step(Adds, Least, Greatest) end,
    case cells({attr, Name}, Nodes, fun(Node) -> measured_cell(Way, Name, Node, Q) end, Q) of
        stale -> unknown;
        Cells -> quick(sderl_place_best:best(Cells, since_base(Q), fits(Q), Step, Random))
    end;
quickly(Nodes, #q{prefer = [], choose = {spread, Over}, spec = #{count := 1}} = Q, Random) ->
    Attribute = case Over of {attr, _} -> Over; _ -> none end,
    case cells(Attribute, Nodes, fun(Node) -> spread_cell(Over, Node, Q) end, Q) of
        stale -> unknown;
        Cells -> quick(sderl_place_best:emptiest(Cells, since_base(Q), fits(Q), Random))
    end;
quickly(Nodes, #q{prefer = [], choose = {nearest, Ref}, spec = #{count := 1}, now = Now} = Q,
        Random)
  when Ref =:= from; element(1, Ref) =:= node ->
    case fitting(Nodes, Q) of
        stale -> unknown;
        Fit ->
            From = case Ref of from -> maps:get(from, Q#q.spec); {node, Node} -> Node end,
            Since = Now - window(Q),
            quick(sderl_place_best:fewest(sderl_dist:nearest(From, Fit),
                                          fun(Node) -> pending(Node, Since, Q) end, Random))
    end;
quickly(Nodes, #q{choose = Choose, spec = #{count := Count, adds := Adds}} = Q, Random) ->
    case drawn(Nodes, Q, Random) of
        {ok, Few} -> {ok, sderl_place_pick:pick(Choose, Count, Adds, Few, Random)};
        all -> unknown
    end.

quick({ok, Node}) -> {ok, [Node]};
quick(none) -> {ok, []};
quick(unknown) -> unknown.

fits(#q{where = []}) -> fun(_) -> true end;
fits(#q{where = Where, distances = Distances} = Q) ->
    fun(Node) -> sderl_place_filter:fits(Where, Node, cached(Node, Q), Distances) end.

fitting(Nodes, #q{where = []}) -> Nodes;
fitting(Nodes, Q) ->
    Judged = [{Node, (fits(Q))(Node)} || Node <- Nodes],
    case lists:keymember(stale, 2, Judged) of
        true -> stale;
        false -> [Node || {Node, true} <- Judged]
    end.

%% The compared values of all candidates. If these are a group's members, many choices find them
%% prepared.
cells(Attribute, Nodes, Cell,
      #q{choose = Choose, max_age = MaxAge, now = Now, groups = [{Group, Nodes}]}) ->
    Make = fun() -> make_cells(Nodes, Cell, [], infinity) end,
    sderl_place_cells:cells({Group, Choose, MaxAge}, Attribute, {Nodes, Now}, Make);
cells(_, Nodes, Cell, _) ->
    case make_cells(Nodes, Cell, [], infinity) of
        {Cells, _} -> Cells;
        stale -> stale
    end.

%% The cells in reverse order, and the moment until which no value is too old. (Every number is less
%% than the atom `infinity`.)
make_cells([], _, Cells, Until) -> {Cells, Until};
make_cells([Node | Nodes], Cell, Cells, Until) ->
    case Cell(Node) of
        stale -> stale;
        {none, FreshUntil} -> make_cells(Nodes, Cell, Cells, min(Until, FreshUntil));
        {Value, Base, FreshUntil} ->
            make_cells(Nodes, Cell, [{Value, Base, Node} | Cells], min(Until, FreshUntil))
    end.

%% A load: the less the better; a node without a number is no candidate.
measured_cell(Way, Name, Node, #q{now = Now} = Q) ->
    case fresh(Node, Name, Q) of
        {fresh, {_, Value, ok, Age, _, _}, Until} when is_number(Value) ->
            Base = sderl_place_pending:before(Node, Now - trunc(min(Age, window(Q)))),
            {case Way of least -> Value; most -> -Value end, Base, Until};
        {fresh, _, Until} -> {none, Until};
        stale -> stale
    end.

spread_cell({attr, Name}, Node, #q{now = Now} = Q) ->
    case fresh(Node, Name, Q) of
        {fresh, {_, Value, Why, _, _, _}, Until} ->
            Part = case Why of ok -> {value, Value}; _ -> none end,
            {Part, sderl_place_pending:before(Node, Now - window(Q)), Until};
        stale -> stale
    end;
spread_cell(Over, Node, #q{now = Now} = Q) ->
    {over(Over, Node, Q), sderl_place_pending:before(Node, Now - window(Q)), infinity}.

fresh(Node, Name, #q{now = Now, max_age = MaxAge, slack = Slack}) ->
    case sderl_attr_table:fresh(Node, Name, Now, MaxAge, Slack) of
        {fresh, {_, _, _, Age, Kind, _} = Entry} ->
            {fresh, Entry, Now - Age + sderl_attr_table:limit(Kind, MaxAge, Slack)};
        _ -> stale
    end.

since_base(#q{pending = false}) -> fun(_, _) -> 0 end;
since_base(#q{now = Now} = Q) ->
    Since = Now - window(Q),
    fun(Node, Base) -> sderl_place_pending:since_base(Node, Base, Since) end.

%% If the chooser needs only a few nodes at random, nodes are drawn until enough of them fit. `all`
%% if that takes longer than to judge all, or if one has to be asked.
drawn(Nodes, #q{prefer = [], choose = Choose, spec = #{count := Count}} = Q, Random) ->
    Tuple = list_to_tuple(Nodes),
    case sderl_place_pick:needs(Choose, Count) of
        Need when is_integer(Need), 4 * Need < tuple_size(Tuple) ->
            drawn(tuple_size(Tuple) div 2, Need, Tuple, Q, Random, [], []);
        _ -> all
    end;
drawn(_, _, _) -> all.

drawn(_, 0, _, _, _, _, Fit) -> {ok, Fit};
drawn(0, _, _, _, _, _, _) -> all;
drawn(Tries, Need, Nodes, Q, Random0, Seen, Fit) ->
    {I, Random} = sderl_place_pick:below(tuple_size(Nodes), Random0),
    Node = element(1 + I, Nodes),
    case lists:member(Node, Seen) of
        true -> drawn(Tries - 1, Need, Nodes, Q, Random, Seen, Fit);
        false ->
            case judge(Node, cached(Node, Q), Q) of
                {_, _, {_, _, _, _} = Entry} ->
                    drawn(Tries - 1, Need - 1, Nodes, Q, Random, [Node | Seen], [Entry | Fit]);
                {_, _, {dropped, _}} ->
                    drawn(Tries - 1, Need, Nodes, Q, Random, [Node | Seen], Fit);
                {_, _, stale} -> all
            end
    end.

%% A value may be of a node that has just died: a choice does not check every candidate's link, only
%% those of the chosen nodes.
live(Choose, Count, Adds, Entries, Random) ->
    Chosen = sderl_place_pick:pick(Choose, Count, Adds, Entries, Random),
    case [N || N <- Chosen, down(N)] of
        [] -> Chosen;
        Down ->
            live(Choose, Count, Adds, [E || {N, _, _, _} = E <- Entries, not lists:member(N, Down)],
                 Random)
    end.

%% A fellow member without a link is down, or as good as down. A node that is in no own group need
%% not be linked.
down(Node) when Node =:= node() -> false;
down(Node) ->
    not sderl_links:is_up(Node)
        andalso sderl_dir:shares_group(Node).

%% ---------------------------------------------------------------- candidates

%% The candidates, each once, and the groups that they were listed by.
-spec candidates(sderl_place_spec:t()) ->
    {ok, [node()], [{term(), [node()]}]} | {error, {unknown_group, term()}}.
candidates(#{candidates := Sources, member_of := MemberOf, exclude := Exclude}) ->
    maybe
        {ok, Lists} ?= lists(Sources, []),
        {ok, Within} ?= lists([{group, G} || G <- MemberOf], []),
        Nodes = case Lists of
            [{{group, _}, Members}] -> Members;
            _ -> lists:uniq(lists:append([Ns || {_, Ns} <- Lists]))
        end,
        In = lists:foldl(fun({_, Members}, Ns) -> [N || N <- Ns, lists:member(N, Members)] end,
                         Nodes, Within),
        Groups = [{G, Ns} || {{group, G}, Ns} <- Lists],
        {ok, case Exclude of [] -> In; _ -> [N || N <- In, not lists:member(N, Exclude)] end,
         Groups}
    end.

lists([], Found) -> {ok, lists:reverse(Found)};
lists([{nodes, Nodes} | Sources], Found) -> lists(Sources, [{nodes, Nodes} | Found]);
lists([{group, Group} | Sources], Found) ->
    case members(Group) of
        unknown -> {error, {unknown_group, Group}};
        Members -> lists(Sources, [{{group, Group}, Members} | Found])
    end;
lists([own | Sources], Found) -> lists(Sources, own() ++ Found);
lists([known | Sources], Found) -> lists(Sources, others() ++ own() ++ Found).

own() -> [{own, [node()]} | [{{group, G}, Ms} || {G, Ms} <- sderl_dir:memberships()]].

others() -> [{{group, G}, Ms} || {G, Ms} <- sderl_dir:known() ++ sderl_route:groups()].

members(Group) ->
    case sderl_dir:members(Group) of
        [_ | _] = Members -> Members;
        [] ->
            case sderl_dir:known(Group) of
                [] -> proplists:get_value(Group, sderl_route:groups(), unknown);
                Nodes -> Nodes
            end
    end.

%% ---------------------------------------------------------------- judging

query(#{where := Where, prefer := Prefer, choose := Choose, max_age_ms := MaxAge} = Spec, Nodes,
      Groups) ->
    #q{spec = Spec, where = Where, prefer = Prefer, choose = Choose,
       %% `infinity` is greater than all numbers.
       max_age = min(MaxAge, ?MAX_MS), slack = 2 * sderl_attr:share_ms(),
       now = now_ms(), pending = sderl_place_pending:any(), groups = Groups,
       distances = distances(refs(Where, Prefer), Spec, Nodes)}.

refs(Where, Prefer) ->
    lists:usort([Ref || {{dist, Ref}, _, _} <- Where] ++
                [Ref || {_, {{dist, Ref}, _, _}} <- Prefer]).

%% With the distances that the chooser looks at.
measured_out(Nodes, #q{choose = {nearest, Ref}, spec = Spec, distances = Distances} = Q)
  when not is_map_key(Ref, Distances) ->
    Q#q{distances = maps:merge(Distances, distances([Ref], Spec, Nodes))};
measured_out(_, Q) -> Q.

distances([], _, _) -> #{};
distances(Refs, #{from := From}, Nodes) ->
    #{Ref => case Ref of
        from -> sderl_dist:distances(From, Nodes);
        {node, Node} -> sderl_dist:distances(Node, Nodes);
        {group, Group} -> to_group(members(Group), Nodes)
    end || Ref <- Refs}.

%% The distance to a group is that to its nearest member.
to_group(unknown, _) -> #{};
to_group(Members, Nodes) ->
    lists:foldl(fun(Member, Nearest) ->
        maps:merge_with(fun(_, A, B) -> min(A, B) end, Nearest, sderl_dist:distances(Member, Nodes))
    end, #{}, Members).

judged(Nodes, #q{spec = #{names := Names}} = Q) ->
    First = [judge(N, cached(N, Q), Q) || N <- Nodes],
    case [N || {N, _, stale} <- First] of
        [] -> First;
        Stale ->
            Asked = ask(Stale, Names, Q),
            [case Judged of
                {N, _, stale} -> judge(N, answered(maps:get(N, Asked, {error, no_answer})), Q);
                _ -> Judged
            end || Judged <- First]
    end.

judge(Node, Read, #q{where = Where, distances = Distances} = Q) ->
    case sderl_place_filter:fits(Where, Node, Read, Distances) of
        true ->
            {Node, Read,
             entry(sderl_place_filter:score(Q#q.prefer, Node, Read, Distances), Node, Read, Q)};
        false -> {Node, Read, {dropped, condition}};
        stale -> {Node, Read, stale}
    end.

entry(stale, _, _, _) -> stale;
entry(Score, Node, Read, #q{choose = Choose, now = Now} = Q) ->
    case Choose of
        {two, _, Name} -> measured(Node, Score, Read(Name), Q);
        {least, Name} -> measured(Node, Score, Read(Name), Q);
        {most, Name} -> measured(Node, Score, Read(Name), Q);
        {nearest, Ref} -> {Node, Score, distance(Ref, Node, Q), pending(Node, Now - window(Q), Q)};
        {spread, {attr, Name}} ->
            case Read(Name) of
                stale -> stale;
                {ok, Value, _} -> {Node, Score, {value, Value}, pending(Node, Now - window(Q), Q)};
                _ -> {Node, Score, none, pending(Node, Now - window(Q), Q)}
            end;
        {spread, Over} -> {Node, Score, over(Over, Node, Q), pending(Node, Now - window(Q), Q)};
        _ -> {Node, Score, undefined, 0}
    end.

%% A choice shows in values that were measured after it, and no choice counts for ever.
measured(Node, Score, {ok, Value, Age}, #q{now = Now} = Q) when is_number(Value) ->
    {Node, Score, Value, pending(Node, Now - trunc(min(Age, window(Q))), Q)};
measured(_, _, stale, _) -> stale;
measured(_, _, {ok, _, _}, _) -> {dropped, not_a_number};
measured(_, _, {undefined, _, _}, _) -> {dropped, undefined};
measured(_, _, {error, Why}, _) -> {dropped, Why}.

-define(WINDOW, 10_000).
window(#q{max_age = ?MAX_MS}) -> ?WINDOW;
window(#q{max_age = MaxAge}) -> max(?WINDOW, MaxAge).

pending(_, _, #q{pending = false}) -> 0;
pending(Node, Since, _) -> sderl_place_pending:since(Node, Since).

%% A node with an unknown distance is farther than any (an atom is greater than all numbers).
distance(Ref, Node, #q{distances = Distances}) ->
    case Distances of
        #{Ref := #{Node := D}} -> D;
        #{} -> unknown
    end.

over(host, Node, _) -> sderl_dist_derive:host(Node);
over(group, Node, #q{groups = Groups}) ->
    case [G || {G, Members} <- Groups, lists:member(Node, Members)] of
        [Group | _] -> {group, Group};
        [] -> none
    end.

%% ---------------------------------------------------------------- values

%% One look at the clock for all. A value that its owner computes seldom may be a little late:
%% asking would bring the same value.
cached(Node, #q{now = Now, max_age = MaxAge, slack = Slack}) ->
    fun(Name) ->
        case sderl_attr_table:fresh(Node, Name, Now, MaxAge, Slack) of
            {fresh, {_, Value, ok, Age, _, _}} -> {ok, Value, Age};
            {fresh, {_, _, Why, Age, _, _}} -> {undefined, Why, Age};
            _ -> stale
        end
    end.

answered({ok, Values}) ->
    fun(Name) ->
        case Values of
            #{Name := Answer} -> Answer;
            #{} -> {error, no_answer}
        end
    end;
answered({error, Why}) -> fun(_) -> {error, Why} end.

%% Nodes that are known to be down are not asked.
ask(Nodes, Names, #q{max_age = MaxAge, spec = #{timeout_ms := Timeout}}) ->
    {Down, Up} = lists:partition(fun down/1, Nodes),
    Errors = #{N => {error, down} || N <- Down},
    case Up of
        [] -> Errors;
        _ ->
            #{} = Fetched = sderl_attr:fetch(Up, Names,
                                             #{max_age_ms => MaxAge, timeout_ms => Timeout}),
            maps:merge(Fetched, Errors)
    end.
