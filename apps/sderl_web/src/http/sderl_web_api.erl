%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_api).
-moduledoc """
What programs ask over plain HTTP: `/api/health` (without the token), `/api/state`, `/api/export`
and `/metrics`.
""".

-export([init/2]).
-export_type([options/0]).

-doc """
What handlers know of the settings. The token is a function, so that no report of a crash shows it.
""".
-type options() :: #{
    token := fun(() -> binary()),
    writable := boolean(),
    max_sockets := pos_integer(),
    recordings := none | file:filename(),
    replay := none | file:filename()
}.

-doc false.
-spec init(cowboy_req:req(), options()) -> {ok, cowboy_req:req(), options()}.
init(Req, #{token := Token} = Options) ->
    What = binary:split(cowboy_req:path(Req), ~"/", [global, trim_all]),
    Reply =
        case What =:= [~"api", ~"health"] orelse sderl_web_guard:has_token(Req, Token) of
            true ->
                guarded(What, Req);
            false ->
                sderl_web_notes:note(wrong_token, "a request without the right token was refused"),
                sderl_web_reply:no_token(Req)
        end,
    {ok, Reply, Options}.

guarded(What, Req) ->
    try
        answer(What, Req)
    catch
        %% Not with the request, which holds the token. An export that ends early has sent its head.
        Class:Reason:Stack ->
            sderl_web_notes:note(failed, io_lib:format("~ts: ~0tP at ~0tP", [
                lists:join("/", What), {Class, shape(Reason)}, 12, places(Stack), 30
            ])),
            sderl_web_reply:refuse(503, unavailable, "this could not be answered now: the hub is "
                                                     "not running, or the log says why", Req)
    end.

shape({Reason, {M, F, A}}) when is_list(A) -> {Reason, {M, F, length(A)}};
shape(Reason) -> Reason.

places(Stack) -> [{M, F} || {M, F, _, _} <- lists:sublist(Stack, 4)].

answer([~"api", ~"health"], Req) ->
    #{hub := Hub, sockets := Sockets} = sderl_web_feed:health(),
    Status =
        case Hub of
            true -> 200;
            false -> 503
        end,
    sderl_web_reply:json(Status, sderl_web_json:term(#{status => word(Hub), sockets => Sockets}),
                         Req);
answer([~"api", ~"state"], Req) ->
    #{topology := Topology, mode := Mode} = Now = sderl_web_feed:current(),
    case Topology of
        undefined ->
            sderl_web_reply:refuse(503, unavailable, "the hub has no topology yet: ask again", Req);
        _ ->
            sderl_web_reply:json(200, [~"{\"mode\":\"", atom_to_binary(Mode), ~"\",\"now\":",
                                       sderl_web_ask:state(Now), $}], Req)
    end;
answer([~"metrics"], Req) ->
    #{topology := Topology, frame := Frame, findings := Findings} = sderl_web_feed:current(),
    case {Topology, Frame} of
        {#{}, #{}} ->
            Headers = #{~"content-type" => ~"text/plain; version=0.0.4; charset=utf-8",
                        ~"cache-control" => ~"no-store"},
            cowboy_req:reply(200, Headers,
                             [sderl_mon_prometheus:text(Topology, Frame, Findings), own_metrics()],
                             Req);
        _ ->
            sderl_web_reply:refuse(503, unavailable, "the hub has no frame yet: ask again", Req)
    end;
answer([~"api", ~"export"], Req) ->
    sderl_web_export:answer(Req);
answer(_, Req) ->
    sderl_web_reply:refuse(404, not_found, "there is no such path: /api/health, /api/state, "
                                           "/api/export and /metrics are there", Req).

word(true) -> ok;
word(false) -> no_hub.

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
        "~ts",
        [Sockets, Missed, [io_lib:format("sderl_web_refused_total{kind=\"~ts\"} ~w\n", [Kind, N])
                           || Kind := N <- sderl_web_notes:counts()]]
    ).
