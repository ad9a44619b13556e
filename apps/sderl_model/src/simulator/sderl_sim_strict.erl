%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_strict).
-moduledoc """
Promises of a simulated group that need not be checked: one function for each, under its name.

The option `strict` names those that are checked; without it they are those of `usual/1`. The
promises that are always checked are in `m:sderl_sim_check` and `m:sderl_sim_settle`.

| promise | what it says |
|---|---|
| `one_answers` | since all members were last one component, no older epoch has ordered and answered anything after a younger one did (with `answer => applied`: at most one batch), unless a link was lost, a process ended or began, or the documented bound passed |
| `tokens_grow` | the token of a registration never falls on a node where its home counts, neither at a merge nor when a clash is settled for it |
| `losers_hear` | a process that lost its name in a clash was told, if its node still runs |
| `no_means_no` | an operation that was answered `no` is in no table of any component, and in no later batch |
| `explained_no` | a registration is refused as one of an unreachable process only if its node is a member that does not count in the component, and as one of no member only if the asking node is none |
| `no_ghosts` | in the end no member has a peer to which it has no link |
| `all_return` | in the end every node of the launch configuration that runs is a member, unless its removal was asked for |
""".
-include("sderl_sim.hrl").

-export([names/0, usual/1, ticked/3, decided/3, answered/4, wrote/4, recorded/4,
         applying/5, told/3, refused/4, asked/3, settled/3]).

-import(sderl_sim_world,
        [violation/3, node/2, member/3, book/2, keep_book/3, seen/3, nodes_of/2, alive/2]).

%% A minority that is only silent continues alone after so long, and not before.
-define(BOUND_MS, 15_000).
-define(TICK_MS, 1000).

-doc "The promises.".
-spec names() -> [atom()].
names() ->
    [one_answers, tokens_grow, losers_hear, no_means_no, explained_no, no_ghosts, all_return].

-doc """
The promises that are checked in groups of a mode, without the option. In majority mode nothing
clashes, so that tokens always grow. And a minority's table may have what the majority refused; what
a `no` means is checked by `sderl_sim_majority` there.
""".
-spec usual(available | majority) -> [atom()].
usual(available) -> names();
usual(majority) -> names() -- [no_means_no, losers_hear].

asks(Promise, #w{strict = Strict}) -> lists:member(Promise, Strict).

%% ---------------------------------------------------------------- one component answers

-doc "A coordinator has had a tick: checks whether all are one component.".
-spec ticked(node(), term(), #w{}) -> #w{}.
ticked(N, G, #w{now = Now} = W) ->
    case asks(one_answers, W) andalso seen(N, G, W) of
        #{role := coord, lineage := E, view := View} ->
            #b{unheard = Unheard} = B = book(G, W),
            All = lists:all(fun(M) -> is_with(M, G, N, E, View, W) end, nodes_of(G, W)),
            case {is_heard(N, View, W), All andalso is_meshed(G, W)} of
                {true, true} -> keep_book(G, B#b{whole = Now, ordered = #{}, unheard = #{}}, W);
                {true, false} -> W;
                {false, _} -> keep_book(G, B#b{unheard = Unheard#{E => Now}}, W)
            end;
        _ -> W
    end.

%% If nothing arrives over links that exist, their ends have not missed each other yet.
is_heard(N, View, #w{silent = Silent}) ->
    Ways = lists:append([[{N, M}, {M, N}] || M := _ <- View]),
    not lists:any(fun(Way) -> is_map_key(Way, Silent) end, Ways).

%% A node that takes no part in the group does not matter. (One that still follows may have been
%% dropped: its link broke before, and it has not noticed that yet.)
is_with(M, G, N, E, View, W) ->
    case {seen(M, G, W), node(M, W)} of
        {#{lead := N, lineage := E, syncing := false}, #n{version = 1}} ->
            maps:get(M, View, none) =:= live;
        {none, _} -> member(M, G, W) =:= none orelse (member(M, G, W))#m.store =:= undefined;
        _ -> false
    end.

%% A link may have broken without a node having noticed yet.
is_meshed(G, W) ->
    Up = [M || M <- nodes_of(G, W), sderl_sim_world:up(M, W)],
    lists:all(fun({A, B}) -> sderl_sim_net:stands(A, B, W) end,
              [{A, B} || A <- Up, B <- Up, A < B]).

-doc "An operation of a list that was decided at these positions is answered on a node.".
-spec answered(node(), term(), term(), #w{}) -> #w{}.
answered(N, G, Where, #w{broke = Broke} = W) ->
    case asks(one_answers, W) andalso book(G, W) of
        #b{whole = Whole} = B when is_integer(Whole), Broke =< Whole -> answers(N, G, Where, B, W);
        _ -> W
    end.

answers(N, G, Where, #b{log = Log, ordered = Ordered0, whole = Whole, unheard = Unheard} = B, W) ->
    %% A list that is sent again may also be in a batch that its member never had.
    #{lineage := Own, num := Num, history := History} = seen(N, G, W),
    Ends = maps:from_list([{Own, Num} | History]),
    Here = [Pos || {E, K} = Pos <- Where, K =< maps:get(E, Ends, -1)],
    case [{E, At} || {E, _} = Pos <- Here, #{Pos := {At, _}} <- [Log], At > Whole] of
        [] -> W;
        %% A coordinator that hears too few members over existing links continues without them,
        %% after the bound.
        [{E, At} | _] when At - Whole > ?BOUND_MS, At - map_get(E, Unheard) =< 2 * ?TICK_MS -> W;
        [{E, At} | _] ->
            Ordered = Ordered0#{E => lists:usort([At | maps:get(E, Ordered0, [])])},
            _ = [violation(one_answers, [{older, Older, lists:max(Late)},
                                         {younger, Younger, FirstYounger}, {whole, Whole}], W)
                 || Older := Batches <- Ordered, Younger := [FirstYounger | _] <- Ordered,
                    Older < Younger,
                    Late <- [[T || T <- Batches, T > FirstYounger]],
                    length(Late) > unacknowledged(W),
                    FirstYounger - Whole =< ?BOUND_MS],
            keep_book(G, B#b{ordered = Ordered}, W)
    end.

%% The number of batches that may be answered without acknowledgements of the members that follow
%% the younger epoch.
unacknowledged(W) ->
    case sderl_sim_world:option(answer, committed, W) of
        committed -> 0;
        applied -> 1
    end.

%% ---------------------------------------------------------------- tokens

-doc "A member has written the rows of these names.".
-spec wrote(node(), term(), [term()], #w{}) -> #w{}.
wrote(N, G, Names, W) ->
    case {asks(tokens_grow, W), asks(no_means_no, W)} of
        {false, false} -> W;
        {Tokens, Refused} ->
            #n{life = Life} = node(N, W),
            #m{store = Store} = member(N, G, W),
            lists:foldl(fun(Name, Acc) ->
                case sderl_sim_store:lookup(Store, Name) of
                    none -> Acc;
                    Row ->
                        _ = Refused andalso no_means_no(N, G, Row, Acc),
                        case Tokens of
                            true -> tokens_grow(N, G, Life, Row, Acc);
                            false -> Acc
                        end
                end
            end, W, Names)
    end.

%% A registration that comes with a merge keeps its token, and one that ended on this side meanwhile
%% may have had a higher token. The shard of a home that does not count is only as new as the
%% component's own copy of it. And the name of a process whose node was removed has a home on each
%% side.
tokens_grow(_, _, _, ?ROW_OF_AT(Pid, Home), W) when node(Pid) =/= Home -> W;
tokens_grow(N, G, Life, ?ROW(Name, Pid, Home, Token, _), W) ->
    #b{tokens = Tokens} = B = book(G, W),
    Key = {N, Life, Name},
    case Tokens of
        #{Key := {Pid, Was}} when Token < Was ->
            counts(Home, N, G, W)
                andalso violation(tokens_grow, [N, Name, {same, Pid}, Was, Token], W),
            W;
        #{Key := {Pid, Token}} -> W;
        _ -> keep_book(G, B#b{tokens = Tokens#{Key => {Pid, Token}}}, W)
    end.

counts(N, N, _, _) -> true;
counts(Home, N, G, W) ->
    case seen(N, G, W) of
        #{view := #{Home := Place}} -> Place =:= live;
        _ -> false
    end.

%% ---------------------------------------------------------------- no means no

-doc "The only registration of a process was answered `no`.".
-spec refused(term(), term(), pid(), #w{}) -> ok.
refused(G, Id, Pid, W) ->
    asks(no_means_no, W) andalso
        [violation(no_means_no, [Id, in_the_table_of, N, Name], W)
         || N <- nodes_of(G, W), #m{store = Store} <- [member(N, G, W)], Store =/= undefined,
            {ok, Name} <- [sderl_sim_store:held_by(Store, Pid)], is_kept(Id, N, G, Name, Store, W)],
    ok.

%% A component that the home of a name has left, or is about to leave, may have the name until that
%% is ordered: the home does not have it, and no other node brings it to a merge. So may a member
%% that is behind the home's log. A table whose process died belongs to the log of the next process.
is_kept(Id, N, G, Name, Store, #w{ops = Ops} = W) ->
    #{Id := #{node := Origin}} = Ops,
    ?ROW(_, Pid, Home, {Epoch, Seq}, _) = sderl_sim_store:lookup(Store, Name),
    Whole = sderl_sim_store:whole(Store),
    case {table_log(N, G, Store, W), seen(Home, G, W)} of
        %% A learner has rows of its former log until its snapshot ends.
        _ when N =/= Home, not Whole -> false;
        %% The end of a log, which no member continues, removed the process's node. (`not_applied`
        %% checks whether the row comes to a merge.)
        {#{lead := undefined, lineage := {_, N} = Epoch, num := Num}, _} when node(Pid) =/= Home ->
            sderl_core:batch_of(Seq) < Num;
        {#{lineage := E, num := Num}, #{lineage := Own, num := At}} when Home =:= Origin ->
            E =:= Own andalso Num >= At;
        _ -> true
    end.

table_log(N, G, Store, W) ->
    case {seen(N, G, W), sderl_sim_store:recover(Store)} of
        {none, #{log := {Num, _}, log_epoch := Epoch}} -> #{lineage => Epoch, num => Num};
        {Seen, _} -> Seen
    end.

%% Earlier batches may still reach a member that is behind.
no_means_no(N, G, {_, Pid, _, {E, Seq}, _} = Row, W) ->
    case book(G, W) of
        #b{refused = #{Pid := {Id, _, At}}, used = #{Pid := 1}, log = Log} ->
            Pos = {E, sderl_core:batch_of(Seq)},
            case Log of
                #{Pos := {Ordered, _}} when Ordered =< At -> ok;
                _ -> violation(no_means_no, [Id, N, Row], W)
            end;
        _ -> ok
    end.

-doc "The coordinator has decided a batch, with this state.".
-spec decided([term()], map(), #w{}) -> ok.
decided(Items, #{view := View, membership := Mem}, W) ->
    asks(explained_no, W) andalso
        [is_explained(Why, Op, Origin, View, Mem, Items)
         orelse violation(explained_no, [Origin, Op, Why], W)
         || #seg{member = Origin, operations = Ops, answers = As} <- Items, is_list(As),
            {Op, {no, Why}} <- lists:zip(Ops, As),
            Why =:= unreachable_pid orelse Why =:= not_member],
    ok.

is_explained(unreachable_pid, Op, _, View, Mem, Items) ->
    Node = node(sderl_op:registers(Op)),
    Member = sderl_membership:is_member(Node, Mem) orelse is_taken_out(Node, Items),
    Member andalso maps:get(Node, View, none) =/= live;
is_explained(not_member, _, Origin, _, Mem, Items) ->
    not sderl_membership:is_member(Origin, Mem) orelse is_taken_out(Origin, Items).

%% The membership is that after the batch: one of its own operations may have removed the node.
is_taken_out(Node, Items) ->
    lists:any(fun(Op) -> takes_out(Op, Node) end,
              lists:append([Ops || #seg{operations = Ops} <- Items])).

takes_out(delete, _) -> true;
takes_out(#remove{nodes = Nodes}, Node) -> lists:member(Node, Nodes);
takes_out(_, _) -> false.

%% ---------------------------------------------------------------- losers of clashes

-doc "A batch is in the log.".
-spec recorded(term(), term(), [term()], #w{}) -> #w{}.
recorded(G, Pos, Items, W) ->
    case asks(losers_hear, W) andalso lists:append([losers(Item) || Item <- Items]) of
        false -> W;
        [] -> W;
        Lost ->
            #b{losers = Losers} = B = book(G, W),
            keep_book(G, B#b{losers = lists:foldl(
                fun({Pid, Name}, Acc) -> Acc#{Pid => {Name, Pos}} end, Losers, Lost
            )}, W)
    end.

-doc """
A member is about to change its table. (A name that a client takes from a process, where the process
lives or the name is at home, is not lost in a clash.)
""".
-spec applying(node(), term(), [term()], sderl_sim_store:store(), #w{}) -> #w{}.
applying(N, G, Items, Store, W) ->
    case asks(losers_hear, W) andalso
             [{Pid, Name}
              || #seg{member = Asks, operations = Ops, answers = As} <- Items,
                 {Name, From} <- given_up(Asks, Ops, As),
                 ?ROW_OF_AT(Pid, Home) <- [sderl_sim_store:lookup(Store, Name)],
                 node(Pid) =:= N orelse Home =:= N,
                 From =:= any orelse From =:= {Pid, N}] of
        false -> W;
        [] -> W;
        Given ->
            #b{gave_up = Before} = B = book(G, W),
            keep_book(G, B#b{gave_up = maps:merge(Before, maps:from_keys(Given, []))}, W)
    end.

given_up(Asks, Ops, default) -> lists:append([taken_by(Op, Asks) || Op <- Ops]);
given_up(Asks, Ops, As) ->
    lists:append([taken_by(Op, Asks) || {Op, A} <- lists:zip(Ops, As),
                                        not is_tuple(A) orelse element(1, A) =/= no]).

%% Each name with the process that loses it and the member that asks, or `any`. (A removal that is
%% asked for again in another log is from the process that had the name. One that another node asks
%% for is of a process that it cannot see.)
taken_by(?UNREGISTER(Name), _) -> [{Name, any}];
taken_by(?UNREGISTER_OF(Name, Pid), Asks) -> [{Name, {Pid, Asks}}];
taken_by(#?RE_REGISTER{name = Name}, _) -> [{Name, any}];
taken_by(#?REGISTER_OVER{name = Name}, _) -> [{Name, any}];
taken_by(_, _) -> [].

-doc "A process is told that it lost its name. (If there is a winner, the others exit.)".
-spec told(term(), pid(), #w{}) -> #w{}.
told(G, Pid, W) ->
    #b{told = Told} = B = book(G, W),
    keep_book(G, B#b{told = Told#{Pid => []}}, W).

%% Processes that lost a name by this item of a batch, and were to be told.
losers(#settle{name = Name, losers = Lost, row = ?ROW_OF(Winner)}) ->
    [{Pid, Name} || Pid <- Lost, Pid =/= Winner];
losers(#settle{name = Name, losers = Lost, row = none}) -> [{Pid, Name} || Pid <- Lost];
losers(_) -> [].

%% ---------------------------------------------------------------- in the end

-doc "A client asks for this.".
-spec asked(term(), term(), #w{}) -> #w{}.
asked(G, #remove{nodes = Nodes}, W) ->
    #b{out = Out} = B = book(G, W),
    keep_book(G, B#b{out = lists:usort(Nodes ++ Out)}, W);
asked(G, delete, W) -> asked(G, #remove{nodes = nodes_of(G, W), time = 0}, W);
asked(_, _, W) -> W.

-doc "The promises of a group with these members once the faults are over.".
-spec settled(term(), [node()], #w{}) -> ok.
settled(G, Members, #w{strict = Strict} = W) ->
    lists:foreach(fun(losers_hear) -> losers_hear(G, Members, W);
                     (tokens_grow) -> highest_tokens(G, Members, W);
                     (no_ghosts) -> no_ghosts(G, Members, W);
                     (all_return) -> all_return(G, Members, W);
                     (_) -> ok
                  end, Strict).

%% Of all that any node has seen.
highest_tokens(G, Members, W) ->
    #b{tokens = Tokens} = book(G, W),
    #m{store = Store} = member(hd(Members), G, W),
    _ = [violation(tokens_grow, [in_the_end, N, Name, {same, Pid}, Was, Token], W)
         || {N, _, Name} := {Pid, Was} <- maps:iterator(Tokens, ordered),
            ?ROW(_, P, _, Token, _) <- [sderl_sim_store:lookup(Store, Name)], P =:= Pid,
            Token < Was],
    ok.

%% A node that left the group, or died, learns of no clash. If the settlement of a clash was lost,
%% the node has its name, or had it until it was unregistered.
losers_hear(G, Members, W) ->
    #b{losers = Losers, told = Told, gave_up = GaveUp, left = Left} = book(G, W),
    _ = [violation(losers_hear, [Pid, Name, Pos], W)
         || Pid := {Name, Pos} <- maps:iterator(Losers, ordered), alive(Pid, W),
            not is_map_key(Pid, Told),
            not is_map_key({Pid, Name}, GaveUp), lists:member(node(Pid), Members),
            not is_map_key({node(Pid), (node(node(Pid), W))#n.life}, Left),
            sderl_sim_store:held_by((member(hd(Members), G, W))#m.store, Pid) =:= none],
    ok.

no_ghosts(G, Members, W) ->
    _ = [violation(no_ghosts, [N, Ghosts], W)
         || N <- Members,
            Ghosts <- [sderl_core:peers(sderl_sim_world:state(N, G, W)) --
                       sderl_sim_net:linked(N, G, W)],
            Ghosts =/= []],
    ok.

all_return(G, Members, W) ->
    #b{out = Out} = book(G, W),
    Launched = [N || N <- nodes_of(G, W), is_list((member(N, G, W))#m.config), (node(N, W))#n.up],
    case (Launched -- Out) -- Members of
        [] -> ok;
        Missing -> violation(all_return, [Missing, Members], W)
    end.
