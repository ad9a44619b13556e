%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_metrics_route).
-moduledoc "`GET /metrics`: the latest numbers as Prometheus reads them.".

-export([init/2]).

-doc false.
-spec init(cowboy_req:req(), sderl_web_api:options()) ->
    {ok, cowboy_req:req(), sderl_web_api:options()}.
init(Req, Options) ->
    {ok, case sderl_web_auth:admit(Req) of
        {ok, _} -> answered(Req);
        {refused, Why} -> sderl_web_auth:refuse(Why, Req)
    end, Options}.

answered(Req) ->
    try metrics() of
        {ok, Text} ->
            cowboy_req:reply(200, #{
                ~"content-type" => ~"text/plain; version=0.0.4; charset=utf-8",
                ~"cache-control" => ~"no-store"
            }, Text, Req);
        none ->
            sderl_web_reply:refuse(unavailable, "the hub has no frame yet: ask again", Req)
    catch
        exit:{_, {_, _, _}} ->
            sderl_web_reply:refuse(unavailable, "the hub is not running: ask again", Req)
    end.

metrics() ->
    #{topology := Topology, frame := Frame, findings := Findings} = sderl_web_feed:current(),
    case {Topology, Frame} of
        {#{}, #{}} ->
            {ok, [sderl_mon_prometheus:text(Topology, Frame, Findings,
                                        sderl_mon_metrics:application()),
                  log_metrics(), own_metrics()]};
        _ -> none
    end.
%% Nothing while the log does not answer: the other numbers do not need it.
log_metrics() ->
    try sderl_mon_log:info() of
        Info -> sderl_mon_log_metrics:text(Info)
    catch
        exit:_ -> ""
    end.

own_metrics() ->
    #{sockets := Sockets, missed := Missed} = sderl_web_feed:info(),
    io_lib:format(
        "# HELP sderl_web_sockets Browsers connected to the dashboard.\n"
        "# TYPE sderl_web_sockets gauge\n"
        "sderl_web_sockets ~w\n"
        "# HELP sderl_web_frames_missed_total Frames left out because a browser was slow.\n"
        "# TYPE sderl_web_frames_missed_total counter\n"
        "sderl_web_frames_missed_total ~w\n"
        "# HELP sderl_web_refused_total What browsers and strangers were refused, by kind.\n"
        "# TYPE sderl_web_refused_total counter\n"
        "~ts~ts",
        [Sockets, Missed, [io_lib:format("sderl_web_refused_total{kind=\"~ts\"} ~w\n", [Kind, N])
                           || Kind := N <- sderl_web_notes:counts()],
         alarms()]
    ).

%% Nothing where the alarms do not run, which is not the same as none.
alarms() ->
    try sderl_alarms:counts() of
        Counts ->
            ["# HELP sderl_alarms Alarms that are raised, by severity and state\n"
             "# TYPE sderl_alarms gauge\n",
             [io_lib:format("sderl_alarms{severity=\"~ts\",state=\"~ts\"} ~w\n",
                            [Severity, State, N])
              || {Severity, State} := N <- maps:iterator(Counts, ordered)]]
    catch
        exit:_ -> ""
    end.
