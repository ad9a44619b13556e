%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_world).
-moduledoc """
The simulated world as a value: its clock and queue of events, its dice, its nodes and links.

Nothing outside the value has an effect, so one seed gives one run, in any process and on any
machine. Events of one millisecond happen in the order in which they were scheduled.

Random numbers come from one generator in the world. Nodes and names are sorted before one is
chosen, because the order of a map of atoms is the one in which the virtual machine met the atoms.
The protocol goes through such maps, too, to send to several nodes: messages in a row to different
nodes are sorted by node (`m:sderl_sim_member`). All its other effects are in the order of names.
""".
-include("sderl_sim.hrl").

-export([new/2, names/2, slack/1, mode/2, option/3]).
-export([rnd/3, chance/2, pick/2, at/3, in/3, until/3]).
-export([node/2, keep/2, member/3, keep/4, seen/3, state/3, rows/3, process/4, up/2, undisturbed/2,
         touch/2, broke/1]).
-export([all/1, nodes_of/2, groups/1, live_members/2, coordinators/2, alive/2, pid/2]).
-export([book/2, keep_book/3, tell/2, violation/3, count/2]).
-define(NAMES, ['n1@sim', 'n2@sim', 'n3@sim', 'n4@sim', 'n5@sim', 'n6@sim', 'n7@sim', 'n8@sim',
                'n9@sim', 'n10@sim', 'n11@sim', 'n12@sim', 'n13@sim', 'n14@sim', 'n15@sim',
                'n16@sim', 'n17@sim', 'n18@sim', 'n19@sim', 'n20@sim', 'n21@sim', 'n22@sim',
                'n23@sim', 'n24@sim', 'n25@sim', 'n26@sim', 'n27@sim', 'n28@sim']).
-define(SPARES, ['x1@sim', 'x2@sim', 'x3@sim', 'x4@sim']).

-doc "A world without nodes.".
-spec new(integer(), map()) -> #w{}.
new(Seed, Opts) ->
    Trace = case Opts of
        #{trace := true} -> fun io:put_chars/1;
        #{trace := Fun} when is_function(Fun, 1) -> Fun;
        _ -> none
    end,
    Broken = maps:get(broken, Opts, []),
    #w{seed = Seed,
       opts = Opts,
       dice = sderl_sim_dice:new(Seed),
       core = maps:get(core, Opts, sderl_plant:core(Broken)),
       hello = sderl_plant:module(sderl_hello, Broken),
       trace = Trace,
       strict = maps:get(strict, Opts, [])}.

-doc "The names of the first `K` nodes that are members at the start, or spare ones.".
-spec names(member | spare, non_neg_integer()) -> [node()].
names(Kind, K) ->
    {Known, Letter} = case Kind of member -> {?NAMES, "n"}; spare -> {?SPARES, "x"} end,
    case K =< length(Known) of
        true -> lists:sublist(Known, K);
        %% The bound is what a machine can simulate.
        false ->
            Known ++ [list_to_atom(Letter ++ integer_to_list(I) ++ "@sim")
                      || I <- lists:seq(length(Known) + 1, K)]
    end.

-doc """
How much longer than usual something that needs a few messages may take, ms: over slow links one
message in fifty takes ten times as long as the slowest of the others.
""".
-spec slack(#w{}) -> non_neg_integer().
slack(#w{opts = Opts}) ->
    case Opts of
        #{delay := {_, Max}} when is_integer(Max), Max > 20 -> 40 * (Max - 20);
        _ -> 0
    end.

-doc "An option of the schedule.".
-spec option(atom(), Default, #w{}) -> Default | term().
option(Key, Default, #w{opts = Opts}) -> maps:get(Key, Opts, Default).

-doc "The consistency of a group. An island is always available.".
-spec mode(term(), #w{}) -> available | majority.
mode(island, _) -> available;
mode(_, W) -> option(mode, available, W).

%% ---------------------------------------------------------------- dice

-doc "A number from `A` to `B`.".
-spec rnd(integer(), integer(), #w{}) -> {integer(), #w{}}.
rnd(A, B, #w{dice = Dice} = W) ->
    {X, Left} = sderl_sim_dice:roll(B - A + 1, Dice),
    {A + X - 1, W#w{dice = Left}}.

-doc "True in this percentage of cases.".
-spec chance(0..100, #w{}) -> {boolean(), #w{}}.
chance(Percent, W0) ->
    {X, W} = rnd(1, 100, W0),
    {X =< Percent, W}.

-doc "An element of a list.".
-spec pick(nonempty_list(T), #w{}) -> {T, #w{}}.
pick(L, W0) ->
    {I, W} = rnd(1, length(L), W0),
    {lists:nth(I, L), W}.

%% ---------------------------------------------------------------- time

-doc "Schedules an event at a time, or now if that is past.".
-spec at(integer(), term(), #w{}) -> #w{}.
at(T, Event, #w{queue = Queue, now = Now} = W) ->
    W#w{queue = sderl_sim_queue:put(max(T, Now), Event, Queue)}.

-doc "Schedules an event in `D` ms.".
-spec in(integer(), term(), #w{}) -> #w{}.
in(D, Event, #w{now = Now} = W) -> at(Now + D, Event, W).

-doc "Lets time pass until `T`: `Do` runs each event.".
-spec until(integer(), fun((term(), #w{}) -> #w{}), #w{}) -> #w{}.
until(T, Do, #w{queue = Queue, now = Now} = W) ->
    case sderl_sim_queue:take(Now, T, Queue) of
        {none, Left} -> W#w{now = max(T, Now), queue = Left};
        {At, Events, Left} -> until(T, Do, lists:foldl(Do, W#w{now = At, queue = Left}, Events))
    end.

%% ---------------------------------------------------------------- nodes and members

-doc "A node.".
-spec node(node(), #w{}) -> #n{}.
node(N, #w{nodes = Ns}) -> map_get(N, Ns).

-spec keep(#n{}, #w{}) -> #w{}.
keep(#n{name = N} = X, #w{nodes = Ns} = W) -> W#w{nodes = Ns#{N := X}}.

-doc "What a node has of a group.".
-spec member(node(), term(), #w{}) -> #m{} | none.
member(N, G, #w{ms = Ms}) ->
    case Ms of
        #{N := #{G := M}} -> M;
        _ -> none
    end.

-spec keep(node(), term(), #m{}, #w{}) -> #w{}.
keep(N, G, M, #w{ms = Ms} = W) ->
    #{N := Of} = Ms,
    W#w{ms = Ms#{N := Of#{G := M}}}.

-doc "The result of `sderl_core:inspect/1` for the member on a node that is up, or `none`.".
-spec seen(node(), term(), #w{}) -> map() | none.
seen(N, G, #w{ms = Ms}) ->
    %% A member's entry is removed when its node dies.
    case Ms of
        #{N := #{G := #m{p = #p{seen = Seen}}}} -> Seen;
        _ -> none
    end.

-spec state(node(), term(), #w{}) -> sderl_core:state() | none.
state(N, G, #w{ms = Ms}) ->
    case Ms of
        #{N := #{G := #m{p = #p{st = S}}}} -> S;
        _ -> none
    end.

-doc "The names that a node holds.".
-spec rows(node(), term(), #w{}) -> #{term() => sderl_core:row()}.
rows(N, G, #w{ms = Ms}) ->
    case Ms of
        #{N := #{G := #m{store = St}}} when St =/= undefined -> sderl_sim_store:rows(St);
        _ -> #{}
    end.

-doc "Whether this is the process that runs there now.".
-spec process(node(), term(), pos_integer(), #w{}) -> boolean().
process(N, G, Id, #w{ms = Ms}) ->
    case Ms of
        #{N := #{G := #m{p = #p{id = Id}}}} -> true;
        _ -> false
    end.

-spec up(node(), #w{}) -> boolean().
up(N, #w{nodes = Ns}) -> (map_get(N, Ns))#n.up.

-doc "How long ago the last fault of this node ended; 0 while one lasts.".
-spec undisturbed(node(), #w{}) -> integer().
undisturbed(N, #w{now = Now} = W) ->
    case node(N, W) of
        #n{up = true, paused = false, pace = {_, Max}, version = 1, touched = T} when Max =< 20 ->
            Now - T;
        _ -> 0
    end.

-spec touch(node(), #w{}) -> #w{}.
touch(N, #w{now = Now} = W) -> keep((node(N, W))#n{touched = Now}, W).

-doc "A link was lost, or a process of the protocol has ended or begun.".
-spec broke(#w{}) -> #w{}.
broke(#w{now = Now} = W) -> W#w{broke = Now}.

-spec all(#w{}) -> [node()].
all(#w{names = Ns}) -> Ns.

-doc "The nodes that may take part in a group, sorted.".
-spec nodes_of(term(), #w{}) -> [node()].
nodes_of(G, #w{groups = Gs}) -> map_get(G, Gs).

-spec groups(#w{}) -> [term()].
groups(#w{groups = Gs}) -> lists:sort(maps:keys(Gs)).

-doc "The nodes on which a member of the group runs.".
-spec live_members(term(), #w{}) -> [node()].
live_members(G, W) -> [N || N <- nodes_of(G, W), seen(N, G, W) =/= none].

-spec coordinators(term(), #w{}) -> [node()].
coordinators(G, W) -> [N || N <- nodes_of(G, W), #{role := coord} <- [seen(N, G, W)]].

-doc "Whether a simulated process lives.".
-spec alive(pid(), #w{}) -> boolean().
alive(Pid, #w{dead = Dead} = W) ->
    #n{up = Up, life = Life} = node(node(Pid), W),
    Up andalso life_of(Pid) =:= Life andalso not is_map_key(Pid, Dead).

-doc """
A new pid of a simulated node; its creation is the life of that node. For a node that is down that
is the life that has ended, so that the pid is of no process of the next life.
""".
-spec pid(node(), #w{}) -> {pid(), #w{}}.
pid(N, #w{pids = K} = W) ->
    Life = case node(N, W) of
        #n{up = true, life = Now} -> Now;
        #n{life = Next} -> Next - 1
    end,
    Name = atom_to_binary(N),
    Bin = <<131, 88, 119, (byte_size(Name)), Name/binary, (K + 1):32, 0:32, Life:32>>,
    {binary_to_term(Bin), W#w{pids = K + 1}}.

-spec life_of(pid()) -> non_neg_integer().
life_of(Pid) ->
    B = term_to_binary(Pid),
    binary:decode_unsigned(binary:part(B, byte_size(B), -4)).

%% ---------------------------------------------------------------- records

-doc "What is known of a group to check its promises.".
-spec book(term(), #w{}) -> #b{}.
book(G, #w{books = Bs}) -> map_get(G, Bs).

-spec keep_book(term(), #b{}, #w{}) -> #w{}.
keep_book(G, B, #w{books = Bs} = W) -> W#w{books = Bs#{G := B}}.

-doc "A line of the trace; see `m:sderl_sim_trace`.".
-spec tell(tuple(), #w{}) -> ok.
tell(_, #w{trace = none}) -> ok;
tell(What, #w{trace = Fun, now = Now}) ->
    case sderl_sim_trace:line(Now, What) of
        none -> ok;
        Line -> _ = Fun(Line), ok
    end.

-doc "Ends the run, because the promise of this name is broken.".
-spec violation(atom(), [term()], #w{}) -> no_return().
violation(Promise, Details, W) ->
    Why = list_to_tuple([Promise | Details]),
    tell({violation, Why}, W),
    throw({violation, Why, W}).

-spec count(atom(), #w{}) -> #w{}.
count(Kind, #w{counts = C} = W) -> W#w{counts = C#{Kind => maps:get(Kind, C, 0) + 1}}.
