%% SPDX-License-Identifier: Apache-2.0
-module(sderl_config_groups).
-moduledoc false.
%% The groups of the launch configuration, checked term by term.

-export([parse/2, merge/2, duplicates/2]).
-export_type([located/0]).

-import(sderl_check, [bad/3, each/3]).

-doc "A group on its way through the checks: what it says and where it stands.".
-type located() :: {sderl_check:path(), sderl_config:group()}.

-doc "Checks a list of groups: their names, types and nodes.".
-spec parse(sderl_check:path(), term()) -> {ok, [located()]} | {error, sderl_check:error()}.
parse(Path, Value) ->
    case sderl_check:proper_list(Value) of
        true ->
            maybe
                {ok, Located} ?= each(fun group/2, Path, Value),
                ok ?= unique_names(Located),
                {ok, Located}
            end;
        false ->
            bad(Path, Value, group_list)
    end.

group(Path, {Name, Type, Members}) ->
    maybe
        ok ?= group_name(Path ++ [name], Name),
        ok ?= group_type(Path ++ [type], Type),
        {ok, Nodes} ?= members(Path, Members),
        {ok, {Path, #{name => Name, type => Type, members => Nodes}}}
    end;
group(Path, Other) ->
    bad(Path, Other, group).

group_name(Path, undefined) -> bad(Path, undefined, group_name);
group_name(_Path, _Name) -> ok.

group_type(_Path, Type) when Type =:= normal; Type =:= hidden -> ok;
group_type(Path, Type) -> bad(Path, Type, group_type).

members(Path, {seeds, Seeds}) ->
    maybe
        {ok, Nodes} ?= node_list(Path ++ [seeds], Seeds),
        {ok, {seeds, Nodes}}
    end;
members(_Path, [nonode@nohost] = Nodes) ->
    %% A node without a name may be alone in a group: the tests of a project run on one.
    {ok, Nodes};
members(Path, Nodes) ->
    node_list(Path ++ [nodes], Nodes).

node_list(Path, []) ->
    bad(Path, [], some_node);
node_list(Path, Value) ->
    %% A string is a list too; without this its first character would be "no node name".
    case sderl_check:proper_list(Value) andalso not io_lib:printable_unicode_list(Value) of
        true ->
            maybe
                {ok, Nodes} ?= each(fun node_name/2, Path, Value),
                {ok, lists:usort(Nodes)}
            end;
        false ->
            bad(Path, Value, node_list)
    end.

node_name(Path, nonode@nohost = Node) ->
    bad(Path, Node, named_node);
node_name(Path, Node) when is_atom(Node) ->
    case binary:split(atom_to_binary(Node), ~"@", [global]) of
        [Name, Host] when Name =/= ~"", Host =/= ~"" -> {ok, Node};
        _ -> bad(Path, Node, node_name)
    end;
node_name(Path, Other) ->
    bad(Path, Other, node_name).

unique_names(Located) ->
    unique_names(Located, #{}).

unique_names([], _Seen) ->
    ok;
unique_names([{Path, #{name := Name}} | Rest], Seen) ->
    case Seen of
        #{Name := First} -> bad(Path ++ [name], Name, {unique_name, First});
        #{} -> unique_names(Rest, Seen#{Name => Path})
    end.

-doc "Both places may describe a group if they say the same of it.".
-spec merge([located()], [located()]) ->
    {ok, [sderl_config:group()]} | {error, sderl_check:error()}.
merge(Named, Published) ->
    ByName = #{Name => At || {_, #{name := Name}} = At <- Named},
    merge(Published, ByName, lists:reverse([Group || {_, Group} <- Named])).

merge([], _ByName, Groups) ->
    {ok, lists:reverse(Groups)};
merge([{Path, #{name := Name} = Group} | Rest], ByName, Groups) ->
    case ByName of
        #{Name := {_, Group}} -> merge(Rest, ByName, Groups);
        #{Name := {First, _}} -> bad(Path, published(Group), {same_as, First});
        #{} -> merge(Rest, ByName, [Group | Groups])
    end.

published(#{name := Name, type := Type, members := Members}) -> {Name, Type, Members}.

-doc "The nodes that are named more than once in a list of groups that is well formed.".
-spec duplicates(sderl_check:path(), [tuple()]) -> [sderl_config:warning()].
duplicates(Path, Groups) ->
    [
        {duplicate_node, Path ++ [Position, Part], Node}
     || {Position, {_, _, Members}} <- lists:enumerate(Groups),
        {Part, Nodes} <- [listed(Members)],
        Node <- lists:usort(Nodes -- lists:usort(Nodes))
    ].

listed({seeds, Nodes}) -> {seeds, Nodes};
listed(Nodes) -> {nodes, Nodes}.
