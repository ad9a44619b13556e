%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_etf).
-moduledoc """
Terms in external format that stay as they are: where one ends, and what it says, without building
it and without making an atom. Pure.
""".

-export([size/1, elements/2, atom/1, text/1, peer/1, entry/1, integer/1]).

-doc """
The bytes of the first term, without the version byte; `error` where it is none, or has no end.
""".
-spec size(binary()) -> non_neg_integer() | error.
size(Bin) -> end_of(Bin, 1, byte_size(Bin)).

%% So many terms are still to come. What nests adds to them, so that no depth takes stack.
end_of(Rest, 0, All) ->
    All - byte_size(Rest);
end_of(<<T, _, Rest/binary>>, N, All) when T =:= 97; T =:= 82 -> end_of(Rest, N - 1, All);
end_of(<<98, _:4/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<119, L, _:L/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<104, A, Rest/binary>>, N, All) -> end_of(Rest, N - 1 + A, All);
end_of(<<106, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<108, A:32, Rest/binary>>, N, All) -> end_of(Rest, N + A, All);
end_of(<<109, L:32, _:L/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<107, L:16, _:L/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<110, L, _, _:L/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<111, L:32, _, _:L/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<70, _:8/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<99, _:31/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<116, A:32, Rest/binary>>, N, All) -> end_of(Rest, N - 1 + 2 * A, All);
end_of(<<105, A:32, Rest/binary>>, N, All) -> end_of(Rest, N - 1 + A, All);
end_of(<<T, L:16, _:L/binary, Rest/binary>>, N, All) when T =:= 118; T =:= 100 ->
    end_of(Rest, N - 1, All);
end_of(<<115, L, _:L/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
end_of(<<77, L:32, _, _:L/binary, Rest/binary>>, N, All) -> end_of(Rest, N - 1, All);
%% Processes, ports and references: the node, and then numbers.
end_of(<<88, Rest/binary>>, N, All) -> node_and(Rest, 12, N, All);
end_of(<<103, Rest/binary>>, N, All) -> node_and(Rest, 9, N, All);
end_of(<<120, Rest/binary>>, N, All) -> node_and(Rest, 12, N, All);
end_of(<<89, Rest/binary>>, N, All) -> node_and(Rest, 8, N, All);
end_of(<<102, Rest/binary>>, N, All) -> node_and(Rest, 5, N, All);
end_of(<<90, L:16, Rest/binary>>, N, All) -> node_and(Rest, 4 + 4 * L, N, All);
end_of(<<114, L:16, Rest/binary>>, N, All) -> node_and(Rest, 1 + 4 * L, N, All);
%% Functions: NEW_FUN_EXT says how long it is, EXPORT_EXT is three terms.
end_of(<<112, L:32, Rest/binary>>, N, All) when L >= 4, byte_size(Rest) >= L - 4 ->
    Size = L - 4,
    <<_:Size/binary, More/binary>> = Rest,
    end_of(More, N - 1, All);
end_of(<<113, Rest/binary>>, N, All) -> end_of(Rest, N + 2, All);
end_of(_, _, _) -> error.

node_and(Bin, Bytes, N, All) ->
    case Bin of
        <<119, L, _:L/binary, _:Bytes/binary, Rest/binary>> -> end_of(Rest, N - 1, All);
        <<T, L:16, _:L/binary, _:Bytes/binary, Rest/binary>> when T =:= 118; T =:= 100 ->
            end_of(Rest, N - 1, All);
        <<115, L, _:L/binary, _:Bytes/binary, Rest/binary>> -> end_of(Rest, N - 1, All);
        _ -> error
    end.

-doc "The first so many terms, each as it is; `error` where there are fewer.".
-spec elements(binary(), non_neg_integer()) -> [binary()] | error.
elements(Bin, N) -> elements(Bin, N, []).

elements(_, 0, Found) ->
    lists:reverse(Found);
elements(Bin, N, Found) ->
    case ?MODULE:size(Bin) of
        error -> error;
        Size ->
            <<Term:Size/binary, Rest/binary>> = Bin,
            elements(Rest, N - 1, [Term | Found])
    end.

-doc "The text of an atom.".
-spec atom(binary()) -> binary() | error.
atom(<<119, L, Text:L/binary, _/binary>>) -> Text;
atom(<<118, L:16, Text:L/binary, _/binary>>) -> Text;
atom(<<100, L:16, Text:L/binary, _/binary>>) -> << <<C/utf8>> || <<C>> <= Text >>;
atom(<<115, L, Text:L/binary, _/binary>>) -> << <<C/utf8>> || <<C>> <= Text >>;
atom(_) -> error.

-doc "A whole number.".
-spec integer(binary()) -> integer() | error.
integer(<<97, N, _/binary>>) -> N;
integer(<<98, N:32/signed, _/binary>>) -> N;
integer(<<110, L, 0, N:L/little-unit:8, _/binary>>) -> N;
integer(<<110, L, 1, N:L/little-unit:8, _/binary>>) -> -N;
integer(_) -> error.

-doc """
A short text: `module:function/arity`, a name, a process or port as a shell shows it, `name at
node`; the first word of other tuples.
""".
-spec text(binary()) -> binary().
text(<<104, 3, Mfa/binary>>) ->
    case elements(Mfa, 3) of
        [M, F, A] -> call_text(atom(M), atom(F), arity(A));
        error -> ~"?"
    end;
text(<<104, 2, Two/binary>>) ->
    case elements(Two, 2) of
        [Name, Node] ->
            case {atom(Name), atom(Node)} of
                {N, At} when is_binary(N), is_binary(At) -> <<N/binary, " at ", At/binary>>;
                {N, _} when is_binary(N) -> N;
                _ -> ~"?"
            end;
        error -> ~"?"
    end;
text(<<104, _, First/binary>>) ->
    case atom(First) of error -> ~"?"; Text -> Text end;
text(<<88, Pid/binary>>) -> numbered(Pid, $<, $>);
text(<<120, Port/binary>>) -> numbered(Port, "#Port<", $>);
text(<<89, Port/binary>>) -> numbered(Port, "#Port<", $>);
text(<<90, _/binary>>) -> ~"an alias";
text(<<97, 0>>) -> ~"unknown";
text(Bin) ->
    case atom(Bin) of
        error -> ~"?";
        Text -> Text
    end.

call_text(M, F, A) when is_binary(M), is_binary(F), is_integer(A) ->
    <<M/binary, $:, F/binary, $/, (integer_to_binary(A))/binary>>;
call_text(_, _, _) -> ~"?".

numbered(<<119, L, Node:L/binary, Id:32, Serial:32, _:32>>, Open, Close) when Open =:= $< ->
    iolist_to_binary([Open, integer_to_binary(Id), $., integer_to_binary(Serial), Close,
                      " at ", Node]);
numbered(<<119, L, Node:L/binary, Id:64, _:32>>, Open, Close) ->
    iolist_to_binary([Open, integer_to_binary(Id), Close, " at ", Node]);
numbered(<<119, L, Node:L/binary, Id:32, _:32>>, Open, Close) ->
    iolist_to_binary([Open, integer_to_binary(Id), Close, " at ", Node]);
numbered(_, _, _) -> ~"?".

-doc """
The process or the name that such a text of another node stands for, and the node; `none` where it
is the text of something else.
""".
-spec peer(binary()) ->
    {{Id :: non_neg_integer(), Serial :: non_neg_integer()} | binary(), Node :: binary()} | none.
peer(Text) ->
    case string:split(Text, ~" at ", trailing) of
        [Peer, Node] ->
            case re:run(Peer, ~"^<([0-9]{1,10})\\.([0-9]{1,10})>$", [{capture, [1, 2], binary}]) of
                {match, [Id, Serial]} ->
                    {{binary_to_integer(Id), binary_to_integer(Serial)}, Node};
                nomatch -> {Peer, Node}
            end;
        _ -> none
    end.

%% Of a function with arguments, as many as the list is long.
arity(<<107, L:16, _/binary>>) -> L;
arity(<<108, L:32, _/binary>>) -> L;
arity(<<106>>) -> 0;
arity(A) -> integer(A).

-doc """
Where a process begins, from the function and arguments that it was spawned with, as
`proc_lib:translate_initial_call/1` says it: `my_server:init/1` for a `gen_server`, the function
that a fun is written in.
""".
-spec entry(binary()) -> binary().
entry(<<104, 3, Mfa/binary>>) ->
    case elements(Mfa, 3) of
        [M, F, Args] -> entry(atom(M), atom(F), Args);
        error -> ~"?"
    end;
entry(Other) -> text(Other).

entry(~"proc_lib", ~"init_p", Args) -> proc_lib_entry(list(Args));
entry(~"erlang", ~"apply", Args) ->
    case list(Args) of
        [Fun, _] -> fun_text(Fun);
        _ -> ~"erlang:apply/2"
    end;
entry(M, F, Args) -> call_text(M, F, arity(Args)).

%% init_p(Parent, Ancestors, M, F, A), or with a fun in the place of the last three.
proc_lib_entry([_, _, M, F, A]) ->
    case {atom(M), atom(F), list(A)} of
        {~"gen", ~"init_it", [_, _, _ | More]} -> behaviour(More);
        {Module, Function, _} -> call_text(Module, Function, arity(A))
    end;
proc_lib_entry([_, _, Fun | _]) -> fun_text(Fun);
proc_lib_entry(_) -> ~"proc_lib:init_p/5".

%% gen:init_it(Behaviour, Starter, Parent, Mod, Args, Options), or with {local, Name} or the like
%% before Mod.
behaviour([Mod, _, _]) -> init_of(Mod);
behaviour([_, Mod, _, _]) -> init_of(Mod);
behaviour(_) -> ~"gen:init_it".

init_of(Mod) ->
    case atom(Mod) of
        error -> ~"gen:init_it";
        Module -> call_text(Module, ~"init", 1)
    end.

fun_text(<<112, _:32, Arity, _:16/binary, Index:32, _:32, Rest/binary>>) ->
    case atom(Rest) of
        error -> ~"a fun";
        Module ->
            <<Module/binary, ":fun-", (integer_to_binary(Index))/binary, $/,
              (integer_to_binary(Arity))/binary>>
    end;
fun_text(<<113, Mfa/binary>>) ->
    case elements(Mfa, 3) of
        [M, F, A] -> call_text(atom(M), atom(F), arity(A));
        error -> ~"a fun"
    end;
fun_text(_) -> ~"a fun".

list(<<106>>) -> [];
list(<<108, N:32, Rest/binary>>) ->
    case elements(Rest, N) of error -> []; Terms -> Terms end;
list(<<107, L:16, Bytes:L/binary>>) -> [<<97, B>> || <<B>> <= Bytes];
list(_) -> [].
