%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_options).
-moduledoc """
What to record: checks options, and turns them into the flags of a trace session and of the system
profiler. Pure.

| item | events | flags of the session | of the system profiler |
|---|---|---|---|
| `procs_basic` | processes begin, end, get names | `procs` | |
| `procs` | and become runnable or wait | `procs` | `runnable_procs`, `exclusive` |
| `ports_basic`, `ports` | the same of ports | `ports` | `runnable_ports` for `ports` |
| `schedulers` | schedulers wake and sleep | `procs` | `scheduler` |
| `running` | processes are scheduled in and out | `procs`, `running`, `exiting` | `runnable_procs`, `exclusive` |
| `migration` | the same, with the scheduler | and `scheduler_id` | `runnable_procs`, `exclusive` |
| `message` | messages sent and received | `procs`, `send`, `'receive'` | |
| `garbage_collection` | begin and end of collections | `procs`, `garbage_collection` | |
| `s_group` | operations on groups and names | `procs`, `call`, `arity` | |
| `routed` | messages that the library routes over gateways | `procs`, `call`, `arity` | |
| `{callgraph, [Module]}` | calls of and returns to functions of these modules | `procs`, `call`, `return_to`, `arity` | |
| `all` | all of these but `s_group`, `routed` and `callgraph` | | |

Profiles name what one wants to know: `concurrency` (`running`, `garbage_collection`), `messages`
(`running`, `message`), `calls` (`callgraph` of the option `modules`).
""".

-export([plan/1, within/3, fitted/4, format_error/1, items/0, profiles/0, operations/0]).
-export_type([options/0, plan/0, item/0, who/0, verdict/0, reason/0]).

-define(MIB, 1_048_576).
-define(MIN_BYTES, (16 * ?MIB)).
-define(MAX_BYTES, (1 bsl 40)).
-define(DEFAULT_BYTES, (256 * ?MIB)).
-define(DEFAULT_SECONDS, 10).
-define(MAX_SECONDS, 86_400).

-type item() ::
    procs_basic | procs | ports_basic | ports | schedulers | running | migration | message
    | garbage_collection | s_group | routed | all | {callgraph, [module()]}.
-type profile() :: concurrency | messages | calls.

-doc """
Whose events are recorded: all processes, those that begin later, those that exist, or these with
what they spawn. `share`: one in so many of those that exist, drawn by chance, with what it spawns.
""".
-type who() :: all | new | existing | [pid() | atom() | {application, atom()}]
    | {share, pos_integer()}.

-doc """
- `what`: a profile, an item, or a list of both; `concurrency` by default
- `modules`: for `calls`
- `who`: `all` by default
- `seconds`: the recording ends then, 10 by default
- `bytes`: the recording takes at most so many on disk, 256 MiB by default
- `keep`: `first` ends the recording when it is full; `last` goes on, and overwrites the oldest part
- `max_events_s`: refuses to record a node on which a trial counts more events in a second;
  `infinity` by default, without a trial
- `above`: what is done about such a node: `refuse`, by default, or `share`: one in N of its
  processes is recorded, with N so large that there are no more events than that
- `share`: one in so many processes is recorded, 1 by default; with `who` that is `all`
- `senders`: with `message`, a message that comes from another node is recorded with the name of
  that node, so that recordings of several nodes can be joined; `false` by default
""".
-type options() :: #{
    what => profile() | item() | [profile() | item()],
    modules => [module()],
    who => who(),
    seconds => number(),
    bytes => pos_integer(),
    keep => first | last,
    max_events_s => pos_integer() | infinity,
    above => refuse | share,
    share => pos_integer(),
    senders => boolean()
}.

-doc "What a recorder does. `scheduler_id` is among the flags when events name their scheduler.".
-type plan() :: #{
    items := [item()],
    flags := [atom()],
    port_flags := [atom()],
    functions := [{mfa_pattern(), [tuple()]}],
    system_profile := [atom()],
    senders => boolean(),
    above => refuse | share,
    who := who(),
    milliseconds := pos_integer(),
    bytes := pos_integer(),
    keep := first | last
}.
-type mfa_pattern() :: {module(), atom(), arity() | '_'}.

%% A smaller share says little of a node.
-define(MOST_SHARE, 10_000).

-type reason() ::
    {unknown_option, term()} | {bad_item, term()} | {bad_option, atom(), term()} | nothing
    | no_modules | {bad_options, term()} | {share_of, who()}.

-doc "The items by name.".
-spec items() -> [atom()].
items() ->
    [procs_basic, procs, ports_basic, ports, schedulers, running, migration, message,
     garbage_collection, s_group, routed, all].

-doc "The profiles.".
-spec profiles() -> [profile()].
profiles() -> [concurrency, messages, calls].

-doc "The flags for these options.".
-spec plan(options()) -> {ok, plan()} | {error, reason()}.
plan(Options) when is_map(Options) ->
    Known = [what, modules, who, seconds, bytes, keep, max_events_s, above, share, senders],
    maybe
        [] ?= [{unknown_option, Key} || Key := _ <- Options, not lists:member(Key, Known)],
        [] ?= [{bad_option, Key, Value} || Key := Value <- Options, not is_valid(Key, Value)],
        {ok, Items} ?= items_of(maps:get(what, Options, concurrency), Options),
        shared(maps:get(share, Options, 1), planned(lists:usort(Items), Options))
    else
        [Reason | _] -> {error, Reason};
        Error -> Error
    end;
plan(Options) ->
    {error, {bad_options, Options}}.

is_valid(what, _) -> true;
is_valid(modules, Modules) -> is_modules(Modules);
is_valid(who, Who) when Who =:= all; Who =:= new; Who =:= existing -> true;
is_valid(who, [_ | _] = Who) -> is_list_of(fun is_whom/1, Who);
is_valid(seconds, Seconds) ->
    is_number(Seconds) andalso Seconds > 0 andalso Seconds =< ?MAX_SECONDS;
is_valid(bytes, Bytes) ->
    is_integer(Bytes) andalso Bytes >= ?MIN_BYTES andalso Bytes =< ?MAX_BYTES;
is_valid(keep, Keep) -> Keep =:= first orelse Keep =:= last;
is_valid(max_events_s, Most) -> Most =:= infinity orelse is_integer(Most) andalso Most > 0;
is_valid(above, Above) -> Above =:= refuse orelse Above =:= share;
is_valid(share, Share) -> is_integer(Share) andalso Share >= 1 andalso Share =< ?MOST_SHARE;
is_valid(senders, Senders) -> is_boolean(Senders);
is_valid(_, _) -> false.

is_whom({application, Name}) -> is_atom(Name);
is_whom(Whom) -> is_pid(Whom) orelse is_atom(Whom).

is_modules(Modules) -> is_list_of(fun erlang:is_atom/1, Modules).

is_list_of(Is, [Head | Tail]) -> Is(Head) andalso is_list_of(Is, Tail);
is_list_of(_, Tail) -> Tail =:= [].

%% ---------------------------------------------------------------- items

items_of([], _) ->
    {error, nothing};
items_of([_ | _] = What, Options) ->
    each_item(What, Options, []);
items_of(What, Options) ->
    each_item([What], Options, []).

each_item([One | Rest], Options, Found) ->
    case item(One, Options) of
        {ok, Items} -> each_item(Rest, Options, Items ++ Found);
        Error -> Error
    end;
each_item([], _, Found) -> {ok, Found};
each_item(Tail, _, _) -> {error, {bad_item, Tail}}.

item(concurrency, _) -> {ok, [running, garbage_collection]};
item(messages, _) -> {ok, [running, message]};
item(calls, #{modules := [_ | _] = Modules}) -> {ok, [{callgraph, lists:usort(Modules)}]};
item(calls, _) -> {error, no_modules};
item(all, _) ->
    {ok, [procs, ports, schedulers, running, migration, message, garbage_collection]};
item({callgraph, [_ | _] = Modules} = Item, _) ->
    case is_modules(Modules) of
        true -> {ok, [{callgraph, lists:usort(Modules)}]};
        false -> {error, {bad_item, Item}}
    end;
item(Item, _) ->
    case lists:member(Item, items()) of
        true -> {ok, [Item]};
        false -> {error, {bad_item, Item}}
    end.

planned(Items, Options) ->
    Pick = fun(Of) -> lists:usort(lists:append([Of(Item) || Item <- Items])) end,
    #{
        items => Items,
        flags => [monotonic_timestamp | Pick(fun flags/1)],
        port_flags => [F || [_ | _] = Fs <- [Pick(fun port_flags/1)],
                            F <- [monotonic_timestamp | Fs]],
        functions => Pick(fun functions/1),
        system_profile => [F || [_ | _] = Fs <- [Pick(fun system_profile/1)],
                                F <- [monotonic_timestamp | Fs]],
        above => maps:get(above, Options, refuse),
        senders => maps:get(senders, Options, false) andalso lists:member(message, Items),
        who => maps:get(who, Options, all),
        milliseconds => max(1, round(1000 * maps:get(seconds, Options, ?DEFAULT_SECONDS))),
        bytes => maps:get(bytes, Options, ?DEFAULT_BYTES),
        keep => maps:get(keep, Options, first)
    }.

%% The system profiler would report all processes, not only those of the share.
shared(1, Plan) -> {ok, Plan};
shared(Share, #{who := Who, system_profile := Profile} = Plan)
  when Who =:= all; element(1, Who) =:= share ->
    Rest = [Flag || Flag <- Profile, Flag =:= scheduler orelse Flag =:= runnable_ports],
    {ok, Plan#{who := {share, Share},
               system_profile := [F || [_ | _] <- [Rest], F <- [monotonic_timestamp | Rest]]}};
shared(_, #{who := Who}) -> {error, {share_of, Who}}.

-doc """
What follows from a trial: the node may be recorded, or one in so many of its processes is to be
tried next, or it is refused.
""".
-type verdict() :: ok | {share, pos_integer()} | too_much.

-doc """
What follows when a trial by this plan counted so many events in a second and no more than `Most`
are allowed. The share is to be tried, because processes that are not recorded run faster.
""".
-spec within(Events :: number(), Most :: pos_integer() | infinity, plan()) -> verdict().
within(Events, Most, _) when Events =< Most -> ok;
within(Events, Most, #{above := share, who := all}) -> next_share(ceil(Events / Most));
within(Events, Most, #{above := share, who := {share, Share}}) ->
    next_share(Share * ceil(Events / Most));
within(_, _, _) -> too_much.

-doc """
The plan by which a node is recorded: this one, or the first of those with fewer processes of which
a trial counts no more than `Most` events in a second, with what that costs. `Tried` is called after
each trial.
""".
-spec fitted(plan(), Most :: pos_integer() | infinity,
             Trial :: fun((plan()) -> {ok, sderl_prof_trial:cost()} | {error, Why}),
             Tried :: fun((sderl_prof_trial:cost(), verdict()) -> term())) ->
    {ok, plan(), sderl_prof_trial:cost()}
    | {error, Why | {too_much, sderl_prof_trial:cost(), pos_integer()}}.
fitted(Plan, Most, Trial, Tried) ->
    maybe
        {ok, #{events_s := Events} = Cost} ?= Trial(Plan),
        Verdict = within(Events, Most, Plan),
        _ = Tried(Cost, Verdict),
        case Verdict of
            ok -> {ok, Plan, Cost};
            too_much -> {error, {too_much, Cost, Most}};
            {share, Share} ->
                {ok, Shared} = shared(Share, Plan),
                fitted(Shared, Most, Trial, Tried)
        end
    end.

next_share(Share) when Share =< ?MOST_SHARE -> {share, Share};
next_share(_) -> too_much.

flags(running) -> [procs, running, exiting];
flags(migration) -> [procs, running, exiting, scheduler_id];
flags(message) -> [procs, send, 'receive'];
flags(garbage_collection) -> [procs, garbage_collection];
flags(Item) when Item =:= s_group; Item =:= routed -> [procs, call, arity];
flags({callgraph, _}) -> [procs, call, return_to, arity];
flags(ports_basic) -> [];
flags(ports) -> [];
flags(_) -> [procs].

port_flags(Item) when Item =:= ports; Item =:= ports_basic -> [ports];
port_flags(_) -> [].

system_profile(Item) when Item =:= procs; Item =:= running; Item =:= migration ->
    [runnable_procs, exclusive];
system_profile(ports) -> [runnable_ports];
system_profile(schedulers) -> [scheduler];
system_profile(_) -> [].

%% The caller comes with each call; an operation on groups comes with its arguments and its result.
functions({callgraph, Modules}) ->
    [{{Module, '_', '_'}, [{'_', [], [{message, {{cp, {caller}}}}]}]} || Module <- Modules];
functions(s_group) ->
    [{{s_group, Name, Arity}, [{'_', [], [{exception_trace}, {message, '$_'}]}]}
     || {Name, Arity} <- operations()];
functions(routed) ->
    %% Where the library is not there, nothing is routed by it.
    try sderl_observed:routed_calls()
    catch error:undef -> []
    end;
functions(_) -> [].

-doc "The operations of `m:s_group` on groups and names that the item `s_group` records.".
-spec operations() -> [{atom(), arity()}].
operations() ->
    [{new_s_group, 1}, {new_s_group, 2}, {new_s_group, 3}, {delete_s_group, 1}, {add_nodes, 2},
     {remove_nodes, 2}, {enter, 2}, {leave, 1}, {recover_majority, 2}, {register_name, 2},
     {register_name, 3}, {register_name, 4}, {re_register_name, 3}, {unregister_name, 1},
     {unregister_name, 2}, {register_name_external, 3}, {unregister_name_external, 2}].

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({bad_options, Options}) ->
    io_lib:format("options are a map, not ~0tP", [Options, 10]);
format_error({unknown_option, Key}) ->
    io_lib:format("there is no option ~0tp; there are what, modules, who, seconds, bytes, keep, "
                  "max_events_s, above, share and senders", [Key]);
format_error({share_of, Who}) ->
    io_lib:format("a share is one of all processes, not of ~0tP: leave who out", [Who, 10]);
format_error(nothing) ->
    ["nothing is to be recorded; name one of ", names()];
format_error(no_modules) ->
    "calls needs modules: those whose functions are to be recorded, such as modules => [lists]";
format_error({bad_item, Item}) ->
    [io_lib:format("~0tP cannot be recorded; name some of ", [Item, 10]), names(),
     ", or {callgraph, [Module]}"];
format_error({bad_option, Key, Value}) ->
    io_lib:format("~ts cannot be ~0tP: ~ts", [Key, Value, 10, wanted(Key)]).

names() -> lists:join(", ", [atom_to_list(Name) || Name <- profiles() ++ items()]).

wanted(modules) -> "it is a list of names of modules";
wanted(who) ->
    "it is all, new, existing, or a list of processes, registered names and {application, Name}";
wanted(seconds) -> io_lib:format("it is a number above 0 and at most ~b", [?MAX_SECONDS]);
wanted(bytes) ->
    io_lib:format("it is a whole number from ~b to ~b", [?MIN_BYTES, ?MAX_BYTES]);
wanted(keep) -> "it is first or last";
wanted(max_events_s) -> "it is a whole number above 0, or infinity";
wanted(above) -> "it is refuse or share";
wanted(share) -> io_lib:format("it is a whole number from 1 to ~b", [?MOST_SHARE]);
wanted(senders) -> "it is true or false".
