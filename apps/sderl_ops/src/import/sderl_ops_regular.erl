%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_regular).
-moduledoc """
A short form of groups for a file: groups whose names differ in one number, and whose members follow
a pattern, become that pattern (`m:sderl_ops_groups`). Others are written out. Pure.

Whether groups follow a pattern is not guessed: its options are derived from the first groups, and
then it has to make exactly these groups.
""".

-export([groups/2]).
-export_type([group/0]).

-doc "`members` are instances of the families, in any order.".
-type group() :: #{
    name := binary(),
    members := [binary(), ...],
    consistency := available | majority
}.
-type counts() :: #{Family :: binary() => pos_integer()}.

%% Fewer groups are written out, which is easier to read.
-define(LEAST, 3).

-doc "Patterns for the file, and the groups that follow none.".
-spec groups([group()], counts()) -> {Patterns :: [sderl_ops_walker:json()], [group()]}.
groups(Groups, Counts) ->
    Families = #{sderl_ops_groups:instance(Family, Index) => Family
                 || Family := Count <- Counts, Index <- lists:seq(1, Count)},
    {Patterns, Taken} = lists:foldl(fun({_, Name, Places}, {Found, Taken}) ->
        Free = [Of || {_, #{name := Of}} <- Places, is_map_key(Of, Taken)] =:= [],
        case Free andalso pattern(Name, Places, Families, Counts) of
            #{} = Pattern ->
                {[json(Pattern) | Found],
                 maps:merge(Taken, #{Of => [] || {_, #{name := Of}} <- Places})};
            _ ->
                {Found, Taken}
        end
    end, {[], #{}}, series(Groups)),
    {lists:reverse(Patterns), [Group || #{name := Name} = Group <- Groups,
                                        not is_map_key(Name, Taken)]}.

%% ---------------------------------------------------------------- names

%% Series of names that differ in one place only, the longest first. A name may be in several.
series(Groups) ->
    Places = [{Name, {Place, Group}} || #{name := Of} = Group <- Groups,
                                        {Name, Place} <- places(Of)],
    Series = maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, Place}) -> Place end,
                                   Places),
    lists:sort([{-length(Of), Name, Of} || Name := Of <- Series, length(Of) >= ?LEAST]).

places(Name) ->
    Parts = sderl_ops_range:parts(Name),
    Numbers = [{with_index(Parts, At), {number, lists:nth(At, Parts)}}
               || At <- lists:seq(2, length(Parts), 2)],
    Hubs = case re:run(Name, "^(.*)hub(?:-([1-9][0-9]*))?(.*)$", [{capture, [1, 2, 3], binary}]) of
        {match, [Before, Index, After]} ->
            [{<<Before/binary, "{{index}}", After/binary>>, {hub, Index}}];
        nomatch -> []
    end,
    [Place || {Template, _} = Place <- Numbers ++ Hubs,
              sderl_ops_template:used(Template) =:= [~"index"]].

with_index(Parts, At) ->
    {Before, [_ | After]} = lists:split(At - 1, Parts),
    iolist_to_binary([Before, "{{index}}", After]).

%% ---------------------------------------------------------------- the pattern

pattern(Template, Places, Families, Counts) ->
    Workers = lists:sort([{binary_to_integer(Number), Number, Group}
                          || {{number, Number}, Group} <- Places]),
    Hubs = lists:sort([{hub_number(Index), Group} || {{hub, Index}, Group} <- Places]),
    Groups = [Group || {_, Group} <- Places],
    Members = lists:usort(lists:append([Of || #{members := Of} <- Groups])),
    Wanted = lists:usort([map_get(Member, Families) || Member <- Members]),
    Whole = lists:sum([map_get(Family, Counts) || Family <- Wanted]) =:= length(Members),
    case {Workers, lists:usort([Of || #{consistency := Of} <- Groups])} of
        {[{First, _, _}, _, _ | _], [Consistency]} when Whole ->
            Head = maps:from_list(
                [{families, Wanted} || length(Wanted) =/= map_size(Counts)]
                ++ [{first, First} || First =/= 1]
                ++ [{digits, Digits} || Digits <- [digits(Workers)], Digits =/= 1]
                ++ [{name, name(Template)}, {consistency, Consistency}]),
            Shapes = shapes([lists:usort(Of) || {_, _, #{members := Of}} <- Workers],
                            [lists:usort(Of) || {_, #{members := Of}} <- Hubs]),
            first_that_makes(Groups, [maps:merge(Head, Shape) || Shape <- Shapes],
                             maps:with(Wanted, Counts));
        _ ->
            none
    end.

hub_number(~"") -> 0;
hub_number(Index) -> binary_to_integer(Index).

digits(Workers) ->
    lists:max([1 | [byte_size(Text) || {_, <<$0, _, _/binary>> = Text, _} <- Workers]]).

name(Template) ->
    case string:split(Template, ~"-{{index}}", trailing) of
        [<<_, _/binary>> = Name, <<>>] -> Name;
        _ -> Template
    end.

first_that_makes(_, [], _) -> none;
first_that_makes(Groups, [Pattern | Others], Counts) ->
    File = #{groups => [Pattern], families => #{Name => #{count => Count}
                                                || Name := Count <- Counts}},
    case sderl_ops_groups:expand(File) of
        {ok, Made} ->
            case members(Made) =:= members(Groups) of
                true -> Pattern;
                false -> first_that_makes(Groups, Others, Counts)
            end;
        {error, _} ->
            first_that_makes(Groups, Others, Counts)
    end.

members(Groups) -> #{Name => lists:usort(Members)
                     || #{name := Name, members := Members} <- Groups}.

%% ---------------------------------------------------------------- options

%% The patterns that the groups may follow; the common members of the first groups are gateways.
shapes([First, Second | Others] = Workers, []) ->
    case common(First, Second) of
        0 ->
            sized(#{pattern => parts}, Workers, [#{}]);
        Gateways ->
            Remainders = [#{}, #{remainder => last}],
            Touched = [Index || {Index, Other} <- lists:enumerate(3, Others),
                                common(First, Other) > 0],
            sized(gateways(#{pattern => chain}, Gateways), Workers, Remainders)
                ++ sized(gateways(#{pattern => ring}, Gateways), Workers, Remainders)
                ++ lists:append([sized(gateways(#{pattern => grid, columns => Index - 1},
                                                Gateways), Workers, Remainders)
                                 || Index <- lists:sublist(Touched, 1)])
                ++ [gateways(#{pattern => tree, levels => 2, branching => 2,
                               leaves => length(Workers)}, Gateways)]
    end;
shapes([First | _] = Workers, [Top | _] = Hubs) ->
    Star = maps:from_list([{pattern, star}]
                          ++ [{hubs, length(Hubs)} || length(Hubs) > 1]
                          ++ [{masters, Masters}
                              || Masters <- [alone(Top, Workers)], Masters > 0]),
    Gateways = lists:sum([common(First, Hub) || Hub <- Hubs]),
    sized(gateways(Star, max(1, Gateways)), Workers, [#{}, #{remainder => last}])
        ++ tree(alone(Top, Workers ++ tl(Hubs)), length(Top), length(Hubs), length(Workers)).

sized(Shape, Workers, Remainders) ->
    Most = lists:max([length(Of) || Of <- Workers]),
    [maps:merge(Shape#{size => Most}, Remainder) || Remainder <- Remainders]
        ++ [Shape#{groups => length(Workers)}].

%% A hub has one node of its own for each gateway, and as many of each hub or group below it.
tree(Gateways, Size, Hubs, Groups) when Gateways > 0, Size rem Gateways =:= 0,
                                        Size div Gateways > 2 ->
    Branching = Size div Gateways - 1,
    case levels(Branching, Hubs, 1, 1, 3) of
        {Levels, Lowest} when Groups rem (Lowest * Branching) =:= 0 ->
            Leaves = Groups div (Lowest * Branching),
            [gateways(maps:from_list([{pattern, tree}, {branching, Branching}, {levels, Levels}]
                                     ++ [{leaves, Leaves} || Leaves =/= Branching]), Gateways)];
        _ ->
            []
    end;
tree(_, _, _, _) ->
    [].

%% Levels of a tree with so many hubs, and the hubs of its lowest level with hubs.
levels(_, Hubs, Hubs, Lowest, Levels) -> {Levels, Lowest};
levels(Branching, Hubs, Count, Lowest, Levels) when Count < Hubs ->
    Next = Lowest * Branching,
    levels(Branching, Hubs, Count + Next, Next, Levels + 1);
levels(_, _, _, _, _) -> none.

gateways(Shape, 1) -> Shape;
gateways(Shape, Gateways) -> Shape#{gateways => Gateways}.

common(A, B) -> length(ordsets:intersection(A, B)).

alone(Members, Groups) -> length(ordsets:subtract(Members, ordsets:union(Groups))).

%% ---------------------------------------------------------------- as the file has it

json(Pattern) ->
    #{atom_to_binary(Key) => value(Value)
      || Key := Value <- Pattern, {Key, Value} =/= {consistency, available}}.

value(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
value(Value) -> Value.
