%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_hello).
-moduledoc "The first message of a socket: what is shown here, in which columns and units.".

-export([live/2, recording/3]).
-import(sderl_web_json, [null/1]).
-export_type([settings/0]).

-doc "What a browser is told of the hub (`mode`, `interval_ms`, `life`) and of this server.".
-type settings() :: #{
    mode := live | synthetic,
    interval_ms := pos_integer(),
    life := none | integer(),
    cluster := binary(),
    writable := boolean(),
    max_sockets => pos_integer(),
    profile => boolean() | samples | live
}.

-define(VERSION, 1).

-doc "Of what happens now.".
-spec live(settings(), sderl_mon_types:topology() | undefined) -> iodata().
live(#{mode := Mode, interval_ms := Interval, life := Life, cluster := Cluster,
       writable := Writable} = Settings, Topology) ->
    Range = range(live),
    Profile = maps:get(profile, Settings, false),
    hello(#{
        mode => Mode,
        interval_ms => Interval,
        writable => Writable,
        source => source(Mode, Topology),
        cluster => Cluster,
        life => null(Life),
        range => Range,
        profile => lists:member(Profile, [true, samples]),
        samples => Profile =:= samples,
        profiling => Profile =:= live,
        archive => is_map(maps:get(archive, sderl_mon_settings:get()))
    }).

-doc "Of a recording that a browser has opened.".
-spec recording(pid(), Name :: binary(), sderl_mon_types:frame() | undefined) -> iodata().
recording(Source, Name, Frame) ->
    hello(#{
        mode => recording,
        interval_ms => interval(Frame),
        writable => false,
        source => recording,
        cluster => Name,
        recording => Name,
        range => range(Source)
    }).

hello(What) ->
    sderl_web_json:term(What#{
        type => hello,
        version => ?VERSION,
        t => sderl_mon_clock:wall_ms(),
        metrics => sderl_mon_types:metrics(),
        units => sderl_web_protocol:units()
    }).

interval(#{span_ms := Ms}) -> Ms;
interval(undefined) -> 1000.

source(synthetic, _) -> synthetic;
source(live, #{nodes := Nodes}) ->
    case lists:usort([Source || #{source := Source} <- maps:values(Nodes), Source =/= none]) of
        [One] -> One;
        [] -> none;
        _ -> mixed
    end;
source(live, undefined) -> none.

range(Source) ->
    try sderl_mon_hub:range(Source) of
        {0, 0} -> null;
        {From, To} -> [From, To]
    catch
        exit:_ -> null
    end.
