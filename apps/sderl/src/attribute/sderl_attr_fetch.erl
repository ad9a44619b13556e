%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_fetch).
-moduledoc false.
%% Values of attributes of many nodes: values that are known and not too old are taken, the others
%% are asked for. No link is opened for that.
%%
%% A node with a link is asked itself. For one without a link a gateway is asked: a linked node that
%% shares a group with it, and so has its values, or asks it. As few gateways as reach all nodes are
%% asked; if one does not answer in half of the time, or does not know, the next one is. If no
%% gateway is linked, `sderl_route` takes the question to some member of a group of that node.
%%
%% A node that does not answer in time, for itself or as a gateway, is not asked again for a period
%% of sharing, unless it sends something before: a hanging node costs its time limit once, and not
%% for every caller.
%%
%% Questions are sent by a helper process, which may block on a stopped node behind a full link, or
%% get late answers, without harm to the caller.

-export([fetch/4, for_others/4, has/3, cover/2]).
-import(sderl_clock, [now_ms/0]).
-export_type([got/0]).

%% Its helper process answers with its exit reason.
-dialyzer({nowarn_function, [ask/4]}).

-define(VSN, 1).
-define(SERVER, sderl_attr_server).

-type names() :: [sderl_attr:name()].
-doc "The entries of one node, with their present ages.".
-type got() :: {ok, [sderl_attr_table:entry()]} | {error, Reason :: atom()}.

%% The open questions: for which node, through which node, and when each was sent.
-type label() ::
    {direct, node(), SentAt :: integer()} | {gateway, node(), [node()], SentAt :: integer()}.

-record(f, {
    names :: #{node() => names()},
    max_age :: non_neg_integer(),
    timeout :: non_neg_integer(),
    deadline :: integer(),
    requests :: gen_server:request_id_collection(),
    %% The remaining ways to ask, for each node without a link: gateways, then the groups to route
    %% to.
    ways = #{} :: #{node() => [{gateway, node()} | {route, term()}]},
    routed = #{} :: #{reference() => {[node()], SentAt :: integer()}},
    got = #{} :: #{node() => {SentAt :: integer(), [sderl_attr_table:entry()]} | {error, atom()}}
}).

-doc "For each node its entries, or why there are none. At most `Timeout` ms.".
-spec fetch([node()], names(), MaxAge :: non_neg_integer(), Timeout :: non_neg_integer()) ->
    #{node() => got()}.
fetch(Nodes, Names, MaxAge, Timeout) -> fetch(Nodes, Names, MaxAge, Timeout, all).

-doc """
On behalf of a node that has no link to these: from the table, or asked over a link of this node. An
attribute that is shared in one group only is left out.
""".
-spec for_others([node()], names(), MaxAge :: non_neg_integer(), Timeout :: non_neg_integer()) ->
    #{node() => {values, [sderl_attr_table:entry()]} | {error, atom()}}.
for_others(Nodes, Names, MaxAge, Timeout) ->
    {Open, Closed} = lists:partition(fun(Name) -> sderl_attr_share:group(Name) =:= all end, Names),
    Untold = [{Name, undefined, not_told, 0, static, 0} || Name <- Closed],
    #{Node => case Got of {ok, Entries} -> {values, Entries ++ Untold}; Error -> Error end
      || Node := Got <- fetch(Nodes, Open, MaxAge, Timeout, linked)}.

-doc "Whether the table has all of these, not too old.".
-spec has([node()], names(), MaxAge :: non_neg_integer()) -> boolean().
has(Nodes, Names, MaxAge) ->
    Now = now_ms(),
    lists:all(fun(Node) ->
        lists:all(fun(Name) -> is_fresh(sderl_attr_table:fresh(Node, Name, Now, MaxAge)) end, Names)
    end, Nodes).

fetch(Nodes, Names, MaxAge, Timeout, Ways) ->
    Now = now_ms(),
    Known = #{Node => [{Name, sderl_attr_table:fresh(Node, Name, Now, MaxAge)} || Name <- Names]
              || Node <- Nodes},
    Missing = #{Node => Stale
                || Node := Looks <- Known,
                   [_ | _] = Stale <- [[N || {N, L} <- Looks, not is_fresh(L)]]},
    {Silent, Asked} =
        lists:partition(fun(Node) -> Timeout =:= 0 orelse sderl_attr_table:is_silent(Node, Now) end,
                        maps:keys(Missing)),
    Errors = #{Node => {error, timeout} || Node <- Silent},
    Got = case Asked of
        [] -> Errors;
        _ -> maps:merge(Errors, ask(maps:with(Asked, Missing), MaxAge, Timeout, Ways))
    end,
    Then = now_ms(),
    #{Node => case Got of
                  #{Node := {error, Why}} -> {error, Why};
                  #{Node := {SentAt, Entries}} -> {ok, merge(Looks, SentAt, Entries, Then)};
                  #{} -> {ok, [Entry || {_, {fresh, Entry}} <- Looks]}
              end || Node := Looks <- Known}.

is_fresh({fresh, _}) -> true;
is_fresh(_) -> false.

%% In the order of the question; what a node of an older version does not send is not set there.
merge(Looks, SentAt, Entries, Now) ->
    [case Look of
        {fresh, Entry} -> Entry;
        _ ->
            case lists:keyfind(Name, 1, Entries) of
                {Name, Value, Why, Age, Kind, V} -> {Name, Value, Why, Age + Now - SentAt, Kind, V};
                _ -> {Name, undefined, not_set, Now - SentAt, static, 0}
            end
    end || {Name, Look} <- Looks].

%% ---------------------------------------------------------------- asking

ask(Missing, MaxAge, Timeout, Ways) ->
    {_, Ref} = spawn_monitor(fun() ->
        _ = process_flag(async_dist, true),
        exit({got, questions(Missing, MaxAge, Timeout, Ways)})
    end),
    receive
        {'DOWN', Ref, process, _, {got, Got}} -> Got;
        {'DOWN', Ref, process, _, _} -> #{Node => {error, failed} || Node := _ <- Missing}
    end.

questions(Missing, MaxAge, Timeout, Which) ->
    Now = now_ms(),
    Linked = nodes(connected),
    {Direct, Far} = lists:partition(fun(N) -> N =:= node() orelse lists:member(N, Linked) end,
                                    maps:keys(Missing)),
    F0 = #f{names = Missing, max_age = MaxAge, timeout = Timeout, deadline = Now + Timeout,
            requests = gen_server:reqids_new(), ways = ways(Which, Far, Linked)},
    F1 = lists:foldl(fun(Node, F) -> direct(Node, F) end, F0, Direct),
    #f{got = Got, requests = Open} = wait(Now + Timeout div 2, onward(Far, F1)),
    All = #{Node => maps:get(Node, Got, {error, timeout}) || Node := _ <- Missing},
    %% With a short time limit it is less certain that the node does not answer at all.
    Until = now_ms() + min(sderl_attr_config:value(attribute_share_ms), 4 * Timeout),
    Silent = [{Node, Until} || Node := {error, timeout} <- All, Node =/= node()]
        ++ [{{gateway, Gateway}, Until}
            || {_, {gateway, Gateway, _, _}} <- gen_server:reqids_to_list(Open)],
    ok = sderl_attr_client:keep([{Node, how(Node, Far), SentAt, Entries}
                                 || Node := {SentAt, Entries} <- All, is_integer(SentAt)], Silent),
    All.

how(Node, Far) ->
    case lists:member(Node, Far) of
        true -> far;
        false -> direct
    end.

ways(linked, Far, _) -> #{Node => [] || Node <- Far};
ways(all, Far, Linked) ->
    Own = sderl_dir:memberships(),
    Known = sderl_dir:known(),
    Groups = Known ++ Own,
    Routed = case Far of [] -> []; _ -> sderl_route:groups() end,
    Now = now_ms(),
    Speaks = [Gateway
              || Gateway <- Linked, not sderl_attr_table:is_silent({gateway, Gateway}, Now)],
    #{Node => lists:append(
        [{gateway, Gateway}
         || Gateway <- lists:usort(lists:append([Ns || {_, Ns} <- Groups, lists:member(Node, Ns)])),
            lists:member(Gateway, Speaks)],
        [{route, G} || G <- lists:usort([G || {G, Ns} <- Known ++ Routed, lists:member(Node, Ns),
                                              not lists:keymember(G, 1, Own)])]
    )
      || Node <- Far}.

direct(Node, #f{names = Names, max_age = MaxAge} = F) ->
    send(Node, {get, maps:get(Node, Names), MaxAge}, {direct, Node, now_ms()}, F).

-spec send(node(), term(), label(), #f{}) -> #f{}.
send(To, Question, Label, #f{requests = Requests} = F) ->
    %% Requests are sent without connecting: a link that goes in this very moment is not opened
    %% again.
    F#f{requests = gen_server:send_request({?SERVER, To}, {sderl_attr, ?VSN, Question}, Label,
                                           Requests)}.

%% The next way for each of these nodes, with as few questions as possible.
onward(Nodes, #f{ways = Ways, got = Got} = F0) ->
    {Some, None} = lists:partition(fun(Node) -> maps:get(Node, Ways) =/= [] end,
                                   [N || N <- Nodes, not answered(N, Got)]),
    {Chosen, Rest} = cover(#{Node => [Gw || {gateway, Gw} <- maps:get(Node, Ways)] || Node <- Some},
                           []),
    F1 = lists:foldl(fun({Gateway, For}, F) ->
        Names = lists:usort(lists:append([maps:get(N, F#f.names) || N <- For])),
        Question = {'of', For, Names, F#f.max_age, left(F)},
        send(Gateway, Question, {gateway, Gateway, For, now_ms()}, used({gateway, Gateway}, For, F))
    end, F0, Chosen),
    ByGroup = maps:groups_from_list(fun(Node) -> hd(maps:get(Node, F1#f.ways)) end, Rest),
    F2 = maps:fold(fun({route, Group} = Way, For, F) -> route(Group, For, used(Way, For, F)) end,
                   F1, ByGroup),
    lists:foldl(fun(Node, F) -> failed(Node, no_route, F) end, F2, None).

answered(Node, Got) ->
    case Got of
        #{Node := {SentAt, _}} -> is_integer(SentAt);
        #{} -> false
    end.

used(Way, For, #f{ways = Ways} = F) ->
    Left = fun(Node, Of) ->
        case lists:member(Node, For) of
            true -> lists:delete(Way, Of);
            false -> Of
        end
    end,
    F#f{ways = maps:map(Left, Ways)}.

%% Time for the gateway to ask and for its answer to come back.
left(#f{deadline = Deadline}) -> max(0, (Deadline - now_ms()) * 8 div 10).

route(Group, For, #f{names = Names, max_age = MaxAge, routed = Routed} = F) ->
    Left = left(F),
    Asked = lists:usort(lists:append([maps:get(N, Names) || N <- For])),
    Question = {sderl_attr, ?VSN, {'of', For, Asked, MaxAge, Left}},
    Alias = alias(),
    _ = spawn_link(fun() ->
        Alias ! {routed, Alias, sderl_route:call_any(Group, ?SERVER, Question, Left)}
    end),
    F#f{routed = Routed#{Alias => {For, now_ms()}}}.

-doc """
Which gateways to ask for which nodes: few that reach all. Among gateways that reach equally many, a
hash of the nodes chooses, so that not all nodes ask the same one. Nodes without a gateway are left
over.
""".
-spec cover(#{node() => [Gateway :: node()]}, [{node(), [node()]}]) ->
    {[{Gateway :: node(), For :: [node()]}], [node()]}.
cover(Nodes, Chosen) ->
    Reach = maps:groups_from_list(fun({Gw, _}) -> Gw end, fun({_, Node}) -> Node end,
                                  [{Gw, Node} || Node := Gws <- Nodes, Gw <- lists:usort(Gws)]),
    case map_size(Reach) of
        0 -> {lists:reverse(Chosen), lists:sort(maps:keys(Nodes))};
        _ ->
            {_, _, Best} = lists:max([{length(For), erlang:phash2({Gw, node()}), Gw}
                                      || Gw := For <- Reach]),
            #{Best := For} = Reach,
            cover(maps:without(For, Nodes), [{Best, lists:sort(For)} | Chosen])
    end.

%% ---------------------------------------------------------------- answers

%% At half time other gateways are asked for the nodes that are still open.
wait(_, #f{names = Names, got = Got} = F) when map_size(Got) =:= map_size(Names) ->
    case [N || N := {error, _} <- Got, is_map_key(N, F#f.ways), pending(N, F)] of
        [] -> F;
        _ -> receive_until(F#f.deadline, none, F)
    end;
wait(Half, F) -> receive_until(case Half of none -> F#f.deadline; _ -> Half end, Half, F).

receive_until(Until, Half, #f{requests = Requests, routed = Routed} = F) ->
    receive
        {routed, Alias, Result} when is_map_key(Alias, Routed) ->
            {{For, SentAt}, Rest} = maps:take(Alias, Routed),
            wait(Half, of_others(Result, For, SentAt, F#f{routed = Rest}));
        Message ->
            case gen_server:check_response(Message, Requests, true) of
                {{reply, Reply}, Label, Rest} ->
                    wait(Half, reply(Reply, Label, F#f{requests = Rest}));
                {{error, {Reason, _}}, Label, Rest} ->
                    wait(Half, down(Reason, Label, F#f{requests = Rest}));
                _ -> receive_until(Until, Half, F)
            end
    after max(0, Until - now_ms()) ->
        case Half of
            none -> F;
            _ -> wait(none, onward([N || N := [_ | _] <- F#f.ways, not is_map_key(N, F#f.got)], F))
        end
    end.

pending(Node, #f{requests = Requests, routed = Routed}) ->
    lists:any(fun({_, {gateway, _, For, _}}) -> lists:member(Node, For); (_) -> false end,
              gen_server:reqids_to_list(Requests))
        orelse lists:any(fun({For, _}) -> lists:member(Node, For) end, maps:values(Routed)).

reply({values, Entries}, {direct, Node, SentAt}, F) when is_list(Entries) ->
    got(Node, SentAt, Entries, F);
reply({'of', Map}, {gateway, _, For, SentAt}, F) when is_map(Map) ->
    of_others({ok, {'of', Map}}, For, SentAt, F);
reply(_, Label, F) -> down(unknown_question, Label, F).

down(Reason, {direct, Node, _}, F) -> failed(Node, reason(Reason), F);
down(Reason, {gateway, _, For, _}, F) ->
    onward(For, lists:foldl(fun(N, Acc) -> failed(N, reason(Reason), Acc) end, F, For)).

reason(noproc) -> not_running;
reason(noconnection) -> no_link;
reason(unknown_question) -> unknown_question;
reason(_) -> failed.

of_others({ok, {'of', Map}}, For, SentAt, F0) when is_map(Map) ->
    F = lists:foldl(fun(Node, Acc) ->
        case Map of
            #{Node := {values, Entries}} when is_list(Entries) -> got(Node, SentAt, Entries, Acc);
            #{Node := {error, Why}} when is_atom(Why) -> failed(Node, Why, Acc);
            #{} -> failed(Node, failed, Acc)
        end
    end, F0, For),
    onward([N || N <- For, not answered(N, F#f.got), maps:get(N, F#f.ways) =/= []], F);
of_others(Error, For, _, F0) ->
    Why = case Error of {error, W} when is_atom(W) -> W; _ -> failed end,
    F = lists:foldl(fun(N, Acc) -> failed(N, Why, Acc) end, F0, For),
    onward([N || N <- For, not answered(N, F#f.got), maps:get(N, F#f.ways) =/= []], F).

got(Node, SentAt, Entries, #f{got = Got} = F) -> F#f{got = Got#{Node => {SentAt, Entries}}}.

failed(Node, Why, #f{got = Got} = F) ->
    case Got of
        %% Any other failure says more than `no_route`.
        #{Node := {error, no_route}} -> F#f{got = Got#{Node := {error, Why}}};
        #{Node := _} -> F;
        #{} -> F#f{got = Got#{Node => {error, Why}}}
    end.
