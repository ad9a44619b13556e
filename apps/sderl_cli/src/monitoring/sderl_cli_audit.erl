%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_audit).
-moduledoc """
`bin/sderl audit`: who did what with a watched cluster, from a running monitor over its HTTP
interface, or out of the files of one.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "who did what with a watched cluster".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(command()).

-doc "An error where the log cannot be read.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Parsed} ?= sderl_command:parse(Args, ["audit"], command()),
        {ok, Fields} ?= fields(Parsed),
        {ok, Found} ?= found(Fields, Parsed),
        shown(Found, Parsed)
    else
        {wrong, Message} -> {usage, [Message, "\n\"bin/sderl audit --help\" lists the options."]};
        Other -> Other
    end.

command() ->
    #{
        help =>
            """
            Prints the audit log of a monitoring node, the oldest entry first: every action on
            nodes, before it began and when it had ended. The dashboard is named by --url or
            $SDERL_DASHBOARD, the address that it printed; --dir reads the files of one instead,
            also when it does not run.

              bin/sderl audit --since 2h --who anna
              bin/sderl audit --dir ~/.local/state/sderl-mon/a@host/audit --result failed
            """,
        arguments => [
            option(dir, "DIR", string, "read the files of this folder"),
            option(who, "NAME", string, "what this person or token did"),
            option(what, "TEXT", string, "a part of what was done, such as config"),
            option(node, "NODE@HOST", string, "what was done to this node"),
            option(request, "ID", string, "the entries of this request"),
            option(result, "R", {atom, sderl_actions_audit_record:results()},
                   "begun, ok, partly, failed, refused or stopped"),
            option(text, "TEXT", string, "a part of the entry, in capitals or not"),
            option(since, "TIME", string,
                   "from then on: an age as 90s, 15m, 2h or 3d, or a time as "
                   "2026-11-27T08:00:00Z"),
            option(until, "TIME", string, "up to then, likewise"),
            option(limit, "N", {integer, [{min, 1}, {max, 500}]}, "so many at most (100)"),
            flag(json, "one JSON object a line, as in the files") | sderl_cli_http:options()
        ]
    }.

fields(Parsed) ->
    maybe
        {ok, From} ?= sderl_command:time(since, Parsed),
        {ok, To} ?= sderl_command:time(until, Parsed),
        Texts = #{atom_to_binary(Key) => as_text(Value)
                  || Key := Value <- maps:with([who, what, node, request, result, text, limit],
                                               Parsed)},
        {ok, maps:merge(Texts, #{Key => integer_to_binary(At)
                                 || {Key, At} <- [{~"from", From}, {~"to", To}],
                                    is_integer(At)})}
    end.

as_text(Value) when is_atom(Value) -> atom_to_binary(Value);
as_text(Value) when is_integer(Value) -> integer_to_binary(Value);
as_text(Value) -> unicode:characters_to_binary(Value).

found(Fields, #{dir := Dir}) ->
    case {filelib:is_dir(Dir), sderl_actions_audit_query:read(Fields)} of
        {false, _} -> {error, ["--dir: there is no folder ", Dir]};
        {true, {ok, Filter, Limit}} ->
            #{entries := Entries, more := More, damaged := Damaged} =
                sderl_actions_audit_files:search(Dir, [], {Filter, Limit}),
            {ok, #{~"entries" => Entries, ~"more" => More, ~"damaged" => Damaged}};
        {true, {error, Why}} -> {wrong, Why}
    end;
found(Fields, Parsed) ->
    maybe
        {ok, Place} ?= sderl_cli_http:place(Parsed),
        sderl_cli_http:get(Place, ["/audit?", uri_string:compose_query(maps:to_list(Fields))])
    end.

shown(#{~"entries" := Entries} = Found, #{json := Json}) ->
    ok = told(Found),
    {help, case Json of
        true -> [[json:encode(Entry), $\n] || Entry <- lists:reverse(Entries)];
        false -> [line(Entry) || Entry <- lists:reverse(Entries)]
    end}.

%% Results alone are on stdout.
told(Found) ->
    _ = [io:format(standard_error, "~ts~n", [sderl_visible:text(Text)])
         || Text <- lists:append([
             ["there are older ones: ask for more with --limit, or for others" || #{~"more" := true}
                                                                        <- [Found]],
             [[integer_to_list(N), " lines of the files are no entries"]
              || #{~"damaged" := N} <- [Found], N > 0],
             [[integer_to_list(N), " entries were lost since the monitor's start"]
              || #{~"lost" := N} <- [Found], N > 0],
             [Why || Key <- [~"problem", ~"unread"], #{Key := Why} <- [Found],
                     is_binary(Why)]])],
    ok.

line(#{~"at" := At, ~"what" := What, ~"result" := Result} = Entry) ->
    [At, "  ", string:pad(Result, 7), "  ", string:pad(name(Entry), 12), "  ", What,
     where(maps:get(~"where", Entry, [])), arguments(maps:get(~"args", Entry, #{})),
     detail(maps:get(~"detail", Entry, ~"")), $\n].

name(#{~"who" := #{~"name" := Name}}) when is_binary(Name) -> Name;
name(_) -> ~"?".

where([]) -> "";
where(Nodes) when length(Nodes) =< 3 -> ["  on ", lists:join(", ", Nodes)];
where(Nodes) -> ["  on ", hd(Nodes), " and ", integer_to_list(length(Nodes) - 1), " more"].

arguments(Args) when map_size(Args) =:= 0 -> "";
arguments(Args) -> ["  ", json:encode(Args)].

detail(~"") -> "";
detail(Text) -> ["  (", Text, ")"].
