%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_samples).
-moduledoc """
Samples: the state of one node at one moment. A probe sends it to its agent (`{sderl_mon_sample,
Probe, Sample}`); an agent that reads a node from outside makes it itself. Pure.
""".

-export([check/1, facts/0]).
-export_type([sample/0, facts/0, group/0, place/0, link/0, flow/0, event/0, counts/0]).

-doc """
One sample. `counters` and the counts of `links`, `kinds`, `groups` and `edges` only grow as long as
the node lives: rates are the differences of two samples over the difference of `mono_us`, the
node's own monotonic clock. `gauges` are values of that moment. `at` and the times of events are
by the node's clock until the agent replaces them by its own (`node_at` keeps the node's).

`migrations`, `traffic` and `events` cover the time since the sample before. A probe's sample has
`facts` and `top` only when they have changed. `lost` counts what was left out since the probe
began; a former owner has acknowledged the part `lost_acked` of it.
""".
-type sample() :: #{
    v := 1,
    node := node(),
    seq := pos_integer(),
    at := sderl_mon_types:t(),
    mono_us := integer(),
    source := probe | stock,
    counters := #{atom() => number()},
    gauges := #{atom() => number()},
    node_at => sderl_mon_types:t(),
    %% One run queue a normal scheduler, then that of the dirty ones.
    queues => [non_neg_integer()],
    %% Busy and total time of each scheduler, in the node's own unit.
    sched => [
        {Scheduler :: pos_integer(), normal | dirty_cpu | dirty_io, Active :: integer(),
         Total :: integer()}
    ],
    links => [link()],
    kinds => #{atom() => {Messages :: number(), Bytes :: number()}},
    groups => #{sderl_mon_types:id() => counts()},
    edges => [#{from := binary(), to := binary(), msgs := non_neg_integer()}],
    %% The processes with the most memory, the longest queues and the most reductions.
    top => [sderl_mon_types:process()],
    migrations => [{From :: pos_integer(), To :: pos_integer(), Times :: non_neg_integer()}],
    traffic => [flow()],
    events => [event()],
    lost => #{atom() => non_neg_integer()},
    lost_acked => #{atom() => non_neg_integer()},
    %% The application's own: by series a total since `since`, or a value of that moment.
    metrics => #{since := integer(),
                 values := #{sderl_mon_app_metrics:series() => {total | value, number()}}},
    facts => facts()
}.

-doc """
Registrations, unregistrations and failed registrations that clients on the node asked for in a
group.
""".
-type counts() :: {non_neg_integer(), non_neg_integer(), non_neg_integer()}.

-doc """
A link of the node: what went over it in each direction, and the bytes that wait to be sent. With
`counts => unknown` the numbers mean nothing: the link cannot be read. `reasons` are what the
library has it for.
""".
-type link() :: #{
    node := node(),
    type := visible | hidden,
    in_msgs := non_neg_integer(),
    in_bytes := non_neg_integer(),
    out_msgs := non_neg_integer(),
    out_bytes := non_neg_integer(),
    pending => non_neg_integer(),
    reasons => [binary()],
    since_s => non_neg_integer(),
    counts => unknown
}.

-doc """
Traced messages between kinds of processes (by name or initial call, not by pid), scaled up from the
share that was traced.
""".
-type flow() :: #{
    from := binary(),
    to := binary(),
    kind := atom(),
    msgs := number(),
    bytes := number()
}.

-doc "An event of the node. The agent renames some of the probe's kinds.".
-type event() :: #{
    kind := atom(),
    level := sderl_mon_types:level(),
    t := sderl_mon_types:t(),
    text := binary(),
    group => sderl_mon_types:id(),
    details => #{atom() => term()},
    node_t => sderl_mon_types:t()
}.

-doc """
What changes seldom. `application` says whether the library runs there; `groups` are the node's
own, `known` those that it has heard of, with their members. `problems` are sentences of
`s_group:info/0`.
""".
-type facts() :: #{
    otp := binary(),
    erts := binary(),
    hidden := boolean(),
    application := boolean(),
    cpu_topology := [place()],
    groups := [group()],
    known := [{Group :: term(), [node()]}],
    problems := [binary()],
    %% The alarms set in OTP's `alarm_handler` there.
    alarms => [binary()],
    %% The applications that are loaded there, with their versions.
    apps => [{binary(), binary()}],
    system_monitor := binary(),
    unknown_links := [binary()],
    atom() => term()
}.

-doc "Where a scheduler runs.".
-type place() :: #{
    scheduler := pos_integer(),
    socket => non_neg_integer(),
    core => non_neg_integer(),
    thread => non_neg_integer(),
    bound => boolean()
}.

-doc """
A group as one of its members has it; `live`, `role` and `majority` are known to a probe alone.
""".
-type group() :: #{
    group := term(),
    members := [node()],
    coordinator := node() | undefined,
    names := non_neg_integer(),
    live => [node()],
    role => atom(),
    majority => atom() | boolean()
}.

-doc "Checks a sample. Unknown keys are left as they are.".
-spec check(term()) -> {ok, sample()} | {error, not_a_sample}.
check(Term) ->
    case sderl_mon_shape:fits(sample(), Term) of
        true -> {ok, Term};
        false -> {error, not_a_sample}
    end.

sample() ->
    Counts = {map, atom, natural},
    {fields,
        #{
            node => atom,
            seq => natural,
            at => integer,
            mono_us => integer,
            source => {either, [{value, probe}, {value, stock}]},
            counters => {map, atom, number},
            gauges => {map, atom, number}
        },
        #{
            queues => {list, natural},
            sched => {list, {tuple, [natural, atom, integer, integer]}},
            links => {list, link()},
            kinds => {map, atom, {tuple, [number, number]}},
            groups => {map, binary, {tuple, [natural, natural, natural]}},
            edges => {list, {fields, #{from => binary, to => binary, msgs => number}, #{}}},
            top => {list, {map, atom, any}},
            migrations => {list, {tuple, [natural, natural, natural]}},
            traffic => {list, flow()},
            events => {list, event()},
            lost => Counts,
            lost_acked => Counts,
            metrics => {fields, #{
                since => integer,
                values => {map, binary, {tuple, [{either, [{value, total}, {value, value}]},
                                                 number]}}
            }, #{}},
            facts => facts()
        }}.

link() ->
    {fields,
        #{
            node => atom,
            type => atom,
            in_msgs => number,
            in_bytes => number,
            out_msgs => number,
            out_bytes => number
        },
        #{
            pending => number,
            reasons => {list, binary},
            since_s => number,
            counts => {value, unknown}
        }}.

flow() ->
    {fields, #{from => binary, to => binary, kind => atom, msgs => number, bytes => number}, #{}}.

event() ->
    {fields, #{kind => atom, t => integer, level => atom, text => binary}, #{}}.

-doc "The shape of facts, which reports (`m:sderl_mon_message`) have too.".
-spec facts() -> sderl_mon_shape:shape().
facts() ->
    Nodes = {list, atom},
    Known = #{coordinator => atom, names => natural, live => Nodes},
    Group = {fields, #{group => any, members => Nodes}, Known},
    {fields, #{}, #{
        otp => binary,
        cpu_topology => {list, {fields, #{scheduler => natural}, #{}}},
        groups => {list, Group},
        known => {list, {tuple, [any, Nodes]}},
        problems => {list, binary},
        alarms => {list, binary},
        apps => {list, {tuple, [id, text]}}
    }}.
