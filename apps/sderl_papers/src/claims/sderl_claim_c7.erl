%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c7).
-moduledoc """
Claim C7: ant colonies in s_groups send the fewest packets, those with global names the most.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/3]).
-import(sderl_claim_points, [value/2, apart/3, text/2]).

%% Fewer nodes say nothing; a different order refutes the claim only with more than PUBLISHED_NODES:
%% the published number is 145, and because of the groups' own traffic SR sends less than a mesh
%% only from some number of nodes on.
-define(LEAST_NODES, 20).
-define(PUBLISHED_NODES, 100).
%% So many times as many are more.
-define(MORE, 1.1).
%% The factors are reported at about this number of nodes, and at the largest.
-define(TOLD_NODES, 50).

-define(VARIANTS, [gr, ml, sr]).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C7">>,
        title => <<"Ant colonies: network traffic">>,
        question =>
            <<"How many packets does a run take with many levels, with names of `global`, and with "
              "names of s_groups?">>,
        claim =>
            <<"At 145 nodes SR receives 0.5 million packets, ML twice and GR three times as many "
              "(Chechina et al. 2017, Fig. 10; RELEASE project, Fig. 32)">>,
        share => 1
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(Scale) ->
    [Point
     || #{params := #{variant := V}} = Point <- sderl_claim_c6:points(Scale),
        lists:member(V, ?VARIANTS)].

-doc """
At the largest number of colonies at which all three were measured, by the packets of these runs as
they are. `confirmed`: in several runs SR sends fewer packets than ML, and ML fewer than GR, by
over 1.1 times and in each run; and no run failed. `refuted`: on over 100 nodes, and in several
runs, one of these is the other way round by as much.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(judge(Points), sderl_claim_aco:failed(Points, ?VARIANTS)).

judge(Points) ->
    case sderl_claim_aco:order(Points, ?VARIANTS) of
        none ->
            {not_shown, <<"There is no number of colonies at which all three were measured.">>};
        {C, #{gr := Gr, ml := Ml, sr := Sr} = By} ->
            N = sderl_claim_aco:nodes(Sr),
            Runs = lists:min([length(R) || #{runs := R} <- maps:values(By)]),
            What = what(maps:values(By)),
            More = fun(A, B) -> more(A, B, What) end,
            Said = text("~ts ~ts", [lists:join(" ", [said(Of, What) || Of <- told(C, By, Points)]),
                                    unit(What)]),
            case [Group || Group <- maps:values(By), not is_number(value(Group, What))] of
                [_ | _] -> {not_shown, <<"Packets were not counted.">>};
                [] when N < ?LEAST_NODES ->
                    {not_shown, text("~ts These are too few nodes to judge by.", [Said])};
                [] when Runs < 2 ->
                    {not_shown,
                     text("~ts There is one run of some of them, which is too few.", [Said])};
                [] ->
                    case {More(Ml, Sr) andalso More(Gr, Ml),
                          More(Sr, Ml) orelse More(Ml, Gr) orelse More(Sr, Gr)} of
                        {true, _} -> {confirmed, Said};
                        {false, true} when N > ?PUBLISHED_NODES ->
                            {refuted, text("~ts The order is another one.", [Said])};
                        _ ->
                            {not_shown, text("~ts That is not the published order, or not clearly; "
                                             "there the nodes were 145.", [Said])}
                    end
            end
    end.

more(A, B, What) -> apart(A, B, What) =:= more andalso value(A, What) > ?MORE * value(B, What).

%% Where the system does not tell of packets, messages.
what(Groups) ->
    case lists:all(fun(Group) -> is_number(value(Group, [packets])) end, Groups) of
        true -> [packets];
        false -> [messages]
    end.

unit([packets]) ->
    "Packets are TCP segments that the nodes sent, acknowledgements among them, the making of "
    "links and groups included as far as a run does it.";
unit([messages]) ->
    "The system does not tell of packets: these are messages, each a write to a socket.".

%% The points of about 50 nodes, if there are more, and the largest.
told(Most, #{sr := Largest} = By, Points) ->
    Near = [
        {sderl_claim_aco:nodes(Group), C}
     || sderl_claim_aco:nodes(Largest) > ?TOLD_NODES,
        {C, Group} <- sderl_claim_aco:sized(Points, sr), C < Most,
        sderl_claim_aco:nodes(Group) =< ?TOLD_NODES
    ],
    [Of
     || {_, C} <- lists:sublist(lists:reverse(lists:sort(Near)), 1), Of <- [at(C, Points)],
        map_size(Of) =:= length(?VARIANTS)] ++ [By].

at(C, Points) ->
    #{V => Group || V <- ?VARIANTS, {D, Group} <- sderl_claim_aco:sized(Points, V), D =:= C}.

said(#{gr := Gr, ml := Ml, sr := Sr}, What) ->
    [A, B, C] = [value(Group, What) || Group <- [Gr, Ml, Sr]],
    Times =
        fun(X) when is_number(X), is_number(C), C > 0 -> sderl_table:number(X / C); (_) -> "-" end,
    text("With ~w nodes SR sends ~ts, ML ~ts (~ts times as many), GR ~ts (~ts times).",
         [sderl_claim_aco:nodes(Sr), sderl_table:number(C), sderl_table:number(B), Times(B),
          sderl_table:number(A), Times(A)]).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Plot = fun(Title, Y, What) -> sderl_claim_aco:plot(Title, Y, Points, What) end,
    #{
        plots => [
            Plot("Packets sent in a run", axis("packets", "", log), [packets]),
            Plot("Messages between nodes", axis("messages", "", log), [messages]),
            Plot("Bytes between nodes", axis("bytes", "B", log), [bytes]),
            Plot("Links of a node, at most", axis("links", "", log), [links_per_node_max])
        ],
        tables => [
            sderl_claim_aco:table(Points)
        ],
        notes => [
            <<"What is sent is counted on each node, so that the sum over the nodes counts all "
              "between them once; what they receive is the same sum.">>
            | sderl_claim_aco:notes()
        ]
    }.
