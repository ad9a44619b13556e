%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_topology).
-moduledoc """
The sockets, cores and threads of a node's machine, as `erlang:system_info(cpu_topology)` has them.
""".

-export([schedulers/2]).

-doc "Where each scheduler runs: its socket, core and thread, and whether it is bound there.".
-spec schedulers(term(), [unbound | integer()]) -> [sderl_mon_samples:place()].
schedulers(undefined, Bindings) ->
    [#{scheduler => I, socket => 0, core => I - 1, thread => 0, bound => false}
     || {I, _} <- lists:enumerate(Bindings)];
schedulers(Levels, Bindings) ->
    Logical = logical(Levels, [], #{socket => [], core => [], thread => 0}),
    Sockets = lists:uniq([S || {_, #{socket := S}} <- Logical]),
    Cores = fun(Socket) ->
        lists:uniq([C || {_, #{socket := S, core := C}} <- Logical, S =:= Socket])
    end,
    [begin
         #{socket := S, core := C, thread := T} = case lists:keyfind(Bound, 1, Logical) of
             {_, At} -> At;
             %% The system decides where it runs: shown as if schedulers were bound in order.
             false -> element(2, lists:nth(1 + (I - 1) rem length(Logical), Logical))
         end,
         #{scheduler => I, socket => place(S, Sockets), core => place(C, Cores(S)), thread => T,
           bound => is_integer(Bound)}
     end || {I, Bound} <- lists:enumerate(Bindings)].

place(X, List) -> length(lists:takewhile(fun(Y) -> Y =/= X end, List)).

%% The logical processors with the paths of their socket and core in the tree, which may have other
%% levels.
logical({logical, Id}, _, At) -> [{Id, At}];
logical(Levels, Path, At) ->
    lists:append([begin
        {Tag, Sub} = case L of {T, _Info, X} -> {T, X}; {T, X} -> {T, X} end,
        Way = [I | Path],
        case Tag of
            processor -> logical(Sub, Way, At#{socket := Way});
            core -> logical(Sub, Way, At#{core := Way});
            thread -> logical(Sub, Way, At#{thread := I});
            logical -> [{Sub, At}];
            _ -> logical(Sub, Way, At)
        end
     end || {I, L} <- lists:enumerate(0, Levels)]).
