%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_export).
-moduledoc """
`GET /api/export`: the hub's history as a file, sent while it is being made.

A few at a time: each reads a long history.
""".

-export([answer/1]).

%% A name for each place; it is free again when the process that has it ends, however it does.
-define(PLACES, [sderl_web_export_1, sderl_web_export_2]).

-doc "Answers with the file, or says which part of the query is wrong.".
-spec answer(cowboy_req:req()) -> cowboy_req:req().
answer(Req) ->
    maybe
        {ok, Query} ?= query(Req),
        {ok, Format} ?= format(value(~"format", Query)),
        {ok, From} ?= time(~"from", Query),
        {ok, To} ?= time(~"to", Query),
        {ok, What} ?= what(value(~"what", Query)),
        {ok, By} ?= by(value(~"by", Query), What),
        Opts = maps:merge(maps:merge(What, By),
                          #{Key => T || {Key, T} <- [{from, From}, {to, To}], T =/= none}),
        alone(fun() -> send(Format, Opts, Req) end, Req)
    else
        {error, Why} -> sderl_web_reply:refuse(400, bad_request, Why, Req)
    end.

query(Req) ->
    try
        {ok, cowboy_req:parse_qs(Req)}
    catch
        _:_ -> {error, "the query cannot be read: it is format=csv&from=MS&to=MS"}
    end.

value(Key, Query) ->
    case lists:keyfind(Key, 1, Query) of
        {_, Value} -> Value;
        false -> none
    end.

format(none) -> {ok, json};
format(~"json") -> {ok, json};
format(~"csv") -> {ok, csv};
format(_) -> {error, "format is json (one object a line) or csv"}.

time(Key, Query) ->
    case value(Key, Query) of
        none ->
            {ok, none};
        Text ->
            case is_binary(Text) andalso byte_size(Text) =< 16 andalso string:to_integer(Text) of
                {T, <<>>} when T >= 0 -> {ok, T};
                _ -> {error, [Key, " is a time in milliseconds since 1970"]}
            end
    end.

what(none) ->
    {ok, #{}};
what(Text) ->
    case [What || What <- sderl_mon_export:what(), atom_to_binary(What) =:= Text] of
        [What] -> {ok, #{what => What}};
        [] ->
            {error, ["what is one of ",
                     lists:join(", ", [atom_to_binary(What) || What <- sderl_mon_export:what()])]}
    end.

by(none, #{what := traffic}) ->
    {ok, #{by => link}};
by(none, _) ->
    {ok, #{}};
by(Text, _) ->
    case [By || By <- [link, edge, gateway, group, routed], atom_to_binary(By) =:= Text] of
        [By] -> {ok, #{by => By}};
        [] -> {error, "by is one of link, edge, gateway, group, routed"}
    end.

%% Whoever is third waits for none: it is told to come again.
alone(Fun, Req) ->
    case lists:any(fun taken/1, ?PLACES) of
        true -> Fun();
        false ->
            sderl_web_reply:refuse(503, unavailable,
                                   "two exports are being made: ask again when one is done", Req)
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
