%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_export).
-moduledoc """
`GET /api/v1/export`: the hub's history as a file, sent while it is being made.

A few at a time: each reads a long history.
""".

-export([fields/0, answer/1]).

%% A name for each place; it is free again when the process that has it ends, however it does.
-define(PLACES, [sderl_web_export_1, sderl_web_export_2]).

-doc "What the query may have.".
-spec fields() -> [sderl_web_fields:field()].
fields() ->
    [
        {~"format", format, {word, [json, csv]}, json},
        {~"what", what, {word, sderl_mon_export:what()}, nodes},
        {~"by", by, {word, [link, edge, gateway, group, routed]}, link},
        {~"from", from, time, none},
        {~"to", to, time, none}
    ].

-doc "Answers with the file.".
-spec answer(#{atom() => term()}) ->
    {stream, fun((cowboy_req:req()) -> cowboy_req:req())}
    | {error, unavailable, unicode:chardata()}.
answer(#{format := Format} = Args) ->
    Opts = maps:remove(format, Args),
    case lists:any(fun taken/1, ?PLACES) of
        true -> {stream, fun(Req) -> send(Format, Opts, Req) end};
        false ->
            {error, unavailable, "two exports are being made: ask again when one is done"}
    end.

taken(Place) ->
    try
        register(Place, self())
    catch
        error:badarg -> false
    end.

send(Format, Opts, Req0) ->
    {Type, Name} =
        case Format of
            csv -> {~"text/csv; charset=utf-8", ~"sderl.csv"};
            json -> {~"application/x-ndjson", ~"sderl.jsonl"}
        end,
    Headers = #{
        ~"content-type" => Type,
        ~"content-disposition" => <<"attachment; filename=\"", Name/binary, "\"">>,
        ~"cache-control" => ~"no-store"
    },
    Req = cowboy_req:stream_reply(200, Headers, Req0),
    Sink = fun(Part) -> part(iolist_to_binary(Part), Req) end,
    %% The head has gone: what ends without its last part is not whole, and every client sees that.
    {ok, _} = sderl_mon_export:write(live, Format, Sink, Opts),
    ok = cowboy_req:stream_body(<<>>, fin, Req),
    Req.

part(<<>>, _) -> ok;
part(Part, Req) -> cowboy_req:stream_body(Part, nofin, Req).
