%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_library).
-moduledoc """
The probe's questions to the application `sderl`, through its functions only (`m:sderl_observed`,
`m:s_group`). None of them fails where `sderl` does not run: such nodes are monitored, too.
""".

-export([traffic/1, counts/2, names/0, edges/2, edges/5, groups/1, ask/2, pause_ms/2, lasting/3]).
-export([describe_event/1, message_tags/0]).
-export_type([edges/0, answers/0]).

-import(sderl_mon_probe_text, [id/1, text/1, text/2, cut/2]).

-doc "Routed messages: last count by pair of nodes (`row`), total by pair of groups (`edge`).".
-type edges() :: #{
    {row, From :: node(), Next :: node()} => integer(),
    {From :: binary(), To :: binary()} => {edge, integer()}
}.

-doc """
What the library answered last (`ask/2`). `sup` is its supervisor, at which the probe has subscribed
(subscriptions end with it); `batches` has the number of each group's last batch.
""".
-type answers() :: #{
    sup := undefined | pid(),
    reasons => #{node() => {[binary()], AgeS :: non_neg_integer()}},
    live => #{Group :: term() => map()},
    batches => #{Group :: term() => term()},
    known => [{Group :: term(), [node()]}],
    problems => [binary()]
}.

-doc "The library's own counts; of messages between nodes only those that differ from `Edges`.".
-spec traffic(edges()) -> sderl_observed:traffic() | #{}.
traffic(Edges) ->
    try
        sderl_observed:traffic()
    of
        #{edges := Rows} = Sample ->
            Sample#{edges := [Row
                              || {From, Next, N} = Row <- Rows,
                                 maps:get({row, From, Next}, Edges, 0) =/= N]}
    catch
        _:_ -> #{}
    end.

-doc """
The counts of groups by their ids. `Ids` are those of the last call, and the new ones are returned:
making the text of a name costs more than all else here.
""".
-spec counts([{term(), sderl_observed:counts()}], Ids :: #{term() => binary()}) ->
    {#{binary() => sderl_observed:counts()}, #{term() => binary()}}.
counts(Groups, Old) ->
    Ids = #{G => case Old of #{G := Id} -> Id; #{} -> id(G) end || {G, _} <- Groups},
    {#{map_get(G, Ids) => Counts || {G, Counts} <- Groups}, Ids}.

-doc """
How many names the node has, of all its groups, as a gauge; nothing where the library does not run.
""".
-spec names() -> #{names => non_neg_integer()}.
names() ->
    try is_pid(whereis(sderl_sup)) andalso sderl_observed:count_names() of
        Names when is_integer(Names) -> #{names => Names};
        false -> #{}
    catch _:_ -> #{}
    end.

-doc "`edges/5` with the groups of this node, and those that it knows.".
-spec edges([{node(), node(), integer()}], edges()) -> edges().
edges(Rows, Old) -> edges(Rows, Old, groups_of(), nodes(connected), node()).

%% The ids of the groups of each node, the own ones of this node first.
groups_of() ->
    lists:foldr(fun({G, Ms}, Acc) ->
        Id = id(G),
        lists:foldl(fun(N, A) -> A#{N => [Id | maps:get(N, A, [])]} end, Acc, Ms)
    end, #{}, sderl_observed:group_members()).

-doc """
Turns routed messages between nodes into messages between groups, as these are now. A sender in
several groups counts for its first one, the next node for its first one that the sender is not in.

A message counts at the first gateway on its way, where the sender is a neighbour, so that the sum
over all gateways is the number of messages. Further gateways count it only as passed on.
""".
-spec edges([{node(), node(), integer()}], edges(), #{node() => [Id :: binary()]},
            Connected :: [node()], Self :: node()) -> edges().
edges(Rows, Old, GroupsOf, Connected, Self) ->
    Of = fun(N) -> maps:get(N, GroupsOf, []) end,
    Own = Of(Self),
    lists:foldl(fun({From, Next, N}, Acc) ->
        New = max(0, N - maps:get({row, From, Next}, Acc, 0)),
        case New > 0 andalso is_first(From, Of(From), Own, Connected, Self) of
            true ->
                Key = {sender(From, Of(From), Self), receiver(Next, Of(Next), Of(From), Self)},
                {edge, Before} = maps:get(Key, Acc, {edge, 0}),
                Acc#{{row, From, Next} => N, Key => {edge, Before + New}};
            false ->
                Acc#{{row, From, Next} => N}
        end
    end, Old, Rows).

%% A node without a known group is free, or far away.
is_first(Self, _Groups, _Own, _Connected, Self) -> true;
is_first(From, [], _Own, Connected, _Self) -> lists:member(From, Connected);
is_first(_From, Groups, Own, _Connected, _Self) -> lists:any(fun(G) -> lists:member(G, Own) end,
                                                             Groups).

sender(Self, _Groups, Self) -> <<"(gateway)">>;
sender(_From, [Group | _], _Self) -> Group;
sender(_From, [], _Self) -> <<"(free)">>.

receiver(Self, _Groups, _SendersGroups, Self) -> <<"(gateway)">>;
receiver(_Next, [], _SendersGroups, _Self) -> <<"(free)">>;
receiver(_Next, Groups, SendersGroups, _Self) ->
    hd([G || G <- Groups, not lists:member(G, SendersGroups)] ++ Groups).

-doc "The groups that this node is in, with what is known of each (`ask/2`).".
-spec groups(Live :: #{term() => map()}) -> [sderl_mon_samples:group()].
groups(Live) ->
    try
        sderl_observed:groups()
    of
        Own ->
            [maps:merge(#{group => G, members => Ms, coordinator => Lead, names => 0},
                        maps:get(G, Live, #{}))
             || {G, Ms, Lead} <- lists:sort(Own)]
    catch
        _:_ -> []
    end.

-doc """
Asks the library; may block. `Before`: the last answers.
""".
-spec ask(Probe :: pid(), Before :: sderl_mon_probe_slow:known()) -> answers().
ask(Probe, Before) ->
    case whereis(sderl_sup) of
        undefined -> not_there([]);
        Sup -> asked(Probe, Sup, Before)
    end.

-doc """
How long until the library is asked again, if that took `Us` microseconds: ten seconds, or a
thousand times `Us` if that is longer, but a minute at most, because much of the time may have been
waiting for a process that hung, or the node's own standstill. After problems it is asked sooner, so
that no problem is shown long after it has gone.
""".
-spec pause_ms(Us :: non_neg_integer(), sderl_mon_probe_slow:known()) -> pos_integer().
pause_ms(Us, #{problems := [_ | _]}) -> max(1_000, min(10_000, Us div 5));
pause_ms(Us, #{}) -> max(10_000, min(60_000, Us)).

asked(Probe, Sup, Before) ->
    try
        _ = Sup =:= maps:get(sup, Before, undefined) orelse sderl_observed:subscribe(Probe),
        maps:merge(#{sup => Sup}, maps:merge(info(s_group:info(), maps:get(batches, Before, #{})),
                                             reasons(s_group:links())))
    catch
        error:undef ->
            not_there([~"the library here is of a version that this probe does not know"])
    end.

not_there(Problems) ->
    #{sup => undefined, reasons => #{}, live => #{}, batches => #{}, known => [],
      problems => Problems}.

info(Info, Before) when is_list(Info) ->
    Groups = proplists:get_value(groups, Info, []),
    Told = proplists:get_value(problems, Info, []),
    Problems = [cut(P, 300) || P <- lasting(Told, Groups, Before)],
    #{problems => case length(Problems) of
          N when N > 50 -> lists:sublist(Problems, 50) ++ [text("and ~b more", [N - 50])];
          _ -> Problems
      end,
      known => proplists:get_value(other_groups, Info, []),
      batches => #{G => Number || #{group := G, number := Number} <- Groups},
      live => #{G => maps:with([live, names, role, majority], I)
                || #{group := G} = I <- Groups, G =/= undefined}};
info({error, Why}, _) ->
    #{problems => [text("the application sderl does not answer: ~0tp", [Why])]}.

-doc """
The problems without those that are only writes under way: a busy coordinator waits for
acknowledgements nearly whenever it is asked. If it waits for the same batch as the last time, that
is a problem.
""".
-spec lasting([string()], [map()], Batches :: #{term() => term()}) -> [string()].
lasting(Problems, Groups, Before) ->
    OnTheirWay = [unicode:characters_to_list(io_lib:format("~0tp: waits for ", [G]))
                  || #{group := G, number := Number, acknowledgements_missing := [_ | _]} <- Groups,
                     maps:get(G, Before, none) =/= Number],
    [P || P <- Problems, not lists:any(fun(Begins) -> lists:prefix(Begins, P) end, OnTheirWay)].

reasons(Links) when is_list(Links) ->
    Now = erlang:system_time(second),
    %% Many links have the same reasons: their texts are made once.
    Texts = #{Rs => [cut(text(R), 100) || R <- lists:sublist(Rs, 20)]
              || Rs <- lists:usort([Rs || #{reasons := Rs} <- Links])},
    #{reasons => #{N => {map_get(Rs, Texts), max(0, Now - Since)}
                   || #{node := N, since := Since, reasons := Rs} <- Links}};
reasons(_) -> #{}.

-doc "The sentence for the report of an event of the library.".
-spec describe_event(logger:report()) -> {io:format(), [term()]}.
describe_event(Report) -> sderl_observed:describe_event(Report).

-doc "The first elements of the library's messages; none where the library does not run.".
-spec message_tags() -> [atom()].
message_tags() ->
    try
        sderl_observed:message_tags()
    catch
        error:undef -> []
    end.
