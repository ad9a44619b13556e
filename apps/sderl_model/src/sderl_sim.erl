%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim).
-moduledoc """
A deterministic simulator of one group: members that run the real `sderl_core`, in one process,
on simulated time, over links that delay, reorder against each other, break and heal.

What the world does is what Erlang does: a link keeps its order; nodedown comes after what was
delivered of the old link and before nodeup of the new one; what was not delivered is lost; a
stopped node finds its timers and everything sent to it when it goes on. Nodes die and come
back empty; the protocol's process alone dies, also between two effects, and finds what a node's
tables keep.

`run/1` takes a seed or a map and gives `ok` or `{failed, Why, Seed}`; `trace => true` prints
everything that happens. The promises are checked at every step (`check/3`, `answered/5`) and
once the faults have stopped (`settled/1`). The same seed gives the same run.

A script is a list of `{At, Command}`, see `command/2`; without one, faults and clients are random.

Options: `seed`, `nodes`, `spare` (nodes that are no members), `script`, `clients` (a node), `delay` (of
links, `{Min, Max}` ms), `faults` (at most so many in a random schedule), `time` (when the last one
begins), `boot_spread`, `broken` (what the core does wrong on purpose, `t:sderl_core:fault/0`),
`aside_ms`, `forget_ms`, `trace`, `return` (the world at the end instead of `ok`).
""".
-include_lib("sderl/src/sderl_core.hrl").

-export([run/1, many/2, many/3, apply_cmd/2]).
-export([name/1, spare/1, pid/2, all/1, state/2, rows/2, answer/2, now_ms/1, up/2, coord/1]).
-export_type([world/0, outcome/0]).

-define(CHUNK, 3).
%% Written out: small maps are in the order in which their atoms were made, and a seed must replay.
-define(NAMES, ['n1@sim', 'n2@sim', 'n3@sim', 'n4@sim', 'n5@sim', 'n6@sim', 'n7@sim', 'n8@sim', 'n9@sim']).
-define(SPARES, ['x1@sim', 'x2@sim', 'x3@sim']).

%% A process of the protocol on a node.
-record(p, {id, st, mail = [] :: [term()], due = false :: boolean(), cursors = #{} :: map(), watched = #{}}).
-record(n, {name, life = 1, up = false, paused = false, held = [], p :: undefined | #p{}, store,
            gone :: undefined | {removed | deleted, map()}, config = none, inc_mem = none, crash = false}).
-record(l, {id, a, b, up = #{}, cutoff = none, down = []}).
-record(w, {seed, now = 0, q = gb_trees:empty(), seq = 0, rng, opts, nodes = #{}, links = #{}, cuts = #{},
            last = #{}, delays = #{}, ids = 0, dead = #{}, pids = 0,
            ops = #{}, opno = 0, log = #{}, tables = #{}, segs = #{}, lists = #{}, promised = #{},
            truth = #{}, contest = #{}, clients = true, clashed = #{}, removed = #{}, members = [], deleted = false, left = #{},
            steps = 0, done = #{}, cutoff_homes = #{}}).

-opaque world() :: #w{}.
-type outcome() :: ok | {failed, Why :: term(), Seed :: integer()} | world().

%% ---------------------------------------------------------------- running

-doc "The name of a member of the first hour; of a node that is none.".
-spec name(pos_integer()) -> node().
name(I) -> lists:nth(I, ?NAMES).
-doc "The name of a node that is no member at first.".
-spec spare(pos_integer()) -> node().
spare(I) -> lists:nth(I, ?SPARES).

-doc "Runs the seeds of a range and gives those that failed.".
-spec many(integer(), integer()) -> [integer()].
many(From, To) -> many(From, To, #{}).

-doc "Runs the seeds of a range with options.".
-spec many(integer(), integer(), map()) -> [integer()].
many(From, To, Opts) ->
    Bad = [S || S <- lists:seq(From, To), run(Opts#{seed => S}) =/= ok],
    io:format("seeds ~b..~b: ~b failed ~w~n", [From, To, length(Bad), Bad]),
    Bad.

-doc "Runs one schedule: a seed, or options with one.".
-spec run(integer() | map()) -> outcome().
run(Seed) when is_integer(Seed) -> run(#{seed => Seed});
run(#{seed := Seed} = Opts) ->
    W = #w{seed = Seed, rng = rand:seed_s(exsss, Seed), opts = Opts},
    try play(W) of
        W1 when map_get(return, Opts) =:= true -> W1;
        _ -> ok
    catch
        throw:{violation, Why, At} ->
            io:format("seed ~p at ~b ms: ~0P~n", [Seed, At, Why, 60]),
            {failed, Why, Seed};
        C:E:St ->
            io:format("seed ~p: ~p:~0P~n  ~0P~n", [Seed, C, E, 60, St, 60]),
            {failed, {C, E}, Seed}
    end.

violation(W, Why) -> throw({violation, Why, W#w.now}).

trace(#w{opts = #{trace := true}, now = Now}, Fmt, Args) -> io:format("~8b " ++ Fmt ++ "~n", [Now | Args]);
trace(_, _, _) -> ok.

play(#w{opts = Opts} = W0) ->
    {N, W1} = case Opts of #{nodes := K} -> {K, W0}; _ -> rnd(3, 7, W0) end,
    Names = lists:sublist(?NAMES, N),
    {Extra, W2} = case Opts of #{spare := X} -> {X, W1}; #{script := _} -> {0, W1}; _ -> rnd(0, 2, W1) end,
    Spare = lists:sublist(?SPARES, Extra),
    Nodes = maps:from_list([{M, #n{name = M, config = Names}} || M <- Names] ++ [{M, #n{name = M}} || M <- Spare]),
    W3 = W2#w{nodes = Nodes, members = Names},
    W4 = boot(Names ++ Spare, W3),
    W5 = every(40, links, W4),
    {Script, W6} = case Opts of #{script := S} -> {S, W5}; _ -> random_script(W5) end,
    End = lists:max([0 | [At || {At, _} <- Script]]),
    W7 = lists:foldl(fun({At, C}, W) -> at(At, {cmd, C}, W) end, W6, Script),
    W8 = case Opts of #{script := _, clients := K2} -> start_clients(K2, W7);
                      #{script := _} -> W7;
                      _ -> {K3, Wc} = rnd(1, 3, W7), start_clients(K3, Wc)
         end,
    W9 = until(End + 1, W8),
    finish(apply_cmd(heal, W9)).

%% After the faults: a bounded time to settle with clients still at work, then everything asked
%% is answered, then the tables are compared.
finish(W0) ->
    W1 = until(W0#w.now + 60_000, W0),
    W2 = until(W1#w.now + 30_000, probe(W1#w{clients = false})),
    settled(W2).

boot(Names, W0) ->
    lists:foldl(fun(N, W) ->
        {D, W1} = rnd(0, maps:get(boot_spread, W#w.opts, 3000), W),
        at(D, {cmd, {start, N}}, W1)
    end, W0, Names).

%% ---------------------------------------------------------------- time

rnd(A, B, #w{rng = R0} = W) ->
    {X, R} = rand:uniform_s(B - A + 1, R0),
    {A + X - 1, W#w{rng = R}}.

chance(Percent, W0) ->
    {X, W} = rnd(1, 100, W0),
    {X =< Percent, W}.

pick(L, W0) ->
    {I, W} = rnd(1, length(L), W0),
    {lists:nth(I, L), W}.

at(T, Event, #w{q = Q, seq = S, now = Now} = W) ->
    W#w{q = gb_trees:insert({max(T, Now), S}, Event, Q), seq = S + 1}.

in(D, Event, #w{now = Now} = W) -> at(Now + D, Event, W).

every(D, What, W) -> in(D, {every, D, What}, W).

until(T, #w{q = Q} = W) ->
    case gb_trees:is_empty(Q) of
        true -> W#w{now = T};
        false ->
            {{At, _}, _} = gb_trees:smallest(Q),
            case At > T of
                true -> W#w{now = T};
                false ->
                    {{At, _}, E, Q1} = gb_trees:take_smallest(Q),
                    until(T, event(E, W#w{now = At, q = Q1}))
            end
    end.

event({every, D, links}, W) -> every(D, links, relink(W));
event({cmd, C}, W) -> trace(W, "## ~0p", [C]), command(C, W);
event({deliver, Link, To, Item}, W) -> deliver(Link, To, Item, W);
event({timer, N, Id, What}, W) -> timer(N, Id, What, W);
event({step, N, Id}, W) -> step(N, Id, W);
event({client, N, Life, K}, W) -> client(N, Life, K, W);
event({connect, A, B}, W) -> connect(A, B, W);
event({restart, N, Life}, W) ->
    case node(N, W) of
        #n{up = true, life = Life, p = undefined, gone = undefined, store = St} when St =/= undefined -> recover(N, W);
        _ -> W
    end;
event({mail, N, Id, Item}, W) -> arrive(N, {proc, Id, Item}, W).

%% ---------------------------------------------------------------- looking at the world

node(N, #w{nodes = Ns}) -> maps:get(N, Ns).
keep(#n{name = N} = X, #w{nodes = Ns} = W) -> W#w{nodes = Ns#{N => X}}.
-doc "All nodes, sorted.".
-spec all(world()) -> [node()].
all(#w{nodes = Ns}) -> lists:sort(maps:keys(Ns)).
-doc "The simulated time.".
-spec now_ms(world()) -> integer().
now_ms(#w{now = T}) -> T.
-doc "The state of the member on a node, or `none`.".
-spec state(node(), world()) -> sderl_core:state() | none.
state(N, W) -> case node(N, W) of #n{up = true, p = #p{st = S}} -> S; _ -> none end.
-doc "The names that a node holds.".
-spec rows(node(), world()) -> #{term() => sderl_core:row()}.
rows(N, W) -> case node(N, W) of #n{up = true, store = St} when St =/= undefined -> sderl_sim_store:rows(St); _ -> #{} end.
-doc "Whether a node is up.".
-spec up(node(), world()) -> boolean().
up(N, W) -> (node(N, W))#n.up.
-doc "What an operation was answered, or `none`.".
-spec answer(term(), world()) -> term().
answer(Id, #w{ops = Ops}) -> case Ops of #{Id := #{answer := A}} -> A; _ -> none end.
-doc "The nodes that coordinate.".
-spec coord(world()) -> [node()].
coord(W) -> [N || N <- all(W), #s{role = coord} <- [state(N, W)]].
live_members(W) -> [N || N <- all(W), state(N, W) =/= none].

alive(Pid, #w{dead = Dead} = W) ->
    #n{up = Up, life = Life} = node(node(Pid), W),
    Up andalso life_of(Pid) =:= Life andalso not is_map_key(Pid, Dead).

-doc "A new pid of a simulated node; its creation is the life of that node.".
-spec pid(node(), world()) -> {pid(), world()}.
pid(N, #w{pids = K} = W) ->
    #n{life = Life} = node(N, W),
    Name = atom_to_binary(N),
    Bin = <<131, 88, 119, (byte_size(Name)), Name/binary, (K + 1):32, 0:32, Life:32>>,
    {binary_to_term(Bin), W#w{pids = K + 1}}.

life_of(Pid) ->
    B = term_to_binary(Pid),
    binary:decode_unsigned(binary:part(B, byte_size(B), -4)).

%% ---------------------------------------------------------------- links

pair(A, B) when A < B -> {A, B};
pair(A, B) -> {B, A}.

%% Members connect to each other again and again, as the node's own process does.
relink(W0) ->
    Ns = [N || N <- all(W0), up(N, W0), not (node(N, W0))#n.paused],
    lists:foldl(fun({A, B} = P, W) ->
        Wait = maps:get({wait, P}, W#w.done, 0),
        case {W#w.links, blocked(A, B, W)} of
            {#{P := _}, _} -> W;
            {_, true} -> W;
            _ when W#w.now >= Wait ->
                {D, W1} = rnd(1, 600, W),
                in(D, {connect, A, B}, W1#w{done = (W1#w.done)#{{wait, P} => W#w.now + D + 1}});
            _ -> W
        end
    end, W0, [{A, B} || A <- Ns, B <- Ns, A < B]).

blocked(A, B, #w{cuts = Cuts}) -> is_map_key(pair(A, B), Cuts).

connect(A, B, #w{links = Ls, ids = Id} = W0) ->
    P = pair(A, B),
    Ok = up(A, W0) andalso up(B, W0) andalso not blocked(A, B, W0) andalso not is_map_key(P, Ls)
        andalso not (node(A, W0))#n.paused andalso not (node(B, W0))#n.paused,
    case Ok of
        false -> W0;
        true ->
            trace(W0, "link ~p ~p", [A, B]),
            W1 = W0#w{links = Ls#{P => #l{id = Id, a = A, b = B}}, ids = Id + 1},
            transmit(B, A, Id, nodeup, transmit(A, B, Id, nodeup, W1))
    end.

%% Puts an item on a link, behind everything that went the same way before.
transmit(From, To, Id, Item, #w{last = Last, delays = Delays} = W0) ->
    {Min, Max} = maps:get({From, To}, Delays, maps:get(delay, W0#w.opts, {1, 20})),
    {D0, W1} = rnd(Min, Max, W0),
    {Slow, W2} = chance(2, W1),
    D = case Slow andalso not is_map_key({From, To}, Delays) of true -> D0 * 10; false -> D0 end,
    T = max(W2#w.now + D, maps:get({From, To}, Last, 0)),
    at(T, {deliver, {pair(From, To), Id}, To, {From, Item}}, W2#w{last = Last#{{From, To} => T}}).

send(From, To, Item, #w{links = Ls} = W) ->
    case Ls of
        #{{From, To} := L} -> send_on(From, To, Item, L, W);
        #{{To, From} := L} -> send_on(From, To, Item, L, W);
        _ -> W
    end.

send_on(From, To, Item, #l{id = Id, up = Up}, W) ->
    case Up of
        #{From := up} -> transmit(From, To, Id, Item, W);
        _ -> W
    end.

deliver({P, Id}, To, {From, Item}, #w{links = Ls} = W) ->
    case Ls of
        #{P := #l{id = Id, up = Up, cutoff = Cut} = L} when Item =:= nodedown; Cut =:= none; W#w.now =< Cut ->
            case Item of
                nodeup ->
                    arrive(To, {nodeup, From}, W#w{links = Ls#{P := L#l{up = Up#{To => up}}}});
                nodedown ->
                    Down = [To | L#l.down],
                    W1 = case Up of #{To := up} -> arrive(To, {nodedown, From}, W); _ -> W end,
                    Up1 = Up#{To => down},
                    case lists:all(fun(X) -> lists:member(X, Down) orelse not up(X, W) end, [L#l.a, L#l.b]) of
                        true -> W1#w{links = maps:remove(P, W1#w.links)};
                        false -> W1#w{links = (W1#w.links)#{P := L#l{up = Up1, down = Down}}}
                    end;
                {Addr, Msg} ->
                    arrive(To, {msg, Addr, From, Msg}, W)
            end;
        _ -> W
    end.

%% The link goes: what is under way may still come for a moment, then each end notices in its own
%% time. `slow`: nobody says so, only silence does.
cut(A, B, How, #w{links = Ls} = W0) ->
    P = pair(A, B),
    case Ls of
        #{P := #l{cutoff = none, id = Id} = L} ->
            trace(W0, "cut ~p ~p ~p", [A, B, How]),
            {C, W1} = rnd(0, 20, W0),
            Cutoff = W1#w.now + C,
            W2 = W1#w{links = Ls#{P := L#l{cutoff = Cutoff}}},
            lists:foldl(fun({X, Y}, W) ->
                {D, Wa} = case How of fast -> rnd(0, 100, W); slow -> rnd(0, 9000, W) end,
                at(Cutoff + D, {deliver, {P, Id}, Y, {X, nodedown}}, Wa)
            end, W2, [{X, Y} || {X, Y} <- [{A, B}, {B, A}], up(Y, W2)]);
        _ -> W0
    end.

%% ---------------------------------------------------------------- a node gets something

arrive(N, Item, W) ->
    case node(N, W) of
        #n{up = false} -> W;
        #n{paused = true, held = H} = X -> keep(X#n{held = [Item | H]}, W);
        #n{p = P} -> take(N, Item, P, W)
    end.

take(N, {nodeup, M}, _, W) -> mail(N, {nodeup, M}, W);
take(N, {nodedown, M}, _, W) -> mail(N, {nodedown, M}, W);
take(N, {proc, Id, Item}, #p{id = Id}, W) -> mail(N, Item, W);
take(N, {msg, {N, Id}, From, Msg}, #p{id = Id}, W) -> mail(N, {msg, From, Msg}, W);
take(N, {msg, hello, From, Msg}, #p{}, W) -> mail(N, {msg, From, Msg}, W);
take(N, {msg, hello, From, {hello, Addr, _, Mem, _}}, undefined, W) ->
    case node(N, W) of
        #n{gone = {Why, Mine}} ->
            M = sderl_membership:merge(Mem, Mine),
            case Why =:= removed andalso sderl_membership:is_member(N, M) of
                true -> join(N, M, W);
                false -> send(N, From, {Addr, {gone, Why, Mine}}, W)
            end;
        #n{store = undefined} ->
            case sderl_membership:is_member(N, Mem) of
                true -> join(N, Mem, W);
                false -> W
            end;
        _ -> W
    end;
take(_, _, _, W) -> W.

mail(N, Item, W) ->
    case node(N, W) of
        #n{p = #p{mail = M, due = Due, id = Id} = P} = X ->
            W1 = keep(X#n{p = P#p{mail = [Item | M], due = true}}, W),
            case Due of
                true -> W1;
                false -> {D, W2} = rnd(0, 2, W1), in(D, {step, N, Id}, W2)
            end;
        _ -> W
    end.

timer(N, Id, What, W) ->
    case node(N, W) of
        #n{up = true, p = #p{id = Id}} -> arrive(N, {proc, Id, What}, retick(N, Id, What, W));
        _ -> W
    end.

retick(N, Id, tick, W) -> case (node(N, W))#n.paused of true -> W; false -> tick_later(N, Id, W) end;
retick(_, _, _, W) -> W.

tick_later(N, Id, W) -> {J, W1} = rnd(0, 50, W), in(1000 + J, {timer, N, Id, tick}, W1).

%% ---------------------------------------------------------------- the process of the protocol

linked(N, W) -> [M || M <- all(W), M =/= N, #{N := up} <- [link_up(N, M, W)]].

link_up(A, B, #w{links = Ls}) ->
    case Ls of #{{A, B} := L} -> L#l.up; #{{B, A} := L} -> L#l.up; _ -> #{} end.

join(N, Mem, W) -> trace(W, "join ~p", [N]), begin_member(N, #{mem => Mem}, sderl_sim_store:new(N, sderl_membership:members(Mem)), W).

begin_member(N, Args, Store, #w{ids = Id, opts = Opts} = W0) ->
    #n{life = Life} = X = node(N, W0),
    A = maps:merge((maps:with([aside_ms, forget_ms], Opts))#{faults => maps:get(broken, Opts, [])}, Args),
    St = sderl_core:init(A#{group => g, uid => <<"u">>, self => N, addr => {N, Id}, inc => {N, Life},
                            now => W0#w.now, clock => W0#w.now + 1_000_000, linked => linked(N, W0)}),
    P = #p{id = Id, st = St},
    W1 = keep(X#n{p = P, store = Store, gone = undefined}, W0#w{ids = Id + 1}),
    tick_later(N, Id, mail(N, start, W1)).

%% A new process in the same life of the node.
recover(N, W0) ->
    trace(W0, "recover ~p", [N]),
    #n{store = St0, life = Life} = X = node(N, W0),
    {St1, _} = sderl_sim_store:redo(sderl_sim_store:index(drop, St0)),
    W1 = case sderl_sim_store:recover(St1) of
        none ->
            %% It died before it kept anything.
            begin_member(N, #{mem => X#n.inc_mem}, St1, W0);
        R ->
            #d{mem = Mem} = maps:get(durable, R),
            Wr = case R of
                %% (The log of a snapshot is empty.)
                #{log := {Num, [_ | _] = Items}, log_epoch := E} -> recorded(N, E, Num, Items, W0);
                _ -> W0
            end,
            begin_member(N, R, sderl_sim_store:members(sderl_membership:members(Mem), St1), Wr)
    end,
    W2 = dead_rows(N, lists:sort(maps:values(rows(N, W1))), W1),
    %% Clients that saw it die ask again.
    maps:fold(fun(OpId, #{node := ON, life := OL, op := Op} = O, W) when ON =:= N, OL =:= Life, not is_map_key(answer, O) ->
                      mail(N, {again, OpId, Op}, W);
                 (_, _, W) -> W
              end, W2, maps:iterator(W2#w.ops, ordered)).

%% What monitors of local pids would say.
dead_rows(N, Rows, W) ->
    lists:foldl(fun({Name, Pid, _, _, _}, Acc) when node(Pid) =:= N ->
                        case alive(Pid, Acc) of
                            true -> Acc;
                            false -> mail(N, {op, none, {d, Name, Pid}}, Acc)
                        end;
                   (_, Acc) -> Acc
                end, W, Rows).

foreign_deaths(N, W) ->
    case node(N, W) of
        #n{p = #p{}, store = St} ->
            lists:foldl(fun({Name, Pid}, Acc) ->
                case alive(Pid, Acc) andalso link_or_self(N, node(Pid), Acc) of
                    true -> Acc;
                    false -> mail(N, {op, none, {d, Name, Pid}}, Acc)
                end
            end, W, lists:sort(sderl_sim_store:foreign(St)));
        _ -> W
    end.

link_or_self(N, N, _) -> true;
link_or_self(N, M, W) -> lists:member(M, linked(N, W)).

step(N, Id, W0) ->
    case node(N, W0) of
        #n{up = true, paused = true} = X ->
            keep(X#n{held = [{again, Id} | X#n.held]}, W0);
        #n{up = true, p = #p{id = Id, mail = Mail} = P} = X ->
            All = lists:reverse(Mail),
            {Part, W1} = chance(10, W0),
            {Now, Later} = case Part of
                true -> lists:split((length(All) + 1) div 2, All);
                false -> {All, []}
            end,
            W2 = keep(X#n{p = P#p{mail = lists:reverse(Later), due = Later =/= []}}, W1),
            W3 = case Later of [] -> W2; _ -> in(1, {step, N, Id}, W2) end,
            trace(W3, "~p <- ~0P", [N, [E || E <- Now, noisy(E)], 60]),
            %% Sometimes in two halves, as a shell does that has answered clients.
            {Halves, Wh} = chance(30, W3),
            W4 = case Halves of
                true -> stepped(N, Id, handle, Now, Wh, [[]]);
                false -> stepped(N, Id, step, Now, Wh, [])
            end,
            W5 = proposed(N, Id, W4),
            case lists:member(tick, Now) andalso state(N, W5) of
                #s{role = coord} -> foreign_deaths(N, W5);
                _ -> W5
            end;
        _ -> W0
    end.

noisy({msg, _, {hb, _, _}}) -> false;
noisy({msg, _, {hb_ack, _, _}}) -> false;
noisy(tick) -> false;
noisy(_) -> true.

current(N, Id, W) -> case node(N, W) of #n{up = true, p = #p{id = Id}} -> true; _ -> false end.

stepped(N, Id, F, Events, W0, More) ->
    {Fx, S} = sderl_core:F(W0#w.now, Events, state(N, W0)),
    ran(N, Id, Fx, S, W0#w{steps = W0#w.steps + 1}, More).

ran(N, Id, Fx, S, W0, More) ->
    {Feed, W1} = effects(N, Id, Fx, set_state(N, S, W0)),
    case current(N, Id, W1) of
        false -> W1;
        true ->
            W2 = check(N, S, W1),
            case {Feed, More} of
                {[], []} -> W2;
                {[], [Events | Rest]} -> stepped(N, Id, step, Events, W2, Rest);
                _ -> stepped(N, Id, step, Feed, W2, More)
            end
    end.

proposed(N, Id, W0) ->
    case current(N, Id, W0) of
        false -> W0;
        true ->
            #n{store = Store} = node(N, W0),
            sderl_sim_store:indexed(Store) orelse violation(W0, {index, N}),
            {Fx, S} = sderl_core:propose(W0#w.now, sderl_sim_store, Store, state(N, W0)),
            ran(N, Id, Fx, S, W0, [])
    end.

set_state(N, S, W) ->
    #n{p = P} = X = node(N, W),
    keep(X#n{p = P#p{st = S}}, W).

%% Runs effects in order; a process that is to die does so between two of them, or in one.
effects(N, Id, Fx, W0) ->
    case {node(N, W0), Fx} of
        {#n{crash = true} = X, [_ | _]} ->
            {K, W1} = rnd(0, length(Fx), keep(X#n{crash = false}, W0)),
            {Before, After} = lists:split(K, Fx),
            {_, W2} = effects(N, Id, Before, W1),
            W3 = case After of
                [{apply, E, Num, Items, _} | _] -> store(N, fun(St) -> sderl_sim_store:log(St, E, Num, Items) end, W2);
                _ -> W2
            end,
            {[], kill_process(N, W3)};
        _ ->
            lists:foldl(fun(E, {Feed, W}) ->
                trace(W, "  ~p ~0P", [N, E, 60]),
                %% A member that left writes nothing more.
                Here = current(N, Id, W) orelse element(1, E) =:= send orelse element(1, E) =:= replies,
                case Here andalso effect(N, Id, E, W) of
                    false -> {Feed, W};
                    {feed, Ev, W1} -> {Feed ++ [Ev], W1};
                    W1 -> {Feed, W1}
                end
            end, {[], W0}, Fx)
    end.

store(N, F, W) -> #n{store = St} = X = node(N, W), keep(X#n{store = F(St)}, W).

effect(N, _, {send, {To, _} = Addr, Msg}, W) -> send(N, To, {Addr, Msg}, sent(N, Msg, W));
effect(N, _, {hello, To, Msg}, W) -> send(N, To, {hello, Msg}, W);
effect(N, _, {durable, D}, W) -> store(N, fun(St) -> sderl_sim_store:durable(D, St) end, W);
effect(N, _, {members, Ms}, W) -> store(N, fun(St) -> sderl_sim_store:members(Ms, St) end, W);
effect(N, _, {sessions, Sess}, W) -> store(N, fun(St) -> sderl_sim_store:sessions(Sess, St) end, W);
effect(N, _, {outbox, R, List}, W) ->
    #s{d = #d{sid = Sid}} = state(N, W),
    W1 = W#w{lists = maps:merge(W#w.lists, #{From => {N, Sid, R} || {From, _} <- List, From =/= none})},
    store(N, fun(St) -> sderl_sim_store:outbox(R, List, St) end, W1);
effect(N, _, {replies, L}, W) -> lists:foldl(fun({From, V}, A) -> reply(N, From, V, A) end, W, L);
effect(N, _, {apply, E, Num, Items, Index}, W) -> applied(N, E, Num, Items, Index, W);
effect(N, _, {index, What}, W) -> store(N, fun(St) -> sderl_sim_store:index(What, St) end, W);
effect(N, _, {sync_begin, E, Num}, W) -> store(N, fun(St) -> sderl_sim_store:sync_begin(St, E, Num) end, W);
effect(N, _, {put_rows, Rows}, W) -> dead_rows(N, Rows, store(N, fun(St) -> sderl_sim_store:put_rows(St, Rows) end, W));
effect(N, _, sync_end, W) -> store(N, fun(St) -> sderl_sim_store:sync_end(St) end, W);
effect(N, _, {read_chunk, M, K}, W) -> read(N, chunk_read, {chunk, M}, M, K, all, W);
effect(N, _, {read_homes, M, K, Homes}, W) -> read(N, homes_read, {homes, M}, M, K, Homes, W);
effect(N, _, {read_stop, M}, W) ->
    #n{p = #p{cursors = Cs} = P} = X = node(N, W),
    keep(X#n{p = P#p{cursors = maps:without([{chunk, M}, {homes, M}], Cs)}}, W);
effect(N, Id, {resolve, Name, A, B}, W) ->
    {D, W1} = rnd(5, 300, W),
    {Keep, W2} = pick([element(2, A), element(2, B), none], W1),
    in(D, {mail, N, Id, {resolved, Name, A, B, Keep, [{x, Name}]}}, W2#w{clashed = (W2#w.clashed)#{Name => true}});
effect(_, _, {clash_effects, _}, W) -> W;
effect(_, _, {event, _, _}, W) -> W;
effect(N, _, {left, Why, Mem}, #w{removed = Rm, left = Left} = W) ->
    #n{life = Life} = X = node(N, W),
    keep(X#n{p = undefined, store = undefined, gone = {Why, Mem}}, W#w{removed = Rm#{{N, Life} => true}, left = Left#{N => Why}});
effect(N, Id, {wake, Ms}, W) -> in(Ms, {timer, N, Id, wake}, W).

read(N, Kind, Key, M, K, Which, W) ->
    #n{store = St, p = #p{cursors = Cs} = P} = X = node(N, W),
    {Rows, Last, Cur} = case K of
        1 -> sderl_sim_store:read(St, Which, ?CHUNK);
        _ -> sderl_sim_store:read_next(St, maps:get(Key, Cs, []), ?CHUNK)
    end,
    {feed, {Kind, M, K, Rows, Last}, keep(X#n{p = P#p{cursors = Cs#{Key => Cur}}}, W)}.

applied(N, E, Num, Items, Index, W0) ->
    W1 = recorded(N, E, Num, Items, W0),
    #n{store = St0} = X = node(N, W1),
    _ = [violation(W1, {applied_twice, N, O, Sid, R}) ||
         {seg, O, Sid, R, _, _} <- Items, {S2, R2, _} <- [maps:get(O, sessions(St0), {none, 0, []})], S2 =:= Sid, R2 >= R],
    {St, New} = sderl_sim_store:apply(St0, E, Num, Items, Index),
    W2 = keep(X#n{store = St}, W1),
    dead_rows(N, New, case sderl_sim_store:whole(St) of false -> W2; true -> table(N, E, Num, St, W2) end).

%% The same position is the same batch, whoever has it; and where lists were answered.
recorded(N, E, Num, Items, #w{log = Log, segs = Segs} = W) ->
    Hash = erlang:phash2(Items, 1 bsl 32),
    case Log of
        #{{E, Num} := {Hash, _}} -> ok;
        #{{E, Num} := {_, Other}} -> violation(W, {different_batches, E, Num, N, Items, Other});
        _ -> ok
    end,
    Answered = [{O, Sid, R} || {seg, O, Sid, R, _, _} <- Items] ++
        [{O, Sid, R} || {merge, _, Sess} <- Items, O := {Sid, R, _} <- Sess],
    W#w{log = Log#{{E, Num} => {Hash, Items}},
        segs = lists:foldl(fun(K, A) -> A#{K => lists:usort([{E, Num} | maps:get(K, A, [])])} end, Segs, Answered)}.

sessions(St) -> case sderl_sim_store:recover(St) of #{sessions := S} -> S; none -> #{} end.

%% The same position is the same table, whoever holds it.
table(N, E, Num, St, #w{tables = T} = W) ->
    H = sderl_sim_store:hash(St),
    case T of
        #{{E, Num} := {H, _, _}} -> W;
        #{{E, Num} := {_, M, Rows}} -> violation(W, {different_tables, E, Num, N, M, diff(sderl_sim_store:rows(St), Rows)});
        _ -> W#w{tables = T#{{E, Num} => {H, N, sderl_sim_store:rows(St)}}}
    end.

diff(A, B) ->
    [{K, maps:get(K, A, none), maps:get(K, B, none)} || K <- lists:usort(maps:keys(A) ++ maps:keys(B)),
        maps:get(K, A, none) =/= maps:get(K, B, none)].

%% ---------------------------------------------------------------- what must hold at every step

%% Rule 9: what a node has promised or acknowledged it never goes below.
sent(N, {ack, E, _, _}, W) -> promise(N, E, W);
sent(N, {joined, E, _, _}, W) -> promise(N, E, W);
sent(_, _, W) -> W.

promise(N, E, #w{promised = P} = W) ->
    #n{life = Life} = node(N, W),
    case P of
        #{{N, Life} := Max} when E < Max -> violation(W, {went_back, N, E, Max});
        _ -> W#w{promised = P#{{N, Life} => E}}
    end.

check(N, S, W) ->
    case S of
        #s{role = coord, num = Num, flight = F, specials = Sp, d = #d{lineage = E, view = V}} ->
            %% A live member has all but the batch that is out. (One that has just caught up counts
            %% from the next batch on.)
            Wait = case F of #flight{wait = Ws} -> Ws; undefined -> [] end,
            _ = [violation(W, {positions, N, Num, M, Has}) || Sp =:= [],
                 M := live <- V, M =/= N, #s{role = follower, lead = L, num = Has, d = #d{lineage = E2, syncing = false}} <- [state(M, W)],
                 L =:= N, E2 =:= E, Has =/= Num, not lists:member(M, Wait) orelse Has > Num],
            unique(N, W);
        _ -> ok
    end,
    W.

unique(N, W) ->
    Pids = [P || _ := {_, P, _, _, _} <- rows(N, W)],
    length(lists:usort(Pids)) =:= length(Pids) orelse violation(W, {pid_twice, N, Pids -- lists:usort(Pids)}).

%% An answer: the first is the only one; a `yes` is on every live member by then.
reply(_, none, _, W) -> W;
reply(N, {probe, _} = From, V, W) -> answered(N, From, V, W);
reply(N, From, V, W) -> answered(N, From, V, W).

answered(N, From, V, #w{ops = Ops} = W0) ->
    case Ops of
        #{From := #{answer := V}} -> W0;
        #{From := #{answer := {live, _}}} -> W0;
        #{From := #{answer := Other}} -> violation(W0, {two_answers, From, Other, V});
        #{From := #{op := Op} = O} ->
            V =:= yes andalso everywhere(N, From, Op, W0),
            W1 = W0#w{ops = Ops#{From := O#{answer => V, at => W0#w.now}}},
            next(From, O, V, truth(O, V, W1));
        _ -> violation(W0, {answer_to_nobody, From, V})
    end.

everywhere(N, From, Op, #w{lists = Ls, segs = Segs} = W) ->
    Where = maps:get(maps:get(From, Ls), Segs, []),
    #s{lead = Lead, leaving = Leaving} = S = state(N, W),
    Where =:= [] andalso violation(W, {yes_without_batch, From, Op}),
    %% (A member that hears that it was removed answers what it has applied.)
    case Lead =/= undefined andalso Leaving =:= undefined andalso state(Lead, W) of
        #s{role = coord, specials = [], flight = Fl, last = Last, d = #d{view = V0, lineage = E}} when E =:= S#s.d#d.lineage ->
            %% Who has just caught up counts from the batch on that says so.
            New = case Fl of #flight{wait = Wait} -> [M || {view, _, _, _} <- Last, M <- Wait]; _ -> [] end,
            V = maps:without(New, V0),
            Bad = fun({LE, Num}) ->
                [M || M := live <- V, #s{num = Has, d = #d{lineage = ME, history = H, syncing = false}} <- [state(M, W)],
                      case ME =:= LE of
                          true -> Has < Num;
                          false -> case lists:keyfind(LE, 1, H) of
                                       {_, F} -> F < Num;
                                       false -> ME =:= E andalso LE =:= E
                                   end
                      end]
            end,
            lists:any(fun(P) -> Bad(P) =:= [] end, Where)
                orelse violation(W, {yes_not_everywhere, N, From, Op, [{P, Bad(P)} || P <- Where]});
        _ -> ok
    end.

%% ---------------------------------------------------------------- clients

start_clients(K, W0) ->
    lists:foldl(fun(N, W) ->
        lists:foldl(fun(I, A) -> {D, A1} = rnd(1, 4000, A), in(D, {client, N, (node(N, A))#n.life, I}, A1) end, W, lists:seq(1, K))
    end, W0#w{done = (W0#w.done)#{clients => K}}, all(W0)).

client(_, _, _, #w{clients = false} = W) -> W;
client(N, Life, K, W0) ->
    case node(N, W0) of
        #n{up = true, life = Life, paused = false, p = #p{}} ->
            {Op, W1} = choose(N, Life, K, W0),
            submit(N, {client, K}, Op, W1);
        #n{up = true, life = Life} -> in(1000, {client, N, Life, K}, W0);
        _ -> W0
    end.

submit(N, Who, Op, #w{opno = I, ops = Ops} = W0) ->
    #n{life = Life} = node(N, W0),
    Id = {op, I + 1},
    W1 = pending(N, Op, W0),
    W2 = W1#w{opno = I + 1, ops = Ops#{Id => #{op => Op, node => N, life => Life, who => Who, since => W0#w.now,
                                             contest => contest(name_in(Op), W1)}}},
    trace(W2, "~p op ~0p ~0p", [N, Id, Op]),
    mail(N, {op, Id, Op}, W2).

next(_, #{who := {client, K}, node := N, life := Life}, _, W0) ->
    {Busy, W1} = chance(50, W0),
    {D, W2} = case Busy of true -> {0, W1}; false -> rnd(1, 800, W1) end,
    in(D, {client, N, Life, K}, W2);
next(_, _, _, W) -> W.

%% A client owns one name, and with others fights for a few.
choose(N, Life, K, W0) ->
    {X, W1} = rnd(1, 100, W0),
    Own = {own, N, Life, K},
    if
        X =< 60 ->
            case maps:get(Own, W1#w.truth, absent) of
                {present, Pid} ->
                    {Y, W2} = rnd(1, 5, W1),
                    {New, W3} = pid(N, W2),
                    case Y of
                        1 -> {{Own}, W3};
                        2 -> {{rr, Own, New, #{}}, W3};
                        3 -> {{d, Own, Pid}, W3};
                        4 -> {{r, Own, New, #{}}, W3};
                        _ -> {{x, Own, New, Pid, #{}}, W3}
                    end;
                _ -> {P, W2} = pid(N, W1), {[Own | P], W2}
            end;
        X =< 64 ->
            %% Somebody else's name.
            case lists:sort(maps:keys(W1#w.truth)) of
                [] -> {P, W2} = pid(N, W1), {{r, Own, P, #{}}, W2};
                Os -> {O, W2} = pick(Os, W1), {{O}, W2}
            end;
        true ->
            {C, W2} = pick([a, b, c, d], W1),
            {P, W3} = case X > 96 of
                true -> {M, Wm} = pick(all(W2), W2), pid(M, Wm);
                false -> pid(N, W2)
            end,
            {Y, W4} = rnd(1, 10, W3),
            if
                Y =< 5 -> {[C | P], W4};
                Y =< 7 -> {{C}, W4};
                Y =< 8 -> {{rr, C, P, #{}}, W4};
                true ->
                    case maps:get(C, rows(N, W4), none) of
                        {_, Old, _, _, _} -> {{x, C, P, Old, #{}}, W4};
                        none -> {{r, C, P, #{}}, W4}
                    end
            end
    end.

%% What must be true of a client's own name: {present, Pid}, absent or unknown. Operations of others
%% on it are counted when asked and when answered: an answer tells only where none was under way.
pending(N, Op, #w{contest = C} = W) ->
    case name_in(Op) of
        {own, Owner, _, _} = Own when Owner =/= N ->
            {K, Out} = maps:get(Own, C, {0, 0}),
            W#w{contest = C#{Own => {K + 1, Out + 1}}, truth = (W#w.truth)#{Own => unknown}};
        _ -> W
    end.

contest(Name, #w{contest = C}) -> maps:get(Name, C, {0, 0}).

name_in({r, Name, _, _}) -> Name;
name_in({x, Name, _, _, _}) -> Name;
name_in({rr, Name, _, _}) -> Name;
name_in({Name}) -> Name;
name_in([Name | _]) -> Name;
name_in({d, Name, _}) -> Name;
name_in(_) -> none.

truth(#{op := Op, node := N, contest := Contest}, V, #w{truth = T, contest = C} = W) ->
    case name_in(Op) of
        {own, Owner, _, _} = Own when Owner =/= N ->
            {K, Out} = maps:get(Own, C),
            W#w{contest = C#{Own := {K + 1, Out - 1}}};
        {own, _, _, _} = Own ->
            Was = maps:get(Own, T, absent),
            Alone = Contest =:= contest(Own, W) andalso element(2, Contest) =:= 0,
            Is = case {Op, V} of
                _ when not Alone -> unknown;
                {{r, _, P, _}, yes} -> {present, P};
                {{rr, _, P, _}, yes} -> {present, P};
                {{x, _, P, _, _}, yes} -> {present, P};
                {{_}, ok} -> absent;
                {[_ | P], yes} -> {present, P};
                {{d, _, P}, ok} when Was =:= {present, P} -> absent;
                {_, {no, not_member}} -> unknown;
                {[_ | _], {no, _}} when Was =:= absent -> violation(W, {no_for_a_free_name, Own, Op, V});
                {{r, _, _, _}, {no, _}} when Was =:= absent -> violation(W, {no_for_a_free_name, Own, Op, V});
                {{rr, _, _, _}, {no, _}} -> violation(W, {no_for_a_new_pid, Own, Op, V});
                _ -> Was
            end,
            W#w{truth = T#{Own => Is}};
        _ -> W
    end.

%% ---------------------------------------------------------------- commands of a script

-doc "Runs a command of a script at once.".
-spec apply_cmd(term(), world()) -> world().
apply_cmd(C, W) -> command(C, W).

command({start, N}, W) ->
    case node(N, W) of
        #n{up = true} -> W;
        #n{config = none} = X -> keep(X#n{up = true}, W);
        #n{config = Ms} = X ->
            Mem = sderl_membership:new(Ms),
            begin_member(N, #{mem => Mem}, sderl_sim_store:new(N, Ms), keep(X#n{up = true, inc_mem = Mem}, W))
    end;
command({crash, N, How}, W0) ->
    case node(N, W0) of
        #n{up = true} = X ->
            W1 = keep(X#n{up = false, p = undefined, store = undefined, paused = false, held = [], crash = false,
                         gone = undefined, life = X#n.life + 1}, W0),
            W2 = lists:foldl(fun(M, W) -> cut(N, M, How, W) end, W1, all(W1) -- [N]),
            %% Ends that nobody is left to notice.
            forget_links(N, W2);
        _ -> W0
    end;
command({restart, N}, W0) ->
    case up(N, W0) of
        true -> W0;
        false ->
            W1 = command({start, N}, W0),
            K = maps:get(clients, W1#w.done, 0),
            lists:foldl(fun(I, W) -> in(1000, {client, N, (node(N, W))#n.life, I}, W) end, W1, lists:seq(1, K))
    end;
command({kill, N}, W) -> kill_process(N, W);
command({kill_in_step, N}, W) -> case node(N, W) of #n{p = #p{}} = X -> keep(X#n{crash = true}, W); _ -> W end;
command({pause, N}, W) -> case node(N, W) of #n{up = true} = X -> keep(X#n{paused = true}, W); _ -> W end;
command({resume, N}, W0) ->
    case node(N, W0) of
        #n{up = true, paused = true, held = H0, p = P} = X ->
            W1 = keep(X#n{paused = false, held = []}, W0),
            H = lists:reverse(H0),
            {First, W2} = chance(70, W1),
            Tick = case P of undefined -> []; #p{id = Id} -> [{proc, Id, tick}] end,
            Items = [I || I <- H, case I of {proc, _, tick} -> false; _ -> true end],
            W3 = case P of #p{id = Id2} -> tick_later(N, Id2, W2); _ -> W2 end,
            lists:foldl(fun({again, I}, W) -> in(0, {step, N, I}, W);
                           (I, W) -> take(N, I, (node(N, W))#n.p, W)
                        end, W3, case First of true -> Tick ++ Items; false -> Items ++ Tick end);
        _ -> W0
    end;
command(resume_all, W0) -> lists:foldl(fun(N, W) -> command({resume, N}, W) end, W0, all(W0));
command({cut, A, B, How}, W) -> cut(A, B, How, W#w{cuts = (W#w.cuts)#{pair(A, B) => []}});
command({uncut, A, B}, W) -> W#w{cuts = maps:remove(pair(A, B), W#w.cuts)};
command({split, As, Bs, How}, W) -> lists:foldl(fun({A, B}, X) -> command({cut, A, B, How}, X) end, W, [{A, B} || A <- As, B <- Bs]);
command({drop, A, B}, W) -> cut(A, B, fast, W);
command(join, W) -> W#w{cuts = #{}};
command({delay, A, B, Range}, W) -> W#w{delays = (W#w.delays)#{{A, B} => Range}};
command({no_delay, A, B}, W) -> W#w{delays = maps:remove({A, B}, W#w.delays)};
command({op, N, Op}, W) -> op_cmd(N, script, Op, W);
command({op, N, Id, Op}, #w{ops = Ops} = W) ->
    #n{life = Life} = node(N, W),
    mail(N, {op, Id, Op}, W#w{ops = Ops#{Id => #{op => Op, node => N, life => Life, who => script, since => W#w.now, contest => {0, 0}}}});
command({die, Pid}, W) -> die(Pid, W);
command({die_name, N, Name}, W) ->
    case maps:get(Name, rows(N, W), none) of {_, Pid, _, _, _} -> die(Pid, W); none -> W end;
command({die_own, K}, W) ->
    case [P || _ := {present, P} <- maps:iterator(W#w.truth, ordered), alive(P, W)] of
        [] -> W;
        Ps -> die(lists:nth(K rem length(Ps) + 1, Ps), W)
    end;
command({add, N, M}, W) -> op_cmd(N, script, {add, [M]}, W);
command({remove, N, M}, W) -> op_cmd(N, script, {remove, [M], 1}, W);
command({delete, N}, W) -> op_cmd(N, script, delete, W#w{deleted = true});
command({on_coord, C}, W) -> case coord(W) of [N | _] -> command({C, N}, W); [] -> W end;
command({on_coord, C, X}, W) -> case coord(W) of [N | _] -> command({C, N, X}, W); [] -> W end;
command({'fun', F}, W) -> F(W);
command({check, F}, W) ->
    case F(W) of
        true -> W;
        Else -> violation(W, {check, Else})
    end;
command(heal, W0) ->
    W1 = W0#w{cuts = #{}, delays = #{}},
    lists:foldl(fun(N, W) -> command({restart, N}, command({resume, N}, W)) end, W1, all(W1)).

op_cmd(N, Who, Op, W) ->
    case node(N, W) of
        #n{up = true, p = #p{}} -> submit(N, Who, Op, W);
        _ -> W
    end.

die(Pid, #w{dead = Dead} = W0) ->
    W = W0#w{dead = Dead#{Pid => true}},
    N = node(Pid),
    dead_rows(N, lists:sort([R || _ := {_, P, _, _, _} = R <- rows(N, W), P =:= Pid]), W).

kill_process(N, W) ->
    case node(N, W) of
        #n{up = true, p = #p{}, life = Life} = X ->
            trace(W, "process of ~p dies", [N]),
            {D, W1} = rnd(1, 300, keep(X#n{p = undefined, crash = false}, W)),
            in(D, {restart, N, Life}, W1);
        _ -> W
    end.

forget_links(N, #w{links = Ls} = W) ->
    W#w{links = maps:filtermap(fun(_, #l{a = A, b = B, up = Up, down = Down} = L) when A =:= N; B =:= N ->
                                       Other = case A of N -> B; _ -> A end,
                                       case lists:member(Other, Down) orelse not up(Other, W) of
                                           true -> false;
                                           false -> {true, L#l{up = Up#{N => down}, down = [N | Down]}}
                                       end;
                                  (_, _) -> true
                               end, Ls)}.

%% ---------------------------------------------------------------- random faults

random_script(W0) ->
    {K, W1} = rnd(1, maps:get(faults, W0#w.opts, 12), W0),
    lists:foldl(fun(_, {Script, W}) ->
        {T, Wa} = rnd(2000, maps:get(time, W#w.opts, 40_000), W),
        {Cs, Wb} = random_fault(T, Wa),
        {Cs ++ Script, Wb}
    end, {[], W1}, lists:seq(1, K)).

random_fault(T, W0) ->
    Names = all(W0),
    {N, W1} = pick(Names, W0),
    {M, W2} = pick(Names -- [N], W1),
    {D, W3} = rnd(50, 9000, W2),
    {X, W4} = rnd(1, 100, W3),
    {How, W5} = pick([fast, slow], W4),
    if
        X =< 15 -> {[{T, {crash, N, How}}, {T + D, {restart, N}}], W5};
        X =< 25 -> {[{T, {on_coord, crash, How}}, {T + D, heal_nodes()}], W5};
        X =< 33 -> {[{T, {kill, N}}], W5};
        X =< 41 -> {[{T, {kill_in_step, N}}], W5};
        X =< 46 -> {[{T, {on_coord, kill_in_step}}], W5};
        X =< 56 -> {[{T, {pause, N}}, {T + D, {resume, N}}], W5};
        X =< 60 -> {[{T, {on_coord, pause}}, {T + D, resume_all}], W5};
        X =< 70 -> {[{T, {cut, N, M, How}}, {T + D, {uncut, N, M}}], W5};
        X =< 82 ->
            {Side, W6} = side(Names, W5),
            {[{T, {split, Side, Names -- Side, How}}, {T + D, join}], W6};
        X =< 86 -> {[{T, {drop, N, M}}], W5};
        X =< 90 -> {[{T, {die_own, X * 7 + D}}], W5};
        X =< 94 -> {[{T, {add, N, M}}], W5};
        X =< 97 -> {[{T, {remove, N, M}}], W5};
        true -> {[{T, {pause, N}}, {T + 300, {cut, N, M, How}}, {T + D, {resume, N}}, {T + 2 * D, {uncut, N, M}}], W5}
    end.

heal_nodes() -> {'fun', fun(W0) -> lists:foldl(fun(N, W) -> command({restart, N}, W) end, W0, all(W0)) end}.

side(Names, W0) ->
    {Side, W} = lists:foldl(fun(N, {S, Wa}) -> {In, Wb} = chance(50, Wa), {[N || In] ++ S, Wb} end, {[], W0}, Names),
    case Side =:= [] orelse length(Side) =:= length(Names) of
        true -> {[hd(Names)], W};
        false -> {Side, W}
    end.

%% ---------------------------------------------------------------- after the faults

%% Rule 19: whoever asks now is answered.
probe(W0) ->
    lists:foldl(fun(N, W) ->
        {P, W1} = pid(N, W),
        submit(N, script, {r, {probe, N}, P, #{}}, W1)
    end, W0, live_members(W0)).

settled(#w{deleted = true} = W) ->
    case live_members(W) of
        [] -> W;
        Ns -> violation(W, {deleted_but_there, Ns})
    end;
settled(W) ->
    Ns = live_members(W),
    Unanswered = [{Id, Op, N} || Id := #{op := Op, node := N, life := L} = O <- W#w.ops, not is_map_key(answer, O),
                                 #n{up = true, life = L2, p = #p{}} <- [node(N, W)], L2 =:= L],
    Info = fun(N) -> I = sderl_core:info(state(N, W)), {N, maps:with([role, coordinator, epoch, lineage, number, live, aside, syncing, members, linked, talking, waiting], I)} end,
    Infos = [Info(N) || N <- Ns],
    Unanswered =:= [] orelse violation(W, {unanswered, Unanswered, Infos}),
    case [N || N <- Ns, #s{role = coord} <- [state(N, W)]] of
        [C] -> one_component(C, Ns, W);
        Cs -> violation(W, {coordinators, Cs, Infos})
    end.

one_component(C, Ns, W) ->
    #s{d = #d{lineage = E, mem = Mem, tomb = Tomb}} = S = state(C, W),
    Members = sderl_membership:members(Mem),
    Bad = [{N, sderl_core:info(state(N, W))} || N <- Ns, not in_component(state(N, W), C, E, Mem)],
    Bad =:= [] orelse violation(W, {not_in_component, C, E, Members, Bad}),
    Ns =:= Members orelse violation(W, {members, Members, Ns}),
    sderl_core:live(S) =:= Members orelse violation(W, {live, sderl_core:live(S), Members}),
    Tomb =:= #{} orelse violation(W, {tomb, Tomb}),
    Rows = rows(C, W),
    _ = [violation(W, {tables, C, N, diff(rows(N, W), Rows)}) || N <- Ns, rows(N, W) =/= Rows],
    _ = [violation(W, {home, R}) || _ := {_, _, Home, _, _} = R <- Rows, not lists:member(Home, Members)],
    _ = [violation(W, {dead_pid, R}) || _ := {_, Pid, _, _, _} = R <- Rows, not alive(Pid, W)],
    _ = [unique(N, W) || N <- Ns],
    maps:foreach(fun(Own, T) -> expect(Own, T, maps:get(Own, Rows, none), W) end, W#w.truth),
    trace(W, "settled: ~b names, ~b steps, ~b ops, epoch ~p, number ~b",
          [map_size(Rows), W#w.steps, W#w.opno, E, S#s.num]),
    W.

in_component(#s{role = R, lead = L, num = Num, d = D} = S, C, E, Mem) ->
    (R =:= coord orelse R =:= follower) andalso L =:= C andalso D#d.lineage =:= E andalso D#d.mem =:= Mem
        andalso not D#d.syncing andalso Num >= 0 andalso S#s.queue =:= [] andalso S#s.out =:= undefined
        andalso sderl_core:settled(S).

expect({own, N, Life, _} = Own, Truth, Row, W) ->
    #n{life = Now, up = Up} = node(N, W),
    Same = Up andalso Now =:= Life,
    Left = is_map_key({N, Life}, W#w.removed),
    case Truth of
        _ when not Same, Row =/= none -> violation(W, {zombie, Own, Row});
        {present, Pid} when Same, not Left ->
            Expect = case alive(Pid, W) of true -> Pid; false -> none end,
            case Row of
                {_, Expect, _, _, _} -> ok;
                none when Expect =:= none -> ok;
                _ -> violation(W, {lost_name, Own, Truth, Row})
            end;
        absent when Row =/= none -> violation(W, {zombie, Own, Row});
        _ -> ok
    end;
expect(_, _, _, _) -> ok.
