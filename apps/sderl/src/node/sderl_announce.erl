%% SPDX-License-Identifier: Apache-2.0
-module(sderl_announce).
-moduledoc """
The exchange of lists of groups between nodes that share a group (one hop, rule 24): which nodes
have this node's list, and which have sent their whole list. It is part of the state of
`m:sderl_node`, to which the messages go on other nodes.

The first message over a link has the whole list, later ones have the changes, so that a change
costs the same however many groups there are.
""".

-export([new/0, changed/2, tick/1, down/2, asked/2, ask/1, tell/1, hear/3, hear_changes/3]).
-export_type([announced/0]).

-include("../core/sderl_version.hrl").

%% Ticks between two comparisons of the announced groups with the directory.
-define(COMPARE_TICKS, 30).

-record(a, {
    %% The own s_groups as they were announced to the mates, and the mates that sent us their whole
    %% lists: of these a change is enough.
    mates :: sderl_mates:mates(),
    heard = #{} :: #{node() => []},
    %% Some nodes that sent lists may share no group with this node any more.
    strangers = false :: boolean(),
    compare = ?COMPARE_TICKS :: pos_integer()
}).
-opaque announced() :: #a{}.

-doc "The state of a new process: `ask/1` and `tell/1` are due.".
-spec new() -> announced().
new() -> #a{mates = sderl_mates:new(node(), sderl_dir:named_memberships())}.

-doc "These own groups changed, or ended.".
-spec changed([Group :: term()], announced()) -> announced().
changed(Groups, A) ->
    tell_changes([{Group, sderl_dir:members(Group)} || Group <- Groups, Group =/= undefined], A).

-doc """
Called once a second. A process of a group may end after it changed the directory and before it told
the node server.
""".
-spec tick(announced()) -> announced().
tick(#a{compare = 1, mates = Mates} = A) ->
    Now = sderl_dir:named_memberships(),
    tell_changes(Now ++ sderl_mates:missing(Now, Mates),
                 A#a{compare = ?COMPARE_TICKS, strangers = true});
tick(#a{compare = Ticks} = A) -> A#a{compare = Ticks - 1}.

-doc "The link to a node is down: over the next one a mate sends its whole list again.".
-spec down(node(), announced()) -> announced().
down(Node, #a{heard = Heard} = A) -> A#a{heard = maps:remove(Node, Heard)}.

-doc """
The link to a node is up, or the node asks for the whole list: it gets that if it shares a group
with this node.
""".
-spec asked(node(), announced()) -> ok.
asked(Node, #a{mates = Mates} = A) -> tell([Node || sderl_mates:is_mate(Node, Mates)], A).

-doc """
Asks all mates for their whole lists. Over links that were up before this process, what they sent
meanwhile was lost, and without a change they would send nothing.
""".
-spec ask(announced()) -> ok.
ask(#a{mates = Mates}) -> lists:foreach(fun ask_node/1, sderl_mates:nodes(Mates)).

ask_node(Node) ->
    _ = erlang:send({sderl_node, Node}, {sderl_tell, ?VSN, node()}, [noconnect]),
    ok.

-doc "Sends all own groups to all mates.".
-spec tell(announced()) -> ok.
tell(#a{mates = Mates} = A) -> tell(sderl_mates:nodes(Mates), A).

tell([], _) -> ok;
tell(Nodes, #a{mates = Mates}) ->
    List = sderl_hello:told(sderl_mates:groups(Mates), []),
    lists:foreach(fun(Node) -> send(Node, List) end, Nodes).

send(Node, Told) ->
    sderl_traffic:send({sderl_node, Node}, {sderl_known, ?VSN, node(), Told}, control, Told).

%% Each message of changes names a group that is shared with its receiver, which therefore accepts
%% it (`sderl_hello:heeded/3`).
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

-doc "A node sent its whole list of groups.".
-spec hear(node(), [{Group :: term(), [node()]}], announced()) -> announced().
hear(From, List, #a{heard = Heard, mates = Mates, strangers = Strangers} = A) ->
    sderl_dir:unknow_from(From),
    lists:foreach(fun({G, Nodes}) -> sderl_dir:know(G, Nodes, From) end, List),
    %% The last announcement of a node that left our group may arrive after it has left.
    A#a{heard = Heard#{From => []},
        strangers = Strangers orelse not sderl_mates:is_mate(From, Mates)}.

-doc "A node sent changes. If it has not sent its whole list it is asked for that.".
-spec hear_changes(node(), [{Group :: term(), [node()]}], announced()) -> ok.
hear_changes(From, Changes, #a{heard = Heard}) when is_map_key(From, Heard) ->
    lists:foreach(fun({G, []}) -> sderl_dir:unknow(G, From);
                     ({G, Nodes}) -> sderl_dir:know(G, Nodes, From)
                  end, Changes);
hear_changes(From, _, _) ->
    ask_node(From).
