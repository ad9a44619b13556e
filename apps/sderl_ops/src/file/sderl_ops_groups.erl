%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_groups).
-moduledoc """
The groups of a file of operations, with their members written out: `web*` and families become
instances, and a pattern becomes the groups that `m:sderl_pattern` makes of all instances.
""".

-export([expand/1, instances/1]).
-export_type([group/0]).

-type group() :: #{
    name := binary(),
    members := [binary(), ...],
    consistency := available | majority
}.
-type problem() :: sderl_ops_walker:problem().

%% More take minutes.
-define(MOST_IN_PATTERN, 5000).

-spec expand(sderl_ops_file:file()) -> {ok, [group()]} | {error, [problem(), ...]}.
expand(#{groups := Groups, families := Families}) when is_list(Groups) ->
    Instances = instances(Families),
    Known = #{Id => [] || Id <- Instances},
    {Expanded, Problems} = lists:unzip([
        expand_group(Group, [~"groups", Index], Instances, Known, Families)
     || {Index, Group} <- lists:enumerate(Groups)
    ]),
    case lists:append([same_names(Groups) | Problems]) of
        [] -> {ok, Expanded};
        Found -> {error, lists:usort(Found)}
    end;
expand(#{groups := Pattern, families := Families}) ->
    case unknown_families(Pattern, Families) of
        [] -> expand_pattern(Pattern, Families);
        Problems -> {error, Problems}
    end.

-doc "The instances of all families, family by family.".
-spec instances(#{sderl_ops_file:id() => sderl_ops_file:family()}) -> [binary()].
instances(Families) ->
    lists:append([instances(Name, Family) || Name := Family <- maps:iterator(Families, ordered)]).

instances(Name, #{count := Count}) ->
    [<<Name/binary, (integer_to_binary(Index))/binary>> || Index <- lists:seq(1, Count)].

%% ---------------------------------------------------------------- written out

same_names(Groups) ->
    Names = [Name || #{name := Name} <- Groups],
    Twice = Names -- lists:usort(Names),
    [{[~"groups", Index, ~"name"], explained,
      unicode:characters_to_list(["two groups are called ", Name])}
     || {Index, Name} <- lists:enumerate(Names), lists:member(Name, Twice)].

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
            {[], [sderl_ops_references:unknown(Path ++ [~"family"], Family,
                                               "a family of this file", Families)]}
    end;
expand_node(Id, _, _, Known, _) when is_map_key(Id, Known) ->
    {[Id], []};
expand_node(Text, Path, Instances, _, Families) ->
    case binary:match(Text, ~"*") of
        nomatch ->
            {[], [{Path, Text, instance_expected(Text, Families)}]};
        _ ->
            case [Id || Id <- Instances, matches(Text, Id)] of
                [] -> {[], [{Path, Text, "like any instance of this file; families are " ++
                             names(Families)}]};
                Members -> {Members, []}
            end
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

unknown_families(#{families := Wanted}, Families) ->
    [sderl_ops_references:unknown([~"groups", ~"families", Index], Name, "a family of this file",
                                  Families)
     || {Index, Name} <- lists:enumerate(Wanted), not is_map_key(Name, Families)];
unknown_families(_, _) ->
    [].

expand_pattern(#{pattern := Pattern, name := Name, consistency := Consistency} = Options,
               Families) ->
    Wanted = maps:get(families, Options, maps:keys(Families)),
    Instances = instances(maps:with(Wanted, Families)),
    case length(Instances) of
        Many when Many > ?MOST_IN_PATTERN ->
            broken(io_lib:format("a pattern is for at most ~b nodes, and there are ~b: write the "
                                 "groups out, or name some families", [?MOST_IN_PATTERN, Many]));
        _ ->
            Shape = maps:without([pattern, families, name, consistency], Options),
            Stand = #{stand_in(Index) => Id || {Index, Id} <- lists:enumerate(Instances)},
            Nodes = [stand_in(Index) || Index <- lists:seq(1, length(Instances))],
            try sderl_pattern:new(Pattern, Nodes, Shape) of
                {ok, #{groups := Groups}} ->
                    {ok, [#{name => group_name(Group, Name),
                            members => [map_get(Node, Stand) || Node <- Members],
                            consistency => Consistency}
                          || #{name := Group, nodes := Members} <- Groups]};
                {error, Reason} ->
                    broken(sderl_plan:format_error(Reason))
            catch
                error:{badarg, _, _} -> broken(misplaced(Shape, Pattern))
            end
    end.

%% A pattern is about positions. These atoms are the same for every file, so that there are never
%% more of them.
stand_in(Index) -> list_to_atom("n" ++ integer_to_list(Index)).

group_name({group, hub}, Name) -> <<Name/binary, "-hub">>;
group_name({group, hub, Index}, Name) -> <<Name/binary, "-hub-", (decimal(Index))/binary>>;
group_name({group, Index}, Name) -> <<Name/binary, "-", (decimal(Index))/binary>>.

decimal(Index) -> integer_to_binary(Index).

%% The values are checked already: what is left is an option of another pattern.
misplaced(Shape, Pattern) ->
    Of = #{hubs => star, masters => star, branching => tree, levels => tree, leaves => tree,
           columns => grid},
    Wrong = [atom_to_list(Key) || Key := Owner <- maps:with(maps:keys(Shape), Of),
                                  Owner =/= Pattern],
    [lists:join(", ", lists:sort(Wrong)), " does not belong to the pattern ",
     atom_to_list(Pattern)].

broken(Text) ->
    {error, [{[~"groups"], explained, unicode:characters_to_list(Text)}]}.
