%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_groups).
-moduledoc """
The groups of a file of operations, with their members written out: `web*`, ranges and families
become instances, and a pattern becomes the groups that `m:sderl_pattern` makes of instances.
""".

-export([expand/1, instance/2]).
-export_type([group/0]).

-doc "`elsewhere`: nodes that were handed back are members, too.".
-type group() :: #{
    name := binary(),
    members := [binary()],
    consistency := available | majority,
    elsewhere => true
}.
-type problem() :: sderl_ops_walker:problem().

%% A larger pattern takes minutes.
-define(MOST_IN_PATTERN, 5000).

-spec expand(#{groups := sderl_ops_file:groups(),
               families := #{sderl_ops_file:id() => #{count := pos_integer(), atom() => term()}},
               atom() => term()}) ->
    {ok, [group()]} | {error, [problem(), ...]}.
expand(#{groups := Groups, families := Families}) when is_list(Groups) ->
    Instances = instances(Families),
    Known = #{Id => [] || Id <- Instances},
    {Expanded, Problems} = lists:unzip([
        expand_entry(Entry, [~"groups", Index], Instances, Known, Families)
     || {Index, Entry} <- lists:enumerate(Groups)
    ]),
    case lists:append([same_names(Expanded) | Problems]) of
        [] -> {ok, lists:append(Expanded)};
        Found -> {error, lists:usort(Found)}
    end;
expand(#{groups := Pattern, families := Families}) ->
    case expand_pattern(Pattern, [~"groups"], Families) of
        {Groups, []} -> {ok, Groups};
        {_, Problems} -> {error, Problems}
    end.

expand_entry(#{pattern := _} = Pattern, Path, _, _, Families) ->
    expand_pattern(Pattern, Path, Families);
expand_entry(Group, Path, Instances, Known, Families) ->
    {Expanded, Problems} = expand_group(Group, Path, Instances, Known, Families),
    {[Expanded], Problems}.

%% The instances of all families, family by family.
instances(Families) ->
    lists:append([instances(Name, Family) || Name := Family <- maps:iterator(Families, ordered)]).

instances(Name, #{count := Count}) -> [instance(Name, Index) || Index <- lists:seq(1, Count)].

-doc "The instance of a family with this number.".
-spec instance(sderl_ops_file:id(), pos_integer()) -> binary().
instance(Family, Index) -> <<Family/binary, (integer_to_binary(Index))/binary>>.

%% ---------------------------------------------------------------- written out

%% Names that two groups have, within an entry of the list or in two.
same_names(Entries) ->
    Named = [{Name, Index} || {Index, Groups} <- lists:enumerate(Entries),
                              #{name := Name} <- Groups],
    Indexes = maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, Index}) -> Index end,
                                    Named),
    [{[~"groups", Index, ~"name"], explained,
      unicode:characters_to_list(["two groups are called ", Name])}
     || Name := [_, _ | _] = Twice <- Indexes, Index <- Twice].

expand_group(#{name := Name, nodes := Nodes, consistency := Consistency}, Path, Instances, Known,
             Families) ->
    {Members, Problems} = lists:unzip([
        expand_node(Node, Path ++ [~"nodes", Index], Instances, Known, Families)
     || {Index, Node} <- lists:enumerate(Nodes)
    ]),
    {#{name => Name, members => lists:uniq(lists:append(Members)), consistency => Consistency},
     lists:append(Problems)}.

expand_node({family, Family}, Path, _, _, Families) ->
    case Families of
        #{Family := Found} ->
            {instances(Family, Found), []};
        _ ->
            {[], [sderl_ops_walker:no_such(Path ++ [~"family"], Family,
                                           "a family of this file", Families)]}
    end;
expand_node(Id, _, _, Known, _) when is_map_key(Id, Known) ->
    {[Id], []};
expand_node(Text, Path, Instances, Known, Families) ->
    case binary:match(Text, [~"*", ~".."]) of
        nomatch ->
            {[], [{Path, Text, instance_expected(Text, Families)}]};
        {_, 2} ->
            expand_range(Text, Path, Known, Families);
        {_, 1} ->
            case [Id || Id <- Instances, matches(Text, Id)] of
                [] -> {[], [{Path, Text, "like any instance of this file; families are " ++
                             names(Families)}]};
                Members -> {Members, []}
            end
    end.

expand_range(Text, Path, Known, Families) ->
    case sderl_ops_range:expand(Text) of
        {ok, Ids} ->
            case [Id || Id <- Ids, not is_map_key(Id, Known)] of
                [] -> {Ids, []};
                [Id | _] -> {[], [{Path, Id, instance_expected(Id, Families)}]}
            end;
        {error, Expected} ->
            {[], [{Path, Text, Expected}]}
    end.

matches(Wildcard, Id) ->
    [First | Parts] = binary:split(Wildcard, ~"*", [global]),
    Size = byte_size(First),
    case Id of
        <<First:Size/binary, Rest/binary>> -> matches_rest(Parts, Rest);
        _ -> false
    end.

matches_rest([Last], Id) ->
    Size = byte_size(Id) - byte_size(Last),
    Size >= 0 andalso binary:part(Id, Size, byte_size(Last)) =:= Last;
matches_rest([<<>> | Parts], Id) ->
    matches_rest(Parts, Id);
matches_rest([Part | Parts], Id) ->
    case binary:split(Id, Part) of
        [_, Rest] -> matches_rest(Parts, Rest);
        [_] -> false
    end.

instance_expected(Text, Families) ->
    Name = string:trim(Text, trailing, "0123456789"),
    case Families of
        #{Name := #{count := Count}} ->
            lists:flatten(io_lib:format("an instance of this file; the family ~ts has ~b, ~ts1 to "
                                        "~ts~b", [Name, Count, Name, Name, Count]));
        _ ->
            "an instance of this file (a family and a number); families are " ++ names(Families)
    end.

names(Families) ->
    case lists:sort(maps:keys(Families)) of
        [] -> "none";
        Names ->
            Some = lists:sublist(Names, 8),
            binary_to_list(iolist_to_binary([lists:join(", ", Some),
                                             [", ..." || length(Names) > 8]]))
    end.

%% ---------------------------------------------------------------- by a pattern

expand_pattern(#{name := Name} = Pattern, Path, Families) ->
    Unknown = [{Path ++ [~"name"], <<"{{", Variable/binary, "}}">>,
                "a variable here; there is {{index}}"}
               || Variable <- sderl_ops_template:used(Name), Variable =/= ~"index"],
    case Unknown ++ unknown_families(Pattern, Path, Families) of
        [] -> made(Pattern, Path, Families);
        Problems -> {[], Problems}
    end.

unknown_families(#{families := Wanted}, Path, Families) ->
    [sderl_ops_walker:no_such(Path ++ [~"families", Index], Name, "a family of this file",
                              Families)
     || {Index, Name} <- lists:enumerate(Wanted), not is_map_key(Name, Families)];
unknown_families(_, _, _) ->
    [].

made(#{pattern := Pattern, consistency := Consistency} = Options, Path, Families) ->
    Wanted = maps:get(families, Options, maps:keys(Families)),
    Instances = instances(maps:with(Wanted, Families)),
    Shape = maps:without([pattern, families, name, first, digits, consistency], Options),
    case shaped(Pattern, Instances, Shape) of
        {ok, Groups} ->
            {[#{name => group_name(Position, Options), members => Members,
                consistency => Consistency} || {Position, Members} <- Groups], []};
        {error, Text} ->
            {[], [{Path, explained, unicode:characters_to_list(Text)}]}
    end.

%% The groups of a pattern: their positions and members.
shaped(_, Instances, _) when length(Instances) > ?MOST_IN_PATTERN ->
    {error, io_lib:format("a pattern is for at most ~b nodes, and there are ~b: write the groups "
                          "out, or name some families", [?MOST_IN_PATTERN, length(Instances)])};
shaped(parts, Instances, Shape) ->
    case maps:keys(maps:without([size, groups], Shape)) of
        [] -> parts(Instances, Shape);
        Others -> {error, misplaced(Others, parts)}
    end;
shaped(Pattern, Instances, Shape) ->
    Stand = #{stand_in(Index) => Id || {Index, Id} <- lists:enumerate(Instances)},
    Nodes = [stand_in(Index) || Index <- lists:seq(1, length(Instances))],
    try sderl_pattern:new(Pattern, Nodes, Shape) of
        {ok, #{groups := Groups}} ->
            {ok, [{Position, [map_get(Node, Stand) || Node <- Members]}
                  || #{name := Position, nodes := Members} <- Groups]};
        {error, Reason} ->
            {error, sderl_plan:format_error(Reason)}
    catch
        error:{badarg, _, _} -> {error, misplaced(foreign(Shape, Pattern), Pattern)}
    end.

%% Neighbours are in one group. If the sizes cannot be equal, the first groups have one member more.
parts(_, #{size := _, groups := _}) ->
    {error, "size and groups say the same: keep one"};
parts(Instances, #{size := Size}) ->
    parts(Instances, #{groups => (length(Instances) + Size - 1) div Size});
parts(Instances, #{groups := Count}) when Count > length(Instances) ->
    {error, io_lib:format("~b nodes are too few for ~b groups", [length(Instances), Count])};
parts(Instances, #{groups := Count}) ->
    {Each, More} = {length(Instances) div Count, length(Instances) rem Count},
    {Parts, []} = lists:mapfoldl(fun(Index, Rest) ->
        Take = case Index =< More of true -> Each + 1; false -> Each end,
        {Members, Left} = lists:split(Take, Rest),
        {{{group, Index}, Members}, Left}
    end, Instances, lists:seq(1, Count)),
    {ok, Parts};
parts(_, _) ->
    {error, "say how large the groups are (size), or how many there are (groups)"}.

%% sderl_pattern wants atoms, which stand in for instances by their positions. They are the same for
%% every file, so their number is bounded.
stand_in(Index) -> list_to_atom("n" ++ integer_to_list(Index)).

group_name(Position, #{name := Name} = Options) ->
    Index = index(Position, maps:get(first, Options, 1), maps:get(digits, Options, 1)),
    case sderl_ops_template:used(Name) of
        [_] -> sderl_ops_template:render(Name, #{~"index" => Index});
        [] -> iolist_to_binary([Name, $-, Index])
    end.

index({group, hub}, _, _) -> "hub";
index({group, hub, Index}, _, _) -> ["hub-", integer_to_list(Index)];
index({group, Index}, First, Digits) ->
    string:pad(integer_to_list(Index - 1 + First), Digits, leading, $0).

%% The values are checked already, so the error is an option of another pattern.
foreign(Shape, Pattern) ->
    Of = #{hubs => star, masters => star, branching => tree, levels => tree, leaves => tree,
           columns => grid},
    [Key || Key := Owner <- maps:with(maps:keys(Shape), Of), Owner =/= Pattern].

misplaced(Keys, Pattern) ->
    [lists:join(", ", lists:sort([atom_to_list(Key) || Key <- Keys])),
     case Keys of [_] -> " does"; _ -> " do" end, " not belong to the pattern ",
     atom_to_list(Pattern)].
