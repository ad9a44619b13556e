%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_types).
-moduledoc """
The data of the shadow network, by type: what agents tell a hub, what a hub keeps and what it
answers.

Nodes and groups are named by binaries (`t:id/0`) from the agent on: a hub, a recording and a
browser hold names of nodes that this VM never connected to, and no atom may be made of them.
Times are Unix milliseconds. Rates are per second, sizes in bytes, shares from 0 to 1 unless the
name ends in `_pct` (then per cent).
""".

-export([untried/0, metrics/0, peak/1, id/1, family/1, is_probed/2]).

-export_type([id/0, t/0, scope/0]).
-export_type([topology/0, node_info/0, group_info/0, monitor_info/0]).
-export_type([update/0, frame/0, node_sample/0, group_sample/0, link/0, edge/0, flow/0]).
-export_type([names/0, name/0, names_opts/0, process/0, trace_opts/0, traced/0, link_detail/0]).
-export_type([detail/0, standing/0, event/0, new_event/0, level/0]).
-export_type([finding/0, evidence/0, severity/0]).
-export_type([moment/0, source/0, store/0, what/0, place/0, series/0, event_filter/0, traffic_by/0,
              traffic_opts/0, traffic_row/0]).

-doc "A node: its name as text. A group: its name as `~0tp` prints it, cut to 255 bytes.".
-type id() :: binary().

-doc "Unix time in milliseconds.".
-type t() :: integer().

-doc "The scope of one agent: a group, or a free node.".
-type scope() :: id().

-doc """
All nodes, groups and monitoring nodes. Complete each time; `epoch` grows whenever nodes, groups or
their members change.
""".
-type topology() :: #{
    epoch := integer(),
    t := t(),
    nodes := #{id() => node_info()},
    groups := #{id() => group_info()},
    monitors := [monitor_info()]
}.

-doc """
A monitored node. `home` is the scope whose agent watches it; `source` is where its numbers come
from; `why` says what is wrong with a node that is not `up`, or not fully seen. `library`: s_groups
run there, which a node that is read without a probe may do as well as one of stock OTP.
""".
-type node_info() :: #{
    status := up | down | unreachable,
    groups := [id()],
    home := id() | undefined,
    hidden := boolean(),
    source := probe | stock | none,
    agent => id(),
    why => binary(),
    otp => binary(),
    library => boolean()
}.

-doc """
An s_group. `agent` is the monitoring node on which its agent runs; `minority` are the members that
report to be on a side without a majority, if there are any.
""".
-type group_info() :: #{
    nodes := [id()],
    coordinator := id() | undefined,
    live => [id()],
    minority => [id()],
    names := non_neg_integer(),
    agent := id() | undefined
}.

-doc "A monitoring node and how many agents it runs.".
-type monitor_info() :: #{
    node := id(),
    status := up | down,
    master := boolean(),
    agents := non_neg_integer()
}.

-doc """
An agent's message to every hub once an interval.

`agent` has the agent's scope and the term under which it was started: an update of a lower term
than the highest seen for that scope comes from a deposed agent and is ignored. `lost` counts what
was left out *since the agent's last update*.
""".
-type update() :: #{
    agent := {scope(), Term :: integer()},
    t := t(),
    span_ms := pos_integer(),
    nodes => #{id() => node_sample()},
    links => #{link() => flow()},
    kinds => #{atom() => flow()},
    groups => #{id() => group_sample()},
    routed => #{edge() => number()},
    details => #{id() => detail()},
    events => [new_event()],
    lost => #{atom() => non_neg_integer()}
}.

-doc "The sending and the receiving node.".
-type link() :: {From :: id(), To :: id()}.

-doc """
The group of the sender and that of the next node. `(gateway)` stands for the counting node itself,
`(free)` for a node in no group. `routed` has routed messages a second by edge, each counted by the
first gateway on its way.
""".
-type edge() :: {From :: id(), To :: id()}.

-doc "Messages and bytes per second.".
-type flow() :: {MsgsPerS :: number(), BytesPerS :: number()}.

-doc """
Numbers of one node over a frame, by metric: those of `metrics/0` as far as they are known,
perhaps more, and the series of the application's own. Rates are per second, queues (`peak/1`) the
highest value seen, and all others means over the frame.
""".
-type node_sample() :: #{atom() | sderl_mon_app_metrics:series() => number()}.

-doc "Numbers of one group over a frame: `regs_s`, `names`, `in_msgs_s` and what else is known.".
-type group_sample() :: #{atom() => number()}.

-doc """
Everything over one interval of `span_ms` that ends at `t`.

A link is measured at the sender; where the sender is not watched, at the receiver. `lost` counts
what is not in this frame's numbers, by reason: nothing is left out without being counted.
""".
-type frame() :: #{
    seq := non_neg_integer(),
    t := t(),
    span_ms := pos_integer(),
    epoch := integer(),
    nodes := #{id() => node_sample()},
    links := #{link() => flow()},
    kinds := #{atom() => flow()},
    groups := #{id() => group_sample()},
    routed => #{edge() => number()},
    lost := #{atom() => integer()}
}.

-doc """
All that is known of one node at one time; its page shows it. `t` is by the clock of the agent,
`node_t` by the node's. Counts (`migrations`, `traffic`) cover the last `span_ms`.
""".
-type detail() :: #{
    t := t(),
    node_t => t(),
    span_ms => pos_integer(),
    node := id(),
    schedulers => [
        #{
            id := pos_integer(),
            type := normal | dirty_cpu | dirty_io,
            queue => non_neg_integer(),
            util => float(),
            socket => non_neg_integer(),
            core => non_neg_integer()
        }
    ],
    queues => [non_neg_integer()],
    memory => #{atom() => non_neg_integer()},
    top => [process()],
    migrations => [[non_neg_integer()]],
    links => [link_detail()],
    kinds => #{atom() => flow()},
    traffic => [sderl_mon_samples:flow()],
    problems => [binary()],
    alarms => [binary()],
    apps => #{binary() => binary()},
    old_code => non_neg_integer(),
    shell_bytes => non_neg_integer(),
    utc_offset_s => integer(),
    limits => limits(),
    otp => binary(),
    uptime_s => number(),
    tracing => boolean(),
    source => probe | stock
}.

-doc "How much of each limit is used, and the limit: `[Used, Limit]`.".
-type limits() :: #{procs | ports | atoms | ets | files | modules | disk => [number()]}.

-doc "The part of a node's details that alarms use (`sderl_mon_hub:standing/0`).".
-type standing() :: #{
    limits => limits(),
    apps => #{binary() => binary()},
    old_code => non_neg_integer(),
    shell_bytes => non_neg_integer(),
    utc_offset_s => integer(),
    node_t => t(),
    t => t()
}.

-doc """
A link of a node, as that node sees it; with rates if there are two samples to compute them from.
""".
-type link_detail() :: #{
    node := id(),
    type => visible | hidden,
    pending => non_neg_integer(),
    reasons => [binary()],
    since_s => non_neg_integer(),
    counts => unknown,
    in_msgs_s => number(),
    in_bytes_s => number(),
    out_msgs_s => number(),
    out_bytes_s => number()
}.

-doc "Which names: those whose text begins with `prefix`, at most `limit`.".
-type names_opts() :: #{prefix => binary(), limit => pos_integer()}.

-doc """
Some names of a group, how many it has (as far as that is known without counting), and whether there
are others.
""".
-type names() :: #{names := [name()], total := non_neg_integer(), more := boolean()}.

-doc """
A registered name as text, its process, and the node of that. Only made-up names have `since`.
""".
-type name() :: #{name := binary(), pid := binary(), node := node() | id(), since => t()}.

-doc """
One process, without its messages, state or dictionary. Terms are texts; links and monitors are
counted.
""".
-type process() :: #{
    pid := binary(),
    name := binary(),
    initial := binary(),
    memory := non_neg_integer(),
    queue := non_neg_integer(),
    node => id(),
    reds_per_s => non_neg_integer(),
    status => atom(),
    priority => atom(),
    trap_exit => boolean(),
    total_heap_size => non_neg_integer(),
    stack_size => non_neg_integer(),
    reductions => non_neg_integer(),
    current => binary(),
    stack => [binary()],
    links => non_neg_integer(),
    monitors => non_neg_integer(),
    monitored_by => non_neg_integer(),
    gc => non_neg_integer()
}.

-doc "What to trace and for how long: see `sderl_mon_probe_trace:trace/2`.".
-type trace_opts() :: #{
    on := boolean(),
    sample => number(),
    pids => [binary()],
    max_per_s => pos_integer(),
    for_s => pos_integer(),
    dry => boolean(),
    measure => boolean()
}.

-doc "The cost of tracing on that node, as a sentence for people.".
-type traced() :: #{cost := binary()}.

-type level() :: info | notice | warning | error.

-doc """
An event as an agent sends it: without an id. `node_t` is the time by the clock of the node, if it
comes from there.
""".
-type new_event() :: #{
    t := t(),
    node_t => t(),
    kind := atom(),
    level := level(),
    text := binary(),
    node => id(),
    group => id(),
    details => #{atom() | binary() => term()}
}.

-doc "An event; ids grow by one with each event of a hub.".
-type event() :: #{
    id := pos_integer(),
    t := t(),
    node_t => t(),
    kind := atom() | binary(),
    level := level(),
    text := binary(),
    node => id(),
    group => id(),
    details => #{atom() | binary() => term()}
}.

-type severity() :: info | warning | critical.
-type evidence() :: #{label := binary(), value := number() | binary(), unit => binary()}.

-doc """
Something that a person should know, with evidence and what to do. `id` stays the same as long as
the finding does; `since` is when it was first seen, `t` when it was last seen.
""".
-type finding() :: #{
    id := binary(),
    kind := atom() | binary(),
    severity := severity(),
    since := t(),
    t := t(),
    where := #{node | group | from | to => id()},
    text := binary(),
    evidence := [evidence()],
    remedy := binary(),
    saves => #{links | msgs_s => number()}
}.

-doc """
The state at a time: the last frame at or before it, with the topology and the findings of that
time.
""".
-type moment() :: #{topology := topology(), frame := frame(), findings := [finding()]}.

-doc """
Where an answer comes from: the hub of this node, or an opened recording (`m:sderl_mon_replay`).
""".
-type source() :: live | pid().

-doc """
The nodes whose numbers are put together. A family are the nodes whose names differ only in the
number at the end (`family/1`). The members of a group or family are those at the end of the time.
""".
-type place() :: cluster | {node, id()} | {group, id()} | {family, Name :: binary()}.

-doc """
The subject of a series over time. `over` is one number of all nodes of a place together; of a
metric of the application's own, each of its series is a column. An `edge` is the traffic from one
group to another, or, with the same group twice, inside it. A `gateway` is a node of several groups,
its traffic what it sends and receives. `m:sderl_mon_traffic` says what counts where.
""".
-type what() ::
    {node, id(), [atom() | sderl_mon_app_metrics:series()]}
    | {over, place(), atom() | sderl_mon_app_metrics:series(), sderl_mon_app_metrics:total()}
    | {link, id(), id()}
    | {group, id()}
    | {edge, id(), id()}
    | {gateway, id()}
    | {routed, id(), id()}
    | total.

-doc """
A place that keeps frames: their range, the topology of a time, and a fold over the frames whose
spans end in a time range, oldest first, no finer than `StepMs` where there is a choice, with the
wanted parts (`sderl_mon_ladder:unpack/2`). Without `is_rate` no metric is a rate.
""".
-type store() :: #{
    range := {t(), t()},
    topology := fun((t()) -> {ok, topology()} | none),
    fold := fun((From :: t(), To :: t(), StepMs :: non_neg_integer(), sderl_mon_pack:want() | total,
                 fun((frame(), Acc) -> Acc), Acc) -> Acc),
    is_rate => sderl_mon_frame:is_rate()
}.

-doc "One value for each column and time; `null` where nothing is known.".
-type series() ::
    #{t := [t()], columns := #{atom() | sderl_mon_app_metrics:series() => [number() | null]}}.

-doc """
Which events, newest first: `before` an id, `from` and `to` a time, at most `limit` (200; 1,000 at
most).
""".
-type event_filter() :: #{
    from => t(),
    to => t(),
    limit => pos_integer(),
    kinds => [atom() | binary()],
    node => id(),
    group => id(),
    before => integer()
}.

-type traffic_by() :: link | edge | gateway | group | routed.
-doc "`t` is the window's end (now), `window_s` its length in seconds (60; 3,600 at most).".
-type traffic_opts() ::
    #{by := traffic_by(), t => now | t(), window_s => pos_integer(), limit => pos_integer()}.

-doc """
A row of a traffic table. `from` and `to` for links and edges, `node` for gateways, `group` for
groups. Routed messages have no bytes: nobody counts them. `forwarded_s` are routed messages that a
gateway with a probe passed on. `msgs_s` and `bytes_s` are means over the window, `msgs` and `bytes`
the window's totals; the percentiles and the maximum are of messages a second over the window's
frames, weighted by their length: in windows over a minute most frames are means of ten seconds or
more, the newest of one.
""".
-type traffic_row() :: #{
    from => id(),
    to => id(),
    node => id(),
    group => id(),
    groups => [id()],
    msgs_s := float(),
    bytes_s => float(),
    msgs := non_neg_integer(),
    bytes => non_neg_integer(),
    forwarded_s => float(),
    p50 := float(),
    p95 := float(),
    max := float()
}.

-doc "The `why` of a node that nobody has tried to reach yet.".
-spec untried() -> binary().
untried() -> <<"not reached yet">>.

-doc """
The metrics of a node, in the order in which they are sent to browsers and written to tables.
""".
-spec metrics() -> [atom(), ...].
metrics() ->
    [
        run_queue, util, procs, mem, mq_max, cpu_pct, in_bytes_s, out_bytes_s, in_msgs_s,
        out_msgs_s, regs_s, names, forwarded_s, delivered_s, undelivered_s, host_cpu, host_mem,
        host_mem_total
    ].

-doc "Whether a metric is a queue: merged frames keep its highest value, not its mean.".
-spec peak(atom() | sderl_mon_app_metrics:series()) -> boolean().
peak(run_queue) -> true;
peak(mq_max) -> true;
peak(pending) -> true;
peak(_Other) -> false.

-doc "Whether a node has a probe; only probes count the names of groups.".
-spec is_probed(id(), #{id() => node_info()}) -> boolean().
is_probed(Id, Nodes) ->
    case Nodes of
        #{Id := #{source := probe}} -> true;
        #{} -> false
    end.

-doc "The id of a node, or of what one agent watches.".
-spec id(node() | sderl_mon_message:scope()) -> id().
id(Node) when is_atom(Node) -> atom_to_binary(Node);
id({free, Node}) -> atom_to_binary(Node);
id({group, Group}) -> sderl_mon_text:cut(sderl_mon_text:text("~0tp", [Group]), 255).

-doc """
The family of a node: its name without the host and the number at the end, such as `web` of
`web12@host` and `web-12@host`.
""".
-spec family(id()) -> binary().
family(Node) ->
    [Name | _] = binary:split(Node, ~"@"),
    case without_digits(Name, byte_size(Name)) of
        Name -> Name;
        Left ->
            case Left =/= ~"" andalso binary:last(Left) of
                Sign when Sign =:= $-; Sign =:= $_ -> binary:part(Left, 0, byte_size(Left) - 1);
                _ -> Left
            end
    end.

without_digits(Name, Size) ->
    case Size > 0 andalso binary:at(Name, Size - 1) of
        Digit when is_integer(Digit), Digit >= $0, Digit =< $9 -> without_digits(Name, Size - 1);
        _ -> binary:part(Name, 0, Size)
    end.
