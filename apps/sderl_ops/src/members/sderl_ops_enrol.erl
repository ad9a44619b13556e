%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_enrol).
-moduledoc """
How a member without a part of the store gets one: it makes the store with the others, joins the
store that is there, or waits and says for what.
""".

-export([try_it/3, decide/4]).
-export_type([told/0, answers/0]).

-doc """
What a member tells another one. `brings`: it has the data of a service with one member.
""".
-type told() :: #{
    stage := sderl_ops_raft:stage(),
    members := [node()],
    roster := sderl_ops_raft:roster(),
    brings => boolean()
}.

-doc "What each member has told, or why it has not.".
-type answers() :: #{node() => told() | silent | refused}.

-doc "Does what `decide/4` says; `Ask` gives what members tell, in the order of the nodes.".
-spec try_it(file:filename(), sderl_ops_raft:mark(),
             Ask :: fun(([node()]) -> [{ok, told()} | term()])) ->
    ok | {waits, unicode:chardata()}.
try_it(Folder, #{self := #{node := Self} = Own, members := Members} = Mark, Ask) ->
    Nodes = [Node || #{node := Node} <- Members],
    Asked = [Node || Node <- Nodes, Node =/= Self, net_kernel:connect_node(Node) =:= true],
    Told = Ask(Asked),
    Unlinked = [Member || #{node := Node} = Member <- Members,
                          Node =/= Self, not lists:member(Node, Asked)],
    Answers = maps:merge(sderl_ops_links:why_not(Unlinked),
                         #{Node => Answer || {Node, {ok, Answer}} <- lists:zip(Asked, Told)}),
    case decide(Self, sderl_ops_moved:is_there(Folder), Nodes, Answers) of
        found ->
            Others = [Member || #{node := Node} = Member <- Members, Node =/= Self],
            done(found(Folder, Mark, Others));
        {join, Via} ->
            done(join(Folder, Via));
        {add, Why} ->
            {waits, [Why, "; \"bin/sderl ops members add ", sderl_ops_roster:words(Own),
                     "\" on another member lets it come"]};
        {waits, _} = Waits ->
            Waits
    end.

%% The cluster's cookie is made together with the store, before the first revision.
found(Folder, Mark, Others) ->
    maybe
        ok ?= sderl_ops_share:ensure_cookie(Folder),
        sderl_ops_raft:found(Folder, Mark, Others)
    end.

join(Folder, Via) ->
    maybe
        ok ?= sderl_ops_share:pull_cookie(Folder, Via),
        sderl_ops_raft:join(Folder, Via)
    end.

done(ok) -> ok;
done({error, Why}) ->
    {waits, io_lib:format("it could not join, and tries again: ~0tP", [Why, 12])}.

-doc """
What to do, by the answers of the others. Pure.

The store is made when all members answer, name the same members, and have no store: by the one that
brings the data of a service with one member, or else by the first one by name. An existing store is
joined by the members that it expects.
""".
-spec decide(Self :: node(), Brings :: boolean(), Members :: [node()], answers()) ->
    found | {join, Via :: node()} | {waits | add, Why :: unicode:chardata()}.
decide(Self, Brings, Members, Answers) ->
    case [{Node, Roster} || Node := #{stage := member, roster := Roster}
                                <- maps:iterator(Answers, ordered),
                            Roster =/= #{}] of
        [] -> decide_unknown(Self, Brings, lists:sort(Members), Answers);
        [_ | _] = Stores -> decide_join(Self, Stores)
    end.

%% A member that has just started may have a store that it has not read yet.
decide_unknown(Self, Brings, Members, Answers) ->
    case [Node || Node := #{stage := member} <- maps:iterator(Answers, ordered)] of
        [] -> decide_first(Self, Brings, Members, Answers);
        [Node | _] -> {waits, [atom_to_list(Node), " has the store, and is about to tell of it"]}
    end.

decide_first(Self, Brings, Members, Answers) ->
    Refused = [Node || Node := refused <- maps:iterator(Answers, ordered)],
    Missing = [Node || Node <- Members, Node =/= Self,
                       not is_map(maps:get(Node, Answers, silent))],
    Other = [Node || Node := #{members := Named} <- maps:iterator(Answers, ordered),
                     Named =/= Members],
    Bringers = lists:sort([Self || Brings] ++ [Node || Node := #{brings := true} <- Answers]),
    case {Other, Refused, Missing} of
        {[Node | _], _, _} ->
            {waits, [atom_to_list(Node), " names other members than this one: give all the same "
                     "--members"]};
        {[], [_ | _], _} ->
            {waits, ["there is no link to ", words(Refused), ", though something listens there: is "
                     "members.cookie the same, and is this one among the --members there?"]};
        {[], [], [_ | _]} ->
            {waits, ["the first start needs all members, and these do not answer: ",
                     words(Missing)]};
        {[], [], []} ->
            decide_founder(Self, Bringers, Members)
    end.

decide_founder(_, [_, _ | _] = Bringers, _) ->
    {waits, ["each of ", words(Bringers), " has the store of a service with one member, and only "
             "one can be continued: start the others with empty folders"]};
decide_founder(Self, Bringers, Members) ->
    case hd(Bringers ++ Members) of
        Self -> found;
        Founder -> {waits, [atom_to_list(Founder), " makes the store"]}
    end.

words(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

decide_join(Self, Stores) ->
    case [Node || {Node, #{Self := {_, expected}}} <- Stores] of
        [Via | _] ->
            {join, Via};
        [] ->
            case Stores of
                [{_, #{Self := _}} | _] -> {add, "its store is lost"};
                _ -> {add, "the members that are there do not expect it"}
            end
    end.
