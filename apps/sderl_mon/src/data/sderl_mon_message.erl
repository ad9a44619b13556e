%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_message).
-moduledoc """
The messages between masters and agents, by type, and the check of each. Pure.

Between masters, and from agents to masters, a message is `{sderl_mon, 1, Kind, From, Payload}`
(`m:sderl_mon_tell`). Hubs are told `t:sderl_mon_types:update/0` and
`t:sderl_mon_types:topology/0`, which `m:sderl_mon_clean` checks; probes tell
`t:sderl_mon_samples:sample/0`.
""".

-export([check/2, check_orders/1, check_news/1, check_past/1]).
-export_type([scope/0, placement/0, version/0, status/0, node_report/0, kind/0]).
-export_type([config/0, stamps/0, shared/0]).
-export_type([past_part/0, past_ask/0, past_answer/0]).
-export_type([beat/0, snapshot/0, plan/0, orders/0, report/0, news/0]).

-doc "What one agent watches.".
-type scope() :: {group, term()} | {free, node()}.

-doc "On which monitoring node the agent of each scope runs.".
-type placement() :: #{scope() => node()}.

-doc "A plan's maker, and how many plans came before it. `{undefined, 0}` is no plan.".
-type version() :: {node() | undefined, non_neg_integer()}.

-doc "`unreachable`: there is a link, and the node does not answer.".
-type status() :: up | down | unreachable.

-doc """
The part of the configuration that all monitoring nodes have in common
(`sderl_mon_config:shared/1`).
""".
-type config() :: #{
    seeds := [node()],
    monitors := [node()],
    nodes := all | [node()],
    inject := boolean(),
    probe := auto | stock,
    interval_ms := pos_integer(),
    thresholds := #{atom() => number()},
    log => off | map(),
    metrics => [sderl_mon_app_metrics:metric()]
}.

-doc "By option that was set at run time: when, and at which node (`m:sderl_mon_shared`).".
-type stamps() :: #{Key :: atom() => {sderl_mon_types:t(), node()}}.

-doc """
The settings, and where each was made (`m:sderl_mon_shared`). They are sent to all masters at once
(`config`), to a master whose beat shows that it lacks one, and with each plan.
""".
-type shared() :: #{config := config(), stamps := stamps()}.

-doc """
An agent's report on one node: its status and why, the source of its numbers, its last facts, and
the nodes to which it is linked. Masters keep it with the time since which the status holds, each by
its own clock.
""".
-type node_report() :: #{
    status := status(),
    why := binary(),
    source := probe | stock | none,
    facts := sderl_mon_samples:facts() | #{},
    peers := [node()],
    since => integer()
}.

-doc """
From each master to each other, every 500 ms: under which term it leads or follows, the highest
term that it has seen, whether it leads, which plan it has, whom it hears, and which settings it
knows.
""".
-type beat() :: #{
    term := integer(),
    seen := integer(),
    lead := boolean(),
    version := version(),
    hears := [node()],
    stamps := stamps()
}.

-doc "From a master that is asked (`hello`) to one that has just begun: all that it knows.".
-type snapshot() :: #{
    seen := integer(),
    nodes := #{node() => node_report()},
    placement := placement(),
    config := config(),
    stamps := stamps(),
    epoch := integer()
}.

-doc """
From the leader to the other masters (`assign`): which nodes each agent watches, where each agent
runs, in which groups each node is, which monitoring nodes live (`hubs`), and which there are. It
is whole each time, and each master runs its part of it.
""".
-type plan() :: #{
    term := integer(),
    version := version(),
    scopes := #{scope() => [node()]},
    placement := placement(),
    members := #{node() => [Group :: term()]},
    hubs := [node()],
    monitors := [node()],
    config := config(),
    stamps := stamps(),
    epoch := integer()
}.

-doc """
From a master to an agent of its node: watch `nodes`. `monitors` are all monitoring nodes, `hubs`
those that live. Orders stay in force until the next; those of a lower term are ignored.
""".
-type orders() :: #{
    scope := scope(),
    term := integer(),
    nodes := [node()],
    monitors := [node()],
    hubs := [node()],
    config := config()
}.

-doc "From an agent to all masters: what changed of its nodes, and now and then everything.".
-type report() :: #{scope := scope(), term := integer(), nodes := #{node() => node_report()}}.

-doc """
From a hub to each subscriber of its node. `frame`, `topology`, `events` and `findings` come when
there are new ones, `detail` of the nodes that the subscriber watches. A slow subscriber misses
some, and learns how many frames (`missed`) and events (`events_missed`). `anew`: what was sent
before no longer holds.
""".
-type news() ::
    {sderl_mon, frame, sderl_mon_types:frame()}
    | {sderl_mon, topology, sderl_mon_types:topology()}
    | {sderl_mon, events, [sderl_mon_types:event()]}
    | {sderl_mon, findings, [sderl_mon_types:finding()]}
    | {sderl_mon, detail, sderl_mon_types:id(), sderl_mon_types:detail()}
    | {sderl_mon, missed | events_missed, non_neg_integer()}
    | {sderl_mon, anew, Life :: integer()}.

-doc "A part of a hub's memory; of frames, one step of the history (0: frames as they came).".
-type past_part() :: {frames, Step :: non_neg_integer()} | topologies | findings | events.

-doc """
From a monitoring node that has just begun to another: asks for the entries of a part after a time
(for events: after an id).
""".
-type past_ask() ::
    #{from := node(), ref := reference(), part := past_part(), 'after' := integer()}.

-doc """
The answer: `entries` as histories keep them, oldest first, packed; whether there is `more`; the
`steps` that there are, and what time it is there.
""".
-type past_answer() :: #{
    ref := reference(),
    t := sderl_mon_types:t(),
    steps := [non_neg_integer()],
    entries := [{sderl_mon_types:t(), SpanMs :: non_neg_integer(), binary()}],
    more := boolean()
}.

-doc """
The kinds of messages between masters, and of an agent to masters, with the type of their payload.
""".
-type kind() :: beat | hello | state | assign | config | report.

-doc "Checks a message to a master.".
-spec check(Kind :: term(), Payload :: term()) -> ok | {error, not_a_message}.
check(Kind, Payload) ->
    case payload(Kind) of
        unknown -> {error, not_a_message};
        Shape -> checked(Shape, Payload)
    end.

-doc "Checks orders.".
-spec check_orders(term()) -> ok | {error, not_a_message}.
check_orders(Term) -> checked(orders(), Term).

-doc "Checks a message by which a monitoring node gets the past of another.".
-spec check_past(term()) ->
    {ok, {ask, past_ask()} | {answer, past_answer()}} | {error, not_a_message}.
check_past({Kind, Term} = Message) when Kind =:= ask; Kind =:= answer ->
    case sderl_mon_shape:fits(past(Kind), Term) of
        true -> {ok, Message};
        false -> {error, not_a_message}
    end;
check_past(_) ->
    {error, not_a_message}.

past(ask) ->
    Parts = [{value, Part} || Part <- [topologies, findings, events]],
    fields(#{
        from => atom,
        ref => any,
        part => {either, [{tuple, [{value, frames}, natural]} | Parts]},
        'after' => integer
    });
past(answer) ->
    fields(#{
        ref => any,
        t => integer,
        steps => {list, natural},
        entries => {list, {tuple, [integer, natural, binary]}},
        more => boolean
    }).

-doc """
Checks a message of a hub to its subscribers. (Details and findings are not checked within: people
read them.)
""".
-spec check_news(term()) -> {ok, news()} | {error, not_a_message}.
check_news({sderl_mon, topology, Topology} = News) ->
    case sderl_mon_clean:topology(Topology) of
        {ok, _} -> {ok, News};
        {error, _} -> {error, not_a_message}
    end;
check_news({sderl_mon, Kind, What} = News) ->
    checked_news(news(Kind), What, News);
check_news({sderl_mon, detail, Node, Detail} = News) ->
    checked_news({tuple, [id, {map, atom, any}]}, {Node, Detail}, News);
check_news(_) ->
    {error, not_a_message}.

checked_news(unknown, _, _) ->
    {error, not_a_message};
checked_news(Shape, What, News) ->
    case sderl_mon_shape:fits(Shape, What) of
        true -> {ok, News};
        false -> {error, not_a_message}
    end.

news(frame) ->
    Flow = {tuple, [number, number]},
    Samples = {map, id, {map, {either, [atom, binary]}, number}},
    fields(#{
        seq => natural,
        t => integer,
        span_ms => natural,
        epoch => integer,
        nodes => Samples,
        groups => Samples,
        links => {map, {tuple, [id, id]}, Flow},
        kinds => {map, atom, Flow},
        lost => {map, atom, integer}
    });
news(events) ->
    Event = #{id => natural, t => integer, kind => atom, level => atom, text => binary},
    {list, fields(Event)};
news(findings) ->
    {list, fields(#{id => binary, kind => atom, severity => atom})};
news(Kind) when Kind =:= missed; Kind =:= events_missed ->
    natural;
news(anew) ->
    integer;
news(_) ->
    unknown.

checked(Shape, Term) ->
    case sderl_mon_shape:fits(Shape, Term) of
        true -> ok;
        false -> {error, not_a_message}
    end.

payload(beat) ->
    fields(#{
        term => integer,
        seen => integer,
        lead => boolean,
        version => version(),
        hears => node_list(),
        stamps => stamps()
    });
payload(hello) ->
    {map, any, any};
payload(state) ->
    fields(#{
        seen => integer,
        nodes => {map, atom, {fields, (node_report())#{since => integer}, #{}}},
        placement => placement(),
        config => config(),
        stamps => stamps(),
        epoch => integer
    });
payload(assign) ->
    fields(#{
        term => integer,
        version => version(),
        scopes => {map, scope(), node_list()},
        placement => placement(),
        members => {map, atom, {list, any}},
        hubs => node_list(),
        monitors => node_list(),
        config => config(),
        stamps => stamps(),
        epoch => integer
    });
payload(config) ->
    fields(#{config => config(), stamps => stamps()});
payload(report) ->
    fields(#{scope => scope(), term => integer, nodes => {map, atom, fields(node_report())}});
payload(_) ->
    unknown.

orders() ->
    fields(#{
        scope => scope(),
        term => integer,
        nodes => node_list(),
        monitors => node_list(),
        hubs => node_list(),
        config => config()
    }).

node_report() ->
    #{
        status => {either, [{value, up}, {value, down}, {value, unreachable}]},
        why => binary,
        source => {either, [{value, probe}, {value, stock}, {value, none}]},
        facts => sderl_mon_samples:facts(),
        peers => node_list()
    }.

%% A newer version may have more keys; an older one lacks the optional ones.
config() ->
    {fields, #{
        seeds => node_list(),
        monitors => node_list(),
        nodes => {either, [{value, all}, node_list()]},
        inject => boolean,
        probe => {either, [{value, auto}, {value, stock}]},
        interval_ms => natural,
        thresholds => {map, atom, number}
    }, #{log => {either, [{value, off}, {map, atom, any}]}, metrics => {list, metric()}}}.

metric() ->
    Tags = {list, atom},
    {fields, #{name => binary, kind => atom, tags => Tags, most_tags => natural}, #{}}.

stamps() -> {map, atom, {tuple, [natural, atom]}}.
scope() -> {either, [{tuple, [{value, group}, any]}, {tuple, [{value, free}, atom]}]}.
placement() -> {map, scope(), atom}.
version() -> {tuple, [atom, natural]}.
node_list() -> {list, atom}.
fields(Must) -> {fields, Must, #{}}.
