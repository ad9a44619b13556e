%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_eval).
-moduledoc """
Evaluates an expression of an administrator on this node; returns its value and what it printed.
""".

-export([expression/1]).

-define(VALUE_BYTES, 16_384).
-define(PRINTED_BYTES, 8_192).

-doc "Errors are sentences.".
-spec expression(map()) -> sderl_actions_node:result().
expression(#{text := Text}) ->
    maybe
        {ok, Tokens, _} ?= erl_scan:string(ended(string:trim(unicode:characters_to_list(Text)))),
        {ok, Expressions} ?= erl_parse:parse_exprs(Tokens),
        evaluated(Expressions)
    else
        {error, {_, Module, Why}} -> bad(Module, Why);
        {error, {_, Module, Why}, _} -> bad(Module, Why)
    end.

bad(Module, Why) -> {error, ["this is no expression: ", Module:format_error(Why)]}.

ended(Text) ->
    case Text =/= [] andalso lists:last(Text) of
        $. -> Text ++ " ";
        _ -> Text ++ ". "
    end.

evaluated(Expressions) ->
    Worker = self(),
    Printer = spawn_link(fun() -> print(Worker, monitor(process, Worker), []) end),
    true = group_leader(Printer, self()),
    Value = try
        {value, Result, _} = erl_eval:exprs(Expressions, erl_eval:new_bindings()),
        {ok, Result}
    catch
        Class:Reason -> {error, {Class, Reason}}
    end,
    Printer ! {printed, self()},
    Printed = receive {printed, Printer, Text} -> Text end,
    case Value of
        {ok, Term} ->
            {ok, #{value => sderl_actions_show:term(Term, ?VALUE_BYTES), printed => Printed}};
        {error, Why} -> {error, ["it failed: ", sderl_actions_show:line(Why, 1000)]}
    end.

%% The I/O server of the expression. Output beyond the bound is dropped.
print(Worker, Monitor, Acc) ->
    receive
        {io_request, From, Ref, Request} ->
            {Reply, Text} = request(Request),
            _ = From ! {io_reply, Ref, Reply},
            print(Worker, Monitor, sderl_actions_show:cut([Acc, Text], ?PRINTED_BYTES));
        {printed, Worker} ->
            Worker ! {printed, self(), sderl_actions_show:cut(Acc, ?PRINTED_BYTES)};
        {'DOWN', Monitor, process, _, _} -> ok
    end.

request({put_chars, _, Chars}) -> {ok, text(Chars)};
request({put_chars, _, M, F, A}) ->
    try {ok, text(apply(M, F, A))}
    catch _:_ -> {{error, put_chars}, []}
    end;
request({requests, Requests}) ->
    lists:foldl(fun(One, {_, Text}) ->
        {Reply, More} = request(One),
        {Reply, [Text, More]}
    end, {ok, []}, Requests);
request({get_until, _, _, _, _, _}) -> {eof, []};
request({get_line, _, _}) -> {eof, []};
request({get_chars, _, _, _}) -> {eof, []};
request(getopts) -> {[{encoding, unicode}], []};
request({setopts, _}) -> {ok, []};
request(_) -> {{error, request}, []}.

text(Chars) -> sderl_actions_show:cut(Chars, ?PRINTED_BYTES).
