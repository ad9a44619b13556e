%% SPDX-License-Identifier: Apache-2.0
-module(sderl_check).
-moduledoc false.
%% Checks of terms that come from outside, and error texts for those that do not fit, for all parts
%% of the configuration.

-export([proper_list/1, is_file/1, is_consistency/1, is_answer/1, is_majority_lost/1]).
-export([bad/3, boolean/2, count/3, each/3, milliseconds/2]).
-export([sentence/3, place/1]).
-export([misuse/4, misuse/5]).
-export_type([path/0, expected/0, error/0]).

-define(MAX_MS, 16#FFFFFFFF).
%% Large terms are cut, so that a sentence stays readable.
-define(DEPTH, 40).

-doc """
Where a term stands, outermost first: `[sderl, s_groups, 2, nodes, 3]`. Positions count from 1.
""".
-type path() :: [atom() | pos_integer() | {key, term()}].

-doc "What was expected there. Each part of the configuration has the text for its own.".
-type expected() :: atom() | tuple().

-type error() :: {bad_config, path(), Found :: term(), expected()}.

-doc "Whether a term is a list to its end.".
-spec proper_list(term()) -> boolean().
%% In a guard, length/1 of anything else fails.
proper_list(List) when length(List) >= 0 -> true;
proper_list(_) -> false.

-doc "Whether a term can be the name of a file.".
-spec is_file(term()) -> boolean().
is_file(File) when is_binary(File) -> File =/= <<>>;
is_file([_ | _] = File) -> io_lib:char_list(File);
is_file(_) -> false.

-doc "Whether a term is a `t:sderl_options:consistency/0`.".
-spec is_consistency(term()) -> boolean().
is_consistency(Term) -> lists:member(Term, [available, majority]).

-doc "Whether a term is a `t:sderl_options:answer/0`.".
-spec is_answer(term()) -> boolean().
is_answer(Term) -> lists:member(Term, [committed, applied]).

-doc "Whether a term is a `t:sderl_options:majority_lost/0`.".
-spec is_majority_lost(term()) -> boolean().
is_majority_lost(Term) -> lists:member(Term, [notify, exit, ignore]).

-spec bad(path(), term(), expected()) -> {error, error()}.
bad(Path, Found, Expected) -> {error, {bad_config, Path, Found, Expected}}.

-spec boolean(path(), term()) -> {ok, boolean()} | {error, error()}.
boolean(_Path, Value) when is_boolean(Value) -> {ok, Value};
boolean(Path, Value) -> bad(Path, Value, boolean).

-doc "A whole number from 1 to `Most`.".
-spec count(path(), term(), pos_integer()) -> {ok, pos_integer()} | {error, error()}.
count(_Path, Value, Most) when is_integer(Value), Value > 0, Value =< Most -> {ok, Value};
count(Path, Value, Most) -> bad(Path, Value, {count, Most}).

-spec milliseconds(path(), term()) -> {ok, pos_integer()} | {error, error()}.
milliseconds(_Path, Value) when is_integer(Value), Value > 0, Value =< ?MAX_MS -> {ok, Value};
milliseconds(Path, Value) -> bad(Path, Value, milliseconds).

-doc "Checks every element with its position; the first that fails decides.".
-spec each(fun((path(), Element) -> {ok, Value} | {error, Error}), path(), [Element]) ->
    {ok, [Value]} | {error, Error}.
each(Check, Path, List) ->
    each(Check, Path, 1, List, []).

each(_Check, _Path, _Position, [], Checked) ->
    {ok, lists:reverse(Checked)};
each(Check, Path, Position, [Element | Rest], Checked) ->
    case Check(Path ++ [Position], Element) of
        {ok, Value} -> each(Check, Path, Position + 1, Rest, [Value | Checked]);
        {error, _} = Error -> Error
    end.

-doc "One sentence: where the term stands, what it is, and the remedy.".
-spec sentence(path(), term(), iodata()) -> string().
sentence(Path, Found, Remedy) ->
    lists:flatten(io_lib:format("bad configuration at ~ts: ~0tP ~ts",
                                [place(Path), Found, ?DEPTH, Remedy])).

-doc "A path for people: `sderl: s_groups[2].nodes[3]`.".
-spec place(path()) -> iolist().
place([App]) -> atom_to_list(App);
place([App | Path]) -> [atom_to_list(App), ":" | steps(Path, " ")].

steps([], _Separator) ->
    "";
steps([Position | Path], _Separator) when is_integer(Position) ->
    [$[, integer_to_list(Position), $] | steps(Path, ".")];
steps([{key, Key} | Path], _Separator) ->
    [io_lib:format("[~0tp]", [Key]) | steps(Path, ".")];
steps([Step | Path], Separator) ->
    [Separator, io_lib:format("~tp", [Step]) | steps(Path, ".")].

-doc "Raises for an argument of a public function that is not of its type.".
-spec misuse(module(), {Function :: atom(), arity()}, Argument :: pos_integer(), Found :: term(),
             Expected :: iodata()) -> no_return().
misuse(Module, Function, Argument, Found, Expected) ->
    misuse(Module, Function, Argument, #{found => Found, expected => Expected}).

-doc "The same with details of its own.".
-spec misuse(module(), {Function :: atom(), arity()}, Argument :: pos_integer(),
             Details :: map()) -> no_return().
misuse(Module, {Function, Arity}, Argument, Details) ->
    erlang:error({badarg, {Module, Function, Arity}, Details#{argument => Argument}}).
