%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_upgrade).
-moduledoc """
A rolling upgrade of a cluster under load: nodes in a ring of groups, as in the demo, each with
`m:sderl_bench_messenger`. Hosts are folders of this machine.
""".

-export([run/2, judge/1]).
-export_type([params/0]).

-doc """
`gateways` are members that two neighbouring groups share; `batch` is how many nodes are down at a
time, `every_ms` the time between two messages of a node.
""".
-type params() :: #{
    nodes := pos_integer(),
    hosts := pos_integer(),
    group_size := pos_integer(),
    gateways := pos_integer(),
    batch := pos_integer(),
    every_ms := pos_integer(),
    atom() => term()
}.

-define(QUIET_MS, 180_000).
-define(LOOK_MS, 200).

-doc "Brings it up, upgrades it, lets all messages arrive, and counts.".
-spec run(params(), Label :: unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(#{nodes := Nodes, hosts := Count} = Params, Label) ->
    maybe
        ok ?= sderl_fleet:fits(Nodes),
        sderl_bench_ops_site:with("upgrade", Count, folders, fun(#{service := Service} = Site) ->
            maybe
                ok = sderl_bench_messenger:application(ebin(Site), "1"),
                {ok, Up} ?= sderl_bench_ops_site:apply_file(cluster(Params, Site),
                                                            [[Label, ": started"]], Site),
                ok = sderl_bench_messenger:application(ebin(Site), "2"),
                {ok, Took} ?= sderl_bench_ops_site:apply_file(cluster(Params, Site),
                                                              [[Label, ": upgraded"]], Site),
                ok = file:write_file(filename:join(folder(Site), "quiet"), ""),
                Reports = await_quiet(Params, Site),
                {ok, (judge(Reports))#{
                    started_s => Up,
                    upgrade_s => Took,
                    nodes_upgraded => upgraded(Site),
                    ops_memory_mib => sderl_bench_ops_service:memory_mib(Service)
                }}
            end
        end)
    end.

folder(#{folder := Folder}) -> Folder.

ebin(Site) -> filename:join(folder(Site), "messenger/ebin").

cluster(#{hosts := Hosts, batch := Batch, every_ms := Every} = Params, Site) ->
    Groups = groups(Params),
    #{
        cluster => bench,
        providers => #{here => #{type => local, hosts => Hosts}},
        releases => #{code => #{
            code => [sderl_bench_ops_site:library(), unicode:characters_to_binary(ebin(Site))],
            applications => [sderl, messenger],
            env => #{'MESSENGER' => unicode:characters_to_binary(folder(Site))},
            start_timeout_s => 300,
            stop_timeout_s => 120
        }},
        domains => #{all => #{provider => here}},
        families => #{n => #{
            release => code, domains => [all], count => map_get(nodes, Params),
            config => #{messenger => #{every_ms => Every,
                                       groups => [[Name, Ids] || {Name, Ids} <- Groups]}}
        }},
        groups => [#{name => Name, nodes => Ids} || {Name, Ids} <- Groups],
        upgrade => #{batch => Batch, wait_s => 1}
    }.

groups(#{nodes := Nodes, group_size := Size, gateways := Gateways}) ->
    sderl_bench_messenger:groups(ids(Nodes), Size, Gateways).

ids(Nodes) -> [<<"n", (integer_to_binary(Number))/binary>> || Number <- lists:seq(1, Nodes)].

%% Instances that were laid out with the second release.
upgraded(Site) ->
    Releases = [Line || File <- in_nodes("instance", Site),
                        {ok, Text} <- [file:read_file(File)],
                        <<"release ", _/binary>> = Line <- string:split(Text, "\n", all)],
    case lists:uniq(Releases) of
        [_] -> length(Releases);
        _ -> 0
    end.

in_nodes(Name, Site) ->
    filelib:wildcard(filename:join([folder(Site), "s/hosts/here/*/nodes/n*", Name])).

%% Waits until no message is on its way and no name is missing, and the reports agree. Each node
%% reports by itself: a sender's report may have messages that its receiver's is too old to have.
await_quiet(Params, Site) ->
    await_quiet(map_get(nodes, Params), Site, erlang:monotonic_time(millisecond) + ?QUIET_MS).

await_quiet(Nodes, Site, Deadline) ->
    Reports = #{id(File) => binary_to_term(Bytes)
                || File <- in_nodes("state/report", Site), {ok, Bytes} <- [file:read_file(File)]},
    IsDone = map_size(Reports) =:= Nodes andalso is_all_well(judge(Reports)),
    case IsDone orelse erlang:monotonic_time(millisecond) > Deadline of
        true -> Reports;
        false -> receive after ?LOOK_MS -> await_quiet(Nodes, Site, Deadline) end
    end.

is_all_well(#{lost_messages := Lost, names_missing := Missing}) -> Lost =:= 0 andalso Missing =:= 0.

id(File) ->
    unicode:characters_to_binary(filename:basename(filename:dirname(filename:dirname(File)))).

-doc """
The sums of the nodes' reports. A message is lost if its receiver has not acknowledged it in the
end, or has acknowledged it and does not have it.
""".
-spec judge(#{Id :: binary() => sderl_bench_messenger:report()}) -> #{atom() => term()}.
judge(Reports) ->
    Acked = sum(acked, Reports),
    Pending = lists:sum([Pending || _ := #{pending := Pending} <- Reports]),
    Gone = lists:sum([
        max(0, Count - taken(From, To, Reports))
     || From := #{acked := Counts} <- Reports, To := Count <- Counts
    ]),
    #{
        sent => sum(sent, Reports),
        acknowledged => Acked,
        again => lists:sum([Again || _ := #{again := Again} <- Reports]),
        lost_messages => Pending + Gone,
        names_missing => lists:sum([length(Missing) || _ := #{missing := Missing} <- Reports]),
        nodes_reported => map_size(Reports)
    }.

taken(From, To, Reports) ->
    case Reports of
        #{To := #{taken := #{From := Count}}} -> Count;
        #{} -> 0
    end.

sum(Key, Reports) ->
    lists:sum([Count || _ := #{Key := Counts} <- Reports, _ := Count <- Counts]).
