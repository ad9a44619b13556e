%% SPDX-License-Identifier: Apache-2.0
-module(sderl_docs_shell).

%% A shell on a node for sessions of the documents: it keeps its variables and its messages.

-export([run/2, run_here/1]).

-spec run(erl | iex, string()) -> string().
run(Shell, Text) ->
    Pid = shell(Shell),
    Ref = monitor(process, Pid),
    Pid ! {?MODULE, self(), Ref, Text},
    receive
        {Ref, Output} -> demonitor(Ref, [flush]), Output;
        {'DOWN', Ref, process, Pid, Reason} ->
            lists:flatten(io_lib:format("** exception exit: ~p", [Reason]))
    end.

%% In a shell of this VM: with what is printed meanwhile.
-spec run_here(string()) -> string().
run_here(Text) ->
    Printer = spawn_link(fun() -> printed([]) end),
    true = group_leader(Printer, shell(erl)),
    Output = run(erl, Text),
    Ref = monitor(process, Printer),
    Printer ! {?MODULE, self(), Ref},
    receive {Ref, Printed} -> unicode:characters_to_list([Printed, Output]) end.

%% As much of the I/O protocol as printing takes.
printed(Text) ->
    receive
        {io_request, From, Ref, {put_chars, unicode, Chars}} ->
            From ! {io_reply, Ref, ok},
            printed([Text, Chars]);
        {io_request, From, Ref, {put_chars, unicode, M, F, A}} ->
            From ! {io_reply, Ref, ok},
            printed([Text, apply(M, F, A)]);
        {io_request, From, Ref, _} -> From ! {io_reply, Ref, {error, enotsup}}, printed(Text);
        {?MODULE, From, Ref} -> From ! {Ref, Text}
    end.

shell(Shell) ->
    Name = list_to_atom(atom_to_list(?MODULE) ++ "_" ++ atom_to_list(Shell)),
    case whereis(Name) of
        undefined ->
            Pid = spawn(fun() -> loop(Shell, []) end),
            register(Name, Pid),
            Pid;
        Pid -> Pid
    end.

loop(Shell, Bindings) ->
    receive
        {?MODULE, From, Ref, Text} ->
            {Output, New} = eval(Shell, Text, Bindings),
            From ! {Ref, unicode:characters_to_list(Output)},
            loop(Shell, New)
    end.

eval(erl, Text, Bindings) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    try erl_eval:exprs(Exprs, Bindings, {value, fun command/2}) of
        {value, {?MODULE, printed, Output}, New} -> {Output, New};
        {value, Value, New} -> {io_lib:format("~tp", [Value]), New}
    catch
        Class:Reason -> {io_lib:format("** exception ~s: ~tp", [Class, Reason]), Bindings}
    end;
eval(iex, Text, Bindings) ->
    {ok, _} = application:ensure_all_started(elixir),
    try 'Elixir.Code':eval_string(unicode:characters_to_binary(Text), Bindings) of
        {Value, New} -> {'Elixir.Kernel':inspect(Value, [{pretty, true}]), New}
    catch
        Class:Reason -> {['Elixir.Exception':format_banner(Class, Reason)], Bindings}
    end.

command(flush, []) -> {?MODULE, printed, [flush(5000), "ok"]}.

%% The first may be on its way still.
flush(Ms) ->
    receive
        Message when element(1, Message) =/= ?MODULE ->
            [io_lib:format("Shell got ~tp\n", [Message]) | flush(100)]
    after Ms -> []
    end.
