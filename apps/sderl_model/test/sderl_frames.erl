%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames).

%% Recordings of what nodes of one version said to each other, as files of Erlang terms.
%%
%% A file begins with `{scenario, Name}` and `{terms, Terms}`. Terms that have no text form, or that
%% are long and occur several times, stand in `Terms` once, and `{'$', K}` stands for the K-th of
%% them elsewhere. Processes are written `{pid, Node, Id, Serial, Creation}` and references
%% `{reference, K}`; nodes are called `n1@h` and so on. For each life of a node there follows
%% `{node, Node, Entries}`, with the entries in order:
%%
%% - what the group's process there passed to the pure core: `{init, Process, Args}`, then
%%   `{Process, Now, Events}`. `{Process, Now, Events, more}` has events of clients that asked
%%   again, after an answer, before the step ended. `Now` is milliseconds since the process began.
%% - `{out, Process, At, To, Message}`: what a process there sent to another node.
%%
%% Each node that was up in the end has `{final, Node, [{Group, Members, [{Name, Pid}]}]}`.
%%
%% A file may instead have `{messages, core, [Message]}`: messages that a core wanted to be sent, in
%% no order.

-export([write/4, write_messages/3, read/1, messages/1, streams/1, final/1, loose/1]).

%% ---------------------------------------------------------------- writing

write(File, Name, Seen, Final) ->
    Start = lists:min([At || {_, Entries} <- Seen, {out, _, At, _, _} <- Entries]),
    %% Nodes by short names: they are in every line.
    Short = #{N => list_to_atom(hd(string:lexemes(atom_to_list(N), "@")) ++ "@h")
              || {N, _} <- Seen},
    Free = Name =/= islands,
    Terms = [{node, N,
              [entry(E, Start, begun(Entries)) || E <- without_free(Free, Entries), told(Name, E)]}
             || {N, Entries} <- Seen]
        ++ [{final, N, [T || T <- Of, not Free orelse element(1, T) =/= undefined]}
            || {N, Of} <- Final],
    write_terms(File, Name, Short, Terms).

write_messages(File, Name, Messages) -> write_terms(File, Name, #{}, [{messages, core, Messages}]).

write_terms(File, Name, Short, Terms) ->
    Often = #{T => often || T := Count <- lists:foldl(fun count/2, #{}, Terms), Count > 1,
                            iolist_size(io_lib:format("~0tp", [T])) > 30},
    {Coded, {Table, _}} = lists:mapfoldl(
        fun code/2, {maps:merge(Often, maps:map(fun(_, N) -> {short, N} end, Short)), 0}, Terms
    ),
    Listed = [plain(T, Short)
              || {_, T} <- lists:sort([E || _ := {K, _} = E <- Table, is_integer(K)])],
    file:write_file(File, unicode:characters_to_binary(
        ["%% Recorded by the script `record`; sderl_frames.erl says how to read it.\n",
         io_lib:format("~0tp.~n", [{scenario, Name}]),
         lines(terms, Listed) | [lines(T) || T <- Coded]]
    )).

lines({Tag, N, List}) -> [io_lib:format("{~0tp, ~0tp, [", [Tag, N]), listed(List), "]}.\n"].

lines(Tag, List) -> [io_lib:format("{~0tp, [", [Tag]), listed(List), "]}.\n"].

listed(List) -> lists:join(",", [io_lib:format("~n~0tp", [T]) || T <- List]).

%% The entries that are written. Empty steps, which come with every other step, are left out. A
%% message between two group processes is written once, as input of its receiver; only the scenario
%% `join` also has it as output of its sender.
told(_, {in, _, {step, _, []}}) -> false;
told(join, _) -> true;
told(_, {out, _, _, To, {sderl, _, _, _, _}}) when is_pid(To) -> false;
told(_, _) -> true.

%% When each group's process began, on its node's clock: time in a recording is counted from there.
begun(Entries) -> #{Pid => Now || {in, Pid, {init, #{now := Now}}} <- Entries}.

%% Leaves out the processes of free namespaces, except in the scenario `islands`: a node that is
%% alone in its free namespace sends nothing about it.
without_free(false, Entries) -> Entries;
without_free(true, Entries) ->
    Free = [Pid || {in, Pid, {init, #{group := undefined}}} <- Entries],
    [E || E <- Entries, not lists:member(element(2, E), Free)].

entry({out, Pid, At, To, Msg}, Start, _) -> {out, Pid, At - Start, To, Msg};
entry({in, Pid, {init, #{now := _} = Args}}, _, _) -> {init, Pid, Args#{now := 0}};
entry({in, Pid, {handle, Now, Events}}, _, Begun) -> {Pid, Now - map_get(Pid, Begun), Events};
entry({in, Pid, {step, Now, Events}}, _, Begun) -> {Pid, Now - map_get(Pid, Begun), Events, more}.

plain(P, Short) when is_pid(P) ->
    {Id, Serial, Creation} = words(P),
    {pid, maps:get(node(P), Short, node(P)), Id, Serial, Creation};
plain(R, _) when is_reference(R) -> {reference, erlang:phash2(R)};
plain(T, _) -> T.

%% How often each compound term is there.
count(T, Counts) when is_tuple(T) -> count(tuple_to_list(T), again(T, Counts));
count([H | T], Counts) -> count(T, count(H, Counts));
count(M, Counts) when is_map(M) ->
    maps:fold(fun(K, V, C) -> count(V, count(K, C)) end, again(M, Counts), M);
count(_, Counts) -> Counts.

again(T, Counts) -> maps:update_with(T, fun(N) -> N + 1 end, 1, Counts).

code(T, A) when is_pid(T); is_reference(T); is_binary(T), byte_size(T) > 8 -> keep(T, T, A);
code(T, {Table, _} = A) when is_tuple(T); is_map(T) ->
    case Table of
        #{T := often} -> {Inner, A1} = inner(T, A), keep(T, Inner, A1);
        #{T := {K, _}} -> {{'$', K}, A};
        _ -> inner(T, A)
    end;
code([H | T], A0) ->
    {H1, A1} = code(H, A0),
    {T1, A2} = code(T, A1),
    {[H1 | T1], A2};
code(T, {Table, _} = A) ->
    case Table of
        #{T := {short, N}} -> {N, A};
        _ -> {T, A}
    end.

inner(T, A) when is_tuple(T) ->
    {L, A1} = code(tuple_to_list(T), A),
    {list_to_tuple(L), A1};
inner(M, A) ->
    lists:foldl(fun({K, V}, {Coded, A0}) ->
        {K1, A1} = code(K, A0),
        {V1, A2} = code(V, A1),
        {Coded#{K1 => V1}, A2}
    end, {#{}, A}, lists:sort(maps:to_list(M))).

keep(T, Inner, {Table, N} = A) ->
    case Table of
        #{T := {K, _}} -> {{'$', K}, A};
        _ -> {{'$', N + 1}, {Table#{T => {N + 1, Inner}}, N + 1}}
    end.

%% The external format: its tail is id, serial and creation.
words(P) ->
    B = term_to_binary(P),
    <<Id:32, Serial:32, Creation:32>> = binary:part(B, byte_size(B), -12),
    {Id, Serial, Creation}.

%% ---------------------------------------------------------------- reading

%% Reads a recording. Its processes become real pids of nodes that no longer exist, because the core
%% asks for the node of a pid.
read(File) ->
    {ok, [{scenario, Name}, {terms, Listed} | Coded]} = file:consult(File),
    %% A listed term may hold others, all of which stand before it.
    Table = lists:foldl(fun({K, T}, Acc) -> Acc#{K => real(T, Acc)} end, #{},
                        lists:enumerate(Listed)),
    #{name => Name, terms => [decode(T, Table) || T <- Coded]}.

real({pid, Node, Id, Serial, Creation}, _) ->
    Text = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Text)), Text/binary, Id:32, Serial:32, Creation:32>>);
%% References need only differ from each other.
real({reference, _}, _) -> make_ref();
real(T, Table) -> decode(T, Table).

decode({'$', K}, Table) -> map_get(K, Table);
decode(T, Table) when is_tuple(T) -> list_to_tuple(decode(tuple_to_list(T), Table));
decode([H | T], Table) -> [decode(H, Table) | decode(T, Table)];
decode(M, Table) when is_map(M) -> #{decode(K, Table) => decode(V, Table) || K := V <- M};
decode(T, _) -> T.

%% All that went over links: `{From, To, Message}`, in the order in which it was sent.
messages(#{terms := Terms}) ->
    [{N, To, Msg} || {_, N, To, Msg} <- lists:sort(
        fun({A, _, _, _}, {B, _, _, _}) -> A =< B end,
        [{At, N, To, Msg} || {node, N, Entries} <- Terms, {out, _, At, To, Msg} <- Entries])].

%% What each process of a group was given: `{Node, Args, Steps}` with steps as in the file, in the
%% order of their starts.
streams(#{terms := Terms}) ->
    [{N, Args, [setelement(1, E, step) || E <- Entries, element(1, E) =:= Pid]}
     || {node, N, Entries} <- Terms, {init, Pid, Args} <- Entries].

%% Messages without any order.
loose(#{terms := Terms}) -> lists:append([Ms || {messages, core, Ms} <- Terms]).

%% What groups were in the end, by node.
final(#{terms := Terms}) -> #{N => Of || {final, N, Of} <- Terms}.
