%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr).
-moduledoc """
Attributes of nodes: properties and load, by which nodes are chosen.

Every node has attributes: built-in ones such as `loadavg1` and `memory_available`
(docs/placement.md has the table with units), those of its configuration, and those set at run time.
A *spec* says what an attribute is:

| spec | kind |
|---|---|
| any term | static: this value |
| `{automatic, {M, F}}`, `{automatic, {M, F, Args}}` | the value of a call that is made once, when the attribute is loaded or set |
| `{dynamic, {M, F}}`, `{dynamic, {M, F, Args}}` | the value of a call that is made again and again |
| `{dynamic, Call, #{keep_ms => Ms, timeout_ms => Ms}}` | the same with times of its own |

The calls are run on their node in processes of their own, with a time limit
(`attribute_timeout_ms`, 1 s) and a heap limit (32 MiB), and a value is kept for a stated time
(`keep_ms`, else `attribute_keep_ms`, 5 s). If a call crashes, does not end or uses too much memory,
the attribute has the value `undefined` with the reason, and nothing else is affected.

Each member of a group holds the values of the others: every `attribute_share_ms` (5 s) a node sends
its mates the values that changed. `cached/2` reads a value that this node holds, with its age,
without a message. `fetch/3` asks for values that are missing or too old, and reaches nodes of other
groups without a new link.

## Names

A name is any term; published programs use atoms. Two shapes have a meaning:

- `{label, Key}` is a *label*, a static attribute that people set to choose by: zone, rack, disk.
  See `label/2`.
- `{in, Group, Name}` is sent to the members of that group alone. See `set/3`.

A value is any term but `undefined`, of at most 16 KiB, without funs.

## Errors

With the application stopped: `{error, not_running}`; reads give `unknown`. An argument of the wrong
type, or a malformed spec, raises `{badarg, {sderl_attr, Function, Arity}, Details}`.

## Sources

`insert/2`, `update/2`, `delete/1`, `request_attrs/2,3`, the three kinds, the configuration file and
fourteen of the built-in attributes are those published with Scalable Distributed Erlang (Trinder et
al., *Scaling Reliably*, 2017), without their weaknesses: a dead node, or a slow or crashing
function, harms no query, and any process may change attributes. The rest is this library's own.
""".

-export([insert/2, update/2, set/2, set/3, delete/1, delete/2, label/2, load/1]).
-export([all/0, registered_attributes/0]).
-export([cached/2, cached/3, fetch/2, fetch/3, request_attrs/2, request_attrs/3]).
-export([share_ms/0]).
-export_type([name/0, spec/0, call/0, source/0, answer/0, attribute/0, fetch_options/0, fetched/0]).

-import(sderl_clock, [now_ms/0]).
-import(sderl_check, [is_file/1, misuse/5]).

-doc "Names an attribute; see above.".
-type name() :: term().
-doc "The function to call; it is looked up at each call.".
-type call() :: {module(), Function :: atom()} | {module(), Function :: atom(), Args :: [term()]}.
-doc "The definition of an attribute; see above.".
-type spec() :: term()
              | {automatic, call()}
              | {dynamic, call()}
              | {dynamic, call(), #{keep_ms => pos_integer(), timeout_ms => pos_integer()}}.
-doc "The source of an attribute: the library, the configuration, or a call.".
-type source() :: builtin | config | call.
-doc """
A value, or why there is none, and its age: so long ago, or later, that was so. Reasons: `not_set`,
`pending` (not computed yet), `timeout`, `heap`, `too_large`, `fun_in_value`, `no_value` (the call
gave `undefined`), `{error | exit | throw, Reason}`, `{down, Reason}`, `not_told` (shared in another
group only).
""".
-type answer() :: {ok, Value :: term(), AgeMs :: non_neg_integer()}
                | {undefined, Reason :: term(), AgeMs :: non_neg_integer()}.
-doc "An attribute of this node.".
-type attribute() ::
    #{name := name(), kind := static | automatic | dynamic, source := source(), spec := spec(),
      value := answer()}.
-doc """
`max_age_ms`: values that this node holds are taken up to this age (default: two periods of sharing,
10 s), or for as long as their owner keeps them, if that is longer. `timeout_ms`: how long the call
may take (default 5000).
""".
-type fetch_options() :: #{max_age_ms => non_neg_integer(), timeout_ms => non_neg_integer()}.
-doc """
The answers of one node by name, or why there are none: `timeout`, `no_link` (the link went),
`no_route` (it shares no group with any node that could be asked), `not_running` (the application
does not run there), `unknown_question` (an older version), `failed`.
""".
-type fetched() :: {ok, #{name() => answer()}} | {error, Reason :: atom()}.

-define(TIMEOUT, 5000).
-define(MAX_MS, 16#FFFFFFFF).

%% ---------------------------------------------------------------- changes

-doc """
Gives this node an attribute that it does not have. As published.

Errors: `{attr_exists, Name}`, also for a built-in one; `update/2` and `set/2` replace these.
""".
-spec insert(name(), spec()) -> ok | {error, {attr_exists, name()} | not_running}.
insert(Name, Spec) -> write(insert, Name, Spec, insert).

-doc """
Replaces an attribute of this node. As published.

Errors: `{attr_not_set, Name}`.
""".
-spec update(name(), spec()) -> ok | {error, {attr_not_set, name()} | not_running}.
update(Name, Spec) -> write(update, Name, Spec, update).

-doc "Gives this node an attribute, or replaces it.".
-spec set(name(), spec()) -> ok | {error, not_running}.
set(Name, Spec) ->
    case write(set, Name, Spec, set) of
        ok -> ok;
        {error, _} -> {error, not_running}
    end.

-doc """
Gives this node an attribute that is shared with the members of one group only: `set({in, Group,
Name}, Spec)`. It is read under that name. If the node leaves the group, it is not sent to any node
any more.

Errors: `node_does_not_belong_to_the_s_group`.
""".
-spec set(Group :: term(), name(), spec()) ->
    ok | {error, node_does_not_belong_to_the_s_group | not_running}.
set(Group, Name, Spec) ->
    ok = name_arg({in, Group, Name}, set, 3, 2),
    ok = spec_arg(Spec, set, 3, 3),
    case sderl_running:while(fun() -> sderl_names:is_member(Group) end) of
        true -> set({in, Group, Name}, Spec);
        false -> {error, node_does_not_belong_to_the_s_group};
        {error, not_running} -> {error, not_running}
    end.

-doc """
Removes an attribute of this node, whether it has it or not. As published; a built-in one is back
when the application is started again.
""".
-spec delete(name()) -> true | {error, not_running}.
delete(Name) ->
    case sderl_attr_client:write({delete, Name}) of
        ok -> true;
        {error, _} -> {error, not_running}
    end.

-doc "Removes an attribute that is shared in one group only.".
-spec delete(Group :: term(), name()) -> true | {error, not_running}.
delete(Group, Name) -> delete({in, Group, Name}).

-doc "Sets a label: the static attribute `{label, Key}`.".
-spec label(Key :: term(), Value :: term()) -> ok | {error, not_running}.
label(Key, Value) ->
    ok = name_arg({label, Key}, label, 2, 1),
    case sderl_attr_own:check_label(Value) of
        ok -> set({label, Key}, Value);
        {error, Expected} -> misuse(?MODULE, {label, 2}, 2, Value, Expected)
    end.

-doc """
Sets the attributes of a file in the published format: one term, a list of `{Name, Spec}`. All of
them, or none if anything is wrong with it; `Msg` says what.
""".
-spec load(file:name_all()) -> ok | {error, {attr_config_error, Msg :: string()} | not_running}.
load(File) ->
    is_file(File) orelse misuse(?MODULE, {load, 1}, 1, File, "the name of a file"),
    maybe
        {ok, Attributes} ?= sderl_attr_config:file(File),
        [] ?= [E || {Name, Spec} <- Attributes, {error, _} = E <- [set(Name, Spec)]],
        ok
    else
        {error, Msg} -> {error, {attr_config_error, Msg}};
        [{error, Why} | _] -> {error, Why}
    end.

%% The caller waits for values that are computed once, because the server waits for no process.
write(How, Name, Spec, F) ->
    ok = name_arg(Name, F, 2, 1),
    ok = spec_arg(Spec, F, 2, 2),
    Once = case Spec of
        {automatic, Call} ->
            sderl_attr_eval:run(Call, sderl_attr_config:value(attribute_timeout_ms));
        _ -> none
    end,
    sderl_attr_client:write({How, Name, Spec, call, Once}).

%% ---------------------------------------------------------------- this node's

-doc "This node's attributes, sorted by name.".
-spec all() -> [attribute()] | {error, not_running}.
all() ->
    try
        lists:sort([#{name => Name, kind => kind(Spec), source => Source, spec => Spec,
                      value => Value}
                    || {Name, Spec, Source, _} <- sderl_attr_table:own(),
                       {_, _, _} = Value <- [cached(node(), Name)]])
    catch
        error:badarg:Stack -> stopped(Stack)
    end.

-doc "The names of this node's attributes, with their kinds, sorted.".
-spec registered_attributes() -> [{name(), static | automatic | dynamic}] | {error, not_running}.
registered_attributes() ->
    try lists:sort([{Name, kind(Spec)} || {Name, Spec, _, _} <- sderl_attr_table:own()])
    catch error:badarg:Stack -> stopped(Stack)
    end.

kind({Kind, _}) when Kind =:= dynamic; Kind =:= automatic -> Kind;
kind({dynamic, _, _}) -> dynamic;
kind(_) -> static.

%% The tables go with the application.
stopped(Stack) ->
    case ets:whereis(sderl_attrs) of
        undefined -> {error, not_running};
        _ -> erlang:raise(error, badarg, Stack)
    end.

%% ---------------------------------------------------------------- any node's

-doc """
The value that this node holds of an attribute of a node, itself or another, however old: one table
lookup, and no message. `unknown`: nothing is held of that node.

When the link to a node goes its values are dropped. A node that hangs is recognised by the age of
its values, which grows: members of a group confirm their values to each other every 5 s
(`attribute_share_ms`).
""".
-spec cached(node(), name()) -> answer() | unknown.
cached(Node, Name) -> cached(Node, Name, now_ms()).

-doc """
The same for a caller that reads many and looks at the clock, `erlang:monotonic_time(millisecond)`,
once.
""".
-spec cached(node(), name(), Now :: integer()) -> answer() | unknown.
cached(Node, Name, Now) ->
    try sderl_attr_table:cached(Node, Name, Now)
    catch error:badarg -> unknown
    end.

-doc "`fetch/3` with the defaults.".
-spec fetch([node()], [name()]) -> #{node() => fetched()} | {error, not_running}.
fetch(Nodes, Names) -> fetch(Nodes, Names, #{}).

-doc """
Attributes of nodes that are not too old: values that this node holds are taken up to the age
`max_age_ms`, and the others are asked for, at all nodes at the same time: directly where there is a
link, otherwise through a gateway, a node that shares a group with them. No link is opened. The
values are kept for the next caller.

Dead or slow nodes take at most `timeout_ms` in all, and have an error in the answer; so have
unknown nodes. If a node did not answer, later calls do not wait for it within a period of sharing,
unless it sends something before. An attribute that a node does not have is `{undefined, not_set,
Age}`.
""".
-spec fetch([node()], [name()], fetch_options()) -> #{node() => fetched()} | {error, not_running}.
fetch(Nodes, Names, Options) ->
    ok = nodes_arg(Nodes, fetch, 3),
    ok = list_arg(Names, fetch, 3, 2, "a list of names of attributes"),
    {MaxAge, Timeout} = options_arg(Options, fetch, 3),
    try fetched(Nodes, Names, MaxAge, Timeout)
    catch error:badarg:Stack -> stopped(Stack)
    end.

fetched(Nodes, Names, MaxAge, Timeout) ->
    #{Node => case Got of
        {ok, Entries} ->
            {ok, #{Name => answer(Why, Value, Age) || {Name, Value, Why, Age, _, _} <- Entries}};
        Error -> Error
    %% Not usort of the names, for which 1 and 1.0 are one.
    end || Node := Got <- sderl_attr_fetch:fetch(lists:usort(Nodes), lists:uniq(Names), MaxAge,
                                                 Timeout)}.

answer(ok, Value, Age) -> {ok, Value, Age};
answer(Why, _, Age) -> {undefined, Why, Age}.

-doc "`request_attrs/3` with 5 seconds.".
-spec request_attrs([node()], name() | [name()]) ->
    [{node(), [{name(), Value :: term() | undefined}]}] | {error, not_running}.
request_attrs(Nodes, Names) -> request_attrs(Nodes, Names, ?TIMEOUT).

-doc """
As published: the values of one attribute or several, for each node, in the order of the nodes.
`undefined` stands for an attribute that the node does not have, or that came too late. Use
`fetch/3` to know which, and how old the values are. A name that is a list, such as a string, has to
be given in a list.
""".
-spec request_attrs([node()], name() | [name()], Timeout :: non_neg_integer()) ->
    [{node(), [{name(), Value :: term() | undefined}]}] | {error, not_running}.
request_attrs(Nodes, Names0, Timeout) ->
    ok = nodes_arg(Nodes, request_attrs, 3),
    Names = case sderl_check:proper_list(Names0) of true -> Names0; false -> [Names0] end,
    ok = ms_arg(Timeout, request_attrs, 3, 3, Timeout),
    case fetch(Nodes, Names, #{timeout_ms => Timeout}) of
        {error, Why} -> {error, Why};
        Fetched ->
            [{Node, [{Name, plain(Name, maps:get(Node, Fetched))} || Name <- Names]}
             || Node <- Nodes]
    end.

plain(Name, {ok, #{} = Answers}) ->
    case Answers of
        #{Name := {ok, Value, _}} -> Value;
        #{} -> undefined
    end;
plain(_, {error, _}) -> undefined.

-doc """
How often members of a group share their values, in milliseconds. Values are seldom older than this
and the time that they are kept.
""".
-spec share_ms() -> pos_integer().
share_ms() -> sderl_attr_config:value(attribute_share_ms).

%% ---------------------------------------------------------------- arguments

name_arg(Name, F, A, I) ->
    case sderl_attr_own:check_name(Name) of
        ok -> ok;
        {error, Expected} -> misuse(?MODULE, {F, A}, I, Name, Expected)
    end.

spec_arg(Spec, F, A, I) ->
    case sderl_attr_own:check(Spec) of
        ok -> ok;
        {error, Expected} -> misuse(?MODULE, {F, A}, I, Spec, Expected)
    end.

nodes_arg(Nodes, F, A) ->
    ok = list_arg(Nodes, F, A, 1, "a list of names of nodes"),
    case [N || N <- Nodes, not is_atom(N)] of
        [] -> ok;
        [Bad | _] -> misuse(?MODULE, {F, A}, 1, Bad, "the name of a node, an atom")
    end.

list_arg(List, F, A, I, Expected) ->
    case sderl_check:proper_list(List) of
        true -> ok;
        false -> misuse(?MODULE, {F, A}, I, List, Expected)
    end.

options_arg(Options, F, A) when is_map(Options) ->
    case maps:keys(Options) -- [max_age_ms, timeout_ms] of
        [] ->
            MaxAge = maps:get(max_age_ms, Options, 2 * share_ms()),
            Timeout = maps:get(timeout_ms, Options, ?TIMEOUT),
            ok = ms_arg(MaxAge, F, A, 3, Options),
            ok = ms_arg(Timeout, F, A, 3, Options),
            {MaxAge, Timeout};
        _ -> misuse(?MODULE, {F, A}, 3, Options, "a map with max_age_ms, timeout_ms or both")
    end;
options_arg(Other, F, A) ->
    misuse(?MODULE, {F, A}, 3, Other, "a map with max_age_ms, timeout_ms or both").

ms_arg(Ms, _, _, _, _) when is_integer(Ms), Ms >= 0, Ms =< ?MAX_MS -> ok;
ms_arg(_, F, A, I, Found) ->
    misuse(?MODULE, {F, A}, I, Found, "milliseconds, a whole number from 0 to 4294967295").
