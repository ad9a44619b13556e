%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_draft_tests).
-moduledoc "The file of a cluster that runs, from what its nodes say.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Domains are the regions and racks of the labels, and nothing is repeated.
regions_test() ->
    Node = fun(Name, Labels) -> {Name, fact(Name, Labels)} end,
    File = file([
        Node(~"web1@10.0.0.1", #{~"region" => ~"eu", ~"tier" => ~"a"}),
        Node(~"db1@10.0.0.1", #{~"region" => ~"eu"}),
        Node(~"web2@10.0.0.2", #{~"region" => ~"US East", ~"tier" => ~"a"}),
        Node(~"odd1@10.0.0.3", #{~"region" => ~"eu"}),
        Node(~"odd2@10.0.0.3", #{})
    ]),
    #{~"domains" := Domains, ~"families" := Families} = File,
    ?assertEqual(#{
        ~"eu" => #{~"provider" => ~"machines", ~"region" => ~"eu", ~"hosts" => [~"10.0.0.1"]},
        ~"us-east" => #{~"provider" => ~"machines", ~"region" => ~"US East",
                        ~"hosts" => [~"10.0.0.2"]},
        ~"machines" => #{~"provider" => ~"machines", ~"hosts" => [~"10.0.0.3"]}
    }, Domains),
    Of = fun(Of) ->
        [Found] = [Family || _ := #{~"nodes" := Nodes} = Family <- Families,
                             lists:member(Of, Nodes)],
        {map_get(~"domains", Found), map_get(~"labels", Found)}
    end,
    ?assertEqual({[~"eu"], #{~"tier" => ~"a"}}, Of(~"web1@10.0.0.1")),
    ?assertEqual({[~"us-east"], #{~"tier" => ~"a"}}, Of(~"web2@10.0.0.2")),
    ?assertEqual({[~"eu"], #{}}, Of(~"db1@10.0.0.1")),
    ?assertEqual({[~"machines"], #{~"region" => ~"eu"}}, Of(~"odd1@10.0.0.3")),
    ?assertEqual({[~"machines"], #{}}, Of(~"odd2@10.0.0.3")).

%% With one place, or none, a provider has one domain with all its hosts.
one_place_test() ->
    Place = #{~"region" => ~"eu", ~"rack" => ~"r7"},
    ?assertMatch(#{~"domains" := #{~"machines" := #{~"region" := ~"eu", ~"rack" := ~"r7"} = Domain}}
                     when not is_map_key(~"hosts", Domain),
                 file([{Name, fact(Name, Place)} || Name <- [~"a1@10.0.0.1", ~"a2@10.0.0.2"]])),
    #{~"domains" := Plain} = file([{~"a1@10.0.0.1", fact(~"a1@10.0.0.1", #{})}]),
    ?assertEqual(#{~"machines" => #{~"provider" => ~"machines"}}, Plain).

%% ---------------------------------------------------------------- short files

%% The file of 1,000 nodes in 50 groups, of whatever pattern, is short.
thousand_test_() ->
    {timeout, 120,
     [{Title, fun() ->
          Groups = groups(Pattern, [{~"web", 1000}]),
          {Text, Tree} = written(cluster([{~"web", 1000}], 100, Groups)),
          ?assertMatch(#{~"groups" := [#{~"pattern" := Of}]}
                         when Of =:= map_get(~"pattern", Pattern), Tree),
          Lines = length(binary:split(Text, ~"\n", [global])),
          ?assert(Lines =< 70, Lines)
      end}
      || {Title, Pattern} <- [
             {"parts", #{~"pattern" => ~"parts", ~"size" => 20}},
             {"numbers from 0 of a fixed width",
              #{~"pattern" => ~"parts", ~"groups" => 50, ~"name" => ~"shard{{index}}x",
                ~"first" => 0, ~"digits" => 3}},
             {"ring", #{~"pattern" => ~"ring", ~"groups" => 50, ~"gateways" => 2}},
             {"chain", #{~"pattern" => ~"chain", ~"size" => 21}},
             {"grid", #{~"pattern" => ~"grid", ~"groups" => 50, ~"columns" => 10}},
             {"star", #{~"pattern" => ~"star", ~"groups" => 50, ~"masters" => 1}},
             {"star of two hubs",
              #{~"pattern" => ~"star", ~"groups" => 50, ~"gateways" => 2, ~"hubs" => 2}},
             {"tree", #{~"pattern" => ~"tree", ~"branching" => 5, ~"levels" => 4,
                        ~"leaves" => 2}}]]}.

%% Reading it back plans no change of a group, whatever groups there are.
no_change_test_() ->
    {timeout, 120,
     fun() -> ?assert(proper:quickcheck(no_change(), [{numtests, 150}, {to_file, user}])) end}.

no_change() ->
    ?FORALL({Counts, Hosts, Entries}, {counts(), integer(1, 4), list(entry())},
            begin
                Groups = maps:from_list(lists:append([groups(Entry, Counts)
                                                      || Entry <- Entries])),
                Facts = cluster(Counts, Hosts, maps:to_list(Groups)),
                {_, Tree} = written(Facts),
                [] =:= changes(Tree, Facts)
            end).

counts() ->
    ?LET({Web, Db}, {integer(1, 40), integer(0, 20)},
         [{~"web", Web} | [{~"db", Db} || Db > 0]]).

%% Groups of a pattern, if these nodes allow it, or with random members.
entry() ->
    oneof([?LET({Pattern, By, Number, Name, First},
                {oneof([~"parts", ~"ring", ~"chain", ~"grid", ~"star"]),
                 oneof([~"size", ~"groups"]), integer(1, 8),
                 oneof([~"g", ~"s{{index}}", ~"1-{{index}}-z", ~"hub", ~"hub-1"]), integer(0, 9)},
                #{~"pattern" => Pattern, By => Number, ~"name" => Name, ~"first" => First}),
           {oneof([~"all", ~"g-1", ~"g-2", ~"g-3", ~"g-hub", ~"{{index}}-1", ~"s08", ~"s09"]),
            list(integer(1, 60))}]).

groups(#{} = Pattern, Counts) ->
    Families = #{Name => #{~"release" => ~"r", ~"domains" => [~"d"], ~"count" => Count}
                 || {Name, Count} <- Counts},
    case sderl_ops_file:check(#{
        cluster => ~"c", providers => #{p => #{type => local, hosts => 1}},
        releases => #{r => #{running => ~"it"}}, domains => #{d => #{provider => p}},
        families => Families, groups => [Pattern]
    }, ~"/") of
        {ok, File} ->
            {ok, Groups} = sderl_ops_groups:expand(File),
            [{Name, Members} || #{name := Name, members := Members} <- Groups];
        {error, _} ->
            []
    end;
groups({Name, Numbers}, Counts) ->
    Ids = [sderl_ops_groups:instance(Family, Index) || {Family, Count} <- Counts,
                                                       Index <- lists:seq(1, Count)],
    case lists:usort([lists:nth(Number, Ids) || Number <- Numbers, Number =< length(Ids)]) of
        [] -> [];
        Members -> [{Name, Members}]
    end.

%% Facts of the nodes of a cluster with so many nodes of each family, on so many machines.
cluster(Counts, Hosts, Groups) ->
    Node = #{sderl_ops_groups:instance(Family, Index) =>
                 iolist_to_binary(io_lib:format("~ts~b@10.0.0.~b",
                                                [Family, Index, 1 + Index * Hosts div (Count + 1)]))
             || {Family, Count} <- Counts, Index <- lists:seq(1, Count)},
    Own = maps:groups_from_list(
        fun({Member, _}) -> Member end, fun({_, Group}) -> Group end,
        [{Member, {Name, [map_get(Id, Node) || Id <- Members]}} || {Name, Members} <- Groups,
                                                                  Member <- Members]),
    [{Name, (fact(Name, #{}))#{groups := maps:from_list(maps:get(Id, Own, []))}}
     || Id := Name <- Node].

written(Facts) ->
    Tree = file(Facts),
    Text = iolist_to_binary(sderl_ops_print:text(Tree)),
    ?assertEqual(Tree, json:decode(Text)),
    ?assertEqual([], [Line || Line <- binary:split(Text, ~"\n", [global]), byte_size(Line) > 100]),
    {Text, Tree}.

changes(Tree, Facts) ->
    {ok, #{families := Families} = File} = sderl_ops_file:check(Tree, ~"/"),
    Nodes = #{sderl_ops_groups:instance(Family, Index) => Node
              || Family := #{nodes := Of} <- Families, {Index, Node} <- lists:enumerate(Of)},
    ?assertEqual(lists:sort([Node || {Node, _} <- Facts]), lists:sort(maps:values(Nodes))),
    {ok, Groups} = sderl_ops_groups:expand(File),
    sderl_ops_regroup:changes(
        [Group#{members := [map_get(Id, Nodes) || Id <- Members]}
         || #{members := Members} = Group <- Groups],
        [], maps:values(Nodes), #{Node => Own || {Node, #{groups := Own}} <- Facts}).

file(Nodes) ->
    {Tree, _} = sderl_ops_draft:file(#{
        cluster => ~"shop", names => long, cookie_file => ~"/c", here => ~"here/1",
        found => #{nodes => maps:from_list(Nodes), lost => #{}}
    }),
    ?assertMatch({ok, _}, sderl_ops_file:check(Tree, ~"/")),
    Tree.

fact(Node, Labels) ->
    #{node => Node, otp => ~"29", release => {~"shop", ~"1"}, root => ~"/srv/shop", scripts => [],
      outside => [], applications => [], labels => Labels, config => false, heart => false,
      machine => <<"far/", Node/binary>>, groups => #{}, consistency => #{}, unnamed => [],
      library => true}.
