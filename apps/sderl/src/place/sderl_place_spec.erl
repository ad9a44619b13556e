%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_spec).
-moduledoc false.
%% Reads the specs of `sderl_place`: checks them term by term and puts them into the form that the
%% other modules work with. Pure. The documentation of `sderl_place` says what a spec may have.

-export([parse/2, add/3, having/2, sentence/1]).
-export_type([t/0, condition/0, source/0, test/0, ref/0, chooser/0, error/0, path/0]).

-doc """
The point from which a distance is measured: the spec's `from`, another node, or the nearest member
of a group.
""".
-type ref() :: from | {node, node()} | {group, term()}.
-doc "What a condition looks at. A label is an attribute of the name `{label, Key}`.".
-type source() :: {attr, Name :: term()} | {label, Name :: term()} | {dist, ref()}.
-type test() ::
    {op, sderl_compare:operator(), term()} | {is, term()} | {in, [term()]} | {not_in, [term()]}
        | exists | not_exists.
-doc "With the term of the caller, for explanations.".
-type condition() :: {source(), test(), Said :: term()}.
-type chooser() ::
    random | in_order | {least | most, Name :: term()} | {two, least | most, Name :: term()}
    | {nearest, ref()} | {spread, host | group | {attr, Name :: term()}} | {hash, Key :: term()}.
-type t() :: #{
    candidates := [{nodes, [node()]} | {group, term()} | known | own],
    member_of := [term()],
    where := [condition()],
    prefer := [{pos_integer(), condition()}],
    choose := chooser(),
    count := pos_integer() | all,
    from := node(),
    exclude := [node()],
    adds := auto | number(),
    pending := boolean(),
    max_age_ms := timeout(),
    timeout_ms := non_neg_integer(),
    %% The attributes that the conditions and the chooser read.
    names := [term()]
}.
-doc "Where the bad term stands: `[where, 2]` is the second condition under `where`.".
-type path() :: [atom() | pos_integer()].
-type error() :: {bad_spec, path(), Found :: term(), Expected :: atom()}.

-define(FLAGS, [true, false, yes, no]).
-define(MAX_AGE, 10_000).
-define(TIMEOUT, 5_000).
-define(KEYS, [nodes, group, groups, known, member_of, where, prefer, choose, count, from, exclude,
               adds, pending, max_age_ms, timeout_ms]).

-doc """
The spec in the inner form. By default `one` chooses one node at random, `many` all that fit.
""".
-spec parse(one | many, term()) -> {ok, t()} | {error, error()}.
parse(How, Spec) when is_map(Spec) ->
    maybe
        [] ?= maps:keys(Spec) -- ?KEYS,
        {ok, Candidates} ?= candidates(Spec),
        {ok, MemberOf} ?= key(member_of, Spec, [], fun list/2),
        {ok, Where} ?= key(where, Spec, [], fun conditions/2),
        {ok, Prefer} ?= key(prefer, Spec, [], fun preferences/2),
        {ok, Count} ?= count(How, Spec),
        {ok, Choose} ?= key(choose, Spec, usual(Count), fun chooser/2),
        {ok, From} ?= key(from, Spec, node(), fun node_name/2),
        {ok, Exclude} ?= key(exclude, Spec, [], fun node_names/2),
        {ok, Adds} ?= key(adds, Spec, auto, fun adds/2),
        {ok, Pending} ?= key(pending, Spec, pends(Choose, Count), fun boolean/2),
        {ok, MaxAge} ?= key(max_age_ms, Spec, ?MAX_AGE, fun time_or_infinity/2),
        {ok, Timeout} ?= key(timeout_ms, Spec, ?TIMEOUT, fun time/2),
        {ok, #{candidates => Candidates, member_of => MemberOf, where => Where, prefer => Prefer,
               choose => Choose, count => Count, from => From, exclude => Exclude, adds => Adds,
               pending => Pending, max_age_ms => MaxAge, timeout_ms => Timeout,
               names => names(Where, Prefer, Choose)}}
    else
        [Unknown | _] -> bad([], Unknown, key);
        {error, _} = Error -> Error
    end;
parse(How, Nodes) when is_list(Nodes) -> parse(How, #{nodes => Nodes});
parse(_, Other) -> bad([], Other, spec).

-doc "The spec with more conditions, as published: `Nodes` may stand for `#{nodes => Nodes}`.".
-spec add(one | many, term(), term()) -> {ok, t()} | {error, error()}.
add(How, Spec, More) ->
    maybe
        {ok, #{where := Where, prefer := Prefer, choose := Choose} = Parsed} ?= parse(How, Spec),
        {ok, Conditions} ?= conditions([conditions], More),
        All = Where ++ Conditions,
        {ok, Parsed#{where := All, names := names(All, Prefer, Choose)}}
    end.

-doc "The spec for nodes that have these attributes, whatever their names are.".
-spec having([term()], t()) -> t().
having(Names, #{where := Where, prefer := Prefer, choose := Choose} = Spec) ->
    All = Where ++ [{{attr, Name}, exists, {Name, exists}} || Name <- Names],
    Spec#{where := All, names := names(All, Prefer, Choose)}.

key(Key, Spec, Default, Read) ->
    case Spec of
        #{Key := Value} -> Read([Key], Value);
        #{} -> {ok, Default}
    end.

%% ---------------------------------------------------------------- candidates

candidates(Spec) ->
    maybe
        {ok, Nodes} ?= key(nodes, Spec, none, fun node_names/2),
        {ok, Groups} ?= key(groups, Spec, [], fun list/2),
        {ok, Known} ?= key(known, Spec, false, fun boolean/2),
        One = case Spec of #{group := Group} -> [Group]; #{} -> [] end,
        {ok, case [{nodes, Nodes} || Nodes =/= none] ++ [{group, G} || G <- One ++ Groups] ++
                  [known || Known] of
            [] when is_map_key(groups, Spec) -> [];
            [] -> [own];
            Given -> Given
        end}
    end.

%% ---------------------------------------------------------------- conditions

%% One condition or a list of them.
conditions(Path, List) when is_list(List) -> each(fun condition/2, Path, List, conditions);
conditions(Path, One) ->
    case condition(Path, One) of
        {ok, Condition} -> {ok, [Condition]};
        {error, _} = Error -> Error
    end.

preferences(Path, List) when is_list(List) -> each(fun preference/2, Path, List, conditions);
preferences(Path, One) ->
    case preference(Path, One) of
        {ok, Preference} -> {ok, [Preference]};
        {error, _} = Error -> Error
    end.

preference(Path, {Weight, Said}) when is_integer(Weight), is_tuple(Said) ->
    case Weight > 0 of
        true -> weighted(Weight, condition(Path, Said));
        false -> bad(Path, Weight, weight)
    end;
preference(Path, Said) -> weighted(1, condition(Path, Said)).

weighted(Weight, {ok, Condition}) -> {ok, {Weight, Condition}};
weighted(_, {error, _} = Error) -> Error.

%% `dist` and `label` are keywords of conditions, and so no names of attributes here.
condition(Path, {dist, Op, R} = Said) -> distance(Path, from, Op, R, Said);
condition(Path, {dist, To, Op, R} = Said) ->
    case ref(To) of
        {ok, Ref} -> distance(Path, Ref, Op, R, Said);
        error -> bad(Path, To, ref)
    end;
condition(_, {label, Key, Test} = Said) when Test =:= exists; Test =:= not_exists ->
    {ok, {{label, {label, Key}}, Test, Said}};
condition(Path, {label, Key, Op, Const} = Said) ->
    case selector(Op) of
        {one, Inner} -> {ok, {{label, {label, Key}}, {Inner, [Const]}, Said}};
        {list, Inner} -> listed(Path, {label, {label, Key}}, Inner, Const, Said);
        {op, Op} -> {ok, {{label, {label, Key}}, {op, Op, Const}, Said}};
        none -> bad(Path, Op, selector)
    end;
condition(Path, {label, _} = Said) -> bad(Path, Said, condition);
condition(_, {Name, Flag} = Said) when Flag =:= true; Flag =:= false; Flag =:= yes; Flag =:= no ->
    {ok, {{attr, Name}, {is, Flag}, Said}};
condition(_, {Name, exists} = Said) -> {ok, {{attr, Name}, exists, Said}};
condition(Path, {Name, Op, Const} = Said) ->
    case selector(Op) of
        {list, Inner} -> listed(Path, {attr, Name}, Inner, Const, Said);
        {op, Op} -> {ok, {{attr, Name}, {op, Op, Const}, Said}};
        _ -> bad(Path, Op, operator)
    end;
condition(Path, Other) -> bad(Path, Other, condition).

selector(in) -> {list, in};
selector(not_in) -> {list, not_in};
selector(equals) -> {one, in};
selector(not_equals) -> {one, not_in};
selector(Op) -> case sderl_compare:is_operator(Op) of true -> {op, Op}; false -> none end.

listed(Path, Source, Inner, Values, Said) ->
    case list(Path, Values) of
        {ok, _} -> {ok, {Source, {Inner, Values}, Said}};
        {error, _} -> bad(Path, Values, values)
    end.

distance(Path, Ref, Op, R, Said) ->
    case sderl_compare:is_operator(Op) of
        true when is_number(R) -> {ok, {{dist, Ref}, {op, Op, R}, Said}};
        true -> bad(Path, R, distance);
        false -> bad(Path, Op, distance_operator)
    end.

ref({node, Node}) when is_atom(Node) -> {ok, {node, Node}};
ref({group, Group}) -> {ok, {group, Group}};
ref(_) -> error.

%% ---------------------------------------------------------------- choosers

chooser(_, random) -> {ok, random};
chooser(_, in_order) -> {ok, in_order};
chooser(_, {Way, Name}) when Way =:= least; Way =:= most -> {ok, {Way, Name}};
chooser(_, {two, Name}) -> {ok, {two, least, Name}};
chooser(_, {two, Way, Name}) when Way =:= least; Way =:= most -> {ok, {two, Way, Name}};
chooser(_, nearest) -> {ok, {nearest, from}};
chooser(Path, {nearest, To}) ->
    case ref(To) of
        {ok, Ref} -> {ok, {nearest, Ref}};
        error -> bad(Path, To, ref)
    end;
chooser(_, spread) -> {ok, {spread, host}};
chooser(_, {spread, Over}) when Over =:= host; Over =:= group -> {ok, {spread, Over}};
chooser(_, {spread, {label, Key}}) -> {ok, {spread, {attr, {label, Key}}}};
chooser(_, {spread, {attr, Name}}) -> {ok, {spread, {attr, Name}}};
chooser(Path, {spread, Over}) -> bad(Path, Over, spread);
chooser(_, {hash, Key}) -> {ok, {hash, Key}};
chooser(Path, Other) -> bad(Path, Other, chooser).

usual(all) -> in_order;
usual(_) -> random.

%% To take all that fit is no choice, and a key that is looked up again and again is no load.
pends(_, all) -> false;
pends({hash, _}, _) -> false;
pends(_, _) -> true.

count(one, #{count := Count}) when Count =/= 1 -> bad([count], Count, one);
count(one, _) -> {ok, 1};
count(many, #{count := all}) -> {ok, all};
count(many, #{count := Count}) when is_integer(Count), Count > 0 -> {ok, Count};
count(many, #{count := Count}) -> bad([count], Count, count);
count(many, _) -> {ok, all}.

%% Not by usort, to which 1 and 1.0 are one.
names(Where, Prefer, Choose) ->
    lists:uniq([Name || {Source, _, _} <- Where ++ [C || {_, C} <- Prefer], Name <- name(Source)] ++
               reads(Choose)).

name({dist, _}) -> [];
name({_, Name}) -> [Name].

reads({least, Name}) -> [Name];
reads({most, Name}) -> [Name];
reads({two, _, Name}) -> [Name];
reads({spread, {attr, Name}}) -> [Name];
reads(_) -> [].

%% ---------------------------------------------------------------- terms

adds(_, Number) when is_number(Number), Number >= 0 -> {ok, Number};
adds(Path, Other) -> bad(Path, Other, adds).

boolean(_, Flag) when is_boolean(Flag) -> {ok, Flag};
boolean(Path, Other) -> bad(Path, Other, boolean).

time(_, Ms) when is_integer(Ms), Ms >= 0, Ms =< 16#FFFFFFFF -> {ok, Ms};
time(Path, Other) -> bad(Path, Other, milliseconds).

time_or_infinity(_, infinity) -> {ok, infinity};
time_or_infinity(Path, Other) -> time(Path, Other).

node_name(_, Node) when is_atom(Node) -> {ok, Node};
node_name(Path, Other) -> bad(Path, Other, node_name).

node_names(Path, List) when is_list(List) -> each(fun node_name/2, Path, List, node_list);
node_names(Path, Other) -> bad(Path, Other, node_list).

list(_, Value) when length(Value) >= 0 -> {ok, Value};
list(Path, Value) -> bad(Path, Value, list).

each(Read, Path, List, Expected) -> each(Read, Path, 1, List, [], List, Expected).

each(_, _, _, [], Done, _, _) -> {ok, lists:reverse(Done)};
each(Read, Path, I, [Term | Terms], Done, All, Expected) ->
    case Read(Path ++ [I], Term) of
        {ok, Value} -> each(Read, Path, I + 1, Terms, [Value | Done], All, Expected);
        {error, _} = Error -> Error
    end;
each(_, Path, _, _, _, All, Expected) -> bad(Path, All, Expected).

bad(Path, Found, Expected) -> {error, {bad_spec, Path, Found, Expected}}.

%% ---------------------------------------------------------------- words

-define(DEPTH, 40).

-doc "One sentence: where the bad term stands, what it is, and what to write instead.".
-spec sentence(error()) -> string().
sentence({bad_spec, Path, Found, Expected}) ->
    lists:flatten(io_lib:format("bad spec~ts: ~0tP ~ts",
                                [place(Path), Found, ?DEPTH, remedy(Expected)])).

place([]) -> "";
place([Key | Positions]) ->
    [" at ", atom_to_list(Key) | [["[", integer_to_list(I), "]"] || I <- Positions]].

remedy(spec) ->
    "is neither a map nor a list of nodes; write #{group => Group, where => Conditions, choose => "
    "random} or the like";
remedy(key) ->
    ["is no key of a spec; there are ", lists:join(", ", [atom_to_list(K) || K <- ?KEYS])];
remedy(conditions) -> "is not a list of conditions; write one condition or a proper list of them";
remedy(condition) ->
    "is not a condition; write {Attribute, Operator, Constant}, {Attribute, true}, {dist, "
    "Operator, Number}, "
    "{label, Key, in, Values} or {label, Key, exists}";
remedy(operator) -> "is not an operator; write eq, ne, lt, le, gt, ge, in or not_in";
remedy(selector) ->
    "does not select labels; write equals, not_equals, in, not_in, exists, not_exists or eq, ne, "
    "lt, le, gt, ge";
remedy(distance_operator) -> "does not compare distances; write eq, ne, lt, le, gt or ge";
remedy(distance) ->
    "is not a distance; write a number, from 0 for the node itself to 1 for the farthest";
remedy(ref) -> "is not what a distance is measured from; write {node, Node} or {group, Group}";
remedy(values) -> "is not a list of values; write [Value, ...]";
remedy(weight) -> "is not a weight; write a whole number from 1";
remedy(chooser) ->
    "is not a chooser; write random, in_order, {least, Attribute}, {most, Attribute}, {two, "
    "Attribute}, nearest, spread, "
    "{spread, group}, {spread, {label, Key}} or {hash, Key}";
remedy(spread) -> "is nothing to spread over; write host, group, {label, Key} or {attr, Attribute}";
remedy(one) -> "is not 1; choose_node chooses one node, choose_nodes chooses more";
remedy(count) -> "is not a number of nodes; write a whole number from 1, or all";
remedy(adds) -> "is not what a choice adds to the attribute; write a number from 0";
remedy(boolean) -> "is neither true nor false; write one of them";
remedy(milliseconds) ->
    "is not a number of milliseconds; write a whole number from 0 to 4294967295";
remedy(node_name) -> "is not the name of a node; write an atom";
remedy(node_list) -> "is not a list of nodes; write ['name@host', ...]";
remedy(list) -> "is not a list; write a proper list".
