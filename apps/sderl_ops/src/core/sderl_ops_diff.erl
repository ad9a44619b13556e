%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_diff).
-moduledoc "What changes from one desired state to another, for a person.".

-export([changes/2, lines/2, ranges/1]).
-export_type([change/0]).

-doc "`names` are those that are changed in the same way (`how`), sorted.".
-type change() :: #{
    change := add | change | remove,
    what := instance | group | upgrade,
    names := [binary(), ...],
    how := unicode:chardata()
}.

-type desired() :: sderl_ops_desired:desired().

-doc "Additions, changes, removals, in this order; `[]` where nothing changes.".
-spec changes(Old :: desired() | none, New :: desired()) -> [change()].
changes(none, New) ->
    changes(New#{instances := #{}, groups := []}, New);
changes(Old, New) ->
    instances(Old, New) ++ groups(Old, New) ++ upgrade(Old, New).

-doc """
The same as lines: `+ web1..web3: release shop-1`, `~ web1, web2: release shop-1 -> shop-2`,
`- db3`.
""".
-spec lines(Old :: desired() | none, New :: desired()) -> [unicode:chardata()].
lines(Old, New) -> [line(Change) || Change <- changes(Old, New)].

line(#{change := Change, what := What, names := Names, how := How}) ->
    [sign(Change), kind(What), lists:join(", ", named(What, Names)), [[": ", How] || How =/= ""]].

sign(add) -> "+ ";
sign(change) -> "~ ";
sign(remove) -> "- ".

kind(instance) -> "";
kind(group) -> "group ";
kind(upgrade) -> "".

named(instance, Names) -> ranges(Names);
named(_, Names) -> Names.

%% ---------------------------------------------------------------- instances

instances(#{instances := Before} = Old, #{instances := After} = New) ->
    Added = maps:without(maps:keys(Before), After),
    Removed = maps:without(maps:keys(After), Before),
    Changed = [{How, Id} || Id := Instance <- maps:with(maps:keys(Before), After),
                            How <- [how(map_get(Id, Before), Instance, Old, New)], How =/= []],
    together(add, [{added(Instance, New), Id} || Id := Instance <- Added]) ++
        together(change, [{lists:join("; ", How), Id} || {How, Id} <- Changed]) ++
        together(remove, [{"", Id} || Id := _ <- Removed]).

added(#{adopt := _} = Instance, New) ->
    ["taken over where it runs already; release ", release_name(Instance, New)];
added(Instance, New) ->
    ["release ", release_name(Instance, New)].

how(Was, Is, Old, New) ->
    release_change(Was, Is, Old, New) ++
        settings_change(Was, Is, Old, New) ++
        [["labels ", labels(Before), " -> ", labels(After)]
         || {Before, After} <- differing(labels, Was, Is)] ++
        ["restart policy" || _ <- differing(restart, Was, Is)] ++
        ["limits" || _ <- differing(limits, Was, Is)] ++
        ["hosts" || {Before, After} <- differing(candidates, Was, Is),
                    lists:sort(Before) =/= lists:sort(After)].

release_change(#{release := Same}, #{release := Same}, _, _) -> [];
release_change(Was, Is, Old, New) ->
    case {release_name(Was, Old), release_name(Is, New)} of
        {Same, Same} -> [["release ", Same, " (its content)"]];
        {Before, After} -> [["release ", Before, " -> ", After]]
    end.

release_name(#{release := Sum}, #{releases := Releases}) ->
    #{Sum := #{name := Name}} = Releases,
    Name.

settings_change(#{settings := Same}, #{settings := Same}, _, _) -> [];
settings_change(Was, Is, Old, New) ->
    Before = sderl_ops_desired:settings(Was, Old),
    After = sderl_ops_desired:settings(Is, New),
    Keys = [Key || Key <- lists:usort(maps:keys(Before) ++ maps:keys(After)),
                   maps:find(Key, Before) =/= maps:find(Key, After)],
    [["settings (", lists:join(", ", [setting(Key, Before, After) || Key <- Keys]), ")"]].

%% The names of the keys that differ, in maps with keys of the user's choice.
setting(Key, Before, After) when Key =:= env; Key =:= files; Key =:= config ->
    Was = maps:get(Key, Before, #{}),
    Is = maps:get(Key, After, #{}),
    Names = [Name || Name <- lists:usort(maps:keys(Was) ++ maps:keys(Is)),
                     maps:find(Name, Was) =/= maps:find(Name, Is)],
    [atom_to_list(Key), " ", lists:join(" ", Names)];
setting(Key, _, _) -> atom_to_list(Key).

differing(Key, Was, Is) ->
    [{Before, After} || {#{Key := Before}, #{Key := After}} <- [{Was, Is}], Before =/= After].

labels(Labels) ->
    ["{", lists:join(", ", [[Key, "=", Value] || Key := Value <- maps:iterator(Labels, ordered)]),
     "}"].

together(Change, Pairs0) ->
    Pairs = [{unicode:characters_to_binary(How), Id} || {How, Id} <- Pairs0],
    Grouped = maps:groups_from_list(fun({How, _}) -> How end, fun({_, Id}) -> Id end, Pairs),
    lists:sort(fun first_name/2,
               [#{change => Change, what => instance, names => sort_ids(Ids),
                  how => case How of <<>> -> ""; _ -> How end}
                || How := Ids <- Grouped]).

first_name(#{names := [A | _]}, #{names := [B | _]}) -> split_id(A) =< split_id(B).

%% ---------------------------------------------------------------- groups and upgrades

groups(#{groups := Old}, #{groups := New}) ->
    Before = by_name(Old),
    After = by_name(New),
    [#{change => add, what => group, names => [Name],
       how => [counted(Members), consistency(Group)]}
     || #{name := Name, members := Members} = Group <- New, not is_map_key(Name, Before)] ++
        [#{change => change, what => group, names => [Name], how => lists:join("; ", How)}
         || #{name := Name} = Group <- New, is_map_key(Name, Before),
            How <- [group_change(map_get(Name, Before), Group)], How =/= []] ++
        [#{change => remove, what => group, names => [Name], how => ""}
         || #{name := Name} <- Old, not is_map_key(Name, After)].

by_name(Groups) -> #{Name => Group || #{name := Name} = Group <- Groups}.

group_change(#{members := Was, consistency := Old}, #{members := Is, consistency := New}) ->
    [["joined by ", lists:join(", ", ranges(Ids))] || [_ | _] = Ids <- [Is -- Was]] ++
        [["left by ", lists:join(", ", ranges(Ids))] || [_ | _] = Ids <- [Was -- Is]] ++
        [["consistency ", atom_to_list(Old), " -> ", atom_to_list(New)] || Old =/= New].

counted([Only]) -> ["1 member, ", Only];
counted(Members) ->
    [integer_to_list(length(Members)), " members, ", lists:join(", ", ranges(Members))].

consistency(#{consistency := available}) -> "";
consistency(#{consistency := majority}) -> "; consistency majority".

upgrade(#{upgrade := Same}, #{upgrade := Same}) -> [];
upgrade(#{upgrade := _}, #{upgrade := New}) ->
    How = lists:join(", ", [[atom_to_list(Key), " ", setting(Value)]
                            || Key := Value <- maps:iterator(New, ordered)]),
    [#{change => change, what => upgrade, names => [~"upgrade settings"], how => How}].

%% Shows where the token is read, not the token.
setting(#{url := Url, token := Token} = Alarms) ->
    ["of ", Url, " (token of ", sderl_ops_secret:describe(Token),
     [[", tls_ca ", File] || #{tls_ca := File} <- [Alarms]], ")"];
setting(Value) -> io_lib:format("~0tp", [Value]).

%% ---------------------------------------------------------------- ids

-doc "Ids of instances, with those that follow each other put together: `web1..web3`, `web5`.".
-spec ranges([binary()]) -> [unicode:chardata()].
ranges(Ids) -> ranges(lists:usort([split_id(Id) || Id <- Ids]), []).

ranges([{Family, Index} | Ids], [{Family, First, Last} | Done]) when Index =:= Last + 1 ->
    ranges(Ids, [{Family, First, Index} | Done]);
ranges([{Family, Index} | Ids], Done) ->
    ranges(Ids, [{Family, Index, Index} | Done]);
ranges([], Done) ->
    lists:reverse([range(Range) || Range <- Done]).

range({Family, none, none}) -> Family;
range({Family, Same, Same}) -> [Family, integer_to_list(Same)];
range({Family, First, Last}) ->
    [Family, integer_to_list(First), "..", Family, integer_to_list(Last)].

sort_ids(Ids) -> lists:sort(fun(A, B) -> split_id(A) =< split_id(B) end, Ids).

split_id(Id) ->
    Family = string:trim(Id, trailing, "0123456789"),
    case string:prefix(Id, Family) of
        <<>> -> {Family, none};
        Digits -> {Family, binary_to_integer(Digits)}
    end.
