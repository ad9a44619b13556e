%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_reports).
-moduledoc false.
%% Combines a survey's reports on the asking node: the nodes to wait for, and the joint result.
%% Pure.

-export([new/1, add/2, complete/1, legs/1, groups/1, names/1, missing/1, cost/1]).
-export_type([t/0, reason/0]).

-opaque t() :: #{
    expected := #{node() => true},
    reports := #{node() => sderl_dist_survey:report()},
    seen := #{node() => true}
}.

-doc """
`not_linked`: a member of a group that no node in the survey has a link with. `no_answer`: it was
asked. `busy`: it takes part in too many surveys. `no_round_trip`: none of its probes, or probes of
it, came back.
""".
-type reason() :: not_linked | no_answer | busy | no_round_trip.

-doc "The state in which only the first node is waited for.".
-spec new(node()) -> t().
new(Node) -> #{expected => #{Node => true}, reports => #{}, seen => #{Node => true}}.

-doc "Adds a report; the first one of a node counts. `unknown`: the term is no report.".
-spec add(term(), t()) -> t() | unknown.
add(#{node := Node, refused := busy} = Report, State) when is_atom(Node) ->
    note(Report#{asked => [], unlinked => []}, State);
add(#{node := Node, groups := Groups, asked := Asked, unlinked := Unlinked, legs := Legs,
      silent := Silent, messages := Messages, bytes := Bytes} = Report, State)
  when is_atom(Node), length(Groups) >= 0, length(Asked) >= 0, length(Unlinked) >= 0,
       length(Legs) >= 0, length(Silent) >= 0,
       is_integer(Messages), is_integer(Bytes) ->
    Sound = lists:all(fun is_atom/1, Asked ++ Unlinked ++ Silent)
        andalso lists:all(fun
            ({Peer, Ns}) -> is_atom(Peer) andalso is_integer(Ns) andalso Ns > 0;
            (_) -> false
        end, Legs)
        andalso lists:all(fun({_Uid, _Name, Members}) when length(Members) >= 0 ->
                                 lists:all(fun is_atom/1, Members);
                             (_) -> false
                          end, Groups),
    case Sound of
        true -> note(Report, State);
        false -> unknown
    end;
add(_, _) -> unknown.

note(#{node := Node, asked := Asked, unlinked := Unlinked} = Report,
     #{expected := Expected, reports := Reports, seen := Seen} = State) ->
    case Reports of
        #{Node := _} -> State;
        #{} ->
            State#{
                expected := maps:merge(Expected, #{N => true || N <- Asked}),
                reports := Reports#{Node => Report},
                seen := maps:merge(Seen, #{N => true || N <- Asked ++ Unlinked})
            }
    end.

-doc "Whether all nodes that were asked have reported.".
-spec complete(t()) -> boolean().
complete(#{expected := Expected, reports := Reports}) ->
    map_size(maps:without(maps:keys(Reports), Expected)) =:= 0.

-spec legs(t()) -> [sderl_dist_matrix:leg()].
legs(State) ->
    [{Node, Peer, Ns} || #{node := Node, legs := Legs} <- full(State), {Peer, Ns} <- Legs].

-doc """
The groups in the survey: their members. A node that was reached through several gateways is
reported by each of them.
""".
-spec groups(t()) -> [[node()]].
groups(State) ->
    maps:values(lists:foldl(fun({Uid, _, Members}, Acc) ->
        Acc#{Uid => lists:umerge(lists:usort(Members), maps:get(Uid, Acc, []))}
    end, #{}, named(State))).

-spec names(t()) -> [term()].
names(State) -> lists:usort([Name || {_, Name, _} <- named(State)]).

-doc "The known nodes that took no part, with the reason.".
-spec missing(t()) -> [{node(), reason()}].
missing(#{expected := Expected, reports := Reports, seen := Seen}) ->
    lists:sort([{Node, busy} || #{node := Node, refused := busy} <- maps:values(Reports)] ++
        [{Node, case Expected of #{Node := _} -> no_answer; #{} -> not_linked end}
         || Node := _ <- Seen, not is_map_key(Node, Reports)]).

-doc "The cost, without the reports themselves.".
-spec cost(t()) -> #{messages := non_neg_integer(), bytes := non_neg_integer()}.
cost(State) ->
    #{messages => lists:sum([N || #{messages := N} <- full(State)]),
      bytes => lists:sum([N || #{bytes := N} <- full(State)])}.

named(State) -> lists:append([Groups || #{groups := Groups} <- full(State)]).

full(#{reports := Reports}) -> [Report || #{legs := _} = Report <- maps:values(Reports)].
