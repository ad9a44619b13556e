%% SPDX-License-Identifier: Apache-2.0
-module(sderl_announce).
-moduledoc """
The exchange of groups between nodes that share a group (one hop, rule 24): the nodes that have this
node's list, and the nodes that have sent their whole list. Kept by `m:sderl_node`, whose name on
the other nodes it is sent to.

The first message over a link has everything; then changes are enough, so that a change costs the
same in many groups.
""".

-export([new/0, changed/2, tick/1, down/2, asked/2, ask/1, tell/1, hear/3, hear_changes/3]).
-export_type([announced/0]).

-include("../core/sderl_version.hrl").

%% So many ticks lie between two comparisons of what was told with the directory.
-define(COMPARE_TICKS, 30).

-record(a, {
    %% The own s_groups as the mates were told of them, and the mates that told us all of theirs:
    %% of these a change is enough.
    mates :: sderl_mates:mates(),
    heard = #{} :: #{node() => []},
    %% Some of those that told something may share no group with this node any more.
    strangers = false :: boolean(),
    compare = ?COMPARE_TICKS :: pos_integer()
}).
-opaque announced() :: #a{}.

-doc "For a process that begins: `ask/1` and `tell/1` are due.".
-spec new() -> announced().
new() -> #a{mates = sderl_mates:new(node(), sderl_dir:named_memberships())}.

-doc "These own groups changed, or ended.".
-spec changed([Group :: term()], announced()) -> announced().
changed(Groups, A) ->
    tell_changes([{Group, sderl_dir:members(Group)} || Group <- Groups, Group =/= undefined], A).

-doc """
Once a second. A process of a group may end between its entry in the directory and the word of it.
""".
-spec tick(announced()) -> announced().
tick(#a{compare = 1, mates = Mates} = A) ->
    Now = sderl_dir:named_memberships(),
    tell_changes(Now ++ sderl_mates:missing(Now, Mates),
                 A#a{compare = ?COMPARE_TICKS, strangers = true});
tick(#a{compare = Ticks} = A) -> A#a{compare = Ticks - 1}.

-doc "The link to a node is down: over the next one a mate tells all of its groups again.".
-spec down(node(), announced()) -> announced().
down(Node, #a{heard = Heard} = A) -> A#a{heard = maps:remove(Node, Heard)}.

-doc """
The link to a node is up, or it wants to be told all; it is, if it shares a group with this one.
""".
-spec asked(node(), announced()) -> ok.
asked(Node, #a{mates = Mates} = A) -> tell([Node || sderl_mates:is_mate(Node, Mates)], A).

-doc """
Asks all mates to tell everything. With links that were there before this process, what others told
meanwhile went nowhere, and without a change they tell nothing again.
""".
-spec ask(announced()) -> ok.
ask(#a{mates = Mates}) -> lists:foreach(fun ask_node/1, sderl_mates:nodes(Mates)).

ask_node(Node) ->
    _ = erlang:send({sderl_node, Node}, {sderl_tell, ?VSN, node()}, [noconnect]),
    ok.

-doc "Tells all mates all own groups.".
-spec tell(announced()) -> ok.
tell(#a{mates = Mates} = A) -> tell(sderl_mates:nodes(Mates), A).

tell([], _) -> ok;
tell(Nodes, #a{mates = Mates}) ->
    List = sderl_hello:told(sderl_mates:groups(Mates), []),
    lists:foreach(fun(Node) -> send(Node, List) end, Nodes).

send(Node, Told) ->
    sderl_traffic:send({sderl_node, Node}, {sderl_known, ?VSN, node(), Told}, control, Told).

%% Each change says of a group that is shared with its receiver, which heeds it for that
%% (`sderl_hello:heeded/3`).
tell_changes(Memberships, #a{mates = Mates0, heard = Heard, strangers = Strangers} = A0) ->
    Changes = sderl_mates:differing(Memberships, Mates0),
    {Came, Went, Mates} = lists:foldl(fun({Group, Members}, {In, Out, Acc0}) ->
        {MoreIn, MoreOut, Acc} = sderl_mates:change(Group, Members, Acc0),
        {MoreIn ++ In, MoreOut ++ Out, Acc}
    end, {[], [], Mates0}, Changes),
    Left = (Strangers orelse Went =/= [])
        andalso not sderl_dir:unknow_strangers(sderl_mates:nodes(Mates0)),
    A = A0#a{mates = Mates, heard = maps:without(Went, Heard), strangers = Left},
    _ = Changes =/= [] andalso lists:foreach(fun(Node) ->
        case lists:member(Node, Came) of
            true -> tell([Node], A);
            false -> send(Node, {sderl_mates:some_shared(Node, Mates), Changes})
        end
    end, sderl_mates:nodes(Mates)),
    A.

-doc "A node told all of its groups.".
-spec hear(node(), [{Group :: term(), [node()]}], announced()) -> announced().
hear(From, List, #a{heard = Heard, mates = Mates, strangers = Strangers} = A) ->
    sderl_dir:unknow_from(From),
    lists:foreach(fun({G, Nodes}) -> sderl_dir:know(G, Nodes, From) end, List),
    %% The last announcement of a node that left our group may arrive after it has left.
    A#a{heard = Heard#{From => []},
        strangers = Strangers orelse not sderl_mates:is_mate(From, Mates)}.

-doc "A node told what changed; one that did not tell all before is asked to.".
-spec hear_changes(node(), [{Group :: term(), [node()]}], announced()) -> ok.
hear_changes(From, Changes, #a{heard = Heard}) when is_map_key(From, Heard) ->
    lists:foreach(fun({G, []}) -> sderl_dir:unknow(G, From);
                     ({G, Nodes}) -> sderl_dir:know(G, Nodes, From)
                  end, Changes);
hear_changes(From, _, _) ->
    ask_node(From).
