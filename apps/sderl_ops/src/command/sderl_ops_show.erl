%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_show).
-moduledoc "The service's answers as text for a person.".

-export([answer/2, failure/2, teller/2]).

-type text() :: unicode:chardata().

-doc """
The answer to a request as text for stdout, or an error for stderr. Keys of an answer that this
version does not know are left out.
""".
-spec answer(Do :: atom(), #{binary() => term()}) -> {ok, text()} | {error, text()}.
answer(plan, Done) ->
    {ok, plan(Done)};
answer(status, Done) ->
    {ok, status(Done)};
answer(history, #{~"revisions" := []}) ->
    {ok, "there is no revision yet\n"};
answer(history, #{~"revisions" := _} = Done) ->
    Keys = [~"revision", ~"at", ~"who", ~"result", ~"what"],
    {ok, [table("", ["revision", "at", "who", "result", "what"], Keys, ~"revisions", Done),
          %% Reasons are too long for the table.
          listed("\nwhy:\n", [["revision ", show(Number), ": ", sderl_table:one_line(Why)]
                              || #{~"revision" := Number, ~"why" := Why}
                                     <- maps:get(~"revisions", Done), is_binary(Why)])]};
answer(record, #{~"entries" := _} = Done) ->
    {ok, sderl_ops_past:show(Done)};
answer(members, #{~"members" := Members}) ->
    {ok, sderl_table:text(["member", "state", "store", "acts"],
                          [[show(maps:get(~"member", Member, null)),
                            show(maps:get(~"state", Member, null)),
                            store(maps:get(~"store", Member, null)),
                            case Member of #{~"acts" := true} -> "acts"; _ -> "" end]
                           || Member <- Members, is_map(Member)])};
answer(release, #{~"released" := Ids}) ->
    {ok, [lists:join(", ", Ids), case Ids of [_] -> " runs"; _ -> " run" end,
          " on; nothing is done about ", case Ids of [_] -> "it"; _ -> "them" end, " until "
          "\"bin/sderl ops adopt\"\n"]};
answer(stop, _) ->
    {ok, "the service has ended; the cluster goes on\n"};
answer(Do, #{~"state" := State} = Done) ->
    Problems = texts(~"problems", Done),
    Revision = [["revision ", show(Number), ": "] || #{~"revision" := Number} <- [Done]],
    case State of
        ~"failed" -> {error, failure([Revision, "not all is as the file says"], Problems)};
        _ -> {ok, [Revision, state(Do, State), "\n", bullets(Problems)]}
    end;
answer(_, _) ->
    {ok, "done\n"}.

store(~"has_it") -> "has it";
store(~"expected") -> "may join";
store(Other) -> show(Other).

state(_, ~"steady") -> "all is as the file says";
state(_, ~"working") -> "it is being done; \"bin/sderl ops status\" tells how far it is";
state(_, ~"paused") -> "paused: nothing is started until \"bin/sderl ops resume\"";
state(_, ~"destroyed") -> "nothing of the cluster is left";
state(_, State) -> State.

-doc "A sentence, and the problems, a line each.".
-spec failure(text(), [text()]) -> text().
failure(Text, Problems) -> string:trim([Text, "\n", bullets(Problems)], trailing).

bullets(Problems) -> [["  ", Problem, "\n"] || Problem <- Problems].

%% ---------------------------------------------------------------- plan, status

plan(Done) ->
    Steps = texts(~"steps", Done),
    Refused = texts(~"refused", Done),
    case {texts(~"changes", Done), Steps} of
        {[], []} ->
            ["nothing changes\n", refused(Refused)];
        {Changes, _} ->
            [[["what changes:\n", bullets(Changes)] || Changes =/= []],
             [["what is done, ", integer_to_list(length(Steps)), " steps:\n", bullets(Steps)]
              || Steps =/= []],
             refused(Refused)]
    end.

refused([]) -> [];
refused(Refused) -> ["\"apply\" refuses it without --force:\n", bullets(Refused)].

status(#{~"cluster" := Cluster, ~"revision" := Revision, ~"state" := State} = Done) ->
    [
        ["cluster ", show(Cluster), ", revision ", show(Revision), ": ", show(State), "\n"],
        [["under way, ", show(At), " of ", show(Total), " steps done:\n",
          bullets(texts(~"doing", Done))]
         || #{~"progress" := #{~"done" := At, ~"total" := Total}} <- [Done]],
        table("\n", ["instance", "node", "host", "release", "state", "why"],
              [~"id", ~"node", ~"host", ~"release", ~"state", ~"why"], ~"instances", Done),
        table("\n", ["host", "state", "instances", "why"],
              [~"id", ~"state", ~"instances", ~"why"], ~"hosts", Done),
        table("\n", ["group", "members", "running", "state"],
              [~"name", ~"members", ~"running", ~"state"], ~"groups", Done),
        listed("\nproblems:\n", texts(~"problems", Done)),
        listed("\ninformation:\n", texts(~"information", Done)),
        listed("\nwaiting:\n", texts(~"waiting", Done))
    ];
status(_) ->
    "the service is of another version\n".

listed(_, []) -> [];
listed(Heading, Texts) -> [Heading, bullets(Texts)].

%% If the last column is empty, it is left out.
table(Above, Header, Keys, Part, Done) ->
    case [Row || Row <- maps:get(Part, Done, []), is_map(Row)] of
        [] ->
            [];
        Rows ->
            Cells = cells(Keys, Rows),
            case lists:all(fun(Row) -> string:is_empty(lists:last(Row)) end, Cells) of
                true ->
                    [Above, sderl_table:text(lists:droplast(Header),
                                             [lists:droplast(Row) || Row <- Cells])];
                false ->
                    [Above, sderl_table:text(Header, Cells)]
            end
    end.

%% On one line each: the last output of a node may be several.
cells(Keys, Rows) ->
    [[sderl_table:one_line(show(maps:get(Key, Row, null))) || Key <- Keys] || Row <- Rows].

show(null) -> "";
show(Text) when is_binary(Text) -> Text;
show(Number) when is_integer(Number) -> integer_to_list(Number);
show(Other) -> json:encode(Other).

texts(Key, Done) ->
    [Text || Text <- maps:get(Key, Done, []), is_binary(Text)].

%% ---------------------------------------------------------------- events

-doc """
A function for events: lines of JSON to stdout, or on stderr a progress bar in a terminal and lines
elsewhere.
""".
-spec teller(Label :: text(), Json :: boolean()) -> fun((sderl_ops_wire:answer()) -> ok).
teller(_, true) ->
    fun(Answer) -> io:put_chars(sderl_visible:json(sderl_ops_wire:encode_answer(Answer))) end;
teller(Label, false) ->
    Bar = sderl_progress:reporter(Label),
    Person = os:getenv("SDERL_TTY") =:= "1",
    fun
        ({progress, Done, Total, _}) when Person ->
            Bar(min(Done, Total), Total);
        ({progress, Done, Total, Text}) ->
            say(io_lib:format("~b/~b ~ts\n", [Done, Total, Text]));
        ({note, Text}) ->
            ok = sderl_progress:done(),
            say([Text, "\n"])
    end.

say(Text) -> io:put_chars(standard_error, sderl_visible:text(Text)).
