%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_plan).
-moduledoc false.

%% From a plan (data written by a person) to one specification per node. Pure: the
%% random tag and the default code path come from the caller, so that the same
%% arguments give the same nodes.
%%
%% An error of a plan is thrown as {bad_plan, Path, Term, Expected} by the function that meets it
%% and caught once, in parse/3 and add/3.

-export([parse/3, add/3]).

-export_type([plan/0, family/0, node_ref/0, added/0, node_spec/0, parsed/0, bad_plan/0]).

-type plan() :: #{
    families := [family()],
    s_groups => [{Group :: term(), normal | hidden, [node_ref()]}],
    s_groups_known => own | all,
    tag => string(),
    host => string(),
    parallel => pos_integer(),
    timeout => pos_integer(),
    driver => {module(), map()},
    progress => fun((Done :: non_neg_integer(), Total :: pos_integer()) -> term()),
    owner => pid()
}.

-type family() :: #{
    name := atom() | string() | binary(),
    count := pos_integer(),
    host => string(),
    hidden => boolean(),
    connect_all => boolean(),
    args => [string()],
    env => [{App :: atom(), Key :: atom(), Value :: term()}],
    apps => [atom()],
    paths => [file:filename()],
    wrap => [string()]
}.

-type node_ref() ::
    {Family :: atom() | string() | binary(), Index :: pos_integer() | [pos_integer()] | all}
    | node().

%% The elements that start_nodes/2 takes: a node that is down, or a family's map in which `count`
%% may be left out (1) and `index` may name one node. What it lacks is taken from the family of that
%% name in the plan.
-type added() :: node() | #{name := atom() | string() | binary(), atom() => term()}.

-type node_spec() :: #{
    node := node(),
    family := atom() | string() | binary(),
    prefix := string(),
    index := pos_integer(),
    host := string(),
    hidden := boolean(),
    connect_all := boolean(),
    args := [string()],
    env := [{atom(), atom(), term()}],
    apps := [atom()],
    paths := [file:filename()],
    wrap := [string()],
    timeout := pos_integer()
}.

-type parsed() :: #{
    tag := string(),
    host := string(),
    paths := [file:filename()],
    families := #{Prefix :: string() => map()},
    nodes := [node_spec()],
    parallel := pos_integer(),
    timeout := pos_integer(),
    driver := {module(), map()},
    progress := fun((non_neg_integer(), pos_integer()) -> term()),
    owner := pid() | undefined
}.

-type bad_plan() :: {bad_plan, Path :: [atom() | pos_integer()], term(), Expected :: string()}.

-define(PLAN_KEYS, [
    families, s_groups, s_groups_known, tag, host, parallel, timeout, driver, progress, owner
]).
-define(FAMILY_KEYS, [
    name, count, host, hidden, connect_all, args, env, apps, paths, wrap
]).
%% Flags that would break what the fleet promises (names, cookie, control channel).
-define(RESERVED, ["-name", "-sname", "-setcookie", "-user", "-detached", "-remsh"]).

-spec parse(Plan :: term(), RandomTag :: string(), Paths :: [file:filename()]) ->
    {ok, parsed()} | {error, bad_plan()}.
parse(Plan, RandomTag, Paths) ->
    try
        {ok, plan(Plan, RandomTag, Paths)}
    catch
        throw:{bad_plan, _, _, _} = Bad -> {error, Bad}
    end.

-doc "The nodes to start for the elements of `start_nodes/2`; `Known` are all nodes so far.".
-spec add(Added :: term(), parsed(), Known :: #{node() => node_spec()}) ->
    {ok, [node_spec()], parsed()} | {error, bad_plan()}.
add(Added, Parsed, Known) ->
    try
        is_list(Added) orelse bad([nodes], Added, "a list of node names or family maps"),
        {Specs, Parsed1, _} =
            lists:foldl(fun add_one/2, {[], Parsed, Known}, lists:enumerate(Added)),
        {ok, lists:append(lists:reverse(Specs)), Parsed1}
    catch
        throw:{bad_plan, _, _, _} = Bad -> {error, Bad}
    end.

%% The plan

plan(Plan, RandomTag, Paths) ->
    is_map(Plan) orelse bad([], Plan, "a map with the key families"),
    known_keys([], Plan, ?PLAN_KEYS),
    Tag = get(tag, Plan, [], RandomTag, fun is_tag/1, "a string of at most 20 of a-z, 0-9, _"),
    Host = host([host], maps:get(host, Plan, "127.0.0.1")),
    Timeout = get(timeout, Plan, [], 60_000, fun is_positive/1, "milliseconds, above 0"),
    Families = get(families, Plan, [], [], fun is_full_list/1, "a non-empty list of family maps"),
    Base = #{
        tag => Tag,
        host => Host,
        paths => Paths,
        families => #{},
        nodes => [],
        timeout => Timeout,
        parallel => get(parallel, Plan, [], 8, fun is_positive/1, "an integer above 0"),
        driver => get(
            driver, Plan, [], {sderl_fleet_local, #{}}, fun is_driver/1, "{Module, OptionsMap}"
        ),
        progress => get(
            progress, Plan, [], fun(_, _) -> ok end, fun is_progress/1, "a fun of two arguments"
        ),
        owner => get(owner, Plan, [], undefined, fun is_pid/1, "a pid")
    },
    Parsed = lists:foldl(fun family/2, Base, lists:enumerate(Families)),
    Specs = lists:append(lists:reverse(maps:get(nodes, Parsed))),
    unique_names(Specs),
    Parsed#{nodes := s_groups(Plan, Parsed, Specs)}.

family({I, Map}, #{families := Seen, nodes := Nodes} = Parsed) ->
    Path = [families, I],
    is_map(Map) orelse bad(Path, Map, "a map with the keys name and count"),
    known_keys(Path, Map, ?FAMILY_KEYS),
    Prefix = prefix(Path, Map),
    is_map_key(Prefix, Seen) andalso
        bad(Path ++ [name], maps:get(name, Map), "a name no other family has"),
    Count = count(Path, Map, none),
    Specs = [spec(Path, Map, Prefix, Index, Parsed) || Index <- lists:seq(1, Count)],
    Parsed#{families := Seen#{Prefix => maps:remove(count, Map)}, nodes := [Specs | Nodes]}.

%% Node 11 of family "w" and node 1 of family "w1" would both be called w11.
unique_names(Specs) ->
    _ = lists:foldl(
        fun(#{node := Node, family := Family}, Seen) ->
            is_map_key(Node, Seen) andalso
                bad([families], Family, name_clash(Node)),
            Seen#{Node => true}
        end,
        #{},
        Specs
    ),
    ok.

name_clash(Node) ->
    "names whose nodes differ from those of the other families (" ++ atom_to_list(Node) ++ ")".

spec(Path, Map, Prefix, Index, #{tag := Tag, host := PlanHost} = Parsed) ->
    Host =
        case Map of
            #{host := H} -> host(Path ++ [host], H);
            #{} -> PlanHost
        end,
    Dash =
        case Tag of
            "" -> "";
            _ -> "-"
        end,
    Name = lists:concat([Prefix, Index, Dash, Tag, "@", Host]),
    Paths = maps:get(paths, Map, maps:get(paths, Parsed)),
    Get = fun(Key, Default, Is, Expected) -> get(Key, Map, Path, Default, Is, Expected) end,
    #{
        node => list_to_atom(Name),
        family => maps:get(name, Map),
        prefix => Prefix,
        index => Index,
        host => Host,
        hidden => Get(hidden, false, fun is_boolean/1, "a boolean"),
        connect_all => Get(connect_all, false, fun is_boolean/1, "a boolean"),
        args => args(Path ++ [args], maps:get(args, Map, [])),
        env => env(Path ++ [env], maps:get(env, Map, [])),
        apps => each(Path ++ [apps], maps:get(apps, Map, []), fun is_atom/1, "an atom"),
        paths => each(Path ++ [paths], Paths, fun is_string/1, "a string"),
        wrap => each(Path ++ [wrap], maps:get(wrap, Map, []), fun is_string/1, "a string"),
        timeout => maps:get(timeout, Parsed)
    }.

prefix(Path, Map) ->
    Expected = "an atom, string or binary of letters, digits, _ and -, that begins with a letter",
    Given = get(name, Map, Path, undefined, fun(_) -> true end, Expected),
    Prefix = to_prefix(Given),
    case Prefix of
        [C | Rest] when C >= $a, C =< $z; C >= $A, C =< $Z ->
            lists:all(fun is_name_char/1, Rest) orelse bad(Path ++ [name], Given, Expected),
            Prefix;
        _ ->
            bad(Path ++ [name], Given, Expected)
    end.

to_prefix(Name) when is_atom(Name) -> atom_to_list(Name);
to_prefix(Name) when is_binary(Name) -> binary_to_list(Name);
to_prefix(Name) ->
    case is_string(Name) of
        true -> Name;
        false -> undefined
    end.

count(Path, Map, Default) ->
    Expected = "an integer above 0",
    case Map of
        #{count := Count} when is_integer(Count), Count > 0 -> Count;
        #{count := Count} -> bad(Path ++ [count], Count, Expected);
        #{} when Default =/= none -> Default;
        #{} -> bad(Path ++ [count], undefined, Expected)
    end.

%% Nodes named after a bind address: every node and its epmd listen there and nowhere else.
host(Path, Host) ->
    case is_string(Host) andalso inet:parse_ipv4strict_address(Host) of
        {ok, {0, 0, 0, 0}} -> bad(Path, Host, "an address other than 0.0.0.0");
        {ok, _} -> Host;
        _ -> bad(Path, Host, "an IPv4 address such as \"127.0.0.1\"")
    end.

args(Path, Args) ->
    each(
        Path,
        Args,
        fun(Arg) -> is_string(Arg) andalso not lists:member(Arg, ?RESERVED) end,
        "a string other than " ++ lists:flatten(lists:join(", ", ?RESERVED))
    ).

env(Path, Env) ->
    each(
        Path,
        Env,
        fun
            ({App, Key, _}) when is_atom(App), is_atom(Key) -> true;
            (_) -> false
        end,
        "{App, Key, Value} with atoms for App and Key"
    ).

%% Groups

s_groups(Plan, Parsed, Specs) ->
    Known = get(s_groups_known, Plan, [], own, fun is_known/1, "own or all"),
    Groups = get(
        s_groups, Plan, [], [], fun is_proper/1, "a list of {Group, normal | hidden, Nodes}"
    ),
    Resolver = resolver(Parsed, Specs),
    Full = [group(I, Group, Resolver) || {I, Group} <- lists:enumerate(Groups)],
    unique_groups(Full),
    [with_groups(Spec, Full, Known) || Spec <- Specs].

group(I, {Name, Type, Refs}, Resolver) when Name =/= undefined ->
    Path = [s_groups, I],
    lists:member(Type, [normal, hidden]) orelse bad(Path ++ [2], Type, "normal or hidden"),
    is_full_list(Refs) orelse bad(Path ++ [3], Refs, "a non-empty list of nodes"),
    Nodes = lists:append([Resolver(Path ++ [3, J], Ref) || {J, Ref} <- lists:enumerate(Refs)]),
    length(Nodes) =:= length(lists:usort(Nodes)) orelse
        bad(Path ++ [3], Refs, "every node once"),
    {Name, Type, Nodes};
group(I, Term, _) ->
    bad([s_groups, I], Term, "{Group, normal | hidden, Nodes}, Group not undefined").

unique_groups(Groups) ->
    Names = [Name || {Name, _, _} <- Groups],
    case Names -- lists:usort(Names) of
        [] -> ok;
        [Twice | _] -> bad([s_groups], Twice, "group names that differ")
    end.

resolver(#{families := Families}, Specs) ->
    ByRef = #{{P, I} => Node || #{prefix := P, index := I, node := Node} <- Specs},
    fun(Path, Ref) -> resolve(Path, Ref, Families, ByRef) end.

resolve(Path, {Family, Index}, Families, ByRef) ->
    Prefix = to_prefix(Family),
    is_map_key(Prefix, Families) orelse bad(Path, Family, "a family of this plan"),
    Indexes =
        case Index of
            all -> lists:sort([I || {P, I} <- maps:keys(ByRef), P =:= Prefix]);
            _ when is_list(Index) -> Index;
            _ -> [Index]
        end,
    is_proper(Indexes) orelse bad(Path, Index, "an index, a list of them, or all"),
    [index(Path, {Prefix, I}, ByRef) || I <- Indexes];
resolve(Path, Node, _, _) when is_atom(Node) ->
    case string:split(atom_to_list(Node), "@") of
        [[_ | _], [_ | _]] -> [Node];
        _ -> bad(Path, Node, "{Family, Index} or a whole node name")
    end;
resolve(Path, Ref, _, _) ->
    bad(Path, Ref, "{Family, Index}, {Family, [Index]}, {Family, all} or a whole node name").

index(Path, {_, I} = Ref, ByRef) ->
    case ByRef of
        #{Ref := Node} -> Node;
        #{} -> bad(Path, I, "an index from 1 to the family's count")
    end.

with_groups(#{node := Node, env := Env, family := Family} = Spec, Groups, Known) ->
    Own = [Group || {_, _, Nodes} = Group <- Groups, lists:member(Node, Nodes)],
    Explicit = [true || {sderl, s_groups, _} <- Env],
    case {Own, Explicit} of
        {[], _} -> Spec;
        {_, [_ | _]} -> bad([s_groups], Family, "a family without {sderl, s_groups, _} in env");
        _ when Known =:= all -> Spec#{env := Env ++ [{sderl, s_groups, Groups}]};
        _ -> Spec#{env := Env ++ [{sderl, s_groups, Own}]}
    end.

%% Nodes that come later

add_one({I, Node}, {Specs, Parsed, Known}) when is_atom(Node) ->
    case Known of
        #{Node := Spec} -> {[[Spec] | Specs], Parsed, Known};
        #{} -> bad([nodes, I], Node, "a node that was in this fleet")
    end;
add_one({I, Map}, {Specs, #{families := Families} = Parsed, Known}) when is_map(Map) ->
    Path = [nodes, I],
    known_keys(Path, Map, [index | ?FAMILY_KEYS]),
    Prefix = prefix(Path, Map),
    Full = maps:merge(maps:get(Prefix, Families, #{}), maps:without([index, count], Map)),
    New = [spec(Path, Full, Prefix, Index, Parsed) || Index <- indexes(Path, Map, Prefix, Known)],
    Known1 = lists:foldl(
        fun(#{node := Node} = Spec, Acc) -> add_known(Path, Node, Spec, Acc) end, Known, New
    ),
    Families1 = maps:merge(#{Prefix => Full}, Families),
    {[New | Specs], Parsed#{families := Families1}, Known1};
add_one({I, Term}, _) ->
    bad([nodes, I], Term, "a node name or a family map").

%% The same name may come back, but only for the same place in the same family.
add_known(Path, Node, #{prefix := P, index := I} = Spec, Known) ->
    case Known of
        #{Node := #{prefix := P, index := I}} -> Known#{Node := Spec};
        #{Node := _} -> bad(Path ++ [name], P, name_clash(Node));
        #{} -> Known#{Node => Spec}
    end.

indexes(Path, #{index := Index} = Map, _, _) ->
    is_map_key(count, Map) andalso bad(Path, Map, "index or count, not both"),
    is_positive(Index) orelse bad(Path ++ [index], Index, "an integer above 0"),
    [Index];
indexes(Path, Map, Prefix, Known) ->
    Count = count(Path, Map, 1),
    Last = lists:max([0 | [I || _ := #{prefix := P, index := I} <- Known, P =:= Prefix]]),
    lists:seq(Last + 1, Last + Count).

%% Shapes

get(Key, Map, Path, Default, Is, Expected) ->
    case Map of
        #{Key := Value} ->
            case Is(Value) of
                true -> Value;
                false -> bad(Path ++ [Key], Value, Expected)
            end;
        #{} when Key =:= families; Key =:= name ->
            bad(Path ++ [Key], undefined, Expected);
        #{} ->
            Default
    end.

each(Path, List, Is, Expected) ->
    is_proper(List) orelse bad(Path, List, "a list"),
    _ = [Is(Term) orelse bad(Path ++ [I], Term, Expected) || {I, Term} <- lists:enumerate(List)],
    List.

known_keys(Path, Map, Known) ->
    case maps:keys(Map) -- Known of
        [] -> ok;
        [Key | _] -> bad(Path, Key, "one of the keys " ++ text(Known))
    end.

text(Keys) ->
    lists:flatten(lists:join(", ", [atom_to_list(Key) || Key <- Keys])).

is_positive(N) -> is_integer(N) andalso N > 0.
is_proper([_ | Tail]) -> is_proper(Tail);
is_proper(Tail) -> Tail =:= [].
is_full_list(List) -> is_proper(List) andalso List =/= [].
is_driver({Module, Opts}) -> is_atom(Module) andalso is_map(Opts);
is_driver(_) -> false.
is_progress(Fun) -> is_function(Fun, 2).
is_known(Term) -> Term =:= own orelse Term =:= all.

is_string(Term) ->
    is_proper(Term) andalso io_lib:char_list(Term) andalso not lists:member(0, Term).

is_tag(Tag) ->
    is_string(Tag) andalso length(Tag) =< 20 andalso lists:all(fun is_tag_char/1, Tag).

is_tag_char(C) -> C >= $a andalso C =< $z orelse C >= $0 andalso C =< $9 orelse C =:= $_.
is_name_char(C) -> is_tag_char(C) orelse C >= $A andalso C =< $Z orelse C =:= $-.

-spec bad([atom() | pos_integer()], term(), string()) -> no_return().
bad(Path, Term, Expected) ->
    throw({bad_plan, Path, Term, Expected}).
