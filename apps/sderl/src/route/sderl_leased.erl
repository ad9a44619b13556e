%% SPDX-License-Identifier: Apache-2.0
-module(sderl_leased).
-moduledoc """
Watching processes over gateways, at the end that is watched: which processes to monitor for which
nodes, and for how long. See `m:sderl_lease`.

The watches of a node are kept for 30 s (`?LEASE_MS`) after its last message, which is longer than
it takes that node to give this one up. A death is reported at once, and twice a second until the
other end has confirmed it.

Pure: `step(Now, Event, State)` gives effects and a state.
""".

-export([new/0, step/3, watches/1, is_want/1]).
-export_type([leased/0, event/0, effect/0]).

-define(LEASE_MS, 30_000).

-type event() ::
    {message, node(), sderl_lease:life(), sderl_lease:want()}
    | {died, node(), reference(), Reason :: term()}
    | tick.
-type effect() ::
    {monitor, node(), reference(), pid()}
    | {demonitor, node(), reference()}
    | {send, node(), Try :: non_neg_integer(), Memory :: pos_integer(), sderl_lease:have()}.

-record(w, {
    id :: pos_integer(),
    life :: sderl_lease:life(),
    number = 0 :: non_neg_integer(),
    heard :: integer(),
    tries = 0 :: non_neg_integer(),
    alive = #{} :: #{reference() => []},
    dead = #{} :: #{reference() => term()}
}).
-record(s, {clients = #{} :: #{node() => #w{}}, next = 1 :: pos_integer()}).
-opaque leased() :: #s{}.

-spec new() -> leased().
new() -> #s{}.

-doc "Whether a term is a message of the end that watches.".
-spec is_want(term()) -> boolean().
is_want({want, Number, Add, Over, Seen})
  when is_integer(Number), length(Add) >= 0, length(Over) >= 0, length(Seen) >= 0 ->
    lists:all(fun({Ref, Pid}) -> is_reference(Ref) andalso is_pid(Pid); (_) -> false end, Add)
        andalso lists:all(fun is_reference/1, Over)
        andalso lists:all(fun is_reference/1, Seen);
is_want(_) -> false.

-doc "How many processes are watched here, for each node.".
-spec watches(leased()) -> #{node() => non_neg_integer()}.
watches(#s{clients = Clients}) ->
    #{Node => map_size(Alive) || Node := #w{alive = Alive} <- Clients}.

-spec step(Now :: integer(), event(), leased()) -> {[effect()], leased()}.
step(Now, {message, Node, {Creation, Memory} = Life, {want, Number, Add, Over, Seen}},
     #s{clients = Clients, next = Id} = S) ->
    case Clients of
        %% Overtaken by a message of a later memory.
        #{Node := #w{life = {Creation, Later}}} when Memory < Later -> {[], S};
        #{Node := #w{life = Life, number = Last}} when Number =< Last -> {[], S};
        #{Node := #w{life = Life} = W} ->
            wanted(Node, Add, Over, Seen, W#w{number = Number, heard = Now, tries = 0}, [], S);
        #{} ->
            Before = case Clients of #{Node := Old} -> all(Node, Old); #{} -> [] end,
            wanted(Node, Add, Over, Seen, #w{id = Id, life = Life, number = Number, heard = Now},
                   Before, S#s{next = Id + 1})
    end;
step(_, {died, Node, Ref, Reason}, #s{clients = Clients} = S) ->
    case Clients of
        #{Node := #w{id = Id, alive = Alive, dead = Dead} = W} when is_map_key(Ref, Alive) ->
            {[{send, Node, 0, Id, {have, 0, 0, [], [], [{Ref, Reason}]}}],
             S#s{clients = Clients#{Node := W#w{alive = maps:remove(Ref, Alive),
                                                dead = Dead#{Ref => Reason}}}}};
        #{} -> {[], S}
    end;
step(Now, tick, #s{clients = Clients0} = S) ->
    {Effects, Clients} = maps:fold(fun
        (Node, #w{heard = Heard} = W, {Es, Acc}) when Now - Heard >= ?LEASE_MS ->
            {all(Node, W) ++ Es, maps:remove(Node, Acc)};
        (Node, #w{id = Id, dead = Dead, tries = Tries} = W, {Es, Acc}) when map_size(Dead) > 0 ->
            {[{send, Node, Tries, Id, {have, 0, 0, [], [], maps:to_list(Dead)}} | Es],
             Acc#{Node := W#w{tries = Tries + 1}}};
        (_, _, Acc) -> Acc
    end, {[], Clients0}, Clients0),
    {Effects, S#s{clients = Clients}}.

all(Node, #w{alive = Alive}) -> [{demonitor, Node, Ref} || Ref := [] <- Alive].

%% A record without watches stays for its number, as long as the lease.
wanted(Node, Add, Over, Seen, #w{id = Id, alive = Alive, dead = Dead} = W0, Before,
       #s{clients = Clients} = S) ->
    New = [{Ref, Pid} || {Ref, Pid} <- Add, not is_map_key(Ref, Alive), not is_map_key(Ref, Dead)],
    Ended = [Ref || Ref <- Over, is_map_key(Ref, Alive)],
    W = W0#w{alive = maps:without(Ended, maps:merge(Alive, #{Ref => [] || {Ref, _} <- New})),
             dead = maps:without(Over ++ Seen, Dead)},
    Have = {have, W#w.number, map_size(W#w.alive), [Ref || {Ref, _} <- Add], Over,
            maps:to_list(W#w.dead)},
    {Before ++ [{monitor, Node, Ref, Pid} || {Ref, Pid} <- New] ++
     [{demonitor, Node, Ref} || Ref <- Ended] ++ [{send, Node, 0, Id, Have}],
     S#s{clients = Clients#{Node => W}}}.
