%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_audit_record).
-moduledoc """
One entry of the audit log and its line: a JSON object of at most 16 KiB, ended by a newline. Pure.

| key | is |
|---|---|
| `seq` | 1, 2, 3, ...: a gap between two lines shows that entries are missing |
| `at` | the time, RFC 3339 in UTC with milliseconds |
| `request` | the id of the request; entries of one request have it in common |
| `who` | `kind` (`token`, `cli`, `system`), `name`, `role`, `token` its id, and `from` where it came from |
| `what` | the action: `action.garbage_collect`, `config.set` |
| `where` | the nodes, at most 200; `where_total` says how many there were if there were more |
| `args` | its arguments without secrets, cut to what fits |
| `result` | `begun`, `ok`, `partly`, `failed`, `refused`, `stopped` |
| `detail` | a sentence |
| `ms` | how long it took |
""".

-export([line/3, read/1, is_wanted/2, results/0, time/1]).
-export_type([entry/0, result/0, stored/0, filter/0]).

-type result() :: begun | ok | partly | failed | refused | stopped.

-doc "An entry for the log. Only `who`, `what` and `result` are required.".
-type entry() :: #{
    who := #{kind := token | cli | system, name := binary(), role => atom() | binary(),
             token => binary(), from => binary()},
    what := binary(),
    result := result(),
    request => binary(),
    where => [binary()],
    args => term(),
    detail => unicode:chardata(),
    ms => non_neg_integer()
}.

-doc "A line as it was read: the keys and the values are texts.".
-type stored() :: #{binary() => term()}.

-doc """
All given keys must match: `before` and `after` are numbers of entries, `from` and `to` Unix
milliseconds; `text` may be anywhere in the entry, the others are in the field of that name.
""".
-type filter() :: #{
    before | 'after' => non_neg_integer(),
    from | to => integer(),
    who | what | node | request | text => binary(),
    result => result()
}.

-define(MOST_LINE, 16_384).
-define(MOST_NODES, 200).
-define(MOST_TEXT, 500).
-define(MOST_ITEMS, 50).
-define(DEEPEST, 6).

-doc "The results that an entry may have.".
-spec results() -> [result()].
results() -> [begun, ok, partly, failed, refused, stopped].

-doc "The line of an entry.".
-spec line(Seq :: pos_integer(), At :: integer(), entry()) -> binary().
line(Seq, At, #{who := Who, what := What, result := Result} = Entry) ->
    Where = maps:get(where, Entry, []),
    Object = [
        {seq, Seq},
        {at, time(At)},
        {request, short(maps:get(request, Entry, ~""))},
        {who, #{Key => short(Value) || Key := Value <- Who}},
        {what, short(What)},
        {where, [short(Node) || Node <- lists:sublist(Where, ?MOST_NODES)]},
        {args, bounded(sderl_actions_secret:masked(maps:get(args, Entry, #{})))},
        {result, Result},
        {detail, short(maps:get(detail, Entry, ~""))},
        {ms, maps:get(ms, Entry, null)}
        | [{where_total, length(Where)} || length(Where) > ?MOST_NODES]
    ],
    case encoded(Object) of
        Line when byte_size(Line) =< ?MOST_LINE -> Line;
        _ -> shorter(Object)
    end.

%% Leaves out the arguments first; then only the node names may be too long.
shorter(Object0) ->
    Object = lists:keyreplace(args, 1, Object0, {args, ~"(left out: too long)"}),
    case encoded(Object) of
        Line when byte_size(Line) =< ?MOST_LINE -> Line;
        _ ->
            {where, Where} = lists:keyfind(where, 1, Object),
            encoded(lists:keystore(where_total, 1,
                                   lists:keyreplace(where, 1, Object,
                                                    {where, lists:sublist(Where, 10)}),
                                   {where_total, total(Where, Object)}))
    end.

total(Where, Object) -> proplists:get_value(where_total, Object, length(Where)).

encoded(Object) ->
    iolist_to_binary([json:encode(Object, fun
        ([{_, _} | _] = Pairs, Encode) -> json:encode_key_value_list(Pairs, Encode);
        (Value, Encode) -> json:encode_value(Value, Encode)
    end), $\n]).

-doc "The text of a time in Unix milliseconds.".
-spec time(integer()) -> binary().
time(Ms) ->
    list_to_binary(calendar:system_time_to_rfc3339(Ms, [{unit, millisecond}, {offset, "Z"}])).

short(Value) when is_atom(Value) -> Value;
short(Value) ->
    case unicode:characters_to_binary(Value) of
        Text when is_binary(Text) -> sderl_mon_text:cut(Text, ?MOST_TEXT);
        _ -> ~"(no text)"
    end.

%% A term that JSON can express, with bounds on items, depth and texts. Other terms are printed.
bounded(Term) -> bounded(Term, ?DEEPEST).

bounded(_, 0) -> ~"...";
bounded(Map, Depth) when is_map(Map) ->
    Pairs = lists:sublist(lists:sort(maps:to_list(Map)), ?MOST_ITEMS),
    #{key(Key) => bounded(Value, Depth - 1) || {Key, Value} <- Pairs};
bounded(Text, _) when is_binary(Text) -> short(Text);
bounded(Number, _) when is_integer(Number), abs(Number) < 1 bsl 53; is_float(Number) -> Number;
bounded(Atom, _) when is_atom(Atom) -> Atom;
bounded([], _) -> [];
bounded([_ | _] = List, Depth) ->
    case io_lib:printable_unicode_list(head(List, ?MOST_TEXT)) of
        true -> short(head(List, ?MOST_TEXT));
        false -> [bounded(Item, Depth - 1) || Item <- head(List, ?MOST_ITEMS)]
    end;
bounded(Term, _) -> short(io_lib:format("~0tP", [Term, 30])).

%% Improper lists, too.
head([Item | Tail], N) when N > 0 -> [Item | head(Tail, N - 1)];
head(_, _) -> [].

key(Key) when is_atom(Key) -> atom_to_binary(Key);
key(Key) when is_binary(Key) -> short(Key);
key(Key) -> short(io_lib:format("~0tP", [Key, 10])).

-doc "The entry of a line, or `error`: a line that was written in part, or by somebody else.".
-spec read(binary()) -> {ok, stored()} | error.
read(Line) when byte_size(Line) =< ?MOST_LINE ->
    try json:decode(Line) of
        #{~"seq" := Seq, ~"at" := At, ~"who" := #{}, ~"what" := What, ~"result" := _} = Stored
            when is_integer(Seq), is_binary(At), is_binary(What) -> {ok, Stored};
        _ -> error
    catch
        error:_ -> error
    end;
read(_) -> error.

-doc "Whether an entry matches.".
-spec is_wanted(stored(), filter()) -> boolean().
is_wanted(Stored, Filter) ->
    lists:all(fun(Wanted) -> fits(Wanted, Stored) end, maps:to_list(Filter)).

fits({before, Seq}, #{~"seq" := Is}) -> Is < Seq;
fits({'after', Seq}, #{~"seq" := Is}) -> Is > Seq;
%% Times of one length in UTC are in the order of their texts.
fits({from, Ms}, #{~"at" := At}) -> At >= time(Ms);
fits({to, Ms}, #{~"at" := At}) -> At =< time(Ms);
fits({who, Name}, #{~"who" := Who}) -> maps:get(~"name", Who, ~"") =:= Name;
fits({what, Text}, #{~"what" := What}) -> is_in(Text, What);
fits({request, Id}, #{~"request" := Is}) -> Id =:= Is;
fits({result, Result}, #{~"result" := Is}) -> atom_to_binary(Result) =:= Is;
fits({node, Node}, #{~"where" := Where}) -> is_list(Where) andalso lists:member(Node, Where);
fits({text, Text}, Stored) -> is_in(Text, iolist_to_binary(json:encode(Stored)));
fits(_, _) -> false.

is_in(Text, Where) ->
    string:find(string:casefold(Where), string:casefold(Text)) =/= nomatch.
