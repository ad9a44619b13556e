%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_copy).
-moduledoc """
The copy of the queues of all routes on every monitoring node, and the messages that keep it equal.
Pure: functions return the messages to send.

The node that leads changes its queues, and sends each change to the others before it acts on it.
The others make the same changes, so that the next leader goes on where this one stopped.
""".

-export([look/5, add/3, done/5, still/1, change/2, hear/2]).
-export_type([copy/0, change/0, told/0, everything/0, tell/0]).

-doc "The alarms, the queues, and their version.".
-type copy() :: {sderl_alarms_core:state(), sderl_alarms_outbox:outbox(),
                 sderl_alarms_replica:replica()}.

-doc "A change of the queues. `done`: a change was delivered to a route, or given up.".
-type change() :: {add, sderl_alarms_outbox:item()} | {done, Route :: binary(), Item :: binary()}.

-doc "A message of another monitoring node.".
-type told() ::
    {sderl_alarms_ask, 1, node()}
    | {sderl_alarms_all, 1, node(), everything()}
    | {sderl_alarms_news, 1, node(), Before :: sderl_alarms_replica:version(),
       sderl_alarms_replica:version(), [change()]}
    | {sderl_alarms_done, 1, Route :: binary(), Item :: binary()}.

-doc "The whole copy. `told`: `sderl_alarms_core:told/1`.".
-type everything() :: #{
    version := sderl_alarms_replica:version(),
    leads := boolean(),
    told := [sderl_alarms_core:alarm()],
    outbox := sderl_alarms_outbox:saved()
}.

-doc "Messages, with their receivers.".
-type tell() :: [{node() | others, told()}].

-doc "Decides whether this node leads from now on. `Chosen`: the master on this node leads.".
-spec look(Chosen :: boolean(), Others :: [node()], Now :: integer(), Wall :: integer(), copy()) ->
    {tell(), copy()}.
look(Chosen, Others, Now, Wall, {Core, Outbox, Replica}) ->
    {Ask, New} = sderl_alarms_replica:look(Chosen, Others, Now, Wall, Replica),
    {[{Node, ask()} || Node <- Ask], led({Core, Outbox, New})}.

ask() -> {sderl_alarms_ask, 1, node()}.

led({Core, Outbox, Replica}) ->
    {sderl_alarms_core:lead(sderl_alarms_replica:leads(Replica), Core), Outbox, Replica}.

-doc "Adds notes to the queues. The other nodes get them before a route does.".
-spec add([sderl_alarms_core:note()], Wall :: sderl_mon_types:t(), copy()) -> {tell(), copy()}.
add([], _, Copy) -> {[], Copy};
add(Notes, Wall, {Core, Outbox, Replica}) ->
    {Items, New} = sderl_alarms_outbox:add(Notes, Wall, Outbox),
    news([{add, Item} || Item <- Items], {Core, New, Replica}).

news(Changes, {Core, Outbox, Replica}) ->
    {Before, After, New} = sderl_alarms_replica:news(Changes, Replica),
    {[{others, {sderl_alarms_news, 1, node(), Before, After, Changes}}], {Core, Outbox, New}}.

-doc "How an attempt of this node ended.".
-spec done(Route :: binary(), Item :: binary(), ok | {error, binary()}, Now :: integer(), copy()) ->
    {tell(), copy()}.
done(Route, Item, Result, Now, {Core, Outbox, Replica}) ->
    New = sderl_alarms_outbox:done(Route, Item, Result, Now, Outbox),
    Copy = {Core, New, Replica},
    case {sderl_alarms_outbox:has(Route, Item, New), sderl_alarms_replica:leads(Replica)} of
        {true, _} -> {[], Copy};
        {false, true} -> news([{done, Route, Item}], Copy);
        %% This node led when the attempt began: the present leader tells the others.
        {false, false} -> {[{others, {sderl_alarms_done, 1, Route, Item}}], Copy}
    end.

-doc "Sends the version, so that a node that has missed a change notices.".
-spec still(copy()) -> {tell(), copy()}.
still({_, _, Replica} = Copy) ->
    case sderl_alarms_replica:leads(Replica) of
        true -> news([], Copy);
        false -> {[], Copy}
    end.

-doc "The rules of this node have other routes.".
-spec change([sderl_alarms_routes:route()], copy()) -> copy().
change(Routes, {Core, Outbox, Replica}) ->
    led({Core, sderl_alarms_outbox:change(Routes, Outbox), sderl_alarms_replica:renew(Replica)}).

-doc "Handles a message of another node.".
-spec hear(told(), copy()) -> {tell(), copy()}.
hear({sderl_alarms_ask, 1, From}, {Core, Outbox, Replica} = Copy) ->
    All = #{version => sderl_alarms_replica:version(Replica),
            leads => sderl_alarms_replica:leads(Replica), told => sderl_alarms_core:told(Core),
            outbox => sderl_alarms_outbox:save(Outbox)},
    {[{From, {sderl_alarms_all, 1, node(), All}}], Copy};
hear({sderl_alarms_all, 1, From, #{version := Version, leads := Leads, told := Told,
                                   outbox := Theirs}}, {Core, Outbox, Replica}) ->
    case sderl_alarms_replica:hear_all(From, Version, Leads, Replica) of
        {do, New} -> {[], {sderl_alarms_core:adopt_all(Told, Core),
                           sderl_alarms_outbox:replace(Theirs, Outbox), New}};
        {ignore, New} -> {[], {Core, Outbox, New}}
    end;
hear({sderl_alarms_news, 1, From, Before, After, Changes}, {Core, Outbox, Replica}) ->
    case sderl_alarms_replica:hear_news(Before, After, Replica) of
        {do, New} -> {[], lists:foldl(fun follow/2, {Core, Outbox, New}, Changes)};
        {ask, New} -> {[{From, ask()}], led({Core, Outbox, New})};
        {ignore, New} -> {[], {Core, Outbox, New}}
    end;
hear({sderl_alarms_done, 1, Route, Item}, {_, Outbox, Replica} = Copy) ->
    Done = {done, Route, Item},
    Left = follow(Done, Copy),
    case sderl_alarms_outbox:has(Route, Item, Outbox) andalso sderl_alarms_replica:leads(Replica) of
        true -> news([Done], Left);
        false -> {[], Left}
    end.

follow({add, #{alarm := Alarm} = Item}, {Core, Outbox, Replica}) ->
    {sderl_alarms_core:adopt(Alarm, Core), sderl_alarms_outbox:enqueue([Item], Outbox), Replica};
follow({done, Route, Item}, {Core, Outbox, Replica}) ->
    {Core, sderl_alarms_outbox:drop(Route, Item, Outbox), Replica}.
