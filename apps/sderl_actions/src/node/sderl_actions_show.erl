%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_show).
-moduledoc """
Terms of a node as text: bounded before they are formatted, and without secrets and the node's
cookies (`m:sderl_actions_cookie`). Of a term of a gigabyte only the shown part is visited.
""".

-export([term/2, line/2, text/1, cut/2, mfa/1, own_pid/1, pid/1, atom/1, pruned/2]).
-export([without_cookies/1]).

%% The most parts of a term that are visited.
-define(ITEMS, 2000).
-define(BYTES, 500).

-doc "A term over several lines, in at most `Most` bytes.".
-spec term(term(), pos_integer()) -> binary().
term(Term, Most) -> shown("~tP", Term, Most).

-doc "A term in one line, in at most `Most` bytes.".
-spec line(term(), pos_integer()) -> binary().
line(Term, Most) -> shown("~0tP", Term, Most).

shown(Format, Term, Most) ->
    Small = sderl_actions_secret:masked(pruned(Term, ?ITEMS)),
    cut(io_lib:format(Format, [Small, 1000], [{chars_limit, Most}]), Most).

-doc """
The first `Items` parts of a term, without cookies; `'...'` stands for the rest. Texts are cut to
500 bytes.
""".
-spec pruned(term(), pos_integer()) -> term().
pruned(Term, Items) ->
    {Small, _} = prune(Term, Items, sderl_actions_cookie:known()),
    Small.

prune(_, Left, _) when Left =< 0 -> {'...', 0};
prune([_ | _] = List, Left, Cookies) ->
    prune_list(sderl_actions_cookie:hidden_list(List, Left, Cookies), Left, [], Cookies);
prune(Tuple, Left, Cookies) when is_tuple(Tuple) -> prune_tuple(Tuple, 1, Left - 1, [], Cookies);
prune(Map, Left, Cookies) when is_map(Map) ->
    prune_map(maps:next(maps:iterator(Map)), Left - 1, [], Cookies);
prune(Text, Left, Cookies) when is_binary(Text), byte_size(Text) > ?BYTES ->
    {<<(binary:copy(sderl_actions_cookie:cut(Text, ?BYTES, Cookies)))/binary, "...">>, Left - 1};
prune(Text, Left, Cookies) when is_binary(Text) ->
    {sderl_actions_cookie:hidden(Text, Cookies), Left - 1};
prune(Bits, Left, _) when is_bitstring(Bits), bit_size(Bits) > 8 * ?BYTES ->
    {'...', Left - 1};
prune(Atom, Left, Cookies) when is_atom(Atom) ->
    Text = atom_to_binary(Atom),
    case sderl_actions_cookie:hidden(Text, Cookies) of
        Text -> {Atom, Left - 1};
        Hidden -> {Hidden, Left - 1}
    end;
prune(Fun, Left, _) when is_function(Fun) ->
    %% Without its environment.
    {module, M} = erlang:fun_info(Fun, module),
    {name, F} = erlang:fun_info(Fun, name),
    {arity, A} = erlang:fun_info(Fun, arity),
    {{'fun', M, F, A}, Left - 1};
prune(Term, Left, _) -> {Term, Left - 1}.

prune_list(_, Left, Acc, _) when Left =< 0 -> {lists:reverse(['...' | Acc]), 0};
prune_list([Head | Tail], Left, Acc, Cookies) ->
    {Small, Rest} = prune(Head, Left, Cookies),
    prune_list(Tail, Rest, [Small | Acc], Cookies);
prune_list([], Left, Acc, _) -> {lists:reverse(Acc), Left};
prune_list(Tail, Left, Acc, Cookies) ->
    {Small, Rest} = prune(Tail, Left, Cookies),
    {lists:reverse(Acc, Small), Rest}.

prune_tuple(Tuple, N, Left, Acc, _) when N > tuple_size(Tuple) ->
    {list_to_tuple(lists:reverse(Acc)), Left};
prune_tuple(_, _, Left, Acc, _) when Left =< 0 ->
    {list_to_tuple(lists:reverse(['...' | Acc])), 0};
prune_tuple(Tuple, N, Left, Acc, Cookies) ->
    {Small, Rest} = prune(element(N, Tuple), Left, Cookies),
    prune_tuple(Tuple, N + 1, Rest, [Small | Acc], Cookies).

prune_map(none, Left, Acc, _) -> {maps:from_list(Acc), Left};
prune_map(_, Left, Acc, _) when Left =< 0 -> {maps:from_list([{'...', '...'} | Acc]), 0};
prune_map({Key, Value, Next}, Left, Acc, Cookies) ->
    {SmallKey, Rest} = prune(Key, Left, Cookies),
    {Small, Last} = prune(Value, max(1, Rest), Cookies),
    prune_map(maps:next(Next), Last, [{SmallKey, Small} | Acc], Cookies).

-doc "The result of an action without cookies in any of its texts.".
-spec without_cookies(term()) -> term().
without_cookies(Result) -> without(Result, sderl_actions_cookie:known()).

without(Text, Cookies) when is_binary(Text) -> sderl_actions_cookie:hidden(Text, Cookies);
without(List, Cookies) when is_list(List) -> [without(Item, Cookies) || Item <- List];
without(Map, Cookies) when is_map(Map) ->
    #{without(Key, Cookies) => without(Value, Cookies) || Key := Value <- Map};
without(Term, _) -> Term.

-doc "A name, a label or another small term.".
-spec text(term()) -> binary().
text(Atom) when is_atom(Atom) -> cut(atom_to_binary(Atom), 255);
text(Text) when is_binary(Text) -> cut(Text, 255);
text(Term) -> line(Term, 255).

-doc "At most `Most` bytes of a text, without cookies, and no half character.".
-spec cut(unicode:chardata(), pos_integer()) -> binary().
cut(Text, Most) ->
    Whole = case unicode:characters_to_binary(Text) of
        Good when is_binary(Good) -> Good;
        {_, Good, _} -> Good
    end,
    Part = sderl_actions_cookie:cut(Whole, Most, sderl_actions_cookie:known()),
    case unicode:characters_to_binary(binary:part(Part, 0, min(byte_size(Part), Most))) of
        Short when is_binary(Short) -> Short;
        {_, Short, _} -> Short
    end.

-doc "A function as people write it.".
-spec mfa(term()) -> binary().
mfa({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) ->
    cut(io_lib:format("~ts:~ts/~b", [M, F, A]), 255);
mfa({M, F, A}) when is_atom(M), is_atom(F), is_list(A) -> mfa({M, F, length(A)});
mfa(Term) -> text(Term).

-doc "A process of this node or another, as this node prints it.".
-spec own_pid(term()) -> binary().
own_pid(Pid) when is_pid(Pid) -> list_to_binary(pid_to_list(Pid));
own_pid(Term) -> text(Term).

-doc "A process of this node: by its pid as any node prints it, or by its registered name.".
-spec pid(binary()) -> {ok, pid()} | {error, binary()}.
pid(<<"<", _/binary>> = Text) ->
    try
        [_, Rest] = binary:split(Text, <<".">>),
        Pid = list_to_pid("<0." ++ binary_to_list(Rest)),
        true = is_process_alive(Pid),
        {ok, Pid}
    catch
        error:_ -> {error, <<"there is no process ", Text/binary, " (any more)">>}
    end;
pid(Name) ->
    try whereis(binary_to_existing_atom(Name)) of
        Pid when is_pid(Pid) -> {ok, Pid};
        _ -> {error, <<"no process is registered as ", Name/binary>>}
    catch
        error:_ -> {error, <<"no process is registered as ", Name/binary>>}
    end.

-doc "An existing atom of this node; none is made.".
-spec atom(binary()) -> {ok, atom()} | {error, binary()}.
atom(Text) ->
    try {ok, binary_to_existing_atom(Text)}
    catch error:_ -> {error, <<"nothing on this node is called ", Text/binary>>}
    end.
