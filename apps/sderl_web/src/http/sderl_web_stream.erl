%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_stream).
-moduledoc """
Every answer carries the headers of `m:sderl_web_guard`: also those of the HTTP server itself, to
requests that it cannot read, or whose handling failed, and that no handler of ours sees. Those
are problems (`m:sderl_web_problem`), too.
""".

-behaviour(cowboy_stream).

-export([init/3, data/4, info/3, terminate/3, early_error/5]).

-type commands() :: cowboy_stream:commands().
%% Whether only the head is asked for, and the stream handler behind this one.
-type next() :: {boolean(), {module(), term()} | undefined}.

-doc false.
-spec init(cowboy_stream:streamid(), cowboy_req:req(), cowboy:opts()) -> {commands(), next()}.
init(Id, Req, Options) ->
    secured(is_head(Req), cowboy_stream:init(Id, Req, Options)).

is_head(#{method := Method}) -> Method =:= <<"HEAD">>;
is_head(_) -> false.

-doc false.
-spec data(cowboy_stream:streamid(), cowboy_stream:fin(), binary(), next()) ->
    {commands(), next()}.
data(Id, IsFin, Data, {Head, Next}) ->
    secured(Head, cowboy_stream:data(Id, IsFin, Data, Next)).

-doc false.
-spec info(cowboy_stream:streamid(), term(), next()) -> {commands(), next()}.
info(Id, Info, {Head, Next}) -> secured(Head, cowboy_stream:info(Id, Info, Next)).

-doc false.
-spec terminate(cowboy_stream:streamid(), cowboy_stream:reason(), next()) -> term().
terminate(Id, Reason, {_, Next}) -> cowboy_stream:terminate(Id, Reason, Next).

-doc false.
-spec early_error(Id, cowboy_stream:reason(), cowboy_stream:partial_req(), Answer, Options) ->
    Answer
when
    Id :: cowboy_stream:streamid(),
    Answer :: cowboy_stream:resp_command(),
    Options :: cowboy:opts().
early_error(Id, Reason, Req, Answer, Options) ->
    {response, Status, Headers, Body} =
        cowboy_stream:early_error(Id, Reason, Req, Answer, Options),
    {_, Status, Said, Text} = explained(is_head(Req), {response, Status, with_ours(Headers), Body}),
    {response, Status, Said, Text}.

secured(Head, {Commands, Next}) ->
    {[secure(Head, Command) || Command <- Commands], {Head, Next}}.

%% Answers of our handlers have these headers, with a page's own. An error without a body is the
%% router's, to a path that it cannot decode.
secure(Head, {response, Status, Headers, Body}) when is_integer(Status), Status >= 400 ->
    explained(Head, {response, Status, with_ours(Headers), Body});
secure(_, {response, Status, Headers, Body}) ->
    {response, Status, with_ours(Headers), Body};
secure(Head, {error_response, Status, Headers, Body}) ->
    explained(Head, {error_response, Status, with_ours(Headers), Body});
secure(_, {headers, Status, Headers}) ->
    {headers, Status, with_ours(Headers)};
secure(_, Command) ->
    Command.

with_ours(Headers) -> maps:merge(sderl_web_guard:headers(<<>>), Headers).

%% The HTTP server's own errors have no body.
explained(false, {Answer, Status, Headers, Body}) when is_integer(Status) ->
    case iolist_size(Body) of
        0 ->
            Code = sderl_web_problem:of_status(Status),
            Text = sderl_web_problem:make(Code, about(Code)),
            {Answer, Status,
             maps:merge(Headers#{<<"content-length">> => integer_to_binary(byte_size(Text))},
                        sderl_web_reply:problem_headers()), Text};
        _ -> {Answer, Status, Headers, Body}
    end;
explained(_, Answer) -> Answer.

about(Code) ->
    {Code, _, _, About} = lists:keyfind(Code, 1, sderl_web_problem:all()),
    About.
