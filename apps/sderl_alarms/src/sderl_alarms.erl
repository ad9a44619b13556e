%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms).
-moduledoc """
Alarms of a cluster that `sderl_mon` watches on the same node: what is wrong, since when, why, and
what to do; who has acknowledged it, and which routes get it.

An alarm is a map: `t:alarm/0`. Its id is the same each time that it is raised. Acknowledgements,
comments and silences survive a restart if there is a `state_dir`, and are sent to the other
monitoring nodes.

Errors are `not_found`, `not_raised` (the alarm is over, so it cannot be acknowledged), `too_many`
silences, and `{bad_value, Key, Sentence}`.
""".

-export([list/0, list/1, find/1, counts/0, info/0]).
-export([acknowledge/3, reopen/2, comment/3, say/5]).
-export([silences/0, silence/4, unsilence/2]).
-export([rules/0, metrics/0, reload/0, subscribe/0]).
-export([format_error/1]).
-export_type([alarm/0, silence/0, info/0, error/0, match/0]).

-import(sderl_mon_text, [text/2]).

-doc "An alarm as it is shown.".
-type alarm() :: sderl_alarms_show:alarm().

-type silence() :: sderl_alarms_show:silence().

-doc """
`delivers`: this node leads; `kept`: a restart would lose nothing; `problem`: a sentence, or empty;
`dropped`: alarms that had no room; `seq`: the number of the last change.
""".
-type info() :: #{
    routes := [sderl_alarms_outbox:info()], delivers := boolean(), kept := boolean(),
    problem := binary(), dropped := non_neg_integer(), seq := non_neg_integer()
}.

-type error() :: {error, not_found | not_raised | too_many | {bad_value, atom(), binary()}}.

-doc "The alarms that a silence is for.".
-type match() :: sderl_alarms_silence:match().

-define(MOST_TEXT, 1_000).
-define(MOST_BY, 64).
-define(MOST_SILENCE_S, 31 * 86_400).

-doc "All alarms: the raised ones, the worst first, and then the last 1,000 cleared ones.".
-spec list() -> [alarm()].
list() -> sderl_alarms_server:all().

-doc "Filters the alarms; `alarm` (the name), `node`, `group` and `family` are patterns.".
-spec list(#{state => raised | acknowledged | cleared, severity => minor | major,
             tag | alarm | node | group | family => binary()}) -> [alarm()].
list(Wanted) ->
    Match = maps:without([state, tag], Wanted),
    [Alarm || #{state := State, tags := Tags} = Alarm <- list(),
              maps:get(state, Wanted, State) =:= State,
              case Wanted of #{tag := Tag} -> lists:member(Tag, Tags); #{} -> true end,
              sderl_alarms_silence:fits(Match, Alarm)].

-doc "The alarm of an id.".
-spec find(binary()) -> {ok, alarm()} | {error, not_found}.
find(Id) ->
    case sderl_alarms_server:find(Id) of
        {ok, _} = Ok -> Ok;
        error -> {error, not_found}
    end.

-doc "How many alarms there are by severity and state: raised, acknowledged, silenced.".
-spec counts() -> #{{minor | major, raised | acknowledged | silenced} => non_neg_integer()}.
counts() -> sderl_alarms_server:counts().

-doc "The state of the routes and of the file.".
-spec info() -> info().
info() -> sderl_alarms_server:info().

-doc "Acknowledges an alarm. It is open again when it becomes major.".
-spec acknowledge(Id :: binary(), By :: binary(), Text :: binary()) -> ok | error().
acknowledge(Id, By, Text) -> say(acknowledge, Id, By, Text).

-doc "Takes an acknowledgement back.".
-spec reopen(Id :: binary(), By :: binary()) -> ok | error().
reopen(Id, By) -> say(reopen, Id, By, ~"").

-doc "Adds a comment; the last 20 of each alarm are kept, also when it is cleared.".
-spec comment(Id :: binary(), By :: binary(), Text :: binary()) -> ok | error().
comment(Id, By, Text) -> say(comment, Id, By, Text).

say(Do, Id, By, Text) -> say(Do, Id, By, Text, always).

-doc """
Does one of the three if the alarm, as it is shown then, fulfils a condition; else `unmet`.
""".
-spec say(acknowledge | reopen | comment, Id :: binary(), By :: binary(), Text :: binary(),
          always | fun((alarm()) -> boolean())) -> ok | error() | {error, unmet}.
say(comment, _, _, ~"", _) ->
    {error, {bad_value, text, ~"a comment is a text of 1 to 1000 bytes"}};
say(Do, Id, By, Text, Condition) ->
    maybe
        ok ?= check(By, Text),
        Action = #{do => Do, key => key(), id => Id, by => By, text => Text,
                   at => sderl_mon_clock:wall_ms()},
        case Condition of
            always -> sderl_alarms_server:act(Action);
            _ -> sderl_alarms_server:act(Action, Condition)
        end
    end.

check(By, Text) ->
    case {is_text(By, 1, ?MOST_BY), is_text(Text, 0, ?MOST_TEXT)} of
        {false, _} -> {error, {bad_value, by, ~"a name is a text of 1 to 64 bytes"}};
        {_, false} -> {error, {bad_value, text, ~"a text has at most 1000 bytes, in UTF-8"}};
        _ -> ok
    end.

is_text(Text, Least, Most) ->
    is_binary(Text) andalso byte_size(Text) >= Least andalso byte_size(Text) =< Most
        andalso unicode:characters_to_binary(Text) =:= Text.

%% Unique on all nodes and over restarts.
key() ->
    iolist_to_binary([atom_to_binary(node()), $-,
                      integer_to_binary(erlang:system_time(microsecond)), $-,
                      integer_to_binary(erlang:unique_integer([positive]))]).

-doc "The silences in force.".
-spec silences() -> [silence()].
silences() -> sderl_alarms_server:silences().

-doc """
For so many seconds (31 days at most) no route gets alarms that match. An alarm that lasts longer is
sent when the silence ends. Returns the id of the silence.
""".
-spec silence(match(), Seconds :: pos_integer(), By :: binary(), Text :: binary()) ->
    {ok, binary()} | error().
silence(Match, Seconds, By, Text) ->
    maybe
        ok ?= check(By, Text),
        ok ?= check_match(Match),
        true ?= is_integer(Seconds) andalso Seconds > 0 andalso Seconds =< ?MOST_SILENCE_S,
        Key = key(),
        ok ?= sderl_alarms_server:act(#{do => silence, key => Key, match => Match,
                                        for_ms => 1000 * Seconds, by => By, text => Text,
                                        at => sderl_mon_clock:wall_ms()}),
        {ok, Key}
    else
        false -> {error, {bad_value, for_s, ~"a silence has 1 to 2678400 seconds (31 days)"}};
        Error -> Error
    end.

check_match(Match) when map_size(Match) =:= 0 ->
    {error, {bad_value, match, <<"a silence of everything is refused; name an alarm, a node, a "
                                 "group, a family or a severity (\"*\" fits all)">>}};
check_match(Match) ->
    case [Key || Key := Value <- Match, not is_match(Key, Value)] of
        [] -> ok;
        [Key | _] ->
            {error, {bad_value, Key, case Key of
                severity -> ~"it is minor or major";
                _ -> ~"it is a text of 1 to 255 bytes, in which * is any text"
            end}}
    end.

is_match(severity, Severity) -> Severity =:= minor orelse Severity =:= major;
is_match(Key, Pattern) ->
    lists:member(Key, [alarm, node, group, family]) andalso is_text(Pattern, 1, 255).

-doc "Ends a silence.".
-spec unsilence(Id :: binary(), By :: binary()) -> ok | error().
unsilence(Id, By) ->
    maybe
        ok ?= check(By, ~""),
        sderl_alarms_server:act(#{do => unsilence, id => Id, by => By, text => ~"",
                                  at => sderl_mon_clock:wall_ms()})
    end.

-doc "The rules in force: the built-in ones, then those of the file.".
-spec rules() -> [sderl_alarms_rule:rule()].
rules() -> sderl_alarms_server:rules().

-doc "The metrics that rules may name.".
-spec metrics() -> [sderl_alarms_metrics:metric()].
metrics() -> sderl_alarms_metrics:all().

-doc "Reads the file of rules again; with an error the rules stay as they were.".
-spec reload() -> ok | {error, [binary(), ...]}.
reload() -> sderl_alarms_server:reload().

-doc "See `sderl_alarms_server:subscribe/0`.".
-spec subscribe() -> {ok, sderl_alarms_server:snapshot()} | {error, full}.
subscribe() -> sderl_alarms_server:subscribe().

-doc "The error as a sentence.".
-spec format_error(term()) -> unicode:chardata().
format_error(not_found) -> "there is no such alarm or silence; list shows them";
format_error(not_raised) -> "the alarm is over, so there is nothing to acknowledge; comment on it";
format_error(too_many) -> "there are 200 silences, which is the most; end some";
format_error({bad_value, Key, Sentence}) -> text("~ts: ~ts", [Key, Sentence]).
