%% SPDX-License-Identifier: Apache-2.0
-module(sderl_op).
-moduledoc false.
%% Operations of a member's clients: what is asked of several kinds of them alike.

-include("sderl_op.hrl").

-export([register/3, name/1, names/1, registers/1, meta/1]).
-export_type([operation/0, options/0, item/0]).

-doc "Register a name, in the shortest form that says it.".
-spec register(term(), pid(), options()) -> operation().
register(Name, Pid, []) -> ?REGISTER(Name, Pid);
register(Name, Pid, Options) -> #?REGISTER_WITH{name = Name, pid = Pid, options = Options}.

-doc "The name that an operation registers or removes.".
-spec name(operation()) -> {ok, Name :: term()} | none.
name(?REGISTER(Name, _)) -> {ok, Name};
name(?UNREGISTER(Name)) -> {ok, Name};
name(#?REGISTER_WITH{name = Name}) -> {ok, Name};
name(#?REGISTER_OVER{name = Name}) -> {ok, Name};
name(#?RE_REGISTER{name = Name}) -> {ok, Name};
name(?UNREGISTER_OF(Name, _)) -> {ok, Name};
name(_) -> none.

-doc "The names that operations register or remove.".
-spec names([operation()]) -> [Name :: term()].
names(Operations) -> [Name || Operation <- Operations, {ok, Name} <- [name(Operation)]].

-doc "The process that an operation registers.".
-spec registers(operation()) -> pid() | none.
registers(?REGISTER(_, Pid)) -> Pid;
registers(#?REGISTER_WITH{pid = Pid}) -> Pid;
registers(#?REGISTER_OVER{pid = Pid}) -> Pid;
registers(#?RE_REGISTER{pid = Pid}) -> Pid;
registers(_) -> none.

-doc "The metadata that a name was registered with.".
-spec meta(options()) -> term().
meta(#{meta := Meta}) -> Meta;
meta(_) -> undefined.
