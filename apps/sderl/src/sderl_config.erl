%% SPDX-License-Identifier: Apache-2.0
-module(sderl_config).
-moduledoc """
Reads the launch configuration, the part of `sys.config` about s_groups, and checks it term by term
before anything starts.

```erlang
[{sderl, [
    {s_groups, [
        {billing, normal, ['a@host', 'b@host']},
        {search,  normal, {seeds, ['s1@host', 's2@host']}}
    ]},
    {cluster, "production"},
    {await, {all, 30_000}}
]}].
```

The published place, `{kernel, [{s_groups, [...]}]}`, is accepted too. Where both
are given they are merged, and a group that both describe must be described alike.

## Keys of the application `sderl`

Times are milliseconds, whole numbers from 1 to 4294967295.

| key | values | default | meaning |
|---|---|---|---|
| `s_groups` | `[{Name, normal \| hidden, [Node] \| {seeds, [Node]}}]` | `[]` | the groups; `seeds` means: enter the group through whichever of these nodes is a member |
| `cluster` | string or binary | `<<>>` | part of every group's uid: clusters that may meet and share group names get different strings |
| `await` | `false`, `{all, Ms}`, `{[Name], Ms}`; `Ms` may be `infinity` | `false` | the application's start waits until these groups are ready |
| `consistency` | `#{Name => available \| majority}` | `#{}` | what a component of a group needs to decide writes: nothing more (`available`, also of groups that the map lacks), or more than half of all members (`majority`); alike on all nodes |
| `answer` | `#{Name => committed \| applied}` | `#{}` | when a write is answered: when every member that counts has applied it (`committed`, also of groups that the map lacks), or when their own node has (`applied`, of available groups only) |
| `majority_lost` | `ignore`, `notify`, `exit`, `#{Name => ...}` | `ignore` | how holders of names are told that their node lost the majority of such a group, if the registration did not say |
| `forget_down_after` | `infinity`, `Ms`, `#{Name => Ms \| infinity}` | `infinity` | a member that was away so long is forgotten, until it comes back; a group that the map lacks: `infinity` |
| `state_dir` | `none`, a folder | `none` | where one small file for each group keeps its uid, its members and the highest epoch over a restart of the node |
| `free_islands` | boolean | `true` | whether free normal nodes merge into islands |
| `link_policy` | `report`, `close` | `report` | what happens to unneeded links: an event once for each, or the event and, where both ends have `close` and agree, the end of the link |
| `link_idle_ms` | `Ms` | 600000 | how long a link must have been idle before that |
| `tick_ms` | `Ms` | 1000 | heartbeat of the group protocol |
| `set_aside_ms` | `Ms`, at least two ticks | 4000 | a silent member is set aside after it |
| `write_timeout_ms` | `Ms` | 10000 | the longest that a write waits for its answer |
| `resolver` | see `m:sderl_resolver` | `random_exit_name` | which process wins a name clash, if the registration did not say |
| `resolver_timeout_ms` | `Ms` | 5000 | the longest that a resolver may run |
| `attributes` | `[{Name, Spec}]` | `[]` | attributes of this node, see `m:sderl_attr` |
| `labels` | `[{Key, Value}]` or a map | `[]` | its labels |
| `attribute_builtins` | boolean | `true` | whether the node has the built-in attributes |
| `attribute_share_ms` | `Ms` | 5000 | how often the node sends changed attributes to the members of its groups |
| `attribute_keep_ms` | `Ms` | 5000 | how long a computed value is kept |
| `attribute_timeout_ms` | `Ms` | 1000 | the longest that computing a value may take |
| `route_beat_ms` | `Ms` | 1000 | how often a gateway and its neighbours check that the other answers; routes avoid a node that is silent for three of these |
| `route_queue` | 1 to 10000000 | 10000 | how many messages may wait before a full link, in each of eight forwarding processes |
| `stand_in_idle_ms` | `Ms` | 600000 | how long an unused stand-in for a process of another group is kept; it ends after twice that |
| `route_hops` | 1 to 1000 | 16 | how many gateways a message may cross |
| `distances` | `none`, a file's name, a term | `none` | the tree of distances between nodes, see `m:sderl_dist` |
| `follow` | `[Group]` | `[]` | groups of which this node keeps a copy of the names without being a member, see `s_group:follow/1` |
| `follow_names` | 1 to 100000000 | 100000 | a group with more names is not copied |
| `follow_max_age_ms` | `Ms` | 10000 | a copy that may be older is not read; members are asked instead |

Anything malformed is an error with the path to the bad term; `format_error/1` makes one sentence of
it that ends with the remedy. A suspicious value (an unknown key, a node named twice, a file that
leaves this node out of every group) is a warning, and the start goes on.

The module is pure: it reads no environment, starts nothing and asks no node.
""".

-export([parse/3]).
-export([format_error/1]).
-export([format_warning/1]).

-export_type([config/0, group/0, error/0, warning/0, path/0, expected/0]).

-import(sderl_check, [bad/3, boolean/2, each/3, milliseconds/2]).

-doc "A configured group. `members` is sorted and has no node twice; `{seeds, _}` likewise.".
-type group() :: #{
    name := term(),
    type := normal | hidden,
    members := [node(), ...] | {seeds, [node(), ...]}
}.

-doc """
The whole configuration. `groups` are those that this node takes part in: it is listed,
or the group is given by seeds. `other_groups` are the rest, kept as knowledge.
""".
-type config() :: #{
    groups := [group()],
    other_groups := [group()],
    warnings := [warning()],
    cluster := binary(),
    await := false | {all | [term()], pos_integer() | infinity},
    consistency := #{term() => sderl_options:consistency()},
    answer := #{term() => sderl_options:answer()},
    majority_lost := sderl_options:majority_lost() | #{term() => sderl_options:majority_lost()},
    forget_down_after := infinity | pos_integer() | #{term() => infinity | pos_integer()},
    state_dir := none | file:name_all(),
    free_islands := boolean(),
    link_policy := report | close,
    link_idle_ms := pos_integer(),
    tick_ms := pos_integer(),
    set_aside_ms := pos_integer(),
    write_timeout_ms := pos_integer(),
    resolver := sderl_resolver:resolver(),
    resolver_timeout_ms := pos_integer(),
    attributes := [{sderl_attr:name(), sderl_attr:spec()}],
    labels := [{Key :: term(), Value :: term()}],
    attribute_builtins := boolean(),
    attribute_share_ms := pos_integer(),
    attribute_keep_ms := pos_integer(),
    attribute_timeout_ms := pos_integer(),
    route_beat_ms := pos_integer(),
    route_queue := pos_integer(),
    stand_in_idle_ms := pos_integer(),
    route_hops := pos_integer(),
    distances := none | file:name_all() | sderl_dist:network(),
    follow := [Group :: term()],
    follow_names := pos_integer(),
    follow_max_age_ms := pos_integer()
}.

-doc """
Where a term stands, outermost first: `[sderl, s_groups, 2, nodes, 3]`. Positions count from 1.
""".
-type path() :: sderl_check:path().

-doc "What was expected there; `format_error/1` has the words for each.".
-type expected() :: sderl_check:expected().

-doc "What `parse/3` found wrong.".
-type error() :: {bad_config, path(), Found :: term(), expected()}.

-doc "A suspicious value that is no error; `format_warning/1` makes a sentence of it.".
-type warning() ::
    {unknown_option, path()}
    | {duplicate_node, path(), node()}
    | {not_in_any_group, node()}
    | {await_not_own, term()}
    | {short_write_timeout, pos_integer(), pos_integer()}.

-doc """
Checks the configuration of one node.

`Env` is the application environment of `sderl` (`application:get_all_env(sderl)`),
`KernelSGroups` the value of `s_groups` in the environment of `kernel`, or `undefined`,
and `ThisNode` is `node()`. On a node that is not distributed (`nonode@nohost`) every
group with a list of nodes lands in `other_groups`, but for those of `nonode@nohost` alone; parse
again when the node has a name.
""".
-spec parse(Env, KernelSGroups, ThisNode) -> {ok, config()} | {error, error()} when
    Env :: term(), KernelSGroups :: term() | undefined, ThisNode :: node().
parse(Env, KernelSGroups, ThisNode) ->
    maybe
        {ok, Pairs} ?= environment(Env),
        {ok, Options} ?= options(Pairs),
        Ours = proplists:get_value(s_groups, Pairs, []),
        Theirs = given(KernelSGroups),
        {ok, Named} ?= sderl_config_groups:parse([sderl, s_groups], Ours),
        {ok, Published} ?= sderl_config_groups:parse([kernel, s_groups], Theirs),
        {ok, Groups} ?= sderl_config_groups:merge(Named, Published),
        {Own, Other} = lists:partition(fun(G) -> takes_part(ThisNode, G) end, Groups),
        Warnings =
            unknown_options(Pairs) ++
                sderl_config_groups:duplicates([sderl, s_groups], Ours) ++
                sderl_config_groups:duplicates([kernel, s_groups], Theirs) ++
                left_out(ThisNode, Own, Other) ++
                await_not_own(ThisNode, maps:get(await, Options), Own) ++
                short_write_timeout(Options),
        {ok, Options#{groups => Own, other_groups => Other, warnings => Warnings}}
    end.

%% The environment as a whole

given(undefined) -> [];
given(Value) -> Value.

environment(Env) ->
    case sderl_check:proper_list(Env) of
        true ->
            maybe
                {ok, _} ?= each(fun environment_entry/2, [sderl], Env),
                {ok, Env}
            end;
        false ->
            bad([sderl], Env, option_list)
    end.

environment_entry(_Path, {Key, _} = Entry) when is_atom(Key) -> {ok, Entry};
environment_entry(Path, Other) -> bad(Path, Other, option).

unknown_options(Pairs) ->
    %% `included_applications` is put there by the application controller.
    Known = [s_groups, included_applications | [Key || {Key, _} <- defaults()]],
    [{unknown_option, [sderl, Key]} || {Key, _} <- Pairs, not lists:member(Key, Known)].

%% Options

%% The parts that have keys and words of their own.
parts() -> [sderl_route_config, sderl_dist_config, sderl_attr_config, sderl_follow_config].

defaults() -> sderl_options:defaults() ++ lists:append([Part:defaults() || Part <- parts()]).

options(Pairs) ->
    Read = fun([sderl, _Position], {Key, Default}) ->
        (check(Key))(Key, [sderl, Key], proplists:get_value(Key, Pairs, Default))
    end,
    maybe
        {ok, Values} ?= each(Read, [sderl], defaults()),
        Options = #{Key => Value || {{Key, _}, Value} <- lists:zip(defaults(), Values)},
        ok ?= two_ticks(Options),
        ok ?= available_where_applied(Options),
        {ok, Options}
    end.

check(Key) ->
    case [Part || Part <- parts(), lists:keymember(Key, 1, Part:defaults())] of
        [Part] -> fun Part:option/3;
        [] -> fun option/3
    end.

option(cluster, Path, Value) ->
    text(Path, Value);
option(await, Path, Value) ->
    await(Path, Value);
option(forget_down_after, Path, Value) ->
    forget(Path, Value);
option(consistency, Path, Value) ->
    of_groups(fun sderl_check:is_consistency/1, consistency, {consistencies, always_available},
              Path, Value);
option(answer, Path, Value) ->
    of_groups(fun sderl_check:is_answer/1, answer, {answers, always_committed}, Path, Value);
option(majority_lost, Path, Value) ->
    majority_lost(Path, Value);
option(state_dir, Path, Value) ->
    folder(Path, Value);
option(free_islands, Path, Value) ->
    boolean(Path, Value);
option(link_policy, _Path, Value) when Value =:= report; Value =:= close ->
    {ok, Value};
option(link_policy, Path, Value) ->
    bad(Path, Value, link_policy);
option(resolver, Path, Value) ->
    case sderl_resolver:validate(Value) of
        ok -> {ok, Value};
        {error, _} -> bad(Path, Value, resolver)
    end;
option(_Milliseconds, Path, Value) ->
    milliseconds(Path, Value).

text(_Path, Value) when is_binary(Value) ->
    {ok, Value};
text(Path, Value) when is_list(Value) ->
    case io_lib:printable_unicode_list(Value) of
        true -> {ok, unicode:characters_to_binary(Value)};
        false -> bad(Path, Value, text)
    end;
text(Path, Value) ->
    bad(Path, Value, text).

folder(_Path, none) ->
    {ok, none};
folder(Path, Value) ->
    case text(Path, Value) of
        {ok, Folder} when Folder =/= <<>> -> {ok, Folder};
        _ -> bad(Path, Value, folder)
    end.

milliseconds_or_infinity(_Path, infinity) ->
    {ok, infinity};
milliseconds_or_infinity(Path, Value) ->
    case milliseconds(Path, Value) of
        {ok, _} = Ok -> Ok;
        {error, _} -> bad(Path, Value, milliseconds_or_infinity)
    end.

await(_Path, false) ->
    {ok, false};
await(Path, {all, Timeout}) ->
    await(Path, all, Timeout);
await(Path, {Groups, Timeout} = Await) when is_list(Groups) ->
    case sderl_check:proper_list(Groups) of
        true -> await(Path, Groups, Timeout);
        false -> bad(Path, Await, await)
    end;
await(Path, Value) ->
    bad(Path, Value, await).

await(Path, Groups, Timeout) ->
    maybe
        {ok, _} ?= milliseconds_or_infinity(Path ++ [timeout], Timeout),
        {ok, {Groups, Timeout}}
    end.

forget(Path, PerGroup) when is_map(PerGroup) ->
    per_group(fun(_Group, At, Value) -> milliseconds_or_infinity(At, Value) end, Path, PerGroup);
forget(Path, Value) ->
    case milliseconds_or_infinity(Path, Value) of
        {ok, _} = Ok -> Ok;
        {error, _} -> bad(Path, Value, forget_down_after)
    end.

%% A map with a value of a few for each group; that of the free namespace is given.
of_groups(IsOne, One, {_, Given}, Path, PerGroup) when is_map(PerGroup) ->
    Check = fun
        (undefined, At, Value) -> bad(At, Value, Given);
        (_Group, At, Value) -> one_of(IsOne, At, Value, One)
    end,
    per_group(Check, Path, PerGroup);
of_groups(_, _, {All, _}, Path, Value) ->
    bad(Path, Value, All).

majority_lost(Path, PerGroup) when is_map(PerGroup) ->
    per_group(fun(_Group, At, Value) -> majority_lost(At, Value, told) end, Path, PerGroup);
majority_lost(Path, Value) ->
    majority_lost(Path, Value, majority_lost).

majority_lost(Path, Value, Expected) ->
    one_of(fun sderl_check:is_majority_lost/1, Path, Value, Expected).

one_of(Is, Path, Value, Expected) ->
    case Is(Value) of
        true -> {ok, Value};
        false -> bad(Path, Value, Expected)
    end.

%% A map of groups whose values `Check` accepts; what stands wrong in it is told in the order of the
%% groups.
per_group(Check, Path, PerGroup) ->
    CheckOne = fun(_Position, {Group, Value}) -> Check(Group, Path ++ [{key, Group}], Value) end,
    maybe
        {ok, _} ?= each(CheckOne, Path, lists:sort(maps:to_list(PerGroup))),
        {ok, PerGroup}
    end.

%% With less than two ticks one late heartbeat would set a healthy member aside.
two_ticks(#{set_aside_ms := Aside, tick_ms := Tick}) when Aside >= 2 * Tick -> ok;
two_ticks(#{set_aside_ms := Aside, tick_ms := Tick}) ->
    bad([sderl, set_aside_ms], Aside, {at_least_two_ticks, 2 * Tick}).

%% A majority decides when more than half of the members have a write, and not before.
available_where_applied(#{answer := Answers, consistency := Consistencies}) ->
    case lists:sort([G
                     || G := applied <- Answers, maps:get(G, Consistencies, none) =:= majority]) of
        [] -> ok;
        [G | _] -> bad([sderl, answer, {key, G}], applied, available_where_applied)
    end.

short_write_timeout(#{write_timeout_ms := Write, set_aside_ms := Aside}) when Write =< Aside ->
    [{short_write_timeout, Write, Aside}];
short_write_timeout(_Options) ->
    [].

%% Groups

%% A node given by seeds takes part whether or not it is a seed itself.
takes_part(_ThisNode, #{members := {seeds, _}}) -> true;
takes_part(ThisNode, #{members := Nodes}) -> lists:member(ThisNode, Nodes).

left_out(nonode@nohost, _Own, _Other) -> [];
left_out(ThisNode, [], [_ | _]) -> [{not_in_any_group, ThisNode}];
left_out(_ThisNode, _Own, _Other) -> [].

await_not_own(nonode@nohost, _Await, _Own) ->
    [];
await_not_own(_ThisNode, {Names, _Timeout}, Own) when is_list(Names) ->
    [{await_not_own, Name}
     || Name <- Names, not lists:any(fun(#{name := N}) -> N =:= Name end, Own)];
await_not_own(_ThisNode, _Await, _Own) ->
    [].

%% Words

-doc """
One sentence for people: where the bad term stands, what it is, what to write instead.

```
1> sderl_config:format_error({bad_config, [sderl, s_groups, 2, nodes, 3], "a@h", node_name}).
"bad configuration at sderl: s_groups[2].nodes[3]: \"a@h\" is not a node name; write an atom with a host, such as 'name@host'"
```
""".
-spec format_error(error()) -> string().
format_error(Error) ->
    sderl_config_words:error(Error, parts()).

-doc "One sentence for a warning of `t:config/0`.".
-spec format_warning(warning()) -> string().
format_warning(Warning) ->
    sderl_config_words:warning(Warning).
