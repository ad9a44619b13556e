%% SPDX-License-Identifier: Apache-2.0
-module(sderl_docs_text).

%% Reads a page of the documents for what can be checked: shell sessions, links, functions named.
%%
%% A session is a fenced block with prompts that name a node, as a shell on that node prints them:
%%
%%     (n1@127.0.0.1)1> expression.          iex(n1@127.0.0.1)1> expression
%%     what it gives                         what it gives
%%
%% A prompt without a node, `1> expression.`, is one of a shell that is no node of a fleet: what is
%% printed there is part of what the expression gives.
%%
%% An expression goes on over lines that begin with the shell's sign for it (`.. ` or `...(`). In
%% what is expected, white space does not count, `...` stands for anything, one pid, reference or
%% number of nine digits and more is as good as another. An expression with nothing below it may
%% give anything.
%%
%% Comments tell what the page does not show:
%%
%%     <!-- fleet: Term -->     from here on the nodes of this sderl_fleet plan
%%     <!-- example: Name -->   likewise the nodes of an example in docs/examples
%%     <!-- kill: Node -->      likewise restart, suspend, resume
%%     <!-- until -->           the next block's expressions are asked again until they give it
%%     <!-- file: Name -->      the next block is a part of this file
%%     <!-- config -->          the next block is a sys.config that sderl_config takes

-export([steps/1, links/1, functions/1, expect/2]).
-export_type([step/0]).

-type step() :: {fleet, map()} | {example, atom()} | {kill | restart | suspend | resume, node()}
    | {erl | iex, node() | none, string(), Expected :: string(), once | until}
    | {config, string()} | {file, string(), string()}.

-spec steps(binary()) -> [step()].
steps(Page) -> lines(string:split(unicode:characters_to_list(Page), "\n", all), [], []).

%% What comments said of the next block is kept up to it.
lines([], _, Steps) -> lists:reverse(Steps);
lines(["<!-- " ++ Comment | Lines], Marks, Steps) ->
    case comment(Comment) of
        none -> lines(Lines, Marks, Steps);
        {mark, Mark} -> lines(Lines, [Mark | Marks], Steps);
        Step -> lines(Lines, Marks, [Step | Steps])
    end;
lines(["```" ++ Language | Lines], Marks, Steps) when Language =/= "" ->
    {Block, Rest} = lists:splitwith(fun(L) -> L =/= "```" end, Lines),
    lines(tl(Rest), [], lists:reverse(block(Marks, Block), Steps));
lines([_ | Lines], Marks, Steps) -> lines(Lines, Marks, Steps).

comment(Comment) ->
    case [string:trim(P) || P <- string:split(hd(string:split(Comment, "-->")), ":")] of
        ["until"] -> {mark, until};
        ["config"] -> {mark, config};
        ["file", Name] -> {mark, {file, Name}};
        [What, Text] when What =:= "fleet"; What =:= "example"; What =:= "kill"; What =:= "restart";
                          What =:= "suspend"; What =:= "resume" ->
            {ok, Tokens, _} = erl_scan:string(Text ++ "."),
            {ok, Term} = erl_parse:parse_term(Tokens),
            {list_to_atom(What), Term};
        _ -> none
    end.

block(Marks, Lines) ->
    Text = lists:flatten(lists:join("\n", Lines)),
    [{config, Text} || config <- Marks] ++ [{file, Name, Text} || {file, Name} <- Marks]
        ++ session(Lines, case lists:member(until, Marks) of true -> until; false -> once end, []).

session([], _, Steps) -> lists:reverse(Steps);
session([Line | Lines], How, Steps) ->
    case prompt(Line) of
        {Shell, Node, First} ->
            {More, Rest} = lists:splitwith(fun(L) -> continued(L) =/= none end, Lines),
            {Output, Next} = lists:splitwith(fun(L) -> prompt(L) =:= none end, Rest),
            Text = lists:join("\n", [First | [continued(L) || L <- More]]),
            Step = {Shell, Node, lists:flatten(Text), lists:flatten(lists:join("\n", Output)), How},
            session(Next, How, [Step | Steps]);
        none ->
            session(Lines, How, Steps)
    end.

prompt(Line) ->
    case re:run(Line, "^(iex)?\\(([^()]+@[^()]+)\\)[0-9]+> (.*)$",
                [{capture, all_but_first, list}, unicode]) of
        {match, ["iex", Node, Text]} -> {iex, list_to_atom(Node), Text};
        {match, ["", Node, Text]} -> {erl, list_to_atom(Node), Text};
        nomatch -> prompt_of_no_node(Line)
    end.

prompt_of_no_node(Line) ->
    case re:run(Line, "^[0-9]+> (.*)$", [{capture, all_but_first, list}, unicode]) of
        {match, [Text]} -> {erl, none, Text};
        nomatch -> none
    end.

continued(".. " ++ Text) -> Text;
continued(Line) ->
    case re:run(Line, "^\\.\\.\\.\\(.*\\)[0-9]+> (.*)$",
                [{capture, all_but_first, list}, unicode]) of
        {match, [Text]} -> Text;
        nomatch -> none
    end.

%% Targets of links on the page that are files of this tree.
-spec links(binary()) -> [string()].
links(Page) ->
    Found = [T || [T] <- matches(Page, "\\]\\(([^)#\\s]+)(?:#[^)]*)?\\)")]
        ++ [T || [T] <- matches(Page, "(?:src|srcset)=\"([^\"]+)\"")],
    lists:usort([T || T <- Found, string:find(T, ":") =:= nomatch]).

%% Functions named with an arity: `module:function/2`, or in a list `module:function/1,2`.
-spec functions(binary()) -> [{module(), atom(), arity()}].
functions(Page) ->
    lists:usort([{list_to_atom(M), list_to_atom(F), list_to_integer(A)}
                 || [M, F, As] <-
                        matches(Page, "\\b([a-z][a-z0-9_]*):([a-z][a-z0-9_]*)/([0-9](?:,[0-9])*)"),
                    A <- string:lexemes(As, ",")]).

matches(Page, Regexp) ->
    case re:run(Page, Regexp, [global, {capture, all_but_first, list}, unicode]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

%% Whether an output is what the page says.
-spec expect(string(), string()) -> boolean().
expect("", _) -> true;
expect(Expected, Output) ->
    Parts = [re_quote(plain(P)) || P <- string:split(Expected, "...", all)],
    re:run(plain(Output), ["^", lists:join(".*", Parts), "$"], [unicode, dotall]) =/= nomatch.

plain(Text) ->
    lists:foldl(fun({From, To}, T) ->
        re:replace(T, From, To, [global, unicode, {return, list}])
    end, Text,
                [{"#PID<[0-9.]+>", "PID"},
                 {"<[0-9]+\\.[0-9]+\\.[0-9]+>", "PID"},
                 {"#Ref<[0-9.]+>", "REF"},
                 {"#Reference<[0-9.]+>", "REF"},
                 {"[0-9]{9,}", "NUMBER"},
                 {"\\s+", ""}]).

re_quote(Text) ->
    re:replace(Text, "[][\\\\^$.|?*+(){}]", "\\\\&", [global, unicode, {return, list}]).
