%% SPDX-License-Identifier: Apache-2.0
%% A simulated cluster with its hosts, operators and the service that looks after it.

%% A step that hangs is given up after so long.
-define(LIMIT_MS, 15_000).

-record(host, {
    state = up :: up | down | hung | gone,
    %% Since when it is up: a service may not have noticed yet.
    since = 0 :: integer(),
    releases = [] :: [binary()],
    instances = #{} :: #{binary() => sderl_ops_observed:instance_seen()},
    nodes = #{} :: #{binary() => sderl_ops_observed:node_seen()}
}).

-record(run, {
    number :: pos_integer(),
    step :: sderl_ops_step:step(),
    host :: binary() | undefined,
    %% The giver of a fetched archive.
    from = service :: sderl_ops_relay:source(),
    incarnation :: pos_integer(),
    %% When it ended.
    ended = never :: never | integer()
}).

%% The state of the service's process.
-record(service, {
    incarnation = 1 :: pos_integer(),
    alive = true :: boolean(),
    desired :: map(),
    observed :: sderl_ops_observed:observed(),
    memory :: sderl_ops_memory:memory(),
    runs = #{} :: #{pos_integer() => #run{}},
    %% When the last look that has come back began.
    looked = #{} :: #{binary() | alarms | {provider, binary()} => integer()},
    %% Hosts that a program has made and that the service looks at.
    watched = #{} :: #{binary() => []},
    planned = false :: boolean(),
    last = never :: never | integer(),
    result = none :: none | sderl_ops_reconcile:result()
}).

-record(world, {
    options :: map(),
    now = 0 :: integer(),
    dice :: rand:state(),
    queue :: gb_trees:tree({integer(), pos_integer()}, term()),
    number = 1 :: pos_integer(),
    hosts = #{} :: #{binary() => #host{}},
    groups = #{} :: #{binary() => [binary()]},
    %% Hosts that a program has made.
    made = #{} :: #{binary() => []},
    %% All revisions.
    revisions = #{} :: #{pos_integer() => map()},
    revision = 1 :: pos_integer(),
    stored :: sderl_ops_memory:memory(),
    service :: #service{},
    faults = true :: boolean(),
    %% Instances and hosts that an effect of a dead service has changed, and when.
    orphans = #{} :: #{binary() => integer()},
    %% Instances that a step took out of service, and that are not back, or not back in their
    %% groups.
    out = #{} :: #{binary() => out | back},
    notes = [] :: [{integer(), sderl_ops_note:note()}],
    steps = 0 :: non_neg_integer(),
    %% The last first.
    log = [] :: [{integer(), sderl_ops_step:step()}],
    %% Likewise the fetches and their givers.
    gifts = [] :: [{integer(), sderl_ops_relay:source(), sderl_ops_step:step()}],
    decisions = 0 :: non_neg_integer(),
    reductions = 0 :: non_neg_integer(),
    problems = [] :: [term()]
}).
