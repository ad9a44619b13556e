%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_orbit_int).
-moduledoc """
`orbit_int`: the orbit of `m:sderl_orbit_generators` by workers, each of which owns a part of the
space; a worker sends every image to its owner. `g13` over 11 numbers for each core (short), `g124`
or `g1245` over 157; 2 workers for each core. Termination is detected by credits, as in Orbit
itself. On several nodes the workers are spread over these in turn, and the master is on the first
one.

With the setting `intra_worker` a worker starts a process for each new vertex, which computes its
images and sends them; without it the worker does so itself. The published program has both.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/2, spread/0, uses/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "Orbit by workers: uneven work, many messages".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    {Generators, Space} = maps:get(Size, #{short => {g13, 11}, intermediate => {g124, 157},
                                           long => {g1245, 157}}),
    #{generators => Generators, space => Cores * Space, workers => 2 * Cores,
      intra_worker => false}.

%% The first vertex, and the images of each element that was found.
-doc false.
-spec operations(sderl_bench_vm_program:settings(), {pos_integer(), non_neg_integer()}) ->
    {pos_integer(), string()}.
operations(#{generators := Name}, {Size, _}) ->
    {ok, Generators} = sderl_orbit_generators:parse(Name),
    {1 + Size * length(Generators), "vertex"}.

-doc false.
-spec uses() -> [module()].
uses() -> [sderl_orbit_generators, sderl_orbit_credit].

-doc false.
-spec spread() -> string().
spread() -> "its workers".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) ->
    {Size :: non_neg_integer(), Sum :: non_neg_integer()}.
run(run, #{generators := Name, space := Space, workers := Count} = Settings) ->
    {ok, Generators} = sderl_orbit_generators:parse(Name),
    Own = #{master => self(), generators => Generators, space => Space,
            intra_worker => maps:get(intra_worker, Settings, false)},
    Master = self(),
    Workers = list_to_tuple([spawn_link(Node, fun() -> worker(Own) end)
                             || Node <- sderl_bench_vm_nodes:in_turn(Count, Settings)]),
    _ = [Worker ! {workers, Workers} || Worker <- tuple_to_list(Workers)],
    [Whole] = sderl_orbit_credit:one(),
    owner(0, Workers) ! {vertex, 0, Whole},
    ok = collect(sderl_orbit_credit:zero()),
    _ = [Worker ! {dump, Master} || Worker <- tuple_to_list(Workers)],
    Found = lists:append([receive {found, Worker, Part} -> Part end
                          || Worker <- tuple_to_list(Workers)]),
    {length(Found), lists:sum(Found)}.

collect(Credit) ->
    case sderl_orbit_credit:is_one(Credit) of
        true -> ok;
        false ->
            receive
                {done, Returned} -> collect(sderl_orbit_credit:add(Returned, Credit))
            end
    end.

owner(X, Workers) -> element(1 + erlang:phash2(X, tuple_size(Workers)), Workers).

worker(Own) ->
    receive
        {workers, Workers} -> work(Own#{workers => Workers}, #{}, sderl_orbit_credit:zero(), 0)
    end.

work(#{master := Master} = Own, Seen, Credit, Unit) ->
    receive
        {vertex, X, Atom} ->
            More = sderl_orbit_credit:add_atom(Atom, Credit),
            case Seen of
                #{X := _} -> work(Own, Seen, More, Unit);
                #{} ->
                    {Left, Next} = expand(X, Own, More, Unit),
                    work(Own, Seen#{X => found}, Left, Next)
            end;
        {dump, Master} ->
            Master ! {found, self(), maps:keys(Seen)}
    after 0 ->
        idle(Own, Seen, Credit)
    end.

%% Nothing to do: the credit goes back to the master, and the next vertex brings new credit.
idle(#{master := Master} = Own, Seen, Credit) ->
    _ = case Credit =:= sderl_orbit_credit:zero() of
        true -> nothing;
        false -> Master ! {done, Credit}
    end,
    receive
        {vertex, _, _} = Vertex ->
            self() ! Vertex,
            work(Own, Seen, sderl_orbit_credit:zero(), 0);
        {dump, Master} ->
            Master ! {found, self(), maps:keys(Seen)}
    end.

expand(X, #{intra_worker := false} = Own, Credit, Unit) ->
    send(images(X, Own), Own, Credit, Unit);
expand(X, #{intra_worker := true} = Own, Credit, Unit) ->
    {Atom, Left, Next} = sderl_orbit_credit:debit_keeping(Unit, Credit),
    _ = spawn_link(fun() -> send_all(images(X, Own), Atom, Own) end),
    {Left, Next}.

%% All of the credit goes with the images: each takes half of what is left, the last one the rest.
send_all([X], Atom, Own) ->
    send_to_owner(X, Atom, Own);
send_all([X | Xs], Atom, Own) ->
    send_to_owner(X, Atom + 1, Own),
    send_all(Xs, Atom + 1, Own).

send_to_owner(X, Atom, #{workers := Workers}) ->
    owner(X, Workers) ! {vertex, X, Atom},
    ok.

images(X, #{generators := Generators, space := Space}) ->
    sderl_orbit_generators:images(Generators, X, Space).

send([], _, Credit, Unit) ->
    {Credit, Unit};
send([X | Xs], Own, Credit, Unit) ->
    {Atom, Left, Next} = sderl_orbit_credit:debit_keeping(Unit, Credit),
    ok = send_to_owner(X, Atom, Own),
    send(Xs, Own, Left, Next).
