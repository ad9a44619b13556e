%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_exec_lines).
-moduledoc """
The protocol between the service and a provider that is a program: one line of JSON on standard
input, and lines of JSON on standard output, each with the `id` of the request. Pure.

```
-> {"id":"6f1c","do":"create","cluster":"shop","hosts":["eu-1"],"domain":"eu","labels":{}}
<- {"id":"6f1c","progress":"waits for its address"}
<- {"id":"6f1c","hosts":[{"name":"eu-1","address":"192.0.2.7","state":"running"}]}
```

| `do` | what | the answer's `hosts` |
|---|---|---|
| `list` | looks for all hosts of the cluster | all |
| `create` | makes those of `hosts` that do not exist | those of `hosts` |
| `delete` | deletes those of `hosts` that exist | none |

Lines that do not begin with `{` are shown only if an answer is missing.
""".

-export([request/3, answer/4]).
-export_type([request/0, told/0, why/0]).

-type request() ::
    #{do := list}
    | #{do := create, host := binary(), place := sderl_ops_machines:place()}
    | #{do := delete, host := binary()}.

-doc "What the program says of a host.".
-type told() :: #{
    name := binary(),
    state := running | pending | gone,
    address => binary(),
    port := 1..65535,
    user => binary(),
    host_key => binary()
}.

-type why() :: unicode:chardata().

%% sderl_ops_port keeps the first half of a million bytes of a program that writes more.
-define(MOST_BYTES, 450_000).
-define(MOST_HOSTS, 1_000).
-define(SHOWN, 300).

-doc "The line of a request.".
-spec request(Id :: binary(), Cluster :: binary(), request()) -> iodata().
request(Id, Cluster, #{do := Do} = Request) ->
    Line = maps:merge(maps:get(place, Request, #{}), #{id => Id, do => Do, cluster => Cluster}),
    Hosts = #{hosts => [Host] || #{host := Host} <- [Request]},
    [json:encode(maps:merge(Line, Hosts)), $\n].

-doc """
The hosts that a program has answered with, from its exit status and its output. An error is a
sentence. The answer to `create` has the host that was asked for, that to `delete` none.
""".
-spec answer(request(), Id :: binary(), Names :: long | short,
             {ok, Status :: non_neg_integer(), Output :: binary()}) ->
    {ok, [told()]} | {error, why()}.
answer(_, _, _, {ok, _, Output}) when byte_size(Output) > ?MOST_BYTES ->
    {error, io_lib:format("it wrote more than ~b bytes, which is no answer", [?MOST_BYTES])};
answer(Request, Id, Names, {ok, Status, Output}) ->
    Lines = binary:split(Output, [~"\n", ~"\r"], [global, trim_all]),
    case last_answer([Line || <<"{", _/binary>> = Line <- Lines], Id, none) of
        {ok, #{~"error" := Sentence}} when is_binary(Sentence) ->
            {error, ["it says: ", shown(Sentence)]};
        {ok, #{~"hosts" := Hosts}} when is_list(Hosts), Status =:= 0 ->
            hosts(Hosts, Request, Names);
        {ok, #{~"hosts" := _}} when Status =/= 0 ->
            {error, [io_lib:format("it answered, and ended with status ~b", [Status]),
                     said(Lines)]};
        {ok, _} ->
            {error, "its answer has neither a list \"hosts\" nor a sentence \"error\""};
        none when Status =:= 0 ->
            {error, ["it ended without an answer, which is a line of JSON with the request's id",
                     said(Lines)]};
        none ->
            {error, [io_lib:format("it ended with status ~b and without an answer", [Status]),
                     said(Lines)]};
        {error, _} = Error ->
            Error
    end.

last_answer([], _, Last) ->
    Last;
last_answer([Line | Lines], Id, Last) ->
    try json:decode(Line) of
        #{~"id" := Id, ~"progress" := _} -> last_answer(Lines, Id, Last);
        #{~"id" := Id} = Answer when Last =:= none -> last_answer(Lines, Id, {ok, Answer});
        #{~"id" := Id} -> {error, "it answered more than once"};
        #{~"id" := Other} ->
            {error, ["it answered another request: ", shown(json:encode(Other)), " and not ", Id]};
        #{} -> {error, ["its answer has no \"id\": ", shown(Line)]}
    catch
        error:_ -> {error, ["it wrote a line that is no JSON: ", shown(Line)]}
    end.

%% ---------------------------------------------------------------- hosts

hosts(Hosts, _, _) when length(Hosts) > ?MOST_HOSTS ->
    {error, io_lib:format("it lists ~b hosts, and at most ~b are allowed",
                          [length(Hosts), ?MOST_HOSTS])};
hosts(Hosts, Request, Names) ->
    Rule = {list, "hosts", 0, ?MOST_HOSTS, sderl_ops_schema:made_host()},
    case sderl_ops_walker:walk(Rule, Hosts, ~"/") of
        {Told, []} ->
            case [Problem || Host <- Told, Problem <- problems(Host, Names)] ++ twice(Told) of
                [] -> fitting(Request, Told);
                [Problem | _] -> {error, Problem}
            end;
        {_, [{Path, Found, Expected} | _]} ->
            {error, ["of what it answers, ",
                     sderl_ops_walker:sentence({[~"hosts" | Path], Found, Expected})]}
    end.

problems(#{name := Name, state := running, address := Address}, Names) ->
    Dotted = binary:match(Address, ~".") =/= nomatch,
    [[Name, " has the address ", Address, ", and names of nodes are ", atom_to_list(Names),
      ": it must have ", case Names of long -> "a dot"; short -> "no dot" end]
     || Dotted =/= (Names =:= long)];
problems(#{name := Name, state := running}, _) ->
    [[Name, " is running and has no address"]];
problems(_, _) ->
    [].

twice(Told) ->
    Names = [Name || #{name := Name} <- Told],
    [["it lists ", Name, " twice"] || Name <- Names -- lists:usort(Names)].

fitting(#{do := list}, Told) ->
    {ok, Told};
fitting(#{do := create, host := Name}, Told) ->
    case Told of
        [#{name := Name, state := gone}] -> {error, [Name, " is gone, it says"]};
        [#{name := Name} = Host] -> {ok, [Host]};
        _ -> {error, ["it was asked for ", Name, ", and answers with ", names(Told)]}
    end;
fitting(#{do := delete, host := Name}, Told) ->
    case [Host || #{name := Of, state := State} = Host <- Told, Of =:= Name, State =/= gone] of
        [] -> {ok, []};
        _ -> {error, [Name, " is still there, it says"]}
    end.

names([]) -> "no host";
names(Told) -> lists:join(", ", [Name || #{name := Name} <- lists:sublist(Told, 5)]).

%% ---------------------------------------------------------------- texts

said(Lines) ->
    case Lines of
        [] -> "";
        _ -> ["; its last line: ", shown(lists:last(Lines))]
    end.

shown(Text) ->
    case unicode:characters_to_binary(Text) of
        Whole when is_binary(Whole) ->
            [Char || Char <- unicode:characters_to_list(string:slice(Whole, 0, ?SHOWN)),
                     Char >= 32];
        _ -> "text that is not UTF-8"
    end.
