%% SPDX-License-Identifier: Apache-2.0
-module(sderl_config_words).
-moduledoc """
The words for what `m:sderl_config` finds: one line for each error and warning, with the path to
the bad term, the term, and what to write instead.
""".

-export([error/2, warning/1]).

-doc "See `sderl_config:format_error/1`.".
-spec error(sderl_config:error(), Parts :: [module()]) -> string().
error({bad_config, Path, Found, Expected}, Parts) ->
    sderl_check:sentence(Path, Found, remedy(Expected, Parts)).

-doc "See `sderl_config:format_warning/1`.".
-spec warning(sderl_config:warning()) -> string().
warning({unknown_option, Path}) ->
    sentence("~ts is not an option of this application and has no effect; is it misspelt?",
             [sderl_check:place(Path)]);
warning({duplicate_node, Path, Node}) ->
    sentence("~ts names ~0tp more than once; once is enough", [sderl_check:place(Path), Node]);
warning({not_in_any_group, Node}) ->
    sentence(
        "s_groups are configured and none of them lists this node, ~0tp, which therefore starts "
        "free; "
        "does its name, long or short, differ from the file?",
        [Node]
    );
warning({await_not_own, Name}) ->
    sentence(
        "the option await names the group ~0tp, which this node's configuration does not join; "
        "the start waits until another node adds this one, or until the time is over",
        [Name]
    );
warning({short_write_timeout, Write, Aside}) ->
    sentence(
        "write_timeout_ms (~b) does not exceed set_aside_ms (~b): one slow member makes writes "
        "time out; "
        "raise the first or lower the second",
        [Write, Aside]
    ).

sentence(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

%% The first part that has the words for it.
remedy(Expected, Parts) ->
    Remedies = [fun remedy/1 | [fun Part:remedy/1 || Part <- Parts]],
    case [Words || Remedy <- Remedies, Words <- [Remedy(Expected)], Words =/= none] of
        [Words | _] -> Words;
        [] -> sentence("does not fit; expected ~0tp", [Expected])
    end.

remedy(option_list) ->
    "is not a list of options; write [{Option, Value}, ...]";
remedy(option) ->
    "is not an option; write {Option, Value} with an atom as option";
remedy(group_list) ->
    "is not a list of groups; write [{Name, normal, ['name@host', ...]}, ...]";
remedy(group) ->
    "is not a group; write {Name, normal, ['name@host', ...]}, or hidden in place of normal, "
    "or {seeds, ['name@host', ...]} in place of the list";
remedy(group_name) ->
    "is no name for a group, as it stands for the free nodes; write any other term";
remedy(group_type) ->
    "is not a type of group; write normal or hidden";
remedy(node_list) ->
    "is not a list of nodes; write ['name@host', ...] or {seeds, ['name@host', ...]}";
remedy(some_node) ->
    "names no node; list at least one as 'name@host', or remove the group";
remedy(node_name) ->
    "is not a node name; write an atom with a host, such as 'name@host'";
remedy(named_node) ->
    "is a node without a name, which can be in a group alone; "
    "take it out, or write [nonode@nohost]";
remedy({unique_name, First}) ->
    ["is the name of a group above it too, at ", sderl_check:place(First),
     "; merge the two or rename one"];
remedy({same_as, First}) ->
    ["differs from the group of that name at ", sderl_check:place(First),
     "; make the two alike or remove one"];
remedy(boolean) ->
    "is neither true nor false; write one of them";
remedy(folder) ->
    "is not a folder; write its name as a string, or none";
remedy(link_policy) ->
    "is not a policy for links; write report or close";
remedy(resolver) ->
    "is not a resolver; write random_exit_name, random_notify_name, notify_all_name or {Module, "
    "Function}";
remedy(text) ->
    "is not a text; write a string or a binary";
remedy({count, Most}) ->
    ["is not such a number; write a whole number from 1 to ", integer_to_list(Most)];
remedy(milliseconds) ->
    "is not a number of milliseconds; write a whole number from 1 to 4294967295";
remedy(milliseconds_or_infinity) ->
    "is not a number of milliseconds; write a whole number from 1 to 4294967295, or infinity";
remedy(forget_down_after) ->
    "is not a time; write infinity, a number of milliseconds, or a map from groups to such times";
remedy(consistencies) ->
    "is not a map from groups to what they need to decide; write #{Group => majority}";
remedy(consistency) ->
    "is not what a group needs to decide; write available or majority";
remedy(always_available) ->
    "is asked of the free namespace, which is always available; take the key undefined out";
remedy(answers) ->
    "is not a map from groups to when their clients are answered; write #{Group => applied}";
remedy(answer) ->
    "does not say when clients are answered; write committed or applied";
remedy(always_committed) ->
    "is asked of the free namespace, whose writes are answered when committed; "
    "take the key undefined out";
remedy(available_where_applied) ->
    "is asked of a group with the consistency majority, whose writes are answered when a majority "
    "has them; write committed, or take the group out of consistency";
remedy(majority_lost) ->
    "does not say what to tell; write ignore, notify or exit, or a map from groups to these";
remedy(told) ->
    "does not say what to tell; write ignore, notify or exit";
remedy(await) ->
    "does not say what to wait for; write false, {all, Milliseconds} or {[Group], Milliseconds}";
remedy({at_least_two_ticks, Least}) ->
    ["is less than two ticks of tick_ms; write at least ", integer_to_list(Least),
     " or lower tick_ms"];
remedy(_) ->
    none.
