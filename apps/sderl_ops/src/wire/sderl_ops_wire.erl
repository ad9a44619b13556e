%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_wire).
-moduledoc """
The protocol between `bin/sderl ops` and the service of operations: lines of JSON over a Unix socket
that only the service's user can open. Pure.

A connection has one request and its answers:

```
-> {"do": "apply", "file": "/home/me/shop.json", "who": "me", "wait": true, "force": false}
<- {"event": "progress", "done": 3, "total": 12, "text": "starts web2"}
<- {"event": "note", "text": "host here/h3 is unreachable"}
<- {"done": {"revision": 4, "state": "steady"}}
```

The last answer has `done` or `error`, and then the service closes the connection. A client that
closes it earlier ends the waiting, not the work.

An error may be marked. `"busy": true` and `"unavailable": true`: nothing was done, and the same
request may succeed some seconds later. `"unsure": true`: the request may have been done.
`"unknown": true`: there is no instance, family or revision of that name.

| request | keys beside `do` and `who` | `done` |
|---|---|---|
| `hello` | | `cluster` or null, `revision`, `pid` (of the operating system), `version` |
| `plan` | `file`, `force` | `changes`, `steps`, `refused`: texts |
| `plan_text` | `text` (the file itself, as JSON), `force` | as `plan`; one at a time |
| `apply` | `file` (without it the one that was applied last), `force`, `wait` | `file`, `revision`, `state`, `problems` |
| `status` | | `t:status/0` |
| `remaining` | | `steps`: texts, what is left until all is as the newest revision says |
| `history` | | `revisions`: `t:revision/0`, the latest first |
| `record` | `limit`, `before` (a number), `since` and `until` (milliseconds of system time), `by`, `kind` | `entries`: `t:entry/0`, the latest first, at most `limit`; `next`: the `before` of others, however few these are, or null |
| `rollback` | `revision`, `force`, `wait` | as `apply`, without `file` |
| `scale` | `family`, `count`, `force`, `wait` | as `rollback` |
| `drain` | `instance`, `force`, `wait` | `state`, `problems` |
| `undrain`, `adopt` | `instance`, `wait` | `state`, `problems` |
| `release` | `instance`; without it all that were taken over | `released`: instances |
| `pause`, `resume` | | `state` |
| `destroy` | `wait` | `state`, `problems` |
| `members` | | `members`: `t:member/0` |
| `add_member`, `remove_member` | `member` | as `members` |
| `stop` | | `state`: the service ends, and the cluster goes on |

`state` is `steady` (all is as the file says), `working`, `paused`, `failed` (`problems` says why)
or `destroyed`.
""".

-export([encode_request/1, decode_request/1, encode_answer/1, decode_answer/1, lines/3]).
-export([most_request_bytes/0, most_answer_bytes/0, text/1, changes/1]).
-export_type([request/0, answer/0, status/0, revision/0, entry/0, member/0]).

-doc "Defaults: `force` is false, `wait` true.".
-type request() ::
    #{do := hello | status | remaining | history | members | pause | resume | stop, who := binary()}
    | #{
        do := record,
        limit := pos_integer(),
        before => pos_integer(),
        since => integer(),
        until => integer(),
        by => binary(),
        kind => request | step | note,
        who := binary()
    }
    | #{do := add_member | remove_member, member := binary(), who := binary()}
    | #{do := plan, file := binary(), force := boolean(), who := binary()}
    | #{do := plan_text, text := binary(), force := boolean(), who := binary()}
    | #{do := apply, file => binary(), force := boolean(), wait := boolean(), who := binary()}
    | #{
        do := rollback,
        revision := pos_integer(),
        force := boolean(),
        wait := boolean(),
        who := binary()
    }
    | #{
        do := scale,
        family := binary(),
        count := pos_integer(),
        force := boolean(),
        wait := boolean(),
        who := binary()
    }
    | #{do := drain, instance := binary(), force := boolean(), wait := boolean(), who := binary()}
    | #{do := undrain | adopt, instance := binary(), wait := boolean(), who := binary()}
    | #{do := release, instance => binary(), who := binary()}
    | #{do := destroy, wait := boolean(), who := binary()}.

-doc """
`done` is a map as in the table above. To be encoded, its keys are atoms or binaries, its texts
binaries, and `undefined` is null; decoded, its keys are binaries. `{error, Text, Problems}` has a
sentence, and more sentences if there are several problems. `busy` (too many requests at a time),
`unavailable` (nobody can answer now; nothing was done), `unsure` (it may have been done) and
`unknown` (there is nothing of that name) are errors that are marked by that word on the line, and
are decoded as errors.
""".
-type answer() ::
    {progress, Done :: non_neg_integer(), Total :: pos_integer(), unicode:chardata()}
    | {note, unicode:chardata()}
    | {done, #{atom() | binary() => term()}}
    | {error, unicode:chardata(), [unicode:chardata()]}
    | {busy | unavailable | unsure | unknown, unicode:chardata()}.

-doc """
`problems`, `information` and `waiting` are sentences. `sent` is how much the service has sent to
hosts since it began. `doing` are the steps under way, `progress` how many of all steps are done, or
null if there is nothing to do.
""".
-type status() :: #{
    cluster := binary(),
    revision := non_neg_integer(),
    state := atom(),
    hosts := [host()],
    instances := [instance()],
    groups := [group()],
    problems := [binary()],
    information := [binary()],
    sent := #{archives | archive_bytes | control_calls | control_bytes => non_neg_integer()},
    doing := [binary()],
    progress := #{done := non_neg_integer(), total := pos_integer()} | undefined,
    waiting := [binary()]
}.
-doc "`instances` is how many.".
-type host() :: #{id := binary(), state := up | unreachable | gone, why := binary() | undefined,
                  instances := non_neg_integer()}.
-doc "`release` is its name in the file.".
-type instance() :: #{
    id := binary(),
    node := binary() | undefined,
    host := binary() | undefined,
    release := binary() | undefined,
    state := atom(),
    why := binary() | undefined
}.
-doc "`members` and `running` are how many. `drained`: only drained members are missing.".
-type group() :: #{name := binary(), members := non_neg_integer(), running := non_neg_integer(),
                   state := whole | drained | incomplete | unknown}.
-doc """
`at` is a time in the format of RFC 3339; `what` is the request as text. `result` is `good`,
`running`, `paused`, `failed`, `replaced` (by another one before it was done), `not recorded`, or
`rolled back: ` and the families; `why` says more of it.
""".
-type revision() :: #{
    revision := pos_integer(),
    at := binary(),
    who := binary(),
    what := binary(),
    result := binary(),
    why := binary() | undefined
}.

-doc """
An entry of the record: what somebody asked for (`kind` is `request`), a step that has ended
(`step`), or a decision of the service (`note`). Entries are numbered in their order; `at` is in the
format of RFC 3339. `result` is `running`, `done`, `failed`, `replaced` (by another revision),
`accepted` (by an earlier version, which did not record results) or `noted`.
""".
-type entry() :: #{
    number := pos_integer(),
    at := binary(),
    who := binary(),
    kind := request | step | note,
    what := binary(),
    result := running | done | failed | replaced | accepted | noted,
    why := binary() | undefined
}.

-doc """
`state` is `here` (the member that answers), `there` or `away`. `store` is `leads` or `has_it` for a
member that has its part of the store, `expected` for one that may join, and `unknown` if the member
that answers has no part of the store itself. `acts` is true for the one that acts.
""".
-type member() :: #{
    member := binary(), state := atom(), store := atom(), acts := boolean()
}.

%% A file in a request has to be smaller, because its quotes and line ends take two bytes each.
-define(MOST_REQUEST_BYTES, 131_072).
-define(MOST_ANSWER_BYTES, 16_777_216).
-define(MOST_ENTRIES, 500).

-doc "The longest line of a request.".
-spec most_request_bytes() -> pos_integer().
most_request_bytes() -> ?MOST_REQUEST_BYTES.

-doc "The longest line of an answer.".
-spec most_answer_bytes() -> pos_integer().
most_answer_bytes() -> ?MOST_ANSWER_BYTES.

%% ---------------------------------------------------------------- requests

-doc "A request as a line.".
-spec encode_request(request()) -> iodata().
encode_request(Request) -> [json:encode(Request), $\n].

-doc "The request of a line, checked. An error is a sentence.".
-spec decode_request(binary()) -> {ok, request()} | {error, unicode:chardata()}.
decode_request(Line) when byte_size(Line) > ?MOST_REQUEST_BYTES ->
    {error, "the request has more than 128 KiB"};
decode_request(Line) ->
    maybe
        {ok, Tree, []} ?= sderl_ops_tree:from_json(Line),
        {Request, []} ?= sderl_ops_walker:walk(request_rule(), Tree, ~"/"),
        {ok, Request}
    else
        {error, Problems} -> {error, sentences(Problems)};
        {_, Problems} -> {error, sentences(Problems)};
        {ok, _, Problems} -> {error, sentences(Problems)}
    end.

sentences(Problems) ->
    ["the request is wrong: ",
     lists:join("; ", [sderl_ops_walker:sentence(Problem) || Problem <- Problems])].

request_rule() ->
    Force = {force, {default, false}, boolean},
    Wait = {wait, {default, true}, boolean},
    Id = {text, "the id of an instance", 255},
    File = {text, "the absolute path of a file", 4096},
    Time = {whole, "a time in milliseconds of system time", 0, 253_402_300_799_999},
    Who = {who, {default, ~"somebody"}, {text, "a user", 255}},
    {by_type, do, "request", [
        {Name, {object, "this request", [Who | Keys]}}
     || {Name, Keys} <- [
            {hello, []},
            {plan, [{file, required, File}, Force]},
            {plan_text, [{text, required, {text, "a file as JSON", ?MOST_REQUEST_BYTES}}, Force]},
            {apply, [{file, optional, File}, Force, Wait]},
            {status, []},
            {remaining, []},
            {history, []},
            {record, [{limit, {default, 100}, {whole, "a number of entries", 1, ?MOST_ENTRIES}},
                      {before, optional, {whole, "the number of an entry", 1, 1 bsl 53}},
                      {since, optional, Time}, {until, optional, Time},
                      {by, optional, {text, "a user", 255}},
                      {kind, optional, {choice, [request, step, note]}}]},
            {rollback, [{revision, required, {whole, "a revision", 1, 1 bsl 53}}, Force, Wait]},
            {scale, [{family, required, {text, "the name of a family", 63}},
                     {count, required, {whole, "a number of nodes", 1, 1 bsl 53}}, Force, Wait]},
            {drain, [{instance, required, Id}, Force, Wait]},
            {undrain, [{instance, required, Id}, Wait]},
            {adopt, [{instance, required, Id}, Wait]},
            {release, [{instance, optional, Id}]},
            {members, []},
            {add_member, [{member, required, {text, "a member, NAME@ADDRESS or "
                                                    "NAME@ADDRESS:PORT", 255}}]},
            {remove_member, [{member, required, {text, "a member, NAME@ADDRESS", 255}}]},
            {pause, []},
            {resume, []},
            {destroy, [Wait]},
            {stop, []}
        ]
    ]}.

-doc "Whether a request changes anything.".
-spec changes(request()) -> boolean().
changes(#{do := Do}) ->
    not lists:member(Do, [hello, plan, plan_text, status, remaining, history, record, members]).

%% ---------------------------------------------------------------- answers

-doc "An answer as a line.".
-spec encode_answer(answer()) -> iodata().
encode_answer({progress, Done, Total, Text}) ->
    line(#{event => progress, done => Done, total => Total, text => text(Text)});
encode_answer({note, Text}) ->
    line(#{event => note, text => text(Text)});
encode_answer({done, Map}) ->
    line(#{done => Map});
encode_answer({error, Text, Problems}) ->
    line(#{error => text(Text), problems => [text(Problem) || Problem <- Problems]});
encode_answer({Mark, Text})
  when Mark =:= busy; Mark =:= unavailable; Mark =:= unsure; Mark =:= unknown ->
    line(#{error => text(Text), problems => [], Mark => true}).

line(Map) -> [json:encode(Map, fun encode_value/2), $\n].

encode_value(undefined, _) -> ~"null";
encode_value(Value, Encode) -> json:encode_value(Value, Encode).

-doc "Any text as UTF-8.".
-spec text(unicode:chardata()) -> binary().
text(Text) ->
    case unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary) -> Binary;
        _ -> ~"(text that is not UTF-8)"
    end.

-doc "The answer of a line. The keys of what is done are binaries.".
-spec decode_answer(binary()) -> {ok, answer()} | {error, unicode:chardata()}.
decode_answer(Line) ->
    try json:decode(Line) of
        #{~"event" := ~"progress", ~"done" := Done, ~"total" := Total, ~"text" := Text}
          when is_integer(Done), is_integer(Total), is_binary(Text), Done >= 0, Total >= 1 ->
            {ok, {progress, Done, Total, Text}};
        #{~"event" := ~"note", ~"text" := Text} when is_binary(Text) ->
            {ok, {note, Text}};
        #{~"done" := Done} when is_map(Done) ->
            {ok, {done, Done}};
        #{~"error" := Text, ~"problems" := Problems} when is_binary(Text), is_list(Problems) ->
            {ok, {error, Text, [Problem || Problem <- Problems, is_binary(Problem)]}};
        _ ->
            {error, "the service's answer is of an unknown kind: it is of another version"}
    catch
        error:_ -> {error, "the answer is not JSON: what listens there is not the service"}
    end.

%% ---------------------------------------------------------------- lines

-doc """
The complete lines of the bytes received so far, without their ends, and the incomplete rest.
`too_long` if a line has more than `Most` bytes.
""".
-spec lines(Received :: binary(), Left :: binary(), Most :: pos_integer()) ->
    {ok, [binary()], Left :: binary()} | too_long.
lines(Received, Left, Most) ->
    Parts = binary:split(<<Left/binary, Received/binary>>, ~"\n", [global]),
    case lists:any(fun(Part) -> byte_size(Part) > Most end, Parts) of
        true -> too_long;
        false -> {ok, lists:droplast(Parts), lists:last(Parts)}
    end.
