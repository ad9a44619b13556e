%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_global).
-moduledoc "The demo's stock side: names in `global`, on a full mesh.".

-behaviour(sderl_demo_registry).

-export([via/1, register/3, unregister/2, whereis/2, call/2, names/1, bytes/0]).

-doc "A server's `via` name.".
-spec via(sderl_demo_layout:server()) -> {via, module(), term()}.
via(Server) -> {via, global, Server}.

-doc "Registers `{Group, Name}`, or says that it is taken.".
-spec register(sderl_demo_layout:group_name(), term(), pid()) -> sderl_demo_registry:result().
register(Group, Name, Pid) ->
    case global:register_name({Group, Name}, Pid) of
        yes -> ok;
        no -> {error, no}
    end.

-doc "Removes `{Group, Name}`.".
-spec unregister(sderl_demo_layout:group_name(), term()) -> sderl_demo_registry:result().
unregister(Group, Name) ->
    %% The value is not documented; the call returns when all nodes have removed the name.
    _ = global:unregister_name({Group, Name}),
    ok.

-doc "Reads this node's copy of the names.".
-spec whereis(sderl_demo_layout:group_name(), term()) -> pid() | undefined.
whereis(Group, Name) -> global:whereis_name({Group, Name}).

-doc "Calls the process that this node's copy of the names has.".
-spec call(sderl_demo_layout:server(), WorkMs :: non_neg_integer()) -> sderl_demo_registry:called().
call({Group, Name} = Server, WorkMs) ->
    sderl_demo_registry:call(whereis(Group, Name), Server, WorkMs).

-doc "All names of a group.".
-spec names(sderl_demo_layout:group_name()) -> [term()].
names(Group) -> [Name || {G, Name} <- global:registered_names(), G =:= Group].

-doc "Of the tables in which `global` keeps names on each node.".
-spec bytes() -> non_neg_integer().
bytes() ->
    Tables = [global_names, global_names_ext, global_pid_names, global_pid_ids],
    words(Tables, 0) * erlang:system_info(wordsize).

words([], Sum) -> Sum;
words([Table | Tables], Sum) ->
    case ets:info(Table, memory) of
        undefined -> words(Tables, Sum);
        Count when is_integer(Count) -> words(Tables, Sum + Count)
    end.
