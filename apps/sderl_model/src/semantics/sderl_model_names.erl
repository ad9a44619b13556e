%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model_names).
-moduledoc """
The rules for the names of one group, which is one namespace.

A namespace is a value; an operation gives an answer and another namespace. Links and membership are
not known here: `m:sderl_model` decides which node may call. A process is any term, so that the same
rules serve the semantics, whose processes are symbols, and a check of the answers of real nodes.

```erlang
{yes, Ns1} = sderl_model_names:step({register_name, db, p1}, n1, #{}),
{{no, name_or_pid_already_registered}, Ns1} =
    sderl_model_names:step({register_name, log, p1}, n1, Ns1),
{p1, Ns1} = sderl_model_names:step({whereis_name, db}, n1, Ns1).
```
""".

%% Sources. The rules `register`, `re_register` and `unregister` are those of Chechina et al., JPDC
%% 2016, and of its executable model, with the values of the library that was shipped. That a
%% process has at most one name in a namespace is theirs; that a death takes the name, and what
%% becomes of it when its home leaves, they leave open (INTERNALS, rules 14 to 16).

-export([step/3, died/2, lost/2, moved/2, union/1, drop/2]).
-export_type([names/0, entry/0, op/0, process/0]).

-doc "Any term that stands for a process.".
-type process() :: term().
-doc """
A registration. `home` is the member that answers for it: the process's node if that is a member,
else the member that registered it; `any` once that one has left and the group chose another.
""".
-type entry() :: #{pid := process(), home := node() | any, meta := term()}.
-type names() :: #{Name :: term() => entry()}.
-type op() ::
    {register_name, Name :: term(), process()}
    | {register_name, Name :: term(), process(), Options :: map()}
    | {re_register_name, Name :: term(), process()}
    | {unregister_name, Name :: term()}
    | {whereis_name, Name :: term()}.

-doc """
One operation by a member of the group. `Home` is the home that a registration gets.

- **register**: `yes` if neither the name nor the process is in the namespace. Then both are.
- **re_register**: `yes` if the process is not in the namespace, under this name or another. It
  then has the name, even if another process had it.
- **unregister**: `ok`, whether the name was there or not.
- **whereis**: the process or `undefined`.
""".
-spec step(op(), Home :: node(), names()) -> {Answer :: term(), names()}.
step({register_name, Name, Pid}, Home, Ns) ->
    step({register_name, Name, Pid, #{}}, Home, Ns);
step({register_name, Name, Pid, Options}, Home, Ns) ->
    case is_map_key(Name, Ns) orelse has(Pid, Ns) of
        true -> {{no, name_or_pid_already_registered}, Ns};
        false -> {yes, Ns#{Name => entry(Pid, Home, Options)}}
    end;
step({re_register_name, Name, Pid}, Home, Ns) ->
    case has(Pid, Ns) of
        true -> {{no, pid_is_already_registered}, Ns};
        false -> {yes, Ns#{Name => entry(Pid, Home, #{})}}
    end;
step({unregister_name, Name}, _, Ns) ->
    {ok, maps:remove(Name, Ns)};
step({whereis_name, Name}, _, Ns) ->
    {case Ns of #{Name := #{pid := Pid}} -> Pid; #{} -> undefined end, Ns}.

entry(Pid, Home, Options) ->
    #{pid => Pid, home => Home, meta => maps:get(meta, Options, undefined)}.

has(Pid, Ns) -> lists:any(fun(#{pid := P}) -> P =:= Pid end, maps:values(Ns)).

-doc "**died**: the process ended, its name goes.".
-spec died(process(), names()) -> names().
died(Pid, Ns) -> #{N => E || N := #{pid := P} = E <- Ns, P =/= Pid}.

-doc """
**lost**: a member went down. The names whose home it was are gone; those whose home is `any` may be
gone, and are returned separately.
""".
-spec lost(node(), names()) -> {names(), Open :: [Name :: term()]}.
lost(Node, Ns) ->
    {#{N => E || N := #{home := H} = E <- Ns, H =/= Node}, [N || N := #{home := any} <- Ns]}.

-doc "**moved**: members left. Names whose process lives there stay, and find another home.".
-spec moved([node()], names()) -> names().
moved(Nodes, Ns) ->
    #{N => case lists:member(H, Nodes) of true -> E#{home := any}; false -> E end
      || N := #{home := H} = E <- Ns}.

-doc "Takes a name away without asking.".
-spec drop(Name :: term(), names()) -> names().
drop(Name, Ns) -> maps:remove(Name, Ns).

-doc """
**union**: namespaces become one. Also gives what a resolver has to decide: names that different
processes hold, with all their entries, and processes that now have two names.
""".
-spec union([names()]) ->
    {names(), Clashes :: [{Name :: term(), [entry()]}], Twice :: [{process(), [Name :: term()]}]}.
union(All) ->
    Candidates = maps:groups_from_list(fun({N, _}) -> N end, fun({_, E}) -> E end,
                                       lists:append([maps:to_list(Ns) || Ns <- All])),
    Distinct = #{N => lists:usort(fun(#{pid := A}, #{pid := B}) -> A =< B end, Es)
                 || N := Es <- Candidates},
    Ns = #{N => E || N := [E | _] <- Distinct},
    Clashes = lists:sort([{N, Es} || N := [_, _ | _] = Es <- Distinct]),
    Holders = maps:groups_from_list(fun({_, P}) -> P end, fun({N, _}) -> N end,
                                    [{N, P} || N := [#{pid := P}] <- Distinct]),
    {Ns, Clashes, lists:sort([{P, lists:sort(Names)} || P := [_, _ | _] = Names <- Holders])}.
