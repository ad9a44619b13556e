%% SPDX-License-Identifier: Apache-2.0
-module(sderl_event).
-moduledoc """
Everything that the library reports passes through here, once, in two forms.

To `m:logger`: a report `#{event := Event, ...}` with a `report_cb` that makes one readable
sentence of it, and `library => sderl` in its metadata. It has no domain: OTP's default handler
drops every domain but its own. Silence a class of events with a filter on `event`, all of them with
`logger:set_module_level(sderl_event, none)`; see the debug events with
`logger:set_module_level(sderl_event, debug)`.

To telemetry: `telemetry:execute([sderl, Noun, Verb], Measurements, Meta)` when the module
`telemetry` is loaded. The library does not depend on it. `Measurements` is
`#{count => 1}` plus what the event brought under the key `measurements`; `Meta` is the
rest of the report. Nothing that telemetry does or fails to do reaches the caller.

## Events

`group` is the group's name, `node` and `nodes` are node names, `reason` any term. A key
in brackets may be absent. Everything below `notice` is not logged by default.

| event | level | telemetry | keys | when |
|---|---|---|---|---|
| `group_created` | notice | `[sderl, group, created]` | group, nodes | a group began with this node, at run time or from the launch configuration |
| `group_left` | notice | `[sderl, group, left]` | group, nodes | this node is no longer a member of a group |
| `group_deleted` | notice | `[sderl, group, deleted]` | group, [by] | a group of this node was deleted |
| `members_added` | notice | `[sderl, members, added]` | group, nodes | the membership grew |
| `members_removed` | notice | `[sderl, members, removed]` | group, nodes, [reason] | the membership shrank; with the reason `forgotten` by members that were away for `forget_down_after` and may return |
| `member_live` | notice | `[sderl, member, live]` | group, node | a member counts for answers again, or for the first time |
| `member_aside` | notice | `[sderl, member, aside]` | group, node, [reason] | writes no longer wait for a member |
| `coordinator_changed` | notice | `[sderl, coordinator, changed]` | group, [new], [epoch], [live], [lost], [old], [reason] | a new epoch began under `new`, or the coordinator `old` was given up |
| `component_split` | warning | `[sderl, component, split]` | group, nodes, [lost] | the group's component shrank to `nodes` |
| `component_merged` | notice | `[sderl, component, merged]` | group, nodes, [names] | two components became one |
| `majority_lost` | error | `[sderl, majority, lost]` | group, members, live | this node is on a side of the group that has no majority of its members: nothing is written there |
| `majority_regained` | notice | `[sderl, majority, regained]` | group, [coordinator] | a coordinator with a majority is there again |
| `majority_recovered` | warning | `[sderl, majority, recovered]` | group, nodes, by | an operator made these nodes all members of a group that had lost its majority for good |
| `consistency_differs` | warning | `[sderl, consistency, differs]` | group, node, [ours], [theirs] | a node runs the group with another `consistency` and is no part of it here: one event for each node |
| `name_clash` | warning | `[sderl, name, clash]` | group, name, pids, [kept], [resolver] | a name was registered on both sides of a split (again if the merge was interrupted) |
| `resolver_failed` | warning | `[sderl, resolver, failed]` | group, name, [resolver], reason | a resolver gave no decision and `random_exit_name` stepped in |
| `config_differs` | warning | `[sderl, config, differs]` | group, node, [added], [removed] | a node came with another list of members, from its launch configuration or from a split; the lists were merged |
| `state_ignored` | warning | `[sderl, state, ignored]` | file, reason | a file of the folder `state_dir` was not used, and the node starts without it |
| `state_not_kept` | warning | `[sderl, state, not_kept]` | group, file, reason | the file of a group could not be written; that is tried again, and reported once for each reason |
| `start_refused` | error | `[sderl, start, refused]` | sentence | the application does not start |
| `group_not_ready` | warning | `[sderl, group, not_ready]` | group, reason, waited_ms | the groups of the option `await` were not ready in time, and the start went on |
| `config_suspicious` | warning | `[sderl, config, suspicious]` | sentence | a warning of `m:sderl_config` |
| `uid_conflict` | warning | `[sderl, uid, conflict]` | group, node, [uid], [other] | two groups of one name met; they stay apart |
| `version_refused` | warning | `[sderl, version, refused]` | node, version, own, remedy | a node speaks another version of the protocol than this node and is not heard: at most one event an hour for each node |
| `unknown_message` | info | `[sderl, message, unknown]` | [from], [tag], [version] | a control message of an unknown kind was ignored |
| `node_joined` | notice | `[sderl, node, joined]` | group, [node], [through] | this node entered a group |
| `join_refused` | warning | `[sderl, join, refused]` | group, reason, [node] | a node did not become a member of a group |
| `via_refused` | warning | `[sderl, via, refused]` | group, name, reason, sentence | the start of a `{via, s_group, _}` process ended as `{already_started, undefined}`, for this reason; at most one event a minute for each group and reason |
| `link_opened` | info | `[sderl, link, opened]` | node, [reason] | the library opened a link |
| `link_unneeded` | notice | `[sderl, link, unneeded]` | node, [idle_s] | a link that the library opened is no longer needed |
| `link_closed` | info | `[sderl, link, closed]` | node, [reason] | the library closed a link |
| `plan_applied` | notice | `[sderl, plan, applied]` | groups, steps | a plan was applied, in so many steps |
| `plan_failed` | warning | `[sderl, plan, failed]` | reason, undone | a plan could not be applied; so many steps were undone |
| `connect_all` | error | `[sderl, connect_all, set]` | [node], [remedy] | this node runs with `connect_all` true, which rules groups out |
| `gateway_silent` | warning | `[sderl, gateway, silent]` | node, silent_ms | a gateway next to this node gives no sign; routes avoid it until it does |
| `undelivered` | warning | `[sderl, route, undelivered]` | to, reason, node, from, messages | messages of this node's processes could not be delivered: at most one event in ten seconds for each receiver and reason |
| `route_lost` | warning | `[sderl, route, lost]` | node, reason, processes | processes that were monitored over gateways are given up: their node, or the way to it, was lost |
| `process_restarted` | warning | `[sderl, process, restarted]` | [process], [group], [reason] | a process of the library died and was started again |
| `rows_dropped` | warning | `[sderl, rows, dropped]` | process, rows, [group] | a process of the library that started found values of wrong types in its table, and dropped them |
| `pg_restarted` | warning | `[sderl, pg, restarted]` | group, joins, [reason] | a `pg` scope died; it was started again and its joins replayed |
| `process_moved` | notice | `[sderl, process, moved]` | node, pid, old, reason | a process that `m:sderl_place` keeps runs on another node now |
| `process_lost` | warning | `[sderl, process, lost]` | reason | no node is left for a process that `m:sderl_place` keeps, or it moved too often |
| `attribute_failed` | warning | `[sderl, attribute, failed]` | name, reason | an attribute of this node lost its value, or lacks it for another reason than before |
| `copy_whole` | info | `[sderl, copy, whole]` | group, node | the copy of a group that this node follows may be read, fed by `node` |
| `copy_stale` | warning | `[sderl, copy, stale]` | group, age_ms | no member confirmed the copy for `follow_max_age_ms`: members are asked instead until one does |
| `copy_too_large` | warning | `[sderl, copy, too_large]` | group, names, most | the group has more names than `follow_names` and is not copied |
| `name_registered` | debug | `[sderl, name, registered]` | group, name, pid | a name was registered |
| `name_unregistered` | debug | `[sderl, name, unregistered]` | group, name, pid, [reason] | a name was removed |
| `name_replaced` | debug | `[sderl, name, replaced]` | group, name, pid, [old] | a name changed its pid |

An event that is not in the table is reported all the same: level notice, telemetry
`[sderl, event, Event]`.

## Many of one kind

The log has at most 10 lines in 10 s of one event of one group and node. What comes beyond that is
counted, and the next line that is written says how many were left out, also under the key
`suppressed`. Telemetry and subscribers get every event.
""".

-include_lib("kernel/include/logger.hrl").

-export([new/0]).
-export([emit/2, emit/3, dropped/3]).
-export([events/0]).
-export([format/1]).

-import(sderl_clock, [now_ms/0]).

-export_type([event/0, meta/0]).

-doc "One of the table's, or any other atom.".
-type event() :: atom().

-doc "What happened, by key. `measurements`, if there, is a map from atoms to numbers.".
-type meta() :: #{atom() => term()}.

%% How a sentence is made: text, a value by its key, text and a value that may be absent, or a
%% value that is text itself. The key `rest` stands for all keys but `event`.
-type part() :: string() | atom() | {string(), atom()} | {text, atom()}.
-type description() :: {logger:level(), telemetry_name(), [part()]}.
-doc "`[sderl, Noun, Verb]`.".
-type telemetry_name() :: [atom(), ...].

%% Large terms are cut so that a group of a thousand members does not flood the log.
-define(DEPTH, 40).

%% Rows `{Cause, Since, Count}`: how many events of one cause there were since then.
-define(TABLE, sderl_logged).
-define(LINES, 10).
-define(WINDOW_MS, 10_000).
%% So many causes are told apart at most.
-define(CAUSES, 1000).

-doc """
Makes the table of what was logged lately. Without it, as in a test of one module, nothing is
limited.
""".
-spec new() -> ets:table().
new() ->
    ets:new(?TABLE, [named_table, public, {write_concurrency, true}]).

-doc """
Reports an event at the level that the table gives.

Costs two comparisons and a read of a table when nothing listens. Logging runs in the calling
process, as with `m:logger` everywhere.
""".
-spec emit(event(), meta()) -> ok.
emit(Event, Meta) ->
    {Level, Telemetry, _Sentence} = describe(Event),
    tell(Level, Event, Meta),
    log(Level, Event, Meta),
    measure(Telemetry, Meta).

-doc "Reports an event at another level; the first of many equal events may deserve a louder one.".
-spec emit(logger:level(), event(), meta()) -> ok.
emit(Level, Event, Meta) ->
    {_UsualLevel, Telemetry, _Sentence} = describe(Event),
    tell(Level, Event, Meta),
    log(Level, Event, Meta),
    measure(Telemetry, Meta).

-doc "Reports that a process that started dropped so many rows of its table, if it dropped any.".
-spec dropped(Process :: module(), Rows :: non_neg_integer(), meta()) -> ok.
dropped(_Process, 0, _Meta) -> ok;
dropped(Process, Rows, Meta) -> emit(rows_dropped, Meta#{process => Process, rows => Rows}).

%% Events may come while the application starts or ends.
tell(Level, Event, Meta) ->
    try sderl_subs:notify(maps:get(group, Meta, undefined), {event, Level, Event, Meta})
    catch error:badarg -> ok
    end.

-doc "All events of the table with their level and telemetry name.".
-spec events() -> [{event(), logger:level(), telemetry_name()}].
events() ->
    [{Event, Level, Telemetry} || {Event, Level, Telemetry, _Sentence} <- table()].

-doc "The sentence for a report: the `report_cb` of our log events.".
-spec format(logger:report()) -> {io:format(), [term()]}.
format(#{event := Event} = Report) when is_atom(Event) ->
    {_Level, _Telemetry, Sentence} = describe(Event),
    {"~ts~ts", [visible(sentence(Sentence, maps:remove(suppressed, Report))), suppressed(Report)]};
format(Report) ->
    {"~0tP", [Report, ?DEPTH]}.

suppressed(#{suppressed := Count}) -> io_lib:format("; ~b more like it were not logged", [Count]);
suppressed(_Report) -> "".

log(Level, Event, Meta) ->
    case logger:allow(Level, ?MODULE) andalso permitted({Event, maps:with([group, node], Meta)}) of
        {true, 0} -> write(Level, Meta#{event => Event});
        {true, Suppressed} -> write(Level, Meta#{event => Event, suppressed => Suppressed});
        false -> ok
    end.

write(Level, Report) ->
    ?LOG(Level, Report, #{library => sderl, report_cb => fun ?MODULE:format/1}).

%% Whether the log may have another line of this cause, and how many were left out before it.
permitted(Cause) ->
    try permitted(Cause, now_ms())
    catch error:badarg -> {true, 0}
    end.

permitted(Cause, Now) ->
    case ets:lookup(?TABLE, Cause) of
        [{_, Since, _}] when Now - Since < ?WINDOW_MS ->
            ets:update_counter(?TABLE, Cause, {3, 1}, {Cause, Now, 0}) =< ?LINES andalso {true, 0};
        [{_, _, Count}] ->
            true = ets:insert(?TABLE, {Cause, Now, 1}),
            {true, max(0, Count - ?LINES)};
        [] ->
            Known = ets:info(?TABLE, size) < ?CAUSES orelse forget(Now) > 0,
            case {Known, Cause} of
                {false, {Event, Of}} when Of =/= other ->
                    permitted({Event, other}, Now);
                _ ->
                    true = ets:insert(?TABLE, {Cause, Now, 1}),
                    {true, 0}
            end
    end.

forget(Now) ->
    ets:select_delete(?TABLE, [{{'_', '$1', '_'}, [{'<', '$1', Now - ?WINDOW_MS}], [true]}]).

measure(Name, Meta) ->
    case erlang:function_exported(telemetry, execute, 3) of
        true -> execute(telemetry, Name, Meta);
        false -> ok
    end.

%% The module is a parameter because the library does not depend on it.
execute(Telemetry, Name, Meta) ->
    try
        Measurements = maps:merge(#{count => 1}, maps:get(measurements, Meta, #{})),
        _ = Telemetry:execute(Name, Measurements, maps:remove(measurements, Meta)),
        ok
    catch
        _Class:_Reason -> ok
    end.

-spec describe(event()) -> description().
describe(Event) ->
    case lists:keyfind(Event, 1, table()) of
        {Event, Level, Telemetry, Sentence} -> {Level, Telemetry, Sentence};
        false -> {notice, [sderl, event, Event], [event, {": ", rest}]}
    end.

table() ->
    [
        {name_registered, debug, [sderl, name, registered],
            ["s_group ", group, ": ", name, " is registered as ", pid]},
        {name_unregistered, debug, [sderl, name, unregistered],
            ["s_group ", group, ": ", name, " is no longer registered as ", pid, {", ", reason}]},
        {name_replaced, debug, [sderl, name, replaced],
            ["s_group ", group, ": ", name, " is now registered as ", pid, {", before as ", old}]},
        {group_created, notice, [sderl, group, created],
            ["s_group ", group, " was created with the members ", nodes]},
        {group_left, notice, [sderl, group, left],
            ["s_group ", group, " was left by ", nodes]},
        {group_deleted, notice, [sderl, group, deleted],
            ["s_group ", group, " was deleted", {" by ", by}]},
        {members_added, notice, [sderl, members, added],
            ["s_group ", group, " has the new members ", nodes]},
        {members_removed, notice, [sderl, members, removed],
            ["s_group ", group, " lost the members ", nodes, {", ", reason}]},
        {member_live, notice, [sderl, member, live],
            ["s_group ", group, ": the member ", node, " is live"]},
        {member_aside, notice, [sderl, member, aside],
         ["s_group ", group, ": writes go on without waiting for ", node, " until it is up to date",
             {", ", reason}]},
        {coordinator_changed, notice, [sderl, coordinator, changed],
         ["s_group ",
          group,
          {": the coordinator is ", new},
          {" in epoch ", epoch},
          {", live: ", live},
          {", lost: ", lost},
          {": the coordinator was given up: ", old},
          {", ", reason}]},
        {component_split, warning, [sderl, component, split],
            ["s_group ", group, " goes on", {" without ", lost}, "; this component has ", nodes]},
        {component_merged, notice, [sderl, component, merged],
            ["s_group ", group, ": ", nodes, " came in", {"; names that they brought: ", names}]},
        {majority_lost, error, [sderl, majority, lost],
         ["s_group ", group, " has no majority of its members here: of ", members, " are heard ",
             live, ", and those that came back empty do not count; nothing is written until more ",
             "of them are back; if some are lost for good, see s_group:recover_majority/2"]},
        {majority_regained, notice, [sderl, majority, regained],
            ["s_group ", group, " has a majority of its members again",
                {"; the coordinator is ", coordinator}]},
        {majority_recovered, warning, [sderl, majority, recovered],
            ["s_group ", group, " had lost its majority for good: all its members are ", nodes,
                " now, as ", by, " asked"]},
        {consistency_differs, warning, [sderl, consistency, differs],
         ["s_group ", group, " and ", node, " stay apart: the consistency of the group is ", ours,
             " here and ", theirs, " there; give all nodes the same, in the configuration key ",
             "consistency or the options of new_s_group, and restart those that differ"]},
        {name_clash, warning, [sderl, name, clash],
            ["s_group ", group, ": ", name, " was registered as each of ", pids, {"; kept: ", kept},
                {", decided by ", resolver}]},
        {resolver_failed, warning, [sderl, resolver, failed],
         ["s_group ", group, ": the resolver", {" ", resolver}, " made no decision on ", name, ", ",
          reason, "; random_exit_name made it"]},
        {config_differs, warning, [sderl, config, differs],
            ["s_group ", group, ": ", node, " came with another list of members, which was merged",
                {"; added: ", added}, {"; removed: ", removed}]},
        {state_ignored, warning, [sderl, state, ignored],
            ["the state file ", {text, file}, " is not used: ", reason]},
        {state_not_kept, warning, [sderl, state, not_kept],
            ["s_group ", group, ": its state cannot be kept in ", {text, file}, ": ", reason]},
        {start_refused, error, [sderl, start, refused],
            ["the application does not start: ", {text, sentence}]},
        {group_not_ready, warning, [sderl, group, not_ready],
         ["s_group ", group, " is not ready: ", reason, {" after milliseconds: ", waited_ms},
          "; the start goes on"]},
        {config_suspicious, warning, [sderl, config, suspicious],
            ["configuration: ", {text, sentence}]},
        {uid_conflict, warning, [sderl, uid, conflict],
         ["s_group ", group, ": another group of this name runs on ", node, "; the two stay apart",
             {", uid ", uid}, {" against ", other}]},
        {version_refused, warning, [sderl, version, refused],
            [node, " speaks version ", version, " of the protocol and this node ", own,
                ": the two share no group and nothing that it says is heard; ", {text, remedy}]},
        {unknown_message, info, [sderl, message, unknown],
         ["an unknown message was ignored", {", from ", from}, {", kind ", tag},
          {", version ", version}]},
        {node_joined, notice, [sderl, node, joined],
            ["s_group ", group, " was entered", {" by ", node}, {" through ", through}]},
        {join_refused, warning, [sderl, join, refused],
            ["s_group ", group, " was not entered", {" by ", node}, ": ", reason]},
        {via_refused, warning, [sderl, via, refused],
            ["s_group ", group, ": a process was not registered as ", name, ", ", reason, ": ",
                {text, sentence}]},
        {link_opened, info, [sderl, link, opened],
            ["the link to ", node, " was opened", {", ", reason}]},
        {link_unneeded, notice, [sderl, link, unneeded],
            ["nobody needs the link to ", node, {", idle for seconds: ", idle_s}]},
        {link_closed, info, [sderl, link, closed],
            ["the link to ", node, " was closed", {", ", reason}]},
        {plan_applied, notice, [sderl, plan, applied],
            ["a plan was applied; groups: ", groups, ", steps: ", steps]},
        {plan_failed, warning, [sderl, plan, failed],
            ["a plan was not applied: ", reason, "; steps undone: ", undone]},
        {connect_all, error, [sderl, connect_all, set],
            ["this node", {", ", node}, " runs with connect_all true; s_groups need the flag ",
                "-connect_all false and a restart", {"; ", remedy}]},
        {gateway_silent, warning, [sderl, gateway, silent],
            ["the gateway ", node, " has given no sign for ", silent_ms,
                " ms; routes avoid it until it does"]},
        {undelivered, warning, [sderl, route, undelivered],
         ["undelivered to ", to, ": ", reason, " at ", node, ", messages: ", messages, ", of ",
          from, " and perhaps others"]},
        {route_lost, warning, [sderl, route, lost],
            [node, " is given up: ", reason, ", processes monitored there: ", processes]},
        {process_restarted, warning, [sderl, process, restarted],
         ["a process", {" of s_group ", group}, " died and was started again", {": ", process},
          {", ", reason}]},
        {process_moved, notice, [sderl, process, moved],
            ["the process ", old, " ended, ", reason, "; it is ", pid, " on ", node, " now"]},
        {process_lost, warning, [sderl, process, lost],
            ["a process is placed on no node any more: ", reason]},
        {rows_dropped, warning, [sderl, rows, dropped],
         [process, " found values of wrong types in its table and dropped them: ", rows,
          {", s_group ", group}]},
        {pg_restarted, warning, [sderl, pg, restarted],
         ["s_group ", group, ": pg died and was started again; joins replayed: ", joins,
          {", ", reason}]},
        {attribute_failed, warning, [sderl, attribute, failed],
            ["the attribute ", name, " of this node has no value: ", reason]},
        {copy_whole, info, [sderl, copy, whole],
            ["the copy of s_group ", group, " may be read, fed by ", node]},
        {copy_stale, warning, [sderl, copy, stale],
            ["the copy of s_group ", group, " is too old, ms: ", age_ms,
                "; its members are asked until one confirms it"]},
        {copy_too_large, warning, [sderl, copy, too_large],
         ["s_group ", group, " is not copied: it has ", names, " names and follow_names is ", most]}
    ].

sentence(Parts, Report) ->
    [part(Part, Report) || Part <- Parts].

part({text, Key}, Report) ->
    [io_lib:format("~tp", [Value]) || #{Key := Value} <- [Report], not is_text(Value)] ++
        [Value || #{Key := Value} <- [Report], is_text(Value)];
part({Before, rest}, Report) ->
    [Before, value(maps:remove(event, Report))];
part({Before, Key}, Report) ->
    case Report of
        #{Key := Value} -> [Before, value(Value)];
        #{} -> ""
    end;
part(Key, Report) when is_atom(Key) ->
    value(maps:get(Key, Report, '?'));
part(Text, _Report) ->
    Text.

is_text(Value) -> is_binary(Value) orelse io_lib:printable_unicode_list(Value).

value(Value) -> io_lib:format("~0tP", [Value, ?DEPTH]).

%% Names are anybody's. A mark that turns the direction of text, or a character without a width,
%% makes a line of the log look like another one.
visible(Text) -> sderl_visible:text(characters(Text)).

characters(Text) ->
    case unicode:characters_to_list(Text) of
        Characters when is_list(Characters) -> Characters;
        {_Why, Characters, _Rest} -> Characters
    end.
